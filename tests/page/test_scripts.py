"""The page's scripts by themselves: their types, and their functions under Node.js."""

from __future__ import annotations

import subprocess
from pathlib import Path

from patience import PATIENCE_S
from services import require

HERE = Path(__file__).parent


def run(*command: object) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    return subprocess.run(
        words, capture_output=True, text=True, timeout=PATIENCE_S, cwd=HERE, check=False
    )


def test_the_types_hold():
    found = run(require("typescript"), "--project", HERE / "tsconfig.json")
    assert found.returncode == 0, found.stdout


def test_functions_that_decide_something():
    found = run(require("node"), "--test", HERE / "units.test.mjs")
    assert found.returncode == 0, found.stdout + found.stderr
