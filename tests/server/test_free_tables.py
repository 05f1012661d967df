"""Releases and surveys at the ordinary doors: asked as any table is, for free."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from typing import Any

import adbc_driver_flightsql.dbapi as adbc
import asyncpg
import pandas
import psycopg
import pyarrow as pa
import pytest
import sqlalchemy
from adbc_driver_flightsql import DatabaseOptions
from patience import PATIENCE_S
from pyarrow import flight
from services import require

import discreet
from discreet.errors import Refusal
from discreet.local.collection import Collection
from discreet.local.survey import Survey
from discreet.server.flight import messages

SURVEY = """
name = "smoking"
title = "Smoking"
epsilon = 6
[[questions]]
name = "smokes"
options = ["never", "daily"]
"""
CITIES = "SELECT city, COUNT(*) AS n FROM cities GROUP BY city"
SMOKES = "SELECT smokes, COUNT(*) AS n FROM smoking GROUP BY smokes"
ASKED = [("releases/cities/ask", CITIES), ("surveys/smoking/ask", SMOKES)]
REFUSED = [
    "SELECT COUNT(*) FROM visits JOIN cities USING (city)",
    "SELECT COUNT(*) FROM smoking, visits",
    "SELECT COUNT(*) FROM cities, smoking",
    "SELECT COUNT(*) FROM cities WHERE city IN (SELECT city FROM visits)",
    "SELECT hair FROM cities",
    "SELECT MEDIAN(smokes) FROM smoking",
]


@pytest.fixture(scope="module")
def free(serving_doors: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A clinic with a survey, and a release that is made while the server runs."""
    require("postgres")
    home = tmp_path_factory.mktemp("free")
    survey = Survey.parse(SURVEY)
    collection = Collection.new(survey, home / "smoking", tokens=2)
    collection.add(survey.release_many({"smokes": ["never"] * 60 + ["daily"] * 40}))
    with serving_doors(home, more='\n[surveys]\nsmoking = "../smoking"\n', flight=0) as found:
        with discreet.open(found.datasets["clinic"].home) as curator:
            how = {"kind": "hierarchy", "by": ["city"], "epsilon": "0.01"}
            curator.make_release("cities", of="visits", **how)
        yield found


@pytest.fixture
def where(free: Any) -> dict[str, Any]:
    key = free.datasets["clinic"].key
    return {"host": "127.0.0.1", "port": free.port("postgres"), "user": "curator", "password": key}


def spent(free: Any) -> Any:
    key = free.datasets["clinic"].key
    return free.call("GET", "balance", key=key).json()


@pytest.mark.parametrize(("path", "question"), ASKED)
def test_the_ordinary_route_says_what_their_own_says(free, path, question):
    key, before = free.person(), spent(free)
    for more in ({}, {"confidence": "0.5"}):
        told = free.call("POST", "ask", {"question": question, **more}, key=key)
        own = free.call("POST", path, {"question": question, **more}, key=key)
        assert told.status_code == own.status_code == 200, told.text
        assert told.json() == own.json()
        assert told.json()["cost"] == "free"
        assert all(one["within"] > 0 for one in told.json()["margins"]["n"])
    csv = {"Accept": "text/csv"}
    written = free.call("POST", "ask", {"question": question}, key=key, headers=csv)
    assert "n_margin" in written.text.splitlines()[0]
    assert spent(free) == before


@pytest.mark.parametrize(("path", "question"), ASKED)
def test_before_it_is_asked_it_is_said_that_it_is_free(free, path, question):
    key, before = free.person(), spent(free)
    told = free.call("POST", "explain", {"question": question, "epsilon": "1"}, key=key).json()
    assert (told["free"], told["outcome"]) == (True, "public")
    assert told["columns"][1] == "n"
    assert any("±" in note for note in told["notes"])
    assert spent(free) == before


def test_the_public_part_of_the_dataset_lists_them(free):
    told = free.call("GET", "/v1/datasets/clinic", key=free.person()).json()
    assert [table["name"] for table in told["tables"]] == ["visits"]
    found = {table["name"]: table for table in told["free"]}
    assert found.keys() >= {"cities", "smoking"}
    assert all(table["free"] and table["public"] for table in found.values())
    (city,) = found["cities"]["columns"]
    assert (city["name"], city["values"]) == ("city", ["Aalborg", "Bergen", "Cork"])
    assert found["smoking"]["unit_text"].startswith("survey")


