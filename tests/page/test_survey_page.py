"""A whole survey in a real browser, at the size of a phone: create, answer, results."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from patience import PATIENCE_MS, PATIENCE_S, wait_until
from playwright.sync_api import Page, expect

from discreet.cli import main
from discreet.local.collection import Collection
from discreet.server.survey import survey_application

ARTEFACTS = Path(__file__).parents[2] / "test-artifacts" / "page"
PHONE = {"width": 360, "height": 740}
REPORT_MS = 5.0
TEXT = """
name = "smoking"
title = "Smoking among students"
epsilon = 3
[[questions]]
name = "smokes"
text = "Do you smoke?"
options = ["never", "sometimes", "daily"]
[[questions]]
name = "field"
text = "What do you study?"
options = [{options}]
[[questions]]
name = "sleep"
text = "How many hours did you sleep?"
lower = 0
upper = 14
""".replace("{options}", ", ".join(f'"subject {number}"' for number in range(40)))
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def survey(tmp_path_factory) -> Iterator[tuple[Collection, str]]:
    """A survey made on the command line, and served."""
    home = tmp_path_factory.mktemp("survey")
    (home / "smoking.toml").write_text(TEXT)
    listening = socket.socket()  # given to the server as it is: nobody else can have the port
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    arguments = ["--into", str(home / "made"), "--address", address, "--json"]
    with pytest.raises(SystemExit) as stop:
        main(["survey", "new", str(home / "smoking.toml"), *arguments])
    assert not stop.value.code
    collection = Collection(home / "made")
    server = uvicorn.Server(
        uvicorn.Config(
            survey_application(collection), log_level="error", timeout_graceful_shutdown=10
        )
    )
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    wait_until(lambda: server.started)
    yield collection, address
    server.should_exit = True
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


@pytest.fixture
def page(browser, survey) -> Iterator[Page]:
    """A phone that must stay with its own server and never raise."""
    context = browser.new_context(viewport=PHONE)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    asked, raised = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: raised.append(str(error)))
    yield page
    assert raised == []
    assert [url for url in asked if not url.startswith((survey[1], "file:", "data:"))] == []
    context.close()


def answer(page: Page) -> None:
    page.get_by_label("daily").check()
    page.get_by_label("What do you study?").select_option("subject 7")
    page.get_by_label("A number from 0 to 14").fill("6.5")
    page.get_by_role("button", name="Randomise my answers").click()
    expect(page.get_by_role("heading", name="What will be sent")).to_be_visible()


def test_a_respondent_answers_on_a_phone(page, survey):
    collection, address = survey
    before = collection.reports()
    page.goto(f"{address}/#{collection.tokens()[0]}")
    page.get_by_role("button", name="Randomise my answers").click()
    expect(page.get_by_role("alert")).to_contain_text("Please answer: Do you smoke?")
    page.get_by_label("A number from 0 to 14").fill("99")
    page.get_by_label("daily").check()
    page.get_by_label("What do you study?").select_option("subject 7")
    page.get_by_role("button", name="Randomise my answers").click()
    expect(page.get_by_role("alert")).to_contain_text("(a number from 0 to 14)")
    answer(page)
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=ARTEFACTS / "survey-phone.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert Axe().run(page).response["violations"] == []
    expect(page.locator("#tells")).to_contain_text("a factor of 20.1")
    raw = json.loads(page.locator("#raw").text_content())
    page.get_by_role("button", name="Send the report").click()
    expect(page.get_by_role("status")).to_contain_text("Sent.")
    new = [one for one in collection.reports() if one not in before]
    assert new == [raw]  # what is stored is what was shown, and nothing else
    page.goto(f"{address}/results")
    expect(page.get_by_role("heading", name="Smoking among students")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert Axe().run(page).response["violations"] == []
    page.screenshot(path=ARTEFACTS / "survey-results-phone.png", full_page=True)


def test_a_token_counts_once(browser, page, survey):
    """Also where another device, which knows nothing of the first, answers with it."""
    collection, address = survey
    other = browser.new_context(viewport=PHONE)
    second = other.new_page()
    second.set_default_timeout(PATIENCE_MS)
    used = "Not accepted: this token has been used."
    for device, said in ((page, "Sent."), (second, used)):
        device.goto(f"{address}/#{collection.tokens()[1]}")
        answer(device)
        device.get_by_role("button", name="Send the report").click()
        expect(device.get_by_role("status")).to_contain_text(said)
    other.close()


def test_a_server_that_says_it_got_nothing_gets_the_same_report_again(page, survey):
    """Attack: refuse every report, so that people load the page and randomise once more."""
    collection, address = survey
    got = []

    def refuse(route):
        got.append(json.loads(route.request.post_data)["report"])
        route.fulfill(status=500, json={"what": "please load the page and answer again."})

    page.route("**/report", refuse)
    address = f"{address}/#{collection.tokens()[3]}"
    page.goto(address)
    answer(page)
    for tries in range(1, 4):
        page.get_by_role("button", name="Send the report").click()
        expect(page.get_by_role("status")).to_contain_text("Not accepted")
        assert len(got) == tries
        page.goto("about:blank")
        page.goto(address)
        expect(page.get_by_role("heading", name="What will be sent")).to_be_visible()
        expect(page.locator("#randomise")).to_be_disabled()
        expect(page.locator("#form")).to_be_hidden()
        assert not page.locator("input[value='2']").is_checked()
    assert [one for one in got if one != got[0]] == []
    stored = page.evaluate("JSON.stringify(localStorage)")
    assert "daily" not in stored  # the randomised report alone is kept
    page.goto("about:blank")
    page.goto(f"{address[:-4]}aaaa")  # somebody else on the same device, or a second link
    expect(page.get_by_role("button", name="Randomise my answers")).to_be_enabled()
    expect(page.locator("#before")).to_contain_text("do not answer again")
    expect(page.locator("#before")).to_contain_text("ε = 6 with this one")


def test_a_damaged_link_is_refused_by_the_server_and_breaks_no_page(page, survey):
    collection, address = survey
    before = len(collection.reports())
    page.goto(f"{address}/#%")
    answer(page)
    page.get_by_role("button", name="Send the report").click()
    expect(page.get_by_role("status")).to_contain_text("this token is not one of this survey")
    assert len(collection.reports()) == before
    assert page.locator("#form").get_attribute("autocomplete") == "off"  # answers stay nowhere


def test_a_browser_that_keeps_nothing_says_so(page, survey):
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('none'); } });"
    )
    page.goto(survey[1])
    answer(page)
    expect(page.locator("#tells")).to_contain_text("do not load this page again")


def test_from_disk_in_the_dark_and_offline(browser, page, survey):
    """The page works without a connection, keeps the report, and sends it when there is one."""
    collection, _ = survey
    page.emulate_media(color_scheme="dark")
    count = len(collection.reports())
    page.goto(f"file://{collection.directory.resolve()}/page.html#{collection.tokens()[2]}")
    page.context.set_offline(True)
    answer(page)
    assert Axe().run(page).response["violations"] == []
    page.screenshot(path=ARTEFACTS / "survey-phone-dark.png", full_page=True)
    raw = page.locator("#raw").text_content()
    page.get_by_role("button", name="Send the report").click()
    expect(page.get_by_role("status")).to_contain_text("Not sent")
    page.context.set_offline(False)
    page.get_by_role("button", name="Send the report").click()
    expect(page.get_by_role("status")).to_contain_text("Sent.")
    assert page.locator("#raw").text_content() == raw  # drawn once
    assert len(collection.reports()) == count + 1


def test_a_report_takes_less_than_five_milliseconds(page, survey):
    page.goto(survey[1])
    taken = page.evaluate(
        """() => {
          const survey = JSON.parse(document.getElementById("survey").textContent);
          const draw = (count) => crypto.getRandomValues(new Uint8Array(count));
          const once = () => survey.questions.forEach(
            ({ plan }) => randomizers[plan.kind](draw, 1, plan));
          once();
          const times = Array.from({ length: 20 }, () => {
            const start = performance.now(); once(); return performance.now() - start;
          });
          return Math.min(...times);
        }"""
    )
    assert taken < REPORT_MS
