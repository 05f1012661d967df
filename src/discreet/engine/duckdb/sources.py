"""Where a table's rows come from: Parquet, CSV and DuckDB files, and tables in memory.

A source is opened by the curator and never named by an analyst.  It has one
reader, chosen from its metadata and the declaration: never by a value, and never
because something failed, or one person's bytes would decide how everybody's are
read.  The reader is total.  Types are never guessed from the data, text that is
not UTF-8 is read as NULL, and a line of a CSV file that is not a row of the table
is left out.
"""

from __future__ import annotations

import csv
import glob
import gzip
import hashlib
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
from sqlglot import exp

from discreet.errors import DataRefusal
from discreet.exact.records import dataclass
from discreet.noise.entropy import random_bytes
from discreet.question.domain import Kind
from discreet.question.functions.nodes import ENGINE
from discreet.question.schema import Column

if TYPE_CHECKING:
    import pyarrow as pa

Given = str | os.PathLike[str] | Any
"""A path, or a table in memory: Arrow, pandas, Polars, or anything that offers Arrow's stream."""

Kinds = Mapping[str, Kind]
"""The declared kind of each column, by its name in lower case."""

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
        status = os.stat(path)  # noqa: PTH116 (many times a question: a Path takes longer than this)
        return cls(path, status.st_size, status.st_mtime_ns, status.st_ino)


@dataclass(frozen=True, slots=True)
class Version:
    """Which data a source held: equal versions mean that nothing was noticed to change."""

    stamps: tuple[Stamp, ...] = ()
    token: str = ""  # of a table in memory, which cannot change

    digest: str = field(init=False, repr=False, compare=False)
    """A short name for the version.

    Ledgers hold it, so the text that is hashed must stay what it is, names of classes and
    fields and all: another would forget every answer that was paid for.
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", hashlib.sha256(repr(self).encode()).hexdigest()[:32])


make_version = lru_cache(256)(Version)
"""The version with these stamps, whose name is made once; they are looked at many times."""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of a source that are held in the same types: the view that shows them."""

    view: str
    marked: bool = False  # what was no text has MARK in it
    copy: str | None = None  # the file that is read instead of the source's own
    zoned: frozenset[str] = frozenset()  # times that had a zone, and are held in UTC without it


MARK = "\ufffd"
"""What a reader puts in place of bytes that are no text."""


class DataSource(ABC):
    """How one source is put before the engine."""

    __slots__ = ()

    @abstractmethod
    def paths(self) -> tuple[str, ...]:
        """Files that hold the rows; the locked-down engine may open these and no others."""

    @abstractmethod
    def attach(
        self, connection: duckdb.DuckDBPyConnection, name: str, *, copies: Path
    ) -> tuple[Part, ...]:
        """Make the rows readable as the view ``name``, or as views whose names begin with it.

        What cannot be read in place is copied to the folder ``copies``.
        """

    def lend(self, cursor: duckdb.DuckDBPyConnection, name: str) -> None:  # noqa: B027
        """Show a cursor what lives in this process's memory: DuckDB ties that to one cursor."""

    def renew(self) -> None:  # noqa: B027
        """Copy again what is read from a copy because nothing else tells whether it changed."""

    @property
    def version(self) -> Version:
        """What the source looks like now, without reading its rows."""
        return make_version(tuple(map(Stamp.of, self.paths())))

    def content_hash(self) -> str:
        """A SHA-256 of what the source holds; reads all of it."""
        total = hashlib.sha256()
        for path in self.paths():
            with Path(path).open("rb") as stream:
                total.update(hashlib.file_digest(stream, "sha256").digest())
        return total.hexdigest()


