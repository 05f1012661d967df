"""Quantiles: scores and sensitivities by exhaustion, ties, infinities, the joint law of many."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from discreet.errors import InvalidParameter
from discreet.exact.balls import precision
from discreet.mechanisms import Grid, Quantile, Quantiles
from discreet.mechanisms.quantiles import ranks
from discreet.mechanisms.quantiles.ranks import (
    Cells,
    Domain,
    RankedCells,
    count_all_cells,
    count_occupied_cells,
    score_at,
    score_runs,
)

ALPHA = 1e-9  # chance that a correct sampler fails one test
N = 4_000

QS = [Fraction(1, 2), Fraction(1, 4), Fraction(2, 3), Fraction(9, 10)]


def masses(law) -> list[float]:
    with precision(100):
        return [float(law.mass(outcome)) for outcome in law.outcomes]


def distance(values, z, q) -> Fraction:
    """From q n to the ranks of z: 0 exactly if z is a q-quantile."""
    below, upto = sum(v < z for v in values), sum(v <= z for v in values)
    target = q * len(values)
    return max(below - target, target - upto, Fraction(0))


def scores_of(values, q, domain, how) -> list[int]:
    steps = domain.steps(values)
    cells = RankedCells.of(
        count_all_cells(steps, domain) if how == "counted" else count_occupied_cells(steps)
    )
    runs = score_runs(cells, q, domain.least, domain.most, floor=None)
    lengths = runs.lengths.tolist()
    spelled: dict[int, int] = {}
    for start, length, score in zip(
        runs.starts.tolist(), lengths, runs.scores.tolist(), strict=True
    ):
        for z in range(start, start + length):
            assert z not in spelled
            spelled[z] = score
    assert sorted(spelled) == list(range(domain.least, domain.most + 1))
    assert all(score_at(cells, q, z) == score for z, score in spelled.items())
    for floor in (0, 1, 2, 5):  # the stretch that is worth looking at is the right one
        near = score_runs(cells, q, domain.least, domain.most, floor=floor)
        listed = np.repeat(near.starts, near.lengths) + np.concatenate(
            [np.arange(length) for length in near.lengths]
        )
        assert listed.tolist() == [z for z, score in sorted(spelled.items()) if score >= -floor]
    return [spelled[z] for z in sorted(spelled)]


def data_sets(most: int = 4, top: int = 3):
    for n in range(most + 1):
        yield from itertools.combinations_with_replacement(range(top + 1), n)


# --- scores ------------------------------------------------------------------------------------


@pytest.mark.parametrize("q", QS)
@pytest.mark.parametrize("how", ["counted", "gathered"])
def test_scores_are_the_distance_in_ranks(q, how):
    domain = Domain(0, 3, None)
    for values in data_sets():
        expected = [-distance(values, z, q) * q.denominator for z in range(4)]
        assert scores_of(values, q, domain, how) == expected
        assert max(expected) == 0  # some candidate is a quantile, whatever the data


@pytest.mark.parametrize("q", QS)
def test_the_sensitivity_is_right_and_attained(q):
    """max(a, b - a) when a value is added, b when one is changed: by exhaustion."""
    a, b = q.numerator, q.denominator
    domain = Domain(0, 3, None)
    added = changed = 0
    for values in data_sets():
        scores = scores_of(values, q, domain, "counted")
        for more in range(4):
            longer = scores_of((*values, more), q, domain, "counted")
            added = max(added, *(abs(x - y) for x, y in zip(scores, longer, strict=True)))
            for other in range(4):
                swapped = scores_of((*values, other), q, domain, "counted")
                changed = max(changed, *(abs(x - y) for x, y in zip(longer, swapped, strict=True)))
    assert added == max(a, b - a)
    assert changed == b
    assert Quantile(q, lower=0, upper=3, epsilon=2).rate == Fraction(1, max(a, b - a))
    assert Quantile(q, lower=0, upper=3, epsilon=2, change_one=True).rate == Fraction(1, b)


def test_the_law_is_the_exponential_mechanism():
    values = [2, 2, 5, 9, 40, -7]
    mechanism = Quantile("1/3", lower=0, upper=12, epsilon="3/2")
    weights = [
        math.exp(-1.5 / (2 * Fraction(2, 3)) * distance([2, 2, 5, 9, 12, 0], z, Fraction(1, 3)))
        for z in range(13)
    ]
    expected = [weight / sum(weights) for weight in weights]
    assert masses(mechanism.law(values)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("near", [96, 1])
@pytest.mark.parametrize("upper", [12, 12_000])
def test_draws_follow_the_law(upper, near, monkeypatch):
    """A small domain that is counted, a large one that is gathered; far candidates together."""
    monkeypatch.setattr(ranks, "NEAR", near)
    values = [2, 2, 5, 9]
    mechanism = Quantile("1/2", lower=-3, upper=upper, epsilon=4)
    law = dict(zip(range(-3, upper + 1), masses(mechanism.law(values)), strict=True))
    runs = N if near > 1 else N // 4  # most trials are rejected there
    seen = [mechanism.release(values) for _ in range(runs)]
    t = math.sqrt(math.log(2 * 14 / ALPHA) / (2 * runs))
    for z in range(-3, 10):
        assert abs(seen.count(z) / runs - law[z]) <= t
    beyond = sum(mass for z, mass in law.items() if z > 9)
    assert abs(sum(z > 9 for z in seen) / runs - beyond) <= t


# --- nothing fails -----------------------------------------------------------------------------

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    "values",
    [
        [],
        [7],
        [7] * 1491,
        [7] * 1492,
        [INF, -INF, NAN],
        [NAN] * 5,
        [10**30, -(10**30)],
        [1e308, -1e308, 5e-324],
        np.full(2**20, 7),
        np.full(2**20, 7.5),
        np.array([], dtype=np.float64),
        np.array([2**64 - 1, 3], dtype=np.uint64),
        np.array([-(2**63), 2**63 - 1]),
        np.array([1, 2, 3], dtype=np.int8),
        np.array([1.5, NAN, INF], dtype=np.float32),
    ],
    ids=lambda v: f"{type(v).__name__} of {len(v)}",
)
@pytest.mark.parametrize("grid", [None, Grid("1/8"), Grid(4), Grid(Fraction(1, 2**40))])
def test_never_raises(values, grid):
    one = Quantile("1/2", lower=0, upper=120, epsilon=1, grid=grid).release(values)
    many = Quantiles(["1/10", "1/2", "9/10"], lower=0, upper=120, epsilon=1, grid=grid).release(
        values
    )
    step = 1 if grid is None else grid.step
    for answer in [one, *many]:
        assert 0 <= answer <= 120
        assert Fraction(answer) % step == 0
    assert many == sorted(many)


@pytest.mark.parametrize("n", [2**k for k in range(0, 21, 4)] + [3, 1491, 1492])
def test_every_size_answers(n):
    values = np.arange(n) % 100
    answer = Quantile("1/2", lower=0, upper=99, epsilon=50).release(values)
    assert abs(float(np.mean(values < answer)) - 0.5) <= 0.5
    if n > 1000:
        assert abs(answer - 49) <= 2


def test_what_is_no_number_is_left_out_and_the_rest_is_clipped():
    domain = Domain("1/3", 10, Grid("1/4"))
    assert (domain.least, domain.most) == (2, 40)
    steps = domain.steps([0.0, 0.5, 3.49, NAN, INF, -INF, 99])
    assert steps.tolist() == [2, 2, 13, 40, 2, 40]
    assert domain.steps(np.array([0, 1, 3, 99])).tolist() == [2, 4, 12, 40]
    inside = Domain("1/4", "3/4", Grid("1/8"))  # no whole number lies inside
    assert inside.steps(np.array([-5, 0, 1, 5])).tolist() == [2, 2, 6, 6]
    coarse = Domain(0, 100, Grid(8))
    assert coarse.steps(np.array([-1, 7, 8, 99, 1000])).tolist() == [0, 0, 1, 12, 12]


# --- ties set apart ----------------------------------------------------------------------------


class Fine(NamedTuple):
    least: int
    most: int
    shift: int


def spread(cells: Cells, domain: Domain) -> tuple[list[int], Fine]:
    """Every value at its own position: the i-th of a cell at the reversal of i's binary digits."""
    shift = domain.shift
    places = [
        (at << shift) + int(f"{i % 2**shift:0{shift}b}"[::-1], 2)
        for at, count in zip(cells.at.tolist(), cells.counts.tolist(), strict=True)
        for i in range(count)
    ]
    return sorted(places), Fine(domain.least << shift, ((domain.most + 1) << shift) - 1, shift)


