"""Releases: charged once for all their stages, drawn stage by stage, each stored before the next.

All stages are charged in one transaction before a row is read.  A stage that was drawn is in the
ledger before anything is planned from it, and is never drawn again: whoever is killed finds it
there.  What is made of the stages is a function of them, so the folder can be written again too.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from discreet.curate.counting import Counted
from discreet.curate.preparing import PlannedRelease, Prepared, prepare_release
from discreet.curate.stages import Draw, Drawing
from discreet.errors import Halted, InvalidParameter, QuestionRefusal, Refusal
from discreet.exact.numbers import whole
from discreet.ledger.charges import Receipt, Request, Stored
from discreet.publication.agenda import Agenda, Division, divide_agenda
from discreet.publication.declared import Declared
from discreet.publication.folder import CERTIFICATE, Made, read_folder, write_folder
from discreet.publication.handover import check_place, write_handover
from discreet.publication.packing import check_release_place, pack_folder, unpack_folder
from discreet.publication.placing import SUMS, settle_all
from discreet.publication.product import make_product
from discreet.publication.report import write_card
from discreet.publication.synopsis import Synopsis

if TYPE_CHECKING:
    from discreet.curate.curator import Curator


class Releases:
    """The releases of one ``curator``: those it made, and those in its ``folder``, if any."""

    def __init__(self, curator: Curator, folder: Path | None) -> None:
        self._curator = curator
        self._folder = folder
        self._known: dict[str, Synopsis] = {}
        self._written: dict[str, int] = {}
        self._counters: dict[str, Counted] = {}
        self._guard = threading.Lock()
        self._busy: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        if folder is not None:
            with suppress(OSError):  # what may not be written is asked as it is
                settle_all(folder)

    # --- what there is -------------------------------------------------------------------------

    def names(self) -> list[str]:
        """The names of all releases."""
        found = set(self._known)
        if self._folder is not None and self._folder.is_dir():
            found |= {one.parent.name for one in self._folder.glob(f"*/{SUMS}")}
        return sorted(name for name in found if not name.startswith("."))  # drafts of the killed

    def certificate(self, name: str) -> dict[str, Any]:
        """What the release ``name`` was declared to be and charged; it is not computed again."""
        folder = None if self._folder is None else self._folder / name
        if name in self._known or folder is None or not (folder / SUMS).is_file():
            return self.find(name).made.certificate()
        found: dict[str, Any] = json.loads((folder / CERTIFICATE).read_text())
        return found

    def find(self, name: str) -> Synopsis:
        """The release called ``name``, to be asked for free."""
        folder = None if self._folder is None else self._folder / name
        written = 0
        if folder is not None:
            with suppress(OSError):
                written = (folder / SUMS).stat().st_mtime_ns
        if name not in self._known or (written and self._written.get(name, written) != written):
            if folder is None or not written:
                raise _unknown(name, self.names())
            self._known[name] = Synopsis(read_folder(folder))  # also when a counter has stepped
        self._written[name] = written
        return self._known[name]

    def folder_of(self, name: str) -> Path:
        """Where the files of the release ``name`` are."""
        if self._folder is None or not (self._folder / name / SUMS).is_file():
            raise _unknown(name, self.names())
        return self._folder / name

    def card(self, name: str) -> str:
        """What the release ``name`` is and promises, in words."""
        return write_card(self.find(name).made)

    def hand_over(self, name: str, folder: Path) -> Path:
        """Write the release ``name`` to ``folder``, to be handed over; all of it or nothing."""
        check_release_place(folder)
        if self._folder is None:
            return write_folder(self.find(name).made, folder, anew=True)
        return unpack_folder(pack_folder(self.folder_of(name)), folder)

    def hand_over_all(self, names: Sequence[str], folder: Path) -> Path:
        """Write the releases ``names`` to one ``folder``, with an index and checksums."""
        listed = dict.fromkeys([names] if isinstance(names, str) else names)
        if not listed:
            raise InvalidParameter(
                "P4",
                "no release is named.",
                why="a folder of nothing would be taken for all that was published.",
                fix="name the releases that are handed over.",
            )
        check_place(folder)
        return write_handover([self.find(name).made for name in listed], folder)

    # --- before anything is paid ---------------------------------------------------------------

    def prepare(self, declared: Declared) -> Prepared:
        """What a release ``declared`` so would count and cost, or a refusal; reads nothing."""
        curator = self._curator
        return prepare_release(declared, curator.engine, curator.schema, curator.account.dataset)

    def plan(self, declared: Declared) -> PlannedRelease:
        """The same, as it is told: what ``declared`` would count and cost, stage by stage."""
        return self.prepare(declared).tell()

    def divide(self, agenda: Agenda) -> Division:
        """A price for each release of a plan, the ``agenda``; free, from the declarations alone."""
        prepared = [self.prepare(item.declared) for item in agenda.items]
        items = zip(agenda.items, prepared, strict=True)
        agenda = replace(
            agenda, items=tuple(replace(item, declared=one.declared) for item, one in items)
        )
        return divide_agenda(agenda, [(one.levels, one.promise.rows_per_unit) for one in prepared])

    # --- making one ----------------------------------------------------------------------------

    def make(self, declared: Declared, *, analyst: str, draw: Draw | None = None) -> Synopsis:
        """Charge, draw, and write a release; what was paid for before is finished for free.

        ``declared`` says what it is to be, and ``analyst`` pays.  Each stage is drawn here, or by
        ``draw``, in the process that holds the data.
        """
        return self.make_all([declared], analyst=analyst, draw=draw)[0]

    def make_all(
        self, listed: Sequence[Declared], *, analyst: str, draw: Draw | None = None
    ) -> list[Synopsis]:
        """Charge several releases in one transaction, all or none, and make one after the other.

        ``listed`` are their declarations; ``analyst`` and ``draw`` are those of :meth:`make`.
        """
        with self._alone_with([declared.name for declared in listed]):
            return self._make_all(listed, analyst, draw)

    def _make_all(
        self, listed: Sequence[Declared], analyst: str, draw: Draw | None
    ) -> list[Synopsis]:
        account = self._curator.account
        try:
            prepared = [self._prepare_new(declared) for declared in listed]
            new = [one for one in prepared if isinstance(one, Prepared)]
            requests = [self._make_requests(one, analyst) for one in new]
            for one, own in zip(new, requests, strict=True):
                if account.find(own[0]) == "admitted":
                    self._preview_whole(one, own[0])
            flat = [request for own in requests for request in own]
            receipts = iter(account.charge_all(flat) if flat else [])  # durable from here on
        except Refusal as refusal:
            words = "; ".join(declared.describe() for declared in listed)
            account.record_refusal(analyst, words, refusal)
            raise
        return [
            one
            if isinstance(one, Synopsis)
            else self._draw(one, [next(receipts) for _ in one.stages], draw=draw)
            for one in prepared
        ]

    def make_plan(
        self,
        agenda: Agenda,
        *,
        analyst: str,
        folder: Path | None = None,
        draw: Draw | None = None,
    ) -> list[Synopsis]:
        """Divide the price of a plan, the ``agenda``, charge it at once, and make its releases.

        With a ``folder`` all of them are in it afterwards, to be handed over.  ``analyst`` and
        ``draw`` are those of :meth:`make`.
        """
        if folder is not None:
            check_place(folder)  # before anything is paid
        made = self.make_all(self.divide(agenda).declared, analyst=analyst, draw=draw)
        if folder is not None:
            write_handover([one.made for one in made], folder)
        return made

    def step(
        self, name: str, *, number: int | None = None, analyst: str, draw: Draw | None = None
    ) -> Synopsis:
        """Publish the next step of the counter ``name``, from the data as they are; it is paid for.

        A step that was drawn and not shown, because the process was killed, is shown first.  With
        its ``number`` a step that was published is only told again.  ``analyst`` and ``draw`` are
        those of :meth:`make`.
        """
        with self._alone_with([name]):
            return self._step(self.find(name), number, analyst, draw)

    def _step(
        self, found: Synopsis, number: int | None, analyst: str, draw: Draw | None
    ) -> Synopsis:
        name, declared = found.name, found.made.declared
        if declared.kind != "counter":
            raise InvalidParameter(
                "P4",
                f"the release {name!r} has no steps: it is {declared.kind}.",
                why="a release is made once and for all.",
                fix="step a release of kind counter.",
            )
        wanted = None if number is None else whole(number, name="number", least=1)
        prepared = self.prepare(declared)
        requests = self._make_requests(prepared, analyst)
        if any(self._curator.account.find(one) == "admitted" for one in requests):
            raise _other_counter(name)  # nothing is charged for a step, ever
        receipts = self._curator.account.charge_all(requests)
        done = sum(isinstance(receipt, Stored) for receipt in receipts)
        if declared.steps_per_unit is not None:
            self._load_counted(prepared).check(done)
        shown = len(found.made.product.measured)
        if shown < done if wanted is None else wanted <= done:
            return found if shown == done else self._draw(prepared, receipts, steps=done)
        if done == len(receipts):
            raise Halted(
                "H1",
                f"the counter {name!r} has published its {done} steps.",
                why="its noise was charged and made for that many.",
                fix="make another counter.",
            )
        if wanted is not None and wanted > done + 1:
            raise InvalidParameter(
                "P2",
                f"step {wanted} of {name!r} cannot be published: the next is {done + 1}.",
                why="a later step counts what was counted in those before it.",
                fix="publish one step after the other.",
            )
        return self._draw(prepared, receipts, steps=done + 1, draw=draw)

    @contextmanager
    def _alone_with(self, names: Sequence[str]) -> Iterator[None]:
        """Whoever comes with the same name waits, and finds what was made: paid and drawn once."""
        with self._guard:
            locks = [self._busy.setdefault(name, threading.Lock()) for name in sorted({*names})]
        with ExitStack() as held:
            for lock in locks:  # in order of their names, so that no two wait for each other
                held.enter_context(lock)
            yield

    def _prepare_new(self, declared: Declared) -> Prepared | Synopsis:
        prepared = self.prepare(declared)
        if declared.name in self.names():
            return self._same(prepared)
        _refuse_taken(declared.name, self._curator)
        return prepared

    def _draw(
        self,
        prepared: Prepared,
        receipts: Sequence[Receipt | Stored],
        *,
        steps: int = 0,
        draw: Draw | None = None,
    ) -> Synopsis:
        declared = prepared.declared
        counts, stepping = declared.kind == "counter", steps > 0
        if counts and not steps:
            steps = sum(isinstance(receipt, Stored) for receipt in receipts)
        drawing = Drawing(self._curator, prepared, receipts, steps if counts else None, draw)
        if declared.steps_per_unit is not None:
            drawing.counted = self._load_counted(prepared)
        product = make_product(declared, prepared.levels, prepared.spend, drawing)
        drawing.finish()
        charges = tuple(receipt.id for receipt in receipts)
        made = Made(declared, prepared.levels, prepared.promise, prepared.stages, charges, product)
        if self._folder is not None:
            write_folder(made, self._folder / declared.name, anew=stepping)
            if not stepping and self._read_charges(declared.name) != charges:
                return self._same(prepared)  # another process was quicker
        self._known[declared.name] = Synopsis(made)
        return self._known[declared.name]

    def _read_charges(self, name: str) -> tuple[int, ...]:
        return tuple(stage["charge"] for stage in self.certificate(name)["stages"])

    def _load_counted(self, prepared: Prepared) -> Counted:
        """What the steps of this counter counted."""
        name = prepared.declared.name
        if name not in self._counters:
            secrets = self._curator.sealed.folder
            folder = None if secrets is None else secrets / "counters" / name
            declared = {"release": prepared.key(prepared.stages[0])}
            self._counters[name] = Counted(folder, declared)
        return self._counters[name]

    def _same(self, prepared: Prepared) -> Synopsis:
        found = self.find(prepared.declared.name)
        if found.made.declared != prepared.declared:
            raise _taken_refusal(prepared.declared.name)
        return found

    def _make_requests(self, prepared: Prepared, analyst: str) -> list[Request]:
        curator = self._curator
        version, formerly = curator.engine.data_version(), curator.engine.former_version()
        if prepared.declared.kind == "counter":  # charged for what is still to come
            version, formerly = f"counter {prepared.declared.name}", None
        area = curator.area(prepared.question)
        entities = curator.list_entities([prepared.question.source])
        return [
            Request(
                analyst=analyst,
                question=f"{prepared.declared.describe()}, {stage.name}",
                spend={stage.spend.kind.value: str(stage.spend.amount)},
                key=prepared.key(stage),
                data_version=version,
                formerly=formerly,
                loss=stage.spend.loss,
                area=area,
                entities=entities,
            )
            for stage in prepared.stages
        ]

    def _preview_whole(self, prepared: Prepared, first: Request) -> None:
        """No cap is passed by in parts: the whole release is held against each of them."""
        self._curator.account.preview(
            replace(first, key=f"{first.key} and all others", loss=prepared.loss)
        )


def _refuse_taken(name: str, curator: Curator) -> None:
    if curator.surveys is not None and name in curator.surveys.names():
        raise InvalidParameter(
            "P4",
            f"{name!r} is a survey of the session already.",
            why="a question would have two answers: from reports, and from the release.",
            fix=f"choose another name, such as {name}_released.",
        )
    if name in curator.schema.tables:
        raise InvalidParameter(
            "P4",
            f"{name!r} is a table of the schema already.",
            why="a question about people must never be taken for one about a release.",
            fix=f"choose another name, such as {name}_released.",
        )


def _taken_refusal(name: str) -> InvalidParameter:
    return InvalidParameter(
        "P4",
        f"there is a release {name!r} already, which was declared otherwise.",
        why="a release is made once and for all; a second one is paid for by the people in it.",
        fix="choose another name, or declare it as it was.",
    )


def _other_counter(name: str) -> InvalidParameter:
    return InvalidParameter(
        "P4",
        f"the counter {name!r} is not one that was charged here as it is read now.",
        why="its next step would be charged anew and may count other people: versions differ in "
        "what a = b IS NULL is about.",
        fix="make another counter, with brackets where conditions meet IS: a = (b IS NULL).",
    )


def _unknown(name: str, known: Sequence[str]) -> QuestionRefusal:
    return QuestionRefusal(
        "Q6",
        f"there is no release {name!r}.",
        why="only what was released can be asked for free.",
        fix=f"use one of {', '.join(known)}." if known else "make one: `discreet release new`.",
    )


__all__ = ["Releases"]
