"""Divergences against brute force, identities of the theory, and published numbers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import pytest
from flint import arb
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet.accounting.divergence import (
    approximate_max_divergence,
    both_ways,
    hockey_stick,
    kl,
    max_divergence,
    privacy_curve,
    renyi,
    rho,
    total_variation,
)
from discreet.accounting.law import (
    DiscreteGaussianLaw,
    DiscreteLaplaceLaw,
    FiniteLaw,
    GeometricLaw,
    ProductLaw,
)
from discreet.errors import InvalidParameter
from discreet.exact.balls import ball, log_bounds

mp = mpmath.MPContext()  # of our own: the shared one belongs to nobody
mp.dps = 60
SLACK = mp.mpf(10) ** -45
SIZES = st.integers(2, 6)

epsilons = st.fractions(min_value=-2, max_value=4, max_denominator=16)
deltas = st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(9, 10), max_denominator=1000)
alphas = st.fractions(min_value=Fraction(1, 4), max_value=12, max_denominator=8)


def number(x) -> mpmath.mpf:
    return mp.inf if x == math.inf else mp.mpf(x.numerator) / x.denominator


def holds(bounds, value) -> bool:
    low, high = map(number, bounds)
    return low - SLACK <= value <= high + SLACK


def close(bounds) -> bool:
    low, high = bounds
    return low == high or high - low <= max(abs(high), abs(low)) / 2**60 or high <= 2.0**-250


def finite_laws(draw: st.DrawFn, *, zeros: bool) -> tuple[FiniteLaw, FiniteLaw]:
    size = draw(SIZES)
    laws = []
    for _ in range(2):
        weights = draw(st.lists(st.integers(0 if zeros else 1, 50), min_size=size, max_size=size))
        assume(sum(weights))
        laws.append(
            FiniteLaw.exact([(z, Fraction(w, sum(weights))) for z, w in enumerate(weights)])
        )
    return laws[0], laws[1]


@st.composite
def pairs(draw: st.DrawFn, zeros: bool = True) -> tuple[FiniteLaw, FiniteLaw]:
    """Two random laws on a few outcomes; sometimes known only through their balls."""
    p, q = finite_laws(draw, zeros=zeros)
    if draw(st.booleans()):
        p, q = (FiniteLaw(law.outcomes, law.masses) for law in (p, q))
    return p, q


def brute_hockey(p, q, epsilon):
    """Over all events, not only the best one."""
    return max(
        sum(p[z] for z in event) - mp.exp(number(epsilon)) * sum(q[z] for z in event)
        for size in range(len(p) + 1)
        for event in itertools.combinations(range(len(p)), size)
    )


def brute_approximate(p, q, delta):
    best = -mp.inf
    for size in range(1, len(p) + 1):
        for event in itertools.combinations(range(len(p)), size):
            over, under = sum(p[z] for z in event) - number(delta), sum(q[z] for z in event)
            if over > SLACK:
                best = max(best, mp.log(over / under) if under else mp.inf)
    return best


def brute_renyi(p, q, alpha):
    a = number(alpha)
    if a > 1 and any(x and not y for x, y in zip(p, q, strict=True)):
        return mp.inf
    total = mp.fsum(x**a * y ** (1 - a) for x, y in zip(p, q, strict=True) if x and y)
    return mp.log(total) / (a - 1) if total else mp.inf


def brute_kl(p, q):
    if any(x and not y for x, y in zip(p, q, strict=True)):
        return mp.inf
    return mp.fsum(x * mp.log(x / y) for x, y in zip(p, q, strict=True) if x)


@st.composite
def known_pairs(draw: st.DrawFn):
    """Laws as the library sees them, and their probabilities as brute force does."""
    p, q = finite_laws(draw, zeros=True)
    exact = [number(x) for x in p.fractions], [number(x) for x in q.fractions]
    if draw(st.booleans()):
        p, q = (FiniteLaw(law.outcomes, law.masses) for law in (p, q))
    return p, q, *exact


# --- brute force ---------------------------------------------------------------------------


@settings(max_examples=120, deadline=None)
@given(known_pairs(), epsilons)
def test_hockey_stick_is_the_best_event(laws, epsilon):
    p, q, x, y = laws
    bounds = hockey_stick(p, q, epsilon)
    assert holds(bounds, brute_hockey(x, y, epsilon))
    assert close(bounds)


@settings(max_examples=120, deadline=None)
@given(known_pairs(), deltas)
def test_approximate_max_divergence_is_the_best_event(laws, delta):
    p, q, x, y = laws
    bounds = approximate_max_divergence(p, q, delta)
    assert holds(bounds, brute_approximate(x, y, delta)) or _borderline(x, y, delta)


def _borderline(x, y, delta) -> bool:
    """An event that Q never shows has probability exactly delta: only brute force may round."""
    alone = mp.fsum(a for a, b in zip(x, y, strict=True) if not b)
    return abs(alone - number(delta)) < SLACK


@settings(max_examples=120, deadline=None)
@given(known_pairs(), alphas)
def test_renyi_kl_and_max_are_their_sums(laws, alpha):
    p, q, x, y = laws
    assert holds(kl(p, q), brute_kl(x, y))
    expected = brute_kl(x, y) if alpha == 1 else brute_renyi(x, y, alpha)
    assert holds(renyi(p, q, alpha), expected)
    if all(b for a, b in zip(x, y, strict=True) if a):
        assert close(kl(p, q))
        assert close(renyi(p, q, alpha))
        assert holds(
            max_divergence(p, q), max(mp.log(a / b) for a, b in zip(x, y, strict=True) if a)
        )
    else:
        assert max_divergence(p, q) == (math.inf, math.inf)


def laplace_pairs():
    centers = st.integers(-9, 9)
    scales = st.fractions(min_value=Fraction(1, 5), max_value=4, max_denominator=10)
    return st.tuples(centers, centers, scales).map(
        lambda t: (DiscreteLaplaceLaw(t[0], t[2]), DiscreteLaplaceLaw(t[1], t[2]))
    )


def gaussian_pairs():
    centers = st.integers(-5, 5)
    variances = st.fractions(min_value=Fraction(1, 5), max_value=6, max_denominator=10)
    return st.tuples(centers, centers, variances).map(
        lambda t: (DiscreteGaussianLaw(t[0], t[2]), DiscreteGaussianLaw(t[1], t[2]))
    )


def enumerated(law, low, high):
    """The defining weights, normalised; what lies outside is below 10**-40."""
    if isinstance(law, DiscreteLaplaceLaw):
        weights = [mp.exp(-abs(z - law.center) / number(law.scale)) for z in range(low, high)]
    else:
        variance = number(law.sigma_squared)
        weights = [mp.exp(-((z - law.center) ** 2) / (2 * variance)) for z in range(low, high)]
    total = mp.fsum(weights)
    return [weight / total for weight in weights]


INFINITE = given(st.one_of(laplace_pairs(), gaussian_pairs()), epsilons, alphas)


@settings(max_examples=10, deadline=None)
@INFINITE
def test_infinite_laws_agree_with_long_sums(laws, epsilon, alpha):
    check_long_sums(laws, epsilon, alpha)


@pytest.mark.soak
@settings(max_examples=300, deadline=None)
@INFINITE
def test_many_infinite_laws_agree_with_long_sums(laws, epsilon, alpha):
    check_long_sums(laws, epsilon, alpha)


def check_long_sums(laws, epsilon, alpha):
    """Every divergence of two laws against the defining sum over 900 outcomes."""
    p, q = laws
    x, y = (enumerated(law, -450, 450) for law in laws)
    tolerance = mp.mpf(10) ** -35
    growth = mp.exp(number(epsilon))
    expected = mp.fsum(max(0, a - growth * b) for a, b in zip(x, y, strict=True))
    low, high = map(number, hockey_stick(p, q, epsilon))
    assert low - tolerance <= expected <= high + tolerance
    variation = mp.fsum(abs(a - b) for a, b in zip(x, y, strict=True)) / 2
    low, high = map(number, total_variation(p, q))
    assert low - tolerance <= variation <= high + tolerance
    assume(alpha < 4)  # higher orders shift the sum out of the range summed here
    expected = brute_kl(x, y) if alpha == 1 else brute_renyi(x, y, alpha)
    low, high = map(number, renyi(p, q, alpha))
    assert low - tolerance <= expected <= high + tolerance
    low, high = map(number, kl(p, q))
    assert low - tolerance <= brute_kl(x, y) <= high + tolerance
    for bounds in (renyi(p, q, alpha), kl(p, q), hockey_stick(p, q, epsilon)):
        assert close(bounds)


# --- identities of the theory --------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(laplace_pairs())
def test_laplace_has_exactly_its_pure_epsilon(laws):
    p, q = laws
    exact = Fraction(abs(p.center - q.center)) / p.scale
    assert max_divergence(p, q) == (exact, exact)
    assert hockey_stick(p, q, exact) == (0, 0)
    if exact:
        assert hockey_stick(p, q, exact * Fraction(99, 100))[0] > 0


@settings(max_examples=60, deadline=None)
@given(gaussian_pairs(), st.integers(2, 9))
def test_gaussian_renyi_is_that_of_the_continuous_one_at_whole_orders(laws, alpha):
    p, q = laws
    exact = alpha * Fraction((p.center - q.center) ** 2) / (2 * p.sigma_squared)
    assert renyi(p, q, alpha) == (exact, exact)
    assert renyi(p, q, alpha + Fraction(1, 3))[1] <= exact / alpha * (alpha + Fraction(1, 3))
    assert rho(p, q) == (exact / alpha, exact / alpha)
    assert max_divergence(p, q) == ((math.inf,) * 2 if exact else (0, 0))


@settings(max_examples=60, deadline=None)
@given(pairs())
def test_total_variation_is_symmetric_and_the_hockey_stick_at_zero(laws):
    p, q = laws
    there, back = total_variation(p, q), total_variation(q, p)
    assert there == hockey_stick(p, q, 0)
    assert there[0] <= back[1]
    assert back[0] <= there[1]


@settings(max_examples=60, deadline=None)
@given(pairs(), epsilons, deltas, alphas, st.integers(1, 3))
def test_post_processing_never_adds(laws, epsilon, delta, alpha, buckets):
    p, q = laws
    images = [law.image(lambda z: z % buckets) for law in laws]
    for divergence, parameters in (
        (hockey_stick, (epsilon,)),
        (approximate_max_divergence, (delta,)),
        (max_divergence, ()),
        (renyi, (alpha,)),
        (kl, ()),
    ):
        assert divergence(*images, *parameters)[0] <= divergence(p, q, *parameters)[1]


@settings(max_examples=60, deadline=None)
@given(pairs(), alphas, alphas)
def test_renyi_grows_with_its_order_from_kl_to_max(laws, one, other):
    p, q = laws
    low, high = sorted((one, other))
    assert renyi(p, q, low)[0] <= renyi(p, q, high)[1]
    assert renyi(p, q, high)[0] <= max_divergence(p, q)[1]
    assert kl(p, q)[0] <= renyi(p, q, 1 + high)[1]


def test_renyi_tends_to_kl_and_to_max_divergence():
    p, q = FiniteLaw.exact({0: "1/5", 1: "4/5"}), FiniteLaw.exact({0: "2/3", 1: "1/3"})
    near = renyi(p, q, 1 + Fraction(1, 10**12))
    assert abs(float(near[1] - kl(p, q)[0])) < 1e-11
    far = renyi(p, q, 10**6)
    assert 0 < float(max_divergence(p, q)[0] - far[1]) < 1e-5


@settings(max_examples=60, deadline=None)
@given(pairs(), deltas)
def test_approximate_max_divergence_inverts_the_hockey_stick(laws, delta):
    p, q = laws
    lower, upper = approximate_max_divergence(p, q, delta)
    if upper != math.inf:
        assert hockey_stick(p, q, upper)[0] <= delta
        assert hockey_stick(p, q, lower - Fraction(1, 10**9))[1] >= delta
    assert lower <= max_divergence(p, q)[1]


def test_approximate_max_divergence_of_equal_laws_is_negative():
    """The definition's best event is then everything: ln(1 - delta)."""
    law = DiscreteGaussianLaw(3, 7)
    lower, upper = approximate_max_divergence(law, law, "0.1")
    exact = log_bounds(Fraction(9, 10))
    assert lower <= exact[1]
    assert exact[0] <= upper < 0


