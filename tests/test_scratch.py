"""Copies of private rows do not outlive whoever may read them, even one that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from discreet.engine.duckdb.scratch import folder_for_now, make_folder, sweep

HOLDING = """
import sys
from discreet.engine.duckdb.engine import DuckDBEngine
from discreet.question.schema import Schema

schema = Schema.from_text('[tables.t]\\nunit = "u"\\ncolumns.u = "integer"')
engine = DuckDBEngine({"t": sys.argv[1]}, schema)
engine.prepare()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What other processes keep stays where it is."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def start(csv: Path) -> subprocess.Popen[str]:
    csv.write_text("u\n1\n2\n")
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(csv)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def kept(home: Path) -> list[Path]:
    return list(home.glob("discreet-*"))


def test_a_process_that_ends_leaves_nothing(tmp_path: Path) -> None:
    process = start(tmp_path / "t.csv")
    assert kept(tmp_path)
    process.communicate()
    assert process.returncode == 0
    assert not kept(tmp_path)


def test_what_a_killed_process_left_goes_with_the_next_and_what_is_held_stays(
    tmp_path: Path,
) -> None:
    killed, living = start(tmp_path / "t.csv"), start(tmp_path / "u.csv")
    assert len(kept(tmp_path)) == 2
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert len(kept(tmp_path)) == 2  # it could not
    sweep()
    (left,) = kept(tmp_path)
    assert any(left.glob("prepared-*"))
    living.communicate()
    assert not kept(tmp_path)


def test_the_first_folder_of_a_process_looks_for_what_was_left_and_the_next_do_not(
    tmp_path: Path,
) -> None:
    for seen_by_first in (True, False):
        left = tmp_path / "discreet-rows-left"
        left.mkdir()
        (left / "lock").touch()
        with folder_for_now():
            assert left.exists() != seen_by_first


def test_nobody_else_may_look_into_it(tmp_path: Path) -> None:
    with folder_for_now() as folder:
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o077 == 0
    assert not folder.exists()


def test_a_fork_leaves_the_folder_to_whoever_made_it() -> None:
    class Owner:
        pass

    owner = Owner()
    folder = make_folder(owner)
    child = os.fork()
    if child == 0:
        del owner
        os._exit(0)
    os.waitpid(child, 0)
    sweep()
    assert folder.exists()
    del owner
    assert not folder.exists()


def test_what_is_no_folder_of_ours_stays(tmp_path: Path) -> None:
    other, link = tmp_path / "discreet-rows-other", tmp_path / "discreet-rows-link"
    other.mkdir()
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "lock").touch()
    link.symlink_to(tmp_path / "precious")
    sweep()
    assert other.exists()  # without a lock nobody knows whether it is used
    assert (tmp_path / "precious" / "lock").exists()
