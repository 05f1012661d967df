"""Questions of many analysts that one statement reads: sent at once, each paid and told alone."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest
from patience import PATIENCE_S, wait_until

from discreet.engine.protocol import describe_failure
from discreet.server import jobs as under_test
from discreet.server.jobs import Job, Jobs
from discreet.server.log import Log
from discreet.server.pool import Gone, Worker
from discreet.server.settings import Settings

PRICE = Fraction(4)
"""Three rows of one person: the noise is 20 or more with a chance of 3e-12."""
COUNT = 6
"""How many wait, in what follows: of which each has its own words."""


class Line:
    """A pool of engines that answer what they are told to; notes what they were sent, and when."""

    ready = True

    def __init__(self, answer: Callable[[list[int]], Any], engines: int) -> None:
        self.busy = asyncio.Semaphore(engines)
        self.sent: list[list[int]] = []
        self.taken: list[float] = []
        self.chosen: list[float] = []  # when it was, just before it is sent
        self._answer = answer

    async def take(self) -> Line:
        await self.busy.acquire()
        self.taken.append(time.monotonic())
        return self

    def give(self, _: object) -> None:
        self.busy.release()

    async def answer(self, sent: bytes, limit: float) -> bytes:
        content = json.loads(sent)
        several = content.get("gathered", {}).get("questions", [content])
        self.sent.append([int(one["data_version"]) for one in several])
        found = self._answer(self.sent[-1])
        return found if isinstance(found, bytes) else json.dumps(found).encode()


def gather_all(_: object, waiting: list[Any]) -> tuple[Any, tuple[int, ...]]:
    """As if one statement read all of them but the last."""
    gathered = SimpleNamespace(plan=None, shape=(), write_chosen=list)
    return gathered, tuple(range(len(waiting) - 1))


def work(
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[list[int]], Any],
    *,
    gather: Callable[..., Any] = gather_all,
    deadline_s: float = 0.0,
    engines: int = 1,
) -> tuple[Line, list[Any], list[float], str]:
    """What was sent, how each of those who wait ended, after how long, and what was logged."""
    log = io.StringIO()
    chosen: list[float] = []

    def choose(*given: Any) -> Any:
        found = gather(*given)
        chosen.append(time.monotonic())
        return found

    monkeypatch.setattr(under_test, "choose_gathered", choose)

    async def ask() -> tuple[Line, list[Any], list[float], str]:
        line = Line(answer, engines)
        line.chosen = chosen
        curator: Any = SimpleNamespace(publish=publish, burn=lambda _: describe_failure())
        jobs = Jobs(curator, line, Settings(deadline_s=deadline_s), log=Log(log))  # type: ignore[arg-type]
        before, took = time.monotonic(), []
        waiting: list[Job] = [jobs.start(make_paid(number), "a") for number in range(COUNT)]
        for job in waiting:
            job.ended.add_done_callback(lambda _: took.append(time.monotonic() - before))
        for job in waiting:
            assert await job.over(PATIENCE_S)
        assert jobs.waiting == 0
        await jobs.close(PATIENCE_S)
        assert line.busy._value == engines
        return line, [await job.ended for job in waiting], took, log.getvalue()

    return asyncio.run(ask())


def make_paid(number: int) -> Any:
    receipt = SimpleNamespace(id=number, analyst="a")
    return SimpleNamespace(
        priced=None, data_version=str(number), basis=None, improving=None, receipt=receipt
    )


def publish(paid: Any, answer: bytes) -> str:
    return f"{paid.data_version} {answer.decode()}"


TOGETHER = [0, 1, 2, 3, 4]
ALONE = [f"{number} alone" for number in range(COUNT)]


def test_those_that_are_read_together_are_told_each_their_own(monkeypatch):
    def answer(sent):
        return b"alone" if len(sent) == 1 else [f"of {number}" for number in sent]

    line, ended, _, logged = work(monkeypatch, answer)
    assert line.sent == [TOGETHER, [5]]
    assert ended == [*(f"{number} of {number}" for number in TOGETHER), "5 alone"]
    assert not logged


def test_what_was_not_answered_with_others_is_asked_alone_and_fails_alone(monkeypatch):
    def answer(sent):
        return b"" if sent == [2] else b"alone" if len(sent) == 1 else ["x", "x", "", "", "x"]

    line, ended, _, _ = work(monkeypatch, answer)
    assert line.sent == [TOGETHER, [5], [2], [3]]
    assert [str(one)[:2] for one in ended] == ["0 ", "1 ", "D1", "3 ", "4 ", "5 "]
    assert ended[3] == "3 alone"


@pytest.mark.parametrize("reply", [b"", b"something else", ["x"] * 4])
def test_an_engine_that_fails_over_several_is_asked_for_each(monkeypatch, reply):
    line, ended, _, logged = work(monkeypatch, lambda s: b"alone" if len(s) == 1 else reply)
    assert (line.sent[0], sorted(line.sent[1:])) == (TOGETHER, [[n] for n in range(COUNT)])
    assert ended == ALONE
    assert not logged


def test_an_engine_that_dies_over_several_is_asked_for_each(monkeypatch):
    def answer(sent):
        if len(sent) > 1:
            raise Gone
        return b"alone"

    assert work(monkeypatch, answer)[1] == ALONE


def test_a_mistake_in_choosing_leaves_everybody_alone(monkeypatch):
    def fail(*_):
        raise ValueError("a name, perhaps")

    line, ended, _, logged = work(monkeypatch, lambda _: b"alone", gather=fail)
    assert line.sent == [[n] for n in range(COUNT)]
    assert ended == ALONE
    assert "ValueError" in logged
    assert "a name" not in logged


@pytest.mark.parametrize("engines", [1, 3])
def test_all_leave_at_a_deadline_and_who_is_asked_again_at_a_later_one(monkeypatch, engines):
    """Also where another engine is free: nobody's failure is seen between two multiples."""
    deadline_s = 0.25

    def answer(sent):
        return b"alone" if len(sent) == 1 else ["x", "x", "", "x", "x"]

    line, ended, took, _ = work(monkeypatch, answer, deadline_s=deadline_s, engines=engines)
    assert ended[2] == "2 alone"
    assert line.sent == [TOGETHER, [5], [2]]
    assert min(took) >= deadline_s
    assert took[5] >= 2 * deadline_s  # the one that was asked again
    first, second, third = line.taken
    assert third - line.chosen[0] >= deadline_s
    if engines == 1:  # the engine is free at multiples alone
        assert min(second - first, third - second) >= deadline_s
        assert took[5] >= 3 * deadline_s


