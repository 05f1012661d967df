"""A dataset as its curator declares it, and what of that is new to the ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from discreet.accounting.budget import Budget
from discreet.accounting.neighbours import Neighbours
from discreet.errors import LedgerRefusal
from discreet.exact.numbers import canonical_json
from discreet.exact.records import dataclass
from discreet.ledger.analysts import Policy
from discreet.ledger.books import Books, Standing
from discreet.ledger.journal import Writer
from discreet.question.blocks import Space
from discreet.question.ownership import unit_of
from discreet.question.schema import Owners, Schema, Table
from discreet.release.record import to_json


@dataclass(frozen=True, slots=True)
class DatasetDeclaration:
    """What a dataset is to be: who is in it, its blocks, what may be lost, under which rules."""

    dataset: str
    version: str
    people: dict[str, Any]
    space: Space
    budget: Budget
    policy: Policy
    population: int | None = None
    max_joined_rows_per_unit: int = 0
    """How much work one unit may cause: not part of answers, so that they stay what they were,
    but part of what is declared."""
    entities: Mapping[str, Budget] = field(default_factory=dict)
    """What people who may be in other datasets, too, may lose in all of them together."""

    @classmethod
    def of(
        cls, dataset: str, *, schema: Schema, budget: Budget, policy: Policy
    ) -> DatasetDeclaration:
        """The declaration of a dataset with this schema."""
        most = schema.max_joined_rows_per_unit
        written = to_json(schema)
        if most is not None:  # without it, the version that ledgers know
            written = {"schema": written, "max_joined_rows_per_unit": most}
        version = hashlib.sha256(canonical_json(written).encode()).hexdigest()
        return cls(
            *(dataset, version, _people(schema), Space.of(schema), budget, policy),
            population=schema.population,
            max_joined_rows_per_unit=schema.most_joined_rows,
            entities=dict(schema.entities),
        )

    def is_recorded(self, books: Books) -> bool:
        """Whether the ledger says all this already."""
        standing = books.datasets.get(self.dataset)
        return standing is not None and (
            standing.version == self.version
            and standing.budget == self.budget
            and standing.policy == self.policy
            and not self._list_changes(books)
        )

    def _list_changes(self, books: Books) -> list[tuple[str, Budget | None]]:
        """Entities whose budget this dataset states anew, or no more."""
        stated = {
            name: entity.budget
            for name, entity in books.entities.items()
            if self.dataset in entity.declared_by
        }
        kept: list[tuple[str, Budget | None]] = [
            (name, budget) for name, budget in self.entities.items() if stated.get(name) != budget
        ]
        return kept + [(name, None) for name in stated if name not in self.entities]

    def record(self, books: Books, writer: Writer) -> Budget | None:
        """Record what is new or has changed; the budget that held before, if it is another now."""
        standing = books.datasets.get(self.dataset)
        self._check_entities(books)
        if standing is None or standing.budget != self.budget:
            # What was promised before stays promised, and such a ledger opens as it is.
            self.budget.check_delta(self.population)
        if standing is None:
            writer.append(
                "dataset",
                {"budget": to_json(self.budget), "policy": self.policy.to_json()},
                dataset=self.dataset,
            )
            self._record_schema(None, writer)
            self._record_entities(books, writer)
            return None
        former = None if standing.budget == self.budget else standing.budget
        if standing.version != self.version:
            self._same_people(standing)
            self._same_sizes(standing)
            self._record_schema(standing, writer)
        if former is not None:
            writer.append("budget", {"budget": to_json(self.budget)}, dataset=self.dataset)
        if standing.policy != self.policy:
            writer.append("policy", {"policy": self.policy.to_json()}, dataset=self.dataset)
        self._record_entities(books, writer)
        return former

    def _record_entities(self, books: Books, writer: Writer) -> None:
        for name, budget in self._list_changes(books):
            said = None if budget is None else to_json(budget)
            writer.append("entity", {"entity": name, "budget": said}, dataset=self.dataset)

    def _check_entities(self, books: Books) -> None:
        """Refuse people who are declared in two ways, before anything is recorded."""
        for name, budget in self._list_changes(books):
            if budget is None:
                continue
            budget.check_delta(self.population)
            known = books.entities.get(name)
            if known is None or known.budget == budget:
                continue
            if known.declared_by - {self.dataset}:
                raise _otherwise_refusal(
                    f"the budget of {name!r} is {known.budget} in another dataset, and {budget} "
                    f"in {self.dataset!r}",
                    f"write the same budget in [entities.{name}] of both; to change it, take the "
                    "section out of all files but one, and open their sessions.",
                )
        for name in {*self.entities, *books.entities}:
            named = any(person[0] == name for person in self.people.values())
            if named and len(books.neighbours_of(name, self.people)) > 1:
                raise _otherwise_refusal(
                    f"neighbours of {name!r} are something else in another dataset than in "
                    f"{self.dataset!r}",
                    "declare the same neighbours, or give the tables here an entity of another "
                    "name, whose people then have a budget of their own.",
                )

    def _record_schema(self, standing: Standing | None, writer: Writer) -> None:
        space, origins = self.space.identity(), None
        if standing is not None and standing.space != space:
            origins = _origins(self.space, standing)
        unchanged = standing is not None and origins is None
        content = {
            "version": self.version,
            "people": self.people,
            "space": None if unchanged else space,
            "size": self.space.size,
            "origins": origins,
            "max_joined_rows_per_unit": self.max_joined_rows_per_unit,
        }
        writer.append("schema", content, dataset=self.dataset)

    def _same_people(self, standing: Standing) -> None:
        """What was promised to one person cannot be counted for another kind of person.

        Neighbours hold for the whole dataset, whatever its tables are called.  Of a table with a
        new name nobody but the curator can say whose rows it has.
        """
        neighbours = {person[-1] for person in standing.people.values()}
        for table, person in self.people.items():
            if standing.people.get(table, person) != person or neighbours - {person[-1]}:
                raise LedgerRefusal(
                    "L11",
                    f"table {table!r} of dataset {self.dataset!r} now says otherwise who one "
                    "person is, or what a neighbour is.",
                    why="what was charged so far protects those who were meant before, and says "
                    "nothing of what these have lost.",
                    fix="keep the unit and the neighbours, or open the data as a dataset of "
                    "another name, with a budget that allows for what was released already.",
                )

    def _same_sizes(self, standing: Standing) -> None:
        """How many units the only table about them has is public where neighbours change one.

        A second table about them would take that back: who is in the one may be in the other.
        """
        about = [person[0] for person in standing.people.values()]
        for table, person in self.people.items():
            changed = person[-1] == Neighbours.CHANGE_ONE.value
            if changed and table not in standing.people and about.count(person[0]) == 1:
                raise LedgerRefusal(
                    "L11",
                    f"table {table!r} of dataset {self.dataset!r} is a second one about "
                    f"{person[0]!r}, and neighbours change one unit.",
                    why="how many units the first table has was public so far; with two tables it "
                    "would tell in which of them somebody is.",
                    fix="open the data as a dataset of another name with both tables, and a budget "
                    "that allows for what was released already; or give the table an entity of its "
                    "own.",
                )


def _otherwise_refusal(what: str, fix: str) -> LedgerRefusal:
    return LedgerRefusal(
        "L15",
        f"{what}.",
        why="what people in several datasets lose in all is counted once, under one promise.",
        fix=fix,
    )


def _people(schema: Schema) -> dict[str, Any]:
    return {
        name: [unit_of(table).entity, _owners(table), schema.neighbours.value]
        for name, table in schema.tables.items()
        if not table.public
    }


def _owners(table: Table) -> list[str]:
    """The unit's columns, after what they are together, if that is not one person."""
    named = list(table.unit or ())
    return named if table.owners is Owners.ONE else [f"{table.owners.value} of", *named]


def _origins(space: Space, standing: Standing) -> list[Any]:
    """For each block, where its people may have been: the number of a block, or ranges."""
    return [
        ranges[0][0] if len(ranges) == 1 and ranges[0][1] - ranges[0][0] == 1 else ranges
        for ranges in space.origins(standing.space)
    ]
