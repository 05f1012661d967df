"""A connection to the empty PostgreSQL: one statement at a time, its result as bytes.

Each statement is parsed, bound, described and run under no name, so nothing of one is
left for the next, and a cursor is cut from rows that are here already.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from discreet.server.postgres import wire
from discreet.server.postgres.catalogue import ROLE, STATEMENT_TIME_MS
from discreet.server.postgres.reports import Said

MOST_RESULT = 8 * 1024 * 1024
"""Bytes of one result."""
_MOST_MESSAGE = 4 * 1024 * 1024
_TIME_S = STATEMENT_TIME_MS / 1000 + 5


class Failed(Exception):
    """PostgreSQL's own error, as it is relayed."""

    def __init__(self, message: bytes) -> None:
        super().__init__("an error of the catalogue")
        self.message = message

    @property
    def state(self) -> str:
        """Its SQLSTATE."""
        for part in self.message[5:].split(b"\0"):
            if part[:1] == b"C":
                return part[1:].decode("ascii", "replace")
        return ""


@dataclass(slots=True)
class Result:
    """What a statement gave."""

    description: bytes = wire.NO_DATA
    parameters: tuple[int, ...] = ()
    rows: list[bytes] = field(default_factory=list)
    notices: list[bytes] = field(default_factory=list)
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Bind:
    """The parameters of a statement as the client sent them, and the formats of its result."""

    oids: tuple[int, ...] = ()
    formats: tuple[int, ...] = ()
    values: tuple[bytes | None, ...] = ()
    results: tuple[int, ...] = ()

    def message(self) -> bytes:
        """The message."""
        out = [b"\0\0", _shorts(self.formats), struct.pack(">H", len(self.values))]
        for value in self.values:
            out.append(struct.pack(">i", -1 if value is None else len(value)) + (value or b""))
        return wire.frame(b"B", b"".join([*out, _shorts(self.results)]))


def _shorts(numbers: Sequence[int]) -> bytes:
    return struct.pack(f">H{len(numbers)}h", len(numbers), *numbers)


class Relay:
    """A connection to the empty server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.version = ""
        """PostgreSQL's version, as clients are told it."""

    @classmethod
    async def open(
        cls, socket: str, database: str, *, user: str = ROLE, typing: bool = False
    ) -> Relay:
        """Connect; for ``typing`` statements are only parsed, and may name the declared tables."""
        try:
            reader, writer = await asyncio.open_unix_connection(socket, limit=_MOST_MESSAGE)
        except OSError:
            raise _away() from None
        relay = cls(reader, writer)
        told = {"user": user, "database": database, "client_encoding": "UTF8"}
        if typing:
            told["options"] = "-c row_security=on"
        body = b"".join(wire.string(k) + wire.string(v) for k, v in told.items()) + b"\0"
        start = struct.pack(">i", wire.PROTOCOL) + body
        writer.write(struct.pack(">i", len(start) + 4) + start)
        try:
            await relay._collect(Result())
        except BaseException:
            relay.close()
            raise
        return relay

    async def run(self, text: str, bind: Bind) -> Result:
        """The whole result of a statement."""
        return await self._ask(_parse(text, bind.oids), bind.message(), _DESCRIBE_P, _EXECUTE)

    async def run_script(self, text: str) -> None:
        """Statements of our own, all or none."""
        self._writer.write(wire.frame(b"Q", wire.string(text)))
        await self._collect(Result())

    async def describe(self, text: str, oids: Sequence[int]) -> Result:
        """The types of a statement's parameters and columns; it is not run."""
        return await self._ask(_parse(text, oids), _DESCRIBE_S)

    async def describe_bound(self, text: str, bind: Bind) -> Result:
        """The columns of a bound statement; it is not run."""
        return await self._ask(_parse(text, bind.oids), bind.message(), _DESCRIBE_P)

    async def _ask(self, *messages: bytes) -> Result:
        self._writer.write(b"".join([*messages, _SYNC]))
        result = Result()
        await self._collect(result)
        return result

    async def _collect(self, result: Result) -> None:
        """Read until PostgreSQL is ready for more."""
        failed: Failed | None = None
        size = 0
        try:
            async with asyncio.timeout(_TIME_S):
                while True:
                    message = await wire.read_message(self._reader, most=_MOST_MESSAGE)
                    whole = wire.frame(message.kind, message.body)
                    size += len(whole)
                    if size > MOST_RESULT:
                        raise _too_large()
                    if message.kind == b"Z":
                        break
                    if message.kind == b"E":
                        failed = Failed(whole)
                    else:
                        self._take(message, whole, result)
        except (wire.Broken, TimeoutError):
            self.close()
            raise _away() from None
        except BaseException:
            self.close()
            raise
        if failed is not None:
            raise failed

    def _take(self, message: wire.Message, whole: bytes, result: Result) -> None:
        match message.kind:
            case b"D":
                result.rows.append(whole)
            case b"T":
                result.description = whole
            case b"t":
                count = struct.unpack(">H", message.body[:2])[0]
                result.parameters = struct.unpack(f">{count}I", message.body[2:])
            case b"N":
                result.notices.append(whole)
            case b"C":
                result.tag = message.body[:-1].decode("utf-8", "replace")
            case b"S" if message.body.startswith(b"server_version\0"):
                self.version = message.body.split(b"\0")[1].decode("ascii", "replace")
            case b"G" | b"H" | b"W":  # a copy, which nobody may begin
                raise _away()
            case _:
                pass

    @property
    def closed(self) -> bool:
        """Whether it can no longer be asked."""
        return self._writer.is_closing() or self._reader.at_eof()

    def close(self) -> None:
        """Let go of it."""
        with suppress(OSError, RuntimeError):
            self._writer.close()


def _parse(text: str, oids: Sequence[int]) -> bytes:
    types = struct.pack(f">H{len(oids)}I", len(oids), *oids)
    return wire.frame(b"P", b"\0" + wire.string(text) + types)


_DESCRIBE_S = wire.frame(b"D", b"S\0")
_DESCRIBE_P = wire.frame(b"D", b"P\0")
_EXECUTE = wire.frame(b"E", b"\0" + struct.pack(">i", 0))
_SYNC = wire.frame(b"S")


def _away() -> Said:
    return Said(
        "58000",
        "the catalogue cannot be asked now.",
        "no person's data is involved.",
        "try again in a moment.",
    )


def _too_large() -> Said:
    return Said(
        "54000",
        f"the catalogue's result has more than {MOST_RESULT:,} bytes.",
        "no person's data is involved.",
        "ask for fewer rows.",
    )
