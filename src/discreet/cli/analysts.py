"""``discreet analyst``: who may ask, and how much each of them."""

from __future__ import annotations

from datetime import date, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import screen
from discreet.cli.options import HERE, Delta, Home, Json, open_planner
from discreet.errors import InvalidParameter, quote_value

if TYPE_CHECKING:
    from discreet.accounting.budget import Budget
    from discreet.curate.curator import Curator
    from discreet.ledger import AccessKey, Analyst

app = typer.Typer(no_args_is_help=True, help="Say who may ask, and how much.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Who.", show_default=False)]
Epsilon = Annotated[str | None, typer.Option(metavar="AMOUNT", help="The most they may spend.")]
Rho = Annotated[str | None, typer.Option(metavar="AMOUNT", help="The same, as concentrated loss.")]
Insist = Annotated[
    bool,
    typer.Option("--accept-large-delta", help="Insist on a delta that may publish somebody."),
]
Role = Annotated[str, typer.Option(metavar="ROLE", help="analyst, curator or auditor.")]
Expires = Annotated[str | None, typer.Option(metavar="DAY", help="The last day, as 2027-12-31.")]
InGroup = Annotated[
    str | None, typer.Option(metavar="GROUP", help="Whose common limit counts, too.")
]
KeyExpires = Annotated[
    str | None, typer.Option("--expires", metavar="DAY", help="Its last day, as 2027-12-31.")
]
Key = Annotated[bool, typer.Option("--key", help="Make a key for the server, too.")]
Unlimited = Annotated[bool, typer.Option("--none", help="Take their own limit away.")]


