"""Ask in SQL: from the analyst's text to a question, or a refusal that says what to type.

Four steps.  The text becomes a syntax tree in a deliberately small dialect, and every
node and every argument of it must be on the allow-list
(:mod:`~discreet.question.sql.dialect`).  The tree is brought into one
spelling (:mod:`~discreet.question.sql.normalize`) and given its meaning, from the
outermost SELECT (:mod:`~discreet.question.sql.questions`) inwards: what FROM reads
(:mod:`~discreet.question.sql.sources`, :mod:`~discreet.question.sql.subqueries`), what a
name means there (:mod:`~discreet.question.sql.scope`), aggregates, scalars.  The meaning
is written back as SQL, here, from what was understood alone, and must equal the tree: a
forgotten clause is refused, and can never be answered as if it had not been there.  The
analyst's text goes no further than this package.

What is refused is shown with a question that would be accepted, if a rule of
:mod:`~discreet.question.sql.rewrite` finds one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from discreet.errors import QuestionRefusal, Refusal, Span
from discreet.exact.records import dataclass
from discreet.question.catalogue import Catalogue, Known
from discreet.question.expressions import Expression
from discreet.question.functions import FUNCTIONS
from discreet.question.ownership import unit_columns
from discreet.question.question import Limits, Question
from discreet.question.relation import (
    Filter,
    GraphRows,
    JoinKind,
    OwnerJoin,
    PerUnit,
    Project,
    PublicJoin,
    PublicSource,
    Relation,
    Source,
    Union,
    UnitAggregate,
    UnitJoin,
    Windowed,
)
from discreet.question.sql.aggregates import aggregate_name, is_several, write_aggregate
from discreet.question.sql.bans import READ_ONLY, STARTS
from discreet.question.sql.dialect import (
    Explain,
    PrivacyClause,
    Reader,
    check_allowed,
    check_size,
    depth_refusal,
    parse_trees,
    replace_words,
    tokenize,
    write_text,
)
from discreet.question.sql.normalize import SPECIAL, SYNONYMS
from discreet.question.sql.options import options_tree
from discreet.question.sql.questions import group_distinct, read_question
from discreet.question.sql.scalars import (
    BINARY,
    CHAINS,
    UNARY,
    alias_tree,
    call,
    column,
    conjunction,
    graph_tree,
    is_constant,
    output_tree,
    table_tree,
    write,
    write_constant,
)
from discreet.question.sql.simplify import join_looked_up, name_columns, simplify, spell_out
from discreet.question.sql.sources import Frame
from discreet.question.sql.spelling import check_constants
from discreet.question.sql.subqueries import read_subquery
from discreet.question.sql.windows import write_window
from discreet.question.statement import Statement

MOST_CHARACTERS = 20_000
"""How long a question may be."""

MOST_BRACKETS = 30
"""How many parentheses may be open at once."""

ASKS_THE_ACCOUNT = "estimate_remaining_dp_aggregates"
"""What Snowflake calls the function that asks the account; few do."""

_STARTS = {"SELECT", "WITH", "EXPLAIN", "(", "FROM", "PIVOT"}


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """What the analyst typed: a question or several, to be answered or only explained."""

    question: Question | Statement
    explain: bool = False


def parse(
    text: str,
    known: Known,
    *,
    now: datetime | None = None,
) -> Question:
    """The question that ``text`` asks, or a refusal; looks at no data.

    ``known`` is what is public of the tables: a schema, or a catalogue of one.
    """
    found = _parse(text, known, now, alone=True)
    if found.explain or isinstance(found.question, Statement):
        raise QuestionRefusal(
            "Q5",
            "EXPLAIN asks about a question.",
            why="it shows what a question would cost; it is none itself.",
            fix="leave EXPLAIN out, or ask through curator.explain.",
        )
    return found.question


Check = Callable[[Statement], object]
"""Refuses a statement, if something else than reading stands in its way."""


def parse_statement(
    text: str,
    known: Known,
    *,
    now: datetime | None = None,
    check: Check | None = None,
    given: Sequence[Sequence[Any]] | None = None,
) -> ParsedStatement:
    """What ``text`` asks for: one question or several, or with EXPLAIN in front their price.

    ``known`` is what is public of the tables: a schema, or a catalogue of one.
    ``now`` is what CURRENT_DATE and NOW() mean, in UTC: this second, if nothing is said.
    ``check`` may refuse a statement in its turn; it is then mended like any other.
    ``given`` is what the questions in its conditions have answered, which are then constants.
    """
    return _parse(text, known, now, check=check, given=given)


def _parse(
    text: str,
    known: Known,
    now: datetime | None,
    *,
    alone: bool = False,
    check: Check | None = None,
    given: Sequence[Sequence[Any]] | None = None,
) -> ParsedStatement:
    catalogue = known if isinstance(known, Catalogue) else Catalogue(known)
    moment = now or datetime.now(UTC).replace(tzinfo=None, microsecond=0)

    def read(asked: str, accepts: Callable[[str], bool] | None) -> ParsedStatement:
        reader = Reader(asked, catalogue, now=moment, accepts=accepts)
        try:
            found = _read_statement(asked, reader, alone=alone, given=given)
        except RecursionError:
            raise depth_refusal() from None
        if check is not None and isinstance(found.question, Statement):
            check(found.question)
        return found

    def reread(rewritten: str, accepts: Callable[[str], bool] | None) -> None:
        from discreet.question.work import check_work

        asked = read(rewritten, accepts).question
        for question in asked.questions if isinstance(asked, Statement) else (asked,):
            check_work(question, catalogue.schema.most_joined_rows, catalogue.multiplicity)

    def accepts(rewritten: str) -> bool:
        try:
            reread(rewritten, None)
        except Refusal:
            return False
        return True

    def attempt(mended: str) -> QuestionRefusal | None:
        try:
            reread(mended, accepts)
        except QuestionRefusal as refusal:
            return refusal
        return None

    try:
        return read(text, accepts)
    except QuestionRefusal as refusal:
        if refusal.rewriting is None and isinstance(text, str) and given is None:
            from discreet.question.sql.mending import mend

            mend(refusal, text, catalogue, attempt)
        raise


def _read_statement(
    text: str, reader: Reader, *, alone: bool, given: Sequence[Sequence[Any]] | None
) -> ParsedStatement:
    """What a text asks; ``alone``: one question, with nothing around it."""
    tokens = _tokenize(text)
    reader.tokens.extend(tokens)
    tree = _parse_tree(text, tokens)
    explain = isinstance(tree, Explain)
    if isinstance(tree, Explain):
        tree = tree.this
    if isinstance(tree, exp.Pivot):  # DuckDB's statement: all that it shows
        tree = exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Subquery(this=tree)))
    check_size(tree)
    frame = Frame(reader, read_subquery)
    replace_words(tree, text, reader)
    if tree.find(exp.Order, exp.Window) is not None:  # it changes nothing else
        spell_out(tree)
    if tree.find(exp.CTE, exp.Subquery) is not None:
        name_columns(tree)
    more = _asks_the_account(tree, text, reader) or _may_hold_more(tree)
    if not more and _is_plain(tree, reader):
        return ParsedStatement(_read_tree(tree, frame), explain)
    whole = tree.copy() if more else None
    several = more and not alone
    try:
        return ParsedStatement(_read_more(tree, frame, more=several), explain)
    except QuestionRefusal as refusal:
        if refusal.code == "Q3":
            raise
        apart = None
        if whole is not None and refusal.code == "Q10":
            from discreet.question.sql.equivalents import split_differences

            apart = split_differences(whole)
        nested = _read_nested(whole, reader, given) if whole is not None and several else None
        if apart is None and nested is None:
            raise
        first = refusal
    if nested is not None:
        return ParsedStatement(nested, explain)
    try:
        return ParsedStatement(_read_more(apart or tree, frame, more=several), explain)
    except QuestionRefusal:
        raise first from None  # about what was typed


def _asks_the_account(tree: exp.Expr, text: str, reader: Reader) -> bool:
    """Whether it asks what is left; then with a table in the place of each such call."""
    if ASKS_THE_ACCOUNT not in text.casefold():
        return False
    from discreet.question.sql.accounts import name_accounts

    name_accounts(tree, reader)
    return True


def _read_more(tree: exp.Expr, frame: Frame, *, more: bool) -> Question | Statement:
    """A question, or several with something around them."""
    if more:
        from discreet.question.sql.statements import read_statement  # most are one question

        statement = read_statement(tree.copy(), frame.reader, _read_alone)
        if statement is not None:
            return statement
    return _read_question(tree, frame)


def _read_nested(
    tree: exp.Expr, reader: Reader, given: Sequence[Sequence[Any]] | None
) -> Statement | None:
    """A statement with questions in its conditions; None if it is none, or cannot be asked."""
    from discreet.question.sql.nested import may_be_nested, read_nested
    from discreet.question.sql.statements import StatementReader

    if not isinstance(tree, exp.Query) or not may_be_nested(tree):
        return None

    def read(query: exp.Expr) -> Statement:
        quiet = replace(reader, accepts=None)
        if not isinstance(query, exp.Query):
            raise _not_select(query, quiet)
        return StatementReader(quiet, _read_alone).read(query)

    return read_nested(tree, read, reader.catalogue, given)


def _is_plain(tree: exp.Expr, reader: Reader) -> bool:
    """Whether a lone question reads one table, in words that cannot be fewer: most do."""
    start, group = tree.args.get("from_"), tree.args.get("group")
    source = None if start is None else start.this
    if not isinstance(source, exp.Table) or tree.args.get("joins"):
        return False
    given = {name for name, value in source.args.items() if value}
    return (
        given <= {"this", "alias"}
        and source.name in reader.schema.tables
        and (group is None or not group.args.get("all"))
        and not any(
            isinstance(n, exp.Boolean | exp.Tuple) or n.args.get("db") or is_several(n)
            for n in tree.walk()
        )
    )


_MORE = (exp.Query, exp.Window, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Exists, exp.ILike)


def _may_hold_more(tree: exp.Expr) -> bool:
    """Whether there may be anything around a question, or more than one: most have neither."""
    return any(
        (isinstance(node, _MORE) and node is not tree)
        or (isinstance(node, exp.Group | exp.Ordered | exp.Anonymous) and _is_unusual(node))
        or any(node.args.get(name) for name in ("distinct", "offset", "qualify", "with_"))
        for node in tree.walk()
    ) or not isinstance(tree, exp.Select)


def _is_unusual(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        known = name in FUNCTIONS or name in SYNONYMS or name in SPECIAL
        return not known and aggregate_name(node) is None
    return any(node.args.get(name) for name in ("rollup", "cube", "grouping_sets", "nulls_first"))


def _read_question(tree: exp.Expr, frame: Frame) -> Question:
    """One question; what is refused may be asked with what public tables say in its place."""
    given = tree.copy() if tree.find(exp.Subquery, exp.Exists, exp.In, exp.With) else None
    if given is None and not frame.commons:
        return _read_joined(simplify(tree, frame.reader), frame)
    try:
        return _read_joined(simplify(tree, frame.reader), frame)
    except QuestionRefusal as refusal:
        if refusal.code == "Q3":  # too long already: nothing is made longer
            raise
        from discreet.question.sql.public_queries import compute_public  # few need it

        first = refusal
        computed = compute_public(given or tree, frame)
        if computed is None:  # perhaps there is one that names the row outside
            joined = join_looked_up(simplify(given or tree, frame.reader), frame.reader)
            computed = None if joined is None else compute_public(joined, frame)
        if computed is None:
            raise
    try:
        question = _read_joined(simplify(computed.tree, frame.reader), frame)
    except QuestionRefusal as refusal:
        raise (first if refusal.span is None else refusal) from None
    return replace(question, remarks=(*question.remarks, *computed.remarks))


def _read_joined(tree: exp.Expr, frame: Frame) -> Question:
    """One question; sub-queries that look something up of the same unit are joins."""
    joined = join_looked_up(tree, frame.reader)
    if joined is not None:
        try:
            return _read_tree(joined, frame)
        except QuestionRefusal as refusal:
            if refusal.code not in _ABOUT_JOINS:
                raise
    return _read_tree(tree, frame)


_ABOUT_JOINS = {"Q13", "Q15", "Q16", "Q18", "Q19", "Q20", "Q21", "Q22", "Q41"}
"""Refusals that a join in the place of a sub-query may meet: then the sub-query is refused."""


def _read_tree(tree: exp.Expr, frame: Frame) -> Question:
    reader = frame.reader
    if isinstance(tree, exp.Select):
        tree = group_distinct(tree)
    check_allowed(tree, reader)
    while isinstance(tree, exp.Subquery) and tree.args.get("alias") is None:
        tree = tree.this
    if not isinstance(tree, exp.Select):
        raise _not_select(tree, reader)
    question, normal = read_question(tree, frame)
    if any(constant.is_string for constant in tree.find_all(exp.Literal)):
        check_constants(tree, reader)
    _check_written_back(question, normal, reader)
    return question


def _read_alone(select: exp.Select, frame: Frame) -> Question:
    """One question of a statement, as if it had been asked alone; its text is its own."""
    question = _read_question(select.copy(), frame)
    return replace(question, text=write_question_text(question))


def _tokenize(text: str) -> list[Token]:
    if not isinstance(text, str) or len(text) > MOST_CHARACTERS:
        raise depth_refusal()
    try:
        text.encode()  # half a character is none: neither the engine nor the account can write it
        tokens = tokenize(text)
    except (SqlglotError, UnicodeEncodeError):
        raise _unreadable(None) from None
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    depth = 0
    for token in tokens:
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth > MOST_BRACKETS:
            raise depth_refusal()
        if token.token_type in (TokenType.L_BRACE, TokenType.R_BRACE):
            raise _unreadable(Span(text, token.start, token.end + 1))
        if token.token_type is TokenType.SEMICOLON:
            raise QuestionRefusal(
                "Q4",
                "there is more than one statement.",
                why="each question is priced and charged by itself.",
                fix="ask them one after the other.",
                span=Span(text, token.start, token.end + 1),
            )
    _check_start(text, tokens)
    return tokens


def _check_start(text: str, tokens: list[Token]) -> None:
    if tokens and tokens[0].text.upper() in _STARTS:
        return
    span = Span(text, tokens[0].start, tokens[0].end + 1) if tokens else None
    raise QuestionRefusal(
        "Q5",
        f"a question begins with {STARTS}.",
        why="analysts read statistics; they change nothing and set nothing.",
        fix=READ_ONLY,
        span=span,
    )


def read_tree(text: str) -> exp.Expr:
    """One statement as a tree, within the bounds of a question; what it means is another's idea."""
    tree = _parse_tree(text, _tokenize(text))
    check_size(tree)
    return tree


