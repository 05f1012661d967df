"""Adversaries ready to play: each maps ``ask`` to a view.

In a game ``ask`` calls the target on the hidden table; against a curator it is a
fresh session's, and takes SQL and a spend.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from discreet.audit.events import outcome_of
from discreet.release.answer import Answer

Ask = Callable[..., Any]
View = Any


def number(answer: Any) -> float:
    """The first number of an answer: of a table its first row's last column."""
    if isinstance(answer, Answer):
        answer = answer.rows[0].values[-1] if answer.rows else None
    while isinstance(answer, list | tuple):
        answer = answer[0] if answer else float("nan")
    return float("nan") if answer is None else float(answer)


def hear(ask: Ask, *question: Any, **options: Any) -> Any:
    """What is heard: a number, or how it was refused."""
    try:
        return number(ask(*question, **options))
    except Exception as error:
        return outcome_of(error)


def observer(ask: Ask) -> View:
    """Looks at one release as it is."""
    return ask()


def threshold(at: float, *question: Any, **options: Any) -> Callable[[Ask], View]:
    """Says whether one release is above a number."""

    def play(ask: Ask) -> View:
        told = hear(ask, *question, **options)
        return told if isinstance(told, str) else float(told > at)

    return _name("threshold", play)


def differencing(
    everybody: Sequence[Any], others: Sequence[Any], **options: Any
) -> Callable[[Ask], View]:
    """Asks about everybody and about everybody but one, and subtracts."""

    def play(ask: Ask) -> View:
        one, two = hear(ask, *everybody, **options), hear(ask, *others, **options)
        if isinstance(one, str) or isinstance(two, str):
            return ", ".join(x if isinstance(x, str) else "answered" for x in (one, two))
        return one - two

    return _name("differencing", play)


def averaging(times: int, *question: Any, **options: Any) -> Callable[[Ask], View]:
    """Asks the same thing again and again, and averages what it was told."""

    def play(ask: Ask) -> View:
        told = [hear(ask, *question, **options) for _ in range(times)]
        numbers = [x for x in told if not isinstance(x, str)]
        return sum(numbers) / len(numbers) if numbers else told[0]

    return _name("averaging", play)


def likelihood_ratio(
    log_ratio: Callable[[Any], float], *question: Any, **options: Any
) -> Callable[[Ask], View]:
    """Scores one release by ln P1/P0, which no other score can beat (Neyman and Pearson)."""

    def play(ask: Ask) -> View:
        return log_ratio(ask(*question, **options))

    return _name("likelihood ratio", play)


def errors(*question: Any, **options: Any) -> Callable[[Ask], View]:
    """Ignores numbers; only whether there was an error, and of which kind."""

    def play(ask: Ask) -> View:
        told = hear(ask, *question, **options)
        return told if isinstance(told, str) else "answered"

    return _name("errors", play)


def stopwatch(*question: Any, **options: Any) -> Callable[[Ask], View]:
    """Ignores what is said; only how long it took, in nanoseconds."""

    def play(ask: Ask) -> View:
        start = time.perf_counter_ns()
        hear(ask, *question, **options)
        return float(time.perf_counter_ns() - start)

    return _name("stopwatch", play)


def _name(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    function.__name__ = name
    return function


__all__ = [
    "averaging",
    "differencing",
    "errors",
    "hear",
    "likelihood_ratio",
    "number",
    "observer",
    "stopwatch",
    "threshold",
]
