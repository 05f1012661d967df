"""ROLLUP, CUBE and GROUPING SETS: what is measured of them, and what is added up from that.

Where rows are counted or summed and all groups are public, only the finest table is measured, with
the whole offer; every total is the sum of its groups, so that all of them agree, and has the margin
of that sum (docs/proofs/known.md, Lemma 1).  Of k tables of which the finest has n groups, this
errs by k n where k measurements at a k-th of the price err by more than k**2 n, in squares.  What
is not a sum (people, quantiles, private groups) is measured table by table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod

from discreet.accounting.loss import INFINITY, NOTHING, Loss
from discreet.exact.numbers import round_down
from discreet.known.combine import Derivation, Predicted, combine, predict
from discreet.known.derive import Multiplicity, NotKnown, derive, list_groups
from discreet.known.released import Released
from discreet.known.shelf import find_margins
from discreet.price import Priced
from discreet.question.offer import Offer
from discreet.question.statement import Statement
from discreet.release.answer import Answer
from discreet.release.derived import Derived

MOST_ADDED = 200_000
"""How many groups are added up, over all totals of a statement: pricing is free, so it is quick."""
TRIES = 12
"""How often the margin of the finest table is made narrower for its totals' sake."""


@dataclass(frozen=True, slots=True)
class Total:
    """A question of a statement that is added up from the groups of a finer one, by number."""

    question: int
    finer: int
    target: Priced
    predicted: Predicted


def find_finer(statement: Statement) -> dict[int, int]:
    """The questions that may be added up from another, and from which."""
    return {
        number: finer
        for levels in statement.levels
        for number, finer in zip(levels.questions, levels.finer, strict=True)
        if finer is not None
    }


def count_added(statement: Statement, finer: Mapping[int, int]) -> int:
    """How many groups would be added up, at most."""
    cells = [
        prod(len(key.values or ()) for key in statement.questions[number].keys)
        for number in finer.values()
    ]
    return sum(cells)


def predict_total(
    question: int, finer: int, target: Priced, source: Priced, multiplicity: Multiplicity
) -> Total | None:
    """The total as it will be, if the groups of ``source`` tell it; public knowledge only."""
    groups = list_groups(source, multiplicity) if source.plan.public_keys else ()
    try:
        found = _derive(target, Released(0, source, groups, (), NOTHING), multiplicity)
    except NotKnown:
        return None
    return Total(question, finer, target, predict(target, found))


def add_up(
    total: Total, answer: Answer, multiplicity: Multiplicity, *, said: tuple[str, ...] = ()
) -> Derived:
    """The total, from the answer with the finer groups: a function of what was released.

    ``said`` is what is known of the data besides.
    """
    number = 0 if answer.id is None else answer.id
    released = Released(number, answer.priced, answer.groups, answer.released, answer.loss)
    found = _derive(total.target, released, multiplicity)
    return combine(total.target, [found], list_groups(total.target, multiplicity), said=said)


def _derive(target: Priced, source: Released, multiplicity: Multiplicity) -> Derivation:
    """Each aggregate from the very numbers that the finer table shows of it: so they agree."""
    named = zip(source.priced.question.aggregates, source.priced.recipes, strict=True)
    measured = {aggregate.name: recipe.measurement for aggregate, recipe in named}
    names = [aggregate.name for aggregate in target.question.aggregates]
    if not measured.keys() >= set(names):
        raise NotKnown("it asks for something else")
    places = [measured[name] for name in names]
    return derive(target, source, multiplicity=multiplicity, places=places)


def narrow_margins(
    offers: Mapping[int, Offer], narrower: Mapping[int, Offer], totals: Iterable[Total]
) -> dict[int, Offer] | None:
    """Narrower margins for groups whose sums would miss what is offered for; None if none will do.

    ``offers`` are made for each question that is measured, ``narrower`` was tried last.
    """
    found: dict[int, Offer] = {}
    ratios: dict[int, Fraction] = {}
    for total in totals:
        ratio = _find_excess(total, offers[total.finer])
        if ratio is None:
            return None
        ratios[total.finer] = max(ratio, ratios.get(total.finer, Fraction(0)))
    for number, ratio in ratios.items():
        if ratio > 1:
            found[number] = _shrink(narrower.get(number, offers[number]), ratio)
    return found


def _find_excess(total: Total, offer: Offer) -> Fraction | None:
    """How many times wider than wanted the margins of a total are; None if nobody promises any."""
    targets = dict(offer.within)
    everywhere = targets.pop("", None)
    margins = find_margins(total.predicted, 1 - offer.confidence)
    ratio = Fraction(0)
    for aggregate, margin in zip(total.target.question.aggregates, margins, strict=True):
        target = targets.get(aggregate.name, everywhere)
        if target is not None and margin is None:
            return None
        if target is not None and margin is not None:
            ratio = max(ratio, Fraction(margin) / target)
    return ratio


def _shrink(offer: Offer, ratio: Fraction) -> Offer:
    """The offer with every margin so many times smaller, rounded down."""
    step = Fraction(1, 10**6)
    narrower = tuple((name, round_down(margin / ratio, step)) for name, margin in offer.within)
    return replace(offer, within=narrower)


def is_cheaper(one: Loss, other: Loss) -> bool:
    """Whether a loss is no larger, by its pure bound, or by its concentrated one without it."""
    if INFINITY in (one.epsilon, other.epsilon):
        return one.rho <= other.rho
    return one.epsilon <= other.epsilon


__all__ = [
    "MOST_ADDED",
    "TRIES",
    "Total",
    "add_up",
    "count_added",
    "find_finer",
    "is_cheaper",
    "narrow_margins",
    "predict_total",
]
