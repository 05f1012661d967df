"""Run a page from top to bottom, as a reader would, and write what it really prints into it.

``console`` blocks are typed into one shell, ``python`` blocks into one interpreter, ``toml`` blocks
whose first line names a file are saved as that file; a block of another kind is an error.
``python docs/run_pages.py PAGE...`` writes the outputs anew; the tests run the same and compare,
but for what chance decides.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

import discreet
from discreet.curate.remote import Remote

BLOCK = re.compile(r"^```([^{\n][^\n]*|)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""Every block but those of the site's own, whose kind is in braces."""
KEY = re.compile(r"discreet_[0-9a-f]{16}_[0-9a-f]+")
COPIED = "discreet_…"
"""How a page writes the key that was shown last."""
PORTS = ("8765", "5433")
"""Ports that pages name; each run takes free ones instead."""
END = "end-of-what-was-printed"
PATIENCE_S = 120


@dataclass
class Shell:
    """One shell for all commands of a page: directories, variables and servers stay."""

    folder: Path
    ports: dict[str, str]
    key: str = COPIED
    shell: subprocess.Popen[str] = field(init=False)

    def __post_init__(self) -> None:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        plain = {n: v for n, v in os.environ.items() if n not in ("DISCREET_SESSION", "COLUMNS")}
        self.shell = subprocess.Popen(  # noqa: S603 (what a page of ours says)
            [shutil.which("bash") or "bash", "--norc"],
            cwd=self.folder,
            env=plain | {"PATH": path, "HOME": str(self.folder), "PAGER": "cat"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, command: str) -> str:
        """What a command prints, on both channels; a failure is part of what is shown."""
        typed = command.replace(COPIED, self.key)
        for port, free in self.ports.items():
            typed = typed.replace(port, free)
        if background := typed.rstrip().endswith("&"):
            typed = f"{typed.rstrip()[:-1]} >server.log 2>&1 &"
        assert self.shell.stdin is not None
        assert self.shell.stdout is not None
        self.shell.stdin.write(f"{typed}\necho {END}\n")
        self.shell.stdin.flush()
        lines: list[str] = []
        for line in self.shell.stdout:
            if line.strip() == END:
                break
            lines.append(line.rstrip())
        if background:
            wait_until_ready(int(self.ports[PORTS[0]]))
        text = "\n".join(lines).strip("\n")
        if shown := KEY.findall(text):
            self.key = shown[-1]
        for port, free in self.ports.items():
            text = text.replace(free, port)
        return KEY.sub(COPIED, text).replace(str(self.folder), "/home/you")

    def close(self) -> None:
        """End the shell, and the servers that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.shell.pid, signal.SIGTERM)
        with self.shell:  # waits, and closes both pipes
            pass


def wait_until_ready(port: int) -> None:
    """Until the server on this port answers questions."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=PATIENCE_S).is_success:
                return
        time.sleep(0.1)
    raise TimeoutError(f"no server is ready on port {port}")


def find_ports() -> dict[str, str]:
    """A free port for each that pages name."""
    with contextlib.ExitStack() as held:
        taken = [held.enter_context(socket.socket()) for _ in PORTS]
        for one in taken:
            one.bind(("127.0.0.1", 0))
        return {name: str(one.getsockname()[1]) for name, one in zip(PORTS, taken, strict=True)}


def run_cell(source: str, names: dict[str, object]) -> str:
    """What a cell prints, and the value of its last line, as a notebook shows them."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        value = run_value(source, names)
        if value is not None:
            print(value)  # noqa: T201
    return out.getvalue().strip("\n")


def run_value(source: str, names: dict[str, object]) -> object:
    """The value of a cell's last line, if it has one."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)  # noqa: S102 (a page of ours)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307


def run_console(shell: Shell, body: str) -> str:
    """A block as it would look now: every command, and what it printed."""
    shown: list[str] = []
    commands = re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]
    for text in commands:
        first, *rest = text.splitlines()
        typed = [first]
        while typed[-1].endswith("\\") and rest:
            typed.append(rest.pop(0))
        shown.append("$ " + "\n".join(typed))
        if printed := shell.run("\n".join(typed)):
            shown.append(printed)
    return "\n".join(shown) + "\n"


def run_page(page: Path, folder: Path) -> Iterator[tuple[tuple[int, int], str, str]]:
    """Each block with output: where it is in the text, what it says, what it is now."""
    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "__main__"}
    shell = Shell(folder, find_ports())
    printed = ""
    before = Path.cwd()
    os.chdir(folder)
    try:
        for found in BLOCK.finditer(text):
            kind, body = found.groups()
            if kind == "console":
                yield found.span(2), body, run_console(shell, body)
            elif kind == "python":
                source = body.replace(COPIED, shell.key)
                for port, free in shell.ports.items():
                    source = source.replace(port, free)
                printed = run_cell(source, names)
            elif kind == "text":
                yield found.span(2), body, printed + "\n"
            elif kind == "toml" and (named := re.match(r"# ([\w/.-]+)\n", body)):
                (folder / named[1]).write_text(body, encoding="utf-8")
            else:
                raise ValueError(f"nobody would run this block of {page.name}: {kind}\n{body}")
    finally:
        os.chdir(before)
        for made in names.values():  # as the end of a notebook would
            if isinstance(made, discreet.Curator | Remote):
                made.close()
        shell.close()


def write_page(page: Path) -> None:
    """Put what is printed now where the page says what is printed."""
    with TemporaryDirectory() as folder:
        new = [(span, now) for span, _said, now in run_page(page, Path(folder))]
    text = page.read_text(encoding="utf-8")
    for (start, end), now in reversed(new):
        text = text[:start] + now + text[end:]
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        write_page(Path(name))
