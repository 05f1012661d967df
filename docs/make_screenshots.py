"""Take the screenshots of the documents anew, from real runs: ``make screenshots``.

A terminal, the page of a server (light at a desk, dark on a phone) and a notebook, each of a
session made for it.  Nothing is pasted: what a picture shows is what the program printed.  Beside
each picture of points stands a text with its hash and the words that were on the screen, which the
tests compare with what is on it now.
"""

from __future__ import annotations

import hashlib
import html
import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from jupyter_client.manager import start_new_kernel
from playwright.sync_api import Browser, Page, sync_playwright
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text
from run_pages import Shell, find_ports

SCREENS = Path(__file__).parent / "screens"
BY_CITY = "SELECT city, COUNT(*) AS n FROM patients GROUP BY city"
TYPED = (
    f'discreet ask "{BY_CITY}" --epsilon 0.1 -s clinic',
    'discreet ask "SELECT COUNT(*) AS n FROM patients" -s clinic',
    'discreet ask "SELECT * FROM patients" --epsilon 0.1 -s clinic',
)
PORT, KEY = "8765", "discreet_…"
CELLS = (
    f'import discreet\n\nclinic = discreet.connect("http://127.0.0.1:{PORT}", key="{KEY}")',
    f'clinic.ask("{BY_CITY}", epsilon="0.1")',
    "clinic.balance()",
)
COLUMNS = 80
WAIT_MS = 120_000
NOTEBOOK = """<!doctype html><meta charset="utf-8"><style>
body {{ font: 15px system-ui, sans-serif; margin: 24px; width: 860px; background: #fff }}
.in {{ background: #f3f4f6; border: 1px solid #d9dce1; padding: 10px 14px; margin: 14px 0 8px }}
pre {{ margin: 0; font: 14px ui-monospace, monospace; white-space: pre-wrap }}
.in b {{ color: #30308f; font: 13px ui-monospace, monospace; display: block; padding-bottom: 4px }}
table {{ border-collapse: collapse }} td, th {{ padding: 3px 14px; text-align: right }}
</style>{cells}"""


def run(folder: Path, *typed: str) -> None:
    """A command of ours, which must work."""
    command = [sys.executable, "-m", "discreet", *typed]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)  # noqa: S603


