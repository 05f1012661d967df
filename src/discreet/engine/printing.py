"""A statement printed for one engine: a closed list of nodes, each typed, anything else refused.

A plan becomes a tree of sqlglot's nodes (:mod:`discreet.question.functions.nodes`), which says
what is meant in DuckDB's words; DuckDB gets it as it stands.  Any other engine has a printer.  It
walks the tree, infers the type of every node, because many mean something else for each type (a
cast that rounds, ``a - b`` of days, the order of declared texts), and writes each in the words
that mean the same there.  There is no translation by default: a node, an argument or a function
that is not listed is refused, and since plans are compiled before they are paid for, before the
charge.

An engine's printer derives from :class:`Printer`, gives the spelling of names, texts and types,
overrides what its engine means otherwise, and refuses what it cannot mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, ClassVar, NoReturn

from sqlglot import exp

from discreet.engine.calls import FUNCTIONS, Writer
from discreet.engine.nodes import NODES
from discreet.engine.typed import (
    NAMED,
    NUMBERS,
    OF_KIND,
    Columns,
    Scope,
    Type,
    Typed,
    combine,
    common_type,
    list_either,
    refuse,
)
from discreet.exact.records import dataclass
from discreet.question.functions.nodes import Node
from discreet.question.schema import Table

_JOINS = {("INNER", ""): "INNER", ("", "LEFT"): "LEFT", ("", "FULL"): "FULL"}
_CLAUSES = frozenset(
    ["expressions", "from_", "joins", "where", "group", "having", "qualify", "order", "with_"]
)


@dataclass(slots=True)
class Printer:
    """Prints one statement; an engine's own derives from it."""

    codes: Mapping[str, tuple[str, ...]]
    """The declared texts, by the name of the type that lists them."""
    steps: dict[str, Columns] = field(default_factory=dict)
    """The columns of every step that is defined."""
    result: Columns = field(default_factory=dict)
    """The columns of the statement, once it is printed."""

    # --- an engine's own words --------------------------------------------------------------------

    name: ClassVar[str] = "?"
    once: ClassVar[str] = "MATERIALIZED "  # before the query of a step that must be computed once

    def identify(self, name: str) -> str:
        """A name, quoted."""
        return '"' + name.replace('"', '""') + '"'

    def quote(self, text: str) -> str:
        """A text constant."""
        return "'" + text.replace("'", "''") + "'"

    def spell(self, type_: Type) -> str:
        """The name of a type."""
        raise NotImplementedError

    def refuse(self, what: str) -> NoReturn:
        """This engine has no words that mean the same."""
        refuse(self.name, what)

    def bind(self, values: Sequence[Typed], write: Callable[..., str]) -> str:
        """Text in which values stand several times; an engine may name them first."""
        return write(*(value.text for value in values))

    # --- statements -------------------------------------------------------------------------------

    def statement(self, query: exp.Query, before: Iterable[tuple[str, str]] = ()) -> str:
        """The whole statement, after steps that are written already (``before``: name and text)."""
        parts = [f"{self.identify(name)} AS ({text})" for name, text in before]
        definitions = query.args.get("with_")
        for step in definitions.expressions if definitions else ():
            name = step.args["alias"].this.name
            text, self.steps[name] = self._query(step.this)
            once = self.once if step.args.get("materialized") else ""
            parts.append(f"{self.identify(name)} AS {once}({text})")
        text, self.result = self._query(query)
        return ("WITH " + ",\n".join(parts) + "\n" if parts else "") + text

    def _query(self, query: Node) -> tuple[str, Columns]:
        if isinstance(query, exp.Union):
            return self._union(query)
        if not isinstance(query, exp.Select):
            self.refuse(_name_of(query))
        for clause, there in query.args.items():
            if there and clause not in _CLAUSES:
                self.refuse(f"SELECT with {clause}")
        scope, source, conditions = self._from(query)
        if query.args.get("where"):
            conditions.append(self.node(query.args["where"].this, scope).text)
        items = [item for one in query.expressions for item in self._items(one, scope)]
        columns = {name: _forget(typed) for name, typed in items}
        rest = f"\nWHERE {' AND '.join(f'({c})' for c in conditions)}" if conditions else ""
        if query.args.get("group"):
            rest += f"\nGROUP BY {', '.join(self._group(query, scope))}"
        if query.args.get("having"):
            rest += f"\nHAVING {self.node(query.args['having'].this, scope).text}"
        picked = [f"{typed.text} AS {self.identify(name)}" for name, typed in items]
        if query.args.get("qualify"):
            text = self._qualify(query, scope, picked, f"{source}{rest}", columns)
        else:
            text = f"SELECT {', '.join(picked)}\nFROM {source}{rest}"
        return text + self._order(query, columns), columns

    def _union(self, query: exp.Union) -> tuple[str, Columns]:
        if query.args.get("distinct"):
            self.refuse("UNION of different rows")
        left, columns = self._query(query.this)
        right, others = self._query(query.expression)
        found = {}
        for (name, one), other in zip(columns.items(), others.values(), strict=True):
            coded = one.type is Type.CODED and one.values != other.values
            if one.type is not other.type or coded:
                self.refuse("UNION of two types")
            found[name] = replace(one, values=list_either([one, other]))
        columns = found
        both = f"{left}\nUNION ALL\n{right}"
        order = self._order(query, columns)
        if order:  # not every engine sorts a union by anything but names
            both = f"SELECT * FROM ({both}) AS {self.identify('both')}{order}"  # noqa: S608
        return both, columns

    def _items(self, item: Node, scope: Scope) -> list[tuple[str, Typed]]:
        if isinstance(item, exp.Star):
            return [
                (name, replace(column, text=self.identify(name)))
                for name, column in scope[None].items()
            ]
        if isinstance(item, exp.Alias):
            return [(item.alias, self.node(item.this, scope))]
        if isinstance(item, exp.Column):
            return [(item.name, self.node(item, scope))]
        return self.refuse(f"{_name_of(item)} without a name")

    def _group(self, query: exp.Select, scope: Scope) -> list[str]:
        """What is grouped by: the number of the column that shows it, if one does."""
        shown = [item.this if isinstance(item, exp.Alias) else item for item in query.expressions]
        return [
            str(shown.index(key) + 1) if key in shown else self.node(key, scope).text
            for key in query.args["group"].expressions
        ]

    def _qualify(
        self, query: exp.Select, scope: Scope, picked: list[str], source: str, columns: Columns
    ) -> str:
        """Windows are computed in a query of their own, whose rows are then chosen."""
        if query.args.get("group") or query.args.get("having"):
            self.refuse("QUALIFY of groups")
        condition = query.args["qualify"].this.copy()
        holder = exp.Paren(this=condition)
        windows: dict[str, Typed] = {}
        for window in list(holder.find_all(exp.Window)):
            name = f"_window{len(windows)}"
            windows[name] = self.node(window, scope)
            window.replace(exp.column(exp.to_identifier(name, quoted=True)))
        for column in list(holder.find_all(exp.Column)):
            if column.name in windows:
                continue
            name = f"_beside{len(windows)}"  # as the rows have it, whether it is picked or not
            windows[name] = self.node(column, scope)
            column.replace(exp.column(exp.to_identifier(name, quoted=True)))
        inside = [*picked, *(f"{typed.text} AS {self.identify(n)}" for n, typed in windows.items())]
        found = {**columns, **{name: _forget(typed) for name, typed in windows.items()}}
        outside = ", ".join(self.identify(name) for name in columns)
        return (
            f"SELECT {outside}\nFROM (SELECT {', '.join(inside)}\nFROM {source}) AS "
            f"{self.identify('ranked')}\nWHERE {self.node(holder, {None: found}).text}"
        )

    def _order(self, query: exp.Query, columns: Columns) -> str:
        order = query.args.get("order")
        return f"\nORDER BY {self._order_keys(order, {None: columns})}" if order else ""

    def _order_keys(self, order: exp.Order, scope: Scope) -> str:
        keys = []
        for one in order.expressions:
            if one.args.get("nulls_first"):
                self.refuse("NULL before values")
            way = "DESC" if one.args.get("desc") else "ASC"
            keys.append(f"{self.in_order(self.node(one.this, scope))} {way} NULLS LAST")
        return ", ".join(keys)

    def in_order(self, value: Typed) -> str:
        """A value that rows are sorted by; declared texts come in the order of their list."""
        return self.place(value).text if value.type is Type.CODED else value.text

    def write_rows(self, table: Table, rows: Sequence[Sequence[Any]]) -> str:
        """Rows of a public table, written out as a query: each column as its kind."""
        typed = [OF_KIND[column.kind] for column in table.columns]
        held = [self.identify(f"c{i}") for i in range(len(typed))]
        picked = ", ".join(
            f"{self.in_order(Typed(f'CAST({name} AS {self.spell(type_)})', type_))} "
            f"AS {self.identify(column.name)}"
            for column, name, type_ in zip(table.columns, held, typed, strict=True)
        )
        there = rows or [(None,) * len(typed)]
        values = ", ".join(f"({', '.join(map(self._write_value, row))})" for row in there)
        where = "" if rows else " WHERE FALSE"
        return f"SELECT {picked} FROM (VALUES {values}) AS public_rows ({', '.join(held)}){where}"  # noqa: S608

    def _write_value(self, value: Any) -> str:
        if value is None:
            return "NULL"
        return self.quote(repr(value) if isinstance(value, float) else str(value))

    # --- where rows come from ---------------------------------------------------------------------

    def _from(self, query: exp.Select) -> tuple[Scope, str, list[str]]:
        text, alias, columns = self._source(query.args["from_"].this)
        scope: dict[str | None, Columns] = {alias: columns, None: columns}
        outer = alias or query.args["from_"].this.alias_or_name
        conditions: list[str] = []
        for join in query.args.get("joins") or ():
            kind, side = (str(join.args.get(word) or "").upper() for word in ("kind", "side"))
            partner, name, others = self._source(join.this)
            if kind in ("SEMI", "ANTI"):
                using = [one.name for one in join.args["using"]]
                conditions.append(self.semi_join(partner, using, outer, there=kind == "SEMI"))
                continue
            way = _JOINS.get((kind, side))
            if way is None or join.args.get("using"):
                self.refuse(f"a join that is {kind or side}")
            scope[name] = others
            scope[None] = {**others, **scope[None]}
            text += f"\n{way} JOIN {partner} ON {self.node(join.args['on'], scope).text}"
        return scope, text, conditions

    def _source(self, node: Node) -> tuple[str, str | None, Columns]:
        if isinstance(node, exp.Table) and not node.db and node.name in self.steps:
            alias = node.args["alias"].this.name if node.args.get("alias") else None
            named = f" AS {self.identify(alias)}" if alias else ""
            return self.identify(node.name) + named, alias, self.steps[node.name]
        if isinstance(node, exp.Subquery):
            text, columns = self._query(node.this)
            return f"({text}) AS {self.identify(node.alias)}", None, columns
        return self.refuse(f"rows of {_name_of(node)}")

    def semi_join(self, partner: str, using: Sequence[str], outer: str, *, there: bool) -> str:
        """The condition that a row has, or has not, a partner."""
        own, other = self.identify(outer), self.identify("partner")
        names = [self.identify(name) for name in using]
        same = " AND ".join(f"{other}.{name} = {own}.{name}" for name in names)
        found = f"EXISTS (SELECT 1 FROM {partner} AS {other} WHERE {same})"  # noqa: S608
        return found if there else f"NOT {found}"

    # --- nodes ------------------------------------------------------------------------------------

    def node(self, node: Node, scope: Scope) -> Typed:
        """A node in the engine's words."""
        write = NODES.get(type(node))
        if write is None:
            self.refuse(_name_of(node))
        return write(self, node, scope)

    def column(self, node: exp.Column, scope: Scope) -> Typed:
        """A column of a step."""
        of = node.table or None
        columns = scope.get(of)
        if columns is None or node.name not in columns:
            self.refuse(f"a column '{node.name}' that no step has")
        before = f"{self.identify(of)}." if of else ""
        return replace(columns[node.name], text=before + self.identify(node.name), plain=True)

    def parenthesis(self, node: exp.Paren, scope: Scope) -> Typed:
        """What stands in parentheses."""
        inside = self.node(node.this, scope)
        return inside if inside.plain else replace(inside, text=f"({inside.text})")

    def literal(self, node: exp.Literal) -> Typed:
        """A text, or a whole number."""
        if node.is_string:
            return self.text(node.name)
        return self.whole(int(node.name))

    def text(self, value: str) -> Typed:
        """A text constant."""
        return Typed(self.quote(value), Type.TEXT, values=(value,), constant=value, plain=True)

    def whole(self, value: int) -> Typed:
        """A whole constant, in 64 bits or in 128."""
        type_ = Type.WHOLE if -(2**63) <= value < 2**63 else Type.WIDE
        text = f"CAST({self.quote(str(value))} AS {self.spell(type_)})"
        return Typed(text, type_, constant=value, plain=True)

    def double(self, value: float) -> Typed:
        """A double, told in full."""
        text = f"CAST({self.quote(repr(value))} AS {self.spell(Type.DOUBLE)})"
        return Typed(text, Type.DOUBLE, constant=value, plain=True)

    def compare(self, sign: str, a: Typed, b: Typed) -> Typed:
        """A comparison."""
        a, b = self.alike(a, b)
        return combine(f"{a.text} {sign} {b.text}", Type.BOOLEAN, a, b)

    def alike(self, *values: Typed) -> tuple[Typed, ...]:
        """Values of one type: whole constants among doubles are doubles."""
        wanted = common_type(value.type for value in values)
        return tuple(
            self.double(float(value.constant))
            if wanted is Type.DOUBLE and isinstance(value.constant, int)
            else self.cast(value, wanted)
            if wanted is Type.DOUBLE and value.type in (Type.SHORT, Type.WHOLE, Type.WIDE)
            else value
            for value in values
        )

    def arithmetic(self, sign: str, a: Typed, b: Typed) -> Typed:
        """``+``, ``-`` or ``*`` of two numbers, or a point in time moved."""
        if a.type is b.type is Type.DATE and sign == "-":
            return self.days_between(a, b)
        if a.type in (Type.DATE, Type.TIMESTAMP) and sign == "+":
            return self.move(a, b)
        a, b = self.alike(a, b)
        type_ = common_type((a.type, b.type))
        if type_ not in NUMBERS:
            self.refuse(f"'{sign}' of {a.type.value} and {b.type.value}")
        if type_ is Type.DOUBLE:
            return self.of_doubles(sign, a, b)
        return combine(f"{a.text} {sign} {b.text}", type_, a, b)

    def of_doubles(self, sign: str, a: Typed, b: Typed) -> Typed:
        """``+``, ``-``, ``*`` or ``/`` of two doubles, as IEEE 754 says; no value may fail."""
        return combine(f"{a.text} {sign} {b.text}", Type.DOUBLE, a, b)

    def quotient(self, a: Typed, b: Typed) -> Typed:
        """A quotient of whole numbers without its fraction."""
        raise NotImplementedError

    def remainder(self, a: Typed, b: Typed) -> Typed:
        """The remainder of whole numbers, of the sign of the first."""
        raise NotImplementedError

    def days_between(self, a: Typed, b: Typed) -> Typed:
        """How many days the first date lies after the second."""
        raise NotImplementedError

    def move(self, point: Typed, step: Typed) -> Typed:
        """A date some days later, or a point in time by an interval."""
        raise NotImplementedError

    def shift_right(self, value: Typed, bits: Typed) -> Typed:
        """A whole number without its last bits, rounded down."""
        raise NotImplementedError

    def last_bits(self, value: Typed, mask: Typed) -> Typed:
        """The last bits of a whole number; the mask is one less than a power of two."""
        raise NotImplementedError

    def place(self, value: Typed) -> Typed:
        """Which of the declared texts a coded one is, from 0."""
        raise NotImplementedError

    def digest(self, value: Typed) -> Typed:
        """31 bits of the MD5 of a text: the highest of its last eight bytes, least byte first."""
        raise NotImplementedError

    def like(self, value: Typed, pattern: str) -> str:
        """Whether a text has the form of a pattern, in which nothing is escaped."""
        raise NotImplementedError

    # --- casts ------------------------------------------------------------------------------------

    def cast_node(self, node: exp.Cast, scope: Scope) -> Typed:
        """CAST, or TRY_CAST."""
        attempt = isinstance(node, exp.TryCast)
        to = node.args["to"]
        if to.this == exp.DType.USERDEFINED:
            return self.code(self.node(node.this, scope), self.codes[to.args["kind"].name])
        wanted = NAMED.get(to.this.value)
        if wanted is None:
            self.refuse(f"a cast to {to.this.value}")
        if isinstance(node.this, exp.Null):
            return Typed(f"CAST(NULL AS {self.spell(wanted)})", wanted, plain=True)
        if isinstance(node.this, exp.Literal):
            return self.constant(node.this.name, wanted)
        value = self.node(node.this, scope)
        if value.type is Type.CODED:
            value = replace(value, type=Type.TEXT)
        if value.type is wanted:
            return value
        if isinstance(value.constant, int) and wanted in NUMBERS:
            return self.constant(str(value.constant), wanted)
        if attempt and not self.is_total(value.type, wanted):
            return self.try_cast(value, wanted)
        return self.cast(value, wanted)

    def constant(self, said: str, wanted: Type) -> Typed:
        """A constant of a type, as it was written."""
        if wanted in (Type.SHORT, Type.WHOLE, Type.WIDE):
            found = self.whole(int(said))
            text = f"CAST({self.quote(said)} AS {self.spell(wanted)})"
            return replace(found, text=text, type=wanted)
        if wanted is Type.DOUBLE:
            return self.double(float(said))
        if wanted is Type.TEXT:
            return self.text(said)
        return Typed(f"CAST({self.quote(said)} AS {self.spell(wanted)})", wanted, plain=True)

    def code(self, value: Typed, listed: tuple[str, ...]) -> Typed:
        """A text if it is one of those listed, and else NULL."""
        texts = ", ".join(self.quote(one) for one in listed)
        if value.constant is not None:
            return replace(value, type=Type.CODED, values=listed, constant=None)
        text = self.bind([value], lambda v: f"CASE WHEN {v} IN ({texts}) THEN {v} END")
        return Typed(text, Type.CODED, values=listed)

    def is_total(self, held: Type, wanted: Type) -> bool:
        """Whether a cast cannot fail, so that it need not be tried."""
        widening = {
            (Type.SHORT, Type.WHOLE), (Type.SHORT, Type.WIDE), (Type.WHOLE, Type.WIDE),
            (Type.WHOLE, Type.DOUBLE), (Type.SHORT, Type.DOUBLE), (Type.BOOLEAN, Type.WHOLE),
            (Type.DATE, Type.TIMESTAMP), (Type.TIMESTAMP, Type.DATE),
        }  # fmt: skip
        return (held, wanted) in widening

    def cast(self, value: Typed, wanted: Type) -> Typed:
        """A cast that cannot fail, as was shown; doubles to the nearest, halves to even."""
        return replace(
            value,
            text=f"CAST({value.text} AS {self.spell(wanted)})",
            type=wanted,
            values=None,
            constant=None,
            plain=False,
        )

    def try_cast(self, value: Typed, wanted: Type) -> Typed:
        """A cast that is NULL where it fails."""
        self.refuse(f"a cast of {value.type.value} to {wanted.value} that can fail")

    # --- functions --------------------------------------------------------------------------------

    def call(self, node: exp.Anonymous, scope: Scope) -> Typed:
        """A function of the list."""
        write = self.functions().get(node.name.upper())
        if write is None:
            self.refuse(f"{node.name.upper()}()")
        return write(self, [self.node(one, scope) for one in node.expressions])

    def functions(self) -> Mapping[str, Writer]:
        """What is written for each function; an engine adds its own to :data:`FUNCTIONS`."""
        return FUNCTIONS

    def total(self, value: Typed) -> Typed:
        """An exact sum of whole numbers."""
        if value.type not in (Type.SHORT, Type.WHOLE, Type.WIDE):
            self.refuse(f"SUM of {value.type.value}")
        return Typed(f"SUM({value.text})", Type.WIDE, together=True)

    def extreme(self, name: str, value: Typed) -> Typed:
        """MIN or MAX; of declared texts, in their order as texts: only equality is asked of it."""
        return replace(value, text=f"{name}({value.text})", plain=False, together=True)

    def count(self, node: exp.Count, scope: Scope) -> Typed:
        """COUNT of rows, of values or of different values."""
        if isinstance(node.this, exp.Star):
            return Typed("COUNT(*)", Type.WHOLE, together=True)
        if isinstance(node.this, exp.Distinct):
            (one,) = node.this.expressions
            return Typed(self.count_distinct(self.node(one, scope)), Type.WHOLE, together=True)
        return Typed(f"COUNT({self.node(node.this, scope).text})", Type.WHOLE, together=True)

    def count_distinct(self, value: Typed) -> str:
        """How many different values there are, NULL aside."""
        return f"COUNT(DISTINCT {value.text})"

    def filter_rows(self, node: exp.Filter, scope: Scope) -> Typed:
        """An aggregate of the rows that fulfil a condition."""
        value = self.node(node.this, scope)
        condition = self.node(node.expression.this, scope)
        return replace(value, text=f"{value.text} FILTER (WHERE {condition.text})")

    def window(self, node: exp.Window, scope: Scope) -> Typed:
        """A function of a row among others."""
        value = self.node(node.this, scope)
        inside = []
        if node.args.get("partition_by"):
            keys = ", ".join(self.node(p, scope).text for p in node.args["partition_by"])
            inside.append(f"PARTITION BY {keys}")
        if node.args.get("order"):
            inside.append(f"ORDER BY {self._order_keys(node.args['order'], scope)}")
        if node.args.get("spec"):
            inside.append(_frame(node.args["spec"]))
        return replace(value, text=f"{value.text} OVER ({' '.join(inside)})", together=True)

    def case(self, node: exp.Case, scope: Scope) -> Typed:
        """CASE."""
        subject = "" if node.this is None else f" {self.node(node.this, scope).text}"
        conditions = [self.node(one.this, scope) for one in node.args["ifs"]]
        results = [self.node(one.args["true"], scope) for one in node.args["ifs"]]
        default = node.args.get("default")
        if default is not None:
            results.append(self.node(default, scope))
        type_ = common_type(one.type for one in results)
        results = [
            one if one.type is not Type.NULL else Typed(f"CAST(NULL AS {self.spell(type_)})", type_)
            for one in self.alike(*results)
        ]
        text = f"CASE{subject}"
        for condition, result in zip(conditions, results, strict=False):
            text += f" WHEN {condition.text} THEN {result.text}"
        if default is not None:
            text += f" ELSE {results[-1].text}"
        return combine(f"{text} END", type_, *conditions, *results, values=list_either(results))


def _name_of(node: Node) -> str:
    return type(node).__name__


def _forget(value: Typed) -> Typed:
    """What remains of a value as a column of a step."""
    return Typed("", value.type, value.values)


def _frame(spec: exp.WindowSpec) -> str:
    ends = []
    for end in ("start", "end"):
        place, side = spec.args[end], spec.args.get(f"{end}_side")
        word = place if isinstance(place, str) else place.name
        ends.append(f"{word} {side}" if side else word)
    return f"ROWS BETWEEN {ends[0]} AND {ends[1]}"


__all__ = ["Printer"]
