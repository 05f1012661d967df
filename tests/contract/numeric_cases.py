"""The numeric mechanisms, their neighbouring inputs and their worst pairs."""

from __future__ import annotations

from fractions import Fraction

from contract.law_case import LawCase, Pair
from hypothesis import strategies as st

from discreet.mechanisms import (
    Gaussian,
    Grid,
    HammingCube,
    Histogram,
    Laplace,
    MetricNoise,
    MetricSpace,
    Moments,
    PropertyDistance,
    RandomizedResponse,
    Staircase,
    TwoCoinResponse,
    distance_to_clusters,
    distance_to_maximum,
    distance_to_sorted,
)

NEARLY_ALL = Fraction(99, 100)

prices = st.fractions(min_value=Fraction(1, 20), max_value=4, max_denominator=60)
wholes = st.integers(-(10**6), 10**6)


def at(mechanism, first, second) -> Pair:
    return Pair(mechanism.law(first), mechanism.law(second), mechanism.loss)


# --- staircase -------------------------------------------------------------------------------


@st.composite
def staircase_pairs(draw) -> Pair:
    """One entry of several moves, by at most the sensitivity."""
    sensitivity = draw(st.integers(2, 40))
    width = draw(st.none() | st.integers(1, sensitivity))
    mechanism = Staircase(sensitivity=sensitivity, epsilon=draw(prices), width=width)
    first = draw(st.lists(wholes, min_size=1, max_size=3))
    second = list(first)
    second[draw(st.integers(0, len(first) - 1))] += draw(st.integers(-sensitivity, sensitivity))
    return at(mechanism, first, second)


# --- Laplace ---------------------------------------------------------------------------------


@st.composite
def laplace_pairs(draw) -> Pair:
    sensitivity = draw(st.integers(2, 40))
    mechanism = Laplace(sensitivity=sensitivity, epsilon=draw(prices))
    value = draw(wholes)
    return at(mechanism, value, value + draw(st.integers(-sensitivity, sensitivity)))


@st.composite
def laplace_vector_pairs(draw) -> Pair:
    sensitivity = draw(st.integers(2, 12))
    mechanism = Laplace(sensitivity=sensitivity, epsilon=draw(prices))
    first = draw(st.lists(wholes, min_size=2, max_size=4))
    second, left = [], sensitivity
    for value in first:
        move = draw(st.integers(-left, left))
        second.append(value + move)
        left -= abs(move)
    return at(mechanism, first, second)


@st.composite
def grid_pairs(draw) -> Pair:
    """Real vectors whose entries move by at most the sensitivity in total, anywhere on the line."""
    grid = Grid(Fraction(2) ** draw(st.integers(-6, 3)))
    sensitivity = draw(st.fractions(min_value=Fraction(1, 9), max_value=9, max_denominator=40))
    entries = draw(st.integers(1, 3))
    mechanism = Laplace(
        sensitivity=sensitivity, epsilon=draw(prices), grid=grid, entries_changed=entries
    )
    reals = st.fractions(min_value=-50, max_value=50, max_denominator=997)
    first = [draw(reals) for _ in range(entries)]
    shares = [draw(st.integers(0, 9)) for _ in range(entries)]
    total = max(sum(shares), 1)
    signs = [draw(st.sampled_from([-1, 1])) for _ in range(entries)]
    second = [
        value + sign * sensitivity * share / total
        for value, sign, share in zip(first, signs, shares, strict=True)
    ]
    return at(mechanism, first, second)


def grid_worst() -> Pair:
    """Two entries cross a boundary by almost nothing; the third moves by the rest."""
    step = Fraction(1, 4)
    mechanism = Laplace(sensitivity="2.3", epsilon="7/5", grid=Grid(step), entries_changed=3)
    tiny, edge = Fraction(1, 10**9), step / 2
    first = [edge - tiny, edge - tiny, edge - tiny]
    second = [edge, edge, first[2] + Fraction(23, 10) - 2 * tiny]
    return at(mechanism, first, second)


# --- Gaussian --------------------------------------------------------------------------------


