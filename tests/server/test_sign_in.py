"""Signing in with a real provider beside keys; each refusal is named for its attack."""

from __future__ import annotations

import json
import socket
import time
from contextlib import contextmanager

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from local_provider import run_provider
from patience import PATIENCE_S

from discreet.curate import session
from discreet.errors import AccessRefusal, SchemaRefusal
from discreet.server.sign_in.provider import Attempt, Provider
from discreet.server.sign_in.settings import SignInSettings, read_claims, read_settings

SECTION = """
[sign_in]
issuer = "{issuer}"
client_id = "discreet"
client_secret_file = "../secret"
address = "{address}"

[groups.staff]
limit = {{ epsilon = 5 }}
each = {{ epsilon = 2 }}
claims = ["researchers", "teachers"]

[groups.students]
limit = {{ epsilon = 1 }}
claims = ["students"]
"""
PAGE = {"Discreet-Page": "1"}
BROWSER = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def provider():
    with run_provider() as found:
        yield found


@pytest.fixture(scope="module")
def signing(tmp_path_factory, provider, serve_at):
    home = tmp_path_factory.mktemp("signing")
    (home / "secret").write_text("a secret of the provider's\n")
    with serve_at(
        home,
        lambda address: SECTION.format(issuer=provider.issuer, address=address),
    ) as found:
        yield found


@contextmanager
def browser(served):
    """A browser without cookies, that shows where it is sent to."""
    with httpx.Client(base_url=served.url, timeout=PATIENCE_S, verify=False) as client:
        yield client


def sign_in(client, provider, subject):
    """Go to the provider, say who one is, come back; what the server says then."""
    begun = client.get("/v1/sign-in/begin")
    assert begun.status_code == 303, begun.text
    return client.get(provider.authorize(begun.headers["location"], subject))


def refused(response, code):
    assert response.status_code in (401, 403, 404, 422), response.text
    assert response.json()["code"] == code, response.text
    return True


def test_signing_in_makes_an_analyst_of_the_group_who_asks_and_signs_out(signing, provider):
    provider.add_user("u1", preferred_username="vera", groups=["teachers", "chess"])
    with browser(signing) as client:
        assert client.get("/v1/sign-in").json() == {"available": True, "provider": "localhost"}
        back = sign_in(client, provider, "u1")
        assert (back.status_code, back.headers["location"]) == (303, "/")
        cookies = back.headers.get_list("set-cookie")
        assert any(c.startswith("discreet=discreet_") for c in cookies)
        assert all("HttpOnly" in c for c in cookies)
        assert ["samesite=strict" in c.lower() for c in cookies] == [True, False]
        me = client.get("/v1/me", headers=PAGE).json()
        assert [(d["analyst"], d["role"]) for d in me["datasets"]] == [("vera", "analyst")]
        assert me["expires"] is not None
        asked = client.post(
            "/v1/datasets/clinic/ask",
            headers=PAGE,
            json={"question": "SELECT COUNT(*) FROM visits WHERE age < 41", "epsilon": "1/50"},
        )
        assert asked.status_code in (200, 202), asked.text
        balance = client.get("/v1/datasets/clinic/balance", headers=PAGE).json()
        assert (balance["group"]["name"], balance["analyst"]["budget"]["epsilon"]) == ("staff", "2")
        key = client.cookies["discreet"]
        assert client.post("/v1/sign-out", headers=PAGE).status_code == 204
        assert refused(client.get("/v1/me", headers=PAGE), "A10")
        assert refused(signing.call("GET", "/v1/me", key=key), "A10")  # the key is dead, too


def test_the_same_person_is_the_same_analyst_and_follows_their_group(signing, provider):
    provider.add_user("u2", preferred_username="otto", groups=["students"])
    with browser(signing) as client:
        sign_in(client, provider, "u2")
    provider.add_user("u2", preferred_username="otto.renamed", groups=["researchers"])
    with browser(signing) as client:
        sign_in(client, provider, "u2")
        (grant,) = client.get("/v1/me", headers=PAGE).json()["datasets"]
        assert grant["analyst"] == "otto"
    listed = {one["name"]: one for one in signing.call("GET", "analysts").json()["analysts"]}
    assert (listed["otto"]["group"], listed["otto"]["signs_in"]) == ("staff", True)
    assert "otto.renamed" not in listed


