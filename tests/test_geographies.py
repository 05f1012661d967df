"""Hierarchies through the curator: trees of listed places, public totals, and honest margins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet.curate import session as sessions
from discreet.errors import Refusal
from discreet.publication.folder import read_folder
from discreet.publication.product import PLANNER
from discreet.publication.verifying import verify_folder

PLACES = [("N", "01", "a"), ("N", "01", "b"), ("N", "02", "c"), ("S", "01", "d"), ("S", "03", "e")]
PEOPLE = {"a": 40, "b": 25, "c": 300, "d": 7, "e": 128}
SCHEMA = """
[budget]
epsilon = 40
delta = 1e-6
[tables.people]
source = "people.parquet"
unit = "who"
max_rows_per_unit = 1
[tables.people.columns]
who = "integer"
land = { type = "text", values = ["N", "S"], nullable = false }
county = { type = "text", values = ["01", "02", "03"], nullable = false }
block = { type = "text", values = ["a", "b", "c", "d", "e"], nullable = false }
[tables.places]
source = "places.parquet"
public = true
[tables.places.columns]
tile = "integer"
land = { type = "text", values = ["N", "S"] }
county = { type = "text", values = ["01", "02", "03"] }
block = { type = "text", values = ["a", "b", "c", "d", "e"] }
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    lines = [(land, county, block) for land, county, block in PLACES for _ in range(PEOPLE[block])]
    people = pd.DataFrame(lines, columns=["land", "county", "block"])
    people.insert(0, "who", np.arange(len(people)))
    people.to_parquet(tmp_path / "people.parquet")
    places = pd.DataFrame(PLACES, columns=["land", "county", "block"])
    places.insert(0, "tile", np.arange(len(places)))
    places.to_parquet(tmp_path / "places.parquet")
    sessions.init(tmp_path, SCHEMA)
    return tmp_path


BLOCKS = "SELECT who, block FROM people"
CODES = "SELECT who, land, county FROM people"


@pytest.mark.parametrize(
    ("of", "by", "leaves"),
    [(BLOCKS, ["land", "county", "block"], 5), (CODES, ["land", "county"], 5)],
    ids=["what is above is looked up", "codes within their parents"],
)
def test_only_listed_places_are_counted(home, of, by, leaves):
    with discreet.open(home) as curator:
        made = curator.make_release(
            "tree", of=of, kind="hierarchy", by=by, geography="places", epsilon=12
        )
        told = curator.ask("SELECT land, county, COUNT(*) AS n FROM tree GROUP BY land, county")
    # Four counties, and elsewhere where a row could say a pair that is not listed.
    assert made.made.product.columns[0].size == leaves
    found = {row[:2]: row[2] for row in told.rows}
    wanted = {("N", "01"): 65, ("N", "02"): 300, ("S", "01"): 7, ("S", "03"): 128}
    assert {key for key in found if key[0] is not None} == set(wanted)
    assert all(abs(found[key] - n) <= 25 for key, n in wanted.items())
    (land,) = curator_free(home, "SELECT COUNT(*) AS n FROM tree WHERE land = 'N'")
    assert land[0] == found["N", "01"] + found["N", "02"]
    checks = verify_folder(home / "releases" / "tree")
    assert [check.what for check in checks if not check.holds] == []
    again = read_folder(home / "releases" / "tree")
    assert again.declared.tree == made.made.declared.tree


def curator_free(home: Path, sql: str):
    with discreet.open(home) as curator:
        return curator.ask(sql).rows


def test_rows_that_are_nowhere_are_counted_elsewhere(home):
    """A pair of codes that is not listed, by no fault of the table, still is in a cell."""
    people = pd.read_parquet(home / "people.parquet")
    people.loc[people["block"] == "c", "county"] = "03"  # N/03 is not listed
    people.to_parquet(home / "people.parquet")
    with discreet.open(home) as curator:
        curator.make_release(
            "tree",
            of=CODES,
            kind="hierarchy",
            by=["land", "county"],
            geography="places",
            epsilon=20,
        )
        told = curator.ask("SELECT land, COUNT(*) AS n FROM tree GROUP BY land")
    found = dict(told.rows)
    assert abs(found[None] - 300) <= 20
    assert abs(found["N"] - 65) <= 20


