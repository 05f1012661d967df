"""FROM and WHERE: which rows, and whose they are; joins are in a file of their own.

Each piece is read twice over: as a relation, and as a tree in normal form in
which whatever was not understood is still where it stood.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from datetime import date, datetime, time
from fractions import Fraction

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.exact.records import dataclass
from discreet.question.domain import Domain, Kind, Value, value_at
from discreet.question.expressions import Expression, Literal
from discreet.question.functions import domain_of
from discreet.question.functions.interpret import find_contradiction, list_left
from discreet.question.relation import (
    Filter,
    GraphRows,
    PublicSource,
    Relation,
    Shape,
    Source,
)
from discreet.question.schema import ROW, Owners, Schema, Table
from discreet.question.sql.dialect import (
    Fix,
    Reader,
    copy_span,
    parse_trees,
    write_text,
)
from discreet.question.sql.normalize import find_unread, normalize
from discreet.question.sql.scalars import (
    column,
    conjunction,
    conjuncts,
    graph_tree,
    is_released,
    read,
    table_tree,
    write_constant,
)
from discreet.question.sql.scope import Item, Scope, check_name, find_name, list_names, suggest_name
from discreet.question.sql.simplify import LISTED, NARROWED
from discreet.question.sql.spelling import correct_names

MOST_TABLES = 32
"""How many tables a question may read, a table read twice counted twice."""


@dataclass(frozen=True, slots=True)
class CommonTable:
    """A common table expression: its query, what it can see, and whether anybody read it."""

    query: exp.Expr
    visible: Mapping[str, CommonTable]
    used: list[bool] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Rows:
    """What FROM (and WHERE) says: a relation, the names it gives, the clauses in normal form.

    ``unit`` names the columns that say whose a row is; ``extra`` are conditions
    of inner joins that are conditions on rows as well.
    """

    relation: Relation
    scope: Scope
    unit: tuple[str | None, ...]
    clauses: Mapping[str, object]  # from_, joins, where
    extra: tuple[exp.Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a query stands: how sub-queries are read, the WITH names in sight, the tables read."""

    reader: Reader
    subquery: Callable[[exp.Expr, str, Frame, exp.Expr], Item]
    commons: Mapping[str, CommonTable] = field(default_factory=dict)
    tables: list[str] = field(default_factory=list)

    def within(self, query: exp.Expr) -> Frame:
        """The frame inside ``query``: its WITH adds names."""
        clause = query.args.get("with_")
        if clause is None:
            return self
        commons = dict(self.commons)
        for part in clause.walk(prune=lambda n: isinstance(n, exp.Query)):
            if not isinstance(part, exp.Query) and find_unread(part):
                raise self.reader.refusal(
                    "Q30",
                    part,
                    "a part of WITH was not understood.",
                    why="an answer to another question than the one asked would be wrong.",
                    fix="write WITH name AS (SELECT ...).",
                )
        for cte in clause.expressions:
            name = check_name(cte.args["alias"].this, self.reader)
            if name in self.reader.schema.tables or name in commons:
                raise self.reader.refusal(
                    "Q8",
                    cte.args["alias"],
                    f"'{name}' names two things.",
                    why="it must be certain whose rows are read.",
                    fix="give the common table expression another name.",
                )
            commons[name] = CommonTable(cte.this, dict(commons))
        return replace(self, commons=commons)

    def check_all_read(self, query: exp.Expr) -> None:
        """Refuse a WITH that nobody reads: it would be forgotten without a word."""
        clause = query.args.get("with_")
        for cte in clause.expressions if clause is not None else ():
            if not self.commons[cte.alias].used:
                raise self.reader.refusal(
                    "Q29",
                    cte.args["alias"],
                    f"'{cte.alias}' is never read.",
                    why="a part of the question that has no effect was perhaps meant to have one.",
                    fix="leave it out, or read it in FROM.",
                )


# --- expressions with domains --------------------------------------------------------------


def no_leaf(node: exp.Expr) -> Expression | None:
    """Every part of the tree is read as it is."""
    del node
    return None


def read_typed(
    tree: exp.Expr, known: Mapping[str, Domain], reader: Reader, *, kind: Kind | None = None
) -> Expression:
    """The meaning of ``tree``, refused at the innermost place where the kinds do not fit."""
    expression = read(tree, no_leaf)
    try:
        domain = domain_of(expression, known)
    except QuestionRefusal:
        for part in reversed(list(tree.walk())):
            if isinstance(part, exp.Condition) and not isinstance(part, exp.Star):
                with reader.at(part):
                    _check_kinds(part, known)
        raise
    if kind is not None and domain.kind is not kind:
        raise reader.refusal(
            "Q10",
            tree,
            f"a condition must be true or false, and this is {domain.kind.value}.",
            why="whether a row counts must be decided for every row.",
            fix="compare it with something: x > 0, x = 'a', x IS NOT NULL.",
        )
    return expression


