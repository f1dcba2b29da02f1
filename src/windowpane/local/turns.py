"""Past turns of one owner's sessions, in this process. Everything is answered from the log; no model is called."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from windowpane.api.context_tests import SavedTest
from windowpane.api.replay import Rebuilt, Rerun, WhatIf
from windowpane.api.turns import (
    ChangedSince,
    ContextDebug,
    ItemUse,
    PastContext,
    PastItem,
    SentItem,
    TurnReceipts,
    TurnRecord,
    TurnUsage,
    TurnView,
)
from windowpane.context.events import Erased, ModelReplied, Recorded, TurnFinished
from windowpane.context.fold import messages_of
from windowpane.context.ids import BlobHash, SessionId
from windowpane.context.items import BUILT_IN_SERVER, CLIENT_SERVER, ItemRef, as_ref, item_hash
from windowpane.context.request import ContextItem, RequestContext
from windowpane.errors import AgentNotFoundError, BlobNotFoundError, NotFoundError, TurnNotFoundError
from windowpane.insight.context_tests import keep_turn, render_test
from windowpane.insight.past import past_turn
from windowpane.insight.probable import judged
from windowpane.insight.replay import rebuilt, rerun
from windowpane.local.bound import Bound
from windowpane.local.past.turns import PastTurns
from windowpane.local.receipts import receipts_of
from windowpane.local.statistics import debug_of, usage_of
from windowpane.request.record import last_built


class LocalTurns(PastTurns):
    """Past turns: what a turn was given and did, why, and what would have come of other settings."""

    def __init__(self, bound: Bound) -> None:
        super().__init__(bound.engine, bound.own)
        self._bound = bound
        self._engine = bound.engine

    async def receipts(self, session_id: str, *, first: int = 1, limit: int = 50) -> TurnReceipts:
        """Return turns in brief, from `first` on: what each was given, and what it cost."""
        return await receipts_of(self._engine, await self._bound.own(session_id), first, limit)

    async def get(self, session_id: str, turn: int) -> TurnRecord:
        """Return a turn with everything that happened in it."""
        own = await self._bound.to_read(session_id)
        events = await self._events(own, turn)
        return TurnRecord(**await self._facts(own, turn, events), events=tuple(events))

    async def view(self, session_id: SessionId, turn: int, events: Sequence[Recorded] = ()) -> TurnView:
        """Return a turn as it stands. `events` are those of the turn, from its beginning, if they are known already.

        Raises:
            TurnNotFoundError: no such turn, or it was erased.
        """
        return TurnView(**await self._facts(session_id, turn, events or await self._events(session_id, turn)))

    async def context(self, session_id: str, turn: int) -> PastContext:
        """Return the record of a turn's request, with what has become of its items since."""
        own = await self._bound.own(session_id)
        context = await self._engine.past.context(own, turn)
        now = await self._agent_now(context.agent, own)
        known: dict[str, Any] = {each.name: getattr(context, each.name) for each in fields(context)}
        known["items"] = tuple(now.past_item(item) for item in context.items)
        return PastContext(**known)

    async def item(self, session_id: str, turn: int, item: ItemRef | str) -> SentItem:
        """Return an item as a turn was given it, and whether the agent has changed it since."""
        own, ref = await self._bound.own(session_id), as_ref(item)
        context = await self._engine.past.context(own, turn)
        held = next((each for each in context.standing if each.ref == ref), None) or context.item(ref)
        if held is None:
            raise NotFoundError(f"turn {turn} had no item {str(ref)!r}")
        definition = None if held.hash is None else json.loads(await self._engine.store.blob(own, held.hash))
        return SentItem(
            item=held,
            text=definition.get("text") if definition else None,
            definition=definition,
            changed_since=(await self._agent_now(context.agent, own)).since(held),
        )

    async def rebuild(self, session_id: str, turn: int) -> Rebuilt:
        """Rebuild a turn's request from the log, and tell whether it is the recorded one to the byte."""
        return rebuilt(await past_turn(self._engine, await self._bound.own(session_id), turn, with_catalog=False))

    async def replay(self, session_id: str, turn: int, what_if: WhatIf) -> Rerun:
        """Run a turn's selection again with something different about it."""
        past = await past_turn(self._engine, await self._bound.own(session_id), turn)
        return await rerun(self._engine, past, what_if)

    async def debug(self, session_id: str, turn: int, *, topic: str | None = None) -> ContextDebug:
        """Return what a turn's model was told of the conversation."""
        state = await self._engine.sessions.get(await self._bound.own(session_id))
        return await debug_of(self._engine, state, turn, topic=topic)

    async def usage(self, session_id: str, turn: int) -> TurnUsage:
        """Return what a turn cost, call by call and together."""
        return await usage_of(self._engine, await self._bound.own(session_id), turn)

    async def use(self, session_id: str, turn: int) -> tuple[ItemUse, ...]:
        """Return which items of a turn's request its answer made use of."""
        past = await past_turn(self._engine, await self._bound.own(session_id), turn, with_catalog=False)
        return await judged(self._engine.nearness, past)

    async def save_test(self, session_id: str, turn: int, *, name: str = "") -> SavedTest:
        """Write a context test that a turn passes into its agent's folder."""
        test = await keep_turn(self._engine, await self._bound.own(session_id), turn, name=name)
        return SavedTest(test, render_test(test))

    async def _events(self, session_id: SessionId, turn: int) -> list[Recorded]:
        events = await self._engine.past.events(session_id, turn)
        if isinstance(events[0].event, Erased):
            raise TurnNotFoundError(session_id, turn)
        return events

    async def _facts(self, session_id: SessionId, turn: int, events: Sequence[Recorded]) -> dict[str, Any]:
        state = await self._engine.sessions.get(session_id)
        now = state.open_turn if state.open_turn and state.open_turn.turn == turn else None
        finished = next(
            (entry.event for entry in events if isinstance(entry.event, TurnFinished) and entry.event.turn == turn),
            None,
        )
        said = [entry.event.step.text for entry in events if isinstance(entry.event, ModelReplied)]
        context = await self._context(session_id, turn, events)
        return {
            "session_id": session_id,
            "turn": turn,
            "outcome": finished.outcome
            if finished
            else "waiting"
            if now and (now.waits or now.questions)
            else "running",
            "text": "\n\n".join(text for text in said if text),
            "messages": tuple(message for message in messages_of(session_id, events) if message.turn == turn),
            "approvals": now.undecided if now else (),
            "questions": now.questions if now else (),
            "request_context": context,
            "seq": state.seq,
            "sources": finished.sources if finished else (),
            "confidence": max((source.score for source in finished.sources), default=None) if finished else None,
            "context_debug": context and await debug_of(self._engine, state, turn, events=events),
        }

    async def _context(self, session_id: SessionId, turn: int, events: Sequence[Recorded]) -> RequestContext | None:
        built = last_built(events, turn)
        try:
            return await self._engine.past.read_context(session_id, built.request) if built else None
        except BlobNotFoundError:
            return None

    async def _agent_now(self, agent: str, session_id: SessionId) -> "_AgentNow":
        made = {own.ref: own.blob for own in (await self._engine.sessions.get(session_id)).own_references}
        try:
            # Asked first: a server that is ready by the time of the second question has its tools then.
            servers = await self._engine.agent_items.servers(agent)
            away = frozenset(server.name for server in servers if server.state != "ready")
            items = await self._engine.agent_items.of(agent)
            return _AgentNow({item.ref: item_hash(item) for item in items} | made, away)
        except AgentNotFoundError:
            return _AgentNow(made, frozenset())


@dataclass(frozen=True, slots=True)
class _AgentNow:
    """What an agent and the session have now, by hash, and which tool servers are away. A deleted agent has nothing."""

    hashes: Mapping[ItemRef, BlobHash]
    away: frozenset[str]

    def since(self, item: ContextItem) -> ChangedSince:
        if item.server in (BUILT_IN_SERVER, CLIENT_SERVER):
            return "unknown"
        if item.ref not in self.hashes:
            return "unknown" if item.server in self.away else "deleted"
        return "unchanged" if self.hashes[item.ref] == item.hash else "changed"

    def past_item(self, item: ContextItem) -> PastItem:
        known = {each.name: getattr(item, each.name) for each in fields(item)}
        return PastItem(**known, changed_since=self.since(item))
