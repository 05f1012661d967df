"""The two tables of a ledger, the same in SQLite and in PostgreSQL."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

metadata = MetaData()

_NUMBER = BigInteger().with_variant(Integer, "sqlite")

records = Table(
    "records",
    metadata,
    Column("sequence", _NUMBER, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("analyst", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("digest", Text, nullable=False),
    # The state of a question is its subject's last record: one step in this index.
    Index("records_by_subject", "subject", "sequence"),
)
"""Append-only; each row holds the digest of the one before."""

answers = Table(
    "answers",
    metadata,
    Column(
        "record", _NUMBER, ForeignKey("records.sequence"), primary_key=True, autoincrement=False
    ),
    Column("body", LargeBinary, nullable=False),
)
"""What was published; the digest of each is in its record, and so in the chain."""
