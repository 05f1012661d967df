"""What a curator is opened with: tables, a schema and a budget, in whichever form they come."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.accounting.budget import Budget
from discreet.errors import InvalidParameter, quote_value
from discreet.exact.numbers import Exact, fraction
from discreet.question.schema import Schema

Declared = Schema | str | os.PathLike[str] | Mapping[str, Any]
"""A schema, or where or how it is written."""


def check_tables(tables: object) -> None:
    """Refuse what does not name its tables."""
    if not isinstance(tables, Mapping):
        raise InvalidParameter(
            "P4",
            f"the tables are a {type(tables).__name__}, not a dict.",
            why="a question names the table it is about.",
            fix="pass {'visits': 'visits.parquet'}: each table's name and its source.",
        )


def read_schema(given: Declared) -> Schema:
    """The schema that was given: as it is, as a text, as a path, or as a dict."""
    if isinstance(given, Schema):
        return given
    if isinstance(given, str) and ("\n" in given or "=" in given):
        return Schema.from_text(given)
    if isinstance(given, str | os.PathLike):
        return Schema.from_toml(Path(given))
    if isinstance(given, Mapping):
        return Schema.from_dict(given)
    raise InvalidParameter(
        "P4",
        f"the schema is a {type(given).__name__}.",
        why="without a schema nobody has said who is to be protected.",
        fix="pass discreet.Schema, the text or the path of a discreet.toml, or a dict of its "
        "shape.",
    )


class MayBeOnePerson(UserWarning):
    """Two tables that may be about the same people are declared to be about different ones."""


def warn_of_doubts(schema: Schema) -> None:
    """Say what a schema may not have meant."""
    for doubt in schema.list_doubts():
        warnings.warn(doubt, MayBeOnePerson, stacklevel=3)


def read_budget(given: Budget | Exact) -> Budget:
    """The budget that was given; a number is its epsilon."""
    if isinstance(given, Budget):
        return given
    if given is None or isinstance(given, bool):
        raise InvalidParameter(
            "P4",
            f"the budget is {given}.",
            why="without a budget nothing limits what the people in the data lose.",
            fix="pass discreet.Budget(epsilon=3, delta='1e-9'), or a number such as budget=3.",
        )
    try:
        number = fraction(given, name="budget")
    except InvalidParameter as refusal:
        raise InvalidParameter(
            refusal.code,
            f"the budget is {quote_value(given)}, which is no number.",
            why="without a budget nothing limits what the people in the data lose.",
            fix="pass discreet.Budget(epsilon=3, delta='1e-9'), or a number such as budget=3.",
        ) from None
    return Budget(epsilon=number)
