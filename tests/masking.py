"""What a page says was printed and what is printed now, without what chance decides.

Only noisy values are masked, and what is computed from them.  Losses, prices, margins, budgets,
balances, counts of records and all words stay, and are compared as they stand; of the layout only
the width of columns goes, which follows the longest value.  What is masked because chance moves it
is compared as well, with as much room as chance needs once in 10⁹ pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import unified_diff
from typing import Any, NamedTuple

MASK = "~"
MARGINS, SHARE = 12, 0.1
"""How far apart two noisy values of the same thing may be: 12 margins and a tenth of the value.

At 95 % the margin of Laplace noise of scale b is 3 b or more; two such draws differ by t with a
probability of (1 + t / 2b) exp(-t / b), at 36 b below 10⁻¹³ (of Gaussian noise by far less).  The
tenth is for the made-up clinic, whose people are drawn anew: a city of n of them varies by less
than √(2 n) between two, and by Chernoff's bound that and the noise together exceed the room with a
probability below 10⁻¹² for 400 and 10⁻¹¹ for any number of people; a page has a dozen such values.
"""
MARGINS_OF_FIXED = 9
"""The same where the data stay: 27 b, below 10⁻¹⁰ (and the tenth beside it)."""

NUMBER = r"-?\d[\d,]*(?:\.\d+)?"
CHANCE = {
    rf"({NUMBER})(?= ±)": "a value with its margin is a noisy one",
    r"\bdiscreet_([0-9a-f]{16}_[0-9a-f]+|…)": "a key",
    r"\b([0-9a-f]{16,})\b": "a hash, or the public half of a key",
    r"(\d{4}-\d\d-\d\d \d\d:\d\d)": "when it was asked",
}
"""What chance decides on every page: what the groups of a pattern match."""

CHANCE_OF_PAGES = {
    "docs/faults.md": {r'"cpu_s": ([\d.]+)': "what a processor took"},
    "docs/learn/engineer.md": {
        r"discreet, ε = 1 +(\d+)%": "how often an attacker of noisy answers is right",
    },
    "docs/publication.md": {
        r"^[A-Z]\w+ +[\d,]+ ± (\d+)$": "which tables are measured is drawn, and with it what a "
        "count is added up from",
        r"draws +(\d+) as": "so many of them",
        r"pair tables +ρ = ([\d.]+) drawn": "nothing, where noise says that no columns go together",
    },
    "docs/cookbook/audience.md": {
        r"^topic (1[68]) ": "which of the two is second, once in 70,000 runs"
    },
}
"""What else chance decides on a page, and why."""


class Near(NamedTuple):
    """A figure that chance moves a little: why, and by how much at most, but once in 10⁹ pages."""

    why: str
    by: float = 0
    share: float = 0.25


PSQL = {
    r"(?:\||^) +(-?\d+)$": Near(
        "a noisy count, the last cell of a line of psql's: ± 30, and as above", MARGINS * 30, SHARE
    )
}
ENDS = "the ends of an interval around a noisy estimate, of an error of 267, six times and more"
OPEN = "what the synthetic rows say: many times what it differs by from run to run"
ERROR = "the mean of {} errors of about 3 each, as of Laplace noise: a gamma law's tail"
NEARLY = {
    "docs/postgres.md": PSQL,
    "docs/learn/analyst.md": {
        **PSQL,
        r"[\d,]+ ± ([\d,]+) +[\d.]+ ± ([\d.]+)$": Near(
            "of a sum: room for the rounding of as many rows as were released; of a mean: it is "
            "divided by as many"
        ),
    },
    "docs/learn/steward.md": {
        r"^\w+ +[\d,]+ ± 104 +[\d.]+ ± ([\d.]+)$": Near(
            "the margin of a mean, divided by a noisy count"
        ),
        r"^1,\d\d\d ± (\d+)$": Near("the margin of a mean, divided by a noisy count"),
    },
    "docs/learn/engineer.md": {
        r"at least ε = ([\d.]+)$": Near("a bound from samples"),
        r"^\[(-?\d+), (-?\d+)\]$": Near("two noisy counts, ± 30", MARGINS * 30, 0),
    },
    "docs/cookbook/births.md": {
        r"^births +[\d.]+ +([\d.]+)$": Near(OPEN, 400, 0),
        r"^(?:before|under) .*\d\.\d\d +([\d.]+)$": Near(OPEN, 0.25, 0),
        r"^mean age .*\d\.\d\d +([\d.]+)$": Near(OPEN, 0.2, 0),
        r"^(?:grams|boys) .*\d\.\d\d +(-?[\d.]+)$": Near(OPEN, 10, 0),
    },
    "docs/cookbook/census.md": {
        r"^county +10 +60000 +([\d.]+) ": Near(ERROR.format(10), 12, 0),
        r"^tract +100 +60000 +([\d.]+) ": Near(ERROR.format(100), 3.5, 0),
        r"^block +500 +60000 +([\d.]+) ": Near(ERROR.format(500), 2, 0),
        r"^\w+ +\d+ +60000 +[\d.]+ +([\d.]+)$": Near(
            "the margins have room for what noisy numbers were moved by to be whole, and not "
            "negative"
        ),
    },
    "docs/cookbook/mobility.md": {
        r" (-?\d\.\d{6})$": Near(
            "the ratio of two noisy counts, of which the lower is 677 or more: of noise of scale 8 "
            "it moves by 0.4 with a probability below 1e-11",
            0.4,
            0,
        )
    },
    "docs/cookbook/page_views.md": {
        r"^shown: (\d+) of": Near(
            "how many pages have enough readers with noise: about 20 are near the threshold, and "
            "they make a standard deviation of 3.4",
            30,
            0,
        ),
        r"^truth within the margin: (\d+) of (\d+)": Near(
            "of as many pages, those whose number noise and cap together move by less than 36",
            45,
            0,
        ),
        r"^readings on them: (\d+)%": Near("the sum of noisy counts", 4, 0),
    },
    "docs/cookbook/payments.md": {
        r"[\d,]+ ± 1,611 +[\d.]+ ± ([\d.]+)$": Near(
            "the margin of a mean, divided by a noisy count"
        )
    },
    "docs/cookbook/telemetry.md": {
        r"between (-?\d+) and (\d+) devices": Near(ENDS, 2_100, 0),
        r"^root mean squared error (\d+) of": Near(
            "the error of 64 estimates of 267 each before they are made to add up, which brings "
            "them closer: chi-squared, 417 at most",
            208,
            0,
        ),
    },
}
"""Figures of a page that chance moves a little, and why."""


def assert_same(page: str, said: str, now: str) -> None:
    """Fail unless what is printed ``now`` is what a page ``said``, but for chance."""
    shown, printed = mask_noise(said, page), mask_noise(now, page)
    assert printed == shown, "\n".join(unified_diff(shown, printed, "page", "printed", lineterm=""))
    assert find_far(said, now, page) == []


def find_far(said: str, now: str, page: str = "", margins: float = MARGINS) -> list[str]:
    """Values further apart than chance moves them, in two outputs that are else the same."""
    shown, printed = (list(_read_values(text, page, margins)) for text in (said, now))
    pairs = zip(shown, printed, strict=True)
    return [
        f"{one:g}, now {other:g}" for (one, room), (other, _) in pairs if abs(one - other) > room
    ]


VALUE = re.compile(rf"({NUMBER}) ± ({NUMBER})")


def _read_values(text: str, page: str, margins: float) -> Iterator[tuple[float, float]]:
    """Each figure that chance moves, and how far it may."""
    lines = text.strip("\n").splitlines()
    for line, noisy in _read_frames(lines):
        found = [(line[slice(*span)], line[slice(*margin)]) for span, margin in noisy]
        for value, margin in [*found, *VALUE.findall(line)]:
            number = _read(value)
            yield number, margins * _read(margin) + SHARE * abs(number)
        for pattern, near in NEARLY.get(page, {}).items():
            for match in re.finditer(pattern, line):
                for one in match.groups():
                    yield _read(one), near.by + near.share * abs(_read(one))


def _read(number: str) -> float:
    return float(number.replace(",", ""))


def mask_noise(text: str, page: str = "") -> list[str]:
    """The lines of an output without what chance decides.

    >>> mask_noise("Cork    3,075 ± 30\\n\\n± at 95 % confidence; cost ε = 0.1")
    ['Cork ~ ± 30', '', '± at 95 % confidence; cost ε = 0.1']
    >>> mask_noise("  n  n_margin  n_low  n_high\\n809      21.0  788.0   830.0")
    ['n n_margin n_low n_high', '~ 21.0 ~ ~']
    """
    patterns = [*NEARLY.get(page, ()), *CHANCE_OF_PAGES.get(page, ()), *CHANCE]
    found = list(_read_frames(text.strip("\n").splitlines()))
    lines = [_hide(line, (span for span, _margin in noisy)) for line, noisy in found]
    return [_even(_mask(line, patterns)) for line in lines]


NOISY_FIELDS = ("low", "high")
OWN_FIELDS = ("at", "id", "key")


def mask_json(value: Any) -> Any:
    """What a server answers without noise, names of records and keys, and times.

    >>> mask_json({"id": "5", "rows": [["Cork", 12]], "cells": [["12 ± 3"]], "margins": [[3.0]]})
    {'id': '~', 'rows': [['Cork', '~']], 'cells': [['~ ± 3']], 'margins': [[3.0]]}
    """
    match value:
        case dict():
            return {name: _mask_field(name, one) for name, one in value.items()}
        case list():
            return [mask_json(one) for one in value]
        case str():
            return "\n".join(mask_noise(value))
        case _:
            return value


def find_far_json(shown: Any, told: Any) -> list[str]:
    """Noisy values that a server answers further from what is shown than chance moves them.

    >>> find_far_json({"rows": [["Cork", 980]], "margins": [[None, 90.0]]}, {"rows": [["?", 12]]})
    ['980, now 12']
    >>> find_far_json({"cells": [["980 ± 90"]]}, {"cells": [["640 ± 90"]]})
    []
    """
    match shown, told:
        case {"low": float(low), "high": float(high)}, {"low": float(), "high": float()}:
            margin = (high - low) / 2
            return [text for end in ("low", "high") for text in _far(shown[end], told[end], margin)]
        case {"rows": rows, "margins": margins}, {"rows": answered}:
            cells = zip(_flatten(rows), _flatten(margins), _flatten(answered), strict=True)
            far = [text for one, margin, now in cells if margin for text in _far(one, now, margin)]
            return far + [
                text
                for name in shown.keys() - {"rows"}
                if name in told
                for text in find_far_json(shown[name], told[name])
            ]
        case dict(), dict():
            return [
                text
                for name in shown
                if name in told
                for text in find_far_json(shown[name], told[name])
            ]
        case list(), list():
            return [
                text
                for one, now in zip(shown, told, strict=False)
                for text in find_far_json(one, now)
            ]
        case str(), str():
            return find_far(shown, told, margins=MARGINS_OF_FIXED) if " ± " in shown else []
        case _:
            return []


def _far(one: float, now: float, margin: float) -> list[str]:
    room = MARGINS_OF_FIXED * margin + SHARE * abs(one)
    return [f"{one:g}, now {now:g}"] if abs(one - now) > room else []


def _flatten(rows: list[list[Any]]) -> list[Any]:
    return [cell for row in rows for cell in row]


def _mask_field(name: str, value: Any) -> Any:
    if name in OWN_FIELDS or (name in NOISY_FIELDS and value is not None):
        return MASK
    if name == "rows" and isinstance(value, list):
        return [[one if isinstance(one, str) else MASK for one in row] for row in value]
    return mask_json(value)


def _mask(line: str, patterns: Iterable[str]) -> str:
    """What the groups of the patterns match is masked; all are looked for before any is."""
    spans = {
        found.span(group)
        for pattern in patterns
        for found in re.finditer(pattern, line)
        for group in range(1, found.re.groups + 1)
    }
    return _hide(line, spans)


def _hide(line: str, spans: Iterable[tuple[int, int]]) -> str:
    for start, end in sorted(spans, reverse=True):
        line = line[:start] + MASK + line[end:]
    return line


def _even(line: str) -> str:
    """A line whatever the width of its columns."""
    return re.sub(r"\s+", " ", re.sub(r"[─-]{3,}", "─", line)).strip()


Span = tuple[int, int]


def _read_frames(lines: Iterable[str]) -> Iterator[tuple[str, list[tuple[Span, Span]]]]:
    """Each line; of a data frame with margins: where values and their ends are, and the margins."""
    places: dict[int, int] = {}
    for line in lines:
        words = line.split()
        named = [word.removesuffix("_margin") for word in words if word.endswith("_margin")]
        if named:  # counted from the right: keys may have spaces in them
            at = {word: place - len(words) for place, word in enumerate(words)}
            places = {
                at[f"{name}{end}"]: at[f"{name}_margin"]
                for name in named
                for end in ("", "_low", "_high")
                if f"{name}{end}" in at
            }
        elif places and all(_is_number(words, place) for place in places):
            spans = [found.span() for found in re.finditer(r"\S+", line)]
            yield line, [(spans[value], spans[margin]) for value, margin in places.items()]
            continue
        yield line, []


def _is_number(words: list[str], place: int) -> bool:
    return -place <= len(words) and re.fullmatch(r"-?\d+(?:\.\d+)?", words[place]) is not None
