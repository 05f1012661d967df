"""Nothing leaks: by errors, by the log, by time, by size, by whether the data are there."""

from __future__ import annotations

import asyncio
import io
import json
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from patience import PATIENCE_S

from discreet.errors import LedgerRefusal, Refusal
from discreet.server.jobs import Jobs
from discreet.server.log import Log
from discreet.server.pool import Pool
from discreet.server.refusals import http_status
from discreet.server.settings import Settings

CANARY = "Q7ZANARY"
ALPHA = 1e-8
"""Chance that equal laws of time are told apart by mistake."""
N = 16
"""Questions of each kind: if all of one kind came later, p would be 2 / C(32, 16) = 3e-9."""


def differ(first: list[float], second: list[float]) -> bool:
    """The rank test of Mann and Whitney, two-sided, exact for lists without ties.

    Counts the arrangements with a rank sum as far from its mean as the one seen.
    """
    n, m = len(first), len(second)
    seen = sum(1 for a in first for b in second if a > b)
    ways = [[0] * (n * m + 1) for _ in range(n + 1)]  # ways[i][u]: i of the first placed, u wins
    ways[0][0] = 1
    for place in range(1, n + m + 1):
        for i in range(min(place, n), 0, -1):
            before = place - i  # of the second kind below this one
            if before <= m:
                shifted = ways[i - 1]
                ways[i] = [
                    ways[i][u] + (shifted[u - before] if u >= before else 0)
                    for u in range(n * m + 1)
                ]
    low = min(seen, n * m - seen)
    extreme = 2 * sum(ways[n][: low + 1])
    return extreme / math.comb(n + m, n) < ALPHA


def test_the_rank_test_has_size_and_power():
    together = [float(n) for n in range(2 * N)]
    assert not differ(together[::2], together[1::2])
    assert differ(together[:N], together[N:])
    assert differ(together[N:], together[:N])


# --- time ----------------------------------------------------------------------------------


class Stub:
    """A pool of one worker, who answers after a while or not at all."""

    ready = True
    since = 0.0

    def __init__(self) -> None:
        self.busy = asyncio.Semaphore(1)

    async def take(self):
        await self.busy.acquire()
        return self

    def give(self, _):
        self.busy.release()

    async def answer(self, question, limit):
        Stub.since = time.monotonic()
        await asyncio.sleep(self.takes)
        return self.returns


def make_paid(number: int) -> Any:
    receipt = SimpleNamespace(id=number, analyst="a")
    return SimpleNamespace(
        priced=None, data_version="", basis=None, improving=None, receipt=receipt
    )


async def timed(
    deadline_s: float, takes: float, *, works: bool, times: int, curator: Any = None
) -> list[float]:
    pool = Stub()
    pool.takes, pool.returns = takes, b"x" if works else b""
    burnt = _data_refusal()
    curator = curator or SimpleNamespace(publish=lambda paid, answer: answer, burn=burnt)
    jobs = Jobs(curator, pool, Settings(deadline_s=deadline_s), log=Log(io.StringIO()))
    found = []
    for number in range(times):
        before = time.monotonic()
        job = jobs.start(make_paid(number), "a")
        assert await job.over(PATIENCE_S)
        found.append(time.monotonic() - before)
    return found


def _data_refusal():
    from discreet.engine.protocol import describe_failure

    def burn(_):
        raise describe_failure()

    return burn


def in_turn(slow: Callable[[], float], quick: Callable[[], float]) -> tuple[list[float], ...]:
    """N of either, in turn: a machine that grows busy slows both."""
    pairs = [(slow(), quick()) for _ in range(N)]
    return [one for one, _ in pairs], [one for _, one in pairs]


def test_the_deadline_hides_how_long_it_took_and_whether_it_worked():
    def once(deadline_s: float, takes: float, *, works: bool) -> Callable[[], float]:
        return lambda: asyncio.run(timed(deadline_s, takes, works=works, times=1))[0]

    slow, quick = in_turn(once(0.12, 0.05, works=False), once(0.12, 0.0, works=True))
    assert not differ(slow, quick)
    assert min(slow + quick) >= 0.12
    # Without it, the same two are told apart.
    # (A pause of a busy machine blurs it: then it is looked at again.)
    slow, quick = once(0.0, 0.05, works=False), once(0.0, 0.0, works=True)
    assert any(differ(*in_turn(slow, quick)) for _ in range(20))


