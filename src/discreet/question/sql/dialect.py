"""The dialect of questions: its words, the allow-list over its trees, and how to say no to one.

The dialect is a *smaller* sqlglot, not a larger one.  sqlglot turns some five
hundred function names into classes of their own; here every function call stays
a call with a name, and only our own table of names gives it a meaning.  There
are no placeholders, hints, pipes, casts to JSON, lambdas or commands: what the
parser cannot produce, nobody has to refuse.

Added: ``SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.5, ...)`` before
the columns, and arguments by name (``contribution_bounds_per_group => (0, 9)``).

A refusal underlines what it speaks of.  sqlglot records the positions of names and
constants only; the span of anything larger is what its parts span, and the
span of a call goes on to its closing parenthesis.

The allow-list is a first refusal, before anything is given a meaning.  A node that
is not listed, or a listed node with a clause that is not, is no part of the dialect,
whether or not anybody thought of it.  The well-known ones have a code, a reason and a
rewriting of their own; the others share one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from datetime import datetime
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.generator import Generator
from sqlglot.parser import IsPredicatePrecedence, Parser
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from discreet.errors import QuestionRefusal, Span
from discreet.exact.records import dataclass
from discreet.question.catalogue import Catalogue
from discreet.question.domain import Domain
from discreet.question.ownership import columns
from discreet.question.relation import PublicSource, Relation
from discreet.question.schema import Schema
from discreet.question.sql.bans import COMPARING, PUBLIC_ALONE, REFUSED, SUBQUERY, Ban
from discreet.question.sql.rewrite import (
    Change,
    find_rewrites,
)
from discreet.question.sql.unnest_subqueries import names_row_outside

MOST_NODES = 5_000
"""How many nodes a statement may have; a question of a person has some dozens."""


# --- now: what a text means may depend on when it is read ----------------------------------------

TODAY = {"CURRENT_DATE", "TODAY", "CURDATE"}
NOW_WITHOUT_BRACKETS = {"CURRENT_DATE", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "CURRENT_DATETIME"}
NOW = TODAY | NOW_WITHOUT_BRACKETS | {"NOW", "GETDATE", "SYSDATE", "SYSTIMESTAMP",
                                      "TRANSACTION_TIMESTAMP"}  # fmt: skip
"""What stands for the moment at which the question is read."""
_CLOCK = re.compile(rf"\b(?:{'|'.join(sorted(NOW))})\b|\bAGE[\"`\]]?\s*(?:\(|--|/[*/]|\#)")
"""What shows the moment by name; and AGE, which counts from a time until now where it is given no
other.  Between its name and its bracket there may be a comment."""


def may_read_clock(text: str) -> bool:
    """Whether a text may mean something else when it is read again at another moment.

    Names are compared in capitals, as they are where they are read: some small letters are two
    capitals (``\N{LATIN SMALL LIGATURE ST}``).
    """
    return _CLOCK.search(text.upper()) is not None


class PrivacyClause(exp.Expression):
    """``WITH DIFFERENTIAL_PRIVACY OPTIONS(name = value, ...)`` of a SELECT."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": False}


