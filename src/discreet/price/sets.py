"""Confidence sets for what is not linear in the noise: means, variances, correlations, regressions.

A share t = c1 / (c0 + c1) of two sums that are never negative is tested, not estimated: for the
true t the number (1 - t) c1 - t c0 is zero, so what is released of it is noise alone, of a law
without unknowns.  All t whose number is within that law's quantile make up the set; it holds the
true one with the stated probability, whatever the data and however few the rows
(docs/proofs/sets.md).  A mean is such a share, and given the means so are variances, covariances
and correlations; the means are taken from sets of their own, which a part of the error pays for.
Errors in them enter only by their squares.

A set may be one-sided, and may be everything between the bounds; ends are -inf and inf where
there are no bounds.  Values are put on a grid before they are added, and every set is wider by
what that can change.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from discreet.exact.records import dataclass
from discreet.price.calibration import Noisy
from discreet.price.plan import Moments, Scaled
from discreet.price.recipes import Ratio, power_coefficients
from discreet.price.tails import Floats, Noise

_POINTS = 5
"""At how many values of each mean (and of a ratio of spreads) the sets are computed."""
_MEAN, _SPREAD = 0.05, 0.05
"""The part of the error that pays for the set of one mean, and for that of one spread."""
CAUTION = 1 / 4
"""The part of the error that is left where a set reaches an end of what is possible: it has one
side only, so it is small, and would else be believed most where it is wrong."""
_ROUNDS = 4
"""How often the factor of a quantile is computed again where a set ends; it hardly changes."""
_FAR = 1e150
_CHUNK = 1 << 16
"""How many groups times values of means are worked on at once."""


class Ends(NamedTuple):
    """The ends of the set of each group."""

    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class Sum:
    """A combination of released entries: its value in each group, and the weights of the noise."""

    value: Floats
    weights: Floats  # the last axis is that of the entries
    __array_ufunc__ = None  # an array times a sum is a sum

    def __add__(self, other: Sum) -> Sum:
        return Sum(self.value + other.value, self.weights + other.weights)

    def __sub__(self, other: Sum) -> Sum:
        return Sum(self.value - other.value, self.weights - other.weights)

    def __rmul__(self, factor: Floats | float) -> Sum:
        by = np.asarray(factor, dtype=np.float64)
        return Sum(by * self.value, by[..., None] * self.weights)

    def less(self, constant: float) -> Sum:
        """The sum minus something that is known."""
        return Sum(self.value - constant, self.weights)


# --- shares and quotients ----------------------------------------------------------------------


def share_set(part: Sum, rest: Sum, noise: Noise, beta: float, *, cautious: bool = True) -> Ends:
    """The set of part / (part + rest), for two sums whose truths are not negative.

    What is released below zero counts as zero: for the true share that can only bring the tested
    number nearer to zero (Lemma 2).  Never empty: the released share itself is always inside.
    ``cautious``: wider where it has one side only; what nobody is shown need not be.
    """
    found = Sum(np.maximum(part.value, 0.0), part.weights)
    whole = found + Sum(np.maximum(rest.value, 0.0), rest.weights)
    ends = _solve(found, whole, noise, beta, 0.0, 1.0)
    one_sided = (ends.low <= 0) | (ends.high >= 1)
    if not cautious or not one_sided.any():
        return ends
    wider = _solve(found, whole, noise, beta * CAUTION, 0.0, 1.0)
    return Ends(*(np.where(one_sided, w, e) for w, e in zip(wider, ends, strict=True)))


def quotient_set(above: Sum, below: Sum, noise: Noise, beta: float) -> Ends:
    """The set of above / below, for sums of either sign: between -inf and inf."""
    return _solve(above, below, noise, beta, -_FAR, _FAR)


def _solve(above: Sum, below: Sum, noise: Noise, beta: float, least: float, most: float) -> Ends:
    """The hull of all r in least ... most with |above - r below| within its quantile.

    The quantile is a factor times a standard deviation.  For a fixed factor this is a quadratic
    inequality in r (Fieller 1954); the factor is then that of the end found, computed again.
    """
    shape = np.broadcast_shapes(above.value.shape, below.value.shape)
    a, b = (np.broadcast_to(s.value, shape) for s in (above, below))
    wa, wb = above.weights, below.weights
    variances = noise.variances
    aa, ab, bb = ((w * variances).sum(axis=-1) for w in (wa * wa, wa * wb, wb * wb))
    if noise.others:  # any noise will do: the factor takes up the rest
        extra = np.ones_like(variances)
        aa, ab, bb = ((w * extra).sum(axis=-1) for w in (wa * wa, wa * wb, wb * wb))
    with np.errstate(all="ignore"):
        middle = np.where(b != 0, a / np.where(b != 0, b, 1.0), (max(least, -1) + min(most, 1)) / 2)
    middle = np.clip(middle, least, most)
    ends = [middle, middle]
    for _ in range(_ROUNDS):
        for side in (0, 1):
            at = np.clip(ends[side], -1e9, 1e9)
            weights = wa - at[..., None] * wb
            spread = np.sqrt(np.maximum(aa - 2 * at * ab + at * at * bb, 1e-300))
            factor = noise.quantiles(weights, beta) / spread
            ends[side] = _quadratic(a, b, (aa, ab, bb), factor * factor, least, most)[side]
    return Ends(np.minimum(ends[0], middle), np.maximum(ends[1], middle))


def _quadratic(
    a: Floats,
    b: Floats,
    spreads: tuple[Floats, Floats, Floats],
    factor: Floats,
    least: float,
    most: float,
) -> tuple[Floats, Floats]:
    """The hull of (a - r b)**2 <= factor * (aa - 2 r ab + r**2 bb) between two ends."""
    aa, ab, bb = spreads
    square, cross, constant = b * b - factor * bb, a * b - factor * ab, a * a - factor * aa
    with np.errstate(all="ignore"):
        root = np.sqrt(np.maximum(cross * cross - square * constant, 0.0))
        # The two roots without cancellation.
        larger = cross + np.where(cross >= 0, root, -root)
        one, other = larger / square, constant / larger
    one = np.where(np.isnan(one), np.inf, one)
    other = np.where(np.isnan(other), one, other)
    first, second = np.minimum(one, other), np.maximum(one, other)
    inside = square > 0
    all_of_it = (~inside) & (cross * cross <= square * constant)
    # Where the square is negative all but first ... second is inside, and the hull has a gap only
    # if an end lies in it.
    low = np.where(inside, first, np.where(first >= least, least, second))
    high = np.where(inside, second, np.where(second <= most, most, first))
    low, high = np.where(all_of_it, least, low), np.where(all_of_it, most, high)
    return np.clip(low, least, most), np.clip(high, least, most)


# --- moments -----------------------------------------------------------------------------------


class _Table:
    """The released Bernstein sums of each group as sums of polynomials of values in 0 ... 1."""

    def __init__(self, moments: Moments, entries: Floats, mechanism: Noisy) -> None:
        self.moments = moments
        self.entries = entries[:, : math.prod(d + 1 for d in moments.degrees)]
        self.noise = Noise.of([mechanism] * self.entries.shape[1])

    def power(self, *powers: int) -> Sum:
        """The sum of x**p * y**q over the rows of each group, with an axis for means."""
        spans = (v.span**p for v, p in zip(self.moments.variables, powers, strict=True))
        scale = math.prod(spans)
        row = np.array([float(c / scale) for c in power_coefficients(self.moments, powers)])
        return Sum((self.entries @ row)[:, None], row[None, None, :])

    def one(self, variable: int, power: int) -> Sum:
        """The sum of a power of one of the variables."""
        powers = [0] * len(self.moments.variables)
        powers[variable] = power
        return self.power(*powers)

    @property
    def count(self) -> Sum:
        return self.power(*[0] * len(self.moments.variables))

    def mean_set(self, variable: int, beta: float, *, cautious: bool = True) -> Ends:
        """The set of the mean of a variable; one column."""
        part = self.one(variable, 1)
        return share_set(part, self.count - part, self.noise, beta, cautious=cautious)

    def means(self, variable: int, beta: float) -> Floats:
        """Values of the mean that are looked at: over its whole set, and the released one."""
        low, high = self.mean_set(variable, beta, cautious=False)
        part, count = self.one(variable, 1).value, self.count.value
        with np.errstate(all="ignore"):
            middle = np.where(count > 0, part / count, 0.5)
        middle = np.clip(middle, low, high)
        below = low + (middle - low) * np.linspace(0, 1, _POINTS // 2 + 1)[:-1]
        above = middle + (high - middle) * np.linspace(0, 1, _POINTS // 2 + 1)
        found: Floats = np.concatenate([below, above], axis=1)
        return found

    def square(self, variable: int, mean: Floats) -> Sum:
        """The sum of (x - mean)**2."""
        second, first = self.one(variable, 2), self.one(variable, 1)
        return second - (2 * mean) * first + (mean * mean) * self.count

    def product(self, means: tuple[Floats, Floats]) -> Sum:
        """The sum of (y - its mean) * (x - its mean)."""
        y, x = means
        joint = self.power(1, 1) - y * self.power(0, 1) - x * self.power(1, 0)
        return joint + (y * x) * self.count

    def pair_means(self, beta: float) -> tuple[Floats, Floats]:
        """Every pair of values of the two means."""
        y, x = self.means(0, beta), self.means(1, beta)
        return np.repeat(y, x.shape[1], axis=1), np.tile(x, (1, y.shape[1]))


def _hull(ends: Ends) -> Ends:
    """Over all values of the means."""
    return Ends(ends.low.min(axis=1), ends.high.max(axis=1))


def _variance_set(
    table: _Table, variable: int, mean: Floats, beta: float, *, sample: bool = False
) -> Ends:
    """The set of the variance for each value of the mean, of values in 0 ... 1."""
    square = table.square(variable, mean)
    most = np.maximum(mean, 1 - mean) ** 2
    # Divided by n - 1 a variance is at most twice as large, for n >= 2.
    most, count = (2 * most, table.count.less(1.0)) if sample else (most, table.count)
    part = (1 / most) * square
    low, high = share_set(part, count - part, table.noise, beta)
    # Values between 0 and 1 with this mean have no larger variance (Bhatia and Davis 2000).
    limit = mean * (1 - mean) * (2 if sample else 1)
    return Ends(np.minimum(low * most, limit), np.minimum(high * most, limit))


def _covariance_set(
    table: _Table, means: tuple[Floats, Floats], beta: float, *, sample: bool
) -> Ends:
    y, x = means
    most = np.maximum(y, 1 - y) * np.maximum(x, 1 - x) * (2 if sample else 1)
    count = table.count.less(1.0) if sample else table.count
    part = (0.5 / most) * table.product(means) + 0.5 * count
    low, high = share_set(part, count - part, table.noise, beta)
    limit = np.sqrt(y * (1 - y) * x * (1 - x)) * (2 if sample else 1)
    return Ends(
        np.clip((2 * low - 1) * most, -limit, limit), np.clip((2 * high - 1) * most, -limit, limit)
    )


def _correlation_set(table: _Table, means: tuple[Floats, Floats], beta: float) -> Ends:
    """The set of the correlation for each pair of means.

    With X, Y the distances from the means and s the ratio of their spreads, the sums of
    (sX + Y/s)**2 and (sX - Y/s)**2 are never negative, and the correlation is their difference
    over their sum if s is the true ratio; it is stationary there.
    """
    y, x = table.square(0, means[0]), table.square(1, means[1])
    share = share_set(y, x, table.noise, beta * _SPREAD, cautious=False)
    with np.errstate(all="ignore"):
        ratios = [np.sqrt(share[i] / (1 - share[i])) for i in (0, 1)]
    unknown = (ratios[0] <= 0) | ~np.isfinite(ratios[1])
    low, high = (np.where(unknown, 1.0, np.log(np.where(unknown, 1.0, r))) for r in ratios)
    product = table.product(means)
    ends = []
    for point in np.linspace(0, 1, _POINTS):
        ratio = np.exp(low + point * (high - low))
        half = (0.5 * ratio) * x + (0.5 / ratio) * y
        ends.append(share_set(half + product, half - product, table.noise, beta * (1 - _SPREAD)))
    least = np.min([e.low for e in ends], axis=0) * 2 - 1
    most = np.max([e.high for e in ends], axis=0) * 2 - 1
    return Ends(np.where(unknown, -1.0, least), np.where(unknown, 1.0, most))


# --- recipes -----------------------------------------------------------------------------------


def ratio_set(
    recipe: Ratio, mechanism: Noisy, entries: Floats, beta: float, moved: tuple[float, ...]
) -> Ends:
    """The set of a ratio in each group (a row of ``entries``), in the unit of its value.

    ``moved`` says by how much the grid may have moved a value of each variable.
    """
    if not entries.shape[0]:
        return Ends(np.zeros(0), np.zeros(0))
    chunk = max(1, _CHUNK // _POINTS ** (2 if len(recipe.moments.variables) == 2 else 1))
    parts = [
        _set_of(recipe, _Table(recipe.moments, entries[i : i + chunk], mechanism), beta, moved)
        for i in range(0, entries.shape[0], chunk)
    ]
    return Ends(*(np.concatenate([part[side] for part in parts]) for side in (0, 1)))


def _set_of(recipe: Ratio, table: _Table, beta: float, moved: tuple[float, ...]) -> Ends:
    function = recipe.function
    with np.errstate(all="ignore"):
        if function == "AVG":
            return _mean(table, beta, moved[0])
        if len(recipe.moments.variables) == 1:
            return _spread(function, table, beta, moved[0])
        if function.startswith("COVAR"):
            return _covariance(table, beta, moved, sample=function == "COVAR_SAMP")
        if function == "CORR":
            return _correlation(table, beta, moved)
        if function == "REGR_SLOPE":
            return _slope(table, beta, moved)
        return _intercept(table, beta, moved)


def _double(number: Fraction) -> float:
    """The nearest double; without end where bounds are absurd."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _width(variable: Scaled) -> float:
    return _double(variable.grid * variable.span)


