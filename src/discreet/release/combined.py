"""Answers combined: what a statement computes from the answers of its questions.

The answers were released and stored one by one; what is computed from them here is a function of
released numbers, in a connection that has nothing else.  A number that is one of theirs as it
was, or that number times and plus constants, keeps its margin; for others none is claimed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, TypeVar

from discreet.accounting.loss import NOTHING, Loss
from discreet.exact.numbers import Exact
from discreet.exact.records import dataclass
from discreet.price import Priced
from discreet.price.margins import MarginKind
from discreet.question.expressions import ColumnRef
from discreet.question.statement import Carried, Statement
from discreet.release.amounts import exact_loss_json, loss_json
from discreet.release.answer import Answer, Row, Stated
from discreet.release.derived import Derived
from discreet.release.explanation import Explanation, shorten
from discreet.release.notes import (
    VALUE,
    MarginUnit,
    find_version,
    name_neighbours,
    notes,
    owner,
)
from discreet.release.render import margin_words

_ENDS = (
    "DP_INTERVAL_LOW and DP_INTERVAL_HIGH are the ends of a number's interval at {:.4g} % "
    "confidence, each number for itself; NULL where no end is known."
)
_COMPUTED = "computed from several released numbers, or from none."


@dataclass(frozen=True, slots=True, eq=False)
class Combined(Answer):
    """What a statement answers: computed from ``parts``, the answers of its questions.

    It shows itself as an answer does; ``loss`` is what all its parts cost together.  The fields
    that an answer to one question has (``priced``, ``groups``, ``released``) are its first part's.
    """

    statement: Statement = field(kw_only=True)
    parts: tuple[Answer, ...] = field(kw_only=True)
    names: tuple[str, ...] = field(kw_only=True)
    table: tuple[tuple[Any, ...], ...] = field(kw_only=True)
    places: tuple[tuple[int | None, ...], ...] = field(kw_only=True)
    """For each row, the rows of the answers that it is from: see :class:`Trace`."""

    @classmethod
    def of(
        cls,
        statement: Statement,
        parts: Sequence[Answer],
        names: tuple[str, ...],
        table: tuple[tuple[Any, ...], ...],
        places: tuple[tuple[int | None, ...], ...],
        *,
        nothing: Priced | None = None,
        said: tuple[str, ...] = (),
    ) -> Combined:
        """The answer of ``statement`` with these rows; of no question, with ``nothing`` priced.

        ``said`` is what there is to say of what is read beside the answers.
        """
        first = parts[0] if nothing is None else Answer(nothing, (), ())
        return cls(
            first.priced,
            first.groups,
            first.released,
            replayed=all(part.replayed for part in parts),
            said=said,
            statement=statement,
            parts=tuple(parts),
            names=names,
            table=table,
            places=places,
        )

    def __post_init__(self) -> None:
        rows = tuple(Row(number, values) for number, values in enumerate(self.table))
        object.__setattr__(self, "_rows", rows)

    def pay_also(self, numbers: Collection[int]) -> Combined:
        """The same, where the answers of these ``numbers`` were paid for by the same ask."""
        parts = tuple(replace(p, replayed=False) if p.id in numbers else p for p in self.parts)
        return replace(self, parts=parts, replayed=all(part.replayed for part in parts))

    @property
    def text(self) -> str:
        """The statement as it was asked."""
        return self.statement.text

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return self.names

    @property
    def loss(self) -> Loss:
        """What the answers it is computed from cost one unit, together."""
        return _add_up(self.parts)

    @property
    def charged(self) -> Loss:
        """What was paid for it this time: the answers that were stored before are free."""
        return _add_up([part for part in self.parts if not part.replayed])

    @property
    def notes(self) -> tuple[str, ...]:
        """What the margins do not tell, in words, of each question."""
        said: list[str] = []
        for number, part in enumerate(self.parts, 1):
            prefix = f"question {number}: " if len(self.parts) > 1 else ""
            said += [f"{prefix}{note}" for note in part.notes]
        trace = self.statement.trace
        certain = trace.certain if trace is not None and trace.certain else _nothing(self.names)
        computed = [
            name
            for name, origins, sure in zip(self.names, self._carried, certain, strict=True)
            if not origins and not sure and any(map(_is_number, self.column(name)))
        ]
        said += self.said
        if self.statement.ends:
            said.append(_ENDS.format(float(100 * self.statement.confidence)))
        if computed and self.parts:
            said.append(f"no margin is known for {', '.join(computed)}: {_COMPUTED}")
        return tuple(said)

    @property
    def certificate(self) -> dict[str, Any]:
        """What was promised for each question, and the SQL that reads their answers."""
        return {
            "version": find_version(),
            "statement": self.text,
            "sql": self.statement.sql,
            "public_tables": list(self.statement.tables),
            "questions": [
                {
                    "answer": None if part.id is None else str(part.id),
                    "question": part.text,
                    "replayed": part.replayed,
                    "certificate": part.certificate,
                }
                for part in self.parts
            ],
            "loss": exact_loss_json(self.loss.rounded()),
        }

    def origin(self, column: int) -> dict[str, Any]:
        """Whether a column is a key or a value, and of which aggregate."""
        origins = [
            self.parts[c.question].origin(self.parts[c.question].columns.index(c.column))
            for c in self._carried[column]
        ]
        same = origins and all(origin == origins[0] for origin in origins)
        plain = same and origins[0]["aggregate"] != "HISTOGRAM"
        return origins[0] if plain else {"role": "value", "aggregate": None}

    def parts_json(self) -> list[dict[str, Any]]:
        """Each question with its own price."""
        return [
            {
                "answer": None if part.id is None else str(part.id),
                "question": part.text,
                "replayed": part.replayed,
                "price": loss_json(part.loss),
            }
            for part in self.parts
        ]

    # --- margins -------------------------------------------------------------------------------

    @property
    def _carried(self) -> tuple[tuple[Carried, ...], ...]:
        trace = self.statement.trace
        return ((),) * len(self.names) if trace is None else trace.carried

    def accuracy(
        self, confidence: Exact = "0.95", *, certified: bool = False, most: int | None = None
    ) -> dict[str, list[Stated]]:
        """Margins and intervals of each column; None where nothing can be said.

        A number of a question's answer has those it has there, times and plus the constants that
        it was computed with.  What is computed from several numbers has none.
        """
        known = [part.accuracy(confidence, certified=certified) for part in self.parts]
        units = [part.margin_units for part in self.parts]
        places = self.places if most is None else self.places[:most]

        def state(origins: tuple[Carried, ...], row: tuple[int | None, ...]) -> Stated:
            for origin in origins:
                place = row[origin.row]
                if place is not None:
                    stated = known[origin.question][origin.column][place]
                    return _carry(stated, origin, units[origin.question][origin.column])
            return None, None

        return {
            name: [state(origins, row) for row in places]
            for name, origins in zip(self.names, self._carried, strict=True)
        }

    @property
    def margin_kinds(self) -> dict[str, MarginKind | None]:
        """How the margins of each column are known; None where there are none."""
        kinds = [part.margin_kinds for part in self.parts]
        return {
            name: _only([kinds[c.question][c.column] for c in origins])
            for name, origins in zip(self.names, self._carried, strict=True)
        }

    @property
    def margin_units(self) -> dict[str, MarginUnit | None]:
        """What the margins of each column count: the value's own unit, ranks or rows."""
        units = [part.margin_units for part in self.parts]
        return {
            name: _only([units[c.question][c.column] for c in origins])
            for name, origins in zip(self.names, self._carried, strict=True)
        }

    def cost_words(self, write: Callable[[Loss], str] = str) -> str:
        """What was paid for its questions now, and how many there were; ``write`` writes a loss."""
        if not self.parts:
            return "free: nothing was measured"
        measured = [part for part in self.parts if not isinstance(part, Derived)]
        new = sum(not part.replayed for part in measured)
        asked = f"{len(measured)} questions" if len(measured) > 1 else "1 question"
        if len(measured) < len(self.parts):
            asked += f", totals added up ({len(self.parts) - len(measured)})"
        if not new:
            cost = "it cost" if len(measured) == 1 else "they cost"
            return f"{asked} answered before, free now; {cost} {write(self.loss)}"
        if new < len(measured):
            return f"{asked}, {new} of them new; cost {write(self.paid)}"
        return f"{asked}; cost {write(self.paid)}"

    def _footer(self) -> list[str]:
        """What it cost, question by question, and what the margins do not tell."""
        margin = "± at 95 % confidence; " if self.parts else ""
        return [f"{margin}{self.cost_words()}", *self.notes]


