"""Joins that look something up, written out in joins and conditions that are read already.

``SEMI`` and ``ANTI JOIN``, ``ASOF JOIN``, ``LATERAL`` of aggregates, a condition on the left side
in ON, and an expression of a table in the place of its column.  Each means exactly what it is
replaced by; whose rows meet whose is decided later, as of every join.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from discreet.question.schema import Table
from discreet.question.sql.dialect import Reader


def write_partners_out(query: exp.Select, reader: Reader) -> None:
    """Change the joins of ``query`` in place."""
    private = {name.casefold() for name, t in reader.schema.tables.items() if not t.public}
    _test_partners(query)
    _look_up_beside(query)
    _match_nearest(query, reader, private)
    _name_computed_keys(query, private)
    _equate_conditions(query, private)


def _test_partners(query: exp.Select) -> None:
    """``a SEMI JOIN b USING (k)`` is ``a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)``."""
    joins, start = list(query.args.get("joins") or ()), query.args.get("from_")
    for join in joins:
        kind = str(join.args.get("kind") or "").upper()
        said = _list_said(join) - {"this", "kind"}
        if kind not in ("SEMI", "ANTI") or start is None or said not in ({"on"}, {"using"}):
            continue
        left, right = start.this.alias_or_name, join.this.alias_or_name
        equal = [
            exp.EQ(
                this=exp.column(name.name, right, quoted=True),
                expression=exp.column(name.name, left, quoted=True),
            )
            for name in join.args.get("using") or ()
        ]
        condition = exp.and_(*equal, copy=False) if equal else join.args["on"].copy()
        inside = exp.Select(
            expressions=[exp.Literal.number(1)],
            from_=exp.From(this=join.this.copy()),
            where=exp.Where(this=condition),
        )
        test: exp.Expr = exp.Exists(this=inside)
        join.pop()
        _add_condition(query, test if kind == "SEMI" else exp.Not(this=test))


def _equate_conditions(query: exp.Select, private: set[str]) -> None:
    """``p LEFT JOIN a ON a.k = p.k AND p.x > 3``: a column of p that says so equals TRUE of a.

    Rows of p that do not meet it keep their row, and find no partner.
    """
    start = query.args.get("from_")
    known = {} if start is None else {start.this.alias_or_name.casefold(): start.this}
    for number, join in enumerate(query.args.get("joins") or ()):
        right, on = join.this, join.args.get("on")
        parts = list(on.flatten()) if isinstance(on, exp.And) else []
        if str(join.args.get("side") or "").upper() == "LEFT" and right.name.casefold() in private:
            for name, left in list(known.items()):
                met = [part for part in parts if _tables(part) == {name}]
                if met and _is_plain(left) and _is_plain(right) and left.name.casefold() in private:
                    title = f"meets {number + 1}"
                    first, second = left.alias_or_name, right.alias_or_name
                    holds = exp.and_(*(part.copy() for part in met), copy=False)
                    known[name] = _with_column(left, holds, title)
                    own = [part for part in parts if _tables(part) == {second.casefold()}]
                    _with_column(right, exp.true(), title, own)
                    same = exp.EQ(
                        this=exp.column(title, second, quoted=True),
                        expression=exp.column(title, first, quoted=True),
                    )
                    kept = [part.copy() for part in parts if part not in met and part not in own]
                    join.set("on", exp.and_(*kept, same, copy=False))
                    break
        known[join.this.alias_or_name.casefold()] = join.this


def _is_plain(source: exp.Expr) -> bool:
    """Whether it is a table whose columns are called as they are declared."""
    alias = source.args.get("alias")
    renamed = alias is not None and alias.args.get("columns")
    return isinstance(source, exp.Table) and not renamed


def _tables(condition: exp.Expr) -> set[str]:
    """The tables that a condition is about, as far as its columns name them."""
    if condition.find(exp.Query) is not None:
        return set()
    return {column.table.casefold() for column in condition.find_all(exp.Column)}


def _with_column(
    table: exp.Expr, value: exp.Expr, title: str, kept: Sequence[exp.Expr] = ()
) -> exp.Expr:
    """A sub-query in the place of ``table``, of the rows ``kept``, with one column more."""
    name = table.alias_or_name
    where = exp.Where(this=exp.and_(*(part.copy() for part in kept), copy=False)) if kept else None
    for part in (value, where):
        for column in () if part is None else part.find_all(exp.Column):
            column.set("table", None)
    source = exp.Table(**{**table.copy().args, "alias": None})
    named = exp.Alias(this=value, alias=exp.to_identifier(title, quoted=True))
    query = exp.Select(expressions=[exp.Star(), named], from_=exp.From(this=source), where=where)
    alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
    made = exp.Subquery(this=query, alias=alias)
    table.replace(made)
    return made


def _add_condition(query: exp.Select, condition: exp.Expr) -> None:
    where = query.args.get("where")
    if where is not None:
        kept = where.this
        kept = exp.paren(kept, copy=False) if isinstance(kept, exp.Or) else kept
        condition = exp.And(this=kept, expression=condition)
    query.set("where", exp.Where(this=condition))


# --- the nearest row of the same unit ---------------------------------------------------------

Word = type[exp.Binary]
Matched = tuple[Word, exp.Expr, exp.Expr]
"""How a moment on the left is compared with one on the right."""
Pairs = list[tuple[exp.Expr, exp.Expr]]
"""Columns that are equal, left and right."""

_TURNED: dict[Word, Word] = {
    exp.GTE: exp.LTE,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.LT: exp.GT,
}
_STRICT: dict[Word, Word] = {
    exp.GTE: exp.LT,
    exp.GT: exp.LTE,
    exp.LTE: exp.GT,
    exp.LT: exp.GTE,
}
"""What the next row on the other side of a moment is not."""


def _match_nearest(query: exp.Select, reader: Reader, private: set[str]) -> None:
    """``a ASOF JOIN b ON a.k = b.k AND a.t >= b.t``: b's row from b.t until b's next t.

    Each row of b knows the t of the next one of the same k, and meets the rows of a between the
    two: at most one row of b each, the latest.  Of several rows of b of one moment one is met.
    """
    start = query.args.get("from_")
    for number, join in enumerate(query.args.get("joins") or ()):
        said = _list_said(join) - {"this"}
        right = join.this
        inner = str(join.args.get("kind") or "INNER").upper() == "INNER"
        if start is None or str(join.args.get("method") or "").upper() != "ASOF" or not inner:
            continue
        if said - {"kind"} not in ({"method", "on"}, {"method", "using"}):
            continue
        if not _is_plain(right) or right.name.casefold() not in private:
            continue
        sides = start.this.alias_or_name, right.alias_or_name
        known = {name.casefold(): table for name, table in reader.schema.tables.items()}
        table = known[right.name.casefold()]
        parts = _list_matched(join, sides, table)
        unit = {name.casefold() for name in table.unit or ()}
        if parts is None or not unit <= {mine.name.casefold() for _, mine in parts[0]}:
            continue  # the latest row would be anybody's
        if "using" in said and not _name_left(query, join, sides[0]):
            continue
        _write_match(join, *parts, f"next {number + 1}")


def _write_match(join: exp.Join, equal: Pairs, matched: Matched, title: str) -> None:
    """Join with the next moment beside each row, and compare with both."""
    word, moment, own = matched
    right, name = join.this, join.this.alias_or_name
    after = "LEAD" if word in (exp.GTE, exp.GT) else "LAG"
    following = exp.Window(
        this=exp.Anonymous(this=after, expressions=[exp.column(own.name)]),
        partition_by=[exp.column(mine.name) for _, mine in equal],
        order=exp.Order(expressions=[exp.Ordered(this=exp.column(own.name))]),
        over="OVER",
    )
    there = exp.Not(this=exp.Is(this=exp.column(own.name), expression=exp.Null()))
    _with_column(right, following, title, [there])
    next_one = exp.column(title, name, quoted=True)
    last = exp.Is(this=next_one, expression=exp.Null())
    before = _STRICT[word](this=moment.copy(), expression=next_one.copy())
    met: list[exp.Expr] = [exp.EQ(this=one.copy(), expression=other.copy()) for one, other in equal]
    met.append(word(this=moment.copy(), expression=own.copy()))
    met.append(exp.paren(exp.or_(last, before, copy=False), copy=False))
    join.set("method", None)
    join.set("using", None)
    join.set("on", exp.and_(*met, copy=False))


def _list_matched(
    join: exp.Join, sides: tuple[str, str], table: Table
) -> tuple[Pairs, Matched] | None:
    """Pairs of columns that are equal, left and right, and the one pair that is ordered."""
    left, right = sides
    if join.args.get("using"):
        *same, moment = (name.name for name in join.args["using"])
        pairs: Pairs = [(exp.column(name, left), exp.column(name, right)) for name in same]
        return pairs, (exp.GTE, exp.column(moment, left), exp.column(moment, right))
    own = {c.name.casefold() for c in table.columns}
    equal: Pairs = []
    ordered: list[Matched] = []
    for part in join.args["on"].flatten() if isinstance(join.args["on"], exp.And) else ():
        if not isinstance(part, exp.EQ | exp.GTE | exp.GT | exp.LTE | exp.LT):
            return None
        pair = (part.this, part.expression)
        if not all(isinstance(side, exp.Column) for side in pair):
            return None
        mine = [
            side.table.casefold() == right.casefold() if side.table else side.name.casefold() in own
            for side in pair
        ]
        if mine[0] == mine[1]:
            return None
        one, other = (pair[1], pair[0]) if mine[0] else pair
        word = _TURNED.get(type(part), type(part)) if mine[0] else type(part)
        if word is exp.EQ:
            equal.append((one, other))
        else:
            ordered.append((word, one, other))
    return (equal, ordered[0]) if len(ordered) == 1 and equal else None


def _name_left(query: exp.Select, join: exp.Join, left: str) -> bool:
    """After USING, a column of its names is the left one's; False where * would show two."""
    if any(item.is_star for item in query.expressions):
        return False
    names = {name.name.casefold() for name in join.args["using"]}
    for node in query.walk(prune=lambda n: n is not query and isinstance(n, exp.Query)):
        if isinstance(node, exp.Column) and not node.table and node.name.casefold() in names:
            node.set("table", exp.to_identifier(left))
    return True


