"""Discrete Gaussian draws: the normaliser, the proposal, its acceptance, saturation."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from types import SimpleNamespace

import noise_reference as reference
import numpy as np
import pytest

from discreet.errors import InvalidParameter
from discreet.exact.balls import ends, precision
from discreet.noise import discrete_gaussian, gaussian
from discreet.noise.entropy import use_recording, use_source
from discreet.noise.gaussian import (
    _accept,
    _attempt,
    _draw_one,
    _fill,
    _Proposal,
    _proposal,
    _propose,
    half_sum,
)

LIMITS = np.iinfo(np.int64)


@pytest.mark.parametrize("sigma_squared", [Fraction(1, 5), 1, Fraction(9, 4), 400, 1000**2])
@pytest.mark.parametrize("bits", [32, 64, 128, 300])
def test_the_normaliser_is_enclosed(sigma_squared, bits):
    """Lemma 7, against Poisson summation; the ball is narrow and contains the truth."""
    with precision(bits):
        low, high = ends(half_sum(Fraction(sigma_squared)))
    with localcontext() as context:
        context.prec = reference.DIGITS
        true = (reference.theta(Fraction(sigma_squared)) - 1) / 2
        error = Fraction(Decimal(10) ** -90)
        assert low - error <= Fraction(true) <= high + error
    assert high - low < Fraction(10**8, 2**bits) * max(1, high)


@pytest.mark.parametrize("sigma_squared", [9, 1000**2])
def test_what_the_normaliser_leaves_out_is_bounded(sigma_squared, monkeypatch):
    """Stopped at terms of 2**-20 but computed to 400 bits, only the bound of the rest is left."""
    monkeypatch.setattr(gaussian, "ctx", SimpleNamespace(prec=20))
    with precision(400):
        low, high = ends(half_sum(Fraction(sigma_squared)))
    with localcontext() as context:
        context.prec = reference.DIGITS
        true = Fraction((reference.theta(Fraction(sigma_squared)) - 1) / 2)
    assert low < true < high
    assert high - low < Fraction(2000, 2**20)


def test_the_normaliser_of_a_vanishing_variance_is_enclosed_too():
    with precision(128):
        low, high = ends(half_sum(Fraction(1, 10**4)))
    assert low <= 0 < high < Fraction(1, 10**2000)


@pytest.mark.parametrize("sigma", [1025, 10**6, 2**40, 2**56])
def test_proposal_times_acceptance_is_the_law(sigma):
    """Lemma 6: P(block) * P(inner, sign) * P(accept) is proportional to exp(-z**2 / 2 sigma**2)."""
    proposal = _proposal(Fraction(sigma**2))
    width = 2**proposal.shift
    assert 512 <= sigma / width <= 1024
    scaled = Fraction(sigma**2) / width**2
    with localcontext() as context:
        context.prec = 60
        blocks = reference.half_gaussian(scaled, 30)
        ratios = []
        for block, inner, negative in [(0, 0, 0), (0, 0, 1), (3, 1, 0), (29, width - 1, 1)]:
            base = block * width
            size = base + inner + negative
            accepted = reference.exp(-Fraction(size**2 - base**2) / (2 * sigma**2))
            proposed = blocks[block] / width / 2
            stated = reference.exp(-Fraction(size**2) / (2 * sigma**2))
            ratios.append(proposed * accepted / stated)
        assert all(abs(ratio / ratios[0] - 1) < Decimal(10) ** -40 for ratio in ratios)


def acceptance_bytes(block_word: int, inner: int, shift: int, negative: int, digits: int) -> bytes:
    size = (shift + 7) // 8
    return (
        block_word.to_bytes(8, "little")
        + (inner << (8 * size - shift)).to_bytes(size, "little")
        + (negative << 7).to_bytes(1, "little")
        + digits.to_bytes(4, "little")
    )


@pytest.mark.parametrize("negative", [0, 1])
@pytest.mark.parametrize("block_word", [1, 2**63])
def test_a_scalar_is_accepted_exactly_where_the_true_digits_say(negative, block_word):
    """Near zero exp(-x) and 1 - x share 32 digits; farther out they do not."""
    proposal = _proposal(Fraction(10**12))
    inner = 2**proposal.shift - 3
    block = int(np.searchsorted(proposal.blocks.thresholds, np.uint64(block_word)))
    base = block << proposal.shift
    size = base + inner + negative
    x = Fraction(size**2 - base**2) / (2 * 10**12)
    with localcontext() as context:
        context.prec = 60
        true = reference.binary_digits(reference.exp(-x), 96)
    head, tail = true >> 64, true & (2**64 - 1)
    start = acceptance_bytes(block_word, inner, proposal.shift, negative, head)
    value = -size if negative else size
    other = acceptance_bytes(1, 5, proposal.shift, 0, 0)  # accepted at once: block 0, inner 5
    with use_recording(start + (tail - 1).to_bytes(8, "little")):
        assert _draw_one(proposal) == value
    with use_recording(start + (tail + 1).to_bytes(8, "little") + other):
        assert _draw_one(proposal) == 5


@pytest.mark.parametrize("sigma", [1025, 10**6, 2**40])
def test_arrays_are_accepted_exactly_where_the_true_digits_say(sigma):
    """32 digits, 32 more where these do not settle it, 64 more where those do not either."""
    proposal = _proposal(Fraction(sigma**2))
    width = 2**proposal.shift
    base = np.arange(0, 3000, 10, dtype=np.int64) * width
    size = base + width // 2 + 1
    exponents = [
        Fraction(int(s) ** 2 - int(b) ** 2) / (2 * sigma**2)
        for s, b in zip(size, base, strict=True)
    ]
    with localcontext() as context:
        context.prec = 80
        true = [reference.binary_digits(reference.exp(-x), 128) for x in exponents]
    for step, expected in ((-1, True), (1, False)):
        digits = [t >> 64 for t in true]
        replies = [
            np.array([d >> 32 for d in digits], dtype=np.uint32).tobytes(),
            np.array([d & (2**32 - 1) for d in digits], dtype=np.uint32).tobytes(),
            *[((t & (2**64 - 1)) + step).to_bytes(8, "little") for t in true],
        ]
        replay = iter(replies)
        with use_source(lambda _, replay=replay: next(replay)):
            accepted = _accept(proposal, base, size)
        assert accepted.all() if expected else not accepted.any()


@pytest.mark.parametrize("offset", [-2, -1, 0, 1])
def test_the_quick_test_in_doubles_accepts_nothing_too_much(offset):
    """Digits next to those of 1 - x, then only ones: accepted if and only if u < exp(-x)."""
    sigma_squared = Fraction(2**80)
    proposal = _Proposal(sigma_squared, 30, _proposal(Fraction(10**12)).blocks)
    sizes = (2.0 ** np.random.default_rng(3).uniform(10.5, 40.5, 4000)).astype(np.int64)
    exact = [Fraction(int(size) ** 2) / (2 * sigma_squared) for size in sizes]
    digits = [min(max(int((1 - x) * 2**32) + offset, 0), 2**32 - 1) for x in exact]
    first = np.array(digits, dtype=np.uint32).tobytes()
    with use_source(lambda count: first if count == len(first) else b"\xff" * count):
        accepted = _accept(proposal, np.zeros_like(sizes), sizes)
    with localcontext() as context:
        context.prec = 60
        below = [
            Fraction(d + 1, 2**32) <= Fraction(reference.exp(-x))
            for d, x in zip(digits, exact, strict=True)
        ]
    assert accepted.tolist() == below
    assert len(set(below)) == (1 if offset < 0 else 2)


def test_the_quick_test_leaves_room_for_the_rounding_of_x():
    """A multiple of 2**-32 just above exp(-x), by less than x / 2**20: not below it."""
    digits = 2**32 - 2**12 - 1
    with localcontext() as context:
        context.prec = 60
        boundary = -Fraction((Decimal(digits + 1) / 2**32).ln())
    x = boundary * (1 + Fraction(1, 2**25))
    size = np.array([2**20])
    proposal = _Proposal(Fraction(2**40) / (2 * x), 30, None)
    first = np.array([digits], dtype=np.uint32).tobytes()
    replies = iter([first])
    with use_source(lambda count: next(replies, b"\xff" * count)):
        assert _accept(proposal, np.zeros_like(size), size).tolist() == [False]


@pytest.mark.parametrize("negative", [0, 1])
def test_in_arrays_too_a_negative_draw_is_one_larger_in_size(negative):
    """z = -1 - m is accepted with exp(-(m + 1)**2 / 2 sigma**2), to the last digit."""
    sigma, shift, inner = 2**20, 11, 700
    proposal = _Proposal(Fraction(sigma**2), shift, Fixed(3))
    base = 3 << shift
    size = base + inner + negative
    with localcontext() as context:
        context.prec = 60
        x = Fraction(size**2 - base**2, 2 * sigma**2)
        true = reference.binary_digits(reference.exp(-x), 128)
    head, tail = true >> 64, true & (2**64 - 1)
    for step, expected in ((-1, True), (1, False)):
        replies = iter(
            [
                np.array([inner | negative << 63], dtype=np.uint64).tobytes(),
                np.array([head >> 32], dtype=np.uint32).tobytes(),
                np.array([head & (2**32 - 1)], dtype=np.uint32).tobytes(),
                (tail + step).to_bytes(8, "little"),
            ]
        )
        out = np.empty(1, dtype=np.int64)
        with use_source(lambda _, replies=replies: next(replies)):
            assert _propose(proposal, out).tolist() == [expected]
        assert out.tolist() == [-size if negative else size]


class Fixed:
    def __init__(self, block: int) -> None:
        self.block = block

    def fill(self, out) -> None:
        out[:] = self.block

    def one(self) -> int:
        return self.block


def test_blocks_beyond_the_reach_of_doubles_and_int64_are_decided_exactly():
    """The array path hands them to the scalar one, which saturates: no wrap, no lost tail."""
    sigma_squared = Fraction(2**112)
    shift = _proposal(sigma_squared).shift
    for block, negative, expected in [
        (2 ** (62 - shift), 0, 2**62),
        (2 ** (62 - shift), 1, -(2**62) - 1),
        (2 ** (63 - shift), 0, LIMITS.max),
        (2 ** (63 - shift), 1, LIMITS.min),
    ]:
        far = _Proposal(sigma_squared, shift, Fixed(block))
        sign = bytes([negative << 7])
        out = np.empty(3, dtype=np.int64)
        with use_source(lambda count, sign=sign: sign if count == 1 else bytes(count)):
            assert _attempt(far, block) == expected
            _fill(far, out)
        assert out.tolist() == [expected] * 3


def test_small_and_large_variances_are_spread_as_they_should():
    assert not discrete_gaussian("0.001", 10**5).any()
    assert discrete_gaussian("1e-300") == 0
    for sigma in (2**40, 2**56):
        draws = discrete_gaussian(sigma**2, 20_000).astype(float)
        assert 0.96 * sigma < draws.std() < 1.04 * sigma
        assert abs(draws.mean()) < 0.1 * sigma


@pytest.mark.parametrize(
    ("sigma_squared", "code"),
    [
        (0, "P2"), (-3, "P2"), (2**112 + 1, "P2"), (float("nan"), "P1"), (float("-inf"), "P1"),
        (True, "P1"), ("large", "P1"), (None, "P1"),
    ],
)  # fmt: skip
def test_what_is_no_variance_is_refused(sigma_squared, code):
    for size in (None, 7):
        with pytest.raises(InvalidParameter) as refusal:
            discrete_gaussian(sigma_squared, size)
        assert refusal.value.code == code
        assert "sigma_squared" in refusal.value.what
