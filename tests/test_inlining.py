"""Steps that only rename are written into what reads them, and a statement means the same."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import conformance
import engine_cases as cases
import golden_cases as golden
import pytest
import sqlglot

from discreet.engine.duckdb import DuckDBEngine, measure
from discreet.engine.inlining import inline_renamings


def test_golden_questions_give_the_same_integers(monkeypatch):
    """On a world of odd values, golden questions with those steps and without."""
    asked = Random(8).sample(conformance.list_questions(), 40)
    assert count_shorter(monkeypatch, asked) > 20


@pytest.mark.soak
def test_all_golden_questions_give_the_same_integers(monkeypatch):
    assert count_shorter(monkeypatch, conformance.list_questions()) > 150


def count_shorter(monkeypatch, asked) -> int:
    """How many statements are shorter without the steps that only rename; all mean the same."""
    tables = conformance.make_tables(golden.SCHEMA, "renamed", people=12)
    draft, shorter = measure.draft_plan, 0

    def inline(*given, **how):
        found = draft(*given, **how)
        return replace(found, query=inline_renamings(found.query.copy()))

    with DuckDBEngine(tables, golden.SCHEMA, threads=1) as engine:
        for text in asked:
            plan = conformance.plan_question(text, engine.catalogue)
            if plan is None:
                continue
            whole = engine.compile(plan)
            with monkeypatch.context() as patched:
                patched.setattr(measure, "draft_plan", inline)
                short = replace(whole, text=measure.compile_plan(plan, *_lend(engine)).text)
            shorter += len(short.text) < len(whole.text)
            wanted, found = (
                cases.integers(engine.run(one).open_for_release()) for one in (whole, short)
            )
            assert found == wanted, text
    return shorter


def _lend(engine: DuckDBEngine):
    """What the engine compiles plans with."""
    return engine._own, engine.catalogue.multiplicity


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        # Through several steps, in every clause but ORDER BY, which orders what is given.
        (
            'WITH "a" AS (SELECT * FROM "t"), "b" AS (SELECT "x" AS "y" FROM "a") '
            'SELECT "y" AS "y", COUNT(*) AS "n" FROM "b" WHERE "y" > 1 GROUP BY "y" ORDER BY "y"',
            'SELECT "x" AS "y", COUNT(*) AS "n" FROM "t" WHERE "x" > 1 GROUP BY "x" ORDER BY "y"',
        ),
        # Names that change places do so once.
        (
            'WITH "a" AS (SELECT "x" AS "y", "y" AS "x" FROM "t") SELECT "x" - "y" AS "d" FROM "a"',
            'SELECT "y" - "x" AS "d" FROM "t"',
        ),
        (
            'WITH "a" AS (SELECT "x" AS "y" FROM "t") SELECT "y", "y" AS "z" FROM "a"',
            'SELECT "x" AS "y", "x" AS "z" FROM "t"',
        ),
        (
            'WITH "a" AS (SELECT CAST("x" AS BIGINT) AS "y" FROM "t") SELECT "y" AS "z" FROM "a"',
            'SELECT CAST("x" AS BIGINT) AS "z" FROM "t"',
        ),
    ],
)
def test_names_are_replaced_by_what_they_stand_for(text, wanted):
    found = inline_renamings(sqlglot.parse_one(text, dialect="duckdb"))
    assert found.sql("duckdb") == wanted


@pytest.mark.parametrize(
    "text",
    [
        # Read twice; kept for all; with a condition; computed; all of its columns; a join.
        'WITH "a" AS (SELECT "x" AS "y" FROM "t") SELECT "y" FROM "a" UNION ALL SELECT 1 FROM "a"',
        'WITH "a" AS MATERIALIZED (SELECT "x" AS "y" FROM "t") SELECT "y" FROM "a"',
        'WITH "a" AS (SELECT "x" AS "y" FROM "t" WHERE "x" > 1) SELECT "y" FROM "a"',
        'WITH "a" AS (SELECT DISTINCT "x" AS "y" FROM "t") SELECT "y" FROM "a"',
        'WITH "a" AS (SELECT "x" + 1 AS "y" FROM "t") SELECT "y" FROM "a"',
        'WITH "a" AS (SELECT "x" AS "y" FROM "t") SELECT * FROM "a"',
        'WITH "a" AS (SELECT "x" AS "y" FROM "t") SELECT "l"."y" FROM "a" AS "l" CROSS JOIN "u"',
        'WITH "a" AS (SELECT "x" AS "y" FROM "t") SELECT 1 FROM "u" WHERE "z" IN (SELECT "y" FROM "a" WHERE "y" = "z")',  # noqa: E501
    ],
)
def test_other_steps_are_left_alone(text):
    wanted = sqlglot.parse_one(text, dialect="duckdb").sql("duckdb")
    assert inline_renamings(sqlglot.parse_one(text, dialect="duckdb")).sql("duckdb") == wanted
