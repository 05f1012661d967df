"""What is released once and is no question: charged, computed, stored and shown like an answer.

A choice, a data-quality report, a median with noise to fit the data: each has a price that public
knowledge decides, is paid before data is read, stored before it is shown, and free when it is
asked for again on the same data.  A crash leaves a charge that the same request finishes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.accounting.loss import Loss
from discreet.engine.protocol import describe_failure
from discreet.errors import DataRefusal, Refusal
from discreet.exact.numbers import canonical_json
from discreet.ledger.charges import Request, Stored

if TYPE_CHECKING:
    from discreet.curate.curator import Curator
    from discreet.question.relation import Relation

_LONGEST_TEXT = 20_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """A release that is to be paid for."""

    text: str
    """What the ledger says of it."""
    spend: Mapping[str, Any]
    same: Any
    """What makes two of them the same, as JSON: everything measured, and the mechanism."""
    loss: Loss
    sources: Sequence[Relation] = ()
    """The rows that are read."""
    tables: Sequence[str] = ()
    """The tables that are read whole."""

    @property
    def key(self) -> str:
        """By which it is found again."""
        return hashlib.sha256(canonical_json(self.same, ascii_only=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Told:
    """What was stored, under which number, and whether it was there before."""

    body: bytes
    id: int
    replayed: bool = False


def release_once(
    curator: Curator, wanted: Wanted, compute: Callable[[str], bytes], *, analyst: str
) -> Told:
    """Charge, compute, store, show; what was released before is shown again, free.

    ``compute`` gets the version of the data it is about, and raises a ``DataRefusal`` if it cannot.
    """
    version = curator.engine.data_version()
    curator.crowding.check(list(wanted.sources), version)
    request = _make_request(curator, wanted, version, analyst)
    try:
        receipt = curator.account.charge(request)  # durable from here on
    except Refusal as refusal:
        curator.account.record_refusal(analyst, request.question, refusal)
        raise
    if isinstance(receipt, Stored):
        return Told(receipt.answer, receipt.id, replayed=True)
    body = None
    with suppress(DataRefusal):  # left behind here: what is raised has no history
        body = compute(version)
    if body is None:
        curator.account.burn(receipt)
        raise describe_failure()
    return Told(curator.account.publish(receipt, body), receipt.id)


def is_known(curator: Curator, wanted: Wanted, *, analyst: str) -> bool:
    """Whether it was paid for on these data, so that ``analyst`` has it for free."""
    request = _make_request(curator, wanted, curator.engine.data_version(), analyst)
    with suppress(Refusal):  # who may not ask is told so when it is charged
        return curator.account.find(request) != "admitted"
    return False


def _make_request(curator: Curator, wanted: Wanted, version: str, analyst: str) -> Request:
    return Request(
        analyst=analyst,
        question=wanted.text[:_LONGEST_TEXT],
        spend=dict(wanted.spend),
        key=wanted.key,
        data_version=version,
        formerly=curator.engine.former_version(),
        loss=wanted.loss,
        area=curator.everyone,
        entities=curator.list_entities(wanted.sources, wanted.tables),
    )


__all__ = ["Told", "Wanted", "is_known", "release_once"]
