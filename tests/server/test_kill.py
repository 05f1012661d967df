"""Kill -9 of an engine and of the server under load: nothing lost, nothing paid twice."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from fractions import Fraction

import httpx
import pytest
from patience import PATIENCE_S, wait_until

from discreet.curate import session
from discreet.ledger import State
from discreet.publication.verifying import verify_folder

PRICE = Fraction(1, 50)


def ready(served):
    wait_until(lambda: served.pool.ready)


def test_a_killed_engine_is_replaced(server):
    """The question it had is charged and failed; the next ones are answered."""
    served = server.state.datasets["clinic"]
    key = server.person()
    outcomes = []

    def ask(number):
        question = f"SELECT COUNT(*) AS n FROM visits WHERE age < 90 AND remark <> 'k{number}'"
        body = {"question": question, "epsilon": str(PRICE), "wait_s": 60}
        found = server.call("POST", "ask", body, key=key)
        status, told = found.status_code, found.json()
        while status == 202:  # a slow machine: what was charged is waited for, and not asked again
            told = server.call("GET", f"jobs/{told['id']}?wait_s=60", key=key).json()
            status = {"done": 200, "failed": 424}.get(told["state"], 202)
        outcomes.append((status, told.get("code")))

    def kill():
        wait_until(lambda: outcomes)
        for pid in served.pool.pids:  # busy or idle
            os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(ask, range(40)))
    killer.join(PATIENCE_S)
    assert not killer.is_alive()
    assert {status for status, _ in outcomes} <= {200, 424, 503}
    charged = [status for status, _ in outcomes if status in (200, 424)]
    assert {code for status, code in outcomes if status == 503} <= {"A17"}
    balance = server.call("GET", "balance", key=key).json()["analyst"]["spent"]
    assert Fraction(balance["epsilon"]) == len(charged) * PRICE
    ready(served)
    assert server.ask("SELECT COUNT(*) AS n FROM visits WHERE age > 3").status_code == 200
    assert server.call("POST", "verify").json()["holds"] is True


def test_a_question_that_takes_too_long_is_given_up(server, monkeypatch):
    """Charged, one code, and the engine is killed and replaced."""
    served = server.state.datasets["clinic"]
    ready(served)
    (before,) = served.pool.pids
    monkeypatch.setattr(served.jobs, "_settings", replace(served.settings, time_limit_s=1e-6))
    question = "SELECT AVG(age) AS a, VARIANCE(age) AS v FROM visits WHERE age < 61"
    while (found := server.ask(question)).status_code == 503:  # no engine, while a new one starts
        ready(served)
    assert (found.status_code, found.json()["code"]) == (424, "D1")
    monkeypatch.undo()
    ready(served)
    assert before not in served.pool.pids
    assert server.ask("SELECT COUNT(*) AS n FROM visits WHERE age > 4").status_code == 200


# --- the whole server --------------------------------------------------------------------------


def started(home, port, program=("-m", "discreet")):
    process = subprocess.Popen(
        [sys.executable, *program, "serve", str(home), "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def answers() -> bool:
        assert process.poll() is None, "the server ended"
        with suppress(httpx.HTTPError):
            found = httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=PATIENCE_S)
            return found.status_code == 200
        return False

    try:
        wait_until(answers)
    except BaseException:
        process.kill()
        raise
    return process


def keep_port() -> socket.socket:
    """Kept, never listened to: nobody else is given the port while the server is down."""
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", 0))
    return kept


def test_kill_the_server_under_load(tmp_path, make_dataset):
    """Every question is retried with its key until it is answered: each is paid exactly once."""
    made = make_dataset(tmp_path / "clinic")
    kept = keep_port()
    port = kept.getsockname()[1]
    process = started(made.home, port)
    answers: dict[int, dict] = {}
    url = f"http://127.0.0.1:{port}/v1/datasets/clinic/ask"

    def ask(number: int) -> None:
        headers = {"Authorization": f"Bearer {made.key}", "Idempotency-Key": f"question-{number}"}
        other = f"remark <> 'k{number}'" if number % 2 else f"age <> {number}"  # read together
        question = f"SELECT COUNT(*) AS n FROM visits WHERE age < 90 AND {other}"
        body = {"question": question, "epsilon": str(PRICE)}
        until = time.monotonic() + PATIENCE_S
        with httpx.Client(timeout=PATIENCE_S) as client:
            while time.monotonic() < until:
                try:
                    found = client.post(url, json=body, headers=headers)
                    if found.status_code == 200:
                        answers[number] = found.json()
                        return
                except httpx.HTTPError:
                    pass
                time.sleep(0.1)

    count = 24
    with ThreadPoolExecutor(8) as threads:
        pending = [threads.submit(ask, number) for number in range(count)]
        wait_until(lambda: len(answers) >= 8, pause_s=0.01)
        process.kill()  # SIGKILL, in the midst of it
        process.wait(PATIENCE_S)
        process = started(made.home, port)
        for one in pending:
            one.result(PATIENCE_S)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) in (0, -signal.SIGTERM)
    kept.close()
    assert sorted(answers) == list(range(count))
    with closing(session.open(made.home, opened=False)) as curator:
        told = curator.transcript()
        paid = {entry.id: entry for entry in told if entry.loss is not None}
        assert {int(answer["id"]) for answer in answers.values()} <= set(paid)
        assert len(paid) == count  # one charge for each question: none lost, none twice
        assert {entry.state for entry in paid.values()} == {State.ANSWERED}
        assert curator.spent.epsilon == count * PRICE
        assert curator.ledger.verify().ok


DYING = """
import os, signal
from discreet.cli import main
from discreet.ledger.account import Account

publish = Account.publish

def dying(*given):
    if {after}:
        publish(*given)
    os.kill(os.getpid(), signal.SIGKILL)

Account.publish = dying
main()
"""


@pytest.mark.parametrize("after", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_kill_the_server_while_a_counter_steps(tmp_path, make_dataset, after):
    """Before, or after, the step is stored: it is counted, drawn and paid for once."""
    made = make_dataset(tmp_path / "clinic")
    settings = {"by": ["city"], "rho": "1/500", "steps_per_unit": 1}
    with closing(session.open(made.home)) as curator:
        curator.make_release("daily", kind="counter", of="visits", **settings)
        spent = curator.spent
    kept = keep_port()
    port = kept.getsockname()[1]
    request = {
        "url": f"http://127.0.0.1:{port}/v1/datasets/clinic/releases/daily/step",
        "json": {"number": 1},
        "headers": {"Authorization": f"Bearer {made.key}"},
    }
    process = started(made.home, port, ("-c", DYING.format(after=after)))
    with pytest.raises(httpx.HTTPError):
        httpx.post(**request, timeout=PATIENCE_S)
    assert process.wait(PATIENCE_S) == -signal.SIGKILL
    (file,) = made.home.rglob("000001.counted")
    counted = file.read_text()
    process = started(made.home, port)
    for _ in range(2):
        assert httpx.post(**request, timeout=PATIENCE_S).status_code == 200
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) in (0, -signal.SIGTERM)
    kept.close()
    assert file.read_text() == counted
    assert all(check.holds for check in verify_folder(made.home / "releases" / "daily"))
    with closing(session.open(made.home, opened=False)) as curator:
        assert curator.spent == spent
        told = [entry.state for entry in curator.transcript()]
        assert told.count(State.ANSWERED) == 1
        assert len(told) == 3
