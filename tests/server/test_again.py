"""Requests that were read before: told again without being read, and to nobody who may not ask."""

from __future__ import annotations

import gc
import itertools
import json
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest
from patience import PATIENCE_S, wait_until

from discreet.curate import session
from discreet.errors import Refusal
from discreet.ledger import keys
from discreet.server import again, dataset
from discreet.server.cache import AnswerCache, CacheKey
from discreet.server.models import Ask
from discreet.server.readings import BODY, ReadRequests

COUNT = "SELECT COUNT(*) AS n FROM visits"
OURS = "WHERE remark <> 'again' AND age >"
"""Of no other test's questions, whose answers would tell these at once."""
AGES = itertools.count(1)
TRIES = 4
"""Asked, replayed, remembered as it is read, told without being read."""


@pytest.fixture
def short(monkeypatch):
    """In which way requests were told without being read, one after the other."""
    told = []
    find = again._find

    def counted(dataset, telling, caller, read):
        found = find(dataset, telling, caller, read)
        if not isinstance(found, Refusal) and found[1] is not None:
            told.append(read.way)
        return found

    monkeypatch.setattr(again, "_find", counted)
    return told


def body(**more):
    return {
        "question": f"{COUNT} {OURS} {next(AGES)}",
        "epsilon": "1/50",
        "wait_s": 60,
        **more,
    }


def sent_alone(sent):
    """The same without what is of no use to an explanation."""
    return {name: value for name, value in sent.items() if name != "wait_s"}


def ask(server, sent, key=None, **more):
    return server.call("POST", "ask", sent, key=key, **more)


def test_the_same_bytes_are_told_the_same_without_being_read(server, short):
    sent = body()
    first, *others = [ask(server, sent) for _ in range(TRIES)]
    assert short == ["ask"]
    assert {one.status_code for one in (first, *others)} == {200}
    kept = others[-1]
    assert (kept.content, kept.headers) == (others[0].content, kept.headers)
    assert kept.json()["rows"] == first.json()["rows"]
    assert kept.json()["replayed"]
    names = ("content-type", "cache-control", "content-security-policy", "x-content-type-options")
    assert [kept.headers[n] for n in names] == [first.headers[n] for n in names]


def test_explanations_too(server, short):
    sent = {"question": f"{COUNT} {OURS} {next(AGES)}", "epsilon": "1/50"}
    found = [server.call("POST", "explain", sent).content for _ in range(TRIES)]
    assert short == ["explain"] * (TRIES - 1)
    assert len(set(found)) == 1


def test_it_is_logged_and_counted_as_any_other(server, short):
    sent, key = body(), server.person()
    told = f'"route":"/v1/datasets/{{dataset}}/ask","status":200,"key":"{key.split("_")[1]}"'
    for _ in range(TRIES):
        ask(server, sent, key)
    assert short == ["ask"]
    wait_until(lambda: server.log.getvalue().count(told) == TRIES)  # written after the answer


def test_a_revoked_key_and_one_that_was_never_made_are_told_nothing(server, short):
    sent, key = body(), server.person()
    for _ in range(TRIES):
        assert ask(server, sent, key).status_code == 200
    assert short
    short.clear()
    assert server.call("DELETE", f"keys/{key.split('_')[1]}").status_code == 204
    wrong = key[:-1] + ("0" if key[-1] != "0" else "1")
    for one in (key, wrong, "nonsense"):
        found = ask(server, sent, one)
        assert (found.status_code, found.json()["code"]) == (401, "A10")
    assert not short


def test_who_is_disabled_or_only_audits_is_told_nothing(server, short):
    sent, name = body(), f"leaving{next(AGES)}"
    key, auditor = server.person(name=name), server.person(role="auditor")
    for _ in range(TRIES):
        assert ask(server, sent, key).status_code == 200
    short.clear()
    found = ask(server, sent, auditor)
    assert (found.status_code, found.json()["code"]) == (403, "A12")
    assert server.call("PATCH", f"analysts/{name}", {"disabled": True}).status_code == 200
    assert ask(server, sent, key).status_code == 401
    assert not short


def test_another_analyst_is_not_told_what_was_told_to_the_first(tmp_path, serving):
    """Where answers are not shared, the same bytes are another question of somebody else's."""
    with serving(tmp_path, shared=False) as server:
        sent, ada, bob = body(), server.person(), server.person()
        told = [ask(server, sent, ada).json() for _ in range(TRIES)][-1]
        assert told["replayed"]
        own = ask(server, sent, bob).json()
        assert not own["replayed"]
        assert own["id"] != told["id"]


