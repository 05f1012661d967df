"""The levels of a column: how what is declared of it divides its values, for tables of counts.

Every value lies in one level, whatever the row holds, and NULL is the last one.  A
column with a public list of values has a level for each; numbers and times have
one for each whole value, or cells of equal width between their bounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import InvalidParameter, QuestionRefusal
from discreet.question.domain import Domain, Kind, Value, number_of, value_at

CELLS = 100
"""How many cells a number or time has that is not counted value by value, unless it is said."""

LISTED = 400
"""Up to so many whole numbers or days are counted one by one."""


@dataclass(frozen=True, slots=True)
class Levels:
    """How one column of a relation is counted.

    ``values`` has a level each; without them, ``count`` cells divide ``low`` to ``high``.

    >>> age = make_levels("v.age", Domain(Kind.INTEGER, Fraction(0), Fraction(99)), cells=10)
    >>> age.size, age.describe(3), age.describe(10)
    (11, '30 … 39', 'NULL')
    """

    column: str
    kind: Kind
    count: int
    nullable: bool
    values: tuple[Value, ...] | None = None
    low: Fraction = Fraction(0)
    high: Fraction = Fraction(0)
    step: Fraction | None = None
    """What a number's values are multiples of, if that is declared."""

    @property
    def name(self) -> str:
        """The column as people know it: without the table's name."""
        return self.column.rsplit(".", 1)[-1]

    @property
    def size(self) -> int:
        """How many levels there are, NULL's included."""
        return self.count + self.nullable

    @property
    def ordered(self) -> bool:
        """Whether neighbouring levels are alike: numbers and times from low to high."""
        if self.values is None:
            return True
        places = [number_of(value) for value in self.values]
        known = [place for place in places if place is not None]
        return len(known) == len(places) > 2 and known == sorted(known)

    @property
    def whole(self) -> bool:
        """Whether values are counted in whole numbers: of one, of days, of microseconds."""
        return self.kind is not Kind.DECIMAL

    def ends(self, level: int) -> tuple[Fraction, Fraction]:
        """The least value of a cell and the least above it, as numbers."""
        if not self.whole:
            width = (self.high - self.low) / self.count
            return self.low + level * width, self.low + (level + 1) * width
        span = int(self.high - self.low) + 1
        first, past = (-(-place * span // self.count) for place in (level, level + 1))
        return self.low + first, self.low + past

    def describe(self, level: int) -> str:
        """A level in words."""
        if level == self.count:
            return "NULL"
        if self.values is not None:
            return _write(self.values[level])
        low, past = self.ends(level)
        if not self.whole:
            return f"{float(low):g} … {float(past):g}"
        first, last = value_at(self.kind, low), value_at(self.kind, past - 1)
        return _write(first) if first == last else f"{_write(first)} … {_write(last)}"


def make_levels(column: str, domain: Domain, *, cells: int | None = None) -> Levels:
    """The levels of a column from what is publicly known of it, or a refusal."""
    name = column.rsplit(".", 1)[-1]
    if cells is not None and (type(cells) is not int or cells < 1):
        raise InvalidParameter(
            "P2",
            f"the cells of column {name!r} must be a whole number, at least 1.",
            why="every cell is counted, whether or not anybody is in it.",
            fix="write cells = 20.",
        )
    if domain.values is not None:
        return Levels(column, domain.kind, len(domain.values), domain.nullable, domain.values)
    if domain.kind in (Kind.TEXT, Kind.BOOLEAN):
        raise QuestionRefusal(
            "Q40",
            f"column {name!r} has no public list of values.",
            why="a value that only one person has would show that person.",
            fix=f"declare values = [...] for {name!r}, or leave the column out.",
        )
    if domain.low is None or domain.high is None:
        raise QuestionRefusal(
            "Q1",
            f"column {name!r} has no public bounds.",
            why="where its cells begin and end would be decided by one person's value.",
            fix=f"declare bounds for {name!r}, or leave the column out.",
        )
    low, high = domain.low, domain.high
    if domain.kind is Kind.DECIMAL:
        return Levels(
            column, domain.kind, cells or CELLS, domain.nullable, None, low, high, domain.step
        )
    low, high = Fraction(math.ceil(low)), Fraction(math.floor(high))
    span = int(high - low) + 1
    count = min(cells or (span if span <= LISTED else CELLS), span)
    return Levels(column, domain.kind, count, domain.nullable, None, low, high)


def list_levels(
    columns: Mapping[str, Domain],
    unit: Sequence[str | None],
    *,
    wanted: Sequence[str] = (),
    cells: Mapping[str, int] | None = None,
) -> tuple[Levels, ...]:
    """The levels of the wanted columns, or of all but those that say whose a row is."""
    names = {column.rsplit(".", 1)[-1]: column for column in columns}
    own = {column for column in unit if column is not None}
    asked = list(wanted) or [name for name, column in names.items() if column not in own]
    for name in (*asked, *(cells or {})):
        if name not in names:
            raise QuestionRefusal(
                "Q7",
                f"there is no column {name!r} to publish.",
                why="what is not declared is not read.",
                fix=f"name some of {', '.join(names)}.",
            )
        if name in asked and names[name] in own:
            raise QuestionRefusal(
                "Q23",
                f"column {name!r} says whose a row is.",
                why="a count for each person would show every person.",
                fix=f"leave {name!r} out.",
            )
    return tuple(
        make_levels(names[name], columns[names[name]], cells=(cells or {}).get(name))
        for name in asked
    )


def _write(value: Value) -> str:
    return f"{float(value):g}" if isinstance(value, Fraction) else str(value)


__all__ = ["Levels", "list_levels", "make_levels"]
