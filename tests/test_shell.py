"""The shell: from a pipe, at a terminal, and what it offers to complete."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from fractions import Fraction

import pytest
from cli_cases import BY_CITY, copied, make_session, runner
from patience import PATIENCE_S

from discreet.cli.completion import candidates
from discreet.cli.shell import COMMANDS, complete
from discreet.curate import session
from discreet.question.schema import Schema


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return make_session(tmp_path_factory.mktemp("shell") / "clinic")


@pytest.fixture
def home(original, tmp_path):
    return copied(original, tmp_path / "clinic")


@pytest.fixture
def talk(capsys, monkeypatch, home):
    """What the shell prints when these lines are piped into it."""
    run = runner(capsys)

    def said(*lines: str, options: tuple[str, ...] = ()) -> str:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        code, out, err = run("shell", "--session", home, *options)
        assert (code, err) == (0, "")
        assert all(len(line) <= 80 for line in out.splitlines())
        return out

    return said


def spent(home) -> Fraction:
    with session.open(home) as curator:
        return Fraction(curator.spent.epsilon)


def test_nothing_is_spent_without_a_yes(talk, home):
    for answer in ((), ("",), ("n",), ("no",), ("nonsense",), ("\\balance",)):
        out = talk(f"{BY_CITY};", *answer)
        assert "price:" in out
        assert "margin:" in out
        assert "not asked" in out
    assert spent(home) == 0


def test_price_and_margin_come_before_the_answer(talk, home):
    out = talk("\\epsilon 0.2", BY_CITY, ";", "y")
    assert "each question offers epsilon = 0.2" in out
    assert out.index("price:  ε = 0.2") < out.index("n ± ") < out.index("Bergen")
    assert spent(home) == Fraction(1, 5)


def test_what_was_paid_for_is_not_asked_again(talk, home):
    first = talk(f"{BY_CITY};", "yes")
    again = talk(f"{BY_CITY};")  # no yes
    assert "free" in again
    rows = [[x for x in out.splitlines() if re.search(r"\d ± ", x)] for out in (first, again)]
    assert rows[0] == rows[1] != []
    assert spent(home) == Fraction(1, 10)


def test_yes_once_for_all(talk, home):
    out = talk(f"{BY_CITY};", "SELECT COUNT(*) AS n FROM visits;", options=("--yes",))
    assert out.count("cost ε") == 2
    assert spent(home) == Fraction(1, 5)


def test_a_line_that_is_no_answer_is_read_as_the_next_statement(talk, home):
    out = talk(f"{BY_CITY};", "SELECT COUNT(*) AS everyone FROM patients;", "y")
    assert "not asked" in out
    assert "everyone" in out
    assert spent(home) == Fraction(1, 10)


def test_the_statement_may_say_what_it_pays(talk, home):
    sql = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.3) COUNT(*) AS n FROM patients;"
    assert "ε = 0.3" in talk(sql, "y")
    assert spent(home) == Fraction(3, 10)


def test_an_accuracy_is_bought(talk, home):
    out = talk("\\within 40", "SELECT COUNT(*) AS n FROM patients;", "y")
    assert "± 40" in out
    assert 0 < spent(home) < Fraction(1, 10)


def test_refusals_do_not_end_the_conversation(talk, home):
    out = talk(
        "SELECT city FROM patients;",
        "\\nonsense",
        "\\epsilon minus",
        "\\epsilon 7",
        f"{BY_CITY};",
        "\\epsilon 0.1",
        f"{BY_CITY};",
        "y",
    )
    for code in ("Q12:", "P4:", "P1:", "B1:"):
        assert code in out
    assert spent(home) == Fraction(1, 10)


def test_commands_show_what_they_say(talk):
    out = talk(
        "\\help", "\\tables", "\\balance", "\\transcript", "\\confidence 0.99", "\\delta 1e-9"
    )
    for name in COMMANDS:
        assert f"\\{name}" in out
    assert "protects each patient_id" in out
    assert "asked by" in out
    assert "Nothing was asked yet." in out
    assert "delta = 1e-9" in out


def test_quit_ends_it(talk):
    assert "protects" not in talk("\\quit", "\\tables")


@pytest.mark.parametrize("word", ["quit", "exit", "QUIT", "exit;"])
def test_words_that_stand_alone_need_no_backslash(talk, word):
    out = talk("help", "\\confidence 0.9", word, "\\tables")
    assert "\\transcript" in out
    assert "each question offers" in out  # help did not wait for more
    assert "protects" not in out
    out = talk("SELECT COUNT(*) AS", "help", "FROM patients;")
    assert "price:" in out
    assert "\\transcript" not in out


def test_explain_is_free(talk, home):
    assert "sensitivity" in talk(f"EXPLAIN {BY_CITY};")
    assert spent(home) == 0


def test_what_is_known_and_what_may_be_paid_stand_side_by_side(talk):
    total = "SELECT COUNT(*) AS n FROM patients"
    talk(f"{BY_CITY};", "y")
    for said in (talk(f"EXPLAIN {total};"), talk(f"{total};")):
        assert said.count("choice: free") == 1
        assert said.count("a new measurement") == 1


def test_it_asks_as_somebody(talk, home):
    with session.open(home) as curator:
        curator.account.add_analyst("ana")
    talk(f"{BY_CITY};", "y", options=("--as", "ana"))
    with session.open(home) as curator:
        assert [entry.analyst for entry in curator.transcript()] == ["ana"]


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("", True),
        ("\\help", True),
        ("SELECT 2", False),
        ("SELECT 2 ;\n", True),
        ("SELECT ';'", False),
        ("SELECT 'a;", False),
        ("SELECT 'a;';", True),
        ('SELECT "a;', False),
    ],
)
def test_a_statement_ends_with_a_semicolon_outside_quotes(text, whole):
    assert complete(text) is whole


SCHEMA = Schema.from_text(
    """
    [tables.visits]
    unit = "patient"
    columns = { patient = "integer", cost = "decimal" }
    [tables.cities]
    public = true
    columns = { name = "text" }
    """
)


@pytest.mark.parametrize(
    ("before", "offered", "withheld"),
    [
        ("SELECT co", {"cost", "COUNT", "COALESCE"}, {"name", "visits"}),
        ("SELECT * FROM ", {"visits", "cities"}, {"cost", "COUNT", "SELECT"}),
        ("select x from visits join c", {"cities"}, {"visits", "COUNT"}),
        ("SELECT visits.", {"patient", "cost"}, {"name", "COUNT"}),
        ("SELECT v.na", {"name"}, {"cost"}),
        ("SELECT cost FROM visits GR", {"GROUP BY", "GREATEST"}, {"cost"}),
        ("SELECT 'co", set(), {"cost", "COUNT"}),
        ("\\ep", {"\\epsilon"}, {"\\balance"}),
        ("\\", {f"\\{name}" for name in COMMANDS}, {"cost"}),
    ],
)
def test_completion(before, offered, withheld):
    found = {word for word, _ in candidates(before, SCHEMA, COMMANDS)}
    assert offered <= found
    assert not withheld & found


class Person:
    """Somebody at a pseudo-terminal."""

    def __init__(self, *arguments: str) -> None:
        self._end, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "40"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "discreet", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            start_new_session=True,
        )
        os.close(theirs)
        self.seen = self._unread = ""

    def types(self, keys: str) -> None:
        os.write(self._end, keys.encode())

    def waits_for(self, text: str) -> None:
        """Read until ``text`` has appeared after what was waited for before."""
        new, end = self._unread, time.monotonic() + PATIENCE_S
        while text not in new:
            assert time.monotonic() < end, f"{text!r} did not appear in {new!r}"
            if select.select([self._end], [], [], 0.1)[0]:
                try:
                    part = os.read(self._end, 65536).decode(errors="replace")
                except OSError:  # the other end is closed
                    part = ""
                assert part, f"{text!r} did not appear in {new!r}"
                if "\x1b[6n" in part:  # "where is the cursor?"
                    os.write(self._end, b"\x1b[1;1R")
                new += part
                self.seen += part
        self._unread = new.partition(text)[2]

    def leaves(self) -> None:
        self.process.kill()
        self.process.wait(timeout=PATIENCE_S)
        os.close(self._end)


def test_at_a_terminal(home):
    """Several lines, completion by Tab, a confirmation, history, Ctrl-D."""
    person = Person("shell", "--session", str(home))
    try:
        person.waits_for("discreet>")
        person.types("SELECT COUNT(*) AS n\r")
        person.waits_for("...>")
        person.types("FROM pat\t")
        person.waits_for("ients")
        person.types(";\r")
        person.waits_for("spend it? [y/N]")
        person.types("y\r")
        person.waits_for("confidence; cost")
        person.waits_for("discreet>")
        person.types("\\quit\r")
        assert person.process.wait(timeout=PATIENCE_S) == 0
    finally:
        person.leaves()
    assert "Traceback" not in person.seen
    assert spent(home) == Fraction(1, 10)
    history = home / ".discreet_history"
    assert "FROM patients;" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0
