"""From a client's conversation to a turn.

OpenAI's clients tell the whole conversation with every request and expect nothing to be remembered. Windowpane
remembers sessions. So a request that names a session is a message to it, or the results that its turn waits for, and
what the client tells about earlier messages is not needed. A request that names none gets a session of its own, with
the earlier messages in it; no list shows it, its id is in the response, and it is forgotten after a while.
"""

import re
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, takewhile
from typing import Any, Literal

from windowpane.context.events import (
    ApprovalDecided,
    Live,
    Recorded,
    RequestBuilt,
    ToolReturned,
    TurnFinished,
    TurnStarted,
)
from windowpane.context.ids import SessionId
from windowpane.context.items import CLIENT_SERVER, Tool, tool_ref
from windowpane.context.messages import NewFile, Step, ToolCall, ToolResult
from windowpane.context.request import ReplyOptions
from windowpane.context.session import SessionState
from windowpane.engine import Engine
from windowpane.errors import AgentNotFoundError, SessionNotFoundError, StoreUnavailableError, UnknownModelError
from windowpane.files.read import NO_FILES, ReadFiles
from windowpane.local.pane import LocalPane
from windowpane.request.settings import call_settings
from windowpane.server.client_names import session_named
from windowpane.server.openai.asking import IGNORED, SESSION, TURN
from windowpane.server.openai.errors import UnsupportedError
from windowpane.server.openai.one_off import Once
from windowpane.sessions.conversation import check_message
from windowpane.sessions.past import Exchange
from windowpane.tools.names import offered_name


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientMessage:
    """One message, as the client tells it. A tool's message has the id of the call that it answers.

    `files` are as the client sent them, or read.
    """

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    is_error: bool = False
    files: tuple[NewFile, ...] | ReadFiles = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRequest:
    """What a client asks for, whichever way it says so.

    `session` is a session's id or a name of the client's own; None: the request stands for itself. `keep` makes such a
    request's session one that lists show. `form_param` is where the client says which form the answer must have.
    `ignored` are parameters that have no effect here.
    """

    agent: str
    said: tuple[ClientMessage, ...]
    brought: tuple[Tool, ...] = ()
    reply_options: ReplyOptions = field(default_factory=ReplyOptions)
    form_param: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    session: str | None = None
    keep: bool = False
    key: str | None = None
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answering:
    """A turn that answers a request. `first_seq` is where in the log its answer begins.

    With `formed` the answer is one document: what the agent says between its own tool calls is no part of it.
    """

    session_id: SessionId
    turn: int
    first_seq: int
    live: AsyncGenerator[Live]
    once: bool
    formed: bool = False
    ignored: tuple[str, ...] = ()

    @property
    def headers(self) -> dict[str, str]:
        """Return the names under which the turn is recorded, and which parameters had no effect."""
        names = [_UNPRINTABLE.sub("?", name)[:LONGEST_PARAMETER] for name in self.ignored[:MOST_PARAMETERS]]
        told = {IGNORED: ", ".join(names)} if names else {}
        return {SESSION: self.session_id, TURN: str(self.turn), **told}

    def client_id(self, call: ToolCall) -> str:
        """Return a call's id for the client. By it the result is matched to a session that the client did not name."""
        return f"{self.session_id}.{call.id}" if self.once else call.id


_UNPRINTABLE = re.compile(r"[^!-+\--~]")
LONGEST_PARAMETER, MOST_PARAMETERS = 64, 32
"""What a header names of parameters that had no effect."""


def call_named(call_id: str, name: str, arguments: str) -> ToolCall:
    """Return a call of a tool of the client's."""
    ref = tool_ref(CLIENT_SERVER, name)
    return ToolCall(call_id, offered_name(ref), arguments, ref)


async def answering(pane: LocalPane, owner: str, once: Once, asked: ClientRequest) -> Answering:
    """Begin the turn that a request asks for, or carry it on with the results of the client's tools.

    Raises:
        UnsupportedError: the conversation ends with neither a user's message nor a tool's result, or it asks for
            other reply options than its turn began with.
        WindowpaneError: the turn could not be begun; see `Engine.turn` and `Engine.answer_calls`.
    """
    if not asked.said or asked.said[-1].role == "assistant":
        raise UnsupportedError("messages", "The last message must be the user's or a tool's result.", "invalid_value")
    check_ids(asked.said)
    turn = await _answering(pane, owner, once, asked)
    ignored = asked.ignored + await _ignored(pane.engine, turn.session_id, asked.reply_options)
    return replace(turn, formed=asked.reply_options.response_format is not None, ignored=ignored)


