"""Runs: an interactive mechanism that is paid for once and asked many times.

    with clinic.watch(threshold=500, epsilon="0.5", at_most=3) as run:
        run.ask("SELECT COUNT(*) FROM visits WHERE city = 'Cork'")

The order of events is that of a question, stretched: the whole run is charged, durably; then, for
each question, its price is none, the data is read, the number is compared with a noisy threshold,
the verdict is recorded, and only then shown.  What a process leaves behind when it dies, another
goes on with: the ledger says what was told, the sealed secret with what it is compared.  Where
that secret is gone the run is closed; what cannot be computed closes it, too, because a failure
may tell of one person's row and a run must not fail often.  Proofs: ``docs/proofs/runs.md``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.accounting.loss import Loss
from discreet.curate.running import (
    PaidRun,
    check_one_owner,
    parse_single,
    pay_for_run,
    plain,
    write_text,
)
from discreet.engine.protocol import Compiled, describe_failure
from discreet.errors import InvalidParameter, Refusal
from discreet.exact.numbers import Exact, fraction
from discreet.ledger.runs import LOST, over_refusal
from discreet.mechanisms.sparse.run import NoisyThreshold
from discreet.price.gathering import Gathered, gather
from discreet.price.watch import Watch, Watched, price_watched
from discreet.release.record import from_json, to_json
from discreet.release.release import Judged, judge, judge_gathered

if TYPE_CHECKING:
    from discreet.curate.curator import Asking, Curator

KIND = "watch"
"""What the ledger calls such a run."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run said of one number: whether it is ``above`` its ``threshold``, and perhaps more.

    ``question`` asked for it; ``value`` is the number, where it is told, ``group`` whose it is.

    >>> print(Verdict("SELECT COUNT(*) FROM visits", Fraction(500), above=False))
    below 500
    """

    question: str
    threshold: Fraction
    above: bool
    value: int | float | None = None
    """The number, with noise of its own; only of what is above, and if the run tells numbers."""
    group: tuple[Any, ...] = ()
    """The group's values, where the question has groups."""

    def __bool__(self) -> bool:
        return self.above

    def __iter__(self) -> Iterator[Verdict]:
        """Itself: what is told of one number is gone through as what is told of many."""
        yield self

    def __len__(self) -> int:
        return 1

    def __str__(self) -> str:
        where = f"{', '.join(map(str, self.group))}: " if self.group else ""
        number = "" if self.value is None else f": {self.value:,}"
        return f"{where}{'above' if self.above else 'below'} {plain(self.threshold):,}{number}"

    def to_json(self) -> dict[str, Any]:
        """The same at every door."""
        return {
            "question": self.question,
            "threshold": str(self.threshold),
            "above": self.above,
            "value": self.value,
            "group": [None if part is None else str(part) for part in self.group],
        }


class Verdicts(tuple[Verdict, ...]):
    """What a run said of a question with groups: a verdict for each, in their order.

    It is asked whether it is ``above``, and gone through, as one verdict is; made of an
    ``iterable`` of verdicts, as a tuple is.

    >>> told = Verdicts(Verdict("", Fraction(7), above=one) for one in (False, True))
    >>> told.above, [verdict.above for verdict in told]
    (True, [False, True])
    """

    __slots__ = ()

    @property
    def above(self) -> bool:
        """Whether the number of any group is above its threshold."""
        return any(verdict.above for verdict in self)

    def __bool__(self) -> bool:
        return self.above

    def __str__(self) -> str:
        return "\n".join(map(str, self))


Told = Verdict | Verdicts
"""What a run tells of a question: both are ``above`` or not, and hold verdicts."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One comparison that is to be made, by whoever holds the data: of one question, or several."""

    watch: Watch
    asked: tuple[tuple[Watched, Fraction], ...]
    """What is compared with which threshold."""
    compiled: Compiled
    secret: NoisyThreshold
    first: int
    """The first of the question's groups, or of the questions, that has not been compared."""
    gathered: Gathered | None = None
    """How several questions are read together."""


Compare = Callable[[Turn], Judged]
"""Reads the data and compares; raises a ``DataRefusal`` if that cannot be done."""


