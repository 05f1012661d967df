"""Spark beside DuckDB: the same values of functions, the same integers of golden questions.

What Spark means otherwise, if nothing were done about it, is seeded as a bug, and found.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import conformance
import engine_cases as cases
import golden_cases as golden
import ladder
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import test_engine_conformance as beside
from conformance import compare, find_moved, list_questions, make_neighbours, make_tables
from poison import COLUMNS, DOMAINS, poisoned
from sqlglot import exp
from test_functions import calls

from discreet.engine.spark import printer
from discreet.engine.spark.engine import SparkEngine
from discreet.engine.spark.printer import SparkPrinter
from discreet.engine.typed import OF_KIND, Type, Typed
from discreet.errors import QuestionRefusal
from discreet.question.domain import Kind
from discreet.question.expressions import Call, ColumnRef, Literal
from discreet.question.functions import FUNCTIONS, nodes, render

ARROW = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.DECIMAL: pa.float64(),
    Kind.TEXT: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
}
SCOPE = {None: {name: Typed("", OF_KIND[column.kind]) for name, column in COLUMNS.items()}}


class Side:
    """Spark beside DuckDB, with the same odd values of every kind in one table."""

    def __init__(self, spark: Any, poison: Any, folder: Any) -> None:
        self.spark, self.poison = spark, poison
        rows = poison.mix()
        columns = {
            name: pa.array([row[name] for row in rows], ARROW[column.kind])
            for name, column in COLUMNS.items()
        }
        path = folder / "mixed.parquet"
        pq.write_table(pa.table({"place": pa.array(range(len(rows))), **columns}), path)
        spark.read.parquet(str(path)).createOrReplaceTempView("mixed")

    def compare(self, listed: Sequence[Call]) -> dict[str, list[Call]]:
        """Which calls mean the same, something different, fail, or are refused."""
        found: dict[str, list[Call]] = {"same": [], "different": [], "failed": [], "refused": []}
        written = []
        for call in listed:
            try:
                node = SparkPrinter({}).node(render(call, DOMAINS), SCOPE)
                written.append((call, node.text.replace("\0", "")))
            except QuestionRefusal:
                found["refused"].append(call)
        for start in range(0, len(written), 40):
            some = written[start : start + 40]
            wanted = self.poison.compute_mixed([call for call, _ in some])
            try:
                columns = self._run([text for _, text in some])
            except Exception:
                columns = [self._try(text) for _, text in some]
            for (call, _), a, b in zip(some, wanted, columns, strict=True):
                same = b is not None and all(map(_same, a, b))
                found["failed" if b is None else "same" if same else "different"].append(call)
        return found

    def _run(self, texts: list[str]) -> list[list[Any]]:
        picked = ", ".join(f"{text} AS x{i}" for i, text in enumerate(texts))
        rows = self.spark.sql(f"SELECT {picked} FROM mixed ORDER BY place").collect()
        return [[row[i] for row in rows] for i in range(len(texts))]

    def _try(self, text: str) -> list[Any] | None:
        try:
            return self._run([text])[0]
        except Exception:
            return None


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and a == b


@pytest.fixture(scope="module")
def side(spark, tmp_path_factory) -> Iterator[Side]:
    with poisoned() as poison:
        yield Side(spark, poison, tmp_path_factory.mktemp("mixed"))


NEVER = {
    "ln", "log10", "log2", "exp", "power", "convert_timezone", "regexp_matches",
    "split_part", "position", "strpos",
}  # fmt: skip
"""Functions that Spark refuses whatever they are given."""


def test_functions_mean_the_same(side):
    """A few ways to call every function, on values that have broken engines."""
    listed = []
    for name in sorted(FUNCTIONS):
        ways = list(calls(name))
        listed += random.Random(name).sample(ways, min(5, len(ways)))
    found = side.compare(listed)
    assert not found["different"]
    assert not found["failed"]
    assert len(found["same"]) >= 150


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_mean_the_same_however_called(side, name):
    found = side.compare(list(calls(name)))
    assert not found["different"]
    assert not found["failed"]
    assert bool(found["same"]) == (name not in NEVER)


# --- seeded bugs: what Spark means otherwise (casts that cut: in test_spark_hash.py) ----------


def plain_quotes(patch):
    """A backslash is an escape."""
    patch.setattr(printer, "quote_text", lambda text: "'" + text.replace("'", "''") + "'")
    patch.setattr(SparkPrinter, "quote", lambda _, text: "'" + text.replace("'", "''") + "'")


def own_week(patch):
    """Sunday is 1."""
    patch.setitem(printer._FUNCTIONS, "DAYOFWEEK", printer._part("DAYOFWEEK"))


def own_floor(patch):
    """FLOOR saturates at 64 bits."""
    plain = printer.combine
    patch.setitem(
        printer._FUNCTIONS,
        "FLOOR",
        lambda _, v: plain(f"CAST(FLOOR({v[0].text}) AS DOUBLE)", Type.DOUBLE, *v),
    )


def own_rounding(patch):
    """ROUND looks at the digits that a double is shown with."""
    patch.setitem(
        printer._FUNCTIONS,
        "ROUND",
        lambda p, v: printer.combine(
            f"CAST(ROUND({v[0].text}, {v[1].constant if len(v) > 1 else 0}) AS "
            f"{p.spell(v[0].type)})",
            v[0].type,
            *v,
        ),
    )


def own_escape(patch):
    """LIKE has the backslash as its escape."""
    patch.setattr(SparkPrinter, "like", lambda _, v, p: f"{v.text} LIKE {printer.quote_text(p)}")


def own_letters(patch):
    """Letters beyond ASCII become what Java says."""
    for name in ("UPPER", "LOWER"):
        patch.setitem(printer._FUNCTIONS, name, printer.call_of_text(name))


def own_end(patch):
    """``$`` stands before a line feed, too."""
    plain = printer.quote_text

    def quote(text):
        return plain(text.replace(r"\z", "$") if text.endswith(r"\z") else text)

    patch.setattr(printer, "quote_text", quote)


def own_logarithm(patch):
    """The last bits of logarithms and powers are Java's own."""
    for name in ("LN", "EXP"):
        patch.setitem(printer._FUNCTIONS, name, printer.call_as(name, Type.DOUBLE))


