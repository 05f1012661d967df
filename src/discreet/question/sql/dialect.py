"""The words of a question: ANSI SQL as sqlglot reads it, and BigQuery's privacy clause.

The dialect is a *smaller* sqlglot, not a larger one.  sqlglot turns some five
hundred function names into classes of their own; here every function call stays
a call with a name, and only our own table of names gives it a meaning.  There
are no placeholders, hints, pipes, casts to JSON, lambdas or commands: what the
parser cannot produce, nobody has to refuse.

Added: ``SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.5, ...)`` before
the columns, and arguments by name (``contribution_bounds_per_group => (0, 9)``).
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel
from sqlglot.generator import Generator
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

MOST_NODES = 5_000
"""How many nodes a statement may have; a question of a person has some dozens."""


class PrivacyClause(exp.Expression):
    """``WITH DIFFERENTIAL_PRIVACY OPTIONS(name = value, ...)`` of a SELECT."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": False}


class Explain(exp.Expression):
    """``EXPLAIN`` followed by a question."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


def _named_argument(parser: QuestionParser, names: list[Any]) -> exp.Expr:
    """``name => value`` in a call."""
    value = parser._parse_disjunction()
    if len(names) != 1 or value is None:
        parser.raise_error("Expected one name and a value around =>")
    return parser.expression(exp.Kwarg(this=exp.var(names[0].name), expression=value))


class QuestionTokenizer(Tokenizer):
    """Double quotes and backticks name things, single quotes are text; nothing else quotes."""

    IDENTIFIERS: ClassVar[list[Any]] = ['"', "`"]
    QUOTES: ClassVar[list[Any]] = ["'"]
    COMMANDS: ClassVar[set[TokenType]] = set()
    KEYWORDS: ClassVar[dict[str, TokenType]] = {
        "//": TokenType.DIV,
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
    }
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CASE": lambda self: self._parse_case()}
    LAMBDAS: ClassVar[dict[Any, Any]] = {TokenType.FARROW: _named_argument}
    COLUMN_OPERATORS: ClassVar[dict[Any, Any]] = {
        TokenType.DOT: None,
        TokenType.DCOLON: Parser.COLUMN_OPERATORS[TokenType.DCOLON],
    }
    PLACEHOLDER_PARSERS: ClassVar[dict[Any, Any]] = {}
    STATEMENT_PARSERS: ClassVar[dict[Any, Any]] = {}
    PIPE_SYNTAX_TRANSFORM_PARSERS: ClassVar[dict[str, Any]] = {}
    TYPE_LITERAL_PARSERS: ClassVar[dict[Any, Any]] = {}

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