def _bounds(variable: Scaled) -> tuple[float, float]:
    low, high = variable.low * variable.grid, (variable.low + variable.span) * variable.grid
    return _double(low), _double(high)


def find_range(recipe: Ratio) -> tuple[float, float]:
    """Between which numbers a ratio lies whatever the data are."""
    function, variables = recipe.function, recipe.moments.variables
    widths = [_width(v) for v in variables]
    more = 2.0 if function.endswith("SAMP") else 1.0
    if function == "AVG":
        return _bounds(variables[0])
    if function.startswith("VAR"):
        return 0.0, widths[0] * widths[0] / 4 * more
    if function.startswith("STDDEV"):
        return 0.0, widths[0] / 2 * math.sqrt(more)
    if function.startswith("COVAR"):
        most = widths[0] * widths[1] / 4 * more
        return -most, most
    return (-1.0, 1.0) if function == "CORR" else (-math.inf, math.inf)


def _mean(table: _Table, beta: float, moved: float) -> Ends:
    variable = table.moments.variables[0]
    (least, most), width = _bounds(variable), _width(variable)
    low, high = _hull(table.mean_set(0, beta))
    return Ends(
        np.clip(least + width * low - moved, least, most),
        np.clip(least + width * high + moved, least, most),
    )


def _spread(function: str, table: _Table, beta: float, moved: float) -> Ends:
    """Variances and standard deviations: that of a sum differs by at most the other's."""
    width, sample = _width(table.moments.variables[0]), function.endswith("SAMP")
    mean = table.means(0, beta * 2 * _MEAN)
    found = _hull(_variance_set(table, 0, mean, beta * (1 - 2 * _MEAN), sample=sample))
    moved *= math.sqrt(2) if sample else 1.0
    most = find_range(Ratio(0, function, table.moments))[1]
    most = most if function.startswith("STDDEV") else math.sqrt(most)
    low = np.maximum(width * np.sqrt(np.maximum(found.low, 0.0)) - moved, 0.0)
    high = np.minimum(width * np.sqrt(np.maximum(found.high, 0.0)) + moved, most)
    return Ends(low, high) if function.startswith("STDDEV") else Ends(low * low, high * high)


