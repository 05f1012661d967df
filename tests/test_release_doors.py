"""What can be said of releases, in Python and on the command line, in the same words."""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import random
import re
import tracemalloc
import zipfile
from contextlib import suppress
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from test_release_plans import PLAN, SCHEMA, frame
from typer.testing import CliRunner

import discreet
from discreet.cli import app
from discreet.curate import session as sessions
from discreet.curate.procedures import Procedures
from discreet.curate.releases import Releases
from discreet.curate.remote_releases import RemoteReleases
from discreet.errors import DataRefusal, InvalidParameter, QuestionRefusal, Refusal, SchemaRefusal
from discreet.ledger.account import Account
from discreet.publication import Declared, packing, placing, read_agenda
from discreet.publication.agenda import parse_agenda
from discreet.publication.handover import verify_handover
from discreet.publication.packing import pack_folder, unpack_folder
from discreet.publication.verifying import verify_folder

CITIES = {"kind": "marginals", "of": "visits", "columns": ["city"], "ways": 1, "epsilon": "1/3"}
ASKED = ["SELECT COUNT(*) FROM visits WHERE age < 7", "SELECT COUNT(*) FROM visits WHERE age > 2"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    frame(200).to_parquet(tmp_path / "visits.parquet")
    sessions.init(tmp_path, SCHEMA)
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def run(home: Path, *arguments: str) -> Any:
    return CliRunner().invoke(app, ["release", *arguments, "--session", str(home)])


def test_a_release_is_planned_in_python_for_free_and_in_the_same_words(home):
    typed = "--of visits --kind marginals --columns city --ways 1 --epsilon 1/3 --plan --json"
    with discreet.open(home, opened=False) as clinic:
        planned = clinic.plan_release("cities", **CITIES)
        assert planned.to_json() == json.loads(run(home, "new", "cities", *typed.split()).stdout)
        assert planned.loss.epsilon == Fraction(1, 3)
        assert (planned.unit, planned.rows_per_unit) == ("who", 2)
        assert "up to 2 rows of each who. Nothing was charged." in str(planned)
        with pytest.raises(InvalidParameter, match="there is no kind"):
            clinic.plan_release("cities", kind="table", of="visits", epsilon=1)
        assert not clinic.spent.epsilon
        assert not clinic.transcript()
    with discreet.open(home) as clinic:  # what is charged is what was planned
        clinic.make_release("cities", **CITIES)
        assert clinic.spent == planned.loss


def test_a_plan_is_read_from_a_path_a_text_or_a_dict_and_told_as_it_was(home):
    document = {
        "plan": {"epsilon": 4, "delta": 1e-9},
        "release": [
            {"name": "cities", "kind": "marginals", "of": "visits", "columns": ["city", "age"],
             "weight": 2},
            {"name": "ages", "kind": "hierarchy", "of": "visits", "by": ["age"]},
        ],
    }  # fmt: skip
    agenda = read_agenda(home / "plan.toml")
    with discreet.open(home, opened=False) as clinic:
        told = json.loads(run(home, "plan", str(home / "plan.toml"), "--json").stdout)
        for given in (home / "plan.toml", str(home / "plan.toml"), PLAN, document, agenda):
            assert clinic.plan_releases(given).to_json() == told
        assert clinic.plan_releases(agenda.to_json()).to_json() == told
        assert told["total"] == str(clinic.plan_releases(PLAN).total)
        assert "Nothing was charged." in str(clinic.plan_releases(PLAN))
        assert not clinic.spent.rho
    assert [one["name"] for one in told["releases"]] == ["cities", "ages"]


def test_targets_and_weights_are_told_as_they_were_declared():
    aims = [
        {"name": "a", "kind": "marginals", "of": "v", "within": 2.5, "weight": "1/3"},
        {"name": "b", "kind": "synthetic", "of": "v", "relative": "0.05", "rows": 900},
    ]
    agenda = parse_agenda({"plan": {"delta": "1e-9"}, "release": aims})
    assert parse_agenda(agenda.to_json()) == agenda
    assert agenda.to_json()["release"][0]["weight"] == "1/3"
    assert agenda.items[0].within == Fraction(5, 2)


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ("nowhere.toml", SchemaRefusal),
        ("\0.toml", SchemaRefusal),
        ("[plan]\nepsilon = ", SchemaRefusal),
        ("a = " + "[" * 5000, SchemaRefusal),
        (7, InvalidParameter),
        (None, InvalidParameter),
        ({"plan": {}, "release": "synthetic"}, InvalidParameter),
        ({"plan": {}, "release": {"name": "a"}}, InvalidParameter),
        ({"plan": [], "release": [{"name": "a"}]}, InvalidParameter),
        ({"plan": {"epsilon": 1}, "release": [7]}, InvalidParameter),
        ({"plan": {"epsilon": [1]}, "release": [{"name": "a", "kind": "ranges", "of": "visits",
                                                 "by": "age"}]}, InvalidParameter),
        ({"plan": {"epsilon": 1}, "release": [{"name": "a", "kind": "counter", "of": "visits",
                                               "by": "day", "steps_per_unit": 1}]},
         InvalidParameter),
    ],
    ids=lambda value: repr(value)[:30],
)  # fmt: skip
def test_what_is_no_plan_is_refused_for_free(home, given, refused):
    with discreet.open(home) as clinic:
        for act in (clinic.plan_releases, clinic.make_releases):
            with pytest.raises(refused):
                act(given)
        assert not clinic.spent.epsilon


