"""The line itself: TLS with a certificate, and checkpoints signed over it."""

from __future__ import annotations

import asyncio
import json
import ssl

import pytest
import served
from certificates import certificate
from patience import PATIENCE_S

from discreet.cli.serve import serve
from discreet.curate import remote as client
from discreet.curate import session
from discreet.errors import AccessRefusal, InvalidParameter
from discreet.ledger import Checkpoint, new_signing_key
from discreet.server.listen import Telling, configuration, listen


def test_tls_and_signed_checkpoints(tmp_path, monkeypatch):
    """A client that trusts the certificate asks, another sends nothing; the curator signs."""
    cert, key = certificate(tmp_path)
    signing = tmp_path / "signing.pem"
    public = new_signing_key(signing)
    trusted = ssl.create_default_context(cafile=cert)
    options = ("--tls-cert", str(cert), "--tls-key", str(key), "--signing-key", str(signing))
    with served.serve(tmp_path, *options, verify=trusted) as server:
        assert server.url.startswith("https://")
        with client.connect(
            server.url, key=server.key, verify=trusted, timeout_s=PATIENCE_S
        ) as clinic:
            answer = clinic.ask("SELECT COUNT(*) AS n FROM patients", epsilon="0.1")
            assert isinstance(answer.value(), int)
        monkeypatch.setattr(client, "_PAUSE_S", 0.0)
        with pytest.raises(AccessRefusal, match="A17"):
            client.connect(server.url, key=server.key, timeout_s=PATIENCE_S)
        plain = server.url.replace("https", "http")
        with pytest.raises(AccessRefusal, match="A17"):
            client.connect(plain, key=server.key, timeout_s=PATIENCE_S)
        made = server.call("POST", "checkpoints")
        assert made["public_key"] == public
        assert server.call("GET", "checkpoints")["checkpoints"] == [made]
        (kept,) = (tmp_path / "clinic").rglob(f"{made['sequence']:012d}.json")
        checkpoint = Checkpoint.from_json(json.loads(kept.read_bytes()))  # its signature is checked
        assert checkpoint.signature == made["signature"]
        assert server.call("POST", "verify")["holds"] is True


def test_an_address_is_told_when_connections_are_taken():
    """And not while what is served is still being opened."""
    done: list[str] = []

    async def app(scope, receive, send):
        assert scope["type"] == "lifespan"
        await receive()
        await asyncio.sleep(0.05)
        done.append("opened")
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})

    def tell() -> None:
        (listening,) = server.servers
        done.append(f"told, {listening.is_serving()}")
        server.should_exit = True

    server = Telling(configuration(app, host="127.0.0.1", port=0), tell)
    server.run()
    assert done == ["opened", "told, True"]


def test_the_command_tells_its_address_then(tmp_path, monkeypatch, capsys):
    (tmp_path / "v.csv").write_text("who\n1\n2\n")
    text = '[budget]\nepsilon = 3\n[tables.v]\nsource = "v.csv"\nunit = "who"\n'
    session.init(tmp_path, f'{text}max_rows_per_unit = 1\ncolumns.who = "integer"\n')

    def serving(_app, *, ready, **_where) -> None:
        assert capsys.readouterr().err == ""
        ready()

    monkeypatch.setattr("discreet.server.listen", serving)
    serve([tmp_path], port=0)
    assert capsys.readouterr().err == "http://127.0.0.1:0/  (Ctrl-C stops)\n"


@pytest.mark.parametrize("files", [("cert.pem", "cert.pem"), ("none.pem", "key.pem")])
def test_a_certificate_that_cannot_be_used_is_refused(tmp_path, files):
    certificate(tmp_path)
    cert, key = (tmp_path / name for name in files)
    with pytest.raises(InvalidParameter, match="P4: the certificate"):
        listen(None, host="0.0.0.0", tls_cert=cert, tls_key=key)
    with pytest.raises(InvalidParameter, match="P4: TLS needs"):
        listen(None, host="0.0.0.0", tls_cert=tmp_path / "cert.pem")
