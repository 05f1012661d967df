"""Half the noise is for numbers that only grow: where they do, and a mutant for each other case.

A choice and a run of the sparse vector may be priced as monotonic where a unit more is some rows
more and none less.  In every other case one number can fall as another rises; with half the noise
the exact laws of two such neighbours then differ by more than was paid.
"""

from __future__ import annotations

from fractions import Fraction

import pandas as pd
import pytest

import discreet
from discreet.accounting.divergence import both_ways, max_divergence
from discreet.mechanisms import AboveThreshold, Sparse, TopK
from discreet.price import watch
from discreet.question.schema import Neighbours, Schema

COLUMNS = """
columns.a = "integer"
columns.b = "integer"
columns.kind = { type = "text", values = ["x", "y"], nullable = false }
columns.debt = { type = "integer", bounds = [-3, 3], nullable = false }
"""
ONE = '[tables.t]\nunit = "a"\nmax_rows_per_unit = 2\n' + COLUMNS
PAIR = '[tables.t]\nunit = { pair = ["a", "b"] }\nmax_rows_per_unit = 2\n' + COLUMNS
ANY = (
    '[tables.t]\nunit = { any = ["a", "b"] }\nentity = "person"\nmax_rows_per_unit = 4\n'
    "max_rows_per_pair = 2\ncrowding = { rho = 0.02, delta = 1e-9 }\n" + COLUMNS
)
CHANGE = 'neighbours = "change-one"\n'
COUNT = "SELECT kind, COUNT(*) FROM t GROUP BY kind"
DEBTS = "SELECT kind, SUM(debt) FROM t GROUP BY kind"
EPSILON = Fraction(3, 2)
WIDTH = Fraction(1, 2**40)
"""A certified upper end lies above an attained bound by its own width, far below this."""


def find_contest(schema: str, text: str):
    """How a choice would be made; free, and of no data."""
    table = pd.DataFrame({"a": [1, 2], "b": [2, 3], "kind": ["x", "y"], "debt": [1, -1]})
    budget = discreet.Budget(epsilon=50, delta="1e-6")
    with discreet.curator({"t": table}, schema=Schema.from_text(schema), budget=budget) as curator:
        return curator.explain_choose(text, epsilon=EPSILON).contest


@pytest.mark.parametrize(("schema", "text"), [(ONE, COUNT), (PAIR, COUNT)])
def test_counts_of_rows_with_one_owner_and_of_pairs_only_grow(schema, text):
    mechanism = find_contest(schema, text).mechanism
    assert mechanism.monotonic
    moved = int(mechanism.sensitivity)
    here = mechanism.law([9, 9])
    for scores in ([9 + moved, 9 + moved], [9, 9 + moved]):
        assert both_ways(max_divergence, here, mechanism.law(scores))[1] <= EPSILON + WIDTH


OTHERS = [(CHANGE + ONE, COUNT), (CHANGE + PAIR, COUNT), (ONE, DEBTS), (ANY, COUNT)]


def lose_by_choosing(contest) -> Fraction:
    """What is told of who lowers one score and raises another, exactly."""
    mechanism = contest.mechanism
    if not isinstance(mechanism, TopK):
        mechanism = TopK(
            k=1,
            sensitivity=mechanism.sensitivity,
            epsilon=EPSILON,
            monotonic=mechanism.monotonic,
        )
    moved = int(mechanism.sensitivity)
    laws = (mechanism.law([9, 9]), mechanism.law([9 - moved, 9 + moved]))
    return both_ways(max_divergence, *laws)[1]


@pytest.mark.parametrize(("schema", "text"), OTHERS)
def test_in_every_other_case_a_choice_has_all_the_noise(schema, text):
    contest = find_contest(schema, text)
    assert not contest.mechanism.monotonic
    assert lose_by_choosing(contest) <= EPSILON + WIDTH


def forget_changes(patch):
    """Whoever is changed is taken to be added or removed."""
    patch.setattr(watch, "find_neighbours", lambda *_: Neighbours.ADD_REMOVE)


def forget_signs(patch):
    """What is added up is taken to be never negative."""
    patch.setattr(watch, "_only_adds", lambda _: True)


MUTANTS = [(*case, forget_signs if case[1] == DEBTS else forget_changes) for case in OTHERS]


@pytest.mark.parametrize(("schema", "text", "mutant"), MUTANTS)
def test_a_mutant_that_takes_it_for_growing_is_refuted(schema, text, mutant, monkeypatch):
    mutant(monkeypatch)
    contest = find_contest(schema, text)
    assert contest.mechanism.monotonic
    assert lose_by_choosing(contest) > EPSILON * Fraction(11, 10)


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("at_most", [1, 2])
def test_a_run_of_the_sparse_vector_needs_all_its_noise_where_numbers_fall_and_rise(
    monotonic, at_most
):
    settings = {"threshold": 9, "sensitivity": 2, "epsilon": EPSILON, "monotonic": monotonic}
    run = AboveThreshold(**settings) if at_most == 1 else Sparse(cutoff=at_most, **settings)
    queries = [[9] * 5 * at_most, [7, 7, 7, 7, 11] * at_most]
    lost = both_ways(max_divergence, *(run.law(values) for values in queries))[1]
    assert (lost > EPSILON + WIDTH) is monotonic
