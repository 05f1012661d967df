"""Levels as values again: typed rows of a synthetic table, and tables of counts with their keys."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

    from discreet.publication.estimates import Estimates

_INEQUALITY = re.compile(r"\s*([A-Za-z_]\w*)\s*(<=|>=)\s*([A-Za-z_]\w*)\s*")
_FUNCTION = re.compile(r"\s*([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)\s*->\s*([A-Za-z_]\w*)\s*")


@dataclass(frozen=True, slots=True)
class Kept:
    """What every synthetic row keeps, in columns by their place.

    ``functions`` are the columns that determine one and that one; ``inequalities`` the lesser
    column and the greater.  Both are in an order in which a column is settled before others
    depend on it.
    """

    functions: tuple[tuple[tuple[int, ...], int], ...] = ()
    inequalities: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Rows whose values are settled: the level of each, and where in its cell a number lies."""

    codes: Integers
    numbers: tuple[Doubles | None, ...]


def place_rows(
    levels: Sequence[Levels], codes: Integers, *, label: str, keep: Sequence[str] = ()
) -> Placed:
    """Give every row its values, within its cells and so that it keeps what was declared.

    From released rows alone.  Where a column is a function of others, each of their values gets
    the one that most rows have with it; an inequality that a row breaks is kept by exchanging
    the two, within the bounds of both.  Levels are those of the values in the end, so that
    all tables of the rows agree with them.
    """
    kept = read_constraints(levels, keep)
    settled = codes.copy()
    for givens, column in kept.functions:
        settled[:, column] = _most_common(settled, givens, column, levels)
    numbers = [
        _spread(one, settled[:, place], PublicStream(f"{label} {one.name}"))
        for place, one in enumerate(levels)
    ]
    _order_values(levels, kept.inequalities, numbers)
    for place, (one, placed) in enumerate(zip(levels, numbers, strict=True)):
        if placed is not None and one.values is None:
            starts = np.array([float(one.ends(level)[0]) for level in range(one.count)])
            found = np.clip(np.searchsorted(starts, placed, side="right") - 1, 0, one.count - 1)
            settled[:, place] = np.where(np.isnan(placed), one.count, found)
    return Placed(settled, tuple(numbers))


