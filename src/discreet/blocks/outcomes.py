"""Conditions of which only the blocks are known: which outcomes are possible on each block.

Three-valued logic, outcome by outcome: AND may be true where both parts may be,
false where either may be.  A part that is not understood may come out in any
way.  What is possible may be said of more blocks than it is true of, never of
fewer (Lemma 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

from discreet.blocks.known import Columns, Known, known
from discreet.expressions import Call, Expression

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Whether a condition may be true, may be false, may be NULL, on each block."""

    true: Mask
    false: Mask
    null: Mask


def outcomes(condition: Expression, columns: Columns, dimensions: int) -> Outcomes:
    """How ``condition`` may come out on a row of a unit of each block."""
    match condition:
        case Call(function="and", arguments=parts):
            return reduce(_and, (outcomes(part, columns, dimensions) for part in parts))
        case Call(function="or", arguments=parts):
            return reduce(_or, (outcomes(part, columns, dimensions) for part in parts))
        case Call(function="not", arguments=(part,)):
            return _not(outcomes(part, columns, dimensions))
        case Call(function="is_true", arguments=(part,)):
            found = outcomes(part, columns, dimensions)
            return Outcomes(found.true, found.false | found.null, np.zeros_like(found.null))
    value = known(condition, columns, dimensions)
    return _anything(dimensions) if value is None else _of(value)


def _of(value: Known) -> Outcomes:
    shape, held = value.values.shape, value.values.ravel().tolist()
    true = np.array([v is True for v in held], dtype=bool).reshape(shape)
    null = np.array([v is None for v in held], dtype=bool).reshape(shape)
    return Outcomes(true, ~true & ~null, null)


def _anything(dimensions: int) -> Outcomes:
    possible = np.ones((1,) * dimensions, dtype=bool)
    return Outcomes(possible, possible, possible)


def _not(a: Outcomes) -> Outcomes:
    return Outcomes(a.false, a.true, a.null)


def _and(a: Outcomes, b: Outcomes) -> Outcomes:
    null = (a.null & (b.null | b.true)) | (a.true & b.null)
    return Outcomes(a.true & b.true, a.false | b.false, null)


def _or(a: Outcomes, b: Outcomes) -> Outcomes:
    return _not(_and(_not(a), _not(b)))
