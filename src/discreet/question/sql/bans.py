"""What is well known and outside the dialect: why, and what to write instead."""

from __future__ import annotations

from sqlglot import exp

from discreet.exact.records import dataclass
from discreet.question.sql.rewrite import Change, count_by_group, drop_clauses, keep_all_rows


@dataclass(frozen=True, slots=True)
class Ban:
    """Why something well known is refused, and what to write instead."""

    code: str
    what: str
    why: str
    fix: str
    change: Change | None = None  # of the node that has what is refused
    words: str = ""  # how the changed question differs


SUBQUERY = Ban(
    "Q15",
    "a sub-query cannot stand inside an expression.",
    "it looks at other people's rows: one person's row could switch everybody's on or off.",
    "none as it stands. About one person's own rows, join on the unit: "
    "FROM a JOIN (SELECT unit, MAX(x) AS x FROM b GROUP BY unit) AS s "
    "ON a.unit = s.unit; or join a public table.",
)
PUBLIC_ALONE = Ban(
    "Q15",
    "a sub-query of public tables alone is looked up by a key of one of them only.",
    "a question is priced as it is written, and what a sub-query of several public rows says is "
    "not written in it.",
    "none as it stands. Read the public table, which costs nothing, and write its number or its "
    "list of values in the sub-query's place; or join it.",
)
COMPARING = Ban(
    "Q15",
    "a sub-query compares its rows with the row outside in more ways than can be looked up.",
    "it is read as a join with one row for each unit: by equality of columns, and by one "
    "comparison more where only is asked whether there is such a row.",
    "none as it stands. Compare neighbouring rows of one unit by a window: FROM (SELECT *, LAG(x) "
    "OVER (PARTITION BY unit ORDER BY day) AS before FROM t) AS s.",
)
WINDOW = Ban(
    "Q14",
    "a window function looks at other people's rows.",
    "one person's row would change the number on everybody else's.",
    "none as it stands. Look at one person's own rows, in a sub-query: "
    "FROM (SELECT unit, LAG(x) OVER (PARTITION BY "
    "unit ORDER BY day) AS before FROM t) AS s; or ask for the aggregate itself.",
)
_SAMPLE = Ban(
    "Q17",
    "rows cannot be sampled in a question.",
    "the price would have to know by what chance each person was drawn.",
    "leave the sampling out: noise is added to the full answer.",
    drop_clauses("sample"),
    "without the sampling, of all rows: ",
)
DISTINCT = Ban(
    "Q13",
    "these different rows would be of everybody together.",
    "whether a row survives would depend on other people's rows being equal to it: DISTINCT is for "
    "keys at the top, for COUNT(DISTINCT ...), and in FROM for rows that name the unit.",
    "list groups with a count: SELECT x, COUNT(*) FROM t GROUP BY x.",
    count_by_group,
    "with how many rows each has: ",
)
SET = Ban(
    "Q21",
    "here equal rows of different people would be taken for one another.",
    "in FROM, UNION is of rows that name the unit, EXCEPT and INTERSECT of the unit's column "
    "alone: anything else compares people with one another.",
    "write UNION ALL, inside FROM ( ... ).",
    keep_all_rows,
    "UNION ALL keeps equal rows, so that what is on both sides counts twice: ",
)
JOIN = Ban(
    "Q19",
    "this kind of join is outside the dialect.",
    "every row must keep exactly one owner, and its partner must be written down.",
    "write a JOIN b ON a.x = b.x, or a LEFT JOIN b ON a.x = b.x.",
)
_PIVOT = Ban(
    "Q11",
    "a PIVOT is read with what it groups by, of values that are listed.",
    "of all its other columns each person would be a group, and values that nobody listed are "
    "people's own.",
    "none as it stands; PIVOT t ON x IN ('a', 'b') USING COUNT(*) GROUP BY y has both.",
)
_LATERAL = Ban(
    "Q19",
    "a LATERAL sub-query is read where it aggregates all rows it finds.",
    "of one that finds rows themselves nothing says how many, and so how much a person adds.",
    "none as it stands; of aggregates it is LATERAL (SELECT MAX(x) AS m FROM t WHERE t.unit = "
    "s.unit) AS l, and the first row of each is ROW_NUMBER() OVER (PARTITION BY unit ORDER BY x).",
)
_CONSTANTS = Ban(
    "Q19",
    "constants stand beside one private table, with a name for each of their columns.",
    "every row must keep exactly one owner, and constants have none.",
    "none as it stands; beside a table: FROM t CROSS JOIN (VALUES (1), (2)) AS k(n).",
)
_GROUPING = Ban(
    "Q11",
    "GROUP BY takes columns and expressions only.",
    "grouping sets are several questions in one, and each has its own price.",
    "ask one question for each grouping.",
)
_NAMED_COLUMNS = Ban(
    "Q29",
    "columns cannot be renamed beside a table's alias.",
    "a name then hides which column, and whose, it stands for.",
    "rename inside: (SELECT x AS y FROM t) AS s.",
)
_NO_SKIPPING = Ban(
    "Q11",
    "OFFSET stands around an answer, not among people's rows.",
    "which of one person's rows are skipped would be decided by everybody else's.",
    "put OFFSET after the ORDER BY of the outermost SELECT, or leave it out.",
    drop_clauses("offset"),
)

