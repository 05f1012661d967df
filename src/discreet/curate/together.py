"""Several questions asked together: one price, one charge, one release; an answer for each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from discreet.engine.protocol import Compiled, Engine, describe_failure
from discreet.errors import DataRefusal, InvalidParameter, Refusal
from discreet.exact.numbers import canonical_json
from discreet.ledger import Receipt, Request, Stored
from discreet.price.batch import Batch, price_batch
from discreet.question.blocks import Area
from discreet.question.offer import Offer
from discreet.question.question import Question
from discreet.release.answer import Answer
from discreet.release.record import released_from_bytes, replay_key

if TYPE_CHECKING:
    from discreet.curate.curator import Asking, Curator

MOST_QUESTIONS = 100
"""How many questions may be asked at once."""


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """Questions with one price, and what the account needs to know of them; public knowledge."""

    batch: Batch
    compiled: tuple[Compiled, ...]
    key: str
    area: Area
    text: str
    spend: dict[str, Any]

    def request(self, analyst: str, engine: Engine[Any], version: str) -> Request:
        """The one charge for all of them."""
        return Request(
            analyst=analyst,
            question=self.text,
            spend=self.spend,
            key=self.key,
            data_version=version,
            formerly=engine.former_version(),
            loss=self.batch.loss,
            area=self.area,
        )


def plan_batch(
    curator: Curator, questions: Sequence[Asking], offer: dict[str, Any]
) -> PlannedBatch:
    """The price of all questions together, or a refusal; nothing is read."""
    from discreet.curate.curator import write_text

    asked = _parse(curator, questions)
    spends = _read_offers(offer, len(asked))
    batch = price_batch(asked, spends, curator.engine.catalogue)
    compiled = tuple(curator.engine.compile(part.plan) for part in batch.parts)
    keys = ["batch", *(replay_key(part) for part in batch.parts)]
    masks = [curator.area(question).mask() for question in asked]
    return PlannedBatch(
        batch,
        compiled,
        hashlib.sha256(canonical_json(keys, ascii_only=True).encode()).hexdigest(),
        Area.of(curator.space, reduce(lambda a, b: a | b, masks)),
        ";\n".join(write_text(question) for question in asked),
        {"together": [spend.to_json() for spend in spends]},
    )


def ask_batch(
    curator: Curator, questions: Sequence[Asking], analyst: str, offer: dict[str, Any]
) -> list[Answer]:
    """Answer all of them for one charge, or none; in the order in which they were asked."""
    try:
        planned = plan_batch(curator, questions, offer)
        version = curator.engine.data_version()
        if offer.get("fresh"):
            planned = _make_fresh(curator, planned, analyst, version)
        curator.crowding.check([part.plan.source for part in planned.batch.parts], version)
        receipt = curator.account.charge(
            planned.request(analyst, curator.engine, version)
        )  # durable
    except Refusal as refusal:
        curator.account.record_refusal(analyst, _name(questions), refusal)
        raise
    if isinstance(receipt, Stored):
        return read_batch(planned, receipt.answer, receipt.id, replayed=True)
    return _compute(curator, planned, receipt, version)


def _make_fresh(
    curator: Curator, planned: PlannedBatch, analyst: str, version: str
) -> PlannedBatch:
    """The same questions under a key that no answers have: measured again, and charged again."""
    from discreet.curate.curator import make_fresh_key

    number, found = 0, planned
    while curator.account.find(found.request(analyst, curator.engine, version)) == "stored":
        number += 1
        found = replace(planned, key=make_fresh_key(planned.key, number))
    return found


def _compute(
    curator: Curator, planned: PlannedBatch, receipt: Receipt, version: str
) -> list[Answer]:
    from discreet.curate.curator import compute

    found = None
    with suppress(DataRefusal):  # left behind here: what is raised has no history
        found = [
            compute(curator.engine, compiled, part, version)
            for compiled, part in zip(planned.compiled, planned.batch.parts, strict=True)
        ]
    if found is None:
        curator.account.burn(receipt)
        with suppress(LookupError):
            stored = curator.account.answer(receipt.id)
            return read_batch(planned, stored.answer, stored.id, replayed=True)
        raise describe_failure()
    whole = canonical_json({"Batch": [json.loads(part) for part in found]}).encode()
    stored_bytes = curator.account.publish(receipt, whole)
    return read_batch(planned, stored_bytes, receipt.id)


def read_batch(
    planned: PlannedBatch, stored: bytes, number: int, *, replayed: bool = False
) -> list[Answer]:
    """The answers of a stored batch, each with its own noise and certificate."""
    parts = json.loads(stored)["Batch"]
    count = len(parts)
    said = (f"one of {count} questions released together for {planned.batch.loss.rounded()}.",)
    return [
        Answer(
            priced,
            *released_from_bytes(canonical_json(part).encode()),
            id=number,
            replayed=replayed,
            said=said if count > 1 else (),
        )
        for priced, part in zip(planned.batch.parts, parts, strict=True)
    ]


def _parse(curator: Curator, questions: Sequence[Asking]) -> list[Question]:
    if isinstance(questions, str) or not 1 <= len(questions) <= MOST_QUESTIONS:
        raise InvalidParameter(
            "P4",
            f"{'one text' if isinstance(questions, str) else len(questions)} is no list of "
            f"1 to {MOST_QUESTIONS} questions.",
            why="what is asked together is priced together, at a known cost.",
            fix='ask_all(["SELECT COUNT(*) FROM a", "SELECT ..."], epsilon="0.1").',
        )
    found = []
    for question in questions:
        asked = curator.parse(question)
        explain = isinstance(question, str) and question.split(None, 1)[0].upper() == "EXPLAIN"
        if explain or not isinstance(asked, Question):
            raise InvalidParameter(
                "P4",
                "an EXPLAIN, or a statement that computes with several answers, is among them.",
                why="questions that are asked together are one release, and each has an answer of "
                "its own.",
                fix="ask such a statement by itself, or the questions in it one by one.",
            )
        found.append(asked)
    return found


def _read_offers(offer: dict[str, Any], count: int) -> list[Offer]:
    """One offer for all; or an accuracy for each, in the order of the questions."""
    within = offer.get("within")
    if not isinstance(within, list | tuple):
        one = Offer.of(**offer)
        return [one] * count if one.within else [one]
    if len(within) != count:
        raise InvalidParameter(
            "P4",
            f"{len(within)} margins are given for {count} questions.",
            why="each question is answered as well as its own margin says.",
            fix="give one for each, in their order, or one for all.",
        )
    if any(each is None for each in within):
        raise InvalidParameter(
            "P4",
            "a question has no margin.",
            why="what it may cost would be nobody's decision.",
            fix="give a margin for each question, or offer epsilon=... for all.",
        )
    return [Offer.of(**{**offer, "within": each}) for each in within]


def _name(questions: Sequence[Asking]) -> str:
    if isinstance(questions, str):
        return questions
    return ";\n".join(q if isinstance(q, str) else repr(type(q).__name__) for q in questions)


__all__ = ["ask_batch", "plan_batch"]