def test_who_may_not_ask_is_told_nothing(free):
    assert free.call("POST", "ask", {"question": CITIES}, key="wrong").status_code == 401


@pytest.mark.parametrize("question", REFUSED)
def test_what_is_mixed_or_wrong_is_refused_at_every_door(free, where, question):
    before = spent(free)
    asked = {"question": question, "epsilon": "0.01"}
    answer = free.call("POST", "ask", asked, key=where["password"])
    assert 400 <= answer.status_code < 500
    assert answer.json()["code"][0] in "QS"
    with psycopg.connect(**where, dbname="clinic", options="-c discreet.epsilon=0.01") as line:
        with pytest.raises(psycopg.Error) as refused:
            line.execute(question)
        assert (refused.value.sqlstate or "").startswith(("ZQ", "ZS"))
    assert spent(free)["dataset"]["spent"] == before["dataset"]["spent"]


def test_a_name_inside_a_question_hides_that_of_a_release(free):
    asked = "WITH cities AS (SELECT city FROM visits) SELECT COUNT(*) AS n FROM cities"
    told = free.call("POST", "explain", {"question": asked, "epsilon": "1"}, key=free.person())
    assert told.status_code == 200
    refused = free.call("POST", "ask", {"question": asked}, key=free.person())
    assert refused.json()["code"] == "Q43"  # it is about people, and has a price


