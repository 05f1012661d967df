"""Releases over HTTP: listed, shown, and asked for free by whoever has a key."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction

import pytest
from patience import PATIENCE_S

import discreet
from discreet.errors import (
    AccessRefusal,
    DataRefusal,
    Halted,
    InvalidParameter,
    QuestionRefusal,
    Refusal,
)
from discreet.ledger.account import Account
from discreet.publication.handover import verify_handover
from discreet.publication.verifying import verify_folder


@pytest.fixture
def released(server):
    """A release that the holder of the folder makes while the server runs."""
    home = server.datasets["clinic"].home
    with discreet.open(home) as curator:
        curator.make_release("cities", of="visits", kind="hierarchy", by=["city"], epsilon="0.01")
    return server


def test_a_release_is_listed_shown_and_asked_for_free(released):
    key = released.person()
    listed = released.call("GET", "releases", key=key).json()["releases"]
    assert {"name": "cities", "kind": "hierarchy", "of": "visits"} in listed
    said = released.call("GET", "releases/cities", key=key).json()
    assert said["promise"]["unit"] == "patient"
    before = released.call("GET", "balance", key=key).json()
    question = "SELECT city, COUNT(*) AS n FROM cities GROUP BY city"
    told = released.call("POST", "releases/cities/ask", {"question": question}, key=key).json()
    assert [row[0] for row in told["rows"]] == ["Aalborg", "Bergen", "Cork"]
    assert {one["promise"] for one in told["margins"]["n"]} == {"exact"}
    assert released.call("GET", "balance", key=key).json() == before
    with discreet.connect(released.url, timeout_s=PATIENCE_S, key=key) as clinic:
        assert {one["name"] for one in clinic.releases()} >= {"cities"}
        assert clinic.ask_release("cities", question)["rows"] == told["rows"]


@pytest.mark.parametrize(
    ("path", "question"),
    [
        ("releases/nothing/ask", "SELECT COUNT(*) FROM nothing"),
        ("releases/..%2Fledger/ask", "SELECT COUNT(*) FROM ledger"),
        ("releases/cities/ask", "SELECT COUNT(*) FROM visits"),
        ("releases/cities/ask", "SELECT * FROM read_csv('/etc/passwd')"),
    ],
)
def test_nothing_but_a_release_is_asked_there(released, path, question):
    answer = released.call("POST", path, {"question": question}, key=released.person())
    assert 400 <= answer.status_code < 500
    assert "rows" not in answer.json()


CITIES = {"name": "by_city", "kind": "marginals", "of": "visits"}


def test_a_curator_makes_a_release_over_http_and_pays_once(server):
    """The engine's process draws each stage; declared again, it is there and free."""
    import io
    import zipfile

    key = server.datasets["clinic"].key
    wanted = {**CITIES, "settings": {"columns": ["city"], "ways": 1, "epsilon": "0.03"}}
    before = server.call("GET", "balance", key=key).json()["dataset"]["spent"]
    plan = server.call("POST", "releases/plan", wanted, key=key).json()
    assert plan["unit"] == "patient"
    assert [stage["name"] for stage in plan["stages"]] == ["tables"]
    assert server.call("GET", "balance", key=key).json()["dataset"]["spent"] == before
    made = server.call("POST", "releases", wanted, key=key)
    assert made.status_code == 201, made.text
    after = server.call("GET", "balance", key=key).json()["dataset"]["spent"]
    assert after != before
    assert server.call("POST", "releases", wanted, key=key).json() == made.json()
    assert server.call("GET", "balance", key=key).json()["dataset"]["spent"] == after
    folder = server.datasets["clinic"].home / "releases" / "by_city"
    assert all(check.holds for check in verify_folder(folder))
    person = server.person()
    card = server.call("GET", "releases/by_city/card", key=person).json()
    assert card["card"].startswith("# by_city")
    sent = server.call("GET", "releases/by_city/folder", key=person)
    assert sent.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(sent.content)) as packed:
        names = {"by_city/certificate.json", "by_city/measurements.parquet", "by_city/SHA256SUMS"}
        assert names <= set(packed.namelist())
    other = {**wanted, "settings": {**wanted["settings"], "epsilon": "0.04"}}
    assert server.call("POST", "releases", other, key=key).status_code == 422


def test_synthetic_rows_are_made_stage_by_stage_over_http(server):
    """Each stage is planned again where the data is, from what was drawn before."""
    with discreet.connect(
        server.url, timeout_s=PATIENCE_S, key=server.datasets["clinic"].key
    ) as clinic:
        settings = {"columns": ["city", "age"], "epsilon": "0.05", "rows": 400}
        plan = clinic.plan_release("rows_made", of="visits", **settings)
        said = clinic.make_release("rows_made", of="visits", **settings)
        names = [stage["name"] for stage in plan["stages"]]
        assert [stage["name"] for stage in said["stages"]] == names
        assert len(names) == 5
        told = clinic.ask_release("rows_made", "SELECT COUNT(*) AS n FROM rows_made")
        assert told["columns"] == ["n"]


