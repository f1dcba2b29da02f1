"""An agent of Microsoft's Agent Framework with Windowpane's provider: what its model gets, and what is on record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    UsageDetails,
)

from compat.frameworks.told import FAILED, RECORDED, conversation
from windowpane.context.messages import AssistantMessage, Usage
from windowpane.integrations.agent_framework import WindowpaneProvider
from windowpane.testing import World


class Scripted(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """Says what it is told to, and keeps what it is given."""

    def __init__(self, *replies: Any) -> None:
        super().__init__()
        self.replies = list(replies)
        self.seen: list[list[tuple[str, str]]] = []
        self.system: list[str] = []
        self.offered: list[list[str]] = []

    async def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> ChatResponse:
        told = [(message.role, message.text or _result(message)) for message in messages]
        self.system.append(
            str(options.get("instructions") or "") or "\n".join(t for role, t in told if role == "system")
        )
        self.seen.append([(role, text) for role, text in told if role != "system"])
        self.offered.append([tool.name for tool in options.get("tools") or ()])
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return ChatResponse(messages=[Message("assistant", reply)], usage_details=UsageDetails(input_token_count=5))


def _result(message: Message) -> str:
    return "".join(str(part.result) for part in message.contents if part.type == "function_result")


def own() -> str:
    """A tool of the agent's own."""
    return "mine"


@pytest.mark.client("Microsoft Agent Framework", "context", "tools", "memory")
async def test_runs_get_the_context_and_are_recorded(world: World) -> None:
    read = Content.from_function_call("c1", "files__read", arguments='{"path": "a"}')
    client = Scripted(["I look.", read], ["Done."], ["Bye."])
    async with world.pane() as pane:
        session = await pane.sessions.create()
        provider = WindowpaneProvider(pane, session.id)
        agent = Agent(client=client, instructions="Mine.", tools=[own], context_providers=[provider])
        thread = agent.create_session()
        first = await agent.run("Read a.", session=thread)
        await agent.run("Thanks.", session=thread)
        told = await conversation(pane, session.id)
        answer = (await pane.sessions.messages(session.id)).messages[1]

    assert first.text.endswith("Done.")
    assert told == RECORDED
    assert isinstance(answer, AssistantMessage)
    assert answer.model_reply.usage == Usage(10, 0)
    assert "You are Pane." in client.system[0]
    assert "Be kind." in client.system[0]
    assert "Mine." in client.system[0]
    assert client.seen[0] == [("user", "Read a.")]
    assert client.seen[1] == [("user", "Read a."), ("assistant", "I look."), ("tool", "contents of a")]
    assert client.seen[2] == [
        ("user", "Read a."),
        ("assistant", "I look."),
        ("tool", "contents of a"),
        ("assistant", "Done."),
        ("user", "Thanks."),
    ]
    assert client.offered == [["own", "files__read"]] * 3


@pytest.mark.client("Microsoft Agent Framework", "failures")
async def test_a_run_that_fails_leaves_the_message_and_an_error(world: World) -> None:
    async with world.pane() as pane:
        session = await pane.sessions.create()
        agent = Agent(
            client=Scripted(RuntimeError("the model is down")),
            context_providers=[WindowpaneProvider(pane, lambda own: session.id)],
        )
        with pytest.raises(RuntimeError):
            await agent.run("Hello?")
        told = await conversation(pane, session.id)

    assert told == FAILED
