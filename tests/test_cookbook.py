"""The cookbook's recipes run, print what their pages show, and are as good as they say."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pytest
from masking import assert_same

import discreet

ROOT = Path(__file__).parents[1]
RECIPES = sorted((ROOT / "examples" / "cookbook").glob("*.py"))
PAGES = ROOT / "docs" / "cookbook"


def load(name: str) -> SimpleNamespace:
    return SimpleNamespace(**runpy.run_path(str(ROOT / "examples" / "cookbook" / f"{name}.py")))


def test_every_recipe_has_a_page_that_the_index_lists():
    names = {path.stem for path in RECIPES}
    assert len(names) == 8
    assert {path.stem for path in PAGES.glob("*.md")} == names | {"index"}
    listed = (PAGES / "index.md").read_text(encoding="utf-8").split("```")[1].split()
    assert names <= set(listed)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_prints_what_its_page_shows(recipe, capsys):
    page = (PAGES / f"{recipe.stem}.md").read_text(encoding="utf-8")
    assert f"../../examples/cookbook/{recipe.name}" in page
    for told in (
        "| unit |",
        "| price |",
        "| published |",
        "| how good |",
        "**What the original did.**",
    ):
        assert told in page
    (shown,) = re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    load(recipe.stem).main()
    assert_same(f"docs/cookbook/{recipe.stem}.md", shown, capsys.readouterr().out)


def find_numbers(text: str) -> set[float]:
    return {float(found.replace(",", "")) for found in re.findall(r"\d[\d,]*(?:\.\d+)?", text)}


def compare_births(shown: str) -> set[float]:
    """How far off the open rows are, in the units of the page."""
    rows = [line.rsplit(maxsplit=2) for line in shown.splitlines()[1:]]
    off = {name: float(open_) - float(registry) for name, registry, open_ in rows}
    slope = next(float(registry) for name, registry, _ in rows if name == "grams a week more")
    return {
        round(abs(off["before week 37, %"]), 2),
        round(abs(off["mean age of first-time mothers"]), 2),
        round(abs(off["boys heavier by"]), 1),
        round(100 * abs(off["grams a week more"]) / slope),
    }


def explain_hospital(_shown: str) -> set[float]:
    """What the watch says of its margin beforehand; and infections where there are any."""
    hospital = load("hospital")
    stays = hospital.make_stays()
    with discreet.curator({"stays": stays}, schema=hospital.SCHEMA, budget=2) as curator:
        told = curator.explain_watch(
            hospital.QUESTION.format(week=hospital.START),
            threshold=150,
            epsilon=2,
            at_most=2,
            monotonic=True,
        )
    beyond = find_beyond(stays, ["patient"], 2) / stays.num_rows
    return (
        find_numbers(str(told).replace("±", "± ")) | count_infections(stays) | {round(100 * beyond)}
    )


def find_beyond(rows: pa.Table, unit: list[str], most: int) -> int:
    """How many rows are too many for their unit, which an answer does not count."""
    return int((rows.to_pandas().groupby(unit).size() - most).clip(lower=0).sum())


def count_mobility(shown: str) -> set[float]:
    """The margin; and the visits that are too many, in all and on the day that has most."""
    visits = load("mobility").make_visits()
    kinds = visits.to_pandas().groupby(["phone", "day"]).size()
    cut = (kinds - 4).clip(lower=0).groupby("day").sum()
    return find_numbers(shown) | {visits.num_rows, cut.sum(), cut.max()}


def count_audience(shown: str) -> set[float]:
    """The margin; and the clicks that are too many."""
    clicks = load("audience").make_clicks()
    return find_numbers(shown) | {clicks.num_rows, find_beyond(clicks, ["member", "day"], 5)}


def count_infections(stays: pa.Table) -> set[float]:
    """How many a ward has in a week, to the next ten: with the outbreak, and elsewhere."""
    frame = stays.to_pandas()
    weekly = frame.groupby(["ward", "week"])["infection"].sum()
    return {round(weekly[weekly > 150].mean(), -1), round(weekly[weekly <= 150].mean(), -1)}


FOLLOWS = {
    "audience": count_audience,
    "births": compare_births,
    "hospital": explain_hospital,
    "mobility": count_mobility,
}
"""What recipes say of themselves that is not printed as it stands."""


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_how_good_a_recipe_is_said_to_be_follows_from_what_it_shows(recipe):
    page = (PAGES / f"{recipe.stem}.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (good,) = re.findall(r"^\| how good \| (.*) \|$", page, re.MULTILINE)
    said = find_numbers(re.sub(r"95 %|week 37", "", good))
    assert said
    assert said <= FOLLOWS.get(recipe.stem, find_numbers)(shown)


def test_the_census_adds_up_and_keeps_the_totals(tmp_path):
    census = load("census")
    persons = census.make_persons()
    published = census.publish(persons, tmp_path)
    for place, level in enumerate(census.LEVELS):
        counts = published[level].groupby("region")["n"].sum()
        assert counts.to_dict() == census.TOTALS
        if place:
            keys = census.LEVELS[:place]
            above = published[census.LEVELS[place - 1]].set_index(keys)["n"]
            assert (published[level].groupby(keys)["n"].sum() == above).all()
    blocks = published["block"].set_index(census.LEVELS)["n"]
    truth = persons.groupby(census.LEVELS).size().reindex(blocks.index, fill_value=0)
    assert blocks.min() >= 0
    assert (blocks - truth).abs().mean() < 8  # a block's Laplace noise has a mean of 5


def test_open_births_say_what_the_registry_says(tmp_path):
    births = load("births")
    registry = births.make_births()
    found = births.compare(registry, births.publish(registry, tmp_path))
    off = (found["open"] - found["registry"]).abs()
    assert off["births"] < 500
    assert off["before week 37, %"] < 0.5
    assert off["mean age of first-time mothers"] < 0.3
    assert (off < 0.15 * found["registry"].abs()).all()


def test_hardly_any_reading_of_a_hidden_page_is_lost():
    views = load("page_views")
    answer = views.publish(views.make_views())
    assert 100 < len(answer.rows) < 200
    assert all(answer.column("readers")[place] > 50 for place in range(len(answer.rows)))


def test_mobility_changes_by_what_is_released():
    """The change is that of the released numbers, and these are as near as the page says."""
    mobility = load("mobility")
    visits = mobility.make_visits()
    answer = mobility.publish(visits)
    found = answer.to_pandas().set_index(["day", "place"])
    before = found["n"].groupby("place").shift(7)
    change = found["n"] / before - 1
    assert change.notna().sum() == len(found) - 7 * len(mobility.PLACES)
    pd.testing.assert_series_equal(found["change"], change, check_names=False)
    truth = visits.to_pandas().groupby(["day", "place"])["phone"].nunique()
    assert len(truth) == 56 * len(mobility.PLACES)
    # Laplace noise of scale 8 on 285 counts: one is off by 240 with a probability below 1e-10.
    assert (found["n"] - truth.reindex(found.index, fill_value=0)).abs().max() < 240


def test_devices_lose_no_more_by_reporting_every_day():
    telemetry = load("telemetry")
    estimates, lost = telemetry.report_daily(telemetry.make_devices())
    assert len(estimates) == telemetry.DAYS
    assert lost <= 2
