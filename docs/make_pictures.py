"""Draw the pictures of the documents anew, from real runs: ``make pictures``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

DOCS = Path(__file__).parent


def run(*arguments: str) -> None:
    """A command of ours, which must work."""
    command = [sys.executable, "-m", "discreet", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603


def draw_home(picture: Path) -> None:
    """The answer of the home page, as the command line draws it."""
    with TemporaryDirectory() as folder:
        run("init", folder, "--sample")
        question = "SELECT city, COUNT(*) AS n FROM patients GROUP BY city"
        run("ask", question, "--epsilon", "0.1", "-s", folder, "--plot", str(picture))


if __name__ == "__main__":
    draw_home(DOCS / "home.svg")
