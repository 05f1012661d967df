"""Numbers: interval rules, and arithmetic that cannot fail.

Integer results are exact as long as their interval stays within ±2**62; beyond
that the same function is computed in doubles, where nothing wraps around.  A
double operation rounds to nearest, which is monotone, so rounding the ends of
the exact interval to nearest bounds every result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from discreet.question.domain import WIDEST, Domain, Kind, to_double
from discreet.question.functions import nodes
from discreet.question.functions.declaration import (
    NUMBER,
    Domains,
    Function,
    Nodes,
    Plain,
    anywhere,
    as_kind,
    cast_to,
    check_kinds,
    declare,
    refuse_kinds,
    single,
    strict,
)
from discreet.question.functions.nodes import Node

Ends = tuple[Fraction | None, Fraction | None]
_INT64 = 2**63


def _reach(domain: Domain) -> Ends:
    """What an integer can be at most, declared or not: it has 64 bits."""
    if domain.kind is not Kind.INTEGER:
        return domain.low, domain.high
    low = Fraction(-_INT64) if domain.low is None else domain.low
    high = Fraction(_INT64) if domain.high is None else domain.high
    return low, high


def _fits(ends: Ends) -> bool:
    return all(end is not None and abs(end) <= WIDEST for end in ends)


def _corners(function: Callable[[Fraction, Fraction], Fraction], a: Ends, b: Ends) -> Ends:
    """The least and the greatest of a function that is monotone in each argument."""
    if None in (*a, *b):
        return None, None
    found = [function(x, y) for x in a for y in b]  # type: ignore[arg-type]
    return min(found), max(found)


def _plus(a: Ends, b: Ends) -> Ends:
    low = None if a[0] is None or b[0] is None else a[0] + b[0]
    high = None if a[1] is None or b[1] is None else a[1] + b[1]
    return low, high


def _minus(a: Ends, b: Ends) -> Ends:
    return _plus(a, (None if b[1] is None else -b[1], None if b[0] is None else -b[0]))


def _times(a: Ends, b: Ends) -> Ends:
    return _corners(lambda x, y: x * y, a, b)


def _round_ends(ends: Ends) -> Ends:
    low, high = (None if end is None else to_double(end) for end in ends)
    return low, high


def _in_doubles(ends: Ends, reach: Ends, *, nullable: bool) -> tuple[Domain, bool]:
    """The domain of a rounded result, and whether it is certain to be finite.

    ``ends`` is the interval that follows from what was declared; ``reach`` the
    one that follows when integers are also known to have 64 bits.
    """
    certain = None not in _round_ends(reach)
    return Domain(Kind.DECIMAL, *_round_ends(ends), nullable or not certain), certain


def _binary(
    name: str,
    usage: str,
    meaning: str,
    operator: type[exp.Binary],
    interval: Callable[[Ends, Ends], Ends],
    evaluate: Callable[[Plain, Plain], Plain],
) -> None:
    """Declare +, - or *."""

    def rule(domains: Domains) -> tuple[Domain, bool]:
        check_kinds(domains, usage, NUMBER, NUMBER)
        nullable = any(d.nullable for d in domains)
        if all(d.kind is Kind.INTEGER or d.is_null for d in domains):
            a, b = domains
            if _fits(interval(_reach(a), _reach(b))):
                low, high = interval((a.low, a.high), (b.low, b.high))
                return Domain(Kind.INTEGER, low, high, nullable), True
        reach = interval(*(_round_ends(_reach(d)) for d in domains))
        a, b = (as_kind(d, Kind.DECIMAL) for d in domains)
        ends = interval((a.low, a.high), (b.low, b.high))
        return _in_doubles(ends, reach, nullable=nullable)

    def render(arguments: Nodes, domains: Domains) -> Node:
        result, certain = rule(domains)
        a, b = (cast_to(n, d, result.kind) for n, d in zip(arguments, domains, strict=True))
        if result.kind is Kind.INTEGER and rule(anywhere(domains))[0].kind is not Kind.INTEGER:
            return _in_128_bits(nodes.infix(operator, nodes.wide(a), b))
        node = nodes.infix(operator, a, b)
        return node if certain else nodes.finite(node)

    declare(Function(name, usage, meaning, lambda d: rule(d)[0], render, strict(evaluate)))


def _in_128_bits(node: Node) -> Node:
    """Back to 64 bits: NULL where it does not fit, which only a row shut out can bring about.

    The domains say that the result fits because of a condition, and an engine
    may compute before it has applied the condition (docs/proofs/ownership.md, Lemma 9).
    """
    return nodes.try_cast(node, Kind.INTEGER)


_binary("add", "a + b", "sum of two numbers", exp.Add, _plus, lambda a, b: a + b)
_binary("subtract", "a - b", "difference of two numbers", exp.Sub, _minus, lambda a, b: a - b)
_binary("multiply", "a * b", "product of two numbers", exp.Mul, _times, lambda a, b: a * b)


# --- division ------------------------------------------------------------------------------


def _may_be_zero(domain: Domain) -> bool:
    if domain.values is not None:
        return 0 in domain.values
    return (domain.low is None or domain.low <= 0) and (domain.high is None or domain.high >= 0)


def _pieces(b: Domain) -> list[tuple[Fraction, Fraction]]:
    """Intervals without zero that cover every divisor other than zero; none if there are none."""
    if b.values is not None and b.kind.is_number:
        numbers = [Fraction(v) for v in b.values if v != 0]  # type: ignore[arg-type]
        return [(n, n) for n in numbers]
    low, high = _reach(b)
    if low is None or high is None:
        return []
    if low > 0 or high < 0:
        return [(low, high)]
    if b.kind is not Kind.INTEGER:
        return []
    sides = [(low, Fraction(-1)), (Fraction(1), high)]
    return [(first, last) for first, last in sides if first <= last]


def _quotient(a: Ends, pieces: list[tuple[Fraction, Fraction]]) -> Ends:
    """The interval of a / b for b in any of ``pieces``, where it is monotone in each argument."""
    found = [_corners(lambda x, y: x / y, a, piece) for piece in pieces]
    ends = [end for pair in found for end in pair if end is not None]
    return (min(ends), max(ends)) if ends else (None, None)


def _divide_rule(domains: Domains) -> tuple[Domain, bool]:
    check_kinds(domains, "a / b", NUMBER, NUMBER)
    a, b = domains
    nullable = a.nullable or b.nullable or _may_be_zero(b)
    divisors = [(Fraction(float(low)), Fraction(float(high))) for low, high in _pieces(b)]
    ends = _quotient(_round_ends((a.low, a.high)), divisors)
    reach = _quotient(_round_ends(_reach(a)), divisors)
    return _in_doubles(ends, reach, nullable=nullable)


def _divide_render(arguments: Nodes, domains: Domains) -> Node:
    _, certain = _divide_rule(domains)
    a, b = (cast_to(n, d, Kind.DECIMAL) for n, d in zip(arguments, domains, strict=True))
    node = nodes.infix(exp.Div, a, nodes.nonzero(b) if _may_be_zero(domains[1]) else b)
    return node if certain else nodes.finite(node)


declare(
    Function(
        "divide",
        "a / b",
        "quotient of two numbers as a decimal; NULL if b is 0",
        lambda domains: _divide_rule(domains)[0],
        _divide_render,
        strict(lambda a, b: float(a) / float(b)),
    )
)


def _never_minus_one(domain: Domain) -> bool:
    return (domain.low is not None and domain.low > -1) or (
        domain.high is not None and domain.high < -1
    )


def _stays_whole(a: Domain, b: Domain) -> bool:
    """Whether a by b can be computed in 64 bits: only -2**63 by -1 cannot."""
    integers = a.kind is Kind.INTEGER and b.kind is Kind.INTEGER
    return integers and (_fits(_reach(a)) or _never_minus_one(b))


def _whole_quotient_rule(domains: Domains) -> tuple[Domain, bool]:
    check_kinds(domains, "a // b", NUMBER, NUMBER)
    a, b = domains
    nullable = a.nullable or b.nullable or _may_be_zero(b)
    if _stays_whole(a, b):
        low, high = _quotient((a.low, a.high), _pieces(b))
        low, high = (None if end is None else Fraction(math.trunc(end)) for end in (low, high))
        return Domain(Kind.INTEGER, low, high, nullable), True
    domain, certain = _divide_rule(domains)
    low, high = (None if b is None else Fraction(math.trunc(b)) for b in (domain.low, domain.high))
    return Domain(Kind.DECIMAL, low, high, domain.nullable), certain


def _whole_quotient_render(arguments: Nodes, domains: Domains) -> Node:
    result, _ = _whole_quotient_rule(domains)
    if result.kind is Kind.DECIMAL:
        return nodes.call("TRUNC", _divide_render(arguments, domains))
    a, b = arguments
    others = anywhere(domains)
    divisor = nodes.nonzero(b) if _may_be_zero(others[1]) else b
    if not _stays_whole(*others):
        return _in_128_bits(nodes.infix(exp.IntDiv, nodes.wide(a), divisor))
    return nodes.infix(exp.IntDiv, a, divisor)


def _whole_quotient(a: Plain, b: Plain) -> Plain:
    if isinstance(a, float) or isinstance(b, float):
        return float(math.trunc(float(a) / float(b)))
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


declare(
    Function(
        "integer_divide",
        "a // b",
        "quotient of two numbers without its fraction (towards 0); NULL if b is 0",
        lambda domains: _whole_quotient_rule(domains)[0],
        _whole_quotient_render,
        strict(_whole_quotient),
    )
)


def _remainder_rule(domains: Domains) -> Domain:
    check_kinds(domains, "a % b", NUMBER, NUMBER)
    a, b = domains
    nullable = a.nullable or b.nullable or _may_be_zero(b)
    kind = Kind.INTEGER if _stays_whole(a, b) else Kind.DECIMAL
    a, b = as_kind(a, kind), as_kind(b, kind)
    sizes = [max(abs(d.low), abs(d.high)) for d in (a, b) if d.low is not None is not d.high]
    if not sizes:
        return Domain(kind, None, None, nullable)
    most = min(sizes)  # no larger than either, and of the sign of a
    if kind is Kind.INTEGER and b.bounded and most > 0 and most == sizes[-1]:
        most -= 1
    low = Fraction(0) if a.low is not None and a.low >= 0 else -most
    high = Fraction(0) if a.high is not None and a.high <= 0 else most
    return Domain(kind, low, high, nullable)


def _remainder_render(arguments: Nodes, domains: Domains) -> Node:
    kind, others = _remainder_rule(domains).kind, anywhere(domains)
    a, b = (cast_to(n, d, kind) for n, d in zip(arguments, domains, strict=True))
    divisor = nodes.nonzero(b) if _may_be_zero(others[1]) else b
    if kind is Kind.INTEGER and not _stays_whole(*others):
        return _in_128_bits(nodes.infix(exp.Mod, nodes.wide(a), divisor))
    return nodes.infix(exp.Mod, a, divisor)


def _remainder(a: Plain, b: Plain) -> Plain:
    if isinstance(a, float) or isinstance(b, float):
        return math.fmod(float(a), float(b))
    return abs(a) % abs(b) * (1 if a >= 0 else -1)


declare(
    Function(
        "modulo",
        "a % b",
        "remainder of a by b, of the sign of a; NULL if b is 0",
        _remainder_rule,
        _remainder_render,
        strict(_remainder),
    )
)


# --- one argument --------------------------------------------------------------------------


def _unary(
    name: str,
    usage: str,
    meaning: str,
    interval: Callable[[Ends], Ends],
    operator: Callable[[Node], Node],
    evaluate: Callable[[Plain], Plain],
) -> None:
    """Declare a function of one number that is exact in doubles."""

    def rule(domains: Domains) -> Domain:
        check_kinds(domains, usage, NUMBER)
        (a,) = domains
        kind = Kind.INTEGER
        if a.kind is not Kind.INTEGER or not _fits(interval(_reach(a))):
            kind, a = Kind.DECIMAL, as_kind(a, Kind.DECIMAL)
        low, high = interval((a.low, a.high))
        return Domain(kind, low, high, a.nullable)

    def render(arguments: Nodes, domains: Domains) -> Node:
        kind = rule(domains).kind
        node = cast_to(arguments[0], domains[0], kind)
        if kind is Kind.INTEGER and rule(anywhere(domains)).kind is not Kind.INTEGER:
            return _in_128_bits(operator(nodes.wide(node)))
        return operator(node)

    declare(Function(name, usage, meaning, rule, render, strict(evaluate)))


def _negate(ends: Ends) -> Ends:
    return _minus((Fraction(0), Fraction(0)), ends)


def _size(ends: Ends) -> Ends:
    low, high = ends
    if low is not None and low >= 0:
        return ends
    if high is not None and high <= 0:
        return _negate(ends)
    most = None if low is None or high is None else max(-low, high)
    return Fraction(0), most


_unary(
    "negate",
    "-a",
    "the number with the other sign",
    _negate,
    lambda a: exp.Paren(this=exp.Neg(this=nodes.paren(a))),
    lambda a: -a,
)
_unary("abs", "ABS(a)", "size of a number", _size, lambda a: nodes.call("ABS", a), abs)


def _sign_rule(domains: Domains) -> Domain:
    check_kinds(domains, "SIGN(a)", NUMBER)
    (a,) = domains
    low = 1 if a.low is not None and a.low > 0 else 0 if a.low is not None and a.low >= 0 else -1
    high = -1 if a.high is not None and a.high < 0 else 0 if a.high == 0 else 1
    return Domain(Kind.INTEGER, Fraction(low), Fraction(high), a.nullable)


declare(
    Function(
        "sign",
        "SIGN(a)",
        "-1, 0 or 1",
        _sign_rule,
        lambda arguments, _: nodes.cast(nodes.call("SIGN", *arguments), Kind.INTEGER),
        strict(lambda a: (a > 0) - (a < 0)),
    )
)


# --- rounding ------------------------------------------------------------------------------


def _away(value: float) -> float:
    """To the nearest whole number, halves away from zero, as C's round does."""
    size = abs(value)
    below = math.floor(size)
    return math.copysign(float(below + (size - below >= 0.5)), value)


