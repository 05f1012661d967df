"""What stands around the package agrees with it: citation, metadata, service, container."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

import discreet
from discreet.cli import app

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_one_version_everywhere():
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {discreet.__version__}\n" in cited
    assert PROJECT["version"] == discreet.__version__
    shown = CliRunner().invoke(app, ["--version"])
    assert (shown.exit_code, shown.output) == (0, f"discreet {discreet.__version__}\n")
    assert f"## {discreet.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_somebody_can_be_written_to():
    (maintainer,) = PROJECT["maintainers"]
    assert maintainer["email"] in (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def served() -> dict[str, list[str]]:
    """The words after ``discreet``, as the unit and the container start it."""
    unit = (DEPLOY / "discreet.service").read_text(encoding="utf-8")
    started = re.search(r"^ExecStart=\S+/discreet (.+)$", unit, re.MULTILINE)
    recipe = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    lists = re.findall(r"^(?:ENTRYPOINT|CMD) (\[.+\])$", recipe, re.MULTILINE)
    words = [word for text in lists for word in tomllib.loads(f"x = {text}")["x"]]
    return {"unit": shlex.split(started.group(1)), "container": words[1:]}


@pytest.mark.parametrize("where", ["unit", "container"])
def test_the_server_is_started_with_options_that_it_has(where, tmp_path):
    command, *words = served()[where]
    known = typer.main.get_command(app).commands[command]
    paths = [word for word in words if word.startswith("/")]
    for path in paths:  # as if they were there
        here = tmp_path / path[1:]
        here.parent.mkdir(parents=True, exist_ok=True)
        here.touch() if "tls" in path else here.mkdir()
    moved = [str(tmp_path / word[1:]) if word.startswith("/") else word for word in words]
    read = known.make_context("serve", moved).params
    assert read["tls_cert"]
    assert read["tls_key"]
    assert read["port"] == 8765


def test_the_container_installs_extras_that_exist():
    recipe = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    (asked,) = re.findall(r"discreet\[([a-z,]+)\]", recipe)
    assert set(asked.split(",")) <= PROJECT["optional-dependencies"].keys()
    assert "--no-index" in recipe
    notes = (DEPLOY / "README.md").read_text(encoding="utf-8")  # which say what to fetch for it
    assert f"discreet-{discreet.__version__}-py3-none-any.whl[{asked}]" in notes


def test_commands_of_the_notes_exist():
    """Every ``discreet ...`` that the notes name is a command with those options."""
    notes = (DEPLOY / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"`(discreet [a-z][^`]*)`", notes)
    assert named
    for text in named:
        group, words = typer.main.get_command(app), shlex.split(text)[1:]
        while words and hasattr(group, "commands"):
            group = group.commands[words.pop(0)]
        options = {name for parameter in group.params for name in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options, text


def test_the_module_is_the_command():
    shown = subprocess.run(
        [sys.executable, "-m", "discreet", "--version"], capture_output=True, text=True, check=True
    )
    assert shown.stdout == f"discreet {discreet.__version__}\n"
