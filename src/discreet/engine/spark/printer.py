"""Statements in Spark's words: every node and every type is known, or the statement is refused.

The tree is the one that is written for DuckDB (:mod:`discreet.question.functions.nodes`).  Types
are inferred on the way, because the same word means different things for different types: a cast
of a double rounds there and cuts here.  A column of declared texts is held as the place of each
among them.  Whatever has no line here has no words in Spark, and is refused before anything is
paid.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from discreet.errors import DataRefusal
from discreet.exact.records import dataclass
from discreet.question.domain import Kind
from discreet.question.functions.nodes import Node

BOOLEAN, INT, BIGINT, WIDE = "BOOLEAN", "INT", "BIGINT", "DECIMAL(38,0)"
DOUBLE, TEXT, DATE, TIMESTAMP = "DOUBLE", "STRING", "DATE", "TIMESTAMP_NTZ"
NULL, INTERVAL = "VOID", "INTERVAL"

TYPES = {
    Kind.BOOLEAN: BOOLEAN,
    Kind.INTEGER: BIGINT,
    Kind.DECIMAL: DOUBLE,
    Kind.TEXT: TEXT,
    Kind.DATE: DATE,
    Kind.TIMESTAMP: TIMESTAMP,
}
"""What each kind is in Spark."""

_TO = {
    exp.DType.BOOLEAN: BOOLEAN,
    exp.DType.INT: INT,
    exp.DType.BIGINT: BIGINT,
    exp.DType.INT128: WIDE,
    exp.DType.DOUBLE: DOUBLE,
    exp.DType.VARCHAR: TEXT,
    exp.DType.TEXT: TEXT,
    exp.DType.DATE: DATE,
    exp.DType.TIMESTAMP: TIMESTAMP,
}
_WHOLE = (INT, BIGINT, WIDE)
_NUMBERS = (BOOLEAN, INT, BIGINT, WIDE, DOUBLE)  # each holds those before it
_LIMB = 2**62
_HALF = 31  # bits of a 64-bit number that are summed apart from the others
_TWO_63 = "9223372036854775808D"
_FEW = 16  # declared values that are looked for one after the other


@dataclass(frozen=True, slots=True)
class Held:
    """How a value is held: its type, and of a place among declared texts these texts."""

    type: str
    codes: tuple[str, ...] | None = None


Scope = Mapping[str | None, Mapping[str, Held]]
"""The columns of each table that a SELECT names; those without a table's name under None."""

Printed = tuple[str, Held]


class NoWordsError(ValueError):
    """A node, a function or a type that has no line here; its text is a word of ours."""


def refuse_words(what: str) -> DataRefusal:
    """The refusal of what Spark has no words for that mean the same."""
    return DataRefusal(
        "D2",
        f"Spark does not compute {what} as the other engines do, so it is not asked to.",
        why="an answer must be the same integers wherever it is computed, or a person's noise "
        "would be added to another number than was accounted for.",
        fix='ask it of the engine in this process (leave out kind = "spark"); tables that Spark '
        "has prepared can be read there too.",
    )


def quote(name: str) -> str:
    """A name of Spark's."""
    return "`" + name.replace("`", "``") + "`"


def text(value: str) -> str:
    r"""A constant: a backslash begins an escape, and two quotation marks are none.

    >>> print(text("it's a \\ here"))
    'it\'s a \\ here'
    """
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\u0000") + "'"


def find_code(value: str, codes: Sequence[str]) -> str:
    """The place of a text among the declared ones, from 0; NULL if it is none of them.

    Many are divided by a checksum first, so that each text is compared with few.
    """
    if len(codes) <= _FEW:
        listed = ", ".join(map(text, codes))
        return f"(NULLIF(ARRAY_POSITION(ARRAY({listed}), {value}), 0L) - 1L)"
    size = len(codes) // 2 + 1
    parts: list[list[int]] = [[] for _ in range(size)]
    for place, code in enumerate(codes):
        parts[zlib.crc32(code.encode()) % size].append(place)
    texts = ", ".join(f"ARRAY({', '.join(text(codes[i]) for i in p)})" for p in parts)
    # An empty ARRAY() is one of VOID: typed by what all others are.
    texts = texts.replace("ARRAY()", "CAST(ARRAY() AS ARRAY<STRING>)")
    places = ", ".join(f"ARRAY({', '.join(f'{i}L' for i in p)})" for p in parts)
    places = places.replace("ARRAY()", "CAST(ARRAY() AS ARRAY<BIGINT>)")
    part = f"CAST(CRC32(CAST({value} AS BINARY)) % {size}L AS INT)"
    at = f"CAST(ARRAY_POSITION(GET(ARRAY({texts}), {part}), {value}) - 1L AS INT)"
    return f"GET(GET(ARRAY({places}), {part}), {at})"


