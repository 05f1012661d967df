"""The parts of PostgreSQL's door by themselves: words, types, proofs, routes, settings."""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import adapters
from psycopg.pq import Format
from psycopg.types.numeric import DecimalBinaryDumper, NumericBinaryLoader

from discreet.errors import CODES, InvalidParameter, QuestionRefusal, Refusal
from discreet.ledger.verifiers import Verifier
from discreet.server.postgres import types
from discreet.server.postgres.reports import Said, sqlstate
from discreet.server.postgres.routing import Kind, route
from discreet.server.postgres.scram import PLAIN, PLUS, Exchange
from discreet.server.postgres.tokens import rewrite, split, tokenize
from discreet.server.postgres.variables import Variables, read_assignment, read_options

TABLES = {"visits"}


def test_every_code_has_a_sqlstate_of_its_own():
    states = [sqlstate(code) for code in CODES]
    assert all(len(state) == 5 and state == state.upper() for state in states)
    theirs = [state for state in states if state.startswith("Z")]
    assert len(set(theirs)) == len(theirs)


# --- types --------------------------------------------------------------------------------------


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30))
def test_numbers_are_read_and_written_as_psycopg_does(number):
    """A second implementation of the binary form, both ways."""
    sent = bytes(DecimalBinaryDumper(Decimal).dump(number))
    constant = types.write_constant(sent, types.NUMERIC, True)
    assert Decimal(constant.strip("()")) == number
    written = types.encode(number, types.NUMERIC, True)
    assert NumericBinaryLoader(types.NUMERIC).load(written) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_become_the_same_double(number):
    constant = types.write_constant(struct.pack(">d", number), types.FLOAT8, True)
    assert float(constant.strip("()")) == number


def test_texts_cannot_end_early():
    for text in ("it's", "a\\'b", "' OR 1=1 --", "''", "x\n'y"):
        written = types.write_constant(text.encode(), types.TEXT, False)
        (token,) = tokenize(written)
        assert token.text == written
    with pytest.raises(InvalidParameter):
        types.write_constant(b"a\0b", types.TEXT, False)


@pytest.mark.parametrize(
    ("value", "oid", "text"),
    [
        (True, 16, b"t"),
        (7, types.INT8, b"7"),
        (2**70, types.NUMERIC, b"1180591620717411303424"),
        (1.5, types.FLOAT8, b"1.5"),
        (Fraction(1, 2), types.FLOAT8, b"0.5"),
        (date(2024, 2, 29), 1082, b"2024-02-29"),
        (datetime(2024, 2, 29, 3, 4, 5), 1114, b"2024-02-29 03:04:05"),
        ([1, None, 3], 1016, b'{"1",NULL,"3"}'),
        (['a"b', "c,d"], 1009, b'{"a\\"b","c,d"}'),
        (None, types.TEXT, None),
    ],
)
def test_values_are_sent_as_postgresql_writes_them(value, oid, text):
    assert types.encode(value, oid, False) == text


@pytest.mark.parametrize("value", [True, 12345, 1.25, date(1999, 12, 31), datetime(2030, 1, 2, 3)])
def test_binary_values_are_read_back_by_psycopg(value):
    oid = {bool: 16, int: 20, float: 701, date: 1082, datetime: 1114}[type(value)]
    loader = adapters.get_loader(oid, Format.BINARY)
    assert loader
    assert loader(oid).load(types.encode(value, oid, True) or b"") == value


def test_a_number_too_large_for_its_column_is_not_cut():
    with pytest.raises(InvalidParameter, match="P6"):
        types.encode(2**63, types.INT8, True)


# --- words and routes ---------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["'", '"', "/* /* */", "$a$ b", "U&'x'", 'U&"\\0041"', "E'\\'"])
def test_a_text_that_does_not_end_is_refused(text):
    with pytest.raises(QuestionRefusal, match="Q2"):
        split(f"SELECT {text}")


@given(st.text(max_size=60))
def test_any_text_is_cut_or_refused(text):
    try:
        statements = split(text)
    except Refusal:
        return
    for tokens in statements:
        filled = rewrite(text, tokens, {})
        assert [t.text for t in tokenize(filled.text)] == [t.text for t in tokens]
        assert all(text[t.start : t.stop] == t.text for t in tokens)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT 1", Kind.CATALOGUE),
        ("SELECT COUNT(*) FROM visits", Kind.QUESTION),
        ("select count(*) from VISITS -- pg_class", Kind.QUESTION),
        ("(SELECT COUNT(*) FROM visits)", Kind.QUESTION),
        ("WITH v AS (SELECT 1 FROM visits) SELECT * FROM v, pg_class", Kind.QUESTION),
        ("SELECT 'visits', $$visits$$ FROM pg_class", Kind.CATALOGUE),
        ("SELECT c.visits FROM pg_catalog.pg_class c", Kind.CATALOGUE),
        ("WITH visits AS (SELECT 1) SELECT * FROM visits, pg_class", Kind.CATALOGUE),
        ("SELECT ( FROM visits pg_class", Kind.QUESTION),  # what no parser reads
        ("EXPLAIN SELECT COUNT(*) FROM visits", Kind.EXPLAIN),
        ("BEGIN", Kind.COMMAND),
    ],
)
def test_where_statements_go(text, kind):
    assert route(text, tokenize(text), TABLES) is kind


