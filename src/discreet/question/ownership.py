"""What a relation is: its columns and their domains, whose its rows are, how many one unit has.

Each case cites its lemma in ``docs/proofs/ownership.md``.  A relation that has no
typing here is refused: then nothing is known of who can change what.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from discreet.errors import QuestionRefusal
from discreet.exact.records import dataclass
from discreet.question.domain import Domain, Kind, Value, domain_of_values
from discreet.question.expressions import ColumnRef
from discreet.question.functions import Outcome, domain_of, narrow, references
from discreet.question.functions.declaration import common_kind, union_beyond
from discreet.question.own_rows import aggregate_domain, window_domain
from discreet.question.relation import (
    Filter,
    GraphRows,
    JoinKind,
    OwnerJoin,
    PerUnit,
    Project,
    PublicJoin,
    PublicSource,
    Relation,
    Shape,
    Source,
    Union,
    UnitJoin,
    UnitWindow,
    Windowed,
)
from discreet.question.schema import Neighbours, Owners, Schema, Table
from discreet.question.schema.tables import entity_of

Columns = Mapping[str, Domain]

Multiplicity = Callable[[Table, tuple[str, ...]], int | None]
"""How many rows of a public table can share these columns' values, as read; None if unknown."""


@runtime_checkable
class ListsValues(Protocol):
    """A multiplicity that also knows what columns of public tables hold."""

    def list_values(self, table: Table, column: str) -> tuple[Value | None, ...] | None:
        """Every value of a column, None being NULL; None if there are many."""
        ...


def find_declared_multiplicity(table: Table, key: tuple[str, ...]) -> int | None:
    """What the schema alone says: one row, if ``key`` covers a key declared unique."""
    return 1 if any(set(unique) <= set(key) for unique in table.unique) else None


@dataclass(frozen=True, slots=True)
class Unit:
    """Whom the rows belong to: two relations about the same entity share their people."""

    entity: str
    kinds: tuple[Kind, ...]  # of the columns that identify one; empty if every row is one
    owners: Owners = Owners.ONE

    @property
    def name(self) -> str:
        """What one of them is, as the schema says: what stands after "one" or "each".

        >>> Unit("src, dst", (Kind.TEXT, Kind.TEXT)).name, Unit("rows of visits", ()).name
        ('pair (src, dst)', 'row of visits')
        >>> Unit("pairs of src, dst", (Kind.TEXT, Kind.TEXT), Owners.PAIR).name
        'pair (src, dst)'
        """
        if self.owners is Owners.PAIR:
            return f"pair ({self.entity.removeprefix('pairs of ')})"
        if not self.kinds:
            return f"row{self.entity.removeprefix('rows')}"
        columns = self.entity.count(", ") + 1
        if 1 < columns == len(self.kinds):
            return f"{'pair' if columns == 2 else 'combination'} ({self.entity})"
        return self.entity


def unit(relation: Relation) -> Unit:
    """Whom each row of ``relation`` belongs to; refused if its parts are about different people."""
    match relation:
        case Source(table=table):  # Lemma 1: a row belongs to the unit it names.
            return unit_of(table)
        case (
            Filter(source=source)
            | Project(source=source)
            | PerUnit(source=source)
            | Windowed(source=source)
            | GraphRows(source=source)
        ):
            return unit(source)  # Lemmas 2, 3 and 6.
        case PublicJoin(left=left):  # Lemma 4: a public row has no owner to add.
            return unit(left)
        case UnitJoin(left=left, right=right):  # Lemma 5.
            _check_owned(left, right)
            return _find_shared_unit(unit(left), unit(right), by_row=False)
        case OwnerJoin(left=left):  # the proofs for graphs
            return unit(left)
        case Union(left=left, right=right):  # Lemma 7.
            _check_owned(left, right)
            return _find_shared_unit(unit(left), unit(right), by_row=True)


