"""The server: the curator behind a door with a lock.

One process keeps the ledger and plans; others hold the engine and can be killed.
``application`` makes the ASGI application of some sessions, ``listen`` runs it.
"""

from __future__ import annotations

from discreet.server.app import application
from discreet.server.listen import listen

__all__ = ["application", "listen"]
