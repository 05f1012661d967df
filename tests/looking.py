"""Looking at the page as people see it: at every width, on light and dark paper, by its rules.

Pictures of every view and state are kept in ``test-artifacts/page``, to be looked at.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from patience import PATIENCE_MS, PATIENCE_S
from playwright.sync_api import APIResponse, Page, Response, Route, expect
from served import Served

ARTEFACTS = Path(__file__).parents[1] / "test-artifacts" / "page"
WIDTHS = {"phone": 390, "tablet": 1024, "desk": 1440, "wall": 1920}
NARROWEST = 360
HEIGHT = 900
SIZES = ("desk", "tablet", "phone")
LOOKS = tuple((scheme, size) for scheme in ("light", "dark") for size in SIZES)
CHECKED = (("light", "phone"), ("dark", "desk"))
"""Where the rules of accessibility are checked, too."""
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDTH = "document.documentElement.scrollWidth"
PICTURES: dict[Page, list[Response]] = {}
expect.set_options(timeout=PATIENCE_MS)


def sign_in(page: Page, clinic: Served, key: str) -> None:
    page.goto(clinic.url)
    page.get_by_label("Your key").fill(key)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Ask")).to_be_visible()


def compose(page: Page, sql: str, *, epsilon: str = "0.05") -> None:
    page.get_by_label("Your question, in SQL").fill(sql)
    page.get_by_label("Amount").fill(epsilon)


def ask(page: Page) -> None:
    page.get_by_role("button", name="Ask").click()


def drawn(page: Page) -> None:
    """Wait for the pictures that are on their way."""
    expect(page.locator("figure[aria-busy=true]")).to_have_count(0)


def read_picture(page: Page) -> str:
    """What the newest picture of the page holds, as text."""
    expect(page.locator("main img.picture").last).to_be_visible()
    drawn(page)
    return PICTURES[page][-1].text()


def well_made(page: Page, view: str) -> None:
    """Nothing sticks out at any width, the rules of accessibility hold; pictures are kept."""
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    for scheme, size in LOOKS:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.set_viewport_size({"width": WIDTHS[size], "height": HEIGHT})
        page.wait_for_timeout(50)
        drawn(page)
        page.screenshot(path=ARTEFACTS / f"{view}-{size}-{scheme}.png", full_page=True)
        assert page.evaluate(WIDTH) <= WIDTHS[size], (view, size)
        if (scheme, size) in CHECKED:
            found = Axe().run(page).response["violations"]
            told = [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found]
            assert told == [], json.dumps(told, indent=2)
    page.set_viewport_size({"width": NARROWEST, "height": HEIGHT})
    assert page.evaluate(WIDTH) <= NARROWEST, view
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": WIDTHS["desk"], "height": HEIGHT})


class Held:
    """Answers to a path are late, as on a slow line, until they are let go."""

    def __init__(self, page: Page, path: str) -> None:
        self._page = page
        self._late: list[tuple[Route, APIResponse]] = []
        self._gone = False
        page.route(path, self._handle)

    def _handle(self, route: Route) -> None:
        if self._gone:
            route.continue_()
        else:
            self._late.append((route, route.fetch(timeout=PATIENCE_MS)))

    def wait(self) -> None:
        """Return when an answer is there and kept back."""
        end = time.monotonic() + PATIENCE_S
        while not self._late:
            assert time.monotonic() < end
            self._page.wait_for_timeout(20)

    def let_go(self) -> None:
        """Send what was kept back, and keep no more."""
        self.wait()
        self._gone = True
        for route, response in self._late:
            route.fulfill(response=response)
