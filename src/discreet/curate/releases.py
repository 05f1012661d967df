"""Releases: charged once for all their stages, drawn stage by stage, each stored before the next.

All stages are charged in one transaction before a row is read.  A stage that was drawn is in the
ledger before anything is planned from it, and is never drawn again: whoever is killed finds it
there.  What is made of the stages is a function of them, so the folder can be written again too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.accounting.loss import Loss
from discreet.accounting.neighbours import Neighbours
from discreet.curate.counting import Counted
from discreet.engine.protocol import describe_failure
from discreet.engine.truth import Truth
from discreet.errors import Halted, InvalidParameter, QuestionRefusal, Refusal
from discreet.exact.numbers import canonical_json
from discreet.ledger.charges import Receipt, Request, Stored
from discreet.publication.agenda import Agenda, Division, divide_agenda
from discreet.publication.declared import Declared
from discreet.publication.domain import Column
from discreet.publication.draws import read_stage, write_stage
from discreet.publication.folder import (
    CERTIFICATE,
    SUMS,
    Made,
    Promise,
    read_folder,
    write_folder,
)
from discreet.publication.geography import find_leaves, read_tree, show_levels
from discreet.publication.measure import Measurement, Query, Records, Running, loss_of
from discreet.publication.product import Outline, list_columns, make_product, outline
from discreet.publication.spend import Spend
from discreet.publication.synopsis import Synopsis
from discreet.publication.typed import read_constraints
from discreet.question.levels import Levels, list_levels
from discreet.question.ownership import (
    columns,
    has_two_owners,
    reads_graph,
    row_bound,
    unit,
    unit_columns,
)
from discreet.question.question import Question
from discreet.question.schema import Schema
from discreet.question.sql import parse
from discreet.release.record import to_json
from discreet.release.release import release_codes

if TYPE_CHECKING:
    from discreet.curate.curator import Curator


@dataclass(frozen=True, slots=True)
class Prepared:
    """A release that could be made: what is read, how it is counted, what each stage costs."""

    declared: Declared
    question: Question
    levels: tuple[Levels, ...]
    columns: tuple[Column, ...]
    spend: Spend
    stages: tuple[Outline, ...]
    coded: tuple[Levels, ...]
    """The columns that rows have; those of a tree may be looked up from them."""
    compiled: Any
    promise: Promise

    @property
    def loss(self) -> Loss:
        """What all stages cost together."""
        return sum((one.spend.loss.rounded() for one in self.stages), start=_nothing())

    def key(self, stage: Outline) -> str:
        """What makes two stages the same: all that was declared, and how columns are counted."""
        same = [
            "release",
            self.declared.to_json(),
            [to_json(tuple(_identity(one))) for one in self.levels],
            to_json(self.question.source),
            self.promise.neighbours,
            stage.name,
            str(stage.spend.amount),
        ]
        return hashlib.sha256(canonical_json(same, ascii_only=True).encode()).hexdigest()


def _identity(levels: Levels) -> list[Any]:
    return [
        levels.column,
        levels.kind.value,
        levels.count,
        levels.nullable,
        levels.values,
        levels.low,
        levels.high,
        levels.step,
    ]


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage that is to be drawn where the data is: all that its plan follows from."""

    declared: Declared
    stored: Mapping[int, bytes]
    """The stages that were drawn before, by their place."""
    place: int


Draw = Callable[[Stage, str], bytes]
"""Draws a stage on the data of a version, or of any if that is empty; or refuses."""


