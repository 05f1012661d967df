"""A server in this process, on a real socket: its engines are processes of their own."""

from __future__ import annotations

import asyncio
import io
import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import uvicorn
from certificates import certificate
from patience import PATIENCE_S, wait_until
from services import require

from discreet.curate import session
from discreet.ledger import keys as access
from discreet.server.app import application
from discreet.server.beside import Beside
from discreet.server.listen import configuration
from discreet.server.log import Log

CANARY = "Q7ZANARY"
"""A value that is in the data and must never come out."""
CITIES = ("Aalborg", "Bergen", "Cork")
PEOPLE = 3000
DEADLINE_S = 1.0
COUNT = "SELECT COUNT(*) AS n FROM visits"

SETTINGS = """
[budget]
epsilon = {epsilon}
delta = 1e-9

[policy]
shared_answers = {shared}

[server]
{server}

[tables.visits]
source = "visits.parquet"
unit = "patient"
max_rows_per_unit = 3

[tables.visits.columns]
patient = "integer"
city = {{ type = "text", values = ["Aalborg", "Bergen", "Cork"], nullable = false }}
age = {{ type = "integer", bounds = [0, 110] }}
income = {{ type = "decimal" }}
remark = {{ type = "text" }}
"""
QUICK = """
deadline_s = 0.05
time_limit_s = 600
rate_per_minute = 1e6
burst = 100000
concurrent = 1000
queue = 5000
"""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A session and its curator's key."""

    home: Path
    key: str


def dataset(
    home: Path,
    *,
    server: str = QUICK,
    epsilon: str = "1000",
    damaged: bool = False,
    missing: bool = False,
    shared: bool = True,
    more: str = "",
) -> Dataset:
    """A made-up clinic with a canary in it; a damaged one cannot be read."""
    home.mkdir(parents=True)
    source = home / "visits.parquet"
    people = list(range(PEOPLE))
    columns = {
        "patient": people,
        "city": [CITIES[n % 3] for n in people],
        "age": [n % 100 for n in people],
        "income": [float(n) for n in people],
        "remark": [CANARY] * PEOPLE,
    }
    pq.write_table(pa.table(columns), source, compression=None)
    if damaged:
        content = source.read_bytes()
        source.write_bytes(content[:200] + CANARY.encode() * 50 + content[-2000:])
    if missing:
        source.unlink()
    text = SETTINGS.format(epsilon=epsilon, server=server, shared=str(shared).lower())
    made = session.init(home, text + more)
    with closing(made.curator(opened=False)) as curator:
        return Dataset(home, access.new_key(curator.account, "curator"))


@dataclass(slots=True)
class Running:
    """A server that runs."""

    url: str
    datasets: dict[str, Dataset]
    app: Any
    log: io.StringIO
    client: httpx.Client
    _names: Iterator[int] = field(default_factory=itertools.count)

    @property
    def state(self) -> Any:
        """The server's state."""
        return self.app._app._app.state.server

    def port(self, door: str) -> int:
        """Where another door listens."""
        return int(self.app._app._app.state.doors[door].port)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        headers: dict[str, str] | None = None,
        dataset: str = "clinic",
    ) -> httpx.Response:
        """One request, as the curator unless another key is given."""
        sent = {"Authorization": f"Bearer {key or self.datasets[dataset].key}", **(headers or {})}
        full = path if path.startswith("/") else f"/v1/datasets/{dataset}/{path}"
        return self.client.request(method, full, json=body, headers=sent)

    def ask(
        self, question: str, epsilon: str = "1/50", *, fresh: bool = False, **options: Any
    ) -> httpx.Response:
        """Ask a question, and wait for its answer however long it takes."""
        body: dict[str, Any] = {"question": question, "epsilon": epsilon, "wait_s": 60}
        if fresh:  # whatever the tests before have learnt
            body["fresh"] = True
        end = time.monotonic() + PATIENCE_S
        while (found := self.call("POST", "ask", body, **options)).status_code == 202:
            # The same question again waits for the same answer, and is not charged.
            assert time.monotonic() < end, found.text
        return found

    def person(
        self,
        *,
        name: str | None = None,
        role: str = "analyst",
        dataset: str = "clinic",
        **limits: Any,
    ) -> str:
        """The key of somebody new."""
        name = name or f"{role}{next(self._names)}"
        body = {"name": name, "role": role, **limits}
        made = self.call("POST", "analysts", body, dataset=dataset)
        assert made.status_code == 201, made.text
        new = self.call("POST", f"analysts/{name}/keys", {}, dataset=dataset)
        return str(new.json()["key"])


