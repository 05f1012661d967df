"""Who may ask of a dataset: analysts and their keys, each change a record."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from typing import Any

from discreet.accounting.budget import Budget
from discreet.errors import InvalidParameter, shown
from discreet.ledger import admission as caps
from discreet.ledger.books import Standing
from discreet.ledger.journal import Journal
from discreet.ledger.people import AUDITOR, CURATOR, Analyst, Key, aware

ROLES = (CURATOR, "analyst", AUDITOR)
_NAME = re.compile(r"[^\W_][\w.@+-]{0,63}")


class Enrolment:
    """The analysts of one dataset."""

    def __init__(self, journal: Journal, dataset: str) -> None:
        self._journal = journal
        self.dataset = dataset

    def standing(self) -> Standing:
        """How the dataset stands, by the records read so far."""
        return self._journal.books.datasets[self.dataset]

    # --- analysts -----------------------------------------------------------------------------

    def add_analyst(
        self,
        name: str,
        *,
        role: str = "analyst",
        limit: Budget | None = None,
        expires: datetime | None = None,
    ) -> Analyst:
        """Let somebody ask; ``limit`` is what they may cost any one person."""
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise _wrong(
                f"{shown(name)} cannot be the name of an analyst", "use letters and digits"
            )
        if role not in ROLES:
            raise _wrong(f"{shown(role)} is not a role", f"use one of {', '.join(ROLES)}")
        analyst = Analyst(name, role, limit, aware(expires))
        with self._journal.writing() as writer:
            if name in self.standing().analysts:
                raise _wrong(f"analyst {name!r} is there already", "choose another name")
            writer.append("analyst", analyst.to_json(), dataset=self.dataset, analyst=name)
        return analyst

    def limit_analyst(self, name: str, limit: Budget | None) -> Analyst:
        """Change what an analyst may cost any one person; what was spent stays spent."""
        return self._changed(name, limit=limit)

    def disable_analyst(self, name: str) -> Analyst:
        """Let an analyst ask no more; what they paid for stays recorded."""
        return self._changed(name, disabled=True)

    def _changed(self, name: str, **change: Any) -> Analyst:
        if name == CURATOR:
            raise _wrong(
                "the curator has neither a limit nor an end", "limit the dataset: budget=..."
            )
        with self._journal.writing() as writer:
            analyst = replace(self._analyst(name), **change)
            writer.append("analyst", analyst.to_json(), dataset=self.dataset, analyst=name)
        return analyst

    def analyst(self, name: str) -> Analyst:
        """One analyst, or a refusal."""
        with self._journal.reading():
            return self._analyst(name)

    def _analyst(self, name: str) -> Analyst:
        found = self.standing().analysts.get(name)
        if found is None:
            raise caps.unknown_analyst(name)
        return found

    def analysts(self) -> tuple[Analyst, ...]:
        """Everybody who may or might ask, in the order in which they came."""
        with self._journal.reading():
            return tuple(self.standing().analysts.values())

    # --- keys ---------------------------------------------------------------------------------

    def add_key(
        self, analyst: str, *, key_id: str, digest: str, expires: datetime | None = None
    ) -> Key:
        """Record the digest of an analyst's key."""
        key = Key(key_id, analyst, digest, aware(expires))
        with self._journal.writing() as writer:
            self._analyst(analyst)
            if key_id in self.standing().keys:
                raise _wrong(f"key {key_id!r} is there already", "draw another key")
            record = writer.append("key", key.to_json(), dataset=self.dataset, analyst=analyst)
        return replace(key, at=record.time)

    def revoke_key(self, key_id: str) -> None:
        """Make a key open nothing any more."""
        with self._journal.writing() as writer:
            key = self.standing().keys.get(key_id)
            if key is None:
                raise _wrong(f"there is no key {shown(key_id)}", "list them: account.keys()")
            if not key.revoked:
                content = {"key_id": key_id}
                writer.append("revoke", content, dataset=self.dataset, analyst=key.analyst)

    def key(self, key_id: str) -> Key | None:
        """One key, by its public part."""
        with self._journal.reading():
            return self.standing().keys.get(key_id)

    def keys(self) -> tuple[Key, ...]:
        """All keys, revoked ones too."""
        with self._journal.reading():
            return tuple(self.standing().keys.values())


def _wrong(what: str, fix: str) -> InvalidParameter:
    return InvalidParameter(
        "P4",
        f"{what}.",
        why="what each asker costs the people in the data is counted under one name.",
        fix=f"{fix}.",
    )
