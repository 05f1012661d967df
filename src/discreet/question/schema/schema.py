"""A schema: all tables of one dataset, checked against each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from discreet.accounting.budget import Budget
from discreet.accounting.neighbours import Neighbours
from discreet.errors import SchemaRefusal, quote_value
from discreet.exact.records import dataclass
from discreet.question.domain import Kind, Value, number_of
from discreet.question.schema.declarations import (
    SETTINGS,
    read_entities,
    read_population,
    read_tables,
)
from discreet.question.schema.lines import Document
from discreet.question.schema.tables import (
    Column,
    Owners,
    Table,
    check_all_blocks,
    check_block_columns,
    check_blocks,
    check_limit,
    check_population,
    check_shared,
    entity_of,
)

MOST_JOINED_ROWS = 1000
"""How many rows joins may make of one unit, unless the schema says otherwise."""


@dataclass(frozen=True, slots=True, repr=False)
class Schema:
    """All tables of one dataset, by name: ``tables``.

    ``neighbours`` says what a unit is hidden from; ``population``, if given, about how many units
    there are, which is public.
    ``max_joined_rows_per_unit`` is how many rows a join or a union may make of one unit,
    anywhere in a question, whatever is kept of them afterwards.
    ``entities`` says for some of the units what they may lose in all datasets of a ledger
    together.
    """

    tables: Mapping[str, Table]
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    population: int | None = None
    """About how many units there are (of several kinds, the fewest): public, and not read from
    the data.  It decides nothing but whether a delta is small enough."""
    max_joined_rows_per_unit: int | None = None
    entities: Mapping[str, Budget] = field(default_factory=dict)
    """Budgets of people who are in other datasets, too, by the entity of their tables."""
    most_joined_rows: int = field(init=False, compare=False, repr=False)
    """How many rows joins may make of one unit: as declared, or a thousand.

    What the curator lets one table have of a unit, a question may read without a word more.

    >>> visits = Table("visits", (Column("who", Kind.INTEGER),), ("who",), 20)
    >>> Schema({"visits": visits}).most_joined_rows
    1000
    """

    def __post_init__(self) -> None:
        check_population(self.population)
        for name, table in self.tables.items():
            if name != table.name:
                raise SchemaRefusal(
                    "S2",
                    f"table {table.name!r} is listed under the name {name!r}.",
                    why="what is counted must be one thing.",
                    fix="list each table under its own name.",
                )
            for column in table.columns:
                self._check_source_of_values(table, column)
        self._check_entities()
        self._check_entity_budgets()
        check_all_blocks(self.tables, self.neighbours)
        check_shared(self.tables, self.neighbours)
        check_limit("max_joined_rows_per_unit", self.max_joined_rows_per_unit, "the schema")
        most = self.max_joined_rows_per_unit
        if most is None:
            declared = (table.max_rows_per_unit or 1 for table in self.tables.values())
            most = max(MOST_JOINED_ROWS, *declared, 1)
        object.__setattr__(self, "most_joined_rows", most)

    def __repr__(self) -> str:
        told = [
            f"{table.name} ({len(table.columns)} columns, "
            + ("public)" if table.public else f"unit {', '.join(table.unit or ())})")
            for table in self.tables.values()
        ]
        more = [f"and {len(told) - 12} more"] if len(told) > 12 else []
        return f"Schema({'; '.join([*told[:12], *more])})"

    def _check_source_of_values(self, table: Table, column: Column) -> None:
        if column.values_from is None:
            return
        other_name, other_column = column.values_from
        other = self.tables.get(other_name)
        found = None if other is None else other.column(other_column)
        if other is None or not other.public or (found is None and other.columns):
            raise SchemaRefusal(
                "S6",
                f"column {column.name!r} of {table.name!r} takes its values from "
                f"'{other_name}.{other_column}', which is not a column of a public table.",
                why="a list taken from people's rows would say who is there.",
                fix="declare that table with public = true, or list the values here.",
            )
        if found is not None and found.kind is not column.kind:
            raise SchemaRefusal(
                "S6",
                f"column {column.name!r} of {table.name!r} is {column.kind.value}, and "
                f"'{other_name}.{other_column}' is {found.kind.value}.",
                why="values of another kind would match nothing.",
                fix=f"declare both as {found.kind.value}.",
            )

    def _check_entities(self) -> None:
        """The same people must be identified by the same kinds of columns everywhere."""
        seen: dict[str, tuple[str, tuple[Kind, ...]]] = {}
        for table in self.tables.values():
            if table.unit is None or table.by_row:
                continue
            kinds = tuple(c.kind for n in table.unit for c in table.columns if c.name == n)
            if table.owners is Owners.ANY:
                kinds = kinds[:1]
            entity = entity_of(table)
            first, others = seen.setdefault(entity, (table.name, kinds))
            if kinds != others:
                raise SchemaRefusal(
                    "S5",
                    f"tables {first!r} and {table.name!r} identify {entity!r} by columns of "
                    "different kinds.",
                    why="one person would be two, and protected as neither.",
                    fix="declare the unit's columns with the same types in both, or give the "
                    "tables different entities.",
                )

    def list_doubts(self) -> list[str]:
        """Tables that may be about the same people, and do not say so, in words.

        One that names its entity, and one that does not and has units of the same name.
        """
        private = [t for t in self.tables.values() if t.unit is not None and not t.by_row]
        return [
            f"table {silent.name!r} names no entity, and its unit is called as that of "
            f"{named.name!r}, whose entity is {named.entity!r}: a person who is in both is two "
            f"people to the account. If they are the same, write entity = {named.entity!r} for "
            f"{silent.name!r}; if not, give it another."
            for silent in private
            for named in private
            if silent.entity is None
            and named.entity is not None
            and silent.unit == named.unit
            and entity_of(silent) != entity_of(named)
        ]

    def _check_entity_budgets(self) -> None:
        """A budget for people of whom no table is would protect nobody."""
        known = {
            entity_of(table)
            for table in self.tables.values()
            if not table.public and not table.by_row
        }
        for name, budget in self.entities.items():
            if not isinstance(budget, Budget):
                raise SchemaRefusal(
                    "S2",
                    f"the entity {name!r} has {quote_value(budget)} for a budget.",
                    why="without one nothing limits what its people lose.",
                    fix=f"write [entities.{name}] with epsilon = 5 and delta = 1e-9.",
                )
            if name not in known:
                listed = ", ".join(map(repr, sorted(known))) or "none is declared"
                raise SchemaRefusal(
                    "S6",
                    f"[entities.{name}] has a budget, and no table with a unit is about {name!r}.",
                    why="what its people lose in this dataset would be counted for nobody.",
                    fix=f'write entity = "{name}" for the tables that are about them; the '
                    f"entities here are: {listed}.",
                )

    @classmethod
    def from_toml(cls, file: str | Path) -> Schema:
        """The schema declared in a TOML ``file``."""
        return SchemaFile.read(file).schema

    @classmethod
    def from_text(cls, text: str, *, name: str = "the schema") -> Schema:
        """The schema declared in a TOML ``text``; refusals call it ``name``.

        >>> schema = Schema.from_text('''
        ... [tables.visits]
        ... unit = "patient"
        ... [tables.visits.columns]
        ... patient = "integer"
        ... cost = { type = "decimal", bounds = [0, 5000] }
        ... ''')
        >>> schema.tables["visits"].column("cost").high
        Fraction(5000, 1)
        """
        return SchemaFile.parse(text, name=name).schema

    @classmethod
    def from_dict(cls, declarations: Mapping[str, Any]) -> Schema:
        """The schema declared in a dict (``declarations``) of the same shape as the TOML file."""
        return _schema(Document(declarations))

    def resolve(
        self,
        *,
        columns: Callable[[Table], tuple[Column, ...]],
        values: Callable[[Table, Column], tuple[Value, ...]],
    ) -> Schema:
        """The schema with what public tables hold: their columns, and lists of allowed values.

        ``columns`` says which columns a public table declared without any has;
        ``values`` lists what a column of a public table holds.  Neither is ever
        called with a private table.
        """
        complete = {
            name: replace(table, columns=columns(table))
            if table.public and not table.columns
            else table
            for name, table in self.tables.items()
        }
        known = replace(self, tables=complete)  # checks values_from once more
        filled = {
            name: replace(
                table, columns=tuple(known._fill(table, c, values) for c in table.columns)
            )
            for name, table in complete.items()
        }
        return replace(self, tables=filled)

    def _fill(
        self, table: Table, column: Column, values: Callable[[Table, Column], tuple[Value, ...]]
    ) -> Column:
        if column.values_from is None:
            return column
        name, other = column.values_from
        source = self.tables[name].column(other)
        if source is None:
            raise SchemaRefusal(
                "S6",
                f"column {column.name!r} of {table.name!r} takes its values from "
                f"'{name}.{other}', which does not exist.",
                why="the list says which groups exist.",
                fix=f"name one of {', '.join(c.name for c in self.tables[name].columns)}.",
            )
        listed = sorted(set(values(self.tables[name], source)), key=_order)
        if not listed:
            raise SchemaRefusal(
                "S6",
                f"'{name}.{other}' holds no value for column {column.name!r} of {table.name!r}.",
                why="the list says which groups exist.",
                fix="fill the public table, or list the values in the schema.",
            )
        return replace(column, values=tuple(listed), values_from=None)


def _order(value: Value) -> Any:
    number = number_of(value)
    return value if number is None else number


def _schema(document: Document) -> Schema:
    tables, neighbours = read_tables(document)
    population = read_population(document)
    for name, table in tables.items():
        with document.at("tables", name, "blocks"):
            check_block_columns(table)
            check_blocks(table, tables, neighbours)
        for column in table.columns:  # said on the line of the column
            if column.values_from is not None:
                with document.at("tables", name, "columns", column.name):
                    Schema(tables, neighbours)._check_source_of_values(table, column)
    with document.at("tables"):
        schema = Schema(tables, neighbours, population)
    with document.at("max_joined_rows_per_unit"):
        most = document.data.get("max_joined_rows_per_unit")
        schema = replace(schema, max_joined_rows_per_unit=most)
    entities = read_entities(document)
    for name, budget in entities.items():  # said on the line of each
        with document.at("entities", name):
            replace(schema, entities={name: budget})
    return replace(schema, entities=entities)


FILL_IN = "FILL IN"
"""What stands in a draft where the curator must decide; no schema is accepted with it."""


def _refuse_unfilled(document: Document) -> None:
    """Refuse a draft, naming all that is still to be decided."""
    left = list(_list_unfilled(document.data, ()))
    if not left:
        return
    lines = sorted({document.lines[path] for path in left if path in document.lines})
    also = f" (so are lines {', '.join(map(str, lines[1:]))})" if len(lines) > 1 else ""
    with document.at(*left[0]):
        raise SchemaRefusal(
            "S2",
            f"{left[0][-1]!r} is still {FILL_IN!r}{also}.",
            why="only somebody who knows the people in the data can say whom to protect, and how.",
            fix="write what you know in place of each; the draft's comments say what is meant.",
        )


def _list_unfilled(data: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _list_unfilled(value, (*path, key))
        elif isinstance(value, str) and value.startswith(FILL_IN):
            yield (*path, key)


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """One ``discreet.toml``: the schema, and the sections that are for the curator."""

    schema: Schema
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    document: Document = field(default_factory=lambda: Document({}))

    @property
    def budget(self) -> Mapping[str, Any]:
        """The section [budget]: exact decimals, as written."""
        return self.settings.get("budget", {})

    @classmethod
    def read(cls, file: str | Path) -> SchemaFile:
        """Read a file."""
        path = Path(file)
        if not path.exists():
            raise SchemaRefusal(
                "S1",
                f"there is no file {path}.",
                why="without a schema nobody has said who is to be protected.",
                fix="give the path of a discreet.toml, or draft one: `discreet init DIR --from "
                "FILE`.",
            )
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise SchemaRefusal(
                "S1",
                f"{path} cannot be read as a text file.",
                why="without a schema nobody has said who is to be protected.",
                fix="give the path of a TOML file, in UTF-8.",
            ) from None
        return cls.parse(text, name=path.name)

    @classmethod
    def parse(cls, text: str, *, name: str = "the schema") -> SchemaFile:
        """Read a text; refusals name its lines."""
        document = Document.parse(text, name=name)
        _refuse_unfilled(document)
        schema = _schema(document)
        settings = {}
        for key in SETTINGS:
            if key in document.data:
                value = document.data[key]
                with document.at(key):
                    if not isinstance(value, Mapping):
                        raise SchemaRefusal(
                            "S2",
                            f"{key} is {quote_value(value)}, not a section.",
                            why="a declaration that is not understood could protect nobody.",
                            fix=f"write a section [{key}].",
                        )
                settings[key] = value
        return cls(schema, settings, document)
