"""The tool servers of every agent, kept in step with the agents' folders."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import anyio
import anyio.abc

from windowpane.agents.base import Agent, ServerEntry
from windowpane.remarks import get_logger
from windowpane.tools.base import ServerConfig, Toolbox

log = get_logger()


class Toolboxes:
    """One toolbox per agent, opened when the agent is first used and held open in a task of its own."""

    def __init__(self, new: Callable[[], AbstractAsyncContextManager[Toolbox]]) -> None:
        self._new = new
        self._held: dict[str, tuple[Toolbox, tuple[ServerEntry, ...]]] = {}
        self._lock = anyio.Lock()
        self._tasks: anyio.abc.TaskGroup | None = None

    def open_in(self, tasks: anyio.abc.TaskGroup) -> None:
        """Hold toolboxes open in this task group, until it is cancelled."""
        self._tasks = tasks

    async def of(self, agent: Agent) -> Toolbox:
        """Return the agent's toolbox, brought up to date with its folder."""
        held = self._held.get(agent.name)
        if held is not None and held[1] == agent.servers and not self._lock.locked():
            return held[0]
        async with self._lock:
            toolbox, servers = self._held.get(agent.name, (None, None))
            if toolbox is None:
                toolbox = await self._open()
            if servers != agent.servers:
                await toolbox.configure([ServerConfig(name=entry.name, **entry.body) for entry in agent.servers])
                self._held[agent.name] = (toolbox, agent.servers)
            return toolbox

    async def _open(self) -> Toolbox:
        if self._tasks is None:
            raise RuntimeError("the engine is not open: use it inside `async with`")
        return await self._tasks.start(self._hold)

    async def _hold(self, *, task_status: anyio.abc.TaskStatus[Toolbox]) -> None:
        opened: Toolbox | None = None
        try:
            async with self._new() as opened:
                task_status.started(opened)
                await anyio.sleep_forever()
        except Exception:
            if opened is None:
                raise
            # A background task is an edge: the next turn opens the agent's toolbox again.
            log.exception("toolbox.crashed")
            self._held = {agent: held for agent, held in self._held.items() if held[0] is not opened}
