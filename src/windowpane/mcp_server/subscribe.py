"""`resources/subscribe` for hosts of older protocols: they are told on their own connection when a session changes.

Newer ones listen (`watch.py`). A subscription lives until it is taken back, its connection closes or the server ends.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import anyio.abc
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, EmptyResult, SubscribeRequestParams, UnsubscribeRequestParams

from windowpane.context.events import SessionContext
from windowpane.context.ids import SessionId
from windowpane.engine import Engine
from windowpane.errors import SessionNotFoundError
from windowpane.mcp_server.callers import own_session
from windowpane.mcp_server.watch import session_of
from windowpane.supervise import supervised

CLOSED = (anyio.ClosedResourceError, anyio.BrokenResourceError, MCPError)


class LegacySubscriptions:
    """Which connection is told of which session's working context."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._scopes: dict[tuple[int, str], anyio.CancelScope] = {}
        self._tasks: anyio.abc.TaskGroup | None = None

    @asynccontextmanager
    async def running(self, server: object) -> AsyncGenerator[None]:
        """Watch in the background while the server runs."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            try:
                yield
            finally:
                self._tasks = None
                tasks.cancel_scope.cancel()

    async def subscribe(self, ctx: ServerRequestContext[Any, Any], params: SubscribeRequestParams) -> EmptyResult:
        """Begin to tell a connection of a session's changes. To ask twice is to ask once."""
        uri, key = str(params.uri), _key(ctx, str(params.uri))
        session_id = session_of(uri)
        if session_id is None or self._tasks is None:
            raise MCPError(INVALID_PARAMS, f"{uri} does not change; subscribe to a session's working context")
        try:
            own = await own_session(self._engine, session_id, "read")
            seq = (await self._engine.sessions.get(own)).seq
        except SessionNotFoundError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from None
        if key not in self._scopes:
            self._scopes[key] = anyio.CancelScope()
            tell = partial(self._tell, key, ctx.session, own, seq)
            self._tasks.start_soon(supervised, "mcp.subscription", tell)
        return EmptyResult()

    async def unsubscribe(self, ctx: ServerRequestContext[Any, Any], params: UnsubscribeRequestParams) -> EmptyResult:
        """Tell a connection nothing more of a session."""
        scope = self._scopes.get(_key(ctx, str(params.uri)))
        if scope is not None:
            scope.cancel()
        return EmptyResult()

    async def _tell(self, key: tuple[int, str], host: ServerSession, session_id: SessionId, after: int) -> None:
        try:
            with self._scopes[key]:
                async for entry in self._engine.store.subscribe(session_id, after=after):
                    if isinstance(entry.event, SessionContext) and entry.event.reason == "changed":
                        await host.send_resource_updated(key[1])
        except CLOSED:
            # The host is gone.
            return
        finally:
            del self._scopes[key]


def _key(ctx: ServerRequestContext[Any, Any], uri: str) -> tuple[int, str]:
    """Return what stands for a connection and a resource. The library makes a session for each request of it.

    What a host said at the beginning is one object for all of them; it lives as long as a task tells the host anything.
    """
    return id(ctx.session.client_params), uri
