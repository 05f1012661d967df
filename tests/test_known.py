"""What is known is free: released answers tell other questions, exactly and no more than that."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import discreet
from discreet.accounting.loss import NOTHING
from discreet.curate.curator import Curator, describe_rows
from discreet.errors import AccessRefusal, QuestionRefusal
from discreet.known import derive as deriving
from discreet.known.derive import NotKnown, derive
from discreet.known.released import Released
from discreet.ledger import About, Ledger, Policy
from discreet.mechanisms import Gaussian, Laplace, Staircase
from discreet.price import Linear
from discreet.price.margins import number_margin
from discreet.price.summed import Summed, Term
from discreet.release.derived import Derived
from discreet.release.record import answer_from_bytes, answer_to_bytes

CITIES = ("Cork", "Delft", "Faro", None, "Atlantis")  # the last is not declared
PEOPLE = 300
VISITS = [
    (i // 2, CITIES[(i * i + i // 7) % 5], (i * 37) % 131 - 5, float(i * 13 % 900) - 50)
    for i in range(2 * PEOPLE)
]
ROWS = pa.table(
    dict(zip(("patient", "city", "age", "cost"), map(list, zip(*VISITS, strict=True)), strict=True))
)
SCHEMA = """
[tables.visits]
unit = "patient"
max_rows_per_unit = 2
[tables.visits.columns]
patient = "integer"
city = { type = "text", values = ["Cork", "Delft", "Faro"] }
age = { type = "integer", bounds = [0, 120] }
cost = { type = "decimal", bounds = [0, 800] }
"""
MUCH = 60  # so much epsilon that no draw of this file is other than 0: exp(-30) each


def clinic(**options) -> Curator:
    budget = discreet.Budget(epsilon=1500, delta="1e-6")
    return discreet.curator({"visits": ROWS}, schema=SCHEMA, budget=budget, **options)


def released(curator: Curator, sql: str, number: int = 1, **offer) -> Released:
    answer = curator.ask(sql, fresh=True, **(offer or {"epsilon": MUCH}))
    return Released(number, answer.priced, answer.groups, answer.released, answer.loss)


def why_not(curator: Curator, sql: str, source: Released) -> str:
    priced = curator.explain(sql, epsilon=1).priced
    with pytest.raises(NotKnown) as refused:
        derive(priced, source, multiplicity=curator.engine.catalogue.multiplicity)
    return str(refused.value)


# --- roll-up -----------------------------------------------------------------------------------

FINE = """SELECT city, age >= 65 AS old, COUNT(*) AS n, AVG(cost) AS mean, VARIANCE(cost) AS spread,
    SUM(cost) AS total FROM visits GROUP BY 1, 2"""
TOLD = [
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city",
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT COUNT(*) AS n FROM visits v WHERE v.city = 'Cork'",
    "SELECT COUNT(*) AS n FROM visits WHERE city IN ('Cork', 'Faro') AND age >= 65",
    "SELECT COUNT(*) AS n FROM visits WHERE city IS NULL",
    "SELECT v.age >= 65 AS old, AVG(v.cost) AS mean, COUNT(*) AS n FROM visits AS v GROUP BY 1",
    "SELECT CASE WHEN city = 'Cork' THEN 'here' ELSE 'there' END AS place, COUNT(*) AS n, "
    "SUM(cost) AS total FROM visits GROUP BY 1",
    "SELECT city, VARIANCE(cost) AS spread, STDDEV(cost) AS deviation FROM visits GROUP BY city",
    "SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE city = 'Delft') AS delft FROM visits",
    "SELECT COUNT(cost) AS known FROM visits",
    "SELECT city, SUM(cost) / COUNT(*) AS ratio FROM visits GROUP BY city",
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city HAVING n > 100 ORDER BY n DESC LIMIT 2",
]


@pytest.mark.parametrize("sql", TOLD)
def test_what_a_finer_answer_tells_is_free_and_the_same_number(sql):
    with clinic() as curator, clinic() as other:
        curator.ask(FINE, epsilon=MUCH)
        spent = curator.spent
        known = curator.ask(sql)
        assert isinstance(known, Derived)
        assert curator.spent == spent
        direct = other.ask(sql, epsilon=MUCH)
        assert known.columns == direct.columns
        sets, others = (one.intervals("0.99999999") for one in (known, direct))
        for column, name in enumerate(known.columns):
            for place, (mine, theirs) in enumerate(zip(known.rows, direct.rows, strict=True)):
                one, another = sets[name][place], others[name][place]
                if one is None or another is None:  # a key, or arithmetic without a margin
                    tolerant = isinstance(mine.values[column], float)
                    expected = theirs.values[column]
                    assert mine.values[column] == (
                        pytest.approx(expected, rel=0.1) if tolerant else expected
                    )
                else:  # two noisy numbers of the same truth
                    assert one.low <= another.high
                    assert another.low <= one.high


UNTOLD = [
    ("SELECT COUNT(*) AS n FROM visits WHERE age > 30", "do not tell age apart"),
    ("SELECT COUNT(DISTINCT patient) AS n FROM visits", "do not add up over groups"),
    ("SELECT MEDIAN(cost) AS n FROM visits", "not a sum over the rows"),
    ("SELECT AVG(age) AS n FROM visits", "not measured there with these bounds"),
    ("SELECT SUM(LEAST(cost, 10)) AS n FROM visits", "not measured there with these bounds"),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows = 1) COUNT(*) AS n FROM visits",
     "this question counts at most 1 rows of each unit"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "reason"), UNTOLD)
def test_what_a_finer_answer_does_not_tell_is_said(sql, reason):
    with clinic() as curator:
        assert reason in why_not(curator, sql, released(curator, FINE))


@pytest.mark.parametrize(
    ("asked", "then", "reason"),
    [
        (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows = 1) city, COUNT(*) AS n "
            "FROM visits GROUP BY city",
            "SELECT COUNT(*) AS n FROM visits",
            "it counts at most 1 rows of each unit",
        ),
        (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed = 1, "
            "max_rows_per_group = 1) city, COUNT(*) AS n FROM visits GROUP BY city",
            "SELECT COUNT(*) AS n FROM visits",
            "1 rows of each unit in 1 groups",
        ),
        (
            "SELECT city, COUNT(*) AS n FROM visits WHERE age > 30 GROUP BY city",
            "SELECT COUNT(*) AS n FROM visits",
            "left out rows by a condition",
        ),
        (
            "SELECT city, COUNT(*) FILTER (WHERE age > 30) AS n FROM visits GROUP BY city",
            "SELECT COUNT(*) AS n FROM visits",
            "only rows of a condition",
        ),
        (
            "SELECT city, AVG(cost) AS mean FROM visits GROUP BY city",
            "SELECT COUNT(*) AS n FROM visits",
            "did not count the rows in which its values are missing",
        ),
        (
            "SELECT city, COUNT(DISTINCT patient) AS n FROM visits GROUP BY city",
            "SELECT COUNT(DISTINCT patient) AS n FROM visits",
            "do not add up over groups",
        ),
        (
            "SELECT HISTOGRAM(cost, 0, 200, 400, 800) AS n FROM visits",
            "SELECT HISTOGRAM(cost, 0, 400) AS n FROM visits",
            "last bin includes its end",
        ),
        (
            "SELECT HISTOGRAM(cost, 0, 200, 400, 800) AS n FROM visits",
            "SELECT HISTOGRAM(cost, 0, 300, 800) AS n FROM visits",
            "cross those that are asked for",
        ),
    ],
)
def test_what_would_be_another_number_is_not_derived(asked, then, reason):
    with clinic() as curator:
        assert reason in why_not(curator, then, released(curator, asked))


def test_a_histogram_is_read_off_a_finer_one():
    with clinic() as curator, clinic() as other:
        fine = "SELECT HISTOGRAM(cost, 0, 200, 400, 600, 800) AS bins FROM visits"
        curator.ask(fine, epsilon=MUCH)
        for edges in ("0, 400, 800", "200, 800", "0, 200, 400, 600, 800"):
            sql = f"SELECT HISTOGRAM(cost, {edges}) AS bins FROM visits"
            assert curator.ask(sql).value() == other.ask(sql, epsilon=MUCH).value()


def test_groups_that_stayed_hidden_are_missing_from_no_sum():
    private = "SELECT cost, COUNT(*) AS n FROM visits GROUP BY cost"
    with clinic() as curator:
        source = released(curator, private, epsilon=MUCH, delta="1e-7")
        assert source.priced.threshold is not None
        assert "private" in why_not(curator, "SELECT COUNT(*) AS n FROM visits", source)


# --- each check is there for a number that would be wrong without it -----------------------------


def derived_total(curator: Curator, sql: str, source: Released) -> int:
    from discreet.known.combine import combine
    from discreet.known.derive import list_groups

    priced = curator.explain(sql, epsilon=1).priced
    multiplicity = curator.engine.catalogue.multiplicity
    found = derive(priced, source, multiplicity=multiplicity)
    return combine(priced, [found], list_groups(priced, multiplicity)).rows[0].values[0]


def test_mutant_that_rolls_up_over_limits_counts_other_rows(monkeypatch):
    asked = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed = 1, "
        "max_rows_per_group = 1) city, COUNT(*) AS n FROM visits GROUP BY city"
    )
    total = "SELECT COUNT(*) AS n FROM visits"
    with clinic() as curator:
        source = released(curator, asked)
        why_not(curator, total, source)
        monkeypatch.setattr(deriving._Derivation, "_check_additive", lambda _self: None)
        wrong = derived_total(curator, total, source)
        monkeypatch.undo()
        right = curator.ask(total, epsilon=MUCH).value()
        assert abs(right - 2 * PEOPLE) <= 2
        assert abs(wrong - PEOPLE) <= 2


def test_mutant_that_rolls_up_over_a_last_edge_counts_other_rows(monkeypatch):
    rows = pa.table({"patient": [1, 2, 3], "city": ["Cork"] * 3, "age": [1] * 3,
                     "cost": [100.0, 400.0, 400.0]})  # fmt: skip
    budget = discreet.Budget(epsilon=1500)
    fine = "SELECT HISTOGRAM(cost, 0, 400, 800) AS bins FROM visits"
    asked = "SELECT HISTOGRAM(cost, 0, 400) AS bins FROM visits"
    with discreet.curator({"visits": rows}, schema=SCHEMA, budget=budget) as curator:
        source = released(curator, fine)
        why_not(curator, asked, source)
        right = curator.ask(asked, epsilon=MUCH).value()
        merge = deriving._Derivation._merge_bins

        def careless(self, aggregate, place):
            class Longer:
                function, arguments = aggregate.function, aggregate.arguments
                parameters = (*aggregate.parameters, 800)

            return merge(self, Longer, place)[:-1]

        monkeypatch.setattr(deriving._Derivation, "_merge_bins", careless)
        assert derived_total(curator, asked, source) == [1] != right == [3]


def test_mutant_that_adds_up_private_groups_misses_people():
    """Who takes the groups that were shown for all there are misses everybody in the others."""
    private = "SELECT cost, COUNT(*) AS n FROM visits GROUP BY cost"
    total = "SELECT COUNT(*) AS n FROM visits"
    with clinic() as curator:
        source = released(curator, private, epsilon="0.5", delta="1e-7")
        why_not(curator, total, source)
        (key,) = source.priced.plan.keys
        all_there_are = replace(key, values=tuple(group[0] for group in source.groups))
        plan = replace(source.priced.plan, keys=(all_there_are,))
        careless = replace(source, priced=replace(source.priced, plan=plan))
        wrong = derived_total(curator, total, careless)
        assert wrong == sum(int(row[0]) for row in source.entries(0))
        right = curator.ask(total, epsilon=MUCH).value()
        assert abs(right - 2 * PEOPLE) <= 2
        assert wrong < PEOPLE  # nearly every cost has too few people to be shown


# --- margins -----------------------------------------------------------------------------------


def convolve(masses: dict[int, float], other: dict[int, float]) -> dict[int, float]:
    found: dict[int, float] = {}
    for a, p in masses.items():
        for b, q in other.items():
            found[a + b] = found.get(a + b, 0.0) + p * q
    return found


def laplace_masses(scale: float, reach: int) -> dict[int, float]:
    p = np.exp(-1 / scale)
    return {z: (1 - p) / (1 + p) * p ** abs(z) for z in range(-reach, reach + 1)}


@pytest.mark.parametrize("beta", ["0.05", "0.01", "1/3"])
def test_the_margin_of_a_sum_is_that_of_the_convolved_law(beta):
    coarse, fine = Laplace(sensitivity=3, epsilon=1), Laplace(sensitivity=1, epsilon="1/2")
    masses = {0: 1.0}
    for scale in (3.0, 3.0, 2.0):
        masses = convolve(masses, laplace_masses(scale, 120))
    least = next(
        m for m in range(200)
        if sum(p for z, p in masses.items() if abs(z) > m) <= float(Fraction(beta))
    )  # fmt: skip
    assert Summed((Term(coarse, 2), Term(fine, 1))).margin(beta) == least


def staircase_masses(law: Staircase, reach: int) -> dict[int, float]:
    """Level 0 below the width, then a level more for every so many steps."""
    levels = {z: max(0, 1 + (abs(z) - law.width) // law.steps) for z in range(-reach, reach + 1)}
    masses = {z: float(np.exp(-float(law.epsilon) * level)) for z, level in levels.items()}
    return {z: p / sum(masses.values()) for z, p in masses.items()}


@pytest.mark.parametrize("beta", ["0.05", "0.001", "1/3"])
@pytest.mark.parametrize(("sensitivity", "epsilon"), [(7, 1), (7, 5), (3, 12)])
def test_the_margin_of_a_sum_of_staircases_is_that_of_the_convolved_law(sensitivity, epsilon, beta):
    stairs = Staircase(sensitivity=sensitivity, epsilon=epsilon)
    beside = Laplace(sensitivity=1, epsilon="1/2")
    masses = laplace_masses(2.0, 90)
    for _ in range(2):
        masses = convolve(masses, staircase_masses(stairs, 150))
    least = next(
        m for m in range(400)
        if sum(p for z, p in masses.items() if abs(z) > m) <= float(Fraction(beta))
    )  # fmt: skip
    assert Summed((Term(stairs, 2), Term(beside, 1))).margin(beta) == least


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(900, 1), (2**40, 3), (900, 30), (1, "1/9")])
def test_a_sum_of_staircases_is_never_below_one_and_never_above_all_of_them(sensitivity, epsilon):
    """Also in parts of 1024, and of values so fine that no transform resolves them.

    Independent symmetric noise makes tails heavier (Anderson 1955).
    """
    law = Staircase(sensitivity=sensitivity, epsilon=epsilon)
    for beta in ("0.05", "1e-6"):
        found = Summed((Term(law, 1, weight=400), Term(law, 1, weight=624)), below=1024)
        least = Fraction(624 * law.margin(beta), 1024)
        assert least <= found.margin(beta) <= law.margin(Fraction(beta) / 2)


def test_what_is_known_is_no_worse_than_its_best_measurement():
    """Noise that is next to nothing is not mixed with more: variance would fall, margins rise.

    Nor is an accuracy paid for that one measurement alone has.
    """
    with clinic() as curator:
        question = "SELECT SUM(age) AS s FROM visits"
        best = curator.ask(question, epsilon=8, fresh=True)
        other = curator.ask(question, epsilon=6, fresh=True)
        assert isinstance(best.priced.mechanisms[0], Staircase)
        assert best.margins()["s"][0] < other.margins()["s"][0] / 2
        known = curator.ask(question)
        assert known.column("s") == best.column("s")
        assert known.margins() == best.margins()
        assert [origin.id for origin in known.origins] == [best.id]
        near = curator.ask(question, within=best.margins()["s"][0])
        assert near.charged == NOTHING
        coarse = [curator.ask("SELECT COUNT(*) AS n FROM visits", rho="0.01", fresh=True)]
        coarse += [curator.ask("SELECT COUNT(*) AS n FROM visits", rho="0.01", fresh=True)]
        both = curator.ask("SELECT COUNT(*) AS n FROM visits")
        assert len(both.origins) == 2
        assert both.margins()["n"][0] < 0.8 * coarse[0].margins()["n"][0]


def test_moments_are_combined_entry_by_entry():
    """So they keep the number of rounded values, and what is computed of them keeps its margin."""
    question = "SELECT SUM(cost) AS s, AVG(cost) AS m, COUNT(cost) AS n, {} AS r FROM visits"
    question = question.format("SUM(cost) / COUNT(cost)")
    with clinic() as curator:
        one, two = (curator.ask(question, epsilon=2, fresh=True) for _ in range(2))
        both = curator.ask(question)
        assert [origin.weight for origin in both.origins] == [Fraction(1, 2)] * 2
        for name in "smnr":
            (single,), (margin,) = one.margins()[name], both.margins()[name]
            assert 0.6 * single < margin < 0.85 * single, name
        for name in "sn":
            middle = (one.column(name)[0] + two.column(name)[0]) / 2
            assert both.column(name)[0] == pytest.approx(middle, abs=0.6)
        again = answer_from_bytes(answer_to_bytes(both))
        assert again.intervals() == both.intervals()
        assert again.column("s") == both.column("s")


def test_many_columns_that_were_fitted_twice_are_shown_as_the_better_fit():
    question = "SELECT REGR(cost, age, age * age) AS f FROM visits"
    with clinic() as curator:
        better = curator.ask(question, epsilon=9, fresh=True)
        curator.ask(question, epsilon=4, fresh=True)
        known = curator.ask(question)
        assert known.charged == NOTHING
        assert known.column("f_intercept") == better.column("f_intercept")
        assert len(known.intervals()) == len(better.intervals()) == 3


def test_what_is_combined_holds_as_often_as_it_says():
    """3,000 groups of 12 rows, of decimals: sums, means and rates of two measurements together.

    A correct program fails with probability below 1e-9; margins of sums that are a fifth too
    small are found, as certainly.
    """
    rng = np.random.default_rng(4)
    groups, size = 3000, 12
    least = binom.ppf(1e-9 / 8, groups, 0.95)
    cost = np.clip(rng.normal(240, 120, groups * size), 0, 800).round(2)
    rows = pa.table(
        {
            "patient": np.arange(groups * size),
            "g": np.repeat(np.arange(groups), size),
            "cost": cost,
        }
    )
    schema = f"""
    [tables.visits]
    unit = "patient"
    max_rows_per_unit = 1
    [tables.visits.columns]
    patient = "integer"
    g = {{ type = "integer", values = {list(range(groups))}, nullable = false }}
    cost = {{ type = "decimal", bounds = [0, 800], nullable = false }}
    """
    exact = cost.reshape(groups, size).sum(axis=1)
    truths = {"s": exact, "m": exact / size, "r": exact / size, "n": np.full(groups, size)}
    question = "SELECT g, SUM(cost) AS s, AVG(cost) AS m, COUNT(*) AS n, SUM(cost) / COUNT(*) AS r"
    budget = discreet.Budget(epsilon=1500, delta="1e-6")
    for offers in (({"epsilon": 1}, {"epsilon": "0.7"}), ({"rho": "0.3"}, {"epsilon": 1})):
        with discreet.curator({"visits": rows}, schema=schema, budget=budget) as curator:
            for offer in offers:
                curator.ask(f"{question} FROM visits GROUP BY g", fresh=True, **offer)
            known = curator.ask(f"{question} FROM visits GROUP BY g")
        assert len(known.origins) == 2
        for name, truth in truths.items():
            found = known.intervals()[name]
            held = [i.contains(t) for i, t in zip(found, truth, strict=True)]
            assert sum(held) >= least, name
        sums = known.intervals()["s"]
        middles, halves = zip(
            *(((i.low + i.high) / 2, (i.high - i.low) / 2) for i in sums), strict=True
        )
        assert sum(np.abs(np.array(middles) - exact) <= 0.8 * np.array(halves)) < least


def test_what_no_group_tells_is_nothing_for_certain():
    """A condition that no released group meets: there is no noise in it, and nobody to average."""
    with clinic() as curator:
        curator.ask("SELECT city, AVG(age) AS m FROM visits GROUP BY city", epsilon=1)
        both = "(WHERE city = 'Cork' AND city = 'Faro')"
        answer = curator.ask(
            f"SELECT AVG(age) FILTER {both} AS m, COUNT(age) FILTER {both} AS n FROM visits"
        )
        assert answer.charged == NOTHING
        assert answer.to_json()["cells"] == [["– (no people)", "0 ± 0"]]


@pytest.mark.parametrize("part", [1, 300, 512, 1000])
@pytest.mark.parametrize("beta", ["0.05", "1/3", "0.01"])
def test_what_is_combined_is_rounded_to_where_its_truth_is(part, beta):
    """A count is whole: it is off by more than m only if its noise is m and a half or more."""
    coarse, fine = Laplace(sensitivity=1, epsilon="0.4"), Laplace(sensitivity=1, epsilon="0.7")
    law = Summed((Term(coarse, 1, part), Term(fine, 1, 1024 - part)))
    found = number_margin(Linear(0, (Fraction(1, 1024),), Fraction(1)), law, Fraction(beta))
    one, other = (np.exp(-1 / float(noise.scale)) for noise in (coarse, fine))
    places = np.arange(-200, 201)
    masses = [(1 - p) / (1 + p) * p ** np.abs(places) for p in (one, other)]
    off = np.abs(np.add.outer(part * places, (1024 - part) * places)) / 1024
    chances = np.multiply.outer(*masses)
    shown = np.floor(off + 0.5)  # a half is rounded away from what is true, at the worst
    assert found == int(found)
    assert chances[shown > found].sum() <= float(Fraction(beta)) + 1e-12
    assert chances[shown > found - 1].sum() > float(Fraction(beta))


def test_gaussian_sums_are_gaussian():
    one = Gaussian(sensitivity_squared=4, rho="1/50")  # variance 100
    four = Gaussian(sensitivity_squared=4, rho="1/200")  # variance 400
    assert Summed((Term(one, 4),)).margin("0.05") == four.margin("0.05")
    assert Summed((Term(one, 1, weight=2),)).margin("0.05") == 2 * one.margin("0.05")


def test_weights_scale_the_margin():
    law = Laplace(sensitivity=1, epsilon="0.1")
    plain = Summed((Term(law, 3),)).margin("0.05")
    weighted = Summed((Term(law, 3, weight=512),), below=512).margin("0.05")
    assert plain == pytest.approx(weighted, rel=0.03)


def test_a_derived_answer_is_off_by_more_than_its_margin_one_time_in_twenty():
    """40,000 sums of 8 draws: the rate of misses is 5 % or less, and not far less."""
    law = Laplace(sensitivity=1, epsilon="0.1")
    margin = Summed((Term(law, 8),)).margin("0.05")
    sums = np.abs(np.asarray(law.release(np.zeros((40_000, 8), dtype=np.int64))).sum(axis=1))
    assert 0.040 < float((sums > margin).mean()) < 0.058


# --- what it says of itself ----------------------------------------------------------------------


def test_a_derived_answer_names_its_sources_and_costs_nothing():
    with clinic() as curator:
        fine = curator.ask(FINE, epsilon=2)
        known = curator.ask("SELECT city, COUNT(*) AS n FROM visits GROUP BY city")
        assert (known.charged, known.loss) == (NOTHING, fine.loss.rounded())
        assert known.worth.epsilon < fine.loss.epsilon
        certificate = known.certificate
        assert [source["answer"] for source in certificate["sources"]] == [str(fine.id)]
        assert certificate["sources"][0]["groups_added"] == 3
        assert certificate["charged"]["epsilon"] == "0"
        assert certificate["loss"]["epsilon"] == "2"
        assert f"from answer #{fine.id}: 3 groups added up." in known.notes
        assert "free: known before" in str(known)
        assert known.margins()["n"][0] > fine.margins()["n"][0]


def test_a_derived_answer_is_sent_as_it_is():
    with clinic() as curator:
        curator.ask(FINE, epsilon=1)
        curator.ask(FINE, epsilon=2, fresh=True)
        sql = "SELECT city, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY city"
        known = curator.ask(sql)
        again = answer_from_bytes(answer_to_bytes(known))
        assert again.to_json() == known.to_json()
        assert str(again) == str(known)


def test_arithmetic_on_sums_that_may_share_noise_claims_no_margin():
    with clinic() as curator:
        curator.ask(FINE, epsilon=1)
        sql = "SELECT COUNT(*) - COUNT(*) FILTER (WHERE city = 'Cork') AS others FROM visits"
        known = curator.ask(sql)
        assert isinstance(known, Derived)
        assert known.margins()["others"] == [None]


# --- who is told -------------------------------------------------------------------------------


def test_nothing_is_told_from_answers_that_an_analyst_may_not_see(tmp_path):
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        options = {"ledger": ledger, "policy": Policy(shared_answers=False)}
        budget = discreet.Budget(epsilon=100)
        with Curator({"visits": ROWS}, schema=SCHEMA, budget=budget, **options) as curator:
            curator.account.add_analyst("ana")
            curator.account.add_analyst("bo")
            curator.ask(FINE, epsilon=1, analyst="ana")
            total = "SELECT COUNT(*) AS n FROM visits"
            assert isinstance(curator.ask(total, analyst="ana"), Derived)
            with pytest.raises(QuestionRefusal, match="Q43"):
                curator.ask("SELECT COUNT(*) AS n FROM visits", analyst="bo")
            with pytest.raises(AccessRefusal):
                curator.ask("SELECT COUNT(*) AS n FROM visits", analyst="nobody")


def test_other_data_are_not_told_from_earlier_ones(tmp_path):
    import pyarrow.parquet as pq

    path = tmp_path / "visits.parquet"
    pq.write_table(ROWS, path)
    budget = discreet.Budget(epsilon=100)
    with discreet.curator({"visits": path}, schema=SCHEMA, budget=budget) as curator:
        curator.ask(FINE, epsilon=1)
        assert curator.ask("SELECT COUNT(*) AS n FROM visits").charged == NOTHING
        pq.write_table(ROWS.slice(0, 100), path)
        with pytest.raises(QuestionRefusal, match="Q43"):
            curator.ask("SELECT COUNT(*) AS n FROM visits")


def test_who_offers_nothing_and_nothing_is_known_hears_prices_and_why():
    with clinic() as curator:
        limited = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows = 1) city, COUNT(*) AS n FROM "
        curator.ask(limited + "visits GROUP BY city", epsilon=1)
        with pytest.raises(QuestionRefusal) as refused:
            curator.ask("SELECT COUNT(*) AS n FROM visits")
        assert "counts at most 1 rows of each unit" in refused.value.why
        assert "epsilon = 0.1 buys n ± 60" in refused.value.fix


def test_accuracy_that_is_known_is_not_bought():
    with clinic() as curator:
        curator.ask(FINE, epsilon=1)
        spent = curator.spent
        sql = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
        assert isinstance(curator.ask(sql, within=50), Derived)
        assert curator.spent == spent
        assert not isinstance(curator.ask(sql, within=2), Derived)
        assert curator.spent.epsilon > spent.epsilon


def test_what_was_answered_before_is_known_whatever_it_measured():
    with clinic() as curator:
        first = curator.ask("SELECT MEDIAN(cost) AS middle FROM visits", epsilon=1)
        again = curator.ask("SELECT MEDIAN(cost) AS half FROM visits")
        assert again.rows[0].values == first.rows[0].values
        assert again.replayed


# --- found quickly -----------------------------------------------------------------------------


@pytest.mark.soak
def test_a_decision_among_a_hundred_thousand_answers_is_little_work():
    with clinic() as curator:
        curator.ask(FINE, epsilon=1)
        alone = decide(curator)
        shelve_many(curator, 100_000)
        assert decide(curator) < 2 * alone


def test_a_decision_among_many_answers_is_little_work():
    """Milliseconds are held by `python -m bench known`; here what is done is counted."""
    with clinic() as curator:
        curator.ask(FINE, epsilon=1)
        alone = decide(curator)
        shelve_many(curator, 3_000)
        assert decide(curator) < 2 * alone


def keep_answer(curator: Curator, number: int, analyst: str, keys: list[str], paid: int) -> None:
    content = {"about": ["rows", [], keys, []], "data_version": "v", "loss": [paid, paid, 0]}
    curator.account._shelf.keep(number, analyst, content)


def find_answers(curator: Curator, analyst: str) -> tuple[int, ...]:
    return curator.account.find_sources(
        About("rows", (), frozenset({"city"}), frozenset()), "v", analyst
    )


def test_the_best_answers_are_found_behind_many_of_other_kinds():
    with clinic() as curator:
        for number in range(30):
            keep_answer(curator, number, "curator", ["city", f"column {number}"], paid=100 + number)
        keep_answer(curator, 99, "curator", ["city"], paid=5000)
        keep_answer(curator, 98, "curator", ["age"], paid=9000)  # does not tell cities
        found = find_answers(curator, "curator")
        assert found == (99, *range(29, 18, -1))


def test_own_answers_are_found_among_those_of_others():
    with clinic(policy=Policy(shared_answers=False)) as curator:
        for number in range(50):
            keep_answer(curator, number, "bo", ["city"], paid=1000 + number)
        keep_answer(curator, 77, "ana", ["city"], paid=3)
        assert find_answers(curator, "ana") == (77,)
        assert find_answers(curator, "bo") == (49, 48, 47, 46)
        assert find_answers(curator, "curator") == ()


@pytest.mark.soak
def test_a_decision_among_a_hundred_thousand_answers_of_others_is_little_work():
    with clinic(policy=Policy(shared_answers=False)) as curator:
        curator.ask(FINE, epsilon=1)
        alone = decide(curator)
        (place,) = curator.account._shelf.places
        (kind,) = curator.account._shelf.places[place]
        for number in range(100_000):
            about = [place[1], list(place[2]), sorted(kind[0]), sorted(kind[1])]
            content = {"about": about, "data_version": place[0], "loss": [number, number, 0]}
            curator.account._shelf.keep(10**6 + number, "somebody else", content)
        assert decide(curator) < 2 * alone


def decide(curator: Curator) -> int:
    """How many lines are run to read a number off what is known; of several times the fewest."""
    lines = 0

    def count(_frame: FrameType, _event: str, _argument: object) -> Callable[..., Any]:
        nonlocal lines
        lines += 1
        return count

    taken = []
    before = sys.gettrace()
    for city in ("Cork", "Delft", "Faro") * 2:
        lines = 0
        sys.settrace(count)
        try:
            known = curator.ask(f"SELECT COUNT(*) AS n FROM visits WHERE city = '{city}'")
        finally:
            sys.settrace(before)
        taken.append(lines)
        assert isinstance(known, Derived)
    return min(taken[3:])


def shelve_many(curator: Curator, count: int) -> None:
    """As if so many answers about other conditions and values had been released."""
    curator.account.find_sources(About("", (), frozenset(), frozenset()), "", "curator")
    priced = curator.explain("SELECT COUNT(*) AS n FROM visits", epsilon=1).priced
    base = describe_rows(priced.plan).base
    version = curator.engine.data_version()
    for number in range(count):
        content = {
            "about": [base, [f"{number}"], ["visits.city"] * (number % 2), []],
            "data_version": version,
            "loss": [number, number, 0],
        }
        curator.account._shelf.keep(10**6 + number, "curator", content)


@pytest.mark.parametrize("scale", [1, 300, 10**10])
@pytest.mark.parametrize("beta", ["0.05", "1e-5", "1e-7", "1e-12"])
def test_no_sum_of_noise_has_a_margin_below_its_tail(scale, beta):
    """Also of noise so wide, or an error so small, that the transform does not tell it.

    Independent symmetric noise makes tails heavier (Anderson 1955), and each of 16 draws within its
    own margin is enough.
    """
    law = Laplace(sensitivity=scale, epsilon=1)
    margin = Summed((Term(law, 16),)).margin(beta)
    assert law.margin(beta) <= margin <= 16 * law.margin(Fraction(beta) / 16)


# --- the price of what nothing is offered for ----------------------------------------------------


def test_without_an_offer_every_way_to_look_first_says_the_same_prices():
    with clinic() as curator:
        sql = "SELECT city, COUNT(*) AS n, AVG(age) AS mean FROM visits GROUP BY city"
        told = set()
        for look in (curator.ask, curator.price, curator.explain):
            with pytest.raises(QuestionRefusal, match="Q43") as refused:
                look(sql)
            told.add(str(refused.value))
        (text,) = told
        printed = str(curator.price(sql, epsilon="0.1")).splitlines()
        price, margins = printed
        assert price.startswith("ε = 0.1, ")
        words = margins.removesuffix(" (95 %)")
        assert words != margins
        assert "mean ± " in words
        assert words.endswith(" in a group of 1,000 rows")
        assert f"epsilon = 0.1 buys {words};" in text
        assert repr(curator.price(sql, epsilon="0.1")) == "\n".join(printed)


@pytest.mark.parametrize(
    "sql", ["SELECT MEDIAN(age) AS m FROM visits", "SELECT 1 + COUNT(*) AS n FROM visits"]
)
def test_what_is_told_without_an_offer_is_priced_so(sql):
    with clinic() as curator:
        curator.ask(sql, epsilon=3)
        quote = curator.price(sql)
        assert quote.free
        assert str(quote).startswith("free: ")
        assert curator.ask(sql).charged == NOTHING


# --- before it is asked --------------------------------------------------------------------------


def test_an_explanation_says_the_price_that_is_asked_now():
    """Free where it is known, the difference where it is improved; a new measurement beside it."""
    curator, count = clinic(), "SELECT COUNT(*) AS n FROM visits"
    before = str(curator.explain(count, within=60))
    assert f"cost: {curator.price(count, within=60).describe()[0]}" in before.splitlines()
    assert "measured anew" not in before
    curator.ask(count, within=60)
    anew = f"cost if measured anew: {curator.explain(count, within=60).loss}"
    for offer, price in (({"within": 60}, "free: "), ({"within": 20}, "ε = ")):
        said = str(curator.explain(count, **offer)).splitlines()
        quoted = curator.price(count, **offer).describe()[0]
        assert quoted.startswith(price)
        assert f"cost: {quoted}" in said
        assert any(line.startswith("cost if measured anew: ε = ") for line in said)
    assert anew in str(curator.explain(count, within=60)).splitlines()
