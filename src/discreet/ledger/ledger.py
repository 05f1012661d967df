"""A ledger: the accounts of all datasets in one append-only, tamper-evident log."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from discreet.accounting.budget import Budget
from discreet.ledger import checkpoint as checkpoints
from discreet.ledger import copies, refusals
from discreet.ledger.account import Account
from discreet.ledger.analysts import Policy
from discreet.ledger.books import Record
from discreet.ledger.checkpoint import Checkpoint, SigningKey
from discreet.ledger.connection import find_file
from discreet.ledger.declaration import DatasetDeclaration
from discreet.ledger.journal import Clock, Journal, utc_now
from discreet.ledger.store import Store
from discreet.question.schema import Schema
from discreet.question.schema.tables import check_name

if TYPE_CHECKING:
    from discreet.ledger.verify import Verification


class Ledger:
    """The accounts of all datasets; open it with ``Ledger.open``.

    It stands on a ``journal``, and must agree with the checkpoints it is ``shown``.

    >>> schema = Schema.from_text('''
    ... [tables.visits]
    ... unit = "patient"
    ... columns.patient = "integer"
    ... ''')
    >>> with Ledger.open("sqlite://") as ledger:
    ...     account = ledger.account("clinic", schema=schema, budget=Budget(epsilon=3))
    ...     analyst = account.add_analyst("ana", limit=Budget(epsilon=2))
    ...     print(str(ledger.verify())[:24])
    4 records, all in order;
    """

    def __init__(self, journal: Journal, *, shown: Path | None = None) -> None:
        self._journal = journal
        self._shown = shown
        self._check_checkpoints(checkpoints.find_newest(self.checkpoints()))

    @classmethod
    def open(
        cls,
        address: str | Path,
        *,
        checkpoint: Path | None = None,
        create: bool = True,
        clock: Clock = utc_now,
    ) -> Ledger:
        """Open the ledger at ``address``, or begin one.

        A path is a SQLite file, ``sqlite://`` is in memory and
        ``postgresql+psycopg://user@host/database`` is a server.  Refused if the ledger
        lacks anything that a checkpoint knows of: those in the folder beside a
        file, and ``checkpoint``, a file or a folder.  With ``create=False`` a ledger
        that is not there is refused, too.  ``clock`` tells the time of records.
        """
        path = find_file(address)
        missing = path is not None and create and not path.exists()
        if create and _read_checkpoints(
            None if path is None else _checkpoint_folder(path), checkpoint
        ):
            if missing:
                raise copies.behind_refusal("the ledger is gone; its checkpoints are still there.")
            create = False  # on a server neither
        if path is not None and missing:
            copies.begin(path, clock=clock)
        store = Store(address, create=create and path is None)
        try:
            return cls(Journal(store, clock=clock, begin=create and path is None), shown=checkpoint)
        except BaseException:
            store.close()
            raise

    def close(self) -> None:
        """Let go of the database; whatever was charged or published is there already."""
        self._journal.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def identity(self) -> str:
        """The ledger's own name, drawn at random when it began."""
        return self._journal.books.identity

    # --- accounts -----------------------------------------------------------------------------

    def account(
        self, dataset: str, *, schema: Schema, budget: Budget, policy: Policy | None = None
    ) -> Account:
        """The account of a ``dataset``; what is new or has changed is recorded, never reset.

        ``schema`` says whom it protects, ``budget`` what they may lose, and ``policy`` who may
        spend how much of it.
        """
        check_name(dataset, "dataset")
        declared = DatasetDeclaration.of(
            dataset, schema=schema, budget=budget, policy=policy or Policy()
        )
        former = None
        if not declared.is_recorded(self._journal.catch_up()):
            with self._journal.writing() as writer:
                former = declared.record(self._journal.books, writer)
        return Account(self._journal, dataset, declared.space, former_budget=former)

    def datasets(self) -> tuple[str, ...]:
        """The names of all datasets."""
        return tuple(self._journal.catch_up().datasets)

    # --- evidence -----------------------------------------------------------------------------

    def records(self, *, after: int = 0, limit: int | None = None) -> tuple[Record, ...]:
        """The records after number ``after``, in order; at most ``limit``."""
        return tuple(self._journal.store.since(after + 1, limit))

    @property
    def last(self) -> int:
        """The number of the newest record."""
        with self._journal.reading() as books:
            newest = books.last
        return 0 if newest is None else newest.sequence

    @property
    def folder(self) -> Path | None:
        """Where checkpoints are kept beside a file; None in memory and on a server."""
        path = self._journal.store.path
        return None if path is None else _checkpoint_folder(path)

    @property
    def secrets(self) -> Path | None:
        """Where the secrets of runs are kept beside a file; None in memory and on a server.

        No copy, export or backup of the ledger holds them.
        """
        path = self._journal.store.path
        return None if path is None else path.with_name(path.name + ".runs")

    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """The checkpoints beside the ledger, and those it was shown, oldest first."""
        return _read_checkpoints(self.folder, self._shown)

    def checkpoint(self, key: SigningKey, *, folder: Path | None = None) -> Checkpoint:
        """Sign the last record with ``key``, and keep the checkpoint.

        It is kept beside the ledger, or in ``folder``.  Give a copy to somebody who does not hold
        the ledger: an auditor.
        """
        private = checkpoints.load_signing_key(key)
        with self._journal.writing() as writer:
            last = self._journal.books.last
            if last is None:
                raise refusals.corrupt("the ledger is empty.")
            made = Checkpoint.sign(self.identity, last, private)
            writer.append("checkpoint", made.to_json())
        path = folder or self.folder
        if path is not None:
            checkpoints.write(made, path)
        return made

    def _check_checkpoints(self, newest: Checkpoint | None) -> None:
        if newest is None:
            return
        if newest.ledger != self.identity:
            raise checkpoints.untrusted_refusal("the checkpoint is of another ledger.")
        if any(kept < newest.sequence <= lost for kept, lost in self._journal.books.restores):
            return  # a restoration has owned up to the loss, and counted it as spent
        if not newest.names(self._journal.store.record(newest.sequence)):
            raise copies.behind_refusal(
                "the ledger lacks records that its newest checkpoint knows of."
            )

    def verify(self, *, public_key: str | None = None) -> Verification:
        """Check everything from the first record to the last; says what is wrong, changes nothing.

        With ``public_key``, checkpoints that another key signed are reported.
        """
        from discreet.ledger.verify import verify_records

        store = self._journal.store
        return verify_records(
            store.batches(),
            answers=store.answers(),
            tallies=store.tallies(),
            checkpoints=self.checkpoints(),
            public_key=public_key,
        )

    @classmethod
    def examine(
        cls, address: str | Path, *, checkpoint: Path | None = None, public_key: str | None = None
    ) -> Verification:
        """``verify`` for a ledger that cannot be opened: says all that is wrong with it.

        ``address`` and ``checkpoint`` are those of :meth:`open`; ``public_key`` is whose
        checkpoints are trusted.
        """
        from discreet.ledger.verify import verify_records

        path = find_file(address)
        store = Store(address, create=False)
        try:
            return verify_records(
                store.batches(),
                answers=store.answers(),
                tallies=store.tallies(),
                checkpoints=_read_checkpoints(
                    None if path is None else _checkpoint_folder(path), checkpoint
                ),
                public_key=public_key,
            )
        finally:
            store.close()

    def export(self, file: Path, *, answers: bool = False) -> int:
        """Write all records to ``file`` as JSON lines, for an auditor; how many there are.

        Without the ``answers``, unless asked for: their digests are in the records.
        """
        return copies.export(self._journal.store, Path(file), answers=answers)

    def backup(self, file: Path) -> int:
        """Copy the ledger into a new SQLite ``file`` while in use; how many records it has."""
        return copies.back_up(self._journal.store, Path(file))

    @classmethod
    def restore(
        cls,
        address: str | Path,
        backup: Path,
        *,
        reason: str,
        checkpoint: Path | None = None,
        clock: Clock = utc_now,
    ) -> Ledger:
        """Begin again at ``address`` from a ``backup`` after a disk was lost, for a ``reason``.

        Nobody knows what was charged after the backup, except that it was within
        the admission.  So all of every budget counts as spent, in every block there
        was.  ``checkpoint`` are the newest known; the ledger then owns up to
        lacking what they name.  Blocks go on only by ``account.renew``, one by one
        and for a reason.  ``clock`` tells the time of records.
        """
        path = find_file(address)
        beside = (
            None
            if path is None or not _checkpoint_folder(path).exists()
            else _checkpoint_folder(path)
        )
        copies.restore(
            address, Path(backup), reason=reason, shown=checkpoint or beside, clock=clock
        )
        return cls.open(address, checkpoint=checkpoint, clock=clock)


def _read_checkpoints(beside: Path | None, shown: Path | None) -> tuple[Checkpoint, ...]:
    """All checkpoints there are, each once, oldest first; what is shown must be there."""
    found: dict[str, Checkpoint] = {}
    for path in (beside, shown):
        if path is not None and (path == shown or path.exists()):
            found |= {c.signature: c for c in checkpoints.read(path)}
    return tuple(sorted(found.values(), key=lambda checkpoint: checkpoint.sequence))


def _checkpoint_folder(path: Path) -> Path:
    """The folder of the checkpoints of a SQLite file."""
    return path.with_name(path.name + ".checkpoints")
