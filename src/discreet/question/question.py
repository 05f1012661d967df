"""A question: which numbers are wanted, of which rows, for which groups.

The parser and the Python builder both end here; pricing begins here.  Nothing
in a question depends on data: what an aggregate needs, and which groups are
public, is decided from the domains of its columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import prod

from discreet.errors import QuestionRefusal
from discreet.exact.records import dataclass
from discreet.question.domain import LISTED_MOST, Domain, Kind, Value
from discreet.question.expressions import ColumnRef, Expression
from discreet.question.functions import domain_of
from discreet.question.offer import Offer
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
    CORR, REGR_SLOPE, REGR_INTERCEPT, MODE, TOP_K, HISTOGRAM, TRIMMED_MEAN, IQR,
    and distances from properties, DISTANCE_TO_SORTED and its kin.
    COUNT without arguments is COUNT(*).  ``parameters`` holds constants: the
    quantile's fractions, k of TOP_K, the edges of HISTOGRAM, the part that is
    trimmed, how many clusters of which width.  ``condition`` is its FILTER
    (WHERE ...).  ``auto``: its bounds are looked for in the data, privately.
    """

    name: str
    function: str
    arguments: tuple[Expression, ...] = ()
    parameters: tuple[Value, ...] = ()
    condition: Expression | None = None
    bounds_per_row: tuple[Fraction, Fraction] | None = None
    bounds_per_group: tuple[Fraction, Fraction] | None = None
    auto: bool = False


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
    spend: Offer | None = None  # given inside the statement (OPTIONS), if any
    text: str = ""
    remarks: tuple[str, ...] = field(default=(), compare=False)
    """Where its words mean something else in another system: told, and no part of what is asked."""

    @property
    def is_listed(self) -> bool:
        """Whether it asks for groups alone, all of them public: nobody's row says anything more."""
        public = bool(self.keys) and all(key.values is not None for key in self.keys)
        return public and not self.aggregates


# --- aggregates --------------------------------------------------------------------------------
#
# What each takes, what it needs to be public, what comes out.  The parser and the builder both
# check an aggregate here, so that they refuse the same things in the same words; pricing reads
# the same table.


MOST_AGGREGATES = 50
"""How many aggregates one question may have."""

MOST_KEYS = 16
"""How many keys one question may group by."""

MOST_FRACTIONS = 1_001
"""How many quantiles one aggregate may ask for."""

MOST_COLUMNS = 10
"""How many columns may be measured together."""

MOST_BINS = 1_000
"""How many bins a histogram, and how many values a TOP_K, may have."""


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """One aggregate of the allow-list.

    ``numbers`` says that its arguments are numbers with public bounds, and
    ``finds_bounds`` that these may be looked for in the data;
    ``result`` is the kind of what is released (None: the argument's own) and
    ``many`` whether it is a list of values.
    """

    usage: str
    meaning: str
    arguments: tuple[int, ...] = (1,)
    numbers: bool = False
    result: Kind | None = Kind.DECIMAL
    many: bool = False
    per_row: bool = False
    per_group: bool = False
    finds_bounds: bool = False