class Explain(exp.Expression):
    """``EXPLAIN`` followed by a question."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


def _parse_named(parser: QuestionParser, names: list[Any]) -> exp.Expr:
    """``name => value`` in a call."""
    value = parser._parse_disjunction()
    if len(names) != 1 or value is None:
        parser.raise_error("Expected one name and a value around =>")
    return parser.expression(exp.Kwarg(this=exp.var(names[0].name), expression=value))


def _parse_substring(parser: QuestionParser) -> exp.Expr:
    """SUBSTRING(x, 2, 3), or SUBSTRING(x FROM 2 FOR 3): one call."""
    arguments: list[Any] = parser._parse_csv(parser._parse_disjunction)
    if parser._match(TokenType.FROM):
        arguments.append(parser._parse_bitwise())
    if parser._match_text_seq("FOR"):
        arguments += [exp.Literal.number(1)] if len(arguments) == 1 else []
        arguments.append(parser._parse_bitwise())
    return parser.expression(exp.Anonymous(this="SUBSTRING", expressions=arguments))


def _parse_typed(_: QuestionParser, tree: exp.Expr, kind: exp.DataType) -> exp.Expr:
    """DATE '2024-02-29'::TEXT is of a date: what was read after the constant stands around it."""
    outer, constant = None, tree
    while not isinstance(constant, exp.Literal):
        outer, constant = constant, constant.this
    typed = exp.Cast(this=constant, to=kind)
    if outer is None:
        return typed
    outer.set("this", typed)
    return tree


class QuestionTokenizer(Tokenizer):
    """Double quotes and backticks name things, single quotes are text; nothing else quotes."""

    IDENTIFIERS: ClassVar[list[Any]] = ['"', "`"]
    QUOTES: ClassVar[list[Any]] = ["'"]
    RAW_STRINGS: ClassVar[list[Any]] = [("r'", "'"), ("R'", "'")]
    COMMANDS: ClassVar[set[TokenType]] = set()
    KEYWORDS: ClassVar[dict[str, TokenType]] = {
        "//": TokenType.DIV,
        "~": TokenType.RLIKE,
        "~*": TokenType.IRLIKE,
        "TOP": TokenType.TOP,
        "FLOAT64": TokenType.DOUBLE,
        "NUMBER": TokenType.DECIMAL,
        "BIGNUMERIC": TokenType.DECIMAL,
        **{
            word: kind
            for word, kind in Tokenizer.KEYWORDS.items()
            # Template brackets are not SQL, and no word swallows the rest of the text unread.
            if not word.startswith(("{", "}")) and kind is not TokenType.COMMAND
        },
    }


class QuestionParser(Parser):
    """Reads one statement; functions keep their names, and there is nothing but SELECT."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        "CAST": lambda self: self._parse_cast(True),
        "TRY_CAST": lambda self: self._parse_cast(True),
        "SAFE_CAST": lambda self: self._parse_cast(True),
        "EXTRACT": lambda self: self._parse_extract(),
        "SUBSTRING": _parse_substring,
    }
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CASE": lambda self: self._parse_case()}
    LAMBDAS: ClassVar[dict[Any, Any]] = {TokenType.FARROW: _parse_named}
    COLUMN_OPERATORS: ClassVar[dict[Any, Any]] = {
        TokenType.DOT: None,
        TokenType.DCOLON: Parser.COLUMN_OPERATORS[TokenType.DCOLON],
    }
    PRIMARY_PARSERS: ClassVar[dict[Any, Any]] = {
        **Parser.PRIMARY_PARSERS,
        TokenType.RAW_STRING: Parser.PRIMARY_PARSERS[TokenType.STRING],
    }
    PLACEHOLDER_PARSERS: ClassVar[dict[Any, Any]] = {}
    STATEMENT_PARSERS: ClassVar[dict[Any, Any]] = {
        TokenType.PIVOT: lambda self: self._parse_simplified_pivot()
    }
    PIPE_SYNTAX_TRANSFORM_PARSERS: ClassVar[dict[str, Any]] = {}
    IS_PREDICATE_PRECEDENCE: ClassVar[Any] = IsPredicatePrecedence.LOW  # (a = b) IS NULL
    TYPE_LITERAL_PARSERS: ClassVar[dict[Any, Any]] = dict.fromkeys(exp.DType, _parse_typed)

    def _parse_hint(self) -> Any:
        """The privacy clause stands where other dialects have hints: right after SELECT."""
        if not self._match_text_seq("WITH", "DIFFERENTIAL_PRIVACY"):
            return None
        options: list[Any] = []
        if self._match_text_seq("OPTIONS"):
            self._match_l_paren()
            options = self._parse_csv(self._parse_disjunction)
            self._match_r_paren()
        return self.expression(PrivacyClause(expressions=options))

    def _parse_statement(self) -> Any:
        if self._match_text_seq("EXPLAIN"):
            return self.expression(Explain(this=super()._parse_statement()))
        return super()._parse_statement()

    def _parse_cast(self, strict: bool, safe: bool | None = None) -> Any:
        """Every cast here is total (NULL where it fails), so TRY_CAST and CAST are one node."""
        del safe
        return super()._parse_cast(strict)


