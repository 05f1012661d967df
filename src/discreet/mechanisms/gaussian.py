"""The discrete Gaussian mechanism, on the integers and on a public grid."""

from __future__ import annotations

import functools
import math
from dataclasses import field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from flint import arb

from discreet.accounting.conversion import largest_rho
from discreet.accounting.law import DiscreteGaussianLaw, ProductLaw
from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.balls import ball, enclose, log_up
from discreet.exact.numbers import Exact, failure_share, nonnegative, positive, proportion, whole
from discreet.exact.records import dataclass
from discreet.exact.search import bracket, least_decimal, least_integer
from discreet.mechanisms.grid import (
    Grid,
    add_noise,
    require_names,
    set_fields,
    to_steps,
    write_call,
)
from discreet.mechanisms.laplace import (
    changes_one,
    fractional_without_grid,
    refuse_unstated,
    too_much_noise,
)
from discreet.noise import discrete_gaussian
from discreet.noise.gaussian import GREATEST_SIGMA_SQUARED

if TYPE_CHECKING:
    from discreet.accounting.profile import GaussianProfile


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Gaussian:
    """Publish numbers with discrete Gaussian noise, calibrated to their L2 sensitivity.

    Given is ``sensitivity`` or its square, ``sensitivity_squared``, and as the price either ``rho``
    or ``epsilon`` and ``delta``, for which the greatest certified rho is taken.

    Definition:
        M(x) = f(x) + (Z_1, ..., Z_d), in whole steps of the ``grid``, where the Z_i
        are independent and P(Z_i = z) is proportional to
        exp(-z**2 / (2 sigma_squared)).  Grid, rounding and ``entries_changed``
        are as for ``Laplace``; Lemma 2 bounds what rounding adds.

    Guarantee:
        If the squares of the changes of the entries of f add up to at most
        ``sensitivity_squared`` when one unit is added or removed, M is
        rho-zCDP, with sigma_squared = (sensitivity_squared in steps) / (2 rho).
        ``delta_at(epsilon)`` converts: by the exact curve of the discrete
        Gaussian when ``entries_changed`` is 1 (Lemma 4), by that of the
        continuous one, a step of variance aside, for any other number of
        them (Lemma 10), and from rho if it is not stated.

    Accuracy:
        ``margin`` is the least m with P(|Z_i| > m) <= beta, or the least that
        covers ``coordinates`` entries at once; from the certified tails of the
        law, so exact.

    Reference:
        Canonne, Kamath and Steinke (2020), Theorems 4 and 7.  DR's footnote
        (variance proportional to the sensitivity) and the textbook
        sqrt(2 ln(1.25/delta)) rule, which fails for epsilon > 1, are not used.
        Proofs in docs/proofs/laplace.md.

    Example:
        >>> scores = Gaussian(sensitivity=3, rho="1/8")
        >>> scores.loss.rho, scores.sigma_squared
        (Fraction(1, 8), Fraction(36, 1))
        >>> scores.margin("0.05")
        12
        >>> len(scores.release((41, 977, 1204)))
        3
        >>> sums = Gaussian.calibrated(epsilon=2, delta="1e-6", sensitivity=3, entries_changed=4)
        >>> sums.delta_at(2) <= Fraction("1e-6"), round(float(sums.sigma_squared), 1)
        (True, 45.4)
        >>> Gaussian(sensitivity_squared=5, rho="1/10")
        Gaussian(sensitivity_squared=5, rho='1/10')
    """

    sensitivity_squared: Fraction
    rho: Fraction
    grid: Grid | None
    entries_changed: int | None
    steps_squared: int = field(init=False, compare=False)
    """The squared sensitivity after snapping, in squared steps of the grid."""
    step_sigma_squared: Fraction = field(init=False, compare=False)
    """The parameter of the noise, in squared steps of the grid."""
    loss: Loss = field(init=False, compare=False)

    def __init__(
        self,
        *,
        rho: Exact | None = None,
        sensitivity: Exact | None = None,
        sensitivity_squared: Exact | None = None,
        grid: Grid | None = None,
        entries_changed: int | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
    ) -> None:
        price = _read_price(rho, epsilon, delta)
        squared = _square(sensitivity, sensitivity_squared)
        steps_squared = l2_steps_squared(squared, grid=grid, entries_changed=entries_changed)
        sigma_squared = steps_squared / (2 * price)
        if not self.drawable(sigma_squared):
            raise too_much_noise("rho")
        set_fields(self, sensitivity_squared=squared, rho=price, grid=grid)
        set_fields(self, entries_changed=entries_changed, loss=Loss.concentrated(price))
        set_fields(self, steps_squared=steps_squared, step_sigma_squared=sigma_squared)

    def __repr__(self) -> str:
        over = math.isqrt(self.sensitivity_squared.numerator)
        under = math.isqrt(self.sensitivity_squared.denominator)
        root = Fraction(over, under)
        plain = root**2 == self.sensitivity_squared
        return write_call(
            self,
            sensitivity=root if plain else None,
            sensitivity_squared=None if plain else self.sensitivity_squared,
            rho=self.rho,
            grid=self.grid,
            entries_changed=self.entries_changed,
        )

    @classmethod
    def within(
        cls,
        margin: Exact,
        confidence: Exact,
        *,
        sensitivity: Exact | None = None,
        sensitivity_squared: Exact | None = None,
        coordinates: int = 1,
        grid: Grid | None = None,
        entries_changed: int | None = None,
    ) -> Gaussian:
        """The cheapest mechanism (in rho) whose every answer is within ``margin``, so often.

        ``confidence`` is how often, of all ``coordinates`` together. Given is ``sensitivity`` (L2)
        or its square, ``sensitivity_squared``; ``grid`` and ``entries_changed`` are those of the
        mechanism.
        """
        beta = 1 - proportion(confidence, name="confidence")
        count = whole(coordinates, name="coordinates", least=1)
        squared = _square(sensitivity, sensitivity_squared)
        steps_squared = l2_steps_squared(squared, grid=grid, entries_changed=entries_changed)
        unit = 1 if grid is None else grid.step
        target = math.floor(nonnegative(margin, name="margin") / unit)

        def near_enough(rho: Fraction) -> bool:
            return _reaches(steps_squared / (2 * rho), target, beta, count)

        guess = steps_squared * float(log_up(2 * count / beta)) / (target + 1) ** 2
        return cls(
            rho=least_decimal(near_enough, near=guess),
            sensitivity_squared=squared,
            grid=grid,
            entries_changed=entries_changed,
        )

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: Exact,
        delta: Exact,
        entries_changed: int,
        sensitivity: Exact | None = None,
        sensitivity_squared: Exact | None = None,
        grid: Grid | None = None,
    ) -> Gaussian:
        """The least noise that is (``epsilon``, ``delta``)-differentially private.

        Given is ``sensitivity`` (L2) or its square, ``sensitivity_squared``; ``grid`` and
        ``entries_changed`` are those of the mechanism.

        sigma_squared, in squared steps, is the least six-digit decimal at which
        ``delta_at(epsilon)`` certifies delta; never less private than asked.
        """
        wanted = positive(epsilon, name="epsilon")
        allowed = proportion(delta, name="delta")
        squared = _square(sensitivity, sensitivity_squared)
        steps_squared = l2_steps_squared(squared, grid=grid, entries_changed=entries_changed)

        def make(sigma_squared: Fraction) -> Gaussian:
            return cls(
                rho=steps_squared / (2 * sigma_squared),
                sensitivity_squared=squared,
                grid=grid,
                entries_changed=entries_changed,
            )

        guess = float(steps_squared) * analytic_variance(float(wanted), float(allowed))
        return make(
            least_decimal(lambda sigma: make(sigma).delta_at(wanted) <= allowed, near=guess)
        )

    @staticmethod
    def drawable(sigma_squared: Fraction) -> bool:
        """Whether draws of ``sigma_squared``, in squared steps, fit 64-bit integers."""
        return sigma_squared <= GREATEST_SIGMA_SQUARED

    @property
    def sigma_squared(self) -> Fraction:
        """The parameter of the noise, in the squared unit of the value."""
        unit = Fraction(1) if self.grid is None else self.grid.step
        return self.step_sigma_squared * unit**2

    @property
    def variance(self) -> float:
        """An upper bound on the variance of one entry: sigma_squared; tight from sigma = 1 up."""
        return float(self.sigma_squared)

    def delta_at(self, epsilon: Exact) -> Fraction:
        """A delta, certified, for which the release is (``epsilon``, delta)-differentially private.

        The exact curve if one unit changes one entry, rounded up in the
        nineteenth digit; a bound near that of the continuous Gaussian if it
        changes several; the conversion from rho if how many is not stated.
        """
        wanted = nonnegative(epsilon, name="epsilon")
        if self.entries_changed is None:
            return self.loss.delta_at(wanted)
        if self.entries_changed > 1:
            # Shifts of several entries are not worst along an axis for every sigma.
            return gaussian_vector_delta(
                self.step_sigma_squared, self.steps_squared, self.entries_changed, wanted
            )
        return gaussian_delta(self.step_sigma_squared, math.isqrt(self.steps_squared), wanted)

    def release(self, value: Any, *, exact: bool = False) -> Any:
        """``value`` with noise; kinds, and ``exact``, as for ``Laplace.release``."""
        if type(value) is int and self.grid is None:
            return value + discrete_gaussian(self.step_sigma_squared)
        refuse_unstated(self.grid, self.entries_changed, value)
        spread = self.step_sigma_squared
        return add_noise(
            value, self.grid, lambda size: discrete_gaussian(spread, size), exact=exact
        )

    def margin(
        self, beta: Exact | None = None, *, confidence: Exact | None = None, coordinates: int = 1
    ) -> int | Fraction:
        """The least m such that, except with probability ``beta``, no entry is off by more.

        Given is ``beta`` or ``confidence``, which is 1 - beta; it covers so many ``coordinates`` at
        once.
        """
        allowed = failure_share(beta, confidence)
        count = whole(coordinates, name="coordinates", least=1)
        variance = self.step_sigma_squared
        # Sub-Gaussian (Canonne, Kamath and Steinke, Proposition 25): `enough` is.
        enough = math.isqrt(math.ceil(2 * variance * log_up(2 * count / allowed))) + 1
        steps = least_integer(lambda m: _reaches(variance, m, allowed, count), holds_at=enough)
        return steps if self.grid is None else steps * self.grid.step

    @property
    def profile(self) -> GaussianProfile | None:
        """Delta at every epsilon, if one unit changes one entry; None if it may change more."""
        if not changes_one(self.steps_squared, self.grid, self.entries_changed):
            return None
        from discreet.accounting.profile import GaussianProfile  # few releases are compared

        shift = math.isqrt(self.steps_squared)  # one entry moves by whole steps
        return GaussianProfile(sensitivity=shift, sigma_squared=self.step_sigma_squared)

    @property
    def noise_law(self) -> DiscreteGaussianLaw:
        """The exact law of the noise in one entry, counted in steps of the grid."""
        return DiscreteGaussianLaw(center=0, sigma_squared=self.step_sigma_squared)

    def law(self, value: Any) -> DiscreteGaussianLaw | ProductLaw:
        """The exact law of the release of a ``value``, counted in steps of the grid."""
        refuse_unstated(self.grid, self.entries_changed, value)
        steps = to_steps(value, self.grid)
        if isinstance(steps, int):
            return DiscreteGaussianLaw(center=steps, sigma_squared=self.step_sigma_squared)
        return ProductLaw(tuple(DiscreteGaussianLaw(one, self.step_sigma_squared) for one in steps))


