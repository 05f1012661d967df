"""The way of one question through the house: which files it passes, and which rooms in turn.

A new question is asked on a small curator in memory that has answered others of its kind
at the same price, so that what is done once for all of them is not counted.

    python -m bench trace [--question "SELECT ..."]
"""

from __future__ import annotations

import argparse
import gc
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import pyarrow as pa

import discreet
from discreet.curate.curator import Curator

HOUSE = Path(discreet.__file__).parent
MOST_FILES = 45
ROOMS = (
    *("cli", "server", "lab", "audit", "curate", "publication", "known", "ledger", "release"),
    *("engine", "price", "question", "local", "mechanisms", "accounting", "noise", "exact"),
    *("charts", "errors"),
)
"""From the top of the house to its ground, as the import contract has them."""

STEPS = {
    ("question/sql/__init__.py", "parse_statement"): "parse",
    ("price/priced.py", "price"): "price",
    ("engine/duckdb/engine.py", "DuckDBEngine.compile"): "compile",
    ("ledger/account.py", "Account.charge"): "charge",
    ("engine/duckdb/engine.py", "DuckDBEngine.run"): "run",
    ("release/release.py", "release"): "release",
    ("ledger/account.py", "Account.publish"): "publish",
}
"""The way of a question, step by step: what begins each of them, which the conductor calls once."""

SCHEMA = discreet.Schema.from_text("""
[tables.visits]
unit = "patient"
max_rows_per_unit = 3
[tables.visits.columns]
patient = "integer"
city = { type = "text", values = ["Cork", "Delft", "Faro"] }
age = { type = "integer", bounds = [0, 110] }
cost = { type = "decimal", bounds = [0, 800] }
""")
WARM_UP = (
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city",
    "SELECT city, AVG(cost) AS mean FROM visits GROUP BY city",
    "SELECT MEDIAN(age) AS middle FROM visits",
)
QUESTIONS = (
    "SELECT city, COUNT(*) AS n FROM visits WHERE age > 30 GROUP BY city",
    "SELECT city, AVG(cost) AS mean FROM visits WHERE age > 30 GROUP BY city",
    "SELECT MEDIAN(age) AS middle FROM visits WHERE cost > 30",
)


@dataclass(slots=True)
class Trace:
    """What was called, in order: files, steps of the way, calls that go up."""

    files: dict[str, None] = field(default_factory=dict)
    steps: list[tuple[str, str]] = field(default_factory=list)  # and the room of each
    upward: dict[tuple[str, str], None] = field(default_factory=dict)

    @property
    def goes_once(self) -> bool:
        """Whether each step was taken, in its turn, and none twice."""
        return [step for step, _ in self.steps] == list(STEPS.values())

    def watch(self, frame: FrameType, event: str, _: object) -> None:
        """To be called by the interpreter whenever a function is entered."""
        if event != "call" or frame.f_code.co_name == "<module>":
            return
        name = file_of(frame)
        if name is None:
            return
        self.files.setdefault(name)
        step = STEPS.get((name, frame.f_code.co_qualname))
        if step is not None:
            self.steps.append((step, room_of(name)))
        caller = caller_of(frame)
        if caller is None:
            return
        above, here = room_of(caller), room_of(name)
        if above in ROOMS and here in ROOMS and ROOMS.index(here) < ROOMS.index(above):
            self.upward.setdefault((caller, name))


def file_of(frame: FrameType) -> str | None:
    """The file of a frame, from the house on; None if it is not one of ours."""
    path = frame.f_code.co_filename
    return path[len(str(HOUSE)) + 1 :] if path.startswith(str(HOUSE)) else None


def caller_of(frame: FrameType) -> str | None:
    """The file of ours that a call came from, whatever lies between."""
    above = frame.f_back
    while above is not None:
        name = file_of(above)
        if name is not None:
            return name
        above = above.f_back
    return None


def room_of(name: str) -> str:
    return name.partition("/")[0].removesuffix(".py")


def clinic() -> Curator:
    rows = pa.table(
        {
            "patient": [i // 2 for i in range(60)],
            "city": [("Cork", "Delft", "Faro")[i % 3] for i in range(60)],
            "age": [(i * 7) % 110 for i in range(60)],
            "cost": [float(i * 13 % 800) for i in range(60)],
        }
    )
    return discreet.curator({"visits": rows}, schema=SCHEMA, budget=discreet.Budget(epsilon=100))


def trace(question: str) -> Trace:
    """The trace of one question."""
    found = Trace()
    with clinic() as curator:
        for earlier in WARM_UP:
            curator.ask(earlier, epsilon=1)
        gc.collect()
        gc.disable()  # what others have left is removed some time: that is no step of this question
        sys.setprofile(found.watch)
        try:
            curator.ask(question, epsilon=1)
        finally:
            sys.setprofile(None)
            gc.enable()
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--question", action="append")
    for question in parser.parse_args(arguments).question or QUESTIONS:
        show(question, trace(question))


def show(question: str, found: Trace) -> None:
    print(f"{question}\n")
    for number, name in enumerate(found.files, 1):
        print(f"{number:3}  {name}")
    print(f"\n{len(found.files)} files of ours (at most {MOST_FILES})")
    way = (f"{step} ({room})" for step, room in found.steps)
    print(f"the way: ask (curate) > {' > '.join(way)} > answer (curate)")
    for caller, name in found.upward:
        print(f"upwards: {caller} calls {name}")
    if not found.upward and found.goes_once:
        print("each step is taken once, and no call goes up: the way goes down and comes back once")
    print()


if __name__ == "__main__":
    main()
