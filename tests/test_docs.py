"""Documents that cannot drift: every lemma, code, name and file that they speak of exists."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import discreet
from discreet.errors import CODES
from discreet.server.offers import AMOUNTS

SOURCE = Path(discreet.__file__).parent
ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [*ROOT.glob("*.md"), *(ROOT / "tests").glob("*.md"), *DOCS.rglob("*.md")]

CITED = re.compile(
    r"Lemmas? (?!\d+\.\d)(\d+(?:\([a-z]\))?(?:(?:, | and |, and |–|-| to )\d+(?:\([a-z]\))?)*)"
)
PROOF = re.compile(r"(?<!docs/)\b([a-z][a-z-]*\.md)\b")
STATED = re.compile(r"^(?:\*\*|#+ )Lemma (\d+)\b", re.MULTILINE)
HEADING = re.compile(r"^## ([A-Z]\d+)(?: [—–-])? (.+)$", re.MULTILINE)


def numbers(text: str) -> set[int]:
    """The numbers in "1, 2 and 5" or "3–6".

    >>> sorted(numbers("1, 2 and 5")), sorted(numbers("3–6"))
    ([1, 2, 5], [3, 4, 5, 6])
    """
    ranges = re.findall(r"(\d+)(?:–|-| to )(\d+)", text)
    spread = {n for low, high in ranges for n in range(int(low), int(high) + 1)}
    return {int(n) for n in re.findall(r"\d+", text)} | spread


def citations(path: Path) -> list[tuple[str, int]]:
    """Each lemma cited in a file, and the proof it means.

    That is the last one named before, or the first after, or the one of the package's name.
    """
    text = " ".join(path.read_text().split())
    proofs = [(found.start(), found.group(1)) for found in PROOF.finditer(text)]
    cited = []
    for found in CITED.finditer(text):
        before = [name for start, name in proofs if start < found.start()]
        after = [name for start, name in proofs if start > found.start()]
        name = [*after[:1], *before][-1] if proofs else f"{path.parent.name}.md"
        cited += [(name, number) for number in sorted(numbers(found.group(1)))]
    return cited


FILES = [path for path in sorted(SOURCE.rglob("*.py")) if CITED.search(path.read_text())]


def test_citations_are_found():
    here = SOURCE / "noise" / "table.py"
    assert citations(here) == [("noise.md", 1), ("noise.md", 2)]
    assert numbers("1, 2 and 5") == {1, 2, 5}
    assert numbers("3–6") == {3, 4, 5, 6}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_lemma_that_is_cited_exists(path):
    for name, number in citations(path):
        proof = DOCS / "proofs" / name
        assert proof.exists(), f"{path.name} cites Lemma {number} of {name}"
        assert number in map(int, STATED.findall(proof.read_text())), (
            f"{name} has no Lemma {number}"
        )


@pytest.mark.parametrize("proof", sorted((DOCS / "proofs").glob("*.md")), ids=lambda p: p.name)
def test_lemmas_are_numbered_in_order(proof):
    stated = [int(number) for number in STATED.findall(proof.read_text())]
    assert stated == list(range(1, len(stated) + 1))


def test_every_proof_that_is_named_exists():
    for path in sorted(SOURCE.rglob("*.py")):
        for name in re.findall(r"docs/proofs/([a-z-]+\.md)", path.read_text()):
            assert (DOCS / "proofs" / name).exists(), f"{path.name} names {name}"


def test_every_document_that_is_named_exists():
    for path in sorted(SOURCE.rglob("*.py")):
        for name in re.findall(r"\bdocs/([a-z-]+\.md)", path.read_text()):
            assert (DOCS / name).exists(), f"{path.name} names docs/{name}"


def test_every_code_has_one_heading_with_its_title():
    headings = HEADING.findall((DOCS / "errors.md").read_text())
    assert sorted(headings) == sorted(CODES.items())


def test_every_code_says_what_to_do():
    """Under each heading: words, an example (``test_error_docs.py`` types it), a fix."""
    parts = HEADING.split((DOCS / "errors.md").read_text())[1:]
    for code, body in zip(parts[::3], parts[2::3], strict=True):
        assert "Example" in body, code
        assert "Fix" in body, code


# --- names of ours -----------------------------------------------------------------------------

NAME = re.compile(r"\bdiscreet(?:\.[A-Za-z_]\w*)+")
FILES_OF_SESSIONS = {"discreet.toml", "discreet.key"}
SETTINGS_OF_A_LINE = {f"discreet.{name}" for name in (*AMOUNTS, "margins", "fresh", "balance")}
"""What can be SET, or shown, where PostgreSQL's protocol is spoken."""
PAST = {"CHANGELOG.md"}  # tells what had another name


