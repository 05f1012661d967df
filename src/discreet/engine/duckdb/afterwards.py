"""SQL over released numbers, in a connection that has nothing else.

The connection is opened for one statement, to a database with nothing in it that is locked: no
file, no network, no extension, no change of its settings; bounded memory and time.  The answers
(and the public tables that the statement names) are given to it as temporary tables, which only
this connection sees and which end with it.  What it computes is a function of released numbers, so
whatever happens here, how long it takes and how it fails, tells nothing more about anybody.

An empty database takes DuckDB longer to open than most statements to run: one that a statement has
left as it was waits for the next.
"""

from __future__ import annotations

import atexit
import math
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from discreet.engine.duckdb.sources import quote_name
from discreet.errors import QuestionRefusal
from discreet.exact.records import dataclass
from discreet.question.domain import Kind
from discreet.question.functions import nodes

MEMORY = "512MB"
TIME_LIMIT_S = 10.0
MOST_ROWS = 1_000_000
"""What one statement may use, and how many rows it may have."""
_AGAIN_S = 0.01

_SETTINGS = (
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    "allow_community_extensions = false",
    "python_enable_replacements = false",
    "TimeZone = 'UTC'",
    "default_null_order = 'nulls_last'",
    "ieee_floating_point_ops = false",
    "threads = 1",  # the same order of rows, and of sums, every time
    f"memory_limit = '{MEMORY}'",
    "temp_directory = ''",
)
_NEWER = ("error_on_division_by_zero = false",)
"""Settings that not every version has: nothing divided by zero is NULL."""
_LOCK = ("enable_external_access = false", "lock_configuration = true")

_TYPE = re.compile(
    r"(BOOLEAN|U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(\d+,\d+\)|VARCHAR|DATE"
    r"|TIMESTAMP|\"NULL\")(\[\])*"
)
"""The types that an answer can show."""
_GREATEST = {"BIGINT": 2**63 - 1, "HUGEINT": 2**127 - 1}


class Shape(NamedTuple):
    """A column as the engine holds it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Held:
    """A table that a statement reads: of its rows nothing is known before the release."""

    name: str
    columns: tuple[Shape, ...]
    values: Mapping[str, Sequence[Any]] | None = None  # None: no rows yet

    @property
    def empty(self) -> Held:
        """The same without its rows."""
        return Held(self.name, self.columns)

    def fill(self, values: Mapping[str, Sequence[Any]]) -> Held:
        """The same with these rows."""
        return Held(self.name, self.columns, values)

    def number_rows(self, name: str) -> Held:
        """The same with one more column, which numbers its rows from 0."""
        columns = (*self.columns, Shape(name, "BIGINT"))
        if self.values is None:
            return Held(self.name, columns)
        count = len(next(iter(self.values.values()), ()))
        return Held(self.name, columns, {**self.values, name: range(count)})


def type_of(kind: Kind, *, total: bool = False, listed: bool = False) -> str:
    """The type of released values, as DuckDB itself would give it; sums of whole numbers are wide.

    >>> type_of(Kind.INTEGER), type_of(Kind.INTEGER, total=True), type_of(Kind.DATE, listed=True)
    ('BIGINT', 'HUGEINT', 'DATE[]')
    """
    name = "HUGEINT" if total and kind is Kind.INTEGER and not listed else nodes.TYPES[kind]
    return f"{name}[]" if listed else str(name)


def bind(sql: str, tables: Sequence[Held]) -> tuple[Shape, ...]:
    """The columns of what ``sql`` computes, or a refusal; on empty tables, before any release."""
    with _open([table.empty for table in tables]) as connection:
        try:
            found = connection.sql(sql)
            shapes = tuple(
                Shape(str(name), str(kind))
                for name, kind in zip(found.columns, found.types, strict=True)
            )
        except duckdb.Error as error:
            raise _explain(str(error), tables) from None
    for shape in shapes:
        if not _TYPE.fullmatch(shape.type):
            raise QuestionRefusal(
                "Q10",
                f"column '{shape.name}' would be of a kind that an answer cannot show.",
                why="nothing for anybody in the data: it is computed from released numbers.",
                fix="cast it: CAST(... AS TEXT), or CAST(... AS DOUBLE).",
            )
    return shapes


def run(
    sql: str, tables: Sequence[Held], *, limit_s: float | None = None, most: int = MOST_ROWS
) -> list[tuple[Any, ...]]:
    """The rows that ``sql`` computes, ``most`` and one; refused if it takes too much, or fails."""
    with _open(tables) as connection:
        try:
            with limit_time(connection, limit_s):
                rows = connection.execute(sql).fetchmany(most + 1)
        except (duckdb.Error, MemoryError, OverflowError, ValueError, RuntimeError):
            raise _failed_refusal("it fails on the released numbers, or takes too long") from None
    if len(rows) > MOST_ROWS:
        raise _failed_refusal(f"it has more than {MOST_ROWS:,} rows")
    return [tuple(map(_plain, row)) for row in rows]


@contextmanager
def limit_time(
    connection: duckdb.DuckDBPyConnection, limit_s: float | None = None
) -> Iterator[None]:
    """Interrupt what takes longer than a statement may."""
    ended = threading.Event()

    def stop() -> None:
        pause_s = TIME_LIMIT_S if limit_s is None else limit_s
        while not ended.wait(pause_s):
            connection.interrupt()
            pause_s = _AGAIN_S  # what comes before the statement has begun is forgotten by DuckDB

    watcher = threading.Thread(target=stop, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _open(
    tables: Sequence[Held],
) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    """A connection with the tables in it and no way out."""

    def fill(connection: duckdb.DuckDBPyConnection) -> None:
        for table in tables:
            _create(connection, table)

    return open_locked(fill)


_MOST_IDLE = 2
_idle: dict[int, list[duckdb.DuckDBPyConnection]] = {}
"""Locked databases with nothing in them, by the process that opened them.

