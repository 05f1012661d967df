"""The socket: TLS, or this machine only; no connection that waits for ever to say what it wants."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from discreet.errors import AccessRefusal, InvalidParameter
from discreet.ledger.keys import is_loopback
from discreet.server.envelope import HEADERS
from discreet.server.refusals import Unreadable
from discreet.server.sending import encode_json
from discreet.server.settings import HEADER_TIME_S
from discreet.server.state import GRACE_S

INSECURE = "--insecure-i-know-keys-can-be-read"
_MOST_HEADER = 32 * 1024
_KEEP_ALIVE_S = 30


def check_line(host: str, *, tls: bool, insecure: bool) -> None:
    """Refuse to listen where keys could be read on the way.

    >>> check_line("127.0.0.1", tls=False, insecure=False)
    >>> check_line("0.0.0.0", tls=False, insecure=False)
    Traceback (most recent call last):
    discreet.errors.AccessRefusal: A19: '0.0.0.0' can be reached from other machines,
    and there is no TLS.
    Why: whoever reads a key on the way can spend what the people in the data may lose.
    Fix: give --tls-cert and --tls-key, listen on 127.0.0.1,
    or say --insecure-i-know-keys-can-be-read.
    """
    if tls or insecure or is_loopback(host):
        return
    raise AccessRefusal(
        "A19",
        f"{host!r} can be reached from other machines, and there is no TLS.",
        why="whoever reads a key on the way can spend what the people in the data may lose.",
        fix=f"give --tls-cert and --tls-key, listen on 127.0.0.1, or say {INSECURE}.",
    )


def listen(
    app: ASGIApp,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    insecure: bool = False,
    ready: Callable[[], None] | None = None,
) -> None:
    """Serve until told to stop; a stop finishes what is under way or leaves it resumable.

    ``ready`` is called once, when the socket takes connections.
    """
    check_certificate(tls_cert, tls_key)
    check_line(host, tls=tls_cert is not None, insecure=insecure)
    config = configuration(app, host=host, port=port, tls_cert=tls_cert, tls_key=tls_key)
    Telling(config, ready).run()


class Telling(uvicorn.Server):
    """A server that says when it can be reached, and not before."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None] | None) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open what is served, and the socket; then say so."""
        await super().startup(sockets)
        if self.started and self._ready is not None:
            self._ready()


def check_port(host: str, port: int, option: str = "--port") -> None:
    """Refuse a port on which another program listens, before anybody is told to come there.

    >>> check_port("127.0.0.1", 0)
    """
    for family, kind, protocol, _, address in socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM
    ):
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(address)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    continue  # whoever listens in earnest says what else is wrong
                raise AccessRefusal(
                    "A22",
                    f"another program listens on port {port} of {host!r}.",
                    why="people would send their keys and questions to it.",
                    fix=f"stop it (perhaps an earlier discreet serve), or give another {option}.",
                ) from None


def check_certificate(tls_cert: Path | None, tls_key: Path | None) -> None:
    """Refuse a certificate without its key, and one that cannot be read."""
    if (tls_cert is None) != (tls_key is None):
        raise InvalidParameter(
            "P4",
            "TLS needs a certificate and its key, and one is missing.",
            why="without both the line is open.",
            fix="give both --tls-cert FILE and --tls-key FILE.",
        )
    if tls_cert is None:
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(tls_cert, tls_key)
    except OSError:  # an SSLError is one; its text quotes files
        raise InvalidParameter(
            "P4",
            "the certificate and its key cannot be read, or do not belong together.",
            why="without both the line is open.",
            fix="give PEM files: --tls-cert FILE with the chain, --tls-key FILE with its key.",
        ) from None


def configuration(app: ASGIApp, **where: Any) -> uvicorn.Config:
    """How the socket is served: our log only, bounded headers, no server named."""
    return uvicorn.Config(
        app,
        host=where["host"],
        port=where["port"],
        ssl_certfile=where.get("tls_cert"),
        ssl_keyfile=where.get("tls_key"),
        http=Patient,
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=_MOST_HEADER,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=int(GRACE_S),
    )


class Patient(H11Protocol):
    """HTTP/1.1 that is patient, but not for ever, and refuses in the one shape."""

    _impatience: asyncio.TimerHandle | None = None
    _waited = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Give the client a while to send the head of its request."""
        super().connection_made(transport)
        self._impatience = self.loop.call_later(HEADER_TIME_S / 2, self._look)

    def _look(self) -> None:
        """Close the connection if it is still at the head of a request, twice in a row."""
        idle = self.timeout_keep_alive_task is not None  # between requests, under its own timer
        waiting = self.conn.their_state is h11.IDLE and not idle
        if waiting and self._waited:
            self.transport.close()
            return
        self._waited = waiting
        self._impatience = self.loop.call_later(HEADER_TIME_S / 2, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the client."""
        if self._impatience is not None:
            self._impatience.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """Refuse bytes that are not HTTP, in the one shape."""
        refusal = Unreadable("this is not HTTP as it is spoken here.", "send an HTTP/1.1 request.")
        body = encode_json(refusal.to_json())
        head = h11.Response(
            status_code=400,
            headers=[
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                (b"cache-control", b"no-store"),
                (b"connection", b"close"),
                *HEADERS,
            ],
        )
        try:
            for event in (head, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:  # a response was under way already
            pass
        self.transport.close()