@dataclass(frozen=True, slots=True)
class WatchExplanation:
    """What a run would cost, and how wrong its verdicts on a question could be; free.

    ``watch`` are the settings of the run; ``watched`` is the question, if there is one.
    """

    watch: Watch
    watched: Watched | None = None

    @property
    def loss(self) -> Loss:
        """What the whole run costs one unit."""
        return self.watch.loss

    def margin(self, confidence: Exact = "0.95", *, queries: int = 1000) -> float | None:
        """How far from its threshold a number may be and be told on the wrong side of it.

        With this ``confidence`` for all of ``queries`` together, if at most as many as the run
        may tell are near their thresholds or above.
        """
        return self._margin(Watched.margin, confidence, queries)

    def theorem_margin(self, confidence: Exact = "0.95", *, queries: int = 1000) -> float | None:
        """The α of DR Theorems 3.24, 3.26 and (corrected) 3.28.

        ``confidence`` and ``queries`` are those of :meth:`margin`.
        """
        return self._margin(Watched.theorem_margin, confidence, queries)

    def _margin(
        self, how: Callable[..., Fraction], confidence: Exact, queries: int
    ) -> float | None:
        if self.watched is None:
            return None
        beta = 1 - fraction(confidence, name="confidence")
        return float(how(self.watched, self.watch, beta, queries=queries))

    def to_json(self, confidence: Exact = "0.95", *, queries: int = 1000) -> dict[str, Any]:
        """The same at every door; margins at ``confidence``, for so many ``queries``."""
        from discreet.release.amounts import loss_json

        return {
            "watch": self.watch.to_json(),
            "loss": loss_json(self.loss),
            "queries": queries,
            "margin": self.margin(confidence, queries=queries),
            "theorem_margin": self.theorem_margin(confidence, queries=queries),
            "sensitivity": None
            if self.watched is None
            else float(self.watched.sensitivity * self.watched.grid),
        }

    def __str__(self) -> str:
        lines = [str(self.watch), f"price:  {self.loss}, for the whole run"]
        if self.watched is not None:
            moved = plain(self.watched.sensitivity * self.watched.grid)
            lines.append(f"moved:  one unit moves the number by at most {moved:,}")
            lines.append(f"margin: ±{self.margin():,.6g} for 1,000 questions (95 %)")
            lines.append(f"theorem: α = {self.theorem_margin():,.6g}")
        return "\n".join(lines)


