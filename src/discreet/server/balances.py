"""Balances as JSON: what is spent and left, of a dataset, an analyst, a block."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from discreet.accounting.budget import Budget, Remaining
from discreet.accounting.loss import Loss
from discreet.ledger import Account, Balance, EntityBalance
from discreet.ledger.keys import ANALYST, Grant
from discreet.release.amounts import budget_json, loss_json

MOST_BLOCKS = 200
"""Blocks of a balance that are sent; the fullest first."""


def remaining_json(left: Remaining) -> dict[str, Any]:
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


def gauge_json(name: str, promise: Budget, spent: Loss, share: float) -> dict[str, Any]:
    """One account, for a picture and in words."""
    return {
        "name": name,
        "budget": budget_json(promise),
        "spent": loss_json(spent),
        "remaining": remaining_json(promise.remaining(spent)),
        "share": share,
    }


def balance_json(
    name: str, whole: Balance, own: Balance | None, *, limited: bool
) -> dict[str, Any]:
    """What is left of a dataset and of an analyst's allocation."""
    blocks = whole.blocks(MOST_BLOCKS) if whole.space.size > 1 else ()
    return {
        "dataset": gauge_json(name, whole.budget, whole.spent, whole.share(whole.fullest())),
        "analyst": None if own is None else _own(own, limited=limited),
        "group": None if own is None else group_json(own.group),
        "blocks": [gauge_json(block, whole.budget, spent, share) for block, spent, share in blocks],
        "entities": [_entity_json(entity) for entity in whole.entities],
        "text": str(whole if own is None else own),
    }


def find_balances(
    account: Account, grant: Grant, analyst: str | None
) -> tuple[Balance, Balance | None]:
    """The balance of the dataset and, if one is named, of an analyst, as a caller may see them."""
    # Whoever may ask here need not know which other datasets there are.
    told = _hide_datasets if grant.role == ANALYST else (lambda balance: balance)
    return told(account.balance()), None if analyst is None else told(account.balance(analyst))


def describe_balance(account: Account, grant: Grant) -> list[str]:
    """What the caller has spent, may spend and has left, in words; a curator, of the dataset."""
    analyst = grant.analyst if grant.role == ANALYST else None
    whole, own = find_balances(account, grant, analyst)
    found = whole if own is None else own
    limited = analyst is None or account.standing().limit(analyst) is not None
    may = f" and may spend {found.budget} in all" if limited else ", without a limit of their own"
    return [
        f"{analyst or 'All together'} spent {found.spent}{may}.",
        *str(found).splitlines(),
    ]


def group_json(found: Balance | None) -> dict[str, Any] | None:
    """What the analysts of a group have spent of its common limit."""
    if found is None:
        return None
    return gauge_json(found.analyst or "", found.budget, found.spent, found.share(found.fullest()))


def _hide_datasets(balance: Balance) -> Balance:
    """The same balance, with what was lost in other datasets told in one sum."""
    cap = None if balance.cap is None else _hide_datasets(balance.cap)
    entities = tuple(entity.without_names() for entity in balance.entities)
    return replace(balance, cap=cap, entities=entities)


def _entity_json(found: EntityBalance) -> dict[str, Any]:
    """What people in several datasets have lost: in all, and in each."""
    return {
        **gauge_json(found.entity, found.budget, found.spent, found.share),
        "datasets": [{"name": name, "spent": loss_json(spent)} for name, spent in found.describe()],
    }


def _own(own: Balance, *, limited: bool) -> dict[str, Any]:
    name = own.analyst or ""
    if limited:
        return gauge_json(name, own.budget, own.spent, own.share(own.fullest()))
    return {
        "name": name,
        "budget": None,
        "spent": loss_json(own.spent),
        "remaining": None,
        "share": own.share(own.fullest()),
    }
