"""``discreet release``: publish once and for all, check what was published, ask it for free."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import screen
from discreet.cli.asking import read_questions
from discreet.cli.options import (
    CURATOR,
    HERE,
    Analyst,
    Delta,
    Epsilon,
    Home,
    Json,
    Rho,
    open_curator,
    open_planner,
)
from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    from discreet.curate.preparing import PlannedRelease
    from discreet.publication.synopsis import Synopsis

app = typer.Typer(no_args_is_help=True, help="Publish tables that answer many questions for free.")

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the release.")]
Listed = Annotated[str, typer.Option(metavar="A,B", help="Columns, with commas between.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="What it is called, and asked by.")]


Source = Annotated[str, typer.Option(metavar="TABLE", help="A table, or a SELECT in quotes.")]
Kind = Annotated[
    str, typer.Option(metavar="KIND", help="synthetic, marginals, ranges, questions, counter, …")
]
By = Annotated[str, typer.Option(metavar="A,B", help="Of ranges, trees and counters.")]
Ways = Annotated[int, typer.Option(metavar="COUNT", help="Columns of a marginal.")]
Best = Annotated[
    bool, typer.Option("--best/--unbiased", help="Marginals: nearest and whole, or unbiased.")
]
Size = Annotated[
    int | None, typer.Option(metavar="COUNT", help="About how many there are, if public.")
]
Cells = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN=COUNT", help="How finely it is counted.")
]
Geography = Annotated[
    str | None, typer.Option(metavar="TABLE", help="Of a tree: a public table of its places.")
]
Totals = Annotated[
    list[str] | None, typer.Option(metavar="PATH=COUNT", help="Of a tree: what is public.")
]
Steps = Annotated[
    int | None, typer.Option(metavar="COUNT", help="Of a counter whose steps share their noise.")
]
Keep = Annotated[
    list[str] | None, typer.Option(metavar="A<=B", help="What every synthetic row keeps.")
]
Interest = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN=WEIGHT", help="How much its errors matter.")
]
Ordered = Annotated[
    str, typer.Option(metavar="A,B", help="Columns whose listed values are in an order.")
]
Sets = Annotated[
    list[str] | None, typer.Option(metavar="A,B", help="Columns of one marginal, instead of ways.")
]
Tree = Annotated[
    list[str] | None, typer.Option(metavar="PATH", help="Of a tree: a place there is, north/ayr.")
]
Margins = Annotated[
    str | None, typer.Option(metavar="SHARE", help="Of synthetic rows: what buys margins.")
]
Asked = Annotated[
    Path | None,
    typer.Option("--questions", metavar="FILE", help="Of kind questions: counts in SQL, with ;"),
]
OnlyPlan = Annotated[bool, typer.Option("--plan", help="Show stages, shares and errors; free.")]


@app.command()
def new(  # noqa: PLR0913, PLR0917 (each is an option)
    name: Name,
    of: Source,
    kind: Kind = "synthetic",
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    columns: Listed = "",
    by: By = "",
    ways: Ways = 2,
    sets: Sets = None,
    best: Best = False,
    rows: Size = None,
    cells: Cells = None,
    interest: Interest = None,
    ordered: Ordered = "",
    margins: Margins = None,
    keep: Keep = None,
    geography: Geography = None,
    tree: Tree = None,
    totals: Totals = None,
    steps_per_unit: Steps = None,
    questions: Asked = None,
    only_plan: OnlyPlan = False,
    analyst: Analyst = CURATOR,
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """Make a release: charged, drawn and written, all of it or nothing."""
    declared: dict[str, Any] = {
        "kind": kind,
        "of": of,
        "epsilon": epsilon,
        "delta": delta,
        "rho": rho,
        "columns": _split(columns),
        "by": _split(by),
        "ways": ways,
        "sets": [_split(one) for one in sets or []],
        "best": best,
        "rows": rows,
        "cells": _counts(cells or []),
        "interest": _weights(interest or []),
        "ordered": _split(ordered),
        "margins": margins,
        "keep": keep or [],
        "geography": geography,
        "tree": [one.split("/") for one in tree or []],
        "totals": _counts(totals or []),
        "steps_per_unit": steps_per_unit,
        "questions": [] if questions is None else read_questions(questions),
    }
    (_plan if only_plan else _make)(name, declared, analyst, session, as_json)


def _plan(name: str, declared: dict[str, Any], _: str, session: Path, as_json: bool) -> None:
    with open_planner(session) as planner:
        _print_plan(planner.plan_release(name, **declared), as_json)


def _make(name: str, declared: dict[str, Any], analyst: str, session: Path, as_json: bool) -> None:
    with (
        screen.stoppable(),
        screen.progress_bar() as progress,
        open_curator(session, progress=progress) as curator,
    ):
        before = name in curator.releases.names()
        synopsis = curator.make_release(name, analyst=analyst, **declared)
    _print_release(synopsis, session / "releases" / name, as_json, before=before)


@app.command()
def plan(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The plan, in TOML.")],
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """Divide a price best, or find the least for all targets."""
    with open_planner(session) as curator:
        division = curator.plan_releases(file)
    name = {"rho": "ρ", "epsilon": "ε"}[division.kind.value]
    if as_json:
        screen.print_json(division.to_json())
        return
    rows = [
        (one.name, one.kind, f"{float(amount):.4g}", f"± {margin:,.4g}")
        for one, amount, margin in zip(
            division.declared, division.amounts, division.margins, strict=True
        )
    ]
    screen.print_table(("release", "kind", name, "usual margin, 95 %"), rows, right=(2, 3))
    curve = [
        (f"{total:.4g}", *(f"± {margin:,.4g}" for margin in margins))
        for total, margins in division.curve()
    ]
    names = [one.name for one in division.declared]
    screen.print_table((f"{name} of all", *names), curve, right=range(len(names) + 1))
    least = [(f"× {times:g}", f"{price:.4g}") for times, price in division.least_curve()]
    if least:
        screen.print_table(("all targets", f"least {name}"), least, right=(0, 1))
    screen.print_text(f"{name} = {float(division.total):.6g} for all. Nothing was charged.")
    for line in division.list_missed():
        screen.print_text(line)


@app.command()
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The plan, in TOML.")],
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="All of it in one folder to hand over.")
    ] = None,
    analyst: Analyst = CURATOR,
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """Make all releases of a plan, for one charge; resumes."""
    with (
        screen.stoppable(),
        screen.progress_bar() as progress,
        open_curator(session, progress=progress) as curator,
    ):
        made = curator.make_releases(file, folder=folder, analyst=analyst)
    if as_json:
        screen.print_json([one.made.certificate() for one in made])
        return
    for one in made:
        _print_release(one, session / "releases" / one.name, as_json=False)
    if folder is not None:
        screen.print_text(f"{folder}: all of it, to hand over.")


@app.command()
def step(
    name: Name,
    number: Annotated[
        int | None, typer.Option(metavar="COUNT", help="Which step it is; once published, shown.")
    ] = None,
    analyst: Analyst = CURATOR,
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """Publish the next step of a counter; all are paid for."""
    with screen.stoppable(), open_curator(session) as curator:
        synopsis = curator.step_release(name, number=number, analyst=analyst)
    _print_release(synopsis, session / "releases" / name, as_json)


@app.command("list")
def list_releases(as_json: Json = False, session: Home = HERE) -> None:
    """The releases of a session."""
    with open_planner(session) as curator:
        names = curator.releases.names()
        found = [curator.releases.certificate(name) for name in names]
    if as_json:
        screen.print_json(found)
        return
    rows = [
        (one["declared"]["name"], one["declared"]["kind"], " ".join(one["declared"]["of"].split()))
        for one in found
    ]
    screen.print_table(("release", "kind", "of"), rows, right=())


@app.command()
def show(name: Name, as_json: Json = False, session: Home = HERE) -> None:
    """What a release is and promises: its card."""
    with open_planner(session) as curator:
        if as_json:
            screen.print_json(curator.show_certificate(name))
        else:
            typer.echo(curator.show_card(name), nl=False)


@app.command()
def report(
    directory: Folder,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Where the page is written.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the report of a release again, from its draws."""
    made = import_module("discreet.publication.folder").read_folder(directory)
    reports = import_module("discreet.publication.report")
    if as_json:
        stages = [{"name": one.name, "loss": str(one.spend.loss)} for one in made.stages]
        promise = reports.describe_promise(made)
        limits = reports.list_limits(made)
        screen.print_json({"promise": promise, "stages": stages, "limits": limits})
        return
    page = reports.write_report(made)
    if html is None:
        typer.echo(page, nl=False)
        return
    try:
        html.write_text(page, encoding="utf-8")
    except OSError as error:
        raise import_module("discreet.cli.options").unwritable(html, error) from None
    screen.print_text(f"{html}: the report of {made.declared.name}.")


