"""Small tables with dependent columns, the same every time."""

from __future__ import annotations

import itertools

import numpy as np

from discreet.publication import Column

COLUMNS = (
    Column("age", 40, ordered=True, null=True),
    Column("job", 12),
    Column("grade", 6, ordered=True),
    Column("city", 9),
    Column("sick", 2),
)


def people(count: int = 20_000, seed: int = 5) -> np.ndarray:
    """Codes of rows: age and job depend, grade follows job, sickness follows age, city nobody."""
    draw = np.random.default_rng(seed)
    age = np.clip(draw.gamma(4, 4, count), 0, 38).astype(np.int64)
    job = np.where(age < 9, 0, (age // 4 + draw.geometric(0.5, count)) % 12)
    grade = np.clip(job // 2 + draw.integers(-1, 2, count), 0, 5)
    city = np.minimum(draw.geometric(0.35, count) - 1, 8)
    sick = (draw.random(count) < 0.05 + age / 60).astype(np.int64)
    missing = draw.random(count) < 0.06
    return np.stack([np.where(missing, 39, age), job, grade, city, sick], axis=1)


def count_cells(rows: np.ndarray, columns: tuple[int, ...], sizes: list[int]) -> np.ndarray:
    index = np.zeros(len(rows), dtype=np.int64)
    for column in columns:
        index = index * sizes[column] + rows[:, column]
    shape = [sizes[column] for column in columns]
    return np.bincount(index, minlength=int(np.prod(shape))).reshape(shape)


def mean_variation(one: np.ndarray, other: np.ndarray, sizes: list[int], ways: int) -> float:
    """The mean total variation of all marginals of so many columns."""
    return float(
        np.mean(
            [
                np.abs(
                    count_cells(one, those, sizes) / len(one)
                    - count_cells(other, those, sizes) / len(other)
                ).sum()
                / 2
                for those in itertools.combinations(range(len(sizes)), ways)
            ]
        )
    )
