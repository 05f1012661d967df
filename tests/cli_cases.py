"""A session on disk for the tests of the command line, and a way to run commands in process."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.cli import clinic, main

Ran = tuple[int, str, str]
"""Exit code, standard output, standard error."""
Run = Callable[..., Ran]

BY_CITY = "SELECT city, COUNT(*) AS n FROM patients GROUP BY city"
FEW = 400


def runner(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in this process."""

    def command(*arguments: object) -> Ran:
        code: object = 0
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code or 0
        printed = capsys.readouterr()
        return int(str(code)), printed.out, printed.err

    return command


def bytes_for(name: str, count: int = 4_000_000) -> bytes:
    """Bytes to draw from, always the same ones for ``name``."""
    return hashlib.shake_256(name.encode()).digest(count)


def make_session(directory: Path) -> Path:
    """A clinic of a few hundred patients, its account open and empty."""
    from discreet.curate import session
    from discreet.noise import entropy

    with entropy.use_recording(bytes_for("clinic")):
        tables = clinic.make_tables(FEW)
    clinic.write_tables(directory, tables)
    session.init(directory, clinic.SETTINGS)
    return directory


def copied(original: Path, directory: Path) -> Path:
    """The same session elsewhere."""
    return Path(shutil.copytree(original, directory))


def is_refusal(ran: Ran, code: str | None = None) -> bool:
    """Whether it is exit code 2, nothing on standard output, and a refusal's lines beside."""
    status, out, err = ran
    lines = err.splitlines()
    told = (
        len(lines) >= 3
        and any(line.startswith("Why: ") for line in lines)
        and any(line.startswith("Fix: ") for line in lines)
    )
    first = lines[0].split(":")[0] if lines else ""
    return status == 2 and not out and told and (code is None or first == code)
