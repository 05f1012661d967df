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
    """The commit, and whether something was changed since."""
    asked = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        found = subprocess.run(
            asked, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()


def read_processor() -> str:
    """What the processor calls itself."""
    try:
        names = re.findall(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        names = []
    return names[0] if names else platform.processor() or "unknown"


def write_section(path: Path, name: str, text: str) -> None:
    """Put ``text`` between the two marks of section ``name`` in a document."""
    first, last = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    document = path.read_text()
    marked = re.compile(f"{re.escape(first)}.*?{re.escape(last)}", re.DOTALL)
    if not marked.search(document):
        raise LookupError(f"{path} has no section {name}")
    body = f"{text}\n\n{describe_run()}"
    path.write_text(marked.sub(lambda _: f"{first}\n\n{body}\n\n{last}", document))
