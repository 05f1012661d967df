"""A18: what is no number of any record is missing, and nothing else happens.

A database that is asked for a list, or for a number that it cannot hold, fails; and a failure stops
the ledger for everybody until it is opened again.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import discreet
from discreet.errors import InvalidParameter, Refusal

SCHEMA = """
[tables.v]
unit = "pid"
max_rows_per_unit = 1
columns.pid = "integer"
"""
ODD = [[], {}, "x", None, 1.5, b"1", 2**63, 10**30, -(10**30), -1, 0, (1,)]
COUNT = "SELECT COUNT(*) AS n FROM v"


@pytest.fixture
def curator():
    rows = pa.table({"pid": list(range(50))})
    with discreet.curator({"v": rows}, schema=SCHEMA, budget=9) as found:
        yield found


@pytest.mark.parametrize("number", ODD, ids=repr)
def test_an_odd_number_is_missing_and_the_ledger_goes_on(curator, number):
    account = curator.account
    for look in (account.answer, account.runs.state, account.runs.check):
        with pytest.raises(LookupError, match="L12"):
            look(number)
    with pytest.raises(LookupError, match="L12"):
        curator.run(number)
    assert account.entry(number) is None
    assert len(curator.ask(COUNT, epsilon=1).rows) == 1


@pytest.mark.parametrize("number", [[], "x", 1.5, -1, b"1"], ids=repr)
def test_a_transcript_is_cut_at_whole_numbers(curator, number):
    for name in ("before", "limit"):
        with pytest.raises(InvalidParameter, match="P2"):
            curator.account.transcript(**{name: number})
    assert len(curator.ask(COUNT, epsilon=1).rows) == 1


def test_a_transcript_may_be_cut_where_no_ledger_reaches(curator):
    curator.ask(COUNT, epsilon=1)
    assert len(curator.account.transcript(before=10**30, limit=10**30)) == 1


@pytest.mark.parametrize("number", [[], "0", 0.5, -1, 99, 10**30], ids=repr)
def test_an_odd_number_of_a_question_of_a_run_is_refused(curator, number):
    with curator.watch(threshold=20, epsilon=1) as run:
        with pytest.raises(InvalidParameter, match="P2"):
            run.ask(COUNT, number=number)
        assert run.asked == 0


@pytest.mark.parametrize("table", [[], {}, None, 7, "w"], ids=repr)
def test_an_odd_table_is_not_aggregated(curator, table):
    def one(_frame):
        return 1.0

    with pytest.raises(Refusal, match="P4"):
        curator.aggregate(one, table, epsilon=1, output_bounds=(0, 2))
