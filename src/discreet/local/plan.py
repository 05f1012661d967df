"""What a randomizer needs to be drawn elsewhere: plain numbers, as JSON."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from discreet.errors import InvalidParameter
from discreet.local.direct import Direct
from discreet.local.hadamard import Hadamard
from discreet.local.hashed_sets import HashedSets
from discreet.local.hashing import LocalHashing
from discreet.local.mean import HybridMean, MeanRandomizer, OneBitMean, PiecewiseMean
from discreet.local.oracle import FrequencyOracle
from discreet.local.packed import width
from discreet.local.subset import SubsetSelection
from discreet.local.unary import Unary

Randomizer = FrequencyOracle | MeanRandomizer

_SAFE_BITS = 53  # whole numbers that JSON and a browser hold exactly


def plan(randomizer: Randomizer) -> dict[str, Any]:
    """The kind of a randomizer and its numbers; fractions as two decimal strings.

    >>> plan(Hadamard(6, epsilon=1))["columns"]
    8
    """
    if randomizer.report_bits > _SAFE_BITS and not _packs(randomizer):
        raise InvalidParameter(
            "P2",
            "the reports of this randomizer are too long for a browser's numbers.",
            why="a report that is rounded is another report.",
            fix="declare fewer answers.",
        )
    return {"kind": type(randomizer).__name__, **_numbers(randomizer)}


def _numbers(randomizer: Randomizer) -> dict[str, Any]:
    match randomizer:
        case Direct():
            return {"categories": randomizer.categories, "truthful": _two(randomizer.inside)}
        case Unary():
            chances = {"inside": _two(randomizer.inside), "outside": _two(randomizer.outside)}
            return {"categories": randomizer.categories, **chances}
        case SubsetSelection():
            inside = _two(randomizer.inside)
            return {"categories": randomizer.categories, "size": randomizer.size, "inside": inside}
        case HashedSets():  # before the hashing that it is a kind of
            return {
                "categories": randomizer.categories,
                "buckets": randomizer.buckets,
                "digits": randomizer.digits,
                "size": randomizer.size,
                "inside": _two(randomizer.inside),
            }
        case LocalHashing():
            truthful = _two(randomizer.inside)
            base = {"buckets": randomizer.buckets, "digits": randomizer.digits}
            return {"categories": randomizer.categories, **base, "truthful": truthful}
        case Hadamard():
            inside = _two(randomizer.inside)
            return {
                "categories": randomizer.categories,
                "columns": randomizer.columns,
                "inside": inside,
            }
        case OneBitMean() | PiecewiseMean() | HybridMean():
            return _bounds(randomizer)
        case _:
            raise TypeError(f"no page draws {type(randomizer).__name__}")


def _bounds(mean: MeanRandomizer) -> dict[str, Any]:
    over, under = _two(mean.odds)
    number = mean.parts[1] if isinstance(mean, HybridMean) else mean
    found: dict[str, Any] = {
        "lower": float(mean.lower),
        "upper": float(mean.upper),
        "steps": mean.steps,
        "over": over,
        "under": under,
    }
    if isinstance(number, PiecewiseMean):
        found["width"] = number.window
    if isinstance(mean, HybridMean):
        found["share"] = _two(mean.share)
    return found


def _two(chance: Fraction) -> list[str]:
    return [str(chance.numerator), str(chance.denominator)]


def _packs(randomizer: Randomizer) -> bool:
    return isinstance(randomizer, Unary | SubsetSelection)


def write_report(randomizer: Randomizer, report: Any) -> int | str:
    """One report as JSON: a whole number, or bits as hexadecimal digits."""
    return bytes(report).hex() if _packs(randomizer) else int(report)


def read_reports(randomizer: Randomizer, written: list[Any]) -> Any:
    """Reports as ``estimate`` takes them; refused unless each could have been made."""
    if not _packs(randomizer):
        if any(isinstance(one, bool) or not isinstance(one, int) for one in written):
            raise _unreadable()
        if any(not 0 <= one < 2**62 for one in written):
            raise _unreadable()
        return randomizer.check(np.array(written, dtype=np.int64))
    size = width(randomizer.categories) if isinstance(randomizer, FrequencyOracle) else 0
    try:
        rows = [bytes.fromhex(one) for one in written]
    except (TypeError, ValueError):
        raise _unreadable() from None
    if any(len(row) != size or row.hex() != one for row, one in zip(rows, written, strict=True)):
        raise _unreadable()
    packed = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), size)
    return randomizer.check(packed)


def _unreadable() -> InvalidParameter:
    return InvalidParameter(
        "P6",
        "a report is not written as this survey's are.",
        why="what no respondent can have sent would distort the estimate for all others.",
        fix="send the report as the page made it.",
    )


__all__ = ["Randomizer", "plan", "read_reports", "write_report"]