def open_source(
    table: str,
    given: Given,
    *,
    columns: Iterable[Column] | None = None,
    copies: Path | None = None,
    promised: str | None = None,
) -> DataSource:
    """The source for what the curator gave as ``table``; ``columns`` are those declared.

    Without them its types are what the rows look like: for public tables only.  What is on a
    server is copied to the folder ``copies``; ``promised`` is its version as declared.
    """
    if isinstance(given, DataSource):
        return given
    columns = None if columns is None else tuple(columns)
    if isinstance(given, str) and "://" in given:
        from discreet.engine.duckdb.postgres import PostgresTable, is_postgres

        if is_postgres(given):
            return PostgresTable.of(table, given, columns, copies, promised)
    if promised is not None:
        raise unreadable_refusal(table, "a version is declared, and this source tells its own")
    kinds = None if columns is None else {c.name.casefold(): c.kind for c in columns}
    if isinstance(given, str | os.PathLike):
        return _from_path(table, os.fspath(given), kinds)
    from discreet.engine.duckdb.memory import to_arrow  # and Arrow, which files do not need

    rows, zoned = to_arrow(table, given, kinds)
    return InMemory(rows, zoned)


def _from_path(table: str, text: str, kinds: Kinds | None) -> DataSource:
    suffix = Path(text).suffix.lower()
    if suffix == ".gz":
        suffix = Path(text[: -len(suffix)]).suffix.lower()
        suffix = suffix if suffix in _CSV else ".gz"
    declared = kinds is not None
    if (Path(text) / "_delta_log").is_dir():
        from discreet.engine.duckdb.delta import Delta

        return Delta(text, declared, table)
    if Path(text).is_dir():
        return Parquet(str(Path(glob.escape(text)) / "**" / "*.parquet"), declared)
    if suffix in _PARQUET:
        return Parquet(text if not Path(text).exists() else glob.escape(text), declared)
    if suffix in _CSV:
        names = None if kinds is None else frozenset(kinds)
        return Csv(text, delimiter=_CSV[suffix], columns=names)
    path, _, inner = text.rpartition("#")
    if suffix in _DUCKDB:
        return DuckDBFile(text, table)
    if Path(path).suffix.lower() in _DUCKDB:
        return DuckDBFile(path, inner)
    raise unreadable_refusal(table, "the file name does not say what it holds")


def unreadable_refusal(table: str, what: str) -> DataRefusal:
    """Refuse a source that is none."""
    return DataRefusal(
        "D2",
        f"the source of table '{table}' cannot be opened: {what}.",
        why="without it no question about the people in it can be answered.",
        fix="give a .parquet, .csv, .tsv, .csv.gz or .duckdb path, a folder of Parquet files, or "
        "an Arrow, pandas or Polars table.",
    )


def _files(pattern: str) -> tuple[str, ...]:
    """The files of a pattern, links followed; they are looked for many times a question."""
    found = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - absolute patterns too
    if not found:
        raise FileNotFoundError(pattern)
    return tuple(os.path.realpath(path) for path in found)


def _string(value: str) -> str:
    return exp.Literal.string(value).sql(ENGINE)


def quote_name(*names: str) -> str:
    """A dotted name of the engine, every part quoted."""
    return ".".join(exp.to_identifier(name, quoted=True).sql(ENGINE) for name in names)


def _name_given(name: str) -> str:
    return f"{name}, as given"


_WHOLE_BYTES = ((4, 2), (9, 4), (18, 8), (38, 16))
"""The digits of a decimal that DuckDB holds in so many bytes."""


