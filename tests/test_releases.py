"""Releases through the curator: charged once, drawn once, written whole; asked for free."""

from __future__ import annotations

import json
import math
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.curate import releases
from discreet.curate import session as sessions
from discreet.engine.duckdb import DuckDBEngine
from discreet.errors import BudgetRefusal, InvalidParameter, QuestionRefusal, Refusal
from discreet.ledger import State
from discreet.ledger.account import Account
from discreet.publication import product, synthetic
from discreet.publication.folder import read_folder
from discreet.publication.margins import Promise
from discreet.publication.spend import Kind
from discreet.publication.verifying import verify_folder
from discreet.question.levels import list_levels
from discreet.question.ownership import columns, unit_columns
from discreet.question.schema import Schema
from discreet.question.sql import parse

SCHEMA = """
[tables.visits]
source = "visits.parquet"
unit = "who"
max_rows_per_unit = 3
[tables.visits.columns]
who = "integer"
city = { type = "text", values = ["Cork", "Faro", "Oslo"] }
sick = { type = "boolean", nullable = false }
age = { type = "integer", bounds = [0, 99] }
cost = { type = "decimal", bounds = [0, 500] }
came = { type = "date", bounds = [2024-01-01, 2024-12-31] }
left = { type = "date", bounds = [2024-01-01, 2024-12-31] }
note = "text"
"""
BUDGET = "[budget]\nepsilon = 40\ndelta = 1e-6\n"
SMALL = {"columns": ["city", "sick"], "epsilon": 4, "delta": "1e-9"}
CITY: dict[str, Any] = {"kind": "marginals", "ways": 1, "columns": ["city"], "epsilon": 1}
SICK = {**CITY, "columns": ["sick"]}
STAGES = ("histograms", "distances", "pair tables", "certified margins", "typical margins")


