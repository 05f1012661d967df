"""SQL after the release: what may be written over released numbers, and its text for the engine.

Whatever is computed from a released table is free, so nearly all of SQL may stand here: joins,
unions, windows, sub-queries, aggregates of aggregates.  What may not stand here is what would
look at something else than released numbers, or come out differently the next time: files,
settings, clocks, chance.  As for a question there is an allow-list, of nodes, of their arguments
and of functions, and what is written for the engine must read back as the same tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp
from sqlglot.errors import SqlglotError

from discreet.question.sql.aggregates import is_windowed
from discreet.question.sql.dialect import (
    ALLOWED,
    Reader,
    depth_refusal,
    parse_trees,
    tokenize,
    write_text,
)
from discreet.question.sql.normalize import SYNONYMS
from discreet.question.sql.scope import list_names, suggest_name

_SELECT = {
    "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset",
    "with_", "distinct", "qualify", "windows",
}  # fmt: skip
_SET = {
    "this", "expression", "distinct", "with_", "order", "limit", "offset", "by_name",
}  # fmt: skip
_BINARY = {"this", "expression"}

ABOVE: dict[type[exp.Expr], set[str]] = {
    **{
        node: arguments
        for node, arguments in ALLOWED.items()
        if node not in (exp.Bracket, exp.AtTimeZone, exp.DataTypeParam)
    },
    exp.DataType: {"this", "nested"},
    exp.Select: _SELECT,
    **dict.fromkeys((exp.Union, exp.Except, exp.Intersect), _SET),
    exp.Join: {"this", "on", "using", "side", "kind", "method"},
    exp.Group: {"expressions", "all"},
    exp.Rollup: {"expressions"},
    exp.Cube: {"expressions"},
    exp.GroupingSets: {"expressions"},
    exp.TableAlias: {"this", "columns"},
    exp.Values: {"expressions", "alias"},
    exp.Offset: {"expression"},
    exp.Qualify: {"this"},
    exp.Window: {"this", "partition_by", "order", "spec", "alias", "over"},
    exp.WindowSpec: {"kind", "start", "start_side", "end", "end_side"},
    exp.Distinct: {"expressions", "on"},
    exp.Order: {"this", "expressions"},
    exp.Star: {"except_"},
    exp.Exists: {"this"},
    exp.Any: {"this"},
    exp.All: {"this"},
    exp.In: {"this", "expressions", "query"},
    exp.ILike: {*_BINARY, "negate"},
    exp.NullSafeEQ: _BINARY,
    exp.NullSafeNEQ: _BINARY,
}
"""What may appear over released numbers, and which of its arguments may be filled."""

SCALARS = frozenset({
    "abs", "ceil", "floor", "round", "trunc", "sign", "sqrt", "cbrt", "exp", "ln", "log", "log2",
    "log10", "power", "pi", "degrees", "radians", "sin", "cos", "tan", "asin", "acos", "atan",
    "atan2", "sinh", "cosh", "tanh", "greatest", "least", "coalesce", "nullif", "isnan",
    "isfinite", "isinf", "fmod",
    "lower", "upper", "length", "substr", "left", "right", "trim", "ltrim", "rtrim", "replace",
    "concat", "concat_ws", "reverse", "contains", "starts_with", "ends_with", "instr", "strpos",
    "split_part", "ascii", "chr", "translate",
    "year", "month", "day", "quarter", "week", "weekofyear", "isoyear", "dayofweek", "isodow",
    "dayofyear", "hour", "minute", "second", "monthname", "dayname", "last_day", "date_trunc",
    "date_part", "date_diff", "make_date", "strftime",
})  # fmt: skip
"""Functions of one row over released numbers; each gives the same for the same arguments."""

AGGREGATES = frozenset({
    "count", "sum", "avg", "min", "max", "median", "mode", "stddev", "stddev_pop", "stddev_samp",
    "variance", "var_pop", "var_samp", "corr", "covar_pop", "covar_samp", "regr_slope",
    "regr_intercept", "regr_r2", "regr_count", "quantile_cont", "quantile_disc",
    "percentile_cont", "percentile_disc", "string_agg", "first", "last", "any_value", "arg_max",
    "arg_min", "bool_and", "bool_or", "count_if", "product", "kurtosis", "skewness", "grouping",
})  # fmt: skip
"""Aggregates of released numbers; also over a window."""

WINDOWS = frozenset({
    "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead",
    "first_value", "last_value", "nth_value",
})  # fmt: skip
"""Functions that stand only before OVER."""

UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
"""Spans of time that may be written as a bare word."""

FUNCTIONS = SCALARS | AGGREGATES | WINDOWS
"""Every function that may be called over released numbers."""

_NAMES = {
    **SYNONYMS,
    "countif": "count_if", "mean": "avg", "var": "variance", "stdev": "stddev", "std": "stddev",
    "max_by": "arg_max", "min_by": "arg_min", "every": "bool_and", "logical_and": "bool_and",
    "logical_or": "bool_or", "group_concat": "string_agg", "listagg": "string_agg",
    "datediff": "date_diff", "datetrunc": "date_trunc", "truncate": "trunc",
}  # fmt: skip
"""Names people write for a function that stands under another name here."""

_CASTS = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), "BIGINT"),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL", "BIGDECIMAL"), "DOUBLE"),
    **dict.fromkeys(("CHAR", "NCHAR", "VARCHAR", "NVARCHAR", "TEXT"), "TEXT"),
    **dict.fromkeys(("DATE", "DATE32"), "DATE"),
    **dict.fromkeys(("TIMESTAMP", "DATETIME"), "TIMESTAMP"),
    "BOOLEAN": "BOOLEAN",
}
"""What a cast may lead to, and the type it is written as."""


def aggregates(select: exp.Select) -> bool:
    """Whether rows of ``select`` are made of several: a window is not, it stands beside them."""
    if select.args.get("group") is not None or select.args.get("having") is not None:
        return True
    return any(
        isinstance(node, exp.Anonymous)
        and node.name.lower() in AGGREGATES
        and not is_windowed(node)
        for item in select.expressions
        for node in item.walk(prune=lambda n: isinstance(n, exp.Query))
    )


def is_known(name: str) -> bool:
    """Whether a function of that name may be called over released numbers."""
    lowered = name.lower()
    return _NAMES.get(lowered, lowered) in FUNCTIONS or lowered in _SPECIAL


def check_above(node: exp.Expr, reader: Reader) -> None:
    """Refuse one node over released numbers unless it and its arguments are on the list."""
    allowed = ABOVE.get(type(node))
    if allowed is None:
        raise _outside(node, node.key.replace("_", " ").upper(), reader)
    for argument, value in node.args.items():
        if value is None or value is False or value == [] or argument in allowed:
            continue
        raise _outside(node, f"{argument.strip('_').upper()} of {node.key.upper()}", reader)


def _outside(node: exp.Expr, name: str, reader: Reader) -> Exception:
    return reader.refusal(
        "Q11",
        node,
        f"{name} is outside the dialect.",
        why="after the release only what looks at released numbers, and always comes out the "
        "same, is computed.",
        fix="leave it out; docs/sql.md lists what may stand around a question.",
    )


CLOCKS = frozenset(
    {"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"}
)
"""Words that the engine takes for a function where no column has that name, also in quotes."""


def check_names(tree: exp.Expr, known: Mapping[str, tuple[str, ...]], reader: Reader) -> None:
    """Refuse a column that nothing here is called: the engine might know it as something else.

    Which of those that are called so is meant, the engine decides.
    """
    names = {name.casefold() for columns in known.values() for name in columns}
    for node in tree.walk():
        if isinstance(node, exp.Alias):
            names.add(node.alias.casefold())
        elif isinstance(node, exp.TableAlias):
            names |= {part.name.casefold() for part in node.args.get("columns") or ()}
        elif isinstance(node, exp.Values):
            names |= {f"col{number}" for number in range(len(node.expressions[0].expressions))}
    names -= CLOCKS
    for node in tree.walk():
        column = isinstance(node, exp.Column) and not isinstance(node.this, exp.Star)
        if column and node.name.casefold() not in names:
            raise reader.refusal(
                "Q7",
                node,
                f"there is no column '{node.name}' around the questions.",
                why="only what is released can be computed with.",
                fix=f"{suggest_name(node.name, names)}the columns are {list_names(names)}.",
            )


MOST_COLUMNS = 2_000
"""How many columns anything around the questions may have."""


def check_width(tree: exp.Expr, known: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse stars of stars: three of them in every SELECT make 3ⁿ columns."""
    widths = {name: len(columns) for name, columns in known.items()}
    _width(tree, widths)