def unit_of(table: Table) -> Unit:
    """Whom the rows of a private table belong to."""
    if table.unit is None:
        raise QuestionRefusal(
            "Q26",
            f"table {table.name!r} is public and cannot be counted by itself.",
            why="it holds nobody's data, so there is nobody to protect and nothing to pay for.",
            fix="join it to a private table, or read it directly.",
        )
    if table.by_row:
        return Unit(f"rows of {table.name}", ())
    kinds = tuple(c.kind for name in table.unit for c in table.columns if c.name == name)
    if table.owners is Owners.ANY:
        kinds = kinds[:1]
    plain = table.entity is None and table.owners is Owners.ONE
    return Unit(", ".join(table.unit) if plain else entity_of(table), kinds, table.owners)


def has_two_owners(relation: Relation) -> bool:
    """Whether each row is of two people: then one's leaving may let in rows of others."""
    return unit(relation).owners is Owners.ANY


def reads_graph(relation: Relation) -> bool:
    """Whether its rows are degrees, wedges or triangles, which no pair owns by itself."""
    return any(isinstance(step, GraphRows) for step in _steps(relation))


def is_shared(relation: Relation) -> bool:
    """Whether rows are, or name, more than one person: only then is anything more to be checked."""
    named = owner_columns(relation) or owner_told(relation)
    return bool(named) or has_two_owners(relation) or reads_graph(relation)


def _check_owned(*relations: Relation) -> None:
    if any(map(reads_graph, relations)):
        raise QuestionRefusal(
            "Q52",
            "what a graph consists of is put together with other rows, or by its owners.",
            why="a degree is there because of several pairs, and none of them owns it.",
            fix="count them: SELECT at_least, COUNT(*) FROM DEGREES(friends, 50) GROUP BY "
            "at_least.",
        )


def gains_rows(relation: Relation) -> bool:
    """Whether rows come in the place of those that a unit takes along."""
    steps = list(_steps(relation))
    triangles = any(isinstance(s, GraphRows) and s.shape is Shape.TRIANGLES for s in steps)
    return triangles or has_two_owners(relation)


def row_changes(
    relation: Relation, multiplicity: Multiplicity | None = None
) -> tuple[int, int] | None:
    """How many rows at most are lost and gained as one unit leaves; None if nothing bounds it.

    Of one owner, or of a pair, its own rows are lost and none is gained.  Of two, as many as are
    read of one person are lost, and as many may come in their place (the proofs for graphs).
    """
    most = row_bound(relation, find_declared_multiplicity if multiplicity is None else multiplicity)
    if most is None:
        return None
    return most, most if gains_rows(relation) else 0


def find_neighbours(relation: Relation, declared: Neighbours) -> Neighbours:
    """As what a neighbour is priced: rows that go, or rows that go and others that come.

    Where rows have two owners, a person who leaves takes along at most so many rows as are read
    of one, and lets in at most as many: that is what a change of one unit moves, and it costs the
    same (the proofs for graphs).
    """
    if not gains_rows(relation):
        return declared
    if declared is Neighbours.CHANGE_ONE:
        raise QuestionRefusal(
            "Q52",
            "triangles are counted where a pair is changed, and not added or removed.",
            why="what a change lets in and takes along is not bounded here.",
            fix="ask for degrees, or have the curator declare neighbours = 'add/remove'.",
        )
    return Neighbours.CHANGE_ONE


def name_units(schema: Schema, text: str = "") -> str:
    """Whom a schema protects, after "each": its unit, or all of its units.

    Of several, those of the tables that a question's ``text`` names, if it names any.
    """
    private = [table for table in schema.tables.values() if not table.public]
    words = set(re.findall(r"\w+", text.casefold()))
    named = [table for table in private if table.name.casefold() in words]
    *others, last = sorted({unit_of(table).name for table in named or private}) or ["unit"]
    return f"{', '.join(others)} or {last}" if others else last