def _carry(stated: Stated, origin: Carried, unit: MarginUnit | None) -> Stated:
    """How far off a number is after it was multiplied and shifted; ranks and rows stay so many."""
    margin, interval = stated
    if unit != VALUE or (origin.scale == 1 and origin.shift == 0):
        return stated
    scale, shift = float(origin.scale), float(origin.shift)
    if interval is not None and not interval.nobody:
        ends = sorted((interval.low * scale + shift, interval.high * scale + shift))
        interval = replace(interval, low=ends[0], high=ends[1])
    return None if margin is None else margin * abs(scale), interval


def _nothing(names: Sequence[str]) -> tuple[bool, ...]:
    return (False,) * len(names)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


T = TypeVar("T")


def _only(found: Sequence[T | None]) -> T | None:
    """The one thing that all of them are, if they are one."""
    return found[0] if found and all(one == found[0] for one in found) else None


def _add_up(parts: Sequence[Answer]) -> Loss:
    """What answers cost together; one that is read twice, or added up, was paid for once."""
    parts = [part for part in parts if not isinstance(part, Derived)]
    once = {part.id if part.id is not None else -number: part for number, part in enumerate(parts)}
    total = NOTHING
    for part in once.values():
        total += part.loss
    return total


# --- before asking --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CombinedExplanation(Explanation):
    """A priced ``statement`` before it is asked: its questions, and the SQL around them.

    ``parts`` explain the questions, ``names`` are those of the columns.  ``priced`` is its first
    question's; ``engine_sql`` has the statement of each question, then the SQL that reads their
    answers; ``now`` is the price that is asked now, in words.
    """

    statement: Statement = field(kw_only=True)
    parts: tuple[Explanation, ...] = field(kw_only=True)
    names: tuple[str, ...] = field(kw_only=True)

    @classmethod
    def of(
        cls,
        statement: Statement,
        parts: tuple[Explanation, ...],
        names: tuple[str, ...],
        nothing: Priced | None = None,
    ) -> CombinedExplanation:
        """The explanation of ``statement`` with the columns ``names``, of those of its ``parts``.

        ``nothing`` is what is priced where no question is asked.
        """
        sql = "\n\n".join([*(part.engine_sql for part in parts), statement.sql])
        priced = parts[0].priced if nothing is None else nothing
        return cls(priced, sql, statement=statement, parts=parts, names=names)

    @property
    def text(self) -> str:
        """The statement as it was typed."""
        return self.statement.text

    @property
    def loss(self) -> Loss:
        """What all questions together would cost one unit."""
        total = NOTHING
        for part in self.parts:
            total += part.loss
        return total

    def _columns(self) -> Iterator[tuple[str, tuple[Carried, ...]]]:
        """Each column that is an aggregate, and of which questions it is one."""
        trace = self.statement.trace
        carried = ((),) * len(self.names) if trace is None else trace.carried
        for name, origins in zip(self.names, carried, strict=True):
            if origins and all(self._aggregate(origin) is not None for origin in origins):
                yield name, origins

    def _aggregate(self, origin: Carried) -> str | None:
        """The aggregate that a column of a question's answer is; None for keys and arithmetic."""
        question = self.parts[origin.question].priced.question
        output = next(o for o in question.outputs if o.name == origin.column)
        names = {aggregate.name for aggregate in question.aggregates}
        source = output.expression
        return source.name if isinstance(source, ColumnRef) and source.name in names else None

    def margins(
        self, confidence: Exact = "0.95", *, rows: int | None = None, certified: bool = False
    ) -> dict[str, float | None]:
        """The predicted margin of each column that is an aggregate: the widest, if of several.

        ``confidence``, ``rows`` and ``certified`` are those of :meth:`Explanation.margins`.
        """
        known = [part.margins(confidence, rows=rows, certified=certified) for part in self.parts]
        found: dict[str, float | None] = {}
        for name, origins in self._columns():
            margins = [self._scale(origin, known[origin.question]) for origin in origins]
            sure = [margin for margin in margins if margin is not None]
            found[name] = max(sure) if len(sure) == len(margins) else None
        return found

    def _scale(self, origin: Carried, known: Mapping[str, float | None]) -> float | None:
        """The margin of an aggregate, in the unit of the column that it is in."""
        aggregate = self._aggregate(origin) or ""
        margin, unit = known[aggregate], self.parts[origin.question].margin_units[aggregate]
        scale = abs(float(origin.scale)) if unit == VALUE else 1.0
        return None if margin is None else margin * scale

    @property
    def margin_kinds(self) -> dict[str, MarginKind | None]:
        """How the margin of each of these columns is known."""
        return {
            name: self.parts[origins[0].question].margin_kinds[self._aggregate(origins[0]) or ""]
            for name, origins in self._columns()
        }

    @property
    def margin_units(self) -> dict[str, MarginUnit]:
        """What the margin of each of these columns counts."""
        return {
            name: self.parts[origins[0].question].margin_units[self._aggregate(origins[0]) or ""]
            for name, origins in self._columns()
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """What the margins do not tell, in words, of each question."""
        said = tuple(
            f"question {number}: {note}"
            for number, part in enumerate(self.parts, 1)
            for note in notes(part.priced)
        )
        return (*said, *self._tell_first())

    def _tell_first(self) -> tuple[str, ...]:
        """Which questions stand in conditions, where NULL is before they are answered."""
        first = sorted({n + 1 for one in self.statement.first for n in one.numbers})
        if not first:
            return ()
        named = ", ".join(map(str, first))
        return (
            f"question {named} stands in a condition: asked first, its answer is a constant there. "
            "Until then NULL stands in its place, and the price is that of any constant.",
        )

    @property
    def certificate(self) -> dict[str, Any]:
        """The certificates the answers would carry."""
        return {
            "version": find_version(),
            "statement": self.text,
            "sql": self.statement.sql,
            "public_tables": list(self.statement.tables),
            "questions": [
                {"question": part.priced.question.text, "certificate": part.certificate}
                for part in self.parts
            ],
            "loss": exact_loss_json(self.loss.rounded()),
        }

    def to_json(self, confidence: Exact = "0.95") -> dict[str, Any]:
        """All it says, for programs; the same at every door.  Margins are at ``confidence``."""
        known, words = self.margins(confidence), margin_words(self, confidence)
        kinds, units = self.margin_kinds, self.margin_units
        return {
            "question": self.text,
            "price": loss_json(self.loss),
            "confidence": str(confidence),
            "columns": [
                {
                    "name": name,
                    "role": "value",
                    "aggregate": None,
                    "kind": None,
                    "mechanism": None,
                    "margin": known.get(name),
                    "margin_kind": kinds.get(name),
                    "margin_unit": units.get(name),
                    "margin_text": words.get(name),
                }
                for name in self.names
            ],
            "groups": [],
            "unit": owner(self.priced),
            "neighbours": name_neighbours(self.priced),
            "notes": list(self.notes),
            "certificate": self.certificate,
            "engine_sql": self.engine_sql,
            "text": str(self),
            "parts": [part.to_json(confidence) for part in self.parts],
        }

    def __str__(self) -> str:
        lines = []
        for number, part in enumerate(self.parts, 1):
            lines += [f"question {number}: {part.priced.question.text}", str(part), ""]
        return "\n".join(
            [
                *lines,
                *(f"note: {note}" for note in self._tell_first()),
                "around them, computed from their answers, free:",
                *shorten(self.statement.sql),
                "",
                *self.cost_lines(),
            ]
        )
