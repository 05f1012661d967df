"""Aggregates as analysts write them, in one spelling.

``MEDIAN(x)``, ``PERCENTILE_CONT(x, 0.5)`` and ``PERCENTILE_CONT(0.5) WITHIN
GROUP (ORDER BY x)`` are one aggregate; so are ``COUNTIF(p)`` and ``COUNT(*)
FILTER (WHERE p)``.  The normal form is the name the aggregate has in a
question, its arguments, its constants, and its bounds by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.exact.records import dataclass
from discreet.question.domain import Value
from discreet.question.question import AGGREGATES, MOST_BINS, Aggregate
from discreet.question.sql.dialect import Reader, copy_span
from discreet.question.sql.normalize import keep_unread
from discreet.question.sql.scalars import (
    Leaf,
    call,
    conjunction,
    conjuncts,
    is_constant,
    read,
    read_constant,
    write,
    write_constant,
)

NAMES: dict[str, str] = {
    "COUNT": "COUNT",
    "COUNTIF": "COUNT",
    "COUNT_IF": "COUNT",
    "APPROX_COUNT_DISTINCT": "COUNT_DISTINCT",
    "SUM": "SUM",
    "AVG": "AVG",
    "MEAN": "AVG",
    "VAR": "VAR_SAMP",
    "VARIANCE": "VAR_SAMP",
    "VAR_SAMP": "VAR_SAMP",
    "VAR_POP": "VAR_POP",
    "STDDEV": "STDDEV_SAMP",
    "STDEV": "STDDEV_SAMP",
    "STD": "STDDEV_SAMP",
    "STDDEV_SAMP": "STDDEV_SAMP",
    "STDDEV_POP": "STDDEV_POP",
    "MEDIAN": "QUANTILE",
    "PERCENTILE_CONT": "QUANTILE",
    "QUANTILE_CONT": "QUANTILE",
    "APPROX_QUANTILE": "QUANTILE",
    "APPROX_PERCENTILE": "QUANTILE",
    "APPROX_QUANTILES": "QUANTILE",
    "IQR": "IQR",
    "TRIMMED_MEAN": "TRIMMED_MEAN",
    "MIN": "MIN",
    "MAX": "MAX",
    "COVAR_POP": "COVAR_POP",
    "COVAR_SAMP": "COVAR_SAMP",
    "CORR": "CORR",
    "REGR_SLOPE": "REGR_SLOPE",
    "REGR_INTERCEPT": "REGR_INTERCEPT",
    "REGR": "REGR_COEFFICIENT",
    "REGR_COEFFICIENT": "REGR_COEFFICIENT",
    "CORR_MATRIX": "CORR_OF",
    "CORR_OF": "CORR_OF",
    "COVAR_MATRIX": "COVAR_OF",
    "COVAR_OF": "COVAR_OF",
    "MEANS": "MEAN_OF",
    "MEAN_OF": "MEAN_OF",
    "MODE": "MODE",
    "APPROX_TOP_COUNT": "TOP_K",
    "APPROX_TOP_K": "TOP_K",
    "TOP_K": "TOP_K",
    "HISTOGRAM": "HISTOGRAM",
    "DISTANCE_TO_SORTED": "DISTANCE_TO_SORTED",
    "DISTANCE_TO_CLUSTERS": "DISTANCE_TO_CLUSTERS",
    "DISTANCE_TO_DEPENDENCY": "DISTANCE_TO_DEPENDENCY",
}
"""What analysts write, and the aggregate they mean."""

UNKNOWN = {
    "ANY_VALUE", "ARG_MAX", "ARG_MIN", "ARRAY_AGG", "ARRAY_CONCAT_AGG", "BIT_AND", "BIT_OR",
    "BIT_XOR", "BOOL_AND", "BOOL_OR", "BOOLAND_AGG", "BOOLOR_AGG", "COVARIANCE", "EVERY", "FIRST",
    "GEOMEAN", "GEOMETRIC_MEAN", "GROUP_CONCAT", "KURTOSIS", "KURTOSIS_POP", "SKEW",
    "LAST", "LIST", "LISTAGG", "LOGICAL_AND", "LOGICAL_OR", "MAX_BY", "MIN_BY", "PERCENTILE_DISC",
    "PRODUCT", "QUANTILE_DISC", "REGR_COUNT", "REGR_R2", "SKEWNESS", "STRING_AGG",
    "APPROX_TOP_SUM", "ANON_AVG", "ANON_COUNT", "ANON_SUM",
}  # fmt: skip
"""Aggregates of other systems that have no private form here."""

Inner = Callable[[exp.Expr], exp.Expr]
"""Brings what stands inside an aggregate into normal form."""

Unit = tuple[str | None, ...]
"""The names of the columns that say whose a row is."""

_RATIO = re.compile(r"\d{1,6}(/[1-9]\d{0,5})?")

PER_ROW, PER_GROUP = "contribution_bounds_per_row", "contribution_bounds_per_group"
BOUNDS = "bounds"
_SHORT = {BOUNDS: PER_ROW, "contribution_bounds": PER_ROW}
"""Other names of bounds for each row."""
AUTO = "AUTO"
"""Bounds that are looked for in the data, for a part of the price."""


def aggregate_name(node: exp.Expr) -> str | None:
    """The name of the aggregate that ``node`` is, as written; None if it is none."""
    while isinstance(node, exp.Filter | exp.WithinGroup | exp.Bracket):
        node = node.this
    if isinstance(node, exp.Anonymous) and not isinstance(node.this, exp.Identifier):
        name = node.name.upper()
        if name in NAMES or name in UNKNOWN:
            return name
    return None


def has_aggregates(select: exp.Select) -> bool:
    """Whether a SELECT aggregates its own rows; a function before OVER does not."""
    parts = [*select.expressions, select.args.get("having")]
    return select.args.get("group") is not None or any(
        aggregate_name(node) is not None and not is_windowed(node)
        for part in parts
        if part is not None
        for node in part.walk(prune=lambda n: isinstance(n, exp.Query))
    )


def is_windowed(node: exp.Expr) -> bool:
    """Whether a call stands before OVER."""
    parent = node.parent
    while isinstance(parent, exp.Filter | exp.WithinGroup | exp.Bracket) and parent.this is node:
        node, parent = parent, parent.parent
    return isinstance(parent, exp.Window) and parent.this is node


@dataclass(frozen=True, slots=True)
class Parts:
    """An aggregate call taken apart."""

    node: exp.Anonymous
    name: str
    arguments: list[exp.Expr]  # as written, without those given by name
    named: dict[str, exp.Expr]
    ordered: exp.Expr | None  # of WITHIN GROUP (ORDER BY ...)
    filters: list[exp.Expr]
    offset: exp.Expr | None  # of APPROX_QUANTILES(...)[OFFSET(i)]


def normalize_aggregate(
    node: exp.Expr,
    inner: Inner,
    unit: Unit,
    reader: Reader,
) -> exp.Expr:
    """The one spelling of an aggregate; ``inner`` normalises what it is an aggregate of."""
    if aggregate_name(node) in UNKNOWN:
        raise _describe_unknown(node, reader)
    parts = _take_apart(node, reader)
    tree = _SPELLINGS.get(parts.name, _plain)(parts, inner, unit, reader)
    condition = [inner(f) for f in parts.filters]
    if parts.name in {"COUNTIF", "COUNT_IF"}:
        condition.insert(0, inner(parts.arguments[0]))
    for name in (PER_ROW, PER_GROUP):
        if name in parts.named:
            given = parts.named[name]
            found = _write_auto() if _is_auto(given, name) else _bounds(name, given, inner, reader)
            tree.append("expressions", found)
    keep_unread(keep_unread(copy_span(tree, parts.node), node), parts.node)
    if not condition:
        return tree
    joined = conjunction([part for tree in condition for part in conjuncts(tree)])
    return exp.Filter(this=tree, expression=exp.Where(this=joined))


def _take_apart(node: exp.Expr, reader: Reader) -> Parts:
    ordered = offset = None
    filters: list[exp.Expr] = []
    while not isinstance(node, exp.Anonymous):
        match node:
            case exp.Filter():
                filters.insert(0, node.expression.this)
            case exp.WithinGroup():
                orders = getattr(node.expression, "expressions", [])  # a mending may take it away
                if ordered is not None or len(orders) != 1 or orders[0].args.get("desc"):
                    raise _misuse_refusal(node, "WITHIN GROUP (ORDER BY x), ascending", reader)
                ordered = orders[0].this
            case _:
                if offset is not None or len(node.expressions) != 1:
                    raise _misuse_refusal(node, "one [OFFSET(i)]", reader)
                offset = node.expressions[0]
        node = node.this
    name = node.name.upper()
    arguments = [a for a in node.expressions if not isinstance(a, exp.Kwarg)]
    named: dict[str, exp.Expr] = {}
    for argument in node.expressions:
        if isinstance(argument, exp.Kwarg):
            key = argument.this.name.lower()
            key = _SHORT.get(key, key)
            if key == "report_format":
                _check_report(argument, reader)  # the notes say where the margin stands
                continue
            if key not in (PER_ROW, PER_GROUP) or key in named:
                raise _misuse_refusal(
                    argument,
                    f"{PER_ROW} => (low, high) or {PER_GROUP} => (low, high), or "
                    f"{BOUNDS} => {AUTO}",
                    reader,
                )
            named[key] = argument.expression
    parts = Parts(node, name, arguments, named, ordered, filters, offset)
    if ordered is not None and name not in {"PERCENTILE_CONT", "QUANTILE_CONT", "MODE", "MEDIAN"}:
        raise _misuse_refusal(node, f"{name} without WITHIN GROUP", reader)
    if offset is not None and name != "APPROX_QUANTILES":
        raise _misuse_refusal(node, f"{name} without [...]", reader)
    return parts


Spelling = Callable[[Parts, Inner, Unit, Reader], exp.Anonymous]


def _plain(parts: Parts, inner: Inner, unit: Unit, reader: Reader) -> exp.Anonymous:
    del unit
    function = NAMES[parts.name]
    if len(parts.arguments) not in AGGREGATES[function].arguments:
        raise _misuse_refusal(parts.node, AGGREGATES[function].usage, reader)
    return call(function, *map(inner, parts.arguments))


def _count(
    parts: Parts,
    inner: Inner,
    unit: Unit,
    reader: Reader,
) -> exp.Anonymous:
    match parts.arguments:
        case [exp.Star()]:
            return call("COUNT", exp.Star())
        case [exp.Distinct(expressions=[exp.Tuple() as pair])]:
            return _count_distinct(parts, [inner(e) for e in pair.expressions], unit, reader)
        case [exp.Distinct() as distinct]:
            return _count_distinct(parts, [inner(e) for e in distinct.expressions], unit, reader)
        case [argument]:
            return call("COUNT", inner(argument))
        case _:
            raise _misuse_refusal(parts.node, AGGREGATES["COUNT"].usage, reader)


def _count_distinct(
    parts: Parts, values: list[exp.Expr], unit: Unit, reader: Reader
) -> exp.Anonymous:
    names = [v.name if isinstance(v, exp.Column) else None for v in values]
    if unit and None not in unit and set(names) == set(unit) and len(names) == len(unit):
        return call("COUNT_UNITS")
    if len(values) != 1:
        raise _misuse_refusal(parts.node, AGGREGATES["COUNT_DISTINCT"].usage, reader)
    return call("COUNT_DISTINCT", values[0])


def _count_if(parts: Parts, inner: Inner, unit: Unit, reader: Reader) -> exp.Anonymous:
    del inner, unit
    if len(parts.arguments) != 1 or isinstance(parts.arguments[0], exp.Star | exp.Distinct):
        raise _misuse_refusal(parts.node, "COUNTIF(condition)", reader)
    return call("COUNT", exp.Star())


def _quantile(parts: Parts, inner: Inner, unit: Unit, reader: Reader) -> exp.Anonymous:
    del unit
    arguments = list(parts.arguments)
    if arguments and isinstance(arguments[-1], exp.Array):
        arguments[-1:] = arguments[-1].expressions
    listed = arguments != parts.arguments
    if parts.ordered is not None:
        arguments.insert(0, parts.ordered)
    if parts.name == "MEDIAN":
        arguments.append(exp.Literal.string("1/2"))
    several = parts.name == "QUANTILE_CONT" or listed
    if len(arguments) < 2 or (len(arguments) > 2 and not several):
        raise _misuse_refusal(parts.node, AGGREGATES["QUANTILE"].usage, reader)
    if parts.name == "APPROX_QUANTILES":
        fractions = _quantiles(parts, _constant(arguments[1], inner), inner, reader)
    else:
        fractions = [_part(parts, _constant(a, inner), reader) for a in arguments[1:]]
    return call("QUANTILE", inner(arguments[0]), *map(_fraction, fractions))


def _constant(node: exp.Expr, inner: Inner) -> Value | None:
    tree = inner(node)
    return read_constant(tree) if is_constant(tree) else None


def _part(parts: Parts, value: Value | None, reader: Reader) -> Fraction:
    """A part of the rows: 0.25, or '1/3' where there is no finite decimal."""
    if isinstance(value, str) and _RATIO.fullmatch(value):
        return Fraction(value)
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        raise _misuse_refusal(parts.node, AGGREGATES[NAMES[parts.name]].usage, reader)
    return Fraction(value)


def _quantiles(parts: Parts, count: Value | None, inner: Inner, reader: Reader) -> list[Fraction]:
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_BINS:
        usage = f"APPROX_QUANTILES(x, n), n from 1 to {MOST_BINS}"
        raise _misuse_refusal(parts.node, usage, reader)
    if parts.offset is None:
        return [Fraction(i, count) for i in range(count + 1)]
    offset = parts.offset
    if isinstance(offset, exp.Anonymous) and offset.name.upper() in {"OFFSET", "SAFE_OFFSET"}:
        offset = offset.expressions[0] if len(offset.expressions) == 1 else offset
    index = _constant(offset, inner)
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index <= count:
        raise _misuse_refusal(parts.node, f"[OFFSET(i)], i from 0 to {count}", reader)
    return [Fraction(index, count)]


def _fraction(number: Fraction) -> exp.Expr:
    """A part of the rows: exact, also where it has no finite decimal."""
    return exp.Literal(this=str(number), is_string=True)


def _read_trimmed(parts: Parts, inner: Inner, unit: Unit, reader: Reader) -> exp.Anonymous:
    del unit
    if len(parts.arguments) != 2:
        raise _misuse_refusal(parts.node, AGGREGATES["TRIMMED_MEAN"].usage, reader)
    value, part = parts.arguments
    return call(
        "TRIMMED_MEAN", inner(value), _fraction(_part(parts, _constant(part, inner), reader))
    )


def _read_placed(parts: Parts, inner: Inner, unit: Unit, reader: Reader) -> exp.Anonymous:
    """A number of a fit: which, then the columns."""
    del unit
    function = NAMES[parts.name]
    if parts.name != function:  # it would be several columns, and is written out where it can be
        usage = f"{AGGREGATES[function].usage} in the SELECT list, by itself"
        raise _misuse_refusal(parts.node, usage, reader)
    place, *columns = [inner(part) for part in parts.arguments] or [exp.Null()]
    if not is_constant(place) or len(columns) not in AGGREGATES[function].arguments:
        raise _misuse_refusal(parts.node, AGGREGATES[function].usage, reader)
    return call(function, place, *columns)


def _mode(parts: Parts, inner: Inner, unit: Unit, reader: Reader) -> exp.Anonymous:
    del unit
    arguments = parts.arguments if parts.ordered is None else [*parts.arguments, parts.ordered]
    if len(arguments) != 1:
        raise _misuse_refusal(parts.node, AGGREGATES["MODE"].usage, reader)
    return call("MODE", inner(arguments[0]))


def _split_constants(parts: Parts, inner: Inner, unit: Unit, reader: Reader) -> exp.Anonymous:
    del unit
    function = NAMES[parts.name]
    trees = [inner(a) for a in parts.arguments]
    if len(trees) < 2 or not all(map(is_constant, trees[1:])):
        raise _misuse_refusal(parts.node, AGGREGATES[function].usage, reader)
    return call(function, *trees)


def _distinct_approximately(
    parts: Parts,
    inner: Inner,
    unit: Unit,
    reader: Reader,
) -> exp.Anonymous:
    return _count_distinct(parts, [inner(a) for a in parts.arguments], unit, reader)


_SPELLINGS: dict[str, Spelling] = {
    "COUNT": _count,
    "COUNTIF": _count_if,
    "COUNT_IF": _count_if,
    "APPROX_COUNT_DISTINCT": _distinct_approximately,
    "MEDIAN": _quantile,
    "PERCENTILE_CONT": _quantile,
    "QUANTILE_CONT": _quantile,
    "APPROX_QUANTILE": _quantile,
    "APPROX_PERCENTILE": _quantile,
    "APPROX_QUANTILES": _quantile,
    "TRIMMED_MEAN": _read_trimmed,
    "REGR": _read_placed,
    "REGR_COEFFICIENT": _read_placed,
    "CORR_MATRIX": _read_placed,
    "CORR_OF": _read_placed,
    "COVAR_MATRIX": _read_placed,
    "COVAR_OF": _read_placed,
    "MEANS": _read_placed,
    "MEAN_OF": _read_placed,
    "MODE": _mode,
    "APPROX_TOP_COUNT": _split_constants,
    "APPROX_TOP_K": _split_constants,
    "TOP_K": _split_constants,
    "HISTOGRAM": _split_constants,
    "DISTANCE_TO_CLUSTERS": _split_constants,
}


def _is_auto(node: exp.Expr, name: str) -> bool:
    """Whether bounds are left to be found: of a row, for what a unit adds in all has no ranks."""
    word = node.name if isinstance(node, exp.Column) and not node.table else ""
    return name == PER_ROW and word.upper() == AUTO


def _write_auto() -> exp.Kwarg:
    return exp.Kwarg(this=exp.var(BOUNDS), expression=exp.var(AUTO))


def _bounds(name: str, node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    ends = node.expressions if isinstance(node, exp.Tuple) else []
    trees = [inner(end) for end in ends]
    values = [read_constant(t) if is_constant(t) else None for t in trees]
    numbers = [v for v in values if isinstance(v, int | Fraction) and not isinstance(v, bool)]
    if len(values) != 2 or len(numbers) != 2:
        raise _misuse_refusal(node, f"{name} => (low, high)", reader)
    pair = exp.Tuple(expressions=[write_constant(Fraction(v)) for v in numbers])
    return exp.Kwarg(this=exp.var(name), expression=pair)


def offer_auto(node: exp.Expr | None) -> str:
    """What to write where nobody knows bounds: a sentence; nothing for what does not take it."""
    name = None if node is None else aggregate_name(node) or getattr(node, "this", None)
    function = NAMES.get(name, name) if isinstance(name, str) else None
    if function not in AGGREGATES or not AGGREGATES[function].finds_bounds:
        return ""
    asked = {"QUANTILE": "MEDIAN(x", "TRIMMED_MEAN": "TRIMMED_MEAN(x, 0.1"}
    usage = asked.get(function, AGGREGATES[function].usage.removesuffix(")"))
    return f" Nobody knows any: {usage}, {BOUNDS} => {AUTO}) looks for them in the data, privately."


_REPORTS = ("JSON", "COLUMNS")
"""Formats that every answer has: margins in its JSON, and beside the numbers."""


def _check_report(argument: exp.Kwarg, reader: Reader) -> None:
    """BigQuery writes value and noise into one cell, as JSON or as a protocol buffer."""
    if argument.expression.name.upper() not in _REPORTS:
        raise reader.refusal(
            "Q33",
            argument,
            f"report_format is one of {', '.join(_REPORTS)} here.",
            why="every answer tells how far off each number may be, beside it and as JSON; there "
            "are no protocol buffers.",
            fix="write report_format => JSON, or leave it out.",
        )


def _misuse_refusal(node: exp.Expr, usage: str, reader: Reader) -> QuestionRefusal:
    return reader.refusal(
        "Q33",
        node,
        f"this is written {usage}.",
        why="what one person adds to the answer must be bounded before it can be hidden.",
        fix=f"none but yours, who know what is meant: write {usage}.",
    )


_ANY_REASON = "it would show one person's value, or one person could change it without bound."
_DECIDES = "one person alone would make it true or false, and no noise lies between the two."
_SHOWS = "it would show the value that one person has."
_OF_NUMBERS = "what one person adds to it is bounded of numbers, each row for itself."
_OF_ONE = ("SKEWNESS", "SKEW", "KURTOSIS", "KURTOSIS_POP", "GEOMEAN", "GEOMETRIC_MEAN")
_WHY = {
    **dict.fromkeys(_OF_ONE, _OF_NUMBERS),
    **dict.fromkeys(("REGR_R2", "REGR_COUNT"), _OF_NUMBERS),
    **dict.fromkeys(("BOOL_OR", "LOGICAL_OR", "BOOLOR_AGG", "BOOL_AND", "LOGICAL_AND"), _DECIDES),
    **dict.fromkeys(("BOOLAND_AGG", "EVERY"), _DECIDES),
    **dict.fromkeys(("MIN_BY", "MAX_BY", "ARG_MIN", "ARG_MAX"), _SHOWS),
    **dict.fromkeys(("FIRST", "LAST", "ANY_VALUE"), _SHOWS),
}
"""What is wrong with those of which more can be said."""
_WRITTEN = {
    **{name: f"{name}(x)" for name in _OF_ONE},
    **{name: f"{name}(y, x)" for name in ("REGR_R2", "REGR_COUNT")},
}
"""Those that are read off others, where they can be."""


def _describe_unknown(node: exp.Expr, reader: Reader) -> QuestionRefusal:
    name = str(aggregate_name(node))
    return reader.refusal(
        "Q32",
        node,
        f"{name} is of numbers in everybody's rows: {_WRITTEN[name]}."
        if name in _WRITTEN
        else f"{name} is not an aggregate of the allow-list.",
        why=_WHY.get(name, _ANY_REASON),
        fix=f"use one of {', '.join(sorted(set(NAMES)))}.",
    )


# --- meaning and back ----------------------------------------------------------------------

_WITH_PARAMETERS = {"QUANTILE", "TOP_K", "HISTOGRAM", "TRIMMED_MEAN", "DISTANCE_TO_CLUSTERS"}
_PLACED = {"REGR_COEFFICIENT", "CORR_OF", "COVAR_OF", "MEAN_OF"}
"""Aggregates whose constant comes first."""
_OF_ROWS = {"QUANTILE", "TRIMMED_MEAN"}
"""Aggregates whose constants are parts of the rows."""


SEVERAL = ("REGR", "CORR_MATRIX", "COVAR_MATRIX", "MEANS")
"""Calls that stand for several columns of an answer."""


def is_several(node: exp.Expr) -> bool:
    """Whether a call stands for several columns of an answer."""
    return isinstance(node, exp.Anonymous) and node.name.upper() in SEVERAL


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a tree in normal form is an aggregate."""
    while isinstance(node, exp.Filter):
        node = node.this
    return isinstance(node, exp.Anonymous) and node.this in AGGREGATES