def _most_common(
    codes: Integers, givens: Sequence[int], column: int, levels: Sequence[Levels]
) -> Integers:
    """For each row the level of ``column`` that most rows with the same givens have."""
    key = np.zeros(len(codes), dtype=np.int64)
    for given in givens:
        key = np.unique(key * levels[given].size + codes[:, given], return_inverse=True)[1]
    size = levels[column].size
    pairs, counts = np.unique(key * size + codes[:, column], return_counts=True)
    best = np.full(int(key.max(initial=-1)) + 1, -1, dtype=np.int64)
    for pair in np.argsort(counts, kind="stable"):  # the last one written is the most common
        best[pairs[pair] // size] = pairs[pair] % size
    return np.asarray(best[key])


def _order_values(
    levels: Sequence[Levels], pairs: Sequence[tuple[int, int]], numbers: list[Doubles | None]
) -> None:
    """Exchange values until no row breaks an inequality; NULL is NaN here, and breaks none."""
    own = [number if number is not None else np.empty(0) for number in numbers]
    low, high = ([float(one.low) for one in levels], [float(one.high) for one in levels])
    for _ in range(len(pairs) ** 2):
        broken = False
        for a, b in pairs:
            wrong = own[a] > own[b]
            less, more = own[b][wrong], own[a][wrong]
            own[a][wrong], own[b][wrong] = np.maximum(less, low[a]), np.minimum(more, high[b])
            broken |= bool(wrong.any())
        if not broken:
            return
    # What exchanging within bounds has not settled: raise the greater to the lesser, in order.
    for a, b in reversed(pairs):
        high[a] = min(high[a], high[b])
        own[a][:] = np.minimum(own[a], high[a])
    for a, b in pairs:
        wrong = own[a] > own[b]
        own[b][wrong] = own[a][wrong]


def rows_table(levels: Sequence[Levels], placed: Placed) -> pyarrow.Table:
    """Synthetic rows with the types of the schema."""
    import pyarrow as pa

    return pa.table(
        {
            one.name: _column(one, placed.codes[:, place], placed.numbers[place])
            for place, one in enumerate(levels)
        }
    )


def is_wide(levels: Levels) -> bool:
    """Whether a column is counted in cells of several values."""
    return levels.values is None and (
        not levels.whole or levels.high - levels.low + 1 != levels.count
    )


def read_constraints(levels: Sequence[Levels], keep: Sequence[str]) -> Kept:
    """What rows are to keep, or a refusal."""
    places = {one.name: place for place, one in enumerate(levels)}
    functions: dict[int, tuple[int, ...]] = {}
    pairs = set()
    for text in keep:
        made = _FUNCTION.fullmatch(text)
        if made is None:
            pairs.add(_read_inequality(levels, places, text))
            continue
        names = [name.strip() for name in made[1].split(",")]
        if any(name not in places or is_wide(levels[places[name]]) for name in (*names, made[2])):
            raise _unkept(
                f"{text!r} is not a function that rows can keep.",
                'write published columns that are counted value by value: keep = ["city -> land"].',
            )
        if places[made[2]] in functions:
            raise _unkept(f"{made[2]!r} is declared to be a function twice.", "keep one of them.")
        functions[places[made[2]]] = tuple(places[name] for name in names)
    ordered = _in_order({b: {a for a, other in pairs if other == b} for _, b in pairs})
    derived = _in_order({one: set(givens) for one, givens in functions.items()})
    for one in {*functions, *(a for givens in functions.values() for a in givens)}:
        if any(one in pair for pair in pairs):
            raise _unkept(
                f"{levels[one].name!r} is part of a function and of an inequality.",
                "keep one of the two: an exchanged value would break the function.",
            )
    least = {one: levels[one].high for one in ordered}
    for b in reversed(ordered):
        for a, _ in (pair for pair in pairs if pair[1] == b):
            least[a] = min(least[a], least[b])
    if any(levels[one].low > most for one, most in least.items()):
        raise _unkept("what rows are to keep holds for no values within the bounds.", "mend them.")
    return Kept(
        tuple((functions[one], one) for one in derived if one in functions),
        tuple(sorted(pairs, key=lambda pair: (ordered.index(pair[1]), ordered.index(pair[0])))),
    )


def _read_inequality(
    levels: Sequence[Levels], places: Mapping[str, int], text: str
) -> tuple[int, int]:
    """The lesser and the greater column of an inequality, or a refusal."""
    match = _INEQUALITY.fullmatch(text)
    names = [name for name in ((match[1], match[3]) if match else ()) if name in places]
    if match is None or len(names) < 2 or names[0] == names[1] or not _alike(levels, places, names):
        raise _unkept(
            f"{text!r} is not an inequality that rows can keep.",
            "write two published numbers or times with bounds, of one kind and step, such as "
            'keep = ["admitted <= left"].',
        )
    a, b = (places[name] for name in (names if match[2] == "<=" else names[::-1]))
    return a, b


def _alike(levels: Sequence[Levels], places: Mapping[str, int], names: Sequence[str]) -> bool:
    a, b = (levels[places[name]] for name in names)
    return (
        a.kind is b.kind
        and a.kind not in (Kind.TEXT, Kind.BOOLEAN)
        and a.values is b.values is None
        and a.step == b.step
    )


def _in_order(before: Mapping[int, set[int]]) -> list[int]:
    """All columns named, each after those before it; a circle is refused."""
    left = {one: set(those) for one, those in before.items()}
    for those in before.values():
        for one in those:
            left.setdefault(one, set())
    found: list[int] = []
    while left:
        free = sorted(one for one, those in left.items() if those <= set(found))
        if not free:
            raise _unkept("what rows are to keep goes in a circle.", "leave one of them out.")
        found += free
        for one in free:
            del left[one]
    return found


def _unkept(what: str, fix: str) -> InvalidParameter:
    return InvalidParameter(
        "P6",
        what,
        why="rows are made to keep it from released numbers alone, after they were drawn.",
        fix=fix,
    )


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
    digits = 2 - math.floor(math.log10(width)) if width > 0 else 2
    rounded = np.round(places, max(0, digits))
    return np.asarray(np.clip(rounded, float(levels.low), float(levels.high)))


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

    codes = table.levels_of()
    keys = {
        levels[column].name: key_array(levels[column]).take(pa.array(codes[axis]))
        for axis, column in enumerate(table.columns)
    }
    counts = table.values.reshape(-1)
    whole = table.noisy is not None or table.bound is not None
    values = counts.astype(np.int64) if whole else counts
    return pa.table({**keys, "n": pa.array(values), "margin": pa.array(table.cell_margins())})


_TELLING = 1000
"""Digits are written down to this part of a margin; further ones are those of chance."""


def round_counts(table: pyarrow.Table) -> pyarrow.Table:
    """A table of counts with the digits that tell something, for people who read them.

    A count moves by at most half a step of a thousandth of its margin or less, and the margin has
    room for that: it is rounded up, so that the count is within it as surely as before.

    >>> import pyarrow as pa
    >>> table = pa.table({"n": [1223.9999999999998, -0.004], "margin": [34.10668840424167, 0.0]})
    >>> round_counts(table).to_pydict()
    {'n': [1224.0, -0.004], 'margin': [34.12, 0.0]}
    """
    import pyarrow as pa

    counts, margins = (table.column(name).to_numpy() for name in ("n", "margin"))
    known = np.isfinite(margins) & (margins > 0)
    digits = np.ceil(np.log10(_TELLING) - np.log10(np.where(known, margins, 1)))
    steps = 10.0 ** np.maximum(digits, 0)
    room = 0.0
    if not pa.types.is_integer(table.schema.field("n").type):
        counts = np.where(known, np.round(counts * steps) / steps + 0.0, counts)  # no -0
        room = 0.5
    margins = np.where(known, np.ceil(margins * steps + room) / steps, margins)
    for name, column in (("n", counts), ("margin", margins)):
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(column))
    return table


def key_array(levels: Levels) -> pyarrow.Array:
    """What each level is called in a table: its value, or the words for a cell; NULL last."""
    import pyarrow as pa

    if is_wide(levels):
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


__all__ = [
    "Placed",
    "counts_table",
    "is_wide",
    "key_array",
    "place_rows",
    "read_constraints",
    "round_counts",
    "rows_table",
]
