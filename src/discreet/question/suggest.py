"""A first draft of a schema from a file's types: never from its values.

The draft goes into a public file, so it may hold only what is no secret: the
names and types of columns.  Bounds, allowed values and the unit are for the
curator, who knows them without looking; the draft marks where.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from discreet.errors import SchemaRefusal
from discreet.question.domain import Kind

FILL_IN = "FILL IN"
"""What stands in a draft where the curator must decide; no schema is accepted with it."""

_HEADER_NAME = re.compile(r"[^\W\d_][\w .:/()%#-]{0,63}")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_WHY = "a schema is public: what is drafted from a private file may hold nothing of its rows."


def suggest(file: str | Path) -> str:
    """A draft of the TOML for one Parquet or CSV file.

    Of a Parquet file only the types are read; of a CSV file only the header,
    because there a type could only be guessed from people's values.
    """
    path = Path(file)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".parquet"]:
        columns = _parquet(path)
    elif ".csv" in suffixes or ".tsv" in suffixes:
        columns = [(name, None) for name in _header(path)]
    else:
        raise SchemaRefusal(
            "S8",
            f"{path.name} is neither a Parquet nor a CSV file by its name.",
            why=_WHY,
            fix="give a file that ends in .parquet, .csv, .tsv, .csv.gz or .tsv.gz.",
        )
    return "\n".join(_draft(path, columns)) + "\n"


# --- reading -------------------------------------------------------------------------------


def _unreadable(path: Path) -> SchemaRefusal:
    return SchemaRefusal(
        "S8",
        f"the columns of {path.name} cannot be listed.",
        why=_WHY,
        fix="check that the file exists and is what its name says, or write the schema by hand: "
        "docs/schema.md.",
    )


def _parquet(path: Path) -> list[tuple[str, Kind | str | None]]:
    """Names and kinds from the file's footer; its statistics are not looked at."""
    import pyarrow as pa  # a third of a second that only this needs
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(path)
    except (OSError, pa.ArrowException):
        raise _unreadable(path) from None
    return [(field.name, _kind(field.type, pa.types)) for field in schema]


def _kind(arrow: Any, types: Any) -> Kind | str:
    """The kind of an Arrow type, or the type's name if there is none for it."""
    if types.is_dictionary(arrow):
        arrow = arrow.value_type
    for test, kind in (
        (types.is_boolean, Kind.BOOLEAN),
        (types.is_integer, Kind.INTEGER),
        (types.is_decimal, Kind.DECIMAL),
        (types.is_floating, Kind.DECIMAL),
        (types.is_date, Kind.DATE),
        (types.is_timestamp, Kind.TIMESTAMP),
        (types.is_string, Kind.TEXT),
        (types.is_large_string, Kind.TEXT),
    ):
        if test(arrow):
            return kind
    return str(arrow).split("<", 1)[0].split("[", 1)[0]


def _header(path: Path) -> list[str]:
    """The names in the first line, refused unless it looks like names.

    A file without a header has a person in its first line, who must not be
    printed: not even in the refusal.
    """
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as lines:
            first = lines.readline(1_000_000)
    except (OSError, EOFError, UnicodeDecodeError):
        raise _unreadable(path) from None
    delimiter = max(",;\t|", key=first.count)
    names = next(csv.reader([first], delimiter=delimiter), [])
    plain = all(_HEADER_NAME.fullmatch(name) for name in names)
    if not names or not plain or len({name.lower() for name in names}) < len(names):
        raise SchemaRefusal(
            "S8",
            f"the first line of {path.name} does not look like a header.",
            why="it may be a person's row, and a schema is public.",
            fix="put a line of column names first, or write the schema by hand: docs/schema.md.",
        )
    return names


# --- writing -------------------------------------------------------------------------------


def _draft(path: Path, columns: list[tuple[str, Kind | str | None]]) -> Iterator[str]:
    name = _key(path.name.split(".", 1)[0])
    yield "# Drafted from names and types only.  Everything in this file is public: fill in what is"
    yield f'# marked "{FILL_IN}" from what you know, never by looking at the data.'
    yield ""
    yield "[budget]"
    yield f'epsilon = "{FILL_IN}"            # what one person may lose in all, such as 1'
    yield "delta = 1e-9"
    yield ""
    yield f"[tables.{name}]"
    yield f"source = {_quote(str(path))}"
    yield f'unit = "{FILL_IN}"               # the column(s) that identify one person, or "row"'
    yield f'max_rows_per_unit = "{FILL_IN}"  # how many rows of one person are counted at most'
    yield ""
    yield f"[tables.{name}.columns]"
    for column, kind in columns:
        yield from _column(column, kind)


def _column(name: str, kind: Kind | str | None) -> Iterator[str]:
    key = _key(name)
    match kind:
        case None:
            kinds = ", ".join(k.value for k in Kind)
            yield f'{key} = {{ type = "{FILL_IN}" }}  # {kinds}; then bounds or values'
        case Kind.BOOLEAN:
            yield f'{key} = {{ type = "boolean" }}'
        case Kind.TEXT:
            yield f'{key} = {{ type = "text" }}  # to group by it: values = [...]'
        case Kind():
            yield f'{key} = {{ type = "{kind.value}" }}  # to sum it: bounds = [low, high]'
        case _:
            yield f"# {key}: {kind}, which questions cannot use"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quote(name)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
