"""Texts: letters, parts, lengths.  Characters are Unicode code points."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from discreet.question.domain import TEXT_LIMIT, Domain, Kind, Value, boolean
from discreet.question.functions import nodes
from discreet.question.functions.declaration import (
    Domains,
    Function,
    Nodes,
    Plain,
    cast_to,
    check_kinds,
    declare,
    refuse_kinds,
    single,
    strict,
)
from discreet.question.functions.nodes import Node


def _ascii(value: Value) -> bool:
    """Engines agree on the case of these letters; of others, each has its own tables."""
    return isinstance(value, str) and value.isascii()


def _text_rule(usage: str) -> Callable[[Domains], Domain]:
    def rule(domains: Domains) -> Domain:
        check_kinds(domains, usage, Kind.TEXT)
        return Domain(Kind.TEXT, nullable=domains[0].nullable)

    return rule


def _each(convert: Callable[[str], str]) -> Callable[[str], str]:
    """Letter by letter, as the engine does: a letter that would become two stays."""

    def whole(value: str) -> str:
        return "".join(new if len(new := convert(old)) == 1 else old for old in value)

    return whole


def _of_text(
    name: str, meaning: str, evaluate: Callable[[str], str], listable: Callable[[Value], bool]
) -> None:
    usage = f"{name.upper()}(text)"

    def render(arguments: Nodes, domains: Domains) -> Node:
        return nodes.call(name.upper(), cast_to(arguments[0], domains[0], Kind.TEXT))

    declare(Function(name, usage, meaning, _text_rule(usage), render, strict(evaluate), listable))


_of_text("lower", "the text in small letters", _each(str.lower), _ascii)
_of_text("upper", "the text in capital letters", _each(str.upper), _ascii)


def _trim_render(arguments: Nodes, domains: Domains) -> Node:
    return nodes.trim(cast_to(arguments[0], domains[0], Kind.TEXT))


declare(
    Function(
        "trim",
        "TRIM(text)",
        "the text without spaces at either end",
        _text_rule("TRIM(text)"),
        _trim_render,
        strict(lambda a: a.strip(" ")),
    )
)

_LENGTH = "LENGTH(text)"


def _length_rule(domains: Domains) -> Domain:
    check_kinds(domains, _LENGTH, Kind.TEXT)
    return Domain(Kind.INTEGER, Fraction(0), Fraction(TEXT_LIMIT), domains[0].nullable)


declare(
    Function(
        "length",
        _LENGTH,
        f"how many characters the text has (at most {TEXT_LIMIT}: longer texts are cut when read)",
        _length_rule,
        lambda arguments, domains: nodes.call(
            "LENGTH", cast_to(arguments[0], domains[0], Kind.TEXT)
        ),
        strict(len),
    )
)


# --- parts ---------------------------------------------------------------------------------

_SUBSTR = "SUBSTR(text, first, length)"


def _part(domains: Domains) -> tuple[int, int]:
    """From which character on, and how many: constants of the question."""
    usage = f"{_SUBSTR} with constants first >= 1 and length >= 0"
    numbers = [single(d) for d in domains[1:]]
    if not 1 <= len(numbers) <= 2 or not all(type(n) is int for n in numbers):
        refuse_kinds(usage, domains)
    first, count = (*numbers, TEXT_LIMIT)[:2]
    if not isinstance(first, int) or not isinstance(count, int) or first < 1 or count < 0:
        refuse_kinds(usage, domains)
    return min(first, TEXT_LIMIT + 1), min(count, TEXT_LIMIT)  # past the end is past the end


def _substr_rule(domains: Domains) -> Domain:
    _part(domains)
    check_kinds(domains[:1], _SUBSTR, Kind.TEXT)
    return Domain(Kind.TEXT, nullable=domains[0].nullable)


def _substr_render(arguments: Nodes, domains: Domains) -> Node:
    first, count = _part(domains)
    argument = cast_to(arguments[0], domains[0], Kind.TEXT)
    return nodes.call("SUBSTR", argument, nodes.integer(first), nodes.integer(count))


def _substr(value: str, first: int, count: int = TEXT_LIMIT) -> str:
    return value[first - 1 : first - 1 + count]


declare(
    Function(
        "substr",
        _SUBSTR,
        "part of a text: constants say from which character (1 is the first) and how many",
        _substr_rule,
        _substr_render,
        strict(_substr),
    )
)

_CONCAT = "a || b"


def _concat_rule(domains: Domains) -> Domain:
    if not domains:
        refuse_kinds(_CONCAT, domains)
    check_kinds(domains, _CONCAT, *[Kind.TEXT] * len(domains))
    return Domain(Kind.TEXT, nullable=any(d.nullable for d in domains))


def _concat_render(arguments: Nodes, domains: Domains) -> Node:
    same = [cast_to(n, d, Kind.TEXT) for n, d in zip(arguments, domains, strict=True)]
    node = same[0]
    for other in same[1:]:
        node = nodes.infix(exp.DPipe, node, other)
    return nodes.shorten(node)


def _concat(*values: Plain) -> str:
    return "".join(values)[:TEXT_LIMIT]


declare(
    Function(
        "concat",
        _CONCAT,
        f"texts one after the other (the first {TEXT_LIMIT} characters); NULL if any is NULL",
        _concat_rule,
        _concat_render,
        strict(_concat),
    )
)


def _within(name: str, usage: str, meaning: str, evaluate: Callable[[str, str], bool]) -> None:
    def rule(domains: Domains) -> Domain:
        check_kinds(domains, usage, Kind.TEXT, Kind.TEXT)
        return boolean(nullable=any(d.nullable for d in domains))

    def render(arguments: Nodes, domains: Domains) -> Node:
        same = [cast_to(n, d, Kind.TEXT) for n, d in zip(arguments, domains, strict=True)]
        return nodes.call(name.upper(), *same)

    declare(Function(name, usage, meaning, rule, render, strict(evaluate)))


_within(
    "starts_with", "STARTS_WITH(text, start)", "whether the text begins with start", str.startswith
)
_within("ends_with", "ENDS_WITH(text, end)", "whether the text ends with end", str.endswith)
_within(
    "contains",
    "CONTAINS(text, part)",
    "whether part occurs in the text",
    lambda value, part: part in value,
)


# --- pieces --------------------------------------------------------------------------------

_RIGHT = "RIGHT(text, length)"


def _right_count(domains: Domains) -> int:
    count = single(domains[1]) if len(domains) == 2 else None
    if type(count) is not int or count < 0:
        refuse_kinds(f"{_RIGHT} with a constant length >= 0", domains)
    return min(count, TEXT_LIMIT)


def _right_rule(domains: Domains) -> Domain:
    _right_count(domains)
    check_kinds(domains[:1], _RIGHT, Kind.TEXT)
    return Domain(Kind.TEXT, nullable=domains[0].nullable)


declare(
    Function(
        "right",
        _RIGHT,
        "the last characters of a text, as many as the constant says",
        _right_rule,
        lambda arguments, domains: nodes.call(
            "RIGHT",
            cast_to(arguments[0], domains[0], Kind.TEXT),
            nodes.integer(_right_count(domains)),
        ),
        strict(lambda value, count: value[max(len(value) - count, 0) :]),
    )
)

_SPLIT = "SPLIT_PART(text, '-', place)"


def _split_constants(domains: Domains) -> tuple[str, int]:
    between, place = map(single, domains[1:]) if len(domains) == 3 else (None, None)
    if not isinstance(between, str) or not between or type(place) is not int or place < 1:
        refuse_kinds(f"{_SPLIT} with a constant text between and a constant place >= 1", domains)
    return between, min(place, TEXT_LIMIT + 2)


def _split_rule(domains: Domains) -> Domain:
    _split_constants(domains)
    check_kinds(domains[:1], _SPLIT, Kind.TEXT)
    return Domain(Kind.TEXT, nullable=domains[0].nullable)


def _split_render(arguments: Nodes, domains: Domains) -> Node:
    between, place = _split_constants(domains)
    argument = cast_to(arguments[0], domains[0], Kind.TEXT)
    return nodes.call("SPLIT_PART", argument, nodes.text(between), nodes.integer(place))


def _split_part(value: str, between: str, place: int) -> str:
    parts = value.split(between)
    return parts[place - 1] if place <= len(parts) else ""


declare(
    Function(
        "split_part",
        _SPLIT,
        "one of the pieces between a constant text, the first is 1; empty beyond the last",
        _split_rule,
        _split_render,
        strict(_split_part),
    )
)

_REPLACE = "REPLACE(text, 'old', 'new')"


def _replace_constants(domains: Domains) -> tuple[str, str]:
    old, new = map(single, domains[1:]) if len(domains) == 3 else (None, None)
    if not isinstance(old, str) or not isinstance(new, str) or not old or len(new) > 100:
        refuse_kinds(f"{_REPLACE} with constants, new of at most 100 characters", domains)
    return old, new


def _replace_rule(domains: Domains) -> Domain:
    _replace_constants(domains)
    check_kinds(domains[:1], _REPLACE, Kind.TEXT)
    return Domain(Kind.TEXT, nullable=domains[0].nullable)


def _replace_render(arguments: Nodes, domains: Domains) -> Node:
    old, new = map(nodes.text, _replace_constants(domains))
    argument = cast_to(arguments[0], domains[0], Kind.TEXT)
    return nodes.shorten(nodes.call("REPLACE", argument, old, new))


declare(
    Function(
        "replace",
        _REPLACE,
        f"the text with another in the place of a part (the first {TEXT_LIMIT} characters)",
        _replace_rule,
        _replace_render,
        strict(lambda value, old, new: value.replace(old, new)[:TEXT_LIMIT]),
    )
)

_PLACE = "STRPOS(text, part)"


def _place_rule(domains: Domains) -> Domain:
    check_kinds(domains, _PLACE, Kind.TEXT, Kind.TEXT)
    nullable = any(d.nullable for d in domains)
    return Domain(Kind.INTEGER, Fraction(0), Fraction(TEXT_LIMIT + 1), nullable)


declare(
    Function(
        "strpos",
        _PLACE,
        "where a part first stands in the text, 1 is the first character; 0 if nowhere",
        _place_rule,
        lambda arguments, domains: nodes.call(
            "STRPOS",
            *(cast_to(n, d, Kind.TEXT) for n, d in zip(arguments, domains, strict=True)),
        ),
        strict(lambda value, part: value.find(part) + 1),
    )
)
