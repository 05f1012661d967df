"""``measurements.parquet`` and nothing else: the reader of the documents, and no line of ours."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.curate import session as sessions
from discreet.publication.folder import MEASUREMENTS, read_folder
from discreet.publication.legend import KEY
from discreet.publication.placing import write_sums
from discreet.publication.verifying import verify_folder

SCHEMA = """
[budget]
epsilon = 90
delta = 1e-6
[tables.visits]
source = "visits.parquet"
unit = "who"
max_rows_per_unit = 2
[tables.visits.columns]
who = "integer"
city = { type = "text", values = ["Cork", "Faro", "Oslo"] }
age = { type = "integer", bounds = [0, 11], nullable = false }
cost = { type = "decimal", bounds = [0, 500], nullable = false }
day = { type = "date", bounds = [2024-01-01, 2024-01-05], nullable = false }
[tables.places]
public = true
source = "places.csv"
[tables.places.columns]
land = "text"
city = "text"
"""
PAIRS = {"kind": "marginals", "columns": ["city", "age", "cost"], "cells": {"cost": 4}}
TREE = {"kind": "hierarchy", "by": ["city", "age"], "cells": {"age": 4}}
ASKED = [
    "SELECT COUNT(*) FROM visits",
    "SELECT COUNT(*) FROM visits WHERE age < 7",
    "SELECT COUNT(*) FROM visits WHERE age BETWEEN 3 AND 8 AND city = 'Cork'",
]
SAME: dict[str, dict[str, Any]] = {
    "pairs": {**PAIRS, "rho": "1/4"},
    "sets": {**PAIRS, "sets": [["city"], ["age", "cost"], ["city", "cost"]], "epsilon": 2},
    "ranges": {"kind": "ranges", "by": "age", "epsilon": 2},
    "prefixes": {"kind": "prefixes", "by": "cost", "cells": {"cost": 9}, "rho": "1/9"},
    "asked": {"kind": "questions", "questions": ASKED, "columns": ["city", "age"], "rho": "1/4"},
    "grouped": {
        "kind": "questions",
        "questions": [
            "SELECT city, COUNT(*) FROM visits GROUP BY city",
            "SELECT age, COUNT(*) FROM visits WHERE city = 'Cork' GROUP BY age",
        ],
        "columns": ["city", "age"],
        "epsilon": 2,
    },
    "daily": {"kind": "counter", "by": ["day", "city"], "epsilon": 3},
    "shared": {"kind": "counter", "by": ["day", "city"], "steps_per_unit": 2, "rho": "1/2"},
    "begun": {"kind": "counter", "by": ["day"], "steps_per_unit": 1, "rho": "1/2"},
}
"""Whose tables and answers are those of the reader."""
PROJECTED: dict[str, dict[str, Any]] = {
    "tree": {**TREE, "epsilon": 2},
    "kept": {**TREE, "totals": {"": 1600, "Cork": 500, "Oslo/0 … 2": 90}, "rho": "1/4"},
    "listed": {"kind": "hierarchy", "by": ["land", "city"], "geography": "places", "epsilon": 2},
}
"""Whose tables are the nearest whole non-negative numbers to those of the reader."""
MODELLED: dict[str, dict[str, Any]] = {
    "rows": {"kind": "synthetic", "columns": ["city", "age"], "rho": "1/4"},
    "best": {**PAIRS, "best": True, "epsilon": 4},
}
"""Whose rows follow from a model: the reader has the noisy tables that it was fitted to."""
STEPS = {"daily": 3, "shared": 5, "begun": 3}
"""Of five: of the second, all."""


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of every kind."""
    home = tmp_path_factory.mktemp("office")
    draw = np.random.default_rng(5)
    who = np.repeat(np.arange(800), 2)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(draw.integers(0, 5, who.size), "D")
    city = np.array(["Cork", "Faro", "Oslo", None], dtype=object)[who % 4]
    columns = {"who": who, "city": city, "age": 3 * (who % 4) + draw.integers(0, 3, who.size)}
    columns |= {"cost": draw.uniform(0, 500, who.size), "day": days.date}
    pd.DataFrame(columns).to_parquet(home / "visits.parquet")
    (home / "places.csv").write_text("land,city\nA,Cork\nA,Faro\nB,Oslo\n", encoding="utf-8")
    sessions.init(home, SCHEMA)
    with discreet.open(home) as curator:
        for name, declared in {**SAME, **PROJECTED, **MODELLED}.items():
            curator.make_release(name, of="visits", **declared)
        for name, steps in STEPS.items():
            for _ in range(steps):
                curator.step_release(name)
    return home / "releases"


@pytest.fixture(scope="module")
def reader() -> dict[str, Any]:
    """The one of docs/publication.md: at most sixty lines, and nothing of ours."""
    text = (Path(__file__).parents[1] / "docs" / "publication.md").read_text()
    (code,) = (part.partition("```")[0] for part in text.split("```python\n")[1:])
    assert len(code.splitlines()) <= 60
    names: dict[str, Any] = {"__name__": "reader", "source": code}
    exec(compile(code, "reader", "exec"), names)
    return names


def alone(released: Path, name: str, tmp_path: Path) -> Path:
    """The draws of a release, in a folder where nothing else is."""
    return Path(shutil.copy(released / name / MEASUREMENTS, tmp_path / "alone.parquet"))


