"""Times that can be compared: the best of several rounds, the contestants taking turns."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

Call = Callable[[], object]


def seconds(call: Call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def best(contestants: Sequence[Call], rounds: int = 9) -> list[float]:
    """The shortest time of each, in seconds; each runs once in every round, after a warm-up.

    Taking turns shares out what else the machine is doing, so that ratios hold.
    """
    for call in contestants:
        call()
    times = [[seconds(call) for call in contestants] for _ in range(rounds)]
    return [min(column) for column in zip(*times, strict=True)]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, in columns that are as wide as they must be."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)) + " |"

    return "\n".join([line(header), line(["-" * w for w in widths]), *map(line, rows)])


def describe_run() -> str:
    """When, of which code and where figures were measured: printed with every one of them."""
    return (
        f"Measured {datetime.now(UTC):%Y-%m-%d}, commit {read_commit()}, {platform.machine()} with "
        f"{os.cpu_count()} cores ({read_processor()}), {platform.system()}, "
        f"{platform.python_implementation()} {platform.python_version()}, "
        f"load {os.getloadavg()[0]:.1f} at the start."
    )


def read_commit() -> str:
    """The commit, and whether what is measured or measures was changed since."""
    try:
        commit = ask_git("rev-parse", "--short", "HEAD")
        changed = ask_git("status", "--porcelain", "--", "src", "bench")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit}-dirty" if changed else commit


def ask_git(*words: str) -> str:
    """What git says of the repository that this file is in."""
    root = Path(__file__).parents[1]
    found = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    return found.stdout.strip()


def read_processor() -> str:
    """What the processor calls itself."""
    try:
        names = re.findall(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        names = []
    return names[0] if names else platform.processor() or "unknown"


def find_data(name: str) -> str | None:
    """A file of the folder that ``DISCREET_BENCH_DATA`` names: data that are not ours to give."""
    folder = os.environ.get("DISCREET_BENCH_DATA")
    return str(Path(folder) / name) if folder else None
