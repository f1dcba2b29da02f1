"""Write imported calls into the logs of their sessions, with the times that they had.

A session is known by its source and the program's own id, and a call by the source's id of it. So what is imported
again adds only what is new. All that is new of a session is appended in one piece, or nothing is. What the recording
proxy saw of the same conversation is not imported beside it: it would count twice.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import anyio.to_thread

from windowpane.calls.body import keep
from windowpane.calls.conversation import ConversationReader, SentConversation
from windowpane.calls.skeleton import LastBody
from windowpane.context.calls import FoldedReply, Origin, WireHead
from windowpane.context.events import CallEnded, CallSent, Event, Recorded, SessionCreated
from windowpane.context.fold import apply, fold
from windowpane.context.ids import BlobHash, SessionId, content_hash, keyed_session_id
from windowpane.context.session import SessionState
from windowpane.errors import SequenceConflictError, SessionNotFoundError
from windowpane.json_codec import JsonCodec
from windowpane.stores.append import OriginalTimes
from windowpane.stores.base import Store
from windowpane.text.redact import redacted
from windowpane.xray.importing.seen import SeenCalls
from windowpane.xray.importing.told import PATHS, ToldCall, ToldSession
from windowpane.xray.turns import ending_events, opening_events, reply_events

LEFT_OPEN = timedelta(hours=1)
"""A turn that waits for a tool may go on in a later import. After so long it is taken as left."""

_HEAD = JsonCodec(WireHead)
_REPLY = JsonCodec(FoldedReply)


@dataclass(frozen=True, slots=True)
class ImportedSession:
    """A session that was imported: how many calls are new, and how many were there already.

    `recorded` is how many of them the recording proxy saw, which are in its session and not in this one.
    """

    id: SessionId
    calls: int
    known: int
    recorded: int = 0


Progress = Callable[[int, int], None]
"""Hears how many calls of a session are read, and of how many. It is called in a thread."""


class Importer:
    """Writes sessions into a store, which is open, for one owner."""

    def __init__(self, store: Store, owner: str, progress: Progress = lambda done, total: None) -> None:
        self._store = store
        self._owner = owner
        self._seen = SeenCalls(store, owner)
        self._progress = progress

    async def write(self, told: ToldSession) -> ImportedSession:
        """Store what is new of a session.

        Raises:
            StoreError: the store did not take it. Nothing of the session was written.
        """
        session_id = self._id(told, told.thread)
        while True:
            state, known = await self._so_far(session_id)
            calls = [call for call in told.calls if _id_of(call) not in known]
            calls = list({_id_of(call): call for call in calls}.values())
            new = await self._seen.without(told, calls)
            imported = ImportedSession(session_id, len(new), len(told.calls) - len(calls), len(calls) - len(new))
            if not new:
                return imported
            now = await self._store.now()
            drafted = await anyio.to_thread.run_sync(self._drafted, state, told, new, now)
            try:
                await self._store.append(
                    session_id,
                    drafted.events,
                    expected_seq=state.seq,
                    blobs=drafted.blobs,
                    # Touched now: sessions expire, and are counted, by when they were touched.
                    original_times=OriginalTimes(tuple(drafted.times), now),
                )
            except SequenceConflictError:
                # Another import of the same was quicker.
                continue
            return imported

    def _id(self, told: ToldSession, thread: str) -> SessionId:
        key = (told.source, told.program, told.conversation)
        return keyed_session_id(self._owner, "import", *key, *((thread,) if thread else ()))

    async def _so_far(self, session_id: SessionId) -> tuple[SessionState, set[str]]:
        try:
            log = await self._store.read(session_id)
        except SessionNotFoundError:
            return SessionState(id=session_id), set()
        return fold(session_id, log), {entry.event.id for entry in log if isinstance(entry.event, CallSent)}

    def _drafted(self, state: SessionState, told: ToldSession, calls: list[ToldCall], now: datetime) -> "_Draft":
        draft = _Draft(state, told.source)
        if not state.seq:
            origin = Origin(
                kind="import",
                program=told.program,
                version=told.version,
                conversation=told.conversation,
                parent=self._id(told, "") if told.thread else None,
                source=told.source,
                not_told=told.not_told,
            )
            begun = SessionCreated(agent=origin.agent, owner=self._owner, settings={}, items=(), origin=origin)
            draft.add(calls[0].at, begun)
        for done, call in enumerate(calls):
            self._progress(done, len(calls))
            draft.add_call(call)
        self._progress(len(calls), len(calls))
        draft.close(before=now - LEFT_OPEN)
        return draft


class _Draft:
    """What is to be appended, and the state that it leads to."""

    def __init__(self, state: SessionState, source: str) -> None:
        self.events: list[Event] = []
        self.times: list[datetime] = []
        self.blobs: dict[BlobHash, str] = {}
        self._state = state
        self._source = source
        self._last_body: LastBody | None = None
        self._reader = ConversationReader()
        self._said: tuple[str, ...] = ()
        self._last: ToldCall | None = None
        self._attempt = 1

    def add(self, at: datetime, *events: Event) -> None:
        for event in events:
            self.events.append(event)
            self.times.append(at)
            self._state = apply(self._state, Recorded(self._state.seq + 1, at, event))

    def add_call(self, call: ToldCall) -> None:
        body = call.written()
        conversation = self._reader.read(call.protocol, call.body)
        turn = self._begun(call, conversation) if call.purpose == "answer" else None
        self.add(call.at, self._sent(call, body, turn))
        self.add(call.ended_at, *self._ended(call, turn))
        if turn is not None:
            self._last, self._said = call, conversation.said

    def close(self, *, before: datetime) -> None:
        """End the turn that is open, unless it waits for a tool and is younger than this."""
        turn = self._state.open_turn
        if turn is None or self._last is None:
            return
        if self._last.outcome != "complete" or self._last.ended_at < before:
            self.add(self._last.ended_at, *ending_events(turn, self._last.outcome, self._last.reply, self._last.usage))

    def _begun(self, call: ToldCall, conversation: SentConversation) -> int | None:
        state, last = self._state, self._last
        again = last is not None and last.outcome != "complete" and conversation.said == self._said
        self._attempt = self._attempt + 1 if again else 1
        ending: list[Event] = []
        if state.open_turn is not None:
            told = (last.outcome, last.reply, last.usage) if last is not None else (None, None, None)
            ending = ending_events(state.open_turn, *told)
        self.add(call.at, *opening_events(state, conversation, ending, again=again))
        return self._state.open_turn.turn if self._state.open_turn is not None else None

    def _sent(self, call: ToldCall, body: bytes, turn: int | None) -> CallSent:
        head = _HEAD.adapter.dump_json(
            WireHead(method="POST", url=f"import://{self._source}{PATHS[call.protocol]}")
        ).decode()
        kept, self._last_body = keep(body, self._last_body)
        self.blobs.update(kept.blobs)
        self.blobs[content_hash(head)] = head
        opened = self._state.open_turn
        return CallSent(
            id=_id_of(call),
            turn=turn,
            step=len(opened.steps) + 1 if opened is not None and turn is not None else 1,
            attempt=self._attempt if turn is not None else 1,
            purpose=call.purpose,
            model=call.model,
            head=content_hash(head),
            body=kept.name,
            sha256=hashlib.sha256(body).hexdigest(),
            size=len(body),
            seen=False,
        )

    def _ended(self, call: ToldCall, turn: int | None) -> Iterator[Event]:
        text = _REPLY.adapter.dump_json(call.reply).decode()
        self.blobs[content_hash(text)] = text
        yield CallEnded(
            id=_id_of(call),
            turn=turn,
            purpose=call.purpose,
            model=call.model,
            outcome=call.outcome,
            duration_ms=call.duration_ms,
            usage=call.usage,
            reason=redacted(call.reason),
            answer=content_hash(text),
        )
        if turn is not None and call.outcome == "complete":
            yield from reply_events(turn, call.reply, call.usage, call.duration_ms)


def _id_of(call: ToldCall) -> str:
    """Return the id of a call in the log, where ids are short."""
    return hashlib.sha256(call.id.encode("utf-8", "replace")).hexdigest()[:16]
