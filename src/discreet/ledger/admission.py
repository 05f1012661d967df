"""Whether a charge is admitted: who asks, and every cap at once, in whole units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.accounting.budget import SATURATED, Budget, saturate
from discreet.accounting.conversion import EPSILON_UNITS, RHO_UNITS
from discreet.accounting.loss import Loss
from discreet.errors import AccessRefusal, BudgetRefusal, InvalidParameter, quote_value
from discreet.ledger.analysts import AUDITOR
from discreet.ledger.balance import Balance
from discreet.ledger.books import (
    Balances,
    Blocks,
    Elsewhere,
    Encoded,
    Standing,
    decode_blocks,
    encode_blocks,
    saturate_units,
    take_blocks,
    zero_balances,
)
from discreet.ledger.charges import About, Request
from discreet.question.blocks import Space

_ENTITY = "entity "
_BEYOND = "beyond it, what is promised to the people in the data would no longer hold."
_AT_ONCE = (
    "the curator lets no single question cost the people in the data more, so that much is left "
    "for others."
)


def check_request(request: Request) -> None:
    """Refuse what is not a charge: a loss of nothing, or one that is no loss at all."""
    loss = request.loss
    if isinstance(loss, Loss):
        epsilon, rho, delta = loss.to_units()
        amounts = [part for part in (epsilon, rho, delta) if part is not None]
        bounded = epsilon is not None or rho is not None
        if bounded and min(amounts) >= 0 and (any(amounts) or len(amounts) < 3):
            return
    raise InvalidParameter(
        "P2",
        "a charge must be a positive loss.",
        why="a charge of nothing would be a free look at the people in the data, and a negative "
        "one would pay for the next.",
        fix="charge what the question costs: request.loss = priced.loss.",
    )


def check_price(request: Request) -> None:
    """Refuse to charge at a price of the past, at which what was paid for was looked for."""
    if request.former:
        raise InvalidParameter(
            "P4",
            "what was paid for before is about other data now, or was lost.",
            why="prices of the past are for what was bought then: some were less than what it "
            "tells about a person.",
            fix="ask again: the question is priced anew.",
        )


def charge_content(request: Request, standing: Standing) -> dict[str, Any]:
    """What a charge records; its loss in whole units, rounded up.

    Whose people it is about is recorded where others have a budget of their own here
    (docs/proofs/known.md, Lemma 13).
    """
    content = {
        "question": request.question,
        "spend": _plain(request.spend),
        "key": request.key,
        "data_version": request.data_version,
        "loss": list(request.loss.to_units()),
        "area": encode_blocks(request.area.edges, request.area.space.size),
    }
    if request.about is not None:  # charges that were made before it was recorded have none
        content["about"] = about_content(request.about)
    if request.abouts:
        content["abouts"] = [about_content(about) for about in request.abouts]
    if request.parent is not None:
        content["parent"] = request.parent
        if request.basis is not None:
            content["basis"] = request.basis
    if request.entities is not None and not standing.lost.keys() <= request.entities:
        content["entities"] = sorted(request.entities)
    return content


def find_touched(
    content: Mapping[str, Any], elsewhere: Mapping[str, Elsewhere]
) -> dict[str, Elsewhere]:
    """Of the entities with a budget, those whose people a charge counts for."""
    named = content.get("entities")
    return {name: whole for name, whole in elsewhere.items() if named is None or name in named}


OTHER_DATA = "it is about other data, or may be"


def find_fault(
    loss: Sequence[int | None], before: int, *, answered: bool, refined: bool, same: bool
) -> str | None:
    """Why a charge of ``loss`` may not refine the answer of another; None if it may.

    ``before`` is the epsilon that the other and all that it refines were charged, in whole
    units; ``answered`` and ``refined`` say whether it has an answer and whether another refines it
    already, ``same`` whether both are computed from the same data, for certain.  A refinement
    pays what it adds in epsilon, and in rho half the square of all epsilon there is then
    (docs/proofs/known.md, Lemmas 7 to 10 and 14).
    """
    if not answered:
        return "it has no answer"
    if refined:
        return "it was improved already"
    if not same:
        return OTHER_DATA
    epsilon, rho, _ = saturate_units(loss)
    total = Fraction(before + epsilon, EPSILON_UNITS)
    if before + epsilon >= SATURATED or epsilon <= 0 or rho < total**2 / 2 * RHO_UNITS:
        return "its price is not that of an improvement"
    return None


def about_content(about: About) -> list[Any]:
    """Which rows a charge is about, as it is recorded."""
    conditions = sorted(text for text, _ in about.conditions)
    return [about.base, conditions, sorted(about.keys), sorted(about.measured)]


def _plain(value: Any) -> Any:
    """A spend as JSON: exact numbers as texts."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def check_access(standing: Standing, name: str, now: datetime) -> None:
    """Refuse strangers, and those whose time is over."""
    analyst = standing.analysts.get(name)
    if analyst is None:
        raise unknown_analyst(name)
    if analyst.disabled:
        raise AccessRefusal(
            "A2",
            f"analyst {name!r} may no longer ask.",
            why="who may ask about the people in the data is the curator's decision.",
            fix="ask the curator.",
        )
    if analyst.role == AUDITOR:
        raise AccessRefusal(
            "A12",
            f"{name!r} is an auditor, and auditors do not ask.",
            why="who checks what the people in the data have lost should not add to it.",
            fix="ask as an analyst: the curator can add one.",
        )
    if analyst.group is not None and analyst.group not in standing.policy.groups:
        raise AccessRefusal(
            "A2",
            f"analyst {name!r} is in the group {analyst.group!r}, which is declared no more.",
            why="what its analysts may cost the people in the data together is not said any more.",
            fix=f"ask the curator to declare [groups.{analyst.group}], or another group for you.",
        )
    for whose, expires in (
        (f"the access of analyst {name!r}", analyst.expires),
        ("this dataset", standing.policy.expires),
    ):
        if expires is not None and now >= expires:
            raise AccessRefusal(
                "A3",
                f"{whose} expired on {expires.astimezone(UTC):%Y-%m-%d %H:%M} UTC.",
                why="people in the data were promised that questions end then.",
                fix="ask the curator for more time.",
            )


