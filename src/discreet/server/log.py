"""The log: one JSON object a line, made of what the program says and never of what it was told.

A line holds the time, the event, the route's pattern (not its path), status,
duration, the key's public id and codes.  No question, no key, no name, no
value, no exception's text: a canary in any of them never comes out here.
"""

from __future__ import annotations

import json
import sys
import traceback
from datetime import UTC, datetime
from typing import IO


class Log:
    """Writes events to a stream."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream

    def write(self, event: str, **facts: str | int | float | None) -> None:
        """One line; ``facts`` are words and numbers of the program's own."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        told = {name: fact for name, fact in facts.items() if fact is not None}
        line = json.dumps({"at": at, "event": event, **told}, separators=(",", ":"))
        stream = self._stream or sys.stderr
        stream.write(line + "\n")  # at once, so that lines of threads stay whole
        stream.flush()

    def mistake(self, error: BaseException) -> None:
        """An exception's kind and where it came from; not its text, which may quote anything."""
        frames = traceback.extract_tb(error.__traceback__)[-4:]
        where = " < ".join(f"{_module(f.filename)}:{f.lineno}" for f in reversed(frames))
        self.write("mistake", kind=type(error).__name__, where=where)


def _module(file: str) -> str:
    parts = file.replace("\\", "/").split("/")
    return "/".join(parts[-2:])