class QuestionGenerator(Generator):
    """Writes questions back as text, in capitals and with every name as it is."""

    TRANSFORMS: ClassVar[dict[Any, Any]] = {
        **Generator.TRANSFORMS,
        exp.IntDiv: lambda self, e: self.binary(e, "//"),
        exp.RegexpLike: lambda self, e: self.binary(e, "~"),
        exp.RegexpILike: lambda self, e: self.binary(e, "~*"),
        exp.Array: lambda self, e: f"[{self.expressions(e, flat=True)}]",
        PrivacyClause: lambda self, e: (
            f" WITH DIFFERENTIAL_PRIVACY OPTIONS({self.expressions(e, flat=True)})"
        ),
        Explain: lambda self, e: f"EXPLAIN {self.sql(e, 'this')}",
    }


class QuestionDialect(Dialect):
    """What analysts write."""

    NULL_ORDERING = "nulls_are_last"
    Tokenizer = QuestionTokenizer
    Parser = QuestionParser
    Generator = QuestionGenerator


DIALECT = QuestionDialect()


def tokenize(text: str) -> list[Token]:
    """The words of ``text``, with their places; comments are no words."""
    return DIALECT.tokenize(text)


def parse_trees(text: str, tokens: list[Token]) -> list[exp.Expr | None]:
    """One syntax tree for each statement of ``text``."""
    parser = QuestionParser(dialect=DIALECT, error_level=ErrorLevel.IMMEDIATE, max_nodes=MOST_NODES)
    return list(parser.parse(tokens, text))


def write_text(tree: exp.Expr) -> str:
    """``tree`` as text of this dialect."""
    return str(DIALECT.generate(tree, comments=False, unsupported_level=ErrorLevel.IGNORE))


# --- the question being read ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fix:
    """What to do instead, in words; and the whole question in it, if it holds one."""

    text: str
    rewriting: str | None = None

    @classmethod
    def asking(cls, question: str, words: str = "") -> Fix:
        """Type ``question``, after ``words`` that say how it differs.

        >>> Fix.asking("SELECT 7", "declare bounds, or ").text
        'declare bounds, or ask SELECT 7'
        """
        return cls(f"{words}ask {question}", question)


TYPED = "typed"
"""Where a formula was put in the place of a word: the formula, and what was typed."""


def _restore(node: exp.Expr) -> exp.Expr:
    """The word that was typed, where its formula is as it was written out."""
    made, typed = node.meta.get(TYPED, (None, node))
    return typed.copy() if node == made else node


_CALLED = {"CAST", "TRY_CAST", "SAFE_CAST", "EXTRACT"}