def is_there(name: str) -> bool:
    """Whether a dotted name means something: a module, or something in one."""
    found, path = discreet, "discreet"
    for part in name.split(".")[1:]:
        path += f".{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = import_module(path)
            except ImportError:
                return False
    return True


def test_names_are_told_apart():
    assert is_there("discreet.accounting.loss.Loss.pure")
    assert is_there("discreet.connect")
    assert not is_there("discreet.loss")


def test_every_name_of_ours_that_is_written_exists():
    """A module that moves takes the documents, docstrings and strings that name it along."""
    lost = []
    for path in sorted([*PAGES, *SOURCE.rglob("*.py")]):
        if path.name not in PAST:
            named = set(NAME.findall(path.read_text(encoding="utf-8")))
            named -= FILES_OF_SESSIONS | SETTINGS_OF_A_LINE
            lost += [f"{path.relative_to(ROOT)}: {name}" for name in named if not is_there(name)]
    assert lost == []


def test_every_test_that_is_named_exists():
    for path in PAGES:
        for name in re.findall(r"\btests/[\w/]+\.(?:py|c)\b", path.read_text(encoding="utf-8")):
            assert (ROOT / name).exists(), f"{path.name} names {name}"


def test_glossary_is_short_and_says_each_word_once():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    words = text.split("## Words\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", words, re.MULTILINE)[2:]
    entries = [word for word, _meaning in rows]
    assert {"unit", "loss", "margin", "refusal"} <= set(entries)
    assert len(entries) == len(set(entries)) <= 30


# --- the map -----------------------------------------------------------------------------------


def map_maker():
    """``docs/make_map.py``, which is no module of the package."""
    spec = spec_from_file_location("make_map", DOCS / "make_map.py")
    found = module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_the_map_is_current():
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    assert page == map_maker().page(), "modules have changed: run `make map`"


def test_the_map_names_every_module_and_every_module_says_what_it_is():
    listed = dict(map_maker().modules())
    assert len(listed) == len(list(SOURCE.rglob("*.py")))
    assert [name for name, sentence in listed.items() if len(sentence) < 10] == []


def test_every_room_is_described():
    """A new room says what it is for: in the architecture, and where lines belong."""
    told = (DOCS / "architecture.md").read_text(encoding="utf-8").split("## Decisions")[0]
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Words")[0]
    rooms = set(map_maker().rooms()) - {"__main__"}
    assert len(rooms) >= 14
    assert sorted(room for room in rooms if f"**`{room}`**" not in told) == []
    assert sorted(room for room in rooms if f"`{room}`" not in guide) == []


def test_the_home_page_the_readme_and_the_picture_show_one_run():
    row = re.compile(r"^([A-Z][a-z]+) +([\d,]+) ± 30$", re.MULTILINE)
    home, readme = (
        {city: int(n.replace(",", "")) for city, n in row.findall(page.read_text(encoding="utf-8"))}
        for page in (DOCS / "index.md", ROOT / "README.md")
    )
    for name in ("home.svg", "home-dark.svg"):
        picture = (DOCS / name).read_text(encoding="utf-8")
        labels = re.findall(r'"city: (\w+); n: (\d+)"', picture)[:8]  # bars; then ends of margins
        drawn = {city: int(n) for city, n in labels}
        assert home == readme == drawn
        assert len(drawn) == 8
    assert f"{sum(drawn.values()):,} ± 79" in (DOCS / "index.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [*sorted(ROOT.glob("*.md")), ROOT / "deploy" / "README.md"])
def test_what_a_page_outside_the_site_links_to_is_there(page):
    """Inside, the site's own builder looks for dead links."""
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