def test_anything_recorded_since_takes_the_long_way(server, short):
    sent = body()
    for _ in range(TRIES):
        ask(server, sent)
    short.clear()
    server.person()  # a record
    assert ask(server, sent).json()["replayed"]
    assert not short


@pytest.mark.parametrize("change", ["accept", "retry", "query", "form"])
def test_a_request_that_says_more_is_read(server, short, change):
    sent = body()
    for _ in range(TRIES):
        ask(server, sent)
    short.clear()
    headers = {
        "accept": {"Accept": "text/csv"},
        "retry": {"Idempotency-Key": f"again-{next(AGES)}"},
    }.get(change)
    if change == "query":
        found = server.call("POST", "ask?paper=dark", sent)
    elif change == "form":
        found = ask(server, sent, headers={"Content-Type": "text/plain"})
    else:
        found = ask(server, sent, headers=headers)
    assert not short
    assert found.status_code == (422 if change == "form" else 200)
    assert found.headers["content-type"].startswith(
        "text/csv" if change == "accept" else "application/json"
    )


def test_the_rate_holds_for_what_is_not_read(tmp_path, serving):
    slow = "deadline_s = 0.05\nrate_per_minute = 0.01\nburst = 10"
    with serving(tmp_path, slow) as server:
        key, sent = server.person(), body()
        found = [ask(server, sent, key) for _ in range(12)]
        assert [one.status_code for one in found] == [200] * 10 + [429] * 2
        assert found[-1].json()["code"] == "A15"
        assert "retry-after" in found[-1].headers


def test_what_is_refused_for_its_rate_is_no_replay(tmp_path, serving):
    slow = "deadline_s = 0.05\nrate_per_minute = 0.01\nburst = 5"
    with serving(tmp_path, slow) as server:
        key, sent = server.person(), body()
        found = [ask(server, sent, key).status_code for _ in range(9)]
        assert found == [200] * 5 + [429] * 4
        told = server.state.metrics.text(["clinic"])
        assert 'discreet_questions_total{dataset="clinic",outcome="replayed"} 4' in told


# --- what is the same for all --------------------------------------------------------------------


def test_what_everybody_is_told_is_told_to_the_next_who_asks_without_being_read(server, short):
    """And they see it under its number from then on, through their own words."""
    sent, (ada, bob) = body(), (server.person(), server.person())
    told = [ask(server, sent, ada) for _ in range(TRIES)][-1]
    short.clear()
    first = ask(server, sent, bob)
    assert (first.status_code, short) == (200, ["ask"])
    assert first.content == told.content
    shown = server.call("GET", f"answers/{told.json()['id']}", key=bob)
    assert shown.json()["rows"] == told.json()["rows"]
    assert shown.json()["question"] == sent["question"]
    stranger = server.person()
    assert server.call("GET", f"answers/{told.json()['id']}", key=stranger).status_code == 404


def test_whose_words_they_were_is_not_told_to_who_asks_in_others(server, short):
    """The payer calls it otherwise: each is shown it through what they asked themselves."""
    age = next(AGES)
    ada, bob = server.person(), server.person()
    sent, other = (
        {**body(), "question": f"SELECT COUNT(*) AS {name} FROM visits {OURS} {age}"}
        for name in ("hers", "his")
    )
    for _ in range(TRIES):
        ask(server, sent, ada)
        number = ask(server, other, ada).json()["id"]
    short.clear()
    assert ask(server, other, bob).json()["columns"][0]["name"] == "his"
    assert short == ["ask"]
    shown = server.call("GET", f"answers/{number}", key=bob).json()
    assert (shown["columns"][0]["name"], shown["question"]) == ("his", other["question"])


def test_what_a_stored_answer_costs_is_nothing_for_all_whatever_they_may_spend(server, short):
    sent, poor = body(), f"poor{next(AGES)}"
    ask(server, sent)
    alone = sent_alone(sent)
    told = [server.call("POST", "explain", alone).content for _ in range(TRIES)][-1]
    key = server.person(name=poor)
    server.call("PATCH", f"analysts/{poor}", {"limit": {"epsilon": "1/1000"}})
    server.call("POST", "explain", alone)  # after these records, it is remembered anew
    short.clear()
    found = server.call("POST", "explain", alone, key=key)
    assert (found.content, found.json()["outcome"], short) == (told, "stored", ["explain"])
    dearer = {**alone, "question": f"{COUNT} {OURS} {next(AGES)}"}
    assert all(server.call("POST", "explain", dearer).json()["affordable"] for _ in range(TRIES))
    short.clear()
    assert not server.call("POST", "explain", dearer, key=key).json()["affordable"]
    assert not short  # what is not stored depends on who asks


