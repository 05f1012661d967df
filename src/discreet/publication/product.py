"""What a release is made of: its stages before anything is drawn, and its tables afterwards.

Every kind is the same three things: stages with their amounts, which are charged; a run
that asks a measurer stage by stage; and a :class:`Product`, made of released numbers alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np

from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact
from discreet.publication.counter import Counter
from discreet.publication.declared import Declared
from discreet.publication.domain import Column
from discreet.publication.geography import Places
from discreet.publication.gram import Prefixes, Ranges
from discreet.publication.hierarchy import (
    FittedTree,
    Hierarchy,
    bound_counts,
    fit_tree,
    follow_totals,
    make_consistent,
    measure_levels,
)
from discreet.publication.marginals import (
    MarginalPlan,
    Subset,
    list_subsets,
    plan_marginals,
    release_marginals,
)
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
    Running,
    ask_combinations,
    make_view,
)
from discreet.publication.spend import Kind, Noise, Spend, deviation, tail_bound
from discreet.publication.strategy import (
    Strategy,
    ask_strategy,
    choose_kind,
    estimate_cells,
    expected_rmse,
    plan_strategy,
)
from discreet.publication.synthetic import (
    Histograms,
    Settings,
    outline_stages,
    synthesize,
    too_few,
)
from discreet.publication.typed import Placed, place_rows
from discreet.publication.workload import WorkloadPlan, answer_workload, plan_workload
from discreet.question.levels import Levels

_MOST_STEPS = 4096
_MOST_WEIGHTS = 2 * 10**7  # of all steps of a counter together
_MOST_CERTIFIED = 10**6  # cells of a pair whose distance is bought


PLANNER = 3
"""The version of the plans: what is made of released numbers must be made again for ever."""
_SHARP = 3
"""From this plan on, margins of trees are those of all levels together, and of sums Chernoff's."""
_EARLIER = {(1, Kind.LAPLACE): Settings(histograms=0.4, distances=0.1, prior=0.02)}


class Stages(Measurer, Protocol):
    """A measurer that draws each stage once, for the amount that was charged for it."""

    def turn_to(self, stage: str) -> bool:
        """Say which stage is measured next; whether it is to be measured now."""


@dataclass(frozen=True, slots=True)
class Outline:
    """One stage before it is drawn: its name, its amount, and what is expected of it."""

    name: str
    spend: Spend
    says: str


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """A released table of counts: how exactly any sum of its cells is known."""

    name: str
    columns: Subset
    values: Doubles
    gaussian: bool
    variance_of: Callable[[Doubles], float] = field(repr=False)
    """The variance of the sum of the cells with these weights."""
    noisy: Doubles | None = field(default=None, repr=False)
    """What was measured of cells that were made whole, non-negative and agreeing afterwards."""
    bound: Callable[[Exact], float] | None = field(default=None, repr=False)
    """Of tables counted from synthetic rows: what was bought for every sum of their cells."""
    own: Noise | None = field(default=None, repr=False)
    """The noise of each cell, where each was measured by itself."""
    cell_variances: Doubles | None = field(default=None, repr=False)
    """The variance of every cell, where they differ."""
    places: Integers | None = field(default=None, repr=False)
    """Of listed cells: the level of each in every column; else cells are all combinations."""
    sharp: bool = True
    """Whether tails are bounded as they are now, or as earlier plans did."""

    def levels_of(self) -> Integers:
        """The level of every cell in each of the columns."""
        if self.places is not None:
            return self.places
        shape = self.values.shape
        return np.indices(shape).reshape(len(shape), self.values.size)

    def margin(self, weights: Doubles, beta: Exact = "0.05") -> float:
        """The weighted sum of cells is within this, except with probability ``beta``.

        What was moved after it was measured is off by no more than it was moved besides.
        Not a number where nothing was bought that bounds it.
        """
        if self.bound is not None:
            return self.bound(beta)
        tail = self._tail(weights, beta)
        if self.noisy is None:
            return tail
        return tail + abs(float((weights * (self.values - self.noisy)).sum()))

    def cell_margins(self, beta: Exact = "0.05") -> Doubles:
        """The margin of every cell."""
        count = self.values.size
        if self.bound is not None:
            return np.full(count, self.bound(beta))
        one = np.zeros(count)
        if self.cell_variances is not None:
            unit = tail_bound(1.0, beta, gaussian=self.gaussian, sharp=self.sharp)
            tails = unit * np.sqrt(self.cell_variances.reshape(-1))
        elif count <= 4096:
            tails = np.empty(count)
            for place in range(count):
                one[place] = 1.0
                tails[place] = self._tail(one.reshape(self.values.shape), beta)
                one[place] = 0.0
        else:  # all cells have one variance
            one[0] = 1.0
            tails = np.full(count, self._tail(one.reshape(self.values.shape), beta))
        if self.noisy is None:
            return tails
        return np.asarray(tails + np.abs(self.values - self.noisy).reshape(-1))

    def _tail(self, weights: Doubles, beta: Exact) -> float:
        if self.own is not None and np.abs(weights).sum() == np.abs(weights).max() == 1:
            return float(self.own.margin(beta))  # one cell: the law of its noise itself
        return tail_bound(self.variance_of(weights), beta, gaussian=self.gaussian, sharp=self.sharp)


