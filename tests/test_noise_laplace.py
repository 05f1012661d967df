"""Geometric and discrete Laplace draws: digits, signs, saturation, refusals."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import noise_reference as reference
import numpy as np
import pytest

from discreet.errors import InvalidParameter
from discreet.noise import discrete_laplace, geometric
from discreet.noise.entropy import use_recording
from discreet.noise.laplace import _digit, _Digits, _draw_one, _fill, _lower, _one_sided, _shift


class Fixed:
    """A table that gives the values it was told."""

    def __init__(self, *values: int) -> None:
        self.values = values

    def at(self, digits) -> int:
        (value,) = self.values
        return value

    def fill(self, out) -> None:
        out[:] = self.values


def combined(top: int, digits: list[tuple[int, int]]) -> int:
    """z = m or -1 - m, where m is written with the given digits (and their bits) behind the top."""
    m = top if top >= 0 else -1 - top
    for digit, bits in digits:
        m = m * 2**bits + digit
    return m if top >= 0 else -1 - m


@pytest.mark.parametrize("top", range(-5, 5))
@pytest.mark.parametrize("middle", [0, 1, 6, 7])
def test_digits_stand_behind_the_leading_part_in_order(top, middle):
    lows = np.arange(32)
    out = np.empty(32, dtype=np.int64)
    _fill(_Digits(Fixed(*[top] * 32), ((Fixed(*[middle] * 32), 3), (Fixed(*lows), 5))), out)
    expected = [combined(top, [(middle, 3), (int(low), 5)]) for low in lows]
    assert out.tolist() == expected
    assert expected == [
        _draw_one(_Digits(Fixed(top), ((Fixed(middle), 3), (Fixed(int(low)), 5)))) for low in lows
    ]


@pytest.mark.parametrize("scale", [33, 1000, Fraction(10**7, 3), 2**40, 2**56])
def test_the_digits_of_a_scale_multiply_to_its_law(scale):
    """Lemmas 3 and 4: P(top) P(digit) ... = P(z), with each factor written down on its own."""
    scale = Fraction(scale)
    shift = _shift(scale)
    widths = [bits for _, bits in _lower(scale, shift)]
    assert sum(widths) == shift
    assert 16 < scale / 2**shift <= 32
    with localcontext() as context:
        context.prec = 60
        q = reference.exp(-1 / scale)
        tops = reference.laplace_blocks(scale, 2**shift, 40)
        for position, pattern in [(0, 0), (1, 1), (2, 2), (7, 3), (38, 0), (39, 5)]:
            top = position // 2 if position % 2 == 0 else -1 - position // 2
            chosen = [(pattern * 37 + 11) % 2**bits for bits in widths]
            probability, below = tops[position], shift
            for digit, bits in zip(chosen, widths, strict=True):
                below -= bits
                masses = reference.digit(Fraction(2**below) / scale, bits)
                probability *= masses[digit]
            z = combined(top, list(zip(chosen, widths, strict=True)))
            stated = (1 - q) / (1 + q) * reference.exp(-abs(z) / scale)
            assert abs(probability / stated - 1) < Decimal(10) ** -35


@pytest.mark.parametrize("scale", [1000, 2**40, 2**56])
def test_each_digit_uses_the_table_of_its_place(scale):
    """The digit worth 2**k at scale s is the one of step 2**k / s."""
    below = _shift(Fraction(scale))
    for table, bits in _one_sided(Fraction(scale)).lower:
        below -= bits
        assert table is _digit(Fraction(2**below, scale), bits)
    assert below == 0


def test_values_beyond_int64_saturate():
    shift = _shift(Fraction(2**56))
    bound = 2 ** (63 - shift)
    lower = tuple((Fixed(*[2**bits - 1] * 4), bits) for _, bits in _lower(Fraction(2**56), shift))
    out = np.empty(4, dtype=np.int64)
    _fill(_Digits(Fixed(bound - 1, bound, -bound, -bound - 1), lower), out)
    limits = np.iinfo(np.int64)
    assert out.tolist() == [limits.max, limits.max, limits.min, limits.min]
    zeros = tuple((Fixed(0, 0, 0, 0), bits) for _, bits in _lower(Fraction(2**56), shift))
    _fill(_Digits(Fixed(bound - 1, bound, -bound, -bound - 1), zeros), out)
    assert out.tolist() == [(bound - 1) << shift, limits.max, ~((bound - 1) << shift), limits.min]
    for top, expected in [
        (bound, limits.max),
        (10**6 * bound, limits.max),
        (-bound - 1, limits.min),
    ]:
        tables = tuple((Fixed(0), bits) for _, bits in lower)
        assert _draw_one(_Digits(Fixed(top), tables)) == expected


def test_the_smallest_scale_gives_nearly_always_zero():
    assert not discrete_laplace(Fraction(1, 1000), 10**5).any()
    assert not geometric("0.001", 10**5).any()
    assert discrete_laplace("1e-300") == 0
    # P(0) = 1 - 2**-1441.7 and P(0 or -1) = 1 - 2**-1442.7: a run of 1441, 1442 or 1443 ones.
    for ones, expected in ((1441, 0), (1442, -1), (1443, 1)):
        digits = (2**ones - 1) << (24 * 64 - ones)
        words = [digits >> (64 * place) & (2**64 - 1) for place in reversed(range(24))]
        with use_recording(b"".join(word.to_bytes(8, "little") for word in words)):
            assert discrete_laplace(Fraction(1, 1000)) == expected


def test_the_largest_scales_are_spread_as_they_should():
    for scale in (2**40, 2**56):
        draws = discrete_laplace(scale, 10_000)
        assert 0.9 * scale < np.abs(draws.astype(float)).mean() < 1.1 * scale
        assert 0.45 < (draws < 0).mean() < 0.55
        assert 0.45 < (draws & 1).mean() < 0.55


@pytest.mark.parametrize("draw", [discrete_laplace, geometric])
@pytest.mark.parametrize("same", ["2.5", 2.5, Fraction(5, 2), Decimal("2.50"), np.float64(2.5)])
def test_a_scale_means_the_same_however_it_is_written(draw, same):
    with use_recording(bytes(range(7, 47))):
        expected = draw(Fraction(5, 2), 5)
    with use_recording(bytes(range(7, 47))):
        assert (draw(same, 5) == expected).all()


@pytest.mark.parametrize("draw", [discrete_laplace, geometric])
@pytest.mark.parametrize(
    ("scale", "code"),
    [
        (0, "P2"), (-3, "P2"), ("-0.5", "P2"), (2**56 + 1, "P2"), ("1e900", "P2"),
        (float("nan"), "P1"), (float("inf"), "P1"), (True, "P1"), ("two", "P1"), (None, "P1"),
        (3 + 4j, "P1"), ([3], "P1"), (Decimal("NaN"), "P1"), (Decimal("1e999999999"), "P1"),
    ],
)  # fmt: skip
def test_what_is_no_scale_is_refused(draw, scale, code):
    for size in (None, 7):
        with pytest.raises(InvalidParameter) as refusal:
            draw(scale, size)
        assert refusal.value.code == code
        assert "scale" in refusal.value.what
