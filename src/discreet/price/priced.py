"""A question with its price: the plan, the mechanism bought for each measurement, the loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from discreet.accounting.conversion import largest_rho
from discreet.accounting.loss import NOTHING, Loss, failure_mass
from discreet.errors import InvalidParameter, QuestionRefusal
from discreet.exact.balls import sqrt_down
from discreet.mechanisms import Laplace
from discreet.price.calibration import (
    Bought,
    Selection,
    buy_laplace,
    buy_smallest,
    concentrated_shares,
    laplace_variance,
    pure_shares,
)
from discreet.price.keys import Threshold, find_threshold
from discreet.price.plan import (
    Contribution,
    GroupTotal,
    Histogram,
    Measurement,
    Moments,
    Plan,
    Reach,
    Sensitivity,
    Units,
    ValueCounts,
    compute_sensitivity,
)
from discreet.price.recipes import WEIGHT_BITS, Choice, Menu, Quantile, Recipe, choose_measurements
from discreet.question.offer import Offer
from discreet.question.ownership import check_joined_rows, columns, row_bound
from discreet.question.question import Limits, Question, check_size
from discreet.question.schema import Neighbours, Schema, Table
from discreet.question.work import check_work

Multiplicity = Callable[[Table, tuple[str, ...]], int | None]
"""How many rows of a public table share one value of some columns; read from that table."""


@dataclass(frozen=True, slots=True)
class Priced:
    """Everything that is decided before data is read."""

    question: Question
    plan: Plan
    recipes: tuple[Recipe, ...]
    mechanisms: tuple[Bought, ...]  # one for each measurement
    sensitivities: tuple[Sensitivity, ...]
    reach: Reach
    neighbours: Neighbours
    threshold: Threshold | None
    loss: Loss


@dataclass(frozen=True, slots=True)
class Way:
    """One way to use a spend: pure losses that add up, or concentrated ones."""

    epsilon: Fraction | None
    rho: Fraction | None
    key_delta: Fraction


def price(
    question: Question, spend: Offer, *, schema: Schema, multiplicity: Multiplicity
) -> Priced:
    """The best noise that ``spend`` buys for ``question``, and its exact loss."""
    check_size(question)
    check_joined_rows(question.source, schema.most_joined_rows, multiplicity)
    check_work(question, schema.most_joined_rows, multiplicity)
    bound = bound_contribution(question, multiplicity)
    known = columns(question.source, multiplicity=multiplicity)
    private = any(key.values is None for key in question.keys)
    ways = list(_list_ways(spend, private=private))
    most = row_bound(question.source, multiplicity)
    reach = Reach.of(bound, grouped=bool(question.keys), most=most)
    for weight_bits in WEIGHT_BITS:
        wanted = choose_measurements(question.aggregates, known, weight_bits)
        measurements = wanted.measurements
        if private and Units() not in measurements:
            measurements += (Units(),)
        plan = Plan(question.source, question.keys, bound, measurements)
        offers = [_buy(question, plan, wanted, reach, schema.neighbours, way) for way in ways]
        drawable = [offer for offer in offers if offer is not None]
        if drawable:
            return min(drawable, key=_sum_errors)
    raise InvalidParameter(
        "P2",
        "the spend is so small that the noise it asks for does not fit 64-bit integers.",
        why="noise that is cut off would no longer hide anybody as promised.",
        fix="offer more, ask for fewer aggregates at once, or bound what one person adds.",
    )


def _sum_errors(priced: Priced) -> float:
    """The sum of squared noise, each measured in rows (or units) of its own measurement."""
    total = 0.0
    for bought, measurement in zip(priced.mechanisms, priced.plan.measurements, strict=True):
        match bought:
            case Selection(epsilon=epsilon, score_change=change):
                total += (change / float(epsilon)) ** 2
            case Laplace(scale=scale):
                total += laplace_variance(scale) / _row_weight(measurement) ** 2
            case _:
                total += bought.variance / _row_weight(measurement) ** 2
    return total


def _row_weight(measurement: Measurement) -> float:
    """What one row or unit weighs in the integers of a measurement."""
    match measurement:
        case Moments(weight=weight):
            return float(weight)
        case GroupTotal(span=span):
            return float(span)
    return 1.0


# --- what one unit may contribute --------------------------------------------------------------


def bound_contribution(question: Question, multiplicity: Multiplicity) -> Contribution:
    """The bounding a question needs, from its own limits or from the schema's."""
    most = row_bound(question.source, multiplicity)
    limits: Limits = question.limits
    if limits.max_groups is not None or limits.max_rows_per_group is not None:
        per_group = _take_smaller(limits.max_rows_per_group or limits.max_rows, most)
        groups = _take_smaller(limits.max_groups, most)
        if per_group is not None and groups is not None:
            return Contribution(groups=groups, rows_per_group=per_group)
    elif limits.max_rows is not None:
        enforced = most is not None and most <= limits.max_rows
        return Contribution(rows=_take_smaller(limits.max_rows, most), enforced=enforced)
    elif most is not None:
        return Contribution(rows=most, enforced=True)
    raise QuestionRefusal(
        "Q41",
        "nothing says how many rows one unit can have in this question.",
        why="somebody with any number of rows could not be hidden by any amount of noise.",
        fix="declare max_rows_per_unit for the table, or ask with max_rows=20.",
    )


def _take_smaller(asked: int | None, most: int | None) -> int | None:
    """The smaller of two bounds, either of which may be absent."""
    return min((bound for bound in (asked, most) if bound is not None), default=None)


# --- ways to use a spend -----------------------------------------------------------------------

