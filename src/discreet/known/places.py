"""Under which rows an answer is kept, and under which rows answers to a question are looked for.

A number that was measured under a FILTER is one about the rows of its WHERE that fulfil both
(``docs/proofs/known.md``, Lemma 18), so it is kept there, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import islice

from discreet.exact.numbers import canonical_json
from discreet.known.forms import list_conditions
from discreet.ledger.charges import About
from discreet.price import Priced
from discreet.price.plan import BaseRows, Measurement, Plan, list_values, rename
from discreet.question.expressions import Expression
from discreet.question.functions import references
from discreet.release.record import to_json

MOST_PLACES = 64
"""An answer of more conditions is found by the first of them: each is recorded with its charge."""
MOST_CONDITIONS = 8
"""Where more are asked for, answers are looked for by those of the WHERE alone."""


def describe_rows(plan: Plan) -> About:
    """Which rows a plan measures, as it was asked."""
    rows = BaseRows.of(plan.source)
    return _describe(plan, rows, rows.conditions, plan.measurements)


def list_places(plan: Plan) -> tuple[About, ...]:
    """All the rows that an answer is about: as it was asked, in one form, and by each FILTER."""
    rows, asked = BaseRows.of(plan.source), describe_rows(plan)
    if not plan.contribution.enforced:  # which rows are kept hangs on the question
        return (asked,)
    where = [part for one in rows.conditions for part in list_conditions(one)]
    found = [asked, _describe(plan, rows, _unique(where), plan.measurements)]
    filtered = (one for one in plan.measurements if one.condition is not None)
    for one in islice(filtered, MOST_PLACES):
        own = _list_own(one.condition, rows)
        found.append(_describe(plan, rows, _unique([*where, *own]), [one]))
    return tuple(dict.fromkeys(found))


def list_sought(priced: Priced) -> tuple[About, ...]:
    """Where answers that tell a question are looked for: as it is asked, and in one form.

    What all of its aggregates ask of a row may have been a condition of the answer; the columns
    of these conditions need not be told apart by its groups.
    """
    plan, asked = priced.plan, describe_rows(priced.plan)
    if not plan.contribution.enforced:
        return (asked,)
    rows = BaseRows.of(plan.source)
    where = _unique(part for one in rows.conditions for part in list_conditions(one))
    form = _describe(plan, rows, where, plan.measurements)
    own = [
        {_digest(part) for part in _list_own(one.condition, rows)}
        for one in priced.question.aggregates
    ]
    known = {text for text, _ in form.conditions}
    shared = sorted(set.intersection(*own) - known) if own else []
    if shared and len(known) + len(shared) <= MOST_CONDITIONS:
        more = tuple((text, frozenset[str]()) for text in shared)
        form = About(form.base, (*form.conditions, *more), form.keys, form.measured)
    return tuple(dict.fromkeys((asked, form)))


def _describe(
    plan: Plan, rows: BaseRows, conditions: Iterable[Expression], some: Iterable[Measurement]
) -> About:
    keys = [rename(key.expression, rows.names) for key in plan.keys]
    measured = [rename(value, rows.names) for one in some for value in list_values(one)]
    return About(
        _digest(rows.base),
        tuple((_digest(one), references(one)) for one in conditions),
        frozenset().union(*map(references, keys)),
        frozenset().union(*map(references, measured)),
    )


def _list_own(condition: Expression | None, rows: BaseRows) -> tuple[Expression, ...]:
    """The conditions of one aggregate."""
    return () if condition is None else list_conditions(rename(condition, rows.names))


def _unique(conditions: Iterable[Expression]) -> list[Expression]:
    return list({_digest(one): one for one in conditions}.values())


def _digest(value: object) -> str:
    text = canonical_json(to_json(value), ascii_only=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


__all__ = ["describe_rows", "list_places", "list_sought"]