def _width(tree: exp.Expr, tables: Mapping[str, int]) -> int:
    """How many columns a query has at most."""
    clause = tree.args.get("with_")
    if clause is not None:
        inside = dict(tables)
        for cte in clause.expressions:
            inside[cte.alias] = _width(cte.this, inside)
        tables = inside
    for query in _find_inner(tree):
        _width(query, tables)  # those in expressions have a width of their own
    if isinstance(tree, exp.SetOperation | exp.Subquery):
        sides = [tree.this, *([tree.expression] if isinstance(tree, exp.SetOperation) else ())]
        return max(_width(side, tables) for side in sides)
    if not isinstance(tree, exp.Select):
        return len(tree.expressions) or 1
    start = tree.args.get("from_")
    holders = [*([start] if start else ()), *(tree.args.get("joins") or ())]
    items = [holder.this for holder in holders]
    source = sum(
        tables.get(item.name, 1) if isinstance(item, exp.Table) else _width(item, tables)
        for item in items
    )
    stars = sum(isinstance(i, exp.Star) or isinstance(i.this, exp.Star) for i in tree.expressions)
    found = len(tree.expressions) - stars + stars * source
    if max(found, source) > MOST_COLUMNS:
        raise depth_refusal()
    return found


def _find_inner(tree: exp.Expr) -> list[exp.Expr]:
    """The queries in the expressions of a SELECT."""
    if not isinstance(tree, exp.Select):
        return []
    found: list[exp.Expr] = []
    for name, value in tree.args.items():
        if name in ("from_", "with_"):
            continue
        for part in value if isinstance(value, list) else [value]:
            inside = part.args.get("on") if isinstance(part, exp.Join) else part
            if isinstance(inside, exp.Expr):
                walked = inside.walk(prune=lambda n: isinstance(n, exp.Query))
                found += [node for node in walked if isinstance(node, exp.Query)]
    return found


