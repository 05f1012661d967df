"""Names: what a table, an alias or a column stands for where it is written.

A column of the relation is called ``alias.column``.  An alias has no dot in it,
so no two columns are ever called the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.exact.records import dataclass
from discreet.question.domain import Kind
from discreet.question.relation import PublicSource, Relation
from discreet.question.sql.aggregates import aggregate_name
from discreet.question.sql.bans import WINDOW
from discreet.question.sql.dialect import Reader, copy_span
from discreet.question.sql.rewrite import count_rows, qualify_column
from discreet.question.sql.scalars import column
from discreet.question.sql.spelling import correct_names, find_nearest
from discreet.question.sql.unnest_subqueries import LOOKED_UP

_NAME = re.compile(r"[^\W\d][\w $-]{0,127}")
_MOST_DIGITS = 9  # no SELECT has a column of a longer number


@dataclass(frozen=True, slots=True)
class Item:
    """One thing in FROM: a table or a sub-query under its alias.

    ``columns`` maps each name the analyst may write to the relation's own;
    ``unit`` names the columns that say whose a row is, in the order of the
    unit, where they are visible; it is None for a public table.
    """

    alias: str
    relation: Relation | PublicSource
    columns: Mapping[str, str]
    unit: tuple[str | None, ...] | None
    tree: exp.Expr

    @property
    def public(self) -> bool:
        """Whether its rows belong to nobody."""
        return self.unit is None


@dataclass(frozen=True, slots=True)
class Scope:
    """The things in FROM, and which columns are the same because a join made them equal."""

    reader: Reader
    items: tuple[Item, ...]
    same: Mapping[str, str] = field(default_factory=dict)
    merged: Mapping[str, str] = field(default_factory=dict)  # by USING

    def aggregate(self, node: exp.Expr) -> exp.Expr | None:
        """No aggregate stands in WHERE, ON or GROUP BY."""
        if isinstance(node, exp.Window):
            raise self.reader.refusal(
                WINDOW.code, node, WINDOW.what, why=WINDOW.why, fix=WINDOW.fix
            )
        name = aggregate_name(node)
        if name is None:
            return None
        raise self.reader.refusal(
            "Q25",
            node,
            f"{name} cannot stand here: rows are chosen and grouped before they are aggregated.",
            why="a condition on an aggregate in WHERE would look at everybody's rows.",
            fix="put conditions on aggregates in HAVING, or aggregate by unit in a sub-query.",
        )

    def kind_of(self, name: str) -> Kind | None:
        """The kind of a column in normal form."""
        for item in self.items:
            if name in item.columns.values():
                return self.reader.columns(item.relation)[name].kind
        return None

    def zone_of(self, name: str) -> str | None:
        """The time zone whose clocks a column shows, if it is declared."""
        for item in self.items:
            if name in item.columns.values():
                return self.reader.columns(item.relation)[name].zone
        return None

    def column(self, node: exp.Column) -> exp.Expr:
        """The relation's column that ``node`` names."""
        if isinstance(node.this, exp.Star):
            raise self.reader.refusal(
                "Q12",
                node,
                "* stands only in COUNT(*) and in sub-queries.",
                why="every column of a row is a person's own values.",
                fix=self.reader.suggest_fix(
                    node,
                    count_rows,
                    "count the rows: COUNT(*).",
                    "how many rows there are can be told: ",
                ),
            )
        name = self.find(node)
        if name is None:
            raise self._describe_unknown(node)
        return copy_span(column(self.same.get(name, name)), node.this)

    def find(self, node: exp.Column) -> str | None:
        """The name of the relation's column, or None if there is no such column."""
        items = self.items
        if node.table:
            items = (self._item(node),)
        elif node.name.casefold() in self.merged:
            return self.merged[node.name.casefold()]
        found = [
            item.columns[name]
            for item in items
            if (name := find_name(node.name, item.columns, node, self.reader)) is not None
        ]
        if len(found) > 1:  # what a sub-query looked up has names of its own
            found = [name for name in found if not name.startswith(LOOKED_UP)] or found
        if len(found) > 1:
            raise self.reader.refusal(
                "Q8",
                node,
                f"'{node.name}' is a column of {' and of '.join(i.alias for i in items)}.",
                why="the two may have different bounds.",
                fix=self.reader.suggest_fix(
                    node, qualify_column(items[0].alias), f"write {items[0].alias}.{node.name}."
                ),
            )
        return found[0] if found else None

    def _item(self, node: exp.Column) -> Item:
        by_alias = {item.alias: item for item in self.items}
        alias = find_name(node.table, by_alias, node, self.reader)
        if alias is None:
            raise self.reader.refusal(
                "Q6",
                node.args["table"],
                f"there is no '{node.table}' in FROM.",
                why="a name must lead to one table, so that it is known whose rows are read.",
                fix=f"use one of {list_names(by_alias)}.",
            )
        return by_alias[alias]

    def _describe_unknown(self, node: exp.Column) -> QuestionRefusal:
        known = [name for item in self.items for name in item.columns]
        return self.reader.refusal(
            "Q7",
            node.this,
            f"there is no column '{node.name}'.",
            why="only what the curator declared can be read.",
            fix=correct_names(
                self.reader,
                node,
                known,
                f"{suggest_name(node.name, known)}the columns are {list_names(known)}.",
            ),
        )


