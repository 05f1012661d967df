"""How often, and how much at once, one key may ask; how often an address without one.

Limits look at requests only, never at data, so being refused by one says nothing
about anybody.  What is kept is bounded: the key that was idle longest is
forgotten first, and by then its bucket is full again.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from dataclasses import dataclass

from discreet.errors import AccessRefusal

_MOST_KEYS = 100_000


class Busy(AccessRefusal):
    """More than is let in; says when to come back."""

    def __init__(self, what: str, retry_after_s: int) -> None:
        super().__init__(
            "A15",
            what,
            why="a server that is flooded answers nobody. Nothing was charged.",
            fix=f"try again in {retry_after_s} s.",
        )
        self.retry_after_s = retry_after_s


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class Rate:
    """A token bucket for each key: ``burst`` requests at once, ``per_minute`` on average."""

    def __init__(
        self,
        per_minute: float,
        burst: int,
        *,
        said: str = "this key has sent more requests than its rate.",
    ) -> None:
        self._per_second = per_minute / 60
        self._burst = float(burst)
        self._said = said
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, key: str) -> None:
        """Count a request, or refuse it."""
        self._full_enough(key).tokens -= 1

    def look(self, key: str) -> None:
        """Refuse what ``take`` would refuse, and count nothing."""
        if key in self._buckets:
            self._full_enough(key)

    def _full_enough(self, key: str) -> _Bucket:
        now = time.monotonic()
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(self._burst, now)
            if len(self._buckets) > _MOST_KEYS:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(key)
        earned = (now - bucket.at) * self._per_second
        bucket.tokens, bucket.at = min(self._burst, bucket.tokens + earned), now
        if bucket.tokens < 1:
            wait = math.ceil((1 - bucket.tokens) / self._per_second)
            raise Busy(self._said, max(1, wait))
        return bucket


class Strangers:
    """Tries of each address without a key that opens anything.

    An address that has used them up is refused before a ledger is asked.  Keys
    that were let in before still are: many may share the address of a proxy.
    """

    def __init__(self, per_minute: float, burst: int) -> None:
        said = "this address has sent too many requests without a key that opens anything."
        self._tries = Rate(per_minute, burst, said=said)
        self._let_in: OrderedDict[str, None] = OrderedDict()

    def look(self, address: str, key_id: str | None) -> None:
        """Refuse a stranger whose address has no tries left."""
        if key_id not in self._let_in:
            self._tries.look(address)

    def count_failure(self, address: str) -> None:
        """Count a try."""
        self._tries.take(address)

    def came_in(self, key_id: str) -> None:
        """Remember who is no stranger."""
        self._let_in[key_id] = None
        self._let_in.move_to_end(key_id)
        if len(self._let_in) > _MOST_KEYS:
            self._let_in.popitem(last=False)


class Lineage:
    """Which key a key came from: a new key in the place of an old one has its limits, not its own.

    Otherwise whoever renews a key may ask as if they had not asked before.
    """

    def __init__(self) -> None:
        self._first: OrderedDict[str, str] = OrderedDict()

    def first(self, key_id: str) -> str:
        """The key that limits are kept for."""
        return self._first.get(key_id, key_id)

    def belongs(self, key_id: str, holder: str) -> None:
        """A key is one of many of a holder, who has the limits of one."""
        self._keep(key_id, holder)

    def renew(self, old: str, new: str) -> None:
        """A key was put in the place of another."""
        first = self.first(old)
        self._first.pop(old, None)
        self._keep(new, first)

    def _keep(self, key_id: str, first: str) -> None:
        self._first[key_id] = first
        if len(self._first) > _MOST_KEYS:
            self._first.popitem(last=False)


class Concurrency:
    """How many questions of each key are under way."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._under_way: dict[str, int] = {}

    def enter(self, key: str) -> None:
        """Count a question, or refuse it."""
        if self._under_way.get(key, 0) >= self._most:
            raise Busy(f"this key has {self._most} questions under way already.", 1)
        self._under_way[key] = self._under_way.get(key, 0) + 1

    def leave(self, key: str) -> None:
        """The question is done."""
        left = self._under_way[key] - 1
        if left:
            self._under_way[key] = left
        else:
            del self._under_way[key]
