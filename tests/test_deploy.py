"""What stands around the package agrees with it: citation, metadata, service, container."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer.main
import uvicorn
from certificates import certificate
from fastapi import FastAPI
from patience import wait_until
from typer.testing import CliRunner

import discreet
from discreet.cli import app
from discreet.server.routes import operation

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


def find_dates(changes: str, cited: str) -> tuple[list[str], list[str]]:
    """When the newest version came out, as the changes and the citation say."""
    newest = re.search(r"^## \S+ — (.+)$", changes, re.MULTILINE)
    told = re.findall(r"^date-released: \"?([\d-]+)\"?$", cited, re.MULTILINE)
    return [] if newest.group(1) == "unreleased" else [newest.group(1)], told


def test_the_citation_has_the_date_of_the_changes():
    changes, cited = ((ROOT / name).read_text("utf-8") for name in ("CHANGELOG.md", "CITATION.cff"))
    said, told = find_dates(changes, cited)
    assert said == told
    out = find_dates(
        "## 0.3.0 — 2031-05-07\n\n## 0.2.0 — 2030-01-09", "date-released: 2031-05-07\n"
    )
    assert out == (["2031-05-07"], ["2031-05-07"])


def test_somebody_can_be_written_to():
    (maintainer,) = PROJECT["maintainers"]
    assert maintainer["email"] in (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_addresses_that_do_not_work_yet_are_said_to_be_none():
    """There is no host; SECURITY.md says where its address will stand."""
    said = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert ("no public host" in said) == ("urls" not in PROJECT)
    assert "`[project.urls]`" in said


def read_recipe() -> str:
    return (DEPLOY / "Containerfile").read_text(encoding="utf-8")


def served() -> dict[str, list[str]]:
    """The words after ``discreet``, as the unit and the container start it."""
    unit = (DEPLOY / "discreet.service").read_text(encoding="utf-8")
    started = re.search(r"^ExecStart=\S+/discreet (.+)$", unit, re.MULTILINE)
    recipe = read_recipe()
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
    recipe = read_recipe()
    (asked,) = re.findall(r"discreet\[([a-z,]+)\]", recipe)
    assert set(asked.split(",")) <= PROJECT["optional-dependencies"].keys()
    assert "--no-index" in recipe
    notes = (DEPLOY / "README.md").read_text(encoding="utf-8")  # which say what to fetch for it
    assert f"discreet-{discreet.__version__}-py3-none-any.whl[{asked}]" in notes


def test_the_notes_say_who_must_own_the_session():
    """As nobody else the container's user may write the ledger that is mounted for it."""
    recipe, notes = read_recipe(), (DEPLOY / "README.md").read_text(encoding="utf-8")
    ((number, name),) = re.findall(r"useradd --system --uid (\d+) (\w+)$", recipe, re.MULTILINE)
    assert f"\nUSER {name}\n" in recipe
    assert f"user {number}, who must own the mounted `/session`" in notes
    assert f"`chown -R {number} " in notes


def find_check() -> list[str]:
    """How the container asks whether its server lives."""
    (found,) = re.findall(r"^HEALTHCHECK .*?CMD (\[.+\])$", read_recipe(), re.MULTILINE)
    return list(tomllib.loads(f"x = {found}")["x"])


@contextmanager
def living(app: FastAPI, folder: Path) -> Iterator[int]:
    """An application behind TLS, on a port of its own."""
    cert, key = certificate(folder)
    settings = uvicorn.Config(
        app, port=0, log_level="critical", ssl_certfile=cert, ssl_keyfile=key, lifespan="off"
    )
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_until(lambda: server.started)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join()


def test_the_container_asks_whether_its_server_lives(tmp_path):
    """No if the server is gone, or is another; whose certificate it is does not matter."""
    python, *words = find_check()
    _, *served_words = served()["container"]
    port = served_words[served_words.index("--port") + 1]
    assert "--tls-cert" in served_words
    assert f"https://127.0.0.1:{port}/healthz" in words[-1]
    assert python.rpartition("/")[0] in read_recipe().split("ENTRYPOINT")[1]

    def ask(there: int) -> int:
        command = [sys.executable, *(word.replace(f":{port}/", f":{there}/") for word in words)]
        return subprocess.run(command, capture_output=True, check=False).returncode

    ours, other = FastAPI(), FastAPI()
    ours.include_router(operation.router)
    with living(ours, tmp_path) as there:
        assert ask(there) == 0
    assert ask(there) != 0
    with living(other, tmp_path) as there:
        assert ask(there) != 0


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
