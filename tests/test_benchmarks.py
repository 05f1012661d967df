"""Every table of docs/benchmarks.md is a command's output, with date, commit and machine."""

from __future__ import annotations

import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import bench  # noqa: E402
from bench import sections  # noqa: E402
from bench.__main__ import main  # noqa: E402
from bench.sections import PAGE, SECTIONS, format_printed, write_section  # noqa: E402

SECTION = re.compile(r"<!-- begin (\S+) -->\n\n(.*?)\n\n<!-- end \1 -->", re.DOTALL)
STAMP = re.compile(r"\*Measured 20\d\d-\d\d-\d\d, commit [0-9a-f]{7,}.* with \d+ cores.*\*\n")
NUMBER = re.compile(r"(?<![\d.,])\d[\d,]*(?:\.\d+)?(?![\d.])")
NO_BENCHMARKS = {"sections", "timing", "trace", "record_inference", "tumult", "held_out"}
"""The commands of the others; a list of files; what another program says, for the tests; tables."""


def test_every_section_is_run_by_one_command():
    text = PAGE.read_text(encoding="utf-8")
    assert sorted(name for name, _ in SECTION.findall(text)) == sorted(SECTIONS)
    found = {one.name for one in pkgutil.iter_modules(bench.__path__)} - {"__main__"}
    assert found - NO_BENCHMARKS == {module for module, *_ in SECTIONS.values()}


def test_what_the_page_types_names_what_there_is():
    typed = PAGE.read_text(encoding="utf-8").split("```sh\n")[1].split("```")[0]
    named = re.findall(r"^python -m bench(?: --write)? (\w+)", typed, re.MULTILINE)
    assert len(named) == 2
    assert set(named) <= set(SECTIONS)
    assert typed.startswith("make bench ")
    told = subprocess.run(
        ["make", "-n", "bench"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "python -m bench --write" in told.stdout


def test_no_table_is_written_by_hand():
    outside = SECTION.sub("", PAGE.read_text(encoding="utf-8"))
    assert not re.search(r"^\|", outside, re.MULTILINE)


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_says_when_and_where_it_was_measured(name):
    found = dict(SECTION.findall(PAGE.read_text(encoding="utf-8")))
    assert STAMP.match(found[name]), found[name][:120]


def test_the_comparison_states_what_was_measured():
    """Each figure of its table stands on the page of benchmarks."""
    compared = PAGE.with_name("comparison.md").read_text(encoding="utf-8")
    (part,) = re.findall(
        r"^## Measured in one run with ours\n(.*?)^## ", compared, re.M | re.DOTALL
    )
    measured = set(NUMBER.findall(PAGE.read_text(encoding="utf-8")))
    rows = [line.split("|")[2:4] for line in part.splitlines() if line.startswith("| ")][2:]
    figures = {number for row in rows for cell in row for number in NUMBER.findall(cell)}
    assert len(figures) > 30
    assert figures <= measured, sorted(figures - measured)


def test_what_is_printed_takes_the_place_of_what_was(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- begin noise -->\nold\n<!-- end noise -->\nafter\n")
    monkeypatch.setattr(sections, "PAGE", page)
    write_section("noise", "| a |\n| - |\n\n  laid out\n", "Measured today.")
    assert page.read_text() == (
        "before\n<!-- begin noise -->\n\n*Measured today.*\n\n| a |\n| - |\n\n"
        "```text\n  laid out\n```\n\n<!-- end noise -->\nafter\n"
    )
    with pytest.raises(LookupError, match="no section ledger"):
        write_section("ledger", "x", "y")


def test_what_is_laid_out_stands_in_a_block():
    assert format_printed("\none\ntwo\n\n  three 4\n") == "one\ntwo\n\n```text\n  three 4\n```"


def test_a_benchmark_that_fails_leaves_its_section(monkeypatch, capsys):
    written: list[str] = []
    monkeypatch.setitem(SECTIONS, "fitting", ["fitting"])
    monkeypatch.delenv("DISCREET_BENCH_DATA", raising=False)
    monkeypatch.setattr("bench.__main__.write_section", lambda *given: written.append(given[0]))
    with pytest.raises(SystemExit, match="not measured: fitting"):
        main(["--write", "fitting"])
    assert written == []
    main(["--write", "questions"])
    assert written == ["questions"]
    assert "parse" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="no benchmark nonsense"):
        main(["nonsense"])