def _parse_tree(text: str, tokens: list[Token]) -> exp.Expr:
    try:
        trees = parse_trees(text, tokens)
    except RecursionError:
        raise
    except SqlglotError as error:
        raise _unreadable(_find_stumble(text, error)) from None
    except Exception:
        # The text is hostile and the parser is not ours: whatever it stumbles over, the text
        # could not be read.
        raise _unreadable(None) from None
    if len(trees) != 1 or trees[0] is None:
        raise _unreadable(None)
    return trees[0]


def _unreadable(span: Span | None) -> QuestionRefusal:
    return QuestionRefusal(
        "Q2",
        "the text cannot be read as one SQL question.",
        why="what is not understood wholly is not answered at all.",
        fix="none is certain: check brackets, commas and quotes near the mark, and write values "
        "themselves in place of ? and :name; docs/sql.md shows the dialect.",
        span=span,
    )


def _find_stumble(text: str, error: SqlglotError) -> Span | None:
    """Where the parser stopped, from what it says it saw there."""
    details = getattr(error, "errors", None)
    if not details or not details[0].get("highlight"):
        return None
    before = details[0].get("start_context") or ""
    start = text.find(before + details[0]["highlight"])
    if start < 0:
        return None
    start += len(before)
    return Span(text, start, start + len(details[0]["highlight"]))


