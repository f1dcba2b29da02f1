"""Windowpane inside a Pydantic AI agent.

    agent = Agent("openai:gpt-5-mini", capabilities=[Windowpane(pane, session_id)])

`pane` is what `windowpane.open()` gives.

Before each run the prompt is a message to the session: Windowpane picks what belongs to it and records the request. The
agent's model then gets that context, in front of what the agent itself says, and the tools that were picked. After the
run its steps are recorded as the answer. The session is the conversation's memory: a `message_history` that is given to
the run is not sent.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import anyio
from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import AgentDepsT, Tool
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from windowpane.context.messages import Step, ToolCall, ToolResult, Usage
from windowpane.context.request import OfferedTool
from windowpane.local.pane import LocalPane
from windowpane.models.messages import Replies, conversation
from windowpane.turn.prepared import Prepared


@dataclass
class Windowpane(AbstractCapability[AgentDepsT]):
    """Picks, injects and records, for every run of an agent.

    `session` is the session's id, or what returns it for a run, such as `lambda ctx: ctx.deps.session_id`.
    """

    pane: LocalPane
    session: str | Callable[[RunContext[AgentDepsT]], str]

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> AbstractCapability[AgentDepsT]:
        """Return what one run needs."""
        session_id = self.session(ctx) if callable(self.session) else self.session
        return _Run[AgentDepsT](self.pane, session_id)


@dataclass
class _Run(AbstractCapability[AgentDepsT]):
    """One run. A run without a prompt of its own goes on with an earlier one and is left alone."""

    pane: LocalPane
    session_id: str
    prepared: Prepared | None = None
    before: int = 0

    async def wrap_run(self, ctx: RunContext[AgentDepsT], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        message = _text(ctx.prompt)
        if not message:
            return await handler()
        self.before = len(ctx.messages)
        self.prepared = await self.pane.prepare(self.session_id, message)
        try:
            result = await handler()
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await self.pane.abandon(self.prepared, f"the run failed: {type(error).__name__}: {error}")
            raise
        tools = self.prepared.request.tools
        await self.pane.record(self.prepared, steps_of(result.new_messages(), tools))
        return result

    async def before_model_request(
        self, ctx: RunContext[AgentDepsT], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        if self.prepared is None:
            return request_context
        picked = conversation(self.prepared.request.messages[:-1], Replies())
        return replace(request_context, messages=[*picked, *request_context.messages[self.before :]])

    def get_toolset(self) -> Callable[[RunContext[AgentDepsT]], AbstractToolset[AgentDepsT] | None]:
        def picked(_: RunContext[AgentDepsT]) -> AbstractToolset[AgentDepsT] | None:
            tools = self.prepared.request.tools if self.prepared else ()
            return FunctionToolset[AgentDepsT]([self._tool(tool) for tool in tools]) if tools else None

        return picked

    def _tool(self, tool: OfferedTool) -> Tool[AgentDepsT]:
        async def call(**arguments: Any) -> str:
            return (await self.pane.call_tool(self.session_id, tool.ref, arguments)).content

        return Tool[AgentDepsT].from_schema(call, tool.offered_name, tool.description, dict(tool.parameters))


def steps_of(messages: Sequence[ModelMessage], tools: Sequence[OfferedTool] = ()) -> list[Step]:
    """Return what a run said and did, as the steps of a turn."""
    refs = {tool.offered_name: tool.ref for tool in tools}
    steps: list[Step] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            steps.append(_step(message, refs))
        elif steps:
            results = [_result(part) for part in message.parts if isinstance(part, ToolReturnPart)]
            steps[-1] = replace(steps[-1], results=tuple(results))
    return steps


def _step(message: ModelResponse, refs: Mapping[str, Any]) -> Step:
    return Step(
        text="".join(part.content for part in message.parts if isinstance(part, TextPart)),
        thinking="".join(part.content for part in message.parts if isinstance(part, ThinkingPart)),
        tool_calls=tuple(
            ToolCall(part.tool_call_id, part.tool_name, part.args_as_json_str(), refs.get(part.tool_name))
            for part in message.parts
            if isinstance(part, ToolCallPart)
        ),
        usage=Usage(
            message.usage.input_tokens,
            message.usage.output_tokens,
            message.usage.cache_read_tokens,
            message.usage.cache_write_tokens,
        ),
        model=message.model_name or "",
        finish_reason=message.finish_reason or "",
    )


def _result(part: ToolReturnPart) -> ToolResult:
    return ToolResult(part.tool_call_id, part.model_response_str(), is_error=part.outcome != "success")


def _text(prompt: str | Sequence[UserContent] | None) -> str:
    if isinstance(prompt, str):
        return prompt
    return "\n".join(part for part in prompt or () if isinstance(part, str))