@pytest.mark.parametrize("mistake", [LedgerRefusal("L1", "x", why="x", fix="x"), ValueError()])
def test_the_deadline_covers_what_the_ledger_refuses_and_mistakes(mistake):
    def publish(*_):
        raise mistake

    curator = SimpleNamespace(publish=publish)
    took = asyncio.run(timed(0.12, 0.01, works=True, times=3, curator=curator))
    assert min(took) >= 0.12


def test_when_a_charge_is_closed_does_not_tell_how_long_it_took():
    """Prices, retries and the numbers of the next records show that it is closed."""

    def closing(takes: float) -> float:
        closed: list[float] = []

        def publish(_, answer):
            closed.append(time.monotonic() - Stub.since)
            return answer

        asyncio.run(
            timed(0.12, takes, works=True, times=1, curator=SimpleNamespace(publish=publish))
        )
        return closed[0]

    slow, quick = in_turn(lambda: closing(0.05), lambda: closing(0.0))
    assert not differ(slow, quick)
    assert min(slow + quick) > 0.05  # later than either was computed


def test_a_process_that_dies_over_a_question_is_missed_at_its_deadline_only(monkeypatch):
    """Whether there is an engine, and how many were started, is told to everybody."""
    starts: list[float] = []

    class Dying:
        alive, pid = True, 0

        def __init__(self) -> None:
            self.idle, self.dead = asyncio.Event(), asyncio.Event()
            self.idle.set()

        @classmethod
        async def start(cls, *_):
            return cls()

        async def wait(self):
            await self.dead.wait()

        async def stop(self):
            pass

    async def seen() -> None:
        pool = Pool("", size=1, memory_bytes=0, started=lambda: starts.append(1))
        pool.open()
        worker = await pool.take()
        worker.alive = False
        worker.dead.set()
        await asyncio.sleep(0.05)
        assert pool.ready
        assert len(starts) == 1
        pool.give(worker)
        assert not pool.ready
        assert await pool.take() is not worker
        assert len(starts) == 2
        await pool.close()

    monkeypatch.setattr("discreet.server.pool.Worker", Dying)
    asyncio.run(seen())


@pytest.mark.parametrize("place", ["start", "started", "wait"])
def test_a_mistake_in_keeping_a_process_ends_the_waiting_and_is_tried_again(monkeypatch, place):
    """Nobody waits for a process that may never come; who comes later finds the next."""
    told, mistakes = [], [True]

    def fail(where):
        if mistakes and where == place:
            raise ValueError("a name, perhaps")

    class Mistaken:
        def __init__(self) -> None:
            self.idle, self.alive = asyncio.Event(), True
            self.idle.set()

        @classmethod
        async def start(cls, *_):
            await asyncio.sleep(0.01)
            fail("start")
            return cls()

        async def wait(self):
            await asyncio.sleep(0.05)
            fail("wait")
            await asyncio.Event().wait()

        async def stop(self):
            self.alive = False

    async def seen() -> None:
        pool = Pool("", size=1, memory_bytes=0, started=lambda: fail("started"), failed=told.append)
        curator = SimpleNamespace(publish=lambda paid, answer: answer)
        jobs = Jobs(curator, pool, Settings(deadline_s=0), log=Log())
        pool.open()
        if place == "wait":
            await pool.take()  # the only one is taken, and lost without an end
        with pytest.raises(Refusal) as refused:
            await jobs.start(make_paid(1), "ada").wait(PATIENCE_S)
        assert (refused.value.code, http_status(refused.value)) == ("A17", 503)
        assert "failed" in refused.value.what
        assert "stays paid" in refused.value.why
        if place != "wait":  # there the next is started, to be lost as well
            assert await jobs.compare(b"turn") == b""
        assert told
        assert {type(one) for one in told} == {ValueError}
        mistakes.clear()
        async with asyncio.timeout(PATIENCE_S):
            assert (await pool.take()).alive  # replaced
        await pool.close()

    monkeypatch.setattr("discreet.server.pool.Worker", Mistaken)
    asyncio.run(seen())


