"""Every fix of every refused golden question, applied at every door by a program, and accepted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

import httpx
import pytest
import typer
from cli_cases import runner
from golden_cases import FOLDER, all_cases
from patience import PATIENCE_S

from discreet.cli import asking, screen
from discreet.curate import session
from discreet.curate.remote import connect
from discreet.errors import Refusal
from discreet.ledger.keys import new_key

BUDGET = "[budget]\nepsilon = 100\ndelta = 1e-6\n\n"
FAST = "[server]\nrate_per_minute = 1e6\nburst = 100000\n\n"
OFFER = {"epsilon": "1/2", "delta": "1e-10"}
QUESTIONS = [case.question for case in all_cases() if "refused" in " ".join(case.verdict)]
NOTHING = {"Q2", "Q5", "Q6", "Q14", "Q15", "Q19", "Q26"}
"""Where nobody but the asker knows what was meant: a text that cannot be read, no question, a
table that is not there, nobody's rows, everybody else's rows."""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The golden clinic as a session; only its public table is there."""
    return make_home(tmp_path_factory.mktemp("golden") / "clinic")


def make_home(folder: Path, declaration: str | None = None) -> Path:
    """A session of the golden schema, with lines of it declared anew."""
    text = (FOLDER / "clinic.toml").read_text()
    if declaration is not None:
        text = declare(text, declaration)
    tables = re.sub(r"^\[tables\.(\w+)\].*$", r'\g<0>\nsource = "\1.csv"', text, flags=re.M)
    folder.mkdir()
    (folder / "cities.csv").write_text(
        "name,region,people\nyork,north,200000\nleeds,north,500000\nhull,south,250000\n"
    )
    top, rest = ("", tables)
    if declaration is not None and not declaration.startswith("["):
        top, _, rest = tables.partition("\n")
    session.init(folder, f"{top}\n{BUDGET}{FAST}{rest}")
    return folder


def declare(schema: str, declaration: str) -> str:
    """The schema with the lines of a declaration: in the place of what they declare, or new."""
    if not declaration.startswith("["):
        return f"{declaration}\n{schema}"
    section, line = declaration.replace("LOW", "0").replace("HIGH", "100000").split("\n")
    name = line.partition(" ")[0]
    before, _, after = schema.partition(f"{section}\n")
    own, mark, rest = after.partition("\n[")
    lines = [part for part in own.split("\n") if part.partition(" ")[0] != name]
    return "".join([before, section, "\n", line, "\n", "\n".join(lines), mark, rest])


@pytest.fixture(scope="module")
def curator(home):
    with session.open(home, opened=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def refused(curator) -> dict[str, Refusal]:
    """The golden questions that are refused where the public tables are known, and how."""
    found = {}
    for question in QUESTIONS:
        try:
            curator.explain(question, **OFFER)
        except Refusal as refusal:
            found[question] = refusal
    return found


@pytest.fixture(scope="module")
def clinic(home, serve_sessions):
    with closing(session.open(home, opened=False)) as opened:
        key = new_key(opened.account, "curator")
    with serve_sessions([home]) as url:
        yield url, key


def test_every_fix_can_be_applied_or_there_is_none(refused):
    assert len(refused) > 180
    for question, refusal in refused.items():
        ways = [refusal.rewriting, refusal.offer or None, refusal.declaration]
        if not any(ways):
            assert refusal.code in NOTHING, question
            assert refusal.fix.startswith("none"), question
        assert refusal.fix
        assert "nothing for a person" not in refusal.why
    mended = [refusal for refusal in refused.values() if refusal.rewriting is not None]
    assert len(mended) > 0.85 * len(refused)
    assert all(refusal.fix.endswith(f"ask {refusal.rewriting}") for refusal in mended)


def test_python(curator, refused):
    for question, refusal in refused.items():
        if refusal.rewriting is not None:
            curator.explain(refusal.rewriting, **OFFER)
            with pytest.raises(Refusal) as caught:
                curator.ask(question, **OFFER)
            assert caught.value.rewriting == refusal.rewriting


def test_http(clinic, refused):
    url, key = clinic
    header = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=url, headers=header, timeout=PATIENCE_S) as http:
        for question, refusal in refused.items():
            found = http.post("/v1/datasets/clinic/explain", json={"question": question, **OFFER})
            assert found.status_code == 422
            assert found.json() == refusal.spoken("http").to_json()
            rewriting = found.json().get("rewriting")
            if rewriting is not None:
                body = {"question": rewriting, **OFFER}
                accepted = http.post("/v1/datasets/clinic/explain", json=body)
                assert accepted.status_code == 200, question


def test_the_client(clinic, refused):
    url, key = clinic
    with connect(url, key=key) as remote:
        for question, refusal in list(refused.items())[::4]:
            with pytest.raises(Refusal) as caught:
                remote.explain(question, **OFFER)
            assert caught.value.to_json() == refusal.to_json()
            assert str(caught.value) == str(refusal)
            if refusal.rewriting is not None:
                remote.explain(caught.value.rewriting, **OFFER)


def test_the_command_line(curator, refused, capsys, monkeypatch):
    @contextmanager
    def opened(_home: Path) -> Iterator[object]:  # once for all: opening is not what is tested
        yield curator

    monkeypatch.setattr(asking, "open_planner", opened)
    monkeypatch.setattr(typer.main, "get_command", cache(typer.main.get_command))
    run = runner(capsys)
    offer = [part for name, amount in OFFER.items() for part in (f"--{name}", amount)]
    seen = set()
    for question, refusal in refused.items():
        code, _, shape = run("explain", question, *offer, "--json")
        assert code == 2
        assert json.loads(shape) == refusal.spoken("command").to_json()
        if refusal.rewriting is not None:
            code, _, _ = run("explain", refusal.rewriting, *offer, "--json")
            assert code == 0, question
            if refusal.code not in seen:
                seen.add(refusal.code)
                _, _, told = run("explain", question, *offer)
                assert told.splitlines()[-1].endswith(f"ask {refusal.rewriting}")


def test_declarations(refused, tmp_path, capsys):
    """What only the curator can mend: the lines are put into the session's own file."""
    declared = {r.declaration: q for q, r in refused.items() if r.declaration is not None}
    assert len(declared) >= 2
    for number, (lines, question) in enumerate(declared.items()):
        again = make_home(tmp_path / f"clinic {number}", lines)
        run = runner(capsys)
        code, _, err = run("explain", question, "--epsilon", "1/2", "-s", again)
        assert code == 0, err
        with session.open(again, opened=False) as opened:
            same = [q for q, r in refused.items() if r.declaration == lines]
            for asked in same:
                opened.explain(asked, **OFFER)


def test_at_a_terminal_it_is_one_line_to_copy(refused, capsys):
    for refusal in refused.values():
        if refusal.rewriting is not None:
            screen.print_refusal(refusal)
            *lines, last = capsys.readouterr().out.splitlines()
            assert last.endswith(f"ask {refusal.rewriting}")
            assert all(len(line) <= screen.WIDTH for line in lines)