def _not_select(tree: exp.Expr, reader: Reader) -> QuestionRefusal:
    if isinstance(tree, exp.SetOperation):
        return reader.refusal(
            "Q21",
            tree,
            "UNION ALL of two answers is two questions.",
            why="each answer is priced by itself.",
            fix="ask them one after the other, or put UNION ALL inside FROM ( ... ).",
        )
    return reader.refusal(
        "Q5",
        tree,
        "this is not a SELECT.",
        why="analysts read statistics; they change nothing and set nothing.",
        fix=READ_ONLY,
    )


def _check_written_back(question: Question, normal: exp.Select, reader: Reader) -> None:
    """Refuse unless the meaning, written back, is the question."""
    written = write_question(question)
    if written == normal:
        return
    raise reader.refusal(
        "Q30",
        None,
        "a part of the question was read but not understood.",
        why="an answer to another question than the one asked would be wrong, and charged.",
        fix=f"ask what was understood: {write_question_text(question)}",
    )


Clauses = dict[str, object]


# --- written back --------------------------------------------------------------------------------


def write_question(question: Question) -> exp.Select:
    """The normal form of ``question``."""
    trees: dict[str, exp.Expr] = {key.name: write(key.expression, column) for key in question.keys}
    for aggregate in question.aggregates:
        trees[aggregate.name] = write_aggregate(aggregate, column)

    def write_released(expression: Expression) -> exp.Expr:
        return write(expression, lambda name: trees[name].copy())

    clauses = _rows(question.source)
    clauses["expressions"] = [
        output_tree(write_released(output.expression), output.name) for output in question.outputs
    ]
    if question.keys:
        keys = [trees[key.name].copy() for key in question.keys]
        clauses["group"] = exp.Group(expressions=keys)
    if question.having is not None:
        clauses["having"] = exp.Having(this=write_released(question.having))
    if question.order:
        clauses["order"] = exp.Order(
            expressions=[
                _order_tree(write_released(o.expression), o.descending) for o in question.order
            ]
        )
    if question.limit is not None:
        clauses["limit"] = exp.Limit(expression=write_constant(question.limit))
    if question.spend is not None or question.limits != Limits():
        clauses["hint"] = options_tree(question.limits, question.spend)
    return exp.Select(**clauses)


