"""PostgreSQL as an engine: plans are computed where the rows are, and only integers come back."""

from discreet.engine.postgres.engine import PostgresEngine

__all__ = ["PostgresEngine"]
