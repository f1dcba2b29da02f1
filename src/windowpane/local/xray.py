"""A session as its calls tell it, read from the ledger."""

from collections.abc import Sequence

import anyio.to_thread

from windowpane.api.xray import SentCall, XrayReport
from windowpane.calls.ledger import RecordedCall
from windowpane.calls.measure import part_sizes, shared_prefix, tool_uses
from windowpane.context.ids import SessionId
from windowpane.context.session import SessionState
from windowpane.engine import Engine
from windowpane.local.cache import cache_of_session
from windowpane.local.calls import priced
from windowpane.local.views import session_view

LISTED = 200
"""How many of the owner's sessions are looked through for those of subagents."""


async def xray_report(engine: Engine, session_id: SessionId) -> XrayReport:
    """Return the essence of a session's calls.

    Raises:
        SessionNotFoundError: no such session.
    """
    state = await engine.sessions.get(session_id)
    calls = await engine.calls.of_session(session_id)
    together = priced(calls)
    sent: list[SentCall] = []
    before: dict[str, bytes] = {}
    for call, view in zip(calls, together.calls, strict=True):
        wire = await engine.calls.wire(session_id, call)
        body = wire.body if wire is not None and wire.body is not None else b""
        last = before.get(call.purpose)
        parts = await anyio.to_thread.run_sync(part_sizes, body)
        sent.append(SentCall(call=view, parts=parts, shared_bytes=None if last is None else shared_prefix(last, body)))
        before[call.purpose] = body
    called = await _called(engine, session_id, calls)
    return XrayReport(
        session=session_view(state),
        calls=tuple(sent),
        together=together,
        cache=await cache_of_session(engine, session_id),
        tools=await anyio.to_thread.run_sync(tool_uses, before.get("answer", b""), called),
        subagents=await _subagents(engine, state),
    )


async def _called(engine: Engine, session_id: SessionId, calls: Sequence[RecordedCall]) -> list[str]:
    replies = [await engine.calls.answer(session_id, call) for call in calls]
    return [made.offered_name for reply in replies if reply is not None for made in reply.tool_calls]


async def _subagents(engine: Engine, state: SessionState) -> tuple[str, ...]:
    if state.origin is None:
        return ()
    page = await engine.sessions.list(state.owner, agent=state.agent, limit=LISTED)
    return tuple(other.id for other in page.sessions if other.origin is not None and other.origin.parent == state.id)