def unknown_analyst(name: str) -> AccessRefusal:
    """Nobody by that name may ask."""
    return AccessRefusal(
        "A1",
        f"there is no analyst {quote_value(name)}.",
        why="what each asker costs the people in the data is counted, so each has a name.",
        fix="ask under your own name, or have the curator add it: `discreet analyst add NAME`.",
    )


def admit(
    standing: Standing,
    space: Space,
    dataset: str,
    request: Request,
    area: Encoded,
    elsewhere: Mapping[str, Elsewhere],
) -> None:
    """Check every cap: of the question, of the analyst, and of every block that is touched.

    And of the people of the dataset's entities, who may have lost something ``elsewhere``.
    """
    charge = saturate(request.loss)
    limit = standing.limit(request.analyst)
    share = standing.find_spent_by(request.analyst)
    blocks = decode_blocks(area, standing.size)
    refused = find_overdrawn(standing, request.analyst, charge, blocks, elsewhere)
    if refused is None:
        return
    cap, index = refused
    if cap == "question":
        raise BudgetRefusal(
            "B3",
            f"this question costs {request.loss.rounded()}, more than any one question may.",
            why=_AT_ONCE,
            fix=f"offer less: a question may cost {standing.policy.question}.",
        )
    number = int(np.arange(standing.size)[blocks][index])
    where = "" if space.size == 1 else f" for the block {space.name(number)!r}"
    if cap == "analyst" and limit is not None:
        balance = Balance(dataset, request.analyst, limit, space, share)
        raise BudgetRefusal(
            "B2",
            f"the allocation of {request.analyst!r} does not cover this question, which costs "
            f"{request.loss.rounded()}{where}.",
            why=_spare("this asker"),
            fix=f"offer less, or ask the curator for more. {balance.remaining(number)}",
        )
    if cap == "group":
        raise _explain_group(standing, space, dataset, request, number)
    if cap.startswith(_ENTITY):
        name = cap.removeprefix(_ENTITY)
        whole = elsewhere[name]
        total = Balance(dataset, None, whole.budget, space, whole.add_to(standing.lost[name]))
        raise BudgetRefusal(
            "B4",
            f"the budget of {name!r} in all datasets together does not cover this question, which "
            f"costs {request.loss.rounded()}{where}.",
            why=_BEYOND,
            fix=f"offer less. {total.remaining(number)}",
        )
    balance = Balance(dataset, None, standing.budget, space, standing.spent)
    raise BudgetRefusal(
        "B1",
        f"the budget does not cover this question, which costs {request.loss.rounded()}{where}.",
        why=_BEYOND,
        fix=f"offer less. {balance.remaining(number)}",
    )