@st.composite
def gaussian_pairs(draw) -> Pair:
    sensitivity = draw(st.integers(2, 9))
    mechanism = Gaussian(sensitivity=sensitivity, rho=draw(prices) / 4)
    value = draw(wholes)
    return at(mechanism, value, value + draw(st.integers(-sensitivity, sensitivity)))


@st.composite
def gaussian_grid_pairs(draw) -> Pair:
    grid = Grid(Fraction(2) ** draw(st.integers(-3, 2)))
    sensitivity = draw(st.fractions(min_value=Fraction(1, 3), max_value=5, max_denominator=12))
    mechanism = Gaussian(
        sensitivity=sensitivity, rho=draw(prices) / 4, grid=grid, entries_changed=2
    )
    reals = st.fractions(min_value=-20, max_value=20, max_denominator=97)
    first = [draw(reals), draw(reals)]
    # (3/5, 4/5) and its relatives are rational points of the circle.
    part, rest = draw(st.sampled_from([(0, 5), (3, 4), (4, -3), (-5, 0)]))
    second = [first[0] + sensitivity * part / 5, first[1] + sensitivity * rest / 5]
    return at(mechanism, first, second)


# --- randomized response and metric spaces ---------------------------------------------------


@st.composite
def response_pairs(draw) -> Pair:
    categories = draw(st.integers(2, 7))
    mechanism = RandomizedResponse(epsilon=draw(prices), categories=categories)
    answers = st.integers(0, categories - 1)
    return at(mechanism, draw(answers), draw(answers))


@st.composite
def coin_pairs(draw) -> Pair:
    categories = draw(st.integers(2, 7))
    truth = draw(st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=50))
    mechanism = TwoCoinResponse(truth=truth, categories=categories)
    answers = st.integers(0, categories - 1)
    return at(mechanism, draw(answers), draw(answers))


def cycle(length: int) -> MetricSpace:
    return MetricSpace.of(range(length), lambda p, q: min((p - q) % length, (q - p) % length))


def line(length: int) -> MetricSpace:
    return MetricSpace.of(range(length), lambda p, q: abs(p - q))


def star(leaves: int) -> MetricSpace:
    """A centre and leaves at distance 1 from it, 2 from each other: far from homogeneous."""
    return MetricSpace.of(
        range(leaves + 1), lambda p, q: 0 if p == q else 1 if p == 0 or q == 0 else 2
    )


@st.composite
def metric_pairs(draw) -> Pair:
    space = draw(st.sampled_from([cycle, line, star]))(draw(st.integers(3, 12)))
    sensitivity = draw(st.integers(1, 3))
    mechanism = MetricNoise(space=space, sensitivity=sensitivity, epsilon=draw(prices))
    first = draw(st.sampled_from(space.points))
    near = [point for point in space.points if space.distance(first, point) <= sensitivity]
    return at(mechanism, first, draw(st.sampled_from(near)))


@st.composite
def hamming_pairs(draw) -> Pair:
    bits = draw(st.lists(st.booleans(), min_size=2, max_size=8))
    sensitivity = draw(st.integers(1, len(bits)))
    mechanism = HammingCube(sensitivity=sensitivity, epsilon=draw(prices))
    flipped = draw(st.sets(st.integers(0, len(bits) - 1), max_size=sensitivity))
    other = [bit != (place in flipped) for place, bit in enumerate(bits)]
    return at(mechanism, bits, other)


# --- insensitive functions -------------------------------------------------------------------


@st.composite
def histogram_pairs(draw) -> Pair:
    bins = ("a", "b", "c")
    rows_per_unit = draw(st.integers(1, 4))
    mechanism = Histogram(bins=bins, epsilon=draw(prices), rows_per_unit=rows_per_unit)
    rows = st.sampled_from([*bins, "elsewhere"])
    others = draw(st.lists(rows, max_size=9))
    own = draw(st.lists(rows, max_size=rows_per_unit))
    return at(mechanism, others, others + own)


