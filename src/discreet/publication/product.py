"""A release from released numbers: measured stage by stage, and what is made of that.

Every kind is a run that asks a measurer stage by stage, for the amounts that were charged, and a
:class:`Product`, made of what was measured and of nothing else.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from discreet.exact.numbers import Exact
from discreet.publication.declared import Declared
from discreet.publication.domain import Column
from discreet.publication.estimates import Estimates
from discreet.publication.geography import Places
from discreet.publication.hierarchy import (
    FittedTree,
    fit_tree,
    follow_totals,
    make_consistent,
    measure_levels,
)
from discreet.publication.marginals import MarginalPlan, Subset, list_subsets, release_marginals
from discreet.publication.margins import (
    Certificate,
    Typical,
    buy_certificate,
    buy_typical,
    tabulate,
)
from discreet.publication.measure import (
    Doubles,
    Integers,
    Measurement,
    Measurer,
    ask_combinations,
    make_view,
)
from discreet.publication.outline import (
    MOST_CERTIFIED,
    check_counter,
    divide_spend,
    few_rows,
    find_level,
    find_totals,
    list_columns,
    list_sets,
    list_steps,
    make_counter,
    plan_line,
    plan_questions,
    plan_sets,
    plant_tree,
)
from discreet.publication.spend import Kind, Spend, deviation
from discreet.publication.strategy import ask_strategy, estimate_cells
from discreet.publication.synthetic import Histograms, Settings, synthesize, too_few
from discreet.publication.tails import Draws
from discreet.publication.typed import Placed, place_rows
from discreet.publication.workload import answer_workload
from discreet.question.levels import Levels

PLANNER = 6
"""The version of the plans: what is made of released numbers must be made again for ever."""
_SHARP = 3
"""From this plan on, margins of trees are those of all levels together, and of sums Chernoff's."""
_NEAR = 4
"""From this plan on, tails of sums are bounded by what their draws are (Lemmas 21 and 22)."""
_EVIDENT = 5
"""From this plan on, the weight of independence in a fit is read off the tables."""
_ALONE = 6
"""From this plan on, cells of one table that is measured alone have the law of their own draw."""
_FINE = 6
"""From this plan on, pairs are measured in finer bins."""
_COARSE = Settings(bins=64, rows_a_cell=16, haste=1)
_EARLIER = {
    **{(planner, kind): _COARSE for planner in range(1, _FINE) for kind in Kind},
    **{(planner, Kind.GAUSSIAN): replace(_COARSE, prior=0.02) for planner in range(1, _EVIDENT)},
    **{(planner, Kind.LAPLACE): replace(_COARSE, prior=0.01) for planner in range(2, _EVIDENT)},
    (1, Kind.LAPLACE): replace(_COARSE, histograms=0.4, distances=0.1, prior=0.02),
}


def find_settings(planner: int, kind: Kind) -> Settings | None:
    """Those of synthetic rows of an earlier plan; None for those that are usual now."""
    return _EARLIER.get((planner, kind))


class Stages(Measurer, Protocol):
    """A measurer that draws each stage once, for the amount that was charged for it."""

    def turn_to(self, stage: str) -> bool:
        """Say which stage is measured next; whether it is to be measured now."""


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """What came of a release, from released numbers alone."""

    columns: tuple[Column, ...]
    measured: dict[str, list[Measurement]]
    rows: Integers | None = None
    placed: Placed | None = None
    """The values of the rows, of which ``rows`` are the levels."""
    histograms: Histograms | None = None
    tables: tuple[Estimates, ...] = ()
    certificate: Certificate | None = None
    typical: tuple[Typical, ...] = ()
    answers: tuple[tuple[str, float, float], ...] = ()
    """Of linear questions: each in SQL, its answer and its margin."""
    notes: tuple[str, ...] = ()


