"""Joins: on the unit, or with a public table, so that every row keeps exactly one owner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.question.expressions import Call, ColumnRef
from discreet.question.functions import domain_of
from discreet.question.ownership import has_two_owners, owner_columns
from discreet.question.relation import (
    JoinKind,
    OwnerJoin,
    PublicJoin,
    PublicSource,
    Relation,
    UnitJoin,
)
from discreet.question.sql.bans import JOIN
from discreet.question.sql.dialect import Fix, Reader
from discreet.question.sql.normalize import normalize
from discreet.question.sql.rewrite import add_join_conditions, move_where_to_join, swap_join_sides
from discreet.question.sql.scalars import column, conjunction, conjuncts
from discreet.question.sql.scope import Item, Scope, find_name
from discreet.question.sql.simplify import LISTED, NARROWED, keep_groups
from discreet.question.sql.sources import Frame, Rows, private_relation, read_item, read_typed


def read_public_first(first: Item, join: exp.Join, start: exp.From, frame: Frame) -> Rows:
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
        start.meta[LISTED] = True
        start.meta[NARROWED] = tuple(first.columns.values())
        join = join.copy()
        join.set("side", None)
        join.set("kind", None)
    tree = exp.From(**{**start.args, "this": second.tree})
    scope = Scope(reader, (second,))
    rows = Rows(private_relation(second), scope, second.unit or (), {"from_": tree})
    rows = _join_item(rows, first, join, reader)
    if not start.meta.get(LISTED):
        return rows
    extra = (keep_groups(e) if _mentions(e, first) else e for e in rows.extra)
    return replace(rows, extra=tuple(extra))


def _mentions(tree: exp.Expr, item: Item) -> bool:
    """Whether a condition in normal form is about a column of ``item``."""
    own = set(item.columns.values())
    return any(part.name in own for part in tree.find_all(exp.Column))


def _check_lists_groups(first: Item, second: Item, join: exp.Join, reader: Reader) -> None:
    """A public table LEFT JOINed to a private one lists groups: its rows are known to all.

    Then each of its values is a public group of its own, also where nobody is in it, and what
    is counted is people's rows alone.
    """
    known = reader.columns(first.relation)
    equal = join.find_all(exp.EQ)
    named = {c.name.casefold() for part in equal for c in part.find_all(exp.Column)}
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


def read_join(rows: Rows, join: exp.Join, frame: Frame) -> Rows:
    """``rows`` with what ``join`` adds to each."""
    if str(join.args.get("method") or "") == "ASOF":
        read_item(join.this, frame)  # of a table that does not exist, that is told first
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
    elif join.args.get("method") and not natural:
        method = str(join.args["method"])
        what = f"this {method} JOIN is none that can be written out."
        why = (
            "an ASOF JOIN looks among the same person's rows of a private table: it names what is "
            "equal, the unit too, and one comparison of a column of each side."
            if method == "ASOF"
            else JOIN.why
        )
        raise reader.refusal(JOIN.code, join, what, why=why, fix=JOIN.fix)
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
    if has_two_owners(rows.relation):
        return _join_on_owner(rows, item, join, condition, both)
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
    relation = UnitJoin(rows.relation, private_relation(item), tuple(names), kind)
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


def _join_on_owner(rows: Rows, item: Item, join: exp.Join, found: Condition, both: Scope) -> Rows:
    """What a table of people says of one of the two that a row is of."""
    reader, named = both.reader, owner_columns(rows.relation)
    theirs = [name for name in item.unit or () if name is not None]
    wanted = [
        (left, right)
        for left, right in found.pairs
        if isinstance(left, exp.Column)
        and isinstance(right, exp.Column)
        and left.name in named
        and [right.name] == theirs
    ]
    others = [exp.EQ(this=a, expression=b) for a, b in found.pairs if (a, b) not in wanted[:1]]
    kind = _join_kind(join, reader)
    if others and kind is not JoinKind.INNER:
        raise _one_sided(others[0], item, reader)
    if not wanted or len(item.unit or ()) != 1:
        raise reader.refusal(
            "Q52",
            join.args.get("on") or join,
            f"'{item.alias}' is joined to rows of two people on something else than one of them.",
            why="a row made of the rows of three people would belong to all of them.",
            fix="join a table of the same entity, with one row for each person, on one owner: JOIN "
            "people AS p ON p.person = m.sender.",
        )
    ((left, right), *_) = wanted
    relation = OwnerJoin(rows.relation, private_relation(item), left.name, kind)
    with reader.at(join.args.get("on") or join):
        reader.columns(relation)
    if kind is JoinKind.INNER:
        both = replace(both, same={**both.same, right.name: left.name})
    tree = _join_tree(join, item, _on_tree([(left, right)]))
    return _append_join(rows, relation, both, tree, [*found.others, *others])


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
