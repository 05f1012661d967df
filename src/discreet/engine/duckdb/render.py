"""A relation as SQL: one named step per node, in the order in which they are computed.

Analyst text is not here: names are quoted, constants typed, functions from the
allow-list.  Each step carries the unit's columns along, unseen by expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sqlglot import exp

from discreet.engine.duckdb.declared import Field, layout, rows_name
from discreet.engine.duckdb.grid import clip, from_steps, hugeint, to_steps, whole
from discreet.engine.duckdb.query import (
    Definition,
    aliased,
    all_of,
    everything,
    identifiers,
    named,
    present,
    select,
    table_named,
)
from discreet.question.domain import Domain, Kind
from discreet.question.expressions import ColumnRef, Expression
from discreet.question.functions import Size, domain_of, nodes, render
from discreet.question.functions.declaration import common_kind
from discreet.question.functions.nodes import Node
from discreet.question.ownership import Columns, Multiplicity, columns, unit_grid
from discreet.question.relation import (
    Filter,
    JoinKind,
    PerUnit,
    Project,
    PublicJoin,
    PublicSource,
    Relation,
    Source,
    Union,
    UnitAggregate,
    UnitJoin,
)
from discreet.question.schema import Table

Item = tuple[str, Field, Node, str | None]
"""A column to pick: its name, how it is held, its value, the alias of the table it is from."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A step: its name in the WITH clause, the unit's columns, a field for each visible column."""

    name: str
    unit: tuple[str, ...]
    fields: Mapping[str, Field]
    size: Size
    """Of the whole statement that the step is part of."""

    def value(self, expression: Expression, *, of: str | None = None) -> Node:
        """An expression over the step's columns."""
        node = render(expression, self.columns, lambda name: self.fields[name].value(of=of))
        self.size.add(node)
        return node

    def held(self, expression: Expression) -> tuple[Node, Field | None]:
        """The same, as it is held where it is a plain column, and that column."""
        if isinstance(expression, ColumnRef):
            plain = self.fields[expression.name]
            return plain.held(), plain
        return self.value(expression), None

    @property
    def columns(self) -> Columns:
        """What each column can be."""
        return {name: field.domain for name, field in self.fields.items()}


