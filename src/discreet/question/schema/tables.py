"""Columns and tables as declared, each checked when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import date, timedelta
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, prod

from discreet.accounting.neighbours import Neighbours
from discreet.errors import SchemaRefusal, quote_value
from discreet.exact.records import dataclass
from discreet.question.domain import (
    Domain,
    Kind,
    Value,
    boolean,
    domain_of_values,
    is_zone,
    kind_of,
    number_of,
    to_double,
    value_at,
)

_MOST_VERSION = 200
ROW = ("row",)
"""The unit of a table in which every row is protected by itself."""


class Owners(StrEnum):
    """Whose a row is: its one unit's, the unordered pair's that it names, or of both it names."""

    ONE = "one"
    PAIR = "pair"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Crowding:
    """What the test costs that few people stand in more rows than are read of one.

    >>> Crowding(Fraction(1, 50), Fraction(1, 10**9)).rho
    Fraction(1, 50)
    """

    rho: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        if self.rho > 0 and 0 < self.delta < 1:
            return
        raise SchemaRefusal(
            "S7",
            f"crowding cannot have rho = {self.rho} and delta = {self.delta}.",
            why="the test that makes the bound hold for everybody is paid for like an answer.",
            fix="write crowding = { rho = 0.02, delta = 1e-9 }.",
        )

    def to_json(self) -> dict[str, str]:
        """What is paid, exactly."""
        return {"rho": str(self.rho), "delta": str(self.delta)}


def check_population(value: object) -> int | None:
    """``value``, if it says how many units there are, or that nobody said so."""
    if value is None or (type(value) is int and value >= 1):
        return value
    raise SchemaRefusal(
        "S2",
        f"population cannot be {quote_value(value)}.",
        why="it says among how many a person is hidden if delta fails them.",
        fix="write about how many units there are, as a whole number: population = 20000.",
    )


_READ = "what is read of a person's row must be known beforehand, whatever the row holds."


_LEAST_STEP = Fraction(1, 2**60)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table, as declared: its ``name`` and its ``kind``.

    Numbers and times are moved between ``low`` and ``high``; what is none of ``values`` is read as
    NULL, and NULL as the low bound or the first value unless the column is ``nullable``.

    ``values_from`` names a column of a public table that lists the allowed
    values.  ``grid`` is the step of which a number's values are multiples: they are
    measured in it, and chosen from its multiples.  By default a 2**-20th part of the
    range, at most, or one.  ``per_unit``: it is the unit's, not the row's, so that all
    rows of a unit are read with the value of one of them.

    ``time_zone`` is whose clocks a date or timestamp shows: what is stored with a zone or an
    offset is read as they show it, and what is stored without either as it stands.
    """

    name: str
    kind: Kind
    low: Value | None = None
    high: Value | None = None
    values: tuple[Value, ...] | None = None
    values_from: tuple[str, str] | None = None
    nullable: bool = True
    grid: Fraction | None = None
    per_unit: bool = False
    time_zone: str | None = None
    domain: Domain = field(init=False, compare=False, repr=False)
    """What is known of a value read through this declaration.

    >>> Column("age", Kind.INTEGER, 0, 120).domain.high
    Fraction(120, 1)
    """

    def __post_init__(self) -> None:
        check_name(self.name, "column")
        if self.values is not None:
            object.__setattr__(self, "values", tuple(self.values))
            self._check_values(self.values)
        if self.low is not None or self.high is not None:
            self._check_bounds()
        if self.grid is not None:
            self._check_grid(self.grid)
        if self.time_zone is not None:
            self._check_zone(self.time_zone)
        object.__setattr__(self, "domain", _domain(self))

    def _check_zone(self, zone: str) -> None:
        if not self.kind.is_time:
            raise SchemaRefusal(
                "S3",
                f"column {self.name!r} is {self.kind.value}, which has no time zone.",
                why=_READ,
                fix="remove time_zone, or declare the column a timestamp.",
            )
        if not is_zone(zone):
            raise SchemaRefusal(
                "S3",
                f"column {self.name!r} has time_zone = {quote_value(zone)}, "
                "which names no time zone.",
                why=_READ,
                fix='write a name of the time zone database: time_zone = "Europe/Paris" or "UTC".',
            )

    def _check_values(self, values: tuple[Value, ...]) -> None:
        wrong = [v for v in values if not _of_kind(v, self.kind)]
        if wrong:
            raise SchemaRefusal(
                "S4",
                f"column {self.name!r} is {self.kind.value}, and {quote_value(wrong[0])} is not.",
                why=_READ,
                fix=f"list values of kind {self.kind.value}, or change the type.",
            )
        if not values or len(set(map(_identity, values))) < len(values):
            raise SchemaRefusal(
                "S4",
                f"column {self.name!r} lists "
                + ("no values." if not values else "a value more than once."),
                why="the list says which groups exist, each once.",
                fix="list each allowed value once.",
            )
        if self.low is not None or self.high is not None or self.values_from is not None:
            _find_contradiction(self.name)

    def _check_bounds(self) -> None:
        if self.kind in (Kind.TEXT, Kind.BOOLEAN):
            raise SchemaRefusal(
                "S3",
                f"column {self.name!r} is {self.kind.value}, which has no bounds.",
                why=_READ,
                fix="list its values instead: values = [...].",
            )
        low, high = self.low, self.high
        if low is None or high is None:
            raise SchemaRefusal(
                "S3",
                f"column {self.name!r} has one bound only.",
                why="without the other, one person could still add any amount.",
                fix="declare both: bounds = [low, high].",
            )
        if self.values_from is not None:
            _find_contradiction(self.name)
        wrong = [v for v in (low, high) if not _of_kind(v, self.kind)]
        if wrong:
            raise SchemaRefusal(
                "S3",
                f"column {self.name!r} is {self.kind.value}, and its bound {quote_value(wrong[0])} "
                "is not.",
                why=_READ,
                fix=f"give bounds of kind {self.kind.value}.",
            )
        least, most = number_of(low), number_of(high)
        if least is None or most is None or least >= most:
            raise SchemaRefusal(
                "S3",
                f"column {self.name!r} has bounds {quote_value(low)} and {quote_value(high)}, "
                "with nothing between.",
                why="values are moved into the bounds, so that all would become the same.",
                fix="give the smaller bound first and a larger one second.",
            )

    def _check_grid(self, grid: Fraction) -> None:
        fits = self.kind is Kind.DECIMAL or (self.kind is Kind.INTEGER and grid.denominator == 1)
        if fits and _LEAST_STEP <= grid <= 1 / _LEAST_STEP:
            return
        raise SchemaRefusal(
            "S3",
            f"column {self.name!r} cannot be measured in steps of {grid}.",
            why="a step is a positive amount of which every value is a multiple.",
            fix="give a number a step such as 100 or 0.01 (a whole one for integers), or none.",
        )

    @property
    def ends(self) -> tuple[Value, Value] | None:
        """The least and the greatest value, as constants of the column's kind, if declared."""
        low, high = self.domain.low, self.domain.high
        if low is None or high is None:
            return None
        return value_at(self.kind, low), value_at(self.kind, high)

    @property
    def instead_of_null(self) -> Value:
        """What is read where a column declared never NULL holds NULL (or nonsense)."""
        if self.kind is Kind.BOOLEAN:
            return False
        if self.values:
            return self.values[0]
        ends = self.ends
        if ends is None:
            raise ValueError(f"column {self.name!r} has no public value to put in NULL's place")
        return ends[0]