def make_product(
    declared: Declared,
    levels: Sequence[Levels],
    spend: Spend,
    stages: Stages,
    *,
    planner: int = PLANNER,
) -> Product:
    """Measure stage by stage and make the release of it, as that version of the plan would."""
    columns = list_columns(declared, levels)
    if declared.kind == "synthetic":
        return _make_synthetic(declared, levels, spend, stages, planner)
    if declared.best:
        product = _make_synthetic(declared, levels, spend, stages, planner)
        return _count_sets(declared, product, spend)
    if declared.kind == "marginals":
        product = _make_marginals(declared, columns, spend, stages, planner)
    elif declared.kind in ("ranges", "prefixes"):
        product = _make_line(declared, columns, spend, stages)
    elif declared.kind == "hierarchy":
        product = _make_hierarchy(declared, levels, columns, spend, stages, planner)
    elif declared.kind == "questions":
        return _make_questions(declared, levels, columns, spend, stages, planner)
    else:
        make = _make_counter if declared.steps_per_unit is None else _make_running
        product = make(declared, levels, columns, spend, stages)
    drawn = [one for stage in product.measured.values() for one in stage]
    return _date_margins(product, planner, drawn)


def _date_margins(product: Product, planner: int, drawn: Sequence[Measurement]) -> Product:
    """The same with the margins that this version of the plan states for sums of what was drawn."""
    tables = product.tables
    if planner < _SHARP:
        tables = tuple(replace(table, sharp=False, own=None) for table in tables)
    elif planner >= _NEAR and drawn:
        draws = Draws.of(drawn)
        tables = tuple(replace(table, draws=draws) for table in tables)
    return replace(product, tables=tables)


def _make_synthetic(
    declared: Declared,
    levels: Sequence[Levels],
    spend: Spend,
    stages: Stages,
    planner: int,
) -> Product:
    columns = list_columns(declared, levels)
    parts = divide_spend(declared, columns, spend)
    stages.turn_to("histograms")
    settings = find_settings(planner, spend.kind)
    made = synthesize(stages, columns, parts[0], settings=settings, label=declared.name)
    placed = place_rows(levels, made.rows, label=declared.name, keep=declared.keep)
    count = len(columns)
    pairs = list(itertools.combinations(range(count), 2))
    middle = count + len(pairs)
    measured = {
        "histograms": made.measurements[:count],
        "distances": made.measurements[count:middle],
        "pair tables": made.measurements[middle:],
    }
    tables = tuple(
        Estimates(
            column.name,
            (place,),
            np.bincount(placed.codes[:, place], minlength=column.size).astype(np.float64),
            spend.gaussian,
            _plain_variance(deviation(one.query.noise) ** 2),
            noisy=one.values.astype(np.float64),
            own=one.query.noise,
        )
        for place, (column, one) in enumerate(zip(columns, made.measurements, strict=False))
    )
    product = Product(columns, measured, placed.codes, placed, made.histograms, tables)
    product = _date_margins(product, planner, measured["histograms"])
    if len(parts) > 1:
        product = _buy_margins(product, pairs, parts[1], parts[2], stages)
    notes = []
    if too_few(made.histograms.rows, parts[0]):
        said = few_rows(made.histograms.rows)
        notes.append(f"{said[0].upper()}{said[1:]}.")
    return replace(product, notes=tuple(notes))


def _buy_margins(
    product: Product, pairs: Sequence[Subset], certify: Spend, usual: Spend, stages: Stages
) -> Product:
    if product.rows is None or product.histograms is None:
        raise TypeError("margins are those of rows")
    columns, rows = product.columns, product.rows
    small = [p for p in pairs if columns[p[0]].size * columns[p[1]].size <= MOST_CERTIFIED]
    stages.turn_to("certified margins")
    certificate = None
    measured = dict(product.measured)
    if small:
        certificate = buy_certificate(
            stages, columns, rows, small, certify, rows_variance=product.histograms.rows_variance
        )
        measured["certified margins"] = list(certificate.distances.values())
    stages.turn_to("typical margins")
    typical, draw = buy_typical(stages, columns, rows, usual, ways=2)
    measured["typical margins"] = [draw]
    return replace(product, measured=measured, certificate=certificate, typical=(typical,))


def _plain_variance(one: float) -> Callable[[Doubles], float]:
    """Of sums of cells with independent noise of one variance."""
    return lambda weights: one * float(np.square(weights).sum())


def _count_sets(declared: Declared, product: Product, spend: Spend) -> Product:
    """Tables counted from synthetic rows: whole, non-negative, and agreeing with each other."""
    if product.rows is None:
        raise TypeError("the nearest tables are those of rows")
    columns, certificate = product.columns, product.certificate
    counted = []
    for one in list_sets(declared, columns):
        if len(one) == 1:
            continue  # every column has its own table

        def bound(beta: Exact, those: Subset = one) -> float:
            found = certificate.bound(those, beta=beta) if certificate else None
            return math.nan if found is None else found

        view = make_view(one, [np.arange(columns[column].size) for column in one])
        counted.append(
            Estimates(
                "_".join(columns[column].name for column in one),
                one,
                tabulate(product.rows, view).astype(np.float64),
                spend.gaussian,
                _plain_variance(math.nan),
                bound=bound,
            )
        )
    return replace(product, tables=(*product.tables, *counted))


