"""The page, in a real browser, against a real server with a durable account.

Pictures of every view, wide and narrow, light and dark, are kept in ``test-artifacts/page``.
"""

from __future__ import annotations

import re

import pytest
from looking import HEIGHT, WIDTHS, Held, ask, compose, read_picture, sign_in, well_made
from patience import PATIENCE_MS
from playwright.sync_api import Route, expect

BY_CITY = "SELECT city, COUNT(*) AS n FROM patients GROUP BY city"


def test_sign_in_refuses_a_wrong_key_and_says_why(page, clinic):
    page.goto(clinic.url)
    well_made(page, "sign-in")
    page.get_by_label("Your key").fill("discreet_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("A10")
    well_made(page, "sign-in-refused")


def test_an_analyst_asks_sees_the_chart_and_replays_for_free(page, clinic):
    sign_in(page, clinic, clinic.analyst("ada", epsilon="0.5"))
    compose(page, BY_CITY)
    price = page.get_by_label("Price", exact=True)
    expect(price).to_contain_text("ε = 0.05")
    expect(price).to_contain_text("±")
    expect(price).to_contain_text("affordable")
    well_made(page, "ask-priced")
    ask(page)
    answer = page.get_by_role("article")
    expect(answer.get_by_role("row")).to_have_count(9)
    expect(answer).to_contain_text("±")
    image = answer.get_by_role("img")
    expect(image).to_have_attribute("alt", "n by city. with 95 % intervals")
    well_made(page, "answer-bars")
    page.set_viewport_size({"width": WIDTHS["wall"], "height": HEIGHT})
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDTHS["wall"]
    first = answer.get_by_role("table").inner_text()
    spent = clinic.spent("ada")
    expect(page.get_by_role("button", name="Ask (free)")).to_be_visible()
    ask(page)
    expect(page.get_by_role("article")).to_contain_text("replayed, free")
    assert page.get_by_role("article").get_by_role("table").inner_text() == first
    assert clinic.spent("ada") == spent


def test_an_answer_has_an_address(page, browser, clinic):
    key = clinic.analyst("alma")
    sign_in(page, clinic, key)
    compose(page, BY_CITY.replace(" GROUP", " WHERE age > 21 GROUP"))
    ask(page)
    answer = page.get_by_role("article")
    expect(answer.get_by_role("row")).to_have_count(9)
    told = answer.get_by_role("table").inner_text()
    address = answer.get_by_role("link").get_attribute("href")
    assert address.startswith("#answer/clinic/")
    other = browser.new_context().new_page()  # somebody opens the address, and has to sign in
    other.set_default_timeout(PATIENCE_MS)
    other.goto(clinic.url + "/" + address)
    other.get_by_label("Your key").fill(key)
    other.get_by_role("button", name="Sign in").click()
    expect(other.get_by_role("article").get_by_role("row")).to_have_count(9)
    assert other.get_by_role("article").get_by_role("table").inner_text() == told
    expect(other.get_by_role("heading", level=1)).to_have_text(f"Answer {address.split('/')[-1]}")
    well_made(other, "answer-address")
    other.goto(clinic.url + "/#answer/clinic/1")
    expect(other.get_by_role("alert")).to_contain_text("A13")
    other.context.close()


def test_a_statement_has_an_address_and_is_told_for_free(page, clinic):
    sign_in(page, clinic, clinic.analyst("alva"))
    inner = BY_CITY.replace(" GROUP", " WHERE age > 22 GROUP")
    compose(page, f"SELECT city, n / SUM(n) OVER () AS share FROM ({inner})")
    ask(page)
    answer = page.get_by_role("article")
    expect(answer.get_by_role("row")).to_have_count(9)
    told = answer.get_by_role("table").inner_text()
    spent = clinic.spent("alva")
    address = answer.get_by_role("link").get_attribute("href")
    page.get_by_role("link", name="History").click()
    page.goto(clinic.url + "/" + address)
    expect(page.get_by_role("button", name="Ask (free)")).to_be_visible()
    ask(page)
    expect(page.get_by_role("article").get_by_role("row")).to_have_count(9)
    assert page.get_by_role("article").get_by_role("table").inner_text() == told
    assert clinic.spent("alva") == spent


def test_the_table_is_sorted_by_value_and_copied(page, clinic):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=clinic.url)
    sign_in(page, clinic, clinic.analyst("anton"))
    compose(page, BY_CITY.replace(" GROUP", " WHERE age > 23 GROUP"), epsilon="1")
    ask(page)
    answer = page.get_by_role("article")
    expect(answer.get_by_role("row")).to_have_count(9)

    def numbers() -> list[int]:
        cells = answer.locator("tbody td:nth-child(2)").all_inner_texts()
        return [int(cell.split(" ±")[0].replace(",", "")) for cell in cells]

    first = numbers()
    answer.locator("th .sort").nth(1).click()
    assert numbers() == sorted(first)
    head = answer.locator("th").nth(1)
    expect(head).to_have_attribute("aria-sort", "ascending")
    answer.locator("th .sort").nth(1).click()
    assert numbers() == sorted(first, reverse=True)
    answer.locator("th .sort").nth(1).click()
    assert numbers() == first
    answer.get_by_role("button", name="Copy table").click()
    expect(page.locator("#told")).to_have_text("The table is copied.")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.splitlines()[0] == "city\tn"
    assert len(copied.splitlines()) == 9


