"""What ``discreet audit`` runs: the mechanisms of this installation, and a session's questions.

Every mechanism stands on the pair of neighbours that is worst for it as far as
is known.  Its exact law is computed on that pair, its releases are compared with
that law, and an adversary who sees only releases plays against it.  Then every
aggregate is asked of made-up neighbours on the real engine.
"""

from __future__ import annotations

import functools
import re
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import mechanisms, noise
from discreet.accounting.law import (
    DiscreteGaussianLaw,
    DiscreteLaplaceLaw,
    FiniteLaw,
    GeometricLaw,
    Law,
    StaircaseLaw,
)
from discreet.accounting.loss import Loss
from discreet.audit.exact import exact
from discreet.audit.fit import fit
from discreet.audit.floats import grid
from discreet.audit.fuzzing import Fuzz, fuzz
from discreet.audit.game import game
from discreet.audit.timing import timing
from discreet.audit.verdict import Finding
from discreet.audit.zoo.keeper import NamedLaw
from discreet.question.question import AGGREGATES
from discreet.question.schema import Schema

ALPHA = Fraction(1, 10**6)
"""The chance that one statistical check accuses what is right; there are under a hundred."""

LAWS, RELEASES, GAMES = "exact laws", "releases against their law", "games"
BITS, QUESTIONS, SESSION = "bits and clocks", "every aggregate", "this session"
PURPOSE = {
    LAWS: "What any two neighbours of the worst pair known can be told apart by, computed.",
    RELEASES: "Whether what is released has the law that the computation is about.",
    GAMES: "An adversary who sees releases only, and guesses which neighbour it was.",
    BITS: "Whether the last digits, or the time taken, say what the noise hides.",
    QUESTIONS: "Made-up neighbours on the real engine: what one person moves before noise.",
    SESSION: "The same for the schema and the questions of the session's own history.",
}
"""Every part of an audit, in order, and what it is for."""


@dataclass(frozen=True, slots=True)
class Task:
    """One check that is still to be made."""

    part: str
    subject: str
    run: Callable[[], Finding]


@dataclass(frozen=True, slots=True)
class Done:
    """A check that was made: of a ``part``, its ``subject``, the ``finding``, in ``seconds``."""

    part: str
    subject: str
    finding: Finding
    seconds: float


def run_task(task: Task) -> Done:
    """Make a check."""
    start = time.perf_counter()
    finding = task.run()
    return Done(task.part, task.subject, finding, time.perf_counter() - start)


# --- mechanisms -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Subject:
    """A mechanism on the pair of neighbours that is worst for it, as far as is known.

    ``law`` and ``release`` take one of the pair; ``score`` is the number that an
    adversary makes of a release.  Where a law is not known in closed form, the
    games are all there is.
    """

    mechanism: Any
    pair: tuple[Any, Any]
    law: Callable[[Any], Law] | None
    release: Callable[[Any], Any]
    outcome: Callable[[Any], Any] | None = None
    score: Callable[[Any], float] = float
    played: tuple[Any, Any] | None = None
    """Neighbours for the games, where the worst pair shows only in what hardly ever happens."""
    listed: bool = True
    """Whether every release is an outcome as the law writes it, so that it can be counted."""

    @property
    def name(self) -> str:
        """The mechanism as it was made; where a function lies in memory is nobody's business."""
        return re.sub(r"<function (\S+) at \w+>", r"\1", repr(self.mechanism))

    @property
    def promise(self) -> Loss:
        """What one release costs."""
        loss: Loss = self.mechanism.loss
        return loss


def _subject(mechanism: Any, first: Any, second: Any, **options: Any) -> Subject:
    options.setdefault("law", getattr(mechanism, "law", None))
    options.setdefault("release", getattr(mechanism, "release", None))
    return Subject(mechanism, (first, second), **options)


def _answers(transcript: Any) -> tuple[bool, ...]:
    """What a sparse vector answered, query by query."""
    above = set(transcript.above.tolist())
    return tuple(index in above for index in range(transcript.asked))


