"""How losses add: the theorems side by side.

    basic           DR 3.14-3.16: epsilons add, deltas add
    advanced        DR 3.20: the square root of the number of releases, for a slack
    per_query       DR 3.21, solved from 3.20: what each of k queries may spend
    OptimalComposition  Kairouz, Oh and Viswanath: the exact answer for k equal (epsilon, delta)
    concentrated    zCDP: rhos add, and are converted once
    profile.compose the exact answer for a finished list of known noises
    peer_epsilon    the same by the dp-accounting library, for comparison

All but the last are certified upper bounds.  :func:`compare` puts them into one
table.  What gates an adaptive session is ``discreet.accounting.budget``, not this module.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import groupby
from typing import Any, Final

from flint import arb, ctx

from discreet.accounting.conversion import EPSILON_UNITS, INFINITY, Amount
from discreet.accounting.loss import Loss, failure_mass
from discreet.accounting.profile import (
    AnyProfile,
    GaussianProfile,
    LaplaceProfile,
    Profile,
    compose,
    fails_within,
    find_profile,
)
from discreet.errors import InvalidParameter, quote_value
from discreet.exact.balls import ball, enclose, ends, log_up, precision
from discreet.exact.numbers import Exact, decimal_up, positive, proportion, round_up, whole
from discreet.exact.search import greatest_integer, least_integer

_BITS: Final = 192
_MOST_COUNT: Final = 10**6  # one ball for every number of dissenting answers
_MOST_EPSILON: Final = 10**6  # e to more than this protects nobody and cannot be written out

# --- basic and advanced ------------------------------------------------------------------------


def basic(losses: Iterable[Loss]) -> Loss:
    """The epsilons and the deltas of ``losses`` added (DR 3.16; 3.14 and 3.15 are its cases).

    >>> total = basic([Loss.approximate("0.2", "1e-7"), Loss.pure("0.3")])
    >>> total.epsilon, total.delta
    (Fraction(1, 2), Fraction(1, 10000000))
    """
    total = _nonempty(losses)
    if isinstance(total.epsilon, float):
        raise InvalidParameter(
            "P4",
            "a loss without a finite epsilon cannot be composed by adding epsilons.",
            why="the sum would be infinite, which promises a person nothing.",
            fix="use concentrated(...), or convert each: Loss.approximate(x.epsilon_at(d), d).",
        )
    return Loss.approximate(total.epsilon, total.delta)


def concentrated(losses: Iterable[Loss]) -> Loss:
    """The rhos and the deltas of ``losses`` added (Bun and Steinke, Proposition 1.7).

    >>> total = concentrated([Loss.gaussian(sensitivity=2, sigma_squared=100)] * 5)
    >>> total.rho
    Fraction(1, 10)
    """
    total = _nonempty(losses)
    if isinstance(total.rho, float):
        raise InvalidParameter(
            "P4",
            "a loss without a finite rho cannot be composed by adding rhos.",
            why="the sum would be infinite, which promises a person nothing.",
            fix="build the loss with Loss.pure or Loss.approximate, which know their rho.",
        )
    return Loss(INFINITY, total.rho, total.delta)


def _nonempty(losses: Iterable[Loss]) -> Loss:
    listed = list(losses)
    if not listed:
        raise _nothing("losses", "a loss such as Loss.pure('0.1')")
    return sum(listed[1:], listed[0])


def _nothing(things: str, example: str) -> InvalidParameter:
    return InvalidParameter(
        "P5",
        f"there are no {things} to compose.",
        why="an account of nothing would say that nothing can be lost.",
        fix=f"pass at least one: {example}.",
    )


def advanced(*, count: int, epsilon: Exact, delta: Exact = 0, slack: Exact) -> Loss:
    """``count`` adaptive releases of (``epsilon``, ``delta``), for ``slack`` more delta (DR 3.20).

    epsilon' = epsilon sqrt(2 k ln(1 / slack)) + k epsilon (e**epsilon - 1), and
    delta' = k delta + slack.  (For groups this would be wrong: see ``Loss.for_group``.)

    >>> print(decimal_up(advanced(count=50, epsilon="0.1", slack="1e-6").epsilon))
    4.24278
    """
    times = whole(count, name="count", least=1)
    each = positive(epsilon, name="epsilon")
    more = proportion(slack, name="slack")
    _within_reach(each)
    total = round_up(
        enclose(lambda: _add_advanced(times, each, more))[1], Fraction(1, EPSILON_UNITS)
    )
    return Loss.approximate(total, times * failure_mass(delta) + more)


def _within_reach(epsilon: Fraction, count: int = 1) -> None:
    """Refuse what would take for ever, and whose answer would mean nothing."""
    if count > _MOST_COUNT:
        raise InvalidParameter(
            "P2",
            f"count must be at most {_MOST_COUNT:,}, got {quote_value(count)}.",
            why="the exact account has a term for every release.",
            fix="add concentrated losses instead: (count * Loss.pure('0.001')).epsilon_at('1e-9').",
        )
    if count * epsilon > _MOST_EPSILON:
        raise InvalidParameter(
            "P2",
            f"the epsilons add up to more than {_MOST_EPSILON:,}.",
            why="a loss of e to this power protects nobody, and its digits would fill the memory.",
            fix="compose fewer releases, or pass a smaller epsilon.",
        )


def _add_advanced(count: int, epsilon: Fraction, slack: Fraction) -> arb:
    e = ball(epsilon)
    return e * (-2 * count * ball(slack).log()).sqrt() + count * e * e.expm1()


def per_query(*, count: int, epsilon: Exact, delta: Exact) -> Fraction:
    """The most that each of ``count`` adaptive pure queries may spend of (``epsilon``, ``delta``).

    DR Corollary 3.21 says epsilon / (2 sqrt(2 k ln(1 / delta))), which holds for
    epsilon < 1 only.  This solves Theorem 3.20 itself, or adds the epsilons when
    that allows more, so it holds for every epsilon and is never smaller where
    the corollary holds.  Rounds down.

    >>> round(float(per_query(count=200, epsilon=3, delta="1e-6")), 6)
    0.036671
    """
    times = whole(count, name="count", least=1)
    total, slack = positive(epsilon, name="epsilon"), proportion(delta, name="delta")
    unit = Fraction(1, EPSILON_UNITS)

    def fits(units: int) -> bool:
        return enclose(lambda: _add_advanced(times, units * unit, slack))[1] <= total

    # Adding the epsilons always fits; a query that spends more than everything never does.
    most = greatest_integer(
        fits,
        holds_at=math.floor(total / times / unit),
        fails_at=math.floor(total / unit) + 1,
        bits=40,
    )
    if most == 0:
        raise InvalidParameter(
            "P2",
            f"{times} queries are too many for epsilon = {decimal_up(total)}.",
            why="less than one unit would be left for each, and nothing is free.",
            fix="ask fewer queries or raise epsilon.",
        )
    return most * unit


# --- the exact answer for k equal (epsilon, delta) ----------------------------------------------


@dataclass(frozen=True, slots=True, init=False)
class OptimalComposition(Profile):
    """``count`` adaptive releases, each any (``epsilon``, ``delta``)-private mechanism, exactly.

    Kairouz, Oh and Viswanath (2015), Theorem 3.3: randomised response (which
    gives itself away with probability delta) is the worst mechanism, so the
    binomial law of its answers is the whole story.

    >>> together = OptimalComposition(count=200, epsilon="0.1")
    >>> print(decimal_up(together.epsilon_at("1e-6")))
    7.1856
    """

    count: int
    epsilon: Fraction
    delta: Fraction

    def __init__(self, *, count: int, epsilon: Exact, delta: Exact = 0) -> None:
        object.__setattr__(self, "count", whole(count, name="count", least=1))
        object.__setattr__(self, "epsilon", positive(epsilon, name="epsilon"))
        object.__setattr__(self, "delta", failure_mass(delta))
        _within_reach(self.epsilon, self.count)

    @property
    def loss(self) -> Loss:
        """The sum of the losses."""
        return self.count * Loss.approximate(self.epsilon, self.delta)

    @property
    def reach(self) -> Fraction:
        """Beyond it there is only failure."""
        return self.count * self.epsilon

    @property
    def spread(self) -> float:
        """Independent losses of plus or minus epsilon."""
        return math.sqrt(self.count) * float(self.epsilon)

    def curve(self, epsilon: Fraction) -> arb:
        """Delta at ``epsilon``: 1 - (1 - delta)**k (1 - divergence of k randomised responses)."""
        # l dissenting answers make the loss (k - 2 l) epsilon; those above the target count.
        most = min(math.ceil((self.count - epsilon / self.epsilon) / 2) - 1, self.count)
        survives = ball(1 - self.delta) ** self.count
        if most < 0:
            return 1 - survives
        mine, theirs = _dissents(self.count, self.epsilon, ctx.prec)[most]
        return 1 - survives * (1 - (mine - ball(epsilon).exp() * theirs))

    def epsilon_at(self, delta: Exact) -> Amount:
        """The least epsilon for this ``delta``, rounded up to a unit; solved, not searched."""
        target = failure_mass(delta)
        with precision(_BITS):
            left = ends(1 - ball(1 - target) / ball(1 - self.delta) ** self.count)[0]
            if left < 0 and self.delta:
                within = fails_within([(self.delta, self.count)], target)
                return self.reach if within else INFINITY
            return self._solve(max(left, Fraction(0)))

    def _solve(self, left: Fraction) -> Fraction:
        """The target at which the hockey-stick divergence falls to ``left``."""
        sums = _dissents(self.count, self.epsilon, _BITS)

        def too_large(dissents: int) -> bool:
            mine, theirs = sums[dissents]
            at = ball((self.count - 2 * dissents) * self.epsilon).exp()
            return ends(mine - at * theirs)[1] > left

        # The first l >= 1 for which the divergence at its loss is too large.
        first = least_integer(too_large, fails_at=0, holds_at=self.count // 2 + 1)
        # Between the losses of l and l - 1 only the answers up to l - 1 count, and the
        # divergence is linear in e**target.
        top = (self.count - 2 * (first - 1)) * self.epsilon
        bottom = max(Fraction(0), top - 2 * self.epsilon)
        most, least = ends(sums[first - 1][0])[1], ends(sums[first - 1][1])[0]
        if most <= left:
            return bottom
        solved = round_up(log_up((most - left) / least), Fraction(1, EPSILON_UNITS))
        return min(top, max(solved, bottom))


@lru_cache(maxsize=8)
def _dissents(count: int, epsilon: Fraction, bits: int) -> list[tuple[arb, arb]]:
    """P(at most l answers dissent) under the truth and under its neighbour, l = 0 .. count."""
    with precision(bits):
        yes, no = 1 / (1 + ball(-epsilon).exp()), 1 / (1 + ball(epsilon).exp())
        ratio, inverse = ball(-epsilon).exp(), ball(epsilon).exp()
        here, there = yes**count, no**count
        sums = [(here, there)]
        for l in range(count):
            choose = ball(Fraction(count - l, l + 1))
            here, there = here * choose * ratio, there * choose * inverse
            sums.append((sums[-1][0] + here, sums[-1][1] + there))
    return sums


# --- another program's answer --------------------------------------------------------------------


def peer_epsilon(profiles: Iterable[Profile], *, delta: Exact, interval: float = 1e-4) -> float:
    """The epsilon that the dp-accounting library computes for the same releases.

    ``profiles`` are the releases; at ``delta``, with losses rounded to multiples of ``interval``.

    Its privacy-loss distribution is pessimistic by design and convolves in
    floating point by FFT, whose rounding is not bounded: an independent check
    of ``profile.compose``, not a certificate.  Needs the extra ``accounting``.
    """
    target = float(proportion(delta, name="delta"))
    library = _dp_accounting()
    total: Any = None
    ordered = sorted(profiles, key=repr)
    if not ordered:
        raise _nothing("releases", "a profile such as LaplaceProfile(sensitivity=1, scale=20)")
    for profile, copies in groupby(ordered):
        one = _peer_distribution(library, profile, interval).self_compose(len(list(copies)))
        total = one if total is None else total.compose(one)
    return float(total.get_epsilon_for_delta(target))


def _peer_distribution(library: Any, profile: Profile, interval: float) -> Any:
    options = {"value_discretization_interval": interval, "pessimistic_estimate": True}
    match profile:
        case LaplaceProfile(sensitivity=s, scale=b, grid=g) if g == 0:
            return library.from_laplace_mechanism(float(b), sensitivity=float(s), **options)
        case LaplaceProfile(sensitivity=s, scale=b, grid=g):
            return library.from_discrete_laplace_mechanism(float(g / b), int(s / g), **options)
        case GaussianProfile(sensitivity=s, sigma_squared=v, grid=g) if g == 0:
            sigma = math.sqrt(v)
            return library.from_gaussian_mechanism(sigma, sensitivity=float(s), **options)
        case GaussianProfile(sensitivity=s, sigma_squared=v, grid=g):
            sigma = math.sqrt(v) / float(g)
            return library.from_discrete_gaussian_mechanism(sigma, int(s / g), **options)
        case AnyProfile(epsilon=e, delta=d):
            parameters = importlib.import_module("dp_accounting.pld.common")
            return library.from_privacy_parameters(
                parameters.DifferentialPrivacyParameters(float(e), float(d)),
                value_discretization_interval=interval,
            )
        case _:
            raise InvalidParameter(
                "P4",
                f"the dp-accounting library has no distribution for a {type(profile).__name__}.",
                why="a stand-in would compare two different releases.",
                fix="compare Laplace, Gaussian or (epsilon, delta) profiles.",
            )


def _dp_accounting() -> Any:
    try:
        return importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
    except ImportError:
        raise InvalidParameter(
            "P8",
            "the dp-accounting library is not installed.",
            why="the comparison is with its numbers; our own certified ones do not need it.",
            fix="pip install 'discreet[accounting]'.",
        ) from None


# --- side by side --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """One theorem's epsilon for ``count`` releases.

    ``method`` is the theorem's name and ``reference`` where it stands; ``certified`` says whether
    ``epsilon`` is a bound and no estimate.
    """

    method: str
    count: int
    epsilon: Amount
    reference: str
    certified: bool = True


@dataclass(frozen=True, slots=True)
class Comparison:
    """Every theorem's epsilon for the same releases; ``str`` is a table.

    ``delta`` is where they are compared; ``rows`` has one for each theorem and number of releases.
    """

    delta: Fraction
    rows: tuple[Row, ...]

    def series(self) -> dict[str, list[tuple[int, Amount]]]:
        """For a plot: each method's points (count, epsilon)."""
        lines: dict[str, list[tuple[int, Amount]]] = {}
        for row in self.rows:
            lines.setdefault(row.method, []).append((row.count, row.epsilon))
        return lines

    def best(self, count: int) -> Row:
        """The least certified epsilon for ``count`` releases."""
        mine = [row for row in self.rows if row.certified and row.count == count]
        if not mine:
            known = ", ".join(str(k) for k in sorted({row.count for row in self.rows}))
            raise InvalidParameter(
                "P4",
                f"there is no row for {count} releases.",
                why="another row would answer another question.",
                fix=f"ask for one of {known}.",
            )
        return min(mine, key=lambda row: row.epsilon)

    def __str__(self) -> str:
        counts = sorted({row.count for row in self.rows})
        head = ["method", *(f"k = {count:,}" for count in counts), "reference"]
        lines = [head]
        for method, points in self.series().items():
            known = dict(points)
            cells = [_epsilon_text(known.get(count)) for count in counts]
            reference = next(row.reference for row in self.rows if row.method == method)
            lines.append([method, *cells, reference])
        widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
        text = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join([f"ε at δ = {decimal_up(self.delta)}", *text])


