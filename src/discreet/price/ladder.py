"""How far one person moves counts of degrees where both people of a row are protected.

A row of degrees that is lost and one that is gained are alike if they have the same number, so
what both do to a count cancels: less moves than rows are lost and gained.

Lemma numbers refer to ``docs/proofs/graphs.md``.
"""

from __future__ import annotations

from discreet.price.plan import Measurement, Moments, Plan, Sensitivity
from discreet.question.expressions import ColumnRef
from discreet.question.relation import Filter, GraphRows, Project, Relation, Shape
from discreet.question.schema import Owners


def bound_ladder(plan: Plan, measurement: Measurement) -> Sensitivity | None:
    """The sensitivity of counts of degrees by groups of their numbers; None of anything else."""
    graph, carried = _find_numbers(plan.source)
    counted = isinstance(measurement, Moments) and measurement.entries == measurement.weight == 1
    if graph is None or not counted or not plan.keys:
        return None
    most = graph.source.table.max_rows_per_unit
    if graph.source.table.owners is not Owners.ANY or graph.shape is not Shape.DEGREES or not most:
        return None
    keys = (key.expression for key in plan.keys)
    apart = any(isinstance(one, ColumnRef) and one.name in carried for one in keys)
    return compute_moves(most, graph.most, apart=apart)


def compute_moves(rows: int, numbers: int, *, apart: bool) -> Sensitivity:
    """Where so many ``rows`` of a person are kept and ``numbers`` of degrees counted (Lemma 9).

    ``apart``: each number in a group of its own; else several may share one.

    >>> compute_moves(3, 5, apart=True)
    Sensitivity(l1=10, l2_squared=46)
    """
    r, t = rows, min(rows, numbers)
    if t == 1:  # one number
        return Sensitivity(2 * r, 4 * r**2)
    if apart:
        squared = max((2 * r - 1) ** 2 + (r + 1) ** 2 + t - 2, 4 * r**2 + t**2 + t - 2)
    else:
        squared = max((2 * r - 1) ** 2 + (r + t - 1) ** 2, 4 * r**2 + (2 * t - 2) ** 2)
    return Sensitivity(3 * r + t - 2, squared)


def _find_numbers(relation: Relation) -> tuple[GraphRows | None, frozenset[str]]:
    """The graph whose rows these are, each once, and the columns that hold its numbers."""
    match relation:
        case GraphRows(name=name):
            return relation, frozenset((name,))
        case Filter(source=source):
            return _find_numbers(source)
        case Project(source=source, columns=named):
            graph, below = _find_numbers(source)
            kept = (name for name, e in named if isinstance(e, ColumnRef) and e.name in below)
            return graph, frozenset(kept)
    return None, frozenset()


__all__ = ["bound_ladder", "compute_moves"]
