"""Bugs on purpose, one for each class of attack here: the attack's own test must find it.

More of joins are in ``fuzz/test_joined_rows.py``; those of the readers in
``test_e10_one_reader.py``, of the price of CASE in ``fuzz/test_long_questions.py``, of offers in
``fuzz/test_spends.py``, of the payer's words in ``server/test_questions.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from attacks import (
    test_a11_cannot_run,
    test_a14_refusals_fill_the_ledger,
    test_e9_amplified_joins,
    test_errata_words,
    test_large_delta,
    test_w1_outer_names,
    test_w2_impossible_groups,
)
from attacks.test_a14_refusals_fill_the_ledger import path  # noqa: F401 (a fixture)
from attacks.test_e9_amplified_joins import curator, tables  # noqa: F401 (fixtures)
from sqlglot import exp

import discreet
from discreet.accounting import budget
from discreet.accounting.meaning import Meaning, Worlds
from discreet.engine.duckdb import engine
from discreet.ledger import tally
from discreet.price import priced
from discreet.question import sql
from discreet.release import answer

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
    patch.setattr(engine.DuckDBEngine, "_check", lambda *_: None)


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


def every_refusal_whole(patch: Patch) -> None:
    """A record of each, with its question."""

    def add(before: tally.Tally, size: int, _taken: int) -> tally.Tally:
        return replace(
            before, count=before.count + 1, told=before.told + 1, size=before.size + size
        )

    patch.setattr(tally.Tally, "add", add)


def no_cap_for_a_day(patch: Patch) -> None:
    """Of each code some are recorded whole, however long and however many codes there are."""
    patch.setattr(tally, "WHOLE_BYTES", 2**60)


@pytest.mark.parametrize(
    ("bug", "attack"),
    [
        (
            every_refusal_whole,
            test_a14_refusals_fill_the_ledger.test_strangers_share_one_allowance,
        ),
        (
            no_cap_for_a_day,
            test_a14_refusals_fill_the_ledger.test_a_day_of_every_code_is_bounded,
        ),
    ],
)
def test_refusals_that_fill_the_ledger_are_found(
    bug: Callable[[Patch], None],
    attack: Callable[[Path], Any],
    path: Path,  # noqa: F811
    monkeypatch: Patch,
) -> None:
    bug(monkeypatch)
    assert found(lambda: attack(path))


def outer_names_capture(patch: Patch) -> None:
    """A SELECT around a question is folded into it: its names stand for those inside."""
    parse = sql._parse_tree

    def fold(text: str, tokens: Any) -> exp.Expr:
        tree = parse(text, tokens)
        source = tree.args["from_"].this if tree.args.get("from_") else None
        if not isinstance(source, exp.Subquery) or not isinstance(source.this, exp.Select):
            return tree
        inner = source.this.copy()
        meant = {one.alias_or_name: one.unalias() for one in inner.expressions}
        inner.set(
            "expressions",
            [
                exp.alias_(
                    one.unalias().transform(
                        lambda node: (
                            meant[node.name].copy() if isinstance(node, exp.Column) else node
                        )
                    ),
                    one.alias_or_name,
                )
                for one in tree.expressions
            ],
        )
        return inner

    patch.setattr(sql, "_parse_tree", fold)


@pytest.mark.parametrize("name", test_w1_outer_names.CASES)
def test_outer_names_that_capture_are_found(name: str, monkeypatch: Patch) -> None:
    outer_names_capture(monkeypatch)
    case = test_w1_outer_names
    with discreet.curator({"visits": case.ROWS}, schema=case.SCHEMA, budget=10**6) as asked:
        assert found(lambda: case.test_outer_names_are_the_outer_ones(asked, name))


def every_combination_is_shown(patch: Patch) -> None:
    """Keys of one column are combined as if they were of two."""
    patch.setattr(answer, "find_possible", lambda _question: None)


@pytest.mark.parametrize("keys", ["YEAR(day), MONTH(day)", "MONTH(at)", "age < 5, age > 20"])
def test_impossible_groups_are_found(keys: str, monkeypatch: Patch) -> None:
    every_combination_is_shown(monkeypatch)
    case = test_w2_impossible_groups
    with discreet.curator({"visits": case.ROWS}, schema=case.SCHEMA, budget=1000) as asked:
        assert found(lambda: case.test_only_groups_that_can_be_are_listed(asked, keys))


def values_are_one_step_apart(patch: Patch) -> None:
    """What holds for presence is said of what somebody's data say, too."""
    one_step = property(lambda meant: Worlds(meant.joint_epsilon, meant.joint_delta))
    patch.setattr(Meaning, "value", one_step)


def test_a_sentence_that_takes_presence_for_a_value_is_found(monkeypatch: Patch) -> None:
    values_are_one_step_apart(monkeypatch)
    attack = test_errata_words.test_a_histogram_moves_a_belief_about_a_value_by_tanh_of_half_epsilon
    for epsilon in (Fraction(1, 2), Fraction(3)):
        assert found(lambda epsilon=epsilon: attack(epsilon))