def compare(
    release: Any, *, counts: int | Sequence[int], delta: Exact, peer: bool = False
) -> Comparison:
    """The epsilon of ``counts`` equal releases by every theorem, for a table or a plot.

    All are compared at ``delta``.

    ``release`` is a profile, or a mechanism that knows its own: Laplace or Gaussian
    noise where one unit changes one number.  ``peer=True`` adds the number of the
    dp-accounting library.

    >>> print(compare(LaplaceProfile(sensitivity=2, scale=20, grid=0), counts=90, delta="1e-6"))
    ε at δ = 0.000001
    method        k = 90   reference
    basic         9        DR 3.16
    advanced      5.93332  DR 3.20
    optimal       4.4993   Kairouz-Oh-Viswanath 3.3
    concentrated  4.82916  Canonne-Kamath-Steinke 13
    profile       4.41086  privacy-loss distribution
    """
    profile, total = find_profile(release), proportion(delta, name="delta")
    numbers = list(counts) if isinstance(counts, Iterable) else [counts]
    if not numbers:
        raise _nothing("counts", "counts=100, or counts=(10, 100, 1000)")
    rows: list[Row] = []
    for number in numbers:
        count = whole(number, name="counts", least=1)
        _within_reach(Fraction(0), count)
        rows.extend(_rows(profile, count, total))
        if peer:
            estimate = Fraction(peer_epsilon([profile] * count, delta=total))
            rows.append(Row("peer", count, estimate, "dp-accounting", certified=False))
    return Comparison(total, tuple(rows))