@settings(max_examples=30, deadline=None)
@given(st.lists(laplace_pairs(), min_size=2, max_size=3), epsilons, alphas)
def test_products_add_logarithms_and_agree_with_enumeration(coordinates, epsilon, alpha):
    p, q = (ProductLaw([pair[side] for pair in coordinates]) for side in (0, 1))
    for divergence, parameters in ((kl, ()), (renyi, (alpha,)), (max_divergence, ())):
        parts = [divergence(*pair, *parameters) for pair in coordinates]
        assert divergence(p, q, *parameters) == tuple(map(sum, zip(*parts, strict=True)))
    bounds = hockey_stick(p, q, epsilon)
    assert close(bounds)
    assert holds(bounds, merged_hockey(coordinates, epsilon))


def merged_hockey(coordinates, epsilon):
    """All tuples of outcomes, each infinite side merged (its ratio is constant)."""
    tables = []
    for p, q in coordinates:
        low, high = sorted((p.center, q.center))
        table = []
        for z in range(low, high + 1):
            sides = [], []
            for law, side in zip((p, q), sides, strict=True):
                ratio = mp.exp(-1 / number(law.scale))
                mass = (1 - ratio) / (1 + ratio) * ratio ** abs(z - law.center)
                # A geometric series outwards from each end.
                ends_here = (z == low) + (z == high)
                side.append(mass * (1 + ends_here * ratio / (1 - ratio)))
            table.append((sides[0][0], sides[1][0]))
        tables.append(table)
    growth = mp.exp(number(epsilon))
    return mp.fsum(
        max(0, mp.fprod(x for x, _ in row) - growth * mp.fprod(y for _, y in row))
        for row in itertools.product(*tables)
    )


