"""The most common of overlapping conditions, in SQL: a person counts once for each (DR 3.4)."""

from __future__ import annotations

from fractions import Fraction
from math import log

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet.accounting.divergence import both_ways, max_divergence
from discreet.mechanisms import TopK
from discreet.price import priced
from discreet.price.calibration import Selection

CONDITIONS = tuple(f"c{number:02}" for number in range(40))
ROWS = 20
ONCE = "SELECT MODE(condition) AS most FROM (SELECT DISTINCT person, condition FROM ill) AS each"


def make(rows, *, conditions=CONDITIONS, most=ROWS, neighbours="add/remove", budget=500):
    listed = ", ".join(f'"{value}"' for value in conditions)
    schema = f"""
    neighbours = "{neighbours}"
    [tables.ill]
    unit = "person"
    max_rows_per_unit = {most}
    columns.person = "integer"
    columns.year = {{ type = "integer", values = [1, 2], nullable = false }}
    columns.condition = {{ type = "text", values = [{listed}], nullable = false }}
    """
    table = pd.DataFrame(rows, columns=["person", "year", "condition"])
    return discreet.curator({"ill": table}, schema=schema, budget=budget)


@pytest.fixture(scope="module")
def clinic():
    rng = np.random.default_rng(8)
    rows = [
        (person, 1 + n % 2, CONDITIONS[n])
        for person in range(300)
        for n in rng.permutation(40)[: person % 15]
    ]
    rows += [(person, 1, "c07") for person in range(0, 300, 2) for _ in range(4)]
    with make(rows) as curator:
        yield curator


def find_selection(curator, text, **offer) -> Selection:
    (found,) = curator.explain(text, **offer).priced.mechanisms
    return found


def test_the_figure_of_example_3_4(clinic):
    """Forty conditions, twenty rows each, at 0.1: the theorem gives 68, and rows gave 1,322."""
    said = clinic.explain(ONCE, epsilon="0.1")
    (margin,) = said.margins().values()
    assert float(margin) < log(40 / 0.05) / 0.1 + 1 < 68
    assert find_selection(clinic, ONCE, epsilon="0.1").score_change == 1
    plain = "SELECT MODE(condition) AS most FROM ill"
    assert find_selection(clinic, plain, epsilon="0.1").score_change == ROWS
    assert "SELECT DISTINCT person and the value" in str(clinic.explain(plain, epsilon="0.1"))
    assert "DISTINCT person and the value" not in str(said)


COUNTED = "SELECT condition, COUNT(DISTINCT person) AS n FROM ill GROUP BY condition"


@pytest.mark.parametrize(
    ("text", "way"),
    [
        (f"{COUNTED} ORDER BY n DESC LIMIT 1", "MODE(DISTINCT condition)"),
        (f"{COUNTED} ORDER BY 2 DESC LIMIT 3", "TOP_K(DISTINCT condition, 3)"),
        (
            "SELECT condition FROM ill GROUP BY 1 ORDER BY COUNT(DISTINCT person) DESC LIMIT 1",
            "MODE(DISTINCT condition)",
        ),
    ],
)
def test_who_counts_all_groups_to_see_the_largest_is_told_how_to_choose_them(clinic, text, way):
    """What is told can be asked, and is off by less; the number that was asked for is the same."""
    said = clinic.explain(text, epsilon="0.1")
    assert f"ask for {way}, or choose(...)" in str(said)
    (counted,) = [m for m in said.margins().values() if m is not None]
    (chosen,) = clinic.explain(f"SELECT {way} FROM ill", epsilon="0.1").margins().values()
    assert float(chosen) < float(counted)
    assert clinic.explain_choose(COUNTED, epsilon="0.1").contest.margin() < float(counted)


@pytest.mark.parametrize(
    "text",
    [
        COUNTED,
        f"{COUNTED} ORDER BY n LIMIT 1",
        f"{COUNTED} ORDER BY n DESC LIMIT 30",
        f"{COUNTED} ORDER BY condition DESC LIMIT 1",
        "SELECT condition, COUNT(*) AS n FROM ill GROUP BY 1 ORDER BY n DESC LIMIT 1",
        "SELECT year, COUNT(DISTINCT person) AS n FROM ill GROUP BY 1 ORDER BY n DESC LIMIT 2",
    ],
)
def test_nobody_is_told_to_choose_where_it_takes_no_less(clinic, text):
    assert "To choose those" not in str(clinic.explain(text, epsilon="0.1"))