@st.composite
def property_pairs(draw) -> Pair:
    distance = draw(
        st.sampled_from(
            [
                distance_to_sorted,
                lambda rows: distance_to_maximum(rows, bound=11),
                lambda rows: distance_to_clusters(rows, clusters=2, width="5/2"),
            ]
        )
    )
    rows = draw(st.lists(st.integers(0, 20) | st.just(float("nan")), max_size=14))
    place = draw(st.integers(0, len(rows)))
    more = [*rows[:place], draw(st.integers(0, 20)), *rows[place:]]
    return at(PropertyDistance(distance, epsilon=draw(prices)), rows, more)


@st.composite
def moment_pairs(draw) -> Pair:
    mechanism = Moments(dimension=2, bound=3, epsilon=draw(prices), grid=Grid("1/8"))
    doubles = st.floats(allow_nan=True, allow_infinity=True)
    rows = draw(st.lists(st.tuples(doubles, doubles), min_size=2, max_size=4))
    return at(mechanism, rows[:-1], rows)


def moments_worst() -> Pair:
    mechanism = Moments(dimension=2, bound=3, epsilon="3/2", grid=Grid("1/8"))
    return at(mechanism, [(1.0, 0.5)], [(1.0, 0.5), (0.0, -3.0)])


CASES = [
    LawCase(
        "laplace",
        laplace_pairs(),
        lambda: at(Laplace(sensitivity=7, epsilon="3/5"), 100, 107),
        NEARLY_ALL,
    ),
    LawCase(
        "laplace vector",
        laplace_vector_pairs(),
        lambda: at(Laplace(sensitivity=5, epsilon="3/5"), [9, 4, 7], [11, 4, 4]),
        NEARLY_ALL,
    ),
    LawCase(
        "staircase",
        staircase_pairs(),
        lambda: at(Staircase(sensitivity=7, epsilon="5/2"), 100, 107),
        NEARLY_ALL,
    ),
    LawCase("laplace grid", grid_pairs(), grid_worst, NEARLY_ALL),
    LawCase(
        "gaussian",
        gaussian_pairs(),
        lambda: at(Gaussian(sensitivity=3, rho="1/8"), 40, 43),
    ),
    LawCase(
        "gaussian grid",
        gaussian_grid_pairs(),
        lambda: at(
            Gaussian(sensitivity=5, rho="1/8", grid=Grid("1/64"), entries_changed=2),
            [Fraction(0), Fraction(0)],
            [Fraction(3), Fraction(4)],
        ),
    ),
    LawCase(
        "randomized response",
        response_pairs(),
        lambda: at(RandomizedResponse(epsilon="5/4", categories=4), 3, 2),
        NEARLY_ALL,
    ),
    LawCase(
        "two-coin response",
        coin_pairs(),
        lambda: at(TwoCoinResponse(truth="1/2"), True, False),
        NEARLY_ALL,
    ),
    LawCase(
        "metric, homogeneous",
        metric_pairs(),
        lambda: at(MetricNoise(space=cycle(9), sensitivity=2, epsilon="6/5"), 3, 5),
        NEARLY_ALL,
    ),
    LawCase(
        "metric, line",
        metric_pairs(),
        lambda: at(MetricNoise(space=line(9), sensitivity=2, epsilon="6/5"), 0, 2),
    ),
    LawCase(
        "metric, star",
        metric_pairs(),
        lambda: at(MetricNoise(space=star(60), sensitivity=1, epsilon=8), 0, 3),
    ),
    LawCase(
        "hamming cube",
        hamming_pairs(),
        lambda: at(HammingCube(sensitivity=3, epsilon=2), [1, 0, 0, 1], [0, 1, 0, 0]),
        NEARLY_ALL,
    ),
    LawCase(
        "histogram",
        histogram_pairs(),
        lambda: at(
            Histogram(bins=("a", "b"), epsilon="1/2", rows_per_unit=3), ["a"], ["a", "b", "b", "b"]
        ),
        NEARLY_ALL,
    ),
    LawCase(
        "distance from a property",
        property_pairs(),
        lambda: at(PropertyDistance(distance_to_sorted, epsilon="1/2"), [2, 3, 5], [2, 9, 3, 5]),
        NEARLY_ALL,
    ),
    LawCase("moments", moment_pairs(), moments_worst, NEARLY_ALL),
]
