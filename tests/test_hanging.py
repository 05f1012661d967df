"""A test that hangs ends, wherever it does, and the others are told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hanging import HANGS_S
from patience import PATIENCE_S

HERE = Path(__file__).parent
CONFTEST = """
from hanging import Watch
def pytest_configure(config):
    config.pluginmanager.register(Watch(limit_s=2))
"""
HANGS = {
    "a test": "def test_hangs():\n    lock.acquire()",
    "a fixture before it": "@pytest.fixture\ndef held():\n    lock.acquire()\n"
    "def test_hangs(held):\n    pass",
    "what ends a failure": "@pytest.fixture\ndef held():\n    yield\n    lock.acquire()\n"
    "def test_hangs(held):\n    assert False",
}


def run(home: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    begun = "import threading, time, pytest\nlock = threading.Lock()\nlock.acquire()\n"
    (home / "test_one.py").write_text(begun + text)
    (home / "test_other.py").write_text("def test_other():\n    pass\n")
    (home / "conftest.py").write_text(CONFTEST)
    (home / "pytest.ini").write_text("[pytest]\nmarkers = soak\n")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *options, str(home)],
        cwd=home,
        env={**os.environ, "PYTHONPATH": str(HERE)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.parametrize("where", HANGS)
def test_a_test_that_hangs_is_ended_and_shown(tmp_path, where):
    ran = run(tmp_path, HANGS[where])
    assert ran.returncode != 0
    assert "Timeout (0:00:02)!" in ran.stderr
    assert "test_one.py" in ran.stderr  # where it stands


def test_of_parallel_workers_the_others_go_on(tmp_path):
    ran = run(tmp_path, HANGS["what ends a failure"], "-n", "2")
    assert ran.returncode != 0
    assert "crashed while running 'test_one.py::test_hangs'" in ran.stdout
    assert "PASSED test_other.py::test_other" in ran.stdout


def test_what_is_slow_on_purpose_is_left_alone(tmp_path):
    ran = run(tmp_path, "@pytest.mark.soak\ndef test_slow():\n    time.sleep(3)")
    assert ran.returncode == 0, ran.stdout


def test_every_single_wait_ends_before():
    assert PATIENCE_S < HANGS_S
