"""The question being read: its text, its schema, and how to say no, underlining a span of it.

A refusal underlines what it speaks of.  sqlglot records places of names and
constants only; the span of anything larger is what its parts span, and the
span of a call goes on to its closing parenthesis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from discreet.errors import QuestionRefusal, Span
from discreet.question.domain import Domain
from discreet.question.ownership import Multiplicity, columns, declared_multiplicity
from discreet.question.relation import PublicSource, Relation
from discreet.question.schema import Schema
from discreet.question.sql.dialect import write_text
from discreet.question.sql.rewrite import Change, find_rewrites


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


@dataclass(frozen=True, slots=True)
class Reader:
    """What every stage of reading needs: the text for places, the schema for names."""

    text: str
    schema: Schema
    tokens: list[Token] = field(default_factory=list)
    multiplicity: Multiplicity = declared_multiplicity
    accepts: Callable[[str], bool] | None = None  # None while a rewriting is being tried
    _known: dict[int, tuple[object, Mapping[str, Domain]]] = field(default_factory=dict)

    def columns(self, relation: Relation | PublicSource) -> Mapping[str, Domain]:
        """What each column of ``relation`` can be."""
        found = self._known.get(id(relation))
        if found is None:  # kept with the relation itself, so that no other can take its id
            found = relation, columns(relation, self.multiplicity)
            self._known[id(relation)] = found
        return found[1]

    def refusal(
        self, code: str, node: exp.Expr | None, what: str, *, why: str, fix: str | Fix
    ) -> QuestionRefusal:
        """The word no, underlining ``node``; with a rewriting where ``node`` has a known one."""
        told = fix if isinstance(fix, Fix) else Fix(fix)
        for words, change in find_rewrites(node, self._is_key):
            question = self.rewrite(node, change)
            if question is not None:
                told = Fix.asking(question, words)
                break
        return QuestionRefusal(
            code, what, why=why, fix=told.text, span=self.span(node), rewriting=told.rewriting
        )

    def suggest_fix(self, node: exp.Expr | None, change: Change | None, otherwise: str) -> Fix:
        """A whole question that would be accepted, made by ``change``; else ``otherwise``."""
        question = self.rewrite(node, change)
        return Fix(otherwise) if question is None else Fix.asking(question)

    def improve(
        self, refusal: QuestionRefusal, node: exp.Expr | None, change: Change, words: str = ""
    ) -> None:
        """Give a refusal that comes from below a whole question to type, if there is one."""
        question = self.rewrite(node, change)
        if question is not None:
            refusal.fix = Fix.asking(question, words).text
            refusal.rewriting = question

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
        text = write_text(copy)
        return text if self.accepts(text) else None

    def _is_key(self, table: str, columns: set[str]) -> bool:
        """Whether ``table`` is public, and no two of its rows agree on ``columns``."""
        found = self.schema.tables.get(table)
        return found is not None and any(set(key) <= columns for key in found.unique)

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
                stops.append(self._closing(start, end + 1))
        return (min(starts), max(stops)) if starts else None

    def _closing(self, start: int, stop: int) -> int:
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
