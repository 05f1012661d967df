"""Released answers at hand: loaded once, read off, and what they tell together of a question."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.accounting.loss import NOTHING, Loss
from discreet.known.combine import Derivation, Predicted, combine, predict
from discreet.known.derive import Multiplicity, NotKnown, derive, list_groups, same_text
from discreet.known.released import Released
from discreet.mechanisms.clipping import ClippedSums
from discreet.price import Counts, Linear, Priced, Ratio, Selection
from discreet.price.margins import entry_margin, number_margin
from discreet.price.summed import Summed
from discreet.release.answer import Answer
from discreet.release.derived import Derived
from discreet.release.record import read_paid, split_batch

if TYPE_CHECKING:
    from discreet.ledger import Account

_KNOWN_LESS = "is not a sum over the rows that it measured"
"""Why an answer tells nothing of what is asked that is of another kind altogether."""
MOST_LOADED = 512
"""How many answers are kept as they were read."""


ALIKE = 1e-3
"""Variances that differ by no more are the same: weights are rounded, and prices too."""


class Shelf:
    """The released answers of one account."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self._loaded: OrderedDict[int, tuple[Released, ...]] = OrderedDict()

    def load(self, id: int) -> Released:  # noqa: A002 (the word of receipts)
        """An answer by the number of its charge."""
        (known,) = self.load_all(id)
        return known

    def load_alone(self, ids: Sequence[int]) -> Iterator[Released]:
        """Those of some answers that were paid for by themselves."""
        for number in ids:
            if len(found := self.load_all(number)) == 1:
                yield found[0]

    def load_all(self, id: int) -> tuple[Released, ...]:  # noqa: A002
        """All answers of a charge: one, or those that were released together."""
        known = self._loaded.get(id)
        if known is None:
            stored = self.account.answer(id)
            chain = self.account.find_chain(id)
            loss = sum((charged for _, charged in chain), start=NOTHING)
            known = read_answers(id, stored.answer, loss, tuple(number for number, _ in chain))
            self._loaded[id] = known
            if len(self._loaded) > MOST_LOADED:
                self._loaded.popitem(last=False)
        return known

    def derive_all(
        self, new: Priced, ids: Sequence[int], *, multiplicity: Multiplicity
    ) -> tuple[list[Derivation], list[tuple[int, str]]]:
        """What each answer tells of ``new``, and of those that tell nothing, why."""
        found: list[Derivation] = []
        refused: list[tuple[int, str]] = []
        for number in ids:
            told, reasons = [], []
            for released in self.load_all(number):
                try:
                    told.append(derive(new, released, multiplicity=multiplicity))
                except NotKnown as no:
                    reasons.append((number, str(no)))
            found += told
            # Of those that were released together one of the kind that is asked for says more.
            refused += [] if told else [max(reasons, key=lambda one: _KNOWN_LESS not in one[1])]
        return found, refused

    def tell(
        self,
        new: Priced,
        ids: Sequence[int],
        *,
        multiplicity: Multiplicity,
        payment: Loss = NOTHING,
        nearest: bool = False,
        said: tuple[str, ...] = (),
    ) -> Derived | None:
        """The answer to ``new`` that these answers give together; None if they give none.

        ``nearest``: with the least margin, where nobody counts what a price would have bought.
        ``said`` is what is known of the data besides.
        """
        found, _ = self.derive_all(new, ids, multiplicity=multiplicity)
        if not found:
            return None
        groups = list_groups(new, multiplicity)
        return combine(new, found, groups, payment=payment, nearest=nearest, said=said)

    def predict(
        self, new: Priced, ids: Sequence[int], part: Priced, *, multiplicity: Multiplicity
    ) -> Predicted | None:
        """How good ``new`` will be from these answers and ``part``, which is still to be bought."""
        if not part.plan.public_keys:
            return None
        bought = Released(0, part, list_groups(part, multiplicity), (), NOTHING)
        found, _ = self.derive_all(new, ids, multiplicity=multiplicity)
        try:
            return predict(new, *found, derive(new, bought, multiplicity=multiplicity))
        except NotKnown:
            return None

    def recall(self, new: Priced, ids: Sequence[int]) -> Answer | None:
        """The best of these answers that measured exactly the same, as it was released."""
        wanted = same_text((new.plan, new.recipes))
        for number in ids:
            for known in self.load_all(number):
                if same_text((known.priced.plan, known.priced.recipes)) == wanted:
                    priced = replace(known.priced, question=new.question)
                    return Answer(priced, known.groups, known.parts, id=number, replayed=True)
        return None


def read_answers(
    id: int,  # noqa: A002
    stored: bytes,
    loss: Loss,
    chain: tuple[int, ...],
) -> tuple[Released, ...]:
    """What is stored under one charge, as it may be used again.

    Answers that were released together have noise of their own each, and what was charged for all
    of them is behind every one: docs/proofs/known.md, Lemma 15.
    """
    found = map(read_paid, split_batch(stored))
    return tuple(Released(id, priced, *drawn, loss, chain) for priced, drawn in found)


def is_as_good(known: Derived | Predicted, direct: Priced) -> bool:
    """Whether the noise of every known number is at most that of a direct measurement."""
    for index, recipe in enumerate(direct.recipes):
        bought = direct.mechanisms[recipe.measurement]
        read = known.priced.recipes[index]
        worst = known.priced.mechanisms[read.measurement]
        if isinstance(bought, Selection | ClippedSums) or not isinstance(worst, Summed):
            return False
        mine, theirs = worst.variance, float(getattr(bought, "variance", 0.0))
        if isinstance(recipe, Linear) and isinstance(read, Linear):
            mine = worst.combine(read.coefficients).variance
            theirs *= sum(float(c) ** 2 for c in recipe.coefficients)
        elif isinstance(recipe, Ratio) and isinstance(read, Ratio):
            mine /= float(read.moments.weight) ** 2
            theirs /= float(recipe.moments.weight) ** 2
        if mine > theirs * (1 + ALIKE):
            return False
    return True


def find_margins(known: Derived | Predicted, beta: Fraction) -> list[float | None]:
    """The largest margin of each aggregate; None where it depends on what was released."""
    return [_largest_margin(known, index, beta) for index in range(len(known.priced.recipes))]


def _largest_margin(known: Derived | Predicted, index: int, beta: Fraction) -> float | None:
    recipe = known.priced.recipes[index]
    laws = set(known.laws[recipe.measurement])
    if isinstance(recipe, Linear):
        return max(number_margin(recipe, law, beta) for law in laws)
    if isinstance(recipe, Counts):
        return float(max(entry_margin(law, beta) for law in laws))
    return None


def meets(
    known: Derived | Predicted, within: Sequence[tuple[str, Fraction]], confidence: Fraction
) -> bool:
    """Whether every number is as near as is asked; one whose margin nobody promises is not."""
    margins = find_margins(known, 1 - confidence)
    named = dict(within)
    everywhere = named.pop("", None)
    for aggregate, margin in zip(known.priced.question.aggregates, margins, strict=True):
        target = named.get(aggregate.name, everywhere)
        if target is not None and (margin is None or margin > target):
            return False
    return set(named) <= {aggregate.name for aggregate in known.priced.question.aggregates}


__all__ = ["Shelf", "find_margins", "is_as_good", "meets", "read_answers"]