What was opened before a fork is the parent's.
"""
atexit.register(_idle.clear)  # before DuckDB's own end


@contextmanager
def open_locked(
    fill: Callable[[duckdb.DuckDBPyConnection], None],
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection of its own to a database without a way out; ``fill`` gives it its tables.

    Whatever it makes is undone.  A database in which something failed is not used again.
    """
    idle = _idle.setdefault(os.getpid(), [])
    try:
        database = idle.pop()
    except IndexError:
        database = _open_empty()
    try:
        with closing(database.cursor()) as connection:
            connection.begin()
            fill(connection)
            yield connection
            connection.rollback()
    except BaseException:
        database.close()
        raise
    if len(idle) < _MOST_IDLE:
        idle.append(database)
    else:
        database.close()


def _open_empty() -> duckdb.DuckDBPyConnection:
    """A database with nothing in it that can reach nothing and not be changed."""
    connection = duckdb.connect(":memory:")
    connection.execute("; ".join(f"SET GLOBAL {setting}" for setting in _SETTINGS))
    for setting in _NEWER:
        with suppress(duckdb.Error):
            connection.execute(f"SET GLOBAL {setting}")
    connection.execute("; ".join(f"SET GLOBAL {setting}" for setting in _LOCK))
    return connection


def _create(connection: duckdb.DuckDBPyConnection, table: Held) -> None:
    fields = ", ".join(f"{quote_name(c.name)} {c.type}" for c in table.columns)
    connection.execute(f"CREATE TEMP TABLE {quote_name(table.name)} ({fields})")
    if table.values is None:
        return
    held = pa.table({str(i): _arrow(c, table.values[c.name]) for i, c in enumerate(table.columns)})
    connection.register("given", held)
    casts = ", ".join(
        f"CAST({quote_name(str(i))} AS {c.type})" for i, c in enumerate(table.columns)
    )
    connection.sql(f"SELECT {casts} FROM given").insert_into(quote_name(table.name))  # noqa: S608
    connection.unregister("given")


_ARROW = {
    "BIGINT": pa.int64(),
    "HUGEINT": pa.string(),  # digits: Arrow has no whole numbers as wide
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "BOOLEAN": pa.bool_(),
}


def _arrow(shape: Shape, values: Sequence[Any]) -> pa.Array:
    name = shape.type.removesuffix("[]")
    held = [
        [_hold(part, name) for part in value] if isinstance(value, list) else _hold(value, name)
        for value in values
    ]
    kind = _ARROW[name]
    return pa.array(held, pa.list_(kind) if shape.type.endswith("[]") else kind)


def _hold(value: Any, name: str) -> Any:
    """A released value as the engine holds it; the greatest number there is, beyond that one."""
    if value is None:
        return None
    if name in _GREATEST:
        greatest = _GREATEST[name]
        whole = min(max(int(value), -greatest), greatest)
        return str(whole) if name == "HUGEINT" else whole
    if name == "DOUBLE":
        return float(value)
    if name == "VARCHAR":
        return str(value)
    return value


def _plain(value: Any) -> Any:
    """A value of the engine as answers hold it: no infinity, no decimal, no tuple."""
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str | date | Fraction):
        return value
    return str(value)


# --- refusals ------------------------------------------------------------------------------------

_WHY = "nothing for anybody in the data: it is computed from released numbers."
_NAMES = re.compile(r'(?:column|Table|table) (?:named |"|with name )+"?([^"]+)"')


def _explain(message: str, tables: Sequence[Held]) -> QuestionRefusal:
    """What the engine objects to, in words of our own; its message quotes the question alone."""
    columns = sorted({column.name for table in tables for column in table.columns})
    known = f"the answers have the columns {', '.join(columns[:40])}."
    named = _NAMES.search(message)
    if "not found" in message and named is not None:
        return QuestionRefusal(
            "Q7", f"there is no column '{named.group(1)[:80]}' here.", why=_WHY, fix=known
        )
    if "Ambiguous" in message or "ambiguous" in message:
        return QuestionRefusal(
            "Q8",
            "a name around the questions could mean two columns.",
            why=_WHY,
            fix="write it with its table: s.city.",
        )
    if "GROUP BY" in message:
        return QuestionRefusal(
            "Q24",
            "a column around the questions is neither grouped nor aggregated.",
            why=_WHY,
            fix="add it to GROUP BY, or aggregate it.",
        )
    if "argument types" in message or "Cannot compare" in message or "cast" in message.lower():
        return QuestionRefusal(
            "Q10",
            "something around the questions is given kinds that it does not take.",
            why=_WHY,
            fix="cast it: CAST(x AS DOUBLE), CAST(x AS TEXT).",
        )
    return QuestionRefusal(
        "Q47",
        "what stands around the questions cannot be computed.",
        why=f"{_WHY} Nothing was charged.",
        fix=f"write it as DuckDB would take it; {known}",
    )


def _failed_refusal(reason: str) -> QuestionRefusal:
    return QuestionRefusal(
        "Q47",
        f"what stands around the questions cannot be computed: {reason}.",
        why="nothing for anybody in the data. The questions are answered, paid for and kept.",
        fix="change what stands around them, and ask again: what was paid for is free.",
    )