@dataclass(frozen=True, slots=True)
class Reader:
    """What every stage of reading needs: the text for spans, the catalogue for names."""

    text: str
    catalogue: Catalogue
    tokens: list[Token] = field(default_factory=list)
    now: datetime = datetime.min  # what CURRENT_DATE and NOW() mean
    accepts: Callable[[str], bool] | None = None  # None while a rewriting is being tried
    _known: dict[int, tuple[object, Mapping[str, Domain]]] = field(default_factory=dict)

    @property
    def schema(self) -> Schema:
        """The tables as they were declared."""
        return self.catalogue.schema

    def columns(self, relation: Relation | PublicSource) -> Mapping[str, Domain]:
        """What each column of ``relation`` can be."""
        found = self._known.get(id(relation))
        if found is None:  # kept with the relation itself, so that no other can take its id
            found = relation, columns(relation, self.catalogue.multiplicity, self._known)
            self._known[id(relation)] = found
        return found[1]

    def refusal(
        self, code: str, node: exp.Expr | None, what: str, *, why: str, fix: str | Fix
    ) -> QuestionRefusal:
        """The word no, underlining ``node``; with a rewriting where ``node`` has a known one."""
        told = fix if isinstance(fix, Fix) else Fix(fix)
        for words, change in find_rewrites(node, self.is_key):
            question = self.rewrite(node, change)
            if question is not None:
                told = Fix.asking(question, words)
                break
        return QuestionRefusal(
            code, what, why=why, fix=told.text, span=self.span(node), rewriting=told.rewriting
        )

    def suggest_fix(
        self, node: exp.Expr | None, change: Change | None, otherwise: str, words: str = ""
    ) -> Fix:
        """A whole question that would be accepted, made by ``change``; else ``otherwise``.

        ``words`` say how its answer differs from what was asked.
        """
        question = self.rewrite(node, change)
        if question is None:
            return Fix(otherwise)
        return Fix.asking(question, words)

    def improve(
        self, refusal: QuestionRefusal, node: exp.Expr | None, change: Change, words: str = ""
    ) -> None:
        """Give a refusal that comes from below a whole question to type, if there is one."""
        question = self.rewrite(node, change)
        if question is not None:
            refusal.fix = Fix.asking(question, words).text
            refusal.rewriting = question

    def rewrite_text(self, change: Change) -> str | None:
        """The whole question as it was typed with ``change`` made in it, if it would be accepted.

        For changes that look for their places by themselves: nothing else is told in other words.
        """
        if self.accepts is None:
            return None
        try:
            (tree,) = parse_trees(self.text, tokenize(self.text))
        except (SqlglotError, ValueError, RecursionError):
            return None
        if tree is None:
            return None
        change(tree)
        text = write_text(tree.this if isinstance(tree, Explain) else tree)
        return text if self.accepts(text) else None

    def rewrite(self, node: exp.Expr | None, change: Change | None) -> str | None:
        """The whole question with ``change`` made at ``node``, if it would be accepted.

        ``node`` stands in the analyst's own tree; its twin in a copy is changed.
        """
        if self.accepts is None or node is None or change is None:
            return None
        root = node.root()
        position = next(i for i, part in enumerate(root.walk()) if part is node)
        copy = root.copy()
        change(next(part for i, part in enumerate(copy.walk()) if i == position))
        copy = copy.transform(_restore, copy=False)
        try:
            text = write_text(copy)
        except TypeError:  # of a tree that no text has
            return None
        return text if self.accepts(text) else None

    def is_key(self, table: str, columns: set[str]) -> bool:
        """Whether ``table`` is public, and no two of its rows agree on ``columns``."""
        found = self.schema.tables.get(table)
        return found is not None and any(set(key) <= columns for key in found.unique)

    def columns_of(self, table: str) -> set[str] | None:
        """The declared columns of a table, in lower case; None if there is no such table."""
        found = self.schema.tables.get(table)
        return None if found is None else {column.name.casefold() for column in found.columns}

    def unit_of(self, table: str) -> set[str] | None:
        """The columns of a private table's unit, in lower case; None if it has none."""
        found = self.schema.tables.get(table)
        unit = None if found is None else found.unit
        return {name.casefold() for name in unit} if isinstance(unit, tuple) else None

    @contextmanager
    def at(self, node: exp.Expr | None) -> Iterator[None]:
        """Give ``node``'s span to a refusal that comes from below, where spans are not known."""
        try:
            yield
        except QuestionRefusal as refusal:
            if refusal.span is None:
                refusal.span = self.span(node)
            raise

    def span(self, node: exp.Expr | None) -> Span | None:
        """Where ``node`` stands in the text, if anything of it has a span."""
        while node is not None:
            span = self._span(node)
            if span is not None:
                return Span(self.text, *span)
            node = node.parent
        return None

    def words(self, node: exp.Expr) -> str:
        """The analyst's own words for ``node``, on one line."""
        span = self.span(node)
        return " ".join(self.text[span.start : span.stop].split()) if span else ""

    def _span(self, node: exp.Expr) -> tuple[int, int] | None:
        starts: list[int] = []
        stops: list[int] = []
        for part in node.walk():
            start, end = part.meta.get("start"), part.meta.get("end")
            if start is None or end is None:
                continue
            starts.append(start)
            stops.append(end + 1)
            if isinstance(part, exp.Anonymous):
                stops.append(self._find_closing(start, end + 1))
        return self._close_brackets(min(starts), max(stops)) if starts else None

    def _close_brackets(self, start: int, stop: int) -> tuple[int, int]:
        """The same place with the brackets that are opened or closed in it, and not both."""
        opened, unopened = 0, 0
        for token in self.tokens:
            if start <= token.start < stop:
                if token.token_type is TokenType.L_PAREN:
                    opened += 1
                elif token.token_type is TokenType.R_PAREN and opened:
                    opened -= 1
                elif token.token_type is TokenType.R_PAREN:
                    unopened += 1
        for token in self.tokens if opened else ():
            if opened and token.start >= stop:
                kind = token.token_type
                opened += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
                stop = token.end + 1
        for token in reversed(self.tokens) if unopened else ():
            if unopened and token.start < start:
                kind = token.token_type
                unopened += (kind is TokenType.R_PAREN) - (kind is TokenType.L_PAREN)
                start = token.start
            elif not unopened:
                # CAST(...) and EXTRACT(...) are no calls in the tree: their names have no place.
                start = token.start if token.text.upper() in _CALLED else start
                break
        return start, stop

    def _find_closing(self, start: int, stop: int) -> int:
        """Past the parenthesis that closes the call whose name stands at ``start``."""
        depth = 0
        for token in self.tokens:
            if token.start <= start:
                continue
            depth += (token.token_type is TokenType.L_PAREN) - (
                token.token_type is TokenType.R_PAREN
            )
            if depth <= 0:
                return token.end + 1 if token.token_type is TokenType.R_PAREN else stop
        return stop


