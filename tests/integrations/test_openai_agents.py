from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai import AsyncOpenAI

from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, Session, SessionSettings, function_tool
from windowpane.errors import InvalidInputError
from windowpane.integrations.openai_agents import WindowpaneSession
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, drain
from wire.server import json_answer, running

USER: Any = {"role": "user", "content": "Hello."}
ASSISTANT: Any = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Hi.", "annotations": list[Any]()}],
}
CALL: Any = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Oslo"}'}
RESULT: Any = {"type": "function_call_output", "call_id": "c1", "output": "rain"}
REASONING: Any = {"type": "reasoning", "id": "rs_1", "summary": []}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "agents", store=SQLiteStore(tmp_path / "windowpane.db"))


async def test_items_come_back_as_they_were_given_and_are_the_conversation(world: World) -> None:
    given_items = [USER, REASONING, CALL, RESULT, ASSISTANT]
    async with world.pane() as pane:
        state = await pane.sessions.create()
        memory = WindowpaneSession(pane, state.id)

        await memory.add_items(given_items)
        back, latest = await memory.get_items(), await memory.get_items(limit=2)
        limited = await WindowpaneSession(pane, state.id, SessionSettings(limit=1)).get_items()
        messages: Any = (await pane.sessions.messages(state.id)).messages

    assert isinstance(memory, Session)
    assert (back, latest, limited) == (given_items, [RESULT, ASSISTANT], [ASSISTANT])
    assert [(m.role, m.model_reply.text if m.role == "assistant" else m.content) for m in messages] == [
        ("user", "Hello."),
        ("system", "reasoning"),
        ("system", 'called weather({"city": "Oslo"})'),
        ("system", "got rain"),
        ("assistant", "Hi."),
    ]


async def test_the_last_item_can_be_taken_back_and_is_erased(world: World) -> None:
    async with world.pane() as pane:
        state = await pane.sessions.create()
        memory = WindowpaneSession(pane, state.id)
        await memory.add_items([USER, ASSISTANT])

        popped = [await memory.pop_item() for _ in range(3)]
        after = await pane.sessions.get(state.id)
        left = (await pane.sessions.messages(state.id)).messages
        await memory.add_items([USER])
        again = await memory.get_items()
    async with World(world.root, store=SQLiteStore(world.root.parent / "windowpane.db")).pane() as pane:
        reloaded = await pane.sessions.get(state.id)
        messages = (await pane.sessions.messages(state.id)).messages

    assert popped == [ASSISTANT, USER, None]
    assert (after.message_count, after.token_count, left) == (0, 0, ())
    assert again == [USER]
    assert (reloaded.message_count, [message.role for message in messages]) == (1, ["user"])
    assert b"Hi." not in (world.root.parent / "windowpane.db").read_bytes()


async def test_a_cleared_session_is_empty(world: World) -> None:
    async with world.pane() as pane:
        state = await pane.sessions.create()
        memory = WindowpaneSession(pane, state.id)
        await memory.add_items([USER, ASSISTANT])

        await memory.clear_session()
        items = await memory.get_items()

    assert items == []


async def test_turns_of_windowpanes_own_are_given_to_the_sdk_and_stay(world: World) -> None:
    world.says("Hello there.")
    async with world.pane() as pane:
        state = await pane.sessions.create()
        await drain(pane.turn(state.id, "Hi"))
        memory = WindowpaneSession(pane, state.id)

        items = await memory.get_items()
        with pytest.raises(InvalidInputError, match="it is not a recently added external message"):
            await memory.pop_item()

    assert items == [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello there."}]


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.sampled_from([USER, ASSISTANT, CALL, RESULT, "pop", "clear"]), max_size=12))
async def test_it_behaves_like_a_list(world: World, steps: list[Any]) -> None:
    expected: list[Any] = []
    plain = World(world.root)
    async with plain.pane() as pane:
        memory = WindowpaneSession(pane, (await pane.sessions.create()).id)
        for step in steps:
            if step == "clear":
                await memory.clear_session()
                expected.clear()
            elif step == "pop":
                assert await memory.pop_item() == (expected.pop() if expected else None)
            else:
                await memory.add_items([step])
                expected.append(step)
            assert await memory.get_items() == expected


@pytest.mark.client("OpenAI Agents SDK", "memory")
async def test_a_runner_remembers_over_a_providers_wire(world: World) -> None:
    def whole(text: str, **more: Any) -> Any:
        message = {"role": "assistant", "content": text, **more}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if more else "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
        return json_answer(200, body)

    @function_tool
    def weather(city: str) -> str:
        return f"rain in {city}"

    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    answers = [whole("", tool_calls=[call]), whole("It rains."), whole("In Oslo.")]
    async with running(*answers) as wire, world.pane() as pane:
        async with AsyncOpenAI(base_url=wire.url, api_key="k") as client:
            state = await pane.sessions.create()
            memory = WindowpaneSession(pane, state.id)
            model = OpenAIChatCompletionsModel("m", client)
            agent = Agent(name="Assistant", model=model, tools=[weather])
            plain = RunConfig(tracing_disabled=True)
            first = await Runner.run(agent, "Weather?", session=memory, run_config=plain)
            second = await Runner.run(agent, "Where?", session=memory, run_config=plain)
        roles = [message.role for message in (await pane.sessions.messages(state.id)).messages]

    assert (first.final_output, second.final_output) == ("It rains.", "In Oslo.")
    assert roles == ["user", "system", "system", "assistant", "user", "assistant"]
    sent: Any = wire.asked[2].body
    assert [message["role"] for message in sent["messages"]] == ["user", "assistant", "tool", "assistant", "user"]
