"""The allow-list: every node of a syntax tree, and every argument of every node.

A first refusal, before anything is given a meaning.  A node that is not listed,
or a listed node with a clause that is not, is no part of the dialect, whether
or not anybody thought of it.  The well-known ones have a code, a reason and a
rewriting of their own; the others share one.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.question.sql.dialect import PrivacyClause
from discreet.question.sql.reader import Reader
from discreet.question.sql.rewrite import (
    Change,
    count_by_group,
    drop_clauses,
    keep_all_rows,
    rewrite_ilike,
)

MOST_TERMS = 500
"""How often AND and OR may stand in a question."""

MOST_LISTED = 2_000
"""How many values IN (...) may list, and how many parts any other list may have."""

MOST_DEPTH = 100
"""How deeply expressions and sub-queries may be nested in one another."""

_BINARY = {"this", "expression"}

ALLOWED: dict[type[exp.Expr], set[str]] = {
    # the statement
    exp.Select: {
        "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "with_",
        "hint",
    },
    PrivacyClause: {"expressions"},
    exp.Union: {"this", "expression", "distinct", "with_"},
    exp.Subquery: {"this", "alias"},
    exp.With: {"expressions"},
    exp.CTE: {"this", "alias"},
    exp.From: {"this"},
    exp.Join: {"this", "on", "using", "side", "kind"},
    exp.Table: {"this", "alias"},
    exp.TableAlias: {"this"},
    exp.Where: {"this"},
    exp.Group: {"expressions"},
    exp.Having: {"this"},
    exp.Order: {"expressions"},
    exp.Ordered: {"this", "desc", "nulls_first"},
    exp.Limit: {"expression"},
    # names and constants
    exp.Alias: {"this", "alias"},
    exp.Column: {"this", "table"},
    exp.Identifier: {"this", "quoted"},
    exp.Var: {"this"},
    exp.Star: set(),
    exp.Literal: {"this", "is_string"},
    exp.Boolean: {"this"},
    exp.Null: set(),
    exp.Interval: {"this", "unit"},
    exp.DataType: {"this", "nested"},
    exp.Tuple: {"expressions"},
    # expressions
    **dict.fromkeys(
        (exp.Add, exp.Sub, exp.Mul, exp.IntDiv, exp.Mod, exp.And, exp.Or, exp.EQ, exp.NEQ, exp.LT,
         exp.LTE, exp.GT, exp.GTE, exp.Is, exp.Kwarg, exp.Filter, exp.WithinGroup, exp.Extract),
        _BINARY,
    ),
    exp.Div: {*_BINARY, "typed", "safe"},
    exp.DPipe: {*_BINARY, "safe"},
    exp.Like: {*_BINARY, "negate"},
    exp.Between: {"this", "low", "high"},
    exp.In: {"this", "expressions"},
    exp.Not: {"this"},
    exp.Neg: {"this"},
    exp.Paren: {"this"},
    exp.Case: {"this", "ifs", "default"},
    exp.If: {"this", "true"},
    exp.Cast: {"this", "to", "_type"},
    exp.Anonymous: {"this", "expressions"},
    exp.Distinct: {"expressions"},
    exp.Bracket: {"this", "expressions"},
}  # fmt: skip
"""What may appear, and which of its arguments may be filled."""


@dataclass(frozen=True, slots=True)
class Ban:
    """Why something well known is refused, and what to write instead."""

    code: str
    what: str
    why: str
    fix: str
    change: Change | None = None  # of the node that has what is refused


SUBQUERY = Ban(
    "Q15",
    "a sub-query cannot stand inside an expression.",
    "it looks at other people's rows: one person's row could switch everybody's on or off.",
    "join on the unit: FROM a JOIN (SELECT unit, MAX(x) AS x FROM b GROUP BY unit) AS s "
    "ON a.unit = s.unit; or join a public table.",
)
_WINDOW = Ban(
    "Q14",
    "a window function looks at other rows than its own.",
    "one person's row would change the number on everybody else's.",
    "aggregate by unit in a sub-query (GROUP BY the unit), or ask for the aggregate itself.",
)
_SAMPLE = Ban(
    "Q17",
    "rows cannot be sampled in a question.",
    "the price would have to know by what chance each person was drawn.",
    "leave the sampling out: noise is added to the full answer.",
    drop_clauses("sample"),
)
DISTINCT = Ban(
    "Q13",
    "DISTINCT stands only inside COUNT(DISTINCT ...).",
    "whether a row survives would depend on other people's rows being equal to it.",
    "list groups with a count: SELECT x, COUNT(*) FROM t GROUP BY x.",
    count_by_group,
)
SET = Ban(
    "Q21",
    "only UNION ALL puts rows together.",
    "to drop equal rows is to compare people with one another.",
    "write UNION ALL, inside FROM ( ... ).",
    keep_all_rows,
)
JOIN = Ban(
    "Q19",
    "this kind of join is outside the dialect.",
    "every row must keep exactly one owner, and its partner must be written down.",
    "write a JOIN b ON a.x = b.x, or a LEFT JOIN b ON a.x = b.x.",
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
    "OFFSET is outside the dialect.",
    "nothing for a person in the data: it is not built.",
    "ask without OFFSET and leave out the first rows yourself; the answer is yours to cut.",
    drop_clauses("offset"),
)

REFUSED: dict[type[exp.Expr] | tuple[type[exp.Expr], str], Ban] = {
    exp.Window: _WINDOW,
    (exp.Select, "qualify"): _WINDOW,
    (exp.Select, "windows"): _WINDOW,
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
    (exp.Join, "method"): JOIN,
    exp.Lateral: JOIN,
    exp.Unnest: JOIN,
    (exp.Select, "laterals"): JOIN,
    (exp.Group, "rollup"): _GROUPING,
    (exp.Group, "cube"): _GROUPING,
    (exp.Group, "grouping_sets"): _GROUPING,
    (exp.Group, "all"): _GROUPING,
    (exp.Group, "totals"): _GROUPING,
    (exp.TableAlias, "columns"): _NAMED_COLUMNS,
    (exp.Select, "offset"): _NO_SKIPPING,
    (exp.With, "recursive"): Ban(
        "Q29",
        "WITH RECURSIVE is outside the dialect.",
        "a relation that grows from itself has no bound on what one person adds.",
        "write the steps out, or leave RECURSIVE away if nothing refers to itself.",
    ),
    (exp.Subquery, "joins"): JOIN,
    (exp.Table, "joins"): JOIN,
    exp.ILike: Ban(
        "Q11",
        "ILIKE is outside the dialect.",
        "nothing for a person in the data: it is not built.",
        "write LOWER(x) LIKE 'north%'.",
        rewrite_ilike,
    ),
    (exp.Table, "db"): Ban(
        "Q6",
        "a table has a plain name here, without a database or schema before it.",
        "only the tables the curator declared exist.",
        "write the table's name alone.",
    ),
    (exp.Column, "db"): Ban(
        "Q7",
        "a column is written as name or table.name.",
        "only the columns the curator declared exist.",
        "write table.column.",
    ),
}
"""The well-known ones, by node or by node and argument."""


def check_allowed(tree: exp.Expr, reader: Reader) -> None:
    """Refuse ``tree`` unless all of it is on the list."""
    pending: list[tuple[exp.Expr, int]] = [(tree, 1)]
    terms = 0
    while pending:
        node, depth = pending.pop()
        terms += isinstance(node, exp.Connector)
        if depth > MOST_DEPTH or terms > MOST_TERMS:
            raise depth_refusal()
        allowed = ALLOWED.get(type(node))
        if allowed is None:
            raise _refusal(reader, node, node, REFUSED.get(type(node)), _name_of(node))
        for argument, value in node.args.items():
            if value is None or value is False or value == []:
                continue
            if argument not in allowed:
                ban = REFUSED.get((type(node), argument))
                culprit = _first(value) or node
                raise _refusal(reader, node, culprit, ban, _clause(node, argument))
            children = value if isinstance(value, list) else [value]
            if len(children) > MOST_LISTED:
                raise depth_refusal()
            for child in children:
                if isinstance(child, exp.Expr) and argument != "_type":
                    # a AND b AND c ... is one level, however long: it is read as one list
                    chained = type(child) is type(node) and isinstance(node, exp.Connector)
                    pending.append((child, depth + (not chained)))


def depth_refusal() -> QuestionRefusal:
    """The refusal of a question no person wrote."""
    return QuestionRefusal(
        "Q3",
        f"the question nests more than {MOST_DEPTH} levels deep, joins more than {MOST_TERMS} "
        f"terms by AND and OR, lists more than {MOST_LISTED:,} values, or is too long.",
        why="a question must be understood wholly before it can be priced.",
        fix="write it flatter: IN (...) instead of many ORs, a join with a public table "
        "instead of a long CASE.",
    )


def _refusal(
    reader: Reader, node: exp.Expr, culprit: exp.Expr, ban: Ban | None, name: str
) -> QuestionRefusal:
    if ban is None:
        return reader.refusal(
            "Q11",
            culprit,
            f"{name} is outside the dialect.",
            why="what has no proof that it keeps one person's share bounded is not run.",
            fix="leave it out; docs/sql.md lists all a question may contain.",
        )
    fix = reader.suggest_fix(node, ban.change, ban.fix)
    return reader.refusal(ban.code, culprit, ban.what, why=ban.why, fix=fix)


def _first(value: object) -> exp.Expr | None:
    candidates = value if isinstance(value, list) else [value]
    return next((v for v in candidates if isinstance(v, exp.Expr)), None)


def _name_of(node: exp.Expr) -> str:
    return node.key.replace("_", " ").upper()


def _clause(node: exp.Expr, argument: str) -> str:
    return f"{argument.strip('_').replace('_', ' ').upper()} of {_name_of(node)}"
