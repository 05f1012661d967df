"""Sub-queries of public tables alone: computed when a question is read, then constants."""

from __future__ import annotations

from contextlib import suppress

import pandas as pd
import pytest

import discreet
from discreet.errors import QuestionRefusal
from discreet.question.schema import Schema
from discreet.question.sql import parse, write_question_text
from discreet.question.statement import Statement

SCHEMA = """
[tables.sales]
unit = "buyer"
max_rows_per_unit = 3
[tables.sales.columns]
buyer = "integer"
item = { type = "integer", bounds = [1, 9] }
price = { type = "decimal", bounds = [0, 100] }

[tables.items]
public = true
unique = [["item"]]
[tables.items.columns]
item = "integer"
kind = "text"
list_price = "decimal"
"""
BELOW = "SELECT COUNT(*) AS n FROM sales WHERE price < (SELECT AVG(list_price) FROM items)"


def curator(prices: list[float]) -> discreet.Curator:
    places = range(1, len(prices) + 1)
    tables = {
        "sales": pd.DataFrame({"buyer": [1, 2, 2], "item": [1, 1, 2], "price": [5.0, 7.0, 40.0]}),
        "items": pd.DataFrame(
            {"item": list(places), "kind": ["a", "b"] * (len(prices) // 2), "list_price": prices}
        ),
    }
    return discreet.Curator(tables, schema=SCHEMA, budget=10)


def test_what_it_says_is_a_constant_of_the_question():
    asked = curator([10.0, 20.0]).parse(BELOW)
    assert "< 15" in write_question_text(asked)
    assert "SELECT AVG" not in write_question_text(asked)
    assert any("is 15.0: of public tables" in remark for remark in asked.remarks)


def test_another_table_makes_another_question():
    """Its answer is not shown for this one: the keys differ, as the constants do."""
    first, second = (curator(prices).parse(BELOW) for prices in ([10.0, 20.0], [10.0, 40.0]))
    assert first != second


def test_a_schema_alone_says_nothing_of_rows():
    with pytest.raises(QuestionRefusal) as refusal:
        parse(BELOW, Schema.from_text(SCHEMA))
    assert refusal.value.code == "Q15"


@pytest.mark.parametrize(
    "inside",
    [
        "SELECT MAX(s.price) FROM items AS i JOIN sales AS s ON s.item = i.item",
        "SELECT MAX(list_price) FROM items WHERE item IN (SELECT item FROM sales)",
        "SELECT MAX(price) FROM (SELECT price FROM sales UNION ALL SELECT list_price FROM items)",
    ],
)
def test_what_sees_people_is_never_computed(inside):
    """Only a sub-query whose every table is public: any other is a question, or refused."""
    text = f"SELECT COUNT(*) AS n FROM sales WHERE price < ({inside})"
    asked = None
    with suppress(QuestionRefusal):
        asked = curator([10.0, 20.0]).parse(text)
    assert asked is None or (isinstance(asked, Statement) and len(asked.first) == 1)


def test_a_long_list_is_refused_and_does_not_hang():
    """More rows than may stand in a question stay a sub-query, and are refused in words."""
    many = curator([float(n) for n in range(1200)])
    text = (
        "SELECT COUNT(*) AS n FROM sales AS s JOIN (SELECT item, MAX(list_price) AS p FROM items "
        "GROUP BY item) AS i ON i.item = s.item"
    )
    assert curator([10.0, 20.0]).parse(text)
    with pytest.raises(QuestionRefusal) as refusal:
        many.parse(text)
    assert refusal.value.code == "Q26"


@pytest.mark.parametrize(
    "inside",
    ["read_csv('/etc/passwd')", "random()", "(SELECT current_setting('memory_limit'))"],
)
def test_only_functions_of_what_is_listed_are_computed(inside):
    with pytest.raises(QuestionRefusal):
        curator([10.0, 20.0]).parse(
            f"SELECT COUNT(*) AS n FROM sales WHERE price < (SELECT MAX({inside}) FROM items)"
        )


def test_reading_costs_little_however_many_sub_queries_there_are(monkeypatch):
    """They are computed once for all who ask, few for each question, and each briefly."""
    from discreet.engine.duckdb.engine import DuckDBEngine
    from discreet.question.sql.public_queries import MOST_COMPUTED

    made: list[str] = []
    anew = DuckDBEngine._compute_anew
    monkeypatch.setattr(
        DuckDBEngine,
        "_compute_anew",
        lambda self, sql, tables: (made.append(sql), anew(self, sql, tables))[1],
    )
    with curator([1.0, 5.0]) as shop:
        several = " AND ".join(
            f"price < (SELECT MAX(item) + {n} FROM items)" for n in range(MOST_COMPUTED)
        )
        for _ in range(3):
            shop.explain(f"SELECT COUNT(*) AS n FROM sales WHERE {several}", epsilon=1)
        assert len(made) == MOST_COMPUTED
        more = several + f" AND price < (SELECT MAX(item) + {MOST_COMPUTED} FROM items)"
        with pytest.raises(QuestionRefusal):
            shop.explain(f"SELECT COUNT(*) AS n FROM sales WHERE {more}", epsilon=1)
        assert len(made) <= 2 * MOST_COMPUTED
