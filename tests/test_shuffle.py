"""The bound for a shuffler, against the exact divergence of the pair it is proved with."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from discreet.accounting.loss import Loss
from discreet.accounting.shuffle import shuffled
from discreet.errors import InvalidParameter


def clones_delta(epsilon0: float, n: int, epsilon: float) -> float:
    """The delta of the pair of Theorem 3.2: clones of two people among n - 1 others.

    C ~ Bin(n - 1, e**-e0), A ~ Bin(C, 1/2), D ~ Bernoulli(e**e0 / (e**e0 + 1)):
    (A + D, C - A + 1 - D) against (A + 1 - D, C - A + D).  Given C, the first has
    masses over a = 0 ... C + 1 and the second the mirrored ones.
    """
    p, kept = math.exp(-epsilon0), math.exp(epsilon0) / (math.exp(epsilon0) + 1)
    total = 0.0
    for c in range(n):
        log_c = (
            math.lgamma(n)
            - math.lgamma(c + 1)
            - math.lgamma(n - c)
            + c * math.log(p)
            + (n - 1 - c) * math.log1p(-p)
        )
        if log_c < -60:
            continue
        half = [math.comb(c, a) / 2**c for a in range(c + 1)] + [0.0]
        first = [kept * (half[a - 1] if a else 0.0) + (1 - kept) * half[a] for a in range(c + 2)]
        second = first[::-1]
        gap = sum(max(0.0, x - math.exp(epsilon) * y) for x, y in zip(first, second, strict=True))
        total += math.exp(log_c) * gap
    return total


@pytest.mark.parametrize("epsilon0", ["1/2", 1])
@pytest.mark.parametrize("n", [400, 700])
def test_the_bound_holds_for_the_clones(epsilon0, n):
    loss = shuffled(epsilon0, respondents=n, delta="1/1000")
    assert loss.epsilon < Fraction(epsilon0)
    found = clones_delta(float(Fraction(epsilon0)), n, float(loss.epsilon))
    assert 0 <= found <= 1e-3


def test_the_closed_form():
    e, n, d = math.e, 50_000, 1e-6
    expected = math.log1p(
        (e - 1) / (e + 1) * (8 * math.sqrt(e * math.log(4 / d)) / math.sqrt(n) + 8 * e / n)
    )
    assert float(shuffled(1, respondents=n, delta="1e-6").epsilon) == pytest.approx(expected)


def test_it_never_promises_more_than_the_reports_themselves():
    for n in (1, 10, 300, 10**4, 10**7):
        for epsilon in ("1/100", 1, 5):
            loss = shuffled(epsilon, respondents=n, delta="1e-9")
            assert loss.epsilon <= Fraction(epsilon)
            # Beyond the theorem's condition nothing is gained.
            if math.exp(Fraction(epsilon)) > n / (16 * math.log(2e9)):
                assert loss == Loss.pure(epsilon)


def test_a_shuffler_cannot_be_pure():
    with pytest.raises(InvalidParameter):
        shuffled(1, respondents=10**6, delta=0)
