"""Whom a provider has named, as an analyst of each dataset that lets their groups ask.

An analyst who signs in is known by who the provider says they are, not by the name: a name that
somebody else has is never taken over.  Being let in is a key that ends by itself, recorded as
every key is; what limits are kept for is the person, however often they sign in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from discreet.errors import AccessRefusal, InvalidParameter
from discreet.ledger import Account, Analyst
from discreet.ledger import keys as ledger_keys
from discreet.ledger.analysts import ANALYST_NAME
from discreet.server.sign_in.provider import Person


@dataclass(frozen=True, slots=True)
class EntryRules:
    """A dataset's account, and which of its groups each group of the provider is."""

    account: Account
    claims: Mapping[str, str]


def let_in(person: Person, rules: Mapping[str, EntryRules], hours: int) -> str:
    """A key that opens every dataset where one of the person's groups may ask; refused if none."""
    if not ANALYST_NAME.fullmatch(person.name):
        raise _nobody("the provider's name for you cannot be the name of an analyst")
    admitted: dict[str, str] = {}
    for dataset, rule in rules.items():
        analyst = _admit(person, rule)
        if analyst is not None:
            admitted[dataset] = analyst
    if not admitted:
        raise _nobody("none of your groups at the provider may ask here, or your name is taken")
    ends = datetime.now(UTC) + timedelta(hours=hours)
    key = ledger_keys.draw_key()
    for dataset, analyst in admitted.items():
        ledger_keys.grant_key(rules[dataset].account, analyst, key, expires=ends, provable=False)
    return key


def _admit(person: Person, rule: EntryRules) -> str | None:
    """The name of the analyst who they are in one dataset, in the group they are in now."""
    group = next((rule.claims[one] for one in rule.claims if one in person.groups), None)
    if group is None:
        return None
    found = _find_analyst(rule.account, person)
    if found is None:
        try:
            rule.account.add_analyst(person.name, group=group, identity=person.identity)
        except InvalidParameter:  # somebody else has that name
            return None
        return person.name
    if found.disabled:
        return None
    if found.group != group:
        rule.account.move_analyst(found.name, group)
    return found.name


def _find_analyst(account: Account, person: Person) -> Analyst | None:
    known = (one for one in account.analysts() if one.identity == person.identity)
    return next(known, None)


def _nobody(what: str) -> AccessRefusal:
    return AccessRefusal(
        "A21",
        f"{what}.",
        why="who may ask about the people in the data is the curator's decision.",
        fix="ask the curator: for a group that may ask, or for a key.",
    )
