"""Sub-queries in expressions, rewritten as joins that ask the same.

What ``x IN (SELECT ...)``, EXISTS or a value looked up in a sub-query says of a
row, a join with at most one partner says too: with a sub-query in FROM that has
one row for each thing compared, or with a public table by one of its keys.  The
functions change the tree; whether the result is accepted is seen later.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from discreet.exact.records import dataclass

IsKey = Callable[[str, set[str]], bool]
"""Whether columns of a table, which is then public, single out one of its rows."""

LOOKED_UP = "looked up"
"""What a join is called that stands for a sub-query: its columns are in nobody's way."""

_READ = {"expressions", "from_", "where", "distinct", "order"}


def ask_subquery_alone(node: exp.Expr) -> None:
    """A sub-query that depends on no row is a question of its own."""
    root, inner = node.root(), node.this
    for clause in list(root.args):
        root.set(clause, None)
    for clause, value in inner.args.items():
        root.set(clause, value)


def is_looked_up(part: exp.Expr) -> bool:
    """Whether a sub-query stands here in an expression."""
    return _inner(part) is not None


Columns = Callable[[str], set[str] | None]
"""The columns of a table, in lower case; None if there is no such table."""


def join_subqueries(is_key: IsKey, columns: Columns = lambda _: None) -> Callable[[exp.Expr], None]:
    """Every sub-query in an expression becomes a join; those inside others first.

    With the ``columns`` of tables, a bare name that none of the sub-query's own tables has is one
    of the row outside, as SQL has it.
    """

    def change(node: exp.Expr) -> None:
        kinds = (exp.Exists, exp.EQ, exp.GT, exp.GTE, exp.LT)
        for said in reversed(list(node.root().find_all(*kinds))):
            _compare_with_extremes(said, is_key, columns)
        found = node.root().find_all(exp.Exists, exp.In, exp.Subquery)
        parts = [part for part in found if _inner(part) is not None]
        for number, part in enumerate(reversed(parts), start=1):
            lookup = _take_apart(part, columns)
            if lookup is None:
                continue
            if not lookup.has_key(is_key) and _looks_outside(part, lookup.rest, columns):
                continue  # inside of a join there is no row outside
            alias = LOOKED_UP if number == 1 else f"{LOOKED_UP} {number}"
            if lookup.has_key(is_key):
                _join_public(lookup, alias)
            else:
                _join_private(lookup, alias)

    return change


@dataclass(frozen=True, slots=True)
class _Lookup:
    """A sub-query in an expression, taken apart."""

    part: exp.Expr  # the whole of it: EXISTS (...), x IN (...), (SELECT ...)
    inner: exp.Select
    outer: exp.Select
    pairs: list[tuple[exp.Expr, exp.Expr]]  # things outside, and what they must equal inside
    rest: list[exp.Expr]  # the other conditions inside

    @property
    def value(self) -> exp.Expr | None:
        """What is looked up; None if only whether there is something."""
        scalar = isinstance(self.part, exp.Subquery)
        return self.inner.expressions[0].unalias() if scalar else None

    def has_key(self, is_key: IsKey) -> bool:
        """Whether it reads nothing but one public table, by a key."""
        table = self.inner.args["from_"].this
        own = {inside.name for _, inside in self.pairs if isinstance(inside, exp.Column)}
        plain = isinstance(table, exp.Table) and _list_filled(self.inner) <= _READ
        return plain and is_key(table.name, own)


def _inner(part: exp.Expr) -> exp.Select | None:
    """The SELECT of a sub-query that stands in an expression."""
    query = part.args.get("query") if isinstance(part, exp.In) else part
    if not _list_filled(part) <= {"this", "query"}:
        return None  # something that a join would forget
    if query is None or isinstance(part.parent, exp.From | exp.Join | exp.CTE | exp.Query | exp.In):
        return None
    return query.this if isinstance(query.this, exp.Select) else None


def _take_apart(part: exp.Expr, columns: Columns) -> _Lookup | None:
    inner, outer = _inner(part), part.parent_select
    if inner is None or not isinstance(outer, exp.Select) or inner.args.get("from_") is None:
        return None
    pairs, rest = _split_conditions(inner, columns)
    if any(c.text("table") and c.text("table").casefold() not in _names(outer) for c, _ in pairs):
        return None  # it is of a row further outside
    if isinstance(part, exp.Exists):
        counts = any(item.find(exp.Anonymous) for item in inner.expressions)
        if counts and inner.args.get("group") is None:
            return None  # an aggregate has always a row
    elif len(inner.expressions) != 1:
        return None
    if isinstance(part, exp.In):
        if not _only_if_true(part):
            return None  # IN may be NULL where a partner is or is not there
        pairs.insert(0, (part.this, inner.expressions[0].unalias()))
    return _Lookup(part, inner, outer, pairs, rest) if pairs else None


