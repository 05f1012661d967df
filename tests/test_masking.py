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
    ("page", "old", "new"),
    [
        ("README.md", "6,859 ± 30", "12 ± 30"),
        ("README.md", "425 ± 30", "-12 ± 30"),
        ("README.md", "948 ± 30", "9,480 ± 30"),
        ("docs/learn/analyst.md", "6907\n", "12\n"),
        ("docs/learn/analyst.md", "6877.0  6937.0", "6877.0     0.0"),
        ("docs/learn/engineer.md", "[6885, 436]", "[436, 6885]"),
        ("docs/cookbook/census.md", "60000         3.2", "60000        32.0"),
        ("docs/cookbook/census.md", "60000         2.7            9.7", "60000  27.0  9.7"),
        ("docs/cookbook/census.md", "60000         2.7           10.4", "60000  27.0  10.4"),
        ("docs/cookbook/telemetry.md", "error 209 of", "error 2090 of"),
        ("docs/cookbook/telemetry.md", "546 and", "5460 and"),
        ("docs/cookbook/page_views.md", "70%", "7%"),
        ("docs/cookbook/page_views.md", "shown: 147", "shown: 1470"),
        ("docs/cookbook/births.md", "126.13", "75.30"),
        ("docs/cookbook/births.md", "4.88", "5.88"),
        ("docs/cookbook/mobility.md", "-0.493700", "0.493700"),
    ],
)
def test_a_value_that_no_chance_explains_is_noticed(page, old, new):
    shown = read_outputs(page)
    assert old in shown
    assert_same(page, shown, shown)
    with pytest.raises(AssertionError):
        assert_same(page, shown, shown.replace(old, new))


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