def write_above(tree: exp.Expr, reader: Reader) -> str:
    """The text of ``tree`` for the engine; refused if it does not read back as the same tree.

    Every name is quoted: none is taken for a word of the engine's own.
    """
    changed = tree.copy()
    total = tree.copy()
    for node in [*changed.walk(), *total.walk()]:
        if isinstance(node, exp.Identifier):
            node.set("quoted", True)
    for node in list(total.walk(bfs=False)):
        if isinstance(node, exp.Cast) and node.parent is not None:
            node.replace(exp.TryCast(**node.args))
    text = write_text(total)
    if _read_back(text) != _plain(changed):
        raise reader.refusal(
            "Q30",
            None,
            "a part of what stands around the questions was read but not understood.",
            why="an answer to another question than the one asked would be wrong.",
            fix="write it more plainly; docs/sql.md lists what may stand around a question.",
        )
    return text


def _read_back(text: str) -> exp.Expr | None:
    try:
        (tree,) = parse_trees(text, tokenize(text))
    except (SqlglotError, ValueError):
        return None
    return None if tree is None else _plain(tree)


def _plain(tree: exp.Expr) -> exp.Expr:
    """Without what the parser notes beside a tree, and arguments that are not filled."""
    for node in tree.walk():
        for name in [n for n, value in node.args.items() if n == "_type" or not value]:
            if name not in ("this", "quoted", "is_string"):
                node.args.pop(name)
    return tree


# --- expressions -------------------------------------------------------------------------------


def translate(node: exp.Expr, reader: Reader) -> exp.Expr:
    """One node, its parts translated already, as the engine writes it."""
    if isinstance(node, exp.Anonymous):
        return _translate_call(node, reader)
    if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
        return _translate_cast(node, reader)
    return node


def _translate_call(node: exp.Anonymous, reader: Reader) -> exp.Expr:
    name = node.name.lower()
    if isinstance(node.this, exp.Identifier):
        raise _describe_unknown(node, reader)  # a quoted name is no word of the dialect
    special = _SPECIAL.get(name)
    if special is not None:
        found = special(node.expressions)
        if found is not None:
            return found
    name = _NAMES.get(name, name)
    if name not in FUNCTIONS:
        raise _describe_unknown(node, reader)
    return exp.Anonymous(this=name, expressions=node.expressions)


def interval_refusal(node: exp.Expr, reader: Reader) -> Exception:
    """Refuse the interval of what is no number of a question."""
    name = node.name.upper()
    return reader.refusal(
        "Q9",
        node,
        f"{name} is of one aggregate, or of its name, in the SELECT that asks for it.",
        why="the noise of what a question releases is known; of what is computed from it, or of a "
        "key, there is no interval.",
        fix=f"write {name}(n) beside the aggregate that is called n.",
    )


