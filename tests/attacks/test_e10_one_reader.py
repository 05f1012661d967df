"""E10: a reader chosen by a value or a failure; one person's bytes change how others are read.

Types, poison and kinds of source: with and without the person who brings the
poison, the rows of everybody else must be the same.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from poison import RAW

import discreet
from discreet.engine.duckdb import DuckDBEngine
from discreet.engine.duckdb.database import Database
from discreet.engine.duckdb.sources import quote_name
from discreet.errors import DataRefusal
from discreet.ledger import Ledger
from discreet.price.plan import Contribution, Moments, Plan
from discreet.question.domain import Kind
from discreet.question.relation import Source
from discreet.question.schema import Column, Schema, Table

PERSON = 99
"""The one whose bytes are poison; the others are 1, 2, ..."""


def declared(kind: Kind) -> Table:
    return Table(
        "t", (Column("who", Kind.INTEGER), Column("x", kind)), unit=("who",), max_rows_per_unit=3
    )


thoroughly = pytest.mark.parametrize(
    "thorough", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["quick", "thorough"]
)
"""Tables are prepared each time, or one of each kind of source and kind of value: it takes longer
than all the rest.
"""


def rows_of_others(source: Any, table: Table, *, prepared: bool) -> list[str]:
    """Everybody else's rows as statements find them; once more if it is prepared, and alike."""
    plan = Plan(Source(table, (("x", "x"),)), (), Contribution(rows=1), (Moments(),))
    found = []
    with DuckDBEngine({"t": source}, Schema({"t": table}), threads=1) as engine:
        for again in range(1 + prepared):
            if again:
                engine.prepare()
            engine.run(engine.compile(plan))
            rows = (
                engine._current().connection.execute(f"FROM {quote_name('rows of t')}").fetchall()
            )
            found.append(sorted(repr(row[1:]) for row in rows if row[1] != PERSON))
    assert found[0] == found[-1]
    return found[0]


def others_are_untouched(
    kind: Kind, without: Any, *with_poison: Any, rows: int, prepared: bool, thorough: bool = False
) -> None:
    table = declared(kind)
    before = rows_of_others(without, table, prepared=thorough)
    assert len(before) == rows
    for place, poisoned in enumerate(with_poison):
        now = thorough or (prepared and place == 0)
        assert rows_of_others(poisoned, table, prepared=now) == before


# --- pandas --------------------------------------------------------------------------------


class Silent:
    """An object that will not be looked at."""

    def __str__(self) -> str:
        raise RuntimeError("canary")


UTC_2 = timezone(timedelta(hours=2))
CALM: dict[Kind, list[list[Any]]] = {
    Kind.INTEGER: [[1, 2, 3], [1.0, 2.5, 3.5], [True, False, True], [1, 2.5, "7"], ["1", "2.5"]],
    Kind.DECIMAL: [[1, 2, 3], [0.1, 2.5, 1e300], ["0.1", "2.5"], [Decimal("2.5"), 0.1]],
    Kind.TEXT: [["a", "b"], [1, 2], [True, False], ["ä", 7]],
    Kind.BOOLEAN: [[True, False], [1, 0], ["true", "no"]],
    Kind.DATE: [[date(2024, 2, 29), date(2020, 1, 1)], ["2024-02-29", "2020-01-01"]],
    Kind.TIMESTAMP: [
        [datetime(2024, 2, 29, 12, 30, 0, 5), datetime(2020, 1, 1)],
        [datetime(2024, 2, 29, 12, tzinfo=UTC_2), datetime(2020, 1, 1, tzinfo=UTC_2)],
        ["2024-02-29 12:30:00"],
    ],
}
OBJECTS: list[Any] = [
    "n/a", "", b"\xff\xfe", "\ud800", 2.5, True, None, float("nan"), float("inf"), 10**400,
    10**5000, Decimal("NaN"), Decimal("1e5000"), date(1, 1, 1), datetime(9999, 12, 31, 23),
    datetime(1, 1, 1, tzinfo=UTC_2), Silent(), [1], {}, np.datetime64("NaT"), pd.NA, 1j,
]  # fmt: skip


