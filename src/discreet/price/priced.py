"""A question with its price: the plan, the mechanism bought for each measurement, the loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import Enum
from fractions import Fraction
from math import hypot, sqrt

from discreet.accounting.conversion import largest_rho
from discreet.accounting.loss import NOTHING, Loss, failure_mass
from discreet.errors import InvalidParameter, QuestionRefusal
from discreet.exact.balls import sqrt_down
from discreet.exact.records import dataclass
from discreet.mechanisms import Gaussian, KeyRelease, Laplace
from discreet.mechanisms.clipping import ENDS, ClippedSums
from discreet.price.calibration import (
    Bought,
    Selection,
    buy_calibrated,
    buy_clipped,
    buy_gaussian,
    buy_laplace,
    buy_pure,
    buy_smallest,
    gaussian_loss,
    laplace_variance,
    pure_shares,
    share_rho,
)
from discreet.price.keys import (
    Threshold,
    covers,
    find_deciding,
    find_threshold,
    least_units,
    rank_threshold,
)
from discreet.price.owners import check_owners
from discreet.price.plan import (
    Contribution,
    GroupMean,
    GroupSum,
    GroupTotal,
    Histogram,
    Measurement,
    Moments,
    Plan,
    Products,
    Reach,
    Sensitivity,
    Sum,
    Units,
    ValueCounts,
    compute_sensitivity,
    find_moves,
)
from discreet.price.recipes import (
    WEIGHT_BITS,
    Choice,
    Clipped,
    Menu,
    Quantile,
    Recipe,
    Spread,
    choose_measurements,
    measure_sums_alone,
)
from discreet.price.summed import Summed
from discreet.question.catalogue import Catalogue
from discreet.question.expressions import ColumnRef
from discreet.question.functions import references
from discreet.question.offer import Offer
from discreet.question.ownership import (
    Columns,
    are_told_apart,
    check_joined_rows,
    columns,
    constant_columns,
    find_neighbours,
    gains_rows,
    is_shared,
    row_bound,
)
from discreet.question.question import Limits, Question, check_measured, check_size
from discreet.question.schema import Neighbours, Table
from discreet.question.work import check_work

Multiplicity = Callable[[Table, tuple[str, ...]], int | None]
"""How many rows of a public table share one value of some columns; read from that table."""

Together = tuple[tuple[Fraction, ...], ...] | None
"""Of each measurement, the part of its loss that each way to be moved takes; None: all of all."""


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
    population: int | None = None
    """The declared number of units, where no group can be expected to reach the threshold."""
    together: Together = None
    """The ways in which one unit can move measurements together, where it cannot move all."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to use a spend: pure losses that add up, or concentrated ones.

    With ``noise_delta``, Gaussian noise on one measurement, calibrated to (epsilon,
    noise_delta) itself; with ``gaussian``, no other noise.  ``shared``: noise and threshold may
    have the same delta, if that can be shown to cover both.
    """

    epsilon: Fraction | None
    rho: Fraction | None
    key_delta: Fraction
    noise_delta: Fraction | None = None
    gaussian: bool = False
    shared: bool = False


class Compare(Enum):
    """How it is found what a change of one unit moves, the latest first."""

    UNITS = "units as a whole, in groups, too"
    ROWS = "rows two by two"
    SIDES = "what is left and what is joined, one beside the other; and degrees of both people so"


@dataclass(frozen=True, slots=True)
class Terms:
    """What is known of a question before its measurements are chosen."""

    question: Question
    bound: Contribution
    reach: Reach
    neighbours: Neighbours
    known: Columns
    multiplicity: Multiplicity
    ways: tuple[Way, ...]
    as_before: bool
    apart: bool
    in_company: bool
    compare: Compare

    @property
    def by_pairs(self) -> bool:
        """Whether what a change moves is found by comparing rows (joint.md, Lemma 7)."""
        changed = self.neighbours is Neighbours.CHANGE_ONE and self.compare is not Compare.SIDES
        return changed and not gains_rows(self.question.source)


@dataclass(frozen=True, slots=True)
class Offered:
    """What is to be bought: the measurements, and who of them decides which groups are shown."""

    terms: Terms
    plan: Plan
    menu: Menu
    deciding: int | None  # the measurement by which private groups are shown
    by_key_release: bool  # which nobody else reads, so that no number need be released
    together: Together

    @property
    def factor(self) -> int:
        """How many times a unit's own share one change of a neighbour is."""
        return count_sides(self.terms.neighbours)

    @property
    def by_ladder(self) -> bool:
        """Whether what is lost and gained of degrees is compared (the proofs for graphs, Lemma 9).

        Not where what is charged for is one side of it, or in parts.
        """
        terms = self.terms
        alone = self.together is None and not terms.in_company
        former = terms.apart or terms.compare is Compare.SIDES
        return alone and not former and gains_rows(terms.question.source)

    def by_steps(self, index: int) -> bool:
        """Whether noise in steps may be bought: who moves it loses it all (joint.md, Lemma 4)."""
        alone = self.together is None and not self.terms.in_company
        whole = all(way[index] in (0, 1) for way in self.together or ())
        return alone or (whole and self.terms.reach.rows == 1)


