"""Mutated SQL is refused, or means what its own text means; nothing else ever happens."""

from __future__ import annotations

from dataclasses import replace

import pytest
from golden_cases import SCHEMA, all_cases
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.errors import Refusal
from discreet.question.sql import parse, parse_statement, write_question_text
from discreet.question.sql.dialect import tokenize
from discreet.question.statement import Statement

QUIET = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def words(text: str) -> list[str]:
    """The words of a question, as they are written."""
    try:
        return [text[token.start : token.end + 1] for token in tokenize(text)]
    except Exception:
        return text.split()


QUESTIONS = [words(case.question) for case in all_cases()]
VOCABULARY = sorted({word for question in QUESTIONS for word in question})
HOSTILE = [
    ";", "--", "/*", "*/", "$$", "$a$", "\\", "\0", "'", '"', "`", "(", ")", "[", "]", "{", "}",
    "::", "=>", "->", "|>", "@", "?", ":x", "0x1F", "1e999", "-", "UNION", "EXCEPT", "LATERAL",
    "TABLESAMPLE", "QUALIFY", "OVER", "FOR UPDATE", "PIVOT", "COLLATE", "WINDOW", "DISTINCT ON",
    "'/etc/passwd'", "read_csv('x')", "EXISTS (SELECT 1)", "IN (SELECT age FROM visits)",
    "VALUES (1)", "INTO x", "WITH", "RECURSIVE", "OFFSET 3", "NULLS FIRST", "NATURAL", "\u202e",
]  # fmt: skip


def check(text: str) -> bool:
    """Refused, or a fixpoint of reading and writing; true if it was accepted.

    Where a released number stands in a condition it was paid for, and may be one that no row meets:
    alone, with a constant in its place, such a question is refused.
    """
    try:
        found = parse_statement(text, SCHEMA)
    except Refusal as refusal:
        str(refusal), refusal.to_json()
        return False
    several = isinstance(found.question, Statement)
    for question in found.question.questions if several else (found.question,):
        written = write_question_text(question)
        try:
            again = parse(written, SCHEMA)
        except Refusal as refusal:
            if several and found.question.first and refusal.code == "Q36":
                continue
            raise
        assert replace(again, text="") == replace(question, text="")
        assert write_question_text(again) == written
    return True


@st.composite
def mutated(draw) -> str:
    """A golden question with a few words deleted, doubled, exchanged, replaced or put in."""
    found = list(draw(st.sampled_from(QUESTIONS)))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(found)))
        word = draw(st.sampled_from(VOCABULARY) | st.sampled_from(HOSTILE))
        match draw(st.integers(0, 5)):
            case 0:
                found.insert(place, word)
            case 1:
                found[place : place + 1] = [word]
            case 2:
                del found[place : place + draw(st.integers(1, 3))]
            case 3:
                found[place:place] = found[place : place + draw(st.integers(1, 6))]
            case 4:
                other = draw(st.sampled_from(QUESTIONS))
                start = draw(st.integers(0, max(0, len(other) - 1)))
                found[place:place] = other[start : start + draw(st.integers(1, 8))]
            case _:
                later = draw(st.integers(0, len(found)))
                found[place:later], found[later:] = found[later:], found[place:later]
    return draw(st.sampled_from([" ", "\n", "  /* x */ "])).join(found)


KINDS = [
    ["age", "cost", "income", "day", "city", "doctor", "paid", "note", "patient_id"],
    ["COUNT", "SUM", "AVG", "MEDIAN", "MIN", "MAX", "STDDEV", "VARIANCE", "COUNTIF", "MODE"],
    ["=", "<>", "<", "<=", ">", ">="],
    ["+", "-", "*", "/", "%", "||"],
    ["AND", "OR"],
    ["JOIN", "LEFT JOIN", "RIGHT JOIN", "CROSS JOIN", ","],
    ["WHERE", "HAVING", "ON"],
    ["GROUP BY", "ORDER BY"],
    ["UNION ALL", "UNION", "EXCEPT"],
    ["visits", "patients", "cities", "shifts", "readings"],
    ["ABS", "FLOOR", "CEIL", "SQRT", "LN", "UPPER", "LOWER", "YEAR", "MONTH", "LENGTH"],
    ["0", "1", "2", "3", "18", "100", "0.5", "1e3", "-7", "NULL", "'york'"],
]


@st.composite
def exchanged(draw) -> str:
    """A golden question with a few words exchanged for others of the same kind."""
    found = list(draw(st.sampled_from(QUESTIONS)))
    places = [
        (i, kind)
        for i, word in enumerate(found)
        for kind in KINDS
        if word.upper() in map(str.upper, kind)
    ]
    if places:
        for _ in range(draw(st.integers(1, 3))):
            place, kind = draw(st.sampled_from(places))
            found[place] = draw(st.sampled_from(kind))
    return " ".join(found)


@QUIET
@given(mutated())
def test_mutated_questions(text):
    check(text)


@QUIET
@given(exchanged())
def test_exchanged_words(text):
    check(text)


