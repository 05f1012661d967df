"""PostgreSQL's own clients at our door: they list tables, ask, page, and show refusals."""

from __future__ import annotations

import asyncio
import os
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import Any

import asyncpg
import pandas
import pg8000.dbapi
import psycopg
import psycopg2
import pytest
import sqlalchemy
from patience import PATIENCE_S
from services import require

from discreet.accounting.budget import Budget
from discreet.ledger import keys as access

CITIES = ["Aalborg", "Bergen", "Cork"]
OFF = 200
"""Noise on a count at epsilon 1 and three rows each has scale 3: as far off once in e**66."""
COUNTED = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"


@pytest.fixture(scope="module")
def where(doors: Any) -> dict[str, Any]:
    """How to connect."""
    key = doors.datasets["clinic"].key
    return {"host": "127.0.0.1", "port": doors.port("postgres"), "user": "curator", "password": key}


def near(rows: Any, *, each: int = 1000, off: int = OFF) -> bool:
    """Whether every city has about as many visits as it should."""
    return [row[0] for row in rows] == CITIES and all(abs(row[1] - each) < off for row in rows)


# --- psql ---------------------------------------------------------------------------------------


def psql(where: dict[str, Any], *commands: str, **more: str) -> subprocess.CompletedProcess[str]:
    program = require("postgres") / "psql"
    given = [part for command in commands for part in ("-c", command)]
    line = f"host={where['host']} port={where['port']} user={where['user']} dbname=clinic"
    return subprocess.run(
        [program, "-X", "-A", line, *given],
        env={**os.environ, "PGPASSWORD": where["password"], **more},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_psql_lists_tables_and_databases(where):
    shown = psql(where, r"\dt", r"\d visits", r"\d+ visits", r"\l", r"\dn", r"\du", r"\df", r"\dp")
    assert shown.returncode == 0, shown.stderr
    assert "public|visits|table" in shown.stdout
    assert "city|text||not null|" in shown.stdout
    assert "values Aalborg, Bergen, Cork" in shown.stdout
    assert "clinic|" in shown.stdout
    assert "other" not in shown.stdout  # a dataset that this key does not open


def test_psql_asks_and_is_told_price_and_margin(where):
    mine = COUNTED.replace(" GROUP", " WHERE age < 102 GROUP")  # told by no other test's answer
    shown = psql(where, "SET discreet.epsilon = '1'", mine)
    assert shown.stdout.splitlines()[1] == "city|n"
    assert "NOTICE:" in shown.stderr
    assert "ε = 1" in shown.stderr
    assert "n ± " in shown.stderr


def test_psql_shows_a_refusal_with_caret_detail_and_hint(where):
    shown = psql(where, r"\set VERBOSITY verbose", "SELECT AVG(income) FROM visits")
    assert shown.returncode == 1
    assert "ERROR:  ZQ001: Q1: column 'income' has no public bounds." in shown.stderr
    assert "LINE 1: SELECT AVG(income) FROM visits\n               ^" in shown.stderr
    assert "DETAIL:  one patient could add any amount" in shown.stderr
    assert "HINT:  " in shown.stderr


def test_psql_without_an_offer_is_told_the_price(where):
    shown = psql(where, "SELECT COUNT(*) AS n FROM visits WHERE age BETWEEN 17 AND 29")
    assert "ERROR:  Q43" in shown.stderr
    assert "SET discreet.epsilon = '0.1'" in shown.stderr
    assert "epsilon = 1 buys n ±" in shown.stderr


def test_psql_explains_with_prices_and_margins(where, doors):
    question = "SELECT COUNT(*) AS n FROM visits WHERE age BETWEEN 18 AND 31"
    account = doors.state.datasets["clinic"].account
    before = account.balance().spent
    unpaid = psql(where, f"EXPLAIN {question}")
    assert "epsilon = 1 buys n ± " in unpaid.stderr
    assert unpaid.stderr == psql(where, question).stderr
    shown = psql(where, "SET discreet.epsilon = '0.3'", f"EXPLAIN {question}").stdout.splitlines()
    assert shown[1] == "QUERY PLAN"
    assert shown[2].startswith("ε = 0.3, ")
    assert shown[3].startswith("n ± ")
    assert shown[3].endswith(" (95 %)")
    assert any("sensitivity" in line for line in shown)
    surer = psql(
        where,
        "SET discreet.epsilon = '0.3'",
        "SET discreet.confidence = '0.99'",
        f"EXPLAIN {question}",
    ).stdout.splitlines()
    assert surer[4].endswith(" (99 %)")
    account.add_analyst("nora", limit=Budget(epsilon="0.2"))
    nora = {**where, "user": "nora", "password": access.new_key(account, "nora")}
    unpayable = psql(nora, "SET discreet.within = '5'", f"EXPLAIN {question}").stdout
    assert "B2: the allocation of 'nora' does not cover this question" in unpayable
    assert "sensitivity" in unpayable
    assert account.balance().spent == before


def test_psql_shows_the_balance(doors, where):
    clinic = doors.state.datasets["clinic"]
    clinic.account.add_analyst("otto", limit=Budget(epsilon="0.9"))
    clinic.account.add_analyst("pia")
    key = {name: access.new_key(clinic.account, name) for name in ("otto", "pia")}
    otto = {**where, "user": "otto", "password": key["otto"]}
    asked = "SELECT COUNT(*) AS n FROM visits WHERE age BETWEEN 19 AND 37"
    psql(otto, "SET discreet.epsilon = '0.25'", asked)
    name, spent, _, left, *_ = psql(otto, "SHOW discreet.balance").stdout.splitlines()
    assert name == "discreet.balance"
    assert spent.startswith("otto spent ε = 0.25, ")
    assert " and may spend ε = 0.9, " in spent
    assert left.startswith("Left: ε 0.65 of 0.9 ")
    pia = psql({**where, "user": "pia", "password": key["pia"]}, "SHOW discreet.balance").stdout
    assert "pia spent ε = 0, " in pia
    assert "without a limit of their own" in pia
    assert "All together spent " in psql(where, "SHOW discreet.balance").stdout
    refused = psql(where, "SET discreet.balance = '100'")
    assert "Q28: discreet.balance is what is left, and is not set." in refused.stderr


def test_psql_says_how_an_amount_is_written(where):
    refused = psql(where, "SET discreet.epsilon = '0,1'").stderr
    assert "HINT:  write it as '0.1': SET discreet.epsilon = '0.1'." in refused
    assert "Fraction" not in refused


# --- Python -------------------------------------------------------------------------------------


def test_psycopg_3(where):
    with psycopg.connect(**where, dbname="clinic", options="-c discreet.epsilon=1") as line:
        told: list[str] = []
        line.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        asked = "SELECT city, COUNT(*) AS n, SUM(age) AS s, AVG(age) AS a FROM visits"
        asked += " WHERE age < %s AND city <> %s GROUP BY city"
        with line.cursor(binary=True) as cursor:
            first = cursor.execute(asked, (60, "Cork")).fetchall()
        assert [row[0] for row in first] == CITIES[:2]
        assert [type(part) for part in first[0]] == [str, int, Decimal, float]
        assert line.execute(asked, (60, "Cork")).fetchall() == first
        assert len(told) == 2
        assert "answered before, free now" in told[1]
        with line.cursor("pages") as pages:  # DECLARE, FETCH, CLOSE
            pages.execute(COUNTED)
            assert near([pages.fetchone(), *pages.fetchmany(1), *pages.fetchall()])
        with pytest.raises(psycopg.Error) as refused:
            line.execute("SELECT COUNT(*) AS n FROM visits WHERE nosuch = %s", (3,))
        assert refused.value.sqlstate == "ZQ007"
        assert refused.value.diag.statement_position == "40"
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            line.execute("SELECT 1")
        line.rollback()
        assert line.execute(
            "SELECT relname FROM pg_class WHERE relname = %s", ("visits",)
        ).fetchone()


def test_psycopg_2(where):
    line = psycopg2.connect(**where, dbname="clinic", options="-c discreet.epsilon=1")
    with line, line.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) AS n FROM visits WHERE city = %s", ("Bergen",))
        assert abs(cursor.fetchone()[0] - 1000) < OFF
    with line, line.cursor("pages") as pages:
        pages.execute(COUNTED)
        assert near([*pages.fetchmany(2), *pages.fetchall()])
    assert line.notices
    line.close()


