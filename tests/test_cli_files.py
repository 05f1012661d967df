"""The questions of a file, asked from the command line: one release, one charge, an answer each."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from cli_cases import is_refusal, make_session, runner

import discreet

DISJOINT = """-- people by age; nobody is counted twice
SELECT COUNT(*) AS young FROM patients WHERE age < 40;
SELECT COUNT(*) AS old FROM patients WHERE age >= 40 AND city <> 'a; b'
;
"""


@pytest.fixture
def home(tmp_path):
    return make_session(tmp_path / "clinic")


@pytest.fixture
def questions(tmp_path):
    path = tmp_path / "questions.sql"
    path.write_text(DISJOINT.replace("'a; b'", "'Cork'"), encoding="utf-8")
    return path


def test_a_file_is_one_charge_and_an_answer_for_each_question(home, questions, capsys):
    run = runner(capsys)
    code, out, _ = run("ask", "--file", questions, "--session", home, "--epsilon", "0.5", "--json")
    found = json.loads(out)
    assert code == 0
    assert [[column["name"] for column in one["columns"]] for one in found] == [["young"], ["old"]]
    with discreet.open(home) as curator:
        (entry,) = curator.transcript()
        assert curator.spent.epsilon == Fraction(1, 2)
        assert entry.question.count("SELECT") == 2
    # Rows of different people: each number is as good as if it had been asked alone.
    alone = "SELECT COUNT(*) AS n FROM patients WHERE age = 39"
    _, out, _ = run("explain", alone, "--session", home, "--epsilon", "0.5", "--json")
    margin = json.loads(out)["columns"][0]["margin"]
    assert [one["margins"] for one in found] == [[[margin]], [[margin]]]


def test_it_is_printed_as_tables_and_as_csv_and_free_again(home, questions, capsys):
    run = runner(capsys)
    at = ("--session", home, "--epsilon", "0.5")
    code, out, _ = run("ask", "--file", questions, *at)
    assert (code, "young" in out, "old" in out) == (0, True, True)
    code, out, _ = run("ask", "--file", questions, *at, "--csv")
    assert code == 0
    assert [line.split(",")[0] for line in out.splitlines() if line[:1].isalpha()] == [
        "young",
        "old",
    ]
    with discreet.open(home) as curator:
        assert curator.spent.epsilon == Fraction(1, 2)


def test_semicolons_in_texts_and_comments_end_no_question(home, questions, capsys):
    questions.write_text(
        "SELECT COUNT(*) AS n FROM patients /* all; of them */ WHERE city = 'a; b';",
        encoding="utf-8",
    )
    ran = runner(capsys)("ask", "--file", questions, "--session", home, "--epsilon", "1")
    assert is_refusal(ran)  # one question, of a city that is not declared
    assert "a; b" in ran[2]


@pytest.mark.parametrize("what", ["both", "neither", "missing", "empty", "one is refused"])
def test_what_cannot_be_asked_is_refused_and_nothing_is_charged(home, questions, capsys, what):
    words = {
        "both": ("SELECT COUNT(*) AS n FROM patients", "--file", questions),
        "neither": (),
        "missing": ("--file", questions.with_name("nowhere.sql")),
    }.get(what, ("--file", questions))
    if what == "empty":
        questions.write_text("-- nothing;\n", encoding="utf-8")
    if what == "one is refused":
        questions.write_text(f"{DISJOINT}SELECT age FROM patients;", encoding="utf-8")
    ran = runner(capsys)("ask", *words, "--session", home, "--epsilon", "1")
    assert is_refusal(ran), ran
    with discreet.open(home) as curator:
        assert curator.spent.epsilon == 0