def _first(released: Any) -> float:
    return float(released[0])


def _count_asked(transcript: Any) -> float:
    return float(transcript.asked)


def _adaptively(run: mechanisms.AdaptiveLaplace, value: int) -> float:
    """Two questions, the second chosen by the answer to the first."""
    session = run.start()
    heard = session.ask(value, sensitivity=1)
    return float(heard + session.ask(value if heard > 20 else value + 5, sensitivity=1))


def _read_test(released: Any) -> float:
    return -1e6 if released is None else float(released)


def _numeric(subject: mechanisms.NumericSparse, values: Sequence[int]) -> float:
    told = subject.release(values)
    return float(told.answers[0]) if len(told.above) else -1e6


def _near(values: Sequence[int]) -> int:
    return mechanisms.median_distance(values, lower=0, upper=12, bound=4)


def _tell_answered(law: Law) -> FiniteLaw:
    """Whether it answered: between neighbours with one median all that differs."""
    return FiniteLaw((None, "answered"), lambda: [law.mass(None), 1 - law.mass(None)])


def _numeric_subjects() -> Iterable[Subject]:
    half, grid_ = Fraction(1, 2), mechanisms.Grid("1/8")
    yield _subject(mechanisms.Laplace(sensitivity=7, epsilon="3/5"), 100, 107)
    yield _subject(
        mechanisms.Laplace(sensitivity=5, epsilon="3/5"), [9, 4, 7], [11, 4, 4], score=_first
    )
    yield _subject(mechanisms.Gaussian(sensitivity=3, rho="1/8"), 40, 43)
    yield _subject(mechanisms.Staircase(sensitivity=7, epsilon="5/2"), 100, 107)
    yield _subject(mechanisms.RandomizedResponse(epsilon="5/4", categories=4), 3, 2, score=float)
    yield _subject(mechanisms.TwoCoinResponse(truth="1/2"), True, False)
    ring = mechanisms.MetricSpace.of(range(9), lambda p, q: min((p - q) % 9, (q - p) % 9))
    yield _subject(mechanisms.MetricNoise(space=ring, sensitivity=2, epsilon="6/5"), 3, 5)
    yield _subject(
        mechanisms.HammingCube(sensitivity=3, epsilon=2),
        [1, 0, 0, 1],
        [0, 1, 0, 0],
        score=_first,
        listed=False,
    )
    yield _subject(
        mechanisms.Histogram(bins=("a", "b"), epsilon=half, rows_per_unit=3),
        ["a"],
        ["a", "b", "b", "b"],
        score=lambda counts: float(counts["b"] if isinstance(counts, dict) else counts[1]),
        listed=False,
    )
    yield _subject(
        mechanisms.PropertyDistance(mechanisms.distance_to_sorted, epsilon=half),
        [2, 3, 5],
        [2, 9, 3, 5],
    )
    yield _subject(
        mechanisms.Moments(dimension=2, bound=3, epsilon="3/2", grid=grid_),
        [(1.0, 0.5)],
        [(1.0, 0.5), (0.0, -3.0)],
        score=lambda told: float(told.count),
        listed=False,
    )
    yield _subject(mechanisms.KeyRelease(epsilon=half, delta="0.02"), 5, 6)


