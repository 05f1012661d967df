"""Comparisons and choices: sent to the process that holds the data, and what comes back.

The secret of a round goes to that process over the same private pipe as a question does, and of
what it finds only the verdict leaves it.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.curate.choosing import compute_choice
from discreet.curate.curator import Curator
from discreet.curate.runs import Compare, Run, Turn, compare
from discreet.engine.duckdb.engine import DuckDBEngine
from discreet.engine.protocol import describe_failure
from discreet.mechanisms import Laplace, TopK
from discreet.mechanisms.sparse.run import NoisyThreshold
from discreet.price.chosen import Contest
from discreet.price.watch import Watch, Watched
from discreet.release import record
from discreet.release.release import Judged

_REMEMBERED = 64


def write_turn(turn: Turn) -> bytes:
    """A comparison, as it is sent."""
    content = {
        "turn": {
            "watch": turn.watch.to_json(),
            "question": record.to_json(turn.watched.question),
            "plan": record.to_json(turn.watched.plan),
            "sensitivity": turn.watched.sensitivity,
            "grid": str(turn.watched.grid),
            "threshold": str(turn.threshold),
            "secret": turn.secret.reveal(),
            "first": turn.first,
        }
    }
    return json.dumps(content).encode()


def answer_turn(engine: DuckDBEngine, content: dict[str, Any]) -> bytes:
    """Compare, where the data is; what is sent back."""
    watched = Watched(
        record.from_json(content["question"]),
        record.from_json(content["plan"]),
        content["sensitivity"],
        Fraction(content["grid"]),
    )
    turn = Turn(
        Watch.of(**content["watch"]),
        watched,
        engine.compile(watched.plan),
        Fraction(content["threshold"]),
        NoisyThreshold(content["secret"]),
        content["first"],
    )
    judged = compare(engine, turn)
    value = None if judged.value is None else str(judged.value)
    return json.dumps({"below": judged.below, "above": judged.above, "value": value}).encode()


def read_judged(answer: bytes) -> Judged:
    """The verdict that was sent back; empty if the engine could not."""
    if not answer:
        raise describe_failure()
    found = json.loads(answer)
    value = None if found["value"] is None else Fraction(found["value"])
    return Judged(found["below"], found["above"], value)


def write_choice(contest: Contest, version: str) -> bytes:
    """A choice among questions, as it is sent."""
    by, told = contest.mechanism, contest.numbers
    content = {
        "choice": {
            "plans": [record.to_json(one.plan) for one in contest.watched],
            "questions": [record.to_json(one.question) for one in contest.watched],
            "moved": [one.sensitivity for one in contest.watched],
            "grids": [str(one.grid) for one in contest.watched],
            "unit": str(contest.unit),
            "candidates": len(contest.names),
            "k": by.k,
            "sensitivity": str(by.sensitivity),
            "epsilon": str(by.epsilon),
            "method": by.method,
            "monotonic": by.monotonic,
            "numbers": None if told is None else str(told.scale),
            "version": version,
        }
    }
    return json.dumps(content).encode()


def answer_choice(engine: DuckDBEngine, content: dict[str, Any]) -> bytes:
    """Choose, where the data is; what is stored."""
    watched = tuple(
        Watched(record.from_json(question), record.from_json(plan), moved, Fraction(grid))
        for question, plan, moved, grid in zip(
            content["questions"], content["plans"], content["moved"], content["grids"], strict=True
        )
    )
    sensitivity = Fraction(content["sensitivity"])
    told = content["numbers"]
    noise = (
        None
        if told is None
        else Laplace(sensitivity=sensitivity, epsilon=sensitivity / Fraction(told))
    )
    mechanism = TopK(
        k=content["k"],
        sensitivity=sensitivity,
        epsilon=Fraction(content["epsilon"]),
        method=content["method"],
        monotonic=content["monotonic"],
    )
    names = tuple(range(content["candidates"]))
    contest = Contest(names, watched, mechanism, Fraction(content["unit"]), noise)
    compiled = [engine.compile(one.plan) for one in watched]
    return compute_choice(engine, contest, compiled, content["version"])


@dataclass(slots=True)
class OpenRuns:
    """The runs of one dataset that were asked lately, each one object in this process."""

    curator: Curator
    send: Callable[[bytes], Any]
    """Has a comparison computed by an engine process, until its deadline; a coroutine."""
    _known: OrderedDict[int, Run]

    @classmethod
    def of(cls, curator: Curator, send: Callable[[bytes], Any]) -> OpenRuns:
        """No run is known yet."""
        return cls(curator, send, OrderedDict())

    def find(self, number: int, loop: asyncio.AbstractEventLoop) -> Run:
        """The run of that number; its comparisons are made by the engine processes."""
        run = self._known.get(number)
        if run is None:
            run = self._known.setdefault(
                number, Run(self.curator, number, compare=self._comparing(loop))
            )
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return run

    def _comparing(self, loop: asyncio.AbstractEventLoop) -> Compare:
        def compared(turn: Turn) -> Judged:
            sent = asyncio.run_coroutine_threadsafe(self.send(write_turn(turn)), loop)
            return read_judged(sent.result())

        return compared


__all__ = [
    "OpenRuns",
    "answer_choice",
    "answer_turn",
    "read_judged",
    "write_choice",
    "write_turn",
]
