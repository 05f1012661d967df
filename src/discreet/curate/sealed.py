"""Where the secrets of runs are kept: sealed, outside the ledger, each until its round is over.

A noisy threshold that became known would make every verdict of its round worthless as a secret.
It is encrypted (AES-GCM) with a key that lies in the same folder and in no copy of the ledger,
bound to one run and one round, written durably before anything is told that depends on it, and
overwritten and removed when that round is over.  A curator without a folder keeps secrets in
memory: when the process ends, its open runs are lost, and closed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import LedgerRefusal
from discreet.ledger.store import sync_folder
from discreet.noise.entropy import random_bytes

if TYPE_CHECKING:
    from discreet.mechanisms.sparse.run import NoisyThreshold

_KEY_BYTES, _NONCE_BYTES = 32, 12
_KEY = "key"


class Sealed:
    """The secrets of the open runs of one ledger, called ``identity``."""

    def __init__(self, folder: Path | None, identity: str) -> None:
        self._folder = folder
        self.folder = folder
        """Where secrets are kept; None in memory."""
        self._identity = identity
        self._kept: dict[tuple[int, int], NoisyThreshold] = {}

    def load(self, run: int, turn: int) -> NoisyThreshold | None:
        """The secret of one round of a run; None if there is none that can be read."""
        if self._folder is None:
            return self._kept.get((run, turn))
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        from discreet.mechanisms.sparse.run import NoisyThreshold

        try:
            sealed = self._file(run, turn).read_bytes()
            key = (self._folder / _KEY).read_bytes()
            opened = AESGCM(key).decrypt(
                sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], self._name_place(run, turn)
            )
        except (OSError, ValueError, InvalidTag):
            return None
        return NoisyThreshold(int.from_bytes(opened, "big", signed=True))

    def keep(self, run: int, turn: int, secret: NoisyThreshold) -> NoisyThreshold:
        """Keep the secret of a round, durably, before it is used; the first one kept is the one.

        Another process may have been faster; then its secret is returned, and this one forgotten.
        """
        if self._folder is None:
            return self._kept.setdefault((run, turn), secret)
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            nonce = random_bytes(_NONCE_BYTES)
            plain = secret.reveal().to_bytes(16, "big", signed=True)
            cipher = AESGCM(self._find_key(self._folder))
            sealed = nonce + cipher.encrypt(nonce, plain, self._name_place(run, turn))
            _write_once(self._file(run, turn), sealed)
        except OSError:
            raise _unwritable() from None
        kept = self.load(run, turn)
        if kept is None:
            raise _unwritable()
        return kept

    def erase(self, run: int, turn: int) -> None:
        """Forget the secret of a round that is over.

        Where the disk does not let it be erased it stays sealed, and is never used again: its
        round is over by the ledger.
        """
        self._kept.pop((run, turn), None)
        if self._folder is None:
            return
        file = self._file(run, turn)
        with suppress(OSError):
            size = file.stat().st_size
            with file.open("r+b") as stream:
                stream.write(random_bytes(size))
                stream.flush()
                os.fsync(stream.fileno())
        with suppress(OSError):
            file.unlink()
            sync_folder(file.parent)

    def sweep(self, run: int, turn: int | None) -> None:
        """Forget what a process that died left of a run: all but the round ``turn``, if any."""
        for place in [kept for kept in self._kept if kept[0] == run and kept[1] != turn]:
            self.erase(*place)
        if self._folder is None:
            return
        mine = None if turn is None else self._file(run, turn).name
        for file in self._folder.glob(f"{run}-*.sealed"):
            if file.name != mine:
                self.erase(run, int(file.stem.split("-")[1]))
        for draft in self._folder.glob(f".{run}-*.sealed.*"):
            with suppress(OSError):
                draft.unlink()

    def _file(self, run: int, turn: int) -> Path:
        if self._folder is None:
            raise TypeError("these secrets are in memory")
        return self._folder / f"{run}-{turn}.sealed"

    def _name_place(self, run: int, turn: int) -> bytes:
        """What a secret is sealed for: moved to another run, or round, it cannot be opened."""
        return f"{self._identity}/{run}/{turn}".encode()

    def _find_key(self, folder: Path) -> bytes:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = folder / _KEY
        if not file.exists():
            _write_once(file, random_bytes(_KEY_BYTES))
        return file.read_bytes()


def _write_once(file: Path, content: bytes) -> None:
    """Write a file that only its owner can read: all of it, on the disk, unless it is there."""
    draft = file.with_name(f".{file.name}.{random_bytes(4).hex()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        with suppress(FileExistsError):
            os.link(draft, file)
        sync_folder(file.parent)
    finally:
        draft.unlink(missing_ok=True)


def _unwritable() -> LedgerRefusal:
    return LedgerRefusal(
        "L5",
        "the secret of a run could not be written.",
        why="without it the run could not go on, and what it told before would be told anew.",
        fix="see to the disk beside the ledger, and ask again: nothing was told.",
    )


__all__ = ["Sealed"]
