"""Proof of a key that is never sent: the server's side of SCRAM-SHA-256 (RFC 5802, RFC 7677).

Over TLS the channel is part of the proof (``tls-server-end-point``) if the client can
do it, so somebody in between who has another certificate proves nothing; and a client
that says it can, and was told that we cannot, has been lied to on the way: refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from discreet.ledger.verifiers import ITERATIONS, SALT
from discreet.server.postgres.reports import refuse_key

PLAIN, PLUS = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"
_FIRST = re.compile(r"(?P<flag>[ny]|p=tls-server-end-point),(?P<who>[^,]*),(?P<bare>.*)", re.DOTALL)
_BARE = re.compile(r"n=[^,]*,r=(?P<nonce>[\x21-\x2b\x2d-\x7e]{8,256})")
_FINAL = re.compile(r"(?P<bare>c=(?P<channel>[A-Za-z0-9+/=]+),r=(?P<nonce>[^,]+)),p=(?P<proof>.+)")


def end_point(certificate: Path | None) -> bytes | None:
    """The hash of the server's certificate that names the channel (RFC 5929)."""
    if certificate is None:
        return None
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    found = x509.load_pem_x509_certificates(certificate.read_bytes())[0]
    used = found.signature_hash_algorithm
    name = "sha256" if used is None or used.name in ("md5", "sha1") else used.name
    return hashlib.new(name, found.public_bytes(Encoding.DER)).digest()


@dataclass(slots=True)
class Exchange:
    """One log-in; ``channel`` is the hash of our certificate, if the line is encrypted."""

    nonce: str
    channel: bytes | None
    _bound: bytes = b""
    _first: str = ""
    _challenge: str = ""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """What is offered."""
        return (PLUS, PLAIN) if self.channel is not None else (PLAIN,)

    def begin(self, mechanism: str, message: bytes) -> bytes:
        """The challenge to a client's first message."""
        found = _FIRST.fullmatch(_decode(message))
        bare = None if found is None else _BARE.fullmatch(found["bare"])
        if found is None or bare is None or found["who"] or mechanism not in self.mechanisms:
            raise refuse_key()
        flag = found["flag"]
        if flag.startswith("p") != (mechanism == PLUS) or (flag == "y" and self.channel):
            raise refuse_key()
        self._bound = f"{flag},,".encode() + (self.channel or b"" if mechanism == PLUS else b"")
        self._first = found["bare"]
        self.nonce = bare["nonce"] + self.nonce
        salt = base64.b64encode(SALT).decode()
        self._challenge = f"r={self.nonce},s={salt},i={ITERATIONS}"
        return self._challenge.encode()

    def finish(self, message: bytes) -> tuple[bytes, bytes]:
        """The proof in a client's last message, and what it must prove."""
        found = _FINAL.fullmatch(_decode(message))
        if found is None or found["nonce"] != self.nonce:
            raise refuse_key()
        try:
            channel = base64.b64decode(found["channel"], validate=True)
            proof = base64.b64decode(found["proof"], validate=True)
        except (binascii.Error, ValueError):
            raise refuse_key() from None
        if channel != self._bound:
            raise refuse_key()
        return proof, ",".join([self._first, self._challenge, found["bare"]]).encode()


def _decode(message: bytes) -> str:
    try:
        return message.decode("utf-8")
    except UnicodeDecodeError:
        raise refuse_key() from None
