"""A question on its way from its price to its answer: planned, then paid."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.accounting.loss import NOTHING, Loss
from discreet.engine.protocol import Compiled
from discreet.exact.records import dataclass
from discreet.ledger import About, Receipt, Request
from discreet.price import Priced
from discreet.question.blocks import Area
from discreet.question.offer import Offer
from discreet.release.answer import Answer, Released

if TYPE_CHECKING:
    from discreet.curate.levels import Total
    from discreet.release.combining import Bound

CURATOR = "curator"
"""Who asks when nobody is named."""

ANY_DELTA = Fraction(1, 10**9)
"""With which questions of private groups are planned where none is offered."""

REMEMBERED = 256
"""How many questions are kept parsed and priced; a page prices the same text again and again."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A question with its price, and what the account needs to know of it; public knowledge."""

    priced: Priced
    compiled: Compiled
    key: str
    area: Area
    places: tuple[About, ...] = ()
    """Which rows it is about, each as later questions look for its answer."""
    sought: tuple[About, ...] = ()
    """Where answers are looked for that tell it."""
    former: bool = False
    """Whether it is priced as it once was: what was paid for then is shown, and nothing charged."""


@dataclass(frozen=True, slots=True)
class Paid:
    """A question that has been charged and may now be computed."""

    priced: Priced
    compiled: Compiled
    receipt: Receipt
    data_version: str
    improving: Improving | None = None
    basis: str | None = None
    """What it must be computed from, where that is known for certain."""


@dataclass(frozen=True, slots=True)
class Improving:
    """What a payment adds to: an earlier answer whose noise it refines, or ``sources`` beside it.

    ``target`` is the question at the price that the answer is worth in all.
    """

    target: Priced
    sources: tuple[int, ...] = ()
    parent: int | None = None
    earlier: tuple[Released, tuple[Fraction, ...]] | None = None
    """What the parent released, and the scales of its noise."""
    rolled_up: bool = False
    """Whether the parent is a finer table, from whose refinement the target is added up."""

    @property
    def is_told(self) -> bool:
        """Whether the answer is read off what is released, and is not that itself."""
        return self.parent is None or self.rolled_up


@dataclass(frozen=True, slots=True)
class TopUp:
    """A way to improve what is known: what is charged, and what it then adds to."""

    planned: Planned
    loss: Loss
    improving: Improving
    offer: Offer | None = None
    """What is offered for what is measured, where that is another question than is asked."""
    margins: tuple[tuple[str, float], ...] = ()
    """How good the answer will be, where that is not what one measurement would be."""

    @property
    def source(self) -> str:
        """What is improved, in words."""
        numbers = (self.improving.parent,) if self.improving.parent else self.improving.sources
        if not numbers:
            return "a new measurement"
        *others, last = [f"#{number}" for number in numbers]
        added = ", and adds up its groups" if self.improving.rolled_up else ""
        if not others:
            return f"improves answer {last}, which stays valid{added}"
        return f"improves answers {', '.join(others)} and {last}, which stay valid{added}"


@dataclass(frozen=True, slots=True)
class PlannedStatement:
    """A statement with its price: what is measured, with a request for each, and what is summed."""

    planned: tuple[Planned, ...]
    requests: tuple[Request, ...]
    offers: tuple[Offer, ...]  # as they were made: a margin may be kept by a narrower one
    totals: tuple[Total, ...] = ()

    @property
    def loss(self) -> Loss:
        """What all of it costs."""
        return sum((plan.priced.loss for plan in self.planned), start=NOTHING)


@dataclass(frozen=True, slots=True)
class AccountRow:
    """What the account told when a statement asked for it, and what is to be said of that."""

    row: Mapping[str, Sequence[Any]]
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PaidStatement:
    """A statement whose questions have been charged: each is answered already, or to be computed.

    Once those of ``open`` are answered, :meth:`Curator.finish` computes the statement.
    """

    bound: Bound
    parts: tuple[Paid | Answer, ...]  # of those that are measured, in order
    totals: tuple[Total, ...] = ()  # of those that are added up from them
    later: bool = False  # only what is asked first: once it is answered, all is paid for again
    account: AccountRow | None = None

    @property
    def open(self) -> tuple[Paid, ...]:
        """What is to be computed, each charge once."""
        found = {part.receipt.id: part for part in self.parts if isinstance(part, Paid)}
        return tuple(found.values())


def make_fresh_key(key: str, number: int) -> str:
    """The key of the same measurement, made anew for the ``number``-th time."""
    return hashlib.sha256(f"{key} fresh {number}".encode()).hexdigest()
