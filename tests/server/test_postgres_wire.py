"""PostgreSQL's protocol, message by message: what is charged, refused, kept apart, survived."""

from __future__ import annotations

import os
import signal
import struct
import threading
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest
import raw_postgres as raw
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from patience import PATIENCE_S, wait_until
from raw_postgres import (
    DESCRIBE_PORTAL,
    DESCRIBE_STATEMENT,
    SYNC,
    Line,
    bind,
    errors,
    execute,
    parse,
    query,
)

from discreet.ledger import keys as access
from discreet.server.offers import Defaults

CANARY = "Q7ZANARY"
FILTERED = "SELECT COUNT(*) AS n FROM visits WHERE age < $1 AND remark <> '{}'"


@pytest.fixture(scope="module")
def port(doors: Any) -> int:
    return int(doors.port("postgres"))


@pytest.fixture(scope="module")
def key(doors: Any) -> str:
    return str(doors.datasets["clinic"].key)


def spent(doors: Any) -> Any:
    return doors.state.datasets["clinic"].account.balance().spent


def charges(doors: Any) -> int:
    return len(doors.state.datasets["clinic"].curator.transcript())


# --- what is charged ----------------------------------------------------------------------------


def test_describing_never_charges(doors, port, key):
    with raw.connected(port, key, options="-c discreet.epsilon=1") as line:
        before = charges(doors)
        text = FILTERED.format("described")
        found = line.ask(parse(text), DESCRIBE_STATEMENT, bind(b"40"), DESCRIBE_PORTAL, SYNC)
        kinds = b"".join(kind for kind, _ in found)
        assert kinds == b"1tT2TZ"
        assert found[1][1] == struct.pack(">HI", 1, 20)  # as PostgreSQL would take it: bigint
        assert charges(doors) == before
        found = line.ask(parse(text), bind(b"40"), execute(), SYNC)
        assert [kind for kind, _ in found] == [b"1", b"2", b"D", b"N", b"C", b"Z"]
        assert charges(doors) == before + 1


@pytest.mark.parametrize(
    ("oid", "value"),
    [
        (23, struct.pack(">i", 40)),
        (20, struct.pack(">q", 40)),
        (21, struct.pack(">h", 40)),
        (1700, struct.pack(">HhHHH", 1, 0, 0, 0, 40)),
    ],
)
def test_a_binary_parameter_is_the_constant_it_stands_for(doors, port, key, oid, value):
    """Each asks what was asked before: the same stored answer, free."""
    with raw.connected(port, key, options="-c discreet.epsilon=1") as line:
        line.ask(query("SELECT COUNT(*) AS n FROM visits WHERE age < 40"))
        before = charges(doors)
        text = "SELECT COUNT(*) AS n FROM visits WHERE age < $1"
        found = line.ask(parse(text, oids=(oid,)), bind(value, binary=True), execute(), SYNC)
        assert not errors(found)
        assert charges(doors) == before


@pytest.mark.parametrize(
    ("oid", "value"),
    [
        (23, b"\0\0\1"),  # too short
        (23, b"40\0\0\0\0"),
        (1700, b"\0\1\0\0\x40\0\0\0"),
        (701, struct.pack(">d", float("nan"))),
        (2950, bytes(16)),  # a type that is not known here
        (1184, struct.pack(">q", 0)),  # a moment in a zone
        (25, b"\xff\xfe"),
    ],
)
def test_a_binary_parameter_that_is_not_understood_is_refused(doors, port, key, oid, value):
    with raw.connected(port, key, options="-c discreet.epsilon=1") as line:
        before = charges(doors)
        text = FILTERED.format("binary")
        found = line.ask(parse(text, oids=(oid,)), bind(value, binary=True), execute(), SYNC)
        assert errors(found) == ["ZP001"]
        assert charges(doors) == before


def test_a_clause_in_the_question_goes_before_what_was_set(port, key):
    """Whoever set 1 and writes 0.25 pays 0.25."""
    with raw.connected(port, key, options="-c discreet.epsilon=1") as line:
        clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.25) COUNT(*) AS n"
        found = line.ask(query(f"{clause} FROM visits WHERE remark <> 'clause'"))
        (told,) = [raw.fields(body)["M"] for kind, body in found if kind == b"N"]
        assert told.startswith("cost ε = 0.25")


