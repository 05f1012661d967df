"""The failing disk fails as it should, and finds a database that does not wait for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from faults import launch
from faults.disk import Fault, Power, Step

SCRIPT = Path(__file__).parent / "commits.py"


def step(number: int, kind: str, path: str = "d/f", **rest: object) -> Step:
    return Step(number, kind, path, **rest)  # type: ignore[arg-type]


def lost(*, synchronous: str) -> int:
    """In how many of the states after a loss of power a commit is missing."""
    environment = {
        **os.environ,
        "LD_PRELOAD": str(launch.shim()),
        "PYTHONPATH": str(SCRIPT.parent.parent),
    }
    command = [sys.executable, str(SCRIPT), synchronous]
    return int(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)


def test_a_commit_that_waits_for_the_disk_is_never_lost() -> None:
    assert lost(synchronous="FULL") == 0


def test_one_that_does_not_is() -> None:
    assert lost(synchronous="NORMAL") > 10


def test_unsynced_bytes_and_names_do_not_survive() -> None:
    power = Power()
    power.follow(step(0, "c"))
    power.follow(step(1, "w", data=b"abc"))
    power.follow(step(2, "s"))
    assert power.fail(None) == {}, "the file is synced, its name is not"
    power.follow(step(3, "s", path="d"))
    power.follow(step(4, "w", offset=3, data=b"def"))
    assert power.fail(None) == {"d/f": b"abc"}
    power.follow(step(5, "s"))
    assert power.fail(None) == {"d/f": b"abcdef"}


def test_a_failed_sync_is_not_made_up_for() -> None:
    power = Power()
    power.follow(step(0, "c"))
    power.follow(step(1, "s", path="d"))
    power.follow(step(2, "w", data=b"abc"))
    power.follow(step(3, "s", result=-1))
    power.follow(step(4, "s"))
    assert power.fail(None) == {"d/f": b""}


def test_a_removal_is_not_certain_before_the_directory_is_synced() -> None:
    power = Power()
    power.follow(step(0, "c"))
    power.follow(step(1, "s", path="d"))
    power.follow(step(2, "u"))
    assert power.fail(None) == {"d/f": b""}
    power.follow(step(3, "s", path="d"))
    assert power.fail(None) == {}


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault.IO_ERROR, "disk I/O error"),
        (Fault.FULL, "database or disk is full"),
        (Fault.STAYS_FULL, "database or disk is full"),
    ],
)
def test_a_write_fails_as_told(fault: Fault, said: str) -> None:
    code = (
        "import sqlite3, tempfile, pathlib; from faults.disk import *;"
        "d = pathlib.Path(tempfile.mkdtemp()); disk = Disk();"
        "c = sqlite3.connect(d / 'x', isolation_level=None); c.execute('PRAGMA journal_mode=WAL');"
        "c.execute('CREATE TABLE t (x)'); c.execute('INSERT INTO t VALUES (2)');"
        "c.close(); disk.watch(d, d / 'trace');"
        "c = sqlite3.connect(d / 'x', isolation_level=None);"
        "c.execute('SELECT * FROM t').fetchall();"
        f"n = len(steps(d / 'trace')); disk.arm(n + 3, Fault({int(fault)}));"
        "c.execute('INSERT INTO t VALUES (3)')"
    )
    environment = {
        **os.environ,
        "LD_PRELOAD": str(launch.shim()),
        "PYTHONPATH": str(SCRIPT.parent.parent),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert said in done.stderr
