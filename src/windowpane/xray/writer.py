"""Write calls into the logs of their sessions, and close the turns that their programs leave open.

A turn that runs is held by a lease, as the turns of agents are: when this process dies, the turn is closed by the one
who reads it next.
"""

import hashlib
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import anyio
import anyio.to_thread

from windowpane.calls.body import KeptBody, keep
from windowpane.calls.skeleton import LastBody
from windowpane.context.calls import CallPurpose, FoldedReply
from windowpane.context.events import CallEnded, CallSent, Event, Recorded
from windowpane.context.fold import fold
from windowpane.context.ids import SessionId, content_hash
from windowpane.context.session import SessionState
from windowpane.errors import SessionNotFoundError, StoreUnavailableError
from windowpane.json_codec import JsonCodec
from windowpane.stores.base import Store
from windowpane.stores.sessions import Sessions
from windowpane.supervise import Backoff
from windowpane.turn.lease import Leases
from windowpane.xray.reading import ReadAnswer, ReadRequest, read_answer, read_request
from windowpane.xray.tape import Tape
from windowpane.xray.threads import Thread, Threads
from windowpane.xray.turns import ending_events, opening_events, reply_events

PATIENCE_S = 30.0
"""How long a store that does not answer is waited for, for each call."""

RETRY_S = 60.0
"""How long a turn whose call failed or broke off stays open for another attempt."""

NOT_KEPT = "the answer was not recorded: too much was waiting"
"""The reason of a call whose answer was lost."""

LEASE_S = 15.0
"""How long a turn stays open after its recorder died."""

_REPLY = JsonCodec(FoldedReply)
T = TypeVar("T")


@dataclass(slots=True)
class _OpenCall:
    """A call that is in the log, and whose end is awaited."""

    id: str
    thread: Thread
    purpose: CallPurpose
    model: str
    turn: int | None = None


