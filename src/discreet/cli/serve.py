"""``discreet serve``: sessions over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_Directories = Annotated[
    list[Path] | None,
    typer.Argument(metavar="DIR", help="Sessions to serve; the current directory if none."),
]


def serve(  # noqa: PLR0913, PLR0917 (each is an option)
    directories: _Directories = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8765,
    postgres: Annotated[
        int | None, typer.Option(help="Port for PostgreSQL's clients, beside HTTP.")
    ] = None,
    flight: Annotated[
        int | None, typer.Option(help="Port for Arrow Flight SQL (ADBC), beside HTTP.")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate file (PEM).")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Key file of the certificate.")] = None,
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure-i-know-keys-can-be-read",
            help="Listen beyond this machine without TLS (behind a proxy that does it).",
        ),
    ] = False,
    signing_key: Annotated[
        Path | None, typer.Option(help="Key that signs checkpoints made over HTTP.")
    ] = None,
) -> None:
    """Serve sessions over HTTP, with a page to ask on."""
    from discreet.curate import session
    from discreet.server import application, listen
    from discreet.server.beside import Beside
    from discreet.server.listen import check_certificate, check_line, check_port

    check_line(host, tls=tls_cert is not None, insecure=insecure)
    sessions = [session.read(directory) for directory in directories or [Path()]]
    scheme = "http" if tls_cert is None else "https"
    check_certificate(tls_cert, tls_key)
    beside = Beside(host, postgres, flight, tls_cert, tls_key)
    for option, wanted in (("--port", port), ("--postgres", postgres), ("--flight", flight)):
        if wanted is not None:
            check_port(host, wanted, option)
    app = application(sessions, signing_key=signing_key, beside=beside)

    def tell() -> None:
        typer.echo(f"{scheme}://{host}:{port}/  (Ctrl-C stops)", err=True)
        for name, other in (("postgresql", postgres), ("grpc", flight)):
            if other is not None:
                typer.echo(f"{name}://{host}:{other}/", err=True)

    listen(
        app,
        host=host,
        port=port,
        tls_cert=tls_cert,
        tls_key=tls_key,
        insecure=insecure,
        ready=tell,
    )
