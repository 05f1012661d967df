"""Questions of every shape that can be made long or deep, and how much work reading them is.

Work is counted in calls, not timed: a slow machine does the same work.  What a
shape costs is reported per character, with the time beside it for people.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from types import FrameType
from typing import Any

from discreet.errors import Refusal

Shape = Callable[[int], str]


def _within(pattern: str, times: int, inner: str = "age") -> str:
    for place in range(times):
        inner = pattern.format(inner=inner, place=place)
    return inner


def _sum(expression: str) -> str:
    return f"SELECT SUM(GREATEST(LEAST({expression}, 9), 0)) FROM visits"


def _where(condition: str) -> str:
    return f"SELECT COUNT(*) FROM visits WHERE {condition}"


def _each(pattern: str, times: int, by: str = ", ") -> str:
    return by.join(pattern.format(place=place) for place in range(times))


def _nested(pattern: str) -> Shape:
    return lambda n: _sum(_within(pattern, n))


def _chained(pattern: str, by: str) -> Shape:
    return lambda n: _where(_each(pattern, n, by))


def _named(n: int) -> str:
    """WITH, each of the one before."""
    parts = ["q0 AS (SELECT patient_id, age FROM visits)"]
    parts += [f"q{i} AS (SELECT patient_id, age + {i} AS age FROM q{i - 1})" for i in range(1, n)]
    return f"WITH {', '.join(parts)} SELECT COUNT(*) FROM q{n - 1}"


def _doubled(n: int) -> str:
    """WITH, each twice the one before: 2**n rows of text, if it were written out."""
    columns = "patient_id, age"
    parts = ["q0 AS (SELECT patient_id, age FROM visits)"]
    parts += [
        f"q{i} AS (SELECT {columns} FROM q{i - 1} UNION ALL SELECT {columns} FROM q{i - 1})"
        for i in range(1, n)
    ]
    return f"WITH {', '.join(parts)} SELECT COUNT(*) FROM q{n - 1}"


def _twice(n: int) -> str:
    """Each column is made of the one before, used twice."""
    parts = ["q0 AS (SELECT patient_id, age AS v FROM visits)"]
    parts += [f"q{i} AS (SELECT patient_id, v + v AS v FROM q{i - 1})" for i in range(1, n)]
    return f"WITH {', '.join(parts)} SELECT SUM(GREATEST(LEAST(v, 9), 0)) FROM q{n - 1}"


def _joined(n: int) -> str:
    joins = _each(" JOIN visits v{place} ON v.patient_id = v{place}.patient_id", n, "")
    return f"SELECT COUNT(*) FROM visits v{joins}"


def _overlapping(counted: str) -> Shape:
    """Counts of many sets of values, none of which contains what is met with another value.

    Two columns: a row meets some sets of either, which are as many as there are pairs of values.
    """

    def write(n: int) -> str:
        counts, values, rng = 16, min(5 * n, 80), Random(n)
        parts = []
        for column in ("age", "cost"):
            met = [set(rng.sample(range(counts), counts // 2)) for _ in range(values)]
            for place in range(counts):
                listed = ", ".join(str(value) for value in range(values) if place in met[value])
                parts.append(f"{counted} FILTER (WHERE {column} IN (-1, {listed}))")
        named = ", ".join(f"{part} AS a{place}" for place, part in enumerate(parts))
        return f"SELECT {named} FROM visits"

    return write


def _layered(pattern: str, around: str = "SELECT COUNT(*) FROM {inner} t") -> Shape:
    return lambda n: around.format(inner=_within(pattern, n, "visits"))


DEEP: dict[str, Shape] = {
    "CASE in THEN": _nested("CASE WHEN age > {place} THEN {inner} ELSE {place} END"),
    "CASE in ELSE": _nested("CASE WHEN age > {place} THEN {place} ELSE {inner} END"),
    "CASE in WHEN": _nested("CASE WHEN {inner} > {place} THEN {place} ELSE age END"),
    "IF": _nested("IF(age > {place}, {inner}, {place})"),
    "COALESCE": _nested("COALESCE({inner}, {place})"),
    "NULLIF": _nested("NULLIF({inner}, {place})"),
    "ABS": _nested("ABS({inner})"),
    "SQRT": _nested("SQRT({inner} - 3)"),
    "POWER": _nested("POWER({inner}, 2)"),
    "ROUND": _nested("ROUND({inner} / 2, 1)"),
    "GREATEST": _nested("GREATEST({inner}, {place})"),
    "CAST": _nested("CAST({inner} AS INTEGER)"),
    "brackets": _nested("({inner})"),
    "minus": _nested("- {inner}"),
    "plus": _nested("{inner} + 1"),
    "times": _nested("({inner} + 1) * 2"),
    "itself twice": _nested("LEAST({inner}, 9)"),
    "NOT": lambda n: _where("NOT " * n + "age > 3"),
    "OR in AND": lambda n: _where(
        _within("(age = {place} OR (age > 1 AND {inner}))", n, "age < 9")
    ),
    "scalar sub-query": lambda n: _where(
        _within("age > (SELECT AVG(age) FROM visits WHERE {inner})", n, "age < 9")
    ),
    "sub-query": _layered("(SELECT patient_id, age FROM {inner} AS t)"),
    "sub-query of a person": _layered(
        "(SELECT patient_id, MAX(age) AS age FROM {inner} AS t GROUP BY patient_id)"
    ),
    "SELECT around an answer": lambda n: _within(
        "SELECT n FROM ({inner}) AS t", n, "SELECT COUNT(*) AS n FROM visits"
    ),
    "WITH": _named,
    "WITH, each twice": _doubled,
    "WITH, a column twice": _twice,
    "JOIN": _joined,
    "sum of many": lambda n: _sum(_each("age", n, " + ")),
    "product of many": lambda n: _sum(_each("age", n, " * ")),
    "differences": lambda n: _sum(_each("age", n, " - ")),
    "half a CASE": lambda n: _sum("CASE WHEN age > 3 THEN " * n + "1"),
}
"""What is within itself: as deep as is let in, work may grow with the square of the depth."""

LONG: dict[str, Shape] = {
    "OR": _chained("age = {place}", " OR "),
    "AND": _chained("age <> {place}", " AND "),
    "OR of two columns": _chained("(age = {place} AND cost > {place})", " OR "),
    "BETWEEN": _chained("age BETWEEN {place} AND 99", " OR "),
    "LIKE": _chained("city LIKE 'a{place}%'", " OR "),
    "comparisons": _chained("age > {place}", " AND "),
    "IN numbers": lambda n: _where(f"age IN ({_each('{place}', n)})"),
    "IN texts": lambda n: _where(f"city IN ({_each(chr(39) + 'c{place}' + chr(39), n)})"),
    "IN rows": lambda n: _where(f"(age, cost) IN ({_each('({place}, 3)', n)})"),
    "rows in rows": lambda n: _where(_within("((age = 3) = {inner}, age) = (TRUE, 3)", n, "TRUE")),
    "IN after IN": _chained("age IN ({place}, 3, 5)", " AND "),
    "WHEN": lambda n: _sum(f"CASE {_each('WHEN age = {place} THEN {place}', n, ' ')} ELSE 0 END"),
    "WHEN, simple": lambda n: _sum(f"CASE age {_each('WHEN {place} THEN 1', n, ' ')} END"),
    "GREATEST of many": lambda n: _sum(f"GREATEST({_each('age + {place}', n)})"),
    "CONCAT": lambda n: _where(_each("city", n, " || ") + " = 'x'"),
    "aggregates": lambda n: f"SELECT {_each('SUM(age) AS a{place}', n)} FROM visits",
    "aggregates that differ": lambda n: (
        f"SELECT {_each('AVG(GREATEST(LEAST(cost, {place} + 1), 0)) AS a{place}', n)} FROM visits"
    ),
    "CORR": lambda n: f"SELECT {_each('CORR(age, cost + {place}) AS a{place}', n)} FROM visits",
    "MEDIAN": lambda n: f"SELECT {_each('MEDIAN(age + {place}) AS a{place}', n)} FROM visits",
    "COUNT DISTINCT": lambda n: (
        f"SELECT {_each('COUNT(DISTINCT age + {place}) AS a{place}', n)} FROM visits"
    ),
    "FILTER": lambda n: (
        f"SELECT {_each('COUNT(*) FILTER (WHERE age > {place}) AS a{place}', n)} FROM visits"
    ),
    "sets of values": _overlapping("COUNT(*)"),
    "sets of values, units": _overlapping("COUNT(DISTINCT patient_id)"),
    "released arithmetic": lambda n: f"SELECT {_each('COUNT(*)', n, ' + ')} AS n FROM visits",
    "keys": lambda n: (
        f"SELECT {_each('age > {place} AS k{place}', n)}, COUNT(*) FROM visits GROUP BY "
        f"{', '.join(str(i + 1) for i in range(n))}"
    ),
    "HAVING": lambda n: (
        "SELECT city, COUNT(*) AS n FROM visits GROUP BY city HAVING "
        + _each("n > {place}", n, " AND ")
    ),
    "ORDER BY": lambda n: (
        f"SELECT city, COUNT(*) AS n FROM visits GROUP BY city ORDER BY {_each('n + {place}', n)}"
    ),
    "UNION ALL": lambda n: (
        f"SELECT COUNT(*) FROM ({_each('SELECT patient_id, age FROM visits', n, ' UNION ALL ')}) t"
    ),
    "UNION ALL of answers": lambda n: _each("SELECT COUNT(*) FROM visits", n, " UNION ALL "),
    "comma joins": lambda n: f"SELECT COUNT(*) FROM {_each('visits v{place}', n)}",
    "casts": lambda n: _sum("age" + "::integer" * n),
    "dots": lambda n: _where("v" + ".age" * n + " > 3"),
    "statements": lambda n: "SELECT COUNT(*) FROM visits; " * n,
    "window": lambda n: f"SELECT {_each('SUM(age) OVER () AS a{place}', n)} FROM visits",
    "blanks": lambda n: _where(" " * n + "age > 3"),
    "line feeds": lambda n: _where("\n" * n + "age > 3"),
    "a comment": lambda n: _where(f"age > 3 /* {'x' * n} */"),
    "comments": lambda n: _where("/* x */ " * n + "age > 3"),
    "line comments": lambda n: _where("-- x\n" * n + "age > 3"),
    "comments within": lambda n: _where("/*" * n + "*/" * n + "age > 3"),
    "a long name": lambda n: f"SELECT COUNT(*) AS {'n' * n} FROM visits",
    "a long unknown column": lambda n: _where("a" * n + " > 3"),
    "a long unknown table": lambda n: f"SELECT COUNT(*) FROM {'v' * n}",
    "a long unknown function": lambda n: _where("f" * n + "(age) > 3"),
    "unknown columns": _chained("ag{place} > 3", " OR "),
    "a quoted name": lambda n: f'SELECT COUNT(*) AS "{"é" * n}" FROM visits',
    "a text": lambda n: _where(f"city = '{'x' * n}'"),
    "quotes": lambda n: _where(f"city = '{chr(39) * 2 * n}'"),
    "a pattern": lambda n: _where(f"city LIKE '{'%a' * n}'"),
    "a number": lambda n: _where(f"age > {'9' * n}"),
    "a fraction": lambda n: _where(f"cost > 0.{'9' * n}"),
    "an exponent": lambda n: _where(f"cost > 1e{n}"),
    "open brackets": lambda n: _where("(" * n + "age > 3"),
    "closed brackets": lambda n: _where("age > 3" + ")" * n),
    "commas": lambda n: f"SELECT COUNT(*) {',' * n} FROM visits",
    "quote marks": lambda n: _where("'" * (2 * n + 1)),
    "dollars": lambda n: _where("$" * n),
    "stars": lambda n: f"SELECT {'*' * n} FROM visits",
    "half a list": lambda n: _where("age IN (" * n),
}
"""What is one after the other: work grows with the length, or it is refused."""

SHAPES = DEEP | LONG


@dataclass(frozen=True, slots=True)
class Measured:
    """One question at one stage."""

    length: int
    work: int
    seconds: float
    outcome: str

    def __str__(self) -> str:
        return (
            f"{self.length:6} characters: {self.work / self.length:8.1f} calls and "
            f"{1e6 * self.seconds / self.length:8.2f} µs a character ({self.outcome})"
        )


class TooMuch(BaseException):
    """Raised within the work itself, which may catch every exception."""


def measure(stage: Callable[[str], Any], text: str, *, most: int) -> Measured:
    """Count the calls that are made; give up beyond ``most``."""
    work = 0

    def count(_: FrameType, event: str, __: Any) -> None:
        nonlocal work
        work += event in ("call", "c_call")
        if work > most:
            sys.setprofile(None)
            raise TooMuch

    start = time.perf_counter()
    sys.setprofile(count)
    try:
        stage(text)
        outcome = "accepted"
    except Refusal as refusal:
        outcome = refusal.code
    except TooMuch:
        outcome = "no end"
    finally:
        sys.setprofile(None)
    return Measured(len(text), work, time.perf_counter() - start, outcome)
