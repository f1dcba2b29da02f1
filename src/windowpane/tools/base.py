"""The tool port: which tools there are now, and how to call one.

Tool servers come and go, so nothing here is settled: `servers()` is a picture of this moment, and `call()` says
clearly when the server is not there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from windowpane.context.agents import ServerState
from windowpane.context.items import IncludeMode, Permission, Tool
from windowpane.context.messages import NewFile

SHORTEST_SECRET = 8
"""Shorter values are not taken for secrets: they are words that stand in many texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """One entry of `mcpServers`: how to reach a server, and how its tools are included and permitted.

    Either `command` (a process that speaks over its pipes) or `url` (streamable HTTP) is set. Where `include` is not
    set, the tools of a server that brings more than `always_up_to` are selected; None: any number is always sent.
    """

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    include: IncludeMode | None = None
    always_up_to: int | None = None
    permission: Permission | None = None
    tool_include: Mapping[str, IncludeMode] = field(default_factory=dict[str, IncludeMode])
    tool_permission: Mapping[str, Permission] = field(default_factory=dict[str, Permission])
    enabled: bool = True
    timeout_s: float = 60.0

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return what may be secret in this entry and must not be shown when the server repeats it, longest first.

        These are the values of headers and variables, other than paths, and user, password and query of the address.
        """
        url = urlsplit(self.url or "")
        in_url = [url.username or "", unquote(url.password or ""), *(value for _, value in parse_qsl(url.query))]
        given = [*self.env.values(), *self.headers.values(), *in_url]
        words = {word for value in given for word in (value, value.rpartition(" ")[2])}
        return tuple(sorted((word for word in words if _may_be_secret(word)), key=len, reverse=True))

    def effective_include(self, tool: str, tools: int = 0) -> IncludeMode:
        """Return how a tool of a server with this many is included: its own setting, its server's, or `always`."""
        many: IncludeMode = "agent" if self.always_up_to is not None and tools > self.always_up_to else "always"
        return self.tool_include.get(tool) or self.include or many

    def effective_permission(self, tool: str) -> Permission:
        """Return what a tool may do: its own setting, its server's, or `required`."""
        return self.tool_permission.get(tool) or self.permission or "required"

    def reaches_same(self, other: "ServerConfig") -> bool:
        """Tell whether both reach the same server the same way, whatever they say about its tools."""
        return _reach(self) == _reach(other)


def _reach(config: ServerConfig) -> tuple[object, ...]:
    process = (config.command, config.args, dict(config.env), config.cwd)
    return (config.name, *process, config.url, dict(config.headers), config.enabled)


def _may_be_secret(word: str) -> bool:
    return len(word) >= SHORTEST_SECRET and not word.startswith(("/", "~", "."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long to wait for a server, and between attempts."""

    connect_timeout_s: float = 30.0
    first_pause_s: float = 0.5
    longest_pause_s: float = 30.0
    check_every_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """A tool server at this moment. `tools` are the last known ones, also while the server is away.

    `unlocked` are the names of those that it added while it was connected.
    """

    name: str
    state: ServerState
    error: str = ""
    version: str = ""
    tools: tuple[Tool, ...] = ()
    unlocked: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool gave back: the text that the model will read, and images and documents beside it.

    `links` are the addresses of the server's resources that it named.
    """

    content: str
    is_error: bool = False
    files: tuple[NewFile, ...] = ()
    links: tuple[str, ...] = ()


class Toolbox(Protocol):
    """The tool servers of one agent."""

    async def configure(self, servers: Sequence[ServerConfig]) -> None:
        """Make these the servers: connect new ones in the background, drop the others, keep unchanged ones."""
        ...

    def servers(self) -> tuple[ServerStatus, ...]:
        """Return every configured server as it is now, in the order of their names."""
        ...

    async def settled(self, timeout_s: float) -> None:
        """Wait until no server is still connecting, or until the time is up."""
        ...

    async def call(self, server: str, tool: str, arguments: Mapping[str, Any]) -> ToolOutput:
        """Call a tool. What the tool itself reports as a failure comes back as an output with `is_error`.

        Raises:
            ToolServerDownError: the server is not connected.
            ToolTimeoutError: no answer within the server's `timeout_s`.
            ToolError: the server answered with something that is not a result.
        """
        ...

    async def read(self, server: str, uri: str) -> ToolOutput:
        """Read a resource of a server, as one text with its files.

        Raises:
            ToolServerDownError: the server is not connected.
            ToolTimeoutError: no answer within the server's `timeout_s`.
            ToolError: the server has no such resource, or answered with something that is not one.
        """
        ...
