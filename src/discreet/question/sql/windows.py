"""Window functions over one person's own rows: PARTITION BY the unit.

A window that looks at other people's rows is refused.  One that looks at the same person's
(their visit before this one, their first, how many until now) adds a column to their rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.exact.records import dataclass
from discreet.question.domain import Domain, Kind
from discreet.question.expressions import ColumnRef, Expression
from discreet.question.own_rows import (
    MOST_PLACES,
    ORDERED,
    RANKS,
    WINDOW_AGGREGATES,
    window_domain,
)
from discreet.question.relation import UnitWindow
from discreet.question.sql.bans import WINDOW
from discreet.question.sql.dialect import Reader, copy_span
from discreet.question.sql.normalize import keep_unread, normalize
from discreet.question.sql.scalars import Leaf, call, column, read, write
from discreet.question.sql.scope import Scope, find_name

FUNCTIONS = {*ORDERED, *RANKS, *WINDOW_AGGREGATES}
"""What may stand before OVER."""


@dataclass(frozen=True, slots=True)
class WindowNames:
    """Names where windows may stand: columns of the rows, and windows over one person's."""

    scope: Scope
    unit: tuple[str | None, ...]
    named: Mapping[str, exp.Expr] = field(default_factory=dict)  # WINDOW w AS (...)
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)  # in sight of QUALIFY

    def column(self, node: exp.Column) -> exp.Expr:
        """A column of the rows; failing that, what was selected under the name."""
        alias = None if node.table else find_name(node.name, self.aliases, node, self.scope.reader)
        if alias is not None and self.scope.find(node) is None:
            own = WindowNames(self.scope, self.unit, self.named)
            return normalize(self.aliases[alias], own, self.scope.reader)
        return self.scope.column(node)

    def kind_of(self, name: str) -> Kind | None:
        """The kind of a column of the rows."""
        return self.scope.kind_of(name)

    def zone_of(self, name: str) -> str | None:
        """The time zone whose clocks a column shows, if it is declared."""
        return self.scope.zone_of(name)

    def aggregate(self, node: exp.Expr) -> exp.Expr | None:
        """A window in normal form; no other aggregate stands here."""
        if isinstance(node, exp.Window):
            return _normalize_window(node, self)
        return self.scope.aggregate(node)


def find_windows(select: exp.Select) -> bool:
    """Whether a SELECT computes windows over its rows."""
    parts = [*select.expressions, select.args.get("qualify")]
    return any(
        isinstance(node, exp.Window)
        for part in parts
        if part is not None
        for node in part.walk(prune=lambda n: isinstance(n, exp.Query))
    )


def _refusal(node: exp.Expr, what: str, reader: Reader) -> QuestionRefusal:
    return reader.refusal(WINDOW.code, node, what, why=WINDOW.why, fix=WINDOW.fix)


def _normalize_window(node: exp.Window, names: WindowNames) -> exp.Expr:
    reader = names.scope.reader
    over = _follow_name(node, names, reader)
    function = node.this
    if not isinstance(function, exp.Anonymous) or function.name.upper() not in FUNCTIONS:
        raise _refusal(node, "this function is not computed over one person's rows.", reader)

    def inner(part: exp.Expr) -> exp.Expr:
        return normalize(part, names.scope, reader)

    partition = [inner(part) for part in over.args.get("partition_by") or []]
    own = [column(u) for u in names.unit if u is not None]
    if not own or len(own) < len(names.unit) or not all(u in partition for u in own):
        raise _refusal(node, WINDOW.what, reader)
    others = list(dict.fromkeys(p for p in partition if p not in own))
    name = function.name.upper()
    arguments = [
        exp.Star() if isinstance(a, exp.Star) and name == "COUNT" else inner(a)
        for a in function.expressions
    ]
    order = _order(over, names, reader)
    if name in {*RANKS, "NTILE", "LAG", "LEAD"} - {"ROW_NUMBER"} and not order:
        raise _refusal(node, f"{name} needs an ORDER BY in its window.", reader)
    tree = exp.Window(
        this=keep_unread(call(name, *arguments), function),
        partition_by=[*own, *others],
        order=exp.Order(expressions=order) if order else None,
        spec=_spec(node, over, name, reader),
    )
    kept = {"this", "partition_by", "order", "spec", "over", "alias"}
    for part in {id(node): node, id(over): over}.values():
        for argument, value in part.args.items():
            if value and argument not in kept:
                tree.set(f"unread_{argument}", value)
    return copy_span(tree, function)


def _follow_name(node: exp.Window, names: WindowNames, reader: Reader) -> exp.Expr:
    alias = node.args.get("alias")
    if alias is None:
        return node
    found = names.named.get(alias.name.casefold())
    if found is None or node.args.get("partition_by") or node.args.get("order"):
        raise _refusal(node, f"there is no window '{alias.name}'.", reader)
    return found


def _order(over: exp.Expr, names: WindowNames, reader: Reader) -> list[exp.Expr]:
    clause = over.args.get("order")
    found: list[exp.Expr] = []
    for item in clause.expressions if clause is not None else ():
        if item.args.get("nulls_first"):
            raise _refusal(item, "NULLS FIRST is outside the dialect: NULL is last.", reader)
        tree = normalize(item.this, names.scope, reader)
        kept = {k: v for k, v in item.args.items() if k not in ("this", "nulls_first") and v}
        found.append(exp.Ordered(this=tree, **kept))
    return found


