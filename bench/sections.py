"""The sections of docs/benchmarks.md: what each runs, and how what is printed gets there.

Some need data or programs that are not part of this repository: the folder of the data is
``DISCREET_BENCH_DATA`` (adult.csv, adult-domain.json, acs_national2019.csv), the Pythons that have
dpmm and OpenDP ``DISCREET_BENCH_DPMM`` and ``DISCREET_BENCH_OPENDP``, the folder of an environment
with Tumult (made there if it is not) ``DISCREET_BENCH_TUMULT``.
"""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"

SECTIONS: dict[str, list[str]] = {
    "noise": ["noise"],
    "accounting": ["accounting"],
    "mechanisms": ["mechanisms"],
    "selection": ["selection"],
    "keys": ["keys"],
    "least": ["least"],
    "ask": ["ask"],
    "engine": ["engine"],
    "questions": ["questions"],
    "accuracy": ["accuracy"],
    "coverage": ["coverage"],
    "hashing": ["hashing"],
    "spark": ["spark"],
    "large": ["large"],
    "graphs": ["graphs"],
    "ledger": ["ledger"],
    "reach": ["reach"],
    "watching": ["watching", "--rows", "10000000", "--questions", "100000", "--together", "10000"],
    "watching-law": ["watching", "--rows", "10000000", "--law", "400"],
    "watching-groups": ["watching", "--rows", "10000000", "--questions", "100000", "--grouped"],
    "yardsticks": ["yardsticks", "--rows", "10000000", "--requests", "2560", "--questions", "192"],
    "server": ["server"],
    "local": ["local"],
    "local-errors": ["local_errors", "--rounds", "100"],
    "local-shapes": ["local_shapes"],
    "publication": ["publication", "--repeats", "5"],
    "publication-large": ["publication", "--large", "1000000"],
    "publication-margins": ["publication", "--margins", "20"],
    "publication-peers": ["publication_peers"],
    "imports": ["imports"],
    "known": ["known", "--tables", "prepared"],
    "known-files": ["known", "--tables", "file"],
    "known-rho": ["known", "--tables", "prepared", "--rho"],
    "known-rho-files": ["known", "--tables", "file", "--rho"],
    "known-bound": ["known", "--bound"],
    "fitting": ["fitting", "--runs", "60"],
}


def write_section(name: str, printed: str, stamp: str) -> None:
    """Put what was printed between the two marks of a section, and when and where it was."""
    first, last = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    marked = re.compile(f"{re.escape(first)}.*?{re.escape(last)}", re.DOTALL)
    page = PAGE.read_text(encoding="utf-8")
    if not marked.search(page):
        raise LookupError(f"{PAGE.name} has no section {name}")
    body = f"{first}\n\n*{stamp}*\n\n{format_printed(printed)}\n\n{last}"
    PAGE.write_text(marked.sub(lambda _: body, page), encoding="utf-8")


def format_printed(printed: str) -> str:
    """Paragraphs and tables as they are; what is laid out with blanks, in a block."""
    parts = re.split(r"\n\s*\n", printed.strip("\n"))
    return "\n\n".join(
        f"```text\n{part}\n```" if re.search(r"^ {2}", part, re.MULTILINE) else part
        for part in parts
    )
