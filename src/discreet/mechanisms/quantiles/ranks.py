"""Values as counts on a public domain.

Everything here is linear in the number of values plus the number of cells
counted; nothing depends on the values except the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, fraction
from discreet.mechanisms.grid import Grid, Integers

_FINE_BITS = 20
_ROOM_BITS = 61


@dataclass(frozen=True, slots=True, init=False)
class Domain:
    """The multiples of a grid (whole numbers without one) between two public bounds."""

    lower: Fraction
    upper: Fraction
    grid: Grid | None
    least: int
    most: int

    def __init__(self, lower: Exact, upper: Exact, grid: Grid | None) -> None:
        low, high = fraction(lower, name="lower"), fraction(upper, name="upper")
        step = Fraction(1) if grid is None else grid.step
        least, most = math.ceil(low / step), math.floor(high / step)
        if least >= most or max(abs(least), abs(most)) > 2**_ROOM_BITS:
            raise InvalidParameter(
                "P2",
                f"from {low} to {high} there are fewer than two multiples of {step}, or more "
                "than 2**61 on one side of zero.",
                why="the candidates are those multiples, and they must be public.",
                fix="pass lower < upper, or another grid.",
            )
        values = {"lower": low, "upper": high, "grid": grid, "least": least, "most": most}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def size(self) -> int:
        """How many candidates there are."""
        return self.most - self.least + 1

    @property
    def shift(self) -> int:
        """How many bits there is room for below a step, to tell equal values apart."""
        return min(_FINE_BITS, _ROOM_BITS - self.size.bit_length())

    @property
    def fine_size(self) -> int:
        """How many candidates there are when every step is cut into ``2**shift`` positions."""
        return self.size << self.shift

    def steps(self, values: Any) -> Integers:
        """Each value clipped to the domain and rounded down to a step; total.

        Whatever is no number is left out.  Both are decided row by row, so one
        unit's value moves no other's.
        """
        array = values if isinstance(values, np.ndarray) else _array(values)
        if array.ndim != 1 or array.dtype.kind not in "iuf" or array.dtype.itemsize > 8:
            raise InvalidParameter(
                "P6",
                "values must be a list or a one-dimensional array of numbers.",
                why="a quantile is taken of one number for each row.",
                fix="pass values such as [30, 31, 35].",
            )
        exponent = 0 if self.grid is None else self.grid.exponent
        if array.dtype.kind != "f":
            return _whole_steps(array, exponent, self.least, self.most)
        known = array[~np.isnan(array)] if np.isnan(np.min(array, initial=0.0)) else array
        with np.errstate(over="ignore"):
            scaled = known.astype(np.float64, copy=False) * 2.0**-exponent
        floor = np.floor(scaled, out=scaled)
        # The bounds may not be doubles; clip to doubles inside int64, then exactly.
        inside = np.clip(floor, -(2.0**62), 2.0**62, out=floor).astype(np.int64)
        return np.clip(inside, self.least, self.most, out=inside)

    def lift(self, step: int) -> int | Fraction | float:
        """A step as a value: an int without a grid, else a float if one holds it exactly."""
        if self.grid is None:
            return step
        exact = step * self.grid.step
        return float(exact) if Fraction(float(exact)) == exact else exact


class Cells(NamedTuple):
    """Distinct values in increasing order and how many there are of each.

    ``dense`` cells are all whole numbers from the first to the last, some of
    them with a count of zero; otherwise no count is zero.
    """

    at: Integers
    counts: Integers
    dense: bool


def count_cells(steps: Integers, domain: Domain) -> Cells:
    """The values gathered in cells: linear in their number plus the size of the domain.

    A domain not much larger than the number of values is counted through; for a
    larger one the values are sorted, which is then the lesser of the two.
    """
    if domain.size <= 4 * len(steps) + 4096:
        return count_all_cells(steps, domain)
    return count_occupied_cells(steps)


def count_all_cells(steps: Integers, domain: Domain) -> Cells:
    """Every cell of the domain, the empty ones too."""
    counts = np.bincount(steps - domain.least, minlength=domain.size)
    return Cells(np.arange(domain.least, domain.most + 1), counts, dense=True)


def count_occupied_cells(steps: Integers) -> Cells:
    """The occupied cells only."""
    at, counts = np.unique(steps, return_counts=True)
    return Cells(at, counts, dense=False)


def _array(values: Any) -> NDArray[Any]:
    listed = list(values)
    if not listed:
        return np.empty(0, dtype=np.int64)
    if all(type(one) is int for one in listed):
        # Beyond 2**62 every whole number is clipped alike.
        return np.array([min(max(one, -(2**62)), 2**62) for one in listed], dtype=np.int64)
    try:
        return np.array([float(one) for one in listed])
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter(
            "P6",
            "values must be a list or a one-dimensional array of numbers.",
            why="a quantile is taken of one number for each row.",
            fix="pass values such as [30, 31, 35].",
        ) from None


def _whole_steps(array: NDArray[Any], exponent: int, least: int, most: int) -> Integers:
    if array.dtype.kind == "u":
        array = np.minimum(array, np.array(2**63 - 1, dtype=np.uint64))
    whole = array.astype(np.int64, copy=False)
    if exponent > 0:
        coarse: Integers = np.clip(whole >> min(exponent, 63), least, most)
        return coarse
    # Clip before scaling, so that nothing overflows: least and most are within 2**61 steps.
    shift = min(-exponent, 63)
    low, high = -(-least >> shift), most >> shift
    if shift > 61:
        return _far(whole, least, most)
    inside = np.clip(whole, min(low - 1, high), max(high + 1, low))
    fine: Integers = np.clip(inside << shift, least, most)
    return fine


def _far(whole: Integers, least: int, most: int) -> Integers:
    """A step finer than 2**-62: every whole number but 0 is off one end or the other."""
    far: Integers = np.where(whole > 0, most, np.where(whole < 0, least, 0))
    return np.clip(far, least, most)
