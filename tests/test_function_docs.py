"""docs/functions.md lists every function: `python tests/test_function_docs.py` writes it anew.

What an example comes to is computed: typed in a question, read, compiled, and found by the engine
among people's rows; Python's own meaning of the functions and the reference must say the same.
What is computed from answers is asked of a curator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Any

import function_examples as typed
import pandas as pd
from reference_values import value_of

import discreet
from discreet.engine.duckdb import DuckDBEngine
from discreet.price.plan import Contribution, Plan, Units
from discreet.question.expressions import Call, Case, Expression
from discreet.question.functions import FUNCTIONS, evaluate
from discreet.question.question import Key, Question
from discreet.question.relation import Project
from discreet.question.schema import Schema
from discreet.question.sql import parse_statement, released
from discreet.question.sql.dialect import NOW, parse_trees, tokenize
from discreet.question.sql.normalize import _RULES, SPECIAL, SYNONYMS

PAGE = Path(__file__).parent.parent / "docs" / "functions.md"
HEAD = """\
# Functions

Every function that may stand in an expression, with what it comes to. None can fail on any row:
where there is no value, the value is NULL. Arguments that are NULL make the result NULL, except
where the meaning says otherwise. Any other function is refused.

Whole numbers are exact while they are known to stay within ±2⁶²; otherwise, and for decimals,
arithmetic is that of doubles. Texts have at most 4096 characters; they are compared letter by
letter, by numbers in Unicode: capitals come before small ones. Dates and timestamps lie in the
years 1 to 9999 and have no time zone. Letters outside ASCII change case as the engine's tables say.

CASE WHEN condition THEN a … ELSE b END is the value of the first branch whose condition is true;
BETWEEN is two comparisons.

`→` is followed by the value, which a test computes from what stands before it: by the engine, from
a row, and once more by a reference in Python.

| name | written | meaning | example |
| --- | --- | --- | --- |
"""
OTHER_NAMES = """
## Other names

What other systems call them is read as one of the functions above.

| written | means | example |
| --- | --- | --- |
"""
SIGNS = """
## Signs and words

| written | means | example |
| --- | --- | --- |
"""
CLOCK = """
## The present

Constants, fixed when the question is read; here at 18:30:15 on 29 February 2024.

| written | value |
| --- | --- |
"""
AFTER = """
## After the release