def _list_choosing() -> Iterable[Subject]:
    low, high = [-12, 0], [-9, -3]
    for kind in (
        mechanisms.ExponentialMechanism,
        mechanisms.PermuteAndFlip,
        mechanisms.ReportNoisyMax,
    ):
        yield _subject(kind(sensitivity=3, epsilon="5/4"), low, high, played=([0, 0], [3, -3]))
    yield _subject(
        mechanisms.TopK(k=2, sensitivity=3, epsilon="5/4"),
        [*low, *low],
        [*high, *high],
        outcome=tuple,
        score=_first,
        played=([0, 0, 0], [3, -3, -3]),
    )
    yield _subject(
        mechanisms.Quantile("1/2", lower=0, upper=30, epsilon="5/4"),
        [0] * 5 + [28] * 5,
        [0] * 5 + [28] * 6,
        played=([], [28]),
    )
    yield _subject(
        mechanisms.Quantiles(["1/4", "3/4"], lower=0, upper=30, epsilon="5/4"),
        [0] * 5 + [28] * 5,
        [0] * 5 + [28] * 6,
        law=None,
        score=_first,
        played=([], [28]),
    )
    calm, stirred = [4, 4, -2], [5, 5, -3]
    for one in (
        mechanisms.AboveThreshold(threshold=2, sensitivity=1, epsilon=2),
        mechanisms.Sparse(threshold=2, cutoff=2, sensitivity=1, epsilon=2),
    ):
        yield _subject(
            one, calm, stirred, outcome=_answers, score=_count_asked, played=([1] * 3, [2] * 3)
        )
    numeric = mechanisms.NumericSparse(threshold=2, cutoff=1, sensitivity=1, epsilon=2)
    yield _subject(numeric, [5], [6], law=None, release=lambda values: _numeric(numeric, values))


def _other_subjects() -> Iterable[Subject]:
    adaptive = mechanisms.AdaptiveLaplace(joint_sensitivity=2, epsilon="1/2")
    yield _subject(adaptive, 20, 21, law=None, release=lambda value: _adaptively(adaptive, value))
    medians = mechanisms.SubsampleAggregate(
        statistics.median, blocks=4, lower=0, upper=8, epsilon=1, grid=mechanisms.Grid("1/4")
    )
    yield _subject(medians, [], [8], law=None)
    yield _subject(
        mechanisms.Disjoint({"a": mechanisms.Laplace(sensitivity=2, epsilon="1/2")}),
        {"a": 10},
        {"a": 12},
        law=None,
        score=lambda told: float(told["a"]),
    )
    median = mechanisms.SmoothMedian(lower=2, upper=12, epsilon=3, delta="1/1000")
    yield _subject(median, [5] * 5 + [9] * 5, [5] * 5 + [9] * 6)
    tested = mechanisms.ProposeTestRelease(bound=4, epsilon=3, delta="1/1000")
    yield _subject(
        tested,
        [5] * 9 + [11] * 4,
        [5] * 9 + [11] * 5,
        law=lambda rows: _tell_answered(tested.law(5, distance=_near(rows))),
        release=lambda rows: tested.release(5, distance=_near(rows)),
        score=_read_test,
        listed=False,
    )


def subjects() -> tuple[Subject, ...]:
    """Every mechanism of ``discreet.mechanisms``."""
    return (*_numeric_subjects(), *_list_choosing(), *_other_subjects())


def _repeat(subject: Subject) -> Callable[[Any, int], Any]:
    """So many releases, each as the number an adversary looks at."""
    return lambda data, size: np.array(
        [subject.score(subject.release(data)) for _ in range(size)], dtype=float
    )


def _compute_law(subject: Subject) -> Finding:
    if subject.law is None:
        raise TypeError("a mechanism without a law")
    named = NamedLaw(subject.name, subject.law)
    return exact(named, *subject.pair, promised=subject.promise)


def _fit_releases(subject: Subject, size: int) -> Finding:
    if subject.law is None:
        raise TypeError("a mechanism without a law")
    shape = subject.outcome or (lambda told: tuple(told) if isinstance(told, list) else told)
    draws = [shape(subject.release(subject.pair[1])) for _ in range(size)]
    return fit(draws, subject.law(subject.pair[1]), alpha=ALPHA)


def _play_game(subject: Subject, size: int) -> Finding:
    return game(
        _repeat(subject),
        *(subject.played or subject.pair),
        trials=size,
        promised=subject.promise,
        confidence=1 - ALPHA,
        batch=True,
        adjacent=True,
        name=subject.name,
    )


