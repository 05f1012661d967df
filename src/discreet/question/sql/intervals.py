"""The ends of intervals that stand above the question whose numbers they are of, moved into it.

``DP_INTERVAL_LOW(n)`` in a SELECT over a question means the interval of the question's own ``n``:
it becomes one more output of the question, and a column of it where it stood.  Only where a name is
just handed up: of what is computed on the way there is no interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from discreet.question.sql.aggregates import has_aggregates

ENDS = ("DP_INTERVAL_LOW", "DP_INTERVAL_HIGH")
_CLAUSES = ("where", "having", "qualify", "order")


def is_end(node: exp.Expr) -> bool:
    """Whether it is an end of an interval."""
    bare = isinstance(node, exp.Anonymous) and not isinstance(node.this, exp.Identifier)
    return bare and node.name.upper() in ENDS


def has_ends(tree: exp.Expr) -> bool:
    """Whether an end of an interval is asked for anywhere."""
    return any(is_end(node) for node in tree.find_all(exp.Anonymous))


class EndsPusher:
    """Moves the ends of a statement down, select by select, from the outermost inwards.

    ``asks`` says of a query whether it is a question: True, False if it reads answers, else None.
    """

    def __init__(self, tree: exp.Expr, asks: Callable[[exp.Expr, Any], bool | None]) -> None:
        self._asks = asks
        self._stars = any(_has_star(select) for select in tree.find_all(exp.Select))

    def push(self, query: exp.Expr, names: Any, tables: Mapping[str, exp.CTE], see: Any) -> None:
        """Do so in ``query``; ``see`` gives the names that its WITH adds."""
        while isinstance(query, exp.Subquery):
            query = query.this
        inside = {**names, **see(query, names)}
        clause = query.args.get("with_")
        commons = list(clause.expressions) if clause is not None else []
        known = {**tables, **{cte.alias.casefold(): cte for cte in commons}}
        if isinstance(query, exp.SetOperation):
            for side in (query.this, query.expression):
                self.push(side, inside, known, see)
        elif isinstance(query, exp.Select):
            if self._asks(query, inside) is False and not _has_star(query):
                self._lower(query, inside, known)
            for source in _list_sources(query):
                if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Query):
                    self.push(source.this, inside, known, see)
        for cte in reversed(commons):  # each may read those before it
            self.push(cte.this, inside, known, see)

    def _lower(self, select: exp.Select, names: Any, tables: Mapping[str, exp.CTE]) -> None:
        parts = [*select.expressions, *(select.args.get(name) for name in _CLAUSES)]
        for part in parts:
            found = [] if part is None else list(part.walk(prune=_is_query))
            for node in found:
                if not is_end(node) or len(node.expressions) != 1:
                    continue
                column = node.expressions[0]
                if isinstance(column, exp.Column):
                    self._move(node, column, select, names, tables)

    def _move(
        self,
        node: exp.Expr,
        column: exp.Column,
        select: exp.Select,
        names: Any,
        tables: Mapping[str, exp.CTE],
    ) -> None:
        inner = self._find_inner(select, column.table, tables)
        if inner is None:
            return
        added = self._add_end(inner, column.name, node.name.upper(), names)
        if added is None:
            return
        table = column.args.get("table")
        named = exp.to_identifier(added, quoted=True)
        node.replace(exp.Column(this=named, table=None if table is None else table.copy()))

    def _find_inner(
        self, select: exp.Select, table: str, tables: Mapping[str, exp.CTE]
    ) -> exp.Select | None:
        """The SELECT that a column of ``table`` comes from, if that is certain."""
        sources = _list_sources(select)
        if table:
            wanted = table.casefold()
            sources = [one for one in sources if one.alias_or_name.casefold() == wanted]
        if len(sources) != 1:
            return None
        (source,) = sources
        found: exp.Expr = source
        if isinstance(source, exp.Table) and not source.args.get("db"):
            cte = tables.get(source.name.casefold())
            if cte is None or self._stars:  # whoever reads it with a star would get one more
                return None
            found = cte
        alias = found.args.get("alias")
        if isinstance(alias, exp.TableAlias) and alias.args.get("columns"):
            return None
        while isinstance(found, exp.Subquery | exp.CTE):
            found = found.this
        return found if isinstance(found, exp.Select) else None

    def _add_end(self, inner: exp.Select, name: str, end: str, names: Any) -> str | None:
        """The output of ``inner`` that is the end of its ``name``, which is added to it."""
        if inner.args.get("distinct") or _has_star(inner):
            return None
        outputs = [one for one in inner.expressions if _same(one.alias_or_name, name)]
        asks = self._asks(inner, names)
        if len(outputs) != 1 or asks is None:
            return None
        (output,) = outputs
        if asks and isinstance(output, exp.Alias):
            of: exp.Expr = exp.Column(this=output.args["alias"].copy())
        elif not asks and not inner.args.get("group") and not has_aggregates(inner):
            of = output.unalias().copy()
        else:
            return None
        if not isinstance(of, exp.Column):
            return None
        call = exp.Anonymous(this=end, expressions=[of])
        for one in inner.expressions:
            if isinstance(one, exp.Alias) and one.this == call:
                return str(one.alias)
        added = f"{name}_{end.rpartition('_')[2].lower()}"
        while any(_same(one.alias_or_name, added) for one in inner.expressions):
            added += "_"
        alias = exp.to_identifier(added, quoted=True)
        inner.append("expressions", exp.Alias(this=call, alias=alias))
        return added


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query)


def _same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()


def _has_star(select: exp.Expr) -> bool:
    return any(
        isinstance(one, exp.Star)
        or (isinstance(one, exp.Column) and isinstance(one.this, exp.Star))
        for one in select.expressions
    )


def _list_sources(select: exp.Select) -> list[exp.Expr]:
    start = select.args.get("from_")
    joins = select.args.get("joins") or ()
    return [*([start.this] if start is not None else ()), *(join.this for join in joins)]


__all__ = ["ENDS", "EndsPusher", "has_ends", "is_end"]
