"""Commits to SQLite, the power failing at every step: prints in how many states one is missing.

Run by ``test_disk.py`` with the failing disk loaded.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import services
from faults.disk import Disk, Power, steps

COMMITS = 6
SEEDS = 5


def commit(database: Path, disk: Disk, synchronous: str) -> None:
    """Some commits, each marked when it is said to be done."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("CREATE TABLE t (x)")
        for number in range(COMMITS):
            connection.execute("INSERT INTO t VALUES (?)", (number,))
            disk.mark("done")


def found(files: dict[str, bytes], place: Path) -> int:
    """How many commits there are after the loss."""
    place.mkdir()
    for name, contents in files.items():
        (place / Path(name).name).write_bytes(contents)
    with closing(sqlite3.connect(place / "x")) as connection:
        try:
            return int(connection.execute("SELECT COUNT(*) FROM t").fetchone()[0])
        except sqlite3.OperationalError:
            return 0


def main() -> None:
    """Count the states in which something is missing."""
    home, disk = Path(tempfile.mkdtemp(dir=services.quick_place())), Disk()
    (home / "disk").mkdir()
    disk.watch(home / "disk", home / "trace")
    commit(home / "disk" / "x", disk, sys.argv[1])
    every, missing = steps(home / "trace"), 0
    for number in range(len(every) + 1):
        done = sum(step.is_mark for step in every[:number])
        for seed in range(SEEDS):
            power = Power()
            for step in every[:number]:
                power.follow(step)
            files = power.fail(random.Random(seed) if seed else None)
            missing += found(files, home / f"{number}-{seed}") < done
    shutil.rmtree(home)
    print(missing)


if __name__ == "__main__":
    main()