def mechanism_tasks(*, quick: bool = False) -> tuple[Task, ...]:
    """Laws, releases and games of every mechanism."""
    size = 1_000 if quick else 6_000
    laws, releases, games = [], [], []
    for one in subjects():
        if one.law is not None:
            laws.append(Task(LAWS, one.name, functools.partial(_compute_law, one)))
            if one.listed:
                releases.append(
                    Task(RELEASES, one.name, functools.partial(_fit_releases, one, size))
                )
        games.append(Task(GAMES, one.name, functools.partial(_play_game, one, size)))
    return (*laws, *releases, *games)


# --- noise ----------------------------------------------------------------------------------

_SAMPLERS: tuple[tuple[str, Callable[[int], Any], Law], ...] = (
    (
        "noise.discrete_laplace(20)",
        lambda size: noise.discrete_laplace(20, size),
        DiscreteLaplaceLaw(0, Fraction(20)),
    ),
    (
        "noise.discrete_laplace(1000)",
        lambda size: noise.discrete_laplace(1000, size),
        DiscreteLaplaceLaw(0, Fraction(1000)),
    ),
    (
        "noise.discrete_gaussian(400)",
        lambda size: noise.discrete_gaussian(400, size),
        DiscreteGaussianLaw(0, Fraction(400)),
    ),
    (
        "noise.staircase(120, 5, 10)",
        lambda size: noise.staircase(120, 5, 10, size),
        StaircaseLaw(0, 120, 10, Fraction(5)),
    ),
    ("noise.geometric(20)", lambda size: noise.geometric(20, size), GeometricLaw(0, Fraction(20))),
)


def noise_tasks(*, quick: bool = False) -> tuple[Task, ...]:
    """The samplers against their laws, the last bits of what they give, and their time."""
    size = 20_000 if quick else 100_000
    fits = [
        Task(RELEASES, name, functools.partial(fit, draw, law, samples=size, alpha=ALPHA))
        for name, draw, law in _SAMPLERS
    ]
    fine = mechanisms.Grid("1/1024")
    bits = [
        Task(BITS, f"{one!r}: last bits", functools.partial(_on_grid, one, fine.step))
        for one in (
            mechanisms.Laplace(sensitivity=3, epsilon="1/2", grid=fine),
            mechanisms.Gaussian(sensitivity=3, rho="1/8", grid=fine),
        )
    ]
    count = mechanisms.Laplace(sensitivity=1, epsilon="1/2")
    clock = Task(
        BITS,
        f"{count!r}: time",
        lambda: timing(count.release, 1000, 1001, rounds=400, alpha=ALPHA),
    )
    return (*fits, *bits, clock)


def _on_grid(mechanism: Any, step: Fraction) -> Finding:
    """Releases of 0 and of a large number, as they are published: doubles."""
    near, far = ([mechanism.release(float(x)) for _ in range(500)] for x in (0, 2**20 + 1))
    return grid(near, far, step=step)


# --- questions ------------------------------------------------------------------------------

EXAMPLE = Schema.from_text("""
[tables.visits]
unit = "patient"
max_rows_per_unit = 3

[tables.visits.columns]
patient = "integer"
city    = { type = "text", values = ["Cork", "Delft", "Hamar"] }
street  = "text"
age     = { type = "integer", bounds = [0, 110] }
cost    = { type = "decimal", bounds = [-50, 800] }
""")
"""A schema with every kind of column, on which each aggregate is tried."""

ASKED = {
    "COUNT": "COUNT(*)",
    "COUNT_UNITS": "COUNT(DISTINCT patient)",
    "COUNT_DISTINCT": "COUNT(DISTINCT street)",
    "QUANTILE": "PERCENTILE_CONT(cost, 0.25)",
    "AVG": "AVG(cost), AVG(cost, bounds => AUTO)",
    "TRIMMED_MEAN": "TRIMMED_MEAN(cost, 0.2)",
    "REGR_COEFFICIENT": "REGR(cost, age)",
    "CORR_OF": "CORR_MATRIX(cost, age)",
    "COVAR_OF": "COVAR_MATRIX(cost, age)",
    "MEAN_OF": "MEANS(cost, age)",
    "MODE": "MODE(city)",
    "TOP_K": "APPROX_TOP_COUNT(city, 2)",
    "HISTOGRAM": "HISTOGRAM(age, 0, 18, 65, 120)",
    "DISTANCE_TO_SORTED": "DISTANCE_TO_SORTED(cost, age)",
    "DISTANCE_TO_CLUSTERS": "DISTANCE_TO_CLUSTERS(cost, 2, 3)",
    "DISTANCE_TO_DEPENDENCY": "DISTANCE_TO_DEPENDENCY(city, age, street)",
}


