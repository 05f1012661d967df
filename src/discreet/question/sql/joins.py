"""Joins: on the unit, or with a public table; every row keeps exactly one owner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.question.expressions import Call, ColumnRef
from discreet.question.functions import domain_of
from discreet.question.relation import (
    JoinKind,
    PublicJoin,
    PublicSource,
    Relation,
    UnitJoin,
)
from discreet.question.sql.allow import JOIN
from discreet.question.sql.names import Item, Scope, match
from discreet.question.sql.normal import normal
from discreet.question.sql.reader import Fix, Reader
from discreet.question.sql.rewriting import from_where, on, turned
from discreet.question.sql.scalars import column, conjunction, conjuncts
from discreet.question.sql.sources import (
    Frame,
    Rows,
    filtered,
    no_private_table,
    read_item,
    typed,
)


def read_rows(select: exp.Select, frame: Frame) -> Rows:
    """FROM, its joins, and WHERE."""
    reader = frame.reader
    start = select.args.get("from_")
    if start is None:
        raise no_private_table(reader, select)
    first = read_item(start.this, frame)
    joins = list(select.args.get("joins") or [])
    if first.public and joins:
        rows = _swapped(first, joins.pop(0), start, frame)
    elif first.public:
        raise no_private_table(reader, start)
    else:
        tree = exp.From(**{**start.args, "this": first.tree})
        scope = Scope(reader, (first,))
        rows = Rows(_private(first), scope, first.unit or (), {"from_": tree})
    for join in joins:
        rows = _joined(rows, join, frame)
    return filtered(rows, select, reader)


def _private(item: Item) -> Relation:
    if isinstance(item.relation, PublicSource):
        raise TypeError("a public table has no owner")
    return item.relation


def _swapped(first: Item, join: exp.Join, start: exp.From, frame: Frame) -> Rows:
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
    if _kind(join, reader) is JoinKind.LEFT:
        raise reader.refusal(
            "Q20",
            join,
            "a public table cannot be LEFT JOINed to a private one.",
            why="the rows without a partner would belong to nobody, and tell by being there that "
            "nobody has one.",
            fix=f"turn it around: FROM {second.alias} LEFT JOIN {first.alias} ON ...; groups of "
            "declared values are in the answer anyway.",
        )
    tree = exp.From(**{**start.args, "this": second.tree})
    rows = Rows(_private(second), Scope(reader, (second,)), second.unit or (), {"from_": tree})
    return _with(rows, first, join, reader)


def _joined(rows: Rows, join: exp.Join, frame: Frame) -> Rows:
    _kind(join, frame.reader)  # refuse CROSS and the like before looking further
    return _with(rows, read_item(join.this, frame), join, frame.reader)


def _kind(join: exp.Join, reader: Reader) -> JoinKind:
    side, kind = str(join.args.get("side") or ""), str(join.args.get("kind") or "")
    conditioned = join.args.get("on") is not None or join.args.get("using")
    if conditioned and side == "" and kind in ("", "INNER"):
        return JoinKind.INNER
    if conditioned and side == "LEFT" and kind in ("", "OUTER"):
        return JoinKind.LEFT
    if side == "RIGHT":
        what = "RIGHT JOIN is outside the dialect."
        fix: str | Fix = reader.instead(join, turned, "turn it around: b LEFT JOIN a ON ...")
    elif side == "FULL":
        what = "FULL JOIN is outside the dialect."
        fix = "ask two questions, or use LEFT JOIN."
    elif not conditioned:
        what = "a join without a condition pairs everybody with everybody."
        fix = reader.instead(join, from_where, "write a JOIN b ON a.x = b.x.")
    else:
        what, fix = f"{kind or side} JOIN is outside the dialect.", JOIN.fix
    raise reader.refusal(JOIN.code, join, what, why=JOIN.why, fix=fix)


@dataclass(frozen=True, slots=True)
class Condition:
    """ON, taken apart: pairs of equal things of the two sides, and whatever else it says."""

    pairs: tuple[tuple[exp.Expr, exp.Expr], ...]  # (of the left side, of the right side)
    others: tuple[exp.Expr, ...]
    merged: tuple[tuple[str, str], ...] = ()  # names in USING, and the left column


def _with(rows: Rows, item: Item, join: exp.Join, reader: Reader) -> Rows:
    """``rows`` joined to one more thing."""
    if any(item.alias.casefold() == other.alias.casefold() for other in rows.scope.items):
        raise reader.refusal(
            "Q8",
            join.this,
            f"two things in FROM are called '{item.alias}'.",
            why="it must be certain whose rows are read.",
            fix=f"give one an alias: {item.alias} AS other.",
        )
    kind = _kind(join, reader)
    both = replace(rows.scope, items=(*rows.scope.items, item))
    condition = _condition(rows, item, join, both)
    if kind is JoinKind.LEFT and condition.others:
        raise _one_sided(condition.others[0], item, reader)
    merged = {**both.merged, **dict(condition.merged)}
    both = replace(both, merged=merged)
    if item.public:
        return _public(rows, item, join, condition, both)
    return _on_unit(rows, item, join, condition, both)


def _condition(rows: Rows, item: Item, join: exp.Join, both: Scope) -> Condition:
    reader = both.reader
    right = set(item.columns.values())
    if join.args.get("using"):
        return _using(rows.scope, item, join, reader)
    pairs: list[tuple[exp.Expr, exp.Expr]] = []
    others: list[exp.Expr] = []
    for tree in conjuncts(normal(join.args["on"], both, reader)):
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


def _using(scope: Scope, item: Item, join: exp.Join, reader: Reader) -> Condition:
    pairs, merged = [], []
    for identifier in join.args["using"]:
        left = scope.column(exp.Column(this=identifier.copy()))
        name = match(identifier.name, item.columns, identifier, reader)
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
    left = str(join.args.get("side") or "") == "LEFT"
    known = {"this": item.tree, "on": on, "side": "LEFT" if left else None}
    known |= {"kind": None, "using": None}
    return exp.Join(**{**join.args, **known})


def _public(rows: Rows, item: Item, join: exp.Join, found: Condition, both: Scope) -> Rows:
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
    if others and _kind(join, reader) is JoinKind.LEFT:
        raise _one_sided(others[0], item, reader)
    known = reader.columns(rows.relation)
    equal = tuple((typed(left, known, reader), right.name) for left, right in pairs)
    relation = PublicJoin(rows.relation, item.relation, equal, _kind(join, reader))
    with reader.at(join.args.get("on") or join):
        known = reader.columns(relation)
        for expression, name in equal:
            domain_of(Call("equal", (expression, ColumnRef(name))), known)
    tree = _join_tree(join, item, _on_tree(pairs))
    return _extended(rows, relation, both, tree, others)


def _extended(
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


def _on_unit(rows: Rows, item: Item, join: exp.Join, found: Condition, both: Scope) -> Rows:
    reader = both.reader
    wanted = _unit_pairs(rows, item, join, reader)
    missing = [pair for pair in wanted if pair not in found.pairs]
    if missing:
        raise _not_on_unit(item, join, missing, reader)
    kind = _kind(join, reader)
    names, others = [], list(found.others)
    for left, right in found.pairs:
        if (left, right) in wanted:
            continue
        if isinstance(left, exp.Column) and isinstance(right, exp.Column):
            names.append((left.name, right.name))
        elif kind is JoinKind.LEFT:
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
    return _extended(rows, relation, both, _join_tree(join, item, _on_tree(pairs)), others)


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
    added: list[exp.Expr] = [exp.EQ(this=_written(a), expression=_written(b)) for a, b in missing]
    return reader.refusal(
        "Q18",
        join.args.get("on") or join,
        f"'{item.alias}' is joined on something else than the unit.",
        why="a row made of two people's rows belongs to both, and no bound holds for either.",
        fix=reader.instead(
            join, on(added), "join each person's rows with their own: ON a.unit = b.unit."
        ),
    )


def _written(tree: exp.Expr) -> exp.Column:
    """A column in normal form as the analyst would write it."""
    alias, _, name = tree.name.partition(".")
    return exp.column(name, table=alias)
