"""The auditor on every mechanism of this library: by its law, by its draws, by games."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

from discreet import audit, mechanisms
from discreet.accounting.loss import Loss
from discreet.audit import Verdict
from discreet.mechanisms import (
    AboveThreshold,
    AdaptiveLaplace,
    Disjoint,
    ExponentialMechanism,
    Gaussian,
    Grid,
    HammingCube,
    Histogram,
    KeyRelease,
    Laplace,
    MetricNoise,
    MetricSpace,
    Moments,
    NumericSparse,
    PermuteAndFlip,
    PropertyDistance,
    ProposeTestRelease,
    Quantile,
    Quantiles,
    RandomizedResponse,
    ReportNoisyMax,
    SmoothMedian,
    Sparse,
    Staircase,
    SubsampleAggregate,
    TopK,
    TwoCoinResponse,
    distance_to_sorted,
)

DRAWS = 3000
GAMES = 1000
SURE = "0.999999999"
RING = MetricSpace.of(range(9), lambda p, q: min((p - q) % 9, (q - p) % 9))


def as_is(outcome: Any) -> Any:
    return outcome


@dataclass(frozen=True)
class Case:
    """A mechanism and two neighbouring inputs; how to release, if not by ``release``."""

    mechanism: Any
    x: Any
    y: Any
    release: Callable[[Any], Any] | None = None
    law: bool = True
    steps: Callable[[Any], Any] = as_is  # an outcome as the law writes it

    def once(self, value: Any) -> Any:
        return (self.release or self.mechanism.release)(value)

    def __str__(self) -> str:
        return type(self.mechanism).__name__


def crossings(told: Any) -> tuple[bool, ...]:
    """A transcript of a sparse vector as its law writes it."""
    return tuple(place in told.above for place in range(told.asked))


ADAPTIVE = AdaptiveLaplace(joint_sensitivity=4, epsilon=1, regions=("all",))
TESTED = ProposeTestRelease(bound=2, epsilon=2, delta="1/100")
PARTS = Disjoint({name: Laplace(sensitivity=2, epsilon=1) for name in "ab"})
NUMERIC = NumericSparse(threshold=3, cutoff=1, sensitivity=2, epsilon=3)
SPREAD = Quantiles(["1/4", "3/4"], lower=-9, upper=9, epsilon=2)
MEANS = SubsampleAggregate(max, blocks=2, lower=0, upper=8, epsilon=1, grid=Grid("1/4"))

CASES = [
    Case(Laplace(sensitivity=3, epsilon="1/2"), 40, 43),
    Case(
        Laplace(sensitivity="5/2", epsilon="1/2", grid=Grid("1/4")),
        Fraction(7, 2),
        Fraction(6),
        steps=lambda value: int(value * 4),
    ),
    Case(Gaussian(sensitivity=3, rho="1/8"), 40, 43),
    Case(Staircase(sensitivity=3, epsilon="3/2"), 40, 43),
    Case(RandomizedResponse(epsilon="5/4", categories=4), 3, 2),
    Case(TwoCoinResponse(truth="1/2"), True, False, steps=int),
    Case(MetricNoise(space=RING, sensitivity=2, epsilon="6/5"), 3, 5),
    Case(HammingCube(sensitivity=3, epsilon=2), [1, 0, 0, 1], [0, 1, 0, 0], steps=tuple),
    Case(
        Histogram(bins=("a", "b"), epsilon="1/2", rows_per_unit=3),
        ["a"],
        ["a", "b", "b", "b"],
        steps=lambda counts: tuple(counts.values()),
    ),
    Case(PropertyDistance(distance_to_sorted, epsilon="1/2"), [2, 3, 5], [2, 9, 3, 5]),
    Case(ExponentialMechanism(sensitivity=2, epsilon="3/2"), [3, 5, 7], [5, 3, 5]),
    Case(PermuteAndFlip(sensitivity=2, epsilon="3/2"), [3, 5, 7], [5, 3, 5]),
    Case(ReportNoisyMax(sensitivity=2, epsilon=3, noise="laplace"), [3, 5, 7], [5, 3, 5]),
    Case(TopK(k=2, sensitivity=2, epsilon=3), [3, 5, 7], [5, 3, 5], steps=tuple),
    Case(AboveThreshold(threshold=3, sensitivity=2, epsilon=3), [3, 5], [5, 3], steps=crossings),
    Case(Sparse(threshold=3, cutoff=2, sensitivity=2, epsilon=4), [3, 5], [5, 3], steps=crossings),
    Case(Quantile("1/2", lower=-9, upper=9, epsilon="3/2"), [3, 5, -2], [3, 5]),
    Case(KeyRelease(epsilon="3/2", delta="1/1000"), 2, 3),
    Case(SmoothMedian(lower=-3, upper=3, epsilon=2, delta="1/100"), [2, 1, -2], [2, 1]),
    # Without an exact law of the whole answer: attacked.
    Case(NUMERIC, [3, 5], [5, 3], lambda v: str(NUMERIC.release(v)), law=False),
    Case(SPREAD, [3, 5, -2], [3, 5], lambda v: str(SPREAD.release(v)), law=False),
    Case(ADAPTIVE, 4, 8, lambda v: ADAPTIVE.start().ask(v, sensitivity={"all": 4}), law=False),
    Case(TESTED, (4, 3), (5, 2), lambda v: str(TESTED.release(v[0], distance=v[1])), law=False),
    Case(PARTS, 5, 7, lambda v: PARTS.release({"a": 3, "b": v})["b"], law=False),
    Case(MEANS, [3, 5, 2, 4], [3, 5, 2, 4, 8], law=False),
]


def test_no_mechanism_is_forgotten():
    known = {str(case) for case in CASES} | {"Moments"}
    for name in mechanisms.__all__:
        kind = getattr(mechanisms, name)
        if hasattr(kind, "loss") and (hasattr(kind, "release") or hasattr(kind, "start")):
            assert name in known, f"{name} is not audited"


@pytest.mark.parametrize("case", [c for c in CASES if c.law], ids=str)
def test_by_its_law(case):
    found = audit.exact(case.mechanism, case.x, case.y)
    assert found.verdict is Verdict.PROVED, found.sentence


@pytest.mark.parametrize("case", [c for c in CASES if c.law], ids=str)
def test_its_draws_have_its_law(case):
    def sampler(size):
        return [case.steps(case.once(case.x)) for _ in range(size)]

    found = audit.fit(sampler, case.mechanism.law(case.x), samples=DRAWS)
    assert found.verdict is Verdict.CONSISTENT, found.sentence


@pytest.mark.parametrize("case", [c for c in CASES if not c.law], ids=str)
def test_by_games(case):
    found = audit.game(
        case.once,
        case.x,
        case.y,
        trials=GAMES,
        promised=case.mechanism.loss,
        confidence=SURE,
        adjacent=True,
    )
    assert found.verdict is Verdict.CONSISTENT, found.sentence


def test_moments():
    moments = Moments(dimension=2, bound=3, epsilon="3/2", grid=Grid("1/8"))
    rows = [(1.0, 0.5)], [(1.0, 0.5), (0.0, -3.0)]
    assert audit.exact(moments, *rows).verdict is Verdict.PROVED


@pytest.mark.parametrize("case", CASES[:4], ids=str)
def test_a_cheaper_claim_is_refuted(case):
    """The same laws with nine tenths of the loss: the audit is not asleep."""
    loss = case.mechanism.loss
    cheaper = Loss(loss.epsilon * Fraction(9, 10), loss.rho * Fraction(9, 10))
    assert audit.exact(case.mechanism, case.x, case.y, promised=cheaper).alarm


def test_draws_of_another_scale_are_refuted():
    right, wrong = Laplace(sensitivity=3, epsilon="1/2"), Laplace(sensitivity=3, epsilon=1)
    draws = [wrong.release(40) for _ in range(DRAWS)]
    assert audit.fit(draws, right.law(40)).alarm