def test_fresh_measures_what_is_known_anew(doors, port, key):
    asked = "SELECT COUNT(*) AS n FROM visits WHERE age < 57 AND remark <> 'fresh'"
    with raw.connected(port, key, options="-c discreet.epsilon=1") as line:
        assert not errors(line.ask(query(asked)))
        assert not errors(line.ask(query("SET discreet.epsilon = '1/2'")))
        once = charges(doors)
        assert not errors(line.ask(query(asked)))
        assert charges(doors) == once  # it is known, and better
        assert not errors(line.ask(query("SET discreet.fresh = on")))
        assert not errors(line.ask(query(asked)))
        assert charges(doors) == once + 1
        assert errors(line.ask(query("SET discreet.fresh = perhaps"))) == ["ZP002"]
        shown = line.ask(query("SHOW discreet.fresh"))
        assert any(kind == b"D" and body.endswith(b"on") for kind, body in shown)


def test_what_takes_a_parser_is_counted_and_waits_in_line(doors, port, key, monkeypatch):
    """Nobody else's session stands still while a statement is read."""
    from discreet.server.postgres import statements

    where, taken = [], []
    real, dataset = statements.route, doors.state.datasets["clinic"]

    def route(*given):
        where.append(threading.current_thread().name)
        return real(*given)

    with raw.connected(port, key) as line:
        monkeypatch.setattr(statements, "route", route)
        monkeypatch.setattr(dataset.rate, "take", taken.append)
        assert not errors(line.ask(parse("SELECT relname AS visits FROM pg_class"), SYNC))
        assert len(taken) == 1
        assert where[0].startswith("AnyIO")
        assert not errors(line.ask(parse("SELECT COUNT(*) AS n FROM visits"), SYNC))
        assert len(taken) == 1
        assert not where[1].startswith("AnyIO")


def test_settings_end_with_a_transaction_that_is_rolled_back(port, key):
    with raw.connected(port, key) as line:
        line.ask(query("BEGIN; SET discreet.epsilon = '1'; ROLLBACK"))
        assert errors(line.ask(query("SELECT COUNT(*) AS n FROM visits WHERE remark <> 'b'")))
        line.ask(query("BEGIN; SET LOCAL discreet.epsilon = '1'; COMMIT"))
        assert errors(line.ask(query("SELECT COUNT(*) AS n FROM visits WHERE remark <> 'b'")))
        line.ask(query("BEGIN; SET discreet.within = 50; COMMIT"))
        shown = line.ask(query("SHOW discreet.within"))
        assert b"50" in dict(shown)[b"D"]


def test_a_portal_gives_as_many_rows_as_are_wanted(port, key):
    with raw.connected(port, key, options="-c discreet.epsilon=1") as line:
        text = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
        found = line.ask(parse(text), bind(), execute(2), execute(2), SYNC)
        kinds = b"".join(kind for kind, _ in found)
        assert kinds == b"12DDNsDCZ"


def test_an_offer_of_the_session_file_is_made_for_who_says_nothing():
    offers = Defaults({"analyst": {"epsilon": "0.1"}, "ana": {"within": "50"}})
    assert offers.of(access.Grant("clinic", "ana", "analyst")) == {"within": "50"}
    assert offers.of(access.Grant("clinic", "ben", "analyst")) == {"epsilon": "0.1"}
    assert offers.of(access.Grant("clinic", "curator", "curator")) == {}


# --- what goes nowhere --------------------------------------------------------------------------