def test_products_of_gaussians_are_one_gaussian():
    """Two shifts of 3 and 4 at one variance are a shift of 5, for the continuous law; the
    discrete product must come close at a large variance."""
    p = ProductLaw([DiscreteGaussianLaw(0, 300), DiscreteGaussianLaw(0, 300)])
    q = ProductLaw([DiscreteGaussianLaw(3, 300), DiscreteGaussianLaw(4, 300)])
    low, high = hockey_stick(p, q, "0.25")
    sigma, epsilon = mp.sqrt(300) / 5, mp.mpf("0.25")
    exact = mp.ncdf(1 / (2 * sigma) - epsilon * sigma) - mp.exp(epsilon) * mp.ncdf(
        -1 / (2 * sigma) - epsilon * sigma
    )
    assert close((low, high))
    assert abs(number(high) - exact) < 1e-4
    assert rho(p, q) == (Fraction(25, 600), Fraction(25, 600))


@settings(max_examples=25, deadline=None)
@given(st.one_of(pairs(zeros=False), laplace_pairs()))
def test_rho_is_the_supremum_over_orders(laws):
    p, q = laws
    low, high = rho(p, q)
    assert low <= high <= low * (1 + Fraction(1, 2**19)) or high < Fraction(1, 2**79)
    for alpha in (1, "1.001", "1.1", "1.5", 2, 3, 5, 10, 40, 1000):
        order = Fraction(str(alpha))
        assert renyi(p, q, order)[0] / order <= high
    # Bun and Steinke (2016), Proposition 3.3: a pure bound gives half its square.
    top = max_divergence(p, q)[1], max_divergence(q, p)[1]
    assert low <= max(top) ** 2 / 2


