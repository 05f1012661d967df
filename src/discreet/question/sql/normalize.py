"""One spelling for each expression.

BETWEEN becomes two comparisons, IIF becomes CASE, synonyms become the name in
the allow-list, names become columns of the relation.  What no rule reads stays
where it was, and is found out when the question is written back.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Protocol

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.exact.records import dataclass
from discreet.question.domain import Kind
from discreet.question.functions import FUNCTIONS
from discreet.question.functions.patterns import write_pattern
from discreet.question.sql import clock, times
from discreet.question.sql.bans import DISTINCT, WINDOW
from discreet.question.sql.dialect import NOW, Reader, ban_subquery, copy_span
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
    read_constant,
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
    "instr": "strpos",
    "mid": "substr",
    "weekofyear": "week",
    "weekiso": "week",
    "dayofweekiso": "isodow",
    "dayofweek_iso": "isodow",
    "weekday": "dayofweek",
    "epoch_seconds": "epoch",
    "startswith": "starts_with",
    "endswith": "ends_with",
    "prefix": "starts_with",
    "suffix": "ends_with",
}
"""Names people write for a function of the allow-list."""

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

    def kind_of(self, name: str) -> Kind | None:
        """The kind of a column in normal form."""
        ...

    def zone_of(self, name: str) -> str | None:
        """The time zone whose clocks a column shows, if it is declared."""
        ...


@dataclass(frozen=True, slots=True)
class _Inside(times.Inner):
    names: Names
    reader: Reader

    def __call__(self, node: exp.Expr) -> exp.Expr:
        return normalize(node, self.names, self.reader)

    def kind_of_column(self, tree: exp.Column) -> Kind | None:
        return self.names.kind_of(tree.name)

    def zone_of_column(self, tree: exp.Column) -> str | None:
        return self.names.zone_of(tree.name)


def normalize(node: exp.Expr, names: Names, reader: Reader) -> exp.Expr:
    """``node`` in its one spelling."""
    while isinstance(node, exp.Paren):
        node = node.this
    constant = normalize_constant(node, reader)
    if constant is not None:
        return keep_unread(constant, node)
    moment = clock.now(node, reader) if node.name.upper() in NOW else None
    if moment is not None:
        return keep_unread(moment, node)
    if isinstance(node, exp.Column):
        return keep_unread(names.column(node), node)
    aggregate = names.aggregate(node)
    if aggregate is not None:
        return aggregate
    rule = _RULES.get(type(node))
    if rule is None:
        raise _refuse_node(node, reader)
    inner = _Inside(names, reader)
    found = rule(node, inner, reader)
    if not _compares_a_number(found):
        found = times.type_constants(found, inner, reader)
    return keep_unread(copy_span(found, node), node)


def _compares_a_number(tree: exp.Expr) -> bool:
    """Whether no constant beside a comparison could be a point in time, or true or false."""
    if not isinstance(tree, exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE):
        return False
    constants = [side for side in (tree.this, tree.expression) if isinstance(side, exp.Literal)]
    return all(not one.is_string and one.name not in ("0", "1") for one in constants)


_READ: dict[type[exp.Expr], set[str]] = {
    exp.Anonymous: {"this", "expressions"},
    exp.Array: {"expressions", "bracket_notation"},
    exp.Boolean: {"this"},
    exp.Column: {"this", "table"},
    exp.CTE: {"this", "alias"},
    exp.DataType: {"this", "nested", "expressions"},
    exp.Identifier: {"this", "quoted"},
    exp.Interval: {"this", "unit"},
    exp.Literal: {"this", "is_string"},
    exp.TableAlias: {"this"},
    exp.With: {"expressions"},
    exp.Between: {"this", "low", "high"},
    exp.Bracket: {"this", "expressions"},
    exp.Case: {"this", "ifs", "default"},
    exp.AtTimeZone: {"this", "zone"},
    exp.Cast: {"this", "to", "_type"},
    exp.Distinct: {"expressions"},
    exp.If: {"this", "true"},
    exp.In: {"this", "expressions"},
    exp.Like: {"this", "expression", "negate"},
    exp.ILike: {"this", "expression", "negate"},
    exp.Order: {"expressions"},
    exp.Ordered: {"this", "desc", "nulls_first"},
    exp.Tuple: {"expressions"},
    exp.Where: {"this"},
}
"""Which arguments the rules below give a meaning to; of the others, ``this`` and ``expression``."""

_PIECES = (
    exp.Array, exp.Bracket, exp.DataType, exp.Distinct, exp.Filter, exp.Identifier, exp.Interval,
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


Inner = times.Inner


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
    return times.shift(node, inner, reader)


def _compare(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    apart = exp.Sub | exp.Anonymous
    if not any(isinstance(side.unnest(), apart) for side in (node.this, node.expression)):
        return _operator(node, inner, reader)
    return times.compare_spans(node, inner, reader) or _operator(node, inner, reader)


def _between(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    del reader
    return call(
        "and",
        exp.GTE(this=inner(node.this), expression=inner(node.args["low"])),
        exp.LTE(this=inner(node.this), expression=inner(node.args["high"])),
    )


def _concat(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    """``a || b``; a whole number is the text of its digits."""
    del reader
    return call("concat", *(_as_text(inner(side), inner) for side in (node.this, node.expression)))


def _join_texts(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    del reader
    return call("concat", *(_as_text(inner(part), inner) for part in node.expressions))


_WHOLE = {
    "year", "quarter", "month", "week", "day", "dayofyear", "dayofweek", "isodow", "hour",
    "minute", "length", "strpos",
}  # fmt: skip
"""Functions whose values are whole numbers."""


def _as_text(tree: exp.Expr, inner: Inner) -> exp.Expr:
    """``tree``, or what a column of whole numbers is written as; both PostgreSQL and DuckDB do."""
    number = isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdigit()
    column = isinstance(tree, exp.Column) and inner.kind_of_column(tree) is Kind.INTEGER
    counted = isinstance(tree, exp.Anonymous) and tree.name.lower() in _WHOLE
    if not number and not column and not counted:
        return tree
    return exp.Cast(this=tree, to=exp.DataType(this=exp.DType.TEXT))


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
                why="whether a row counts must be decided for every row.",
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
    tree = exp.Cast(this=inner(node.this), to=exp.DataType(this=CAST_TYPES[cast]))
    sizes = ["" if part.expression else part.name for part in node.args["to"].expressions]
    return _fit(tree, sizes, node, reader) if sizes else tree


def _fit(tree: exp.Expr, sizes: list[str], node: exp.Expr, reader: Reader) -> exp.Expr:
    """What a cast to DECIMAL(10, 2) or VARCHAR(20) leaves of a value: NULL where it is too large.

    Wider than any double, a precision says nothing.
    """
    numbers = [int(size) for size in sizes if size.isdigit() and len(size) <= 4]
    cast = CASTS[node.args["to"].this]
    if len(numbers) == len(sizes) == 1 and cast == "cast_text":
        return call("substr", tree, write_constant(1), write_constant(numbers[0]))
    digits = numbers[1] if len(numbers) == 2 else 0
    if len(numbers) != len(sizes) or cast != "cast_decimal" or not digits <= numbers[0] <= 38:
        raise reader.refusal(
            "Q11",
            node,
            f"CAST to {node.args['to'].sql()} is outside the dialect.",
            why="a cast must give NULL, and never fail, on any person's value.",
            fix="write DECIMAL(10, 2), at most 38 digits, or the type without a size.",
        )
    rounded = call("round", tree, write_constant(digits))
    least = exp.LT(
        this=call("abs", rounded), expression=write_constant(10 ** (numbers[0] - digits))
    )
    return exp.Case(ifs=[exp.If(this=least, true=rounded.copy())], default=exp.Null())


def _extract(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    part = node.this.name
    return times.extract(part, node.expression, node, inner, reader, _find_function)


def _regexp(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    """``x ~ 'pattern'``; with ``~*``, in any case of letters."""
    pattern = inner(node.expression)
    if isinstance(node, exp.RegexpILike) and isinstance(pattern, exp.Literal):
        pattern = copy_span(exp.Literal.string(f"(?i){pattern.name}"), pattern)
    return _match(node, inner(node.this), pattern, reader)


def _match(node: exp.Expr, text: exp.Expr, pattern: exp.Expr, reader: Reader) -> exp.Expr:
    if isinstance(pattern, exp.Literal) and pattern.is_string and write_pattern(pattern.name):
        return call("regexp_matches", text, pattern)
    raise reader.refusal(
        "Q31",
        node,
        "a regular expression here is a constant of letters, ., [a-z], |, (...), *, +, ?, {m,n}, "
        "^, $, \\d, \\w, \\s and \\b, at most 200 characters.",
        why="a pattern taken from a row can cost any amount of time, which tells of the row.",
        fix="write x LIKE 'north%', or REGEXP_LIKE(x, '^n[a-z]+$').",
    )


def _regexp_call(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    arguments = [inner(a) for a in node.expressions]
    if len(arguments) == 3 and arguments[2] == exp.Literal.string("i"):
        pattern = exp.Literal.string(f"(?i){arguments[1].name}")
        return _match(node, arguments[0], copy_span(pattern, arguments[1]), reader)
    if len(arguments) != 2:
        raise _arity(node, "REGEXP_LIKE(text, 'pattern')", reader)
    return _match(node, arguments[0], arguments[1], reader)


def _ilike(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    """In any case of letters."""
    pattern = inner(node.expression)
    if isinstance(pattern, exp.Literal):
        pattern = copy_span(exp.Literal.string(pattern.name.lower()), pattern)
    small = exp.Like(this=node.this, expression=pattern, negate=node.args.get("negate"))
    like = _like(small, inner, reader)
    inside = like.this if isinstance(like, exp.Not) else like
    inside.set("this", call("lower", inside.this))
    return like


def _function(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    arguments = node.expressions
    name = node.name.lower()
    if isinstance(node.this, exp.Identifier):
        raise _describe_unknown(node, reader)  # a quoted name is no word of the dialect
    special = SPECIAL.get(name)
    if special is not None:
        return special(node, inner, reader)
    return call(_find_function(name, node, reader), *(inner(argument) for argument in arguments))


def _find_function(name: str, node: exp.Expr, reader: Reader) -> str:
    name = SYNONYMS.get(name.lower(), name.lower())
    if name not in FUNCTIONS or name in _HIDDEN:
        raise _describe_unknown(node, reader)
    return name


def _describe_unknown(node: exp.Expr, reader: Reader) -> QuestionRefusal:
    if node.name.upper() in ("DP_INTERVAL_LOW", "DP_INTERVAL_HIGH"):
        return reader.refusal(
            "Q9",
            node,
            f"{node.name.upper()} stands beside a released number, not in people's rows.",
            why="a row of a person has no noise; what a question releases of it has.",
            fix=f"write {node.name.upper()}(n) beside the aggregate that is called n.",
        )
    if node.name.upper() == "AGE" and node.expressions:
        return reader.refusal(
            "Q10",
            node,
            "AGE is an interval, and here a number is wanted.",
            why="a person's span has bounds only in a unit that is written down.",
            fix=reader.suggest_fix(
                node,
                _take_years,
                "take EXTRACT(YEAR FROM AGE(end, start)), or DATE_DIFF('day', start, end).",
                "in whole years: ",
            ),
        )
    return reader.refusal(
        "Q9",
        node,
        f"{node.name.upper() or 'this'} is not a function of the allow-list.",
        why="a function that could fail, or look at other rows, on one person's value would tell "
        "that they are there.",
        fix=f"use one of {', '.join(_list_functions())}.",
    )


def _take_years(node: exp.Expr) -> None:
    node.replace(exp.Extract(this=exp.Var(this="YEAR"), expression=node.copy()))


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


Spelling = Callable[[exp.Expr, Inner, Reader], exp.Expr | None]


def _make_rule(spelling: Spelling, usage: str) -> Callable[[exp.Expr, Inner, Reader], exp.Expr]:
    """A rule that refuses what its spelling does not know."""

    def rule(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
        found = spelling(node, inner, reader)
        if found is None:
            raise _arity(node, usage, reader)
        return found

    return rule


def _date_part(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    arguments = node.expressions
    if len(arguments) == 2 and isinstance(arguments[0], exp.Literal | exp.Column | exp.Var):
        part = arguments[0].name
        return times.extract(part, arguments[1], node, inner, reader, _find_function)
    raise _arity(node, "DATE_PART('month', day)", reader)


def _rewrite_left(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    if len(node.expressions) != 2:
        raise _arity(node, "LEFT(text, length)", reader)
    text, count = map(inner, node.expressions)
    return call("substr", text, write_constant(1), count)


_MOST_PADDED = 1_000


def _pad(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    """LPAD(x, 5, '0') and RPAD(x, 5): as long as is said, filled up or cut at the end."""
    usage = f"{node.name.upper()}(text, 5, '0'), at most {_MOST_PADDED} long, with one character"
    if len(node.expressions) not in (2, 3):
        raise _arity(node, usage, reader)
    text, *rest = map(inner, node.expressions)
    length, fill = [*(read_constant(t) if is_constant(t) else None for t in rest), " "][:2]
    if type(length) is not int or not 0 <= length <= _MOST_PADDED:
        raise _arity(node, usage, reader)
    if not isinstance(fill, str) or len(fill) != 1:
        raise _arity(node, usage, reader)
    first, count = write_constant(1), write_constant(length)
    padding = write_constant(fill * length)
    if node.name.upper() == "RPAD":
        return call("substr", call("concat", text, padding), first, count)
    long = exp.GTE(this=call("length", text.copy()), expression=count.copy())
    cut = call("substr", text.copy(), first, count)
    filled = call("right", call("concat", padding, text), count.copy())
    return exp.Case(ifs=[exp.If(this=long, true=cut)], default=filled)


def _letter(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    """text[2], from 1 on, as in DuckDB."""
    trees = [inner(place) for place in node.expressions]
    places = [read_constant(tree) if is_constant(tree) else None for tree in trees]
    if len(places) != 1 or type(places[0]) is not int or places[0] < 1:
        raise reader.refusal(
            "Q10",
            node,
            "the place of a character is one constant, from 1 on.",
            why="a call that could mean two things has no certain bounds.",
            fix="write text[2], or SUBSTR(text, 1, 3) for several.",
        )
    return call("substr", inner(node.this), write_constant(places[0]), write_constant(1))


def _first_given(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    """NVL2(a, b, c): b if a is there, else c."""
    if len(node.expressions) != 3:
        raise _arity(node, "NVL2(value, if_there, if_not)", reader)
    value, there, absent = map(inner, node.expressions)
    present = exp.Not(this=exp.Is(this=value, expression=exp.Null()))
    return exp.Case(ifs=[exp.If(this=present, true=there)], default=absent)


def _zero_if_null(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    if len(node.expressions) != 1:
        raise _arity(node, "ZEROIFNULL(x)", reader)
    return call("coalesce", inner(node.expressions[0]), write_constant(0))


def _ratio(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    """SAFE_DIVIDE(a, b) is a / b, which is NULL where b is 0; DIV0 is 0 there."""
    if len(node.expressions) != 2:
        raise _arity(node, f"{node.name.upper()}(a, b)", reader)
    a, b = map(inner, node.expressions)
    ratio = exp.Div(this=a, expression=b)
    if node.name.upper() != "DIV0":
        return ratio
    zero = exp.EQ(this=b.copy(), expression=write_constant(0))
    return exp.Case(ifs=[exp.If(this=zero, true=write_constant(0))], default=ratio)


def _width_bucket(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    """WIDTH_BUCKET(x, low, high, n): in which of n parts x lies; 0 below them, n + 1 above."""
    usage = "WIDTH_BUCKET(x, 0, 500, 5), with constants from low to high"
    if len(node.expressions) != 4:
        raise _arity(node, usage, reader)
    value, *constants = map(inner, node.expressions)
    if not all(map(is_constant, constants)):
        raise _arity(node, usage, reader)
    low, high, count = (_number(constant) for constant in constants)
    if low is None or high is None or count is None or low >= high:
        raise _arity(node, usage, reader)
    if count.denominator != 1 or not 1 <= count <= 1000:
        raise _arity(node, usage, reader)
    above = exp.Mul(this=exp.Sub(this=value, expression=constants[0]), expression=constants[2])
    width = high - low
    size = write_constant(int(width) if width.denominator == 1 else width)
    share = exp.Div(this=above, expression=size)
    number = exp.Add(this=call("floor", share), expression=write_constant(1))
    most = write_constant(int(count) + 1)
    return call("greatest", call("least", number, most), write_constant(0))


def _number(constant: exp.Expr) -> Fraction | None:
    value = read_constant(constant)
    known = isinstance(value, int | Fraction) and not isinstance(value, bool)
    return Fraction(value) if known else None  # type: ignore[arg-type]


def _is_same(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    """Equal, or both NULL: never NULL, whatever they are."""
    null = [exp.Is(this=side, expression=exp.Null()) for side in (one, other)]
    equal = exp.EQ(this=one, expression=other)
    if isinstance(other, exp.Null | exp.Literal | exp.Boolean):
        return null[0] if isinstance(other, exp.Null) else equal
    return exp.Anonymous(this="COALESCE", expressions=[equal, exp.and_(*null)])


def _decode(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    """DECODE(x, 'a', 1, y, 2, 0) chooses by what x is; unlike in CASE x, two NULLs are the same."""
    subject, *rest = node.expressions or [None]
    if len(rest) < 2:
        raise _arity(node, "DECODE(x, value, result, ..., otherwise)", reader)
    pairs = zip(rest[::2], rest[1::2], strict=False)
    ifs = [exp.If(this=_is_same(subject, value), true=result) for value, result in pairs]
    return _case(exp.Case(ifs=ifs, default=rest[-1] if len(rest) % 2 else None), inner, reader)


def _name_of_day(text: str) -> Callable[[exp.Expr, Inner, Reader], exp.Expr]:
    def rule(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
        if len(node.expressions) != 1:
            raise _arity(node, f"{node.name.upper()}(date)", reader)
        return call("strftime", inner.time(node.expressions[0]), write_constant(text))

    return rule


def _arity(node: exp.Expr, usage: str, reader: Reader) -> QuestionRefusal:
    return reader.refusal(
        "Q10",
        node,
        f"{node.name.upper()} is written {usage}.",
        why="a call that could mean two things has no certain bounds.",
        fix=f"write {usage}.",
    )


def _convert_timezone(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    """CONVERT_TIMEZONE('UTC', 'Europe/Paris', x), or without the first: from the column's own."""
    zones, (point,) = node.expressions[:-1], node.expressions[-1:] or (None,)
    if point is None or len(zones) not in (1, 2):
        raise _arity(node, "CONVERT_TIMEZONE('UTC', 'Europe/Paris', x)", reader)
    old = clock.read_zone(zones[0], reader) if len(zones) == 2 else None
    return clock.change_zone(point, old, clock.read_zone(zones[-1], reader), inner, reader)


