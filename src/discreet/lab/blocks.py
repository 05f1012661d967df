"""Published tables of small blocks: solved for the only rows that fit them.

Blocks of people whose cross-tabulations are printed exactly are the people in them, as was shown
of the census of 2010 (Abowd and others 2023).  A SAT solver finds rows that fit and proves that no
others do; of noisy tables an integer program (HiGHS) finds the nearest.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa

from discreet.accounting.budget import Budget
from discreet.accounting.meaning import Worlds
from discreet.lab.clauses import Clauses
from discreet.lab.dice import Dice, Whole
from discreet.lab.outcome import Outcome
from discreet.lab.target import Ours
from discreet.question.schema import Schema

VALUES = (2, 3, 2)
"""Sex, age group and status of the people in a block, in the tables that are published."""
_PAIRS = ((0, 1), (0, 2), (1, 2))
"""The tables of two columns that are published."""
_SCHEMA = Schema.from_text("""
[tables.people]
unit = "id"
max_rows_per_unit = 1
[tables.people.columns]
id = { type = "integer", bounds = [0, 999999] }
block = { type = "integer", bounds = [0, 9999] }
c0 = { type = "integer", bounds = [0, 1] }
c1 = { type = "integer", bounds = [0, 2] }
c2 = { type = "integer", bounds = [0, 1] }
""")


@dataclass(frozen=True, slots=True)
class Block:
    """What is published of a block of people: all tables of two columns."""

    people: int
    tables: dict[tuple[int, int], Whole]

    @classmethod
    def publish(cls, rows: Whole) -> Block:
        """The tables of ``rows``, one person a row; exact."""
        tables = {}
        for a, b in _PAIRS:
            table = np.zeros((VALUES[a], VALUES[b]), dtype=np.int64)
            np.add.at(table, (rows[:, a], rows[:, b]), 1)
            tables[a, b] = table
        return cls(len(rows), tables)

    def list_sums(self) -> list[tuple[list[int], int]]:
        """Each published number, with the places of the cells that it is the sum of."""
        cells = list(np.ndindex(*VALUES))
        return [
            ([n for n, cell in enumerate(cells) if cell[a] == i and cell[b] == j], int(table[i, j]))
            for (a, b), table in self.tables.items()
            for i, j in np.ndindex(*table.shape)
        ]


def find_fitting(block: Block) -> list[Whole]:
    """Up to two contingency tables that fit what was published, by a SAT solver.

    If there is only one, the solver has proved that there is no other: the block is reconstructed,
    and nobody in it has a secret left.
    """
    clauses, sums = Clauses(), block.list_sums()
    count = int(np.prod(VALUES))
    most = [min(total for places, total in sums if n in places) for n in range(count)]
    # Of each cell, whether at least 1, 2, ... people are in it.
    held = [clauses.make_number(limit) for limit in most]
    for number in held:
        for few, many in pairwise(number):
            clauses.add(few, -many)
    for places, total in sums:
        clauses.require([literal for n in places for literal in held[n]], total, total)
    ends = np.cumsum([0, *most])
    return [
        np.array([sum(values[a:b]) for a, b in pairwise(ends)])
        for values in clauses.find([literal for number in held for literal in number])
    ]


def find_nearest(block: Block) -> Whole:
    """The contingency table whose sums are least far from noisy ones, by integer programming."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    sums = block.list_sums()
    known, cells = len(sums), int(np.prod(VALUES))
    matrix, slack = np.zeros((known, cells)), np.eye(known)
    for row, (places, _) in zip(matrix, sums, strict=True):
        row[places] = 1
    heard = np.array([total for _, total in sums], dtype=float)
    found = milp(
        np.concatenate([np.zeros(cells), np.ones(2 * known)]),
        constraints=LinearConstraint(np.hstack([matrix, slack, -slack]), heard, heard),
        integrality=np.concatenate([np.ones(cells), np.zeros(2 * known)]),
        bounds=Bounds(0, np.inf),
    )
    point: Whole = np.rint(found.x[:cells]).astype(np.int64)
    return point


def _make_block(dice: Dice, people: int) -> Whole:
    return np.stack([dice.below(k, people) for k in VALUES], axis=1)


def attack_blocks(blocks: int, people: int) -> Outcome:
    """How many small blocks have only one table that fits what is published of them."""
    dice = Dice("blocks")
    solved = 0
    for _ in range(blocks):
        solved += len(find_fitting(Block.publish(_make_block(dice, people)))) == 1
    name = f"tables of two columns, exact, blocks of {people}"
    return Outcome("solving published tables", name, solved, blocks, 0.0)


def attack_noisy_blocks(blocks: int, people: int, epsilon: str) -> Outcome:
    """The same tables from the curator, with a whole budget for each block: the nearest rows.

    Who knows everybody else in the block knows the last row if all rows are right: so all are at
    most as often as the one of twelve rows that was as likely as any other.
    """
    dice = Dice("blocks")
    rows = [_make_block(dice, people) for _ in range(blocks)]
    every = np.concatenate(rows)
    bits = {f"c{j}": every[:, j] for j in range(len(VALUES))}
    block = np.repeat(np.arange(blocks), people)
    tables = {"people": pa.table({"id": np.arange(len(every)), "block": block, **bits})}
    price = _share(Fraction(epsilon))
    right = 0
    with Ours(tables, schema=_SCHEMA, budget=Budget(epsilon=epsilon), epsilon=price) as target:
        for number, truth in enumerate(rows):
            target.renew()
            found = find_nearest(
                Block(people, {pair: _ask_table(target, number, pair) for pair in _PAIRS})
            )
            cells = np.zeros(VALUES, dtype=np.int64)
            np.add.at(cells, tuple(truth.T), 1)
            right += bool(np.array_equal(found, cells.ravel()))
    kinds = int(np.prod(VALUES))
    bound = float(Worlds(Fraction(epsilon), steps=2).posterior(Fraction(1, kinds))[1])
    return Outcome(
        "solving published tables", f"discreet, ε = {epsilon}", right, blocks, 1 / kinds, bound
    )


def _share(epsilon: Fraction) -> str:
    """What each table may cost."""
    return str(epsilon / len(_PAIRS))


def _ask_table(target: Ours, block: int, pair: tuple[int, int]) -> Whole:
    a, b = pair
    table = np.zeros((VALUES[a], VALUES[b]), dtype=np.int64)
    for i, j, count in target.ask(
        f"SELECT c{a}, c{b}, COUNT(*) AS n FROM people WHERE block = {block} GROUP BY c{a}, c{b}"  # noqa: S608
    ):
        if i is not None and j is not None:
            table[int(i), int(j)] = int(count)
    return table


__all__ = [
    "VALUES",
    "Block",
    "attack_blocks",
    "attack_noisy_blocks",
    "find_fitting",
    "find_nearest",
]
