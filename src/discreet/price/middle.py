"""The middle of one column, with noise that fits the data at hand, at a price that does not.

Smooth sensitivity (Nissim, Raskhodnikova, Smith 2007), or a proposed bound that is tested first
(Dwork, Lei 2009).  Both are proven for one value of each unit that is added or left out
(``docs/proofs/quantiles.md``, Lemmas 8 to 11); where a unit is changed, it is left out and another
added, and both are paid for.  Other questions are refused.  Which ranks are looked at follows from
the price (Lemma 14).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor

from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter, QuestionRefusal
from discreet.exact.balls import exp_up
from discreet.exact.numbers import Exact, positive, proportion
from discreet.mechanisms import ProposeTestRelease, SmoothMedian
from discreet.price.calibration import lump_around
from discreet.price.plan import Lumpings, Plan, Reach, Scaled
from discreet.price.priced import Multiplicity, bound_contribution
from discreet.price.recipes import Quantile, choose_measurements
from discreet.question.expressions import ColumnRef
from discreet.question.ownership import (
    check_joined_rows,
    columns,
    find_neighbours,
    has_two_owners,
    row_bound,
)
from discreet.question.question import Question, check_size
from discreet.question.schema import Neighbours, Schema
from discreet.question.work import check_work

HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Middle:
    """A median that is to be released: what is measured, and with which mechanism."""

    plan: Plan
    variable: Scaled
    mechanism: SmoothMedian | ProposeTestRelease
    changed: bool = False
    """Whether a neighbour changes one unit: then two are paid for, who goes and who comes."""

    @property
    def loss(self) -> Loss:
        """What it costs one unit, whatever the data are, and whether or not it is answered."""
        return self.mechanism.loss.change_one() if self.changed else self.mechanism.loss

    @property
    def lumpings(self) -> Lumpings:
        """Which cells are not looked at, whatever the data: they come back together (Lemma 14)."""
        found = lump_around([(HALF, self.mechanism.reach, 0)], self.variable.span)
        return () if found is None else (found,)

    def value(self, step: int) -> float:
        """The number at a step, within the declared bounds."""
        within = min(max(step, 0), self.variable.span)
        return float((self.variable.low + within) * self.variable.grid)

    def margin(self, confidence: Exact = "0.95") -> float | None:
        """How far off an answer is; None for smooth sensitivity, where that is not public."""
        if isinstance(self.mechanism, SmoothMedian):
            return None
        beta = 1 - proportion(confidence, name="confidence")
        return float(self.mechanism.margin(beta) * self.variable.grid)

    def __str__(self) -> str:
        if isinstance(self.mechanism, SmoothMedian):
            return "MEDIAN by smooth sensitivity"
        return f"MEDIAN if it moves by at most {float(self.mechanism.bound * self.variable.grid):g}"


def price_middle(
    question: Question,
    *,
    schema: Schema,
    multiplicity: Multiplicity,
    epsilon: Exact,
    delta: Exact,
    bound: Exact | None,
) -> Middle:
    """The median that ``question`` asks for, by smooth sensitivity, or tested with a ``bound``."""
    check_size(question)
    check_joined_rows(question.source, schema.most_joined_rows, multiplicity)
    check_work(question, schema.most_joined_rows, multiplicity)
    plain = all(isinstance(output.expression, ColumnRef) for output in question.outputs)
    if question.keys or len(question.aggregates) != 1 or not plain or question.having is not None:
        raise _not_a_median()
    kept = bound_contribution(question, multiplicity)
    known = columns(question.source, multiplicity=multiplicity)
    menu = choose_measurements(question.aggregates, known)
    (recipe,) = menu.recipes
    if not isinstance(recipe, Quantile) or recipe.many or recipe.fractions != (HALF,):
        raise _not_a_median()
    reach = Reach.of(kept, grouped=False, most=row_bound(question.source, multiplicity))
    sides = find_neighbours(question.source, schema.neighbours)
    if reach.rows != 1 or has_two_owners(question.source):
        raise InvalidParameter(
            "P4",
            "one unit can have more than one value here.",
            why="noise that fits the data at hand hides a person by one value of theirs.",
            fix="ask of one row a unit: SELECT MEDIAN(x) FROM (SELECT unit, MAX(x) AS x FROM ... "
            "GROUP BY unit), or OPTIONS(max_rows = 1).",
        )
    changed = sides is not Neighbours.ADD_REMOVE
    if changed:
        epsilon, delta = _halve(epsilon, delta)
    variable = recipe.variable
    plan = Plan(question.source, (), kept, menu.measurements)
    if bound is None:
        smooth = SmoothMedian(lower=0, upper=variable.span, epsilon=epsilon, delta=delta)
        return Middle(plan, variable, smooth, changed)
    steps = floor(positive(bound, name="bound") / variable.grid)
    if not 1 <= steps < variable.span:
        raise InvalidParameter(
            "P2",
            "the bound is less than one step of the values, or all of their range.",
            why="a median moves in whole steps, and never further than its range.",
            fix=f"propose between {float(variable.grid):g} and "
            f"{float(variable.span * variable.grid):g}.",
        )
    tested = ProposeTestRelease(bound=steps, epsilon=epsilon, delta=delta)
    return Middle(plan, variable, tested, changed)


def _halve(epsilon: Exact, delta: Exact) -> tuple[Fraction, Fraction]:
    """What one removal or addition may cost, so that both together cost no more than was offered.

    Of an (e, d)-private release two people together lose (2e, 2 exp(e) d), ``Loss.for_group``.
    """
    half = positive(epsilon, name="epsilon") / 2
    if half > _MOST_HALF:
        raise InvalidParameter(
            "P2",
            f"epsilon is above {2 * _MOST_HALF}.",
            why="where one person is changed, delta grows with exp(epsilon / 2), and would not "
            "stay small.",
            fix="offer less.",
        )
    return half, proportion(delta, name="delta") / (2 * exp_up(half))


_MOST_HALF = 50


def _not_a_median() -> QuestionRefusal:
    return QuestionRefusal(
        "Q48",
        "one median is to be told, and this question is another.",
        why="how far one person moves a median at hand is worked out for a median alone.",
        fix="ask SELECT MEDIAN(x) FROM ..., with WHERE as you like, without GROUP BY.",
    )


__all__ = ["Middle", "price_middle"]