class SessionWriter:
    """Writes calls into a store, which is open."""

    def __init__(self, store: Store) -> None:
        self._sessions = Sessions(store)
        self._leases = Leases(store, LEASE_S)
        self._threads = Threads(self._sessions)
        self._calls: dict[Tape, _OpenCall] = {}
        self.patience_s = PATIENCE_S
        self.sessions: dict[SessionId, None] = {}

    async def sent(self, tape: Tape) -> bool:
        """Write a request that is on its way. Return False when it belongs to no session.

        Raises:
            StoreError: the store did not take it.
        """
        asked = await anyio.to_thread.run_sync(read_request, tape.head, tape.request_body())
        try:
            return await self._sent(tape, asked)
        except SessionNotFoundError as error:
            # It was deleted meanwhile. Its program goes on, in a session that begins here.
            self._threads.forget(SessionId(error.session_id))
            return await self._sent(tape, asked)

    async def _sent(self, tape: Tape, asked: ReadRequest) -> bool:
        head = tape.head
        find = self._threads.of if asked.purpose == "answer" else self._threads.helper_of
        thread = await self._patiently(lambda: find(head.owner, head.provider, asked.marks, asked.conversation))
        if thread is None:
            return False
        again = asked.purpose == "answer" and thread.repeats(asked.conversation)
        if asked.purpose == "answer":
            thread.attempt = thread.attempt + 1 if again else 1
        call = _OpenCall(secrets.token_hex(6), thread, asked.purpose, asked.model)
        kept, body = await anyio.to_thread.run_sync(keep, asked.body, thread.last_body)
        if not await self._patiently(lambda: self._write_sent(call, asked, kept, again=again)):
            thread.last_body, thread.stored = None, set()
            kept, body = await anyio.to_thread.run_sync(keep, asked.body)
            await self._patiently(lambda: self._write_sent(call, asked, kept, again=again))
        # Only now: a body that was not stored must not be what later ones are compared to.
        self._now_running(tape, call, asked, body)
        if call.turn is not None:
            await self._hold(thread)
        return True

    async def ended(self, tape: Tape) -> bool:
        """Write how a call ended, and what was answered. Return False when the call itself is in no log.

        Raises:
            StoreError: the store did not take it.
        """
        call = self._calls.pop(tape, None)
        if call is None:
            return False
        thread = call.thread
        thread.running -= 1
        answer = await anyio.to_thread.run_sync(
            read_answer,
            tape.head.kind,
            tape.status,
            tape.answer_headers,
            tape.answer_body(),
            tape.outcome or "cut",
            tape.reason or (NOT_KEPT if tape.lost else ""),
        )
        if call.turn is not None:
            thread.outcome, thread.reply, thread.usage = answer.outcome, answer.reply, answer.usage
            thread.used_at = anyio.current_time()
        await self._patiently(lambda: self._write_ended(call, tape, answer))
        if call.turn is not None and answer.outcome == "complete":
            await self._let_go(thread)
        return True

    def drop(self, tape: Tape) -> None:
        """Forget a call whose end is not going to be written."""
        if call := self._calls.pop(tape, None):
            call.thread.running -= 1

    async def attend(self) -> None:
        """Keep the leases of turns that run, and close those whose failed call was not tried again."""
        while True:
            await anyio.sleep(self._leases.lease_s / 3)
            now = anyio.current_time()
            for thread in self._threads.all():
                if thread.lease is None:
                    continue
                if thread.running or now - thread.used_at < RETRY_S:
                    with suppress(StoreUnavailableError):
                        await self._renew(thread)
                else:
                    await self._close(thread)

    async def close(self) -> None:
        """Close every turn that is open: its program has gone, or this process is about to stop."""
        for thread in self._threads.all():
            with suppress(StoreUnavailableError, SessionNotFoundError):
                await self._close(thread)

    async def _write_sent(self, call: _OpenCall, asked: ReadRequest, kept: KeptBody, *, again: bool) -> bool:
        """Write a request. Return False when texts that it needs may have been erased since they were stored."""
        thread = call.thread
        blobs = {content_hash(asked.head): asked.head, **kept.blobs}
        new = {name: blob for name, blob in blobs.items() if name not in thread.stored}
        erased_seq = 0

        def decide(state: SessionState) -> list[Event]:
            nonlocal erased_seq
            erased_seq = state.erased_seq
            if thread.stored and thread.erased_seq != erased_seq:
                return []
            events: list[Event] = []
            step = 1
            if call.purpose == "answer":
                turn = state.open_turn
                ending = ending_events(turn, thread.outcome, thread.reply, thread.usage) if turn else ()
                events = opening_events(state, asked.conversation, ending, again=again)
                opened = _after(state, events).open_turn
                call.turn = opened.turn if opened else None
                step = len(opened.steps) + 1 if opened else 1
            sent = CallSent(
                id=call.id,
                turn=call.turn,
                step=step,
                attempt=thread.attempt if call.turn is not None else 1,
                purpose=call.purpose,
                model=call.model,
                head=content_hash(asked.head),
                body=kept.name,
                sha256=hashlib.sha256(asked.body).hexdigest(),
                size=len(asked.body),
                encoding=asked.encoding,
            )
            return [*events, sent]

        changed = await self._sessions.change(thread.session_id, decide, blobs=new, unread=True)
        if not changed.recorded:
            return False
        thread.stored.update(new)
        thread.erased_seq = erased_seq
        return True

    def _now_running(self, tape: Tape, call: _OpenCall, asked: ReadRequest, body: LastBody) -> None:
        thread = call.thread
        self.sessions[thread.session_id] = None
        thread.last_body = body
        thread.running += 1
        thread.used_at = anyio.current_time()
        self._calls[tape] = call
        if call.turn is not None:
            thread.said, thread.shape = asked.conversation.said, asked.conversation.shape
            thread.outcome = thread.reply = thread.usage = None

    async def _write_ended(self, call: _OpenCall, tape: Tape, answer: ReadAnswer) -> None:
        text = _REPLY.adapter.dump_json(answer.reply).decode()
        ended = CallEnded(
            id=call.id,
            turn=call.turn,
            model=call.model,
            address=tape.head.url,
            outcome=answer.outcome,
            status=tape.status,
            first_byte_ms=tape.first_byte_ms,
            duration_ms=tape.duration_ms,
            usage=answer.usage,
            output_unknown=answer.output_unknown,
            reason=answer.reason,
            answer=content_hash(text),
        )

        def decide(state: SessionState) -> list[Event]:
            turn = state.open_turn
            if call.turn is None or turn is None or turn.turn != call.turn or answer.outcome != "complete":
                return [ended]
            return [ended, *reply_events(call.turn, answer.reply, answer.usage, tape.duration_ms)]

        await self._sessions.change(call.thread.session_id, decide, blobs={content_hash(text): text}, unread=True)

    async def _hold(self, thread: Thread) -> None:
        if thread.lease is None:
            # Without it the turn is recorded all the same; another worker may have it.
            with suppress(StoreUnavailableError):
                thread.lease = await self._leases.take_now(thread.session_id)

    async def _renew(self, thread: Thread) -> None:
        if thread.lease is not None:
            held = await self._sessions.store.acquire(thread.session_id, thread.lease.holder, self._leases.lease_s)
            thread.lease = thread.lease if held is not None else None

    async def _let_go(self, thread: Thread) -> None:
        if thread.lease is not None:
            lease, thread.lease = thread.lease, None
            await self._leases.release(thread.session_id, lease)

    async def _close(self, thread: Thread) -> None:
        def decide(state: SessionState) -> list[Event]:
            turn = state.open_turn
            return ending_events(turn, thread.outcome, thread.reply, thread.usage) if turn else []

        if thread.said:
            await self._sessions.change(thread.session_id, decide)
        await self._let_go(thread)

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do some work on the store, and wait a while for one that does not answer."""
        backoff, until = Backoff(), anyio.current_time() + self.patience_s
        while True:
            try:
                return await work()
            except StoreUnavailableError:
                if anyio.current_time() >= until:
                    raise
            await anyio.sleep(backoff.next_s())


def _after(state: SessionState, events: list[Event]) -> SessionState:
    at = state.updated_at
    if at is None:
        raise ValueError("a session that has begun says when")
    return fold(state.id, [Recorded(state.seq + place, at, event) for place, event in enumerate(events, 1)], state)
