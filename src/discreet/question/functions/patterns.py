"""Regular expressions: constants of the question, checked and written anew for the engine.

The engine's own expressions (RE2) take time linear in the text, whatever they are; what
the two syntaxes share is read by Python's parser, and only what it understood is written.
So nothing that the engine could fail on reaches it.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

from discreet.question.domain import Domain, Kind, boolean
from discreet.question.functions import nodes
from discreet.question.functions.declaration import (
    Domains,
    Function,
    Nodes,
    cast_to,
    check_kinds,
    declare,
    refuse_kinds,
    single,
    strict,
)
from discreet.question.functions.nodes import Node

MOST_PATTERN = 200
"""How many characters a pattern may have."""

MOST_STATES = 1_000
"""How long a pattern may be once its repetitions are written out."""

_USAGE = "REGEXP_LIKE(text, 'pattern')"
_CATEGORIES = {
    _constants.CATEGORY_DIGIT: r"0-9",
    _constants.CATEGORY_SPACE: r"\t\n\v\f\r ",
    _constants.CATEGORY_WORD: r"0-9A-Za-z_",
}
_OTHERS = {
    _constants.CATEGORY_NOT_DIGIT: _constants.CATEGORY_DIGIT,
    _constants.CATEGORY_NOT_SPACE: _constants.CATEGORY_SPACE,
    _constants.CATEGORY_NOT_WORD: _constants.CATEGORY_WORD,
}
_PLACES = {
    _constants.AT_BEGINNING: r"\A",
    _constants.AT_BEGINNING_STRING: r"\A",
    _constants.AT_END: r"\z",
    _constants.AT_END_STRING: r"\z",
    _constants.AT_BOUNDARY: r"\b",
    _constants.AT_NON_BOUNDARY: r"\B",
}


class _Unreadable(ValueError):
    """The pattern has something in it that is not shared."""


@lru_cache(maxsize=256)
def write_pattern(pattern: str) -> str | None:
    r"""The pattern for the engine; None if it is not one that both understand.

    >>> write_pattern("^[a-c]+(ab|\\d)$")
    '\\A[a-c]{1,}(?:(?:ab)|(?:[0-9]))\\z'
    >>> write_pattern("(a)\\1") is write_pattern("(?=a)") is None
    True
    """
    if not 0 < len(pattern) <= MOST_PATTERN:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what Python only warns of means two things
            tree = _parser.parse(pattern, re.ASCII)
        if tree.state.flags & ~(re.ASCII | re.IGNORECASE):
            return None
        written, size = _sequence(tree)
    except (re.error, RecursionError, OverflowError, FutureWarning, DeprecationWarning, ValueError):
        return None
    if size > MOST_STATES:
        return None
    return ("(?i)" if tree.state.flags & re.IGNORECASE else "") + written


@lru_cache(maxsize=256)
def count_states(pattern: str) -> int:
    """How long a pattern is once its repetitions are written out; 1 if it is none.

    >>> count_states("^a+b$"), count_states("(a{0,20}){20}b")
    (6, 842)
    """
    if write_pattern(pattern) is None:
        return 1
    return _sequence(_parser.parse(pattern, re.ASCII))[1]


def _sequence(tree: Any) -> tuple[str, int]:
    parts = [_part(operator, argument) for operator, argument in tree]
    size = 1 + sum(size for _, size in parts)
    return "".join(text for text, _ in parts), size


def _part(operator: Any, argument: Any) -> tuple[str, int]:
    match operator:
        case _constants.LITERAL:
            return _letter(argument), 1
        case _constants.NOT_LITERAL:
            return f"[^{_letter(argument)}]", 1
        case _constants.ANY:
            return r"[^\n]", 1
        case _constants.IN:
            return _letters(argument), 1
        case _constants.AT if argument in _PLACES:
            return _PLACES[argument], 1
        case _constants.BRANCH:
            ways = [_sequence(way) for way in argument[1]]
            return f"(?:{'|'.join(f'(?:{text})' for text, _ in ways)})", 1 + sum(n for _, n in ways)
        case _constants.SUBPATTERN:
            _, added, removed, inside = argument
            if added or removed:
                raise _Unreadable
            text, size = _sequence(inside)
            return f"(?:{text})" if not text.startswith("(?:") else text, size
        case _constants.MAX_REPEAT | _constants.MIN_REPEAT:
            return _repeat(argument, lazy=operator is _constants.MIN_REPEAT)
        case _:
            raise _Unreadable


def _letter(code: int) -> str:
    character = chr(code)
    return character if character.isalnum() and code < 128 else rf"\x{{{code:x}}}"


def _letters(members: Any) -> str:
    inside, start = "", "["
    for operator, argument in members:
        match operator:
            case _constants.NEGATE:
                start = "[^"
            case _constants.LITERAL:
                inside += _letter(argument)
            case _constants.RANGE:
                inside += f"{_letter(argument[0])}-{_letter(argument[1])}"
            case _constants.CATEGORY if argument in _CATEGORIES:
                inside += _CATEGORIES[argument]
            case _constants.CATEGORY if len(members) == 1 and argument in _OTHERS:
                return f"[^{_CATEGORIES[_OTHERS[argument]]}]"
            case _:
                raise _Unreadable
    return f"{start}{inside}]"


def _repeat(argument: Any, *, lazy: bool) -> tuple[str, int]:
    least, most, inside = argument
    text, size = _sequence(inside)
    endless = most is _constants.MAXREPEAT
    times = max(least, 1) if endless else most
    if times * size > MOST_STATES:
        raise _Unreadable
    body = text if _ONE.fullmatch(text) else f"(?:{text})"
    return f"{body}{{{least},{'' if endless else most}}}{'?' if lazy else ''}", times * size


_ONE = re.compile(r"\w|\[[^\]]*\]")  # a letter or a class of letters


def _rule(domains: Domains) -> Domain:
    check_kinds(domains, _USAGE, Kind.TEXT, Kind.TEXT)
    pattern = single(domains[1])
    if not isinstance(pattern, str) or write_pattern(pattern) is None:
        refuse_kinds(
            f"{_USAGE} with a constant pattern: letters, ., [a-z], |, (...), *, +, ?, {{m,n}}, "
            "^, $, \\d, \\w, \\s, \\b, and (?i) before all of it",
            domains,
        )
    return boolean(nullable=domains[0].nullable)


def _render(arguments: Nodes, domains: Domains) -> Node:
    pattern = write_pattern(str(single(domains[1]))) or ""
    return nodes.call(
        "REGEXP_MATCHES", cast_to(arguments[0], domains[0], Kind.TEXT), nodes.text(pattern)
    )


# --- as Python evaluates it ----------------------------------------------------------------

# Python's own matcher backtracks: '^(a+)+b$' on thirty letters takes minutes, in which no other
# thread runs.  So released values are matched as the engine matches rows: all ways at once.

_CHARACTER, _SPLIT, _PLACE, _MATCH = range(4)


class _Automaton:
    """The states of a pattern: each a kind, what it asks for, and where it leads."""

    def __init__(self, pattern: str) -> None:
        tree = _parser.parse(pattern, re.ASCII)
        self._flags = re.ASCII | (tree.state.flags & re.IGNORECASE)
        self._states: list[tuple[int, Any, tuple[int, ...]]] = [(_MATCH, None, ())]
        self._start = self._sequence(tree, 0)

    def _add(self, kind: int, asked: Any, *after: int) -> int:
        self._states.append((kind, asked, after))
        return len(self._states) - 1

    def _sequence(self, tree: Any, after: int) -> int:
        for operator, argument in reversed(list(tree)):
            after = self._part(operator, argument, after)
        return after

    def _part(self, operator: Any, argument: Any, after: int) -> int:
        match operator:
            case _constants.AT:
                return self._add(_PLACE, argument, after)
            case _constants.BRANCH:
                ways = [self._sequence(way, after) for way in argument[1]]
                return self._add(_SPLIT, None, *ways)
            case _constants.SUBPATTERN:
                return self._sequence(argument[3], after)
            case _constants.MAX_REPEAT | _constants.MIN_REPEAT:
                return self._repeat(argument, after)
            case _:
                text, _size = _part(operator, argument)
                asked = re.compile(_python_escapes(text), self._flags)
                return self._add(_CHARACTER, lru_cache(maxsize=256)(asked.fullmatch), after)

    def _repeat(self, argument: Any, after: int) -> int:
        least, most, inside = argument
        if most is _constants.MAXREPEAT:
            first = self._add(_SPLIT, None)
            self._states[first] = (_SPLIT, None, (self._sequence(inside, first), after))
        else:
            first = after
            for _ in range(most - least):
                first = self._add(_SPLIT, None, self._sequence(inside, first), after)
        for _ in range(least):
            first = self._sequence(inside, first)
        return first

    def search(self, value: str) -> bool:
        """Whether a part of the text matches: steps by its length times the pattern's."""
        found: set[int] = set()
        for place in range(len(value) + 1):
            found = self._reach({*found, self._start}, value, place)
            if 0 in found:
                return True
            letter = value[place : place + 1]
            found = {
                after[0]
                for kind, asked, after in map(self._states.__getitem__, found)
                if kind == _CHARACTER and letter and asked(letter) is not None
            }
        return False

    def _reach(self, states: set[int], value: str, place: int) -> set[int]:
        """The states that are reached from these without a letter."""
        reached, waiting = set(states), list(states)
        while waiting:
            kind, asked, after = self._states[waiting.pop()]
            if kind == _SPLIT or (kind == _PLACE and _stands(asked, value, place)):
                waiting += set(after) - reached
                reached.update(after)
        return reached


def _stands(asked: Any, value: str, place: int) -> bool:
    """Whether a place in the text is the beginning, the end, or (not) the edge of a word."""
    if asked in (_constants.AT_BEGINNING, _constants.AT_BEGINNING_STRING):
        return place == 0
    if asked in (_constants.AT_END, _constants.AT_END_STRING):
        return place == len(value)
    before, after = (
        bool(_WORD.fullmatch(value[n : n + 1])) if n >= 0 else False for n in (place - 1, place)
    )
    return (before != after) == (asked is _constants.AT_BOUNDARY)


_WORD = re.compile(r"\w", re.ASCII)


def _python_escapes(text: str) -> str:
    return re.sub(r"\\x\{(\w+)\}", lambda found: f"\\U{int(found[1], 16):08x}", text)


@lru_cache(maxsize=256)
def _automaton(pattern: str) -> _Automaton:
    return _Automaton(pattern)


def _matches(value: str, pattern: str) -> bool:
    """As Python sees it; never used to list values: how the engine folds letters is its own."""
    return _automaton(pattern).search(value)


declare(
    Function(
        "regexp_matches",
        _USAGE,
        "whether a part of the text has the form of a constant pattern",
        _rule,
        _render,
        strict(_matches),
        lambda _: False,
    )
)
