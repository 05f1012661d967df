"""The provider: where it is, what it signs with, and whom an ID token of it names.

OpenID Connect Core 1.0, the authorization code flow with PKCE (RFC 7636).  A token is
believed if the provider's key signed it, for us, not too long ago, in answer to the very
request that this browser began.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlencode

import httpx
import jwt

from discreet.errors import AccessRefusal, SchemaRefusal
from discreet.server.sign_in.settings import SignInSettings, check_address

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
"""Signatures that only the provider can make; never one that a shared secret makes."""
_TIMEOUT_S = 10.0
_MOST_BYTES = 512 * 1024
_KEPT_S = 3600.0
"""How long what the provider says of itself is believed without asking again."""
_AGAIN_S = 30.0
"""How often an unknown key makes us look for new ones, at most."""
_LEEWAY_S = 60
_SUBJECT = re.compile(r"[\x20-\x7e]{1,255}")
"""OpenID Connect Core 1.0, section 2: at most 255 ASCII characters."""
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")


def cannot_sign_in(what: str) -> AccessRefusal:
    """What came back is not what was asked for, or nothing did."""
    return AccessRefusal(
        "A20",
        f"{what}.",
        why="whoever is let in by mistake could spend what the people in the data may lose.",
        fix="begin again from the page; if it stays so, ask the curator to look at [sign_in].",
    )


@dataclass(frozen=True, slots=True)
class Person:
    """Whom the provider says to have signed in."""

    identity: str
    name: str
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a browser that goes to the provider must bring back, and what it is compared with."""

    state: str
    nonce: str
    verifier: str

    @property
    def challenge(self) -> str:
        """What the provider is told beforehand of the verifier (S256)."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


class Provider:
    """One OpenID Connect provider, as its own documents describe it."""

    def __init__(self, settings: SignInSettings) -> None:
        self.settings = settings
        self._about: tuple[float, dict[str, str]] | None = None
        self._keys: tuple[float, dict[str, jwt.PyJWK]] | None = None

    async def begin(self, attempt: Attempt) -> str:
        """Where the browser is sent to."""
        about = await self._describe()
        asked = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": self.settings.callback,
            "scope": self.settings.scope,
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": attempt.challenge,
            "code_challenge_method": "S256",
        }
        address = about["authorization_endpoint"]
        return f"{address}{'&' if '?' in address else '?'}{urlencode(asked)}"

    async def complete(self, code: str, attempt: Attempt) -> Person:
        """Whom the code stands for."""
        about = await self._describe()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.settings.callback,
            "client_id": self.settings.client_id,
            "code_verifier": attempt.verifier,
        }
        secret = self.settings.client_secret
        basic = None if secret is None else httpx.BasicAuth(self.settings.client_id, secret)
        answer = await _fetch("POST", about["token_endpoint"], data=form, auth=basic)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise cannot_sign_in("the provider has sent no ID token")
        return self._read_person(await self._verify(token), attempt)

    async def _verify(self, token: str) -> dict[str, Any]:
        """The claims of a token that the provider signed for us."""
        try:
            header = jwt.get_unverified_header(token)
        except jwt.InvalidTokenError:
            raise cannot_sign_in("the ID token cannot be read") from None
        key = await self._find_key(header.get("kid"))
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=list(ALGORITHMS),
                audience=self.settings.client_id,
                issuer=self.settings.issuer,
                leeway=_LEEWAY_S,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except Exception:  # whatever is odd about a token, nobody is let in by it
            raise cannot_sign_in(
                "the ID token is not signed by the provider, not for this server, or too old"
            ) from None
        return claims

    def _read_person(self, claims: Mapping[str, Any], attempt: Attempt) -> Person:
        ours, others = self.settings.client_id, claims["aud"]
        party = claims.get("azp", ours if isinstance(others, str) or len(others) == 1 else None)
        nonce = claims.get("nonce")
        if party != ours or not isinstance(nonce, str):
            raise cannot_sign_in("the ID token was made for somebody else")
        if not hmac.compare_digest(_to_bytes(nonce), attempt.nonce.encode()):
            raise cannot_sign_in("the ID token answers another sign-in")
        subject, name = claims["sub"], claims.get(self.settings.name_claim)
        if not isinstance(subject, str) or not _SUBJECT.fullmatch(subject):
            raise cannot_sign_in("the ID token names nobody")
        if not isinstance(name, str):
            raise cannot_sign_in(f"the ID token has no {self.settings.name_claim!r}")
        if self.settings.name_claim == "email" and claims.get("email_verified") is not True:
            raise cannot_sign_in("the provider has not verified your address")
        groups = claims.get(self.settings.groups_claim, [])
        listed = groups if isinstance(groups, list) else [groups]
        return Person(
            f"{self.settings.issuer}#{subject}",
            name,
            tuple(group for group in listed if isinstance(group, str)),
        )

    async def _describe(self) -> dict[str, str]:
        """What the provider says of itself; its issuer must be the one that was declared."""
        now = time.monotonic()
        if self._about is not None and now - self._about[0] < _KEPT_S:
            return self._about[1]
        issuer = self.settings.issuer
        found = await _fetch("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        try:
            about = {name: check_address(_plain(found.get(name)), name) for name in _ENDPOINTS}
        except SchemaRefusal:
            raise cannot_sign_in("the provider names an address that is not safe") from None
        if found.get("issuer") != issuer:
            raise cannot_sign_in("the provider says to be another one than [sign_in] names")
        where = str(found["authorization_endpoint"])  # with its query, if it has one
        if "#" in where or not where.isprintable():
            raise cannot_sign_in("the provider names an address that is not safe")
        about["authorization_endpoint"] = where
        self._about = now, about
        return about

    async def _find_key(self, kid: object) -> jwt.PyJWK:
        """The provider's key of that name; looked for anew where it is not known."""
        now = time.monotonic()
        known = self._keys
        fresh = known is not None and now - known[0] < _KEPT_S
        if known is None or not fresh or (kid not in known[1] and now - known[0] > _AGAIN_S):
            known = self._keys = now, await self._fetch_keys()
        keys = known[1]
        if kid is None and len(keys) == 1:
            return next(iter(keys.values()))
        if not isinstance(kid, str) or kid not in keys:
            raise cannot_sign_in(
                "the ID token is signed with a key that the provider does not name"
            )
        return keys[kid]

    async def _fetch_keys(self) -> dict[str, jwt.PyJWK]:
        listed = (await _fetch("GET", (await self._describe())["jwks_uri"])).get("keys")
        found: dict[str, jwt.PyJWK] = {}
        for one in listed if isinstance(listed, list) else ():
            if not isinstance(one, dict) or one.get("use", "sig") != "sig":
                continue
            try:
                key = jwt.PyJWK(one)
            except Exception:  # noqa: S112 (of a kind that we do not know, or no key at all)
                continue
            if key.algorithm_name in ALGORITHMS:
                found[str(one.get("kid", ""))] = key
        return found


