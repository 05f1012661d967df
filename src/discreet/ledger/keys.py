"""Who may come in: keys, what they open, and what each role may do.

A key is shown once, when it is made.  The ledger keeps its SHA-256, which is
enough: a secret of 256 random bits cannot be found by trying, so nothing is won
by a slow hash.  Beside it stands what checks a proof of the key, for doors where it is
never sent.  A key opens one dataset, or several whose curator put the same
key into each; what it opens is decided anew at every request, so that a revoked
key is dead at once.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from discreet.errors import AccessRefusal, InvalidParameter

if TYPE_CHECKING:  # the client reads keys, and has no ledger
    from discreet.ledger import AccessKey, Account

SECRET_BYTES = 32
_ID_BYTES = 8
_KEY = re.compile(r"discreet_([0-9a-f]{16})_[0-9a-f]{64}")
_NOBODY = bytes(32).hex()
"""Compared with where there is no such key, so that both cases take as long."""

CURATOR, ANALYST, AUDITOR = "curator", "analyst", "auditor"
ROLES = (CURATOR, ANALYST, AUDITOR)


@dataclass(frozen=True, slots=True)
class Grant:
    """What a key opens in one dataset."""

    dataset: str
    analyst: str
    role: str

    def requires(self, *roles: str) -> None:
        """Refuse unless the grant has one of ``roles``."""
        if self.role not in roles:
            raise AccessRefusal(
                "A12",
                f"this needs the role {' or '.join(roles)}; this key has the role {self.role}.",
                why="what people in the data were promised depends on who may do what.",
                fix=f"use a key of the role {' or '.join(roles)}.",
            )


@dataclass(frozen=True, slots=True)
class Caller:
    """The holder of a valid key."""

    key_id: str
    expires: datetime | None
    grants: Mapping[str, Grant]

    def grant(self, dataset: str) -> Grant:
        """What the key opens there; that it does not, and that nothing is there, sound the same."""
        found = self.grants.get(dataset)
        if found is None:
            raise nothing_here("dataset", dataset)
        return found


@dataclass(frozen=True, slots=True)
class Proved:
    """A key that its holder has, without having sent it."""

    key_id: str
    signature: bytes
    """What proves to the holder that we know the key's verifier."""


def nothing_here(what: str, name: str) -> AccessRefusal:
    """The one thing that is said of what does not exist and of what is not the caller's."""
    return AccessRefusal(
        "A13",
        f"there is no {what} {name!r} that this key opens.",
        why="whether it exists for somebody else is theirs to tell.",
        fix="see what this key opens: GET /v1/me, and the transcript of the dataset.",
    )


def new_key(account: Account, analyst: str, *, expires: datetime | None = None) -> str:
    """A key for ``analyst``: shown now, never again; the ledger keeps its hash."""
    key = draw_key()
    grant_key(account, analyst, key, expires=expires)
    return key


def grant_key(
    account: Account,
    analyst: str,
    key: str,
    *,
    expires: datetime | None = None,
    provable: bool = True,
) -> None:
    """Let an existing key open another dataset, as ``analyst`` there.

    One that is not ``provable`` opens nothing where keys are proved and never sent.
    """
    if analyst not in {known.name for known in account.analysts()}:
        raise nothing_here("analyst", analyst)
    account.add_key(
        analyst,
        key_id=key_id(key),
        digest=digest(key),
        expires=_check_future(expires),
        verifier=_make_verifier(key) if provable else None,
    )


def rotate(accounts: Mapping[str, Account], key: str, *, expires: datetime | None = None) -> str:
    """A new key that opens what ``key`` opens, no longer than it; ``key`` opens nothing any more.

    The new key is in every other ledger before it takes the old one's place in the first, so
    that a crash in between locks nobody out; and it takes that place in one transaction, so
    that one key, however often it is sent at once, becomes one key.
    """
    from discreet.ledger.analysts import AccessKey

    caller = identify(accounts, key)
    new = draw_key()
    (first, grant), *others = caller.grants.items()
    for dataset, other in others:
        ends = _earliest(accounts[dataset], caller.key_id, expires)
        grant_key(accounts[dataset], other.analyst, new, expires=ends)
    ends = _earliest(accounts[first], caller.key_id, expires)
    made = AccessKey(key_id(new), grant.analyst, digest(new), ends, verifier=_make_verifier(new))
    replaced = accounts[first].replace_key(caller.key_id, made)
    for dataset, _ in others:
        accounts[dataset].revoke_key(caller.key_id if replaced else made.key_id)
    if not replaced:
        raise _unknown()
    return new


def _earliest(account: Account, old: str, expires: datetime | None) -> datetime | None:
    """When a new key ends: as it was wished, and no later than the old one."""
    kept = account.key(old)
    ends = (_check_future(expires), None if kept is None else kept.expires)
    return min((end for end in ends if end is not None), default=None)


def identify(accounts: Mapping[str, Account], key: str | None) -> Caller:
    """The holder of ``key`` and what it opens, or a refusal.

    A key that was never issued and one that was revoked get the same refusal;
    that it has expired is told to the holder of the whole key only.
    """
    (found,) = identify_all(accounts, [key])
    if isinstance(found, AccessRefusal):
        raise found
    return found


