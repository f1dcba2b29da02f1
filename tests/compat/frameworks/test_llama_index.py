"""LlamaIndex's agents and chat engines with Windowpane's memory: what their model gets, and what is on record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import TextBlock, ToolCallBlock
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import ChatMessage
from llama_index.core.llms.mock import MockFunctionCallingLLM

from compat.frameworks.told import conversation
from windowpane.integrations.llama_index import WindowpaneMemory
from windowpane.testing import World


class Script:
    """Says what it is told to, and keeps what it is given."""

    def __init__(self, *replies: ChatMessage) -> None:
        self.replies = list(replies)
        self.seen: list[list[tuple[str, str]]] = []

    def __call__(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatMessage:
        self.seen.append([(message.role.value, message.content or "") for message in messages])
        return self.replies.pop(0)


def _said(text: str) -> ChatMessage:
    return ChatMessage(text, role="assistant")


def own(path: str) -> str:
    """A tool of the agent's own."""
    return f"mine, {path}"


@pytest.mark.client("LlamaIndex", "context", "memory")
async def test_an_agents_runs_get_the_context_and_are_recorded(world: World) -> None:
    call = ToolCallBlock(tool_call_id="c1", tool_name="own", tool_kwargs={"path": "a"})
    asked = ChatMessage(role="assistant", blocks=[TextBlock(text="I look."), call])
    script = Script(asked, _said("Done."), _said("Bye."))
    model = MockFunctionCallingLLM(response_generator=script, is_chat_model=True)
    async with world.pane() as pane:
        session = await pane.sessions.create()
        memory = WindowpaneMemory(pane=pane, session_id=session.id)
        agent = FunctionAgent(llm=model, tools=[own], system_prompt="Mine.", streaming=False)
        first = await agent.run("Read a.", memory=memory)
        await agent.run("Thanks.", memory=memory)
        told = await conversation(pane, session.id)

    assert str(first) == "Done."
    assert told == [
        "Read a.",
        ("I look.", [("own", None)], ["mine, a"]),
        ("Done.", [], []),
        "Thanks.",
        ("Bye.", [], []),
    ]
    assert script.seen[0][0] == ("system", "Mine.")
    assert script.seen[0][1][1].startswith("You are Pane.")
    assert script.seen[0][1][1].endswith("Be kind.")
    assert script.seen[0][2:] == [("user", "Read a.")]
    assert script.seen[1][2:] == [("user", "Read a."), ("assistant", "I look."), ("tool", "mine, a")]
    assert script.seen[2][2:] == [*script.seen[1][2:], ("assistant", "Done."), ("user", "Thanks.")]


@pytest.mark.client("LlamaIndex", "failures")
async def test_a_chat_engine_talks_in_the_session_and_an_unanswered_message_is_told(world: World) -> None:
    script = Script(_said("Hello."))
    model = MockFunctionCallingLLM(response_generator=script, is_chat_model=True)
    async with world.pane() as pane:
        session = await pane.sessions.create()
        memory = WindowpaneMemory(pane=pane, session_id=session.id)
        await memory.aput(ChatMessage("Lost?", role="user"))
        engine = SimpleChatEngine(model, memory, prefix_messages=[])
        answer = await engine.achat("Hi?")
        said = [(message.role.value, message.content) for message in await memory.aget_all()]
        told = await conversation(pane, session.id)
        await memory.areset()
        after = await memory.aget_all()

    assert str(answer) == "Hello."
    assert told == ["Lost?", "the run failed: RuntimeError: no answer came", "Hi?", ("Hello.", [], [])]
    assert said == [("user", "Lost?"), ("user", "Hi?"), ("assistant", "Hello.")]
    assert after == []
