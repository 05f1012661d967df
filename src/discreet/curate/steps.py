"""A question on its way from its price to its answer: planned, then paid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.engine.protocol import Compiled
from discreet.ledger import Receipt
from discreet.price import Priced
from discreet.question.blocks import Area
from discreet.release.answer import Answer

if TYPE_CHECKING:
    from discreet.release.combining import Bound


@dataclass(frozen=True, slots=True)
class Planned:
    """A question with its price, and what the account needs to know of it; public knowledge."""

    priced: Priced
    compiled: Compiled
    key: str
    area: Area


@dataclass(frozen=True, slots=True)
class Paid:
    """A question that has been charged and may now be computed."""

    priced: Priced
    compiled: Compiled
    receipt: Receipt
    data_version: str


@dataclass(frozen=True, slots=True)
class PaidStatement:
    """A statement whose questions have been charged: each is answered already, or to be computed.

    Once those of ``open`` are answered, :meth:`Curator.finish` computes the statement.
    """

    bound: Bound
    parts: tuple[Paid | Answer, ...]

    @property
    def open(self) -> tuple[Paid, ...]:
        """What is to be computed, each charge once."""
        found = {part.receipt.id: part for part in self.parts if isinstance(part, Paid)}
        return tuple(found.values())
