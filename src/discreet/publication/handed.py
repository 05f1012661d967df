"""Parquet files that somebody handed over: read only if they are as small as they should be.

A small file may say that it holds more than there is room for: one long text that a million rows
refer to takes a few kilobytes.  So nothing is spread out before it was added up.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

_OVERHEAD = 2**24
"""Bytes of what a file says beside its values."""


class TooLarge(ValueError):
    """A file that says that it holds more than it may."""


def read_parquet(file: Path, *, most_values: int, most_bytes: int) -> Any:
    """The Arrow table in ``file``, of at most so many values, and so many bytes of texts."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(file) as held:
        told = held.metadata
        groups = [told.row_group(place) for place in range(told.num_row_groups)]
        chunks = [one.column(place) for one in groups for place in range(one.num_columns)]
        values = sum(chunk.num_values for chunk in chunks)
        if values > most_values:
            raise TooLarge(f"it says that it holds {values:,} numbers.")
        size = sum(chunk.total_uncompressed_size for chunk in chunks)
        leaves = [told.schema.column(place) for place in range(told.num_columns)]
        texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    if size > 2 * most_bytes + 16 * values + _OVERHEAD:
        raise TooLarge(f"it says that it holds {size:,} bytes.")
    with pq.ParquetFile(file, read_dictionary=texts) as held:  # each text once
        table = held.read()
    size = sum(_count_letters(column) for column in table.columns)
    if size > most_bytes:
        raise TooLarge(f"its texts have {size:,} bytes.")
    return _spread_texts(table)


def _count_letters(column: Any) -> int:
    """How many bytes the texts of a column have where each is written out."""
    import pyarrow.compute as pc

    total = 0
    for chunk in _list_texts(column):
        lengths = pc.take(pc.binary_length(chunk.dictionary), chunk.indices)
        total += pc.sum(lengths).as_py() or 0
    return total


def _list_texts(column: Any) -> Iterator[Any]:
    """The texts of a column, piece by piece; of a list, those in it."""
    import pyarrow as pa

    for chunk in column.chunks:
        inner = chunk
        while pa.types.is_list(inner.type) or pa.types.is_large_list(inner.type):
            inner = inner.flatten()
        if pa.types.is_dictionary(inner.type):
            yield inner
        elif pa.types.is_nested(inner.type) or _is_text(inner.type):
            raise TooLarge("a part of it is of another form.")


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    plain = pa.types.is_string(kind) or pa.types.is_binary(kind)
    return bool(plain or pa.types.is_large_string(kind) or pa.types.is_large_binary(kind))


def _spread_texts(table: Any) -> Any:
    """The same with texts written out."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            plain = table.column(place).cast(field.type.value_type)
            table = table.set_column(place, field.with_type(field.type.value_type), plain)
    return table


__all__ = ["TooLarge", "read_parquet"]
