"""The commands on a session: what they print, what they write, and what bad input does not do."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_cases import BY_CITY, FEW, copied, is_refusal, make_session, runner
from patience import PATIENCE_S

from discreet import cli
from discreet.curate import session

COUNT = "SELECT COUNT(*) AS n FROM patients"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return make_session(tmp_path_factory.mktemp("cli") / "clinic")


@pytest.fixture
def home(original, tmp_path):
    return copied(original, tmp_path / "clinic")


@pytest.fixture
def plain(capsys):
    """A command line, run in this process."""
    return runner(capsys)


@pytest.fixture
def run(plain, home, monkeypatch):
    """The same, on the session of the test."""
    monkeypatch.setenv("DISCREET_SESSION", str(home))
    return plain


def ok(ran: tuple[int, str, str]) -> str:
    code, out, err = ran
    assert (code, err) == (0, "")
    assert all(len(line) <= 80 for line in out.splitlines())
    return out


def told(ran: tuple[int, str, str]):
    code, out, err = ran
    assert (code, err) == (0, "")
    return json.loads(out)


def spent(home: Path) -> Fraction:
    with session.open(home) as curator:
        return Fraction(curator.spent.epsilon)


# --- asking ------------------------------------------------------------------------------------


def test_a_fresh_measurement_is_paid_for_though_one_is_known(run, home):
    ok(run("ask", COUNT, "--epsilon", "0.3"))
    assert told(run("price", COUNT, "--epsilon", "0.3", "--fresh", "--json"))["free"] is False
    ok(run("ask", COUNT, "--epsilon", "0.3"))
    assert spent(home) == Fraction(3, 10)
    ok(run("ask", COUNT, "--epsilon", "0.3", "--fresh"))
    assert spent(home) == Fraction(6, 10)


def test_ask_prints_values_margins_and_the_price(run, home):
    out = ok(run("ask", BY_CITY, "--epsilon", "0.2"))
    assert "Bergen" in out
    assert "± at 95 % confidence; cost ε = 0.2" in out
    assert spent(home) == Fraction(1, 5)


def test_an_improved_answer_costs_what_was_charged_now_and_says_what_it_cost_in_all(run, home):
    ok(run("ask", BY_CITY, "--epsilon", "0.1"))
    first = spent(home)
    out = " ".join(ok(run("ask", COUNT, "--epsilon", "0.1")).split())
    paid, in_all = re.findall(r"ε = (\S+),", out)
    assert f"; ε = {paid}, " in out
    assert f"more; in all ε = {in_all}, " in out
    assert float(paid) == pytest.approx(float(spent(home) - first), rel=1e-5)
    assert float(in_all) == pytest.approx(float(spent(home)), rel=1e-5)
    again = told(run("ask", COUNT, "--epsilon", "0.1", "--json"))
    assert Fraction(again["paid"]["epsilon"]) == 0


def test_ask_as_json_says_everything(run):
    answer = told(run("ask", BY_CITY, "--epsilon", "1/3", "--confidence", "0.9", "--json"))
    assert [column["name"] for column in answer["columns"]] == ["city", "n"]
    assert len(answer["rows"]) == len(answer["margins"]) == 8
    assert sum(n for _, n in answer["rows"]) == pytest.approx(FEW, abs=300)
    assert Fraction(answer["price"]["epsilon"]) >= Fraction(1, 3)
    assert answer["confidence"] == "0.9"
    assert answer["certificate"]
    assert not answer["replayed"]
    again = told(run("ask", BY_CITY, "--epsilon", "1/3", "--json"))
    assert again["replayed"]
    assert again["rows"] == answer["rows"]
    assert again["margins"][0][1] > answer["margins"][0][1]  # 95 %, not 90 %


def test_ask_as_csv_puts_margins_beside_values(run):
    code, out, err = run("ask", BY_CITY, "--epsilon", "0.2", "--csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert (code, err) == (0, "")
    assert [row["city"] for row in rows][:3] == ["Aalborg", "Bergen", "Cork"]
    assert all(float(row["n_margin"]) == 15 for row in rows)


def test_margins_say_what_they_count(run):
    sql = "SELECT MEDIAN(age) AS middle FROM patients"
    assert " ranks" in ok(run("price", sql, "--epsilon", "0.2"))
    assert " ranks)" in ok(run("ask", sql, "--epsilon", "0.2"))


def test_ask_within_an_accuracy(run, home):
    answer = told(run("ask", COUNT, "--within", "40", "--confidence", "0.99", "--json"))
    assert answer["margins"][0][0] <= 40
    assert 0 < spent(home) < Fraction(1, 4)


def test_ask_as_an_analyst_charges_the_analyst(run):
    ok(run("analyst", "add", "ana", "--epsilon", "0.3", "--delta", "1e-9"))
    ok(run("ask", COUNT, "--epsilon", "0.2", "--as", "ana"))
    ran = run("ask", BY_CITY, "--epsilon", "0.2", "--as", "ana")
    assert is_refusal(ran, "B2")
    assert "ana" in ran[2]
    balance = told(run("balance", "--json"))
    assert {a["name"]: a["spent"]["epsilon"] for a in balance["analysts"]} == {
        "curator": "0",
        "ana": "1/5",
    }


def test_explain_and_price_are_free_and_need_no_data(run, home):
    for file in home.glob("*.parquet"):
        file.unlink()
    assert "sensitivity" in ok(run("explain", BY_CITY, "--epsilon", "0.2"))
    assert "SELECT" in told(run("explain", BY_CITY, "--rho", "0.02", "--json"))["engine_sql"]
    assert "price:  ε = 0.2" in ok(run("price", BY_CITY, "--epsilon", "0.2"))
    quote = told(run("price", BY_CITY, "--within", "30", "--json"))
    assert quote["outcome"] == "admitted"
    assert quote["columns"][1]["margin"] <= 30
    assert told(run("balance", "--json"))["spent"]["epsilon"] == "0"
    assert ok(run("transcript")) == "Nothing was asked yet.\n"


def test_price_says_whether_it_would_be_paid(run):
    code, out, _ = run("price", BY_CITY, "--epsilon", "3")
    assert code == 2
    assert "B1:" in out
    code, out, _ = run("price", BY_CITY, "--epsilon", "3", "--json")
    assert code == 2
    assert json.loads(out)["refusal"]["code"] == "B1"
    ok(run("ask", BY_CITY, "--epsilon", "0.2"))
    assert "free" in ok(run("price", BY_CITY, "--epsilon", "0.2"))


def test_explain_in_sql_is_explain(run):
    assert "sensitivity" in ok(run("ask", f"EXPLAIN {BY_CITY}", "--epsilon", "0.2"))
    ok(run("ask", BY_CITY, "--epsilon", "0.1"))
    for command in (["ask", f"EXPLAIN {BY_CITY}"], ["explain", BY_CITY]):
        said = ok(run(*command, "--epsilon", "0.2"))
        assert "choice: free" in said
        assert "improves answer" in said
        assert "a new measurement" in said


# --- the account -------------------------------------------------------------------------------


def test_a_city_pays_for_itself(run):
    for city in ("Bergen", "Cork"):
        ok(run("ask", f"{COUNT} WHERE city = '{city}'", "--epsilon", "0.25"))
    blocks = {b["name"]: b for b in told(run("balance", "--json"))["blocks"]}
    assert blocks["city = Bergen"]["spent"]["epsilon"] == "1/4"
    assert blocks["city = Cork"]["spent"]["epsilon"] == "1/4"
    assert blocks["city = Delft"]["spent"]["epsilon"] == "0"
    lines = ok(run("balance")).splitlines()
    bergen = next(line for line in lines if "Bergen" in line)
    assert bergen.count("█") == 6  # a quarter of 24
    assert "25 %" in bergen


def test_balance_shows_the_fullest_of_many_blocks(run, monkeypatch):
    from discreet.cli import accounts

    monkeypatch.setattr(accounts, "MOST_BLOCKS", 3)
    ok(run("ask", f"{COUNT} WHERE city = 'Hamar'", "--epsilon", "0.25"))
    out = ok(run("balance"))
    assert out.index("city = Hamar") < out.index("everyone else")
    assert "and 6 more blocks" in out


def test_transcript_tells_what_became_of_each(run):
    ok(run("ask", COUNT, "--epsilon", "0.2"))
    assert is_refusal(run("ask", "SELECT city FROM patients", "--epsilon", "0.1"), "Q12")
    assert is_refusal(run("ask", BY_CITY, "--epsilon", "7"), "B1")
    entries = told(run("transcript", "--json"))
    assert [(e["state"], e["code"]) for e in entries] == [
        ("answered", ""),
        ("refused", "Q12"),
        ("refused", "B1"),
    ]
    assert entries[0]["spend"] == {"epsilon": "1/5"}
    out = ok(run("transcript"))
    assert "answered" in out
    assert "refused: Q12" in out
    assert COUNT in out


def test_renewal_is_by_block_and_for_a_reason(run):
    ok(run("ask", BY_CITY, "--epsilon", "0.5"))
    ok(run("renew", "city = Bergen", "--reason", "new patients since May"))
    blocks = {b["name"]: b["spent"]["epsilon"] for b in told(run("balance", "--json"))["blocks"]}
    assert blocks["city = Bergen"] == "0"
    assert blocks["city = Cork"] == "1/2"
    assert run("renew", "city = Bergen")[0] == 2
    assert is_refusal(run("renew", "city = Bergen", "--reason", " "))
    assert is_refusal(run("renew", "city = Nowhere", "--reason", "why not"))


def test_analysts_come_are_limited_and_go(run):
    ok(run("analyst", "add", "ana", "--epsilon", "0.3", "--delta", "1e-9"))
    ok(run("analyst", "add", "bo", "--role", "auditor", "--expires", "2099-12-31"))
    out = ok(run("analyst", "list"))
    assert "at most ε = 0.3" in out
    assert "2099-12-31" in out
    ok(run("analyst", "limit", "ana", "--rho", "0.01"))
    ok(run("analyst", "disable", "bo"))
    found = {a["name"]: a for a in told(run("analyst", "list", "--json"))}
    assert found["ana"]["limit"]["rho"] == "1/100"
    assert found["bo"]["disabled"]
    assert found["bo"]["role"] == "auditor"
    assert is_refusal(run("ask", COUNT, "--epsilon", "0.1", "--as", "bo"), "A2")
    assert is_refusal(run("analyst", "limit", "ana"), "P4")
    assert is_refusal(run("analyst", "limit", "ana", "--none", "--epsilon", "0.1"), "P4")
    assert told(run("analyst", "list", "--json"))[1]["limit"]["rho"] == "1/100"
    assert told(run("analyst", "limit", "ana", "--none", "--json"))["limit"] is None


def test_a_limit_beyond_the_budget_is_said_to_be_one(run):
    """The clinic's budget is ε = 1, δ = 1e-9."""
    note = "\n(more than the dataset's ε = 1, which counts.)\n"
    assert ok(run("analyst", "add", "leo", "--epsilon", "5")).endswith(note)
    assert "more than" not in ok(run("analyst", "add", "ana", "--epsilon", "1"))
    assert ok(run("analyst", "limit", "ana", "--epsilon", "1.01")).endswith(note)
    assert "more than" not in ok(run("analyst", "limit", "ana", "--none"))
    assert "more than the dataset's ρ = " in ok(run("analyst", "limit", "ana", "--rho", "3"))
    assert "more than" not in ok(run("analyst", "limit", "ana", "--rho", "0.001"))