def find_original(node: exp.Expr, within: exp.Expr) -> exp.Expr | None:
    """The analyst's own node that became ``node`` in normal form."""
    start = node.meta.get("start")
    for part in within.walk():
        same = part.this if isinstance(part, exp.Column) else part
        if start is not None and same.meta.get("start") == start and type(part) is type(node):
            return part
    return None


def copy_span(new: exp.Expr, old: exp.Expr) -> exp.Expr:
    """``new`` stands where ``old`` stood."""
    start, end = old.meta.get("start"), old.meta.get("end")
    if start is not None:
        new.meta["start"], new.meta["end"] = start, end
    return new


# --- the allow-list -------------------------------------------------------------------------------

MOST_TERMS = 500
"""How often AND and OR may stand in a question."""

MOST_LISTED = 2_000
"""How many values IN (...) may list, and how many parts any other list may have."""

MOST_DEPTH = 100
"""How deeply expressions and sub-queries may be nested in one another."""

_BINARY = {"this", "expression"}

ALLOWED: dict[type[exp.Expr], set[str]] = {
    # the statement
    exp.Select: {
        "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "with_",
        "hint", "qualify", "windows",
    },
    PrivacyClause: {"expressions"},
    exp.Union: {"this", "expression", "distinct", "with_"},
    exp.Subquery: {"this", "alias"},
    exp.With: {"expressions"},
    exp.CTE: {"this", "alias"},
    exp.From: {"this"},
    exp.Join: {"this", "on", "using", "side", "kind", "method"},
    exp.Table: {"this", "alias"},
    exp.TableAlias: {"this"},
    exp.Where: {"this"},
    exp.Group: {"expressions"},
    exp.Having: {"this"},
    exp.Qualify: {"this"},
    exp.Window: {"this", "partition_by", "order", "spec", "over", "alias"},
    exp.WindowSpec: {"kind", "start", "start_side", "end", "end_side"},
    exp.Order: {"expressions"},
    exp.Ordered: {"this", "desc", "nulls_first"},
    exp.Limit: {"expression"},
    # names and constants
    exp.Alias: {"this", "alias"},
    exp.Column: {"this", "table"},
    exp.Identifier: {"this", "quoted"},
    exp.Var: {"this"},
    exp.Star: set(),
    exp.Literal: {"this", "is_string"},
    exp.Boolean: {"this"},
    exp.Null: set(),
    exp.Interval: {"this", "unit"},
    exp.AtTimeZone: {"this", "zone"},
    exp.DataType: {"this", "nested", "expressions"},
    exp.DataTypeParam: {"this"},
    exp.Tuple: {"expressions"},
    # expressions
    **dict.fromkeys(
        (exp.Add, exp.Sub, exp.Mul, exp.IntDiv, exp.Mod, exp.And, exp.Or, exp.EQ, exp.NEQ, exp.LT,
         exp.LTE, exp.GT, exp.GTE, exp.Is, exp.Kwarg, exp.Filter, exp.WithinGroup, exp.Extract),
        _BINARY,
    ),
    exp.Div: {*_BINARY, "typed", "safe"},
    exp.DPipe: {*_BINARY, "safe"},
    exp.Like: {*_BINARY, "negate"},
    exp.ILike: {*_BINARY, "negate"},
    exp.RegexpLike: _BINARY,
    exp.RegexpILike: _BINARY,
    exp.Between: {"this", "low", "high"},
    exp.In: {"this", "expressions"},
    exp.Not: {"this"},
    exp.Neg: {"this"},
    exp.Paren: {"this"},
    exp.Case: {"this", "ifs", "default"},
    exp.If: {"this", "true"},
    exp.Cast: {"this", "to", "_type"},
    exp.Anonymous: {"this", "expressions"},
    exp.Distinct: {"expressions"},
    exp.Bracket: {"this", "expressions"},
    exp.Array: {"expressions", "bracket_notation"},
}  # fmt: skip
"""What may appear, and which of its arguments may be filled."""


