"""Levels as values again: typed rows of a synthetic table, and tables of counts with their keys."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import InvalidParameter
from discreet.publication.measure import Doubles, Integers
from discreet.publication.stream import PublicStream
from discreet.question.domain import Kind
from discreet.question.levels import Levels

if TYPE_CHECKING:
    import pyarrow

    from discreet.publication.product import Estimates

_INEQUALITY = re.compile(r"\s*([A-Za-z_]\w*)\s*(<=|>=)\s*([A-Za-z_]\w*)\s*")


def rows_table(
    levels: Sequence[Levels], rows: Integers, *, label: str, keep: Sequence[str] = ()
) -> pyarrow.Table:
    """Synthetic rows with the types of the schema; within a cell, values are spread evenly.

    An inequality of two columns that a row breaks is kept by exchanging the two.
    """
    import pyarrow as pa

    numbers = {
        one.name: _spread(one, rows[:, place], PublicStream(f"{label} {one.name}"))
        for place, one in enumerate(levels)
    }
    for least, most in read_inequalities(levels, keep):
        a, b = numbers[least], numbers[most]
        if a is None or b is None:
            raise TypeError("inequalities were checked to be between numbers or times")
        wrong = a > b  # NULL is NaN here, and never wrong
        a[wrong], b[wrong] = b[wrong], a[wrong].copy()
    return pa.table(
        {
            one.name: _column(one, rows[:, place], numbers[one.name])
            for place, one in enumerate(levels)
        }
    )


def read_inequalities(levels: Sequence[Levels], keep: Sequence[str]) -> list[tuple[str, str]]:
    """The inequalities to keep, each as its lesser and its greater column, or a refusal."""
    found = []
    kinds = {one.name: one.kind for one in levels}
    for text in keep:
        match = _INEQUALITY.fullmatch(text)
        sides = (match[1], match[3]) if match else ()
        known = [kinds[name] for name in sides if name in kinds]
        plain = (
            len(known) == 2 and known[0] is known[1] and known[0] not in (Kind.TEXT, Kind.BOOLEAN)
        )
        if match is None or not plain:
            raise InvalidParameter(
                "P6",
                f"{text!r} is not an inequality that rows can keep.",
                why="it is kept by exchanging two values of one kind, from released numbers alone.",
                fix='write two published numbers or times, such as keep = ["admitted <= left"].',
            )
        found.append((match[1], match[3]) if match[2] == "<=" else (match[3], match[1]))
    return found


def _spread(levels: Levels, codes: Integers, stream: PublicStream) -> Any:
    """Where each row's value lies on the line of its kind; NaN for NULL, None for texts."""
    if levels.kind in (Kind.TEXT, Kind.BOOLEAN):
        return None
    exact = levels.kind is Kind.TIMESTAMP or levels.kind is Kind.INTEGER
    if levels.values is not None:
        from discreet.question.domain import number_of

        line = [float(number_of(value) or 0) for value in levels.values]
        return np.array([*line, math.nan])[np.minimum(codes, levels.count)]
    ends = [levels.ends(level) for level in range(levels.count)]
    low = np.array([float(one) for one, _ in ends] + [math.nan])[codes]
    width = np.array([float(past - one) for one, past in ends] + [math.nan])[codes]
    places = low + stream.uniform(len(codes)) * width
    if levels.whole:
        return np.floor(places) if exact or levels.kind is Kind.DATE else places
    return _round(levels, places)


def _round(levels: Levels, places: Doubles) -> Doubles:
    """Decimals on their declared step, or with a digit or two more than a cell can tell."""
    if levels.step is not None:
        step = float(levels.step)
        return np.asarray(
            np.clip(np.round(places / step) * step, float(levels.low), float(levels.high))
        )
    width = float((levels.high - levels.low) / levels.count)
    return np.asarray(np.round(places, max(0, 2 - math.floor(math.log10(width)))))


def _column(levels: Levels, codes: Integers, numbers: Any) -> pyarrow.Array:
    import pyarrow as pa

    missing = codes >= levels.count
    if numbers is None:
        listed: list[Any] = [*(levels.values or ()), None]
        kind = pa.string() if levels.kind is Kind.TEXT else pa.bool_()
        return pa.array(listed, kind).take(pa.array(np.minimum(codes, levels.count)))
    if levels.kind is Kind.DECIMAL:
        return pa.array(np.where(missing, 0.0, numbers), pa.float64(), mask=missing)
    whole = np.where(missing, 0, numbers).astype(np.int64)
    if levels.kind is Kind.DATE:
        return pa.array(whole.astype("datetime64[D]"), pa.date32(), mask=missing)
    if levels.kind is Kind.TIMESTAMP:
        return pa.array(whole.astype("datetime64[us]"), pa.timestamp("us"), mask=missing)
    return pa.array(whole, pa.int64(), mask=missing)


def counts_table(levels: Sequence[Levels], table: Estimates) -> pyarrow.Table:
    """A table of counts: its keys, the count, and within what it is at 95 %."""
    import pyarrow as pa

    shape = table.values.shape
    codes = np.indices(shape).reshape(len(shape), table.values.size)
    keys = {
        levels[column].name: key_array(levels[column]).take(pa.array(codes[axis]))
        for axis, column in enumerate(table.columns)
    }
    counts = table.values.reshape(-1)
    whole = table.noisy is not None
    values = counts.astype(np.int64) if whole else counts
    return pa.table({**keys, "n": pa.array(values), "margin": pa.array(cell_margins(table))})


def cell_margins(table: Estimates) -> Doubles:
    """The margin of every cell at 95 %; where all cells have one variance it is found once."""
    count = table.values.size
    first = np.zeros(table.values.shape)
    if count <= 4096:
        margins = np.empty(count)
        for place in range(count):
            one = first.reshape(-1).copy()
            one[place] = 1.0
            margins[place] = table.margin(one.reshape(table.values.shape))
        return margins
    one = first.reshape(-1)
    one[0] = 1.0
    tail = table.margin(one.reshape(table.values.shape))
    if table.noisy is None:
        return np.full(count, tail)
    moved = np.abs(table.values - table.noisy).reshape(-1)
    return np.asarray(tail - moved[0] + moved)


def key_array(levels: Levels) -> pyarrow.Array:
    """What each level is called in a table: its value, or the words for a cell; NULL last."""
    import pyarrow as pa

    if levels.values is None and (not levels.whole or levels.high - levels.low + 1 != levels.count):
        words: list[Any] = [levels.describe(level) for level in range(levels.count)]
        return pa.array([*words, None], pa.string())
    if levels.values is not None:
        listed: list[Any] = [
            float(value) if isinstance(value, Fraction) else value for value in levels.values
        ]
        return pa.array([*listed, None])
    codes = np.arange(levels.count + 1)
    line = np.append(float(levels.low) + np.arange(levels.count), math.nan)
    return _column(levels, codes, line)


__all__ = ["cell_margins", "counts_table", "key_array", "read_inequalities", "rows_table"]
