"""The words of a text as PostgreSQL reads them: names, strings, numbers, comments, semicolons.

Nothing here gives a text a meaning.  It is read to cut statements apart, to see
which names occur outside strings and comments, and to put parameters in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from discreet.errors import QuestionRefusal, Span
from discreet.question.sql import MOST_CHARACTERS
from discreet.question.sql.dialect import depth_refusal


class Part(Enum):
    """What a token is."""

    NAME = "name"
    QUOTED = "quoted name"
    STRING = "string"
    ESCAPED = "string with escapes"
    PARAMETER = "parameter"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Token:
    """A word and where it stands."""

    part: Part
    text: str
    start: int
    stop: int

    @property
    def name(self) -> str | None:
        """The name it is, as PostgreSQL knows it; None if it is none."""
        if self.part is Part.NAME:
            return self.text.lower()
        if self.part is Part.QUOTED:
            return self.text[1:-1].replace('""', '"')
        return None

    def says(self, *words: str) -> bool:
        """Whether it is one of these words, unquoted."""
        return self.part is Part.NAME and self.text.upper() in words


_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*)
    |(?P<comment>/\*)
    |(?P<escaped>[eE]'(?:[^'\\]|\\.|'')*'|[bBxXnN]'(?:[^']|'')*')
    |(?P<unreadable>[uU]&["']|[eEbBxXnN]')
    |(?P<string>'(?:[^']|'')*')
    |(?P<quoted>"(?:[^"]|"")*")
    |(?P<dollar>\$(?P<tag>(?:[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*)?)\$)
    |(?P<parameter>\$[0-9]+)
    |(?P<name>[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*)
    |(?P<number>[0-9][0-9A-Za-z_.]*|\.[0-9][0-9A-Za-z_]*)
    |(?P<other>::|[^\s])
    """,
    re.VERBOSE | re.DOTALL,
)
_ASKED = re.compile(r"\s*(?:EXPLAIN\s+)?((?:SELECT|WITH)\b.*)", re.IGNORECASE | re.DOTALL)
_KINDS = {
    "escaped": Part.ESCAPED,
    "string": Part.STRING,
    "quoted": Part.QUOTED,
    "parameter": Part.PARAMETER,
    "name": Part.NAME,
    "number": Part.OTHER,
    "other": Part.OTHER,
}


def tokenize(text: str) -> list[Token]:
    """The tokens of a text, comments left out.

    >>> [t.text for t in tokenize("SELECT 'a;b' /* c /* d */ ; */ FROM \\"T\\" -- e")]
    ['SELECT', "'a;b'", 'FROM', '"T"']
    """
    return list(_tokens(text))


def _tokens(text: str) -> Iterator[Token]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        kind = None if found is None else found.lastgroup
        if found is None or kind is None:  # one of the alternatives always matches
            raise _unreadable(text, at)
        kind = "dollar" if kind == "tag" else kind
        stop = found.end()
        if kind == "comment":
            at = _end_comment(text, at)
            continue
        if kind == "dollar":
            end = text.find(found.group(), stop)
            if end < 0:
                raise _unreadable(text, at)
            stop = end + len(found.group())
            yield Token(Part.ESCAPED, text[at:stop], at, stop)
        elif kind == "unreadable" or found.group() in ("'", '"'):  # a quote that never ends
            raise _unreadable(text, at)
        elif kind != "space":
            yield Token(_KINDS[kind], found.group(), at, stop)
        at = stop


def _end_comment(text: str, at: int) -> int:
    """Where a comment ends, with those inside it."""
    depth, start = 0, at
    for found in re.compile(r"/\*|\*/").finditer(text, at):
        depth += 1 if found.group() == "/*" else -1
        if depth == 0:
            return found.end()
    raise _unreadable(text, start)


def _unreadable(text: str, at: int) -> QuestionRefusal:
    asked = _ASKED.match(text)
    closed = f": ask {asked[1]}{text[at]}" if asked and text[at : at + 1] in ("'", '"') else "."
    return QuestionRefusal(
        "Q2",
        "this SQL cannot be read from here on.",
        why="what is not understood wholly is not answered at all. Nothing was charged.",
        fix=f"close every quote and comment; write text as '...' and names as \"...\"{closed}",
        span=Span(text, at, min(at + 1, len(text))),
    )


def split(text: str) -> list[list[Token]]:
    """The statements of a text: the tokens of each, without semicolons.

    >>> [[t.text for t in tokens] for tokens in split("BEGIN; SELECT ';' ;;")]
    [['BEGIN'], ['SELECT', "';'"]]
    """
    found: list[list[Token]] = [[]]
    for token in _tokens(text):
        if token.part is Part.OTHER and token.text == ";":
            found.append([])
        else:
            found[-1].append(token)
    return [tokens for tokens in found if tokens]


def unquote(token: Token) -> str:
    """What a string or a name says; a bare word says itself."""
    if token.part is Part.STRING:
        return token.text[1:-1].replace("''", "'")
    if token.part is Part.QUOTED:
        return token.text[1:-1].replace('""', '"')
    return token.text


@dataclass(frozen=True, slots=True)
class Filled:
    """A text with other words in some places, and where its words came from."""

    text: str
    pieces: tuple[tuple[int, int, int], ...]
    """For each piece: where it begins here, where it began, and how long it was there."""

    def origin(self, at: int) -> int:
        """Where what stands ``at`` came from."""
        begins, began, length = max(piece for piece in self.pieces if piece[0] <= max(at, 0))
        return began + min(max(at, 0) - begins, max(length - 1, 0))


def rewrite(text: str, tokens: Sequence[Token], put: dict[int, str]) -> Filled:
    """The statement of ``tokens`` without comments, with ``put`` in the place of some tokens.

    Comments become spaces: they mean nothing, and readers differ on where they end.

    A statement that would grow beyond any question is refused, and not written: a long constant
    may stand in thousands of places.

    >>> t = "SELECT 5 /* ( */ - $1"
    >>> filled = rewrite(t, tokenize(t), {3: "(-2)"})
    >>> filled.text, filled.origin(filled.text.index("(-2)")) == t.index("$1")
    ('SELECT 5         - (-2)', True)
    """
    if sum(len(new) - len(tokens[number].text) for number, new in put.items()) > MOST_CHARACTERS:
        raise depth_refusal()
    out: list[str] = []
    pieces: list[tuple[int, int, int]] = []
    length = 0
    at = tokens[0].start if tokens else 0

    def add(piece: str, began: int, was: int) -> None:
        nonlocal length
        if piece:
            pieces.append((length, began, was))
            out.append(piece)
            length += len(piece)

    for number, token in enumerate(tokens):
        gap = text[at : token.start]
        add("".join(c if c.isspace() else " " for c in gap), at, len(gap))
        add(put.get(number, token.text), token.start, token.stop - token.start)
        at = token.stop
    return Filled("".join(out), tuple(pieces) or ((0, 0, 1),))


__all__ = ["Filled", "Part", "Token", "rewrite", "split", "tokenize", "unquote"]
