"""The cookbook's recipes run, print what their pages show, and are as good as they say."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
RECIPES = sorted((ROOT / "examples" / "cookbook").glob("*.py"))
PAGES = ROOT / "docs" / "cookbook"


def words(line: str) -> str:
    """A line of output without what chance decides: numbers, and the width of columns."""
    return re.sub(r"[\d.,─\s-]+", "", line)


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
    printed = capsys.readouterr().out
    assert list(map(words, printed.splitlines())) == list(map(words, shown.splitlines()))


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


def test_devices_lose_no_more_by_reporting_every_day():
    telemetry = load("telemetry")
    estimates, lost = telemetry.report_daily(telemetry.make_devices())
    assert len(estimates) == telemetry.DAYS
    assert lost <= 2
