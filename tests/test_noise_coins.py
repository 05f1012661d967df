"""Coins: where the digits of the probability decide, and what is refused."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import noise_reference as reference
import numpy as np
import pytest

from discreet.errors import InvalidParameter
from discreet.exact.balls import exp_negative
from discreet.noise import bernoulli, bernoulli_exp
from discreet.noise.bernoulli import compare_digits, decide_below, toss_coins
from discreet.noise.entropy import use_recording, use_source

LAST = 2**64 - 1
PROBABILITIES = [Fraction(1, 3), Fraction(2, 7), Fraction(10**30 - 1, 10**30), Fraction(1, 10**25)]
EXPONENTS = [Fraction(1, 10**12), Fraction(1, 3), Fraction(2), Fraction(30), Fraction(44)]


def little(*words: int) -> bytes:
    return b"".join(word.to_bytes(8, "little") for word in words)


def digits_of(p: Fraction, count: int) -> list[int]:
    """The first ``count`` words of 64 binary digits of p."""
    whole = p.numerator * 2 ** (64 * count) // p.denominator
    return [whole >> (64 * place) & LAST for place in reversed(range(count))]


@pytest.mark.parametrize("p", PROBABILITIES)
@pytest.mark.parametrize("ties", [0, 1, 2])
def test_a_rational_coin_falls_where_the_digits_of_p_say(p, ties):
    *same, last = digits_of(p, ties + 1)
    for word, expected in ((last - 1, 1), (last + 1, 0)):
        if 0 <= word <= LAST:
            with use_recording(little(*same, word)):
                assert bernoulli(p) == expected
            with use_recording(little(*same, word)):
                assert bernoulli(p, 1).tolist() == [expected]


def test_a_dyadic_coin_needs_no_more_than_its_own_digits():
    """Digits equal to p = 3/8 mean u >= p, whatever comes after."""
    with use_recording(little(3 << 61, 0)):
        assert bernoulli("0.375") == 0
    with use_recording(little((3 << 61) - 1)):
        assert bernoulli("0.375") == 1


def test_certain_coins():
    assert (bernoulli(0), bernoulli(1)) == (0, 1)
    assert not bernoulli(0, 1000).any()
    assert bernoulli(1, 1000).all()
    assert bernoulli_exp(0) == 1
    assert bernoulli_exp(0, 1000).all()
    assert not bernoulli_exp("1e900", 1000).any()
    assert bernoulli_exp("1e-900") == 1
    assert bernoulli_exp(np.zeros(300, dtype=np.int64)).all()
    # No digits whatever may make exp(0) fail or exp(-10**900) succeed in a day.
    for byte in (b"\x00", b"\xff"):
        with use_source(lambda count, byte=byte: byte * count):
            assert bernoulli_exp([0, 0, 0]).all()
            assert decide_below(LAST, Fraction(0)) == 1
    with use_recording(little(0, 1)):
        assert bernoulli_exp(["1e900"]).tolist() == [0]


@pytest.mark.parametrize("x", EXPONENTS)
@pytest.mark.parametrize("ties", [0, 1, 2])
def test_an_exponential_coin_falls_where_the_digits_of_exp_say(x, ties):
    """As one number, and as an element of an array: the two decide in different ways."""
    bits = 64 * (ties + 1)
    with localcontext() as context:
        context.prec = 100
        whole = reference.binary_digits(reference.exp(-x), bits)
    *same, last = [whole >> (64 * place) & LAST for place in reversed(range(ties + 1))]
    for word, expected in ((last - 1, 1), (last + 1, 0)):
        if not 0 <= word <= LAST:
            continue
        with use_recording(little(*same, word)):
            assert bernoulli_exp(x) == expected
        with use_recording(little(*same, word)):
            assert bernoulli_exp(x, 1).tolist() == [expected]
        with use_recording(little(*same, word) + little(0, 0)):
            assert bernoulli_exp([x]).tolist() == [expected]


def test_doubles_decide_only_what_is_certain():
    """Digits around exp(-x) * 2**64, at distances from 1 to 2**40: certain means true."""
    rng = np.random.default_rng(7)
    x = np.concatenate([rng.uniform(0, 46, 3000), 2.0 ** rng.uniform(-50, 0, 1000)])
    with localcontext() as context:
        context.prec = 60
        true = [int(reference.exp(-Fraction(v)) * 2**64) for v in x.tolist()]
    certain = 0
    for distance in (0, 1, 2, 3, 2**10, 2**23, 2**24, 2**25, 2**26, 2**40):
        for sign in (-1, 1):
            drawn = [min(max(t + sign * distance, 0), LAST) for t in true]
            heads, open_ = compare_digits(np.array(drawn, dtype=np.uint64), x)
            for h, o, d, t in zip(heads, open_, drawn, true, strict=True):
                assert not (h and o)
                if not o:
                    certain += 1
                    assert h == (d < t)
                    assert d != t
    assert certain > 10_000


def test_doubles_leave_little_open():
    x = np.random.default_rng(8).uniform(0, 10, 100_000)
    target = exp_negative(x) * 2.0**64
    for away in (2.0**-36, -(2.0**-36)):
        drawn = np.minimum(target * (1 + away), 2.0**64 - 4096).astype(np.uint64)
        assert not compare_digits(drawn, x)[1][x > 1e-9].any()


def test_coins_of_an_array_are_told_apart_by_place():
    x = [Fraction(0), Fraction(900)] * 20_000
    assert bernoulli_exp(x).tolist() == [1, 0] * 20_000
    assert bernoulli_exp(np.array([0, 900] * 500)).tolist() == [1, 0] * 500
    assert bernoulli_exp(np.array([0.0, 900.5] * 500), 1000).tolist() == [1, 0] * 500
    assert toss_coins(np.array([]), [].__getitem__).tolist() == []
    assert bernoulli_exp([]).tolist() == []


def test_a_tie_in_a_later_chunk_asks_for_the_exact_value_of_its_own_place():
    size = 40_000
    asked: list[int] = []

    def exact(i: int) -> Fraction:
        asked.append(i)
        return Fraction(1, 3)

    with localcontext() as context:
        context.prec = 60
        tie = int(reference.exp(Fraction(-1, 3)) * 2**64)
    drawn = np.zeros(size, dtype=np.uint64)
    drawn[[5, 20_000, 39_999]] = tie
    chunks = iter([drawn[start : start + 2**14].tobytes() for start in range(0, size, 2**14)])
    with use_source(lambda count: bytes(8) if count == 8 else next(chunks)):
        out = toss_coins(np.full(size, 1 / 3), exact)
    assert asked == [5, 20_000, 39_999]
    assert out.all()


@pytest.mark.parametrize("p", [-1, "1.5", 2, float("nan"), True, None, "p"])
def test_what_is_no_probability_is_refused(p):
    with pytest.raises(InvalidParameter, match=r"P[12]: p must be"):
        bernoulli(p)


@pytest.mark.parametrize(
    ("x", "size", "code"),
    [
        (-1, None, "P2"), (float("nan"), None, "P1"), (True, None, "P1"),
        ([0, -1], None, "P2"), (np.array([4, -1]), None, "P2"), ([0, None], None, "P1"),
        (np.array([True]), None, "P1"), (np.array([np.nan]), None, "P1"),
        ([1, 2], 3, "P4"), ([[1, 2]], None, "P4"), (np.zeros((2, 2)), 4, "P4"),
        ([1, 2], "2", "P3"), (3, -1, "P3"),
    ],
)  # fmt: skip
def test_what_is_no_exponent_is_refused(x, size, code):
    with pytest.raises(InvalidParameter) as refusal:
        bernoulli_exp(x, size)
    assert refusal.value.code == code


@pytest.mark.parametrize("canary", [-31337, float("-31337"), "31337x", Decimal("-31337")])
def test_a_refused_array_is_not_quoted(canary):
    """Per-element exponents may depend on data, and an error is an output."""
    with pytest.raises(InvalidParameter) as refusal:
        bernoulli_exp([canary])
    assert "31337" not in str(refusal.value)
