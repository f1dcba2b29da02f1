"""Run a turn: call the model, run its tools, ask a person where needed, until the answer is complete.

What happens next is decided from the turn's own events alone (`next_move`), so a turn that stopped for an approval,
even in another process, goes on exactly where it was, with the request that it began with.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import Any, cast

from windowpane import telemetry
from windowpane.calls.recorder import CallRecorder, HeldCalls, recording
from windowpane.context.events import (
    ApprovalRequested,
    CallEnded,
    Delta,
    Event,
    ModelReplied,
    RequestBuilt,
    ToolProgress,
    ToolReturned,
)
from windowpane.context.ids import BlobHash
from windowpane.context.items import ItemRef
from windowpane.context.messages import Attachment, ToolCall, ToolCallApproval, ToolResult, Usage
from windowpane.context.request import Found, Request, RequestMessage
from windowpane.context.session import OpenTurn, SessionState, is_for_client
from windowpane.context.text import valid_unicode
from windowpane.errors import ModelStreamBrokenError, ToolError, TooManyModelCallsError
from windowpane.models.base import NO_FILES, ChatModel, ModelStep, ModelText
from windowpane.request.finders import FinderAnswer, Finders
from windowpane.request.messages import messages_now
from windowpane.request.record import to_blobs
from windowpane.request.stable.carry import found_tools
from windowpane.text.attached import sent_files
from windowpane.text.render import render_step, without_code
from windowpane.text.result_files import take_files
from windowpane.text.tokens import count, cut_to, family_of, message_tokens, tools_tokens
from windowpane.tools.asking import calling
from windowpane.tools.base import Toolbox, ToolOutput
from windowpane.tools.finder_tools import FINDER_REFS, READ_RESOURCE
from windowpane.tools.permissions import Verdict
from windowpane.turn.asking.caller import AppendToTurn, TurnCaller, WaitForAnswer
from windowpane.turn.sources import TurnEnd

DENIED = "The user denied this call. Do not try it again unless the user asks for it."
NOT_ASKED = (
    "This tool needs the approval of a user, and no user can be asked in this request. The call was not made. Answer "
    "without it, and say what you could not do."
)
TOO_LONG = "\n[… the rest of this result did not fit the context window]"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRun:
    """What a turn runs with.

    `end` gives the event that ends the turn well; `calls` keeps what is sent to the provider, `embeddings` what is
    sent to an embedding endpoint after a step. `files` reads the bytes of files that messages name, and
    `answer` waits for the answer to a question of a tool. The next model call must call one of `must_call`.
    """

    number: int
    request: Request
    must_call: tuple[ItemRef, ...] = ()
    model: ChatModel
    toolbox: Toolbox
    max_model_calls: int
    finders: Finders
    end: TurnEnd
    calls: CallRecorder
    embeddings: Callable[[int], HeldCalls]
    verdict: Callable[[SessionState, ItemRef], Verdict]
    append: AppendToTurn
    files: Callable[[Sequence[BlobHash]], Awaitable[Mapping[BlobHash, str]]]
    publish: Callable[[Delta | ToolProgress], None]
    answer: WaitForAnswer


async def run(turn: TurnRun, state: SessionState) -> SessionState:
    """Carry the turn on until it is finished or waits for a person; return the state then.

    Raises:
        ModelError: a model call failed; what had been stored stays stored.
    """
    must_call = turn.must_call
    while (open_turn := state.open_turn) is not None and open_turn.turn == turn.number:
        match next_move(open_turn, partial(turn.verdict, state), turn.max_model_calls):
            case CallModel():
                messages = messages_now(turn.request, open_turn.steps)
                # From the end: steps that an earlier version stored have no words of their own.
                for earlier, own_words in zip(open_turn.steps[::-1], open_turn.own_words[::-1], strict=False):
                    turn.model.remember(earlier.text, own_words)
                price = turn.request.context.settings.price
                offered = tools_tokens(turn.request.tools, family_of(turn.model.name))
                counted = sum(map(message_tokens, messages)) + offered
                turn.calls.begin_step(len(open_turn.steps) + 1, turn.model.name, counted, price, tools_tokens=offered)
                with (
                    telemetry.model_call(
                        state.id, turn.request.context.settings, messages, turn.request.tools
                    ) as measured,
                    recording(turn.calls),
                ):
                    said = await _call_model(turn, messages, must_call, first=not open_turn.steps)
                    must_call = ()
                    step = said.step
                    telemetry.describe_step(measured, step)
                ended = turn.calls.take()
                step = replace(step, usage=_reported(ended) or step.usage)
                replied = ModelReplied(
                    turn=turn.number, step=step, tokens=count(step.text), own_words=said.own_words, price=price
                )
                # An answer that calls nothing is the last one: it and the turn's end are stored together.
                if not ended:
                    # The wire was not seen.
                    turn.calls.usage += step.usage
                last = () if step.tool_calls else (turn.end.of(turn.request, (*open_turn.steps, step)),)
                state = await turn.append([*ended, replied, *last])
            case Answer(result=result):
                state = await turn.append([ToolReturned(turn=turn.number, result=result)])
            case RunTool(call=call, ref=ref) as run_tool:
                with telemetry.tool_call(state.id, ref, call) as measured:
                    ran = await _run_tool(turn, state, open_turn, run_tool)
                    telemetry.describe_result(measured, ran.result)
                # What was found and that it was found are stored together: a turn that goes on elsewhere has both.
                state = await turn.append([ToolReturned(turn=turn.number, result=ran.result), *ran.also], ran.blobs)
                turn = replace(turn, request=ran.request)
            case Ask(calls=calls):
                return await turn.append([ApprovalRequested(turn=turn.number, calls=calls)])
            case Wait():
                return state
            case Finish():
                state = await turn.append([turn.end.of(turn.request, open_turn.steps)])
    return state


@dataclass(frozen=True, slots=True)
class CallModel:
    """Call the model once more."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Give a call its result without running anything."""

    result: ToolResult