def subjects(node: exp.Expr) -> list[exp.Expr]:
    """What an aggregate in normal form is computed from, row by row."""
    found = []
    if isinstance(node, exp.Filter):
        found.append(node.expression.this)
        node = node.this
    pieces = (exp.Kwarg, exp.Star)
    listed = [t for t in node.expressions if not isinstance(t, pieces)]
    return [*found, *(listed[1:] if node.this in _PLACED else listed)]


def read_aggregate(node: exp.Expr, name: str, leaf: Leaf) -> Aggregate:
    """The meaning of an aggregate in normal form."""
    condition = None
    if isinstance(node, exp.Filter):
        condition = read(node.expression.this, leaf)
        node = node.this
    function = node.this
    trees = [t for t in node.expressions if not isinstance(t, exp.Kwarg | exp.Star)]
    named = [t for t in node.expressions if isinstance(t, exp.Kwarg)]
    bounds = {
        t.this.name: (
            Fraction(t.expression.expressions[0].this),
            Fraction(t.expression.expressions[1].this),
        )
        for t in named
        if t.this.name != BOUNDS
    }
    parameters: list[Value] = []
    if function in _WITH_PARAMETERS:
        constants, trees = trees[1:], trees[:1]
    elif function in _PLACED:
        constants, trees = trees[:1], trees[1:]
    else:
        constants = []
    if constants:
        for constant in constants:
            value = read_constant(constant)
            parameters.append(Fraction(value) if function in _OF_ROWS else value)  # type: ignore[arg-type]
    return Aggregate(
        name=name,
        function=function,
        arguments=tuple(read(tree, leaf) for tree in trees),
        parameters=tuple(parameters),
        condition=condition,
        bounds_per_row=bounds.get(PER_ROW),
        bounds_per_group=bounds.get(PER_GROUP),
        auto=len(bounds) < len(named),
    )


def write_aggregate(aggregate: Aggregate, leaf: Callable[[str], exp.Expr]) -> exp.Expr:
    """The normal form of an aggregate."""
    trees = [write(argument, leaf) for argument in aggregate.arguments]
    if aggregate.function == "COUNT" and not trees:
        trees = [exp.Star()]
    is_fraction = aggregate.function in _OF_ROWS
    constants = [
        _fraction(parameter) if is_fraction else write_constant(parameter)  # type: ignore[arg-type]
        for parameter in aggregate.parameters
    ]
    first = aggregate.function in _PLACED
    trees = [*constants, *trees] if first else [*trees, *constants]
    for name, bounds in (
        (PER_ROW, aggregate.bounds_per_row),
        (PER_GROUP, aggregate.bounds_per_group),
    ):
        if bounds is not None:
            pair = exp.Tuple(expressions=[write_constant(bound) for bound in bounds])
            trees.append(exp.Kwarg(this=exp.var(name), expression=pair))
    if aggregate.auto:
        trees.append(_write_auto())
    tree: exp.Expr = call(aggregate.function, *trees)
    if aggregate.condition is not None:
        where = exp.Where(this=write(aggregate.condition, leaf))
        tree = exp.Filter(this=tree, expression=where)
    return tree
