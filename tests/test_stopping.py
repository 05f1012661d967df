"""Ctrl-C: a question stops at once, keeps its reservation, and is finished by asking it again."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from patience import PATIENCE_S

import discreet
from discreet.curate.session import init
from discreet.engine.duckdb.database import watch
from discreet.errors import InvalidParameter

SETTINGS = """
[budget]
epsilon = 3
delta = 1e-9

[tables.v]
source = "v.parquet"
unit = "person"
max_rows_per_unit = 2
columns.person = "integer"
columns.note = "text"
"""
SLOW = "SELECT COUNT(*) AS n FROM v WHERE " + " OR ".join(
    f"note LIKE '%{n}%{n + 1}%{n + 2}%x%'"  # which nothing is: every pattern is tried on all rows
    for n in range(10, 46)
)
HEAVY = "SELECT SUM(hash(a.range + b.range) % 7) FROM range(40_000) a, range(4_000) b"
STOPPED = 0.5
"""Stopping works less than this share of what the whole question does: in time of the processor,
which neither a busy machine nor a slow one changes."""


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """Enough rows that a question takes seconds."""
    with closing(duckdb.connect()) as connection:
        connection.execute(
            "COPY (SELECT range // 4 AS person, repeat(hash(range)::VARCHAR, 6) AS note "
            f"FROM range(600_000)) TO '{tmp_path / 'v.parquet'}'"
        )
    init(tmp_path, SETTINGS)
    return tmp_path


def is_charged(home: Path) -> bool:
    with closing(sqlite3.connect(home / "ledger.sqlite")) as ledger:
        found = ledger.execute("SELECT COUNT(*) FROM records WHERE kind = 'charge'").fetchone()
    return bool(found[0])


def worked(process: int) -> float:
    """Seconds of the processor that a process of ours has taken, if it still runs."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def finished() -> float:
    """The same of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_ctrl_c_on_the_command_line(session: Path):
    command = [sys.executable, "-m", "discreet", "ask", SLOW, "--epsilon", "0.25", "-s", "."]
    asking = subprocess.Popen(
        command, cwd=session, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    before = finished()
    try:
        while not is_charged(session):
            time.sleep(0.005)
        asking.send_signal(signal.SIGINT)
        before += worked(asking.pid)
        out, err = asking.communicate(timeout=PATIENCE_S)
    finally:
        asking.kill()
    assert asking.returncode == 130
    stopping = finished() - before
    assert out == ""
    assert "without paying again" in err
    assert "Traceback" not in err
    with discreet.open(session) as curator:
        spent = curator.spent
        assert [entry.state for entry in curator.transcript()] == ["open"]
        begun = time.process_time()
        curator.ask(SLOW, epsilon="0.25")
        assert stopping < STOPPED * (time.process_time() - begun)
        assert curator.spent == spent
        assert [entry.state for entry in curator.transcript()] == ["answered"]


def test_ctrl_c_in_python(session: Path):
    """The signal comes when the question begins to run, however fast the machine is."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # others may ignore it
    sent: list[float] = []

    def interrupt(_name: str, _share: float) -> None:
        if not sent:
            sent.append(time.process_time())
            os.kill(os.getpid(), signal.SIGINT)

    with discreet.open(session, progress=interrupt) as curator:
        with pytest.raises(KeyboardInterrupt):
            curator.ask(SLOW, epsilon="0.25")
        signal.signal(signal.SIGINT, before)
        stopping = time.process_time() - sent[0]
        assert curator.spent.epsilon == Fraction(1, 4)
        curator.ask("SELECT COUNT(*) FROM v", epsilon="0.25")  # the connection is whole
        begun = time.process_time()
        curator.ask(SLOW, epsilon="0.25")
        assert stopping < STOPPED * (time.process_time() - begun)


def test_a_stop_that_comes_before_the_statement_is_not_forgotten():
    done: list[str] = []
    told: list[float] = []

    def interrupt(_name: str, share: float) -> None:
        told.append(share)
        if len(told) > 1:  # the work has begun, and its statement has not
            raise KeyboardInterrupt

    with closing(duckdb.connect()) as connection:

        def work() -> None:
            time.sleep(0.5)
            connection.execute(HEAVY).fetchall()
            done.append("the statement")

        with pytest.raises(KeyboardInterrupt):
            watch(connection, work, "answer", interrupt)
        assert done == []
        assert connection.execute("SELECT 7").fetchall() == [(7,)]


def test_progress_is_told():
    told: list[tuple[str, float]] = []
    with closing(duckdb.connect()) as connection:
        connection.execute("SET enable_progress_bar_print = false; SET enable_progress_bar = true")
        found = watch(
            connection,
            lambda: connection.execute(HEAVY).fetchall(),
            "answer",
            lambda name, share: told.append((name, share)),
        )
    assert len(found) == 1
    assert told[0] == ("answer", 0.0)
    assert told[-1] == ("answer", 1.0)
    shares = [share for _, share in told]
    assert shares == sorted(shares)


def test_a_setting_of_the_engine_is_not_a_missing_source(tmp_path: Path):
    schema = discreet.Schema.from_text(SETTINGS)
    with pytest.raises(InvalidParameter, match="memory_limit = 'plenty'"):
        discreet.curator(
            {"v": tmp_path / "v.parquet"},
            schema=schema,
            budget=discreet.Budget(epsilon=1),
            memory_limit="plenty",
        )