def count_sides(neighbours: Neighbours) -> int:
    """Between neighbours a unit comes or goes; or, where it changes, one goes and one comes."""
    return 2 if neighbours is Neighbours.CHANGE_ONE else 1


def price(
    question: Question,
    spend: Offer,
    catalogue: Catalogue,
    *,
    as_before: bool = False,
    apart: bool = False,
    in_company: bool = False,
    compare: Compare = Compare.UNITS,
    accuracy_first: bool = False,
) -> Priced:
    """The best noise that ``spend`` buys for ``question``, and its exact loss.

    ``as_before``: the noise that it bought when ledgers began to be kept.  What was
    paid for then is found under the key of that noise, and is free.
    ``apart``: the noise that it bought when each measurement was priced by itself.
    ``compare``: the noise that it bought when what a change moves was found so.
    ``in_company``: with noise that may be charged together with that of other questions.
    ``accuracy_first``: the least noise, even if private groups would be shown less often.
    """
    schema, multiplicity = catalogue.schema, catalogue.multiplicity
    check_measured(question)
    check_size(question)
    check_joined_rows(question.source, schema.most_joined_rows, multiplicity)
    check_work(question, schema.most_joined_rows, multiplicity)
    bound = bound_contribution(question, multiplicity)
    domains = columns(question.source, multiplicity)
    private = any(key.values is None for key in question.keys)
    ways = list(_list_ways(spend, private=private, as_before=as_before))
    most = row_bound(question.source, multiplicity)
    apart = apart or as_before
    width = None if apart else count_groups(question, multiplicity)
    reach = Reach.of(bound, grouped=bool(question.keys), most=most, width=width)
    sides = find_neighbours(question.source, schema.neighbours)
    how = (as_before, apart, in_company, compare)
    terms = Terms(question, bound, reach, sides, domains, multiplicity, tuple(ways), *how)
    for weight_bits in WEIGHT_BITS:
        joint = choose_measurements(question.aggregates, domains, weight_bits)
        menus = [joint]
        if not as_before:
            alone = measure_sums_alone(joint, question.aggregates, domains, weight_bits)
            menus += [alone] if alone != joint else []
        found = [
            (offer, 1.0 if menu is joint else _ALONE)
            for menu in menus
            for offer in _buy_all(terms, menu)
        ]
        if found:
            by_errors = as_before or accuracy_first
            best, _ = min(found, key=lambda one: _rank(*one, by_errors=by_errors))
            return best if as_before else _note_population(best, schema.population)
    raise InvalidParameter(
        "P2",
        "the spend is so small that the noise it asks for does not fit 64-bit integers.",
        why="noise that is cut off would no longer hide anybody as promised.",
        fix="offer more, ask for fewer aggregates at once, or bound what one person adds.",
    )


_ALONE = 1.001
"""A sum is measured by itself where that is better; where it is the same, as it always was."""


def _buy_all(terms: Terms, menu: Menu) -> list[Priced]:
    """What each of the ways buys of one menu, where the noise can be drawn."""
    question, reach = terms.question, terms.reach
    measurements = menu.measurements
    deciding, by_key_release = None, False
    if any(key.values is None for key in question.keys):
        deciding = find_deciding(measurements, reach)
        if terms.as_before:
            deciding = measurements.index(Units()) if Units() in measurements else None
        if deciding is None:
            deciding, by_key_release = len(measurements), not terms.as_before
            measurements += (Units(),)
    plan = Plan(question.source, question.keys, terms.bound, measurements)
    together = _find_together(terms, plan)
    offered = Offered(terms, plan, menu, deciding, by_key_release, together)
    return [bought for way in terms.ways if (bought := _buy(offered, way)) is not None]


