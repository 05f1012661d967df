"""Small parts by themselves: settings, buckets, the log, counters, idempotency keys, keys."""

from __future__ import annotations

import io
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from patience import PATIENCE_S

from discreet.accounting.budget import Budget
from discreet.errors import CODES, AccessRefusal, Refusal, SchemaRefusal
from discreet.ledger import Ledger
from discreet.ledger import keys as access
from discreet.question.schema import Schema
from discreet.server import idempotency, limits, refusals
from discreet.server.cache import AnswerCache, CacheKey
from discreet.server.log import Log
from discreet.server.routes.public import STATIC
from discreet.server.sending import encode_json, negotiate
from discreet.server.settings import Settings
from discreet.server.state import name_sessions

SCHEMA = Schema.from_text('[tables.t]\nunit = "p"\ncolumns.p = "integer"')


# --- keys ----------------------------------------------------------------------------------------


@pytest.fixture
def account():
    with Ledger.open("sqlite://") as ledger:
        yield ledger.account("clinic", schema=SCHEMA, budget=Budget(epsilon=3))


class Later(datetime):
    """A clock that is three hours ahead."""

    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) + timedelta(hours=3)


def test_a_key_ends_with_its_holders_time(account, monkeypatch):
    account.add_analyst("ana", expires=datetime.now(UTC) + timedelta(hours=2))
    key = access.new_key(account, "ana")
    assert access.identify({"clinic": account}, key).grants
    monkeypatch.setattr(access, "datetime", Later)
    with pytest.raises(AccessRefusal, match="A11"):
        access.identify({"clinic": account}, key)


def test_a_key_opens_what_it_was_put_into(account):
    account.add_analyst("ana")
    key = access.new_key(account, "ana")
    caller = access.identify({"clinic": account}, key)
    assert caller.grant("clinic") == access.Grant("clinic", "ana", "analyst")
    with pytest.raises(AccessRefusal, match="A13"):
        caller.grant("other")
    assert len({access.new_key(account, "ana") for _ in range(20)}) == 20
    with pytest.raises(AccessRefusal, match="A13"):
        access.new_key(account, "nobody")


def test_a_key_opens_nothing_when_another_ledger_knows_it(account):
    key = access.new_key(account, "curator")
    with Ledger.open("sqlite://") as ledger:
        other = ledger.account("clinic", schema=SCHEMA, budget=Budget(epsilon=3))
        with pytest.raises(AccessRefusal, match="A10"):
            access.identify({"clinic": other}, key)
        access.grant_key(other, "curator", key)
        both = access.identify({"a": account, "b": other}, key)
        assert list(both.grants) == ["a", "b"]
        new = access.rotate({"a": account, "b": other}, key)
        assert list(access.identify({"a": account, "b": other}, new).grants) == ["a", "b"]
        for one in (account, other):
            with pytest.raises(AccessRefusal, match="A10"):
                access.identify({"a": one}, key)


def test_expiry(account, monkeypatch):
    soon = datetime.now(UTC) + timedelta(hours=2)
    key = access.new_key(account, "curator", expires=soon)
    assert access.identify({"clinic": account}, key).expires == soon
    monkeypatch.setattr(access, "datetime", Later)
    with pytest.raises(AccessRefusal, match="A11"):
        access.identify({"clinic": account}, key)
    # Who has the public part only is not told that there was such a key.
    with pytest.raises(AccessRefusal, match="A10"):
        access.identify({"clinic": account}, key[:26] + "0" * 64)


def test_a_rotated_key_lasts_no_longer_than_the_old_one(account):
    """Otherwise whoever was let in for a day could stay for ever."""
    accounts = {"clinic": account}
    day, year = (datetime.now(UTC) + timedelta(days=days) for days in (1, 365))
    key = access.new_key(account, "curator", expires=day)
    for later in (None, year):
        key = access.rotate(accounts, key, expires=later)
        assert access.identify(accounts, key).expires == day
    hour = datetime.now(UTC) + timedelta(hours=1)
    key = access.rotate(accounts, key, expires=hour)
    assert access.identify(accounts, key).expires == hour
    free = access.rotate(accounts, access.new_key(account, "curator"))
    assert access.identify(accounts, free).expires is None


def test_one_key_that_is_renewed_twice_at_once_becomes_one(account, monkeypatch):
    """Both have been let in with it before either puts another in its place."""
    with Ledger.open("sqlite://") as ledger:
        other = ledger.account("clinic", schema=SCHEMA, budget=Budget(epsilon=3))
        accounts = {"a": account, "b": other}
        key = access.new_key(account, "curator")
        access.grant_key(other, "curator", key)
        both, draw = threading.Barrier(2, timeout=PATIENCE_S), access.draw_key
        monkeypatch.setattr(access, "draw_key", lambda: (both.wait(), draw())[1])

        def renew(_):
            try:
                return access.rotate(accounts, key)
            except AccessRefusal as refusal:
                return refusal.code

        with ThreadPoolExecutor(2) as pool:
            found = sorted(pool.map(renew, range(2)))
        assert found[0] == "A10"
        assert list(access.identify(accounts, found[1]).grants) == ["a", "b"]
        for one in accounts.values():
            assert sum(not kept.revoked for kept in one.keys()) == 1  # noqa: SIM118


