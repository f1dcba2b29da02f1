"""The conversation of a session: read it, put messages in, take them out, erase it, sum it up."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from windowpane.agents.base import Agents
from windowpane.context.events import (
    Erased,
    Event,
    HistoryCleared,
    MessageAdded,
    MessageRemoved,
    Recorded,
    SummaryMade,
)
from windowpane.context.fold import messages_of
from windowpane.context.ids import BlobHash, SessionId
from windowpane.context.messages import Message
from windowpane.context.session import SessionState
from windowpane.errors import (
    InvalidInputError,
)
from windowpane.memory.memory import Memory
from windowpane.request.settings import call_settings
from windowpane.sessions.clearing import Clearing
from windowpane.sessions.erasing import Erasing, Erasure, Removal, SessionLeases, Traces
from windowpane.stores.sessions import Sessions
from windowpane.text.tokens import count

MAX_CLIENT_TOOLS = 1000
"""How many tools of its own a client may bring along."""

MAX_CLIENT_MESSAGES = 10_000
"""How many messages a client that keeps the conversation itself can send with a request."""

MAX_MESSAGE_CHARACTERS = 1_000_000


class Conversations:
    """What was said in sessions."""

    def __init__(self, sessions: Sessions, agents: Agents, memory: Memory, leases: SessionLeases) -> None:
        self._states = sessions
        self._store = sessions.store
        self._agents = agents
        self._memory = memory
        self._leases = leases
        self._erasing = Erasing(sessions, leases)
        self._clearing = Clearing(self._store, leases)
        sessions.complete_clearing = self._complete_clearing

    async def messages(self, session_id: SessionId, *, before: int | None = None, limit: int = 50) -> list[Message]:
        """Return the latest messages before a sequence number, oldest first."""
        state = await self._states.state(session_id)
        starts = [seq for seq in state.turn_starts if before is None or seq < before]
        # A turn gives at least two messages, so this many turns are enough; before the first, anything may stand.
        first = starts[-limit] if len(starts) > limit else 1
        if before is not None and before <= first:
            return []
        events = await self._store.read(session_id, after=first - 1, limit=None if before is None else before - first)
        return messages_of(session_id, events)[-limit:]

    async def add(self, session_id: SessionId, message: MessageAdded, *, key: str | None = None) -> SessionState:
        """Put a message into the conversation from outside, such as one from an imported chat.

        With `key`, the same call again adds nothing.
        """
        if key is None:
            return await self.add_all(session_id, [message])
        check_message(message.content)
        await self._store.append(session_id, [replace(message, tokens=count(message.content))], key=key)
        return await self._states.state(session_id)

    async def add_all(
        self,
        session_id: SessionId,
        messages: Sequence[MessageAdded],
        blobs: Mapping[BlobHash, str] | None = None,
    ) -> SessionState:
        """Put messages into the conversation from outside, all of them or none. `blobs` are those of their files."""
        for message in messages:
            check_message(message.content, with_files=bool(message.attachments))
        counted = [replace(message, tokens=count(message.content)) for message in messages]
        return (await self._states.change(session_id, lambda _: counted, blobs=blobs)).state

    async def remove(self, session_id: SessionId, seq: int) -> Erasure:
        """Take back one of the latest messages that were put in from outside, and erase all that was made of it.

        Later requests, calls and summaries lose its text. What a user or a model said stays: the answer tells of it.

        Raises:
            SessionNotFoundError: no such session.
            InvalidInputError: there is no such message, or it belongs to a turn.
            SessionBusyError: a turn is running, or one that waits was given the message.
        """

        def choose(state: SessionState, log: Sequence[Recorded]) -> Removal | None:
            added = log[seq - 1].event if seq <= len(log) else None
            if isinstance(added, Erased) and _is_removed(log, seq):
                return None
            # A worker may have died after the log was told and before the text was erased.
            latest = any(message.seq == seq for message in state.recent) or _is_removed(log, seq)
            if not isinstance(added, MessageAdded) or not latest:
                raise InvalidInputError(f"message {seq} cannot be removed: it is not a recently added external message")
            return Removal(seqs=(seq,), texts=(added.content,), files=added.attachments)

        def tell(state: SessionState, log: Sequence[Recorded], traces: Traces) -> list[Event]:
            added = log[seq - 1].event
            if not isinstance(added, MessageAdded) or _is_removed(log, seq):
                return []
            events: list[Event] = [
                MessageRemoved(seq=seq, tokens=added.tokens, erased=traces.blobs, drops_summary=bool(traces.seqs))
            ]
            made = [each.event for each in log if isinstance(each.event, SummaryMade) and each.seq not in traces.seqs]
            # The summary before the one that is dropped holds again.
            return [*events, *made[-1:]] if traces.seqs else events

        try:
            return await self._erasing.erase(session_id, choose, tell)
        finally:
            self._memory.forget(session_id)

    async def clear(self, session_id: SessionId) -> SessionState:
        """Erase the conversation for good. Items, settings and the session itself stay.

        Raises:
            SessionNotFoundError: no such session.
            SessionBusyError: a turn is running.
            LeaseLostError: another worker has taken the session over meanwhile; clear it again.
        """
        lease = await self._leases.take(session_id)
        try:
            await self._states.change(
                session_id,
                lambda state: [HistoryCleared(turns=state.last_turn, keys=state.turn_keys.blocks)],
                fence=lease.fence,
            )
            await self._clearing.erase(session_id, fence=lease.fence)
        finally:
            await self._leases.release(session_id, lease)
            self._states.forget(session_id)
            self._memory.forget(session_id)
        return await self._states.state(session_id)

    async def sum_up(self, session_id: SessionId) -> SessionState:
        """Make the summary that is due, if one is. A summary that fails leaves the one before in place.

        Raises:
            SessionNotFoundError: no such session.
        """
        state = await self._states.state(session_id)
        agent = await self._agents.look(state.agent)
        await self._memory.sum_up(state, agent, call_settings(agent, state).model)
        return await self._states.state(session_id)

    async def _complete_clearing(self, session_id: SessionId) -> bool:
        """Erase what a killed worker has left, here too; tell whether nothing is left."""
        done = await self._clearing.complete(session_id)
        if done:
            self._memory.forget(session_id)
        return done


def check_tools(count: int) -> None:
    """Make sure that a message does not bring more tools than a request can sensibly offer.

    Raises:
        InvalidInputError: there are too many.
    """
    if count > MAX_CLIENT_TOOLS:
        raise InvalidInputError(f"a message can bring {MAX_CLIENT_TOOLS:,} tools at most, not {count:,}; send fewer")


def check_message(message: str, *, with_files: bool = False) -> None:
    """Make sure that a message can be sent. One that brings files need not have words.

    Raises:
        InvalidInputError: it is empty, too long, or not valid Unicode.
    """
    if not message.strip() and not with_files:
        raise InvalidInputError("the message is empty")
    if len(message) > MAX_MESSAGE_CHARACTERS:
        raise InvalidInputError(
            f"the message has {len(message):,} characters and {MAX_MESSAGE_CHARACTERS:,} is the limit; shorten it"
        )
    try:
        message.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"the message is not valid Unicode at character {error.start}") from None


def _is_removed(log: Iterable[Recorded], seq: int) -> bool:
    return any(isinstance(entry.event, MessageRemoved) and entry.event.seq == seq for entry in log)
