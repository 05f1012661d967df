"""How many units there are: a public number where neighbours change one, so it has no noise.

Neighbours that change one unit have as many units as before.  A table with one row for each of
them has as many rows, and a question for that number alone tells nobody anything that such
neighbours do not share.  What could make it depend on one unit is left to noise: a condition, a
join, a second table in which units of the same kind may be instead.

Lemma 9 of ``docs/proofs/joint.md``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

from discreet.accounting.loss import EPSILON_UNITS, RHO_UNITS, Loss
from discreet.accounting.neighbours import Neighbours
from discreet.price.plan import Measurement, Moments, Plan, Reach, Sensitivity, Units
from discreet.price.priced import Priced, bound_contribution
from discreet.price.recipes import WEIGHT_BITS, choose_measurements
from discreet.price.summed import Summed
from discreet.question.catalogue import Catalogue
from discreet.question.ownership import columns, row_bound
from discreet.question.question import Question
from discreet.question.relation import Relation, Source
from discreet.question.schema import Owners

_PUBLIC = Summed(())
"""No noise: a sum of no draws."""

LEAST = Loss(Fraction(1, EPSILON_UNITS), Fraction(1, RHO_UNITS), Fraction(0))
"""The least that an account counts: nothing is looked at for nothing."""


def list_sizes(people: Mapping[str, Sequence[object]]) -> frozenset[str]:
    """The tables whose number of units is public, of all that were ever declared.

    ``people``: for each private table whom it is about, how a row tells, and what neighbours are.
    """
    about = [person[0] for person in people.values()]
    return frozenset(
        name
        for name, person in people.items()
        if person[-1] == Neighbours.CHANGE_ONE.value and about.count(person[0]) == 1
    )


def price_size(question: Question, catalogue: Catalogue, sizes: Collection[str]) -> Priced | None:
    """A question for nothing but a public number of units; None for any other."""
    if question.keys or not _is_whole(question.source, sizes):
        return None
    multiplicity = catalogue.multiplicity
    bound = bound_contribution(question, multiplicity)
    most = row_bound(question.source, multiplicity)
    reach = Reach.of(bound, grouped=False, most=most, width=1)
    known = columns(question.source, multiplicity)
    menu = choose_measurements(question.aggregates, known, WEIGHT_BITS[0])
    if not all(is_size(measurement, reach) for measurement in menu.measurements):
        return None
    count = len(menu.measurements)
    return Priced(
        question,
        Plan(question.source, (), bound, menu.measurements),
        menu.recipes,
        (_PUBLIC,) * count,
        (Sensitivity(0, 0),) * count,
        reach,
        Neighbours.CHANGE_ONE,
        None,
        LEAST,
    )


def _is_whole(relation: Relation, sizes: Collection[str]) -> bool:
    """Whether all units of a table are in it: nothing chose among its rows."""
    return (
        isinstance(relation, Source)
        and relation.table.name in sizes
        and relation.table.owners is Owners.ONE
        and not relation.table.blocks
    )


def is_size(measurement: Measurement, reach: Reach) -> bool:
    """Whether it counts every unit once, whatever its rows say."""
    if measurement == Units():
        return True
    return measurement == Moments() and reach.rows == 1


def is_public(priced: Priced) -> bool:
    """Whether it was priced as a public number of units, and is one: nothing else has no noise."""
    plan = priced.plan
    return (
        priced.loss == LEAST
        and priced.neighbours is Neighbours.CHANGE_ONE
        and isinstance(plan.source, Source)
        and not plan.keys
        and all(mechanism == _PUBLIC for mechanism in priced.mechanisms)
        and all(is_size(measurement, priced.reach) for measurement in plan.measurements)
    )


__all__ = ["is_public", "list_sizes", "price_size"]
