"""Randomized response: its law, its reports and its estimates."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidParameter
from discreet.exact.balls import enclose, exp_bounds
from discreet.mechanisms import RandomizedResponse, TwoCoinResponse

CANARY = 8_675_309


# --- the law ---------------------------------------------------------------------------------


def test_the_two_coins_of_claim_3_5():
    """DR Claim 3.5: yes given yes 3/4, yes given no 1/4, and ln 3, rounded up and not down."""
    coins = TwoCoinResponse(truth="1/2")
    assert coins.law(True).fractions == (Fraction(1, 4), Fraction(3, 4))
    assert coins.law(False).fractions == (Fraction(3, 4), Fraction(1, 4))
    low, high = exp_bounds(coins.loss.epsilon, bits=300)
    assert low >= 3
    assert high - 3 < Fraction(1, 10**15)


@given(
    st.fractions(Fraction(1, 30), Fraction(29, 30), max_denominator=30),
    st.integers(2, 9),
)
def test_two_coins_of_any_kind(truth, categories):
    coins = TwoCoinResponse(truth=truth, categories=categories)
    masses = coins.law(1).fractions
    assert sum(masses) == 1
    assert masses[1] == truth + (1 - truth) / categories
    assert exp_bounds(coins.loss.epsilon)[1] >= masses[1] / masses[0]


@given(st.fractions(Fraction(1, 30), 6, max_denominator=30), st.integers(2, 9))
def test_the_ratio_is_exactly_e_to_the_epsilon(epsilon, categories):
    response = RandomizedResponse(epsilon=epsilon, categories=categories)
    law = response.law(categories - 1)
    low, high = enclose(lambda: law.mass(categories - 1) / law.mass(0))
    expected = exp_bounds(epsilon)
    assert low <= expected[1]
    assert high >= expected[0]
    assert high - low < Fraction(1, 10**9)
    assert response.loss.epsilon == epsilon
    assert response.truthful == pytest.approx(float(law.mass(categories - 1)))
    assert response.otherwise == pytest.approx(float(law.mass(0)))


# --- reports ---------------------------------------------------------------------------------


FORMS = [
    RandomizedResponse(epsilon="3/2"),
    RandomizedResponse(epsilon="3/2", categories=5),
    TwoCoinResponse(truth="1/3"),
    TwoCoinResponse(truth="1/3", categories=5),
]


@pytest.mark.parametrize("response", FORMS, ids=repr)
def test_the_same_kind_comes_back(response):
    most = response.categories - 1
    assert type(response.release(most)) is int
    assert isinstance(response.release((most, 0)), tuple)
    assert set(response.release([most] * 400)) == set(range(response.categories))
    array = response.release(np.full((3, 4), most, dtype=np.int8))
    assert array.shape == (3, 4)
    assert response.release(np.array([], dtype=np.int64)).size == 0
    if response.categories == 2:
        assert type(response.release(True)) is bool
        assert [type(x) for x in response.release([True, False])] == [bool, bool]
        assert response.release(np.array([True, False])).dtype == np.bool_


@pytest.mark.parametrize("response", FORMS, ids=repr)
@pytest.mark.parametrize(
    "value",
    [
        CANARY,
        -CANARY,
        CANARY + 0.5,
        str(CANARY),
        None,
        [1, CANARY],
        np.array([CANARY]),
        np.array([-1]),
        np.array([0.5]),
        np.array([str(CANARY)]),
    ],
)
def test_other_answers_are_refused_and_not_quoted(response, value):
    with pytest.raises(InvalidParameter, match="P6") as refusal:
        response.release(value)
    assert str(CANARY) not in str(refusal.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RandomizedResponse(epsilon=0),
        lambda: RandomizedResponse(epsilon=-2),
        lambda: RandomizedResponse(epsilon=2, categories=1),
        lambda: RandomizedResponse(epsilon=2, categories=2**40),
        lambda: TwoCoinResponse(truth=0),
        lambda: TwoCoinResponse(truth=1),
        lambda: TwoCoinResponse(truth="3/2"),
    ],
)
def test_bad_parameters_are_refused(make):
    with pytest.raises(InvalidParameter):
        make()


# --- estimates -------------------------------------------------------------------------------


@pytest.mark.parametrize("subset", [{1}, {0, 2}, {0, 1, 2}, set()])
@pytest.mark.parametrize(
    "response",
    [RandomizedResponse(epsilon="3/2", categories=3), TwoCoinResponse(truth="1/3", categories=3)],
    ids=repr,
)
def test_the_estimate_is_unbiased_and_its_error_is_right(response, subset):
    """Exactly: the mean and variance over all 3**4 reports of four respondents."""
    answers = (2, 0, 1, 1)
    truth = sum(answer in subset for answer in answers)
    laws = [response.law(answer) for answer in answers]
    mean = square = 0.0
    for reports in itertools.product(range(3), repeat=4):
        chance = math.prod(
            float(law.mass(report)) for law, report in zip(laws, reports, strict=True)
        )
        value = response.estimate(list(reports), subset).value
        mean += chance * value
        square += chance * value**2
    assert mean == pytest.approx(truth)
    p, q, size = response.truthful, response.otherwise, len(subset)
    if 0 < size < 3:
        inside, outside = p + (size - 1) * q, size * q
        variance = truth * inside * (1 - inside) + (4 - truth) * outside * (1 - outside)
        assert square - mean**2 == pytest.approx(variance / (p - q) ** 2)
    else:
        assert square - mean**2 == pytest.approx(0, abs=1e-9)


def test_the_standard_error_of_two_answers_does_not_depend_on_them():
    """Warner: n p (1 - p) / (2 p - 1)**2, whatever was reported."""
    response = RandomizedResponse(epsilon="3/2")
    p = response.truthful
    expected = math.sqrt(300 * p * (1 - p)) / (2 * p - 1)
    for ones in (0, 120, 300):
        reports = np.arange(300) < ones
        assert response.estimate(reports).standard_error == pytest.approx(expected)


def test_dmns_example_1_is_the_same_estimator():
    """DMNS Example 1: the sum of ((e^epsilon + 1) y - 1) / (e^epsilon - 1)."""
    response, reports = RandomizedResponse(epsilon="3/2"), [1, 0, 0, 1, 1]
    e = math.exp(1.5)
    expected = sum(((e + 1) * y - 1) / (e - 1) for y in reports)
    assert response.estimate(reports).value == pytest.approx(expected)


def test_the_margin_is_hoeffdings():
    response = TwoCoinResponse(truth="1/2")
    assert response.margin("0.05", respondents=800) == pytest.approx(
        math.sqrt(800 * math.log(40) / 2) * 2
    )


@pytest.mark.parametrize("response", FORMS, ids=repr)
def test_the_repr_makes_the_same_mechanism(response):
    assert eval(repr(response)) == response