@thoroughly
@pytest.mark.parametrize("kind", CALM)
def test_e10_pandas(kind: Kind, thorough: bool) -> None:
    """A column of objects, and one that is of objects only because of the poison."""
    for place, calm in enumerate(CALM[kind]):
        who = [*range(1, len(calm) + 1)]
        objects = pd.DataFrame({"who": who, "x": pd.Series(calm, dtype=object)})
        together = pd.DataFrame(
            {
                "who": [*who, *[PERSON] * len(OBJECTS)],
                "x": pd.Series([*calm, *OBJECTS], dtype=object),
            }
        )
        others_are_untouched(
            kind,
            pd.DataFrame({"who": who, "x": calm}),
            together,
            objects,
            pd.DataFrame({"who": [*who, PERSON], "x": [*calm, "n/a"]}),  # inferred
            rows=len(calm),
            prepared=place == 0,
            thorough=thorough,
        )


def test_e10_a_sum_does_not_move_for_one_text() -> None:
    """An object column with one 'n/a' was read as text for everybody: 2.5 became 3."""
    calm = [2.5] * 1000
    frame = pd.DataFrame({"who": range(1, 1001), "x": pd.Series(calm, dtype=object)})
    more = pd.DataFrame({"who": [*range(1, 1000), 1000, PERSON + 10**6],
                         "x": pd.Series([*calm, "n/a"], dtype=object)})  # fmt: skip
    table = declared(Kind.INTEGER)
    found = [set(rows_of_others(one, table, prepared=True)) for one in (frame, more)]
    assert found[0] <= found[1]


# --- Arrow, Polars and Parquet -------------------------------------------------------------


def texts(held: pa.DataType, values: list[bytes]) -> pa.Array:
    """Texts of any bytes, unchecked."""
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int32)
    plain = pa.StringArray.from_buffers(
        len(values), pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"".join(values))
    )
    return plain.dictionary_encode() if pa.types.is_dictionary(held) else plain


POWERS = [0, 1, 2**62, -(2**63), 2**63 - 1]
TYPED: dict[str, tuple[Kind, pa.DataType, list[Any], list[Any]]] = {
    "text": (Kind.TEXT, pa.string(), [b"ok", "fine \ufeff".encode()], [b"\xff", b"\xed\xa0\x80"]),
    "codes": (Kind.TEXT, pa.dictionary(pa.int32(), pa.string()), [b"a", b"b"], [b"\xff", b""]),
    "numbers in text": (Kind.INTEGER, pa.string(), [b"1", b"2.5"], [b"n/a", b"\xff", b"9" * 99]),
    "bytes": (Kind.TEXT, pa.binary(), [b"ok", b"fine"], [b"\xff", b""]),
    "s": (Kind.TIMESTAMP, pa.timestamp("s"), [0, 10**9], POWERS),
    "ms": (Kind.TIMESTAMP, pa.timestamp("ms"), [0, 10**12], POWERS),
    "us": (Kind.TIMESTAMP, pa.timestamp("us"), [0, 10**15], POWERS),
    "ns": (Kind.TIMESTAMP, pa.timestamp("ns"), [0, 10**18], POWERS),
    "ms, UTC": (Kind.TIMESTAMP, pa.timestamp("ms", "UTC"), [0, 10**12], POWERS),
    "us, UTC": (Kind.TIMESTAMP, pa.timestamp("us", "UTC"), [0, 10**15], POWERS),
    "day of ms": (Kind.DATE, pa.timestamp("ms"), [0, 10**12], POWERS),
    "day": (Kind.DATE, pa.date32(), [0, 19_000], [2**31 - 1, -(2**31), -719_163]),
    "int8": (Kind.INTEGER, pa.int8(), [1, 2], [-128, 127]),
    "uint64": (Kind.INTEGER, pa.uint64(), [1, 2], [2**64 - 1, 2**63]),
    "int64": (Kind.INTEGER, pa.int64(), [1, 2], [2**63 - 1, -(2**63)]),
    "float": (Kind.DECIMAL, pa.float32(), [0.5, 2.5], [float("nan"), float("inf"), -0.0]),
    "double": (Kind.INTEGER, pa.float64(), [1.5, 2.5], [float("nan"), float("-inf"), 1e300]),
    "decimal": (Kind.DECIMAL, pa.decimal128(9, 2), [Decimal("1.25")], [Decimal("9999999.99")]),
    "wide decimal": (Kind.INTEGER, pa.decimal128(38, 2), [Decimal("2.50")], [Decimal(10**35)]),
    "boolean": (Kind.BOOLEAN, pa.bool_(), [True, False], [None]),
}  # fmt: skip
OF_EACH_KIND = {"bytes", "ms", "day", "int64", "float", "boolean"}
assert {TYPED[name][0] for name in OF_EACH_KIND} == set(Kind)