AGGREGATES: dict[str, AggregateFunction] = {
    "COUNT": AggregateFunction(
        "COUNT(*) or COUNT(x)",
        "rows, or rows in which x is not NULL",
        arguments=(0, 1),
        result=Kind.INTEGER,
        per_group=True,
    ),
    "COUNT_UNITS": AggregateFunction(
        "COUNT(DISTINCT unit)",
        "people (units) with a row in the group",
        arguments=(0,),
        result=Kind.INTEGER,
    ),
    "COUNT_DISTINCT": AggregateFunction(
        "COUNT(DISTINCT x)", "different values of x other than NULL", result=Kind.INTEGER
    ),
    "SUM": AggregateFunction(
        "SUM(x)",
        "sum of x, each clipped to its bounds",
        numbers=True,
        result=None,
        per_row=True,
        finds_bounds=True,
        per_group=True,
    ),
    "AVG": AggregateFunction(
        "AVG(x)", "mean of x", numbers=True, per_row=True, finds_bounds=True, per_group=True
    ),
    "VAR_POP": AggregateFunction(
        "VAR_POP(x)", "variance, divided by n", numbers=True, per_row=True, finds_bounds=True
    ),
    "VAR_SAMP": AggregateFunction(
        "VARIANCE(x)", "variance, divided by n - 1", numbers=True, per_row=True, finds_bounds=True
    ),
    "STDDEV_POP": AggregateFunction(
        "STDDEV_POP(x)", "root of VAR_POP", numbers=True, per_row=True, finds_bounds=True
    ),
    "STDDEV_SAMP": AggregateFunction(
        "STDDEV(x)", "root of VARIANCE", numbers=True, per_row=True, finds_bounds=True
    ),
    "QUANTILE": AggregateFunction(
        "PERCENTILE_CONT(x, 0.5), MEDIAN(x) or APPROX_QUANTILES(x, 4)",
        "value below which the given part of the rows lies",
        numbers=True,
        result=None,
        per_row=True,
        finds_bounds=True,
    ),
    "IQR": AggregateFunction(
        "IQR(x)",
        "distance of the quartiles: PERCENTILE_CONT(x, 0.75) - PERCENTILE_CONT(x, 0.25)",
        numbers=True,
        result=None,
        per_row=True,
        finds_bounds=True,
    ),
    "TRIMMED_MEAN": AggregateFunction(
        "TRIMMED_MEAN(x, 0.1)",
        "mean of the rows between two private quantiles, here 0.1 and 0.9",
        numbers=True,
        per_row=True,
        finds_bounds=True,
    ),
    "MIN": AggregateFunction(
        "MIN(x)",
        "a private low quantile near the least value",
        numbers=True,
        result=None,
        per_row=True,
    ),
    "MAX": AggregateFunction(
        "MAX(x)",
        "a private high quantile near the greatest value",
        numbers=True,
        result=None,
        per_row=True,
    ),
    "COVAR_POP": AggregateFunction(
        "COVAR_POP(y, x)", "covariance, divided by n", (2,), numbers=True
    ),
    "COVAR_SAMP": AggregateFunction("COVAR_SAMP(y, x)", "covariance, by n - 1", (2,), numbers=True),
    "CORR": AggregateFunction("CORR(y, x)", "correlation", (2,), numbers=True),
    "REGR_SLOPE": AggregateFunction("REGR_SLOPE(y, x)", "slope of y on x", (2,), numbers=True),
    "REGR_INTERCEPT": AggregateFunction(
        "REGR_INTERCEPT(y, x)", "y where x is 0", (2,), numbers=True
    ),
    "REGR_COEFFICIENT": AggregateFunction(
        "REGR(y, x1, x2)",
        "linear regression of y on several columns: a column for the intercept and for each slope",
        tuple(range(2, MOST_COLUMNS + 1)),
        numbers=True,
    ),
    "CORR_OF": AggregateFunction(
        "CORR_MATRIX(a, b, c)",
        "the correlation of each two columns, each in a column of its own",
        tuple(range(2, MOST_COLUMNS + 1)),
        numbers=True,
    ),
    "COVAR_OF": AggregateFunction(
        "COVAR_MATRIX(a, b, c)",
        "the variance of each column and the covariance of each two, divided by n, each in a "
        "column of its own",
        tuple(range(2, MOST_COLUMNS + 1)),
        numbers=True,
    ),
    "MEAN_OF": AggregateFunction(
        "MEANS(a, b, c)",
        "the mean of each column, of rows that have all of them, each in a column of its own",
        tuple(range(2, MOST_COLUMNS + 1)),
        numbers=True,
    ),
    "MODE": AggregateFunction("MODE(x)", "a most frequent value of x", result=None),
    "TOP_K": AggregateFunction(
        "APPROX_TOP_COUNT(x, 5)",
        "the k most frequent values of x, with counts",
        result=None,
        many=True,
    ),
    "DISTANCE_TO_SORTED": AggregateFunction(
        "DISTANCE_TO_SORTED(x, day)",
        "people (units) who stand in the way of no smaller x on a later day, at least",
        (2,),
        result=Kind.INTEGER,
    ),
    "DISTANCE_TO_CLUSTERS": AggregateFunction(
        "DISTANCE_TO_CLUSTERS(x, 3, 10)",
        "people (units) who stand in the way of 3 intervals of width 10 holding every x, at least",
        result=Kind.INTEGER,
    ),
    "DISTANCE_TO_DEPENDENCY": AggregateFunction(
        "DISTANCE_TO_DEPENDENCY(x, a, b)",
        "people (units) who stand in the way of x being a function of a and b, at least",
        tuple(range(2, MOST_COLUMNS + 1)),
        result=Kind.INTEGER,
    ),
    "HISTOGRAM": AggregateFunction(
        "HISTOGRAM(x, 0, 18, 65, 120)",
        "rows in each bin [edge, next edge)",
        result=Kind.INTEGER,
        many=True,
    ),
}
"""Every aggregate a question may ask for, by the name it has in a :class:`Question`."""


