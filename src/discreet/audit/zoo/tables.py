"""Rows that are grouped, joined, bounded or repaired in a way that looks at other people.

These are bugs of the glue between a table and a mechanism: control flow, keys,
missing values, errors.  A replay compares every call that both neighbours make.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from discreet.accounting.law import DiscreteLaplaceLaw, FiniteLaw, ProductLaw
from discreet.accounting.loss import Loss
from discreet.audit.zoo.animal import CHANGED, Animal, Check
from discreet.mechanisms import KeyRelease, Laplace

EPSILON = Fraction(1, 2)
TOPICS = ("a", "b", "c")


class Row(NamedTuple):
    """A row of a table about people."""

    person: int
    topic: str
    value: int = 0
    day: int = 0


def _noisy(value: int | list[int], sensitivity: int = 1) -> Any:
    return Laplace(sensitivity=sensitivity, epsilon=EPSILON).release(value)


def _count(rows: Sequence[Row], topic: str) -> int:
    return sum(row.topic == topic for row in rows)


# --- keys -----------------------------------------------------------------------------------


def _keys_from_data(rows: Sequence[Row]) -> Any:
    return {topic: _noisy(_count(rows, topic)) for topic in sorted({row.topic for row in rows})}


def _public_keys(rows: Sequence[Row]) -> Any:
    return {topic: _noisy(_count(rows, topic)) for topic in TOPICS}


def _suppressed_by_truth(rows: Sequence[Row]) -> Any:
    return {topic: _noisy(_count(rows, topic)) for topic in TOPICS if _count(rows, topic) >= 3}


def _suppressed_by_answer(rows: Sequence[Row]) -> Any:
    return {topic: count for topic, count in _public_keys(rows).items() if count >= 3}


# --- bounding people ------------------------------------------------------------------------


def _kept(rows: Sequence[Row], units: Sequence[Any], most: int) -> int:
    seen: dict[Any, int] = {}
    for _, unit in zip(rows, units, strict=True):
        seen[unit] = min(seen.get(unit, 0) + 1, most)
    return sum(seen.values())


def _bounded_by_new_column(rows: Sequence[Row]) -> Any:
    """``person`` was redefined as person and day before the rows were bounded."""
    return _noisy(_kept(rows, [(row.person, row.day) for row in rows], 2), 2)


def _bounded_by_person(rows: Sequence[Row]) -> Any:
    return _noisy(_kept(rows, [row.person for row in rows], 2), 2)


def _limited(rows: Sequence[Row]) -> Any:
    return _noisy(sum(min(max(row.value, -10), 10) for row in rows[:5]), 10)


def _unlimited(rows: Sequence[Row]) -> Any:
    return _noisy(sum(min(max(row.value, -10), 10) for row in rows), 10)


# --- expressions that look at other rows ----------------------------------------------------


def _category_codes(rows: Sequence[Row]) -> Any:
    codes = {topic: code for code, topic in enumerate(sorted({row.topic for row in rows}))}
    return _noisy(sum(codes[row.topic] for row in rows), len(TOPICS) - 1)


def _public_codes(rows: Sequence[Row]) -> Any:
    return _noisy(sum(TOPICS.index(row.topic) for row in rows), len(TOPICS) - 1)


def _imputed(values: Sequence[int | None], *, public: int | None) -> Any:
    known = [min(max(value, 0), 100) for value in values if value is not None]
    filler = public if public is not None else sum(known) // max(1, len(known))
    missing = sum(value is None for value in values)
    return _noisy(sum(known) + missing * filler, 100)


def _joined(rows: Sequence[Row]) -> Any:
    """Pairs of people who share a topic: one more person makes a pair with everyone."""
    return _noisy(sum(a.topic == b.topic for a in rows for b in rows if a.person < b.person))


def _with_a_public_topic(rows: Sequence[Row]) -> Any:
    return _noisy(sum(row.topic in TOPICS for row in rows))


# --- missing values, and rows that raise ----------------------------------------------------


def _poisoned_total(values: Sequence[float]) -> Any:
    """Clipping leaves NaN alone, and a total that is NaN is mended at the end."""
    total = sum(value if math.isnan(value) else min(max(value, 0), 10) for value in values)
    return _noisy(0 if math.isnan(total) else int(total), 10)


def _missing_dropped(values: Sequence[float]) -> Any:
    return _noisy(int(sum(min(max(v, 0), 10) for v in values if not math.isnan(v))), 10)


def _read_by_all(values: Sequence[str]) -> Any:
    try:
        numbers = [round(float(value)) for value in values]  # half to even
    except ValueError:
        numbers = [_half_up(value) for value in values]
    return _noisy(sum(numbers), sensitivity=10)


def _read_one_by_one(values: Sequence[str]) -> Any:
    return _noisy(sum(map(_half_up, values)), sensitivity=10)


def _half_up(value: str) -> int:
    """A text as a whole number up to 10; nothing if it is none."""
    return min(10, int(float(value) + 0.5)) if value[:1].isdigit() else 0


def _partial(values: Sequence[int]) -> Any:
    return _noisy(sum(100 // value for value in values), 100)


def _total(values: Sequence[int]) -> Any:
    return _noisy(sum(min(100 // value, 100) if value > 0 else 0 for value in values), 100)


# --- what is told beside the noise ----------------------------------------------------------


def _counts(rows: Sequence[Row]) -> ProductLaw:
    return ProductLaw(tuple(DiscreteLaplaceLaw(_count(rows, t), 1 / EPSILON) for t in TOPICS))


def _order_by_truth(rows: Sequence[Row]) -> ProductLaw:
    ranked = tuple(sorted(TOPICS, key=lambda topic: -_count(rows, topic)))
    return ProductLaw((FiniteLaw.exact([(ranked, 1)]), *_counts(rows).laws))


def _not_null_believed(values: Sequence[int | None]) -> ProductLaw:
    """The column is declared NOT NULL, so the number of values is taken to be known."""
    known = sum(value is not None for value in values)
    return ProductLaw((FiniteLaw.exact([(known, 1)]), DiscreteLaplaceLaw(len(values), 1 / EPSILON)))


def _nulls_not_told(values: Sequence[int | None]) -> DiscreteLaplaceLaw:
    return DiscreteLaplaceLaw(sum(value is not None for value in values), 1 / EPSILON)


def _two_keys(rule: KeyRelease, people: int) -> ProductLaw:
    """Two new keys, both of them one person's."""
    return ProductLaw((rule.law(people), rule.law(people)))


