"""Who may ask of a dataset: analysts, their limits and groups, and the keys they come with."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from discreet.accounting.budget import Budget
from discreet.errors import InvalidParameter, quote_value
from discreet.ledger import admission
from discreet.ledger.analysts import (
    ANALYST_NAME,
    AUDITOR,
    CURATOR,
    AccessKey,
    Analyst,
    assume_utc,
)
from discreet.ledger.books import Standing
from discreet.ledger.journal import Journal

ROLES = (CURATOR, "analyst", AUDITOR)


class People:
    """The people of one dataset; every change is a record of its log.

    ``journal`` is the ledger's, ``dataset`` the name in it. An account has these methods, too.
    """

    def __init__(self, journal: Journal, dataset: str) -> None:
        self._journal = journal
        self._dataset = dataset

    def _standing(self) -> Standing:
        return self._journal.books.datasets[self._dataset]

    # --- analysts -----------------------------------------------------------------------------

    def add_analyst(
        self,
        name: str,
        *,
        role: str = "analyst",
        limit: Budget | None = None,
        expires: datetime | None = None,
        group: str | None = None,
        identity: str | None = None,
    ) -> Analyst:
        """Let somebody called ``name`` ask; ``limit`` is what they may cost any one person.

        ``role`` is one of analyst, curator and auditor; after ``expires`` nothing is answered to
        them.

        What the analysts of a ``group`` pay counts for its common limit, too.  ``identity`` is
        whom a provider that they sign in with knows them as.
        """
        if not isinstance(name, str) or not ANALYST_NAME.fullmatch(name):
            raise _invalid(
                f"{quote_value(name)} cannot be the name of an analyst", "use letters and digits"
            )
        if role not in ROLES:
            raise _invalid(f"{quote_value(role)} is not a role", f"use one of {', '.join(ROLES)}")
        analyst = Analyst(name, role, limit, assume_utc(expires), group=group, identity=identity)
        with self._journal.writing() as writer:
            standing = self._standing()
            self._check_group(group, standing)
            if name in standing.analysts:
                raise _invalid(
                    f"analyst {name!r} is there already",
                    "choose another name; another key for the same analyst is made by "
                    f"`discreet analyst key {name}`",
                )
            known = (one.identity for one in standing.analysts.values())
            if identity is not None and identity in known:
                raise _invalid("whoever signs in so has a name already", "use that name")
            writer.append("analyst", analyst.to_json(), dataset=self._dataset, analyst=name)
        return analyst

    def limit_analyst(self, name: str, limit: Budget | None) -> Analyst:
        """Change the ``limit`` of the analyst ``name``: what they may cost any one person.

        What was spent stays spent.
        """
        return self._change_analyst(name, limit=limit)

    def move_analyst(self, name: str, group: str | None) -> Analyst:
        """Put the analyst ``name`` into ``group``, or into none.

        What was spent stays spent where it was.
        """
        return self._change_analyst(name, group=group)

    def _check_group(self, group: str | None, standing: Standing) -> None:
        if group is not None and group not in standing.policy.groups:
            known = ", ".join(map(repr, standing.policy.groups)) or "none"
            raise _invalid(
                f"there is no group {quote_value(group)}",
                f"declare [groups.NAME] in discreet.toml; those declared are: {known}",
            )

    def disable_analyst(self, name: str) -> Analyst:
        """Let the analyst ``name`` ask no more; what they paid for stays recorded."""
        return self._change_analyst(name, disabled=True)

    def _change_analyst(self, name: str, **change: Any) -> Analyst:
        if name == CURATOR:
            raise _invalid(
                "the curator has neither a limit nor an end", "limit the dataset: budget=..."
            )
        with self._journal.writing() as writer:
            self._check_group(change.get("group"), self._standing())
            analyst = replace(self.find(name), **change)
            writer.append("analyst", analyst.to_json(), dataset=self._dataset, analyst=name)
        return analyst

    def analyst(self, name: str) -> Analyst:
        """The analyst ``name``, or a refusal."""
        with self._journal.reading():
            return self.find(name)

    def find(self, name: str) -> Analyst:
        """The analyst ``name``, for who reads or writes already."""
        found = self._standing().analysts.get(name)
        if found is None:
            raise admission.unknown_analyst(name)
        return found

    def analysts(self) -> tuple[Analyst, ...]:
        """Everybody who may or might ask, in the order in which they came."""
        with self._journal.reading():
            return tuple(self._standing().analysts.values())

    # --- keys ---------------------------------------------------------------------------------

    def add_key(
        self,
        analyst: str,
        *,
        key_id: str,
        digest: str,
        expires: datetime | None = None,
        verifier: str | None = None,
    ) -> AccessKey:
        """Record the ``digest`` of an ``analyst``'s key, and what checks a proof of it.

        ``key_id`` is its public part, ``verifier`` what checks the proof; after ``expires`` it
        opens nothing.
        """
        key = AccessKey(key_id, analyst, digest, assume_utc(expires), verifier=verifier)
        with self._journal.writing() as writer:
            self.find(analyst)
            if key_id in self._standing().keys:
                raise _invalid(f"key {key_id!r} is there already", "draw another key")
            record = writer.append("key", key.to_json(), dataset=self._dataset, analyst=analyst)
        return replace(key, at=record.time)

    def replace_key(self, old: str, key: AccessKey) -> bool:
        """Put ``key`` in the place of ``old``, in one transaction; False if that is gone already.

        Of two who replace the same key at once, one is too late: one key never becomes two.
        """
        with self._journal.writing() as writer:
            keys = self._standing().keys
            if old not in keys or keys[old].revoked or key.key_id in keys:
                return False
            writer.append("key", key.to_json(), dataset=self._dataset, analyst=key.analyst)
            writer.append(
                "revoke", {"key_id": old}, dataset=self._dataset, analyst=keys[old].analyst
            )
        return True

    def revoke_key(self, key_id: str) -> None:
        """Make the key ``key_id`` open nothing any more."""
        with self._journal.writing() as writer:
            key = self._standing().keys.get(key_id)
            if key is None:
                named = quote_value(key_id)
                known = key_id in self._standing().analysts
                raise _invalid(
                    f"{named} is an analyst and not a key" if known else f"there is no key {named}",
                    "name a key by its ID, which account.keys() and `discreet analyst keys` list",
                )
            if not key.revoked:
                content = {"key_id": key_id}
                writer.append("revoke", content, dataset=self._dataset, analyst=key.analyst)

    def key(self, key_id: str) -> AccessKey | None:
        """One key, by its public part ``key_id``."""
        with self._journal.reading():
            return self._standing().keys.get(key_id)

    def holder(self, key_id: str) -> tuple[AccessKey | None, Analyst | None]:
        """One key, by its public part ``key_id``, and whose it is."""
        with self._journal.reading():
            standing = self._standing()
            found = standing.keys.get(key_id)
            return found, None if found is None else standing.analysts.get(found.analyst)

    def keys(self) -> tuple[AccessKey, ...]:
        """All keys, revoked ones too."""
        with self._journal.reading():
            return tuple(self._standing().keys.values())


def _invalid(what: str, fix: str) -> InvalidParameter:
    return InvalidParameter(
        "P4",
        f"{what}.",
        why="what each asker costs the people in the data is counted under one name.",
        fix=f"{fix}.",
    )