def test_a_renewed_key_has_the_limits_of_the_first():
    lineage, rate = limits.Lineage(), limits.Rate(per_minute=1, burst=2)
    for old, new in (("a", "b"), ("b", "c"), ("c", "d")):
        lineage.renew(old, new)
    rate.take(lineage.first("a"))
    rate.take(lineage.first("d"))
    with pytest.raises(limits.Busy):
        rate.take(lineage.first("d"))
    assert lineage.first("e") == "e"


# --- settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "section",
    [
        {"deadline": 1},
        {"deadline_s": -1},
        {"deadline_s": "1"},
        {"workers": 0},
        {"workers": Decimal("1.5")},
        {"burst": True},
        {"rate_per_minute": 0},
        {"time_limit_s": Decimal("1e9")},
    ],
)
def test_settings_that_are_refused(section):
    with pytest.raises(SchemaRefusal, match="S2"):
        Settings.of(section)


def test_settings_that_are_taken():
    found = Settings.of({"deadline_s": Decimal("0.5"), "workers": 3})
    assert (found.deadline_s, found.workers, found.queue) == (0.5, 3, Settings().queue)


def test_two_sessions_of_one_name_are_refused(tmp_path, make_dataset):
    from discreet.curate import session

    for name in ("a", "b"):
        make_dataset(tmp_path / name / "clinic")
    sessions = [session.read(tmp_path / name / "clinic") for name in ("a", "b")]
    assert list(name_sessions(sessions[:1])) == ["clinic"]
    with pytest.raises(SchemaRefusal, match="S2"):
        name_sessions(sessions)


# --- limits --------------------------------------------------------------------------------------


