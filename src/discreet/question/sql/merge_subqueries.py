"""A SELECT around a question: computed from its answer, so it costs nothing more.

``SELECT city, n / 2 FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city)
WHERE n > 100`` asks what ``SELECT city, COUNT(*) / 2 ... HAVING COUNT(*) > 100``
asks.  The outer SELECT is folded into the inner one; it may choose, compute,
sort and cut, but neither join nor aggregate.
"""

from __future__ import annotations

from sqlglot import exp

from discreet.question.sql.aggregates import aggregate_name
from discreet.question.sql.dialect import Reader
from discreet.question.sql.normalize import find_unread
from discreet.question.sql.scope import find_name, list_names, suggest_name

_FOLDED = {"expressions", "from_", "where", "order", "limit", "with_", "hint"}


def merge_subqueries(select: exp.Select, reader: Reader) -> exp.Select:
    """``select``, with every question in its FROM folded into it."""
    while True:
        inner = _find_question(select)
        if inner is None:
            return select
        select = _merge(select, inner, reader)


def has_aggregates(select: exp.Select) -> bool:
    """Whether a SELECT aggregates its own rows."""
    parts = [*select.expressions, select.args.get("having")]
    return select.args.get("group") is not None or any(
        aggregate_name(node) is not None and not _is_windowed(node)
        for part in parts
        if part is not None
        for node in part.walk(prune=lambda n: isinstance(n, exp.Query))
    )


def _is_windowed(node: exp.Expr) -> bool:
    """Whether it is a function OVER a window, whatever stands inside it."""
    while isinstance(node.parent, exp.Filter):
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.parent.this is node


def _find_question(select: exp.Select) -> exp.Select | None:
    """The question in FROM, if ``select`` does nothing but compute from its answer."""
    filled = _filled(select)
    if "with_" in filled and find_unread(select.args["with_"]):
        return None
    if not filled <= _FOLDED or "from_" not in filled or has_aggregates(select):
        return None
    source = select.args["from_"].this
    if isinstance(source, exp.Table):
        common = _common(select, source.name)
        if common is None or not _filled(source) <= {"this", "alias"} or find_unread(common):
            return None
        source = common.this
    while isinstance(source, exp.Subquery):
        if not _filled(source) <= {"this", "alias"}:
            return None  # a clause that folding would forget
        alias = source.args.get("alias")
        if alias is not None and not _filled(alias) <= {"this"}:
            return None
        source = source.this
    if isinstance(source, exp.Select) and (
        has_aggregates(source) or _find_question(source) is not None
    ):
        return source
    return None


def _filled(node: exp.Expr) -> set[str]:
    return {name for name, value in node.args.items() if value}


def _common(select: exp.Select, name: str) -> exp.CTE | None:
    clause = select.args.get("with_")
    expressions = clause.expressions if clause is not None else []
    return next((c for c in expressions if c.alias.casefold() == name.casefold()), None)


def _merge(outer: exp.Select, inner: exp.Select, reader: Reader) -> exp.Select:
    inner = merge_subqueries(inner, reader)
    _check_order(outer, inner, reader)
    source = outer.args["from_"].this
    values: dict[str, exp.Expr] = {
        item.alias_or_name: item.unalias() for item in inner.expressions if item.alias_or_name
    }
    names = _Substitution(values, source.alias_or_name, reader)
    result = inner.copy()
    result.set("expressions", names.outputs(outer, inner))
    where, having = outer.args.get("where"), inner.args.get("having")
    if where is not None:
        parts: list[exp.Expr] = [exp.Paren(this=names.within(where.this))]
        if having is not None:
            parts.insert(0, exp.Paren(this=having.this.copy()))
        result.set("having", exp.Having(this=_all(parts)))
    aliases = {item.alias for item in outer.expressions if isinstance(item, exp.Alias)}
    if outer.args.get("order") is not None:
        result.set("order", names.within(outer.args["order"], aliases))
    if outer.args.get("limit") is not None:
        result.set("limit", outer.args["limit"].copy())
    if outer.args.get("hint") is not None:
        if inner.args.get("hint") is not None:
            raise _twice(outer, reader)
        result.set("hint", outer.args["hint"].copy())
    result.set("with_", _with(outer, source, inner))
    return result


def _all(parts: list[exp.Expr]) -> exp.Expr:
    return parts[0] if len(parts) == 1 else exp.And(this=parts[0], expression=parts[1])


def _with(outer: exp.Select, source: exp.Expr, inner: exp.Select) -> exp.With | None:
    clauses = [s.args.get("with_") for s in (outer, inner)]
    read = source.name if isinstance(source, exp.Table) else None
    commons = [
        c.copy()
        for clause in clauses
        if clause is not None
        for c in clause.expressions
        if read is None or c.alias.casefold() != read.casefold()
    ]
    return exp.With(expressions=commons) if commons else None


def _check_order(outer: exp.Select, inner: exp.Select, reader: Reader) -> None:
    later = any(outer.args.get(clause) is not None for clause in ("where", "order", "limit"))
    if inner.args.get("limit") is not None and later:
        raise reader.refusal(
            "Q16",
            inner.args["limit"],
            "LIMIT cannot stand below another WHERE, ORDER BY or LIMIT.",
            why="nothing for a person in the data: it is not built.",
            fix="put one LIMIT at the end of the whole question.",
        )


def _twice(outer: exp.Select, reader: Reader) -> Exception:
    return reader.refusal(
        "Q28",
        outer.args["hint"],
        "the privacy clause is given twice.",
        why="the whole question is one release with one price.",
        fix="keep one WITH DIFFERENTIAL_PRIVACY OPTIONS(...).",
    )


class _Substitution:
    """Columns of the inner answer, replaced by what they were computed from."""

    def __init__(self, values: dict[str, exp.Expr], alias: str, reader: Reader) -> None:
        self._values = values
        self._alias = alias
        self._reader = reader

    def outputs(self, outer: exp.Select, inner: exp.Select) -> list[exp.Expr]:
        found: list[exp.Expr] = []
        for item in outer.expressions:
            if isinstance(item, exp.Star) or isinstance(item.this, exp.Star):
                found += [i.copy() for i in inner.expressions]
                continue
            value = self.within(item)
            named = isinstance(item, exp.Column)
            found.append(exp.alias_(value, item.name, quoted=True) if named else value)
        return found

    def within(self, node: exp.Expr, kept: set[str] = frozenset()) -> exp.Expr:  # type: ignore[assignment]
        """A copy of ``node`` over the inner SELECT; names in ``kept`` stay what they are."""
        copy = node.copy()
        if isinstance(copy, exp.Column):
            return self._value(copy)
        for column in list(copy.find_all(exp.Column)):
            if column.table or find_name(column.name, kept, column, self._reader) is None:
                column.replace(exp.Paren(this=self._value(column)))
        return copy

    def _value(self, column: exp.Column) -> exp.Expr:
        wrong = column.table and column.table.casefold() != self._alias.casefold()
        name = None if wrong else find_name(column.name, self._values, column, self._reader)
        if name is None:
            raise self._reader.refusal(
                "Q7",
                column,
                f"there is no column '{column.name}' in the sub-query.",
                why="only what is released can be computed with.",
                fix=f"{suggest_name(column.name, self._values)}its columns are "
                f"{list_names(self._values)}.",
            )
        return self._values[name].copy()