def test_whose_groups_may_not_ask_is_refused_and_never_becomes_an_analyst(signing, provider):
    for subject, groups in (("u3", ["cooks"]), ("u4", []), ("u5", "stud"), ("u6", [["students"]])):
        provider.add_user(subject, preferred_username=f"name{subject}", groups=groups)
        with browser(signing) as client:
            assert refused(sign_in(client, provider, subject), "A21")
            assert "discreet" not in client.cookies
    names = {one["name"] for one in signing.call("GET", "analysts").json()["analysts"]}
    assert not any(name.startswith("nameu") for name in names)


def test_a_name_that_somebody_has_is_not_taken_over(signing, provider):
    signing.person(name="zoe")
    for subject, name in (("u7", "zoe"), ("u8", "curator"), ("u9", "no such; name")):
        provider.add_user(subject, preferred_username=name, groups=["students"])
        with browser(signing) as client:
            assert refused(sign_in(client, provider, subject), "A21")


def test_whoever_was_disabled_stays_out(signing, provider):
    provider.add_user("u10", preferred_username="dora", groups=["students"])
    with browser(signing) as client:
        sign_in(client, provider, "u10")
        signing.call("PATCH", "analysts/dora", {"disabled": True})
        assert refused(client.get("/v1/me", headers=PAGE), "A10")
        assert refused(sign_in(client, provider, "u10"), "A21")


def test_a_cookie_counts_only_beside_what_another_sites_page_cannot_send(signing, provider):
    """Cross-site request forgery: the browser sends the cookie by itself."""
    provider.add_user("u11", preferred_username="fred", groups=["students"])
    with browser(signing) as client:
        sign_in(client, provider, "u11")
        assert client.get("/v1/me", headers=PAGE).status_code == 200
        assert client.get("/v1/me", headers={**PAGE, "Origin": signing.url}).status_code == 200
        for forged in (
            {},
            {**PAGE, "Origin": "https://evil.example"},
            {**PAGE, "Sec-Fetch-Site": "cross-site"},
        ):
            assert refused(client.get("/v1/me", headers=forged), "A10")
            asked = client.post("/v1/datasets/clinic/ask", headers=forged, json={})
            assert refused(asked, "A10")
        # What is kept from scripts is not given to them in another way.
        assert refused(client.post("/v1/me/key", headers=PAGE, json={}), "A10")


def test_an_answer_that_another_browser_began_is_refused(signing, provider):
    """Login forgery: the attacker's code in the victim's browser."""
    provider.add_user("u12", preferred_username="gus", groups=["students"])
    with browser(signing) as attacker, browser(signing) as victim:
        begun = attacker.get("/v1/sign-in/begin")
        back = provider.authorize(begun.headers["location"], "u12")
        assert refused(victim.get(back), "A20")  # never began
        victim.get("/v1/sign-in/begin")
        assert refused(victim.get(back), "A20")  # began another
        assert "discreet" not in victim.cookies
        assert attacker.get(back).status_code == 303
        assert refused(attacker.get(back), "A20")  # a code is used once


def test_a_stolen_code_is_of_no_use_without_the_verifier(signing, provider):
    """PKCE: what the browser announced is proved where the code is redeemed."""
    provider.add_user("u13", preferred_username="hanna", groups=["students"])
    with browser(signing) as client:
        assert sign_in(client, provider, "u13").status_code == 303
    form = provider.redeemed[-1]
    assert len(form["code_verifier"]) >= 43
    with browser(signing) as one, browser(signing) as other:
        stolen = provider.authorize(one.get("/v1/sign-in/begin").headers["location"], "u13")
        own = provider.authorize(other.get("/v1/sign-in/begin").headers["location"], "u13")
        state = httpx.URL(own).params["state"]
        forged = httpx.URL(own).copy_merge_params(
            {"code": httpx.URL(stolen).params["code"], "state": state}
        )
        assert refused(other.get(forged), "A20")


def test_there_is_nowhere_else_to_be_sent_to(signing, provider):
    """Open redirects: whatever the address says, one comes to the page."""
    provider.add_user("u14", preferred_username="ines", groups=["students"])
    for more in ("next=https://evil.example", "redirect_uri=//evil.example", "return_to=/x"):
        with browser(signing) as client:
            begun = client.get(f"/v1/sign-in/begin?{more}", headers={"Host": "evil.example"})
            sent = httpx.URL(begun.headers["location"])
            assert str(sent).startswith(provider.issuer)
            assert sent.params["redirect_uri"] == f"{signing.url}/v1/sign-in/callback"
            back = provider.authorize(str(sent), "u14")
            assert client.get(f"{back}&{more}").headers["location"] == "/"


