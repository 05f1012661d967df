"""One question passes few files of ours, and no call of it goes up: what the trace counts."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from discreet.exact.search import least_integer

ROOT = Path(__file__).parent.parent


def load(folder: str, name: str) -> ModuleType:
    """A script of the repository as a module."""
    spec = importlib.util.spec_from_file_location(f"{folder}_{name}", ROOT / folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


trace = load("bench", "trace")  # the benchmark's own measure: what is printed is what is held


@pytest.mark.parametrize("question", trace.QUESTIONS)
def test_a_question_goes_down_through_few_files_and_comes_back_once(question):
    found = trace.trace(question)
    assert len(found.files) <= trace.MOST_FILES, list(found.files)
    assert not found.upward
    assert found.goes_once, found.steps


def test_a_step_that_is_taken_twice_is_seen():
    found = trace.Trace()
    with trace.clinic() as curator:
        sys.setprofile(found.watch)
        try:
            curator.ask(trace.QUESTIONS[0], epsilon=1)
            once = list(found.steps)
            curator.ask(trace.QUESTIONS[2], epsilon=1)
        finally:
            sys.setprofile(None)
    assert [step for step, _ in once] == list(trace.STEPS.values())
    assert not found.goes_once


def test_what_every_object_is_made_by_is_counted_too():
    """A file that is left out would make the way look shorter than it is."""
    counted = set().union(*(trace.trace(question).files for question in trace.QUESTIONS))
    assert {"exact/records.py", "curate/curator.py", "noise/entropy.py"} <= counted


def test_the_command_prints_every_file_in_order(capsys):
    question = trace.QUESTIONS[0]
    sys.path.insert(0, str(ROOT))
    try:
        from bench.__main__ import main
    finally:
        sys.path.remove(str(ROOT))
    main(["trace", "--question", question])
    printed = capsys.readouterr().out
    listed = re.findall(r"^ *(\d+)  (\S+\.py)$", printed, re.MULTILINE)
    assert [int(number) for number, _ in listed] == list(range(1, len(listed) + 1))
    assert (listed[0][1], listed[-1][1]) == ("curate/curator.py", "noise/entropy.py")
    assert f"\n{len(listed)} files of ours" in printed


def test_the_rooms_are_those_of_the_import_contract():
    """A room that the trace does not know could be called from below unseen."""
    rooms = reversed(load("docs", "make_map").rooms())
    assert tuple(name for name in rooms if name != "__main__") == trace.ROOMS


def test_a_call_that_goes_up_is_seen():
    found = trace.Trace()
    with trace.clinic() as curator:
        sys.setprofile(found.watch)
        try:
            least_integer(lambda n: n > 3 and curator.budget is not None, fails_at=0)
        finally:
            sys.setprofile(None)
    assert ("exact/search.py", "curate/curator.py") in found.upward