def test_an_engine_is_free_at_the_deadline_and_not_before():
    """Otherwise the second of two questions would end when the first has ended, plus its own."""

    async def pair() -> list[float]:
        pool = Stub()
        pool.takes, pool.returns = 0.01, b"x"
        curator = SimpleNamespace(publish=lambda paid, answer: answer)
        jobs = Jobs(curator, pool, Settings(deadline_s=0.1), log=Log())
        before = time.monotonic()
        started = []
        for number in range(3):
            started.append(jobs.start(make_paid(number), "a"))
        ends = []
        for job in started:
            assert await job.over(PATIENCE_S)
            ends.append(time.monotonic() - before)
        return ends

    for place, end in enumerate(asyncio.run(pair()), start=1):
        assert end >= 0.1 * place


def test_timing_of_success_and_failure_under_a_deadline(patient):
    """Real engines: one reads its file, the other cannot; both answers leave at the same times."""

    def times(name: str) -> list[float]:
        found = []
        for n in range(N + 1):
            question = f"SELECT COUNT(*) AS n FROM visits WHERE age < {n + 3}"
            before = time.monotonic()
            answer = patient.ask(question, dataset=name)
            found.append(time.monotonic() - before)
            assert answer.status_code == (200 if name == "clinic" else 424)
        return found[1:]  # the first opens the file

    with ThreadPoolExecutor(2) as threads:
        works, fails = threads.map(times, ("clinic", "damaged"))
    assert not differ(works, fails)
    assert min(works + fails) >= patient.state.datasets["clinic"].settings.deadline_s


def test_an_answer_is_not_seen_before_its_deadline(patient):
    """Not by its number, not in the transcript, not by asking again."""
    # A machine that is too busy to look even once within the deadline looks at another.
    assert any(_looked_at_before_its_deadline(patient, age) for age in range(90, 100))


def _looked_at_before_its_deadline(patient, age: int) -> int:
    deadline = patient.state.datasets["clinic"].settings.deadline_s
    question = f"SELECT COUNT(*) AS n FROM visits WHERE age < {age}"
    body = {"question": question, "epsilon": "1/50", "wait_s": 0}
    before = time.monotonic()
    number = patient.call("POST", "ask", body).json()["id"]
    looks = 0
    while True:
        answer = patient.call("GET", f"answers/{number}")
        entry = patient.call("GET", "transcript").json()["entries"][0]
        job = patient.call("GET", f"jobs/{number}").json()
        again = patient.call("POST", "ask", body)
        if time.monotonic() - before >= deadline:
            break
        looks += 1
        assert answer.status_code == 404
        assert (entry["state"], entry["answer"]) == ("open", None)
        assert job["state"] in ("queued", "running")
        assert again.status_code == 202
    shown = patient.call("POST", "ask", {**body, "wait_s": 30})
    assert shown.status_code == 200
    assert patient.call("GET", f"answers/{number}").json()["rows"] == shown.json()["rows"]
    return looks


# --- canaries --------------------------------------------------------------------------------


def test_error_canary(server, fresh):
    """A file that fails while it is read: charged, one code, the same bytes whatever was asked."""
    key = server.person(dataset="damaged")
    bodies = set()
    grouped = "SELECT city, SUM(age) AS s, AVG(age) AS m FROM visits GROUP BY city"
    for question in [*fresh(2), grouped]:
        failed = server.ask(question, key=key, dataset="damaged")
        assert (failed.status_code, failed.json()["code"]) == (424, "D1")
        assert CANARY not in failed.text
        assert "arquet" not in failed.text
        bodies.add(failed.content)
    assert len(bodies) == 1
    balance = server.call("GET", "balance", key=key, dataset="damaged").json()
    assert balance["analyst"]["spent"]["epsilon"] == "3/50"
    told = server.call("GET", "transcript", key=key, dataset="damaged").json()["entries"]
    assert {entry["state"] for entry in told} == {"burnt"}
    number = told[0]["id"]
    kept = server.call("GET", f"answers/{number}", key=key, dataset="damaged")
    assert (kept.status_code, kept.json()["code"]) == (424, "D1")