def _split_conditions(
    inner: exp.Select, columns: Columns
) -> tuple[list[tuple[exp.Expr, exp.Expr]], list[exp.Expr]]:
    """The conditions of a sub-query: columns outside that are equal to something, and others."""
    own = _Own.of(inner, columns)
    where = inner.args.get("where")
    pairs: list[tuple[exp.Expr, exp.Expr]] = []
    rest: list[exp.Expr] = []
    for condition in [] if where is None else _conjuncts(where.this):
        left, right = condition.this, condition.args.get("expression", condition)
        outside = [isinstance(p, exp.Column) and own.is_outside(p) for p in (left, right)]
        if not isinstance(condition, exp.EQ) or outside[0] == outside[1]:
            rest.append(condition)
        else:
            pairs.append((left, right) if outside[0] else (right, left))
    return pairs, rest


@dataclass(frozen=True, slots=True)
class _Own:
    """What a sub-query reads itself."""

    names: set[str]  # what its tables are called, in lower case
    known: set[str] | None  # their columns, if all are known

    @staticmethod
    def of(inner: exp.Select, columns: Columns) -> _Own:
        """What ``inner`` reads."""
        parts = _list_read(inner)
        own = [columns(p.this.name) if isinstance(p.this, exp.Table) else None for p in parts]
        known = None if None in own else {name for some in own for name in some or ()}
        return _Own(_names(inner), known)

    def is_outside(self, column: exp.Column) -> bool:
        """Whether it is a column of a row outside."""
        if column.table:
            return column.table.casefold() not in self.names
        return self.known is not None and column.name.casefold() not in self.known


def _list_read(query: exp.Select) -> list[exp.Expr]:
    """FROM and every JOIN; none of a SELECT of constants."""
    parts = [query.args.get("from_"), *(query.args.get("joins") or [])]
    return [part for part in parts if part is not None]


def _names(query: exp.Select) -> set[str]:
    return {part.this.alias_or_name.casefold() for part in _list_read(query)}


def _looks_outside(part: exp.Expr, rest: list[exp.Expr], columns: Columns) -> bool:
    """Whether something else than the pairs needs the row outside."""
    inner = part.find(exp.Select) if _inner(part) is None else _inner(part)
    if inner is None:
        return False
    read: list[exp.Expr] = [*rest]
    read += [] if isinstance(part, exp.Exists) else inner.expressions
    read += [j.args["on"] for j in inner.args.get("joins") or () if j.args.get("on") is not None]
    read += [inner.args[name] for name in ("group", "having") if inner.args.get(name) is not None]
    return any(map(_Own.of(inner, columns).is_outside, _columns(read)))


def names_row_outside(query: exp.Expr, columns: Columns, unit_of: Columns) -> bool:
    """Whether a sub-query of one unit's rows compares them with the row outside in more ways."""
    inner = query.find(exp.Select)
    if inner is None or inner.args.get("from_") is None:
        return False
    pairs, rest = _split_conditions(inner, columns)
    unit = unit_of(inner.args["from_"].this.name)
    theirs = {c.name.casefold() for _, c in pairs if isinstance(c, exp.Column)}
    return unit is not None and unit <= theirs and _looks_outside(query, rest, columns)


def _columns(trees: list[exp.Expr]) -> list[exp.Column]:
    return [column for tree in trees for column in tree.find_all(exp.Column)]


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    node = node.unnest()
    if isinstance(node, exp.And):
        return [*_conjuncts(node.this), *_conjuncts(node.expression)]
    return [node]


def _list_filled(node: exp.Expr) -> set[str]:
    return {name for name, value in node.args.items() if value}


# --- one comparison with the row outside --------------------------------------------------------


_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.NEQ: exp.NEQ,
}
_EXTREMES: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.GT: ("MAX",),
    exp.GTE: ("MAX",),
    exp.LT: ("MIN",),
    exp.LTE: ("MIN",),
    exp.NEQ: ("MIN", "MAX"),
}
"""Which of the values inside is on that side of a value, if any of them is."""