@app.command()
def verify(directory: Folder, as_json: Json = False) -> None:
    """Check a release that you were given: files, losses, data."""
    handing = import_module("discreet.publication.handover")
    verify_one = import_module("discreet.publication.verifying").verify_folder
    checks = (handing.verify_handover if handing.is_handover(directory) else verify_one)(directory)
    if as_json:
        screen.print_json([{"what": c.what, "holds": c.holds, "says": c.says} for c in checks])
    else:
        signs = {True: "ok", False: "WRONG", None: "–"}
        rows = [(signs[c.holds], c.what, c.says) for c in checks]
        screen.print_table(("", "checked", ""), rows, right=())
    if any(check.holds is False for check in checks):
        raise typer.Exit(1)


def _print_plan(planned: PlannedRelease, as_json: bool) -> None:
    if as_json:
        screen.print_json(planned.to_json())
        return
    screen.print_text(planned.declared.describe())
    stages = zip(planned.stages, planned.shares(), strict=True)
    rows = [(one.name, f"{share:.1%}", one.says) for one, share in stages]
    screen.print_table(("stage", "share", "what"), rows, right=(1,))
    rows_each = screen.plural(planned.rows_per_unit, "row")
    screen.print_text(f"cost {planned.loss}; up to {rows_each} of each")
    screen.print_text(f"{planned.unit}. Nothing was charged.")


