"""`discreet schema`: draft a schema, and check one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from discreet.schema import Column, Schema, Table

app = typer.Typer(no_args_is_help=True, help="Draft a schema, and check one.")

_File = Annotated[Path, typer.Argument(metavar="FILE", show_default=False)]


@app.command()
def suggest(file: _File) -> None:
    """Draft discreet.toml from the names and types in a Parquet or CSV file, never its values."""
    from discreet.suggest import suggest as draft

    typer.echo(draft(file), nl=False)


@app.command()
def check(file: _File = Path("discreet.toml")) -> None:
    """Say whether a schema holds together, and what it protects."""
    from discreet.schema import SchemaFile

    for line in described(SchemaFile.read(file).schema):
        typer.echo(line)


def described(schema: Schema) -> Iterator[str]:
    """A schema in words: whom it protects, and what is known of each column."""
    yield f"neighbours: {schema.neighbours.value}"
    for table in schema.tables.values():
        yield f"{table.name}: {_owner(table)}"
        for column in table.columns:
            yield f"  {column.name}: {_known(column)}"


def _owner(table: Table) -> str:
    if table.public:
        return "public" + ("" if table.columns else ", columns as in its file")
    who = (
        "every row is protected" if table.by_row else f"protects each {', '.join(table.unit or ())}"
    )
    limits = [
        f"at most {limit} {what} each"
        for limit, what in (
            (table.max_rows_per_unit, "rows"),
            (table.max_groups_per_unit, "groups"),
        )
        if limit is not None
    ]
    blocks = [f"accounted by {', '.join(table.blocks)}"] if table.blocks else []
    return "; ".join([who, *limits, *blocks])


def _known(column: Column) -> str:
    parts = [column.kind.value]
    if column.values is not None:
        parts.append(f"{len(column.values)} allowed values")
    elif column.values_from is not None:
        parts.append(f"values from {'.'.join(column.values_from)}")
    elif column.low is not None:
        parts.append(f"from {column.low} to {column.high}")
    if not column.domain.nullable:
        parts.append("never NULL")
    return ", ".join(parts)
