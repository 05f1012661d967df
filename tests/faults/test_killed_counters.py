"""Counters under kill -9, before and after everything that a step does: one draw, one charge."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from faults.counters import list_places

STEPS = 4


@pytest.mark.parametrize("way", ["shared", pytest.param("single", marks=pytest.mark.soak)])
def test_a_step_that_is_killed_anywhere_is_drawn_and_paid_once(tmp_path: Path, way: str) -> None:
    """The data change meanwhile: what was drawn, and what was counted, does not."""
    command = [sys.executable, "-m", "faults.counters", str(tmp_path), way]
    tests = Path(__file__).parent.parent
    ran = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tests)
    assert ran.returncode == 0, ran.stderr
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [line["place"] for line in lines] == [" ".join(one) for one in list_places(way)]
    for line in lines:
        place, first = line["place"], line["first"]
        assert line["killed"] == -signal.SIGKILL, place
        assert line["ended"] == 0, place
        left, again, later = line["found"]
        for one in (first, left, again, later):  # one charge for the horizon, whatever happens
            assert (one["spent"], one["charges"]) == ("1", STEPS), place
            assert one["whole"], place
            assert one["releases"] == ["daily"], place
        stored = place in ("publish after", "files before", "files after", "sync before")
        stored |= place in ("sync after", "replace before", "replace after")
        assert len(left["drawn"]) == 1 + stored, place
        assert left["shown"] == 1 + (place == "replace after"), place
        assert (again["shown"], later["shown"]) == (2, 3), place
        assert first["drawn"].items() <= left["drawn"].items() <= again["drawn"].items(), place
        assert again["drawn"].items() <= later["drawn"].items(), place
        assert (len(again["drawn"]), len(later["drawn"])) == (2, 3), place
        if way == "shared":
            kept = stored or place in ("count after", "keep after", "publish before")
            assert len(left["counted"]) == 1 + kept, place
            assert left["counted"].items() <= again["counted"].items(), place
            rows = sum(json.loads(again["counted"]["000002.counted"])[1])
            assert rows == (100 if kept else 1), place