def own_order(patch):
    """Texts come in the order of a language."""

    def write(self, sign, a, b):
        texts = {a.type, b.type} <= {Type.TEXT, Type.CODED}
        order = " COLLATE UNICODE" if texts else ""
        return printer.combine(f"{a.text}{order} {sign} {b.text}{order}", Type.BOOLEAN, a, b)

    patch.setattr(SparkPrinter, "compare", write)


TEXTS = [ColumnRef(name) for name in DOMAINS if name.startswith("a_text")]
SEEDED = {
    own_week: ["dayofweek"],
    own_floor: ["floor"],
    own_rounding: ["round"],
    own_letters: ["upper", "lower"],
    own_logarithm: ["ln", "exp"],
}


@pytest.mark.parametrize("seed", SEEDED, ids=lambda seed: seed.__name__)
def test_a_seeded_bug_is_found(side, monkeypatch, seed):
    listed = [call for name in SEEDED[seed] if name in FUNCTIONS for call in calls(name)][:60]
    seed(monkeypatch)
    found = side.compare(listed)
    assert found["different"] or found["failed"]


@pytest.mark.parametrize(
    ("seed", "call"),
    [
        (plain_quotes, lambda t: Call("concat", (t, Literal("back\\slash")))),
        (own_escape, lambda t: Call("like", (t, Literal("\\a%")))),
        (own_end, lambda t: Call("cast_integer", (Call("concat", (t, Literal("\n"))),))),
        (own_order, lambda t: Call("less", (t, Literal("b")))),
    ],
    ids=["quotes", "escape", "end", "order"],
)
def test_a_seeded_bug_of_texts_is_found(side, monkeypatch, seed, call):
    asked = [call(text) for text in TEXTS]
    assert len(side.compare(asked)["same"]) == len(asked)
    seed(monkeypatch)
    found = side.compare(asked)
    assert found["different"] or found["failed"]


# --- what the session must be, or a filter is lost ---------------------------------------------


def test_a_sum_that_does_not_fit_fails_instead_of_wrapping_around(spark):
    rows = "SELECT 9223372036854775807L AS x UNION ALL SELECT 5L"
    with pytest.raises(Exception, match="OVERFLOW"):
        spark.sql(f"SELECT SUM(x) FROM ({rows})").collect()
    exact = SparkPrinter({}).total(Typed("x", Type.WHOLE)).text.replace("\0", "")
    ((found,),) = spark.sql(f"SELECT {exact} FROM ({rows})").collect()
    assert int(found) == 2**63 + 4


def test_no_word_of_a_statement_is_taken_for_a_name(spark):
    """Unless words are reserved, FROM t WHERE (b) is a table named WHERE, without the filter."""
    with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
        spark.sql("SELECT COUNT(*) FROM (SELECT 1 AS b) AS where (b)")
    ((n,),) = spark.sql("SELECT COUNT(*) FROM RANGE(5) AS t WHERE (id > 2)").collect()
    assert n == 2
    filtered = "SELECT COUNT(*) FROM (SELECT id > 2 AS b FROM RANGE(5)) WHERE (b)"
    ((n,),) = spark.sql(filtered).collect()
    assert n == 2
    loose = spark.newSession()
    loose.conf.set("spark.sql.ansi.enforceReservedKeywords", "false")
    ((n,),) = loose.sql(filtered).collect()
    assert n == 5  # everybody: so the words are reserved


