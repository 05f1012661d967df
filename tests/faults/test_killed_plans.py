"""Plans under kill -9, and the exchange of folders: one draw, one charge, whole or absent."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from faults.plans import STAGES, list_exchanges, list_places

CHAIN = [
    ("charge", 0, "after"),
    ("publish", 0, "before"),
    ("publish", 0, "after"),  # the first release
    ("rename", 0, "before"),
    *[("publish", 0, "after")] * (STAGES - 1),  # the second, stage by stage
    ("rename", 0, "after"),
    ("handover", 0, "after"),
    ("rename", 2, "before"),  # two releases, and what they are in
    ("rename", 2, "after"),
]
"""A plan that is killed, goes on and is killed again: drawn so far, releases made, handed over."""
LEFT = [(0, 0), (0, 0), (1, 0), (1, 0), (2, 1), (3, 1), (4, 1), (4, 2), (4, 2), (4, 2), (4, 2)]


def kill(root: Path, way: str, places: list[tuple[str, int, str]]) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "faults.plans", str(root), way, json.dumps(places)]
    tests = Path(__file__).parent.parent
    ran = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tests)
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """One process for both: to import the program takes longer than to be killed."""
    return kill(tmp_path_factory.mktemp("killed"), "chain", CHAIN)


def check_end(line: dict[str, Any]) -> None:
    """All was drawn and paid once, and is there."""
    again, place = line["again"], line["place"]
    assert line["code"] == 0, place
    assert (again["spent"], len(again["charges"]), len(again["drawn"])) == ("1", STAGES, STAGES)
    assert (again["releases"], again["office"]) == (["cities", "people"], True), place
    assert again["whole"], place


def test_a_plan_that_is_killed_again_and_again_is_drawn_and_paid_once(killed):
    lines = killed[-len(CHAIN) :]
    assert [tuple(line["place"]) for line in lines] == CHAIN
    charges, drawn = lines[0]["left"]["charges"], {}
    for line, (answers, releases) in zip(lines, LEFT, strict=True):
        left, place = line["left"], line["place"]
        assert line["killed"] == -signal.SIGKILL, place
        assert (left["spent"], left["charges"]) == ("1", charges), place
        assert (len(left["drawn"]), len(left["releases"])) == (answers, releases), place
        assert drawn.items() <= left["drawn"].items(), place
        assert left["whole"], place
        assert left["office"] == (place == ["rename", 2, "after"]), place
        drawn = left["drawn"]
    check_end(lines[-1])
    assert (lines[-1]["again"]["charges"], lines[-1]["again"]["drawn"]) == (charges, drawn)


@pytest.mark.soak
def test_a_plan_that_is_killed_anywhere_is_drawn_and_paid_once(tmp_path):
    lines = kill(tmp_path, "each", list_places())
    assert [tuple(line["place"]) for line in lines] == list_places()
    for line in lines:
        left, place = line["left"], line["place"]
        assert line["killed"] == -signal.SIGKILL, place
        paid = place != ["charge", 0, "before"]
        assert (left["spent"], len(left["charges"])) == (("1", STAGES) if paid else ("0", 0)), place
        assert left["drawn"].items() <= line["again"]["drawn"].items(), place
        assert left["whole"], place
        assert left["office"] == (place == ["rename", 4, "after"]), place
        check_end(line)


def test_a_folder_that_takes_the_place_of_another_is_one_of_both_and_found_again(killed):
    """Where names cannot be exchanged at once, too: what waits is put in its place."""
    lines = killed[: -len(CHAIN)]
    assert [tuple(line["place"]) for line in lines] == list_exchanges()
    seen = set()
    for line in lines:
        way, name, number, when = place = line["place"]
        assert line["killed"] == -signal.SIGKILL, place
        old, new = ["first"] * 2, ["second"] * 2
        assert line["left"] in (old, new, []), place  # never torn
        if not line["left"]:  # only between the two renames
            assert way == "two", place
            seen.add((name, number, when))
        begun = name == "exchange" and when == "after"
        begun |= name == "remove"  # the old one, or what is left of the draft
        begun |= name == "rename" and (number, when) != (0, "before")
        assert line["found"] == (new if begun else old), place
        assert line["again"] == ["third"] * 2, place
        assert line["beside"] == ["kept"], place
    assert seen == {("rename", 1, "after"), ("rename", 2, "before")}
