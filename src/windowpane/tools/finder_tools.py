"""The finders: built-in tools by which a model asks for what was not sent.

Three are offered when `agent` items were left out of a request, and what they find is added to the request of the same
turn. `read_resource` is offered when the result of a tool has named a resource. `request/finders.py` answers them.
"""

from typing import Any

from windowpane.context.items import BUILT_IN_SERVER, ItemType, Tool

MOST_FOUND = 10
"""How many items one search finds."""

_QUERY: dict[str, Any] = {"query": {"type": "string", "description": "What it is for, in a few words."}}

FIND_TOOLS = Tool(
    server=BUILT_IN_SERVER,
    name="find_tools",
    description="Find more tools, when those you have cannot do what is asked. You can call what is found at once.",
    parameters={"type": "object", "properties": _QUERY, "required": ["query"]},
    permission="not_required",
)
FIND_REFERENCES = Tool(
    server=BUILT_IN_SERVER,
    name="find_references",
    description="Find more reference documents. Read them with read_reference.",
    parameters={"type": "object", "properties": _QUERY, "required": ["query"]},
    permission="not_required",
)
READ_REFERENCE = Tool(
    server=BUILT_IN_SERVER,
    name="read_reference",
    description="Read a reference document by its name. A long one has several pages.",
    parameters={
        "type": "object",
        "properties": {"name": {"type": "string"}, "page": {"type": "integer", "minimum": 1, "default": 1}},
        "required": ["name"],
    },
    permission="not_required",
)
FINDERS: dict[ItemType, tuple[Tool, ...]] = {"tool": (FIND_TOOLS,), "reference": (FIND_REFERENCES, READ_REFERENCE)}
"""The finders by the kind of item that they find."""

READ_RESOURCE = Tool(
    server=BUILT_IN_SERVER,
    name="read_resource",
    description="Read a resource that the result of a tool named, as [resource <uri> …].",
    parameters={"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]},
    permission="not_required",
)

FINDER_REFS = {tool.ref: tool for tools in (*FINDERS.values(), (READ_RESOURCE,)) for tool in tools}
"""The finders by their names."""