def test_rows_in_no_order_are_not_numbered(spark):
    """Spark does not number them: refused, but where what is numbered is kept."""
    row = nodes.add_alias(exp.Window(this=exp.RowNumber()), "n")
    query = nodes.select([row], nodes.quote_table("t"))
    careful, keeping = SparkPrinter({}), SparkPrinter({}, numbers_rows=True)
    for one in (careful, keeping):
        one.steps["t"] = {"id": Typed("", Type.WHOLE)}
    with pytest.raises(QuestionRefusal):
        careful.statement(query)
    spark.range(3).createOrReplaceTempView("t")
    assert len({row.n for row in spark.sql(keeping.statement(query)).collect()}) == 3
    with pytest.raises(Exception, match=r"ORDER BY|order"):
        spark.sql("SELECT ROW_NUMBER() OVER () AS n FROM t").collect()


# --- golden questions -----------------------------------------------------------------------------


@pytest.fixture
def engines(monkeypatch, spark, tmp_path):
    """The engine of Spark among those that are compared, on files that it has prepared."""
    from contextlib import contextmanager

    @contextmanager
    def open_spark(schema, tables, _place) -> Iterator[SparkEngine]:
        home = tmp_path / str(len(list(tmp_path.iterdir())))
        home.mkdir()
        given = dict(tables)
        for name, table in schema.tables.items():
            if not table.public:
                given[name] = home / f"{name}.parquet"
                pq.write_table(tables[name], given[name])
        with SparkEngine(given, schema, spark=spark, store=home / "store") as engine:
            engine.prepare(tables=[t.name for t in schema.tables.values() if _is_prepared(t)])
            yield engine

    monkeypatch.setitem(conformance.ENGINES, "spark", open_spark)


def _is_prepared(table: Any) -> bool:
    return not table.public and not table.by_row


def test_golden_questions_give_the_same_integers(engines):
    tables = make_tables(golden.SCHEMA, "one for all", people=24)
    asked = random.Random(2).sample(list_questions(), 14)
    found = compare("spark", golden.SCHEMA, [tables], asked, None)
    assert not [one for one in found if one.outcome in ("different", "failed")]
    assert Counter(one.outcome for one in found)["same"] >= 8


def test_nobody_moves_spark_further_than_the_price(engines, monkeypatch):
    """Held to the sensitivities alone; preparing that bounds nobody is found."""
    few = cases.schema()  # in which people have more rows than they may keep
    worlds = make_neighbours(few, "priced", people=8, gone=2)
    assert find_moved("spark", few, worlds, beside.BOUNDED, None) == (6, set())
    beside._keep_every_row(monkeypatch)
    _, moved = find_moved("spark", few, worlds, beside.BOUNDED[:1], None)
    assert moved


@pytest.mark.soak
def test_nobody_moves_spark_further_than_the_price_for_long(engines):
    worlds = make_neighbours(golden.SCHEMA, "priced for long", people=10, gone=6)
    asked = random.Random(5).sample(list_questions(), 60)
    compared, moved = find_moved("spark", golden.SCHEMA, worlds, asked, None)
    assert compared >= 240
    assert not moved


@pytest.mark.soak
def test_all_golden_questions_give_the_same_integers(engines):
    tables = make_tables(golden.SCHEMA, "one for all", people=24)
    found = compare("spark", golden.SCHEMA, [tables], list_questions(), None)
    assert not [one for one in found if one.outcome in ("different", "failed")]
    assert Counter(one.outcome for one in found)["same"] >= 200


# --- histograms from coarse to fine --------------------------------------------------------------


@pytest.mark.parametrize("question", [ladder.GROUPED, ladder.ALONE])
def test_lumps_are_those_of_the_definition(question, spark, tmp_path):
    """The cells around quantiles one by one, the others together: on Spark as everywhere."""
    path = tmp_path / "stays.parquet"
    pq.write_table(ladder.make_stays(400, "lumps"), path)
    with SparkEngine({"stays": path}, ladder.SCHEMA, spark=spark, store=tmp_path) as engine:
        ladder.check_lumps(engine, question, ladder.STRETCHES[1:3])


def test_what_no_candidate_for_an_end_parts_comes_back_together(spark, tmp_path):
    path = tmp_path / "stays.parquet"
    pq.write_table(ladder.make_stays(600, "ends"), path)
    with SparkEngine({"stays": path}, ladder.SCHEMA, spark=spark, store=tmp_path) as engine:
        ladder.check_ends(engine)
