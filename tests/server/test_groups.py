"""Groups of analysts over HTTP and on the command line: a common limit, charged and shown."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from discreet import cli
from discreet.curate import session

GROUPS = """
[groups.staff]
limit = { epsilon = 0.5 }
each = { epsilon = 0.4 }
claims = ["researchers"]

[groups.others]
"""


@pytest.fixture(scope="module")
def grouped(tmp_path_factory, serving):
    with serving(tmp_path_factory.mktemp("grouped"), more=GROUPS) as found:
        yield found


def test_a_common_limit_holds_over_http_and_is_shown(grouped, fresh):
    ana, ben = (grouped.person(name=name, group="staff") for name in ("ana", "ben"))
    one, two, three = fresh(3)
    assert grouped.ask(one, "3/10", key=ana).status_code == 200
    refused = grouped.ask(two, "3/10", key=ben)
    assert (refused.status_code, refused.json()["code"]) == (402, "B5")
    assert "'staff'" in refused.json()["what"]
    assert grouped.ask(three, "1/5", key=ben).status_code == 200
    shown = grouped.call("GET", "balance", key=ana).json()
    assert shown["group"]["name"] == "staff"
    assert shown["group"]["share"] == 1
    assert shown["analyst"]["budget"]["epsilon"] == "2/5"
    assert "The group staff, together" in shown["text"]
    listed = grouped.call("GET", "analysts").json()
    assert {one["name"]: one["group"] for one in listed["analysts"]}["ana"] == "staff"
    others, staff = listed["groups"]
    assert (staff["name"], staff["together"]["share"]) == ("staff", 1)
    assert (others["name"], others["limit"], others["together"]) == ("others", None, None)


def test_analysts_are_moved_and_wrong_groups_refused(grouped, fresh):
    eve = grouped.person(name="eve", group="others")
    assert grouped.call("GET", "balance", key=eve).json()["group"] is None
    refused = grouped.call("PATCH", "analysts/eve", {"group": "nobody"})
    assert (refused.status_code, refused.json()["code"]) == (422, "P4")
    moved = grouped.call("PATCH", "analysts/eve", {"group": "staff"}).json()
    assert moved["group"] == "staff"
    taken = grouped.call("PATCH", "analysts/eve", {"group": None}).json()
    assert taken["group"] is None
    again = grouped.call("PATCH", "analysts/eve", {"limit": {"epsilon": "1"}}).json()
    assert again["group"] is None  # what is left out stays


def test_groups_on_the_command_line(tmp_path, make_dataset):
    home = make_dataset(tmp_path / "clinic", more=GROUPS).home
    runner = CliRunner()

    def run(*words):
        ran = runner.invoke(cli.app, [*words, "--session", str(home)], catch_exceptions=False)
        assert ran.exit_code == 0, ran.output
        return ran.output

    run("analyst", "add", "ana", "--group", "staff")
    assert json.loads(run("analyst", "list", "--json"))[1]["group"] == "staff"
    assert "staff" in run("analyst", "list")
    assert json.loads(run("balance", "--json"))["groups"][0]["name"] == "staff"
    assert "the group" in run("balance")
    assert "in the group others" in run("analyst", "group", "ana", "others")
    assert "no group" in run("analyst", "group", "ana", "--none")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("[groups.staff]\nlimits = { epsilon = 1 }", "no 'limits'"),
        ("[groups.staff]\nlimit = { epsilon = -1 }", "epsilon"),
        ("[groups.staff]\nlimit = 3", "not a section"),
        ('[groups."a b"]', "a group is 'a b'"),
        ("[groups]\nstaff = 3", "not a section"),
    ],
)
def test_a_group_that_is_not_understood_is_refused_with_its_line(
    tmp_path, make_dataset, wrong, said
):
    home = make_dataset(tmp_path / "clinic").home
    file = home / session.FILE
    file.write_text(f"{file.read_text()}\n{wrong}\n")
    with pytest.raises(session.SchemaRefusal, match=said) as refusal:
        session.read(home)
    assert "line" in str(refusal.value)
