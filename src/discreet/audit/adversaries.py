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
    """The first number of an answer: of a table its first row's last column.

    ``answer`` is one of a curator, a list or tuple, or a number.
    """
    if isinstance(answer, Answer):
        answer = answer.rows[0].values[-1] if answer.rows else None
    while isinstance(answer, list | tuple):
        answer = answer[0] if answer else float("nan")
    return float("nan") if answer is None else float(answer)


def hear(ask: Ask, *question: Any, **options: Any) -> Any:
    """What ``ask`` says to ``question`` with these ``options``: a number, or how it was refused."""
    try:
        return number(ask(*question, **options))
    except Exception as error:
        return outcome_of(error)


def observer(ask: Ask) -> View:
    """Looks at one release of ``ask`` as it is."""
    return ask()


def threshold(at: float, *question: Any, **options: Any) -> Callable[[Ask], View]:
    """Says whether one release is above the number ``at``.

    ``question`` and ``options`` are what it asks: nothing of a function, SQL and a spend of a
    curator.
    """

    def play(ask: Ask) -> View:
        told = hear(ask, *question, **options)
        return told if isinstance(told, str) else float(told > at)

    return _name("threshold", play)


def differencing(
    everybody: Sequence[Any], others: Sequence[Any], **options: Any
) -> Callable[[Ask], View]:
    """Asks about everybody and about everybody but one, and subtracts.

    ``everybody`` and ``others`` are the arguments of the two questions, ``options`` what both are
    asked with.
    """

    def play(ask: Ask) -> View:
        one, two = hear(ask, *everybody, **options), hear(ask, *others, **options)
        if isinstance(one, str) or isinstance(two, str):
            return ", ".join(x if isinstance(x, str) else "answered" for x in (one, two))
        return one - two

    return _name("differencing", play)


def averaging(times: int, *question: Any, **options: Any) -> Callable[[Ask], View]:
    """Asks the same thing so many ``times``, and averages what it was told.

    ``question`` and ``options`` are what it asks.
    """

    def play(ask: Ask) -> View:
        told = [hear(ask, *question, **options) for _ in range(times)]
        numbers = [x for x in told if not isinstance(x, str)]
        return sum(numbers) / len(numbers) if numbers else told[0]

    return _name("averaging", play)


def likelihood_ratio(
    log_ratio: Callable[[Any], float], *question: Any, **options: Any
) -> Callable[[Ask], View]:
    """Scores one release by ln P1/P0, which no other score can beat (Neyman and Pearson).

    ``log_ratio`` computes it from what ``question`` with ``options`` was answered.
    """

    def play(ask: Ask) -> View:
        return log_ratio(ask(*question, **options))

    return _name("likelihood ratio", play)


def errors(*question: Any, **options: Any) -> Callable[[Ask], View]:
    """Ignores numbers; only whether there was an error, and of which kind.

    ``question`` and ``options`` are what it asks.
    """

    def play(ask: Ask) -> View:
        told = hear(ask, *question, **options)
        return told if isinstance(told, str) else "answered"

    return _name("errors", play)


def stopwatch(*question: Any, **options: Any) -> Callable[[Ask], View]:
    """Ignores what is said; only how long it took, in nanoseconds.

    ``question`` and ``options`` are what it asks.
    """

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