def read_code(code: str, codes: Sequence[str]) -> str:
    """The text in this place.

    Not by ELEMENT_AT: in ANSI mode Spark takes it for never NULL, also where the place is NULL.
    """
    return f"GET(ARRAY({', '.join(map(text, codes))}), CAST({code} AS INT))"


@dataclass(slots=True)
class Printer:
    """Prints statements over views whose columns are known."""

    views: Mapping[str, Mapping[str, Held]]
    enums: Mapping[str, tuple[str, ...]]
    """The texts of each type that lists some."""

    # --- statements ------------------------------------------------------------------------------

    def statement(self, query: exp.Query) -> str:
        """The text of a statement."""
        return self.describe(query)[0]

    def describe(self, query: exp.Query) -> tuple[str, Mapping[str, Held]]:
        """The text of a statement, and how its columns are held."""
        known = dict(self.views)
        try:
            steps = []
            within = query.args.get("with_")
            for step in within.expressions if within else ():
                name = step.args["alias"].this.name
                written, columns = self._query(step.this, known)
                known[name] = columns
                steps.append(f"{quote(name)} AS ({written})")
            written, columns = self._query(query, known)
        except NoWordsError as missing:
            raise refuse_words(str(missing)) from None
        return (f"WITH {', '.join(steps)} {written}" if steps else written), columns

    def _query(
        self, query: Node, known: Mapping[str, Mapping[str, Held]]
    ) -> tuple[str, Mapping[str, Held]]:
        if isinstance(query, exp.Union):
            return self._union(query, known)
        if not isinstance(query, exp.Select):
            raise NoWordsError(_name(query))
        clauses = ("expressions", "from_", "joins", "where", "group", "having", "qualify")
        for clause, value in query.args.items():
            if value and clause not in (*clauses, "order", "with_"):
                raise NoWordsError(f"{clause} of a SELECT")
        source, scope = self._from(query, known)
        items = self._items(query, scope)
        columns = {name: held for name, _, held in items}
        listed = ", ".join(f"{written} AS {quote(name)}" for name, written, _ in items)
        tail = self._tail(query, scope)
        qualify = query.args.get("qualify")
        if qualify is None:
            written = f"SELECT {listed} FROM {source}{tail}"  # noqa: S608
        else:
            written = self._qualify(qualify.this, scope, f"FROM {source}{tail}", listed, columns)
        return written + self._order(query, columns), columns

    def _union(
        self, query: exp.Union, known: Mapping[str, Mapping[str, Held]]
    ) -> tuple[str, Mapping[str, Held]]:
        if query.args.get("distinct"):
            raise NoWordsError("UNION of different rows")
        (left, columns), (right, others) = (
            self._query(q, known) for q in (query.this, query.expression)
        )
        if [h.codes for h in columns.values()] != [h.codes for h in others.values()]:
            raise NoWordsError("UNION of texts that are declared differently")
        both = f"{left} UNION ALL {right}"
        order = self._order(query, columns)
        return (f"SELECT * FROM ({both}) AS `parts`{order}" if order else both), columns  # noqa: S608

    def _items(self, query: exp.Select, scope: Scope) -> list[tuple[str, str, Held]]:
        items: list[tuple[str, str, Held]] = []
        for item in query.expressions:
            if isinstance(item, exp.Star):
                items += [(name, quote(name), held) for name, held in scope[None].items()]
            elif isinstance(item, exp.Alias):
                items.append((item.alias, *self.print(item.this, scope)))
            elif isinstance(item, exp.Column):
                items.append((item.name, *self.print(item, scope)))
            else:
                raise NoWordsError(_name(item))
        return items

    def _tail(self, query: exp.Select, scope: Scope) -> str:
        written = ""
        if where := query.args.get("where"):
            written += f" WHERE {self.print(where.this, scope)[0]}"
        if group := query.args.get("group"):
            keys = (self.print(key, scope)[0] for key in group.expressions)
            written += f" GROUP BY {', '.join(keys)}"
        if having := query.args.get("having"):
            written += f" HAVING {self.print(having.this, scope)[0]}"
        return written

    def _qualify(
        self,
        condition: Node,
        scope: Scope,
        source: str,
        listed: str,
        columns: Mapping[str, Held],
    ) -> str:
        """Windows are computed beside the columns, and looked at above them."""
        windows: list[str] = []
        inside = dict(columns)
        holder = exp.Paren(this=condition.copy())
        for window in list(holder.find_all(exp.Window)):
            name = f"_window{len(windows)}"
            written, inside[name] = self.print(window, scope)
            windows.append(f"{written} AS {quote(name)}")
            window.replace(exp.column(exp.to_identifier(name, quoted=True)))
        kept = ", ".join(map(quote, columns))
        check = self.print(holder, {None: inside})[0]
        inner = f"SELECT {listed}, {', '.join(windows)} {source}"
        return f"SELECT {kept} FROM ({inner}) AS `ranked` WHERE {check}"  # noqa: S608

    def _order(self, query: exp.Query, columns: Mapping[str, Held]) -> str:
        order = query.args.get("order")
        return f" ORDER BY {self._ordering(order, {None: columns})}" if order else ""

    def _ordering(self, order: exp.Order, scope: Scope) -> str:
        keys = []
        for key in order.expressions:
            way = "DESC" if key.args.get("desc") else "ASC"
            nulls = "FIRST" if key.args.get("nulls_first") else "LAST"
            keys.append(f"{self.print(key.this, scope)[0]} {way} NULLS {nulls}")
        return ", ".join(keys)

    def _from(
        self, query: exp.Select, known: Mapping[str, Mapping[str, Held]]
    ) -> tuple[str, Scope]:
        written, alias, columns = self._source(query.args["from_"].this, known)
        scope: dict[str | None, Mapping[str, Held]] = {alias: columns, None: columns}
        for join in query.args.get("joins") or ():
            other, name, theirs = self._source(join.this, known)
            kind, side = (str(join.args.get(word) or "").upper() for word in ("kind", "side"))
            if kind in ("SEMI", "ANTI"):
                using = ", ".join(quote(column.name) for column in join.args["using"])
                written += f" LEFT {kind} JOIN {other} USING ({using})"
                continue
            if kind not in ("", "INNER") or side not in ("", "LEFT", "FULL"):
                raise NoWordsError(f"{side} {kind} JOIN")
            scope[name] = theirs
            scope[None] = {**theirs, **scope[None]}
            on = self.print(join.args["on"], scope)[0]
            written += f" {side or 'INNER'} JOIN {other} ON {on}"
        return written, scope

    def _source(
        self, node: Node, known: Mapping[str, Mapping[str, Held]]
    ) -> tuple[str, str | None, Mapping[str, Held]]:
        if isinstance(node, exp.Subquery):
            written, columns = self._query(node.this, known)
            return f"({written}) AS {quote(node.alias)}", node.alias, columns
        if not isinstance(node, exp.Table) or node.name not in known:
            raise NoWordsError(_name(node))
        alias = node.alias or None
        named = f" AS {quote(alias)}" if alias else ""
        return quote(node.name) + named, alias, known[node.name]

    # --- expressions -----------------------------------------------------------------------------

    def print(self, node: Node, scope: Scope) -> Printed:
        """The text of an expression, and how its value is held."""
        if isinstance(node, exp.Anonymous):
            return self._call(node, scope)
        known = _NODES.get(type(node))
        if known is None:
            raise NoWordsError(_name(node))
        return known(self, node, scope)

    def _all(self, nodes: Sequence[Node], scope: Scope) -> list[Printed]:
        return [self.print(node, scope) for node in nodes]

    def _column(self, node: exp.Column, scope: Scope) -> Printed:
        table = node.table or None
        columns = scope.get(table)
        if columns is None or node.name not in columns:
            raise NoWordsError("a column that is not there")
        return (f"{quote(table)}." if table else "") + quote(node.name), columns[node.name]

    def _paren(self, node: exp.Paren, scope: Scope) -> Printed:
        written, held = self.print(node.this, scope)
        return f"({written})", held

    def _literal(self, node: exp.Literal, scope: Scope) -> Printed:
        del scope
        if node.is_string:
            return text(node.name), Held(TEXT)
        if not node.name.isdigit():
            raise NoWordsError("a number that is not whole")
        return f"{node.name}L", Held(BIGINT)

    def _boolean(self, node: exp.Boolean, scope: Scope) -> Printed:
        del scope
        return ("TRUE" if node.this else "FALSE"), Held(BOOLEAN)

    def _null(self, node: exp.Null, scope: Scope) -> Printed:
        del node, scope
        return "NULL", Held(NULL)

    def _star(self, node: exp.Star, scope: Scope) -> Printed:
        del node, scope
        return "*", Held(NULL)

    def _compare(self, node: exp.Binary, scope: Scope) -> Printed:
        (a, of_a), (b, of_b) = self._all((node.this, node.expression), scope)
        _unify((of_a, of_b))
        return f"{a} {_SIGNS[type(node)]} {b}", Held(BOOLEAN)

    def _connect(self, node: exp.Connector, scope: Scope) -> Printed:
        (a, _), (b, _) = self._all((node.this, node.expression), scope)
        return f"{a} {_SIGNS[type(node)]} {b}", Held(BOOLEAN)

    def _not(self, node: exp.Not, scope: Scope) -> Printed:
        return f"NOT {self.print(node.this, scope)[0]}", Held(BOOLEAN)

    def _is(self, node: exp.Is, scope: Scope) -> Printed:
        if not isinstance(node.expression, exp.Null):
            raise NoWordsError("IS of anything but NULL")
        return f"{self.print(node.this, scope)[0]} IS NULL", Held(BOOLEAN)

    def _in(self, node: exp.In, scope: Scope) -> Printed:
        if not node.expressions:
            raise NoWordsError("IN of a query")
        value, held = self.print(node.this, scope)
        options = self._all(node.expressions, scope)
        _unify((held, *(one for _, one in options)))
        return f"{value} IN ({', '.join(option for option, _ in options)})", Held(BOOLEAN)

    def _between(self, node: exp.Between, scope: Scope) -> Printed:
        parts = self._all((node.this, node.args["low"], node.args["high"]), scope)
        _unify([held for _, held in parts])
        value, low, high = (written for written, _ in parts)
        return f"{value} BETWEEN {low} AND {high}", Held(BOOLEAN)

    def _case(self, node: exp.Case, scope: Scope) -> Printed:
        words, results = ["CASE"], []
        if node.this is not None:
            words.append(self.print(node.this, scope)[0])
        for branch in node.args["ifs"]:
            value, held = self.print(branch.args["true"], scope)
            words.append(f"WHEN {self.print(branch.this, scope)[0]} THEN {value}")
            results.append(held)
        if node.args.get("default") is not None:
            value, held = self.print(node.args["default"], scope)
            words.append(f"ELSE {value}")
            results.append(held)
        return f"{' '.join(words)} END", _unify(results)

    def _arithmetic(self, node: exp.Binary, scope: Scope) -> Printed:
        (a, of_a), (b, of_b) = self._all((node.this, node.expression), scope)
        if of_a.type in (DATE, TIMESTAMP):
            return _move(type(node), (a, of_a), (b, of_b))
        held = _unify((of_a, of_b))
        if held.type not in _NUMBERS:
            raise NoWordsError(f"{_name(node)} of {held.type}")
        if isinstance(node, exp.IntDiv):
            if held.type == WIDE:
                raise NoWordsError("whole division of 128-bit numbers")
            return f"{a} DIV {b}", held
        if isinstance(node, exp.Div) and held.type != DOUBLE:
            raise NoWordsError("/ of whole numbers")
        return f"{a} {_SIGNS[type(node)]} {b}", held

    def _negate(self, node: exp.Neg, scope: Scope) -> Printed:
        value, held = self.print(node.this, scope)
        return f"-{value}", held

    def _shift(self, node: exp.Binary, scope: Scope) -> Printed:
        """Limbs of a sum: what is above 2**62, and what is below; of numbers that are not below 0.

        Spark's DIV of decimals gives 64 bits, whatever the quotient; a decimal keeps 32 digits.
        """
        if isinstance(node.this, exp.Anonymous) and node.this.this == "MD5_NUMBER_LOWER":
            return self._digest(node, scope)
        (a, held), (b, by) = self._all((node.this, node.expression), scope)
        if held.type != WIDE or by.type != WIDE:
            raise NoWordsError(f"{_name(node)} of {held.type}")
        limb = f"CAST('{_LIMB}' AS {WIDE})"
        if isinstance(node, exp.BitwiseAnd):
            if b != f"CAST({_LIMB - 1}L AS {WIDE})" and str(_LIMB - 1) not in b:
                raise NoWordsError("bits of a number")
            return f"{a} % {limb}", held
        if "62" not in b:
            raise NoWordsError("bits of a number")
        return f"CAST(({a} - {a} % {limb}) / {limb} AS {WIDE})", held

    def _digest(self, node: exp.Binary, scope: Scope) -> Printed:
        """The high 31 of 64 bits of MD5 that are read with the least byte first."""
        if not isinstance(node, exp.BitwiseRightShift) or node.expression.name != "33":
            raise NoWordsError("bits of MD5")
        (value,) = node.this.expressions
        written, held = self.print(value, scope)
        if held != Held(TEXT):
            raise NoWordsError(f"MD5 of {held.type}")
        digest = f"MD5(CAST({written} AS BINARY))"
        last = ", ".join(f"SUBSTR({digest}, {at}, 2)" for at in (31, 29, 27, 25))
        return f"(CAST(CONV(CONCAT({last}), 16, 10) AS BIGINT) DIV 2L)", Held(BIGINT)

    def _join_texts(self, node: exp.DPipe, scope: Scope) -> Printed:
        (a, of_a), (b, of_b) = self._all((node.this, node.expression), scope)
        if {of_a.type, of_b.type} - {TEXT, NULL} or of_a.codes or of_b.codes:
            raise NoWordsError(f"|| of {of_a.type}")
        return f"{a} || {b}", Held(TEXT)

    def _like(self, node: exp.Like, scope: Scope) -> Printed:
        """Without an escape: none of the characters that could be one is in the pattern."""
        value, held = self.print(node.this, scope)
        if held != Held(TEXT) or not isinstance(node.expression, exp.Literal):
            raise NoWordsError(f"LIKE of {held.type}")
        pattern = node.expression.name
        escape = next((c for c in "~^|!#$&*" if c not in pattern), None)
        if escape is None or "\\" in pattern:
            raise NoWordsError("LIKE with this pattern")
        return f"{value} LIKE {text(pattern)} ESCAPE '{escape}'", Held(BOOLEAN)

    # --- aggregates and windows ------------------------------------------------------------------

    def _count(self, node: exp.Count, scope: Scope, tail: str = "") -> Printed:
        counted = node.this
        if isinstance(counted, exp.Distinct):
            parts = [written for written, _ in self._all(counted.expressions, scope)]
            return f"COUNT(DISTINCT {', '.join(parts)}){tail}", Held(BIGINT)
        return f"COUNT({self.print(counted, scope)[0]}){tail}", Held(BIGINT)

    def _aggregate(self, node: Node, scope: Scope, tail: str) -> Printed:
        """An aggregate with what follows it: FILTER or OVER."""
        if isinstance(node, exp.Count):
            return self._count(node, scope, tail)
        if isinstance(node, exp.Sum):
            return _sum_exactly(self.print(node.this, scope), tail)
        if not isinstance(node, exp.Anonymous) or node.this not in ("SUM", "MIN", "MAX"):
            raise NoWordsError(_name(node))
        value, held = self.print(node.expressions[0], scope)
        if node.this == "SUM":
            return _sum_exactly((value, held), tail)
        if held.codes is not None:
            raise NoWordsError(f"{node.this} of declared texts")
        return f"{node.this}({value}){tail}", held

    def _sum(self, node: exp.Sum, scope: Scope) -> Printed:
        return self._aggregate(node, scope, "")

    def _filter(self, node: exp.Filter, scope: Scope) -> Printed:
        condition = self.print(node.expression.this, scope)[0]
        return self._aggregate(node.this, scope, f" FILTER (WHERE {condition})")

    def _row_number(self, node: exp.RowNumber, scope: Scope) -> Printed:
        del node, scope
        raise NoWordsError("a row's number")

    def _window(self, node: exp.Window, scope: Scope) -> Printed:
        parts = [self.print(key, scope)[0] for key in node.args.get("partition_by") or ()]
        order = node.args.get("order")
        if not parts:
            raise NoWordsError("a window over all rows")
        over = f"PARTITION BY {', '.join(parts)}"
        if order:
            over += f" ORDER BY {self._ordering(order, scope)}"
        over = f" OVER ({over}{_frame(node.args.get('spec'))})"
        inner = node.this
        name = inner.this if isinstance(inner, exp.Anonymous) else ""
        if isinstance(inner, exp.RowNumber) or name in ("DENSE_RANK", "RANK", "ROW_NUMBER"):
            word = "ROW_NUMBER" if isinstance(inner, exp.RowNumber) else name
            return f"CAST({word}(){over} AS BIGINT)", Held(BIGINT)
        if name == "FIRST_VALUE":
            value, held = self.print(inner.expressions[0], scope)
            return f"FIRST_VALUE({value}){over}", held
        return self._aggregate(inner, scope, over)

    # --- casts -----------------------------------------------------------------------------------

    def _cast(self, node: exp.Cast, scope: Scope) -> Printed:
        to = node.args["to"]
        if _is_sum(node.this) and to.this == exp.DType.BIGINT:
            # It fits in 64 bits, so Spark's own sum of 64 bits does: past them ANSI mode fails.
            summed, tail = _split_filter(node.this)
            value, held = self.print(summed, scope)
            if held.type == BIGINT:
                where = "" if tail is None else f" FILTER (WHERE {self.print(tail, scope)[0]})"
                return f"SUM({value}){where}", Held(BIGINT)
        value, held = self.print(node.this, scope)
        if isinstance(node.this, exp.Literal) and node.this.is_string and to.this in _TO:
            return f"CAST({value} AS {_TO[to.this]})", Held(_TO[to.this])  # a constant of ours
        if to.this == exp.DType.USERDEFINED:
            return self._to_code(value, held, to.args["kind"].name, sure=not _tries(node))
        if to.this not in _TO:
            raise NoWordsError(f"a cast to {to.this.value}")
        return _convert((value, held), _TO[to.this], tries=_tries(node))

    def _to_code(self, value: str, held: Held, name: str, *, sure: bool) -> Printed:
        del sure  # a constant that is cast is one of them
        codes = self.enums[name]
        if held.codes == codes:
            return value, held
        if held.codes is not None:
            value = read_code(value, held.codes)
        elif held.type not in (TEXT, NULL):
            raise NoWordsError(f"a text of {held.type}")
        return find_code(value, codes), Held(BIGINT, codes)

    # --- functions -------------------------------------------------------------------------------

    def _call(self, node: exp.Anonymous, scope: Scope) -> Printed:
        name = str(node.this)
        if name in ("SUM", "MIN", "MAX"):
            return self._aggregate(node, scope, "")
        known = _CALLS.get(name)
        if known is None:
            raise NoWordsError(name)
        return known(node, *self._all(node.expressions, scope))


