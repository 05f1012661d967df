"""The exact audit: certified numbers against closed forms, verdicts, pictures."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from xml.etree import ElementTree

import pytest

from discreet import audit
from discreet.accounting.law import FiniteLaw
from discreet.accounting.loss import Loss
from discreet.audit import Verdict
from discreet.audit.exact import SLACK
from discreet.errors import InvalidParameter
from discreet.mechanisms import Gaussian, KeyRelease, Laplace, RandomizedResponse, SmoothMedian

LAPLACE = Laplace(sensitivity=3, epsilon="1/4")
GAUSSIAN = Gaussian(sensitivity=3, rho="1/8")


def test_laplace_is_tight_in_every_coordinate():
    found = audit.exact(LAPLACE, 40, 43)
    assert found.verdict is Verdict.PROVED
    assert not found.alarm
    assert found.epsilon == (Fraction(1, 4), Fraction(1, 4))
    assert abs(found.rho[0] - LAPLACE.loss.rho) < Fraction(1, 10**6)
    # Total variation of two-sided geometric laws 3 apart: the middle one beyond half way.
    q = math.exp(-1 / 12)
    expected = 1 - (1 + q) / (1 + q) * 2 * q**2 / (1 + q)  # P(Z < 2) - P(Z - 3 < 2)
    assert found.total_variation[0] <= Fraction(expected) + Fraction(1, 10**9)
    assert abs(float(found.total_variation[0]) - expected) < 1e-9


def test_delta_of_a_gaussian_is_that_of_its_profile():
    found = audit.exact(GAUSSIAN, 40, 43)
    assert found.epsilon == (math.inf, math.inf)
    assert found.rho == (Fraction(1, 8), Fraction(1, 8))
    # sigma**2 = 36, mu = 1/2: nearly the continuous curve of Balle and Wang (2018).
    low, high = found.delta_at("0.5")

    def phi(x):
        return math.erfc(-x / math.sqrt(2)) / 2

    continuous = phi(0.25 - 1) - math.exp(0.5) * phi(-0.25 - 1)
    assert low <= high
    assert abs(float(high) - continuous) < 2e-3
    assert found.epsilon_at(high)[0] <= Fraction(1, 2) + Fraction(1, 10**9)


@pytest.mark.parametrize(
    ("mechanism", "x", "y"),
    [
        (LAPLACE, 40, 45),
        (GAUSSIAN, 40, 44),
        (RandomizedResponse(epsilon="1/2", categories=3), 2, 1),
    ],
)
def test_a_loss_that_is_too_small_is_found(mechanism, x, y):
    loss = mechanism.loss
    less = Loss(loss.epsilon * Fraction(99, 100), loss.rho * Fraction(99, 100))
    promised = loss if isinstance(x, int) and abs(x - y) > 3 else less
    found = audit.exact(mechanism, x, y, promised=promised)
    assert found.verdict is Verdict.BROKEN
    assert found.alarm
    assert "broken" in found.sentence


@pytest.mark.parametrize(
    ("mechanism", "x", "y", "words"),
    [
        (RandomizedResponse(epsilon="5/4", categories=4), 3, 2, "ε = 1.25, ρ ≤ "),
        (LAPLACE, 40, 43, "ε = 0.25, ρ = 0.0290566; the promise ε = 0.25, ρ = 0.0290566, "),
        (LAPLACE, 40, 45, "ε = 0.416667, ρ ≥ "),
        (KeyRelease(epsilon="3/2", delta="1/1000"), 0, 1, "δ = 0.001 at ε = 1.5; "),
    ],
)
def test_an_enclosure_is_told_as_the_promise_where_it_is_that(mechanism, x, y, words):
    """A certified bound lies a hair above what it encloses: 1.25001 would read as a breach."""
    assert f"on this pair: {words}" in audit.exact(mechanism, x, y).sentence


def test_a_breach_by_less_than_the_slack_is_a_breach():
    """Certified from below: two thirds of what an enclosure may be wide is too much."""
    less = Fraction(1, 4) * (1 - SLACK * Fraction(2, 3))
    promised = Loss(less, LAPLACE.loss.rho)
    assert audit.exact(LAPLACE, 40, 43, promised=promised).verdict is Verdict.BROKEN


def test_a_promise_with_a_delta_is_judged_at_its_epsilon():
    keys = KeyRelease(epsilon="3/2", delta="1/1000")
    assert audit.exact(keys, 2, 3).verdict is Verdict.PROVED
    short = Loss.approximate("3/2", Fraction(1, 10**7))
    assert audit.exact(keys, 0, 1, promised=short).verdict is Verdict.BROKEN


def test_laws_of_different_scales_are_compared_up_to_a_rest():
    median = SmoothMedian(lower=-3, upper=3, epsilon=2, delta="1/100")
    found = audit.exact(median, [2, 1, -2], [2, 1])
    assert found.verdict is Verdict.PROVED
    assert found.epsilon[1] == math.inf


def test_a_concentrated_promise_with_a_delta_is_only_refuted():
    loss = Loss.concentrated("1/8", "1e-9")
    assert audit.exact(GAUSSIAN, 40, 43, promised=loss).verdict is Verdict.CONSISTENT
    loss = Loss.concentrated("1/80", "1e-9")
    assert audit.exact(GAUSSIAN, 40, 43, promised=loss).verdict is Verdict.BROKEN


def test_a_function_from_input_to_law_will_do():
    def coin(bit):
        return FiniteLaw.exact({True: "3/4" if bit else "1/4", False: "1/4" if bit else "3/4"})

    found = audit.exact(coin, 0, 1, promised="1.2")
    assert found.verdict is Verdict.PROVED
    assert abs(float(found.epsilon[1]) - math.log(3)) < 1e-12
    assert audit.exact(coin, 0, 1).verdict is Verdict.UNDECIDED
    assert audit.exact(coin, 0, 1, promised="1.09").verdict is Verdict.BROKEN


def test_the_loss_distribution_adds_up_and_gives_the_curve_again():
    found = audit.exact(RandomizedResponse(epsilon="5/4", categories=4), 3, 2)
    losses = found.losses
    assert sum(p for _, p, _ in losses) == pytest.approx(1)
    assert sum(q for _, _, q in losses) == pytest.approx(1)
    for loss, p, q in losses:
        assert math.log(p / q) == pytest.approx(loss, abs=1e-9)
    for epsilon, low, high in found.curve:
        summed = sum(max(0.0, p - math.exp(epsilon) * q) for _, p, q in losses)
        assert float(low) - 1e-12 <= summed <= float(high) + 1e-12


def test_the_curve_falls_and_is_certified():
    for found in (audit.exact(LAPLACE, 40, 43), audit.exact(GAUSSIAN, 40, 43)):
        deltas = [high for _, _, high in found.curve]
        assert deltas == sorted(deltas, reverse=True)
        for epsilon, low, high in found.curve[::6]:
            assert low <= high
            assert found.delta_at(epsilon)[0] <= high + Fraction(1, 10**30)


def test_pictures_are_drawings_and_json_is_plain():
    for mechanism in (LAPLACE, GAUSSIAN):
        found = audit.exact(mechanism, 40, 43)
        tree = ElementTree.fromstring(found.picture())
        text = " ".join(tree.itertext())
        assert "privacy loss" in text
        assert "δ against ε" in text
        assert found._repr_svg_() == found.picture()
        assert json.loads(json.dumps(found.to_json()))["verdict"] == "proved"


@pytest.mark.parametrize("wrong", [3, "laplace", object(), lambda x: x])
def test_what_has_no_law_is_refused(wrong):
    with pytest.raises(InvalidParameter, match=r"law"):
        audit.exact(wrong, 40, 43)