@contextmanager
def running(
    datasets: dict[str, Dataset], beside: Beside | None = None, *, port: int = 0
) -> Iterator[Running]:
    """The server of some datasets, ready."""
    log = io.StringIO()
    sessions = [session.read(one.home) for one in datasets.values()]
    app = application(sessions, log=Log(log), beside=beside)
    many = httpx.Limits(max_connections=200)
    with (
        listening(app, port) as url,
        httpx.Client(base_url=url, timeout=PATIENCE_S, limits=many) as client,
    ):
        found = Running(url, datasets, app, log, client)
        wait_until(lambda: found.state.ready)
        yield found


@contextmanager
def listening(app: Any, port: int = 0) -> Iterator[str]:
    """The address at which an application answers."""
    server = uvicorn.Server(configuration(app, host="127.0.0.1", port=port))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The server that most tests share: a clinic, one with a damaged file, one with none."""
    home = tmp_path_factory.mktemp("served")
    datasets = {
        "clinic": dataset(home / "clinic"),
        "damaged": dataset(home / "damaged", damaged=True),
        "missing": dataset(home / "missing", missing=True),
    }
    with running(datasets) as found:
        yield found


@pytest.fixture(scope="session")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with every door: two clinics, PostgreSQL's protocol and Flight beside HTTP."""
    require("postgres")
    home = tmp_path_factory.mktemp("doors")
    datasets = {name: dataset(home / name) for name in ("clinic", "other")}
    with running(datasets, Beside(postgres=0, flight=0)) as found:
        yield found


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with a deadline that is longer than any question takes."""
    home = tmp_path_factory.mktemp("patient")
    settings = f"deadline_s = {DEADLINE_S}\nburst = 1000\nqueue = 1000\nconcurrent = 1000"
    datasets = {
        "clinic": dataset(home / "clinic", server=settings),
        "damaged": dataset(home / "damaged", server=settings, damaged=True),
    }
    with running(datasets) as found:
        yield found


@pytest.fixture(scope="session")
def serving() -> Any:
    """A server of one's own, with other settings."""

    @contextmanager
    def serve(home: Path, settings: str = QUICK, **options: Any) -> Iterator[Running]:
        with running({"clinic": dataset(home / "clinic", server=settings, **options)}) as found:
            yield found

    return serve


@pytest.fixture(scope="session")
def start() -> Any:
    """Start a server of some datasets."""
    return running


@pytest.fixture(scope="session")
def serve_at() -> Any:
    """A server that knows its own address beforehand, because its settings name it."""

    @contextmanager
    def serve(home: Path, more: Callable[[str], str]) -> Iterator[Running]:
        with socket.socket() as kept:  # nobody else is given the port
            kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            kept.bind(("127.0.0.1", 0))
            port = kept.getsockname()[1]
            made = dataset(home / "clinic", more=more(f"http://127.0.0.1:{port}"))
            with running({"clinic": made}, port=port) as found:
                yield found

    return serve


@pytest.fixture(scope="session")
def serving_doors() -> Any:
    """A server of one's own with PostgreSQL's door, and other settings."""
    require("postgres")

    @contextmanager
    def serve(
        home: Path, settings: str = QUICK, *, more: str = "", **options: Any
    ) -> Iterator[Running]:
        datasets = {"clinic": dataset(home / "clinic", server=settings, more=more)}
        with running(datasets, Beside(postgres=0, **options)) as found:
            yield found

    return serve


@pytest.fixture(scope="session")
def tls_doors(
    serving_doors: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Running, Path]]:
    """A server whose other doors have a certificate."""
    home = tmp_path_factory.mktemp("tls")
    cert, key = certificate(home)
    with serving_doors(home, tls_cert=cert, tls_key=key, flight=0) as found:
        yield found, cert


@pytest.fixture(scope="session")
def serve_sessions() -> Any:
    """A server of sessions that are there already, for what needs no engine."""

    @contextmanager
    def serve(homes: Sequence[Path]) -> Iterator[str]:
        log = Log(io.StringIO())  # not among what the tests print themselves
        with listening(application([session.read(home) for home in homes], log=log)) as url:
            yield url

    return serve


@pytest.fixture(scope="session")
def serve_every_door() -> Any:
    """A server of a session that is there already, with every door."""
    require("postgres")

    @contextmanager
    def serve(home: Path, key: str) -> Iterator[Running]:
        with running({home.name: Dataset(home, key)}, Beside(postgres=0, flight=0)) as found:
            yield found

    return serve


@pytest.fixture(scope="session")
def make_dataset() -> Any:
    """Make a session with a ledger and a curator's key."""
    return dataset


@pytest.fixture
def fresh() -> Any:
    """Questions that nobody has asked before: each costs something."""
    return _fresh


_numbers = itertools.count()


def _fresh(times: int = 1) -> Sequence[str]:
    found = [next(_numbers) for _ in range(times)]
    return [f"{COUNT} WHERE age < {5 + n % 100} AND remark <> 'x{n}'" for n in found]
