"""What the founding texts misprint about numeric mechanisms, each built as printed and convicted.

The audit is exact: the divergence of the two laws at neighbouring inputs,
certified from below, exceeds what the text promises.  Beside each mutant the
mechanism of this library passes the same audit.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from contract.numeric_cases import line, star

from discreet.accounting.divergence import hockey_stick, max_divergence
from discreet.accounting.law import DiscreteGaussianLaw, DiscreteLaplaceLaw, FiniteLaw, ProductLaw
from discreet.exact.balls import ball, sqrt_up
from discreet.mechanisms import Gaussian, Grid, HammingCube, Laplace, MetricNoise
from discreet.mechanisms.gaussian import gaussian_delta

SENSITIVITY = 3
EPSILON = Fraction(1, 2)
ENOUGH = 1 + Fraction(1, 2**40)  # a certified upper end lies this little above an attained bound


def convicted(first, second, epsilon) -> bool:
    """Certainly more than epsilon apart."""
    return max_divergence(first, second)[0] > epsilon


def acquitted(first, second, epsilon) -> bool:
    """Certainly within epsilon."""
    return max_divergence(first, second)[1] <= epsilon * ENOUGH


# --- DMNS Definition 3.2 and equation (4): exp(-lambda |y|) with lambda = S / epsilon ---------


def test_the_density_of_definition_3_2_as_printed():
    """Density proportional to exp(-lambda |y|), lambda = S/epsilon: the scale upside down."""
    printed = EPSILON / SENSITIVITY
    assert convicted(
        DiscreteLaplaceLaw(40, printed), DiscreteLaplaceLaw(40 + SENSITIVITY, printed), EPSILON
    )
    right = Laplace(sensitivity=SENSITIVITY, epsilon=EPSILON)
    assert acquitted(right.law(40), right.law(40 + SENSITIVITY), EPSILON)


# --- D06 after Theorem 4: sigma > epsilon / S, "variance k / epsilon" ---------------------------


@pytest.mark.parametrize(
    "scale",
    [EPSILON / SENSITIVITY, sqrt_up(SENSITIVITY / (2 * EPSILON))],
    ids=["scale epsilon/S", "variance S/epsilon"],
)
def test_the_scale_of_d06_as_printed(scale):
    """A Laplace variable of scale b has variance 2 b**2, so variance S/epsilon is far too small."""
    assert convicted(
        DiscreteLaplaceLaw(40, scale), DiscreteLaplaceLaw(40 + SENSITIVITY, scale), EPSILON
    )


# --- DMNS equation (6): exp(+epsilon d / 2S), and where the factor 2 may go ---------------------


def metric_law(space, point, rate) -> FiniteLaw:
    row = space.multiples[space.index_of(point)]
    return FiniteLaw.proportional(space.points, lambda: [ball(-rate * d).exp() for d in row])


def test_the_sign_of_equation_6_as_printed():
    """With a plus the answer is likeliest far from the truth: private if finite, and wrong."""
    space = line(9)
    printed = metric_law(space, 2, -EPSILON / 4)
    right = MetricNoise(space=space, sensitivity=2, epsilon=EPSILON)
    assert printed.mass(8) > printed.mass(2)
    assert right.law(2).mass(8) < right.law(2).mass(2)

    def beyond(law, reach) -> float:
        return sum(float(law.mass(y)) for y in space.points if abs(y - 2) > reach)

    margin = MetricNoise(space=space, sensitivity=2, epsilon=6).margin("0.1")
    assert beyond(MetricNoise(space=space, sensitivity=2, epsilon=6).law(2), margin) <= 0.1
    assert beyond(metric_law(space, 2, Fraction(-6, 4)), margin) > 0.9


@pytest.mark.parametrize(("space", "pair"), [(star(60), (3, 0)), (line(7), (0, 1))])
def test_the_factor_2_dropped_where_the_normaliser_depends_on_the_data(space, pair):
    first, second = pair
    epsilon = Fraction(5)
    assert not space.homogeneous
    assert convicted(
        metric_law(space, first, epsilon), metric_law(space, second, epsilon), epsilon
    ) or convicted(metric_law(space, second, epsilon), metric_law(space, first, epsilon), epsilon)
    right = MetricNoise(space=space, sensitivity=1, epsilon=epsilon)
    assert acquitted(right.law(first), right.law(second), epsilon)
    assert acquitted(right.law(second), right.law(first), epsilon)


# --- DMNS 3.3, last line: flip each bit with probability 1/2 - epsilon / 2S ---------------------


def test_the_flip_probability_as_printed_leaks_twice():
    flip = Fraction(1, 2) - EPSILON / (2 * SENSITIVITY)

    def printed(bits) -> ProductLaw:
        return ProductLaw([FiniteLaw.exact({b: 1 - flip, 1 - b: flip}) for b in bits])

    first, second = (1, 0, 1, 1), (0, 1, 0, 1)
    low, _ = max_divergence(printed(first), printed(second))
    assert low > 2 * EPSILON
    right = HammingCube(sensitivity=SENSITIVITY, epsilon=EPSILON)
    assert acquitted(right.law(first), right.law(second), EPSILON)
    # And the right probability is the largest that is needed: 1/2 - epsilon/4S, nearly.
    assert right.flip == pytest.approx(0.5 - float(EPSILON) / (4 * SENSITIVITY), abs=1e-3)


# --- DR's footnote on Gaussian noise, and the textbook rule -------------------------------------


def leaks(sigma_squared: Fraction, shift: int, epsilon: Fraction) -> Fraction:
    """delta at epsilon, certified from below by the divergence of the two laws."""
    return hockey_stick(
        DiscreteGaussianLaw(shift, sigma_squared), DiscreteGaussianLaw(0, sigma_squared), epsilon
    )[0]


def test_the_variance_of_the_footnote_as_printed():
    """Variance S ln(1/delta) / epsilon: a scale where a square should be."""
    delta = Fraction(1, 10**5)
    printed = Fraction(SENSITIVITY * math.log(10**5) / EPSILON)
    assert leaks(printed, SENSITIVITY, EPSILON) > 1000 * delta
    right = Gaussian.calibrated(
        epsilon=EPSILON, delta=delta, sensitivity=SENSITIVITY, entries_changed=1
    )
    assert right.delta_at(EPSILON) <= delta
    assert leaks(right.step_sigma_squared, SENSITIVITY, EPSILON) <= delta


@pytest.mark.parametrize(("epsilon", "digits"), [(8, 2), (10, 5), (20, 9)])
def test_the_textbook_rule_above_epsilon_1(epsilon, digits):
    """sigma = S sqrt(2 ln(1.25/delta)) / epsilon is proved for epsilon < 1 and false beyond."""
    shift, delta = 50, Fraction(1, 10**digits)
    textbook = Fraction(2 * math.log(1.25 * 10**digits) * shift**2 / epsilon**2)
    assert leaks(textbook, shift, Fraction(epsilon)) > delta
    right = Gaussian.calibrated(epsilon=epsilon, delta=delta, sensitivity=shift, entries_changed=1)
    assert leaks(right.step_sigma_squared, shift, Fraction(epsilon)) <= delta


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2), Fraction(6)])
def test_the_curve_is_the_divergence_of_the_laws(epsilon):
    for shift, sigma_squared in ((3, Fraction(40, 7)), (11, Fraction(300))):
        low, high = hockey_stick(
            DiscreteGaussianLaw(shift, sigma_squared),
            DiscreteGaussianLaw(0, sigma_squared),
            epsilon,
        )
        assert low <= gaussian_delta(sigma_squared, shift, epsilon) <= high * ENOUGH


# --- "care must be taken" with floating point (DR Remark 2.1) -----------------------------------


def test_halves_to_even_break_the_sensitivity():
    """numpy's rint puts 1/2 and 3/2, one step apart, two steps apart: twice the epsilon."""
    mechanism = Laplace(sensitivity=1, epsilon=EPSILON, grid=Grid(1))
    first, second = 0.5, 1.5
    mutant = [DiscreteLaplaceLaw(int(np.rint(x)), mechanism.step_scale) for x in (first, second)]
    assert convicted(*mutant, EPSILON)
    assert max_divergence(*mutant)[0] == 2 * EPSILON
    assert acquitted(mechanism.law(first), mechanism.law(second), EPSILON)