@app.command()
def add(  # noqa: PLR0913, PLR0917 (each is an option)
    name: Name,
    epsilon: Epsilon = None,
    rho: Rho = None,
    delta: Delta = None,
    role: Role = "analyst",
    expires: Expires = None,
    group: InGroup = None,
    key: Key = False,
    accept_large_delta: Insist = False,
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """Let somebody ask; without a limit, up to what the dataset has."""
    limit = allowance(epsilon, rho, delta, accept_large_delta)
    until = last_day(expires)
    secret = None
    with open_planner(session) as curator:
        curator.account.add_analyst(name, role=role, limit=limit, expires=until, group=group)
        if key:
            access = import_module("discreet.ledger.keys")
            secret = access.new_key(curator.account, name, expires=until)
        found = _find_analyst(curator.account.analysts(), name)
        allowed = _limit(curator, found)
        excess = _describe_excess(limit, curator.budget)
    if as_json:
        screen.print_json(analyst_json(found) | ({} if secret is None else {"key": secret}))
        return
    screen.print_text(f"{name} may ask: {allowed}.{excess}")
    if secret is not None:
        show_key(name, secret)


@app.command("list")
def list_(as_json: Json = False, session: Home = HERE) -> None:
    """List who may ask."""
    with open_planner(session) as curator:
        found = curator.account.analysts()
        limits = [_limit(curator, analyst) for analyst in found]
    if as_json:
        screen.print_json([analyst_json(analyst) for analyst in found])
        return
    grouped = any(analyst.group for analyst in found)
    rows = [
        (
            *(a.name, str(a.role), limit),
            *([a.group or ""] if grouped else []),
            *(_day(a.expires), "disabled" if a.disabled else ""),
        )
        for a, limit in zip(found, limits, strict=True)
    ]
    titles = ("analyst", "role", "limit", *(["group"] if grouped else []), "until", "")
    screen.print_table(titles, rows, right=())


@app.command()
def limit(
    name: Name,
    epsilon: Epsilon = None,
    rho: Rho = None,
    delta: Delta = None,
    unlimited: Unlimited = False,
    accept_large_delta: Insist = False,
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """Change how much somebody may spend; what is spent stays spent."""
    changed = allowance(epsilon, rho, delta, accept_large_delta)
    if (changed is None) is not unlimited:
        raise InvalidParameter(
            "P4",
            "no limit is given." if changed is None else "both a limit and --none are given.",
            why="a limit that is taken away by accident lets more be lost than was meant.",
            fix="name the amount (--epsilon 0.5), or say --none to take the limit away.",
        )
    with open_planner(session) as curator:
        curator.account.limit_analyst(name, changed)
        found = _find_analyst(curator.account.analysts(), name)
        allowed = _limit(curator, found)
        excess = _describe_excess(changed, curator.budget)
    if as_json:
        screen.print_json(analyst_json(found))
    else:
        screen.print_text(f"{name}: {allowed}.{excess}")


@app.command()
def group(
    name: Name,
    group: Annotated[
        str | None,
        typer.Argument(metavar="GROUP", show_default=False, help="As [groups.GROUP] declares it."),
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="Put them into no group.")] = False,
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """Put somebody into a group with a common limit."""
    if (group is None) is not none:
        raise InvalidParameter(
            "P4",
            "no group is given." if group is None else "both a group and --none are given.",
            why="a limit that is taken away by accident lets more be lost than was meant.",
            fix="name the group, or say --none to take them out of theirs.",
        )
    with open_planner(session) as curator:
        found = curator.account.move_analyst(name, group)
    if as_json:
        screen.print_json(analyst_json(found))
    else:
        screen.print_text(f"{name}: {'no group' if group is None else f'in the group {group}'}.")


@app.command()
def disable(name: Name, as_json: Json = False, session: Home = HERE) -> None:
    """Let somebody ask no more; the record of what they asked stays."""
    with open_planner(session) as curator:
        curator.account.disable_analyst(name)
        found = _find_analyst(curator.account.analysts(), name)
    if as_json:
        screen.print_json(analyst_json(found))
    else:
        screen.print_text(f"{name} may ask no more.")


@app.command("key")
def make_key(
    name: Name, expires: KeyExpires = None, as_json: Json = False, session: Home = HERE
) -> None:
    """Make somebody one more key for the server, shown this once."""
    access = import_module("discreet.ledger.keys")
    until = last_day(expires)
    with open_planner(session) as curator:
        if curator.account.analyst(name).disabled:
            raise InvalidParameter(
                "P4",
                f"analyst {name!r} may no longer ask.",
                why="their key would open nothing, and whoever is given it would not know why.",
                fix="add them under another name: `discreet analyst add NAME --key`.",
            )
        others = _list_open(curator.account.keys(), name)
        secret = access.new_key(curator.account, name, expires=until)
        made = _find_key(curator.account.keys(), access.key_id(secret))
    if as_json:
        screen.print_json(_key_json(made) | {"key": secret})
        return
    show_key(name, secret)
    if others:
        screen.print_text(
            f"It is one more: what {name} had before opens as it did, until it is revoked. "
            "If it was lost, or somebody else may have it:"
        )
        for key_id in others:
            typer.echo(f"  discreet analyst revoke {key_id}")


@app.command("keys")
def list_keys(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", show_default=False, help="Only theirs.")
    ] = None,
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """List keys: whose each is, until when, and whether it is revoked."""
    with open_planner(session) as curator:
        if name is not None:
            curator.account.analyst(name)
        found = [key for key in curator.account.keys() if name in (None, key.analyst)]  # noqa: SIM118
    if as_json:
        screen.print_json([_key_json(key) for key in found])
    elif not found:
        screen.print_text("There is no key.")
    else:
        rows = [
            (k.key_id, k.analyst, _day(k.at), _day(k.expires), "revoked" if k.revoked else "")
            for k in found
        ]
        screen.print_table(("key", "analyst", "made", "until", ""), rows, right=())


@app.command()
def revoke(
    key: Annotated[
        str,
        typer.Argument(metavar="ID", show_default=False, help="As `discreet analyst keys` has it."),
    ],
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """Let a key open nothing any more, at once."""
    access = import_module("discreet.ledger.keys")
    # Whoever has the whole key at hand may give that: its secret half goes no further.
    key_id = access.public_part(key) or key.removeprefix("discreet_")
    with open_planner(session) as curator:
        curator.account.revoke_key(key_id)
        revoked = _find_key(curator.account.keys(), key_id)
    if as_json:
        screen.print_json(_key_json(revoked))
    else:
        screen.print_text(f"The key {key_id} of {revoked.analyst} opens nothing any more.")


def allowance(
    epsilon: str | None, rho: str | None, delta: str | None, accept_large_delta: bool = False
) -> Budget | None:
    """The budget that the options name, if they name one."""
    if epsilon is None and rho is None and delta is None:
        return None
    budget = import_module("discreet.accounting.budget").Budget
    made: Budget = budget(
        epsilon=epsilon, rho=rho, delta=delta or 0, accept_large_delta=accept_large_delta
    )
    return made


def last_day(text: str | None) -> datetime | None:
    """The end of the day that is named."""
    if text is None:
        return None
    try:
        ended: datetime = import_module("discreet.ledger.analysts").end_of_day(
            date.fromisoformat(text)
        )
    except ValueError:
        raise InvalidParameter(
            "P1",
            f"{quote_value(text)} is not a day.",
            why="until when somebody may ask must be one moment.",
            fix="write it as 2027-12-31.",
        ) from None
    return ended


def show_key(name: str, secret: str) -> None:
    """A key, shown this once: only its hash is kept."""
    screen.print_text(f"\nThe key of {name}, shown this once:\n")
    typer.echo(f"  {secret}\n")


def analyst_json(analyst: Analyst) -> dict[str, Any]:
    """An analyst for JSON."""
    from discreet.release.amounts import budget_json

    return {
        "name": analyst.name,
        "role": str(analyst.role),
        "limit": None if analyst.limit is None else budget_json(analyst.limit),
        "expires": analyst.expires,
        "disabled": analyst.disabled,
        "group": analyst.group,
    }


def _key_json(key: AccessKey) -> dict[str, Any]:
    """What is told of a key: neither its digest nor what checks a proof of it."""
    return {
        "id": key.key_id,
        "analyst": key.analyst,
        "made": key.at,
        "expires": key.expires,
        "revoked": key.revoked,
    }


def _find_analyst(analysts: tuple[Analyst, ...], name: str) -> Analyst:
    return next(analyst for analyst in analysts if analyst.name == name)


def _list_open(keys: tuple[AccessKey, ...], name: str) -> list[str]:
    """The keys of somebody that open something today."""
    now = datetime.now().astimezone()
    return [
        key.key_id
        for key in keys
        if key.analyst == name and not key.revoked and (key.expires is None or key.expires > now)
    ]


def _find_key(keys: tuple[AccessKey, ...], key_id: str) -> AccessKey:
    return next(key for key in keys if key.key_id == key_id)


def _limit(curator: Curator, analyst: Analyst) -> str:
    """What holds for somebody: their own limit, the policy's, or that of the dataset alone."""
    limit = curator.account.standing().limit(analyst.name)
    return "no limit but the dataset's" if limit is None else f"at most {limit}"


def _describe_excess(limit: Budget | None, budget: Budget) -> str:
    """A line that says so where a limit never counts: the dataset's budget is used up before."""
    if limit is None:
        return ""
    shown = import_module("discreet.exact.numbers").decimal_up
    if limit.epsilon is None or budget.epsilon is None:
        more, most = limit.rho > budget.rho, f"ρ = {shown(budget.rho)}"
    else:
        more, most = limit.epsilon > budget.epsilon, f"ε = {shown(budget.epsilon)}"
    return f"\n(more than the dataset's {most}, which counts.)" if more else ""


def _day(when: datetime | None) -> str:
    return "" if when is None else f"{when:%Y-%m-%d}"