def aggregate_questions(name: str) -> tuple[str, ...]:
    """An aggregate of the example's rows: of all, and of each city."""
    two = AGGREGATES[name].arguments == (2,)
    usual = AGGREGATES[name].usage.split("(", maxsplit=1)[0]
    asked = ASKED.get(name, f"{usual}({'cost, age' if two else 'cost'})")
    return (  # read by our own parser; no text of a question reaches an engine
        f"SELECT {asked} AS x FROM visits",  # noqa: S608
        f"SELECT city, {asked} AS x FROM visits WHERE age > 30 GROUP BY city",  # noqa: S608
    )


def question_tasks(*, quick: bool = False) -> tuple[Task, ...]:
    """Every aggregate, on made-up neighbours of an example's schema."""
    asked = {name: aggregate_questions(name) for name in AGGREGATES}

    @functools.cache
    def fuzz_all() -> Fuzz:
        """All of them in the same worlds, whose engines are opened once."""
        texts = [text for several in asked.values() for text in several]
        return fuzz(EXAMPLE, texts, worlds=1 if quick else 6)

    return tuple(
        Task(QUESTIONS, AGGREGATES[name].usage, lambda texts=texts: part_of(fuzz_all(), texts))  # type: ignore[misc]
        for name, texts in asked.items()
    )


def part_of(whole: Fuzz, texts: Sequence[str]) -> Fuzz:
    """What fuzzing found of some of its questions."""
    tried = {text: pairs for text, pairs in whole.tried.items() if text in texts}
    refused = {text: code for text, code in whole.refused.items() if text in texts}
    found = tuple(moved for moved in whole.findings if moved.question in texts)
    return Fuzz(tried, refused, found)


def schema_questions(schema: Schema) -> tuple[str, ...]:
    """Questions for a session that has no history: rows, bounded sums and public groups."""
    found = []
    for name, table in schema.tables.items():
        if table.public:
            continue
        rows = f"FROM {_quote(name)}"
        found.append(f"SELECT COUNT(*) AS n {rows}")
        for column in table.columns:
            shown = _quote(column.name)
            if column.values is not None:
                found.append(f"SELECT {shown}, COUNT(*) AS n {rows} GROUP BY {shown}")
            elif column.low is not None and column.high is not None and column.kind.is_number:
                found.append(f"SELECT AVG({shown}) AS mean {rows}")
    return tuple(found)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def session_tasks(
    schema: Schema, history: Iterable[str], *, public: Any = None, quick: bool = False
) -> tuple[Task, ...]:
    """The questions of a session's history, and some of its schema, on made-up neighbours."""
    asked = tuple(dict.fromkeys(history))
    worlds = 2 if quick else 6

    made = schema_questions(schema)

    @functools.cache
    def fuzz_all() -> Fuzz:
        return fuzz(schema, [*made, *asked], worlds=worlds, label="session", public=public)

    tasks = [Task(SESSION, "the schema", lambda: part_of(fuzz_all(), made))]
    tasks += [Task(SESSION, text, lambda text=text: part_of(fuzz_all(), [text])) for text in asked]  # type: ignore[misc]
    return tuple(tasks)


__all__ = [
    "ALPHA",
    "EXAMPLE",
    "PURPOSE",
    "Done",
    "Subject",
    "Task",
    "aggregate_questions",
    "mechanism_tasks",
    "noise_tasks",
    "part_of",
    "question_tasks",
    "run_task",
    "schema_questions",
    "session_tasks",
    "subjects",
]