# --- types -------------------------------------------------------------------------------------


def _name(node: Node) -> str:
    return type(node).__name__


def _tries(node: exp.Cast) -> bool:
    return isinstance(node, exp.TryCast)


def _unify(held: Sequence[Held]) -> Held:
    """How values of all these are held together; refused where they are not of one kind."""
    known = [one for one in held if one.type != NULL]
    if not known:
        return Held(NULL)
    if len({one.codes for one in known}) > 1:
        raise NoWordsError("declared texts beside other values")
    if all(one.type in _NUMBERS for one in known):
        return max(known, key=lambda one: _NUMBERS.index(one.type))
    if len({one.type for one in known}) > 1:
        raise NoWordsError(f"{known[0].type} beside {known[1].type}")
    return known[0]


def _convert(printed: Printed, to: str, *, tries: bool) -> Printed:
    value, held = printed
    if held.codes is not None:
        if to != TEXT:
            raise NoWordsError("a declared text as anything but a text")
        return read_code(value, held.codes), Held(TEXT)
    if held.type == to:
        return value, held
    word = "TRY_CAST" if tries else "CAST"
    match held.type, to:
        case ("DOUBLE", "BIGINT" | "INT") if tries:
            inside = f"{value} >= -{_TWO_63} AND {value} < {_TWO_63}"
            return f"CASE WHEN {inside} THEN CAST(RINT({value}) AS {to}) END", Held(to)
        case ("DOUBLE", "BIGINT" | "INT"):
            return f"CAST(RINT({value}) AS {to})", Held(to)
        case ("DECIMAL(38,0)", "DOUBLE"):
            return _wide_to_double(value), Held(to)
        case _ if (held.type, to) in _CASTS or held.type == NULL:
            return f"{word}({value} AS {to})", Held(to)
        case _:
            raise NoWordsError(f"a cast of {held.type} to {to}")


