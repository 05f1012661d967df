"""Every fix of every refused golden question, at the click of its button on the page."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from golden_session import QUESTIONS, make_home
from patience import PATIENCE_MS
from playwright.sync_api import Error, Page, Route, expect
from served import Served, serve_session

from discreet.curate import session
from discreet.lab.chapters import find_chapter
from discreet.lab.report import run_chapters
from discreet.ledger.keys import new_key

ARTEFACTS = Path(__file__).parents[2] / "test-artifacts" / "page"
expect.set_options(timeout=PATIENCE_MS)
AT_ONCE = """const later = window.setTimeout.bind(window);
window.setTimeout = (work, ms, ...more) => later(work, Math.min(ms, 1), ...more);"""
"""The page waits a moment while somebody types; a program does not type."""

CLICK = """async ({ questions, most, patience }) => {
  const area = document.getElementById("sql");
  const price = document.querySelector("[aria-label='Price'] .price");
  const delta = [...document.querySelectorAll("label")].find((l) => l.textContent.startsWith("δ"));
  const type = (box, text) => { box.value = text; box.dispatchEvent(new Event("input")); };
  const told = () => new Promise((found, failed) => {
    const look = () => price.querySelector(".refusal, .cost");
    if (look()) return found(look());
    const late = setInterval(() => failed(new Error("nothing was said")), patience);
    const seen = new MutationObserver(() => {
      if (look()) { seen.disconnect(); clearInterval(late); found(look()); }
    });
    return seen.observe(price, { childList: true, subtree: true });
  });
  const results = [];
  for (const question of questions) {
    const offered = document.getElementById(delta.htmlFor);
    if (offered.value) type(offered, "");
    price.replaceChildren();
    type(area, question);
    const pressed = [];
    let card = await told();
    while (card.matches(".refusal") && pressed.length < most) {
      const button = card.querySelector("button.fix");
      if (!button) break;
      pressed.push(button.textContent);
      price.replaceChildren();
      button.click();
      card = await told();
    }
    results.push({ question, pressed, accepted: card.matches(".cost"), said: card.textContent });
  }
  return results;
}"""


def sign_in(page: Page, served: Served) -> None:
    page.set_default_timeout(PATIENCE_MS)
    page.goto(served.url)
    page.get_by_label("Your key").fill(served.key)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Ask")).to_be_visible()


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Any:
    home = make_home(tmp_path_factory.mktemp("golden") / "clinic")
    with closing(session.open(home, opened=False)) as opened:
        key = new_key(opened.account, "curator")
    with serve_session(home, key) as served:
        yield served


def test_every_fix_is_a_button_that_works(browser, golden):
    page = browser.new_page()
    raised: list[str] = []
    page.on("pageerror", lambda error: raised.append(str(error)))
    page.add_init_script(AT_ONCE)
    sign_in(page, golden)
    page.get_by_label("Amount").fill("0.5")
    given = {"questions": QUESTIONS, "most": 3, "patience": PATIENCE_MS}
    found = page.evaluate(CLICK, given)
    pressed = [one for one in found if one["pressed"]]
    assert len(pressed) > 180
    assert [one for one in pressed if not one["accepted"]] == []
    assert {one["pressed"][0] for one in pressed} == {"Use this instead"}
    assert {press for one in pressed for press in one["pressed"][1:]} == {"Offer δ = 1e-9"}
    for one in found:  # there is nothing to press where there is nothing that would be accepted
        if not one["accepted"]:
            assert "Instead: none" in one["said"] or "declare" in one["said"]
    assert raised == []
    page.close()


def test_a_late_price_does_not_stand_where_a_refusal_is_told(browser, golden):
    page = browser.new_page()
    sign_in(page, golden)
    price = page.get_by_label("Price", exact=True)
    expect(price).to_contain_text("Price ε")
    late: list[Route] = []
    page.route("**/explain", lambda route: late.append(route))  # noqa: PLW0108 (no builtin may be one)
    # More than is left: it has a price, and is refused when it is asked.
    page.get_by_label("Amount").fill("5000")
    with page.expect_request("**/explain"):
        page.get_by_label("Your question, in SQL").fill("SELECT COUNT(*) AS n FROM visits")
    page.get_by_role("button", name="Ask").click()
    expect(price.get_by_role("alert")).to_contain_text("B1")
    for route in late:
        with suppress(Error):  # it was given up
            route.continue_()
    page.wait_for_timeout(300)
    expect(price.get_by_role("alert")).to_contain_text("B1")
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pictures_of_the_lab_are_under_what_epsilon_means(browser, golden, scheme):
    page = browser.new_page(viewport={"width": 390, "height": 900}, color_scheme=scheme)
    sign_in(page, golden)
    page.get_by_role("link", name="What ε means").click()
    seen = page.get_by_label("Seen in the lab")
    expect(seen.get_by_role("img")).to_have_count(3)
    seen.scroll_into_view_if_needed()
    for picture in seen.get_by_role("img").all():
        picture.scroll_into_view_if_needed()
        page.wait_for_function(
            "(one) => one.complete && one.naturalWidth > 0", arg=picture.element_handle()
        )
        assert scheme in picture.evaluate("(one) => one.currentSrc")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.screenshot(path=ARTEFACTS / f"lab-phone-{scheme}.png", full_page=True)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.screenshot(path=ARTEFACTS / f"lab-desk-{scheme}.png", full_page=True)
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_of_the_lab_fits_a_phone_and_uses_a_desk(browser, tmp_path, scheme):
    """Figures in a table keep apart on a phone; two pictures stand side by side on a desk."""
    seen = run_chapters([find_chapter("simulate")])
    (tmp_path / "lab.html").write_text(seen.to_html(), "utf-8")
    page = browser.new_page(viewport={"width": 390, "height": 900}, color_scheme=scheme)
    page.set_default_timeout(PATIENCE_MS)
    page.goto((tmp_path / "lab.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    cells = page.locator("td.n")
    assert cells.count() == 8
    assert cells.evaluate_all("(all) => all.every((one) => one.scrollWidth <= one.clientWidth)")
    over, under = (one.bounding_box() for one in page.locator("figure").all())
    assert over["x"] == under["x"]
    page.screenshot(path=ARTEFACTS / f"lab-report-phone-{scheme}.png", full_page=True)
    page.set_viewport_size({"width": 1440, "height": 900})
    left, right = (one.bounding_box() for one in page.locator("figure").all())
    assert left["x"] + left["width"] < right["x"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 1440
    shown = [page.locator(f"figure .{paper}").first.is_visible() for paper in ("light", "dark")]
    assert shown == [scheme == "light", scheme == "dark"]
    page.screenshot(path=ARTEFACTS / f"lab-report-desk-{scheme}.png", full_page=True)
    page.close()