def _plain_variance(one: float) -> Callable[[Doubles], float]:
    """Of sums of cells with independent noise of one variance."""
    return lambda weights: one * float(np.square(weights).sum())


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


def list_columns(declared: Declared, levels: Sequence[Levels]) -> tuple[Column, ...]:
    """The columns that are measured: one for each, or one for the path of a hierarchy."""
    interest = dict(declared.interest)
    for name in (*interest, *declared.ordered, *declared.by, *itertools.chain(*declared.sets)):
        _require(name, levels)
    made = tuple(
        Column(
            one.name,
            one.size,
            ordered=one.ordered or one.name in declared.ordered,
            null=one.nullable,
            interest=float(interest.get(one.name, 1)),
        )
        for one in levels
    )
    if declared.kind == "hierarchy":
        size = math.prod(one.size for one in made)
        if declared.tree:
            size = len(declared.tree) + levels[0].nullable
        return (Column("/".join(declared.by), size),)
    return made


def outline(declared: Declared, levels: Sequence[Levels], spend: Spend) -> list[Outline]:
    """The stages of a release and what each costs; free, and a refusal if it cannot be made."""
    columns = list_columns(declared, levels)
    if declared.kind == "synthetic" or declared.best:
        for one in _list_sets(declared, columns) if declared.best else ():
            make_view(one, [np.arange(columns[column].size) for column in one])
        return _outline_synthetic(declared, columns, spend)
    if declared.kind == "marginals":
        plan = _plan_marginals(declared, columns, spend)
        says = (
            f"{len(plan.measured)} tables for {len(plan.asked)} marginals, RMSE {plan.rmse():.3g}"
        )
        return [Outline("tables", spend, says)]
    if declared.kind in ("ranges", "prefixes"):
        chosen, strategy = _plan_line(declared, columns, spend)
        lines = len(strategy.matrix)
        return [Outline("strategy", chosen, f"{columns[0].size} cells by {lines} combinations")]
    if declared.kind == "hierarchy":
        tree = _plant(declared, levels)
        bound_counts(tree, find_totals(declared, levels))
        says = f"{len(tree.counts)} levels of {', '.join(map(str, tree.counts))} nodes"
        return [Outline("levels", spend, says)]
    if declared.kind == "questions":
        asked, _ = _plan_questions(declared, levels, columns, spend)
        says = f"{len(asked.questions)} numbers, ± {1.96 * asked.rmse:.3g}"
        return [Outline("questions", spend, says)]
    if declared.steps_per_unit is not None:
        return _outline_running(declared, levels, spend)
    horizon, counts = check_counter(levels)
    parts = spend.divide(np.ones(horizon))
    says = f"{counts} running totals, ± {1.96 / parts[0].sharpness:.3g}"
    return [Outline(f"step {step}", part, says) for step, part in enumerate(parts, 1)]


def predict_error(
    declared: Declared, columns: tuple[Column, ...], spend: Spend, levels: Sequence[Levels]
) -> float:
    """The deviation that a usual number of the release will have, from the declaration alone.

    Of synthetic rows, that of the histograms' counts: what the model adds is not known before.
    """
    if declared.kind == "marginals" and not declared.best:
        return _plan_marginals(declared, columns, spend).rmse()
    if declared.kind in ("ranges", "prefixes"):
        size = columns[0].size
        _, strategy = _find_strategy(declared.kind, size, spend, None)
        gram = Ranges(size) if declared.kind == "ranges" else Prefixes(size)
        return expected_rmse(strategy, gram, spend)
    if declared.kind == "hierarchy":
        depth = len(_plant(declared, levels).counts)
        return 1 / spend.divide(np.ones(depth))[0].sharpness
    if declared.kind == "questions":
        return _plan_questions(declared, levels, columns, spend)[0].rmse
    if declared.kind == "counter":
        if declared.steps_per_unit is not None:
            return float(make_counter(declared, levels, spend).deviations()[-1])
        horizon, _ = check_counter(levels)
        return 1 / spend.divide(np.ones(horizon))[0].sharpness
    stages = outline_stages(columns, _divide(declared, columns, spend)[0])
    return stages[0].deviation or 0.0


