"""Amounts that only somebody who attacks would offer: as text, as numbers, as other things."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

TEXTS: tuple[str, ...] = (
    "", " ", "0", "-0", "0.0", "1", " 1 ", "+1", "-1", "1/3", "1/0", "0/1", "-1/3", "1/-3", "1/3/5",
    "0.3", ".3", "3.", "1e-9", "1e-20", "1e-24", "1e-300", "1e-400", "1e-4000", "1e400", "1e4000",
    "1e999999999", "1e-999999999", "1E+5", "1e", "e1", "1e1e1", "nan", "NaN", "-nan", "snan", "inf",
    "-inf", "Infinity", "∞", "½", "٣", "０.５", "1_000", "0x10", "0b1", "1,5", "1 000",
    "1\u00a0000", "−1", "1e−9", "one", "None", "null", "true", "1j", "1+1", "0.95",
    "0.9999999999999999999999", "1-1e-9", "95%", "1;", "1--", "'1'", '"1"', "\x00", "1\x00", "1\n",
    "\u202e1", "\ud800",
    "9" * 400, "9" * 5000, "0." + "9" * 5000, "0." + "0" * 5000 + "1", "1/" + "9" * 5000,
    "9" * 5000 + "/7", "1025", "1024", "1e6", "1000000001",
)  # fmt: skip
"""What can be typed: at a prompt, into a body, into a file."""

NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 3, 1024, 1025, 10**6, 10**18, 2**63, 2**64, 10**400, -(10**400), 0.0, -0.0, 0.3, 1.5,
    1e-9, 5e-324, 1e-300, 1e308, -1e308, float("nan"), float("inf"), float("-inf"), True, False,
)  # fmt: skip
"""What JSON can hold, and some that it cannot."""

OBJECTS: tuple[Any, ...] = (
    Fraction(1, 3), Fraction(1, 10**400), Fraction(10**400, 3), Fraction(-1, 3), Decimal("0.3"),
    Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("1E+1000000"),
    Decimal("1E-1000000"), np.float64("nan"), np.float32(0.3), np.int64(3), np.bool_(True),
    np.array([0.3]), 1j, b"0.3", bytearray(b"1"), [], [0.3], (), (1, 2), {}, {"n": 1}, {"": "0.3"},
    {"n": "nan"}, {"n": 10**400}, {"nobody": 3}, {3: 3}, {"n": {"n": 3}}, {"n": None}, {None: 1},
    {"n" * 5000: 1}, object(), str, lambda: 1, range(3), iter([1]),
)  # fmt: skip
"""What only Python can pass."""

EVERYTHING = (*TEXTS, *NUMBERS, *OBJECTS)
NAMES = ("epsilon", "rho", "delta", "within", "confidence")