def frame(people: int = 1500, seed: int = 4) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    who = np.repeat(np.arange(people), 2)
    sick = draw.random(who.size) < np.array([0.1, 0.9, 0.3, 0.5])[who % 4]
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(draw.integers(0, 360, who.size), "D")
    return pd.DataFrame(
        {
            "who": who,
            "city": np.array(["Cork", "Faro", "Oslo", None], dtype=object)[who % 4],
            "sick": sick,
            "age": draw.integers(-3, 110, who.size),
            "cost": draw.uniform(-10, 600, who.size),
            "came": days.date,
            "left": (days + pd.Timedelta(days=2)).date,
            "note": "x",
        }
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    frame().to_parquet(tmp_path / "visits.parquet")
    sessions.init(tmp_path, BUDGET + SCHEMA)
    return tmp_path


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    frame().to_parquet(folder / "visits.parquet")
    sessions.init(folder, BUDGET + SCHEMA)
    with discreet.open(folder) as curator:
        curator.make_release("small", of="visits", **SMALL)
    return folder / "releases" / "small"


@pytest.fixture
def given(made_once: Path, tmp_path: Path) -> Path:
    """A folder that somebody was handed."""
    return Path(shutil.copytree(made_once, tmp_path / "small"))


def charges(curator: discreet.Curator) -> list[str]:
    return [entry.question for entry in curator.transcript() if entry.loss is not None]


# --- what one is ----------------------------------------------------------------------------------


def test_a_release_is_charged_written_and_checked(home):
    with discreet.open(home) as curator:
        made = curator.make_release("small", of="visits", **SMALL).made
        assert len(charges(curator)) == len(STAGES)
        assert curator.spent.rho == made.loss.rho
        entries = curator.transcript()
        assert {entry.state for entry in entries} == {State.ANSWERED}
    folder = home / "releases" / "small"
    assert all(check.holds for check in verify_folder(folder))
    said = json.loads((folder / "certificate.json").read_text())
    total = sum(Fraction(stage["amount"]) for stage in said["stages"])
    assert total == made.declared.spend(rows_per_unit=3).amount
    assert [entry.id for entry in entries] == [stage["charge"] for stage in said["stages"]]
    rows = pq.read_table(folder / "rows.parquet")
    assert rows.column_names == ["city", "sick"]
    assert abs(rows.num_rows - 3000) < 600
    names = {one.name for one in folder.iterdir()}
    assert {"rows.csv", "card.md", "report.html", "SHA256SUMS", "measurements.parquet"} <= names


def test_it_follows_from_its_measurements_and_from_nothing_else(home):
    with discreet.open(home) as curator:
        made = curator.make_release("small", of="visits", **SMALL).made
    again = read_folder(home / "releases" / "small")
    assert np.array_equal(again.product.rows, made.product.rows)
    assert again.certificate() == made.certificate()


def test_verify_notices_every_forgery(home):
    with discreet.open(home) as curator:
        curator.make_release("small", of="visits", **SMALL)
    folder = home / "releases" / "small"
    lines = pq.read_table(folder / "measurements.parquet")
    rows = lines.to_pylist()
    rows[0]["parameter"] = str(Fraction(rows[0]["parameter"]) / 2)  # half of the noise
    pq.write_table(pa.Table.from_pylist(rows, schema=lines.schema), folder / "measurements.parquet")
    with pytest.raises(Refusal):
        verify_folder(folder)
    pq.write_table(lines, folder / "measurements.parquet")
    assert all(check.holds for check in verify_folder(folder) if check.what != "checksums")
    said = json.loads((folder / "certificate.json").read_text())
    said["stages"][2]["amount"] = str(Fraction(said["stages"][2]["amount"]) * 2)
    (folder / "certificate.json").write_text(json.dumps(said))
    wrong = [check.what for check in verify_folder(folder) if not check.holds]
    told = ["certificate", "draws", "loss of pair tables", "card and report"]
    assert wrong == ["checksums", *told]  # what the draws say of themselves is another, too


@pytest.mark.parametrize(
    "forge",
    [
        lambda said: [],
        lambda said: said | {"stages": None},
        lambda said: said | {"columns": [{}]},
        lambda said: said | {"promise": {"rows_per_unit": 0}},
        lambda said: said | {"stages": [one | {"amount": "1e99999999"} for one in said["stages"]]},
        lambda said: said | {"stages": [one | {"amount": "1/0"} for one in said["stages"]]},
        lambda said: said | {"columns": [one | {"count": 10**15} for one in said["columns"]]},
    ],
)
def test_a_certificate_of_any_form_is_refused_in_words(forge, given):
    said = json.loads((given / "certificate.json").read_text())
    (given / "certificate.json").write_text(json.dumps(forge(said)))
    with pytest.raises(Refusal):
        verify_folder(given)


def test_what_a_link_shows_is_no_part_of_a_release(given):
    (given / "card.md").rename(given.parent / "card.md")
    (given / "card.md").symlink_to(given.parent / "card.md")
    (given / "kept.md").symlink_to(given.parent / "nowhere")
    wrong = {one.what: one.says for one in verify_folder(given) if not one.holds}
    assert wrong == {
        "checksums": "card.md is not",
        "list of files": "kept.md is no part of a release",
        "card and report": "card.md is missing",
    }


def test_a_small_file_that_says_it_is_huge_is_not_read(given, monkeypatch):
    from discreet.publication import folder

    monkeypatch.setattr(folder, "_MOST_NUMBERS", 10)
    with pytest.raises(Refusal, match="says that it holds"):
        verify_folder(given)


def test_a_release_of_an_earlier_plan_is_made_again_as_it_was(home, monkeypatch):
    """Shares and fit have changed since; a folder without a version of the plan is the first's."""
    settings = product._EARLIER[1, Kind.LAPLACE]
    with discreet.open(home) as curator, monkeypatch.context() as patch:
        patch.setattr(product, "_EARLIER", {(product.PLANNER, Kind.LAPLACE): settings})
        patch.setattr(product, "_SHARP", product.PLANNER + 1)  # margins as they were
        patch.setattr(product.Settings, "shares", lambda self, gaussian: (0.4, 0.1, 0.5))
        curator.make_release("old", of="visits", columns=["city", "sick"], epsilon=2)
    folder = home / "releases" / "old"
    said = json.loads((folder / "certificate.json").read_text())
    del said["planner"]
    (folder / "certificate.json").write_text(json.dumps(said))
    assert [check.what for check in verify_folder(folder) if not check.holds] == ["checksums"]
    said["planner"] = 99
    (folder / "certificate.json").write_text(json.dumps(said))
    with pytest.raises(Refusal, match="later version"):
        verify_folder(folder)


def test_margins_are_those_of_the_plan_that_made_them(home, monkeypatch):
    """Before the fourth, of sums from their variance alone: wider, and folders stay as they are."""
    declared = {"kind": "hierarchy", "of": "visits", "by": ["city"], "epsilon": 2}
    with discreet.open(home) as curator:
        now = curator.make_release("now", **declared)
        with monkeypatch.context() as patch:
            patch.setattr(product, "_NEAR", product.PLANNER + 1)
            before = curator.make_release("before", **declared)
        for table, other in zip(now.made.product.tables, before.made.product.tables, strict=True):
            weights = np.ones(table.values.shape)
            moved = [abs((one.values - one.noisy).sum()) for one in (table, other)]
            assert (other.margin(weights) - moved[1]) / (table.margin(weights) - moved[0]) > 1.3
    for name, planner in (("now", 4), ("before", 3)):  # of a hierarchy the later are the fourth
        folder = home / "releases" / name
        said = json.loads((folder / "certificate.json").read_text())
        said["planner"] = planner
        (folder / "certificate.json").write_text(json.dumps(said))
        assert [one.what for one in verify_folder(folder) if not one.holds] == ["checksums"]
        said["planner"] = 7 - planner
        (folder / "certificate.json").write_text(json.dumps(said))
        assert "data from measurements" in [o.what for o in verify_folder(folder) if not o.holds]


def test_a_cell_that_was_measured_alone_has_the_margin_of_its_own_draw(home, monkeypatch):
    """As an answer with the same noise has; of earlier plans it stays as it was."""
    declared = {"kind": "marginals", "of": "visits", "columns": ["city"], "epsilon": "1/2"}
    question = "SELECT city, COUNT(*) AS n FROM {} GROUP BY city"
    with discreet.open(home) as curator:
        curator.make_release("now", **declared)
        with monkeypatch.context() as patch:
            patch.setattr(product, "_ALONE", product.PLANNER + 1)
            curator.make_release("before", **declared)
        asked = curator.price(question.format("visits"), epsilon="1/2").margins()["n"]
        told = {name: curator.ask(question.format(name)) for name in ("now", "before")}
        rows = curator.schema.tables["visits"].max_rows_per_unit
    assert {one.within for one in told["now"].margins["n"]} == {asked}
    assert min(one.within for one in told["before"].margins["n"]) > 1.1 * asked
    each = "row" if rows == 1 else "rows"
    assert any(note.startswith(f"at most {rows} {each} of each ") for note in told["now"].notes)
    for name, planner in (("now", 6), ("before", 5)):
        folder = home / "releases" / name
        said = json.loads((folder / "certificate.json").read_text())
        (folder / "certificate.json").write_text(json.dumps(said | {"planner": planner}))
        wrong = [one.what for one in verify_folder(folder) if one.holds is False]
        assert wrong == ["checksums"]


@pytest.mark.parametrize(
    ("declared", "before"),
    [
        ({"columns": ["city", "sick"], "rho": "1/50"}, 4),  # a fixed weight of independence
        ({"columns": ["age", "city"], "rho": 5}, 5),  # fewer bins, fewer looks
    ],
)
def test_rows_are_those_of_the_plan_that_made_them(home, monkeypatch, declared, before):
    """Later plans fit and group otherwise: other rows, and folders stay as they are."""
    earlier = product._EARLIER[before, Kind.GAUSSIAN]
    monkeypatch.setattr(synthetic, "_HAZY", 100.0)  # noise hides little of these few rows, too
    with discreet.open(home) as curator:
        curator.make_release("now", of="visits", **declared)
        with monkeypatch.context() as patch:
            patch.setattr(product, "_EARLIER", {(product.PLANNER, Kind.GAUSSIAN): earlier})
            curator.make_release("before", of="visits", **declared)
    for name, made in (("now", product.PLANNER), ("before", before)):
        folder = home / "releases" / name
        said = json.loads((folder / "certificate.json").read_text())
        for claimed in (before, product.PLANNER):
            (folder / "certificate.json").write_text(json.dumps(said | {"planner": claimed}))
            assert is_made_again(folder) == (claimed == made)


def is_made_again(folder: Path) -> bool:
    """Whether the same numbers come of its draws; one with other bins asks for other draws."""
    try:
        wrong = [one.what for one in verify_folder(folder) if not one.holds]
    except Refusal as refusal:
        if "not the one that the plan asks for" in refusal.what:
            return False
        raise
    assert "checksums" in wrong  # of the certificate that was written over
    return "data from measurements" not in wrong


def test_a_stage_with_draws_that_cost_nothing_was_not_drawn_as_it_was_charged(given):
    """Nothing is drawn only where a stage has nothing to measure: then it has no line at all."""
    lines = pq.read_table(given / "measurements.parquet")
    rows = lines.to_pylist()
    (last,) = (row for row in rows if row["stage"] == "typical margins")
    last["ranks"] = []  # of which no unit moves any
    table = pa.Table.from_pylist(rows, schema=lines.schema)
    pq.write_table(table, given / "measurements.parquet")
    wrong = [check.what for check in verify_folder(given) if not check.holds]
    assert wrong == ["checksums", "draws", "loss of typical margins"]


@pytest.mark.parametrize("price", [{"epsilon": 1, "delta": "1e-9"}, {"rho": "1/4"}])
@pytest.mark.parametrize(
    "declared",
    [
        {"kind": "marginals", "columns": ["city", "sick", "age"], "cells": {"age": 5}},
        {"kind": "ranges", "by": "age", "cells": {"age": 8}},
        {"kind": "prefixes", "by": ["age"], "cells": {"age": 8}},
        {"kind": "hierarchy", "by": ["city", "sick"], "totals": {"": 3000, "Cork": 800}},
    ],
    ids=lambda one: one["kind"],
)
def test_every_kind_costs_its_draws_and_is_near_the_truth(home, declared, price):
    with discreet.open(home) as curator:
        synopsis = curator.make_release("released", of="visits", **declared, **price)
        assert charges(curator)[0].startswith("RELEASE released: ")
    checks = verify_folder(home / "releases" / "released")
    assert [check.what for check in checks if not check.holds] == []
    assert not any(re.search(r"\b1 (\w{2,}s\b|as they)", check.says) for check in checks)
    told = synopsis.ask("SELECT COUNT(*) AS n FROM released", confidence="0.99999999999")
    (margin,) = told.margins["n"]
    assert margin.promise is Promise.EXACT
    assert abs(told.value() - 3000) <= margin.within


# --- charged once, drawn once ---------------------------------------------------------------------


class Killed(BaseException):
    """The process is gone."""


def points() -> list:
    """After each stage in every run; before each of them, too, in long ones."""
    soak = pytest.mark.soak
    before = [pytest.param("before", stage, marks=soak) for stage in range(1, len(STAGES))]
    return [("before", 0), *(("after", stage) for stage in range(len(STAGES))), *before]


@pytest.mark.parametrize(("when", "stage"), points())
def test_whoever_is_killed_draws_and_pays_once(home, monkeypatch, when, stage):
    """At every stage, before and after it is stored: the same stages, one charge, one folder."""
    publish, count = Account.publish, [0]

    def dying(self, receipt, answer):
        mine, count[0] = count[0], count[0] + 1
        if mine == stage and when == "before":
            raise Killed
        stored = publish(self, receipt, answer)
        if mine == stage:
            raise Killed
        return stored

    with discreet.open(home) as curator, monkeypatch.context() as patch:
        patch.setattr(Account, "publish", dying)
        with pytest.raises(Killed):
            curator.make_release("small", of="visits", **SMALL)
        spent = curator.spent
        ids = [entry.id for entry in curator.transcript()]
        known = stored_answers(curator)
    assert len(known) == stage + (when == "after")
    assert not (home / "releases" / "small").exists()
    with discreet.open(home) as curator:
        curator.make_release("small", of="visits", **SMALL)
        assert curator.spent == spent
        assert [entry.id for entry in curator.transcript()] == ids
        assert stored_answers(curator).items() >= known.items()
    assert all(check.holds for check in verify_folder(home / "releases" / "small"))


def stored_answers(curator: discreet.Curator) -> dict[int, bytes]:
    done = [entry.id for entry in curator.transcript() if entry.state is State.ANSWERED]
    return {number: curator.account.answer(number).answer for number in done}


def test_a_release_that_is_there_is_free_and_its_name_is_taken(home):
    with discreet.open(home) as curator:
        curator.make_release("small", of="visits", **SMALL)
    with discreet.open(home) as curator:
        spent = curator.spent
        curator.make_release("small", of="visits", **SMALL)
        assert curator.spent == spent
        with pytest.raises(InvalidParameter, match="declared otherwise"):
            curator.make_release("small", of="visits", **{**SMALL, "epsilon": 5})
        with pytest.raises(InvalidParameter, match="table of the schema"):
            curator.make_release("visits", of="visits", **SMALL)
        assert curator.spent == spent


@pytest.mark.parametrize("other", [CITY, SICK], ids=["the same", "another"])
def test_two_who_ask_for_one_name_at_once_are_not_both_charged(home, monkeypatch, other):
    """One waits for the other, and finds what was made."""
    both = threading.Barrier(2)

    def make_slowly(*given, **settings):
        with suppress(threading.BrokenBarrierError):
            both.wait(timeout=0.5)
        return product.make_product(*given, **settings)

    def make(curator, columns):
        try:
            return curator.make_release("small", of="visits", **columns)
        except InvalidParameter as refused:
            return refused.what

    monkeypatch.setattr(releases, "make_product", make_slowly)
    with discreet.open(home) as curator:
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda columns: make(curator, columns), [CITY, other]))
        assert curator.spent.epsilon == 1
        told = curator.ask("SELECT COUNT(*) AS n FROM small")
        made = [one for one in found if not isinstance(one, str)]
        assert len(made) == (2 if other is CITY else 1), found
        assert all(one.ask("SELECT COUNT(*) AS n FROM small").rows == told.rows for one in made)
    assert all(check.holds for check in verify_folder(home / "releases" / "small"))
    assert [one.name for one in (home / "releases").iterdir()] == ["small"]


