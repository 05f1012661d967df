"""Draws as text and as a table: what was measured, with which noise, and what came out.

A stage is stored in the ledger before the next is planned, so that no draw is ever
made twice.  ``measurements.parquet`` holds all of them with all that anybody needs to
run the reconstruction again, and to add up the loss: docs/publication.md has the
format and a reader.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.errors import LedgerRefusal
from discreet.exact.numbers import canonical_json, fraction
from discreet.mechanisms.gaussian import Gaussian
from discreet.publication.measure import (
    GRID,
    Cells,
    Combinations,
    Distance,
    Errors,
    Integers,
    Measurement,
    Query,
    Running,
    column_norms,
)
from discreet.publication.spend import Noise

_KINDS = {
    Cells: "cells",
    Combinations: "combinations",
    Distance: "distance",
    Errors: "errors",
    Running: "running",
}


def write_stage(measurements: Sequence[Measurement]) -> bytes:
    """One stage as the ledger keeps it."""
    content = {
        "measurements": 1,
        "queries": [digest_query(one.query) for one in measurements],
        "values": [one.values.reshape(-1).tolist() for one in measurements],
    }
    return canonical_json(content).encode()


def read_stage(stored: bytes, queries: Sequence[Query]) -> list[Measurement]:
    """The measurements of a stage that was drawn before, for the queries it was drawn for."""
    content = json.loads(stored)
    if content.get("measurements") != 1:
        raise _unreadable("of another version.")
    if content["queries"] != [digest_query(query) for query in queries]:
        raise _unreadable("was planned otherwise by another version of the program.")
    return [
        Measurement(query, np.array(values, dtype=np.int64).reshape(shape_of(query)))
        for query, values in zip(queries, content["values"], strict=True)
    ]


def shape_of(query: Query) -> tuple[int, ...]:
    """The shape of a query's answer."""
    match query:
        case Cells(view=view):
            return view.shape
        case Combinations(view=view, matrix=matrix, diagonal=diagonal):
            return (len(matrix) + (0 if diagonal is None else view.cells),)
        case Distance():
            return (1,)
        case Errors(ranks=ranks):
            return (len(ranks),)
        case Running(cells=cells):
            return (cells,)


def digest_query(query: Query) -> str:
    """A name for exactly this query: what is counted, and with which noise."""
    parts: list[bytes] = [_KINDS[type(query)].encode(), repr(query.noise).encode()]
    match query:
        case Cells(view=view):
            parts += _view_parts(view)
        case Combinations(view=view, matrix=matrix, diagonal=diagonal):
            parts += [*_view_parts(view), _bytes(matrix)]
            parts += [] if diagonal is None else [_bytes(diagonal)]
        case Distance(view=view, reference=reference):
            parts += [*_view_parts(view), _bytes(reference)]
        case Errors(batteries=batteries, references=references, ranks=ranks):
            parts += [repr(ranks).encode(), *map(_bytes, references)]
            for battery in batteries:
                parts += [*_view_parts(battery.view), *(s.tobytes() for s in battery.sets)]
        case Running(cells=cells, factor=factor, steps_per_unit=touched):
            parts += [repr((cells, touched)).encode(), _bytes(factor)]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


def _view_parts(view: Any) -> list[bytes]:
    return [repr(view.columns).encode(), *map(_bytes, view.maps)]


def _bytes(array: Integers) -> bytes:
    return repr(array.shape).encode() + np.ascontiguousarray(array, dtype="<i8").tobytes()


# --- measurements.parquet -----------------------------------------------------------------------


def draw_lines(
    stage: str, names: Sequence[str], measurements: Sequence[Measurement]
) -> list[dict[str, Any]]:
    """The lines of ``measurements.parquet`` for one stage."""
    return [{"stage": stage, **_line(names, one)} for one in measurements]