TEXT_OF_ANY_KIND = st.text(max_size=200) | st.text(
    "SELECTFROMWHR()*,.;'\"`-/$[]{}=<>|&! \n0179eE", max_size=60
)
ANY_WORDS = st.lists(st.sampled_from(VOCABULARY + HOSTILE), max_size=25).map(
    lambda found: " ".join(["SELECT", *found])
)


@QUIET
@given(TEXT_OF_ANY_KIND)
def test_any_text(text):
    check(text)


@QUIET
@given(ANY_WORDS)
def test_any_words(text):
    check(text)


@pytest.mark.soak
@settings(QUIET, max_examples=50_000, derandomize=False)
@given(mutated() | exchanged() | TEXT_OF_ANY_KIND | ANY_WORDS)
def test_questions_at_length(text):
    check(text)


NUMBERS = ["age", "cost", "income", "3", "2.5", "-1", "0", "NULL"]
TEXTS = ["city", "doctor", "note", "'york'", "'a''b'", "''", "NULL"]


def expressions(depth: int):
    """Expressions that are mostly well formed, to reach deep into the reader."""
    if depth == 0:
        return st.sampled_from(NUMBERS), st.sampled_from(TEXTS), st.sampled_from(["paid", "TRUE"])
    number, text, truth = expressions(depth - 1)
    pair = st.tuples(number, number)
    numbers = st.one_of(
        number,
        st.tuples(number, st.sampled_from("+-*/%"), number).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(st.sampled_from(["ABS", "FLOOR", "SQRT", "LN", "ROUND", "-"]), number).map(
            lambda t: f"{t[0]}({t[1]})"
        ),
        st.tuples(st.sampled_from(["GREATEST", "LEAST", "COALESCE", "NULLIF", "POWER"]), pair).map(
            lambda t: f"{t[0]}({t[1][0]}, {t[1][1]})"
        ),
        st.tuples(truth, number, number).map(
            lambda t: f"CASE WHEN {t[0]} THEN {t[1]} ELSE {t[2]} END"
        ),
        text.map(lambda t: f"LENGTH({t})"),
        number.map(lambda t: f"CAST({t} AS INT)"),
    )
    texts = st.one_of(
        text,
        st.tuples(text, text).map(lambda t: f"({t[0]} || {t[1]})"),
        st.tuples(st.sampled_from(["LOWER", "UPPER", "TRIM"]), text).map(
            lambda t: f"{t[0]}({t[1]})"
        ),
        number.map(lambda t: f"CAST({t} AS TEXT)"),
        st.tuples(truth, text, text).map(lambda t: f"IF({t[0]}, {t[1]}, {t[2]})"),
    )
    truths = st.one_of(
        truth,
        st.tuples(number, st.sampled_from(["=", "<>", "<", ">=", "!="]), number).map(
            lambda t: f"{t[0]} {t[1]} {t[2]}"
        ),
        st.tuples(truth, st.sampled_from(["AND", "OR"]), truth).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        truth.map(lambda t: f"NOT ({t})"),
        number.map(lambda t: f"{t} BETWEEN 1 AND 9"),
        text.map(lambda t: f"{t} LIKE 'a%'"),
        text.map(lambda t: f"{t} IN ('a', 'b')"),
        number.map(lambda t: f"({t}) IS NOT NULL"),
        truth.map(lambda t: f"({t}) IS FALSE"),
    )
    return numbers, texts, truths


NUMBER, TEXT, TRUTH = expressions(3)


DEEP = NUMBER, TEXT, TRUTH, TRUTH
AGGREGATES = st.sampled_from(["SUM", "AVG", "COUNT", "MEDIAN", "COUNT_DISTINCT"])


@settings(QUIET, max_examples=32)
@given(*DEEP, AGGREGATES)
def test_deep_expressions(number, text, where, having, aggregate):
    check_deep(number, text, where, having, aggregate)


@pytest.mark.soak
@settings(QUIET, max_examples=5_000, derandomize=False)
@given(*DEEP, AGGREGATES)
def test_deep_expressions_at_length(number, text, where, having, aggregate):
    check_deep(number, text, where, having, aggregate)


def check_deep(number, text, where, having, aggregate):
    plain = aggregate != "COUNT_DISTINCT"
    value = f"{aggregate}({number})" if plain else f"COUNT(DISTINCT {number})"
    check(f"SELECT {text} AS k, {value} AS v FROM visits WHERE {where} GROUP BY {text}")
    check(f"SELECT COUNT(*) FILTER (WHERE {having}) AS v FROM visits WHERE {where}")
    check(
        f"SELECT AVG(s.m) AS v FROM (SELECT patient_id, MAX({number}) AS m FROM visits"
        f" WHERE {where} GROUP BY patient_id) AS s"
    )


def test_the_generator_reaches_accepted_questions():
    """A fuzzer whose every input is refused tests nothing."""
    accepted = 0

    @settings(QUIET, max_examples=100)
    @given(NUMBER, TRUTH)
    def count(number, where):
        nonlocal accepted
        accepted += check(f"SELECT COUNT({number}) AS v FROM visits WHERE {where}")

    count()
    assert accepted > 30
