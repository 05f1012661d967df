"""Questions in Python: the same questions as in SQL, with the same refusals.

    visits.where(col("age") >= 18).group_by("city").agg(n=count(), cost=mean("cost"))

A question is built as a syntax tree, written as SQL and read by the parser: what
cannot be asked in SQL cannot be asked here, for the same reason and in the same
words.  No text is ever pasted together; a name or a constant is a node.
"""

from __future__ import annotations

from discreet.question.builder.aggregates import (
    coefficient,
    correlation,
    count,
    count_distinct,
    count_if,
    covariance,
    distance_to_clusters,
    distance_to_dependency,
    distance_to_sorted,
    histogram,
    intercept,
    maximum,
    mean,
    median,
    minimum,
    mode,
    quantile,
    quartile_range,
    slope,
    stddev,
    top_k,
    total,
    trimmed_mean,
    variance,
)
from discreet.question.builder.formula import Descending, Formula, col, function, lit, when
from discreet.question.builder.rows import GroupedRows, Query, Rows, table

__all__ = [
    "Descending",
    "Formula",
    "GroupedRows",
    "Query",
    "Rows",
    "coefficient",
    "col",
    "correlation",
    "count",
    "count_distinct",
    "count_if",
    "covariance",
    "distance_to_clusters",
    "distance_to_dependency",
    "distance_to_sorted",
    "function",
    "histogram",
    "intercept",
    "lit",
    "maximum",
    "mean",
    "median",
    "minimum",
    "mode",
    "quantile",
    "quartile_range",
    "slope",
    "stddev",
    "table",
    "top_k",
    "total",
    "trimmed_mean",
    "variance",
    "when",
]
