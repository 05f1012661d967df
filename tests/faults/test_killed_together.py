"""Sixteen threads that share their commits are killed: what they were told is on the disk."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from ledger_cases import opened, request

from discreet.accounting.budget import Budget
from discreet.accounting.loss import Loss
from discreet.ledger import Ledger

THREADS = 16
BUDGET = Budget(epsilon=10**6, delta="1e-6")
WRITING = f"""
import os, sys, threading
sys.path.insert(0, {str(Path(__file__).parent.parent)!r})
from ledger_cases import opened, request
from faults.test_killed_together import BUDGET
from discreet.ledger import Ledger

account = opened(Ledger.open(sys.argv[1]), budget=BUDGET)

def work(thread):
    for turn in range(10**6):
        key = f"{{sys.argv[2]}} {{thread}} {{turn}}"
        receipt = account.charge(request(account, key, loss="1/100"))
        os.write(1, b"charged %d\\n" % receipt.id)  # whole lines, and no buffer to be lost
        told = account.publish(receipt, b"answer %d" % receipt.id)
        os.write(1, b"told %d\\n" % receipt.id)

for thread in range({THREADS}):
    threading.Thread(target=work, args=(thread,)).start()
"""


@pytest.mark.parametrize("lines", [1, 50, 333])
def test_what_was_told_is_on_the_disk(tmp_path: Path, lines: int) -> None:
    """Killed twice, after so many lines; the second time, what the first left is taken on."""
    path = tmp_path / "ledger.sqlite"
    told: list[str] = []
    for life in ("first", "second"):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITING, str(path), life], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        told += [process.stdout.readline() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        told += process.communicate()[0].splitlines(keepends=True)
    with Ledger.open(path) as ledger:
        account = opened(ledger, budget=BUDGET)
        found = ledger.verify()
        assert found.ok
        charged = {int(line.split()[1]) for line in told if line.startswith("charged ")}
        shown = {int(line.split()[1]) for line in told if line.startswith("told ")}
        assert len(charged) >= lines // 2
        for number in charged:
            assert account.entry(number).state in ("answered", "open")
        for number in shown:
            assert account.answer(number).answer == b"answer %d" % number
        assert len(charged) <= found.charges <= len(charged) + 2 * THREADS
        assert account.balance().spent == found.charges * Loss.pure("1/100").rounded()
        account.charge(request(account, "and on", loss="1/100"))
