"""Runs whose process is killed: at which step, and the session as the next process finds it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest


class Killed(BaseException):
    """The process ends here."""


def kill_at_step(
    patch: pytest.MonkeyPatch, steps: Sequence[tuple[Any, str]], kill_at: int
) -> list[str]:
    """Count the steps of a run, and die at one of them: before it, or after it."""
    passed: list[str] = []

    def wrap(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def disturbed(*args: Any, **kwargs: Any) -> Any:
            passed.append(f"before {name}")
            if len(passed) == kill_at:
                raise Killed
            found = real(*args, **kwargs)
            passed.append(f"after {name}")
            if len(passed) == kill_at:
                raise Killed
            return found

        patch.setattr(owner, name, disturbed)

    for owner, name in steps:
        wrap(owner, name)
    return passed


def copy_session(home: Path, name: str) -> Path:
    """The same session in a folder of its own."""
    place = home / "copies" / name
    place.mkdir(parents=True)
    for file in ("visits.csv", "discreet.toml", "ledger.sqlite"):
        shutil.copyfile(home / file, place / file)
    return place