def test_spreading_moves_nobody_else(monkeypatch):
    """One value more is one position more: the lemma behind halving with ties."""
    monkeypatch.setattr(ranks, "_FINE_BITS", 3)
    domain = Domain(0, 3, None)
    for values in data_sets(most=4, top=1):
        crowd = [2] * 9 + list(values)
        for more in range(4):
            small, fine = spread(count_all_cells(domain.steps(crowd), domain), domain)
            large, _ = spread(count_all_cells(domain.steps([*crowd, more]), domain), domain)
            extra = list(large)
            for position in small:
                extra.remove(position)
            assert len(extra) == 1
            assert extra[0] >> fine.shift == more


def test_spreading_is_even_and_the_same_from_either_count():
    domain = Domain(0, 2000, None)
    values = np.concatenate([np.full(1000, 7), np.full(3, 9), [11, 1500]])
    places, fine = spread(count_all_cells(domain.steps(values), domain), domain)
    again, _ = spread(count_occupied_cells(domain.steps(values)), domain)
    assert places == again
    places = np.array(places)
    assert (np.diff(places) > 0).all()
    seven = places[places >> fine.shift == 7] - (7 << fine.shift)
    ideal = np.arange(1000) / 1000
    assert np.abs(seven / 2**fine.shift - ideal).max() < 0.01