@cache
def _trust() -> Any:
    """The authorities that are trusted, read once."""
    return httpx.create_ssl_context()


def _to_bytes(text: str) -> bytes:
    """A text for a comparison, half characters too: JSON may hold them."""
    return text.encode("utf-8", "surrogatepass")


def _plain(address: object) -> object:
    """An endpoint without its query, which it may have."""
    return address.partition("?")[0] if isinstance(address, str) else address


async def _fetch(method: str, url: str, **sent: Any) -> dict[str, Any]:
    """What the provider answers, as JSON; bounded in size and time, and never redirected."""
    try:
        async with (
            httpx.AsyncClient(
                timeout=_TIMEOUT_S, follow_redirects=False, verify=_trust()
            ) as client,
            client.stream(method, url, headers={"Accept": "application/json"}, **sent) as response,
        ):
            body = b""
            async for part in response.aiter_bytes():
                body += part
                if len(body) > _MOST_BYTES:
                    raise cannot_sign_in("the provider says more than is read")
        if response.status_code != httpx.codes.OK:
            raise cannot_sign_in("the provider has refused")
        found = httpx.Response(200, content=body).json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
        raise cannot_sign_in("the provider cannot be reached, or not be understood") from None
    if not isinstance(found, dict):
        raise cannot_sign_in("the provider cannot be understood")
    return found