def test_log_canary(server, monkeypatch):
    """No key, no question, no name, no value, no exception's text, no path with a name in it."""
    key = server.person()
    word = "kanarienvogel"
    server.ask(f"SELECT COUNT(*) AS {word} FROM visits", key=key)
    server.ask(f"SELECT {word} FROM visits", key=key)
    server.call("GET", f"answers/{word}", key=key)
    server.call("GET", f"/{word}", key=key)
    server.call("GET", f"balance?analyst={word}", headers={"X-Word": word})
    server.call("POST", "analysts", {"name": word})
    server.client.request("GET", "/v1/me", headers={"Authorization": f"Bearer {word}"})
    server.client.request(word.upper(), "/v1/me")
    server.ask("SELECT COUNT(*) AS n FROM visits WHERE age < 9", dataset="damaged")
    served = server.state.datasets["clinic"]
    monkeypatch.setattr(type(served), "quote", _explodes)
    failed = server.call("POST", "explain", {"question": word, "epsilon": "1"}, key=key)
    assert (failed.status_code, failed.json()["code"]) == (500, "A18")
    assert CANARY not in failed.text
    lines = server.log.getvalue().splitlines()
    events = [json.loads(line) for line in lines]
    assert {"started", "request", "mistake"} <= {event["event"] for event in events}
    assert any(event.get("kind") == "ZeroDivisionError" for event in events)
    text = "\n".join(lines).lower()
    secrets = (
        word,
        CANARY,
        key[-64:],
        server.datasets["clinic"].key[-64:],
        "select",
        "division by",
    )
    for secret in secrets:
        assert secret.lower() not in text
    assert key.split("_")[1] in text  # the public part tells who it was


def _explodes(*_):
    raise ZeroDivisionError(f"division by {CANARY}")


def test_metrics_are_public_quantities(server):
    found = server.call("GET", "/metrics")
    assert found.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    text = found.text
    assert "discreet_ready 1" in text
    assert CANARY not in text
    names = {line.split("{")[0].split(" ")[0] for line in text.splitlines() if line[0] != "#"}
    assert names <= {
        "discreet_requests_total",
        "discreet_refusals_total",
        "discreet_questions_total",
        "discreet_questions_waiting",
        "discreet_worker_starts_total",
        "discreet_ready",
    }


# --- the data unplugged ------------------------------------------------------------------------

QUESTIONS = [
    ("SELECT COUNT(*) AS n FROM visits WHERE age < 77", "1/51"),
    ("SELECT SUM(income) AS s FROM visits", "1/50"),
    ("SELECT patient FROM visits", "1/50"),
    ("SELECT COUNT(*) AS n FROM visit", "1/50"),
    ("SELECT COUNT(*) AS n FROM visits WHERE age < 79", "1/2"),  # told by no other test's answers
    ("SELECT remark, COUNT(*) AS n FROM visits GROUP BY remark", "1/50"),
]


def decisions(server, dataset):
    """What is said of each question before any data could be read, and what it cost."""
    key = server.person(name="prudence", dataset=dataset, limit={"epsilon": "1/10"})
    found = []
    for question, epsilon in QUESTIONS:
        body = {"question": question, "epsilon": epsilon}
        explained = server.call("POST", "explain", body, key=key, dataset=dataset)
        asked = server.call("POST", "ask", {**body, "wait_s": 0}, key=key, dataset=dataset)
        told = asked.status_code if asked.status_code == 202 else asked.json()
        said = explained.json()
        said.pop("choices", None)  # what was released before, which is public
        found.append((explained.status_code, said, told))
    spent = server.call("GET", "balance", key=key, dataset=dataset).json()["analyst"]["spent"]
    return found, spent


def test_refusals_with_the_data_unplugged(server):
    """Decisions, prices and charges are the same without the file."""
    plugged, unplugged = (decisions(server, name) for name in ("clinic", "missing"))
    for one, other in zip(plugged[0], unplugged[0], strict=True):
        assert one == other
    assert plugged[1] == unplugged[1]
    assert [told if told == 202 else told["code"] for _, _, told in plugged[0]] == [
        *(202, "Q1", "Q12", "Q6", "B2", "Q42"),
    ]
    failed = server.ask("SELECT COUNT(*) AS n FROM visits WHERE age < 7", dataset="missing")
    assert (failed.status_code, failed.json()["code"]) == (424, "D1")


@pytest.mark.parametrize("name", ["clinic", "damaged", "missing"])
def test_the_parent_never_opens_a_private_source(server, name):
    assert server.state.datasets[name].curator.engine._private is None