def test_who_opens_the_releases_at_once_has_the_same(home, monkeypatch):
    """With two of them nobody would wait for the other, and both would pay."""
    both = threading.Barrier(2)

    class Slowly(releases.Releases):
        def __init__(self, *given):
            with suppress(threading.BrokenBarrierError):
                both.wait(timeout=0.5)
            super().__init__(*given)

    monkeypatch.setattr(releases, "Releases", Slowly)
    with discreet.open(home) as curator, ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: curator.releases, range(2))
    assert first is second


@pytest.mark.parametrize("other", [CITY, SICK], ids=["the same", "another"])
def test_whoever_comes_late_tells_what_is_there(home, monkeypatch, other):
    """Of two processes that charge for one name at once, one finds the other's folder."""
    with discreet.open(home) as slow, discreet.open(home) as quick:

        def make_late(*given, **settings):
            monkeypatch.setattr(releases, "make_product", product.make_product)
            quick.make_release("small", of="visits", **other)
            return product.make_product(*given, **settings)

        monkeypatch.setattr(releases, "make_product", make_late)
        if other is CITY:
            slow.make_release("small", of="visits", **CITY)
        else:
            with pytest.raises(InvalidParameter, match="declared otherwise"):
                slow.make_release("small", of="visits", **CITY)
        asked = "SELECT COUNT(*) AS n FROM small"
        assert slow.ask(asked).rows == quick.ask(asked).rows
    assert all(check.holds for check in verify_folder(home / "releases" / "small"))