_CASTS = {
    (BOOLEAN, BIGINT), (BOOLEAN, INT), (BOOLEAN, WIDE), (BOOLEAN, TEXT), (BOOLEAN, DOUBLE),
    (INT, BIGINT), (INT, WIDE), (INT, DOUBLE), (INT, TEXT), (INT, BOOLEAN),
    (BIGINT, INT), (BIGINT, WIDE), (BIGINT, DOUBLE), (BIGINT, TEXT), (BIGINT, BOOLEAN),
    (WIDE, BIGINT), (WIDE, INT), (DATE, TIMESTAMP), (TIMESTAMP, DATE), (DATE, TEXT),
}  # fmt: skip


def _wide_to_double(value: str) -> str:
    """In two halves of 64 bits, each rounded, as DuckDB does it; one decimal would round once."""
    half = f"CAST('{2**64}' AS {WIDE})"
    size = f"ABS({value})"
    low = f"CAST({size} % {half} AS DOUBLE)"
    high = f"CAST(({size} - {size} % {half}) / {half} AS DOUBLE)"
    whole = f"({low} + {high} * {float(2**64)!r}D)"
    return f"CASE WHEN {value} < 0 THEN -{whole} ELSE {whole} END"


def _is_sum(node: Node) -> bool:
    inner = node.this if isinstance(node, exp.Filter) else node
    return isinstance(inner, exp.Sum) or (isinstance(inner, exp.Anonymous) and inner.this == "SUM")