def test_names_and_values_are_inserted_from_the_schema(page, clinic):
    sign_in(page, clinic, clinic.analyst("arne"))
    editor = page.get_by_label("Your question, in SQL")
    editor.fill("SELECT COUNT(*) AS n FROM patients WHERE ")
    panel = page.locator(".panel")
    panel.get_by_role("button", name="city", exact=True).click()
    page.keyboard.type(" = ")
    # Its declared values.
    expect(page.locator("#completions li").first).to_have_text(re.compile("^'"))
    page.keyboard.press("Escape")
    panel.locator("summary", has_text=re.compile("^8 values$")).click()
    panel.locator(".values .put").first.click()
    text = editor.input_value()
    assert re.fullmatch(r"SELECT COUNT\(\*\) AS n FROM patients WHERE city = '\w+'", text), text
    expect(page.get_by_label("Price", exact=True)).to_contain_text("ε = 0.1")


def test_the_slider_goes_between_price_and_accuracy_and_pays_nothing(page, clinic):
    sign_in(page, clinic, clinic.analyst("astrid"))
    compose(page, "SELECT COUNT(*) AS n FROM patients WHERE age > 24", epsilon="0.1")
    slider = page.get_by_label("Between price and accuracy")
    expect(page.locator(".slider output")).to_have_text("ε = 0.1: n ± 30")
    slider.press("ArrowRight")
    slider.press("ArrowRight")
    expect(page.get_by_label("Amount")).to_have_value("0.2")
    price = page.get_by_label("Price", exact=True)
    expect(price).to_contain_text("n ± 15")
    page.get_by_label("I want to").select_option("within")
    expect(price).to_contain_text("n ±")
    slider.press("End")
    expect(page.get_by_label("Amount")).to_have_value("1")
    page.get_by_text("Accuracy against price").click()
    assert "margin" in read_picture(page)
    well_made(page, "ask-curve")
    assert clinic.spent("astrid")["epsilon"] == "0"


def test_what_is_known_is_free_improved_or_measured_anew(page, clinic):
    sign_in(page, clinic, clinic.analyst("asa"))
    question = BY_CITY.replace(" GROUP", " WHERE age > 25 GROUP")
    compose(page, question, epsilon="0.1")
    ask(page)
    expect(page.get_by_role("article").get_by_role("row")).to_have_count(9)
    compose(page, question, epsilon="0.4")
    ways = page.get_by_role("group", name="Ways to an answer")
    expect(ways.get_by_role("button")).to_have_count(3)
    improve, new = (ways.get_by_role("button", name=name) for name in ("Improve", "New"))
    expect(improve).to_have_attribute("aria-pressed", "true")
    well_made(page, "ask-ways")
    new.click()
    expect(new).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_label("Price", exact=True).locator(".cost")).to_contain_text("ε = 0.4")
    spent = clinic.spent("asa")
    ways.get_by_role("button", name="Free").click()
    expect(page.get_by_role("button", name="Ask (free)")).to_be_visible()
    ask(page)
    expect(page.get_by_role("article")).to_contain_text("replayed, free")
    assert clinic.spent("asa") == spent


