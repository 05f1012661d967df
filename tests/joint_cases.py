"""Statements of many conditions on a small domain, and what one unit moves there."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import comb, prod
from typing import Any

from discreet.mechanisms import Gaussian, Laplace, Staircase
from discreet.price import Priced
from discreet.price.plan import (
    DistinctValues,
    GroupSum,
    GroupTotal,
    Measurement,
    Moments,
    Sum,
    Units,
)
from discreet.question.functions import evaluate
from discreet.question.relation import Filter
from discreet.question.schema import Schema

Row = Mapping[str, Any]
Vector = Counter[Any]

SCHEMA = """
{neighbours}
[tables.visits]
unit = "patient"
max_rows_per_unit = {rows}
[tables.visits.columns]
patient = "integer"
x = {{ type = "integer", bounds = [0, 3] }}
y = {{ type = "decimal", bounds = [-2, 2] }}
b = "boolean"
home = {{ type = "text", values = ["north", "south"], nullable = false, per_unit = true }}
"""

VALUES: dict[str, list[Any]] = {
    "x": [0, 1, 2, 3, None],
    "y": [-2.0, -1.999999, 0.0, 1e-9, 2.0, None],
    "b": [True, False, None],
    "home": ["north", "south"],
}
"""Between them they have every outcome of the conditions below, and every end of a range.

Numbers close to an end stand for those of a range that does not hold it.
"""

CONDITIONS = [
    *("x < 2", "x >= 2", "x = 1", "x IN (0, 3)", "x <> 1", "x IS NULL", "x IS NOT NULL"),
    *("x BETWEEN 1 AND 2", "x * 2 = 4", "NOT x < 2", "x < 2 AND b", "x < 2 OR b"),
    *("b", "NOT b", "b IS NULL", "b IS TRUE", "b IS NOT TRUE"),
    *("y > 0", "y <= 0", "y = 2", "y IS NULL", "ABS(y) = 2", "y > 0 AND x > 1"),
    *("home = 'north'", "home = 'south'", "home = 'north' AND b", "home <> 'north' AND x = 3"),
]
SHAPES = [
    *("COUNT(*) FILTER (WHERE {c})", "COUNT_IF({c})", "COUNT(CASE WHEN {c} THEN 1 END)"),
    *("SUM(CASE WHEN {c} THEN 1 ELSE 0 END)", "COUNT(DISTINCT patient) FILTER (WHERE {c})"),
    *("AVG(x) FILTER (WHERE {c})", "SUM(y) FILTER (WHERE {c})", "COUNT(*)"),
    *("AVG(CASE WHEN {c} THEN y END)", "COUNT(DISTINCT patient)"),
]


def make_schema(rows: int, *, change_one: bool = False) -> Schema:
    """The schema of all statements."""
    sides = 'neighbours = "change-one"' if change_one else ""
    return Schema.from_text(SCHEMA.format(rows=rows, neighbours=sides))


def write_statements(seed: int, count: int, *, grouped: bool = True) -> Iterator[str]:
    """Random statements, each of two to six aggregates."""
    rng = random.Random(seed)
    for _ in range(count):
        shapes = [
            rng.choice(SHAPES).format(c=rng.choice(CONDITIONS)) for _ in range(rng.randint(2, 6))
        ]
        key = rng.choice(["", "", "home", "b", "x > 1"]) if grouped else ""
        named = [*([f"{key} AS k"] if key else []), *(f"{s} AS a{i}" for i, s in enumerate(shapes))]
        text = f"SELECT {', '.join(named)} FROM visits"
        if rng.random() < 0.3:
            text += f" WHERE {rng.choice(CONDITIONS)}"
        yield f"{text} GROUP BY {key}" if key else text


def list_rows(prefix: str = "visits") -> list[Row]:
    """Every row there can be."""
    names = list(VALUES)
    return [
        {f"{prefix}.patient": 1, **{f"{prefix}.{n}": v for n, v in zip(names, values, strict=True)}}
        for values in product(*VALUES.values())
    ]


def list_units(rows: list[Row], most: int, key: str) -> Iterator[tuple[Row, ...]]:
    """Every unit of at most so many rows, which agree on the column ``key``."""
    for home in {row[key] for row in rows}:
        own = [row for row in rows if row[key] == home]
        for count in range(most + 1):
            yield from combinations_with_replacement(own, count)


def brute_force(priced: Priced, most: int, *, change_one: bool = False) -> tuple[float, float]:
    """The most that one unit loses, in epsilon and, where all noise is Gaussian, in rho."""
    relation, conditions = priced.plan.source, []
    while isinstance(relation, Filter):
        conditions.append(relation.predicate)
        relation = relation.source
    rows = [r for r in list_rows() if all(evaluate(c, r) is True for c in conditions)]
    # Rows that move the same alike are one row: there are far fewer of those.
    alike: dict[Any, Row] = {}
    for row in rows:
        alike.setdefault((row["visits.home"], repr(_sort(find_vector(priced, (row,))))), row)
    units = {
        repr(_sort(v)): v
        for unit in list_units(list(alike.values()), most, "visits.home")
        if (v := find_vector(priced, unit)) is not None
    }
    units["none"] = Counter()
    vectors = list(units.values())
    others = vectors if change_one else [Counter()]
    return max(
        (weigh(priced, one, other) for one in vectors for other in others),
        key=lambda loss: loss[0] + loss[1],
    )


def _sort(vector: Vector) -> list[Any]:
    return sorted((repr(k), n) for k, n in vector.items() if n)


def weigh(priced: Priced, one: Vector, other: Vector) -> tuple[float, float]:
    """What is lost between two vectors that differ by one unit."""
    epsilon = rho = 0.0
    moved: dict[int, list[int]] = {}
    for place in one.keys() | other.keys():
        gap = abs(one[place] - other[place])
        if gap:
            moved.setdefault(place[0], []).append(gap)
    for index, gaps in moved.items():
        match priced.mechanisms[index]:
            case Laplace(scale=scale):
                epsilon += sum(gaps) / float(scale)
            case Staircase() as steps:
                epsilon += float(steps.loss.epsilon)
            case Gaussian(sigma_squared=spread):
                rho += sum(gap**2 for gap in gaps) / (2 * float(spread))
            case other_kind:
                raise TypeError(other_kind)
    return epsilon, rho


def find_vector(priced: Priced, unit: tuple[Row, ...]) -> Vector:
    """What a unit's rows add to every measurement, by (measurement, group, entry)."""
    found: Vector = Counter()
    plan = priced.plan
    for index, measurement in enumerate(plan.measurements):
        groups: dict[Any, list[Row]] = {}
        for row in unit:
            if measurement.condition is None or evaluate(measurement.condition, row) is True:
                groups.setdefault(tuple(evaluate(k.expression, row) for k in plan.keys), []).append(
                    row
                )
        for group, rows in groups.items():
            for entry, amount in enumerate(_measure(measurement, rows)):
                found[index, group, entry] += amount
    return found


