"""The allow-list of functions over released numbers, against the engine's own catalogue."""

from __future__ import annotations

import duckdb
import pytest

from discreet.question.sql import released

CATALOGUE = duckdb.sql(
    "SELECT function_name, function_type, stability FROM duckdb_functions()"
).fetchall()
BY_SYNTAX = {"coalesce", "grouping", "percentile_cont", "percentile_disc", *released.WINDOWS}
"""Names that the engine's grammar knows, and its catalogue may not."""


def test_every_function_exists_and_always_gives_the_same():
    known = {name for name, _, _ in CATALOGUE}
    assert known | BY_SYNTAX >= released.FUNCTIONS
    changing = {name for name, _, stability in CATALOGUE if stability not in (None, "CONSISTENT")}
    assert not changing & released.FUNCTIONS


def test_nothing_that_makes_or_reads_tables_is_a_function():
    tables = {name for name, kind, _ in CATALOGUE if kind in ("table", "pragma", "table_macro")}
    assert not tables & released.FUNCTIONS
    assert not {"getenv", "query", "read_text", "glob"} & released.FUNCTIONS


@pytest.mark.parametrize("kind", ["scalar", "aggregate", "table", "pragma", "macro"])
def test_no_other_name_of_the_engine_is_known(kind):
    """Of some two thousand names the engine has, those on the list and their synonyms."""
    names = {name for name, found, _ in CATALOGUE if found == kind}
    let_in = {name for name in names if released.is_known(name)}
    listed = released.FUNCTIONS | set(released._NAMES) | set(released._SPECIAL)
    assert let_in <= listed
    assert let_in >= (released.FUNCTIONS & names)
    changing = {n for n, found, stability in CATALOGUE if found == kind and stability == "VOLATILE"}
    assert not changing & let_in
