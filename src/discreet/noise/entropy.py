"""The only source of randomness.

Bytes come from OpenSSL's generator (through the standard library), which is
seeded by the operating system, is safe to call from many threads, reseeds in a
forked child, and yields over a gigabyte a second.  Nothing is buffered here, so
there is no state that a fork or a thread could share.  No function takes a seed.

Tests and the auditor replay recorded bytes with :func:`use_recording`; the
replacement holds for the current context (thread or task) only.
"""

from __future__ import annotations

from _ssl import RAND_bytes  # all of ssl would be ten times as long to import
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter

_source: ContextVar[Callable[[int], bytes] | None] = ContextVar("entropy", default=None)


def random_bytes(count: int) -> bytes:
    """``count`` fresh bytes."""
    source = _source.get()
    return RAND_bytes(count) if source is None else source(count)


def random_words(
    count: int, dtype: type[np.unsignedinteger] = np.uint64
) -> NDArray[np.unsignedinteger]:
    """``count`` independent uniform words, as a read-only array of an unsigned type."""
    return np.frombuffer(random_bytes(count * np.dtype(dtype).itemsize), dtype=dtype)


def random_bits(count: int) -> int:
    """A uniform integer of ``count`` bits: 0 <= result < 2**count."""
    size = (count + 7) // 8
    return int.from_bytes(random_bytes(size), "little") >> (8 * size - count)


@contextmanager
def use_recording(data: bytes) -> Iterator[None]:
    """Draw from ``data`` instead of the generator; for tests and audits, never for releases.

    Asking for more than was recorded is refused rather than padded.

    >>> with use_recording(b"twelve bytes"):
    ...     random_bytes(6), random_bytes(6)
    (b'twelve', b' bytes')
    """
    position = 0

    def source(count: int) -> bytes:
        nonlocal position
        if position + count > len(data):
            raise InvalidParameter(
                "P7",
                f"the recording holds {len(data)} bytes and {position + count} are needed.",
                why="padding a recording would make draws that nobody recorded.",
                fix="record more bytes.",
            )
        position += count
        return data[position - count : position]

    with use_source(source):
        yield


@contextmanager
def use_source(source: Callable[[int], bytes]) -> Iterator[None]:
    """Draw from ``source(count)`` instead of the generator, within this context only."""
    token = _source.set(source)
    try:
        yield
    finally:
        _source.reset(token)
