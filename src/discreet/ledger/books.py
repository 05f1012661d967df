"""The log is the account: records, each bound to all before it, and what they say together.

The digest of a record covers its number, its time, everything it says and the digest of the record
before.  Whoever edits, removes or reorders records must recompute every later digest, and then the
last one is not the one that a checkpoint names.

Balances are sums over the log, kept in memory and brought up to date by reading the records that
are new.  Amounts are whole units in 64 bits; what would not fit stays at ``SATURATED``, which no
budget ever admits.  What an analyst has cost is counted for each block too: a limit bounds what
one analyst costs any one person.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.budget import SATURATED, Budget
from discreet.exact.numbers import canonical_json
from discreet.exact.records import dataclass
from discreet.ledger.analysts import CURATOR, AccessKey, Analyst, Group, Policy
from discreet.release.record import from_json, to_json

FORMAT: Final = 1
"""The version of what records mean; recorded meanings never change."""

BEGINNING: Final = ""
"""What stands for the digest before the first record."""


@dataclass(frozen=True, slots=True)
class Record:
    """One line of the ledger.

    ``sequence`` is its number, ``at`` its time, ``kind`` and ``body`` (JSON) are what it says of
    ``dataset`` and ``analyst``; later records look it up by ``subject``: for a charge, which
    question about which data. ``digest`` covers all of it and ``previous``, the digest of the
    record before.
    """

    sequence: int
    kind: str
    at: str
    dataset: str
    analyst: str
    subject: str
    body: str
    previous: str
    digest: str

    @property
    def content(self) -> dict[str, Any]:
        """What the record says, read from its JSON."""
        content: dict[str, Any] = json.loads(self.body)
        return content

    @property
    def time(self) -> datetime:
        """When it was written, by the curator's clock."""
        return datetime.fromisoformat(self.at)

    @property
    def intact(self) -> bool:
        """Whether the digest is that of what the record says."""
        return self.digest == _digest(self._list_fields())

    def follows(self, last: Record | None) -> bool:
        """Whether this record comes directly after ``last`` and says what it said when written.

        Numbers have no gaps, but for the one that a restoration leaves: it numbers
        itself after the lost records that a checkpoint proves there were.
        """
        if last is None:
            return self.sequence == 1 and self.previous == BEGINNING and self.intact
        next_number = self.sequence == last.sequence + 1
        gap = self.kind == "restore" and self.sequence > last.sequence
        in_time = self.at >= last.at
        return (next_number or gap) and in_time and self.previous == last.digest and self.intact

    def _list_fields(self) -> list[Any]:
        return [
            *(self.sequence, self.kind, self.at, self.dataset),
            *(self.analyst, self.subject, self.body, self.previous),
        ]

    def to_line(self) -> str:
        """One line of an export."""
        return canonical_json([*self._list_fields(), self.digest])

    @classmethod
    def from_line(cls, line: str) -> Record:
        """The record of one ``line`` of an export."""
        parts = json.loads(line)
        if not isinstance(parts, list) or len(parts) != 9 or type(parts[0]) is not int:
            raise ValueError("not a record")
        if not all(isinstance(part, str) for part in parts[1:]):
            raise ValueError("not a record")
        return cls(*parts)


def next_record(
    last: Record | None,
    kind: str,
    content: dict[str, Any],
    *,
    at: str,
    dataset: str = "",
    analyst: str = "",
    subject: str = "",
    sequence: int | None = None,
) -> Record:
    """The record of ``content`` that comes after ``last``."""
    number = sequence or (1 if last is None else last.sequence + 1)
    previous = BEGINNING if last is None else last.digest
    said: list[Any] = [
        number,
        kind,
        at,
        dataset,
        analyst,
        subject,
        canonical_json(content),
        previous,
    ]
    return Record(number, kind, at, dataset, analyst, subject, said[6], previous, _digest(said))


