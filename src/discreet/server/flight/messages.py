"""The few messages of Flight SQL that are spoken here, as Protocol Buffers write them.

A message is a list of fields, each a number with bytes or with a whole number; whoever
reads one takes the fields it knows.
"""

from __future__ import annotations

from collections.abc import Iterator

from discreet.server.refusals import Unreadable

_URL = "type.googleapis.com/arrow.flight.protocol.sql."
_BYTES, _WHOLE = 2, 0
_SIZES = {1: 8, 5: 4}


def _read_whole(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise unreadable()
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _write_whole(value: int) -> bytes:
    out = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        out.append(low | (0x80 if value else 0))
        if not value:
            return bytes(out)


def _fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    at = 0
    while at < len(data):
        tag, at = _read_whole(data, at)
        kind = tag & 7
        if kind == _WHOLE:
            value, at = _read_whole(data, at)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            length, at = _read_whole(data, at)
        elif kind in _SIZES:
            length = _SIZES[kind]
        else:
            raise unreadable()
        if at + length > len(data):
            raise unreadable()
        yield tag >> 3, data[at : at + length]
        at += length


def write_message(fields: dict[int, bytes]) -> bytes:
    """A message of these fields."""
    return b"".join(
        _write_whole(number << 3 | _BYTES) + _write_whole(len(value)) + value
        for number, value in fields.items()
    )


def pack(name: str, fields: dict[int, bytes]) -> bytes:
    """A message of Flight SQL with its name, as commands, tickets and results carry it.

    >>> unpack(pack("TicketStatementQuery", {1: b"handle"}))
    ('TicketStatementQuery', {1: [b'handle']})
    """
    return write_message({1: f"{_URL}{name}".encode(), 2: write_message(fields)})


def unpack(data: bytes | None) -> tuple[str, dict[int, list[bytes | int]]]:
    """The name and the fields of a message of Flight SQL; None is none."""
    if data is None:
        raise unreadable()
    outer = dict(_fields(data))
    url, inner = outer.get(1), outer.get(2, b"")
    if not isinstance(url, bytes) or not isinstance(inner, bytes):
        raise unreadable()
    name = url.decode("utf-8", "replace")
    if not name.startswith(_URL):
        raise unreadable()
    found: dict[int, list[bytes | int]] = {}
    for number, value in _fields(inner):
        found.setdefault(number, []).append(value)
    return name.removeprefix(_URL), found


def text_of(fields: dict[int, list[bytes | int]], number: int) -> str | None:
    """A field as text."""
    values = fields.get(number)
    if not values or not isinstance(values[-1], bytes):
        return None
    try:
        return values[-1].decode("utf-8")
    except UnicodeDecodeError:
        raise unreadable() from None


def unreadable() -> Unreadable:
    """What is said to a message that is not understood."""
    return Unreadable(
        "this message of Flight SQL cannot be read.",
        "ask with a client of Flight SQL, such as ADBC.",
    )


__all__ = ["pack", "text_of", "unpack", "unreadable", "write_message"]
