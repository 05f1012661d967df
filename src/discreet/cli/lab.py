"""``discreet lab``: the attacks that justify the noise, run here and now."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli import screen
from discreet.cli.working import check_writable, save, work_bar
from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    from discreet.lab.chapters import Chapter
    from discreet.lab.report import Report

BROKEN = 1
"""The exit code when an attack on ours did better than its promise allows."""

OWN = "These figures are exact, and of real people: they belong to whoever holds the data alone."

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="CHAPTER", help="Which chapters; all of them if none is named."),
]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page to file.")]
JsonFile = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write it as JSON.")]


Session = Annotated[
    Path | None,
    typer.Option(
        "--session",
        "-s",
        metavar="DIR",
        help="Attack a copy of some of its people, which charges nothing; for its curator alone.",
    ),
]
OwnTable = Annotated[
    str | None, typer.Option("--table", metavar="NAME", help="Whose people; the first, if none.")
]
SecretTest = Annotated[
    str | None,
    typer.Option("--secret", metavar="TEST", help="What is secret: smoker, or 'age > 60'."),
]
People = Annotated[int, typer.Option("--people", metavar="COUNT", help="How many are copied.")]
Epsilon = Annotated[
    str | None, typer.Option("--epsilon", metavar="AMOUNT", help="Instead of the session's own.")
]


def lab(
    names: Names = None,
    session: Session = None,
    table: OwnTable = None,
    secret: SecretTest = None,
    people: People = 96,
    epsilon: Epsilon = None,
    html: Html = None,
    json_file: JsonFile = None,
) -> None:
    """Attack unprotected systems, and then ours, on made-up people.

    With a session on a copy of its own people, which charges nothing.  Ends with 0 if every attack
    on ours stayed within its promise, with 1 if one did not.
    """
    for file in (html, json_file):
        if file is not None:
            check_writable(file)
    import_module("discreet.lab.clauses").check_solvers()
    if session is None:
        if (table, secret, epsilon) != (None, None, None):
            raise _only_own()
        chapters = import_module("discreet.lab.chapters")
        chosen = [chapters.find_chapter(name) for name in names or ()] or chapters.CHAPTERS
    else:
        chosen = _choose_own(session, names or [], table, secret, people, epsilon)
    own = session is not None
    with work_bar(len(chosen)) as advance:
        report: Report = import_module("discreet.lab.report").run_chapters(
            chosen, advance=advance, warning=OWN if own else ""
        )
    if html is not None:
        save(html, report.to_html(), private=own)
    if json_file is not None:
        told = json.dumps(report.to_json(), indent=2, ensure_ascii=False)
        save(json_file, told + "\n", private=own)
    _show(report)
    for file in (html, json_file):
        if file is not None:
            screen.print_text(f"Written to {file}.")
    if not report.kept:
        raise typer.Exit(BROKEN)


def _choose_own(
    session: Path,
    names: list[str],
    table: str | None,
    secret: str | None,
    people: int,
    epsilon: str | None,
) -> list[Chapter]:
    """The chapters that can be run on a session's own people, and a copy of some of them."""
    from discreet.curate.session import read
    from discreet.exact.numbers import positive

    own = import_module("discreet.lab.own")
    opened = read(session)
    spent = opened.budget.epsilon if epsilon is None else positive(epsilon, name="epsilon")
    if spent is None:
        raise InvalidParameter(
            "P4",
            "this session promises a rho, and the lab's bounds are those of an epsilon.",
            why="an attack is held against the most that the promise allows.",
            fix="say what to promise in the copy: --epsilon 1.",
        )
    copied = own.copy_people(opened, table=table, secret=secret, people=people)
    found: list[Chapter] = own.own_chapters(copied, spent, names)
    if not names:
        for name, why in own.why_not(copied).items():
            screen.print_text(f"Left out, {name}: {why}")
    return found


def _only_own() -> InvalidParameter:
    return InvalidParameter(
        "P4",
        "--table, --secret and --epsilon are about a session's own people.",
        why="the lab's own people do not exist, and their secrets are given.",
        fix="name the session: -s DIR.",
    )


def _show(report: Report) -> None:
    if report.warning:
        screen.print_text(report.warning)
        screen.print_text("")
    for chapter, seen, _ in report.chapters:
        screen.print_text(chapter.title, style="bold")
        rows = [
            (
                f"{one.attack}: {one.target}",
                f"{one.success:.0%}",
                f"{one.baseline:.0%}",
                "" if one.bound is None else f"{one.bound:.0%}",
            )
            for one in seen.outcomes
        ]
        if rows:
            screen.print_table(("attack", "right", "guess", "ε allows"), rows, right=(1, 2, 3))
        for figure in seen.figures:
            screen.print_text(f"{figure[0].upper()}{figure[1:]}.")
        screen.print_text("")


__all__ = ["lab"]