def test_a_sensitivity_not_rounded_up_breaks_the_grid():
    """A real function of sensitivity 1.2 moves two steps of a grid of 1; noise for 1.2 is short."""
    scale = Fraction(6, 5) / EPSILON
    first, second = -0.55, 0.65
    grid = Grid(1)
    mutant = [DiscreteLaplaceLaw(grid.snap(x), scale) for x in (first, second)]
    assert convicted(*mutant, EPSILON)
    right = Laplace(sensitivity="1.2", epsilon=EPSILON, grid=grid)
    assert acquitted(right.law(first), right.law(second), EPSILON)


def test_a_vector_counted_as_one_entry_breaks_the_grid():
    """Three entries that each cross a boundary move three steps for almost no sensitivity."""
    grid = Grid(1)
    first, second = [0.49, 0.49, 0.49], [0.5, 0.5, 0.5]
    mutant = Laplace(sensitivity="0.1", epsilon=EPSILON, grid=grid, entries_changed=1)
    assert convicted(mutant.law(first), mutant.law(second), EPSILON)
    right = Laplace(sensitivity="0.1", epsilon=EPSILON, grid=grid, entries_changed=3)
    assert acquitted(right.law(first), right.law(second), EPSILON)


# --- which neighbours? --------------------------------------------------------------------------


def test_a_histogram_priced_for_the_wrong_neighbours():
    """Changing one row moves two counts: the add/remove price is half of what is lost."""
    mechanism = Laplace(sensitivity=SENSITIVITY, epsilon=EPSILON)
    before, after = [40, 60], [40 - SENSITIVITY, 60 + SENSITIVITY]
    assert convicted(mechanism.law(before), mechanism.law(after), mechanism.loss.epsilon)
    assert acquitted(
        mechanism.law(before), mechanism.law(after), mechanism.loss.change_one().epsilon
    )
