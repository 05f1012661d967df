"""Combining answers: the SQL of a statement over released numbers, bound first and run afterwards.

Bound on empty tables of the types that the answers will have, before anything is charged: what
cannot be computed is not paid for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

from discreet.engine.duckdb import afterwards
from discreet.engine.duckdb.afterwards import Held, Shape
from discreet.errors import QuestionRefusal
from discreet.exact.records import dataclass
from discreet.price import Priced
from discreet.question.catalogue import Catalogue
from discreet.question.domain import Kind
from discreet.question.statement import (
    ACCOUNT_COLUMNS,
    ROW_NUMBER,
    Column,
    Statement,
    account_name,
    answer_name,
    group_name,
    interval_name,
    list_columns,
    list_public_columns,
    name_ends,
    public_name,
)
from discreet.release.answer import Answer
from discreet.release.combined import Combined

Values = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Bound:
    """A statement that the engine has bound on empty tables: it can be computed."""

    statement: Statement
    answers: tuple[Held, ...]
    public: tuple[Held, ...]
    names: tuple[str, ...]


def bind(statement: Statement, catalogue: Catalogue) -> Bound:
    """Let the engine resolve every name and type, before anything is released or charged."""
    held = tuple(
        Held(answer_name(number), tuple(map(_shape, list_columns(question, catalogue))))
        for number, question in enumerate(statement.questions)
    )
    held += tuple(
        Held(interval_name(number), (*held[number].columns, *_end_shapes(statement, number)))
        for number in _with_ends(statement)
    )
    tables = tuple(
        Held(public_name(name), tuple(map(_shape, list_public_columns(name, catalogue))))
        for name in statement.tables
    )
    accounts = tuple(map(_shape, ACCOUNT_COLUMNS))
    tables += tuple(Held(account_name(name), accounts) for name in statement.accounts)
    tables += tuple(
        Held(group_name(number), tuple(map(_shape, list_columns(question, catalogue))))
        for number, question in enumerate(statement.listed)
    )
    columns = afterwards.bind(statement.sql, [*held, *tables])
    names = _tell_apart([column.name for column in columns])
    trace = statement.trace
    if trace is not None:
        numbered = [table.number_rows(ROW_NUMBER) for table in held]
        try:
            found = afterwards.bind(trace.sql, [*numbered, *tables])
        except QuestionRefusal:
            found = ()
        same = columns == found[: len(columns)]
        if not same or len(columns) != len(trace.carried) or len(found) - trace.rows != len(names):
            statement = replace(statement, trace=None)  # what is not certain has no margin
    return Bound(statement, held, tables, names)


def _with_ends(statement: Statement) -> list[int]:
    """The questions, by number, of which intervals are read."""
    return sorted({number for number, _ in statement.ends})


def _end_shapes(statement: Statement, number: int) -> list[Shape]:
    ends = (name for column in statement.list_ends(number) for name in name_ends(column))
    return [Shape(name, afterwards.type_of(Kind.DECIMAL)) for name in ends]


def describe_bound(bound: Bound) -> tuple[Column, ...]:
    """The columns of what a statement answers, before anything is released."""
    found = afterwards.bind(bound.statement.sql, [*bound.answers, *bound.public])
    return tuple(_column(name, shape.type) for name, shape in zip(bound.names, found, strict=True))


def _column(name: str, written: str) -> Column:
    if written.count("[]") > 1:  # lists of lists are shown as texts
        return Column(name, Kind.TEXT)
    one = written.removesuffix("[]").split("(")[0]
    wide = one in ("HUGEINT", "UHUGEINT", "UBIGINT")
    kind = Kind.INTEGER if wide or one in _WHOLE else _KINDS.get(one, Kind.TEXT)
    return Column(name, kind, total=wide, listed=written.endswith("[]"))


_WHOLE = ("BIGINT", "INTEGER", "SMALLINT", "TINYINT", "UINTEGER", "USMALLINT", "UTINYINT")
_KINDS = {
    "BOOLEAN": Kind.BOOLEAN,
    "DATE": Kind.DATE,
    "DECIMAL": Kind.DECIMAL,
    "DOUBLE": Kind.DECIMAL,
    "FLOAT": Kind.DECIMAL,
    "TIMESTAMP": Kind.TIMESTAMP,
}


def _shape(column: Column) -> Shape:
    kind = afterwards.type_of(column.kind, total=column.total, listed=column.listed)
    return Shape(column.name, kind)


def _tell_apart(columns: Sequence[str]) -> tuple[str, ...]:
    """Each column under a name of its own: ``SELECT a.n, b.n`` has n and n_2.

    >>> _tell_apart(["n", "city", "N", "n"])
    ('n', 'city', 'N_2', 'n_3')
    """
    found: list[str] = []
    for column in columns:
        taken = {other.casefold() for other in found}
        name, number = column, 2
        while name.casefold() in taken:
            name, number = f"{column}_{number}", number + 1
        found.append(name)
    return tuple(found)


def _find_ends(part: Answer, statement: Statement, number: int) -> dict[str, list[float | None]]:
    """The ends of intervals: a function of what was released.  None where there is no end."""
    known = part.accuracy(statement.confidence)
    found: dict[str, list[float | None]] = {}
    for column in statement.list_ends(number):
        intervals = [None if i is None or i.nobody else i for _, i in known[column]]
        low, high = name_ends(column)
        found[low] = [None if i is None or not isfinite(i.low) else i.low for i in intervals]
        found[high] = [None if i is None or not isfinite(i.high) else i.high for i in intervals]
    return found


def combine(
    bound: Bound,
    parts: Sequence[Answer],
    public: Mapping[str, Values],
    *,
    nothing: Priced | None = None,
    said: tuple[str, ...] = (),
) -> Combined:
    """What the statement computes from the answers of its questions, and from ``public`` tables.

    What the account tells and what is declared are among them, each by its own name.  ``nothing``
    is what is priced where no question is asked; ``said`` what else there is to say.
    """
    statement, trace = bound.statement, bound.statement.trace
    values = [{name: part.column(name) for name in part.columns} for part in parts]
    values += [
        {**values[number], **_find_ends(parts[number], statement, number)}
        for number in _with_ends(statement)
    ]
    tables = [held.fill(found) for held, found in zip(bound.answers, values, strict=True)]
    others = [held.fill(public[held.name]) for held in bound.public]
    if trace is None:
        rows = afterwards.run(statement.sql, [*tables, *others])
    else:
        numbered = [table.number_rows(ROW_NUMBER) for table in tables]
        rows = afterwards.run(trace.sql, [*numbered, *others])
    width = len(bound.names)
    return Combined.of(
        statement,
        parts,
        bound.names,
        tuple(row[:width] for row in rows),
        tuple(row[width:] for row in rows),
        nothing=nothing,
        said=said,
    )