def _make_marginals(
    declared: Declared, columns: tuple[Column, ...], spend: Spend, stages: Stages, planner: int
) -> Product:
    plan = plan_sets(declared, columns, spend)
    stages.turn_to("tables")
    marginals, released = release_marginals(stages, columns, plan)
    tables = [
        Estimates(
            "_".join(columns[column].name for column in one),
            one,
            marginal.values,
            spend.gaussian,
            _variance_in(plan, one),
        )
        for one, marginal in marginals.items()
    ]
    if planner >= _ALONE and plan.measured == plan.asked and len(released) == 1:
        (table,), (measured,) = tables, released  # its cells are the draws, and nothing else
        values = measured.values.reshape(table.values.shape).astype(np.float64)
        tables = [replace(table, values=values, own=measured.query.noise)]
    return Product(columns, {"tables": released}, tables=tuple(tables))


def _variance_in(plan: MarginalPlan, asked: Subset) -> Callable[[Doubles], float]:
    """The variance of a weighted sum of a marginal's cells, part by part (Lemma 8)."""

    def variance(weights: Doubles) -> float:
        total = 0.0
        for part in list_subsets(asked):
            own = weights.reshape([plan.sizes[column] for column in asked])
            others = tuple(axis for axis, column in enumerate(asked) if column not in part)
            own = own.mean(axis=others) if others else own
            for axis in range(np.ndim(own)):
                own = own - own.mean(axis=axis, keepdims=True)
            need = float(np.square(own).sum())
            if need > 1e-18:
                total += need / plan.precision(part)
        return total

    return variance


def _make_line(
    declared: Declared, columns: tuple[Column, ...], spend: Spend, stages: Stages
) -> Product:
    chosen, strategy = plan_line(declared, columns, spend)
    stages.turn_to("strategy")
    asked = ask_strategy(strategy, [0], [np.arange(columns[0].size)], chosen)
    released = stages.measure([asked])
    cells = estimate_cells(strategy, released[0])
    lines = strategy.matrix.astype(np.float64)
    own = np.zeros(strategy.size) if strategy.diagonal is None else strategy.diagonal
    inverse = np.linalg.inv(lines.T @ lines + np.diag(own.astype(np.float64) ** 2))
    one = deviation(asked.noise) ** 2

    def variance(weights: Doubles) -> float:
        return one * float(weights @ inverse @ weights)

    table = Estimates(columns[0].name, (0,), cells, chosen.gaussian, variance)
    return Product(columns, {"strategy": released}, tables=(table,))


def _make_hierarchy(
    declared: Declared,
    levels: Sequence[Levels],
    columns: tuple[Column, ...],
    spend: Spend,
    stages: Stages,
    planner: int,
) -> Product:
    tree = plant_tree(declared, levels)
    stages.turn_to("levels")
    totals = find_totals(declared, levels)
    if planner >= _SHARP:
        totals = follow_totals(tree, totals)
    noisy, released = measure_levels(stages, 0, tree, spend, known=totals)
    counts = make_consistent(tree, noisy, totals)
    fitted = fit_tree(tree, noisy, totals)
    by = [find_level(name, levels) for name in declared.by]
    listed = Places.of(declared.tree, by).codes if declared.tree else None
    tables = []
    for depth, found in enumerate(counts):
        shape = [one.size for one in by[:depth]]
        if listed is not None:
            shape = [found.size] if depth else []
        values = found.astype(np.float64).reshape(shape)
        table = Estimates(
            "_".join(declared.by[:depth]) or "all",
            tuple(range(depth)),
            values,
            spend.gaussian,
            _tree_variance(fitted, depth),
            noisy=fitted.values[depth].reshape(shape),
            cell_variances=fitted.variances(depth).reshape(shape),
            places=listed[depth - 1] if listed is not None and depth else None,
        )
        if planner < _SHARP:  # each level by itself
            own = noisy[depth]
            table = replace(
                table,
                noisy=values if own is None else own[0].reshape(shape),
                variance_of=_plain_variance(0.0 if own is None else own[1]),
                cell_variances=None,
            )
        tables.append(table)
    return Product(columns, {"levels": released}, tables=tuple(tables))


