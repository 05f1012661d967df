"""Rows of two people: of every person the first so many, by one order for both owners.

A row is kept where it is among the first ``max_rows_per_unit`` of each of its owners, after the
rows that two people share were cut to ``max_rows_per_pair``.  The order is that of a hash of what
a row says, then of what it says, then of its place among equal rows: it depends on the row alone,
and is the same for both owners (docs/proofs/graphs.md, Lemma 1).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from sqlglot import exp, parse_one

from discreet.engine.duckdb.hashing import put_hash
from discreet.engine.duckdb.render import Layout
from discreet.engine.duckdb.result import Columns
from discreet.engine.duckdb.sources import quote_name
from discreet.engine.truth import Opened
from discreet.question.functions.nodes import ENGINE, Definition
from discreet.question.schema import Table

_PAIRED = """
SELECT {content}, "_one", "_other", CAST(HASH("_one", "_other") % 4294967296 AS UINTEGER) AS "_pair"
FROM (
  SELECT {content}, LEAST({first}, {second}) AS "_one", GREATEST({first}, {second}) AS "_other"
  FROM {owned}
) AS rows_of_two
"""  # of a row that names one person, LEAST and GREATEST are that person
# Pairs that may share too many rows, and all who do: they are told apart by 32 bits, and who shares
# few after all loses nothing by being looked at.  In how many rows everybody stands, and in many.
_FULL = """
SELECT "_pair" FROM {paired} WHERE "_one" <> "_other" GROUP BY "_pair" HAVING COUNT(*) > {shared}
"""
_MET = """
SELECT "_owner", COUNT(*) AS "_rows" FROM (
  SELECT "_one" AS "_owner" FROM {paired}
  UNION ALL SELECT "_other" AS "_owner" FROM {paired} WHERE "_one" <> "_other"
) AS ends GROUP BY "_owner"
"""
_MANY = """
SELECT "_owner" FROM {met} WHERE "_rows" > {most}
"""
_IS_NEAR = """(
  "_one" IN (SELECT "_owner" FROM {many}) OR "_other" IN (SELECT "_owner" FROM {many})
  OR "_pair" IN (SELECT "_pair" FROM {full})
)"""
_NEAR = """
SELECT {content}, "_one", "_other", "_pair", "_hashed" AS "_hash"
FROM {paired} WHERE {is_near}
"""
_CAPPED = """
SELECT {content}, "_one", "_other", "_hash" FROM {near} ANTI JOIN {full} USING ("_pair")
UNION ALL
SELECT {content}, "_one", "_other", "_hash" FROM {near} SEMI JOIN {full} USING ("_pair")
QUALIFY "_one" = "_other"
  OR ROW_NUMBER() OVER (PARTITION BY "_one", "_other" ORDER BY "_hash", {content}) <= {shared}
"""
# The hash of the first row that is too much, and how many rows of that same hash are not.
_CUT = """
SELECT "_owner", "_hash" AS "_from",
  {most} + 1 - RANK() OVER (PARTITION BY "_owner" ORDER BY "_hash") AS "_room"
FROM (
  SELECT "_one" AS "_owner", "_hash" FROM {capped}
  UNION ALL SELECT "_other" AS "_owner", "_hash" FROM {capped} WHERE "_one" <> "_other"
) AS ends SEMI JOIN {many} USING ("_owner")
QUALIFY ROW_NUMBER() OVER (PARTITION BY "_owner" ORDER BY "_hash") = {most} + 1
"""
_JUDGED = """
SELECT {content}, "_one", "_other", "_hash",
  COALESCE("_hash" > x."_from" OR "_hash" > y."_from", FALSE) AS "_late",
  COALESCE("_hash" = x."_from", FALSE) OR COALESCE("_hash" = y."_from", FALSE) AS "_tied"
FROM {capped}
LEFT JOIN {cut} AS x ON "_one" = x."_owner" LEFT JOIN {cut} AS y ON "_other" = y."_owner"
WHERE "_tied" OR NOT "_late"
"""
_TIED = """
SELECT {content}, "_one", "_other", "_hash", "_late",
  ROW_NUMBER() OVER (PARTITION BY "_one", "_other" ORDER BY "_hash", {content}) AS "_place"
