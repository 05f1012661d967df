"""PostgreSQL as an engine: the integers that DuckDB finds, computed where the rows are."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import engine_cases as cases
import psycopg
import pytest
import services
from patience import PATIENCE_S, wait_until
from served import KEY, serve_session
from test_postgres_source import address, fill
from typer.testing import CliRunner

import discreet
from discreet.cli import app
from discreet.curate import session
from discreet.engine.duckdb import DuckDBEngine
from discreet.engine.postgres import PostgresEngine, server
from discreet.errors import DataRefusal, InvalidParameter, QuestionRefusal, SchemaRefusal

READER = "reader"


def served(postgres, *tables: str, role: str = READER) -> dict[str, str]:
    """The addresses of tables, for a role that can only read them."""
    with psycopg.connect(postgres.conninfo, autocommit=True) as connection:
        there = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone()
        if there is None:
            connection.execute(f'CREATE ROLE "{role}" LOGIN')
        for table in tables:
            connection.execute(f'GRANT SELECT ON {table} TO "{role}"')
    return {t: address(postgres, t).replace(f"//{services.OWNER}@", f"//{role}@") for t in tables}


def integers(engine, plan) -> list:
    return cases.integers(engine.run(engine.compile(plan)).open_for_release())


@pytest.fixture
def visits(postgres):
    fill(postgres)
    return served(postgres, "visits")


@pytest.mark.parametrize("keys", cases.KEYS.values(), ids=cases.KEYS)
def test_the_same_integers_as_duckdb(visits, keys, tmp_path):
    with (
        PostgresEngine(visits, cases.schema(), store=tmp_path) as engine,
        DuckDBEngine({"visits": cases.frame()}, cases.schema()) as other,
    ):
        plan = cases.plan(engine, *cases.MEASURED, keys=keys)
        assert integers(engine, plan) == integers(other, plan)
        assert not list(tmp_path.glob("*.parquet"))  # nothing was copied


def test_a_version_is_that_of_a_copy_and_changes_with_the_rows(postgres, visits, tmp_path):
    with (
        PostgresEngine(visits, cases.schema(), store=tmp_path) as engine,
        DuckDBEngine(visits, cases.schema(), store=tmp_path) as copied,
    ):
        before = engine.data_version()
        assert before == copied.data_version()
        assert engine.former_version() == copied.former_version()
        for change in (
            "UPDATE visits SET age = age + 1 WHERE who = 3",
            "DELETE FROM visits WHERE who = 3",
            "INSERT INTO visits (who) VALUES (999)",
        ):
            postgres.execute(change)
            after = engine.data_version()
            assert after != before
            copied.prepare()
            assert after == copied.data_version()
            before = after


def test_data_that_change_before_a_question_runs_fail_it(postgres, visits):
    with PostgresEngine(visits, cases.schema()) as engine:
        compiled = engine.compile(cases.plan(engine))
        engine.data_version()
        postgres.execute("DELETE FROM visits WHERE who = 4")
        with pytest.raises(DataRefusal) as refused:
            engine.run(compiled)
        assert refused.value.code == "D1"
        engine.data_version()
        engine.run(compiled)


def test_who_may_write_may_not_compute(postgres, visits):
    own = {"visits": address(postgres)}
    with pytest.raises(DataRefusal, match="superuser"):
        PostgresEngine(own, cases.schema())
    for right in ("INSERT", "UPDATE (age)", "TRUNCATE"):
        writer = served(postgres, "visits", role="writer")
        postgres.execute(f"GRANT {right} ON visits TO writer")
        with pytest.raises(DataRefusal, match="only read"):
            PostgresEngine(writer, cases.schema())
        postgres.execute(f"REVOKE {right} ON visits FROM writer")
        PostgresEngine(writer, cases.schema()).close()


def test_tables_whose_rows_are_hidden_or_elsewhere_are_refused(postgres, visits):
    """Fewer rows than there are would be computed on, or changes would go unnoticed."""
    postgres.execute("ALTER TABLE visits ENABLE ROW LEVEL SECURITY")
    with pytest.raises(DataRefusal, match="row security"):
        PostgresEngine(visits, cases.schema())
    postgres.execute("ALTER TABLE visits DISABLE ROW LEVEL SECURITY")
    postgres.execute("CREATE TABLE older () INHERITS (visits)")
    postgres.execute("CREATE FOREIGN DATA WRAPPER nothing")
    postgres.execute("CREATE SERVER elsewhere FOREIGN DATA WRAPPER nothing")
    with PostgresEngine(visits, cases.schema()) as engine:  # a part of it is part of it
        before = engine.data_version()
        postgres.execute("INSERT INTO older (who) VALUES (998)")
        assert engine.data_version() != before
    postgres.execute("CREATE FOREIGN TABLE far () INHERITS (older) SERVER elsewhere")
    with pytest.raises(DataRefusal, match="another server"):
        PostgresEngine(visits, cases.schema())


def test_what_cannot_be_opened_is_said_and_nothing_of_the_data(postgres, visits, tmp_path):
    postgres.execute("CREATE VIEW shown AS SELECT * FROM visits")
    (shown,) = served(postgres, "shown").values()
    missing = visits["visits"].replace("#visits", "#nowhere")
    gone = visits["visits"].replace(f"host={postgres.home}", f"host={tmp_path}")
    for given, words in (
        (shown, "no table"),
        (missing, "no such table"),
        (gone, "not there"),
        ("visits.parquet", "no address"),
        (visits["visits"].partition("#")[0], "names no table"),
    ):
        with pytest.raises(DataRefusal, match=words) as refused:
            PostgresEngine({"visits": given}, cases.schema())
        assert refused.value.code == "D2"
        assert refused.value.__cause__ is refused.value.__context__ is None
    with PostgresEngine({"visits": gone}, cases.schema(), opened=False) as engine:
        compiled = engine.compile(cases.plan(engine))
        assert engine.data_version() == "unreadable"
        with pytest.raises(DataRefusal) as failed:
            engine.run(compiled)
        assert failed.value.code == "D1"


def test_rows_stay_where_they_are(visits):
    with PostgresEngine(visits, cases.schema()) as engine:
        table = engine.schema.tables["visits"]
        for refused in (
            lambda: engine.compile_rows(table),
            lambda: engine.count_crowd("visits"),
            lambda: engine.compile_codes(cases.plan(engine).source, ()),
        ):
            with pytest.raises(QuestionRefusal) as caught:
                refused()
            assert caught.value.code == "Q60"


def test_a_statement_is_stopped_in_time(postgres, visits):
    """A lock that another holds makes the statement wait; the server stops it."""
    with PostgresEngine(visits, cases.schema(), timeout_s=1) as engine:
        compiled = engine.compile(cases.plan(engine))
        engine.run(compiled)
        with psycopg.connect(postgres.conninfo) as connection:
            connection.execute("LOCK TABLE visits IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(DataRefusal):
                engine.run(compiled)
            connection.rollback()
        engine.run(compiled)


def test_who_stops_waiting_stops_the_server(postgres, visits, monkeypatch):
    """Ctrl-C reaches the statement: nothing of ours works on in the server."""
    monkeypatch.setitem(server._SESSION, "lock_timeout", f"{PATIENCE_S}s")
    ours = (
        "SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = 'discreet' "
        "AND datname = current_database() AND state = 'active'"
    )

    def count_ours() -> int:
        with psycopg.connect(postgres.conninfo) as connection:
            return connection.execute(ours).fetchone()[0]

    with PostgresEngine(visits, cases.schema()) as engine:
        compiled = engine.compile(cases.plan(engine))
        with psycopg.connect(postgres.conninfo) as connection:
            connection.execute("LOCK TABLE visits IN ACCESS EXCLUSIVE MODE")

            def interrupt() -> None:
                wait_until(count_ours)
                os.kill(os.getpid(), signal.SIGINT)

            # Spark's context, once made in this process, has put its own handler there.
            before = signal.signal(signal.SIGINT, signal.default_int_handler)
            threading.Thread(target=interrupt, daemon=True).start()
            with pytest.raises(KeyboardInterrupt):
                engine.run(compiled)
            signal.signal(signal.SIGINT, before)
            wait_until(lambda: not count_ours())
            connection.rollback()
        engine.run(compiled)


# --- a session -----------------------------------------------------------------------------


def ask_here(home, kind: str, *questions: str) -> dict:
    """Ask in this process."""
    with discreet.open(home, kind=kind) as clinic:
        answers = [clinic.ask(text, epsilon="0.25") for text in questions]
        return {
            "values": [answer.to_json()["rows"] for answer in answers],
            "spent": str(clinic.spent.epsilon),
            "version": clinic.engine.data_version(),
        }


ASKING = f"""
import json, sys, discreet
{inspect.getsource(ask_here)}
print(json.dumps(ask_here(*sys.argv[1:])))
"""
COUNTED = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
MEANT = "SELECT AVG(cost) AS mean FROM visits WHERE age >= 30"
MIDDLE = "SELECT MEDIAN(age) AS middle FROM visits"


def ask_elsewhere(home, kind: str, *questions: str) -> dict:
    """Ask in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", ASKING, str(home), kind, *questions],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def home(visits, tmp_path):
    declared = cases.SCHEMA.replace(
        "[tables.visits]\n", f'[tables.visits]\nsource = "{visits["visits"]}"\n'
    )
    session.init(tmp_path / "clinic", f"[budget]\nepsilon = 3\n{declared}")
    return tmp_path / "clinic"


