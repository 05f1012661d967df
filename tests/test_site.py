"""The site is built without a warning, leads to every page, and knows every public name.

A real browser looks at it as readers do: on a phone and at a desk, on light and dark paper.
"""

from __future__ import annotations

import ast
import fcntl
import html
import inspect
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
from docutils import nodes
from IPython.core.formatters import DisplayFormatter
from looking import ARGUMENTS, HEIGHT, WIDTHS
from make_screenshots import SCREENS, hash_picture, run, serve, shoot_all, shoot_terminal
from masking import assert_same
from patience import PATIENCE_MS
from playwright.sync_api import Page, sync_playwright
from promised import PUBLIC
from run_pages import run_value
from services import HOME_VARIABLE, require
from sphinx.util.inventory import InventoryFile

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = ROOT / "README.md"


@pytest.fixture(scope="module")
def site():
    """The built site.  A dead link, a page that no other leads to, a bad docstring: a warning.

    It is built once in a run, by whichever worker asks first.
    """
    home = Path(os.environ[HOME_VARIABLE])
    folder = home / "site"
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(DOCS), str(folder)]
    with (home / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "objects.inv").exists():  # which is written last, of a site without fault
            built = subprocess.run(command, capture_output=True, text=True, check=False)
            if built.returncode:
                (folder / "objects.inv").unlink(missing_ok=True)
            assert built.returncode == 0, built.stderr
    return folder


def test_every_page_is_built(site):
    pages = {path.relative_to(DOCS).with_suffix("") for path in DOCS.rglob("*.md")}
    built = {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")}
    assert pages <= built | {Path("_build")}


OUTSIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "deploy/README.md")
"""What hosts of repositories look for elsewhere; the site has it, too."""


def test_what_stands_outside_is_on_the_site_and_led_to(site):
    """By the menu, as every page is; to deploying also from where a reader gets to it."""
    texts = [page.read_text(encoding="utf-8") for page in site.rglob("*.html")]
    headings = [re.search(r"<h1>(.*?)<a class=.headerlink", text) for text in texts]
    shown = {html.unescape(re.sub("<[^>]*>", "", found[1])) for found in headings if found}
    for name in OUTSIDE:
        title = (ROOT / name).read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        assert title.replace("`", "") in shown, name
    for page in ("server", "learn/steward"):
        body = (site / f"{page}.html").read_text(encoding="utf-8").split("<article")[1]
        assert re.search(r'href="(?:\.\./)?deploy\.html"', body.split("</article>")[0]), page


def list_known(site: Path) -> set[str]:
    """Every name of Python's that the reference has."""
    with (site / "objects.inv").open("rb") as file:
        known = InventoryFile.load(file, "", lambda _base, name: name)
    return {name for kind, found in known.items() if kind.startswith("py:") for name in found}


def test_every_public_name_is_in_the_reference(site):
    promised = [
        f"{module.__name__}.{name}"
        for module in map(import_module, PUBLIC)
        for name in module.__all__
        if not isinstance(getattr(module, name), ModuleType) and not name.startswith("__")
    ]
    assert len(promised) > 100
    known = list_known(site)
    assert [name for name in promised if name not in known] == []


@pytest.mark.parametrize("name", ["discreet.Curator", "discreet.curate.results.Remote"])
def test_every_method_of_a_curator_is_in_the_reference(site, name):
    """Here and on a server; also those that a class has from a module of their own."""
    place, _, own = name.rpartition(".")
    kind = getattr(import_module(place), own)
    methods = {function.__name__ for function in list_functions(kind)}
    assert {"ask", "make_release", "make_releases", "plan_releases"} <= methods
    known = list_known(site)
    assert sorted(one for one in methods if f"{name}.{one}" not in known) == []


# --- what comes back -----------------------------------------------------------------------------

