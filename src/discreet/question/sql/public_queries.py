"""Sub-queries of public tables alone: computed when a question is read, and constants from then on.

Nobody is in a public table, so what is computed from it tells nothing of anybody and costs
nothing.  The constants stand in the question as it is understood: it has the price of what they
say, and is another question once the table says something else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.exact.records import dataclass
from discreet.question.domain import Domain, Kind, Value
from discreet.question.question import Question
from discreet.question.sql import released
from discreet.question.sql.dialect import Reader, check_size, write_text
from discreet.question.sql.normalize import normalize
from discreet.question.sql.scope import Scope
from discreet.question.sql.sources import Frame, check_count
from discreet.question.sql.statements import Reads, StatementReader
from discreet.question.statement import public_name

MOST_NODES = 5_000
"""How large a sub-query of public tables may be once the names in it are written out."""

MOST_ROWS = 1_000
"""How many rows of a sub-query of public tables may stand in a question as constants."""

MOST_COMPUTED = 8
"""How many sub-queries of public tables are computed for one question."""

_MOST_REMARKS = 3
_LONGEST = 120


@dataclass(frozen=True, slots=True)
class Computed:
    """A question whose sub-queries of public tables are constants, and what is said of them."""

    tree: exp.Expr
    remarks: tuple[str, ...]


def compute_public(tree: exp.Expr, frame: Frame) -> Computed | None:
    """``tree`` with constants for what its public sub-queries say; None if it has none."""
    if frame.reader.catalogue.compute is None:
        return None  # a schema alone says nothing of what its tables hold
    copy = tree.copy()
    made = _Computer(frame)
    changed = made.inline_commons(copy)
    for part in list(_find_queries(copy)):
        changed |= made.compute(part)
    if not changed:
        return None
    check_size(copy)  # as what is typed: constants are as long, whoever writes them
    return Computed(copy, tuple(made.remarks[:_MOST_REMARKS]))


def _find_queries(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Every sub-query, the outer ones first: what is computed whole has no parts to compute."""
    for part in tree.walk():
        within = isinstance(part, exp.Subquery | exp.Exists) or (
            isinstance(part, exp.In) and part.args.get("query") is not None
        )
        if within and part is not tree:
            yield part


