"""Many sessions in step: thousands of adaptive games against the curator in a second.

An adversary is a script, a generator that yields what it asks and is sent what it
is told:

    def script():
        told = yield ask("SELECT COUNT(*) FROM visits", epsilon="1/4")
        ...
        return view

Each game has an account of its own.  Where many games ask the same thing at the
same step, their noise is drawn in one call of the airlock's own function, a fresh
draw for every game, and the filter decides once for all games that have spent the
same.  What is told is the numbers of the answer, or the kind of the refusal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.loss import Loss
from discreet.audit.events import outcome_of
from discreet.audit.observing import observe
from discreet.audit.rehearsal import Prepared, Rehearsal, Stage
from discreet.errors import BudgetRefusal, Refusal
from discreet.mechanisms import KeyRelease
from discreet.mechanisms.clipping import ClippedSums
from discreet.price import Priced, Selection
from discreet.price.summed import Summed
from discreet.release.answer import Answer
from discreet.release.release import release


@dataclass(frozen=True, slots=True)
class Asked:
    """One ``question`` and the ``spend`` that is offered for it."""

    question: str
    spend: tuple[tuple[str, Any], ...]


def ask(question: str, **spend: Any) -> Asked:
    """A ``question`` for a script to yield, and what it offers as ``spend``: ``epsilon="1/4"``."""
    return Asked(question, tuple(spend.items()))


Told = tuple[Any, ...] | str
"""The numbers of an answer, row by row, or how it was refused."""

Script = Callable[[], Generator[Asked, Told, Any]]
"""What yields questions, is sent what each was told, and returns its view."""

_Spent = tuple[tuple[int, Loss], ...]


@dataclass(slots=True)
class _Session:
    """One game: its script, what it has spent, what it was told before."""

    script: Generator[Asked, Told, Any]
    state: int = 0  # what was spent, as an index in the crowd's list
    answers: dict[str, Told] = field(default_factory=dict)


class Crowd:
    """Games in one world.

    ``rehearsal`` is that world, opened once for all games.
    """

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal
        self._states: list[_Spent] = [()]
        self._decisions: dict[tuple[int, str], int | str] = {}
        self._seen: dict[str, tuple[NDArray[Any], ...] | None] = {}
        self._groups: dict[str, tuple[Any, ...]] = {}

    def play(self, script: Script, games: int) -> list[Any]:
        """The view of each of so many ``games`` of one ``script``."""
        views: list[Any] = [None] * games
        waiting: dict[int, tuple[_Session, Asked]] = {}
        for index in range(games):
            self._advance(index, _Session(script()), None, views, waiting)
        while waiting:
            for asked, indices in _gather(waiting).items():
                sessions = [waiting.pop(index)[0] for index in indices]
                told = self._tell(asked, sessions)
                for index, session, heard in zip(indices, sessions, told, strict=True):
                    self._advance(index, session, heard, views, waiting)
        return views

    @staticmethod
    def _advance(
        index: int,
        session: _Session,
        told: Told | None,
        views: list[Any],
        waiting: dict[int, tuple[_Session, Asked]],
    ) -> None:
        try:
            asked = next(session.script) if told is None else session.script.send(told)
        except StopIteration as stop:
            views[index] = stop.value
        except Exception as error:  # the adversary's own: an outcome like any other
            views[index] = outcome_of(error)
        else:
            waiting[index] = session, asked

    def _tell(self, asked: Asked, sessions: list[_Session]) -> list[Told]:
        try:
            prepared = self._rehearsal.prepare(asked.question, dict(asked.spend))
        except Refusal as refusal:
            return [outcome_of(refusal)] * len(sessions)
        told: list[Told | None] = [self._charge(prepared, one) for one in sessions]
        paid = [index for index, known in enumerate(told) if known is None]
        for index, heard in zip(paid, self._draw_releases(prepared, len(paid)), strict=True):
            told[index] = sessions[index].answers[prepared.key] = heard
        return [heard for heard in told if heard is not None]

    def _charge(self, prepared: Prepared, session: _Session) -> Told | None:
        """What is told without noise: an answer given before, or a refusal; else None, and paid."""
        if prepared.key in session.answers:
            return session.answers[prepared.key]
        known = session.state, prepared.key
        decision = self._decisions.get(known)
        if decision is None:
            decision = self._decisions[known] = self._decide(session.state, prepared)
        if isinstance(decision, str):
            return decision
        session.state = decision
        return None

    def _decide(self, state: int, prepared: Prepared) -> int | str:
        """What is spent after the question, or how it is refused."""
        stage = Stage(self._rehearsal, dict(self._states[state]))
        try:
            stage.charge(prepared)
        except BudgetRefusal as refusal:
            return outcome_of(refusal)
        spent = stage.list_spent()
        if spent not in self._states:
            self._states.append(spent)
        return self._states.index(spent)

    def _draw_releases(self, prepared: Prepared, times: int) -> list[Told]:
        """So many independent releases of one question."""
        if not times:
            return []
        priced, question = prepared.priced, prepared.priced.question
        entries = self._entries(prepared)
        plain = question.having is None and not question.order and question.limit is None
        if entries is None or not plain:
            return [
                _numbers(Answer(priced, *release(priced, prepared.truth))) for _ in range(times)
            ]
        additive = [
            m
            for m in priced.mechanisms
            if not isinstance(m, Selection | ClippedSums | KeyRelease | Summed)
        ]
        parts = tuple(
            mechanism.release(np.concatenate([part] * times), exact=True)  # as the airlock does
            for mechanism, part in zip(additive, entries, strict=True)
        )
        groups = self._groups[prepared.key]
        rows = _read(priced, groups * times, parts)
        size = len(groups)
        return [
            tuple(x for row in rows[start : start + size] for x in row)
            for start in range(0, len(rows), size)
        ]

    def _entries(self, prepared: Prepared) -> tuple[NDArray[Any], ...] | None:
        """What enters the noise of a question whose groups are public; None for others."""
        if prepared.key not in self._seen:
            found = None
            if prepared.priced.plan.public_keys:
                with observe("crowd") as seen:
                    released = release(prepared.priced, prepared.truth)
                parts = [event.entries for event in seen.events]
                if len(parts) == len(prepared.priced.mechanisms) and all(
                    part is not None for part in parts
                ):
                    found = tuple(parts)
                self._groups[prepared.key] = released.groups
            self._seen[prepared.key] = found
        return self._seen[prepared.key]


def _gather(waiting: dict[int, tuple[_Session, Asked]]) -> dict[Asked, list[int]]:
    """Which games ask the same; what is the very same object is not compared again."""
    objects: dict[int, tuple[Asked, list[int]]] = {}
    for index, (_, asked) in waiting.items():
        objects.setdefault(id(asked), (asked, []))[1].append(index)
    groups: dict[Asked, list[int]] = defaultdict(list)
    for asked, indices in objects.values():
        groups[asked] += indices
    return groups


def _read(
    priced: Priced, groups: tuple[Any, ...], parts: tuple[NDArray[Any], ...]
) -> list[tuple[Any, ...]]:
    """The outputs of every group, as an answer reads them; the same integers are read once."""
    keys = list(zip(groups, *(map(tuple, part.tolist()) for part in parts), strict=True))
    first = {key: index for index, key in reversed(list(enumerate(keys)))}
    indices = list(first.values())
    kept = tuple(part[indices] for part in parts)
    answer = Answer(priced, tuple(groups[index] for index in indices), kept)
    read = {keys[index]: row.values for index, row in zip(indices, answer.rows, strict=True)}
    return [read[key] for key in keys]


def _numbers(answer: Answer) -> Told:
    return tuple(value for row in answer.rows for value in row.values)


__all__ = ["Asked", "Crowd", "Script", "Told", "ask"]