def test_two_processes_two_engines_and_one_account(postgres, home):
    """What one engine was paid for the other shows, free: the same integers, the same key."""
    first = ask_elsewhere(home, "duckdb", COUNTED)
    again = ask_here(home, "postgres", COUNTED, MEANT, MIDDLE)
    assert again["version"] == first["version"]
    assert again["values"][0] == first["values"][0]
    assert (first["spent"], again["spent"]) == ("1/4", "3/4")
    last = ask_here(home, "duckdb", MIDDLE, MEANT, COUNTED)
    assert last["values"] == again["values"][::-1]
    assert last["spent"] == "3/4"
    postgres.execute("DELETE FROM visits WHERE who = 5")  # other data: paid for again
    after = ask_here(home, "postgres", COUNTED)
    assert after["version"] != first["version"]
    assert after["spent"] == "1"


def test_the_engine_of_a_session_is_named_in_its_file(home):
    file = home / session.FILE
    file.write_text(f'[engine]\nkind = "postgres"\ntimeout_s = 60\n\n{file.read_text()}')
    with discreet.open(home) as clinic:
        assert isinstance(clinic.engine, PostgresEngine)
        answer = clinic.ask(COUNTED, epsilon="0.5")
        assert len(answer.rows) == 4
        before = clinic.spent
        with pytest.raises(QuestionRefusal) as refused:
            clinic.ask("SELECT COUNT(*) FROM visits WHERE REGEXP_LIKE(note, '^a')", epsilon=1)
        assert refused.value.code == "Q60"
        assert clinic.spent == before
    for settings in ({"kind": "oracle"}, {"kind": "duckdb"}, {"spark": "local[*]"}):
        with pytest.raises(InvalidParameter):
            discreet.open(home, **settings)


