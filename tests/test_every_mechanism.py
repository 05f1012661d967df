"""Every mechanism, asked by an analyst: the page docs/every-mechanism.md says what happens.

``python tests/test_every_mechanism.py`` writes the page anew; read the diff.
"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

import discreet
from discreet.curate import aggregating

PAGE = Path(__file__).parents[1] / "docs" / "every-mechanism.md"
SCHEMA = """
[tables.visits]
unit = "patient"
max_rows_per_unit = 1
columns.patient = "integer"
columns.ward = { type = "text", values = ["east", "north", "west"], nullable = false }
columns.age = { type = "integer", bounds = [0, 110] }
columns.stay = { type = "integer", bounds = [0, 60] }
columns.street = "text"
[tables.ill]
unit = "patient"
max_rows_per_unit = 20
columns.patient = "integer"
columns.condition = { type = "text", values = ["asthma", "flu", "gout", "mumps"], nullable = false }
"""
ANY = "SELECT COUNT(*) FROM visits"
WARDS = "SELECT ward, COUNT(*) FROM visits GROUP BY ward"


def sql(text: str, **offer: object) -> tuple[str, str]:
    """A question: the line that asks it, and the line that explains it."""
    said = ", ".join(f"{name}={value!r}" for name, value in offer.items())
    return f'clinic.ask("{text}", {said})', f'clinic.explain("{text}", {said})'


def other(method: str, arguments: str) -> tuple[str, str]:
    """What is no question: ``clinic.method(...)``, explained by ``clinic.explain_method(...)``."""
    return f"clinic.{method}({arguments})", f"clinic.explain_{method}({arguments})"


CHECK = "{'old': {'table': 'visits', 'property': 'maximum', 'column': 'age', 'bound': 99}}"
CASES: dict[str, tuple[str, str]] = {
    "Laplace, on a count": sql(f"{ANY} WHERE age > 3", epsilon="0.5"),
    "Staircase, on a sum": sql("SELECT SUM(stay) FROM visits WHERE age > 4", epsilon=5),
    "Gaussian, on a count": sql(f"{ANY} WHERE age > 5", rho="0.1"),
    "Histogram": sql(WARDS, epsilon="0.5"),
    "KeyRelease": sql(
        "SELECT street, COUNT(*) FROM visits GROUP BY street", epsilon=1, delta="1e-9"
    ),
    "Quantiles": sql("SELECT MEDIAN(age) FROM visits", epsilon="0.5"),
    "private ends": sql("SELECT AVG(stay, contribution_bounds => AUTO) FROM visits", epsilon=1),
    "Moments of one column": sql("SELECT VARIANCE(age) FROM visits", epsilon="0.5"),
    "Moments of many columns": sql("SELECT COVAR_MATRIX(age, stay) FROM visits", epsilon=2),
    "TopK of rows": sql("SELECT MODE(condition) FROM ill", epsilon="0.5"),
    "TopK of people": sql("SELECT MODE(DISTINCT condition) FROM ill", epsilon="0.5"),
    "PermuteAndFlip": other("choose", f'"{WARDS}", epsilon="0.1"'),
    "ExponentialMechanism": other("choose", f'"{WARDS}", rho="0.01"'),
    "TopK with counts": other("choose", f'"{WARDS}", k=2, counts=True, epsilon="0.1"'),
    "AboveThreshold": (
        'clinic.watch(threshold=500, epsilon="0.5")',
        f'clinic.explain_watch("{ANY}", threshold=500, epsilon="0.5")',
    ),
    "Sparse": (
        "clinic.watch(threshold=500, epsilon=1, at_most=3)",
        f'clinic.explain_watch("{ANY}", threshold=500, epsilon=1, at_most=3)',
    ),
    "NumericSparse": (
        "clinic.watch(threshold=500, epsilon=1, at_most=3, numbers=True)",
        f'clinic.explain_watch("{ANY}", threshold=500, epsilon=1, at_most=3, numbers=True)',
    ),
    "AdaptiveLaplace": (
        'clinic.interview(sensitivity=4, epsilon="0.5")',
        f'clinic.explain_interview("{ANY}", "{WARDS}", sensitivity=4, epsilon="0.5")',
    ),
    "PropertyDistance": other("quality", f'{CHECK}, epsilon="0.5"'),
    "PropertyDistance, in SQL": sql(
        "SELECT DISTANCE_TO_SORTED(stay, age) AS late FROM visits", epsilon="0.5"
    ),
    "PropertyDistance, of several rows a person": sql(
        "SELECT DISTANCE_TO_DEPENDENCY(condition, patient) AS several FROM ill", epsilon="0.5"
    ),
    "SmoothMedian": other(
        "robust_median", '"SELECT MEDIAN(stay) FROM visits", epsilon=1, delta="1e-9"'
    ),
    "ProposeTestRelease": other(
        "robust_median", '"SELECT MEDIAN(stay) FROM visits", epsilon=1, delta="1e-9", bound=2'
    ),
    "SubsampleAggregate": (
        'clinic.aggregate(mean_stay, "visits", epsilon=2, output_bounds=(0, 60), blocks=10)',
        'clinic.explain_aggregate("visits", epsilon=2, output_bounds=(0, 60), blocks=10)',
    ),
}


def mean_stay(frame):
    """The curator's own."""
    return float(frame["stay"].mean())


