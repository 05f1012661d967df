"""Signing in with a provider, in a real browser: there and back, refused, and out again."""

from __future__ import annotations

from pathlib import Path

import pytest
from local_provider import run_provider
from patience import PATIENCE_MS
from playwright.sync_api import expect
from served import serve

ARTEFACTS = Path(__file__).parents[2] / "test-artifacts" / "page"
expect.set_options(timeout=PATIENCE_MS)
SECTION = """
[sign_in]
issuer = "{issuer}"
client_id = "discreet"
client_secret_file = "../secret"
address = "{address}"

[groups.students]
limit = {{ epsilon = 1 }}
claims = ["students"]
"""


@pytest.fixture(scope="module")
def provider():
    with run_provider() as found:
        found.add_user("u1", preferred_username="nora", groups=["students"])
        found.add_user("u2", preferred_username="oskar", groups=["cooks"])
        yield found


@pytest.fixture(scope="module")
def clinic(tmp_path_factory, provider):
    home = tmp_path_factory.mktemp("signing")
    (home / "secret").write_text("a secret")
    with serve(
        home, more=lambda url: SECTION.format(issuer=provider.issuer, address=url)
    ) as served:
        yield served


@pytest.fixture
def page(browser, clinic):
    page = browser.new_page(viewport={"width": 1024, "height": 900})
    page.set_default_timeout(PATIENCE_MS)
    yield page
    page.close()


def go_to_provider(page, clinic, subject):
    page.goto(clinic.url)
    link = page.get_by_role("link", name="Sign in with localhost")
    expect(link).to_be_visible()
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    for width in (390, 1024, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        page.screenshot(path=ARTEFACTS / f"sign-in-provider-{width}.png")
    link.click()
    page.locator("input[name=sub]").fill(subject)
    page.get_by_role("button", name="Authorize").click()


def test_there_and_back_and_out_again(page, clinic):
    go_to_provider(page, clinic, "u1")
    expect(page.get_by_role("heading", name="Ask")).to_be_visible()
    expect(page.get_by_text("nora (analyst)")).to_be_visible()
    assert page.evaluate("document.cookie") == ""  # no script sees it
    assert page.evaluate("sessionStorage.length") == 0
    page.reload()
    expect(page.get_by_text("nora (analyst)")).to_be_visible()
    page.goto(f"{clinic.url}/#balance")
    expect(page.get_by_text("Your group students, together")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Your key")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Your key")).to_be_visible()


def test_who_may_not_ask_is_told_on_the_page(page, clinic):
    go_to_provider(page, clinic, "u2")
    expect(page.get_by_text("none of your groups there may ask here")).to_be_visible()
    page.screenshot(path=ARTEFACTS / "sign-in-refused.png")
    page.goto(f"{clinic.url}/#refused/__proto__")
    expect(page.get_by_label("Your key")).to_be_visible()
