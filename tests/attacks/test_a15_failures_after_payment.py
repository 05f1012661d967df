"""A question that is paid for and then cannot be shown, or that fails instead of being refused.

What is not a refusal is a bug: it takes a price and gives nothing, or it tells by its own words.
Found by splicing parts of golden questions into each other and asking for every pair of
aggregates one after the other.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import product

import pytest
from golden_cases import SCHEMA
from test_known import clinic

from discreet.errors import QuestionRefusal
from discreet.question.sql import parse_statement

AGGREGATES = (
    "SUM(cost) AS a",
    "AVG(cost) AS a",
    "SUM(cost) AS a, COUNT(*) AS n",
    "SUM(cost) AS a, SUM(age) AS b",
    "VARIANCE(cost) AS a",
    "COUNT(cost) AS a",
    "SUM(cost) / COUNT(*) AS a",
)


def write(aggregate: str, key: str) -> str:
    text = f"SELECT {f'{key} AS k, ' if key else ''}{aggregate} FROM visits"
    return f"{text} GROUP BY 1" if key else text


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_what_is_combined_with_what_was_known_can_be_shown(aggregate: str) -> None:
    """Sums of decimals, measured anew and combined with what was known, had no margin at all."""
    with clinic() as curator:
        for number, earlier in enumerate(AGGREGATES):
            curator.account = curator.ledger.account(
                f"known {number}", schema=curator.schema, budget=curator.budget
            )
            curator.ask(write(earlier, "city"), epsilon=2)
            answer = curator.ask(write(aggregate, ""), epsilon=3)
            assert str(answer)
            answer.accuracy("0.5")
            answer.to_json()


def test_the_margin_of_a_combined_sum_is_not_made_of_rounding() -> None:
    """Room is kept for rounding, and the noise is still most of it."""
    with clinic() as curator:
        alone = curator.ask("SELECT SUM(cost) AS a FROM visits", epsilon=3)
        (before, _), *_ = alone.accuracy("0.95")["a"]
        curator.ask("SELECT city, AVG(cost) AS a FROM visits GROUP BY city", epsilon=3, fresh=True)
        (after, _), *_ = curator.ask("SELECT SUM(cost) AS a FROM visits", epsilon=5).accuracy()["a"]
        assert 0 < after < before


CONSTANTS = ("65", "6.5", "1e5", "-3", "TRUE", "NULL", "'65'", "'abc'", "''", "'2024-02-30'")
KINDS = ("DATE", "TIMESTAMP", "TIME", "TIMESTAMPTZ")
MOVED = ("", " + INTERVAL '3' MONTH", " - INTERVAL 1 DAY", " + 3")


@pytest.mark.parametrize("constant", CONSTANTS)
def test_a_constant_that_is_no_time_is_a_refusal_at_most(constant: str) -> None:
    """CAST(65 AS DATE) + INTERVAL '3' MONTH ended in a ValueError."""
    for kind, moved in product(KINDS, MOVED):
        for condition in (
            f"day < CAST({constant} AS {kind}){moved}",
            f"day IN (CAST({constant} AS {kind}){moved})",
            f"DATE_TRUNC('month', CAST({constant} AS {kind})){moved} = day",
            f"{kind} {constant}{moved} > day",
        ):
            with suppress(QuestionRefusal):
                parse_statement(f"SELECT COUNT(*) FROM visits WHERE {condition}", SCHEMA)