def test_a_plan_in_python_is_one_charge_goes_on_and_is_handed_over(home, tmp_path, monkeypatch):
    office = tmp_path / "office"
    with discreet.open(home) as clinic:
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "letter.txt").write_text("mine")
        with pytest.raises(InvalidParameter, match="P9: "):
            clinic.make_releases(PLAN, folder=tmp_path / "mine")
        assert not clinic.spent.rho
        publish = Account.publish
        drawn: list[int] = []

        def dying(account, receipt, answer):
            if drawn:
                raise KeyboardInterrupt
            drawn.append(receipt.id)
            return publish(account, receipt, answer)

        with monkeypatch.context() as patch:
            patch.setattr(Account, "publish", dying)
            with pytest.raises(KeyboardInterrupt):
                clinic.make_releases(PLAN, folder=office)
        spent = clinic.spent
        rounded = spent.rho - clinic.plan_releases(PLAN).total  # up, of each stage
        assert 0 <= rounded < Fraction(1, 10**9)
        assert not office.exists()
    with discreet.open(home) as clinic:
        made = clinic.make_releases(PLAN, folder=str(office))
        again = clinic.make_releases(home / "plan.toml", folder=office)
        assert [one.made.certificate() for one in made] == [one.made.certificate() for one in again]
        assert clinic.spent == spent
        assert all(check.holds for check in verify_handover(office))
        assert clinic.hand_over_releases(["cities", "ages"], tmp_path / "other").is_dir()
        assert (tmp_path / "other" / "SHA256SUMS").read_bytes() == (
            office / "SHA256SUMS"
        ).read_bytes()
        for names in ([], ["cities", "nothing"], "nothing"):
            with pytest.raises(Refusal):
                clinic.hand_over_releases(names, tmp_path / "none")
        assert not (tmp_path / "none").exists()


def test_questions_that_are_answered_together_are_planned_for_free(home):
    price = {"of": "visits", "columns": ["age"], "rho": "1/8"}
    with discreet.open(home) as clinic:
        planned = clinic.plan_release("asked", kind="questions", questions=ASKED, **price)
        assert not clinic.spent.rho
        made = clinic.plan(ASKED, name="asked", **price).made
        assert clinic.spent == planned.loss == made.loss
    assert (discreet.Curator.plan.__doc__ or "").startswith("Charge for ")


