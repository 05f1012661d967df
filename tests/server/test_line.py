"""The line itself: TLS with a certificate, and checkpoints signed over it."""

from __future__ import annotations

import json
import ssl

import pytest
import served
from certificates import certificate
from patience import PATIENCE_S

from discreet.curate import remote as client
from discreet.errors import AccessRefusal, InvalidParameter
from discreet.ledger import Checkpoint, new_signing_key
from discreet.server.listen import listen


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


@pytest.mark.parametrize("files", [("cert.pem", "cert.pem"), ("none.pem", "key.pem")])
def test_a_certificate_that_cannot_be_used_is_refused(tmp_path, files):
    certificate(tmp_path)
    cert, key = (tmp_path / name for name in files)
    with pytest.raises(InvalidParameter, match="P4: the certificate"):
        listen(None, host="0.0.0.0", tls_cert=cert, tls_key=key)
    with pytest.raises(InvalidParameter, match="P4: TLS needs"):
        listen(None, host="0.0.0.0", tls_cert=tmp_path / "cert.pem")
