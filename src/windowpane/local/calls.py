"""Calls as answers: the ledger of a session with tokens, cost, and whose each byte is."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import anyio.to_thread

from windowpane.api.comparison import CallComparison
from windowpane.api.turns import CallList, CallRecord, CallView, WireSpan
from windowpane.calls.ledger import RecordedCall
from windowpane.context.carried import Rebase
from windowpane.context.events import Recorded, RequestBuilt
from windowpane.context.fold import messages_of
from windowpane.context.ids import BlobHash, SessionId
from windowpane.context.items import ItemRef
from windowpane.context.messages import Message, Step, UserMessage
from windowpane.context.request import Request, RequestMessage
from windowpane.errors import BlobNotFoundError, CallNotFoundError
from windowpane.insight.past import PastRecords, steps_of
from windowpane.insight.usage import spending
from windowpane.insight.wire import BuiltCall, changes_of, spans_of, summary_spans
from windowpane.local.parts import PartReader, compare_calls, owner_spans
from windowpane.models.prices import cost_of
from windowpane.request.messages import messages_now
from windowpane.text.tokens import counted_tokens, family_for, message_tokens

LINE_CHARACTERS = 20
"""So much of a message tells its line in a summary call. Where messages are cut, more is left of each."""


async def calls_of_session(engine: PastRecords, session_id: SessionId) -> CallList:
    """Return every call of a session.

    Raises:
        SessionNotFoundError: no such session.
    """
    return priced(await engine.calls.of_session(session_id))


async def calls_of_turn(engine: PastRecords, session_id: SessionId, turn: int) -> CallList:
    """Return the calls of a turn.

    Raises:
        TurnNotFoundError: no such turn.
    """
    calls = await engine.calls.of_turn(session_id, turn)
    builder = await CallBuilder.of(engine, session_id, turn)
    counted = {call.id: built.counted for call in calls if (built := await builder.built(call)) is not None}
    return priced(calls, counted)


async def call_of_turn(engine: PastRecords, session_id: SessionId, turn: int, number: int) -> CallRecord:
    """Return one call of a turn, as built and as sent.

    Raises:
        TurnNotFoundError: no such turn.
        CallNotFoundError: the turn has no such call.
    """
    call = await engine.calls.one(session_id, turn, number)
    view = (await calls_of_turn(engine, session_id, turn)).calls[number - 1]
    return await _record(engine, session_id, call, view)


async def call_of_session(engine: PastRecords, session_id: SessionId, number: int) -> CallRecord:
    """Return one call of a session, as built and as sent, also one that belongs to no turn.

    Raises:
        SessionNotFoundError: no such session.
        CallNotFoundError: the session has no such call.
    """
    return await _record(engine, session_id, *await _numbered(engine, session_id, number))


async def calls_compared(engine: PastRecords, session_id: SessionId, before: int, after: int) -> CallComparison:
    """Return what is different between two calls of a session.

    Raises:
        SessionNotFoundError: no such session.
        CallNotFoundError: the session has no such call.
    """
    one, other = [await _numbered(engine, session_id, number) for number in (before, after)]
    return await compare_calls(engine, session_id, one, other)


async def _numbered(engine: PastRecords, session_id: SessionId, number: int) -> tuple[RecordedCall, CallView]:
    calls = await engine.calls.of_session(session_id)
    if not 1 <= number <= len(calls):
        raise CallNotFoundError(None, number, len(calls))
    return calls[number - 1], priced(calls).calls[number - 1]


async def _record(engine: PastRecords, session_id: SessionId, call: RecordedCall, view: CallView) -> CallRecord:
    built = await (await CallBuilder.of(engine, session_id, call.turn)).built(call) if call.turn is not None else None
    messages, tools, added = (), (), 0
    if built is not None:
        messages, tools, added = built.messages, built.request.tools, built.added
    as_built = await to_compare(engine, session_id, built)
    wire = await engine.calls.wire(session_id, call)
    body = wire.body.decode("utf-8", "replace") if wire and wire.body is not None else None
    spans = () if body is None else await _spans(engine, session_id, call, body, as_built, known=built is not None)
    return CallRecord(
        call=view,
        messages=messages,
        message_tokens=tuple(map(message_tokens, messages)),
        added=added,
        tools=tools,
        head=wire.head if wire else None,
        sha256=call.sha256,
        body=body,
        erased=call.body is not None and body is None,
        spans=spans,
        changes=await anyio.to_thread.run_sync(changes_of, body, as_built) if body is not None and built else (),
        answer=await engine.calls.answer(session_id, call),
        parts=tuple(weighed for _, weighed in await PartReader(engine, session_id).parts(call, body or "")),
    )


async def _spans(
    engine: PastRecords, session_id: SessionId, call: RecordedCall, body: str, built: BuiltCall, *, known: bool
) -> tuple[WireSpan, ...]:
    """Return whose each stretch of a body is: as it was built, or, of another maker's program, as its parts tell.

    A summary of ours is told by the messages before it.
    """
    if known:
        return await anyio.to_thread.run_sync(spans_of, body, built)
    # Here: it loads what remembers conversations, and few calls are summaries.
    from windowpane.memory.summarise import RECORD_SUMMARY

    if call.purpose == "summary" and RECORD_SUMMARY.offered_name in body:
        log = await engine.store.read(session_id, limit=call.seq)
        return await anyio.to_thread.run_sync(summary_spans, body, list(_lines(messages_of(session_id, log))))
    return await anyio.to_thread.run_sync(owner_spans, body)


def _lines(messages: Sequence[Message]) -> Iterator[tuple[str, str]]:
    """Yield the messages that a summary is made of: what each is called, and how its line begins."""
    from windowpane.memory.recent import conversation, text_of

    for message in conversation(messages):
        role = "USER" if isinstance(message, UserMessage) else "ASSISTANT"
        yield f"message {message.seq}: {role.lower()}", f"{role}: {text_of(message)[:LINE_CHARACTERS]}"


@dataclass(frozen=True, slots=True)
class CallParts:
    """What one call was built of: the request as it stood then, and the steps before."""

    request: Request
    steps: tuple[Step, ...]

    @property
    def messages(self) -> tuple[RequestMessage, ...]:
        return messages_now(self.request, self.steps)

    @property
    def added(self) -> int:
        """Return how many messages are new since the call of the step before."""
        return (
            len(self.messages) - len(messages_now(self.request, self.steps[:-1])) if self.steps else len(self.messages)
        )

    @property
    def counted(self) -> int:
        return counted_tokens(self.messages, self.request.tools, family_for(self.request.context.settings))


class CallBuilder:
    """Tells what the calls of a turn were built of. A turn has more than one request when the model asked for more."""

    def __init__(self, engine: PastRecords, session_id: SessionId, turn: int, events: Sequence[Recorded]) -> None:
        self._engine = engine
        self._session_id = session_id
        self._steps = steps_of(events, turn)
        self._built = [
            (entry.seq, entry.event)
            for entry in events
            if isinstance(entry.event, RequestBuilt) and entry.event.turn == turn
        ]
        self._read: dict[BlobHash, Request] = {}

    @classmethod
    async def of(cls, engine: PastRecords, session_id: SessionId, turn: int) -> "CallBuilder":
        return cls(engine, session_id, turn, await engine.past.events(session_id, turn))

    async def built(self, call: RecordedCall) -> CallParts | None:
        """Return what a call was built of, or None when that is not on record."""
        event = next((event for seq, event in reversed(self._built) if seq < call.seq), None)
        if event is None or call.purpose != "answer":
            return None
        name = event.request
        if name not in self._read:
            try:
                self._read[name] = await self._engine.past.read(self._session_id, name)
            except BlobNotFoundError:
                return None
        return CallParts(self._read[name], self._steps[: call.step - 1])

    def rebase(self, call: RecordedCall, *, since: RecordedCall) -> Rebase | None:
        """Return the re-base that lies between two calls, the later one of this turn, or None."""
        if call.purpose != "answer":
            return None
        carried = (event.carry for seq, event in reversed(self._built) if since.seq < seq < call.seq)
        return next((change.rebase for change in carried if change is not None and change.rebase is not None), None)


async def to_compare(engine: PastRecords, session_id: SessionId, built: CallParts | None) -> BuiltCall:
    """Return what a call was built of as a body is compared with it. None: that is not known."""
    if built is None:
        return BuiltCall((), (), 0, {})
    texts = await _item_texts(engine, session_id, built.request)
    return BuiltCall(built.messages, built.request.tools, len(built.request.messages), texts)


def priced(calls: Sequence[RecordedCall], counted: Mapping[str, int] | None = None) -> CallList:
    """Return calls with their cost, and what they used together. `counted` is our own count of each, by id."""
    views = tuple(
        CallView(
            number=number,
            id=call.id,
            turn=call.turn,
            step=call.step,
            attempt=call.attempt,
            purpose=call.purpose,
            model=call.model,
            started_at=call.started_at,
            outcome=call.outcome,
            seen=call.seen,
            built_in=call.built_in,
            size=call.size,
            status=call.status,
            first_byte_ms=call.first_byte_ms,
            duration_ms=call.duration_ms,
            usage=call.usage,
            output_unknown=call.output_unknown,
            cost_usd=cost_of(call),
            counted_tokens=(counted or {}).get(call.id),
            reason=call.reason,
        )
        for number, call in enumerate(calls, 1)
    )
    spent = spending(calls)
    return CallList(
        calls=views,
        usage=spent.usage,
        cost_usd=spent.cost_usd,
        without_usage=spent.without_usage,
        without_price=spent.without_price,
    )


async def _item_texts(engine: PastRecords, session_id: SessionId, request: Request) -> dict[ItemRef, str]:
    named = {item.hash: item.ref for item in request.context.items if item.hash and item.sent and not item.server}
    found = await engine.store.blobs(session_id, list(named))
    return {named[name]: json.loads(body)["text"] for name, body in found.items()}
