"""Accuracy first: the cheapest spend that keeps every number within its margin.

What is cheapest depends on what is counted: of Laplace and Gaussian noise with one margin the
first has a pure loss, and the second, at usual confidences, the lesser concentrated one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from discreet.errors import InvalidParameter, QuestionRefusal
from discreet.exact.numbers import Exact
from discreet.exact.search import least_fraction
from discreet.price.margins import aggregate_margin
from discreet.price.priced import Compare, Priced, price
from discreet.question.catalogue import Catalogue
from discreet.question.offer import Offer
from discreet.question.question import Question

_LEAST, _GREATEST = Fraction(1, 2**30), Fraction(2**20)
_TOLERANCE = Fraction(1, 1000)


def find_cheapest(
    question: Question,
    spend: Offer,
    catalogue: Catalogue,
    *,
    as_before: bool = False,
    apart: bool = False,
    in_company: bool = False,
    compare: Compare = Compare.UNITS,
    in_rho: bool = False,
) -> Priced:
    """The offer of least loss whose promised margins meet ``spend.within``.

    The margin falls as the price rises, so the price is found by doubling and
    halving, to a thousandth, rounded up.  Where a delta is offered, each price
    is spent in whichever way is more accurate.

    ``in_rho``: where rho alone is counted, and the least of it is looked for; among equals, noise
    of the least epsilon, too.
    """

    def buy(asked: Offer) -> Priced:
        return price(
            question,
            replace(asked, within=()),
            catalogue,
            as_before=as_before,
            apart=apart,
            in_company=in_company,
            compare=compare,
            accuracy_first=True,
        )

    def offer_epsilon(amount: Fraction) -> Priced:
        return buy(replace(spend, epsilon=amount, rho=None))

    def offer_rho(amount: Fraction) -> Priced:
        return buy(replace(spend, epsilon=None, rho=amount))

    targets = _targets(question, spend, offer_epsilon(Fraction(1)))
    pure = _find_least(offer_epsilon, targets, spend)
    if in_rho:
        concentrated = _find_least(offer_rho, targets, spend)
        if pure is None or _costs_less(concentrated, pure):
            pure = concentrated
    if pure is None:
        raise _impossible("no price buys this accuracy")
    return pure


def _find_least(
    offer: Callable[[Fraction], Priced], targets: list[tuple[int, Fraction]], spend: Offer
) -> Priced | None:
    """What the least amount buys that meets all targets; None if no amount does."""

    def meets(amount: Fraction) -> bool:
        try:
            offered = offer(amount)
        except InvalidParameter:  # too little for any noise that can be drawn
            return False
        return all(
            promise_margin(offered, index, 1 - spend.confidence) <= target
            for index, target in targets
        )

    found = least_fraction(meets, least=_LEAST, most=_GREATEST, tolerance=_TOLERANCE)
    return None if found is None else offer(found)


def _costs_less(one: Priced | None, other: Priced) -> bool:
    """Whether it costs less rho, by more than either was searched to."""
    return one is not None and one.loss.rho < other.loss.rho * (1 - 2 * _TOLERANCE)


def promise_margin(priced: Priced, index: int, beta: Exact) -> float:
    """The margin of one aggregate that holds whatever the data are: a target is a promise.

    In rows for quantiles and most frequent values, as their margins are.
    """
    margin = aggregate_margin(priced, index, Fraction(beta), certified=True)
    if margin is None:
        raise _impossible(
            f"the error of '{priced.question.aggregates[index].name}' depends on "
            "how many units are in each group"
        )
    return margin


def _targets(question: Question, spend: Offer, sample: Priced) -> list[tuple[int, Fraction]]:
    named = dict(spend.within)
    everywhere = named.pop("", None)
    names = [aggregate.name for aggregate in question.aggregates]
    unknown = sorted(set(named) - set(names))
    if unknown:
        raise QuestionRefusal(
            "Q44",
            f"there is no column '{unknown[0]}' to be accurate about.",
            why="a margin is promised for a number that is asked for.",
            fix=f"name one of: {', '.join(names)}.",
        )
    targets = [(names.index(name), margin) for name, margin in named.items()]
    if everywhere is not None:
        targets += [(i, everywhere) for i, name in enumerate(names) if name not in named]
    for index, margin in targets:
        promise_margin(sample, index, Fraction(1, 20))
        if margin <= 0:
            raise _impossible("a margin must be greater than 0")
    return targets


def _impossible(what: str) -> QuestionRefusal:
    return QuestionRefusal(
        "Q44",
        f"this accuracy cannot be promised beforehand: {what}.",
        why="a promise made without looking at anyone's data must hold whatever the data are.",
        fix="ask within=... of a COUNT, a SUM or (in rows) a MEDIAN, or offer epsilon=... and "
        "read the margin of the answer.",
    )
