"""One dataset's account: charge, publish, burn; balances and transcript."""

from __future__ import annotations

import hashlib
import threading
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import datetime
from functools import partial
from heapq import nsmallest
from itertools import combinations
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from discreet.accounting.budget import SATURATED, Budget
from discreet.accounting.loss import Loss
from discreet.errors import DataRefusal, InvalidParameter, LedgerRefusal, Refusal
from discreet.exact.numbers import canonical_json
from discreet.exact.records import dataclass
from discreet.ledger import admission, refusals
from discreet.ledger.analysts import (
    Group,
)
from discreet.ledger.balance import Balance, EntityBalance
from discreet.ledger.books import (
    Record,
    Standing,
    decode_blocks,
    digest_space,
    digest_subject,
    encode_blocks,
    saturate_units,
    take_blocks,
)
from discreet.ledger.charges import HALTED, About, Entry, Receipt, Request, State, Stored
from discreet.ledger.journal import Journal, Writer
from discreet.ledger.people import People
from discreet.ledger.tally import Tally
from discreet.question.blocks import Area, Space

if TYPE_CHECKING:
    from discreet.ledger.runs import RunBook

_C = TypeVar("_C")
_TRANSCRIPT_KINDS = ("charge", "refusal", "refusals")
_MOST_TYPED = 20_000
"""As long as a question may be; more of what was refused is not kept."""
_LONGEST_NAME = 64
_STATES = {"release": State.ANSWERED, "burn": State.BURNT, "halt": State.CLOSED}
_OVER = ("burn", "halt")
"""How a charge ends that nobody is answered from again."""


_MOST_OF_A_KIND, _MOST_SOURCES = 4, 12
"""Of answers that tell the same of the same rows, so many are looked at; and so many in all."""
_MOST_CONDITIONS = 8
"""With more conditions, only answers about none or all of them are looked for."""


class _Kept(NamedTuple):
    """A released answer: about how much was paid and its charge, both negative."""

    less: int
    before: int


def _list_subsets(conditions: Sequence[_C]) -> Iterator[Sequence[_C]]:
    """All subsets, the largest first: what is about fewer other rows is less noisy."""
    if len(conditions) > _MOST_CONDITIONS:
        yield from (conditions, ())
        return
    for size in range(len(conditions), -1, -1):
        yield from combinations(conditions, size)


@dataclass(frozen=True, slots=True)
class _Earlier:
    """What the ledger knows of a question: its last record, and the answer if there is one."""

    record: Record
    answer: bytes | None = None