def check_aggregate(aggregate: Aggregate, columns: Mapping[str, Domain]) -> Domain:
    """Refuse ``aggregate`` unless it can be measured on ``columns``; else what it releases."""
    declared = AGGREGATES[aggregate.function]
    domains = tuple(domain_of(argument, columns) for argument in aggregate.arguments)
    if len(domains) not in declared.arguments:
        _arguments(aggregate, f"{len(domains)} arguments")
    if aggregate.condition is not None:
        condition = domain_of(aggregate.condition, columns)
        if condition.kind is not Kind.BOOLEAN:
            _arguments(aggregate, f"a condition that is {condition.kind.value}")
    _check_bounds(aggregate, declared)
    if declared.numbers:
        for position, domain in enumerate(domains):
            _number(aggregate, position, domain)
    if aggregate.function in {"MODE", "TOP_K"} and domains[0].values is None:
        _refuse_unlisted(aggregate)
    _check_parameters(aggregate, domains)
    kind = declared.result or (domains[0].kind if domains else Kind.DECIMAL)
    return Domain(kind, nullable=aggregate.function not in _COUNTED)


_COUNTED = {"COUNT", "COUNT_UNITS", *(n for n in AGGREGATES if n.startswith("DISTANCE_TO_"))}
"""What is a number also where there are no rows: none."""


def _number(aggregate: Aggregate, position: int, domain: Domain) -> None:
    if domain.is_null or not domain.kind.is_number:
        _arguments(aggregate, domain.kind.value)
    bounds = aggregate.bounds_per_row or aggregate.bounds_per_group
    if not domain.bounded and bounds is None and not aggregate.auto:
        _refuse_unbounded(aggregate, position)


def _refuse_unbounded(aggregate: Aggregate, position: int) -> None:
    argument = aggregate.arguments[position]
    declared = AGGREGATES[aggregate.function]
    usage = declared.usage.split("(", maxsplit=1)[0]
    name = argument.name.rpartition(".")[2] if isinstance(argument, ColumnRef) else "..."
    if isinstance(argument, ColumnRef):
        what = f"column '{name}' has no public bounds."
        fix = (
            f"declare bounds for '{name}' in the schema, or ask "
            f"{usage}(GREATEST(LEAST({name}, 1000), 0)), or add WHERE {name} BETWEEN 0 AND 1000."
        )
    else:
        what = f"the argument of {usage} has no public bounds."
        fix = f"put bounds around it: {usage}(GREATEST(LEAST(..., 1000), 0))."
    if declared.finds_bounds:
        fix = f"{fix[:-1]}; or have them looked for in the data, for a part of the price: "
        fix += f"{usage}({name}, {'0.1, ' * (usage == 'TRIMMED_MEAN')}bounds => AUTO)."
    raise QuestionRefusal(
        "Q1",
        what,
        why="one person could add any amount, and no amount of noise would hide them.",
        fix=fix,
    )


