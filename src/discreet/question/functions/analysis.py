"""Square roots, logarithms, exponentials and powers; the greatest and the least.

The engine's transcendental functions are not correctly rounded, but close: their
intervals are computed in exact arithmetic and widened outwards by 2**-40 of
their size, millions of times the error of any mathematical library.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from discreet.exact.balls import exp_bounds, log_bounds, sqrt_bounds
from discreet.question.domain import Domain, Kind, Value, to_double
from discreet.question.functions import nodes
from discreet.question.functions.declaration import (
    NUMBER,
    Domains,
    Function,
    Nodes,
    Plain,
    as_kind,
    cast_to,
    check_kinds,
    common_kind,
    declare,
    refuse_kinds,
    single,
    strict,
    to_one_kind,
)
from discreet.question.functions.nodes import Node

_SLACK = Fraction(1, 2**40)
_MOST_EXPONENT = 709  # e**710 is not a double
_TINY = Fraction(1, 2**1000)

Bound = Fraction | None


def _not_listable(_: Value) -> bool:
    """The engine's last bit is its own: results are bounded, never listed."""
    return False


def _outwards(low: Bound, high: Bound) -> tuple[Bound, Bound]:
    """Doubles around low ... high, with room for a library's rounding error."""
    down = None if low is None else to_double(low - abs(low) * _SLACK - _TINY)
    up = None if high is None else to_double(high + abs(high) * _SLACK + _TINY)
    return down, up


def _root(a: Domain) -> tuple[Bound, Bound, bool]:
    low = Fraction(0) if a.low is None or a.low <= 0 else sqrt_bounds(a.low)[0]
    high = None if a.high is None else sqrt_bounds(max(a.high, Fraction(0)))[1]
    return low, high, a.low is None or a.low < 0


def _logarithm(a: Domain) -> tuple[Bound, Bound, bool]:
    # The least positive double is 2**-1074, the greatest under 2**1024: ln is within ±745.
    low = Fraction(-745) if a.low is None or a.low <= 0 else log_bounds(a.low)[0]
    high = Fraction(710) if a.high is None else Fraction(-745)
    if a.high is not None and a.high > 0:
        high = log_bounds(a.high)[1]
    return low, high, a.low is None or a.low <= 0


def _exponential(a: Domain) -> tuple[Bound, Bound, bool]:
    low = Fraction(0)
    if a.low is not None and -_MOST_EXPONENT <= a.low <= _MOST_EXPONENT:
        low = exp_bounds(a.low)[0]
    if a.high is None or a.high > _MOST_EXPONENT:
        return low, None, True
    return low, exp_bounds(max(a.high, Fraction(-_MOST_EXPONENT)))[1], False


def _declare(
    name: str,
    meaning: str,
    interval: Callable[[Domain], tuple[Bound, Bound, bool]],
    evaluate: Callable[[float], float],
    scale: Callable[[Bound], Bound] = lambda b: b,
) -> None:
    usage = f"{name.upper()}(a)"

    def rule(domains: Domains) -> tuple[Domain, bool]:
        check_kinds(domains, usage, NUMBER)
        a = as_kind(domains[0], Kind.DECIMAL)
        low, high, fails = interval(a)
        low, high = _outwards(scale(low), scale(high))
        return Domain(Kind.DECIMAL, low, high, a.nullable or fails), fails

    def render(arguments: Nodes, domains: Domains) -> Node:
        node = nodes.call(name.upper(), cast_to(arguments[0], domains[0], Kind.DECIMAL))
        return nodes.finite(node) if rule(domains)[1] else node

    declare(
        Function(
            name,
            usage,
            meaning,
            lambda d: rule(d)[0],
            render,
            strict(lambda a: evaluate(float(a))),
            _not_listable,
        )
    )


def _per(base: int) -> Callable[[Bound], Bound]:
    """Logarithms to another base: divided by ln(base), whose own error is far below the slack."""
    unit = log_bounds(Fraction(base))[0]
    return lambda bound: None if bound is None else bound / unit


_declare("sqrt", "square root; NULL below 0", _root, math.sqrt)
_declare("ln", "natural logarithm; NULL unless a is above 0", _logarithm, math.log)
_declare(
    "log10", "logarithm to base 10; NULL unless a is above 0", _logarithm, math.log10, _per(10)
)
_declare("log2", "logarithm to base 2; NULL unless a is above 0", _logarithm, math.log2, _per(2))
_declare("exp", "e to the power of a; NULL where it is not a finite double", _exponential, math.exp)