def _find_shared_unit(left: Unit, right: Unit, *, by_row: bool) -> Unit:
    if left == right and (by_row or (left.kinds and left.owners is not Owners.ANY)):
        return left
    if Owners.ANY in (left.owners, right.owners) and left.entity == right.entity and not by_row:
        raise QuestionRefusal(
            "Q52",
            "a table whose rows have two owners is joined by something else than one of them.",
            why="a row made of the rows of three people would belong to all of them.",
            fix="join a table with one row for each person on one owner: JOIN people AS p ON "
            "p.person = m.sender.",
        )
    raise QuestionRefusal(
        "Q18",
        _tell_apart(left, right),
        why="a row made of two people's rows would show each of them through the other.",
        fix="join tables that have the same unit on that unit; if these two do, give both the "
        "same entity in the schema.",
    )


def _tell_apart(left: Unit, right: Unit) -> str:
    """Why the rows of two sides do not belong to the same people."""
    if left.entity != right.entity:
        return f"the two sides are not about the same people: {left.entity!r} and {right.entity!r}."
    if left.owners is not right.owners:
        words = {Owners.ONE: "one each", Owners.PAIR: "a pair", Owners.ANY: "two each"}
        return (
            f"rows of the two sides belong to {left.entity!r} in different ways: to "
            f"{words[left.owners]} and to {words[right.owners]}."
        )
    if left.kinds != right.kinds:
        return f"the two sides name {left.entity!r} by values of different types."
    return f"each of {left.entity!r} is by itself, and two of them are put together."


def unit_columns(relation: Relation) -> tuple[str | None, ...]:
    """Under which names the unit's columns are visible, in the unit's order; None if not."""
    match relation:
        case GraphRows():
            return (None, None)
        case Source(table=table, columns=named):
            if table.by_row or table.unit is None:
                return ()
            if table.owners is not Owners.ONE:  # neither column says by itself whose a row is
                return tuple(None for _ in table.unit)
            names = {column: name for name, column in reversed(named)}
            return tuple(names.get(column) for column in table.unit)
        case Filter(source=source) | Windowed(source=source):
            return unit_columns(source)
        case Project(source=source, columns=named) | PerUnit(source=source, keys=named):
            kept = {e.name: name for name, e in reversed(named) if isinstance(e, ColumnRef)}
            return tuple(None if c is None else kept.get(c) for c in unit_columns(source))
        case UnitJoin(left=left, kind=JoinKind.FULL):  # NULL on the rows of the right side alone
            return tuple(None for _ in unit_columns(left))
        case PublicJoin(left=left) | UnitJoin(left=left) | OwnerJoin(left=left):
            return unit_columns(left)
        case Union(left=left, right=right):
            pairs = zip(unit_columns(left), unit_columns(right), strict=True)
            return tuple(a if a == b else None for a, b in pairs)


def owner_columns(relation: Relation) -> Mapping[str, int]:
    """The columns that name one of two owners as they are, and which of the two."""
    match relation:
        case GraphRows():
            return {}
        case Source(table=table, columns=named):
            if table.owners is Owners.ONE or table.unit is None:
                return {}
            return {n: table.unit.index(column) for n, column in named if column in table.unit}
        case Filter(source=source) | Windowed(source=source):
            return owner_columns(source)
        case Project(source=source, columns=named) | PerUnit(source=source, keys=named):
            below = owner_columns(source)
            refs = ((n, e.name) for n, e in named if isinstance(e, ColumnRef))
            return {name: below[column] for name, column in refs if column in below}
        case PublicJoin(left=left) | UnitJoin(left=left) | OwnerJoin(left=left):
            return owner_columns(left)
        case Union(left=left, right=right):
            one, other = owner_columns(left), owner_columns(right)
            return {name: place for name, place in one.items() if other.get(name) == place}


