"""docs/reference: commands and routes as the program describes them, each with its meaning."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
_SPEC = spec_from_file_location("make_reference", DOCS / "make_reference.py")
maker = module_from_spec(_SPEC)
_SPEC.loader.exec_module(maker)


@pytest.mark.parametrize("page", maker.pages(), ids=lambda page: page.name)
def test_the_reference_is_current(page):
    made = maker.pages()[page]
    assert page.read_text(encoding="utf-8") == made, "the program has changed: run `make reference`"


def test_every_command_and_option_says_what_it_is_for():
    silent = []
    commands = dict(maker.list_commands())
    for name, command in commands.items():
        parameters = [one for one in command.params if "--help" not in one.opts]
        told = [command.help, *(getattr(one, "help", None) for one in parameters)]
        silent += [name] * (not all(told))
    assert len(commands) > 40
    assert silent == []


def test_every_field_that_is_sent_says_what_it_is_for():
    document = maker.describe_interface()
    schemas, silent, seen = document["components"]["schemas"], [], 0
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            fields = {
                one["name"]: one for one in route.get("parameters", ()) if one["in"] != "path"
            }
            if "requestBody" in route:
                body = route["requestBody"]["content"]["application/json"]["schema"]
                fields |= schemas[body["$ref"].rpartition("/")[2]]["properties"]
            seen += len(fields)
            silent += [(method, path, n) for n, one in fields.items() if not one.get("description")]
            assert route.get("description"), (method, path)
    assert seen > 150
    assert silent == []


def test_every_field_of_every_type_that_is_answered_is_listed():
    document = maker.describe_interface()
    page = maker.pages()[maker.ROUTES]
    for name in ("Run", "Chosen", "Balance", "InterviewReply", "LearningState", "QualityReport"):
        section = page.split(f"\n## {name}\n")[1].split("\n## ")[0]
        for field in document["components"]["schemas"][name]["properties"]:
            assert f"| `{field}` |" in section, (name, field)