def _refuse_unlisted(aggregate: Aggregate) -> None:
    raise QuestionRefusal(
        "Q40",
        f"{AGGREGATES[aggregate.function].usage} needs a public list of values to choose from.",
        why="to name a value that only one person has would name that person.",
        fix="declare the column's values in the schema, or list them: WHERE x IN ('a', 'b'); "
        "or GROUP BY the column with a COUNT(*).",
    )


def _check_bounds(aggregate: Aggregate, declared: AggregateFunction) -> None:
    for name, bounds, taken in (
        ("contribution_bounds_per_row", aggregate.bounds_per_row, declared.per_row),
        ("contribution_bounds_per_group", aggregate.bounds_per_group, declared.per_group),
    ):
        if bounds is None:
            continue
        if not taken:
            _arguments(aggregate, name)
        if bounds[0] >= bounds[1]:
            _arguments(aggregate, f"{name} whose low end is not below its high end")
    if aggregate.bounds_per_row is not None and aggregate.bounds_per_group is not None:
        _arguments(aggregate, "bounds per row and per group at once")
    if aggregate.auto and not declared.finds_bounds:
        _arguments(aggregate, "bounds => AUTO")
    if aggregate.auto and (aggregate.bounds_per_row or aggregate.bounds_per_group):
        _arguments(aggregate, "bounds, and bounds that are looked for")


def _check_parameters(aggregate: Aggregate, domains: tuple[Domain, ...]) -> None:
    parameters = aggregate.parameters
    match aggregate.function:
        case "QUANTILE":
            if not 1 <= len(parameters) <= MOST_FRACTIONS:
                _arguments(aggregate, f"{len(parameters)} fractions")
            if not all(_is_number(p) and 0 <= p <= 1 for p in parameters):  # type: ignore[operator]
                _arguments(aggregate, "a fraction outside 0 to 1")
        case "REGR_COEFFICIENT" | "CORR_OF" | "COVAR_OF" | "MEAN_OF":
            _check_place(aggregate, len(domains))
        case "TRIMMED_MEAN":
            _check_trimmed(aggregate)
        case "TOP_K":
            if len(parameters) != 1 or not _is_whole(parameters[0]):
                _arguments(aggregate, "a length that is not a whole number")
        case "HISTOGRAM":
            _check_edges(aggregate, domains[0])
        case "DISTANCE_TO_CLUSTERS":
            _check_clusters(aggregate, domains[0])
        case _ if parameters:
            _arguments(aggregate, "constants it does not take")