def test_a_bucket_fills_again(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(limits.time, "monotonic", lambda: now[0])
    rate = limits.Rate(per_minute=120, burst=3)
    for _ in range(3):
        rate.take("a")
    with pytest.raises(limits.Busy) as busy:
        rate.take("a")
    assert busy.value.retry_after_s == 1
    rate.take("b")  # another key has its own
    now[0] += 0.5
    rate.take("a")
    with pytest.raises(limits.Busy):
        rate.take("a")
    now[0] += 1e6
    for _ in range(3):
        rate.take("a")
    with pytest.raises(limits.Busy):
        rate.take("a")


def test_what_is_remembered_of_keys_is_bounded(monkeypatch):
    monkeypatch.setattr(limits, "_MOST_KEYS", 10)
    rate = limits.Rate(per_minute=60, burst=3)
    for n in range(100):
        rate.take(str(n))
    assert len(rate._buckets) == 10


def test_strangers_are_refused_and_those_let_in_before_are_not(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(limits.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(limits, "_MOST_KEYS", 5)
    strangers = limits.Strangers(per_minute=60, burst=3)
    strangers.came_in("ana")
    for _ in range(3):
        strangers.look("here", None)
        strangers.count_failure("here")
    for key_id in (None, "eve"):
        with pytest.raises(limits.Busy, match="without a key"):
            strangers.look("here", key_id)
    strangers.look("here", "ana")
    strangers.look("there", "eve")
    now[0] += 1.0
    strangers.look("here", "eve")  # looking costs nothing
    strangers.look("here", "eve")
    for n in range(5):
        strangers.came_in(str(n))
    assert "ana" not in strangers._let_in  # what is remembered is bounded


def test_concurrency_counts_down():
    most = limits.Concurrency(2)
    most.enter("a")
    most.enter("a")
    with pytest.raises(limits.Busy):
        most.enter("a")
    most.leave("a")
    most.enter("a")
    most.leave("a")
    most.leave("a")
    assert most._under_way == {}


# --- idempotency keys ----------------------------------------------------------------------------


def test_a_key_is_remembered_by_another_process(tmp_path):
    file = tmp_path / "requests.sqlite"
    first = idempotency.IdempotencyKeys(file)
    assert first.remember("ana", "k", "q", "v1") == idempotency.Use("q", "v1", None)
    first.link_charge("ana", "k", 57)
    first.close()
    assert file.stat().st_mode & 0o077 == 0
    second = idempotency.IdempotencyKeys(file)
    assert second.remember("ana", "k", "q", "v2") == idempotency.Use("q", "v1", 57)
    assert second.remember("bob", "k", "q", "v2") == idempotency.Use("q", "v2", None)
    second.mark_shown("ana", 57)
    assert second.was_shown("ana", 57)
    assert not second.was_shown("bob", 57)
    second.close()


def test_what_a_key_may_stand_for():
    idempotency.check(idempotency.Use("q", "v1", None), "q", "v1")
    idempotency.check(idempotency.Use("q", "v1", 57), "q", "v2")
    for use, request in (
        (idempotency.Use("q", "v1", 57), "r"),
        (idempotency.Use("q", "v1", None), "q"),
    ):
        with pytest.raises(AccessRefusal, match="A16"):
            idempotency.check(use, request, "v2")


def test_keys_that_are_remembered_are_bounded(monkeypatch):
    monkeypatch.setattr(idempotency, "KEPT", 5)
    book = idempotency.IdempotencyKeys(None)
    book.remember("bob", "mine", "q", "v")
    book.link_charge("bob", "mine", 7)
    for n in range(20):
        book.remember("ana", str(n), "q", "v")
    counted = "SELECT COUNT(*) FROM used WHERE analyst = 'ana'"
    assert book._connection.execute(counted).fetchone() == (5,)
    assert book.remember("bob", "mine", "q", "v").answer == 7  # whatever others send


# --- errors, log, forms --------------------------------------------------------------------------


def test_every_code_has_a_status():
    for code in CODES:
        kinds = {kind.family: kind for kind in Refusal.__subclasses__() if kind.family == code[0]}
        refusal = kinds[code[0]](code, "what.", why="why.", fix="fix.")
        assert 400 <= refusals.http_status(refusal) < 600
        assert (refusals.http_status(refusal) >= 500) == (code in ("A17", "A18") or code[0] == "L")


def test_the_log_tells_where_and_not_what():
    stream = io.StringIO()
    try:
        raise ValueError("the secret")
    except ValueError as error:
        Log(stream).mistake(error)
    line = json.loads(stream.getvalue())
    assert line["kind"] == "ValueError"
    assert line["where"].startswith("server/test_parts.py:")
    assert "secret" not in stream.getvalue()


def test_the_page_parses_no_text_and_keeps_its_key_in_the_tab():
    """Whatever an answer holds is put into the page as text."""
    text = "".join(file.read_text(encoding="utf-8") for file in sorted(STATIC.glob("*.js")))
    assert "sessionStorage" in text
    # The name of a type in a comment, which no browser reads.
    text = re.sub(r'@(?:param|type|typedef) \{import\("\./\w+\.js"\)\.\w+(?:\[\])?\}', "", text)
    for way in (
        *("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "srcdoc"),
        *("createContextualFragment", "eval(", "Function(", "localStorage", "cookie", "import("),
    ):
        assert way not in text, way
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<script(?! type=\"module\" src=\"/static/)|\son\w+=|style=", page)


def test_texts_that_are_kept_are_bounded():
    written = AnswerCache(most_bytes=10_000)
    one, two, three, large = (CacheKey(n, "q", "text/csv", "0.9") for n in range(4))
    for wanted_one, size in ((one, 4000), (two, 4000), (one, 3000)):
        written.keep(wanted_one, b"x" * size)
    assert written.find(one) == b"x" * 3000
    assert written.find(two) == b"x" * 4000
    written.find(one)
    written.keep(three, b"x" * 5000)  # 12,000 bytes: what was not looked at longest goes
    assert (written.find(two), len(written.find(one)), len(written.find(three))) == (
        None,
        3000,
        5000,
    )
    written.keep(large, b"x" * 10_001)
    assert [written.find(each) for each in (one, two, three, large)] == [None] * 4
    assert written._bytes == 0


def test_json_everywhere():
    odd = {"a": [float("nan"), float("inf"), 1.5], "b": "\ud800ü"}
    assert json.loads(encode_json({"a": odd["a"]})) == {"a": [None, None, 1.5]}
    assert b"\\ud800" in encode_json(odd) or encode_json(odd)


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("*/*", "application/json"),
        ("text/csv", "text/csv"),
        ("text/html, text/csv;q=0.5, application/json;q=0.4", "text/csv"),
        ("application/json;q=0, text/*", "text/csv"),
        ("text/csv;q=x, application/*", "application/json"),
    ],
)
def test_the_form_that_is_wanted(accept, form):
    from types import SimpleNamespace

    request = SimpleNamespace(headers={"accept": accept})
    assert negotiate(request, "application/json", "text/csv") == form


def test_records_of_another_dataset_in_the_same_ledger_are_left_out():
    from types import SimpleNamespace

    from discreet.server.routes.evidence import _list_records
    from discreet.server.spending import spending

    with Ledger.open("sqlite://") as ledger:
        own, other = (
            ledger.account(name, schema=SCHEMA, budget=Budget(epsilon=3)) for name in ("a", "b")
        )
        own.add_analyst("ana")
        other.add_analyst("eve")
        served = SimpleNamespace(account=own, curator=SimpleNamespace(ledger=ledger))
        found = _list_records(SimpleNamespace(dataset=served), after=0, limit=100)
        assert "ana" in str(found)
        assert "eve" not in str(found)
        assert found["last"] == max(record.sequence for record in ledger.records())
        assert spending(ledger, "a", "day")["points"] == []