# --- settings -----------------------------------------------------------------------------------


def test_the_offer_that_was_set_last_is_meant():
    variables = Variables({"epsilon": "0.1"})
    variables.assign("discreet.within", "n = 50")
    assert variables.amounts == {"within": "n = 50"}
    variables.assign("DISCREET.EPSILON", "2/3")
    assert variables.offer.epsilon == Fraction(2, 3)
    variables.assign("discreet.epsilon", None)
    assert variables.amounts == {"epsilon": "0.1"}
    variables.assign("discreet.epsilon", "")
    assert variables.offer.empty


@pytest.mark.parametrize("value", ["0", "-1", "nan", "x", "1e999999"])
def test_what_is_no_offer_is_refused_when_it_is_set(value):
    with pytest.raises(Refusal):
        Variables({}).assign("discreet.epsilon", value)


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        *(("epsilon", "0,25", "0.25"), ("epsilon", "0, 25", "0.25"), ("epsilon", "cheap", "0.1")),
        *(("within", "n = 2,5", "n = 2.5"), ("rho", "-3", "0.01"), ("delta", "2", "1e-9")),
        ("confidence", "95", "0.95"),
    ],
)
def test_what_is_no_amount_is_refused_with_what_to_type(name, value, meant):
    with pytest.raises(Refusal) as refused:
        Variables({}).assign(f"discreet.{name}", value)
    assert refused.value.fix == f"write it as '{meant}': SET discreet.{name} = '{meant}'."
    Variables({}).assign(f"discreet.{name}", meant)


@pytest.mark.parametrize(
    "name",
    ["discreet.balance", "discreet.anew", "row_security", "role", "session_replication_role"],
)
def test_a_setting_that_is_not_understood_is_refused(name):
    with pytest.raises(Refusal, match="Q28"):
        Variables({}).assign(name, "on")


def test_settings_are_read_as_they_are_written():
    assert read_assignment(tokenize("SET TIME ZONE 'UTC'")) == ("timezone", "UTC", False)
    assert read_assignment(tokenize("SET names 'utf8'")) == ("client_encoding", "utf8", False)
    assert read_assignment(tokenize("SET SESSION a.b = 1")) == ("a.b", "1", False)
    assert read_assignment(tokenize("SET x TO DEFAULT")) == ("x", None, False)
    assert read_assignment(tokenize("SET x")) is None
    with pytest.raises(Said):
        read_options("-d discreet.epsilon=1")


# --- proofs -------------------------------------------------------------------------------------


def test_the_example_of_the_rfc():
    """RFC 7677, section 3: the proof that is made there is taken, and answered as there."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", salt, 4096)
    client = hmac.digest(salted, b"Client Key", "sha256")
    server = hmac.digest(salted, b"Server Key", "sha256")
    verifier = Verifier(hashlib.sha256(client).digest(), server)
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    said = ("n=user,r=rOprNGfwEbeRWgbNEkqO", f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    message = ",".join([*said, f"c=biws,r={nonce}"])
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    signature = verifier.check(proof, message.encode())
    assert base64.b64encode(signature or b"") == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert verifier.check(proof, message.encode() + b"x") is None
    assert verifier.check(bytes(32), message.encode()) is None


@pytest.mark.parametrize(
    ("mechanism", "first"),
    [
        (PLUS, b"n,,n=,r=0123456789"),  # another mechanism than its flag
        (PLAIN, b"p=tls-server-end-point,,n=,r=0123456789"),
        (PLAIN, b"y,,n=,r=0123456789"),  # a downgrade
        (PLAIN, b"n,a=other,n=,r=0123456789"),  # in the name of somebody else
        (PLAIN, b"n,,n=,r=short"),
        ("PLAIN", b"n,,n=,r=0123456789"),
        (PLAIN, b"\xff"),
    ],
)
def test_an_exchange_that_is_not_as_it_should_be_is_refused(mechanism, first):
    with pytest.raises(Said, match="A10"):
        Exchange("server", b"hash of the certificate").begin(mechanism, first)


def test_the_channel_is_part_of_the_proof():
    def final(channel: bytes) -> bytes:
        bound = base64.b64encode(b"p=tls-server-end-point,," + channel).decode()
        return f"c={bound},r=0123456789server,p=AAAA".encode()

    for channel, taken in ((b"ours", True), (b"theirs", False)):
        exchange = Exchange("server", b"ours")
        exchange.begin(PLUS, b"p=tls-server-end-point,,n=,r=0123456789")
        if taken:
            assert exchange.finish(final(channel))[0] == bytes(3)
        else:
            with pytest.raises(Said):
                exchange.finish(final(channel))


def test_a_proof_that_was_heard_opens_nothing_later():
    bound = base64.b64encode(b"n,,").decode()
    heard = f"c={bound},r=0123456789first,p=AAAA".encode()
    for nonce, taken in (("first", True), ("second", False)):
        exchange = Exchange(nonce, None)
        exchange.begin(PLAIN, b"n,,n=,r=0123456789")
        if taken:
            assert exchange.finish(heard)[0] == bytes(3)
        else:
            with pytest.raises(Said):
                exchange.finish(heard)
