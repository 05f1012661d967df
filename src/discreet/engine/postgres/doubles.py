"""Arithmetic of doubles in PostgreSQL that no value can stop.

PostgreSQL raises where IEEE 754 gives an infinity, and where a product or quotient of two numbers
that are not zero is rounded to zero: one person's 5e-324 would fail the question of everybody.  So
the range is looked at first.  Every check is itself within range: numbers are moved by powers of
two, which is exact, before they are multiplied or divided; a result that would be infinite is one,
and one that would be zero is zero.  Of a constant the ends are found beforehand, to the last bit.
"""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Callable

from discreet.exact.search import greatest_integer

_INFINITY = "'Infinity'::float8"


def _double(value: float) -> str:
    return f"'{value!r}'::float8"


_MOST = _double(sys.float_info.max)


def _power(k: int) -> str:
    return _double(2.0**k)


def _find_last(holds: Callable[[float], bool]) -> float:
    """The greatest finite double from zero on of which something holds that holds of all below."""
    # Doubles are in the order of their bits, read as integers; after the last is infinity.
    found = greatest_integer(
        lambda bits: holds(_read_bits(bits)), holds_at=0, fails_at=_INFINITE_BITS
    )
    return _read_bits(found)


def _read_bits(bits: int) -> float:
    found: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return found


_INFINITE_BITS: int = struct.unpack("<q", struct.pack("<d", math.inf))[0]


def write_scaled(value: str, sign: str, constant: float) -> str:
    """A value times a constant, or divided by one that is not zero."""
    direct = f"{value} {sign} {_double(constant)}"

    def compute(one: float) -> float:
        return one * constant if sign == "*" else one / constant

    if constant == 0 or not math.isfinite(constant) or abs(constant) == 1:
        return direct
    if abs(compute(1.0)) > 1:
        most = _find_last(lambda one: math.isfinite(compute(one)))
        way = "" if constant > 0 else "-"
        return (
            f"CASE WHEN ABS({value}) <= {_double(most)} THEN {direct} "
            f"ELSE {value} * '{way}Infinity'::float8 END"
        )
    least = _find_last(lambda one: compute(one) == 0)
    return f"CASE WHEN ABS({value}) <= {_double(least)} THEN {_double(0.0)} ELSE {direct} END"


def write_sum(a: str, b: str, sign: str) -> str:
    """A sum or difference."""

    def half(one: str) -> str:
        return f"CASE WHEN ABS({one}) < 1 THEN {_double(0.0)} ELSE {one} * {_double(0.5)} END"

    direct = f"{a} {sign} {b}"
    return (
        f"CASE WHEN ABS({a}) < {_power(1022)} AND ABS({b}) < {_power(1022)} THEN {direct} "
        f"WHEN ABS({a}) > {_MOST} OR ABS({b}) > {_MOST} THEN {direct} "
        f"WHEN ABS(({half(a)}) {sign} ({half(b)})) >= {_power(1023)} THEN {a} * {_INFINITY} "
        f"ELSE {direct} END"
    )


def _sign_infinity(a: str, b: str) -> str:
    return f"CASE WHEN ({a} > 0) = ({b} > 0) THEN {_INFINITY} ELSE -{_INFINITY} END"


def write_product(a: str, b: str) -> str:
    """A product of two values."""
    x, y, direct = f"ABS({a})", f"ABS({b})", f"{a} * {b}"
    least, greatest = f"LEAST({x}, {y})", f"GREATEST({x}, {y})"
    large = f"({x} * {_power(-512)}) * ({y} * {_power(-512)}) >= 1"
    small = f"({least} * {_power(1000)}) * ({greatest} * {_power(500)}) <= {_power(425)}"
    return (
        f"CASE WHEN {a} IS NULL OR {b} IS NULL THEN NULL "  # whom LEAST passes over
        f"WHEN {a} = 0 OR {b} = 0 OR {x} > {_MOST} OR {y} > {_MOST} THEN {direct} "
        f"WHEN {x} >= 1 AND {y} >= 1 "
        f"THEN CASE WHEN {large} THEN {_sign_infinity(a, b)} ELSE {direct} END "
        f"WHEN {x} >= 1 OR {y} >= 1 OR {least} >= {_power(-500)} THEN {direct} "
        f"WHEN {small} THEN {_double(0.0)} ELSE {direct} END"
    )


def write_quotient(a: str, b: str) -> str:
    """A quotient of two values; NULL if the second is zero."""
    x, y, direct = f"ABS({a})", f"ABS({b})", f"{a} / {b}"

    def check(up: int, down: int, end: str, result: str) -> str:
        moved = f"({x} * {_power(up)}) / ({y} * {_power(down)}) {end}"
        return f"CASE WHEN {moved} THEN {result} ELSE {direct} END"

    infinite, zero = _sign_infinity(a, b), _double(0.0)
    large, small = f">= {_power(-276)}", f"<= {_power(225)}"
    return (
        f"CASE WHEN {b} = 0 THEN NULL "
        f"WHEN {a} = 0 OR {x} > {_MOST} OR {y} > {_MOST} THEN {direct} "
        f"WHEN {y} < 1 THEN CASE "
        f"WHEN {x} < {_power(-60)} OR ({x} < {_power(400)} AND {y} >= {_power(-600)}) "
        f"THEN {direct} "
        f"WHEN {x} >= {_power(400)} THEN {check(-800, 500, large, infinite)} "
        f"ELSE {check(-300, 1000, large, infinite)} END "
        f"WHEN {x} >= {_power(-50)} OR ({x} >= {_power(-600)} AND {y} < {_power(400)}) "
        f"THEN {direct} "
        f"WHEN {y} >= {_power(400)} THEN {check(800, -500, small, zero)} "
        f"ELSE {check(1000, -300, small, zero)} END"
    )


__all__ = ["write_product", "write_quotient", "write_scaled", "write_sum"]
