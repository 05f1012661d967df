"""Statements: which SELECTs ask a question, and what stands around them.

A SELECT that aggregates rows with owners is a question; one that reads answers, public tables or
nothing at all is computed after the release (:mod:`~discreet.question.sql.released`).  Each
question is read as if it had been asked alone and leaves a table in its place; names in what
stands around it are then resolved by the engine, as in any SQL.  A question that holds in itself
what is computed after its release is taken apart first (:mod:`~discreet.question.sql.lifting`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.exact.records import dataclass
from discreet.question.offer import Offer
from discreet.question.question import Question, check_measured
from discreet.question.sql import released
from discreet.question.sql.accounts import ACCOUNT
from discreet.question.sql.aggregates import has_aggregates
from discreet.question.sql.bans import READ_ONLY
from discreet.question.sql.dialect import Reader, check_allowed
from discreet.question.sql.intervals import EndsPusher, has_ends
from discreet.question.sql.lifting import Lifted, is_mixed, select_all
from discreet.question.sql.normalize import normalize
from discreet.question.sql.options import read_offer
from discreet.question.sql.questions import (
    group_distinct,
)
from discreet.question.sql.scalars import column
from discreet.question.sql.scope import (
    check_name,
    find_name,
    list_names,
    resolve_output,
    suggest_name,
)
from discreet.question.sql.simplify import simplify
from discreet.question.sql.sources import SHAPES, CommonTable, Frame, Rows, read_rows
from discreet.question.sql.subqueries import read_subquery
from discreet.question.sql.tracing import trace
from discreet.question.statement import (
    ACCOUNT_COLUMNS,
    MOST_QUESTIONS,
    Levels,
    Statement,
    account_name,
    answer_name,
    group_name,
    interval_name,
    name_ends,
    public_name,
)

MOST_READ = 64
"""How many tables what stands around questions may read, each as often as it is read."""


class Reads(StrEnum):
    """What a query reads, and so what it is."""

    ROWS = "rows"
    """Rows with owners, not yet aggregated over them."""
    QUESTION = "question"
    """The same, aggregated: a question."""
    RELEASED = "released"
    """Answers of questions."""
    PUBLIC = "public"
    """Public tables, constants, or nothing."""


@dataclass(frozen=True, slots=True)
class Common:
    """A common table expression, and what it reads."""

    reads: Reads
    table: CommonTable
    weight: int = 1  # how many tables it reads, each as often as it is read

    @classmethod
    def of(cls, query: exp.Expr, reads: Reads, visible: Names) -> Common:
        """The one of ``query``, which can see ``visible``."""
        return cls(reads, CommonTable(query, {name: c.table for name, c in visible.items()}))


Names = Mapping[str, Common]


Ask = Callable[[exp.Select, Frame], Question]
"""Reads one question by itself."""


def read_statement(tree: exp.Expr, reader: Reader, ask: Ask) -> Statement | None:
    """The statement that ``tree`` is; None if it is one question, or none at all."""
    query = _unwrap(tree)
    made = StatementReader(reader, ask)
    # Looked for in the text first: most questions ask for none.
    if "interval_" in reader.text.lower() and isinstance(query, exp.Query) and has_ends(query):
        query = query.copy()
        made.push_ends(query)
    if not isinstance(query, exp.Query) or not made.stands_around(query):
        return None
    return made.read(query)


def _unwrap(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Subquery) and node.args.get("alias") is None:
        if {name for name, value in node.args.items() if value} != {"this"}:
            return node
        node = node.this
    return node


class StatementReader:
    """A statement being read: the questions found so far, and the public tables."""

    def __init__(self, reader: Reader, ask: Ask) -> None:
        self.reader = reader
        self._ask = ask
        # A rewriting is a whole statement; what is suggested for a part of one would be none.
        self.quiet = replace(reader, accepts=None)
        self.questions: list[Question] = []
        self.tables: dict[str, None] = {}
        self.accounts: dict[str, None] = {}
        self.listed: list[Question] = []
        self.spend: Offer | None = None
        self.levels: list[Levels] = []
        self.ends: dict[tuple[int, str], None] = {}
        self._weight = 0

    def read(self, query: exp.Query) -> Statement:
        """All of it."""
        tree = self._query(query, {}, outermost=True)
        if not self.questions and not self.accounts and not self.listed:
            raise self.reader.refusal(
                "Q26",
                query,
                "the question reads no private table.",
                why="nobody is in what it reads, so nothing is to be protected, or paid.",
                fix="none: nobody is in it, and public tables can be read as they are.",
            )
        if (
            self.spend is not None
            and self.questions
            and all(q.spend is not None for q in self.questions)
        ):
            raise self.reader.refusal(
                "Q28",
                query.args.get("hint") or query,
                "the privacy clause is given twice.",
                why="each question is one release with one price.",
                fix="keep one WITH DIFFERENTIAL_PRIVACY OPTIONS(...).",
            )
        known = {
            self.name(question): tuple(output.name for output in question.outputs)
            for question in self.questions
        }
        for number, column_name in self.ends:
            table = interval_name(number)
            before = known.get(table, known[answer_name(number)])
            known[table] = (*before, *name_ends(column_name))
        for name in self.tables:
            columns = self.reader.schema.tables[name].columns
            known[public_name(name)] = tuple(c.name for c in columns)
        for name in self.accounts:
            known[account_name(name)] = tuple(column.name for column in ACCOUNT_COLUMNS)
        for number, question in enumerate(self.listed):
            known[group_name(number)] = tuple(output.name for output in question.outputs)
        self._check_listed(tree)
        released.check_width(tree, known)
        released.check_names(tree, known, self.reader)
        sql = released.write_above(tree, self.reader)
        return Statement(
            tuple(self.questions),
            sql,
            tuple(self.tables),
            trace(tree, known, self.reader),
            self.spend,
            self.reader.text,
            tuple(self.levels),
            tuple(self.ends),
            accounts=tuple(self.accounts),
            listed=tuple(self.listed),
        )

    def _check_listed(self, tree: exp.Expr) -> None:
        """Refuse to count groups that are declared: who counts groups means those with somebody."""
        names = {group_name(number): question for number, question in enumerate(self.listed)}
        for select in tree.find_all(exp.Select) if names else ():
            start = select.args.get("from_")
            if start is not None and released.aggregates(select):
                for table in start.find_all(exp.Table):
                    if table.name in names:
                        check_measured(names[table.name])

    # --- what a query is ---------------------------------------------------------------------

    def push_ends(self, query: exp.Query) -> None:
        """Move the ends of intervals into the questions whose numbers they are of."""

        def asks(inner: exp.Expr, names: Names) -> bool | None:
            reads = self._reads(inner, {**names, **self._commons(inner, names)})
            return {Reads.QUESTION: True, Reads.RELEASED: False}.get(reads)

        EndsPusher(query, asks).push(query, {}, {}, self._commons)

    def stands_around(self, query: exp.Query) -> bool:
        """Whether there is anything around the question, or more than one."""
        names = self._commons(query, {})
        if any(common.reads is not Reads.ROWS for common in names.values()):
            return True
        reads = self._reads(query, names)
        if reads is Reads.QUESTION and isinstance(query, exp.Select):
            return is_mixed(query)
        return reads is Reads.RELEASED

    def reads(self, query: exp.Expr) -> Reads:
        """What a query reads that stands by itself."""
        return self._reads(query, {})

    def read_public(self, query: exp.Expr) -> exp.Expr:
        """A query of public tables alone, in the words of the engine; of no question."""
        return self._query(query, {})

    def _reads(self, query: exp.Expr, names: Names) -> Reads:
        query = _unwrap(query)
        if isinstance(query, exp.SetOperation):
            names = {**names, **self._commons(query, names)}
            sides = {self._reads(query.this, names), self._reads(query.expression, names)}
            if sides == {Reads.ROWS}:
                return Reads.ROWS
            return Reads.PUBLIC if sides == {Reads.PUBLIC} else Reads.RELEASED
        if not isinstance(query, exp.Select):
            return Reads.PUBLIC
        names = {**names, **self._commons(query, names)}
        kinds = {self._item_reads(item, names) for item in _sources(query)}
        if Reads.ROWS in kinds:
            return Reads.QUESTION if self._asks(query, names) else Reads.ROWS
        inside = (self._reads(part, names) for part in _subqueries(query))
        if Reads.RELEASED in kinds or any(reads is not Reads.PUBLIC for reads in inside):
            return Reads.RELEASED
        return Reads.PUBLIC

    def _item_reads(self, item: exp.Expr, names: Names) -> Reads:
        if isinstance(item, exp.Subquery):
            inner = item.this
            if isinstance(inner, exp.Query):
                found = self._reads(inner, names)
            else:
                parts = [inner, *(join.this for join in inner.args.get("joins") or ())]
                kinds = {self._item_reads(part, names) for part in parts}
                order = (Reads.ROWS, Reads.RELEASED, Reads.PUBLIC)
                found = next(kind for kind in order if kind in kinds)
        elif (
            isinstance(item, exp.Table)
            and item.this.name.upper() in SHAPES
            and item.this.args.get("expressions")
        ):
            found = Reads.ROWS  # DEGREES(friends, 50): of people, as the table is
        elif item.meta.get(ACCOUNT):
            found = Reads.RELEASED  # free, as what is released
        elif isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier):
            common = find_name(item.name, names, item, self.reader)
            if common is not None:
                found = names[common].reads
            else:
                tables = self.reader.schema.tables
                key = find_name(item.name, tables, item, self.reader)
                found = Reads.PUBLIC if key is None or tables[key].public else Reads.ROWS
        else:
            return Reads.PUBLIC
        return Reads.RELEASED if found is Reads.QUESTION else found

    def _asks(self, select: exp.Select, names: Names) -> bool:
        """Whether it aggregates over people: a GROUP BY of the unit keeps each to themselves."""
        if not has_aggregates(select):
            if select.args.get("distinct") is None:
                return False
            select = group_distinct(select.copy())  # the keys alone are a question, too
        group = select.args.get("group")
        keys = group.expressions if group is not None else ()
        if not keys:
            return True
        try:
            rows = self.read_rows(select, names)
            trees = [
                normalize(resolve_output(node, select, rows.scope), rows.scope, self.quiet)
                for node in keys
            ]
        except QuestionRefusal:
            return True  # it is refused where it is read
        return not (rows.unit and all(u is not None and column(u) in trees for u in rows.unit))

    def _commons(self, query: exp.Expr, names: Names) -> dict[str, Common]:
        """The names that the WITH of ``query`` adds."""
        clause = query.args.get("with_")
        found: dict[str, Common] = {}
        for cte in clause.expressions if clause is not None else ():
            seen = {**names, **found}
            found[cte.alias] = Common.of(cte.this, self._reads(cte.this, seen), seen)
        return found

    def read_rows(self, select: exp.Select, names: Names) -> Rows:
        """What ``select`` reads, before any condition: whose the rows are, and their columns."""
        plain: exp.Select = _without(select, *_ABOVE_ROWS).copy()
        simplify(plain, self.quiet)
        check_allowed(plain, self.quiet)
        return read_rows(plain, self.frame(names))

    def frame(self, names: Names) -> Frame:
        """Where a question stands: the common table expressions that it can read."""
        commons = {name: common.table for name, common in names.items()}
        return Frame(self.quiet, read_subquery, commons)

    # --- around the questions ----------------------------------------------------------------

    def _query(self, query: exp.Expr, names: Names, *, outermost: bool = False) -> exp.Expr:
        """``query`` over released numbers, every question in it read and replaced."""
        query = _unwrap(query)
        if isinstance(query, exp.Values):
            return self.rebuild(query, names)
        if not isinstance(query, exp.Select | exp.SetOperation):
            raise self._no_query(query)
        inside, commons = self._with(query, names)
        if isinstance(query, exp.Select) and self._reads(query, inside) in (
            Reads.QUESTION,
            Reads.ROWS,
        ):
            found: exp.Expr = self._question(query, inside, outermost=outermost)
        else:
            found = self._around(query, inside, outermost=outermost)
        self._check_all_read(query, inside)
        commons = _drop_unread(commons, found)
        if commons:
            found.set("with_", exp.With(expressions=commons))
        return found

    def _around(self, query: exp.Query, names: Names, *, outermost: bool) -> exp.Expr:
        clause = query.args.get("hint")
        if clause is not None:
            if not outermost:
                raise self.reader.refusal(
                    "Q28",
                    clause,
                    "the privacy clause stands in a question, or in the outermost SELECT.",
                    why="the offer is made for each question, or for all of them together.",
                    fix="put WITH DIFFERENTIAL_PRIVACY OPTIONS(...) there.",
                )
            self.spend = read_offer(clause, self.reader)
        if isinstance(query, exp.SetOperation):
            sides = {name: self._side(query.args[name], names) for name in ("this", "expression")}
            return self.rebuild(query, names, without=("with_",), given=sides)
        return self.rebuild(query, names, without=("with_", "hint"))

    def _side(self, side: exp.Expr, names: Names) -> exp.Expr:
        """One side of a set operation; in brackets, where it stood in brackets."""
        found = self._query(side, names)
        return exp.Subquery(this=found) if isinstance(side, exp.Subquery) else found

    def _with(self, query: exp.Query, names: Names) -> tuple[dict[str, Common], list[exp.Expr]]:
        """The names in sight inside ``query``, and the WITH of what stands around questions."""
        clause = query.args.get("with_")
        inside: dict[str, Common] = dict(names)
        trees: list[exp.Expr] = []
        if clause is None:
            return inside, []
        if clause.args.get("recursive"):
            check_allowed(clause, self.reader)
        for cte in clause.expressions:
            for part in (cte, cte.args["alias"]):
                released.check_above(part, self.reader)
            name = check_name(cte.args["alias"].this, self.reader)
            if find_name(name, [*self.reader.schema.tables, *inside], cte, self.reader):
                raise self.reader.refusal(
                    "Q8",
                    cte.args["alias"],
                    f"'{name}' names two things.",
                    why="it must be certain whose rows are read.",
                    fix="give the common table expression another name.",
                )
            reads = self._reads(cte.this, inside)
            visible = dict(inside)
            inside[name] = Common.of(cte.this, reads, visible)
            if reads is not Reads.ROWS:
                alias = self.rebuild(cte.args["alias"], visible)
                before, self._weight = self._weight, 0
                trees.append(exp.CTE(this=self._query(cte.this, visible), alias=alias))
                inside[name] = replace(inside[name], weight=self._weight)
                self._weight = before  # it counts where it is read
        return inside, trees

    def _check_all_read(self, query: exp.Expr, names: Names) -> None:
        clause = query.args.get("with_")
        for cte in clause.expressions if clause is not None else ():
            if not names[cte.alias].table.used:
                raise self.reader.refusal(
                    "Q29",
                    cte.args["alias"],
                    f"'{cte.alias}' is never read.",
                    why="it would be paid for, or was perhaps meant to have an effect.",
                    fix="leave it out, or read it in FROM.",
                )

    def rebuild(
        self,
        node: exp.Expr,
        names: Names,
        *,
        without: tuple[str, ...] = (),
        given: Mapping[str, exp.Expr] | None = None,
        part: Callable[[exp.Expr], exp.Expr] | None = None,
    ) -> exp.Expr:
        """A copy of ``node``, checked, with ``part`` made of each of its parts."""
        make = part or (lambda child: self.part(child, names))
        checked = _without(node, *without) if without else node
        released.check_above(checked, self.reader)
        made: dict[str, Any] = {}
        for name, value in node.args.items():
            if name in without or name == "_type":
                continue
            if given is not None and name in given:
                made[name] = given[name]
            elif isinstance(value, list):
                made[name] = [make(v) if isinstance(v, exp.Expr) else v for v in value]
            else:
                made[name] = make(value) if isinstance(value, exp.Expr) else value
        return released.translate(type(node)(**made), self.reader)

    def part(self, node: exp.Expr, names: Names) -> exp.Expr:
        """A part of what stands around the questions."""
        if isinstance(node, exp.Table):
            return self._table(node, names)
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
            query = {"this": self._query(node.this, names)}
            return self.rebuild(node, names, given=query)
        if isinstance(node, exp.Query) and not isinstance(node, exp.Subquery | exp.Values):
            return self._query(node, names)
        return self.rebuild(node, names)

    def _table(self, node: exp.Table, names: Names) -> exp.Expr:
        """A table in FROM: a common table expression, or a public table."""
        released.check_above(node, self.reader)
        tables = self.reader.schema.tables
        common = table = None
        account = node.meta.get(ACCOUNT)
        if account is None and isinstance(node.this, exp.Identifier):
            common = find_name(node.name, names, node, self.reader)
            table = None if common else find_name(node.name, tables, node, self.reader)
        if account is not None:
            self.accounts[account] = None
            self._count_read()
            read, table = account_name(account), node.name
        elif common is not None:
            names[common].table.used.append(True)
            self._count_read(names[common].weight)
            read = common
        elif table is not None and tables[table].public:
            self.tables[table] = None
            self._count_read()
            read = public_name(table)
        else:
            raise self.reader.refusal(
                "Q6",
                node,
                f"there is no table '{node.name}' around the questions.",
                why="after the release only answers and public tables can be read.",
                fix=f"{suggest_name(node.name, tables)}the tables are {list_names(tables)}.",
            )
        alias = node.args.get("alias")
        named = (
            exp.TableAlias(this=exp.to_identifier(common or table, quoted=True))
            if alias is None
            else self.rebuild(alias, names)
        )
        return exp.Table(this=exp.to_identifier(read, quoted=True), alias=named)

    def _no_query(self, node: exp.Expr) -> QuestionRefusal:
        return self.reader.refusal(
            "Q5",
            node,
            "this is not a SELECT.",
            why="analysts read statistics; they change nothing and set nothing.",
            fix=READ_ONLY,
        )

    # --- questions ---------------------------------------------------------------------------

    def _question(self, select: exp.Select, names: Names, *, outermost: bool) -> exp.Select:
        """What reads the answer of a question, in its place."""
        if is_mixed(select):
            return Lifted(self, select, names, outermost=outermost).read()
        return select_all(self.name(self.add(_without(select, "with_"), names)))

    def add(self, select: exp.Select, names: Names) -> Question:
        """The question that ``select`` asks; one that was asked before is not asked again."""
        self._count_read()
        question = self._ask(select, self.frame(names))
        kept = self.listed if question.is_listed else self.questions
        if question not in kept:
            kept.append(question)
        if len(self.questions) + len(self.listed) > MOST_QUESTIONS:
            raise QuestionRefusal(
                "Q3",
                f"the statement asks more than {MOST_QUESTIONS} questions.",
                why="each is priced and released by itself, and so many would be noise.",
                fix="ask for fewer at once.",
            )
        return question

    def _count_read(self, weight: int = 1) -> None:
        """Refuse to read so many tables: names that read each other twice double every time."""
        self._weight += max(weight, 1)
        if self._weight > MOST_READ:
            raise QuestionRefusal(
                "Q3",
                f"what stands around the questions reads more than {MOST_READ} tables, each as "
                "often as it is read.",
                why="binding it is free, so what it takes is limited.",
                fix="ask for less at once.",
            )

    def name(self, question: Question) -> str:
        """The table that holds the answer of a question."""
        if question.is_listed:
            return group_name(self.listed.index(question))
        return answer_name(self.questions.index(question))


def _drop_unread(commons: list[exp.Expr], query: exp.Expr) -> list[exp.Expr]:
    """The WITH of what is read after the release: a public one may be read by questions alone."""
    kept: list[exp.Expr] = []
    for cte in reversed(commons):
        read = (table for part in (query, *kept) for table in part.find_all(exp.Table))
        if any(table.name.casefold() == cte.alias.casefold() for table in read):
            kept.insert(0, cte)
    return kept


def _sources(select: exp.Select) -> list[exp.Expr]:
    start = select.args.get("from_")
    joins = select.args.get("joins") or ()
    return [*([start.this] if start is not None else ()), *(join.this for join in joins)]


def _subqueries(select: exp.Select) -> Iterator[exp.Query]:
    """The queries inside the expressions of ``select``."""
    for name, value in select.args.items():
        if name in ("from_", "with_"):
            continue
        for part in value if isinstance(value, list) else [value]:
            inside = part.args.get("on") if isinstance(part, exp.Join) else part
            if isinstance(inside, exp.Expr):
                for node in inside.walk(prune=lambda n: isinstance(n, exp.Query)):
                    if isinstance(node, exp.Query):
                        yield node


def _without(node: exp.Expr, *arguments: str) -> Any:
    """A node like ``node`` without some of its arguments; its parts keep their parents."""
    made = type(node)()
    made.args = {name: value for name, value in node.args.items() if name not in arguments}
    return made


_ABOVE_ROWS = (
    "where", "with_", "expressions", "having", "order", "limit", "offset", "qualify", "windows",
    "distinct", "group", "hint",
)  # fmt: skip
"""The clauses of a SELECT that are not about which rows it reads."""
