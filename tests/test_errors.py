"""Refusals: three parts, one shape, a closed set of codes."""

from __future__ import annotations

import copy
import inspect
import os
import pickle
import subprocess
import sys
import traceback
from fractions import Fraction
from pathlib import Path

import pytest
from patience import PATIENCE_S

from discreet import errors
from discreet.errors import CODES, InvalidParameter, Refusal, Span, quote_value

FAMILIES = {
    kind.family: kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, Refusal) and kind is not Refusal
}


def a_refusal(span: Span | None = None, rewriting: str | None = None) -> InvalidParameter:
    return InvalidParameter(
        "P2", "rho must be positive.", why="w.", fix="f.", span=span, rewriting=rewriting
    )


def test_every_code_belongs_to_one_family():
    assert len(FAMILIES) == 8
    for code in CODES:
        assert code[0] in FAMILIES
        assert code[1:].isdigit()


def test_every_title_is_a_phrase():
    for title in CODES.values():
        assert title == title.strip(" .")
    assert len(set(CODES.values())) == len(CODES)


def test_the_three_parts_are_printed_in_order():
    assert str(a_refusal()) == "P2: rho must be positive.\nWhy: w.\nFix: f."


def test_the_place_is_underlined():
    span = Span("SELECT a,\n  SUM(income)\nFROM people", 16, 22)
    assert str(a_refusal(span)).splitlines()[1:3] == ["  SUM(income)", "      ^^^^^^"]


@pytest.mark.parametrize(
    ("start", "stop", "line", "carets"),
    [
        (0, 2, "ab", "^^"),
        (1, 9, "ab", " ^"),  # past the end of its line: only what is on it
        (3, 5, "cd", "^^"),
        (4, 5, "cd", " ^"),
        (5, 5, "cd", "  ^"),  # the end of the text: where something is missing
        (2, 3, "ab", "  ^"),
    ],
)
def test_places_at_the_edges_of_lines(start, stop, line, carets):
    assert Span("ab\ncd", start, stop).underline() == f"{line}\n{carets}"


@pytest.mark.parametrize("start", [0, 3, 40, 76, 79, 80, 150, 236])
def test_a_long_line_is_cut_around_the_place(start):
    text = "".join(f"{n:04}" for n in range(60))
    line, carets = Span(text, start, start + 4).underline().splitlines()
    assert len(line) <= 80
    assert len(carets) <= 80
    assert line[carets.index("^") : len(carets)] == text[start : start + 4]
    assert Span("x" * 80, 79, 80).underline().splitlines()[0] == "x" * 80
    wide = Span(text, 10, 230).underline().splitlines()
    assert [len(part) <= 80 for part in wide] == [True, True]


def test_json_has_one_shape():
    plain = a_refusal().to_json()
    assert plain == {
        "code": "P2",
        "title": CODES["P2"],
        "what": "rho must be positive.",
        "why": "w.",
        "fix": "f.",
    }
    assert a_refusal(Span("abc", 1, 2)).to_json() == {**plain, "place": [1, 2]}
    assert a_refusal(rewriting="abd").to_json() == {**plain, "rewriting": "abd"}


@pytest.mark.parametrize("duplicate", [copy.copy, lambda r: pickle.loads(pickle.dumps(r))])
def test_a_refusal_survives_the_way_to_another_process(duplicate):
    original = a_refusal(Span("abc", 1, 2), "abd")
    other = duplicate(original)
    assert type(other) is InvalidParameter
    assert (str(other), other.to_json()) == (str(original), original.to_json())


def test_codes_are_closed():
    with pytest.raises(KeyError):
        Refusal("P99", "w.", why="w.", fix="f.")
    for family, kind in FAMILIES.items():
        foreign = next(code for code in CODES if not code.startswith(family))
        with pytest.raises(KeyError):
            kind(foreign, "w.", why="w.", fix="f.")


def test_a_wrong_parameter_is_also_a_value_error():
    assert isinstance(a_refusal(), ValueError)


def test_values_are_quoted_in_short():
    assert [quote_value(value) for value in (Fraction(2, 3), "x", None, -3)] == [
        "2/3",
        "'x'",
        "None",
        "-3",
    ]
    assert len(quote_value([5] * 1000)) == 80
    for endless in (10**5000, Fraction(1, 10**5000)):  # Python itself declines to print these
        assert quote_value(endless) == "a number of thousands of digits"


def test_a_unit_is_named_as_it_is_written():
    refused = errors.QuestionRefusal(
        "Q1", "no bounds.", why="one person could add it.", fix="bound it."
    )
    assert refused.naming(r"\1 \d+ line").why == r"one \1 \d+ line could add it."


# --- in a notebook -----------------------------------------------------------------------------

REFUSE = """
import discreet.errors
def ask():
    raise discreet.errors.InvalidParameter("P2", "rho must be positive.", why="w.", fix="f.")
"""


def show_cell(home: Path, cell: str) -> str:
    """What a real IPython prints when a cell is run."""
    options = ["--quick", "--colors=nocolor", "--HistoryManager.enabled=False"]
    done = subprocess.run(
        [sys.executable, "-m", "IPython", *options, "-c", f"{REFUSE}\n{cell}"],
        check=False,
        env={**os.environ, "IPYTHONDIR": str(home)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.stderr == ""
    return done.stdout.strip()


def test_a_notebook_shows_the_words_of_a_refusal_alone(tmp_path):
    assert show_cell(tmp_path, "ask()") == str(a_refusal())


@pytest.mark.parametrize(
    "cell",
    [
        "{}['city']",
        "try:\n    {}['city']\nexcept KeyError:\n    ask()",
        "try:\n    {}['city']\nexcept KeyError as error:\n    wrong = error\n"
        "try:\n    ask()\nexcept ValueError as error:\n    raise error from wrong",
        "try:\n    ask()\nexcept ValueError:\n    {}['city']",
    ],
)
def test_a_notebook_hides_no_other_error(tmp_path, cell):
    told = show_cell(tmp_path, cell)
    assert "Traceback (most recent call last)" in told
    assert "KeyError: 'city'" in told
    assert ("P2: rho must be positive." in told) == ("ask()" in cell)


def test_a_notebook_shows_what_was_noted_on_a_refusal(tmp_path):
    cell = "try:\n    ask()\nexcept ValueError as error:\n    error.add_note('see it')\n    raise"
    assert show_cell(tmp_path, cell) == f"{a_refusal()}\nsee it"


def test_plain_python_shows_the_way_to_a_refusal():
    with pytest.raises(InvalidParameter) as refused:
        exec(REFUSE + "ask()", {})
    told = "".join(traceback.format_exception(refused.value))
    assert told.startswith("Traceback (most recent call last):")
    assert "in ask" in told
