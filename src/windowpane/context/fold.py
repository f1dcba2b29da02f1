"""What each event means: the state of a session is a pure fold over its events.

`apply(state, recorded)` is the only place where events get their meaning.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from datetime import datetime
from functools import cache, singledispatch
from operator import attrgetter
from typing import Any

from windowpane.context.calls import after_refusal, reported_factor
from windowpane.context.carried import Carried, CarryChange
from windowpane.context.events import (
    AgentChanged,
    ApprovalDecided,
    ApprovalRequested,
    CallEnded,
    CancelRequested,
    Event,
    FetchedAdded,
    FetchedCleared,
    HistoryCleared,
    ItemAdded,
    ItemReadmitted,
    ItemRemoved,
    MessageAdded,
    MessageRemoved,
    ModelReplied,
    QuestionAnswered,
    QuestionAsked,
    Recorded,
    ReferenceAdded,
    ReferenceRemoved,
    RequestBuilt,
    Sealed,
    ServerArrived,
    SessionContext,
    SessionCreated,
    SessionUpdated,
    SummaryMade,
    ToolReturned,
    TurnFinished,
    TurnStarted,
    only_looks,
)
from windowpane.context.ids import SessionId, is_unlisted, owner_of
from windowpane.context.items import BUILT_IN_SERVER, reference_ref
from windowpane.context.messages import (
    ApprovalMessage,
    AssistantMessage,
    ErrorMessage,
    Message,
    ModelReply,
    Step,
    SystemMessage,
    ToolCallApproval,
    UserMessage,
)
from windowpane.context.session import (
    SETTING_NAMES,
    HeldFetch,
    OpenTurn,
    SessionSettings,
    SessionState,
    TurnKeys,
    TurnStarts,
)
from windowpane.context.sets import paths_in
from windowpane.errors import StoreEncryptedError

RECENT_MESSAGES = 128
"""How many of the latest messages a state keeps."""

MAX_FETCHED = 50
"""How many pages and search results a session holds; the oldest make room."""

OBSERVED = 50
"""How many of the files that tools touched last a state keeps."""

LONGEST_OPENING = 60
"""How many characters of its first message a session without a name is called by."""


def fold(session_id: SessionId, events: Iterable[Recorded], start: SessionState | None = None) -> SessionState:
    """Return the state after these events, from the beginning or from `start`."""
    state = start or SessionState(id=session_id)
    for recorded in events:
        state = apply(state, recorded)
    return state


def messages_of(session_id: SessionId, events: Iterable[Recorded]) -> list[Message]:
    """Return the messages that a stretch of the log adds. The stretch begins where a turn begins."""
    state = SessionState(id=session_id)
    messages: list[Message] = []
    for recorded in events:
        before, state = state.message_count, apply(state, recorded)
        if isinstance(recorded.event, MessageRemoved):
            gone = recorded.event.seq
            messages[:] = [message for message in messages if message.seq != gone]
        elif state.message_count < before:
            messages.clear()
        elif state.message_count > before:
            messages.extend(state.recent[before - state.message_count :])
    return messages


def apply(state: SessionState, recorded: Recorded) -> SessionState:
    """Return the state after one more event."""
    after = _rule_for(type(recorded.event))(recorded.event, state, recorded)
    if after is state:
        after = _with(state)
    # It was made for this event alone, so it need not be copied once more.
    _WRITERS["seq"](after, recorded.seq)
    _WRITERS["updated_at"](after, state.updated_at if only_looks(recorded.event) else recorded.at)
    _WRITERS["created_at"](after, state.created_at or recorded.at)
    return after


@singledispatch
def _meaning(event: Event, state: SessionState, recorded: Recorded) -> SessionState:
    """Return what an event changes. Events without a rule of their own change nothing."""
    return state


_rule_for = cache(_meaning.dispatch)


@_meaning.register
def _(event: SessionCreated, state: SessionState, recorded: Recorded) -> SessionState:
    return _with(
        state,
        agent=event.agent,
        origin=event.origin,
        owner=owner_of(event.owner),
        listed=not is_unlisted(event.owner),
        name=event.name,
        settings=_changed(SessionSettings(), event.settings),
        context_items=event.items,
        servers=frozenset(event.servers),
        branch_of=event.branch_of,
    )


@_meaning.register
def _(event: SessionUpdated, state: SessionState, recorded: Recorded) -> SessionState:
    changes = dict(event.changes)
    name = changes.pop("name", state.name)
    return _with(state, name=name or "", settings=_changed(state.settings, changes))


@_meaning.register
def _(event: AgentChanged, state: SessionState, recorded: Recorded) -> SessionState:
    return _with(
        state, agent=event.agent, context_items=event.items, servers=frozenset(event.servers), carried=Carried()
    )


@_meaning.register
def _(event: ItemAdded, state: SessionState, recorded: Recorded) -> SessionState:
    if state.holds(event.item.ref):
        return state
    return _with(state, context_items=(*state.context_items, event.item), removed=state.removed - {event.item.ref})


@_meaning.register
def _(event: ItemRemoved, state: SessionState, recorded: Recorded) -> SessionState:
    kept = tuple(item for item in state.context_items if item.ref != event.ref)
    return _with(state, context_items=kept, removed=state.removed | {event.ref})


@_meaning.register
def _(event: ItemReadmitted, state: SessionState, recorded: Recorded) -> SessionState:
    return _with(state, removed=state.removed - {event.ref})


@_meaning.register
def _(event: ReferenceAdded, state: SessionState, recorded: Recorded) -> SessionState:
    others = tuple(own for own in state.own_references if own.name != event.reference.name)
    removed = state.removed - {event.reference.ref}
    return _with(state, own_references=(*others, event.reference), removed=removed)


@_meaning.register
def _(event: ReferenceRemoved, state: SessionState, recorded: Recorded) -> SessionState:
    ref = reference_ref(event.name)
    return _with(
        state,
        own_references=tuple(own for own in state.own_references if own.ref != ref),
        context_items=tuple(item for item in state.context_items if item.ref != ref),
        removed=state.removed - {ref},
    )


@_meaning.register
def _(event: ServerArrived, state: SessionState, recorded: Recorded) -> SessionState:
    new = tuple(item for item in event.items if item.ref not in state.removed and not state.holds(item.ref))
    return _with(state, context_items=state.context_items + new, servers=state.servers | {event.server})


@_meaning.register
def _(event: MessageAdded, state: SessionState, recorded: Recorded) -> SessionState:
    seq, at = recorded.seq, recorded.at
    if event.role == "assistant":
        said: Message = AssistantMessage(model_reply=ModelReply((Step(text=event.content),)), seq=seq, at=at)
    elif event.role == "system":
        said = SystemMessage(content=event.content, seq=seq, at=at)
    else:
        said = UserMessage(content=event.content, attachments=event.attachments, seq=seq, at=at)
    return _with_message(state, said, token_count=state.token_count + event.tokens)


@_meaning.register
def _(event: MessageRemoved, state: SessionState, recorded: Recorded) -> SessionState:
    state = _with(state, erased_seq=recorded.seq)
    if event.drops_summary and state.summary is not None and state.summary.through_seq >= event.seq:
        state = _with(state, summary=None)
    kept = tuple(message for message in state.recent if message.seq != event.seq)
    # Its text is erased, so a later fold of the log never sees it.
    if len(kept) == len(state.recent):
        return state
    return _with(
        state, recent=kept, message_count=state.message_count - 1, token_count=state.token_count - event.tokens
    )


@_meaning.register
def _(event: TurnStarted, state: SessionState, recorded: Recorded) -> SessionState:
    message = UserMessage(
        content=event.message, attachments=event.attachments, turn=event.turn, seq=recorded.seq, at=recorded.at
    )
    return _with_message(
        state,
        message,
        opening=state.opening if any(state.turn_starts) else _first_words(event.message or _named(event)),
        turn_starts=state.turn_starts.with_next(recorded.seq),
        turn_keys=state.turn_keys.with_next(event.key, event.turn) if event.key else state.turn_keys,
        open_turn=OpenTurn(turn=event.turn, message=event.message, attachments=event.attachments),
        token_count=state.token_count + event.tokens,
        resume_pending=state.resume_pending or event.resumed,
    )


def _named(event: TurnStarted) -> str:
    """Return what a message without words is called by: its first file."""
    return event.attachments[0].name if event.attachments else ""


def _first_words(message: str) -> str:
    """Return the first line of a message, cut at a word when it is long."""
    line = message.strip().partition("\n")[0].strip()
    if len(line) <= LONGEST_OPENING:
        return line
    cut = line[:LONGEST_OPENING]
    return f"{cut.rpartition(' ')[0] or cut}…"


@_meaning.register
def _(event: RequestBuilt, state: SessionState, recorded: Recorded) -> SessionState:
    changes: dict[str, Any] = {"catalog": event.catalog or state.catalog}
    if event.smaller is not None:
        learned = after_refusal(state.token_factor, event.smaller)
        changes |= {"smaller_window": event.smaller, "token_factor": learned}
    if state.open_turn is None or state.open_turn.turn != event.turn:
        return _with(state, **changes)
    carried = Carried()
    if event.carry is not None:
        carried = replace(_carried(state.carried, event.carry, event.turn, event.step), at=recorded.at)
    return _with(state, **changes, carried=carried, open_turn=replace(state.open_turn, request=event.request))


def _carried(before: Carried, change: CarryChange, turn: int, step: int) -> Carried:
    """Return what stands in the prompt after a request. One that is built again replaces the first one of its turn."""
    again, moved, left = set(change.again), set(change.moved), set(change.dropped)
    items = [
        replace(item, used=turn if item.ref in again else item.used, place=0 if item.ref in moved else item.place)
        for item in before.items
        if item.ref not in left and (item.turn < turn or step > 1)
    ]
    return Carried(
        items=(*items, *change.entered),
        prefix=change.prefix,
        model=change.model,
        turn=turn,
        through_seq=change.through_seq,
        rent_tokens=change.rent_tokens,
    )


@_meaning.register
def _(event: ModelReplied, state: SessionState, recorded: Recorded) -> SessionState:
    steps, own_words = (state.open_turn.steps, state.open_turn.own_words) if state.open_turn else ((), ())
    observed = (*state.observed, *_touched(event.step))
    open_turn = state.open_turn
    if open_turn is not None and open_turn.turn == event.turn:
        # Decisions were about the calls of the step before; a call of this one must never inherit them.
        open_turn = replace(
            open_turn, steps=(*steps, event.step), own_words=(*own_words, event.own_words), approvals=()
        )
    return _with(
        state,
        token_count=state.token_count + event.tokens,
        observed=tuple(dict.fromkeys(observed[::-1]))[:OBSERVED][::-1],
        carried=_called(state.carried, event, recorded.at),
        open_turn=open_turn,
    )


def _called(carried: Carried, event: ModelReplied, at: datetime) -> Carried:
    """Return what is carried after a model call: the provider has read all of it, and some tools were used."""
    if carried.prefix is None or carried.turn != event.turn:
        return carried
    refs = {call.ref for call in event.step.tool_calls}
    items = tuple(replace(item, used=event.turn) if item.ref in refs else item for item in carried.items)
    return replace(carried, items=items, at=at)


@_meaning.register
def _(event: CallEnded, state: SessionState, recorded: Recorded) -> SessionState:
    known, last = state.token_factor, reported_factor(event)
    return state if last is None else _with(state, token_factor=known.after(last) if known else last)


@_meaning.register
def _(event: ToolReturned, state: SessionState, recorded: Recorded) -> SessionState:
    if state.open_turn is None or not state.open_turn.steps:
        return state
    *before, last = state.open_turn.steps
    if last.result_of(event.result.call_id) is not None:
        return state
    results = (*last.results, event.result)
    # A call that has its result asks nothing any more.
    asked = tuple(each for each in state.open_turn.questions if each.call_id != event.result.call_id)
    return _with_open(state, event.turn, steps=(*before, replace(last, results=results)), questions=asked)


@_meaning.register
def _(event: ApprovalRequested, state: SessionState, recorded: Recorded) -> SessionState:
    return _with_open(state, event.turn, approvals=tuple(ToolCallApproval(call) for call in event.calls))


@_meaning.register
def _(event: ApprovalDecided, state: SessionState, recorded: Recorded) -> SessionState:
    if state.open_turn is None or state.open_turn.turn != event.turn:
        return state
    approvals = tuple(
        replace(approval, decision=event.decisions[approval.call.id], by=event.actor)
        if approval.decision is None and approval.call.id in event.decisions
        else approval
        for approval in state.open_turn.approvals
    )
    allowed = {a.call.ref for a in approvals if a.decision == "allow_session" and a.call.ref is not None}
    decided = _with(_with_open(state, event.turn, approvals=approvals), allowed_tools=state.allowed_tools | allowed)
    if any(approval.decision is None for approval in approvals):
        return decided
    message = ApprovalMessage(tool_call_approvals=approvals, turn=event.turn, seq=recorded.seq, at=recorded.at)
    return _with_message(decided, message)


@_meaning.register
def _(event: QuestionAsked | QuestionAnswered, state: SessionState, recorded: Recorded) -> SessionState:
    asked = state.open_turn.questions if state.open_turn else ()
    if isinstance(event, QuestionAsked):
        return _with_open(state, event.turn, questions=(*asked, event.question))
    return _with_open(state, event.turn, questions=tuple(each for each in asked if each.id != event.question_id))


@_meaning.register
def _(event: CancelRequested, state: SessionState, recorded: Recorded) -> SessionState:
    return _with_open(state, event.turn, cancel_requested=True)


@_meaning.register
def _(event: TurnFinished, state: SessionState, recorded: Recorded) -> SessionState:
    turn = state.open_turn
    if turn is None or turn.turn != event.turn:
        return state
    pending = state.resume_pending and event.outcome != "completed"
    after = _with(state, open_turn=None, resume_pending=pending)
    if turn.steps:
        reply = AssistantMessage(
            model_reply=ModelReply(turn.steps),
            request=turn.request,
            outcome=event.outcome,
            sources=event.sources,
            related=event.related,
            turn=event.turn,
            seq=recorded.seq,
            at=recorded.at,
        )
        after = _with_message(after, reply)
    if event.error is not None:
        failure = ErrorMessage(
            content=event.error.message,
            code=event.error.code,
            partial=event.error.partial,
            request=turn.request,
            turn=event.turn,
            seq=recorded.seq,
            at=recorded.at,
        )
        after = _with_message(after, failure)
    return after


@_meaning.register
def _(event: SummaryMade, state: SessionState, recorded: Recorded) -> SessionState:
    if state.summary is not None and state.summary.through_seq >= event.summary.through_seq:
        return state
    return _with(state, summary=event.summary)


@_meaning.register
def _(event: FetchedAdded, state: SessionState, recorded: Recorded) -> SessionState:
    new = {item.key: HeldFetch(recorded.seq, recorded.at, item) for item in event.items}
    kept = tuple(held for held in state.fetched if held.item.key not in new)
    return _with(state, fetched=(kept + tuple(new.values()))[-MAX_FETCHED:])


@_meaning.register
def _(event: FetchedCleared, state: SessionState, recorded: Recorded) -> SessionState:
    held = tuple(held for held in state.fetched if event.kind not in (None, held.item.kind))
    return _with(state, fetched=held, erased_seq=recorded.seq)


@_meaning.register
def _(event: SessionContext, state: SessionState, recorded: Recorded) -> SessionState:
    if event.reason != "changed":
        return state
    files = set(event.context.get("files", ()))
    marks = {path: mark for path, mark in {**state.marks, **event.marks}.items() if path in files}
    return _with(state, sets=event.context, marks=marks)


@_meaning.register
def _(event: HistoryCleared, state: SessionState, recorded: Recorded) -> SessionState:
    """Forget everything that the erased events said, so that the log gives the same state with and without them."""
    return _with(
        state,
        opening="",
        recent=(),
        message_count=0,
        token_count=0,
        turn_starts=TurnStarts(erased=event.turns),
        turn_keys=TurnKeys.from_blocks(event.keys),
        allowed_tools=frozenset(),
        open_turn=None,
        summary=None,
        observed=(),
        resume_pending=False,
        catalog=None,
        carried=Carried(),
        erased_seq=recorded.seq,
    )


@_meaning.register
def _(event: Sealed, state: SessionState, recorded: Recorded) -> SessionState:
    raise StoreEncryptedError


def _touched(step: Step) -> Iterator[str]:
    """Return the files that the step's tools touched. Naming a file in a context set is not touching it."""
    for call in step.tool_calls:
        if call.ref is not None and call.ref.server != BUILT_IN_SERVER:
            yield from paths_in(call.arguments)