def _order_tree(tree: exp.Expr, descending: bool) -> exp.Ordered:
    """One item of ORDER BY in normal form; NULL is last."""
    return exp.Ordered(this=tree, desc=True) if descending else exp.Ordered(this=tree)


# --- written back: rows -----------------------------------------------------------------------


def _rows(relation: Relation) -> Clauses:
    """FROM, JOIN and WHERE."""
    clauses: Clauses = {}
    if isinstance(relation, Filter):
        clauses["where"] = exp.Where(this=write(relation.predicate, column))
        relation = relation.source
    joins: list[exp.Join] = []
    while isinstance(relation, PublicJoin | UnitJoin | OwnerJoin):
        joins.insert(0, _join(relation))
        relation = relation.left
    clauses["from_"] = exp.From(this=_item(relation))
    if joins:
        clauses["joins"] = joins
    return clauses


def _join(join: PublicJoin | UnitJoin | OwnerJoin) -> exp.Join:
    if isinstance(join, PublicJoin):
        pairs = [(write(left, column), column(right)) for left, right in join.on]
    elif isinstance(join, OwnerJoin):
        pairs = [(column(join.owner), column(name)) for name in unit_columns(join.right) if name]
    else:
        own = zip(unit_columns(join.left), unit_columns(join.right), strict=True)
        pairs = [(column(a), column(b)) for a, b in own if a and b]
        pairs += [(column(a), column(b)) for a, b in join.on]
    if not pairs:
        return exp.Join(this=_item(join.right), kind="CROSS")
    on = conjunction([exp.EQ(this=left, expression=right) for left, right in pairs])
    side = None if join.kind is JoinKind.INNER else join.kind.name
    return exp.Join(this=_item(join.right), on=on, side=side)