def test_it_names_who_is_most_common_by_people(clinic):
    assert clinic.ask(ONCE, epsilon=20).value() == "c07"


@pytest.mark.parametrize(
    ("text", "moved", "groups"),
    [
        (ONCE, 1, 1),
        ("SELECT TOP_K(condition, 3) AS t FROM (SELECT DISTINCT person, condition FROM ill)", 1, 1),
        (
            "SELECT MODE(c) AS m FROM (SELECT person, condition AS c, COUNT(*) AS n FROM ill "
            "GROUP BY person, condition) WHERE n > 1",
            1,
            1,
        ),
        (
            "SELECT MODE(c) AS m FROM (SELECT person AS p, condition AS c FROM "
            "(SELECT DISTINCT person, condition FROM ill))",
            1,
            1,
        ),
        (
            "SELECT year, MODE(condition) AS m FROM (SELECT DISTINCT person, year, condition "
            "FROM ill) GROUP BY year",
            1,
            2,
        ),
        # Two rows of one person may have one condition: of two years.
        (
            "SELECT MODE(condition) AS m FROM (SELECT DISTINCT person, year, condition FROM ill)",
            20,
            1,
        ),
        (
            "SELECT MODE(CASE WHEN condition = 'c01' THEN 'x' ELSE 'y' END) AS m FROM "
            "(SELECT DISTINCT person, condition FROM ill)",
            20,
            1,
        ),
    ],
)
def test_a_value_counts_once_where_the_question_says_so(clinic, text, moved, groups):
    found = find_selection(clinic, text, epsilon=1)
    assert (found.score_change, found.groups) == (moved, groups)


SMALL = ("a", "b", "c")
OTHERS = [(1, 1, "a"), (2, 1, "a"), (2, 2, "b"), (3, 2, "c"), (3, 2, "c")]
UNITS = [
    [(9, 1, "a"), (9, 2, "a"), (9, 1, "b")],
    [(9, 1, "c"), (9, 2, "c"), (9, 2, "c")],
    [(9, 1, "a"), (9, 1, "b"), (9, 1, "c")],
    [(9, 2, "b")],
]
BY_YEAR = (
    "SELECT year, MODE(condition) AS m FROM (SELECT DISTINCT person, year, condition FROM ill) "
    "GROUP BY year"
)


def laws_of(rows, text, neighbours, monkeypatch):
    """The exact law of every choice that a question makes on a table."""
    seen = []
    real = TopK.release

    def release(self, scores):
        seen.append(self.law(list(scores)))
        return real(self, scores)

    with (
        monkeypatch.context() as patch,
        make(rows, conditions=SMALL, most=3, neighbours=neighbours) as curator,
    ):
        patch.setattr(TopK, "release", release)
        paid = curator.ask(text, epsilon="3/2").loss.epsilon
    return seen, paid


def find_worst(text, neighbours, monkeypatch) -> Fraction:
    """What the most telling pair of neighbours loses, above what was paid."""
    tables = [[*OTHERS, *unit] for unit in UNITS]
    told = [laws_of(rows, text, neighbours, monkeypatch) for rows in [OTHERS, *tables]]
    pairs = [(told[0], other) for other in told[1:]]
    if neighbours == "change-one":
        pairs = [(one, other) for one in told[1:] for other in told[1:] if one is not other]
    return max(
        sum(
            (both_ways(max_divergence, a, b)[1] for a, b in zip(one, other, strict=True)),
            Fraction(0),
        )
        - paid
        for (one, paid), (other, _) in pairs
    )


@pytest.mark.parametrize("neighbours", ["add/remove", "change-one"])
@pytest.mark.parametrize("text", [ONCE, BY_YEAR])
def test_exactly_no_neighbour_loses_more_than_was_paid(text, neighbours, monkeypatch):
    worst = find_worst(text, neighbours, monkeypatch)
    assert worst <= Fraction(1, 10**9)  # the width of certified balls
    assert worst > Fraction(-3, 2)


@pytest.mark.parametrize(
    ("text", "neighbours"), [("SELECT MODE(condition) AS most FROM ill", "add/remove")]
)
def test_where_rows_count_a_price_for_once_is_refuted(text, neighbours, monkeypatch):
    """A mutant: every value is taken to be there once."""
    monkeypatch.setattr(priced, "counts_once", lambda *_: True)
    assert find_worst(text, neighbours, monkeypatch) > Fraction(1, 2)