def arrow(name: str, *, poison: bool, damaged: bool = False) -> pa.Table:
    """People with calm values of a type; then perhaps one with all of its poison."""
    _, held, calm, odd = TYPED[name]
    values = [*calm, *(odd if poison else ())]
    text = isinstance(calm[0], bytes) and not pa.types.is_binary(held)
    who = [*range(1, len(calm) + 1), *[PERSON] * (len(values) - len(calm))]
    other = [b"\xff" if damaged and i >= len(calm) else b"calm" for i in range(len(values))]
    return pa.table(
        {
            "who": who,
            "x": texts(held, values) if text else pa.array(values, held),
            "nobody asks": texts(pa.string(), other),
        }
    )


@thoroughly
@pytest.mark.parametrize("name", TYPED)
def test_e10_arrow(name: str, thorough: bool) -> None:
    kind, _, calm, _ = TYPED[name]
    others_are_untouched(
        kind,
        arrow(name, poison=False),
        arrow(name, poison=True, damaged=True),
        rows=len(calm),
        prepared=name in OF_EACH_KIND,
        thorough=thorough,
    )


NO_BYTES = {"text", "s", "codes", "numbers in text"}
"""A text of Polars is always text."""


@thoroughly
@pytest.mark.parametrize("name", [name for name in TYPED if name not in NO_BYTES])
def test_e10_polars(name: str, thorough: bool) -> None:
    kind, _, calm, _ = TYPED[name]
    frames = [pl.from_arrow(arrow(name, poison=p).select(["who", "x"])) for p in (False, True)]
    others_are_untouched(
        kind, *frames, rows=len(calm), prepared=name in OF_EACH_KIND, thorough=thorough
    )


def write(path: Path, table: pa.Table, **options: Any) -> Path:
    pq.write_table(table, path, **options)
    return path


@thoroughly
@pytest.mark.parametrize("name", [name for name in TYPED if name != "s"])
def test_e10_parquet(tmp_path: Path, name: str, thorough: bool) -> None:
    """A text that is not UTF-8, declared or not, moved the table to another reader."""
    kind, _, calm, _ = TYPED[name]
    options: list[dict[str, Any]] = [{}, {"use_dictionary": False, "write_statistics": False}]
    for place, option in enumerate(options):
        without = write(tmp_path / f"without{place}.parquet", arrow(name, poison=False), **option)
        poisoned = arrow(name, poison=True, damaged=True)
        with_poison = write(tmp_path / f"with{place}.parquet", poisoned, **option)
        others_are_untouched(
            kind,
            without,
            with_poison,
            rows=len(calm),
            prepared=place == 0 and name in OF_EACH_KIND,
            thorough=thorough,
        )