CHILD = """
import os, signal, sys
from pathlib import Path
import discreet
from discreet.ledger.account import Account
from discreet.publication import placing

home, what, place = sys.argv[1], sys.argv[2], int(sys.argv[3])
count = [0]
def dying(function, when):
    def call(*given, **named):
        mine, count[0] = count[0], count[0] + 1
        if mine == place and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        found = function(*given, **named)
        if mine == place and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return found
    return call
thing, _, when = what.partition(" ")
if thing == "charge":
    Account.charge_all = dying(Account.charge_all, when)
elif thing == "stage":
    Account.publish = dying(Account.publish, when)
elif thing == "file":
    placing.digest = dying(placing.digest, when)
elif thing == "sync":
    placing.sync_files = dying(placing.sync_files, when)
else:
    Path.rename = dying(Path.rename, when)
with discreet.open(home) as curator:
    curator.make_release("small", of="visits", columns=["city", "sick"], epsilon=4, delta="1e-9")
"""


def kills() -> list:
    """Two in every run; in long ones, before and after all that is written, in order."""
    rest = [("charge before", 0), ("charge after", 0)]
    rest += [(f"stage {when}", s) for s in range(len(STAGES)) for when in ("before", "after")]
    rest += [("file before", 0), ("file before", 5), ("sync after", 0)]
    rest += [("rename before", 0), ("rename after", 0)]
    always = [("stage after", 1), ("sync before", 0)]
    soak = pytest.mark.soak
    return [*always, *(pytest.param(*one, marks=soak) for one in rest if one not in always)]


