"""What a question to a release asks: its columns, its counts, and whether it is linear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.question.sql import MOST_CHARACTERS
from discreet.question.sql.dialect import MOST_NODES
from discreet.question.sql.released import FUNCTIONS

_BEYOND = (
    exp.Join,
    exp.Subquery,
    exp.Having,
    exp.Limit,
    exp.Distinct,
    exp.Window,
    exp.SetOperation,
    exp.Pivot,
)


@dataclass(frozen=True, slots=True)
class Reading:
    """One SELECT about one release, as far as its margins depend on it."""

    text: str
    tree: exp.Select
    names: tuple[str, ...]
    columns: tuple[str, ...]
    """The columns that decide who is counted where."""
    counts: tuple[str, ...]
    """The outputs that are COUNT(*)."""
    numbers: tuple[str, ...]
    """The other aggregates."""
    linear: bool
    """Whether it is counts by keys under a condition, and nothing else."""

    @classmethod
    def of(cls, sql: str, table: str, known: Sequence[str]) -> Reading:
        """The question as it is written, or a refusal."""
        tree = _parse(sql)
        if tree is None:
            raise _make_refusal(
                "the question is not SQL, or longer than a question may be.",
                f"count the rows of {table!r}, in SQL.",
            )
        named = {one.name for one in tree.find_all(exp.Table)}
        if not isinstance(tree, exp.Select) or named != {table}:
            raise _make_refusal(
                f"the question is not a SELECT about {table!r} alone.",
                f"count the rows of {table!r}, by its columns.",
            )
        for node in tree.walk():
            _check(node)
        tree = tree.copy()
        tree.set("expressions", [_name_count(one) for one in tree.expressions])
        outputs = [
            (one.alias_or_name or one.sql("duckdb"), one.unalias()) for one in tree.expressions
        ]
        counts = [name for name, node in outputs if _is_count(node)]
        numbers = [name for name, node in outputs if not _is_count(node) and node.find(exp.AggFunc)]
        plain = not any(tree.find(kind) for kind in _BEYOND) and _is_alone(tree)
        used = {one.name.lower() for one in tree.find_all(exp.Column)}  # as the engine reads names
        if plain:
            _refuse_unknown(used, tree, table, known)
        return cls(
            sql,
            tree,
            tuple(name for name, _ in outputs),
            tuple(name for name in known if name.lower() in used),
            tuple(counts) if plain else (),
            tuple(numbers if plain else [*counts, *numbers]),
            plain and len(counts) == 1 and not numbers and not _has_totals(tree),
        )

    @property
    def tables(self) -> set[str]:
        """The tables that it names: one."""
        return {one.name for one in self.tree.find_all(exp.Table)}

    @property
    def grouped(self) -> bool:
        """Whether it has a number for each of several groups."""
        return self.tree.args.get("group") is not None

    @property
    def sql(self) -> str:
        """The question as the engine runs it, in an order that does not change."""
        return self._put_in_order(self.tree.copy()).sql("duckdb")

    def cells_sql(self, cell: str) -> str:
        """The same question with a list of cells in the place of a count."""
        tree = self.tree.copy()
        if self._order_of_counts():
            tree.set("order", None)  # nobody knows it yet
        tree = self._put_in_order(tree)
        for one in tree.expressions:
            if _is_count(one.unalias()):
                one.set("this", exp.func("LIST", exp.column(cell)))
        return tree.sql("duckdb")

    def sort_counts(self, rows: Sequence[Any], count: Callable[[Any], float]) -> list[Any]:
        """Rows that were asked for in the order of their counts, in it; others as they are."""
        terms = self._order_of_counts()
        if not terms:
            return list(rows)
        direct = isinstance(terms[0].this, exp.Column | exp.Literal) or _is_count(terms[0].this)
        if len(self.tree.args["order"].expressions) > 1 or not direct:
            raise _make_refusal(
                "a release of counts is put in the order of its counts alone, or of its columns.",
                "write ORDER BY n DESC, where n is the count.",
            )
        return sorted(rows, key=count, reverse=bool(terms[0].args.get("desc")))

    def _order_of_counts(self) -> list[exp.Ordered]:
        """What the counts decide of the order."""
        order = self.tree.args.get("order")
        return [] if order is None else [one for one in order.expressions if self._has_count(one)]

    def _has_count(self, term: exp.Expr) -> bool:
        named = {name.lower() for name in self.counts}
        places = {str(place) for place, name in enumerate(self.names, 1) if name in self.counts}
        return any(
            (isinstance(one, exp.Column) and one.name.lower() in named)
            or (one.parent is term and isinstance(one, exp.Literal) and one.name in places)
            or isinstance(one, exp.Count)
            for one in term.walk()
        )

    def _put_in_order(self, tree: exp.Select) -> exp.Select:
        group = tree.args.get("group")
        if group is not None and tree.args.get("order") is None:
            places = [
                exp.Literal.number(place)
                for place, one in enumerate(
                    [o for o in tree.expressions if not o.find(exp.AggFunc)], 1
                )
            ]
            heads = all(not o.find(exp.AggFunc) for o in tree.expressions[: len(places)])
            if places and heads:
                tree = tree.order_by(*places)
        return tree


def list_tables(sql: str) -> set[str]:
    """The tables that a text names, if it is SQL at all; their own names, without a schema's.

    >>> sorted(list_tables("SELECT COUNT(*) FROM visits v JOIN cities USING (city)"))
    ['cities', 'visits']
    >>> list_tables("WITH few AS (SELECT * FROM visits) SELECT COUNT(*) FROM few")
    {'visits'}
    """
    tree = _parse(sql)
    if tree is None:
        return set()
    inside = {one.alias_or_name for one in tree.find_all(exp.CTE)}
    return {one.name for one in tree.find_all(exp.Table)} - inside


def drop_conditions(sql: str) -> str:
    """The same question of all rows there are; a text that is no SELECT stays what it is.

    >>> drop_conditions("SELECT city, COUNT(*) AS n FROM cities WHERE city = 'Cork' GROUP BY city")
    'SELECT city, COUNT(*) AS n FROM cities GROUP BY city'
    """
    tree = _parse(sql)
    if not isinstance(tree, exp.Select):
        return sql
    whole = tree.copy()
    for part in ("where", "having", "limit", "offset"):
        whole.set(part, None)
    return whole.sql("duckdb")


def _parse(sql: str) -> exp.Expr | None:
    """The tree of a text that is no longer and no deeper than any question; None otherwise.

    Of texts that are not SQL the parser raises what it likes, and notes them where others read.
    """
    first = sql.lstrip()[:7].lower()
    if len(sql) > MOST_CHARACTERS or not first.startswith(
        ("select", "with", "from", "(", "-", "/")
    ):
        return None
    try:
        return sqlglot.parse_one(sql, dialect="duckdb", max_nodes=MOST_NODES)
    except (sqlglot.errors.SqlglotError, RecursionError, ValueError, TypeError, AttributeError):
        return None


_WRITTEN = (exp.Connector, exp.Case, exp.If, exp.Cast, exp.Coalesce, exp.Exists, exp.Neg)
"""What the parser takes for functions, and people write as words between others."""
_NOWHERE = (exp.Command, exp.Lateral, exp.Unnest, exp.Parameter, exp.Placeholder)


def _check(node: exp.Expr) -> None:
    """Refuse what would look at something else than the release, or make rows of nothing."""
    if isinstance(node, exp.Func) and not isinstance(node, _WRITTEN):
        names = {node.name} if isinstance(node, exp.Anonymous) else set(node.sql_names())
        if not {name.lower() for name in names} & FUNCTIONS:
            word = "this" if isinstance(node, exp.Anonymous) and not node.name else min(names)
            raise _make_refusal(
                f"{word.upper()} cannot be computed from a release.",
                f"use one of {', '.join(sorted(name.upper() for name in FUNCTIONS))}.",
            )
    made = isinstance(node, exp.Table) and (
        not isinstance(node.this, exp.Identifier) or not _has_only(node, _OF_TABLE)
    )
    if isinstance(node, exp.TableAlias) and node.columns:
        raise _make_refusal(
            "the columns of the release are given other names.",
            "call them what they are called, and give outputs names: SELECT city AS town.",
        )
    if isinstance(node, exp.Select) and not _has_only(node, _OF_SELECT):
        raise _make_refusal(
            "the question samples the release, or does more than a SELECT about it.",
            "leave out all but WHERE, GROUP BY, HAVING, ORDER BY and LIMIT.",
        )
    if made or isinstance(node, _NOWHERE):
        raise _make_refusal(
            "the question reads something else than the release.",
            "name the release after FROM, and nothing else.",
        )


_OF_TABLE = {"this", "alias", "joins", "pivots"}
_OF_SELECT = {
    *("expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset"),
    *("distinct", "qualify", "windows", "with_", "pivots"),
}


def _has_only(node: exp.Expr, parts: set[str]) -> bool:
    """Whether a part of the question has none but these parts, as far as they say anything."""
    return not {name for name, part in node.args.items() if part} - parts


def _is_alone(tree: exp.Select) -> bool:
    """Whether it is one SELECT, with none inside, and says of all rows what it says of one."""
    return sum(1 for _ in tree.find_all(exp.Select)) == 1


def _refuse_unknown(used: set[str], tree: exp.Select, table: str, known: Sequence[str]) -> None:
    """Every column is one of the release's, or an output by its name."""
    named = {one.alias.lower() for one in tree.expressions}
    odd = sorted(used - {name.lower() for name in known} - named)
    if odd:
        raise _make_refusal(
            f"there is no column {odd[0]!r} in {table!r}.",
            f"use the columns {', '.join(known)}.",
        )


def _name_count(output: exp.Expression) -> exp.Expr:
    """A count that nobody named is called so."""
    return exp.alias_(output, "count") if _is_count(output) else output


def _has_totals(tree: exp.Select) -> bool:
    """Whether a total's NULL key could be taken for that of a group."""
    return tree.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None


def _is_count(node: exp.Expression) -> bool:
    return isinstance(node, exp.Count) and isinstance(node.this, exp.Star)


def _make_refusal(what: str, fix: str) -> QuestionRefusal:
    return QuestionRefusal(
        "Q47",
        what,
        why="a release is one public table; it is asked by its own name.",
        fix=fix,
    )


__all__ = ["Reading", "drop_conditions", "list_tables"]