def _print_release(
    synopsis: Synopsis, folder: Path, as_json: bool, *, before: bool = False
) -> None:
    made = synopsis.made
    if as_json:
        screen.print_json({"folder": str(folder), **made.certificate()})
        return
    screen.print_text(f"{folder}: {made.declared.describe()}")
    screen.print_text(
        f"made before, free now; it cost {made.loss}" if before else f"cost {made.loss}"
    )
    for note in made.product.notes:
        screen.print_text(note)
    screen.print_text(f"It is a public table: discreet ask about {synopsis.name} is free.")


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _counts(texts: list[str]) -> dict[str, int]:
    found: dict[str, Any] = {}
    for text in texts:
        name, _, count = text.partition("=")
        if not count.strip().isdecimal():
            raise _unreadable(text, "write --cells cost=20, or --totals north/ayr=1200.")
        found[name.strip()] = int(count)
    return found


def _weights(texts: list[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, known, weight = text.partition("=")
        if not known:
            raise _unreadable(text, "write --interest age=5.")
        found[name.strip()] = weight.strip()
    return found


def _unreadable(text: str, fix: str) -> InvalidParameter:
    return InvalidParameter(
        "P4",
        f"{text} is not a name and a number.",
        why="every cell is counted, whether or not anybody is in it.",
        fix=fix,
    )


__all__ = ["app"]
