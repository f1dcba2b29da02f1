"""A recorded session is taken apart: parts, growth, what is of no use, what broke the prefix, two calls compared."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import pytest

from windowpane.api.comparison import CallPartChange
from windowpane.api.xray import StaleResult
from windowpane.errors import CallNotFoundError
from windowpane.testing import World
from wire import anthropic_messages
from wire.reply import WireCall, WireReply
from wire.server import running
from xray.place import xray

TOOLS: list[Any] = [
    {"name": "Read", "description": "Read a file.", "input_schema": {"type": "object"}},
    {"name": "mcp__clock__now", "description": "Tell the time.", "input_schema": {"type": "object"}},
]
REMINDER = "<system-reminder>\nContents of /home/me/CLAUDE.md:\n# Rules\nTea is at {time}.\n</system-reminder>\n"
SYSTEM = "You help.\n# Style\n" + "Be brief and plain in everything you say. " * 200


def _call(number: int) -> WireCall:
    return WireCall(f"toolu_{number}", "Read", (json.dumps({"file_path": "/a.txt"}),))


async def _agent(url: str) -> None:
    """Be an agent: read a file twice, and change the notes of the first message before the last request."""
    named = {"X-Session-Id": "one"}
    async with anthropic.AsyncAnthropic(base_url=url, api_key="sk-ant-planted", default_headers=named) as client:
        messages: list[Any] = [{"role": "user", "content": [_text(REMINDER.format(time="four")), _text("Read it.")]}]
        for step in range(3):
            if step == 2:
                messages[0]["content"][0] = _text(REMINDER.format(time="five"))
            messages[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
            said = await client.messages.create(
                model="claude-opus-4-6", max_tokens=99, system=SYSTEM, messages=messages, tools=TOOLS
            )
            calls = [block for block in said.content if block.type == "tool_use"]
            messages[-1]["content"][-1].pop("cache_control")
            messages.append({"role": "assistant", "content": [block.model_dump() for block in said.content]})
            results = [{"type": "tool_result", "tool_use_id": call.id, "content": "It says 42."} for call in calls]
            messages.append({"role": "user", "content": results or [_text("Thanks.")]})


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


async def test_a_recorded_session_is_taken_apart(world: World) -> None:
    answers = [
        anthropic_messages.document(reply)
        for reply in (
            WireReply(text=("I look.",), calls=(_call(1),), input_tokens=3000, written_tokens=2900),
            WireReply(text=("Again.",), calls=(_call(2),), input_tokens=3100, cached_tokens=2900, written_tokens=100),
            WireReply(text=("42.",), input_tokens=3200, cached_tokens=2700, written_tokens=400),
        )
    ]
    async with running(*answers) as server, xray(world, server.url) as proxy:
        await _agent(f"{proxy.url}/anthropic")
        (session,) = await proxy.sessions()
        report = await proxy.pane.sessions.xray(session)
        compared = await proxy.pane.sessions.compare_calls(session, 2, 3)
        record = await proxy.pane.sessions.call(session, 3)
        with pytest.raises(CallNotFoundError, match="the session has no call 4; it made 3"):
            await proxy.pane.sessions.call(session, 4)

    growth = [{share.kind: share.parts for share in sent.kinds} for sent in report.calls]
    assert growth[0] == {"tool": 2, "system": 2, "instructions": 1, "message": 1, "setting": 2}
    assert growth[2] == {**growth[0], "reply": 2, "call": 2, "result": 2}
    assert [sum(share.tokens for share in sent.kinds) for sent in report.calls] == [
        sent.call.usage.input_tokens if sent.call.usage else 0 for sent in report.calls
    ]
    assert [(tool.name, tool.server, tool.calls) for tool in report.tools] == [
        ("mcp__clock__now", "clock", 0),
        ("Read", "", 2),
    ]
    assert all(tool.session_tokens > 2 * tool.tokens for tool in report.tools)
    old = next(part.tokens for part in report.parts if part.kind == "result")
    assert report.stale == (StaleResult(tool="Read", subject="/a.txt", reads=2, tokens=old),)
    assert (report.last, report.repeated, report.parts) == (3, (), record.parts)
    assert report.window_tokens is not None
    (broke,) = [call.broke for call in report.cache.calls if call.broke is not None]
    assert (broke.item, broke.kind, broke.since) == ("instructions /home/me/CLAUDE.md", "edited", 2)
    assert record.body is not None
    assert {(span.kind, span.owner) for span in record.spans} >= {
        ("tool", "tool Read"),
        ("message", "instructions /home/me/CLAUDE.md"),
        ("step", "result Read /a.txt"),
    }
    changed, *entered = compared.changes
    assert (changed.kind, changed.name, changed.happened) == ("instructions", "/home/me/CLAUDE.md", "changed")
    assert changed.diff.splitlines()[-4:-1] == [" # Rules", "-Tea is at four.", "+Tea is at five."]
    assert [(change.kind, change.name, change.happened) for change in entered] == [
        ("reply", "", "entered"),
        ("call", "Read", "entered"),
        ("result", "Read /a.txt", "entered"),
    ]
    assert all(isinstance(change, CallPartChange) and change.tokens > 0 for change in entered)
    assert sum(compared.tokens_by_kind.values()) == compared.after_tokens - compared.before_tokens
