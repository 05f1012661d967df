"""Ledgers that earlier versions wrote are opened, verified and read, and what was paid for is free.

Each folder of ``tests/ledgers`` is a session as its version left it.  A ledger knows data by what
its files looked like from outside: path, size, time and inode.  No checkout can bring those back,
so the tests show the engine the stamps that were recorded; all else is as a user would do it.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.curate.curator import Curator
from discreet.engine.duckdb.sources import Stamp
from discreet.errors import AccessRefusal
from discreet.ledger import Ledger, State, verify_export
from discreet.ledger.keys import identify
from discreet.price.margins import aggregate_margin, number_margin, rounding_of
from discreet.price.recipes import Ratio
from discreet.release.record import answer_from_bytes, answer_to_bytes

FOLDERS = sorted(p for p in (Path(__file__).parent / "ledgers").iterdir() if p.is_dir())


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def folder(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture
def expected(folder: Path) -> dict[str, Any]:
    """What the version that wrote the ledger said about it."""
    return json.loads((folder / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture
def home(
    folder: Path, expected: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The session's directory, as it was."""
    for file in (folder / "discreet.toml", *folder.glob("*.csv")):
        shutil.copy(file, tmp_path)
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as database:
        database.executescript((folder / "ledger.sql").read_text(encoding="utf-8"))
    kept = tmp_path / "ledger.sqlite.checkpoints"
    kept.mkdir()
    shutil.copy(folder / "checkpoint.json", kept)

    def recorded(path: str) -> Stamp:
        was, size, mtime_ns, inode = expected["stamps"][Path(path).name]
        assert Path(path).stat().st_size == size, "the file is not the one that was asked about"
        return Stamp(was, size, mtime_ns, inode)

    monkeypatch.setattr(Stamp, "of", recorded)
    return tmp_path


@pytest.fixture
def curator(home: Path) -> Iterator[Curator]:
    with discreet.open(home) as found:
        yield found


def losses(loss: discreet.Loss) -> list[str]:
    return [str(loss.epsilon), str(loss.rho), str(loss.delta)]


def balance(curator: Curator, analyst: str | None) -> dict[str, Any]:
    found = curator.balance(analyst)
    blocks = {name: losses(loss) for name, loss, _share in found.blocks()}
    return {"budget": str(found.budget), "blocks": blocks}


def plain(value: Any) -> Any:
    """A value as the expectation says it."""
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value.isoformat() if isinstance(value, date) else value


def same_margins(found: list[float | None], was: list[float | None]) -> None:
    """Computed again, perhaps by another numpy; None stays None."""
    assert [m is None for m in found] == [m is None for m in was]
    assert [m for m in found if m] == pytest.approx([m for m in was if m], rel=1e-9)


def is_ratio(answer: Any, column: int) -> bool:
    """Whether a column is divided from released sums; other numbers are these, exactly."""
    index = answer._aggregate(column)
    return index is not None and isinstance(answer.priced.recipes[index], Ratio)


def same_ratios(found: list[float | None], was: list[float | None]) -> None:
    """Of the same sums to the last digits: these versions added in the order of a processor."""
    assert [value is None for value in found] == [value is None for value in was]
    pairs = [(f, w) for f, w in zip(found, was, strict=True) if w is not None]
    assert [f for f, _ in pairs] == pytest.approx([w for _, w in pairs], rel=1e-12)


def ask(curator: Curator, asked: dict[str, Any]) -> Any:
    return curator.ask(asked["question"], analyst=asked["analyst"], **asked["offer"])


def outcome(curator: Curator, asked: dict[str, Any]) -> str:
    quote = curator.price(asked["question"], analyst=asked["analyst"], **asked["offer"])
    return quote.outcome


def test_chain_answers_and_checkpoints_verify(home: Path, expected: dict[str, Any]) -> None:
    key = expected["public_key"]
    examined = Ledger.examine(home / "ledger.sqlite", public_key=key)
    assert examined.problems == ()
    assert (examined.records, examined.checkpoints) == (expected["records"], 1)


def test_export_verifies_without_the_database(folder: Path, expected: dict[str, Any]) -> None:
    export = folder / "export.jsonl"
    found = verify_export(
        export, checkpoint=folder / "checkpoint.json", public_key=expected["public_key"]
    )
    assert found.problems == ()
    assert (found.records, found.checkpoints) == (expected["records"], 1)


