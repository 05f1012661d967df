"""The shipped notebooks as a reader opens them: what they showed is kept, and fits the page.

Pictures of them are kept in ``test-artifacts/page``, to be looked at.
"""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import pytest
from looking import ARTEFACTS, WIDTH

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.rglob("*.ipynb"))
ROOM = 960
"""About as wide as a notebook's cells are on a laptop."""
PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ font: 15px system-ui, sans-serif; margin: 0 24px; width: 912px; background: #fff }}
.in {{ background: #f3f4f6; border: 1px solid #d9dce1; padding: 10px 14px; margin: 14px 0 8px }}
pre {{ margin: 0; font: 14px ui-monospace, monospace; white-space: pre-wrap }}
table {{ border-collapse: collapse }} td, th {{ padding: 3px 14px; text-align: right }}
</style>{cells}"""


def draw_output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        return "".join(data["text/html"])
    if "image/svg+xml" in data:
        return "".join(data["image/svg+xml"])
    plain = "".join(output.get("text", data.get("text/plain", "")))
    return f"<pre>{html.escape(plain)}</pre>"


def draw_cell(cell: dict[str, Any]) -> str:
    source = f"<pre>{html.escape(''.join(cell['source']))}</pre>"
    if cell["cell_type"] != "code":
        return source
    return f"<div class=in>{source}</div>" + "".join(map(draw_output, cell["outputs"]))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_a_notebook_showed_is_kept_and_fits(browser, path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    kept = [output for cell in cells for output in cell.get("outputs", ())]
    assert kept
    assert not [output for output in kept if output["output_type"] == "error"]
    page = browser.new_page(viewport={"width": ROOM, "height": 800})
    page.set_content(PAGE.format(cells="".join(map(draw_cell, cells))))
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=ARTEFACTS / f"notebook-{path.stem}.png", full_page=True)
    assert page.evaluate(WIDTH) <= ROOM
    drawn = sum("<svg" in draw_output(output) for output in kept)
    assert page.locator("svg, img").count() >= drawn
    page.close()


def test_answers_are_shown_with_margins_and_a_chart():
    cells = json.loads((EXAMPLES / "first_question.ipynb").read_text(encoding="utf-8"))["cells"]
    shown = [draw_output(one) for cell in cells for one in cell.get("outputs", ())]
    tables = [text for text in shown if "<table" in text]
    assert len(tables) == 2
    assert all(" ± " in text for text in tables)
    assert "<svg" in tables[0]
    assert any("Fix:" in text for text in shown)