STEP = "a step between a question and its answer: the doors of a server take them one by one"
PARSED = "a question as it is understood: a program has its text"
HIDDEN = {
    "discreet.audit.rehearsal.Prepared": STEP,
    "discreet.curate.knowing.Knowing": STEP,
    "discreet.curate.preparing.Prepared": STEP,
    "discreet.curate.sealed.Sealed": "the secrets of runs, which only runs read",
    "discreet.curate.statements.Statements": STEP,
    "discreet.curate.steps.Paid": STEP,
    "discreet.curate.steps.PaidStatement": STEP,
    "discreet.curate.steps.Planned": STEP,
    "discreet.ledger.books.Standing": "how an account stands, to its own parts: see Balance",
    "discreet.ledger.runs.RunBook": "what the ledger keeps of runs, to the runs themselves",
    "discreet.price.priced.Priced": STEP,
    "discreet.publication.tree.Limits": "how large a model may grow, to its own fit",
    "discreet.question.blocks.space.Area": "which blocks a charge touches: a curator finds out",
    "discreet.question.question.Question": PARSED,
    "discreet.question.statement.Column": "the kind of a column, to a door that sends it first",
    "discreet.question.statement.Statement": PARSED,
}
"""What methods hand to the library's own parts, with why a program needs no name for it."""


@cache
def list_imports(module: str) -> dict[str, tuple[str, str]]:
    """Where a module has its names from, also those that only annotations need."""
    tree = ast.parse(inspect.getsource(import_module(module)))
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def find_named(module: str, name: str) -> Any:
    """What a name stands for in the annotations of a module; None for what is not ours."""
    found = getattr(import_module(module), name, None)
    home, own = list_imports(module).get(name, ("", ""))
    if found is None and home.startswith("discreet"):
        found = getattr(import_module(home), own, None)
    return found


def list_returned(function: Callable[..., Any]) -> Iterator[type]:
    """The classes of ours that a function is annotated to return."""
    said = function.__annotations__.get("return")
    tree = ast.parse(said if isinstance(said, str) else "None")
    for name in [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]:
        found = find_named(function.__module__, name)
        for kind in (found, *get_args(found)):
            if inspect.isclass(kind) and kind.__module__.startswith("discreet."):
                yield kind


def list_functions(thing: Any) -> Iterator[Callable[..., Any]]:
    """A function, or the public methods and properties of a class, as they are written here."""
    members = inspect.getmembers_static(thing) if inspect.isclass(thing) else [("", thing)]
    for name, member in members:
        parts = (getattr(member, part, None) for part in ("fget", "func", "__func__"))
        written = next(filter(None, parts), member)  # of a property, a cached one, a class method
        if inspect.isfunction(written) and str(written.__module__).startswith("discreet."):
            yield from [] if name.startswith("_") else [written]


def test_what_public_methods_return_is_in_the_reference(site):
    promised = [getattr(module, n) for module in map(import_module, PUBLIC) for n in module.__all__]
    returned = {kind for one in promised for f in list_functions(one) for kind in list_returned(f)}
    assert len(returned) > 100
    known = list_known(site)
    classes = {thing for thing in promised if inspect.isclass(thing)}
    missing = {f"{kind.__module__}.{kind.__qualname__}" for kind in returned - classes}
    assert missing - known == set(HIDDEN)


PROMPT = re.compile(r"^[ \t]*(?:(?:>>>|\.\.\.) ?)?", re.MULTILINE)
IMPORT = re.compile(
    r"^[ \t]*from (discreet[\w.]*) import[ \t]+(\([^)]*\)|[^(\n;#]+)"
    r"|^[ \t]*import (discreet[\w.]*)",
    re.MULTILINE,
)
SAID_INSIDE = re.compile(r"\binside the library\b.{0,200}?\bmay move\.")
INSIDE = {
    "discreet.engine.duckdb.DuckDBEngine": "a curator opens its engine from settings",
    "discreet.engine.spark.engine.SparkEngine": "a curator opens its engine from settings",
    "discreet.exact.numbers.fraction": "how every number is read, to be seen at work",
    "discreet.question.blocks.Area": "which blocks a charge touches: a curator finds out",
    "discreet.question.blocks.Space": "the same",
    "discreet.question.blocks.reach": "the same",
    "discreet.question.sql.parse": "what a question is to a curator, to be seen at work",
}
"""What a page shows of the inside, with why it is not promised; as are all chapters of the lab."""


