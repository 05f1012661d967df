"""A question with something above it, taken apart.

Windows over its aggregates, QUALIFY, DISTINCT, OFFSET, sub-queries that are questions: such a
SELECT becomes a question, of its keys and aggregates, and a SELECT around it.  ROLLUP, CUBE and
GROUPING SETS are one question for each set of keys; what is asked of fewer keys may be added up
from the answer of more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, product
from math import prod
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.question.functions import FUNCTIONS
from discreet.question.sql import released
from discreet.question.sql.aggregates import aggregate_name, has_aggregates
from discreet.question.sql.dialect import Reader, check_allowed
from discreet.question.sql.intervals import ENDS, is_end
from discreet.question.sql.normalize import SPECIAL, SYNONYMS, normalize
from discreet.question.sql.options import read_options
from discreet.question.sql.questions import (
    GroupNames,
    default_aggregate,
    default_key,
    find_unused_name,
)
from discreet.question.sql.scalars import column
from discreet.question.sql.scope import check_name, find_name, resolve_output
from discreet.question.sql.sources import Rows
from discreet.question.sql.subqueries import ungrouped_refusal
from discreet.question.statement import Levels, interval_name, name_ends

if TYPE_CHECKING:
    from discreet.question.sql.statements import Names, StatementReader

MOST_SETS = 64
"""How many sets of keys ROLLUP, CUBE and GROUPING SETS may make of one SELECT."""


def _above(select: exp.Select) -> Iterator[exp.Expr]:
    """Every node above the aggregates of ``select``, sub-queries as they stand."""
    parts = [*select.expressions, select.args.get("having"), select.args.get("order")]
    for part in parts:
        if part is not None:
            yield from part.walk(
                prune=lambda n: isinstance(n, exp.Query) or aggregate_name(n) is not None
            )


def _name_tree(tree: exp.Expr, name: str) -> exp.Alias:
    return exp.Alias(this=tree, alias=exp.to_identifier(name, quoted=True))


def select_all(name: str) -> exp.Select:
    """A SELECT of everything in one table."""
    table = exp.Table(this=exp.to_identifier(name, quoted=True))
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=table))


_GROUPINGS = (exp.Rollup, exp.Cube, exp.GroupingSets)


def is_mixed(select: exp.Select) -> bool:
    """Whether a question holds something that is computed after its release."""
    if not has_aggregates(select):
        return False
    if any(select.args.get(name) for name in ("qualify", "windows", "distinct", "offset")):
        return True
    group = select.args.get("group")
    if group is not None and (
        any(isinstance(node, _GROUPINGS) for node in group.expressions)
        or any(group.args.get(name) for name in ("rollup", "cube", "grouping_sets"))
    ):
        return True
    return any(_is_above_only(node) for node in _above(select))


def _is_above_only(node: exp.Expr) -> bool:
    """Whether a node has a meaning over released numbers, and none in a question."""
    if isinstance(node, exp.Anonymous) and not isinstance(node.this, exp.Identifier):
        name = node.name.lower()
        if is_end(node):
            return True
        known = SYNONYMS.get(name, name) in FUNCTIONS or name in SPECIAL
        return not known and aggregate_name(node) is None and released.is_known(name)
    if isinstance(node, exp.Ordered):
        return bool(node.args.get("nulls_first"))
    return isinstance(node, exp.Window | exp.Query | exp.Exists | exp.ILike)


class Lifted:
    """A SELECT taken apart: its keys and aggregates are the question, the rest is around it."""

    def __init__(
        self, statement: StatementReader, select: exp.Select, names: Names, *, outermost: bool
    ) -> None:
        self._statement = statement
        self._reader = statement.quiet
        self._select = select
        self._names = names
        self._outermost = outermost
        self._rows: Rows = statement.read_rows(select, names)
        self._sets = [
            [self._key(node) for node in keys] for keys in _list_grouping_sets(select, self._reader)
        ]
        self._keys: dict[exp.Expr, exp.Expr] = {
            tree: node for keys in self._sets for tree, node in keys
        }
        self._aggregates: dict[exp.Expr, exp.Expr] = {}
        self._called: dict[exp.Expr, str] = {}
        self._computed: dict[str, exp.Expr] = {}  # by the question itself, which knows margins
        self._values: dict[str, exp.Expr] = {}  # what is asked for besides keys, in order
        self._grouping = False
        self._ends: dict[str, None] = {}  # values whose intervals are read

    def _key(self, node: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
        found = resolve_output(node, self._select, self._rows.scope)
        return normalize(found, self._rows.scope, self._reader), found

    def read(self) -> exp.Select:
        """The SELECT around the question, which is read on the way."""
        select = self._select
        outputs = self._outputs()
        clauses: dict[str, Any] = {
            "expressions": [_name_tree(tree, name) for name, tree in outputs]
        }
        for name in ("having", "qualify"):
            if select.args.get(name) is not None:
                clauses[name] = self._part(select.args[name], aliases=True)
        if select.args.get("order") is not None:
            clauses["order"] = self._order(select.args["order"], {name for name, _ in outputs})
        if select.args.get("windows"):
            clauses["windows"] = [self._part(w, aliases=True) for w in select.args["windows"]]
        for name in ("limit", "offset", "distinct"):
            if select.args.get(name) is not None:
                clauses[name] = self._statement.rebuild(select.args[name], self._names)
        if "having" in clauses:
            clauses["where"] = exp.Where(this=clauses.pop("having").this)
        clauses["from_"] = exp.From(this=self._answers())
        return exp.Select(**clauses)

    # --- what is above -------------------------------------------------------------------------

    def _outputs(self) -> list[tuple[str, exp.Expr]]:
        items = list(enumerate(self._select.expressions))
        taken = {item.alias for _, item in items if isinstance(item, exp.Alias)}
        found: dict[int, tuple[str, exp.Expr]] = {}
        # The ends of an interval come after the number that they are of, wherever they stand.
        for place, item in sorted(items, key=lambda one: _has_end(one[1])):
            if isinstance(item, exp.Alias):
                name = check_name(item.args["alias"], self._reader)
                self._keep_name(item.this, name)
                tree = self._output(item.this, name)
            else:
                tree = self._part(item)
                default = tree.name if isinstance(tree, exp.Column) else f"column_{place + 1}"
                name = find_unused_name(default.replace(".", "_"), taken)
                taken.add(name)
            found[place] = name, tree
        return [found[place] for place, _ in items]

    def _output(self, node: exp.Expr, name: str) -> exp.Expr:
        """One output; arithmetic on aggregates that a question can do is left to it."""
        inside = list(node.walk(prune=lambda n: isinstance(n, exp.Query)))
        bare = aggregate_name(node) is not None or self._find_key(node) is not None
        taken = {called.casefold() for called in (*self._called.values(), *self._computed)}
        if (
            bare
            or len(self._sets) != 1
            or name.casefold() in taken
            or any(_is_above_only(part) for part in inside)
            or any(isinstance(part, exp.Anonymous) and _is_grouping(part) for part in inside)
            or not any(aggregate_name(part) is not None for part in inside)
        ):
            return self._part(node)
        self._computed[name] = self._values[name] = node
        return column(name)

    def _keep_name(self, node: exp.Expr, name: str) -> None:
        """A key or an aggregate as it is has the name that the analyst gives it."""
        if aggregate_name(node) is not None:
            tree = GroupNames(self._rows.scope, self._rows.unit).aggregate(node)
        else:
            tree = self._find_key(node)
        lowered = {called.casefold() for called in self._called.values()}
        if tree is not None and tree not in self._called and name.casefold() not in lowered:
            self._called[tree] = name

    def _order(self, clause: exp.Order, outputs: set[str]) -> exp.Order:
        items = []
        for item in clause.expressions:
            node = item.this
            bare = isinstance(node, exp.Column) and not node.table
            named = find_name(node.name, outputs, node, self._reader) if bare else None
            if named is not None:
                tree: exp.Expr = column(named)
            elif isinstance(node, exp.Literal):
                tree = node.copy()
            else:
                tree = self._part(node, aliases=True)
            released.check_above(item, self._reader)
            items.append(exp.Ordered(**{**item.args, "this": tree}))
        return exp.Order(expressions=items)

    def _part(self, node: exp.Expr, *, aliases: bool = False) -> exp.Expr:
        """``node`` over the answer: keys and aggregates are its columns."""

        def inner(child: exp.Expr) -> exp.Expr:
            return self._part(child, aliases=aliases)

        if isinstance(node, exp.Window) and not isinstance(node.this, exp.Identifier):
            given = {"this": self._window_function(node.this, inner)}
            return self._statement.rebuild(node, self._names, given=given, part=inner)
        if isinstance(node, exp.Query) or (isinstance(node, exp.In) and node.args.get("query")):
            if isinstance(node, exp.In):
                return self._statement.rebuild(node, self._names, part=inner)
            return self._statement.part(node, self._names)
        if aggregate_name(node) is not None:
            return self._aggregate(node)
        if isinstance(node, exp.Anonymous) and _is_grouping(node):
            return self._lift_grouping(node)
        if isinstance(node, exp.Anonymous) and is_end(node):
            return self._end(node)
        key = self._find_key(node)
        if key is not None:
            return column(self._name_of(key, default_key(key) or "key"))
        if isinstance(node, exp.Column):
            return self._column(node, aliases=aliases)
        return self._statement.rebuild(node, self._names, part=inner)

    def _window_function(self, node: exp.Expr, inner: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
        """The function before OVER: of released numbers, though it may have an aggregate's name."""
        if isinstance(node, exp.Filter):
            given = {"this": self._window_function(node.this, inner)}
            return self._statement.rebuild(node, self._names, given=given, part=inner)
        return self._statement.rebuild(node, self._names, part=inner)

    def _find_key(self, node: exp.Expr) -> exp.Expr | None:
        if not self._keys or isinstance(node, exp.Literal | exp.Star):
            return None
        try:
            tree = normalize(node, self._rows.scope, self._reader)
        except (QuestionRefusal, KeyError, AttributeError):
            return None
        return tree if tree in self._keys else None

    def _column(self, node: exp.Column, *, aliases: bool) -> exp.Expr:
        """A column that is no key: the name of an output, where one is visible."""
        if aliases and not node.table:
            known = {i.alias: i.this for i in self._select.expressions if isinstance(i, exp.Alias)}
            alias = find_name(node.name, known, node, self._reader)
            if alias is not None:
                return exp.Paren(this=self._part(known[alias]))
        raise ungrouped_refusal(self._rows.scope.column(node), self._select, self._reader)

    def _aggregate(self, node: exp.Expr) -> exp.Expr:
        tree = GroupNames(self._rows.scope, self._rows.unit).aggregate(node)
        if tree is None:
            raise TypeError("an aggregate is expected")
        self._aggregates.setdefault(tree, node)
        name = self._name_of(tree, default_aggregate(tree))
        self._values.setdefault(name, node)
        return column(name)

    def _name_of(self, tree: exp.Expr, default: str) -> str:
        """What a key or an aggregate is called in the answer."""
        if tree not in self._called:
            taken = {*self._called.values(), *self._computed}
            self._called[tree] = find_unused_name(default, taken)
        return self._called[tree]

    def _lift_grouping(self, node: exp.Anonymous) -> exp.Expr:
        """GROUPING(a, b): a bit for each key that its row is not grouped by."""
        self._grouping = True
        bits: exp.Expr = exp.Literal.number(0)
        for argument in node.expressions:
            key = self._find_key(resolve_output(argument, self._select, self._rows.scope))
            if key is None:
                raise ungrouped_refusal(argument, self._select, self._reader)
            bit = column(_name_grouping(self._name_of(key, default_key(key) or "key")))
            double = exp.Mul(this=bits, expression=exp.Literal.number(2))
            bits = exp.Paren(this=exp.Add(this=double, expression=bit))
        return bits

    def _end(self, node: exp.Anonymous) -> exp.Expr:
        """DP_INTERVAL_LOW(n): an end of the interval of an aggregate, or of an output."""
        name = self._find_measured(node.expressions[0]) if len(node.expressions) == 1 else None
        if name is None:
            raise released.interval_refusal(node, self._reader)
        self._ends[name] = None
        return column(name_ends(name)[ENDS.index(node.name.upper())])

    def _find_measured(self, node: exp.Expr) -> str | None:
        """What the question calls the number that ``node`` is; None if it is not its own."""
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Column) and not node.table:
            known = {i.alias: i.this for i in self._select.expressions if isinstance(i, exp.Alias)}
            alias = find_name(node.name, known, node, self._reader)
            if alias is None or alias in self._computed:
                return alias
            node = known[alias]
        return self._aggregate(node).name if aggregate_name(node) is not None else None

    # --- what is asked -------------------------------------------------------------------------

    def _answers(self) -> exp.Expr:
        """The answer that is read: of one question, or of one for each set of keys."""
        if not self._aggregates and not self._computed:
            raise self._reader.refusal(
                "Q35",
                self._select,
                "nothing is counted or aggregated.",
                why="which groups exist can be told only together with how many are in them.",
                fix="add COUNT(*) to the SELECT list.",
            )
        names = {tree: self._name_of(tree, default_key(tree) or "key") for tree in self._keys}
        clause = self._select.args.get("hint")
        options = None if clause is None else read_options(clause, self._rows, self._reader)
        spend = None if options is None else options.spend
        if self._outermost:
            self._statement.spend, spend = spend, None
        hint = None if options is None else options.within(spend)
        asked = [self._ask(keys, names, hint) for keys in self._sets]
        parts = [part for part, _ in asked]
        self._keep_levels([question for _, question in asked])
        if len(parts) == 1 and not self._grouping:
            start = parts[0].args["from_"].this
            return exp.Table(this=start.this.copy())
        together: exp.Expr = parts[0]
        for part in parts[1:]:
            together = exp.Union(this=together, expression=part, distinct=False)
        alias = exp.TableAlias(this=exp.to_identifier("question.sets", quoted=True))
        return exp.Subquery(this=together, alias=alias)

    def _ask(
        self, keys: list[tuple[exp.Expr, exp.Expr]], names: Mapping[exp.Expr, str], hint: Any
    ) -> tuple[exp.Select, int]:
        """A SELECT of the answer for one set of keys, with all columns; and its question."""
        own = dict(keys)
        items = [(node, names[tree]) for tree, node in own.items()]
        items += [(node, name) for name, node in self._values.items()]
        clauses = {k: v for k, v in self._select.args.items() if k in ("from_", "joins", "where")}
        select = exp.Select()
        select.args = {
            "hint": hint,
            "expressions": [_name_tree(node.copy(), name) for node, name in items],
            **clauses,
        }
        if own:
            select.args["group"] = exp.Group(expressions=[node.copy() for node in own.values()])
        question = self._statement.add(select, self._names)
        columns: list[exp.Expr] = [
            column(name) if tree in own else _name_tree(exp.Null(), name)
            for tree, name in names.items()
        ]
        columns += [column(name) for name in self._values]
        columns += [column(end) for name in self._ends for end in name_ends(name)]
        columns += [
            _name_tree(exp.Literal.number(0 if tree in own else 1), _name_grouping(name))
            for tree, name in names.items()
        ]
        number = self._statement.questions.index(question)
        self._statement.ends |= {(number, name): None for name in self._ends}
        found = select_all(interval_name(number) if self._ends else self._statement.name(question))
        found.set("expressions", columns)
        return found, number

    def _cells(self, question: int) -> int:
        """How many groups a question has, if they are public."""
        keys = self._statement.questions[question].keys
        return prod(len(key.values or ()) for key in keys)

    def _keep_levels(self, questions: list[int]) -> None:
        """Which question is of some of the keys of another: of the one with the fewest groups."""
        sets = {
            number: frozenset(tree for tree, _ in keys)
            for number, keys in zip(questions, self._sets, strict=True)
        }
        if len(sets) < 2:
            return
        most = [n for n, keys in sets.items() if not any(keys < other for other in sets.values())]
        finer = tuple(
            None if number in most else min((o for o in most if keys < sets[o]), key=self._cells)
            for number, keys in sets.items()
        )
        self._statement.levels.append(Levels(tuple(sets), finer))


