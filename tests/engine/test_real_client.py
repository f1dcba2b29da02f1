"""Whole turns through a provider's real client, against a server that speaks its protocol."""

from __future__ import annotations

import json
from typing import Any

from windowpane.context.events import SummaryMade
from windowpane.context.messages import AssistantMessage
from windowpane.testing import World, drain, tool
from wire import anthropic_messages, openai_chat
from wire.reply import WireCall, WireReply
from wire.server import running

SUMMARY = {
    "overview": "The user lists shades of paint.",
    "current_topic": "paint",
    "state": "active",
    "key_facts": ["the wall is 12 m²"],
}


async def test_what_is_recorded_is_what_goes_over_the_wire_and_the_model_writes_the_summary(world: World) -> None:
    world.write("agent.yaml", "model: openai:gpt-4o\nworking_context: false\nmemory: {messages: 8}\n")
    world.rule("tone", "Be brief.", include="always")
    answers = [openai_chat.answer(WireReply(text=(f"Noted {number}.",), input_tokens=50)) for number in range(7)]
    written = openai_chat.answer(WireReply(calls=(WireCall("c1", "record_summary", (json.dumps(SUMMARY),)),)))
    async with running(*answers, written) as server:
        world.environ = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "key"}
        async with world.engine() as engine:
            session = await engine.sessions.create()
            for number in range(7):
                await drain(engine.turn(session.id, f"Shade {number}; the wall is 12 m² and the port is 8443."))
            async for entry in engine.store.subscribe(session.id, after=0):
                if isinstance(entry.event, SummaryMade):
                    break
            request = await engine.past.request(session.id, 7)
            answer = (await engine.conversations.messages(session.id))[-1]
            state = await engine.sessions.get(session.id)

    sent: Any = server.asked[6].body
    system = "\n\n".join(message.content for message in request.messages if message.role == "system")
    assert [(message["role"], message["content"]) for message in sent["messages"]] == [
        ("system", system),
        *((message.role, message.content) for message in request.messages if message.role != "system"),
    ]
    assert isinstance(answer, AssistantMessage)
    assert (answer.model_reply.text, answer.model_reply.usage.input_tokens) == ("Noted 6.", 50)
    assert state.summary is not None
    assert (state.summary.overview, state.summary.current_topic, state.summary.made_by) == (
        "The user lists shades of paint.",
        "paint",
        "openai:gpt-4o",
    )
    assert any("8443" in fact for fact in state.summary.key_facts)


async def test_a_turn_that_goes_on_after_a_restart_gives_the_provider_its_signed_thinking_back(world: World) -> None:
    world.write("agent.yaml", "model: anthropic:claude-haiku-4-5\nmode: thinking\nworking_context: false\n")
    world.toolbox.put("files", [tool("read", "nothing", permission="required")])
    asks = WireReply(("Let me see.",), thinking=("I should ", "read it."), calls=(WireCall("c1", "files__read"),))
    answers = (anthropic_messages.answer(asks), anthropic_messages.answer(WireReply(("It is empty.",))))
    async with running(*answers) as server:
        world.environ = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "key"}
        async with world.engine() as engine:
            session = await engine.sessions.create()
            await drain(engine.turn(session.id, "Read a.txt"))
        async with world.engine() as engine:
            await drain(engine.approve(session.id, {"c1": "allow_once"}))
            answer = (await engine.conversations.messages(session.id))[-1]

    first, then = (asked.body for asked in server.asked)
    assert isinstance(answer, AssistantMessage)
    assert answer.model_reply.text == "Let me see.\n\nIt is empty."
    assert then["thinking"] == first["thinking"]
    assert then["messages"][-2] == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "I should read it.", "signature": "c2lnbmVk"},
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "c1", "name": "files__read", "input": {}},
        ],
    }
