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
from discreet.engine.duckdb.render import Layout, lay_out
from discreet.engine.duckdb.result import Columns
from discreet.engine.duckdb.sources import quoted
from discreet.engine.truth import Opened
from discreet.question.domain import Kind
from discreet.question.functions import nodes
from discreet.question.functions.nodes import (
    ENGINE,
    Definition,
    Node,
    add_alias,
    add_definitions,
    quote_column,
    quote_table,
    select,
)
from discreet.question.schema import Table

_ONE, _OTHER, _ROWS, _OWNER = "_one", "_other", "_rows", "_owner"

_PAIRED = """
SELECT {content}, "_one", "_other", CAST(HASH("_one", "_other") % 4294967296 AS UINTEGER) AS "_pair"
FROM (
  SELECT {content}, LEAST({first}, {second}) AS "_one", GREATEST({first}, {second}) AS "_other"
  FROM {owned}
) AS rows_of_two
"""  # of a row that names one person, LEAST and GREATEST are that person
# Who and which pairs may have too many rows, and all who do: rows of one person count twice here,
# and pairs are told apart by 32 bits.  Whoever has few after all loses nothing by being looked at.
_FULL = """
SELECT "_pair" FROM {paired} WHERE "_one" <> "_other" GROUP BY "_pair" HAVING COUNT(*) > {shared}
"""
_MANY = """
SELECT "_owner" FROM (
  SELECT "_one" AS "_owner" FROM {paired} UNION ALL SELECT "_other" AS "_owner" FROM {paired}
) AS ends GROUP BY "_owner" HAVING COUNT(*) > {most}
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


def bound_shared(shape: Layout, owned: str, name: str) -> list[Definition]:
    """Definitions that end in ``name``: the rows of ``owned`` that are among the first of both.

    Numbering everybody's rows would sort them all.  People who stand in too many rows and pairs
    who share too many are found first, by counting; of their rows the hashes are sorted; and only
    rows of one hash, at the end of what is kept of somebody, by what they say.
    """
    steps = {
        step: f"{name}, {words}"
        for step, words in (
            ("paired", "with both owners in order"),
            ("full", "pairs that share too many"),
            ("many", "people in many"),
            ("near", "of these"),
            ("capped", "of each pair the first"),
            ("cut", "where too much begins"),
            ("judged", "and whether too much"),
            ("tied", "where it begins"),
            ("beyond", "of those too much"),
        )
    }
    parts = {step: quoted(words) for step, words in steps.items()}
    parts["content"] = _list_content(shape)
    parts["most"] = str(shape.table.max_rows_per_unit)
    parts["shared"] = str(shape.table.max_rows_per_pair)
    parts["is_near"] = _IS_NEAR.format(**parts)
    return [
        (steps["paired"], _name_pairs(shape, owned), False),
        (steps["full"], _read(_FULL, parts), True),
        (steps["many"], _read(_MANY, parts), True),
        (steps["near"], put_hash(_read(_NEAR, parts), shape.hashed()), True),
        (steps["capped"], _read(_CAPPED, parts), True),
        (steps["cut"], _read(_CUT, parts), True),
        (steps["judged"], _read(_JUDGED, parts), True),
        (steps["tied"], _read(_TIED, parts), True),
        (steps["beyond"], _read(_BEYOND, parts), True),
        (name, _read(_KEPT, parts), False),
    ]


def _read(text: str, parts: Mapping[str, str]) -> exp.Query:
    """A step as a tree; its names are quoted, and no text of an analyst's is among them."""
    found = parse_one(text.format(**parts), dialect=ENGINE)
    if not isinstance(found, exp.Query):
        raise TypeError(text)
    return found


def _name_pairs(shape: Layout, owned: str) -> exp.Query:
    """Rows with their two owners in order; of a row that names one person, that person twice."""
    first, second = (quoted(u) for u in shape.unit)
    parts = {"first": first, "second": second, "owned": quoted(owned)}
    return _read(_PAIRED, {"content": _list_content(shape), **parts})


def _list_content(shape: Layout) -> str:
    return ", ".join(quoted(c) for c in shape.content)


def _apart() -> Node:
    """Whether a row names two people."""
    return exp.NEQ(this=quote_column(_ONE), expression=quote_column(_OTHER))


def _list_ends(said: tuple[str, ...], rows: str) -> exp.Query:
    """Every row once for each of its owners, with the columns ``said``."""
    one = select(
        [add_alias(quote_column(_ONE), _OWNER), *map(quote_column, said)], quote_table(rows)
    )
    other = select(
        [add_alias(quote_column(_OTHER), _OWNER), *map(quote_column, said)],
        quote_table(rows),
        where=[_apart()],
    )
    return exp.Union(this=one, expression=other, distinct=False)


def count_crowd(table: Table, owned: Definition) -> str:
    """How many people stand in more rows than each of the levels of the test, from the top.

    The levels are max_rows_per_unit less 0, 1, 2, ... times max_rows_per_pair
    (docs/proofs/graphs.md, Lemma 3); people in fewer rows than the last do not matter.  Which rows
    of a pair are kept does not matter here, only how many: nothing is sorted.
    """
    most, pair = table.max_rows_per_unit or 1, table.max_rows_per_pair or 1
    names = [quote_column(_ONE), quote_column(_OTHER)]
    everything = exp.Count(this=exp.Star(), big_int=True)
    few = nodes.call("LEAST", everything.copy(), exp.Literal.number(str(pair)))
    kept = nodes.case((_apart(), few), otherwise=everything)
    shared = select(
        [*names, add_alias(kept, _ROWS)],
        quote_table("paired"),
        group=names,
    )
    each = select(
        [add_alias(nodes.cast(exp.Sum(this=quote_column(_ROWS)), Kind.INTEGER), "d")],
        quote_table("ends"),
        group=[quote_column(_OWNER)],
    )
    above = exp.Literal.number(str(most))
    step = exp.Literal.number(str(pair))
    # the first level that a person is above: ceil((most - d + 1) / pair), and 0 at least
    short = nodes.call(
        "GREATEST",
        nodes.infix(
            exp.IntDiv,
            exp.Paren(
                this=exp.Add(
                    this=exp.Sub(this=above, expression=quote_column("d")),
                    expression=step.copy(),
                )
            ),
            step,
        ),
        exp.Literal.number("0"),
    )
    level = add_alias(short, "level")
    people = add_alias(exp.Count(this=exp.Star(), big_int=True), "people")
    query = select([level, people], quote_table("each"), group=[quote_column("level")])
    definitions: list[Definition] = [
        owned,
        ("paired", _name_pairs(lay_out(table), owned[0]), False),
        ("pairs", shared, True),
        ("ends", _list_ends((_ROWS,), "pairs"), False),
        ("each", each, False),
    ]
    return add_definitions(query, definitions).sql(ENGINE, pretty=True)


def read_crowd(table: Table, found: Columns) -> Opened:
    """How many people stand in more rows than each level, from the highest level on."""
    levels = (table.max_rows_per_unit or 1) // (table.max_rows_per_pair or 1) + 1
    above = np.zeros(levels, dtype=np.int64)
    for level, people in zip(found["level"].tolist(), found["people"].tolist(), strict=True):
        if level < levels:
            above[level] += people
    return Opened((), (np.cumsum(above),))


__all__ = ["bound_shared", "count_crowd", "read_crowd"]
