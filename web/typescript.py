"""Write `src/api/schema.ts`: the server's OpenAPI document as TypeScript.

Run it after the HTTP API has changed (`make types`); with `--check` it only tells whether the file is current. Every
operation below `/api/` becomes one entry of `Operations`, so the page can call nothing that does not exist, and every
schema that they lead to a type. What is there for the clients of others is left out.
"""

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from windowpane.server.app import create_app
from windowpane.settings import Settings
from windowpane.wiring import open_engine

TARGET = Path(__file__).parent / "src" / "api" / "schema.ts"
HEAD = "// Generated from the server's OpenAPI document by `make types`.\n"
UNIONS = ("StoredEvent", "WatchedEvent", "AgentEvent")
"""What streams tell, in no operation's answer. Their schemas say exactly which fields are always there."""
ERRORS = ("ProblemDocument",)
"""What is answered when an operation fails."""
Schema = Mapping[str, Any]
Shared = set[str] | None
"""Of what is sent, fields may be left out; these names are schemas that are also answered, where none is."""


def main() -> None:
    """Write the file, or with `--check` end with 1 when it is not current."""
    with tempfile.TemporaryDirectory() as folder:
        document = create_app(open_engine(Settings(data=Path(folder), store_url="memory:"))).openapi()
    text = typescript(document)
    if "--check" in sys.argv[1:]:
        if not TARGET.is_file() or TARGET.read_text() != text:
            sys.exit("web/src/api/schema.ts is not current: run `make types`")
    else:
        TARGET.write_text(text)


def typescript(document: Schema) -> str:
    """Return the types of a document's schemas and operations."""
    schemas: Mapping[str, Schema] = document["components"]["schemas"]
    sent = _reachable(schemas, (body for _, _, operation in _operations(document) if (body := _body(operation))))
    got = _reachable(schemas, (answer for _, _, operation in _operations(document) if (answer := _answer(operation))))
    events = {name for union in UNIONS for name in _refs(schemas[union]["oneOf"])}

    def partial(name: str) -> Shared:
        if name in events:
            return set()
        return sent & got if name in sent - got else None

    told = _reachable(schemas, ({"$ref": name} for name in (*UNIONS, *ERRORS)))
    types = [
        f"{_comment(schema)}export type {_name(name)} = {_type(schema, partial=partial(name))}\n"
        for name, schema in sorted(schemas.items())
        if name in sent | got | told
    ]
    return "\n".join((HEAD, *types, _interface(document, sent & got), _table(document)))


def _operations(document: Schema) -> Iterator[tuple[str, str, Schema]]:
    for path, methods in sorted(document["paths"].items()):
        if not path.startswith("/api/"):
            continue
        for method, operation in sorted(methods.items()):
            yield method, path, operation


def _body(operation: Schema) -> Schema | None:
    return operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")


def _answer(operation: Schema) -> Schema | None:
    good = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
    return good.get("content", {}).get("application/json", {}).get("schema")


def _reachable(schemas: Mapping[str, Schema], roots: Iterator[Schema]) -> set[str]:
    """Return the names that these schemas lead to."""
    found: set[str] = set()
    open_ends = [name for root in roots for name in _refs(root)]
    while open_ends:
        name = open_ends.pop()
        if name not in found:
            found.add(name)
            open_ends += _refs(schemas[name])
    return found


def _refs(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value.rsplit("/", 1)[-1]
            else:
                yield from _refs(value)
    elif isinstance(node, list):
        for value in node:
            yield from _refs(value)


def _name(name: str) -> str:
    return name.removesuffix("-Output").replace("-", "")


def _comment(schema: Schema) -> str:
    about = " ".join(str(schema.get("description", "")).split())
    return f"/** {about} */\n" if about else ""


def _type(schema: Schema, *, partial: Shared, indent: str = "") -> str:
    """Return a schema as a type. Answers have every field; of what is sent, those with defaults may be left out."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f"Partial<{_name(name)}>" if partial and name in partial else _name(name)
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            found = [_type(one, partial=partial, indent=indent) for one in schema[choice]]
            return " | ".join(dict.fromkeys(found))
    match schema.get("type"):
        case "string":
            return "string"
        case "integer" | "number":
            return "number"
        case "boolean":
            return "boolean"
        case "null":
            return "null"
        case "array":
            item = _type(schema.get("items", {}), partial=partial, indent=indent)
            return f"({item})[]" if "|" in item else f"{item}[]"
        case "object" if "properties" in schema:
            return _object(schema, partial=partial, indent=indent)
        case "object":
            values = schema.get("additionalProperties")
            inner = _type(values, partial=partial, indent=indent) if isinstance(values, dict) else "unknown"
            return f"Record<string, {inner}>"
        case _:
            return "unknown"


def _object(schema: Schema, *, partial: Shared, indent: str) -> str:
    required = schema.get("required", ())
    inner = f"{indent}  "
    lines = [
        f"{inner}{_key(name)}{'?' if partial is not None and name not in required else ''}: "
        f"{_type(field, partial=partial, indent=inner)}"
        for name, field in schema["properties"].items()
    ]
    if schema.get("additionalProperties") is True:
        lines.append(f"{inner}[more: string]: unknown")
    return "\n".join(("{", *lines, f"{indent}}}")) if lines else "Record<string, never>"


def _key(name: str) -> str:
    return name if name.isidentifier() else json.dumps(name)


def _interface(document: Schema, shared: set[str]) -> str:
    lines = ["/** What each operation takes and answers. */", "export interface Operations {"]
    for _, _, operation in _operations(document):
        body, answer = _body(operation), _answer(operation)
        lines += [
            f"  {operation['operationId']}: {{",
            f"    path: {_parameters(operation, 'path')}",
            f"    query: {_parameters(operation, 'query')}",
            f"    body: {_type(body, partial=shared) if body else 'undefined'}",
            f"    answer: {_type(answer, partial=None) if answer else 'undefined'}",
            "  }",
        ]
    return "\n".join((*lines, "}", ""))


def _parameters(operation: Schema, place: str) -> str:
    found = [
        f"{_key(one['name'])}{'' if one['required'] else '?'}: {_type(one['schema'], partial=set())}"
        for one in operation.get("parameters", ())
        if one["in"] == place
    ]
    return f"{{ {'; '.join(found)} }}" if found else "Record<string, never>"


def _table(document: Schema) -> str:
    lines = ["/** Where each operation is. */", "export const OPERATIONS = {"]
    for method, path, operation in _operations(document):
        lines.append(f"  {operation['operationId']}: [{json.dumps(method.upper())}, {json.dumps(path)}],")
    return "\n".join((*lines, "} as const", ""))


if __name__ == "__main__":
    main()