# --- LATERAL ----------------------------------------------------------------------------------


def _look_up_beside(query: exp.Select) -> None:
    """``a, LATERAL (SELECT MAX(x) AS m FROM b WHERE b.k = a.k) AS l``: for l.m the sub-query.

    Of aggregates without GROUP BY there is one row, whatever is found.
    """
    for join in list(query.args.get("joins") or ()):
        found = join.this
        if not isinstance(found, exp.Lateral) or _list_said(found) != {"this", "alias"}:
            continue  # what else is said of it would be forgotten
        inner = found.this.this
        if not isinstance(inner, exp.Select) or not _is_of_all(join, inner):
            continue
        name = found.alias.casefold()
        values = {item.alias.casefold(): item.this for item in inner.expressions if item.alias}
        inside = {id(node) for node in found.walk()}
        used = [
            node
            for node in query.find_all(exp.Column)
            if id(node) not in inside
            and node.name.casefold() in values
            and node.table.casefold() in ("", name)
        ]
        if not name or len(values) != len(inner.expressions):
            continue
        for node in used:
            alone = inner.copy()
            alone.set("expressions", [values[node.name.casefold()].copy()])
            node.replace(exp.Subquery(this=alone))
        join.pop()


def _is_of_all(join: exp.Join, inner: exp.Select) -> bool:
    """Whether every row meets one row of aggregates."""
    said = _list_said(join) - {"this"}
    plain = said <= {"kind"} and str(join.args.get("kind") or "CROSS").upper() == "CROSS"
    on = join.args.get("on")
    always = said <= {"kind", "side", "on"} and isinstance(on, exp.Boolean) and bool(on.this)
    sided = str(join.args.get("side") or "").upper() in ("", "LEFT")
    parts = _list_said(inner)
    counted = all(item.find(exp.Anonymous) is not None for item in inner.expressions)
    return (plain or (always and sided)) and parts <= {"expressions", "from_", "where"} and counted