def _line(names: Sequence[str], one: Measurement) -> dict[str, Any]:
    query = one.query
    line: dict[str, Any] = {
        "kind": _KINDS[type(query)],
        "columns": [],
        "maps": [],
        "shape": list(shape_of(query)),
        "values": one.values.reshape(-1).tolist(),
        "noise": "gaussian" if isinstance(query.noise, Gaussian) else "laplace",
        "parameter": str(noise_parameter(query.noise)),
        "sensitivity": str(noise_reach(query.noise)),
        "loss": str(draw_loss(query)),
        "matrix": None,
        "diagonal": None,
        "reference": None,
        "ranks": None,
    }
    if isinstance(query, Errors):
        line["ranks"] = list(query.ranks)
        return line
    if isinstance(query, Running):
        line["matrix"], line["ranks"] = query.factor.tolist(), [query.steps_per_unit]
        return line
    line["columns"] = [names[column] for column in query.view.columns]
    line["maps"] = [one.tolist() for one in query.view.maps]
    match query:
        case Combinations(matrix=matrix, diagonal=diagonal):
            line["matrix"] = matrix.reshape(-1).tolist()
            line["diagonal"] = None if diagonal is None else diagonal.tolist()
        case Distance(reference=reference):
            line["reference"] = reference.reshape(-1).tolist()
    return line


def noise_parameter(noise: Noise) -> Fraction:
    """σ² of Gaussian noise, the scale of Laplace noise."""
    return noise.sigma_squared if isinstance(noise, Gaussian) else noise.scale


def noise_reach(noise: Noise) -> Fraction:
    """The squared L2 sensitivity for Gaussian noise, the L1 sensitivity for Laplace noise."""
    return noise.sensitivity_squared if isinstance(noise, Gaussian) else noise.sensitivity


def noise_loss(noise: Noise) -> Fraction:
    """ρ for Gaussian noise, ε for Laplace noise."""
    return noise.rho if isinstance(noise, Gaussian) else noise.epsilon


def draw_loss(query: Query) -> Fraction:
    """What one draw costs: of a running step, the worst unit's part of the horizon."""
    if isinstance(query, Running):
        reach = Fraction(query.reach * query.rows_per_unit)
        return reach**2 / (2 * noise_parameter(query.noise))
    return noise_loss(query.noise)


def loss_of_line(line: dict[str, Any], rows_per_unit: int) -> Fraction:
    """What one line costs, from its form and its noise alone: nothing that it claims is believed.

    One row is in one cell; a combination moves by its column of the matrix; a distance by
    its grid, an order statistic by one.
    """
    match line["kind"]:
        case "cells":
            l1 = l2_squared = 1
        case "distance":
            l1, l2_squared = GRID, GRID**2
        case "errors":
            l1 = l2_squared = len(line["ranks"])
        case "running":  # of the worst unit of all steps (Lemma 11): its part in this one
            (touched,) = line["ranks"]
            l1 = sum(line["matrix"][-touched:])
            l2_squared = l1**2
        case "combinations":
            cells = int(np.prod([max(one) + 1 for one in line["maps"]]))
            matrix = np.array(line["matrix"], dtype=np.int64).reshape(-1, cells)
            own = line["diagonal"]
            l1, l2_squared = column_norms(
                matrix, None if own is None else np.array(own, dtype=np.int64)
            )
        case _:
            raise _unreadable(f"has a line of kind {line['kind']!r}.")
    parameter = fraction(line["parameter"])
    if line["noise"] == "gaussian":
        return l2_squared * rows_per_unit**2 / (2 * parameter)
    return l1 * rows_per_unit / parameter


def _unreadable(what: str) -> LedgerRefusal:
    return LedgerRefusal(
        "L10",
        f"a stored stage of a release {what}",
        why="it was drawn once, and to draw it again would be a second release.",
        fix="use the version of discreet that began this release.",
    )


__all__ = [
    "digest_query",
    "draw_lines",
    "draw_loss",
    "loss_of_line",
    "noise_loss",
    "noise_parameter",
    "read_stage",
    "write_stage",
]
