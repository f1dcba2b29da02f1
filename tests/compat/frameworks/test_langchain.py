"""A LangChain agent with Windowpane's middleware: what its model gets, and what is on record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field

from compat.frameworks.told import FAILED, RECORDED, conversation
from windowpane.integrations.langchain import WindowpaneMiddleware
from windowpane.testing import World


class Scripted(BaseChatModel):
    """Says what it is told to, and keeps what it is given."""

    replies: list[Any]
    seen: list[list[tuple[str, str]]] = Field(default_factory=list)
    offered: list[list[str]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        self.offered.append([tool["function"]["name"] if isinstance(tool, dict) else tool.name for tool in tools])
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.seen.append([(message.type, message.text) for message in messages])
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return ChatResult(generations=[ChatGeneration(message=reply)])


def own() -> str:
    """A tool of the agent's own."""
    return "mine"


@pytest.mark.client("LangChain and LangGraph", "context", "tools", "memory")
async def test_runs_get_the_context_and_are_recorded(world: World) -> None:
    read = {"id": "c1", "name": "files__read", "args": {"path": "a"}}
    model = Scripted(replies=[AIMessage("I look.", tool_calls=[read]), AIMessage("Done."), AIMessage("Bye.")])
    async with world.pane() as pane:
        session = await pane.sessions.create()
        middleware = WindowpaneMiddleware(pane, session.id)
        agent = create_agent(model, [own], system_prompt="Mine.", middleware=[middleware], checkpointer=InMemorySaver())
        thread: Any = {"configurable": {"thread_id": "1"}}
        first = await agent.ainvoke({"messages": [{"role": "user", "content": "Read a."}]}, thread)
        await agent.ainvoke({"messages": [{"role": "user", "content": "Thanks."}]}, thread)
        told = await conversation(pane, session.id)

    assert first["messages"][-1].text == "Done."
    assert told == RECORDED
    system = model.seen[0][0]
    assert system[0] == "system"
    assert system[1].startswith("You are Pane.")
    assert system[1].endswith("Be kind.\n\nMine.")
    assert model.seen[0][1:] == [("human", "Read a.")]
    assert model.seen[1][1:] == [("human", "Read a."), ("ai", "I look."), ("tool", "contents of a")]
    assert model.seen[2][1:] == [*model.seen[1][1:], ("ai", "Done."), ("human", "Thanks.")]
    assert model.offered == [["own", "files__read"]] * 3


@pytest.mark.client("LangChain and LangGraph", "failures")
async def test_a_run_that_fails_leaves_the_message_and_an_error(world: World) -> None:
    model = Scripted(replies=[RuntimeError("the model is down")])
    async with world.pane() as pane:
        session = await pane.sessions.create()
        agent = create_agent(model, middleware=[WindowpaneMiddleware(pane, lambda runtime: session.id)])
        with pytest.raises(RuntimeError):
            await agent.ainvoke({"messages": [{"role": "user", "content": "Hello?"}]})
        told = await conversation(pane, session.id)

    assert told == FAILED