class _Computer:
    """What is computed for one question."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._reader = frame.reader
        self.remarks: list[str] = []
        self._computed = 0

    # --- common table expressions ------------------------------------------------------------

    def inline_commons(self, tree: exp.Expr) -> bool:
        """Every public WITH where it is read."""
        known = {
            name.casefold(): (common.query, _list_columns(common.query.parent))
            for name, common in self._frame.commons.items()
            if self._is_public(common.query)
        }
        clause, changed = tree.args.get("with_"), False
        for cte in list(clause.expressions) if clause is not None else ():
            self._inline(cte.this, known)
            if self._is_public(cte.this):
                known[cte.alias.casefold()] = cte.this, _list_columns(cte)
                cte.pop()
                changed = True
        if clause is not None and not clause.expressions:
            tree.set("with_", None)
        return self._inline(tree, known) or changed

    def _inline(self, tree: exp.Expr, known: dict[str, tuple[exp.Expr, list[exp.Expr]]]) -> bool:
        found = False
        for table in list(tree.find_all(exp.Table)):
            name = table.name.casefold()
            if name not in known or not isinstance(table.this, exp.Identifier):
                continue
            query, columns = known[name]
            for own, common in self._frame.commons.items():
                if own.casefold() == name:
                    common.used.append(True)
            alias = exp.TableAlias(
                this=exp.to_identifier(table.alias_or_name, quoted=True),
                columns=[column.copy() for column in columns],
            )
            joins = table.args.get("joins")
            table.replace(exp.Subquery(this=query.copy(), alias=alias, joins=joins))
            found = True
        if found:  # each twice the one before is twice as long, every time
            check_count(sum(1 for _ in tree.find_all(exp.Table)))
        return found

    # --- sub-queries -------------------------------------------------------------------------

    def compute(self, part: exp.Expr) -> bool:
        """Constants in the place of one sub-query, if it is public and can be computed."""
        query = part.args["query"].this if isinstance(part, exp.In) else part.this
        inside = part.find_ancestor(exp.Query) is not None
        if not isinstance(query, exp.Query) or not inside or not self._is_public(query):
            return False
        self._computed += 1
        if self._computed > MOST_COMPUTED:  # reading a question costs nothing, and must stay so
            return False
        try:
            names, rows = self._run(query)
        except QuestionRefusal:
            return False  # it names the row outside, or cannot be computed: it stays as it is
        if len(rows) > MOST_ROWS:
            return False
        if isinstance(part.parent, exp.From | exp.Join):
            return _list_rows(part, names, rows)
        return self._replace(part, query, rows)

    def _replace(self, part: exp.Expr, query: exp.Expr, rows: list[tuple[Any, ...]]) -> bool:
        if isinstance(part, exp.Exists):
            part.replace(exp.Boolean(this=bool(rows)))
            return True
        if any(len(row) != 1 for row in rows):
            return False
        if isinstance(part, exp.In):
            return _list_members(part, [row[0] for row in rows])
        if len(rows) > 1:
            return False
        value = rows[0][0] if rows else None
        constant = write_value(value)
        if constant is None:
            return False
        part.replace(constant)
        text = write_text(query)
        shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        said = "NULL" if value is None else str(value)
        self.remarks.append(f"({shown}) is {said}: of public tables, as they are now.")
        return True

    def _is_public(self, query: exp.Expr) -> bool:
        """Whether all that it reads is declared, and public; a name of WITH is inlined before."""
        tables = {t.name.casefold() for t in self._reader.schema.tables.values() if t.public}
        own = {cte.alias.casefold() for cte in query.find_all(exp.CTE)}
        read = {table.name.casefold() for table in query.find_all(exp.Table)}
        if not read <= tables | own or _count_nodes(query) > MOST_NODES:
            return False
        reader = StatementReader(self._reader, _refuse_question)
        try:
            return reader.reads(query) is Reads.PUBLIC
        except QuestionRefusal:
            return False

    def _run(self, query: exp.Expr) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        reader = self._reader
        compute = reader.catalogue.compute
        if compute is None:
            raise TypeError("a schema alone computes nothing")
        made = StatementReader(reader, _refuse_question)
        tree = made.read_public(query.copy())
        known = {
            public_name(name): tuple(c.name for c in reader.schema.tables[name].columns)
            for name in made.tables
        }
        released.check_width(tree, known)
        released.check_names(tree, known, reader)
        return compute(released.write_above(tree, reader), tuple(made.tables))


def list_left_by_table(
    select: exp.Select, scope: Scope, known: Mapping[str, Domain], frame: Frame
) -> dict[str, tuple[Value, ...]]:
    """What conditions on other columns of a public table, first in FROM, leave of its keys.

    ``known`` are its columns, by their names in ``scope``.  Its rows are public, and so is which
    of them a condition on them alone keeps.
    """
    reader, start = frame.reader, select.args["from_"].this
    where = select.args.get("where")
    if reader.catalogue.compute is None or where is None or not isinstance(start, exp.Table):
        return {}
    own = [part for part in _list_parts(where.this) if _is_about(part, known, scope, reader)]
    group = select.args.get("group")
    shown = [*select.expressions, *(group.expressions if group is not None else ())]
    used = {part.name.casefold() for item in shown for part in item.find_all(exp.Column)}
    keys = [
        name
        for name, domain in known.items()
        if name.partition(".")[2].casefold() in used
        and domain.kind in (Kind.TEXT, Kind.INTEGER, Kind.DATE)
        and domain.list_values() is not None
    ]
    if not own or not keys:
        return {}
    query = exp.Select(
        expressions=[exp.column(name.partition(".")[2], quoted=True) for name in keys],
        from_=exp.From(this=exp.Table(this=start.this.copy())),
        where=exp.Where(this=exp.and_(*(part.copy() for part in own), copy=False)),
    )
    for part in query.find_all(exp.Column):
        part.set("table", None)
    try:
        _, rows = _Computer(frame)._run(query)
    except QuestionRefusal:
        return {}
    return _keep_found(keys, rows, known)


def _keep_found(
    keys: Sequence[str], rows: Sequence[tuple[Any, ...]], known: Mapping[str, Domain]
) -> dict[str, tuple[Value, ...]]:
    found = {}
    for place, name in enumerate(keys):
        held = {row[place] for row in rows}
        values = known[name].list_values() or ()
        left = tuple(value for value in values if value in held)
        if None not in held and left != values:
            found[name] = left
    return found


def _list_parts(condition: exp.Expr) -> list[exp.Expr]:
    return list(condition.flatten()) if isinstance(condition, exp.And) else [condition]


def _is_about(part: exp.Expr, known: Mapping[str, Domain], scope: Scope, reader: Reader) -> bool:
    """Whether a condition is about such columns, and nothing else."""
    if part.find(exp.Query) is not None:
        return False
    named = {column.name for column in normalize(part.copy(), scope, reader).find_all(exp.Column)}
    return bool(named) and named <= known.keys()


def _count_nodes(query: exp.Expr) -> int:
    return sum(1 for _ in query.walk())


def _refuse_question(select: exp.Select, frame: Frame) -> Question:
    del select, frame
    raise TypeError("a public sub-query asks no question")


def _list_columns(cte: exp.Expr | None) -> list[exp.Expr]:
    alias = None if cte is None else cte.args.get("alias")
    return list(alias.args.get("columns") or []) if isinstance(alias, exp.TableAlias) else []


def _list_rows(part: exp.Expr, names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> bool:
    """A sub-query in FROM is the list of its rows."""
    alias = part.args.get("alias")
    nothing = (None,) * len(names)  # equal to nothing: a list of no rows cannot be written
    written = [[write_value(value) for value in row] for row in rows or [nothing]]
    if alias is None or any(value is None for row in written for value in row):
        return False
    columns = list(alias.args.get("columns") or [])
    columns += [exp.to_identifier(name, quoted=True) for name in names[len(columns) :]]
    part.replace(
        exp.Values(
            expressions=[exp.Tuple(expressions=row) for row in written],
            alias=exp.TableAlias(this=alias.this.copy(), columns=columns),
        )
    )
    return True


def _list_members(part: exp.In, values: list[Any]) -> bool:
    """``x IN (SELECT ...)`` with its list; NULL equals nothing, and is left out of it."""
    written = [write_value(value) for value in values if value is not None]
    if any(value is None for value in written):
        return False
    if written:
        part.replace(exp.In(this=part.this.copy(), expressions=written))
    else:
        part.replace(exp.Boolean(this=False))
    return True


def write_value(value: Any) -> exp.Expr | None:
    """A value as an analyst would type it; None if it cannot be typed."""
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int() | float() | Decimal():
            number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
            if not number.is_finite():
                return None
            literal = exp.Literal.number(format(abs(number), "f"))
            return exp.Neg(this=literal) if number < 0 else literal
        case str():
            return exp.Literal.string(value)
        case datetime():
            return _cast(value.isoformat(" "), exp.DType.TIMESTAMP)
        case date():
            return _cast(value.isoformat(), exp.DType.DATE)
    return None


def _cast(text: str, kind: exp.DType) -> exp.Cast:
    return exp.Cast(this=exp.Literal.string(text), to=exp.DataType(this=kind, nested=False))


__all__ = ["Computed", "compute_public", "write_value"]
