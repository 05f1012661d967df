"""A browser, and a clinic that is served to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from looking import ARGUMENTS, HEIGHT, PICTURES, WIDTHS
from patience import PATIENCE_MS
from playwright.sync_api import Browser, Page, sync_playwright
from served import Served, serve
from services import require


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("clinic")) as served:
        yield served


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = require("chromium")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=str(program), args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture
def page(browser: Browser, clinic: Served) -> Iterator[Page]:
    """A wide page that must stay with its own server and never raise."""
    context = browser.new_context(viewport={"width": WIDTHS["desk"], "height": HEIGHT})
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    asked: list[str] = []
    raised: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: raised.append(str(error)))
    pictures = PICTURES[page] = []
    svg = "image/svg+xml"
    page.on("response", lambda r: pictures.append(r) if svg in r.headers.values() else None)
    yield page
    del PICTURES[page]
    assert raised == []
    assert [url for url in asked if not url.startswith((clinic.url, "blob:", "data:"))] == []
    context.close()