def find_name(name: str, names: Iterable[str], node: exp.Expr, reader: Reader) -> str | None:
    """The one of ``names`` that is ``name``, in any case of letters; exactly, where it is there."""
    options = list(names)
    if name in options:
        return name
    found = [option for option in options if option.casefold() == name.casefold()]
    if len(found) > 1:
        raise reader.refusal(
            "Q8",
            node,
            f"'{name}' could be {' or '.join(found)}.",
            why="the two may have different bounds.",
            fix=f'write it exactly, in double quotes: "{found[0]}".',
        )
    return found[0] if found else None


def resolve_output(
    node: exp.Expr, select: exp.Select, scope: Scope, *, alias_first: bool = False
) -> exp.Expr:
    """GROUP BY 2, ORDER BY n: a position in the SELECT list, or the name of something in it."""
    if isinstance(node, exp.Literal) and not node.is_string:
        items = select.expressions
        number = int(node.name) if node.name.isdigit() and len(node.name) <= _MOST_DIGITS else 0
        if not 1 <= number <= len(items):
            raise scope.reader.refusal(
                "Q31",
                node,
                f"there is no column {node.name[:_MOST_DIGITS]} in SELECT.",
                why="a number there stands for a column of SELECT.",
                fix=f"write a number from 1 to {len(items)}, or the expression itself.",
            )
        output: exp.Expr = items[number - 1]
        return output.unalias()
    if isinstance(node, exp.Column) and not node.table:
        aliases: dict[str, exp.Expr] = {
            i.alias: i.this for i in select.expressions if isinstance(i, exp.Alias)
        }
        alias = find_name(node.name, aliases, node, scope.reader)
        if alias is not None and (alias_first or scope.find(node) is None):
            return aliases[alias]
    return node


def check_name(identifier: exp.Expr, reader: Reader) -> str:
    """A name the analyst gives to something, refused if it could be confused."""
    name = identifier.name
    if not _NAME.fullmatch(name):
        raise reader.refusal(
            "Q34",
            identifier,
            "a name is letters, digits, spaces, _, $ and -, at most 128 of them, with a letter "
            "or _ first.",
            why="names are printed in answers, refusals and certificates.",
            fix="choose a plainer name, such as n or mean_cost.",
        )
    return name


def list_names(names: Iterable[str]) -> str:
    """Names as a sentence shows them; a long list is cut."""
    shown = sorted(set(names))
    return ", ".join(shown[:40]) + (", ..." if len(shown) > 40 else "") if shown else "none"


def suggest_name(name: str, names: Iterable[str]) -> str:
    """``did you mean 'x'? `` if something is spelled nearly like ``name``."""
    near = find_nearest(name, names)
    return "" if near is None else f"did you mean '{near}'? "