_PURE = Loss.pure(EPSILON)
_ROWS = [Row(1, "b", 5), Row(2, "b", 5), Row(3, "c", 5), Row(4, "c", 5), Row(5, "c", 10)]
_NEW = Row(6, "b", -10)

ANIMALS = (
    Animal(
        "keys from the data",
        "tables",
        "only topics that somebody has are listed, so a new topic tells of its only person",
        "Korolova, Kenthapadi, Mishra, Ntoulas (2009); smartnoise-sdk issue 309",
        Check.REPLAY,
        _PURE,
        (_ROWS, [*_ROWS, Row(6, "a")]),
        _keys_from_data,
        _public_keys,
    ),
    Animal(
        "suppressed by the true count",
        "tables",
        "small groups are left out by their true size, and then noise is added",
        "small-cell suppression, as in statistical reporting tools",
        Check.REPLAY,
        _PURE,
        (_ROWS, [*_ROWS, _NEW]),
        _suppressed_by_truth,
        _suppressed_by_answer,
    ),
    Animal(
        "truncation forgotten",
        "tables",
        "the person's column is redefined, so the rows kept are no longer counted per person",
        "opendp issue 2949: redefining a column keeps the truncation that was known of it",
        Check.REPLAY,
        _PURE,
        (_ROWS, [*_ROWS, *(Row(6, "a", day=day) for day in range(5))]),
        _bounded_by_new_column,
        _bounded_by_person,
    ),
    Animal(
        "LIMIT below the release",
        "tables",
        "the first five rows are kept: a new row pushes out another person's",
        "rows cut by LIMIT below an aggregate are other people's",
        Check.REPLAY,
        _PURE,
        (_ROWS, [_NEW, *_ROWS]),
        _limited,
        _unlimited,
    ),
    Animal(
        "category codes",
        "tables",
        "a new category renumbers everybody's",
        "opendp issue 2944: category codes follow the order of the data",
        Check.REPLAY,
        _PURE,
        (_ROWS, [*_ROWS, Row(6, "a")]),
        _category_codes,
        _public_codes,
    ),
    Animal(
        "missing values filled with the mean",
        "tables",
        "each missing value becomes the mean of the others: one person moves all of them",
        "smartnoise-sdk issue 418: imputation that relies on the data",
        Check.REPLAY,
        _PURE,
        ([0] + [None] * 30, [0] + [None] * 30 + [100]),
        lambda values: _imputed(values, public=None),
        lambda values: _imputed(values, public=50),
    ),
    Animal(
        "join on something shared",
        "tables",
        "joined on a topic, one person makes a pair with everyone who shares it",
        "Johnson, Near, Song (2018), FLEX; McSherry (2009) on joins",
        Check.REPLAY,
        _PURE,
        (_ROWS, [*_ROWS, Row(6, "c")]),
        _joined,
        _with_a_public_topic,
    ),
    Animal(
        "NaN survives clipping",
        "tables",
        "one NaN turns the whole sum into NaN, which is then mended to zero",
        "smartnoise-sdk pull request 580: NaN and infinite values pass the bounds",
        Check.REPLAY,
        _PURE,
        ([9.0, 8.0, 7.0], [9.0, 8.0, 7.0, math.nan]),
        _poisoned_total,
        _missing_dropped,
    ),
    Animal(
        "NOT NULL believed",
        "tables",
        "a declaration says that nothing is NULL, so the number of values is told without noise",
        "opendp issue 2938: nullability kept after a cast that returns null",
        Check.LAW,
        _PURE,
        ([3, 4, 5, None], [3, 4, 5, 6]),
        _not_null_believed,
        _nulls_not_told,
        relation=CHANGED,
    ),
    Animal(
        "an error for one row",
        "tables",
        "dividing by one person's zero stops the query: the error is an answer",
        "Haeberlen, Pierce, Narayan (2011), covert channels in PINQ and Airavat",
        Check.REPLAY,
        _PURE,
        ([5, 20, 50], [5, 20, 50, 0]),
        _partial,
        _total,
    ),
    Animal(
        "a reader chosen by a value",
        "tables",
        "one text among numbers makes everybody's number be read, and rounded, in another way",
        "columns of mixed objects in pandas, which Arrow cannot convert and are then read as text",
        Check.REPLAY,
        _PURE,
        (["2.5"] * 30, [*["2.5"] * 30, "n/a"]),
        _read_by_all,
        _read_one_by_one,
    ),
    Animal(
        "order of the groups",
        "tables",
        "the noisy counts are shown in the order of the true ones",
        "engines return groups in an order of their own, which follows the data",
        Check.LAW,
        _PURE,
        (_ROWS[:4], [*_ROWS[:4], Row(6, "c")]),
        _order_by_truth,
        _counts,
    ),
    Animal(
        "each group charged alone",
        "tables",
        "keys are released with a full delta for each key of one person",
        "Desfontaines, Voss, Gipson, Mandayam (2022): delta is shared by one person's keys",
        Check.LAW,
        Loss.approximate(2, Fraction(1, 1000)),
        (0, 1),
        lambda people: _two_keys(KeyRelease(epsilon=1, delta=Fraction(1, 1000)), people),
        lambda people: _two_keys(KeyRelease(epsilon=2, delta=Fraction(1, 1000), keys=2), people),
    ),
)


__all__ = ["ANIMALS"]
