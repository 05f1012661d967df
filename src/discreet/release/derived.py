"""Answers that were known: sums of released numbers, and released numbers combined.

Nothing is measured for them, so they cost nothing; their noise is that of all the draws that were
added up, and may differ from group to group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field, replace
from fractions import Fraction
from typing import Any

from discreet.accounting.loss import NOTHING, Loss
from discreet.exact.records import dataclass
from discreet.price.margins import MarginKind
from discreet.price.summed import Summed
from discreet.question.functions import references
from discreet.release.amounts import exact_loss_json, loss_json
from discreet.release.answer import Answer, Row, Stated
from discreet.release.notes import describe


@dataclass(frozen=True, slots=True)
class Origin:
    """A released answer that another is derived from: its number, its text, what is used of it."""

    id: int
    question: str
    loss: Loss  # of all charges that led to it
    groups: int  # how many groups of it are added up for one, at most
    weight: Fraction = Fraction(1)  # its part, where several are combined; the largest


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Derived(Answer):
    """What was known already: read off the answers ``origins``.

    ``laws`` are the noise of each measurement in each group.  ``payment`` is what was charged
    for one of the origins just now, to improve what was known; ``equivalent`` what one payment
    would have bought the same accuracy, about.  ``priced``, ``groups``, ``released``, ``id``,
    ``replayed``, ``said`` and ``behind`` are those of an :class:`Answer`.
    """

    laws: tuple[tuple[Summed, ...], ...] = field(kw_only=True)
    origins: tuple[Origin, ...] = field(kw_only=True)
    equivalent: Loss = field(kw_only=True)
    """What one payment would have bought the same accuracy, about."""
    payment: Loss = field(kw_only=True, default=NOTHING)

    @property
    def loss(self) -> Loss:
        """What the answers behind it cost one unit, together."""
        return sum((origin.loss for origin in self.origins), start=NOTHING)

    @property
    def worth(self) -> Loss:
        """What one payment would have bought the same accuracy, about."""
        return self.equivalent

    @property
    def charged(self) -> Loss:
        """What was paid this time: nothing, unless it improved what was known."""
        return self.payment

    @property
    def keeps_margins(self) -> bool:
        """Whether every number has a margin that has one where it is measured for itself."""
        columns = range(len(self.columns))
        return all(self._kind(i) is not None or Answer._kind(self, i) is None for i in columns)

    @property
    def notes(self) -> tuple[str, ...]:
        """Where the numbers are from, and what the margins do not tell."""
        return (*map(self._describe_origin, self.origins), *Answer.notes.fget(self))  # type: ignore[attr-defined]

    def _describe_origin(self, origin: Origin) -> str:
        added = f": {origin.groups} groups added up" if origin.groups > 1 else ""
        part = f", with weight {float(origin.weight):.3f}" if len(self.origins) > 1 else ""
        return f"from answer #{origin.id}{added}{part}."

    @property
    def certificate(self) -> dict[str, Any]:
        """What was promised for the answers that it is from, and how it is read off them."""
        return {
            **describe(self.priced),
            "derived": True,
            "sources": [origin_json(origin) for origin in self.origins],
            "margins": self._margins_json(),
            **self._amounts_json(),
        }

    def _margins_json(self) -> dict[str, Any]:
        """The largest margin of each column, at 95 % confidence."""
        stated = self.accuracy("0.95")
        kinds = self.margin_kinds
        found = {}
        for name, column in stated.items():
            known = [margin for margin, _ in column if margin is not None]
            if kinds[name] is not None:
                found[name] = {
                    "kind": kinds[name],
                    "counts": None,
                    "at_95_percent": max(known, default=None),
                    "certified_at_95_percent": max(known, default=None),
                }
        return found

    def parts_json(self) -> list[dict[str, Any]]:
        """The answers that it is from, each with its own price."""
        return [
            {
                "answer": str(origin.id),
                "question": origin.question,
                "replayed": True,
                "price": loss_json(origin.loss),
            }
            for origin in self.origins
        ]

    def _kind(self, index: int, *, certified: bool = False) -> MarginKind | None:
        """None also for arithmetic on sums that may share noise: its law is not known."""
        if self._aggregate(index) is None:
            used = references(self.priced.question.outputs[index].expression)
            named = zip(self.priced.question.aggregates, self.priced.recipes, strict=True)
            read = {recipe.measurement for one, recipe in named if one.name in used}
            if sum(any(law.draws for law in self.laws[place]) for place in read) > 1:
                return None
        return Answer._kind(self, index, certified=certified)

    def _column_accuracy(
        self, index: int, rows: tuple[Row, ...], beta: Fraction, *, certified: bool
    ) -> list[Stated]:
        """As of any answer, for the groups of one noise after another."""
        if self._kind(index, certified=certified) is None:
            return [(None, None)] * len(rows)
        found: dict[int, Stated] = {}
        for laws, places in self._by_noise(rows):
            noise = replace(self.priced, mechanisms=laws)
            some = tuple(rows[place] for place in places)
            stated = self._state_column(noise, index, some, beta, certified=certified)
            found |= dict(zip(places, stated, strict=True))
        return [found[place] for place in range(len(rows))]

    def _by_noise(self, rows: tuple[Row, ...]) -> Iterable[tuple[tuple[Summed, ...], list[int]]]:
        alike: dict[tuple[Summed, ...], list[int]] = {}
        for place, row in enumerate(rows):
            laws = tuple(measured[row.group] for measured in self.laws)
            alike.setdefault(laws, []).append(place)
        return alike.items()

    def cost_words(self, write: Callable[[Loss], str] = str) -> str:
        """What was paid now, and what it is read from cost in all; ``write`` writes a loss."""
        if self.payment == self.loss:  # what it was read from was bought for it, just now
            return f"cost {write(self.loss)}"
        cost = "free: known before" if self.payment == NOTHING else f"{write(self.payment)} more"
        return f"{cost}; in all {write(self.loss)}"

    def _footer(self) -> list[str]:
        return [f"± at 95 % confidence; {self.cost_words()}", *self.notes]


def origin_json(origin: Origin) -> dict[str, Any]:
    """An origin as a certificate names it."""
    return {
        "answer": str(origin.id),
        "question": origin.question,
        "groups_added": origin.groups,
        "weight": str(origin.weight),
        "loss": exact_loss_json(origin.loss.rounded()),
    }


__all__ = ["Derived", "Origin", "origin_json"]
