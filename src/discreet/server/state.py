"""The server's own state: every dataset it serves, the log, the counters."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.curate.session import DATASET, Session
from discreet.errors import AccessRefusal, LedgerRefusal, SchemaRefusal
from discreet.ledger import Account
from discreet.ledger.keys import Caller, identify, identify_all
from discreet.server.dataset import Dataset
from discreet.server.limits import Lineage, Rate, Strangers
from discreet.server.log import Log
from discreet.server.metrics import Metrics
from discreet.server.readings import ReadRequests

if TYPE_CHECKING:
    from discreet.server.sign_in.flow import SignIn

GRACE_S = 10.0
"""How long questions under way are waited for when the server stops."""


class ServerState:
    """Everything that one server holds."""

    def __init__(
        self,
        sessions: Sequence[Session],
        *,
        log: Log | None = None,
        signing_key: Path | None = None,
    ) -> None:
        self.log = log or Log()
        self.signing_key = signing_key
        self.metrics = Metrics()
        self.rate = Rate(per_minute=600, burst=120)
        self.renewals = Rate(per_minute=1, burst=10, said="this key was renewed too often.")
        self.lineage = Lineage()
        self.strangers = Strangers(per_minute=300, burst=300)
        self.visitors = Rate(
            per_minute=600, burst=300, said="this address has asked too often without a key."
        )
        self.datasets: Mapping[str, Dataset] = {
            name: Dataset(
                name, session, log=self.log, metrics=self.metrics, started=self._tell_if_ready
            )
            for name, session in name_sessions(sessions).items()
        }
        self.read = ReadRequests()
        self.signing_in = self._prepare_sign_in(name_sessions(sessions))
        self.open = False
        self._told = False

    def _prepare_sign_in(self, sessions: Mapping[str, Session]) -> SignIn | None:
        """Signing in with a provider, if a session says so; else nothing of it is imported."""
        if not any("sign_in" in session.settings for session in sessions.values()):
            return None
        from discreet.server.sign_in.flow import SignIn

        return SignIn.of(sessions, self.accounts)

    @property
    def accounts(self) -> dict[str, Account]:
        """The account of each dataset."""
        return {name: dataset.account for name, dataset in self.datasets.items()}

    def identify(self, key: str | None) -> Caller:
        """The holder of ``key``, or a refusal."""
        return identify(self.accounts, key)

    def identify_all(self, keys: Sequence[str | None]) -> list[Caller | AccessRefusal]:
        """The holder of each, or its refusal; in order."""
        return identify_all(self.accounts, keys)

    def start(self) -> None:
        """Start the engine processes."""
        for dataset in self.datasets.values():
            dataset.open()
        self.open = True
        self.log.write("started", datasets=len(self.datasets))

    def _tell_if_ready(self) -> None:
        """Write in the log, once, that every dataset can be asked."""
        if self.ready and not self._told:
            self._told = True
            self.log.write("ready", datasets=len(self.datasets))

    async def stop(self) -> None:
        """Take nothing new; finish what is under way, or leave it resumable."""
        self.open = False
        self.log.write("stopping")
        await asyncio.gather(*(dataset.close(GRACE_S) for dataset in self.datasets.values()))
        self.log.write("stopped")

    def measure(self) -> None:
        """Bring the gauges up to date."""
        self.metrics.set("discreet_ready", float(self.ready))
        for name, dataset in self.datasets.items():
            waiting = dataset.jobs.waiting
            self.metrics.set("discreet_questions_waiting", waiting, dataset=name)

    def accounts_open(self) -> bool:
        """Whether every ledger can be read; one that has stopped cannot."""
        try:
            for dataset in self.datasets.values():
                dataset.account.analysts()
        except LedgerRefusal:
            return False
        return True

    @property
    def ready(self) -> bool:
        """Whether every dataset can be asked."""
        return self.open and all(dataset.pool.ready for dataset in self.datasets.values())


def name_sessions(sessions: Sequence[Session]) -> dict[str, Session]:
    """Each session under the name it is served by: its dataset's, or its directory's."""
    found: dict[str, Session] = {}
    for session in sessions:
        plain = session.dataset == DATASET
        name = session.directory.resolve().name if plain else session.dataset
        if name in found or not name.isprintable() or "/" in name:
            raise SchemaRefusal(
                "S2",
                f"two sessions would be served as {name!r}."
                if name in found
                else f"{name!r} cannot be part of an address.",
                why="a question must go to the people it is about.",
                fix='name the dataset in its discreet.toml: [ledger] dataset = "clinic".',
            )
        found[name] = session
    return found
