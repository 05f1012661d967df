"""One dataset as it is served: its curator, its engine processes, its questions under way.

The parent process keeps the account and plans; it never opens a private source.
"""

from __future__ import annotations

import asyncio
import json
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

from discreet.curate.choosing import Chosen, choose
from discreet.curate.interviews import InterviewRun, Reply
from discreet.curate.learning import (
    LearningRun,
    check_question,
    open_learning,
    plan_learning,
)
from discreet.curate.quote import Quote
from discreet.curate.reports import (
    QualityReport,
    RobustMedian,
    make_middle,
    release_middle,
    report_quality,
)
from discreet.curate.runs import Run, Told
from discreet.curate.session import Session
from discreet.curate.steps import Paid, PaidStatement
from discreet.curate.together import PaidBatch, finish_batch, pay_batch, recall_batch
from discreet.engine.protocol import describe_failure
from discreet.errors import AccessRefusal, InvalidParameter
from discreet.ledger import Account, Entry, State
from discreet.ledger.admission import check_access
from discreet.ledger.keys import AUDITOR, CURATOR, Grant, nothing_here
from discreet.publication.told import Told as Released
from discreet.question.sql import write_question_text
from discreet.question.statement import Statement
from discreet.release import record
from discreet.release.answer import Answer
from discreet.release.combined import Combined
from discreet.release.derived import Derived
from discreet.release.record import answer_from_bytes
from discreet.server import idempotency
from discreet.server.cache import AnswerCache, CacheKey
from discreet.server.comparing import (
    OpenRuns,
    write_batch,
    write_choice,
    write_median,
    write_quality,
    write_stage,
)
from discreet.server.idempotency import IdempotencyKeys, fingerprint
from discreet.server.jobs import Job, Jobs, Status
from discreet.server.limits import Busy, Concurrency, Rate
from discreet.server.log import Log
from discreet.server.metrics import Metrics
from discreet.server.models import (
    Ask,
    AskAll,
    AskInterview,
    AskRun,
    AskRunMany,
    Choose,
    Learn,
    MakeRelease,
    MakeReleases,
    MedianWanted,
    QualityChecks,
    Watch,
)
from discreet.server.offers import Defaults
from discreet.server.pool import Pool
from discreet.server.readings import write_words
from discreet.server.saved import SavedQuestions
from discreet.server.settings import Settings
from discreet.server.works import Works

T = TypeVar("T")
W = TypeVar("W")
R = TypeVar("R", bound=Run | InterviewRun)

_NO_ANSWERS = (
    b'{"Batch"',
    b'{"Chosen"',
    b'{"Aggregated"',
    b'{"Quality"',
    b'{"Median"',
    b'{"measurements"',
)
"""How what is stored begins, where it is no answer to a question."""

REQUESTS = "requests.sqlite"
"""Beside the ledger: the idempotency keys that were used."""

SAVED = "saved.sqlite"
"""Beside it: the questions that people keep."""

EXPLAINED_AT_ONCE = 2
"""How many questions are explained at a time, of all keys; more wait in line."""
PAID_AT_ONCE = 16
"""How many questions are parsed, priced and charged at a time, of all keys: charges that meet share
their wait for the disk."""

RUN_AT_ONCE = 4
"""How many questions of runs are under way at a time, of all keys."""

_STATES = {State.ANSWERED: "done", State.BURNT: "failed", State.OPEN: "interrupted"}


def _with_canonical_text(answer: Answer) -> Answer:
    """The answer without the words of who paid for it: what they wrote beside it is theirs."""
    question = answer.priced.question
    plain = replace(question, text=write_question_text(question))
    return replace(answer, priced=replace(answer.priced, question=plain))


def write_asked(part: Paid | Answer) -> bytes:
    """What an answer was to, as it is kept for those who did not pay for it."""
    return zlib.compress(json.dumps(record.to_json(part.priced)).encode(), 1)