def test_a_counter_steps_over_http(server):
    key = server.datasets["clinic"].key
    wanted = {
        "name": "wards_by_step",
        "kind": "counter",
        "of": "visits",
        "settings": {"by": ["city"], "epsilon": "0.03"},
    }
    assert server.call("POST", "releases", wanted, key=key).status_code == 201
    spent = server.call("GET", "balance", key=key).json()["dataset"]["spent"]
    assert server.call("POST", "releases/wards_by_step/step", {}, key=key).status_code == 200
    assert server.call("GET", "balance", key=key).json()["dataset"]["spent"] == spent
    question = {"question": "SELECT COUNT(*) AS n FROM wards_by_step"}
    told = server.call("POST", "releases/wards_by_step/ask", question, key=key).json()
    assert len(told["rows"]) == 1


def test_steps_that_share_their_noise_are_published_over_http_and_beside_it(server):
    """What was counted is kept by the process that holds the data; a number is published once."""
    home = server.datasets["clinic"].home
    settings = {"by": ["city"], "rho": "1/500", "steps_per_unit": 1}
    with discreet.connect(
        server.url, timeout_s=PATIENCE_S, key=server.datasets["clinic"].key
    ) as clinic:
        clinic.make_release("shared_steps", kind="counter", of="visits", **settings)
        spent = clinic.spent
        first = clinic.step_release("shared_steps", number=1)
        assert clinic.step_release("shared_steps", number=1) == first
        with pytest.raises(InvalidParameter, match="the next is 2"):
            clinic.step_release("shared_steps", number=3)
        with discreet.open(home) as curator:  # beside the server, in the session's folder
            curator.step_release("shared_steps", number=2)
        clinic.step_release("shared_steps")
        with pytest.raises(Halted):
            clinic.step_release("shared_steps")
        assert clinic.spent == spent
        told = clinic.ask_release(
            "shared_steps", "SELECT city, COUNT(*) AS n FROM shared_steps GROUP BY city"
        )
    assert [row[0] for row in told["rows"]] == ["Aalborg", "Bergen", "Cork"]
    kept = sorted((home / "ledger.sqlite.runs" / "counters" / "shared_steps").glob("*.counted"))
    assert [json.loads(file.read_text())[1] for file in kept] == [[1000]] * 3
    assert {file.stat().st_mode & 0o77 for file in kept} == {0}
    checks = verify_folder(home / "releases" / "shared_steps")
    assert all(check.holds for check in checks)
    kept[0].unlink()
    key = server.datasets["clinic"].key
    gone = server.call("POST", "releases/shared_steps/step", {"number": 3}, key=key)
    assert gone.json()["code"] == "L10"


@pytest.mark.parametrize("number", [0, -1, 1.5, "x", True, 2**70], ids=str)
def test_odd_numbers_of_steps_are_refused(server, number):
    key = server.datasets["clinic"].key
    found = server.call("POST", "releases/any/step", {"number": number}, key=key)
    assert found.status_code in (400, 422), found.text


AGENDA = {
    "plan": {"rho": "0.002"},
    "release": [
        {"name": "planned_cities", "kind": "marginals", "of": "visits", "columns": ["city"],
         "ways": 1, "weight": "1/2"},
        {"name": "planned_ages", "kind": "hierarchy", "of": "visits", "by": ["city"],
         "within": 10**6},
    ],
}  # fmt: skip
PLAN = """
[plan]
rho = 0.002
[[release]]
name = "planned_cities"
kind = "marginals"
of = "visits"
columns = ["city"]
ways = 1
weight = 0.5
[[release]]
name = "planned_ages"
kind = "hierarchy"
of = "visits"
by = ["city"]
within = 1000000
"""


@pytest.fixture
def clinic(server):
    """The curator of the shared server, from elsewhere."""
    key = server.datasets["clinic"].key
    with discreet.connect(server.url, timeout_s=PATIENCE_S, key=key) as found:
        yield found