STARTS = "SELECT, WITH, FROM, PIVOT or EXPLAIN"
"""What a question may begin with."""
READ_ONLY = f"none: a question only reads, and begins with {STARTS}."
"""What there is to do about a statement that is no question."""

REFUSED: dict[type[exp.Expr] | tuple[type[exp.Expr], str], Ban] = {
    exp.Exists: SUBQUERY,
    exp.Any: SUBQUERY,
    exp.All: SUBQUERY,
    (exp.In, "query"): SUBQUERY,
    (exp.In, "field"): SUBQUERY,
    (exp.In, "unnest"): SUBQUERY,
    exp.TableSample: _SAMPLE,
    (exp.Select, "sample"): _SAMPLE,
    (exp.Table, "sample"): _SAMPLE,
    (exp.Subquery, "sample"): _SAMPLE,
    (exp.Select, "distinct"): DISTINCT,
    exp.Intersect: SET,
    exp.Except: SET,
    (exp.Union, "by_name"): SET,
    exp.Pivot: _PIVOT,
    (exp.Table, "pivots"): _PIVOT,
    (exp.Subquery, "pivots"): _PIVOT,
    exp.Lateral: _LATERAL,
    exp.Unnest: _CONSTANTS,
    exp.Values: _CONSTANTS,
    (exp.Select, "laterals"): JOIN,
    (exp.Group, "rollup"): _GROUPING,
    (exp.Group, "cube"): _GROUPING,
    (exp.Group, "grouping_sets"): _GROUPING,
    (exp.Group, "all"): _GROUPING,
    (exp.Group, "totals"): _GROUPING,
    (exp.TableAlias, "columns"): _NAMED_COLUMNS,
    (exp.Star, "except_"): Ban(
        "Q11",
        "* without some columns is outside the dialect.",
        "which columns are read, and whose, must be written down; at the top, rows of people are "
        "never shown.",
        "name the columns that are wanted, or count the rows: SELECT COUNT(*) FROM ....",
    ),
    (exp.Select, "offset"): _NO_SKIPPING,
    (exp.With, "recursive"): Ban(
        "Q29",
        "WITH RECURSIVE is outside the dialect.",
        "a relation that grows from itself has no bound on what one person adds.",
        "write the steps out, or leave RECURSIVE away if nothing refers to itself.",
    ),
    (exp.Subquery, "joins"): JOIN,
    (exp.Table, "joins"): JOIN,
    (exp.Table, "db"): Ban(
        "Q6",
        "a table has a plain name here, without a database or schema before it.",
        "only the tables the curator declared exist.",
        "none is called so; a table's name stands alone.",
    ),
    (exp.Column, "db"): Ban(
        "Q7",
        "a column is written as name or table.name.",
        "only the columns the curator declared exist.",
        "write table.column.",
    ),
}
"""The well-known ones, by node or by node and argument."""
