"""Tables in memory as Arrow tables: pandas, Polars, and whatever offers Arrow's stream."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from discreet.engine.duckdb.sources import Kinds, unreadable_refusal
from discreet.question.domain import Kind


def to_arrow(table: str, given: Any, kinds: Kinds | None) -> tuple[pa.Table, frozenset[str]]:
    """What was given as an Arrow table of the declared columns, every text checked.

    And which of its times had a zone: what type a column has, no row decides.
    """
    module = type(given).__module__.split(".")[0]
    if module == "pandas":
        columns = ((str(name), series) for name, series in given.items())
        known = kinds or {}
        kept = {
            name: _from_pandas(series, known.get(name.casefold()))
            for name, series in columns
            if _is_wanted(name, kinds)
        }
    elif module == "polars" and hasattr(given, "collect"):
        return to_arrow(table, given.collect(), kinds)
    elif isinstance(given, pa.Table) or hasattr(given, "__arrow_c_stream__"):
        rows = given if isinstance(given, pa.Table) else pa.table(given)
        pairs = zip(rows.column_names, rows.columns, strict=True)
        kept = {name: array for name, array in pairs if _is_wanted(name, kinds)}
    else:
        raise unreadable_refusal(table, f"a {type(given).__name__} is neither a path nor a table")
    zoned = frozenset(
        name.casefold()
        for name, array in kept.items()
        if pa.types.is_timestamp(array.type) and array.type.tz is not None
    )
    return pa.table({name: _without_damage(array) for name, array in kept.items()}), zoned


def _is_wanted(name: str, kinds: Kinds | None) -> bool:
    return kinds is None or name.casefold() in kinds


def _from_pandas(series: Any, kind: Kind | None) -> pa.ChunkedArray:
    """A pandas column, copied; objects are read one by one, as their declaration says."""
    if kind is None or _has_type(series.dtype):
        array = pa.array(series.copy(deep=True), from_pandas=True)
    else:
        pairs = zip(series, series.isna(), strict=True)
        array = pa.array(
            [None if missing else _write_object(value, kind) for value, missing in pairs],
            type=pa.large_binary(),
        )
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _has_type(dtype: Any) -> bool:
    """Whether every value of a pandas column has the type that its dtype names.

    Objects have none, and pandas' own texts in Python need not be text that can be
    encoded.
    """
    if hasattr(dtype, "categories"):
        return _has_type(dtype.categories.dtype)
    if hasattr(dtype, "storage"):
        return bool(dtype.storage == "pyarrow")
    return dtype.kind in "biufmM"


def _write_object(value: Any, kind: Kind) -> bytes | None:
    """One object as the text that its declared kind is read from; None if it has none.

    A function of the object and the declaration alone.  What a typed column would
    hold is written so that it is read as the same value.
    """
    try:
        text = _text_of(value.item() if hasattr(value, "dtype") else value, kind)
        return text if isinstance(text, bytes) else text.encode(errors="surrogatepass")
    except Exception:  # an object may do anything when it is looked at
        return None


def _text_of(value: Any, kind: Kind) -> str | bytes:
    if isinstance(value, str | bytes):
        return value
    if isinstance(value, bool):
        return str(int(value)) if kind is Kind.INTEGER else str(value).lower()
    if isinstance(value, float | Decimal) and kind is Kind.INTEGER:
        return str(round(value))  # half to even, as the engine casts a typed column
    if isinstance(value, datetime):
        moment = value if value.tzinfo is None else value.astimezone(UTC)
        return moment.date().isoformat() if kind is Kind.DATE else moment.isoformat(sep=" ")
    if isinstance(value, date):
        return value.isoformat()
    return str(value)


def bytes_for(kind: pa.DataType) -> pa.DataType:
    """The type in which any value of a type can be handed over: bytes for text, and times in UTC.

    DuckDB gives up on a time with a zone that does not fit its microseconds.
    """
    if pa.types.is_dictionary(kind):
        return bytes_for(kind.value_type)
    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit)
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return pa.large_binary() if text or pa.types.is_string_view(kind) else kind


def _without_damage(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column in its own type, NULL where its text is not UTF-8."""
    if pa.types.is_dictionary(array.type):
        array = _decode_dictionary(array)
    if pa.types.is_timestamp(array.type):
        return array.cast(bytes_for(array.type))
    if bytes_for(array.type) == array.type:
        return array
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        texts = [_decode(value) for value in array.cast(pa.large_binary()).to_pylist()]
        return pa.chunked_array([pa.array(texts, array.type)])
    return array


def _decode_dictionary(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values themselves; those of Polars are views of texts, which Arrow cannot cast from."""
    values = array.type.value_type
    if not pa.types.is_string_view(values):
        return array.cast(values)
    plain = pa.large_string()
    chunks = [
        pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(plain)).cast(plain)
        for chunk in array.chunks
    ]
    return pa.chunked_array(chunks, plain)


def _decode(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


__all__ = ["bytes_for", "to_arrow"]