_DIFF = _make_rule(times.date_diff, "DATE_DIFF('day', start, end)")
_TRUNC = _make_rule(times.date_trunc, "DATE_TRUNC('month', day)")
_TRUNC_DAY = _make_rule(times.date_trunc, "TRUNC(day, 'MM')")


def _truncate(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    """TRUNC(x) of a number is towards 0; TRUNC(day, 'MM') is DATE_TRUNC('month', day)."""
    if len(node.expressions) != 1:
        return _TRUNC_DAY(node, inner, reader)
    size = call("abs", inner(node.expressions[0]))
    sign = call("sign", inner(node.expressions[0]))
    return exp.Mul(this=sign, expression=call("floor", size))


_BUCKET = _make_rule(times.time_bucket, "DATE_TRUNC('week', day)")
_DATE_ADD = _make_rule(times.date_add, "DATE_ADD(day, INTERVAL '7' DAY)")
_MAKE_DATE = _make_rule(times.make_date, "DATE '2024-02-29' or CAST(x AS DATE)")
_FORMAT = _make_rule(times.format_time, "STRFTIME(day, '%Y-%m')")
SPECIAL = {
    "if": _if,
    "iif": _if,
    "iff": _if,
    "mod": _modulo,
    "nvl2": _first_given,
    "zeroifnull": _zero_if_null,
    "safe_divide": _ratio,
    "ieee_divide": _ratio,
    "div0": _ratio,
    "decode": _decode,
    "left": _rewrite_left,
    "lpad": _pad,
    "rpad": _pad,
    "regexp_like": _regexp_call,
    "regexp_contains": _regexp_call,
    "regexp_matches": _regexp_call,
    "rlike": _regexp_call,
    "width_bucket": _width_bucket,
    "time_bucket": _BUCKET,
    "time_slice": _BUCKET,
    **dict.fromkeys(("date_part", "datepart"), _date_part),
    "convert_timezone": _convert_timezone,
    "last_day": _make_rule(times.last_day, "LAST_DAY(date)"),
    "dayname": _name_of_day("%A"),
    "monthname": _name_of_day("%B"),
    "trunc": _truncate,
    "concat": _join_texts,
    **dict.fromkeys(("date_trunc", "datetrunc", "timestamp_trunc", "datetime_trunc"), _TRUNC),
    **dict.fromkeys(
        ("date_diff", "datediff", "timestampdiff", "timestamp_diff", "datetime_diff"), _DIFF
    ),
    **dict.fromkeys(
        (
            "date_add", "date_sub", "dateadd", "datesub", "timestampadd", "timestamp_add",
            "timestamp_sub", "datetime_add", "datetime_sub", "add_months",
        ),
        _DATE_ADD,
    ),
    **dict.fromkeys(
        ("date", "to_date", "timestamp", "to_timestamp", "make_date", "date_from_parts"),
        _MAKE_DATE,
    ),
    **dict.fromkeys(
        (
            "strftime", "format_date", "format_timestamp", "format_datetime", "to_char",
            "to_varchar", "date_format",
        ),
        _FORMAT,
    ),
}  # fmt: skip

_RULES: dict[type[exp.Expr], Callable[[exp.Expr, Inner, Reader], exp.Expr]] = {
    **dict.fromkeys(BINARY, _operator),
    **dict.fromkeys(UNARY, _operator),
    **dict.fromkeys(CHAINS, _chain),
    exp.Add: _shift,
    exp.Sub: _shift,
    **dict.fromkeys((exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NEQ), _compare),
    exp.RegexpLike: _regexp,
    exp.RegexpILike: _regexp,
    exp.ILike: _ilike,
    exp.DPipe: _concat,
    exp.Bracket: _letter,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.Is: _is,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.Extract: _extract,
    exp.AtTimeZone: clock.at_zone,
    exp.Anonymous: _function,
}


def _refuse_node(node: exp.Expr, reader: Reader) -> QuestionRefusal:
    if isinstance(node, exp.Window):
        return reader.refusal(WINDOW.code, node, WINDOW.what, why=WINDOW.why, fix=WINDOW.fix)
    if isinstance(node, exp.Query | exp.Subquery):
        ban = ban_subquery(node, reader)
        return reader.refusal(ban.code, node, ban.what, why=ban.why, fix=ban.fix)
    if isinstance(node, exp.Star):
        return reader.refusal(
            "Q12",
            node,
            "* stands only in COUNT(*).",
            why="every column of a row is a person's own values.",
            fix=reader.suggest_fix(
                node,
                count_rows,
                "count the rows: COUNT(*).",
                "how many rows there are can be told: ",
            ),
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
