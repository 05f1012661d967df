"""What is public: tables, columns, bounds, allowed values, and who one person is.

Everything in a schema may be read by the analyst.  Nothing in it is believed of
the data: the engine enforces each declaration row by row.
"""

from __future__ import annotations

from discreet.accounting.neighbours import Neighbours
from discreet.question.schema.schema import Schema, SchemaFile
from discreet.question.schema.tables import ROW, Column, Crowding, Owners, Table

__all__ = [
    "ROW",
    "Column",
    "Crowding",
    "Neighbours",
    "Owners",
    "Schema",
    "SchemaFile",
    "Table",
]