class Dataset:
    """One dataset as it is served."""

    def __init__(
        self,
        name: str,
        session: Session,
        *,
        log: Log,
        metrics: Metrics,
        started: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = name
        self.settings = Settings.of(session.settings.get("server", {}))
        self.curator = session.curator(opened=False)
        self.idempotency = IdempotencyKeys(session.directory / REQUESTS)
        self.saved = SavedQuestions(session.directory / SAVED)
        self.rate = Rate(self.settings.rate_per_minute, self.settings.burst)
        self.concurrency = Concurrency(self.settings.concurrent)
        self.cache = AnswerCache()
        self.offers = Defaults(session.settings.get("offers", {}))
        self._explaining = CapacityLimiter(EXPLAINED_AT_ONCE)
        self._paying = CapacityLimiter(PAID_AT_ONCE)
        self._running = CapacityLimiter(RUN_AT_ONCE)
        self._metrics = metrics
        self._started = started
        self.pool = Pool(
            str(session.directory),
            size=self.settings.workers,
            memory_bytes=memory_bytes(session.engine.get("memory_limit", "4GB")),
            started=self._count_start,
            failed=log.mistake,
        )
        self.curator.withheld = lambda number: self.jobs.find(number) is not None
        self.jobs = Jobs(self.curator, self.pool, self.settings, log=log, ended=self._count_ended)
        self.runs = OpenRuns.of(self.curator, self.jobs.compare)
        self.works = Works()

    def _count_start(self) -> None:
        self._metrics.count("discreet_worker_starts_total", dataset=self.name)
        self._started()

    def _count_ended(self, state: str) -> None:
        self._metrics.count("discreet_questions_total", dataset=self.name, outcome=state)

    @property
    def account(self) -> Account:
        """The ledger's account of the dataset."""
        return self.curator.account

    def open(self) -> None:
        """Start the engine processes."""
        self.pool.open()

    async def close(self, grace_s: float) -> None:
        """Finish or leave resumable what is under way, then let go of everything."""
        await self.works.close(grace_s)
        await self.jobs.close(grace_s)
        await self.pool.close()
        self.idempotency.close()
        self.saved.close()
        self.curator.close()

    # --- asking ------------------------------------------------------------------------------

    async def explain(self, work: Callable[[], T], key_id: str) -> T:
        """Do what is free, within the limits of what is paid for.

        It is Python's own work, and whatever else the server does waits for it in turn: so only
        few do it at a time, no key more than it may ask at once, and none waits for ever.
        """
        self.concurrency.enter(key_id)
        try:
            async with asyncio.timeout(self.settings.time_limit_s):
                return await to_thread.run_sync(
                    work, limiter=self._explaining, abandon_on_cancel=True
                )
        except TimeoutError:
            raise Busy("what this question costs could not be said in time.", 1) from None
        finally:
            self.concurrency.leave(key_id)

    def names_free(self, text: str) -> bool:
        """Whether a text has the name of a release or a survey in it, as a table or otherwise."""
        return any(name in text for name in self.curator.list_free())

    async def tell(self, text: str, confidence: str, key_id: str) -> Released | None:
        """What a release or a survey says; free.  None if the question is about people."""
        if not self.names_free(text):
            return None
        tell = partial(self.curator.tell, text, confidence=confidence)
        return await self.explain(tell, key_id)

    def quote(self, ask: Ask, grant: Grant) -> Quote:
        """What a question would cost; free."""
        return self.curator.price(ask.question, analyst=grant.analyst, **ask.offer().amounts())

    def find_cache_key(self, ask: Ask, grant: Grant, what: str) -> CacheKey | None:
        """All that the answer to a request depends on; None while more is under way than that.

        The same words of the same analyst, who may still ask, on the same data, with the same
        ledger; words that may name the present mean something else each time.
        """
        words = write_words(ask)
        if words is None:
            return None
        version = self.curator.engine.data_version()
        with self.account.reading():
            return self.name_request(words, str(ask.confidence), grant, f"{what} {version}")

    def name_request(self, words: str, confidence: str, grant: Grant, what: str) -> CacheKey | None:
        """The same of a request whose words are known, in a reading of the account.

        ``what`` is the way in which it is told, and the version of the data.
        """
        if self.jobs.waiting:
            return None
        with suppress(AccessRefusal):
            check_access(self.account.standing(), grant.analyst, datetime.now(UTC))
            said = f"{json.dumps([grant.analyst, grant.role])} {words}"
            return CacheKey(-self.curator.ledger.last, said, what, confidence)
        return None  # which is told, and recorded, where it is asked

    def is_for_all(self, ask: Ask) -> bool:
        """Whether what is told to these words is the same for everybody who may ask.

        It is where a stored answer that is shared stands under them as they are priced now: then
        neither what somebody may spend nor what they have paid for decides anything.
        """
        asked = self.curator.parse(ask.question)
        if isinstance(asked, Statement) or asked.is_listed:
            return False
        spend = ask.offer().beside(asked.spend)
        if spend.empty or spend.fresh:
            return False
        planned = self.curator.find_plan(asked, spend)
        return self.account.is_for_all(self.curator.make_request(planned, spend, CURATOR))

    def count_replay(self) -> None:
        """A question was answered as it was before."""
        self.jobs.admit()
        self._count_ended("replayed")

    async def ask(
        self, ask: Ask, grant: Grant, *, key_id: str, retry: str | None, wait_s: float
    ) -> Answer | Status:
        """The answer, or where its job stands after ``wait_s``."""
        self.jobs.admit()
        self.concurrency.enter(key_id)
        leave: Callable[..., None] = lambda *_: self.concurrency.leave(key_id)  # noqa: E731
        try:
            mine = await to_thread.run_sync(self._pay, ask, grant, retry, limiter=self._paying)
            jobs = self._jobs(mine, grant)
        except BaseException:
            leave()
            raise
        if not jobs:
            leave()
            self._count_ended("replayed")
            return mine if isinstance(mine, Answer) else self._close_interrupted(mine, grant)
        ended = asyncio.gather(*(job.ended for job in jobs))
        ended.add_done_callback(leave)
        answers = []
        until = time.monotonic() + wait_s
        for job in jobs:
            answer = await job.wait(max(0.0, until - time.monotonic()))
            if answer is None:
                found = self.jobs.status(job.id) or Status(job.id, job.analyst, "interrupted")
                return replace(found, again=isinstance(mine, PaidStatement | Combined))
            answers.append(answer)
        if isinstance(mine, Answer):
            return mine
        if isinstance(mine, PaidStatement) and mine.later:  # what it asks first is answered now
            left_s = max(0.0, until - time.monotonic())
            whole = await self.ask(ask, grant, key_id=key_id, retry=retry, wait_s=left_s)
            first = {part.receipt.id for part in mine.open}
            return whole.pay_also(first) if isinstance(whole, Combined) else whole
        if isinstance(mine, Paid):
            if isinstance(answers[0], Derived):  # what was known, improved
                return answers[0]
            # Who joined somebody else's job sees it through the outputs of their own question.
            return answers[0].read_as(mine.priced)
        return await to_thread.run_sync(self.curator.finish, mine, answers, limiter=self._paying)

    def _jobs(self, mine: Paid | PaidStatement | Answer, grant: Grant) -> list[Job]:
        """The jobs that compute it; none if it is stored and its deadline has passed."""
        if isinstance(mine, Paid):
            return [self.jobs.start(mine, grant.analyst)]
        if isinstance(mine, PaidStatement):
            started = [self.jobs.start(part, grant.analyst) for part in mine.open]
            stored = [part for part in mine.parts if isinstance(part, Answer)]
        else:
            started, stored = [], list(mine.parts) if isinstance(mine, Combined) else [mine]
        known = {job.id for job in started}
        found = {a.id: self.jobs.find(a.id) for a in stored if a.id and a.id not in known}
        return [*started, *(job for job in found.values() if job is not None)]

    def _close_interrupted(self, mine: Paid | PaidStatement, grant: Grant) -> Status:
        first = mine if isinstance(mine, Paid) else mine.open[0]
        return self.job_status(first.receipt.id, grant)

    def _pay(self, ask: Ask, grant: Grant, retry: str | None) -> Paid | PaidStatement | Answer:
        """Charge, or find what was charged before."""
        if retry is not None:
            found = self._find_retried(ask, grant, retry)
            if found is not None:
                return found
        mine = self.curator.pay(ask.question, analyst=grant.analyst, **ask.offer().amounts())
        several = isinstance(mine, PaidStatement | Combined)
        parts = mine.parts if isinstance(mine, PaidStatement | Combined) else (mine,)
        for part in parts:
            number = part.id if isinstance(part, Answer) else part.receipt.id
            if number is None:
                continue
            if retry is not None and not several:
                self.idempotency.link_charge(grant.analyst, retry, number)
            if isinstance(part, Answer) or part.receipt.analyst != grant.analyst:
                self._mark_shown(part, number, grant)
        return mine

    def _mark_shown(self, part: Paid | Answer, number: int, grant: Grant) -> None:
        """Remember to whom an answer is shown, and through which question of their own."""
        if not self.idempotency.was_shown(grant.analyst, number):
            self.idempotency.mark_shown(grant.analyst, number, write_asked(part))

    def _find_entry(self, request: str, grant: Grant, retry: str) -> Entry | None:
        """The charge of an earlier request with the same idempotency key, if it has an answer."""
        version = self.curator.engine.data_version()
        use = self.idempotency.remember(grant.analyst, retry, request, version)
        entry = None if use.answer is None else self.account.entry(use.answer)
        open_still = entry is None or entry.state is State.OPEN
        idempotency.check(use if not open_still else replace(use, answer=None), request, version)
        if entry is None or open_still:
            return None
        if entry.state is State.BURNT:
            raise describe_failure()
        return entry

    def _find_retried(self, ask: Ask, grant: Grant, retry: str) -> Answer | None:
        """The stored answer of an earlier request with the same idempotency key."""
        request = fingerprint({"question": ask.question, **ask.offer().to_json()})
        entry = self._find_entry(request, grant, retry)
        if entry is None:
            return None
        stored = replace(self._load(entry.id), replayed=True)
        mine = self.curator.retell(stored, ask.question, **ask.offer().amounts())
        return self._show_to(stored, entry, grant) if mine is None else mine

    # --- several questions together ------------------------------------------------------------

    async def ask_all(
        self, ask: AskAll, grant: Grant, *, key_id: str, retry: str | None
    ) -> list[Answer]:
        """The answers of questions that are charged together; the engine processes compute."""
        self.jobs.admit()
        compute = self._send_to_engine(write_batch)

        def ask_all() -> list[Answer]:
            paid = self._pay_all(ask, grant, retry)
            if isinstance(paid, PaidBatch):
                return finish_batch(self.curator, paid, compute)
            return paid

        return await self._at_work(ask_all, key_id)

    def _pay_all(self, ask: AskAll, grant: Grant, retry: str | None) -> PaidBatch | list[Answer]:
        """Charge, or find what was charged before: a retry is known before it pays."""
        if retry is not None:
            request = fingerprint({"questions": ask.questions, **ask.offer()})
            entry = self._find_entry(request, grant, retry)
            if entry is not None and entry.loss is not None:
                stored = self.account.answer(entry.id).answer
                found = recall_batch(stored, entry.id, entry.loss)
                return [self._show_to(answer, entry, grant) for answer in found]
        paid = pay_batch(self.curator, ask.questions, grant.analyst, ask.offer())
        if retry is not None:
            self.idempotency.link_charge(grant.analyst, retry, paid.receipt.id)
        return paid

    # --- runs ----------------------------------------------------------------------------------

    async def open_run(self, wanted: Watch, grant: Grant) -> Run:
        """Pay for a run, or go on with it."""
        self.jobs.admit()
        opened = partial(
            self.curator.watch,
            name=wanted.name,
            analyst=grant.analyst,
            once=wanted.once,
            **wanted.settings(),
        )
        run = await to_thread.run_sync(opened, limiter=self._paying)
        return await self.find_run(run.id, grant)

    async def open_interview(
        self, settings: Mapping[str, Any], name: str, grant: Grant
    ) -> InterviewRun:
        """Pay for an interview, or go on with it."""
        self.jobs.admit()
        opened = partial(self.curator.interview, name=name, analyst=grant.analyst, **settings)
        run = await to_thread.run_sync(opened, limiter=self._paying)
        return await self.find_interview(run.id, grant)

    async def find_run(self, number: int, grant: Grant) -> Run:
        """A run of the sparse vector, if it is the caller's to see."""
        found = await self._find_any(number, grant)
        if not isinstance(found, Run):
            raise nothing_here("run", str(number))
        return found

    async def find_interview(self, number: int, grant: Grant) -> InterviewRun:
        """An interview, if it is the caller's to see."""
        found = await self._find_any(number, grant)
        if not isinstance(found, InterviewRun):
            raise nothing_here("interview", str(number))
        return found

    async def _find_any(self, number: int, grant: Grant) -> Run | InterviewRun:
        loop = asyncio.get_running_loop()

        def find() -> Run | InterviewRun:
            entry = self.account.entry(number)
            if entry is None or "run" not in entry.spend or not self.visible(entry, grant):
                raise nothing_here("run", str(number))
            return self.runs.find(number, loop)

        return await to_thread.run_sync(find, limiter=self._paying)

    async def ask_interview(
        self, number: int, ask: AskInterview, grant: Grant, *, key_id: str
    ) -> tuple[InterviewRun, Reply]:
        """Ask one of the caller's own interviews."""
        run = self._check_own(await self.find_interview(number, grant), grant)
        self.jobs.admit()
        asked = partial(run.ask, ask.question, number=ask.number)
        return run, await self._at_work(asked, key_id)

    async def close_interview(self, number: int, grant: Grant) -> InterviewRun:
        """End one of the caller's own interviews."""
        run = self._check_own(await self.find_interview(number, grant), grant)
        await to_thread.run_sync(run.close, limiter=self._running)
        return run

    async def ask_run(
        self, number: int, ask: AskRun, grant: Grant, *, key_id: str
    ) -> tuple[Run, Told | None]:
        """Ask one of the caller's own runs; nothing is told of data that are not new."""
        run = self._check_own(await self.find_run(number, grant), grant)
        self.jobs.admit()
        asked: Callable[[], Told | None] = partial(
            run.ask, ask.question, threshold=ask.threshold, number=ask.number
        )
        if ask.new:
            if ask.number is not None:
                raise InvalidParameter(
                    "P4",
                    "a question has a number and is asked of new data.",
                    why="by its number a question is told again, which is not new.",
                    fix="leave out number, or new.",
                )
            asked = partial(run.ask_new, ask.question, threshold=ask.threshold)
        return run, await self._at_work(asked, key_id)

    async def ask_run_many(
        self, number: int, ask: AskRunMany, grant: Grant, *, key_id: str
    ) -> tuple[Run, list[Told]]:
        """Ask one of the caller's own runs many questions, in order."""
        run = self._check_own(await self.find_run(number, grant), grant)
        self.jobs.admit()
        asked = partial(run.ask_many, ask.questions, threshold=ask.threshold, number=ask.number)
        return run, await self._at_work(asked, key_id)

    async def learn(self, wanted: Learn, grant: Grant, *, key_id: str) -> dict[str, Any]:
        """Pay for a run of private multiplicative weights, or go on with it, and ask it."""
        self.jobs.admit()
        loop = asyncio.get_running_loop()

        def learn() -> dict[str, Any]:
            learning = plan_learning(self.curator, **wanted.settings())
            for question in wanted.ask:
                check_question(self.curator, learning, question)  # unpaid
            paid = open_learning(self.curator, learning, analyst=grant.analyst)
            found = self.runs.find(paid.id, loop)
            if not isinstance(found, Run):
                raise nothing_here("run", str(paid.id))
            run = LearningRun(found, learning)
            told = [run.ask(question) for question in wanted.ask]
            return {**run.to_json(), "answers": [one.to_json() for one in told]}

        return await self._at_work(learn, key_id)

    async def _at_work(self, work: Callable[[], W], key_id: str) -> W:
        """What is computed while others wait: so much at once, in all and of one key."""
        self.concurrency.enter(key_id)
        try:
            return await to_thread.run_sync(work, limiter=self._running)
        finally:
            self.concurrency.leave(key_id)

    async def close_run(self, number: int, grant: Grant) -> Run:
        """End one of the caller's own runs."""
        run = self._check_own(await self.find_run(number, grant), grant)
        await to_thread.run_sync(run.close, limiter=self._running)
        return run

    def _check_own(self, run: R, grant: Grant) -> R:
        if grant.role != CURATOR and run.analyst != grant.analyst:
            raise nothing_here("run", str(run.id))
        return run

    async def choose(self, wanted: Choose, grant: Grant, *, key_id: str) -> Chosen:
        """Which of some numbers is largest; the engine processes choose."""
        self.jobs.admit()
        compute = self._send_to_engine(write_choice)
        chosen = partial(
            choose,
            self.curator,
            wanted.candidates,
            wanted.offer(),
            k=wanted.k,
            counts=wanted.counts,
            analyst=grant.analyst,
            compute=compute,
        )
        return await self._at_work(chosen, key_id)

    async def report_quality(
        self, wanted: QualityChecks, grant: Grant, *, key_id: str
    ) -> QualityReport:
        """How many units stand in the way of each property; the engine processes count."""
        self.jobs.admit()
        compute = self._send_to_engine(write_quality)
        reported = partial(
            report_quality,
            self.curator,
            wanted.checks,
            wanted.epsilon,
            analyst=grant.analyst,
            compute=compute,
        )
        return await self._at_work(reported, key_id)

    async def release_median(
        self, wanted: MedianWanted, grant: Grant, *, key_id: str
    ) -> RobustMedian:
        """A median with noise to fit the data; the engine processes compute it."""
        self.jobs.admit()
        compute = self._send_to_engine(write_median)

        def release() -> RobustMedian:
            middle, text = make_middle(self.curator, wanted.question, **wanted.settings())
            return release_middle(
                self.curator, middle, text, analyst=grant.analyst, compute=compute
            )

        return await self._at_work(release, key_id)

    async def make_release(
        self, wanted: MakeRelease, grant: Grant, *, key_id: str
    ) -> dict[str, Any]:
        """Charge and make a release; the engine processes draw its stages."""
        declared = wanted.declare()  # refused now if it is none
        self.jobs.admit()
        make = partial(
            self.curator.releases.make,
            declared,
            analyst=grant.analyst,
            draw=self._send_to_engine(write_stage),
        )
        return (await self._at_work(make, key_id)).made.certificate()

    async def make_releases(
        self, wanted: MakeReleases, grant: Grant, *, key_id: str
    ) -> list[dict[str, Any]]:
        """Charge and make all that a plan names; the engine processes draw the stages."""
        agenda = wanted.agenda()  # refused now if it is none
        self.jobs.admit()
        make = partial(
            self.curator.releases.make_plan,
            agenda,
            analyst=grant.analyst,
            draw=self._send_to_engine(write_stage),
        )
        return [one.made.certificate() for one in await self._at_work(make, key_id)]

    async def step_release(
        self, name: str, number: int | None, grant: Grant, *, key_id: str
    ) -> dict[str, Any]:
        """Publish the next step of a counter; the engine processes draw it."""
        self.jobs.admit()
        step = partial(
            self.curator.releases.step,
            name,
            number=number,
            analyst=grant.analyst,
            draw=self._send_to_engine(write_stage),
        )
        return (await self._at_work(step, key_id)).made.certificate()

    def _send_to_engine(self, write: Callable[[W, str], bytes]) -> Callable[[W, str], bytes]:
        """How something is computed on the data of a version, by an engine process."""
        loop = asyncio.get_running_loop()

        def compute(wanted: W, version: str) -> bytes:
            sent = self.jobs.compare(write(wanted, version))
            answer = asyncio.run_coroutine_threadsafe(sent, loop).result()
            if not answer:
                raise describe_failure()
            return answer

        return compute

    # --- what was asked ------------------------------------------------------------------------

    def entry(self, number: int, grant: Grant) -> Entry:
        """A line of the transcript, if it is the caller's to see."""
        entry = self.account.entry(number)
        if entry is None or not self.visible(entry, grant):
            raise nothing_here("answer", str(number))
        return entry

    def visible(self, entry: Entry, grant: Grant) -> bool:
        """Curators and auditors see everything, analysts what is theirs or was shown to them."""
        return (
            grant.role in (CURATOR, AUDITOR)
            or entry.analyst == grant.analyst
            or self.idempotency.was_shown(grant.analyst, entry.id)
        )

    def state(self, entry: Entry) -> State:
        """What became of a question, as far as its deadline lets it be known."""
        return State.OPEN if self.jobs.find(entry.id) is not None else entry.state

    def answer(self, number: int, grant: Grant) -> Answer:
        """A stored answer, if it is the caller's to see."""
        entry = self.entry(number, grant)
        state = self.state(entry)
        if state is State.BURNT:
            raise describe_failure()
        if state is not State.ANSWERED:
            raise nothing_here("answer", str(number))
        return self._show_to(self._load(number), entry, grant)

    def _show_to(self, answer: Answer, entry: Entry, grant: Grant) -> Answer:
        """An answer with the words it was paid with, for whom they are meant."""
        if entry.analyst == grant.analyst or grant.role in (CURATOR, AUDITOR):
            return answer
        asked = self.idempotency.find_asked(grant.analyst, entry.id)
        if not asked:
            return _with_canonical_text(answer)
        return answer.read_as(record.from_json(json.loads(zlib.decompress(asked))))

    def _load(self, number: int) -> Answer:
        stored = self.account.answer(number)
        if stored.answer.startswith(_NO_ANSWERS):  # what is asked for again, and free
            raise nothing_here("answer", str(number))
        found = answer_from_bytes(stored.answer).number(number, replayed=False)
        behind = self.curator.list_behind(number)
        return replace(found, behind=behind) if behind else found

    def job_status(self, number: int, grant: Grant) -> Status:
        """Where a job stands, now or as the ledger tells after a restart."""
        entry = self.entry(number, grant)
        found = self.jobs.status(number)
        if found is not None:
            return found
        if entry.state not in _STATES:
            raise nothing_here("job", str(number))
        return Status(number, entry.analyst, _STATES[entry.state])


def memory_bytes(limit: Any) -> int:
    """The engine's memory limit in bytes; 0 if it is written in a way only the engine reads.

    >>> memory_bytes("4GB"), memory_bytes("512MiB"), memory_bytes("80%")
    (4000000000, 536870912, 0)
    """
    units = {"GIB": 2**30, "MIB": 2**20, "KIB": 2**10, "GB": 10**9, "MB": 10**6, "KB": 10**3}
    text = str(limit).strip().upper()
    for unit, size in units.items():
        number = text.removesuffix(unit).strip()
        if text.endswith(unit) and number.replace(".", "", 1).isdigit():
            return int(float(number) * size)
    return 0
