"""The hash that chooses rows, written a second time, in Python's integers of any length."""

from __future__ import annotations

import hashlib
import math
from datetime import date, datetime, timedelta

P = 2**31 - 1
NULL = 1_234_567


def multiplier(place: int) -> int:
    power = 1
    for _ in range(7 * place + 12):
        power = power * 16807 % P
    power %= 2**28
    return power if power % 2 else power + 1


def half_even(number: float) -> int:
    """Python rounds half to even, and so do engines when they cast."""
    return round(number)


def number(value: object, codes: tuple[str, ...] | None = None) -> int:
    """What stands for a value."""
    match value:
        case None:
            return NULL
        case float() if abs(value) <= 2.0**21:
            return half_even(value * 2.0**40)
        case float():
            largest = 2.0**57
            value = largest if math.isnan(value) else value
            return half_even(max(-largest, min(largest, value)) * 16)
        case str() if codes is not None:
            return codes.index(value)
        case str():
            digest = hashlib.md5(value.encode(), usedforsecurity=False).digest()
            return int.from_bytes(digest[12:16], "little") >> 1
        case datetime():
            return (value - datetime(1970, 1, 1)) // timedelta(microseconds=1)
        case date():
            return (value - date(1970, 1, 1)).days
        case _:
            return int(value)


def hash_numbers(found: list[int], owners: int = 0) -> int:
    """The first ``owners`` of them make a sum; ``%`` of a negative number keeps its sign."""
    spread = []
    for place, one in enumerate(found):
        remainder = one % P if one >= 0 else -(-one % P)
        spread.append((remainder + 3_000_000_019) * multiplier(place))
    product = 1
    for part in (spread[:owners], spread[owners:]):
        for start in range(0, len(part), 4):
            total = sum(part[start : start + 4])
            assert total < 2**63
            product = product * (2**62 // (total % P + 1) % P) % P
    return product


def hash_row(values: list[object], owners: int = 0) -> int:
    """The hash of a row; its first columns say whose it is."""
    return hash_numbers([number(value) for value in values], owners)
