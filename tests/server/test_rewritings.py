"""Fixes of refused golden questions, applied at every door by a program, and accepted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

import httpx
import psycopg
import pytest
import typer
from cli_cases import runner
from golden_session import QUESTIONS, make_home
from patience import PATIENCE_S
from pyarrow import flight

from discreet.cli import asking, screen
from discreet.curate import session
from discreet.curate.remote import connect
from discreet.errors import Refusal
from discreet.ledger.keys import new_key
from discreet.server.flight import messages

Ask = Callable[[str, dict[str, str]], str | None]
"""Asks a question with an offer, and gives the fix if it is refused."""

OFFER = {"epsilon": "1/2", "delta": "1e-10"}
NOTHING = {"Q2", "Q5", "Q6", "Q14", "Q15", "Q19", "Q26", "Q33"}
"""Where nobody but the asker knows what was meant: a text that cannot be read, no question, a
table that is not there, nobody's rows, everybody else's rows, a distance without its columns."""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The golden clinic as a session; only its public table is there."""
    return make_home(tmp_path_factory.mktemp("golden") / "clinic")


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


@pytest.fixture(params=["of each kind", pytest.param("all", marks=pytest.mark.soak)])
def at_doors(refused, request) -> dict[str, Refusal]:
    """What is refused at every door: two of each code that can be mended in the same ways, or all.

    In Python all are mended, in every run; a door only says the same in its own words.
    """
    kinds: dict[tuple[object, ...], list[str]] = {}
    for question, one in refused.items():
        ways = (one.rewriting is None, not one.offer, one.declaration is None)
        kinds.setdefault((one.code, *ways), []).append(question)
    chosen = {q for alike in kinds.values() for q in (alike[0], alike[-1])}
    if request.param == "all":
        chosen = refused.keys()
    return {question: one for question, one in refused.items() if question in chosen}


@pytest.fixture(scope="module")
def every_door(home, serve_every_door):
    with closing(session.open(home, opened=False)) as opened:
        key = new_key(opened.account, "curator")
    with serve_every_door(home, key) as found:
        yield found


@pytest.fixture(scope="module")
def clinic(every_door):
    return every_door.url, every_door.datasets["clinic"].key


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


def test_http(clinic, at_doors):
    url, key = clinic
    header = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=url, headers=header, timeout=PATIENCE_S) as http:
        for question, refusal in at_doors.items():
            found = http.post("/v1/datasets/clinic/explain", json={"question": question, **OFFER})
            assert found.status_code == 422
            assert found.json() == refusal.translate("http").to_json()
            rewriting = found.json().get("rewriting")
            if rewriting is not None:
                body = {"question": rewriting, **OFFER}
                accepted = http.post("/v1/datasets/clinic/explain", json=body)
                assert accepted.status_code == 200, question


def test_the_client(clinic, at_doors):
    url, key = clinic
    with connect(url, key=key, timeout_s=PATIENCE_S) as remote:
        for question, refusal in at_doors.items():
            with pytest.raises(Refusal) as caught:
                remote.explain(question, **OFFER)
            assert caught.value.to_json() == refusal.to_json()
            assert str(caught.value) == str(refusal)
            if refusal.rewriting is not None:
                remote.explain(caught.value.rewriting, **OFFER)


def test_the_command_line(curator, at_doors, capsys, monkeypatch):
    @contextmanager
    def opened(_home: Path) -> Iterator[object]:  # once for all: opening is not what is tested
        yield curator

    monkeypatch.setattr(asking, "open_planner", opened)
    monkeypatch.setattr(typer.main, "get_command", cache(typer.main.get_command))
    run = runner(capsys)
    offer = [part for name, amount in OFFER.items() for part in (f"--{name}", amount)]
    seen = set()
    for question, refusal in at_doors.items():
        code, _, shape = run("explain", question, *offer, "--json")
        assert code == 2
        assert json.loads(shape) == refusal.translate("command").to_json()
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


