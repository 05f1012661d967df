"""A rewriting reaches every door as the sql room made it: Python, CLI, HTTP and client alike."""

from __future__ import annotations

import json
import re
from contextlib import closing

import httpx
import pytest
from cli_cases import runner
from golden_cases import FOLDER, SCHEMA, all_cases
from patience import PATIENCE_S

from discreet.cli import screen
from discreet.curate import session
from discreet.curate.remote import connect
from discreet.errors import QuestionRefusal, Refusal
from discreet.ledger.keys import new_key
from discreet.question.ownership import name_units
from discreet.question.sql import parse_statement

BUDGET = "[budget]\nepsilon = 100\ndelta = 1e-9\n\n"
FAST = "[server]\nrate_per_minute = 1e6\nburst = 100000\n\n"
OFFER = {"epsilon": "1/2", "delta": "1e-10"}


def offered() -> dict[str, QuestionRefusal]:
    """The golden questions that are refused with another to type, and how."""
    found = {}
    for case in all_cases():
        try:
            parse_statement(case.question, SCHEMA)
        except QuestionRefusal as refusal:
            if refusal.rewriting is not None:
                found[case.question] = refusal.naming(name_units(SCHEMA))
    return found


OFFERED = offered()
ONE_EACH = {refusal.code: question for question, refusal in OFFERED.items()}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The golden clinic as a session; only its public table is there."""
    folder = tmp_path_factory.mktemp("golden") / "clinic"
    text = (FOLDER / "clinic.toml").read_text()
    tables = re.sub(r"^\[tables\.(\w+)\].*$", r'\g<0>\nsource = "\1.csv"', text, flags=re.M)
    folder.mkdir()
    (folder / "cities.csv").write_text("name,region,people\nyork,north,200000\n")
    session.init(folder, BUDGET + FAST + tables)
    return folder


@pytest.fixture(scope="module")
def clinic(home, serve_sessions):
    with closing(session.open(home, opened=False)) as curator:
        key = new_key(curator.account, "curator")
    with serve_sessions([home]) as url:
        yield url, key


def test_half_of_them_stand_after_other_words():
    """What used to be cut out of the prose of a fix, and was lost."""
    later = [r for r in OFFERED.values() if not r.fix.startswith("ask ")]
    assert len(OFFERED) >= 30  # of the others most are answered as they are typed
    assert len(ONE_EACH) >= 15
    assert len(later) >= 5
    assert all(r.fix.endswith(f"ask {r.rewriting}") for r in OFFERED.values())


def test_python(home):
    with session.open(home, opened=False) as curator:
        for question, refusal in OFFERED.items():
            for call in (curator.explain, curator.price, curator.ask):
                with pytest.raises(Refusal) as caught:
                    call(question, **OFFER)
                assert caught.value.rewriting == refusal.rewriting


def test_http(clinic):
    url, key = clinic
    header = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=url, headers=header, timeout=PATIENCE_S) as http:
        for question, refusal in OFFERED.items():
            body = {"question": question, **OFFER}
            found = http.post("/v1/datasets/clinic/explain", json=body)
            assert found.status_code == 422
            assert found.json() == refusal.to_json()
            assert found.json()["rewriting"] == refusal.rewriting


def test_the_client(clinic):
    url, key = clinic
    with connect(url, key=key) as remote:
        for question, refusal in OFFERED.items():
            with pytest.raises(QuestionRefusal) as caught:
                remote.explain(question, **OFFER)
            assert caught.value.rewriting == refusal.rewriting
            assert str(caught.value) == str(refusal)


@pytest.mark.parametrize("code", ONE_EACH)
def test_the_command_line(home, capsys, monkeypatch, code):
    monkeypatch.setenv("DISCREET_SESSION", str(home))
    question, run = ONE_EACH[code], runner(capsys)
    wanted = OFFERED[question].rewriting
    _, _, told = run("explain", question, "--epsilon", "1/2")
    assert told.splitlines()[-1].endswith(f"ask {wanted}")
    _, _, shape = run("explain", question, "--epsilon", "1/2", "--json")
    assert json.loads(shape)["rewriting"] == wanted


def test_at_a_terminal_it_is_one_line_to_copy(capsys):
    for refusal in OFFERED.values():
        screen.print_refusal(refusal)
        *lines, last = capsys.readouterr().out.splitlines()
        assert last.endswith(f"ask {refusal.rewriting}")
        assert all(len(line) <= screen.WIDTH for line in lines)
