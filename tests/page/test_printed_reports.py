"""The report of a release on paper: as a browser prints it."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from looking import ARTEFACTS
from playwright.sync_api import Browser

import discreet

SCHEMA = """
[tables.visits]
unit = "row"
[tables.visits.columns]
age = { type = "integer", bounds = [0, 149], nullable = false }
"""
BREAKS = """() => {
  const told = [], look = (one, what) => told.push([one.localName, getComputedStyle(one)[what]]);
  const made = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const one of [document.querySelector("thead")]) look(one, "display");
  const row = document.querySelector("tbody tr"), part = document.createElement("section");
  document.body.append(part, made);
  for (const one of [row, part, made]) look(one, "breakInside");
  look(document.querySelector("h2"), "breakAfter");
  part.remove(); made.remove();
  return told;
}"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One with a table of 150 lines."""
    folder = tmp_path_factory.mktemp("printed")
    people = pd.DataFrame({"age": [place % 150 for place in range(600)]})
    budget = discreet.Budget(epsilon=2)
    with discreet.curator({"visits": people}, schema=SCHEMA, budget=budget) as curator:
        asked = ["SELECT age, COUNT(*) FROM visits GROUP BY age"]
        made = curator.plan(asked, name="ages", of="visits", columns=["age"], epsilon=1).made
    from discreet.publication.report import write_report

    (folder / "report.html").write_text(write_report(made), encoding="utf-8")
    return folder / "report.html"


def test_a_report_is_printed_whole_page_by_page(browser: Browser, report: Path) -> None:
    page = browser.new_page()
    page.goto(report.as_uri())
    heads = page.locator("h2").all_inner_texts()
    page.emulate_media(media="print")
    avoid = [["tr", "avoid"], ["section", "avoid"], ["svg", "avoid"], ["h2", "avoid"]]
    assert page.evaluate(BREAKS) == [["thead", "table-header-group"], *avoid]
    printed = page.pdf(prefer_css_page_size=True, outline=True, tagged=True)
    page.close()
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    (ARTEFACTS / "release-report.pdf").write_bytes(printed)
    assert printed.startswith(b"%PDF-")
    assert printed.rstrip().endswith(b"%%EOF")
    sheets = re.findall(rb"/Type /Page\b.*?/MediaBox \[([^]]*)\]", printed, re.DOTALL)
    assert 3 <= len(sheets) <= 8
    sizes = {tuple(round(float(one) / 72 * 25.4) for one in sheet.split()) for sheet in sheets}
    assert sizes == {(0, 0, 210, 297)}
    assert heads[-1] == "What must not be concluded"
    told = [one.decode() for one in re.findall(rb"/Title \(([^)]*)\)", printed)]
    assert [one for one in told if one in heads] == heads  # each stands on some page
