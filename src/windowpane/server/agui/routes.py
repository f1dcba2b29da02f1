"""AG-UI: a turn as the events that AG-UI frontends read.

A thread is a session, under the thread's id as a name. Tools of the frontend are offered beside the agent's own; the
run ends when one is called, and the next run brings the result. A call that needs a person ends the run with an
interrupt, and the next run resumes it.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Annotated, Any, cast

from ag_ui.core import ResumeEntry, RunAgentInput, ToolMessage, UserMessage
from fastapi import Path

from windowpane.context.events import Live
from windowpane.context.messages import Decision, ToolResult
from windowpane.context.session import OpenTurn, SessionState
from windowpane.engine import Engine
from windowpane.errors import InvalidInputError, NothingToApproveError
from windowpane.server.agui.parts import files_of, text_of
from windowpane.server.client_names import session_named
from windowpane.server.dependencies import Asking, Chatting
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.openai.asking import Storable, tool_of
from windowpane.server.openai.conversation import begun
from windowpane.server.parameters import FewFaults
from windowpane.server.problems import BODY, problems
from windowpane.server.sse import MEDIA_TYPE, ByteStream, sent_event
from windowpane.sessions.conversation import check_tools

router = LazyRouter(prefix="/api/agents/{agent}", tags=["ag-ui"])

EXAMPLE = {
    "threadId": "thread-1",
    "runId": "run-1",
    "messages": [{"id": "1", "role": "user", "content": "How do I add a rule?"}],
}
FORM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The run, as AG-UI's server-sent events.",
        "content": {MEDIA_TYPE: {"itemSchema": sent_event(), "example": 'data: {"type":"RUN_STARTED",…}\n\n'}},
    }
}


@router.post(
    "/ag-ui",
    summary="Run an agent for an AG-UI frontend",
    response_model=None,
    responses={**problems(*BODY, 404, 409), **FORM},
    openapi_extra={"requestBody": {"content": {"application/json": {"example": EXAMPLE}}}},
)
async def run_agent(
    pane: Chatting,
    caller: Asking,
    agent: Annotated[str, Path(description="The agent's name.")],
    given: Annotated[RunAgentInput, FewFaults, Storable],
) -> ByteStream:
    """Answer the last message of a thread, or go on with the results and decisions that its last run waits for.

    The session knows the messages before. Beside AG-UI's own events there are `windowpane.turn`, which names the
    session and the turn, and `windowpane.context`, which shows the working context when it changes.
    """
    # Not at the top: pydantic-ai takes a third of a second, and code that only reads the app does without.
    from windowpane.server.agui.events import Telling, written

    engine = pane.engine
    state = await session_named(pane, caller.owner, agent, given.thread_id)
    turn = await begun(state.id, _live(engine, state, given), once=False)
    left = state.open_turn.unanswered if state.open_turn else ()
    return ByteStream(written(engine, Telling(turn, left), given), headers=turn.headers)


def _live(engine: Engine, state: SessionState, given: RunAgentInput) -> AsyncGenerator[Live]:
    if given.resume:
        return engine.approve(state.id, _decisions(state.open_turn, given.resume))
    told = [message for message in given.messages if message.role in ("user", "assistant", "tool")]
    last = told[-1] if told else None
    if isinstance(last, ToolMessage):
        results = _last_results(told)
        files = {message.tool_call_id: files_of(message.content) for message in results}
        return engine.answer_calls(state.id, [_result(message) for message in results], files=files)
    if isinstance(last, UserMessage):
        check_tools(len(given.tools or ()))
        brought = [tool_of(tool.name, tool.description, _schema(tool.parameters)) for tool in given.tools or ()]
        text, files = text_of(last.content), files_of(last.content)
        return engine.turn(state.id, text, files=files, key=f"ag-ui {given.run_id}"[:200], brought=brought)
    raise InvalidInputError("the last message must be the user's or a tool's result")


def _decisions(turn: OpenTurn | None, entries: Sequence[ResumeEntry]) -> dict[str, Decision]:
    undecided = turn.undecided if turn else ()
    decisions: dict[str, Decision] = {}
    for entry in entries:
        call = next((call for call in undecided if entry.interrupt_id in (call.id, f"int-{call.id}")), None)
        if call is None:
            raise NothingToApproveError(f"nothing waits under the name {entry.interrupt_id!r}")
        decisions[call.id] = _decision(entry)
    return decisions


def _decision(entry: ResumeEntry) -> Decision:
    if entry.status == "cancelled":
        return "deny"
    match entry.payload:
        case {"editedArgs": dict()}:
            raise InvalidInputError("a call is allowed or denied as it is; its arguments cannot be edited")
        case {"approved": bool(approved)}:
            return "allow_once" if approved else "deny"
        case _:
            raise InvalidInputError('a decision is written as {"approved": true} or {"approved": false}')


def _last_results(told: Sequence[Any]) -> list[ToolMessage]:
    results: list[ToolMessage] = []
    for message in reversed(told):
        if not isinstance(message, ToolMessage):
            break
        results.insert(0, message)
    return results


def _result(message: ToolMessage) -> ToolResult:
    text = message.error or text_of(message.content)
    return ToolResult(message.tool_call_id, text, is_error=bool(message.error))


def _schema(parameters: Any) -> Mapping[str, Any] | None:
    if not isinstance(parameters, dict | None):
        raise InvalidInputError("the parameters of a tool are a JSON schema")
    return cast("dict[str, Any] | None", parameters)