def _compare_with_extremes(part: exp.Expr, is_key: IsKey, columns: Columns) -> None:
    """``EXISTS (... AND inside > outside)`` says that the largest inside is larger.

    So does a count of such rows that is not 0.  More than one such comparison of one row has no
    shorter name, and stays.
    """
    query, absent = _find_existence(part)
    inner = None if query is None else query.this
    if not isinstance(inner, exp.Select) or not _list_filled(inner) <= _READ:
        return
    where = inner.args.get("where")
    if inner.args.get("from_") is None or where is None:
        return
    own = _Own.of(inner, columns)
    kept: list[exp.Expr] = []
    found: list[exp.Expr] = []
    if _Lookup(part, inner, inner, *_split_conditions(inner, columns)).has_key(is_key):
        return  # a public row has nothing to be aggregated
    for condition in _conjuncts(where.this):
        plain = isinstance(condition, exp.EQ) and all(
            isinstance(side, exp.Column) for side in (condition.this, condition.expression)
        )
        crosses = not plain and any(map(own.is_outside, _columns([condition])))
        (found if crosses else kept).append(condition)
    if len(found) != 1 or type(found[0]) not in _TURNED or not kept:
        return
    (comparison,) = found
    sides = [comparison.this, comparison.expression]
    outside = [{own.is_outside(column) for column in _columns([side])} for side in sides]
    if outside == [{True}, {False}]:
        kind, (theirs, ours) = _TURNED[type(comparison)], sides
    elif outside == [{False}, {True}]:
        kind, (ours, theirs) = type(comparison), sides
    else:
        return
    compared = [
        kind(this=_select_extreme(name, ours, inner, kept), expression=_in_brackets(theirs))
        for name in _EXTREMES[kind]
    ]
    found_one: exp.Expr = compared[0]
    if len(compared) > 1:
        found_one = exp.paren(exp.or_(*compared), copy=False)
    if absent or not _stands_alone(part):  # with nothing to compare there is none
        none = exp.Boolean(this=False)
        found_one = exp.Anonymous(this="COALESCE", expressions=[found_one, none])
    part.replace(exp.Not(this=found_one) if absent else found_one)


def _find_existence(part: exp.Expr) -> tuple[exp.Expr | None, bool]:
    """The sub-query of which ``part`` says whether it has rows, and whether it says that not."""
    if isinstance(part, exp.Exists):
        return part, False
    query, number = part.this, part.args.get("expression")
    if not isinstance(query, exp.Subquery) or not isinstance(query.this, exp.Select):
        return None, False
    shown = query.this.expressions
    counts = len(shown) == 1 and shown[0].unalias() == _COUNT
    if not counts or not isinstance(number, exp.Literal) or number.is_string:
        return None, False
    said = type(part), number.name
    if said in ((exp.EQ, "0"), (exp.LT, "1")):
        return query, True
    return (query, False) if said in ((exp.GT, "0"), (exp.GTE, "1")) else (None, False)


_COUNT = exp.Anonymous(this="COUNT", expressions=[exp.Star()])


def _select_extreme(
    name: str, value: exp.Expr, inner: exp.Select, kept: list[exp.Expr]
) -> exp.Subquery:
    query = inner.copy()
    for clause in ("distinct", "order"):
        query.set(clause, None)
    query.set("expressions", [exp.Anonymous(this=name, expressions=[value.copy()])])
    query.set("where", exp.Where(this=exp.and_(*_copies(kept))))
    return exp.Subquery(this=query)


def _in_brackets(tree: exp.Expr) -> exp.Expr:
    return tree.copy() if isinstance(tree, exp.Column) else exp.paren(tree)


# --- the joins -----------------------------------------------------------------------------


def _join_public(lookup: _Lookup, alias: str) -> None:
    """A join with a public table itself; what else must hold of its row is a condition."""
    table, part = lookup.inner.args["from_"].this, lookup.part
    written = table.alias_or_name
    own = exp.to_identifier(alias, quoted=True)
    named = exp.Table(this=table.this.copy(), alias=exp.TableAlias(this=own.copy()))
    found = _copies([inside for _, inside in lookup.pairs])
    rest = _copies(lookup.rest)
    value = lookup.value
    shown = _copies([] if value is None else [value])
    for column in [c for tree in [*found, *rest, *shown] for c in tree.find_all(exp.Column)]:
        if not column.table or column.table.casefold() == written.casefold():
            column.set("table", own.copy())
    on = _equal([outside for outside, _ in lookup.pairs], found)
    if value is None and _stands_alone(part):
        lookup.outer.append("joins", exp.Join(this=named, on=on))
        _replace_part(part, exp.and_(*rest) if rest else None)
    elif not rest:
        lookup.outer.append("joins", exp.Join(this=named, on=on, side="LEFT"))
        _replace_part(part, shown[0] if shown else _present(found[0]))
    elif value is None:
        lookup.outer.append("joins", exp.Join(this=named, on=on, side="LEFT"))
        has = exp.and_(_present(found[0]), *rest)
        none = exp.Boolean(this=False)
        _replace_part(part, exp.Anonymous(this="COALESCE", expressions=[has, none]))


