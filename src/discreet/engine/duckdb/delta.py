"""A Delta table as a source: the files that its log names, and its own version.

A folder with a log is not all the Parquet files in it: rows that were deleted still lie there.
``deltalake`` reads the log; DuckDB reads the files, with the columns that stand in the names of
their folders.  What a table can say that is not read here (deleted rows marked in a file, columns
under other names) is refused, because reading it halfway would bring back people who were deleted.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from datetime import date, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from discreet.engine.duckdb.sources import Parquet, Version
from discreet.errors import DataRefusal
from discreet.exact.numbers import canonical_json
from discreet.exact.records import dataclass

_UNDERSTOOD = frozenset({"timestampNtz"})
_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """What the log of a table says."""

    files: tuple[str, ...]
    token: str


@dataclass(frozen=True, slots=True)
class Delta(Parquet):
    """A folder (``pattern``) with a Delta log, as its newest version says."""

    table: str = ""

    def paths(self) -> tuple[str, ...]:
        """The files of the newest version."""
        return self._snapshot().files

    @property
    def version(self) -> Version:
        """The table's own: its identity, its version and the files that this has."""
        return Version(token=self._snapshot().token)

    def _snapshot(self) -> _Snapshot:
        """Read again whenever the log has another entry."""
        folder = Path(self.pattern).resolve()
        log = (folder / "_delta_log").iterdir()
        return _read_log(self.table, str(folder), tuple(sorted(map(_look_at, log))))


def _look_at(path: Path) -> tuple[str, int, int]:
    """An entry of a log, from outside."""
    status = path.stat()
    return path.name, status.st_size, status.st_mtime_ns


@lru_cache(64)
def _read_log(table: str, folder: str, _log: tuple[tuple[str, int, int], ...]) -> _Snapshot:
    found = _open(table, folder)
    _check_protocol(table, found)
    import pyarrow as pa

    actions = pa.table(found.get_add_actions(flatten=True)).to_pylist()
    files = tuple(sorted(str(Path(path).resolve()) for path in found.file_uris()))
    if not files:
        raise _refuse(table, "its newest version has no files")
    columns = tuple(found.metadata().partition_columns)
    for action in actions:
        _check_folders(table, str(action["path"]), columns, action)
    said = {
        "table": str(found.metadata().id),
        "version": int(found.version()),
        "files": sorted([str(a["path"]), int(a["size_bytes"])] for a in actions),
    }
    return _Snapshot(files, hashlib.sha256(canonical_json(said).encode()).hexdigest()[:32])


def _open(table: str, folder: str) -> Any:
    missing = True
    with suppress(ImportError):
        import deltalake

        missing = False
    if missing:
        raise _refuse(
            table,
            "the package that reads its log is missing",
            fix='pip install "discreet[delta]".',
        )
    with suppress(Exception):  # its text may name what is in the log
        return deltalake.DeltaTable(folder)
    raise _refuse(table, "its log cannot be read")


def _check_protocol(table: str, found: Any) -> None:
    protocol, settings = found.protocol(), found.metadata().configuration or {}
    features = set(protocol.reader_features or ())
    mapped = str(settings.get("delta.columnMapping.mode", "none")).lower() != "none"
    if protocol.min_reader_version > 3 or not features <= _UNDERSTOOD or mapped:
        raise _refuse(
            table,
            "it has features that are not read here (such as deletion vectors or column mapping)",
            fix="write the table without them: a new table, or REORG TABLE ... APPLY (PURGE).",
        )


def _check_folders(table: str, path: str, columns: tuple[str, ...], action: dict[str, Any]) -> None:
    """The columns of a partition are read off the names of folders: they must be what is logged."""
    named = dict(part.split("=", 1) for part in Path(path).parent.parts if "=" in part)
    same = set(named) == set(columns)
    for column in columns if same else ():
        logged, shown = action[f"partition.{column}"], unquote(unquote(named[column]))
        if logged is None or isinstance(logged, str):
            same = same and (shown == (_NULL if logged is None else logged) or logged == "")
        elif isinstance(logged, bool | int) or type(logged) is date:
            same = same and shown.lower() == str(logged).lower()
        elif not isinstance(logged, datetime | float):
            same = False
    if not same:
        raise _refuse(table, "the names of its folders are not the values of its partitions")


def _refuse(table: str, what: str, fix: str | None = None) -> DataRefusal:
    return DataRefusal(
        "D2",
        f"the Delta table of '{table}' cannot be opened: {what}.",
        why="read halfway, it would show people who were deleted, or miss people who are there.",
        fix=fix or "check the folder and its _delta_log.",
    )


__all__ = ["Delta"]
