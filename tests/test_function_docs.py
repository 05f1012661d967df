"""docs/functions.md lists every function: `python tests/test_function_docs.py` writes it anew."""

from __future__ import annotations

from pathlib import Path

from discreet.question.functions import FUNCTIONS

PAGE = Path(__file__).parent.parent / "docs" / "functions.md"
HEAD = """\
# Functions

Every function that may stand in an expression. None can fail on any row: where there is no value,
the value is NULL. Arguments that are NULL make the result NULL, except where the meaning says
otherwise. Any other function is refused.

Whole numbers are exact while they are known to stay within ±2⁶²; otherwise, and for decimals,
arithmetic is that of doubles. Texts have at most 4096 characters; dates and timestamps lie in the
years 1 to 9999 and have no time zone. Letters outside ASCII change case as the engine's tables say.

CASE WHEN condition THEN a … ELSE b END is the value of the first branch whose condition is true;
BETWEEN is two comparisons.

| name | written | meaning |
| --- | --- | --- |
"""


def page() -> str:
    rows = (
        f"| `{f.name}` | `{f.usage.replace('|', chr(92) + '|')}` | {f.meaning} |\n"
        for f in sorted(FUNCTIONS.values(), key=lambda f: f.name)
    )
    return HEAD + "".join(rows)


def test_the_page_is_the_registry() -> None:
    assert PAGE.read_text() == page()


if __name__ == "__main__":
    PAGE.write_text(page())
