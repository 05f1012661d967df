"""The reference of commands and of routes, from the commands and routes themselves.

    python docs/make_reference.py        (or: make reference)

Of every command its options with their help and defaults; of every route what it is sent and what
it answers, field by field, from the description that the server gives of itself.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import typer.main
from fastapi import FastAPI

from discreet.cli import app
from discreet.server.routes import ROUTERS

FOLDER = Path(__file__).parent / "reference"
COMMANDS = FOLDER / "commands.md"
ROUTES = FOLDER / "routes.md"
_MADE = "<!-- written by docs/make_reference.py -->\n\n"

Schema = dict[str, Any]


def cell(text: str) -> str:
    """Words in a cell of a table.

    >>> cell("one ``of``\\n two | three")
    'one `of` two \\\\| three'
    """
    return " ".join(text.split()).replace("``", "`").replace("|", "\\|")


def row(*cells: str) -> str:
    """A line of a table."""
    return f"| {' | '.join(map(cell, cells))} |\n"


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table, or nothing if it would have no rows."""
    return "".join([row(*head), row(*["---"] * len(head)), *(row(*one) for one in rows)])


# --- commands ------------------------------------------------------------------------------------


def list_commands(
    group: Any = None, path: tuple[str, ...] = ("discreet",)
) -> Iterator[tuple[str, Any]]:
    """Every command and group, with its whole name."""
    for name, command in (group or typer.main.get_command(app)).commands.items():
        yield " ".join((*path, name)), command
        if hasattr(command, "commands"):
            yield from list_commands(command, (*path, name))


def spell(parameter: Any) -> str:
    """How an option or argument is typed."""
    if parameter.param_type_name == "argument":
        word = parameter.metavar or parameter.name.upper()
        return f"`{word.rstrip('.')}{'...' * (parameter.nargs == -1)}`"
    names = [*parameter.opts, *parameter.secondary_opts]
    words = {Path: "FILE", int: "NUMBER"}
    kind = parameter.type_descriptor.annotation
    word = parameter.metavar or words.get(kind, parameter.name.upper())
    given = "" if parameter.is_flag else f" {word}"
    return ", ".join(f"`{name}{given}`" for name in sorted(names, key=len, reverse=True))


def tell_default(parameter: Any) -> str:
    """What holds without an option; nothing where nothing does."""
    shown, default = getattr(parameter, "show_default", None), parameter.default
    if parameter.required:
        return "must be given"
    if isinstance(shown, str):
        return shown
    if default is None or default in (False, "", ()) or callable(default):
        return ""
    return "yes" if default is True else f"`{default}`"


def describe_command(name: str, command: Any) -> str:
    """A heading, the help, and the options."""
    parts = [f"## {name}\n\n{cell((command.help or '').partition(chr(12))[0])}\n"]
    rows = [
        (spell(one), getattr(one, "help", None) or "", tell_default(one))
        for one in command.params
        if "--help" not in one.opts
    ]
    if rows and not hasattr(command, "commands"):
        parts.append("\n" + table(("option", "meaning", "default"), rows))
    return "".join(parts)


def write_commands() -> str:
    """The page of the commands."""
    head = (
        f"# Commands\n\n{_MADE}Every command with its options, as `--help` tells them. What they "
        "are for, with examples: [the command line](../cli.md).\n\n"
    )
    return head + "\n".join(describe_command(name, one) for name, one in list_commands())


# --- routes --------------------------------------------------------------------------------------


@cache
def describe_interface() -> Schema:
    """What the server says of itself."""
    interface = FastAPI()
    for router in ROUTERS:
        interface.include_router(router)
    return interface.openapi()