# --- powers --------------------------------------------------------------------------------

_POWER = "POWER(a, b)"


def _size_to_the(a: Domain, b: Domain) -> Bound:
    """A bound of |a|**b, if there is one: b ln|a| is largest at a corner."""
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return None
    most = max(abs(a.low), abs(a.high))
    least = Fraction(0) if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high))
    if least == 0 and b.low < 0:
        return None
    found = [Fraction(1)] if least == 0 or b.low <= 0 <= b.high else []
    for base in (least, most):
        for power in (b.low, b.high):
            if base > 0:
                exponent = power * log_bounds(base)[1 if power >= 0 else 0]
                if exponent > _MOST_EXPONENT:
                    return None
                found.append(exp_bounds(max(exponent, Fraction(-_MOST_EXPONENT)))[1])
            elif power > 0:
                found.append(Fraction(0))
    return max(found)


def _power_rule(domains: Domains) -> tuple[Domain, bool]:
    check_kinds(domains, _POWER, NUMBER, NUMBER)
    whole = single(domains[1])
    a, b = (as_kind(d, Kind.DECIMAL) for d in domains)
    most = _size_to_the(a, b)
    positive = a.low is not None and a.low >= 0
    even = whole is not None and not isinstance(whole, str) and Fraction(whole) % 2 == 0  # type: ignore[arg-type]
    low = Fraction(0) if positive or even else None if most is None else -most
    to_whole = whole is not None and Fraction(whole).denominator == 1  # type: ignore[arg-type]
    fails = most is None or not (positive or to_whole)
    down, up = _outwards(low, most)
    if positive or even:
        down = Fraction(0)
    nullable = a.nullable or b.nullable or fails
    return Domain(Kind.DECIMAL, down, up, nullable), fails


def _power_render(arguments: Nodes, domains: Domains) -> Node:
    a, b = (cast_to(n, d, Kind.DECIMAL) for n, d in zip(arguments, domains, strict=True))
    node = nodes.call("POW", a, b)
    return nodes.finite(node) if _power_rule(domains)[1] else node


def _power(a: Plain, b: Plain) -> Plain:
    return math.pow(float(a), float(b))  # raises on a negative base or a zero one: NULL


declare(
    Function(
        "power",
        _POWER,
        "a to the power of b; NULL where it is not a finite real number",
        lambda domains: _power_rule(domains)[0],
        _power_render,
        strict(_power),
        _not_listable,
    )
)


# --- the greatest and the least ------------------------------------------------------------


def _extreme(name: str, meaning: str, *, greatest: bool) -> None:
    usage = f"{name.upper()}(a, b, ...)"
    pick = max if greatest else min

    def rule(domains: Domains) -> Domain:
        if not domains:
            refuse_kinds(usage, domains)
        kind = common_kind(domains, usage)
        same = [as_kind(d, kind) for d in domains]
        nullable = any(d.nullable for d in domains)
        if any(d.is_null for d in domains):
            return Domain(kind, nullable=True)
        lows, highs = [d.low for d in same], [d.high for d in same]
        sure, loose = (lows, highs) if greatest else (highs, lows)
        known = [end for end in sure if end is not None]
        near = pick(known) if known else None
        far = None if None in loose else pick(end for end in loose if end is not None)
        low, high = (near, far) if greatest else (far, near)
        return Domain(kind, low, high, nullable)

    def render(arguments: Nodes, domains: Domains) -> Node:
        kind = rule(domains).kind
        same = [cast_to(n, d, kind) for n, d in zip(arguments, domains, strict=True)]
        node = nodes.call(name.upper(), *same)
        checks = [
            nodes.present(n.copy()) for n, d in zip(same, domains, strict=True) if d.nullable
        ]  # the engine's own function skips NULL, which would turn NULL into a bound
        return nodes.case((exp.and_(*checks), node)) if checks else node

    def evaluate(*values: Plain) -> Plain:
        return pick(to_one_kind(*values))

    declare(Function(name, usage, meaning, rule, render, strict(evaluate)))


_extreme("greatest", "the greatest of the values; NULL if any is NULL", greatest=True)
_extreme("least", "the least of the values; NULL if any is NULL", greatest=False)
