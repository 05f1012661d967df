"""What passes between the curator and the account when a question is asked."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from discreet.exact.records import dataclass

if TYPE_CHECKING:
    from discreet.accounting.loss import Loss
    from discreet.question.blocks import Area


@dataclass(frozen=True, slots=True)
class About:
    """Which rows a question measures, as released answers are looked for that tell the same.

    ``base`` names the tables and joins, ``conditions`` each condition on their rows with the
    columns it looks at; ``keys`` are the columns of the groups, ``measured`` those of the values.
    """

    base: str
    conditions: tuple[tuple[str, frozenset[str]], ...]
    keys: frozenset[str]
    measured: frozenset[str]


@dataclass(frozen=True, slots=True)
class Request:
    """A question that is to be paid for.

    ``key`` says which question at which spend, and so at which loss about which area;
    with ``data_version`` it says which answer.  ``area`` are the blocks whose people the
    question can touch, and ``about`` says which rows it measures.
    """

    analyst: str
    question: str
    spend: Mapping[str, Any]
    key: str
    data_version: str
    loss: Loss
    area: Area
    about: About | None = None
    abouts: tuple[About, ...] = ()
    """All rows that answers may be looked for by, where there are several: of each question that
    is paid for together with others, and of each condition of an aggregate."""
    parent: int | None = None
    """The charge of the answer that it refines, whose noise it shares; of each answer one may."""
    basis: str | None = None
    """What both are computed from, where it is known for certain that nobody has changed it."""
    entities: frozenset[str] | None = None
    """Whose rows are read: nobody else's can change the answer.  None: anybody's may be."""
    former: bool = False
    """Whether its price is one of the past: what was paid for is found, and nothing is charged."""
    formerly: str | None = None
    """What the same sources were called when rows were chosen otherwise; what was paid for then is
    not paid for again."""
    once: bool = False
    """Whether a run that has halted is found as it ended, and not paid for anew."""


HALTED = "halted"
"""Why a run is over that has told all it was paid for."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The proof that a question is paid for; ``id`` is the number of the charge."""

    id: int
    analyst: str
    loss: Loss
    data_version: str
    resumed: bool = False
    """Whether it was paid for before, by an asker who never saw an answer."""
    parent: int | None = None
    """The charge of the answer that it refines: paid was the difference, and no more is due."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An answer that was paid for and published; showing it again is free."""

    id: int
    answer: bytes


class State(StrEnum):
    """What became of a question."""

    OPEN = "open"
    ANSWERED = "answered"
    BURNT = "burnt"
    REFUSED = "refused"
    CLOSED = "closed"
    """A run that is over: what it told is in its steps."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a transcript: a charge and what became of it, or a refusal."""

    id: int
    at: datetime
    analyst: str
    question: str
    spend: Mapping[str, Any]
    loss: Loss | None
    state: State
    code: str = ""
    """The code of a refusal."""
    count: int = 1
    """How many refusals it stands for; more than one, and their questions were not kept."""
