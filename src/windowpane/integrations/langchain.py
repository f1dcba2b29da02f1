"""Windowpane inside a LangChain agent, which is a graph of LangGraph.

    agent = create_agent("openai:gpt-5-mini", tools=[...], middleware=[WindowpaneMiddleware(pane, session_id)])
    await agent.ainvoke({"messages": [{"role": "user", "content": "Hello"}]})

`pane` is what `windowpane.open()` gives. The session is the conversation's memory: messages from before the run are not
sent. The middleware waits, so the agent is run with `ainvoke` or `astream`.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, NotRequired, cast
from uuid import uuid4

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
    ToolCallRequest,
)
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.runtime import Runtime
from langgraph.types import Command

from windowpane.context.messages import Step, ToolResult, Usage
from windowpane.context.request import OfferedTool, RequestMessage
from windowpane.integrations.runs import AgentRun
from windowpane.local.pane import LocalPane


class WindowpaneState(AgentState[Any]):
    """Which run it is, and how many messages there were before it."""

    windowpane_run: NotRequired[Annotated[str, PrivateStateAttr]]
    windowpane_before: NotRequired[Annotated[int, PrivateStateAttr]]


class WindowpaneMiddleware(AgentMiddleware[WindowpaneState, Any, Any]):
    """Picks, injects and records, for every run of an agent.

    `session` is the session's id, or what returns it for a run, such as `lambda runtime: runtime.context.session_id`.
    """

    state_schema = WindowpaneState

    def __init__(self, pane: LocalPane, session: str | Callable[[Runtime[Any]], str]) -> None:
        super().__init__()
        self._pane = pane
        self._session = session
        self._runs: dict[str, AgentRun] = {}

    async def abefore_agent(self, state: WindowpaneState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Take in the user's message. A run without one goes on with an earlier one and is left alone."""
        last = state["messages"][-1] if state["messages"] else None
        if not isinstance(last, HumanMessage) or not last.text.strip():
            return None
        session_id = self._session(runtime) if callable(self._session) else self._session
        name = uuid4().hex
        self._runs[name] = await AgentRun.begin(self._pane, session_id, last.text)
        return {"windowpane_run": name, "windowpane_before": len(state["messages"]) - 1}

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Give the model what was picked, in front of what the agent itself says."""
        state = cast("WindowpaneState", request.state)
        run = self._run(state)
        if run is None:
            return await handler(request)
        own = request.messages[state.get("windowpane_before", 0) :]
        system = [text for text in (run.system, request.system_prompt) if text]
        given = request.override(
            system_message=SystemMessage("\n\n".join(system)) if system else None,
            messages=[*map(_message, run.history), *own],
            tools=[*request.tools, *map(_tool, run.tools.values())],
        )
        try:
            return await handler(given)
        except BaseException as error:
            await run.fail(error)
            raise

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Run a tool that was picked; the agent's own run as they do."""
        run = self._run(cast("WindowpaneState", request.state))
        call = request.tool_call
        try:
            if run is None or request.tool is not None or call["name"] not in run.tools:
                return await handler(request)
            output = await run.call(call["name"], call["args"])
        except BaseException as error:
            if run is not None:
                await run.fail(error)
            raise
        status = "error" if output.is_error else "success"
        return ToolMessage(output.content, tool_call_id=call["id"] or "", name=call["name"], status=status)

    async def aafter_agent(self, state: WindowpaneState, runtime: Runtime[Any]) -> None:
        """Record what the run said and did."""
        run = self._runs.pop(state.get("windowpane_run", ""), None)
        if run is not None:
            await run.finish(_steps(run, state["messages"][state.get("windowpane_before", 0) + 1 :]))

    def _run(self, state: WindowpaneState) -> AgentRun | None:
        run = self._runs.get(state.get("windowpane_run", ""))
        return None if run is None or run.ended else run


def _message(message: RequestMessage) -> AnyMessage:
    if message.role == "tool":
        status = "error" if message.is_error else "success"
        return ToolMessage(message.content, tool_call_id=message.tool_call_id or "", status=status)
    if message.role != "assistant":
        return HumanMessage(message.content)
    calls = [
        {"id": call.id, "name": call.offered_name, "args": _arguments(call.arguments)} for call in message.tool_calls
    ]
    return AIMessage(message.content, tool_calls=calls)


def _tool(tool: OfferedTool) -> dict[str, Any]:
    function = {"name": tool.offered_name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def _arguments(written: str) -> dict[str, Any]:
    try:
        found = json.loads(written or "{}")
    except ValueError:
        found = None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {"arguments": written}


def _steps(run: AgentRun, messages: Sequence[AnyMessage]) -> list[Step]:
    steps: list[Step] = []
    for message in messages:
        if isinstance(message, AIMessage):
            steps.append(_step(run, message))
        elif isinstance(message, ToolMessage) and steps:
            result = ToolResult(message.tool_call_id, message.text, is_error=message.status == "error")
            steps[-1] = replace(steps[-1], results=(*steps[-1].results, result))
    return steps


def _step(run: AgentRun, message: AIMessage) -> Step:
    used = message.usage_metadata
    details = used.get("input_token_details", {}) if used else {}
    about = message.response_metadata
    return Step(
        text=message.text,
        tool_calls=tuple(
            run.tool_call(call["id"] or "", call["name"], json.dumps(call["args"], ensure_ascii=False))
            for call in message.tool_calls
        ),
        usage=Usage(
            used["input_tokens"] if used else 0,
            used["output_tokens"] if used else 0,
            details.get("cache_read", 0),
            details.get("cache_creation", 0),
        ),
        model=str(about.get("model_name") or about.get("model") or ""),
        finish_reason=str(about.get("finish_reason") or about.get("stop_reason") or ""),
    )
