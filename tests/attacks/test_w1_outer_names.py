"""SQL around a question: names mean what they mean in SQL.

A SELECT around a question was once folded into it, and its names captured those inside: rows
merged, conditions let everything pass, and the first of a ranking were the last.  The twin here
folds as that version did; the curator must answer as plain DuckDB does on the released numbers.
"""

from __future__ import annotations

import duckdb
import pandas as pd
import pytest

from discreet.accounting.budget import Budget
from discreet.curate.curator import Curator
from discreet.errors import Refusal
from discreet.question.schema import Schema

SCHEMA = Schema.from_text("""
[tables.visits]
unit = "pid"
max_rows_per_unit = 1
[tables.visits.columns]
pid = { type = "integer" }
city = { type = "text", values = ["york", "hull", "leeds"], nullable = false }
age = { type = "integer", bounds = [0, 39], nullable = false }
""")
ROWS = pd.DataFrame(
    {
        "pid": range(120),
        "city": ["york"] * 60 + ["hull"] * 40 + ["leeds"] * 20,
        "age": [i % 40 for i in range(120)],
    }
)

BY_DECADE = "SELECT FLOOR(age / 10) AS age, COUNT(*) AS n FROM visits GROUP BY 1"
BY_CITY = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
CASES = {
    "rows that merged": (
        f"SELECT FLOOR(age / 10) AS decade, n FROM ({BY_DECADE}) AS s",
        BY_DECADE,
        "SELECT FLOOR(age / 10) AS decade, n FROM s",
        # folded: GROUP BY 1 becomes the outer first column, and one row is left
        "SELECT FLOOR(FLOOR(age / 10) / 10) AS decade, COUNT(*) AS n FROM visits GROUP BY 1",
    ),
    "a condition that kept everything": (
        f"SELECT city, n + 100 AS n FROM ({BY_CITY} HAVING n > 25) AS s",
        f"{BY_CITY} HAVING n > 25",
        "SELECT city, n + 100 AS n FROM s",
        # folded: HAVING n means the outer n
        "SELECT city, COUNT(*) + 100 AS n FROM visits GROUP BY city HAVING COUNT(*) + 100 > 25",
    ),
    "a ranking turned over": (
        f"SELECT city, 0 - n AS n FROM ({BY_CITY} ORDER BY n DESC LIMIT 2) AS s",
        f"{BY_CITY} ORDER BY n DESC LIMIT 2",
        "SELECT city, 0 - n AS n FROM s",
        # folded: ORDER BY n means the outer n
        "SELECT city, 0 - COUNT(*) AS n FROM visits GROUP BY city ORDER BY n DESC LIMIT 2",
    ),
}


@pytest.fixture(scope="module")
def curator():
    with Curator({"visits": ROWS}, schema=SCHEMA, budget=Budget(epsilon=10**6)) as found:
        yield found


def in_order(rows):
    return sorted(rows, key=repr)


@pytest.mark.parametrize("name", CASES)
def test_outer_names_are_the_outer_ones(curator, name):
    text, inner, outer, folded = CASES[name]
    answer = curator.ask(text, epsilon=50)
    released = curator.ask(inner, epsilon=50)
    assert released.replayed  # what stands around a question does not make it another one
    s = pd.DataFrame({column: released.column(column) for column in released.columns})
    database = duckdb.connect()  # of its own: what others left open does not matter
    expected = database.sql(outer).fetchall()
    assert len(s) == len(expected)
    assert in_order(tuple(row.values) for row in answer.rows) == in_order(expected)
    # The folded twin asks something else: the test can see the difference.
    visits = ROWS
    assert len(visits) == 120
    assert in_order(database.sql(folded).fetchall()) != in_order(
        tuple(row.values) for row in answer.rows
    )


