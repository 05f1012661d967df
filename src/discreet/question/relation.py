"""Relations: rows that know whom they belong to.

Every node keeps the unit of its source, so that each row of a private relation
belongs to exactly one unit, and a row exists (or has its values) because of its
unit's own rows and public tables only.  What has no such proof cannot be
written down: there is no node for a join of two people's rows, for LIMIT,
DISTINCT or sampling.  Lemmas: ``docs/proofs/ownership.md``.
"""

from __future__ import annotations

from enum import StrEnum

from discreet.exact.records import dataclass
from discreet.question.expressions import Expression
from discreet.question.schema import Table


class JoinKind(StrEnum):
    """Which rows survive without a partner: none, those of the left side, those of both.

    FULL is of a join on the unit only: a public row without a partner belongs to nobody.
    """

    INNER = "inner"
    LEFT = "left"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Source:
    """A private table, at most ``max_rows_per_unit`` rows of each unit; columns renamed uniquely.

    ``columns`` maps the name used in the relation to the table's column.
    """

    table: Table
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PublicSource:
    """A public table; owned by nobody.  Stands only to the right of a PublicJoin."""

    table: Table
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows where ``predicate`` is true."""

    source: Relation
    predicate: Expression


@dataclass(frozen=True, slots=True)
class Project:
    """New columns computed row by row; the unit is carried along unseen."""

    source: Relation
    columns: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class PublicJoin:
    """``left`` joined to a public table on equal columns; each row stays with ``left``'s unit.

    On no columns, every row meets every row of the public table.
    """

    left: Relation
    right: PublicSource
    on: tuple[tuple[Expression, str], ...]  # (expression on left, column name of right)
    kind: JoinKind = JoinKind.INNER


@dataclass(frozen=True, slots=True)
class UnitJoin:
    """Rows of ``left`` paired with rows of ``right`` that belong to the same unit.

    ``on`` may ask for further equal columns, as (name in left, name in right).
    """

    left: Relation
    right: Relation
    on: tuple[tuple[str, str], ...] = ()
    kind: JoinKind = JoinKind.INNER


@dataclass(frozen=True, slots=True)
class OwnerJoin:
    """Rows of two people, each with what ``right`` says of the one that ``owner`` names.

    ``right`` has one row for each person; whoever leaves takes along every row that shows theirs.
    """

    left: Relation
    right: Relation
    owner: str  # a column of left that names one of its two owners
    kind: JoinKind = JoinKind.INNER


class Shape(StrEnum):
    """What is looked for in a graph of pairs, and what the column of its rows is called.

    DEGREES has a row for each person and each number up to how many they are connected to;
    WEDGES one for each two connections of a person; TRIANGLES one for each three people who are
    all connected.
    """

    DEGREES = "degrees"
    WEDGES = "wedges"
    TRIANGLES = "triangles"

    @property
    def column(self) -> str:
        """The one column that its rows have."""
        return "corners" if self is Shape.TRIANGLES else "at_least"


@dataclass(frozen=True, slots=True)
class GraphRows:
    """What a table of pairs holds as a graph, of every person at most ``most`` connections.

    A row is there because of several pairs, so that none owns it; how many rows one pair
    changes is known (docs/proofs/graphs.md, Lemmas 7 and 8); of degrees also how many one person
    changes in rows that are of both (Lemma 9).
    """

    source: Source
    shape: Shape
    most: int
    name: str
    """What its column is called in the relation."""


@dataclass(frozen=True, slots=True)
class PerUnit:
    """One row for each unit (and each combination of ``keys``): aggregates of its own rows."""

    source: Relation
    keys: tuple[tuple[str, Expression], ...]
    aggregates: tuple[tuple[str, UnitAggregate], ...]


@dataclass(frozen=True, slots=True)
class UnitAggregate:
    """COUNT, COUNT_DISTINCT, SUM, MIN, MAX or AVG of one unit's rows; exact and bounded."""

    function: str
    argument: Expression | None = None  # None: COUNT(*)


@dataclass(frozen=True, slots=True)
class Windowed:
    """The rows of ``source`` with columns computed from the other rows of the same unit."""

    source: Relation
    columns: tuple[tuple[str, UnitWindow], ...]


@dataclass(frozen=True, slots=True)
class UnitWindow:
    """A window function over one unit's rows that agree on ``partition``, in an order.

    ``order`` says by what, and whether descending; rows that it does not tell apart are
    taken in the order of all their columns where that matters.  ``frame`` bounds the rows
    looked at, as places before (negative) and after this one, None being all; without a
    frame they are all up to this one and its equals, or all if nothing orders them.
    """

    function: str
    arguments: tuple[Expression, ...] = ()
    partition: tuple[Expression, ...] = ()
    order: tuple[tuple[Expression, bool], ...] = ()
    frame: tuple[int | None, int | None] | None = None


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of both (UNION ALL); both name the same columns and carry the same unit."""

    left: Relation
    right: Relation


Relation = (
    Source
    | Filter
    | Project
    | PublicJoin
    | UnitJoin
    | OwnerJoin
    | GraphRows
    | PerUnit
    | Windowed
    | Union
)