def identify_all(
    accounts: Mapping[str, Account], keys: Sequence[str | None]
) -> list[Caller | AccessRefusal]:
    """The same of several keys, in order: each ledger is read once, after all of them came."""
    shown = [_Shown.of(key) for key in keys]
    now = datetime.now(UTC)
    for dataset, account in accounts.items():
        with account.reading():
            for one in shown:
                if one is not None:
                    one.look(dataset, account, now)
    return [_unknown() if one is None else one.tell() for one in shown]


@dataclass(slots=True)
class _Shown:
    """A key that was sent, and what it was found to open so far."""

    key_id: str
    digest: str
    grants: dict[str, Grant] = field(default_factory=dict)
    expires: list[datetime] = field(default_factory=list)
    expired: bool = False

    @classmethod
    def of(cls, key: str | None) -> _Shown | None:
        """What may be a key."""
        name = public_part(key)
        return None if name is None or key is None else cls(name, digest(key))

    def look(self, dataset: str, account: Account, now: datetime) -> None:
        """Look whether it opens a dataset."""
        kept, analyst = account.holder(self.key_id)
        same = hmac.compare_digest(self.digest, _NOBODY if kept is None else kept.digest)
        if kept is None or analyst is None or not same or kept.revoked or analyst.disabled:
            return
        if any(end is not None and end <= now for end in (kept.expires, analyst.expires)):
            self.expired = True
            return
        self.grants[dataset] = Grant(dataset, analyst.name, analyst.role)
        if kept.expires is not None:
            self.expires.append(kept.expires)

    def tell(self) -> Caller | AccessRefusal:
        """Who holds it, or the refusal."""
        if not self.grants:
            return _expired_refusal() if self.expired else _unknown()
        return Caller(self.key_id, min(self.expires, default=None), self.grants)


def _is_open(account: Account, key: AccessKey) -> bool:
    return not key.revoked and not account.analyst(key.analyst).disabled


def recheck(account: Account, dataset: str, key_id: str) -> Grant:
    """What a key that was proved to be there still opens; a revoked one opens nothing at once."""
    kept = account.key(key_id)
    if kept is None or not _is_open(account, kept):
        raise _unknown()
    analyst = account.analyst(kept.analyst)
    now = datetime.now(UTC)
    if any(end is not None and end <= now for end in (kept.expires, analyst.expires)):
        raise _expired_refusal()
    return Grant(dataset, analyst.name, analyst.role)


def find_proved(account: Account, name: str, proof: bytes, message: bytes) -> Proved | None:
    """The key of ``name`` with which ``proof`` was made, and the answer to it; None if none was.

    ``name`` is an analyst's, or the public part of a key.  Keys of earlier versions have nothing
    that checks a proof, and are not found.
    """
    from discreet.ledger.verifiers import Verifier

    wanted = name.removeprefix("discreet_")
    found: Proved | None = None
    for key in account.keys():  # noqa: SIM118 (a method of its own)
        if key.verifier is None or (key.analyst != name and key.key_id != wanted):
            continue
        verifier = Verifier.parse(key.verifier)
        signature = None if verifier is None else verifier.check(proof, message)
        if signature is not None and _is_open(account, key):
            found = Proved(key.key_id, signature)
    return found


def key_id(key: str) -> str:
    """The public part of a key, by which it is listed and revoked."""
    found = public_part(key)
    if found is None:
        raise _unknown()
    return found


def public_part(key: str | None) -> str | None:
    """The public part of what may be a key; None if it cannot be one."""
    found = _KEY.fullmatch(key or "")
    return None if found is None else found.group(1)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach ``host``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False  # a name may mean any machine


def digest(key: str) -> str:
    """What the ledger keeps of a key."""
    return hashlib.sha256(key.encode()).hexdigest()


def _make_verifier(key: str) -> str:
    from discreet.ledger.verifiers import Verifier

    return str(Verifier.of(key))


def draw_secret() -> str:
    """A text that nobody can guess, for one use."""
    from discreet.noise.entropy import random_bytes

    return random_bytes(SECRET_BYTES).hex()


def draw_key() -> str:
    """A new key, which opens nothing yet."""
    from discreet.noise.entropy import random_bytes

    return f"discreet_{random_bytes(_ID_BYTES).hex()}_{random_bytes(SECRET_BYTES).hex()}"


def _check_future(expires: datetime | None) -> datetime | None:
    if expires is None:
        return None
    aware = expires if expires.tzinfo is not None else expires.replace(tzinfo=UTC)
    if aware <= datetime.now(UTC):
        raise InvalidParameter(
            "P2",
            "a key cannot expire in the past.",
            why="it would open nothing, and whoever is given it would not know why.",
            fix="give a later time, or none for a key that lasts until it is revoked.",
        )
    return aware


def _unknown() -> AccessRefusal:
    return AccessRefusal(
        "A10",
        "no key was sent, or none that opens anything here.",
        why="what has been lost about the people in the data is counted for each who asks.",
        fix='send the header "Authorization: Bearer KEY" with the key the curator gave you.',
    )


def _expired_refusal() -> AccessRefusal:
    return AccessRefusal(
        "A11",
        "this key has expired.",
        why="an old key may be in other hands by now.",
        fix="ask the curator for a new one.",
    )