@pytest.mark.parametrize(("path", "question"), ASKED)
def test_psql_is_told_margins_in_words(free, where, path, question):
    before = spent(free)
    rows = free.call("POST", path, {"question": question}, key=where["password"]).json()["rows"]
    asked = (question.replace("FROM ", "FROM public."), f"EXPLAIN {question}")
    line = f"host={where['host']} port={where['port']} user={where['user']} dbname=clinic"
    shown = subprocess.run(
        [require("postgres") / "psql", "-X", "-A", line, "-c", asked[0], "-c", asked[1]],
        env={**os.environ, "PGPASSWORD": where["password"]},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr
    assert [line.partition("|")[0] for line in shown.stdout.splitlines()[1:3]] == [
        row[0] for row in rows[:2]
    ]
    assert "NOTICE:  free; n ± " in shown.stderr
    assert "confidence 0.95" in shown.stderr
    assert ": free." in shown.stdout
    assert spent(free) == before


@pytest.mark.parametrize(("path", "question"), ASKED)
def test_psycopg_reads_the_same_values(free, where, path, question):
    rows = free.call("POST", path, {"question": question}, key=where["password"]).json()["rows"]
    with psycopg.connect(**where, dbname="clinic") as line:
        for binary in (False, True):
            with line.cursor(binary=binary) as cursor:
                assert [list(row) for row in cursor.execute(question).fetchall()] == rows
        key = question.split()[1].rstrip(",")
        one = question.replace(" GROUP", f" WHERE {key} = %s GROUP")
        assert line.execute(one, (rows[0][0],)).fetchall()[0][0] == rows[0][0]
        line.execute("SET discreet.margins = 'on'")
        for name, n, low, high in line.execute(question):
            assert low < n < high, name


# --- what there is: listed and described ----------------------------------------------------------


def run_psql(where: dict[str, Any], *commands: str) -> str:
    line = f"host={where['host']} port={where['port']} user={where['user']} dbname=clinic"
    given = [part for command in commands for part in ("-c", command)]
    shown = subprocess.run(
        [require("postgres") / "psql", "-X", "-A", line, *given],
        env={**os.environ, "PGPASSWORD": where["password"]},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr
    return shown.stdout


def test_psql_lists_and_describes_them_as_tables(free, where):
    before = spent(free)
    listed = run_psql(where, r"\dt+")
    for name, about in (("cities", "release"), ("smoking", "survey"), ("visits", "private")):
        assert f"public|{name}|table" in listed
        assert re.search(rf"\|{name}\|.*{about}", listed)
    cities = run_psql(where, r"\d cities", r"\d+ cities")
    assert "city|text||not null|" in cities
    assert "values Aalborg, Bergen, Cork" in cities
    assert "patient" not in cities  # what the release does not have
    smoking = run_psql(where, r"\d+ smoking")
    assert "smokes|text||not null|" in smoking
    assert "values never, daily" in smoking
    assert spent(free) == before


def test_no_row_of_them_is_in_the_catalogue(free, where):
    """Who gets to the empty table by a statement of the catalogue's is told so, and no number."""
    with psycopg.connect(**where, dbname="clinic") as line:
        found = line.execute(
            "SELECT relname, reltuples, pg_relation_size(oid), relrowsecurity "
            "FROM pg_class WHERE relname IN ('cities', 'smoking') ORDER BY 1"
        ).fetchall()
        assert found == [("cities", -1.0, 0, True), ("smoking", -1.0, 0, True)]
        for xml in (
            "query_to_xml('TABLE cities', true, true, '')",
            "table_to_xml('cities', true, true, '')",
        ):
            with pytest.raises(psycopg.Error):
                line.execute(f"SELECT {xml}")
            line.rollback()


def test_sqlalchemy_reflects_them_and_pandas_reads_them(free, where):
    engine = sqlalchemy.create_engine(
        sqlalchemy.URL.create(
            "postgresql+psycopg",
            where["user"],
            where["password"],
            where["host"],
            where["port"],
            "clinic",
        )
    )
    try:
        seen = sqlalchemy.inspect(engine)
        assert {"cities", "smoking", "visits"} <= set(seen.get_table_names())
        (city,) = seen.get_columns("cities")
        assert (city["name"], str(city["type"]), city["nullable"]) == ("city", "TEXT", False)
        assert city["comment"] == "values Aalborg, Bergen, Cork"
        assert seen.get_table_comment("smoking")["text"].startswith("survey")
        cities = sqlalchemy.Table("cities", sqlalchemy.MetaData(), autoload_with=engine)
        counted = sqlalchemy.func.count().label("n")
        asked = sqlalchemy.select(cities.c.city, counted).group_by(cities.c.city)
        with engine.connect() as line:
            frame = pandas.read_sql(asked, line)
        rows = free.call("POST", "ask", {"question": CITIES}, key=where["password"]).json()["rows"]
        assert frame.to_numpy().tolist() == rows
    finally:
        engine.dispose()


def test_one_that_is_made_or_removed_meanwhile_is_seen_by_an_open_session(free, where):
    home = free.datasets["clinic"].home
    names = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1"
    with psycopg.connect(**where, dbname="clinic", autocommit=True) as line:
        before = [name for (name,) in line.execute(names)]
        assert "ages" not in before
        with discreet.open(home) as curator:
            how = {"kind": "hierarchy", "by": ["age"], "epsilon": "0.01"}
            curator.make_release("ages", of="visits", **how)
        assert [name for (name,) in line.execute(names)] == sorted([*before, "ages"])
        types = line.execute(
            "SELECT column_name, data_type FROM information_schema.columns "
            "WHERE table_name = 'ages'"
        ).fetchall()
        assert types == [("age", "bigint")]
        assert "bounds 0 to 110" in run_psql(where, r"\d+ ages")
        shutil.rmtree(home / "releases" / "ages")
        free.state.datasets["clinic"].curator.releases._known.pop("ages", None)
        assert [name for (name,) in line.execute(names)] == before


def test_one_that_cannot_be_read_is_left_out_and_hides_no_other(free, where):
    home = free.datasets["clinic"].home / "releases"
    shutil.copytree(home / "cities", home / "broken")
    try:
        (home / "broken" / "certificate.json").write_text("{}")
        for file in (home / "broken").glob("*.toml"):
            file.write_text("nonsense")
        listed = run_psql(where, r"\dt")
        assert "|broken|" not in listed
        assert "|cities|" in listed
    finally:
        shutil.rmtree(home / "broken")


def test_flight_lists_them(free, where):
    given = {DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {where['password']}"}
    url = f"grpc://127.0.0.1:{free.port('flight')}"
    with adbc.connect(url, db_kwargs=given, autocommit=True) as line:
        (catalog,) = line.adbc_get_objects(depth="tables").read_all().to_pylist()
        (schema,) = catalog["catalog_db_schemas"]
        listed = {table["table_name"] for table in schema["db_schema_tables"]}
        assert {"cities", "smoking", "visits"} <= listed
        assert line.adbc_get_table_schema("smoking").names == ["smokes"]


@pytest.mark.parametrize("question", [CITIES, SMOKES])
def test_the_client_is_told_what_the_curator_is(free, where, question):
    """Values, margins and what they promise; a price is asked in vain, for there is none."""
    before = spent(free)
    with discreet.open(free.datasets["clinic"].home) as curator:
        own = curator.tell(question, confidence="0.9")
    with discreet.connect(free.url, timeout_s=PATIENCE_S, key=where["password"]) as clinic:
        told = clinic.ask(question, confidence="0.9")
        for said in (clinic.price, clinic.explain):
            with pytest.raises(Refusal, match="ask it: it is free"):
                said(question, epsilon="0.1")
    assert told.rows == own.rows
    assert told.accuracy() == own.accuracy()
    assert (told.margin_kinds, told.notes, told.keys) == (own.margin_kinds, own.notes, own.keys)
    assert any("±" in note for note in told.notes)
    assert str(told) == str(own)
    assert spent(free) == before


def test_what_has_no_such_form_is_told_where_it_has_one(free):
    form = {"Accept": "image/svg+xml"}
    answer = free.call("POST", "ask", {"question": CITIES}, key=free.person(), headers=form)
    assert answer.status_code == 406
    assert "application/json" in answer.json()["fix"]


async def fetch(where: dict[str, Any], question: str, *values: Any, **settings: str) -> Any:
    """What asyncpg prepares a question as, and what it reads for each of some values."""
    line = await asyncpg.connect(
        **where, database="clinic", server_settings=settings, timeout=PATIENCE_S
    )
    try:
        prepared = await line.prepare(question)
        types = {one.name: one.type.name for one in prepared.get_attributes()}
        return types, [[tuple(row) for row in await prepared.fetch(value)] for value in values]
    finally:
        await line.close()


PREPARED = [
    (CITIES, "city", ("Cork", "Bergen", "Atlantis"), {"city": "text", "n": "int8"}),
    (SMOKES, "smokes", ("daily", "never"), {"smokes": "text", "n": "float8"}),
]


@pytest.mark.parametrize(("question", "column", "values", "types"), PREPARED)
def test_asyncpg_prepares_what_has_parameters(free, where, question, column, values, types):
    """It learns the types before it sends the values; where no row is chosen they are the same."""
    before = spent(free)
    asked = question.replace(" GROUP", f" WHERE {column} = $1 GROUP")
    found, rows = asyncio.run(fetch(where, asked, *values))
    assert found == types
    with psycopg.connect(**where, dbname="clinic") as line:
        whole = dict(line.execute(question).fetchall())
    for value, listed in zip(values, rows, strict=True):
        assert dict(listed).get(value) == whole.get(value)
    assert any(rows)
    assert spent(free) == before
    with_ends = {"discreet.margins": "on"}
    named, ((row,), *_) = asyncio.run(fetch(where, asked, *values, **with_ends))
    assert list(named) == [column, "n", "n_low", "n_high"]
    assert row[2] < row[1] < row[3]


def test_asyncpg_prepares_what_is_chosen_by_a_number_or_said_by_one(free, where):
    types, ((row,), (none,)) = asyncio.run(
        fetch(where, "SELECT COUNT(*) AS n FROM cities WHERE LENGTH(city) > $1", 0, 99)
    )
    assert types["n"] in ("int8", "float8")
    assert row[0] > 0
    assert none[0] == 0
    asyncio.run(fetch(where, "SELECT COUNT(*) AS cities FROM visits WHERE city = $1"))


@pytest.mark.parametrize(("path", "question"), ASKED)
def test_flight_reads_the_same_values(free, where, path, question):
    rows = free.call("POST", path, {"question": question}, key=where["password"]).json()["rows"]
    before = spent(free)
    header = (b"authorization", f"Bearer {where['password']}".encode())
    options = flight.FlightCallOptions(headers=[header], timeout=PATIENCE_S)
    command = messages.pack("CommandStatementQuery", {1: question.encode()})
    with flight.connect(f"grpc://127.0.0.1:{free.port('flight')}") as client:
        info = client.get_flight_info(flight.FlightDescriptor.for_command(command), options)
        table: pa.Table = client.do_get(info.endpoints[0].ticket, options).read_all()
    assert [list(row.values()) for row in table.to_pylist()] == rows
    assert b"free" in table.schema.metadata[b"discreet:notes"]
    assert spent(free) == before
