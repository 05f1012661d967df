"""The audit of exact laws: every mechanism keeps its promise, and does not overpay for it.

For neighbouring inputs the divergence of the two exact laws, certified in ball
arithmetic, is at most the claimed loss: never too little noise.  The worst pair
comes close to it: not too much noise either.
"""

from __future__ import annotations

from fractions import Fraction

import pytest
from contract import local_cases, numeric_cases
from contract.law_case import LawCase
from hypothesis import HealthCheck, given, settings

from discreet.accounting.divergence import max_divergence, renyi

try:
    from contract import selection_cases
except ImportError:
    SELECTION: list[LawCase] = []
else:
    SELECTION = list(selection_cases.CASES)

CASES = [*numeric_cases.CASES, *local_cases.CASES, *SELECTION]
ORDERS = (Fraction(3, 2), Fraction(6))

# A certified upper end lies above an attained bound by its own width, which is far below this.
WIDTH = Fraction(1, 2**40)


def within(upper, bound) -> bool:
    return upper <= bound * (1 + WIDTH) + WIDTH


@pytest.mark.parametrize("examples", [16, pytest.param(200, marks=pytest.mark.soak)])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_neighbours_are_within_the_loss(case, examples):
    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(pair=case.pairs)
    def keep(pair):
        for first, second in ((pair.first, pair.second), (pair.second, pair.first)):
            if pair.loss.epsilon != float("inf"):
                assert within(max_divergence(first, second)[1], pair.loss.epsilon)
            if pair.loss.rho != float("inf"):
                for order in ORDERS:
                    assert within(renyi(first, second, order)[1], order * pair.loss.rho)

    keep()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_worst_pair_comes_close(case, record_property):
    pair = case.worst()
    if pair.loss.epsilon != float("inf"):
        low, high = max_divergence(pair.first, pair.second)
        claimed = pair.loss.epsilon
    else:
        low, high = renyi(pair.first, pair.second, Fraction(2))
        claimed = 2 * pair.loss.rho
    share = low / claimed
    record_property("tightness", float(share))
    assert within(high, claimed)
    assert share > 0
    if case.tightness is not None:
        assert share >= case.tightness
