"""A past turn as it was recorded: its request, what its agent had then, and what was answered.

Everything comes from the log and the blobs of its session, so it is the same after a restart, after the agent was
edited, and on another machine that the session was moved to.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from windowpane.calls.ledger import RecordedCall, calls_of
from windowpane.context.catalog import Catalog
from windowpane.context.events import ModelReplied, Recorded, ToolReturned
from windowpane.context.ids import BlobHash, SessionId
from windowpane.context.items import Item, ItemRef
from windowpane.context.messages import Step
from windowpane.context.request import Request, RequestContext
from windowpane.errors import TurnNotFoundError
from windowpane.request.catalog import item_from, read_catalog
from windowpane.request.record import context_of, damages, last_built, rebuild, texts_of
from windowpane.sessions.calls.past import PastCalls
from windowpane.sessions.past_requests import PastRequests
from windowpane.stores.base import Store

if TYPE_CHECKING:
    # They load everything that a turn needs, and a command that only reads needs none of it.
    from windowpane.sessions.agent_items import AgentItems
    from windowpane.sessions.conversation import Conversations
    from windowpane.sessions.lifecycle import SessionLifecycle


class PastRecords(Protocol):
    """What reading past turns needs: an engine has it, and so has a store alone."""

    @property
    def store(self) -> Store:
        """Where logs and blobs are."""
        ...

    @property
    def past(self) -> PastRequests:
        """What happened in turns."""
        ...

    @property
    def calls(self) -> PastCalls:
        """What was sent to providers."""
        ...


class Records(PastRecords, Protocol):
    """What looking back needs of an engine."""

    @property
    def sessions(self) -> "SessionLifecycle":
        """Sessions as they are now."""
        ...

    @property
    def conversations(self) -> "Conversations":
        """What was said."""
        ...

    @property
    def agent_items(self) -> "AgentItems":
        """What agents make available, and which of it a message needs."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTurn:
    """A turn whose request was built. `record` is the hash that the log names it by; `seq` is where the turn began.

    `catalog` is None for turns that were recorded before there were catalogs.
    """

    session_id: SessionId
    turn: int
    seq: int
    record: BlobHash
    body: str
    context: RequestContext
    texts: Mapping[BlobHash, str]
    catalog: Catalog | None = None
    steps: tuple[Step, ...] = ()
    calls: tuple[RecordedCall, ...] = ()

    @property
    def damages(self) -> tuple[str, ...]:
        """Return what is not as it was recorded; nothing, when the request can be rebuilt byte for byte."""
        return damages(self.record, self.body, self.texts)

    @property
    def request(self) -> Request:
        """Return the request exactly as the turn's last model call was given it.

        Raises:
            BlobNotFoundError: one of its texts is not there any more.
        """
        return rebuild(self.body, self.texts)

    @property
    def message(self) -> str:
        """Return what the user said."""
        return next(message.content for message in self.request.messages if message.part == "message")

    def item(self, ref: ItemRef) -> Item | None:
        """Return an item as the agent had it then, or None when that is not known."""
        entry = self.catalog.entry(ref) if self.catalog else None
        return item_from(entry, self.texts[entry.hash]) if entry and entry.hash in self.texts else None


async def past_turn(engine: PastRecords, session_id: SessionId, turn: int, *, with_catalog: bool = True) -> PastTurn:
    """Read a turn back. Without its catalog, less is read and only what was sent is known.

    Raises:
        SessionNotFoundError: no such session.
        TurnNotFoundError: no such turn, or no request was recorded for it.
    """
    events = await engine.past.events(session_id, turn)
    built = last_built(events, turn)
    if built is None:
        raise TurnNotFoundError(session_id, turn)
    body = await engine.store.blob(session_id, built.request)
    texts = await engine.store.blobs(session_id, texts_of(body))
    context = context_of(body, texts)
    catalog = None
    if with_catalog and context.catalog:
        found = await engine.store.blobs(session_id, [context.catalog])
        catalog = read_catalog(found[context.catalog]) if found else None
    if catalog is not None:
        more = [entry.hash for entry in catalog.entries if entry.hash not in texts]
        texts |= await engine.store.blobs(session_id, more)
    return PastTurn(
        session_id=session_id,
        turn=turn,
        seq=events[0].seq,
        record=built.request,
        body=body,
        context=context,
        texts=texts,
        catalog=catalog,
        steps=steps_of(events, turn),
        calls=tuple(call for call in calls_of(events) if call.turn == turn),
    )


def steps_of(events: Iterable[Recorded], turn: int) -> tuple[Step, ...]:
    """Return a turn's model calls, each with what its tool calls gave."""
    steps: list[Step] = []
    for entry in events:
        if isinstance(entry.event, ModelReplied) and entry.event.turn == turn:
            steps.append(entry.event.step)
        elif isinstance(entry.event, ToolReturned) and entry.event.turn == turn and steps:
            steps[-1] = replace(steps[-1], results=(*steps[-1].results, entry.event.result))
    return tuple(steps)