def list_shown(text: str) -> set[str]:
    """What the code of a page imports from the library, by its whole name."""
    found = set()
    for module, names, whole in IMPORT.findall(PROMPT.sub("", text)):
        if whole:
            found.add(whole)
            continue
        listed = [part.split(" as ")[0].strip() for part in names.strip("() \n\\").split(",")]
        if listed == ["*"]:
            listed = import_module(module).__all__
        found |= {f"{module}.{name}" for name in listed if name}
    return {
        name
        for name in found
        if name != "discreet" and name not in PUBLIC and not name.startswith("discreet.lab")
    }


def test_imports_are_found_however_they_are_written():
    assert list_shown("from discreet.ledger import Ledger as Book, Policy\n") == {
        "discreet.ledger.Ledger",
        "discreet.ledger.Policy",
    }
    assert list_shown(
        "    >>> from discreet.ledger import (\n    ...     Ledger,\n    ... )\n"
    ) == {"discreet.ledger.Ledger"}
    assert list_shown("def f():\n    from discreet.price import units\n") == {
        "discreet.price.units"
    }
    assert list_shown("import discreet.price.plan as plan\nimport discreet\n") == {
        "discreet.price.plan"
    }
    assert "discreet.mechanisms.Laplace" in list_shown(">>> from discreet.mechanisms import *\n")


def test_what_a_page_imports_is_in_the_reference_or_said_to_be_inside(site):
    pages = {page: page.read_text(encoding="utf-8") for page in [*DOCS.rglob("*.md"), README]}
    known = list_known(site)
    shown = {page: list_shown(text) - known for page, text in pages.items()}
    assert len(set().union(*map(list_shown, pages.values()))) > 100
    assert set().union(*shown.values()) == set(INSIDE)
    for page, names in shown.items():
        told = SAID_INSIDE.search(" ".join(pages[page].split())) is not None
        assert told is bool(names), f"{page.name} imports {names}"
        named = {f"`{name.rpartition('.')[2]}`" for name in names}
        assert [name for name in named if name not in pages[page]] == []


FENCED = re.compile(r"^```console\n.*?^```$", re.MULTILINE | re.DOTALL)


def test_the_home_page_shows_an_answer_before_any_link(site):
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    assert " ± " in text.split("toctree")[0]
    before, chart, _ = text.partition("```{image} home.svg")
    assert chart
    assert " ± " in before
    assert not re.search(r"(?<!!)\[[^]]*\]\(|<https?:|\]\[|\}`", re.sub(FENCED, "", before))
    parts = re.findall(r":caption: (.+)", text)
    assert parts[:4] == ["Learn", "Do", "Look up", "Understand"]
    assert "home.svg" in (site / "index.html").read_text(encoding="utf-8")


WRITTEN = re.compile(r"[A-Za-zα-ω)]_[A-Za-z0-9{(]|\^")
"""Scripts as one types them: x_i, e^(-t)."""


TYPESET = ("accounting", "errata", "learn/*", "local", "meaning", "privacy-guarantee", "proofs/*")
TYPESET += ("graphs", "known-vulnerabilities", "lab", "lab/*", "mechanisms", "noise", "quality")
TYPESET += ("selection", "sparse-vector")
"""Pages whose mathematics is more than a few letters, which any page may have as they are typed."""