def test_a_browser_is_sent_to_the_page_with_the_code_of_a_refusal(signing):
    with browser(signing) as client:
        back = client.get("/v1/sign-in/callback?code=1&state=2", headers=BROWSER)
        assert (back.status_code, back.headers["location"]) == (303, "/#refused/A20")
        client.get("/v1/sign-in/begin")
        denied = client.get("/v1/sign-in/callback?error=access_denied", headers=BROWSER)
        assert denied.headers["location"] == "/#refused/A20"


# --- tokens that are not what they should be ------------------------------------------------------


def forge(provider, *, key=None, algorithm="RS256", headers=None, **changes):
    """Put a token in place of the provider's: with other claims, or signed otherwise."""

    def change(answer):
        claims = jwt.decode(answer["id_token"], options={"verify_signature": False})
        header = jwt.get_unverified_header(answer["id_token"])
        claims |= changes
        kept = {name: value for name, value in claims.items() if value is not None}
        sent = {"kid": header.get("kid"), **(headers or {})}
        sent = {name: value for name, value in sent.items() if value is not None}
        return {**answer, "id_token": jwt.encode(kept, key, algorithm=algorithm, headers=sent)}

    return change


@pytest.fixture(scope="module")
def provider_key():
    """A key of ours, for tokens that the provider did not make."""
    return rsa.generate_private_key(65537, 2048)


