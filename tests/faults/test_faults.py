"""Whatever goes wrong, and whenever: nothing is shown that is not paid, nothing is paid twice."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import services
from faults import launch
from masking import assert_same
from run_pages import Shell, run_console

ROOT = Path(__file__).parents[2]

ALONE, TOGETHER, WHOLE, SERVED, RUNS = 780, 60, 104, 64, 16
"""How many schedules of each kind every run tries."""
LONG, PARTS = 100_000, 8
"""How many the long run tries, and in how many processes."""


def test_there_are_a_thousand() -> None:
    assert ALONE + TOGETHER + WHOLE + SERVED >= 1_000
    assert WHOLE >= 100


def check(report: dict[str, Any], *, least: int) -> None:
    """All held, and there were enough of them."""
    assert report["schedules"] >= least, report
    assert report["failures"] == 0, report


def test_one_process_on_a_failing_disk() -> None:
    check(launch.run(["alone", "--count", str(ALONE)]), least=ALONE)


def test_two_processes() -> None:
    check(launch.run(["together", "--count", str(TOGETHER)]), least=TOGETHER)


def test_the_whole_curator() -> None:
    check(launch.run(["whole", "--count", str(WHOLE)]), least=WHOLE)


def test_runs_and_interviews() -> None:
    check(launch.run(["runs", "--count", str(RUNS)]), least=RUNS)


def test_each_bug_of_runs_is_found() -> None:
    bugs = ["forget_records", "show_before_recording", "pay_again"]
    found = launch.run(["runs", *bugs, "--count", "4"])["found"]
    assert found.keys() == set(bugs)
    assert all(found.values()), found


def test_a_schedule_is_played_again_as_the_page_says() -> None:
    services.require("compiler")
    page = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
    (typed,) = re.findall(r"^```console\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    shell = Shell(ROOT, {})
    try:
        assert_same("docs/faults.md", typed, run_console(shell, typed))
    finally:
        shell.close()


def test_sixty_four_askers_never_overspend() -> None:
    assert launch.run(["storm"])["failed"] == []


@pytest.mark.parametrize(("what", "count"), [("alone", 38), ("together", 18)])
def test_postgresql(postgres: services.Postgres, what: str, count: int) -> None:
    check(launch.run([what, "--count", str(count)], store=postgres.url), least=count)


def test_the_server_dies_and_comes_back() -> None:
    with services.private_postgres() as server:
        check(launch.run(["server", "--count", "8"], store=server.url), least=8)


def test_sixty_four_askers_never_overspend_on_postgresql(postgres: services.Postgres) -> None:
    assert launch.run(["storm"], store=postgres.url)["failed"] == []


@pytest.mark.parametrize("seed", [1, 2])
def test_the_chosen_schedules_are_always_the_same(seed: int) -> None:
    from faults.schedule import Schedule, part, some

    every = [Schedule("first", step, "power", 3) for step in range(60)]
    assert some(every, 20, seed=seed) == some(every, 20, seed=seed)
    assert [Schedule.parse(str(schedule)) for schedule in every] == every
    assert [one for k in range(1, 8) for one in part(every, f"{k}/7")] == every


@pytest.mark.soak
@pytest.mark.parametrize("part", range(1, 1 + PARTS))
def test_a_hundred_thousand_schedules(part: int) -> None:
    chosen = ["--count", str(LONG), "--powers", "160", "--seed", "1", "--part", f"{part}/{PARTS}"]
    check(launch.run(["soak", *chosen]), least=LONG // PARTS)


@pytest.mark.soak
def test_more_schedules_on_postgresql(postgres: services.Postgres) -> None:
    check(launch.run(["soak"], store=postgres.url), least=1_000)


@pytest.mark.soak
def test_the_server_dies_at_every_step() -> None:
    with services.private_postgres() as server:
        check(launch.run(["server"], store=server.url), least=200)


@pytest.mark.soak
def test_the_whole_curator_at_every_step() -> None:
    check(launch.run(["whole", "--powers", "8"]), least=2_000)


@pytest.mark.soak
def test_runs_and_interviews_at_every_step() -> None:
    check(launch.run(["runs"]), least=1_000)