class Releases:
    """The releases of one curator: those it made, and those in its folder."""

    def __init__(self, curator: Curator, folder: Path | None) -> None:
        self._curator = curator
        self._folder = folder
        self._known: dict[str, Synopsis] = {}
        self._written: dict[str, int] = {}
        self._counters: dict[str, Counted] = {}

    # --- what there is -------------------------------------------------------------------------

    def names(self) -> list[str]:
        """The names of all releases."""
        found = set(self._known)
        if self._folder is not None and self._folder.is_dir():
            found |= {one.parent.name for one in self._folder.glob(f"*/{SUMS}")}
        return sorted(found)

    def certificate(self, name: str) -> dict[str, Any]:
        """What a release was declared to be and charged, without computing it again."""
        if name in self._known or self._folder is None:
            return self.find(name).made.certificate()
        found: dict[str, Any] = json.loads((self._folder / name / CERTIFICATE).read_text())
        return found

    def find(self, name: str) -> Synopsis:
        """The release of that name, to be asked for free."""
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
        """Where the files of a release are."""
        if self._folder is None or not (self._folder / name / SUMS).is_file():
            raise _unknown(name, self.names())
        return self._folder / name

    # --- before anything is paid ---------------------------------------------------------------

    def prepare(self, declared: Declared) -> Prepared:
        """What a release would count and cost, or a refusal; from the declaration alone."""
        curator = self._curator
        return prepare_release(declared, curator.engine, curator.schema, curator.account.dataset)

    def divide(self, agenda: Agenda) -> Division:
        """A price for each release of a plan; free, from the declarations alone."""
        prepared = [self.prepare(item.declared) for item in agenda.items]
        items = zip(agenda.items, prepared, strict=True)
        agenda = replace(
            agenda, items=tuple(replace(item, declared=one.declared) for item, one in items)
        )
        return divide_agenda(agenda, [(one.levels, one.promise.rows_per_unit) for one in prepared])

    # --- making one ----------------------------------------------------------------------------

    def make(self, declared: Declared, *, analyst: str, draw: Draw | None = None) -> Synopsis:
        """Charge, draw, and write a release; what was paid for before is finished for free.

        Each stage is drawn here, or by ``draw``, in the process that holds the data.
        """
        return self.make_all([declared], analyst=analyst, draw=draw)[0]

    def make_all(
        self, listed: Sequence[Declared], *, analyst: str, draw: Draw | None = None
    ) -> list[Synopsis]:
        """Charge several releases in one transaction, all or none, and make one after the other."""
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

    def step(self, name: str, *, analyst: str, draw: Draw | None = None) -> Synopsis:
        """Publish the next step of a counter, from the data as they are now; it is paid for."""
        declared = self.find(name).made.declared
        if declared.kind != "counter":
            raise InvalidParameter(
                "P4",
                f"the release {name!r} has no steps: it is {declared.kind}.",
                why="a release is made once and for all.",
                fix="step a release of kind counter.",
            )
        if declared.steps_per_unit is not None and draw is not None:
            raise InvalidParameter(
                "P4",
                f"the steps of {name!r} are published where the ledger is.",
                why="what earlier steps counted is kept beside the ledger, and given to nobody.",
                fix=f"run `discreet release step {name}` in the session's folder.",
            )
        prepared = self.prepare(declared)
        receipts = self._curator.account.charge_all(self._make_requests(prepared, analyst))
        done = sum(isinstance(receipt, Stored) for receipt in receipts)
        if declared.steps_per_unit is not None:
            self._counted(prepared).check(done)
        if done == len(receipts):
            raise Halted(
                "H1",
                f"the counter {name!r} has published its {done} steps.",
                why="its noise was charged and made for that many.",
                fix="make another counter.",
            )
        return self._draw(prepared, receipts, steps=done + 1, draw=draw)

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
        counts = declared.kind == "counter"
        if counts and not steps:
            steps = sum(isinstance(receipt, Stored) for receipt in receipts)
        drawing = _Drawing(self._curator, prepared, receipts, steps if counts else None, draw)
        if declared.steps_per_unit is not None:
            drawing.counted = self._counted(prepared)
        product = make_product(declared, prepared.levels, prepared.spend, drawing)
        drawing.finish()
        charges = tuple(receipt.id for receipt in receipts)
        made = Made(declared, prepared.levels, prepared.promise, prepared.stages, charges, product)
        if self._folder is not None:
            write_folder(made, self._folder / declared.name, anew=counts)
        self._known[declared.name] = Synopsis(made)
        return self._known[declared.name]

    def _counted(self, prepared: Prepared) -> Counted:
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
            raise _taken(prepared.declared.name)
        return found

    def _make_requests(self, prepared: Prepared, analyst: str) -> list[Request]:
        curator = self._curator
        version, formerly = curator.engine.data_version(), curator.engine.former_version()
        if prepared.declared.kind == "counter":  # charged for what is still to come
            version, formerly = f"counter {prepared.declared.name}", None
        area = curator.area(prepared.question)
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
            )
            for stage in prepared.stages
        ]

    def _preview_whole(self, prepared: Prepared, first: Request) -> None:
        """No cap is passed by in parts: the whole release is held against each of them."""
        self._curator.account.preview(
            replace(first, key=f"{first.key} and all others", loss=prepared.loss)
        )


