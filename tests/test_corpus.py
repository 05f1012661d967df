"""Questions as people type them, answered as typed and compared with plain DuckDB.

Each line of ``tests/corpus/*.sql`` is a question, in the dialect that its section names; the
section ``refused`` holds what no private answer exists for.  Under a question may stand
``--> refused``, or what DuckDB is asked instead where its own words differ.  The statements of
``statements.sql`` compute with several answers, and are paid for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot
from corpus.worlds import WORLDS
from sqlglot import exp

from discreet.audit.rehearsal import Rehearsal
from discreet.curate.curator import Curator
from discreet.errors import QuestionRefusal
from discreet.ledger import Ledger, Policy
from discreet.question.expressions import ColumnRef
from discreet.question.schema import Schema
from discreet.release.combined import Combined

FOLDER = Path(__file__).parent / "corpus"
SHARE = 0.9
LEAST = 250
ENORMOUS = 10**6
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Typed:
    """One question."""

    world: str
    dialect: str
    text: str
    instead: str | None = None
    refused: bool = False


def typed(world: str) -> list[Typed]:
    found: list[Typed] = []
    dialect = ""
    for line in (FOLDER / f"{world}.sql").read_text().splitlines():
        if line.startswith("--> refused"):
            last = found.pop()
            found.append(Typed(world, last.dialect, last.text, last.instead, refused=True))
        elif line.startswith("--> duckdb: "):
            last = found.pop()
            found.append(Typed(world, last.dialect, last.text, line.removeprefix("--> duckdb: ")))
        elif line.startswith("-- "):
            dialect = line.removeprefix("-- ")
        elif line:
            found.append(
                Typed(world, dialect, line.removesuffix(";"), refused=dialect == "refused")
            )
    return found


QUESTIONS = [question for world in WORLDS for question in typed(world)]


@cache
def curator(world: str) -> Rehearsal:
    """The curator's own stages, without an account: no account counts as far as is asked here."""
    schema, tables = WORLDS[world]
    return Rehearsal(tables(), schema=Schema.from_text(schema))


