"""A relation as SQL: how its tables stand in the engine, then one named step per node.

Analyst text is not here: names are quoted, constants typed, functions from the
allow-list.  Each step carries the unit's columns along, unseen by expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from fractions import Fraction
from functools import lru_cache

from sqlglot import exp

from discreet.engine.duckdb.grid import clip, from_steps, to_steps
from discreet.engine.duckdb.hashing import Hashed
from discreet.exact.records import dataclass
from discreet.price.recipes import GRID_BITS, put_on_grid
from discreet.question.domain import Domain, Kind
from discreet.question.expressions import ColumnRef, Expression
from discreet.question.functions import Size, domain_of, nodes, references, render
from discreet.question.functions.declaration import common_kind
from discreet.question.functions.nodes import (
    Definition,
    Node,
    add_alias,
    choose_identifiers,
    conjoin,
    present,
    quote_column,
    quote_table,
    select,
    select_all,
)
from discreet.question.own_rows import ORDERED, RANKS, WINDOW_AGGREGATES, unit_grid
from discreet.question.ownership import (
    Columns,
    Multiplicity,
    columns,
    owner_columns,
)
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
    Source,
    Union,
    UnitAggregate,
    UnitJoin,
    UnitWindow,
    Windowed,
)
from discreet.question.schema import Column, Table

# --- how tables stand in the engine ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Steps:
    """A number kept as a whole number of steps above ``low``, beside the number itself."""

    identifier: str
    grid: Fraction
    low: int
    span: int


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a rendered relation: what it is called in the engine and how it is held."""

    identifier: str
    domain: Domain
    codes: tuple[str, ...] | None = None  # the values of the ENUM that it is held as
    steps: Steps | None = None

    def value(self, *, of: str | None = None) -> Node:
        """The column as a value of its kind."""
        column = self.quote(of=of)
        return nodes.cast(column, Kind.TEXT) if self.codes is not None else column

    def quote(self, *, of: str | None = None) -> Node:
        """The column as it is held."""
        return quote_column(self.identifier, of=of)

    @property
    def hashed(self) -> Hashed:
        """The column for the hash that chooses rows."""
        return Hashed(self.identifier, self.domain.kind, coded=self.codes is not None)


ROW_NUMBER = "_row"
"""Tells the rows of a table apart whose every row is a unit; no choice may depend on it."""


def name_unit(table: Table) -> tuple[str, ...]:
    """The columns that hold who owns a row; nobody owns the rows of a public table."""
    if table.by_row:
        return (ROW_NUMBER, "_unit0")
    return tuple(f"_unit{i}" for i in range(len(table.unit or ())))


def unit_kinds(table: Table) -> tuple[Kind, ...]:
    """The kinds of the columns that name the unit; none where every row is one."""
    named = () if table.by_row else table.unit or ()
    return tuple(c.kind for name in named for c in table.columns if c.name == name)


def hash_unit(unit: tuple[str, ...], kinds: tuple[Kind, ...]) -> tuple[Hashed, ...]:
    """Whose a row is, for the hash that chooses rows; where every row is a unit, whole numbers."""
    named = zip(unit, kinds or (Kind.INTEGER,) * len(unit), strict=True)
    return tuple(Hashed(name, kind, owner=True) for name, kind in named)


def list_codes(column: Column) -> tuple[str, ...] | None:
    """The values of a text column that is held as a code for one of them."""
    if column.kind is not Kind.TEXT:
        return None
    return tuple(str(value) for value in column.domain.values or ()) or None


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table stands in the engine: its unit's columns and a field for each declared column."""

    table: Table
    unit: tuple[str, ...]
    fields: Mapping[str, Field]

    @property
    def content(self) -> tuple[str, ...]:
        """Everything a row says, whose it is included."""
        return (*self.unit, *(field.identifier for field in self.fields.values()))

    def list_hashed(self, *, without: Iterable[str] = ()) -> tuple[Hashed, ...]:
        """The same for the hash that chooses rows; ``without`` some of the declared columns."""
        told = (field.hashed for name, field in self.fields.items() if name not in without)
        return (*hash_unit(self.unit, unit_kinds(self.table)), *told)


def name_rows(table: Table) -> str:
    """Under which name statements find the rows of a table, prepared or not."""
    return f"{'public' if table.public else 'rows of'} {table.name}"


@lru_cache(64)
def lay_out(table: Table) -> Layout:
    """How a table stands in the engine; a private one with steps beside every bounded number."""
    names = choose_identifiers([column.name for column in table.columns])
    fields = {
        column.name: Field(
            names[column.name],
            column.domain,
            codes=list_codes(column),
            steps=None if table.public else _choose_steps(column, index),
        )
        for index, column in enumerate(table.columns)
    }
    return Layout(table, name_unit(table), fields)


