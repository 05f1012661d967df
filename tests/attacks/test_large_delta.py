"""A delta so large that publishing somebody keeps the promise.

The mechanism that publishes one row, drawn at random among n, and nothing else is
(0, 1/n)-differentially private, so a promise of that delta is none.
"""

from __future__ import annotations

import warnings
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest
from cli_cases import is_refusal, make_session, runner

import discreet
from discreet import Budget
from discreet.accounting.budget import LargeDelta
from discreet.accounting.divergence import hockey_stick
from discreet.accounting.law import FiniteLaw
from discreet.errors import InvalidParameter, SchemaRefusal
from discreet.ledger import Ledger
from discreet.question.schema import Schema
from discreet.release.record import from_json, to_json

TABLES = """
[tables.patients]
unit = "person"
max_rows_per_unit = 1
columns.person = "integer"
"""
ROWS = {"patients": pa.table({"person": [1, 2, 3]})}


def schema(population: int | None = None) -> Schema:
    top = "" if population is None else f"population = {population}\n"
    return Schema.from_text(top + TABLES)


def promise(delta: str, population: int | None = None, **insist: bool) -> None:
    discreet.curator(
        ROWS, schema=schema(population), budget=Budget(epsilon=1, delta=delta, **insist)
    )


@pytest.mark.parametrize("people", [3, 40])
def test_publishing_one_random_person_has_a_delta_of_one_in_n(people):
    """Change one person: with probability 1/n, and no more, the row that is shown is theirs."""

    def published(rows: list[str]) -> FiniteLaw:
        names = sorted({"ann", "bob", *rows})
        return FiniteLaw.exact([(name, Fraction(rows.count(name), len(rows))) for name in names])

    others = [f"person {k}" for k in range(people - 1)]
    one, other = published([*others, "ann"]), published([*others, "bob"])
    assert hockey_stick(one, other, Fraction(0))[1] == pytest.approx(1 / people)
    assert hockey_stick(one, other, Fraction(50))[1] == pytest.approx(1 / people)


def test_a_large_delta_is_refused_where_a_budget_is_made():
    for delta in ("0.9", "0.01"):
        with pytest.raises(InvalidParameter) as refusal:
            Budget(epsilon=1, delta=delta)
        assert refusal.value.code == "P10"
        assert "one person, drawn at random among n, has delta = 1/n" in refusal.value.why
        assert "accept_large_delta=True" in refusal.value.fix
    with pytest.raises(InvalidParameter):
        Budget(rho=1, delta="0.9")
    insisted = Budget(epsilon=1, delta="0.9", accept_large_delta=True)
    assert insisted.delta == Fraction(9, 10)
    with pytest.raises(InvalidParameter):
        Budget(epsilon=1, delta="0.9", accept_large_delta="yes")


def test_a_declared_population_decides():
    promise("0.0001", population=9_999)
    with pytest.raises(InvalidParameter) as refusal:
        promise("0.0001", population=10_000)
    assert refusal.value.code == "P10"
    assert "n = 10,000" in refusal.value.what
    promise("0.0001", population=10_000, accept_large_delta=True)
    # Also where it is small as such: one in a thousand million.
    with pytest.raises(InvalidParameter):
        promise("1e-9", population=10**9)


def test_without_a_population_more_than_1e_5_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        promise("1e-5")
    with pytest.warns(LargeDelta, match="publishes all rows of one person, drawn at random"):
        promise("1.1e-5")
    promise("1.1e-5", accept_large_delta=True)


@pytest.mark.parametrize("wrong", ["0", "-3", "2.5", '"many"', "true"])
def test_a_population_is_a_whole_number(wrong):
    with pytest.raises(SchemaRefusal) as refusal:
        Schema.from_text(f"population = {wrong}\n{TABLES}")
    assert "population" in refusal.value.what


def test_a_population_is_no_part_of_what_is_recorded():
    """It decides nothing but whether a delta is accepted: replay keys stay as they are."""
    assert to_json(schema(20_000)) == to_json(schema())
    resolved = schema(20_000).resolve(columns=lambda _: (), values=lambda *_: ())
    assert resolved.population == 20_000


def test_a_ledger_with_a_large_delta_still_opens(tmp_path):
    """What was promised before is not taken back; to promise it anew must be insisted on."""
    file = tmp_path / "ledger.sqlite"
    large = Budget(epsilon=1, delta="0.9", accept_large_delta=True)
    with Ledger.open(file) as ledger:
        ledger.account("data", schema=schema(), budget=large)
    old = from_json(to_json(large))
    assert (old.delta, old.accept_large_delta) == (Fraction(9, 10), False)
    with Ledger.open(file) as ledger:
        assert ledger.account("data", schema=schema(5), budget=old).budget == large
        assert ledger.verify().ok
        larger = Budget.recorded(epsilon=2, delta="0.9")
        with pytest.raises(InvalidParameter):
            ledger.account("data", schema=schema(), budget=larger)
        with pytest.raises(InvalidParameter):
            ledger.account("other", schema=schema(), budget=old)


def edit(home: Path, old: str, new: str) -> None:
    file = home / "discreet.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def test_the_command_line_refuses_warns_and_takes_insistence(tmp_path, capsys):
    home, run = make_session(tmp_path / "clinic"), runner(capsys)
    check = ("schema", "check", home)
    assert run(*check)[0] == 0
    edit(home, "delta = 1e-9", "delta = 0.9")
    assert is_refusal(run(*check), "P10")
    assert is_refusal(run("balance", "--session", home), "P10")  # another budget: promised anew
    edit(home, "delta = 0.9", "delta = 0.9\naccept_large_delta = true")
    assert run(*check)[0] == 0
    edit(home, "delta = 0.9\naccept_large_delta = true", "delta = 1e-4")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        code, _, err = run(*check)
    assert code == 0
    assert err.startswith("warning: delta = 0.0001 is large: a mechanism that publishes")
    edit(home, "[budget]", "population = 20000\n[budget]")
    assert is_refusal(run(*check), "P10")
    edit(home, "delta = 1e-4", "delta = 1e-9")
    code, out, err = run(*check)
    assert (code, err) == (0, "")
    assert "population: about 20,000" in out
    add = ("analyst", "add", "bo", "--epsilon", "1", "--delta", "0.5", "--session", home)
    assert is_refusal(run(*add), "P10")
    assert run(*add, "--accept-large-delta")[0] == 0
    limit = ("analyst", "limit", "bo", "--epsilon", "1", "--delta", "0.6", "--session", home)
    assert is_refusal(run(*limit), "P10")
    assert run(*limit, "--accept-large-delta")[0] == 0


def test_a_session_whose_large_delta_is_recorded_still_opens(tmp_path):
    home = make_session(tmp_path / "clinic")
    edit(home, "delta = 1e-9", "delta = 0.9\naccept_large_delta = true")
    with discreet.open(home) as clinic:
        assert clinic.account.budget.delta == Fraction(9, 10)
    edit(home, "accept_large_delta = true", "")  # as a file of an earlier version would be
    with discreet.open(home) as clinic:
        assert clinic.account.budget.delta == Fraction(9, 10)
