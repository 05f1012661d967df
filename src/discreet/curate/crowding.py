"""Tables whose rows have two owners are opened by a test: paid for once, its outcome public.

The test is charged when a table is prepared, once for each version of the data, and its outcome is
stored before it is told.  Without one that was passed no question about the table is charged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from discreet.curate.steps import CURATOR
from discreet.engine.protocol import describe_failure
from discreet.errors import DataRefusal
from discreet.exact.numbers import canonical_json
from discreet.ledger.charges import Request, Stored
from discreet.price.crowding import CrowdingTest
from discreet.question.ownership import list_tables
from discreet.question.relation import Relation
from discreet.question.schema import Owners, Table
from discreet.release.record import to_json
from discreet.release.release import release_crowding

if TYPE_CHECKING:
    from discreet.curate.curator import Curator

_OPENING = "CROWDING OF "


class Crowding:
    """The tests of a curator's tables."""

    def __init__(self, curator: Curator) -> None:
        self._curator = curator
        self._outcomes: dict[tuple[str, str], bool] = {}  # by table and version
        self.tables = tuple(
            name for name, t in curator.schema.tables.items() if t.owners is Owners.ANY
        )

    def test(self, tables: Iterable[str] | None = None) -> None:
        """Test each table of rows with two owners; what was tested before is not tested again."""
        named = self.tables if tables is None else [n for n in tables if n in self.tables]
        failed = [name for name in named if not self._test(self._curator.schema.tables[name])]
        if failed:
            raise _closed_refusal(self._curator.schema.tables[failed[0]])

    def check(self, relations: Iterable[Relation], version: str) -> None:
        """Refuse questions about a table that was not tested, or did not pass; free, and public.

        ``version`` is that of the data which the questions will be charged for.
        """
        if not self.tables:
            return
        asked = {table.name for relation in relations for table in list_tables(relation)}
        for name in self.tables:
            if name in asked:
                outcome = self._recall(self._curator.schema.tables[name], version)
                if outcome is None:
                    raise _untested_refusal(name)
                if not outcome:
                    raise _closed_refusal(self._curator.schema.tables[name])

    def _request(self, table: Table, version: str) -> Request:
        test, crowding = CrowdingTest.of(table), table.crowding
        same = {"crowding": to_json(table), "noise": str(test.noise.sigma_squared)}
        return Request(
            analyst=CURATOR,
            question=f"{_OPENING}{table.name}",
            spend={} if crowding is None else crowding.to_json(),
            key=hashlib.sha256(canonical_json(same, ascii_only=True).encode()).hexdigest(),
            data_version=version,
            formerly=self._curator.engine.former_version(),
            loss=test.loss,
            area=self._curator.everyone,
            entities=self._curator.list_entities(tables=[table.name]),
        )

    def _recall(self, table: Table, version: str) -> bool | None:
        """The outcome for one version of the data; None if there is none. Charges nothing."""
        place = (table.name, version)
        if place not in self._outcomes:
            request = self._request(table, version)
            if self._curator.account.find(request) != "stored":
                return None
            stored = self._curator.account.charge(request)
            if not isinstance(stored, Stored):
                raise TypeError("a stored outcome is not charged")
            self._outcomes[place] = _read(stored.answer)
        return self._outcomes[place]

    def _test(self, table: Table) -> bool:
        """Charge, run, publish: as for any question."""
        account, engine = self._curator.account, self._curator.engine
        request = self._request(table, engine.data_version())
        receipt = account.charge(request)  # durable from here on
        if isinstance(receipt, Stored):
            return _read(receipt.answer)
        body = None
        with suppress(Exception):  # left behind here: what is raised has no history
            passed = release_crowding(CrowdingTest.of(table), engine.count_crowd(table.name))
            if engine.data_version() == request.data_version:
                body = canonical_json({"Crowding": {"passed": passed}}).encode()
        if body is None:
            account.burn(receipt)
            raise describe_failure()
        return _read(account.publish(receipt, body))


def _read(body: bytes) -> bool:
    return bool(json.loads(body)["Crowding"]["passed"])


def _untested_refusal(name: str) -> DataRefusal:
    return DataRefusal(
        "D3",
        f"table {name!r} has rows of two people and was not tested; it stays closed.",
        why="what one person changes is bounded for everybody only if few people are in too many "
        "rows.",
        fix="have the curator prepare it, which tests it once for these data: discreet prepare, "
        "or curator.prepare().",
    )


def _closed_refusal(table: Table) -> DataRefusal:
    return DataRefusal(
        "D3",
        "it could not be shown that few enough people are in more than "
        f"{table.max_rows_per_unit:,} rows; table {table.name!r} stays closed.",
        why="what one person changes is bounded for everybody only if few people are in too many "
        "rows.",
        fix="raise max_rows_per_unit or lower max_rows_per_pair; the test has been paid for and "
        "its outcome is public.",
    )


__all__ = ["Crowding"]