def _check_kinds(part: exp.Expr, known: Mapping[str, Domain]) -> None:
    try:
        expression = read(part, no_leaf)
    except (KeyError, AttributeError, ValueError):
        return  # a piece of an expression that is no expression by itself
    domain_of(expression, known)


# --- FROM ----------------------------------------------------------------------------------


def apply_where(rows: Rows, select: exp.Select, reader: Reader) -> Rows:
    """``rows`` where WHERE is true."""
    where = select.args.get("where")
    conditions = list(rows.extra)
    if where is not None:
        conditions += conjuncts(normalize(where.this, rows.scope, reader))
    if not conditions:
        return rows
    tree = conjunction(conditions)
    predicate = read_typed(tree, reader.columns(rows.relation), reader, kind=Kind.BOOLEAN)
    kept = {} if where is None else where.args
    clauses = {**rows.clauses, "where": exp.Where(**{**kept, "this": tree})}
    return replace(rows, relation=Filter(rows.relation, predicate), clauses=clauses, extra=())


def public_only_refusal(reader: Reader, node: exp.Expr) -> QuestionRefusal:
    """Refuse a question nobody is in, or a sub-query of one that somebody is in."""
    read = {table.name.casefold() for table in node.root().find_all(exp.Table)}
    private = {t.name.casefold() for t in reader.schema.tables.values() if not t.public}
    if read & private:
        return reader.refusal(
            "Q26",
            node,
            "a sub-query here reads no private table.",
            why="a sub-query has rows with an owner; a public table is joined by itself.",
            fix="none as it stands. Join the public table itself, and put its conditions into ON "
            "or WHERE: FROM visits AS v JOIN cities AS c ON c.name = v.city AND c.people > 5.",
        )
    return reader.refusal(
        "Q26",
        node,
        "the question reads no private table.",
        why="nobody is in what it reads, so nothing is to be protected, or paid.",
        fix="none: nobody is in it, and public tables can be read as they are.",
    )


def read_item(node: exp.Expr, frame: Frame) -> Item:
    """One thing in FROM."""
    reader = frame.reader
    alias = node.args.get("alias")
    if isinstance(node, exp.Table):
        if not isinstance(node.this, exp.Identifier):
            graph = _read_graph(node, frame)
            if graph is not None:
                return graph
            raise reader.refusal(
                "Q6",
                node,
                "a table function is no table.",
                why="only the tables the curator declared can be read, not files.",
                fix="none: files and functions are not read here; the tables are "
                f"{list_names(reader.schema.tables)}.",
            )
        return _name_item(node, frame)
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
        name = check_name(alias.this, reader) if alias else f"subquery_{len(frame.tables) + 1}"
        return frame.subquery(node.this, name, frame, node)
    raise reader.refusal(
        "Q11",
        node,
        "FROM takes a table or a sub-query.",
        why="only the tables the curator declared can be read.",
        fix="write FROM visits, or FROM (SELECT ... FROM visits) AS v.",
    )


SHAPES = {shape.name: shape for shape in Shape}


def _read_graph(node: exp.Table, frame: Frame) -> Item | None:
    """DEGREES(friends, 50), WEDGES(...) or TRIANGLES(...) of a table of pairs; None if neither."""
    reader, call = frame.reader, node.this
    shape = SHAPES.get(call.name.upper()) if isinstance(call, exp.Anonymous) else None
    if shape is None:
        return None
    plain = call.expressions if not (set(call.args) - {"this", "expressions"}) else []
    found = [part for part in plain if isinstance(part, exp.Column) and not part.table]
    most = [int(p.name) for p in plain if isinstance(p, exp.Literal) and p.name.isdecimal()]
    key = find_name(found[0].name, reader.schema.tables, node, reader) if found else None
    if len(plain) != 2 or len(found) != 1 or len(most) != 1 or plain[0] is not found[0]:
        key = None
    if key is None:
        raise reader.refusal(
            "Q52",
            node,
            f"{shape.name} is not called like this.",
            why="which pairs are looked at, and how many of each person, must be certain.",
            fix=f"write FROM {shape.name}(friends, 50): a table of pairs, and how many connections "
            "of each person are looked at.",
        )
    alias_node = node.args.get("alias")
    alias = check_name(alias_node.this, reader) if alias_node else shape.name.lower()
    pairs = _table(reader.schema.tables[key], alias, node, frame)
    if not isinstance(pairs.relation, Source):
        raise public_only_refusal(reader, node)
    name = f"{alias}.{shape.column}"
    relation = GraphRows(pairs.relation, shape, most[0], name)
    with reader.at(node):
        reader.columns(relation)
    tree = copy_span(graph_tree(shape.name, key, most[0], alias), node.this)
    return Item(alias, relation, {shape.column: name}, (None, None), tree)