@pytest.mark.parametrize(("what", "place"), kills())
def test_kill_minus_nine(home, what, place):
    """A process that is really killed: no second draw, no second charge, a whole folder or none."""
    child = [sys.executable, "-c", CHILD, str(home), what, str(place)]
    assert subprocess.run(child, check=False).returncode == -signal.SIGKILL
    folder = home / "releases" / "small"
    assert folder.exists() == (what == "rename after")
    if folder.exists():
        assert all(check.holds for check in verify_folder(folder))
    with discreet.open(home) as curator:
        spent, known = curator.spent, stored_answers(curator)
        curator.make_release("small", of="visits", **SMALL)
        if what != "charge before":
            assert curator.spent == spent
        assert stored_answers(curator).items() >= known.items()
        assert len(charges(curator)) == len(STAGES)
    assert all(check.holds for check in verify_folder(folder))


def test_no_cap_is_passed_by_in_stages(home):
    """Each stage alone would fit into what one question may cost; the release does not."""
    text = (home / "discreet.toml").read_text()
    (home / "discreet.toml").write_text(f"{text}\n[policy]\nquestion = {{ epsilon = 2 }}\n")
    with discreet.open(home) as curator:
        with pytest.raises(BudgetRefusal):
            curator.make_release("small", of="visits", columns=["city", "sick"], epsilon=3)
        assert not curator.spent.epsilon
        curator.make_release("small", of="visits", columns=["city", "sick"], epsilon=1)


# --- refused before paying ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        ({"columns": ["city", "note"]}, "values = "),
        ({"of": "SELECT who, age * cost AS far, who AS other FROM visits"}, "bounds"),
        ({"columns": ["city", "nothing"]}, "some of"),
        ({"columns": ["who"]}, "leave 'who' out"),
        ({"columns": ["city"], "kind": "pictures"}, "use one of synthetic"),
        ({"columns": ["city"], "colour": "red"}, "some of"),
        ({"columns": ["age", "cost", "came"], "kind": "marginals", "ways": 3}, "10000000 cells"),
        ({"columns": ["city"], "keep": ["city <= age"]}, "keep = "),
        ({"kind": "ranges"}, "by = "),
        ({"columns": ["city"], "epsilon": None}, "epsilon = 1"),
        ({"columns": ["city"], "name": "A b"}, "small letters"),
        ({"kind": "hierarchy", "by": ["city"], "totals": {"Rome": 4}}, "from the top down"),
        ({"columns": ["city"], "cells": {"city": 0}}, "at least"),
    ],
)
def test_bad_input_is_refused_before_anything_is_paid_or_read(home, monkeypatch, declared, says):
    monkeypatch.setattr(DuckDBEngine, "run_codes", lambda *_: pytest.fail("data were read"))
    settings = {"name": "small", "of": "visits", "epsilon": 1, **declared}
    if settings["kind" if "kind" in settings else "of"] == "marginals":
        settings["cells"] = {"age": 100, "cost": 1000, "came": 366}
    with discreet.open(home) as curator:
        with pytest.raises(Refusal) as refused:
            curator.make_release(settings.pop("name"), **settings)
        assert says in f"{refused.value.what} {refused.value.fix}"
        assert charges(curator) == []


@pytest.mark.parametrize("rows", [0, 1])
def test_an_empty_table_is_paid_for_and_released_like_any_other(tmp_path, rows):
    frame().head(rows).to_parquet(tmp_path / "visits.parquet")
    sessions.init(tmp_path, BUDGET + SCHEMA)
    with discreet.open(tmp_path) as curator:
        curator.make_release("small", of="visits", **SMALL)
        assert len(charges(curator)) == len(STAGES)
    assert all(check.holds for check in verify_folder(tmp_path / "releases" / "small"))


def test_a_view_with_one_row_a_person_needs_less_noise(home):
    view = "SELECT who, MAX(age) AS age, COUNT(*) AS visits FROM visits GROUP BY who"
    with discreet.open(home) as curator:
        made = curator.make_release("people", of=view, kind="marginals", ways=1, epsilon=2).made
    assert made.promise.rows_per_unit == 1
    assert [one.name for one in made.levels] == ["age", "visits"]
    assert [one.size for one in made.levels] == [101, 3]


def test_under_change_one_neighbours_a_unit_counts_twice(tmp_path):
    frame().to_parquet(tmp_path / "visits.parquet")
    sessions.init(tmp_path, f'neighbours = "change-one"\n{BUDGET}{SCHEMA}')
    with discreet.open(tmp_path) as curator:
        made = curator.make_release("cities", of="visits", kind="ranges", by="age", epsilon=2).made
    assert made.promise.rows_per_unit == 6


# --- how rows are coded ---------------------------------------------------------------------------


def coded(data: pd.DataFrame, **cells: int) -> list[tuple[int, ...]]:
    schema = Schema.from_text(SCHEMA.replace('source = "visits.parquet"\n', ""))
    with DuckDBEngine({"visits": data}, schema) as engine:
        question = parse("SELECT COUNT(*) FROM visits", engine.schema)
        levels = list_levels(
            columns(question.source),
            unit_columns(question.source),
            wanted=("city", "sick", "age", "cost", "came"),
            cells=cells,
        )
        truth = engine.run_codes(engine.compile_codes(question.source, levels))
        found = truth.open_for_release().measured
    assert all(
        one.min() >= 0 and one.max() < lev.size for one, lev in zip(found, levels, strict=True)
    )
    return list(zip(*(one.tolist() for one in found), strict=True))


