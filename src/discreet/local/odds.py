"""The odds e**epsilon as a fraction, rounded down, so that every probability is rational.

A randomizer that reports at the odds r = a / 2**32 <= e**epsilon has a pure loss of
ln r <= epsilon; it is drawn with whole numbers alone, so that a browser can draw it
from the same bytes.  The rounding loses less than 1 % of epsilon.
"""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.errors import InvalidParameter
from discreet.exact.balls import exp_down, sqrt_down
from discreet.exact.numbers import Exact, positive, whole

UNIT = 2**32
"""The denominator of the odds."""

LEAST_EPSILON = Fraction(1, 2**24)
MOST_EPSILON = Fraction(20)
MOST_CATEGORIES = 2**40
"""What hashing can tell apart; encodings of one number for each answer allow fewer."""


def check_epsilon(epsilon: Exact) -> Fraction:
    """``epsilon`` exactly, refused unless the odds of 32 binary places can express it."""
    price = positive(epsilon, name="epsilon")
    if not LEAST_EPSILON <= price <= MOST_EPSILON:
        raise InvalidParameter(
            "P2",
            f"epsilon must lie between 2**-24 and 20, got {price}.",
            why="below, reports say nothing; above, a report is the answer and protects nobody.",
            fix="pass an epsilon such as '1/2' or 2.",
        )
    return price


def odds(epsilon: Fraction) -> Fraction:
    """The greatest multiple of 2**-32 that is at most e**epsilon.

    >>> odds(Fraction(1)) * UNIT, float(odds(Fraction(1)))
    (Fraction(11674931554, 1), 2.7182818283326924)
    """
    return Fraction(math.floor(exp_down(epsilon, bits=96) * UNIT), UNIT)


def root_odds(epsilon: Fraction) -> Fraction:
    """A multiple of 2**-32 whose square is at most ``odds(epsilon)``."""
    return Fraction(math.floor(sqrt_down(odds(epsilon), bits=96) * UNIT), UNIT)


def check_categories(categories: object, *, most: int) -> int:
    """How many answers there are, refused unless 2 ... ``most``."""
    count = whole(categories, name="categories", least=2)
    if count > most:
        raise InvalidParameter(
            "P2",
            f"categories must be at most {most}, got {count}.",
            why="a report that lists every answer would not fit in the memory of a telephone.",
            fix="use LocalHashing, whose reports do not grow with the answers.",
        )
    return count
