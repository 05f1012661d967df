"""Signing in, from the page to the provider and back: cookies, and what they must prove.

What a browser must bring back stands in a cookie that only this server can write or read, so a
code of one browser is of no use in another.  Being signed in is a cookie that no script can read
and no other site's request carries; and because a browser sends cookies by itself, they count only
beside a header that another site's page cannot send.
"""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import asdict

from cryptography.fernet import Fernet, InvalidToken
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from discreet.curate.session import Session
from discreet.ledger import Account
from discreet.ledger.keys import draw_secret, key_id
from discreet.server.limits import Lineage, Rate
from discreet.server.sign_in.entry import EntryRules, let_in
from discreet.server.sign_in.provider import Attempt, Provider, cannot_sign_in
from discreet.server.sign_in.settings import SignInSettings, read_claims, read_settings

PAGE_HEADER = "discreet-page"
"""Sent by the page with every request; a form or a link of another site cannot send it."""
_PATIENCE_S = 600
"""How long somebody may take to sign in at the provider."""


class SignIn:
    """How browsers sign in at one server."""

    def __init__(self, settings: SignInSettings, rules: Mapping[str, EntryRules]) -> None:
        self.settings = settings
        self.provider = Provider(settings)
        self._rules = rules
        self._seal = Fernet(urlsafe_b64encode(bytes.fromhex(draw_secret())))
        self._entries = Rate(
            per_minute=1, burst=10, said="you have signed in too often in a short time."
        )
        prefix = "__Host-" if settings.secure else ""
        self.cookie, self._attempts = f"{prefix}discreet", f"{prefix}discreet-sign-in"

    @classmethod
    def of(cls, sessions: Mapping[str, Session], accounts: Mapping[str, Account]) -> SignIn | None:
        """The way in that sessions declare, if any does."""
        settings = read_settings(sessions)
        if settings is None:
            return None
        rules = {
            name: EntryRules(accounts[name], read_claims(session))
            for name, session in sessions.items()
        }
        return cls(settings, {name: rule for name, rule in rules.items() if rule.claims})

    def find_key(self, request: Request) -> str | None:
        """The key of a browser that has signed in, if its request comes from our own page."""
        key = request.cookies.get(self.cookie)
        if key is None or request.headers.get(PAGE_HEADER) is None:
            return None
        origin = request.headers.get("origin", self.settings.address)
        site = request.headers.get("sec-fetch-site", "same-origin")
        return key if origin == self.settings.address and site == "same-origin" else None

    async def begin(self) -> Response:
        """Send the browser to the provider, with what it must bring back."""
        attempt = Attempt(draw_secret(), draw_secret(), draw_secret())
        response = RedirectResponse(await self.provider.begin(attempt), status_code=303)
        sealed = self._seal.encrypt(json.dumps(asdict(attempt)).encode()).decode()
        # Lax: the browser comes back by a link of the provider's.
        self._set_cookie(response, self._attempts, sealed, _PATIENCE_S, same_site="lax")
        return response

    async def complete(self, request: Request, lineage: Lineage) -> Response:
        """Let in whom the provider names, and go to the page: there is nowhere else to go to."""
        attempt = self._open_attempt(request)
        given = request.query_params
        if not hmac.compare_digest(given.get("state", "").encode(), attempt.state.encode()):
            raise cannot_sign_in("this answer of the provider belongs to another sign-in")
        issuer = given.get("iss", self.settings.issuer)  # RFC 9207: whose answer it is
        code = given.get("code")
        if code is None or issuer != self.settings.issuer:
            raise cannot_sign_in("the provider has let nobody in")
        person = await self.provider.complete(code, attempt)
        self._entries.take(person.identity)  # each is written down for ever
        key = await run_in_threadpool(let_in, person, self._rules, self.settings.hours)
        lineage.belongs(key_id(key), f"person {person.identity}")
        response = RedirectResponse("/", status_code=303)
        self._set_cookie(response, self.cookie, key, 3600 * self.settings.hours)
        self._set_cookie(response, self._attempts, "", 0, same_site="lax")
        return response

    def forget(self, response: Response) -> None:
        """Let a browser be signed in no more."""
        self._set_cookie(response, self.cookie, "", 0)

    def _open_attempt(self, request: Request) -> Attempt:
        sealed = request.cookies.get(self._attempts, "")
        try:
            return Attempt(**json.loads(self._seal.decrypt(sealed.encode(), ttl=_PATIENCE_S)))
        except InvalidToken:
            raise cannot_sign_in(
                "this browser has not begun to sign in, or has taken too long"
            ) from None

    def _set_cookie(
        self, response: Response, name: str, value: str, age_s: int, same_site: str = "strict"
    ) -> None:
        response.set_cookie(
            name,
            value,
            max_age=age_s,
            path="/",
            secure=self.settings.secure,
            httponly=True,
            samesite=same_site,  # type: ignore[arg-type]  # one of three words
        )
