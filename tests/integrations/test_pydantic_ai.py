from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from windowpane.context.items import tool_ref
from windowpane.context.messages import AssistantMessage, ErrorMessage, UserMessage
from windowpane.integrations.pydantic_ai import Windowpane
from windowpane.testing import World, tool

Play = Callable[[Sequence[ModelMessage], AgentInfo], ModelResponse]


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "agents")
    world.rule("tone", "Be kind.", include="always")
    return world


def shown(messages: Sequence[ModelMessage]) -> list[tuple[str, str]]:
    return [
        (part.part_kind, str(part.content))
        for message in messages
        for part in message.parts
        if isinstance(part, SystemPromptPart | UserPromptPart | TextPart | ToolReturnPart)
    ]


@pytest.mark.client("Pydantic AI", "context", "memory")
async def test_a_run_gets_the_context_and_is_recorded(world: World) -> None:
    seen: list[list[tuple[str, str]]] = []

    def play(messages: Sequence[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(shown(messages))
        return ModelResponse([TextPart(f"Answer {len(seen)}.")])

    async with world.pane() as pane:
        session = await pane.sessions.create()
        agent = Agent(FunctionModel(play), instructions="Mine.", capabilities=[Windowpane(pane, session.id)])

        first = await agent.run("First?")
        second = await agent.run("Second?", message_history=first.new_messages())
        messages = (await pane.sessions.messages(session.id)).messages
        request = await pane.turns.request(session.id, 2)

    assert second.output == "Answer 2."
    prefix = [(kind, text) for kind, text in seen[0] if kind == "system-prompt"]
    assert len(prefix) == 1
    assert prefix[0][1].startswith("You are Pane.")
    assert prefix[0][1].endswith("Be kind.")
    assert seen[0][len(prefix) :] == [("user-prompt", "First?")]
    assert seen[1][len(prefix) :] == [("user-prompt", "First?"), ("text", "Answer 1."), ("user-prompt", "Second?")]
    assert [message.content for message in request.messages][-3:] == ["First?", "Answer 1.", "Second?"]
    assert [message.role for message in messages] == ["user", "assistant", "user", "assistant"]
    answer = messages[1]
    assert isinstance(answer, AssistantMessage)
    assert (answer.model_reply.text, answer.model_reply.steps[0].model, answer.request is not None) == (
        "Answer 1.",
        "function:play:",
        True,
    )


@pytest.mark.client("Pydantic AI", "tools")
async def test_picked_tools_are_offered_called_and_recorded_beside_the_agents_own(world: World) -> None:
    world.toolbox.put("files", [tool("read", "contents of {path}", permission="not_required"), tool("drop", "gone")])

    def play(messages: Sequence[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) > 2:
            return ModelResponse(
                [TextPart(" / ".join(text for kind, text in shown(messages) if kind == "tool-return"))]
            )
        calls = [ToolCallPart("files__read", {"path": "a"}, "c1"), ToolCallPart("files__drop", {}, "c2")]
        return ModelResponse([*calls, ToolCallPart("own", {}, "c3")])

    async with world.pane() as pane:
        session = await pane.sessions.create()
        agent = Agent(FunctionModel(play), capabilities=[Windowpane(pane, session.id)])

        @agent.tool_plain
        def own() -> str:
            return "mine"

        result = await agent.run("Read")
        (_, answer) = (await pane.sessions.messages(session.id)).messages

    refused = "This tool needs the user's approval, which is not possible here."
    assert result.output == f"contents of a / {refused} / mine"
    assert isinstance(answer, AssistantMessage)
    first = answer.model_reply.steps[0]
    assert [(call.offered_name, call.ref) for call in first.tool_calls] == [
        ("files__read", tool_ref("files", "read")),
        ("files__drop", tool_ref("files", "drop")),
        ("own", None),
    ]
    assert [result.content for result in first.results] == ["contents of a", refused, "mine"]
    assert json.loads(first.tool_calls[0].arguments) == {"path": "a"}


@pytest.mark.client("Pydantic AI", "failures")
async def test_a_run_that_fails_leaves_the_message_and_an_error(world: World) -> None:
    def play(messages: Sequence[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise RuntimeError("the model is down")

    async with world.pane() as pane:
        session = await pane.sessions.create()
        agent = Agent(FunctionModel(play), capabilities=[Windowpane(pane, session.id)])

        with pytest.raises(RuntimeError, match="the model is down"):
            await agent.run("First?")
        messages = (await pane.sessions.messages(session.id)).messages

    question, failure = messages
    assert isinstance(question, UserMessage)
    assert isinstance(failure, ErrorMessage)
    assert (question.content, failure.content) == ("First?", "the run failed: RuntimeError: the model is down")


async def test_the_session_can_come_from_what_the_run_depends_on(world: World) -> None:
    def play(messages: Sequence[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse([TextPart("Yes.")])

    async with world.pane() as pane:
        sessions = [await pane.sessions.create() for _ in range(2)]

        def chosen(ctx: RunContext[int]) -> str:
            return sessions[ctx.deps].id

        agent = Agent(FunctionModel(play), deps_type=int, capabilities=[Windowpane(pane, chosen)])
        await agent.run("Hi", deps=1)
        counts = [(await pane.sessions.get(session.id)).turn_count for session in sessions]

    assert counts == [0, 1]


async def test_a_run_without_a_prompt_is_left_alone(world: World) -> None:
    seen: list[list[tuple[str, str]]] = []

    def play(messages: Sequence[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(shown(messages))
        return ModelResponse([TextPart("Yes.")])

    async with world.pane() as pane:
        session = await pane.sessions.create()
        agent = Agent(FunctionModel(play), capabilities=[Windowpane(pane, session.id)])

        await agent.run(message_history=[ModelRequest([UserPromptPart("Left over")])])
        after = await pane.sessions.get(session.id)

    assert (seen, after.turn_count) == ([[("user-prompt", "Left over")]], 0)