NOWHERE = [
    "RANDOM()", "UUID()", "NOW()", "GET_CURRENT_TIMESTAMP()", "CURRENT_DATE", "CURRENT_TIMESTAMP",
    "TODAY()", "GETENV('HOME')", "CURRENT_SETTING('threads')", "GETVARIABLE('x')", "NEXTVAL('s')",
    "READ_TEXT('/etc/passwd')", "READ_BLOB('/etc/passwd')", "GLOB('/*')", "QUERY('SELECT 1')",
    "CURRENT_USER", "CURRENT_DATABASE()", "CURRENT_QUERY()", "SLEEP_MS(10)", "WRITE_LOG('x')",
    "PG_READ_FILE('/etc/passwd')", "DUCKDB_SETTINGS()", "VERSION()", "TXID_CURRENT()", "SETSEED(1)",
    "REPEAT('x', 1000000000)", "RANGE(1000000000)", "ERROR('x')", "HASH(n)",
    "APPROX_QUANTILE(n, 0.5)", "ARRAY_AGG(n)", "JSON_EXTRACT('{}', 'a')",
    "FORMAT('{:1000000000d}', n)",
    '"random"()', "`now`()", "LOCALTIME", "LOCALTIMESTAMP", "s.CURRENT_DATE", '"current_date"',
]  # fmt: skip


@pytest.mark.parametrize("call", NOWHERE)
def test_no_function_leads_anywhere(curator, call):
    """Files, settings, clocks, chance, and what would fill memory: refused, and nothing charged."""
    spent = curator.spent
    with pytest.raises(Refusal) as caught:
        curator.ask(
            f"SELECT n, {call} AS x FROM (SELECT COUNT(*) AS n FROM visits) AS s", epsilon=1
        )
    assert caught.value.code.startswith("Q"), caught.value
    assert curator.spent == spent


SOURCES = [
    "'/etc/passwd'", '"/etc/passwd"', "READ_CSV('/etc/passwd')", "READ_PARQUET('x')", "GLOB('/*')",
    "DUCKDB_SETTINGS()", "DUCKDB_TABLES()", "PRAGMA_TABLE_INFO('question.1')", "RANGE(s.n)",
    "RANGE(1000000000)", "GENERATE_SERIES(1, 1000000000)", "information_schema.tables",
    "pg_catalog.pg_class", "sqlite_master", "duckdb_settings", '"question.1"', '"public.cities"',
    "system.information_schema.schemata", "QUERY_TABLE('question.1')", "TEST_ALL_TYPES()",
    "UNNEST([1, 2])", "(VALUES (1)) AS t, nowhere", "ROWS", "visits",
]  # fmt: skip


@pytest.mark.parametrize("source", SOURCES)
def test_no_table_leads_anywhere(curator, source):
    spent = curator.spent
    with pytest.raises(Refusal) as caught:
        curator.ask(f"SELECT * FROM (SELECT COUNT(*) AS n FROM visits) AS s, {source}", epsilon=1)
    assert caught.value.code.startswith("Q"), caught.value
    assert curator.spent == spent


@pytest.mark.parametrize(
    "text",
    [
        "ATTACH 'x.db'", "COPY (SELECT 1) TO '/tmp/x'", "PRAGMA database_list", "SET threads = 1",
        "INSTALL httpfs", "LOAD httpfs", "CREATE TABLE t AS SELECT 1", "CALL pragma_version()",
        "EXPORT DATABASE '/tmp/x'", "DETACH main", "SELECT 1; COPY t TO '/tmp/x'",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT COUNT(*) FROM r",
        "SELECT n FROM (SELECT COUNT(*) AS n FROM visits) AS s INTO OUTFILE '/tmp/x'",
        "SELECT n FROM (SELECT COUNT(*) AS n FROM visits) AS s FOR UPDATE",
        "SELECT n FROM (SELECT COUNT(*) AS n FROM visits) AS s TABLESAMPLE (10 PERCENT)",
        "SELECT n COLLATE nocase FROM (SELECT COUNT(*) AS n FROM visits) AS s",
        "SELECT COLUMNS('.*') FROM (SELECT COUNT(*) AS n FROM visits) AS s",
        "SELECT n FROM (SELECT COUNT(*) AS n FROM visits) AS s POSITIONAL JOIN s AS t",
    ],
)  # fmt: skip
def test_no_statement_leads_anywhere(curator, text):
    spent = curator.spent
    with pytest.raises(Refusal) as caught:
        curator.ask(text, epsilon=1)
    assert caught.value.code.startswith("Q"), caught.value
    assert curator.spent == spent


