"""From the TOML of ``discreet.toml`` to tables, refusing what is not understood."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from discreet.accounting.budget import Budget
from discreet.accounting.neighbours import Neighbours
from discreet.errors import InvalidParameter, SchemaRefusal, quote_value
from discreet.exact.numbers import fraction
from discreet.question.domain import Kind, Value
from discreet.question.schema.lines import Document
from discreet.question.schema.tables import Column, Crowding, Owners, Table, check_population

DECLARED = ("tables", "neighbours", "population", "max_joined_rows_per_unit", "entities")
SETTINGS = (
    "budget",
    "policy",
    "ledger",
    "engine",
    "server",
    "offers",
    "groups",
    "sign_in",
    "surveys",
)
SECTIONS = DECLARED + SETTINGS
"""What may stand at the top of the file: the schema, then what is for the curator."""

_TABLE = (
    "source",
    "version",
    "unit",
    "entity",
    "public",
    "max_rows_per_unit",
    "max_groups_per_unit",
    "max_rows_per_pair",
    "crowding",
    "time_zone",
    "blocks",
    "unique",
    "columns",
)
BUDGET_KEYS = ("epsilon", "delta", "rho", "failures", "accept_large_delta")
_COLUMN = (
    "type",
    "bounds",
    "values",
    "values_from",
    "nullable",
    "step",
    "grid",
    "per_unit",
    "time_zone",
)
_OTHER_NAMES = {
    "int": "integer",
    "bigint": "integer",
    "float": "decimal",
    "double": "decimal",
    "number": "decimal",
    "string": "text",
    "str": "text",
    "varchar": "text",
    "bool": "boolean",
    "datetime": "timestamp",
}


def read_tables(document: Document) -> tuple[dict[str, Table], Neighbours]:
    """The tables a document declares, and its neighbours."""
    check_known(document.data, SECTIONS, "the schema", document, ())
    with document.at("neighbours"):
        neighbours = _neighbours(document.data.get("neighbours", Neighbours.ADD_REMOVE.value))
    declared = document.data.get("tables", {})
    with document.at("tables"):
        section(declared, "tables")
        if not declared:
            raise SchemaRefusal(
                "S2",
                "no table is declared.",
                why="what is not declared is not read.",
                fix="add a section [tables.NAME] with its source, its unit and its columns.",
            )
    return {name: _table(name, document) for name in declared}, neighbours


def section(value: object, name: str) -> None:
    """Refuse what is not a table in TOML's sense."""
    if not isinstance(value, Mapping):
        raise SchemaRefusal(
            "S2",
            f"{name} is not a section.",
            why="a declaration that is not understood could protect nobody.",
            fix=f"write a section [{name}].",
        )


def check_known(
    data: Mapping[str, Any],
    names: Sequence[str],
    what: str,
    document: Document,
    path: tuple[str, ...],
) -> None:
    """Refuse keys that mean nothing here: a misspelt bound would be no bound."""
    for key in data:
        with document.at(*path, key):
            if key not in names:
                raise SchemaRefusal(
                    "S2",
                    f"{what} has no {key!r}.",
                    why="a declaration that is not understood could protect nobody.",
                    fix=f"use one of {', '.join(names)}.",
                )


def _neighbours(value: object) -> Neighbours:
    names = {n.value: n for n in Neighbours}
    if isinstance(value, str) and value in names:
        return names[value]
    raise SchemaRefusal(
        "S2",
        f"neighbours cannot be {quote_value(value)}.",
        why="it says what a person is protected against.",
        fix=f"use one of {', '.join(map(repr, names))}.",
    )


def read_population(document: Document) -> int | None:
    """About how many units there are, if the document says so; public, like all of it."""
    value = document.data.get("population")
    with document.at("population"):
        return check_population(value)


def read_entities(document: Document) -> dict[str, Budget]:
    """What the people of each entity may lose in all datasets together, as far as it is said."""
    declared = document.data.get("entities", {})
    with document.at("entities"):
        section(declared, "entities")
    return {name: read_budget(declared[name], document, ("entities", name)) for name in declared}