# --- real engines --------------------------------------------------------------------------------


def ask_many(server, key: str, ages: range) -> list[tuple[int, Any]]:
    def ask(age: int) -> tuple[int, Any]:
        question = f"SELECT COUNT(*) AS n FROM visits WHERE age < {age} AND city <> 'Cork'"
        found = server.ask(question, epsilon=str(PRICE), key=key)
        return found.status_code, found.json()

    with ThreadPoolExecutor(len(ages)) as threads:
        return list(threads.map(ask, ages))


@pytest.mark.parametrize("killed", [False, True])
def test_many_that_ask_at_once_are_read_together_and_each_pays(server, monkeypatch, killed):
    """Also where the engine is killed over all of them: nothing is lost, and nothing paid twice."""
    served, key, real, sizes = server.state.datasets["clinic"], server.person(), Worker.answer, []
    wait_until(lambda: served.pool.ready)

    async def answer(self, sent, limit):
        several = len(json.loads(sent).get("gathered", {}).get("questions", [1]))
        if not sizes:  # the first: the others come meanwhile
            while served.jobs.waiting < 16:
                await asyncio.sleep(0.01)
        sizes.append(several)
        if killed and several > 1 and max(sizes[:-1]) == 1:
            os.kill(self.pid, signal.SIGKILL)
        return await real(self, sent, limit)

    monkeypatch.setattr(Worker, "answer", answer)
    ages = range(30, 46) if killed else range(50, 66)
    told = ask_many(server, key, ages)
    assert [status for status, _ in told] == [200] * 16
    assert max(sizes) >= 8
    assert sizes.count(1) >= (8 if killed else 1)
    for age, (_, answer_) in zip(ages, told, strict=True):
        assert abs(answer_["rows"][0][0] - 20 * age) < 20  # each its own
    assert len({answer_["id"] for _, answer_ in told}) == 16
    spent = server.call("GET", "balance", key=key).json()["analyst"]["spent"]
    assert Fraction(spent["epsilon"]) == 16 * PRICE
    assert server.call("POST", "verify").json()["holds"] is True
