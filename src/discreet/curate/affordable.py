"""What the account could still pay, told beside the refusal of what it cannot."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from fractions import Fraction

from discreet.errors import BudgetRefusal, Refusal
from discreet.question.offer import Offer
from discreet.release.explanation import Explanation
from discreet.release.notes import VALUE, MarginUnit

_DELTAS = tuple(Fraction(1, 10**digits) for digits in range(9, 31))
"""Failure masses to offer, the largest first."""


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
) -> BudgetRefusal:
    """A refused accuracy is told with the one that the epsilon or rho that is ``left`` would buy.

    ``explain`` says what the question would be at another offer than ``spend``.
    """
    words = _describe_possible(spend, left, explain)
    fix = f"{refusal.fix} {words}" if words else refusal.fix
    return BudgetRefusal(refusal.code, refusal.what, why=refusal.why, fix=fix)


def _describe_possible(
    spend: Offer,
    left: tuple[Fraction | None, Fraction | None],
    explain: Callable[[Offer], Explanation],
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
    if not offers:
        return ""
    name, margins = min(
        offers, key=lambda offer: max((m for m in offer[1].values() if m), default=0.0)
    )
    told = ", ".join(
        f"'{column}' within ±{m:,.6g}{'' if units[column] == VALUE else f' {units[column]}'}"
        for column, m in margins.items()
        if m
    )
    return f"With all that is left ({name}) you would get {told}."


def _shorten(amount: Fraction | None) -> str:
    return "0" if amount is None else f"{float(amount):.4g}"
