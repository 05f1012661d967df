"""Laws against sums of their definitions, computed independently with mp."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting.gaussian_sums import (
    _euler_maclaurin,
    _series,
    gaussian_half_sum,
    gaussian_sum,
)
from discreet.accounting.law import (
    DiscreteGaussianLaw,
    DiscreteLaplaceLaw,
    FiniteLaw,
    GeometricLaw,
    IntegerLaw,
    ProductLaw,
)
from discreet.errors import InvalidParameter
from discreet.exact.balls import ball, enclose, ends, precision

mp = mpmath.MPContext()  # of our own: the shared one belongs to nobody
mp.dps = 60
SMALL = mp.mpf(10) ** -50

scales = st.fractions(min_value=Fraction(1, 20), max_value=30, max_denominator=40)
centers = st.integers(-50, 50)
points = st.integers(-60, 60)


def number(x: Fraction) -> mp.mpf:
    return mp.mpf(x.numerator) / x.denominator


def holds(bounds: tuple[Fraction, Fraction], value: mp.mpf) -> bool:
    """Whether certified bounds agree with a value known to about 50 digits."""
    low, high = map(number, bounds)
    slack = SMALL * max(abs(value), SMALL)
    return low - slack <= value <= high + slack


def weight(law: IntegerLaw, z: int) -> mp.mpf:
    """The defining formula, up to its normaliser."""
    match law:
        case DiscreteLaplaceLaw(center, scale):
            return mp.exp(-abs(z - center) / number(scale))
        case GeometricLaw(start, scale):
            return mp.exp(-(z - start) / number(scale)) if z >= start else mp.mpf(0)
        case DiscreteGaussianLaw(center, variance):
            return mp.exp(-((z - center) ** 2) / (2 * number(variance)))
    raise AssertionError(law)


def brute(law: IntegerLaw) -> dict[int, mp.mpf]:
    """All probabilities but a mass below 10**-55, by summing the definition."""
    low, high = law.window(200)
    weights = {z: weight(law, z) for z in range(low, high + 1)}
    total = mp.fsum(weights.values())
    return {z: value / total for z, value in weights.items()}


@st.composite
def integer_laws(draw: st.DrawFn) -> IntegerLaw:
    kind = draw(st.sampled_from([DiscreteLaplaceLaw, DiscreteGaussianLaw, GeometricLaw]))
    return kind(draw(centers), draw(scales))


@settings(max_examples=40, deadline=None)
@given(integer_laws(), points, points)
def test_integer_laws_are_their_definitions(law, offset, other):
    z = law.middle + offset
    masses = brute(law)
    expected = masses.get(z, mp.mpf(0))
    if expected > SMALL:
        assert holds(enclose(lambda: law.mass(z)), expected)
    tail = mp.fsum(mass for y, mass in masses.items() if y >= z)
    with precision(256):
        at_least, less, up_to = law.tail(z), law.below(z), law.cdf(z)
        parts = law.between(min(z, z + other), max(z, z + other))
        everything = law.between(None, None)
    assert holds(ends(at_least), tail) or abs(number(ends(at_least)[1]) - tail) < SMALL
    assert (at_least + less).contains(1)
    assert (up_to - law.mass(z)).overlaps(less)
    inside = mp.fsum(
        mass for y, mass in masses.items() if min(z, z + other) <= y <= max(z, z + other)
    )
    assert abs(number(ends(parts)[0]) - inside) < SMALL
    assert abs(number(ends(parts)[1]) - inside) < SMALL
    assert everything == 1


@settings(max_examples=40, deadline=None)
@given(integer_laws(), st.integers(4, 300))
def test_the_window_leaves_out_no_more_than_it_says(law, bits):
    low, high = law.window(bits)
    with precision(512):
        outside = law.below(low) + law.tail(high + 1)
        assert outside < arb(2) ** -bits


@settings(max_examples=60, deadline=None)
@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=60, max_denominator=1000),
    st.fractions(min_value=-3, max_value=3, max_denominator=60),
)
def test_gaussian_sums_on_both_sides_of_poisson(variance, shift):
    reach = 200 + 20 * int(variance)
    direct = mp.fsum(
        mp.exp(-((z - number(shift)) ** 2) / (2 * number(variance)))
        for z in range(-reach, reach + 1)
    )
    assert holds(enclose(lambda: gaussian_sum(variance, shift), bits=128), direct)


@pytest.mark.parametrize("variance", [Fraction(1, 10**6), Fraction(2) ** 40, Fraction(2) ** 120])
def test_tiny_and_huge_variances_are_certified_without_enumeration(variance):
    low, high = enclose(lambda: gaussian_sum(variance), bits=100)
    if variance < 1:
        value = 1 + 2 * mp.exp(-1 / (2 * number(variance)))
    else:  # the other terms of Poisson's formula are below exp(-2 pi**2 2**40)
        value = mp.sqrt(2 * mp.pi * number(variance))
    assert holds((low, high), value)


@pytest.mark.parametrize("variance", [Fraction(2) ** 40, Fraction(10) ** 9 / 7, Fraction(2) ** 90])
def test_tails_of_huge_variances_fit_their_masses(variance):
    """The half sum, the normaliser and the mass come from three formulas; they must agree."""
    law = DiscreteGaussianLaw(3, variance)
    sigma = int(mp.sqrt(number(variance)))
    with precision(300):
        assert (2 * law.tail(4) + law.mass(3)).contains(1)
        for z in (4, 3 + sigma, 3 + 7 * sigma, 3 + 100 * sigma, 3 - sigma):
            step = law.tail(z) - law.tail(z + 1)
            assert step.overlaps(law.mass(z))
            assert step.rel_accuracy_bits() > 90
        # The trapezium rule: the sum from z on is the integral from z - 1/2 but for O(1/variance).
        continuous = mp.erfc((sigma - mp.mpf(1) / 2) / mp.sqrt(2 * number(variance))) / 2
        assert abs(number(ends(law.tail(3 + sigma))[1]) / continuous - 1) < 1 / number(variance)


@pytest.mark.parametrize("variance", [Fraction(30), Fraction(400), Fraction(90_001, 3)])
@pytest.mark.parametrize("first", [1, 3, 40, 900])
@pytest.mark.parametrize("bits", [64, 200])
def test_euler_maclaurin_agrees_with_the_plain_sum(variance, first, bits):
    with precision(bits):
        plain = _series(variance, first, 4_000)
        formula = _euler_maclaurin(variance, first)
    assert plain.overlaps(formula)
    if first < variance:
        assert formula.rel_accuracy_bits() > bits - 24


@pytest.mark.parametrize("terms", [1, 3, 10])
def test_a_sum_cut_short_still_contains_the_whole(terms):
    with precision(200):
        whole, cut = _series(Fraction(30), 4, 4_000), _series(Fraction(30), 4, terms)
    assert cut.contains(whole)


def test_the_half_sum_gives_what_is_asked_at_high_precision():
    with precision(4_000):
        value = gaussian_half_sum(Fraction(1000), 5)
        assert value.rel_accuracy_bits() > 3_900


def test_a_mass_off_the_support_is_exactly_zero():
    for law in (DiscreteLaplaceLaw(2, 3), DiscreteGaussianLaw(2, 3), GeometricLaw(2, 3)):
        assert law.mass("two").is_zero()
        assert law.mass(True).is_zero()
        assert law.mass(Fraction(5, 2)).is_zero()
        assert law.mass(np.int64(4)).overlaps(law.mass(4))
        assert not law.mass(np.int64(4)).is_zero()
    assert GeometricLaw(2, 3).mass(1).is_zero()
    assert GeometricLaw(2, 3).support == (2, None)
    assert DiscreteLaplaceLaw(2, 3).support == (None, None)


def test_finite_laws_narrow_with_precision():
    law = FiniteLaw.proportional("abc", lambda: [ball(k).exp() for k in (2, 3, 5)])
    with precision(64):
        wide = law.mass("b")
    with precision(256):
        narrow = law.mass("b")
    assert narrow.rad() < wide.rad()
    assert wide.contains(narrow)
    expected = mp.exp(3) / (mp.exp(2) + mp.exp(3) + mp.exp(5))
    assert holds(enclose(lambda: law.mass("b"), bits=128), expected)
    assert law.mass("z").is_zero()


def test_finite_laws_evaluate_once_for_each_precision():
    calls = []

    def masses():
        calls.append(1)
        return [ball(Fraction(1, 3)), ball(Fraction(2, 3))]

    law = FiniteLaw(("a", "b"), masses)
    with precision(80):
        for _ in range(5):
            law.mass("a")
            law.mass("b")
    assert len(calls) == 1


def test_the_image_of_a_law_adds_up_what_is_merged():
    law = FiniteLaw.exact({-2: "1/8", 1: "1/4", 2: "5/8"})
    image = law.image(abs)
    assert dict(zip(image.outcomes, image.fractions, strict=True)) == {
        2: Fraction(3, 4),
        1: Fraction(1, 4),
    }
    opaque = FiniteLaw(law.outcomes, law.masses).image(abs)
    assert opaque.fractions is None
    assert opaque.mass(2).contains(Fraction(3, 4).numerator / arb(4))


def test_a_product_multiplies():
    coin = FiniteLaw.exact({0: "1/3", 1: "2/3"})
    law = ProductLaw([coin, GeometricLaw(2, 3)])
    with precision(128):
        assert law.mass((1, 4)).overlaps(coin.mass(1) * GeometricLaw(2, 3).mass(4))
    assert law.mass((1, 1)).is_zero()
    assert law.mass((1,)).is_zero()
    assert law.mass("not a tuple").is_zero()


@pytest.mark.parametrize(
    "build",
    [
        lambda: DiscreteLaplaceLaw(0, 0),
        lambda: DiscreteLaplaceLaw(0, -2),
        lambda: DiscreteLaplaceLaw(Fraction(1, 2), 2),
        lambda: DiscreteGaussianLaw(0, float("nan")),
        lambda: DiscreteGaussianLaw(0, float("inf")),
        lambda: GeometricLaw("x", 2),
        lambda: FiniteLaw((), list),
        lambda: FiniteLaw(("a", "a"), list),
        lambda: FiniteLaw.exact({}),
        lambda: FiniteLaw.exact({"a": "1/2", "b": "1/3"}),
        lambda: FiniteLaw.exact({"a": "3/2", "b": "-1/2"}),
        lambda: FiniteLaw(("a", "b"), lambda: [ball(1)]).mass("a"),
        lambda: FiniteLaw(("a", "b"), lambda: [ball(2), ball(-1)]).mass("a"),
        lambda: FiniteLaw(("a", "b"), lambda: [ball(1), ball(1)]).mass("a"),
        lambda: ProductLaw(()),
        lambda: ProductLaw((3,)),
    ],
)
def test_what_is_not_a_law_is_refused(build):
    with pytest.raises(InvalidParameter) as refusal:
        build()
    assert refusal.value.fix
