"""A release before anything is drawn: its stages, what each costs, how well it will be known.

All of it follows from the declaration alone, so it is free, and the same wherever it is computed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.errors import InvalidParameter
from discreet.publication.counter import Counter
from discreet.publication.declared import Declared
from discreet.publication.domain import Column
from discreet.publication.geography import Places
from discreet.publication.gram import Prefixes, Ranges
from discreet.publication.hierarchy import Hierarchy, bound_counts
from discreet.publication.marginals import MarginalPlan, Subset, plan_marginals
from discreet.publication.measure import Doubles, Running, make_view
from discreet.publication.spend import Spend
from discreet.publication.strategy import Strategy, choose_kind, expected_rmse, plan_strategy
from discreet.publication.synthetic import Settings, outline_stages, too_few
from discreet.publication.workload import LinearQuestion, WorkloadPlan, plan_workload
from discreet.question.levels import Levels

MOST_CERTIFIED = 10**6
"""Cells of a pair whose distance is bought."""
_MOST_TOGETHER = 9 * 10**7  # numbers in all draws of a release: its readers have a limit, too
_MOST_SETS = 20_000
_MOST_STEPS = 4096
_MOST_WEIGHTS = 2 * 10**7  # of all steps of a counter together


@dataclass(frozen=True, slots=True)
class Outline:
    """One stage before it is drawn: its name, its amount, and what is expected of it."""

    name: str
    spend: Spend
    says: str


def list_columns(declared: Declared, levels: Sequence[Levels]) -> tuple[Column, ...]:
    """The columns that are measured: one for each, or one for the path of a hierarchy."""
    interest = dict(declared.interest)
    for name in (*interest, *declared.ordered, *declared.by, *itertools.chain(*declared.sets)):
        find_level(name, levels)
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


def outline(
    declared: Declared,
    levels: Sequence[Levels],
    spend: Spend,
    *,
    settings: Settings | None = None,
) -> list[Outline]:
    """The stages of a release and what each costs; free, and a refusal if it cannot be made.

    ``settings`` are those of an earlier plan of synthetic rows.
    """
    columns = list_columns(declared, levels)
    if declared.kind == "synthetic" or declared.best:
        for one in list_sets(declared, columns) if declared.best else ():
            make_view(one, [np.arange(columns[column].size) for column in one])
        return _outline_synthetic(declared, columns, spend, settings or Settings())
    if declared.kind == "marginals":
        plan = plan_sets(declared, columns, spend)
        says = (
            f"{len(plan.measured)} tables for {len(plan.asked)} marginals, RMSE {plan.rmse():.3g}"
        )
        return [Outline("tables", spend, says)]
    if declared.kind in ("ranges", "prefixes"):
        chosen, strategy = plan_line(declared, columns, spend)
        lines = len(strategy.matrix)
        return [Outline("strategy", chosen, f"{columns[0].size} cells by {lines} combinations")]
    if declared.kind == "hierarchy":
        tree = plant_tree(declared, levels)
        bound_counts(tree, find_totals(declared, levels))
        says = f"{len(tree.counts)} levels of {', '.join(map(str, tree.counts))} nodes"
        return [Outline("levels", spend, says)]
    if declared.kind == "questions":
        asked, _ = plan_questions(declared, levels, columns, spend)
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
        return plan_sets(declared, columns, spend).rmse()
    if declared.kind in ("ranges", "prefixes"):
        size = columns[0].size
        _, strategy = _find_strategy(declared.kind, size, spend, None)
        gram = Ranges(size) if declared.kind == "ranges" else Prefixes(size)
        return expected_rmse(strategy, gram, spend)
    if declared.kind == "hierarchy":
        depth = len(plant_tree(declared, levels).counts)
        return 1 / spend.divide(np.ones(depth))[0].sharpness
    if declared.kind == "questions":
        return plan_questions(declared, levels, columns, spend)[0].rmse
    if declared.kind == "counter":
        if declared.steps_per_unit is not None:
            return float(make_counter(declared, levels, spend).deviations()[-1])
        horizon, _ = check_counter(levels)
        return 1 / spend.divide(np.ones(horizon))[0].sharpness
    stages = outline_stages(columns, divide_spend(declared, columns, spend)[0])
    return stages[0].deviation or 0.0


def usual_number(declared: Declared, columns: Sequence[Column], levels: Sequence[Levels]) -> float:
    """A usual number of the release if rows were spread evenly, from their declared number."""
    rows = float(declared.rows or 0)
    if declared.kind in ("ranges", "prefixes", "questions", "counter"):
        return rows / (3 if declared.kind == "ranges" else 2)
    if declared.kind == "hierarchy":
        return rows / plant_tree(declared, levels).counts[-1]
    if declared.kind == "marginals" and not declared.best:
        sets = list_sets(declared, columns)
        return rows / max(math.prod(columns[column].size for column in one) for one in sets)
    return rows / max(column.size for column in columns)


def divide_spend(declared: Declared, columns: Sequence[Column], spend: Spend) -> list[Spend]:
    """For the rows; and, if margins are bought, for certified and for typical ones."""
    if len(columns) < 2 or not declared.margins:
        return [spend]
    share = float(declared.margins)
    return spend.divide([1 - share, share / 2, share / 2])


def _outline_synthetic(
    declared: Declared, columns: Sequence[Column], spend: Spend, settings: Settings
) -> list[Outline]:
    parts = divide_spend(declared, columns, spend)
    bins = settings.most_bins(len(columns))
    _refuse_long(_count_pairs(columns, bins, certified=len(parts) > 1))
    stages = outline_stages(columns, parts[0], settings=settings)
    shares = [parts[0]] if len(stages) == 1 else parts[0].divide(settings.shares(parts[0].gaussian))
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


def _count_pairs(columns: Sequence[Column], bins: int, *, certified: bool) -> int:
    """How many numbers the draws of all pairs hold at most, with what they are compared with."""
    sizes = np.array([column.size for column in columns], dtype=np.float64)
    total = _add_products(np.minimum(sizes, bins)) * 2
    if certified:
        for place, size in enumerate(sizes):
            cells = size * sizes[place + 1 :]
            total += float(cells[cells <= MOST_CERTIFIED].sum())
    return int(total)


def _add_products(sizes: Doubles) -> float:
    """The sum of the products of all pairs."""
    return float(sizes.sum() ** 2 - np.square(sizes).sum()) / 2


def _refuse_long(numbers: int) -> None:
    if numbers > _MOST_TOGETHER:
        raise InvalidParameter(
            "P2",
            f"this release would hold up to {numbers:,} numbers; at most {_MOST_TOGETHER:,} are "
            "measured together.",
            why="it would be paid for, and nobody could read it.",
            fix="publish fewer columns together, or coarser ones (cells), or with margins = 0.",
        )


def few_rows(rows: float) -> str:
    """What is said of a declared number of rows before, of a released one afterwards."""
    return (
        f"about {rows:,.0f} rows are too few for this price: little but the columns' own "
        "histograms is kept"
    )


def list_sets(declared: Declared, columns: Sequence[Column]) -> list[Subset]:
    """The sets of columns that are asked for."""
    names = [column.name for column in columns]
    ways = min(declared.ways, len(columns))
    count = len(declared.sets) or math.comb(len(columns), ways)
    if count > _MOST_SETS:
        raise InvalidParameter(
            "P2",
            f"{count:,} tables were asked for; at most {_MOST_SETS:,} are published together.",
            why="every table gets noise, and all of them share the price.",
            fix="use fewer columns, fewer ways, or list the sets that are needed.",
        )
    found = [tuple(sorted(names.index(name) for name in one)) for one in declared.sets]
    found = found or list(itertools.combinations(range(len(columns)), ways))
    _refuse_long(sum(math.prod(columns[column].size for column in one) for one in found))
    return found


def plan_sets(declared: Declared, columns: Sequence[Column], spend: Spend) -> MarginalPlan:
    """What is measured for the sets of columns that are asked for."""
    return plan_marginals(columns, list_sets(declared, columns), spend)


def plan_line(
    declared: Declared, columns: Sequence[Column], spend: Spend
) -> tuple[Spend, Strategy]:
    """The strategy of ranges or prefixes, and the noise that errs less with it."""
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


def plant_tree(declared: Declared, levels: Sequence[Levels]) -> Hierarchy:
    """The tree of a hierarchy: of listed places, or of all combinations."""
    by = [find_level(name, levels) for name in declared.by]
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


def find_totals(declared: Declared, levels: Sequence[Levels]) -> dict[tuple[int, int], int]:
    """The declared totals by (level, node) of the tree."""
    by = [find_level(name, levels) for name in declared.by]
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


def plan_questions(
    declared: Declared, levels: Sequence[Levels], columns: tuple[Column, ...], spend: Spend
) -> tuple[WorkloadPlan, list[str]]:
    """How linear questions are answered together, and each in words."""
    from discreet.publication.linear import check_levels

    check_levels(columns, levels)
    found = list_questions(declared, levels)
    return plan_workload(columns, [one for _, one in found], spend), [text for text, _ in found]


def list_questions(
    declared: Declared, levels: Sequence[Levels]
) -> list[tuple[str, LinearQuestion]]:
    """Every number that linear questions ask for, in words and by its weights."""
    from discreet.publication.linear import read_questions

    plain = " " not in declared.source
    return read_questions(declared.questions, declared.source if plain else declared.name, levels)


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


def find_level(name: str, levels: Sequence[Levels]) -> Levels:
    """The published column of that name, or a refusal."""
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
    "MOST_CERTIFIED",
    "Outline",
    "check_counter",
    "divide_spend",
    "few_rows",
    "find_level",
    "find_totals",
    "list_columns",
    "list_questions",
    "list_sets",
    "list_steps",
    "make_counter",
    "outline",
    "plan_line",
    "plan_questions",
    "plan_sets",
    "plant_tree",
    "predict_error",
    "usual_number",
]
