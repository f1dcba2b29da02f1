"""What is kept of a conversation: every message with its facts, every setting, and prompts nowhere in between."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from windowpane.context.messages import AssistantMessage, Step, Usage, UserMessage
from windowpane.models.scripted import Call, Reply
from windowpane.testing import World, drain, tool


@pytest.mark.spec("S4.3", "S4.9", "S4.26", "S4.70")
async def test_a_session_keeps_its_settings_and_none_of_the_prompt(world: World) -> None:
    async with world.engine() as engine:
        session = await engine.sessions.create(
            settings={
                "mode": "thinking",
                "current_url": "https://example.org/a",
                "time_zone": "Europe/Berlin",
                "user_time": "2026-02-03T12:00:00",
            }
        )

    assert (session.settings.mode, session.settings.current_url) == ("thinking", "https://example.org/a")
    assert session.settings.user_time == "2026-02-03T11:00:00+00:00"
    assert (session.message_count, session.token_count) == (0, 0)
    assert "You are Pane." not in str(asdict(session))


@pytest.mark.spec("S4.30", "S4.31", "S4.71", "S4.73")
async def test_an_answer_keeps_its_model_its_tools_its_usage_and_its_time(world: World) -> None:
    world.toolbox.put("files", [tool("read", permission="not_required")])
    world.says(Reply(calls=(Call("files__read"),), usage=Usage(20, 2)), Reply("It is empty.", usage=Usage(30, 4)))
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "Read it"))
        question, answer = await engine.conversations.messages(session.id)

    assert isinstance(question, UserMessage)
    assert (question.content, question.at.tzinfo is not None) == ("Read it", True)
    assert isinstance(answer, AssistantMessage)
    assert answer.model_reply.usage == Usage(50, 6)
    assert [step.model for step in answer.model_reply.steps] == ["scripted:test", "scripted:test"]
    assert [str(call.ref) for step in answer.model_reply.steps for call in step.tool_calls] == ["files:read"]
    assert all(step.latency_ms >= 0 for step in answer.model_reply.steps)


@pytest.mark.spec("S4.32", "S4.34", "S4.36", "S4.41", "S4.45")
async def test_the_override_is_sent_once_and_no_message_carries_a_role_in_its_text(world: World) -> None:
    world.says("Hello.", "Again.")
    async with world.engine() as engine:
        session = await engine.sessions.create(settings={"system_prompt": "Answer in verse."})
        for message in ("Hi", "Hi again"):
            await drain(engine.turn(session.id, message))

    sent = world.model.calls[1].messages
    assert [message.content for message in sent].count("Answer in verse.") == 1
    assert [(message.role, message.content) for message in sent[-3:]] == [
        ("user", "Hi"),
        ("assistant", "Hello."),
        ("user", "Hi again"),
    ]


@pytest.mark.spec("S4.42")
async def test_an_answer_of_somebody_elses_model_is_kept_with_all_its_facts(world: World) -> None:
    step = Step(text="Hello.", model="mine:1", usage=Usage(10, 2), latency_ms=850, finish_reason="stop")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await engine.prepared.record(await engine.prepared.begin(session.id, "Hi"), [step])
        answer = (await engine.conversations.messages(session.id))[-1]

    assert isinstance(answer, AssistantMessage)
    assert answer.model_reply.steps == (step,)
