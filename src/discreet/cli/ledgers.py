"""``discreet ledger``: check the account, seal it, copy it, bring it back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli import screen
from discreet.cli.options import HERE, Home, Json

if TYPE_CHECKING:
    from discreet.curate.session import Session
    from discreet.ledger import Ledger, Verification

app = typer.Typer(no_args_is_help=True, help="Check the account, seal it, copy it, bring it back.")

File = Annotated[
    Path, typer.Argument(metavar="FILE", help="Where it is, or will be.", show_default=False)
]


@contextmanager
def _ledger(home: Path, checkpoint: Path | None = None) -> Iterator[Ledger]:
    session: Session = import_module("discreet.curate.session").read(home)
    with session.ledger(checkpoint) as ledger:
        yield ledger


# --- evidence ----------------------------------------------------------------------------------

Exported = Annotated[
    Path | None,
    typer.Argument(metavar="[EXPORT]", help="A file of `ledger export`, instead of the ledger."),
]
Shown = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A checkpoint that it must agree with.")
]
PublicKey = Annotated[
    str | None, typer.Option(metavar="KEY", help="Whose signature checkpoints must bear.")
]


@app.command()
def verify(
    export: Exported = None,
    checkpoint: Shown = None,
    public_key: PublicKey = None,
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """Check every record, from the first to the last."""
    if export is None:
        home = import_module("discreet.curate.session").read(session)
        checked: Verification = home.examine(checkpoint, public_key=public_key)
    else:
        verified = import_module("discreet.ledger").verify_export
        checked = verified(export, checkpoint=checkpoint, public_key=public_key)
    if as_json:
        screen.print_json(
            {
                "ok": checked.ok,
                "records": checked.records,
                "charges": checked.charges,
                "releases": checked.releases,
                "checkpoints": checked.checkpoints,
                "head": checked.head,
                "problems": list(checked.problems),
            }
        )
    else:
        screen.print_text(str(checked))
        if checked.ok and not checked.checkpoints:
            screen.print_text("Whether records after it were cut off, only a checkpoint shows.")
    if not checked.ok:
        raise typer.Exit(2)


@app.command()
def key(file: File, as_json: Json = False) -> None:
    """Make a key that signs checkpoints; keep it away from the ledger."""
    public: str = import_module("discreet.ledger").new_signing_key(file)
    if as_json:
        screen.print_json({"file": str(file), "public_key": public})
        return
    screen.print_text(f"Wrote {file}; only you can read it. Auditors check its signatures with:")
    typer.echo(f"  {public}")


SignedWith = Annotated[
    Path, typer.Option("--key", metavar="FILE", help="The signing key (`ledger key`).")
]
Folder = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Where to put it.", show_default="ledger.sqlite.checkpoints"),
]


@app.command()
def checkpoint(
    key: SignedWith, folder: Folder = None, as_json: Json = False, session: Home = HERE
) -> None:
    """Sign what the ledger says now; give a copy to an auditor."""
    with _ledger(session) as ledger:
        made = ledger.checkpoint(key, folder=folder)
        place = folder or ledger.folder
    if as_json or place is None:  # a ledger on a server has no folder beside it
        screen.print_json(made.to_json())
    else:
        screen.print_text(f"Signed record {made.sequence:,} in {place}.")
        screen.print_text("The ledger will not open again without what it says now.")


# --- copies ------------------------------------------------------------------------------------

Answers = Annotated[
    bool, typer.Option("--answers", help="With the answers, not only their hashes.")
]


@app.command()
def export(
    file: File, answers: Answers = False, as_json: Json = False, session: Home = HERE
) -> None:
    """Write every record as a line of JSON, for an auditor."""
    with _ledger(session) as ledger:
        _print_copied("exported", file, ledger.export(file, answers=answers), as_json)


@app.command()
def backup(file: File, as_json: Json = False, session: Home = HERE) -> None:
    """Copy the ledger, while it is in use, into a new file."""
    with _ledger(session) as ledger:
        _print_copied("copied", file, ledger.backup(file), as_json)


def _print_copied(verb: str, file: Path, records: int, as_json: bool) -> None:
    if as_json:
        screen.print_json({"file": str(file), "records": records})
    else:
        screen.print_text(f"{verb} {records:,} records to {file}.")


Lost = Annotated[str, typer.Option(metavar="WORDS", help="What happened; it is recorded.")]
Newest = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The newest checkpoint that anybody holds.")
]


@app.command()
def restore(
    file: File,
    reason: Lost,
    checkpoint: Newest = None,
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """Begin again from a backup; what is unknown counts as spent."""
    found: Session = import_module("discreet.curate.session").read(session)
    ledgers = import_module("discreet.ledger")
    place = found.ledger_file or found.address
    with ledgers.Ledger.restore(place, file, reason=reason, checkpoint=checkpoint) as ledger:
        checked = ledger.verify()
    if as_json:
        screen.print_json({"ledger": str(place), "records": checked.records})
        return
    screen.print_text(
        f"{checked.records:,} records are back in {place}. Nobody knows what was asked after the "
        "backup was made, so all of every budget counts as spent; `discreet renew` frees blocks "
        "one by one, for a reason."
    )
