"""A text of several questions, taken apart where its semicolons are."""

from __future__ import annotations

from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType
from sqlglot.tokens import Tokenizer

from discreet.errors import QuestionRefusal


def split_questions(text: str) -> list[str]:
    """The questions of a text, each as it is written, without the semicolon that ends it.

    >>> split_questions("SELECT COUNT(*) FROM a; -- one; two\\nSELECT ';' AS x FROM b;")
    ['SELECT COUNT(*) FROM a', "-- one; two\\nSELECT ';' AS x FROM b"]
    """
    try:
        tokens = Tokenizer(dialect="duckdb").tokenize(text)
    except SqlglotError:
        raise QuestionRefusal(
            "Q2",
            "the text cannot be read as SQL.",
            why="what is not understood cannot be bounded for each person in the data.",
            fix="end each question with a semicolon, and close every quote and comment.",
        ) from None
    found, start, filled = [], 0, False
    for token in tokens:
        if token.token_type is not TokenType.SEMICOLON:
            filled = True
            continue
        if filled:
            found.append(text[start : token.start].strip())
        start, filled = token.end + 1, False
    if filled:
        found.append(text[start:].strip())
    return found


__all__ = ["split_questions"]
