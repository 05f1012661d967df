"""What is no question: sent to the process that holds the data, and what comes back.

The secret of a round goes to that process over the same private pipe as a question does, and of
what it finds only the verdict leaves it.  Of the numbers of an interview, a report and a median
only what has noise leaves it.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.curate.choosing import compute_choice
from discreet.curate.curator import Curator
from discreet.curate.interviews import KIND, InterviewRun, Tell, tell
from discreet.curate.interviews import Question as Posing
from discreet.curate.reports import compute_median, compute_quality, to_json_check
from discreet.curate.runs import Compare, Run, Turn, compare
from discreet.curate.together import compute_batch
from discreet.engine.protocol import Engine, describe_failure
from discreet.mechanisms import Laplace, ProposeTestRelease, SmoothMedian, TopK
from discreet.mechanisms.sparse.run import NoisyThreshold
from discreet.price.batch import Batch
from discreet.price.calibration import find_lumpings
from discreet.price.chosen import Contest, OneShot
from discreet.price.gathering import Gathered
from discreet.price.interview import Interview, Posed
from discreet.price.middle import Middle
from discreet.price.plan import Reach
from discreet.price.quality import Check, Quality
from discreet.price.watch import Watch, Watched
from discreet.question.schema import Neighbours
from discreet.release import record
from discreet.release.release import Judged
from discreet.server.gathered import answer_gathered

if TYPE_CHECKING:
    from discreet.curate.stages import Stage

_REMEMBERED = 64


def write_turn(turn: Turn) -> bytes:
    """A comparison, as it is sent; of questions that are read together the first stands for all."""
    watched, gathered = turn.asked[0][0], turn.gathered
    content: dict[str, Any] = {
        "watch": turn.watch.to_json(),
        "question": record.to_json(watched.question),
        "plan": record.to_json(watched.plan if gathered is None else gathered.plan),
        "asked": [
            [one.sensitivity, str(one.grid), str(threshold)] for one, threshold in turn.asked
        ],
        "secret": turn.secret.reveal(),
        "first": turn.first,
    }
    if gathered is not None:
        content["gathered"] = {"shape": gathered.shape, "chosen": gathered.write_chosen()}
    return json.dumps({"turn": content}).encode()


def answer_turn(engine: Engine[Any], content: dict[str, Any]) -> bytes:
    """Compare, where the data is; what is sent back."""
    question, plan = record.from_json(content["question"]), record.from_json(content["plan"])
    sent = content.get("gathered")
    turn = Turn(
        Watch.of(**content["watch"]),
        tuple(
            (Watched(question, plan, moved, Fraction(grid)), Fraction(threshold))
            for moved, grid, threshold in content["asked"]
        ),
        engine.compile(plan),
        NoisyThreshold(content["secret"]),
        content["first"],
        None if sent is None else Gathered.read(plan, sent["shape"], sent["chosen"]),
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


def answer_choice(engine: Engine[Any], content: dict[str, Any]) -> bytes:
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
    epsilon = Fraction(content["epsilon"])
    mechanism: TopK | OneShot
    if content["method"] == "one-shot":
        once = Laplace(sensitivity=sensitivity, epsilon=epsilon)
        mechanism = OneShot(content["k"], once, content["monotonic"])
    else:
        mechanism = TopK(
            k=content["k"],
            sensitivity=sensitivity,
            epsilon=epsilon,
            method=content["method"],
            monotonic=content["monotonic"],
        )
    names = tuple(range(content["candidates"]))
    contest = Contest(names, watched, mechanism, Fraction(content["unit"]), noise)
    compiled = [engine.compile(one.plan) for one in watched]
    return compute_choice(engine, contest, compiled, content["version"])


def write_batch(batch: Batch, version: str) -> bytes:
    """Questions that were charged together, as they are sent."""
    parts = [record.to_json(part) for part in batch.parts]
    return json.dumps({"batch": {"parts": parts, "version": version}}).encode()


def answer_batch(engine: Engine[Any], content: dict[str, Any]) -> bytes:
    """All of their answers, where the data is; what is stored."""
    parts = [record.from_json(part) for part in content["parts"]]
    compiled = [engine.compile(part.plan, find_lumpings(part)) for part in parts]
    return compute_batch(engine, parts, compiled, content["version"])


def write_posed(interview: Interview, one: Posing, version: str) -> bytes:
    """A question of an interview, as it is sent."""
    posed = one.posed
    content = {
        "posed": {
            "interview": interview.to_json(),
            "question": record.to_json(posed.question),
            "plan": record.to_json(posed.plan),
            "reach": [posed.reach.groups, posed.reach.rows_per_group, posed.reach.rows],
            "steps": posed.steps,
            "grid": str(posed.grid),
            "sides": posed.sides.value,
            "version": version,
        }
    }
    return json.dumps(content).encode()


def answer_posed(engine: Engine[Any], content: dict[str, Any]) -> bytes:
    """The numbers with noise, where the data is."""
    posed = Posed(
        record.from_json(content["question"]),
        record.from_json(content["plan"]),
        Reach(*content["reach"]),
        content["steps"],
        Fraction(content["grid"]),
        Neighbours(content["sides"]),
    )
    one = Posing(posed, engine.compile(posed.plan))
    told = tell(engine, Interview.of(**content["interview"]), one, content["version"])
    return json.dumps([str(value) for value in told]).encode()


def read_told(answer: bytes) -> list[int]:
    """The numbers that were sent back; empty if the engine could not."""
    if not answer:
        raise describe_failure()
    return [int(value) for value in json.loads(answer)]


def write_quality(quality: Quality, version: str) -> bytes:
    """A report, as it is sent."""
    content = {
        "quality": {
            "checks": [to_json_check(check) for check in quality.checks],
            "epsilon": str(quality.noise.epsilon),
            "version": version,
        }
    }
    return json.dumps(content).encode()


def answer_quality(engine: Engine[Any], content: dict[str, Any]) -> bytes:
    """Count, where the data is; what is stored."""
    checks = [
        Check(
            said["name"],
            said["property"],
            said["table"],
            tuple(said["columns"]),
            "",
            record.from_json(said["plan"]),
        )
        for said in content["checks"]
    ]
    quality = Quality.of(checks, epsilon=content["epsilon"])
    return compute_quality(engine, quality, content["version"])


def write_median(middle: Middle, version: str) -> bytes:
    """A median, as it is sent."""
    by = middle.mechanism
    content = {
        "median": {
            "plan": record.to_json(middle.plan),
            "epsilon": str(by.epsilon),
            "delta": str(by.delta),
            "bound": str(by.bound) if isinstance(by, ProposeTestRelease) else None,
            "version": version,
        }
    }
    return json.dumps(content).encode()


def answer_median(engine: Engine[Any], content: dict[str, Any]) -> bytes:
    """The median with noise, where the data is; what is stored."""
    plan = record.from_json(content["plan"])
    variable = plan.measurements[0].variable
    price = {"epsilon": content["epsilon"], "delta": content["delta"]}
    mechanism = (
        SmoothMedian(lower=0, upper=variable.span, **price)
        if content["bound"] is None
        else ProposeTestRelease(bound=content["bound"], **price)
    )
    return compute_median(engine, Middle(plan, variable, mechanism), content["version"])


def write_stage(stage: Stage, version: str) -> bytes:
    """A stage of a release, as it is sent: what was declared, and what was drawn before."""
    content = {
        "stage": {
            "declared": stage.declared.to_json(),
            "stored": {str(place): text.decode() for place, text in stage.stored.items()},
            "place": stage.place,
            "counted": None if stage.counted is None else stage.counted.to_json(),
            "version": version,
        }
    }
    return json.dumps(content).encode()


def answer_stage(engine: Engine[Any], content: dict[str, Any]) -> bytes:
    """A stage with its noise, where the data is; what is stored."""
    from discreet.curate.counting import Counted
    from discreet.curate.stages import Stage, draw_stage
    from discreet.publication.folder import read_declared

    stored = {int(place): text.encode() for place, text in content["stored"].items()}
    drawn = None
    with suppress(Exception):  # of which nothing leaves
        kept = content["counted"]
        counted = None if kept is None else Counted.from_json(kept)
        stage = Stage(read_declared(content["declared"]), stored, content["place"], counted)
        drawn = draw_stage(stage, engine, content["version"])
    if drawn is None:
        raise describe_failure()
    return drawn


ANSWERS: dict[str, Callable[[Engine[Any], dict[str, Any]], bytes]] = {
    "turn": answer_turn,
    "choice": answer_choice,
    "batch": answer_batch,
    "posed": answer_posed,
    "quality": answer_quality,
    "median": answer_median,
    "stage": answer_stage,
    "gathered": answer_gathered,
}
"""What an engine process does with each kind of what is no question, or several."""


@dataclass(slots=True)
class OpenRuns:
    """The runs of one dataset that were asked lately, each one object in this process."""

    curator: Curator
    send: Callable[[bytes], Any]
    """Has a comparison computed by an engine process, until its deadline; a coroutine."""
    _known: OrderedDict[int, Run | InterviewRun]

    @classmethod
    def of(cls, curator: Curator, send: Callable[[bytes], Any]) -> OpenRuns:
        """No run is known yet."""
        return cls(curator, send, OrderedDict())

    def find(self, number: int, loop: asyncio.AbstractEventLoop) -> Run | InterviewRun:
        """The run of that number; its comparisons are made by the engine processes."""
        run = self._known.get(number)
        if run is None:
            kind = self.curator.account.runs.state(number).spend["run"]
            made = (
                InterviewRun(self.curator, number, tell=self._make_tell(loop))
                if kind == KIND
                else Run(self.curator, number, compare=self._make_compare(loop))
            )
            run = self._known.setdefault(number, made)
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return run

    def _make_compare(self, loop: asyncio.AbstractEventLoop) -> Compare:
        def compare(turn: Turn) -> Judged:
            sent = asyncio.run_coroutine_threadsafe(self.send(write_turn(turn)), loop)
            return read_judged(sent.result())

        return compare

    def _make_tell(self, loop: asyncio.AbstractEventLoop) -> Tell:
        def tell(interview: Interview, one: Posing, version: str) -> list[int]:
            body = write_posed(interview, one, version)
            return read_told(asyncio.run_coroutine_threadsafe(self.send(body), loop).result())

        return tell


__all__ = [
    "ANSWERS",
    "OpenRuns",
    "answer_choice",
    "answer_turn",
    "read_judged",
    "write_choice",
    "write_median",
    "write_posed",
    "write_quality",
    "write_stage",
    "write_turn",
]
