"""The tool servers of one agent, over the Model Context Protocol.

Each configured server has a supervisor, which runs in a task of the toolbox. The toolbox only decides which
supervisors there are and passes calls on; servers start, fail and come back while no caller waits for them.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio
import anyio.abc

from windowpane.errors import InvalidSettingError, ToolError, ToolServerDownError
from windowpane.supervise import supervised
from windowpane.tools.base import Pace, ServerConfig, ServerStatus, ToolOutput

if TYPE_CHECKING:
    from windowpane.tools.supervisor import Supervisor

_CLOSE_ALL_S = 15.0


class McpToolbox:
    """Tool servers that speak MCP, over pipes or streamable HTTP. Open it with `async with`, in one task."""

    def __init__(self, pace: Pace | None = None, *, roots: Sequence[Path] = ()) -> None:
        """Take how long to wait for servers, and the folders that they are told they may work in."""
        self._pace = pace or Pace()
        self._roots = tuple(roots)
        self._supervisors: dict[str, Supervisor] = {}
        self._tasks: anyio.abc.TaskGroup | None = None
        self._changed = anyio.Event()

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        tasks, self._tasks = self._open_tasks(), None
        for supervisor in self._supervisors.values():
            supervisor.stop()
        tasks.cancel_scope.deadline = anyio.current_time() + _CLOSE_ALL_S
        # An error of the caller's is not an error of these tasks, which would wrap it in a group.
        await tasks.__aexit__(None, None, None)

    async def configure(self, servers: Sequence[ServerConfig]) -> None:
        """Make these the servers.

        A server whose settings say only something else about its tools keeps its connection. One that is reached in
        another way is closed, and connected again once it is closed.
        """
        tasks = self._open_tasks()
        wanted = {config.name: config for config in servers}
        if len(wanted) < len(servers):
            raise InvalidSettingError("mcpServers", "two servers have the same name")
        for name in self._supervisors.keys() - wanted.keys():
            self._supervisors.pop(name).stop()
        for name, config in sorted(wanted.items()):
            present = self._supervisors.get(name)
            if present is not None and present.config.reaches_same(config):
                present.adjust(config)
            else:
                self._supervisors[name] = supervisor = self._new_supervisor(config)
                if present is not None:
                    present.stop()
                    if config.enabled:
                        supervisor.inherit(present.listing)
                tasks.start_soon(supervised, "tools.server", partial(supervisor.run, present))

    def servers(self) -> tuple[ServerStatus, ...]:
        """Return every configured server as it is now, in the order of their names."""
        return tuple(supervisor.status for _, supervisor in sorted(self._supervisors.items()))

    async def settled(self, timeout_s: float) -> None:
        """Wait until no server is still connecting, or until the time is up."""
        with anyio.move_on_after(timeout_s):
            while any(status.state == "connecting" for status in self.servers()):
                await self._changed.wait()

    async def call(self, server: str, tool: str, arguments: Mapping[str, Any]) -> ToolOutput:
        """Call a tool. A server that is away is tried once more first; a call that may have run is never repeated.

        Raises:
            ToolServerDownError: the server is not connected, or was lost during the call.
            ToolTimeoutError: no answer within the server's `timeout_s`.
            ToolError: the server answered with something that is not a result.
        """
        supervisor = self._supervisor(server)
        if fault := _unsendable(arguments):
            raise ToolError(f"{server}:{tool} was not called: {fault}")
        return await supervisor.call(tool, arguments)

    async def read(self, server: str, uri: str) -> ToolOutput:
        """Read a resource. A server that is away is tried once more first.

        Raises:
            ToolServerDownError: the server is not connected, or was lost meanwhile.
            ToolTimeoutError: no answer within the server's `timeout_s`.
            ToolError: the server has no such resource, or answered with something that is not one.
        """
        return await self._supervisor(server).read(uri)

    def _new_supervisor(self, config: ServerConfig) -> "Supervisor":
        # Here: the protocol's library takes most of a second to import, and an agent without servers needs none of it.
        from windowpane.tools.supervisor import Supervisor

        return Supervisor(config, self._pace, self._announce, self._roots)

    def _supervisor(self, server: str) -> "Supervisor":
        found = self._supervisors.get(server)
        if found is None:
            raise ToolServerDownError(server, "it is not configured")
        return found

    def _open_tasks(self) -> anyio.abc.TaskGroup:
        if self._tasks is None:
            raise RuntimeError("open the toolbox with `async with` first")
        return self._tasks

    def _announce(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def _unsendable(arguments: Mapping[str, Any]) -> str:
    """Return why arguments cannot be sent; empty when they can. Half a character would end the connection."""
    try:
        json.dumps(arguments, ensure_ascii=False).encode()
    except (UnicodeEncodeError, TypeError, ValueError) as error:
        return f"its arguments are not JSON: {error}"
    return ""
