"""Fuzzing of free work: what is long or deep takes work by its length, or is refused.

``python -m pytest -s -m soak tests/fuzz/test_long_questions.py`` prints what every shape costs at
every stage, in calls and in microseconds a character.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from fuzz.long_questions import DEEP, SHAPES, Measured, Shape, measure
from sqlglot.errors import SqlglotError
from test_curate import clinic

import discreet
from discreet.question.functions import interpret
from discreet.question.sql import MOST_CHARACTERS, parse_statement
from discreet.question.sql.dialect import tokenize

QUICK = (4, 16)
WHOLE = (7, 28, 112, 448, 1792, 7168)
MOST = 10_000  # calls a character, whatever is asked
FASTER = 2.0  # calls a character may grow so much where the length grows fourfold
DEEPER = 5.0  # and so much with the depth, until that is refused: the square, and a little more
Patch = pytest.MonkeyPatch
Stage = Callable[[str], Any]


@pytest.fixture(scope="module")
def curator() -> Iterator[discreet.Curator]:
    with clinic() as curator:
        yield curator


def stages(curator: discreet.Curator) -> dict[str, Stage]:
    return {
        "tokenise": lambda text: _refusing(tokenize, text),
        "parse": lambda text: parse_statement(text, curator.schema),
        "price": lambda text: curator.price(text, epsilon="0.3"),
        "explain": lambda text: curator.explain(text, epsilon="0.31"),
    }


def _refusing(stage: Stage, text: str) -> Any:
    """The tokeniser has errors of its own, which parsing turns into a refusal."""
    with suppress(SqlglotError):
        return stage(text)


def measured(curator: discreet.Curator, stage: Stage, shape: Shape, sizes: Any) -> list[Measured]:
    """The work at each size, until the question is longer than any may be."""
    found = []
    for size in sizes:
        text = shape(size)
        most = MOST * len(text)
        # Numbers are understood once, and then known: not at the cost of the longer text alone.
        measure(lambda text: parse_statement(text, curator.schema), text, most=most)
        found.append(measure(stage, text, most=most))
        if len(text) > MOST_CHARACTERS:
            break
    return found


def complaints(name: str, found: list[Measured]) -> list[str]:
    """What took more than it may."""
    said = [f"{name}: {one}" for one in found if one.outcome == "no end"]
    for less, more in pairwise(found):
        allowed = DEEPER if name in DEEP else FASTER
        if more.work / more.length > allowed * max(less.work / less.length, 50):
            said.append(f"{name}: {less}, and {more}")
    return said


@pytest.mark.parametrize("name", SHAPES)
def test_work_grows_with_the_length(curator: discreet.Curator, name: str) -> None:
    found = measured(curator, stages(curator)["explain"], SHAPES[name], QUICK)
    assert not complaints(name, found)


def test_deep_sub_queries_are_read_by_the_square_of_their_depth(curator: discreet.Curator) -> None:
    """What each level can be is found once, and not again for every level around it."""
    name = "sub-query of a person"
    found = measured(curator, stages(curator)["parse"], SHAPES[name], WHOLE[:2])
    assert not complaints(name, found)


@pytest.mark.soak
@pytest.mark.parametrize("stage", ["tokenise", "parse", "price", "explain"])
def test_every_stage_takes_work_by_the_length(curator: discreet.Curator, stage: str) -> None:
    said = []
    for name, shape in SHAPES.items():
        found = measured(curator, stages(curator)[stage], shape, WHOLE)
        print(f"{stage}, {name}", *found, sep="\n  ")
        said += complaints(name, found)
    assert not said


# --- bugs on purpose ---------------------------------------------------------------------------


def exponential_price(patch: Patch) -> None:
    """What a choice can be is computed here and beyond, at every level of it."""
    once = interpret._domain_here

    def twice(*arguments: Any) -> Any:
        once(*arguments)
        return once(*arguments)

    patch.setattr(interpret, "_domain_here", twice)


def copied_at_every_word(patch: Patch) -> None:
    """The text is read again from its start for every word of it."""

    def again(text: str, *arguments: Any, **options: Any) -> Any:
        for place in range(len(text)):
            for _ in range(2 * place):
                text.isascii()
        return parse_statement(text, *arguments, **options)

    patch.setattr("discreet.curate.curator.parse_statement", again)


MUTANTS = {
    exponential_price: ("CASE in THEN", (1, 6)),
    copied_at_every_word: ("IN texts", (12, 96)),
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_is_found(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    name, sizes = MUTANTS[mutant]
    with clinic() as curator:
        stage = stages(curator)["explain"]
        assert not complaints(name, measured(curator, stage, SHAPES[name], sizes))
        mutant(monkeypatch)
        longer = [size + 1 for size in sizes]  # not the plans that are known by now
        assert complaints(name, measured(curator, stage, SHAPES[name], longer))
