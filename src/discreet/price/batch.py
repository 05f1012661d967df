"""Several questions as one release: what they cost together, and who of them gets how much.

A person who can be counted by one of two questions only loses to one of them.  So a batch is
charged the most that one unit can lose to its questions together, as a statement is
(docs/proofs/joint.md, Lemma 6), and a spend is divided so that errors are least, or so that every
question meets the accuracy it states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from math import sqrt

from discreet.accounting.loss import NOTHING, Loss
from discreet.mechanisms import Staircase
from discreet.price.joint import (
    Meeting,
    add_losses,
    conjoin,
    describe_rows,
    disjoin,
    find_cells,
    is_by_row,
    keep_few,
    pair_sides,
    peel,
    share_out,
)
from discreet.price.plan import moves_once
from discreet.price.priced import Priced, Together, price, sum_errors
from discreet.price.within import find_cheapest
from discreet.question.catalogue import Catalogue
from discreet.question.expressions import Expression, Literal
from discreet.question.offer import Offer
from discreet.question.ownership import columns, gains_rows
from discreet.question.question import Question
from discreet.question.relation import Relation
from discreet.question.schema import Neighbours


@dataclass(frozen=True, slots=True)
class Batch:
    """Questions priced as one release: each with its noise, and what all of them cost."""

    parts: tuple[Priced, ...]
    loss: Loss
    together: Together
    """Of each question, the part of its loss that each way to be counted takes; None: of all."""


def price_batch(
    questions: Sequence[Question],
    spends: Sequence[Offer],
    catalogue: Catalogue,
    *,
    in_rho: bool = False,
) -> Batch:
    """The best noise that one spend buys for all ``questions``, or the least that meets targets.

    ``spends`` is one for all, to be divided, or one for each that states an accuracy; that is
    bought with the least rho where it is counted ``in_rho`` alone.
    """
    if spends[0].within:
        parts = tuple(
            find_cheapest(question, spend, catalogue, in_company=len(questions) > 1, in_rho=in_rho)
            for question, spend in zip(questions, spends, strict=True)
        )
        together = find_together(parts, catalogue)
        return Batch(parts, _add(parts, together), together)
    spend, count = spends[0], len(questions)
    each = replace(spend, delta=None if spend.delta is None else spend.delta / count)
    whole = tuple(price(q, each, catalogue, in_company=count > 1) for q in questions)
    parts = _divide(questions, each, whole, find_together(whole, catalogue), catalogue)
    together = find_together(parts, catalogue)
    if together != find_together(whole, catalogue):  # other noise, and so other rows, for less
        together = None
        parts = _divide(questions, each, whole, None, catalogue)
    return Batch(parts, _add(parts, together), together)


def _divide(
    questions: Sequence[Question],
    spend: Offer,
    whole: Sequence[Priced],
    together: Together,
    catalogue: Catalogue,
) -> tuple[Priced, ...]:
    """Each question at its share of the spend, so that the squared errors are least."""
    count = len(questions)
    pure = spend.rho is None
    amount = float(spend.epsilon or spend.rho or 1)
    sizes = [
        sqrt(sum_errors(part)) * amount if pure else sqrt(sum_errors(part) * amount)
        for part in whole
    ]
    ways = together or ((Fraction(1),) * count,)
    shares = share_out(sizes, ways, pure=pure) if count > 1 else [Fraction(1)]
    return tuple(
        price(question, _take(spend, share), catalogue, in_company=count > 1)
        for question, share in zip(questions, shares, strict=True)
    )


def _take(spend: Offer, share: Fraction) -> Offer:
    return replace(
        spend,
        epsilon=None if spend.epsilon is None else share * spend.epsilon,
        rho=None if spend.rho is None else share * spend.rho,
    )


def _add(parts: Sequence[Priced], together: Together) -> Loss:
    losses = [part.loss for part in parts]
    return sum(losses, start=NOTHING) if together is None else add_losses(losses, together)


def find_together(parts: Sequence[Priced], catalogue: Catalogue) -> Together:
    """The ways in which one unit can be counted by several questions; None if by all at once."""
    base = next((found for part in parts if (found := _find_base(part)) is not None), None)
    if base is None or len(parts) < 2:
        return None
    conditions = [
        _describe(part) if _find_base(part) == base else Literal(value=True) for part in parts
    ]
    cells = find_cells(conditions, columns(base, catalogue.multiplicity), frozenset())
    if cells is None:
        return None
    sets = keep_few(reduce(set.union, cells.values()))
    if sets is None:
        return None
    covered = reduce(int.__or__, sets, 0)
    sets |= {1 << index for index in range(len(parts)) if not covered >> index & 1}
    if any(part.neighbours is Neighbours.CHANGE_ONE for part in parts):
        return pair_sides(sets, list(map(_is_taken_whole, parts)), len(parts))
    if (1 << len(parts)) - 1 in sets:
        return None
    ways: list[Meeting] = [
        tuple(Fraction(some >> index & 1) for index in range(len(parts))) for some in sorted(sets)
    ]
    return tuple(ways)


def _find_base(part: Priced) -> Relation | None:
    """The relation whose rows are counted, if each of them takes its own part of the loss."""
    bound = part.plan.contribution
    whole = bound.rows is not None and bound.enforced
    if not whole or part.threshold is not None:
        return None
    if part.neighbours is Neighbours.CHANGE_ONE and (
        gains_rows(part.plan.source) or (part.together is not None and part.reach.rows > 1)
    ):
        return None  # not a mean over rows that go and come (Lemma 8)
    if not all(is_by_row(measurement, part.reach) for measurement in part.plan.measurements):
        return None
    return peel(part.plan.source)[0]


def _is_taken_whole(part: Priced) -> bool:
    """Whether who is counted on one side of a change alone may lose all of a question's price.

    Lemmas 4 and 5: by one number that is priced at its range, by noise in steps, and by what was
    priced for a change as a whole.
    """
    grouped = bool(part.plan.keys)
    return (
        part.together is not None
        or any(isinstance(mechanism, Staircase) for mechanism in part.mechanisms)
        or any(moves_once(m, grouped=grouped) for m in part.plan.measurements)
    )


def _describe(part: Priced) -> Expression:
    """A condition that every row which the question counts meets."""
    _, where = peel(part.plan.source)
    return conjoin((*where, disjoin(describe_rows(m) for m in part.plan.measurements)))


__all__ = ["Batch", "price_batch"]
