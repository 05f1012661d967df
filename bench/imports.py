"""What a fresh process pays, in CPU, before it can do anything: the client against its one library.

Run: ``python -m bench imports``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from statistics import median

from bench.timing import table

ROUNDS = 7
KEY = "discreet_" + "0" * 16 + "_" + "0" * 64

BASE = "import httpx"
TASKS = {
    "an empty process": "pass",
    "`import httpx`": BASE,
    "`import discreet`": "import discreet",
    "`discreet.connect(url, key=…)`": f"""
import discreet
from discreet.curate import remote
remote._PAUSE_S = 0  # nobody answers there: the tries are CPU, the pauses are not
try:
    discreet.connect("http://127.0.0.1:1", key={KEY!r})
except discreet.Refusal as refusal:
    if refusal.code != "A17":
        raise
""",
}


def cpu_s(program: str) -> float:
    """The CPU, user and system, of a fresh process that runs ``program``."""
    child = subprocess.Popen([sys.executable, "-c", program])
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{program!r} ended with {child.returncode}")
    return used.ru_utime + used.ru_stime


def measured(rounds: int = ROUNDS) -> dict[str, tuple[float, float]]:
    """The median CPU of each task, and its median ratio to ``import httpx`` of the same round."""
    for program in TASKS.values():
        cpu_s(program)  # compiled and in the page cache from here on
    times = [{name: cpu_s(program) for name, program in TASKS.items()} for _ in range(rounds)]
    base = next(name for name, program in TASKS.items() if program == BASE)
    return {
        name: (median(one[name] for one in times), median(one[name] / one[base] for one in times))
        for name in TASKS
    }


def main() -> None:
    rows = [
        (name, f"{1000 * cpu:.0f}", f"{ratio:.2f}") for name, (cpu, ratio) in measured().items()
    ]
    print(table(("a fresh process", "CPU, ms", "of `import httpx`"), rows))


if __name__ == "__main__":
    main()