def _spare(whom: str) -> str:
    """Why somebody's limit is less than what the people in the data may lose in all."""
    return (
        f"the curator allows {whom} no more of what the people in the data may lose, so that "
        "others can ask, too."
    )


def _explain_group(
    standing: Standing, space: Space, dataset: str, request: Request, number: int
) -> BudgetRefusal:
    """The common limit of the analyst's group is too small."""
    name, limit = _find_group(standing, request.analyst)
    spent = standing.find_spent_by_group(name)
    where = "" if space.size == 1 else f" for the block {space.name(number)!r}"
    balance = Balance(dataset, request.analyst, limit or standing.budget, space, spent)
    return BudgetRefusal(
        "B5",
        f"the common limit of the group {name!r} does not cover this question, which costs "
        f"{request.loss.rounded()}{where}.",
        why=_spare("this group"),
        fix=f"offer less, or ask the curator for more. {balance.remaining(number)}",
    )


def _find_group(standing: Standing, analyst: str) -> tuple[str, Budget | None]:
    """The group of an analyst and its common limit; no name and no limit where there is none."""
    name = standing.group_of(analyst) or ""
    group = standing.policy.groups.get(name)
    return name, None if group is None else group.limit


def find_overdrawn(
    standing: Standing,
    analyst: str,
    charge: tuple[int, int, int],
    blocks: Blocks,
    elsewhere: Mapping[str, Elsewhere],
) -> tuple[str, int] | None:
    """The first cap that a charge would break, and at which block most; None if it fits."""
    limit = standing.limit(analyst)
    group, common = _find_group(standing, analyst)
    caps: tuple[tuple[str, Budget | None, Balances], ...] = (
        ("question", standing.policy.question, zero_balances(1)),
        ("analyst", limit, take_blocks(standing.find_spent_by(analyst), blocks)),
        ("group", common, take_blocks(standing.find_spent_by_group(group), blocks)),
        ("dataset", standing.budget, take_blocks(standing.spent, blocks)),
        *(
            (_ENTITY + name, whole.budget, whole.add_to(take_blocks(standing.lost[name], blocks)))
            for name, whole in elsewhere.items()
        ),
    )
    for name, budget, spent in caps:
        if budget is None:
            continue
        admitted = budget.admits_units(spent, charge)
        if not admitted.all():
            spent_most = spent[1 if budget.epsilon is None else 0]
            return name, int(np.argmax(np.where(admitted, -1, spent_most)))
    return None


def number_blocks(space: Space, blocks: Sequence[int | str]) -> list[int]:
    """Blocks by number or name."""
    if isinstance(blocks, str) or not blocks:
        raise _no_block(space, blocks)
    names = {}
    if any(isinstance(block, str) for block in blocks):
        names = {space.name(number): number for number in range(space.size)}
    found = []
    for block in blocks:
        number = names.get(block) if isinstance(block, str) else block
        if type(number) is not int or not 0 <= number < space.size:
            raise _no_block(space, block)
        found.append(number)
    return found


def check_entities(standing: Standing, entities: Sequence[str]) -> list[str]:
    """Entities by name, each once; refused if the dataset has no budget of that name."""
    for name in [entities] if isinstance(entities, str) else entities:
        if isinstance(entities, str) or name not in standing.lost:
            known = ", ".join(map(repr, standing.lost)) or "none"
            raise InvalidParameter(
                "P4",
                f"{quote_value(name)} names no entity with a budget here.",
                why="a budget is renewed for people who are named, never for all by default.",
                fix=f"give a list of entities; those with a budget are: {known}.",
            )
    return sorted(set(entities))


def _no_block(space: Space, block: object) -> InvalidParameter:
    first = ", ".join(repr(space.name(number)) for number in range(min(3, space.size)))
    return InvalidParameter(
        "P4",
        f"{quote_value(block)} names no block.",
        why="a budget is renewed for people who are named, never for all by default.",
        fix=f"give a list of blocks, such as [{first}].",
    )


def reason_refusal() -> InvalidParameter:
    """A renewal must say why."""
    return InvalidParameter(
        "P4",
        "a renewal needs a reason.",
        why="people who were promised one budget lose up to another one, and may ask why.",
        fix="renew(blocks, reason='new consent of 2025').",
    )