def test_the_connection_itself_leads_nowhere():
    """The second wall: even without the list, the engine opens nothing and changes nothing."""
    from discreet.engine.duckdb.afterwards import _open

    for text in (
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "COPY (SELECT 1) TO '/tmp/discreet-leak.csv'",
        "ATTACH '/tmp/discreet-leak.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET memory_limit = '100GB'",
        "SET enable_external_access = true",
    ):
        with _open([]) as connection, pytest.raises(duckdb.Error):
            connection.execute(text)


def test_every_setting_holds_where_statements_run():
    """What is set for one connection is not what another of the same database has."""
    from discreet.engine.duckdb import afterwards

    settings = [*afterwards._SETTINGS, *afterwards._NEWER, *afterwards._LOCK]
    with afterwards._open([]) as connection:
        for setting in settings:
            name, _, wanted = setting.partition(" = ")
            (found,) = connection.execute(f"SELECT current_setting('{name}')").fetchone()
            if name == "memory_limit":
                assert found == "488.2 MiB"  # 512 MB
            else:
                assert str(found).lower() == wanted.strip("'").lower(), name
        told = "SELECT 7 / 0, 7.5 / 0, CASE WHEN 7 / 0 > 5 THEN 'more' ELSE 'unknown' END"
        assert connection.execute(told).fetchall() == [(None, None, "unknown")]


def test_nothing_of_a_statement_is_left_for_the_next(curator):
    """A database that has nothing in it again is used again: nobody finds what was there before."""
    from discreet.engine.duckdb.afterwards import Held, Shape, _open

    secret = Held("secret", (Shape("x", "BIGINT"),), {"x": [7]})
    with _open([secret]) as connection:
        assert connection.execute("SELECT x FROM secret").fetchall() == [(7,)]
        connection.execute("CREATE TABLE main.kept AS FROM secret")
        connection.execute("CREATE SEQUENCE counted")
        first = connection
    with pytest.raises(duckdb.Error):
        first.execute("SELECT x FROM secret")
    with _open([]) as connection, _open([secret]) as other:
        for text in ("FROM secret", "FROM kept", "FROM temp.secret", "SELECT NEXTVAL('counted')"):
            with pytest.raises(duckdb.Error):
                connection.cursor().execute(text)
        assert other.execute("SELECT x FROM secret").fetchall() == [(7,)]


def test_a_database_in_which_something_failed_is_not_used_again(curator, monkeypatch):
    from discreet.engine.duckdb import afterwards

    monkeypatch.setattr(afterwards, "_idle", {})
    table = afterwards.Held("a", (afterwards.Shape("x", "BIGINT"),), {"x": [1]})
    with pytest.raises(Refusal):
        afterwards.run("SELECT CAST('x' || x AS BIGINT) FROM a", [table])
    assert not any(afterwards._idle.values())
    assert afterwards.run("SELECT x FROM a", [table]) == [(1,)]
    assert sum(map(len, afterwards._idle.values())) == 1


def test_too_much_work_is_stopped(curator, monkeypatch):
    """Ten counts joined to themselves are beyond any machine; they are paid for and kept."""
    from discreet.engine.duckdb import afterwards

    monkeypatch.setattr(afterwards, "TIME_LIMIT_S", 0.5)
    tables = ", ".join(f"c AS c{i}" for i in range(10))
    text = (
        "WITH c AS (SELECT age, COUNT(*) AS n FROM visits GROUP BY age) "
        f"SELECT SUM(c0.n * c1.n) AS s FROM {tables}"
    )
    with pytest.raises(Refusal) as caught:
        curator.ask(text, epsilon=1)
    assert caught.value.code == "Q47"
    assert "paid for and kept" in str(caught.value)
    assert curator.ask("SELECT age, COUNT(*) AS n FROM visits GROUP BY age", epsilon=1).replayed