def test_mathematics_is_typeset_without_a_script_or_a_request(site):
    """MathML in the page itself; nothing is left as it would be typed, but for code."""
    pages = sorted(page for names in TYPESET for page in site.glob(f"{names}.html"))
    assert len(pages) > 30
    formulas = dict.fromkeys(TYPESET, 0)
    for page in pages:
        text = page.read_text(encoding="utf-8")
        body = re.search(r"<article.*?</article>", text, re.DOTALL)[0]
        for names in TYPESET:
            formulas[names] += body.count("<math") * page.relative_to(site).match(f"{names}.html")
        assert 'class="merror"' not in body
        loaded = r'<(?:script|link|img)\b[^>]*(?:src|href)="(?:https?:)?//'
        assert re.findall(loaded, text) == [], page.name
        plain = re.sub(r"<(math|code|pre)\b.*?</\1>|<[^>]*>", "", body, flags=re.DOTALL)
        assert WRITTEN.findall(plain) == [], page.name
    assert formulas["proofs/*"] > 700
    assert all(formulas.values())


SAID = re.compile(r"\\(?:mathrm|text)\{[^}]*\}|\\(?:langle|rangle)\b|\\[A-Za-z]+|\\.")
OPENS, CLOSES = ("(", "[", "{", r"\langle"), (")", "]", "}", r"\rangle")


def find_prose(formula: str) -> list[str]:
    """What in a formula is none: a sentence's comma, a word.  What is ``\\text`` is meant so."""
    found, depth = re.findall(r"[A-Za-z]{4,}", SAID.sub(" ", formula)), 0
    for part in re.findall(rf"{SAID.pattern}|, |.", formula, re.DOTALL):
        depth += (part in OPENS) - (part in CLOSES)
        if part == ", " and depth <= 0:
            found.append(part)
    return found


def test_formulas_hold_no_part_of_a_sentence(site):
    """A dollar sign too many makes a formula of what stands between two."""
    found: dict[str, list[str]] = {}
    formulas = 0
    for file in sorted((site / ".doctrees").rglob("*.doctree")):
        tree = pickle.loads(file.read_bytes())
        for formula in tree.findall(lambda node: isinstance(node, (nodes.math, nodes.math_block))):
            formulas += 1
            if find_prose(formula.astext()):
                found.setdefault(file.stem, []).append(formula.astext())
    assert formulas > 800
    assert found == {}


@pytest.mark.parametrize("wrong", [r"q = e^{-1/b}, P(Z)", "3.00 at a price of ", r"\{x\}, y"])
def test_a_sentence_in_a_formula_is_noticed(wrong):
    assert find_prose(wrong)
    assert not find_prose(r"\langle u_{s}, u_{t}\rangle = f(x, y)\,\text{of all, it is said}")


def test_pictures_are_made_by_commands_and_ask_nobody():
    """Every picture of a page is written by a program of ours, and loads nothing from elsewhere."""
    makers = "".join((DOCS / f"make_{name}.py").read_text() for name in ("pictures", "screenshots"))
    makers += (ROOT / "bench" / "graphs.py").read_text()
    made = [path for path in DOCS.rglob("*") if path.suffix in (".png", ".svg")]
    made = [path for path in made if "_build" not in path.parts]
    assert len(made) >= 5
    for picture in made:
        named = rf"(?<![\w-]){re.escape(picture.name)}\b"
        assert re.search(named, makers), f"{picture.name} is made by no command"
        if picture.suffix == ".svg":
            loaded = re.findall(r"url\(.?(http[^)]*)|href=.(http[^\"']*)", picture.read_text())
            assert loaded == [], picture.name


def read_terminal(picture: Path) -> str:
    """The lines that a picture of a terminal shows."""
    written = re.findall(
        r'<text class="[^"]*-r\d+" [^>]*y="([\d.]+)"[^>]*>([^<]*)', picture.read_text()
    )
    lines: dict[float, str] = {}
    for height, words in written:
        lines[float(height)] = lines.get(float(height), "") + html.unescape(words)
    return "\n".join(lines[height].replace("\xa0", " ").rstrip() for height in sorted(lines))


def read_words(picture: Path) -> str:
    """What was on the screen, without the axis of a chart, which ends above the longest bar."""
    _hash, words = picture.with_suffix(".txt").read_text(encoding="utf-8").split("\n\n", 1)
    return re.sub(r"^[\d,]+\n", "", words, flags=re.MULTILINE)