def shorten(explanation: str) -> list[str]:
    """What is said of price and margin: not the engine's own statement."""
    kept = explanation.split("\n\nCREATE VIEW", maxsplit=1)[0].split("\n\nWITH ", maxsplit=1)[0]
    return [line.rstrip() for line in kept.splitlines()]


def describe(clinic: discreet.Curator, asked: str, explained: str) -> list[str]:
    """One mechanism: its line, its explanation, what the ledger says."""
    names = {"clinic": clinic, "mean_stay": mean_stay}
    said = shorten(str(eval(explained, names)))
    eval(asked, names)
    entry = clinic.transcript()[-1]
    question = re.sub(r"code [0-9a-f]+", "code …", entry.question)  # which Python's version decides
    return [
        "```text",
        asked,
        "```",
        "",
        "```text",
        *said,
        "```",
        "",
        f"In the ledger: `{question}`, {entry.loss}.",
        "",
    ]


def write_page() -> str:
    rows = [(n, ["east", "north", "west"][n % 3], n % 100, n % 50, f"s{n % 5}") for n in range(900)]
    frame = pd.DataFrame(rows, columns=["patient", "ward", "age", "stay", "street"])
    kinds = ["asthma", "flu", "gout", "mumps"]
    some = [(n, kinds[m]) for n in range(900) for m in range(n % 4)]
    ill = pd.DataFrame(some, columns=["patient", "condition"])
    budget = discreet.Budget(epsilon=60, delta="1e-6")
    lines = [
        "# Every mechanism, as it is asked",
        "",
        "For each mechanism that a curator answers with: one line that an analyst types, what its",
        "explanation says before anything is paid (price and margin), and what the ledger then",
        "holds. This page is written by a test (`tests/test_every_mechanism.py`), on a table of",
        "900 people with one row each, and one of their conditions, up to 20 each. At which doors",
        "each is asked:",
        "[mechanisms](mechanisms.md#how-each-is-asked-of-a-curator).",
        "",
    ]
    with discreet.curator({"visits": frame, "ill": ill}, schema=SCHEMA, budget=budget) as clinic:
        for name, (asked, explained) in CASES.items():
            lines += [f"## {name}", "", *describe(clinic, asked, explained)]
    return "\n".join(lines)


@pytest.fixture
def hurried(monkeypatch):
    """Blocks are not waited for, nor given processes of their own (test_aggregating.py)."""
    monkeypatch.setattr(aggregating, "wait_until", lambda _moment: None)
    monkeypatch.setattr(
        aggregating, "run_block", lambda _code, frame, _limits: [mean_stay(frame.to_pandas())]
    )


def test_the_page_says_what_happens(hurried):
    assert PAGE.read_text(encoding="utf-8") == write_page()


def test_every_mechanism_of_the_table_is_on_the_page():
    """No row of the table of doors is without its example here, but for those without a curator."""
    table = (PAGE.parent / "mechanisms.md").read_text(encoding="utf-8")
    rows = table.split("## How each is asked of a curator")[1].split("\n\n")[1].splitlines()[2:]
    assert len(rows) > 14
    for row in rows:
        _, name, *doors, _ = (cell.strip() for cell in row.split("|"))
        assert any(doors), name
        if "RandomizedResponse" in name or "Disjoint" in name:
            continue
        words = [part.strip("` ") for part in name.replace(" of ", ",").split(",")]
        assert any(word.split()[0] in heading for word in words for heading in CASES), name


if __name__ == "__main__":
    aggregating.wait_until = lambda _moment: None
    PAGE.write_text(write_page(), encoding="utf-8")
