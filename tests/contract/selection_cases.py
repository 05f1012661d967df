"""The mechanisms that choose, their neighbouring inputs and their worst pairs."""

from __future__ import annotations

from fractions import Fraction

from contract.law_case import LawCase, Pair
from hypothesis import strategies as st

from discreet.mechanisms import (
    AboveThreshold,
    ExponentialMechanism,
    Grid,
    PermuteAndFlip,
    Quantile,
    ReportNoisyMax,
    Sparse,
    TopK,
)

NEARLY_ALL = Fraction(99, 100)
MOST = Fraction(19, 20)

# The exact laws are sums over noise, so the scales are kept small.
prices = st.fractions(min_value=Fraction(1, 2), max_value=4, max_denominator=12)
high_prices = st.fractions(min_value=2, max_value=5, max_denominator=12)
wholes = st.integers(-9, 9)


def at(mechanism, first, second) -> Pair:
    return Pair(mechanism.law(first), mechanism.law(second), mechanism.loss)


@st.composite
def moved(draw, first, sensitivity, *, monotonic=False, one_only=False):
    """The scores of a neighbour, not all moved alike.

    If they were, a choice would have the same law, and to bound a divergence of
    zero closely takes the highest precision.
    """
    sign = draw(st.sampled_from([-1, 1]))
    low = 0 if monotonic else -sensitivity
    moves = [sign * draw(st.integers(low, sensitivity)) for _ in first]
    place = draw(st.integers(0, len(first) - 1))
    moves = [(move if i == place else 0) if one_only else move for i, move in enumerate(moves)]
    if len(set(moves)) == 1:
        moves[place] = 0 if moves[place] and len(moves) > 1 else sign * sensitivity
    return [value + move for value, move in zip(first, moves, strict=True)]


@st.composite
def choices(draw, kind, *, most=6, **options) -> Pair:
    summed = kind is ReportNoisyMax and "noise" not in options
    sensitivity = draw(st.integers(1, 2 if summed else 3))
    price = draw(high_prices if summed else prices)
    mechanism = kind(sensitivity=sensitivity, epsilon=price, **options)
    first = draw(st.lists(wholes, min_size=2, max_size=most))
    second = draw(
        moved(
            first,
            sensitivity,
            monotonic=options.get("monotonic", False),
            one_only=options.get("disjoint", False),
        )
    )
    return at(mechanism, first, second)


@st.composite
def grid_choices(draw) -> Pair:
    sensitivity = draw(st.fractions(Fraction(1, 5), 3, max_denominator=30))
    mechanism = ExponentialMechanism(
        sensitivity=sensitivity,
        epsilon=draw(prices),
        grid=Grid(Fraction(2) ** draw(st.integers(-4, 2))),
    )
    reals = st.fractions(-20, 20, max_denominator=97)
    moves = st.fractions(-1, 1, max_denominator=13)
    first = draw(st.lists(reals, min_size=2, max_size=5))
    return at(mechanism, first, [value + sensitivity * draw(moves) for value in first])


@st.composite
def top_k(draw, method) -> Pair:
    sensitivity = draw(st.integers(1, 2))
    monotonic = draw(st.booleans())
    mechanism = TopK(
        k=2, sensitivity=sensitivity, epsilon=draw(high_prices), method=method, monotonic=monotonic
    )
    first = draw(st.lists(wholes, min_size=2, max_size=3))
    return at(mechanism, first, draw(moved(first, sensitivity, monotonic=monotonic)))


@st.composite
def streams(draw, kind, **options) -> Pair:
    sensitivity = draw(st.integers(1, 2))
    mechanism = kind(
        threshold=draw(st.integers(-5, 5)),
        sensitivity=sensitivity,
        epsilon=draw(high_prices),
        **options,
    )
    first = draw(st.lists(st.integers(-12, 12), min_size=1, max_size=3))
    second = draw(moved(first, sensitivity, monotonic=options.get("monotonic", False)))
    return at(mechanism, first, second)


@st.composite
def quantile_pairs(draw, *, change_one=False) -> Pair:
    q = draw(st.fractions(Fraction(1, 9), Fraction(8, 9), max_denominator=9))
    mechanism = Quantile(q, lower=-9, upper=9, epsilon=draw(prices), change_one=change_one)
    values = st.integers(-12, 12) | st.sampled_from([float("inf"), float("-inf"), float("nan")])
    rows = draw(st.lists(values, max_size=7))
    if change_one:
        return at(mechanism, [*rows, draw(values)], [*rows, draw(values)])
    return at(mechanism, rows, [*rows, draw(values)])


def worst_choice(kind, *, low=1, monotonic=False, **options) -> Pair:
    """Far below the others, ``low`` candidates rise while the others fall (or stay)."""
    mechanism = kind(sensitivity=3, epsilon="5/4", monotonic=monotonic, **options)
    first = [-150] * low + [0] * low
    second = [-147] * low + [0 if monotonic else -3] * low
    return at(mechanism, second, first)


