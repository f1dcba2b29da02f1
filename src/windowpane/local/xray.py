"""A session as its calls tell it, read from the ledger."""

from collections import Counter
from collections.abc import Sequence

from windowpane.api.xray import SentCall, XrayReport
from windowpane.calls.ledger import RecordedCall
from windowpane.calls.parts.waste import Weighed, repeated_texts, stale_results, tool_uses
from windowpane.calls.parts.weight import by_kind
from windowpane.context.events import ModelReplied
from windowpane.context.ids import SessionId
from windowpane.context.session import SessionState
from windowpane.engine import Engine
from windowpane.local.cache import cache_of_session
from windowpane.local.calls import priced
from windowpane.local.parts import PartReader
from windowpane.local.views import session_view
from windowpane.models.windows import window_tokens
from windowpane.text.shared_prefix import shared_prefix

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
    reader = PartReader(engine, session_id)
    sent: list[SentCall] = []
    before: dict[str, bytes] = {}
    last: tuple[int, RecordedCall, Weighed] | None = None
    offered: Counter[str] = Counter()
    for call, view in zip(calls, together.calls, strict=True):
        body = await reader.body(call)
        parts = await reader.parts(call, body)
        written = body.encode("utf-8", "surrogatepass")
        earlier = before.get(call.purpose)
        shared = None if earlier is None else shared_prefix(earlier, written)
        sent.append(SentCall(call=view, kinds=by_kind([weighed for _, weighed in parts]), shared_bytes=shared))
        before[call.purpose] = written
        for part, weighed in parts:
            offered[part.name] += weighed.tokens if part.kind == "tool" else 0
        if call.purpose == "answer" and parts:
            last = (view.number, call, parts)
    number, parts = (last[0], last[2]) if last else (None, ())
    called = await _called(engine, session_id, calls)
    return XrayReport(
        session=session_view(state),
        calls=tuple(sent),
        together=together,
        cache=await cache_of_session(engine, session_id),
        last=number,
        window_tokens=window_tokens(last[1].model) if last else None,
        parts=tuple(weighed for _, weighed in parts),
        tools=tool_uses(parts, called, offered),
        repeated=repeated_texts(parts),
        stale=stale_results(parts),
        subagents=await _subagents(engine, state),
    )


async def _called(engine: Engine, session_id: SessionId, calls: Sequence[RecordedCall]) -> list[str]:
    """Return the names of the tools that were called. What our own calls were answered is in the log."""
    if all(call.answer is None for call in calls):
        events = [recorded.event for recorded in await engine.store.read(session_id)]
        return [
            made.offered_name for event in events if isinstance(event, ModelReplied) for made in event.step.tool_calls
        ]
    replies = [await engine.calls.answer(session_id, call) for call in calls]
    return [made.offered_name for reply in replies if reply is not None for made in reply.tool_calls]


async def _subagents(engine: Engine, state: SessionState) -> tuple[str, ...]:
    if state.origin is None:
        return ()
    page = await engine.sessions.list(state.owner, agent=state.agent, limit=LISTED)
    return tuple(other.id for other in page.sessions if other.origin is not None and other.origin.parent == state.id)
