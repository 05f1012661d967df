"""A counter that is really killed, at one place after the other, and what is left of it.

``python -m faults.counters FOLDER WAY``: one process imports the program and then forks, before it
opens anything, for every place where a step is killed and for whoever comes afterwards; a line of
JSON for each place.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import discreet
import discreet.curate.releases  # what is not imported yet is imported by every fork anew
import discreet.publication.report
from discreet.curate import session
from discreet.curate.counting import Counted
from discreet.ledger import State
from discreet.ledger.account import Account
from discreet.publication import folder as folders
from discreet.publication import placing
from discreet.publication.journal import Journal
from discreet.publication.verifying import verify_folder

SCHEMA = """
[budget]
epsilon = 40
delta = 1e-6
[tables.visits]
source = "visits.csv"
unit = "who"
max_rows_per_unit = 1
[tables.visits.columns]
who = "integer"
day = { type = "integer", bounds = [1, 4], nullable = false }
"""
WAYS: dict[str, dict[str, Any]] = {"single": {}, "shared": {"steps_per_unit": 1}}
PLACES: dict[str, tuple[Any, str]] = {
    "charge": (Account, "charge_all"),
    "count": (Counted, "draw"),
    "keep": (Journal, "keep_list"),
    "publish": (Account, "publish"),
    "files": (folders, "_write_files"),
    "sync": (placing, "sync_files"),
    "replace": (placing, "_replace"),
}


def list_places(way: str) -> list[tuple[str, str]]:
    """Before and after everything that a step does; one whose steps are single keeps nothing."""
    named = [name for name in PLACES if way == "shared" or name not in ("count", "keep")]
    return [(name, when) for name in named for when in ("before", "after")]


def die_at(name: str, when: str) -> None:
    """From now on, this process ends there."""
    owner, attribute = PLACES[name]
    function = getattr(owner, attribute)

    def dying(*given: Any, **named: Any) -> Any:
        if when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        function(*given, **named)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, attribute, dying)


def fork(work: Callable[[], Any]) -> tuple[int, Any]:
    """Do it in a process of its own: how that ended, and what it said."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            said = json.dumps(work()).encode()
            with os.fdopen(writing, "wb") as stream:
                stream.write(said)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        said = stream.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), json.loads(said) if said else None


def look(curator: discreet.Curator, home: Path) -> dict[str, Any]:
    """All that was paid, drawn, counted and shown."""
    told = curator.transcript()
    done = [entry.id for entry in told if entry.state is State.ANSWERED]
    kept = sorted(home.rglob("*.counted"))
    release = home / "releases" / "daily"
    return {
        "spent": str(curator.spent.rho),
        "charges": sum(entry.loss is not None for entry in told),
        "drawn": {str(number): curator.account.answer(number).answer.decode() for number in done},
        "counted": {file.name: file.read_text() for file in kept},
        "whole": all(check.holds for check in verify_folder(release)),
        "releases": curator.releases.names(),
        "shown": len(curator.releases.find("daily").made.product.measured),
    }


def begin(home: Path, way: str) -> dict[str, Any]:
    """A counter that has published its first step."""
    session.init(home, SCHEMA)
    with discreet.open(home) as curator:
        curator.make_release("daily", kind="counter", of="visits", by=["day"], rho=1, **WAYS[way])
        curator.step_release("daily")
        return look(curator, home)


def step(home: Path, name: str, when: str) -> None:
    """The second step, which is killed."""
    die_at(name, when)
    with discreet.open(home) as curator:
        curator.step_release("daily", number=2)


def go_on(home: Path) -> list[dict[str, Any]]:
    """Whoever comes afterwards, to other data: what is there, and after it tried once more."""
    (home / "visits.csv").write_text("who,day\n1,2\n", encoding="utf-8")
    with discreet.open(home) as curator:
        found = look(curator, home)
        curator.step_release("daily", number=2)
        again = look(curator, home)
        curator.step_release("daily")
        return [found, again, look(curator, home)]


def main(root: Path, way: str) -> None:
    """Kill it everywhere."""
    start = root / "start"
    start.mkdir()
    rows = "".join(f"{who},{1 + who % 4}\n" for who in range(400))
    (start / "visits.csv").write_text(f"who,day\n{rows}", encoding="utf-8")
    _, first = fork(lambda: begin(start, way))
    for name, when in list_places(way):
        home = root / f"{name} {when}"
        shutil.copytree(start, home)
        killed, _ = fork(lambda home=home, name=name, when=when: step(home, name, when))
        ended, found = fork(lambda home=home: go_on(home))
        said = {"place": f"{name} {when}", "killed": killed, "ended": ended}
        print(json.dumps({**said, "first": first, "found": found}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
