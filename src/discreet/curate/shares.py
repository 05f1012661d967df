"""How one offer is divided among the questions of a statement."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from discreet.errors import QuestionRefusal
from discreet.question.offer import Offer
from discreet.question.question import Question
from discreet.question.statement import Statement

MOST_TRIED = 6
"""Of so many questions, every way to have shared the offer before is looked for."""

IsPaid = Callable[[Question, Offer], bool]
"""Whether a question was paid for before, at such an offer."""


def divide(
    statement: Statement,
    offer: Offer,
    is_paid: IsPaid | None = None,
    *,
    summed: Collection[int] = (),
) -> tuple[Offer, ...]:
    """What is offered for each question of ``statement`` but those ``summed`` from others.

    An offer that is made when asking is for all questions together.  Without one, each question
    that has an offer of its own keeps it, and the others share what the statement offers.  Those
    that were paid for before at the whole offer, as if asked alone, are free: the others share
    it evenly.  An accuracy is asked of every question.
    """
    measured = [n for n in range(len(statement.questions)) if n not in summed]
    questions = [statement.questions[number] for number in measured]
    common = offer.beside(statement.spend)
    own = [_find_own(statement, number, measured) if offer.empty else None for number in measured]
    if common.within:
        targets = _divide_targets(questions, common)
        return tuple(written or target for written, target in zip(own, targets, strict=True))
    sharing = [number for number, written in enumerate(own) if written is None]
    shares = _share([questions[number] for number in sharing], common, is_paid)
    given = dict(zip(sharing, shares, strict=True))
    offers = [
        given[number] if written is None else offer.beside(written)
        for number, written in enumerate(own)
    ]
    return tuple(offers)


def _find_own(statement: Statement, number: int, measured: Collection[int]) -> Offer | None:
    """What a question itself says; one clause of ROLLUP is for all of its questions together."""
    spend = statement.questions[number].spend
    levels = next((some for some in statement.levels if number in some.questions), None)
    if spend is None or levels is None:
        return spend
    return spend.divide(sum(one in measured for one in levels.questions))


def _share(questions: Sequence[Question], offer: Offer, is_paid: IsPaid | None) -> list[Offer]:
    count = len(questions)
    if count <= 1 or is_paid is None or offer.empty:
        return [offer.divide(max(count, 1))] * count
    whole = [is_paid(question, offer) for question in questions]
    left = count - sum(whole)
    tried = range(count, 0, -1) if count <= MOST_TRIED else (count, left or 1)
    for parts in tried:
        share = offer.divide(parts)
        found = [is_paid(question, share) for question in questions]
        if all(a or b for a, b in zip(whole, found, strict=True)):
            return [share if b else offer for b in found]  # all of it is free
    share = offer.divide(left)
    return [offer if known else share for known in whole]


def _divide_targets(questions: Sequence[Question], offer: Offer) -> list[Offer]:
    """The margins wanted of each question: one for all numbers, or by the name of an aggregate."""
    named = dict(offer.within)
    names = [{aggregate.name for aggregate in question.aggregates} for question in questions]
    unknown = sorted(set(named) - {"", *(name for known in names for name in known)})
    if unknown:
        raise QuestionRefusal(
            "Q44",
            f"there is no column '{unknown[0]}' to be accurate about.",
            why="a margin is promised for a number that is asked for.",
            fix=f"name one of: {', '.join(sorted({n for known in names for n in known}))}.",
        )
    return [
        replace(offer, within=tuple((n, m) for n, m in offer.within if not n or n in known))
        for known in names
    ]


__all__ = ["divide"]
