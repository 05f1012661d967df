"""A17: what a door reads before anybody is asked is read in little work, too.

The doors for PostgreSQL's and Flight's clients look at a text before the curator does, where
everybody waits.  A hundred characters that a parser reads in 2ⁿ ways, or a pattern of many ``%``,
stopped the whole server for as long as one liked, and cost nothing.
"""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlglot import parse_one

from discreet.server.flight.door import _like
from discreet.server.postgres.routing import Kind, route
from discreet.server.postgres.tokens import tokenize

NEVER_S = 20
"""Of the processor's time: a hundred times what is needed, and nothing of what it took."""


class TooMuch(Exception):
    """More work than anybody may ask for."""


@contextmanager
def little_work(seconds: float = NEVER_S) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooMuch

    before = signal.signal(signal.SIGVTALRM, stop)
    gc.disable()  # what is raised in a callback of the collector stops nobody
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        gc.enable()
        signal.signal(signal.SIGVTALRM, before)


NESTED = [("DATE(", ")"), ("ARRAY[", "]"), ("NUMERIC(", ")"), ("CAST(", " AS INT)"), ("(", ")")]


def nest(opened: str, closed: str, depth: int) -> str:
    return f"SELECT {opened * depth}1{closed * depth} FROM visits, pg_class"


@pytest.mark.parametrize(("opened", "closed"), NESTED)
@pytest.mark.parametrize("depth", [24, 60, 400])
def test_where_a_statement_goes_is_found_in_little_work(opened, closed, depth):
    text = nest(opened, closed, depth)
    with little_work():
        assert route(text, tokenize(text), {"visits"}) is Kind.QUESTION


def test_a_parser_that_nothing_bounds_does_not_come_back():
    with pytest.raises(TooMuch), little_work(0.5):
        parse_one(nest("ARRAY[", "]", 60), dialect="postgres")


@pytest.mark.parametrize("pattern", ["%" * 300 + "!", "%_" * 300 + "!", "%i" * 300, "_%" * 3 + "!"])
def test_a_pattern_for_the_names_of_tables_is_little_work(pattern):
    with little_work():
        assert not _like("visits" * 8, pattern)


def test_patterns_mean_what_they_mean_in_sql():
    names = ["visits", "visit", "", "v", "a%b", "line\nend"]
    patterns = ["%", "v%", "%s", "v_sits", "______", "%i%i%", "", "_", "a%b", "a_b", "%e_e%", "%%"]
    import duckdb

    with duckdb.connect() as plain:
        for name in names:
            for pattern in patterns:
                (meant,) = plain.execute("SELECT ? LIKE ?", [name, pattern]).fetchone()
                assert _like(name, pattern) is meant, (name, pattern)
