"""``discreet balance``, ``transcript`` and ``renew``: what is spent, by whom, on what."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import screen
from discreet.cli.options import HERE, Home, Json, open_planner

if TYPE_CHECKING:
    from discreet.curate.curator import Curator
    from discreet.ledger import Balance, Entry

MOST_BLOCKS = 20
Who = Annotated[str | None, typer.Option("--as", metavar="ANALYST", help="Only this analyst.")]


# --- what is spent -----------------------------------------------------------------------------


def balance(analyst: Who = None, as_json: Json = False, session: Home = HERE) -> None:
    """Show what is spent and what is left, by block and by analyst."""
    with open_planner(session) as curator:
        if as_json:
            screen.print_json(_balance_json(curator, analyst))
        else:
            show_balance(curator, analyst)


def show_balance(curator: Curator, analyst: str | None = None, *, brief: bool = False) -> None:
    """A bar for each block of people and for each analyst, then what is left in words."""
    found = curator.balance(analyst)
    name_units = import_module("discreet.question.ownership").name_units
    each = f"each {name_units(curator.schema)}"
    whose = f"{'E' + each[1:]} may lose" if analyst is None else f"{analyst} may cost {each}"
    screen.print_text(f"{whose} {found.budget} in all.\n")
    rows = [_bar_row(name, share) for name, _, share in found.blocks(MOST_BLOCKS)]
    screen.print_table(("people", "spent", ""), rows, right=(2,))
    more = found.space.size - len(rows)
    if more > 0:
        screen.print_text(f"… and {more:,} more blocks of people, each with no more spent")
    _show_analysts(curator, analyst)
    _show_groups(curator, found)
    _show_entities(found if found.cap is None else found.cap)
    left = str(found.remaining()).splitlines()[0] if brief else str(found)
    screen.print_text(f"\n{left}")


def _show_analysts(curator: Curator, analyst: str | None) -> None:
    rows = []
    for one in curator.account.analysts():
        if analyst in (None, one.name):
            theirs = curator.balance(one.name)
            rows.append(
                (*_bar_row(one.name, theirs.share(theirs.fullest())), f"of {theirs.budget}")
            )
    screen.print_text("")
    screen.print_table(("asked by", "spent", "", "that they may"), rows, right=(2,))


def _show_groups(curator: Curator, found: Balance) -> None:
    """A bar for each group with a common limit; for an analyst, for their own."""
    shown = (
        [found.group] if found.analyst else [one for _, one in curator.account.groups().values()]
    )
    rows = [
        (*_bar_row(one.analyst or "", one.share(one.fullest())), f"of {one.budget}")
        for one in shown
        if one is not None
    ]
    if rows:
        screen.print_text("")
        screen.print_table(("the group", "spent", "", "that it may"), rows, right=(2,))


def _show_entities(whole: Balance) -> None:
    """A bar for people who are in several datasets, and a line for each of those."""
    for found in whole.entities:
        screen.print_text("")
        rows = [(*_bar_row("all datasets", found.share), f"of {found.budget}")]
        rows += [(name, "", "", str(spent)) for name, spent in found.describe()]
        screen.print_table((f"each {found.entity} in", "spent", "", ""), rows, right=(2,))


def _bar_row(name: str, share: float) -> tuple[str, str, str]:
    return name, screen.bar(share), screen.percent(share)


def _balance_json(curator: Curator, analyst: str | None) -> dict[str, Any]:
    from discreet.release.amounts import amount_json, budget_json, loss_json

    found = curator.balance(analyst)
    epsilon, rho = found.left()
    return {
        "budget": budget_json(found.budget),
        "spent": loss_json(found.spent),
        "left": {"epsilon": amount_json(epsilon), "rho": amount_json(rho)},
        "words": str(found.remaining()),
        "blocks": [
            {"name": name, "spent": loss_json(spent), "share": share}
            for name, spent, share in found.blocks()
        ],
        "entities": [
            {
                "name": one.entity,
                "budget": budget_json(one.budget),
                "spent": loss_json(one.spent),
                "share": one.share,
                "datasets": {name: loss_json(spent) for name, spent in one.describe()},
            }
            for one in (found if found.cap is None else found.cap).entities
        ],
        "groups": [
            {"name": name, "spent": loss_json(one.spent), "budget": budget_json(one.budget)}
            for name, (_, one) in curator.account.groups().items()
            if one is not None and (found.analyst is None or found.group is not None)
            if found.group is None or found.group.analyst == name
        ],
        "analysts": [
            {"name": one.name, "spent": loss_json(curator.balance(one.name).spent)}
            for one in curator.account.analysts()
            if analyst in (None, one.name)
        ],
    }


# --- what was asked ----------------------------------------------------------------------------


def transcript(analyst: Who = None, as_json: Json = False, session: Home = HERE) -> None:
    """List who asked what, what it cost and what became of it."""
    with open_planner(session) as curator:
        entries = curator.transcript(analyst)
    if as_json:
        screen.print_json([_entry(entry) for entry in entries])
    else:
        show_transcript(entries)


def show_transcript(entries: Sequence[Entry]) -> None:
    """One line for each question, and the question below it."""
    if not entries:
        screen.print_text("Nothing was asked yet.")
    for entry in entries:
        what = f"refused: {entry.code}" if entry.code else entry.state
        what = what if entry.question else f"{entry.count:,} more {what}"
        paid = "" if entry.loss is None else f"   {entry.loss}"
        screen.print_text(f"{entry.id}  {entry.at:%Y-%m-%d %H:%M}  {entry.analyst}  {what}{paid}")
        if entry.question:
            screen.print_text(" ".join(entry.question.split()), indent=len(str(entry.id)) + 2)


def _entry(entry: Entry) -> dict[str, Any]:
    from discreet.release.amounts import loss_json

    return {
        "id": entry.id,
        "at": entry.at,
        "analyst": entry.analyst,
        "question": entry.question,
        "spend": dict(entry.spend),
        "price": None if entry.loss is None else loss_json(entry.loss),
        "state": entry.state,
        "code": entry.code,
        "count": entry.count,
    }


# --- a fresh budget ----------------------------------------------------------------------------

Blocks = Annotated[
    list[str], typer.Argument(metavar="BLOCK", help="Their names.", show_default=False)
]
Reason = Annotated[str, typer.Option(help="Why; it is written into the ledger.")]


EntityNames = Annotated[
    list[str] | None,
    typer.Option(
        "--entity",
        metavar="ENTITY",
        help="Give people who are in several datasets back what they lost here, too.",
    ),
]


def renew(
    blocks: Blocks,
    reason: Reason,
    entity: EntityNames = None,
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """Give blocks of people a fresh budget; the reason is recorded."""
    with open_planner(session) as curator:
        curator.account.renew(blocks, reason=reason, entities=entity or ())
    if as_json:
        screen.print_json({"renewed": blocks, "reason": reason, "entities": entity or []})
    else:
        screen.print_text(
            f"renewed: {', '.join(blocks)}. The people in them may lose the budget again."
        )


__all__ = ["balance", "renew", "show_balance", "show_transcript", "transcript"]
