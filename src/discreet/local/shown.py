"""Estimates as they are shown: no more digits than the range leaves sure, ends rounded outwards."""

from __future__ import annotations

import math
from fractions import Fraction


def write_range(value: float, low: float, high: float) -> tuple[str, str, str]:
    """A value and the ends of its range, with decimals that show two digits of half the range.

    >>> write_range(12345.678, 11204.2, 13490.1), write_range(49.1634, 41.4211, 56.83)
    (('12,346', '11,204', '13,491'), ('49.2', '41.4', '56.9'))
    >>> write_range(0.03121, 0.02986, 0.03252), write_range(-0.4, 0, 201)
    (('0.0312', '0.0298', '0.0326'), ('0', '0', '201'))
    """
    half = (high - low) / 2
    digits = 0 if half >= 10 or not half else 1 - min(0, math.floor(math.log10(half)))
    steps = [Fraction(number) * 10**digits for number in (value, low, high)]
    found = round(steps[0]), math.floor(steps[1]), math.ceil(steps[2])
    shown, least, most = (f"{one / 10**digits:,.{digits}f}" for one in found)
    return shown, least, most


__all__ = ["write_range"]