def _item(relation: Relation | PublicSource) -> exp.Expr:
    if isinstance(relation, GraphRows):
        alias = relation.name.partition(".")[0]
        table = relation.source.table.name
        return graph_tree(relation.shape.name, table, relation.most, alias)
    if isinstance(relation, Source | PublicSource):
        alias = relation.columns[0][0].partition(".")[0]
        return table_tree(relation.table.name, alias)
    names: Relation = relation
    while isinstance(names, Union):
        names = names.left
    if not isinstance(names, Project):
        raise TypeError(f"{type(names).__name__} is no sub-query")
    alias = names.columns[0][0].partition(".")[0]
    return exp.Subquery(this=_query(relation), alias=alias_tree(alias))


def _query(relation: Relation) -> exp.Expr:
    if isinstance(relation, Union):
        left, right = _query(relation.left), _query(relation.right)
        return exp.Union(this=left, expression=right, distinct=False)
    if not isinstance(relation, Project):
        raise TypeError(f"{type(relation).__name__} is no sub-query")
    source = relation.source
    having = None
    if isinstance(source, Filter) and isinstance(source.source, PerUnit):
        having = source.predicate
        source = source.source
    if isinstance(source, PerUnit):
        return _per_unit(relation, source, having)
    qualify = None
    if isinstance(source, Filter) and isinstance(source.source, Windowed):
        qualify = source.predicate
        source = source.source
    if isinstance(source, Windowed):
        return _write_windowed(relation, source, qualify)
    items = [output_tree(write(e, column), name) for name, e in relation.columns]
    return exp.Select(**{**_rows(source), "expressions": items})