def gaussian_delta(sigma_squared: Fraction, shift: int, epsilon: Fraction) -> Fraction:
    """The exact delta(epsilon) of a discrete Gaussian against itself shifted, rounded up.

    The worst event is z >= t, where the log-likelihood ratio
    (2 z shift - shift**2) / (2 sigma_squared) first exceeds epsilon; smaller
    shifts are never worse (Lemma 4).
    """
    law = DiscreteGaussianLaw(center=0, sigma_squared=sigma_squared)
    first = math.floor(epsilon * sigma_squared / shift + Fraction(shift, 2)) + 1

    def difference() -> arb:
        return law.tail(first - shift) - ball(epsilon).exp() * law.tail(first)

    return min(enclose(difference)[1], Fraction(1))


def gaussian_equal_delta(
    sigma_squared: Fraction, entries: int, step: int, epsilon: Fraction
) -> Fraction:
    """A delta(epsilon) of discrete Gaussians, ``entries`` moved by ``step`` each, rounded up.

    Lemma 11: the exact curve of one such noise for their sum, but for a factor, which for two
    entries at sigma_squared = 2 is 1 + 3e-8, and nearer to 1 from there on.
    """
    if entries == 1:
        return gaussian_delta(sigma_squared, step, epsilon)
    law = DiscreteGaussianLaw(center=0, sigma_squared=entries * sigma_squared)
    shift = entries * step
    first = math.floor(epsilon * sigma_squared / step + Fraction(shift, 2)) + 1

    def difference() -> arb:
        ratio = (-(arb.pi() ** 2) * ball(sigma_squared)).exp()
        eta = ((1 + ratio) / (1 - ratio)) ** entries - 1
        if not eta < 1:  # the noise is too small for the bound to say anything
            return arb(1)
        factor = (1 + eta) / (1 - eta)
        shown: arb = factor * law.tail(first - shift)
        return shown - ball(epsilon).exp() / factor * law.tail(first)

    return min(enclose(difference)[1], Fraction(1))


