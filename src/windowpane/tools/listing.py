"""Read a server's list of tools so that one bad entry does not cost the others.

The protocol library refuses a whole list for one entry that it cannot read. So each entry is first reduced to what
is used here: a name, a description and the schema of its arguments. A schema that no provider would take is replaced
by one that allows anything, an entry that cannot be called is left out, and either is told in a note.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mcp.shared.inbound import find_invalid_x_mcp_header

from windowpane.tools.schemas import schema_fault

MAX_NOTES = 20


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool as its server describes it."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Listing:
    """All tools of a server, in its order, and what was wrong with the list."""

    tools: tuple[ListedTool, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def problem(self) -> str:
        """Return the notes as one line; empty when the list was in order."""
        more = len(self.notes) - MAX_NOTES
        return "; ".join((*self.notes[:MAX_NOTES], *((f"and {more} more",) if more > 0 else ())))


def clean(entries: Sequence[object]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the entries of one page that can be used, in the protocol's shape, and a note for each that is odd."""
    cleaned: list[dict[str, Any]] = []
    notes: list[str] = []
    for entry in entries:
        raw = cast("Mapping[str, object]", entry if isinstance(entry, dict) else {})
        name = raw.get("name")
        if not isinstance(name, str) or not name:
            notes.append("a tool without a name was left out")
            continue
        schema, fault = _schema(raw.get("inputSchema"))
        if fault:
            notes.append(f"tool {name!r} is offered without its input schema, which is not valid: {fault}")
        if (reason := find_invalid_x_mcp_header(schema)) is not None:
            notes.append(f"tool {name!r} was left out: its x-mcp-header is not valid: {reason}")
            continue
        cleaned.append({"name": name, "description": _description(raw), "inputSchema": schema})
    return cleaned, notes


def joined(tools: Sequence[ListedTool], notes: Sequence[str]) -> Listing:
    """Return the listing that all pages make. Of tools with one name the first is the one that can be called."""
    first: dict[str, ListedTool] = {}
    repeated: dict[str, None] = {}
    for tool in tools:
        if first.setdefault(tool.name, tool) is not tool:
            repeated[tool.name] = None
    also = [f"there is more than one tool {name!r}; the first is used" for name in repeated]
    return Listing(tuple(first.values()), (*notes, *also))


def _schema(raw: object) -> tuple[dict[str, Any], str]:
    anything: dict[str, Any] = {"type": "object", "properties": {}}
    if not isinstance(raw, dict):
        return anything, "it is not an object"
    schema: dict[str, Any] = {"type": "object"} | cast("dict[str, Any]", raw)
    if schema["type"] != "object":
        return anything, f"its type is {schema['type']!r}, not 'object'"
    fault = schema_fault(schema)
    return (anything, fault) if fault else (schema, "")


def _description(raw: Mapping[str, object]) -> str:
    texts = (raw.get("description"), raw.get("title"))
    return next((text for text in texts if isinstance(text, str) and text), "")
