"""A10: work that costs nothing to ask for.  Pricing nested CASE took 2**n steps, free.

Work is counted, not timed: no test here depends on being fast.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pyarrow as pa
import pytest
from test_curate import clinic

import discreet
from discreet.errors import QuestionRefusal
from discreet.question.functions import interpret
from discreet.question.question import MOST_AGGREGATES, MOST_KEYS
from discreet.question.sql import MOST_CHARACTERS
from discreet.question.sql.dialect import MOST_LISTED, MOST_TERMS


def nested(pattern: str, times: int) -> str:
    """The pattern within itself, on a column."""
    inner = "age"
    for place in range(times):
        inner = pattern.format(inner=inner, place=place)
    return inner


def total(expression: str) -> str:
    return f"SELECT SUM(GREATEST(LEAST({expression}, 9), 0)) FROM visits"


@pytest.mark.parametrize(
    "pattern",
    [
        "CASE WHEN age > {place} THEN {inner} ELSE {place} END",
        "CASE WHEN age > {place} THEN {place} ELSE {inner} END",
        "CASE WHEN {inner} > {place} THEN {place} ELSE age END",
        "IF(age > {place}, {inner}, {place})",
    ],
)
def test_pricing_a_choice_within_a_choice_takes_steps_by_its_length(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 0
    learn = interpret._learn

    def counting(*arguments: object) -> object:
        nonlocal steps
        steps += 1
        if steps > 20_000:
            pytest.fail("pricing does not end")  # rather than wait for it
        return learn(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(interpret, "_learn", counting)
    taken = []
    for times in (4, 8, 16):
        steps = 0
        clinic().explain(total(nested(pattern, times)), epsilon="0.3")
        taken.append(steps)
    # Writing a CASE asks what its branches can be: at most the square of the depth.
    assert taken[2] <= 5 * taken[1] <= 25 * taken[0]


def ored(terms: int) -> str:
    return " OR ".join(f"age = {place}" for place in range(terms + 1))


TOO_LARGE: dict[str, Callable[[], str]] = {
    "terms": lambda: f"SELECT COUNT(*) FROM visits WHERE {ored(MOST_TERMS + 1)}",
    "terms, 1,200 of them": lambda: f"SELECT COUNT(*) FROM visits WHERE {ored(1200)}",
    "values": lambda: (
        f"SELECT COUNT(*) FROM visits WHERE age IN ({', '.join(map(str, range(MOST_LISTED + 1)))})"
    ),
    "aggregates": lambda: (
        "SELECT "
        + ", ".join(f"CORR(age, cost + {i}) AS a{i}" for i in range(MOST_AGGREGATES + 1))
        + " FROM visits"
    ),
    "keys": lambda: (
        f"SELECT {', '.join(f'age > {i} AS k{i}' for i in range(MOST_KEYS + 1))}, COUNT(*) "
        f"FROM visits GROUP BY {', '.join(str(i + 1) for i in range(MOST_KEYS + 1))}"
    ),
    "characters": lambda: f"SELECT COUNT(*) FROM visits -- {'x' * MOST_CHARACTERS}",
    "guards that double": lambda: total(nested("SQRT({inner} - 3)", 20)),
    "NULLIF that doubles": lambda: total(nested("NULLIF({inner}, {place})", 20)),
    "powers": lambda: total(nested("POWER({inner}, 2)", 20)),
}


@pytest.mark.parametrize("what", TOO_LARGE)
def test_what_is_larger_than_anybody_meant_is_refused_before_it_is_worked_on(what: str) -> None:
    with clinic() as curator:
        for door in (curator.explain, curator.price, curator.ask):
            with pytest.raises(QuestionRefusal) as refused:
                door(TOO_LARGE[what](), epsilon="0.3")
            assert refused.value.code in ("Q3", "Q27")
        assert curator.spent.epsilon == 0


@pytest.mark.parametrize("terms", [7, 160, MOST_TERMS - 1])
def test_as_many_terms_as_are_let_in_are_answered(terms: int) -> None:
    """160 terms were accepted, charged and burnt; 300 ended in a RecursionError."""
    with clinic() as curator:
        answer = curator.ask(f"SELECT COUNT(*) AS n FROM visits WHERE {ored(terms)}", epsilon=20)
        plain = curator.ask(f"SELECT COUNT(*) AS n FROM visits WHERE age <= {terms}", epsilon=20)
        assert abs(answer.column("n")[0] - plain.column("n")[0]) <= 20


@pytest.mark.parametrize("epsilon", ["1000", "1000000"])
def test_an_enormous_offer_for_private_groups_is_priced_at_once(epsilon: str) -> None:
    """Tails of e^-1000000 were written out to their last digit: 79 s of the server for nothing."""
    table = {"t": pa.table({"who": [1, 2], "street": ["a", "b"]})}
    schema = """
    [tables.t]
    unit = "who"
    max_rows_per_unit = 1
    [tables.t.columns]
    who = "integer"
    street = "text"
    """
    budget = discreet.Budget(epsilon=1, delta="1e-6")
    with discreet.curator(table, schema=schema, budget=budget) as curator:
        began = time.process_time()
        question = "SELECT street, COUNT(*) AS n FROM t GROUP BY street"
        curator.explain(question, epsilon=epsilon, delta="1e-9")
        assert time.process_time() - began < 10
