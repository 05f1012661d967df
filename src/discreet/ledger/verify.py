"""Does the log hold together?  Everything is checked again from the first record."""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np

from discreet.exact.numbers import canonical_json
from discreet.exact.records import dataclass
from discreet.ledger import admission
from discreet.ledger.books import (
    FORMAT,
    Balances,
    Books,
    Record,
    Standing,
    decode_blocks,
    read_budget,
    saturate_units,
)
from discreet.ledger.checkpoint import Checkpoint
from discreet.ledger.tally import Tally

_MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found; ``str`` says it in words.

    Of so many ``records``, with ``charges`` and ``releases`` among them, ``head`` is the digest of
    the last, ``problems`` says in words what is wrong, and ``checkpoints`` how many agree with the
    log.
    """

    records: int
    head: str
    problems: tuple[str, ...]
    checkpoints: int
    charges: int
    releases: int

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __str__(self) -> str:
        if not self.ok:
            return "\n".join(["The ledger cannot be trusted:", *self.problems])
        agree = "checkpoint agrees" if self.checkpoints == 1 else "checkpoints agree"
        known = f", {self.checkpoints:,} {agree}" if self.checkpoints else ""
        return f"{self.records:,} records, all in order{known}; the last is {self.head[:16]}."


def verify_records(
    batches: Iterable[list[Record]],
    *,
    answers: Iterator[tuple[int, bytes]] | None,
    checkpoints: Iterable[Checkpoint],
    tallies: Iterable[Tally] = (),
    public_key: str | None = None,
) -> Verification:
    """Check the chain, the sums, the caps, the answers (if given) and the checkpoints.

    And that the running counts of refusals, which are beside the chain, go on from what it says.
    """
    audit = _Audit({c.sequence: c for c in checkpoints}, public_key)
    for batch in batches:
        for record in batch:
            audit.take(record)
    if answers is not None:
        audit.answers(answers)
    audit.compare_tallies(tallies)
    audit.finish()
    last = audit.last
    return Verification(
        records=audit.count,
        head="" if last is None else last.digest,
        problems=tuple(audit.problems[:_MOST_PROBLEMS]),
        checkpoints=audit.agreeing,
        charges=audit.charges,
        releases=audit.releases,
    )


class _Charged(NamedTuple):
    """What is kept of a charge, in case another refines its answer."""

    dataset: str
    epsilon: int
    about: int  # a digest of the data and the blocks
    parent: int | None
    basis: str | None  # what its answer must be computed of


@dataclass(slots=True)
class _Audit:
    """Adds the log up again, and notes what is wrong."""

    shown: dict[int, Checkpoint]
    public_key: str | None
    books: Books = field(default_factory=Books)
    last: Record | None = None
    count: int = 0
    charges: int = 0
    releases: int = 0
    agreeing: int = 0
    understood: bool = True
    problems: list[str] = field(default_factory=list)
    open: dict[str, int] = field(default_factory=dict)
    """The charge of each subject that has no outcome yet."""
    told: Counter[int] = field(default_factory=Counter)
    """How much each run has told, by its charge."""
    released: dict[int, str] = field(default_factory=dict)
    """The digest of each release's answer."""
    charged: dict[int, _Charged] = field(default_factory=dict)
    answered: dict[int, str | None] = field(default_factory=dict)  # charge: what it is computed of
    """Charges that have an answer."""
    refused: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    """How many refusals the log tells of, by dataset, analyst, day and code."""

    def take(self, record: Record) -> None:
        """Check one record against all before it."""
        if not record.follows(self.last):
            self.problems.append(_explain_break(record, self.last))
        if record.sequence in self.shown:
            self._compare(self.shown.pop(record.sequence), record)
        self.last = record
        self.count += 1
        if not self.understood:
            return
        try:
            content = record.content
            check = _CHECKS.get(record.kind)
            if check is not None:
                check(self, record, content)
            self.books.apply(record, content)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
            self.problems.append(f"record {record.sequence} cannot be understood.")
            self.understood = False  # sums beyond this point would mean nothing

    def _compare(self, checkpoint: Checkpoint, record: Record) -> None:
        if not checkpoint.is_genuine or not checkpoint.names(record):
            self.problems.append(f"record {record.sequence} is not the one its checkpoint names.")
        elif self.public_key not in (None, checkpoint.public_key):
            self.problems.append(f"the checkpoint of record {record.sequence} has another key.")
        else:
            self.agreeing += 1

    def answers(self, stored: Iterator[tuple[int, bytes]]) -> None:
        """Check that every release has its answer, unaltered, and nothing else has one."""
        missing = dict(self.released)
        for number, answer in stored:
            digest = missing.pop(number, None)
            if digest != hashlib.sha256(answer).hexdigest():
                self.problems.append(
                    f"the answer of record {number} was altered or never released."
                )
        self.problems += [f"the answer of record {number} is missing." for number in missing]

    def compare_tallies(self, tallies: Iterable[Tally]) -> None:
        """Check that no count is less than what the log was told, or claims to have told more.

        Between two records of it a count grows by less than it was: so it can be altered by as
        much, and no more, without the log giving it away.
        """
        for tally in tallies:
            told = self.refused[tally.dataset, tally.analyst, tally.day, tally.code]
            if not tally.told <= told or not tally.told <= tally.count < 2 * max(tally.told, 1):
                self.problems.append(
                    f"the count of {tally.code} of {tally.day} does not go on from the log."
                )

    def finish(self) -> None:
        """Check what only the whole can show: that nothing was cut off."""
        if self.last is None:
            self.problems.append("there is no record.")
        for checkpoint in self.shown.values():
            lost = any(a < checkpoint.sequence <= b for a, b in self.books.restores)
            if lost and checkpoint.ledger == self.books.identity:
                continue  # a restoration has owned up to it
            self.problems.append(
                f"record {checkpoint.sequence}, known to a checkpoint, is missing."
            )


