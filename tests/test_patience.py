"""No client's default time-out decides a test: five seconds are not enough on a loaded machine."""

from __future__ import annotations

import ast
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
PRETENDED = "transport"  # no line, no time-out


def impatient(text: str) -> list[int]:
    """The lines of calls that leave their time-out to the client.

    >>> impatient("httpx.get(url)\\nhttpx.get(url, timeout=PATIENCE_S)")
    [1]
    """
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