@lru_cache(maxsize=1024)
def _domain(column: Column) -> Domain:
    if column.kind is Kind.BOOLEAN:
        return boolean(nullable=column.nullable)
    if column.values is not None:
        listed = domain_of_values(column.kind, column.values, nullable=column.nullable)
        return listed if column.time_zone is None else replace(listed, zone=column.time_zone)
    low = None if column.low is None else number_of(column.low)
    high = None if column.high is None else number_of(column.high)
    # Without bounds or values there is nothing public to put in NULL's place.
    nullable = column.nullable or low is None
    return Domain(
        column.kind, low, high, nullable=nullable, step=column.grid, zone=column.time_zone
    )


def _find_contradiction(name: str) -> None:
    raise SchemaRefusal(
        "S4",
        f"column {name!r} has more than one of bounds, values and values_from.",
        why="what is read of a person's row must be one thing.",
        fix="keep one of them.",
    )


def _of_kind(value: object, kind: Kind) -> bool:
    """Whether a constant is one of the kind's, in the engine too."""
    if not isinstance(value, Value):
        return False
    own = kind_of(value)
    if kind is Kind.DECIMAL and own is Kind.INTEGER:
        return to_double(Fraction(value)) is not None  # type: ignore[arg-type]
    if own is not kind:
        return False
    if kind is Kind.INTEGER:
        return -(2**63) <= value < 2**63  # type: ignore[operator]
    if kind is Kind.DECIMAL:
        return number_of(value) is not None
    if kind is Kind.TIMESTAMP:
        return value.tzinfo is None  # type: ignore[union-attr]
    return kind is not Kind.TEXT or _is_text(value)