def test_asyncpg_learns_types_from_the_description(where):
    async def ask() -> None:
        settings = {"discreet.epsilon": "1"}
        line = await asyncpg.connect(
            **where, database="clinic", server_settings=settings, timeout=PATIENCE_S
        )
        asked = "SELECT COUNT(*) AS n, SUM(age) AS s FROM visits WHERE age < $1 AND city = $2"
        (row,) = await line.fetch(asked, 60, "Cork")
        assert isinstance(row["n"], int)
        assert isinstance(row["s"], Decimal)
        async with line.transaction():
            rows = [row async for row in line.cursor(COUNTED, prefetch=1)]
        assert near(rows)
        assert await line.fetchval("SELECT current_database()") == "clinic"
        await line.reset()  # four statements at once
        await line.close()

    asyncio.run(ask())


def test_pg8000(where):
    line = pg8000.dbapi.connect(**where, database="clinic", timeout=PATIENCE_S)
    cursor = line.cursor()
    cursor.execute("SET discreet.epsilon = '1'")
    cursor.execute("SELECT COUNT(*) AS n FROM visits WHERE age < %s", (60,))
    assert abs(cursor.fetchone()[0] - 1800) < OFF
    line.commit()
    line.close()


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2", "pg8000"])
def test_sqlalchemy_reflects_and_pandas_reads(where, driver):
    parts = {name: where[name] for name in ("host", "port", "password")}
    url = sqlalchemy.URL.create(
        f"postgresql+{driver}", username="curator", database="clinic", **parts
    )
    engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.pool.NullPool)
    look = sqlalchemy.inspect(engine)
    assert look.get_table_names() == ["visits"]
    kinds = {column["name"]: str(column["type"]) for column in look.get_columns("visits")}
    assert kinds["age"] == "BIGINT"
    assert kinds["income"] == "DOUBLE PRECISION"
    assert look.get_pk_constraint("visits")["constrained_columns"] == []
    assert look.get_foreign_keys("visits") == look.get_indexes("visits") == []
    assert look.get_view_names() == []
    known = sqlalchemy.MetaData()
    known.reflect(engine)
    visits = known.tables["visits"]
    counted = sqlalchemy.select(visits.c.city, sqlalchemy.func.count().label("n"))
    with engine.connect() as line:
        line.execute(sqlalchemy.text("SET discreet.epsilon = '1'"))
        asked = counted.where(visits.c.age < 101).group_by(visits.c.city)
        assert near(line.execute(asked).all())
        line.execute(sqlalchemy.text("SET discreet.margins = on"))
        frame = pandas.read_sql(sqlalchemy.text(COUNTED), line)
    assert list(frame.columns) == ["city", "n", "n_low", "n_high"]
    assert (frame["n_low"] < frame["n"]).all()
    assert (frame["n"] < frame["n_high"]).all()