def _find_together(terms: Terms, plan: Plan) -> Together:
    """The ways in which one unit can move measurements; None if all of them at once."""
    if terms.apart or len(plan.measurements) < 2:
        return None
    from discreet.price.joint import find_meetings  # when a statement measures several things

    if terms.by_pairs:
        from discreet.price.changes import find_changes

        ways, found = find_changes(
            plan,
            terms.known,
            terms.reach,
            terms.multiplicity,
            by_rows=terms.compare is Compare.ROWS,
        )
        if found:
            return ways
    return find_meetings(
        plan.measurements,
        terms.question.source,
        terms.known,
        terms.reach,
        terms.multiplicity,
        grouped=bool(terms.question.keys),
        change_one=terms.neighbours is Neighbours.CHANGE_ONE,
    )


def _rank(priced: Priced, penalty: float, *, by_errors: bool) -> tuple[float, ...]:
    """Private groups: who shows them with fewer units.  Then who errs less."""
    errors = sum_errors(priced) * penalty
    if priced.threshold is None or by_errors:
        return (errors,)
    return (*rank_threshold(priced.threshold, deciding_mechanism(priced)), errors)


def deciding_mechanism(priced: Priced) -> Bought:
    """What releases the measurement by which private groups are shown."""
    if priced.threshold is None:
        raise TypeError("these groups are public")
    return priced.mechanisms[priced.threshold.measurement]


def _note_population(priced: Priced, population: int | None) -> Priced:
    if priced.threshold is None or population is None:
        return priced
    needed = least_units(priced.threshold, deciding_mechanism(priced))
    return replace(priced, population=population) if needed > population else priced


def is_as_before(priced: Priced) -> bool:
    """Whether nothing in it is of a kind that was not bought when ledgers began to be kept.

    A Gaussian's calibration cannot be seen; where there is one, it may be another.
    """
    return (
        priced.threshold is None
        and is_apart(priced)
        and all(
            isinstance(mechanism, Laplace | Selection | ClippedSums)
            and not isinstance(measurement, Sum | GroupSum)
            for mechanism, measurement in zip(
                priced.mechanisms, priced.plan.measurements, strict=True
            )
        )
    )


def is_apart(priced: Priced) -> bool:
    """Whether each of its measurements is priced by itself, as all were once."""
    if priced.together is not None or priced.neighbours is Neighbours.CHANGE_ONE:
        return False
    bound = priced.plan.contribution
    return not priced.plan.keys or priced.reach.groups == (bound.rows or bound.groups)


def approximate_loss(priced: Priced, spend: Offer) -> Loss | None:
    """The same release in the other coordinates: (epsilon, delta) as offered, where it holds.

    One Gaussian measurement loses rho, and by its own curve no more than (epsilon, delta); an
    account may be charged either (loss.md, Lemma 1).  None where the curve does not say so.
    """
    if spend.epsilon is None or not spend.delta or len(priced.mechanisms) != 1:
        return None
    (bought,), (sensitivity,) = priced.mechanisms, priced.sensitivities
    if not isinstance(bought, Gaussian):
        return None
    epsilon, cut = spend.epsilon, priced.threshold
    if cut is not None:
        groups = count_sides(priced.neighbours) * priced.reach.groups
        held = covers(bought, cut, groups, epsilon, spend.delta)
        return Loss.approximate(epsilon, spend.delta) if held else None
    grouped = bool(priced.plan.keys)
    (measured,) = priced.plan.measurements
    moves = find_moves(measured, priced.reach, priced.neighbours, grouped=grouped)
    delta = gaussian_loss(bought.sigma_squared, sensitivity, moves, epsilon)
    return Loss.approximate(epsilon, delta) if delta <= spend.delta else None


def sum_errors(priced: Priced) -> float:
    """The sum of squared noise, each measured in rows (or units) of its own measurement."""
    total = 0.0
    for bought, measurement in zip(priced.mechanisms, priced.plan.measurements, strict=True):
        match bought:
            case Selection(epsilon=epsilon, score_change=change):
                total += (change / float(epsilon)) ** 2
            case ClippedSums(noise=noise, rows=rows):
                total += 2 * (rows / float(noise)) ** 2
            case KeyRelease():  # which groups it shows is looked at first
                continue
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
        case Products(unit=unit):
            return float(unit)
        case GroupTotal(span=span) | GroupMean(span=span):
            return float(span)
        case Sum(variable=variable):  # as much as the same sum read off Moments has of its noise
            return hypot(variable.low, variable.low + variable.span)
        case GroupSum(low=low, span=span):
            return hypot(low, low + span)
    return 1.0