def check_allowed(tree: exp.Expr, reader: Reader) -> None:
    """Refuse ``tree`` unless all of it is on the list."""
    pending: list[tuple[exp.Expr, int]] = [(tree, 1)]
    terms = 0
    while pending:
        node, depth = pending.pop()
        terms += isinstance(node, exp.Connector)
        if depth > MOST_DEPTH or terms > MOST_TERMS:
            raise depth_refusal()
        allowed = ALLOWED.get(type(node))
        if allowed is None:
            raise _refusal(reader, node, node, REFUSED.get(type(node)), _name_of(node))
        for argument, value in node.args.items():
            if value is None or value is False or value == []:
                continue
            if argument not in allowed:
                ban = REFUSED.get((type(node), argument))
                culprit = _first(value) or node
                raise _refusal(reader, node, culprit, ban, _clause(node, argument))
            children = value if isinstance(value, list) else [value]
            if len(children) > MOST_LISTED:
                raise depth_refusal()
            for child in children:
                if isinstance(child, exp.Expr) and argument != "_type":
                    # a AND b AND c ... is one level, however long: it is read as one list
                    chained = type(child) is type(node) and isinstance(node, exp.Connector)
                    pending.append((child, depth + (not chained)))


def check_size(tree: exp.Expr) -> None:
    """Refuse a tree that is too deep, or too wide anywhere, before anything is made of it."""
    pending: list[tuple[exp.Expr, int]] = [(tree, 1)]
    while pending:
        node, depth = pending.pop()
        if depth > MOST_DEPTH:
            raise depth_refusal()
        for argument, value in node.args.items():
            children = value if isinstance(value, list) else [value]
            if len(children) > MOST_LISTED:
                raise depth_refusal()
            for child in children:
                if isinstance(child, exp.Expr) and argument != "_type":
                    chained = type(child) is type(node) and isinstance(node, exp.Connector)
                    pending.append((child, depth + (not chained)))


def depth_refusal() -> QuestionRefusal:
    """The refusal of a question no person wrote."""
    return QuestionRefusal(
        "Q3",
        f"the question nests more than {MOST_DEPTH} levels deep, joins more than {MOST_TERMS} "
        f"terms by AND and OR, lists more than {MOST_LISTED:,} values, or is too long.",
        why="a question must be understood wholly before it can be priced.",
        fix="write it flatter: IN (...) instead of many ORs, a join with a public table "
        "instead of a long CASE.",
    )


