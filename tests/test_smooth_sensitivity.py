"""Smooth sensitivity of the median, by exhaustion over small data sets."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.accounting.divergence import hockey_stick
from discreet.accounting.law import DiscreteLaplaceLaw
from discreet.errors import InvalidParameter
from discreet.mechanisms import Grid, SmoothMedian
from discreet.mechanisms.quantiles.ranks import Domain, RankedCells, count_occupied_cells
from discreet.mechanisms.smooth_sensitivity import median_reach

TOP = 4
SETS = [
    values
    for n in range(6)
    for values in itertools.combinations_with_replacement(range(TOP + 1), n)
]


def median(values) -> int:
    ranked = sorted(values)
    return ranked[(len(ranked) + 1) // 2 - 1] if ranked else 0


def rank(values) -> RankedCells:
    return RankedCells.of(count_occupied_cells(np.array(values, dtype=np.int64)))


def neighbours(values):
    for more in range(TOP + 1):
        yield tuple(sorted((*values, more)))
    for place in range(len(values)):
        yield values[:place] + values[place + 1 :]


def local_sensitivity(values) -> int:
    return max(abs(median(values) - median(other)) for other in neighbours(values))


@pytest.mark.parametrize("k", [0, 1, 2])
def test_the_reach_is_the_greatest_local_sensitivity_nearby(k):
    """A(k) is one window of the ordered values: the lemma, by walking to every neighbour."""
    domain = Domain(0, TOP, None)
    for values in [one for one in SETS if len(one) <= 4]:
        near = {values}
        for _ in range(k):
            near |= {other for one in near for other in neighbours(one)}
        reached = median_reach(rank(values), domain, np.array([k]))
        assert reached[0] == max(map(local_sensitivity, near))


@pytest.fixture(scope="module")
def mechanism() -> SmoothMedian:
    return SmoothMedian(lower=0, upper=TOP, epsilon=2, delta="1/20")


def test_it_bounds_the_local_sensitivity_and_is_smooth(mechanism):
    smooth = {values: mechanism.smooth_sensitivity(list(values)) for values in SETS}
    for values, bound in smooth.items():
        assert bound >= local_sensitivity(values)
        for other in neighbours(values):
            if other in smooth:
                assert bound >= mechanism.decay * smooth[other]


def test_it_is_the_smooth_sensitivity_up_to_one_level(mechanism):
    """Nissim, Raskhodnikova and Smith, Definition 2.2: max over k of decay**k A(k)."""
    decay = float(mechanism.decay)
    domain = mechanism.domain
    for values in SETS:
        ks = np.arange(len(values) + 1)
        exact = max(decay**ks * median_reach(rank(values), domain, ks))
        assert exact - 1e-9 <= mechanism.smooth_sensitivity(list(values)) <= exact / decay + 1e-4


@pytest.mark.parametrize(("epsilon", "delta"), [(2, "1/20"), (1, "1e-6")])
def test_the_guarantee_by_the_exact_laws(epsilon, delta):
    """Every pair of neighbours of up to five values: the exact delta is at most the one claimed."""
    mechanism = SmoothMedian(lower=0, upper=TOP, epsilon=epsilon, delta=delta)
    pairs = {
        (mechanism.law(list(values)), mechanism.law(list(other)))
        for values in SETS
        for other in neighbours(values)
    }
    # Mirror images have the same divergence: keep one of each.
    kept = {(p.scale, q.scale, abs(p.center - q.center)): (p, q) for p, q in pairs}
    assert len(kept) > 20
    assert (
        max(hockey_stick(p, q, mechanism.epsilon)[1] for p, q in kept.values()) <= mechanism.delta
    )


def test_local_sensitivity_instead_would_not_be_private(mechanism):
    """The mistake that smoothing prevents: noise that vanishes for one and not for the other."""

    def law(values):
        bound = max(Fraction(1, 1000), Fraction(local_sensitivity(values)))
        return DiscreteLaplaceLaw(median(values), 2 * bound / mechanism.epsilon)

    calm, lively = (2, 2, 2), (0, 2, 2, 2)
    pairs = [(calm, lively), *((one, two) for one in SETS[:60] for two in neighbours(one))]
    laws = {(law(two), law(one)) for one, two in pairs}
    kept = {(p.scale, q.scale, abs(p.center - q.center)): (p, q) for p, q in laws}
    worst = max(hockey_stick(p, q, mechanism.epsilon)[0] for p, q in kept.values())
    assert worst > 3 * mechanism.delta


def test_the_scale_of_the_noise(mechanism):
    for values in SETS[::40]:
        smooth = mechanism.smooth_sensitivity(list(values))
        law = mechanism.law(list(values))
        assert (law.center, law.scale) == (median(values), 2 * smooth / mechanism.epsilon)


def test_the_decay_is_what_the_proof_needs(mechanism):
    # P(|Z| / scale > L) <= 2 exp(-L) <= delta, L = decay / (1 - decay) * epsilon / 2.
    reach = mechanism.decay / (1 - mechanism.decay) * mechanism.epsilon / 2
    assert 2 * math.exp(-reach) <= mechanism.delta
    assert math.log(1 / mechanism.decay) <= mechanism.epsilon / 2


def test_calm_data_get_little_noise():
    mechanism = SmoothMedian(lower=0, upper=10**6, epsilon=1, delta="1e-6")
    calm = np.concatenate([np.full(3000, 50_000), np.arange(40)])
    assert mechanism.smooth_sensitivity(calm) < Fraction(1, 100)
    assert mechanism.release(calm) == 50_000
    wild = np.array([0, 10**6] * 50)
    assert mechanism.smooth_sensitivity(wild) == 10**6


@pytest.mark.parametrize("values", [[], [3], [float("nan")], [float("inf"), -float("inf")]])
def test_nothing_fails(values):
    mechanism = SmoothMedian(lower=0, upper=9, epsilon=1, delta="1e-3", grid=Grid("1/4"))
    assert Fraction(mechanism.release(values)) % Fraction(1, 4) == 0


def test_the_margin_is_that_of_the_noise():
    mechanism = SmoothMedian(lower=0, upper=100, epsilon=1, delta="1e-6")
    q = math.exp(-1 / 10)
    margin = mechanism.margin("0.05", smooth=5)
    assert 2 * q ** (margin + 1) / (1 + q) <= 0.05 < 2 * q**margin / (1 + q)


@pytest.mark.parametrize(
    "wrong", [{"epsilon": 0}, {"delta": 0}, {"delta": 1}, {"upper": 0}, {"epsilon": "1e-40"}]
)
def test_refusals(wrong):
    with pytest.raises(InvalidParameter):
        SmoothMedian(**{"lower": 0, "upper": 9, "epsilon": 1, "delta": "1e-6"} | wrong)


def test_the_loss_is_approximate(mechanism):
    assert (mechanism.loss.epsilon, mechanism.loss.delta) == (2, Fraction(1, 20))
