"""``discreet schema``: draft a schema, and check one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import screen
from discreet.cli.options import Json
from discreet.errors import DataRefusal, Refusal

if TYPE_CHECKING:
    from discreet.engine.duckdb.examine import ColumnFit, Fit
    from discreet.question.domain import Value
    from discreet.question.schema import Column, Schema, Table

app = typer.Typer(no_args_is_help=True, help="Draft a schema, and check one.")

_Files = Annotated[
    list[Path],
    typer.Argument(metavar="FILE...", help="Parquet and CSV files.", show_default=False),
]
_Declared = Annotated[
    bool,
    typer.Option(
        "--declared/--data", help="Leave the sources closed, or open them, which is the default."
    ),
]
_SchemaPath = Annotated[
    Path, typer.Argument(metavar="FILE", help="Or the session's directory.", show_default=False)
]


@app.command()
def suggest(files: _Files, as_json: Json = False) -> None:
    """Draft a discreet.toml from the types in files, never their values."""
    from discreet.curate.suggest import suggest as draft

    text = draft(*files)
    if as_json:
        screen.print_json({"discreet.toml": text})
    else:
        typer.echo(text, nl=False)


@app.command()
def check(
    file: _SchemaPath = Path("discreet.toml"), declared: _Declared = False, as_json: Json = False
) -> None:
    """Say whether a discreet.toml holds together and how the data fit it."""
    from discreet.curate.session import FILE, find_sources, parse_settings
    from discreet.engine.opening import require_copy
    from discreet.question.schema import SchemaFile

    file = file / FILE if file.is_dir() else file
    read = SchemaFile.read(file)
    if read.settings:  # a whole session: its other sections are checked, too
        session = parse_settings(file.parent, read)
        session.budget.check_delta(read.schema.population)
    if not declared:
        require_copy(str(read.settings.get("engine", {}).get("kind")), "`schema check`")
    found = {} if declared else _look(read.schema, find_sources(file.parent, read.schema))
    if as_json:
        shown = schema_json(read.schema)
        if not declared:
            shown["sources"] = {name: fit_json(fit) for name, fit in found.items()}
        screen.print_json(shown)
    else:
        for line in describe_schema(read.schema):
            screen.print_text(line)
        for line in _describe_sources(read.schema, found):
            screen.print_text(line)
    if any(isinstance(fit, Refusal) for fit in found.values()):
        raise typer.Exit(2)


def _look(schema: Schema, sources: dict[str, str]) -> dict[str, Fit | Refusal]:
    """Each table's source, opened and read: how it fits, or why it cannot be used."""
    from discreet.engine.duckdb.engine import DuckDBEngine

    found: dict[str, Fit | Refusal] = {}
    for name in sources:
        # Each alone, with the public tables that list its values: one missing hides no other.
        needed = {c.values_from[0] for c in schema.tables[name].columns if c.values_from}
        alone = replace(
            schema, tables={n: schema.tables[n] for n in sources if n in {name, *needed}}
        )
        try:
            given = {n: sources[n] for n in alone.tables if n in sources}
            with DuckDBEngine(given, alone, opened=False) as engine:
                found[name] = _try_fit(engine.examine(name), name)
        except Refusal as refusal:
            found[name] = refusal
    return found


def _try_fit(fit: Fit, name: str) -> Fit | Refusal:
    if fit.rows:
        return fit
    return DataRefusal(
        "D2",
        f"the source of table '{name}' holds no row.",
        why="nobody is in it, so every question about it would be paid for nothing.",
        fix="check that it is the right file; one whose lines are no rows looks empty, too.",
    )


def _describe_sources(schema: Schema, found: Mapping[str, Fit | Refusal]) -> Iterator[str]:
    """How the data fit, in words."""
    if found:
        yield ""
        yield "The sources as they are now, in exact figures: for you alone, not to be shown."
    for name, fit in found.items():
        if isinstance(fit, Refusal):
            yield f"{name}: {fit.what}"
            yield f"  {fit.fix}"
        else:
            yield from _describe_fit(schema.tables[name], fit)


