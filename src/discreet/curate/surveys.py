"""Surveys beside a curator's tables: each is a public table of reports, and asking it is free."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.curate.collected import Collected
from discreet.errors import SchemaRefusal
from discreet.exact.numbers import Exact
from discreet.local.collection import Collection
from discreet.local.survey import Survey
from discreet.publication.told import Told

if TYPE_CHECKING:
    from discreet.curate.curator import Curator

Rows = list[dict[str, Any]]


class Surveys:
    """The surveys whose reports a ``curator`` answers questions about.

    ``folders`` says where the reports of each are, by the name of the table that they are.
    Nobody's budget is touched: respondents paid when they reported, and reports are public.
    """

    def __init__(self, curator: Curator, folders: Mapping[str, Path]) -> None:
        taken = sorted(set(folders) & set(curator.schema.tables))
        if taken:
            raise SchemaRefusal(
                "S2",
                f"the survey {taken[0]!r} has the name of a table.",
                why="a question about private rows must not be answered from reports, nor read so.",
                fix="give the survey another name in [surveys].",
            )
        released = sorted(set(folders) & set(curator.releases.names()))
        if released:
            raise SchemaRefusal(
                "S2",
                f"the survey {released[0]!r} has the name of a release.",
                why="a question would have two answers: from reports, and from the release.",
                fix="give the survey another name in [surveys]; a release keeps its own.",
            )
        self._curator, self._folders = curator, dict(folders)
        self._read: dict[str, tuple[int, Collected]] = {}

    def names(self) -> list[str]:
        """Under which names surveys can be asked."""
        return sorted(self._folders)

    def list_surveys(self) -> dict[str, Survey]:
        """What is asked in each, under its name; no report is read."""
        return {name: Collection(self._folders[name]).survey for name in self.names()}

    def find(self, name: str) -> Collected:
        """The reports that the survey ``name`` has now, beside the public tables it may join."""
        if name not in self._folders:
            raise SchemaRefusal(
                "S20",
                f"there is no survey {name!r}.",
                why="reports belong to the questions they were randomised for.",
                fix=f"there are: {', '.join(self.names()) or 'none; declare one in [surveys]'}.",
            )
        collection = Collection(self._folders[name])
        count = collection.count
        read = self._read.get(name)
        if read is None or read[0] != count:  # reports are only ever added
            reports = collection.reports()
            read = len(reports), Collected(collection.survey, reports, name, self._list_public())
            self._read[name] = read
        return read[1]

    def tell(self, name: str, sql: str, *, confidence: Exact = "0.95") -> Told:
        """What the reports say to ``sql``, a SELECT about the survey ``name``; free.

        Margins are at ``confidence``.
        """
        return self.find(name).tell(sql, confidence=confidence)

    def _list_public(self) -> dict[str, tuple[Any, Rows]]:
        found = {}
        for name, table in self._curator.schema.tables.items():
            if table.public:
                columns = self._curator.engine.public_rows(name)
                rows = [
                    dict(zip(columns, row, strict=True))
                    for row in zip(*columns.values(), strict=True)
                ]
                found[name] = (table, rows)
        return found


__all__ = ["Surveys"]
