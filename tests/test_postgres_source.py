"""A table of PostgreSQL as a source: copied in one snapshot, the same integers as from a file."""

from __future__ import annotations

import stat
from datetime import datetime
from pathlib import Path

import engine_cases as cases
import pandas as pd
import psycopg
import pyarrow.parquet as pq
import pytest
import services

import discreet
from discreet.curate import session
from discreet.engine.duckdb import DuckDBEngine
from discreet.errors import DataRefusal

CREATE = """CREATE TABLE visits (
  who bigint, city text, age integer, cost double precision, note varchar(40), day date,
  at timestamp, secret text)"""


def fill(postgres, frame=None) -> None:
    rows = (cases.frame() if frame is None else frame).astype(object)
    rows = rows.where(rows.notna(), None)
    with psycopg.connect(postgres.conninfo) as connection:
        connection.execute("DROP TABLE IF EXISTS visits")
        connection.execute(CREATE)
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO visits VALUES (%s, %s, %s, %s, %s, %s, %s, 'not declared')",
                [tuple(row) for row in rows.itertuples(index=False)],
            )


def address(postgres, table: str = "visits") -> str:
    return f"postgresql://{services.OWNER}@/{postgres.database}?host={postgres.home}#{table}"


def integers(engine) -> list:
    return cases.integers(engine.run(engine.compile(cases.plan(engine))).open_for_release())


def test_a_copy_gives_the_integers_of_the_rows(postgres, tmp_path):
    fill(postgres)
    wanted = cases.answer({"visits": cases.frame()})
    with DuckDBEngine({"visits": address(postgres)}, cases.schema(), store=tmp_path) as engine:
        assert integers(engine) == wanted
        engine.prepare()
        assert integers(engine) == wanted
    (copy,) = tmp_path.glob("postgres-*.parquet")
    assert b"not declared" not in copy.read_bytes()
    for kept in (copy, tmp_path / "postgres.key"):
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_the_same_content_is_the_same_version_and_other_content_another(postgres, tmp_path):
    fill(postgres)
    versions = []
    with DuckDBEngine({"visits": address(postgres)}, cases.schema(), store=tmp_path) as engine:
        versions.append(engine.data_version())
        postgres.execute("UPDATE visits SET age = age + 1 WHERE who = 3")
        versions.append(engine.data_version())  # a copy is what the data are until the next
        engine.prepare()
        versions.append(engine.data_version())
        engine.prepare()
        versions.append(engine.data_version())
        moved = integers(engine)
    assert versions[0] == versions[1] != versions[2] == versions[3]
    with DuckDBEngine({"visits": address(postgres)}, cases.schema(), store=tmp_path) as again:
        assert again.data_version() == versions[3]
        assert integers(again) == moved
    assert len(list(tmp_path.glob("postgres-*.parquet"))) == 2


def test_a_version_tells_nothing_without_the_key(postgres, tmp_path):
    """Who sees the ledger cannot try out what a table may hold: another store, another version."""
    fill(postgres)
    found = set()
    for name in ("one", "other"):
        store = tmp_path / name
        with DuckDBEngine({"visits": address(postgres)}, cases.schema(), store=store) as engine:
            found.add(engine.data_version())
    assert len(found) == 2


POISON = [
    "(1, 'Oslo', 2147483647, 'NaN', 'x', 'infinity', '-infinity', '')",
    "(2, 'Cork', -2147483648, 'Infinity', NULL, '5874897-12-31', '294276-12-31', '')",
    "(3, 'Faro', NULL, 5e-324, '', '4713-01-01 BC', '4713-01-01 BC', '')",
    "(NULL, NULL, NULL, -1.7976931348623157e308, '\u0001', NULL, NULL, NULL)",
    "(-9223372036854775808, 'nowhere', 7, '-Infinity', 'é日', '2024-02-29', '9999-12-31', '')",
]


@pytest.mark.parametrize("poison", POISON)
def test_no_row_of_one_person_can_raise(postgres, tmp_path, poison):
    fill(postgres)
    postgres.execute(f"INSERT INTO visits VALUES {poison}")
    with DuckDBEngine({"visits": address(postgres)}, cases.schema(), store=tmp_path) as engine:
        groups, *_ = integers(engine)
    assert len(groups) == 4
    (copy,) = tmp_path.glob("postgres-*.parquet")
    last = pq.read_table(copy, columns=["day", "at"]).to_pylist()[-1]
    if poison != POISON[-1]:  # the others are no day of our calendar
        assert last == {"day": None, "at": None}