@pytest.mark.parametrize("how", ["of its own", "fresh", "statement"])
def test_what_may_differ_by_who_asks_is_remembered_for_each(tmp_path, serving, short, how):
    with serving(tmp_path, shared=how != "of its own") as server:
        sent, ada, bob = body(), server.person(), server.person()
        if how == "fresh":
            sent["fresh"] = True
        if how == "statement":
            sent["question"] = f"SELECT n / 2 AS half FROM ({COUNT} {OURS} {next(AGES)}) AS c"
        found = [ask(server, sent, ada) for _ in range(TRIES)]
        assert {one.status_code for one in found} == {200}
        short.clear()
        assert ask(server, sent, bob).status_code == 200
        assert not short


def test_many_who_come_together_are_told_by_one_look_at_the_ledger(server, short, monkeypatch):
    sent, people = body(), [server.person() for _ in range(8)]
    for _ in range(TRIES):
        ask(server, sent)
    clinic = server.state.datasets["clinic"]
    caller = server.state.identify(server.datasets["clinic"].key)
    looks, store = [], clinic.account._journal.store
    since = store.since
    monkeypatch.setattr(store, "since", lambda *given: looks.append(given) or since(*given))
    read = next(reversed(server.state.read._read.values()))
    wanted = [again.Wanted(key, read) for key in (*people, "nonsense")]
    found = again.Again(None, server.state)._find_all("clinic", wanted)
    assert [one[1] is not None for one in found[:-1]] == [True] * len(people)
    assert isinstance(found[-1], Refusal)
    assert 0 < len(looks) <= 3
    assert caller.grants["clinic"].role == "curator"


# --- time passes ---------------------------------------------------------------------------------


class Later(datetime):
    """Two hours after what the clock shows."""

    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) + timedelta(hours=2)


SOON = timedelta(hours=1)


def test_a_key_that_has_ended_is_told_nothing(server, short, monkeypatch):
    sent, name = body(), f"brief{next(AGES)}"
    server.person(name=name)
    until = (datetime.now(UTC) + SOON).isoformat()
    key = server.call("POST", f"analysts/{name}/keys", {"expires": until}).json()["key"]
    for _ in range(TRIES):
        assert ask(server, sent, key).status_code == 200
    assert short
    short.clear()
    monkeypatch.setattr(keys, "datetime", Later)
    found = ask(server, sent, key)
    assert (found.status_code, found.json()["code"], short) == (401, "A11", [])


def test_an_analyst_whose_time_is_over_is_told_nothing(server, short, monkeypatch):
    """Neither by the key, which is looked at first, nor by the account behind it."""
    sent = body()
    key = server.person(expires=(datetime.now(UTC) + SOON).isoformat())
    for _ in range(TRIES):
        assert ask(server, sent, key).status_code == 200
    assert short
    short.clear()
    monkeypatch.setattr(dataset, "datetime", Later)
    assert ask(server, sent, key).json()["replayed"]  # by the long way, whose clock is the ledger's
    assert not short
    monkeypatch.setattr(keys, "datetime", Later)
    found = ask(server, sent, key)
    assert (found.status_code, found.json()["code"], short) == (401, "A11", [])


@pytest.mark.parametrize("way", ["ask", "explain"])
@pytest.mark.parametrize("condition", ["day < CURRENT_DATE", "AGE(day) < INTERVAL '9 days'"])
def test_words_that_mean_the_present_are_read_each_time(server, condition, way):
    clinic = server.state.datasets["clinic"]
    asked = Ask(question=f"{COUNT} WHERE {condition}", epsilon="1/50")
    grant = server.state.identify(server.datasets["clinic"].key).grant("clinic")
    assert clinic.find_cache_key(asked, grant, way) is None
    plain = asked.model_copy(update={"question": f"{COUNT} WHERE age < 9"})
    assert clinic.find_cache_key(plain, grant, way) is not None


