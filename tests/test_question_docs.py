"""docs/questions.md shows every aggregate, clause and option in a question that is asked here.

The schema is the page's own, the people are made up; the last line of a block names the columns of
its answer.  What the dialect lets in and no question of the page shows is named by a test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from function_examples import CALLED, CLOCK, EXAMPLES, SIGNS
from sqlglot import exp

import discreet
from discreet.curate.curator import Curator
from discreet.question.question import AGGREGATES
from discreet.question.schema import Schema
from discreet.question.sql import distances, moments, own_values, released, windows
from discreet.question.sql.aggregates import BOUNDS, NAMES, PER_GROUP, PER_ROW
from discreet.question.sql.dialect import ALLOWED, parse_trees, tokenize
from discreet.question.sql.options import OPTIONS

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "questions.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
QUESTIONS = [text for kind, text in BLOCKS if kind == "sql"]
SAYS_ITS_OFFER = re.compile(r"\b(epsilon|rho|within) =")
PEOPLE, VISITS = 2_000, 3


def make_tables() -> dict[str, pd.DataFrame]:
    """A clinic in which each doctor has many patients, and now and then a city is missing."""
    chance = np.random.default_rng(5)
    rows = PEOPLE * VISITS
    days = pd.to_datetime("2025-01-01") + pd.to_timedelta(chance.integers(0, 700, rows), "D")
    cities = np.array(["york", "leeds", "hull", None])
    visits = {
        "patient_id": np.arange(rows) // VISITS,
        "city": cities[chance.integers(0, 4, rows)],
        "doctor": np.array(["Abel", "Bott", "Crane"])[chance.integers(0, 3, rows)],
        "age": chance.integers(1, 99, rows),
        "cost": chance.lognormal(5, 1, rows).round(2),
        "stay": chance.integers(0, 20, rows),
        "income": chance.integers(0, 90_000, rows),
        "day": days.date,
        "arrived": days + pd.to_timedelta(chance.integers(0, 86_400, rows), "s"),
        "paid": chance.integers(0, 2, rows) == 1,
    }
    patients = {
        "patient_id": range(PEOPLE),
        "sex": np.array(["f", "m", "x"])[chance.integers(0, 3, PEOPLE)],
        "birth_year": chance.integers(1930, 2020, PEOPLE),
        "city": cities[chance.integers(0, 3, PEOPLE)],
    }
    places = {
        "name": ["york", "leeds", "hull"],
        "region": ["north", "north", "south"],
        "people": [200_000, 800_000, 260_000],
    }
    return {
        "visits": pd.DataFrame(visits),
        "patients": pd.DataFrame(patients),
        "cities": pd.DataFrame(places),
    }


def open_curator() -> Curator:
    (settings,) = (text for kind, text in BLOCKS if kind == "toml")
    schema, budget = Schema.from_text(settings), discreet.Budget(epsilon=90, delta="1e-6")
    return discreet.curator(make_tables(), schema=schema, budget=budget)


@pytest.fixture(scope="module")
def curator() -> Iterator[Curator]:
    with open_curator() as made:
        yield made


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda text: text.splitlines()[0][:60])
def test_a_question_is_answered_with_the_columns_that_are_named(curator, question) -> None:
    offer = {} if SAYS_ITS_OFFER.search(question) else {"epsilon": "0.5", "delta": "1e-9"}
    if question.startswith("EXPLAIN"):
        with open_curator() as unasked:  # the other may know the answer
            assert "cost: ε = 0.5" in str(unasked.explain(question, **offer))
            assert unasked.spent.epsilon == 0
        return
    answer = curator.ask(question, **offer)
    assert question.splitlines()[-1] == f"-- {', '.join(answer.columns)}"
    assert answer.rows


def test_every_kind_of_block_is_asked() -> None:
    assert {kind for kind, _ in BLOCKS} == {"sql", "toml"}
    assert len(QUESTIONS) > 90


# --- nothing is left out -----------------------------------------------------------------------

SHOWN = "\n".join(QUESTIONS)
WRITTEN_AS = {
    "COUNT_UNITS": "COUNT(DISTINCT patient_id)",
    "COUNT_DISTINCT": "COUNT(DISTINCT doctor)",
    "QUANTILE": "PERCENTILE_CONT(",
}
"""Aggregates whose names in the plan nobody types."""


def list_aggregates() -> set[str]:
    """Every name of an aggregate, of people's rows or of one person's own."""
    own = own_values._IF | own_values._FIRST | own_values._OWN
    derived = set(moments._MOMENTS) | moments._GEOMETRIC | moments._PAIRS
    return {*NAMES, *AGGREGATES, *own, *derived, *distances._READ}


def test_every_aggregate_is_asked_for() -> None:
    wanted = {name: WRITTEN_AS.get(name, f"{name}(") for name in list_aggregates()}
    assert sorted(name for name, text in wanted.items() if text not in SHOWN) == []


def test_every_option_and_bound_is_given() -> None:
    given = [*(f"{name} =" for name in OPTIONS), *(f"{name} => (" for name in (PER_ROW, PER_GROUP))]
    given += [f"{BOUNDS} => (", f"{BOUNDS} => AUTO"]
    assert [text for text in given if text not in SHOWN] == []


def test_every_window_over_a_persons_rows_is_looked_through() -> None:
    found = set(re.findall(r"\b([A-Z_]+)\([^()]*\) OVER [(w]", SHOWN))
    assert sorted(windows.FUNCTIONS - found) == []


def walk_all() -> Iterator[exp.Expr]:
    """Every node of what is typed on this page and among the functions."""
    expressions = [one for examples in EXAMPLES.values() for one in examples]
    expressions += [one for _, *examples in (CALLED | SIGNS).values() for one in examples]
    texts = [*QUESTIONS, *(f"SELECT {one}" for one in (*expressions, *CLOCK.values()))]
    for text in texts:
        (tree,) = parse_trees(text, tokenize(text))
        assert tree is not None
        yield from tree.walk()


def test_every_word_that_the_page_of_the_dialect_quotes_is_shown() -> None:
    """Kinds of joins and the like, which are neither nodes nor names of functions."""
    told = (DOCS / "sql.md").read_text(encoding="utf-8").split("## What is refused")[0]
    quoted = " ".join(re.findall(r"```.*?```|`[^`]+`", told, re.S))
    shown = f"{SHOWN} {(DOCS / 'functions.md').read_text(encoding='utf-8')}"
    words = set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", quoted))
    assert len(words) > 250
    assert sorted(words - set(re.findall(r"\b\w+\b", shown))) == []


OF_THE_PARSER = {(exp.Cast, "_type"), (exp.Array, "bracket_notation"), (exp.DataType, "nested")}
OF_THE_PARSER |= {(exp.Div, "typed"), (exp.Div, "safe")}
"""What the parser notes for itself, and nobody types."""
SETS = (exp.Union, exp.Except, exp.Intersect)


def test_every_clause_is_written_somewhere() -> None:
    """Whatever node the dialect lets in, and whatever argument of it; sets of rows are one kind."""
    seen: set[tuple[type, str]] = set()
    for node in walk_all():
        filled = ["", *(name for name, value in node.args.items() if value)]
        for kind in SETS if isinstance(node, SETS) else [type(node)]:
            seen |= {(kind, name) for name in filled if name or kind is type(node)}
    let_in = {
        (kind, name)
        for allowed in (ALLOWED, released.ABOVE)
        for kind, arguments in allowed.items()
        for name in ("", *arguments)
    }
    assert len(let_in) > 150
    missing = let_in - seen - OF_THE_PARSER
    assert sorted(f"{kind.__name__} {name}".strip() for kind, name in missing) == []
