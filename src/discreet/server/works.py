"""What is no question and takes longer than its asker waits: it goes on, to be come back for.

Choices, reports, medians and questions of runs are computed whether or not anybody waits.  Whoever
does not wait long enough gets the number of the work, and comes back for what it found.  It is kept
in memory only: of a server that was started again the same request is sent again, which costs
nothing, because what was paid for is told as it was.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from discreet.ledger.keys import nothing_here
from discreet.noise.entropy import random_bytes

Body = dict[str, Any]

_REMEMBERED = 32
"""How many that have ended are kept of one asker, who forgets nobody else's."""
_MOST = 4096
"""And of all askers together."""


@dataclass(slots=True, eq=False)
class Work:
    """One request that is being computed, and then what it is answered with."""

    analyst: str
    task: asyncio.Task[Body]
    token: str = field(default_factory=lambda: random_bytes(12).hex())
    since: float = field(default_factory=time.monotonic)

    async def wait(self, most_s: float) -> Body | None:
        """What it is answered with, or the refusal it ended with; None if it takes longer."""
        await asyncio.wait([self.task], timeout=most_s)
        return self.task.result() if self.task.done() else None

    def describe(self, limit_s: float) -> Body:
        """Where it stands, in the words of jobs: how long it has run, which is public."""
        elapsed_s = time.monotonic() - self.since
        return {
            "id": self.token,
            "state": "running",
            "position": None,
            "elapsed_s": round(elapsed_s, 1),
            "limit_s": limit_s,
            "progress": round(min(1.0, elapsed_s / (limit_s or 1.0)), 3),
            "answer": None,
            "again": False,
        }


class Works:
    """The works of one dataset."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Work] = OrderedDict()

    def start(self, analyst: str, compute: Callable[[], Coroutine[Any, Any, Body]]) -> Work:
        """Compute it, from now on."""
        task = asyncio.ensure_future(compute())
        task.add_done_callback(_look)  # nobody may come back for a refusal
        work = Work(analyst, task)
        self._known[work.token] = work
        over = [token for token, known in self._known.items() if known.task.done()]
        own = [token for token in over if self._known[token].analyst == analyst]
        forgotten = {*own[: max(0, len(own) - _REMEMBERED)], *over[: max(0, len(over) - _MOST)]}
        for token in forgotten:
            del self._known[token]
        return work

    def find(self, token: str, analyst: str) -> Work:
        """The work of that number, if it is the caller's own."""
        work = self._known.get(token)
        if work is None or work.analyst != analyst:
            raise nothing_here("work", token[:40])
        return work

    async def close(self, grace_s: float) -> None:
        """Give what is under way some time."""
        under_way = [work.task for work in self._known.values() if not work.task.done()]
        if under_way:
            await asyncio.wait(under_way, timeout=grace_s)


def _look(task: asyncio.Task[Body]) -> None:
    if not task.cancelled():
        task.exception()


__all__ = ["Work", "Works"]
