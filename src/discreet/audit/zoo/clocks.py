"""Answers that tell nothing, and take longer for one of the neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from discreet.accounting.loss import Loss
from discreet.audit.zoo.animal import CHANGED, Animal, Check
from discreet.mechanisms import Laplace

EPSILON = Fraction(1, 2)
_COUNT = Laplace(sensitivity=1, epsilon=EPSILON)
_ROWS = list(range(400))


def early_exit(rows: Sequence[int]) -> Any:
    """Stops at the first row that matches: at once if the person is there."""
    found = 0
    for row in rows:
        if row == -1:
            found = 1
            break
    return _COUNT.release(found)


def whole_scan(rows: Sequence[int]) -> Any:
    """Looks at every row, whatever the rows before it said."""
    found = 0
    for row in rows:
        found |= row == -1
    return _COUNT.release(int(found))


ANIMALS = (
    Animal(
        "stops when it has seen enough",
        "clocks",
        "a scan that ends at the first match is quicker when the person is there",
        "Haeberlen, Pierce, Narayan (2011), timing; Jin et al. (2022)",
        Check.TIMING,
        Loss.pure(EPSILON),
        (_ROWS, [-1, *_ROWS[1:]]),
        early_exit,
        whole_scan,
        relation=CHANGED,
    ),
)

__all__ = ["ANIMALS"]