HOSTILE = [
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_sleep(100)",
    "SELECT pg_ls_dir('/')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity",
    "SELECT query FROM pg_stat_activity",
    "SELECT set_config('row_security', 'on', false)",
    "SELECT query_to_xml('SELECT 1', true, true, '')",
    "SELECT dblink('host=/tmp', 'SELECT 1')",
    "SELECT * FROM pg_authid",
    "COPY visits TO STDOUT",
    "COPY (SELECT 1) TO PROGRAM 'id'",
    "COPY visits FROM '/etc/passwd'",
    "DO $$ BEGIN PERFORM 1; END $$",
    "CREATE TEMP TABLE t AS SELECT 1",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "SELECT 1 INTO t",
    "WITH w AS (INSERT INTO pg_class DEFAULT VALUES RETURNING 1) SELECT * FROM w",
    "INSERT INTO visits VALUES (1)",
    "DROP TABLE visits",
    "SET ROLE postgres",
    "SET SESSION AUTHORIZATION postgres",
    "SET row_security = on",
    "ALTER ROLE analyst SUPERUSER",
    "LISTEN x",
    "NOTIFY x",
    "PREPARE p AS SELECT 1",
    "VACUUM",
    "LOAD 'auto_explain'",
    "LOCK TABLE visits",
    "EXPLAIN ANALYZE SELECT COUNT(*) FROM visits",
    "SELECT 1; DROP TABLE visits",
    "SELECT/**/*/**/FROM/*x*/visits",
    "SELECT * FROM public . visits",
    'SELECT * FROM "visits"',
    'SELECT * FROM U&"\\0076isits"',
    "TABLE visits",
    "SELECT * FROM visits, pg_class",
    "SELECT relname, (SELECT income FROM visits LIMIT 1) FROM pg_catalog.pg_class",
    "SELECT (SELECT visits FROM visits LIMIT 1)::text",
    "SELECT table_to_xml('visits', true, true, '')",
    "SELECT repeat('x', 1000000000)",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_statements_go_nowhere(doors, port, key, text):
    with raw.connected(port, key, options="-c discreet.epsilon=1") as line:
        before = spent(doors)
        for found in (line.ask(query(text)), line.ask(parse(text), bind(), execute(), SYNC)):
            assert errors(found), text
            assert not [body for kind, body in found if kind == b"D" and CANARY.encode() in body]
            assert found[-1] == (b"Z", b"I")
        assert spent(doors) == before
        assert not errors(line.ask(query("SELECT 1")))  # and the session goes on


def test_a_stacked_statement_runs_nothing_of_what_stands_before_it(doors, port, key):
    with raw.connected(port, key, options="-c discreet.epsilon=1") as line:
        before = charges(doors)
        text = "SELECT COUNT(*) AS n FROM visits WHERE remark <> 'stacked'; DROP TABLE visits"
        assert errors(line.ask(query(text))) == ["ZQ005"]
        assert charges(doors) == before


def test_the_catalogue_never_answers_for_the_people(port, key):
    """A statement that reached the empty tables would count nobody: it is an error instead."""
    with raw.connected(port, key) as line:
        text = "SELECT COUNT(*) FROM pg_class c, LATERAL (SELECT 1 FROM ONLY public.visits) v"
        found = line.ask(query(text))
        assert errors(found)
        assert not [kind for kind, _ in found if kind == b"D"]


# --- who may come in ----------------------------------------------------------------------------


def refused(port: int, user: str, key: str, database: str = "clinic") -> dict[str, str]:
    line = Line(port)
    try:
        found = line.log_in(user, key, database)
        assert found is not None
        return raw.fields(found)
    finally:
        line.close()


def test_a_wrong_key_name_or_dataset_are_refused_in_the_same_words(doors, port, key):
    wrong = key[:-4] + ("0000" if key[-4:] != "0000" else "1111")
    told = [
        refused(port, "curator", wrong),
        refused(port, "nobody", key),
        refused(port, "curator", key, "nowhere"),
        refused(port, "curator", key, "other"),
        refused(port, "curator", ""),
    ]
    assert told[0]["C"] == "28P01"
    assert all(one == told[0] for one in told)


def test_the_public_part_of_a_key_is_a_name_too(port, key):
    line = Line(port)
    assert line.log_in(access.key_id(key), key) is None
    line.close()


def test_a_key_of_an_earlier_version_opens_when_it_is_renewed(doors, port):
    account = doors.state.datasets["clinic"].account
    old = f"discreet_{'ab' * 8}_{'cd' * 32}"
    account.add_analyst("olga")
    account.add_key("olga", key_id=access.key_id(old), digest=access.digest(old))
    told = refused(port, "olga", old)
    assert "POST /v1/me/key" in told["H"]
    new = doors.call("POST", "/v1/me/key", {}, key=old).json()["key"]
    line = Line(port)
    assert line.log_in("olga", new) is None
    line.close()


def test_a_revoked_key_is_dead_at_once(doors, port):
    key = doors.person(name="rhea")
    line = Line(port)
    assert line.log_in("rhea", key) is None
    assert not errors(line.ask(query("SELECT 1")))
    doors.call("DELETE", f"keys/{access.key_id(key)}")
    assert errors(line.ask(query("SELECT 1"))) == ["28P01"]
    assert errors(line.ask(query("SELECT COUNT(*) AS n FROM visits"))) == ["28P01"]
    line.close()


def test_an_auditor_asks_nothing(doors, port):
    key = doors.person(name="aud", role="auditor")
    line = Line(port)
    assert line.log_in("aud", key, options="-c discreet.epsilon=1") is None
    assert errors(line.ask(query("SELECT COUNT(*) AS n FROM visits"))) == ["ZA012"]
    line.close()


# --- cancelling, and other sessions -------------------------------------------------------------


@contextmanager
def stopped(processes):
    """Engines that do nothing for a while, however fast or slow the machine is."""
    assert processes
    try:
        for number in processes:
            os.kill(number, signal.SIGSTOP)
        yield
    finally:
        for number in processes:
            os.kill(number, signal.SIGCONT)


def test_cancel_stops_the_waiting_and_not_the_charge(serving_doors, tmp_path):
    """The answer of a cancelled question is stored, and free when it is asked again."""
    with serving_doors(tmp_path) as server:
        key, port = server.datasets["clinic"].key, server.port("postgres")
        account = server.state.datasets["clinic"].curator
        asked = "SELECT COUNT(*) AS n FROM visits"
        with raw.connected(port, key, options="-c discreet.epsilon=1") as line:
            with stopped(server.state.datasets["clinic"].pool.pids):  # no answer before the cancel
                line.send(query(asked))
                wait_until(lambda: len(account.transcript()) == 1)
                for number in (bytes(8), line.key_data):  # a wrong number cancels nobody
                    with closing(Line(port)) as other:
                        other.send(struct.pack(">ii", 16, 80877102) + number)
                        assert other.message() is None
                assert errors(list(line.messages())) == ["57014"]
            found = line.ask(query(asked))
            assert not errors(found)
            assert len(account.transcript()) == 1  # paid once


# --- a line that can be read --------------------------------------------------------------------


def test_plaintext_and_downgrades_are_refused(tls_doors):
    server, cert = tls_doors
    key, port = server.datasets["clinic"].key, server.port("postgres")
    where = {"host": "localhost", "hostaddr": "127.0.0.1", "port": port, "user": "curator"}
    where |= {"password": key, "dbname": "clinic"}
    with psycopg.connect(
        **where, sslmode="verify-ca", sslrootcert=str(cert), channel_binding="require"
    ) as line:
        assert line.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(psycopg.OperationalError, match="TLS only"):
        psycopg.connect(**where, sslmode="disable")
    with pytest.raises(psycopg.OperationalError, match="A10"):
        psycopg.connect(**where | {"password": key[:-1] + "x"}, sslmode="require")
    context = raw.ssl.SSLContext(raw.ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, raw.ssl.CERT_NONE
    with closing(Line(port, tls=context)) as told:
        told.start({"user": "curator", "database": "clinic"})
        assert b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0" in (told.message() or (b"", b""))[1]
        lied = b"y,,n=,r=0123456789abcdef"  # "I can bind the channel, and was told that you cannot"
        told.send(raw.frame(b"p", b"SCRAM-SHA-256\0" + struct.pack(">i", len(lied)) + lied))
        found = told.message()
        assert found is not None
        assert raw.fields(found[1])["C"] == "28P01"


def test_what_was_sent_in_the_open_is_not_read_as_encrypted(tls_doors):
    server, _ = tls_doors
    with closing(Line(server.port("postgres"))) as early:
        early.send(struct.pack(">ii", 8, 80877103) + b"\0" * 40)
        assert early.message() is None


# --- bytes that make no sense -------------------------------------------------------------------

_TEXTS = st.sampled_from(
    [
        "",
        "SELECT 1",
        "SELECT COUNT(*) AS n FROM visits",
        "BEGIN",
        "'",
        "/*",
        "$$",
        "SELECT $1",
        ";;",
    ]
) | st.text(max_size=20)
_WHOLE = st.integers(-(2**31), 2**31 - 1).map(lambda n: struct.pack(">i", n)) | st.sampled_from(
    [b"\0\0", b"\0\1", b"\xff\xff", b"\0\0\0\0", b"\xff\xff\xff\xff"]
)
_BODIES = st.lists(
    _TEXTS.map(lambda t: t.encode(errors="replace") + b"\0") | _WHOLE | st.binary(max_size=12),
    max_size=5,
).map(b"".join)
_KINDS = st.sampled_from([bytes([n]) for n in b"QPBDECHSFXdcfp"]) | st.binary(
    min_size=1, max_size=1
)
_WELL_FORMED = st.sampled_from(
    [
        parse("SELECT 1"),
        parse("SELECT COUNT(*) AS n FROM visits WHERE age < $1"),
        bind(),
        bind(b"7"),
        bind(b"\1", binary=True, results=True),
        execute(),
        execute(1),
        DESCRIBE_PORTAL,
        DESCRIBE_STATEMENT,
        SYNC,
        query("BEGIN"),
        query("SELECT 'x' || ';' ; ROLLBACK"),
        query("DECLARE c CURSOR WITH HOLD FOR SELECT 1"),
        query("FETCH ALL FROM c"),
    ]
)
_MESSAGES = st.lists(
    _WELL_FORMED | st.builds(raw.frame, _KINDS, _BODIES) | st.binary(min_size=1, max_size=30),
    min_size=1,
    max_size=8,
)
SECRET = "SELECT 'zxcvbsecret' AS mine"


@pytest.fixture(scope="module")
def neighbour(port: int, key: str) -> Any:
    """A session whose words must not be heard elsewhere."""
    with raw.connected(port, key) as line:
        line.ask(parse(SECRET, name=b"secret"), SYNC)
        yield line


@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(messages=_MESSAGES, logged_in=st.booleans())
def test_no_message_crashes_hangs_or_tells_of_others(
    doors, port, key, neighbour, messages, logged_in
):
    line = Line(port)
    heard = b""
    try:
        if logged_in:
            assert line.log_in("curator", key) is None
        line.send(*messages)
        line.send(raw.QUIT)
        line._socket.shutdown(raw.socket.SHUT_WR)
        while (found := line.message()) is not None:
            heard += found[0] + found[1]
    except OSError:  # it hung up before all was sent
        pass
    finally:
        line.close()
    assert b"zxcvbsecret" not in heard
    assert CANARY.encode() not in heard
    assert '"mistake"' not in doors.log.getvalue()
    assert not errors(neighbour.ask(query("SELECT 1")))


def test_one_key_does_not_take_every_session(doors, port):
    key = doors.person(name="many")
    lines = [Line(port) for _ in range(21)]
    told = [line.log_in("many", key) for line in lines]
    other = doors.person(name="few")
    with closing(Line(port)) as line:
        assert line.log_in("few", other) is None
    for line in lines:
        line.close()
    assert told[:20] == [None] * 20
    assert raw.fields(told[20] or b"")["C"] == "53300"


def test_cursors_hold_only_so_much(port, key):
    with raw.connected(port, key) as line:
        wide = "SELECT repeat('x', 1000) FROM generate_series(1, 7000)"
        for number in range(6):
            line.ask(query(f"DECLARE c{number} CURSOR WITH HOLD FOR {wide}"))
        states = [errors(line.ask(query(f"FETCH 1 FROM c{number}"))) for number in range(6)]
        assert states[0] == []
        assert states[-1] == ["54000"]


def test_many_sessions_at_once_get_their_own_answers(port, key):
    wrong: list[Any] = []

    def ask(number: int) -> None:
        with raw.connected(port, key) as line:
            for turn in range(5):
                found = line.ask(query(f"SELECT '{number}-{turn}' AS mine"))
                if f"{number}-{turn}".encode() not in dict(found).get(b"D", b""):
                    wrong.append(found)

    threads = [threading.Thread(target=ask, args=(number,), daemon=True) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert not wrong
