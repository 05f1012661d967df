"""What the account could still pay, told beside the refusal of what it cannot."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import replace
from fractions import Fraction

from discreet.errors import BudgetRefusal, Refusal
from discreet.exact.search import least_integer
from discreet.question.offer import Offer
from discreet.release.explanation import Explanation
from discreet.release.notes import VALUE, MarginUnit

_DELTAS = tuple(Fraction(1, 10**digits) for digits in range(9, 31))
"""Failure masses to offer, the largest first."""

_NEARER = 4
"""So many times nearer, at most, it is looked for what is known and what is left give together."""


def name_affordable_delta(refusal: Refusal, left: Fraction) -> Refusal:
    """A refusal that asks for a delta names one that what is ``left`` could pay several times."""
    amount = next((d for d in _DELTAS if 4 * d <= left), None)
    told = copy(refusal)
    if amount is None:
        told.offer = {}
        told.fix = (
            "group by a column with declared values: this account has no delta to spend on "
            "single answers (its budget, and what is left of it, decide that)."
        )
    else:
        text = f"1e-{len(str(amount.denominator)) - 1}"
        told.fix = refusal.fix.replace(refusal.offer["delta"], text)
        told.offer = {**refusal.offer, "delta": text}
    return told


def name_affordable_accuracy(
    refusal: BudgetRefusal,
    spend: Offer,
    left: tuple[Fraction | None, Fraction | None],
    explain: Callable[[Offer], Explanation],
    known: Mapping[str, float],
    would_pay: Callable[[Offer], bool],
) -> BudgetRefusal:
    """A refused accuracy is told with the one that the epsilon or rho that is ``left`` would buy.

    ``explain`` says what the question would be at another offer than ``spend``, ``known`` how near
    its numbers are known, free, ``would_pay`` whether the account would pay an offer, which may
    improve what is known.
    """
    words = _describe_possible(spend, left, explain, known, would_pay)
    fix = f"{refusal.fix} {words}" if words else refusal.fix
    return BudgetRefusal(refusal.code, refusal.what, why=refusal.why, fix=fix)


def _describe_possible(
    spend: Offer,
    left: tuple[Fraction | None, Fraction | None],
    explain: Callable[[Offer], Explanation],
    known: Mapping[str, float],
    would_pay: Callable[[Offer], bool],
) -> str:
    epsilon, rho = left
    offers = []
    units: dict[str, MarginUnit] = {}
    for name, offer in (
        (f"epsilon = {_shorten(epsilon)}", Offer(epsilon=epsilon, delta=spend.delta)),
        (f"rho = {_shorten(rho)}", Offer(rho=rho, delta=spend.delta)),
    ):
        if offer.epsilon or offer.rho:
            with suppress(Refusal):
                explained = explain(offer)
                offers.append((name, explained.margins(spend.confidence)))
                units = explained.margin_units
    name, margins = min(
        offers,
        key=lambda offer: max((m for m in offer[1].values() if m), default=0.0),
        default=("", {}),
    )
    bought = {column: m for column, m in margins.items() if m}
    if len(known) == 1 and bought.keys() <= known.keys():
        ((column, near),) = known.items()
        least = _find_least(spend, min(near, bought.get(column, near)), would_pay)
        if least is not None and least < near:
            name, bought = f"within = {least:g}, which improves what is known", {column: least}
    if known and all(known.get(column, math.inf) <= m for column, m in bought.items()):
        told = _list_margins(known, units)
        return f"Free, from what is known already, is {told}."
    if not bought:
        return ""
    return f"With all that is left ({name}) you would get {_list_margins(bought, units)}."


def _find_least(spend: Offer, most: float, would_pay: Callable[[Offer], bool]) -> float | None:
    """The least margin of two digits below ``most``, and not far below, that would be paid."""
    first = math.floor(math.log10(most / _NEARER))
    tried = sorted(
        margin
        for digits in range(10, 100)
        for power in range(first - 1, first + 2)
        if most / _NEARER <= (margin := digits * Fraction(10) ** power) < most
    )

    def holds(place: int) -> bool:
        return would_pay(replace(spend, within=(("", tried[place]),)))

    if not tried or not holds(len(tried) - 1):
        return None
    return float(tried[least_integer(holds, holds_at=len(tried) - 1)])


def _list_margins(margins: Mapping[str, float], units: Mapping[str, MarginUnit]) -> str:
    return ", ".join(
        f"'{column}' within ±{m:,.6g}"
        + ("" if units.get(column, VALUE) == VALUE else f" {units[column]}")
        for column, m in margins.items()
    )


def _shorten(amount: Fraction | None) -> str:
    return "0" if amount is None else f"{float(amount):.4g}"
