"""Losses, budgets and balances as JSON: exact texts, and words that round the safe way."""

from __future__ import annotations

from typing import Any

from discreet.accounting.budget import Budget, Remaining
from discreet.accounting.loss import NOTHING, Loss
from discreet.ledger import Balance
from discreet.release.notes import amount, loss_json

MOST_BLOCKS = 200
"""Blocks of a balance that are sent; the fullest first."""

FREE: dict[str, Any] = {**loss_json(NOTHING), "text": "free"}


def price(loss: Loss) -> dict[str, Any]:
    """A loss as the account charges it."""
    exact = loss.rounded()
    return {**loss_json(exact), "text": str(exact)}


def budget(promise: Budget) -> dict[str, Any]:
    """What may be lost."""
    return {
        "epsilon": None if promise.epsilon is None else amount(promise.epsilon),
        "rho": amount(promise.rho),
        "delta": str(promise.delta),
        "text": str(promise),
    }


def remaining(left: Remaining) -> dict[str, Any]:
    """What is left."""
    return {
        "epsilon": None if left.epsilon is None else str(left.epsilon),
        "rho": str(left.rho),
        "delta": str(left.delta),
        "counts": left.counts,
        "within": left.within,
        "confidence": str(left.confidence),
        "text": str(left),
    }


def gauge(name: str, promise: Budget, spent: Loss, share: float) -> dict[str, Any]:
    """One account, for a picture and in words."""
    return {
        "name": name,
        "budget": budget(promise),
        "spent": price(spent),
        "remaining": remaining(promise.remaining(spent)),
        "share": share,
    }


def balance(name: str, whole: Balance, own: Balance | None, *, limited: bool) -> dict[str, Any]:
    """What is left of a dataset and of an analyst's allocation."""
    blocks = whole.blocks(MOST_BLOCKS) if whole.space.size > 1 else ()
    return {
        "dataset": gauge(name, whole.budget, whole.spent, whole.share(whole.fullest())),
        "analyst": None if own is None else _own(own, limited=limited),
        "blocks": [gauge(block, whole.budget, spent, share) for block, spent, share in blocks],
        "text": str(whole if own is None else own),
    }


def _own(own: Balance, *, limited: bool) -> dict[str, Any]:
    name = own.analyst or ""
    if limited:
        return gauge(name, own.budget, own.spent, own.share(own.fullest()))
    return {
        "name": name,
        "budget": None,
        "spent": price(own.spent),
        "remaining": None,
        "share": own.share(own.fullest()),
    }