def usual_number(declared: Declared, columns: Sequence[Column], levels: Sequence[Levels]) -> float:
    """A usual number of the release if rows were spread evenly, from their declared number."""
    rows = float(declared.rows or 0)
    if declared.kind in ("ranges", "prefixes", "questions", "counter"):
        return rows / (3 if declared.kind == "ranges" else 2)
    if declared.kind == "hierarchy":
        return rows / _plant(declared, levels).counts[-1]
    if declared.kind == "marginals" and not declared.best:
        sets = _list_sets(declared, columns)
        return rows / max(math.prod(columns[column].size for column in one) for one in sets)
    return rows / max(column.size for column in columns)


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
        product = _make_marginals(declared, columns, spend, stages)
    elif declared.kind in ("ranges", "prefixes"):
        product = _make_line(declared, columns, spend, stages)
    elif declared.kind == "hierarchy":
        product = _make_hierarchy(declared, levels, columns, spend, stages, planner)
    elif declared.kind == "questions":
        return _make_questions(declared, levels, columns, spend, stages, planner)
    else:
        make = _make_counter if declared.steps_per_unit is None else _make_running
        product = make(declared, levels, columns, spend, stages)
    return product if planner >= _SHARP else _as_before(product)


def _as_before(product: Product) -> Product:
    """The same with the margins that earlier plans stated."""
    tables = tuple(replace(table, sharp=False, own=None) for table in product.tables)
    return replace(product, tables=tables)


# --- synthetic tables ---------------------------------------------------------------------------


def _divide(declared: Declared, columns: Sequence[Column], spend: Spend) -> list[Spend]:
    """For the rows; and, if margins are bought, for certified and for typical ones."""
    if len(columns) < 2 or not declared.margins:
        return [spend]
    share = float(declared.margins)
    return spend.divide([1 - share, share / 2, share / 2])


def _outline_synthetic(
    declared: Declared, columns: Sequence[Column], spend: Spend
) -> list[Outline]:
    parts = _divide(declared, columns, spend)
    stages = outline_stages(columns, parts[0])
    for pair in itertools.combinations(columns, 2):
        make_view((0, 1), [np.arange(min(column.size, 64)) for column in pair])
    shares = (
        [parts[0]] if len(stages) == 1 else parts[0].divide(Settings().shares(parts[0].gaussian))
    )
    found = [
        Outline(
            stage.name,
            share,
            f"{stage.queries} tables"
            + ("" if stage.deviation is None else f", ± {1.96 * stage.deviation:.3g} a number"),
        )
        for stage, share in zip(stages, shares, strict=True)
    ]
    if len(parts) > 1:
        found += [
            Outline("certified margins", parts[1], "distances of pairs from the rows"),
            Outline("typical margins", parts[2], "usual errors of 3,000 questions"),
        ]
    if declared.rows is not None and too_few(declared.rows, parts[0]):
        found[-1] = replace(found[-1], says=f"{found[-1].says}; {few_rows(declared.rows)}")
    return found


def few_rows(rows: float) -> str:
    """What is said of a declared number of rows before, of a released one afterwards."""
    return (
        f"about {rows:,.0f} rows are too few for this price: little but the columns' own "
        "histograms is kept"
    )


def _make_synthetic(
    declared: Declared,
    levels: Sequence[Levels],
    spend: Spend,
    stages: Stages,
    planner: int,
) -> Product:
    columns = list_columns(declared, levels)
    parts = _divide(declared, columns, spend)
    stages.turn_to("histograms")
    settings = _EARLIER.get((planner, spend.kind))
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
    if planner < _SHARP:
        product = _as_before(product)
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
    small = [p for p in pairs if columns[p[0]].size * columns[p[1]].size <= _MOST_CERTIFIED]
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


# --- marginals ----------------------------------------------------------------------------------


