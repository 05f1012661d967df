"""Which groups there can be: keys of one column go together, and within its declared bounds.

Public keys are listed each by itself, and an answer has all their combinations.  Two keys of one
column do not combine freely: a day of 2022 has a month, and a table that begins in March has no
January of its first year.  Which combinations some value of the column has is public, so those
that none has are left out of what is shown.  The groups that are measured, their noise and their
price are the same as before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from itertools import groupby
from typing import Any

from discreet.errors import Refusal
from discreet.question.domain import Domain, Kind, value_at
from discreet.question.expressions import Call, Case, ColumnRef, Expression
from discreet.question.functions import evaluate, references
from discreet.question.ownership import columns
from discreet.question.question import Key, Question
from discreet.question.relation import Relation

MOST_TRIED = 40_000
"""So many values of a column are tried; with more, every combination stays."""

_MONTHLY = {"year", "quarter", "month", *(f"date_trunc_{u}" for u in ("year", "quarter", "month"))}
_DAILY = {
    *_MONTHLY, "week", "day", "dayofweek", "isodow", "dayofyear", "date_trunc_week",
    "date_trunc_day", "cast_date",
}  # fmt: skip
"""Functions that are the same at every moment of a month, and of a day."""

Group = tuple[Any, ...]
_NOBODY: tuple[tuple[tuple[int, ...], frozenset[Group]], ...] = ()


def find_possible(question: Question) -> Callable[[Group], bool] | None:
    """Whether a group can have anybody in it; None if every group can, as far as is known.

    Only public knowledge is looked at: keys, and the bounds and values of their columns.
    """
    found = _combinations(question.keys, question.source, repr(question.keys))
    if not found:
        return None
    return lambda group: all(tuple(group[i] for i in at) in some for at, some in found)


@lru_cache(maxsize=64)
def _combinations(
    keys: tuple[Key, ...], source: Relation, _written: str
) -> tuple[tuple[tuple[int, ...], frozenset[Group]], ...]:
    """For the keys of each column, by their numbers, the combinations that it can have."""
    public = [(number, key) for number, key in enumerate(keys) if key.values is not None]
    used = [(references(key.expression), number, key) for number, key in public]
    single = sorted(
        ((next(iter(names)), number, key) for names, number, key in used if len(names) == 1),
        key=lambda one: one[:2],
    )
    if all(isinstance(key.expression, ColumnRef) for _, _, key in single):
        return _NOBODY  # a column itself is listed as it is
    try:
        known = columns(source, lambda *_: 1)
    except Refusal:
        return _NOBODY
    found = []
    for name, group in groupby(single, key=lambda one: one[0]):
        members = [(number, key) for _, number, key in group]
        some = _try_values(name, [key for _, key in members], known[name])
        if some is not None:
            found.append((tuple(number for number, _ in members), some))
    return tuple(found)


def _try_values(name: str, keys: Sequence[Key], domain: Domain) -> frozenset[Group] | None:
    values = _list_values(domain, {f for key in keys for f in _functions(key.expression)})
    if values is None:
        return None
    found = {tuple(evaluate(key.expression, {name: value}) for key in keys) for value in values}
    for place, key in enumerate(keys):
        listed = set(key.values or ())
        if not {group[place] for group in found} <= listed:
            return None  # listed otherwise than it is computed here: nothing is certain
    return frozenset(found)


def _list_values(domain: Domain, functions: set[str]) -> list[Any] | None:
    """Values of a column that between them give every combination of its keys."""
    missing = [None] if domain.nullable or domain.is_null else []
    if domain.kind not in (Kind.DATE, Kind.TIMESTAMP) or domain.values is not None:
        listed = domain.list_values(MOST_TRIED)
        return None if listed is None else [*listed, *missing]
    if domain.low is None or domain.high is None:
        return None
    low, high = (value_at(domain.kind, Fraction(end)) for end in (domain.low, domain.high))
    if not isinstance(low, date) or not isinstance(high, date):
        return None
    if domain.kind is Kind.TIMESTAMP and not functions <= _DAILY:
        return None
    return _days(low, high, monthly=functions <= _MONTHLY, missing=missing)


def _days(low: date, high: date, *, monthly: bool, missing: list[None]) -> list[Any] | None:
    """The first day and then every one, or the first of every month, to the last."""
    if (high - low).days >= MOST_TRIED and not monthly:
        return None
    found: list[Any] = [low]
    day = low
    while True:
        step = _next_month(day) if monthly else day + timedelta(days=1)
        day = datetime(step.year, step.month, step.day) if isinstance(low, datetime) else step
        if day > high:
            return [*found, high, *missing]
        found.append(day)


def _next_month(day: date) -> date:
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


def _functions(expression: Expression) -> set[str]:
    match expression:
        case Call(function=name, arguments=parts):
            return {name}.union(*map(_functions, parts))
        case Case(branches=branches, otherwise=otherwise):
            parts = (*(part for branch in branches for part in branch), otherwise)
            return {"case"}.union(*map(_functions, parts))
    return set()


__all__ = ["find_possible"]