ATTACKS = {
    "another's signature": {},
    "no signature": {"key": None, "algorithm": "none"},
    "the public key as a secret": {"key": "x" * 64, "algorithm": "HS256"},
    "an unknown key": {"headers": {"kid": "other"}},
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_token_that_the_provider_did_not_sign_is_refused(signing, provider, attack, provider_key):
    provider.add_user("u15", preferred_username="jan", groups=["students"])
    provider.change = forge(provider, **{"key": provider_key, **ATTACKS[attack]})
    try:
        with browser(signing) as client:
            assert refused(sign_in(client, provider, "u15"), "A20")
            assert "discreet" not in client.cookies
    finally:
        provider.change = None


CLAIMS = {
    "another issuer": {"iss": "https://evil.example"},
    "another audience": {"aud": "somebody"},
    "one of several audiences, for another party": {"aud": ["discreet", "b"], "azp": "b"},
    "several audiences and nobody named": {"aud": ["discreet", "b"]},
    "expired": {"exp": -3600},  # from when it is signed on
    "of the future": {"iat": +3600},
    "without an end": {"exp": None},
    "without a subject": {"sub": None},
    "without a nonce": {"nonce": None},
    "of another sign-in": {"nonce": "0" * 64},
    "without a name": {"preferred_username": None},
}


@pytest.mark.parametrize("attack", [None, *CLAIMS])
def test_a_token_that_the_provider_signed_for_another_purpose_is_refused(
    signing, provider, attack, provider_key
):
    """The server is given our key as the provider's; without an attack it lets us in."""
    provider.add_user("u16", preferred_username="kim", groups=["students"])
    way = signing.state.signing_in.provider
    public = jwt.algorithms.RSAAlgorithm.to_jwk(provider_key.public_key(), as_dict=True)
    known = jwt.PyJWK({**public, "alg": "RS256", "kid": "ours"})
    claims = {
        name: int(time.time()) + said if isinstance(said, int) else said
        for name, said in CLAIMS.get(attack, {}).items()
    }
    provider.change = forge(provider, key=provider_key, headers={"kid": "ours"}, **claims)
    before, way._keys = way._keys, (time.monotonic(), {"ours": known})
    signing.state.signing_in._entries._buckets.clear()
    try:
        with browser(signing) as client:
            back = sign_in(client, provider, "u16")
            assert back.status_code == 303 if attack is None else refused(back, "A20")
    finally:
        provider.change, way._keys = None, before


WELL_KNOWN, KEYS = "/.well-known/openid-configuration", "/jwks"
ODD = {
    "not JSON": (WELL_KNOWN, b"<html>"),
    "a list": (WELL_KNOWN, b"[]"),
    "too deep": (WELL_KNOWN, b"[" * 200_000),
    "too long": (WELL_KNOWN, b" " * 600_000),
    "half a character": (WELL_KNOWN, b'{"issuer": "\\ud800"}'),
    "no addresses": (WELL_KNOWN, {"token_endpoint": None}),
    "an open bracket": (WELL_KNOWN, {"token_endpoint": "https://[::1"}),
    "a number": (WELL_KNOWN, {"jwks_uri": 7}),
    "another machine in the clear": (WELL_KNOWN, {"token_endpoint": "http://example.org/t"}),
    "a name and a password": (WELL_KNOWN, {"token_endpoint": "https://a:b@example.org/t"}),
    "a script": (WELL_KNOWN, {"authorization_endpoint": "javascript:alert(1)"}),
    "a fragment": (WELL_KNOWN, {"authorization_endpoint": "https://a.example/?x#y"}),
    "a line end": (WELL_KNOWN, {"authorization_endpoint": "https://a.example/?\r\nSet-Cookie: a"}),
    "another issuer": (WELL_KNOWN, {"issuer": "https://other.example"}),
    "no list of keys": (KEYS, b'{"keys": 7}'),
    "keys that are none": (
        KEYS,
        b'{"keys": [7, {}, {"kty": "RSA"}, {"kty": "RSA", "n": 7, "e": []},'
        b' {"kty": "EC", "crv": "P-256", "x": 1, "y": null}, {"kty": "RSA", "n": "", "e": "AQAB"},'
        b' {"kty": "OKP", "crv": [], "x": {}}, {"kty": {"a": 1}}]}',
    ),
}


@pytest.mark.parametrize("odd", ODD)
def test_a_document_of_the_provider_that_is_odd_is_a_refusal(signing, provider, odd):
    """Never a mistake of the program, and nobody is let in."""
    provider.add_user("u21", preferred_username="odd", groups=["students"])
    way = signing.state.signing_in.provider
    path, content = ODD[odd]
    if isinstance(content, dict):
        plain = httpx.get(f"{provider.issuer}{path}", timeout=PATIENCE_S, verify=False).json()
        content = json.dumps({**plain, **content}).encode()
    before, way._about, way._keys = (way._about, way._keys), None, None
    mistakes = signing.log.getvalue().count('"mistake"')
    provider.documents[path] = content
    try:
        with browser(signing) as client:
            begun = client.get("/v1/sign-in/begin")
            if path == KEYS:
                begun = client.get(provider.authorize(begun.headers["location"], "u21"))
            assert refused(begun, "A20")
            assert "discreet" not in client.cookies
    finally:
        provider.documents.clear()
        way._about, way._keys = before
    assert signing.log.getvalue().count('"mistake"') == mistakes


ODD_CLAIMS = {
    "an end that no clock reaches": {"exp": float("inf")},
    "a nonce of half a character": {"nonce": "\ud800"},
    "a subject of half a character": {"sub": "\ud800"},
    "a subject that is a line": {"sub": "a\nb"},
    "a subject that is a book": {"sub": "a" * 256},
    "a subject that is a list": {"sub": ["u16"]},
    "a name that is a number": {"preferred_username": 7},
    "an audience that is a number": {"aud": 7},
}


@pytest.mark.parametrize("odd", ODD_CLAIMS)
def test_a_token_of_the_provider_that_is_odd_is_a_refusal(signing, provider, odd, provider_key):
    provider.add_user("u16", preferred_username="kim", groups=["students"])
    way = signing.state.signing_in.provider
    public = jwt.algorithms.RSAAlgorithm.to_jwk(provider_key.public_key(), as_dict=True)
    known = jwt.PyJWK({**public, "alg": "RS256", "kid": "ours"})
    provider.change = forge(provider, key=provider_key, headers={"kid": "ours"}, **ODD_CLAIMS[odd])
    before, way._keys = way._keys, (time.monotonic(), {"ours": known})
    mistakes = signing.log.getvalue().count('"mistake"')
    try:
        with browser(signing) as client:
            assert refused(sign_in(client, provider, "u16"), "A20")
    finally:
        provider.change, way._keys = None, before
    assert signing.log.getvalue().count('"mistake"') == mistakes


def test_a_name_that_was_taken_first_is_nobody_elses_and_the_curator_sees_whose(signing, provider):
    """Who may choose their name at the provider may choose another's, and becomes nobody by it."""
    provider.add_user("early", preferred_username="professor", groups=["students"])
    provider.add_user("late", preferred_username="professor", groups=["teachers"])
    with browser(signing) as client:
        assert sign_in(client, provider, "early").status_code == 303
    with browser(signing) as client:
        assert refused(sign_in(client, provider, "late"), "A21")
        assert "discreet" not in client.cookies
    (found,) = [
        one
        for one in signing.call("GET", "analysts").json()["analysts"]
        if one["name"] == "professor"
    ]
    assert found["identity"] == f"{provider.issuer}#early"
    assert found["group"] == "students"


@pytest.mark.parametrize("verified", [True, False, None, "true"])
def test_an_address_that_nobody_verified_is_no_name(verified):
    settings = SignInSettings(
        "https://login.example", "discreet", "https://ask.example", name_claim="email"
    )
    attempt = Attempt("state", "nonce", "verifier")
    claims = {"aud": "discreet", "nonce": "nonce", "sub": "u1", "email": "ada@example.org"}
    claims |= {} if verified is None else {"email_verified": verified}
    if verified is True:
        found = Provider(settings)._read_person(claims, attempt)
        assert (found.identity, found.name) == ("https://login.example#u1", "ada@example.org")
    else:
        with pytest.raises(AccessRefusal, match="has not verified your address"):
            Provider(settings)._read_person(claims, attempt)


def test_nobody_signs_in_more_often_than_is_written_down(signing, provider):
    provider.add_user("u17", preferred_username="lea", groups=["students"])
    with browser(signing) as client:
        codes = [sign_in(client, provider, "u17").status_code for _ in range(12)]
    assert codes.count(303) == 10
    assert codes[-1] == 429


def test_limits_are_of_the_person_however_often_they_sign_in(signing, provider):
    provider.add_user("u18", preferred_username="mia", groups=["students"])
    ids = set()
    for _ in range(2):
        with browser(signing) as client:
            sign_in(client, provider, "u18")
            ids.add(client.get("/v1/me", headers=PAGE).json()["key"])
    assert len(ids) == 2
    assert len({signing.state.lineage.first(one) for one in ids}) == 1


def test_a_provider_that_is_away_lets_nobody_in(tmp_path, serve_at):
    (tmp_path / "secret").write_text("secret")
    with socket.socket() as kept:
        kept.bind(("127.0.0.1", 0))  # and never listens
        issuer = f"http://127.0.0.1:{kept.getsockname()[1]}"
        with (
            serve_at(tmp_path, lambda a: SECTION.format(issuer=issuer, address=a)) as served,
            browser(served) as client,
        ):
            assert refused(client.get("/v1/sign-in/begin"), "A20")
            assert served.call("GET", "/v1/me").status_code == 200  # keys open as before


def test_without_a_section_there_is_no_way_in(server):
    assert server.client.get("/v1/sign-in").json() == {"available": False, "provider": None}
    for path in ("/v1/sign-in/begin", "/v1/sign-in/callback"):
        assert refused(server.client.get(path), "A13")


# --- settings -------------------------------------------------------------------------------------

WRONG = {
    "over an open line": ('issuer = "http://login.example.org"', "issuer"),
    "unknown": ('issuers = "x"', "issuers"),
    "for ever": ("hours = 0", "hours"),
    "a lost secret": ('client_secret_file = "nowhere"', "client_secret_file"),
    "an address with a query": ('address = "https://a.example/?x"', "address"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_settings_that_are_not_understood_are_refused(tmp_path, make_dataset, wrong):
    line, said = WRONG[wrong]
    name = line.split(" = ")[0]
    right = {"issuer": '"https://a.example"', "client_id": '"d"', "address": '"https://b.example"'}
    lines = [f"{key} = {value}" for key, value in right.items() if key != name]
    home = make_dataset(tmp_path / "clinic", more="\n".join(["[sign_in]", *lines, line, ""])).home
    with pytest.raises(SchemaRefusal, match=said):
        read_settings({"clinic": session.read(home)})


def test_sessions_of_one_server_name_one_provider_and_each_claim_one_group(tmp_path, make_dataset):
    (tmp_path / "secret").write_text("secret")
    one, two = (
        make_dataset(
            tmp_path / name, more=SECTION.format(issuer=issuer, address="https://c.example")
        ).home
        for name, issuer in (("one", "https://a.example"), ("two", "https://b.example"))
    )
    with pytest.raises(SchemaRefusal, match="another session"):
        read_settings({"one": session.read(one), "two": session.read(two)})
    assert read_claims(session.read(one)) == {
        "researchers": "staff",
        "teachers": "staff",
        "students": "students",
    }
    file = one / session.FILE
    file.write_text(file.read_text().replace('["students"]', '["teachers"]'))
    with pytest.raises(SchemaRefusal, match="teachers"):
        read_claims(session.read(one))