def _is_text(value: object) -> bool:
    """A half of a surrogate pair is a Python string, but not a text anywhere else."""
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return False
    return True


def _identity(value: Value) -> object:
    """What the engine would compare: numbers as numbers, texts as texts."""
    number = number_of(value)
    return value if number is None else number


def check_name(name: object, what: str) -> None:
    """Refuse a name that could not be written in a question."""
    if (
        isinstance(name, str)
        and name.isprintable()
        and 0 < len(name) <= 128
        and name.strip() == name
    ):
        return
    raise SchemaRefusal(
        "S2",
        f"{quote_value(name)} cannot be the name of a {what}.",
        why="questions must be able to name it.",
        fix="use a printable name of at most 128 characters without spaces around it.",
    )


def check_limit(name: str, limit: object, who: str) -> None:
    """Refuse a limit per unit, if there is one, that is not a whole number from 1."""
    if limit is None or (type(limit) is int and 1 <= limit <= 2**31):
        return
    raise SchemaRefusal(
        "S7",
        f"{who} has {name} = {quote_value(limit)}.",
        why="it bounds how much of one person is counted.",
        fix=f"give a whole number of at least 1, such as {name} = 20.",
    )


@dataclass(frozen=True, slots=True)
class Table:
    """One table, its ``name`` and ``columns``: private with a unit, or public (``unit`` is None).

    Of one unit at most ``max_rows_per_unit`` rows are read, and it is counted in at most
    ``max_groups_per_unit`` groups unless a question says otherwise.  ``blocks`` are columns by
    which the budget is kept apart, and ``source`` is where the rows are; ``version`` names what a
    table of a server holds, by the word of whoever declares it.

    Two private tables are about the same people if their ``entity`` is the
    same; by default that is the names of the unit's columns.  ``unique`` lists
    keys of a public table, each a set of columns that no two rows share; the
    engine checks them when it opens the table.

    ``owners`` says whether the unit's two columns name one unordered pair, which is protected, or
    two people, each of whom is.  Of two people at most ``max_rows_per_pair`` rows are read that
    they share, and ``crowding`` is what the test costs without which such a table stays closed.
    """

    name: str
    columns: tuple[Column, ...]
    unit: tuple[str, ...] | None = None
    max_rows_per_unit: int | None = None
    max_groups_per_unit: int | None = None
    blocks: tuple[str, ...] = ()
    source: str | None = None
    entity: str | None = None
    unique: tuple[tuple[str, ...], ...] = ()
    owners: Owners = Owners.ONE
    max_rows_per_pair: int | None = None
    crowding: Crowding | None = None
    version: str | None = None
    public: bool = field(init=False, compare=False, repr=False)
    """Whether nobody in particular is in it."""
    by_row: bool = field(init=False, compare=False, repr=False)
    """Whether every row is a unit of its own."""
    per_unit: tuple[str, ...] = field(init=False, compare=False, repr=False)
    """The columns that are declared to be the unit's, and not the row's."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "public", self.unit is None)
        object.__setattr__(self, "by_row", self.unit == ROW)
        own = tuple(column.name for column in self.columns if column.per_unit)
        object.__setattr__(self, "per_unit", own)
        check_name(self.name, "table")
        self._check_columns()
        self._check_limits()
        self._check_version()
        if self.unit is None:
            self._check_public()
        else:
            self._check_private(self.unit)

    def column(self, name: str) -> Column | None:
        """The column of that ``name``, if declared."""
        return next((c for c in self.columns if c.name == name), None)

    def _check_columns(self) -> None:
        seen: set[str] = set()
        for column in self.columns:
            if column.name.lower() in seen:
                raise SchemaRefusal(
                    "S2",
                    f"table {self.name!r} declares column {column.name!r} twice.",
                    why="SQL does not tell capital from small letters, and what is read of a "
                    "person's row must be one thing.",
                    fix="keep one of them.",
                )
            seen.add(column.name.lower())

    def _check_limits(self) -> None:
        for name in ("max_rows_per_unit", "max_groups_per_unit", "max_rows_per_pair"):
            check_limit(name, getattr(self, name), f"table {self.name!r}")

    def _check_version(self) -> None:
        version, source = self.version, self.source
        if version is None:
            return
        if not version.strip() or len(version) > _MOST_VERSION or not version.isprintable():
            raise SchemaRefusal(
                "S2",
                f"table {self.name!r} declares a version that is no short name.",
                why="by it answers are found again that were paid for.",
                fix='write one such as version = "2024-03", and another whenever a row changes.',
            )
        if source is not None and not source.startswith(("postgresql://", "postgres://")):
            raise SchemaRefusal(
                "S5",
                f"table {self.name!r} declares a version, and its source tells its own.",
                why="what was answered of other people's rows would be shown for these.",
                fix="remove version; it is for tables of PostgreSQL.",
            )

    def _check_public(self) -> None:
        private = [
            name
            for name in (
                *("max_rows_per_unit", "max_groups_per_unit", "entity"),
                *("max_rows_per_pair", "crowding", "version"),
            )
            if getattr(self, name) is not None
        ] + (["blocks"] if self.blocks else [])
        if private:
            raise SchemaRefusal(
                "S5",
                f"table {self.name!r} is public and declares {private[0]}.",
                why="that speaks of people, and a public table is about nobody.",
                fix=f"remove {private[0]}, or declare the unit whose rows these are.",
            )
        for key in self.unique:
            self._check_named("unique", key)

    def _check_private(self, unit: tuple[str, ...]) -> None:
        if self.unique:
            raise SchemaRefusal(
                "S5",
                f"table {self.name!r} is private and declares unique keys.",
                why="they would be checked against people's rows, and the outcome would show.",
                fix="remove unique; max_rows_per_unit = 1 says that a unit has one row.",
            )
        self._check_named("blocks", self.blocks)
        self._check_owners(unit)
        if self.by_row:
            if self.column("row") is not None:
                raise SchemaRefusal(
                    "S5",
                    f"table {self.name!r} has unit 'row' and a column of that name.",
                    why="it must be clear whose each row is.",
                    fix="give the column another name in a view of the data.",
                )
            if self.max_rows_per_unit not in (None, 1):
                raise SchemaRefusal(
                    "S7",
                    f"table {self.name!r} has every row for a unit and max_rows_per_unit = "
                    f"{self.max_rows_per_unit}.",
                    why="a row has one row.",
                    fix="remove max_rows_per_unit, or name the column that identifies a person.",
                )
            return
        self._check_named("unit", unit)
        for column in self.columns:
            if column.name in unit and column.time_zone is not None:
                raise SchemaRefusal(
                    "S5",
                    f"the unit of table {self.name!r} holds {column.name!r}, which has a time "
                    "zone.",
                    why="clocks show an hour twice in autumn, and two people would be one.",
                    fix="remove time_zone from it: it is compared as it is stored.",
                )
            if column.name in unit and column.kind is Kind.DECIMAL:
                raise SchemaRefusal(
                    "S5",
                    f"the unit of table {self.name!r} holds the decimal {column.name!r}.",
                    why="decimals that print alike may differ, and one person would be two.",
                    fix="identify people by an integer, a text, a date or a timestamp.",
                )

    def _check_owners(self, unit: tuple[str, ...]) -> None:
        """Refuse rows of two people for whom nothing is proved (docs/proofs/graphs.md)."""
        shared = [
            name for name in ("max_rows_per_pair", "crowding") if getattr(self, name) is not None
        ]
        if self.owners is not Owners.ANY and shared:
            raise SchemaRefusal(
                "S12",
                f"table {self.name!r} declares {shared[0]}, and its rows have one owner.",
                why="that speaks of people who share rows.",
                fix=f"remove {shared[0]}, or declare both owners: "
                'unit = { any = ["sender", "receiver"] }.',
            )
        if self.owners is Owners.ONE:
            return
        self._check_two(unit)
        if self.owners is Owners.PAIR and self.entity is not None:
            raise SchemaRefusal(
                "S12",
                f"table {self.name!r} has unit pair and names an entity.",
                why="a person in several pairs loses for each of them what would be counted once.",
                fix="remove entity, or protect both people: unit = { any = [...] }.",
            )
        wrong = [n for n in self.per_unit if n in unit or self.owners is Owners.ANY]
        if wrong:
            raise SchemaRefusal(
                "S12",
                f"table {self.name!r} has unit {self.owners.value} and declares per_unit for "
                f"{wrong[0]!r}.",
                why="a row of two people would say of one what is the other's.",
                fix="remove per_unit, and keep what is a person's in a table of their own.",
            )
        if self.blocks and (self.owners is Owners.ANY or set(self.blocks) & set(unit)):
            raise SchemaRefusal(
                "S12",
                f"table {self.name!r} has unit {self.owners.value} and blocks.",
                why="a row of two people may lie in the blocks of both.",
                fix="remove blocks: then every question is about everybody.",
            )
        if self.owners is Owners.ANY:
            self._check_any()

    def _check_two(self, unit: tuple[str, ...]) -> None:
        how = self.owners.value
        if len(unit) > 2:
            raise SchemaRefusal(
                "S12",
                f"table {self.name!r} names {len(unit)} owners.",
                why="a person's leaving would let in rows of people who never met them, without "
                "limit.",
                fix="store one row per thing and person, and make the person the unit.",
            )
        if len(unit) < 2:
            raise SchemaRefusal(
                "S12",
                f"table {self.name!r} has unit {how} and names one column.",
                why="it must be clear whose each row is.",
                fix=f'name both: unit = {{ {how} = ["one", "other"] }}; or one owner: '
                'unit = "person".',
            )
        kinds = {c.kind for c in self.columns if c.name in unit}
        if len(kinds) > 1:
            raise SchemaRefusal(
                "S12",
                f"the owners of table {self.name!r} are of different kinds.",
                why="the same person on both sides would be two, and protected as neither.",
                fix="declare both columns with the same type.",
            )

    def _check_any(self) -> None:
        missing = [
            name
            for name in ("max_rows_per_unit", "max_rows_per_pair", "entity", "crowding")
            if getattr(self, name) is None
        ]
        why = {
            "max_rows_per_unit": "one person could stand in any number of other people's rows.",
            "max_rows_per_pair": "two people could share any number of rows, and the leaving of "
            "one would let in as many of the other's.",
            "entity": "nobody could say in which other tables the same people are.",
            "crowding": "the bound holds for everybody only where few people stand in too many "
            "rows, and to learn that is paid for.",
        }
        write = {
            "max_rows_per_unit": "max_rows_per_unit = 200, and max_rows_per_pair",
            "max_rows_per_pair": "max_rows_per_pair = 1",
            "entity": 'entity = "person"',
            "crowding": "crowding = { rho = 0.02, delta = 1e-9 }",
        }
        if missing:
            raise SchemaRefusal(
                "S12",
                f"table {self.name!r} has unit any and no {missing[0]}.",
                why=why[missing[0]],
                fix=f"declare {write[missing[0]]}.",
            )
        if (self.max_rows_per_pair or 0) > (self.max_rows_per_unit or 0):
            raise SchemaRefusal(
                "S12",
                f"table {self.name!r} has max_rows_per_pair above max_rows_per_unit.",
                why="then nobody could be in too many rows but by their rows with one other.",
                fix="declare a smaller max_rows_per_pair: l = max_rows_per_unit / "
                "max_rows_per_pair people may be in too many.",
            )
        if self.max_groups_per_unit is not None:
            raise SchemaRefusal(
                "S12",
                f"table {self.name!r} has unit any and max_groups_per_unit.",
                why="dropping one person's groups would let in another's.",
                fix="remove max_groups_per_unit.",
            )

    def _check_named(self, what: str, names: tuple[str, ...]) -> None:
        declared = [column.name for column in self.columns]
        if what == "unique" and not declared:
            return  # a public table whose columns are still to be read from it
        for name in names:
            if name not in declared:
                raise SchemaRefusal(
                    "S6",
                    f"{what} of table {self.name!r} names {quote_value(name)}, "
                    "which is not a declared column.",
                    why="what is not declared is not read.",
                    fix=f"declare it under [tables.{self.name}.columns], or use one of "
                    f"{', '.join(declared) or '(none declared)'}.",
                )
        if (what == "unit" and not names) or len(set(names)) < len(names):
            raise SchemaRefusal(
                "S5" if what == "unit" else "S6",
                f"{what} of table {self.name!r} "
                + ("names a column twice." if names else "names no column."),
                why="it must be clear whose each row is.",
                fix=f"name each column of {what} once.",
            )


# --- blocks ------------------------------------------------------------------------------------
#
# A block is a cell of declared values.  Every unit must lie in one of them, and its own rows must
# say in which: so the cells are listed beforehand, and one table (or the unit itself) says where
# a unit lies.  ``docs/proofs/blocks.md``.


_EPOCH = date(1970, 1, 1)
MOST_BLOCKS = 1_000_000
"""How many blocks one dataset may have: each has a balance of its own."""


def in_unit(table: Table) -> bool:
    """Whether the unit itself says in which block it lies."""
    return bool(table.blocks) and not table.by_row and set(table.blocks) <= set(table.unit or ())


def entity_of(table: Table) -> str:
    """Whom a private table is about."""
    if table.by_row:
        return f"rows of {table.name}"
    named = table.entity or ", ".join(table.unit or ())
    return f"pairs of {named}" if table.owners is Owners.PAIR else named


def has_null_cell(table: Table, column: Column) -> bool:
    """Whether NULL is a cell of a block column; a unit is never NULL, so of its own it is not."""
    return column.domain.nullable and column.name not in (table.unit or ())


def cell_count(table: Table, column: Column) -> int | None:
    """How many cells a block column has; None if that is not known (yet)."""
    domain = column.domain
    nullable = has_null_cell(table, column)
    if domain.values is not None:
        return len(domain.values) + nullable
    if column.kind not in (Kind.INTEGER, Kind.DATE) or domain.low is None or domain.high is None:
        return None
    return floor(domain.high) - ceil(domain.low) + 1 + nullable


def cell_values(table: Table, column: Column) -> tuple[Value | None, ...] | None:
    """The cells of a block column in their order, NULL last; None if they are not known (yet)."""
    count, domain = cell_count(table, column), column.domain
    if count is None:
        return None
    nullable = has_null_cell(table, column)
    listed = domain.values
    if listed is None:
        listed = _between(column.kind, ceil(domain.low or 0), count - nullable)
    elif column.kind is not Kind.TEXT:
        listed = tuple(sorted(listed, key=lambda value: number_of(value) or 0))
    return (*listed, None) if nullable else listed


def _between(kind: Kind, first: int, count: int) -> tuple[Value, ...]:
    if kind is Kind.INTEGER:
        return tuple(range(first, first + count))
    return tuple(_EPOCH + timedelta(days=day) for day in range(first, first + count))


def check_block_columns(table: Table) -> None:
    """Refuse block columns whose values cannot be listed; those to be read from a table later."""
    counts: list[int] = []
    for name in table.blocks:
        column = table.column(name)
        if column is None:
            continue  # refused as a name that is not declared
        count = cell_count(table, column)
        if count is None and column.values_from is None:
            raise SchemaRefusal(
                "S10",
                f"the blocks of table {table.name!r} cannot be listed: {name!r} has neither "
                "listed values nor whole steps between bounds.",
                why="each block has a balance of its own, so that the blocks must be known before "
                "anybody is in them.",
                fix=f"give {name!r} values = [...], or bounds if it is an integer or a date.",
            )
        counts.append(1 if count is None else count)
    _check_block_count(prod(counts), f"table {table.name!r} has")


def _check_block_count(count: int, who: str) -> None:
    if count > MOST_BLOCKS:
        raise SchemaRefusal(
            "S10",
            f"{who} {count} blocks, more than {MOST_BLOCKS}.",
            why="each block has a balance of its own, checked at every question.",
            fix="use fewer or coarser block columns: a month for a day, a region for a city.",
        )


def check_blocks(table: Table, tables: Mapping[str, Table], neighbours: Neighbours) -> None:
    """Refuse the blocks of ``table`` if one person could lie in two of them."""
    if not table.blocks:
        return
    if neighbours is not Neighbours.ADD_REMOVE:
        raise SchemaRefusal(
            "S11",
            f"table {table.name!r} declares blocks, and neighbours are {neighbours.value!r}.",
            why="a person who is changed may move from one block to another, and would lose in "
            "both.",
            fix="remove blocks, or declare neighbours = 'add/remove'.",
        )
    entity = entity_of(table)
    for other in tables.values():
        if not other.blocks or other.name == table.name or other.public:
            continue
        if entity_of(other) == entity and not _list_same_blocks(table, other):
            raise SchemaRefusal(
                "S11",
                f"tables {other.name!r} and {table.name!r} both declare blocks of {entity!r}.",
                why="each could say that the same person lies in another block, who would lose in "
                "both.",
                fix="declare blocks in one of the two; or, in both, the same columns of the unit "
                "with the same values.",
            )


def check_shared(tables: Mapping[str, Table], neighbours: Neighbours) -> None:
    """Refuse rows of two people where the rest of the schema has no proof for them."""
    for table in tables.values():
        if table.owners is not Owners.ANY:
            continue
        if neighbours is not Neighbours.ADD_REMOVE:
            raise SchemaRefusal(
                "S12",
                f"table {table.name!r} has unit any, and neighbours are {neighbours.value!r}.",
                why="a person who is changed would leave some people's rows and join others', and "
                "what that moves is not bounded here.",
                fix="declare neighbours = 'add/remove'.",
            )
        for other in tables.values():
            if other.blocks and not other.public and entity_of(other) == entity_of(table):
                raise SchemaRefusal(
                    "S12",
                    f"table {table.name!r} has unit any, and table {other.name!r} declares blocks "
                    "of the same people.",
                    why="a row of two people may lie in the blocks of both.",
                    fix=f"remove blocks from {other.name!r}.",
                )


def check_all_blocks(tables: Mapping[str, Table], neighbours: Neighbours) -> None:
    """Refuse blocks that one person could be in two of, or too many in all."""
    counted: dict[str, int] = {}
    for table in tables.values():
        check_block_columns(table)
        check_blocks(table, tables, neighbours)
        if table.blocks:
            columns = [c for name in table.blocks if (c := table.column(name)) is not None]
            counts = [cell_count(table, column) or 1 for column in columns]
            counted[entity_of(table)] = prod(counts)
    _check_block_count(sum(counted.values()), "the schema declares")


def _list_same_blocks(one: Table, other: Table) -> bool:
    """Whether both read a unit's block off the unit, and list the same blocks."""
    return in_unit(one) and in_unit(other) and _cells_of_unit(one) == _cells_of_unit(other)


def _cells_of_unit(table: Table) -> list[tuple[int, object]]:
    unit = table.unit or ()
    columns = [c for name in table.blocks if (c := table.column(name)) is not None]
    return [(unit.index(c.name), cell_values(table, c) or c.values_from) for c in columns]