# --- things change -------------------------------------------------------------------------------


def test_other_data_are_another_question(tmp_path, serving, short):
    with serving(tmp_path) as server:
        sent = body()
        told = [ask(server, sent).json() for _ in range(TRIES)][-1]
        priced = [server.call("POST", "explain", sent_alone(sent)).json() for _ in range(TRIES)][-1]
        assert short.count("ask") == 1
        assert (told["replayed"], priced["outcome"]) == (True, "stored")
        source = tmp_path / "clinic" / "visits.parquet"
        pq.write_table(pq.read_table(source).slice(0, 2000), source)
        short.clear()
        assert server.call("POST", "explain", sent_alone(sent)).json()["outcome"] == "admitted"
        anew = ask(server, sent).json()
        assert (anew["replayed"], anew["id"] != told["id"], short) == (False, True, [])


def test_a_limit_that_was_changed_is_told_at_once(server, short):
    name = f"limited{next(AGES)}"
    key = server.person(name=name)
    sent = sent_alone(body())
    for _ in range(TRIES):
        assert server.call("POST", "explain", sent, key=key).json()["affordable"]
    assert short
    for limit, affordable in (({"epsilon": "1/100"}, False), ({"epsilon": "1"}, True)):
        short.clear()
        server.call("PATCH", f"analysts/{name}", {"limit": limit})
        told = [server.call("POST", "explain", sent, key=key).json() for _ in range(TRIES)]
        assert [one["affordable"] for one in told] == [affordable] * TRIES
        assert len(short) == TRIES - 1


def test_a_group_that_has_spent_its_limit_is_told_at_once(tmp_path, serving, short):
    """What another of the group has paid, and a move to another group, are records too."""
    more = "\n[groups.staff]\nlimit = { epsilon = 0.1 }\n\n[groups.others]\n"
    with serving(tmp_path, more=more) as server:
        ana, ben = (server.person(name=name, group="staff") for name in ("ana", "ben"))
        sent = sent_alone(body())

        def affordable():
            told = [server.call("POST", "explain", sent, key=ana).json() for _ in range(TRIES)]
            return {one["affordable"] for one in told}

        assert affordable() == {True}
        assert server.ask(f"{COUNT} WHERE age > 7", "9/100", key=ben).status_code == 200
        assert affordable() == {False}
        server.call("PATCH", "analysts/ana", {"group": "others"})
        assert affordable() == {True}
        assert len(short) == 3 * (TRIES - 1)


def test_a_group_whose_limit_is_changed_in_the_settings_is_told_at_once(tmp_path, serving, short):
    """The curator writes another limit, and another process opens the session with it."""
    more = "\n[groups.staff]\nlimit = { epsilon = 1 }\n"
    with serving(tmp_path, more=more) as server:
        key, sent = server.person(name="ana", group="staff"), body()
        alone = sent_alone({**sent, "question": f"{COUNT} {OURS} {next(AGES)}"})
        for _ in range(TRIES):
            assert ask(server, sent, key).status_code == 200
            assert server.call("POST", "explain", alone, key=key).json()["affordable"]
        assert {"ask", "explain"} == set(short)
        file = tmp_path / "clinic" / "discreet.toml"
        text = file.read_text()
        for limit, affordable in ((0.03, False), (2, True)):
            short.clear()
            file.write_text(text.replace("{ epsilon = 1 }", f"{{ epsilon = {limit} }}"))
            with session.open(tmp_path / "clinic", opened=False):
                pass  # what is declared is recorded when a session is opened
            told = [server.call("POST", "explain", alone, key=key).json() for _ in range(TRIES)]
            assert [one["affordable"] for one in told] == [affordable] * TRIES
            assert short == ["explain"] * (TRIES - 1)
            assert ask(server, sent, key).json()["replayed"]  # paid for under the other limit
        short.clear()
        file.write_text(text.replace("[groups.staff]", "[groups.others]"))
        with session.open(tmp_path / "clinic", opened=False):
            pass
        told = server.call("POST", "explain", alone, key=key).json()
        found = ask(server, sent, key)
        assert (told["affordable"], told["refusal"]["code"]) == (False, "A2")
        assert (found.status_code, found.json()["code"], short) == (403, "A2", [])