def write_time(time: datetime) -> str:
    """A time as records write it: texts of one length, in the order of the times."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


def digest_subject(*parts: str) -> str:
    """One name for several texts; no two lists of texts have the same."""
    # Half characters are escaped as JSON would: whoever has such a name is refused later.
    text = canonical_json(list(parts)).encode(errors="backslashreplace")
    return hashlib.sha256(text).hexdigest()


def _digest(said: Sequence[Any]) -> str:
    return hashlib.sha256(canonical_json(list(said)).encode()).hexdigest()


Units = tuple[int, int, int]
Balances = NDArray[np.int64]
"""Row i holds coordinate i (epsilon, rho, delta) of every block's balance, in whole units."""
Ranges = Sequence[Sequence[int]]
Encoded = Ranges | str
Blocks = slice | NDArray[np.int64]

_MOST_RANGES = 32
"""More ranges than this take more room than a bit for every block."""

SNAPSHOT_PERIOD = 2048
"""Records between two snapshots, at least; more where balances are many, so that the cost of
writing them stays a small part of every charge."""


def zero_balances(size: int) -> Balances:
    """The balances of ``size`` blocks before any charge."""
    return np.zeros((3, size), dtype=np.int64)


def pack(data: bytes) -> str:
    """Bytes as a record holds them; compressed, because neighbouring blocks are often alike."""
    return base64.b64encode(zlib.compress(data, 1)).decode()


def unpack(text: str) -> bytes:
    """The bytes that were packed."""
    try:
        return zlib.decompress(base64.b64decode(text, validate=True))
    except zlib.error:
        raise ValueError("not packed bytes") from None


def pack_balances(balances: Balances) -> str:
    """Balances as a record holds them: eight bytes, least first, for each amount."""
    return pack(balances.astype("<i8").tobytes())


def unpack_balances(text: str) -> Balances:
    """The balances that were packed."""
    return np.frombuffer(unpack(text), dtype="<i8").astype(np.int64).reshape(3, -1)


def encode_blocks(edges: NDArray[np.int64], size: int) -> Encoded:
    """Some blocks as a record names them: ranges, or a bit for every block where they are many.

    ``edges`` are where each range begins and ends, one after the other.

    >>> encode_blocks(np.array([2, 5, 7, 8]), 10)
    [[2, 5], [7, 8]]
    """
    if edges.size <= 2 * _MOST_RANGES:
        found: list[list[int]] = edges.reshape(-1, 2).tolist()
        return found
    marks = np.zeros(size + 1, dtype=np.int8)
    marks[edges[::2]] = 1
    marks[edges[1::2]] = -1
    bits = np.packbits(np.cumsum(marks[:-1], dtype=np.int8).astype(bool))
    return pack(bits.tobytes())


def decode_blocks(area: Encoded, size: int) -> Blocks:
    """The blocks that a record names, as an index into balances."""
    if isinstance(area, str):
        return _decode_bits(area, size)
    if not area:
        return slice(0, 0)
    edges = [edge for pair in area for edge in pair]
    if edges[0] < 0 or edges[-1] > size or any(a >= b for a, b in pairwise(edges)):
        raise ValueError("not ranges of blocks: each ends before the next begins")
    if len(area) == 1:
        return slice(*edges)
    return np.concatenate([np.arange(first, last) for first, last in area])


@functools.lru_cache(maxsize=4)  # a charge is checked, then counted
def _decode_bits(area: str, size: int) -> NDArray[np.int64]:
    bits = np.frombuffer(unpack(area), dtype=np.uint8)
    marked = np.unpackbits(bits)
    if bits.size != (size + 7) // 8 or marked[size:].any():
        raise ValueError("not a bit for every block")
    found = np.flatnonzero(marked[:size])
    found.setflags(write=False)
    return found


def add_loss(balances: Balances, blocks: Blocks, units: Units) -> None:
    """Charge some blocks, in place."""
    for balance, more in zip(balances, units, strict=True):
        if more:
            balance[blocks] = np.minimum(balance[blocks] + more, SATURATED)


def take_blocks(balances: Balances, blocks: Blocks) -> Balances:
    """The balances of some blocks."""
    # Taking is several times faster than indexing, where the numbers are scattered.
    return balances[:, blocks] if isinstance(blocks, slice) else balances.take(blocks, axis=1)


