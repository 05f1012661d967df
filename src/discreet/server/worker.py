"""The process that holds the engine: reads priced questions, writes released answers.

It has the data and no ledger; its parent has the ledger and no data.  Of what it
finds, only noised answers leave it, as the bytes of a record: nothing that the
parent would have to trust.  It may be killed at any moment; what it was doing
was charged before, and is shown to nobody.

Frames are a length of four bytes and so many bytes; an empty frame means that
the question could not be answered.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from fractions import Fraction
from typing import IO, TYPE_CHECKING, Any

from discreet.curate import session
from discreet.curate.curator import compute
from discreet.engine.opening import open_engine
from discreet.engine.protocol import Engine
from discreet.errors import DataRefusal
from discreet.price.calibration import find_lumpings
from discreet.release import record

if TYPE_CHECKING:
    from discreet.curate.steps import Paid

READY = b"ready"
_HEADROOM = 2 * 1024**3


def write_frame(stream: IO[bytes], content: bytes) -> None:
    """One message."""
    stream.write(len(content).to_bytes(4, "big") + content)
    stream.flush()


def read_frame(stream: IO[bytes]) -> bytes | None:
    """The next message, or None when the other side has gone."""
    length = stream.read(4)
    if len(length) < 4:
        return None
    content = stream.read(int.from_bytes(length, "big"))
    return content if len(content) == int.from_bytes(length, "big") else None


def serve(directory: str, memory_bytes: int) -> None:
    """Answer questions until the parent closes the pipe."""
    questions, answers = _private_pipes()
    _limit_memory(memory_bytes)
    found = session.read(directory)
    engine = _open_engine(found)
    write_frame(answers, READY)
    while (asked := read_frame(questions)) is not None:
        write_frame(answers, _answer(engine, asked))


def _open_engine(found: session.Session) -> Engine[Any]:
    """The engine; sources that cannot be opened now are tried again for every question.

    What is charged must not depend on whether the data is there, so a missing
    source is no reason to take no questions.
    """
    settings = {**found.engine, "store": found.store}
    try:
        return open_engine(found.sources(), found.schema, **settings)
    except DataRefusal:
        return open_engine(found.sources(), found.schema, opened=False, **settings)


def _answer(engine: Engine[Any], asked: bytes) -> bytes:
    question = json.loads(asked)
    try:
        if "priced" not in question:
            from discreet.server.comparing import ANSWERS

            ((kind, content),) = question.items()
            return ANSWERS[kind](engine, content)
        return _compute(engine, question)
    except (DataRefusal, MemoryError):
        return b""


def write_paid(paid: Paid) -> bytes:
    """A question that was paid for, as it is sent here.

    With the release that it refines, if it does: that was shown, and holds no truth.
    """
    content: dict[str, Any] = {
        "priced": record.to_json(paid.priced),
        "data_version": paid.data_version,
        "basis": paid.basis,
    }
    if paid.improving is not None and paid.improving.earlier is not None:
        earlier, scales = paid.improving.earlier
        content["earlier"] = [
            record.write_released(paid.priced, earlier).decode(),
            list(map(str, scales)),
        ]
    return json.dumps(content).encode()


def _compute(engine: Engine[Any], question: dict[str, Any]) -> bytes:
    priced = record.from_json(question["priced"])
    earlier = None
    if "earlier" in question:
        text, scales = question["earlier"]
        released = record.read_released(text.encode())
        earlier = released, tuple(map(Fraction, scales))
    compiled = engine.compile(priced.plan, find_lumpings(priced), bound=True)  # or not paid for
    version, basis = question["data_version"], question["basis"]
    return compute(engine, compiled, priced, version, earlier=earlier, basis=basis)


def _private_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """The pipes to the parent, under numbers that nothing else here writes to.

    What a library prints may quote a row, so standard output and standard
    error lead nowhere.
    """
    answers = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    return sys.stdin.buffer, os.fdopen(answers, "wb")


def _limit_memory(most: int) -> None:
    """What the engine's own limit does not cover is stopped by the operating system."""
    if most:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = most + _HEADROOM
        resource.setrlimit(resource.RLIMIT_DATA, (soft if hard < 0 else min(soft, hard), hard))


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
