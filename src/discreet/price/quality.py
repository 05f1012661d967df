"""Data quality: how many units stand in the way of a property, each told with little noise.

A property here is one that holds of fewer rows if it holds of more: no value above a bound, rows
sorted by time, so many clusters on a line, one column a function of others, every reference met.
Its distance is the least number of units to leave out until it holds.  One unit more, less or
another changes that by at most one (DMNS 3.2), whatever the property is.

Each is a question in SQL, of one number.  Where a property is about the rows of several people, and
a unit has several of them, the fewest units are hard to find; what is told is never more, and moves
by at most one with a unit, too (``docs/proofs/distances.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter, quote_value
from discreet.exact.numbers import Exact, fraction, nonnegative, positive, proportion, whole
from discreet.mechanisms import Laplace
from discreet.price.plan import Plan
from discreet.question.schema import Owners, Schema, Table

SETTINGS: Mapping[str, tuple[str, ...]] = {
    "maximum": ("column", "bound"),
    "sorted": ("column", "by"),
    "clusters": ("column", "clusters", "width"),
    "dependency": ("column", "on"),
    "reference": ("column", "to", "key"),
}
"""What is said of each property, besides its table."""

MOST_CHECKS = 100
_NUMBERS = ("integer", "decimal", "float")


@dataclass(frozen=True, slots=True)
class Check:
    """One property of one table."""

    name: str
    property: str
    table: str
    columns: tuple[str, ...]
    """The columns it is about, in the order in which it reads them."""
    text: str
    """The same as a question."""
    plan: Plan
    """How that question is measured."""
    several: bool = False
    """Whether a unit may have several rows, so that there may be more in the way than is told."""


@dataclass(frozen=True, slots=True)
class Quality:
    """Properties, and the noise with which all their distances are told."""

    checks: tuple[Check, ...]
    noise: Laplace
    """One unit moves each distance by one, so all of them by how many there are."""

    @classmethod
    def of(cls, checks: Sequence[Check], *, epsilon: Exact) -> Quality:
        """The report that ``epsilon`` buys."""
        price = positive(epsilon, name="epsilon")
        return cls(tuple(checks), Laplace(sensitivity=len(checks), epsilon=price))

    @property
    def loss(self) -> Loss:
        """What the whole report costs one unit."""
        return self.noise.loss

    def margin(self, confidence: Exact = "0.95") -> int:
        """How far off each distance is, with this confidence."""
        beta = 1 - proportion(confidence, name="confidence")
        return int(self.noise.margin(beta))

    def __str__(self) -> str:
        return "QUALITY " + "; ".join(f"{one.property} of {one.table}" for one in self.checks)


WriteQuestion = Callable[[str], Plan]
"""The plan of a question in SQL that one unit moves by at most one, or a refusal."""


def make_checks(
    wanted: Mapping[str, Mapping[str, Any]], schema: Schema, find_plan: WriteQuestion
) -> tuple[Check, ...]:
    """The properties as they were said, checked; reads no data."""
    if not isinstance(wanted, Mapping) or not 1 <= len(wanted) <= MOST_CHECKS:
        raise InvalidParameter(
            "P5",
            f"a report is about 1 to {MOST_CHECKS} properties, by name.",
            why="the noise of each number grows with how many there are.",
            fix="say {'ages': {'table': 'visits', 'property': 'maximum', 'column': 'age', "
            "'bound': 110}}.",
        )
    return tuple(_make(str(name), said, schema, find_plan) for name, said in wanted.items())


def _make(name: str, said: Any, schema: Schema, find_plan: WriteQuestion) -> Check:
    kind = said.get("property") if isinstance(said, Mapping) else None
    if not isinstance(kind, str) or kind not in SETTINGS:
        raise _unclear(f"{quote_value(kind)} is no property", f"name one of {', '.join(SETTINGS)}")
    expected = {"table", "property", *SETTINGS[kind]}
    optional = {"key"} if kind == "reference" else set()
    if not expected - optional <= set(said) <= expected:
        listed = ", ".join(("table", *SETTINGS[kind]))
        raise _unclear(f"of {kind} something is missing, or too much is said", f"say {listed}")
    table = _find_table(said["table"], schema)
    if kind == "maximum":
        return _make_maximum(name, said, table, find_plan)
    if kind == "reference":
        return _make_reference(name, said, table, schema, find_plan)
    return _make_across(name, kind, said, table, find_plan)


def _make_maximum(
    name: str, said: Mapping[str, Any], table: Table, find_plan: WriteQuestion
) -> Check:
    column = _find_column(said["column"], table, numbers=True)
    bound = fraction(said["bound"], name="bound")
    declared = next(c for c in table.columns if c.name == column).high
    if isinstance(declared, int | Fraction) and bound >= declared:
        raise _unclear(
            "the bound is no less than the declared one, to which values are clipped",
            "ask about a smaller bound",
        )
    text = _count_units(table, "", f"{_quote(column)} > {_literal(bound)}")
    return Check(name, "maximum", table.name, (column,), text, find_plan(text))


def _make_reference(
    name: str,
    said: Mapping[str, Any],
    table: Table,
    schema: Schema,
    find_plan: WriteQuestion,
) -> Check:
    column = _find_column(said["column"], table)
    other = schema.tables.get(said["to"]) if isinstance(said["to"], str) else None
    if other is None:
        raise _unclear(f"there is no table {quote_value(said['to'])}", "name a table of the schema")
    key = _find_column(said.get("key", column), other)
    one, two = f"{_quote(table.name)}.{_quote(column)}", f"{_quote(other.name)}.{_quote(key)}"
    text = _count_units(
        table,
        f" LEFT JOIN {_quote(other.name)} ON {one} = {two}",
        f"{two} IS NULL AND {one} IS NOT NULL",
    )
    return Check(name, "reference", table.name, (column,), text, find_plan(text))


def _make_across(
    name: str, kind: str, said: Mapping[str, Any], table: Table, find_plan: WriteQuestion
) -> Check:
    """What is a property of several people's rows."""
    column = _find_column(said["column"], table, numbers=kind == "clusters")
    others: tuple[str, ...] = ()
    settled: tuple[str, ...] = ()
    if kind == "sorted":
        others = (_find_column(said["by"], table),)
    if kind == "dependency":
        on = said["on"] if isinstance(said["on"], list | tuple) else [said["on"]]
        others = tuple(_find_column(one, table) for one in on)
        if not others:
            raise _unclear("nothing is named on which the column depends", "name a column")
    if kind == "clusters":
        count = whole(said["clusters"], name="clusters", least=1)
        settled = (str(count), _literal(nonnegative(said["width"], name="width")))
    columns = (column, *others)
    written = ", ".join((*map(_quote, columns), *settled))
    text = f"SELECT DISTANCE_TO_{kind.upper()}({written}) FROM {_quote(table.name)}"  # noqa: S608
    several = not table.by_row and table.max_rows_per_unit != 1
    return Check(name, kind, table.name, columns, text, find_plan(text), several)