# --- the doors of others --------------------------------------------------------------------------

FIXED = re.compile(r"\bask ((?:SELECT|WITH)\b.*)$", re.S)
"""A whole question, at the end of a fix."""
MOST_FIXES = 4
"""One for the question, one for delta, one for what it may cost, and one to spare."""


def follow(
    question: str, ask: Ask, offers: re.Pattern[str], offered: dict[str, str]
) -> dict[str, str]:
    """What is offered when a door has accepted: each fix is done as it is written.

    A fix names what can be offered in its own words; where it names two, the first is taken.
    """
    offered = dict(offered)
    for _ in range(MOST_FIXES):
        fix = ask(question, offered)
        if fix is None:
            return offered
        whole = FIXED.search(fix)
        if whole is not None:
            question = whole[1]
            continue
        named = offers.search(fix)
        assert named is not None, (question, fix)
        offered[named[1]] = named[2]
    raise AssertionError((question, offered, fix))


def mended(refused: dict[str, Refusal]) -> Iterator[tuple[str, dict[str, str]]]:
    """Those that whoever asks can mend, with an offer; what the curator declares is tested above.

    Some have none: what is missing is offered as the next refusal says.
    """
    found = [question for question, one in refused.items() if one.rewriting is not None]
    for number, question in enumerate(found):
        yield question, {} if number % 8 == 0 or "doctor" in question else OFFER


def test_the_door_of_postgresql(every_door, at_doors):
    """The hint is done: a question is asked, a setting is set."""
    where = {"host": "127.0.0.1", "port": every_door.port("postgres"), "dbname": "clinic"}
    key = every_door.datasets["clinic"].key
    offers = re.compile(r"SET discreet\.(\w+) = '([^']+)'")
    asked = set()
    with psycopg.connect(**where, user="curator", password=key, autocommit=True) as line:

        def ask(question: str, offered: dict[str, str]) -> str | None:
            for name, amount in offered.items():
                line.execute(f"SET discreet.{name} = '{amount}'")
            try:
                plan = line.execute(f"EXPLAIN {question}").fetchall()
            except psycopg.Error as error:
                return error.diag.message_hint or ""
            assert plan
            return None

        for question, offer in mended(at_doors):
            line.execute("RESET ALL")
            asked |= follow(question, ask, offers, offer).items()
    assert {("epsilon", "0.1"), ("delta", "1e-9")} <= asked


def test_the_door_of_flight(every_door, at_doors):
    """Each call has the headers that the refusal before it has named."""
    where = f"grpc://127.0.0.1:{every_door.port('flight')}"
    key = every_door.datasets["clinic"].key
    offers = re.compile(r"the header discreet-(\w+): ([^\s,;]*[^\s,;.])")
    asked = set()
    with flight.connect(where) as line:

        def ask(question: str, offered: dict[str, str]) -> str | None:
            headers = [(b"authorization", f"Bearer {key}".encode())]
            headers += [(f"discreet-{n}".encode(), a.encode()) for n, a in offered.items()]
            how = flight.FlightCallOptions(headers=headers, timeout=PATIENCE_S)
            text = f"EXPLAIN {question}".encode()
            command = messages.pack("CommandStatementQuery", {1: text})
            try:
                told = line.get_flight_info(flight.FlightDescriptor.for_command(command), how)
                plan = line.do_get(told.endpoints[0].ticket, how).read_all()
            except flight.FlightServerError as error:
                _, mark, fix = str(error).partition("\nFix: ")
                assert mark, question
                shape = json.loads(error.extra_info)
                assert fix.startswith(shape["fix"])
                return str(shape["fix"])
            assert plan.num_rows
            return None

        for question, offer in mended(at_doors):
            asked |= follow(question, ask, offers, offer).items()
    assert {("epsilon", "0.1"), ("delta", "1e-9")} <= asked
