"""Releases and surveys in the empty PostgreSQL: listed as they are now, without a row.

They come and go while the server runs, and clients describe them as any table.
"""

from __future__ import annotations

import asyncio

from discreet.curate.curator import Curator
from discreet.curate.free_tables import FreeTable, list_free_tables
from discreet.server.postgres.catalogue import OWNER, Catalogue, write_changes
from discreet.server.postgres.relay import Failed, Relay


class Listing:
    """What one dataset's empty server lists beside the declared tables."""

    def __init__(self, curator: Curator, catalogue: Catalogue) -> None:
        self._curator = curator
        self._catalogue = catalogue
        self._shown: dict[str, FreeTable] = {}
        self._changing = asyncio.Lock()

    async def connect(self, *, typing: bool = False) -> Relay:
        """A connection for an analyst's statements."""
        return await Relay.open(self._catalogue.socket, self._catalogue.database, typing=typing)

    async def renew(self) -> None:
        """List what there is now; where that cannot be done, what was listed stays."""
        free = await asyncio.to_thread(list_free_tables, self._curator)
        async with self._changing:
            if free == self._shown:
                return
            place = self._catalogue
            owner = await Relay.open(place.socket, place.database, user=OWNER)
            try:
                await owner.run_script(write_changes(self._shown, free))
            except Failed:  # a statement that takes long reads what would change
                return
            finally:
                owner.close()
            self._shown = free


__all__ = ["Listing"]