def _split_filter(node: Node) -> tuple[Node, Node | None]:
    """What is summed, and where."""
    where = node.expression.this if isinstance(node, exp.Filter) else None
    inner = node.this if isinstance(node, exp.Filter) else node
    return (inner.this if isinstance(inner, exp.Sum) else inner.expressions[0]), where


def _sum_exactly(printed: Printed, tail: str) -> Printed:
    """A sum of 64-bit numbers in two sums of half of their bits, neither of which overflows."""
    value, held = printed
    if held.type == WIDE:
        return f"SUM({value}){tail}", held
    if held.type not in _WHOLE:
        raise NoWordsError(f"SUM of {held.type}")
    high = f"CAST(SUM(SHIFTRIGHT({value}, {_HALF})){tail} AS {WIDE})"
    low = f"CAST(SUM({value} & {2**_HALF - 1}L){tail} AS {WIDE})"
    return f"({high} * {2**_HALF}L + {low})", Held(WIDE)


def _frame(spec: exp.WindowSpec | None) -> str:
    if spec is None:
        return ""
    ends = []
    for end in ("start", "end"):
        place, side = spec.args[end], spec.args.get(f"{end}_side")
        word = place if isinstance(place, str) else place.name
        ends.append(word if side is None else f"{word} {side}")
    return f" ROWS BETWEEN {ends[0]} AND {ends[1]}"


