"""One spelling for each expression.

BETWEEN becomes two comparisons, IIF becomes CASE, synonyms become the name in
the allow-list, names become columns of the relation.  What no rule reads stays
where it was, and is found out when the question is written back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.question.functions import FUNCTIONS
from discreet.question.sql.dialect import DISTINCT, SUBQUERY, Reader, copy_span
from discreet.question.sql.rewrite import count_rows
from discreet.question.sql.scalars import (
    BINARY,
    CAST_TYPES,
    CASTS,
    CHAINS,
    UNARY,
    call,
    flatten_chain,
    is_constant,
    normalize_constant,
    write_constant,
)

SYNONYMS: dict[str, str] = {
    "ceiling": "ceil",
    "pow": "power",
    "ifnull": "coalesce",
    "nvl": "coalesce",
    "lcase": "lower",
    "ucase": "upper",
    "substring": "substr",
    "len": "length",
    "char_length": "length",
    "character_length": "length",
    "dayofmonth": "day",
    "day_of_week": "dayofweek",
    "dow": "dayofweek",
    "doy": "dayofyear",
    "day_of_year": "dayofyear",
    "mod": "modulo",
}
"""Names people write for a function of the allow-list."""

UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute")
_HIDDEN = {
    *BINARY.values(), *UNARY.values(), *CHAINS.values(), *CAST_TYPES, "is_null", "is_true", "in",
}  # fmt: skip
"""Functions that are written as operators and cannot be called by name."""


class Names(Protocol):
    """What a name or an aggregate means where an expression stands."""

    def column(self, node: exp.Column) -> exp.Expr:
        """The column meant, in normal form."""
        ...

    def aggregate(self, node: exp.Expr) -> exp.Expr | None:
        """The aggregate meant, in normal form; None if it is none."""
        ...


def normalize(node: exp.Expr, names: Names, reader: Reader) -> exp.Expr:
    """``node`` in its one spelling."""
    while isinstance(node, exp.Paren):
        node = node.this
    constant = normalize_constant(node, reader)
    if constant is not None:
        return keep_unread(constant, node)
    if isinstance(node, exp.Column):
        return keep_unread(names.column(node), node)
    aggregate = names.aggregate(node)
    if aggregate is not None:
        return aggregate
    rule = _RULES.get(type(node))
    if rule is None:
        raise _refuse_node(node, reader)
    found = rule(node, lambda child: normalize(child, names, reader), reader)
    return keep_unread(copy_span(found, node), node)


_READ: dict[type[exp.Expr], set[str]] = {
    exp.Anonymous: {"this", "expressions"},
    exp.Boolean: {"this"},
    exp.Column: {"this", "table"},
    exp.CTE: {"this", "alias"},
    exp.DataType: {"this", "nested"},
    exp.Identifier: {"this", "quoted"},
    exp.Interval: {"this", "unit"},
    exp.Literal: {"this", "is_string"},
    exp.TableAlias: {"this"},
    exp.With: {"expressions"},
    exp.Between: {"this", "low", "high"},
    exp.Bracket: {"this", "expressions"},
    exp.Case: {"this", "ifs", "default"},
    exp.Cast: {"this", "to", "_type"},
    exp.Distinct: {"expressions"},
    exp.If: {"this", "true"},
    exp.In: {"this", "expressions"},
    exp.Like: {"this", "expression", "negate"},
    exp.Order: {"expressions"},
    exp.Ordered: {"this", "desc", "nulls_first"},
    exp.Tuple: {"expressions"},
    exp.Where: {"this"},
}
"""Which arguments the rules below give a meaning to; of the others, ``this`` and ``expression``."""

_PIECES = (
    exp.Bracket, exp.DataType, exp.Distinct, exp.Filter, exp.Identifier, exp.Interval,
    exp.If, exp.Kwarg, exp.Order, exp.Ordered, exp.Star,
    exp.Tuple, exp.Where, exp.WithinGroup,
)  # fmt: skip
"""Pieces of an expression that have no meaning of their own."""


def keep_unread(new: exp.Expr, old: exp.Expr) -> exp.Expr:
    """``new``, with the arguments of ``old`` and its pieces that no rule has read.

    The allow-list refuses them before; should one slip through, it stays in the
    normal form, and what is written back differs from it.
    """
    for name, value in find_unread(old).items():
        new.set(f"unread_{name}", value)
    return new


def find_unread(node: exp.Expr) -> dict[str, object]:
    """The arguments of ``node`` and its pieces that no rule reads."""
    found: dict[str, object] = {}
    pending = [node]
    while pending:
        part = pending.pop()
        read = _READ.get(type(part), {"this", "expression", "typed", "safe"})
        for name, value in part.args.items():
            if value and name not in read:
                found[name] = value
            inside = value if isinstance(value, list) else [value]
            pending += [piece for piece in inside if isinstance(piece, _PIECES)]
    return found


Inner = Callable[[exp.Expr], exp.Expr]


def _operator(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    """An operator stays what it is; an argument nobody knows stays too, and is found out later."""
    del reader
    changed = {k: inner(v) if isinstance(v, exp.Expr) else v for k, v in node.args.items()}
    changed.pop("typed", None)  # what other dialects' engines do on division by zero
    changed.pop("safe", None)
    return type(node)(**changed)


def _chain(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    """``a AND b AND c`` is one call of three, however it was bracketed."""
    del reader
    pending, members = [node], []
    while pending:
        part = pending.pop()
        while isinstance(part, exp.Paren):
            part = part.this
        if type(part) is type(node):
            pending += [part.expression, part.this]
        else:
            members += flatten_chain(inner(part), CHAINS[type(node)])
    return call(CHAINS[type(node)], *members)


def _shift(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    """``day + INTERVAL '7' DAY`` is DATE_ADD_DAYS(day, 7)."""
    interval = node.expression
    if not isinstance(interval, exp.Interval):
        return _operator(node, inner, reader)
    days = _days(interval, reader)
    days = days if isinstance(node, exp.Add) else -days
    return call("date_add_days", inner(node.this), write_constant(days))


def _days(interval: exp.Interval, reader: Reader) -> int:
    unit = interval.args.get("unit")
    number = interval.this
    scale = {"DAY": 1, "DAYS": 1, "WEEK": 7, "WEEKS": 7}.get(unit.name.upper() if unit else "")
    text = number.name if isinstance(number, exp.Literal) else ""
    if scale is None or not text.lstrip("-").isdigit() or len(text) > 9:
        raise reader.refusal(
            "Q31",
            interval,
            "an interval is a whole number of days or weeks.",
            why="months have no fixed length, so the bounds of the result would not be known.",
            fix="write INTERVAL '7' DAY.",
        )
    return scale * int(text)


def _between(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    del reader
    return call(
        "and",
        exp.GTE(this=inner(node.this), expression=inner(node.args["low"])),
        exp.LTE(this=inner(node.this), expression=inner(node.args["high"])),
    )


def _concat(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    del reader
    return call("concat", inner(node.this), inner(node.expression))


def _in(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    members = [inner(member) for member in node.expressions]
    for member, original in zip(members, node.expressions, strict=True):
        if not is_constant(member) or isinstance(member, exp.Null):
            raise reader.refusal(
                "Q31",
                original,
                "IN takes a list of constants other than NULL.",
                why="the values a row is compared with are part of what is public.",
                fix="write x IN ('a', 'b'), or x = y OR x = z.",
            )
    return exp.In(this=inner(node.this), expressions=members)


def _like(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    pattern = inner(node.expression)
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise reader.refusal(
            "Q31",
            node.expression,
            "the pattern of LIKE must be a text constant.",
            why="a pattern taken from a row can cost any amount of time, which tells of the row.",
            fix="write x LIKE 'north%'.",
        )
    like = exp.Like(this=inner(node.this), expression=pattern)
    return exp.Not(this=like) if node.args.get("negate") else like


def _is(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    match node.expression:
        case exp.Null():
            return exp.Is(this=inner(node.this), expression=exp.Null())
        case exp.Boolean(this=True):
            return exp.Is(this=inner(node.this), expression=exp.Boolean(this=True))
        case exp.Boolean():
            negated = exp.Not(this=inner(node.this))
            return exp.Is(this=negated, expression=exp.Boolean(this=True))
        case _:
            raise reader.refusal(
                "Q11",
                node,
                "IS is followed by NULL, TRUE or FALSE.",
                why="nothing for a person in the data: it is not built.",
                fix="compare with =, or write x IS NULL.",
            )


def _case(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    del reader
    subject = node.args.get("this")
    branches = []
    for branch in node.args["ifs"]:
        condition = inner(branch.this)
        if subject is not None:
            condition = exp.EQ(this=inner(subject), expression=condition)
        branches.append(exp.If(this=condition, true=inner(branch.args["true"])))
    default = node.args.get("default")
    return exp.Case(ifs=branches, default=exp.Null() if default is None else inner(default))


def _cast(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    cast = CASTS.get(node.args["to"].this)
    if cast is None or cast not in FUNCTIONS:
        raise reader.refusal(
            "Q11",
            node,
            f"CAST to {node.args['to'].sql()} is outside the dialect.",
            why="a cast must give NULL, and never fail, on any person's value.",
            fix="cast to BIGINT, DOUBLE, TEXT, DATE, TIMESTAMP or BOOLEAN.",
        )
    return exp.Cast(this=inner(node.this), to=exp.DataType(this=CAST_TYPES[cast]))


def _extract(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    return call(_find_function(node.this.name, node, reader), inner(node.expression))


def _function(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    arguments = node.expressions
    name = node.name.lower()
    if isinstance(node.this, exp.Identifier):
        raise _unknown(node, reader)  # a quoted name is no word of the dialect
    special = _SPECIAL.get(name)
    if special is not None:
        return special(node, inner, reader)
    return call(_find_function(name, node, reader), *(inner(argument) for argument in arguments))


def _find_function(name: str, node: exp.Expr, reader: Reader) -> str:
    name = SYNONYMS.get(name.lower(), name.lower())
    if name not in FUNCTIONS or name in _HIDDEN:
        raise _unknown(node, reader)
    return name


def _unknown(node: exp.Expr, reader: Reader) -> QuestionRefusal:
    return reader.refusal(
        "Q9",
        node,
        f"{node.name.upper() or 'this'} is not a function of the allow-list.",
        why="a function that could fail, or look at other rows, on one person's value would tell "
        "that they are there.",
        fix=f"use one of {', '.join(_list_functions())}.",
    )


def _list_functions() -> list[str]:
    """The functions that are called by name, as analysts write them."""
    called = (f.usage for name, f in FUNCTIONS.items() if name not in _HIDDEN)
    return sorted({usage.partition("(")[0] for usage in called if "(" in usage})


def _if(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    if len(node.expressions) != 3:
        raise _arity(node, "IF(condition, value, otherwise)", reader)
    condition, value, otherwise = map(inner, node.expressions)
    return exp.Case(ifs=[exp.If(this=condition, true=value)], default=otherwise)


def _modulo(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    if len(node.expressions) != 2:
        raise _arity(node, "MOD(a, b)", reader)
    left, right = map(inner, node.expressions)
    return exp.Mod(this=left, expression=right)


def _unit_name(node: exp.Expr) -> str | None:
    """A unit written as text ('month') or as a bare word (MONTH)."""
    text = node.name.lower() if isinstance(node, exp.Literal | exp.Column | exp.Var) else ""
    return text if text in UNITS else None


def _date_trunc(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    arguments = node.expressions
    if len(arguments) == 2:
        first, second = arguments
        if isinstance(first, exp.Literal) and (unit := _unit_name(first)):
            return call(_find_function(f"date_trunc_{unit}", node, reader), inner(second))
        if not isinstance(second, exp.Literal) and (unit := _unit_name(second)):
            return call(_find_function(f"date_trunc_{unit}", node, reader), inner(first))
    raise _arity(node, "DATE_TRUNC('month', day)", reader)


def _date_part(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    arguments = node.expressions
    if len(arguments) == 2 and isinstance(arguments[0], exp.Literal):
        return call(_find_function(arguments[0].name, node, reader), inner(arguments[1]))
    raise _arity(node, "DATE_PART('month', day)", reader)


def _date_diff(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    """DATE_DIFF('day', start, end), or BigQuery's DATE_DIFF(end, start, DAY)."""
    arguments = node.expressions
    if len(arguments) == 3:
        first, second, third = arguments
        if isinstance(first, exp.Literal) and (unit := _unit_name(first)):
            return call(
                _find_function(f"date_diff_{unit}s", node, reader), inner(second), inner(third)
            )
        if not isinstance(third, exp.Literal) and (unit := _unit_name(third)):
            return call(
                _find_function(f"date_diff_{unit}s", node, reader), inner(second), inner(first)
            )
    raise _arity(node, "DATE_DIFF('day', start, end)", reader)


