"""The types of the interface, as TypeScript reads them, from the document that the server gives.

The page's scripts are checked against these: a field that the server renames is an error there.
"""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI

from discreet.server.routes import ROUTERS

_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean"}


def describe_interface() -> str:
    """A namespace ``Api`` with an interface for every schema of the document."""
    app = FastAPI()
    for router in ROUTERS:
        app.include_router(router)
    schemas = app.openapi()["components"]["schemas"]
    return "declare namespace Api {\n" + "\n".join(map(_declare, schemas.items())) + "\n}\n"


def _declare(item: tuple[str, Any]) -> str:
    name, schema = item
    if "properties" not in schema:
        return f"  type {name} = {_type(schema)};"
    needed = set(schema.get("required", ()))
    fields = [
        f"    {json.dumps(field)}{'' if field in needed else '?'}: {_type(one)};"
        for field, one in schema["properties"].items()
    ]
    return "\n".join([f"  interface {name} {{", *fields, "  }"])


def _type(schema: Any) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(map(_type, schema["anyOf"])))
    if "enum" in schema:
        return " | ".join(json.dumps(one) for one in schema["enum"])
    kind = schema.get("type")
    if kind == "array":
        if "prefixItems" in schema:
            return f"[{', '.join(map(_type, schema['prefixItems']))}]"
        return f"({_type(schema.get('items', {}))})[]"
    if kind == "object":
        inner = schema.get("additionalProperties")
        return f"{{ [name: string]: {_type(inner) if isinstance(inner, dict) else 'any'} }}"
    return "null" if kind == "null" else _PLAIN.get(kind, "any")
