"""Windowpane inside agents of Microsoft's Agent Framework.

    agent = Agent(client=client, context_providers=[WindowpaneProvider(pane, session_id)])
    await agent.run("Hello")

`pane` is what `windowpane.open()` gives. The provider is the agent's history too: the framework keeps none beside it.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from agent_framework import (
    AgentSession,
    ChatContext,
    ChatMiddleware,
    Content,
    FunctionTool,
    HistoryProvider,
    Message,
    SessionContext,
    SupportsAgentRun,
)

from windowpane.context.messages import Step, ToolResult, Usage
from windowpane.context.request import OfferedTool, RequestMessage
from windowpane.integrations.runs import AgentRun
from windowpane.local.pane import LocalPane

RUN = "windowpane"
"""Where a run's context keeps the prepared turn."""


class WindowpaneProvider(HistoryProvider):
    """Picks, injects and records, for every run of an agent.

    `session` is the session's id, or what returns it for a run, such as `lambda s: s.state["windowpane_session"]`.
    """

    def __init__(self, pane: LocalPane, session: str | Callable[[AgentSession], str]) -> None:
        super().__init__("windowpane")
        self._pane = pane
        self._session = session

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Take in the user's message, and add what was picked. A run without words is left alone."""
        message = "\n".join(message.text for message in context.input_messages if message.role == "user")
        if not message.strip():
            return
        session_id = self._session(session) if callable(self._session) else self._session
        run = await AgentRun.begin(self._pane, session_id, message)
        context.metadata[RUN] = run
        context.extend_instructions(self.source_id, run.system)
        context.extend_messages(self, [_message(each) for each in run.history])
        context.extend_tools(self.source_id, [_tool(run, tool) for tool in run.tools.values()])
        context.extend_middleware(self.source_id, _Failing(run))

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Record what the run said and did."""
        run = context.metadata.get(RUN)
        if isinstance(run, AgentRun) and context.response is not None:
            await run.finish(_steps(run, context))

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Return nothing: what a run needs of the conversation is picked for its message."""
        return []

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep nothing: a run is recorded whole when it ends."""


class _Failing(ChatMiddleware):
    """Records that a run failed when its model call does."""

    def __init__(self, run: AgentRun) -> None:
        self._run = run

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        try:
            await call_next()
        except BaseException as error:
            await self._run.fail(error)
            raise


def _message(message: RequestMessage) -> Message:
    if message.role == "tool":
        result = Content.from_function_result(message.tool_call_id or "", result=message.content)
        return Message("tool", [result])
    calls = [
        Content.from_function_call(call.id, call.offered_name, arguments=call.arguments) for call in message.tool_calls
    ]
    return Message(message.role, [*([message.content] if message.content else []), *calls])


def _tool(run: AgentRun, tool: OfferedTool) -> FunctionTool:
    async def call(**arguments: Any) -> str:
        return (await run.call(tool.offered_name, arguments)).content

    return FunctionTool(
        name=tool.offered_name, description=tool.description, func=call, input_model=dict(tool.parameters)
    )


def _steps(run: AgentRun, context: SessionContext) -> list[Step]:
    response = context.response
    steps: list[Step] = []
    for message in response.messages if response else ():
        results = tuple(
            ToolResult(part.call_id or "", str(part.result or part.exception or ""), is_error=bool(part.exception))
            for part in message.contents
            if part.type == "function_result"
        )
        if results and steps:
            steps[-1] = replace(steps[-1], results=(*steps[-1].results, *results))
        elif message.role == "assistant":
            steps.append(_step(run, message))
    used = response.usage_details if response else None
    if steps and used:
        # The framework adds up what the calls of a run used.
        usage = Usage(used.get("input_token_count") or 0, used.get("output_token_count") or 0)
        steps[-1] = replace(steps[-1], usage=usage)
    return steps


def _step(run: AgentRun, message: Message) -> Step:
    return Step(
        text=message.text,
        thinking="".join(part.text or "" for part in message.contents if part.type == "text_reasoning"),
        tool_calls=tuple(
            run.tool_call(part.call_id or "", part.name or "", _written(part))
            for part in message.contents
            if part.type == "function_call"
        ),
    )


def _written(part: Content) -> str:
    return part.arguments if isinstance(part.arguments, str) else json.dumps(part.arguments or {}, ensure_ascii=False)
