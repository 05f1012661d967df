"""Several questions asked together: one price, one charge, one release; an answer for each."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from discreet.accounting.loss import Loss
from discreet.curate.steps import make_fresh_key
from discreet.engine.protocol import C, Compiled, Engine, describe_failure
from discreet.errors import BudgetRefusal, DataRefusal, InvalidParameter, Refusal
from discreet.exact.numbers import canonical_json
from discreet.ledger import Receipt, Request, Stored
from discreet.price import Priced
from discreet.price.batch import Batch, price_batch
from discreet.price.calibration import find_lumpings
from discreet.question.blocks import Area
from discreet.question.offer import Offer
from discreet.question.question import Question
from discreet.release.answer import Answer
from discreet.release.record import (
    answer_from_bytes,
    join_batch,
    read_released,
    replay_key,
    split_batch,
)

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

    def request(self, analyst: str, curator: Curator, version: str) -> Request:
        """The one charge for all of them."""
        from discreet.curate.curator import list_places

        return Request(
            analyst=analyst,
            question=self.text,
            spend=self.spend,
            key=self.key,
            data_version=version,
            formerly=curator.engine.former_version(),
            loss=self.batch.loss,
            area=self.area,
            abouts=tuple(place for part in self.batch.parts for place in list_places(part.plan)),
            entities=curator.list_entities(part.plan.source for part in self.batch.parts),
        )


def plan_batch(
    curator: Curator,
    questions: Sequence[Asking],
    offer: dict[str, Any],
    *,
    in_rho: bool | None = None,
) -> PlannedBatch:
    """The price of all questions together, or a refusal; nothing is read.

    ``in_rho``: an accuracy at the least rho, as it is if rho alone is counted; or as is said here.
    """
    from discreet.curate.curator import write_text

    asked = _parse(curator, questions)
    spends = _read_offers(offer, len(asked))
    if in_rho is None:
        in_rho = curator.seeks_rho(spends[0])
    batch = price_batch(asked, spends, curator.engine.catalogue, in_rho=in_rho)
    compile_ = curator.engine.compile
    compiled = tuple(compile_(part.plan, find_lumpings(part)) for part in batch.parts)
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


@dataclass(frozen=True, slots=True)
class PaidBatch:
    """Questions that were charged together: to be computed on one version of data, or stored."""

    planned: PlannedBatch
    receipt: Receipt | Stored
    version: str


Compute = Callable[[Batch, str], bytes]
"""How a batch is computed on the data of a version, where that is not done here."""


def ask_batch(
    curator: Curator, questions: Sequence[Asking], analyst: str, offer: dict[str, Any]
) -> list[Answer]:
    """Answer all of them for one charge, or none; in the order in which they were asked."""
    return finish_batch(curator, pay_batch(curator, questions, analyst, offer))


def pay_batch(
    curator: Curator, questions: Sequence[Asking], analyst: str, offer: dict[str, Any]
) -> PaidBatch:
    """The first half: one charge for all of them, or a refusal; what is stored is free."""
    try:
        planned = plan_batch(curator, questions, offer)
        version = curator.engine.data_version()
        planned = _find_payable(curator, planned, questions, analyst, offer, version)
        if offer.get("fresh"):
            planned = _make_fresh(curator, planned, analyst, version)
        curator.crowding.check([part.plan.source for part in planned.batch.parts], version)
        receipt = curator.account.charge(planned.request(analyst, curator, version))  # durable
    except Refusal as refusal:
        curator.account.record_refusal(analyst, _name(questions), refusal)
        raise
    return PaidBatch(planned, receipt, version)


def _find_payable(
    curator: Curator,
    planned: PlannedBatch,
    questions: Sequence[Asking],
    analyst: str,
    offer: dict[str, Any],
    version: str,
) -> PlannedBatch:
    """What is ``planned``, or the same at the least epsilon where the account has or needs that.

    An accuracy once cost so also where rho alone is counted: what was paid for then is free.  And
    it does still where there is a cap of epsilon.
    """
    if not curator.seeks_rho(_read_offers(offer, len(questions))[0]):
        return planned

    def foresee(plan: PlannedBatch) -> str:
        try:
            return curator.account.preview(plan.request(analyst, curator, version))
        except BudgetRefusal:
            return "refused"

    outcome, fresh = foresee(planned), bool(offer.get("fresh"))
    if outcome in _PAID and not fresh:
        return planned
    pure = plan_batch(curator, questions, offer, in_rho=False)
    other = foresee(pure)
    known = other in _PAID and not fresh
    return pure if known or (outcome == "refused" != other) else planned


_PAID = ("stored", "resumed")
"""What an account says of what was paid for before."""


def finish_batch(curator: Curator, paid: PaidBatch, compute: Compute | None = None) -> list[Answer]:
    """The second half: computed, stored, shown; here, or by ``compute``."""
    if isinstance(paid.receipt, Stored):
        return read_batch(paid.planned, paid.receipt.answer, paid.receipt.id, replayed=True)
    return _compute(curator, paid.planned, paid.receipt, paid.version, compute)


def _make_fresh(
    curator: Curator, planned: PlannedBatch, analyst: str, version: str
) -> PlannedBatch:
    """The same questions under a key that no answers have: measured again, and charged again."""

    number, found = 0, planned
    while curator.account.find(found.request(analyst, curator, version)) == "stored":
        number += 1
        found = replace(planned, key=make_fresh_key(planned.key, number))
    return found


def _compute(
    curator: Curator,
    planned: PlannedBatch,
    receipt: Receipt,
    version: str,
    elsewhere: Compute | None,
) -> list[Answer]:
    found = None
    with suppress(DataRefusal):  # left behind here: what is raised has no history
        if elsewhere is None:
            found = compute_batch(curator.engine, planned.batch.parts, planned.compiled, version)
        else:
            found = elsewhere(planned.batch, version)
    if found is None:
        curator.account.burn(receipt)
        with suppress(LookupError):
            stored = curator.account.answer(receipt.id)
            return read_batch(planned, stored.answer, stored.id, replayed=True)
        raise describe_failure()
    stored_bytes = curator.account.publish(receipt, found)
    return read_batch(planned, stored_bytes, receipt.id)


def compute_batch(
    engine: Engine[C], parts: Sequence[Priced], compiled: Sequence[C], version: str
) -> bytes:
    """The answers to questions that were charged together, as they are stored; all or none."""
    from discreet.curate.curator import compute

    found = [
        compute(engine, plan, part, version) for plan, part in zip(compiled, parts, strict=True)
    ]
    return join_batch(found)


def recall_batch(stored: bytes, number: int, loss: Loss) -> list[Answer]:
    """The answers of a stored batch that cost ``loss``, whatever data and schema are now."""
    parts = split_batch(stored)
    answers = list(map(answer_from_bytes, parts))
    said = _tell_company(len(parts), loss)
    return [replace(answer.number(number, replayed=True), said=said) for answer in answers]


def _tell_company(count: int, loss: Loss) -> tuple[str, ...]:
    said = f"one of {count} questions released together for {loss.rounded()}."
    return (said,) if count > 1 else ()


def read_batch(
    planned: PlannedBatch, stored: bytes, number: int, *, replayed: bool = False
) -> list[Answer]:
    """The answers of a stored batch, each with its own noise and certificate."""
    parts = split_batch(stored)
    said = _tell_company(len(parts), planned.batch.loss)
    return [
        Answer(
            priced,
            *read_released(part),
            id=number,
            replayed=replayed,
            said=said,
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


__all__ = [
    "PaidBatch",
    "ask_batch",
    "compute_batch",
    "finish_batch",
    "pay_batch",
    "plan_batch",
    "recall_batch",
]
