"""A14: refusals are free, and a record of each filled the disk: 17 GB a day from one key.

The first of a kind are recorded whole, the others counted: in bounded room, exactly, durably.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_cases import Clock, opened

from discreet.errors import CODES, QuestionRefusal
from discreet.ledger import Ledger, verify_export
from discreet.ledger.tally import WHOLE, WHOLE_BYTES, Tally

LONG = "SELECT " + "x" * 19_000


def refuse(account, *, analyst="curator", code="Q12", question=LONG, times=1):
    refusal = QuestionRefusal(code, "rows are not shown.", why="...", fix="...")
    for _ in range(times):
        account.record_refusal(analyst, question, refusal)


@pytest.fixture
def path():
    """In memory where that can be had: what a disk can do wrong is another suite's matter."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder) / "ledger.sqlite"


def size(ledger):
    return sum(len(record.to_line()) for record in ledger.records())


def test_ten_thousand_refusals_take_bounded_room_and_are_all_counted(path):
    clock = Clock()
    with Ledger.open(path, clock=clock) as ledger:
        account = opened(ledger)
        empty = size(ledger)
        refuse(account, times=10_000)
        grown = size(ledger) - empty
        assert grown < WHOLE * 20_000 + 20 * 600
        refuse(account, times=1000)
        assert size(ledger) - empty == grown  # until it has doubled, nothing is added at all
        assert account.refusals() == {("2030-05-17", "curator", "Q12"): 11_000}
        assert ledger.verify().ok
        listed = [entry for entry in account.transcript() if entry.code == "Q12"]
        assert [entry.count for entry in listed] == [*[1] * 10, 6, *(2**k for k in range(4, 13))]
        assert all(bool(entry.question) == (n < WHOLE) for n, entry in enumerate(listed))
    assert path.stat().st_size < 1_000_000


def test_a_day_of_every_code_is_bounded(path):
    with Ledger.open(path, clock=Clock()) as ledger:
        account = opened(ledger)
        empty = size(ledger)
        codes = [code for code in CODES if code.startswith("Q")]
        for code in codes:
            refuse(account, code=code, times=40)
        assert size(ledger) - empty < WHOLE_BYTES + len(codes) * (WHOLE + 6) * 600
        assert sum(account.refusals().values()) == len(codes) * 40
        assert ledger.verify().ok


def test_strangers_share_one_allowance(path):
    """Whoever makes up names does not make up room."""
    with Ledger.open(path, clock=Clock()) as ledger:
        account = opened(ledger)
        empty = size(ledger)
        for number in range(500):
            refuse(account, analyst=f"{number}" * 9_000, question="SELECT 1")
        assert size(ledger) - empty < 20 * 1000
        assert account.refusals() == {("2030-05-17", "", "Q12"): 500}
        assert ledger.verify().ok


def test_a_day_that_is_over_is_told_and_forgotten(path):
    clock = Clock()
    with Ledger.open(path, clock=clock) as ledger:
        account = opened(ledger)
        refuse(account, times=100)
        clock.pass_(days=1)
        refuse(account, times=3)
        assert [tally.day for tally in ledger._journal.store.tallies()] == ["2030-05-18"]
        told = [record.content for record in ledger.records() if record.kind == "refusals"]
        assert sum(one["count"] for one in told) == 90
        assert account.refusals() == {
            ("2030-05-17", "curator", "Q12"): 100,
            ("2030-05-18", "curator", "Q12"): 3,
        }
        assert account.transcript()[-1].count == 1  # whole again: it is another day
        exported = path.with_name("log.jsonl")
        ledger.export(exported)
    assert verify_export(exported).ok


def test_a_backup_goes_on_counting(path):
    with Ledger.open(path, clock=Clock()) as ledger:
        account = opened(ledger)
        refuse(account, times=100)
        ledger.backup(path.with_name("copy.sqlite"))
    with Ledger.open(path.with_name("copy.sqlite"), clock=Clock()) as ledger:
        account = opened(ledger)
        refuse(account, times=7)
        assert account.refusals() == {("2030-05-17", "curator", "Q12"): 107}
        assert ledger.verify().ok


@pytest.mark.parametrize(
    "change",
    ["count = 63", "count = 128", "told = 65", "told = 101, count = 101", "day = '2030-05-16'"],
)
def test_a_count_that_does_not_go_on_from_the_log_is_found(path, change):
    with Ledger.open(path, clock=Clock()) as ledger:
        refuse(opened(ledger), times=100)
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"UPDATE refused SET {change}")
        database.commit()
    assert not Ledger.examine(path).ok


@pytest.mark.parametrize("change", ["count = -1", "count = 'many'", "told = NULL"])
def test_nonsense_for_a_count_is_damage(path, change):
    with Ledger.open(path, clock=Clock()) as ledger:
        account = opened(ledger)
        refuse(account, times=100)
        with closing(sqlite3.connect(path)) as database:
            try:
                database.execute(f"UPDATE refused SET {change}")
            except sqlite3.IntegrityError:
                return
            database.commit()
        with pytest.raises(Exception, match="L2"):
            refuse(account)


@given(st.lists(st.integers(1, WHOLE_BYTES), max_size=400))
def test_what_is_not_told_is_less_than_what_is(sizes):
    tally, kinds = Tally("d", "a", "2030-05-17", "Q1"), Counter()
    for one in sizes:
        before, tally = tally, tally.add(one, 0)
        kinds[tally.told > before.told] += 1
        assert tally.told <= tally.count < 2 * tally.told
        assert tally.size <= WHOLE_BYTES
    assert tally.count == len(sizes)
    assert kinds[True] <= WHOLE + len(sizes).bit_length()


CHILD = """
import sys
from ledger_cases import opened
from test_a14_refusals_fill_the_ledger import refuse
from discreet.ledger import Ledger
account = opened(Ledger.open(sys.argv[1]))
for number in range(10**6):
    refuse(account, question=f"SELECT {number}", code=f"Q{number % 3 + 1}")
    print(number + 1, flush=True)
"""


def test_counts_are_right_after_kill_9(path):
    """What was acknowledged is counted; at most the one under way may be, too."""
    here = Path(__file__).parent
    paths = [str(here), str(here.parent), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    acknowledged = 0
    for lines in (1, 37, 150):
        with subprocess.Popen(
            [sys.executable, "-c", CHILD, str(path)],
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        ) as child:
            assert child.stdout is not None
            for _ in range(lines):
                child.stdout.readline()
            child.send_signal(signal.SIGKILL)
            rest = child.stdout.read().split()
        acknowledged += int(rest[-1]) if rest else lines
        with Ledger.open(path) as ledger:
            found = sum(opened(ledger).refusals().values())
            assert ledger.verify().problems == ()
        assert acknowledged <= found <= acknowledged + 1
        acknowledged = found