def check_ids(said: Sequence[ClientMessage]) -> None:
    """Refuse calls that share an id, and results that answer one call: one of the two would be lost.

    Raises:
        UnsupportedError: there are such.
    """
    for role, run in groupby(said, key=lambda entry: entry.role):
        ids = [
            id_ for entry in run for id_ in ([entry.call_id] if role == "tool" else [call.id for call in entry.calls])
        ]
        if twice := next((id_ for id_, times in Counter(ids).items() if times > 1), None):
            why = "Two results answer the call" if role == "tool" else "Two tool calls have the id"
            raise UnsupportedError("messages", f"{why} {twice!r}.", "invalid_value")


async def _ignored(engine: Engine, session_id: SessionId, options: ReplyOptions) -> tuple[str, ...]:
    """Return the parameters that the session's model does not take."""
    if not options.sampling:
        return ()
    state = await engine.sessions.get(session_id)
    try:
        return engine.models.open(call_settings(engine.agents.current(state.agent), state).model).ignored(options)
    except (AgentNotFoundError, UnknownModelError):
        # The turn itself says so.
        return ()


async def _answering(pane: LocalPane, owner: str, once: Once, asked: ClientRequest) -> Answering:
    engine = pane.engine
    if asked.said[-1].role != "tool" and not (asked.session and asked.key):
        # Before a session is made or its settings are changed. With a key, a turn that runs already may be joined.
        engine.admission.check(owner)
    asked = await _checked(engine, asked)
    if asked.session is not None:
        state = await session_named(pane, owner, asked.agent, asked.session)
        await _check_form(engine, state, asked)
        return await begun(state.id, _continued(engine, state.id, asked), once=False)
    waiting = await _waiting(pane, asked)
    if waiting is not None:
        await _check_form(engine, waiting, asked)
        return await begun(waiting.id, _continued(engine, waiting.id, replace(asked, settings={})), once=True)
    state = await _made(engine, owner, asked)
    await once.made(engine, owner)
    if asked.said[-1].role != "tool":
        return await begun(state.id, _continued(engine, state.id, asked), once=True)
    results = [ToolResult(entry.call_id, entry.text, is_error=entry.is_error) for entry in _last_results(asked.said)]
    live = engine.answer_calls(
        state.id,
        results,
        brought=asked.brought,
        reply_options=asked.reply_options,
        files={entry.call_id: entry.files for entry in _last_results(asked.said)},
    )
    return await begun(state.id, live, once=True)


async def _checked(engine: Engine, asked: ClientRequest) -> ClientRequest:
    """Return a request with its files read. What no session can take is refused before one is made or changed.

    A session knows its messages: only what it is told now is read.
    """
    told = len(_last_results(asked.said)) or 1
    known = 0 if asked.session is None else len(asked.said) - told
    read = [replace(entry, files=await engine.read_files(entry.files)) for entry in asked.said[known:]]
    if (last := read[-1]).role == "user":
        check_message(last.text, with_files=last.files != NO_FILES)
    return replace(asked, said=(*asked.said[:known], *read))


async def session_for(pane: LocalPane, owner: str, asked: ClientRequest) -> tuple[SessionState, bool]:
    """Return the session that a request is about, and whether it was made for that: then the caller deletes it."""
    if asked.session is not None:
        return await session_named(pane, owner, asked.agent, asked.session), False
    past = await exchanges(pane.engine, asked.said[:-1])
    made = await pane.engine.sessions.create(asked.agent, owner=owner, settings=asked.settings, past=past, listed=False)
    return made, True


async def _check_form(engine: Engine, state: SessionState, asked: ClientRequest) -> None:
    """Refuse another form for a turn that goes on: its request is the one that it began with."""
    if asked.said[-1].role != "tool" or state.open_turn is None or state.open_turn.request is None:
        return
    begun_with = (await engine.past.context(state.id, state.open_turn.turn)).settings.reply_options.response_format
    if begun_with != asked.reply_options.response_format:
        raise UnsupportedError(asked.form_param, "The turn goes on with the form that it began with: send the same.")


def _continued(engine: Engine, session_id: SessionId, asked: ClientRequest) -> AsyncGenerator[Live]:
    last = asked.said[-1]
    if last.role == "tool":
        return engine.answer_calls(
            session_id,
            _results(asked.said),
            reply_options=asked.reply_options,
            files=_result_files(asked.said),
            settings=asked.settings,
        )
    return engine.turn(
        session_id,
        last.text,
        key=asked.key,
        brought=asked.brought,
        reply_options=asked.reply_options,
        files=last.files,
        settings=asked.settings,
    )


def _results(said: Sequence[ClientMessage]) -> list[ToolResult]:
    """Return the results that the conversation ends with, for the calls as the session knows them."""
    last = _last_results(said)
    return [ToolResult(_split(entry.call_id)[1], entry.text, is_error=entry.is_error) for entry in last]