def _choose_steps(column: Column, index: int) -> Steps | None:
    domain = column.domain
    if not domain.kind.is_number or not domain.bounded:
        return None
    want = put_on_grid(ColumnRef(column.name), domain, GRID_BITS)
    return Steps(f"_steps{index}", want.grid, want.low, want.span)


# --- relations ------------------------------------------------------------------------------------

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
        looked_at = references(expression) & self.fields.keys()
        names = {name: self.fields[name].value(of=of) for name in looked_at}
        node = render(expression, self.columns, names)
        self.size.add(node)
        return node

    def render_held(self, expression: Expression) -> tuple[Node, Field | None]:
        """The same, as it is held where it is a plain column, and that column."""
        if isinstance(expression, ColumnRef):
            plain = self.fields[expression.name]
            return plain.quote(), plain
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
                kept = select_all(quote_table(below.name))
                kept.set("where", exp.Where(this=below.value(predicate)))
                return replace(self._narrow(below, relation), name=self.define(kept))
            case Project():
                return self._project(relation)
            case PublicJoin():
                return self._public_join(relation)
            case UnitJoin():
                return self._unit_join(relation)
            case OwnerJoin():
                return self._owner_join(relation)
            case GraphRows():
                return self._graph_rows(relation)
            case PerUnit():
                return self._per_unit(relation)
            case Windowed():
                return self._render_windows(relation)
            case Union():
                return self._union(relation)

    def _domains(self, relation: Relation | PublicSource) -> Columns:
        return columns(relation, self.multiplicity)

    def _narrow(self, below: Rendered, relation: Relation) -> Rendered:
        """The same columns, known more narrowly."""
        domains = self._domains(relation)
        fields = {name: replace(f, domain=domains[name]) for name, f in below.fields.items()}
        return replace(below, fields=fields)

    # --- tables ------------------------------------------------------------------------------

    def _source(self, source: Source | PublicSource) -> Rendered:
        """No step of its own: only what its columns are called is new."""
        table = self._table(source.table)
        return replace(table, fields={name: table.fields[of] for name, of in source.columns})

    def _table(self, table: Table) -> Rendered:
        if table.name in self._tables:
            _, found = self._tables[table.name]
            if table.by_row:  # row numbers must be the same wherever the table is mentioned
                self.definitions = [
                    (name, query, once or name == found.name)
                    for name, query, once in self.definitions
                ]
            return found
        table = self.find(table)
        name = name_rows(table)
        if table.by_row:
            rows, name = quote_table(name), f"table {table.name}"
            self.definitions.append((name, select_all(rows), False))
        found = Rendered(name, lay_out(table).unit, lay_out(table).fields, self.size)
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
        picked, fields = _pick(owners, listed, of=of)
        return Rendered(self.define(select(picked, quote_table(source))), owners, fields, self.size)

    # --- row by row --------------------------------------------------------------------------

    def _project(self, project: Project) -> Rendered:
        below, domains = self.relation(project.source), self._domains(project)
        items: list[Item] = []
        for name, expression in project.columns:
            node, plain = below.render_held(expression)
            kept = Field(name, domains[name]) if plain is None else plain
            items.append((name, replace(kept, domain=domains[name]), node, None))
        return self._select(below.unit, items, below.name)

    # --- joins -------------------------------------------------------------------------------

    def _public_join(self, join: PublicJoin) -> Rendered:
        left, right = self.relation(join.left), self._source(join.right)
        conditions = [
            _compare(
                left.value(expression, of="l"),
                _find_domain(expression, left),
                right.fields[name].value(of="r"),
                right.fields[name].domain,
            )
            for expression, name in join.on
        ]
        return self._join(join, left, right, conditions)

    def _unit_join(self, join: UnitJoin) -> Rendered:
        left, right = self.relation(join.left), self.relation(join.right)
        conditions: list[Node] = [
            exp.EQ(this=quote_column(a, of="l"), expression=quote_column(b, of="r"))
            for a, b in zip(left.unit, right.unit, strict=True)
        ]
        for a, b in join.on:
            one, other = left.fields[a], right.fields[b]
            conditions.append(
                _compare(one.value(of="l"), one.domain, other.value(of="r"), other.domain)
            )
        return self._join(join, left, right, conditions)

    def _graph_rows(self, graph: GraphRows) -> Rendered:
        """Rows that no pair owns: nothing may bound them again by an owner."""
        from discreet.engine.duckdb.graphs import select_graph

        pairs = self._table(graph.source.table)
        kind = unit_kinds(graph.source.table)[0]
        name = self.define(select_graph(graph.shape, graph.most, pairs.name, kind), once=True)
        (domain,) = self._domains(graph).values()
        fields = {graph.name: Field(graph.shape.column, domain)}
        return Rendered(name, (), fields, self.size)

    def _owner_join(self, join: OwnerJoin) -> Rendered:
        """On the owner as it is stored: what is declared of the column merges nobody."""
        left, right = self.relation(join.left), self.relation(join.right)
        mine = left.unit[owner_columns(join.left)[join.owner]]
        (theirs,) = right.unit
        same = exp.EQ(this=quote_column(mine, of="l"), expression=quote_column(theirs, of="r"))
        return self._join(join, left, right, [same])

    def _join(
        self,
        join: PublicJoin | UnitJoin | OwnerJoin,
        left: Rendered,
        right: Rendered,
        conditions: list[Node],
    ) -> Rendered:
        domains = self._domains(join)
        items: list[Item] = [
            (name, replace(f, domain=domains[name]), f.quote(of=alias), alias)
            for alias, side in (("l", left), ("r", right))
            for name, f in side.fields.items()
        ]
        picked, fields = _pick(left.unit, items, of="l")
        if join.kind is JoinKind.FULL:  # whoever is on one side alone is found there
            both = zip(left.unit, right.unit, strict=True)
            picked[: len(left.unit)] = [
                add_alias(
                    nodes.call("COALESCE", quote_column(a, of="l"), quote_column(b, of="r")), a
                )
                for a, b in both
            ]
        kinds: dict[JoinKind, dict[str, str]] = {
            JoinKind.INNER: {"kind": "INNER"},
            JoinKind.LEFT: {"side": "LEFT"},
            JoinKind.FULL: {"side": "FULL"},
        }
        kind = kinds[join.kind]
        partner = exp.Join(
            this=_alias_table(right.name, "r"), on=conjoin(conditions or [exp.true()]), **kind
        )
        query = select(picked, _alias_table(left.name, "l"), joins=[partner])
        return Rendered(self.define(query), left.unit, fields, self.size)

    # --- one unit's own rows -----------------------------------------------------------------

    def _per_unit(self, relation: PerUnit) -> Rendered:
        below, domains = self.relation(relation.source), self._domains(relation)
        items: list[Item] = []
        grouped: list[Node] = [quote_column(u) for u in below.unit]
        for name, expression in relation.keys:
            node, plain = below.render_held(expression)
            kept = Field(name, domains[name]) if plain is None else replace(plain, steps=None)
            items.append((name, replace(kept, domain=domains[name]), node, None))
            grouped.append(node.copy())
        for name, aggregate in relation.aggregates:
            node = _aggregate(aggregate, below, domains[name])
            items.append((name, Field(name, domains[name]), node, None))
        picked, fields = _pick(below.unit, items, of=None)
        query = select(picked, quote_table(below.name), group=grouped)
        return Rendered(self.define(query), below.unit, fields, self.size)

    def _render_windows(self, relation: Windowed) -> Rendered:
        below, domains = self.relation(relation.source), self._domains(relation)
        items: list[Item] = [
            (name, replace(f, domain=domains[name]), f.quote(), None)
            for name, f in below.fields.items()
        ]
        for name, window in relation.columns:
            node = _render_window(window, below, domains[name])
            self.size.add(node)
            items.append((name, Field(name, domains[name]), node, None))
        return self._select(below.unit, items, below.name)

    def _union(self, union: Union) -> Rendered:
        domains = self._domains(union)
        names = choose_identifiers(domains)
        sides = []
        for side in (self.relation(union.left), self.relation(union.right)):
            picked = [
                add_alias(nodes.cast(side.fields[name].value(), domain.kind), names[name])
                for name, domain in domains.items()
            ]
            sides.append(select([*map(quote_column, side.unit), *picked], quote_table(side.name)))
            unit = side.unit
        both = exp.Union(this=sides[0], expression=sides[1], distinct=False)
        fields = {name: Field(names[name], domain) for name, domain in domains.items()}
        return Rendered(self.define(both), unit, fields, self.size)