def _move(operator: type[Node], point: Printed, step: Printed) -> Printed:
    """Points in time: how far apart two are, and some days later."""
    (a, of_a), (b, of_b) = point, step
    if operator is exp.Sub and of_a.type == of_b.type == DATE:
        return f"CAST(DATEDIFF({a}, {b}) AS BIGINT)", Held(BIGINT)
    if operator is exp.Add and of_a.type == DATE and of_b.type in (INT, BIGINT):
        return f"DATE_ADD({a}, CAST({b} AS INT))", Held(DATE)
    if operator is exp.Add and of_b.type == INTERVAL:
        return f"({a} + {b})", Held(of_a.type)
    raise NoWordsError(f"{operator.__name__} of {of_a.type} and {of_b.type}")


# --- the words ---------------------------------------------------------------------------------

_SIGNS: dict[type[Node], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.And: "AND", exp.Or: "OR", exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/",
    exp.Mod: "%",
}  # fmt: skip

_NODES: dict[type[Node], Callable[[Printer, Any, Scope], Printed]] = {
    exp.Column: Printer._column,
    exp.Paren: Printer._paren,
    exp.Literal: Printer._literal,
    exp.Boolean: Printer._boolean,
    exp.Null: Printer._null,
    exp.Star: Printer._star,
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), Printer._compare),
    **dict.fromkeys((exp.And, exp.Or), Printer._connect),
    exp.Not: Printer._not,
    exp.Is: Printer._is,
    exp.In: Printer._in,
    exp.Between: Printer._between,
    exp.Case: Printer._case,
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod), Printer._arithmetic),
    exp.Neg: Printer._negate,
    **dict.fromkeys((exp.BitwiseRightShift, exp.BitwiseAnd), Printer._shift),
    exp.DPipe: Printer._join_texts,
    exp.Like: Printer._like,
    exp.Count: Printer._count,
    exp.Sum: Printer._sum,
    exp.Filter: Printer._filter,
    exp.RowNumber: Printer._row_number,
    exp.Window: Printer._window,
    exp.Cast: Printer._cast,
    exp.TryCast: Printer._cast,
}


