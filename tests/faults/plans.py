"""A plan that is really killed, and folders that are killed while they are exchanged.

``python -m faults.plans FOLDER chain PLACES``: `discreet release run --folder` is killed at a place
(JSON: what, how often it was called before, before or after), goes on and is killed at the next;
before that, one folder takes the place of another, and is killed at every step of that.
``each`` instead of ``chain``: at every place from the start, and no exchange.  One process imports
the program and then forks, for whoever is killed and for whoever comes afterwards; a line of JSON
for each place.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faults.counters import fork
from typer.testing import CliRunner

import discreet
import discreet.curate.releases
import discreet.publication.report
from discreet.cli import app
from discreet.curate import session
from discreet.ledger import State
from discreet.ledger.account import Account
from discreet.publication import folder as folders
from discreet.publication import handover, placing
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
city = { type = "text", values = ["Cork", "Faro"], nullable = false }
sick = { type = "boolean", nullable = false }
"""
PLAN = """
[plan]
rho = 1
[[release]]
name = "cities"
kind = "marginals"
of = "visits"
columns = ["city", "sick"]
[[release]]
name = "people"
kind = "synthetic"
of = "visits"
columns = ["city", "sick"]
margins = 0
"""
STAGES = 4
ROWS = range(400)
NAMED: dict[str, tuple[Any, str]] = {
    "charge": (Account, "charge_all"),
    "publish": (Account, "publish"),
    "release": (folders, "_write_files"),
    "handover": (handover, "_write_files"),
    "sync": (placing, "sync_files"),
    "exchange": (placing, "_exchange"),
    "rename": (Path, "rename"),
    "remove": (shutil, "rmtree"),
}
CALLS = {"charge": 1, "publish": STAGES, "release": 4, "handover": 1, "sync": 5, "rename": 5}
"""How often each is called by a plan; the last of the folders is that to hand over."""


def list_places() -> list[tuple[str, int, str]]:
    """Before and after everything that a plan does."""
    return [
        (name, number, when)
        for name, calls in CALLS.items()
        for number in range(calls)
        for when in ("before", "after")
    ]


def die_at(name: str, number: int, when: str) -> None:
    """From now on, this process ends there."""
    owner, attribute = NAMED[name]
    function, calls = getattr(owner, attribute), [0]

    def dying(*given: Any, **named: Any) -> Any:
        mine, calls[0] = calls[0], calls[0] + 1
        if mine == number and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        found = function(*given, **named)
        if mine == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(owner, attribute, dying)


# --- a plan -----------------------------------------------------------------------------------


def run(home: Path) -> int:
    """The whole plan, with a folder to hand over."""
    words = ["release", "run", str(home / "plan.toml"), "--session", str(home)]
    return CliRunner().invoke(app, [*words, "--folder", str(home / "office")]).exit_code


def look(home: Path, *, closely: bool = True) -> dict[str, Any]:
    """All that was paid, drawn and written; closely, whether all of it is what it says."""
    with discreet.open(home) as curator:
        told = curator.transcript()
        done = [entry.id for entry in told if entry.state is State.ANSWERED]
        made = [home / "releases" / name for name in curator.releases.names()]
        found = {
            "spent": str(curator.spent.rho),
            "charges": [entry.id for entry in told if entry.loss is not None],
            "drawn": {str(one): curator.account.answer(one).answer.decode() for one in done},
        }
    office = home / "office"
    folders_there = [*made, *([office] if office.exists() else [])]
    whole = all(placing.find_changes(one) == [] for one in folders_there)
    if closely:
        checks = [check for one in made for check in verify_folder(one)]
        checks += handover.verify_handover(office) if office.exists() else []
        whole = whole and all(check.holds for check in checks)
    there = {"releases": [one.name for one in made], "office": office.exists()}
    return {**found, **there, "whole": whole}


def kill_plan(home: Path, name: str, number: int, when: str) -> dict[str, Any]:
    """Killed there, and looked at."""

    def begin() -> int:
        die_at(name, number, when)
        return run(home)

    killed, _ = fork(begin)
    _, left = fork(lambda: look(home, closely=False))
    return {"place": [name, number, when], "killed": killed, "left": left}


def go_on(home: Path) -> dict[str, Any]:
    """Whoever runs the plan once more, and nobody kills."""
    _, (code, again) = fork(lambda: (run(home), look(home)))
    return {"code": code, "again": again}


def warm(root: Path) -> None:
    """Import what a run imports: else every fork does it anew."""

    def run_once() -> list[str]:
        run(root)
        return list(sys.modules)

    _, names = fork(run_once)
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


# --- one folder for another -------------------------------------------------------------------


def fill(word: str) -> Callable[[Path], None]:
    """A folder with two files that must not be told apart."""

    def write(folder: Path) -> None:
        for name in ("one", "other"):
            (folder / name).write_text(word, encoding="utf-8")

    return write


def kill_exchange(root: Path, way: str, name: str, number: int, when: str) -> dict[str, Any]:
    """The second folder takes the place of the first, and is killed; what is found afterwards."""
    folder = root / f"{way} {name} {number} {when}" / "kept"
    placing.place_folder(folder, fill("first"))

    def exchange() -> None:
        if way == "two":
            placing._exchange = lambda *_: False
        die_at(name, number, when)
        placing.place_folder(folder, fill("second"), anew=True)

    def read() -> list[str]:
        if not folder.exists():
            return []
        whole = placing.find_changes(folder) == []
        return [(folder / one).read_text() for one in ("one", "other")] if whole else ["torn"]

    killed, _ = fork(exchange)
    left = read()
    placing.settle_all(folder.parent)
    found = read()
    placing.place_folder(folder, fill("third"), anew=True)
    beside = sorted(one.name for one in folder.parent.iterdir() if ".partial" not in one.name)
    said = {"left": left, "found": found, "again": read(), "beside": beside}
    return {"place": [way, name, number, when], "killed": killed, **said}


def list_exchanges() -> list[tuple[str, str, int, str]]:
    """With names that are exchanged at once, and with one renamed after the other."""
    steps = {"one": {"sync": 1, "exchange": 1, "remove": 2}}
    steps["two"] = {"sync": 1, "rename": 3, "remove": 3}
    return [
        (way, name, number, when)
        for way, named in steps.items()
        for name, calls in named.items()
        for number in range(calls)
        for when in ("before", "after")
    ]


def main(root: Path, way: str, places: list[list[Any]]) -> None:
    """Kill it everywhere: a plan at one place after the other, or at each from the start."""
    if way == "chain":
        for one in list_exchanges():
            print(json.dumps(kill_exchange(root, *one)), flush=True)
    start = root / "start"
    start.mkdir()
    rows = [f"{who},{('Cork', 'Faro')[who % 2]},{who % 2 == 0 or who % 5 == 0}" for who in ROWS]
    (start / "visits.csv").write_text("\n".join(["who,city,sick", *rows, ""]), encoding="utf-8")
    (start / "plan.toml").write_text(PLAN, encoding="utf-8")
    session.init(start, SCHEMA)
    discreet.publication.report.find_spec = lambda _: None  # no pictures: they take seconds
    warm(Path(shutil.copytree(start, root / "warm")))
    for number, place in enumerate(places):
        home = start if way == "chain" else Path(shutil.copytree(start, root / f"{number}"))
        said = kill_plan(home, *place)
        last = way == "each" or number == len(places) - 1
        print(json.dumps({**said, **(go_on(home) if last else {})}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))