def test_e10_parquet_int96(tmp_path: Path) -> None:
    """Days and nanoseconds that are no moment, beside the sentinels of warehouses."""
    day_of_epoch = 2_440_588
    calm = pa.table({"who": [1, 2], "x": pa.array([10**18, -(10**18)], pa.timestamp("ns"))})
    times = pa.array([10**18, -(10**18), 0], pa.timestamp("ns"))
    marked = pa.table({"who": [1, 2, PERSON], "x": times})
    options = {"use_deprecated_int96_timestamps": True, "use_dictionary": False,
               "compression": "none", "write_statistics": False}  # fmt: skip
    without = write(tmp_path / "without.parquet", calm, **options)
    data = write(tmp_path / "with.parquet", marked, **options).read_bytes()
    zero = struct.pack("<qi", 0, day_of_epoch)
    assert data.count(zero) == 1
    poisoned = []
    for days, nanoseconds in ((2**31 - 1, 2**63 - 1), (-(2**31), -(2**63)), (5_373_484, 0), (0, 0)):
        poison = struct.pack("<qi", nanoseconds, days)
        poisoned.append(tmp_path / f"{days}.parquet")
        poisoned[-1].write_bytes(data.replace(zero, poison))
    others_are_untouched(Kind.TIMESTAMP, without, *poisoned, rows=2, prepared=True)


# --- folders -------------------------------------------------------------------------------

OTHERS = {
    "0.parquet": {"who": [1, 2], "x": [10, 20]},
    "1.parquet": {"WHO": [3], "X": [2.5]},
    "2.parquet": {"x": ["7", "8.5"], "who": ["4", "5"], "more": [0, 0]},
    "3.parquet": {"who": [6]},
}
THEIRS: list[dict[str, pa.Array]] = [
    {"who": pa.array([PERSON]), "x": texts(pa.string(), [b"\xff"])},
    {"Who": pa.array([PERSON]), "x": pa.array(["n/a"])},
    {"who": pa.array([PERSON]), "x": pa.array([2**63], pa.uint64())},
    {"who": pa.array([float(PERSON)]), "x": pa.array([1e300])},
    {"who": pa.array([PERSON])},
    {"who": pa.array([PERSON]), "x": pa.nulls(1)},
    {"who": pa.array([PERSON]), "x": pa.array([1]), "ms": pa.array([2**62], pa.timestamp("ms"))},
]  # fmt: skip


def folder_of(path: Path, tables: dict[str, pa.Table]) -> Path:
    path.mkdir()
    for name, table in tables.items():
        pq.write_table(table, path / name)
    return path


@thoroughly
def test_e10_folders_whose_files_differ(tmp_path: Path, thorough: bool) -> None:
    """In case, type, order and columns: each file is read by its own description."""
    calm = {name: pa.table(columns) for name, columns in OTHERS.items()}
    folders = [
        folder_of(tmp_path / f"{number} {name}", {**calm, name: pa.table(columns)})
        for number, columns in enumerate(THEIRS)
        for name in ("00.parquet", "9.parquet")
    ]
    others_are_untouched(
        Kind.INTEGER,
        folder_of(tmp_path / "calm", calm),
        *folders,
        rows=6,
        prepared=True,
        thorough=thorough,
    )


def test_e10_an_analyst_cannot_change_the_reader(tmp_path: Path, monkeypatch: Any) -> None:
    """A question that fails leaves the next ones as they were, under the same version."""
    tables = {name: pa.table(OTHERS[name]) for name in ("0.parquet", "1.parquet")}
    folder, table = folder_of(tmp_path / "t", tables), declared(Kind.INTEGER)
    plan = Plan(Source(table, (("x", "x"),)), (), Contribution(rows=1), (Moments(),))
    with DuckDBEngine({"t": folder}, Schema({"t": table})) as engine:
        compiled, version = engine.compile(plan), engine.data_version()

        def count() -> int:
            return int(engine.run(compiled).open_for_release().measured[0][0, 0])

        assert count() == 3
        original, tries = Database.run, []

        def fails_once(self: Database, sql: str) -> Any:
            tries.append(sql)
            if len(tries) == 1:
                raise duckdb.OutOfMemoryException("canary")
            return original(self, sql)

        with monkeypatch.context() as patch:
            patch.setattr(Database, "run", fails_once)
            with pytest.raises(DataRefusal):
                engine.run(compiled)
        assert len(tries) == 1
        assert (count(), engine.data_version()) == (3, version)