def test_the_limit_of_the_policy_is_shown_where_nobody_has_their_own(run, home):
    with (home / "discreet.toml").open("a") as file:
        file.write("\n[policy]\nanalyst = { epsilon = 0.25 }\n")
    assert "at most ε = 0.25" in ok(run("analyst", "add", "ana"))
    shown = ok(run("analyst", "list")).splitlines()
    assert [("0.25" in line) for line in shown if "cur" in line or "ana " in line] == [False, True]


def test_a_budget_that_changed_is_told_once(run, home):
    file = home / "discreet.toml"
    file.write_text(file.read_text().replace("epsilon = 1\n", "epsilon = 3\n"))
    code, out, err = run("balance")
    assert (code, "ε = 3" in out) == (0, True)
    assert err == (
        "The budget was ε = 1, δ = 0.000000001; it is ε = 3, δ = 0.000000001 from now on, and "
        "that is in the ledger.\n"
    )
    ok(run("balance"))  # nothing on standard error any more
    with session.read(home).ledger() as ledger:
        assert [record.kind for record in ledger.records()].count("budget") == 1


def test_the_balance_is_in_numbers_for_programs(run):
    ok(run("ask", BY_CITY, "--epsilon", "0.25"))
    found = told(run("balance", "--json"))
    assert found["budget"]["epsilon"] == "1"
    assert found["left"]["epsilon"] == "3/4"
    assert "Enough for" in found["words"]