def test_a_plan_is_made_over_http_for_one_charge_and_handed_over(server, clinic, tmp_path):
    """Planned for free, charged at once, made stage by stage; a second time it is there."""
    key, home = server.datasets["clinic"].key, server.datasets["clinic"].home
    (tmp_path / "plan.toml").write_text(PLAN)
    before = clinic.spent
    told = server.call("POST", "releases/plan_all", AGENDA, key=key).json()
    assert told == clinic.plan_releases(tmp_path / "plan.toml") == clinic.plan_releases(PLAN)
    with discreet.open(home, opened=False) as local:
        assert local.plan_releases(PLAN).to_json() == told
    assert (told["kind"], told["total"], told["missed"]) == ("rho", "1/500", [])
    assert clinic.spent == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("mine")
    with pytest.raises(InvalidParameter, match="P9: "):
        clinic.make_releases(PLAN, folder=tmp_path / "mine")
    assert clinic.spent == before
    made = clinic.make_releases(tmp_path / "plan.toml", folder=tmp_path / "office")
    assert [one["declared"]["name"] for one in made] == ["planned_cities", "planned_ages"]
    spent = clinic.spent
    charged = spent.rho - before.rho  # rounded up, of each stage
    assert 0 <= charged - Fraction(told["total"]) < Fraction(1, 10**9)
    assert all(check.holds for check in verify_handover(tmp_path / "office"))
    again = server.call("POST", "releases/make_all", AGENDA, key=key).json()
    assert again == {"releases": made}
    with discreet.open(home) as local:  # beside the server: made already, and free
        found = local.make_releases(PLAN, folder=tmp_path / "beside")
        assert [one.made.certificate() for one in found] == made
    sums = [(tmp_path / place / "SHA256SUMS").read_text() for place in ("office", "beside")]
    assert sums[0] == sums[1]
    assert clinic.spent == spent


def test_a_plan_that_stopped_over_http_goes_on_and_is_not_paid_again(server, clinic, monkeypatch):
    """The process of the engine fails at the second release: the first is there, both are paid."""
    agenda = json.loads(json.dumps(AGENDA).replace("planned_", "stopped_"))
    drawn: list[int] = []
    publish = Account.publish

    def failing(account, receipt, answer):
        drawn.append(receipt.id)
        if len(drawn) == 2:
            raise DataRefusal("D1", "the disk is away.", why="it is.", fix="try again.")
        return publish(account, receipt, answer)

    before = clinic.spent
    with monkeypatch.context() as patch:
        patch.setattr(Account, "publish", failing)
        with pytest.raises(DataRefusal, match="the disk is away"):
            clinic.make_releases(agenda)
    spent = clinic.spent
    assert 0 <= spent.rho - before.rho - Fraction(1, 500) < Fraction(1, 10**9)
    names = {one["name"] for one in clinic.releases()}
    assert "stopped_cities" in names
    assert "stopped_ages" not in names
    made = clinic.make_releases(agenda)
    assert [one["declared"]["name"] for one in made] == ["stopped_cities", "stopped_ages"]
    assert clinic.spent == spent


def test_a_plan_is_a_work_for_whoever_does_not_wait(server):
    key = server.datasets["clinic"].key
    agenda = json.loads(json.dumps(AGENDA).replace("planned_", "waited_"))
    sent = server.call("POST", "releases/make_all", {**agenda, "wait_s": 0}, key=key)
    assert sent.status_code == 202
    assert sent.json()["state"] == "running"
    while sent.status_code == 202:
        sent = server.call("GET", f"works/{sent.json()['id']}?wait_s=30", key=key)
    names = [one["declared"]["name"] for one in sent.json()["releases"]]
    assert names == ["waited_cities", "waited_ages"]


def test_cards_certificates_and_folders_come_to_the_client(released, clinic, tmp_path):
    home = released.datasets["clinic"].home
    person = released.person()
    with (
        discreet.open(home, opened=False) as local,
        discreet.connect(released.url, timeout_s=PATIENCE_S, key=person) as reader,
    ):
        assert reader.show_card("cities") == local.show_card("cities")
        assert reader.show_certificate("cities") == local.show_certificate("cities")
        for _ in range(2):  # in the place of an earlier one
            place = reader.hand_over_release("cities", tmp_path / "cities")
        assert (place / "SHA256SUMS").read_text() == (
            home / "releases" / "cities" / "SHA256SUMS"
        ).read_text()
        assert all(check.holds for check in verify_folder(place))
        for act in (reader.show_card, reader.show_certificate):
            with pytest.raises(QuestionRefusal, match="there is no release 'nothing'"):
                act("nothing")
        for name in ("nothing", "../ledger.sqlite", ".."):
            with pytest.raises(Refusal):
                reader.hand_over_release(name, tmp_path / "none")
        with pytest.raises(AccessRefusal):
            reader.hand_over_releases(["cities"], tmp_path / "none")
        assert not (tmp_path / "none").exists()
        (place / "letter.txt").write_text("mine")
        with pytest.raises(InvalidParameter, match="P9: "):
            reader.hand_over_release("cities", place)
    given = clinic.hand_over_releases("cities", tmp_path / "office")
    assert all(check.holds for check in verify_handover(given))


