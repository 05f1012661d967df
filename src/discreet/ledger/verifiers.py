"""What a ledger keeps of a key so that its holder can prove to have it without sending it.

SCRAM-SHA-256 (RFC 5802, RFC 7677), as PostgreSQL's clients speak it.  The salt is
the same for all keys: a salt makes tables of common passwords useless, and a key is
256 random bits, of which there is no table.  So one challenge serves all keys of an
analyst, and a name that nobody has is challenged like any other.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass

ITERATIONS = 4096
SALT = hashlib.sha256(b"discreet SCRAM-SHA-256").digest()[:16]
_NAME = "SCRAM-SHA-256"


@dataclass(frozen=True, slots=True)
class Verifier:
    """StoredKey and ServerKey of RFC 5802: they check a proof, and cannot make one."""

    stored: bytes
    server: bytes

    @classmethod
    def of(cls, key: str) -> Verifier:
        """The verifier of a key.

        >>> Verifier.parse(str(Verifier.of("pencil"))) == Verifier.of("pencil")
        True
        """
        salted = hashlib.pbkdf2_hmac("sha256", key.encode(), SALT, ITERATIONS)
        client = hmac.digest(salted, b"Client Key", "sha256")
        return cls(hashlib.sha256(client).digest(), hmac.digest(salted, b"Server Key", "sha256"))

    @classmethod
    def parse(cls, text: str) -> Verifier | None:
        """The verifier that was written so; None if it is of another kind."""
        name, _, rest = text.partition("$")
        how, _, keys = rest.partition("$")
        if name != _NAME or how != f"{ITERATIONS}:{_encode(SALT)}":
            return None
        stored, _, server = keys.partition(":")
        return cls(base64.b64decode(stored), base64.b64decode(server))

    def __str__(self) -> str:
        keys = f"{_encode(self.stored)}:{_encode(self.server)}"
        return f"{_NAME}${ITERATIONS}:{_encode(SALT)}${keys}"

    def __repr__(self) -> str:
        return "Verifier(withheld)"

    def check(self, proof: bytes, message: bytes) -> bytes | None:
        """The server's signature of ``message`` if ``proof`` was made with the key, else None."""
        mask = hmac.digest(self.stored, message, "sha256")
        if len(proof) != len(mask):
            return None
        client = bytes(a ^ b for a, b in zip(proof, mask, strict=True))
        if not hmac.compare_digest(hashlib.sha256(client).digest(), self.stored):
            return None
        return hmac.digest(self.server, message, "sha256")


def _encode(some: bytes) -> str:
    return base64.b64encode(some).decode()


__all__ = ["ITERATIONS", "SALT", "Verifier"]