def _tree_variance(fitted: FittedTree, level: int) -> Callable[[Doubles], float]:
    return lambda weights: fitted.variance(level, weights)


def _make_questions(
    declared: Declared,
    levels: Sequence[Levels],
    columns: tuple[Column, ...],
    spend: Spend,
    stages: Stages,
    planner: int,
) -> Product:
    from discreet.publication.linear import question_margins

    plan, texts = plan_questions(declared, levels, columns, spend)
    stages.turn_to("questions")
    values, released = answer_workload(stages, plan)
    margins = question_margins(plan, released, sharp=planner >= _SHARP, near=planner >= _NEAR)
    answers = tuple(zip(texts, values.tolist(), margins, strict=True))
    return Product(columns, {"questions": released}, answers=answers)


def _make_running(
    declared: Declared,
    levels: Sequence[Levels],
    columns: tuple[Column, ...],
    spend: Spend,
    stages: Stages,
) -> Product:
    """Steps that share their noise: the square-root factorisation of the running totals."""
    counter = make_counter(declared, levels, spend)
    measured: dict[str, list[Measurement]] = {}
    for step, query in enumerate(list_steps(counter), 1):
        if not stages.turn_to(f"step {step}"):
            break
        measured[f"step {step}"] = stages.measure([query])
    if not measured:
        return Product(columns, measured)
    values = np.stack([draw.values for (draw,) in measured.values()]).astype(np.float64)
    done = len(values)
    decoder = counter.decoder()[:done]
    decode = np.zeros((done, done))  # a step's own count from what was published
    for step in range(done):
        decode[step, : step + 1] = decoder[: step + 1][::-1]
    decode[1:] -= decode[:-1].copy()
    one = deviation(counter.noise) ** 2

    def variance(weights: Doubles) -> float:
        return one * float(np.square(weights.reshape(done, -1).T @ decode).sum())

    name = "_".join(level.name for level in levels)
    shape = (done, *(level.size for level in levels[1:]))
    places = tuple(range(len(levels)))
    counts = (decode @ values).reshape(shape)
    table = Estimates(name, places, counts, True, variance)
    return Product(columns, measured, tables=(table,))


def _make_counter(
    declared: Declared,  # noqa: ARG001 (as the other kinds of counters)
    levels: Sequence[Levels],
    columns: tuple[Column, ...],
    spend: Spend,
    stages: Stages,
) -> Product:
    """Running totals, each measured anew from the data as they are at its step.

    Which rows of a unit are kept, and what they say, may change from step to step, so that steps
    cannot share noise as those of :class:`Counter` do: each is a release of its own.
    """
    horizon, cells = check_counter(levels)
    parts = spend.divide(np.ones(horizon))
    view = make_view(range(len(levels)), [np.arange(one.size) for one in levels])
    measured: dict[str, list[Measurement]] = {}
    for step, part in enumerate(parts, 1):
        if not stages.turn_to(f"step {step}"):
            break
        passed = (np.arange(levels[0].size) < step).astype(np.int64)
        matrix = np.kron(passed, np.eye(cells, dtype=np.int64))
        measured[f"step {step}"] = stages.measure([ask_combinations(view, matrix, part)])
    if not measured:
        return Product(columns, measured)
    draws = [draw for (draw,) in measured.values()]
    totals = np.stack([draw.values for draw in draws]).astype(np.float64)
    counts = np.diff(totals, axis=0, prepend=0.0)
    variances = np.array([deviation(draw.query.noise) ** 2 for draw in draws])

    def variance(weights: Doubles) -> float:
        """A sum of steps is a combination of totals, whose noise is independent."""
        lines = weights.reshape(totals.shape)
        own = lines - np.append(lines[1:], np.zeros((1, cells)), axis=0)
        return float((variances[:, None] * np.square(own)).sum())

    name = "_".join(one.name for one in levels)
    shape = (len(draws), *(one.size for one in levels[1:]))
    places = tuple(range(len(levels)))
    table = Estimates(name, places, counts.reshape(shape), spend.gaussian, variance)
    return Product(columns, measured, tables=(table,))


__all__ = ["PLANNER", "Product", "Stages", "find_settings", "make_product"]
