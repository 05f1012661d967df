"""The client is light: a fresh process that connects loads no engine, no parser, no database."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from patience import PATIENCE_S

import discreet
from discreet.question.domain import Kind
from discreet.release.record import answer_to_bytes

HEAVY = ["duckdb", "fastapi", "flint", "numpy", "pandas", "pyarrow", "sqlalchemy", "sqlglot"]
ENGINE = ["duckdb", "fastapi", "sqlalchemy"]
QUESTION = "SELECT city, COUNT(*) AS n, AVG(age) AS mean FROM people GROUP BY city"
CONNECT = """
import json, sys
import httpx
import discreet

asked = []

def answer(request):
    asked.append(request.url.path)
    if request.url.path == "/v1/me":
        return httpx.Response(200, json={"datasets": [{"name": "clinic", "analyst": "ana"}]})
    headers = {"Discreet-Answer": "7", "Discreet-Replayed": "false"}
    return httpx.Response(200, content=open(sys.argv[1], "rb").read(), headers=headers)

def loaded(names):
    return [name for name in names if name in sys.modules]

key = "discreet_" + "0" * 16 + "_" + "0" * 64
remote = discreet.connect("http://127.0.0.1:1", key=key, transport=httpx.MockTransport(answer))
"""


def run(program: str, *arguments: object) -> object:
    """What a fresh process prints, read as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", CONNECT + program, *map(str, arguments)],
        check=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    return json.loads(done.stdout)


def test_connecting_loads_nothing_heavy():
    found = run(f"print(json.dumps([remote.analyst, asked, loaded({HEAVY})]))")
    assert found == ["ana", ["/v1/me"], []]


@pytest.fixture
def stored(tmp_path: Path) -> tuple[discreet.Answer, Path]:
    people = pd.DataFrame({"who": range(90), "city": ["Oslo", "Bonn", "Cork"] * 30, "age": 41})
    columns = (
        discreet.Column("who", Kind.INTEGER),
        discreet.Column("city", Kind.TEXT, values=("Bonn", "Cork", "Oslo")),
        discreet.Column("age", Kind.INTEGER, low=0, high=110),
    )
    schema = discreet.Schema(
        {"people": discreet.Table("people", columns, ("who",), max_rows_per_unit=3)}
    )
    budget = discreet.Budget(epsilon=3)
    with discreet.curator({"people": people}, schema=schema, budget=budget) as curator:
        answer = curator.ask(QUESTION, epsilon="0.7")
    assert isinstance(answer, discreet.Answer)
    file = tmp_path / "answer.json"
    file.write_bytes(answer_to_bytes(answer))
    return answer, file


def test_an_answer_is_whole_without_an_engine(stored):
    answer, file = stored
    program = f"""
found = remote.ask({QUESTION!r}, epsilon="0.7")
shown = [found.columns, [row.values for row in found.rows], found.margins("0.99"), found.notes]
shown += [found.certificate, str(found.loss), str(found), found.id, loaded({ENGINE})]
shown += [found.to_pandas()["n"].tolist(), loaded({ENGINE})]
print(json.dumps(shown))
"""
    wanted = [
        answer.columns,
        [row.values for row in answer.rows],
        answer.margins("0.99"),
        answer.notes,
        answer.certificate,
        str(answer.loss),
        str(answer),
        7,
        [],
        answer.to_pandas()["n"].tolist(),
        [],
    ]
    assert run(program, file) == json.loads(json.dumps(wanted))


FIRST_ANSWER = """
import json, sys
import discreet.question.domain

column = discreet.Column("who", discreet.question.domain.Kind.INTEGER)
table = discreet.Table("people", (column,), ("who",), max_rows_per_unit=1)
schema, budget = discreet.Schema({"people": table}), discreet.Budget(epsilon=1)
with discreet.curator({"people": sys.argv[1]}, schema=schema, budget=budget) as curator:
    curator.ask("SELECT COUNT(*) AS n FROM people", epsilon="0.5")
print(json.dumps([name for name in ("numpy.ma", "pyarrow") if name in sys.modules]))
"""


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_first_answer_needs_neither_masked_arrays_nor_arrow(tmp_path, kind):
    """They take longer to import than the answer takes, and a file is read without them."""
    people, file = pd.DataFrame({"who": [1, 2, 3]}), tmp_path / f"people.{kind}"
    people.to_csv(file, index=False) if kind == "csv" else people.to_parquet(file)
    assert run(FIRST_ANSWER, file) == []


def test_classes_on_the_way_to_a_first_answer_compile_nothing_when_they_are_imported():
    """``dataclasses`` takes half a millisecond for each; see ``exact/records.py``."""
    program = """
import dataclasses, json, sys
made = []
process = dataclasses._process_class
def watch(kind, init, repr, eq, *others):
    if (init or repr or eq) and kind.__module__.startswith("discreet"):
        made.append(f"{kind.__module__}.{kind.__name__}")
    return process(kind, init, repr, eq, *others)
dataclasses._process_class = watch
import discreet
schema = {"tables": {"t": {"unit": "who", "max_rows_per_unit": 1, "columns": {"who": "integer"}}}}
import pyarrow
rows = pyarrow.table({"who": [1, 2, 3]})
with discreet.curator({"t": rows}, schema=schema, budget=1) as clinic:
    clinic.ask("SELECT COUNT(*) AS n FROM t", epsilon="0.5")
print(json.dumps(made))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    made = json.loads(done.stdout)
    assert [name for name in made if not name.startswith("discreet.errors.")] == []
