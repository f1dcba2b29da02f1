"""Remember a conversation beyond its recent messages: recall what bears on a message, sum up what lies behind.

Vectors of messages are kept with their session, and are erased with it: what a user erases must not live on in a cache.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from types import TracebackType
from typing import Self

import anyio
import anyio.to_thread

from windowpane.agents.base import Agent
from windowpane.calls.recorder import CallRecorder, recording
from windowpane.context.calls import ModelPrice
from windowpane.context.events import Event, SummaryMade, TurnStarted
from windowpane.context.fold import messages_of
from windowpane.context.ids import BlobHash, SessionId
from windowpane.context.messages import AssistantMessage, Message, UserMessage
from windowpane.context.session import SessionState
from windowpane.context.summary import Summary
from windowpane.errors import WindowpaneError
from windowpane.memory.recall import Recollection, recall
from windowpane.memory.recent import Due, MemoryWindow, StandingTokens, due
from windowpane.memory.summarise import can_summarise, summarise
from windowpane.memory.window import counted_window
from windowpane.models.base import ChatModel, OpenModel
from windowpane.remarks import get_logger
from windowpane.search.history import IN_A_THREAD, HistoryIndex, SessionVectors
from windowpane.second_loop import SecondLoop
from windowpane.stores.sessions import Changed, Sessions
from windowpane.supervise import keep_running

MOST_WAITING = 16
"""So many messages do not wait for a summary any longer."""

MANY_MESSAGES = 32
"""From here on a session is likely to outgrow what is sent of it; shorter ones are never embedded."""

log = get_logger()


class Memory:
    """What sessions remember. Without an index nothing is recalled; summaries are made all the same.

    The index lives on the `second` loop, where this is opened and recalls. All else is for the loop that serves.
    `window_of` says how much of a session is sent whole to a model.
    """

    def __init__(
        self,
        sessions: Sessions,
        open_model: OpenModel,
        index: HistoryIndex | None,
        window_of: Callable[[Agent, SessionState, str], MemoryWindow],
        window_tokens: Callable[[str], int | None],
        second: SecondLoop | None = None,
    ) -> None:
        self._sessions = sessions
        self._window_of = window_of
        self._open_model = open_model
        self._window_tokens = window_tokens
        self._index = index
        self._second = second or SecondLoop()

    async def __aenter__(self) -> Self:
        if self._index is not None:
            self._index.keep_in(_KeptBack(self._sessions.store, self._second))
            await self._index.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._index is not None:
            await self._index.__aexit__(kind, error, trace)

    async def recall(
        self, state: SessionState, question: str, recent: Sequence[UserMessage | AssistantMessage]
    ) -> Recollection:
        """Return earlier messages that bear on a question; nothing while all of them are recent.

        The message of the open turn is not among them and is not remembered here: it may be a draft.
        """
        if self._index is None or not _lies_behind(state):
            return Recollection()
        present = state.open_turn.turn if state.open_turn else None

        async def read(after: int) -> Sequence[Message]:
            messages = await self._messages(state, after)
            return [message for message in messages if present is None or message.turn != present]

        earlier = state.message_count - (present is not None)
        return await recall(
            self._index, state.id, question, read=read, message_count=earlier, recent=recent, as_of=state.seq
        )

    async def prepare(self, state: SessionState) -> None:
        """Have what lies behind, or will soon, ready to be recalled, now that no client waits."""
        if self._index is not None and _lies_behind(state):
            await self._second.run(
                self._index.prepare, state.id, state.recent, message_count=state.message_count, as_of=state.seq
            )
        elif self._index is not None and state.message_count >= MANY_MESSAGES:
            await self._second.run(self._index.prepare_some, state.id, state.recent)

    async def nearness(self, message: str, texts: Sequence[str]) -> list[float | None]:
        """Return how near texts are to a message in meaning, as cosines; None where that could not be measured."""
        if self._index is None:
            return [None] * len(texts)
        measured = await self._second.run(self._index.nearness, message, texts)
        return [None if math.isnan(near) else near for near in measured.tolist()]

    async def sum_up(self, state: SessionState, agent: Agent, model: str) -> Changed | None:
        """Make the summary that is due, if one is. A summary that fails leaves the one before in place.

        The user's next message goes first: when it comes, the model is asked no further, and the summary is made after
        that turn. A user who never leaves time for that gets the summary that needs no model.
        """
        wanted = self._due(state, agent, model) if state.open_turn is None else None
        if wanted is None:
            return None
        try:
            chosen = self._open_model(state.owner, model) if can_summarise(model) else None
        except WindowpaneError as error:
            log.info("summary.without_model", session=state.id, code=error.code)
            chosen = None
        calls = self._recorder(state, wanted, model, agent.settings.prices.get(model))
        window_tokens = counted_window(agent, state, model, self._window_tokens(model))
        with recording(calls):
            summary = await self._until_spoken_to(state, wanted, chosen, window_tokens)
        ended = calls.take()

        def newer(now: SessionState) -> list[Event]:
            # Messages may have been erased, or another worker may have been faster.
            covered = now.summary.through_seq if now.summary else 0
            is_new = summary is not None and summary.through_seq > covered and _is_all_there(wanted, now)
            return [*ended, *([SummaryMade(summary=summary)] if summary is not None and is_new else [])]

        return await self._sessions.change(state.id, newer, unread=True) if ended or summary else None

    async def _until_spoken_to(
        self, state: SessionState, wanted: Due, model: ChatModel | None, window_tokens: int
    ) -> Summary | None:
        """Return the summary, or None when the user's next message came first."""
        if model is None:
            return await summarise(wanted, None)
        summary: Summary | None = None
        spoken_to = False

        async def heed() -> None:
            nonlocal spoken_to
            async with aclosing(self._sessions.store.subscribe(state.id, after=state.seq)) as entries:
                async for entry in entries:
                    if isinstance(entry.event, TurnStarted):
                        spoken_to = True
                        tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep_running, "summary.heed", heed)
            summary = await summarise(wanted, model, window_tokens=window_tokens, session_id=state.id)
            tasks.cancel_scope.cancel()
        if summary is None and spoken_to:
            log.info("summary.dropped", session=state.id, model=model.name, why="the next message came first")
            return await summarise(wanted, None) if len(wanted.messages) >= MOST_WAITING else None
        return summary

    def _due(self, state: SessionState, agent: Agent, model: str) -> Due | None:
        texts: dict[int, int] = {}
        for item in state.carried.items:
            if item.type != "tool":
                texts[item.turn] = texts.get(item.turn, 0) + item.tokens
        tools = sum(item.tokens for item in state.carried.items if item.type == "tool")
        window = self._window_of(agent, state, model)
        return due(state.recent, state.summary, window, StandingTokens(texts=texts, tools=tools))

    def _recorder(self, state: SessionState, wanted: Due, model: str, price: ModelPrice | None) -> CallRecorder:
        """Return what keeps the calls of a summary, unless a message of it was erased meanwhile."""

        async def store(events: Sequence[Event], blobs: Mapping[BlobHash, str]) -> None:
            def unless_erased(now: SessionState) -> Sequence[Event]:
                return events if _is_all_there(wanted, now) else ()

            await self._sessions.change(state.id, unless_erased, blobs=blobs, unread=True)

        calls = CallRecorder(store, purpose="summary")
        calls.begin_step(1, model, price=price)
        return calls

    def forget(self, session_id: SessionId) -> None:
        """Drop what is held in memory about a session that was cleared or deleted."""
        if self._index is not None:
            self._second.call(partial(self._index.forget, session_id))

    async def _messages(self, state: SessionState, after: int) -> Sequence[Message]:
        """Return a session's messages after a sequence number."""
        if state.message_count == len(state.recent) or (state.recent and state.recent[0].seq <= after):
            return [message for message in state.recent if message.seq > after]
        starts = list(state.turn_starts)
        position = bisect_right(starts, after)
        first = starts[position - 1] if position else 1
        events = await self._second.back(self._sessions.store.read, state.id, after=first - 1)

        def told() -> list[Message]:
            upto = (entry for entry in events if entry.seq <= state.seq)
            return [message for message in messages_of(state.id, upto) if message.seq > after]

        # A long log would hold up other requests.
        return told() if len(events) < IN_A_THREAD else await anyio.to_thread.run_sync(told)


class _KeptBack:
    """The vectors that a store keeps, for an index on the second loop."""

    def __init__(self, store: SessionVectors, second: SecondLoop) -> None:
        self._store = store
        self._second = second

    async def vectors(self, session_id: SessionId, seqs: Sequence[int] | None = None) -> dict[int, bytes]:
        return await self._second.back(self._store.vectors, session_id, seqs)

    async def put_vectors(self, session_id: SessionId, vectors: Mapping[int, bytes], *, as_of: int) -> None:
        await self._second.back(self._store.put_vectors, session_id, vectors, as_of=as_of)


def _lies_behind(state: SessionState) -> bool:
    """Tell whether anything was said that is not sent whole any more."""
    return state.summary is not None or state.message_count > len(state.recent)


def _is_all_there(wanted: Due, now: SessionState) -> bool:
    """Tell whether nothing of what is summed up was erased, neither a message nor the summary before."""
    there = {message.seq for message in now.recent}
    covered = now.summary.through_seq if now.summary else 0
    before = wanted.before.through_seq if wanted.before else 0
    return covered >= before and all(message.seq in there for message in wanted.messages)
