"""A session as a file that others can open: what was said, and every call taken apart.

The page shows it without storing it. Anything that looks like a key is taken out of every text. In a redacted file a
text is replaced by its length and a hash, unless it stands where only names of our own and of the protocol stand.
"""

import hashlib
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol, cast

import anyio.to_thread

from windowpane.api.sessions import MessagePage
from windowpane.api.turns import CallRecord
from windowpane.api.xray import ReadPart, SharedCall, SharedSession
from windowpane.calls.parts.body import cut
from windowpane.context.ids import SessionId
from windowpane.context.messages import Message
from windowpane.engine import Engine
from windowpane.json_codec import JsonCodec
from windowpane.local.calls import call_of_session
from windowpane.local.xray import xray_report
from windowpane.text.redact import redacted as without_keys

PAGE = 100

_SHARED = JsonCodec(SharedSession)

PLAIN = frozenset(
    (
        *("kind", "role", "type", "outcome", "purpose", "happened", "status", "state", "code", "include_mode"),
        *("id", "parent", "session_id", "call_id", "tool_call_id", "subagents", "sha256", "format", "version"),
        *("model", "agent", "program", "method", "offered_name", "tool", "server", "finish_reason"),
        *("at", "started_at", "created_at", "updated_at", "shared_at", "cost_usd", "lost_usd"),
    )
)
"""Fields whose values are names, times and numbers of ours or of the protocol. All others are texts."""

DROPPED: Mapping[str, object] = {"settings": {}, "items": [], "excluded": [], "context": {}, "summary": None}
"""Fields of a session that a redacted file leaves empty: they would say nothing without their texts."""


class ReadMessages(Protocol):
    """Reads the messages of a session, a page at a time."""

    def __call__(self, session_id: str, *, before: int | None = None, limit: int = 50) -> Awaitable[MessagePage]: ...


async def share_file(
    engine: Engine, session_id: SessionId, messages: ReadMessages, *, redacted: bool
) -> Mapping[str, Any]:
    """Return a session as a share file.

    Raises:
        SessionNotFoundError: no such session.
    """
    report = await xray_report(engine, session_id)
    records = [await call_of_session(engine, session_id, sent.call.number) for sent in report.calls]
    shared = SharedSession(
        session=report.session,
        messages=await _all_messages(session_id, messages),
        report=report,
        calls=(),
        texts=(),
        redacted=redacted,
        shared_at=datetime.now(UTC),
    )
    return await anyio.to_thread.run_sync(_written, shared, records)


async def _all_messages(session_id: SessionId, read: ReadMessages) -> tuple[Message, ...]:
    found: tuple[Message, ...] = ()
    page = await read(session_id, limit=PAGE)
    while True:
        found = (*page.messages, *found)
        if page.before is None:
            return found
        page = await read(session_id, before=page.before, limit=PAGE)


def _in_pieces(records: Sequence[CallRecord]) -> tuple[tuple[SharedCall, ...], tuple[str, ...]]:
    """Return calls and the texts of their parts, each body as what is new in it: most of it was in the one before."""
    found: list[SharedCall] = []
    texts: dict[str, int] = {}
    before = ""
    for record in records:
        read = _as_read(record, texts)
        # Keys are taken out of the whole body, because what is new in it may begin in the middle of one.
        body = None if record.body is None else without_keys(record.body, same_length=True)
        same = 0 if body is None else _same(before, body)
        text = None if body is None else body[same:]
        found.append(SharedCall(record=replace(record, body=None), same=same, text=text, read=read))
        before = before if body is None else body
    return tuple(found), tuple(texts)


def _as_read(record: CallRecord, texts: dict[str, int]) -> tuple[ReadPart, ...]:
    """Return the parts of a call in the order in which the provider reads them, and add what they say to the texts."""
    parts = enumerate(cut(record.body or ""))
    in_order = sorted(parts, key=lambda numbered: (numbered[1].rank, numbered[1].start))
    return tuple(ReadPart(part=at, text=texts.setdefault(part.text, len(texts))) for at, part in in_order)


def _same(one: str, other: str) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _written(shared: SharedSession, records: Sequence[CallRecord]) -> Mapping[str, Any]:
    calls, texts = _in_pieces(records)
    document = _SHARED.adapter.dump_python(replace(shared, calls=calls, texts=texts), mode="json")
    if not shared.redacted:
        written = _mapped(document, lambda _, text: without_keys(text))
        # Parts and owners are told by their places in a body, which has no keys already and keeps its length.
        for call, own in zip(written["calls"], calls, strict=True):
            call["text"] = own.text
        return written
    for call in document["calls"]:
        call["record"] |= {"spans": [], "changes": []}
        call |= {"same": 0, "text": None}
    session = {**document["session"], **DROPPED}
    return _mapped({**document, "session": session}, partial(_hidden, secrets.token_bytes(16)))


Change = Callable[[str, str], str]
"""Returns the text of a field as it is shared."""


def _mapped(value: Any, change: Change, field: str = "") -> Any:
    """Return a document with its texts changed. `field` is the nearest name above a text."""
    if isinstance(value, str):
        return change(field, value)
    if isinstance(value, list):
        return [_mapped(each, change, field) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        known = _known(fields)
        return {name: _mapped(inner, change, "kind" if name in known else name) for name, inner in fields.items()}
    return value


def _known(fields: Mapping[str, Any]) -> frozenset[str]:
    """Return the fields of an object that hold words of ours here, and texts elsewhere."""
    if fields.get("kind") in ("tool", "call", "setting"):
        return frozenset(("name",))
    # What broke a prefix is told in words of ours.
    broke = "lost_tokens" in fields or "missing_tokens" in fields
    offered = "session_tokens" in fields
    return frozenset(("reason",)) if broke else frozenset(("name",)) if offered else frozenset()


def _hidden(salt: bytes, field: str, text: str) -> str:
    """Return a text's length and a hash that is the same for the same text in this file, and of no use elsewhere."""
    if not text or field in PLAIN:
        return text
    digest = hashlib.sha256(salt + text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"[{len(text):,} characters, {digest}]"