@dataclass(slots=True)
class Renderer:
    """Collects the definitions of one statement."""

    find: Callable[[Table], Table]
    """The engine's own table of that name, or a refusal."""
    multiplicity: Multiplicity
    definitions: list[Definition] = field(default_factory=list)
    size: Size = field(default_factory=Size)
    _tables: dict[str, tuple[Table, Rendered]] = field(default_factory=dict)

    @property
    def tables(self) -> tuple[Table, ...]:
        """Whose rows are read."""
        return tuple(table for table, _ in self._tables.values())

    def define(self, query: exp.Query, *, once: bool = False) -> str:
        """Name a step; ``once`` if it is read several times and must be the same each time."""
        name = f"step {len(self.definitions) + 1}"
        self.definitions.append((name, query, once))
        return name

    def relation(self, relation: Relation) -> Rendered:
        """The steps of a relation; the result is the last of them."""
        match relation:
            case Source() | PublicSource():
                return self._source(relation)
            case Filter(source=source, predicate=predicate):
                below = self.relation(source)
                kept = everything(table_named(below.name))
                kept.set("where", exp.Where(this=below.value(predicate)))
                return replace(self._retyped(below, relation), name=self.define(kept))
            case Project():
                return self._project(relation)
            case PublicJoin():
                return self._public_join(relation)
            case UnitJoin():
                return self._unit_join(relation)
            case PerUnit():
                return self._per_unit(relation)
            case Union():
                return self._union(relation)

    def _domains(self, relation: Relation | PublicSource) -> Columns:
        return columns(relation, self.multiplicity)

    def _retyped(self, below: Rendered, relation: Relation) -> Rendered:
        """The same columns, known more narrowly."""
        domains = self._domains(relation)
        fields = {name: replace(f, domain=domains[name]) for name, f in below.fields.items()}
        return replace(below, fields=fields)

    # --- tables ------------------------------------------------------------------------------

    def _source(self, source: Source | PublicSource) -> Rendered:
        table = self._table(source.table)
        picked = [(name, table.fields[column]) for name, column in source.columns]
        return self._select(table.unit, [(n, f, f.held(), None) for n, f in picked], table.name)

    def _table(self, table: Table) -> Rendered:
        if table.name in self._tables:
            _, found = self._tables[table.name]
            if table.by_row:  # row numbers must be the same wherever the table is mentioned
                self.definitions = [
                    (name, query, once or name == found.name)
                    for name, query, once in self.definitions
                ]
            return found
        table, name = self.find(table), f"table {table.name}"
        self.definitions.append((name, everything(table_named(rows_name(table))), False))
        found = Rendered(name, layout(table).unit, layout(table).fields, self.size)
        self._tables[table.name] = table, found
        return found

    def _select(
        self,
        unit: Iterable[str],
        items: Iterable[Item],
        source: str,
        *,
        of: str | None = None,
    ) -> Rendered:
        """A step that picks (name, field, value, table alias) and the unit's columns."""
        listed = list(items)
        owners = tuple(unit)
        picked, fields = _picked(owners, listed, of=of)
        return Rendered(self.define(select(picked, table_named(source))), owners, fields, self.size)

    # --- row by row --------------------------------------------------------------------------

    def _project(self, project: Project) -> Rendered:
        below, domains = self.relation(project.source), self._domains(project)
        items: list[Item] = []
        for name, expression in project.columns:
            node, plain = below.held(expression)
            kept = Field(name, domains[name]) if plain is None else plain
            items.append((name, replace(kept, domain=domains[name]), node, None))
        return self._select(below.unit, items, below.name)

    # --- joins -------------------------------------------------------------------------------

    def _public_join(self, join: PublicJoin) -> Rendered:
        left, right = self.relation(join.left), self._source(join.right)
        conditions = [
            _equal(
                left.value(expression, of="l"),
                _domain(expression, left),
                right.fields[name].value(of="r"),
                right.fields[name].domain,
            )
            for expression, name in join.on
        ]
        return self._joined(join, left, right, conditions)

    def _unit_join(self, join: UnitJoin) -> Rendered:
        left, right = self.relation(join.left), self.relation(join.right)
        conditions: list[Node] = [
            exp.EQ(this=named(a, of="l"), expression=named(b, of="r"))
            for a, b in zip(left.unit, right.unit, strict=True)
        ]
        for a, b in join.on:
            one, other = left.fields[a], right.fields[b]
            conditions.append(
                _equal(one.value(of="l"), one.domain, other.value(of="r"), other.domain)
            )
        return self._joined(join, left, right, conditions)

    def _joined(
        self,
        join: PublicJoin | UnitJoin,
        left: Rendered,
        right: Rendered,
        conditions: list[Node],
    ) -> Rendered:
        domains = self._domains(join)
        items: list[Item] = [
            (name, replace(f, domain=domains[name]), f.held(of=alias), alias)
            for alias, side in (("l", left), ("r", right))
            for name, f in side.fields.items()
        ]
        picked, fields = _picked(left.unit, items, of="l")
        kind = {"side": "LEFT"} if join.kind is JoinKind.LEFT else {"kind": "INNER"}
        partner = exp.Join(this=_as(right.name, "r"), on=all_of(conditions), **kind)
        query = select(picked, _as(left.name, "l"), joins=[partner])
        return Rendered(self.define(query), left.unit, fields, self.size)

    # --- one unit's own rows -----------------------------------------------------------------

    def _per_unit(self, relation: PerUnit) -> Rendered:
        below, domains = self.relation(relation.source), self._domains(relation)
        items: list[Item] = []
        grouped: list[Node] = [named(u) for u in below.unit]
        for name, expression in relation.keys:
            node, plain = below.held(expression)
            kept = Field(name, domains[name]) if plain is None else replace(plain, steps=None)
            items.append((name, replace(kept, domain=domains[name]), node, None))
            grouped.append(node.copy())
        for name, aggregate in relation.aggregates:
            node = _aggregate(aggregate, below, domains[name])
            items.append((name, Field(name, domains[name]), node, None))
        picked, fields = _picked(below.unit, items, of=None)
        query = select(picked, table_named(below.name), group=grouped)
        return Rendered(self.define(query), below.unit, fields, self.size)

    def _union(self, union: Union) -> Rendered:
        domains = self._domains(union)
        names = identifiers(domains)
        sides = []
        for side in (self.relation(union.left), self.relation(union.right)):
            picked = [
                aliased(nodes.cast(side.fields[name].value(), domain.kind), names[name])
                for name, domain in domains.items()
            ]
            sides.append(select([*map(named, side.unit), *picked], table_named(side.name)))
            unit = side.unit
        both = exp.Union(this=sides[0], expression=sides[1], distinct=False)
        fields = {name: Field(names[name], domain) for name, domain in domains.items()}
        return Rendered(self.define(both), unit, fields, self.size)


