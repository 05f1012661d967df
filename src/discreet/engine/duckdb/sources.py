"""Where a table's rows come from: Parquet, CSV and DuckDB files, and tables in memory.

A source is opened by the curator and never named by an analyst.  Reading is
total: one person's bytes, whatever they are, must not make it fail.  Types are
never guessed from the data, text that is not UTF-8 is read as NULL, and a line
of a CSV file that is not a row of the table is left out.
"""

from __future__ import annotations

import csv
import glob
import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from discreet.errors import DataRefusal
from discreet.noise.entropy import random_bytes

Given = str | os.PathLike[str] | Any
"""A path, or a table in memory: Arrow, pandas, Polars, or anything that offers Arrow's stream."""

_DUCKDB = {".duckdb", ".db", ".ddb"}
_CSV = {".csv": ",", ".tsv": "\t"}
_PARQUET = {".parquet", ".pq"}


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a file looked like from outside."""

    path: str
    size: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, path: str) -> Stamp:
        """The stamp of the file as it is now."""
        status = Path(path).stat()
        return cls(path, status.st_size, status.st_mtime_ns, status.st_ino)


@dataclass(frozen=True, slots=True)
class Version:
    """Which data a source held: equal versions mean that nothing was noticed to change."""

    stamps: tuple[Stamp, ...] = ()
    token: str = ""  # of a table in memory, which cannot change

    def digest(self) -> str:
        """A short name for the version.

        Ledgers hold it, so the text that is hashed must stay what it is, names of classes and
        fields and all: another would forget every answer that was paid for.
        """
        return hashlib.sha256(repr(self).encode()).hexdigest()[:32]


class DataSource(ABC):
    """How one source is put before the engine."""

    __slots__ = ()

    @abstractmethod
    def paths(self) -> tuple[str, ...]:
        """Files that hold the rows; the locked-down engine may open these and no others."""

    @abstractmethod
    def attach(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        """Make the rows readable as the view ``name``."""

    def lend(self, cursor: duckdb.DuckDBPyConnection, name: str) -> None:  # noqa: B027
        """Show a cursor what lives in this process's memory: DuckDB ties that to one cursor."""

    def version(self) -> Version:
        """What the source looks like now, without reading its rows."""
        return Version(tuple(map(Stamp.of, self.paths())))

    def careful(self) -> DataSource | None:
        """A slower way to read the same rows that survives damaged values, if there is one."""
        return None

    def content_hash(self) -> str:
        """A SHA-256 of what the source holds; reads all of it."""
        total = hashlib.sha256()
        for path in self.paths():
            with Path(path).open("rb") as stream:
                total.update(hashlib.file_digest(stream, "sha256").digest())
        return total.hexdigest()


def open_source(
    table: str, given: Given, *, columns: Iterable[str] | None = None, sniff: bool = False
) -> DataSource:
    """The source for what the curator gave as ``table``; ``columns`` are those declared.

    ``sniff`` lets the types of a CSV file be guessed from its rows; for public
    tables only.
    """
    if isinstance(given, str | os.PathLike):
        return _from_path(table, os.fspath(given), sniff=sniff)
    wanted = None if columns is None else frozenset(name.lower() for name in columns)
    return InMemory(_arrow(table, given, wanted))


def _from_path(table: str, text: str, *, sniff: bool) -> DataSource:
    suffix = Path(text).suffix.lower()
    if Path(text).is_dir():
        return Parquet(str(Path(glob.escape(text)) / "**" / "*.parquet"))
    if suffix in _PARQUET:
        return Parquet(text if not Path(text).exists() else glob.escape(text))
    if suffix in _CSV:
        return Csv(text, delimiter=_CSV[suffix], sniff=sniff)
    path, _, inner = text.rpartition("#")
    if suffix in _DUCKDB:
        return DuckDBFile(text, table)
    if Path(path).suffix.lower() in _DUCKDB:
        return DuckDBFile(path, inner)
    raise _unreadable(table, "the file name does not say what it holds")


