"""Trees of places from a public table: block, county, state; with codes that repeat within parents.

A hierarchy counts on every combination of its columns, unless a public table lists the places that
there are.  The columns that the people's rows have say where a row is: its block alone, or its
state, county and block, whose codes may mean something only within their parents.  What is above
them is looked up.  A row whose place is not listed is counted as being elsewhere, which
is the last leaf: every row is somewhere, whatever it says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.errors import InvalidParameter
from discreet.publication.hierarchy import Hierarchy
from discreet.publication.measure import Integers
from discreet.question.domain import Kind
from discreet.question.levels import Levels

MOST_PLACES = 10**6


def read_tree(
    rows: Mapping[str, Sequence[Any]], by: Sequence[str], table: str
) -> tuple[tuple[str, ...], ...]:
    """The places of a public table, each with its path from the top, in words.

    >>> read_tree({"land": ["S", "N"], "town": ["ayr", "oban"]}, ["land", "town"], "places")
    (('N', 'oban'), ('S', 'ayr'))
    """
    missing = [name for name in by if name not in rows]
    if missing:
        raise _make_refusal(
            f"the public table {table!r} has no column {missing[0]!r}.",
            f"name columns that it has, from the top down: {', '.join(rows)}.",
        )
    listed = [rows[name] for name in by]
    paths = {
        tuple(map(str, path))
        for path in zip(*listed, strict=True)
        if all(p is not None for p in path)
    }
    if not 0 < len(paths) <= MOST_PLACES:
        raise _make_refusal(
            f"the public table {table!r} lists no place, or more than {MOST_PLACES:,}.",
            "list every place once, with what it lies in.",
        )
    return tuple(sorted(paths))


def show_levels(
    tree: Sequence[Sequence[str]], by: Sequence[str], coded: Sequence[Levels]
) -> tuple[Levels, ...]:
    """The columns of a tree: those that rows have, and those that are looked up."""
    own = {one.name: one for one in coded}
    if by[-1] not in own:
        raise _make_refusal(
            f"no row says in which {by[-1]!r} it is.",
            "end the path with a column of the people's table.",
        )
    elsewhere = _is_open(tree, by, coded)
    found = []
    for depth, name in enumerate(by):
        if name in own:
            found.append(replace(own[name], nullable=own[name].nullable or elsewhere))
        else:
            words = tuple(dict.fromkeys(path[depth] for path in tree))
            found.append(Levels(name, Kind.TEXT, len(words), elsewhere, words))
    _check_unique(tree, by, coded)
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """A tree of listed places."""

    hierarchy: Hierarchy
    codes: tuple[Integers, ...]
    """For each depth from the first, the level of every node in each column down to it."""

    @classmethod
    def of(cls, tree: Sequence[Sequence[str]], levels: Sequence[Levels]) -> Places:
        """The tree of listed places, and the one for what lies elsewhere, if there can be such."""
        places = [{one.describe(k): k for k in range(one.count)} for one in levels]
        try:
            paths = [
                tuple(known[word] for known, word in zip(places, path, strict=True))
                for path in tree
            ]
        except (KeyError, ValueError):
            raise _make_refusal(
                "the tree lists a place that the column's declared values have not.",
                "declare as values what the public table lists, or leave the place out of it.",
            ) from None
        if levels[0].nullable:
            paths.append(tuple(one.count for one in levels))
        hierarchy = Hierarchy.of(paths)
        codes = []
        for depth in range(1, len(levels) + 1):
            nodes = np.zeros((depth, hierarchy.counts[depth]), dtype=np.int64)
            nodes[:, hierarchy.levels[depth]] = np.array([path[:depth] for path in paths]).T
            codes.append(nodes)
        return cls(hierarchy, tuple(codes))


def find_leaves(
    tree: Sequence[Sequence[str]],
    by: Sequence[str],
    coded: Sequence[Levels],
    codes: Sequence[Any],
) -> Integers:
    """The leaf of every row, from the codes of the columns that rows have."""
    known = _keys(tree, by, coded)
    order = np.argsort(known, kind="stable")
    rows = np.zeros(len(codes[0]), dtype=np.int64)
    for one, code in zip(coded, codes, strict=True):
        rows = rows * (one.size + 1) + code
    found = np.searchsorted(known[order], rows)
    found = np.minimum(found, len(order) - 1)
    leaf = order[found]
    return np.where(known[leaf] == rows, leaf, len(tree)).astype(np.int64)


def _keys(tree: Sequence[Sequence[str]], by: Sequence[str], coded: Sequence[Levels]) -> Integers:
    """One number for what rows say of each listed place; what no row can say has its own."""
    keys = np.zeros(len(tree), dtype=np.int64)
    for one in coded:
        depth = list(by).index(one.name)
        words = {one.describe(k): k for k in range(one.count)}
        said = [words.get(path[depth], one.size) for path in tree]
        keys = keys * (one.size + 1) + np.array(said, dtype=np.int64)
    return keys


def _is_open(tree: Sequence[Sequence[str]], by: Sequence[str], coded: Sequence[Levels]) -> bool:
    """Whether a row can be where no listed place is."""
    if len(coded) > 1 or coded[0].nullable:
        return True
    words = {path[list(by).index(coded[0].name)] for path in tree}
    return any(coded[0].describe(level) not in words for level in range(coded[0].count))


def _check_unique(
    tree: Sequence[Sequence[str]], by: Sequence[str], coded: Sequence[Levels]
) -> None:
    if any(one.values is None and one.count > 10**5 for one in coded):
        raise _make_refusal(
            "a column of places has too many values.", "declare the values that it has."
        )
    size = 1
    for one in coded:
        size *= one.size + 1
    if size >= 2**62 or len(np.unique(_keys(tree, by, coded))) < len(tree):
        raise _make_refusal(
            "two listed places cannot be told apart by what rows say.",
            "use codes that are unique, or give the people's rows the columns above them too.",
        )


def _make_refusal(what: str, fix: str) -> InvalidParameter:
    return InvalidParameter(
        "P4",
        what,
        why="a row is counted in one place, and in all that this place lies in.",
        fix=fix,
    )


__all__ = ["Places", "find_leaves", "read_tree", "show_levels"]