def owner_told(relation: Relation) -> frozenset[str]:
    """The columns that are computed of the names of a row's two owners."""
    match relation:
        case GraphRows():
            return frozenset()
        case Source():
            return frozenset(owner_columns(relation))
        case Filter(source=source):
            return owner_told(source)
        case Windowed(source=source, columns=windows):
            below = owner_told(source)
            return below | frozenset(name for name, w in windows if _window_reads(w) & below)
        case Project(source=source, columns=named):
            below = owner_told(source)
            return frozenset(name for name, e in named if references(e) & below)
        case PerUnit(source=source, keys=named, aggregates=aggregates):
            below = owner_told(source)
            told = frozenset(name for name, e in named if references(e) & below)
            return told | frozenset(
                name
                for name, a in aggregates
                if a.argument is not None and references(a.argument) & below
            )
        case PublicJoin(left=left):
            return owner_told(left)
        case UnitJoin(left=left, right=right) | OwnerJoin(left=left, right=right):
            return owner_told(left) | owner_told(right)
        case Union(left=left, right=right):
            return owner_told(left) | owner_told(right)


def _window_reads(window: UnitWindow) -> frozenset[str]:
    read = (*window.arguments, *window.partition, *(key for key, _ in window.order))
    return frozenset(name for expression in read for name in references(expression))


def constant_columns(
    relation: Relation, multiplicity: Multiplicity | None = None
) -> frozenset[str]:
    """The columns that are the same on all rows of a unit, as the engine enforces (Lemma 13).

    Those by which the unit is known, and those that the table declares to be the unit's.
    """
    known = find_declared_multiplicity if multiplicity is None else multiplicity
    if has_two_owners(relation) or reads_graph(relation):
        return frozenset()
    if row_bound(relation, known) == 1:
        return frozenset(columns(relation, known))
    match relation:
        case Source(table=table, columns=named):
            # A pair may be turned around: neither of its columns is the same on all its rows.
            named_by = table.unit if table.owners is Owners.ONE else ()
            declared = {*(named_by or ()), *table.per_unit}
            return frozenset(name for name, column in named if column in declared)
        case Filter(source=source) | Windowed(source=source):
            return constant_columns(source, known)
        case Project(source=source, columns=named) | PerUnit(source=source, keys=named):
            own = constant_columns(source, known)
            return frozenset(name for name, e in named if references(e) <= own)
        case PublicJoin(left=left, right=right, on=on):
            own = constant_columns(left, known)
            names = dict(right.columns)
            most = known(right.table, tuple(names[column] for _, column in on))
            if most == 1 and all(references(e) <= own for e, _ in on):
                return own | frozenset(names)
            return own
        case UnitJoin(left=left, right=right, kind=kind):
            if kind is JoinKind.FULL:  # NULL on rows that have no partner
                return frozenset()
            own = constant_columns(left, known)
            return own | constant_columns(right, known) if kind is JoinKind.INNER else own
        case Union() | OwnerJoin() | GraphRows():
            return frozenset()


def are_told_apart(
    relation: Relation, names: frozenset[str], multiplicity: Multiplicity | None = None
) -> bool:
    """Whether no two rows of one unit agree on these columns: DISTINCT, or GROUP BY, of its own.

    A row of ``PerUnit`` is one combination of its keys; which of them are the same on all rows of
    a unit need not be looked at (price.md, Lemma 12).
    """
    known = find_declared_multiplicity if multiplicity is None else multiplicity
    if is_shared(relation):
        return False
    match relation:
        case Filter(source=source) | Windowed(source=source):
            return are_told_apart(source, names, known)
        case Project(source=source, columns=named):
            kept = (e.name for name, e in named if name in names and isinstance(e, ColumnRef))
            return are_told_apart(source, frozenset(kept), known)
        case PerUnit(keys=keys):
            return {name for name, _ in keys} <= names | constant_columns(relation, known)
    return row_bound(relation, known) == 1


# --- how many rows -------------------------------------------------------------------------


