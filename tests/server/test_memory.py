"""What the server holds does not grow with what it was asked."""

from __future__ import annotations

import gc
import itertools
import re
import threading
import tracemalloc
from contextlib import closing
from http.client import HTTPConnection
from json import dumps
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from patience import PATIENCE_S
from served import serve

COUNT = "SELECT COUNT(*) AS n FROM visits WHERE age < "
WARM, MORE = 15, 40
A_REQUEST_BYTES = 400
"""Less than what any request would leave behind if something of it were kept."""


def requests(server, times: int) -> None:
    for number in range(times):
        body = {"question": f"{COUNT}{90 + number % 3}", "epsilon": "1/50"}
        assert server.call("POST", "explain", body).status_code == 200
        assert server.call("POST", "ask", {**body, "wait_s": 60}).status_code == 200
        assert server.call("GET", "balance").status_code == 200
        assert server.call("GET", "transcript?limit=5").status_code == 200
        if number % 6 == 0:
            wrong = {"question": f"SELECT age{number % 3} FROM visits", "epsilon": "1/50"}
            assert server.call("POST", "explain", wrong).status_code == 422


def measure(server) -> int:
    server.log.seek(0)
    server.log.truncate()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def test_nothing_of_a_request_stays(server):
    """Also where it is refused: bytes in this process, client and server, after as many again."""
    logged = server.log.getvalue()  # which other tests read
    tracemalloc.start()
    try:
        requests(server, WARM)
        before = measure(server)
        requests(server, MORE)
        grown = measure(server) - before
    finally:
        tracemalloc.stop()
        server.log.write(logged)
    assert grown < 4 * MORE * A_REQUEST_BYTES, grown


def resident_kb(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", text).group(1))


@pytest.mark.soak
def test_memory_is_flat_over_a_hundred_thousand_requests(tmp_path):
    """A server as it is started: after 20,000 requests it holds what it will hold."""
    settings = "\n[server]\nrate_per_minute = 1e6\nburst = 1000000\nconcurrent = 100\n"
    with serve(tmp_path, more=lambda _: settings) as served:
        key, where = served.analyst("ada"), urlsplit(served.url).netloc
        seen = []
        texts = [f"SELECT COUNT(*) AS n FROM patients WHERE age > {age}" for age in range(20)]
        for text in texts:
            served.call("POST", "ask", {"question": text, "epsilon": "1/50"}, key=key)
        for _ in range(5):
            send_many(where, served.dataset, key, texts, 20_000)
            seen.append(resident_kb(served.process.pid))
    print(f"after each 20,000 requests the server holds, in kB: {seen}")
    assert max(seen[1:]) < seen[0] * 1.05, seen


def send_many(where: str, dataset: str, key: str, texts: list[str], count: int) -> None:
    numbers = iter(range(count))
    lock, codes = threading.Lock(), set()

    def work() -> None:
        with closing(HTTPConnection(where, timeout=PATIENCE_S)) as line:
            send(line)

    def send(line: HTTPConnection) -> None:
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        ways = itertools.cycle(("ask", "explain", "ask", "balance"))
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            way = next(ways)
            sent = {"question": texts[number % len(texts)], "epsilon": "1/50"}
            method, body = ("GET", None) if way == "balance" else ("POST", dumps(sent))
            line.request(method, f"/v1/datasets/{dataset}/{way}", body, headers)
            answer = line.getresponse()
            answer.read()
            codes.add(answer.status)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10 * PATIENCE_S)
        assert not thread.is_alive()
    assert codes == {200}, codes