def test_codes_are_those_of_the_declaration():
    data = frame(200)
    first = pd.Timestamp("2024-01-01").date()
    wanted = Counter(
        (
            3 if pd.isna(row.city) else ["Cork", "Faro", "Oslo"].index(row.city),
            int(row.sick),
            min(max(row.age, 0), 99) * 7 // 100,
            min(int(min(max(row.cost, 0), 500) // 50), 9),
            (row.came - first).days * 12 // 366,
        )
        for row in data.itertuples()
    )
    assert Counter(coded(data, age=7, cost=10, came=12)) == wanted


@pytest.mark.parametrize("seed", range(4))
def test_one_person_moves_no_more_rows_than_the_noise_is_made_for(seed):
    """Neighbours: everybody's rows, and everybody's without one, who has far too many."""
    data = frame(40, seed)
    many = data.sample(30, replace=True, random_state=seed).assign(who=7)
    data = pd.concat([data, many], ignore_index=True).sample(frac=1, random_state=seed)
    without = data[data.who != 7]
    here, there = Counter(coded(data, age=5)), Counter(coded(without, age=5))
    assert not there - here
    assert (here - there).total() == 3


# --- asking ---------------------------------------------------------------------------------------


def test_questions_about_a_release_are_free_and_say_what_their_margin_is(home):
    with discreet.open(home) as curator:
        curator.make_release("small", of="visits", **SMALL)
    with discreet.open(home) as curator:
        spent = curator.spent
        told = curator.ask("SELECT city, COUNT(*) AS n FROM small GROUP BY city")
        assert {one.promise for one in told.margins["n"]} == {Promise.EXACT}
        both = curator.ask("SELECT city, COUNT(*) AS n FROM small WHERE sick GROUP BY city")
        assert {one.promise for one in both.margins["n"]} == {Promise.CERTIFIED}
        mean = curator.ask("SELECT AVG(CAST(sick AS INTEGER)) AS share FROM small")
        assert not mean.margins
        assert "No margin for share" in str(mean)
        most = curator.ask(
            "SELECT city, COUNT(*) AS n FROM small GROUP BY city ORDER BY n DESC LIMIT 1"
        )
        assert not most.margins
        assert "without LIMIT" in str(most)
        assert curator.spent == spent
        assert len(charges(curator)) == len(STAGES)


def test_all_groupings_of_a_release_agree(home):
    with discreet.open(home) as curator:
        synopsis = curator.make_release(
            "rows", of="visits", columns=["city", "sick", "age"], epsilon=4, delta="1e-9"
        )
    total = synopsis.ask("SELECT COUNT(*) FROM rows").value()
    assert total == synopsis.rows.num_rows
    for by in ("city", "sick", "age", "city, sick", "city, age"):
        told = synopsis.ask(f"SELECT {by}, COUNT(*) AS n FROM rows GROUP BY {by}")
        assert sum(told.column("n")) == total
        assert min(told.column("n")) >= 0


def test_rows_keep_types_bounds_and_inequalities(home):
    with discreet.open(home) as curator:
        rows = curator.make_release(
            "rows",
            of="visits",
            columns=["city", "came", "left", "cost"],
            keep=["came <= left"],
            epsilon=3,
            margins=0,
        ).rows
    assert rows.schema.field("came").type == pa.date32()
    data = rows.to_pandas()
    known = data.dropna()
    assert (known.came <= known.left).all()
    assert data.cost.dropna().between(0, 500).all()
    assert set(data.city.dropna()) <= {"Cork", "Faro", "Oslo"}


LINES = """
[tables.stays]
unit = "who"
max_rows_per_unit = 1
[tables.stays.columns]
who = "integer"
city = { type = "text", values = ["Cork", "Faro", "Oslo", "Kerry"], nullable = false }
land = { type = "text", values = ["Ireland", "Portugal", "Norway"], nullable = false }
first = { type = "integer", bounds = [20, 60], nullable = false }
middle = { type = "integer", bounds = [0, 50], nullable = false }
last = { type = "integer", bounds = [10, 99] }
"""


def stays(people: int = 900) -> pd.DataFrame:
    draw = np.random.default_rng(5)
    city = draw.integers(0, 4, people)
    return pd.DataFrame(
        {
            "who": np.arange(people),
            "city": np.array(["Cork", "Faro", "Oslo", "Kerry"])[city],
            "land": np.array(["Ireland", "Portugal", "Norway", "Ireland"])[city],
            "first": draw.integers(20, 61, people),
            "middle": draw.integers(0, 51, people),
            "last": draw.integers(10, 100, people),
        }
    )


def test_rows_keep_functions_and_chains_within_bounds_and_all_tables_agree(tmp_path):
    """Values that are exchanged stay within their bounds, and no table tells otherwise."""
    clinic = discreet.curator({"stays": stays()}, schema=LINES, budget=discreet.Budget(epsilon=40))
    synopsis = clinic.make_release(
        "kept",
        of="stays",
        keep=["city -> land", "first <= middle", "last >= middle"],
        cells={"middle": 7},
        epsilon=8,
        margins=0,
    )
    rows = synopsis.rows.to_pandas()
    assert (rows.groupby("city")["land"].nunique() == 1).all()
    assert dict(zip(rows.city, rows.land, strict=True))["Kerry"] == "Ireland"
    assert (rows["first"] <= rows.middle).all()
    known = rows.dropna()
    assert (known.middle <= known["last"]).all()
    for name, low, high in (("first", 20, 60), ("middle", 0, 50), ("last", 10, 99)):
        assert rows[name].dropna().between(low, high).all()
    for table in synopsis.made.product.tables:
        levels = synopsis.made.levels[table.columns[0]]
        if levels.name == "middle":
            continue  # its cells are named by their ends
        told = Counter(map(str, synopsis.rows.column(levels.name).to_pylist()))
        keys = [levels.describe(place) for place in range(levels.count)]
        assert [told[key] for key in keys] == table.values[: levels.count].tolist()
    starts = [int(synopsis.made.levels[3].ends(place)[0]) for place in range(7)]
    cells = np.searchsorted(starts, rows.middle, side="right") - 1
    own = synopsis.made.product.tables[3].values
    assert np.array_equal(np.bincount(cells, minlength=7), own[:7])


@pytest.mark.parametrize(
    "keep",
    [
        ["first <= middle", "middle <= last", "last <= first"],
        ["city -> land", "land -> city"],
        ["city -> land", "first -> land"],
        ["cost -> land"],
        ["first -> city", "first <= last"],
        ["last <= first", "first <= first"],
    ],
)
def test_what_no_row_can_keep_is_refused_before_paying(keep):
    clinic = discreet.curator({"stays": stays(9)}, schema=LINES, budget=discreet.Budget(epsilon=9))
    with pytest.raises(InvalidParameter):
        clinic.make_release("kept", of="stays", keep=keep, epsilon=1)
    assert not clinic.spent.epsilon


def test_no_margin_is_promised_for_what_cuts_a_cell(home):
    """All costs of 2,000 rows are at the end of a cell: a bound on cells says nothing of halves."""
    data = frame().assign(cost=4.9)
    clinic = discreet.curator({"visits": data}, schema=SCHEMA, budget=discreet.Budget(epsilon=40))
    synopsis = clinic.make_release("rows", of="visits", columns=["city", "cost"], epsilon=9)
    told = synopsis.ask("SELECT COUNT(*) AS n FROM rows WHERE cost < 2.5 AND city = 'Cork'")
    (margin,) = told.margins["n"]
    assert margin.promise is Promise.NONE
    assert "No margin" in str(told)


def test_a_total_is_not_taken_for_the_group_without_a_key(home):
    with discreet.open(home) as curator:
        synopsis = curator.make_release("small", of="visits", **SMALL)
    told = synopsis.ask("SELECT city, COUNT(*) AS n FROM small GROUP BY ROLLUP (city)")
    assert {one.promise for one in told.margins["n"]} == {Promise.CERTIFIED}


def test_exact_margins_hold_as_often_as_they_say(home):
    """A hundred cells of unbiased tables at 80 %: fewer than 50 hold less than once in 1e11."""
    truth = frame().assign(age=lambda d: d.age.clip(0, 99) * 5 // 100).groupby("age").size()
    held = 0
    curator = discreet.curator(
        {"visits": frame()}, schema=SCHEMA, budget=discreet.Budget(epsilon=40)
    )
    for turn in range(20):
        name = f"ages_{turn}"
        told = curator.make_release(
            name,
            of="visits",
            kind="marginals",
            columns=["age"],
            ways=1,
            cells={"age": 5},
            epsilon=1,
        ).ask(f"SELECT age, COUNT(*) AS n FROM {name} GROUP BY age", confidence="0.8")
        found = zip(told.column("n")[:5], told.margins["n"][:5], truth, strict=True)
        held += sum(abs(n - true) <= margin.within for n, margin, true in found)
    assert held >= 50


def test_a_release_asked_for_what_it_does_not_hold_says_so(home):
    with discreet.open(home) as curator:
        synopsis = curator.make_release(
            "pairs", of="visits", kind="marginals", sets=[["city"], ["sick"]], epsilon=1,
            columns=["city", "sick"],
        )  # fmt: skip
    with pytest.raises(QuestionRefusal, match="no table"):
        synopsis.ask("SELECT city, COUNT(*) FROM pairs WHERE sick GROUP BY city")
    with pytest.raises(QuestionRefusal, match="asks for more"):
        synopsis.ask("SELECT MAX(city) FROM pairs")
    with pytest.raises(QuestionRefusal, match="there is no column 'age' in 'pairs'"):
        synopsis.ask("SELECT AVG(age) FROM pairs")
    with pytest.raises(QuestionRefusal):
        synopsis.ask("SELECT * FROM read_csv('/etc/passwd'), pairs")


@pytest.fixture(scope="module")
def asked(made_once: Path) -> Any:
    """A release of rows and one of counts, with the same columns."""
    with discreet.open(made_once.parent.parent) as curator:
        pairs = {**SMALL, "kind": "marginals"}
        yield curator.releases.find("small"), curator.make_release("pairs", of="visits", **pairs)


@pytest.mark.parametrize(
    "question",
    [
        "SELECT COUNT(*) AS n FROM {} TABLESAMPLE 10%",
        "SELECT COUNT(*) AS n FROM {} USING SAMPLE 5",
        "SELECT COUNT(*) AS n FROM {} AS m(sick, city) WHERE sick = 'Cork'",
        "SELECT COUNT(*) AS n FROM {} AS m(a, city) WHERE city = 3",
        "SELECT COUNT(*) AS n FROM {} WHERE _cell < 3",
        "SELECT city, _cell, COUNT(*) AS n FROM {} GROUP BY ALL",
        "SELECT COUNT(*) AS n FROM {} m WHERE m IS NOT NULL",
        "SELECT COUNT(*) AS n FROM {} FOR UPDATE",
        "SELECT COUNT(*) AS n FROM {} AT (VERSION => 3)",
    ],
)
def test_a_release_is_asked_as_it_is_and_never_a_part_that_chance_chooses(asked, question):
    for synopsis in asked:
        with pytest.raises(QuestionRefusal, match="Q47: "):
            synopsis.ask(question.format(synopsis.name))


@pytest.mark.parametrize(
    "question",
    [
        "SELECT COUNT(*) AS n FROM {0} WHERE EXISTS (SELECT 1 FROM {0} b WHERE b.city = 'Cork')",
        "SELECT COUNT(*) AS n FROM {0} WHERE city IN (SELECT city FROM {0} WHERE sick)",
        "SELECT COUNT(*) AS n FROM {0} PIVOT (COUNT(*) FOR sick IN (true, false))",
    ],
)
def test_no_margin_is_promised_where_rows_decide_which_rows_are_counted(asked, question):
    rows, counts = asked
    assert not rows.ask(question.format("small")).margins
    with pytest.raises(QuestionRefusal, match="asks for more"):
        counts.ask(question.format("pairs"))


@pytest.mark.parametrize(
    ("question", "as_well"),
    [
        ("SELECT CITY, COUNT(*) AS n FROM {} WHERE Sick GROUP BY City", None),
        ("SELECT city AS c, COUNT(*) AS n FROM {} WHERE sick GROUP BY c", None),
        ("SELECT COUNT(*) AS n, city FROM {} WHERE sick GROUP BY 2", None),
        ("SELECT city, COUNT(*) AS n FROM {} WHERE sick GROUP BY 1 ORDER BY n DESC", True),
        ("SELECT COUNT(*) AS n, city FROM {} WHERE sick GROUP BY city ORDER BY 1", False),
        ("SELECT city, COUNT(*) FROM {} WHERE sick GROUP BY city ORDER BY COUNT(*)", False),
    ],
)
def test_names_places_and_orders_are_those_of_sql(asked, question, as_well):
    """Each group has its number and its margin, whatever it is called and wherever it stands."""
    plain = "SELECT city, COUNT(*) AS n FROM {} WHERE sick GROUP BY city"
    for synopsis in asked:
        told, usual = (synopsis.ask(one.format(synopsis.name)) for one in (question, plain))
        (listed,), (known,) = told.margins.values(), usual.margins.values()
        found = {frozenset((*row, one.within)) for row, one in zip(told.rows, listed, strict=True)}
        pairs = zip(usual.rows, known, strict=True)
        assert found == {frozenset((*row, one.within)) for row, one in pairs}
        numbers = [next(n for n in row if isinstance(n, int | float)) for row in told.rows]
        if as_well is not None:
            assert numbers == sorted(numbers, reverse=as_well)
    with pytest.raises(QuestionRefusal, match="order of its counts alone"):
        asked[1].ask("SELECT city, COUNT(*) AS n FROM pairs GROUP BY city ORDER BY n, city")


@pytest.mark.parametrize("epsilon", ["2", "1", "1/3", "0.7"])
def test_a_release_may_take_a_whole_budget(epsilon):
    """Stages are charged one by one, each rounded up: together they are what was offered."""
    schema = SCHEMA.replace('source = "visits.parquet"\n', "")
    with discreet.curator({"visits": frame(60)}, schema=schema, budget=epsilon) as curator:
        asked = {"of": "visits", "columns": ["city", "sick", "age"], "epsilon": epsilon}
        curator.make_release("whole", **asked)
        assert curator.spent.epsilon == Fraction(epsilon)


def test_what_a_release_tells_is_read_as_any_answer_is(home):
    """As a table in text, in HTML, as data frames and files: values, margins, what they promise."""
    with discreet.open(home) as curator:
        curator.make_release("small", of="visits", **SMALL)
        told = curator.ask("SELECT city, COUNT(*) AS n FROM small GROUP BY city")
    (place,) = (i for i, city in enumerate(told.column("city")) if city == "Faro")
    frame = told.to_pandas(margins=True)
    assert list(frame) == ["city", "n", "n_margin", "n_low", "n_high", "n_promise"]
    assert frame["n_promise"].tolist() == ["exact"] * 4
    n, within = told.column("n")[place], told.margins["n"][place].within
    line = frame.iloc[place]
    assert (line["n"], line["n_margin"], line["n_low"]) == (n, within, n - within)
    assert told.to_pandas()["n"].tolist() == told.column("n")
    assert told.to_arrow().column("n").to_pylist() == told.column("n")
    assert told.to_polars(margins=True)["n_margin"][place] == within
    assert told.to_csv().splitlines()[0] == "city,n,n_margin,n_low,n_high,n_promise"
    shown = f"{n:,} ± {math.ceil(within):,}"
    assert shown in str(told)
    assert shown in repr(told)
    assert f"<td>{shown}</td>" in told._repr_html_()
    assert told.to_json()["cells"][place] == ["Faro", shown]
    drawn = told.draw().spec
    assert "n by city" in json.dumps(drawn)
    with pytest.raises(InvalidParameter, match="another confidence"):
        told.to_csv("0.5")
    assert told.to_csv("0.95") == told.to_csv()