@dataclass(frozen=True, slots=True)
class Parquet(DataSource):
    """One Parquet file, or all that match a pattern; read in place.

    Each file is read by its own description: in a folder, a file whose columns are
    written otherwise or in other types changes nothing for the others.
    """

    pattern: str
    declared: bool = True

    def paths(self) -> tuple[str, ...]:
        """The files, as they are found now."""
        return _files(self.pattern)

    def attach(
        self,
        connection: duckdb.DuckDBPyConnection,
        name: str,
        *,
        copies: Path,  # noqa: ARG002
    ) -> tuple[Part, ...]:
        """Read in place."""
        found = self._alike(connection)
        if not self.declared:
            folders = all(same.folders for same in found)
            rows = _read_parquet(self.paths(), by_name=True, folders=folders)
            connection.execute(f"CREATE VIEW {quote_name(name)} AS FROM {rows}")
            return (Part(name, marked=True),)
        parts = []
        for view, same in _name_views(name, found):
            if same.strict:
                self._register(connection, view, same)
            rows = quote_name(_name_given(view))
            if not same.strict:
                rows = _read_parquet(same.files, folders=bool(same.folders))
            connection.execute(f"CREATE VIEW {quote_name(view)} AS FROM {rows}")
            zoned = self._find_zoned(connection, same.files)
            parts.append(Part(view, marked=not same.strict, zoned=zoned))
        return tuple(parts)

    @staticmethod
    def _find_zoned(
        connection: duckdb.DuckDBPyConnection, files: tuple[str, ...]
    ) -> frozenset[str]:
        """The columns that hold moments, whoever reads them: files of one part are alike."""
        statement = f"SELECT name, logical_type FROM parquet_schema({_string(files[0])})"  # noqa: S608
        described = connection.execute(statement).fetchall()
        return frozenset(
            name.casefold() for name, logical in described if "isAdjustedToUTC=1" in (logical or "")
        )

    def lend(self, cursor: duckdb.DuckDBPyConnection, name: str) -> None:
        """What Arrow reads."""
        if not self.declared:
            return
        for view, same in _name_views(name, self._alike(cursor)):
            if same.strict:
                self._register(cursor, view, same)

    def _alike(self, connection: duckdb.DuckDBPyConnection) -> list[_Alike]:
        """Files with the same description, in folders that are named alike."""
        paths = self.paths()
        listed = ", ".join(map(_string, paths))
        described: dict[str, list[tuple[Any, ...]]] = {path: [] for path in paths}
        fields = "name, type, type_length, num_children, converted_type, scale, precision"
        statement = f"SELECT file_name, {fields}, logical_type FROM parquet_schema([{listed}])"  # noqa: S608
        for path, *column in connection.execute(statement).fetchall():
            described[path].append(tuple(column))
        groups: dict[tuple[tuple[Any, ...], tuple[str, ...]], list[str]] = {}
        for path in paths:
            columns = described[path]
            own = {str(column[0]).casefold() for column in columns}
            groups.setdefault((tuple(columns), _name_folders(path, own)), []).append(path)
        return [
            _Alike(tuple(files), any(map(self._too_strict, columns)), folders)
            for (columns, folders), files in groups.items()
        ]

    @staticmethod
    def _too_strict(column: tuple[Any, ...]) -> bool:
        """Whether DuckDB gives up the whole table for one value that does not fit its type.

        Declared or not: it looks at what a file says of all its columns.
        """
        _, kind, length, _, converted, _, precision, logical = column
        if converted == "TIMESTAMP_MILLIS" or "MILLIS=Milli" in (logical or ""):
            return True  # held in microseconds, which not all of them are
        if converted == "DECIMAL" and kind in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"):
            room = next((size for digits, size in _WHOLE_BYTES if precision <= digits), 0)
            return kind == "BYTE_ARRAY" or int(length) > room
        return False

    @staticmethod
    def _register(cursor: duckdb.DuckDBPyConnection, view: str, same: _Alike) -> None:
        """Arrow's reader: it hands over times as stored, and bytes for text."""
        import pyarrow as pa
        import pyarrow.dataset as ds  # it brings pandas with it: half a second

        from discreet.engine.duckdb.memory import bytes_for

        form = ds.ParquetFileFormat(coerce_int96_timestamp_unit="us")
        found = ds.dataset(list(same.files[:1]), format=form).schema
        named = pa.schema([pa.field(name, pa.string()) for name in same.folders])
        lenient = pa.schema([*(pa.field(f.name, bytes_for(f.type)) for f in found), *named])
        folders = ds.partitioning(named, flavor="hive") if same.folders else None
        rows = ds.dataset(list(same.files), format=form, schema=lenient, partitioning=folders)
        cursor.register(_name_given(view), rows)


@dataclass(frozen=True, slots=True)
class _Alike:
    """Files that are read alike."""

    files: tuple[str, ...]
    strict: bool
    """Whether DuckDB is too strict to read them."""
    folders: tuple[str, ...]
    """The columns that stand in the names of their folders: ``year=2024/month=2``."""


def _name_views(name: str, found: list[_Alike]) -> Iterator[tuple[str, _Alike]]:
    for place, same in enumerate(found):
        yield (name if len(found) == 1 else f"{name}, part {place}"), same


