"""Messages of PostgreSQL's protocol, version 3: read within bounds, written."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from discreet.server.postgres.types import Field
from discreet.server.settings import BODY_TIME_S, MOST_BODY

MOST_MESSAGE = MOST_BODY
PROTOCOL, SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 196608, 80877103, 80877104, 80877102


class Broken(Exception):
    """The client does not speak the protocol, or has gone: nothing more can be said to it."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message; ``kind`` is its letter."""

    kind: bytes
    body: bytes


async def read_start(reader: asyncio.StreamReader) -> bytes:
    """The body of a first message, which has no letter."""
    (length,) = struct.unpack(">i", await _exactly(reader, 4))
    if not 8 <= length <= 10_000:
        raise Broken
    return await _exactly(reader, length - 4)


async def read_message(reader: asyncio.StreamReader, *, most: int = MOST_MESSAGE) -> Message:
    """The next message; once begun it must arrive soon."""
    kind = await _exactly(reader, 1)
    try:
        async with asyncio.timeout(BODY_TIME_S):
            (length,) = struct.unpack(">i", await _exactly(reader, 4))
            if not 4 <= length <= most + 4:
                raise Broken
            return Message(kind, await _exactly(reader, length - 4))
    except TimeoutError:
        raise Broken from None


async def _exactly(reader: asyncio.StreamReader, count: int) -> bytes:
    try:
        return await reader.readexactly(count)
    except (asyncio.IncompleteReadError, ConnectionError, OSError):
        raise Broken from None


class Body:
    """Reads the parts of a message; one that ends too soon, or too late, is broken."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def text(self) -> str:
        """Text up to its zero byte."""
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise Broken
        found = self._body[self._at : end]
        self._at = end + 1
        try:
            return found.decode("utf-8")
        except UnicodeDecodeError:
            raise Broken from None

    def short(self) -> int:
        """A whole number of two bytes."""
        return int(struct.unpack(">h", self.some(2))[0])

    def count(self) -> int:
        """How many things follow."""
        return int(struct.unpack(">H", self.some(2))[0])

    def number(self) -> int:
        """A whole number of four bytes."""
        return int(struct.unpack(">i", self.some(4))[0])

    def some(self, count: int) -> bytes:
        """So many bytes."""
        if count < 0 or self._at + count > len(self._body):
            raise Broken
        found = self._body[self._at : self._at + count]
        self._at += count
        return found

    def rest(self) -> bytes:
        """All that is left."""
        return self.some(len(self._body) - self._at)

    def end(self) -> None:
        """Nothing may be left."""
        if self._at != len(self._body):
            raise Broken


# --- what is sent -------------------------------------------------------------------------------


def frame(kind: bytes, body: bytes = b"") -> bytes:
    """A message as it is sent."""
    return kind + struct.pack(">i", len(body) + 4) + body


def string(text: str) -> bytes:
    """Text with its zero byte; a zero inside would end it early."""
    return text.replace("\0", "").encode("utf-8", "replace") + b"\0"


def authentication(code: int, data: bytes = b"") -> bytes:
    """A step of the authentication."""
    return frame(b"R", struct.pack(">i", code) + data)


def parameter_status(name: str, value: str) -> bytes:
    """A setting that clients follow."""
    return frame(b"S", string(name) + string(value))


def ready(state: str) -> bytes:
    """Ready for the next question: idle (I), in a transaction (T), in a failed one (E)."""
    return frame(b"Z", state.encode())


def row_description(fields: Sequence[Field], formats: Sequence[int]) -> bytes:
    """The columns of the rows that follow."""
    body = [struct.pack(">h", len(fields))]
    for number, field in enumerate(fields):
        binary = format_of(formats, number)
        about = struct.pack(">ihihih", 0, 0, field.oid, field.size, -1, binary)
        body.append(string(field.name) + about)
    return frame(b"T", b"".join(body))


def format_of(formats: Sequence[int], column: int) -> int:
    """The format of a column: one for each, one for all, or text."""
    if not formats:
        return 0
    return formats[0] if len(formats) == 1 else formats[column]


def parameter_description(oids: Iterable[int]) -> bytes:
    """The types of a statement's parameters."""
    found = list(oids)
    return frame(b"t", struct.pack(f">H{len(found)}I", len(found), *found))


def data_row(values: Sequence[bytes | None]) -> bytes:
    """One row."""
    body = [struct.pack(">h", len(values))]
    for value in values:
        body.append(struct.pack(">i", -1 if value is None else len(value)) + (value or b""))
    return frame(b"D", b"".join(body))


def complete(tag: str) -> bytes:
    """A statement is done."""
    return frame(b"C", string(tag))


def report(kind: bytes, said: Mapping[str, str]) -> bytes:
    """An error (E) or a notice (N), with its parts by their letters."""
    return frame(kind, b"".join(k.encode() + string(v) for k, v in said.items() if v) + b"\0")


NO_DATA = frame(b"n")
PARSED = frame(b"1")
BOUND = frame(b"2")
CLOSED = frame(b"3")
SUSPENDED = frame(b"s")
EMPTY = frame(b"I")