# --- CSV -----------------------------------------------------------------------------------


def line(person: int, end: bytes) -> bytes:
    note = b'"a, ""b""\n%d"' % person if person % 7 == 0 else b"" if person % 5 == 0 else b"v"
    return b"%d,%s%s" % (person, note, end)


def file(path: Path, end: bytes, lines: list[bytes]) -> Path:
    path.write_bytes(b"who,x" + end + b"".join(lines))
    return path


BYTES = [b"\r", b"\xff", b",", b"\0", b"a", b" ", b"\t", b"#", b"\\", b"'", b"\n", b'x"y',
         b'"q"', b"\xe2\x80\xa8", b"x" * 70_000]  # fmt: skip


def check_csv(path: Path, end: bytes, poisons: list[bytes], chance: random.Random) -> None:
    """Nobody's line is read otherwise because of what one person brings, anywhere in the file."""
    table = declared(Kind.TEXT)
    calm = [line(person, end) for person in range(1, 12)]
    before = rows_of_others(file(path, end, calm), table, prepared=True)
    assert len(before) == 11
    for number, poison in enumerate(poisons):
        place = chance.randint(0, len(calm))
        lines = [*calm[:place], b"%d," % PERSON + poison, *calm[place:]]
        found = rows_of_others(file(path, end, lines), table, prepared=number % 16 == 0)
        assert set(before) <= set(found), poison  # a line break in it may begin other lines


ENDS = [b"\n", b"\r\n", b"\r"]
FIXED = [b"x\ry\n", b"x\r\n", b"x\n", b"x\r", b"\xff\n", b"one,too many\n", b"\n\n"]


def draw_poison(chance: random.Random, many: int) -> list[bytes]:
    return [
        b"".join(chance.choices(BYTES, k=chance.randint(0, 6)))
        + chance.choice([b"\n", b"\r\n", b"\r", b"\n\n"])
        for _ in range(many)
    ]


@pytest.mark.parametrize("end", ENDS)
def test_e10_csv(tmp_path: Path, end: bytes) -> None:
    """One bare carriage return, or one line that ends otherwise, stopped everybody."""
    chance = random.Random(ENDS.index(end))
    check_csv(tmp_path / "t.csv", end, [*FIXED, *draw_poison(chance, 5)], chance)


@pytest.mark.soak
@pytest.mark.parametrize("end", ENDS)
def test_e10_csv_at_length(tmp_path: Path, end: bytes) -> None:
    chance = random.Random()
    check_csv(tmp_path / "t.csv", end, draw_poison(chance, 500), chance)


def test_e10_csv_is_copied_once_and_not_kept_beyond_its_version(tmp_path: Path) -> None:
    table, store = declared(Kind.TEXT), tmp_path / "store"
    path = file(tmp_path / "t.csv", b"\r\n", [line(1, b"\r\n")])
    names = []
    for person in (1, 1, 2):
        if person == 2:
            file(path, b"\n", [line(1, b"\n"), line(2, b"\r")])
        with DuckDBEngine({"t": path}, Schema({"t": table}), store=store) as engine:
            rows = (
                engine._current().connection.execute(f"FROM {quote_name('rows of t')}").fetchall()
            )
        assert len(rows) == person
        names.append([p.name for p in store.glob("csv-*")])
        assert all(p.stat().st_mode & 0o077 == 0 for p in store.glob("csv-*"))
    assert [len(found) for found in names] == [1, 1, 1]
    assert names[0] == names[1] != names[2]


def test_e10_ends_of_lines_across_blocks(tmp_path: Path, monkeypatch: Any) -> None:
    from discreet.engine.duckdb import sources

    monkeypatch.setattr(sources, "_COPIED", 3)
    (tmp_path / "a").write_bytes(b"ab\r\ncd\r\r\nef\re\n\r")
    sources._copy_with_line_feeds(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == b"ab\ncd\n\nef\ne\n\n"


# --- DuckDB --------------------------------------------------------------------------------

HELD = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.DECIMAL: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}


