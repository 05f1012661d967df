"""Tables of values with margins, as text and as HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from html import escape
from typing import Any

from discreet.exact.numbers import Exact, decimal_up, fraction
from discreet.release.intervals import Interval

MOST_ROWS = 40


def cell(
    value: Any, margin: float | None, *, unit: str = "value", interval: Interval | None = None
) -> str:
    """One value, with its margin to the same number of decimals.

    A margin in another ``unit`` than the value's says in which.

    >>> cell(1204, 35.2), cell(61.2537, 0.8124), cell("Oslo", None), cell(None, None)
    ('1,204 ± 36', '61.25 ± 0.82', 'Oslo', '–')
    >>> cell(4100, 17.2, unit="ranks"), cell("Oslo", 17.2, unit="rows")
    ('4,100 (± 18 ranks)', 'Oslo (± 18 rows)')
    >>> cell(4100, 17.2, unit="ranks", interval=Interval(3950.0, 4420.0))
    '4,100 (3,950 … 4,420; ± 18 ranks)'

    A set that is not nearly symmetric is shown by its ends, and one that says nothing says so.

    >>> cell(61.2537, 9.3, interval=Interval(57.1, 70.5537))
    '61.3 (57.1 … 70.6)'
    >>> cell(61.2537, 61.2537, interval=Interval(0, 120, anything=True))
    '61.2537 (anything from 0 to 120)'
    >>> cell(None, None, interval=Interval(0, 120, nobody=True))
    '– (no people)'
    >>> cell(-61.2537, 62.1, interval=Interval(0.08124, 0.9))
    '-61.25 (0.08 … 0.90)'

    A number without a margin is a key, and a year is written 2024.

    >>> cell(2024, None)
    '2024'
    """
    if interval is not None and unit != "value" and margin is not None:
        ends = f"{_alone(interval.low)} … {_alone(interval.high)}"
        return f"{_alone(value)} ({ends}; ± {number(margin, up=True)} {unit})"
    if interval is not None and (said := _say_interval(value, interval)) is not None:
        return said
    if margin is not None and (unit != "value" or isinstance(value, list)):
        each = "each " if isinstance(value, list) else ""
        said = number(margin, up=True) + ("" if unit == "value" else f" {unit}")
        return f"{_alone(value)} ({each}± {said})"
    if margin is None and isinstance(value, int):
        return str(value)
    if margin is None or isinstance(value, bool) or not isinstance(value, int | float):
        return _alone(value)
    if isinstance(value, int) and margin < _MANY:
        return f"{value:,} ± {math.ceil(margin):,}"
    if not _FEW <= margin < _MANY:
        return f"{value:,.6g} ± {number(margin, up=True)}"
    digits = _digits(margin)
    shown = math.ceil(margin * 10**digits) / 10**digits  # a margin is never made smaller
    return f"{value:,.{digits}f} ± {shown:,.{digits}f}"


_SYMMETRIC = 0.9
"""An interval of which one side has at least this part of the other is written with one margin."""


def _say_interval(value: Any, interval: Interval) -> str | None:
    """A value and its set in words; None where one margin says it."""
    if interval.nobody:
        return "– (no people)"
    if interval.anything:
        ends = f" from {_alone(interval.low)} to {_alone(interval.high)}"
        return f"{_alone(value)} (anything{ends if math.isfinite(interval.low) else ''})"
    sides = () if value is None else (value - interval.low, interval.high - value)
    if sides and min(sides) >= _SYMMETRIC * max(sides):
        return None
    known = [end for end in (interval.low, interval.high) if math.isfinite(end)]
    if len(known) > 1:  # of a value outside its set, the set says how many digits matter
        width = min(max(sides, default=math.inf), interval.high - interval.low)
    else:
        width = max(map(abs, known))
    if not _FEW <= width < _MANY:
        low, high = _far(interval.low, down=True), _far(interval.high, down=False)
        shown = _alone(value)
    else:
        digits = _digits(width)
        low = f"{_round_away(interval.low, digits, down=True):,.{digits}f}"
        high = f"{_round_away(interval.high, digits, down=False):,.{digits}f}"
        shown = _alone(value) if value is None else f"{value:,.{digits}f}"
    if len(known) > 1:
        return f"{shown} ({low} … {high})"
    return f"{shown} ({f'at least {low}' if math.isfinite(interval.low) else f'at most {high}'})"


def _far(end: float, *, down: bool) -> str:
    """An end in three digits, in powers of ten; a set is never made smaller.

    >>> _far(3.1278e20, down=True), _far(3.1278e20, down=False), _far(-2.5001e-12, down=True)
    ('3.12e+20', '3.13e+20', '-2.51e-12')
    """
    if end == 0 or not math.isfinite(end):
        return f"{end:.3g}"
    exact = Fraction(end)
    unit = Fraction(10) ** (math.floor(math.log10(abs(end))) - 2)
    steps = math.floor(exact / unit) if down else math.ceil(exact / unit)
    return f"{float(steps * unit):,.3g}"


def _round_away(end: float, digits: int, *, down: bool) -> float:
    """An end with so many decimals; a set is never made smaller."""
    if not math.isfinite(end):
        return end
    steps = end * 10**digits
    whole = math.floor(steps) if down else math.ceil(steps)
    return float(whole / 10**digits)


def _alone(value: Any) -> str:
    """A value, or each of a list, without its margin."""
    if value is None:
        return "–"
    if isinstance(value, list):
        return ", ".join(_alone(item) for item in value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


_FEW, _MANY = 1e-9, 1e15
"""Margins between these are written out; others in powers of ten."""


def number(value: float, *, up: bool = False) -> str:
    """A number in two or three digits, or whole; ``up``: never made smaller.

    >>> number(35.2, up=True), number(0.01234, up=True), number(3.1e20)
    ('36', '0.013', '3.1e+20')
    """
    if value == 0 or not math.isfinite(value) or abs(value) >= _MANY or abs(value) < _FEW:
        return f"{value * (1.005 if up else 1):.3g}"
    digits = _digits(abs(value))
    shown = (math.ceil(value * 10**digits) if up else round(value * 10**digits)) / 10**digits
    return f"{shown:,.{digits}f}"


def _digits(margin: float) -> int:
    """Decimals that show two digits of a margin; none from ten on.

    >>> [_digits(margin) for margin in (812.4, 8.124, 0.8124, 0.08124)]
    [0, 1, 2, 3]
    """
    return 0 if margin >= 10 else 1 - min(0, math.floor(math.log10(margin)))


def plural(count: int, noun: str) -> str:
    """A number of things.

    >>> plural(1, "stage"), plural(7, "stage")
    ('1 stage', '7 stages')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def percent(confidence: Exact) -> str:
    """A confidence in per cent, exactly.

    >>> percent("0.95"), percent("0.999"), percent("2/3")
    ('95 %', '99.9 %', '200/3 %')
    """
    share = 100 * fraction(confidence, name="confidence")
    decimal = decimal_up(share)
    return f"{decimal if Fraction(decimal) == share else share} %"