def _name_item(node: exp.Table, frame: Frame) -> Item:
    reader = frame.reader
    name = node.name
    alias_node = node.args.get("alias")
    common = find_name(name, frame.commons, node, reader)
    if common is not None:
        found = frame.commons[common]
        found.used.append(True)
        alias = check_name(alias_node.this, reader) if alias_node else common
        return frame.subquery(found.query, alias, replace(frame, commons=found.visible), node)
    key = find_name(name, reader.schema.tables, node, reader)
    if key is None:
        raise reader.refusal(
            "Q6",
            node,
            f"there is no table '{name}'.",
            why="only the tables the curator declared can be read.",
            fix=correct_names(
                reader,
                node,
                _every_column(reader.schema),
                f"{suggest_name(name, reader.schema.tables) or 'none is called nearly so: '}"
                f"the tables are {list_names(reader.schema.tables)}.",
            ),
        )
    alias = check_name(alias_node.this, reader) if alias_node else key
    return _table(reader.schema.tables[key], alias, node, frame)


def _every_column(schema: Schema) -> list[str]:
    return [column.name for table in schema.tables.values() for column in table.columns]


def check_count(tables: int) -> None:
    """Refuse a question that reads too many tables, however they are written."""
    if tables > MOST_TABLES:
        raise QuestionRefusal(
            "Q3",
            f"the question reads more than {MOST_TABLES} tables.",
            why="a question must be understood wholly before it can be priced.",
            fix="ask for less at once.",
        )


def _table(table: Table, alias: str, node: exp.Table, frame: Frame) -> Item:
    frame.tables.append(table.name)
    check_count(len(frame.tables))
    pairs = tuple((f"{alias}.{c.name}", c.name) for c in table.columns)
    tree = exp.Table(**{**node.args, **table_tree(table.name, alias).args})
    names = {own: name for name, own in pairs}
    if table.public:
        return Item(alias, PublicSource(table, pairs), names, None, copy_span(tree, node.this))
    unit: tuple[str | None, ...] = ()
    if table.owners is not Owners.ONE:  # neither column says by itself whose a row is
        unit = tuple(None for _ in table.unit or ())
    elif table.unit != ROW:
        unit = tuple(names.get(u) for u in table.unit or ())
    return Item(alias, Source(table, pairs), names, unit, copy_span(tree, node.this))


def read_rows(select: exp.Select, frame: Frame) -> Rows:
    """FROM, its joins, and WHERE."""
    reader = frame.reader
    start = select.args.get("from_")
    if start is None:
        raise public_only_refusal(reader, select)
    first = read_item(start.this, frame)
    joins = list(select.args.get("joins") or [])
    if joins:  # most questions have none, and need none of it
        from discreet.question.sql.joins import read_join, read_public_first
    if first.public and joins:
        rows = read_public_first(first, joins.pop(0), start, frame)
    elif first.public:
        raise public_only_refusal(reader, start)
    else:
        tree = exp.From(**{**start.args, "this": first.tree})
        scope = Scope(reader, (first,))
        rows = Rows(private_relation(first), scope, first.unit or (), {"from_": tree})
    for join in joins:
        rows = read_join(rows, join, frame)
    listed = start.meta.get(LISTED) if start.meta else None
    if not isinstance(listed, exp.In):
        rows = _narrow_listed(apply_where(rows, select, reader), select, frame)
        _check_possible(rows, select, reader)
        return rows
    _check_listed(listed, rows, reader)
    rows = _narrow_listed(apply_where(rows, select, reader), select, frame)
    key = read(normalize(listed.this, rows.scope, reader), no_leaf)
    if domain_of(key, reader.columns(rows.relation)).list_values() is None:
        raise reader.refusal(
            "Q20",
            listed.expressions[0],
            "these constants are of another kind than the column that they list.",
            why="then nothing says publicly which groups there are, and one that nobody is in "
            "would be missing without a word.",
            fix="write them as the column is: 4.0 for a decimal, DATE '2026-01-31' for a date.",
        )
    return rows


def _check_possible(rows: Rows, select: exp.Select, reader: Reader) -> None:
    """Refuse a WHERE that no row meets; one that a released number stands in was paid for."""
    where, written = select.args.get("where"), rows.clauses.get("where")
    if where is None or not isinstance(rows.relation, Filter) or is_released(select):
        return
    known = reader.columns(rows.relation.source)
    against = find_contradiction(rows.relation.predicate, known)
    if against:
        from discreet.question.sql.contradictions import refuse_impossible

        conditions = conjuncts(written.this) if isinstance(written, exp.Where) else []
        refuse_impossible(against, conditions, known, where, reader)