# --- what one unit may contribute --------------------------------------------------------------


def bound_contribution(question: Question, multiplicity: Multiplicity) -> Contribution:
    """The bounding a question needs, from its own limits or from the schema's."""
    if is_shared(question.source):
        check_owners(question)
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
    names = dict.fromkeys(f"'{table.name}'" for table in _list_unbounded(question.source))
    raise QuestionRefusal(
        "Q41",
        "nothing says how many rows one unit can have in this question.",
        why="somebody with any number of rows could not be hidden by any amount of noise.",
        fix=f"declare max_rows_per_unit for {' and '.join(names)} (`discreet schema check` tells "
        "the curator how many rows a unit has), or say it in the question: SELECT WITH "
        f"DIFFERENTIAL_PRIVACY OPTIONS(max_rows = ...) ...{_how_to_find(question)}",
    )


def count_groups(question: Question, multiplicity: Multiplicity) -> int | None:
    """In how many groups the rows of one unit can lie; None if in as many as it has rows.

    A key that is a function of columns which are the same on all rows of a unit, as the engine
    enforces, tells no two of them apart; a public key, as many as it has values (price.md,
    Lemma 11).
    """
    if not question.keys:
        return 1
    constant = constant_columns(question.source, multiplicity)
    groups = 1
    for key in question.keys:
        if references(key.expression) <= constant:
            continue
        if key.values is None:
            return None
        groups *= len(key.values)
    return groups


def _how_to_find(question: Question) -> str:
    """A question about rows by unit, whose answer is a good limit: it needs none itself."""
    table = next(iter(_list_unbounded(question.source)), None)
    if table is None or table.by_row:
        return ""
    unit = ", ".join(n if n.isidentifier() else f'"{n}"' for n in table.unit or ())
    name = table.name if table.name.isidentifier() else f'"{table.name}"'
    counted = f"SELECT {unit}, COUNT(*) AS n FROM {name} GROUP BY {unit}"  # noqa: S608
    find = f"SELECT QUANTILE_CONT(LEAST(n, 100), 0.95) AS max_rows FROM ({counted}) AS each"  # noqa: S608
    return f" How many rows 95 % of the units have at most (of 100 looked at), this tells: {find}"


def _list_unbounded(relation: object) -> Iterator[Table]:
    """The private tables below that no limit is declared for."""
    table = getattr(relation, "table", None)
    if isinstance(table, Table) and not table.public and table.max_rows_per_unit is None:
        yield table
    for part in ("source", "left", "right"):
        if hasattr(relation, part):
            yield from _list_unbounded(getattr(relation, part))


def _take_smaller(asked: int | None, most: int | None) -> int | None:
    """The smaller of two bounds, either of which may be absent."""
    return min((bound for bound in (asked, most) if bound is not None), default=None)


# --- ways to use a spend -----------------------------------------------------------------------

LEAST_SPEND, GREATEST_SPEND = Fraction(1, 2**80), Fraction(2**20)
"""An epsilon or rho beyond these buys nothing, or protects nobody."""
LEAST_DELTA = Fraction(1, 2**1000)
"""A smaller delta buys nothing: no threshold that a group could reach."""


def _list_ways(spend: Offer, *, private: bool, as_before: bool) -> Iterator[Way]:
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
            offer={"delta": "1e-9"},
        )
    newer = private and not as_before
    if spend.rho is not None:
        yield Way(None, spend.rho, delta if private else Fraction(0))
        if newer:
            yield Way(None, spend.rho, delta, gaussian=True)
        return
    if spend.epsilon is None:
        raise QuestionRefusal(
            "Q43",
            "the question says neither what it may cost nor how accurate it must be.",
            why="every answer costs the people in the data something; how much is a decision.",
            fix="offer what it may cost, such as epsilon='0.1', or how far off it may be, such as "
            "within='50'.",
            offer={"epsilon": "0.1", "within": "50"},
        )
    yield Way(spend.epsilon, None, delta if private else Fraction(0))
    if not delta:
        return
    for_conversion = delta / 2 if private else delta
    rho = largest_rho(spend.epsilon, for_conversion)
    yield Way(None, rho, delta / 2 if private else Fraction(0))
    if newer:
        yield Way(None, rho, delta / 2, gaussian=True)
    if as_before:
        return
    if private:
        most = delta * (1 - _HELD_BACK)
        yield Way(spend.epsilon, None, most, noise_delta=most, shared=True)
        yield Way(spend.epsilon, None, delta / 2, noise_delta=delta / 2)
    else:
        yield Way(spend.epsilon, None, Fraction(0), noise_delta=delta)


