"""The table of ``engines.md``: which functions each engine refuses, from its printer.

    python docs/make_refusals.py

Every function is written in every way that the tests know to call it; nothing is run.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "engines.md"
_TABLE = re.compile(r"(?<=<!-- refused -->\n).*?(?=<!-- end of refused -->)", re.DOTALL)

if str(ROOT / "tests") not in sys.path:
    sys.path.append(str(ROOT / "tests"))

from poison import COLUMNS, DOMAINS  # noqa: E402
from sqlglot import exp  # noqa: E402
from test_functions import calls  # noqa: E402

from discreet.engine.postgres.printer import PostgresPrinter  # noqa: E402
from discreet.engine.printing import Printer  # noqa: E402
from discreet.engine.spark.printer import SparkPrinter  # noqa: E402
from discreet.engine.typed import OF_KIND, Typed  # noqa: E402
from discreet.errors import QuestionRefusal  # noqa: E402
from discreet.question.functions import FUNCTIONS, render  # noqa: E402

PRINTERS: tuple[type[Printer], ...] = (PostgresPrinter, SparkPrinter)
SCOPE = {None: {name: Typed("", OF_KIND[c.kind]) for name, c in COLUMNS.items()}}


def describe(printer: type[Printer], rendered: list[exp.Expr]) -> str:
    """What an engine refuses of a function, in all ways to call it; empty if nothing."""
    reasons, written = set(), False
    for node in rendered:
        try:
            printer({}).node(node, SCOPE)
            written = True
        except QuestionRefusal as refusal:
            reasons.add(refusal.what.partition("does not compute ")[2].rstrip("."))
    if not reasons:
        return ""
    return "; ".join(sorted(reasons)) if written else "always"


def table() -> str:
    """Every function that some engine refuses, and of what."""
    engines = [printer.name for printer in PRINTERS]
    lines = [f"| function | {' | '.join(engines)} |", f"| {' | '.join(['---'] * 3)} |"]
    for name, function in sorted(FUNCTIONS.items()):
        rendered = [render(call, DOMAINS) for call in calls(name)]
        found = [describe(printer, rendered) for printer in PRINTERS]
        if any(found):
            usage = function.usage.replace("|", "\\|")
            lines.append(f"| `{usage}` | {' | '.join(found)} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """The page with the table as it is now."""
    made = table()
    return _TABLE.sub(lambda _: made, PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