def test_a_folder_is_a_dashboard_that_never_pays_by_being_looked_at(page, clinic):
    key = clinic.analyst("axel")
    sign_in(page, clinic, key)
    page.get_by_role("link", name="Saved").click()
    expect(page.locator("main")).to_contain_text("Nothing is saved yet")
    page.get_by_role("link", name="Ask").click()
    question = BY_CITY.replace(" GROUP", " WHERE age > 26 GROUP")
    compose(page, question, epsilon="0.2")
    ask(page)
    page.get_by_text("Save the question").click()
    box = page.locator(".keep")
    box.get_by_label("Name").fill("by city")
    box.get_by_label("Folder").fill("Monthly")
    box.get_by_role("button", name="Save").click()
    expect(page.locator("#told")).to_have_text("Saved as by city.")
    unknown = {"folder": "Monthly", "name": "later", "offer": {"epsilon": "0.05"}}
    unknown["question"] = "SELECT COUNT(*) AS n FROM patients WHERE age > 27"
    clinic.call("POST", "saved", unknown, key=key)
    spent = clinic.spent("axel")
    page.get_by_role("link", name="Saved").click()
    known = page.get_by_role("region", name="by city", exact=True)
    expect(known.get_by_role("img")).to_have_attribute("alt", re.compile("^n by city"))
    later = page.get_by_role("region", name="later", exact=True)
    expect(later).to_contain_text("Not known for the data as they are now.")
    well_made(page, "saved")
    assert clinic.spent("axel") == spent
    later.get_by_role("button", name="Ask for ε = 0.05").click()
    expect(later).to_contain_text("±")
    assert clinic.spent("axel") != spent
    later.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("region", name="later", exact=True)).to_have_count(0)


def test_a_slow_line_asks_once(page, clinic):
    """Ctrl+Enter, pressed again while an answer is on its way, asks nothing more."""
    sign_in(page, clinic, clinic.analyst("asta"))
    compose(page, "SELECT COUNT(*) AS n FROM patients WHERE age > 28")
    asked: list[str] = []
    page.on("request", lambda r: asked.append(r.url) if r.url.endswith("/ask") else None)
    held = Held(page, "**/ask")
    editor = page.get_by_label("Your question, in SQL")
    editor.press("Control+Enter")
    held.wait()
    editor.press("Control+Enter")
    held.let_go()
    expect(page.locator("figure.number")).to_contain_text("±")
    assert len(asked) == 1


def test_files_of_an_answer_can_be_saved(page, clinic, tmp_path):
    sign_in(page, clinic, clinic.analyst("cato"))
    compose(page, "SELECT COUNT(*) AS n FROM visits")
    ask(page)
    expect(page.locator(".number")).to_contain_text("±")
    well_made(page, "answer-number")
    starts = {"CSV": b"n", "Arrow": b"\xff\xff\xff\xff", "Certificate": b"{", "JSON": b"{"}
    for name, start in {**starts, "XLSX": b"PK", "Parquet": b"PAR1"}.items():
        with page.expect_download() as saved:
            page.get_by_role("button", name=name, exact=True).click()
        saved.value.save_as(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)


def test_a_refused_question_is_underlined_and_mended_by_a_click(page, clinic):
    sign_in(page, clinic, clinic.analyst("dora"))
    compose(page, "SELECT city, age FROM patients")
    price = page.get_by_label("Price", exact=True)
    expect(price.get_by_role("alert")).to_contain_text("Why:")
    expect(page.locator(".paint .wrong").first).to_be_visible()
    well_made(page, "refused")
    page.get_by_role("button", name="Use this instead").click()
    expect(price).to_contain_text("ε = 0.05")
    assert page.locator(".paint .wrong").count() == 0


