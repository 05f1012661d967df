"""One offer: made by keywords, options, a request's body or a clause of SQL, it is the same."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from golden_cases import SCHEMA

from discreet.cli.asking import _offer
from discreet.errors import InvalidParameter
from discreet.exact.numbers import canonical_json
from discreet.question.offer import Offer
from discreet.question.sql import parse
from discreet.release.record import from_json, to_json
from discreet.server.models import Ask

AMOUNTS = [
    {"epsilon": "0.3", "delta": "1e-9"},
    {"rho": "0.07"},
    {"within": "30", "confidence": "0.99"},
    {"within": "30"},
]
COUNT = "SELECT {} COUNT(*) AS n FROM visits"


@pytest.mark.parametrize("amounts", AMOUNTS)
def test_every_door_makes_the_same_offer(amounts):
    made = Offer.of(**amounts)
    options = {"epsilon": None, "rho": None, "delta": None, "within": None, "confidence": "0.95"}
    assert _offer(**(options | amounts), fresh=False) == made
    assert _offer(**(options | amounts), fresh=True) == Offer.of(**amounts, fresh=True)
    assert Ask(question="SELECT 7", **amounts).offer() == made
    listed = ", ".join(f"{name} = {amount}" for name, amount in amounts.items())
    clause = COUNT.format(f"WITH DIFFERENTIAL_PRIVACY OPTIONS({listed})")
    assert parse(clause, SCHEMA).spend == made


@pytest.mark.parametrize("amounts", [*AMOUNTS, {"epsilon": 3, "confidence": "0.9"}, {}])
def test_its_json_and_its_keywords_make_it_again(amounts):
    made = Offer.of(**amounts)
    assert Offer.of(**json.loads(json.dumps(made.to_json()))) == made
    assert Offer.of(**made.amounts()) == made


def test_margins_by_name():
    made = Offer.of(within={"n": "30", "total": 700})
    assert made.within == (("n", Fraction(30)), ("total", Fraction(700)))
    assert made.to_json()["within"] == {"n": "30", "total": "700"}
    assert str(made) == "n within 30, total within 700 at 0.95 confidence"


@pytest.mark.parametrize(
    ("amounts", "code"),
    [
        ({"epsilon": "3", "rho": "2"}, "P4"),
        ({"rho": "3", "within": "2"}, "P4"),
        ({"epsilon": "-3"}, "P2"),
        ({"rho": 0}, "P2"),
        ({"within": {"n": -2}}, "P2"),
        ({"epsilon": "3", "delta": "1"}, "P2"),
        ({"epsilon": "3", "confidence": "1"}, "P2"),
        ({"epsilon": "three"}, "P1"),
    ],
)
def test_what_is_no_offer_is_refused(amounts, code):
    with pytest.raises(InvalidParameter) as caught:
        Offer.of(**amounts)
    assert caught.value.code == code


def test_the_call_comes_before_the_statement():
    written = Offer.of(epsilon="0.3")
    assert Offer.of(rho="0.2").beside(written) == Offer.of(rho="0.2")
    assert Offer.of().beside(written) == written
    assert Offer.of(delta="1e-9").beside(written) == Offer.of(epsilon="0.3", delta="1e-9")
    assert Offer.of(delta="1e-9").beside(None).empty


def test_it_is_recorded_under_its_first_name():
    """As in every ledger and every answer that was ever stored."""
    text = (
        '{"Spend":{"confidence":{"fraction":"19/20"},"delta":null,"epsilon":{"fraction":"3/10"},'
        '"rho":null,"within":[["n",{"fraction":"30/1"}]]}}'
    )
    offer = Offer(epsilon=Fraction(3, 10), within=(("n", Fraction(30)),))
    assert canonical_json(to_json(offer)) == text
    assert from_json(json.loads(text)) == offer
