"""``discreet init`` and ``discreet prepare``: a session from nothing, and faster questions."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import screen
from discreet.cli.analysts import show_key
from discreet.cli.options import HERE, Home, Json, open_curator, unwritable
from discreet.errors import InvalidParameter, SchemaRefusal

if TYPE_CHECKING:
    from discreet.curate.session import Session

TEMPLATE = """\
# Everything in this file is public: it says who is protected, and how well.
# Fill in what is marked "FILL IN" from what you know, never by looking at the data.

[budget]
epsilon = "FILL IN"            # what one person may lose in all, such as 1
delta = 1e-9

[tables.people]
source = "people.parquet"      # a Parquet, CSV or DuckDB file; it stays where it is
unit = "FILL IN"               # the column(s) that identify one person, or "row"
max_rows_per_unit = "FILL IN"  # how many rows of one person are counted at most

[tables.people.columns]
person_id = { type = "integer" }
age       = { type = "integer", bounds = [0, 120] }
city      = { type = "text", values = ["north", "south"] }
"""

Where = Annotated[
    Path, typer.Argument(metavar="DIR", help="The session.", show_default="the current one")
]
From = Annotated[
    list[Path] | None,
    typer.Option(
        "--from",
        metavar="FILE",
        help="Draft the schema from a Parquet or CSV file; may be repeated.",
    ),
]
Sample = Annotated[bool, typer.Option("--sample", help="Start with a made-up clinic.")]


def init(
    directory: Where = HERE, sources: From = None, sample: Sample = False, as_json: Json = False
) -> None:
    """Start a session: draft discreet.toml, then open its account."""
    session = import_module("discreet.curate.session")
    if sources and sample:
        raise InvalidParameter(
            "P4",
            "both --from and --sample are given.",
            why="a session is about one set of people.",
            fix="leave out one of them.",
        )
    file = directory / session.FILE
    if sample:
        _sample(directory)
        _open_account(directory, as_json, "SELECT COUNT(*) AS n FROM patients")
    elif sources or not file.exists():
        suggest = import_module("discreet.curate.suggest").suggest
        text = suggest(*sources, directory=directory) if sources else TEMPLATE
        session.write(directory, text)
        _print_draft(file, directory, as_json)
    else:
        _open_account(directory, as_json, None)


def _sample(directory: Path) -> None:
    clinic, session = import_module("discreet.cli.clinic"), import_module("discreet.curate.session")
    session.write(directory, clinic.SETTINGS)
    try:
        clinic.write_tables(directory, clinic.make_tables())
    except OSError as error:
        raise unwritable(directory, error) from None


def _print_draft(file: Path, directory: Path, as_json: bool) -> None:
    steps = [
        f'Fill in what is marked "FILL IN" in {file}.',
        f"discreet schema check {file}",
        f"discreet init {directory}",
    ]
    if as_json:
        screen.print_json({"file": str(file), "ledger": None, "key": None, "next": steps})
        return
    screen.print_text(f"Drafted {file}. Next:")
    _steps(steps)


def _open_account(directory: Path, as_json: bool, question: str | None) -> None:
    """Open the account, and show the curator's first key this once."""
    session: Session = import_module("discreet.curate.session").init(directory)
    access = import_module("discreet.ledger.keys")
    with session.curator(opened=False) as curator:
        secret: str = access.new_key(curator.account, "curator")
    ledger = session.ledger_file
    place = "its database" if ledger is None else str(ledger)
    at = "" if directory == HERE else f" -s {directory}"
    steps = [f'discreet ask "{question}" --epsilon 0.1{at}'] if question else []
    steps += [f"discreet balance{at}", f"discreet shell{at}"]
    if as_json:
        shown: dict[str, Any] = {"file": str(directory / "discreet.toml"), "ledger": place}
        screen.print_json(shown | {"key": secret, "next": steps})
        return
    whom = import_module("discreet.question.ownership").name_units(session.schema)
    screen.print_text(f"The account is open in {place}: {session.budget} for each {whom}, in all.")
    show_key("curator", secret)
    screen.print_text("It is for the server; on this machine no key is needed. Next:")
    _steps(steps)


def _steps(steps: list[str]) -> None:
    for step in steps:
        typer.echo(f"  {step}")


Tables = Annotated[
    list[str] | None,
    typer.Argument(metavar="TABLE", help="All private ones if none is named."),
]


Bounding = Annotated[
    str | None,
    typer.Option(
        "--bounding",
        metavar="EPSILON",
        help="Also buy, once for these data, what bounding removes: told in later answers.",
        show_default=False,
    ),
]


Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="Who prepares: duckdb, or spark (where [engine] spark says, else on this machine).",
        show_default=False,
    ),
]


def prepare(
    tables: Tables = None,
    bounding: Bounding = None,
    engine: Engine = None,
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """Bound and index the private tables, for faster questions."""
    with open_curator(session, **_choose_engine(engine, session)) as curator:
        private = [t.name for t in curator.schema.tables.values() if not t.public]
        for name in tables or ():
            if name not in private:
                raise SchemaRefusal(
                    "S6",
                    f"there is no private table {name!r} to prepare.",
                    why="only what belongs to people is bounded.",
                    fix=f"name one of {', '.join(private)}.",
                )
        wanted = tables or private
        if as_json:
            curator.prepare(tables=wanted)
            said = curator.measure_bounding(bounding, tables=wanted) if bounding else ()
            screen.print_json({"prepared": wanted, "bounding": list(said)})
            return
        with _progress() as progress:
            bars = {name: progress.add_task(name, total=1.0) for name in wanted}
            curator.prepare(
                tables=wanted,
                progress=lambda name, done: progress.update(bars[name], completed=done),
            )
        said = curator.measure_bounding(bounding, tables=wanted) if bounding else ()
    screen.print_text(f"prepared: {', '.join(wanted)}")
    for note in said:
        screen.print_text(note)


def _choose_engine(named: str | None, directory: Path) -> dict[str, Any]:
    """Settings by which the named engine prepares."""
    if named is None:
        return {}
    if named == "duckdb":
        return {"spark": None}
    if named != "spark":
        raise InvalidParameter(
            "P4",
            f"there is no engine {named!r} that prepares.",
            why="nothing was read; no person's data is involved.",
            fix="use --engine duckdb or --engine spark.",
        )
    said: Session = import_module("discreet.curate.session").read(directory)
    return {} if "spark" in said.engine else {"spark": "local[*]"}


def _progress() -> Any:
    parts = import_module("rich.progress")
    return parts.Progress(
        parts.TextColumn("{task.description}"),
        parts.BarColumn(),
        parts.TaskProgressColumn(),
        parts.TimeElapsedColumn(),
        console=screen.console(),
    )


__all__ = ["init", "prepare"]