Call = Callable[..., Printed]


def _same(name: str) -> Call:
    """A function of values of one kind that gives one of them."""

    def write(node: exp.Anonymous, *arguments: Printed) -> Printed:
        del node
        held = _unify([one for _, one in arguments])
        return f"{name}({', '.join(value for value, _ in arguments)})", held

    return write


def _whole_part(name: str, *kinds: str) -> Call:
    """A part of a point in time."""

    def write(node: exp.Anonymous, argument: Printed) -> Printed:
        del node
        if argument[1].type not in kinds:
            raise NoWordsError(f"{name} of {argument[1].type}")
        return f"CAST({name}({argument[0]}) AS BIGINT)", Held(BIGINT)

    return write


def _written(form: str, result: str, *kinds: str) -> Call:
    """A function in other words, of arguments of these types."""

    def write(node: exp.Anonymous, *arguments: Printed) -> Printed:
        found = tuple(held.type for _, held in arguments)
        texts = any(held.codes is not None for _, held in arguments)
        if found != kinds or texts:
            raise NoWordsError(f"{node.this} of {', '.join(found)}")
        return form.format(*(value for value, _ in arguments)), Held(result)

    return write


def _is_finite(node: exp.Anonymous, argument: Printed) -> Printed:
    del node
    if argument[1].type != DOUBLE:
        raise NoWordsError(f"ISFINITE of {argument[1].type}")
    return f"ABS({argument[0]}) <= CAST('1.7976931348623157E308' AS DOUBLE)", Held(BOOLEAN)