@pytest.mark.parametrize("kind", HELD)
def test_e10_duckdb(tmp_path: Path, kind: Kind) -> None:
    calm = [raw for raw in RAW[kind] if raw != "NULL"][:3]
    for path, poison in ((tmp_path / "a.duckdb", []), (tmp_path / "b.duckdb", RAW[kind])):
        rows = [*((i + 1, raw) for i, raw in enumerate(calm)), *((PERSON, raw) for raw in poison)]
        with duckdb.connect(str(path)) as connection:
            connection.execute(f"CREATE TABLE t (who BIGINT, x {HELD[kind]})")
            connection.execute(f"INSERT INTO t VALUES {', '.join(f'({w}, {x})' for w, x in rows)}")
    others_are_untouched(
        kind, tmp_path / "a.duckdb", tmp_path / "b.duckdb", rows=len(calm), prepared=True
    )


def test_a_failed_open_leaves_no_file_attached(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (who BIGINT)")
    closed: list[Any] = []
    original = Database.close

    def watch(self: Database) -> None:
        original(self)
        closed.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "close", watch)
        with pytest.raises(DataRefusal):
            DuckDBEngine({"t": path}, Schema({"t": declared(Kind.TEXT)}))
    assert any("t" in database.readers for database in closed)
    with duckdb.connect(str(path)) as connection:  # refused while it is attached read-only
        connection.execute("CREATE TABLE other (i BIGINT)")


@pytest.mark.parametrize("refused_by", ["another source", "the ledger"])
def test_whoever_is_refused_holds_no_file(tmp_path: Path, refused_by: str) -> None:
    """Also while what was raised is still held, with every frame it came through."""
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (who BIGINT, x VARCHAR)")
    table = declared(Kind.TEXT)
    tables: dict[str, Any] = {"t": path}
    listed = {"t": replace(table, unit=None, max_rows_per_unit=None)}  # public: opened first
    if refused_by == "another source":
        tables["u"] = tmp_path / "missing.parquet"
        listed["u"] = replace(table, name="u")
    with Ledger.open("sqlite://") as ledger:
        options: dict[str, Any] = {"schema": Schema(listed), "ledger": ledger}
        if refused_by == "the ledger":
            options["dataset"] = "no name" * 40
        with pytest.raises(discreet.Refusal) as held:
            discreet.Curator(tables, budget=discreet.Budget(epsilon=1), **options)
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE other (i BIGINT)")
    assert held.value


# --- the test has teeth --------------------------------------------------------------------


def by_failure(series: Any, kind: Kind | None) -> pa.ChunkedArray:
    """The reader as it was: whatever Arrow makes of all objects, or else text of all."""
    try:
        array = pa.array(series, from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        array = pa.array([str(v).encode(errors="surrogatepass") for v in series], pa.large_binary())
    return pa.chunked_array([array])


def strictly(files: Any, *, by_name: bool = False) -> str:
    """DuckDB's reader without the mark: one text that is none stops it."""
    listed = ", ".join(f"'{path}'" for path in files)
    return f"read_parquet([{listed}], union_by_name={by_name})"


def as_it_is(path: Path, copy: Path) -> None:
    copy.write_bytes(path.read_bytes())


MUTANTS: dict[str, tuple[Any, Callable[[Path], None]]] = {
    "memory._from_pandas": (by_failure, lambda _: test_e10_pandas(Kind.INTEGER, False)),
    "sources._read_parquet": (strictly, lambda folder: test_e10_parquet(folder, "text", False)),
    "sources._copy_with_line_feeds": (as_it_is, lambda folder: test_e10_csv(folder, b"\n")),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_e10_a_reader_that_looks_at_others_is_seen(
    name: str, tmp_path: Path, monkeypatch: Any
) -> None:
    mutant, check = MUTANTS[name]
    monkeypatch.setattr(f"discreet.engine.duckdb.{name}", mutant)
    with pytest.raises((AssertionError, DataRefusal, ValueError)):
        check(tmp_path)
