"""What listens beside HTTP: PostgreSQL's protocol, and Arrow Flight SQL; same keys, same limits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from discreet.server.state import ServerState


class Door(Protocol):
    """Another way in, open while the server runs."""

    @property
    def port(self) -> int:
        """Where it listens."""

    async def open(self) -> None:
        """Listen."""

    async def close(self) -> None:
        """Take nothing new, and let go of everything."""


@dataclass(frozen=True, slots=True)
class Beside:
    """Which ports are listened on beside HTTP's; with its host and its certificate."""

    host: str = "127.0.0.1"
    postgres: int | None = None
    flight: int | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None

    def doors(self, server: ServerState) -> dict[str, Door]:
        """The doors of a server, not yet open."""
        found: dict[str, Door] = {}
        tls = {"tls_cert": self.tls_cert, "tls_key": self.tls_key}
        if self.postgres is not None:
            from discreet.server.postgres.door import PostgresDoor

            found["postgres"] = PostgresDoor(server, host=self.host, port=self.postgres, **tls)
        if self.flight is not None:
            from discreet.server.flight.door import FlightDoor

            found["flight"] = FlightDoor(server, host=self.host, port=self.flight, **tls)
        return found