def worst_stream(kind, *, rounds=1, **options) -> Pair:
    """Many queries high above the threshold that rise, and one far below it that falls."""
    mechanism = kind(threshold=2, sensitivity=1, epsilon=2, **options)
    monotonic = options.get("monotonic", False)
    first, second = [12] * 5 + [-10], [13] * 5 + [-10 if monotonic else -11]
    return at(mechanism, first * rounds, second * rounds)


def worst_quantile(**options) -> Pair:
    """A wide gap around the median gets worse, and a place beyond the data gets better."""
    mechanism = Quantile("1/2", lower=0, upper=1503, epsilon="5/4", **options)
    first = [0] * 20 + [1500] * 20
    second = ([0] * 19 if options else [0] * 20) + [1500] * 20 + [1503]
    return at(mechanism, second, first)


CASES = [
    LawCase(
        "exponential mechanism",
        choices(ExponentialMechanism),
        lambda: worst_choice(ExponentialMechanism),
        NEARLY_ALL,
    ),
    LawCase(
        "exponential mechanism, monotonic",
        choices(ExponentialMechanism, monotonic=True),
        lambda: worst_choice(ExponentialMechanism, monotonic=True),
        NEARLY_ALL,
    ),
    LawCase(
        "exponential mechanism, grid",
        grid_choices(),
        lambda: at(
            ExponentialMechanism(sensitivity=2, epsilon="5/4", grid=Grid("1/8")),
            [-38.0, -2.0],
            [-40.0, 0.0],
        ),
        NEARLY_ALL,
    ),
    LawCase(
        "permute-and-flip",
        choices(PermuteAndFlip),
        lambda: worst_choice(PermuteAndFlip),
        NEARLY_ALL,
    ),
    LawCase(
        "permute-and-flip, monotonic",
        choices(PermuteAndFlip, monotonic=True),
        lambda: worst_choice(PermuteAndFlip, monotonic=True),
        NEARLY_ALL,
    ),
    LawCase(
        "noisy max, laplace",
        choices(ReportNoisyMax, most=3),
        lambda: worst_choice(ReportNoisyMax),
        MOST,
    ),
    LawCase(
        "noisy max, laplace, monotonic",
        choices(ReportNoisyMax, most=3, monotonic=True),
        lambda: worst_choice(ReportNoisyMax, monotonic=True),
        MOST,
    ),
    LawCase(
        "noisy max, laplace, disjoint",
        choices(ReportNoisyMax, most=3, disjoint=True),
        lambda: at(
            ReportNoisyMax(sensitivity=3, epsilon="5/4", disjoint=True), [-147, 0], [-150, 0]
        ),
        MOST,
    ),
    LawCase(
        "noisy max, gumbel",
        choices(ReportNoisyMax, noise="gumbel"),
        lambda: worst_choice(ReportNoisyMax, noise="gumbel"),
        NEARLY_ALL,
    ),
    LawCase(
        "noisy max, exponential",
        choices(ReportNoisyMax, noise="exponential"),
        lambda: worst_choice(ReportNoisyMax, noise="exponential"),
        NEARLY_ALL,
    ),
    LawCase(
        "top-k, peeling",
        top_k("peeling"),
        lambda: worst_choice(TopK, low=2, k=2, method="peeling"),
        NEARLY_ALL,
    ),
    LawCase(
        "top-k, gumbel",
        top_k("gumbel"),
        lambda: worst_choice(TopK, low=2, k=2, method="gumbel"),
        NEARLY_ALL,
    ),
    LawCase(
        "top-k, laplace",
        top_k("laplace"),
        lambda: worst_choice(TopK, low=2, k=2, method="laplace"),
        MOST,
    ),
    LawCase(
        "above threshold",
        streams(AboveThreshold),
        lambda: worst_stream(AboveThreshold),
        NEARLY_ALL,
    ),
    LawCase(
        "above threshold, monotonic",
        streams(AboveThreshold, monotonic=True),
        lambda: worst_stream(AboveThreshold, monotonic=True),
        NEARLY_ALL,
    ),
    LawCase(
        "above threshold, the book's shares",
        streams(AboveThreshold, threshold_share="1/2"),
        lambda: worst_stream(AboveThreshold, threshold_share="1/2"),
        NEARLY_ALL,
    ),
    LawCase(
        "sparse",
        streams(Sparse, cutoff=2),
        lambda: worst_stream(Sparse, rounds=2, cutoff=2),
        NEARLY_ALL,
    ),
    LawCase(
        "sparse, kept threshold",
        streams(Sparse, cutoff=2, renew=False),
        lambda: worst_stream(Sparse, rounds=2, cutoff=2, renew=False),
        NEARLY_ALL,
    ),
    LawCase(
        "sparse, kept threshold, monotonic",
        streams(Sparse, cutoff=2, renew=False, monotonic=True),
        lambda: worst_stream(Sparse, rounds=2, cutoff=2, renew=False, monotonic=True),
        NEARLY_ALL,
    ),
    LawCase("quantile", quantile_pairs(), worst_quantile, NEARLY_ALL),
    LawCase(
        "quantile, change one",
        quantile_pairs(change_one=True),
        lambda: worst_quantile(change_one=True),
        NEARLY_ALL,
    ),
]