def _to_whole(name: str, usage: str, meaning: str, function: Callable[[float], float]) -> Function:
    """Declare FLOOR or CEIL: an integer where it is known to fit, else a decimal."""

    def rule(domains: Domains) -> Domain:
        check_kinds(domains, usage, NUMBER)
        (a,) = domains
        if a.kind is Kind.INTEGER:
            return Domain(Kind.INTEGER, a.low, a.high, a.nullable)
        low, high = (None if b is None else Fraction(function(float(b))) for b in (a.low, a.high))
        kind = Kind.INTEGER if _fits((low, high)) else Kind.DECIMAL
        return Domain(kind, low, high, a.nullable)

    def render(arguments: Nodes, domains: Domains) -> Node:
        if domains[0].kind is Kind.INTEGER or domains[0].is_null:
            return cast_to(arguments[0], domains[0], rule(domains).kind)
        node = nodes.call(name.upper(), *arguments)
        return nodes.try_cast(node, Kind.INTEGER) if rule(domains).kind is Kind.INTEGER else node

    def evaluate(value: Plain) -> Plain:
        if isinstance(value, int):
            return value
        return int(function(value)) if abs(value) <= WIDEST else function(value)

    return declare(Function(name, usage, meaning, rule, render, strict(evaluate)))


_to_whole(
    "floor", "FLOOR(a)", "the greatest whole number not above a", lambda x: float(math.floor(x))
)
_to_whole("ceil", "CEIL(a)", "the least whole number not below a", lambda x: float(math.ceil(x)))