@dataclass(frozen=True, slots=True)
class RunTool:
    """Run a tool."""

    call: ToolCall
    ref: ItemRef
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask a person about calls."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """A person has been asked and has not decided, or the client has not sent the results of its own tools."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The answer is complete."""


Move = CallModel | Answer | RunTool | Ask | Wait | Finish


def next_move(turn: OpenTurn, verdict: Callable[[ItemRef], Verdict], max_model_calls: int) -> Move:
    """Return what a turn does next.

    Raises:
        TooManyModelCallsError: another model call would be one too many.
    """
    if turn.steps and not turn.steps[-1].tool_calls:
        return Finish()
    ask: list[ToolCall] = []
    for call in turn.unanswered:
        approval = next((approval for approval in turn.approvals if approval.call.id == call.id), None)
        move = _move_for(call, approval, verdict)
        if isinstance(move, Ask):
            ask.append(call)
        elif not isinstance(move, Wait):
            return move
    if ask:
        return Ask(tuple(ask))
    if turn.unanswered:
        return Wait()
    if len(turn.steps) >= max_model_calls:
        raise TooManyModelCallsError(max_model_calls)
    return CallModel()


def _move_for(call: ToolCall, approval: ToolCallApproval | None, verdict: Callable[[ItemRef], Verdict]) -> Move:
    if call.ref is None:
        return _refusal(call, f"There is no tool named {call.offered_name!r}. Use one of the tools you were given.")
    if is_for_client(call):
        return Wait()
    try:
        arguments: object = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError) as error:
        return _refusal(call, f"The arguments are not valid JSON ({error}). Send them again as one JSON object.")
    if not isinstance(arguments, dict):
        return _refusal(call, "The arguments must be one JSON object.")
    run_tool = RunTool(call, call.ref, cast("dict[str, Any]", arguments))
    if approval is not None:
        if approval.decision is None:
            return Wait()
        if approval.decision == "deny":
            return _refusal(call, DENIED if approval.by == "user" else NOT_ASKED)
        return run_tool
    match verdict(call.ref):
        case "refuse":
            return _refusal(call, "This tool may not be used.")
        case "ask":
            return Ask((call,))
        case "run":
            return run_tool


def _refusal(call: ToolCall, why: str) -> Answer:
    return Answer(ToolResult(call.id, why, is_error=True))


def _reported(ended: Sequence[Event]) -> Usage | None:
    """Return what the provider reported for the answer, which is the last call; None: nothing, or not on the wire."""
    calls = [event for event in ended if isinstance(event, CallEnded) and event.purpose == "answer"]
    return calls[-1].usage if calls else None


async def _call_model(
    turn: TurnRun, messages: Sequence[RequestMessage], must_call: tuple[ItemRef, ...], *, first: bool
) -> ModelStep:
    text: list[str] = []
    settings = turn.request.context.settings
    if not first:
        # A tool that had to be called has been; forced again unasked, the model could never answer.
        settings = replace(settings, reply_options=replace(settings.reply_options, must_call=must_call))
    tools = (*turn.request.tools, *turn.request.declared)
    names = dict.fromkeys(file.blob for message in messages for file in message.files)
    files = await turn.files(tuple(names)) if names else NO_FILES
    turn.calls.know(files)
    async with aclosing(turn.model.stream(messages, tools, settings, files)) as events:
        async for event in events:
            match event:
                case ModelText():
                    turn.publish(Delta(turn.number, event.text, event.kind))
                    if event.kind == "text":
                        text.append(event.text)
                case ModelStep(step=step):
                    if not step.tool_calls:
                        return event
                    calls = tuple(_resolved(turn.request, call) for call in step.tool_calls)
                    return replace(event, step=replace(step, tool_calls=calls))
    raise ModelStreamBrokenError("the model's answer ended without an end", partial="".join(text))


