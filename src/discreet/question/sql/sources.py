"""FROM and WHERE: which rows, and whose they are.

Each piece is read twice over: as a relation, and as a tree in normal form in
which whatever was not understood is still where it stood.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.question.domain import Domain, Kind
from discreet.question.expressions import Call, ColumnRef, Expression
from discreet.question.functions import domain_of
from discreet.question.relation import (
    Filter,
    JoinKind,
    PublicJoin,
    PublicSource,
    Relation,
    Source,
    UnitJoin,
)
from discreet.question.schema import ROW, Schema, Table
from discreet.question.sql.dialect import JOIN, Fix, Reader, copy_span
from discreet.question.sql.normalize import find_unread, normalize
from discreet.question.sql.rewrite import add_join_conditions, move_where_to_join, swap_join_sides
from discreet.question.sql.scalars import column, conjunction, conjuncts, read, table_tree
from discreet.question.sql.scope import Item, Scope, check_name, find_name, list_names, suggest_name
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
    """Refuse a question nobody is in."""
    return reader.refusal(
        "Q26",
        node,
        "the question reads no private table.",
        why="nobody is in what it reads, so nothing is to be protected, or paid.",
        fix="name a private table in FROM; public tables can be read as they are.",
    )


def read_item(node: exp.Expr, frame: Frame) -> Item:
    """One thing in FROM."""
    reader = frame.reader
    alias = node.args.get("alias")
    if isinstance(node, exp.Table):
        if not isinstance(node.this, exp.Identifier):
            raise reader.refusal(
                "Q6",
                node,
                "a table function is no table.",
                why="only the tables the curator declared can be read, not files.",
                fix=f"read one of {list_names(reader.schema.tables)}.",
            )
        return _named(node, frame)
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


def _named(node: exp.Table, frame: Frame) -> Item:
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
                f"{suggest_name(name, reader.schema.tables)}the tables are "
                f"{list_names(reader.schema.tables)}.",
            ),
        )
    alias = check_name(alias_node.this, reader) if alias_node else key
    return _table(reader.schema.tables[key], alias, node, frame)


def _every_column(schema: Schema) -> list[str]:
    return [column.name for table in schema.tables.values() for column in table.columns]


def _table(table: Table, alias: str, node: exp.Table, frame: Frame) -> Item:
    frame.tables.append(table.name)
    if len(frame.tables) > MOST_TABLES:
        raise QuestionRefusal(
            "Q3",
            f"the question reads more than {MOST_TABLES} tables.",
            why="a question must be understood wholly before it can be priced.",
            fix="ask for less at once.",
        )
    pairs = tuple((f"{alias}.{c.name}", c.name) for c in table.columns)
    tree = exp.Table(**{**node.args, **table_tree(table.name, alias).args})
    names = {own: name for name, own in pairs}
    if table.public:
        return Item(alias, PublicSource(table, pairs), names, None, copy_span(tree, node.this))
    unit = () if table.unit == ROW else tuple(names.get(u) for u in table.unit or ())
    return Item(alias, Source(table, pairs), names, unit, copy_span(tree, node.this))


# --- joins -------------------------------------------------------------------------------------
#
# On the unit, or with a public table: every row keeps exactly one owner.


def read_rows(select: exp.Select, frame: Frame) -> Rows:
    """FROM, its joins, and WHERE."""
    reader = frame.reader
    start = select.args.get("from_")
    if start is None:
        raise public_only_refusal(reader, select)
    first = read_item(start.this, frame)
    joins = list(select.args.get("joins") or [])
    if first.public and joins:
        rows = _read_public_first(first, joins.pop(0), start, frame)
    elif first.public:
        raise public_only_refusal(reader, start)
    else:
        tree = exp.From(**{**start.args, "this": first.tree})
        scope = Scope(reader, (first,))
        rows = Rows(_private(first), scope, first.unit or (), {"from_": tree})
    for join in joins:
        rows = _read_join(rows, join, frame)
    return apply_where(rows, select, reader)


def _private(item: Item) -> Relation:
    if isinstance(item.relation, PublicSource):
        raise TypeError("a public table has no owner")
    return item.relation


def _read_public_first(first: Item, join: exp.Join, start: exp.From, frame: Frame) -> Rows:
    """A public table first: the private one it is joined to takes its place."""
    reader = frame.reader
    second = read_item(join.this, frame)
    if second.public:
        raise reader.refusal(
            "Q19",
            join,
            "a private table must be among the first two in FROM.",
            why="rows must have an owner before anything is joined to them.",
            fix="start with the private table: FROM private JOIN public ON ... JOIN public ON ...",
        )
    if _join_kind(join, reader) is JoinKind.LEFT:
        _check_lists_groups(first, second, join, reader)
        join = join.copy()
        join.set("side", None)
        join.set("kind", None)
    tree = exp.From(**{**start.args, "this": second.tree})
    rows = Rows(_private(second), Scope(reader, (second,)), second.unit or (), {"from_": tree})
    return _join_item(rows, first, join, reader)


def _check_lists_groups(first: Item, second: Item, join: exp.Join, reader: Reader) -> None:
    """A public table LEFT JOINed to a private one lists groups: its rows are known to all.

    Then each of its values is a public group of its own, also where nobody is in it, and what
    is counted is people's rows alone.
    """
    known = reader.columns(first.relation)
    named = {c.name.casefold() for c in join.find_all(exp.Column)}
    named |= {identifier.name.casefold() for identifier in join.args.get("using") or []}
    joined = [own for name, own in first.columns.items() if name.casefold() in named]
    if any(known[own].list_values() is not None for own in joined):
        return
    raise reader.refusal(
        "Q20",
        join,
        f"nothing says which values '{first.alias}' lists.",
        why="a row without a partner belongs to nobody, and would tell by being there that nobody "
        "has one, unless all such rows are in the answer anyway.",
        fix=f"turn it around: FROM {second.alias} JOIN {first.alias} ON ...; or join a public "
        "table on a column of at most 1,000 values.",
    )


def _read_join(rows: Rows, join: exp.Join, frame: Frame) -> Rows:
    if not _is_cross(join):
        _join_kind(join, frame.reader)  # refuse other kinds before looking further
    return _join_item(rows, read_item(join.this, frame), join, frame.reader)


def _is_cross(join: exp.Join) -> bool:
    """Whether every row meets every row: CROSS JOIN, or a comma."""
    said = {name for name, value in join.args.items() if value}
    return said == {"this"} or (said == {"this", "kind"} and join.args["kind"] == "CROSS")


def _name_common_columns(rows: Rows, item: Item, join: exp.Join, reader: Reader) -> exp.Join:
    """``NATURAL JOIN`` is USING all columns of the same name."""
    if str(join.args.get("method") or "") != "NATURAL":
        return join
    names = {name.casefold() for i in rows.scope.items for name in i.columns}
    common = [name for name in item.columns if name.casefold() in names]
    if not common:
        raise reader.refusal(
            JOIN.code,
            join,
            "no column has the same name on both sides of NATURAL JOIN.",
            why=JOIN.why,
            fix=JOIN.fix,
        )
    copy = join.copy()
    copy.set("method", None)
    copy.set("using", [exp.to_identifier(name, quoted=True) for name in common])
    return copy


def _join_kind(join: exp.Join, reader: Reader) -> JoinKind:
    side, kind = str(join.args.get("side") or ""), str(join.args.get("kind") or "")
    natural = str(join.args.get("method") or "") == "NATURAL"
    conditioned = (join.args.get("on") is not None or join.args.get("using") or natural) and (
        natural or not join.args.get("method")
    )
    if conditioned and side == "FULL" and kind in ("", "OUTER"):
        return JoinKind.FULL
    if conditioned and side == "" and kind in ("", "INNER"):
        return JoinKind.INNER
    if conditioned and side == "LEFT" and kind in ("", "OUTER"):
        return JoinKind.LEFT
    if side == "RIGHT":
        what = "RIGHT JOIN is outside the dialect."
        fix: str | Fix = reader.suggest_fix(
            join, swap_join_sides, "turn it around: b LEFT JOIN a ON ..."
        )
    elif not conditioned:
        what = "a join without a condition pairs everybody with everybody."
        fix = reader.suggest_fix(join, move_where_to_join, "write a JOIN b ON a.x = b.x.")
    else:
        what, fix = f"{kind or side} JOIN is outside the dialect.", JOIN.fix
    raise reader.refusal(JOIN.code, join, what, why=JOIN.why, fix=fix)


@dataclass(frozen=True, slots=True)
class Condition:
    """ON, taken apart: pairs of equal things of the two sides, and whatever else it says."""

    pairs: tuple[tuple[exp.Expr, exp.Expr], ...]  # (of the left side, of the right side)
    others: tuple[exp.Expr, ...]
    merged: tuple[tuple[str, str], ...] = ()  # names in USING, and the left column


def _join_item(rows: Rows, item: Item, join: exp.Join, reader: Reader) -> Rows:
    """``rows`` joined to one more thing."""
    if any(item.alias.casefold() == other.alias.casefold() for other in rows.scope.items):
        raise reader.refusal(
            "Q8",
            join.this,
            f"two things in FROM are called '{item.alias}'.",
            why="it must be certain whose rows are read.",
            fix=f"give one an alias: {item.alias} AS other.",
        )
    if _is_cross(join) and item.public:
        return _cross_public(rows, item, join)
    kind = _join_kind(join, reader)
    join = _name_common_columns(rows, item, join, reader)
    both = replace(rows.scope, items=(*rows.scope.items, item))
    condition = _read_condition(rows, item, join, both)
    if kind is not JoinKind.INNER and condition.others:
        raise _one_sided(condition.others[0], item, reader)
    merged = {**both.merged, **(dict(condition.merged) if kind is not JoinKind.FULL else {})}
    both = replace(both, merged=merged)
    if item.public:
        return _join_public(rows, item, join, condition, both)
    return _join_on_unit(rows, item, join, condition, both)


def _cross_public(rows: Rows, item: Item, join: exp.Join) -> Rows:
    """Every row with every row of a public table, which has only so many."""
    if not isinstance(item.relation, PublicSource):
        raise TypeError("a private table has an owner")
    both = replace(rows.scope, items=(*rows.scope.items, item))
    relation = PublicJoin(rows.relation, item.relation, ())
    tree = exp.Join(**{**join.args, "this": item.tree, "kind": "CROSS"})
    return _append_join(rows, relation, both, tree, [])


def _read_condition(rows: Rows, item: Item, join: exp.Join, both: Scope) -> Condition:
    reader = both.reader
    right = set(item.columns.values())
    if join.args.get("using"):
        return _read_using(rows.scope, item, join, reader)
    pairs: list[tuple[exp.Expr, exp.Expr]] = []
    others: list[exp.Expr] = []
    for tree in conjuncts(normalize(join.args["on"], both, reader)):
        sides = (
            [_side(part, right) for part in (tree.this, tree.expression)]
            if (isinstance(tree, exp.EQ))
            else []
        )
        if sides == ["left", "right"]:
            pairs.append((tree.this, tree.expression))
        elif sides == ["right", "left"]:
            pairs.append((tree.expression, tree.this))
        else:
            others.append(tree)
    return Condition(tuple(pairs), tuple(others))


def _side(tree: exp.Expr, right: set[str]) -> str:
    names = {c.name for c in tree.find_all(exp.Column)}
    if not names:
        return "neither"
    return "right" if names <= right else "both" if names & right else "left"


def _read_using(scope: Scope, item: Item, join: exp.Join, reader: Reader) -> Condition:
    pairs, merged = [], []
    for identifier in join.args["using"]:
        left = scope.column(exp.Column(this=identifier.copy()))
        name = find_name(identifier.name, item.columns, identifier, reader)
        if name is None:
            raise reader.refusal(
                "Q7",
                identifier,
                f"'{item.alias}' has no column '{identifier.name}'.",
                why="only what the curator declared can be read.",
                fix="write ON a.x = b.y.",
            )
        pairs.append((left, column(item.columns[name])))
        merged.append((name.casefold(), left.name))
    return Condition(tuple(pairs), (), tuple(merged))


def _one_sided(tree: exp.Expr, item: Item, reader: Reader) -> QuestionRefusal:
    return reader.refusal(
        "Q20",
        tree,
        "the condition of a LEFT JOIN is equality of a column on each side.",
        why="each row of the left side must find its partners in one way that is written down.",
        fix=f"filter '{item.alias}' first, in a sub-query in FROM (private tables only), or use "
        "JOIN and put the condition in WHERE.",
    )


def _on_tree(pairs: Sequence[tuple[exp.Expr, exp.Expr]]) -> exp.Expr:
    return conjunction([exp.EQ(this=left, expression=right) for left, right in pairs])


def _join_tree(join: exp.Join, item: Item, on: exp.Expr) -> exp.Join:
    """The join in normal form; an argument that nobody read is still there."""
    side = str(join.args.get("side") or "")
    known = {"this": item.tree, "on": on, "side": side if side in ("LEFT", "FULL") else None}
    known |= {"kind": None, "using": None}
    return exp.Join(**{**join.args, **known})


def _join_public(rows: Rows, item: Item, join: exp.Join, found: Condition, both: Scope) -> Rows:
    reader = both.reader
    pairs, others = [], list(found.others)
    for left, right in found.pairs:
        if isinstance(right, exp.Column):
            pairs.append((left, right))
        else:
            others.append(exp.EQ(this=left, expression=right))
    if not pairs or not isinstance(item.relation, PublicSource):
        raise reader.refusal(
            "Q20",
            join.args.get("on") or join,
            f"a join with the public table '{item.alias}' needs one of its columns to be equal to "
            "something.",
            why="how many rows one person's row turns into must be known beforehand.",
            fix=f"write ON x = {item.alias}.column.",
        )
    if _join_kind(join, reader) is JoinKind.FULL:
        raise reader.refusal(
            JOIN.code,
            join,
            f"FULL JOIN with the public table '{item.alias}' is outside the dialect.",
            why="its rows without a partner would belong to nobody, and tell by being there that "
            "nobody has one.",
            fix="use LEFT JOIN; groups of listed values are in the answer anyway.",
        )
    if others and _join_kind(join, reader) is JoinKind.LEFT:
        raise _one_sided(others[0], item, reader)
    known = reader.columns(rows.relation)
    equal = tuple((read_typed(left, known, reader), right.name) for left, right in pairs)
    relation = PublicJoin(rows.relation, item.relation, equal, _join_kind(join, reader))
    with reader.at(join.args.get("on") or join):
        known = reader.columns(relation)
        for expression, name in equal:
            domain_of(Call("equal", (expression, ColumnRef(name))), known)
    tree = _join_tree(join, item, _on_tree(pairs))
    return _append_join(rows, relation, both, tree, others)


def _append_join(
    rows: Rows, relation: Relation, scope: Scope, join: exp.Join, others: list[exp.Expr]
) -> Rows:
    joins = [*rows.clauses.get("joins", []), join]  # type: ignore[misc]
    return Rows(
        relation,
        scope,
        rows.unit,
        {**rows.clauses, "joins": joins},
        (*rows.extra, *others),
    )


def _join_on_unit(rows: Rows, item: Item, join: exp.Join, found: Condition, both: Scope) -> Rows:
    reader = both.reader
    wanted = _unit_pairs(rows, item, join, reader)
    missing = [pair for pair in wanted if pair not in found.pairs]
    if missing:
        raise _not_on_unit(item, join, missing, reader)
    kind = _join_kind(join, reader)
    names, others = [], list(found.others)
    for left, right in found.pairs:
        if (left, right) in wanted:
            continue
        if isinstance(left, exp.Column) and isinstance(right, exp.Column):
            names.append((left.name, right.name))
        elif kind is not JoinKind.INNER:
            raise _one_sided(exp.EQ(this=left, expression=right), item, reader)
        else:
            others.append(exp.EQ(this=left, expression=right))
    relation = UnitJoin(rows.relation, _private(item), tuple(names), kind)
    with reader.at(join.args.get("on") or join):
        known = reader.columns(relation)
        for left_name, right_name in names:
            domain_of(Call("equal", (ColumnRef(left_name), ColumnRef(right_name))), known)
    pairs = [*wanted, *((column(a), column(b)) for a, b in names)]
    if kind is JoinKind.INNER:  # then the unit of the right side is the unit of the left
        same = {right.name: left.name for left, right in wanted}
        both = replace(both, same={**both.same, **same})
    if kind is JoinKind.FULL:  # on some rows one side's is NULL: neither says whose a row is
        rows = replace(rows, unit=tuple(None for _ in rows.unit))
    return _append_join(rows, relation, both, _join_tree(join, item, _on_tree(pairs)), others)


def _unit_pairs(
    rows: Rows, item: Item, join: exp.Join, reader: Reader
) -> list[tuple[exp.Expr, exp.Expr]]:
    """Which columns must be equal for both rows to belong to the same unit."""
    left, right = rows.unit, item.unit or ()
    if not left or not right or len(left) != len(right) or None in (*left, *right):
        raise reader.refusal(
            "Q18",
            join,
            f"'{item.alias}' and what it is joined to have no unit in common that is in sight.",
            why="a row made of two people's rows belongs to both, and no bound holds for either.",
            fix="select the unit's columns in both sub-queries and join on them; tables of "
            "different units, or without a unit column, cannot be joined.",
        )
    return [(column(a), column(b)) for a, b in zip(left, right, strict=True) if a and b]


def _not_on_unit(
    item: Item,
    join: exp.Join,
    missing: list[tuple[exp.Expr, exp.Expr]],
    reader: Reader,
) -> QuestionRefusal:
    added: list[exp.Expr] = [
        exp.EQ(this=_column_as_written(a), expression=_column_as_written(b)) for a, b in missing
    ]
    return reader.refusal(
        "Q18",
        join.args.get("on") or join,
        f"'{item.alias}' is joined on something else than the unit.",
        why="a row made of two people's rows belongs to both, and no bound holds for either.",
        fix=reader.suggest_fix(
            join,
            add_join_conditions(added),
            "join each person's rows with their own: ON a.unit = b.unit.",
        ),
    )


def _column_as_written(tree: exp.Expr) -> exp.Column:
    """A column in normal form as the analyst would write it."""
    alias, _, name = tree.name.partition(".")
    return exp.column(name, table=alias)
