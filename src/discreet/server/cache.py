"""Answers as they were sent before: what is released never changes, so neither does its text.

Who may see an answer is decided before anything is looked up here.
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from typing import NamedTuple

MOST_BYTES = 64 * 1024 * 1024
_OVERHEAD = 512
"""What one text takes in memory beside itself and the question that it is found by, about."""


class CacheKey(NamedTuple):
    """All that the text of a replayed answer depends on; or, of a request that was seen before."""

    answer: int
    """Its number; of a request the negative of the ledger's last record: nothing came since."""
    question: str
    form: str
    confidence: str


class AnswerCache:
    """Texts of answers, in so many bytes of memory; the one unused longest goes first.

    What a text is found by counts as the text does: a request that is told by a number is longer
    than the number, and every record makes all that was kept of requests useless.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._lock = threading.Lock()
        self._texts: OrderedDict[CacheKey, bytes] = OrderedDict()
        self._bytes = 0

    def find(self, wanted: CacheKey) -> bytes | None:
        """The text, if it was written lately."""
        with self._lock:
            text = self._texts.get(wanted)
            if text is not None:
                self._texts.move_to_end(wanted)
            return text

    def keep(self, wanted: CacheKey, text: bytes) -> None:
        """Remember a text; one that is large by itself pushes out all others, and goes too."""
        with self._lock:
            before = self._texts.pop(wanted, None)
            if before is not None:
                self._bytes -= _weigh(wanted, before)
            self._texts[wanted] = text
            self._bytes += _weigh(wanted, text)
            while self._bytes > self._most:
                self._bytes -= _weigh(*self._texts.popitem(last=False))


def _weigh(wanted: CacheKey, text: bytes) -> int:
    return len(text) + sys.getsizeof(wanted.question) + _OVERHEAD
