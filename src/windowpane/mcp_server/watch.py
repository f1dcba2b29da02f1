"""Tell listeners when a session's working context changes, in this process or another.

The protocol's listeners hear what this process publishes. Sessions change in other processes too, so the log of a
session is watched as long as it has listeners, and every change that stands in it is published here.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp.shared.uri_template import UriTemplate
from mcp.types import SubscriptionsListenRequestParams
from pydantic import ValidationError

from windowpane.context.events import SessionContext
from windowpane.context.ids import SessionId
from windowpane.engine import Engine
from windowpane.errors import SessionNotFoundError
from windowpane.mcp_server.callers import own_session
from windowpane.supervise import keep_running

CONTEXT_URI = "windowpane://sessions/{session_id}/context"


def uri_of(session_id: SessionId) -> str:
    """Return the address of a session's working context."""
    return CONTEXT_URI.format(session_id=session_id)


class SessionWatch:
    """Watch the sessions that a listener asks about, for as long as it listens."""

    def __init__(self, engine: Engine, bus: InMemorySubscriptionBus) -> None:
        self._engine = engine
        self._bus = bus

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method != "subscriptions/listen":
            return await call_next(ctx)
        seen = await self._seen(_listened_to(ctx.params or {}))
        failed: MCPError | None = None
        result: HandlerResult = None
        async with anyio.create_task_group() as tasks:
            for session_id, seq in seen.items():
                tasks.start_soon(keep_running, "mcp.watch", partial(self._watch, session_id, seq))
            try:
                result = await call_next(ctx)
            except MCPError as error:
                # Out of the task group it would come as a group of errors.
                failed = error
            tasks.cancel_scope.cancel()
        if failed is not None:
            raise failed
        return result

    async def _seen(self, session_ids: Sequence[SessionId]) -> dict[SessionId, int]:
        seen: dict[SessionId, int] = {}
        for session_id in session_ids:
            try:
                own = await own_session(self._engine, session_id, "read")
                seen[session_id] = (await self._engine.sessions.get(own)).seq
            except SessionNotFoundError:
                # What does not exist never changes.
                continue
        return seen

    async def _watch(self, session_id: SessionId, after: int) -> None:
        async for entry in self._engine.store.subscribe(session_id, after=after):
            if isinstance(entry.event, SessionContext) and entry.event.reason == "changed":
                await self._bus.publish(ResourceUpdated(uri_of(session_id)))


def _listened_to(params: Mapping[str, Any]) -> list[SessionId]:
    """Return the sessions that a listener asks about. What is malformed is refused later, by the library."""
    try:
        wanted = SubscriptionsListenRequestParams.model_validate(params).notifications
    except ValidationError:
        return []
    found = map(session_of, wanted.resource_subscriptions or ())
    return [session_id for session_id in found if session_id is not None]


def session_of(uri: str) -> SessionId | None:
    """Return the session whose working context an address names, or None."""
    match = _TEMPLATE.match(uri)
    return SessionId(str(match["session_id"])) if match else None


_TEMPLATE = UriTemplate.parse(CONTEXT_URI)