def _code(node: exp.Anonymous, argument: Printed) -> Printed:
    del node
    if argument[1].codes is None:
        raise NoWordsError("the place of a text that is not declared")
    return argument[0], Held(BIGINT)


def _left(node: exp.Anonymous, value: Printed, length: Printed) -> Printed:
    """LEFT: also of declared texts, which are short already."""
    del node
    if value[1].type != TEXT or value[1].codes is not None:
        raise NoWordsError(f"LEFT of {value[1].type}")
    return f"LEFT({value[0]}, CAST({length[0]} AS INT))", Held(TEXT)


def _keep_whole(form: str) -> Call:
    """A function of doubles that Spark computes in 64 bits: beyond 2**52 all are whole."""

    def write(node: exp.Anonymous, argument: Printed) -> Printed:
        value, held = argument
        if held.type in _WHOLE:
            return value, held
        if held.type != DOUBLE:
            raise NoWordsError(f"{node.this} of {held.type}")
        near = f"ABS({value}) < 4503599627370496D"
        return f"CASE WHEN {near} THEN {form.format(value)} ELSE {value} END", Held(DOUBLE)

    return write


def _row(node: exp.Anonymous, *arguments: Printed) -> Printed:
    del node
    return f"STRUCT({', '.join(value for value, _ in arguments)})", Held("STRUCT")


_DAYS = (DATE, TIMESTAMP)
_CALLS: dict[str, Call] = {
    "COALESCE": _same("COALESCE"),
    "LEAST": _same("LEAST"),
    "GREATEST": _same("GREATEST"),
    "ABS": _same("ABS"),
    "ISFINITE": _is_finite,
    "ENUM_CODE": _code,
    "LEFT": _left,
    "ROW": _row,
    "EPOCH_US": _written("UNIX_MICROS(CAST({0} AS TIMESTAMP_LTZ))", BIGINT, TIMESTAMP),
    "ROUND_EVEN": _written("RINT({0})", DOUBLE, DOUBLE, BIGINT),
    "CHR": _written("CHR({0})", TEXT, BIGINT),
    "CONTAINS": _written("CONTAINS({0}, {1})", BOOLEAN, TEXT, TEXT),
    "FLOOR": _keep_whole("CAST(FLOOR({0}) AS DOUBLE)"),
    "CEIL": _keep_whole("CAST(CEIL({0}) AS DOUBLE)"),
    "TRUNC": _keep_whole("CAST(CAST({0} AS BIGINT) AS DOUBLE)"),
    "YEAR": _whole_part("YEAR", *_DAYS),
    "QUARTER": _whole_part("QUARTER", *_DAYS),
    "MONTH": _whole_part("MONTH", *_DAYS),
    "DAY": _whole_part("DAY", *_DAYS),
    "DAYOFYEAR": _whole_part("DAYOFYEAR", *_DAYS),
    "WEEK": _whole_part("WEEKOFYEAR", *_DAYS),
    "HOUR": _whole_part("HOUR", TIMESTAMP),
    "MINUTE": _whole_part("MINUTE", TIMESTAMP),
    "SECOND": _whole_part("SECOND", TIMESTAMP),
}

__all__ = ["TYPES", "Held", "NoWordsError", "Printer", "find_code", "quote", "read_code", "text"]
