"""Numbers without rounding, rounding on purpose, and the one text of what is hashed.

Every parameter enters as a :class:`fractions.Fraction`.  A float is taken as
its shortest decimal: ``0.1`` means one tenth, as the person who typed it meant,
and not the double 0.1000000000000000055.

Losses round up, accuracies round down; a function here says which in its name.

What is hashed, signed or compared must have one spelling: ``canonical_json``.
"""

from __future__ import annotations

import json
import math
import numbers
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

from discreet.errors import InvalidParameter, quote_value

Exact = int | float | str | Fraction | Decimal
"""What a parameter may be given as."""

_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_RATIO = re.compile(r"[+-]?\d+/0*[1-9]\d*", re.ASCII)
_MOST_DIGITS = 1000
_PROBABILITIES = {"confidence": "0.95", "delta": "1e-9", "power": "0.9"}
"""What a probability of this name may well be; of any other name, a chance of error."""


def fraction(value: Exact, *, name: str = "value", secret: bool = False) -> Fraction:
    """The exact number meant by ``value``; a ``secret`` one is not quoted by the refusal.

    >>> fraction(0.1), fraction("1e-3"), fraction("2/3"), fraction(Decimal("0.25"))
    (Fraction(1, 10), Fraction(1, 1000), Fraction(2, 3), Fraction(1, 4))
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return Fraction(int(value))
    text = _decimal_text(value)
    if len(text) <= _MOST_DIGITS and (_DECIMAL.fullmatch(text) or _RATIO.fullmatch(text)):
        return Fraction(text)
    raise InvalidParameter(
        "P1",
        f"{name} must be a finite number" + ("." if secret else f", got {quote_value(value)}."),
        why="a guarantee is computed from exact numbers, and this is not one.",
        fix=f"write {name} as 0.25, 1/4 or 1e-6, with a point."
        if isinstance(value, str)
        else f"pass {name} as an int, a Fraction, a Decimal or a decimal string such as '0.25'.",
    )


def _decimal_text(value: object) -> str:
    """The digits that a string, a Decimal or a float stands for."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, float):
        return float.__repr__(value)
    # A float of numpy is a Real, and prints its own shortest decimal.
    return str(value) if isinstance(value, Decimal | numbers.Real) else ""


def positive(value: Exact, *, name: str) -> Fraction:
    """``value`` exactly, refused unless greater than zero."""
    number = fraction(value, name=name)
    if number <= 0:
        raise InvalidParameter(
            "P2",
            f"{name} must be greater than 0, got {quote_value(number)}.",
            why="at zero or below, the noise or the guarantee it stands for does not exist.",
            fix=f"pass a positive {name}.",
        )
    return number


def nonnegative(value: Exact, *, name: str, secret: bool = False) -> Fraction:
    """``value`` exactly, refused if less than zero; a ``secret`` one is not quoted."""
    number = fraction(value, name=name, secret=secret)
    if number < 0:
        raise InvalidParameter(
            "P2",
            f"{name} must not be negative" + ("." if secret else f", got {quote_value(number)}."),
            why="a negative amount would cancel what other releases cost.",
            fix=f"pass 0 or a positive {name}.",
        )
    return number


def proportion(value: Exact, *, name: str, closed: bool = False) -> Fraction:
    """``value`` exactly, refused unless strictly between 0 and 1 (``closed`` admits the ends)."""
    number = fraction(value, name=name)
    inside = 0 <= number <= 1 if closed else 0 < number < 1
    if not inside:
        between = "from 0 to 1" if closed else "strictly between 0 and 1"
        raise InvalidParameter(
            "P2",
            f"{name} must be {between}, got {quote_value(number)}.",
            why=f"{name} is a probability.",
            fix=f"pass {name} as a probability such as '{_PROBABILITIES.get(name, '0.05')}'.",
        )
    return number