def _measure(measurement: Measurement, rows: list[Row]) -> list[int]:
    match measurement:
        case Units():
            return [1]
        case DistinctValues(expression=expression):
            return [len({v for row in rows if (v := evaluate(expression, row)) is not None})]
        case Sum(variable=variable):
            steps = [_steps(variable, row) for row in rows]
            return [sum(variable.low + u for u in steps if u is not None)]
        case Moments():
            return [
                sum(entry)
                for entry in zip(*(_row_moments(measurement, r) for r in rows), strict=True)
            ]
        case GroupTotal() | GroupSum():
            raise TypeError(measurement)
    raise TypeError(measurement)


def _row_moments(moments: Moments, row: Row) -> list[int]:
    steps = [_steps(v, row) for v in moments.variables]
    inner = prod(d + 1 for d in moments.degrees)
    if any(u is None for u in steps):
        return [0] * inner + ([moments.weight] if moments.counts_null else [])
    parts = [
        [comb(d, j) * u**j * (v.span - u) ** (d - j) for j in range(d + 1)]
        for v, d, u in zip(moments.variables, moments.degrees, steps, strict=True)
        if u is not None
    ]
    return [prod(entry) for entry in product(*parts)] + ([0] if moments.counts_null else [])


def _steps(variable: Any, row: Row) -> int | None:
    value = evaluate(variable.expression, row)
    if value is None:
        return None
    return min(max(round(Fraction(value) / variable.grid) - variable.low, 0), variable.span)


__all__ = ["brute_force", "make_schema", "write_statements"]
