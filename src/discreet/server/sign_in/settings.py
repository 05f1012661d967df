"""Which provider is asked who somebody is, from the sections [sign_in] and [groups] of sessions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from discreet.curate.session import Session, find_place
from discreet.errors import SchemaRefusal, quote_value
from discreet.ledger.keys import is_loopback

_WHY = "whoever a provider says to be somebody may spend what the people in the data may lose."
_MOST_HOURS = 24 * 7


@dataclass(frozen=True, slots=True)
class SignInSettings:
    """The section [sign_in] of a ``discreet.toml``; the same in all sessions of a server."""

    issuer: str
    client_id: str
    address: str
    """Where browsers reach this server: where the provider sends them back to."""
    client_secret: str | None = field(default=None, repr=False)
    name_claim: str = "preferred_username"
    groups_claim: str = "groups"
    scope: str = "openid profile email"
    hours: int = 8
    """How long somebody stays signed in."""

    @property
    def secure(self) -> bool:
        """Whether browsers reach the server over TLS, so that cookies travel there only."""
        return self.address.startswith("https://")

    @property
    def callback(self) -> str:
        """Where the provider sends browsers back to."""
        return f"{self.address}/v1/sign-in/callback"

    @property
    def provider(self) -> str:
        """The provider's name, for people."""
        return urlsplit(self.issuer).hostname or self.issuer


def read_settings(sessions: Mapping[str, Session]) -> SignInSettings | None:
    """What sessions say together of signing in; None if none of them lets anybody sign in."""
    found: SignInSettings | None = None
    for name, session in sessions.items():
        section = session.settings.get("sign_in")
        if section is None:
            continue
        one = _read_section(section, session.directory)
        if found is not None and one != found:
            raise _misread(
                f"[sign_in] of {name!r} is not that of another session of this server",
                "write the same section in each: a browser signs in once for all of them.",
            )
        found = one
    return found


def read_claims(session: Session) -> dict[str, str]:
    """Which group of analysts each group of the provider is, in the order of the file."""
    if session.settings.get("sign_in") is None:
        return {}
    found: dict[str, str] = {}
    for group, said in session.settings.get("groups", {}).items():
        claims = said.get("claims", [])
        if not isinstance(claims, list) or not all(isinstance(c, str) and c for c in claims):
            raise _misread(
                f"claims of [groups.{group}] is {quote_value(claims)}",
                'write claims = ["researchers"].',
            )
        for claim in claims:
            if claim in found:
                raise _misread(
                    f"{quote_value(claim)} is a claim of [groups.{found[claim]}] "
                    f"and [groups.{group}]",
                    "let each group of the provider be one group here.",
                )
            found[claim] = group
    return found


def check_address(value: object, name: str) -> str:
    """An address over TLS, or on this machine; as it is written, without a slash at its end."""
    try:
        parts = urlsplit(value if isinstance(value, str) and value.isprintable() else "")
    except ValueError:  # a bracket that is not closed
        parts = urlsplit("")
    safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    plain = not (parts.query or parts.fragment or parts.username or parts.password)
    if not safe or not parts.hostname or not plain:
        raise _misread(
            f"{name} of [sign_in] is {quote_value(value)}",
            f'write {name} = "https://login.example.org".',
        )
    return str(value)


def _read_section(section: Mapping[str, Any], directory: Path) -> SignInSettings:
    names = {"client_secret_file"} | {f.name for f in fields(SignInSettings)} - {"client_secret"}
    for name in section:
        if name not in names:
            raise _misread(f"[sign_in] has {quote_value(name)}", f"use {', '.join(sorted(names))}.")
    for name in ("issuer", "client_id", "address"):
        if name not in section:
            raise _misread(f"[sign_in] has no {name}", f'write {name} = "…".')
    hours = section.get("hours", 8)
    if type(hours) is not int or not 1 <= hours <= _MOST_HOURS:
        raise _misread(f"hours of [sign_in] is {quote_value(hours)}", "write hours = 8.")
    texts = {
        name: section[name]
        for name in ("client_id", "name_claim", "groups_claim", "scope", "client_secret_file")
        if name in section
    }
    for name, value in texts.items():
        if not isinstance(value, str) or not value.strip():
            raise _misread(f"{name} of [sign_in] is {quote_value(value)}", f'write {name} = "…".')
    file = texts.pop("client_secret_file", None)
    return SignInSettings(
        issuer=check_address(section["issuer"], "issuer"),
        address=check_address(section["address"], "address").rstrip("/"),
        client_secret=None if file is None else _read_secret(find_place(directory, file)),
        hours=hours,
        **texts,
    )


def _read_secret(file: Path) -> str:
    try:
        secret = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        secret = ""
    if not secret:
        raise _misread(
            "client_secret_file of [sign_in] cannot be read, or is empty",
            "name a file beside discreet.toml that holds the secret and nothing else.",
        )
    return secret


def _misread(what: str, fix: str) -> SchemaRefusal:
    return SchemaRefusal("S2", f"{what}.", why=_WHY, fix=fix)