def _alias_table(name: str, alias: str) -> exp.Table:
    table = quote_table(name)
    table.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    return table


def _find_domain(expression: Expression, step: Rendered) -> Domain:
    return domain_of(expression, step.columns)


def _pick(
    unit: Iterable[str], items: list[Item], *, of: str | None
) -> tuple[list[Node], dict[str, Field]]:
    """The columns of the unit and the items under safe names; steps go along with their column."""
    names = choose_identifiers([name for name, _, _, _ in items])
    chosen: list[Node] = [add_alias(quote_column(u, of=of), u) for u in unit]
    fields: dict[str, Field] = {}
    for index, (name, kept, node, alias) in enumerate(items):
        chosen.append(add_alias(node, names[name]))
        steps = kept.steps
        if steps is not None:
            beside = f"_steps{index}"
            chosen.append(add_alias(quote_column(steps.identifier, of=alias), beside))
            steps = replace(steps, identifier=beside)
        fields[name] = replace(kept, identifier=names[name], steps=steps)
    return chosen, fields


def _compare(left: Node, of_left: Domain, right: Node, of_right: Domain) -> Node:
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


def _render_window(window: UnitWindow, below: Rendered, domain: Domain) -> Node:
    """A window over one unit's rows: equals are told apart by what they say, never by place."""
    function = window.function
    partition: list[Node] = [quote_column(u) for u in below.unit]
    partition += [below.value(e) for e in window.partition]
    order = [_order(below.value(e), descending) for e, descending in window.order]
    if function in ORDERED or (window.frame is not None and function in WINDOW_AGGREGATES):
        order += [_order(f.value(), descending=False) for f in below.fields.values()]

    def over(node: Node) -> Node:
        spec = None if window.frame is None else _frame(window.frame)
        return exp.Window(
            this=node,
            partition_by=[p.copy() for p in partition],
            order=exp.Order(expressions=[o.copy() for o in order]) if order else None,
            spec=spec,
        )

    if function in WINDOW_AGGREGATES:
        argument = window.arguments[0] if window.arguments else None
        return _aggregate(UnitAggregate(function, argument), below, domain, over)
    arguments = [
        nodes.cast(below.value(e), domain.kind) if place != 1 else below.value(e)
        for place, e in enumerate(window.arguments)
    ]
    node = over(nodes.call(function, *arguments))
    return nodes.cast(node, Kind.INTEGER) if function in {*RANKS, "NTILE"} else node