def _write_windowed(outer: Project, windowed: Windowed, qualify: Expression | None) -> exp.Select:
    unit = unit_columns(windowed.source)
    trees: dict[str, exp.Expr] = {n: write_window(w, unit) for n, w in windowed.columns}

    def write_known(expression: Expression) -> exp.Expr:
        return write(expression, lambda name: trees[name].copy() if name in trees else column(name))

    clauses = _rows(windowed.source)
    if qualify is not None:
        clauses["qualify"] = exp.Qualify(this=write_known(qualify))
    items = [output_tree(write_known(e), name) for name, e in outer.columns]
    return exp.Select(**{**clauses, "expressions": items})


def _per_unit(outer: Project, grouped: PerUnit, having: Expression | None) -> exp.Select:
    trees = {name: write(e, column) for name, e in grouped.keys}
    keys = [tree.copy() for tree in trees.values()]
    trees |= {name: _unit_aggregate(a) for name, a in grouped.aggregates}

    def write_known(expression: Expression) -> exp.Expr:
        return write(expression, lambda name: trees[name].copy())

    clauses = _rows(grouped.source)
    clauses["group"] = exp.Group(expressions=keys)
    if having is not None:
        clauses["having"] = exp.Having(this=write_known(having))
    items = [output_tree(write_known(e), name) for name, e in outer.columns]
    return exp.Select(**{**clauses, "expressions": items})


