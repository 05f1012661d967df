"""Dividing one spend among the measurements of a statement so that errors are least.

Let a_i be the size of measurement i's noise at a loss of one, in its own unit
(persons, say).  With pure losses e_i that add up to e, the sum of squared errors
of (a_i / e_i)**2 is least for e_i proportional to a_i**(2/3); with concentrated
losses, the sum of a_i**2 / r_i is least for r_i proportional to a_i (Lagrange).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from discreet.exact.numbers import round_down

_PART = Fraction(1, 2**16)


def pure_shares(sizes: Sequence[float]) -> list[Fraction]:
    """Shares of epsilon for noises of these sizes; they add up to at most one."""
    return _shares([size ** (2 / 3) for size in sizes])


def concentrated_shares(sizes: Sequence[float]) -> list[Fraction]:
    """Shares of rho for noises of these sizes; they add up to at most one."""
    return _shares(list(sizes))


def _shares(weights: Sequence[float]) -> list[Fraction]:
    if len(weights) == 1:
        return [Fraction(1)]
    total = sum(weights)
    # Rounded down, so that the parts never add up to more than was offered; never to nothing.
    rounded = [max(round_down(Fraction(weight / total), _PART), _PART) for weight in weights]
    surplus = sum(rounded) - 1
    if surplus > 0:
        largest = max(range(len(rounded)), key=rounded.__getitem__)
        rounded[largest] -= surplus
    return rounded
