"""``discreet release``: publish once and for all, check what was published, ask it for free."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import screen
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
    from discreet.curate.preparing import Prepared
    from discreet.publication.synopsis import Synopsis

app = typer.Typer(no_args_is_help=True, help="Publish tables that answer many questions for free.")

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the release.")]
Listed = Annotated[str, typer.Option(metavar="A,B", help="Columns, with commas between.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="What it is called, and asked by.")]


Source = Annotated[str, typer.Option(metavar="TABLE", help="A table, or a SELECT in quotes.")]
Kind = Annotated[
    str, typer.Option(metavar="KIND", help="synthetic, marginals, ranges, prefixes, hierarchy, …")
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
    best: Best = False,
    rows: Size = None,
    cells: Cells = None,
    geography: Geography = None,
    totals: Totals = None,
    steps_per_unit: Steps = None,
    keep: Keep = None,
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
        "cells": _counts(cells or []),
        "geography": geography,
        "totals": _counts(totals or []),
        "steps_per_unit": steps_per_unit,
        "keep": keep or [],
        "best": best,
        "rows": rows,
    }
    if only_plan:
        made = import_module("discreet.publication.declared").Declared.of(name, **declared)
        with open_planner(session) as planner:
            _print_plan(planner.releases.prepare(made), as_json)
        return
    with (
        screen.stoppable(),
        screen.progress_bar() as progress,
        open_curator(session, progress=progress) as curator,
    ):
        synopsis = curator.make_release(name, analyst=analyst, **declared)
    _print_release(synopsis, session / "releases" / name, as_json)


@app.command()
def plan(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The plan, in TOML.")],
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """Divide a price best, or find the least for all targets."""
    agendas = import_module("discreet.publication.agenda")
    with open_planner(session) as curator:
        agenda = agendas.read_agenda(file)
        division = curator.releases.divide(agenda)
    missed = agendas.list_missed(agenda, division)
    name = {"rho": "ρ", "epsilon": "ε"}[division.kind.value]
    if as_json:
        screen.print_json(
            {
                "kind": division.kind.value,
                "total": str(division.total),
                "releases": [
                    {"name": one.name, "amount": str(amount), "within": margin}
                    for one, amount, margin in zip(
                        division.declared, division.amounts, division.margins, strict=True
                    )
                ],
                "curve": division.curve(),
                "least": division.least_curve(),
                "missed": missed,
            }
        )
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
    for line in missed:
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
    agendas = import_module("discreet.publication.agenda")
    handing = import_module("discreet.publication.handover")
    if folder is not None:
        handing.check_place(folder)  # before anything is paid
    with (
        screen.stoppable(),
        screen.progress_bar() as progress,
        open_curator(session, progress=progress) as curator,
    ):
        division = curator.releases.divide(agendas.read_agenda(file))
        made = curator.releases.make_all(division.declared, analyst=analyst)
    if folder is not None:
        handing.write_handover([one.made for one in made], folder)
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
        made = curator.releases.find(name).made
    if as_json:
        screen.print_json(made.certificate())
    else:
        typer.echo(import_module("discreet.publication.report").write_card(made), nl=False)


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


def _print_plan(prepared: Prepared, as_json: bool) -> None:
    if as_json:
        screen.print_json(
            {
                "release": prepared.declared.to_json(),
                "rows_per_unit": prepared.promise.rows_per_unit,
                "loss": str(prepared.loss),
                "stages": [
                    {"name": s.name, "loss": str(s.spend.loss), "says": s.says}
                    for s in prepared.stages
                ],
            }
        )
        return
    screen.print_text(prepared.declared.describe())
    total = sum((float(s.spend.amount) for s in prepared.stages), start=0.0)
    rows = [(s.name, f"{float(s.spend.amount) / total:.1%}", s.says) for s in prepared.stages]
    screen.print_table(("stage", "share", "what"), rows, right=(1,))
    rows_each = screen.plural(prepared.promise.rows_per_unit, "row")
    screen.print_text(f"cost {prepared.loss}; up to {rows_each} of each")
    screen.print_text(f"{prepared.promise.unit}. Nothing was charged.")


def _print_release(synopsis: Synopsis, folder: Path, as_json: bool) -> None:
    made = synopsis.made
    if as_json:
        screen.print_json({"folder": str(folder), **made.certificate()})
        return
    screen.print_text(f"{folder}: {made.declared.describe()}")
    screen.print_text(f"cost {made.loss}")
    for note in made.product.notes:
        screen.print_text(note)
    screen.print_text(f"It is a public table: discreet ask about {synopsis.name} is free.")


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _counts(texts: list[str]) -> dict[str, int]:
    found: dict[str, Any] = {}
    for text in texts:
        name, _, count = text.partition("=")
        if not count.strip().isdigit():
            raise InvalidParameter(
                "P4",
                f"{text} is not a name and a number.",
                why="every cell is counted, whether or not anybody is in it.",
                fix="write --cells cost=20, or --totals north/ayr=1200.",
            )
        found[name.strip()] = int(count)
    return found


__all__ = ["app"]
