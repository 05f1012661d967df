"""Groups: which of them are public, known without looking at anybody's row.

A key whose domain lists its values has public groups: all of them are in the
answer, also the empty ones, so that *which groups appear* tells nothing.  Any
other key has private groups, and a group appears only if enough people are in
it (a threshold, paid for with delta).

Listed are: declared values, and whole numbers and dates within bounds, if there
are at most ``MOST_VALUES`` of them, both also through expressions; booleans;
parts and truncations of bounded dates; CASE over constants.  A key that may be NULL has a
NULL group, last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from discreet.errors import QuestionRefusal
from discreet.question.domain import LISTED_MOST, Domain, Value
from discreet.question.expressions import Expression
from discreet.question.functions import domain_of
from discreet.question.question import Key

MOST_VALUES = LISTED_MOST
"""A bounded key with more values than this, none of them declared, has private groups."""

MOST_GROUPS = 1_000_000
"""How many combinations of public keys one answer may list."""


def public_values(
    expression: Expression, columns: Mapping[str, Domain]
) -> tuple[Value | None, ...] | None:
    """Every group of the key, in output order; None if the groups are private."""
    domain = domain_of(expression, columns)
    values = domain.listed(MOST_VALUES)
    if values is None:
        return None
    return (*values, None) if domain.nullable or domain.is_null else values


def check(keys: Sequence[Key]) -> None:
    """Refuse more public groups than an answer can list."""
    count = prod(len(key.values) for key in keys if key.values is not None)
    if count > MOST_GROUPS:
        raise QuestionRefusal(
            "Q27",
            f"the keys have {count} combinations, more than {MOST_GROUPS}.",
            why="every public group is answered, also the empty ones; so many answers would be "
            "noise for the most part.",
            fix="group by fewer keys, or narrow them: WHERE city IN ('a', 'b').",
        )
