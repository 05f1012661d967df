"""What bounding removed: bought once for a version of the data, and told beside later answers.

A unit's rows beyond ``max_rows_per_unit`` are not read, and values beyond their bounds are moved.
No margin tells of either, and to look costs: it is measured like anything else, with noise, for a
charge of its own, on a schema that cuts later and does not clip.  One unit moves the number of
units with too many rows by one, the rows cut by at most a public cap, and the clipped ones among
the kept rows by at most its kept rows.  Questions never pay a part of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.curate.steps import CURATOR
from discreet.engine.opening import open_engine
from discreet.engine.protocol import Engine
from discreet.errors import SchemaRefusal
from discreet.exact.numbers import Exact, fraction
from discreet.exact.records import dataclass
from discreet.ledger.charges import Request, Stored
from discreet.price import Priced, price
from discreet.price.calibration import find_lumpings
from discreet.price.plan import Histogram, Moments, Scaled
from discreet.question.functions import references
from discreet.question.offer import Offer
from discreet.question.relation import Source
from discreet.question.schema import Column, Owners, Schema, Table
from discreet.question.sql import parse
from discreet.release.answer import Answer
from discreet.release.record import read_released, replay_key

if TYPE_CHECKING:
    from discreet.curate.curator import Curator

TIMES = 10
"""Rows cut are counted up to so many times as many as are kept, for each unit."""
_OPENING = "BOUNDING OF "


@dataclass(frozen=True, slots=True)
class Look:
    """One measurement of what bounding removes from a table: a question, on another schema."""

    name: str  # as transcripts show it
    schema: Schema
    sql: str
    columns: tuple[str, ...] = ()  # those whose clipped values are counted


def list_looks(schema: Schema, table: Table) -> Iterator[Look]:
    """What there is to be measured of a private table."""
    if table.owners is not Owners.ONE:  # what is removed is not counted by one column of its owner
        return
    most, unit = table.max_rows_per_unit, table.unit
    if unit is not None and most is not None and not table.by_row:
        owner = ", ".join(_quote(name) for name in unit)
        yield Look(
            f"{_OPENING}{table.name}: ROWS",
            _widen(schema, replace(table, max_rows_per_unit=TIMES * most)),
            f"SELECT COUNT(*) FILTER (WHERE n > {most}) / COUNT(*) AS above, "  # noqa: S608
            f"SUM(GREATEST(n, {most}) - {most}) / SUM(n) AS cut "
            f"FROM (SELECT {owner}, COUNT(*) AS n FROM {_quote(table.name)} GROUP BY {owner}) AS u",
        )
    bounded = [column for column in table.columns if _is_clipped(table, column)]
    if bounded:
        open_columns = tuple(
            replace(c, low=None, high=None, nullable=True, grid=None) if c in bounded else c
            for c in table.columns
        )
        shares = ", ".join(
            f"COUNT(*) FILTER (WHERE {_quote(c.name)} < {c.low} OR {_quote(c.name)} > {c.high})"
            f" / COUNT(*) AS c{index}"
            for index, c in enumerate(bounded)
        )
        yield Look(
            f"{_OPENING}{table.name}: VALUES",
            _widen(schema, replace(table, columns=open_columns)),
            f"SELECT {shares} FROM {_quote(table.name)}",  # noqa: S608
            tuple(c.name for c in bounded),
        )


def _is_clipped(table: Table, column: Column) -> bool:
    own = column.name in (*(table.unit or ()), *table.blocks)
    return column.kind.is_number and column.low is not None and not own


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _widen(schema: Schema, table: Table) -> Schema:
    """The schema with one private table, declared more widely, and the public ones.

    Without budgets of people: the account has them, and charges what is looked at there.
    """
    public = {name: t for name, t in schema.tables.items() if t.public}
    return replace(schema, tables={**public, table.name: table}, entities={})


class Bounding:
    """The looks at what bounding removed that a curator has bought, and their words."""

    def __init__(self, curator: Curator, sources: Mapping[str, Any], **engine: Any) -> None:
        self._curator = curator
        self._sources = dict(sources)
        self._engine = engine
        self._known: dict[str, dict[str, list[tuple[Look, Answer]]]] = {}  # version, then table
        self.nothing_for: str | None = None  # the version of which no look is known

    def buy(self, tables: tuple[str, ...], epsilon: Exact) -> tuple[str, ...]:
        """Measure what bounding removes from each table, for ``epsilon`` each; what it says.

        The same look at the same version of the data is paid for once.
        """
        offered = fraction(epsilon, name="epsilon")
        schema = self._curator.schema
        private = [name for name, table in schema.tables.items() if not table.public]
        for name in tables:
            if name not in private:
                raise SchemaRefusal(
                    "S6",
                    f"there is no private table {name!r} whose bounding could be measured.",
                    why="only what belongs to people is bounded.",
                    fix=f"name one of {', '.join(private)}.",
                )
        for name in tables:
            looks = list(list_looks(schema, schema.tables[name]))
            for look in looks:
                self._look(look, Offer.of(epsilon=offered / len(looks)))
        self._known.clear()
        self.nothing_for = None
        version = self._curator.engine.data_version()
        return tuple(note for name in tables for note in self._say(version, name, None))

    def _open(self, look: Look) -> Engine[Any]:
        needed = {n: s for n, s in self._sources.items() if n in look.schema.tables}
        return open_engine(needed, look.schema, **self._engine)

    def _price(self, engine: Engine[Any], look: Look, spend: Offer) -> Priced:
        question = parse(look.sql, engine.catalogue)
        return price(replace(question, text=look.name), spend, engine.catalogue)

    def _make_request(self, priced: Priced, look: Look, spend: Offer) -> Request:
        return Request(
            analyst=CURATOR,
            question=look.name,
            spend=spend.to_json(),
            key=replay_key(priced),
            data_version=self._curator.engine.data_version(),
            formerly=self._curator.engine.former_version(),
            loss=priced.loss,
            area=self._curator.everyone,
            entities=self._curator.list_entities([priced.plan.source]),
        )

    def _look(self, look: Look, spend: Offer) -> None:
        """Charge, run, publish: as for any question."""
        from discreet.curate.curator import compute
        from discreet.curate.steps import Paid

        with self._open(look) as engine:
            priced = self._price(engine, look, spend)
            # What cannot be run is not paid for.
            compiled = engine.compile(priced.plan, find_lumpings(priced))
            request = self._make_request(priced, look, spend)
            receipt = self._curator.account.charge(request)
            if isinstance(receipt, Stored):
                return
            paid = Paid(priced, compiled, receipt, request.data_version)
            try:
                found = compute(engine, compiled, priced, engine.data_version())
            except Exception:
                self._curator.burn(paid)
                raise
            self._curator.account.publish(receipt, found)

    # --- in words -----------------------------------------------------------------------------

    def notes(self, priced: Priced) -> tuple[str, ...]:
        """What bounding removed from the tables that a question reads, as far as it was bought."""
        version = self._curator.engine.data_version()
        tables = sorted({source.table.name for source in _list_sources(priced.plan.source)})
        return tuple(note for name in tables for note in self._say(version, name, priced))

    def _say(self, version: str, name: str, priced: Priced | None) -> Iterator[str]:
        table = self._curator.schema.tables[name]
        for look, answer in self._load_stored(version).get(name, []):
            intervals = {n: found[0] for n, found in answer.intervals().items()}
            if not look.columns:
                owner, most = " and ".join(table.unit or ()), table.max_rows_per_unit or 1
                yield (
                    f"{_percent(intervals['cut'])} of rows, counted up to {TIMES * most:,} per "
                    f"{owner}, are beyond {most:,} per {owner} and not read; and "
                    f"{_percent(intervals['above'])} of units have more (95 %)."
                )
            used = None if priced is None else _list_measured(priced, name)
            for index, column in enumerate(look.columns):
                if used is None or column in used:
                    yield (
                        f"{_percent(intervals[f'c{index}'])} of the rows read of {name!r} have "
                        f"{column!r} outside its bounds, clipped (95 %)."
                    )

    def _load_stored(self, version: str) -> dict[str, list[tuple[Look, Answer]]]:
        """The looks that were bought for this version, of each table; read once."""
        if version not in self._known:
            self._known = {version: self._read()}
            self.nothing_for = None if self._known[version] else version
        return self._known[version]

    def _read(self) -> dict[str, list[tuple[Look, Answer]]]:
        said = self._curator.account.transcript(CURATOR)
        bought = [entry for entry in said if entry.question.startswith(_OPENING) and entry.loss]
        found: dict[str, list[tuple[Look, Answer]]] = {}
        for name, table in self._curator.schema.tables.items() if bought else ():
            for look in () if table.public else list_looks(self._curator.schema, table):
                spends = [entry.spend for entry in bought[::-1] if entry.question == look.name]
                answers = (self._recall(look, spend) for spend in spends)
                newest = next((answer for answer in answers if answer is not None), None)
                if newest is not None:
                    found.setdefault(name, []).append((look, newest))
        return found

    def _recall(self, look: Look, spend: Mapping[str, Any]) -> Answer | None:
        """The stored answer of a look, if it is of the data as they are now; charges nothing."""
        offer = Offer.of(epsilon=spend["epsilon"])
        with self._open(look) as engine:
            priced = self._price(engine, look, offer)
            request = self._make_request(priced, look, offer)
            if self._curator.account.preview(request) != "stored":
                return None
            stored = self._curator.account.charge(request)
        if not isinstance(stored, Stored):
            raise TypeError("a stored answer is not charged")
        return Answer(priced, *read_released(stored.answer), id=stored.id, replayed=True)


def _list_sources(relation: object) -> Iterator[Source]:
    """The private tables that a relation reads."""
    if isinstance(relation, Source):
        yield relation
    for part in ("source", "left", "right"):
        inner = getattr(relation, part, None)
        if inner is not None and not isinstance(relation, Source):
            yield from _list_sources(inner)


def _list_measured(priced: Priced, table: str) -> set[str]:
    """The columns of a table of which values are added or chosen, if they are not renamed."""
    used: frozenset[str] = frozenset()
    for measurement in priced.plan.measurements:
        variables: tuple[Scaled, ...] = ()
        if isinstance(measurement, Moments):
            variables = measurement.variables
        elif isinstance(measurement, Histogram):
            variables = (measurement.variable,)
        used = used.union(*(references(v.expression) for v in variables))
    sources = [s for s in _list_sources(priced.plan.source) if s.table.name == table]
    return {column for s in sources for name, column in s.columns if name in used}


def _percent(interval: Any) -> str:
    """A share in words: about so much, or at most so much."""
    low, high = 100 * max(0.0, interval.low), 100 * min(1.0, interval.high)
    if high >= 100 and low <= 0:
        return "an unknown part"
    if low <= 0:
        return f"at most {_round_away(high, up=True)} %"
    return f"between {_round_away(low, up=False)} and {_round_away(high, up=True)} %"


def _round_away(end: float, *, up: bool) -> str:
    """An end in two digits, away from what lies between: an interval is never made smaller.

    >>> _round_away(2.349, up=False), _round_away(2.311, up=True), _round_away(100.0, up=True)
    ('2.3', '2.4', '100')
    """
    if end <= 0:
        return "0"
    digits = 1 - math.floor(math.log10(end))
    steps = Fraction(end) * Fraction(10) ** digits
    whole = math.ceil(steps) if up else math.floor(steps)
    return f"{float(whole / Fraction(10) ** digits):.3g}"


__all__ = ["Bounding", "Look", "list_looks"]
