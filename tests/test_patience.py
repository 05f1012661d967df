"""No client's default time-out decides a test: five seconds are not enough on a loaded machine."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent
CALLS = {
    "httpx": {
        "AsyncClient",
        "Client",
        "delete",
        "get",
        "patch",
        "post",
        "put",
        "request",
        "stream",
    },
    "requests": {"delete", "get", "patch", "post", "put", "request"},
    "openapi": {"from_url"},
    "case": {"call"},
    "client": {"connect"},
    "discreet": {"connect"},
}
"""What has a time-out of its own, by the name before the dot."""
NAMES = re.compile(
    rf"\b({'|'.join(CALLS)})\s*\.\s*({'|'.join(sorted(set().union(*CALLS.values())))})\b"
)
"""A file without any of them is not parsed."""
PRETENDED = "transport"  # no line, no time-out


def impatient(text: str) -> list[int]:
    """The lines of calls that leave their time-out to the client.

    >>> impatient("httpx.get(url)\\nhttpx.get(url, timeout=PATIENCE_S)")
    [1]
    """
    if not NAMES.search(text):
        return []
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name | ast.Attribute)
        and node.func.attr in CALLS.get(_name(node.func.value), ())
        and not {"timeout", "timeout_s", PRETENDED} & {word.arg for word in node.keywords}
    ]


def _name(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


def test_every_call_over_a_line_says_how_long_it_waits():
    assert impatient("with httpx.Client(base_url=url) as client: pass") == [1]
    assert impatient("client.connect(url, key=key, transport=line)") == []
    found = {
        f"{path.relative_to(TESTS)}:{line}"
        for path in TESTS.rglob("*.py")
        for line in impatient(path.read_text(encoding="utf-8"))
    }
    assert found == set()


# --- processes and threads ------------------------------------------------------------------------

STARTED = ("server", "page", "served.py", "services.py", "looking.py", "local_provider.py")
"""Where tests start servers and browsers."""
PROCESSES = {"run", "call", "check_call", "check_output"}
ENDS = {"join", "communicate", "result"}


def endless(text: str) -> list[int]:
    """The lines that wait for a process or a thread, and do not say how long.

    >>> endless("thread.join()\\nprocess.wait()\\nthread.join(PATIENCE_S)\\n', '.join(words)")
    [1, 2]
    """
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and _waits(node.func, [*node.args, *(word.arg for word in node.keywords)])
    ]


def _waits(called: ast.Attribute, given: list[object]) -> bool:
    whose = _name(called.value) if isinstance(called.value, ast.Name | ast.Attribute) else None
    if whose == "subprocess" and called.attr in PROCESSES:
        return "timeout" not in given
    return not given and (called.attr in ENDS or (called.attr, whose) == ("wait", "process"))


def test_nobody_waits_for_ever_for_a_process_or_a_thread():
    assert endless("subprocess.run(words, check=True)") == [1]
    assert endless("subprocess.run(words, timeout=PATIENCE_S)") == []
    places = [TESTS / name for name in STARTED]
    files = [path for place in places for path in (*place.rglob("*.py"), place) if path.is_file()]
    found = {
        f"{path.relative_to(TESTS)}:{line}"
        for path in files
        for line in endless(path.read_text(encoding="utf-8"))
    }
    assert found == set()
