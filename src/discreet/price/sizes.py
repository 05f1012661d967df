"""How many units there are: a public number where neighbours change one, so it has no noise.

Beside other numbers it has none either, and a mean of a value that everybody has is the noisy sum
divided by it.

Neighbours that change one unit have as many units as before.  A table with one row for each of
them has as many rows, and a question for that number alone tells nobody anything that such
neighbours do not share.  What could make it depend on one unit is left to noise: a condition, a
join, a second table in which units of the same kind may be instead.

Lemma 9 of ``docs/proofs/joint.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from discreet.accounting.loss import EPSILON_UNITS, NOTHING, RHO_UNITS, Loss
from discreet.accounting.neighbours import Neighbours
from discreet.price.plan import Measurement, Moments, Plan, Reach, Sensitivity, Units
from discreet.price.priced import Priced, bound_contribution
from discreet.price.recipes import WEIGHT_BITS, Menu, Recipe, choose_measurements
from discreet.price.summed import Summed
from discreet.question.catalogue import Catalogue
from discreet.question.domain import Domain, Kind
from discreet.question.expressions import Call, Case, ColumnRef, Expression, Literal
from discreet.question.functions import domain_of
from discreet.question.offer import Offer
from discreet.question.ownership import columns, row_bound
from discreet.question.question import Aggregate, Output, Question
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


def price_beside(
    question: Question,
    spend: Offer,
    catalogue: Catalogue,
    sizes: Collection[str],
    buy: Callable[[Question, Offer], Priced],
) -> Priced | None:
    """A question for a public number of units among others, of which ``buy`` prices the rest.

    None for any other.  A mean becomes a sum divided by the number, unless an accuracy is asked
    for: that of a mean hangs on the number, which no price may.
    """
    if question.keys or not _is_whole(question.source, sizes):
        return None
    multiplicity = catalogue.multiplicity
    bound = bound_contribution(question, multiplicity)
    most = row_bound(question.source, multiplicity)
    reach = Reach.of(bound, grouped=False, most=most, width=1)
    known = columns(question.source, multiplicity)
    divided = reach.rows == 1 and not spend.within
    asked = divide_means(question, known) if divided else question
    menus = [choose_measurements((one,), known, WEIGHT_BITS[0]) for one in asked.aggregates]
    public = [all(is_size(m, reach) for m in menu.measurements) for menu in menus]
    if all(public) or not any(public):
        return None
    rest = tuple(a for a, free in zip(asked.aggregates, public, strict=True) if not free)
    outputs = tuple(Output(one.name, ColumnRef(one.name)) for one in rest)
    free = {a.name for a, free in zip(asked.aggregates, public, strict=True) if free}
    offer = replace(spend, within=tuple(one for one in spend.within if one[0] not in free))
    bought = buy(replace(asked, aggregates=rest, outputs=outputs, having=None, order=()), offer)
    return _put_beside(bought, asked, public, menus)


def _put_beside(
    bought: Priced, asked: Question, public: Sequence[bool], menus: Sequence[Menu]
) -> Priced:
    """What was bought, and public numbers after it, each read by its own aggregates."""
    measured, recipes = list(bought.plan.measurements), list[Recipe]()
    rest = iter(bought.recipes)
    for free, menu in zip(public, menus, strict=True):
        if not free:
            recipes.append(next(rest))
            continue
        (size,), (recipe,) = menu.measurements, menu.recipes
        places = range(len(bought.plan.measurements), len(measured))
        place = next((i for i in places if measured[i] == size), len(measured))
        if place == len(measured):
            measured.append(size)
        recipes.append(replace(recipe, measurement=place))
    more = len(measured) - len(bought.mechanisms)
    together = bought.together
    return replace(
        bought,
        question=asked,
        plan=replace(bought.plan, measurements=tuple(measured)),
        recipes=tuple(recipes),
        mechanisms=(*bought.mechanisms, *((_PUBLIC,) * more)),
        sensitivities=(*bought.sensitivities, *((Sensitivity(0, 0),) * more)),
        together=together and tuple((*way, *((Fraction(0),) * more)) for way in together),
    )


def divide_means(question: Question, known: Mapping[str, Domain]) -> Question:
    """Means of values that nobody lacks, as sums divided by the number of units.

    Of x - low, so that a change moves the sum by no more than x can differ.  Not where the same
    values are measured to higher powers: a mean is free there.
    """
    means = [one for one in question.aggregates if _is_divided(one, question, known)]
    if not means:
        return question
    taken = {one.name for one in question.aggregates} | {one.name for one in question.outputs}
    count = Aggregate(_find_name("units", taken), "COUNT")
    aggregates, instead = [count], dict[str, Expression]()
    for one in question.aggregates:
        if one not in means:
            aggregates.append(one)
            continue
        (value,) = one.arguments
        low = domain_of(value, known).low or Fraction(0)
        total = replace(
            one,
            name=_find_name(f"sum of {one.name}", taken),
            function="SUM",
            arguments=(Call("subtract", (value, _constant(low))),) if low else (value,),
        )
        taken.add(total.name)
        aggregates.append(total)
        mean: Expression = Call("divide", (ColumnRef(total.name), ColumnRef(count.name)))
        instead[one.name] = Call("add", (mean, _constant(low))) if low else mean
    return replace(
        question,
        aggregates=tuple(aggregates),
        outputs=tuple(replace(o, expression=_put(o.expression, instead)) for o in question.outputs),
        having=None if question.having is None else _put(question.having, instead),
        order=tuple(replace(o, expression=_put(o.expression, instead)) for o in question.order),
    )


def _is_divided(one: Aggregate, question: Question, known: Mapping[str, Domain]) -> bool:
    plain = replace(one, name="", function="", arguments=()) == Aggregate("", "")
    if one.function != "AVG" or not plain:
        return False
    domain = domain_of(one.arguments[0], known)
    alike = {a.function for a in question.aggregates if set(one.arguments) & set(a.arguments)}
    is_number = domain.kind in (Kind.INTEGER, Kind.DECIMAL)
    return is_number and domain.bounded and not domain.nullable and alike == {"AVG"}


def _constant(number: Fraction) -> Literal:
    return Literal(int(number) if number.denominator == 1 else number)


def _find_name(wanted: str, taken: Collection[str]) -> str:
    names = (wanted, *(f"{wanted} {n}" for n in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def _put(expression: Expression, instead: Mapping[str, Expression]) -> Expression:
    """The expression with some columns replaced by what they are computed of."""
    match expression:
        case ColumnRef(name=name):
            return instead.get(name, expression)
        case Call(function=function, arguments=arguments):
            return Call(function, tuple(_put(part, instead) for part in arguments))
        case Case(branches=branches, otherwise=otherwise):
            put = tuple((_put(a, instead), _put(b, instead)) for a, b in branches)
            return Case(put, _put(otherwise, instead))
    return expression


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
    return priced.loss == LEAST and all(
        is_public_part(priced, place) for place in range(len(priced.mechanisms))
    )


def is_public_part(priced: Priced, place: int) -> bool:
    """Whether one measurement is a public number of units, and was priced as one.

    A number that was read off others, of which none had to be added up, was not priced at all.
    """
    plan = priced.plan
    return (
        priced.neighbours is Neighbours.CHANGE_ONE
        and priced.loss != NOTHING
        and isinstance(plan.source, Source)
        and not plan.keys
        and priced.mechanisms[place] == _PUBLIC
        and is_size(plan.measurements[place], priced.reach)
    )


def has_public_part(priced: Priced) -> bool:
    """Whether a public number of units stands among what was priced."""
    return any(is_public_part(priced, place) for place in range(len(priced.mechanisms)))


__all__ = [
    "divide_means",
    "has_public_part",
    "is_public",
    "is_public_part",
    "list_sizes",
    "price_beside",
    "price_size",
]