def test_questions_are_planned_together_by_the_client_and_charged(clinic):
    """The same words as in Python: planned for free, and then paid for."""
    asked = ["SELECT COUNT(*) FROM visits WHERE age < 7", "SELECT COUNT(*) FROM visits"]
    words = {"of": "visits", "columns": ["age"], "epsilon": Fraction(1, 80)}
    before = clinic.spent
    planned = clinic.plan_release("together", kind="questions", questions=asked, **words)
    assert clinic.spent == before
    made = clinic.plan(asked, name="together", **words)
    assert made["declared"] == planned["release"]
    assert clinic.spent.rho - before.rho == Fraction(planned["loss"]["rho"])
    assert clinic.show_certificate("together") == made


def test_exact_numbers_are_sent_wherever_they_stand(clinic):
    weights = {"age": Fraction(7, 3), "city": Decimal("0.5")}
    told = clinic.plan_release("weighed", of="visits", columns=["age", "city"], interest=weights,
                               epsilon=Fraction(1, 90))  # fmt: skip
    assert told["release"]["interest"] == [["age", "7/3"], ["city", "1/2"]]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"plan": {"epsilon": "0.1"}},
        {"plan": {"epsilon": "0.1"}, "release": []},
        {"plan": {"epsilon": "0.1"}, "release": {}},
        {"plan": {"epsilon": "0.1"}, "release": [7]},
        {"plan": {"epsilon": [1]}, "release": AGENDA["release"]},
        {"plan": {"epsilon": "0.1", "rho": 1}, "release": AGENDA["release"]},
        {"plan": {"colour": 1}, "release": AGENDA["release"]},
        {"plan": {}, "release": AGENDA["release"]},
        {"plan": "/etc/passwd", "release": AGENDA["release"]},
        {**AGENDA, "release": AGENDA["release"] * 2},
        {**AGENDA, "release": [{**AGENDA["release"][0], "of": "nothing"}]},
        {**AGENDA, "release": [{**AGENDA["release"][0], "epsilon": 1}]},
        {**AGENDA, "release": [{**AGENDA["release"][0], "weight": {}}]},
        {**AGENDA, "release": [{**AGENDA["release"][0], "within": "near"}]},
        {**AGENDA, "folder": "/tmp/office"},
    ],
    ids=lambda body: str(body)[:60],
)
def test_odd_plans_are_refused_for_free(server, body):
    key = server.datasets["clinic"].key
    before = server.call("GET", "balance", key=key).json()["dataset"]["spent"]
    for path in ("releases/plan_all", "releases/make_all"):
        found = server.call("POST", path, body, key=key)
        assert found.status_code in (400, 422), found.text
        assert "fix" in found.json()
    assert server.call("GET", "balance", key=key).json()["dataset"]["spent"] == before


@pytest.mark.parametrize("names", [[], ["nothing"], ["../clinic"], "cities", [""], [7], None])
def test_odd_folders_are_refused(released, names):
    key = released.datasets["clinic"].key
    found = released.call("POST", "releases/folder", {"releases": names}, key=key)
    assert found.status_code in (400, 404, 422), found.text
    assert "fix" in found.json()


@pytest.mark.parametrize("role", ["analyst", "auditor"])
def test_only_a_curator_makes_releases(server, role):
    key = server.person(role=role)
    wanted = {**CITIES, "settings": {"epsilon": "0.01"}}
    for path, body in (
        ("releases", wanted),
        ("releases/plan", wanted),
        ("releases/plan_all", AGENDA),
        ("releases/make_all", AGENDA),
        ("releases/folder", {"releases": ["cities"]}),
        ("releases/cities/step", {}),
    ):
        assert server.call("POST", path, body, key=key).status_code == 403


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"epsilon": "0.01", "columns": {"a": 1}},
        {"epsilon": "0.01", "cells": [[1, 2, 3]]},
        {"epsilon": "0.01", "cells": [["a"]]},
        {"epsilon": "0.01", "sets": [1]},
        {"epsilon": "0.01", "nothing": 1},
        {"epsilon": "0.01", "ways": True},
        {"epsilon": [1]},
        {"epsilon": {"a": 1}},
        {"epsilon": "0.01", "interest": {"city": None}},
        {"epsilon": "0.01", "source": "visits"},
        {"epsilon": "0.01", "tree": [[1, 2]]},
        {"epsilon": "0.01", "geography": 7},
        {"epsilon": "0.01", "delta": [2]},
        {"epsilon": "0.01", "rows": "many"},
        {"epsilon": "0.01", "steps_per_unit": 1.5},
    ],
    ids=str,
)
def test_odd_declarations_are_refused_for_free(server, settings):
    key = server.datasets["clinic"].key
    before = server.call("GET", "balance", key=key).json()["dataset"]["spent"]
    for path in ("releases", "releases/plan"):
        found = server.call("POST", path, {**CITIES, "name": "odd", "settings": settings}, key=key)
        assert found.status_code in (400, 422), found.text
    assert server.call("GET", "balance", key=key).json()["dataset"]["spent"] == before