def test_a_schema_may_be_named_by_its_session(run, home):
    assert ok(run("schema", "check", home)) == ok(run("schema", "check", home / "discreet.toml"))


def test_a_key_is_shown_once_and_never_kept(run, home):
    added = told(run("analyst", "add", "ana", "--key", "--json"))
    assert added["key"].startswith("discreet_")
    secret = added["key"].split("_")[2]
    kept = b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file())
    assert secret.encode() not in kept
    assert bytes.fromhex(secret) not in kept


def test_a_release_that_was_made_before_says_that_it_is_free(run):
    made = ("release", "new", "all", "--of", "patients", "--kind", "marginals", "--columns", "city")
    assert "\ncost ε = 0.1," in ok(run(*made, "--epsilon", "0.1"))
    assert "\nmade before, free now; it cost ε = 0.1," in ok(run(*made, "--epsilon", "0.1"))


@pytest.mark.parametrize(
    ("arguments", "code", "fix"),
    [
        (("ledger", "verify", "nope"), "L1", "`discreet ledger verify -s DIR`"),
        (("ledger", "verify", "--checkpoint", "nope"), "L8", "`discreet ledger checkpoint`"),
        (("ledger", "checkpoint", "--key", "nope"), "L8", "`discreet ledger key nope`"),
        (("schema", "check", "nope"), "S1", "`discreet init DIR --from FILE`"),
    ],
)
def test_a_file_that_is_not_there_is_no_damaged_one(arguments, code, fix, run, home):
    ran = run(*arguments)
    assert is_refusal(ran, code)
    assert "there is no file nope." in ran[2]
    assert fix in " ".join(ran[2].split())