def _changed(settings: SessionSettings, changes: Mapping[str, Any]) -> SessionSettings:
    # A newer version may have written settings that this one does not know.
    return replace(settings, **{name: value for name, value in changes.items() if name in SETTING_NAMES})


def _with(state: SessionState, **changes: Any) -> SessionState:
    """Return a state with some of it changed: `dataclasses.replace` at a quarter of its cost, because logs are long."""
    after = object.__new__(SessionState)
    for write, value in zip(_WRITERS.values(), _values(state), strict=True):
        write(after, value)
    for name, value in changes.items():
        _WRITERS[name](after, value)
    return after


_WRITERS: dict[str, Callable[[SessionState, object], None]] = {
    each.name: vars(SessionState)[each.name].__set__ for each in fields(SessionState)
}
_values: Callable[[SessionState], tuple[object, ...]] = attrgetter(*_WRITERS)


def _with_message(state: SessionState, message: Message, **changes: Any) -> SessionState:
    recent = (*state.recent, message)[-RECENT_MESSAGES:]
    return _with(state, recent=recent, message_count=state.message_count + 1, **changes)


def _with_open(state: SessionState, turn: int, **changes: Any) -> SessionState:
    if state.open_turn is None or state.open_turn.turn != turn:
        return state
    return _with(state, open_turn=replace(state.open_turn, **changes))