def _date_add(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    arguments = node.expressions
    if len(arguments) == 2 and isinstance(arguments[1], exp.Interval):
        days = _days(arguments[1], reader) * (-1 if node.name.lower() == "date_sub" else 1)
        return call("date_add_days", inner(arguments[0]), write_constant(days))
    raise _arity(node, "DATE_ADD(day, INTERVAL '7' DAY)", reader)


def _arity(node: exp.Expr, usage: str, reader: Reader) -> QuestionRefusal:
    return reader.refusal(
        "Q10",
        node,
        f"{node.name.upper()} is written {usage}.",
        why="a call that could mean two things has no certain bounds.",
        fix=f"write {usage}.",
    )


_SPECIAL = {
    "if": _if,
    "iif": _if,
    "mod": _modulo,
    "date_trunc": _date_trunc,
    "date_part": _date_part,
    "date_diff": _date_diff,
    "datediff": _date_diff,
    "date_add": _date_add,
    "date_sub": _date_add,
}

_RULES: dict[type[exp.Expr], Callable[[exp.Expr, Inner, Reader], exp.Expr]] = {
    **dict.fromkeys(BINARY, _operator),
    **dict.fromkeys(UNARY, _operator),
    **dict.fromkeys(CHAINS, _chain),
    exp.Add: _shift,
    exp.Sub: _shift,
    exp.DPipe: _concat,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.Is: _is,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.Extract: _extract,
    exp.Anonymous: _function,
}


def _refuse_node(node: exp.Expr, reader: Reader) -> QuestionRefusal:
    if isinstance(node, exp.Query | exp.Subquery):
        return reader.refusal(
            SUBQUERY.code, node, SUBQUERY.what, why=SUBQUERY.why, fix=SUBQUERY.fix
        )
    if isinstance(node, exp.Star):
        return reader.refusal(
            "Q12",
            node,
            "* stands only in COUNT(*).",
            why="every column of a row is a person's own values.",
            fix=reader.suggest_fix(node, count_rows, "count the rows: COUNT(*)."),
        )
    if isinstance(node, exp.Distinct):
        return reader.refusal(
            DISTINCT.code, node, DISTINCT.what, why=DISTINCT.why, fix=DISTINCT.fix
        )
    return reader.refusal(
        "Q11",
        node,
        f"{node.key.upper()} cannot stand here.",
        why="what has no meaning for one row has no bound for one person.",
        fix="leave it out; docs/sql.md lists all a question may contain.",
    )
