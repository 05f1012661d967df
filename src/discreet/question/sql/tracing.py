"""Which released number each cell of a statement's result is, where it is one.

Read off the SQL around the questions: a column passed on through SELECTs, joins, windows beside
it and UNION ALL is still the number that was released, and the same number times a constant plus
a constant is as far off as the constant says.  To know the row as well, the row's number in its
answer is passed on beside it, in extra columns at the end.  What is grouped, made distinct or
computed from several numbers has no origin here, and so no margin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from discreet.exact.records import dataclass
from discreet.question.sql import released
from discreet.question.sql.dialect import Reader
from discreet.question.statement import (
    ROW_NUMBER,
    Carried,
    Trace,
    answer_name,
    interval_name,
)


class _Lost(Exception):
    """The columns of something cannot be told from the SQL alone."""


@dataclass(frozen=True, slots=True)
class _Number:
    """A released number, times and plus constants; and the name of its row."""

    question: int
    column: str
    row: str
    scale: Fraction = Fraction(1)
    shift: Fraction = Fraction(0)

    def times(self, factor: Fraction) -> _Number:
        return replace(self, scale=self.scale * factor, shift=self.shift * factor)

    def plus(self, term: Fraction) -> _Number:
        return replace(self, shift=self.shift + term)


_Numbers = tuple[_Number, ...]


@dataclass(frozen=True, slots=True)
class _Query:
    """A query with extra columns: the names and origins of its own, and the names of the extra."""

    tree: exp.Expr
    names: tuple[str | None, ...]
    origins: tuple[_Numbers, ...]
    rows: tuple[str, ...] = ()
    certain: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class _Item:
    """A thing in FROM, by its alias."""

    alias: str
    names: tuple[str | None, ...]
    origins: tuple[_Numbers, ...]
    rows: tuple[str, ...]
    certain: tuple[bool, ...]


def trace(tree: exp.Expr, known: Mapping[str, tuple[str, ...]], reader: Reader) -> Trace | None:
    """The SQL with the numbers of rows beside it; None if no column has an origin.

    ``known`` has the columns of each table that can be read.
    """
    try:
        found = _Tracer(known).query(tree, {})
    except _Lost:
        return None
    if not any(found.origins) and not any(found.certain):
        return None
    place = {name: index for index, name in enumerate(found.rows)}
    carried = tuple(
        tuple(Carried(n.question, n.column, n.scale, n.shift, place[n.row]) for n in numbers)
        for numbers in found.origins
    )
    return Trace(released.write_above(found.tree, reader), carried, len(found.rows), found.certain)


class _Tracer:
    def __init__(self, known: Mapping[str, tuple[str, ...]]) -> None:
        self._known = known
        self._answers = {
            answer_name(number): number
            for number in range(sum(name.startswith("question.") for name in known))
        }
        self._answers |= {interval_name(number): number for number in self._answers.values()}
        self._count = 0

    def _new_row(self) -> str:
        self._count += 1
        return f"row.{self._count}"

    def query(self, tree: exp.Expr, commons: Mapping[str, _Query]) -> _Query:
        """A query with its extra columns; as it is, where rows are not kept apart."""
        clause = tree.args.get("with_")
        if clause is None:
            return self._body(tree, commons)
        inside, ctes = dict(commons), []
        for cte in clause.expressions:
            if cte.args["alias"].args.get("columns"):
                raise _Lost
            found = self.query(cte.this, inside)
            inside[cte.alias] = found
            ctes.append(exp.CTE(this=found.tree, alias=cte.args["alias"].copy()))
        body = tree.copy()
        body.set("with_", None)
        found = self._body(body, inside)
        found.tree.set("with_", exp.With(expressions=ctes))
        return found

    def _body(self, tree: exp.Expr, commons: Mapping[str, _Query]) -> _Query:
        if isinstance(tree, exp.Union):
            return self._union(tree, commons)
        if not isinstance(tree, exp.Select):
            raise _Lost
        items = self._items(tree, commons)
        if tree.args.get("distinct") is not None or released.aggregates(tree):
            return self._opaque(tree, items)
        return self._select(tree, items)

    # --- SELECT --------------------------------------------------------------------------------

    def _items(
        self, select: exp.Select, commons: Mapping[str, _Query]
    ) -> list[tuple[exp.Expr, _Item]]:
        """Each thing in FROM, rewritten, and what is known of its columns."""
        start = select.args.get("from_")
        found = []
        for holder in [*([start] if start else ()), *(select.args.get("joins") or ())]:
            join = holder.args
            if join.get("method") or str(join.get("kind") or "").upper() in ("SEMI", "ANTI"):
                raise _Lost
            found.append(self._item(holder.this, commons))
        return found

    def _item(self, node: exp.Expr, commons: Mapping[str, _Query]) -> tuple[exp.Expr, _Item]:
        alias = node.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            raise _Lost
        if isinstance(node, exp.Table):
            name = alias.name if alias is not None else node.name
            if node.name in commons:
                common = commons[node.name]
                return node.copy(), _Item(
                    name, common.names, common.origins, common.rows, common.certain
                )
            names = self._known.get(node.name)
            if names is None:
                raise _Lost
            number = self._answers.get(node.name)
            if number is None:
                certain = (True,) * len(names)
                return node.copy(), _Item(name, names, ((),) * len(names), (), certain)
            own = self._known[answer_name(number)]
            origins = tuple(
                (_Number(number, column, ROW_NUMBER),) if column in own else () for column in names
            )
            ends = tuple(column not in own for column in names)  # an end has no margin itself
            return node.copy(), _Item(name, names, origins, (ROW_NUMBER,), ends)
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
            if alias is None:
                raise _Lost
            query = self.query(node.this, commons)
            changed = node.copy()
            changed.set("this", query.tree)
            return changed, _Item(alias.name, query.names, query.origins, query.rows, query.certain)
        raise _Lost

    def _opaque(self, select: exp.Select, items: list[tuple[exp.Expr, _Item]]) -> _Query:
        """A query whose rows are made of several: its columns are numbers of its own."""
        names = []
        for item in select.expressions:
            if isinstance(item, exp.Star) or isinstance(item.this, exp.Star):
                raise _Lost
            names.append(_name(item))
        tree = _with_sources(select, items)
        nothing = len(names)
        return _Query(tree, tuple(names), ((),) * nothing, certain=(False,) * nothing)

    def _select(self, select: exp.Select, items: list[tuple[exp.Expr, _Item]]) -> _Query:
        sources = [item for _, item in items]
        expressions, names, origins, certain = [], [], [], []
        renamed: dict[tuple[str, str], str] = {}

        def keep(numbers: _Numbers, item: _Item) -> _Numbers:
            for number in numbers:
                renamed.setdefault((item.alias, number.row), "")
                if not renamed[item.alias, number.row]:
                    renamed[item.alias, number.row] = self._new_row()
            return tuple(replace(n, row=renamed[item.alias, n.row]) for n in numbers)

        merged = any(join.args.get("using") for join in select.args.get("joins") or ())
        for expression in select.expressions:
            for part in _expand(expression, sources, merged=merged):
                expressions.append(part)
                names.append(_name(part))
                found = _origin(part, sources)
                origins.append(() if found is None else keep(*found))
                certain.append(_is_certain(part, sources))
        for (alias, row), name in renamed.items():
            column = exp.Column(
                this=exp.to_identifier(row, quoted=True),
                table=exp.to_identifier(alias, quoted=True),
            )
            expressions.append(exp.Alias(this=column, alias=exp.to_identifier(name, quoted=True)))
        tree = _with_sources(select, items)
        tree.set("expressions", expressions)
        rows = tuple(renamed.values())
        return _Query(tree, tuple(names), tuple(origins), rows, tuple(certain))

    # --- UNION ALL -----------------------------------------------------------------------------

    def _union(self, tree: exp.Union, commons: Mapping[str, _Query]) -> _Query:
        leaves = _leaves(tree)
        if leaves is None:
            names, origins = self._first_names(tree, commons)
            return _Query(tree.copy(), names, origins, certain=(False,) * len(names))
        parts = [self._body(leaf, commons) for leaf in leaves]
        rows = tuple(row for part in parts for row in part.rows)
        for part in parts:
            if len(part.names) != len(parts[0].names):
                raise _Lost
            own = part.tree.expressions[: len(part.names)]
            held = dict(zip(part.rows, part.tree.expressions[len(own) :], strict=True))
            extra = [
                held.get(row)
                or exp.Alias(this=exp.Null(), alias=exp.to_identifier(row, quoted=True))
                for row in rows
            ]
            part.tree.set("expressions", [*own, *extra])
        together = parts[0].tree
        for part in parts[1:]:
            together = exp.Union(this=together, expression=part.tree, distinct=False)
        for name in ("order", "limit", "offset"):
            if tree.args.get(name) is not None:
                together.set(name, tree.args[name].copy())
        columns = zip(*(part.origins for part in parts), strict=True)
        origins = tuple(tuple(n for numbers in column for n in numbers) for column in columns)
        certain = tuple(map(all, zip(*(part.certain for part in parts), strict=True)))
        return _Query(together, parts[0].names, origins, rows, certain)

    def _first_names(
        self, tree: exp.Expr, commons: Mapping[str, _Query]
    ) -> tuple[tuple[str | None, ...], tuple[_Numbers, ...]]:
        while isinstance(tree, exp.SetOperation | exp.Subquery):
            tree = tree.this
        names = self._body(tree, commons).names
        return names, ((),) * len(names)


def _leaves(tree: exp.Union) -> list[exp.Select] | None:
    """The SELECTs of a chain of UNION ALL; None if it is another kind of chain."""
    pending: list[exp.Expr] = [tree]
    found: list[exp.Select] = []
    while pending:
        node = pending.pop()
        if isinstance(node, exp.Union) and not node.args.get("distinct"):
            ended = any(node.args.get(name) for name in ("order", "limit", "offset", "with_"))
            if node.args.get("by_name") or (ended and node is not tree):
                return None
            pending += [node.expression, node.this]
        elif isinstance(node, exp.Select) and not any(
            node.args.get(name) for name in ("order", "limit", "offset", "with_")
        ):
            found.append(node)
        else:
            return None
    return found


def _with_sources(select: exp.Select, items: list[tuple[exp.Expr, _Item]]) -> exp.Select:
    tree = select.copy()
    holders = [*([tree.args["from_"]] if tree.args.get("from_") else ())]
    holders += tree.args.get("joins") or ()
    for holder, (source, _) in zip(holders, items, strict=True):
        holder.set("this", source)
    return tree


def _name(item: exp.Expr) -> str | None:
    return item.alias_or_name or None if isinstance(item, exp.Alias | exp.Column) else None


def _expand(item: exp.Expr, sources: list[_Item], *, merged: bool) -> list[exp.Expr]:
    """An item of SELECT; a star as all the columns it stands for."""
    star = item if isinstance(item, exp.Star) else item.this
    if not isinstance(star, exp.Star):
        return [item.copy()]
    chosen = sources
    if isinstance(item, exp.Column):
        chosen = [s for s in sources if s.alias.casefold() == item.table.casefold()]
    if star.args.get("except_") or (merged and isinstance(item, exp.Star)) or not chosen:
        raise _Lost
    found: list[exp.Expr] = []
    for source in chosen:
        for name in source.names:
            if name is None:
                raise _Lost
            found.append(
                exp.Column(
                    this=exp.to_identifier(name, quoted=True),
                    table=exp.to_identifier(source.alias, quoted=True),
                )
            )
    return found


def _origin(node: exp.Expr, sources: list[_Item]) -> tuple[_Numbers, _Item] | None:
    """The released number that an expression is, times a constant and plus one."""
    match node:
        case exp.Alias() | exp.Paren():
            return _origin(node.this, sources)
        case exp.Column():
            return _find(node, sources)
        case exp.Neg():
            return _change(node.this, sources, Fraction(-1), Fraction(0))
        case exp.Add() | exp.Sub():
            left, right = _constant(node.this), _constant(node.expression)
            sign = Fraction(-1 if isinstance(node, exp.Sub) else 1)
            if right is not None and left is None:
                return _change(node.this, sources, Fraction(1), sign * right)
            if left is not None and right is None:
                return _change(node.expression, sources, sign, left)
        case exp.Mul() | exp.Div():
            left, right = _constant(node.this), _constant(node.expression)
            if right and left is None:
                factor = 1 / right if isinstance(node, exp.Div) else right
                return _change(node.this, sources, factor, Fraction(0))
            if left and right is None and isinstance(node, exp.Mul):
                return _change(node.expression, sources, left, Fraction(0))
    return None


def _change(
    node: exp.Expr, sources: list[_Item], factor: Fraction, term: Fraction
) -> tuple[_Numbers, _Item] | None:
    found = _origin(node, sources)
    if found is None:
        return None
    numbers, item = found
    return tuple(number.times(factor).plus(term) for number in numbers), item


def _is_certain(node: exp.Expr, sources: list[_Item]) -> bool:
    """Whether no noise is in an expression: made of constants, public columns and levels."""
    if any(isinstance(part, exp.Query | exp.Window) for part in node.walk()):
        return False

    def find(column: exp.Column) -> list[bool]:
        return [
            certain
            for source in sources
            if not column.table or column.table.casefold() == source.alias.casefold()
            for name, certain in zip(source.names, source.certain, strict=True)
            if name is not None and name.casefold() == column.name.casefold()
        ]

    return all(find(column) == [True] for column in node.find_all(exp.Column))


def _find(node: exp.Column, sources: list[_Item]) -> tuple[_Numbers, _Item] | None:
    found = [
        (numbers, source)
        for source in sources
        if not node.table or node.table.casefold() == source.alias.casefold()
        for name, numbers in zip(source.names, source.origins, strict=True)
        if name is not None and name.casefold() == node.name.casefold()
    ]
    return found[0] if len(found) == 1 and found[0][0] else None


def _constant(node: exp.Expr) -> Fraction | None:
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Neg):
        inner = _constant(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Literal) and not node.is_string:
        try:
            return Fraction(node.name)
        except ValueError:
            return None
    return None