def is_near(found: Any, wanted: Any) -> bool:
    """To a thousandth, of numbers with noise of tens: a plan weighs by noise before rounding."""
    return bool(np.allclose(np.ravel(found), np.ravel(wanted), rtol=0, atol=1e-3))


def test_the_reader_needs_nothing_of_ours(reader, released, tmp_path):
    """In a Python that cannot import discreet."""
    blocked = "import sys\nsys.modules['discreet'] = None\n" + reader["source"]
    said = "\nprint(sorted(read(sys.argv[1])[2]))"
    command = [sys.executable, "-c", blocked + said, alone(released, "pairs", tmp_path)]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path)
    assert ran.stdout.strip() == "['age_cost', 'city_age', 'city_cost']"
    assert "discreet" not in reader["source"].replace('metadata[b"discreet"]', "")


@pytest.mark.parametrize("name", [*SAME, *PROJECTED, *MODELLED])
def test_the_loss_follows_from_the_draws(reader, released, tmp_path, name):
    said, drawn, _ = reader["read"](alone(released, name, tmp_path))
    charged = {one["name"]: Fraction(one["amount"]) for one in said["stages"]}
    assert len(drawn) == STEPS.get(name, len(charged))
    if name in ("shared", "begun"):  # what its steps cost, they cost together
        whole, total = sum(drawn.values()), sum(charged.values())
        assert whole == total if name == "shared" else total / 2 < whole < total
    else:
        assert drawn == {stage: charged[stage] for stage in drawn}
    made = read_folder(released / name)
    assert [(one.name, one.spend.amount) for one in made.stages] == list(charged.items())


@pytest.mark.parametrize("name", SAME)
def test_tables_and_answers_are_those_of_the_folder(reader, released, tmp_path, name):
    said, _, found = reader["read"](alone(released, name, tmp_path))
    files = sorted((released / name / "tables").glob("*.parquet"))
    for file in files:
        table = pq.read_table(file)
        assert is_near(found.pop(file.stem), table["n"].to_numpy())
    if said["kind"] == "questions":
        answers = pq.read_table(released / name / "answers.parquet")
        assert is_near([found.pop(one) for one in answers["question"].to_pylist()], answers["n"])
        assert not files
    else:
        assert files
    assert not found


@pytest.mark.parametrize("name", PROJECTED)
def test_of_a_tree_it_gives_what_was_made_whole_afterwards(reader, released, tmp_path, name):
    said, _, found = reader["read"](alone(released, name, tmp_path))
    product = read_folder(released / name).product
    assert list(found) == [table.name for table in product.tables]
    moved = False
    for table in product.tables:
        assert is_near(found[table.name], table.noisy)
        file = pq.read_table(released / name / "tables" / f"{table.name}.parquet")
        assert np.array_equal(np.ravel(table.values), file["n"].to_numpy())
        moved |= not is_near(found[table.name], file["n"])
    assert moved  # so the step that is left out is one
    for place, node, total in said["totals"]:
        assert abs(np.ravel(found[said["results"][place]["name"]])[node] - total) < 1e-5
    assert bool(said["totals"]) == (name == "kept")


@pytest.mark.parametrize("name", MODELLED)
def test_of_rows_it_gives_the_noisy_tables_that_they_follow_from(reader, released, tmp_path, name):
    said, _, found = reader["read"](alone(released, name, tmp_path))
    assert said["results"] == []
    made = read_folder(released / name)
    for table in made.product.tables[: len(made.levels)]:
        assert is_near(found[table.name], table.noisy)
    assert not is_near(found["age"], made.product.tables[1].values)
    drawn = [line for line in made.lines() if line["kind"] == "cells"]
    assert len(found) == len(drawn) > len(made.levels)
    for line in drawn:
        assert is_near(found["_".join(line["columns"])], line["values"])


@pytest.mark.parametrize("name", [*SAME, *PROJECTED])
def test_the_cells_have_the_words_of_the_folder(released, name):
    """Column by column, in the order of the numbers."""
    said = json.loads(pq.read_schema(released / name / MEASUREMENTS).metadata[KEY])
    words = {one["name"]: one["words"] for one in said["columns"]}
    for one in said["results"]:
        if not one["columns"]:
            continue
        codes = one["levels"] or np.indices(one["shape"]).reshape(len(one["shape"]), -1).tolist()
        with (released / name / "tables" / f"{one['name']}.csv").open() as file:
            rows = list(csv.DictReader(file))
        for column, levels in zip(one["columns"], codes, strict=True):
            told = [words[column][level].replace("NULL", "") for level in levels]
            assert told == [row[column] for row in rows]


def test_a_release_of_before_has_no_legend_and_another_legend_is_noticed(released, tmp_path):
    folder = Path(shutil.copytree(released / "ranges", tmp_path / "ranges"))
    lines = pq.read_table(folder / MEASUREMENTS)
    pq.write_table(lines.replace_schema_metadata(None), folder / MEASUREMENTS)
    write_sums(folder)
    assert all(check.holds for check in verify_folder(folder))
    said = (lines.schema.metadata or {})[KEY].replace(b'"rows_per_unit":2', b'"rows_per_unit":1')
    pq.write_table(lines.replace_schema_metadata({KEY: said}), folder / MEASUREMENTS)
    write_sums(folder)
    wrong = [(check.what, check.says) for check in verify_folder(folder) if not check.holds]
    assert wrong == [("draws", "the legend in measurements.parquet says something else")]