def test_the_directory_of_a_session_is_no_export(run, home):
    ran = run("ledger", "verify", str(home))
    assert is_refusal(ran, "L1")
    assert f"`discreet ledger verify -s {home}`" in " ".join(ran[2].split())


def test_a_signing_key_that_is_there_is_no_ledger(run, tmp_path):
    ok(run("ledger", "key", str(tmp_path / "k.key")))
    ran = run("ledger", "key", str(tmp_path / "k.key"))
    assert is_refusal(ran, "L13")
    assert "a signing key that is overwritten" in ran[2]


def test_a_lost_key_is_replaced_and_revoked(run, home):
    from discreet.errors import AccessRefusal
    from discreet.ledger import keys

    ok(run("analyst", "add", "ben"))
    again = run("analyst", "add", "ben", "--key")
    assert is_refusal(again, "P4")
    assert "`discreet analyst key ben`" in again[2]
    _, shown, _ = run("analyst", "key", "ben")
    lost = next(line.strip() for line in shown.splitlines() if "discreet_" in line)
    assert "revoke" not in shown  # it is the first
    _, said, _ = run("analyst", "key", "ben")
    assert "until it is revoked" in said
    assert said.splitlines()[-1].strip() == f"discreet analyst revoke {keys.key_id(lost)}"
    made = told(run("analyst", "key", "ben", "--expires", "2099-12-31", "--json"))
    assert made.keys() == {"id", "analyst", "made", "expires", "revoked", "key"}
    assert keys.key_id(made["key"]) == made["id"]
    said = ok(run("analyst", "revoke", keys.key_id(lost)))
    assert "of ben opens nothing any more" in said
    assert keys.key_id(lost) not in run("analyst", "key", "ben")[1]
    named = run("analyst", "revoke", "ben")
    assert is_refusal(named, "P4")
    assert "'ben' is an analyst and not a key" in named[2]
    with session.open(home, opened=False) as curator:
        accounts = {"clinic": curator.account}
        assert keys.identify(accounts, made["key"]).grants["clinic"].analyst == "ben"
        with pytest.raises(AccessRefusal, match="A10"):
            keys.identify(accounts, lost)


def test_keys_are_listed_without_what_opens(run):
    first = told(run("analyst", "key", "curator", "--json"))
    ok(run("analyst", "add", "ben"))
    assert ok(run("analyst", "keys", "ben")) == "There is no key.\n"
    second = told(run("analyst", "key", "ben", "--expires", "2099-12-31", "--json"))
    assert told(run("analyst", "revoke", first["key"], "--json"))["revoked"]  # the whole key
    listed = {one["id"]: one for one in told(run("analyst", "keys", "--json"))}
    assert listed[first["id"]]["revoked"]
    assert not listed[second["id"]]["revoked"]
    assert listed[second["id"]].keys() == {"id", "analyst", "made", "expires", "revoked"}
    shown = ok(run("analyst", "keys"))
    lines = {line.split()[0]: line.split()[1:] for line in shown.splitlines() if line}
    assert lines[first["id"]] == ["curator", f"{first['made'][:10]}", "revoked"]
    assert lines[second["id"]] == ["ben", second["made"][:10], "2099-12-31"]
    assert [one["id"] for one in told(run("analyst", "keys", "ben", "--json"))] == [second["id"]]