def _covariance(table: _Table, beta: float, moved: tuple[float, ...], *, sample: bool) -> Ends:
    y, x = (_width(v) for v in table.moments.variables)
    means = table.pair_means(beta * _MEAN)
    low, high = _hull(_covariance_set(table, means, beta * (1 - 2 * _MEAN), sample=sample))
    spread_y, spread_x = (w * _most_spread(m) for w, m in zip((y, x), means, strict=True))
    more = spread_y * moved[1] + spread_x * moved[0] + moved[0] * moved[1]
    more = more * (2 if sample else 1)
    most = y * x / 4 * (2 if sample else 1)
    return Ends(np.maximum(low * y * x - more, -most), np.minimum(high * y * x + more, most))


def _most_spread(means: Floats) -> Floats:
    """How large the standard deviation of values in 0 ... 1 is at most, given where the mean is."""
    found: Floats = np.sqrt((means * (1 - means)).max(axis=1))
    return found


def _least_spreads(
    table: _Table, means: tuple[Floats, Floats], beta: float, moved: tuple[float, ...]
) -> tuple[Floats, Floats]:
    """How large the standard deviations are at least; what the grid moved is held against them."""
    found = []
    for variable in (0, 1):
        if not moved[variable]:
            found.append(np.full(means[0].shape[0], np.inf))
            continue
        low = _hull(_variance_set(table, variable, means[variable], beta)).low
        found.append(np.sqrt(np.maximum(low, 0.0)) * _width(table.moments.variables[variable]))
    return found[0], found[1]


