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

from discreet.question.blocks.evaluate import (
    Columns,
    Known,
    Mask,
    evaluate_on_blocks,
    find_nulls,
    memoize,
)
from discreet.question.expressions import Call, Expression


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Whether a condition may be true, may be false, may be NULL, on each block."""

    true: Mask
    false: Mask
    null: Mask


def possible_outcomes(condition: Expression, columns: Columns, dimensions: int) -> Outcomes:
    """How ``condition`` may come out on a row of a unit of each block."""
    match condition:
        case Call(function="and", arguments=parts):
            return reduce(_and, (possible_outcomes(part, columns, dimensions) for part in parts))
        case Call(function="or", arguments=parts):
            return reduce(_or, (possible_outcomes(part, columns, dimensions) for part in parts))
        case Call(function="not", arguments=(part,)):
            return _not(possible_outcomes(part, columns, dimensions))
        case Call(function="is_true", arguments=(part,)):
            found = possible_outcomes(part, columns, dimensions)
            return Outcomes(found.true, found.false | found.null, np.zeros_like(found.null))
    value = evaluate_on_blocks(condition, columns, dimensions)
    return _anything(dimensions) if value is None else _of(value)


@memoize
def _of(value: Known) -> Outcomes:
    null = find_nulls(value)
    true = np.equal(value.values, True).astype(bool)
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
