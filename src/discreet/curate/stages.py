"""The stages of a release as they are drawn, each once: here, or where the data is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.curate.counting import Counted
from discreet.curate.preparing import Prepared, prepare_release
from discreet.engine.protocol import describe_failure
from discreet.engine.truth import Truth
from discreet.ledger.charges import Receipt, Stored
from discreet.publication.declared import Declared
from discreet.publication.draws import read_stage, write_stage
from discreet.publication.geography import find_leaves
from discreet.publication.measure import Measurement, Query, Records, Running, loss_of
from discreet.publication.outline import Outline
from discreet.publication.product import make_product
from discreet.release.release import release_codes

if TYPE_CHECKING:
    from discreet.curate.curator import Curator


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage that is to be drawn where the data is: all that its plan follows from."""

    declared: Declared
    stored: Mapping[int, bytes]
    """The stages that were drawn before, by their place."""
    place: int
    counted: Counted | None = None
    """Of a counter whose steps share their noise: where is kept what they counted."""


Draw = Callable[[Stage, str], bytes]
"""Draws a stage on the data of a version, or of any if that is empty; or refuses."""


class Drawing:
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
        _check_price(self._prepared, stage, queries)
        if isinstance(receipt, Stored):
            self._stored[place] = receipt.answer
            return read_stage(receipt.answer, queries)
        if self._send is None:
            drawn = self._draw(queries, receipt, place)
        else:  # where the data is: what it sends must be what was planned here
            version = None if self._steps is not None else receipt.data_version
            wanted = Stage(self._prepared.declared, self._stored, place, self.counted)
            drawn = self._send(wanted, version or "")
            read_stage(drawn, queries)
        if drawn is None:
            raise describe_failure()
        self._stored[place] = self._curator.account.publish(receipt, drawn)
        return read_stage(self._stored[place], queries)

    def _draw(self, queries: Sequence[Query], receipt: Receipt, place: int) -> bytes | None:
        """One draw of noise, ready to be stored; whatever fails may fail because of one row."""
        engine = self._curator.engine
        with suppress(Exception):
            if self._truth is None:
                self._truth = engine.run_codes(self._prepared.compiled)
            drawn = release_codes(
                self._truth,
                lambda codes: add_noise(self._prepared, codes, queries, place, self.counted),
            )
            if self._steps is not None or engine.data_version() == receipt.data_version:
                return drawn
        return None

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
    prepared = prepare_release(declared, engine, engine.schema, "")
    measurer = _Again(prepared, stage)
    with suppress(_Reached):
        make_product(declared, prepared.levels, prepared.spend, measurer)
    queries = measurer.wanted
    place, counted = stage.place, stage.counted
    _check_price(prepared, prepared.stages[place], queries)
    truth = engine.run_codes(prepared.compiled)
    drawn = release_codes(truth, lambda codes: add_noise(prepared, codes, queries, place, counted))
    if version and engine.data_version() != version:
        raise describe_failure()
    return drawn


def _check_price(prepared: Prepared, stage: Outline, queries: Sequence[Query]) -> None:
    """Nothing is drawn for more than was charged, wherever it was planned."""
    if prepared.declared.steps_per_unit is not None:  # the noise of all steps, for all they cost
        whole = prepared.spend.loss
        cheap = all(isinstance(one, Running) and one.noise.loss == whole for one in queries)
    else:
        cheap = loss_of(queries).rounded() <= stage.spend.loss.rounded()
    if not cheap:
        raise TypeError(f"stage {stage.name!r} would cost more than it was charged for")


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


def add_noise(
    prepared: Prepared,
    codes: Sequence[Any],
    queries: Sequence[Query],
    place: int,
    counted: Counted | None,
) -> bytes:
    """One stage from the codes of rows, with its noise, ready to be stored."""
    columns, levels, declared = prepared.columns, prepared.coded, prepared.declared
    if declared.steps_per_unit is not None:
        (query,) = queries
        if counted is None or not isinstance(query, Running):
            raise TypeError("a counter draws one step at a time, and keeps what it counted")
        return write_stage(counted.draw(query, codes, [one.size for one in levels], place + 1))
    if declared.tree:
        codes = [find_leaves(declared.tree, declared.by, levels, codes)]
    elif len(columns) < len(codes):  # the path of a hierarchy is one column
        path = np.zeros(len(codes[0]), dtype=np.int64)
        for one, level in zip(codes, levels, strict=True):
            path = path * level.size + one
        codes = [path]
    return write_stage(Records(columns, np.stack(codes, axis=1)).measure(queries))


__all__ = ["Draw", "Drawing", "Stage", "draw_stage"]