def prepare_release(declared: Declared, engine: Any, schema: Schema, dataset: str) -> Prepared:
    """What a release would count and cost, or a refusal; from the declaration alone."""
    multiplicity = engine.catalogue.multiplicity
    question = parse(_count_all(declared.source), engine.catalogue)
    rows = row_bound(question.source, multiplicity)
    if has_two_owners(question.source) or reads_graph(question.source):
        raise QuestionRefusal(
            "Q52",
            "a release is to be made of rows that have two owners.",
            why="what one person leaves and lets in is bounded for questions, and for no "
            "release that is proved here.",
            fix="ask questions with groups, or release a table whose rows have one owner.",
        )
    if rows is None:
        raise QuestionRefusal(
            "Q41",
            f"nothing bounds how many rows one {unit(question.source).name} has in this release.",
            why="one person with many rows could be seen in every table.",
            fix="declare max_rows_per_unit, or release a SELECT with one row for each: "
            "of = 'SELECT patient, MAX(age) AS age FROM visits GROUP BY patient'.",
        )
    neighbours = schema.neighbours
    if neighbours is Neighbours.CHANGE_ONE:  # a change is a removal and an addition
        rows *= 2
    declared = _read_geography(declared, engine, schema)
    there = columns(question.source, multiplicity)
    wanted = declared.columns or declared.by
    if declared.tree:  # what lies above is looked up
        known = {one.rsplit(".", 1)[-1] for one in there}
        wanted = tuple(name for name in declared.by if name in known) or declared.by[-1:]
    coded = list_levels(
        there, unit_columns(question.source), wanted=wanted, cells=dict(declared.cells)
    )
    levels = coded
    if declared.tree:
        levels = show_levels(declared.tree, declared.by, coded)
    runs = declared.steps_per_unit is not None
    if runs and None in (unit_columns(question.source) or (None,)):
        raise QuestionRefusal(
            "Q23",
            "no column of this release says whose a row is.",
            why="each person is counted in so many steps and in no more, which takes to know "
            "them again.",
            fix="declare a unit, and leave its column in the SELECT; or leave out "
            "steps_per_unit: then every step is measured by itself.",
        )
    read_constraints(levels, declared.keep)
    spend = declared.spend(rows_per_unit=rows)
    return Prepared(
        declared,
        question,
        levels,
        list_columns(declared, levels),
        spend,
        tuple(outline(declared, levels, spend)),
        coded,
        engine.compile_codes(question.source, coded, owned=runs),
        Promise(
            dataset,
            unit(question.source).name,
            neighbours.value,
            rows,
        ),
    )


def _read_geography(declared: Declared, engine: Any, schema: Schema) -> Declared:
    """The places of the public table that was named, as part of what is declared."""
    if not declared.geography or declared.tree:
        return declared
    table = schema.tables.get(declared.geography)
    if table is None or not table.public:
        raise InvalidParameter(
            "P4",
            f"{declared.geography!r} is not a public table of the schema.",
            why="a tree that were read from people's rows would tell who lives alone.",
            fix="declare a table without a unit that lists the places, and name it.",
        )
    rows = engine.public_rows(declared.geography)
    return replace(declared, tree=read_tree(rows, declared.by, declared.geography))


class _Drawing:
    """The stages of one release as they are drawn, each once."""

    def __init__(
        self,
        curator: Curator,
        prepared: Prepared,
        receipts: Sequence[Receipt | Stored],
        steps: int | None,
        send: Draw | None,
    ) -> None:
        self._curator = curator
        self._send = send
        self._stored: dict[int, bytes] = {}
        self._steps = steps
        self._prepared = prepared
        self._receipts = list(receipts)
        self._place = 0
        self._truth: Truth | None = None
        self._drawn: set[int] = set()
        self.counted: Counted | None = None

    def turn_to(self, stage: str) -> bool:
        """Which stage is measured next; whether a counter has come to it."""
        names = [one.name for one in self._prepared.stages]
        self._place = names.index(stage)
        return self._steps is None or self._place < self._steps

    def measure(self, queries: Sequence[Query]) -> list[Measurement]:
        """The stage's numbers: stored before, or drawn now and stored."""
        place = self._place
        stage, receipt = self._prepared.stages[place], self._receipts[place]
        self._drawn.add(place)
        self._place += 1
        if self.counted is not None:  # the noise of all steps, for what all of them cost
            whole = self._prepared.spend.loss
            cheap = all(isinstance(one, Running) and one.noise.loss == whole for one in queries)
        else:
            cheap = loss_of(queries).rounded() <= stage.spend.loss.rounded()
        if not cheap:
            raise TypeError(f"stage {stage.name!r} would cost more than it was charged for")
        if isinstance(receipt, Stored):
            self._stored[place] = receipt.answer
            return read_stage(receipt.answer, queries)
        if self._send is None:
            drawn = self._draw(queries, receipt)
        else:  # where the data is: what it sends must be what was planned here
            version = None if self._steps is not None else receipt.data_version
            drawn = self._send(Stage(self._prepared.declared, self._stored, place), version or "")
            read_stage(drawn, queries)
        if drawn is None:
            raise describe_failure()
        self._stored[place] = self._curator.account.publish(receipt, drawn)
        return read_stage(self._stored[place], queries)

    def _draw(self, queries: Sequence[Query], receipt: Receipt) -> bytes | None:
        """One draw of noise, ready to be stored; whatever fails may fail because of one row."""
        engine = self._curator.engine
        with suppress(Exception):
            if self._truth is None:
                self._truth = engine.run_codes(self._prepared.compiled)
            drawn = release_codes(self._truth, lambda codes: self._add_noise(codes, queries))
            if self._steps is not None or engine.data_version() == receipt.data_version:
                return drawn
        return None

    def _add_noise(self, codes: Sequence[Any], queries: Sequence[Query]) -> bytes:
        if self.counted is None:
            return add_noise(self._prepared, codes, queries)
        (query,) = queries
        if not isinstance(query, Running):
            raise TypeError("a counter draws one step at a time")
        sizes = [one.size for one in self._prepared.coded]
        return write_stage(self.counted.draw(query, codes, sizes, self._place))

    def finish(self) -> None:
        """Close the charges of stages that had nothing to measure: they stay spent."""
        if self._steps is not None:
            return  # the steps that are to come
        for place, receipt in enumerate(self._receipts):
            if place not in self._drawn and isinstance(receipt, Receipt):
                self._curator.account.publish(receipt, write_stage([]))