def _join_private(lookup: _Lookup, alias: str) -> None:
    """A join with a sub-query that has one row for each of what is compared."""
    inner, part, value = lookup.inner, lookup.part, lookup.value
    inside = [own for _, own in lookup.pairs]
    group = inner.args.get("group")
    if group is not None and group.expressions != inside:
        return  # there may be several rows for one of what is compared
    names = ["member", *(f"member_{i}" for i in range(2, len(inside) + 1))]
    source = inner.copy()
    for clause in ("distinct", "order", "where"):
        source.set(clause, None)
    if lookup.rest:
        source.set("where", exp.Where(this=exp.and_(*_copies(lookup.rest))))
    shown = [exp.alias_(own.copy(), name) for own, name in zip(inside, names, strict=True)]
    if value is not None:
        shown.append(exp.alias_(value.copy(), "value"))
    source.set("expressions", shown)
    source.set("group", exp.Group(expressions=_copies(inside)))
    query = exp.Subquery(
        this=source, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
    )
    members: list[exp.Expr] = [
        exp.column(name, table=exp.to_identifier(alias, quoted=True)) for name in names
    ]
    on = _equal([outside for outside, _ in lookup.pairs], members)
    inward = value is None and _stands_alone(part)
    lookup.outer.append("joins", exp.Join(this=query, on=on, side=None if inward else "LEFT"))
    if value is not None:
        _replace_part(part, _value_tree(value, alias))
    else:
        _replace_part(part, None if inward else _present(members[0]))


def _value_tree(value: exp.Expr, alias: str) -> exp.Expr:
    found = exp.column("value", table=exp.to_identifier(alias, quoted=True))
    if value.name.upper() != "COUNT":
        return found
    # of no rows there are 0, and no partner
    return exp.Anonymous(this="COALESCE", expressions=[found, exp.Literal.number(0)])


def _copies(trees: list[exp.Expr]) -> list[exp.Expr]:
    return [tree.copy() for tree in trees]


def _equal(left: list[exp.Expr], right: list[exp.Expr]) -> exp.Expr:
    pairs = zip(left, right, strict=True)
    return exp.and_(*(exp.EQ(this=a.copy(), expression=b.copy()) for a, b in pairs))


def _present(column: exp.Expr) -> exp.Not:
    return exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null()))


def _stands_alone(part: exp.Expr) -> bool:
    """Whether WHERE asks for it, and for whatever else there is."""
    parent = part.parent
    while isinstance(parent, exp.And | exp.Paren):
        parent = parent.parent
    return isinstance(parent, exp.Where)


def _only_if_true(part: exp.Expr) -> bool:
    """Whether WHERE takes a row for what is true here, and NULL is as good as false."""
    parent = _with_brackets(part).parent
    parent = parent.parent if isinstance(parent, exp.Not) else parent
    while isinstance(parent, exp.Connector | exp.Paren):
        parent = parent.parent
    return isinstance(parent, exp.Where)


def _replace_part(part: exp.Expr, condition: exp.Expr | None) -> None:
    """``condition`` where ``part`` stood; nothing there if there is none."""
    whole = _with_brackets(part)
    parent = whole.parent
    if condition is None and isinstance(parent, exp.And):
        parent.replace(parent.expression if parent.this is whole else parent.this)
    elif condition is None and parent is not None:
        parent.pop()  # WHERE itself
    elif isinstance(condition, exp.Not) and isinstance(parent, exp.Not):
        absent: exp.Expr = condition.this
        if isinstance(part, exp.In):  # NULL is in no list, and outside of none
            absent = exp.paren(exp.and_(absent, _present(part.this)), copy=False)
        parent.replace(absent)
    elif isinstance(part, exp.In) and isinstance(parent, exp.Not):
        absent = exp.and_(exp.Not(this=condition), _present(part.this), copy=False)
        parent.replace(exp.paren(absent, copy=False))
    else:
        part.replace(condition)


def _with_brackets(part: exp.Expr) -> exp.Expr:
    while isinstance(part.parent, exp.Paren):
        part = part.parent
    return part