def test_what_changed_while_it_was_told_is_not_kept(server, short, monkeypatch):
    """A record between the request and its answer: what was told is of neither state."""
    sent, clinic = sent_alone(body()), server.state.datasets["clinic"]
    quote = type(clinic).quote

    def quote_and_record(self, asked, grant):
        found = quote(self, asked, grant)
        clinic.account.add_analyst(f"between{next(AGES)}")
        return found

    monkeypatch.setattr(type(clinic), "quote", quote_and_record)
    kept = []
    monkeypatch.setattr(clinic.cache, "keep", lambda *told: kept.append(told))
    for _ in range(TRIES):
        assert server.call("POST", "explain", sent).status_code == 200
    assert (short, kept) == ([], [])


def test_the_same_bytes_for_another_dataset_are_another_request(tmp_path, make_dataset, start):
    datasets = {name: make_dataset(tmp_path / name) for name in ("clinic", "other")}
    with start(datasets) as server:
        sent, key = body(), server.person()
        for _ in range(TRIES):
            assert ask(server, sent, key).status_code == 200
        found = server.call("POST", "ask", sent, key=key, dataset="other")
        assert (found.status_code, found.json()["code"]) == (404, "A13")
        own = server.call("POST", "ask", sent, dataset="other").json()
        assert (own["dataset"], own["replayed"]) == ("other", False)


def test_a_dataset_that_is_slow_keeps_no_other_waiting(server, short, monkeypatch):
    sent = body()
    for _ in range(TRIES):
        ask(server, sent)
        server.call("POST", "explain", sent_alone(sent), dataset="damaged")
    assert sorted(short) == ["ask", *["explain"] * (TRIES - 1)]
    waiting, go_on = threading.Event(), threading.Event()
    engine = server.state.datasets["damaged"].curator.engine
    version = engine.data_version

    def wait():
        waiting.set()
        assert go_on.wait(PATIENCE_S)
        return version()

    monkeypatch.setattr(engine, "data_version", wait)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(server.call, "POST", "explain", sent_alone(sent), dataset="damaged")
        try:
            assert waiting.wait(PATIENCE_S)
            assert ask(server, sent).json()["replayed"]
            assert not slow.done()
        finally:
            go_on.set()
        assert slow.result(PATIENCE_S).status_code == 200


# --- memory --------------------------------------------------------------------------------------


class Sent:
    """As much of a request as names it."""

    def __init__(self, text: bytes) -> None:
        self.headers = {"content-type": "application/json"}
        self.scope = {
            "method": "POST",
            "path": "/v1/datasets/clinic/ask",
            "query_string": b"",
            BODY: text,
        }


def test_what_is_remembered_is_bounded():
    kept = ReadRequests(most_bytes=100_000)
    for number in range(1000):
        kept.keep(Sent(b"%04d" % number * 100), "clinic", Ask(question="?", epsilon="1"))
    assert 30 < len(kept._read) < 50
    assert kept._bytes <= 100_000
    newest = ("/v1/datasets/clinic/ask", "*/*", b"0999" * 100)
    assert kept.find(newest) is not None
    assert kept.find((*newest[:2], b"0000" * 100)) is None


def measure_kept(keep, times):
    """Bytes that are held after so many were kept."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(times):
            keep(number)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


MOST = 2_000_000


@pytest.mark.parametrize("letter", ["x", "\u00e9", "\N{GRINNING FACE}"])
def test_the_bound_is_one_of_memory_whatever_is_asked(letter):
    """Long questions of large letters, whose answers are short: the question counts as well."""
    read, texts = ReadRequests(most_bytes=MOST), AnswerCache(most_bytes=MOST)

    def keep(number):
        question = f"{number} -- {letter * 5000}"
        sent = json.dumps({"question": question, "epsilon": "1"}, ensure_ascii=False).encode()
        read.keep(Sent(sent), "clinic", Ask.model_validate_json(sent))
        texts.keep(CacheKey(-number, json.dumps([question]), "explain", "0.95"), b"free")

    assert measure_kept(keep, 600) < 2 * 1.2 * MOST


def test_numbers_of_answers_count_as_much_as_they_take():
    """Every record makes a new name of a request that is asked again: names are not free."""
    texts = AnswerCache(most_bytes=MOST)

    def keep(number):
        said = json.dumps(["ada", "analyst", f"{COUNT} WHERE age > 3", {"epsilon": "1/50"}])
        texts.keep(CacheKey(-number, said, "ask version", "0.95"), b"[7]")

    assert measure_kept(keep, 20_000) < 1.2 * MOST
