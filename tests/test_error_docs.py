"""Every example of docs/errors.md raises its code: as it is typed, or in a test named here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from golden_session import declare

import discreet
import discreet.noise
from discreet.cli import main
from discreet.curate.curator import Curator
from discreet.errors import CODES, Refusal
from discreet.ledger import Ledger
from discreet.noise import entropy
from discreet.release.record import answer_from_bytes

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "errors.md").read_text(encoding="utf-8")
SCHEMA = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0]
EXAMPLES = dict(
    re.findall(
        r"^## ([A-Z]\d+) (?:(?!^## ).)*?^- Example: ([^\n]+)$", PAGE, re.MULTILINE | re.DOTALL
    )
)
LINES = re.compile(r"(?:under `([^`]+)`|at the top), `([^`]+)`")
TYPED = re.compile(r"`([^`]+)`(?:, before `discreet prepare`)?")

ELSEWHERE = {
    "P8": "test_composition.py::test_without_the_peer_installed_the_refusal_says_what_to_install",
    "P9": "test_session.py::test_a_directory_that_cannot_be_made_is_refused",
    "H1": "test_sparse_vector.py::test_it_halts_and_stays_halted",
    "H2": "test_adaptive.py::test_one_region_pays_the_sum",
    "H3": "test_sparse_vector.py::test_a_run_cannot_be_copied",
    "S8": "test_suggest.py::test_an_unreadable_file_is_refused_without_its_content",
    "S9": "test_engine.py::test_a_key_declared_unique_is_checked",
    "S21": "test_cli.py::test_a_new_user_asks_at_once",
    "S22": "test_session.py::test_a_deleted_ledger_is_not_replaced_by_an_empty_one",
    "Q30": "test_sql.py::test_a_clause_the_reader_forgets_is_refused",
    "Q60": "test_engine_printing.py::test_what_is_not_listed_is_refused",
    "B2": "contract/test_ledger.py::test_a_refusal_says_whose_the_cap_is",
    "B3": "contract/test_ledger.py::test_a_question_has_a_cap",
    "B4": "test_entities.py::test_people_lose_no_more_than_their_budget_in_all_datasets",
    "B5": "contract/test_ledger.py::"
    "test_a_groups_common_limit_is_charged_with_each_of_its_analysts",
    "A2": "contract/test_ledger.py::"
    "test_strangers_and_the_disabled_are_refused_before_anything_else",
    "A3": "contract/test_ledger.py::test_analysts_and_datasets_expire_by_the_newest_time_known",
    "A10": "test_cli.py::test_a_lost_key_is_replaced_and_revoked",
    "A11": "server/test_auth.py::test_expired_key",
    "A12": "server/test_auth.py::test_wrong_role",
    "A13": "server/test_auth.py::test_others_answer_id",
    "A14": "server/test_survey_server.py::test_unreadable_bodies",
    "A15": "server/test_auth.py::test_rate_and_concurrency",
    "A16": "server/test_parts.py::test_what_a_key_may_stand_for",
    "A17": "server/test_client.py::test_an_address_that_cannot_be_read",
    "A18": "server/test_leaks.py::test_log_canary",
    "A19": "server/test_new_user.py::test_an_open_line_is_refused_by_the_command",
    "A20": "server/test_sign_in.py::test_an_answer_that_another_browser_began_is_refused",
    "A21": "server/test_sign_in.py::"
    "test_whose_groups_may_not_ask_is_refused_and_never_becomes_an_analyst",
    "A22": "server/test_new_user.py::"
    "test_a_port_that_is_taken_is_refused_before_anybody_is_told_to_come",
    "D1": "test_curate.py::test_a_failed_question_is_paid_for_again",
    "D2": "test_engine_postgres.py::test_what_cannot_be_opened_is_said_and_nothing_of_the_data",
    "L2": "test_ledger.py::test_what_is_not_a_ledger_is_refused_and_left_alone",
    "L3": "test_ledger.py::test_a_ledger_of_another_version_is_refused",
    "L4": "test_ledger.py::test_an_old_copy_is_refused_by_the_checkpoints_beside_it",
    "L5": "contract/test_ledger.py::test_a_broken_connection_stops_the_ledger_for_good",
    "L6": "test_ledger.py::test_a_lock_that_is_held_too_long_is_told_and_stops_nothing",
    "L7": "contract/test_ledger.py::test_a_clock_far_behind_writes_nothing",
    "L8": "test_ledger.py::test_false_checkpoints_are_refused",
    "L9": "contract/test_ledger.py::test_blocks_declared_anew_forget_nobody",
    "L11": "contract/test_ledger.py::test_who_one_person_is_cannot_change",
    "L13": "contract/test_ledger.py::test_exports_are_checked_without_the_database",
    "L14": "contract/test_ledger.py::test_a_closed_ledger_says_so",
    "L15": "test_entities.py::"
    "test_two_budgets_for_the_same_people_are_refused_and_nothing_is_recorded",
}
"""What no line raises by itself: which test brings it about."""


@pytest.fixture(scope="module")
def clinic() -> Iterator[Curator]:
    """One patient, one visit: what is refused is refused whatever the data are."""
    visit = {"patient_id": 7, "city": "york", "ward": "surgery", "doctor": "who", "age": 30}
    visit |= {"cost": 35.0, "income": 40.0, "day": date(2024, 3, 3), "note": "well"}
    rows = {
        "visits": visit,
        "patients": {"patient_id": 7, "age": 30, "balance": 20.0},
        "calls": {"patient_id": 7, "minutes": 3},
        "messages": {"sender": 7, "receiver": 8},
        "cities": {"name": "york", "region": "north"},
    }
    tables = {name: pd.DataFrame([row]) for name, row in rows.items()}
    schema = discreet.Schema.from_text(SCHEMA)
    with discreet.curator(tables, schema=schema, budget=discreet.Budget(epsilon=3)) as opened:
        yield opened


def type_lines(lines: list[tuple[str, str]]) -> str:
    """The schema of the page with these lines in the place of what they declare."""
    text = SCHEMA
    for section, line in lines:
        new = section and f"{section}\n" not in text
        text = (
            f"{text}\n{section}\n{line}\n" if new else declare(text, f"{section}\n{line}".strip())
        )
    return text


def type_example(example: str, clinic: Curator) -> None:
    """Do what an example says."""
    typed = TYPED.fullmatch(example)
    if not typed:
        lines = LINES.findall(example)
        assert lines, f"{example} is neither typed nor raised elsewhere"
        discreet.Schema.from_text(type_lines(lines))
    elif typed[1].startswith("discreet "):
        main(typed[1].split()[1:])
    elif re.match(r"(SELECT|DROP) ", typed[1]):
        clinic.explain(typed[1], epsilon="0.25")
    else:
        known = {**vars(discreet.noise), "np": np, "entropy": entropy, "clinic": clinic}
        known |= {"Budget": discreet.Budget, "Schema": discreet.Schema, "Ledger": Ledger}
        exec(typed[1], known | {"answer_from_bytes": answer_from_bytes})


def test_every_code_has_an_example_that_is_typed_or_brought_about_elsewhere():
    assert EXAMPLES.keys() == CODES.keys()
    assert ELSEWHERE.keys() < CODES.keys()
    assert len(CODES) - len(ELSEWHERE) >= 65
    assert sum(code[0] in "QPS" for code in ELSEWHERE) <= 9


@pytest.mark.parametrize("code", [code for code in CODES if code not in ELSEWHERE])
def test_an_example_raises_its_code(code, clinic, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISCREET_SESSION", raising=False)
    with pytest.raises((Refusal, SystemExit)) as caught:
        type_example(EXAMPLES[code], clinic)
    if isinstance(caught.value, Refusal):
        assert caught.value.code == code
    else:
        assert caught.value.code == 2
        assert capsys.readouterr().err.startswith(f"{code}: ")


@pytest.mark.parametrize("code", ELSEWHERE)
def test_what_is_brought_about_elsewhere_is_in_a_test_that_says_so(code):
    file, _, name = ELSEWHERE[code].partition("::")
    text = (TESTS / file).read_text(encoding="utf-8")
    (test,) = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    first = min([test.lineno, *(decorator.lineno for decorator in test.decorator_list)])
    said = "\n".join(text.splitlines()[first - 1 : test.end_lineno])
    assert re.search(rf"\b{code}\b", said)


def test_the_schema_of_the_page_is_accepted_and_its_lines_are_replaced():
    assert len(discreet.Schema.from_text(SCHEMA).tables) == 5
    typed = type_lines([("[tables.visits]", "max_rows_per_unit = 35"), ("", "population = 2000")])
    assert discreet.Schema.from_text(typed).tables["visits"].max_rows_per_unit == 35
