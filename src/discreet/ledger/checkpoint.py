"""Checkpoints: what the ledger said at one moment, signed, kept where the ledger is not.

Whoever holds a checkpoint can tell later whether a ledger still contains everything up to it.  The
signature (Ed25519) is made with a key that is never in the database.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from discreet.errors import LedgerRefusal
from discreet.exact.numbers import canonical_json
from discreet.exact.records import dataclass
from discreet.ledger import refusals
from discreet.ledger.books import Record
from discreet.ledger.store import sync_folder
from discreet.noise.entropy import random_bytes

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SigningKey: TypeAlias = "Ed25519PrivateKey | Path | str | bytes"
"""A key, the file that holds it, or its PEM."""

_SAID = ("ledger", "sequence", "digest", "at", "public_key")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The number and digest of the last record, signed.

    ``ledger`` is the ledger's own name, drawn at random when it began; ``sequence`` and ``digest``
    are the record's, written ``at`` that time; ``signature`` is by the key of which ``public_key``
    is the public part.
    """

    ledger: str
    sequence: int
    digest: str
    at: str
    public_key: str
    signature: str

    @classmethod
    def sign(cls, ledger: str, last: Record, key: SigningKey) -> Checkpoint:
        """A checkpoint of ``ledger`` as of ``last``, signed with ``key``."""
        private = load_signing_key(key)
        public = private.public_key().public_bytes_raw().hex()
        unsigned = cls(ledger, last.sequence, last.digest, last.at, public, "")
        return cls(
            *(ledger, last.sequence, last.digest, last.at, public),
            private.sign(unsigned._message()).hex(),
        )

    @property
    def is_genuine(self) -> bool:
        """Whether the signature is that of the public key on what the checkpoint says."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.public_key))
            public.verify(bytes.fromhex(self.signature), self._message())
        except (ValueError, InvalidSignature):
            return False
        return True

    def names(self, record: Record | None) -> bool:
        """Whether ``record`` is the one this checkpoint was made of."""
        return record is not None and (record.sequence, record.digest) == (
            self.sequence,
            self.digest,
        )

    def _message(self) -> bytes:
        said = {name: getattr(self, name) for name in _SAID}
        return b"discreet checkpoint 1\n" + canonical_json(said).encode()

    def to_json(self) -> dict[str, Any]:
        """The checkpoint as it is written to a file."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: object) -> Checkpoint:
        """The checkpoint ``found`` in a file; refused unless its signature is genuine."""
        if (
            isinstance(found, dict)
            and set(found) == set(cls.__slots__)
            and type(found["sequence"]) is int
            and all(isinstance(v, str) for k, v in found.items() if k != "sequence")
        ):
            checkpoint = cls(**found)
            if checkpoint.is_genuine:
                return checkpoint
        raise untrusted_refusal("a checkpoint is damaged or its signature is false.")


def untrusted_refusal(what: str, fix: str = "") -> LedgerRefusal:
    """A checkpoint that proves nothing, or proves the ledger wrong."""
    return LedgerRefusal(
        "L8",
        what,
        why="a checkpoint shows that no charge was taken out of the account; a false one shows "
        "nothing.",
        fix=fix or "use the file as it was written, or another checkpoint of the same ledger.",
    )


# --- files -------------------------------------------------------------------------------------


def read(path: Path) -> tuple[Checkpoint, ...]:
    """The checkpoints of a file, or of every file of a folder, oldest first."""
    if not path.exists():
        fix = "name a file of `discreet ledger checkpoint`, or the folder of such files."
        raise untrusted_refusal(f"there is no file {path}.", fix)
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    found = []
    for file in files:
        try:
            found.append(Checkpoint.from_json(json.loads(file.read_text(encoding="utf-8"))))
        except (OSError, ValueError) as error:
            if isinstance(error, LedgerRefusal):
                raise
            raise untrusted_refusal(f"{file} cannot be read as a checkpoint.") from None
    return tuple(sorted(found, key=lambda checkpoint: checkpoint.sequence))


def write(checkpoint: Checkpoint, folder: Path) -> Path:
    """Put a checkpoint into a folder: all of it, or none of it, also if the power fails."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{checkpoint.sequence:012d}.json"
    write_durably(file, canonical_json(checkpoint.to_json()).encode())
    return file


def write_durably(file: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a file under another name, wait for the disk, then give it its name."""
    draft = file.with_name(f".{file.name}.{random_bytes(4).hex()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(file)
        sync_folder(file.parent)
    except OSError:
        raise refusals.cannot_open(
            f"{file} cannot be written.", "give a place that can be written to."
        ) from None


def find_newest(found: Iterable[Checkpoint]) -> Checkpoint | None:
    """The checkpoint that knows most."""
    return max(found, key=lambda checkpoint: checkpoint.sequence, default=None)


# --- keys --------------------------------------------------------------------------------------


def new_signing_key(file: Path) -> str:
    """Draw a key, write it to a new ``file`` for its owner alone, and return its public half."""
    if file.exists():
        lost = "a signing key that is overwritten signs no checkpoint any more."
        raise refusals.exists(file, lost=lost)
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    private = Ed25519PrivateKey.from_private_bytes(random_bytes(32))
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write_durably(file, pem, mode=0o600)
    return private.public_key().public_bytes_raw().hex()


def load_signing_key(key: SigningKey) -> Ed25519PrivateKey:
    """The key itself."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if isinstance(key, Ed25519PrivateKey):
        return key
    if not isinstance(key, bytes) and not Path(key).exists():
        fix = f"name the file of the signing key, or make one: `discreet ledger key {key}`."
        raise untrusted_refusal(f"there is no file {key}.", fix)
    try:
        pem = key if isinstance(key, bytes) else Path(key).read_bytes()
        found = load_pem_private_key(pem, password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm):
        found = None
    if not isinstance(found, Ed25519PrivateKey):
        raise untrusted_refusal("the signing key cannot be read.")
    return found
