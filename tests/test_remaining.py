"""What is left, asked in Snowflake's words: told by the account, free, and true of it."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from cli_cases import make_session, runner

import discreet
from discreet.accounting.budget import Budget
from discreet.errors import BudgetRefusal, QuestionRefusal, Refusal
from discreet.ledger import Ledger, Policy

SCHEMA = """
[tables.stays]
unit = "patient"
max_rows_per_unit = 2
columns.patient = "integer"
columns.ward = { type = "text", values = ["north", "south"] }
columns.days = { type = "integer", bounds = [0, 60] }
[tables.wards]
public = true
unique = [["ward"]]
columns.ward = "text"
"""
TABLES = {
    "stays": {
        "patient": list(range(300)),
        "ward": ["north", "south"] * 150,
        "days": [n % 50 for n in range(300)],
    },
    "wards": {"ward": ["north", "south"]},
}
ASKED = "SELECT * FROM TABLE(SNOWFLAKE.DATA_PRIVACY.ESTIMATE_REMAINING_DP_AGGREGATES('stays'))"
COLUMNS = (
    "NUMBER_OF_REMAINING_DP_AGGREGATES",
    "BUDGET_LIMIT",
    "BUDGET_WINDOW",
    "BUDGET_SPENT",
    "BUDGET_LEFT",
    "BUDGET_PER_AGGREGATE",
)


def make(budget: Budget, policy: Policy | None = None) -> discreet.Curator:
    import pyarrow as pa

    tables = {name: pa.table(columns) for name, columns in TABLES.items()}
    ledger = Ledger.open("sqlite://")
    return discreet.Curator(
        tables, schema=SCHEMA, budget=budget, ledger=ledger, policy=policy, owns_ledger=True
    )


def row(answer: discreet.Answer) -> dict[str, object]:
    return dict(zip(answer.columns, answer.rows[0].values, strict=True))


def test_it_is_free_and_names_what_it_estimates_with() -> None:
    with make(Budget(epsilon=3)) as curator:
        told = curator.ask(ASKED)
        assert told.columns == COLUMNS
        assert row(told) == dict(zip(COLUMNS, (30, 3.0, "Never", 0.0, 3.0, 0.1), strict=True))
        assert "free: nothing was measured" in str(told)
        assert any("0.1, as nothing was charged yet" in note for note in told.notes)
        for epsilon in ("0.2", "0.4", "0.4"):
            curator.ask("SELECT AVG(days) AS mean FROM stays", epsilon=epsilon, fresh=True)
        after = row(curator.ask(ASKED))
        assert after["BUDGET_PER_AGGREGATE"] == pytest.approx(0.4)  # the middle one
        assert after["BUDGET_LEFT"] == pytest.approx(2)
        assert after["BUDGET_SPENT"] == pytest.approx(1)
        assert curator.spent.epsilon == Fraction(1)
        assert len(curator.transcript()) == 3


@pytest.mark.parametrize("epsilon", ["0.3", "0.7", "1.1"])
@pytest.mark.parametrize("delta", ["0", "1e-9"])
def test_so_many_more_are_admitted_and_not_one_more(epsilon: str, delta: str) -> None:
    with make(Budget(epsilon=3, delta=delta)) as curator:
        curator.ask("SELECT COUNT(*) FROM stays", epsilon="0.5")
        left = row(curator.ask(ASKED, epsilon=epsilon))["NUMBER_OF_REMAINING_DP_AGGREGATES"]
        assert isinstance(left, int)
        for number in range(left):
            curator.ask(f"SELECT COUNT(*) FROM stays WHERE days > {number}", epsilon=epsilon)
        with pytest.raises(BudgetRefusal):
            curator.ask("SELECT COUNT(*) FROM stays WHERE days < 9", epsilon=epsilon)


def test_the_narrowest_limit_counts() -> None:
    policy = Policy(question=Budget(epsilon="0.25"), analyst=Budget(epsilon="0.9"))
    with make(Budget(epsilon=3), policy) as curator:
        curator.account.add_analyst("ana")
        told = row(curator.ask(ASKED, analyst="ana", epsilon="0.2"))
        assert told["NUMBER_OF_REMAINING_DP_AGGREGATES"] == 4
        assert told["BUDGET_LIMIT"] == pytest.approx(0.9)
        dear = curator.ask(ASKED, analyst="ana", epsilon="0.3")
        assert row(dear)["NUMBER_OF_REMAINING_DP_AGGREGATES"] == 0
        assert any("no one question may cost as much" in note for note in dear.notes)
        with pytest.raises(Refusal):
            curator.ask(ASKED, analyst="nobody")


def test_a_budget_of_rho_is_told_in_rho() -> None:
    with make(Budget(rho="0.5")) as curator:
        told = curator.ask(ASKED, rho="0.125")
        assert row(told)["NUMBER_OF_REMAINING_DP_AGGREGATES"] == 4
        assert any(note.startswith("amounts are in rho") for note in told.notes)


@pytest.mark.parametrize(
    ("question", "columns"),
    [
        ("SELECT ESTIMATE_REMAINING_DP_AGGREGATES('stays')", COLUMNS[:1]),
        ("SELECT estimate_remaining_dp_aggregates('db.public.STAYS') AS n", ("n",)),
        ("SELECT budget_left AS b FROM ESTIMATE_REMAINING_DP_AGGREGATES('stays') AS e", ("b",)),
        (
            "SELECT e.budget_left / 2 AS half FROM TABLE(ESTIMATE_REMAINING_DP_AGGREGATES('stays'))"
            " AS e WHERE e.budget_spent < 1",
            ("half",),
        ),
    ],
)
def test_it_stands_where_a_table_or_a_number_may(question: str, columns: tuple[str, ...]) -> None:
    with make(Budget(epsilon=3)) as curator:
        told = curator.ask(question)
        assert (told.columns, len(told.rows)) == (columns, 1)
        assert curator.price(question).outcome == "known"
        assert "computed from their answers" in str(curator.explain(question))
        assert [column.name for column in curator.columns(question)] == list(columns)


def test_it_stands_beside_questions() -> None:
    with make(Budget(epsilon=3)) as curator:
        told = curator.ask(
            "SELECT q.n, e.budget_left FROM (SELECT COUNT(*) AS n FROM stays) AS q, "
            "ESTIMATE_REMAINING_DP_AGGREGATES('stays') AS e",
            epsilon=1,
        )
        assert told.column("BUDGET_LEFT") == [3.0]  # before this question
        assert told.margin_kinds["n"] is not None
        assert curator.spent.epsilon == 1


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("SELECT * FROM TABLE(ESTIMATE_REMAINING_DP_AGGREGATES('stay'))", "mean 'stays'"),
        ("SELECT * FROM TABLE(ESTIMATE_REMAINING_DP_AGGREGATES('wards'))", "is public"),
        ("SELECT ESTIMATE_REMAINING_DP_AGGREGATES(stays)", "the name of a table"),
        ("SELECT ESTIMATE_REMAINING_DP_AGGREGATES()", "the name of a table"),
        (
            "SELECT COUNT(*) FROM stays WHERE days < ESTIMATE_REMAINING_DP_AGGREGATES('stays')",
            "sub-query",
        ),
    ],
)
def test_what_it_does_not_tell_is_refused_free(question: str, words: str) -> None:
    with make(Budget(epsilon=3)) as curator:
        with pytest.raises(QuestionRefusal, match=words):
            curator.ask(question, epsilon=1)
        assert curator.spent.epsilon == 0


# --- groups that are declared, inside statements --------------------------------------------------


def test_declared_groups_are_read_by_statements_for_nothing() -> None:
    with make(Budget(epsilon=3)) as curator:
        asked = "SELECT ward FROM (SELECT DISTINCT ward FROM stays) AS w WHERE ward > 'o'"
        assert curator.ask(asked).column("ward") == ["south"]
        both = "SELECT DISTINCT ward FROM stays EXCEPT SELECT DISTINCT ward FROM stays"
        assert curator.ask(both).rows == ()
        assert curator.spent.epsilon == 0
        joined = curator.ask(
            "SELECT w.ward, q.n FROM (SELECT DISTINCT ward FROM stays) AS w LEFT JOIN (SELECT ward,"
            " COUNT(*) AS n FROM stays GROUP BY ward) AS q ON q.ward = w.ward",
            epsilon=1,
        )
        assert joined.column("ward") == ["north", "south", None]
        assert joined.margin_kinds["n"] is not None
        assert any("Nobody's row was looked at" in note for note in joined.notes)


# --- every door -----------------------------------------------------------------------------------


def test_the_command_line_and_the_shell(tmp_path, capsys) -> None:
    home = make_session(tmp_path / "clinic")
    run = runner(capsys)
    text = "SELECT * FROM TABLE(ESTIMATE_REMAINING_DP_AGGREGATES('patients'))"
    code, out, err = run("ask", text, "--session", home, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert tuple(column["name"] for column in found["columns"]) == COLUMNS
    assert found["paid"]["text"] == "free"
    code, out, _ = run("ask", text, "--session", home)
    assert (code, "Never" in out) == (0, True)
    code, out, _ = run("price", text, "--session", home)
    assert (code, "free" in out) == (0, True)