@cache
def database(world: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name, frame in WORLDS[world][1]().items():
        connection.register(f"{name}_frame", frame)
        connection.execute(f"CREATE TABLE {name} AS FROM {name}_frame")
    return connection


def for_duckdb(question: Typed) -> str:
    text = question.instead
    if text is None:
        dialect = question.dialect if question.dialect != "refused" else "duckdb"
        tree = sqlglot.parse_one(question.text, read=dialect)
        for table in tree.find_all(sqlglot.exp.Table):
            table.set("db", None)
            table.set("catalog", None)
        text = tree.sql("duckdb")
    return text


def truth(question: Typed) -> list[tuple[Any, ...]]:
    return database(question.world).execute(for_duckdb(question)).fetchall()


def listed(question: Typed) -> list[tuple[Any, ...]]:
    """The same with all values in the place of each of their quantiles."""

    def every(node: exp.Expr) -> exp.Expr:
        ordered = isinstance(node, exp.WithinGroup)
        if ordered or isinstance(node, exp.Quantile | exp.PercentileCont | exp.Median):
            value = node.expression.expressions[0].this if ordered else node.this
            return exp.ArrayAgg(this=value)
        return node

    tree = sqlglot.parse_one(for_duckdb(question), read="duckdb").transform(every)
    return database(question.world).execute(tree.sql("duckdb")).fetchall()


def neighbours(released: Any, true: Any, values: Any) -> bool:
    """Whether they are the same quantile: any number between two neighbours in the data is theirs.

    By its definition it is one neighbour further, as h = pn or h = p(n - 1).
    """
    assert isinstance(values, list)
    if isinstance(true, list):
        return all(
            neighbours(one, other, values) for one, other in zip(released, true, strict=True)
        )
    low, high = sorted((plain(released), plain(true)))
    return sum(low < plain(v) < high for v in values if v is not None) <= 1


def plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    return value


def close(released: Any, true: Any, tolerance: float) -> bool:
    released, true = plain(released), plain(true)
    if isinstance(true, list):
        pairs = zip(released, true, strict=True)
        return all(close(one, other, tolerance) for one, other in pairs)
    if released is None or true is None or isinstance(true, str | datetime | bool):
        return bool(released == true)
    return math.isclose(released, true, rel_tol=tolerance, abs_tol=tolerance)


def check(question: Typed) -> None:
    """The answer is the truth, but for groups that nobody is in."""
    answer = curator(question.world)(question.text, **offered(question.text))
    expected = truth(question)
    asked = answer.priced.question
    quantiles = any(aggregate.function == "QUANTILE" for aggregate in asked.aggregates)
    keys = {key.name for key in asked.keys}
    places = [
        i
        for i, output in enumerate(asked.outputs)
        if isinstance(output.expression, ColumnRef) and output.expression.name in keys
    ]
    rows = list(zip(*(answer.column(name) for name in answer.columns), strict=True))

    def key(row: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(plain(row[i]) for i in places)

    found = {key(row): row for row in rows}
    assert len(found) == len(rows)
    for row in expected:
        assert key(row) in found, (question.text, row)
        for i, (released, true) in enumerate(zip(found.pop(key(row)), row, strict=True)):
            right = close(released, true, TOLERANCE)
            if not right and quantiles:
                values = next(other[i] for other in listed(question) if key(other) == key(row))
                right = neighbours(released, true, values)
            assert right, (question.text, released, true)
    for row in found.values():
        for i, value in enumerate(row):
            if i not in places and isinstance(value, int | float):
                most = max(abs(plain(other[i])) for other in expected)
                assert abs(value) <= TOLERANCE * max(most, 1), (question.text, row)


def offered(text: str) -> dict[str, Any]:
    return {} if "OPTIONS" in text else {"epsilon": ENORMOUS, "delta": "1e-9"}


LARGE = 1500
"""What one statement costs; no account counts much further."""


def statements() -> list[Typed]:
    """Sections are worlds there; each is asked of an account of its own."""
    return [
        Typed(question.dialect, "duckdb", question.text, question.instead)
        for question in typed("statements")
    ]


@cache
def asked(world: str) -> Curator:
    schema, tables = WORLDS[world]
    return Curator(tables(), schema=schema, budget=LARGE + 100)


@pytest.mark.parametrize("question", statements(), ids=lambda q: q.text)
def test_a_statement_is_answered_as_typed(question: Typed) -> None:
    """As DuckDB computes it on the rows, but for groups by NULL that nobody is in."""
    curator = asked(question.world)
    with Ledger.open("sqlite://") as ledger:
        curator.account = ledger.account(
            "data", schema=curator.schema, budget=curator.budget, policy=Policy()
        )
        answer = curator.ask(question.text, epsilon=LARGE)
    assert isinstance(answer, Combined)
    left = list(zip(*(answer.column(name) for name in answer.columns), strict=True))
    for row in truth(question):
        pairs = [zip(found, row, strict=True) for found in left]
        same = [all(close(one, true, TOLERANCE) for one, true in pair) for pair in pairs]
        assert any(same), (question.text, row)
        left.pop(same.index(True))
    assert all(None in row for row in left), (question.text, left)


def test_there_are_enough_of_them() -> None:
    assert len(QUESTIONS) >= LEAST
    assert len({q.text for q in QUESTIONS}) == len(QUESTIONS)
    assert sum(not q.refused for q in QUESTIONS) >= SHARE * len(QUESTIONS)


@pytest.mark.parametrize("question", [q for q in QUESTIONS if not q.refused], ids=lambda q: q.text)
def test_a_question_is_answered_as_typed(question: Typed) -> None:
    check(question)


@pytest.mark.parametrize("question", [q for q in QUESTIONS if q.refused], ids=lambda q: q.text)
def test_what_has_no_private_answer_is_refused(question: Typed) -> None:
    with pytest.raises(QuestionRefusal):
        curator(question.world).price(question.text, offered(question.text))
