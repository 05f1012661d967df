"""The data: run an exact plan, return integers; one file per idea, DuckDB beneath.

``sources`` (where tables come from), ``declared`` (a table read through its
declaration and bounded), ``render`` (a relation as SQL), ``measure`` (a plan as
one statement, and its result as integers), ``prepared`` (bounded once, kept),
``duckdb`` (the locked-down connection that runs it all).
"""

from discreet.engine.duckdb.engine import DuckDBEngine

__all__ = ["DuckDBEngine"]