def _result_files(said: Sequence[ClientMessage]) -> dict[str, tuple[NewFile, ...] | ReadFiles]:
    """Return the files of those results, by call id."""
    return {_split(entry.call_id)[1]: entry.files for entry in _last_results(said) if entry.files}


def _last_results(said: Sequence[ClientMessage]) -> list[ClientMessage]:
    """Return the tools' messages that the conversation ends with."""
    last = list(takewhile(lambda entry: entry.role == "tool", reversed(said)))
    return last[::-1]


def _split(client_id: str) -> tuple[str, str]:
    """Return the session that a call's id names, if it names one, and the id as the session knows it."""
    session_id, dot, call_id = client_id.partition(".")
    return (session_id, call_id) if dot and session_id.startswith("ses_") else ("", client_id)


async def _waiting(pane: LocalPane, asked: ClientRequest) -> SessionState | None:
    """Return the session that waits for the results which the conversation ends with, if it is still there."""
    name, _ = _split(asked.said[-1].call_id)
    if asked.said[-1].role != "tool" or not name:
        return None
    try:
        state = await pane.engine.sessions.get(await pane.own(name))
    except SessionNotFoundError:
        return None
    waiting = {call.id for call in state.open_turn.for_client} if state.open_turn else set[str]()
    return state if {result.call_id for result in _results(asked.said)} <= waiting else None


async def _made(engine: Engine, owner: str, asked: ClientRequest) -> SessionState:
    goes_on = asked.said[-1].role == "tool"
    past = await exchanges(engine, asked.said if goes_on else asked.said[:-1])
    if goes_on:
        # The turn waits for these results, and is given them: so it is not taken for one that its worker left behind.
        steps = past[-1].steps
        past[-1] = replace(past[-1], steps=(*steps[:-1], replace(steps[-1], results=())), finished=False)
        if not past[-1].is_asked:
            raise UnsupportedError(
                "messages", "A tool's result needs the user's message that led to it.", "invalid_value"
            )
    return await engine.sessions.create(asked.agent, owner=owner, settings=asked.settings, past=past, listed=asked.keep)


async def exchanges(engine: Engine, said: Sequence[ClientMessage]) -> list[Exchange]:
    """Return a conversation by what the user said and what was answered to it.

    Raises:
        UnsupportedError: a tool's result answers no call.
        InvalidInputError: a file cannot be taken.
    """
    found: list[Exchange] = []
    for entry in said:
        read = await engine.read_files(entry.files)
        if entry.role == "user":
            found.append(Exchange(entry.text, files=read))
            continue
        last = found.pop() if found else Exchange()
        blobs = {**last.files.blobs, **read.blobs}
        steps = _answered(last.steps, entry, read) if entry.role == "tool" else _spoken(last.steps, entry)
        found.append(replace(last, steps=steps, files=replace(last.files, blobs=blobs)))
    return found


def _spoken(steps: tuple[Step, ...], entry: ClientMessage) -> tuple[Step, ...]:
    # Some clients tell the calls of one step apart from its text.
    if steps and not entry.text and not steps[-1].results:
        return (*steps[:-1], replace(steps[-1], tool_calls=steps[-1].tool_calls + entry.calls))
    return (*steps, Step(text=entry.text, tool_calls=entry.calls))


def _answered(steps: tuple[Step, ...], entry: ClientMessage, read: ReadFiles) -> tuple[Step, ...]:
    if not steps or all(call.id != entry.call_id for call in steps[-1].tool_calls):
        why = f"No tool call of the message before has the id {entry.call_id!r}."
        raise UnsupportedError("messages", why, "invalid_value")
    result = ToolResult(entry.call_id, entry.text, is_error=entry.is_error, attachments=read.attachments)
    return (*steps[:-1], replace(steps[-1], results=(*steps[-1].results, result)))


async def begun(session_id: SessionId, live: AsyncGenerator[Live], *, once: bool) -> Answering:
    """Return the turn once it has begun, so that what prevents it is an error and not half an answer."""
    seen: list[Live] = []
    turn = 0
    async for event in live:
        seen.append(event)
        turn = _turn_of(event)
        if turn:
            break
    if not turn:
        raise StoreUnavailableError("the server is stopping")
    first = next((event.seq for event in reversed(seen) if isinstance(event, Recorded)), 0)

    async def whole() -> AsyncGenerator[Live]:
        for event in seen:
            yield event
        async for event in live:
            yield event

    return Answering(session_id, turn, first, whole(), once)


def _turn_of(event: Live) -> int:
    """Return the number of the turn that begins or goes on with an event, or 0.

    The first events may still close the turn before, or belong to none.
    """
    happened = event.event if isinstance(event, Recorded) else None
    if isinstance(happened, TurnFinished):
        return happened.turn if happened.outcome == "failed" else 0
    return happened.turn if isinstance(happened, TurnStarted | ApprovalDecided | ToolReturned | RequestBuilt) else 0
