"""Stored answers mean the same for ever: every class, every question, exactly and back."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting.budget import Budget
from discreet.accounting.loss import Loss
from discreet.engine.duckdb.engine import DuckDBEngine
from discreet.errors import LedgerRefusal
from discreet.exact.numbers import canonical_json
from discreet.price import price
from discreet.question.domain import Kind
from discreet.question.expressions import Call, ColumnRef, Literal
from discreet.question.offer import Offer
from discreet.question.schema import Schema
from discreet.question.sql import parse
from discreet.release.answer import Answer
from discreet.release.explanation import Explanation
from discreet.release.record import (
    answer_from_bytes,
    answer_to_bytes,
    explanation_from_bytes,
    explanation_to_bytes,
    from_json,
    read_released,
    to_json,
    write_released,
)
from discreet.release.release import release

SCHEMA = Schema.from_text("""
[tables.visits]
unit = "patient"
max_rows_per_unit = 3
[tables.visits.columns]
patient = "integer"
city = { type = "text", values = ["Faro", "Òbidos"] }
ward = "text"
cost = { type = "decimal", bounds = [0, 500] }
day = { type = "date", bounds = [2024-01-01, 2024-03-31] }
""")
ROWS = pa.table(
    {
        "patient": [n // 3 for n in range(600)],
        "city": [("Faro", "Òbidos")[n % 2] for n in range(600)],
        "ward": [f"w{n % 4}" for n in range(600)],
        "cost": [float(n % 97) for n in range(600)],
        "day": [date(2024, 1 + n % 3, 1 + n % 28) for n in range(600)],
    }
)
QUESTIONS = {
    "moments": ("SELECT city, COUNT(*) AS n, AVG(cost) AS mean, VARIANCE(cost) AS spread "
                "FROM visits WHERE day >= DATE '2024-01-15' GROUP BY city", {}),
    "choices": ("SELECT MEDIAN(cost) AS middle, MODE(city) AS most, MAX(cost) AS top FROM visits",
                {}),
    "lists": ("SELECT QUANTILE_CONT(cost, '1/4', '3/4') AS ends, TOP_K(city, 2) AS most, "
              "HISTOGRAM(cost, 0, 100, 500) AS bins FROM visits", {}),
    "private groups": ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING n > 3 "
                       "ORDER BY n DESC LIMIT 3", {"delta": Fraction(1, 10**6)}),
    "arithmetic": ("SELECT SUM(cost) / COUNT(*) AS ratio, COUNT(DISTINCT city) AS c, "
                   "CORR(cost, cost) AS r FROM visits", {}),
    "concentrated": ("WITH p AS (SELECT patient, SUM(cost) AS total FROM visits GROUP BY patient) "
                     "SELECT AVG(total) AS mean FROM p", {"rho": Fraction(1, 7)}),
}  # fmt: skip


@pytest.fixture(scope="module")
def engine():
    with DuckDBEngine({"visits": ROWS}, SCHEMA) as opened:
        yield opened


def priced(text, offer, engine):
    offer = offer if "rho" in offer else {"epsilon": Fraction(5, 3), **offer}
    question = parse(text, SCHEMA)
    return price(question, Offer(**offer), engine.catalogue)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_reloaded_answer_is_the_same_answer(engine, name):
    asked = priced(*QUESTIONS[name], engine)
    answer = Answer(asked, *release(asked, engine.run(engine.compile(asked.plan))))
    data = answer_to_bytes(answer)
    again = answer_from_bytes(data)
    assert again.priced == answer.priced
    assert again.rows == answer.rows
    assert again.columns == answer.columns
    assert again.certificate == answer.certificate
    assert again.notes == answer.notes
    assert again.loss == answer.loss
    for confidence in ("0.5", "0.99"):
        mine, theirs = again.margins(confidence), answer.margins(confidence)
        assert mine.keys() == theirs.keys()
        for column in mine:  # ratios are simulated anew at every call
            assert [m is None for m in mine[column]] == [m is None for m in theirs[column]]
    if name in ("private groups", "choices", "lists"):
        assert str(again) == str(answer)
        assert again.margins() == answer.margins()
    assert again.to_arrow().equals(answer.to_arrow())
    assert answer_to_bytes(again) == data


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_reloaded_explanation_is_the_same_explanation(engine, name):
    asked = priced(*QUESTIONS[name], engine)
    explanation = Explanation(asked, engine.compile(asked.plan).explain())
    again = explanation_from_bytes(explanation_to_bytes(explanation))
    assert again == explanation
    assert str(again) == str(explanation)


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_is_released_is_stored_as_the_answer_it_will_be(engine, name):
    """It is shown as it was drawn, and later as it was stored: these are one."""
    asked = priced(*QUESTIONS[name], engine)
    released = release(asked, engine.run(engine.compile(asked.plan)))
    data = write_released(asked, released)
    assert data == answer_to_bytes(Answer(asked, *released))
    again = read_released(data)
    assert repr(again.groups) == repr(released.groups)
    assert [repr(part) for part in again.parts] == [repr(part) for part in released.parts]
    assert repr(answer_from_bytes(data).rows) == repr(Answer(asked, *released).rows)


def test_integers_beyond_64_bits_survive(engine):
    asked = priced(*QUESTIONS["moments"], engine)
    answer = Answer(asked, *release(asked, engine.run(engine.compile(asked.plan))))
    wide = tuple(part.astype(object) * 2**70 for part in answer.released)
    again = answer_from_bytes(answer_to_bytes(type(answer)(answer.priced, answer.groups, wide)))
    for mine, theirs in zip(again.released, wide, strict=True):
        assert mine.dtype == object
        assert (mine == theirs).all()
    small = answer_from_bytes(answer_to_bytes(answer))
    assert [part.dtype for part in small.released] == [part.dtype for part in answer.released]


EXACT = [
    *(None, True, 7, -(2**90), "", "naïve 'quoted' \u2028", 0.1, math.inf, -math.inf),
    *(Fraction(-3, 7), date(2024, 2, 29), datetime(2024, 2, 29, 1, 2, 3, 4), Kind.DATE),
    *((1, (2, ())), [3, [4]], {1: (2,), "a": None}, Loss.concentrated("1/9"), SCHEMA),
    Call("add", (ColumnRef("x"), Literal(Fraction(1, 3)))),
]


@pytest.mark.parametrize("value", EXACT, ids=lambda value: type(value).__name__)
def test_values_come_back_with_their_types(value):
    again = from_json(json.loads(canonical_json(to_json(value))))
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize(
    "budget",
    [Budget(epsilon="7/3", delta="1e-9"), Budget(rho="2/9", delta="1e-7", failures="1e-8")],
)
def test_budgets_come_back_whole(budget):
    again = from_json(to_json(budget))
    assert again == budget
    assert again._ceilings == budget._ceilings


leaves = st.none() | st.booleans() | st.integers(0, 3) | st.text(max_size=3) | st.fractions()
values = leaves | st.lists(leaves, max_size=3) | st.lists(leaves, max_size=3).map(tuple)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(values, values)
def test_the_text_of_a_value_is_its_own(one, other):
    texts = [canonical_json(to_json(value)) for value in (one, other)]
    assert from_json(json.loads(texts[0])) == one
    same = one == other and repr(one) == repr(other)  # True is not 1 here
    assert (texts[0] == texts[1]) == same


def test_nothing_is_guessed():
    for data in (
        b"", b"{}", b"7", b"[" * 100_000, b"\xff", b'{"Answer":{}}', b'{"Popen":{"args":"ls"}}',
        b'{"Literal":{"value":1,"more":2}}', b'{"Literal":{}}', b'{"Literal":[]}',
        b'{"fraction":"1/0"}', b'{"fraction":"x"}', b'{"date":"soon"}', b'{"Kind":"colour"}',
        b'{"a":1,"b":2}', b'{"array":{"kind":"float64","shape":[1],"entries":[1]}}',
        b'{"float":"1e5"}', b'{"Column":{"name":"","kind":{"Kind":"date"}}}',
    ):  # fmt: skip
        with pytest.raises(LedgerRefusal) as refusal:
            answer_from_bytes(data)
        assert refusal.value.code == "L10"
        with pytest.raises(LedgerRefusal):
            read_released(data)
    for strange in (object(), np.array([0.5]), {1, 2}):
        with pytest.raises(TypeError):
            to_json(strange)


def test_an_answer_is_not_an_explanation(engine):
    asked = priced(*QUESTIONS["moments"], engine)
    with pytest.raises(LedgerRefusal):
        answer_from_bytes(explanation_to_bytes(Explanation(asked, "SELECT")))


def test_how_many_rows_joins_may_make_is_not_recorded() -> None:
    """The hash of a schema is in old ledgers: a setting that came later must not change it."""
    text = canonical_json(to_json(SCHEMA))
    assert set(json.loads(text)["Schema"]) == {"tables", "neighbours"}
    assert canonical_json(to_json(replace(SCHEMA, max_joined_rows_per_unit=30))) == text


# --- long lists are written and read as short ones are -------------------------------------------

_LISTED = [1, True, 0, None, "a", Fraction(1), date(2020, 1, 1), datetime(2020, 1, 1)]


def _write_one_by_one(value):
    return [_write_one_by_one(v) for v in value] if isinstance(value, tuple) else to_json(value)


def _is_same(one, other):
    if isinstance(one, tuple):
        return (
            isinstance(other, tuple) and len(one) == len(other) and all(map(_is_same, one, other))
        )
    return type(one) is type(other) and one == other


def _pair_up():
    for one in _LISTED:
        for other in _LISTED:
            yield one, other


@pytest.mark.parametrize("kinds", list(_pair_up()), ids=repr)
@pytest.mark.parametrize("deep", [False, True])
def test_long_lists_are_written_and_read_part_by_part(kinds, deep):
    """Python takes 1, true and one for equal, and what was written of one is kept for others."""
    values = tuple([kinds[i % 2] for i in range(40)])
    if deep:
        values = tuple([(value,) for value in values])
    assert canonical_json(to_json(values)) == canonical_json(_write_one_by_one(values))
    assert _is_same(from_json(to_json(values)), values)
