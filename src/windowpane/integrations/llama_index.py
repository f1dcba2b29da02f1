"""A memory for LlamaIndex's agents and chat engines that is a session of Windowpane's.

    memory = WindowpaneMemory(pane=pane, session_id=session_id)
    await FunctionAgent(llm=llm, tools=[...]).run("Hello", memory=memory)

`pane` is what `windowpane.open()` gives. A user's message that is put in begins a turn; what is got is its request,
with system prompt and everything that was picked; the answer that is put in ends the turn. LlamaIndex gives a memory no
say in the tools of an agent, so tools that Windowpane picks are not offered. The memory waits: use `run`, `achat` and
the like.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

from llama_index.core.base.llms.types import TextBlock, ToolCallBlock
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.llms import ChatMessage, MessageRole
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.memory.types import BaseMemory

from windowpane.context.messages import AssistantMessage, Step, ToolResult, UserMessage
from windowpane.context.request import RequestMessage
from windowpane.integrations.runs import AgentRun
from windowpane.local.pane import LocalPane


class WindowpaneMemory(BaseMemory):
    """The conversation of an agent or a chat engine, kept in a session of a pane."""

    pane: Any = Field(exclude=True)
    session_id: str
    _run: AgentRun | None = PrivateAttr(default=None)
    _steps: list[Step] = PrivateAttr(default_factory=list[Step])

    @classmethod
    def class_name(cls) -> str:
        """Return the name of the class."""
        return "WindowpaneMemory"

    @classmethod
    def from_defaults(cls, **kwargs: Any) -> "WindowpaneMemory":
        """Return a memory of a session: `pane` and `session_id` are needed."""
        return cls(**kwargs)

    async def aput(self, message: ChatMessage) -> None:
        """Take in a message: the user's begins a turn, the last one of the answer ends it."""
        await self.aput_messages([message])

    async def aput_messages(self, messages: Sequence[ChatMessage]) -> None:
        """Take in messages in their order."""
        for message in messages:
            text = message.content or ""
            if message.role == MessageRole.USER and text.strip():
                await self._begin(text)
            elif self._run is not None:
                await self._go_on(self._run, message, text)

    async def aget(self, input: str | None = None, **kwargs: Any) -> list[ChatMessage]:  # noqa: A002 - the framework's
        """Return what the model is given; without an open turn, what was said."""
        if self._run is None:
            return await self.aget_all()
        system = [ChatMessage(self._run.system, role="system")] if self._run.system else []
        asked = self._run.prepared.request.messages[-1]
        return [*system, *(_message(message) for message in (*self._run.history, asked))]

    async def aget_all(self) -> list[ChatMessage]:
        """Return what was said."""
        told: list[ChatMessage] = []
        for message in (await self._own().sessions.messages(self.session_id)).messages:
            if isinstance(message, UserMessage):
                told.append(ChatMessage(message.content, role="user"))
            elif isinstance(message, AssistantMessage):
                told.append(ChatMessage(message.model_reply.text, role="assistant"))
        return told

    async def aset(self, messages: list[ChatMessage]) -> None:
        """Do nothing: the session is the memory, and a history that is given is not sent."""

    async def areset(self) -> None:
        """Erase the conversation."""
        await self._own().sessions.clear_history(self.session_id)

    def get(self, input: str | None = None, **kwargs: Any) -> NoReturn:  # noqa: A002 - the framework's name
        """Refuse: this memory waits."""
        raise RuntimeError(ASYNC)

    def get_all(self) -> NoReturn:
        """Refuse: this memory waits."""
        raise RuntimeError(ASYNC)

    def put(self, message: ChatMessage) -> None:
        """Refuse: this memory waits."""
        raise RuntimeError(ASYNC)

    def set(self, messages: list[ChatMessage]) -> None:
        """Refuse: this memory waits."""
        raise RuntimeError(ASYNC)

    def reset(self) -> None:
        """Refuse: this memory waits."""
        raise RuntimeError(ASYNC)

    def _own(self) -> LocalPane:
        return self.pane

    async def _begin(self, text: str) -> None:
        if self._run is not None:
            await self._run.fail(RuntimeError("no answer came"))
        self._steps = []
        self._run = await AgentRun.begin(self._own(), self.session_id, text)

    async def _go_on(self, run: AgentRun, message: ChatMessage, text: str) -> None:
        if message.role == MessageRole.TOOL and self._steps:
            call_id = str(message.additional_kwargs.get("tool_call_id") or "")
            results = (*self._steps[-1].results, ToolResult(call_id, text))
            self._steps[-1] = replace(self._steps[-1], results=results)
        elif message.role == MessageRole.ASSISTANT:
            calls = _calls(message)
            self._steps.append(
                Step(
                    text=text,
                    tool_calls=tuple(run.tool_call(call.tool_id, call.tool_name, _written(call)) for call in calls),
                )
            )
            if not calls:
                self._run = None
                await run.finish(self._steps)


ASYNC = "this memory is asynchronous; use `run`, `achat`, `astream_chat` and the like"


def _message(message: RequestMessage) -> ChatMessage:
    calls = [
        ToolCallBlock(tool_call_id=call.id, tool_name=call.offered_name, tool_kwargs=call.arguments)
        for call in message.tool_calls
    ]
    more: dict[str, Any] = {"tool_call_id": message.tool_call_id} if message.tool_call_id else {}
    blocks = [*([TextBlock(text=message.content)] if message.content else []), *calls]
    return ChatMessage(role=MessageRole(message.role), blocks=blocks, additional_kwargs=more)


def _calls(message: ChatMessage) -> list[ToolSelection]:
    """Return the calls of a message."""
    return [
        ToolSelection(
            tool_id=block.tool_call_id or block.tool_name,
            tool_name=block.tool_name,
            tool_kwargs=block.tool_kwargs if isinstance(block.tool_kwargs, dict) else {"arguments": block.tool_kwargs},
        )
        for block in message.blocks
        if block.block_type == "tool_call"
    ]


def _written(call: ToolSelection) -> str:
    return json.dumps(call.tool_kwargs, ensure_ascii=False, default=str)
