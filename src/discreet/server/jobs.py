"""Paid questions on their way: queued, computed, published, shown at the deadline.

A job has the number of its charge.  It runs on whether or not anybody waits for
it, so a client that goes away loses nothing; whoever asks the same question
meanwhile joins it.  What a job tells of itself while it runs is how long it has
run and how long it may, which are public.

Where several wait for an engine that one statement can read, they are sent to it
together; each is then closed by itself.  What was not answered so is asked alone,
and what becomes of it is its own.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

from starlette.concurrency import run_in_threadpool

from discreet.curate.curator import Curator
from discreet.curate.gathered import choose_gathered
from discreet.curate.steps import Paid
from discreet.errors import Refusal
from discreet.price.gathering import FEWEST
from discreet.release.answer import Answer
from discreet.server.gathered import read_gathered, write_gathered
from discreet.server.limits import Busy
from discreet.server.log import Log
from discreet.server.pool import Gone, Pool, Worker
from discreet.server.refusals import failed_refusal, not_computed, not_ready
from discreet.server.settings import Settings
from discreet.server.worker import write_paid

_CLOSING_S = 0.05
_REMEMBERED = 1000
"""Finished jobs whose end is known without asking the ledger."""
MOST_TOGETHER = 64
"""How many questions are sent to an engine at once."""


@dataclass(frozen=True, slots=True)
class Status:
    """What may be said of a job."""

    id: int
    analyst: str
    state: str
    """``queued``, ``running``; then ``done``, ``failed`` or ``interrupted``."""
    position: int | None = None
    elapsed_s: float = 0.0
    limit_s: float = 0.0
    again: bool = False
    """Whether it is one question of a statement, which is asked again when this has ended."""


@dataclass(slots=True, eq=False)
class Job:
    """One paid question under way."""

    id: int
    analyst: str
    paid: Paid
    state: str = "queued"
    alone: bool = False
    """Whether it is sent by itself: it was not answered among others."""
    since: float = field(default_factory=time.monotonic)
    ended: asyncio.Future[Answer | Refusal] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    question: bytes = b""
    """As it is sent to an engine."""
    reading: asyncio.Future[Reading] = field(default_factory=asyncio.Future)
    """What becomes of it in an engine, once there is one for it."""

    async def over(self, most_s: float) -> bool:
        """Whether it has ended; waits for it, but not longer."""
        await asyncio.wait([self.ended], timeout=most_s)
        return self.ended.done()

    async def wait(self, most_s: float) -> Answer | None:
        """The answer, None if it takes longer, or the refusal it ended with."""
        if not await self.over(most_s):
            return None
        outcome = self.ended.result()
        if isinstance(outcome, Refusal):
            raise outcome
        return outcome


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """Jobs that an engine computes at once, since when, and what it answers to each."""

    jobs: tuple[Job, ...]
    sent: bytes
    since: float = field(default_factory=time.monotonic)
    answers: asyncio.Future[list[bytes]] = field(default_factory=asyncio.Future)

    def take_answer(self, answer: bytes) -> None:
        """What came back, for all of them; empty if nothing did."""
        alone = len(self.jobs) == 1
        self.answers.set_result([answer] if alone else read_gathered(answer, len(self.jobs)))

    async def find_answer(self, job: Job) -> bytes:
        """What is answered to one of them, once it is; empty if nothing is."""
        found = await asyncio.shield(self.answers)
        return found[self.jobs.index(job)]


class Jobs:
    """The jobs of one dataset."""

    def __init__(
        self,
        curator: Curator,
        pool: Pool,
        settings: Settings,
        *,
        log: Log,
        ended: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._curator = curator
        self._pool = pool
        self._settings = settings
        self._log = log
        self._ended = ended
        self._current: dict[int, Job] = {}
        self._queue: deque[Job] = deque()
        self._sending = False
        self._past: OrderedDict[int, Status] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False

    @property
    def waiting(self) -> int:
        """How many are not finished."""
        return len(self._current)

    def admit(self) -> None:
        """Refuse, before anything is charged, what could not be computed soon."""
        if self._closing:
            raise not_ready("the server is stopping.")
        if not self._pool.ready:
            raise not_ready("the engine of this dataset is not ready.")
        if self.waiting >= self._settings.queue:
            raise Busy("too many questions are waiting for this dataset.", 2)

    def find(self, number: int) -> Job | None:
        """The job under way with that number."""
        return self._current.get(number)

    def status(self, number: int) -> Status | None:
        """Where a job stands that is under way or ended lately."""
        job = self._current.get(number)
        if job is None:
            return self._past.get(number)
        queued = [j for j in self._current.values() if j.state == "queued"]
        return Status(
            job.id,
            job.analyst,
            job.state,
            queued.index(job) if job in queued else None,
            time.monotonic() - job.since,
            self._settings.time_limit_s,
        )

    def start(self, paid: Paid, analyst: str) -> Job:
        """The job of a paid question: the one under way, or a new one."""
        number = paid.receipt.id
        found = self._current.get(number)
        if found is not None:
            return found
        job = Job(number, analyst, paid)
        self._current[number] = job
        self._run(self._work(job))
        return job

    def _run(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self, job: Job) -> None:
        state: str = "interrupted"
        ended: Answer | Refusal = not_computed(
            "the server stopped before this question was computed."
        )
        try:
            state, ended = await self._compute(job)
        except Gone:
            told = "the engine of this dataset has failed, and did not compute this question."
            ended = not_computed(told)
        except Exception as error:
            self._log.mistake(error)
            state, ended = "failed", failed_refusal()
        finally:
            del self._current[job.id]
            self._past[job.id] = Status(job.id, job.analyst, state)
            while len(self._past) > _REMEMBERED:
                self._past.popitem(last=False)
            job.ended.set_result(ended)
            self._ended(state)

    async def _compute(self, job: Job) -> tuple[str, Answer | Refusal]:
        """Compute and publish; leave at a multiple of the deadline."""
        job.question = write_paid(job.paid)
        reading = await self._wait_in_line(job)
        answer = await reading.find_answer(job)
        await self._wait_for_closing(reading)
        if not answer and len(reading.jobs) > 1:  # perhaps by another's fault: nothing is closed
            await self._wait_for_deadline(reading)
            job.alone = True
            reading = await self._wait_in_line(job)
            answer = await reading.find_answer(job)
            await self._wait_for_closing(reading)
        found = await self._publish(job.paid, answer)
        await self._wait_for_deadline(reading)
        return found

    async def _wait_for_closing(self, reading: Reading) -> None:
        """Prices, retries and the numbers of later records tell whether a charge is closed."""
        deadline_s = self._settings.deadline_s
        await asyncio.sleep(_until(reading.since, deadline_s, before_s=_find_closing_s(deadline_s)))

    async def _wait_for_deadline(self, reading: Reading) -> None:
        await asyncio.sleep(_until(reading.since, self._settings.deadline_s))

    # --- engines -----------------------------------------------------------------------------

    async def _wait_in_line(self, job: Job) -> Reading:
        """The reading in which it is computed, once there is an engine for it."""
        job.state, job.reading = "queued", asyncio.get_running_loop().create_future()
        self._queue.append(job)
        if not self._sending:
            self._sending = True
            self._run(self._send())
        return await job.reading

    async def _send(self) -> None:
        """Give what waits to engines as they become free, until nothing waits."""
        try:
            while self._queue:
                worker = await self._pool.take()
                try:
                    reading = await self._choose()
                except BaseException:
                    self._pool.give(worker)
                    raise
                self._run(self._ask_worker(worker, reading))
        except Exception as error:  # nobody waits for what does not come
            while self._queue:
                self._queue.popleft().reading.set_exception(error)
        finally:
            self._sending = False

    async def _choose(self) -> Reading:
        """The first in line, with those that one statement reads with it."""
        first = self._queue[0]
        near = [job for job in islice(self._queue, MOST_TOGETHER) if not job.alone]
        jobs: tuple[Job, ...] = (first,)
        sent = first.question
        if not first.alone and len(near) >= FEWEST:
            jobs, sent = await run_in_threadpool(self._gather, near)
        reading = Reading(jobs, sent)
        for job in jobs:
            self._queue.remove(job)
            job.state = "running"
            job.reading.set_result(reading)
        return reading

    def _gather(self, waiting: list[Job]) -> tuple[tuple[Job, ...], bytes]:
        """The first and those that are read with it; a mistake leaves it alone."""
        try:
            found = choose_gathered(self._curator, [job.paid for job in waiting])
        except Exception as error:
            self._log.mistake(error)
            found = None
        if found is None:
            return (waiting[0],), waiting[0].question
        gathered, places = found
        jobs = tuple(waiting[place] for place in places)
        return jobs, write_gathered(gathered, [job.question for job in jobs])

    async def _ask_worker(self, worker: Worker, reading: Reading) -> None:
        """What an engine process answers; it is free again when the answers leave."""
        try:
            answer = b""
            with suppress(Gone):
                answer = await worker.answer(reading.sent, self._settings.time_limit_s)
            reading.take_answer(answer)
            await self._wait_for_closing(reading)
            await self._wait_for_deadline(reading)
        except Exception as error:
            reading.answers.set_exception(error)
        finally:
            self._pool.give(worker)

    async def _publish(self, paid: Paid, answer: bytes) -> tuple[str, Answer | Refusal]:
        ended = await run_in_threadpool(self._close, paid, answer)
        return ("failed" if isinstance(ended, Refusal) else "done"), ended

    async def compare(self, turn: bytes) -> bytes:
        """A comparison of a run, by an engine process; told at a multiple of the deadline."""
        try:
            worker = await self._pool.take()
        except Gone:
            return b""
        started = time.monotonic()
        try:
            try:
                answer = await worker.answer(turn, self._settings.time_limit_s)
            except Gone:
                answer = b""
            await asyncio.sleep(_until(started, self._settings.deadline_s))
        finally:
            self._pool.give(worker)
        return answer

    def _close(self, paid: Paid, answer: bytes) -> Answer | Refusal:
        """Publish, or burn: either way the charge is closed before anything is said.

        What the ledger refuses, and a mistake, wait for the deadline like an answer.
        """
        try:
            return self._curator.publish(paid, answer) if answer else self._curator.burn(paid)
        except Refusal as refusal:  # the ledger's: the charge stands, nothing was shown
            return refusal
        except Exception as error:
            self._log.mistake(error)
            return failed_refusal()

    async def close(self, grace_s: float) -> None:
        """Finish what is under way, or leave it to be resumed: charged, and shown to nobody."""
        self._closing = True
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=grace_s)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _until(started: float, deadline_s: float, *, before_s: float = 0.0) -> float:
    """Seconds until ``before_s`` before the next multiple of the deadline since ``started``."""
    if deadline_s <= 0:
        return 0.0
    elapsed = time.monotonic() - started + before_s
    return math.ceil(elapsed / deadline_s) * deadline_s - elapsed


def _find_closing_s(deadline_s: float) -> float:
    """How long before the deadline a charge is closed: about what the ledger takes to do it."""
    return min(_CLOSING_S, deadline_s / 5)