def test_rho_where_the_supremum_is_neither_at_one_nor_at_infinity():
    """A rare event ten times likelier: checked on a fine grid of orders."""
    p, q = FiniteLaw.exact({0: "1/100", 1: "99/100"}), FiniteLaw.exact({0: "1/1000", 1: "999/1000"})
    low, high = rho(p, q)
    x, y = [mp.mpf(1) / 100, mp.mpf(99) / 100], [mp.mpf(1) / 1000, mp.mpf(999) / 1000]
    grid = [Fraction(1) + Fraction(k, 500) for k in range(1, 5000)]
    best = max(grid, key=lambda alpha: brute_renyi(x, y, alpha) / number(alpha))
    assert 2 < best < 9
    value = brute_renyi(x, y, best) / number(best)
    assert number(low) * (1 - mp.mpf(10) ** -4) < value <= number(high)


def test_rho_where_the_supremum_is_at_a_high_order():
    """A very rare event that is a thousand times likelier: nothing shows at orders below four."""
    rare, rarer = Fraction(1, 10**6), Fraction(1, 10**9)
    p, q = FiniteLaw.exact({0: rare, 1: 1 - rare}), FiniteLaw.exact({0: rarer, 1: 1 - rarer})
    low, high = rho(p, q)
    at = {order: renyi(p, q, order)[0] / order for order in (2, 4, 5, 6, 7, 20)}
    assert max(at, key=at.get) in (5, 6)
    assert at[4] * Fraction(11, 10) < max(at.values()) <= high
    assert low <= high <= low * (1 + Fraction(1, 2**19))


