"""Who may ask, with which key, under which rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, date, datetime, time
from typing import Any

from discreet.accounting.budget import Budget
from discreet.exact.records import dataclass
from discreet.release.record import from_json, to_json

CURATOR = "curator"
"""The analyst who always exists: the curator's own questions, under the dataset's cap alone."""

ANALYST_NAME = re.compile(r"[^\W_][\w.@+-]{0,63}")
"""What may be the name of an analyst, or of a group of them."""

AUDITOR = "auditor"
"""The role of those who read the account and never ask."""


@dataclass(frozen=True, slots=True)
class Group:
    """Analysts under a common limit: what they may cost any one person, together and each."""

    limit: Budget | None = None
    """Of all of them together; what each has paid as one of the group counts."""
    each: Budget | None = None
    """Of each who has no limit of their own."""

    def to_json(self) -> dict[str, Any]:
        """The group as the ledger records it."""
        return {"limit": to_json(self.limit), "each": to_json(self.each)}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Group:
        """The group that was recorded as ``found``."""
        return cls(from_json(found["limit"]), from_json(found["each"]))


@dataclass(frozen=True, slots=True)
class Policy:
    """What the curator allows on a dataset, beside its budget.

    ``question`` caps any one question, ``analyst`` the sum of each analyst who has
    no limit of their own; analysts' sums may add up to more than the budget, which
    always wins.  ``shared_answers`` lets everyone see an answer that somebody paid for.
    After ``expires`` nothing is answered.  ``groups`` are those that analysts may be in.
    """

    question: Budget | None = None
    analyst: Budget | None = None
    shared_answers: bool = True
    expires: datetime | None = None
    groups: Mapping[str, Group] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "expires", assume_utc(self.expires))

    def to_json(self) -> dict[str, Any]:
        """The policy as the ledger records it."""
        groups = {name: group.to_json() for name, group in self.groups.items()}
        return {
            "question": to_json(self.question),
            "analyst": to_json(self.analyst),
            "shared_answers": self.shared_answers,
            "expires": write_time(self.expires),
            **({"groups": groups} if groups else {}),
        }

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Policy:
        """The policy that was recorded as ``found``."""
        return cls(
            from_json(found["question"]),
            from_json(found["analyst"]),
            found["shared_answers"],
            read_time(found["expires"]),
            {name: Group.from_json(one) for name, one in found.get("groups", {}).items()},
        )


@dataclass(frozen=True, slots=True)
class Analyst:
    """Somebody who may ask; ``limit`` is what they may cost any one person.

    ``name`` is what they are called, ``role`` one of analyst, curator and auditor; after
    ``expires``, or if ``disabled``, nothing is answered to them.  The common limit of ``group``
    counts what they pay, too.  ``identity`` is who they are to the provider that they sign in with,
    None for those who have keys only.
    """

    name: str
    role: str = "analyst"
    limit: Budget | None = None
    expires: datetime | None = None
    disabled: bool = False
    group: str | None = None
    identity: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The analyst as the ledger records them."""
        return {
            "name": self.name,
            "role": self.role,
            "limit": to_json(self.limit),
            "expires": write_time(self.expires),
            "disabled": self.disabled,
            **({} if self.group is None else {"group": self.group}),
            **({} if self.identity is None else {"identity": self.identity}),
        }

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Analyst:
        """The analyst that was recorded as ``found``."""
        return cls(
            found["name"],
            found["role"],
            from_json(found["limit"]),
            read_time(found["expires"]),
            found["disabled"],
            found.get("group"),
            found.get("identity"),
        )


@dataclass(frozen=True, slots=True)
class AccessKey:
    """A key that opens the door for an analyst; the ledger knows its digest and its verifier.

    ``key_id`` is its public part, ``analyst`` whose it is and ``digest`` that of the whole; made at
    ``at``, it opens nothing after ``expires`` or once ``revoked``.  ``verifier`` checks a proof of
    the key (SCRAM); keys of earlier versions have none.
    """

    key_id: str
    analyst: str
    digest: str
    expires: datetime | None = None
    at: datetime | None = None
    revoked: bool = False
    verifier: str | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, Any]:
        """The key as the ledger records it."""
        return {
            "key_id": self.key_id,
            "analyst": self.analyst,
            "digest": self.digest,
            "expires": write_time(self.expires),
            "at": write_time(self.at),
            "revoked": self.revoked,
            **({} if self.verifier is None else {"verifier": self.verifier}),
        }

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> AccessKey:
        """The key that was recorded as ``found``."""
        return cls(
            found["key_id"],
            found["analyst"],
            found["digest"],
            read_time(found["expires"]),
            read_time(found["at"]),
            found["revoked"],
            found.get("verifier"),
        )


def assume_utc(time: datetime | None) -> datetime | None:
    """A time with its zone; without one it is meant as UTC."""
    if time is None or time.tzinfo is not None:
        return time
    return time.replace(tzinfo=UTC)


def end_of_day(day: date) -> datetime:
    """When a day ends in Greenwich: who may ask until a day may ask on it.

    >>> str(end_of_day(date(2027, 12, 31)))
    '2027-12-31 23:59:59+00:00'
    """
    return datetime.combine(day, time(23, 59, 59), UTC)


def read_time(text: str | None) -> datetime | None:
    """A recorded time."""
    return None if text is None else datetime.fromisoformat(text)


def write_time(time: datetime | None) -> str | None:
    """A time as it is recorded."""
    found = assume_utc(time)
    return None if found is None else found.astimezone(UTC).isoformat()