def test_a_release_is_shown_and_handed_over(home, tmp_path):
    with discreet.open(home) as clinic:
        clinic.make_release("cities", **CITIES)
    place = tmp_path / "given" / "cities"
    with discreet.open(home, opened=False) as clinic:
        assert clinic.show_card("cities") == run(home, "show", "cities").stdout
        assert clinic.show_card("cities").startswith("# cities")
        shown = json.loads(run(home, "show", "cities", "--json").stdout)
        assert clinic.show_certificate("cities") == shown
        for _ in range(2):  # in the place of an earlier one
            assert clinic.hand_over_release("cities", str(place)) == place
        assert all(check.holds for check in verify_folder(place))
        (place / "letter.txt").write_text("mine")
        with pytest.raises(InvalidParameter, match="P9: "):
            clinic.hand_over_release("cities", place)
        assert (place / "letter.txt").exists()
        for act in (clinic.show_card, clinic.show_certificate):
            with pytest.raises(QuestionRefusal, match="there is no release 'nothing'"):
                act("nothing")
        with pytest.raises(QuestionRefusal, match="there is no release"):
            clinic.hand_over_release("nothing", tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_curator_without_a_session_hands_over_too(tmp_path):
    data = pd.DataFrame({"who": range(60), "city": ["Cork", "Faro", "Oslo"] * 20})
    schema = """
    [tables.visits]
    unit = "who"
    max_rows_per_unit = 1
    [tables.visits.columns]
    who = "integer"
    city = { type = "text", values = ["Cork", "Faro", "Oslo"], nullable = false }
    """
    with discreet.curator({"visits": data}, schema=schema, budget=3) as clinic:
        clinic.make_release("cities", **CITIES)
        clinic.hand_over_release("cities", tmp_path / "cities")
    assert all(check.holds for check in verify_folder(tmp_path / "cities"))


def test_what_was_changed_on_the_way_is_no_folder(home, tmp_path):
    with discreet.open(home) as clinic:
        clinic.make_release("cities", **CITIES)
        content = pack_folder(clinic.releases.folder_of("cities"))

    def change(edit: Any, as_packed: int = zipfile.ZIP_DEFLATED) -> bytes:
        sink = io.BytesIO()
        written = zipfile.ZipFile(sink, "w", as_packed)
        with zipfile.ZipFile(io.BytesIO(content)) as packed, written as other:
            files = {name: packed.read(name) for name in packed.namelist()}
            edit(files)
            for name, held in files.items():
                other.writestr(name, held)
        return sink.getvalue()

    def move(name: str) -> Any:
        return lambda files: files.update({name: files.pop("cities/card.md")})

    wrong = {
        "nothing": b"",
        "no zip": b"PK" + b"\0" * 90,
        "cut": content[:-30],
        "changed": change(lambda files: files.update({"cities/card.md": b"# mine"})),
        "missing": change(lambda files: files.pop("cities/card.md")),
        "beside": change(lambda files: files.update({"cities/letter.txt": b"mine"})),
        "above": change(move("cities/../../card.md")),
        "root": change(move("/card.md")),
        "alone": change(move("card.md")),
        "backslash": change(move("cities/..\\card.md")),
        "no sums": change(lambda files: files.pop("cities/SHA256SUMS")),
        "deep": change(move("cities/" + "a/" * 2000 + "card.md")),
        "two lines": change(move("cities/card\n.md")),
        "other packing": change(lambda files: None, zipfile.ZIP_LZMA),
    }
    for what, sent in wrong.items():
        with pytest.raises(DataRefusal, match="D2: "):
            unpack_folder(sent, tmp_path / "in" / "cities")
        assert not (tmp_path / "in").exists(), what
    assert unpack_folder(change(lambda files: None), tmp_path / "in" / "cities").is_dir()


def test_a_packed_folder_that_says_it_is_huge_is_not_unpacked(tmp_path, monkeypatch):
    """A thousand times what came: neither kept in memory nor, where it is too much, written."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").write_bytes(bytes(10**7))
    placing.write_sums(tmp_path / "out")
    content = packing.pack_folder(tmp_path / "out")
    assert len(content) < 10**5
    monkeypatch.setattr(packing, "MOST_BYTES", 10**7)
    with pytest.raises(DataRefusal, match="at most 10,000,000 are unpacked"):
        unpack_folder(content, tmp_path / "in" / "out")
    assert not (tmp_path / "in").exists()
    monkeypatch.setattr(packing, "MOST_BYTES", 10**8)
    tracemalloc.start()
    try:
        unpack_folder(content, tmp_path / "in" / "out")
        assert tracemalloc.get_traced_memory()[1] < 5 * 10**6
    finally:
        tracemalloc.stop()
    assert (tmp_path / "in" / "out" / "a").stat().st_size == 10**7


@pytest.mark.parametrize("packing_as", [0, 8, 12, 14], ids=["stored", "deflated", "bz2", "lzma"])
def test_a_packed_folder_that_was_damaged_is_refused_and_nothing_else(tmp_path, packing_as):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", packing_as) as packed:
        packed.writestr("out/a", bytes(range(256)))
        packed.writestr("out/SHA256SUMS", f"{hashlib.sha256(bytes(range(256))).hexdigest()}  a\n")
    whole, draw = sink.getvalue(), random.Random(7)
    for place in (*range(len(whole)), None):
        damaged = bytearray(whole[: draw.randrange(len(whole))] if place is None else whole)
        if place is not None:
            damaged[place] ^= 1 << draw.randrange(8)
        with suppress(DataRefusal, InvalidParameter):
            packing.unpack_folder(bytes(damaged), tmp_path / "out")


def test_a_client_has_the_same_methods_with_the_same_parameters():
    """A key says who pays, where a curator is told; how it is sent is the client's own."""
    about = re.compile(r"(make|plan|step|show|hand_over)_|plan$")

    def list_methods(kind: type) -> dict[str, list[str]]:
        return {
            name: [one for one in inspect.signature(method).parameters if one != "analyst"]
            for name, method in vars(kind).items()
            if about.match(name)
        }

    here, there = list_methods(Procedures), list_methods(RemoteReleases)
    assert len(here) >= 10
    rename = {"settings": "declared"}
    assert here == {name: [rename.get(one, one) for one in own] for name, own in there.items()}


# --- on the command line --------------------------------------------------------------------------


def test_everything_that_a_release_is_declared_by_can_be_typed():
    import typer.main

    new = typer.main.get_command(app).commands["release"].commands["new"]
    typed = {parameter.name for parameter in new.params}
    declared = {field.name for field in fields(Declared)} - {"source"}
    assert declared <= typed


TYPED = [
    (
        "--kind synthetic --rho 1/9 --columns city,age --interest age=5 --interest city=1/2 "
        "--ordered city --margins 0.1 --cells age=10 --keep age<=age",
        {
            "rho": "1/9",
            "columns": ["city", "age"],
            "interest": {"age": 5, "city": "1/2"},
            "ordered": "city",
            "margins": "0.1",
            "cells": {"age": 10},
            "keep": ["age<=age"],
        },
    ),
    ("--kind synthetic --rho 1/9 --margins 0", {"rho": "1/9", "margins": 0}),
    (
        "--kind marginals --epsilon 2 --sets city,age --sets day",
        {"kind": "marginals", "epsilon": 2, "sets": [["city", "age"], ["day"]]},
    ),
    (
        "--kind hierarchy --epsilon 2 --by city,age --tree Cork/3 --tree Faro/7 --totals =90",
        {
            "kind": "hierarchy",
            "epsilon": 2,
            "by": ["city", "age"],
            "tree": [["Cork", "3"], ["Faro", "7"]],
            "totals": {"": 90},
        },
    ),
    (
        "--kind questions --rho 1/8 --columns age --questions asked.sql",
        {"kind": "questions", "rho": "1/8", "columns": ["age"], "questions": ASKED},
    ),
]


@pytest.mark.parametrize(("typed", "declared"), TYPED, ids=lambda one: str(one)[:30])
def test_what_is_typed_is_what_is_declared(home, monkeypatch, typed, declared):
    monkeypatch.chdir(home)
    (home / "asked.sql").write_text(";\n".join(ASKED) + ";\n")
    found: list[Declared] = []

    def plan(_releases: object, wanted: Declared) -> None:
        found.append(wanted)
        raise InvalidParameter("P4", "seen.", why="it is.", fix="look.")

    with monkeypatch.context() as patch:
        patch.setattr(Releases, "plan", plan)
        run(home, "new", "made", "--of", "visits", *typed.split(), "--plan")
    assert found == [Declared.of("made", of="visits", **{"kind": "synthetic", **declared})]


def test_questions_of_a_file_are_answered_together(home, tmp_path):
    file = tmp_path / "asked.sql"
    file.write_text(";\n".join(ASKED) + ";\n")
    words = ("--kind", "questions", "--of", "visits", "--columns", "age", "--rho", "1/8")
    made = run(home, "new", "asked", *words, "--questions", str(file), "--json")
    assert made.exit_code == 0, made.output
    assert json.loads(made.stdout)["declared"]["questions"] == ASKED
    with discreet.open(home) as clinic:
        spent = clinic.spent
        clinic.plan(ASKED, name="asked", of="visits", columns=["age"], rho="1/8")  # the same
        assert clinic.spent == spent


@pytest.mark.parametrize(
    "typed",
    [
        "--interest age",
        "--interest age=much",
        "--interest age=0",
        "--interest nothing=3",
        "--ordered nothing",
        "--sets nothing,age --kind marginals",
        "--margins 0.9",
        "--questions nowhere.sql --kind questions",
        "--kind questions",
        "--tree Cork --kind hierarchy --by city,age",
        "--tree Cork/3",
    ],
)
def test_odd_options_are_refused_for_free(home, typed):
    told = run(home, "new", "odd", "--of", "visits", "--epsilon", "1", *typed.split())
    assert told.exit_code != 0
    assert isinstance(told.exception, Refusal), told.exception
    with discreet.open(home, opened=False) as clinic:
        assert not clinic.spent.epsilon