_ROUND = "ROUND(a, digits)"
_MOST_DIGITS = 15


def _digits(domains: Domains) -> int:
    """How many digits after the point are kept: a constant of the question."""
    if len(domains) == 1:
        return 0
    digits = single(domains[1]) if len(domains) == 2 else None
    if not isinstance(digits, int) or isinstance(digits, bool) or abs(digits) > _MOST_DIGITS:
        refuse_kinds(f"{_ROUND} with a constant from -{_MOST_DIGITS} to {_MOST_DIGITS}", domains)
    return digits


def _round(value: Plain, digits: Plain = 0) -> Plain:
    """As DuckDB rounds doubles: scale, round halves away from zero, scale back."""
    digits = int(digits)
    if isinstance(value, int):
        if digits >= 0:
            return value
        unit = 10**-digits
        return (abs(value) + unit // 2) // unit * unit * (1 if value >= 0 else -1)
    if digits == 0:
        whole = _away(value)
        return int(whole) if abs(whole) <= WIDEST else whole
    unit = 10.0 ** abs(digits)
    if digits > 0:
        scaled = _away(value * unit) / unit if math.isfinite(value * unit) else value
    else:
        scaled = _away(value / unit) * unit
    return scaled if math.isfinite(scaled) else value


def _round_rule(domains: Domains) -> Domain:
    digits = _digits(domains)
    check_kinds(domains[:1], _ROUND, NUMBER)
    (a,) = domains[:1]
    if a.kind is Kind.INTEGER and digits < 0 and not _fits(_reach(a)):
        a = as_kind(a, Kind.DECIMAL)
    ends = [
        None if b is None else _round(int(b) if a.kind is Kind.INTEGER else float(b), digits)
        for b in (a.low, a.high)
    ]
    low, high = (None if end is None else Fraction(end) for end in ends)
    whole = a.kind is Kind.INTEGER or (digits == 0 and _fits((low, high)))
    return Domain(Kind.INTEGER if whole else Kind.DECIMAL, low, high, a.nullable)


def _round_render(arguments: Nodes, domains: Domains) -> Node:
    digits, result, a = _digits(domains), _round_rule(domains), domains[0]
    if a.is_null or (a.kind is Kind.INTEGER and digits >= 0):
        return cast_to(arguments[0], a, result.kind)
    if a.kind is Kind.INTEGER and result.kind is Kind.INTEGER:
        if _round_rule((a.anywhere, *domains[1:])).kind is not Kind.INTEGER:
            wide = nodes.wide(arguments[0])
            return _in_128_bits(nodes.call("ROUND", wide, _plain_digits(digits)))
        return nodes.call("ROUND", arguments[0], _plain_digits(digits))
    node = cast_to(arguments[0], a, Kind.DECIMAL)
    if digits == 0:
        node = nodes.call("ROUND", node)
        return nodes.try_cast(node, Kind.INTEGER) if result.kind is Kind.INTEGER else node
    return nodes.call("ROUND", node, _plain_digits(digits))


def _plain_digits(digits: int) -> Node:
    """ROUND takes its digits in 32 bits only."""
    return nodes.cast_short(exp.Literal.string(str(digits)))


declare(
    Function(
        "round",
        _ROUND,
        "nearest multiple of 10**-digits (digits is a constant, 0 if left out), halves away from 0",
        _round_rule,
        _round_render,
        strict(_round),
    )
)
