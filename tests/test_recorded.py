"""What an earlier version stored is read for ever, and the same question has the same key.

``recorded/answers.json`` was written by the last version in which noise was added by ``price``:
golden questions with the key of their replay and the recorded form of their noise, and whole
stored answers with what was read off them.
"""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path

import pytest
from golden_cases import SCHEMA

from discreet.exact.numbers import canonical_json
from discreet.price import is_as_before, price
from discreet.price.within import find_cheapest
from discreet.question.catalogue import Catalogue
from discreet.question.offer import Offer
from discreet.question.sql import parse_statement
from discreet.question.statement import Statement
from discreet.release.record import answer_from_bytes, answer_to_bytes, replay_key, to_json

RECORDED = json.loads((Path(__file__).parent / "recorded" / "answers.json").read_text())
QUESTIONS, ANSWERS = RECORDED["questions"], RECORDED["answers"]


def spend_of(offered):
    amounts = {name: Fraction(amount) for name, amount in offered.items()}
    within = amounts.pop("within", None)
    return Offer(**amounts, within=() if within is None else (("", within),))


def parse_core(text):
    """The question, or the one that SQL stands around: that is what is charged and stored."""
    parsed = parse_statement(text, SCHEMA).question
    if isinstance(parsed, Statement):
        (parsed,) = parsed.questions
    return parsed


def test_every_kind_of_noise_is_there():
    kinds = [next(iter(noise)) for case in QUESTIONS for noise in case["noises"]]
    assert len(QUESTIONS) >= 30
    assert all(kinds.count(f"{kind}Noise") > 9 for kind in ("Laplace", "Gaussian", "Selection"))


@pytest.mark.parametrize("case", QUESTIONS, ids=lambda case: case["question"][:60])
def test_the_same_question_has_the_same_key_and_recorded_noise(case):
    spend = spend_of(case["spend"])
    find = find_cheapest if spend.within else price
    question = parse_core(case["question"])
    catalogue = Catalogue(SCHEMA)
    priced = find(question, spend, catalogue, as_before=True)
    assert to_json(priced)["Priced"]["noises"] == case["noises"]
    assert replay_key(priced) == case["key"]
    now = find(question, spend, catalogue)
    if is_as_before(now):  # else it is looked for under both keys: see test_old_ledgers.py
        assert replay_key(now) == case["key"]


@pytest.mark.parametrize("case", ANSWERS, ids=lambda case: case["name"])
def test_a_stored_answer_is_read_as_it_was(case):
    data = canonical_json(case["stored"]).encode()
    assert hashlib.sha256(data).hexdigest() == case["sha256"]
    answer = answer_from_bytes(data)
    assert {name: answer.column(name) for name in answer.columns} == case["values"]
    for name, margins in answer.margins("0.9").items():
        if answer.margin_kinds[name] != "set":  # those were simulated then, and too small
            assert margins == case["margins"][name]
    assert replay_key(answer.priced) == case["key"]
    assert answer_to_bytes(answer) == data
