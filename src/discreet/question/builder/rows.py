"""Rows, groups and questions: each step gives a new one, and nothing is read before asking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from discreet.errors import InvalidParameter
from discreet.question.builder.formula import Descending, Formula, col, of, tree_of
from discreet.question.catalogue import Known
from discreet.question.question import Question
from discreet.question.sql import depth_refusal, parse
from discreet.question.sql.dialect import PrivacyClause, write_text


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a table, filtered, joined or computed; nothing is read before a question is asked.

    Made by ``table``: ``known`` is the schema or catalogue, ``item`` the first thing in FROM and
    ``alias`` its name, ``joins`` and ``conditions`` what was added.
    """

    known: Known
    item: exp.Expr
    alias: str
    joins: tuple[exp.Join, ...] = ()
    conditions: tuple[exp.Expr, ...] = ()

    def __getitem__(self, name: str) -> Formula:
        return col(name, of=self.alias)

    def where(self, *conditions: Formula) -> Rows:
        """The rows where all ``conditions`` are true."""
        return replace(self, conditions=(*self.conditions, *(c.tree.copy() for c in conditions)))

    def select(self, *names: str, **computed: Formula) -> Rows:
        """New columns, computed row by row: ``names`` as they are, others ``computed``."""
        return self._nest(self._select(_items(names, computed)))

    def join(
        self, other: Rows, *, on: str | list[str] | Mapping[str, str], how: str = "inner"
    ) -> Rows:
        """Joined to a public table, or to rows of the same unit, on equal columns.

        ``other`` are those rows, ``on`` a column, several, or ours with theirs; ``how`` is "inner",
        or "left" to keep our rows that have none of theirs.
        """
        if other.joins or other.conditions:
            other = other._nest(other._select([exp.Star()]))
        pairs = (
            dict(on)
            if isinstance(on, Mapping)
            else {n: n for n in ([on] if isinstance(on, str) else on)}
        )
        left = None if self.joins else self.alias
        equal: list[exp.Expr] = [
            exp.EQ(this=col(a, of=left).tree, expression=other[b].tree) for a, b in pairs.items()
        ]
        side = None if how == "inner" else how.upper()
        join = exp.Join(this=other.item.copy(), side=side, on=exp.and_(*equal))
        return replace(self, joins=(*self.joins, join))

    def union_all(self, other: Rows) -> Rows:
        """The rows of both, ours and ``other``; columns correspond one by one."""
        trees = [rows._select([exp.Star()]) for rows in (self, other)]
        return self._nest(exp.Union(this=trees[0], expression=trees[1], distinct=False))

    def per_unit(self, *keys: str, **aggregates: Formula) -> Rows:
        """One row for each combination of ``keys``, which include the unit's columns.

        ``aggregates`` are its other columns, by name.
        """
        tree = self._select(_items(keys, aggregates))
        tree.set("group", exp.Group(expressions=[col(key).tree for key in keys]))
        return self._nest(tree)

    def named(self, alias: str) -> Rows:
        """The same rows, called ``alias``; only before they are joined or filtered."""
        if self.joins or self.conditions:
            return self._nest(self._select([exp.Star()]), alias)
        item = self.item.copy()
        item.set("alias", _alias(alias))
        return replace(self, item=item, alias=alias)

    def group_by(self, *keys: str | Formula, **computed: Formula) -> GroupedRows:
        """Groups of rows, by ``keys``, columns or formulas, or by named formulas, ``computed``."""
        named = {k: col(k) for k in keys if isinstance(k, str)}
        unnamed = [k for k in keys if isinstance(k, Formula)]
        return GroupedRows(self, {**named, **computed}, tuple(unnamed))

    def distinct(self, *keys: str | Formula, **computed: Formula) -> Query:
        """The question which values, or combinations of them, enough units share.

        ``keys`` are columns or formulas, ``computed`` formulas with the names of their columns.
        """
        return self.group_by(*keys, **computed).agg()

    def agg(self, **aggregates: Formula) -> Query:
        """The question about all rows together: ``aggregates``, by the names of their columns."""
        return GroupedRows(self, {}).agg(**aggregates)

    def _select(self, items: list[exp.Expr]) -> exp.Select:
        tree = exp.Select(expressions=items, from_=exp.From(this=self.item.copy()))
        if self.joins:
            tree.set("joins", [join.copy() for join in self.joins])
        if self.conditions:
            tree.set("where", exp.Where(this=exp.and_(*self.conditions)))
        return tree

    def _nest(self, query: exp.Expr, alias: str | None = None) -> Rows:
        name = alias or self.alias
        return Rows(self.known, exp.Subquery(this=query, alias=_alias(name)), name)


def _alias(name: str) -> exp.TableAlias:
    return exp.TableAlias(this=exp.Identifier(this=name, quoted=True))


