"""Losses and budgets as JSON: exact in quotes, null for what is infinite, and words to show.

Every door spells them alike.  ``text`` rounds the safe way: up.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from discreet.accounting.budget import Budget
from discreet.accounting.loss import INFINITY, NOTHING, Amount, Loss
from discreet.exact.balls import exp_up


def amount_json(amount: Amount | None) -> str | None:
    """An amount as an exact fraction; None is infinite, or not promised."""
    return None if amount is None or amount == INFINITY else str(amount)


def exact_loss_json(loss: Loss) -> dict[str, str | None]:
    """The coordinates of a loss."""
    return {
        "epsilon": amount_json(loss.epsilon),
        "rho": amount_json(loss.rho),
        "delta": amount_json(loss.delta),
    }


def loss_json(loss: Loss) -> dict[str, str | None]:
    """A loss as the account charges it.

    >>> [loss_json(loss)["epsilon"] for loss in (Loss.pure("0.3"), Loss.concentrated("0.2"))]
    ['3/10', None]
    """
    charged = loss.rounded()
    return {**exact_loss_json(charged), "text": str(charged)}


def group_loss_json(loss: Loss, size: int) -> dict[str, str | None] | None:
    """What a group of so many units loses, as one; None where no bound of this form is known.

    >>> group_loss_json(Loss.pure("0.5"), 4)["epsilon"]
    '2'
    """
    if not loss.delta:
        return exact_loss_json(loss.for_group(size).rounded())
    if not isinstance(loss.epsilon, Fraction) or size * loss.epsilon > _MOST_EXPONENT:
        return None
    # delta (e^(d epsilon) - 1) / (e^epsilon - 1), as the sum that it is: defined at 0 as well
    delta = loss.delta * sum(exp_up(step * loss.epsilon) for step in range(size))
    if delta >= 1:
        return None
    return exact_loss_json(Loss.approximate(size * loss.epsilon, delta).rounded())


_MOST_EXPONENT = 1000
"""Beyond, no failure mass stays below one."""

FREE = {**exact_loss_json(NOTHING), "text": "free"}


def budget_json(budget: Budget) -> dict[str, Any]:
    """What may be lost."""
    return {
        "epsilon": amount_json(budget.epsilon),
        "rho": amount_json(budget.rho),
        "delta": str(budget.delta),
        "text": str(budget),
    }


__all__ = ["FREE", "amount_json", "budget_json", "exact_loss_json", "group_loss_json", "loss_json"]
