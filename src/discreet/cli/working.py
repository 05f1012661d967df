"""Long work on the command line: a bar of progress, and files that are tried before it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from discreet.cli import screen
from discreet.cli.options import unwritable


class work_bar:  # noqa: N801 (read as a function)
    """A bar on standard error; silent where that is no terminal.

    Of one piece of work there is no share that is done: it says only that it goes on.
    """

    def __init__(self, total: int) -> None:
        rich = import_module("rich.progress")
        share = rich.TextColumn("{task.percentage:>3.0f} %")
        self._bar = rich.Progress(
            *([share] if total > 1 else []),
            rich.BarColumn(bar_width=24),
            rich.TextColumn("{task.description}", markup=False),
            console=screen.console(err=True),
            transient=True,
        )
        self._bar.disable = not self._bar.console.is_terminal
        self._task = self._bar.add_task("", total=total if total > 1 else None)

    def __enter__(self) -> Callable[[str, int], None]:
        self._bar.start()
        return self._advance

    def _advance(self, name: str, steps: int) -> None:
        shown = " ".join(name.split())
        text = shown if len(shown) <= 40 else f"{shown[:39]}…"
        self._bar.update(self._task, advance=steps, description=text)

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


def check_writable(file: Path) -> None:
    """Refuse a file that cannot be written now rather than after the work."""
    new = not file.exists()
    try:
        with file.open("a", encoding="utf-8"):
            pass
    except OSError as error:
        raise unwritable(file, error) from None
    if new:
        file.unlink()


def save(file: Path, text: str, *, private: bool = False) -> None:
    """Write ``text`` to ``file``, or refuse; ``private``: nobody else there may read it."""
    try:
        if private:
            file.touch(mode=0o600)
            file.chmod(0o600)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise unwritable(file, error) from None


__all__ = ["check_writable", "save", "work_bar"]