def test_no_key_is_made_that_would_open_nothing(run):
    ok(run("analyst", "add", "ben"))
    ok(run("analyst", "disable", "ben"))
    assert is_refusal(run("analyst", "key", "ben"), "P4")
    assert is_refusal(run("analyst", "key", "curator", "--expires", "2001-02-03"), "P2")
    assert told(run("analyst", "keys", "ben", "--json")) == []


def test_a_key_that_is_not_there_is_refused_without_its_secret(run):
    secret = "5e" * 32
    ran = run("analyst", "revoke", f"discreet_{'0a' * 8}_{secret}")
    assert is_refusal(ran, "P4")
    assert "0a" * 8 in ran[2]
    assert secret not in ran[2]
    assert "`discreet analyst keys`" in ran[2]


def test_no_line_of_the_transcript_ends_in_blanks(run):
    cities = "city IN ('Bergen', 'Cork') AND age > 30 AND smoker"  # more than one line
    ok(run("ask", f"{COUNT} WHERE {cities}", "--epsilon", "0.1"))
    lines = ok(run("transcript")).splitlines()
    assert len(lines) == 3
    assert [line for line in lines if line != line.rstrip()] == []
    assert [line[:3] for line in lines[1:]] == ["   ", "   "]  # below the question's number


# --- the ledger --------------------------------------------------------------------------------


def test_verify_finds_an_edited_record(run, home):
    import sqlite3

    ok(run("ask", COUNT, "--epsilon", "0.2"))
    checked = told(run("ledger", "verify", "--json"))
    assert checked["ok"]
    assert checked["charges"] == checked["releases"] == 1
    unknown = "Whether records after it were cut off, only a checkpoint shows."
    said = ok(run("ledger", "verify"))
    assert "all in order" in said
    assert said.splitlines()[-1] == unknown
    with closing(sqlite3.connect(home / "ledger.sqlite")) as books, books:
        books.execute("UPDATE records SET body = replace(body, '1/5', '1/6') WHERE kind = 'charge'")
    books.close()
    code, found, _ = run("ledger", "verify")
    assert code == 2
    assert "record" in found
    assert is_refusal(run("ask", COUNT, "--epsilon", "0.2"), "L2")


def test_checkpoint_export_backup_restore(run, home, tmp_path):
    key, log, copy = tmp_path / "sign.pem", tmp_path / "log.jsonl", tmp_path / "copy.sqlite"
    public = told(run("ledger", "key", key, "--json"))["public_key"]
    assert key.stat().st_mode & 0o077 == 0
    ok(run("ledger", "backup", copy))
    ok(run("ask", COUNT, "--epsilon", "0.2"))
    ok(run("ledger", "checkpoint", "--key", key))
    made = told(run("ledger", "checkpoint", "--key", key, "--folder", tmp_path / "kept", "--json"))
    assert made["public_key"] == public
    ok(run("ledger", "export", log))
    newest = tmp_path / "kept"
    checked = run("ledger", "verify", log, "--checkpoint", newest, "--public-key", public)
    assert "1 checkpoint agrees" in ok(checked).replace("\n", " ")
    assert run("ledger", "verify", log, "--checkpoint", newest, "--public-key", "00")[0] == 2
    ok(run("ledger", "verify", "--checkpoint", newest))
    # An old copy in place of the ledger forgets a charge; the checkpoint beside it does not.
    for file in home.glob("ledger.sqlite*"):
        if file.is_file():
            file.unlink()
    (home / "ledger.sqlite").write_bytes(copy.read_bytes())
    assert is_refusal(run("balance"), "L4")
    assert is_refusal(run("ledger", "restore", copy, "--reason", "a lost disk"), "L13")
    (home / "ledger.sqlite").unlink()
    assert "counts as spent" in ok(
        run("ledger", "restore", copy, "--reason", "a lost disk")
    ).replace("\n", " ")
    assert is_refusal(run("ask", COUNT, "--epsilon", "0.01"), "B1")


