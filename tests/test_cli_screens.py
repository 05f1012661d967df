"""Screens as they are seen, at eighty columns: golden texts, drawn from recorded bytes.

After a change that is meant, ``DISCREET_SCREENS=write pytest tests/test_cli_screens.py`` writes
them anew; look at each before keeping it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from cli_cases import BY_CITY, bytes_for, copied, make_session, runner

from discreet.cli import screen as screens
from discreet.noise import entropy

SCREENS = Path(__file__).parent / "golden" / "screens"
COUNT = "SELECT COUNT(*) AS n, AVG(age) AS mean_age FROM patients"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return make_session(tmp_path_factory.mktemp("screens") / "clinic")


@pytest.fixture
def home(original, tmp_path, monkeypatch):
    monkeypatch.setenv("DISCREET_SESSION", str(tmp_path / "clinic"))
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return copied(original, tmp_path / "clinic")


@pytest.fixture
def screen(home, capsys):
    """What a list of commands shows, one after the other."""
    run = runner(capsys)

    def seen(name: str, *commands: tuple[str, ...]) -> str:
        with entropy.use_recording(bytes_for(name, 30_000_000 if name == "demo" else 3_000_000)):
            shown = ["\n".join(run(*command)[1:]).strip("\n") for command in commands]
        text = "\n\n".join(shown)
        return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"

    return seen


def compare(name: str, text: str) -> None:
    file = SCREENS / f"{name}.txt"
    if os.environ.get("DISCREET_SCREENS") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
    refusal = re.compile("[A-Z][0-9]+: |Why: |Fix: |Left: ")  # folded at a terminal only
    assert all(len(line) <= 80 or refusal.match(line) for line in text.splitlines())


TOLD = {
    "ask": [("ask", BY_CITY, "--epsilon", "0.2"), ("ask", BY_CITY, "--epsilon", "0.2")],
    "refusals": [
        ("ask", "SELECT city, age FROM patients", "--epsilon", "0.2"),
        ("ask", BY_CITY, "--epsilon", "7"),
        ("ask", BY_CITY, "--epsilon", "0.2", "--as", "nobody"),
    ],
    "price": [("price", COUNT, "--epsilon", "0.2"), ("price", BY_CITY, "--within", "40")],
    "balance": [
        ("balance",),
        ("analyst", "add", "ana", "--epsilon", "0.5", "--delta", "1e-9"),
        ("ask", "SELECT COUNT(*) AS n FROM patients WHERE city = 'Cork'", "--epsilon", "0.15"),
        ("ask", BY_CITY, "--epsilon", "0.2", "--as", "ana"),
        ("balance",),
        ("balance", "--as", "ana"),
        ("analyst", "list"),
    ],
}


@pytest.mark.parametrize("name", TOLD)
def test_screen(screen, name):
    compare(name, screen(name, *TOLD[name]))


def test_transcript(screen):
    text = screen("transcript", ("ask", COUNT, "--epsilon", "0.2"), ("transcript",))
    compare("transcript", re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "2026-05-04 03:02", text))


@pytest.mark.parametrize(
    ("found", "run", "told"),
    [
        ("/usr/bin/discreet", "bin/discreet", "discreet"),
        (None, "bin/discreet", "bin/discreet"),
        (None, "elsewhere.py", "my venv/bin/discreet"),
        (None, "discreet", "{here}/other/python -m discreet"),
    ],
    ids=["on the path", "below", "beside python", "no file"],
)
def test_the_program_is_named_as_it_can_be_typed(found, run, told, tmp_path, monkeypatch):
    for folder in ("here/bin", "my venv/bin", "other"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "here/bin/discreet").touch()
    (tmp_path / "my venv/bin/discreet").touch()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr("shutil.which", lambda _: found)
    monkeypatch.setattr("sys.argv", [run])
    python = "other/python" if "other" in told else "my venv/bin/python"
    monkeypatch.setattr("sys.executable", str(tmp_path / python))
    named = screens.name_program()
    if "my venv" in told:
        assert named == f"'{tmp_path / told}'"
    else:
        assert named == told.format(here=tmp_path)


def test_demo(screen, monkeypatch):
    """Ten questions, readable by somebody who has never heard of epsilon."""
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    text = screen("demo", ("demo",))
    compare("demo", text)
    assert re.findall(r"^(\d+)\. ", text, re.MULTILINE) == [str(n) for n in range(1, 11)]
    for happened in ("Q12:", "B1:", "free", "no more than before", "without noise", "After ten"):
        assert happened in text
