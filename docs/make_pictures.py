"""Draw the pictures of the documents anew, from real runs: ``make pictures``."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import discreet
from discreet.release.answer import Answer

DOCS = Path(__file__).parent
QUESTION = "SELECT city, COUNT(*) AS n FROM patients GROUP BY city"


def run(*arguments: str) -> None:
    """A command of ours, which must work."""
    command = [sys.executable, "-m", "discreet", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603


def draw_home(folder: Path) -> Answer:
    """The answer of the home page, for light and for dark paper."""
    with TemporaryDirectory() as session:
        run("init", session, "--sample")
        with discreet.open(session) as clinic:
            answer = clinic.ask(QUESTION, epsilon="0.1")
    picture = answer.draw()
    picture.save(folder / "home.svg")
    picture.save(folder / "home-dark.svg", paper="dark")
    return answer


def tell_home(answer: Answer, page: Path) -> None:
    """Let a page show the numbers that the pictures show."""
    text = page.read_text(encoding="utf-8")
    counts = [int(row["n"]) for row in answer.to_pandas().to_dict("records")]
    for city, n in zip(answer.to_pandas()["city"], counts, strict=True):
        text = re.sub(rf"^{city} +[\d,]+ ±", f"{city:<10}{n:>5,} ±", text, flags=re.MULTILINE)
    text = re.sub(r"^[\d,]+ ± 79$", f"{sum(counts):,} ± 79", text, flags=re.MULTILINE)
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    shown = draw_home(DOCS)
    for told in (DOCS / "index.md", DOCS.parent / "README.md"):
        tell_home(shown, told)