FROM {judged} WHERE "_tied"
"""
_BEYOND = """
SELECT "_one", "_other", "_place" FROM (
  SELECT "_one" AS "_owner", {content}, "_one", "_other", "_hash", "_place" FROM {tied}
  UNION ALL
  SELECT "_other" AS "_owner", {content}, "_one", "_other", "_hash", "_place" FROM {tied}
  WHERE "_one" <> "_other"
) AS ends JOIN {cut} AS c ON ends."_owner" = c."_owner" AND "_hash" = "_from"
QUALIFY ROW_NUMBER() OVER (PARTITION BY c."_owner" ORDER BY {content}, "_place") > "_room"
"""
_KEPT = """
SELECT {content} FROM {paired} WHERE NOT {is_near}
UNION ALL SELECT {content} FROM {judged} WHERE NOT "_late" AND NOT "_tied"
UNION ALL
SELECT {content} FROM {tied} ANTI JOIN {beyond} USING ("_one", "_other", "_place")
WHERE NOT "_late"
"""

# Rows beyond what a pair may share: which of them are kept does not matter here, only how many.
_OVER = """
SELECT "_one", "_other", COUNT(*) - {shared} AS "_over"
FROM {paired} SEMI JOIN {full} USING ("_pair")
WHERE "_one" <> "_other" GROUP BY "_one", "_other" HAVING COUNT(*) > {shared}
"""
_PEOPLE = """
SELECT "d", COUNT(*) AS "people" FROM (
  SELECT LEAST("_rows" - CAST(COALESCE("_beyond", 0) AS BIGINT), {most} + 1) AS "d"
  FROM {met} LEFT JOIN (
    SELECT "_owner", SUM("_over") AS "_beyond" FROM (
      SELECT "_one" AS "_owner", "_over" FROM {over}
      UNION ALL SELECT "_other" AS "_owner", "_over" FROM {over}
    ) AS ends GROUP BY "_owner"
  ) AS less USING ("_owner")
) AS each_person GROUP BY "d"
"""


def bound_shared(shape: Layout, owned: str, name: str) -> list[Definition]:
    """Definitions that end in ``name``: the rows of ``owned`` that are among the first of both.

    Numbering everybody's rows would sort them all.  People who stand in too many rows and pairs
    who share too many are found first, by counting; of their rows the hashes are sorted; and only
    rows of one hash, at the end of what is kept of somebody, by what they say.
    """
    steps, parts = _name_steps(shape, name)
    return [
        *_count_rows(shape, owned, steps, parts),
        (steps["many"], _read(_MANY, parts), True),
        (steps["near"], put_hash(_read(_NEAR, parts), shape.list_hashed()), True),
        (steps["capped"], _read(_CAPPED, parts), True),
        (steps["cut"], _read(_CUT, parts), True),
        (steps["judged"], _read(_JUDGED, parts), True),
        (steps["tied"], _read(_TIED, parts), True),
        (steps["beyond"], _read(_BEYOND, parts), True),
        (name, _read(_KEPT, parts), False),
    ]


def count_crowd(shape: Layout, owned: str, name: str) -> tuple[list[Definition], exp.Query]:
    """How many people stand in how many rows, once those that a pair shares were cut.

    The definitions are those with which :func:`bound_shared` begins: where the rows called ``name``
    were bounded a step at a time, the query finds them.
    """
    steps, parts = _name_steps(shape, name)
    over: Definition = (steps["over"], _read(_OVER, parts), True)
    return [*_count_rows(shape, owned, steps, parts), over], _read(_PEOPLE, parts)


def _count_rows(
    shape: Layout, owned: str, steps: Mapping[str, str], parts: Mapping[str, str]
) -> list[Definition]:
    """The rows with their owners, pairs that may share too many, and everybody's rows."""
    return [
        (steps["paired"], _name_pairs(shape, owned), False),
        (steps["full"], _read(_FULL, parts), True),
        (steps["met"], _read(_MET, parts), True),
    ]


def _name_steps(shape: Layout, name: str) -> tuple[dict[str, str], dict[str, str]]:
    """What each step is called, and what stands in the statements for it."""
    steps = {
        step: f"{name}, {words}"
        for step, words in (
            ("paired", "with both owners in order"),
            ("full", "pairs that share too many"),
            ("met", "people by their rows"),
            ("many", "people in many"),
            ("near", "of these"),
            ("capped", "of each pair the first"),
            ("cut", "where too much begins"),
            ("judged", "and whether too much"),
            ("tied", "where it begins"),
            ("beyond", "of those too much"),
            ("over", "shared beyond"),
        )
    }
    parts = {step: quote_name(words) for step, words in steps.items()}
    parts["content"] = _list_content(shape)
    parts["most"] = str(shape.table.max_rows_per_unit)
    parts["shared"] = str(shape.table.max_rows_per_pair)
    parts["is_near"] = _IS_NEAR.format(**parts)
    return steps, parts


def _read(text: str, parts: Mapping[str, str]) -> exp.Query:
    """A step as a tree; its names are quoted, and no text of an analyst's is among them."""
    found = parse_one(text.format(**parts), dialect=ENGINE)
    if not isinstance(found, exp.Query):
        raise TypeError(text)
    return found


def _name_pairs(shape: Layout, owned: str) -> exp.Query:
    """Rows with their two owners in order; of a row that names one person, that person twice."""
    first, second = (quote_name(u) for u in shape.unit)
    parts = {"first": first, "second": second, "owned": quote_name(owned)}
    return _read(_PAIRED, {"content": _list_content(shape), **parts})


def _list_content(shape: Layout) -> str:
    return ", ".join(quote_name(c) for c in shape.content)


def read_crowd(table: Table, found: Columns) -> Opened:
    """How many people stand in more rows than each of the levels of the test, from the top.

    The levels are max_rows_per_unit less 0, 1, 2, ... times max_rows_per_pair
    (docs/proofs/graphs.md, Lemma 3); people in fewer rows than the last do not matter.
    """
    most, pair = table.max_rows_per_unit or 1, table.max_rows_per_pair or 1
    above = np.zeros(most // pair + 1, dtype=np.int64)
    for rows, people in zip(found["d"].tolist(), found["people"].tolist(), strict=True):
        level = max(0, (most - rows) // pair + 1)  # the first that they are above
        if level < above.size:
            above[level] += people
    return Opened((), (np.cumsum(above),))


__all__ = ["bound_shared", "count_crowd", "read_crowd"]