# --- starting ----------------------------------------------------------------------------------


def test_a_new_user_asks_at_once(plain, tmp_path, monkeypatch):
    monkeypatch.delenv("DISCREET_SESSION", raising=False)
    monkeypatch.chdir(tmp_path)
    code, out, err = plain("init", "clinic", "--sample")
    assert (code, err) == (0, "")
    assert "discreet_" in out
    steps = [line.strip() for line in out.splitlines() if line.startswith("  discreet ")]
    assert steps[0].startswith('discreet ask "')
    monkeypatch.chdir(tmp_path / "clinic")
    assert "Enough for" in ok(plain("balance"))
    assert is_refusal(plain("init"), "S21")
    assert is_refusal(plain("init", "--sample"), "S21")
    monkeypatch.chdir(tmp_path)
    assert is_refusal(plain("init", "clinic", "--sample"), "S21")


def test_from_a_file_to_an_open_account(plain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    secret = 31_415_926
    people = pa.table({"person": [secret, 4], "age": [33, 44], "city": ["Uppsala", "Lund"]})
    pq.write_table(people, "data/people.parquet")
    assert "FILL IN" in ok(plain("init", "mine", "--from", "data/people.parquet"))
    file = Path("mine/discreet.toml")
    draft = file.read_text()
    assert str(secret) not in draft
    assert "Uppsala" not in draft
    assert is_refusal(plain("schema", "check", file), "S2")
    assert is_refusal(plain("init", "mine"))
    assert not Path("mine/ledger.sqlite").exists()
    assert 'unit = "FILL IN: person?"' in draft
    filled = draft.replace('"FILL IN: person?"', '"person"').replace('"FILL IN"', "3")
    file.write_text(filled)
    assert "protects each person" in ok(plain("schema", "check", file))
    opened = plain("init", "mine", "--json")
    assert told(opened)["key"].startswith("discreet_")
    ok(plain("ask", "SELECT COUNT(*) AS n FROM people", "--epsilon", "0.5", "-s", "mine"))
    assert json.loads(plain("init", "other", "--json")[1])["ledger"] is None
    assert "FILL IN" in Path("other/discreet.toml").read_text()


def test_a_file_inside_the_session_is_named_from_there(plain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    pq.write_table(pa.table({"person": [3]}), "mine/people.parquet")
    ok(plain("init", "mine", "--from", "mine/people.parquet"))
    assert 'source = "people.parquet"' in Path("mine/discreet.toml").read_text()


def test_schema_commands_as_json(run, home):
    checked = told(run("schema", "check", home / "discreet.toml", "--json"))
    assert checked["tables"]["visits"]["columns"]["cost"].startswith("decimal")
    draft = told(run("schema", "suggest", home / "visits.parquet", "--json"))
    assert "[tables.visits]" in draft["discreet.toml"]


def test_prepare_shows_progress_and_is_used(run, home):
    assert told(run("prepare", "--json", "patients"))["prepared"] == ["patients"]
    out = ok(run("prepare"))
    assert "visits" in out
    assert "100%" in out
    assert len(list((home / "prepared").glob("*.duckdb"))) == 2
    assert (home / "prepared").stat().st_mode & 0o077 == 0
    ok(run("ask", COUNT, "--epsilon", "0.1"))
    assert is_refusal(run("prepare", "nobody"), "S6")


# --- bad input ---------------------------------------------------------------------------------

LEARN = ("--of=patients", "--columns=city", "--rows=100", "--questions=3", "--epsilon=0.1")
ON_A_SESSION = {
    "ask": ("ask", COUNT, "--epsilon", "0.1"),
    "explain": ("explain", COUNT, "--epsilon", "0.1"),
    "price": ("price", COUNT, "--epsilon", "0.1"),
    "balance": ("balance",),
    "transcript": ("transcript",),
    "renew": ("renew", "city = Cork", "--reason", "new"),
    "analyst add": ("analyst", "add", "ana"),
    "analyst list": ("analyst", "list"),
    "analyst limit": ("analyst", "limit", "ana", "--epsilon", "0.1"),
    "analyst group": ("analyst", "group", "ana", "staff"),
    "analyst disable": ("analyst", "disable", "ana"),
    "analyst key": ("analyst", "key", "curator"),
    "analyst keys": ("analyst", "keys"),
    "analyst revoke": ("analyst", "revoke", "0123456789abcdef"),
    "ledger verify": ("ledger", "verify"),
    "ledger checkpoint": ("ledger", "checkpoint", "--key", "nowhere.pem"),
    "ledger export": ("ledger", "export", "log.jsonl"),
    "backup": ("backup", "copy.sqlite"),
    "ledger backup": ("ledger", "backup", "copy.sqlite"),
    "ledger restore": ("ledger", "restore", "nowhere.sqlite", "--reason", "lost"),
    "prepare": ("prepare",),
    "shell": ("shell",),
    "watch": ("watch", COUNT, "--threshold", "5", "--epsilon", "0.1"),
    "choose": ("choose", BY_CITY, "--epsilon", "0.1"),
    "interview": ("interview", COUNT, "--sensitivity", "5", "--epsilon", "0.1"),
    "learn": ("learn", COUNT, *LEARN),
    "quality": ("quality", "report.toml", "--epsilon", "0.1"),
    "median": ("median", "SELECT MEDIAN(age) FROM patients", "--epsilon", "0.1", "--delta", "1e-9"),
    "release new": ("release", "new", "all", "--of", "patients", "--epsilon", "0.1"),
    "release plan": ("release", "plan", "plan.toml"),
    "release run": ("release", "run", "plan.toml"),
    "release step": ("release", "step", "all"),
    "release show": ("release", "show", "all"),
    "release list": ("release", "list"),
}
every_command = pytest.mark.parametrize("arguments", ON_A_SESSION.values(), ids=ON_A_SESSION)


def test_no_command_on_a_session_is_left_out():
    import typer.main

    def takes_session(group, path=()):
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                yield from takes_session(command, (*path, name))
            elif any("--session" in p.opts for p in command.params):
                yield " ".join((*path, name))

    found = set(takes_session(typer.main.get_command(cli.app)))
    assert found - {"lab"} == set(ON_A_SESSION)  # which attacks made-up people if none is named


@every_command
def test_a_missing_session_is_refused(plain, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISCREET_SESSION", raising=False)
    assert is_refusal(plain(*arguments), "S20")
    assert is_refusal(plain(*arguments, "--session", "nowhere"), "S20")
    assert list(tmp_path.iterdir()) == []


@every_command
def test_a_typo_in_the_file_is_refused_with_its_line(run, arguments, home, monkeypatch):
    monkeypatch.chdir(home.parent)
    file = home / "discreet.toml"
    file.write_text(file.read_text().replace("epsilon = 1", "epsilom = 1"))
    ran = run(*arguments)
    assert is_refusal(ran, "S2")
    assert "discreet.toml, line 4" in ran[2]


@every_command
def test_a_ledger_that_is_not_one_is_refused_and_left_alone(run, arguments, home, monkeypatch):
    monkeypatch.chdir(home.parent)
    for wrong in (b"not a ledger at all " * 500, (home / "ledger.sqlite").read_bytes()[:9000]):
        for file in home.glob("ledger.sqlite-*"):
            file.unlink()
        (home / "ledger.sqlite").write_bytes(wrong)
        assert is_refusal(run(*arguments))
        assert (home / "ledger.sqlite").read_bytes() == wrong


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("ask", COUNT, "--epsilon", "0.1", "--as", "nobody"), "A1"),
        (("balance", "--as", "nobody"), "A1"),
        (("transcript", "--as", "nobody"), "A1"),
        (("analyst", "limit", "nobody", "--none"), "A1"),
        (("analyst", "disable", "nobody"), "A1"),
        (("analyst", "key", "nobody"), "A1"),
        (("analyst", "keys", "nobody"), "A1"),
        (("analyst", "revoke", "0123456789abcdef"), "P4"),
        (("analyst", "disable", "curator"), None),
        (("analyst", "add", "a b"), None),
        (("analyst", "add", "ana", "--role", "king"), None),
        (("analyst", "add", "ana", "--expires", "soon"), "P1"),
        (("analyst", "add", "ana", "--delta", "1e-9"), "P4"),
        (("analyst", "add", "ana", "--epsilon", "much"), "P1"),
        (("ask", COUNT), "Q43"),
        (("ask", COUNT, "--epsilon", "-1"), "P2"),
        (("ask", COUNT, "--epsilon", "nan"), "P1"),
        (("ask", COUNT, "--epsilon", "0.1", "--rho", "0.1"), "P4"),
        (("ask", COUNT, "--epsilon", "0.1", "--confidence", "2"), "P2"),
        (("ask", COUNT, "--epsilon", "0.1", "--json", "--csv"), "P4"),
        (("ask", "SELECT", "--epsilon", "0.1"), None),
        (("ask", "", "--epsilon", "0.1"), None),
        (("ask", "SELECT COUNT(*) FROM '/etc/passwd'", "--epsilon", "0.1"), None),
        (("shell", "--epsilon", "-3"), "P2"),
        (("init", "--from", "/no/such.parquet", "elsewhere"), "S8"),
        (("init", "--from", "x.parquet", "--sample", "elsewhere"), "P4"),
        (("ledger", "key", "/no/such/directory/key"), None),
        (("ledger", "export", "/no/such/directory/log"), None),
        (("ledger", "backup", "/no/such/directory/copy"), None),
        (("ledger", "checkpoint", "--key", "/no/such/key"), None),
        (("ledger", "verify", "/no/such/log"), None),
        (("ledger", "verify", "--checkpoint", "/no/such/checkpoint"), None),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_refused_and_nothing_is_spent(run, home, monkeypatch, arguments, code):
    monkeypatch.chdir(home.parent)
    ran = run(*arguments)
    if "--json" in arguments:
        assert ran[0] == 2
        assert json.loads(ran[2])["code"] == code
    else:
        assert is_refusal(ran, code), ran
    assert "Traceback" not in ran[2]
    assert spent(home) == 0


def test_missing_data_is_refused_before_anything_is_charged_or_said(run, home):
    (home / "visits.parquet").unlink()
    code, out, err = run("ask", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.1")
    assert (code, out) == (2, "")
    assert "Fix:" in err


def test_a_refusal_after_json_is_json(run):
    code, out, err = run("ask", "SELECT city FROM patients", "--epsilon", "0.1", "--json")
    assert (code, out) == (2, "")
    refusal = json.loads(err)
    assert refusal["code"] == "Q12"
    assert {"title", "what", "why", "fix", "place"} <= refusal.keys()


def test_a_mistake_of_the_program_shows_neither_data_nor_a_traceback(run, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("could not cast 'canary' of row 3")

    monkeypatch.setattr("discreet.curate.curator.Curator.ask", broken)
    code, out, err = run("ask", COUNT, "--epsilon", "0.1")
    assert (code, out) == (1, "")
    assert "canary" not in err
    assert "Traceback" not in err
    assert "RuntimeError" in err
    monkeypatch.setenv("DISCREET_TRACEBACK", "1")
    with pytest.raises(RuntimeError):
        cli.main(["ask", COUNT, "--epsilon", "0.1"])


# --- real processes ----------------------------------------------------------------------------


def process(*arguments: object, home: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "DISCREET_SESSION": str(home)}
    return subprocess.Popen(
        [sys.executable, "-m", "discreet", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def test_two_processes_share_one_account(home):
    """Both may ask; together they cannot spend more than there is."""
    asking = [
        process("ask", f"{COUNT} WHERE age > {age}", "--epsilon", "0.6", home=home)
        for age in (30, 40)
    ]
    said = [one.communicate(timeout=PATIENCE_S) for one in asking]
    assert sorted(one.returncode for one in asking) == [0, 2]
    refused = next(err for one, (_, err) in zip(asking, said, strict=True) if one.returncode)
    assert refused.startswith("B1:")
    assert spent(home) == Fraction(3, 5)


def test_a_reader_that_leaves_is_no_traceback(home):
    asked = process("transcript", "--json", home=home)
    assert asked.stdout is not None
    asked.stdout.close()
    assert asked.stderr is not None
    assert "Traceback" not in asked.stderr.read()
    asked.stderr.close()
    asked.wait(timeout=PATIENCE_S)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_there(shell, monkeypatch):
    import typer.completion

    script = typer.completion.get_completion_script(
        prog_name="discreet", complete_var="_DISCREET_COMPLETE", shell=shell
    )
    assert "_DISCREET_COMPLETE" in script


# --- the processor -------------------------------------------------------------------------------


def test_one_thread_multiplies_matrices_unless_somebody_says_otherwise(plain, monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    plain("--help")
    assert os.environ["OPENBLAS_NUM_THREADS"] == "3"
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    plain("--help")
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1"


def test_the_command_line_says_so_before_numpy_is_there():
    ran = subprocess.run(
        [sys.executable, "-c", "import sys, discreet.cli; print('numpy' in sys.modules)"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert ran.stdout == "False\n"