# --- Java ---------------------------------------------------------------------------------------


def test_java(where):
    driver = require("jdbc")
    program = Path(__file__).parent / "jdbc" / "Questions.java"
    url = f"jdbc:postgresql://{where['host']}:{where['port']}/clinic"
    ran = subprocess.run(
        ["java", "-Xshare:auto", "-cp", driver, program, url, "curator", where["password"]],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert "table visits" in lines
    assert "column city text" in lines
    assert "column age int8" in lines
    assert [line for line in lines if line.startswith("fetched")] == [
        f"fetched {c}" for c in CITIES
    ]
    asked = [line for line in lines if line.startswith("asked")]
    assert len(asked) == 16
    assert len(set(asked)) == 2  # paid once, then the same in text and in binary
    assert "refused ZQ001" in lines
    assert any(line.startswith("notice") and "ε = 1" in line for line in lines)


# --- what tools ask by themselves ---------------------------------------------------------------

DBEAVER = (
    "SET extra_float_digits = 3",
    "SET application_name = 'DBeaver 24 - Main'",
    "SHOW search_path",
    "SELECT current_schema(), session_user",
    "SELECT version()",
    "SELECT db.oid, db.* FROM pg_catalog.pg_database db WHERE datallowconn AND NOT datistemplate",
    "SELECT * FROM pg_catalog.pg_settings WHERE name = 'standard_conforming_strings'",
    "SELECT n.oid, n.*, d.description FROM pg_catalog.pg_namespace n LEFT OUTER JOIN"
    " pg_catalog.pg_description d ON d.objoid = n.oid AND d.objsubid = 0"
    " AND d.classoid = 'pg_namespace'::regclass ORDER BY nspname",
    "SELECT t.oid, t.*, c.relkind, format_type(nullif(t.typbasetype, 0), t.typtypmod)"
    " FROM pg_catalog.pg_type t LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid = t.typrelid"
    " WHERE typnamespace = 'pg_catalog'::regnamespace",
    "SELECT c.oid, c.*, d.description, pg_catalog.pg_get_expr(c.relpartbound, c.oid),"
    " pg_catalog.pg_get_partkeydef(c.oid) FROM pg_catalog.pg_class c LEFT OUTER JOIN"
    " pg_catalog.pg_description d ON d.objoid = c.oid AND d.objsubid = 0"
    " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind NOT IN ('i', 'I', 'c')",
    "SELECT c.relname, a.*, pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true), dsc.description"
    " FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON a.attrelid = c.oid"
    " LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON a.attrelid = ad.adrelid AND a.attnum = ad.adnum"
    " LEFT OUTER JOIN pg_catalog.pg_description dsc ON c.oid = dsc.objoid"
    " AND a.attnum = dsc.objsubid"
    " WHERE NOT a.attisdropped AND c.relname = 'visits' ORDER BY a.attnum",
    "SELECT a.oid, a.* FROM pg_catalog.pg_roles a ORDER BY a.rolname",
    "SELECT x.oid, x.* FROM pg_catalog.pg_extension x",
    "SELECT pg_catalog.pg_table_size(c.oid) FROM pg_catalog.pg_class c WHERE relname = 'visits'",
)
METABASE = (
    "SET SESSION TIMEZONE TO 'UTC'",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    "BEGIN READ ONLY",
    'SELECT TRUE AS "_"',
    "SHOW timezone",
    "SELECT c.relname, has_table_privilege(c.oid, 'SELECT'), has_table_privilege(c.oid, 'UPDATE')"
    " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND c.relkind IN ('r', 'v')",
    "SELECT c.column_name, c.data_type, c.is_nullable, pk.column_name IS NOT NULL"
    " FROM information_schema.columns c LEFT JOIN (SELECT tc.table_schema, tc.table_name,"
    " kc.column_name FROM information_schema.table_constraints tc JOIN"
    " information_schema.key_column_usage kc USING (constraint_name)"
    " WHERE tc.constraint_type = 'PRIMARY KEY') pk ON c.table_name = pk.table_name"
    " WHERE c.table_schema NOT IN ('information_schema', 'pg_catalog')",
    "COMMIT",
)
SUPERSET = (
    "SELECT pg_catalog.version()",
    "SELECT current_schema()",
    "SHOW standard_conforming_strings",
    "SELECT nspname FROM pg_catalog.pg_namespace WHERE nspname NOT LIKE 'pg_%' ORDER BY nspname",
    "SELECT datname FROM pg_database WHERE datistemplate = false",
    "SET search_path = 'public'",
)


@pytest.mark.parametrize(
    "asked", [DBEAVER, METABASE, SUPERSET], ids=["DBeaver", "Metabase", "Superset"]
)
def test_what_tools_ask_when_they_start_is_free(where, doors, asked):
    """Written after what each tool asks of a new connection."""
    before = doors.state.datasets["clinic"].account.balance().spent
    with psycopg.connect(**where, dbname="clinic", autocommit=True) as line:
        for statement in asked:
            line.execute(statement.encode())
        found = line.execute("SELECT relname FROM pg_class WHERE relname = 'visits'").fetchall()
    assert found == [("visits",)]
    assert doors.state.datasets["clinic"].account.balance().spent == before


def test_what_tools_write_around_a_table_is_understood(where):
    """A query builder names schemas and quotes everything; a preview of rows is refused."""
    built = 'SELECT "public"."visits"."city" AS "city", COUNT(*) AS "count" FROM "public"."visits"'
    built += ' GROUP BY "public"."visits"."city" ORDER BY "public"."visits"."city" ASC'
    with psycopg.connect(
        **where, dbname="clinic", autocommit=True, options="-c discreet.epsilon=1"
    ) as line:
        assert near(line.execute(built.encode()).fetchall())
        with pytest.raises(psycopg.Error) as refused:
            line.execute('SELECT * FROM "public"."visits" LIMIT 200')
        assert refused.value.sqlstate == "ZQ012"
