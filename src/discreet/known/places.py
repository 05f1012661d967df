"""Under which rows an answer is kept, and under which rows answers to a question are looked for.

A number that was measured under a FILTER is one about the rows of its WHERE that fulfil both
(``docs/proofs/known.md``, Lemma 18), so it is kept there, too.
"""

from __future__ import annotations

from collections.abc import Iterable

from discreet.ledger.charges import About
from discreet.price import Priced
from discreet.price.plan import BaseRows, Plan, list_conditions, list_values, rename
from discreet.question.expressions import Expression
from discreet.question.functions import references
from discreet.release.record import digest

MOST_CONDITIONS = 8
"""Where there are more, an answer is kept and looked for by those of the WHERE alone: each place
is recorded with its charge, and names them all."""


def list_more(plan: Plan, asked: About) -> tuple[About, ...]:
    """The rows that an answer is about beside those ``asked``: in one form, and by each FILTER."""
    if not plan.contribution.enforced:  # which rows are kept hangs on the question
        return ()
    rows = BaseRows.of(plan.source)
    form = _form(asked, rows)
    found = [form]
    for one in plan.measurements:
        own = _list_own(one.condition, rows)
        if not own or len(form.conditions) + len(own) > MOST_CONDITIONS:
            continue
        measured = _name_columns(rows, list_values(one))
        both = tuple(dict([*form.conditions, *_describe_conditions(own)]).items())
        found.append(About(form.base, both, form.keys, measured))
    return tuple(one for one in dict.fromkeys(found) if one != asked)


def list_sought(priced: Priced, asked: About) -> tuple[About, ...]:
    """Where answers that tell a question are looked for: as it is ``asked``, and in one form.

    What all of its aggregates ask of a row may have been a condition of the answer; the columns
    of these conditions need not be told apart by its groups.
    """
    if not priced.plan.contribution.enforced:
        return (asked,)
    rows = BaseRows.of(priced.plan.source)
    form = _form(asked, rows)
    own = [
        {digest(part) for part in _list_own(one.condition, rows)}
        for one in priced.question.aggregates
    ]
    known = {text for text, _ in form.conditions}
    shared = sorted(set.intersection(*own) - known) if own else []
    if shared and len(known) + len(shared) <= MOST_CONDITIONS:
        more = tuple((text, frozenset[str]()) for text in shared)
        form = About(form.base, (*form.conditions, *more), form.keys, form.measured)
    return tuple(dict.fromkeys((asked, form)))


def _form(asked: About, rows: BaseRows) -> About:
    """The same rows, by conditions in their one form, each once."""
    parts = [part for one in rows.conditions for part in list_conditions(one)]
    found = dict(_describe_conditions(parts))
    return About(asked.base, tuple(found.items()), asked.keys, asked.measured)


def _describe_conditions(
    conditions: Iterable[Expression],
) -> tuple[tuple[str, frozenset[str]], ...]:
    return tuple((digest(one), references(one)) for one in conditions)


def _name_columns(rows: BaseRows, expressions: Iterable[Expression]) -> frozenset[str]:
    return frozenset().union(*(references(rename(one, rows.names)) for one in expressions))


def _list_own(condition: Expression | None, rows: BaseRows) -> tuple[Expression, ...]:
    """The conditions of one aggregate."""
    return () if condition is None else list_conditions(rename(condition, rows.names))


__all__ = ["MOST_CONDITIONS", "list_more", "list_sought"]