class Run(PaidRun["_Asked", "Told"]):
    """A run of the sparse vector; made by ``curator.watch(...)``, or ``curator.run(number)``.

    ``id`` is the number of its charge in the account of ``curator``; ``compare`` reads the data
    and compares, if that is not done here.
    """

    kind = KIND

    def __init__(self, curator: Curator, id: int, *, compare: Compare | None = None) -> None:  # noqa: A002
        super().__init__(curator, id)
        state = self._book.state(id)
        self._sealed = curator.sealed
        self._compare = compare or self._compare_here
        self.watch = _read_watch(state.spend)
        self._above = 0
        self._take(state.told)
        self._sealed.sweep(id, None if self._ended else self._above)

    def __repr__(self) -> str:
        state = f", {self._ended}" if self._ended else ""
        return (
            f"<Run {self.id}: {self.asked} asked, {self._above} of {self.watch.at_most} above, "
            f"threshold withheld{state}>"
        )

    # --- how it stands ------------------------------------------------------------------------

    @property
    def loss(self) -> Loss:
        """What was charged when it began; nothing is charged after."""
        return self.watch.loss

    @property
    def remaining(self) -> int:
        """How many more times "above" can be told."""
        return self.watch.at_most - self._above

    @property
    def transcript(self) -> tuple[Verdict, ...]:
        """Everything it has told, in order; also what a process that died had not shown."""
        return tuple(verdict for part in self._told for verdict in _read_verdicts(part))

    def _take(self, told: Iterable[Mapping[str, Any]]) -> None:
        parts = list(told)
        super()._take(parts)
        self._above += sum(bool(part["above"]) for part in parts)

    def to_json(self) -> dict[str, Any]:
        """How it stands; the same at every door."""
        from discreet.release.amounts import loss_json

        return {
            "id": self.id,
            "kind": self.kind,
            "analyst": self.analyst,
            "name": self.name,
            "watch": self.watch.to_json(),
            "price": loss_json(self.loss),
            "asked": self.asked,
            "remaining": self.remaining,
            "ended": self._ended or None,
        }

    # --- asking -------------------------------------------------------------------------------

    def ask(
        self, question: Asking, *, threshold: Exact | None = None, number: int | None = None
    ) -> Told:
        """Whether the number that ``question`` asks for is above ``threshold``, or the run's own.

        A question with GROUP BY is asked group by group, and has a verdict for each.  ``number``
        says the how-manieth question it is, from 0: one that was asked before is told again as
        it was, so that who did not see an answer loses nothing by asking once more.
        """
        found = self.ask_many([question], threshold=threshold, number=number)
        return found[0]

    def ask_one(
        self, question: Asking, *, threshold: Exact | None = None, number: int | None = None
    ) -> Verdict:
        """The verdict on a ``question`` without groups; one with GROUP BY is refused, unasked.

        ``threshold`` and ``number`` are those of :meth:`ask`.
        """
        with self._lock:
            asked = self._prepare(question, threshold)
            if asked.watched.plan.keys:
                raise several_verdicts()
            return next(iter(self._ask_in_order([asked], number)[0]))

    def ask_groups(
        self, question: Asking, *, threshold: Exact | None = None, number: int | None = None
    ) -> Verdicts:
        """The verdicts on a ``question``, one for each group; one without GROUP BY has one.

        ``threshold`` and ``number`` are those of :meth:`ask`.
        """
        return Verdicts(self.ask(question, threshold=threshold, number=number))

    def ask_many(
        self,
        questions: Iterable[Asking],
        *,
        threshold: Exact | None = None,
        number: int | None = None,
    ) -> list[Told]:
        """Ask in order until ``questions`` end or the run halts; the law is that of one at a time.

        ``threshold`` is that of :meth:`ask`, for all; the first is the ``number``-th, from 0.
        All verdicts up to the next "above" are recorded together: many questions, one commit.
        """
        with self._lock:
            asked = [self._prepare(question, threshold) for question in questions]
            return self._ask_in_order(asked, number)

    def ask_new(self, question: Asking, *, threshold: Exact | None = None) -> Told | None:
        """Ask ``question`` of data that this run has not been asked about, and of no other: None.

        The form for a schedule: called every hour, it asks once for each version of the data,
        also where processes die between; a question that was cut short is finished first.  Open
        its run with ``once=True``, or one that has halted is bought anew.  ``threshold`` is that
        of :meth:`ask`.
        """
        with self._lock:
            asked = self._prepare(question, threshold)
            cut = self._is_cut_short() and not self._ended
            if cut and asked.is_same(self._told[-1]):
                return self._ask_in_order([asked], None)[0]
            version = self._find_version()
            if any(part.get("version") == version and asked.is_same(part) for part in self._told):
                return None
            return self._ask_in_order([asked], None)[0]

    def _find_version(self) -> str:
        """Which data there are now: what a ledger holds of any question, shortened."""
        return hashlib.sha256(self._curator.engine.data_version().encode()).hexdigest()[:16]

    def _read(self, one: _Asked, parts: Sequence[Mapping[str, Any]]) -> Told:
        verdicts = Verdicts(v for part in parts for v in _read_verdicts(part))
        return verdicts if one.watched.plan.keys else verdicts[0]

    def _is_cut_short(self) -> bool:
        """Whether the last question has groups that were not compared yet."""
        if not self._told:
            return False
        last = self._told[-1]
        return bool(last["first"] + last["below"] + last["above"] < last["groups"])

    def _go_on(self, asked: Sequence[_Asked], number: int) -> None:
        """Compare one question after the other, recording before anything is shown."""
        stages = list(self._arrange(asked))  # compiled: what cannot be run is refused here
        pending: list[dict[str, Any]] = []
        first = 0
        version = self._find_version()  # as it was before anything of it was read
        if self._told and self._told[-1]["number"] == number:  # the rest of its groups
            last = self._told[-1]
            first = last["first"] + last["below"] + last["above"]
        for stage in stages:
            while first < stage.size:
                judged = self._judge(stage, first)
                for entry in stage.write(judged, number=number, first=first):
                    pending.append({**entry, "version": version})
                first += judged.below + judged.above
                if judged.above:
                    self._record(pending)
                    pending = []
                    if self._ended:
                        return
            number, first = number + len(stage.asked), 0
        if pending:
            self._record(pending)

    def _arrange(self, asked: Sequence[_Asked]) -> Iterator[_Stage]:
        """The questions in their order, those together that one statement can read."""
        engine, at = self._curator.engine, 0
        together = gather([one.watched for one in asked], engine.catalogue.multiplicity)
        for found in together:
            if isinstance(found, int):
                for one in asked[at : at + found]:
                    yield _Stage((one,), engine.compile(one.watched.plan))
                at += found
            else:
                past = at + len(found.chosen)
                yield _Stage(tuple(asked[at:past]), engine.compile(found.plan), found)
                at = past

    def _judge(self, stage: _Stage, first: int) -> Judged:
        asked = tuple((one.watched, one.threshold) for one in stage.asked)
        secret, judged = self._find_secret(), None
        turn = Turn(self.watch, asked, stage.compiled, secret, first, stage.gathered)
        with suppress(Exception):  # left behind here: what is raised has no history
            judged = self._compare(turn)
        if judged is None:
            self._end(LOST)
            raise describe_failure()
        return judged

    def _compare_here(self, turn: Turn) -> Judged:
        return compare(self._curator.engine, turn)

    def _record(self, told: list[dict[str, Any]], *, halts: bool = False) -> None:
        """Make it durable; only then forget the secret of a round that is over."""
        turn, more = self._above, self._above + told[-1]["above"]
        super()._record(told, halts=halts or more >= self.watch.at_most)
        if told[-1]["above"]:
            self._sealed.erase(self.id, turn)

    def _find_secret(self) -> NoisyThreshold:
        """The secret of this round: as it is kept; fresh only if nothing was told with it yet."""
        turn = self._above
        kept = self._sealed.load(self.id, turn)
        if kept is not None:
            return kept
        if self._told and not self._told[-1]["above"]:
            self._end(LOST)
            raise over_refusal(LOST)
        return self._sealed.keep(self.id, turn, NoisyThreshold.draw(self.watch.mechanism.plan))

    def _refresh(self) -> None:
        self._above = 0
        super()._refresh()

    def _end(self, reason: str) -> None:
        self._book.close(self.id, reason)
        self._sealed.erase(self.id, self._above)
        self._refresh()

    def _prepare(self, question: Asking, threshold: Exact | None) -> _Asked:
        """A question that may be asked, or a refusal: public knowledge only, and free."""
        level = self.watch.threshold
        if threshold is not None:
            level = fraction(threshold, name="threshold")
        if level is None:
            raise InvalidParameter(
                "P4",
                "neither the run nor this question has a threshold.",
                why="a run tells on which side of a threshold a number is.",
                fix="pass threshold=..., to watch(...) or with the question.",
            )
        watched = prepare(self._curator, question, self.watch)
        check_one_owner(watched.plan)
        return _Asked(watched, level)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question that may be asked, with its threshold."""

    watched: Watched
    threshold: Fraction

    @property
    def text(self) -> str:
        return write_text(self.watched.question)

    def is_same(self, told: Mapping[str, Any]) -> bool:
        """Whether it is the question that was told of."""
        return bool(told["question"] == self.text and Fraction(told["threshold"]) == self.threshold)

    def write(self, judged: Judged, *, number: int, first: int) -> dict[str, Any]:
        """What is recorded of it: enough to tell it again."""
        groups = self.watched.groups
        named = (
            groups[first : first + judged.below + judged.above] if self.watched.plan.keys else ()
        )
        return {
            "number": number,
            "question": self.text,
            "threshold": str(self.threshold),
            "first": first,
            "groups": len(groups),
            "below": judged.below,
            "above": judged.above,
            "value": None if judged.value is None else str(judged.value),
            "named": to_json(named),
        }


@dataclass(frozen=True, slots=True)
class _Stage:
    """One statement and what it is to tell of: a question, or several that are read together."""

    asked: tuple[_Asked, ...]
    compiled: Compiled
    gathered: Gathered | None = None

    @property
    def size(self) -> int:
        """How many numbers it compares."""
        return len(self.asked) if self.gathered is not None else len(self.asked[0].watched.groups)

    def write(self, judged: Judged, *, number: int, first: int) -> list[dict[str, Any]]:
        """What is recorded of it; ``number`` is that of its first question."""
        if self.gathered is None:
            return [self.asked[0].write(judged, number=number, first=first)]
        past = first + judged.below
        told = [
            self.asked[place].write(Judged(1, above=False), number=number + place, first=0)
            for place in range(first, past)
        ]
        if judged.above:
            last = Judged(0, above=True, value=judged.value)
            told.append(self.asked[past].write(last, number=number + past, first=0))
        return told


def several_verdicts() -> InvalidParameter:
    """What is said where one verdict is wanted of a question with groups."""
    return InvalidParameter(
        "P4",
        "this question has a verdict for each of its groups.",
        why="each group is compared by itself, and a program that expects one number would lose "
        "the others.",
        fix="ask_groups(...), or ask(...), tells all of them.",
    )


def compare(engine: Any, turn: Turn) -> Judged:
    """Read the data and compare; where the data is, perhaps in another process.

    Whatever fails may fail because of one person's row, so nothing is said of why.
    """
    with suppress(Exception):
        truth, watch, first = engine.run(turn.compiled), turn.watch, turn.first
        if turn.gathered is not None:
            return judge_gathered(
                watch, turn.asked, turn.gathered, truth, secret=turn.secret, first=first
            )
        ((watched, threshold),) = turn.asked
        return judge(watch, watched, truth, threshold=threshold, secret=turn.secret, first=first)
    raise describe_failure()


def prepare(curator: Curator, question: Asking, watch: Watch) -> Watched:
    """What a run would measure of ``question``, or a refusal; reads nothing."""
    asked = parse_single(curator, question)
    try:
        return price_watched(
            asked,
            schema=curator.schema,
            multiplicity=curator.engine.catalogue.multiplicity,
            monotonic=watch.monotonic,
        )
    except Refusal as refusal:
        raise curator.naming(refusal) from None


def open_watch(
    curator: Curator, watch: Watch, *, name: str, analyst: str, once: bool = False
) -> Run:
    """Pay for a run, durably; or go on with an open one of the same asker in the same words."""
    if watch.monotonic:
        _check_neighbours(curator)
    number = pay_for_run(
        curator,
        KIND,
        watch.to_json(),
        loss=watch.loss,
        text=str(watch),
        name=name,
        analyst=analyst,
        once=once,
    )
    return Run(curator, number)


def _check_neighbours(curator: Curator) -> None:
    from discreet.question.schema import Neighbours

    if curator.schema.neighbours is not Neighbours.ADD_REMOVE:
        raise InvalidParameter(
            "P4",
            "a monotonic run needs add/remove neighbours.",
            why="where one person's rows are changed, some counts fall as others rise, and half "
            "the noise would not hide it.",
            fix="leave out monotonic.",
        )


def _read_watch(spend: Mapping[str, Any]) -> Watch:
    names = ("threshold", "epsilon", "at_most", "delta", "numbers", "monotonic")
    return Watch.of(**{name: spend[name] for name in names})


def _read_verdicts(part: Mapping[str, Any]) -> list[Verdict]:
    named = from_json(part["named"])
    value = None if part["value"] is None else plain(Fraction(part["value"]))
    count = part["below"] + part["above"]
    return [
        Verdict(
            part["question"],
            Fraction(part["threshold"]),
            above=bool(part["above"]) and place == count - 1,
            value=value if place == count - 1 else None,
            group=tuple(named[place]) if named else (),
        )
        for place in range(count)
    ]


__all__ = [
    "Run",
    "Told",
    "Turn",
    "Verdict",
    "Verdicts",
    "WatchExplanation",
    "compare",
    "open_watch",
    "prepare",
    "several_verdicts",
]
