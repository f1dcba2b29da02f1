"""Keep one tool server connected, for as long as it is configured.

One task opens the connection, stays with it, closes it, and tries again after a pause that doubles from attempt to
attempt. A call that needs the server ends the pause. A server that failed stays `failed` while it is tried again, so
that no caller waits for a server that is down; `connecting` is said only of the first attempt.
"""

import math
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio

from windowpane.context.agents import ServerState
from windowpane.context.items import Tool
from windowpane.errors import ToolServerDownError
from windowpane.supervise import keep_running
from windowpane.text.redact import redacted
from windowpane.tools.base import Pace, ServerConfig, ServerStatus, ToolOutput
from windowpane.tools.connection import McpConnection, NotDeliveredError
from windowpane.tools.failure import exited, too_slow, why
from windowpane.tools.listing import Listing
from windowpane.tools.output import output, read_output
from windowpane.tools.transports import TransportState

_CLOSE_S = 5.0
_Answer = TypeVar("_Answer")


class Supervisor:
    """One configured server."""

    def __init__(
        self, config: ServerConfig, pace: Pace, changed: Callable[[], None], roots: Sequence[Path] = ()
    ) -> None:
        self.config = config
        self._roots = roots
        self._unlocked: frozenset[str] = frozenset()
        self.stopped = anyio.Event()
        self._pace = pace
        self._tell = changed
        self._listing = Listing()
        self._connection: McpConnection | None = None
        self._watch = TransportState()
        self._connecting: anyio.CancelScope | None = None
        self._stopping = False
        self._failed_attempts = 0
        self._wanted_after = -1
        self._wake = anyio.Event()
        self._news = anyio.Event()
        self.status = ServerStatus(name=config.name, state="connecting" if config.enabled else "disabled")

    def inherit(self, listing: Listing) -> None:
        """Start with the tools that are known from before."""
        self._listing = listing
        self._set(self.status.state)

    @property
    def listing(self) -> Listing:
        """Return the last known tools."""
        return self._listing

    def adjust(self, config: ServerConfig) -> None:
        """Take over settings about the server's tools; the connection stays."""
        self.config = config
        self._set(self.status.state, error=self.status.error)

    async def run(self, predecessor: "Supervisor | None") -> None:
        """Keep the server connected until `stop()`. It begins when the predecessor's connection is closed."""
        try:
            if predecessor is not None:
                await predecessor.stopped.wait()
            if (fault := _fault(self.config)) or not self.config.enabled:
                self._set("failed" if fault and self.config.enabled else "disabled", error=fault)
                return
            await keep_running("tools.server", self._keep_connected, server=self.config.name)
        finally:
            self._stopping = True
            self.stopped.set()
            self._announce()

    def stop(self) -> None:
        """Ask the supervising task to close the connection and end."""
        self._stopping = True
        self._wake.set()
        self._watch.end()
        if self._connecting is not None:
            self._connecting.cancel()

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolOutput:
        """Call a tool, after one attempt to bring the server back if it is away."""
        return output(await self._asked(lambda server: server.call(tool, arguments, self.config.timeout_s)))

    async def read(self, uri: str) -> ToolOutput:
        """Read a resource, after one attempt to bring the server back if it is away."""
        return read_output(await self._asked(lambda server: server.read(uri, self.config.timeout_s)))

    async def _asked(self, ask: Callable[[McpConnection], Awaitable[_Answer]]) -> _Answer:
        try:
            return await self._asked_once(ask)
        except NotDeliveredError:
            pass
        try:
            return await self._asked_once(ask)
        except NotDeliveredError as again:
            raise ToolServerDownError(self.config.name, str(again)) from None

    async def _asked_once(self, ask: Callable[[McpConnection], Awaitable[_Answer]]) -> _Answer:
        connection = await self._connected()
        try:
            return await ask(connection)
        except NotDeliveredError as error:
            self._lose(connection, str(error))
            raise

    async def _connected(self) -> McpConnection:
        if self._connection is not None and self._watch.ended.is_set():
            self._lose(self._connection, self._watch.reason)
        if self._connection is not None:
            return self._connection
        failed_before = self._wanted_after = self._failed_attempts
        self._wake.set()
        while self._connection is None and self._failed_attempts == failed_before and not self._stopping:
            await self._news.wait()
        if self._connection is None:
            raise ToolServerDownError(self.config.name, self.status.error or f"it is {self.status.state}")
        return self._connection

    async def _keep_connected(self) -> None:
        pause_s = self._pace.first_pause_s
        while not self._stopping:
            began = anyio.current_time()
            error = await self._live()
            if self._stopping:
                return
            self._set("failed", error=error)
            if anyio.current_time() - began > self._pace.longest_pause_s + self._pace.connect_timeout_s:
                pause_s = self._pace.first_pause_s
            await self._pause(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(pause_s * 2, self._pace.longest_pause_s)

    async def _live(self) -> str:
        """Connect, stay until the connection ends, close it, and return why it ended."""
        watch = self._watch = TransportState()
        limit_s = self._pace.connect_timeout_s
        ready = False
        error = ""
        with anyio.CancelScope(deadline=anyio.current_time() + limit_s) as scope:
            self._connecting = scope
            try:
                connection = McpConnection(self.config, watch, self._roots)
                async with connection.client:
                    listing = await connection.listing()
                    scope.deadline = math.inf
                    self._connecting = None
                    ready = True
                    self._ready(connection, listing)
                    await connection.stay(partial(self._list_again, connection), self._pace.check_every_s)
                    self._lose(connection, watch.reason)
                    scope.deadline = anyio.current_time() + _CLOSE_S
            # The edge to other people's servers: the library lets through whatever broke in its transports, often in
            # groups, and all of it means the same here.
            except Exception as broken:  # noqa: BLE001
                error = why(broken, self.config, watch)
            finally:
                self._connecting = None
                self._lose(self._connection, error)
        if not ready:
            self._failed_attempts += 1
        if error:
            return error
        if scope.cancelled_caught and not ready:
            return too_slow(limit_s, watch)
        return watch.reason or (exited(watch) if self.config.url is None else "the connection was lost")

    async def _pause(self, seconds: float) -> None:
        self._wake = anyio.Event()
        if self._stopping or self._wanted_after == self._failed_attempts:
            return
        with anyio.move_on_after(seconds):
            await self._wake.wait()

    def _ready(self, connection: McpConnection, listing: Listing) -> None:
        self._connection = connection
        self._wanted_after = -1
        self.status = replace(self.status, version=connection.version)
        self._list(connection, listing)

    def _list(self, connection: McpConnection, listing: Listing) -> None:
        if connection is self._connection:
            self._listing = listing
            self._set("ready", error=listing.problem)

    def _list_again(self, connection: McpConnection, listing: Listing) -> None:
        before = {tool.name for tool in self._listing.tools}
        self._unlocked |= {tool.name for tool in listing.tools if tool.name not in before}
        self._list(connection, listing)

    def _lose(self, connection: McpConnection | None, reason: str) -> None:
        if connection is not None and connection is self._connection:
            self._connection = None
            self._set("failed", error=reason or "the connection was lost")

    def _set(self, state: ServerState, *, error: str = "") -> None:
        version = self.status.version
        tools = tuple(
            Tool(
                self.config.name,
                listed.name,
                listed.description,
                listed.parameters,
                self.config.effective_include(listed.name, len(self._listing.tools)),
                self.config.effective_permission(listed.name),
                version,
            )
            for listed in self._listing.tools
        )
        error = redacted(error, self.config.secrets)
        self.status = ServerStatus(
            name=self.config.name, state=state, error=error, version=version, tools=tools, unlocked=self._unlocked
        )
        self._announce()

    def _announce(self) -> None:
        self._news.set()
        self._news = anyio.Event()
        self._tell()


def _fault(config: ServerConfig) -> str:
    if config.command and config.url:
        return "it has both a command and a url; keep one"
    if not config.command and not config.url:
        return "it has neither a command nor a url"
    return ""
