"""Choosing among questions: charged, computed, stored and shown like an answer.

clinic.choose({"flu": "SELECT COUNT(DISTINCT patient) ...", "gout": ...}, epsilon="0.1")
clinic.choose("SELECT ward, COUNT(*) FROM visits GROUP BY ward", epsilon="0.1", k=3)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.accounting.loss import Loss
from discreet.curate.once import Told, Wanted, is_known, release_once
from discreet.curate.runs import prepare
from discreet.engine.protocol import describe_failure
from discreet.errors import InvalidParameter
from discreet.exact.numbers import canonical_json
from discreet.price.chosen import Contest, OneShot, price_contest
from discreet.price.interview import add_sensitivities, price_posed
from discreet.price.watch import Watch, is_monotonic
from discreet.question.offer import Offer
from discreet.question.sql import write_question_text
from discreet.release.record import to_json
from discreet.release.release import choose_best

if TYPE_CHECKING:
    from discreet.curate.curator import Asking, Curator

Compute = Callable[[Contest, str], bytes]
"""Chooses on the data of a version, in another process; raises a ``DataRefusal`` if it cannot."""
_PLAIN = Watch(None, Fraction(1))
"""A candidate is one number, or one for each public group, as a question of a run is."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Who was chosen, best first: their ``names``; their ``numbers``, if they were paid for.

    ``contest`` is what was chosen among and how, ``id`` the number of its charge; ``replayed``
    if it was paid for before.
    """

    names: tuple[Any, ...]
    numbers: tuple[float, ...] | None
    contest: Contest
    id: int
    replayed: bool = False

    @property
    def best(self) -> Any:
        """The first of them."""
        return self.names[0]

    @property
    def loss(self) -> Loss:
        """What it cost."""
        return self.contest.loss

    def margin(self, confidence: Any = "0.95") -> float:
        """How far below the best that was left each of them is at most, at ``confidence``."""
        return self.contest.margin(confidence)

    def to_json(self, confidence: Any = "0.95") -> dict[str, Any]:
        """The same at every door; margins are at ``confidence``."""
        from discreet.release.amounts import loss_json

        return {
            "id": self.id,
            "chosen": [str(name) for name in self.names],
            "numbers": None if self.numbers is None else list(self.numbers),
            "margin": self.margin(confidence),
            "theorem_margin": self.contest.theorem_margin(confidence),
            "price": loss_json(self.loss),
            "replayed": self.replayed,
        }

    def __str__(self) -> str:
        numbers = self.numbers or (None,) * len(self.names)
        told = ", ".join(
            f"{name}" if number is None else f"{name}: {number:,.6g}"
            for name, number in zip(self.names, numbers, strict=True)
        )
        return f"{told}  (within {self.margin():,.6g} of the best, 95 %; {self.loss})"


@dataclass(frozen=True, slots=True)
class ChoiceExplanation:
    """What a choice would cost, and how good it would be; free.  Among what: its ``contest``."""

    contest: Contest

    @property
    def loss(self) -> Loss:
        """What the choice costs one unit, with the numbers that are told."""
        return self.contest.loss

    def margin(self, confidence: Any = "0.95") -> float:
        """How far below the best that was left each of them is at most, at ``confidence``."""
        return self.contest.margin(confidence)

    def to_json(self, confidence: Any = "0.95") -> dict[str, Any]:
        """The same at every door; margins are at ``confidence``."""
        from discreet.release.amounts import loss_json

        return {
            "choice": str(self.contest),
            "candidates": len(self.contest.names),
            "sensitivity": float(self.contest.mechanism.sensitivity * self.contest.unit),
            "method": self.contest.mechanism.method,
            "margin": self.margin(confidence),
            "theorem_margin": self.contest.theorem_margin(confidence),
            "loss": loss_json(self.loss),
        }

    def __str__(self) -> str:
        contest = self.contest
        moved = float(contest.mechanism.sensitivity * contest.unit)
        what = "all scores" if contest.mechanism.method == "one-shot" else "one score"
        by = contest.mechanism.method
        lines = [
            str(contest),
            f"price:  {self.loss}",
            f"moved:  one unit moves {what} by at most {moved:,.6g}",
            f"margin: at most {self.margin():,.6g} below the best (95 %), by {by}",
            f"theorem: {contest.theorem_margin():,.6g}",
        ]
        told = contest.number_margin()
        return "\n".join(lines if told is None else [*lines, f"numbers: ±{told:,.6g} (95 %)"])


def make_contest(
    curator: Curator,
    candidates: Asking | Mapping[str, Asking],
    offer: Offer,
    *,
    k: int,
    counts: bool,
    peeled: bool = False,
) -> Contest:
    """What is to be chosen among, at what price; reads nothing.

    ``peeled``: one after the other, also where one shot is nearer to the best.
    """
    if isinstance(candidates, Mapping):
        found = {str(name): prepare(curator, one, _PLAIN) for name, one in candidates.items()}
        if any(one.plan.keys for one in found.values()):
            raise InvalidParameter(
                "P4",
                "a candidate with GROUP BY is many candidates.",
                why="each candidate has one score.",
                fix="give one question with GROUP BY, or a question without for each name.",
            )
        each = list(found.values())
    else:
        grouped = prepare(curator, candidates, _PLAIN)
        if not grouped.plan.keys:
            raise InvalidParameter(
                "P5",
                "there is nothing to choose from: the question has no groups.",
                why="a choice among fewer than two tells nothing, and would be paid for.",
                fix="group by a column with declared values, or give several questions by name.",
            )
        each = [grouped]
    neighbours = curator.schema.neighbours
    monotonic = all(is_monotonic(w.question, w.plan.measurements[0], neighbours) for w in each)
    scored = found if isinstance(candidates, Mapping) else grouped
    known = curator.engine.catalogue.multiplicity
    posed = [price_posed(w.question, schema=curator.schema, multiplicity=known) for w in each]
    together = None if peeled else add_sensitivities(posed, known)
    return price_contest(scored, offer, k=k, counts=counts, monotonic=monotonic, together=together)


def choose(
    curator: Curator,
    candidates: Asking | Mapping[str, Asking],
    offer: Offer,
    *,
    k: int,
    counts: bool,
    analyst: str,
    compute: Compute | None = None,
) -> Chosen:
    """Charge, read, choose, store, show; what was chosen before is shown again, free."""
    contest = make_contest(curator, candidates, offer, k=k, counts=counts)
    if isinstance(contest.mechanism, OneShot):  # what was paid for when all were peeled is free
        former = make_contest(curator, candidates, offer, k=k, counts=counts, peeled=True)
        if is_known(curator, _want(former, offer), analyst=analyst):
            contest = former
    compiled = [curator.engine.compile(one.plan) for one in contest.watched]
    wanted = _want(contest, offer)

    def run(version: str) -> bytes:
        if compute is None:
            return compute_choice(curator.engine, contest, compiled, version)
        return compute(contest, version)

    told = release_once(curator, wanted, run, analyst=analyst)
    return _read(contest, told)


def _want(contest: Contest, offer: Offer) -> Wanted:
    return Wanted(
        _write(contest),
        offer.to_json(),
        _same(contest),
        contest.loss,
        [one.plan.source for one in contest.watched],
    )


def compute_choice(engine: Any, contest: Contest, compiled: Sequence[Any], version: str) -> bytes:
    """The choice, ready to be stored; of what fails nothing is said."""
    with suppress(Exception):
        truths = [engine.run(one) for one in compiled]
        places, numbers = choose_best(contest, truths)
        if engine.data_version() == version:
            return canonical_json({"Chosen": {"places": places, "numbers": numbers}}).encode()
    raise describe_failure()


def _read(contest: Contest, stored: Told) -> Chosen:
    found = json.loads(stored.body)["Chosen"]
    names = tuple(contest.names[place] for place in found["places"])
    told = found["numbers"]
    numbers = None if told is None else tuple(float(n * contest.unit) for n in told)
    return Chosen(names, numbers, contest, stored.id, stored.replayed)


def _write(contest: Contest) -> str:
    texts = [w.question.text or write_question_text(w.question) for w in contest.watched]
    return "; ".join([str(contest), *texts])


def _same(contest: Contest) -> dict[str, Any]:
    """What makes two choices the same: everything measured, and the mechanism."""
    return {
        "choose": [to_json(w.plan) for w in contest.watched],
        "names": [str(name) for name in contest.names],
        "by": repr(contest.mechanism),
        "numbers": repr(contest.numbers),
    }


__all__ = ["ChoiceExplanation", "Chosen", "choose", "compute_choice", "make_contest"]
