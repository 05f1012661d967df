"""The command line: one file for each group of commands, no mathematics in any.

A refusal is printed as its three lines on standard error (as JSON after
``--json``), with exit code 2.  Commands import what they need when they run, so
that ``discreet --help`` is quick.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from discreet.cli import (
    accounting,
    accounts,
    analysts,
    asking,
    audit,
    lab,
    ledgers,
    releases,
    schema,
    screen,
    serve,
    starting,
    survey,
    watching,
)
from discreet.cli.options import CURATOR, HERE, Analyst, Home, open_curator
from discreet.errors import Refusal

REFUSED = 2
"""The exit code of every refusal, and of a command line that is not understood."""
FAILED = 1
"""The exit code of what should not happen."""

app = typer.Typer(
    help="Differential privacy: exact noise, a price and a margin for every answer.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# A number may be negative, which is refused as a number and not as an unknown option.
_numbers = {"ignore_unknown_options": True}
app.command()(starting.init)
app.add_typer(schema.app, name="schema")
app.command()(asking.ask)
app.command()(asking.explain)
app.command()(asking.price)
app.command()(watching.watch)
app.command()(watching.interview)
app.command()(watching.learn)
app.command()(watching.choose)
app.command()(watching.quality)
app.command()(watching.median)
app.command()(accounts.balance)
app.command()(accounts.transcript)
app.command()(accounts.renew)
app.add_typer(analysts.app, name="analyst")
app.add_typer(ledgers.app, name="ledger")
app.command()(ledgers.backup)  # by hand at night, and by a timer: a short name
app.command()(starting.prepare)
app.add_typer(releases.app, name="release")
app.command()(serve.serve)
app.command()(audit.audit)
app.command()(lab.lab)
app.add_typer(survey.app, name="survey")
app.add_typer(survey.local, name="local")


def _tell_version(asked: bool) -> None:
    if asked:
        from discreet import __version__

        typer.echo(f"discreet {__version__}")
        raise typer.Exit


@app.callback()
def start(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Differential privacy: exact noise, a price and a margin for every answer."""


@app.command()
def shell(
    epsilon: Annotated[
        str, typer.Option(metavar="AMOUNT", help="What each question offers at first.")
    ] = "0.1",
    analyst: Analyst = CURATOR,
    yes: Annotated[bool, typer.Option("--yes", help="Pay without asking me.")] = False,
    session: Home = HERE,
) -> None:
    """Ask question after question, seeing each price before paying."""
    with (
        screen.stoppable(),
        screen.progress_bar() as progress,
        open_curator(session, progress=progress) as curator,
    ):
        import_module("discreet.cli.shell").shell(
            curator, home=session, analyst=analyst, epsilon=epsilon, yes=yes
        )


app.command(context_settings=_numbers)(accounting.epsilon)
app.command(context_settings=_numbers)(accounting.compose)


@app.command()
def demo() -> None:
    """Ask a made-up clinic ten questions, and see what they cost."""
    import_module("discreet.cli.demo").demo()


def _print_refusal(refusal: Refusal, *, as_json: bool) -> None:
    """A refusal on standard error: three lines, folded between words for a person."""
    refusal = refusal.translate("command")
    if as_json:
        typer.echo(json.dumps(refusal.to_json(), ensure_ascii=False), err=True)
    elif sys.stderr.isatty():
        screen.print_refusal(refusal, err=True)
    else:
        typer.echo(str(refusal), err=True)


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    """A warning on standard error, without the line of the program that gave it."""
    typer.echo(f"warning: {message}", err=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; ``arguments`` are those of the process unless given."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    # Read when numpy is imported.  Our matrices are small: on busy processors the threads of
    # OpenBLAS wait for each other far longer than one of them works.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _print_warning
            app(args=given)
    except Refusal as refusal:
        _print_refusal(refusal, as_json="--json" in given)
        sys.exit(REFUSED)
    except BrokenPipeError:  # the reader of our output left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
    except Exception as error:
        if os.environ.get("DISCREET_TRACEBACK"):
            raise
        # The text of an exception may quote what people's rows hold.
        typer.echo(
            f"discreet failed ({type(error).__name__}). This is a mistake of the program: please "
            "report it. DISCREET_TRACEBACK=1 shows more, perhaps of the data, too.",
            err=True,
        )
        sys.exit(FAILED)


__all__ = ["app", "main"]