def _refusal(
    reader: Reader, node: exp.Expr, culprit: exp.Expr, ban: Ban | None, name: str
) -> QuestionRefusal:
    if ban is None:
        return reader.refusal(
            "Q11",
            culprit,
            f"{name} is outside the dialect.",
            why="what has no proof that it keeps one person's share bounded is not run.",
            fix="leave it out; docs/sql.md lists all a question may contain.",
        )
    if ban is SUBQUERY:
        ban = ban_subquery(culprit, reader)
    fix = reader.suggest_fix(node, ban.change, ban.fix, ban.words)
    return reader.refusal(ban.code, culprit, ban.what, why=ban.why, fix=fix)


def ban_subquery(node: exp.Expr, reader: Reader) -> Ban:
    """Why a sub-query does not stand where it does."""
    if names_row_outside(node, reader.columns_of, reader.unit_of):
        return COMPARING
    read = {table.name.casefold() for table in node.find_all(exp.Table)}
    public = {t.name.casefold() for t in reader.schema.tables.values() if t.public}
    return PUBLIC_ALONE if read and read <= public else SUBQUERY


def _first(value: object) -> exp.Expr | None:
    candidates = value if isinstance(value, list) else [value]
    return next((v for v in candidates if isinstance(v, exp.Expr)), None)


def _name_of(node: exp.Expr) -> str:
    return node.key.replace("_", " ").upper()


def _clause(node: exp.Expr, argument: str) -> str:
    return f"{argument.strip('_').replace('_', ' ').upper()} of {_name_of(node)}"


# --- words that are said in others ---------------------------------------------------------------

# Each set of words has a pattern here, so that what most questions do not need is not even read in.

_OTHER_WORDS = re.compile(r"\b(fetch|time|distinct\s+on)\b", re.IGNORECASE)
"""Words of constructions that are written with others here."""

_ONCE = re.compile(r"\b(mode|top_k|approx_top_count|approx_top_k)\s*\(\s*distinct\b", re.IGNORECASE)
"""Words of an aggregate that counts each unit once for a value."""

_IN_THE_WAY = re.compile(r"\bdistance_to_(maximum|reference)\b", re.IGNORECASE)
"""Words of distances that are counts of units."""

_SHORT = re.compile(
    r"\b(semi|anti|asof|lateral|apply|pivot|sample|filter|bool\w*|logical_\w+|every|count_?if|"
    r"(min|max)_by|arg_(min|max)|first|last|skew(ness)?|kurtosis\w*|regr_r2|regr_count|"
    r"geomean|geometric_mean|"
    r"(left|right)\s+(outer\s+)?join)\b|\bcount\s*\(\s*\)|\b(generate_\w+|range)\s*\(",
    re.IGNORECASE,
)
"""Words of shorthands that are written out."""


def replace_words(tree: exp.Expr, text: str, reader: Reader) -> None:
    """Say in the words of the dialect what is said in others; few are typed so."""
    if _OTHER_WORDS.search(text):
        from discreet.question.sql.equivalents import respell

        respell(tree)
    if _SHORT.search(text):
        from discreet.question.sql.shorthand import write_out

        write_out(tree, reader)
        check_size(tree)
    if _may_use_names(tree):
        from discreet.question.sql.shorthand import use_names

        use_names(tree, reader)
        check_size(tree)
    if _ONCE.search(text):
        from discreet.question.sql.once import count_once

        count_once(tree, reader)
    if _IN_THE_WAY.search(text):
        from discreet.question.sql.distances import count_in_the_way

        count_in_the_way(tree, reader)


def _may_use_names(tree: exp.Expr) -> bool:
    """Whether some SELECT gives a name that a column without a table is called by."""
    given = {node.alias.casefold() for node in tree.find_all(exp.Alias)}
    return bool(given) and any(
        not node.table and node.name.casefold() in given for node in tree.find_all(exp.Column)
    )
