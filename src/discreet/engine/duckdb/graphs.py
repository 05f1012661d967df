"""Degrees, wedges and triangles of a table of pairs, of every person at most so many connections.

The pairs are those that the table keeps, each once and least end first.  Which connection of a
person has which number does not matter for degrees; for triangles the first of every person are
taken by one hash of the pair, the same for both ends (docs/proofs/graphs.md, Lemmas 7 and 8).
Degrees may also be read of rows with two owners, those that are kept of both (Lemma 9).
"""

from __future__ import annotations

from sqlglot import exp, parse_one

from discreet.engine.duckdb.hashing import Hashed, put_hash
from discreet.engine.duckdb.sources import quote_name
from discreet.question.domain import Kind
from discreet.question.functions.nodes import ENGINE
from discreet.question.relation import Shape

_ENDS = """
SELECT "_unit0" AS who, "_unit0" AS a, "_unit1" AS b FROM {pairs} WHERE "_unit0" <> "_unit1"
UNION ALL
SELECT "_unit1" AS who, "_unit0" AS a, "_unit1" AS b FROM {pairs} WHERE "_unit0" <> "_unit1"
"""
_DEGREES = """
SELECT UNNEST(RANGE(1, LEAST(d, {most}) + 1)) AS "at_least"
FROM (SELECT COUNT(*) AS d FROM ({ends}) AS ends GROUP BY who) AS degrees
"""
_WEDGES = """
SELECT "at_least" FROM (
  SELECT "at_least", UNNEST(RANGE(1, "at_least")) AS other FROM ({degrees}) AS degrees
) AS wedges
"""
_TRIANGLES = """
WITH first_ones AS (
  SELECT a, b FROM ({ends}) AS ends
  QUALIFY ROW_NUMBER() OVER (PARTITION BY who ORDER BY "_hashed", a, b) <= {most}
), kept AS MATERIALIZED (
  SELECT a, b FROM first_ones GROUP BY a, b HAVING COUNT(*) = 2
)
SELECT CAST(3 AS BIGINT) AS "corners"
FROM kept AS x JOIN kept AS y ON y.a = x.b JOIN kept AS z ON z.a = x.a AND z.b = y.b
"""


def select_graph(shape: Shape, most: int, pairs: str, kind: Kind) -> exp.Query:
    """The rows of a shape, from the step that holds the pairs of people named by a kind."""
    ends = _ENDS.format(pairs=quote_name(pairs))
    degrees = _DEGREES.format(ends=ends, most=most)
    text = {
        Shape.DEGREES: degrees,
        Shape.WEDGES: _WEDGES.format(degrees=degrees),
        Shape.TRIANGLES: _TRIANGLES.format(ends=ends, most=most),
    }[shape]
    found = parse_one(text, dialect=ENGINE)
    if not isinstance(found, exp.Query):
        raise TypeError(shape)
    return put_hash(found, [Hashed("a", kind, owner=True), Hashed("b", kind)])


__all__ = ["select_graph"]
