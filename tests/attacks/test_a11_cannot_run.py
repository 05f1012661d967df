"""A11: whatever is offered or asked gets an answer or a refusal; what cannot run is free."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from dataclasses import replace
from itertools import cycle, islice
from types import SimpleNamespace
from typing import Any

import pytest
from anyio import CapacityLimiter
from test_curate import clinic

from discreet.engine.duckdb import engine
from discreet.errors import Refusal
from discreet.server.dataset import EXPLAINED_AT_ONCE, Dataset
from discreet.server.limits import Busy, Concurrency

AMOUNTS = ["1e-24", "1e-20", "1e-9", "0.3", "17", "1025", "1e6"]
FAILURES = [None, "0", "1e-300", "1e-30", "1e-9"]
ASKED = [
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT street, COUNT(*) AS n FROM visits GROUP BY street",
    "SELECT MEDIAN(age), AVG(cost) FROM visits",
    "SELECT TOP_K(cost, 2) FROM visits WHERE cost IN (1.5, 2.25)",
]


def price_all(asked: str, names: tuple[str, ...], failures: int = len(FAILURES)) -> None:
    """Each amount of each offer, with so many of the failures, in turn."""
    with clinic() as curator:
        for name in names:
            turns = cycle(FAILURES)
            for amount in AMOUNTS:
                for failure in islice(turns, failures):
                    with suppress(Refusal):
                        curator.price(asked, **{name: amount}, delta=failure)


@pytest.mark.parametrize("asked", ASKED)
def test_every_offer_is_answered_or_refused(asked: str) -> None:
    """ZeroDivisionError at epsilon = 1e-20 with delta = 1e-300."""
    price_all(asked, ("epsilon", "rho"))
    price_all(asked, ("within",), failures=2)  # each price is searched for among many


@pytest.mark.soak
@pytest.mark.parametrize("asked", ASKED)
def test_every_accuracy_is_answered_or_refused_with_every_failure(asked: str) -> None:
    price_all(asked, ("within",))


def test_chosen_decimals_can_become_arrow() -> None:
    with clinic() as curator:
        answer = curator.ask(ASKED[-1], epsilon=3)
        chosen = answer.to_arrow().column(0).to_pylist()[0]
        assert set(chosen) <= {1.5, 2.25}
        assert answer.to_arrow("0.95").num_rows == 1
        assert answer.to_polars().height == 1


@pytest.mark.parametrize(
    "asked",
    [
        "SELECT NULL AS k, COUNT(*) AS n FROM visits GROUP BY NULL",
        "SELECT MODE(NULL) FROM visits",
        "SELECT TOP_K(NULL, 3) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE city IN ()",
        "SELECT city, COUNT(*) FROM visits WHERE city = 'x' AND city = 'y' GROUP BY city",
        "SELECT COUNT(DISTINCT NULL) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE NULL",
        "SELECT CASE WHEN age > 3 THEN NULL ELSE NULL END AS k, COUNT(*) FROM visits GROUP BY 1",
    ],
)
def test_what_cannot_run_is_not_charged(asked: str) -> None:
    with clinic() as curator:
        try:
            curator.ask(asked, epsilon=1)
        except Refusal:
            assert curator.spent.epsilon == 0
        else:
            assert curator.spent.epsilon == 1


def test_few_questions_are_explained_at_once_and_no_key_has_all_of_them() -> None:
    """Forty /explain froze the server: each took a thread, and they took turns with everything."""
    dataset = SimpleNamespace(
        settings=SimpleNamespace(time_limit_s=600.0),
        concurrency=Concurrency(30),
        _explaining=CapacityLimiter(1),
    )
    finish = threading.Event()
    begun: list[int] = []

    def work() -> int:
        begun.append(1)
        finish.wait()
        return len(begun)

    async def storm() -> None:
        dataset._explaining = CapacityLimiter(EXPLAINED_AT_ONCE)
        tasks = [
            asyncio.create_task(Dataset.explain(dataset, work, "key"))  # type: ignore[arg-type]
            for _ in range(40)
        ]
        refused = 0
        while len(begun) < EXPLAINED_AT_ONCE or refused < 10:
            await asyncio.sleep(0.01)  # the loop goes round while they work
            refused = sum(t.done() and isinstance(t.exception(), Busy) for t in tasks if t.done())
        at_once = len(begun)
        finish.set()  # before anything is claimed: a failure must not wait for them
        assert at_once == EXPLAINED_AT_ONCE
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert sum(isinstance(found, int) for found in done) == 30

    asyncio.run(storm())


def test_explaining_has_a_time_limit() -> None:
    finish = threading.Event()

    async def wait() -> None:
        dataset = SimpleNamespace(
            settings=SimpleNamespace(time_limit_s=0.01),
            concurrency=Concurrency(1),
            _explaining=CapacityLimiter(1),
        )
        for _ in range(2):  # and the key may ask again
            with pytest.raises(Busy):
                await Dataset.explain(dataset, finish.wait, "key")  # type: ignore[arg-type]
        finish.set()

    asyncio.run(wait())


def test_the_very_statement_that_will_run_is_bound_before_the_charge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """160 OR terms were charged, and then the engine could not read its own statement."""
    write = engine.compile_plan

    def unreadable(*arguments: Any) -> Any:
        return replace(write(*arguments), text="SELECT no_such_function(3) FROM visits")

    monkeypatch.setattr(engine, "compile_plan", unreadable)
    with clinic() as curator:
        for asked in ASKED:
            with pytest.raises(Refusal):
                curator.ask(asked, epsilon="0.3", delta="1e-9")
        assert curator.spent.epsilon == curator.spent.rho == 0