def test_both_ways_takes_the_larger_in_either_order():
    near, far = GeometricLaw(2, 3), GeometricLaw(5, 3)
    assert both_ways(max_divergence, near, far) == (math.inf, math.inf)
    assert both_ways(max_divergence, far, near) == (math.inf, math.inf)
    p, q = FiniteLaw.exact({0: "1/10", 1: "9/10"}), FiniteLaw.exact({0: "1/2", 1: "1/2"})
    for one, other in ((p, q), (q, p)):
        assert both_ways(renyi, one, other, 3) == max(renyi(p, q, 3), renyi(q, p, 3))


def test_geometric_laws_see_only_one_way():
    near, far = GeometricLaw(2, 3), GeometricLaw(5, 3)
    assert max_divergence(near, far) == (math.inf, math.inf)
    assert kl(near, far) == (math.inf, math.inf)
    assert renyi(near, far, 2) == (math.inf, math.inf)
    assert max_divergence(far, near) == (1, 1)
    assert renyi(far, near, 3)[1] - 1 < Fraction(1, 2**60)
    # P starts at 2, Q at 5: what Q never shows has probability 1 - exp(-1).
    assert float(hockey_stick(near, far, 9)[0]) == pytest.approx(1 - math.exp(-1), abs=1e-15)
    assert approximate_max_divergence(near, far, "0.7")[1] < 0
    assert approximate_max_divergence(near, far, "0.6") == (math.inf, math.inf)


def test_laws_of_different_shapes_are_bounded_not_guessed():
    p, q = DiscreteGaussianLaw(0, 10), DiscreteLaplaceLaw(1, 3)
    x, y = (enumerated(law, -900, 900) for law in (p, q))
    low, high = hockey_stick(p, q, "0.5")
    growth = mp.exp(mp.mpf("0.5"))
    assert holds((low, high), mp.fsum(max(0, a - growth * b) for a, b in zip(x, y, strict=True)))
    low, high = kl(p, q)
    assert number(low) <= brute_kl(x, y)
    assert high == math.inf
    finite = FiniteLaw.exact({0: "1/2", 40: "1/2"})
    assert max_divergence(q, finite)[1] == math.inf
    assert hockey_stick(finite, q, 2)[0] > Fraction(1, 3)


class ShortSighted(DiscreteLaplaceLaw):
    """A law whose window leaves out much more than it should: the rest is then not negligible."""

    __slots__ = ()

    def window(self, bits):
        return self.center - 3, self.center + 3


def test_what_is_left_out_is_bounded_whatever_its_size():
    p, q = ShortSighted(0, Fraction(3)), ShortSighted(1, Fraction(7, 2))
    x, y = (enumerated(law, -600, 600) for law in (p, q))
    growth = mp.exp(mp.mpf("-1.5"))
    exact = mp.fsum(max(0, a - growth * b) for a, b in zip(x, y, strict=True))
    low, high = map(number, hockey_stick(p, q, "-1.5"))
    assert low < exact < high < low + mp.mpf("0.4")
    for alpha in ("0.25", "0.75"):
        low, high = map(number, renyi(p, q, alpha))
        assert low < brute_renyi(x, y, Fraction(alpha)) < high < mp.inf
    low, high = renyi(p, q, 3)
    assert 0 < number(low) < brute_renyi(x, y, Fraction(3))
    assert high == math.inf
    assert 0 < number(kl(p, q)[0]) < brute_kl(x, y)
    assert approximate_max_divergence(p, q, "0.05")[1] == math.inf


def test_products_of_finite_laws_compare_with_lists_of_tuples():
    coin = FiniteLaw.exact({0: "1/4", 1: "3/4"})
    listed = FiniteLaw.exact({(0, 0): "1/4", (0, 1): "1/4", (1, 0): "1/4", (1, 1): "1/4"})
    low, high = max_divergence(ProductLaw([coin, coin]), listed)
    exact = log_bounds(Fraction(9, 4))
    assert low <= exact[1]
    assert exact[0] <= high


