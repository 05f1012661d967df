"""The rest of the rows beside those that are asked about, for the same price.

A person is in one group of a table, so a table costs what one of its groups does.  Who asks for
the rows of a condition at an accuracy may as well buy the table that tells all the others, too, by
the columns that the question names: its own groups are as good, and the rest is known from then
on (``docs/proofs/known.md``, Lemma 16).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from discreet.known.derive import Multiplicity, same_text
from discreet.price.plan import split_condition
from discreet.question.blocks.evaluate import Known, evaluate_on_blocks
from discreet.question.domain import Domain, Value
from discreet.question.expressions import Call, Case, ColumnRef, Expression, Literal
from discreet.question.functions import references
from discreet.question.functions.declaration import as_engine
from discreet.question.ownership import columns
from discreet.question.question import Key, Limits, Output, Question, public_values
from discreet.question.relation import Filter
from discreet.question.sql import write_question_text

MOST_VALUES = 64
"""A column of more values is not told apart by them, only by what the question says of it."""
MOST_GROUPS = 512
"""A table of more groups is not bought unasked: it is stored and read with every answer."""


def widen(question: Question, multiplicity: Multiplicity) -> Question | None:
    """The table over all rows of which ``question`` asks for some groups; None if there is none.

    Each condition becomes a key: a column of few values, with those that are asked for taken
    together, or else whether the condition holds.
    """
    source, conditions = question.source, list[Expression]()
    while isinstance(source, Filter):
        conditions += split_condition(source.predicate)
        source = source.source
    if not conditions or question.limits != Limits():
        return None
    known = columns(source, multiplicity)
    keys = [replace(key, values=public_values(key.expression, known)) for key in question.keys]
    told = {same_text(key.expression) for key in keys}
    for expression, values in _list_parts(conditions, known, told):
        keys.append(Key(_find_name(keys, question), expression, values))
    if any(key.values is None for key in keys):
        return None
    if math.prod(len(key.values or ()) for key in keys) > MOST_GROUPS:
        return None
    names = [*(key.name for key in keys), *(one.name for one in question.aggregates)]
    outputs = tuple(Output(name, ColumnRef(name)) for name in names)
    found = Question(source, tuple(keys), question.aggregates, outputs)
    return replace(found, text=write_question_text(found))  # as certificates name it


def _find_name(keys: list[Key], question: Question) -> str:
    """A name that no key and no aggregate has."""
    taken = {key.name for key in keys} | {one.name for one in question.aggregates}
    taken |= {output.name for output in question.outputs}
    return next(name for n in range(len(taken) + 1) if (name := f"part_{n + 1}") not in taken)


def _list_parts(
    conditions: Iterable[Expression], known: Mapping[str, Domain], told: set[str]
) -> list[tuple[Expression, tuple[Value | None, ...] | None]]:
    """By what rows of the conditions and others are told apart, beside what is ``told`` already."""
    found: list[tuple[Expression, tuple[Value | None, ...] | None]] = []
    by_column: dict[str, list[Expression]] = {}
    for condition in conditions:
        names = references(condition)
        column = next(iter(names)) if len(names) == 1 else None
        if column is not None and _is_listed(known.get(column)):
            by_column.setdefault(column, []).append(condition)
            continue
        plain = _without_not(condition)
        if same_text(plain) not in told:
            told.add(same_text(plain))
            found.append((plain, public_values(plain, known)))
    for column, some in by_column.items():
        if same_text(ColumnRef(column)) not in told:
            found.append(_merge(column, some, known))
    return found


def _without_not(condition: Expression) -> Expression:
    """What is denied tells the same rows apart."""
    while isinstance(condition, Call) and condition.function == "not":
        (condition,) = condition.arguments
    return condition


def _is_listed(domain: Domain | None) -> bool:
    return domain is not None and domain.values is not None and len(domain.values) <= MOST_VALUES


def _merge(
    column: str, conditions: list[Expression], known: Mapping[str, Domain]
) -> tuple[Expression, tuple[Value | None, ...] | None]:
    """A column whose values that fulfil all conditions are taken for the first of them."""
    listed = public_values(ColumnRef(column), known) or ()
    kept = _list_true(column, listed, conditions, known)
    first = next((i for i in kept if listed[i] is not None), None)
    if len(kept) == 1 or first is None:
        return ColumnRef(column), listed
    whole = conditions[0] if len(conditions) == 1 else Call("and", tuple(conditions))
    rest = tuple(value for i, value in enumerate(listed) if i not in kept or i == first)
    return Case(((whole, Literal(listed[first])),), ColumnRef(column)), rest


def _list_true(
    column: str,
    listed: tuple[Value | None, ...],
    conditions: list[Expression],
    known: Mapping[str, Domain],
) -> list[int]:
    """The places of the values for which all conditions hold; none where that is not certain."""
    values = np.empty(len(listed), dtype=object)
    values[:] = [as_engine(value, known[column].kind) for value in listed]
    kept = [True] * len(listed)
    for condition in conditions:
        found = evaluate_on_blocks(condition, {column: Known(values, known[column])}, 1)
        if found is None:
            return []
        told = np.broadcast_to(found.values, values.shape).tolist()
        kept = [before and now is True for before, now in zip(kept, told, strict=True)]
    return [place for place, holds in enumerate(kept) if holds]


__all__ = ["widen"]