def row_bound(
    relation: Relation, multiplicity: Multiplicity = find_declared_multiplicity
) -> int | None:
    """How many rows one unit can have at most; None if nothing bounds it."""
    match relation:
        case GraphRows(source=Source(table=table), shape=shape, most=looked_at):
            # Of the proofs for graphs, the last three.
            if table.owners is Owners.ANY:
                return _product(2, table.max_rows_per_unit)
            return 2 if shape is Shape.DEGREES else 2 * (looked_at - 1)
        case Source(table=table):  # Lemma 1: enforced where the table is read.
            return 1 if table.by_row else table.max_rows_per_unit
        case Filter(source=source) | Project(source=source) | Windowed(source=source):
            # Lemmas 2, 3 and 12.
            return row_bound(source, multiplicity)
        case PublicJoin(left=left, right=right, on=on):  # Lemma 4.
            names = dict(right.columns)
            most = multiplicity(right.table, tuple(names[column] for _, column in on))
            return _product(row_bound(left, multiplicity), None if most is None else max(most, 1))
        case UnitJoin(left=left, right=right, on=on, kind=kind):  # Lemma 5.
            sides = row_bound(left, multiplicity), row_bound(right, multiplicity)
            most = _product(*sides)
            if most is None or kind is not JoinKind.FULL or not on:
                return most
            return max(most, sum(side for side in sides if side is not None))
        case OwnerJoin(left=left):  # proofs for graphs: one partner, or none, for each row
            return row_bound(left, multiplicity)
        case PerUnit(source=source, keys=keys):  # Lemma 6: a unit's own columns are one key.
            own = unit_columns(source)
            constant = all(isinstance(e, ColumnRef) and e.name in own for _, e in keys)
            return 1 if constant else row_bound(source, multiplicity)
        case Union(left=left, right=right):  # Lemma 7.
            bounds = row_bound(left, multiplicity), row_bound(right, multiplicity)
            return None if None in bounds else sum(b for b in bounds if b is not None)


