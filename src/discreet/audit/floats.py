"""Two looks at the last bits: on which grid outputs lie, and which doubles can come out at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.audit.game import Game, game
from discreet.audit.promise import Promised
from discreet.audit.verdict import Verdict
from discreet.exact.numbers import Exact as Number
from discreet.exact.numbers import positive

_MANTISSA = 53
_NEAR = 40  # candidates on either side of where the inverse of the logarithm points


@dataclass(frozen=True, slots=True)
class GridFinding:
    """The coarsest power of two of which all outputs are multiples, as its exponent.

    Of so many ``outputs``, ``off_grid`` are not on one grid, and ``reason`` says why not, empty
    where all are; ``exponent`` is None where every output is 0.
    """

    outputs: int
    exponent: int | None
    off_grid: int
    reason: str

    @property
    def verdict(self) -> Verdict:
        """Broken if the last bits depend on what was released."""
        return Verdict.BROKEN if self.reason else Verdict.CONSISTENT

    @property
    def alarm(self) -> bool:
        """Whether the outputs are on no public grid."""
        return bool(self.reason)

    @property
    def sentence(self) -> str:
        """The conclusion in words."""
        if self.reason:
            return f"{self.outputs} outputs: {self.reason}."
        grid = "0" if self.exponent is None else f"2^{self.exponent}"
        return f"all of {self.outputs} outputs are multiples of {grid}, large and small alike."

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain JSON."""
        return {
            "kind": "grid",
            "outputs": self.outputs,
            "exponent": self.exponent,
            "off_grid": self.off_grid,
            "verdict": self.verdict.value,
            "sentence": self.sentence,
        }

    def picture(self) -> str:
        """Nothing to draw."""
        return ""


def grid(outputs: Any, neighbour_outputs: Any = None, *, step: Number | None = None) -> GridFinding:
    """Whether all ``outputs`` are multiples of one public grid.

    ``neighbour_outputs`` are those on a neighbour, which must lie on the same grid.

    With a ``step``, of that one.  Without, the finest bit that any output uses is
    taken for the grid, and an output so large that a double of its size cannot
    use that bit is the proof that there is none: 1 + x is rounded where x was
    not, so the last bits tell what the noise was added to (Haney et al., 2022).

    >>> grid([0.75, -1048576.5, 3.0]).exponent
    -2
    >>> grid([1e-9, 3.2, 0.1]).alarm
    True
    """
    doubles = np.concatenate([_doubles(outputs), _doubles(neighbour_outputs)])
    finite = doubles[np.isfinite(doubles) & (doubles != 0)]
    if not len(finite):
        return GridFinding(len(doubles), None, 0, "")
    lowest = lowest_bits(finite)
    exponent = int(lowest.min())
    if step is not None:
        unit = positive(step, name="step")
        off = sum((Fraction(x) / unit).denominator != 1 for x in finite.tolist())
        reason = f"{off} are no multiple of {unit}" if off else ""
        return GridFinding(len(doubles), exponent, off, reason)
    ulp = np.frexp(finite)[1] - _MANTISSA  # the finest bit that a double of this size has
    off = int((ulp > exponent).sum())
    reason = (
        f"some use the bit 2^{exponent}, and {off} are too large for a double to have that bit"
        if off
        else ""
    )
    return GridFinding(len(doubles), exponent, off, reason)


def _doubles(outputs: Any) -> NDArray[np.float64]:
    if outputs is None:
        return np.empty(0)
    return np.asarray(outputs, dtype=np.float64).ravel()


def lowest_bits(doubles: NDArray[np.float64]) -> NDArray[np.int64]:
    """The exponent of the lowest bit that is set in each double other than 0.

    >>> lowest_bits(np.array([12.0, 0.375])).tolist()
    [2, -3]
    """
    mantissa, exponent = np.frexp(doubles)
    digits = np.abs(np.ldexp(mantissa, _MANTISSA)).astype(np.int64)
    trailing = np.log2((digits & -digits).astype(np.float64)).astype(np.int64)
    found: NDArray[np.int64] = exponent.astype(np.int64) - _MANTISSA + trailing
    return found


# --- Mironov -----------------------------------------------------------------------------------


def mironov(
    target: Callable[..., Any],
    x: float,
    y: float,
    *,
    scale: float,
    draws: int = 1000,
    promised: Promised,
    confidence: Number = "0.999",
    name: str = "Mironov's attack",
) -> Game:
    """Mironov (2012): could this very double have come out around x, or only around y?

    ``target`` is asked ``draws`` times around ``x`` and around ``y``, and adds noise of ``scale``;
    ``promised`` is what it says it loses, ``confidence`` how sure the verdict is, ``name`` what it
    is called.

    ``target(value, size)`` adds noise to ``value``.  Textbook Laplace noise is
    b ln(k / 2**53) for a whole number k, rounded as a double; most doubles are no
    such number, and which ones are depends on what the noise was added to.  The
    adversary's score is whether the output is reachable from x.
    """

    def adversary(outputs: Any) -> NDArray[np.float64]:
        return np.array([float(reachable(float(output), x, scale)) for output in outputs])

    return game(
        target,
        x,
        y,
        adversary,
        draws,
        promised=promised,
        confidence=confidence,
        batch=True,
        name=name,
    )


def reachable(output: float, center: float, scale: float) -> bool:
    """Whether ``output`` is ``center`` plus Laplace noise from a logarithm of k / 2**53."""
    noise = output - center
    share = math.exp(-abs(noise) / scale) * 2.0**_MANTISSA
    if not math.isfinite(share) or share < 1:
        return True  # so far out that every double nearby is as good
    near = round(share)
    sign = -1.0 if noise < 0 else 1.0
    for k in _around(near):
        size = -scale * math.log(k / 2.0**_MANTISSA)
        if center + sign * size == output:
            return True
    return False


def _around(near: int) -> Sequence[int]:
    return range(max(near - _NEAR, 1), min(near + _NEAR, 2**_MANTISSA) + 1)


__all__ = ["GridFinding", "grid", "lowest_bits", "mironov", "reachable"]