def test_a_server_that_is_gone_loses_nothing(postgres, home):
    """What is paid for while it is away is answered when it is back, and paid for once."""
    with discreet.open(home, kind="postgres") as clinic:
        postgres.execute("REVOKE SELECT ON visits FROM reader")
        with pytest.raises(DataRefusal):
            clinic.ask(COUNTED, epsilon="0.5")
        postgres.execute("GRANT SELECT ON visits TO reader")
        clinic.ask(COUNTED, epsilon="0.5")


def test_a_server_of_questions_computes_in_postgres(visits, tmp_path):
    """The worker has the engine; its parent has the ledger, and tells the same version."""
    home = tmp_path / "clinic"
    home.mkdir()
    declared = cases.SCHEMA.replace(
        "[tables.visits]\n", f'[tables.visits]\nsource = "{visits["visits"]}"\n'
    )
    settings = '[budget]\nepsilon = 3\n[engine]\nkind = "postgres"\n'
    (home / session.FILE).write_text(f"{settings}{declared}")
    made = CliRunner().invoke(app, ["init", str(home)])
    assert made.exit_code == 0, made.output
    (key,) = KEY.findall(made.output)
    with serve_session(home, key) as server:
        asked = {"question": COUNTED, "epsilon": "1/4"}
        wait_until(lambda: "rows" in server.call("POST", "ask", asked))  # however long it takes
        first, second = (server.call("POST", "ask", asked) for _ in range(2))
        assert len(first["rows"]) == 4
        assert second["rows"] == first["rows"]
    assert not list((home / "prepared").glob("*.parquet"))
    found = ask_here(home, "postgres", COUNTED)
    assert (found["values"], found["spent"]) == ([first["rows"]], "1/4")


# --- versions that are declared ------------------------------------------------------------------


def promising(version: str, **changes) -> discreet.Schema:
    """The schema with a declared version of its one table."""
    schema = cases.schema()
    return discreet.Schema({"visits": replace(schema.tables["visits"], version=version, **changes)})


