"""What is compared of an output, and what is not: a figure that is no noise is never masked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from masking import CHANCE_OF_PAGES, NEARLY, assert_same, mask_noise

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(?:console|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ASKED = """
city               n
────────────────────
Cork      3,075 ± 30
Faro        948 ± 30

± at 95 % confidence; cost ε = 0.1, ρ = 0.00499584, δ = 0
at most 1 row of each patient_id is counted.
16 records, all in order; the last is 8f33053f23088cef.
"""


def read_outputs(page: str) -> str:
    return "\n".join(BLOCK.findall((ROOT / page).read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("3,075", "2,998"),
        ("8f33053f23088cef", "0123456789abcdef"),
        ("city               n", "city     n"),
        ("─" * 20, "─" * 22),
    ],
)
def test_what_chance_decides_is_not_compared(old, new):
    assert old in ASKED
    assert_same("README.md", ASKED, ASKED.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("948 ± 30", "948 ± 31"),
        ("95 %", "96 %"),
        ("ε = 0.1", "ε = 0.2"),
        ("0.00499584", "0.00499585"),
        ("δ = 0", "δ = 1"),
        ("at most 1 row", "at most 2 row"),
        ("16 records", "17 records"),
        ("Faro ", "Fano "),
        ("3,075 ± 30\n", "3,075\n"),
        ("Faro        948 ± 30\n", ""),
    ],
)
def test_all_else_is(old, new):
    assert old in ASKED
    with pytest.raises(AssertionError):
        assert_same("README.md", ASKED, ASKED.replace(old, new))


@pytest.mark.parametrize(
    ("page", "value", "other"),
    [
        ("README.md", r"\d,\d{3} ± 30", "12 ± 30"),
        ("README.md", r"\b4\d\d ± 30", "-12 ± 30"),
        ("README.md", r"\b(\d{3}) ± 30", r"\g<1>0 ± 30"),
        ("docs/learn/analyst.md", r"\| +\d{4}$", "| 12"),
        ("docs/learn/analyst.md", r"(\d{4}\.0) +\d{4}\.0$", r"\1     0.0"),
        ("docs/learn/engineer.md", r"\[(\d{4}), (\d{3})\]", r"[\2, \1]"),
        ("docs/cookbook/census.md", r"^(county .* 60000 +\d+)\.(\d)", r"\1\2.0"),
        ("docs/cookbook/census.md", r"^(tract .* 60000 +\d+)\.(\d)", r"\1\2.0"),
        ("docs/cookbook/census.md", r"^(block .* 60000 +\d+)\.(\d)", r"\1\2.0"),
        ("docs/cookbook/telemetry.md", r"error (\d+) of", r"error \g<1>0 of"),
        ("docs/cookbook/telemetry.md", r"(\d+) and", r"\g<1>0 and"),
        ("docs/cookbook/page_views.md", r"(\d)\d%", r"\1%"),
        ("docs/cookbook/page_views.md", r"shown: (\d+)", r"shown: \g<1>0"),
        ("docs/cookbook/births.md", r"(grams .* )\d{3}\.(\d\d)$", r"\g<1>75.\2"),
        ("docs/cookbook/births.md", r"(before .* )\d\.(\d\d)$", r"\g<1>6.\2"),
        ("docs/cookbook/mobility.md", r"-(0\.\d{6})$", r"\1"),
    ],
)
def test_a_value_that_no_chance_explains_is_noticed(page, value, other):
    shown = read_outputs(page)
    changed, count = re.subn(value, other, shown, count=1, flags=re.MULTILINE)
    assert count == 1
    assert_same(page, shown, shown)
    with pytest.raises(AssertionError):
        assert_same(page, shown, changed)


def test_of_a_frame_the_margins_stay():
    head, row = "land   page    n  n_margin  n_low  n_high", "  DK page 1 1039  36.0 1003.0  1075.0"
    assert mask_noise(f"{head}\n{row}")[1] == "DK page 1 ~ 36.0 ~ ~"
    assert mask_noise("n n_margin n_low n_high\nday\nshown: 14 of 99 pages")[2] == (
        "shown: 14 of 99 pages"
    )


def test_what_chance_moves_a_little_is_compared_within_a_quarter():
    page, row = "docs/cookbook/payments.md", "352,032 ± 1,611  29.95 ± {}"
    assert_same(page, row.format("0.46"), row.format("0.44"))
    with pytest.raises(AssertionError):
        assert_same(page, row.format("0.46"), row.format("0.60"))


@pytest.mark.parametrize("page", [*CHANCE_OF_PAGES, *NEARLY])
def test_every_exception_of_a_page_is_needed(page):
    """What matches nothing there, or only what is masked anyway, would hide a later figure."""
    shown = read_outputs(page)
    for pattern in (*CHANCE_OF_PAGES.get(page, ()), *NEARLY.get(page, ())):
        assert re.search(pattern, shown, re.MULTILINE), pattern
    assert mask_noise(shown, page) != mask_noise(shown)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", *CHANCE_OF_PAGES, *NEARLY])
def test_no_price_is_masked(page):
    price = re.compile(r"(?<!at least )[ερδ] = (?:∞|\d[\d.]*)(?![\d.]| drawn)")
    shown = read_outputs(page)
    assert price.findall("\n".join(mask_noise(shown, page))) == price.findall(shown)