def test_a_rewriting_after_other_words_is_a_click_too(page, clinic):
    sign_in(page, clinic, clinic.analyst("doris"))
    compose(page, "SELECT COUNT(*) AS total FROM patiens")
    price = page.get_by_label("Price", exact=True)
    expect(price.get_by_role("alert")).to_contain_text("did you mean 'patients'?")
    page.get_by_role("button", name="Use this instead").click()
    expect(price).to_contain_text("ε = 0.05")


def test_an_offer_that_is_missing_is_made_by_a_click(page, clinic):
    sign_in(page, clinic, clinic.analyst("dido"))
    # What another test asks is known, and needs no offer.
    compose(page, "SELECT COUNT(*) AS n FROM patients WHERE age > 37")
    page.get_by_label("I want to").select_option("statement")
    price = page.get_by_label("Price", exact=True)
    expect(price.get_by_role("alert")).to_contain_text("Q43")
    well_made(page, "offer")
    page.get_by_role("button", name="Offer ε = 0.1").click()
    expect(price).to_contain_text("ε = 0.1")
    assert page.get_by_label("Amount").input_value() == "0.1"


def test_names_are_completed_with_the_keyboard(page, clinic):
    sign_in(page, clinic, clinic.analyst("emil"))
    editor = page.get_by_label("Your question, in SQL")
    editor.fill("")
    editor.press_sequentially("SELECT COUNT(*) AS n FROM pati")
    expect(page.get_by_role("option").locator("span").first).to_have_text("patients")
    editor.press("Tab")
    expect(editor).to_have_value("SELECT COUNT(*) AS n FROM patients")
    editor.press("Control+Enter")
    expect(page.locator(".number")).to_contain_text("±")


def test_who_types_while_the_page_loads_is_not_interrupted(page, clinic):
    """What is late must not take the focus: the rest of the question would go nowhere."""
    balance = Held(page, "**/balance")
    sign_in(page, clinic, clinic.analyst("lea"))
    editor = page.get_by_label("Your question, in SQL")
    editor.fill("")
    editor.press_sequentially("SELECT COUNT(*) ")
    balance.let_go()
    expect(page.locator(".left")).to_contain_text("Left:")
    page.keyboard.type("AS n FROM pati")
    expect(editor).to_be_focused()
    expect(editor).to_have_value("SELECT COUNT(*) AS n FROM pati")


@pytest.mark.parametrize(
    ("view", "path"), [("Ledger", "**/spending*"), ("Datasets", "**/v1/datasets")]
)
def test_a_view_that_comes_late_is_not_drawn_over_the_next(page, clinic, view, path):
    sign_in(page, clinic, clinic.key)
    held = Held(page, path)
    page.get_by_role("link", name=view).click()
    expect(page.locator("main")).to_have_text("Loading…")
    page.get_by_role("link", name="Ask").click()
    editor = page.get_by_label("Your question, in SQL")
    editor.fill(BY_CITY)
    with page.expect_response(path):
        held.let_go()
    page.wait_for_timeout(500)
    expect(page.get_by_role("heading", level=1)).to_have_text("Ask")
    expect(editor).to_have_value(BY_CITY)


WATCH_REFUSALS = """() => {
  window.marked = false;
  new MutationObserver(() => {
    window.marked ||= document.querySelector(".paint .wrong, .refusal") !== null;
  }).observe(document.body, { childList: true, subtree: true });
}"""


def test_a_refusal_of_an_earlier_text_marks_nothing_in_this_one(page, clinic):
    sign_in(page, clinic, clinic.analyst("mia"))
    price = page.get_by_label("Price", exact=True)
    expect(price).to_contain_text("Price ε")
    price_of = Held(page, "**/explain")
    editor = page.get_by_label("Your question, in SQL")
    editor.fill("SELECT age FROM patients")
    price_of.wait()  # for the refusal
    page.evaluate(WATCH_REFUSALS)
    editor.fill("SELECT COUNT(*) AS n FROM patients")
    price_of.let_go()
    expect(price).to_contain_text("n ± ")
    assert page.evaluate("window.marked") is False