def _explain_break(record: Record, last: Record | None) -> str:
    where = f"record {record.sequence}"
    if not record.intact:
        return f"{where} was altered."
    if last is None or record.sequence not in (last.sequence, last.sequence + 1):
        return f"{where} does not follow: records before it are missing or moved."
    return f"{where} does not follow the record before it."


# --- what each kind of record must satisfy -------------------------------------------------------


def _check_first(audit: _Audit, record: Record, content: dict[str, Any]) -> None:
    if record.sequence != 1 or content["format"] != FORMAT:
        audit.problems.append(f"record {record.sequence} does not begin a ledger of this version.")


def _check_charge(audit: _Audit, record: Record, content: dict[str, Any]) -> None:
    standing = audit.books.datasets[record.dataset]
    units = saturate_units(content["loss"])
    if min(units) < 0 or not any(units):
        audit.problems.append(f"record {record.sequence} charges nothing, or less.")
    blocks = decode_blocks(content["area"], standing.size)
    if record.analyst not in standing.analysts:
        audit.problems.append(f"record {record.sequence} charges nobody known.")
    elif (
        admission.find_overdrawn(
            *(standing, record.analyst, units, blocks),
            admission.find_touched(content, audit.books.elsewhere(record.dataset)),
        )
        is not None
    ):
        audit.problems.append(f"record {record.sequence} charges more than a cap allowed.")
    named = content.get("entities")
    if named is not None and not (named and all(map(standing.is_about, named))):
        audit.problems.append(f"record {record.sequence} charges people that are not there.")
    if record.subject in audit.open:
        audit.problems.append(f"record {record.sequence} charges again for what was open.")
    if "parent" in content and (fault := _find_fault(audit, record, content)) is not None:
        audit.problems.append(f"record {record.sequence} improves an answer: {fault}.")
    audit.open[record.subject] = record.sequence
    audit.charges += 1
    audit.charged[record.sequence] = _Charged(
        sys.intern(record.dataset),
        units[0],
        hash((content["data_version"], canonical_json(content["area"]))),
        content.get("parent"),
        content.get("basis"),
    )


def _find_fault(audit: _Audit, record: Record, content: dict[str, Any]) -> str | None:
    """What is wrong with a charge that refines another."""
    parent = audit.charged.get(content["parent"])
    mine = hash((content["data_version"], canonical_json(content["area"])))
    before, link = 0, parent
    while link is not None:
        before += link.epsilon
        link = None if link.parent is None else audit.charged.get(link.parent)
    known = parent is not None and parent.dataset == record.dataset
    return admission.find_fault(
        content["loss"],
        before,
        answered=known and content["parent"] in audit.answered,
        refined=content["parent"] in audit.books.datasets[record.dataset].refined,
        same=parent is not None
        and parent.about == mine
        # What was charged before either was recorded has none, and is of tables in memory.
        and audit.answered.get(content["parent"]) == content.get("basis"),
    )