def _unit_aggregate(aggregate: UnitAggregate) -> exp.Expr:
    if aggregate.argument is None:
        return call("COUNT", exp.Star())
    return call(aggregate.function, write(aggregate.argument, column))


# --- written back: text -----------------------------------------------------------------------


_OPERATORS = (*BINARY, *UNARY, exp.Is, exp.In, exp.Connector)
_PLACED = (exp.Group, exp.Ordered)
_CHAINS = {name.upper(): kind for kind, name in CHAINS.items()}


def write_question_text(question: Question) -> str:
    """``question`` in SQL, in one canonical spelling."""
    unit = [_column(name) for name in unit_columns(question.source) if name is not None]
    return write_text(_Surface(unit).tree(write_question(replace(question, text=""))))


class _Surface:
    """From normal form to what an analyst would type."""

    def __init__(self, unit: list[exp.Column]) -> None:
        self._unit = unit

    def tree(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, PrivacyClause) or is_constant(node):
            return node.copy()
        if isinstance(node, exp.Column):
            return _column(node.name)
        if isinstance(node, exp.Anonymous) and node.this in _CHAINS:
            return self._chain(node)
        if isinstance(node, exp.Alias):
            alias = exp.Identifier(this=_last(node.alias), quoted=True)
            return exp.Alias(this=self.tree(node.this), alias=alias)
        changed = {name: self._argument(value, node) for name, value in node.args.items()}
        copy = type(node)(**changed)
        return self._aggregate(copy) if isinstance(copy, exp.Anonymous) else copy

    def _argument(self, value: object, parent: exp.Expr) -> object:
        if isinstance(value, list):
            return [self._argument(item, parent) for item in value]
        if not isinstance(value, exp.Expr):
            return value
        tree = self.tree(value)
        torn = isinstance(parent, _OPERATORS) and isinstance(tree, _OPERATORS)
        # A bare number in GROUP BY or ORDER BY is a place in the list, and no constant.
        number = isinstance(tree, exp.Literal) and not tree.is_string
        return exp.Paren(this=tree) if torn or (number and isinstance(parent, _PLACED)) else tree

    def _chain(self, node: exp.Anonymous) -> exp.Expr:
        parts = [self.tree(part) for part in node.expressions]
        parts = [exp.Paren(this=p) if isinstance(p, exp.Connector) else p for p in parts]
        result = parts[0]
        for part in parts[1:]:
            result = _CHAINS[node.this](this=result, expression=part)
        return result

    def _aggregate(self, call: exp.Anonymous) -> exp.Expr:
        named = [e for e in call.expressions if isinstance(e, exp.Kwarg)]
        plain = [e for e in call.expressions if not isinstance(e, exp.Kwarg)]
        match call.this:
            case "COUNT_UNITS":
                plain = [exp.Distinct(expressions=[c.copy() for c in self._unit])]
                name = "COUNT"
            case "COUNT_DISTINCT":
                plain, name = [exp.Distinct(expressions=plain)], "COUNT"
            case "QUANTILE":
                name = "QUANTILE_CONT"
            case other:
                name = other
        return exp.Anonymous(this=name, expressions=[*plain, *named])


def _last(name: str) -> str:
    """The analyst's part of a relation's column name; names of the answer have no dot."""
    return name.partition(".")[2] or name


def _column(name: str) -> exp.Column:
    alias, _, own = name.partition(".")
    quoted = exp.Identifier(this=own, quoted=True)
    return exp.Column(this=quoted, table=exp.Identifier(this=alias, quoted=True))


__all__ = [
    "ParsedStatement",
    "depth_refusal",
    "parse",
    "parse_statement",
    "read_tree",
    "write_question_text",
]