def draw_stage(stage: Stage, engine: Any, version: str) -> bytes:
    """Draw one stage in the process that holds the data and no ledger; what is to be stored.

    The plan is made again from what was drawn before, as whoever holds the ledger made it: what is
    measured is never taken from anybody's word.
    """
    declared = stage.declared
    if declared.steps_per_unit is not None:
        raise TypeError("what steps counted is where the ledger is")
    prepared = prepare_release(declared, engine, engine.schema, "")
    measurer = _Again(prepared, stage)
    with suppress(_Reached):
        make_product(declared, prepared.levels, prepared.spend, measurer)
    queries = measurer.wanted
    if not loss_of(queries).rounded() <= prepared.stages[stage.place].spend.loss.rounded():
        raise TypeError("a stage would cost more than it was charged for")
    truth = engine.run_codes(prepared.compiled)
    drawn = release_codes(truth, lambda codes: add_noise(prepared, codes, queries))
    if version and engine.data_version() != version:
        raise describe_failure()
    return drawn


class _Reached(Exception):
    """The stage that is wanted: it is planned, and nothing after it is."""


class _Again:
    """The stages as they were drawn, up to the one that is wanted."""

    def __init__(self, prepared: Prepared, stage: Stage) -> None:
        self._names = [one.name for one in prepared.stages]
        self._stage = stage
        self._place = 0
        self.wanted: Sequence[Query] = ()

    def turn_to(self, stage: str) -> bool:
        self._place = self._names.index(stage)
        return self._place <= self._stage.place

    def measure(self, queries: Sequence[Query]) -> list[Measurement]:
        place = self._place
        self._place += 1
        if place != self._stage.place:
            return read_stage(self._stage.stored[place], queries)
        self.wanted = queries
        raise _Reached


def add_noise(prepared: Prepared, codes: Sequence[Any], queries: Sequence[Query]) -> bytes:
    """One stage from the codes of rows, with its noise, ready to be stored."""
    columns, levels, declared = prepared.columns, prepared.coded, prepared.declared
    if declared.tree:
        codes = [find_leaves(declared.tree, declared.by, levels, codes)]
    elif len(columns) < len(codes):  # the path of a hierarchy is one column
        path = np.zeros(len(codes[0]), dtype=np.int64)
        for one, level in zip(codes, levels, strict=True):
            path = path * level.size + one
        codes = [path]
    return write_stage(Records(columns, np.stack(codes, axis=1)).measure(queries))


def _count_all(source: str) -> str:
    if source.split(None, 1)[0].upper() in ("SELECT", "WITH"):
        return f"SELECT COUNT(*) AS n FROM ({source}) AS released"  # noqa: S608 (parsed, not run)
    quoted = source.replace('"', '""')
    return f'SELECT COUNT(*) AS n FROM "{quoted}"'  # noqa: S608


def _nothing() -> Loss:
    return Loss(Fraction(0), Fraction(0))


def _refuse_taken(name: str, curator: Curator) -> None:
    if name in curator.schema.tables:
        raise InvalidParameter(
            "P4",
            f"{name!r} is a table of the schema already.",
            why="a question about people must never be taken for one about a release.",
            fix=f"choose another name, such as {name}_released.",
        )


def _taken(name: str) -> InvalidParameter:
    return InvalidParameter(
        "P4",
        f"there is a release {name!r} already, which was declared otherwise.",
        why="a release is made once and for all; a second one is paid for by the people in it.",
        fix="choose another name, or declare it as it was.",
    )


def _unknown(name: str, known: Sequence[str]) -> QuestionRefusal:
    return QuestionRefusal(
        "Q6",
        f"there is no release {name!r}.",
        why="only what was released can be asked for free.",
        fix=f"use one of {', '.join(known)}." if known else "make one: `discreet release new`.",
    )


__all__ = ["Draw", "Prepared", "Releases", "Stage", "draw_stage"]