def _order(node: Node, descending: bool) -> exp.Ordered:
    return exp.Ordered(this=node, desc=descending, nulls_first=False)


def _frame(frame: tuple[int | None, int | None]) -> exp.WindowSpec:
    ends = dict(zip(("start", "end"), frame, strict=True))
    words: dict[str, object] = {"kind": "ROWS"}
    for end, place in ends.items():
        if place == 0:
            words |= {end: "CURRENT ROW", f"{end}_side": None}
            continue
        before = end == "start" if place is None else place < 0
        words[end] = "UNBOUNDED" if place is None else exp.Literal.number(str(abs(place)))
        words[f"{end}_side"] = "PRECEDING" if before else "FOLLOWING"
    return exp.WindowSpec(**words)


def _aggregate(
    aggregate: UnitAggregate,
    below: Rendered,
    domain: Domain,
    over: Callable[[Node], Node] = lambda node: node,
) -> Node:
    """One unit's aggregate, exact whatever the order of its rows."""
    if aggregate.argument is None:
        return over(exp.Count(this=exp.Star(), big_int=True))
    node = below.value(aggregate.argument)
    match aggregate.function:
        case "COUNT":
            return over(exp.Count(this=node, big_int=True))
        case "COUNT_DISTINCT":
            return exp.Count(this=exp.Distinct(expressions=[node]), big_int=True)
        case "MIN" | "MAX":
            return over(nodes.call(aggregate.function, node))
    argument = _find_domain(aggregate.argument, below)
    if argument.is_null:
        return nodes.make_null(domain.kind)
    grid = unit_grid(argument)
    steps = to_steps(node, argument.kind, grid)
    total = over(nodes.call("SUM", steps))
    if domain.kind is Kind.INTEGER:
        ends = [nodes.wide(nodes.whole(int(bound or 0))) for bound in (domain.low, domain.high)]
        return nodes.case((present(total), nodes.cast(clip(total.copy(), *ends), Kind.INTEGER)))
    number = from_steps(total, grid)
    if aggregate.function == "AVG":
        count = nodes.cast(over(exp.Count(this=node.copy(), big_int=True)), Kind.DECIMAL)
        number = nodes.infix(exp.Div, number, count)
    if argument.kind is Kind.DECIMAL:
        # What is one value is that value itself, bit for bit: no grid is needed to add it up.
        least = over(nodes.call("MIN", node.copy()))
        if aggregate.function == "AVG":
            alone: Node = exp.EQ(this=least, expression=over(nodes.call("MAX", node.copy())))
        else:
            rows = over(exp.Count(this=node.copy(), big_int=True))
            alone = exp.EQ(this=rows, expression=nodes.integer(1))
        number = nodes.case((alone, least.copy()), otherwise=number)
    ends = [nodes.literal(bound or Fraction(0)) for bound in (domain.low, domain.high)]
    return nodes.case((present(number), clip(number.copy(), *ends)))
