"""The site is built without a warning, leads to every page, and knows every public name."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from sphinx.util.inventory import InventoryFile

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PUBLIC = [
    "discreet",
    *(f"discreet.{name}" for name in ("audit", "local", "mechanisms", "noise", "publication")),
]
"""The packages whose lists of names are promised."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site.  A dead link, a page that no other leads to, a bad docstring: a warning."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(DOCS), str(folder)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


def test_every_page_is_built(site):
    pages = {path.relative_to(DOCS).with_suffix("") for path in DOCS.rglob("*.md")}
    built = {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")}
    assert pages <= built | {Path("_build")}


def test_every_public_name_is_in_the_reference(site):
    with (site / "objects.inv").open("rb") as file:
        known = InventoryFile.load(file, "", lambda _base, name: name)
    names = {name for kind, found in known.items() if kind.startswith("py:") for name in found}
    promised = [
        f"{module.__name__}.{name}"
        for module in map(import_module, PUBLIC)
        for name in module.__all__
        if not isinstance(getattr(module, name), ModuleType) and not name.startswith("__")
    ]
    assert len(promised) > 100
    assert [name for name in promised if name not in names] == []


def test_the_home_page_shows_an_answer_before_any_link(site):
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    assert " ± " in text.split("toctree")[0]
    assert not re.search(r"(?<!!)\[[^]]*\]\(", text.split("```console")[0])
    parts = re.findall(r":caption: (.+)", text)
    assert parts[:4] == ["Learn", "Do", "Look up", "Understand"]
    assert "home.svg" in (site / "index.html").read_text(encoding="utf-8")


WRITTEN = re.compile(r"[A-Za-zα-ω)]_[A-Za-z0-9{(]|\^")
"""Scripts as one types them: x_i, e^(-t)."""


def test_proofs_are_typeset_without_a_script_or_a_request(site):
    """MathML in the page itself; nothing is left as it would be typed, but for code."""
    formulas = 0
    for page in sorted((site / "proofs").glob("*.html")):
        text = page.read_text(encoding="utf-8")
        body = re.search(r"<article.*?</article>", text, re.DOTALL)[0]
        formulas += body.count("<math")
        assert 'class="merror"' not in body
        loaded = r'<(?:script|link|img)\b[^>]*(?:src|href)="(?:https?:)?//'
        assert re.findall(loaded, text) == [], page.name
        plain = re.sub(r"<(math|code|pre)\b.*?</\1>|<[^>]*>", "", body, flags=re.DOTALL)
        assert WRITTEN.findall(plain) == [], page.name
    assert formulas > 700


def test_pictures_are_made_by_commands_and_ask_nobody():
    """Every picture of a page is written by a program of ours, and loads nothing from elsewhere."""
    makers = "".join((DOCS / f"make_{name}.py").read_text() for name in ("pictures", "screenshots"))
    makers += (ROOT / "bench" / "graphs.py").read_text()
    made = [path for path in DOCS.rglob("*") if path.suffix in (".png", ".svg")]
    made = [path for path in made if "_build" not in path.parts]
    assert len(made) >= 5
    for picture in made:
        assert picture.name in makers, f"{picture.name} is made by no command"
        if picture.suffix == ".svg":
            loaded = re.findall(r"url\(.?(http[^)]*)|href=.(http[^\"']*)", picture.read_text())
            assert loaded == [], picture.name
