"""A session is shared as a file: whole or redacted, and never with a key."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import openai
from pydantic import TypeAdapter

from server.place import new_session, served
from windowpane.api.xray import ReadPart, SharedCall, SharedSession
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, tool
from wire import openai_chat
from wire.reply import WireCall, WireReply
from wire.server import running
from xray.place import xray

SECRET = "sk-ant-planted-key-0123456789"
MESSAGES: list[Any] = [
    {"role": "system", "content": "You help.\n# Private plans\nBuy a boat."},
    {"role": "user", "content": f"My key is {SECRET}. Where is the boat? 🚤"},
]
TOOLS: list[Any] = [{"type": "function", "function": {"name": "find_boat", "parameters": {"type": "object"}}}]


async def test_a_shared_session_has_everything_but_keys_and_a_redacted_one_no_text(world: World) -> None:
    answers = [openai_chat.answer(WireReply(text=(text,), input_tokens=200)) for text in ("In the harbour.", "Bye.")]
    async with running(*answers) as server, xray(world, server.url) as proxy:
        async with openai.AsyncOpenAI(base_url=f"{proxy.url}/openai/v1", api_key=SECRET, max_retries=0) as client:
            for more in ([], [{"role": "assistant", "content": "In the harbour."}, {"role": "user", "content": "Go."}]):
                sent: list[Any] = [*MESSAGES, *more]
                said = await client.chat.completions.create(model="gpt-4o", messages=sent, tools=TOOLS, stream=True)
                async for _ in said:
                    pass
        (session,) = await proxy.sessions()
        report = await proxy.pane.sessions.xray(session)
        record = await proxy.pane.sessions.call(session, 2)
        shared = await proxy.pane.sessions.share(session)
        redacted = await proxy.pane.sessions.share(session, redacted=True)

    read = TypeAdapter(SharedSession).validate_python(json.loads(json.dumps(shared)))
    assert SECRET not in json.dumps(shared)
    assert read.report.parts == report.parts
    assert [message.role for message in read.messages] == ["user", "assistant", "user", "assistant"]
    first, second = read.calls
    assert second.same > 100
    assert record.body is not None
    body = (first.text or "")[: second.same] + (second.text or "")
    assert body == record.body.replace(SECRET, "[redacted]".ljust(len(SECRET), "*"))
    assert [
        [read.texts[one.text] for one in call.read if _kind(call, one) in ("message", "reply")] for call in read.calls
    ] == [
        ["My key is [redacted]. Where is the boat? 🚤"],
        ["My key is [redacted]. Where is the boat? 🚤", "In the harbour.", "Go."],
    ]
    text = json.dumps(redacted, ensure_ascii=False)
    assert [word for word in ("boat?", "harbour", "Private plans", "Buy", "🚤", "sk-ant") if word in text] == []
    assert re.fullmatch(r"\[3 characters, [0-9a-f]{8}\]", redacted["messages"][2]["content"])
    assert [call["text"] for call in redacted["calls"]] == [None, None]
    assert [call["read"] for call in redacted["calls"]] == [call["read"] for call in shared["calls"]]
    assert len(redacted["texts"]) == len(shared["texts"])
    assert [tool["name"] for tool in redacted["report"]["tools"]] == ["find_boat"]
    assert [part["tokens"] for part in redacted["report"]["parts"]] == [part.tokens for part in report.parts]


async def test_the_report_of_a_session_of_ones_own_knows_which_tools_were_called(tmp_path: Path) -> None:
    world = World(tmp_path / "agents", store=SQLiteStore(tmp_path / "windowpane.db"))
    world.write("agent.yaml", "model: openai:gpt-4o\nworking_context: false\nfinders: false\n")
    world.toolbox.put("files", [tool("read", "It says 42.", permission="never"), tool("write", "", permission="never")])
    called = WireReply(calls=(WireCall("c1", "files__read", ("{}",)),), input_tokens=200)
    answers = [openai_chat.answer(reply) for reply in (called, WireReply(text=("42.",), input_tokens=200))]
    async with running(*answers) as server:
        world.environ = {"OPENAI_API_KEY": "test", "OPENAI_BASE_URL": f"{server.url}/v1"}
        async with served(world) as http:
            session = await new_session(http)
            await http.post(f"/api/sessions/{session}/messages", json={"content": "What does it say?"})
            shared = (await http.get(f"/api/sessions/{session}/share")).json()

    assert {tool["name"]: tool["calls"] for tool in shared["report"]["tools"]} == {"files__read": 1, "files__write": 0}


def _kind(call: SharedCall, read: ReadPart) -> str:
    return call.record.parts[read.part].kind