def _narrow_listed(rows: Rows, select: exp.Select, frame: Frame) -> Rows:
    """Of a list of keys those that a condition leaves: list and condition are public.

    What is released, and stands in the condition as a constant, chooses no groups.
    """
    reader, start = frame.reader, select.args["from_"]
    listed = start.meta.get(NARROWED) if start.meta else None
    if not listed or not isinstance(rows.relation, Filter) or is_released(select):
        return rows
    names = listed
    if isinstance(listed, exp.Expr):
        tree = normalize(listed, rows.scope, reader)
        names = (tree.name,) if isinstance(tree, exp.Column) else ()
    known = reader.columns(rows.relation)
    left = list_left(rows.relation.predicate, {name: known[name] for name in names})
    if isinstance(listed, tuple):
        from discreet.question.sql.public_queries import list_left_by_table

        left |= list_left_by_table(select, rows.scope, {name: known[name] for name in names}, frame)
    if not left:
        return rows
    where = rows.clauses["where"]
    if () in left.values() or not isinstance(where, exp.Where):
        raise reader.refusal(
            "Q36",
            select.args.get("group") or select,
            "nothing that is listed meets the condition.",
            why="no row and no group is left, whatever the data are: people would pay for no "
            "answer.",
            fix=_leave_conditions_out(reader),
        )
    members = [
        exp.In(this=column(name), expressions=[write_constant(_as_typed(v)) for v in values])
        for name, values in left.items()
    ]
    tree = conjunction([*conjuncts(where.this), *members])
    predicate = read_typed(tree, reader.columns(rows.relation.source), reader, kind=Kind.BOOLEAN)
    clauses = {**rows.clauses, "where": exp.Where(**{**where.args, "this": tree})}
    return replace(rows, relation=Filter(rows.relation.source, predicate), clauses=clauses)


def _leave_conditions_out(reader: Reader) -> Fix:
    """The question as it was typed, without what it asks of the list."""
    words = "list what the condition leaves, or leave the condition out."
    (tree, *more) = parse_trees(reader.text, list(reader.tokens)) or [None]
    if tree is None or more or reader.accepts is None:
        return Fix(words)
    for where in list(tree.find_all(exp.Where)):
        where.pop()
    text = write_text(tree)
    return Fix.asking(text, "of all that is listed: ") if reader.accepts(text) else Fix(words)


def _as_typed(value: Value) -> Value:
    """A double by the few digits that lead to it."""
    return Fraction(repr(float(value))) if isinstance(value, Fraction) else value


def _check_listed(listed: exp.In, rows: Rows, reader: Reader) -> None:
    """Refuse a key that nobody can have: its group would be missing without a word."""
    tree = normalize(listed, rows.scope, reader)
    known = reader.columns(rows.relation)
    domain = domain_of(read(tree.this, no_leaf), known)
    pairs = zip(listed.expressions, tree.expressions, strict=True)
    for written, constant in pairs if isinstance(tree, exp.In) else ():
        meaning = read(constant, no_leaf)
        value = meaning.value if isinstance(meaning, Literal) else None
        if domain.kind is Kind.TEXT or value is None:
            continue  # a text is looked for among declared ones with its fellows
        if domain.kind is Kind.TIMESTAMP and isinstance(value, date):
            value = value if isinstance(value, datetime) else datetime.combine(value, time.min)
        if not domain.contains(value):
            raise reader.refusal(
                "Q36",
                written,
                f"{_name_listed(tree.this)} is declared to be {_describe_ends(domain)}, and "
                f"never {_write_value(value)}.",
                why="what lies outside of that is read as the nearest value inside, so nobody has "
                "it: people would pay for a group that cannot be.",
                fix="leave it out of the list.",
            )


def _name_listed(tree: exp.Expr) -> str:
    return f"'{tree.name.rpartition('.')[2]}'" if isinstance(tree, exp.Column) else "what is listed"


def _describe_ends(domain: Domain) -> str:
    """What a domain holds: an integer between 1 and 9."""
    article = "an" if domain.kind is Kind.INTEGER else "a"
    if domain.low is None or domain.high is None:
        return f"{article} {domain.kind.value}"
    low, high = (value_at(domain.kind, end) for end in (domain.low, domain.high))
    return f"{article} {domain.kind.value} between {_write_value(low)} and {_write_value(high)}"


def _write_value(value: Value) -> str:
    return f"{float(value):g}" if isinstance(value, Fraction) else str(value)


def private_relation(item: Item) -> Relation:
    """The rows of an item that is not public."""
    if isinstance(item.relation, PublicSource):
        raise TypeError("a public table has no owner")
    return item.relation