def test_everything_can_be_reached_without_a_mouse(page, clinic):
    key = clinic.analyst("fay")
    page.goto(clinic.url)
    page.keyboard.type(key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Ask")).to_be_visible()
    reached: set[str] = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.textContent.trim().slice(0, 20)"))
    assert {"Data", "Balance", "History", "Ask", "Saved", "Sign out", "city"} <= reached


def test_the_budget_runs_out_the_curator_raises_the_limit_and_it_goes_on(page, browser, clinic):
    key = clinic.analyst("gil", epsilon="0.02")
    sign_in(page, clinic, key)
    compose(page, "SELECT COUNT(*) AS n FROM visits WHERE cost > 100", epsilon="0.015")
    ask(page)
    expect(page.get_by_role("article")).to_contain_text("±")
    compose(page, "SELECT COUNT(*) AS n FROM visits WHERE cost > 200", epsilon="0.015")
    expect(page.get_by_label("Price", exact=True)).to_contain_text("more than is left")
    ask(page)
    expect(page.get_by_role("alert")).to_contain_text("B2")
    well_made(page, "out-of-budget")

    other = browser.new_context(viewport={"width": WIDTHS["desk"], "height": HEIGHT}).new_page()
    other.set_default_timeout(PATIENCE_MS)
    sign_in(other, clinic, clinic.key)
    other.get_by_role("link", name="Analysts").click()
    other.get_by_label("ε limit of gil").fill("0.04")
    other.get_by_label("gil", exact=True).get_by_role("button", name="Set limit").click()
    expect(other.get_by_label("gil", exact=True)).to_contain_text("ε = 0.04")
    well_made(other, "analysts")
    other.context.close()

    ask(page)
    expect(page.get_by_role("article")).to_contain_text("±")


@pytest.mark.parametrize(
    ("view", "words"),
    [
        ("Data", "one unit is one"),
        ("Balance", "about so many more"),
        ("History", "Show again, free"),
        ("What ε means", "at most"),
    ],
)
def test_every_view_of_the_analyst(page, clinic, view, words):
    name = f"hana {view}".replace("ε", "e").replace(" ", "-").lower()
    sign_in(page, clinic, clinic.analyst(name))
    # A question of its own for each: the same one would be somebody else's, replayed.
    compose(page, f"SELECT AVG(age) AS mean FROM patients WHERE age > {ord(view[0])}")
    ask(page)
    expect(page.get_by_role("article")).to_contain_text("±")
    page.get_by_role("link", name=view).click()
    expect(page.get_by_role("heading", name=view)).to_be_visible()
    expect(page.locator("main")).to_contain_text(words)
    well_made(page, view.lower().replace(" ", "-").replace("ε", "epsilon"))


OWN_AGES = "SELECT MEDIAN(age) FROM patients"


def open_runs(page, kind: str, question: str) -> None:
    page.get_by_role("link", name="Runs").click()
    page.get_by_label("Kind").select_option(label=kind)
    page.get_by_label("A question, in SQL").fill(question)


def test_a_watch_is_priced_paid_once_asked_and_ended(page, clinic):
    sign_in(page, clinic, clinic.analyst("wanda", epsilon="2"))
    open_runs(page, "Watch", "SELECT COUNT(*) FROM patients WHERE age > 37")
    page.get_by_label("ε for the whole run").fill("2")
    page.get_by_role("button", name="Price").click()
    expect(page.get_by_label("Open a run")).to_contain_text("theorem: α")
    well_made(page, "runs-priced")
    page.get_by_role("button", name="Pay and ask").click()
    opened = page.get_by_label("An open run")
    expect(opened).to_contain_text("1 asked, 2 more may be above")
    page.get_by_label("A question, in SQL").fill("SELECT COUNT(*) FROM patients WHERE age > 109")
    opened.get_by_role("button", name="Ask the question above").click()
    expect(opened).to_contain_text("2 asked, 2 more may be above")
    well_made(page, "runs-open")
    opened.get_by_role("button", name="End it").click()
    expect(opened).to_contain_text("over: closed")
    assert float(clinic.spent("wanda")["epsilon"]) == 2


def test_an_interview_and_a_choice_and_what_is_refused(page, clinic):
    sign_in(page, clinic, clinic.analyst("irene", epsilon="3"))
    open_runs(page, "Interview", "SELECT COUNT(*) FROM patients WHERE age > 38")
    page.get_by_label("ε for the whole run").fill("1")
    page.get_by_label("Joint sensitivity").fill("1")
    page.get_by_role("button", name="Pay and ask").click()
    opened = page.get_by_label("An open run")
    expect(opened).to_contain_text("1 asked, joint sensitivity 1")
    opened.get_by_role("button", name="Ask the question above").click()
    expect(page.get_by_role("alert")).to_contain_text("H2")
    open_runs(page, "Choose", "SELECT city, COUNT(*) FROM patients WHERE age > 39 GROUP BY city")
    page.get_by_label("ε", exact=True).fill("1")
    page.get_by_role("button", name="Pay and ask").click()
    expect(page.get_by_role("region", name="What was told")).to_contain_text("Aalborg")
    assert float(clinic.spent("irene")["epsilon"]) == 2


def test_a_report_and_a_median_are_priced_and_told(page, clinic):
    sign_in(page, clinic, clinic.analyst("quentin", epsilon="4"))
    page.get_by_role("link", name="Runs").click()
    page.get_by_label("Kind").select_option(label="Quality")
    checks = page.get_by_label("Properties, in SQL or JSON")
    checks.fill("no properties")
    page.get_by_role("button", name="Price").click()
    expect(page.get_by_role("alert")).to_contain_text("neither SQL nor JSON")
    checks.fill("SELECT DISTANCE_TO_MAXIMUM(age, 90) AS old FROM patients")
    page.get_by_label("ε", exact=True).fill("1")
    page.get_by_role("button", name="Price").click()
    expect(page.get_by_label("Open a run")).to_contain_text("margin ±")
    page.get_by_role("button", name="Pay and ask").click()
    told = page.get_by_role("region", name="What was told")
    expect(told).to_contain_text("old: ")
    well_made(page, "runs-quality")
    page.get_by_label("Kind").select_option(label="Median")
    page.get_by_label("One MEDIAN, in SQL").fill(OWN_AGES)
    page.get_by_label("ε", exact=True).fill("1")
    page.get_by_label("Proposed bound, or nothing").fill("3")
    page.get_by_role("button", name="Price").click()
    expect(page.get_by_label("Open a run")).to_contain_text("moves by at most 3")
    assert float(clinic.spent("quentin")["epsilon"]) == 1


def test_the_balance_shows_people_in_several_datasets(page, clinic):
    sign_in(page, clinic, clinic.analyst("hugo"))

    def tell(route: Route) -> None:
        found = route.fetch().json()
        person = {**found["dataset"], "name": "person", "share": 0.625}
        spent = [{**found["dataset"]["spent"], "text": text} for text in ("ε = 1", "ε = 1.5")]
        names = ("pharmacy", "other datasets")
        parts = [{"name": n, "spent": s} for n, s in zip(names, spent, strict=True)]
        route.fulfill(json={**found, "entities": [{**person, "datasets": parts}]})

    page.route("**/balance", tell)
    page.get_by_role("link", name="Balance").click()
    people = page.get_by_role("region", name="People in several datasets")
    expect(people).to_contain_text("Each person, in all datasets")
    expect(people).to_contain_text("62.5 % used")
    expect(people.get_by_role("listitem")).to_have_text(
        ["pharmacy: ε = 1", "other datasets: ε = 1.5"]
    )
    well_made(page, "balance-people")
    page.get_by_role("link", name="Ask").click()
    expect(page.locator("main")).to_contain_text("Left:")


def test_history_shows_an_answer_again_for_free(page, clinic):
    sign_in(page, clinic, clinic.analyst("ida"))
    mine = BY_CITY.replace(" GROUP", " WHERE age > 41 GROUP")  # known from no other answer
    compose(page, mine, epsilon="0.013")
    ask(page)
    expect(page.get_by_role("article").get_by_role("row")).to_have_count(9)
    spent = clinic.spent("ida")
    page.get_by_role("link", name="History").click()
    page.get_by_label("Search").fill("AGE > 41")
    expect(page.locator(".history li")).to_have_count(1)
    page.get_by_label("Search").fill("nowhere")
    expect(page.locator("main")).to_contain_text("No question has these words.")
    page.get_by_label("Search").fill("")
    page.get_by_role("link", name="Show again, free").first.click()
    expect(page.get_by_role("article").get_by_role("row")).to_have_count(9)
    page.get_by_role("link", name="History").click()
    page.get_by_role("button", name="Edit").first.click()
    expect(page.get_by_label("Your question, in SQL")).to_have_value(mine)
    assert clinic.spent("ida") == spent


def test_the_curator_adds_an_analyst_and_verifies_the_ledger(page, clinic):
    sign_in(page, clinic, clinic.key)
    page.get_by_role("link", name="Analysts").click()
    form = page.locator("form", has_text="Add someone")
    form.get_by_label("Name").fill("jon")
    form.get_by_label("ε limit").fill("0.1")
    form.get_by_role("button", name="Add and make a key").click()
    key = page.locator("code.key").inner_text()
    assert key.startswith("discreet_")
    paid = {"question": "SELECT COUNT(*) AS n FROM patients WHERE age = 76", "epsilon": "0.01"}
    clinic.call("POST", "ask", paid)
    page.get_by_role("link", name="Ledger").click()
    page.get_by_role("button", name="Verify the chain").click()
    expect(page.locator("main")).to_contain_text("The chain holds.")
    expect(page.get_by_role("cell", name="charge").first).to_be_visible()
    well_made(page, "ledger")
    page.get_by_role("link", name="Datasets").click()
    expect(page.locator("main")).to_contain_text("Tables: patients, visits")
    page.get_by_text("Plan the rest of the budget").click()
    page.get_by_label("Weeks that").fill("10")
    expect(page.get_by_text("Each new question may cost ε = ")).to_be_visible()
    well_made(page, "datasets")
    page.get_by_role("button", name="Sign out").click()
    sign_in(page, clinic, key)


def test_a_group_key_that_looks_like_markup_is_shown_as_text(page, clinic):
    """In the table, the picture, the history; the key of the page stays in the tab."""
    sign_in(page, clinic, clinic.analyst("kim"))
    keys = "<img src=x onerror=alert(1)>", "<script>alert(2)</script>"
    case = f"CASE WHEN age < 40 THEN '{keys[0]}' ELSE '{keys[1]}' END"
    compose(page, f"SELECT {case} AS who, COUNT(*) AS n FROM patients GROUP BY who")
    ask(page)
    answer = page.get_by_role("article")
    for key in keys:
        expect(answer.get_by_role("table")).to_contain_text(key)
    picture = read_picture(page)
    assert "&lt;img src" in picture
    assert "<img" not in picture
    assert "<script" not in picture
    page.get_by_role("link", name="History").click()
    expect(page.locator("pre.question").first).to_contain_text(keys[0])
    assert page.locator("main img, main script").count() == 0
    assert page.evaluate("Object.keys(sessionStorage)") == ["discreet-key"]
    assert page.evaluate("localStorage.length + document.cookie.length") == 0


def test_the_interface_is_described_without_a_request_elsewhere(page, clinic):
    page.goto(f"{clinic.url}/docs")
    asking = page.locator("details", has_text="/v1/datasets/{dataset}/ask").first
    expect(asking).to_be_visible()
    asking.locator("summary").click()
    expect(asking).to_contain_text("Idempotency-Key")
    asking.get_by_role("link", name="AskNow").click()
    expect(page.locator("#type-AskNow")).to_contain_text("wait_s")
    well_made(page, "docs")


def test_a_curator_publishes_and_whoever_has_a_key_asks_for_free(page, browser, clinic):
    """Priced, paid for, listed; then its card, an answer and its folder, for an analyst."""
    sign_in(page, clinic, clinic.key)
    page.get_by_role("link", name="Releases").click()
    make = page.get_by_label("Make a release")
    make.get_by_label("Name").fill("by_city")
    make.get_by_label("Kind").select_option(value="hierarchy")
    make.get_by_label("Of").fill("patients")
    make.get_by_label("Columns").fill("city")
    make.get_by_label("Places").fill("nowhere")
    make.get_by_role("button", name="Price").click()
    expect(page.get_by_role("alert")).to_contain_text("not a public table")
    make.get_by_label("Kind").select_option(value="counter")
    expect(make.get_by_label("Places")).to_be_hidden()
    expect(make.get_by_label("Steps per person")).to_be_visible()
    make.get_by_label("Kind").select_option(value="hierarchy")
    make.get_by_label("Places").fill("")
    make.get_by_label("ε").fill("none")
    make.get_by_role("button", name="Price").click()
    expect(page.get_by_role("alert")).to_be_visible()
    make.get_by_label("ε").fill("0.5")
    make.get_by_role("button", name="Price").click()
    expect(make).to_contain_text("Nothing was charged")
    well_made(page, "releases-priced")
    make.get_by_role("button", name="Pay and publish").click()
    shown = page.get_by_label("Release by_city")
    expect(shown).to_contain_text("Promise.")
    page.close()
    other = browser.new_context().new_page()
    other.set_default_timeout(PATIENCE_MS)
    sign_in(other, clinic, clinic.analyst("rita", epsilon="1"))
    other.get_by_role("link", name="Releases").click()
    expect(other.get_by_label("Make a release")).to_have_count(0)
    other.get_by_role("button", name="Open").click()
    shown = other.get_by_label("Release by_city")
    shown.get_by_label("A question about it, in SQL").fill(
        "SELECT city, COUNT(*) AS n FROM by_city GROUP BY city"
    )
    shown.get_by_role("button", name="Ask for free").click()
    expect(other.get_by_role("region", name="What the release says")).to_contain_text("±")
    expect(shown).to_contain_text("free")
    well_made(other, "releases-asked")
    with other.expect_download() as found:
        shown.get_by_role("button", name="Download the folder").click()
    assert found.value.suggested_filename == "by_city.zip"
    shown.get_by_label("A question about it, in SQL").fill("SELECT COUNT(*) FROM patients")
    shown.get_by_role("button", name="Ask for free").click()
    expect(other.get_by_role("alert")).to_contain_text("Q47")
    assert float(clinic.spent("rita")["epsilon"]) == 0
    other.context.close()


def test_a_release_is_a_table_beside_the_editor_and_asked_there_for_free(page, clinic):
    settings = {"by": ["smoker"], "epsilon": "0.5"}
    made = {"name": "smokers", "kind": "hierarchy", "of": "patients", "settings": settings}
    clinic.call("POST", "releases", made)
    sign_in(page, clinic, clinic.analyst("rosa", epsilon="1"))
    tables = page.locator("details.panel")
    tables.get_by_text("smokers", exact=True).click()
    expect(tables.get_by_role("button", name="Insert smokers")).to_be_visible()
    compose(page, "SELECT smoker, COUNT(*) AS n FROM smokers GROUP BY smoker")
    expect(page.get_by_label("Price", exact=True)).to_contain_text("free: it is public")
    page.get_by_role("button", name="Ask (free)").click()
    expect(page.get_by_role("article")).to_contain_text("±")
    well_made(page, "ask-release")
    page.get_by_role("link", name="Data").click()
    expect(page.get_by_label("smokers", exact=True)).to_contain_text("release")
    assert float(clinic.spent("rosa")["epsilon"]) == 0
