"""Aggregates by name, each the one of SQL."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from discreet.exact.numbers import Exact, fraction
from discreet.question.builder.formula import Formula, function, number, of


def count(value: Formula | str | None = None) -> Formula:
    """Rows; or rows in which ``value`` is not NULL."""
    if value is not None:
        return function("count", of(value))
    return Formula(exp.Anonymous(this="COUNT", expressions=[exp.Star()]))


def count_if(condition: Formula) -> Formula:
    """Rows in which ``condition`` is true."""
    return count().filter(condition)


def count_distinct(value: Formula | str, *others: Formula | str) -> Formula:
    """Different values other than NULL; of all the unit's columns, different units.

    Of ``value``, or of its combinations with ``others``.
    """
    trees = [of(v).tree.copy() for v in (value, *others)]
    distinct = exp.Distinct(expressions=trees)
    return Formula(exp.Anonymous(this="COUNT", expressions=[distinct]))


def total(value: Formula | str) -> Formula:
    """The sum of ``value``."""
    return function("sum", of(value))


def mean(value: Formula | str) -> Formula:
    """The average of ``value``."""
    return function("avg", of(value))


def variance(value: Formula | str, *, population: bool = False) -> Formula:
    """The variance of ``value`` in a sample, or in the whole ``population``."""
    return function("var_pop" if population else "var_samp", of(value))


def stddev(value: Formula | str, *, population: bool = False) -> Formula:
    """The standard deviation of ``value`` in a sample, or in the whole ``population``."""
    return function("stddev_pop" if population else "stddev_samp", of(value))


def median(value: Formula | str) -> Formula:
    """The ``value`` in the middle."""
    return function("median", of(value))


def quantile(value: Formula | str, *fractions: Exact) -> Formula:
    """The ``value`` below which each of these ``fractions`` of the rows lies."""
    parts = [str(fraction(part)) for part in fractions]
    return function("quantile_cont", of(value), *parts)


def quartile_range(value: Formula | str) -> Formula:
    """The distance of the quartiles of ``value``."""
    return function("iqr", of(value))


def trimmed_mean(value: Formula | str, part: Exact) -> Formula:
    """The mean of ``value`` between the private quantiles ``part`` and 1 - ``part``."""
    return function("trimmed_mean", of(value), str(fraction(part)))


def minimum(value: Formula | str) -> Formula:
    """A private low quantile near the least ``value``."""
    return function("min", of(value))


def maximum(value: Formula | str) -> Formula:
    """A private high quantile near the greatest ``value``."""
    return function("max", of(value))


def covariance(y: Formula | str, x: Formula | str, *, population: bool = False) -> Formula:
    """The covariance of ``y`` and ``x`` in a sample, or in the whole ``population``."""
    return function("covar_pop" if population else "covar_samp", of(y), of(x))


def correlation(y: Formula | str, x: Formula | str) -> Formula:
    """The correlation of ``y`` and ``x``."""
    return function("corr", of(y), of(x))


def slope(y: Formula | str, x: Formula | str) -> Formula:
    """The slope of the regression of ``y`` on ``x``."""
    return function("regr_slope", of(y), of(x))


def intercept(y: Formula | str, x: Formula | str) -> Formula:
    """Where the regression of ``y`` on ``x`` meets x = 0."""
    return function("regr_intercept", of(y), of(x))


def coefficient(place: int, y: Formula | str, *others: Formula | str) -> Formula:
    """Of the regression of ``y`` on ``others`` the slope of the one at ``place``; 0: intercept."""
    return function("regr_coefficient", place, of(y), *map(of, others))


def mode(value: Formula | str) -> Formula:
    """A most frequent ``value``."""
    return function("mode", of(value))


def top_k(value: Formula | str, k: int) -> Formula:
    """The ``k`` most frequent of ``value``, the most frequent first."""
    return function("top_k", of(value), k)


def distance_to_sorted(value: Formula | str, by: Formula | str) -> Formula:
    """How many units stand in the way of no smaller ``value`` where ``by`` is greater."""
    return function("distance_to_sorted", of(value), of(by))


def distance_to_clusters(value: Formula | str, clusters: int, width: Exact) -> Formula:
    """How many units stand in the way of so many ``clusters``, of ``width``, holding ``value``."""
    return function("distance_to_clusters", of(value), clusters, number(width))


def distance_to_dependency(value: Formula | str, *on: Formula | str) -> Formula:
    """How many units stand in the way of ``value`` being a function of ``on``."""
    return function("distance_to_dependency", of(value), *map(of, on))


def histogram(value: Formula | str, edges: Sequence[Exact]) -> Formula:
    """Rows with ``value`` in each bin from one of ``edges`` up to, not including, the next."""
    return function("histogram", of(value), *(number(edge) for edge in edges))