def carry_over(balances: Balances, origins: Sequence[Any]) -> Balances:
    """Balances over other blocks: each starts at the largest of its origins.

    An origin is the number of an earlier block, or ranges of them.
    """
    found = zero_balances(len(origins))
    known: dict[str, Balances] = {}  # many blocks share their ranges
    for block, origin in enumerate(origins):
        if isinstance(origin, int):
            found[:, block] = balances[:, origin]
            continue
        name = str(origin)
        if name not in known:
            known[name] = take_blocks(balances, decode_blocks(origin, balances.shape[1])).max(
                axis=1
            )
        found[:, block] = known[name]
    return found


def digest_space(space: dict[str, Any]) -> str:
    """A short name for a space: the same for the same blocks in the same order."""
    return hashlib.sha256(canonical_json(space).encode()).hexdigest()


@dataclass(slots=True)
class Standing:
    """How one dataset stands."""

    budget: Budget
    policy: Policy
    version: str = ""
    """The digest of the schema as it was last declared."""
    people: dict[str, Any] = field(default_factory=dict)
    """For each private table, who one person is; that never changes."""
    space: dict[str, Any] = field(default_factory=dict)
    layout: str = ""
    """The digest of ``space``: what is compared at every charge, where blocks may be many."""
    spent: Balances = field(default_factory=lambda: zero_balances(0))
    analysts: dict[str, Analyst] = field(default_factory=dict)
    keys: dict[str, AccessKey] = field(default_factory=dict)
    shares: dict[str, Balances] = field(default_factory=dict)
    """What each analyst has cost each block."""
    group_shares: dict[str, Balances] = field(default_factory=dict)
    """What the analysts of each group have cost each block while they were in it."""
    refined: dict[int, int] = field(default_factory=dict)
    """The charge that refines each charge, where one does."""
    lost: dict[str, Balances] = field(default_factory=dict)
    """What the people of each entity that has a budget have lost here, in each block.

    A renewal of the dataset's budget does not give it back, unless it names the entity."""

    @property
    def size(self) -> int:
        """How many blocks there are."""
        return int(self.spent.shape[1])

    def share(self, analyst: str) -> Balances:
        """What an analyst has cost each block; made when it is first needed."""
        if analyst not in self.shares:
            self.shares[analyst] = zero_balances(self.size)
        return self.shares[analyst]

    def find_spent_by(self, analyst: str) -> Balances:
        """What an analyst has cost each block, to be read only."""
        found = self.shares.get(analyst)
        return zero_balances(self.size) if found is None else found

    def group_of(self, analyst: str) -> str | None:
        """The group an analyst is in now."""
        found = self.analysts.get(analyst)
        return None if found is None else found.group

    def find_spent_by_group(self, group: str) -> Balances:
        """What the analysts of a group have cost each block, to be read only."""
        found = self.group_shares.get(group)
        return zero_balances(self.size) if found is None else found

    def charge(self, analyst: str, content: Mapping[str, Any]) -> None:
        """Count a charge, as its record says it."""
        blocks = decode_blocks(content["area"], self.size)
        units = saturate_units(content["loss"])
        add_loss(self.spent, blocks, units)
        add_loss(self.share(analyst), blocks, units)
        group = self.group_of(analyst)
        if group is not None:
            if group not in self.group_shares:
                self.group_shares[group] = zero_balances(self.size)
            add_loss(self.group_shares[group], blocks, units)
        named = content.get("entities")
        for entity, lost in self.lost.items():
            if named is None or entity in named:
                add_loss(lost, blocks, units)

    def provisional(self) -> Standing:
        """The same standing, to count charges that are not made yet."""
        shares = {name: share.copy() for name, share in self.shares.items()}
        groups = {name: share.copy() for name, share in self.group_shares.items()}
        lost = {name: balances.copy() for name, balances in self.lost.items()}
        return replace(self, spent=self.spent.copy(), shares=shares, group_shares=groups, lost=lost)

    def is_about(self, entity: str) -> bool:
        """Whether a table that was ever declared is about these people."""
        return any(person[0] == entity for person in self.people.values())

    def join(self, entity: str) -> None:
        """Count for an entity what its people lose here, from what the dataset has spent."""
        if entity not in self.lost and self.is_about(entity):
            self.lost[entity] = self.spent.copy()

    def limit(self, analyst: str) -> Budget | None:
        """What an analyst may cost any one person; the curator has the dataset's cap alone."""
        if analyst == CURATOR:
            return None
        found = self.analysts[analyst]
        each = self.policy.groups.get(found.group or "", Group()).each
        return found.limit or each or self.policy.analyst

    def declare_blocks(
        self, space: dict[str, Any], size: int, origins: Sequence[Any] | None
    ) -> None:
        """Declare the blocks; nobody's past is forgotten."""
        if origins is None:
            self.spent, self.shares, self.lost = zero_balances(size), {}, {}
            self.group_shares = {}
        else:
            self.spent = carry_over(self.spent, origins)
            self.lost = {name: carry_over(lost, origins) for name, lost in self.lost.items()}
            self.shares = {name: carry_over(share, origins) for name, share in self.shares.items()}
            self.group_shares = {
                name: carry_over(share, origins) for name, share in self.group_shares.items()
            }
        self.space, self.layout = space, digest_space(space)

    def to_json(self) -> dict[str, Any]:
        """The standing as a snapshot records it."""
        refined = [[parent, child] for parent, child in self.refined.items()]
        return {
            **({"refined": refined} if refined else {}),
            **({"lost": _pack_all(self.lost)} if self.lost else {}),
            **({"group_shares": _pack_all(self.group_shares)} if self.group_shares else {}),
            "budget": to_json(self.budget),
            "policy": self.policy.to_json(),
            "version": self.version,
            "people": self.people,
            "space": self.space,
            "analysts": [analyst.to_json() for analyst in self.analysts.values()],
            "keys": [key.to_json() for key in self.keys.values()],
            "spent": pack_balances(self.spent),
            "shares": _pack_all(self.shares),
        }

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Standing:
        """The standing that a snapshot recorded."""
        analysts = [Analyst.from_json(a) for a in found["analysts"]]
        keys = [AccessKey.from_json(k) for k in found["keys"]]
        return cls(
            budget=read_budget(canonical_json(found["budget"])),
            policy=Policy.from_json(found["policy"]),
            version=found["version"],
            people=found["people"],
            space=found["space"],
            layout=digest_space(found["space"]),
            spent=unpack_balances(found["spent"]),
            analysts={analyst.name: analyst for analyst in analysts},
            keys={key.key_id: key for key in keys},
            shares=_unpack_all(found["shares"]),
            group_shares=_unpack_all(found.get("group_shares", {})),
            refined=dict(found.get("refined", ())),
            lost=_unpack_all(found.get("lost", {})),
        )