def _list_sets(declared: Declared, columns: Sequence[Column]) -> list[Subset]:
    """The sets of columns that are asked for."""
    names = [column.name for column in columns]
    if declared.sets:
        return [tuple(sorted(names.index(name) for name in one)) for one in declared.sets]
    return list(itertools.combinations(range(len(columns)), min(declared.ways, len(columns))))


def _plan_marginals(declared: Declared, columns: Sequence[Column], spend: Spend) -> MarginalPlan:
    return plan_marginals(columns, _list_sets(declared, columns), spend)


def _count_sets(declared: Declared, product: Product, spend: Spend) -> Product:
    """Tables counted from synthetic rows: whole, non-negative, and agreeing with each other."""
    if product.rows is None:
        raise TypeError("the nearest tables are those of rows")
    columns, certificate = product.columns, product.certificate
    counted = []
    for one in _list_sets(declared, columns):
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
    declared: Declared, columns: tuple[Column, ...], spend: Spend, stages: Stages
) -> Product:
    plan = _plan_marginals(declared, columns, spend)
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
    return Product(columns, {"tables": released}, tables=tuple(tables))


def _usual(plan: MarginalPlan) -> float:
    """Within what a cell is at 95 %, in the mean."""
    return 1.96 * plan.rmse()


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


# --- ranges and prefixes ------------------------------------------------------------------------


def _plan_line(
    declared: Declared, columns: Sequence[Column], spend: Spend
) -> tuple[Spend, Strategy]:
    both = None
    if declared.epsilon is not None and declared.delta is not None:  # whichever noise errs less
        both = declared.epsilon, declared.delta
    return _find_strategy(declared.kind, columns[0].size, spend, both)


@lru_cache(16)
def _find_strategy(
    kind: str, size: int, spend: Spend, both: tuple[Fraction, Fraction] | None
) -> tuple[Spend, Strategy]:
    """The strategy for all ranges or prefixes; searched once, for it takes seconds."""
    gram = Ranges(size) if kind == "ranges" else Prefixes(size)
    if both is None:
        return spend, plan_strategy(gram, spend)
    return choose_kind(gram, epsilon=both[0], delta=both[1], rows_per_unit=spend.rows_per_unit)


def _make_line(
    declared: Declared, columns: tuple[Column, ...], spend: Spend, stages: Stages
) -> Product:
    chosen, strategy = _plan_line(declared, columns, spend)
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


# --- hierarchies --------------------------------------------------------------------------------


def _plant(declared: Declared, levels: Sequence[Levels]) -> Hierarchy:
    by = [_require(name, levels) for name in declared.by]
    if declared.tree:
        return Places.of(declared.tree, by).hierarchy
    size = math.prod(one.size for one in by)
    if size > 10**6:
        raise InvalidParameter(
            "P2",
            f"a hierarchy of {size} leaves was asked for; at most 1000000 are counted.",
            why="every leaf gets noise, whether or not anybody is in it.",
            fix="use fewer columns, or coarser ones, or name a public table of the places that "
            "there are: geography.",
        )
    return Hierarchy.of(list(itertools.product(*(range(one.size) for one in by))))


def _make_hierarchy(
    declared: Declared,
    levels: Sequence[Levels],
    columns: tuple[Column, ...],
    spend: Spend,
    stages: Stages,
    planner: int,
) -> Product:
    tree = _plant(declared, levels)
    stages.turn_to("levels")
    totals = find_totals(declared, levels)
    if planner >= _SHARP:
        totals = follow_totals(tree, totals)
    noisy, released = measure_levels(stages, 0, tree, spend, known=totals)
    counts = make_consistent(tree, noisy, totals)
    fitted = fit_tree(tree, noisy, totals)
    by = [_require(name, levels) for name in declared.by]
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


def find_totals(declared: Declared, levels: Sequence[Levels]) -> dict[tuple[int, int], int]:
    """The declared totals by (level, node) of the tree."""
    by = [_require(name, levels) for name in declared.by]
    nodes = _name_nodes(declared, by) if declared.tree and declared.totals else None
    found = {}
    for path, total in declared.totals:
        steps = path.split("/") if path else []
        node = 0
        if len(steps) > len(by):
            raise _no_node(path)
        if nodes is not None:
            if tuple(steps) not in nodes:
                raise _no_node(path)
            found[len(steps), nodes[tuple(steps)]] = total
            continue
        for one, word in zip(by, steps, strict=False):
            words = [one.describe(level) for level in range(one.size)]
            if word not in words:
                raise _no_node(path)
            node = node * one.size + words.index(word)
        found[len(steps), node] = total
    return found