def failure_share(beta: Exact | None, confidence: Exact | None) -> Fraction:
    """How often a margin may be missed: ``beta``, or what ``confidence`` leaves; one is given.

    >>> failure_share(None, "0.95"), failure_share("0.05", None)
    (Fraction(1, 20), Fraction(1, 20))
    """
    if beta is not None and confidence is None:
        return proportion(beta, name="beta")
    if confidence is not None and beta is None:
        return 1 - proportion(confidence, name="confidence")
    raise InvalidParameter(
        "P4",
        "a margin needs beta or confidence, and not both.",
        why="beta is how often it is missed and confidence how often it holds: taken for each "
        "other, a margin promises next to nothing.",
        fix="pass confidence='0.95', or beta='0.05', which says the same.",
    )


def whole(value: object, *, name: str, least: int = 0) -> int:
    """``value`` as an ``int``, refused unless a whole number of at least ``least``."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= least:
        return int(value)
    raise InvalidParameter(
        "P2",
        f"{name} must be a whole number of at least {least}, got {quote_value(value)}.",
        why="it counts things.",
        fix=f"pass {name} as an int of at least {least}.",
    )


# --- rounding on purpose -------------------------------------------------------------------


def round_up(x: Fraction, unit: Fraction) -> Fraction:
    """The least multiple of ``unit`` > 0 that is at least ``x``.

    >>> round_up(Fraction(7, 10), Fraction(1, 4))
    Fraction(3, 4)
    """
    return math.ceil(x / positive(unit, name="unit")) * unit


def round_down(x: Fraction, unit: Fraction) -> Fraction:
    """The greatest multiple of ``unit`` > 0 that is at most ``x``."""
    return -round_up(-x, unit)


def float_up(x: Fraction) -> float:
    """The least double that is at least ``x``.

    >>> Fraction(float_up(Fraction(1, 10))) >= Fraction(1, 10)
    True
    """
    try:
        nearest = float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.nextafter(math.inf, 0)
    return nearest if Fraction(nearest) >= x else math.nextafter(nearest, math.inf)


def float_down(x: Fraction) -> float:
    """The greatest double that is at most ``x``."""
    return 0.0 - float_up(-x)


def decimal_up(x: Fraction, digits: int = 6) -> str:
    """The least decimal of ``digits`` significant digits that is at least ``x``.

    >>> decimal_up(Fraction(1, 3), 4), decimal_up(Fraction(1, 4)), decimal_up(Fraction(0))
    ('0.3334', '0.25', '0')
    """
    if x == 0:
        return "0"
    power = _magnitude(abs(x)) - whole(digits, name="digits", least=1) + 1
    mantissa = math.ceil(x / Fraction(10) ** power)
    while mantissa % 10 == 0:
        mantissa, power = mantissa // 10, power + 1
    # Built from its digits: arithmetic on Decimals would round to the caller's context.
    exact = Decimal((int(x < 0), tuple(map(int, str(abs(mantissa)))), power))
    text = f"{exact:f}"
    return text if len(text) <= digits + 8 else f"{exact:e}"


def _magnitude(x: Fraction) -> int:
    """The m with 10**m <= x < 10**(m + 1)."""
    bits = x.numerator.bit_length() - x.denominator.bit_length()
    m = math.floor(bits * math.log10(2)) - 1
    while Fraction(10) ** (m + 1) <= x:
        m += 1
    return m


def canonical_json(value: Any, *, ascii_only: bool = False) -> str:
    """``value`` as JSON with its keys sorted, no spaces, and no number that JSON does not have.

    The same value has the same bytes for ever: they are in ledgers.  ``ascii_only``
    escapes every other character, as the keys of replays always did.

    >>> canonical_json({"b": 7, "ä": [3, None]})
    '{"b":7,"ä":[3,null]}'
    >>> print(canonical_json({"b": 7, "ä": [3, None]}, ascii_only=True))
    {"b":7,"\\u00e4":[3,null]}
    """
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=ascii_only, allow_nan=False
    )


__all__ = ["canonical_json"]
