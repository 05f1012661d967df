"""What one unit's own rows come to: the domains of its aggregates and of windows over its rows.

Lemmas 6 and 12 of ``docs/proofs/ownership.md`` need them to be known before anything is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from discreet.errors import QuestionRefusal
from discreet.question.domain import Domain, Kind, to_double
from discreet.question.functions import domain_of
from discreet.question.functions.declaration import single, union_beyond
from discreet.question.relation import UnitAggregate, UnitWindow

Columns = Mapping[str, Domain]

MOST_PLACES = 1_000
"""How far before or after its own row a window may look, unless it looks at all."""

ORDERED = frozenset({"ROW_NUMBER", "NTILE", "LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE"})
"""Functions for which it matters in which order equals come."""

RANKS = frozenset({"ROW_NUMBER", "RANK", "DENSE_RANK"})
WINDOW_AGGREGATES = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX"})


# --- aggregates ----------------------------------------------------------------------------


def aggregate_domain(aggregate: UnitAggregate, known: Columns, most: int | None) -> Domain:
    """What one unit's aggregate of at most ``most`` rows can be; a unit has at least one row."""
    rows = None if most is None else Fraction(most)
    if aggregate.argument is None:
        return Domain(Kind.INTEGER, Fraction(1), rows, nullable=False)
    argument = domain_of(aggregate.argument, known)
    match aggregate.function:
        case "COUNT" | "COUNT_DISTINCT":
            least = Fraction(0 if argument.nullable else 1)
            return Domain(Kind.INTEGER, least, rows, nullable=False)
        case "MIN" | "MAX":
            return argument
        case "SUM" | "AVG" if argument.kind.is_number or argument.is_null:
            return _total(aggregate, argument, rows)
    raise QuestionRefusal(
        "Q33",
        f"{aggregate.function} of {argument.kind.value} is not one person's number.",
        why="what one person adds must be known for every person.",
        fix="use COUNT, COUNT(DISTINCT x), SUM, MIN, MAX or AVG of a number.",
    )


def _total(aggregate: UnitAggregate, argument: Domain, rows: Fraction | None) -> Domain:
    if argument.low is None or argument.high is None or rows is None:
        raise QuestionRefusal(
            "Q1",
            f"the argument of {aggregate.function} has no public bounds.",
            why="one person could add any amount, and no amount of noise would hide them.",
            fix="declare bounds for the column, or clip it: GREATEST(LEAST(x, 100), 0)."
            if rows is not None
            else "declare max_rows_per_unit for the table.",
        )
    if aggregate.function == "AVG":
        low, high = to_double(argument.low), to_double(argument.high)
        return Domain(Kind.DECIMAL, low, high, argument.nullable)
    low, high = min(argument.low, rows * argument.low), max(argument.high, rows * argument.high)
    if argument.kind is Kind.INTEGER and max(-low, high) <= 2**62:
        return Domain(Kind.INTEGER, low, high, argument.nullable)
    return Domain(Kind.DECIMAL, to_double(low), to_double(high), argument.nullable)


def unit_grid(domain: Domain) -> Fraction:
    """The step on which one unit's decimals are added up: exact, so order cannot matter.

    A 2**-40th part of the largest size, rounded down to a power of two.

    >>> unit_grid(Domain(Kind.DECIMAL, Fraction(-3), Fraction(5000)))
    Fraction(1, 268435456)
    """
    if domain.kind is Kind.INTEGER:
        return Fraction(1)
    if domain.low is None or domain.high is None:
        raise ValueError("a sum needs bounds")
    most = max(abs(domain.low), abs(domain.high)) or Fraction(1)
    exponent = most.numerator.bit_length() - most.denominator.bit_length()
    return Fraction(2) ** (exponent - 40)


# --- windows -------------------------------------------------------------------------------


def window_domain(window: UnitWindow, known: Columns, most: int | None) -> Domain:
    """What a window function can be on a row of a unit that has at most ``most`` rows."""
    for expression in (*window.partition, *(e for e, _ in window.order)):
        domain_of(expression, known)
    rows = None if most is None else Fraction(most)
    function, arguments = window.function, window.arguments
    if function in RANKS and not arguments:
        return Domain(Kind.INTEGER, Fraction(1), rows, nullable=False)
    if function in WINDOW_AGGREGATES and len(arguments) <= 1 and (arguments or function == "COUNT"):
        argument = arguments[0] if arguments else None
        found = aggregate_domain(UnitAggregate(function, argument), known, most)
        if function == "COUNT":  # of an empty frame
            return replace(found, low=Fraction(0))
        return found.with_null()
    if function == "NTILE" and len(arguments) == 1:
        parts = single(domain_of(arguments[0], known))
        if type(parts) is int and 1 <= parts <= MOST_PLACES:
            return Domain(Kind.INTEGER, Fraction(1), Fraction(parts), nullable=False)
    if function in ("FIRST_VALUE", "LAST_VALUE") and len(arguments) == 1:
        return domain_of(arguments[0], known).with_null()
    if function in ("LAG", "LEAD") and 1 <= len(arguments) <= 3:
        places = [domain_of(e, known) for e in arguments]
        offset = single(places[1]) if len(places) > 1 else 1
        if type(offset) is int and 0 <= offset <= MOST_PLACES:
            return (
                union_beyond(places[0], places[2], "LAG or LEAD")
                if len(places) == 3
                else places[0].with_null()
            )
    raise QuestionRefusal(
        "Q14",
        f"{function} is not called like this over one person's rows.",
        why="what comes out of a window must have bounds that are known beforehand.",
        fix="use ROW_NUMBER(), RANK(), DENSE_RANK(), NTILE(4), LAG(x, 1), LEAD(x, 1), "
        "FIRST_VALUE(x), LAST_VALUE(x), or COUNT, SUM, AVG, MIN or MAX of x.",
    )


__all__ = [
    "MOST_PLACES",
    "ORDERED",
    "RANKS",
    "WINDOW_AGGREGATES",
    "aggregate_domain",
    "unit_grid",
    "window_domain",
]
