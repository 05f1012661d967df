"""What every command prints: tables and text of eighty columns, or JSON."""

from __future__ import annotations

import json
import math
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.accounting.loss import Loss
    from discreet.errors import Refusal
    from discreet.publication.told import Told
    from discreet.release.answer import Answer

WIDTH = 80
MOST_ROWS = 40
BAR = 24
FULL, EMPTY = "█", "░"


def console(*, err: bool = False) -> Console:
    """Eighty columns, whatever the terminal; colours only where there is one."""
    made: Console = import_module("rich.console").Console(
        width=WIDTH, highlight=False, markup=False, emoji=False, stderr=err
    )
    return made


def print_text(words: str, *, style: str | None = None, indent: int = 0) -> None:
    """A paragraph, folded between words; no line ends in blanks."""
    out = console()
    whole = import_module("rich.text").Text(words, style or "")
    for line in whole.wrap(out, WIDTH - indent):
        line.rstrip()
        line.pad_left(indent if line else 0)
        out.print(line, soft_wrap=True)


def print_refusal(said: Refusal, *, err: bool = False) -> None:
    """A refusal, folded between words; a question to type instead is one line, to be copied."""
    out = console(err=err)
    if said.rewriting is None:
        out.print(str(said))
        return
    *lines, fix = str(said).rsplit("\nFix: ", 1)
    out.print("".join(lines))
    out.print(f"Fix: {fix}", soft_wrap=True)


def print_table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int]
) -> None:
    """A table; the columns numbered in ``right`` hold numbers."""
    made = import_module("rich.table").Table(
        box=import_module("rich.box").SIMPLE_HEAD, pad_edge=False, show_edge=False
    )
    for index, heading in enumerate(headings):
        made.add_column(heading, justify="right" if index in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(import_module("rich.text").Text(cell) for cell in row))
    console().print(made)


STOPPED = 130
"""The exit code after Ctrl-C, as shells have it."""
STOPPED_WORDS = (
    "stopped. Nothing was shown; if it was paid for already, the same question finishes it "
    "without paying again."
)
_SOON_S = 1.0


@contextmanager
def stoppable() -> Iterator[None]:
    """Let Ctrl-C end the command at once, saying what became of the question."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(STOPPED_WORDS, err=True)
        raise typer.Exit(STOPPED) from None


@contextmanager
def progress_bar() -> Iterator[Callable[[str, float], None] | None]:
    """How far a long question is, on a terminal; a question of a moment shows nothing."""
    if not sys.stderr.isatty():
        yield None
        return
    parts = import_module("rich.progress")
    shown = parts.Progress(
        parts.TextColumn("reading"),
        parts.BarColumn(),
        parts.TaskProgressColumn(),
        parts.TimeElapsedColumn(),
        parts.TextColumn("Ctrl-C stops it"),
        console=console(err=True),
        transient=True,
    )
    begun: list[float] = []
    tasks: list[Any] = []

    def tell(_: str, share: float) -> None:
        if not begun:
            begun.append(time.monotonic())
        if not tasks and time.monotonic() - begun[0] > _SOON_S:
            shown.start()
            tasks.append(shown.add_task("question", total=1.0))
        for task in tasks:
            shown.update(task, completed=share)
        if share == 1:  # the next question has a bar of its own
            shown.stop()
            for task in tasks:
                shown.remove_task(task)
            tasks.clear()
            begun.clear()

    try:
        yield tell
    finally:
        shown.stop()


def bar(share: float) -> str:
    """How much is spent: a bar that is never shown emptier than it is.

    >>> bar(0.11), bar(2.5) == bar(3.5)
    ('███░░░░░░░░░░░░░░░░░░░░░', True)
    """
    filled = min(BAR, _up(share * BAR))
    return FULL * filled + EMPTY * (BAR - filled)


def percent(share: float) -> str:
    """A share in per cent, never shown as less than it is.

    >>> percent(0.204), percent(0.07)
    ('21 %', '7 %')
    """
    return f"{_up(100 * share)} %"


def plural(count: int, noun: str) -> str:
    """A number of things.

    >>> plural(1, "row"), plural(1204, "row")
    ('1 row', '1,204 rows')
    """
    told: str = import_module("discreet.release.display").plural(count, noun)
    return told


def name_program() -> str:
    """What to type for ``discreet`` here: its path, where the shell would not find it."""
    if shutil.which("discreet"):
        return "discreet"
    run = Path.cwd() / sys.argv[0]
    beside = Path(sys.executable).parent / "discreet"
    for found in (run, beside):
        if found.name == "discreet" and found.is_file():
            return shlex.quote(str(_shorten_path(found)))
    return f"{shlex.quote(str(_shorten_path(Path(sys.executable))))} -m discreet"


def _shorten_path(file: Path) -> Path:
    return file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file


def _up(amount: float) -> int:
    return math.ceil(round(amount, 9))  # 0.07 * 100 is a little more than 7


def print_answer(said: Answer, *, confidence: str = "0.95", brief: bool = False) -> None:
    """The table of values and margins, what it cost, and what margins do not tell."""
    cells = import_module("discreet.release.render").table_cells(said, confidence, MOST_ROWS)
    numeric = [column for column, name in enumerate(said.columns) if _numbers(said.column(name))]
    print_table(said.columns, cells, right=numeric)
    more = len(said.rows) - len(cells)
    if more:
        print_text(f"… and {more:,} more rows: --csv or --json shows them all.")
    print_text("")
    decimal_up = import_module("discreet.exact.numbers").decimal_up

    def write(loss: Loss) -> str:
        return f"ε = {decimal_up(loss.epsilon)}" if brief else str(loss)

    share = import_module("discreet.release.display").percent(confidence)
    print_text(f"± at {share} confidence; {said.cost_words(write)}")
    for note in () if brief else said.notes:
        print_text(note)


def print_told(said: Told, *, as_json: bool = False, as_csv: bool = False) -> None:
    """An answer from a release: values with margins, and what kind of margin they have."""
    if as_json:
        print_json(said.to_json())
        return
    if as_csv:
        typer.echo(said.to_csv(), nl=False)
        return
    numeric = [column for column, name in enumerate(said.columns) if _numbers(said.column(name))]
    print_table(said.columns, said.cells(MOST_ROWS), right=numeric)
    more = len(said.rows) - MOST_ROWS
    if more > 0:
        print_text(f"… and {more:,} more rows: --csv or --json shows them all.")
    print_text("")
    for note in said.notes:
        print_text(note)


def _numbers(values: list[Any]) -> bool:
    return all(
        value is None or (isinstance(value, int | float | Fraction) and not isinstance(value, bool))
        for value in values
    )


def print_json(value: Any) -> None:
    """One JSON value and nothing else."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=_plain))


def _plain(value: Any) -> Any:
    """What JSON has no notation for: exact fractions as decimals or ratios, dates as ISO."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "numerator"):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no index in JSON")


__all__ = [
    "bar",
    "console",
    "name_program",
    "percent",
    "print_answer",
    "print_json",
    "print_refusal",
    "print_table",
    "print_text",
    "print_told",
    "progress_bar",
    "stoppable",
]
