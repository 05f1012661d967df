"""A real OpenID Connect provider on this machine, and a browser that signs in with it.

The provider is a package's (on Authlib's server); around it stands what holds clients to PKCE,
which it does not ask for itself, and what lets a test put another token in place of the provider's.
"""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
from patience import PATIENCE_S, wait_until
from served import end_process


@dataclass(slots=True)
class LocalProvider:
    """A provider that runs."""

    issuer: str
    challenges: dict[str, str] = field(default_factory=dict)
    """What was announced of the verifier of each code."""
    change: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """What is done to the answer of the token endpoint."""
    redeemed: list[dict[str, str]] = field(default_factory=list)
    documents: dict[str, bytes] = field(default_factory=dict)
    """What is answered at an address instead of what the provider says there."""

    def add_user(self, subject: str, **claims: Any) -> None:
        """Somebody whom the provider knows."""
        found = httpx.put(
            f"{self.issuer}/users/{subject}", json=claims, timeout=PATIENCE_S, verify=False
        )
        found.raise_for_status()

    def note(self, asked: str, answered: str) -> None:
        """Take down what was announced of the verifier of a code, which an answer carries."""
        request, answer = (parse_qs(urlsplit(address).query) for address in (asked, answered))
        if "code" in answer and request.get("code_challenge_method") == ["S256"]:
            self.challenges[answer["code"][0]] = request["code_challenge"][0]

    def authorize(self, address: str, subject: str) -> str:
        """What somebody does at the provider: say who they are; the address they are sent to."""
        sent = httpx.post(address, data={"sub": subject}, timeout=PATIENCE_S, verify=False)
        assert sent.status_code == 302, sent.text
        return str(sent.headers["location"])

    def check_verifier(self, form: dict[str, str]) -> bool:
        """Whether a code is redeemed by whoever asked for it."""
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        said = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        return self.challenges.pop(form.get("code", ""), None) == said


@contextmanager
def run_provider() -> Iterator[LocalProvider]:
    """A provider in a process of its own, behind a port that holds clients to PKCE."""
    kept = socket.socket()  # nobody else is given the port
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", 0))
    inner = f"http://127.0.0.1:{kept.getsockname()[1]}"
    command = ["-m", "oidc_provider_mock", "--host", "127.0.0.1", "--require-nonce", "true"]
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", *command, "--port", inner.rpartition(":")[2]],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    found = LocalProvider("")
    front = ThreadingHTTPServer(("127.0.0.1", 0), _make_front(found, inner))
    found.issuer = f"http://localhost:{front.server_port}"
    thread = threading.Thread(target=front.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        wait_until(lambda: _answers(inner), pause_s=0.1)
        yield found
    finally:
        front.shutdown()
        thread.join(PATIENCE_S)
        front.server_close()
        end_process(process)
        kept.close()


def _answers(address: str) -> bool:
    with suppress(httpx.HTTPError):
        found = httpx.get(f"{address}/jwks", timeout=PATIENCE_S, verify=False)
        return found.status_code == httpx.codes.OK
    return False


def _make_front(found: LocalProvider, inner: str) -> type[BaseHTTPRequestHandler]:
    """What passes requests on, and looks at those that redeem a code."""

    class Front(BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            if self.path in found.documents:
                self._reply(200, "application/json", found.documents[self.path])
                return
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            redeeming = self.path == "/oauth2/token"
            form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            if redeeming:
                found.redeemed.append(form)
                if not found.check_verifier(form):
                    self._reply(400, "application/json", b'{"error": "invalid_grant"}')
                    return
            headers = {k: v for k, v in self.headers.items() if k.lower() != "accept-encoding"}
            got = httpx.request(
                self.command,
                inner + self.path,
                content=body,
                headers=headers,
                timeout=PATIENCE_S,
                verify=False,
            )
            content = got.content
            if redeeming and found.change is not None:
                content = json.dumps(found.change(got.json())).encode()
            kind, place = (got.headers.get(name, "") for name in ("content-type", "location"))
            found.note(self.path, place)
            self._reply(got.status_code, kind, content, place)

        do_GET = do_POST = do_PUT = _pass_on  # noqa: N815 (the words of the library)

        def _reply(self, status: int, kind: str, content: bytes, place: str = "") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if place:
                self.send_header("Location", place)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Print nothing among what the tests print."""

    return Front
