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
from enum import Enum
from typing import Any, ClassVar, NoReturn

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.exact.records import dataclass
from discreet.question.domain import Kind
from discreet.question.functions.nodes import Node


class Type(Enum):
    """What a node is."""

    NULL = "a bare NULL"
    BOOLEAN = "boolean"
    SHORT = "32 bits"
    WHOLE = "64 bits"
    WIDE = "128 bits"
    DOUBLE = "double"
    TEXT = "text"
    CODED = "one of the declared texts, in their order"
    DATE = "date"
    TIMESTAMP = "timestamp"
    INTERVAL = "interval"
    ROW = "several columns as one"


OF_KIND = {
    Kind.BOOLEAN: Type.BOOLEAN,
    Kind.INTEGER: Type.WHOLE,
    Kind.DECIMAL: Type.DOUBLE,
    Kind.TEXT: Type.TEXT,
    Kind.DATE: Type.DATE,
    Kind.TIMESTAMP: Type.TIMESTAMP,
}
"""What each kind is in a statement."""

_NUMBERS = (Type.NULL, Type.SHORT, Type.WHOLE, Type.WIDE, Type.DOUBLE)
_NAMED = {
    "BOOLEAN": Type.BOOLEAN,
    "INT": Type.SHORT,
    "BIGINT": Type.WHOLE,
    "INT128": Type.WIDE,
    "DOUBLE": Type.DOUBLE,
    "VARCHAR": Type.TEXT,
    "TEXT": Type.TEXT,
    "DATE": Type.DATE,
    "TIMESTAMP": Type.TIMESTAMP,
}


@dataclass(frozen=True, slots=True)
class Typed:
    """A node in the words of an engine.

    ``values`` are the only texts that it can be, if they are declared; ``constant`` what it is,
    if that is known; ``form`` the pattern that a text has unless it is empty; ``plain`` says that
    it costs nothing to write it twice, ``together`` that it is about several rows (an aggregate,
    a window) and must stay where it is written.
    """

    text: str
    type: Type
    values: tuple[str, ...] | None = None
    constant: int | float | str | None = None
    form: str | None = None
    plain: bool = False
    together: bool = False


Columns = Mapping[str, Typed]
"""The columns of a step: what each is, apart from its text."""

Scope = Mapping[str | None, Columns]
"""What names mean: the columns of each alias, and of all together under None."""

Writer = Callable[["Printer", Sequence[Typed]], Typed]


def refuse(engine: str, what: str) -> NoReturn:
    """This engine has no words that mean the same."""
    raise QuestionRefusal(
        "Q60",
        f"the engine {engine} does not compute {what}.",
        why="another meaning would be another answer than the one that was priced, and a value "
        "of one person on which an engine fails would show that they are there.",
        fix="ask without it, or have the curator use the engine duckdb; docs/engines.md lists "
        "what each engine refuses.",
    )