def _find_table(said: Any, schema: Schema) -> Table:
    found = schema.tables.get(said) if isinstance(said, str) else None
    if found is None or found.public or found.owners is not Owners.ONE:
        raise _unclear(
            f"there is no private table {quote_value(said)} whose rows have one owner each",
            f"name one of {', '.join(n for n, t in schema.tables.items() if not t.public)}",
        )
    return found


def _find_column(said: Any, table: Table, *, numbers: bool = False) -> str:
    found = next((column for column in table.columns if column.name == said), None)
    if found is None:
        listed = ", ".join(column.name for column in table.columns)
        raise _unclear(
            f"table {table.name!r} has no column {quote_value(said)}", f"name one of {listed}"
        )
    if numbers and found.kind.value not in _NUMBERS:
        raise _unclear(f"column {said!r} holds no numbers", "name a column of numbers")
    return found.name


def _count_units(table: Table, joined: str, condition: str) -> str:
    """A question: how many units have a row that meets a condition."""
    unit = ", ".join(f"{_quote(table.name)}.{_quote(column)}" for column in table.unit or ())
    counted = "*" if table.by_row else f"DISTINCT {unit}"
    rows = f"{_quote(table.name)}{joined}"
    return f"SELECT COUNT({counted}) FROM {rows} WHERE {condition}"  # noqa: S608 (parsed as any other)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(number: Fraction) -> str:
    """A constant as it is written in a question.

    >>> _literal(Fraction(17, 4)), _literal(Fraction(-3))
    ('4.25', '-3')
    """
    if number.denominator == 1:
        return str(number)
    places = 0
    while (number * 10**places).denominator != 1:
        places += 1
        if places > 18:
            raise _unclear(
                "a bound or width is no decimal number", "write it with at most 18 places"
            )
    digits = f"{abs(number * 10**places).numerator:0{places + 1}d}"
    return f"{'-' * (number < 0)}{digits[:-places]}.{digits[-places:]}"


def _unclear(what: str, fix: str) -> InvalidParameter:
    return InvalidParameter(
        "P4",
        f"{what}.",
        why="what is told of the people in the data is decided by what is publicly known of it.",
        fix=f"{fix}.",
    )


__all__ = ["SETTINGS", "Check", "Quality", "make_checks"]