def _items(names: tuple[str, ...], computed: Mapping[str, Formula]) -> list[exp.Expr]:
    plain: list[exp.Expr] = [col(name).tree for name in names]
    return [*plain, *(_output(f.tree, name) for name, f in computed.items())]


def _output(tree: exp.Expr, name: str) -> exp.Alias:
    return exp.Alias(this=tree.copy(), alias=exp.Identifier(this=name, quoted=True))


def table(
    name: str,
    known: Known,
    *,
    alias: str | None = None,
) -> Rows:
    """The rows of the table ``name`` that is ``known`` by a schema, or by a catalogue of one.

    ``alias`` is what it is called in the question.
    """
    called = alias or name
    tree = exp.Table(this=exp.Identifier(this=name, quoted=True), alias=_alias(called))
    return Rows(known, tree, called)


# --- questions -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """Rows in groups, waiting for what is to be aggregated.

    Made by ``group_by``: ``rows`` by ``keys``, formulas by name, and by ``unnamed`` ones.
    """

    rows: Rows
    keys: Mapping[str, Formula]
    unnamed: tuple[Formula, ...] = ()

    def agg(self, **aggregates: Formula) -> Query:
        """The question: ``aggregates`` of each group, by name; none: which groups there are."""
        items: list[exp.Expr] = [_output(f.tree, name) for name, f in self.keys.items()]
        items += [f.tree.copy() for f in self.unnamed]
        items += [_output(f.tree, name) for name, f in aggregates.items()]
        tree = self.rows._select(items)
        keys = [f.tree.copy() for f in (*self.keys.values(), *self.unnamed)]
        if keys:
            tree.set("group", exp.Group(expressions=keys))
        return Query(self.rows.known, tree)


@dataclass(frozen=True, slots=True)
class Query:
    """A question, ready to be priced; what follows is computed from its answer for free.

    Made by ``agg``: ``known`` is the schema or catalogue, ``tree`` its syntax, and ``options`` what
    one unit may contribute.
    """

    known: Known
    tree: exp.Select
    options: Mapping[str, int] = field(default_factory=dict)

    def having(self, *conditions: Formula) -> Query:
        """Only the groups whose released values fulfil ``conditions``."""
        tree = self.tree.copy()
        present = tree.args.get("having")
        parts = [*([present.this] if present else []), *(c.tree for c in conditions)]
        tree.set("having", exp.Having(this=exp.and_(*parts)))
        return replace(self, tree=tree)

    def order_by(self, *formulas: str | Formula | Descending) -> Query:
        """Sorted by released values: by ``formulas``, columns or ``Descending`` ones."""
        tree = self.tree.copy()
        orders = []
        for formula in formulas:
            descending = isinstance(formula, Descending)
            plain = formula.formula if isinstance(formula, Descending) else formula
            orders.append(exp.Ordered(this=of(plain).tree.copy(), desc=descending or None))
        tree.set("order", exp.Order(expressions=orders))
        return replace(self, tree=tree)

    def limit(self, rows: int) -> Query:
        """Only the first ``rows`` groups of the answer."""
        tree = self.tree.copy()
        tree.set("limit", exp.Limit(expression=tree_of(rows)))
        return replace(self, tree=tree)

    def contributing(
        self,
        *,
        max_rows: int | None = None,
        max_groups: int | None = None,
        max_rows_per_group: int | None = None,
    ) -> Query:
        """What one unit may contribute: rows in all, or groups and rows in each.

        ``max_rows`` in all; or ``max_groups``, with ``max_rows_per_group`` in each.
        """
        given = {
            "max_rows": max_rows,
            "max_groups_contributed": max_groups,
            "max_rows_per_group": max_rows_per_group,
        }
        return replace(self, options={k: v for k, v in given.items() if v is not None})

    @property
    def sql(self) -> str:
        """The question in SQL."""
        tree = self.tree.copy()
        if self.options:
            pairs = [
                exp.EQ(this=exp.column(k), expression=tree_of(v)) for k, v in self.options.items()
            ]
            tree.set("hint", PrivacyClause(expressions=pairs))
        return write_text(tree)

    def question(self) -> Question:
        """The question, or a refusal that underlines the place in its SQL."""
        return parse(self.sql, self.known)


def read_built(asked: object) -> Question:
    """The question that was built in Python."""
    if not isinstance(asked, Query):
        raise InvalidParameter(
            "P4",
            f"an object of type {type(asked).__name__} is not a question.",
            why="only what is known to be asked can be bounded for each person in the data.",
            fix="ask in SQL, or build it to its end: curator.table('visits').agg(n=count()).",
        )
    try:
        return asked.question()
    except RecursionError:
        raise depth_refusal() from None