def read_budget(value: object, document: Document, path: tuple[str, ...]) -> Budget:
    """The budget that a section says; refusals name its lines."""
    with document.at(*path):
        section(value, ".".join(path))
        data: Mapping[str, Any] = value  # type: ignore[assignment]
        check_known(data, BUDGET_KEYS, f"[{'.'.join(path)}]", document, path)
        try:
            # A large delta is objected to where it is promised anew: an older session still opens.
            return Budget.recorded(**data)
        except InvalidParameter as refusal:
            at = next((key for key in data if refusal.what.startswith(key)), None)
            with document.at(*path, *([at] if at else [])):
                raise SchemaRefusal("S2", refusal.what, why=refusal.why, fix=refusal.fix) from None


def _table(name: str, document: Document) -> Table:
    path = ("tables", name)
    data = document.data["tables"][name]
    with document.at(*path):
        section(data, f"tables.{name}")
        check_known(data, _TABLE, f"table {name!r}", document, path)
        unit = _unit(data, name, document)
        columns = data.get("columns", {})
        section(columns, f"tables.{name}.columns")
        if unit is not None and not columns:
            raise SchemaRefusal(
                "S2",
                f"table {name!r} declares no columns.",
                why="what is not declared is not read, and the columns of a private table are "
                "never taken from the data.",
                fix=f"add a section [tables.{name}.columns]; `discreet schema suggest FILE` "
                "drafts it.",
            )
        declared = tuple(_column(name, column, document) for column in columns)
        parts: dict[str, Callable[[], Any]] = {
            "columns": lambda: declared,
            "unit": lambda: unit,
            "source": lambda: _text(data, "source"),
            "version": lambda: _text(data, "version"),
            "entity": lambda: _text(data, "entity"),
            "max_rows_per_unit": lambda: data["max_rows_per_unit"],
            "max_groups_per_unit": lambda: data["max_groups_per_unit"],
            "max_rows_per_pair": lambda: data["max_rows_per_pair"],
            "crowding": lambda: _read_crowding(data["crowding"]),
            "blocks": lambda: _names(data["blocks"], "blocks"),
            "unique": lambda: _keys(data["unique"]),
        }
        table = Table(name, ())
        owners = _owners(data)
        if unit is not None and owners is not Owners.ONE:  # what it needs is said all at once
            made = {key: part() for key, part in parts.items() if key in data}
            with document.at(*path, "unit"):
                return Table(name, owners=owners, **made)
        for key, part in parts.items():  # one by one, so that a refusal names the line of each
            if key in data:
                with document.at(*path, key):
                    table = replace(table, **{key: part()})
        _check_own(table)
        return table


def _check_own(table: Table) -> None:
    """Refuse a public table with columns that are somebody's, and rows that are an entity."""
    if table.public and table.per_unit:
        raise SchemaRefusal(
            "S5",
            f"table {table.name!r} is public and declares per_unit for {table.per_unit[0]!r}.",
            why="that speaks of people, and a public table is about nobody.",
            fix="remove per_unit, or declare the unit whose rows these are.",
        )
    if table.by_row and table.entity is not None:
        raise SchemaRefusal(
            "S5",
            f"table {table.name!r} protects every row by itself and names an entity.",
            why="one of its people may have many rows there, and would lose for each of them "
            "what is counted once.",
            fix="remove entity, or name the column that identifies one of them as the unit.",
        )


def _text(data: Mapping[str, Any], key: str) -> str | None:
    value = data.get(key)
    if value is None or (isinstance(value, str) and value):
        return value
    raise SchemaRefusal(
        "S2",
        f"{key} must be a text, not {quote_value(value)}.",
        why="a declaration that is not understood could protect nobody.",
        fix=f'write {key} = "...".',
    )


