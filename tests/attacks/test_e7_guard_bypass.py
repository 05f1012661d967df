"""E7: around the guard -- files, quoted functions, comments, $-quotes, stacked statements.

What the analyst types never reaches the engine: a question is a tree of our own
nodes, and a name in it is a name the curator declared.  So it is enough that no
text gets past the parser with anything else in it.
"""

from __future__ import annotations

import dataclasses

import pytest
from golden_cases import SCHEMA, all_cases

from discreet.errors import Refusal
from discreet.question.expressions import Call
from discreet.question.functions import FUNCTIONS
from discreet.question.relation import PublicSource, Source
from discreet.question.schema import Table
from discreet.question.sql import parse_statement
from discreet.question.statement import Statement

BYPASSES = [
    "SELECT COUNT(*) FROM '/etc/passwd'",
    'SELECT COUNT(*) FROM "/etc/passwd"',
    "SELECT COUNT(*) FROM 'https://example.org/x.parquet'",
    "SELECT COUNT(*) FROM \"parquet_scan\"('visits.parquet')",
    "SELECT COUNT(*) FROM parquet_scan('visits.parquet')",
    "SELECT COUNT(*) FROM read_csv_auto('/etc/passwd')",
    "SELECT COUNT(*) FROM glob('/etc/*')",
    "SELECT COUNT(*) FROM query('DROP TABLE visits')",
    "SELECT COUNT(*) FROM query_table('visits')",
    "SELECT COUNT(*) FROM duckdb_settings()",
    "SELECT COUNT(*) FROM information_schema.columns",
    "SELECT COUNT(*) FROM pg_catalog.pg_class",
    "SELECT COUNT(*) FROM visits AS v(a, b)",
    "SELECT COUNT(*) FROM visits, read_csv('x')",
    "SELECT COUNT(*) FROM visits JOIN 'x.csv' ON TRUE",
    "SELECT COUNT(*) FROM (FROM 'x.csv') AS s",
    "SELECT COUNT(*) FROM (TABLE visits) AS s",
    "SELECT COUNT(*) FROM (SUMMARIZE visits) AS s",
    "SELECT COUNT(*) FROM (DESCRIBE visits) AS s",
    "SELECT COUNT(*) FROM (SHOW TABLES) AS s",
    "SELECT COUNT(*) FROM visits WHERE getenv('HOME') = 'x'",
    "SELECT COUNT(*) FROM visits WHERE current_setting('x') = 'x'",
    "SELECT COUNT(*) FROM visits WHERE \"getenv\"('HOME') = 'x'",
    "SELECT COUNT(*) FROM visits WHERE main.getenv('HOME') = 'x'",
    "SELECT COUNT(*) FROM visits WHERE {fn abs(age)} > 3",
    "SELECT COUNT(*) FROM visits WHERE note = $$x$$",
    "SELECT COUNT(*) FROM visits WHERE note = $tag$x$tag$",
    "SELECT COUNT(*) FROM visits WHERE note = E'\\x41'",
    "SELECT COUNT(*) FROM visits WHERE note = U&'\\0041'",
    "SELECT COUNT(*) FROM visits WHERE note = x'41'",
    "SELECT COUNT(*) FROM visits WHERE note = N'x'",
    "SELECT COUNT(*) FROM visits WHERE note = 'a' 'b'",
    "SELECT COUNT(*) FROM visits WHERE note = $1",
    "SELECT COUNT(*) FROM visits WHERE note = @x",
    "SELECT COUNT(*) FROM visits WHERE note = {{ x }}",
    "SELECT COUNT(*) FROM visits WHERE age > 3; DROP TABLE visits",
    "SELECT COUNT(*) FROM visits;;SELECT 1",
    "SELECT COUNT(*) FROM visits/*;*/;--\nDELETE FROM visits",
    "WITH x AS (DELETE FROM visits RETURNING age) SELECT COUNT(*) FROM x",
    "WITH x AS (INSERT INTO visits VALUES (1)) SELECT COUNT(*) FROM visits",
    "WITH x AS (UPDATE visits SET age = 3) SELECT COUNT(*) FROM visits",
    "EXPLAIN ANALYZE SELECT COUNT(*) FROM visits",
    "EXPLAIN EXPLAIN SELECT COUNT(*) FROM visits",
    "EXPLAIN DELETE FROM visits",
    "SELECT COUNT(*) FROM visits INTO OUTFILE '/tmp/x'",
    "COPY (SELECT COUNT(*) FROM visits) TO '/tmp/x'",
    "CREATE TABLE x AS SELECT COUNT(*) FROM visits",
    "PREPARE x AS SELECT COUNT(*) FROM visits",
    "CALL pragma_version()",
    "LOAD httpfs",
    "SELECT /* */ /*+ SET(x) */ COUNT(*) FROM visits",
    "SELECT COUNT(*) FROM visits /* sqlglot.anonymous */ TABLESAMPLE 5",
    "SELECT read_csv(/* sqlglot.anonymous */'x') FROM visits",
    "",
    " ",
    ";",
    "--",
    "/* only a comment */",
    "\0",
    "SELECT\0COUNT(*) FROM visits",
]


@pytest.mark.parametrize("text", BYPASSES)
def test_bypass_is_refused(text):
    with pytest.raises(Refusal):
        parse_statement(text, SCHEMA)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT/**/COUNT(*)/*;DROP*/FROM/**/visits--x",
        "SELECT COUNT(*) -- FROM '/etc/passwd'\nFROM visits",
        "SELECT COUNT(*) FROM visits;",
        "SELECT COUNT(*) FROM visits ; -- done",
        "SELECT COUNT(*) AS n FROM visits /* sqlglot.anonymous */",
    ],
)
def test_comments_have_no_meaning(text):
    plain = parse_statement("SELECT COUNT(*) FROM visits", SCHEMA).question
    found = parse_statement(text, SCHEMA).question
    assert found.source == plain.source
    assert found.aggregates[0].function == "COUNT"


def nodes(value: object):
    """Every node of a question."""
    yield value
    if dataclasses.is_dataclass(value) and not isinstance(value, Table):
        for field in dataclasses.fields(value):
            yield from nodes(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from nodes(item)


def test_an_accepted_question_holds_nothing_but_declared_names():
    """Tables and columns are the schema's own, functions are of the allow-list."""
    for case in all_cases():
        if case.verdict[0] != "accepted":
            continue
        found = parse_statement(case.question, SCHEMA).question
        asked = found.questions if isinstance(found, Statement) else (found,)
        for node in nodes(tuple(dataclasses.replace(question, text="") for question in asked)):
            if isinstance(node, Source | PublicSource):
                assert SCHEMA.tables[node.table.name] is node.table
                declared = {column.name for column in node.table.columns}
                assert {own for _, own in node.columns} <= declared
            elif isinstance(node, Call):
                assert node.function in FUNCTIONS


@pytest.mark.parametrize("text", BYPASSES)
def test_no_word_of_the_parser_in_a_refusal(text):
    """What a library underneath says is not for the analyst."""
    with pytest.raises(Refusal) as caught:
        parse_statement(text, SCHEMA)
    words = f"{caught.value.what} {caught.value.why} {caught.value.fix}"
    assert "\x1b" not in words
    assert "sqlglot" not in words.replace(text, "")
    assert caught.value.__cause__ is None