@dataclass(slots=True)
class _Shelf:
    """Released answers by the rows they are about; what the log has told so far."""

    read: int = 0
    charged: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Charges that have no outcome yet."""
    places: dict[tuple[str, str, tuple[str, ...]], dict[Any, dict[str, list[_Kept]]]] = field(
        default_factory=dict
    )
    """By data, base and conditions; then by the columns of groups and values, and by who paid."""
    unread: dict[str, dict[int, tuple[str, dict[str, Any]]]] = field(default_factory=dict)
    """By data and number: charges that do not say what they are about."""

    def put(self, record: Record, dataset: str) -> None:
        """Take the next record into account."""
        self.read = record.sequence
        if record.dataset != dataset:
            return
        if record.kind == "charge":
            self.charged[record.sequence] = record.content
        elif record.kind in ("release", *_OVER):
            number = record.content["charge"]
            content = self.charged.pop(number, None)
            if content is not None and record.kind == "release":
                if "about" in content or "abouts" in content:
                    self.keep(number, record.analyst, content)
                else:  # recorded before this was
                    unread = self.unread.setdefault(content["data_version"], {})
                    unread[number] = record.analyst, content

    def keep(self, number: int, analyst: str, content: dict[str, Any]) -> None:
        """Keep an answer where it is found; or answers that were released together, each."""
        units = saturate_units(content["loss"])
        one = _Kept(-min(units[0], 10 * units[1]), -number)
        abouts = content["abouts"] if "abouts" in content else [content["about"]]
        kinds = {  # of questions that were released together, some may be of one kind
            (base, tuple(conditions), frozenset(keys), frozenset(measured))
            for base, conditions, keys, measured in abouts
        }
        for base, conditions, keys, measured in kinds:
            place = self.places.setdefault((content["data_version"], base, conditions), {})
            insort(place.setdefault((keys, measured), {}).setdefault(analyst, []), one)

    def find(self, about: About, data_version: str, analyst: str | None) -> tuple[int, ...]:
        """The best few of every kind that may tell what is asked."""
        found: list[int] = []
        for some in _list_subsets(about.conditions):
            texts = tuple(sorted(text for text, _ in some))
            place = self.places.get((data_version, about.base, texts))
            if place is None:
                continue
            rest = [names for text, names in about.conditions if text not in texts]
            needed = about.keys.union(*rest)
            best: list[_Kept] = []
            for (keys, measured), kept in place.items():
                if needed <= keys and about.measured <= measured:
                    lists = kept.values() if analyst is None else [kept.get(analyst, [])]
                    of_each = (one for some_list in lists for one in some_list[:_MOST_OF_A_KIND])
                    best += nsmallest(_MOST_OF_A_KIND, of_each)
            found += [-one.before for one in nsmallest(_MOST_SOURCES, best)]
        return tuple(dict.fromkeys(found))[:_MOST_SOURCES]


def _pick_usable(records: Iterable[Record], request: Request, *, shared: bool) -> list[Record]:
    """The answers and open charges among them that this analyst may use.

    Not an open charge that shares its noise with an answer about rows that are chosen no more.
    """
    return [
        last
        for last in records
        if last.kind not in _OVER
        and (shared or last.analyst == request.analyst)
        and (
            last.kind != "charge"
            or last.content.get("parent") is None
            or last.content["data_version"] == request.data_version
        )
    ]


class Account:
    """One dataset's account; all caps are checked and the charge inserted in one transaction.

    ``journal`` is the ledger's, ``dataset`` the name in it, ``space`` the blocks of its people;
    ``former_budget`` is what could be lost until this account was opened, which recorded another.
    Who may ask is kept by :class:`People`, whose methods are here, too.
    """

    def __init__(
        self,
        journal: Journal,
        dataset: str,
        space: Space,
        *,
        former_budget: Budget | None = None,
    ) -> None:
        self.dataset = dataset
        self._journal = journal
        self.space = space
        self.former_budget = former_budget
        """What could be lost until this account was opened, which recorded another budget."""
        self._layout = digest_space(space.identity())
        self._shelf = _Shelf()
        self._reading = threading.Lock()
        # Who may ask is a matter of its own; the account only says so under its own name.
        self._people = people = People(journal, dataset)
        self.add_analyst, self.limit_analyst = people.add_analyst, people.limit_analyst
        self.move_analyst, self.disable_analyst = people.move_analyst, people.disable_analyst
        self.analyst, self.analysts = people.analyst, people.analysts
        self.add_key, self.replace_key, self.revoke_key = (
            people.add_key,
            people.replace_key,
            people.revoke_key,
        )
        self.key, self.keys, self.holder = people.key, people.keys, people.holder

    @property
    def budget(self) -> Budget:
        """What may be lost in all, by anyone in any one block; as last recorded."""
        return self.standing().budget

    def standing(self) -> Standing:
        """How the dataset stands, by the records read so far."""
        return self._journal.books.datasets[self.dataset]

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Inside, all that is asked is answered as things stand now: the ledger is read once."""
        with self._journal.reading():
            yield

    # --- charge, publish, burn ----------------------------------------------------------------

    def charge(self, request: Request) -> Receipt | Stored:
        """Pay for ``request``, durably; or get what was paid for before, free; or be refused.

        Nothing was read when this returns: what is refused, and why, depends on
        public knowledge and on the account alone.
        """
        admission.check_request(request)
        return self._journal.write(partial(self._charge, request), *self._subjects(request))

    def _charge(self, request: Request, writer: Writer) -> Receipt | Stored:
        earlier = self._find_earlier(request, writer.newest, writer.now)
        if earlier is not None:
            return self._reuse(earlier, request)
        admission.check_price(request)
        content = admission.charge_content(request, self.standing())
        if request.parent is not None:
            self._check_parent(request, content)
        self._admit(request, content, self.standing())
        writer.append_snapshot_if_due()
        return self._append_charge(request, content, writer)

    def _check_parent(self, request: Request, content: dict[str, Any]) -> None:
        """Refuse to refine what may not be; in the transaction that charges for it."""
        number = request.parent or 0
        record = self._journal.store.record(number)
        mine = record is not None and record.kind == "charge" and record.dataset == self.dataset
        before, answered, same = 0, False, False
        if record is not None and mine and self._may_see(record.analyst, request.analyst):
            outcome = self._journal.store.outcome(record)
            answered = outcome is not None and outcome.kind == "release"
            said = record.content
            same = all(said[name] == content[name] for name in ("data_version", "area"))
            basis = None if outcome is None else outcome.content.get("basis")
            same = same and basis is not None and basis == request.basis
            chain = [loss.to_units()[0] for _, loss in self.find_chain(number)]
            before = sum(SATURATED if part is None else part for part in chain)
        refined = number in self.standing().refined
        fault = admission.find_fault(
            content["loss"], before, answered=answered, refined=refined, same=same
        )
        if fault is not None:
            raise InvalidParameter(
                "P4",
                f"answer #{number} cannot be improved: {fault}.",
                why="an improvement shares noise with what it improves, and two of them, or one of "
                "other data, would tell more about a person than is charged.",
                fix="ask the question itself, with what its answer should be worth: epsilon=...",
            )

    def _may_see(self, payer: str, analyst: str) -> bool:
        return self.standing().policy.shared_answers or payer == analyst

    def charge_all(self, requests: Sequence[Request]) -> list[Receipt | Stored]:
        """Pay for several ``requests`` in one transaction: for all that are new, or for none.

        Each is recorded, and found again, as a question of its own.
        """
        for request in requests:
            admission.check_request(request)
        with self._journal.writing() as writer:
            standing = self.standing().provisional()
            found: dict[str, Receipt | Stored] = {}
            due = True
            for request in requests:
                subject = self._subject(request)
                if subject in found:
                    continue
                earlier = self._find_earlier(request, self._newest(request), writer.now)
                if earlier is not None:
                    found[subject] = self._reuse(earlier, request)
                    continue
                admission.check_price(request)
                content = admission.charge_content(request, self.standing())
                self._admit(request, content, standing)
                standing.charge(request.analyst, content)
                if due:
                    writer.append_snapshot_if_due()
                    due = False
                found[subject] = self._append_charge(request, content, writer)
            return [found[self._subject(request)] for request in requests]

    def _append_charge(self, request: Request, content: dict[str, Any], writer: Writer) -> Receipt:
        record = writer.append(
            "charge",
            content,
            dataset=self.dataset,
            analyst=request.analyst,
            subject=self._subject(request),
        )
        return Receipt(
            record.sequence,
            request.analyst,
            request.loss.rounded(),
            request.data_version,
            parent=request.parent,
        )

    def preview(self, request: Request) -> str:
        """What charging ``request`` would do: "stored", "resumed" or "admitted"; or its refusal."""
        return self.preview_all([request])[0]

    def preview_all(self, requests: Sequence[Request]) -> list[str]:
        """What :meth:`charge_all` would do now with each of the ``requests``, or its refusal."""
        for request in requests:
            admission.check_request(request)
        with self._journal.reading():
            several = len(requests) > 1
            standing = self.standing().provisional() if several else self.standing()
            found: dict[str, str] = {}
            for request in requests:
                subject = self._subject(request)
                if subject in found:
                    continue
                found[subject] = self._find_outcome(request)
                if found[subject] == "admitted":
                    content = admission.charge_content(request, self.standing())
                    self._admit(request, content, standing)
                    if several:
                        standing.charge(request.analyst, content)
            return [found[self._subject(request)] for request in requests]

    def check_access(self, analyst: str) -> None:
        """Refuse strangers, those whose time is over, and a ledger that is behind.

        ``analyst`` is the name of who asks.
        """
        with self._journal.reading():
            standing = self.standing()
            admission.check_access(standing, analyst, self._journal.now())
            self._check_current(standing)

    def find(self, request: Request) -> str:
        """Whether ``request`` was paid for: "stored" or "resumed"; "admitted" if it is new."""
        with self._journal.reading():
            return self._find_outcome(request)

    def recall(self, request: Request) -> Receipt | Stored | None:
        """What the ``request`` would be given for free, if it was paid for; nothing is paid here.

        An answer stays once it is stored: to show it, nobody has to be kept from writing.
        """
        with self._journal.reading():
            earlier = self._find_earlier(request, self._newest(request), self._journal.now())
        return None if earlier is None else self._reuse(earlier, request)

    def is_for_all(self, request: Request) -> bool:
        """Whether everybody who may ask is shown the same answer to it, free, whatever they paid.

        That is so of ``request`` where answers are shared, and one stands where all look first
        (:meth:`_find_earlier`).
        """
        with self._journal.reading():
            if not self.standing().policy.shared_answers or request.once:
                return False
            last = self._journal.store.last(self._subjects(request)[0])
            return last is not None and last.kind == "release"

    def _find_outcome(self, request: Request) -> str:
        earlier = self._find_earlier(request, self._newest(request), self._journal.now())
        if earlier is None:
            return "admitted"
        return "resumed" if earlier.answer is None else "stored"

    def _newest(self, request: Request) -> list[Record]:
        """The last record of each of the question's subjects."""
        found = [self._journal.store.last(subject) for subject in self._subjects(request)]
        return [record for record in found if record is not None]

    def publish(self, receipt: Receipt, answer: bytes, basis: str | None = None) -> bytes:
        """Store an ``answer``, then return what is stored: the first publication is the only one.

        ``receipt`` is that of the charge; ``basis`` names what it was computed from, where nobody
        can have changed that.
        """
        outcome = self._journal.write(partial(self._publish, receipt, answer, basis))
        if outcome is None:
            return answer
        if outcome.kind == "release":
            return self._read_answer(outcome)
        raise DataRefusal(
            "D1",
            "the engine could not answer this question.",
            why="what went wrong may depend on one person's row, so nothing more is said.",
            fix="ask again, at a new price, or ask a smaller question.",
        )

    def _publish(
        self, receipt: Receipt, answer: bytes, basis: str | None, writer: Writer
    ) -> Record | None:
        """Store an answer; what became of the charge before, if something did."""
        charge = self._find_charge(receipt.id)
        outcome = self._journal.store.outcome(charge)
        if outcome is None:
            content = {"charge": charge.sequence, "answer": hashlib.sha256(answer).hexdigest()}
            if basis is not None:
                content["basis"] = basis
            self._close("release", charge, content, writer, answer)
        return outcome

    def burn(self, receipt: Receipt) -> None:
        """Close the charge of ``receipt``, which will have no answer; it stays spent.

        A charge that somebody else answered meanwhile stays answered.
        """
        with self._journal.writing() as writer:
            charge = self._find_charge(receipt.id)
            if self._journal.store.outcome(charge) is None:
                self._close("burn", charge, {"charge": charge.sequence}, writer)

    def record_refusal(self, analyst: str, question: str, refusal: Refusal) -> None:
        """Record that ``question`` of ``analyst`` was refused by ``refusal``; nothing is charged.

        The first of a kind whole, the others by their number: see :mod:`discreet.ledger.tally`.
        """
        content = {"question": question, "code": refusal.code, "what": refusal.what}
        written = {name: _escape(text) for name, text in content.items()}
        store = self._journal.store
        with self._journal.writing() as writer:
            # Names that nobody was given are as many as somebody likes: they share one count.
            known = analyst if analyst in self.standing().analysts else ""
            day = f"{writer.now:%Y-%m-%d}"
            tallies = store.tallies(self.dataset, known)
            for over in tallies:
                if over.day != day:
                    self._tell(over, over.count, writer)
                    store.forget_tally(over)
            today = {tally.code: tally for tally in tallies if tally.day == day}
            before = today.pop(refusal.code, Tally(self.dataset, known, day, refusal.code))
            size = len(canonical_json(written).encode())
            now = before.add(size, sum(tally.size for tally in today.values()))
            store.count_refusals(now)
            if now.size > before.size:
                name = known or _escape(analyst)[:_LONGEST_NAME]
                writer.append("refusal", written, dataset=self.dataset, analyst=name)
            else:
                self._tell(before, now.told, writer)

    def _tell(self, tally: Tally, told: int, writer: Writer) -> None:
        """Enter into the log what it does not know of a count yet."""
        if told > tally.told:
            content = tally.to_content(told)
            writer.append("refusals", content, dataset=self.dataset, analyst=tally.analyst)

    def refusals(self, analyst: str | None = None) -> dict[tuple[str, str, str], int]:
        """How often analysts were refused, by (day, analyst, code); exact, as of now.

        Of one ``analyst``, if named.  Those who are not known to the dataset are counted together,
        under no name.
        """
        found: Counter[tuple[str, str, str]] = Counter()
        with self._journal.reading() as books:
            known = books.datasets[self.dataset].analysts
            for record in self._journal.store.about(
                self.dataset, ("refusal", "refusals"), analyst=analyst, before=None, limit=None
            ):
                content = record.content
                name = record.analyst if record.analyst in known else ""
                day = content.get("day", record.at[:10])
                found[day, name, content["code"]] += content.get("count", 1)
            for tally in self._journal.store.tallies(self.dataset, analyst):
                found[tally.day, tally.analyst, tally.code] += tally.untold
        return dict(sorted(found.items()))

    def _close(
        self,
        kind: str,
        charge: Record,
        content: dict[str, Any],
        writer: Writer,
        answer: bytes | None = None,
    ) -> None:
        writer.append(
            kind,
            content,
            dataset=self.dataset,
            analyst=charge.analyst,
            subject=charge.subject,
            answer=answer,
        )

    # --- what is known of a question ----------------------------------------------------------

    def _find_earlier(
        self, request: Request, newest: list[Record], now: datetime
    ) -> _Earlier | None:
        """An answer or an open charge of the same question that this analyst may use.

        ``newest`` is the last record of each of the question's subjects.
        """
        standing = self.standing()
        admission.check_access(standing, request.analyst, now)
        self._check_current(standing)
        # Records of one subject read: charge burn charge burn ... charge [release], because a
        # charge that is open or released is found here, and no other is made.  The last tells all.
        usable = _pick_usable(newest, request, shared=standing.policy.shared_answers)
        if not usable and request.formerly is not None:
            before = self._newest(replace(request, data_version=request.formerly))
            usable = _pick_usable(before, request, shared=standing.policy.shared_answers)
        for last in usable:
            if last.kind == "release":
                return _Earlier(last, self._read_answer(last))
        if usable:
            return _Earlier(usable[0])
        halted = self._find_halted(newest) if request.once else None
        return None if halted is None else _Earlier(halted)

    def _find_halted(self, newest: list[Record]) -> Record | None:
        """The charge of a run that told all it was paid for, if nothing was paid for after it."""
        ends = (last for last in newest if last.kind == "halt")
        told = (last.content["charge"] for last in ends if last.content.get("reason") == HALTED)
        return next((self._journal.store.record(number) for number in told), None)

    def _reuse(self, earlier: _Earlier, request: Request) -> Receipt | Stored:
        if earlier.answer is not None:
            return Stored(earlier.record.content["charge"], earlier.answer)
        record, content = earlier.record, earlier.record.content
        loss = Loss.from_units(*content["loss"])
        version, parent = request.data_version, content.get("parent")
        return Receipt(record.sequence, record.analyst, loss, version, resumed=True, parent=parent)

    def _admit(self, request: Request, content: dict[str, Any], standing: Standing) -> None:
        books = self._journal.books
        elsewhere = admission.find_touched(content, books.elsewhere(self.dataset))
        admission.admit(standing, self.space, self.dataset, request, content["area"], elsewhere)

    def _subject(self, request: Request) -> str:
        shared, own = self._subjects(request)
        return shared if self.standing().policy.shared_answers else own

    def _subjects(self, request: Request) -> tuple[str, str]:
        """A question as its answer is found: by all, and by whoever asked it."""
        asked = ("question", self.dataset, request.key, request.data_version)
        return digest_subject(*asked), digest_subject(*asked, request.analyst)

    def _check_current(self, standing: Standing) -> None:
        if standing.layout != self._layout:
            raise LedgerRefusal(
                "L9",
                f"the blocks of dataset {self.dataset!r} were declared anew by another process.",
                why="a charge to blocks that are no longer there would be charged to nobody.",
                fix="open the session again.",
            )

    def _find_charge(self, number: int) -> Record:
        record = self._journal.store.record(number)
        if record is None or record.kind != "charge" or record.dataset != self.dataset:
            raise refusals.missing(f"dataset {self.dataset!r} has no charge numbered {number}.")
        return record

    def _read_answer(self, release: Record) -> bytes:
        stored = self._journal.store.answer(release.sequence)
        if stored is None or hashlib.sha256(stored).hexdigest() != release.content["answer"]:
            raise refusals.corrupt("a stored answer was altered or lost.")
        return stored

    # --- what was released about the same rows -------------------------------------------------

    def find_sources(self, about: About, data_version: str, analyst: str) -> tuple[int, ...]:
        """Released answers that may tell what is asked, by their charges; the best of each kind.

        ``about`` says which rows are asked about.

        Those that count the rows of some of its conditions, in groups that tell the others and its
        own groups apart. Only of data of ``data_version``, and what ``analyst`` may see.
        """
        with self._reading:
            self._catch_up()
            own = None if self.standing().policy.shared_answers else analyst
            return self._shelf.find(about, data_version, own)

    def find_basis(self, id: int) -> str | None:  # noqa: A002
        """What the answer of the charge ``id`` was computed from, if that is known for certain."""
        outcome = self._journal.store.outcome(self._find_charge(id))
        return None if outcome is None else outcome.content.get("basis")

    def is_refined(self, id: int) -> bool:  # noqa: A002
        """Whether another charge refines the answer of the charge ``id``."""
        with self._journal.reading():
            return id in self.standing().refined

    def _catch_up(self) -> None:
        for batch in self._journal.store.batches(self._shelf.read + 1):
            for record in batch:
                self._shelf.put(record, self.dataset)

    def list_unread(self, data_version: str) -> tuple[int, ...]:
        """Answers about these data whose charges, of earlier versions, do not say of which rows.

        ``data_version`` is that of the data.
        """
        with self._reading:
            self._catch_up()
            return tuple(self._shelf.unread.get(data_version, ()))

    def note_abouts(self, id: int, abouts: Sequence[About], data_version: str) -> None:  # noqa: A002
        """What the answers of a charge turned out to be about; nothing that helps, if none.

        ``id`` is the charge, ``abouts`` are the rows of its answers, on data of ``data_version``.
        """
        with self._reading:
            found = self._shelf.unread.get(data_version, {}).pop(id, None)
            if found is not None and abouts:
                analyst, content = found
                said = [admission.about_content(about) for about in abouts]
                self._shelf.keep(id, analyst, {**content, "abouts": said})

    def find_chain(self, id: int) -> tuple[tuple[int, Loss], ...]:  # noqa: A002
        """The charge ``id`` of an answer and those of all that it refines, the first one first."""
        found: list[tuple[int, Loss]] = []
        number: int | None = id
        while number is not None:
            content = self._find_charge(number).content
            found.append((number, Loss.from_units(*content["loss"])))
            number = content.get("parent")
        return tuple(reversed(found))

    # --- reading ------------------------------------------------------------------------------

    def answer(self, id: int) -> Stored:  # noqa: A002 (the word of receipts and transcripts)
        """The answer that the charge ``id`` paid for; a ``LookupError`` if there is none."""
        outcome = self._journal.store.outcome(self._find_charge(id))
        if outcome is None or outcome.kind != "release":
            raise refusals.missing(f"charge {id} has no answer.")
        return Stored(id, self._read_answer(outcome))

    def balance(self, analyst: str | None = None) -> Balance:
        """What was spent and what is left: of the dataset, or of an ``analyst``'s allocation."""
        with self._journal.reading():
            standing = self.standing()
            spent, space = standing.spent.copy(), self._space_of(standing)
            entities = self._balance_entities(standing, space)
            whole = Balance(self.dataset, None, standing.budget, space, spent, entities=entities)
            if analyst is None:
                return whole
            self._people.find(analyst)
            share = standing.find_spent_by(analyst).copy()
            limit = standing.limit(analyst) or standing.budget
            group = self._balance_group(standing.group_of(analyst), standing, space)
            return Balance(self.dataset, analyst, limit, space, share, cap=whole, group=group)

    def _balance_group(self, name: str | None, standing: Standing, space: Space) -> Balance | None:
        found = standing.policy.groups.get(name or "")
        if name is None or found is None or found.limit is None:
            return None
        return Balance(
            self.dataset, name, found.limit, space, standing.find_spent_by_group(name).copy()
        )

    def groups(self) -> dict[str, tuple[Group, Balance | None]]:
        """The groups that analysts may be in, each with its balance if it has a common limit."""
        with self._journal.reading():
            standing = self.standing()
            space = self._space_of(standing)
            return {
                name: (group, self._balance_group(name, standing, space))
                for name, group in sorted(standing.policy.groups.items(), key=itemgetter(0))
            }

    def _balance_entities(self, standing: Standing, space: Space) -> tuple[EntityBalance, ...]:
        books = self._journal.books
        return tuple(
            EntityBalance(
                name,
                Balance(self.dataset, None, e.budget, space, e.add_to(standing.lost[name])),
                books.parts(name),
            )
            for name, e in books.elsewhere(self.dataset).items()
        )

    def _space_of(self, standing: Standing) -> Space:
        same = standing.layout == self._layout
        return self.space if same else Space.from_identity(standing.space)

    def entry(self, id: int) -> Entry | None:  # noqa: A002
        """One line of the transcript, by its number ``id``."""
        record = self._journal.store.record(id)
        if record is None or record.dataset != self.dataset or record.kind not in _TRANSCRIPT_KINDS:
            return None
        outcome = self._journal.store.outcome(record) if record.kind == "charge" else None
        return _transcript_entry(record, outcome)

    def transcript(
        self, analyst: str | None = None, *, before: int | None = None, limit: int | None = None
    ) -> tuple[Entry, ...]:
        """Every question that was charged or refused: in order, or the newest first if limited.

        Of ``analyst`` alone, if one is named; at most ``limit``, with numbers below ``before``.
        """
        if analyst is not None:
            self.analyst(analyst)
        store = self._journal.store
        found = store.about(
            self.dataset, _TRANSCRIPT_KINDS, analyst=analyst, before=before, limit=limit
        )
        if limit is not None:
            return tuple(
                _transcript_entry(r, store.outcome(r) if r.subject else None) for r in found
            )
        closed = store.about(self.dataset, tuple(_STATES), analyst=None, before=None, limit=None)
        outcomes = {record.content["charge"]: record for record in closed}
        return tuple(
            _transcript_entry(record, outcomes.get(record.sequence)) for record in reversed(found)
        )

    @property
    def runs(self) -> RunBook:
        """The runs of the dataset: what each has told, and whether it is over."""
        from discreet.ledger.runs import RunBook  # most questions belong to none

        return RunBook(self._journal, self.dataset)

    # --- renewal ------------------------------------------------------------------------------

    def renew(
        self, blocks: Sequence[int | str], *, reason: str, entities: Sequence[str] = ()
    ) -> None:
        """Give ``blocks``, by number or name, a fresh budget for a ``reason`` that is recorded.

        Their people were promised the old budget; from here on they lose up to
        another one.  There is no renewal of everything at once by default.  What people who are in
        several datasets lost here still counts for them, unless ``entities`` names them.
        """
        numbers = admission.number_blocks(self.space, blocks)
        if not reason.strip():
            raise admission.reason_refusal()
        mask = np.zeros(self.space.size, dtype=bool)
        mask[numbers] = True
        area = encode_blocks(Area.of(self.space, mask).edges, self.space.size)
        with self._journal.writing() as writer:
            standing = self.standing()
            self._check_current(standing)
            before = take_blocks(standing.spent, decode_blocks(area, standing.size)).max(axis=1)
            content: dict[str, Any] = {
                "area": area,
                "reason": reason,
                "spent": [int(part) for part in before],
            }
            if entities:
                content["entities"] = admission.check_entities(standing, entities)
            writer.append("renew", content, dataset=self.dataset)


def _escape(text: str) -> str:
    """What somebody typed as a record can hold it: not too long, half characters escaped."""
    return text[:_MOST_TYPED].encode(errors="backslashreplace").decode()


def _transcript_entry(record: Record, outcome: Record | None) -> Entry:
    content = record.content
    if record.kind == "refusal":
        return Entry(
            record.sequence, record.time, record.analyst, content["question"], {}, None,
            State.REFUSED, content["code"],
        )  # fmt: skip
    if record.kind == "refusals":
        return Entry(
            record.sequence, record.time, record.analyst, "", {}, None,
            State.REFUSED, content["code"], content["count"],
        )  # fmt: skip
    state = State.OPEN if outcome is None else _STATES[outcome.kind]
    loss = Loss.from_units(*content["loss"])
    return Entry(
        record.sequence, record.time, record.analyst, content["question"], content["spend"], loss,
        state,
    )  # fmt: skip
