"""What an answer is computed from: refined is only what nobody can have changed meanwhile."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.curate.curator import Curator
from discreet.engine.duckdb import engine as duckdb_engine
from discreet.engine.duckdb import prepared
from discreet.errors import DataRefusal
from discreet.ledger import Ledger
from discreet.question.offer import Offer
from discreet.release.derived import Derived

SCHEMA = """
[tables.visits]
unit = "patient"
max_rows_per_unit = 1
[tables.visits.columns]
patient = "integer"
city = { type = "text", values = ["Cork", "Faro"], nullable = false }
"""
WITH_PUBLIC = (
    SCHEMA
    + """
[tables.cities]
public = true
unique = [["name"]]
columns.name = { type = "text", values = ["Cork", "Faro"], nullable = false }
columns.north = "boolean"
"""
)
BY_CITY = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
TOTAL = "SELECT COUNT(*) AS n FROM visits"
NORTH = "SELECT COUNT(*) AS n FROM visits JOIN cities ON city = name WHERE north"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_rows(tmp_path / "visits.csv", corks=100)
    return tmp_path


def write_rows(path: Path, corks: int) -> None:
    """Two hundred people, so many of them in Cork; the file has the same size anyway."""
    rows = "".join(f"{n},{'Cork' if n < corks else 'Faro'}\n" for n in range(200))
    path.write_text(f"patient,city\n{rows}")


@contextmanager
def open_clinic(home: Path, *, prepare: bool = True, schema: str = SCHEMA, **tables: object):
    """A curator of the file there, its ledger and its store beside it."""
    with (
        Ledger.open(home / "ledger.sqlite") as ledger,
        Curator(
            {"visits": home / "visits.csv", **tables},
            schema=schema,
            budget=discreet.Budget(epsilon=100),
            ledger=ledger,
            store=home / "store",
        ) as curator,
    ):
        if prepare:
            curator.prepare()
        yield curator


def find_basis(curator: Curator, sql: str) -> str | None:
    planned = curator.find_plan(curator.parse(sql), Offer.of(epsilon="0.1"))
    return curator.engine.find_basis(planned.compiled)


def test_a_prepared_table_is_refined_as_one_in_memory_is(home):
    with open_clinic(home) as curator:
        curator.ask(BY_CITY, epsilon="0.1")
        second = curator.ask(BY_CITY, epsilon="0.3")
        assert second.charged.epsilon == Fraction(2, 10)
        assert second.worth.epsilon == curator.spent.epsilon == Fraction(3, 10)
        total = curator.ask(TOTAL, within=11)
        assert total.charged.epsilon < curator.price(TOTAL, within=11, fresh=True).loss.epsilon / 2
        assert curator.ledger.verify().ok


def test_another_process_refines_what_is_prepared_in_the_same_store(home):
    with open_clinic(home) as curator:
        first = curator.ask(BY_CITY, epsilon="0.1")
    with open_clinic(home, prepare=False) as curator:
        second = curator.ask(BY_CITY, epsilon="0.3")
        assert second.charged.epsilon == Fraction(2, 10)
        assert curator.account.find_chain(second.id)[0][0] == first.id
        assert curator.ledger.verify().ok


def test_what_is_only_read_from_a_file_is_not_refined(home):
    with open_clinic(home, prepare=False) as curator:
        assert find_basis(curator, BY_CITY) is None
        curator.ask(BY_CITY, epsilon="0.1")
        curator.prepare()  # what was released before it may be of other rows
        assert find_basis(curator, BY_CITY) is not None
        assert isinstance(curator.ask(BY_CITY, epsilon="0.3"), Derived)


def swap_rows(home: Path) -> None:
    """Other rows, unnoticed: the size, the times and the inode of the file are what they were."""
    path = home / "visits.csv"
    before = path.stat()
    write_rows(path, corks=130)
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def swap_and_forget(home: Path) -> None:
    """And what was prepared is gone, and will be prepared from them."""
    swap_rows(home)
    shutil.rmtree(home / "store")


def test_rows_that_changed_unnoticed_and_were_prepared_again_are_not_refined(home):
    with open_clinic(home) as curator:
        curator.ask(BY_CITY, epsilon="0.1")
        version, basis = curator.engine.data_version(), find_basis(curator, BY_CITY)
    swap_and_forget(home)
    with open_clinic(home) as curator:
        assert curator.engine.data_version() == version  # nothing was noticed
        assert find_basis(curator, BY_CITY) not in (None, basis)
        assert isinstance(curator.ask(BY_CITY, epsilon="0.3"), Derived)
        assert all(r.content.get("parent") is None for r in curator.ledger.records())


def test_mutant_that_takes_the_version_for_certain_refines_other_rows(home, monkeypatch):
    monkeypatch.setattr(prepared, "read_token", lambda _path: "the same for all")
    with open_clinic(home) as curator:
        curator.ask(BY_CITY, epsilon="0.1")
    swap_and_forget(home)
    with open_clinic(home) as curator:
        assert not isinstance(curator.ask(BY_CITY, epsilon="0.3"), Derived)


def test_rows_that_change_unnoticed_behind_a_prepared_table_do_not_matter(home):
    with open_clinic(home) as curator:
        exact = curator.ask(BY_CITY, epsilon=40).column("n")
    swap_rows(home)
    with open_clinic(home, prepare=False) as curator:
        second = curator.ask(BY_CITY, epsilon=45)
        assert second.charged.epsilon == 5
        assert second.column("n") == exact == [100, 100]


@pytest.mark.parametrize("what", ["machine", "statement"])
def test_another_machine_or_statement_is_another_basis(home, monkeypatch, what):
    with open_clinic(home) as curator:
        basis = find_basis(curator, BY_CITY)
        if what == "machine":
            monkeypatch.setattr(duckdb_engine, "describe_machine", lambda: ("another",))
            assert find_basis(curator, BY_CITY) != basis
        else:
            assert find_basis(curator, TOTAL) != basis


def test_a_public_table_in_a_file_makes_nothing_certain(home):
    public = pa.table({"name": ["Cork", "Faro"], "north": [False, True]})
    pq.write_table(public, home / "cities.parquet")
    with open_clinic(home, schema=WITH_PUBLIC, cities=home / "cities.parquet") as curator:
        assert find_basis(curator, NORTH) is None
        assert find_basis(curator, TOTAL) is not None
    shutil.rmtree(home / "store")
    (home / "ledger.sqlite").unlink()
    with open_clinic(home, schema=WITH_PUBLIC, cities=public) as curator:
        assert find_basis(curator, NORTH) is not None


def test_a_refinement_whose_basis_is_gone_is_burnt_and_never_drawn(home):
    """Left open by an interruption; meanwhile the store was removed and prepared again."""
    with open_clinic(home) as curator:
        curator.ask(BY_CITY, epsilon="0.1")
        paid = curator.pay(BY_CITY, epsilon="0.3")
        assert paid.receipt.parent is not None
    swap_and_forget(home)
    with open_clinic(home) as curator:
        with pytest.raises(DataRefusal, match="D1"):
            curator.ask(BY_CITY, epsilon="0.3")
        assert curator.spent.epsilon == Fraction(3, 10)  # it stays spent
        assert curator.ledger.verify().ok


def test_a_question_that_was_left_open_is_answered_of_what_is_there_now(home):
    with open_clinic(home) as curator:
        curator.pay(BY_CITY, epsilon="0.3")
    swap_and_forget(home)
    with open_clinic(home) as curator:
        answer = curator.ask(BY_CITY, epsilon="0.3")
        assert curator.account.find_basis(answer.id) == find_basis(curator, BY_CITY)


def test_what_two_processes_prepare_at_once_is_one_table_for_both(home):
    with open_clinic(home) as one:
        basis = find_basis(one, BY_CITY)
        table, version = one.schema.tables["visits"], one.engine.find_versions()["visits"]
        kept = prepared.find_prepared(home / "store", table, version)
        # Another process was as fast; and took away what this one had written.
        kept.rename(kept.with_name(prepared.name_new(table, version, prepared.FILE)))
        assert find_basis(one, BY_CITY) not in (None, basis)
        assert sum(one.ask(BY_CITY, epsilon=40).column("n")) == 200