def _unreadable(table: str, what: str) -> DataRefusal:
    return DataRefusal(
        "D2",
        f"the source of table '{table}' cannot be opened: {what}.",
        why="without it no question about the people in it can be answered.",
        fix="give a .parquet, .csv, .tsv or .duckdb path, a folder of Parquet files, or an "
        "Arrow, pandas or Polars table.",
    )


def _files(pattern: str) -> tuple[str, ...]:
    found = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - absolute patterns too
    if not found:
        raise FileNotFoundError(pattern)
    return tuple(str(Path(path).resolve()) for path in found)


def _string(value: str) -> str:
    return exp.Literal.string(value).sql("duckdb")


def quoted(*names: str) -> str:
    """A dotted name of the engine, every part quoted."""
    return ".".join(exp.to_identifier(name, quoted=True).sql("duckdb") for name in names)


def _given(name: str) -> str:
    return f"{name}, as given"


@dataclass(frozen=True, slots=True)
class Parquet(DataSource):
    """One Parquet file, or all that match a pattern; read in place."""

    pattern: str
    damaged: bool = False

    def paths(self) -> tuple[str, ...]:
        """The files, as they are found now."""
        return _files(self.pattern)

    def attach(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        """Read in place."""
        if self.damaged:
            self.lend(connection, name)
            connection.execute(f"CREATE VIEW {quoted(name)} AS FROM {quoted(_given(name))}")
            return
        listed = ", ".join(map(_string, self.paths()))
        connection.execute(
            f"CREATE VIEW {quoted(name)} AS "
            f"FROM read_parquet([{listed}], hive_partitioning=false, union_by_name=true)"
        )

    def lend(self, cursor: duckdb.DuckDBPyConnection, name: str) -> None:
        """Arrow's reader, if the values are damaged.

        It hands over bytes where DuckDB would insist on UTF-8, and timestamps as
        stored where DuckDB would insist on microseconds that fit; what is no
        value is NULL when it is read.
        """
        if self.damaged:
            import pyarrow.dataset as ds  # it brings pandas with it: half a second

            files = ds.dataset(list(self.paths()), format="parquet")
            columns = [pa.field(f.name, _bytes_for(f.type)) for f in files.schema]
            lenient = ds.dataset(list(self.paths()), format="parquet", schema=pa.schema(columns))
            cursor.register(_given(name), lenient)

    def careful(self) -> DataSource | None:
        """Arrow's reader, which takes any bytes."""
        return None if self.damaged else replace(self, damaged=True)


@dataclass(frozen=True, slots=True)
class Csv(DataSource):
    """A CSV file with a header; every field is text until its declaration reads it.

    Nothing is sniffed: types, quotes and delimiters guessed from the rows would
    let one person's row change how everybody's are read.
    """

    path: str
    delimiter: str = ","
    sniff: bool = False

    def paths(self) -> tuple[str, ...]:
        """The files, as they are found now."""
        return (str(Path(self.path).resolve()),)

    def attach(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        """Read in place."""
        path = self.paths()[0]
        if self.sniff:
            options = f"delim={_string(self.delimiter)}, header=true, sample_size=-1"
            connection.execute(
                f"CREATE VIEW {quoted(name)} AS FROM read_csv({_string(path)}, {options})"
            )
            return
        with Path(path).open(encoding="utf-8-sig", errors="replace", newline="") as stream:
            header = next(csv.reader(stream, delimiter=self.delimiter), [])
        fields = ", ".join(f"{_string(column)}: 'VARCHAR'" for column in header)
        # One thread: where a quoted field spans lines, several would have to guess.
        connection.execute(
            f"CREATE VIEW {quoted(name)} AS FROM read_csv({_string(path)}, "
            f"columns={{{fields}}}, auto_detect=false, header=true, "
            f"delim={_string(self.delimiter)}, quote='\"', escape='\"', "
            "strict_mode=true, ignore_errors=true, parallel=false)"
        )


@dataclass(frozen=True, slots=True)
class DuckDBFile(DataSource):
    """A table of a DuckDB database file, attached read-only; ``file.duckdb#table``."""

    path: str
    table: str

    def version(self) -> Version:
        """What it looks like now."""
        path = str(Path(self.path).resolve())
        log = f"{path}.wal"
        return Version(tuple(Stamp.of(p) for p in (path, log) if Path(p).exists()))

    def paths(self) -> tuple[str, ...]:
        """The files, as they are found now."""
        path = str(Path(self.path).resolve())
        return (path, f"{path}.wal")

    def attach(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        """Read in place."""
        path = self.paths()[0]
        alias = f"file {hashlib.sha256(path.encode()).hexdigest()[:12]}"
        connection.execute(
            f"ATTACH IF NOT EXISTS {_string(path)} AS {quoted(alias)} (READ_ONLY, TYPE duckdb)"
        )
        connection.execute(
            f"CREATE VIEW {quoted(name)} AS FROM {quoted(alias, 'main', self.table)}"
        )


@dataclass(frozen=True, slots=True)
class InMemory(DataSource):
    """An Arrow table; what was given is copied, so it cannot change."""

    rows: pa.Table = field(repr=False)
    token: str = field(default_factory=lambda: random_bytes(16).hex())

    def version(self) -> Version:
        """What it looks like now."""
        return Version(token=self.token)

    def paths(self) -> tuple[str, ...]:
        """The files, as they are found now."""
        return ()

    def attach(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        """Read in place."""
        self.lend(connection, name)
        connection.execute(f"CREATE VIEW {quoted(name)} AS FROM {quoted(_given(name))}")

    def lend(self, cursor: duckdb.DuckDBPyConnection, name: str) -> None:
        """The table itself; nothing is copied."""
        cursor.register(_given(name), self.rows)

    def content_hash(self) -> str:
        """A SHA-256 of the rows."""
        total = hashlib.sha256()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.rows.schema) as stream:
            stream.write_table(self.rows.combine_chunks())
        total.update(sink.getvalue())
        return total.hexdigest()


# --- tables in memory ------------------------------------------------------------------------


def _arrow(table: str, given: Any, wanted: frozenset[str] | None) -> pa.Table:
    """What was given as an Arrow table of the declared columns, every text checked."""
    if type(given).__module__.split(".")[0] == "pandas":
        arrays = {str(name): _from_pandas(series) for name, series in given.items()}
    elif type(given).__module__.split(".")[0] == "polars" and hasattr(given, "collect"):
        return _arrow(table, given.collect(), wanted)
    elif isinstance(given, pa.Table) or hasattr(given, "__arrow_c_stream__"):
        rows = given if isinstance(given, pa.Table) else pa.table(given)
        arrays = dict(zip(rows.column_names, rows.columns, strict=True))
    else:
        raise _unreadable(table, f"a {type(given).__name__} is neither a path nor a table")
    kept = {
        name: _checked(array)
        for name, array in arrays.items()
        if wanted is None or name.lower() in wanted
    }
    return pa.table(kept)


def _from_pandas(series: Any) -> pa.ChunkedArray:
    """A pandas column, copied; one that mixes types is read as text, value by value."""
    try:
        array = pa.array(series.copy(deep=True), from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        missing = series.isna()
        array = pa.array(
            [None if m else _as_bytes(v) for v, m in zip(series, missing, strict=True)],
            type=pa.large_binary(),
        )
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _as_bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode(errors="surrogatepass")


def _bytes_for(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _bytes_for(kind.value_type)
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return pa.large_binary() if text or pa.types.is_string_view(kind) else kind


def _checked(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column; as bytes if its text is not UTF-8, which would stop the engine for everybody."""
    if pa.types.is_dictionary(array.type):
        array = pc.cast(array, array.type.value_type)
    if _bytes_for(array.type) == array.type:
        return array
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return array.cast(pa.large_binary())
    return array


__all__ = [
    "Csv",
    "DataSource",
    "DuckDBFile",
    "Given",
    "InMemory",
    "Parquet",
    "Stamp",
    "Version",
    "open_source",
    "quoted",
]