def _describe_unknown(node: exp.Anonymous, reader: Reader) -> Exception:
    if node.name.upper() in ("DP_INTERVAL_LOW", "DP_INTERVAL_HIGH"):
        return interval_refusal(node, reader)
    return reader.refusal(
        "Q9",
        node,
        f"{node.name.upper() or 'this'} cannot be computed from released numbers.",
        why="after the release only functions that read nothing else, and always give the same, "
        "are computed.",
        fix=f"use one of {', '.join(sorted(name.upper() for name in FUNCTIONS))}.",
    )


def _translate_cast(node: exp.Cast, reader: Reader) -> exp.Expr:
    """Every cast is total: NULL where it fails, as in a question."""
    kind = node.args["to"].this
    wanted = _CASTS.get(str(getattr(kind, "value", kind)).upper())
    if wanted is None:
        raise reader.refusal(
            "Q11",
            node,
            f"CAST to {node.args['to'].sql()} is outside the dialect.",
            why="nothing for anybody in the data: released numbers have six kinds.",
            fix="cast to BIGINT, DOUBLE, TEXT, DATE, TIMESTAMP or BOOLEAN.",
        )
    return exp.Cast(this=node.this, to=exp.DataType(this=exp.DataType.Type[wanted], nested=False))


Arguments = list[exp.Expr]


def _if(arguments: Arguments) -> exp.Expr | None:
    if len(arguments) != 3:
        return None
    condition, value, otherwise = arguments
    return exp.Case(ifs=[exp.If(this=condition, true=value)], default=otherwise)


def _modulo(arguments: Arguments) -> exp.Expr | None:
    if len(arguments) != 2:
        return None
    left, right = (exp.Paren(this=part) for part in arguments)
    return exp.Paren(this=exp.Mod(this=left, expression=right))


def _unit(node: exp.Expr) -> exp.Expr | None:
    """A unit written as a bare word (MONTH), as the engine takes it: a text."""
    word = isinstance(node, exp.Column | exp.Var) and node.name.lower() in UNITS
    return exp.Literal.string(node.name.lower()) if word else None


def _date_trunc(arguments: Arguments) -> exp.Expr | None:
    """BigQuery's DATE_TRUNC(day, MONTH)."""
    unit = _unit(arguments[1]) if len(arguments) == 2 else None
    if unit is None:
        return None
    return exp.Anonymous(this="date_trunc", expressions=[unit, arguments[0]])


def _date_diff(arguments: Arguments) -> exp.Expr | None:
    """BigQuery's DATE_DIFF(end, start, DAY)."""
    unit = _unit(arguments[2]) if len(arguments) == 3 else None
    if unit is None:
        return None
    return exp.Anonymous(this="date_diff", expressions=[unit, arguments[1], arguments[0]])


def _shift(kind: type[exp.Binary]) -> Callable[[Arguments], exp.Expr | None]:
    """DATE_ADD(day, INTERVAL 7 DAY), DATEADD(day, 7, day); back, DATE_SUB('day', start, end)."""

    def shift(arguments: Arguments) -> exp.Expr | None:
        if len(arguments) == 2 and isinstance(arguments[1], exp.Interval):
            return exp.Paren(this=kind(this=exp.Paren(this=arguments[0]), expression=arguments[1]))
        if len(arguments) != 3:
            return None
        first, second, third = arguments
        text = isinstance(first, exp.Literal) and first.is_string and first.name.lower() in UNITS
        unit = exp.Literal.string(first.name.lower()) if text else _unit(first)
        if unit is None:
            return None
        if kind is exp.Sub:  # how many whole ones lie between, as before the release
            return exp.Anonymous(this="date_sub", expressions=[unit, second, third])
        one = exp.Interval(this=exp.Literal.string("1"), unit=exp.Var(this=unit.name.upper()))
        span = exp.Mul(this=one, expression=exp.Paren(this=second))
        return exp.Paren(this=exp.Add(this=exp.Paren(this=third), expression=span))

    return shift


_SPECIAL: dict[str, Callable[[Arguments], exp.Expr | None]] = {
    "if": _if,
    "iif": _if,
    "mod": _modulo,
    "date_trunc": _date_trunc,
    "datetrunc": _date_trunc,
    "date_diff": _date_diff,
    "datediff": _date_diff,
    "date_add": _shift(exp.Add),
    "date_sub": _shift(exp.Sub),
    "dateadd": _shift(exp.Add),
    "datesub": _shift(exp.Sub),
}
