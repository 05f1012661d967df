"""Golden questions about rows of two people, and the refusals of schemas, word by word.

After a change of the dialect or of words: ``python tests/test_graphs_golden.py``; read the diff.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from golden_cases import Case, cases

from discreet.curate.crowding import _closed_refusal, _untested_refusal
from discreet.errors import CODES, Refusal, SchemaRefusal
from discreet.price import price
from discreet.question.catalogue import Catalogue
from discreet.question.offer import Offer
from discreet.question.ownership import row_changes
from discreet.question.schema import Schema
from discreet.question.sql import parse

FOLDER = Path(__file__).parent / "golden" / "graphs"
QUESTIONS = FOLDER / "questions.sql"
CLOSED = FOLDER / "closed.txt"
SCHEMA = Schema.from_toml(FOLDER / "town.toml")
CASES = list(cases(QUESTIONS))

COLUMNS = '[tables.messages.columns]\na = "integer"\nb = "integer"\nc = "integer"\n'
COLUMNS += 'day = { type = "date", bounds = [2024-01-01, 2024-02-01] }\n'
REST = 'entity = "person"\nmax_rows_per_pair = 1\ncrowding = { rho = 0.02, delta = 1e-9 }\n'
SCHEMAS = {
    "three owners": 'unit = { any = ["a", "b", "c"] }\nmax_rows_per_unit = 9\n' + REST,
    "no bound": 'unit = { any = ["a", "b"] }\n' + REST,
    "blocks": 'unit = { any = ["a", "b"] }\nmax_rows_per_unit = 9\nblocks = ["day"]\n' + REST,
}


def judge(text: str) -> tuple[str, ...]:
    """What becomes of a question: its price as numbers, or the words of its refusal."""
    try:
        asked = parse(text, Catalogue(SCHEMA))
        priced = price(asked, Offer.of(rho="0.5", delta="1e-9"), Catalogue(SCHEMA))
    except Refusal as refusal:
        said = [f"refused {refusal.code}: {refusal.what}", f"why: {refusal.why}"]
        asked_for = refusal.rewriting
        return (*said, f"ask: {asked_for}" if asked_for else f"fix: {refusal.fix}")
    lost, gained = row_changes(asked.source) or (None, None)
    moves = ", ".join(f"{s.l1} (squared {s.l2_squared})" for s in priced.sensitivities)
    return "accepted", f"rows: {lost} lost, {gained} gained", f"moves by: {moves}"


def tell_closed() -> str:
    """Refusals of schemas and of tables, in full."""
    told = []
    for name, lines in SCHEMAS.items():
        with pytest.raises(SchemaRefusal) as refused:
            Schema.from_text("[tables.messages]\n" + lines + COLUMNS)
        told.append(f"# {name}\n{refused.value}\n")
    table = SCHEMA.tables["messages"]
    told += [
        f"# not tested\n{_untested_refusal('messages')}\n",
        f"# not passed\n{_closed_refusal(table)}\n",
    ]
    return "\n".join(told)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"line {case.line}")
def test_verdict(case: Case) -> None:
    assert judge(case.question) == case.verdict


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"line {case.line}")
def test_what_a_refusal_offers_is_accepted(case: Case) -> None:
    for line in case.verdict:
        if line.startswith("ask: "):
            assert judge(line.removeprefix("ask: "))[0] == "accepted"


def test_refusals_of_schemas_and_closed_tables() -> None:
    assert tell_closed() == CLOSED.read_text()


def test_there_are_enough() -> None:
    codes = [case.verdict[0].split(":")[0] for case in CASES]
    assert codes.count("refused Q52") >= 12
    assert codes.count("accepted") >= 12
    assert "D3" in CODES


def rewrite() -> None:
    """Write every verdict anew."""
    title = QUESTIONS.read_text().split("\n", 1)[0]
    blocks = [title]
    for case in CASES:
        comment = [line for line in case.comment if line != title]
        blocks.append(
            "\n".join([*comment, f"{case.question};", *(f"--> {v}" for v in judge(case.question))])
        )
    QUESTIONS.write_text("\n\n".join(blocks) + "\n")
    CLOSED.write_text(tell_closed())


if __name__ == "__main__":
    rewrite()