_HELD_BACK = Fraction(1, 2**12)
"""Of a delta that noise and threshold share: what one leaves over for the other."""


def _buy(offered: Offered, way: Way) -> Priced | None:
    """What ``way`` buys; None if noise that large cannot be drawn, or the way leads nowhere."""
    terms, plan = offered.terms, offered.plan
    reach, neighbours = terms.reach, terms.neighbours
    sensitivities = tuple(
        compute_sensitivity(m, reach, neighbours, grouped=bool(plan.keys), as_two=terms.apart)
        for m in plan.measurements
    )
    if offered.by_ladder:
        from discreet.price.ladder import bound_ladder  # of a graph whose people are protected

        found = (bound_ladder(plan, m) for m in plan.measurements)
        sensitivities = tuple(b or s for b, s in zip(found, sensitivities, strict=True))
    choices = [_count_choices(index, offered.menu.recipes) for index in range(len(sensitivities))]
    once = [bool(n) and counts_once(offered, index) for index, n in enumerate(choices)]
    sides = Sensitivity(offered.factor, offered.factor**2)
    sensitivities = tuple(
        sides if alone and sides.l1 < moved.l1 else moved
        for alone, moved in zip(once, sensitivities, strict=True)
    )
    if way.noise_delta is not None and (len(sensitivities) > 1 or choices[0]):
        return None  # what shares a charge adds up in rho
    bought = tuple(_buy_mechanisms(offered, sensitivities, choices, once, way))
    mechanisms = tuple(mechanism for mechanism in bought if mechanism is not None)
    if len(mechanisms) < len(bought):
        return None
    loss = _add_losses(mechanisms, offered.together)
    cut = None
    if offered.deciding is not None:
        index, counting = offered.deciding, mechanisms[offered.deciding]
        if isinstance(counting, Selection | ClippedSums | Summed):
            raise TypeError("units are counted, not chosen")
        if isinstance(counting, KeyRelease):
            cut = Threshold(index, 1, counting.delta)  # which is part of its own loss
        else:
            groups = offered.factor * reach.groups
            split = not terms.as_before
            cut = find_threshold(index, counting, groups, way.key_delta, split=split)
            if way.shared and not _covers(offered, counting, cut, way):
                return None
            loss += Loss(Fraction(0), Fraction(0), cut.delta)
    return Priced(
        terms.question,
        plan,
        offered.menu.recipes,
        mechanisms,
        sensitivities,
        reach,
        neighbours,
        cut,
        loss,
        together=offered.together,
    )


def _add_losses(mechanisms: tuple[Bought, ...], together: Together) -> Loss:
    """What one unit loses to all of them: the most that it can move together."""
    losses = [mechanism.loss for mechanism in mechanisms]
    if together is None:
        return sum(losses, start=NOTHING)
    from discreet.price.joint import add_losses

    return add_losses(losses, together)


def _share_out(sizes: list[float], together: Together, *, pure: bool) -> list[Fraction]:
    if together is None:
        return pure_shares(sizes) if pure else share_rho(sizes)
    from discreet.price.joint import share_out

    return share_out(sizes, together, pure=pure)


def _covers(offered: Offered, bought: Bought, cut: Threshold, way: Way) -> bool:
    """Whether noise and threshold, each at the whole delta, keep it together."""
    if not isinstance(bought, Gaussian):
        return False
    epsilon, delta = way.epsilon or Fraction(0), way.key_delta / (1 - _HELD_BACK)
    return covers(bought, cut, offered.factor * offered.terms.reach.groups, epsilon, delta)


def _count_choices(index: int, recipes: tuple[Recipe, ...]) -> int:
    """How many choices the exponential mechanism makes, one after another, for a measurement."""
    total = 0
    for recipe in recipes:
        if recipe.measurement != index:
            continue
        if isinstance(recipe, Quantile):  # recursive halving: one choice per level
            total += len(recipe.different).bit_length()
        elif isinstance(recipe, Spread):
            total += len(recipe.quantiles.different).bit_length()
        elif isinstance(recipe, Choice):
            total += recipe.count
        elif isinstance(recipe, Clipped):
            return ENDS  # however many read what is between them
    return total


