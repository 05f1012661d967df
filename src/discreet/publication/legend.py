"""What ``measurements.parquet`` says of itself, so that it can be read without anything beside it.

JSON under one key of the file's metadata: the levels of every column in words, what each stage was
charged, and which tables or answers follow from the draws.  docs/publication.md has the format and
a reader.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.exact.numbers import canonical_json
from discreet.publication.hierarchy import follow_totals
from discreet.publication.measure import Combinations
from discreet.publication.outline import find_totals, list_questions, plant_tree

if TYPE_CHECKING:
    from discreet.publication.folder import Made

KEY = b"discreet"
FORMAT = "discreet measurements"


def write_legend(made: Made) -> bytes:
    """The legend of the measurements of a release, the same bytes every time."""
    return canonical_json(make_legend(made)).encode()


def make_legend(made: Made) -> dict[str, Any]:
    """What a reader needs beside the draws."""
    declared, levels = made.declared, made.levels
    modelled = made.product.rows is not None
    return {
        "format": FORMAT,
        "version": 1,
        "release": declared.name,
        "kind": declared.kind,
        "modelled": modelled,
        "unit": made.promise.unit,
        "neighbours": made.promise.neighbours,
        "rows_per_unit": made.promise.rows_per_unit,
        "stages": [
            {
                "name": stage.name,
                "kind": stage.spend.kind.value,
                "amount": str(stage.spend.amount),
            }
            for stage in made.stages
        ],
        "columns": [
            {"name": one.name, "words": [one.describe(level) for level in range(one.size)]}
            for one in levels
        ],
        "results": [] if modelled else [*_list_tables(made), *_list_answers(made)],
        "totals": _list_totals(made) if declared.kind == "hierarchy" else [],
    }


def _list_tables(made: Made) -> list[dict[str, Any]]:
    """Every table: its columns, the cells that it is made of, and of a tree the node of each."""
    names = [one.name for one in made.levels]
    tree = plant_tree(made.declared, made.levels) if made.declared.kind == "hierarchy" else None
    return [
        {
            "name": table.name,
            "columns": [names[column] for column in table.columns],
            "shape": list(table.values.shape),
            "levels": None if table.places is None else table.places.tolist(),
            "cells": _list_cells(made, table.columns if tree is None else (0,)),
            "map": None if tree is None else tree.levels[depth].tolist(),
            "weights": None,
        }
        for depth, table in enumerate(made.product.tables)
    ]


def _list_cells(made: Made, columns: Sequence[int]) -> list[list[Any]]:
    """The columns that are estimated together, with how many levels each has."""
    return [[made.product.columns[one].name, made.product.columns[one].size] for one in columns]


def _list_totals(made: Made) -> list[list[int]]:
    """What is public of a tree, and what follows from it: table, node, count."""
    declared, levels = made.declared, made.levels
    known = follow_totals(plant_tree(declared, levels), find_totals(declared, levels))
    return [[level, node, total] for (level, node), total in sorted(known.items())]


def _list_answers(made: Made) -> list[dict[str, Any]]:
    """Every question in words, with how much a row counts, level by level of each column."""
    if made.declared.kind != "questions":
        return []
    first = made.product.measured["questions"][0].query
    joint = first.view.columns if isinstance(first, Combinations) else None
    found = []
    for text, question in list_questions(made.declared, made.levels):
        own = dict(zip(question.columns, question.weights, strict=True))
        columns = question.columns if joint is None else joint
        weights = [own.get(one, np.ones(made.product.columns[one].size)) for one in columns]
        found.append(
            {
                "name": text,
                "columns": [],
                "shape": [],
                "levels": None,
                "cells": _list_cells(made, columns),
                "map": None,
                "weights": [one.tolist() for one in weights],
            }
        )
    return found


__all__ = ["FORMAT", "KEY", "make_legend", "write_legend"]