LEAST_SPEND, GREATEST_SPEND = Fraction(1, 2**80), Fraction(2**20)
"""An epsilon or rho beyond these buys nothing, or protects nobody."""
LEAST_DELTA = Fraction(1, 2**1000)
"""A smaller delta buys nothing: no threshold that a group could reach."""


def _list_ways(spend: Offer, *, private: bool) -> Iterator[Way]:
    delta = failure_mass(spend.delta or Fraction(0))
    for name, amount in (("epsilon", spend.epsilon), ("rho", spend.rho)):
        if amount is not None and not LEAST_SPEND <= amount <= GREATEST_SPEND:
            raise InvalidParameter(
                "P2",
                f"{name} must be between 2**-80 and 2**20.",
                why="less buys no answer, and more would not protect anybody.",
                fix=f"offer an amount such as {name}='0.1'.",
            )
    if 0 < delta < LEAST_DELTA:
        raise InvalidParameter(
            "P2",
            "delta must be 0, or at least 2**-1000.",
            why="less buys no answer.",
            fix="offer a delta such as delta='1e-9', or none.",
        )
    if private and delta == 0:
        raise QuestionRefusal(
            "Q42",
            "these groups are not listed publicly, so showing them needs a delta.",
            why="a group that only one person is in would show that person; a small delta "
            "pays for a threshold that hides such groups.",
            fix="offer a delta, such as delta='1e-9', or group by a column with declared values.",
        )
    if spend.rho is not None:
        yield Way(None, spend.rho, delta if private else Fraction(0))
        return
    if spend.epsilon is None:
        raise QuestionRefusal(
            "Q43",
            "the question says neither what it may cost nor how accurate it must be.",
            why="every answer costs the people in the data something; how much is a decision.",
            fix="ask with epsilon='0.1', or with within=50.",
        )
    yield Way(spend.epsilon, None, delta if private else Fraction(0))
    for_conversion = delta / 2 if private else delta
    if for_conversion > 0:
        rho = largest_rho(spend.epsilon, for_conversion)
        yield Way(None, rho, delta / 2 if private else Fraction(0))


def _buy(
    question: Question,
    plan: Plan,
    wanted: Menu,
    reach: Reach,
    neighbours: Neighbours,
    way: Way,
) -> Priced | None:
    """What ``way`` buys; None if noise that large cannot be drawn."""
    measurements = plan.measurements
    sensitivities = tuple(compute_sensitivity(m, reach, neighbours) for m in measurements)
    choices = [_count_choices(index, wanted.recipes) for index in range(len(measurements))]
    bought = tuple(_buy_mechanisms(plan, sensitivities, choices, reach, neighbours, way))
    mechanisms = tuple(mechanism for mechanism in bought if mechanism is not None)
    if len(mechanisms) < len(bought):
        return None
    cut = None
    if not plan.public_keys:
        index = measurements.index(Units())
        counting = mechanisms[index]
        if isinstance(counting, Selection):
            raise TypeError("units are counted, not chosen")
        factor = 2 if neighbours is Neighbours.CHANGE_ONE else 1
        cut = find_threshold(index, counting, factor * reach.groups, way.key_delta)
    loss = sum((mechanism.loss for mechanism in mechanisms), start=NOTHING)
    if cut is not None:
        loss += Loss(Fraction(0), Fraction(0), cut.delta)
    return Priced(
        question,
        plan,
        wanted.recipes,
        mechanisms,
        sensitivities,
        reach,
        neighbours,
        cut,
        loss,
    )


def _count_choices(index: int, recipes: tuple[Recipe, ...]) -> int:
    """How many choices the exponential mechanism makes, one after another, for a measurement."""
    total = 0
    for recipe in recipes:
        if recipe.measurement != index:
            continue
        if isinstance(recipe, Quantile):  # recursive halving: one choice per level
            total += len(recipe.different).bit_length()
        elif isinstance(recipe, Choice):
            total += recipe.count
    return total


def _buy_mechanisms(
    plan: Plan,
    sensitivities: tuple[Sensitivity, ...],
    choices: list[int],
    reach: Reach,
    neighbours: Neighbours,
    way: Way,
) -> Iterator[Bought | None]:
    factor = 2 if neighbours is Neighbours.CHANGE_ONE else 1
    # Lemma 6: a choice costs a unit in proportion to its rows in the group, so R rows in all cost
    # as much as R rows in one group, and G groups of at most C rows as much as G full ones (or
    # as the groups, the last perhaps not full, that hold all the rows a unit can have).
    # Lemma 5: a change moves scores by what is taken away and by what is added, in one group too.
    full_groups = -(-reach.rows // reach.rows_per_group)
    sizes = [
        choices[i] * full_groups * factor * reach.rows_per_group
        if choices[i]
        else (s.l1 if way.rho is None else sqrt(s.l2_squared)) / _row_weight(m)
        for i, (m, s) in enumerate(zip(plan.measurements, sensitivities, strict=True))
    ]
    shares = pure_shares(sizes) if way.rho is None else concentrated_shares(sizes)
    for i, (measurement, share) in enumerate(zip(plan.measurements, shares, strict=True)):
        if choices[i] and isinstance(measurement, Histogram | ValueCounts):
            groups = full_groups
            if way.epsilon is not None:
                epsilon = share * way.epsilon / (groups * choices[i])
            else:  # rho = epsilon**2 / 8 for each choice
                epsilon = sqrt_down(8 * share * (way.rho or 0) / (groups * choices[i]), bits=32)
            # An offer that was rounded down to nothing buys no choice.
            chosen = Selection(epsilon, choices[i], groups, factor * reach.rows_per_group)
            yield chosen if epsilon else None
        elif way.epsilon is not None:
            yield buy_laplace(share * way.epsilon, sensitivities[i])
        else:
            yield buy_smallest(share * (way.rho or Fraction(0)), sensitivities[i])
