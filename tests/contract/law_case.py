"""What a mechanism hands to the audit of exact laws.

``numeric_cases.py`` and ``selection_cases.py`` each list their mechanisms as
``CASES``; ``test_mechanism_laws.py`` puts every case of both through the same checks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from hypothesis.strategies import SearchStrategy


class Pair(NamedTuple):
    """The exact laws of one mechanism at two neighbouring inputs, and the loss it claims."""

    first: Any
    second: Any
    loss: Any


@dataclass(frozen=True)
class LawCase:
    """One mechanism: random neighbouring inputs, and the pair that should be the worst.

    ``tightness`` is the share of the claimed epsilon which the worst pair must
    reach (not too much noise); ``None`` means that it is only reported.
    """

    name: str
    pairs: SearchStrategy[Pair]
    worst: Callable[[], Pair]
    tightness: Fraction | None = None

    def __str__(self) -> str:
        return self.name
