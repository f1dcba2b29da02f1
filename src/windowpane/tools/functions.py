"""Tools that are plain async functions of this process, for programs that embed Windowpane.

They take the same path as tools of MCP servers: offered, approved, recorded and called alike. Functions are grouped
under server names, and servers may be added and dropped at any time.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from windowpane.context.items import IncludeMode, Permission, Tool
from windowpane.context.text import valid_unicode
from windowpane.errors import ToolError, ToolServerDownError
from windowpane.tools.base import ServerConfig, ServerStatus, ToolOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTool:
    """A function that a model may call. It takes the arguments as a mapping and returns the text of its result,
    or a `ToolOutput` with files.
    """

    name: str
    run: Callable[[Mapping[str, Any]], Awaitable[str | ToolOutput]]
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    include: IncludeMode = "always"
    permission: Permission = "required"


class FunctionToolbox:
    """Servers made of functions."""

    def __init__(self, servers: Mapping[str, Sequence[FunctionTool]] | None = None) -> None:
        self._servers: dict[str, tuple[FunctionTool, ...]] = {}
        for name, tools in (servers or {}).items():
            self.put(name, tools)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        return None

    def put(self, server: str, tools: Sequence[FunctionTool]) -> None:
        """Add a server, or replace its tools."""
        self._servers[server] = tuple(tools)

    def drop(self, server: str) -> None:
        """Take a server away."""
        del self._servers[server]

    async def configure(self, servers: Sequence[ServerConfig]) -> None:
        """Do nothing: functions are put here by the program, not by the agent's folder."""

    def servers(self) -> tuple[ServerStatus, ...]:
        """Return every server; all are ready."""
        return tuple(
            ServerStatus(name=name, state="ready", tools=tuple(_tool(name, tool) for tool in tools))
            for name, tools in sorted(self._servers.items())
        )

    async def settled(self, timeout_s: float) -> None:
        """Return at once: functions need no connection."""

    async def call(self, server: str, tool: str, arguments: Mapping[str, Any]) -> ToolOutput:
        """Call a function. An exception that it raises is an error result."""
        found = next((function for function in self._servers.get(server, ()) if function.name == tool), None)
        if found is None:
            raise ToolServerDownError(server, f"it has no tool {tool!r} any more")
        try:
            output = await found.run(arguments)
        except Exception as error:  # noqa: BLE001 - a caller's function may raise anything; the model is told
            return ToolOutput(f"{type(error).__name__}: {error}", is_error=True)
        if isinstance(output, ToolOutput):
            return output
        if not isinstance(output, str):  # pyright: ignore[reportUnnecessaryIsInstance] - types are not checked at run time
            return ToolOutput(f"The tool returned {type(output).__name__}, which is not a text.", is_error=True)
        return ToolOutput(output)

    async def read(self, server: str, uri: str) -> ToolOutput:
        """Refuse: functions have no resources."""
        raise ToolError(f"{server} has no resource {uri}")


def _tool(server: str, tool: FunctionTool) -> Tool:
    return Tool(
        server=server,
        name=tool.name,
        description=valid_unicode(tool.description),
        parameters=tool.parameters,
        include=tool.include,
        permission=tool.permission,
    )
