"""A session of the OpenAI Agents SDK that is a session of Windowpane's.

    await Runner.run(agent, "Hello", session=WindowpaneSession(pane, session_id))

`pane` is what `windowpane.open()` gives.

Items come back as they were given, word for word. What the user and the agent said is at the same time the session's
conversation: the page shows it, it can be searched, summed up, exported, and carried on by Windowpane itself. Calls and
their results are kept as notes between the messages. What Windowpane said in turns of its own is given to the SDK too.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from agents import SessionSettings, TResponseInputItem
from windowpane.context.events import (
    HistoryCleared,
    MessageAdded,
    MessageRemoved,
    ModelReplied,
    Recorded,
    TurnStarted,
)
from windowpane.local.pane import LocalPane


@dataclass
class WindowpaneSession:
    """The SDK's session protocol, kept in a session of a pane."""

    pane: LocalPane
    session_id: str
    session_settings: SessionSettings | None = None

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the latest items, oldest first; all of them without a limit."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        items = [item.body for item in _items(await self._log())]
        return items if limit is None else items[max(len(items) - limit, 0) :]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items, all of them or none."""
        if items:
            own = await self.pane.own(self.session_id)
            await self.pane.engine.conversations.add_all(own, [_message(item) for item in items])

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the last item back and return it, or None when there is none.

        Raises:
            InvalidInputError: the last one is part of a turn of Windowpane's, which stays.
        """
        items = _items(await self._log())
        if not items:
            return None
        await self.pane.sessions.remove_message(self.session_id, items[-1].seq)
        return items[-1].body

    async def clear_session(self) -> None:
        """Erase the conversation."""
        await self.pane.sessions.clear_history(self.session_id)

    async def _log(self) -> list[Recorded]:
        return await self.pane.engine.store.read(await self.pane.own(self.session_id))


@dataclass(frozen=True, slots=True)
class _Item:
    seq: int
    body: TResponseInputItem = field(repr=False)


def _items(log: Sequence[Recorded]) -> list[_Item]:
    items: list[_Item] = []
    for entry in log:
        match entry.event:
            case MessageAdded(source=source) if source:
                items.append(_Item(entry.seq, json.loads(source)))
            case MessageAdded(role="user" | "assistant" as role, content=content):
                items.append(_said(entry.seq, role, content))
            case TurnStarted(message=message):
                items.append(_said(entry.seq, "user", message))
            case ModelReplied(step=step) if step.text:
                items.append(_said(entry.seq, "assistant", step.text))
            case MessageRemoved(seq=gone):
                items = [item for item in items if item.seq != gone]
            case HistoryCleared():
                items.clear()
            case _:
                pass
    return items


def _said(seq: int, role: str, content: str) -> _Item:
    return _Item(seq, cast("TResponseInputItem", {"role": role, "content": content}))


def _message(item: TResponseInputItem) -> MessageAdded:
    body = cast("dict[str, Any]", item)
    source = json.dumps(body, ensure_ascii=False)
    role, text = body.get("role"), _text(body.get("content"))
    if role == "user" and text.strip():
        return MessageAdded(role="user", content=text, source=source)
    if role == "assistant" and text.strip():
        return MessageAdded(role="assistant", content=text, source=source)
    return MessageAdded(role="system", content=_note(body, text), source=source)


def _note(body: dict[str, Any], text: str) -> str:
    kind = str(body.get("type") or body.get("role") or "item")
    match kind:
        case "function_call":
            return f"called {body.get('name')}({body.get('arguments')})"
        case "function_call_output":
            return f"got {_text(body.get('output'))}"
        case _:
            return f"{kind}: {text}" if text.strip() else kind


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = cast("list[dict[str, Any]]", content) if isinstance(content, list) else []
    return "".join(str(part.get("text", "")) for part in parts)
