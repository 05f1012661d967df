"""What is left, told in SQL: Snowflake's estimate of how many aggregates may still be asked.

Told from the account alone, free.  A question here has no one price, so it is estimated with what
is offered for the estimate, or with what this analyst was usually charged.
"""

from __future__ import annotations

from fractions import Fraction
from statistics import median
from typing import TYPE_CHECKING

from discreet.accounting.loss import NOTHING, Loss
from discreet.curate.steps import CURATOR, AccountRow
from discreet.question.offer import Offer
from discreet.question.statement import ACCOUNT_COLUMNS

if TYPE_CHECKING:
    from discreet.curate.curator import Curator

UNLESS_SAID = Fraction(1, 10)
"""The epsilon of one question, where nothing is offered and nothing was charged yet."""

_LOOKED_AT = 100
"""How many of the last charges are looked at."""


def tell_remaining(curator: Curator, analyst: str, offer: Offer) -> AccountRow:
    """The row that the account tells ``analyst``, and what is to be said of it."""
    standing, own = curator.account.standing(), None if analyst == CURATOR else analyst
    balance = curator.account.balance(own)
    loss, estimated_with = _find_usual(curator, own, offer)
    cap = standing.policy.question
    allowed = cap is None or cap.admits(NOTHING, loss)
    left = balance.left()
    # A budget of rho is told in rho: there is no epsilon that it promises.
    by_rho = balance.budget.epsilon is None
    spent = balance.spent.rho if by_rho else balance.spent.epsilon
    row = (
        balance.repeats(loss) if allowed else 0,
        _float(balance.budget.rho if by_rho else balance.budget.epsilon),
        "Never",
        _float(spent),
        _float(left[1] if by_rho else left[0]),
        _float(loss.rho if by_rho else loss.epsilon),
    )
    values = {column.name: [one] for column, one in zip(ACCOUNT_COLUMNS, row, strict=True)}
    return AccountRow(values, _remark(estimated_with, by_rho, allowed))


def _find_usual(curator: Curator, analyst: str | None, offer: Offer) -> tuple[Loss, str]:
    """What one more question is taken to cost, and why."""
    if offer.epsilon is not None:
        return Loss.pure(offer.epsilon), "what was offered here"
    if offer.rho is not None:
        return Loss.concentrated(offer.rho), "what was offered here"
    entries = curator.account.transcript(analyst, limit=_LOOKED_AT)
    charged = [e.loss for e in entries if e.loss is not None and e.loss != NOTHING]
    pure = [loss.epsilon for loss in charged if isinstance(loss.epsilon, Fraction)]
    if pure:
        return Loss.pure(median(pure)), f"the middle one of the last {len(pure)} charges"
    rhos = [loss.rho for loss in charged if isinstance(loss.rho, Fraction)]
    if rhos:
        return Loss.concentrated(median(rhos)), f"the middle one of the last {len(rhos)} charges"
    return Loss.pure(UNLESS_SAID), "0.1, as nothing was charged yet"


def _remark(estimated_with: str, by_rho: bool, allowed: bool) -> tuple[str, ...]:
    unit = "rho" if by_rho else "epsilon"
    said = (
        "an estimate, free, from the account alone. A question is charged once here, however many "
        f"aggregates it has, and what is offered for it; BUDGET_PER_AGGREGATE is {estimated_with}. "
        "More may be admitted than BUDGET_LEFT / BUDGET_PER_AGGREGATE: losses add up by rho, too.",
        f"amounts are in {unit}. One budget holds for all tables; it is for all questions ever, "
        "not for a window, and is not refilled. What is left is the least that any limit leaves.",
    )
    if allowed:
        return said
    return (*said, "no one question may cost as much: none is left at this price.")


def _float(amount: Fraction | float | None) -> float | None:
    """None for what nothing bounds."""
    return float(amount) if isinstance(amount, Fraction) else None


__all__ = ["UNLESS_SAID", "tell_remaining"]