def _as(name: str, alias: str) -> exp.Table:
    table = table_named(name)
    table.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    return table


def _domain(expression: Expression, step: Rendered) -> Domain:
    return domain_of(expression, step.columns)


def _picked(
    unit: Iterable[str], items: list[Item], *, of: str | None
) -> tuple[list[Node], dict[str, Field]]:
    """The columns of the unit and the items under safe names; steps go along with their column."""
    names = identifiers(name for name, _, _, _ in items)
    chosen: list[Node] = [aliased(named(u, of=of), u) for u in unit]
    fields: dict[str, Field] = {}
    for place, (name, kept, node, alias) in enumerate(items):
        chosen.append(aliased(node, names[name]))
        steps = kept.steps
        if steps is not None:
            beside = f"_steps{place}"
            chosen.append(aliased(named(steps.identifier, of=alias), beside))
            steps = replace(steps, identifier=beside)
        fields[name] = replace(kept, identifier=names[name], steps=steps)
    return chosen, fields


def _equal(left: Node, of_left: Domain, right: Node, of_right: Domain) -> Node:
    """Whether two columns of a join are equal; NULL equals nothing.

    A decimal on the left meets whole numbers as one of them: seen as doubles,
    two whole numbers of the right could become one, and match more often than
    the right side's multiplicity says.
    """
    kind = common_kind((of_left, of_right), "a = b in a join")
    if of_left.kind is Kind.DECIMAL and of_right.kind is Kind.INTEGER:
        whole = exp.EQ(this=nodes.call("FLOOR", left), expression=left.copy())
        left = nodes.case((whole, nodes.try_cast(left.copy(), Kind.INTEGER)))
        kind = Kind.INTEGER
    return exp.EQ(
        this=left if of_left.kind is kind else nodes.cast(left, kind),
        expression=right if of_right.kind is kind else nodes.cast(right, kind),
    )


def _aggregate(aggregate: UnitAggregate, below: Rendered, domain: Domain) -> Node:
    """One unit's aggregate, exact whatever the order of its rows."""
    if aggregate.argument is None:
        return exp.Count(this=exp.Star(), big_int=True)
    node = below.value(aggregate.argument)
    match aggregate.function:
        case "COUNT":
            return exp.Count(this=node, big_int=True)
        case "COUNT_DISTINCT":
            return exp.Count(this=exp.Distinct(expressions=[node]), big_int=True)
        case "MIN" | "MAX":
            return nodes.call(aggregate.function, node)
    argument = _domain(aggregate.argument, below)
    if argument.is_null:
        return nodes.typed_null(domain.kind)
    grid = unit_grid(argument)
    steps = to_steps(node, argument.kind, grid)
    total: Node = nodes.call("SUM", steps)
    if domain.kind is Kind.INTEGER:
        ends = [hugeint(whole(int(bound or 0))) for bound in (domain.low, domain.high)]
        return nodes.case((present(total), nodes.cast(clip(total.copy(), *ends), Kind.INTEGER)))
    number = from_steps(total, grid)
    if aggregate.function == "AVG":
        count = nodes.cast(exp.Count(this=node.copy(), big_int=True), Kind.DECIMAL)
        number = nodes.infix(exp.Div, number, count)
    ends = [nodes.literal(bound or Fraction(0)) for bound in (domain.low, domain.high)]
    return nodes.case((present(number), clip(number.copy(), *ends)))
