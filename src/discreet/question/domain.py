"""What is publicly known of a value: its kind, its bounds, whether it may be missing.

A domain is a theorem about the engine, not a hope about the data: a column is
read through its declaration (clipped to its bounds, NULL where it is not among
its allowed values), so whatever the table holds, what an expression sees lies
in the domain computed for it.

Some things hold of every value of a kind, declared or not: an integer fits in
64 bits; a decimal is a finite double; a text has at most ``TEXT_LIMIT``
characters; dates and timestamps lie in the years 1 to 9999.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import field, replace
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

from discreet.exact.records import dataclass

Value = int | Fraction | str | bool | date | datetime
"""A public constant: in a question or in a schema."""

TEXT_LIMIT = 4096
"""Characters of a text that are read; a person's longer text is cut, never an error."""

LISTED_MOST = 1000
"""How many values a domain lists at most when they are computed rather than declared."""

WIDEST = 2**62
"""Integer results that might leave -2**62 ... 2**62 are computed in doubles instead."""

_EPOCH = date(1970, 1, 1)
_EPOCH_TIME = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
FIRST_SHOWN, LAST_SHOWN = datetime(1, 1, 3), datetime(9999, 12, 29)
"""Between these, clocks of every zone are on the calendar."""


class Kind(StrEnum):
    """The kinds of values a column or an expression can have."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    DECIMAL = "decimal"  # a real number; a double in the engine, on a public grid when summed
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"

    @property
    def is_number(self) -> bool:
        """Whether arithmetic applies."""
        return self in (Kind.INTEGER, Kind.DECIMAL)

    @property
    def is_time(self) -> bool:
        """Whether it is a point on the calendar."""
        return self in (Kind.DATE, Kind.TIMESTAMP)


def kind_of(value: Value) -> Kind:
    """The kind of a constant.

    >>> kind_of(True), kind_of(7), kind_of(date(2024, 2, 29))
    (<Kind.BOOLEAN: 'boolean'>, <Kind.INTEGER: 'integer'>, <Kind.DATE: 'date'>)
    """
    match value:  # bool before int and datetime before date: each is a subclass of the other
        case bool():
            return Kind.BOOLEAN
        case int():
            return Kind.INTEGER
        case str():
            return Kind.TEXT
        case datetime():
            return Kind.TIMESTAMP
        case date():
            return Kind.DATE
        case _:
            return Kind.DECIMAL


def number_of(value: Value) -> Fraction | None:
    """Where a constant lies on the line its kind is bounded on; None for text and booleans.

    >>> number_of(date(1970, 1, 11)), number_of(datetime(1970, 1, 1, 0, 0, 2))
    (Fraction(10, 1), Fraction(2000000, 1))
    """
    match value:
        case bool() | str():
            return None
        case datetime():
            return Fraction((value - _EPOCH_TIME) // _MICROSECOND)
        case date():
            return Fraction((value - _EPOCH).days)
        case int():
            return Fraction(value)
        case _:  # a double in the engine: the nearest one is what is meant
            return to_double(value)


def value_at(kind: Kind, number: Fraction) -> Value:
    """The constant of ``kind`` that lies at ``number``; the inverse of :func:`number_of`.

    >>> value_at(Kind.DATE, Fraction(10))
    datetime.date(1970, 1, 11)
    """
    match kind:
        case Kind.DATE:
            return _EPOCH + timedelta(days=int(number))
        case Kind.TIMESTAMP:
            return _EPOCH_TIME + timedelta(microseconds=int(number))
        case Kind.INTEGER:
            return int(number)
        case _:
            return number


def to_double(number: Fraction | float) -> Fraction | None:
    """The double nearest to ``number``, exactly; None if it is out of their range.

    >>> to_double(Fraction(1, 10)) == Fraction(0.1), to_double(Fraction(10) ** 400)
    (True, None)
    """
    try:
        nearest = float(number)
    except OverflowError:
        return None
    return Fraction(nearest) if math.isfinite(nearest) else None


def is_zone(name: object) -> bool:
    """Whether ``name`` names a time zone, such as Europe/Paris.

    >>> is_zone("Europe/Paris"), is_zone("Mars/Phobos"), is_zone("localtime")
    (True, False, False)
    """
    if not isinstance(name, str) or name == "localtime" or not name.isprintable():
        return False
    from zoneinfo import ZoneInfo  # long to import, and few schemas have a zone

    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return False
    return True


def change_zone(moment: datetime, old: str, new: str) -> datetime | None:
    """What clocks in ``new`` show when those in ``old`` show ``moment``.

    None within two days of the calendar's ends, where some zone's clocks have left it.

    What clocks show twice in autumn is taken for the second time, and what they leap over in
    spring for what they would have shown: as the engine does.

    >>> change_zone(datetime(2024, 7, 1, 7, 30), "UTC", "Europe/Paris")
    datetime.datetime(2024, 7, 1, 9, 30)
    >>> change_zone(datetime(2024, 10, 27, 2, 30), "Europe/Paris", "UTC")
    datetime.datetime(2024, 10, 27, 1, 30)
    """
    if not FIRST_SHOWN <= moment <= LAST_SHOWN:
        return None
    from zoneinfo import ZoneInfo

    both = [moment.replace(tzinfo=ZoneInfo(old), fold=fold) for fold in (0, 1)]
    ahead = min(shown.utcoffset() or timedelta() for shown in both)
    return (moment - ahead).replace(tzinfo=UTC).astimezone(ZoneInfo(new)).replace(tzinfo=None)


def calendar_bounds(kind: Kind) -> tuple[Fraction, Fraction]:
    """The first and the last date or timestamp of all: the years 1 to 9999."""
    if kind is Kind.TIMESTAMP:
        moments = (datetime.min, datetime.max)
        first, last = ((moment - _EPOCH_TIME) // _MICROSECOND for moment in moments)
    else:
        first, last = ((day - _EPOCH).days for day in (date.min, date.max))
    return Fraction(first), Fraction(last)


@dataclass(frozen=True, slots=True)
class Domain:
    """The values an expression can take.

    ``low`` and ``high`` bound numbers; dates count days and timestamps count
    microseconds from 1970-01-01; bounds of a decimal are doubles.  ``values``,
    where present, lists every value other than NULL, in a public order; an
    empty list means that the value is always NULL.

    ``beyond`` is the wider domain on rows that a condition shuts out, where the
    bounds were learnt from one.  An engine is free to compute on such rows
    before it drops them, and must not fail there either (docs/proofs/ownership.md, Lemma 9).

    ``step`` is what a column declares its values to be multiples of: a hint for accuracy, on
    which nothing that is promised rests.  ``zone`` is the time zone whose clocks a column shows.
    """

    kind: Kind
    low: Fraction | None = None
    high: Fraction | None = None
    nullable: bool = True
    values: tuple[Value, ...] | None = None
    beyond: Domain | None = field(default=None, compare=False, repr=False)
    step: Fraction | None = field(default=None, compare=False, repr=False)
    zone: str | None = field(default=None, compare=False, repr=False)

    @property
    def anywhere(self) -> Domain:
        """What it can be on any row an engine may compute on."""
        return self.beyond or self

    @property
    def bounded(self) -> bool:
        """Whether both bounds are known."""
        return self.low is not None and self.high is not None

    @property
    def is_null(self) -> bool:
        """Whether it is the literal NULL, which fits every kind."""
        return self.values == ()

    def with_null(self) -> Domain:
        """The same values, and possibly NULL."""
        return replace(self, nullable=True)

    def without_null(self) -> Domain:
        """The same values, and never NULL."""
        return replace(self, nullable=False)

    def contains(self, value: Value | float | None) -> bool:
        """Whether the theorem allows ``value``.

        >>> age = Domain(Kind.INTEGER, Fraction(0), Fraction(120), nullable=False)
        >>> age.contains(40), age.contains(121), age.contains(None)
        (True, False, False)
        """
        if value is None:
            return self.nullable
        constant: Value = Fraction(value) if isinstance(value, float) else value
        if self.kind is Kind.DECIMAL and isinstance(constant, int):
            constant = Fraction(constant)
        if kind_of(constant) is not self.kind:
            return False
        if self.values is not None and constant not in self.values:
            return False
        number = number_of(constant)
        return number is None or (
            (self.low is None or self.low <= number) and (self.high is None or number <= self.high)
        )

    def list_values(self, most: int = LISTED_MOST) -> tuple[Value, ...] | None:
        """Every value other than NULL, if there are at most ``most`` and they are known.

        >>> Domain(Kind.INTEGER, Fraction(1), Fraction(4)).list_values()
        (1, 2, 3, 4)
        """
        if self.values is not None:
            return self.values
        if self.kind not in (Kind.INTEGER, Kind.DATE) or self.low is None or self.high is None:
            return None
        first, last = math.ceil(self.low), math.floor(self.high)
        if last - first >= most:
            return None
        return _list_between(self.kind, first, last)


@lru_cache(maxsize=32)
def _list_between(kind: Kind, first: int, last: int) -> tuple[Value, ...]:
    """What lies between bounds that a schema declares: the same for every question."""
    return tuple([value_at(kind, Fraction(n)) for n in range(first, last + 1)])


NULL = Domain(Kind.BOOLEAN, values=())
"""The domain of the literal NULL."""


def domain_of_values(kind: Kind, values: Iterable[Value], *, nullable: bool) -> Domain:
    """The domain that lists exactly ``values``, each once, in the order given.

    >>> domain_of_values(Kind.INTEGER, [30, 10, 30], nullable=False).low
    Fraction(10, 1)
    """
    if kind is Kind.DECIMAL:  # the doubles nearest to what was written
        values = (Fraction(float(v)) for v in values)  # type: ignore[arg-type]
    listed = tuple(dict.fromkeys(values))
    numbers = [n for n in map(number_of, listed) if n is not None]
    return Domain(
        kind,
        low=min(numbers, default=None),
        high=max(numbers, default=None),
        nullable=nullable,
        values=listed,
    )


def boolean(*, nullable: bool) -> Domain:
    """True or false; the list is known, so that they are public groups."""
    return Domain(Kind.BOOLEAN, nullable=nullable, values=(False, True))
