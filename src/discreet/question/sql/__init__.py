"""Ask in SQL: from the analyst's text to a question, or a refusal that says what to type.

Four steps.  The text becomes a syntax tree in a deliberately small dialect
(:mod:`~discreet.question.sql.dialect`).  Every node and every argument of it must be on
the allow-list (:mod:`~discreet.question.sql.allow`).  The tree is brought into one
spelling (:mod:`~discreet.question.sql.normalize`) and given its meaning, from the
outermost SELECT (:mod:`~discreet.question.sql.questions`) inwards: what FROM reads
(:mod:`~discreet.question.sql.sources`, :mod:`~discreet.question.sql.subqueries`), what a
name means there (:mod:`~discreet.question.sql.scope`), aggregates, scalars.  The meaning
is written back as SQL (:mod:`~discreet.question.sql.write`) and must equal the tree: what
was forgotten is refused.  The analyst's text goes no further than this package.

What is refused is shown with a question that would be accepted, if a rule of
:mod:`~discreet.question.sql.rewrite` finds one.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from discreet.errors import QuestionRefusal, Refusal, Span
from discreet.question.ownership import Multiplicity, declared_multiplicity
from discreet.question.question import Question
from discreet.question.schema import Schema
from discreet.question.sql.allow import check_allowed, depth_refusal
from discreet.question.sql.dialect import Explain, parse_trees, tokenize
from discreet.question.sql.questions import read_question
from discreet.question.sql.reader import Reader
from discreet.question.sql.rewrite import (
    cast_texts_and_count_in_days,
    cast_texts_to_dates,
    count_in_days,
)
from discreet.question.sql.sources import Frame
from discreet.question.sql.subqueries import read_subquery
from discreet.question.sql.write import write_question, write_question_text

MOST_CHARACTERS = 20_000
"""How long a question may be."""

MOST_BRACKETS = 30
"""How many parentheses may be open at once."""

_STARTS = {"SELECT", "WITH", "EXPLAIN", "(", "FROM"}


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """What the analyst typed: a question, to be answered or only explained."""

    question: Question
    explain: bool = False


def parse(
    text: str, schema: Schema, *, multiplicity: Multiplicity = declared_multiplicity
) -> Question:
    """The question that ``text`` asks, or a refusal; looks at no data."""
    found = parse_statement(text, schema, multiplicity=multiplicity)
    if found.explain:
        raise QuestionRefusal(
            "Q5",
            "EXPLAIN asks about a question.",
            why="it shows what a question would cost; it is none itself.",
            fix="leave EXPLAIN out, or ask through curator.explain.",
        )
    return found.question


def parse_statement(
    text: str, schema: Schema, *, multiplicity: Multiplicity = declared_multiplicity
) -> ParsedStatement:
    """What ``text`` asks for: a question, or with EXPLAIN in front its price and plan only."""

    def accepts(rewritten: str) -> bool:
        try:
            _read_statement(rewritten, Reader(rewritten, schema, multiplicity=multiplicity))
        except (Refusal, RecursionError):
            return False
        return True

    try:
        return _read_statement(
            text, Reader(text, schema, multiplicity=multiplicity, accepts=accepts)
        )
    except RecursionError:
        raise depth_refusal() from None


def _read_statement(text: str, reader: Reader) -> ParsedStatement:
    tokens = _tokenize(text)
    reader.tokens.extend(tokens)
    tree = _parse_tree(text, tokens)
    explain = isinstance(tree, Explain)
    if isinstance(tree, Explain):
        tree = tree.this
    check_allowed(tree, reader)
    while isinstance(tree, exp.Subquery) and tree.args.get("alias") is None:
        tree = tree.this
    if not isinstance(tree, exp.Select):
        raise _not_select(tree, reader)
    try:
        question, normal = read_question(tree, Frame(reader, read_subquery))
    except QuestionRefusal as refusal:
        if refusal.code == "Q10":  # the most common of which is about days
            for change in (cast_texts_to_dates, count_in_days, cast_texts_and_count_in_days):
                reader.improve(refusal, tree, change)
        raise
    _check_written_back(question, normal, reader)
    return ParsedStatement(question, explain)


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
        "a question begins with SELECT, WITH or EXPLAIN.",
        why="analysts read statistics; they change nothing and set nothing.",
        fix="write SELECT COUNT(*) FROM ...",
        span=span,
    )


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
        fix="check brackets, commas and quotes near the mark; docs/sql.md shows the dialect.",
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
        fix="write SELECT COUNT(*) FROM ...",
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


__all__ = [
    "ParsedStatement",
    "depth_refusal",
    "parse",
    "parse_statement",
    "write_question_text",
]
