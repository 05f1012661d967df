"""PostgreSQL's protocol byte by byte, for what no real client would send."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from patience import PATIENCE_S
from scramp import ScramClient

SYNC = b"S\0\0\0\4"
QUIT = b"X\0\0\0\4"


def frame(kind: bytes, body: bytes = b"") -> bytes:
    """A message."""
    return kind + struct.pack(">i", len(body) + 4) + body


def query(text: str) -> bytes:
    """A simple query."""
    return frame(b"Q", text.encode() + b"\0")


def parse(text: str, *, name: bytes = b"", oids: tuple[int, ...] = ()) -> bytes:
    """Parse a statement."""
    types = struct.pack(f">H{len(oids)}I", len(oids), *oids)
    return frame(b"P", name + b"\0" + text.encode() + b"\0" + types)


def bind(*values: bytes | None, binary: bool = False, results: bool = False) -> bytes:
    """Bind the unnamed statement to the unnamed portal."""
    body = b"\0\0" + struct.pack(">Hh", 1, int(binary)) + struct.pack(">H", len(values))
    for value in values:
        body += struct.pack(">i", -1 if value is None else len(value)) + (value or b"")
    return frame(b"B", body + struct.pack(">Hh", 1, int(results)))


def execute(most: int = 0) -> bytes:
    """Run the unnamed portal."""
    return frame(b"E", b"\0" + struct.pack(">i", most))


DESCRIBE_STATEMENT, DESCRIBE_PORTAL = frame(b"D", b"S\0"), frame(b"D", b"P\0")


class Line:
    """A connection."""

    def __init__(self, port: int, *, tls: ssl.SSLContext | None = None) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self.key_data = b""
        if tls is not None:
            self._socket.sendall(struct.pack(">ii", 8, 80877103))
            assert self._socket.recv(1) == b"S"
            self._socket = tls.wrap_socket(self._socket)
        self._file = self._socket.makefile("rb")

    def send(self, *messages: bytes) -> None:
        """Send bytes."""
        self._socket.sendall(b"".join(messages))

    def message(self) -> tuple[bytes, bytes] | None:
        """The next message; None when the server has left."""
        try:
            head = self._file.read(5)
        except (ConnectionError, ssl.SSLError):
            return None
        if len(head) < 5:
            return None
        (length,) = struct.unpack(">i", head[1:])
        assert 4 <= length < 1 << 24
        return head[:1], self._file.read(length - 4)

    def messages(self) -> Iterator[tuple[bytes, bytes]]:
        """All messages up to and with the next ReadyForQuery, or the end."""
        while (found := self.message()) is not None:
            yield found
            if found[0] == b"Z":
                return

    def ask(self, *messages: bytes) -> list[tuple[bytes, bytes]]:
        """Send, and all that comes back."""
        self.send(*messages)
        return list(self.messages())

    def start(self, parameters: Mapping[str, str]) -> None:
        """The first message."""
        body = b"".join(f"{k}\0{v}\0".encode() for k, v in parameters.items()) + b"\0"
        self.send(struct.pack(">ii", len(body) + 8, 196608) + body)

    def log_in(self, user: str, key: str, database: str = "clinic", **more: str) -> bytes | None:
        """Prove a key; the error if it is refused."""
        self.start({"user": user, "database": database, **more})
        first = self.message()
        if first is None or first[0] == b"E":
            return b"" if first is None else first[1]
        client = ScramClient(["SCRAM-SHA-256"], user, key)
        told = client.get_client_first().encode()
        self.send(frame(b"p", b"SCRAM-SHA-256\0" + struct.pack(">i", len(told)) + told))
        second = self.message()
        if second is None or second[0] == b"E":
            return b"" if second is None else second[1]
        client.set_server_first(second[1][4:].decode())
        self.send(frame(b"p", client.get_client_final().encode()))
        for kind, body in self.messages():
            if kind == b"E":
                return body
            if kind == b"K":
                self.key_data = body
        return None

    def close(self) -> None:
        """Hang up."""
        self._file.close()
        self._socket.close()


@contextmanager
def connected(port: int, key: str, **more: Any) -> Iterator[Line]:
    """A session."""
    line = Line(port)
    try:
        assert line.log_in("curator", key, **more) is None
        yield line
    finally:
        line.close()


def fields(body: bytes) -> dict[str, str]:
    """The parts of an error."""
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}


def errors(found: list[tuple[bytes, bytes]]) -> list[str]:
    """The SQLSTATEs of all errors."""
    return [fields(body)["C"] for kind, body in found if kind == b"E"]
