"""Windowpane inside agents of Google's Agent Development Kit.

    app = App(name="mine", root_agent=agent, plugins=[WindowpanePlugin(pane, session_id)])
    runner = InMemoryRunner(app=app)

`pane` is what `windowpane.open()` gives. The session is the conversation's memory: events from before the run are not
sent.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from windowpane.context.messages import Step, ToolResult, Usage
from windowpane.context.request import OfferedTool, RequestMessage
from windowpane.integrations.runs import AgentRun
from windowpane.local.pane import LocalPane


@dataclass
class _Invocation:
    run: AgentRun
    before: int | None = None
    events: list[Event] = field(default_factory=list[Event])


class WindowpanePlugin(BasePlugin):
    """Picks, injects and records, for every run of a runner.

    `session` is the session's id, or what returns it for a run, such as `lambda ctx: ctx.session.state["windowpane"]`.
    """

    def __init__(self, pane: LocalPane, session: str | Callable[[InvocationContext], str]) -> None:
        super().__init__(name="windowpane")
        self._pane = pane
        self._session = session
        self._open: dict[str, _Invocation] = {}

    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: types.Content
    ) -> types.Content | None:
        """Take in the user's message. A run without words, such as one that brings a result, is left alone."""
        message = _text(user_message)
        if message.strip():
            session_id = self._session(invocation_context) if callable(self._session) else self._session
            run = await AgentRun.begin(self._pane, session_id, message)
            self._open[invocation_context.invocation_id] = _Invocation(run)
        return None

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Give the model what was picked, in front of what the agent itself says."""
        found = self._open.get(callback_context.invocation_id)
        if found is None:
            return None
        if found.before is None:
            # The first call ends with the user's message; what stands before it is the framework's own history.
            found.before = max(len(llm_request.contents) - 1, 0)
        llm_request.contents = [*_contents(found.run.history), *llm_request.contents[found.before :]]
        own = llm_request.config.system_instruction
        if own is None or isinstance(own, str):
            llm_request.config.system_instruction = "\n\n".join(text for text in (found.run.system, own) if text)
        else:
            llm_request.append_instructions([found.run.system])
        llm_request.append_tools([_PickedTool(found.run, tool) for tool in found.run.tools.values()])
        return None

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> Event | None:
        """Note what the run says and does."""
        found = self._open.get(invocation_context.invocation_id)
        if found is not None and not event.partial and event.author != "user":
            found.events.append(event)
        return None

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Record the answer."""
        found = self._open.pop(invocation_context.invocation_id, None)
        if found is not None:
            await found.run.finish(_steps(found.run, found.events))

    async def on_run_error_callback(self, *, invocation_context: InvocationContext, error: Exception) -> None:
        """Record that the run failed."""
        found = self._open.pop(invocation_context.invocation_id, None)
        if found is not None:
            await found.run.fail(error)


class _PickedTool(BaseTool):
    """A tool that was picked for a run."""

    def __init__(self, run: AgentRun, tool: OfferedTool) -> None:
        super().__init__(name=tool.offered_name, description=tool.description)
        self._run = run
        self._tool = tool

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=dict(self._tool.parameters)
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        output = await self._run.call(self.name, args)
        return {"error" if output.is_error else "result": output.content}


def _contents(messages: Sequence[RequestMessage]) -> list[types.Content]:
    names = {call.id: call.offered_name for message in messages for call in message.tool_calls}
    return [_content(message, names) for message in messages]


def _content(message: RequestMessage, names: Mapping[str, str]) -> types.Content:
    if message.role == "tool":
        told = {"error" if message.is_error else "result": message.content}
        call_id = message.tool_call_id or ""
        answer = types.FunctionResponse(id=call_id, name=names.get(call_id, "tool"), response=told)
        return types.Content(role="user", parts=[types.Part(function_response=answer)])
    parts = [types.Part(text=message.content)] if message.content else []
    for call in message.tool_calls:
        made = types.FunctionCall(id=call.id, name=call.offered_name, args=_arguments(call.arguments))
        parts.append(types.Part(function_call=made))
    return types.Content(role="model" if message.role == "assistant" else "user", parts=parts)


def _arguments(written: str) -> dict[str, Any]:
    try:
        found = json.loads(written or "{}")
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"arguments": written}


def _text(content: types.Content | None) -> str:
    parts = content.parts if content is not None else None
    return "".join(part.text for part in parts or () if part.text and not part.thought)


def _steps(run: AgentRun, events: Sequence[Event]) -> list[Step]:
    steps: list[Step] = []
    for event in events:
        results = tuple(
            ToolResult(answer.id or "", _result(answer.response), is_error="error" in (answer.response or {}))
            for answer in event.get_function_responses()
        )
        if results and steps:
            steps[-1] = replace(steps[-1], results=(*steps[-1].results, *results))
        elif event.content is not None and not results:
            steps.append(_step(run, event))
    return steps


def _result(response: dict[str, Any] | None) -> str:
    told = response or {}
    only = next(iter(told.values())) if len(told) == 1 else None
    return only if isinstance(only, str) else json.dumps(told, ensure_ascii=False, default=str)


def _step(run: AgentRun, event: Event) -> Step:
    used = event.usage_metadata
    parts = event.content.parts if event.content else None
    return Step(
        text=_text(event.content),
        thinking="".join(part.text for part in parts or () if part.text and part.thought),
        tool_calls=tuple(
            run.tool_call(call.id or "", call.name or "", json.dumps(call.args or {}, ensure_ascii=False))
            for call in event.get_function_calls()
        ),
        usage=Usage(
            (used.prompt_token_count or 0) if used else 0,
            (used.candidates_token_count or 0) if used else 0,
            (used.cached_content_token_count or 0) if used else 0,
        ),
        model=event.model_version or "",
        finish_reason=event.finish_reason.name.lower() if event.finish_reason else "",
    )
