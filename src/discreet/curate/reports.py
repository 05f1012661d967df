"""A data-quality report, and medians with noise to fit the data: each paid for, computed, stored.

clinic.quality({"ages": {"table": "people", "property": "maximum", "column": "age", "bound": 110},
    "towns": {"table": "people", "property": "dependency", "column": "town", "on": "zip"}},
    epsilon="0.5")
clinic.robust_median("SELECT MEDIAN(age) FROM people", epsilon=1, delta="1e-9")
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.accounting.loss import Loss
from discreet.curate.once import Told, Wanted, release_once
from discreet.curate.running import parse_single, write_text
from discreet.curate.runs import prepare
from discreet.engine.protocol import describe_failure
from discreet.errors import InvalidParameter, Refusal
from discreet.exact.numbers import Exact, canonical_json
from discreet.price.middle import Middle, price_middle
from discreet.price.plan import Plan
from discreet.price.quality import Check, Quality, make_checks
from discreet.price.watch import Watch
from discreet.release.record import to_json
from discreet.release.release import release_distances, release_median

if TYPE_CHECKING:
    from discreet.curate.curator import Asking, Curator

_PLAIN = Watch.of(epsilon=1)

ComputeQuality = Callable[[Quality, str], bytes]
ComputeMedian = Callable[[Middle, str], bytes]
"""Compute on the data of a version, in another process; raise a ``DataRefusal`` if it cannot."""


# --- how far the data are from what they should be ----------------------------------------------


@dataclass(frozen=True, slots=True)
class QualityReport:
    """Of each property, about how many units stand in its way: ``distances``, with noise.

    ``quality`` is what was found out and how, ``id`` the number of the charge; ``replayed`` if it
    was paid for before.
    """

    distances: tuple[int, ...]
    quality: Quality
    id: int
    replayed: bool = False

    @property
    def loss(self) -> Loss:
        """What all of it cost one unit."""
        return self.quality.loss

    def __getitem__(self, name: str) -> int:
        """The distance of the property called ``name``; below zero by chance, where it holds."""
        names = [check.name for check in self.quality.checks]
        return self.distances[names.index(name)]

    def margin(self, confidence: Exact = "0.95") -> int:
        """How far off each number is, at ``confidence``."""
        return self.quality.margin(confidence)

    def to_json(self, confidence: Exact = "0.95") -> dict[str, Any]:
        """The same at every door; margins are at ``confidence``."""
        from discreet.release.amounts import loss_json

        return {
            "id": self.id,
            "distances": {
                check.name: told
                for check, told in zip(self.quality.checks, self.distances, strict=True)
            },
            "margin": self.margin(confidence),
            "price": loss_json(self.loss),
            "replayed": self.replayed,
        }

    def __str__(self) -> str:
        wide = max(len(check.name) for check in self.quality.checks)
        lines = [
            f"{check.name:<{wide}}  {told:>8,} ± {self.margin():,}  "
            f"({check.property} of {', '.join(check.columns)} in {check.table}"
            f"{': at least' if check.several else ''})"
            for check, told in zip(self.quality.checks, self.distances, strict=True)
        ]
        return "\n".join([*lines, f"units to leave out until each holds (95 %); {self.loss}"])


@dataclass(frozen=True, slots=True)
class QualityExplanation:
    """What a report of ``quality`` would cost, and how far off its numbers would be; free."""

    quality: Quality

    @property
    def loss(self) -> Loss:
        """What all of it costs one unit."""
        return self.quality.loss

    def to_json(self, confidence: Exact = "0.95") -> dict[str, Any]:
        """The same at every door; margins are at ``confidence``."""
        from discreet.release.amounts import loss_json

        return {
            "checks": [
                {
                    "name": c.name,
                    "property": c.property,
                    "table": c.table,
                    "question": c.text,
                }
                for c in self.quality.checks
            ],
            "sensitivity": 1,
            "margin": self.quality.margin(confidence),
            "loss": loss_json(self.loss),
        }

    def __str__(self) -> str:
        checks = self.quality.checks
        return "\n".join(
            [
                str(self.quality),
                f"price:  {self.loss}",
                "moved:  one unit moves each number by at most 1",
                f"margin: ±{self.quality.margin():,} each (95 %)",
                *(
                    f"more:   {c.name} may take more units than it tells"
                    for c in checks
                    if c.several
                ),
                *(f"asked:  {c.text}" for c in checks),
            ]
        )


Checks = str | Mapping[str, Mapping[str, Any]]
"""Properties that should hold: by name, or as SELECT DISTANCE_TO_...(...) FROM a table."""


def make_quality(curator: Curator, checks: Checks, epsilon: Exact) -> Quality:
    """What is to be found out, and with which noise; reads nothing."""
    if isinstance(checks, str):
        from discreet.question.sql.distances import read_distances

        checks = read_distances(checks)

    def find_plan(text: str) -> Plan:
        watched = prepare(curator, text, _PLAIN)
        if watched.sensitivity * watched.grid != 1:
            raise InvalidParameter(
                "P4",
                "one unit could move this number by more than one.",
                why="a distance is how many units stand in the way, each counted once.",
                fix="refer to a public table, or to one about the same units, by their key.",
            )
        return watched.plan

    return Quality.of(make_checks(checks, curator.schema, find_plan), epsilon=epsilon)


def report_quality(
    curator: Curator,
    checks: Checks,
    epsilon: Exact,
    *,
    analyst: str,
    compute: ComputeQuality | None = None,
) -> QualityReport:
    """Charge, count, add noise, store, show; the same report on the same data is free."""
    quality = make_quality(curator, checks, epsilon)
    for check in quality.checks:  # what cannot be run is not paid for
        curator.engine.compile(check.plan)
    wanted = Wanted(
        str(quality),
        {"epsilon": str(quality.noise.epsilon)},
        {"quality": [to_json_check(one) for one in quality.checks], "by": repr(quality.noise)},
        quality.loss,
        [one.plan.source for one in quality.checks],
    )

    def run(version: str) -> bytes:
        return (compute or (lambda q, v: compute_quality(curator.engine, q, v)))(quality, version)

    told = release_once(curator, wanted, run, analyst=analyst)
    found = tuple(json.loads(told.body)["Quality"]["distances"])
    return QualityReport(found, quality, told.id, told.replayed)


def to_json_check(check: Check) -> dict[str, Any]:
    """A check as it is sent and compared."""
    return {
        "name": check.name,
        "property": check.property,
        "table": check.table,
        "columns": list(check.columns),
        "plan": to_json(check.plan),
    }


def compute_quality(engine: Any, quality: Quality, version: str) -> bytes:
    """The noisy distances, ready to be stored; of what fails nothing is said."""
    with suppress(Exception):
        truths = [engine.run(engine.compile(check.plan)) for check in quality.checks]
        told = release_distances(quality, truths)
        if engine.data_version() == version:
            return canonical_json({"Quality": {"distances": told}}).encode()
    raise describe_failure()


# --- medians ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RobustMedian:
    """A median with noise that fits the data, its ``value``; None if the bound may not hold.

    ``middle`` is what was asked and how, ``id`` the number of the charge; ``replayed`` if it was
    paid for before.
    """

    value: float | None
    middle: Middle
    id: int
    replayed: bool = False

    @property
    def loss(self) -> Loss:
        """What it cost one unit, answered or not."""
        return self.middle.loss

    def margin(self, confidence: Exact = "0.95") -> float | None:
        """How far off it is, at ``confidence``; None for smooth sensitivity.

        Its noise is not public.
        """
        return self.middle.margin(confidence)

    def to_json(self, confidence: Exact = "0.95") -> dict[str, Any]:
        """The same at every door; margins are at ``confidence``."""
        from discreet.release.amounts import loss_json

        return {
            "id": self.id,
            "value": self.value,
            "margin": self.margin(confidence),
            "price": loss_json(self.loss),
            "replayed": self.replayed,
        }

    def __str__(self) -> str:
        if self.value is None:
            return f"no answer: the proposed bound may not hold ({self.loss})"
        margin = self.margin()
        off = "noise withheld" if margin is None else f"± {margin:,.6g}, 95 %"
        return f"{self.value:,.6g} ({off}; {self.loss})"


@dataclass(frozen=True, slots=True)
class MedianExplanation:
    """What a median, ``middle``, would cost, and how far off it would be; free."""

    middle: Middle

    @property
    def loss(self) -> Loss:
        """What it costs one unit, whatever the data are."""
        return self.middle.loss

    def to_json(self, confidence: Exact = "0.95") -> dict[str, Any]:
        """The same at every door; margins are at ``confidence``."""
        from discreet.release.amounts import loss_json

        return {
            "by": str(self.middle),
            "margin": self.middle.margin(confidence),
            "loss": loss_json(self.loss),
        }

    def __str__(self) -> str:
        margin = self.middle.margin()
        off = "not public: it fits the data" if margin is None else f"±{margin:,.6g} (95 %)"
        return f"{self.middle}\nprice:  {self.loss}\nmargin: {off}"


def make_middle(
    curator: Curator, question: Asking, *, epsilon: Exact, delta: Exact, bound: Exact | None
) -> tuple[Middle, str]:
    """What is to be measured, and the question in words; reads nothing."""
    asked = parse_single(curator, question)
    try:
        middle = price_middle(
            asked,
            schema=curator.schema,
            multiplicity=curator.engine.catalogue.multiplicity,
            epsilon=epsilon,
            delta=delta,
            bound=bound,
        )
    except Refusal as refusal:
        raise curator.naming(refusal) from None
    return middle, write_text(asked)


def release_middle(
    curator: Curator,
    middle: Middle,
    text: str,
    *,
    analyst: str,
    compute: ComputeMedian | None = None,
) -> RobustMedian:
    """Charge, read, add noise, store, show; the same median on the same data is free."""
    curator.engine.compile(middle.plan, middle.lumpings)  # what cannot be run is not paid for
    mechanism = middle.mechanism
    wanted = Wanted(
        f"{middle}: {text}",
        {"epsilon": str(mechanism.epsilon), "delta": str(mechanism.delta)},
        {"median": to_json(middle.plan), "by": repr(mechanism)},
        middle.loss,
        [middle.plan.source],
    )

    def run(version: str) -> bytes:
        return (compute or (lambda m, v: compute_median(curator.engine, m, v)))(middle, version)

    return _read(middle, release_once(curator, wanted, run, analyst=analyst))


def compute_median(engine: Any, middle: Middle, version: str) -> bytes:
    """The noisy median in steps, ready to be stored; of what fails nothing is said."""
    with suppress(Exception):
        compiled = engine.compile(middle.plan, middle.lumpings)
        told = release_median(middle, engine.run(compiled))
        if engine.data_version() == version:
            return canonical_json({"Median": {"step": told}}).encode()
    raise describe_failure()


def _read(middle: Middle, told: Told) -> RobustMedian:
    step = json.loads(told.body)["Median"]["step"]
    value = None if step is None else middle.value(step)
    return RobustMedian(value, middle, told.id, told.replayed)


__all__ = [
    "Checks",
    "MedianExplanation",
    "QualityExplanation",
    "QualityReport",
    "RobustMedian",
    "compute_median",
    "compute_quality",
    "make_middle",
    "make_quality",
    "release_middle",
    "report_quality",
]