def _names(value: object, key: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return tuple(value)
    raise SchemaRefusal(
        "S2",
        f"{key} must name columns, not {quote_value(value)}.",
        why="a declaration that is not understood could protect nobody.",
        fix=f'write {key} = ["column", ...].',
    )


def _keys(value: object) -> tuple[tuple[str, ...], ...]:
    """One key of several columns is a list in the list: unique = ["id", ["year", "code"]]."""
    if isinstance(value, list):
        return tuple(_names(key, "unique") for key in value)
    return (_names(value, "unique"),)


def _unit(data: Mapping[str, Any], name: str, document: Document) -> tuple[str, ...] | None:
    public = data.get("public", False)
    with document.at("tables", name, "public"):
        if not isinstance(public, bool) or (public and "unit" in data):
            raise SchemaRefusal(
                "S5",
                f"table {name!r} has public = {quote_value(public)}"
                + (" and a unit." if "unit" in data else "."),
                why="either its rows are people's, and protected, or they are nobody's.",
                fix="keep the unit for a private table, or public = true for a public one.",
            )
    if public:
        return None
    if "unit" not in data:
        raise SchemaRefusal(
            "S5",
            f"table {name!r} says neither whose its rows are nor that it is public.",
            why="nobody can be protected without saying who they are.",
            fix='add unit = "person_id" (the column that identifies a person), unit = "row" if '
            "every row is another person, or public = true.",
        )
    with document.at("tables", name, "unit"):
        named = data["unit"]
        if _owners(data) is not Owners.ONE:
            named = next(iter(named.values()))
        return _names(named, "unit")


def _owners(data: Mapping[str, Any]) -> Owners:
    """Whether the unit is one, a pair (``{ pair = [...] }``), or both people of a row (``any``)."""
    unit = data.get("unit")
    if not isinstance(unit, Mapping):
        return Owners.ONE
    if len(unit) == 1 and set(unit) <= {Owners.PAIR.value, Owners.ANY.value}:
        return Owners(next(iter(unit)))
    raise SchemaRefusal(
        "S12",
        f"a unit cannot be {quote_value(dict(unit))}.",
        why="it must be clear whose each row is.",
        fix='write unit = { pair = ["src", "dst"] } to protect pairs, or '
        'unit = { any = ["sender", "receiver"] } to protect both people.',
    )


def _read_crowding(value: object) -> Crowding:
    if isinstance(value, Mapping) and set(value) == {"rho", "delta"}:
        return Crowding(_exact(value["rho"], "crowding"), _exact(value["delta"], "crowding"))
    raise SchemaRefusal(
        "S12",
        "crowding must say what the test costs.",
        why="the test that makes the bound hold for everybody is paid for like an answer.",
        fix="write crowding = { rho = 0.02, delta = 1e-9 }.",
    )


# --- columns -------------------------------------------------------------------------------


def _column(table: str, name: str, document: Document) -> Column:
    path = ("tables", table, "columns", name)
    data = document.data["tables"][table]["columns"][name]
    with document.at(*path):
        if isinstance(data, str):  # the type alone
            data = {"type": data}
        section(data, ".".join(path))
        check_known(data, _COLUMN, f"column {name!r}", document, path)
        kind = _kind(data.get("type"), name)
        low, high = _bounds(data, kind, name)
        return Column(
            name,
            kind,
            low,
            high,
            values=_values(data, kind, name),
            values_from=_values_from(data, name),
            nullable=_flag(data, "nullable", name, otherwise=True),
            grid=_step(data, name),
            per_unit=_flag(data, "per_unit", name, otherwise=False),
            time_zone=_zone(data, kind, table, name, document),
        )


def _zone(
    data: Mapping[str, Any], kind: Kind, table: str, name: str, document: Document
) -> str | None:
    """Its own time zone, or that of its table, which is not meant for whose a row is."""
    own = _text(data, "time_zone")
    if own is not None or not kind.is_time:
        return own
    around = document.data["tables"][table]
    unit = around.get("unit", ())
    if isinstance(unit, Mapping):
        unit = [name for named in unit.values() for name in named]
    return (
        None if name in ([unit] if isinstance(unit, str) else unit) else _text(around, "time_zone")
    )


def _step(data: Mapping[str, Any], name: str) -> Fraction | None:
    """The declared step; ``grid`` is its older name, for powers of two alone."""
    if "step" in data and "grid" in data:
        raise SchemaRefusal(
            "S3",
            f"column {name!r} has both a step and a grid.",
            why="they are two names of one thing.",
            fix="keep step.",
        )
    if "step" in data:
        return _exact(data["step"], name)
    if "grid" not in data:
        return None
    grid = _exact(data["grid"], name)
    over, under = grid.numerator, grid.denominator
    if over > 0 and over & (over - 1) == under & (under - 1) == 0:
        return grid
    raise SchemaRefusal(
        "S3",
        f"column {name!r} cannot have a grid of {grid}.",
        why="a grid is a power of two.",
        fix=f"write step = {data['grid']}, which may be any positive number.",
    )


def _kind(value: object, column: str) -> Kind:
    if isinstance(value, str) and value in tuple(Kind):
        return Kind(value)
    meant = _OTHER_NAMES.get(str(value).lower())
    raise SchemaRefusal(
        "S2",
        f"column {column!r} has no type."
        if value is None
        else f"column {column!r} has type {quote_value(value)}.",
        why="what is read of a person's row must be known beforehand, whatever the row holds.",
        fix=f'write type = "{meant}".'
        if meant
        else f"write type = one of {', '.join(repr(k.value) for k in Kind)}.",
    )


def _flag(data: Mapping[str, Any], key: str, column: str, *, otherwise: bool) -> bool:
    value = data.get(key, otherwise)
    if isinstance(value, bool):
        return value
    raise SchemaRefusal(
        "S2",
        f"column {column!r} has {key} = {quote_value(value)}.",
        why="a declaration that is not understood could protect nobody.",
        fix=f"write {key} = true or {key} = false.",
    )


def _exact(value: object, column: str) -> Fraction:
    try:
        return fraction(value, name=column)  # type: ignore[arg-type]
    except InvalidParameter:
        raise SchemaRefusal(
            "S3",
            f"column {column!r} declares {quote_value(value)}, which is not a number.",
            why="sums are computed from exact numbers.",
            fix='write a number, or a fraction in quotes such as "1/64".',
        ) from None


def _bounds(data: Mapping[str, Any], kind: Kind, column: str) -> tuple[Value | None, Value | None]:
    if "bounds" not in data:
        return None, None
    bounds = data["bounds"]
    if not isinstance(bounds, list) or len(bounds) != 2:
        raise SchemaRefusal(
            "S3",
            f"column {column!r} has bounds {quote_value(bounds)}.",
            why="a value is moved between two bounds.",
            fix="write bounds = [low, high].",
        )
    low, high = (_value(bound, kind, column) for bound in bounds)
    return low, high


def _values(data: Mapping[str, Any], kind: Kind, column: str) -> tuple[Value, ...] | None:
    if "values" not in data:
        return None
    values = data["values"]
    if not isinstance(values, list):
        raise SchemaRefusal(
            "S4",
            f"column {column!r} has values {quote_value(values)}.",
            why="the list says which groups exist.",
            fix="write values = [...].",
        )
    return tuple(_value(value, kind, column) for value in values)


def _value(value: Any, kind: Kind, column: str) -> Value:
    """A constant of TOML as one of ``kind``, where that is what it says; else as it is."""
    if kind is Kind.DECIMAL and not isinstance(value, bool | str | date):
        return _exact(value, column)
    if isinstance(value, Decimal):
        return _exact(value, column)
    if kind is Kind.TIMESTAMP and isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    if isinstance(value, str) and kind in (Kind.DATE, Kind.TIMESTAMP):
        return _day(value, kind)
    found: Value = value
    return found


def _day(value: str, kind: Kind) -> Value:
    try:
        return date.fromisoformat(value) if kind is Kind.DATE else datetime.fromisoformat(value)
    except ValueError:
        return value  # refused as a text by the column


def _values_from(data: Mapping[str, Any], column: str) -> tuple[str, str] | None:
    if "values_from" not in data:
        return None
    value = data["values_from"]
    parts = value.rsplit(".", 1) if isinstance(value, str) else []
    if len(parts) != 2 or not all(parts):
        raise SchemaRefusal(
            "S6",
            f"column {column!r} takes its values from {quote_value(value)}.",
            why="the list says which groups exist.",
            fix='name a column of a public table: values_from = "cities.name".',
        )
    return parts[0], parts[1]