What is computed from released numbers ([SQL](sql.md#after-the-release)) is DuckDB's, and means what
it means there: `GREATEST`, `LEAST` and `CONCAT` pass over NULL, which in people's rows makes them
NULL; `CEIL` and the like of a decimal are decimals; `DATE_TRUNC` of a date is a moment.

| function of a row | meaning |
| --- | --- |
"""
AGGREGATES = f"""
Aggregates, here of `{typed.ROWS}`:

| aggregate | meaning |
| --- | --- |
"""
WINDOWS = """
Before `OVER`, the values of these four rows in their order:

| window | meaning |
| --- | --- |
"""


# --- what an example comes to --------------------------------------------------------------------

MOMENT = datetime(2024, 2, 29, 18, 30, 15)
PEOPLE = Schema.from_text("""
[tables.people]
unit = "id"
max_rows_per_unit = 1
columns.id = "integer"
""")
ROWS = {"people": pd.DataFrame({"id": [7, 9]})}
TOGETHER = 12
"""So many examples are keys of one plan: to compile one takes longer than to compute it."""


@cache
def read(example: str) -> Expression:
    """What a question with an example in it has for its column."""
    text = f"SELECT value, COUNT(*) FROM (SELECT id, {example} AS value FROM people) GROUP BY value"
    question = parse_statement(text, PEOPLE, now=MOMENT).question
    assert isinstance(question, Question)
    assert isinstance(question.source, Project)
    return dict(question.source.columns)[question.keys[0].expression.name]


def find_values(engine: DuckDBEngine, examples: Sequence[str]) -> tuple[Any, ...]:
    """What the engine finds in the one group that all rows are in."""
    asked = parse_statement("SELECT COUNT(*) FROM people", PEOPLE).question
    assert isinstance(asked, Question)
    keys = tuple(Key(f"v{place}", read(one), None) for place, one in enumerate(examples))
    plan = Plan(asked.source, keys, Contribution(rows=1), (Units(),))
    (group,) = engine.run(engine.compile(plan)).open_for_release().groups
    return group


def list_examples() -> Iterator[str]:
    """Whatever may stand in people's rows."""
    for examples in typed.EXAMPLES.values():
        yield from examples
    for _, *examples in (typed.CALLED | typed.SIGNS).values():
        yield from examples
    yield from typed.CLOCK.values()
    yield from map(say_otherwise, sorted(set(SYNONYMS) - set(SPECIAL)))


@cache
def values() -> dict[str, Any]:
    """The value of every example, by the engine."""
    examples = list(dict.fromkeys(list_examples()))
    parts = [examples[n : n + TOGETHER] for n in range(0, len(examples), TOGETHER)]
    with DuckDBEngine(ROWS, PEOPLE, threads=1) as engine:
        found = [find_values(engine, part) for part in parts]
    return dict(zip(examples, (value for group in found for value in group), strict=True))


def say_otherwise(name: str) -> str:
    """An example of a function, under another of its names."""
    own = f"{SYNONYMS[name].upper()}("
    example = next(one for one in typed.EXAMPLES[SYNONYMS[name]] if one.startswith(own))
    return example.replace(own, f"{name.upper()}(", 1)


@cache
def values_after() -> dict[str, Any]:
    """The values of examples that are computed from answers; of windows a list."""
    asked = "(SELECT COUNT(*) AS n FROM people) AS s"
    with discreet.curator(ROWS, schema=PEOPLE, budget=discreet.Budget(epsilon=3)) as curator:

        def compute(examples: dict[str, str], rest: str) -> dict[str, Any]:
            listed = ", ".join(f"{one} AS v{n}" for n, one in enumerate(examples.values()))
            answer = curator.ask(f"SELECT {listed} FROM {rest}", epsilon=2)
            columns = (answer.column(f"v{n}") for n in range(len(examples)))
            return dict(zip(examples.values(), columns, strict=True))

        single = compute(typed.OVER_ANSWERS, asked)
        single |= compute(typed.OF_ANSWERS, f"{typed.ROWS}, {asked}")
        several = compute(typed.BEFORE_OVER, f"{typed.ROWS}, {asked} ORDER BY z")
        several |= compute(
            typed.WITH_TOTALS, f"{typed.ROWS}, {asked} GROUP BY ROLLUP (y) ORDER BY y"
        )
        assert curator.spent.epsilon == 2  # one question, and what is computed from it is free
    return {example: value for example, (value,) in single.items()} | several


def show(value: Any) -> str:
    """A value as the page writes it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case str():
            return f"'{value}'"
        case datetime():
            return value.isoformat(" ")
        case date():
            return value.isoformat()
        case list():
            return ", ".join(map(show, value))
        case _:
            return repr(value)


# --- the page ------------------------------------------------------------------------------------


def code(text: str) -> str:
    """Code in a cell of a table."""
    return f"`{text}`".replace("|", "\\|")


def cell(examples: Sequence[str], found: dict[str, Any]) -> str:
    """Examples and their values."""
    return "; ".join(f"{code(one)} → {code(show(found[one]))}" for one in examples)


def other_names() -> Iterator[str]:
    for name in sorted({*SYNONYMS, *typed.CALLED}):
        if name in typed.CALLED:
            meaning, *examples = typed.CALLED[name]
        else:
            meaning, examples = f"`{SYNONYMS[name].upper()}`", [say_otherwise(name)]
        yield f"| `{name.upper()}` | {meaning} | {cell(examples, values())} |\n"


def tell(examples: dict[str, str], found: dict[str, Any], beside: str = "") -> Iterator[str]:
    """Rows of what is computed from answers: an example, its value, what it means."""
    for name, one in examples.items():
        yield f"| {cell([one], found)}{beside} | {typed.MEANT[name]} |\n"


@cache
def page() -> str:
    known, after = values(), values_after()
    listed = sorted(FUNCTIONS.values(), key=lambda f: f.name)
    return "".join(
        [
            HEAD,
            *(
                f"| `{f.name}` | {code(f.usage)} | {f.meaning} |"
                f" {cell(typed.EXAMPLES[f.name], known)} |\n"
                for f in listed
            ),
            OTHER_NAMES,
            *other_names(),
            SIGNS,
            *(
                f"| {code(name)} | {meaning} | {cell(examples, known)} |\n"
                for name, (meaning, *examples) in typed.SIGNS.items()
            ),
            CLOCK,
            *(f"| {code(one)} | {code(show(known[one]))} |\n" for one in typed.CLOCK.values()),
            AFTER,
            *tell(typed.OVER_ANSWERS, after),
            AGGREGATES,
            *tell(typed.OF_ANSWERS, after),
            *tell(typed.WITH_TOTALS, after, " with `GROUP BY ROLLUP (y)`"),
            WINDOWS,
            *tell(typed.BEFORE_OVER, after),
        ]
    )


def test_the_page_is_the_registry_and_what_the_engine_computes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


# --- the examples --------------------------------------------------------------------------------


def list_calls(expression: Expression) -> Iterator[str]:
    """The functions that an expression calls; IF is a CASE."""
    match expression:
        case Call(function=name, arguments=arguments):
            yield name
            parts: tuple[Expression, ...] = arguments
        case Case(branches=branches, otherwise=otherwise):
            yield "if"
            parts = (*(part for branch in branches for part in branch), otherwise)
        case _:
            parts = ()
    for part in parts:
        yield from list_calls(part)


def test_every_function_has_an_example_that_calls_it() -> None:
    assert sorted(FUNCTIONS.keys() - typed.EXAMPLES.keys()) == []
    idle = [
        (name, example)
        for name, examples in typed.EXAMPLES.items()
        for example in examples or [""]
        if name not in list_calls(read(example))
    ]
    assert idle == []


def test_the_reference_and_python_say_what_the_engine_says() -> None:
    assert len(values()) > 250
    for example, found in values().items():
        expression = read(example)
        for other in (evaluate(expression, {}, {}), value_of(expression, {}, {})):
            assert (type(other), other) == (type(found), found), example


def test_every_other_name_has_an_example() -> None:
    assert typed.CALLED.keys() == SPECIAL.keys() - {"if"}  # which has a line of its own
    for name, (_, *examples) in typed.CALLED.items():
        assert examples, name
        assert all(f"{name.upper()}(" in example for example in examples)
    assert {name.upper() for name in typed.CLOCK} == NOW


def test_another_name_means_the_same() -> None:
    for name in SYNONYMS.keys() - SPECIAL.keys():
        other = say_otherwise(name)
        own = other.replace(f"{name.upper()}(", f"{SYNONYMS[name].upper()}(", 1)
        assert read(other) == read(own)


def test_every_rule_of_the_dialect_is_shown() -> None:
    """An operator that is let into expressions has a line, though it is no function."""
    seen = set()
    for example in list_examples():
        text = f"SELECT {example}"
        (tree,) = parse_trees(text, tokenize(text))
        assert tree is not None
        seen |= {type(node) for node in tree.walk()}
    assert sorted(rule.__name__ for rule in _RULES.keys() - seen) == []


def test_everything_that_is_computed_from_answers_has_an_example() -> None:
    assert typed.OVER_ANSWERS.keys() == released.SCALARS
    assert typed.OF_ANSWERS.keys() | typed.WITH_TOTALS.keys() == released.AGGREGATES
    assert typed.BEFORE_OVER.keys() == released.WINDOWS
    shown = typed.OVER_ANSWERS | typed.OF_ANSWERS | typed.WITH_TOTALS | typed.BEFORE_OVER
    assert [name for name, example in shown.items() if f"{name.upper()}(" not in example] == []
    assert len(values_after()) == len(shown)


def test_everything_that_is_computed_from_answers_says_what_it_means() -> None:
    shown = [typed.OVER_ANSWERS, typed.OF_ANSWERS, typed.WITH_TOTALS, typed.BEFORE_OVER]
    assert typed.MEANT.keys() == {name for examples in shown for name in examples}
    assert [name for name, meaning in typed.MEANT.items() if not meaning.strip()] == []


def test_days_are_shifted_and_counted_after_the_release_as_before() -> None:
    """DuckDB makes a moment of a day that is shifted: the same day."""
    names = ("date_add", "date_sub", "dateadd", "datesub")
    examples = [example for name in names for example in typed.CALLED[name][1:]]
    examples += ["DATE_SUB('month', DATE '2024-01-31', DATE '2024-03-31')"]
    examples += ["DATESUB(day, DATE '2024-02-28', DATE '2024-03-01')"]
    with DuckDBEngine(ROWS, PEOPLE, threads=1) as engine:
        before = find_values(engine, examples)
    listed = ", ".join(f"{one} AS v{n}" for n, one in enumerate(examples))
    with discreet.curator(ROWS, schema=PEOPLE, budget=discreet.Budget(epsilon=3)) as curator:
        text = f"SELECT {listed} FROM (SELECT COUNT(*) AS n FROM people) AS s"
        answer = curator.ask(text, epsilon=2)
    after = [answer.column(f"v{n}")[0] for n in range(len(examples))]
    assert [show(one).removesuffix(" 00:00:00") for one in after] == [show(one) for one in before]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