def _check_entity(audit: _Audit, record: Record, content: dict[str, Any]) -> None:
    """Nobody states another budget for people than those who state one already."""
    before = audit.books.entities.get(content["entity"])
    if content["budget"] is None:
        if before is None or record.dataset not in before.declared_by:
            audit.problems.append(f"record {record.sequence} takes back what nobody said.")
        return
    budget = read_budget(canonical_json(content["budget"]))
    others = frozenset() if before is None else before.declared_by - {record.dataset}
    otherwise = before is not None and others and before.budget != budget
    if otherwise or len(audit.books.neighbours_of(content["entity"])) > 1:
        audit.problems.append(f"record {record.sequence} declares an entity in another way.")
    if not audit.books.datasets[record.dataset].is_about(content["entity"]):
        audit.problems.append(f"record {record.sequence} declares people that are not there.")


def _check_people(audit: _Audit, record: Record, content: dict[str, Any]) -> None:
    """The people of an entity have the same neighbours in all datasets."""
    for entity in audit.books.entities:
        if len(audit.books.neighbours_of(entity, content["people"])) > 1:
            audit.problems.append(f"record {record.sequence} declares an entity in another way.")


def _check_outcome(audit: _Audit, record: Record, content: dict[str, Any]) -> None:
    if audit.open.pop(record.subject, None) != content["charge"]:
        audit.problems.append(f"record {record.sequence} closes a charge that was not open.")
    if record.kind == "release":
        audit.released[record.sequence] = content["answer"]
        audit.releases += 1
        audit.answered[content["charge"]] = content.get("basis")
        charged = audit.charged.get(content["charge"])
        if charged is not None and charged.basis not in (None, content.get("basis")):
            audit.problems.append(
                f"record {record.sequence} improves an answer: {admission.OTHER_DATA}."
            )


def _check_step(audit: _Audit, record: Record, content: dict[str, Any]) -> None:
    """Each step of a run goes on where the last one ended, while its charge is open."""
    charge = content["charge"]
    if charge not in audit.open.values():
        audit.problems.append(f"record {record.sequence} is a step of a run that was not open.")
    if content["after"] != audit.told[charge] or not content["count"] > 0:
        audit.problems.append(f"record {record.sequence} does not go on where its run was.")
    audit.told[charge] += content["count"]
    audit.released[record.sequence] = content["answer"]


def _check_refusal(audit: _Audit, record: Record, content: dict[str, Any]) -> None:
    count, day = content.get("count", 1), content.get("day", record.at[:10])
    if type(count) is not int or count < 1 or not day <= record.at[:10]:
        audit.problems.append(f"record {record.sequence} counts no refusals, or of another day.")
    known = record.analyst in audit.books.datasets[record.dataset].analysts
    name = record.analyst if known else ""
    audit.refused[record.dataset, name, day, content["code"]] += count


def _check_snapshot(audit: _Audit, record: Record, _content: dict[str, Any]) -> None:
    found = Books.from_snapshot(record)
    if not _same_books(found, audit.books):
        audit.problems.append(f"record {record.sequence} states balances that do not add up.")


def _check_own(audit: _Audit, record: Record, content: dict[str, Any]) -> None:
    checkpoint = Checkpoint.from_json(content)
    if audit.last is not None and checkpoint.ledger != audit.books.identity:
        audit.problems.append(f"record {record.sequence} is a checkpoint of another ledger.")


_CHECKS: Mapping[str, Callable[[_Audit, Record, dict[str, Any]], None]] = {
    "ledger": _check_first,
    "schema": _check_people,
    "entity": _check_entity,
    "charge": _check_charge,
    "release": _check_outcome,
    "burn": _check_outcome,
    "halt": _check_outcome,
    "step": _check_step,
    "refusal": _check_refusal,
    "refusals": _check_refusal,
    "balances": _check_snapshot,
    "checkpoint": _check_own,
}


def _same_books(one: Books, other: Books) -> bool:
    return (
        one.identity == other.identity
        and one.restores == other.restores
        and one.entities == other.entities
        and one.datasets.keys() == other.datasets.keys()
        and all(_same_standing(s, other.datasets[name]) for name, s in one.datasets.items())
    )


def _same_standing(one: Standing, other: Standing) -> bool:
    plain = ("budget", "policy", "version", "people", "space", "analysts", "keys", "refined")
    return (
        all(getattr(one, name) == getattr(other, name) for name in plain)
        and np.array_equal(one.spent, other.spent)
        and _same_balances(one.shares, other.shares)
        and _same_balances(one.group_shares, other.group_shares)
        and _same_balances(one.lost, other.lost)
    )


def _same_balances(one: Mapping[str, Balances], other: Mapping[str, Balances]) -> bool:
    same = (np.array_equal(balances, other[name]) for name, balances in one.items())
    return one.keys() == other.keys() and all(same)
