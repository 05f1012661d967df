"""Each tutorial, followed literally in an empty directory, prints what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from masking import assert_same
from patience import PATIENCE_S
from services import require

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [path for path in sorted((DOCS / "learn").glob("*.md")) if path.stem != "index"]


@pytest.fixture(scope="module")
def runner():
    spec = spec_from_file_location("run_pages", DOCS / "run_pages.py")
    found = module_from_spec(spec)
    sys.modules[spec.name] = found  # where its dataclasses look for it
    spec.loader.exec_module(found)
    found.PATIENCE_S = PATIENCE_S
    return found


def test_there_are_three():
    assert [page.stem for page in PAGES] == ["analyst", "engineer", "steward"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_prints_what_it_shows(page, runner, tmp_path, monkeypatch):
    if "psql" in page.read_text(encoding="utf-8"):
        monkeypatch.setenv("PATH", str(require("postgres")), prepend=":")
    outputs = list(runner.run_page(page, tmp_path))
    assert len(outputs) >= 6
    for _place, said, now in outputs:
        assert_same(f"docs/learn/{page.name}", said, now)


@pytest.mark.parametrize("stale", ["ate, cost ε = 0.1", "eight, cost ε = 0.2"])
def test_an_output_that_changed_is_noticed(stale, runner, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        f'```python\nprint("eight, cost ε = 0.1")\n```\n\n```text\n{stale}\n```\n', encoding="utf-8"
    )
    ((_place, said, now),) = runner.run_page(page, tmp_path)
    with pytest.raises(AssertionError):
        assert_same("page.md", said, now)


@pytest.mark.parametrize(
    "block", ["sql\nSELECT 7", "toml\n[budget]\nepsilon = 2", "sh\ndiscreet demo", "\nsee"]
)
def test_a_block_that_would_not_be_run_is_noticed(block, runner, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"```{block}\n```\n", encoding="utf-8")
    with pytest.raises(ValueError, match="nobody would run this block"):
        list(runner.run_page(page, tmp_path))


def test_what_is_typed_before_the_first_of_them(tmp_path):
    """In the clone, and in an environment that is there; what would be installed is looked up."""
    (text,) = re.findall(
        r"^```sh\n(.*?)^```$", (DOCS / "learn" / "index.md").read_text("utf-8"), re.M | re.DOTALL
    )
    assert ".venv/bin/pip install " in text
    tried = text.replace(".venv/bin/pip install ", f"{sys.executable} -m pip install --dry-run -q ")
    tried = tried.replace("test -x .venv/bin/python ", f"test -x {sys.executable} ")
    ran = subprocess.run(
        ["bash", "-euc", f"{tried}\npwd"],
        cwd=DOCS.parent,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert ran.stdout.split() == [str(tmp_path / "first")]
    assert "does not provide the extra" not in ran.stderr
