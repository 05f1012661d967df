"""Take the screenshots of the documents anew, from real runs: ``make screenshots``.

A terminal, the page of a server (light at a desk, dark on a phone) and a notebook, each of a
session made for it.  Nothing is pasted: what a picture shows is what the program printed.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
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
CELLS = (
    "import discreet\n\nclinic = discreet.open('clinic')",
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
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"))  # noqa: PTH123, SIM115
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
    page.wait_for_function("!document.querySelector('figure[aria-busy=true]')")
    page.screenshot(path=picture, full_page=True)
    page.context.close()


def open_page(browser: Browser, *, width: int, scheme: str = "light") -> Page:
    """An empty page of this width, light or dark."""
    size = {"width": width, "height": 800}
    context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    return page


def shoot_notebook(browser: Browser, folder: Path, picture: Path) -> None:
    """What a real kernel answers to some cells."""
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(folder))
    shown: list[str] = []

    def keep(message: dict) -> None:
        content = message["content"]
        if message["msg_type"] == "error":
            raise RuntimeError(f"{content['ename']}: {content['evalue']}")
        data = content.get("data", {})
        plain = f"<pre>{html.escape(content.get('text') or data.get('text/plain', ''))}</pre>"
        if message["msg_type"] in ("stream", "execute_result", "display_data"):
            shown.append(data.get("text/html", plain))

    try:
        for place, cell in enumerate(CELLS, start=1):
            typed = f"<b>[{place}]</b><pre>{html.escape(cell)}</pre>"
            shown.append(f'<div class="in">{typed}</div>')
            client.execute_interactive(cell, output_hook=keep, timeout=WAIT_MS / 1000)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    page = open_page(browser, width=910)
    page.set_content(NOTEBOOK.format(cells="\n".join(shown)))
    page.screenshot(path=picture, full_page=True)
    page.context.close()


@contextmanager
def serve(folder: Path) -> Iterator[tuple[str, str]]:
    """The session behind a server, and the key of an analyst."""
    shell = Shell(folder, find_ports())
    try:
        shell.run("discreet analyst add ana --epsilon 0.5 --key -s clinic")
        shell.run("discreet serve clinic --port 8765 &")
        yield f"http://127.0.0.1:{shell.ports['8765']}", shell.key
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
        shoot_notebook(browser, folder, SCREENS / "notebook.png")
        with serve(folder) as (address, key):
            shoot_page(browser, address, key, SCREENS / "page.png", width=1200)
            look = {"width": 390, "scheme": "dark"}
            shoot_page(browser, address, key, SCREENS / "page-phone-dark.png", **look)
        browser.close()


if __name__ == "__main__":
    main()