def _product(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left * right


def check_joined_rows(
    relation: Relation, ceiling: int, multiplicity: Multiplicity = find_declared_multiplicity
) -> None:
    """Refuse a relation in which, at any step, one unit could have more than ``ceiling`` rows.

    How long a question takes, and whether it fails, is seen by the analyst and paid for by
    nobody.  So what one unit's rows can make of it is bounded like an answer is: by public
    knowledge, before anything is read, and not only at the end, where contributions are cut.
    A table's own bound is the curator's word; what multiplies it is the analyst's.
    """
    joins = [step for step in _steps(relation) if isinstance(step, PublicJoin | UnitJoin | Union)]
    for step in joins:
        if not isinstance(step, Union):  # a union adds: each row is still one that was read
            _check_bounded_sides(step, multiplicity)
    most = max((row_bound(step, multiplicity) or 0 for step in joins), default=0)
    if most <= ceiling:
        return
    raise QuestionRefusal(
        "Q45",
        f"the joins could make {most:,} rows of one person, and at most {ceiling:,} are allowed.",
        why="the work would be so much more for some people than for others that the time it "
        "takes, or that it fails, could tell who they are.",
        fix="join fewer tables, or one row for each person: JOIN (SELECT the unit, ... GROUP BY "
        "the unit). The curator may declare a smaller max_rows_per_unit for the tables, or "
        "max_joined_rows_per_unit for the schema.",
        declaration=f"max_joined_rows_per_unit = {most}",
    )


def _steps(relation: Relation) -> Iterator[Relation]:
    """A relation and all that it is made of, public tables left out."""
    waiting: list[Relation] = [relation]
    while waiting:
        step = waiting.pop()
        yield step
        match step:
            case Filter(source=source) | Project(source=source) | PerUnit(source=source):
                waiting.append(source)
            case Windowed(source=source) | GraphRows(source=source):
                waiting.append(source)
            case PublicJoin(left=left):
                waiting.append(left)
            case (
                UnitJoin(left=left, right=right)
                | OwnerJoin(left=left, right=right)
                | Union(left=left, right=right)
            ):
                waiting += [left, right]


def list_tables(relation: Relation) -> frozenset[Table]:
    """The private tables whose rows a relation is made of."""
    return frozenset(step.table for step in _steps(relation) if isinstance(step, Source))


def _check_bounded_sides(join: PublicJoin | UnitJoin, multiplicity: Multiplicity) -> None:
    """Refuse a join that multiplies rows of which nobody has said how many there are.

    One partner for each row multiplies nothing, so the other side may be as long as it is.
    """
    left = row_bound(join.left, multiplicity)
    if isinstance(join, UnitJoin):
        right = row_bound(join.right, multiplicity)
    else:
        names = dict(join.right.columns)
        right = multiplicity(join.right.table, tuple(names[column] for _, column in join.on))
    sides = [side for side in (left, right) if side is not None]
    if len(sides) == 2 or (len(sides) == 1 and sides[0] <= 1):
        return
    raise QuestionRefusal(
        "Q41",
        "nothing says how many rows one person can have in this join.",
        why="the work would grow with the rows that one person has, multiplied, and the time it "
        "takes, or that it fails, could tell who has many.",
        fix="declare max_rows_per_unit for the tables, or join one row for each person: "
        "JOIN (SELECT the unit, ... GROUP BY the unit).",
    )


# --- columns -------------------------------------------------------------------------------


Seen = Mapping[int, tuple[object, Columns]]
"""Relations by their identity, each with itself and with its columns."""


def columns(
    relation: Relation | PublicSource,
    multiplicity: Multiplicity = find_declared_multiplicity,
    seen: Seen = MappingProxyType({}),
) -> Columns:
    """The columns of ``relation`` and what each can be (Lemma 8), or a refusal.

    What was ``seen`` before is not computed again: of sub-queries within each other each is read.
    """
    found = seen.get(id(relation))
    if found is not None and found[0] is relation:
        return found[1]
    return _compute_columns(relation, multiplicity, seen)


def _compute_columns(
    relation: Relation | PublicSource, multiplicity: Multiplicity, seen: Seen
) -> Columns:
    match relation:
        case Source(table=table, columns=named):
            return _check_distinct((name, _find_domain(table, column)) for name, column in named)
        case PublicSource(table=table, columns=named):
            return _check_distinct(
                (name, _find_held_domain(table, column, multiplicity)) for name, column in named
            )
        case Filter(source=source, predicate=predicate):
            known = columns(source, multiplicity, seen)
            _check_condition(domain_of(predicate, known))
            return narrow(known, predicate, Outcome.TRUE)
        case Project(source=source, columns=computed):
            known = columns(source, multiplicity, seen)
            return _check_distinct((name, domain_of(e, known)) for name, e in computed)
        case PublicJoin():
            return _public_join(relation, multiplicity, seen)
        case UnitJoin() | OwnerJoin():
            return _private_join(relation, multiplicity, seen)
        case GraphRows():
            return _graph_rows(relation)
        case PerUnit():
            return _per_unit(relation, multiplicity, seen)
        case Windowed():
            return _follow_windows(relation, multiplicity, seen)
        case Union(left=left, right=right):
            unit(relation)
            return _union(columns(left, multiplicity, seen), columns(right, multiplicity, seen))


def _find_domain(table: Table, name: str) -> Domain:
    for column in table.columns:
        if column.name == name:
            return column.domain
    raise QuestionRefusal(
        "Q7",
        f"table {table.name!r} has no column {name!r}.",
        why="what is not declared is not read.",
        fix=f"use one of {', '.join(c.name for c in table.columns)}.",
    )


def _find_held_domain(table: Table, name: str, multiplicity: Multiplicity) -> Domain:
    """What a column of a public table holds, where it is known and not declared: it is public."""
    declared = _find_domain(table, name)
    listable = declared.kind in (Kind.TEXT, Kind.INTEGER, Kind.DATE)
    if not listable or declared.bounded or declared.values is not None:
        return declared
    if not isinstance(multiplicity, ListsValues) or not table.public:
        return declared
    found = multiplicity.list_values(table, name)
    if found is None:
        return declared
    values = [value for value in found if value is not None]
    return domain_of_values(declared.kind, values, nullable=None in found)


def _check_distinct(named: Iterable[tuple[str, Domain]]) -> Columns:
    found: dict[str, Domain] = {}
    for name, domain in named:
        if name in found:
            raise QuestionRefusal(
                "Q8",
                f"two columns are called {name!r}.",
                why="what is counted must be one thing.",
                fix="rename one of them with AS.",
            )
        found[name] = domain
    return found


def _check_condition(domain: Domain) -> None:
    if domain.kind is not Kind.BOOLEAN:
        raise QuestionRefusal(
            "Q10",
            f"a condition must be true or false, not {domain.kind.value}.",
            why="a row is kept because of a condition that is defined for every row.",
            fix="compare it with something, as in x > 0.",
        )


def _join_columns(left: Columns, right: Columns, kind: JoinKind) -> Columns:
    if kind is not JoinKind.INNER:
        right = {name: domain.with_null() for name, domain in right.items()}
    if kind is JoinKind.FULL:
        left = {name: domain.with_null() for name, domain in left.items()}
    return _check_distinct((*left.items(), *right.items()))


def _public_join(join: PublicJoin, multiplicity: Multiplicity, seen: Seen) -> Columns:
    left, right = columns(join.left, multiplicity, seen), columns(join.right, multiplicity, seen)
    if join.kind is JoinKind.FULL:
        raise QuestionRefusal(
            "Q19",
            f"FULL JOIN with the public table {join.right.table.name!r} is outside the dialect.",
            why="a public row without a partner belongs to nobody, and no unit's rows bound it.",
            fix="use LEFT JOIN from the private table.",
        )
    if not join.right.table.public:
        raise QuestionRefusal(
            "Q18",
            f"table {join.right.table.name!r} is private.",
            why="a row made of two people's rows would show each of them through the other.",
            fix="join it on the unit of both tables.",
        )
    for expression, name in join.on:
        common_kind((domain_of(expression, left), right[name]), "a = b in a join")
    return _join_columns(left, right, join.kind)


def _private_join(join: UnitJoin | OwnerJoin, multiplicity: Multiplicity, seen: Seen) -> Columns:
    if isinstance(join, OwnerJoin):
        return _owner_join(join, multiplicity, seen)
    return _unit_join(join, multiplicity, seen)


def _unit_join(join: UnitJoin, multiplicity: Multiplicity, seen: Seen) -> Columns:
    unit(join)
    left, right = columns(join.left, multiplicity, seen), columns(join.right, multiplicity, seen)
    for a, b in join.on:
        common_kind((left[a], right[b]), "a = b in a join")
    return _join_columns(left, right, join.kind)


MOST_CONNECTIONS = 10_000
"""Of how many connections of one person a graph may be read."""


def _graph_rows(graph: GraphRows) -> Columns:
    """Refused unless the table is one of pairs, each there once; or of both people, for degrees."""
    table, least = graph.source.table, 1 if graph.shape is Shape.DEGREES else 2
    if table.owners is Owners.ANY and graph.shape is not Shape.DEGREES:
        raise QuestionRefusal(
            "Q52",
            f"{graph.shape.name} reads a table of pairs, and the rows of {table.name!r} are of two "
            "people, each of whom is protected.",
            why="one person is in as many of them as there are two rows of theirs, and lets in "
            "others: the noise would be larger than what is counted.",
            fix=f"count degrees instead, FROM DEGREES({table.name}, 50) by at_least; or have the "
            "curator declare a table of pairs.",
        )
    pairs = table.owners is Owners.PAIR and table.max_rows_per_unit == 1
    if not pairs and table.owners is not Owners.ANY:
        raise QuestionRefusal(
            "Q52",
            f"{graph.shape.name} reads a table of pairs, and {table.name!r} is none.",
            why="how far one pair moves a degree is known where each pair is there once.",
            fix='have the curator declare unit = { pair = ["src", "dst"] } and max_rows_per_unit '
            "= 1.",
        )
    if not least <= graph.most <= MOST_CONNECTIONS:
        raise QuestionRefusal(
            "Q52",
            f"{graph.shape.name} looks at {graph.most} connections of each person.",
            why="what is beyond is not looked at, and noise grows with it.",
            fix=f"write {graph.shape.name}({table.name}, 50), with {least} to "
            f"{MOST_CONNECTIONS:,}.",
        )
    if graph.shape is Shape.TRIANGLES:
        return {graph.name: Domain(Kind.INTEGER, Fraction(3), Fraction(3), nullable=False)}
    high = Fraction(graph.most)
    return {graph.name: Domain(Kind.INTEGER, Fraction(least), high, nullable=False)}


def _owner_join(join: OwnerJoin, multiplicity: Multiplicity, seen: Seen) -> Columns:
    """Refused unless every row shows what is one of its own owners' (the proofs for graphs)."""
    mine, other = unit(join.left), unit(join.right)
    same = mine.owners is Owners.ANY and other == replace(mine, owners=Owners.ONE)
    one = same and row_bound(join.right, multiplicity) == 1
    named = join.owner in owner_columns(join.left)
    if not one or not named or join.kind is JoinKind.FULL:
        raise QuestionRefusal(
            "Q52",
            "a table whose rows have two owners is joined to something else than one row of one "
            "of them.",
            why="a row made of the rows of three people would belong to all of them.",
            fix="join a table of the same entity with max_rows_per_unit = 1 (or a sub-query with "
            "one row for each person) on one owner: JOIN people AS p ON p.person = m.sender.",
        )
    left, right = columns(join.left, multiplicity, seen), columns(join.right, multiplicity, seen)
    return _join_columns(left, right, join.kind)


def _union(left: Columns, right: Columns) -> Columns:
    if list(left) != list(right):
        raise QuestionRefusal(
            "Q21",
            "the two sides of UNION ALL have different columns.",
            why="what is counted must be one thing.",
            fix=f"select the same names in the same order: {', '.join(left)}.",
        )
    return {name: union_beyond(left[name], right[name], "UNION ALL") for name in left}


# --- one unit's own rows -------------------------------------------------------------------


def _check_one_owner(source: Relation) -> None:
    _check_owned(source)
    if has_two_owners(source):
        raise QuestionRefusal(
            "Q52",
            "rows that have two owners are put together by person.",
            why="a row of two people would be added to both, and the leaving of one would change "
            "the other's.",
            fix="count rows: COUNT(*), SUM(...), by columns with declared values.",
        )


def _per_unit(relation: PerUnit, multiplicity: Multiplicity, seen: Seen) -> Columns:
    _check_one_owner(relation.source)
    known = columns(relation.source, multiplicity, seen)
    most = row_bound(relation.source, multiplicity)
    return _check_distinct(
        [
            *((name, domain_of(e, known)) for name, e in relation.keys),
            *((name, aggregate_domain(a, known, most)) for name, a in relation.aggregates),
        ]
    )


def _follow_windows(relation: Windowed, multiplicity: Multiplicity, seen: Seen) -> Columns:
    _check_one_owner(relation.source)
    known = columns(relation.source, multiplicity, seen)
    most = row_bound(relation.source, multiplicity)
    added = ((name, window_domain(window, known, most)) for name, window in relation.columns)
    return _check_distinct([*known.items(), *added])


def check_relation(
    relation: Relation, multiplicity: Multiplicity = find_declared_multiplicity
) -> Relation:
    """``relation`` itself, refused unless all of it has a typing."""
    unit(relation)
    columns(relation, multiplicity)
    return relation


__all__ = [
    "Columns",
    "ListsValues",
    "Multiplicity",
    "Unit",
    "are_told_apart",
    "check_joined_rows",
    "check_relation",
    "columns",
    "find_declared_multiplicity",
    "find_neighbours",
    "gains_rows",
    "has_two_owners",
    "is_shared",
    "list_tables",
    "owner_columns",
    "owner_told",
    "reads_graph",
    "row_bound",
    "row_changes",
    "unit",
    "unit_columns",
    "unit_of",
]
