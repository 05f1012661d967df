"""The golden clinic as a session whose private tables are not there, and what it is refused."""

from __future__ import annotations

import re
from pathlib import Path

from golden_cases import FOLDER, all_cases

from discreet.curate import session

BUDGET = "[budget]\nepsilon = 100\ndelta = 1e-6\n\n"
FAST = "[server]\nrate_per_minute = 1e6\nburst = 100000\n\n"
QUESTIONS = [case.question for case in all_cases() if "refused" in " ".join(case.verdict)]


def make_home(folder: Path, declaration: str | None = None) -> Path:
    """A session of the golden schema, with lines of it declared anew."""
    text = (FOLDER / "clinic.toml").read_text()
    if declaration is not None:
        text = declare(text, declaration)
    tables = re.sub(r"^\[tables\.(\w+)\].*$", r'\g<0>\nsource = "\1.csv"', text, flags=re.M)
    folder.mkdir()
    (folder / "cities.csv").write_text(
        "name,region,people\nyork,north,200000\nleeds,north,500000\nhull,south,250000\n"
    )
    top, rest = ("", tables)
    if declaration is not None and not declaration.startswith("["):
        top, _, rest = tables.partition("\n")
    session.init(folder, f"{top}\n{BUDGET}{FAST}{rest}")
    return folder


def declare(schema: str, declaration: str) -> str:
    """The schema with the lines of a declaration: in the place of what they declare, or new."""
    if not declaration.startswith("["):
        return f"{declaration}\n{schema}"
    section, line = declaration.replace("LOW", "0").replace("HIGH", "100000").split("\n")
    name = line.partition(" ")[0]
    before, _, after = schema.partition(f"{section}\n")
    own, mark, rest = after.partition("\n[")
    lines = [part for part in own.split("\n") if part.partition(" ")[0] != name]
    return "".join([before, section, "\n", line, "\n", "\n".join(lines), mark, rest])