@pytest.mark.parametrize("bits", [1, 3, 20])
def test_positions_laid_out_on_demand_are_those_of_everybody(bits, monkeypatch):
    """Against a list of all places: counts up to a position, stretches of ranks, and parts."""
    monkeypatch.setattr(ranks, "_FINE_BITS", bits)
    domain = Domain(0, 40, None)
    rng = np.random.default_rng(bits)
    for size in (0, 1, 5, 60, 700):
        values = np.concatenate([rng.integers(0, 41, size), np.full(size // 2, 17)])
        for cells in (count_all_cells(values, domain), count_occupied_cells(values)):
            points, fine = spread(cells, domain)
            whole = RankedCells.of(cells, shift=fine.shift)
            assert_same(whole, points, rng)
            for position in (points[size // 3] if size else 9, fine.least, fine.most):
                left, right = whole.split(position)
                assert_same(left, [p for p in points if p <= position], rng)
                assert_same(right, [p for p in points if p > position], rng)


def assert_same(part: RankedCells, points: list[int], rng) -> None:
    assert part.total == len(points)
    for position in [*points[:: 1 + len(points) // 40], *rng.integers(0, 42 << part.shift, 20)]:
        assert part.count_up_to(int(position)) == sum(p <= position for p in points)
    for _ in range(12 if points else 0):
        first, last = sorted((rng.integers(0, len(points), 2) + 1).tolist())
        at, upto, before = part.between_ranks(first, last)
        expected = sorted({p for p in points if points[first - 1] <= p <= points[last - 1]})
        assert [
            p for p, n in zip(at.tolist(), np.diff(upto, prepend=before), strict=True) if n
        ] == (expected)
        assert upto[-1] == sum(p <= expected[-1] for p in points)
        assert before == sum(p < expected[0] for p in points)


def test_a_crowd_on_one_value_is_split_in_proportion():
    """Forty per cent on one value: the deciles around it are not pulled towards it."""
    values = np.concatenate([np.arange(3000), np.full(4000, 3000), np.arange(3001, 6001)])
    wanted = [f"{i}/10" for i in range(1, 10)]
    answers = Quantiles(wanted, lower=0, upper=10_000, epsilon=400).release(values)
    for q, answer in zip(wanted, answers, strict=True):
        assert distance(values.tolist(), answer, Fraction(q)) < 60


# --- many at once ------------------------------------------------------------------------------


def joint_law(mechanism: Quantiles, values) -> dict:
    """Every path of the halving, with the exponential mechanism written out at each node."""
    places, fine = spread(
        count_all_cells(mechanism.domain.steps(values), mechanism.domain), mechanism.domain
    )
    points = places

    def halve(data, least, most, wanted, low, high):
        if not wanted:
            return {(): 1.0}
        middle = len(wanted) // 2
        q = (wanted[middle] - low) / (high - low)
        rate = mechanism.level_epsilon / (2 * max(q, 1 - q))
        weights = {z: math.exp(-rate * distance(data, z, q)) for z in range(least, most + 1)}
        total = sum(weights.values())
        law: dict = {}
        for z, weight in weights.items():
            left = halve(
                [x for x in data if x <= z], least, z, wanted[:middle], low, wanted[middle]
            )
            right = halve(
                [x for x in data if x > z],
                min(z + 1, most),
                most,
                wanted[middle + 1 :],
                wanted[middle],
                high,
            )
            for (one, p), (two, r) in itertools.product(left.items(), right.items()):
                key = (*one, z >> fine.shift, *two)
                law[key] = law.get(key, 0.0) + weight / total * p * r
        return law

    return halve(points, fine.least, fine.most, mechanism.quantiles, Fraction(0), Fraction(1))


def test_the_joint_law_keeps_the_promise(monkeypatch):
    monkeypatch.setattr(ranks, "_FINE_BITS", 1)
    mechanism = Quantiles(["1/5", "1/2", "3/5"], lower=0, upper=2, epsilon=2)
    worst_pure = worst_renyi = 0.0
    for values in ([], [1], [1, 1, 1], [0, 1, 2, 2], [0, 0, 2, 2]):
        law = joint_law(mechanism, values)
        assert sum(law.values()) == pytest.approx(1)
        for more in range(3):
            other = joint_law(mechanism, [*values, more])
            assert law.keys() == other.keys()
            for p, q in ((law, other), (other, law)):
                worst_pure = max(worst_pure, *(math.log(p[key] / q[key]) for key in p))
                worst_renyi = max(worst_renyi, math.log(sum(p[k] ** 2 / q[k] for k in p)))
    assert worst_pure <= 2
    assert worst_renyi <= 2 * mechanism.loss.rho
    assert worst_pure > 0.5


def test_draws_of_many_follow_the_joint_law(monkeypatch):
    monkeypatch.setattr(ranks, "_FINE_BITS", 1)
    mechanism = Quantiles(["1/5", "1/2", "3/5"], lower=0, upper=2, epsilon=6)
    values = [0, 1, 1, 1, 2]
    law = joint_law(mechanism, values)
    seen: dict = {}
    for _ in range(N):
        key = tuple(mechanism.release(values))
        seen[key] = seen.get(key, 0) + 1
    t = math.sqrt(math.log(2 * len(law) / ALPHA) / (2 * N))
    assert set(seen) <= set(law)
    assert all(abs(seen.get(key, 0) / N - mass) <= t for key, mass in law.items())


def test_what_many_cost():
    deciles = Quantiles([f"{i}/10" for i in range(1, 10)], lower=0, upper=9, epsilon=2)
    assert (deciles.levels, deciles.level_epsilon, deciles.loss.epsilon) == (4, Fraction(1, 2), 2)
    assert deciles.loss.rho == 4 * Fraction(1, 4) / 8
    by_rho = Quantiles(["1/4", "1/2", "3/4"], lower=0, upper=9, rho="1/8")
    assert Fraction(1, 8) * (1 - Fraction(1, 2**50)) < by_rho.loss.rho <= Fraction(1, 8)
    assert [
        Quantiles(QS_OF[m], lower=0, upper=9, epsilon=1).levels for m in (1, 2, 3, 4, 7, 8)
    ] == [math.ceil(math.log2(m + 1)) for m in (1, 2, 3, 4, 7, 8)]


QS_OF = {m: [Fraction(i, m + 1) for i in range(1, m + 1)] for m in range(1, 9)}


def test_margins():
    one = Quantile("1/4", lower=0, upper=999, epsilon="1/2")
    expected = 2 * 0.75 / 0.5 * math.log(999 * 0.95 / 0.05)
    assert one.margin("0.05") == pytest.approx(expected, rel=1e-12)
    many = Quantiles(["1/4", "1/2", "3/4"], lower=0, upper=999, epsilon="1/2")
    assert many.margin("0.05") > one.margin("0.05")


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "code"),
    [
        (lambda: Quantile(0, lower=0, upper=9, epsilon=1), "P2"),
        (lambda: Quantile("3/2", lower=0, upper=9, epsilon=1), "P2"),
        (lambda: Quantile(1 / 3, lower=0, upper=9, epsilon=1), "P6"),
        (lambda: Quantile("1/2", lower=9, upper=0, epsilon=1), "P2"),
        (lambda: Quantile("1/2", lower=0, upper=2**62, epsilon=1), "P2"),
        (lambda: Quantile("1/2", lower=0, upper=9, epsilon=0), "P2"),
        (lambda: Quantile("1/2", lower=0, upper=9), "P4"),
        (lambda: Quantiles([], lower=0, upper=9, epsilon=1), "P5"),
        (lambda: Quantiles(["1/2", "1/4"], lower=0, upper=9, epsilon=1), "P4"),
        (lambda: Quantiles(["1/2", "1/2"], lower=0, upper=9, epsilon=1), "P4"),
        (lambda: Quantiles(["1/2"], lower=0, upper=9, epsilon=1, rho=1), "P4"),
        (lambda: Quantile("1/2", lower=0, upper=9, epsilon=1).release(["x"]), "P6"),
        (lambda: Quantile("1/2", lower=0, upper=9, epsilon=1).release(np.zeros((2, 2))), "P6"),
        (lambda: Quantile("1/2", lower=0, upper=2**40, epsilon=1).law([3]), "P4"),
    ],
)
def test_refusals(build, code):
    with pytest.raises(InvalidParameter) as refusal:
        build()
    assert refusal.value.code == code


def test_repr_reads_like_the_call():
    for mechanism in (
        Quantile("1/4", lower="1/2", upper=9, epsilon=2, change_one=True, grid=Grid("1/8")),
        Quantiles(["1/4", "1/2"], lower=0, upper=9, epsilon="1/2"),
    ):
        assert eval(repr(mechanism)) == mechanism