def _pack_all(balances: Mapping[str, Balances]) -> dict[str, str]:
    return {name: pack_balances(amounts) for name, amounts in balances.items()}


def _unpack_all(packed: Mapping[str, str]) -> dict[str, Balances]:
    return {name: unpack_balances(text) for name, text in packed.items()}


@dataclass(frozen=True, slots=True)
class Entity:
    """People who may be in several datasets: what they may lose in all, and who says so."""

    budget: Budget
    declared_by: frozenset[str]
    """The datasets that state the budget; a budget that nobody states any more still holds."""

    def to_json(self) -> dict[str, Any]:
        """The entity as a snapshot records it."""
        return {"budget": to_json(self.budget), "declared_by": sorted(self.declared_by)}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Entity:
        """The entity that a snapshot recorded."""
        budget = read_budget(canonical_json(found["budget"]))
        return cls(budget, frozenset(found["declared_by"]))


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A cap on what an entity's people lose, and the most they can have lost in other datasets."""

    budget: Budget
    lost: Units

    def add_to(self, balances: Balances) -> Balances:
        """What was lost in all, by whoever lost ``balances`` here."""
        most = np.array(self.lost, dtype=np.int64)[:, np.newaxis]
        total: Balances = np.minimum(balances, SATURATED - most) + most
        return total


def most_lost(balances: Balances) -> Units:
    """The most that anybody has lost, of each coordinate by itself."""
    epsilon, rho, delta = (int(part.max(initial=0)) for part in balances)
    return epsilon, rho, delta


