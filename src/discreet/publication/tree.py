"""The junction tree: cliques of columns, and exact inference on them in logarithms.

A model is a log-linear law over the columns' bins.  Cliques hang on a tree;
each has its own table whose first axes are those it shares with its parent.
Upwards, each clique is normalised given what it shares, row by row, with the
row's own maximum taken out first: masses of 10**-300 beside masses of one lose
nothing.  Downwards, the parent's marginal multiplies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.errors import InvalidParameter
from discreet.publication.measure import Doubles

Clique = frozenset[int]


@dataclass(frozen=True, slots=True)
class Limits:
    """How many cells the largest clique may have, and all of them together."""

    largest: float = 2.5e5
    together: float = 1.25e6


def add_edge(neighbours: Sequence[set[int]], pair: tuple[int, int]) -> list[set[int]]:
    """The graph with one more edge."""
    grown = [set(those) for those in neighbours]
    grown[pair[0]].add(pair[1])
    grown[pair[1]].add(pair[0])
    return grown


def eliminate(neighbours: Sequence[set[int]], sizes: Sequence[int]) -> list[Clique]:
    """The maximal cliques of a triangulation: always remove the column with the smallest clique."""
    graph = {column: set(those) for column, those in enumerate(neighbours)}
    weights = [float(np.log(size)) for size in sizes]
    heavy = {
        column: weights[column] + sum(weights[other] for other in those)
        for column, those in graph.items()
    }
    cliques: list[Clique] = []
    while graph:
        column = min(heavy, key=lambda one: (heavy[one], one))
        those = graph.pop(column)
        del heavy[column]
        clique = frozenset(those | {column})
        if not any(clique <= other for other in cliques):
            cliques.append(clique)
        for one in those:
            graph[one] |= those
            graph[one] -= {one, column}
            heavy[one] = weights[one] + sum(weights[other] for other in graph[one])
    return cliques


def clique_size(clique: Iterable[int], sizes: Sequence[int]) -> float:
    """How many cells a clique's table has."""
    return float(np.prod([float(sizes[column]) for column in clique]))


def within_limits(cliques: Sequence[Clique], sizes: Sequence[int], limits: Limits) -> bool:
    """Whether a tree of these cliques is small enough."""
    cells = [clique_size(clique, sizes) for clique in cliques]
    return max(cells) <= limits.largest and sum(cells) <= limits.together


@dataclass(frozen=True, slots=True)
class Node:
    """One clique in the tree: its columns, first those shared with the parent."""

    columns: tuple[int, ...]
    shared: int
    parent: int


class JunctionTree:
    """Cliques in an order in which every parent comes first; forests hang on empty overlaps."""

    def __init__(self, sizes: Sequence[int], cliques: Sequence[Clique]) -> None:
        self.sizes = tuple(sizes)
        self.nodes = _hang(self.sizes, cliques)
        covered = {column for node in self.nodes for column in node.columns}
        if covered != set(range(len(self.sizes))):
            raise InvalidParameter(
                "P4",
                "some column is in no clique of the tree.",
                why="a law over the columns must say something of each.",
                fix="pass a clique of its own for it.",
            )
        self.shapes = [tuple(self.sizes[column] for column in node.columns) for node in self.nodes]

    def home(self, columns: Iterable[int]) -> int:
        """The smallest clique that holds all of these columns."""
        wanted = set(columns)
        homes = [place for place, node in enumerate(self.nodes) if wanted <= set(node.columns)]
        if not homes:
            raise InvalidParameter(
                "P4",
                "these columns are not together in any clique.",
                why="their joint table is not part of the model.",
                fix="add an edge between them before the tree is made.",
            )
        return min(homes, key=lambda place: clique_size(self.nodes[place].columns, self.sizes))

    def spread(self, table: Doubles, columns: Sequence[int], place: int) -> Doubles:
        """A table over some columns, shaped so that it broadcasts over a clique's."""
        node = self.nodes[place].columns
        order = sorted(range(len(columns)), key=lambda axis: node.index(columns[axis]))
        wide = [self.sizes[column] if column in columns else 1 for column in node]
        return np.transpose(table, order).reshape(wide)

    def marginal(self, beliefs: Sequence[Doubles], columns: Sequence[int], place: int) -> Doubles:
        """The marginal on some columns, in their order, from a clique's belief."""
        node = self.nodes[place].columns
        others = tuple(axis for axis, column in enumerate(node) if column not in columns)
        table = beliefs[place].sum(axis=others) if others else beliefs[place]
        left = [column for column in node if column in columns]
        return np.asarray(np.transpose(table, [left.index(column) for column in columns]))

    def infer(self, logs: list[Doubles]) -> tuple[list[Doubles], float]:
        """Beliefs (probabilities of every clique's cells) and log Z; ``logs`` is used up."""
        beliefs: list[Doubles] = [np.empty(0)] * len(logs)
        log_z = 0.0
        for place in range(len(logs) - 1, -1, -1):
            node, shape = self.nodes[place], self.shapes[place]
            rows = int(np.prod(shape[: node.shared], dtype=np.int64))
            table = logs[place].reshape(rows, -1)
            top = table.max(axis=1, keepdims=True)
            top[~np.isfinite(top)] = 0.0
            np.exp(np.subtract(table, top, out=table), out=table)
            sums = table.sum(axis=1, keepdims=True)
            np.divide(table, sums, out=table, where=sums > 0)
            with np.errstate(divide="ignore"):
                message = (top + np.log(sums)).reshape(shape[: node.shared])
            beliefs[place] = table.reshape(shape)
            if node.parent < 0 or node.shared == 0:
                log_z += float(message.sum())
            else:
                shared = node.columns[: node.shared]
                logs[node.parent] += self.spread(message, shared, node.parent)
        for place, node in enumerate(self.nodes):
            if node.parent >= 0 and node.shared:
                above = self.marginal(beliefs, node.columns[: node.shared], node.parent)
                wide = above.reshape(above.shape + (1,) * (len(node.columns) - node.shared))
                np.multiply(beliefs[place], wide, out=beliefs[place])
        return beliefs, log_z


def _hang(sizes: Sequence[int], cliques: Sequence[Clique]) -> list[Node]:
    """A maximum spanning tree of overlaps (Prim), which has the running-intersection property."""
    root = max(range(len(cliques)), key=lambda place: clique_size(cliques[place], sizes))
    order, parents = [root], {root: -1}
    best = {
        place: (len(cliques[place] & cliques[root]), root)
        for place in range(len(cliques))
        if place != root
    }
    while best:
        place = max(best, key=lambda one: (best[one][0], -one))
        _, parent = best.pop(place)
        parents[place] = parent
        order.append(place)
        for other, (known, _) in best.items():
            shared = len(cliques[other] & cliques[place])
            if shared > known:
                best[other] = (shared, place)
    rank = {place: position for position, place in enumerate(order)}
    nodes = []
    for place in order:
        parent = parents[place]
        common = sorted(cliques[place] & cliques[parent]) if parent >= 0 else []
        rest = sorted(cliques[place] - set(common))
        nodes.append(Node((*common, *rest), len(common), rank[parent] if parent >= 0 else -1))
    return nodes


def log_product(tree: JunctionTree, shares: Mapping[int, Doubles]) -> list[Doubles]:
    """The logarithm of a product law, each column's share put into one clique."""
    logs = [np.zeros(shape) for shape in tree.shapes]
    with np.errstate(divide="ignore"):
        for column, masses in shares.items():
            place = tree.home([column])
            logs[place] = logs[place] + tree.spread(np.log(masses), [column], place)
    return logs
