"""The options that many commands take, each spelled once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    from discreet.curate.curator import Curator

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Home = Annotated[
    Path,
    typer.Option(
        "--session",
        "-s",
        metavar="DIR",
        envvar="DISCREET_SESSION",
        help="The directory with discreet.toml.",
        show_default="the current one",
    ),
]
Analyst = Annotated[
    str, typer.Option("--as", metavar="ANALYST", help="Who asks: whose allocation is charged.")
]
Question = Annotated[str, typer.Argument(metavar="SQL", help="The question.")]
Questions = Annotated[
    Path | None,
    typer.Option(
        "--file", metavar="FILE", help="Ask the questions of a file as one release, for one price."
    ),
]
Epsilon = Annotated[
    str | None, typer.Option(metavar="AMOUNT", help="What to pay, such as 0.1 or 1/3.")
]
Rho = Annotated[
    str | None, typer.Option(metavar="AMOUNT", help="What to pay, as concentrated loss.")
]
Delta = Annotated[
    str | None, typer.Option(metavar="AMOUNT", help="The failure mass that may be paid, too.")
]
Within = Annotated[
    str | None,
    typer.Option(metavar="MARGIN", help="How far off it may be; the least that buys it is paid."),
]
Confidence = Annotated[str, typer.Option(metavar="SHARE", help="How surely the margins hold.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Measure anew, whatever is known already.")]
HERE = Path()
CURATOR = "curator"


@contextmanager
def open_curator(home: Path, **engine: Any) -> Iterator[Curator]:
    """The curator of the session in ``home``, let go of at the end."""
    from discreet.curate.session import open as open_session

    with open_session(home, **engine) as curator:
        former = curator.account.former_budget
        if former is not None:
            typer.echo(
                f"The budget was {former}; it is {curator.budget} from now on, and that is in the "
                "ledger.",
                err=True,
            )
        yield curator


@contextmanager
def open_planner(home: Path) -> Iterator[Curator]:
    """A curator that opens no private source: for what can be said without the data."""
    with open_curator(home, opened=False) as curator:
        yield curator


def unwritable(file: Path, error: OSError) -> InvalidParameter:
    """The refusal for a file that cannot be written."""
    return InvalidParameter(
        "P9",
        f"{file} cannot be written: {error.strerror or 'the disk said no'}.",
        why="nothing was written; no person's data is involved.",
        fix="name a file in a directory that exists and is yours.",
    )