def _rows(release: Profile, count: int, delta: Fraction) -> list[Row]:
    loss = release.loss
    rows: list[Row] = []
    alone, each = (
        _bound_release(release, delta / count),
        _bound_release(release, delta / (2 * count)),
    )
    if count * alone.delta <= delta:
        total = basic([count * alone])
        rows.append(Row("basic", count, total.epsilon, "DR 3.16"))
    slack = delta - count * each.delta
    if slack > 0 and not isinstance(each.epsilon, float):
        total = advanced(count=count, epsilon=each.epsilon, delta=each.delta, slack=slack)
        rows.append(Row("advanced", count, total.epsilon, "DR 3.20"))
        worst = OptimalComposition(count=count, epsilon=each.epsilon, delta=each.delta)
        rows.append(Row("optimal", count, worst.epsilon_at(delta), "Kairouz-Oh-Viswanath 3.3"))
    together = concentrated([count * loss]).epsilon_at(delta)
    rows.append(Row("concentrated", count, together, "Canonne-Kamath-Steinke 13"))
    finished = compose([release] * count).epsilon_at(delta)
    rows.append(Row("profile", count, finished, "privacy-loss distribution"))
    return rows


def _bound_release(release: Profile, delta: Fraction) -> Loss:
    """The release with a finite epsilon: its own, or what it has at this delta."""
    if not isinstance(release.loss.epsilon, float):
        return release.loss
    epsilon = release.epsilon_at(delta)
    if isinstance(epsilon, float):
        raise ArithmeticError("a release with a finite rho has a finite epsilon at every delta")
    return Loss.approximate(epsilon, delta)


def _epsilon_text(epsilon: Amount | None) -> str:
    if epsilon is None:
        return "-"
    return "∞" if isinstance(epsilon, float) else decimal_up(epsilon)


__all__ = [
    "Comparison",
    "OptimalComposition",
    "Row",
    "advanced",
    "basic",
    "compare",
    "concentrated",
    "peer_epsilon",
    "per_query",
]
