"""Answers that tell nothing, and take longer for one of the neighbours."""

from __future__ import annotations

import re
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


def multiplied_first(visits: int) -> Any:
    """Joins one person's visits that match with themselves, twice, and then keeps one of them."""
    made = [(a, b, c) for a in range(visits) for b in range(visits) for c in range(visits)]
    return _COUNT.release(min(len(made), 1))


def bounded_first(visits: int) -> Any:
    """Keeps one visit before anything is made of it."""
    return _COUNT.release(min(visits, 1))


def tried_every_way(note: str) -> Any:
    """Matches a pattern by going back: twice as long for each letter of a text that almost fits."""
    return _COUNT.release(int(_NESTED.search(note) is not None))


def looked_at_once(note: str) -> Any:
    """The same condition, in as many steps for every text of a length."""
    return _COUNT.release(int(note == "a" * (len(note) - 1) + "b"))


_NESTED = re.compile("^(a+)+b$")

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
    Animal(
        "rows multiplied before they are cut",
        "clocks",
        "joined with themselves, the rows of somebody who has the property are k cubed; that one "
        "of them is counted hides the number, not the work",
        "Haeberlen, Pierce, Narayan (2011), timing; joins on the unit of this library",
        Check.TIMING,
        Loss.pure(EPSILON),
        (0, 20),
        multiplied_first,
        bounded_first,
        relation=CHANGED,
    ),
    Animal(
        "a pattern that goes back",
        "clocks",
        "a pattern on one person's text takes steps that double with each letter; nobody else's "
        "text is looked at",
        "Crosby, Wallach (2003), complexity attacks; patterns of this library",
        Check.TIMING,
        Loss.pure(EPSILON),
        ("c" * 14, "a" * 14),
        tried_every_way,
        looked_at_once,
        relation=CHANGED,
    ),
)

__all__ = ["ANIMALS"]