def test_a_declared_version_is_the_same_in_every_store_and_for_copies(visits, tmp_path):
    schema, said = promising("2024-03"), set()
    for store in ("one", "other"):
        with (
            PostgresEngine(visits, schema, store=tmp_path / store) as engine,
            DuckDBEngine(visits, schema, store=tmp_path / store) as copied,
        ):
            said |= {engine.data_version(), copied.data_version()}
            plan = cases.plan(engine)
            assert integers(engine, plan) == integers(copied, plan)
    assert len(said) == 1
    with PostgresEngine(visits, promising("2024-04"), store=tmp_path / "one") as engine:
        assert engine.data_version() not in said


def test_a_declared_version_spares_the_reading_of_every_row(visits, tmp_path, monkeypatch):
    monkeypatch.setattr(server.PostgresTable, "find_token", lambda *_: pytest.fail("was read"))
    with PostgresEngine(visits, promising("2024-03"), store=tmp_path) as engine:
        engine.data_version()
        engine.run(engine.compile(cases.plan(engine)))


@pytest.mark.parametrize("opened", [PostgresEngine, DuckDBEngine])
def test_other_rows_under_the_same_declared_version_are_refused(postgres, visits, opened, tmp_path):
    """Now, by the next question, and by the next process; another version is other data."""
    with opened(visits, promising("2024-03"), store=tmp_path) as engine:
        before = engine.data_version()
        compiled = engine.compile(cases.plan(engine))
        engine.run(compiled)
        postgres.execute("DELETE FROM visits WHERE who = 4")
        with pytest.raises(DataRefusal, match="declared version") as refused:
            engine.prepare()
        assert refused.value.code == "D2"
        if opened is PostgresEngine:  # a copy is what it was
            assert engine.data_version() != before
            with pytest.raises(DataRefusal):
                engine.run(compiled)
            with pytest.raises(DataRefusal, match="declared version"):
                PostgresEngine(visits, promising("2024-03"), store=tmp_path)
        else:
            assert engine.data_version() == before
            engine.run(compiled)
    with opened(visits, promising("2024-04"), store=tmp_path) as engine:
        assert engine.data_version() != before
        engine.run(engine.compile(cases.plan(engine)))
    kept = [
        path.read_bytes() for path in tmp_path.iterdir() if path.suffix in (".served", ".copied")
    ]
    assert len(kept) == 2
    assert all(len(one) == 64 for one in kept)  # a keyed hash: no count of rows


@pytest.mark.parametrize(
    ("version", "changes", "code"),
    [
        ("", {}, "S2"),
        (" ", {}, "S2"),
        ("a\nb", {}, "S2"),
        ("x" * 201, {}, "S2"),
        ("1", {"source": "visits.parquet"}, "S5"),
        ("1", {"unit": None, "max_rows_per_unit": None}, "S5"),
    ],
)
def test_declared_versions_that_say_nothing_are_refused(version, changes, code):
    with pytest.raises(SchemaRefusal) as refused:
        promising(version, **changes)
    assert refused.value.code == code


def test_only_what_a_server_holds_has_a_declared_version():
    with pytest.raises(DataRefusal, match="tells its own"):
        DuckDBEngine({"visits": cases.frame()}, promising("2024-03"))


# --- what else a database can be made to do ------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE visits RENAME note TO was; ALTER TABLE visits RENAME city TO note; "
        "ALTER TABLE visits RENAME was TO city",
        "ALTER TABLE visits DROP COLUMN age; ALTER TABLE visits ADD COLUMN age integer DEFAULT 7",
        "ALTER TYPE mood RENAME VALUE 'calm' TO 'glad'",
    ],
    ids=["columns change names", "another column with a default", "a label is renamed"],
)
def test_values_that_change_without_a_row_being_touched_are_noticed(postgres, tmp_path, change):
    """By a hash of all rows as by a declared version; a question that was compiled before fails."""
    fill(postgres)
    postgres.execute("DROP TYPE IF EXISTS mood CASCADE")
    postgres.execute("CREATE TYPE mood AS ENUM ('calm', 'glum')")
    postgres.execute("ALTER TABLE visits ALTER COLUMN city TYPE mood USING 'calm'::mood")
    with (
        PostgresEngine(served(postgres, "visits"), cases.schema(), store=tmp_path) as engine,
        PostgresEngine(served(postgres, "visits"), promising("1"), store=tmp_path) as declared,
    ):
        before, compiled = engine.data_version(), engine.compile(cases.plan(engine))
        declared.data_version()
        for statement in change.split(";"):
            postgres.execute(statement)
        with pytest.raises(DataRefusal, match="could not answer"):
            engine.run(compiled)
        assert engine.data_version() != before
        engine.run(compiled)
        with pytest.raises(DataRefusal, match="declared version"):
            declared.prepare()


