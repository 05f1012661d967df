"""Sentences that promise no more than is kept: about the unit, and about what can be learnt."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import discreet
from discreet.question.ownership import name_units
from discreet.question.schema import Schema
from discreet.server.declared import unit_text

ROOT = Path(discreet.__file__).parents[2]

CALLS = """
[tables.calls]
unit = {unit}
max_rows_per_unit = 3
columns.src = "integer"
columns.dst = "integer"
columns.day = "integer"
columns.minutes = {{ type = "integer", bounds = [0, 60] }}
"""
ROWS = pa.table({name: [1, 2] for name in ("src", "dst", "day", "minutes")})
ASKED = "SELECT COUNT(*) AS n, MAX(minutes) AS longest FROM calls"
PAIR, THREE = "pair (src, dst)", "combination (src, dst, day)"


def calls(unit: str) -> Schema:
    text = CALLS.format(unit=unit)
    return Schema.from_text(
        text.replace("max_rows_per_unit = 3\n", "") if unit == '"row"' else text
    )


@pytest.mark.parametrize(
    ("unit", "named"),
    [
        ('"src"', "src"),
        ('["src", "dst"]', PAIR),
        ('["src", "dst", "day"]', THREE),
        ('"row"', "row of calls"),
        ('["src", "dst"]\nentity = "line"', "line"),
    ],
)
def test_what_is_protected_is_named(unit, named):
    schema = calls(unit)
    with discreet.curator(
        {"calls": ROWS}, schema=schema, budget=discreet.Budget(epsilon=10)
    ) as curator:
        plan = curator.explain(ASKED, epsilon=1)
        answer = curator.ask(ASKED, epsilon=1)
    for text in (str(plan), str(answer), " ".join(answer.notes)):
        assert "person" not in text
        assert f"of each {named} " in text
        assert f"belongs to one {named}, so" in text
        narrow = f"protected is one {named}: whoever has k of them loses k times epsilon, k * k"
        assert (narrow in text) is (unit != '"src"')
    assert answer.certificate["unit"] == named
    assert answer.certificate["promise"] == f"all rows of one {named} added or removed"
    assert plan.to_json()["unit"] == named
    assert name_units(schema) == named
    shown = unit_text(schema.tables["calls"])
    assert shown.startswith(
        "one unit is one row" if unit == '"row"' else f"one unit is one {named}"
    )


def test_several_units_are_all_named():
    both = Schema.from_text(
        CALLS.format(unit='["src", "dst"]')
        + '[tables.people]\nunit = "who"\nmax_rows_per_unit = 1\ncolumns.who = "integer"\n'
    )
    assert name_units(both) == f"{PAIR} or who"
    assert name_units(both, "SELECT SUM(x) FROM People") == "who"
    assert name_units(both, "SELECT COUNT(*) FROM nowhere") == f"{PAIR} or who"


# --- Dalenius' goal, which D06 Theorem 1 refutes ------------------------------------------------

TOO_MUCH = (
    r"bounds? how much (anything )?can be learn\w* about",
    r"without learning about (a|any)",
    r"nothing (can be|is) learn\w* about",
    r"(nobody|no one|no reader) can (tell (from|whether)|learn|become)",
    r"learns? nothing about (a|any|one)",
    r"chance that the promise",
    r"no belief moves",
)
ALLOWED = (
    "That nothing can be learnt about a person: no release",
    "That nothing is learnt about you.",
)


def sentences() -> list[tuple[str, str]]:
    files = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "src" / "discreet").rglob("*.py"),
        *(ROOT / "src" / "discreet" / "server" / "static").iterdir(),
    ]
    return [
        (str(file.relative_to(ROOT)), " ".join(re.sub(r'"\s*\n\s*f?"', "", text).split()))
        for file in files
        if file.suffix in {".md", ".py", ".js", ".html"}
        for text in [file.read_text(encoding="utf-8")]
    ]


@pytest.mark.parametrize("pattern", TOO_MUCH)
def test_no_sentence_promises_what_nothing_can_keep(pattern):
    """What is bounded is what taking part adds; what the data teach about everybody is not."""
    found = [
        (name, text[max(0, at.start() - 60) : at.end() + 60])
        for name, text in sentences()
        for at in re.finditer(pattern, text)
        if not any(text.startswith(said, at.start() - len("That ")) for said in ALLOWED)
    ]
    assert not found


def test_the_page_says_what_epsilon_bounds():
    page = (ROOT / "src/discreet/server/static/meaning.js").read_text()
    assert "ε bounds what one person's taking part adds" in page
    assert "does not bound what the data teach about everybody" in page


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ("SELECT SUM(day) AS total FROM calls", "Q1"),
        ("SELECT COUNT(*) AS n FROM calls a JOIN calls b ON a.src = b.src AND a.dst = b.dst "
         "JOIN calls c ON a.src = c.src AND a.dst = c.dst", "Q45"),
        ("SELECT COUNT(*) AS n FROM calls WHERE minutes > (SELECT AVG(c.minutes) FROM calls c "
         "WHERE c.src <> calls.src)", "Q"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_one_unit_is(asked, code):
    """A pair is not a person: whoever reads the reason should know whom it is about."""
    text = "max_joined_rows_per_unit = 20\n" + CALLS.format(unit='["src", "dst"]')
    schema = Schema.from_text(text)
    budget = discreet.Budget(epsilon=10)
    with discreet.curator({"calls": ROWS}, schema=schema, budget=budget) as curator:
        for ask in (curator.ask, curator.explain, curator.price):
            with pytest.raises(discreet.Refusal, match=code) as told:
                ask(asked, epsilon=1)
            assert "one person" not in str(told.value)
            if code != "Q":
                assert f"one {PAIR}" in str(told.value)
        assert all("one person" not in entry.question for entry in curator.transcript())