def _is_grouping(node: exp.Anonymous) -> bool:
    return node.name.lower() in ("grouping", "grouping_id")


def _has_end(node: exp.Expr) -> bool:
    return any(map(is_end, node.walk(prune=lambda n: isinstance(n, exp.Query))))


def _name_grouping(key: str) -> str:
    return f"grouping.{key}"


Nodes = list[exp.Expr]


def _list_grouping_sets(select: exp.Select, reader: Reader) -> list[Nodes]:
    """The sets of keys that GROUP BY names, in order."""
    group = select.args.get("group")
    if group is None:
        return [[]]
    if group.args.get("all") or group.args.get("totals"):
        check_allowed(group, reader)
    elements = [_element_sets(node, reader) for node in group.expressions]
    for name in ("rollup", "cube", "grouping_sets"):
        for node in group.args.get(name) or ():
            if node.expressions:
                elements.append(_element_sets(node, reader))
            else:  # GROUP BY a, b WITH ROLLUP
                whole = type(node)(expressions=[n.copy() for n in group.expressions])
                elements = [_element_sets(whole, reader)]
    _check_sets([len(sets) for sets in elements], reader, group)
    return [[node for part in chosen for node in part] for chosen in product(*elements)]


def _element_sets(node: exp.Expr, reader: Reader) -> list[Nodes]:
    """The sets of keys that one element of GROUP BY names."""
    if isinstance(node, exp.GroupingSets):
        return [found for part in node.expressions for found in _element_sets(part, reader)]
    if isinstance(node, exp.Rollup | exp.Cube):
        parts = [_element_sets(part, reader)[0] for part in node.expressions]
        if isinstance(node, exp.Rollup):
            chosen = [parts[:length] for length in range(len(parts), -1, -1)]
        else:
            _check_sets([2] * len(parts), reader, node)
            lengths = range(len(parts), -1, -1)
            chosen = [list(some) for n in lengths for some in combinations(parts, n)]
        return [[key for part in some for key in part] for some in chosen]
    if isinstance(node, exp.Tuple):
        return [list(node.expressions)]
    while isinstance(node, exp.Paren):
        node = node.this
    return [[node]]


def _check_sets(counts: list[int], reader: Reader, node: exp.Expr) -> None:
    total = 1
    for count in counts:
        total *= count
        if total > MOST_SETS:
            raise reader.refusal(
                "Q3",
                node,
                f"GROUP BY names more than {MOST_SETS} sets of keys.",
                why="each set is a question with a price of its own.",
                fix="name the sets that you need: GROUP BY GROUPING SETS ((a, b), (a), ()).",
            )