def _describe_fit(table: Table, fit: Fit) -> Iterator[str]:
    whole = fit.rows + fit.left_out
    owners = f" of {screen.plural(fit.units, 'unit')}" if fit.units else ""
    yield f"{table.name}: {screen.plural(fit.rows, 'row')}{owners}"
    if fit.left_out:
        yield f"  lines that are no rows, left out: {_share(fit.left_out, whole)}"
    if fit.quoted:
        part = _share(fit.quoted, whole + fit.quoted)
        yield f"  lines within the quotation marks of another: {part}"
        yield "  (if nobody's text has several lines, a quotation mark is never closed)"
    if fit.ownerless:
        yield f"  rows whose unit is missing, not counted: {_share(fit.ownerless, fit.rows)}"
    if fit.rows_per_unit:
        told = ", ".join(f"{share:.0%}: {rows:,}" for share, rows in fit.rows_per_unit.items())
        yield f"  rows of one unit at most, by share of units: {told}"
    if fit.cut:
        yield f"  rows beyond max_rows_per_unit, cut: {_share(fit.cut, fit.rows)}"
        yield f"  units that have such rows: {_share(fit.crowded, fit.units)}"
        if fit.cut > _MUCH * fit.rows:
            yield f"  {_MUCH_CUT}"
    for column, values in fit.columns.items():
        parts = list(_describe_values(table, column, values, fit.rows))
        if parts:
            yield f"  {column}: {'; '.join(parts)}"


_MUCH = Fraction(1, 5)
_MUCH_CUT = (
    "(more than a fifth of the rows is never counted. If you know that units can have more, "
    "declare a larger max_rows_per_unit: from what you know of them, not from these figures, for "
    "what is chosen by looking at the data tells of them, outside every budget.)"
)


def _describe_values(table: Table, column: str, values: ColumnFit, rows: int) -> Iterator[str]:
    """What becomes of the values of a column that are not read as they stand."""
    there = rows - values.missing
    # Whose a row is, is never replaced; rows of nobody are told of already.
    replaced = values.read_as is not None and column not in (table.unit or ())
    told, clipped = f"read as {_show(values.read_as)}", "clipped"
    if column in table.blocks:  # nobody is moved into a block (docs/proofs/blocks.md, Lemma 1)
        told = clipped = "left out"
    if not there:
        yield f"nothing in it, {told}" if replaced else "nothing in it"
        return
    if replaced and values.missing:
        yield f"{_share(values.missing, rows)} missing, {told}"
    for count, what in (
        (values.unreadable, f"unreadable, {told}" if replaced else "unreadable"),
        (values.below, f"below its bounds, {clipped}"),
        (values.above, f"above its bounds, {clipped}"),
        (values.unlisted, f"none of its values, {told}"),
    ):
        if count:
            yield f"{_share(count, there)} {what}"


def _show(value: Value | None) -> str:
    if value is None:
        return "NULL"
    return repr(value) if isinstance(value, str) else str(value).lower()


def _share(count: int, of: int) -> str:
    """A count and its share in three digits; only nothing is 0 %, and only all is 100 %.

    >>> _share(1, 3), _share(99_999, 100_000), _share(1, 10**7), _share(7, 7), _share(0, 7)
    ('1 (33.3 %)', '99,999 (over 99.9 %)', '1 (under 0.01 %)', '7 (100 %)', '0 (0 %)')
    """
    part = 100 * count / of if of else 0.0
    if 0 < part < 0.01:
        return f"{count:,} (under 0.01 %)"
    if count < of and part >= 99.95:
        return f"{count:,} (over 99.9 %)"
    return f"{count:,} ({part:.3g} %)"


def fit_json(fit: Fit | Refusal) -> dict[str, Any]:
    """How a source fits, for JSON."""
    if isinstance(fit, Refusal):
        return fit.to_json()
    return {
        "rows": fit.rows,
        "left_out": fit.left_out,
        "quoted": fit.quoted,
        "ownerless": fit.ownerless,
        "units": fit.units,
        "cut": fit.cut,
        "crowded": fit.crowded,
        "rows_per_unit": {str(share): rows for share, rows in fit.rows_per_unit.items()},
        "columns": {name: asdict(column) for name, column in fit.columns.items()},
    }


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
        "warnings": schema.list_doubts(),
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
    for doubt in schema.list_doubts():
        yield f"warning: {doubt}"


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
    if column.time_zone is not None:
        parts.append(f"as clocks show it in {column.time_zone}")
    if not column.domain.nullable:
        parts.append("never NULL")
    return ", ".join(parts)
