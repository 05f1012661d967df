"""``python -m faults``: run schedules in this process, which must have the failing disk loaded.

    python -m faults launch SCHEDULE...          compile the disk, load it, and replay
    python -m faults alone --count 900           faults of one process
    python -m faults together                    two processes
    python -m faults whole                       the same with a whole curator
    python -m faults runs                        runs and interviews, killed or without space
    python -m faults runs pay_again              how many schedules of runs find a bug on purpose
    python -m faults server --store URL          PostgreSQL dies and comes back
    python -m faults storm                       sixty-four processes at once
    python -m faults soak --count 100000         chosen at random, with a printed seed
    python -m faults soak --seed 5 --part 1/8    an eighth of them, the same seed for all parts
    python -m faults mutants                     which bugs on purpose are found

Prints one JSON object: how many schedules, and those that failed with what did not hold; how many
different states the losses of power left among them.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from faults import launch, storms
from faults.places import Files, Server
from faults.scenarios import SCENARIOS, WHOLE
from faults.schedule import Schedule, alone, part, served, some, together
from faults.stage import Stage
from faults.world import Desk

if TYPE_CHECKING:
    from faults.runs import Hall

SHOWN = 12
"""Failures that are reported; the rest is counted."""


def main() -> int:
    """Run what the command line asks for."""
    options = _options()
    if options.what == "launch":
        verbose = ["--verbose"] if options.verbose else []
        report = launch.run([*options.schedules, *verbose], store=options.store)
        del report["stderr"]  # which was shown, if it was asked for
        print(json.dumps(report))
        return 0
    home = Path(tempfile.mkdtemp(prefix="discreet-faults-", dir=launch.quick_place()))
    try:
        report = _reported(options, home)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    print(json.dumps(report), flush=True)
    sys.stderr.flush()
    os._exit(0)  # what was frozen for the forks would be reported as leaks


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="faults")
    parser.add_argument("what")
    parser.add_argument("schedules", nargs="*")
    parser.add_argument("--store", default="", help="the URL of a PostgreSQL database")
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--powers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", default="1/1", help="K/M: the Kth of M equal parts of a soak")
    parser.add_argument("--verbose", action="store_true", help="print every step")
    return parser.parse_args()


def _reported(options: argparse.Namespace, home: Path) -> dict[str, object]:
    places = Server(home, options.store) if options.store else Files(home)
    acted = {} if options.what == "runs" else SCENARIOS  # a hall has parts of its own
    stage = Stage(places, acted, verbose=options.verbose).prepare()
    match options.what:
        case "alone":
            chosen = some(_alone(stage, options.powers), options.count, seed=options.seed)
        case "together":
            chosen = some(_together(stage), options.count, seed=options.seed)
        case "server":
            every = [s for name in ("resumed", "failing") for s in served(name, stage.steps(name))]
            chosen = some(every, options.count, seed=options.seed)
        case "soak":
            seed = options.seed or secrets.randbelow(10**9)
            print(f"seed {seed}", file=sys.stderr)
            every = _alone(stage, options.powers) + _together(stage)
            chosen = part(some(every, options.count, seed=seed), options.part)
        case "steps":
            listed = {name: list(map(str, stage.steps(name))) for name in options.schedules}
            return {"steps": listed}
        case "whole":
            stage = _whole(stage, home)
            every = _alone(stage, options.powers) + _together(stage)
            chosen = some(every, options.count, seed=options.seed)
        case "mutants":
            from faults import mutants

            _desk(home)
            return {"found": mutants.found(stage, options.schedules)}
        case "runs":
            return _run_runs(stage, home, options)
        case "storm":
            return {"failed": storms.storm(stage)}
        case _:
            stage = _staged(stage, options.what, home)
            chosen = [Schedule.parse(text) for text in (options.what, *options.schedules)]
    return _run(stage, chosen)


def _staged(stage: Stage, schedule: str, home: Path) -> Stage:
    """The stage on which a schedule is to be replayed."""
    return _whole(stage, home) if Schedule.parse(schedule).scenario in WHOLE else stage


def _whole(stage: Stage, home: Path) -> Stage:
    return replace(stage, desk=_desk(home), scenarios=WHOLE, looker=None)


def _desk(home: Path) -> type[Desk]:
    """The desk of a curator, whose engine makes a process heavy to fork: only if it is needed."""
    from faults.whole import CuratorDesk, write_people

    CuratorDesk.source = write_people(home)
    return CuratorDesk


def _alone(stage: Stage, powers: int) -> list[Schedule]:
    powers = powers if isinstance(stage.places, Files) else 0
    return [
        schedule
        for name, scenario in stage.scenarios.items()
        if scenario.rival is None
        for schedule in alone(name, stage.steps(name), powers=powers)
    ]


def _together(stage: Stage) -> list[Schedule]:
    # Of two processes that begin a ledger on PostgreSQL at one moment, one may be told L2; nothing
    # is lost, and it may ask again.  On SQLite the file appears whole.
    return [
        schedule
        for name, scenario in stage.scenarios.items()
        if scenario.rival is not None
        for schedule in together(name, stage.steps(name))
    ]


def _run_runs(stage: Stage, home: Path, options: argparse.Namespace) -> dict[str, object]:
    """Runs as they are, or with each of some bugs on purpose: how many schedules find it."""
    from faults.runs import BUGS, Hall

    hall = Hall.of(stage, home)
    chosen = some(list(hall.schedules()), options.count, seed=options.seed)
    if not options.schedules:
        return _run(hall, chosen)
    found = {}
    for name in options.schedules:
        stage.bug = BUGS[name]
        found[name] = _run(hall, chosen)["failures"]
    return {"found": found}


def _run(stage: Stage | Hall, schedules: Iterable[Schedule]) -> dict[str, object]:
    count, failed, began = 0, {}, _cpu_s()
    for schedule in schedules:
        count += 1
        problems = stage.run(schedule)
        if problems:
            failed[str(schedule)] = [*problems[:3], f"{len(problems)} in all"]
    return {
        "schedules": count,
        "failures": len(failed),
        "failed": dict(list(failed.items())[:SHOWN]),
        "states": len(stage.held) if isinstance(stage, Stage) else 0,
        "cpu_s": round(_cpu_s() - began, 1),
    }


def _cpu_s() -> float:
    """What this process and those it has waited for have used."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


if __name__ == "__main__":
    sys.exit(main())