def _name_folders(path: str, own: set[str]) -> tuple[str, ...]:
    """The columns in the names of a file's folders; none, if the file itself has one of them.

    >>> _name_folders("/data/year=2024/month=2/a.parquet", {"who"})
    ('year', 'month')
    """
    names = [
        folder.partition("=")[0]
        for folder in Path(path).parent.parts
        if "=" in folder and not folder.startswith("=")
    ]
    lower = [name.casefold() for name in names]
    return () if own & set(lower) or len(set(lower)) < len(lower) else tuple(names)


def _read_parquet(files: Iterable[str], *, by_name: bool = False, folders: bool = False) -> str:
    """DuckDB's reader, which marks what is no text instead of giving up."""
    listed = ", ".join(map(_string, files))
    return (
        f"read_parquet([{listed}], hive_partitioning={str(folders).lower()}, "
        f"{'hive_types_autocast=false, ' if folders else ''}"
        f"union_by_name={str(by_name).lower()}, utf8_validation='replace')"
    )


@dataclass(frozen=True, slots=True)
class Csv(DataSource):
    """A CSV file with a header; every field is text until its declaration reads it.

    Nothing is sniffed: types, quotes and delimiters guessed from the rows would
    let one person's row change how everybody's are read.  So would the ends of
    lines: DuckDB fails on a file that mixes them, in one line or in all.  It reads
    a copy in which each is a line feed, whichever it was.
    """

    path: str
    delimiter: str = ","
    columns: frozenset[str] | None = None  # those declared, in lower case; without, all is sniffed

    def paths(self) -> tuple[str, ...]:
        """The files, as they are found now."""
        return (str(Path(self.path).resolve()),)

    def attach(
        self, connection: duckdb.DuckDBPyConnection, name: str, *, copies: Path
    ) -> tuple[Part, ...]:
        """Copied first, unless it is public and may be sniffed."""
        path = self.paths()[0]
        if self.columns is None:
            options = f"delim={_string(self.delimiter)}, header=true, sample_size=-1"
            connection.execute(
                f"CREATE VIEW {quote_name(name)} AS FROM read_csv({_string(path)}, {options})"
            )
            return (Part(name),)
        copy = self.copy_file(copies)
        connection.execute(f"CREATE VIEW {quote_name(name)} AS FROM {self.reading(copy)}")
        return (Part(name, copy=str(copy)),)

    def reading(self, copy: Path, *, also: str = "") -> str:
        """How DuckDB reads a copy of the file; ``also``: further options."""
        header, delimiter = read_header(copy, self.delimiter, self.columns or ())
        fields = ", ".join(f"{_string(column)}: 'VARCHAR'" for column in header)
        # One thread: where a quoted field spans lines, several would have to guess.
        return (
            f"read_csv({_string(str(copy))}, "
            f"columns={{{fields}}}, auto_detect=false, header=true, new_line='\\n', "
            f"delim={_string(delimiter)}, quote='\"', escape='\"', "
            f"strict_mode=true, ignore_errors=true, parallel=false{also})"
        )

    def copy_file(self, folder: Path) -> Path:
        """The copy of the file as it is now; those of earlier versions are deleted."""
        stem = f"csv-{hashlib.sha256(self.paths()[0].encode()).hexdigest()[:16]}"
        copy = folder / f"{stem}-{self.version.digest}.csv"
        if not copy.exists():
            partial = folder / f"{stem}-{random_bytes(8).hex()}.partial"
            _copy_with_line_feeds(Path(self.paths()[0]), partial)
            partial.replace(copy)
        for other in folder.glob(f"{stem}-*.csv"):
            if other.name != copy.name:
                other.unlink(missing_ok=True)
        return copy


_DELIMITERS = ",;\t|"