def _list_said(node: exp.Expr) -> set[str]:
    """The arguments of a node that say something."""
    return {key for key, value in node.args.items() if value}


# --- computed keys ----------------------------------------------------------------------------


def _name_computed_keys(query: exp.Select, private: set[str]) -> None:
    """``k LEFT JOIN v ON HOUR(v.at) = k.h``: a column of v that says so equals k.h."""
    start = query.args.get("from_")
    joins = query.args.get("joins") or ()
    sources = [] if start is None else [start.this, *(join.this for join in joins)]
    known = {source.alias_or_name.casefold(): source for source in sources}
    for number, join in enumerate(joins):
        if not join.args.get("side") or join.args.get("on") is None:
            continue
        on = join.args["on"]
        for place, part in enumerate(list(on.flatten()) if isinstance(on, exp.And) else [on]):
            sides = (part.this, part.expression) if isinstance(part, exp.EQ) else ()
            computed = [side for side in sides if not isinstance(side, exp.Column | exp.Literal)]
            if len(computed) != 1 or len(tables := _tables(computed[0])) != 1:
                continue
            (name,) = tables
            source = known.get(name)
            if source is None or not _is_plain(source) or source.name.casefold() not in private:
                continue
            title = f"key {number + 1} {place + 1}"
            alias = source.alias_or_name
            value = computed[0].copy()
            computed[0].replace(exp.column(title, alias, quoted=True))
            known[name] = _with_column(source, value, title)


__all__ = ["write_partners_out"]