def execute(cell: str, names: dict[str, Any]) -> list[dict[str, str]]:
    """What a notebook shows for a cell, without the process of a kernel."""
    value = run_value(cell, names)
    return [] if value is None else [DisplayFormatter().format(value)[0]]


PICTURES = sorted(SCREENS.glob("*.png"))


def test_pictures_show_what_is_on_the_screen_now(tmp_path, reader):
    run(tmp_path, "init", "clinic", "--sample")
    shoot_terminal(tmp_path, tmp_path / "now.svg")
    said, now = (read_terminal(one) for one in (SCREENS / "terminal.svg", tmp_path / "now.svg"))
    assert "cost ε = 0.1" in said
    assert_same("docs/screens/terminal.svg", said, now)
    names: dict[str, Any] = {}
    with serve(tmp_path) as (address, key):
        browser = reader.context.browser
        shoot_all(browser, address, key, tmp_path, lambda cell: execute(cell, names))
        names["clinic"].close()
    assert [one.name for one in PICTURES] == sorted(one.name for one in tmp_path.glob("*.png"))
    for picture in PICTURES:
        said, now = read_words(picture), read_words(tmp_path / picture.name)
        assert "Aalborg\t" in said
        assert_same(f"docs/screens/{picture.name}", said, now)


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_was_taken_with_the_words_beside_it(picture):
    assert picture.with_suffix(".txt").read_text("utf-8").startswith(hash_picture(picture) + "\n\n")


# --- in a browser --------------------------------------------------------------------------------

SIZES = ("phone", "desk")
SCHEMES = ("light", "dark")
SOME = ("index", "learn/analyst", "cookbook/census", "cli", "api", "benchmarks", "proofs/noise")
SOME += ("reference/mechanisms", "graphs", "asking", "faults", "zoo", "comparison", "functions")
SOME += ("questions", "privacy-guarantee", "learn/steward")
"""Pages that are looked at in every way: tables, blocks, formulas, signatures, pictures."""
ARTEFACTS = ROOT / "test-artifacts" / "site"
LEAST_CONTRAST = 4.5
"""Of text and what is behind it, by the rules of accessibility (WCAG 2, level AA)."""

FAULTS = """least => {
  const root = document.documentElement, wide = root.clientWidth, found = [];
  if (root.scrollWidth > wide) found.push(`scrolls sideways by ${root.scrollWidth - wide} px`);
  for (const image of document.images)
    if (!image.complete || !image.naturalWidth) found.push(`no picture: ${image.src}`);

  const scrolls = new Map();  // whether something around an element lets it be wider than the page
  const mayBeWide = element => {
    if (element.tagName === "ARTICLE") return false;
    if (!scrolls.has(element)) scrolls.set(element,
      /auto|scroll/.test(getComputedStyle(element).overflowX) || mayBeWide(element.parentElement));
    return scrolls.get(element);
  };
  for (const element of document.querySelectorAll("article *")) {
    const {left, right, width} = element.getBoundingClientRect();
    if (width && (right > wide + 1 || left < -1) && !mayBeWide(element.parentElement)) {
      found.push(`sticks out: ${element.outerHTML.slice(0, 80)}`);
      break;
    }
  }

  const read = colour => {
    const [r, g, b, a = 1] = colour.match(/[\\d.]+/g).map(Number);
    return [r, g, b, a];
  };
  const over = ([r, g, b, a], below) =>
    [r, g, b].map((part, place) => part * a + below[place] * (1 - a));
  const light = colour => {
    const [r, g, b] = colour.map(part => part / 255)
      .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const papers = new Map();
  const paper = element => {
    if (!element) return [255, 255, 255];
    if (!papers.has(element)) papers.set(element,
      over(read(getComputedStyle(element).backgroundColor), paper(element.parentElement)));
    return papers.get(element);
  };
  const faint = new Set(), seen = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (seen.has(element) || !texts.currentNode.data.trim()) continue;
    seen.add(element);
    if (!element.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
    const behind = paper(element), ink = over(read(getComputedStyle(element).color), behind);
    const [more, less] = [light(ink), light(behind)].sort((a, b) => b - a);
    const contrast = (more + 0.05) / (less + 0.05);
    if (contrast < least) faint.add(`faint: ${contrast.toFixed(1)}, ${element.tagName}, `
      + texts.currentNode.data.trim().slice(0, 40));
  }
  return {faults: [...found, ...[...faint].slice(0, 5)], read: seen.size};
}"""