@dataclass(slots=True)
class Books:
    """Everything the log says, as of its last record."""

    last: Record | None = None
    identity: str = ""
    """A random name, given once: two ledgers are never taken for each other."""
    datasets: dict[str, Standing] = field(default_factory=dict)
    restores: list[tuple[int, int]] = field(default_factory=list)
    """Numbers (last kept, last lost) of the records that restorations gave up."""
    snapshot: int = 0
    """The number of the last record that holds all balances."""
    entities: dict[str, Entity] = field(default_factory=dict)
    """Those whose people have a budget of their own, in all datasets together."""

    def parts(self, entity: str) -> dict[str, Units]:
        """The most that a person of the entity can have lost in each dataset."""
        return {
            name: most_lost(standing.lost[entity])
            for name, standing in self.datasets.items()
            if entity in standing.lost
        }

    def neighbours_of(self, entity: str, people: Mapping[str, Any] | None = None) -> set[str]:
        """What neighbours are, wherever these people are; ``people`` as declared just now, too."""
        every = (people or {}, *(standing.people for standing in self.datasets.values()))
        return {person[-1] for people in every for person in people.values() if person[0] == entity}

    def elsewhere(self, dataset: str) -> dict[str, Elsewhere]:
        """The budgets of the people of a dataset, and what they can have lost in other ones.

        Whoever is in several datasets lost at most the sum of the most of each
        (docs/proofs/known.md, Lemma 11).
        """
        found = {}
        for entity in self.datasets[dataset].lost:
            others = [lost for name, lost in self.parts(entity).items() if name != dataset]
            epsilon, rho, delta = (
                min(sum(lost[i] for lost in others), SATURATED) for i in range(3)
            )
            found[entity] = Elsewhere(self.entities[entity].budget, (epsilon, rho, delta))
        return found

    def apply(self, record: Record, content: dict[str, Any] | None = None) -> None:
        """Take the next record into account."""
        effect = EFFECTS.get(record.kind)
        if effect is None:
            raise ValueError("a kind of record that this version does not know")
        effect(self, record, record.content if content is None else content)
        self.last = record

    @property
    def lost(self) -> bool:
        """Whether there was a time of which nothing is known."""
        return bool(self.restores)

    # A snapshot holds all balances in one record, so that opening need not read the whole log.  It
    # is part of the chain and claims nothing new: ``verify`` adds up all records and compares.

    def snapshot_is_due(self) -> bool:
        """Whether enough was recorded since the last snapshot."""
        cells = sum(
            3 * s.size * (1 + len(s.shares) + len(s.group_shares) + len(s.lost))
            for s in self.datasets.values()
        )
        period = max(SNAPSHOT_PERIOD, cells // 32)
        return self.last is not None and self.last.sequence - self.snapshot >= period

    def to_snapshot(self) -> dict[str, Any]:
        """What a snapshot records."""
        entities = {name: entity.to_json() for name, entity in self.entities.items()}
        return {
            "identity": self.identity,
            "restores": [list(pair) for pair in self.restores],
            "datasets": {name: standing.to_json() for name, standing in self.datasets.items()},
            **({"entities": entities} if entities else {}),
        }

    @classmethod
    def from_snapshot(cls, record: Record) -> Books:
        """The books as a snapshot recorded them."""
        content = record.content
        datasets = content["datasets"].items()
        return cls(
            last=record,
            identity=content["identity"],
            datasets={name: Standing.from_json(found) for name, found in datasets},
            restores=[(kept, lost) for kept, lost in content["restores"]],
            snapshot=record.sequence,
            entities={
                name: Entity.from_json(found) for name, found in content.get("entities", {}).items()
            },
        )


# --- what each kind of record does ---------------------------------------------------------------

Effect = Callable[[Books, Record, dict[str, Any]], None]
EFFECTS: dict[str, Effect] = {}


def effect(kind: str) -> Callable[[Effect], Effect]:
    """Say that a function is what records of ``kind`` do."""

    def register(function: Effect) -> Effect:
        EFFECTS[kind] = function
        return function

    return register


@effect("ledger")
def _begin(books: Books, _record: Record, content: dict[str, Any]) -> None:
    books.identity = content["identity"]


@effect("dataset")
def _dataset(books: Books, record: Record, content: dict[str, Any]) -> None:
    standing = Standing(
        read_budget(canonical_json(content["budget"])), Policy.from_json(content["policy"])
    )
    standing.analysts[CURATOR] = Analyst(CURATOR, role=CURATOR)
    books.datasets[record.dataset] = standing


@effect("schema")
def _schema(books: Books, record: Record, content: dict[str, Any]) -> None:
    standing = books.datasets[record.dataset]
    standing.version = content["version"]
    standing.people |= content["people"]
    if content["space"] is not None:
        first = not standing.space
        standing.declare_blocks(
            content["space"], content["size"], None if first else content["origins"]
        )
        if first and books.lost:
            # It may have been declared, and charged, in the time of which nothing is known.
            standing.spent[:] = SATURATED
    for entity in books.entities:
        standing.join(entity)


@effect("entity")
def _entity(books: Books, record: Record, content: dict[str, Any]) -> None:
    name = content["entity"]
    before = books.entities.get(name)
    others = frozenset() if before is None else before.declared_by - {record.dataset}
    if content["budget"] is None:  # the dataset states it no more; it holds all the same
        books.entities[name] = replace(books.entities[name], declared_by=others)
        return
    budget = read_budget(canonical_json(content["budget"]))
    books.entities[name] = Entity(budget, others | {record.dataset})
    for standing in books.datasets.values():
        standing.join(name)


@effect("budget")
def _budget(books: Books, record: Record, content: dict[str, Any]) -> None:
    books.datasets[record.dataset].budget = read_budget(canonical_json(content["budget"]))


@effect("policy")
def _policy(books: Books, record: Record, content: dict[str, Any]) -> None:
    books.datasets[record.dataset].policy = Policy.from_json(content["policy"])


@effect("analyst")
def _analyst(books: Books, record: Record, content: dict[str, Any]) -> None:
    analyst = Analyst.from_json(content)
    books.datasets[record.dataset].analysts[analyst.name] = analyst


@effect("key")
def _key(books: Books, record: Record, content: dict[str, Any]) -> None:
    key = replace(AccessKey.from_json(content), at=record.time)
    books.datasets[record.dataset].keys[key.key_id] = key


@effect("revoke")
def _revoke(books: Books, record: Record, content: dict[str, Any]) -> None:
    keys = books.datasets[record.dataset].keys
    keys[content["key_id"]] = replace(keys[content["key_id"]], revoked=True)


@effect("charge")
def _charge(books: Books, record: Record, content: dict[str, Any]) -> None:
    standing = books.datasets[record.dataset]
    standing.charge(record.analyst, content)
    if "parent" in content:
        standing.refined[content["parent"]] = record.sequence


@effect("renew")
def _renew(books: Books, record: Record, content: dict[str, Any]) -> None:
    standing = books.datasets[record.dataset]
    blocks = decode_blocks(content["area"], standing.size)
    lost = [standing.lost[entity] for entity in content.get("entities", ())]
    shares = (*standing.shares.values(), *standing.group_shares.values())
    for balances in (standing.spent, *shares, *lost):
        balances[:, blocks] = 0


@effect("restore")
def _restore(books: Books, _record: Record, content: dict[str, Any]) -> None:
    # Up to every cap could have been charged in the time that was lost: all of it counts as spent.
    for standing in books.datasets.values():
        for balances in (standing.spent, *standing.lost.values()):
            balances[:] = SATURATED
    books.restores.append((content["kept"], content["lost"]))


@effect("balances")
def _balances(books: Books, record: Record, _content: dict[str, Any]) -> None:
    books.snapshot = record.sequence


@effect("release")
@effect("burn")
@effect("step")
@effect("halt")
@effect("refusal")
@effect("refusals")
@effect("checkpoint")
def _change_nothing(_books: Books, _record: Record, _content: dict[str, Any]) -> None:
    """Changes no balance."""


def saturate_units(loss: Sequence[int | None]) -> Units:
    """Recorded units, with infinite and huge amounts as ``SATURATED``."""
    epsilon, rho, delta = (SATURATED if part is None else min(part, SATURATED) for part in loss)
    return epsilon, rho, delta


@functools.lru_cache(maxsize=64)
def read_budget(text: str) -> Budget:
    """A recorded budget; made once, because its ceilings take milliseconds to certify."""
    found: Budget = from_json(json.loads(text))
    return found