def test_ledger_exports_the_same_bytes(
    curator: Curator, folder: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    curator.ledger.export(tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == (folder / "export.jsonl").read_bytes()


def test_opening_writes_nothing(curator: Curator, expected: dict[str, Any]) -> None:
    """The declarations of the session are the recorded ones: nothing is declared anew."""
    assert curator.ledger.identity == expected["identity"]
    assert len(curator.ledger.records()) == expected["records"]


def test_balances_are_what_they_were(curator: Curator, expected: dict[str, Any]) -> None:
    assert len(expected["balances"]) >= 4
    for analyst, was in expected["balances"].items():
        assert balance(curator, analyst or None) == was


def test_transcript_is_what_it_was(curator: Curator, expected: dict[str, Any]) -> None:
    found = [
        [
            entry.id,
            entry.at.isoformat(),
            entry.analyst,
            entry.question,
            dict(entry.spend),
            None if entry.loss is None else losses(entry.loss),
            str(entry.state),
            entry.code,
        ]
        for entry in curator.transcript()
    ]
    assert found == expected["transcript"]
    # Runs, which are closed, came later than these ledgers.
    assert {entry[6] for entry in found} == {str(state) for state in State} - {"closed"}


def test_stored_answers_are_read_and_written_byte_for_byte(
    curator: Curator, expected: dict[str, Any]
) -> None:
    seen = b""
    for asked in expected["answers"]:
        stored = curator.account.answer(asked["id"]).answer
        assert answer_to_bytes(answer_from_bytes(stored)) == stored
        seen += stored
    assert [name for name in expected["names"] if f'{{"{name}":'.encode() not in seen] == []


def rounded(answer: Any, column: int) -> list[float]:
    """What rounding adds to each margin of a column."""
    index = answer._aggregate(column)
    if index is None or rounding_of(answer.priced, index) is None:
        return [0.0] * len(answer.rows)
    recipe, beta = answer.priced.recipes[index], Fraction(1, 20)
    noise = number_margin(recipe, answer.priced.mechanisms[recipe.measurement], beta)
    more = aggregate_margin(answer.priced, index, beta) - noise
    return [more + each for each in answer._sets_of(answer.priced, answer.rows).find_rounded(index)]


def test_what_was_asked_is_free_and_the_same(curator: Curator, expected: dict[str, Any]) -> None:
    for asked in expected["answers"]:
        assert outcome(curator, asked) == "stored", asked["question"]
        answer = ask(curator, asked)
        assert (answer.id, answer.replayed) == (asked["id"], True)
        columns = {name: answer.column(name) for name in answer.columns}
        assert list(columns) == list(asked["columns"])
        for index, (name, was) in enumerate(asked["columns"].items()):
            if is_ratio(answer, index):
                same_ratios(columns[name], was)
            else:
                assert plain(columns[name]) == was, name
        assert losses(answer.loss) == asked["loss"]
        # What was simulated then is a confidence set now, from the same released numbers.
        kinds = {n: "set" if k == "simulated" else k for n, k in asked["kinds"].items()}
        assert answer.margin_kinds == kinds
        for index, (name, margins) in enumerate(answer.margins().items()):
            if kinds[name] != "set":
                # What rounding may add to a sum is in its margin now.
                more = rounded(answer, index)
                noise = [None if m is None else m - r for m, r in zip(margins, more, strict=True)]
                same_margins(noise, asked["margins"][name])
    assert len(curator.ledger.records()) == expected["records"]


def test_open_charge_is_finished_without_another(
    curator: Curator, expected: dict[str, Any]
) -> None:
    asked = expected["open"]
    assert outcome(curator, asked) == "resumed"
    (was,) = (entry for entry in curator.transcript() if entry.state is State.OPEN)
    answer = ask(curator, asked)
    assert (answer.id, answer.replayed, len(answer.rows)) == (was.id, False, 3)
    assert balance(curator, None) == expected["balances"][""]
    assert len(curator.ledger.records()) == expected["records"] + 1
    assert curator.ledger.verify().problems == ()


def test_burnt_charge_is_paid_again(curator: Curator, expected: dict[str, Any]) -> None:
    asked = expected["burnt"]
    assert outcome(curator, asked) == "admitted"
    before = balance(curator, asked["analyst"])
    ask(curator, asked)
    assert balance(curator, asked["analyst"]) != before


def test_keys_open_what_they_opened(curator: Curator, expected: dict[str, Any]) -> None:
    accounts = {curator.account.dataset: curator.account}
    revoked = expected["keys"].pop("eve")
    for name, key in expected["keys"].items():
        assert identify(accounts, key).grant(curator.account.dataset).analyst == name
    with pytest.raises(AccessRefusal, match="A10"):
        identify(accounts, revoked)


def test_a_cut_ledger_is_refused(home: Path) -> None:
    """The checkpoint still binds: without its newest records the ledger does not open."""
    with closing(sqlite3.connect(home / "ledger.sqlite")) as database:
        database.execute("DELETE FROM records WHERE sequence > 60")
        database.commit()
    with pytest.raises(discreet.Refusal, match="L4"):
        discreet.open(home)


def test_people_of_an_old_ledger_may_have_a_budget_in_all_datasets(home: Path) -> None:
    """No migration: what was spent before the entity had a budget is in it from then on."""
    with Ledger.open(home / "ledger.sqlite") as ledger:
        (dataset,) = ledger.datasets()
        (entity, *_), *_ = ledger._journal.books.datasets[dataset].people.values()
        text = f'[tables.other]\nunit = "who"\nentity = "{entity}"\ncolumns.who = "integer"\n'
        capped = discreet.Schema.from_text(
            f'{text}[entities."{entity}"]\nepsilon = 60\ndelta = 1e-6\n'
        )
        other = ledger.account(
            "other", schema=capped, budget=discreet.Budget(epsilon=60, delta="1e-6")
        )
        (found,) = other.balance().entities
        before = ledger._journal.books.datasets[dataset].spent.max(axis=1)
        assert dict(found.parts) == {"other": (0, 0, 0), dataset: tuple(map(int, before))}
        assert found.spent_in(dataset).epsilon > 0
        assert ledger.verify().ok
    with discreet.open(home) as curator:  # which states no budget of theirs, and is held to it
        assert [one.entity for one in curator.balance().entities] == [entity]
        curator.ask("SELECT COUNT(*) FROM patients", epsilon="1/7", fresh=True)
        assert curator.ledger.verify().ok
