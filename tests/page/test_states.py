"""The states of each view that somebody meets less often: looked at as every other is."""

from __future__ import annotations

import pytest
from looking import HEIGHT, WIDTHS, Held, ask, compose, drawn, sign_in, well_made
from patience import PATIENCE_MS
from playwright.sync_api import Page, expect

LONG_NAME = "a rather long name of a question that somebody saved in a hurry"


def go(page: Page, view: str) -> None:
    page.get_by_role("link", name=view, exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_asking_from_nothing_to_an_answer(page, clinic):
    sign_in(page, clinic, clinic.analyst("nils"))
    editor = page.get_by_label("Your question, in SQL")
    editor.fill("")
    expect(page.get_by_label("Price", exact=True)).to_contain_text("Write a question")
    well_made(page, "ask-empty")
    editor.press_sequentially("SELECT city, COUNT(*) AS n FROM patients WHERE s")
    expect(page.locator("#completions li").first).to_be_visible()
    well_made(page, "ask-completing")
    compose(page, "SELECT COUNT(*) AS n FROM patients WHERE age > 51")
    held = Held(page, "**/ask")
    ask(page)
    held.wait()
    expect(page.locator(".result")).to_contain_text("Charging")
    well_made(page, "ask-asking")
    held.let_go()
    expect(page.locator("figure.number")).to_contain_text("±")


def test_a_long_question_says_how_far_it_is(page, clinic):
    sign_in(page, clinic, clinic.analyst("nina"))
    job = {"id": "7", "state": "running", "position": None, "elapsed_s": 12.0, "limit_s": 30.0}
    told = {**job, "progress": 0.4, "answer": None, "again": False}
    page.route("**/ask", lambda route: route.fulfill(status=202, json=told))
    page.route("**/jobs/*", lambda route: route.abort() if page.is_closed() else None)
    compose(page, "SELECT COUNT(*) AS n FROM patients WHERE age > 52")
    ask(page)
    expect(page.get_by_role("progressbar")).to_be_visible()
    well_made(page, "ask-job")


@pytest.mark.parametrize(
    ("name", "question", "rows"),
    [
        # Of some people: from all ages of all of them the other tests' counts would be known.
        ("many-groups", "SELECT age, COUNT(*) AS n FROM patients WHERE smoker GROUP BY age", 112),
        (
            "two-keys",
            "SELECT city, smoker, COUNT(*) AS n FROM patients GROUP BY city, smoker",
            None,
        ),
        (
            "several-numbers",
            "SELECT city, COUNT(*) AS n, AVG(age) AS mean, STDDEV(age) AS spread "
            "FROM patients GROUP BY city",
            9,
        ),
        (
            "statement",
            "SELECT city, n / SUM(n) OVER () AS share FROM "
            "(SELECT city, COUNT(*) AS n FROM patients WHERE age > 53 GROUP BY city)",
            9,
        ),
    ],
)
def test_answers_of_every_shape(page, clinic, name, question, rows):
    sign_in(page, clinic, clinic.analyst(name))
    compose(page, question, epsilon="1")
    ask(page)
    answer = page.get_by_role("article")
    expect(answer).to_be_visible()
    if rows is not None:
        expect(answer.get_by_role("row")).to_have_count(rows)
    drawn(page)
    well_made(page, f"answer-{name}")


def test_when_the_server_is_away_or_the_key_is_revoked(page, clinic):
    key = clinic.analyst("olaf")
    sign_in(page, clinic, key)
    page.goto(f"{clinic.url}/#answer/clinic/1")
    expect(page.get_by_role("alert")).to_contain_text("A13")
    well_made(page, "answer-not-yours")
    go(page, "Ask")
    expect(page.get_by_label("Price", exact=True)).to_contain_text("Price ε")
    page.context.set_offline(True)
    compose(page, "SELECT COUNT(*) AS n FROM patients WHERE age > 54")
    expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
    well_made(page, "ask-offline")
    page.context.set_offline(False)
    clinic.call("DELETE", f"keys/{key.split('_')[1]}")
    page.get_by_role("link", name="History").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("A10")
    well_made(page, "sign-in-revoked")


def test_views_with_nothing_in_them_yet(page, clinic):
    sign_in(page, clinic, clinic.analyst("pia"))
    held = Held(page, "**/transcript*")
    page.get_by_role("link", name="History").click()
    expect(page.locator("main")).to_contain_text("Looking…")
    well_made(page, "history-loading")
    held.let_go()
    expect(page.locator("main")).to_contain_text("Nothing was asked yet.")
    well_made(page, "history-empty")
    page.get_by_label("Search").fill("nowhere")
    expect(page.locator("main")).to_contain_text("No question has these words.")
    well_made(page, "history-not-found")
    go(page, "Saved")
    expect(page.locator("main")).to_contain_text("Nothing is saved yet")
    well_made(page, "saved-empty")
    go(page, "Releases")
    expect(page.locator("main")).to_contain_text("Nothing was released yet.")
    well_made(page, "releases-empty")
    go(page, "Balance")
    expect(page.locator("main")).to_contain_text("Ask something first")
    well_made(page, "balance-empty")


def test_a_budget_that_is_nearly_used_up(page, clinic):
    sign_in(page, clinic, clinic.analyst("quin", epsilon="0.1"))
    # Nothing that follows from what other tests have asked, which would be free.
    asked = "SELECT COUNT(*) AS n FROM patients WHERE age * 3 > 100 AND NOT smoker"
    compose(page, asked, epsilon="0.098")
    ask(page)
    expect(page.locator("figure.number")).to_contain_text("±")
    go(page, "Balance")
    gauges = page.get_by_label("Dataset and analyst")
    gauges.get_by_text("What the percentage means").last.click()
    page.get_by_text("The fullest blocks, in words").click()
    expect(page.locator("main")).to_contain_text("98 % used")
    well_made(page, "balance-used-up")


def test_saved_questions_with_long_names_and_a_refusal(page, clinic):
    key = clinic.analyst("rolf")
    for name, question in (
        (LONG_NAME, "SELECT city, COUNT(*) AS n FROM patients WHERE age > 56 GROUP BY city"),
        ("refused", "SELECT age FROM patients"),
        ("all", "SELECT COUNT(*) AS n FROM patients WHERE age > 57"),
    ):
        body = {"folder": "Monthly", "name": name, "question": question}
        clinic.call("POST", "saved", {**body, "offer": {"epsilon": "0.05"}}, key=key)
    sign_in(page, clinic, key)
    go(page, "Saved")
    expect(page.get_by_role("region", name="refused").get_by_role("alert")).to_be_visible()
    expect(page.get_by_role("button", name="Ask for ε = 0.05")).to_have_count(2)
    well_made(page, "saved-unknown")


def test_runs_that_are_refused_chosen_and_over(page, clinic):
    sign_in(page, clinic, clinic.analyst("sara", epsilon="3"))
    go(page, "Runs")
    page.get_by_label("A question, in SQL").fill("SELECT age FROM patients")
    page.get_by_role("button", name="Price").click()
    expect(page.get_by_role("alert")).to_be_visible()
    well_made(page, "runs-refused")
    page.get_by_label("Kind").select_option(label="Choose")
    page.get_by_label("A question, in SQL").fill(
        "SELECT city, COUNT(*) FROM patients WHERE age > 58 GROUP BY city"
    )
    page.get_by_label("ε", exact=True).fill("1")
    page.get_by_role("button", name="Pay and ask").click()
    expect(page.get_by_role("region", name="What was told")).to_contain_text("Aalborg")
    well_made(page, "runs-chosen")
    page.get_by_label("Kind").select_option(label="Interview")
    page.get_by_label("A question, in SQL").fill("SELECT COUNT(*) FROM patients WHERE age > 59")
    page.get_by_label("ε for the whole run").fill("1")
    page.get_by_role("button", name="Pay and ask").click()
    opened = page.get_by_label("An open run")
    expect(opened).to_contain_text("1 asked")
    opened.get_by_role("button", name="End it").click()
    expect(opened).to_contain_text("over: closed")
    well_made(page, "runs-over")


def test_what_epsilon_means_in_a_picture_and_refused(page, clinic):
    sign_in(page, clinic, clinic.analyst("tove"))
    go(page, "What ε means")
    picture = page.locator("main img.meaning").first
    expect(picture).to_be_visible()
    page.wait_for_function("(one) => one.naturalWidth > 0", arg=picture.element_handle())
    expect(page.get_by_role("columnheader")).to_have_count(3)
    well_made(page, "meaning-picture")
    page.get_by_label("ε", exact=True).fill("much")
    expect(page.get_by_role("alert")).to_be_visible()
    well_made(page, "meaning-refused")


def test_the_curators_pages(page, browser, clinic):
    sign_in(page, clinic, clinic.key)
    go(page, "Analysts")
    form = page.locator("form", has_text="Add someone")
    form.get_by_label("Name").fill("ulla")
    form.get_by_label("ε limit").fill("-1")
    form.get_by_role("button", name="Add and make a key").click()
    expect(page.get_by_role("alert")).to_be_visible()
    well_made(page, "analysts-refused")
    form.get_by_label("ε limit").fill("0.5")
    form.get_by_label("Role").select_option("auditor")
    form.get_by_role("button", name="Add and make a key").click()
    key = page.locator("code.key").inner_text()
    well_made(page, "analysts-key")
    go(page, "Releases")
    make = page.get_by_label("Make a release")
    make.get_by_label("Name").fill("totals")
    make.get_by_label("Kind").select_option(value="hierarchy")
    make.get_by_label("Of").fill("patients")
    make.get_by_label("Columns").fill("city")
    make.get_by_label("ε").fill("0.5")
    held = Held(page, "**/releases")
    make.get_by_role("button", name="Pay and publish").click()
    held.wait()
    well_made(page, "releases-making")
    held.let_go()
    expect(page.get_by_label("Release totals")).to_contain_text("Promise.")
    well_made(page, "releases-made")
    other = browser.new_context(viewport={"width": WIDTHS["desk"], "height": HEIGHT}).new_page()
    other.set_default_timeout(PATIENCE_MS)
    other.goto(clinic.url)
    other.get_by_label("Your key").fill(key)
    other.get_by_role("button", name="Sign in").click()
    expect(other.get_by_text("ulla (auditor)")).to_be_visible()
    go(other, "Ledger")
    other.get_by_role("button", name="Verify the chain").click()
    expect(other.locator("main")).to_contain_text("The chain holds.")
    other.locator("tbody summary").first.click()
    well_made(other, "ledger-auditor")
    other.context.close()


def test_a_phone_sees_the_editor_first(browser, clinic):
    context = browser.new_context(viewport={"width": WIDTHS["phone"], "height": 844})
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    sign_in(page, clinic, clinic.analyst("vera"))
    editor = page.get_by_label("Your question, in SQL")
    expect(editor).to_be_in_viewport()
    well_made(page, "ask-phone-fresh")
    context.close()


def test_a_price_of_an_earlier_text_does_not_stand_beside_an_answer(page, clinic):
    """Asked before its price came: what stands there is of another text, and goes."""
    sign_in(page, clinic, clinic.analyst("wilma"))
    compose(page, "SELECT COUNT(*) AS n FROM patients WHERE age > 61", epsilon="0.1")
    expect(page.get_by_text("Price ε = 0.1")).to_be_visible()
    page.route("**/explain", lambda _: None)  # never answered
    compose(page, "SELECT COUNT(*) AS n FROM patients WHERE age > 62", epsilon="0.07")
    ask(page)
    expect(page.get_by_role("article")).to_contain_text("ε = 0.07")
    expect(page.get_by_text("Price ε = 0.1")).to_have_count(0)