@pytest.fixture(scope="module")
def reader() -> Iterator[Page]:
    """A browser without a network."""
    program = require("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(program), args=ARGUMENTS)
        page = browser.new_page(reduced_motion="reduce")
        page.set_default_timeout(PATIENCE_MS)
        yield page
        browser.close()


@pytest.fixture
def raised(reader: Page) -> Iterator[list[str]]:
    """What went wrong while pages were loaded, or was asked of others."""
    found: list[str] = []
    told = {
        "console": lambda one: found.append(one.text) if one.type == "error" else None,
        "pageerror": lambda one: found.append(str(one)),
        "requestfailed": lambda one: found.append(f"failed: {one.url}"),
        "request": lambda one: found.append(one.url) if not is_local(one.url) else None,
    }
    for event, keep in told.items():
        reader.on(event, keep)
    yield found
    for event, keep in told.items():
        reader.remove_listener(event, keep)


def is_local(url: str) -> bool:
    return url.startswith(("file:", "data:"))


def look(reader: Page, scheme: str, size: str) -> list[str]:
    """What is wrong with the page that is open, on such a screen."""
    reader.emulate_media(color_scheme=scheme)
    reader.set_viewport_size({"width": WIDTHS[size], "height": HEIGHT})
    found = reader.evaluate(FAULTS, LEAST_CONTRAST)
    assert found["read"] > 3
    return [f"{scheme} {size}: {fault}" for fault in found["faults"]]


def test_every_page_can_be_read_on_a_phone_in_the_dark(site, reader, raised):
    """Where room is least, and colours are not the first that anybody thought of."""
    wrong: dict[str, list[str]] = {}
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 90
    for page in pages:
        reader.goto(page.as_uri())
        wrong[str(page.relative_to(site))] = look(reader, "dark", "phone") + raised
        raised.clear()
    assert {page: found for page, found in wrong.items() if found} == {}


def test_some_pages_can_be_read_everywhere(site, reader, raised):
    """Pictures of them are kept in ``test-artifacts/site``, to be looked at."""
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    wrong: list[str] = []
    papers = set()
    for name in SOME:
        reader.goto((site / f"{name}.html").as_uri())
        for scheme in SCHEMES:
            for size in SIZES:
                wrong += [f"{name}: {fault}" for fault in look(reader, scheme, size)]
                picture = f"{name.replace('/', '-')}-{size}-{scheme}.png"
                reader.screenshot(path=ARTEFACTS / picture)
            papers.add((scheme, reader.evaluate("getComputedStyle(document.body).backgroundColor")))
    assert wrong + raised == []
    assert len(papers) == len({paper for _, paper in papers}) == 2  # one for each scheme


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("article p { color: #444 }", "faint"),
        ("article h1 { width: 900px }", "sticks out"),
        ("html { overflow: visible } body { width: 900px }", "scrolls sideways"),
    ],
)
def test_what_cannot_be_read_is_noticed(site, reader, change, said):
    reader.goto((site / "index.html").as_uri())
    assert look(reader, "dark", "phone") == []
    reader.add_style_tag(content=change)
    assert any(said in fault for fault in look(reader, "dark", "phone"))


def test_what_does_not_load_is_noticed(site, reader, raised):
    reader.goto((site / "index.html").as_uri())
    assert raised == []
    reader.evaluate("document.querySelector('article img').src = 'nothing.svg'")
    reader.evaluate("setTimeout(() => { throw new Error('odd') })")
    reader.wait_for_timeout(300)
    assert any("no picture" in fault for fault in look(reader, "dark", "phone"))
    assert any("odd" in one for one in raised)
    assert any("nothing.svg" in one for one in raised)