def _check_place(aggregate: Aggregate, columns: int) -> None:
    """Which coefficient, or which pair of columns: one that there is."""
    pairs = {"CORR_OF": columns * (columns - 1) // 2, "COVAR_OF": columns * (columns + 1) // 2}
    count = pairs.get(aggregate.function, columns)
    places = aggregate.parameters
    if len(places) != 1 or isinstance(places[0], bool) or places[0] not in range(count):
        _arguments(aggregate, "a place that there is not")


def _check_trimmed(aggregate: Aggregate) -> None:
    parts = aggregate.parameters
    if len(parts) != 1 or not _is_number(parts[0]):
        _arguments(aggregate, "another part to trim than one number")
    if not 0 < parts[0] < Fraction(1, 2):  # type: ignore[operator]
        _arguments(aggregate, "a part to trim at each end that is not between 0 and 0.5")


def _check_clusters(aggregate: Aggregate, domain: Domain) -> None:
    if domain.is_null or not domain.kind.is_number:
        _arguments(aggregate, domain.kind.value)
    settled = aggregate.parameters
    if len(settled) != 2 or not _is_whole(settled[0]):
        _arguments(aggregate, "a number of clusters that is not a whole one")
    if not _is_number(settled[1]) or settled[1] < 0:  # type: ignore[operator]
        _arguments(aggregate, "a width that is not a number")


def _check_edges(aggregate: Aggregate, domain: Domain) -> None:
    edges = aggregate.parameters
    if not domain.kind.is_number:
        _arguments(aggregate, domain.kind.value)
    if not all(map(_is_number, edges)) or not 2 <= len(edges) <= MOST_BINS + 1:
        _arguments(aggregate, "edges that are not a list of numbers")
    if any(low >= high for low, high in pairwise(edges)):  # type: ignore[operator]
        _arguments(aggregate, "edges that do not ascend")


def _is_number(value: Value) -> bool:
    return isinstance(value, int | Fraction) and not isinstance(value, bool)


def _is_whole(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_BINS


def _arguments(aggregate: Aggregate, given: str) -> None:
    usage = AGGREGATES[aggregate.function].usage
    raise QuestionRefusal(
        "Q33",
        f"{usage} was given {given}.",
        why="what one person adds to the answer must be bounded before it can be hidden.",
        fix=f"none but yours, who know what is meant: write it as {usage}.",
    )


# --- groups ------------------------------------------------------------------------------------
#
# A key whose domain lists its values has public groups: all of them are in the answer, also the
# empty ones, so that *which groups appear* tells nothing.  Any other key has private groups, and
# a group appears only if enough people are in it (a threshold, paid for with delta).
#
# Listed are: declared values, and whole numbers and dates within bounds, if there are at most
# ``MOST_VALUES`` of them, both also through expressions; booleans; parts and truncations of
# bounded dates; CASE over constants.  A key that may be NULL has a NULL group, last.


MOST_VALUES = LISTED_MOST
"""A bounded key with more values than this, none of them declared, has private groups."""

MOST_GROUPS = 1_000_000
"""How many combinations of public keys one answer may list."""


def public_values(
    expression: Expression, columns: Mapping[str, Domain]
) -> tuple[Value | None, ...] | None:
    """Every group of the key, in output order; None if the groups are private."""
    domain = domain_of(expression, columns)
    values = domain.list_values(MOST_VALUES)
    if values is None:
        return None
    if not (domain.nullable or domain.is_null):
        return values
    return (*values, None) if domain.kind is Kind.DECIMAL else _add_null(domain.kind, values)


@lru_cache(maxsize=32)
def _add_null(_kind: Kind, values: tuple[Value, ...]) -> tuple[Value | None, ...]:
    """What a schema lists, and NULL: one list for every question, told apart by its kind.

    Not of decimals, of which 1 and 1.0 are equal and not written alike.
    """
    return (*values, None)


def check_size(question: Question) -> None:
    """Refuse a question of more parts than one statement can compute at a known cost."""
    for parts, most, name in (
        (question.aggregates, MOST_AGGREGATES, "aggregates"),
        (question.keys, MOST_KEYS, "keys"),
    ):
        if len(parts) > most:
            raise QuestionRefusal(
                "Q3",
                f"the question has {len(parts)} {name}, more than {most}.",
                why="asking what a question costs is free, so what it takes to say it is limited.",
                fix="ask two questions, each for a part of them.",
            )


_MOST_SHOWN = 20


def check_measured(question: Question) -> None:
    """Refuse to measure nothing: what is declared is told from the schema, for nothing."""
    if question.is_listed:
        raise QuestionRefusal(
            "Q35",
            "these groups are public, and here they are, for free: "
            f"{'; '.join(map(_show_key, question.keys))}.",
            why="they are declared, or a public table's, whatever the data are: people would pay "
            "for what is known, and which of them have somebody is told with a count only.",
            fix="add COUNT(*) to what is asked.",
        )


def _show_key(key: Key) -> str:
    values = key.values or ()
    shown = ["NULL" if value is None else str(value) for value in values[:_MOST_SHOWN]]
    more = f" and {len(values) - _MOST_SHOWN} more" if len(values) > _MOST_SHOWN else ""
    return f"{key.name} is {', '.join(shown)}{more}"


def check_groups(keys: Sequence[Key]) -> None:
    """Refuse more public groups than an answer can list."""
    count = prod(len(key.values) for key in keys if key.values is not None)
    if count > MOST_GROUPS:
        raise QuestionRefusal(
            "Q27",
            f"the keys have {count} combinations, more than {MOST_GROUPS}.",
            why="every public group is answered, also the empty ones; so many answers would be "
            "noise for the most part.",
            fix="group by fewer keys, or narrow them: WHERE city IN ('a', 'b').",
        )