def _correlation(table: _Table, beta: float, moved: tuple[float, ...]) -> Ends:
    """A correlation is the cosine of an angle, which the grid turns by a known one at most."""
    means = table.pair_means(beta * _MEAN)
    rest = beta * (1 - 2 * _MEAN - (2 * _SPREAD if any(moved) else 0.0))
    low, high = _hull(_correlation_set(table, means, rest))
    turned = np.zeros(low.shape)
    for spread, step in zip(
        _least_spreads(table, means, beta * _SPREAD, moved), moved, strict=True
    ):
        if step:
            turned = turned + np.arcsin(np.minimum(step / np.maximum(spread, step), 1.0))
    first, last = np.arccos(np.clip(high, -1, 1)) - turned, np.arccos(np.clip(low, -1, 1)) + turned
    return Ends(np.cos(np.minimum(last, math.pi)), np.cos(np.maximum(first, 0.0)))


def _slope(table: _Table, beta: float, moved: tuple[float, ...]) -> Ends:
    y, x = (_width(v) for v in table.moments.variables)
    means = table.pair_means(beta * _MEAN)
    rest = beta * (1 - 2 * _MEAN - (_SPREAD if any(moved) else 0.0))
    ends = quotient_set(table.product(means), table.square(1, means[1]), table.noise, rest)
    found = _hull(ends)
    low, high = found.low * (y / x), found.high * (y / x)
    if any(moved):
        # Only the spread of x is divided by; it is asked for even if y alone was rounded.
        spread = _least_spreads(table, means, beta * _SPREAD, (0.0, max(moved[1], 1e-300)))[1]
        part = moved[1] / np.maximum(spread, 1e-300)
        off = (y * _most_spread(means[0]) * moved[1] / spread + moved[0] * (1 + part)) / spread
        low, high = low - off, high + off
        narrow, wide = (1 - part) ** 2, (1 + part) ** 2
        low = np.where(low < 0, low / narrow, low / wide)
        high = np.where(high > 0, high / narrow, high / wide)
        unknown = (part >= 1) | ~np.isfinite(low + high)
        low, high = np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high)
    far = _FAR * (y / x) / 2
    return Ends(np.where(low <= -far, -np.inf, low), np.where(high >= far, np.inf, high))


