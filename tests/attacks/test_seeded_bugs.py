"""Bugs on purpose, one for each class of attack here: the attack's own test must find it.

More of joins are in ``fuzz/test_joined_rows.py``; those of the readers in
``test_e10_one_reader.py``, of the price of CASE in ``fuzz/test_long_questions.py``, of offers in
``fuzz/test_spends.py``, of the payer's words in ``server/test_questions.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import islice
from typing import Any

import pytest
from attacks import (
    test_a11_cannot_run,
    test_e9_amplified_joins,
    test_large_delta,
)
from attacks.test_e9_amplified_joins import curator, tables  # noqa: F401 (fixtures)

import discreet
from discreet.accounting import budget
from discreet.engine.duckdb import engine
from discreet.price import priced

Patch = pytest.MonkeyPatch
CAUGHT = (AssertionError, pytest.fail.Exception)


def found(attack: Callable[[], Any]) -> bool:
    try:
        attack()
    except CAUGHT:
        return True
    return False


def no_ceiling(patch: Patch) -> None:
    """What joins make of one person's rows is bounded at the end alone."""
    patch.setattr(priced, "check_joined_rows", lambda *_: None)


def test_a_ceiling_that_is_gone_is_found(
    curator: discreet.Curator,  # noqa: F811
    monkeypatch: Patch,
) -> None:
    no_ceiling(monkeypatch)
    refuse = test_e9_amplified_joins.test_too_many_rows_of_one_person_are_refused_with_their_number
    for text, most in islice(test_e9_amplified_joins.TOO_MANY.items(), 1):
        assert found(lambda text=text, most=most: refuse(curator, text, most))


def charged_unbound(patch: Patch) -> None:
    """Whether the engine can read its statement shows when it runs."""
    patch.setattr(engine, "_accepts", lambda *_: True)


def test_a_statement_that_was_not_bound_is_found(monkeypatch: Patch) -> None:
    charged_unbound(monkeypatch)
    bound = test_a11_cannot_run.test_the_very_statement_that_will_run_is_bound_before_the_charge
    assert found(lambda: bound(monkeypatch))


def any_delta(patch: Patch) -> None:
    """A delta is a probability, and nothing more is asked of it."""
    patch.setattr(budget, "REFUSED_DELTA", Fraction(1))
    patch.setattr(budget.Budget, "check_delta", lambda *_: None)


@pytest.mark.parametrize(
    "attack",
    [
        test_large_delta.test_a_large_delta_is_refused_where_a_budget_is_made,
        test_large_delta.test_a_declared_population_decides,
        test_large_delta.test_without_a_population_more_than_1e_5_warns,
    ],
)
def test_a_delta_that_is_taken_without_a_word_is_found(
    attack: Callable[[], Any], monkeypatch: Patch
) -> None:
    any_delta(monkeypatch)
    assert found(attack)
