"""Counters for Prometheus: requests, refusals, questions; public quantities only.

Durations of questions are not among them: how long an engine took depends on
the data.  What is counted here anyone could count who sees the requests; who may
not see the requests of a dataset is not told of them here either.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection

_HELP = {
    "discreet_requests_total": "requests, by route and status",
    "discreet_refusals_total": "refusals, by code",
    "discreet_questions_total": "questions, by dataset and how they ended",
    "discreet_worker_starts_total": "engine processes started, by dataset",
}
_GAUGES = {
    "discreet_questions_waiting": "questions that are paid and not answered yet, by dataset",
    "discreet_ready": "1 when questions are taken",
}
Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counters and gauges by name and labels."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, Labels]] = Counter()
        self._gauges: dict[tuple[str, Labels], float] = {}

    def count(self, name: str, **labels: str) -> None:
        """One more."""
        if name not in _HELP:
            raise KeyError(name)
        with self._lock:
            self._counts[name, tuple(sorted(labels.items()))] += 1

    def set(self, name: str, value: float, **labels: str) -> None:
        """What a gauge shows now."""
        if name not in _GAUGES:
            raise KeyError(name)
        with self._lock:
            self._gauges[name, tuple(sorted(labels.items()))] = value

    def text(self, datasets: Collection[str]) -> str:
        """The exposition format, version 0.0.4; of other datasets than these, nothing.

        >>> metrics = Metrics()
        >>> metrics.count("discreet_refusals_total", code="B2")
        >>> metrics.count("discreet_questions_total", dataset="other", outcome="done")
        >>> print(metrics.text(["clinic"]))
        # HELP discreet_refusals_total refusals, by code
        # TYPE discreet_refusals_total counter
        discreet_refusals_total{code="B2"} 1
        <BLANKLINE>
        """
        with self._lock:
            samples = {
                (name, labels): x
                for (name, labels), x in (*self._counts.items(), *self._gauges.items())
                if dict(labels).get("dataset") in (None, *datasets)
            }
        lines: list[str] = []
        for kind, helps in (("counter", _HELP), ("gauge", _GAUGES)):
            for name, words in helps.items():
                found = sorted((labels, x) for (n, labels), x in samples.items() if n == name)
                if found:
                    lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
                    lines += [f"{name}{_format_labels(labels)} {x:g}" for labels, x in found]
        return "\n".join(lines) + "\n"


def _format_labels(labels: Labels) -> str:
    if not labels:
        return ""
    inside = ",".join(f'{name}="{_escape(value)}"' for name, value in labels)
    return f"{{{inside}}}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