def test_types_without_a_width_and_names_in_another_case(postgres, tmp_path):
    postgres.execute("CREATE TYPE town AS ENUM ('Oslo', 'Cork')")
    postgres.execute('CREATE SCHEMA "my clinic"')
    postgres.execute(
        'CREATE TABLE "my clinic"."Visits" (WHO numeric, "City" town, age numeric(4, 1), '
        "cost numeric, note uuid, day timestamptz, at timestamptz)"
    )
    postgres.execute(
        "INSERT INTO \"my clinic\".\"Visits\" SELECT i, (ARRAY['Oslo', 'Cork'])[1 + i % 2]::town, "
        "30 + i, 10.25 * i, gen_random_uuid(), '2024-03-01 23:30+00', now() "
        "FROM generate_series(1, 9) AS i"
    )
    source = address(postgres, "my clinic.Visits")
    with DuckDBEngine({"visits": source}, cases.schema(), store=tmp_path) as engine:
        found = integers(engine)
    rows = [
        {"who": i, "city": ["Oslo", "Cork"][i % 2], "age": 30 + i, "cost": 10.25 * i}
        for i in range(1, 10)
    ]
    day = datetime(2024, 3, 1)
    same = pd.DataFrame([{**row, "note": "n", "day": day.date(), "at": day} for row in rows])
    assert found == cases.answer({"visits": same})


def refusal(source: str, tmp_path: Path) -> DataRefusal:
    with pytest.raises(DataRefusal) as refused:
        DuckDBEngine({"visits": source}, cases.schema(), store=tmp_path)
    assert refused.value.code == "D2"
    assert refused.value.__cause__ is None
    return refused.value


def test_what_cannot_be_copied_is_refused_without_a_secret(postgres, tmp_path):
    fill(postgres)
    stranger = f"stranger_{postgres.database}"
    postgres.execute(f"CREATE ROLE {stranger} LOGIN")
    nobody = address(postgres).replace("postgres@", f"{stranger}:hunter2@")
    assert "SELECT" in refusal(nobody, tmp_path).fix
    assert "no such table" in str(refusal(address(postgres, "elsewhere"), tmp_path))
    assert "names no table" in str(refusal(address(postgres).partition("#")[0], tmp_path))
    gone = "postgresql://ann:hunter2@/clinic?host=/nowhere/at/all#visits"
    assert "not there" in str(refusal(gone, tmp_path))
    assert "hunter2" not in "".join(map(str, (refusal(nobody, tmp_path), refusal(gone, tmp_path))))
    postgres.execute("ALTER TABLE visits ALTER cost TYPE text[] USING ARRAY['x']")
    assert "_text" in str(refusal(address(postgres), tmp_path))
    assert not list(tmp_path.glob("*.partial"))
    postgres.execute(f"DROP ROLE {stranger}")


def test_only_reading_is_done(postgres, tmp_path):
    """Through a role that may read one table, and in a transaction that may not write."""
    fill(postgres)
    role = f"reader_{postgres.database}"
    postgres.execute(f"CREATE ROLE {role} LOGIN")
    postgres.execute(
        "CREATE FUNCTION spy() RETURNS text LANGUAGE plpgsql AS "
        "$$ BEGIN INSERT INTO visits (who) VALUES (1); RETURN 'x'; END $$"
    )
    postgres.execute("CREATE VIEW watched AS SELECT *, spy() AS extra FROM visits")
    postgres.execute(f"GRANT SELECT ON visits TO {role}")
    source = address(postgres).replace("postgres@", f"{role}@")
    try:
        with DuckDBEngine({"visits": source}, cases.schema(), store=tmp_path / "a") as engine:
            assert integers(engine) == cases.answer({"visits": cases.frame()})
        text = cases.SCHEMA.replace('note = "text"', 'note = "text"\nextra = "text"')
        with pytest.raises(DataRefusal):
            DuckDBEngine(
                {"visits": address(postgres, "watched")}, cases.schema(text), store=tmp_path / "b"
            )
    finally:
        postgres.execute(f"DROP OWNED BY {role}")
        postgres.execute(f"DROP ROLE {role}")


def test_a_session_reads_from_postgres_and_pays_once(postgres, tmp_path):
    fill(postgres)
    source = f'[tables.visits]\nsource = "{address(postgres)}"'
    text = cases.SCHEMA.replace("[tables.visits]", source, 1)
    session.init(tmp_path, f"[budget]\nepsilon = 9\n{text}")
    with discreet.open(tmp_path) as curator:
        first = curator.ask("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon=1)
    with discreet.open(tmp_path) as curator:
        again = curator.ask("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon=1)
        assert again.replayed
        assert again.rows == first.rows
        postgres.execute("DELETE FROM visits WHERE who = 2")
        curator.engine.prepare()
        assert not curator.ask(
            "SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon=1
        ).replayed
