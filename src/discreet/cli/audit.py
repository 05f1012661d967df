"""``discreet audit``: does this installation, and this session, keep what it promises?"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import screen
from discreet.cli.options import open_planner
from discreet.cli.working import check_writable, save, work_bar

if TYPE_CHECKING:
    from discreet.audit.installation import Task
    from discreet.audit.report import Report

FOUND = 1
"""The exit code when a promise was found broken."""

_COLUMNS = ("proved", "consistent", "undecided", "broken")
"""The verdicts, in the order of the table on the screen."""

Folder = Annotated[
    Path | None,
    typer.Argument(metavar="DIRECTORY", help="A session: its schema and history, too."),
]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer samples, known bugs by proof only.")]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page to file.")]
JsonFile = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write it as JSON.")]


def audit(
    directory: Folder = None, quick: Quick = False, html: Html = None, json_file: JsonFile = None
) -> None:
    """Audit this installation, and a session if one is given.

    Of a session, its schema and the questions it was asked.  Ends with 0 if nothing was
    found, with 1 if a promise was found broken.
    """
    for file in (html, json_file):
        if file is not None:
            check_writable(file)
    report = run_audit(directory, quick=quick)
    if html is not None:
        save(html, report.to_html())
    if json_file is not None:
        save(json_file, json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n")
    _show(report, [file for file in (html, json_file) if file is not None])
    if not report.clean:
        raise typer.Exit(FOUND)


def run_audit(directory: Path | None = None, *, quick: bool = False) -> Report:
    """Run everything, with a bar of progress on standard error."""
    installation = import_module("discreet.audit.installation")
    reports = import_module("discreet.audit.report")
    zoo = import_module("discreet.audit.zoo")
    started, clock = datetime.now(UTC), time.perf_counter()
    tasks: list[Task] = [
        *installation.mechanism_tasks(quick=quick),
        *installation.noise_tasks(quick=quick),
        *installation.question_tasks(quick=quick),
    ]
    subject = "this installation"
    if directory is not None:
        tasks += _session_tasks(directory, quick=quick)
        subject = f"this installation and the session {directory.resolve().name}"
    specimens = [one for one in zoo.animals() if one.check.deterministic or not quick]
    with work_bar(len(tasks) + len(specimens)) as advance:
        checks = [_run_tasks(advance, task.subject, installation.run_task, task) for task in tasks]
        seen = [_run_tasks(advance, one.name, zoo.examine, one) for one in specimens]
    walk = zoo.Walk(tuple(seen), samples=zoo.SAMPLES)
    took = time.perf_counter() - clock
    report: Report = reports.Report(
        subject, tuple(checks), walk, started, took, quick, reports.environment()
    )
    return report


def _session_tasks(directory: Path, *, quick: bool) -> Sequence[Task]:
    """The questions in the session's history; its private tables are never opened."""
    tasks = import_module("discreet.audit.installation").session_tasks
    with open_planner(directory) as curator:
        history = [entry.question for entry in curator.transcript() if entry.question]
        find_sources = import_module("discreet.curate.session").find_sources
        public = {
            name: source
            for name, source in find_sources(directory, curator.schema).items()
            if curator.schema.tables[name].public
        }
        found: Sequence[Task] = tasks(curator.schema, history, public=public, quick=quick)
    return found


def _run_tasks(
    advance: Callable[[str, int], None], name: str, work: Callable[..., Any], *given: Any
) -> Any:
    advance(name, 0)
    result = work(*given)
    advance(name, 1)
    return result


def _show(report: Report, files: Sequence[Path]) -> None:
    parts: dict[str, list[Any]] = {}
    for one in report.checks:
        parts.setdefault(one.part, []).append(one.finding)
    rows = [
        (name, str(len(found)), *(str(sum(one.verdict == v for one in found)) for v in _COLUMNS))
        for name, found in parts.items()
    ]
    names = ("part", "checks", "proved", "nothing found", "undecided", "broken")
    screen.print_table(names, rows, right=(1, 2, 3, 4, 5))
    screen.print_text("")
    for one in report.broken:
        screen.print_text(f"BROKEN  {one.finding.sentence}", style="bold red")
    if report.zoo is not None:
        screen.print_text(f"The auditor itself: {report.zoo.sentence}")
        for seen in (*report.zoo.missed, *report.zoo.false_alarms):
            screen.print_text(f"  {'accused' if seen.found else 'missed'}: {seen.animal.name}")
    screen.print_text(report.sentence, style="bold")
    for file in files:
        screen.print_text(f"Written to {file}.")


__all__ = ["FOUND", "audit", "run_audit"]
