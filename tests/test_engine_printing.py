"""Printers: what a statement may consist of, and what is refused before anything is paid."""

from __future__ import annotations

from pathlib import Path

import engine_cases as cases
import pytest
from sqlglot import exp

from discreet.engine.duckdb import DuckDBEngine
from discreet.engine.postgres.printer import PostgresPrinter
from discreet.engine.spark.printer import SparkPrinter
from discreet.engine.typed import OF_KIND, Type, Typed, common_type
from discreet.errors import QuestionRefusal
from discreet.question.functions import nodes
from discreet.question.functions.nodes import add_alias, quote_column, quote_table, select

COLUMNS = {
    "whole": Typed("", Type.WHOLE),
    "real": Typed("", Type.DOUBLE),
    "text": Typed("", Type.TEXT),
    "coded": Typed("", Type.CODED, values=("low", "mid", "high")),
    "day": Typed("", Type.DATE),
}
PRINTERS = {"postgres": PostgresPrinter, "spark": SparkPrinter}


@pytest.fixture(params=sorted(PRINTERS))
def printer(request):
    made = PRINTERS[request.param]({"levels": ("low", "mid", "high")})
    made.steps["t"] = COLUMNS
    return made


def write(printer, node, **clauses) -> str:
    query = select([add_alias(node, "x")], quote_table("t"))
    for name, value in clauses.items():
        query.set(name, value)
    return printer.statement(query)


@pytest.mark.parametrize(
    "node",
    [
        exp.Lambda(this=quote_column("whole")),
        exp.Subquery(this=select([exp.Star()], quote_table("t"))),
        exp.Interval(this=exp.Literal.string("1"), unit=exp.Var(this="DAY")),
        nodes.call("QUERY_TO_XML", quote_column("text")),
        nodes.call("HASH", quote_column("whole")),
        nodes.call("REGEXP_MATCHES", quote_column("text"), nodes.text("a*")),
        nodes.call("TIMEZONE", nodes.text("UTC"), quote_column("day")),
        nodes.call("POW", quote_column("real"), quote_column("real")),
        nodes.call("SUM", quote_column("real")),
        nodes.infix(exp.Div, quote_column("whole"), quote_column("whole")),
        nodes.try_cast(quote_column("text"), nodes.Kind.DECIMAL),
        nodes.cast(quote_column("real"), nodes.Kind.TEXT),
        exp.Cast(this=quote_column("text"), to=exp.DataType.build("JSON")),
        quote_column("none of these"),
        quote_column("whole", of="elsewhere"),
    ],
    ids=lambda node: node.sql()[:40],
)
def test_what_is_not_listed_is_refused(printer, node):
    with pytest.raises(QuestionRefusal) as refused:
        write(printer, node)
    assert refused.value.code == "Q60"


def test_a_remainder_of_doubles_is_spark_s_alone():
    """C's and Java's are one; PostgreSQL has none."""
    remainder = nodes.infix(exp.Mod, quote_column("real"), quote_column("real"))
    for name, kind in PRINTERS.items():
        made = kind({})
        made.steps["t"] = COLUMNS
        if name == "spark":
            assert "%" in write(made, remainder)
            continue
        with pytest.raises(QuestionRefusal):
            write(made, remainder)


@pytest.mark.parametrize(
    "clause",
    [
        {"limit": exp.Limit(expression=exp.Literal.number("5"))},
        {"distinct": exp.Distinct()},
        {"windows": [exp.Window(this=quote_column("whole"))]},
        {"sample": exp.TableSample(percent=exp.Literal.number("5"))},
    ],
    ids=lambda clause: next(iter(clause)),
)
def test_clauses_that_are_not_listed_are_refused(printer, clause):
    with pytest.raises(QuestionRefusal):
        write(printer, quote_column("whole"), **clause)


def test_declared_texts_are_sorted_by_their_list(printer):
    order = nodes.order_by([quote_column("coded")])
    ranked = exp.Window(this=exp.RowNumber(), order=order)
    assert "'low'" in write(printer, ranked)
    by_text = nodes.order_by([nodes.cast(quote_column("coded"), nodes.Kind.TEXT)])
    assert "'low'" not in write(printer, exp.Window(this=exp.RowNumber(), order=by_text))


def test_types_are_inferred(printer):
    items = {
        "counted": exp.Count(this=exp.Star(), big_int=True),
        "summed": nodes.call("SUM", quote_column("whole")),
        "days": nodes.infix(exp.Sub, quote_column("day"), quote_column("day")),
        "place": nodes.call("ENUM_CODE", quote_column("coded")),
        "half": nodes.infix(exp.Mul, quote_column("real"), nodes.literal(nodes.Fraction(1, 2))),
    }
    query = select([add_alias(node, name) for name, node in items.items()], quote_table("t"))
    printer.statement(query)
    assert {name: column.type for name, column in printer.result.items()} == {
        "counted": Type.WHOLE,
        "summed": Type.WIDE,
        "days": Type.WHOLE,
        "place": Type.WHOLE,
        "half": Type.DOUBLE,
    }
    with pytest.raises(TypeError):
        common_type([Type.DATE, Type.WHOLE])


def test_a_statement_is_the_same_tree_for_every_engine():
    """A draft, printed as DuckDB's, is what DuckDB runs."""
    with DuckDBEngine({"visits": cases.frame()}, cases.schema()) as engine:
        plan = cases.plan(engine)
        draft = engine.draft(plan)
        assert draft.query.sql(nodes.ENGINE, pretty=True) == engine.compile(plan).text
        names = [name for name, _, _ in nodes.name_definitions(draft.complete())]
        assert names[-len(nodes.name_definitions(draft.query)) :] == [
            name for name, _, _ in nodes.name_definitions(draft.query)
        ]
        assert "rows of visits" in names
    assert set(OF_KIND) == set(nodes.Kind)


def test_the_page_lists_what_each_engine_refuses(monkeypatch):
    """After a change of a printer: python docs/make_refusals.py."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "docs"))
    import make_refusals

    assert make_refusals.page() == make_refusals.PAGE.read_text(encoding="utf-8")
