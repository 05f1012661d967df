"""Aggregates of other systems, and arguments that ours do not take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from sqlglot import exp

from discreet.question.sql.aggregates import aggregate_name
from discreet.question.sql.mending.torn import Mended, Torn, make_call, whole
from discreet.question.sql.rewrite import count_by_group, count_rows, group_by_column

Instead = tuple[str, list[exp.Expr], str]
"""A function, its arguments, and the words that say what is another."""


def mend_arguments(torn: Torn) -> Mended:
    """Arguments of aggregates in their order, number and range."""
    for root, node in torn.each(exp.Kwarg):
        pair = node.expression
        if isinstance(pair, exp.Tuple) and len(pair.expressions) == 2:
            pair.set("expressions", [e.copy() for e in reversed(pair.expressions)])
            yield "the lower bound first: ", root
    for root, node in torn.each(exp.Kwarg):
        words = f"without {node.name}: "
        node.pop()
        yield words, root
    for root, node in torn.each(exp.WithinGroup):
        yield from _sort_ascending(root, node)
    yield from _last_of_list(torn)
    for root, node in torn.each(exp.Filter):
        where = node.expression
        where.set("this", exp.NEQ(this=where.this.copy(), expression=whole(0)))
        yield "where it is not 0: ", root
    for root, node in torn.each(exp.Anonymous):
        yield from _mend_call(torn, root, node)
    for root, node in torn.each(exp.Binary):
        for part in (node.this, node.expression):
            if isinstance(part, exp.Anonymous):
                node.replace(part.copy())
                yield "by itself: ", root
                break


def _last_of_list(torn: Torn) -> Mended:
    """An index past the end of a list."""
    most = torn.refusal.fix.rpartition(" to ")[2].rstrip(".")
    for root, node in torn.each(exp.Bracket):
        inside = [part for index in node.expressions for part in index.find_all(exp.Literal)]
        if inside and most.isdigit():
            inside[0].replace(whole(int(most)))
            yield "the last one: ", root


def _sort_ascending(root: exp.Expr, node: exp.Expr) -> Mended:
    order, fraction = node.find(exp.Ordered), node.this.find(exp.Literal)
    if order is not None and fraction is not None and order.args.get("desc"):
        order.set("desc", False)
        fraction.replace(exp.Literal.number(f"{1 - float(fraction.name):.6g}"))
        yield "the same, from below: ", root


def _mend_call(torn: Torn, root: exp.Expr, node: exp.Expr) -> Mended:
    name, given = node.name.upper(), list(node.expressions)
    instead: list[Instead] = []
    distinct = given[0] if given and isinstance(given[0], exp.Distinct) else None
    if name in ("COUNT", "COUNTIF", "COUNT_IF") and (not given or isinstance(given[0], exp.Star)):
        instead.append(("COUNT", [exp.Star()], ""))
    if name == "COUNT" and distinct is not None and len(distinct.expressions) > 1:
        instead.append(("COUNT", [_as_one_text(distinct)], "put together as one text: "))
    if name == "HISTOGRAM":
        instead.append((name, _edges(torn, given), ""))
    if name in ("TOP_K", "APPROX_TOP_K", "APPROX_TOP_COUNT"):
        instead.append((name, [*given[:1], whole(5)], "the first five: "))
    if name in ("PERCENTILE_CONT", "QUANTILE_CONT", "APPROX_QUANTILE", "QUANTILE"):
        instead += [(name, [given[0], part], words) for part, words in _fractions(given)]
    if name == "APPROX_QUANTILES":
        instead.append((name, [*given[:1], whole(4)], "quarters: "))
    instead += _pair_columns(torn, name, node, given)
    instead += _correct_constants(name, given)
    if len(given) > 1:
        instead.append((name, given[:1], "of the first alone: "))
    for called, arguments, words in instead:
        again = root.copy()
        same = next(part for part in again.find_all(exp.Anonymous) if part == node)
        same.replace(make_call(called, *arguments))
        yield words, again
    if name in ("HISTOGRAM", "MODE") and given:
        yield from _count_by(root, node, given[0])


def _as_one_text(distinct: exp.Distinct) -> exp.Distinct:
    first, *rest = (exp.cast(e.copy(), "TEXT") for e in distinct.expressions)
    together: exp.Expr = first
    for part in rest:
        slash = exp.DPipe(this=together, expression=exp.Literal.string("/"))
        together = exp.DPipe(this=slash, expression=part)
    return exp.Distinct(expressions=[together])


def _edges(torn: Torn, given: list[exp.Expr]) -> list[exp.Expr]:
    """Edges in order; ten bins between the declared bounds, if there are none."""
    if len(given) > 1:
        return [given[0], *sorted(given[1:], key=lambda e: float(e.name) if e.name else 0.0)]
    found = torn.find_column(given[0]) if given and isinstance(given[0], exp.Column) else None
    ends = found[1].ends if found is not None and found[1].kind.is_number else None
    if ends is None:
        return given
    low, high = (float(end) for end in ends if isinstance(end, int | Fraction))
    cuts = [low + (high - low) * step / 10 for step in range(11)]
    return [*given, *(exp.Literal.number(f"{cut:.6g}") for cut in cuts)]


def _fractions(given: list[exp.Expr]) -> Iterator[tuple[exp.Expr, str]]:
    if not given:
        return
    last = given[-1]
    if len(given) > 1 and isinstance(last, exp.Literal) and 1 < float(last.name or 0) <= 100:
        share = f"{float(last.name) / 100:.6g}"
        yield exp.Literal.number(share), "percent as a fraction: "
    yield exp.Literal.number("0.5"), "the median: "


def _pair_columns(
    torn: Torn, name: str, node: exp.Expr, given: Sequence[exp.Expr]
) -> list[Instead]:
    """Of several columns that are numbers, where there are too few or others among them."""
    if name in ("CORR", "COVAR_POP", "COVAR_SAMP", "REGR_SLOPE", "REGR_INTERCEPT"):
        return _pairs(torn, name, node, given)
    together = {"COVAR_OF": "COVAR_MATRIX", "MEAN_OF": "MEANS"}
    if name not in ("REGR", "CORR_MATRIX", "CORR_OF", "COVAR_MATRIX", "MEANS", *together):
        return []
    told = [part for part in given if isinstance(part, exp.Column) and _is_number(torn, part)]
    if name == "CORR_OF" and len(told) == 2:
        return [("CORR", [*told], "of two columns: ")]
    if name in together and told:
        return [(together[name], [*told], "all of them at once, for one price: ")]
    if len(told) > 1:
        return [(name, [*told], "of the numbers among them: ")]
    return _pairs(torn, name, node, told)


def _correct_constants(name: str, given: Sequence[exp.Expr]) -> list[Instead]:
    """A part that can be trimmed; the one word for bounds that are looked for."""
    first = given[:1]
    if name == "TRIMMED_MEAN":
        return [(name, [*first, exp.Literal.number("0.1")], "without a tenth at each end: ")]
    if not any(isinstance(part, exp.Kwarg) for part in given):
        return []
    auto = exp.Kwarg(this=exp.to_identifier("bounds"), expression=exp.column("AUTO"))
    ends = {"MAX": ("0.99", "is above"), "MIN": ("0.01", "is below")}
    if name in ends:
        part, side = ends[name]
        few = [*first, exp.Literal.number(part), auto]
        return [("QUANTILE_CONT", few, f"the value that one in a hundred {side}: ")]
    return [(name, [*first, auto], "with bounds that are looked for privately: ")]


def _pairs(torn: Torn, name: str, node: exp.Expr, given: Sequence[exp.Expr]) -> list[Instead]:
    if len(given) != 1:
        return []
    others = [
        column.name
        for _, table in torn.tables(node)
        for column in table.columns
        if column.kind.is_number and column.domain.bounded and column.name != given[0].name
    ]
    return [
        (name, [given[0], exp.column(other)], f"with a second column, such as {other}: ")
        for other in others[:2]
    ]


_INSTEAD = {
    "KURTOSIS": ("STDDEV", "how widely it is spread: "),
    "SKEWNESS": ("STDDEV", "how widely it is spread: "),
    "ANY_VALUE": ("MEDIAN", "nobody's own value; the middle one: "),
    "FIRST": ("MEDIAN", "nobody's own value; the middle one: "),
    "LAST": ("MEDIAN", "nobody's own value; the middle one: "),
    "ENTROPY": ("COUNT", "how many there are: "),
}


_SOME = ("BOOL_OR", "LOGICAL_OR", "BOOLOR_AGG")
"""What asks whether it is so of anybody."""


def translate_aggregates(torn: Torn) -> Mended:
    """Aggregates of other systems by the nearest one of this."""
    for root, node in torn.each(exp.Anonymous):
        name, given = node.name.upper(), list(node.expressions)
        plain = name.removeprefix("ANON_").removeprefix("DP_").removeprefix("PRIVATE_")
        if plain != name:
            for call in root.find_all(exp.Anonymous):
                for before in ("ANON_", "DP_", "PRIVATE_"):
                    call.set("this", str(call.name).upper().removeprefix(before))
            yield "", root
        elif name in (*_SOME, "BOOL_AND", "LOGICAL_AND", "BOOLAND_AGG", "EVERY", "REGR_R2"):
            yield from _compute_from_others(root, node)
        elif name in ("ARG_MAX", "ARG_MIN", "MAX_BY", "MIN_BY") and len(given) == 2:
            node.replace(make_call("MAX" if "MAX" in name else "MIN", given[1]))
            yield "the value itself, and not whose it is: ", root
        elif name in ("ARRAY_AGG", "STRING_AGG", "GROUP_CONCAT", "LISTAGG", "LIST") and given:
            again = root.copy()
            same = next(part for part in again.find_all(exp.Anonymous) if part == node)
            same.replace(make_call("APPROX_QUANTILES", given[0], whole(10)))
            yield "ten steps from the least to the greatest: ", again
            yield from _count_by(root, node, given[0])
        elif name in _INSTEAD and given:
            again = root.copy()
            same = next(part for part in again.find_all(exp.Anonymous) if part == node)
            called, words = _INSTEAD[name]
            same.replace(make_call(called, given[0]))
            if _is_number(torn, given[0]):
                yield words, again
            yield from _group_value(root, node, given[0])
        elif name in ("MEDIAN", "MODE", "QUANTILE_CONT", "PERCENTILE_CONT") and given:
            node.replace(make_call("AVG", given[0]))
            yield "the mean of each one's own rows: ", root
    for root, node in torn.each(exp.Filter):
        yield from _case_of_filter(root, node)


def _compute_from_others(root: exp.Expr, node: exp.Expr) -> Mended:
    """What is computed from aggregates that there are."""
    name, given = node.name.upper(), list(node.expressions)
    if name == "REGR_R2" and len(given) == 2:
        node.replace(make_call("POWER", make_call("CORR", *given), whole(2)))
        yield "", root
    elif len(given) == 1:
        number = make_call("COUNT_IF", given[0])
        node.replace(
            exp.GT(this=number, expression=whole(0))
            if name in _SOME
            else exp.EQ(this=number, expression=make_call("COUNT", given[0]))
        )
        yield "by their number, which is noisy: ", root


def _is_number(torn: Torn, value: exp.Expr) -> bool:
    found = torn.find_column(value) if isinstance(value, exp.Column) else None
    return found is None or found[1].kind.is_number


def _case_of_filter(root: exp.Expr, node: exp.Expr) -> Mended:
    """COUNT(*) FILTER (WHERE c) is COUNT(CASE WHEN c THEN 1 END)."""
    call = node.this
    if isinstance(call, exp.Anonymous) and len(call.expressions) == 1:
        value = call.expressions[0]
        then = whole(1) if isinstance(value, exp.Star) else value.copy()
        case = exp.Case(ifs=[exp.If(this=node.expression.this.copy(), true=then)])
        node.replace(make_call(call.name, case))
        yield "", root


def _group_value(root: exp.Expr, node: exp.Expr, value: exp.Expr) -> Mended:
    """A value of each group is a key of it."""
    select = node.parent_select
    node.replace(value.copy())
    if isinstance(select, exp.Select):
        group = select.args.get("group") or exp.Group(expressions=[])
        group.append("expressions", value.copy())
        select.set("group", group)
        yield "with a group for each value: ", root


def _count_by(root: exp.Expr, node: exp.Expr, value: exp.Expr) -> Mended:
    """Each value with its count, the most frequent first."""
    if isinstance(value, exp.Distinct) and len(value.expressions) == 1:
        value = value.expressions[0]  # each value is there once anyway
    select = node.parent_select
    if isinstance(select, exp.Select) and select.args.get("group") is None:
        most = node.expressions[1:2] if "TOP" in node.name.upper() else []
        limit = next((e for e in most if e.name.isdigit() and int(e.name)), None)
        count = exp.alias_(make_call("COUNT", exp.Star()), "n")
        select.set("expressions", [value.copy(), count])
        select.set("group", exp.Group(expressions=[value.copy()]))
        order = exp.Ordered(this=exp.column("n"), desc=True)
        select.set("order", exp.Order(expressions=[order]))
        if limit is not None:
            select.set("limit", exp.Limit(expression=limit.copy()))
        yield "each value with its count: ", root


def count_each_value(torn: Torn) -> Mended:
    """The most frequent of values that nobody listed: as groups, which need a delta."""
    for root, node in torn.each(exp.Anonymous):
        if node.expressions:
            yield from _count_by(root, node, node.expressions[0])


def count_distinct(torn: Torn) -> Mended:
    """DISTINCT inside an aggregate, or in a sub-query that is counted."""
    for root, node in torn.each(exp.Anonymous):
        inner = node.expressions[0] if node.expressions else None
        if isinstance(inner, exp.Distinct):
            node.set("expressions", [e.copy() for e in inner.expressions])
            yield "every row counts, equal ones too: ", root
    for root, node in torn.each(exp.Select):
        count_rows(node)
        yield "how many rows there are can be told: ", root


def add_count(torn: Torn) -> Mended:
    """Keys alone, whose groups are declared, with the number of rows of each."""
    if torn.tree is None:
        return
    root = torn.tree.copy()
    start = root.args.get("from_") if isinstance(root, exp.Select) else None
    inner = start.this.this if start is not None and isinstance(start.this, exp.Subquery) else None
    if isinstance(inner, exp.Select) and inner.args.get("distinct") and len(inner.expressions) == 1:
        counted = make_call("COUNT", exp.Distinct(expressions=[inner.expressions[0].unalias()]))
        found = inner.copy()
        found.set("distinct", None)
        found.set("expressions", [counted])
        yield "", found
    for root, node in torn.each(exp.Select):
        if node.args.get("group") is None:
            count_by_group(node)
        else:
            node.append("expressions", exp.alias_(make_call("COUNT", exp.Star()), "n"))
        yield "", root


def move_aggregates(torn: Torn) -> Mended:
    """A condition on an aggregate stands in HAVING, and an aggregate of one is that one."""
    for root, node in torn.each(exp.Where):
        if isinstance(node.parent, exp.Select):
            parts = list(node.this.flatten()) if isinstance(node.this, exp.And) else [node.this]
            asked = [p for p in parts if any(map(aggregate_name, p.find_all(exp.Anonymous)))]
            _put_in_having(node.parent, asked, [part for part in parts if part not in asked])
            yield "of the whole answer: ", root
    yield from _move_named(torn)
    for root, node in torn.each(exp.Group):
        node.pop()
        yield "without grouping: ", root
    for root, node in torn.each(exp.Anonymous):
        outer = node.find_ancestor(exp.Anonymous)
        if outer is not None:
            outer.replace(node.copy())
            yield "of all rows: ", root


def _move_named(torn: Torn) -> Mended:
    """``SELECT COUNT(*) AS n ... WHERE n > 5``: what asks of the aggregate stands in HAVING."""
    root = None if torn.tree is None else torn.tree.copy()
    where = root.args.get("where") if isinstance(root, exp.Select) else None
    if not isinstance(root, exp.Select) or where is None:
        return
    given = {i.alias for i in root.expressions if i.alias and i.find(exp.Anonymous) is not None}
    parts = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    asked = [p for p in parts if any(c.name in given for c in p.find_all(exp.Column))]
    if asked:
        _put_in_having(root, asked, [part for part in parts if part not in asked])
        yield "of the whole answer: ", root


def _put_in_having(select: exp.Select, asked: Sequence[exp.Expr], kept: Sequence[exp.Expr]) -> None:
    having = select.args.get("having")
    both = [*([having.this.copy()] if having is not None else ()), *(p.copy() for p in asked)]
    left = exp.and_(*(part.copy() for part in kept)) if kept else None
    select.set("where", None if left is None else exp.Where(this=left))
    select.set("having", exp.Having(this=exp.and_(*both)))


def fewer_keys(torn: Torn) -> Mended:
    """Keys left out, the last first, until the groups can be listed: one, then half of the rest."""
    if not isinstance(torn.tree, exp.Select):
        return
    root, left = torn.tree.copy(), -1
    while (group := root.args.get("group")) is not None and len(group.expressions) > 1:
        keys = len(group.expressions)
        left = keys - 1 if left < 0 else keys // 2
        for key in group.expressions[left:]:
            for item in list(root.expressions):
                if item.alias_or_name == key.name or item.unalias() == key:
                    item.pop()
            key.pop()
        yield "by fewer keys: ", root.copy()


def average_of_each(torn: Torn) -> Mended:
    """The average of a quotient, where the divisor may be 0: the quotient of averages."""
    for root, node in torn.each(exp.Anonymous):
        if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Div):
            quotient = node.expressions[0]
            parts = [make_call("AVG", quotient.this), make_call("AVG", quotient.expression)]
            node.replace(exp.Div(this=parts[0], expression=parts[1]))
            yield "the quotient of the averages, as the divisor may be 0: ", root


def count_shown_rows(torn: Torn) -> Mended:
    """Rows shown one by one as their number."""
    for root, node in torn.each(exp.Select):
        if not node.find(exp.Anonymous):
            count_rows(node)
            yield "how many rows there are can be told: ", root


def group_ungrouped(torn: Torn) -> Mended:
    """A column that is neither grouped nor aggregated is grouped."""
    for root, node in torn.each(exp.Column):
        group_by_column(node)
        yield "", root
