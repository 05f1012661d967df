"""Tables that nothing was tuned to, drawn by a law that is written here: the same rows everywhere.

Three shapes: columns that follow from each other and are skewed, columns that have almost nothing
to do with each other, and columns each of which depends on two others.
"""

from __future__ import annotations

import numpy as np

Coded = tuple[list[int], np.ndarray]


def draw_contracts(rows: int = 15_000, seed: int = 29) -> Coded:
    """Nine columns, numbers and names: some are functions of others, most are skewed."""
    draw = np.random.default_rng(seed)
    district = _draw_ranked(draw, rows, 36, 1.1)
    region = draw.integers(0, 7, 36)[district]
    product = (_draw_ranked(draw, rows, 14, 0.9) + 3 * region * (draw.random(rows) < 0.5)) % 14
    tariff = draw.permutation(14)[product] // 3
    years = np.minimum(draw.geometric(0.07 + 0.03 * (tariff % 3)) - 1, 49)
    risk = 0.05 + 0.12 * tariff + 0.015 * np.minimum(years, 20)
    claims = np.minimum(draw.poisson(risk), 6)
    watched = (claims >= 3).astype(np.int64)
    channel = np.where(years > 12, 0, 1 + _draw_ranked(draw, rows, 4, 0.7))
    premium = np.clip(4 * tariff + claims + draw.integers(-2, 3, rows), 0, 24)
    sizes = [36, 7, 14, 5, 50, 7, 2, 5, 25]
    found = [district, region, product, tariff, years, claims, watched, channel, premium]
    return sizes, np.stack(found, axis=1).astype(np.int64)


def draw_habits(rows: int = 30_000, seed: int = 30) -> Coded:
    """Eight columns, nearly independent: a hidden half of the people leans a little elsewhere."""
    draw = np.random.default_rng(seed)
    sizes = [3, 20, 7, 2, 11, 5, 16, 4]
    leaning = draw.random(rows) < 0.5
    found = []
    for size in sizes:
        usual = draw.dirichlet(np.full(size, 0.8))
        other = 0.9 * usual + 0.1 * draw.dirichlet(np.full(size, 0.8))
        codes = [draw.choice(size, rows, p=law / law.sum()) for law in (usual, other)]
        found.append(np.where(leaning, codes[0], codes[1]))
    return sizes, np.stack(found, axis=1).astype(np.int64)


def draw_census(rows: int = 20_000, seed: int = 18) -> Coded:
    """Eight columns, each given up to two earlier ones."""
    draw = np.random.default_rng(seed)
    sizes = {"age": 9, "sex": 2, "region": 12, "schooling": 6, "work": 10, "tenure": 4}
    sizes |= {"household": 5, "income": 8}
    parents = {"schooling": ("age", "sex"), "work": ("schooling", "region")}
    parents |= {"tenure": ("age", "region"), "household": ("age",), "income": ("work", "sex")}
    found: dict[str, np.ndarray] = {}
    for name, size in sizes.items():
        given, combinations = np.zeros(rows, dtype=np.int64), 1
        for parent in parents.get(name, ()):
            given = given * sizes[parent] + found[parent]
            combinations *= sizes[parent]
        laws = draw.dirichlet(np.full(size, 0.6), size=combinations).cumsum(axis=1)
        found[name] = np.minimum((draw.random(rows)[:, None] > laws[given]).sum(axis=1), size - 1)
    return list(sizes.values()), np.stack(list(found.values()), axis=1)


def _draw_ranked(draw: np.random.Generator, rows: int, size: int, power: float) -> np.ndarray:
    """Levels whose shares fall like a power of their rank, in no order."""
    shares = np.arange(1, size + 1) ** -power
    return draw.permutation(size)[draw.choice(size, rows, p=shares / shares.sum())]
