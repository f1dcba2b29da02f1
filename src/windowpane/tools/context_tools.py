"""The two tools by which a model keeps its working context.

They take the path of every other tool: offered, permitted, called and recorded alike. What differs is that they belong
to one session, so a turn sees the agent's toolbox through `WithContextTools`, which knows the session's sets and
answers for the server `windowpane` itself.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from windowpane.context.items import BUILT_IN_SERVER, Tool
from windowpane.context.sets import MAX_PER_SET, MAX_TOTAL, ChangeMode, ContextSets, SetChange
from windowpane.errors import ToolServerDownError
from windowpane.tools.base import ServerConfig, ServerStatus, Toolbox, ToolOutput

NOTHING_STORED = "No context stored for this session"

SET_DESCRIPTION = f"""Note what this session works on. You see it on resume, people at once.
"replace" (default) sets a set, [] deletes it; "merge" adds.
Sets: files (absolute paths), applet (slug, then "key=value"), endpoints, ports, others.
Examples: "files", ["/srv/a.md"], "merge"; "ports", [].
Max {MAX_PER_SET} items per set, {MAX_TOTAL} items total across all sets."""

GET_DESCRIPTION = "Read what was noted: one set or all. Use it on resume."

SET_TOOL = Tool(
    server=BUILT_IN_SERVER,
    name="set_relevant_context",
    description=SET_DESCRIPTION,
    parameters={
        "type": "object",
        "properties": {
            "set_name": {"type": "string"},
            "items": {"type": "array", "items": {"type": "string"}, "maxItems": MAX_PER_SET},
            "mode": {"type": "string", "enum": ["replace", "merge"], "default": "replace"},
        },
        "required": ["set_name", "items"],
    },
    permission="not_required",
)
GET_TOOL = Tool(
    server=BUILT_IN_SERVER,
    name="get_relevant_context",
    description=GET_DESCRIPTION,
    parameters={"type": "object", "properties": {"set_name": {"type": "string"}}},
    permission="not_required",
)
CONTEXT_TOOLS = (GET_TOOL, SET_TOOL)


class SessionSets(Protocol):
    """The working context of one session."""

    async def set(self, set_name: str, items: Sequence[str], mode: ChangeMode) -> SetChange:
        """Change one set, and return what became of it."""
        ...

    async def sets(self) -> ContextSets:
        """Return all sets."""
        ...


class WithContextTools:
    """A toolbox and the context tools of one session beside it."""

    def __init__(self, toolbox: Toolbox, sets: SessionSets) -> None:
        self._toolbox = toolbox
        self._sets = sets

    async def configure(self, servers: Sequence[ServerConfig]) -> None:
        """Configure the toolbox; what is built in needs no configuration."""
        await self._toolbox.configure(servers)

    def servers(self) -> tuple[ServerStatus, ...]:
        """Return the toolbox's servers and the one that is built in, which no other server can replace."""
        others = (server for server in self._toolbox.servers() if server.name != BUILT_IN_SERVER)
        built_in = ServerStatus(name=BUILT_IN_SERVER, state="ready", tools=CONTEXT_TOOLS)
        return tuple(sorted((*others, built_in), key=lambda server: server.name))

    async def settled(self, timeout_s: float) -> None:
        """Wait for the toolbox."""
        await self._toolbox.settled(timeout_s)

    async def call(self, server: str, tool: str, arguments: Mapping[str, Any]) -> ToolOutput:
        """Call a tool; see `Toolbox.call`."""
        if server != BUILT_IN_SERVER:
            return await self._toolbox.call(server, tool, arguments)
        if tool == SET_TOOL.name:
            return await _set(self._sets, arguments)
        if tool == GET_TOOL.name:
            return await _get(self._sets, arguments)
        raise ToolServerDownError(server, f"it has no tool {tool!r}")

    async def read(self, server: str, uri: str) -> ToolOutput:
        """Read a resource; see `Toolbox.read`."""
        return await self._toolbox.read(server, uri)


def shown(sets: ContextSets, set_name: str | None = None) -> str:
    """Return sets as the model reads them: one of them, also when it is empty, or all there are."""
    chosen = sets if set_name is None else {set_name: sets.get(set_name, ())}
    return json.dumps(chosen, indent=2, ensure_ascii=False) if chosen else NOTHING_STORED


async def _set(sets: SessionSets, arguments: Mapping[str, Any]) -> ToolOutput:
    name, items = _set_name(arguments), arguments.get("items")
    if name is None or items is None:
        return ToolOutput("Give set_name and items. Nothing was changed.", is_error=True)
    if isinstance(items, list):
        items = [_as_text(item) for item in cast("list[Any]", items)]
    change = await sets.set(name, items, arguments.get("mode", "replace"))
    return ToolOutput(change.text, is_error=change.refused)


def _as_text(item: Any) -> Any:
    """Return a number as text: models give ports that way. Anything else is left for the sets to judge."""
    return str(item) if isinstance(item, int) and not isinstance(item, bool) else item


async def _get(sets: SessionSets, arguments: Mapping[str, Any]) -> ToolOutput:
    name = _set_name(arguments)
    if not isinstance(name, str | None):
        return ToolOutput("A set name must be a string.", is_error=True)
    return ToolOutput(shown(await sets.sets(), name))


def _set_name(arguments: Mapping[str, Any]) -> Any:
    return arguments.get("set_name", arguments.get("setName"))