def test_a_type_that_changes_is_read_anew(postgres, visits, tmp_path):
    with PostgresEngine(visits, cases.schema(), store=tmp_path) as engine:
        compiled = engine.compile(cases.plan(engine))
        engine.data_version()
        postgres.execute("ALTER TABLE visits ALTER COLUMN age TYPE text USING 'no number'")
        engine.data_version()
        with pytest.raises(DataRefusal, match="could not answer"):
            engine.run(compiled)
        with pytest.raises(DataRefusal, match="'age' is text"):
            PostgresEngine(visits, cases.schema(), store=tmp_path)


HOSTILE = (
    "CREATE SCHEMA IF NOT EXISTS hostile",
    "CREATE OR REPLACE FUNCTION hostile.strpos(text, text) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE OR REPLACE FUNCTION hostile.never(date, date) RETURNS bool LANGUAGE sql "
    "AS 'SELECT false'",
    "DROP OPERATOR IF EXISTS hostile.<= (date, date)",
    "CREATE OPERATOR hostile.<= (LEFTARG = date, RIGHTARG = date, FUNCTION = hostile.never)",
    "GRANT USAGE ON SCHEMA hostile TO reader",
    "ALTER ROLE reader SET search_path = hostile, public, pg_catalog",
    "ALTER ROLE reader SET client_encoding = 'LATIN1'",
    "ALTER ROLE reader SET transform_null_equals = on",
    "ALTER ROLE reader SET standard_conforming_strings = off",
    "ALTER ROLE reader SET \"DateStyle\" = 'German'",
    "ALTER ROLE reader SET \"TimeZone\" = 'Asia/Kathmandu'",
    "ALTER ROLE reader SET extra_float_digits = -15",
)
"""What the owner of a database, or of a schema that a role looks into, can set for it."""


def test_settings_of_a_role_change_nothing(postgres, visits, tmp_path):
    """Where PostgreSQL computes and where it is copied; some texts are none in LATIN1."""
    postgres.execute("UPDATE visits SET note = 'Zażółć ☃' WHERE who = 3")
    with DuckDBEngine(visits, cases.schema(), store=tmp_path / "before") as engine:
        plan = cases.plan(engine, *cases.MEASURED, keys=cases.KEYS["found"])
        wanted = integers(engine, plan)
    try:
        for statement in HOSTILE:
            postgres.execute(statement)
        for opened in (PostgresEngine, DuckDBEngine):
            with opened(visits, cases.schema(), store=tmp_path / opened.__name__) as engine:
                assert integers(engine, plan) == wanted
    finally:
        postgres.execute("ALTER ROLE reader RESET ALL")
        postgres.execute("DROP SCHEMA hostile CASCADE")


def test_a_type_that_is_only_called_like_one_of_postgresql_is_refused(postgres, tmp_path):
    """A domain over texts that is named int8 would be cast, and one person's text would raise."""
    fill(postgres)
    postgres.execute("CREATE SCHEMA IF NOT EXISTS own")
    postgres.execute("DROP DOMAIN IF EXISTS own.int8; CREATE DOMAIN own.int8 AS text")
    postgres.execute("GRANT USAGE ON SCHEMA own TO reader")
    postgres.execute("ALTER TABLE visits ALTER COLUMN age TYPE own.int8 USING 'x'")
    for opened in (PostgresEngine, DuckDBEngine):
        with pytest.raises(DataRefusal, match=r"own\.int8"):
            opened(served(postgres, "visits"), cases.schema(), store=tmp_path)


def test_rows_that_a_policy_hides_are_not_copied_as_if_there_were_fewer(postgres, visits, tmp_path):
    postgres.execute("ALTER TABLE visits ENABLE ROW LEVEL SECURITY")
    postgres.execute("CREATE POLICY few ON visits FOR SELECT USING (who < 5)")
    with pytest.raises(DataRefusal, match="does not let us read"):
        DuckDBEngine(visits, cases.schema(), store=tmp_path)
