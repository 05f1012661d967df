"""Fuzzing of spends and options: whatever is offered, there is an answer or a refusal.

Through every door: Python, the command line, HTTP.  No other exception, no traceback, no status
500; what is refused costs nothing, and what is answered costs what the answer says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cli_cases import BY_CITY, Run, is_refusal, make_session, runner
from fuzz.odd_amounts import EVERYTHING, NAMES, NUMBERS, TEXTS
from server.conftest import COUNT, Running, dataset, running
from test_curate import clinic

import discreet
from discreet.accounting.loss import Loss
from discreet.curate import curator as curate
from discreet.errors import Refusal

Patch = pytest.MonkeyPatch
QUESTIONS = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT street, AVG(cost) AS n FROM visits GROUP BY street",
    "SELECT MEDIAN(age) AS n FROM visits",
)


def offers(name: str, amount: Any) -> Iterator[dict[str, Any]]:
    """The amount by itself, or beside what it goes with."""
    if name in ("epsilon", "rho", "within"):
        yield {name: amount}
        yield {name: amount, "delta": "1e-9"}
    else:
        yield {"epsilon": "0.3", name: amount}
        yield {"within": 50, name: amount}


def tried(act: Callable[[], Any]) -> Any:
    """What comes of it, if it is an answer; None for a refusal that can be shown."""
    try:
        return act()
    except Refusal as caught:
        refusal = caught
    json.dumps(refusal.to_json())
    assert refusal.code in str(refusal)
    return None


def charged(stated: Loss, spent: Loss) -> bool:
    """Whether as much was spent as is stated, rounded up to what an account counts in."""
    pairs = [(getattr(stated, x), getattr(spent, x)) for x in ("epsilon", "rho", "delta")]
    return all(a == b or a <= b <= a + Fraction(1, 10**9) for a, b in pairs)


# --- Python --------------------------------------------------------------------------------------


def ask_everything(curator: discreet.Curator, question: str, amounts: Any = EVERYTHING) -> int:
    """Offer every amount by every name; how many were answered."""
    answered = 0
    for name in NAMES:
        for amount in amounts:
            for offer in offers(name, amount):
                tried(lambda offer=offer: curator.price(question, **offer))
                before = curator.spent
                found = tried(lambda offer=offer: curator.ask(question, **offer))
                if found is None or found.replayed:
                    assert curator.spent == before, offer
                else:
                    assert charged(before + found.loss, curator.spent), offer
                answered += found is not None
    return answered


@pytest.mark.parametrize("question", QUESTIONS[:1])
def test_python_answers_or_refuses(question: str) -> None:
    with clinic(epsilon=10**5) as curator:
        assert ask_everything(curator, question, EVERYTHING[::2]) > 10


@pytest.mark.soak
@pytest.mark.parametrize("question", QUESTIONS)
def test_python_answers_or_refuses_every_question(question: str) -> None:
    with clinic(epsilon=10**5) as curator:
        assert ask_everything(curator, question) > 20


def test_the_options_of_an_answer() -> None:
    with clinic() as curator:
        answer = curator.ask(BY_CITY.replace("patients", "visits"), epsilon=3)
        shown = (answer.to_json, answer.to_csv, answer.margins, answer.to_arrow)
        tries = [partial(one, amount) for one in shown for amount in EVERYTHING]
        assert sum(tried(one) is not None for one in tries) > 4


@pytest.mark.parametrize("amount", EVERYTHING, ids=lambda amount: repr(amount)[:20])
def test_budgets_and_losses_are_made_or_refused(amount: Any) -> None:
    for name in ("epsilon", "rho", "delta"):
        given = {"epsilon": 1} if name == "delta" else {}
        tried(lambda name=name, given=given: discreet.Budget(**given, **{name: amount}))
    tried(lambda: Loss.pure(amount))
    tried(lambda: Loss.concentrated(amount, amount))


# --- the command line ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_session(tmp_path_factory.mktemp("spends") / "clinic")


TYPED = [text for text in TEXTS if "\0" not in text]  # no command line can hold one


def typed(run: Run, home: Path, texts: Any, command: str = "price") -> int:
    """Type every text for every option; how many were accepted."""
    accepted = 0
    for name in NAMES:
        for text in texts:
            beside = [] if name in ("epsilon", "rho", "within") else ["--epsilon=0.001"]
            ran = run(command, BY_CITY, f"--{name}={text}", *beside, "--session", home)
            # A price that the account would not pay is printed, and ends like a refusal.
            priced = command == "price" and ran[1].startswith("price:") and not ran[2]
            assert ran[0] == 0 or priced or is_refusal(ran), (name, text[:30], ran)
            accepted += ran[0] == 0
    return accepted


def test_the_command_line_answers_or_refuses(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(runner(capsys), home, TYPED[::9]) > 3


@pytest.mark.soak
@pytest.mark.parametrize("command", ["price", "explain", "ask"])
def test_every_command_answers_or_refuses(
    home: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert typed(runner(capsys), home, TYPED, command) > 3


# --- HTTP ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running({"clinic": dataset(tmp_path_factory.mktemp("spends") / "clinic")}) as found:
        yield found


SENT = (*TEXTS, *NUMBERS, [], [3], {}, {"n": 3}, {"n": "nan"}, {"": 3}, {"nobody": 3}, None)


def sent(server: Running, amounts: Any, route: str) -> int:
    """Send every amount by every name; how many were answered."""
    answered = 0
    url = f"/v1/datasets/clinic/{route}"
    key = server.datasets["clinic"].key
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    for name in NAMES:
        for amount in amounts:
            for offer in offers(name, amount):
                # Halves of characters and NaN as Python writes them: no client has to be polite.
                body = json.dumps({"question": COUNT, **offer}).encode()
                response = server.client.request("POST", url, content=body, headers=headers)
                assert response.status_code < 500, (route, offer, response.text)
                if response.status_code >= 400:
                    assert set(response.json()) >= {"code", "title", "what", "why", "fix"}, offer
                answered += response.status_code < 300
    return answered


def test_http_answers_or_refuses(server: Running) -> None:
    assert sent(server, SENT[::3], "explain") > 3


@pytest.mark.soak
@pytest.mark.parametrize("route", ["explain", "ask"])
def test_every_route_answers_or_refuses(server: Running, route: str) -> None:
    assert sent(server, SENT, route) > 3


# --- bugs on purpose ---------------------------------------------------------------------------


def division_by_nothing(patch: Patch) -> None:
    """A share of what is too small for a double is computed with one."""
    read = curate.Offer.of

    def of(**amounts: Any) -> Any:
        offer = read(**amounts)
        1 / float(offer.epsilon or 1)
        return offer

    patch.setattr(curate, "Offer", type("Offers", (), {"of": staticmethod(of)}))


def digits_of_any_script(patch: Patch) -> None:
    """Numbers are read by Python's own words for them."""
    read = curate.Offer.of

    def of(**amounts: Any) -> Any:
        given = {k: float(v) if isinstance(v, str) else v for k, v in amounts.items()}
        return read(**given)

    patch.setattr(curate, "Offer", type("Offers", (), {"of": staticmethod(of)}))


def charged_and_then_read(patch: Patch) -> None:
    """What is wrong with the confidence is noticed when the answer has been paid for."""
    publish = curate.Curator.publish

    def late(self: Any, paid: Any, *drawn: Any) -> Any:
        if paid.priced.loss.delta == 0 and paid.priced.loss.epsilon > 5:
            raise ValueError("too late")
        return publish(self, paid, *drawn)

    patch.setattr(curate.Curator, "publish", late)


MUTANTS = (division_by_nothing, digits_of_any_script, charged_and_then_read)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_is_found(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutant(monkeypatch)
    with (
        clinic(epsilon=10**5) as curator,
        pytest.raises((AssertionError, ArithmeticError, ValueError)),
    ):
        ask_everything(curator, QUESTIONS[0], [*TEXTS, *NUMBERS])
