"""The calls of a session: what was sent to providers, to the byte."""

from collections.abc import Mapping
from dataclasses import dataclass

from windowpane.calls.body import join
from windowpane.calls.ledger import RecordedCall, calls_of
from windowpane.calls.skeleton import before_in, pieces_of
from windowpane.context.calls import FoldedReply, WireHead
from windowpane.context.ids import BlobHash, SessionId
from windowpane.errors import CallNotFoundError
from windowpane.json_codec import JsonCodec
from windowpane.sessions.past_requests import PastRequests
from windowpane.stores.sessions import Sessions

_HEAD = JsonCodec(WireHead)
_REPLY = JsonCodec(FoldedReply)


@dataclass(frozen=True, slots=True)
class Wire:
    """What a call sent: its head, and the bytes of its body. `body` is None when a part of it was erased."""

    head: WireHead
    body: bytes | None


class PastCalls:
    """Reads calls from the log."""

    def __init__(self, sessions: Sessions, requests: PastRequests) -> None:
        self._store = sessions.store
        self._requests = requests

    async def of_session(self, session_id: SessionId) -> tuple[RecordedCall, ...]:
        """Return every call of a session, also those that belong to no turn.

        Raises:
            SessionNotFoundError: no such session.
        """
        return calls_of(await self._store.read(session_id))

    async def of_turn(self, session_id: SessionId, turn: int) -> tuple[RecordedCall, ...]:
        """Return the calls of a turn, in the order in which they were sent.

        Raises:
            TurnNotFoundError: no such turn.
        """
        return tuple(call for call in calls_of(await self._requests.events(session_id, turn)) if call.turn == turn)

    async def one(self, session_id: SessionId, turn: int, number: int) -> RecordedCall:
        """Return a call of a turn, counted from 1.

        Raises:
            TurnNotFoundError: no such turn.
            CallNotFoundError: the turn has no such call.
        """
        calls = await self.of_turn(session_id, turn)
        if not 1 <= number <= len(calls):
            raise CallNotFoundError(turn, number, len(calls))
        return calls[number - 1]

    async def answer(self, session_id: SessionId, call: RecordedCall) -> FoldedReply | None:
        """Return what was answered to a recorded program's call; None for calls of ours, whose turn says that."""
        if call.answer is None:
            return None
        found = await self._store.blobs(session_id, [call.answer])
        return _REPLY.adapter.validate_json(found[call.answer]) if call.answer in found else None

    async def wire(self, session_id: SessionId, call: RecordedCall) -> Wire | None:
        """Return what a call sent, or None when the wire was not seen or its record was erased."""
        if call.head is None or call.body is None:
            return None
        found = await self._store.blobs(session_id, [call.head, call.body])
        if call.head not in found:
            return None
        body = await self._joined(session_id, found[call.body]) if call.body in found else None
        return Wire(_HEAD.adapter.validate_json(found[call.head]), body)

    async def _joined(self, session_id: SessionId, skeleton: str) -> bytes | None:
        try:
            return join(skeleton, await self._texts(session_id, skeleton))
        except KeyError:
            return None

    async def _texts(self, session_id: SessionId, skeleton: str) -> Mapping[BlobHash, str]:
        chain: dict[BlobHash, str] = {}
        before = before_in(skeleton)
        while before is not None:
            chain |= await self._store.blobs(session_id, [before])
            before = before_in(chain[before])
        names = dict.fromkeys(piece[1] for piece in pieces_of(skeleton, chain) if not isinstance(piece, str))
        return {**chain, **await self._store.blobs(session_id, list(names))}