def _intercept(table: _Table, beta: float, moved: tuple[float, ...]) -> Ends:
    """For each slope of its set, the mean of y - slope * x, tested as a share."""
    variables = table.moments.variables
    (y, x), (first, start) = ((_width(v) for v in variables), (_bounds(v)[0] for v in variables))
    low, high = _slope(table, beta / 2, moved)
    unknown = ~np.isfinite(low + high)
    slopes = [np.where(unknown, 0.0, end)[:, None] for end in (low, high)]
    ends = []
    for slope in slopes:
        # y - slope * x lies between these where y and x lie between their bounds.
        least = np.minimum(-slope * x, 0.0)
        width = y + np.abs(slope) * x
        risen = (y / width) * table.power(1, 0) - (slope * x / width) * table.power(0, 1)
        part = risen - (least / width) * table.count
        share = _hull(share_set(part, table.count - part, table.noise, beta / 2))
        base = (first + least - slope * start)[:, 0]
        off = moved[0] + np.abs(slope[:, 0]) * moved[1]
        ends.append((base + width[:, 0] * share.low - off, base + width[:, 0] * share.high + off))
    return Ends(
        np.where(unknown, -np.inf, np.minimum(ends[0][0], ends[1][0])),
        np.where(unknown, np.inf, np.maximum(ends[0][1], ends[1][1])),
    )


__all__ = ["CAUTION", "Ends", "Sum", "find_range", "quotient_set", "ratio_set", "share_set"]