def read_header(path: Path, delimiter: str, declared: Iterable[str] = ()) -> tuple[list[str], str]:
    """The names in the first line of a CSV file, each once, and what separates them.

    That is ``delimiter``, unless the line has all of ``declared`` only when it is read with
    another one (or, where nothing is declared, more names): the header decides, and no row.
    A column without a name, or with one that was there before, is named for its place.
    """
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    with opener(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as stream:
        lines = stream.read(_HEADER)

    def names(separator: str) -> list[str]:
        return next(csv.reader(io.StringIO(lines, newline=""), delimiter=separator), [])

    wanted = frozenset(declared)
    others = [other for other in _DELIMITERS if other != delimiter]
    if wanted:
        fits = [d for d in (delimiter, *others) if wanted <= {n.casefold() for n in names(d)}]
        chosen = fits[0] if fits else delimiter
    else:
        chosen = max((delimiter, *others), key=lambda d: len(names(d)))
    return _each_once(names(chosen)), chosen


_HEADER = 1 << 20


def _each_once(names: list[str]) -> list[str]:
    seen: set[str] = set()
    found = []
    for place, given in enumerate(names, start=1):
        name = given if given.strip() and given.casefold() not in seen else f"column {place}"
        seen.add(name.casefold())
        found.append(name)
    return found


_COPIED = 1 << 22


def _copy_with_line_feeds(path: Path, copy: Path) -> None:
    """Copy a text; carriage returns, alone or before a line feed, become line feeds."""
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    with opener(path, "rb") as source, copy.open("xb") as target:
        copy.chmod(0o600)
        while block := source.read(_COPIED):
            while block.endswith(b"\r") and (more := source.read(1)):
                block += more  # whether a line feed follows must be seen
            target.write(block.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))


@dataclass(frozen=True, slots=True)
class DuckDBFile(DataSource):
    """A table of a DuckDB database file, attached read-only; ``file.duckdb#table``."""

    path: str
    table: str

    @property
    def version(self) -> Version:
        """What it looks like now."""
        stamps = []
        for path in self.paths():
            with suppress(FileNotFoundError, NotADirectoryError):
                stamps.append(Stamp.of(path))
        return make_version(tuple(stamps))

    def paths(self) -> tuple[str, ...]:
        """The files, as they are found now."""
        path = os.path.realpath(self.path)
        return (path, f"{path}.wal")

    def attach(
        self,
        connection: duckdb.DuckDBPyConnection,
        name: str,
        *,
        copies: Path,  # noqa: ARG002
    ) -> tuple[Part, ...]:
        """Read in place."""
        path = self.paths()[0]
        alias = f"file {hashlib.sha256(path.encode()).hexdigest()[:12]}"
        connection.execute(
            f"ATTACH IF NOT EXISTS {_string(path)} AS {quote_name(alias)} (READ_ONLY, TYPE duckdb)"
        )
        connection.execute(
            f"CREATE VIEW {quote_name(name)} AS FROM {quote_name(alias, 'main', self.table)}"
        )
        return (Part(name),)


@dataclass(frozen=True, slots=True)
class InMemory(DataSource):
    """An Arrow table; what was given is copied, so it cannot change."""

    rows: pa.Table = field(repr=False)
    zoned: frozenset[str] = frozenset()
    version: Version = field(default_factory=lambda: Version(token=random_bytes(16).hex()))

    def paths(self) -> tuple[str, ...]:
        """The files, as they are found now."""
        return ()

    def attach(
        self,
        connection: duckdb.DuckDBPyConnection,
        name: str,
        *,
        copies: Path,  # noqa: ARG002
    ) -> tuple[Part, ...]:
        """Read in place."""
        self.lend(connection, name)
        connection.execute(
            f"CREATE VIEW {quote_name(name)} AS FROM {quote_name(_name_given(name))}"
        )
        return (Part(name, zoned=self.zoned),)

    def lend(self, cursor: duckdb.DuckDBPyConnection, name: str) -> None:
        """The table itself; nothing is copied."""
        cursor.register(_name_given(name), self.rows)

    def content_hash(self) -> str:
        """A SHA-256 of the rows."""
        import pyarrow as pa

        total = hashlib.sha256()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.rows.schema) as stream:
            stream.write_table(self.rows.combine_chunks())
        total.update(sink.getvalue())
        return total.hexdigest()


__all__ = [
    "MARK",
    "Csv",
    "DataSource",
    "DuckDBFile",
    "Given",
    "InMemory",
    "Kinds",
    "Parquet",
    "Part",
    "Stamp",
    "Version",
    "open_source",
    "quote_name",
    "read_header",
    "unreadable_refusal",
]