def shoot_terminal(folder: Path, picture: Path) -> None:
    """What the command line prints, colours included, as one SVG."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    colours = {"FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "PATH": path}
    for typed in TYPED:
        found = subprocess.run(  # noqa: S602 (what is written above)
            typed,
            shell=True,
            cwd=folder,
            env={**os.environ, **colours},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,  # a refusal is shown as well
        )
        console.print(Text(f"$ {typed}", style="bold"))
        console.print(Text.from_ansi(found.stdout))
    drawn = console.export_svg(title="discreet", theme=MONOKAI)
    # Its letters would be fetched from somebody else's server; the reader's own will do.
    drawn = re.sub(r"@font-face\s*\{.*?\}", "", drawn, flags=re.DOTALL)
    picture.write_text(drawn.replace("Fira Code", "ui-monospace"), encoding="utf-8")


def shoot_page(browser: Browser, address: str, key: str, picture: Path, **look: object) -> None:
    """The page after one question."""
    page = open_page(browser, **look)
    page.goto(address)
    page.get_by_label("Your key").fill(key)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_label("Your question, in SQL").fill(BY_CITY)
    page.get_by_label("Amount").fill("0.1")
    page.get_by_role("button", name="Ask").click()
    page.get_by_role("article").locator("img.picture").wait_for()
    page.get_by_role("button", name="Ask (free)").wait_for()  # the price is known, and shown
    page.get_by_role("slider").wait_for()  # and so are the others that it could be asked for
    page.wait_for_function("!document.querySelector('figure[aria-busy=true]')")
    keep(page, picture)


def keep(page: Page, picture: Path) -> None:
    """The whole page as a picture, its words beside it, and an end to it."""
    page.screenshot(path=picture, full_page=True)
    name = hash_picture(picture)
    words = "\n".join(filter(str.strip, page.locator("body").inner_text().splitlines()))
    picture.with_suffix(".txt").write_text(f"{name}\n\n{words}\n", encoding="utf-8")
    page.context.close()


def hash_picture(picture: Path) -> str:
    """By what a text knows its picture."""
    return f"{picture.name}: SHA-256 {hashlib.sha256(picture.read_bytes()).hexdigest()}"


def open_page(browser: Browser, *, width: int, scheme: str = "light") -> Page:
    """An empty page of this width, light or dark."""
    size = {"width": width, "height": 800}
    context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    return page


@contextmanager
def start_kernel(folder: Path) -> Iterator[Callable[[str], list[dict[str, str]]]]:
    """A real kernel: what it shows for a cell, in every form that it has."""
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(folder))

    def execute(cell: str) -> list[dict[str, str]]:
        shown: list[dict[str, str]] = []

        def add(message: dict) -> None:
            content = message["content"]
            if message["msg_type"] == "error":
                raise RuntimeError(f"{content['ename']}: {content['evalue']}")
            if message["msg_type"] in ("stream", "execute_result", "display_data"):
                shown.append(content.get("data") or {"text/plain": content["text"]})

        client.execute_interactive(cell, output_hook=add, timeout=WAIT_MS / 1000)
        return shown

    try:
        yield execute
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def shoot_notebook(
    browser: Browser,
    address: str,
    key: str,
    picture: Path,
    execute: Callable[[str], list[dict[str, str]]],
) -> None:
    """What is answered to some cells; the page names a port and a key that are another's."""
    shown: list[str] = []
    for place, cell in enumerate(CELLS, start=1):
        typed = f"<b>[{place}]</b><pre>{html.escape(cell)}</pre>"
        shown.append(f'<div class="in">{typed}</div>')
        for data in execute(cell.replace(f"http://127.0.0.1:{PORT}", address).replace(KEY, key)):
            plain = f"<pre>{html.escape(data['text/plain'])}</pre>"
            shown.append(data.get("text/html", plain))
    page = open_page(browser, width=910)
    page.set_content(NOTEBOOK.format(cells="\n".join(shown)))
    keep(page, picture)


@contextmanager
def serve(folder: Path) -> Iterator[tuple[str, str]]:
    """The session behind a server, and the key of an analyst."""
    shell = Shell(folder, find_ports())
    try:
        shell.run("discreet analyst add ana --epsilon 0.5 --key -s clinic")
        shell.run(f"discreet serve clinic --port {PORT} &")
        yield f"http://127.0.0.1:{shell.ports[PORT]}", shell.key
    finally:
        shell.close()


def find_browser() -> str | None:
    """The one that the page is tested with."""
    return shutil.which("chromium-headless-shell") or shutil.which("chromium")


def main() -> None:
    """All of them."""
    SCREENS.mkdir(exist_ok=True)
    with TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        run(folder, "init", "clinic", "--sample")
        shoot_terminal(folder, SCREENS / "terminal.svg")
        browser = playwright.chromium.launch(
            executable_path=find_browser(), args=["--no-sandbox", "--disable-gpu"]
        )
        with serve(folder) as (address, key), start_kernel(folder) as execute:
            shoot_all(browser, address, key, SCREENS, execute)
        browser.close()


def shoot_all(
    browser: Browser,
    address: str,
    key: str,
    folder: Path,
    execute: Callable[[str], list[dict[str, str]]],
) -> None:
    """What a browser shows, in this order: the second and the third ask for what was answered."""
    shoot_page(browser, address, key, folder / "page.png", width=1200)
    look = {"width": 390, "scheme": "dark"}
    shoot_page(browser, address, key, folder / "page-phone-dark.png", **look)
    shoot_notebook(browser, address, key, folder / "notebook.png", execute)


if __name__ == "__main__":
    main()