def _name_nodes(declared: Declared, by: Sequence[Levels]) -> dict[tuple[str, ...], int]:
    """The nodes of listed places by their paths in words."""
    found: dict[tuple[str, ...], int] = {(): 0}
    for codes in Places.of(declared.tree, by).codes:
        for node, path in enumerate(codes.T.tolist()):
            words = tuple(one.describe(k) for one, k in zip(by, path, strict=False))
            found[words] = node
    return found


# --- linear questions ---------------------------------------------------------------------------


def _plan_questions(
    declared: Declared, levels: Sequence[Levels], columns: tuple[Column, ...], spend: Spend
) -> tuple[WorkloadPlan, list[str]]:
    from discreet.publication.linear import check_levels, read_questions

    check_levels(columns, levels)
    plain = " " not in declared.source
    found = read_questions(declared.questions, declared.source if plain else declared.name, levels)
    return plan_workload(columns, [one for _, one in found], spend), [text for text, _ in found]


def _make_questions(
    declared: Declared,
    levels: Sequence[Levels],
    columns: tuple[Column, ...],
    spend: Spend,
    stages: Stages,
    planner: int,
) -> Product:
    from discreet.publication.linear import question_margins

    plan, texts = _plan_questions(declared, levels, columns, spend)
    stages.turn_to("questions")
    values, released = answer_workload(stages, plan)
    margins = question_margins(plan, released, sharp=planner >= _SHARP)
    answers = tuple(zip(texts, values.tolist(), margins, strict=True))
    return Product(columns, {"questions": released}, answers=answers)


# --- counters -----------------------------------------------------------------------------------


def check_counter(levels: Sequence[Levels], *, running: bool = False) -> tuple[int, int]:
    """The steps of a counter, which are the cells of its first column, and the counts of each."""
    horizon, cells = levels[0].count, math.prod(one.size for one in levels[1:])
    weights = horizon * cells if running else horizon**2 * cells**2
    if not 1 <= horizon <= _MOST_STEPS or weights > _MOST_WEIGHTS:
        raise InvalidParameter(
            "P2",
            f"a counter of {horizon} steps and {cells} counts was asked for.",
            why="every step counts all steps before it, and is charged for.",
            fix=f"count in at most {_MOST_STEPS} longer steps (cells), or by fewer columns.",
        )
    return horizon, cells


def make_counter(declared: Declared, levels: Sequence[Levels], spend: Spend) -> Counter:
    """The counter whose steps share their noise."""
    horizon, cells = check_counter(levels, running=True)
    return Counter(
        horizon=horizon, spend=spend, cells=cells, steps_per_unit=declared.steps_per_unit or 1
    )


def _outline_running(declared: Declared, levels: Sequence[Levels], spend: Spend) -> list[Outline]:
    """A stage for each step: what all cost together, divided as the worst unit is spread."""
    counter = make_counter(declared, levels, spend)
    reached = [float(query.reach) ** 2 for query in list_steps(counter)]
    last = counter.deviations()
    return [
        Outline(
            f"step {step}", part, f"{counter.cells} running totals, ± {1.96 * last[step - 1]:.3g}"
        )
        for step, part in enumerate(spend.divide(reached), 1)
    ]


def list_steps(counter: Counter) -> list[Running]:
    """What each step asks."""
    return [
        Running(
            counter.cells,
            counter.factor[:step],
            counter.steps_per_unit,
            counter.spend.rows_per_unit,
            counter.noise,
        )
        for step in range(1, counter.horizon + 1)
    ]


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


def _require(name: str, levels: Sequence[Levels]) -> Levels:
    for one in levels:
        if one.name == name:
            return one
    raise InvalidParameter(
        "P6",
        f"column {name!r} is not one of those that are published.",
        why="only what is counted can be told.",
        fix=f"name some of {', '.join(one.name for one in levels)}.",
    )


def _no_node(path: str) -> InvalidParameter:
    return InvalidParameter(
        "P6",
        f"the hierarchy has no node {path!r} whose total could be kept.",
        why="a total belongs to one node of the tree.",
        fix='write the values from the top down, such as totals = { "north/ayr" = 1200 }.',
    )


__all__ = [
    "Estimates",
    "Outline",
    "Product",
    "Stages",
    "list_columns",
    "make_product",
    "outline",
    "predict_error",
    "usual_number",
]