_ROUNDING = (Fraction(1, 2), Fraction(1), Fraction(2))
"""How much of the variance Lemma 10 may spend on rounding; more of it for more entries."""


def gaussian_vector_delta(
    sigma_squared: Fraction, moved_squared: int, entries: int, epsilon: Fraction
) -> Fraction:
    """A delta(epsilon) of discrete Gaussians of which ``entries`` are moved, rounded up.

    Lemma 10: the continuous curve at a variance that is smaller by b, with factors that are
    1 but for eta = 2 sum exp(-2 pi**2 b k**2); or the conversion from rho, if that is less.
    """
    best = Loss.gaussian(sensitivity_squared=moved_squared, sigma_squared=sigma_squared).delta_at(
        epsilon
    )
    for part in _ROUNDING:
        if part < sigma_squared:
            bound = functools.partial(
                _continuous_delta, sigma_squared - part, part, moved_squared, entries, epsilon
            )
            best = min(best, enclose(bound)[1])
    return best


def analytic_variance(epsilon: float, delta: float) -> float:
    """About the variance of the continuous Gaussian of sensitivity 1 at (epsilon, delta): a guess.

    Balle and Wang (2018), in doubles; where those give out, the bound that conversions give.
    """

    def misses(sigma: float) -> float:
        far, near = epsilon * sigma, 1 / (2 * sigma)
        above = math.erfc((far - near) / math.sqrt(2)) / 2
        return above - math.exp(min(epsilon, 700.0)) * math.erfc((far + near) / math.sqrt(2)) / 2

    most = math.sqrt(2 * math.log(2 / delta) + 2 * epsilon) / epsilon if delta else 1e9
    _, enough = bracket(
        lambda sigma: misses(sigma) <= delta, fails_at=0.0, holds_at=2 * most, halvings=60
    )
    return max(enough, 1e-9) ** 2


