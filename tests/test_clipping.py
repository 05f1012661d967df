"""Ends chosen in the data, and sums between them: AUTO bounds, trimmed means, quartiles."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet.accounting.divergence import max_divergence
from discreet.errors import QuestionRefusal
from discreet.mechanisms import ExponentialMechanism
from discreet.mechanisms.clipping import ENDS, ClippedSums
from discreet.release.record import answer_from_bytes, answer_to_bytes

SCHEMA = """
{neighbours}
[tables.people]
unit = "person"
max_rows_per_unit = 1
columns.person = "integer"
columns.city = {{ type = "text", values = ["Cork", "Delft"], nullable = false }}
columns.income = "decimal"
columns.age = {{ type = "integer", bounds = [0, 1000000] }}
"""
N = 6000
RANDOM = np.random.default_rng(17)
PEOPLE = pd.DataFrame(
    {
        "person": range(N),
        "city": ["Cork", "Delft"] * (N // 2),
        "income": np.round(np.exp(RANDOM.normal(10, 0.5, N)), 2),
        "age": RANDOM.integers(0, 100, N),
    }
)


def clinic(neighbours: str = "", people: pd.DataFrame = PEOPLE) -> discreet.Curator:
    schema = SCHEMA.format(neighbours=neighbours)
    return discreet.curator({"people": people}, schema=schema, budget=500)


# --- the mechanism -------------------------------------------------------------------------------


def cells(values: list[int]) -> tuple[np.ndarray, np.ndarray]:
    return np.unique(np.array(values, dtype=np.int64), return_counts=True)


def test_what_it_costs_is_both_choices_and_the_noise():
    sums = ClippedSums(Fraction(1, 16), Fraction(3, 4), rows=6, score_change=3, span=5000, groups=2)
    assert sums.loss.epsilon == ENDS * 2 * Fraction(1, 16) + Fraction(3, 4)
    assert sums.loss.rho >= ENDS * 2 * Fraction(1, 16) ** 2 / 8


@pytest.mark.parametrize("seed", range(12))
def test_scores_of_ends_move_by_as_many_values_as_are_added(seed):
    """docs/proofs/clipping.md, Lemma 1; and the law of each choice keeps its epsilon exactly."""
    random = np.random.default_rng(seed)
    values = random.integers(0, 200, 40).tolist()
    sums = ClippedSums(Fraction(3, 2), Fraction(1), rows=3, score_change=3, span=200)
    more = values + random.integers(0, 200, 3).tolist()
    choice = ExponentialMechanism(sensitivity=3, epsilon=Fraction(3, 2))
    for one, other in zip(
        sums.score_ends(*cells(values)), sums.score_ends(*cells(more)), strict=True
    ):
        assert max(abs(a - b) for a, b in zip(one, other, strict=True)) <= 3
        for pair in ((one, other), (other, one)):
            low, _ = max_divergence(*(choice.law(scores) for scores in pair))
            assert low <= Fraction(3, 2)


def test_a_score_is_zero_where_the_wanted_rank_lies():
    sums = ClippedSums(Fraction(2), Fraction(1), rows=1, score_change=1, span=10**6)
    wanted = sums.beyond
    values = list(range(1000, 1000 + 5 * wanted))
    lower, upper = sums.score_ends(*cells(values))
    ends = sums.candidates.tolist()
    low, high = ends[lower.index(0)], ends[upper.index(0)]
    assert sum(v > high for v in values) <= wanted <= sum(v >= high / 1.07 for v in values)
    assert sum(v < low for v in values) <= wanted <= sum(v <= low * 1.07 for v in values)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("trim", [None, Fraction(1, 10)])
@pytest.mark.parametrize("span", [90, 2**40])
def test_one_value_moves_the_sums_by_the_weight_of_the_ends(degree, trim, span):
    """Lemma 2: whatever the ends are, a value adds numbers that are not negative, N**d in all."""
    sums = ClippedSums(
        Fraction(1), Fraction(1), rows=1, score_change=1, span=span, degree=degree, trim=trim
    )
    low, high = span // 5, span // 2 + 1
    weight = sums.width(low, high) ** degree
    rounded = degree + 1 if span > 2**30 else 0
    assert weight <= 2**sums.bits
    assert sums.count_rounded(low, high) == rounded
    for value in (0, low - 1, low, low + 7, high - 1, high, high + 1, span):
        added = sums.add_up(*cells([value]), low, high)
        inside = trim is None or low <= value <= high
        assert min(added) >= 0
        if not inside:
            assert added == [0] * (degree + 1)
            continue
        assert weight - rounded < sum(added) <= weight or sum(added) == weight
    assert sums.law(low, high).loss.epsilon == 1
    assert sums.law(low, high).sensitivity == sums.weigh(low, high) == weight + rounded


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("trim", [None, Fraction(1, 10)])
def test_rounded_sums_are_those_of_fractions_and_move_by_their_weight(degree, trim):
    """Lemma 2, where steps are coarser than those of the values: by brute force over values."""
    rng = np.random.default_rng(3)
    sums = ClippedSums(Fraction(1), Fraction(1), 3, 3, 4000, degree=degree, bits=6, trim=trim)
    most_moved = 0
    for _ in range(300):
        low, high = sorted(rng.choice(4000, 2, replace=False).tolist())
        shift, n = sums.shift(low, high), sums.width(low, high)
        values = rng.integers(0, 4000, 5).tolist()

        def add_exactly(some: list[int], low=low, high=high, shift=shift, n=n) -> list[int]:
            kept = [v for v in some if trim is None or low <= v <= high]
            u = [Fraction(min(max(v, low), high) - low, 2**shift) for v in kept]
            return [
                math.floor(sum(math.comb(degree, j) * x**j * (n - x) ** (degree - j) for x in u))
                for j in range(degree + 1)
            ]

        found = sums.add_up(*cells(values), low, high)
        assert found == add_exactly(values)
        more = [*values, *rng.integers(0, 4000, 3).tolist()]
        moved = zip(sums.add_up(*cells(more), low, high), found, strict=True)
        distance = sum(abs(a - b) for a, b in moved)
        assert distance <= sums.law(low, high).sensitivity == 3 * sums.weigh(low, high)
        most_moved = max(most_moved, distance - 3 * n**degree)
    assert most_moved > 0 or trim is not None  # what is rounded down does cost


def test_sums_are_those_of_clipped_values():
    sums = ClippedSums(Fraction(1), Fraction(1), rows=1, score_change=1, span=1000, degree=2)
    values = [3, 10, 55, 55, 70, 71, 999]
    low, high = 10, 70
    u = [min(max(v, low), high) - low for v in values]
    n = high - low
    expected = [
        sum((n - x) ** 2 for x in u),
        sum(2 * x * (n - x) for x in u),
        sum(x**2 for x in u),
    ]
    assert sums.add_up(*cells(values), low, high) == expected


def test_nothing_fails_on_nobody_or_on_one_value():
    for trim in (None, Fraction(1, 4)):
        sums = ClippedSums(
            Fraction(1), Fraction(1), rows=1, score_change=1, span=7, zero=3, trim=trim
        )
        for values in ([], [0], [7] * 50):
            low, high, *_ = sums.release(*cells(values))
            assert 0 <= low < high <= 7


# --- asked ---------------------------------------------------------------------------------------


def test_a_mean_without_bounds_is_near_the_clipped_mean_and_says_so():
    with clinic() as curator:
        answer = curator.ask("SELECT AVG(income, bounds => AUTO) AS m FROM people", epsilon=2)
        assert answer.charged.epsilon == curator.spent.epsilon == 2
        finding = next(note for note in answer.notes if "looked for" in note)
        assert "they cost ε = 1," in finding
        assert any("chosen privately" in note for note in answer.notes)
        assert curator.ask(
            "SELECT AVG(income, bounds => AUTO) AS m FROM people", epsilon=2
        ).replayed
        measured = answer.certificate["measurements"][0]
        assert measured["mechanism"] == "private ends, then discrete Laplace"
        assert Fraction(measured["noise"]) == 1
        again = answer_from_bytes(answer_to_bytes(answer))
        assert again.rows == answer.rows
        assert json.dumps(answer.to_json())
        # An end lies far beyond the values with probability below 1e-3; for five of nine, 1e-13.
        ask = "SELECT AVG(income, bounds => AUTO) AS m FROM people WHERE person >= {}"
        many = [curator.ask(ask.format(number), epsilon=2) for number in range(1, 10)]
        middle = np.median([one.value() for one in many])
        assert middle == pytest.approx(PEOPLE.income.mean(), rel=0.03)
        ends = [one.intervals()["m"][0] for one in many]
        assert np.median([interval.high - interval.low for interval in ends]) < 600


def test_the_interval_holds_the_clipped_truth():
    """Of 60 answers at 95 %, fewer than 42 hold only with probability below 1e-9."""
    held = 0
    with clinic() as curator:
        for number in range(60):
            text = f"SELECT AVG(income, bounds => AUTO) AS m FROM people WHERE person >= {number}"
            answer = curator.ask(text, epsilon=2)
            words = next(note for note in answer.notes if "chosen privately" in note)
            low, high = (
                float(end.replace(",", ""))
                for end in words.split("clipped to ")[1].split(", chosen")[0].split(" ... ")
            )
            truth = PEOPLE.income[number:].clip(low, high).mean()
            (interval,) = answer.intervals("0.95")["m"]
            held += interval.contains(truth)
    assert held >= 42


def test_several_aggregates_share_the_ends_and_agree():
    text = (
        "SELECT AVG(income, bounds => AUTO) AS a, SUM(income, bounds => AUTO) AS s,"
        " STDDEV(income, bounds => AUTO) AS d FROM people"
    )
    with clinic() as curator:
        answer = curator.ask(text, epsilon=4)
        (row,) = answer.rows
        a, s, d = row.values
        assert s / a == pytest.approx(N, rel=0.01)
        others = [f"{text} WHERE person >= {number}" for number in range(1, 9)]
        spreads = [d, *(curator.ask(other, epsilon=4).rows[0].values[2] for other in others)]
        assert np.median(spreads) == pytest.approx(PEOPLE.income.std(), rel=0.1)  # as above
        assert len(answer.priced.plan.measurements) == 1
        assert all(interval is not None for (interval,) in answer.intervals().values())


def test_each_group_has_its_own_ends_and_the_price_of_one():
    with clinic() as curator:
        text = "SELECT city, AVG(age, bounds => AUTO) AS m FROM people GROUP BY city"
        answer = curator.ask(text, epsilon=2)
        assert answer.charged.epsilon == 2
        others = [text.replace("people", f"people WHERE person >= {n}") for n in range(1, 9)]
        many = [answer, *(curator.ask(other, epsilon=2) for other in others)]
        for city in range(
            len(answer.rows)
        ):  # an end astray has chance 2e-3: of five in nine, 1e-11
            middle = np.median([one.rows[city].values[1] for one in many])
            assert middle == pytest.approx(49.5, abs=3)


def test_a_trimmed_mean_and_quartiles():
    with clinic() as curator:
        text = "SELECT TRIMMED_MEAN(age, 0.2) AS t, IQR(age) AS i FROM people"
        answer = curator.ask(text, epsilon=8)
        (row,) = answer.rows
        assert row.values[0] == pytest.approx(49.5, abs=3)
        assert row.values[1] == pytest.approx(50, abs=4)
        assert answer.margin_units == {"t": "value", "i": "ranks"}
        assert answer.margins()["i"][0] > 0


def test_change_one_neighbours_pay_for_both_sides():
    """The same offer buys ends and noise for twice the rows."""
    text = "SELECT AVG(income, bounds => AUTO) AS m FROM people"
    with clinic('neighbours = "change-one"') as curator, clinic() as other:
        changed = curator.explain(text, epsilon=1).priced.mechanisms[0]
        added = other.explain(text, epsilon=1).priced.mechanisms[0]
        assert changed.rows == 2 * added.rows == 2
        assert changed.score_change == 2 * added.score_change == 2
        assert changed.loss == added.loss


def test_concentrated_offers_are_kept():
    with clinic() as curator:
        text = "SELECT AVG(income, bounds => AUTO) AS m FROM people"
        answer = curator.ask(text, rho="0.1")
        assert Fraction(99, 1000) < answer.charged.rho <= Fraction(1, 10)


def test_refusals_offer_it_and_what_it_does_not_take_is_refused():
    with clinic() as curator:
        with pytest.raises(QuestionRefusal) as caught:
            curator.ask("SELECT SUM(income) FROM people", epsilon=1)
        assert caught.value.rewriting == "SELECT SUM(income, bounds => AUTO) FROM people"
        assert caught.value.rewriting in caught.value.fix
        for text in (
            "SELECT COUNT(*, bounds => AUTO) FROM people",
            "SELECT MAX(income, bounds => AUTO) FROM people",
            "SELECT SUM(age, contribution_bounds_per_group => AUTO) FROM people",
            "SELECT CORR(age, income, bounds => AUTO) FROM people",
            "SELECT TRIMMED_MEAN(age, 0.5) FROM people",
        ):
            with pytest.raises(QuestionRefusal) as caught:
                curator.ask(text, epsilon=1)
            assert caught.value.code == "Q33", text
        with pytest.raises(QuestionRefusal) as caught:
            curator.ask("SELECT AVG(income, bounds => AUTO) FROM people", within=50)
        assert caught.value.code == "Q44"


def test_python_asks_the_same():
    from discreet.question.builder import mean, quartile_range, trimmed_mean

    with clinic() as curator:
        rows = curator.table("people")
        built = rows.agg(
            a=mean("income").bounded(auto=True),
            t=trimmed_mean("age", "0.2"),
            i=quartile_range("age"),
        )
        text = (
            "SELECT AVG(income, bounds => AUTO) AS a, TRIMMED_MEAN(age, 0.2) AS t, IQR(age) AS i "
            "FROM people"
        )
        curator.ask(text, epsilon=1)
        assert curator.ask(built, epsilon=1).replayed
