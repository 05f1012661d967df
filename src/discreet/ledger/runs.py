"""What the ledger knows of runs: one charge, then what was told, step by step, until the halt.

A run is a charge like any other.  What it has told is recorded in steps before it is shown; each
says how much was told before it, so that of two processes that go on from the same place one is
too late.  The secret of a run is nowhere in the ledger.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from discreet.errors import Halted, LedgerRefusal
from discreet.exact.numbers import canonical_json
from discreet.ledger import admission, refusals
from discreet.ledger.books import Record, digest_subject
from discreet.ledger.charges import HALTED
from discreet.ledger.journal import Journal, Writer

CLOSED, LOST = "closed", "lost"
"""Why a run is over besides having told all it was paid for: its asker ended it; its secret is
gone."""


@dataclass(frozen=True, slots=True)
class RunState:
    """A run as the ledger knows it."""

    id: int
    analyst: str
    spend: dict[str, Any]
    """Its settings, as they were charged."""
    told: tuple[dict[str, Any], ...]
    """Everything told so far, in order."""
    ended: str = ""
    """Why it is over; empty while it is open."""


class RunBook:
    """The runs of one dataset."""

    def __init__(self, journal: Journal, dataset: str) -> None:
        self._journal = journal
        self._dataset = dataset

    def state(self, id: int) -> RunState:  # noqa: A002 (the word of receipts and transcripts)
        """How a run stands, or a ``LookupError``."""
        with self._journal.reading():
            charge = self._find(id)
            steps, ended = self._steps(charge), self._journal.store.outcome(charge)
        told = tuple(part for step in steps for part in self._read(step))
        content = charge.content
        why = "" if ended is None else ended.content.get("reason", LOST)
        return RunState(charge.sequence, charge.analyst, content["spend"], told, why)

    def check(self, id: int) -> None:  # noqa: A002
        """Refuse before data is read: whoever may no longer ask, and a run that is over."""
        with self._journal.reading():
            charge = self._find(id)
            self._check_asker(charge, self._journal.now())
            ended = self._journal.store.outcome(charge)
        if ended is not None:
            raise over_refusal(ended.content.get("reason", LOST))

    def _check_asker(self, charge: Record, now: datetime) -> None:
        standing = self._journal.books.datasets[self._dataset]
        admission.check_access(standing, charge.analyst, now)
        if standing.layout != charge.content["spend"]["layout"]:
            raise LedgerRefusal(
                "L9",
                f"the blocks of dataset {self._dataset!r} were declared anew since this run began.",
                why="people in blocks that are new were not charged for it.",
                fix="end this run, and open a new one.",
            )

    def record(self, id: int, told: list[dict[str, Any]], *, after: int, halts: bool) -> bool:  # noqa: A002
        """Enter what a run tells next, durably; False if more than ``after`` was told already.

        With ``halts`` the run is over, in the same transaction.
        """
        body = canonical_json(told).encode()
        with self._journal.writing() as writer:
            charge = self._find(id)
            self._check_asker(charge, writer.now)
            if self._journal.store.outcome(charge) is not None:
                raise over_refusal()
            last = self._journal.store.last(_subject(charge))
            before = 0 if last is None else last.content["after"] + last.content["count"]
            if before != after:
                return False
            content = {
                "charge": charge.sequence,
                "after": after,
                "count": len(told),
                "answer": hashlib.sha256(body).hexdigest(),
            }
            writer.append(
                "step",
                content,
                dataset=self._dataset,
                analyst=charge.analyst,
                subject=_subject(charge),
                answer=body,
            )
            if halts:
                self._append_halt(charge, HALTED, writer)
        return True

    def close(self, id: int, reason: str) -> None:  # noqa: A002
        """End a run; one that is over stays as it is."""
        with self._journal.writing() as writer:
            charge = self._find(id)
            if self._journal.store.outcome(charge) is None:
                self._append_halt(charge, reason, writer)

    def _append_halt(self, charge: Record, reason: str, writer: Writer) -> None:
        writer.append(
            "halt",
            {"charge": charge.sequence, "reason": reason},
            dataset=self._dataset,
            analyst=charge.analyst,
            subject=charge.subject,
        )

    def _find(self, number: int) -> Record:
        record = self._journal.store.record(number)
        known = record is not None and record.kind == "charge" and record.dataset == self._dataset
        if record is None or not known or "run" not in record.content["spend"]:
            raise refusals.missing(f"dataset {self._dataset!r} has no run numbered {number}.")
        return record

    def _steps(self, charge: Record) -> list[Record]:
        return self._journal.store.of_subject(_subject(charge))

    def _read(self, step: Record) -> list[dict[str, Any]]:
        stored = self._journal.store.answer(step.sequence)
        if stored is None or hashlib.sha256(stored).hexdigest() != step.content["answer"]:
            raise refusals.corrupt("what a run told was altered or lost.")
        found: list[dict[str, Any]] = json.loads(stored)
        return found


def _subject(charge: Record) -> str:
    """Under what the steps of a run are found; the charge's own subject is for its end."""
    return digest_subject("steps", charge.dataset, str(charge.sequence))


def over_refusal(reason: str = CLOSED) -> Halted:
    """What is said when a run that is over is asked."""
    why = {
        HALTED: "the price covered that many answers, and one more would be free of charge.",
        CLOSED: "its secret was erased when it ended, and a new one is a new run.",
        LOST: "its secret is gone, and another in its place would tell more than was paid for.",
    }
    return Halted(
        "H1",
        {
            HALTED: 'this run has told all the "above" that it was paid for.',
            CLOSED: "this run was ended.",
            LOST: "this run could not go on, and was closed.",
        }.get(reason, "this run is over."),
        why=why.get(reason, why[CLOSED]),
        fix="open a new run, and pay for it: curator.watch(...).",
    )


__all__ = ["CLOSED", "LOST", "RunBook", "RunState", "over_refusal"]