def _continuous_delta(
    variance: Fraction, part: Fraction, moved_squared: int, entries: int, epsilon: Fraction
) -> arb:
    # The sum over k is less than twice its first term, which is below 1/19000.
    eta = 4 * (-2 * arb.pi() ** 2 * ball(part)).exp()
    slack = entries * ((1 + eta) / (1 - eta)).log()
    shifted = ball(epsilon) - 2 * slack
    moved, spread = ball(Fraction(moved_squared)).sqrt(), ball(variance).sqrt()
    near, far = moved / (2 * spread), shifted * spread / moved
    curve = _normal_above(far - near) - shifted.exp() * _normal_above(far + near)
    return slack.exp() * curve


def _normal_above(x: arb) -> arb:
    """P(N(0, 1) > x)."""
    return (x / arb(2).sqrt()).erfc() / 2


def l2_steps_squared(
    sensitivity_squared: Fraction, *, grid: Grid | None, entries_changed: int | None
) -> int:
    """The squared L2 sensitivity in squared steps, after snapping."""
    entries = (
        1 if entries_changed is None else whole(entries_changed, name="entries_changed", least=1)
    )
    if grid is not None:
        return grid.steps_squared(sensitivity_squared, entries_changed=entries)
    if sensitivity_squared.denominator != 1:
        raise fractional_without_grid("sensitivity_squared", sensitivity_squared)
    return sensitivity_squared.numerator


def _read_price(rho: Exact | None, epsilon: Exact | None, delta: Exact | None) -> Fraction:
    """Rho, as given or as (epsilon, delta) buy it for a vector of any length.

    ``Gaussian.calibrated`` buys less noise for the same, where it is known how many entries move.
    """
    if rho is not None and epsilon is None and delta is None:
        return positive(rho, name="rho")
    if rho is not None or epsilon is None or delta is None:
        raise InvalidParameter(
            "P4",
            "Gaussian noise is bought with rho, or with epsilon and delta.",
            why="it hides nobody for an epsilon alone, and one price must be the price.",
            fix="pass rho='0.1', or epsilon=1, delta='1e-6'.",
        )
    return largest_rho(positive(epsilon, name="epsilon"), proportion(delta, name="delta"))


def _square(sensitivity: Exact | None, sensitivity_squared: Exact | None) -> Fraction:
    if (sensitivity is None) == (sensitivity_squared is None):
        raise InvalidParameter(
            "P4",
            "exactly one of sensitivity and sensitivity_squared must be given.",
            why="they are the same bound, and two bounds could disagree.",
            fix="pass sensitivity=3, or sensitivity_squared=5 where the root is not rational.",
        )
    if sensitivity is not None:
        return positive(sensitivity, name="sensitivity") ** 2
    return positive(sensitivity_squared or 0, name="sensitivity_squared")


def _reaches(sigma_squared: Fraction, margin: int, beta: Fraction, coordinates: int) -> bool:
    """Whether P(max of ``coordinates`` draws of |Z| > margin) <= beta, decided with balls."""
    law = DiscreteGaussianLaw(center=0, sigma_squared=sigma_squared)

    def excess() -> arb:
        one = 2 * law.tail(margin + 1)
        return 1 - (1 - one) ** coordinates - ball(beta) if coordinates > 1 else one - ball(beta)

    return enclose(excess, bits=1)[1] <= 0
