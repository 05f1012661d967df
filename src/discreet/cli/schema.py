"""``discreet schema``: draft a schema, and check one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import screen
from discreet.cli.options import Json

if TYPE_CHECKING:
    from discreet.question.schema import Column, Schema, Table

app = typer.Typer(no_args_is_help=True, help="Draft a schema, and check one.")

_File = Annotated[Path, typer.Argument(metavar="FILE", show_default=False)]
_SchemaPath = Annotated[
    Path, typer.Argument(metavar="FILE", help="Or the session's directory.", show_default=False)
]


@app.command()
def suggest(file: _File, as_json: Json = False) -> None:
    """Draft a discreet.toml from the types in a file, never its values."""
    from discreet.question.suggest import suggest as draft

    text = draft(file)
    if as_json:
        screen.print_json({"discreet.toml": text})
    else:
        typer.echo(text, nl=False)


@app.command()
def check(file: _SchemaPath = Path("discreet.toml"), as_json: Json = False) -> None:
    """Say whether a discreet.toml holds together, and what it protects."""
    from discreet.curate.session import FILE, parsed
    from discreet.question.schema import SchemaFile

    file = file / FILE if file.is_dir() else file
    read = SchemaFile.read(file)
    if read.settings:  # a whole session: its other sections are checked, too
        session = parsed(file.parent, read)
        session.budget.check_delta(read.schema.population)
    if as_json:
        screen.print_json(schema_json(read.schema))
        return
    for line in describe_schema(read.schema):
        screen.print_text(line)


def schema_json(schema: Schema) -> dict[str, Any]:
    """A schema for JSON: whom it protects, and what is known of each column."""
    return {
        "neighbours": schema.neighbours.value,
        "population": schema.population,
        "max_joined_rows_per_unit": schema.most_joined_rows,
        "tables": {
            table.name: {
                "protects": _owner(table),
                "columns": {column.name: _describe_column(column) for column in table.columns},
            }
            for table in schema.tables.values()
        },
    }


def describe_schema(schema: Schema) -> Iterator[str]:
    """A schema in words: whom it protects, and what is known of each column."""
    yield f"neighbours: {schema.neighbours.value}"
    if schema.population is not None:
        yield f"population: about {schema.population:,}"
    yield f"joins and unions: at most {schema.most_joined_rows:,} rows of one unit"
    for table in schema.tables.values():
        yield f"{table.name}: {_owner(table)}"
        for column in table.columns:
            yield f"  {column.name}: {_describe_column(column)}"


def _owner(table: Table) -> str:
    if table.public:
        return "public" + ("" if table.columns else ", columns as in its file")
    from discreet.question.ownership import unit_of

    who = f"protects each {unit_of(table).name}"
    limits = [
        f"at most {limit} {what}{'' if limit == 1 else 's'} each"
        for limit, what in (
            (table.max_rows_per_unit, "row"),
            (table.max_groups_per_unit, "group"),
        )
        if limit is not None
    ]
    blocks = [f"accounted by {', '.join(table.blocks)}"] if table.blocks else []
    return "; ".join([who, *limits, *blocks])


def _describe_column(column: Column) -> str:
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