def _resolved(request: Request, call: ToolCall) -> ToolCall:
    ref = next((tool.ref for tool in request.tools if tool.offered_name == call.offered_name), None)
    return replace(call, ref=ref)


@dataclass(frozen=True, slots=True)
class _Ran:
    """What a call gave, the request that the next model call is given, and what else is to be stored."""

    result: ToolResult
    request: Request
    also: tuple[Event, ...] = ()
    blobs: Mapping[BlobHash, str] = field(default_factory=dict[BlobHash, str])


async def _run_tool(turn: TurnRun, state: SessionState, open_turn: OpenTurn, run_tool: RunTool) -> _Ran:
    started = monotonic()
    found = FinderAnswer(text="")
    embeddings = turn.embeddings(len(open_turn.steps))
    if run_tool.ref in FINDER_REFS:
        with recording(embeddings):
            found = await turn.finders.answer(
                state,
                turn.request,
                run_tool.ref.name,
                run_tool.arguments,
                step=len(open_turn.steps),
                room_tokens=_room(turn.request, open_turn),
            )
        output = ToolOutput(found.text, found.is_error, found.files)
    else:
        output = await _called(turn, state, run_tool)
    if output.links:
        found = _followed(turn, open_turn, run_tool.ref, output.links)
    request = found.request or turn.request
    room = _room(request, open_turn)
    files, notes = await take_files(output.files, request.context.settings, room - count(output.content))
    fits = fitted(request, open_turn, valid_unicode(output.content + notes), files.attachments)
    took_ms = round((monotonic() - started) * 1000)
    result = ToolResult(run_tool.call.id, fits, output.is_error, took_ms, files.attachments, output.links)
    called, texts = embeddings.release()
    if found.request is None:
        return _Ran(result, request, tuple(called), {**texts, **files.blobs})
    request, carry = found_tools(found.request, state.carried)
    name, blobs = to_blobs(request, found.items)
    step = len(open_turn.steps) + 1
    built = RequestBuilt(turn=turn.number, request=name, catalog=request.context.catalog, step=step, carry=carry)
    return _Ran(result, request, (*called, built), {**texts, **blobs, **files.blobs})


def _followed(turn: TurnRun, open_turn: OpenTurn, ref: ItemRef, links: Sequence[str]) -> FinderAnswer:
    """Return the request with the tool that reads resources, after a result has named some."""
    named = Found(step=len(open_turn.steps), finder=str(ref), query=links[0])
    request = turn.finders.with_reader(turn.request, named, _room(turn.request, open_turn))
    return FinderAnswer(text="", request=request, items={READ_RESOURCE.ref: READ_RESOURCE})


async def _called(turn: TurnRun, state: SessionState, run_tool: RunTool) -> ToolOutput:
    caller = TurnCaller(
        turn=turn.number,
        state=state,
        call=run_tool.call,
        model=turn.model,
        settings=turn.request.context.settings,
        verdict=turn.verdict(state, run_tool.ref),
        append=turn.append,
        tell=turn.publish,
        answer=turn.answer,
    )
    try:
        with calling(caller):
            output = await turn.toolbox.call(run_tool.ref.server or "", run_tool.ref.name, run_tool.arguments)
    except ToolError as error:
        output = ToolOutput(str(error), is_error=True)
    if caller.failed is not None:
        raise caller.failed
    return output


def fitted(request: Request, open_turn: OpenTurn, content: str, files: Sequence[Attachment] = ()) -> str:
    """Return as much of a result as the window still has room for, without the code of the system's own lines."""
    content = without_code(request.messages, content)
    files_tokens = sum(file.tokens for file in sent_files(files, request.context.settings))
    room = max(_room(request, open_turn) - files_tokens - count(TOO_LONG), 0)
    if count(content) <= room:
        return content
    return cut_to(content, room) + TOO_LONG


def _room(request: Request, open_turn: OpenTurn) -> int:
    settings = request.context.settings
    rendered = (message for step in open_turn.steps for message in render_step(step, settings=settings))
    spent = sum(map(message_tokens, rendered))
    return request.context.budget.room_tokens - spent