def test_the_curve_falls_and_is_the_hockey_stick():
    p, q = DiscreteGaussianLaw(0, 4), DiscreteGaussianLaw(2, 4)
    curve = privacy_curve(p, q, [Fraction(k, 4) for k in range(9)])
    assert [point[0] for point in curve] == [Fraction(k, 4) for k in range(9)]
    for (epsilon, low, high), (_, after, _) in itertools.pairwise(curve):
        assert (low, high) == hockey_stick(p, q, epsilon)
        assert after < low


# --- published numbers ---------------------------------------------------------------------


def test_published_deltas():
    """Google's dp_accounting tests: discrete Laplace of parameter 1/2 at a distance of 4;
    the continuous Laplace rows are its limits on a fine grid."""
    p, q = DiscreteLaplaceLaw(0, 2), DiscreteLaplaceLaw(4, 2)
    low, high = hockey_stick(p, q, 1)
    assert float(low) == pytest.approx(0.39346934, abs=1e-8)
    assert float(high) == pytest.approx(0.39346934, abs=1e-8)
    assert hockey_stick(p, q, 2) == (0, 0)
    fine = 2**30
    p, q = DiscreteLaplaceLaw(0, fine), DiscreteLaplaceLaw(fine, fine)
    assert float(hockey_stick(p, q, 0)[1]) == pytest.approx(0.39346934, abs=1e-8)
    p, q = DiscreteGaussianLaw(0, fine**2), DiscreteGaussianLaw(fine, fine**2)
    assert float(hockey_stick(p, q, 1)[1]) == pytest.approx(0.12693674, abs=1e-8)
    assert float(hockey_stick(p, q, 2)[1]) == pytest.approx(0.02092364, abs=1e-8)


def test_published_discrete_gaussian():
    """IBM's discrete-gaussian-differential-privacy: delta at epsilon = 1; Google's least sigmas."""
    low, high = hockey_stick(DiscreteGaussianLaw(0, 1), DiscreteGaussianLaw(1, 1), 1)
    assert float(low) <= 0.14135133940562192 <= float(high)
    for epsilon, delta, least in ((1, "0.12693674", "1.041"), (16, "1e-5", "0.306")):
        too_small, enough = ((Fraction(least) + Fraction(offset, 1000)) ** 2 for offset in (-1, 1))
        target = Fraction(delta)
        assert hockey_stick(*shifted(too_small), epsilon)[0] > target
        assert hockey_stick(*shifted(enough), epsilon)[1] < target


def shifted(variance):
    return DiscreteGaussianLaw(0, variance), DiscreteGaussianLaw(1, variance)


def test_a_value_too_small_to_print_is_still_bounded():
    p, q = DiscreteGaussianLaw(0, Fraction(2) ** 40), DiscreteGaussianLaw(1, Fraction(2) ** 40)
    assert hockey_stick(p, q, 10) == (0, Fraction(1, 2**256))


# --- refusals ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ask",
    [
        lambda p, q: hockey_stick(p, q, float("nan")),
        lambda p, q: hockey_stick(p, q, "inf"),
        lambda p, q: renyi(p, q, 0),
        lambda p, q: renyi(p, q, -2),
        lambda p, q: approximate_max_divergence(p, q, -1),
        lambda p, q: approximate_max_divergence(p, q, 1),
        lambda p, q: kl(p, 3),
        lambda p, q: kl(p, ProductLaw([q])),
        lambda p, q: kl(ProductLaw([p, p]), ProductLaw([q])),
        lambda p, q: hockey_stick(DiscreteGaussianLaw(0, 10**14), DiscreteLaplaceLaw(0, 10**7), 1),
    ],
)
def test_bad_input_is_refused(ask):
    p, q = DiscreteLaplaceLaw(0, 2), DiscreteLaplaceLaw(3, 2)
    with pytest.raises(InvalidParameter) as refusal:
        ask(p, q)
    assert refusal.value.why
    assert refusal.value.fix


def test_certainty_about_nothing_is_not_claimed():
    """A law whose balls are hopelessly wide gives wide bounds, never wrong ones."""
    vague = FiniteLaw(("a", "b"), lambda: [ball(Fraction(1, 2)) + arb(0, 0.5)] * 2)
    sure = FiniteLaw.exact({"a": "1/2", "b": "1/2"})
    assert max_divergence(sure, vague) == (0, math.inf)
    assert kl(sure, vague)[1] == math.inf
    low, high = hockey_stick(vague, sure, 0)
    assert low == 0
    assert high >= Fraction(1, 2)
