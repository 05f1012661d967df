"""The command line: one file for each group of commands, no mathematics in any.

A refusal is printed as its three lines on standard error, with exit code 2;
what a program should read is printed by ``--json``.  Commands import what they
need when they run, so that ``discreet --help`` is quick.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import typer

from discreet.cli import accounting, schema
from discreet.errors import Refusal

app = typer.Typer(
    help="Differential privacy: exact noise, a price and a margin for every answer.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# A number may be negative, which is refused as a number and not as an unknown option.
_numbers = {"ignore_unknown_options": True}
app.command(context_settings=_numbers)(accounting.epsilon)
app.command(context_settings=_numbers)(accounting.compose)
app.add_typer(schema.app, name="schema")


@app.command()
def demo() -> None:
    """Ask a made-up clinic some questions, and see what each answer costs."""
    import_module("discreet.cli.demo").demo()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; ``arguments`` are those of the process unless given."""
    try:
        app(args=arguments)
    except Refusal as refusal:
        typer.echo(str(refusal), err=True)
        sys.exit(2)


__all__ = ["app", "main"]