def counts_once(offered: Offered, index: int) -> bool:
    """Whether a unit has at most one row of each value in a group, by the question itself.

    Then its rows move each count by one, however many they are (Lemma 12).  Not where what is
    charged for depends on how the unit's rows are divided among several measurements.
    """
    terms, measurement = offered.terms, offered.plan.measurements[index]
    if terms.apart or terms.in_company or offered.together is not None:
        return False
    if not isinstance(measurement, ValueCounts):
        return False
    expressions = [measurement.expression, *(key.expression for key in terms.question.keys)]
    names = frozenset(one.name for one in expressions if isinstance(one, ColumnRef))
    by_itself = isinstance(measurement.expression, ColumnRef)
    return by_itself and are_told_apart(terms.question.source, names, terms.multiplicity)


def _buy_mechanisms(
    offered: Offered,
    sensitivities: tuple[Sensitivity, ...],
    choices: list[int],
    once: list[bool],
    way: Way,
) -> Iterator[Bought | None]:
    plan, reach, factor = offered.plan, offered.terms.reach, offered.factor
    # Lemma 6: a choice costs a unit in proportion to its rows in the group, so R rows in all cost
    # as much as R rows in one group, and G groups of at most C rows as much as G full ones (or
    # as the groups, the last perhaps not full, that hold all the rows a unit can have).
    # Lemma 5: a change moves scores by what is taken away and by what is added, in one group too.
    # Lemma 12: where a unit has a value once, all its groups cost the same, and each count one.
    full_groups = -(-reach.rows // reach.rows_per_group)
    meets = [
        (reach.groups, factor) if alone else (full_groups, factor * reach.rows_per_group)
        for alone in once
    ]
    sizes = [
        choices[i] * meets[i][0] * meets[i][1]
        if choices[i]
        else (s.l1 if way.rho is None else sqrt(s.l2_squared)) / _row_weight(m)
        for i, (m, s) in enumerate(zip(plan.measurements, sensitivities, strict=True))
    ]
    shares = _share_out(sizes, offered.together, pure=way.rho is None)
    clipped = {r.measurement: r for r in offered.menu.recipes if isinstance(r, Clipped)}
    for i, (measurement, share) in enumerate(zip(plan.measurements, shares, strict=True)):
        if i in clipped:  # docs/proofs/clipping.md, Lemma 2
            yield buy_clipped(
                clipped[i],
                epsilon=None if way.epsilon is None else share * way.epsilon,
                rho=share * (way.rho or 0),
                groups=full_groups,
                moved=factor * reach.rows_per_group,
                rows=factor * reach.rows,
            )
        elif choices[i] and isinstance(measurement, Histogram | ValueCounts):
            groups, moved = meets[i]
            if way.epsilon is not None:
                epsilon = share * way.epsilon / (groups * choices[i])
            else:  # rho = epsilon**2 / 8 for each choice
                epsilon = sqrt_down(8 * share * (way.rho or 0) / (groups * choices[i]), bits=32)
            # An offer that was rounded down to nothing buys no choice.
            chosen = Selection(epsilon, choices[i], groups, moved)
            yield chosen if epsilon else None
        elif i == offered.deciding and offered.by_key_release and _is_pure(way):
            yield _buy_keys(share * (way.epsilon or 0), way.key_delta, factor * reach.groups)
        else:
            yield _buy_noise(offered, i, sensitivities[i], share, way)


def _is_pure(way: Way) -> bool:
    return way.epsilon is not None and way.noise_delta is None


_MOST_FOR_A_KEY = 64
"""More epsilon for a key than this changes no probability that anybody could notice."""


def _buy_keys(epsilon: Fraction, delta: Fraction, keys: int) -> KeyRelease:
    return KeyRelease(
        epsilon=min(epsilon, Fraction(_MOST_FOR_A_KEY * keys)), delta=delta, keys=keys
    )


def _buy_noise(
    offered: Offered,
    index: int,
    sensitivity: Sensitivity,
    share: Fraction,
    way: Way,
) -> Bought | None:
    """Noise on every entry of a measurement, for a share of the way."""
    if way.rho is not None:
        return (buy_gaussian if way.gaussian else buy_smallest)(share * way.rho, sensitivity)
    epsilon = share * (way.epsilon or Fraction(0))
    terms = offered.terms
    if terms.as_before or not offered.by_steps(index):
        return buy_laplace(epsilon, sensitivity)
    grouped, measurement = bool(offered.plan.keys), offered.plan.measurements[index]
    moves = find_moves(measurement, terms.reach, terms.neighbours, grouped=grouped)
    if way.noise_delta is not None:
        return buy_calibrated(epsilon, way.noise_delta, sensitivity, moves)
    return buy_pure(epsilon, sensitivity, moves.entries)
