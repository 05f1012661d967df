"""The page's scripts by themselves: their types, and their functions under Node.js."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from interface_types import describe_interface
from patience import PATIENCE_S
from services import require

HERE = Path(__file__).parent


def run(*command: object) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    return subprocess.run(
        words, capture_output=True, text=True, timeout=PATIENCE_S, cwd=HERE, check=False
    )


SCRIPTS = HERE.parents[1] / "src" / "discreet" / "server" / "static"


def check_types(home: Path, scripts: Path) -> subprocess.CompletedProcess[str]:
    """The strict rules, with the types that the server's own document declares."""
    (home / "interface.d.ts").write_text(describe_interface())
    files = [str(one) for one in sorted(scripts.glob("*.js"))]
    settings = {"extends": str(HERE / "tsconfig.json"), "files": ["interface.d.ts", *files]}
    (home / "tsconfig.json").write_text(json.dumps({**settings, "include": []}))
    return run(require("typescript"), "--project", home / "tsconfig.json")


def test_the_types_hold(tmp_path):
    found = check_types(tmp_path, SCRIPTS)
    assert found.returncode == 0, found.stdout


def test_a_field_that_the_server_does_not_send_is_an_error(tmp_path):
    """The check has power: a misspelled field, a text taken for a number, an untyped parameter."""
    copies = tmp_path / "static"
    shutil.copytree(SCRIPTS, copies, ignore=shutil.ignore_patterns("*.svg", "*.css", "*.html"))
    for file, right, wrong in (
        ("answer.js", "answer.replayed ? h(", "answer.repeated ? h("),
        ("balance.js", "1000 * found.share)", "1000 * found.name)"),
        ("dom.js", " * @param {boolean} falling\n", ""),
    ):
        text = (copies / file).read_text()
        assert right in text
        (copies / file).write_text(text.replace(right, wrong, 1))
    found = check_types(tmp_path, copies)
    for file, code in (("answer.js", "TS2339"), ("balance.js", "TS2363"), ("dom.js", "TS7006")):
        assert any(file in line and code in line for line in found.stdout.splitlines()), file


def test_functions_that_decide_something():
    found = run(require("node"), "--test", HERE / "units.test.mjs")
    assert found.returncode == 0, found.stdout + found.stderr
