"""A real server on a made-up clinic, as a new user starts it: init, serve, ask."""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from patience import PATIENCE_S, wait_until

KEY = re.compile(r"discreet_[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Served:
    """Where the server is, and the curator's key."""

    url: str
    key: str
    dataset: str
    process: subprocess.Popen[bytes]
    verify: ssl.SSLContext | bool = True

    def call(self, method: str, path: str, body: Any = None, *, key: str | None = None) -> Any:
        """One request as the curator, or with another key; refusals raise."""
        headers = {"Authorization": f"Bearer {key or self.key}"}
        url = f"{self.url}/v1/datasets/{self.dataset}/{path}"
        response = httpx.request(
            method, url, json=body, headers=headers, timeout=PATIENCE_S, verify=self.verify
        )
        response.raise_for_status()
        return response.json() if response.content else None

    def analyst(self, name: str, *, epsilon: str | None = None) -> str:
        """A new analyst's key."""
        limit = None if epsilon is None else {"epsilon": epsilon, "delta": "0"}
        self.call("POST", "analysts", {"name": name, "role": "analyst", "limit": limit})
        key: str = self.call("POST", f"analysts/{name}/keys", {})["key"]
        return key

    def spent(self, name: str) -> Any:
        """What an analyst has spent."""
        (found,) = [one for one in self.call("GET", "analysts")["analysts"] if one["name"] == name]
        return found["spent"]


@contextmanager
def serve(
    directory: Path,
    *options: str,
    budget: str = "50",
    verify: ssl.SSLContext | bool = True,
    more: Callable[[str], str] = lambda _: "",
) -> Iterator[Served]:
    """A session made by ``discreet init --sample``, with more budget, behind ``discreet serve``.

    ``more`` is what its settings say besides, given the address of the server.
    """
    home = directory / "clinic"
    made = subprocess.run(
        [sys.executable, "-m", "discreet", "init", str(home), "--sample"],
        check=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    settings = home / "discreet.toml"
    text = re.sub(r"^epsilon = \S+", f"epsilon = {budget}", settings.read_text(), flags=re.M)
    settings.write_text(text)
    (key,) = KEY.findall(made.stdout)
    with serve_session(home, key, *options, verify=verify, more=more) as served:
        yield served


@contextmanager
def serve_session(
    home: Path,
    key: str,
    *options: str,
    verify: ssl.SSLContext | bool = True,
    more: Callable[[str], str] = lambda _: "",
) -> Iterator[Served]:
    """A session that is there, with its curator's key, behind ``discreet serve``."""
    # Kept, never listened to: nobody else is given the port, and the server, which shares it as
    # any server does (SO_REUSEADDR), may have it.
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", 0))
    port = kept.getsockname()[1]
    scheme = "https" if "--tls-cert" in options else "http"
    url = f"{scheme}://127.0.0.1:{port}"
    with (home / "discreet.toml").open("a", encoding="utf-8") as settings:
        settings.write(more(url))
    log = (home.parent / "server.log").open("wb")
    process = subprocess.Popen(
        [sys.executable, "-m", "discreet", "serve", "--port", str(port), *options],
        stdout=log,
        stderr=subprocess.STDOUT,
        cwd=home,
    )
    try:
        _wait(url, process, verify)
        yield Served(url, key, home.name, process, verify)
    finally:
        end_process(process)
        kept.close()
        log.close()


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Ask a server to end, and see that it does; one that does not is killed, and it is told."""
    process.terminate()
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(PATIENCE_S)
        raise


def _wait(url: str, process: subprocess.Popen[bytes], verify: ssl.SSLContext | bool) -> None:
    with httpx.Client(timeout=PATIENCE_S, verify=verify) as client:

        def ready() -> bool:
            if process.poll() is not None:
                raise RuntimeError("the server ended")
            with suppress(httpx.HTTPError):
                return client.get(f"{url}/readyz").status_code == httpx.codes.OK
            return False

        wait_until(ready, pause_s=0.1)