def _spec(node: exp.Expr, over: exp.Expr, name: str, reader: Reader) -> exp.WindowSpec | None:
    spec = over.args.get("spec")
    if spec is None:
        if name == "LAST_VALUE" and over.args.get("order") is not None:
            raise _refusal(
                node,
                "LAST_VALUE without a frame is the row itself; say ROWS BETWEEN UNBOUNDED "
                "PRECEDING AND UNBOUNDED FOLLOWING.",
                reader,
            )
        return None
    kind = str(spec.args.get("kind") or "").upper()
    places = [_place(spec, end, node, reader) for end in ("start", "end")]
    if kind == "RANGE":
        if places == [None, 0]:
            return None
        kind = "ROWS" if places == [None, None] else kind
    if kind != "ROWS" or spec.args.get("exclude") or name in {*RANKS, "NTILE", "LAG", "LEAD"}:
        raise _refusal(node, "a frame here is ROWS BETWEEN ... AND ... of an aggregate.", reader)
    first, last = places
    if first is not None and last is not None and first > last:
        raise _refusal(node, "the frame ends before it begins.", reader)
    return write_frame((first, last))


def _place(spec: exp.Expr, end: str, node: exp.Expr, reader: Reader) -> int | None:
    value, side = spec.args.get(end), str(spec.args.get(f"{end}_side") or "").upper()
    if value is None or value == "CURRENT ROW":
        return 0
    if value == "UNBOUNDED" and side == ("PRECEDING" if end == "start" else "FOLLOWING"):
        return None
    text = value.name if isinstance(value, exp.Literal) else ""
    if text.isdigit() and int(text) <= MOST_PLACES and side in ("PRECEDING", "FOLLOWING"):
        return int(text) if side == "FOLLOWING" else -int(text)
    raise _refusal(node, f"a frame reaches over at most {MOST_PLACES:,} rows, or all.", reader)


def write_frame(frame: tuple[int | None, int | None]) -> exp.WindowSpec:
    """A frame in normal form."""
    words: dict[str, object] = {"kind": "ROWS"}
    for end, place in zip(("start", "end"), frame, strict=True):
        if place == 0:
            words[end] = "CURRENT ROW"
            continue
        before = end == "start" if place is None else place < 0
        words[end] = "UNBOUNDED" if place is None else exp.Literal.number(str(abs(place)))
        words[f"{end}_side"] = "PRECEDING" if before else "FOLLOWING"
    return exp.WindowSpec(**words)


# --- meaning and back ----------------------------------------------------------------------


def windows_leaf(
    found: dict[exp.Expr, tuple[str, UnitWindow]],
    unit: tuple[str | None, ...],
    known: Mapping[str, Domain],
    most: int | None,
    reader: Reader,
) -> Leaf:
    """A leaf that gives every window a name of its own, and enters it in ``found``."""

    def leaf(node: exp.Expr) -> Expression | None:
        if not isinstance(node, exp.Window):
            return None
        if node not in found:
            window = _read_window(node, len(unit))
            with reader.at(node):
                window_domain(window, known, most)
            found[node] = f"window_{len(found) + 1}", window
        return ColumnRef(found[node][0])

    return leaf


def _read_window(node: exp.Window, owners: int) -> UnitWindow:
    def meaning(tree: exp.Expr) -> Expression:
        return read(tree, lambda _: None)

    function, spec, clause = node.this, node.args.get("spec"), node.args.get("order")
    arguments = [a for a in function.expressions if not isinstance(a, exp.Star)]
    order = [] if clause is None else clause.expressions
    return UnitWindow(
        function.name.upper(),
        tuple(map(meaning, arguments)),
        tuple(map(meaning, node.args["partition_by"][owners:])),
        tuple((meaning(o.this), bool(o.args.get("desc"))) for o in order),
        None if spec is None else _read_frame(spec),
    )


def _read_frame(spec: exp.Expr) -> tuple[int | None, int | None]:
    found: list[int | None] = []
    for end in ("start", "end"):
        value = spec.args[end]
        number = int(value.name) if isinstance(value, exp.Literal) else 0
        before = spec.args.get(f"{end}_side") == "PRECEDING"
        found.append(None if value == "UNBOUNDED" else -number if before else number)
    return found[0], found[1]


def write_window(window: UnitWindow, unit: tuple[str | None, ...]) -> exp.Window:
    """The normal form of a window over the rows of ``unit``."""
    arguments = [write(e, column) for e in window.arguments]
    if window.function == "COUNT" and not arguments:
        arguments = [exp.Star()]
    order = [
        exp.Ordered(this=write(e, column), desc=True)
        if descending
        else exp.Ordered(this=write(e, column))
        for e, descending in window.order
    ]
    own = [column(u) for u in unit if u is not None]
    return exp.Window(
        this=call(window.function, *arguments),
        partition_by=[*own, *(write(e, column) for e in window.partition)],
        order=exp.Order(expressions=order) if order else None,
        spec=None if window.frame is None else write_frame(window.frame),
    )


def name_windows(select: exp.Select, reader: Reader) -> dict[str, exp.Expr]:
    """The windows that WINDOW w AS (...) names."""
    found: dict[str, exp.Expr] = {}
    for window in select.args.get("windows") or []:
        name = window.this.name.casefold()
        if name in found or window.args.get("alias") is not None:
            raise _refusal(window, "each window has one name, and stands by itself.", reader)
        found[name] = window
    return found