def common_type(types: Iterable[Type]) -> Type:
    """The type of a value that comes from one of several."""
    found = Type.NULL
    for one in types:
        if found in _NUMBERS and one in _NUMBERS:
            found = _NUMBERS[max(_NUMBERS.index(found), _NUMBERS.index(one))]
        elif found is Type.NULL or {found, one} == {Type.TEXT, Type.CODED}:
            found = Type.TEXT if found is not Type.NULL else one
        elif one not in (found, Type.NULL):
            raise TypeError(f"{found} and {one}")
    return found


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
            text = self._qualified(query, scope, picked, f"{source}{rest}", columns)
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
            found[name] = replace(one, values=_either([one, other]))
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

    def _qualified(
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
        return f"\nORDER BY {self._ordered(order, {None: columns})}" if order else ""

    def _ordered(self, order: exp.Order, scope: Scope) -> str:
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
            way = {("INNER", ""): "INNER", ("", "LEFT"): "LEFT", ("", "FULL"): "FULL"}.get(
                (kind, side)
            )
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
        write = _NODES.get(type(node))
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
        return _combine(f"{a.text} {sign} {b.text}", Type.BOOLEAN, a, b)

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
        if type_ not in _NUMBERS:
            self.refuse(f"'{sign}' of {a.type.value} and {b.type.value}")
        if type_ is Type.DOUBLE:
            return self.of_doubles(sign, a, b)
        return _combine(f"{a.text} {sign} {b.text}", type_, a, b)

    def of_doubles(self, sign: str, a: Typed, b: Typed) -> Typed:
        """``+``, ``-``, ``*`` or ``/`` of two doubles, as IEEE 754 says; no value may fail."""
        return _combine(f"{a.text} {sign} {b.text}", Type.DOUBLE, a, b)

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
        wanted = _NAMED.get(to.this.value)
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
        if isinstance(value.constant, int) and wanted in _NUMBERS:
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

    def filtered(self, node: exp.Filter, scope: Scope) -> Typed:
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
            inside.append(f"ORDER BY {self._ordered(node.args['order'], scope)}")
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
        return _combine(f"{text} END", type_, *conditions, *results, values=_either(results))


def _name_of(node: Node) -> str:
    return type(node).__name__


def _forget(value: Typed) -> Typed:
    """What remains of a value as a column of a step."""
    return Typed("", value.type, value.values)


def _combine(text: str, type_: Type, *parts: Typed, values: tuple[str, ...] | None = None) -> Typed:
    return Typed(text, type_, values, together=any(part.together for part in parts))


def _either(results: Sequence[Typed]) -> tuple[str, ...] | None:
    """The texts that one of several values can be."""
    known = [one.values for one in results if one.type is not Type.NULL]
    if not known or None in known:
        return None
    if all(values == known[0] for values in known):
        return known[0]
    return tuple(dict.fromkeys(text for values in known for text in values or ()))


def _frame(spec: exp.WindowSpec) -> str:
    ends = []
    for end in ("start", "end"):
        place, side = spec.args[end], spec.args.get(f"{end}_side")
        word = place if isinstance(place, str) else place.name
        ends.append(f"{word} {side}" if side else word)
    return f"ROWS BETWEEN {ends[0]} AND {ends[1]}"


# --- what every engine writes alike ---------------------------------------------------------------


def _infix(sign: str) -> Callable[[Printer, Node, Scope], Typed]:
    def write(printer: Printer, node: Node, scope: Scope) -> Typed:
        if sign == ">>" and node.this.name == "MD5_NUMBER_LOWER":
            return _digest(printer, node, scope)
        a, b = printer.node(node.this, scope), printer.node(node.expression, scope)
        match sign:
            case "AND" | "OR":
                return _combine(f"{a.text} {sign} {b.text}", Type.BOOLEAN, a, b)
            case "+" | "-" | "*":
                return printer.arithmetic(sign, a, b)
            case "/":
                if a.type is not Type.DOUBLE or b.type is not Type.DOUBLE:
                    printer.refuse(f"'/' of {a.type.value} and {b.type.value}")
                return printer.of_doubles(sign, a, b)
            case "//":
                return printer.quotient(a, b)
            case "%":
                return printer.remainder(a, b)
            case ">>":
                return printer.shift_right(a, b)
            case "&":
                return printer.last_bits(a, b)
            case "||":
                return _combine(f"{a.text} || {b.text}", Type.TEXT, a, b)
            case _:
                return printer.compare(sign, a, b)

    return write


def _digest(printer: Printer, node: Node, scope: Scope) -> Typed:
    """The one number that is made of a text: see :mod:`discreet.engine.duckdb.hashing`."""
    if node.expression.name != "33":
        printer.refuse("other bits of a text's MD5")
    return printer.digest(printer.node(node.this.expressions[0], scope))


def _is_null(printer: Printer, node: Node, scope: Scope) -> Typed:
    if not isinstance(node.args["expression"], exp.Null):
        printer.refuse("IS")
    value = printer.node(node.this, scope)
    return _combine(f"{value.text} IS NULL", Type.BOOLEAN, value)


def _is_among(printer: Printer, node: Node, scope: Scope) -> Typed:
    if not node.expressions or node.args.get("query") or node.args.get("unnest"):
        printer.refuse("IN")
    first, *others = printer.alike(
        *(printer.node(n, scope) for n in (node.this, *node.expressions))
    )
    listed = ", ".join(other.text for other in others)
    return _combine(f"{first.text} IN ({listed})", Type.BOOLEAN, first)


def _between(printer: Printer, node: Node, scope: Scope) -> Typed:
    value, low, high = printer.alike(
        *(printer.node(n, scope) for n in (node.this, node.args["low"], node.args["high"]))
    )
    return _combine(f"{value.text} BETWEEN {low.text} AND {high.text}", Type.BOOLEAN, value)


def _not(printer: Printer, node: Node, scope: Scope) -> Typed:
    value = printer.node(node.this, scope)
    return _combine(f"NOT ({value.text})", Type.BOOLEAN, value)


def _negate(printer: Printer, node: Node, scope: Scope) -> Typed:
    value = printer.node(node.this, scope)
    return _combine(f"-({value.text})", value.type, value)


def _like(printer: Printer, node: Node, scope: Scope) -> Typed:
    value, pattern = printer.node(node.this, scope), printer.node(node.expression, scope)
    if not isinstance(pattern.constant, str):
        printer.refuse("LIKE with a pattern that is no plain constant")
    return _combine(printer.like(value, pattern.constant), Type.BOOLEAN, value)


def _coalesce(printer: Printer, node: Node, scope: Scope) -> Typed:
    values = [printer.node(one, scope) for one in (node.this, *node.expressions)]
    return _call_alike("COALESCE")(printer, values)


_NODES: dict[type[Node], Callable[[Printer, Any, Scope], Typed]] = {
    exp.Column: lambda p, n, s: p.column(n, s),
    exp.Paren: lambda p, n, s: p.parenthesis(n, s),
    exp.Literal: lambda p, n, _: p.literal(n),
    exp.Boolean: lambda _p, n, _s: Typed("TRUE" if n.this else "FALSE", Type.BOOLEAN, plain=True),
    exp.Null: lambda _p, _n, _s: Typed("NULL", Type.NULL, plain=True),
    exp.Cast: lambda p, n, s: p.cast_node(n, s),
    exp.TryCast: lambda p, n, s: p.cast_node(n, s),
    exp.Case: lambda p, n, s: p.case(n, s),
    exp.Anonymous: lambda p, n, s: p.call(n, s),
    exp.Coalesce: _coalesce,
    exp.Count: lambda p, n, s: p.count(n, s),
    exp.Sum: lambda p, n, s: p.total(p.node(n.this, s)),
    exp.Filter: lambda p, n, s: p.filtered(n, s),
    exp.Window: lambda p, n, s: p.window(n, s),
    exp.RowNumber: lambda _p, _n, _s: Typed("ROW_NUMBER()", Type.WHOLE, together=True),
    exp.Is: _is_null,
    exp.In: _is_among,
    exp.Between: _between,
    exp.Not: _not,
    exp.Neg: _negate,
    exp.Like: _like,
    exp.And: _infix("AND"),
    exp.Or: _infix("OR"),
    exp.EQ: _infix("="),
    exp.NEQ: _infix("<>"),
    exp.LT: _infix("<"),
    exp.LTE: _infix("<="),
    exp.GT: _infix(">"),
    exp.GTE: _infix(">="),
    exp.Add: _infix("+"),
    exp.Sub: _infix("-"),
    exp.Mul: _infix("*"),
    exp.Div: _infix("/"),
    exp.IntDiv: _infix("//"),
    exp.Mod: _infix("%"),
    exp.BitwiseRightShift: _infix(">>"),
    exp.BitwiseAnd: _infix("&"),
    exp.DPipe: _infix("||"),
}
"""Every node that a statement may have."""


def _call_alike(name: str) -> Writer:
    """A function whose arguments and result are of one type."""

    def write(printer: Printer, values: Sequence[Typed]) -> Typed:
        values = printer.alike(*values)
        type_ = common_type(value.type for value in values)
        text = f"{name}({', '.join(value.text for value in values)})"
        known = _either(values) if name == "COALESCE" else None
        return _combine(text, type_, *values, values=known)

    return write


def call_as(name: str, type_: Type) -> Writer:
    """A function of that name, whose result is of a type."""

    def write(_: Printer, values: Sequence[Typed]) -> Typed:
        return _combine(f"{name}({', '.join(value.text for value in values)})", type_, *values)

    return write


def _extreme(name: str) -> Writer:
    return lambda printer, values: printer.extreme(name, values[0])


def _first(name: str) -> Writer:
    """A window function whose result is one of its first argument's values."""

    def write(_: Printer, values: Sequence[Typed]) -> Typed:
        text = f"{name}({', '.join(value.text for value in values)})"
        return replace(values[0], text=text, plain=False, constant=None, together=True)

    return write


FUNCTIONS: dict[str, Writer] = {
    "COALESCE": _call_alike("COALESCE"),
    "LEAST": _call_alike("LEAST"),
    "GREATEST": _call_alike("GREATEST"),
    "SUM": lambda p, v: p.total(v[0]),
    "COUNT": lambda _, v: Typed(f"COUNT({v[0].text if v else '*'})", Type.WHOLE, together=True),
    "MIN": _extreme("MIN"),
    "MAX": _extreme("MAX"),
    "RANK": lambda *_: Typed("RANK()", Type.WHOLE, together=True),
    "DENSE_RANK": lambda *_: Typed("DENSE_RANK()", Type.WHOLE, together=True),
    "ROW_NUMBER": lambda *_: Typed("ROW_NUMBER()", Type.WHOLE, together=True),
    "FIRST_VALUE": _first("FIRST_VALUE"),
    "LAST_VALUE": _first("LAST_VALUE"),
    "ENUM_CODE": lambda p, v: p.place(v[0]),
    "ROW": call_as("ROW", Type.ROW),
}
"""Functions that every engine writes alike, by the name that the tree has for them."""


__all__ = [
    "FUNCTIONS", "OF_KIND", "Columns", "Printer", "Scope", "Type", "Typed", "Writer", "call_as",
    "common_type", "refuse",
]  # fmt: skip