def test_totals_that_follow_from_public_ones_are_exact(home):
    by, totals = ["land", "county"], {"N": 365, "S": 135, "N/02": 300}
    with discreet.open(home) as curator:
        made = curator.make_release(
            "tree", of=CODES, kind="hierarchy", by=by, totals=totals, epsilon=1
        )
        everybody = curator.ask("SELECT COUNT(*) AS n FROM tree")
        lands = curator.ask("SELECT land, COUNT(*) AS n FROM tree GROUP BY land")
    assert everybody.value() == 500
    assert [one.within for one in everybody.margins["n"]] == [0.0]
    assert dict(lands.rows) == {"N": 365, "S": 135}
    assert [one.within for one in lands.margins["n"]] == [0.0, 0.0]
    assert len(made.made.lines()) == 1  # neither all nor the lands were measured
    assert all(check.holds for check in verify_folder(home / "releases" / "tree"))


@pytest.mark.parametrize("price", [{"epsilon": 1}, {"rho": "1/8"}], ids=str)
def test_margins_of_trees_hold_and_are_not_wide(home, price):
    """A margin is at most twice what 95 % of the errors need, plus what was moved and rounded."""
    by = ["land", "county", "block"]
    with discreet.open(home) as curator:
        made = curator.make_release(
            "tree", of="people", kind="hierarchy", by=by, geography="places", **price
        ).made
    assert made.planner == PLANNER
    leaf = made.product.tables[-1]
    deviation = np.sqrt(leaf.cell_variances)
    tails = leaf.cell_margins() - np.abs(leaf.values - leaf.noisy)
    # Of one Laplace draw 95 % are within 2.12 deviations, of a normal one within 1.96.
    assert (tails <= 4.2 * deviation).all()
    truth = np.array([*PEOPLE.values(), *[0] * (leaf.values.size - 5)])
    wide = leaf.cell_margins("1e-12")
    assert (np.abs(leaf.values - truth) <= wide).all()


def test_a_release_of_the_second_plan_keeps_its_margins(home, monkeypatch):
    """Each level by itself, Bernstein's tails: a folder is made again as it was."""
    from discreet.publication import folder, product

    with discreet.open(home) as curator, monkeypatch.context() as patch:
        patch.setattr(product, "_SHARP", 99)
        patch.setattr(folder, "PLANNER", 2)
        curator.make_release("tree", of=CODES, kind="hierarchy", by=["land"], epsilon=2)
    path = home / "releases" / "tree"
    text = (path / "certificate.json").read_text()
    (path / "certificate.json").write_text(text.replace(f'"planner": {PLANNER}', '"planner": 2'))
    assert [c.what for c in verify_folder(path) if not c.holds] == ["checksums"]
    (path / "certificate.json").write_text(text.replace(f'"planner": {PLANNER}', '"planner": 3'))
    assert "data from measurements" in [c.what for c in verify_folder(path) if not c.holds]


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        ({"geography": "people", "by": ["land", "block"]}, "not a public table"),
        ({"geography": "nowhere", "by": ["land", "block"]}, "not a public table"),
        ({"geography": "places", "by": ["realm", "block"]}, "no column 'realm'"),
        ({"geography": "places", "by": ["block", "tile"]}, "no row says"),
        ({"geography": "places", "by": ["land", "county"], "of": BLOCKS}, "no column 'county'"),
        ({"tree": [["N"]], "by": ["land", "block"]}, "a value for every column"),
        ({"tree": [["N", "z"]], "by": ["land", "block"]}, "declared values"),
        ({"tree": [["N", "a"], ["S", "a"]], "by": ["land", "block"], "of": BLOCKS}, "told apart"),
    ],
    ids=str,
)
def test_trees_that_cannot_be_are_refused_before_paying(home, declared, says):
    with discreet.open(home) as curator:
        with pytest.raises(Refusal, match=says):
            curator.make_release(
                "tree", kind="hierarchy", epsilon=1, **{"of": "people", **declared}
            )
        assert curator.spent.epsilon == 0