SCREEN = 24
"""How many lines are shown where nobody asked for more."""


def fit_screen(text: str) -> str:
    """The text, or as much of its beginning and end as a screen holds.

    >>> fit_screen("\\n".join(map(str, range(100)))).splitlines()[-6:]
    ['17', '… 78 more lines: print(…) shows them', '96', '97', '98', '99']
    """
    lines = text.splitlines()
    if len(lines) <= SCREEN:
        return text
    first, last = lines[: SCREEN - 6], lines[-4:]
    left = len(lines) - len(first) - len(last)
    return "\n".join([*first, f"… {left:,} more lines: print(…) shows them", *last])


def fit_table(columns: Sequence[str], rows: list[list[str]], footer: list[str]) -> str:
    """A table for a terminal, of as many rows as a screen holds; the others are counted once.

    >>> rows = [[str(n)] for n in range(100)]
    >>> fit_table(["n"], rows, ["free"]).splitlines()[-4:]
    ['18', '… 81 more rows: print(…) shows the first 40', '', 'free']
    """
    room = SCREEN - 4 - len(footer)
    if len(rows) <= room + 1:
        return fit_screen(as_text(columns, rows, footer))
    return fit_screen(as_text(columns, rows, footer, most=max(_FEWEST_ROWS, room)))


_FEWEST_ROWS = 8
"""So many rows are shown however much is said below them."""


def as_text(
    columns: Sequence[str], rows: list[list[str]], footer: list[str], most: int = MOST_ROWS
) -> str:
    """A table for a terminal: text to the left, numbers to the right."""
    shown = rows[:most]
    widths = [
        max([len(name), *(len(row[index]) for row in shown)]) for index, name in enumerate(columns)
    ]
    numeric = [all(_is_number(row[index]) for row in shown) for index in range(len(columns))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(cells, widths, numeric, strict=True)
        ]
        return "  ".join(padded).rstrip()

    lines = [line(columns), "  ".join("─" * width for width in widths), *map(line, shown)]
    if len(rows) > most:
        more = f"… {len(rows) - most:,} more rows"
        printed = "them" if len(rows) <= MOST_ROWS else f"the first {MOST_ROWS}"
        lines.append(more if most == MOST_ROWS else f"{more}: print(…) shows {printed}")
    return "\n".join([*lines, "", *footer])


def _is_number(text: str) -> bool:
    return text == "–" or text.lstrip("-")[:1].isdigit()


def as_html(columns: Sequence[str], rows: list[list[str]], footer: list[str]) -> str:
    """A table for a notebook."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>"
        for row in rows[:MOST_ROWS]
    )
    notes = "".join(f"<div><small>{escape(text)}</small></div>" for text in footer)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"