def name_type(schema: Schema, known: set[str]) -> str:
    """A type in words; one with fields of its own is a link."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        known.add(name)
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(name_type(one, known) for one in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return " or ".join(f'`"{one}"`' for one in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type", "anything")
    if kind == "array":
        inner = schema.get("items")
        return f"list of {name_type(inner, known)}" if inner else "list"
    if kind == "object":
        inner = schema.get("additionalProperties")
        return f"object of {name_type(inner, known)}" if isinstance(inner, dict) else "object"
    return {"string": "text", "integer": "whole number", "boolean": "true or false"}.get(kind, kind)


def limit(schema: Schema) -> str:
    """What a value must keep to."""
    parts = [schema, *schema.get("anyOf", [])]
    found = {key: one[key] for one in parts for key in one if key.startswith(("m", "exclusiveM"))}
    low, high = found.get("minimum"), found.get("maximum")
    if low is not None and high is not None:
        return f"{low:,} to {high:,}"
    if low is not None:
        return f"{low:,} or more"
    for key, word in (("maxLength", "letters"), ("maxItems", "of them"), ("maximum", "")):
        if key in found:
            return f"at most {found[key]:,} {word}".strip()
    return ""


def list_fields(schema: Schema, known: set[str], *, sent: bool) -> str:
    """The fields of a body or an answer."""
    needed = set(schema.get("required", ()))
    rows = []
    for name, one in schema["properties"].items():
        limits = limit(one) if sent else ""
        kind = name_type(one, known) + (f", {limits}" if limits else "")
        default = "must be given" if name in needed else tell_value(one.get("default"))
        told = one.get("description", "")
        rows.append((f"`{name}`", kind, default, told) if sent else (f"`{name}`", kind, told))
    head = ("field", "type", "default", "meaning") if sent else ("field", "type", "meaning")
    return table(head, rows)


def tell_value(default: Any) -> str:
    """A default as it would be sent."""
    if default is None:
        return ""
    return (
        "`" + str(default).lower() + "`"
        if isinstance(default, bool)
        else f'`"{default}"`'
        if isinstance(default, str)
        else f"`{default}`"
    )


def describe_route(method: str, path: str, route: Schema, schemas: Schema, known: set[str]) -> str:
    """A heading, what it does, what it is sent and what it answers."""
    parts = [f"## {method.upper()} {path}\n\n{cell(route.get('description', ''))}\n"]
    asked = [one for one in route.get("parameters", ()) if one["in"] != "path"]
    if asked:
        rows = [
            (
                f"`{one['name']}`",
                name_type(one["schema"], known),
                tell_value(one["schema"].get("default")),
                one.get("description", ""),
            )
            for one in asked
        ]
        parts.append(
            "\nIn the address or, of `Idempotency-Key`, a header:\n\n"
            if any(one["in"] == "header" for one in asked)
            else "\nIn the address:\n\n"
        )
        parts.append(table(("name", "type", "default", "meaning"), rows))
    body = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body:
        inner = schemas[body["$ref"].rpartition("/")[2]]
        parts.append(f"\nBody:\n\n{list_fields(inner, known, sent=True)}")
    for status, answer in sorted(route["responses"].items()):
        if status.endswith("XX"):
            continue
        kind = answer.get("content", {}).get("application/json", {}).get("schema")
        if not kind:
            parts.append(f"\nAnswer: {status}.\n")
        else:
            parts.append(f"\nAnswer: {status}, {name_type(kind, known)}.\n")
    return "".join(parts)


def write_routes() -> str:
    """The page of the routes, with every type that they speak of at its end."""
    document = describe_interface()
    schemas = document["components"]["schemas"]
    known: set[str] = {"Refusal"}
    head = (
        f"# Routes\n\n{_MADE}What each route is sent and answers, from `/v1/openapi.json`. What "
        "they are for, with examples: [the HTTP interface](../api.md). From 400 on every answer is "
        "a [Refusal](#refusal).\n\n"
    )
    routes = [
        describe_route(method, path, route, schemas, known)
        for path, methods in document["paths"].items()
        for method, route in methods.items()
    ]
    types: dict[str, str] = {}
    while missing := known - types.keys():
        for name in missing:
            schema = schemas[name]
            types[name] = f"## {name}\n\n{cell(schema.get('description', ''))}\n"
            if "properties" in schema:
                types[name] += f"\n{list_fields(schema, known, sent=False)}"
            else:
                types[name] += f"\n{name_type(schema, known)}\n"
    return head + "\n".join([*routes, *(types[name] for name in sorted(types))])


@cache
def pages() -> dict[Path, str]:
    """Each page as it should be."""
    made = {COMMANDS: write_commands(), ROUTES: write_routes()}
    return {path: re.sub(r"\n{3,}", "\n\n", text) for path, text in made.items()}


def main() -> int:
    """Write the pages."""
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
