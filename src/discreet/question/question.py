"""A question: which numbers are wanted, of which rows, for which groups.

The parser and the Python builder both end here; pricing begins here.  Nothing
in a question depends on data.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.question.domain import Value
from discreet.question.expressions import Expression
from discreet.question.relation import Relation


@dataclass(frozen=True, slots=True)
class Key:
    """One GROUP BY expression; its groups are public if ``values`` is known, private otherwise."""

    name: str
    expression: Expression
    values: tuple[Value | None, ...] | None  # in output order; None among them is the NULL group


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of the rows of each group.

    ``function`` is one of COUNT, COUNT_DISTINCT, COUNT_UNITS, SUM, AVG, VAR_POP,
    VAR_SAMP, STDDEV_POP, STDDEV_SAMP, QUANTILE, MIN, MAX, COVAR_POP, COVAR_SAMP,
    CORR, REGR_SLOPE, REGR_INTERCEPT, MODE, TOP_K, HISTOGRAM.  COUNT without
    arguments is COUNT(*).  ``parameters`` holds constants: the quantile's
    fractions, k of TOP_K, the edges of HISTOGRAM.  ``condition`` is its FILTER
    (WHERE ...).
    """

    name: str
    function: str
    arguments: tuple[Expression, ...] = ()
    parameters: tuple[Value, ...] = ()
    condition: Expression | None = None
    bounds_per_row: tuple[Fraction, Fraction] | None = None
    bounds_per_group: tuple[Fraction, Fraction] | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the result: a free computation on key and aggregate names."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Order:
    """Sort the released rows by an output or aggregate expression."""

    expression: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """What one unit may contribute: R rows in all, or G groups with at most C rows in each."""

    max_rows: int | None = None
    max_groups: int | None = None
    max_rows_per_group: int | None = None


@dataclass(frozen=True, slots=True)
class Spend:
    """What the analyst offers: a loss, or the accuracy wanted."""

    epsilon: Fraction | None = None
    rho: Fraction | None = None
    delta: Fraction | None = None
    within: tuple[tuple[str, Fraction], ...] = ()  # (aggregate name, or "" for all; margin)
    confidence: Fraction = Fraction(95, 100)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked; ``text`` is the analyst's own, for underlining refusals."""

    source: Relation
    keys: tuple[Key, ...]
    aggregates: tuple[Aggregate, ...]
    outputs: tuple[Output, ...]
    having: Expression | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    limits: Limits = Limits()
    spend: Spend | None = None  # given inside the statement (OPTIONS), if any
    text: str = ""
