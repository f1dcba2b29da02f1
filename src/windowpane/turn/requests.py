"""The requests of turns: shown before, built and stored, or read again.

A turn has one request. It is stored before the model is called, and a turn that goes on after a pause reads it again.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

import anyio

from windowpane.agents.base import Agent
from windowpane.calls.recorder import HeldCalls, recording
from windowpane.context.calls import ModelPrice, SmallerWindow
from windowpane.context.events import CallEnded, Event, Recorded
from windowpane.context.fold import fold
from windowpane.context.ids import BlobHash, SessionId
from windowpane.context.items import Tool
from windowpane.context.messages import UserMessage
from windowpane.context.request import ReplyOptions, Request
from windowpane.context.session import SessionState, open_turn
from windowpane.errors import WindowpaneError
from windowpane.files.read import NO_FILES, ReadFiles
from windowpane.remarks import get_logger
from windowpane.request.build import BuiltRequest, RequestServices, build_request
from windowpane.request.finders import Finders
from windowpane.request.record import rebuild, texts_of
from windowpane.request.research import Research, research, searched_before
from windowpane.request.resume import is_taken_up_again
from windowpane.request.settings import call_settings
from windowpane.second_loop import SecondLoop
from windowpane.sessions.references import OwnReferences
from windowpane.sessions.toolboxes import Toolboxes
from windowpane.stores.sessions import Changed, Sessions
from windowpane.tools.base import Toolbox
from windowpane.turn.begin import opening_events
from windowpane.turn.log import append_patiently
from windowpane.turn.patience import StorePatience

log = get_logger()

FIRST_TIMES = 2.5
"""So much longer the first message of a session waits for servers that are connecting: they have just been started."""


class TurnRequests:
    """Makes the requests of turns. Tool servers that are still connecting are waited for, at most `settle_s`."""

    def __init__(
        self,
        sessions: Sessions,
        services: RequestServices,
        toolboxes: Toolboxes,
        count_calls: Callable[[str, Sequence[CallEnded]], Awaitable[object]],
        second: SecondLoop,
        *,
        settle_s: float,
        resume_after_s: float,
    ) -> None:
        self._sessions = sessions
        self._services = services
        self._toolboxes = toolboxes
        self._settle_s = settle_s
        self._resume_after_s = resume_after_s
        self._count_calls = count_calls
        self._second = second
        self._started_at = datetime.now(UTC)
        self.agent_with = OwnReferences(sessions).agent_with

    def open(self) -> None:
        """Count from now: a message is the first after a restart when nothing was said since this moment."""
        self._started_at = datetime.now(UTC)

    def resumes(self, state: SessionState) -> bool:
        """Tell whether a message that comes now takes the session up again: after a pause, or after a restart."""
        return is_taken_up_again(
            state, now=datetime.now(UTC), started_at=self._started_at, resume_after_s=self._resume_after_s
        )

    async def preview(self, state: SessionState, agent: Agent, message: str, files: ReadFiles = NO_FILES) -> Request:
        """Return the request that a message would make. The web is not searched.

        Nothing is stored but the calls to an embedding endpoint, if there is one.
        """
        toolbox = await self._toolboxes.of(agent)
        await toolbox.settled(self._settle_s)
        agent = await self.agent_with(agent, state)
        now = datetime.now(UTC)
        opening = opening_events(state, message, files.attachments, resumed=self.resumes(state))
        begun = fold(state.id, (Recorded(state.seq + nth, now, each) for nth, each in enumerate(opening, 1)), state)
        found = await self._search(begun, agent, search_web=False)
        texts = {**await self._file_texts(begun), **files.blobs}
        embeddings = self.embeddings(state, None, agent.settings.prices)
        try:
            with recording(embeddings):
                build = partial(build_request, self._services, agent, toolbox.servers(), begun, found, file_texts=texts)
                built = await self._second.run(build)
        finally:
            called, bodies = embeddings.release()
            if called:
                with anyio.CancelScope(shield=True):
                    await self.keep_calls(state.id, state.seq, called, bodies)
        return built.request

    def embeddings(
        self, state: SessionState, turn: int | None, prices: Mapping[str, ModelPrice], step: int = 0
    ) -> HeldCalls:
        """Return what keeps the calls to an embedding endpoint that are made for a turn, or for a look ahead."""
        keep = self._second.called_back(partial(self.keep_calls, state.id, state.seq))
        count = self._second.called_back(partial(self._count_calls, state.owner))
        return HeldCalls(turn=turn, step=step, prices=prices, keep=keep, count=count)

    async def read(self, state: SessionState) -> Request | None:
        """Return the request that the open turn began with, or None when it has none yet."""
        name = open_turn(state).request
        if name is None:
            return None
        body = await self._sessions.store.blob(state.id, name)
        return rebuild(body, await self._sessions.store.blobs(state.id, texts_of(body)))

    def finders(self, agent: Agent, toolbox: Toolbox) -> Finders:
        """Return what answers a model that asks for more than its request has."""
        return Finders(self._services.selector, agent, toolbox)

    async def build_and_store(
        self,
        state: SessionState,
        agent: Agent,
        brought: Sequence[Tool] = (),
        reply_options: ReplyOptions | None = None,
        *,
        patience: StorePatience,
        fence: int,
        finders: bool = True,
        smaller: SmallerWindow | None = None,
        again: bool = False,
    ) -> tuple[Request, Changed]:
        """Return a new request for the open turn, and the session after it was stored.

        `brought` are tools that the client runs itself, `reply_options` what it asks of the answer. A store that is
        away is waited for with `patience`. `fence` is the number of the turn's lease. Without `finders` the model
        cannot ask for more than it is given. `smaller` is for a turn whose first request was refused as too long.
        `again` is for one whose session has changed since: the web is not searched again.

        Raises:
            LeaseLostError: another worker has taken the session over.
        """
        toolbox = await self._toolboxes.of(agent)
        if any(server.state == "connecting" for server in toolbox.servers()):
            first = open_turn(state).turn == 1
            await toolbox.settled(self._settle_s * FIRST_TIMES if first else self._settle_s)
            # That may have taken seconds: what was changed meanwhile counts.
            state = await patience.retry(partial(self._sessions.state, state.id))
        agent = await patience.retry(partial(self.agent_with, agent, state))
        earlier = await patience.retry(partial(self.read, state)) if smaller or again else None
        found = searched_before(earlier) if earlier else await self._search(state, agent)
        texts = await patience.retry(partial(self._file_texts, state))
        build = partial(build_request, self._services, agent, toolbox.servers(), state, found, file_texts=texts)
        chosen = {"brought": brought, "reply_options": reply_options, "finders": finders, "smaller": smaller}
        turn = open_turn(state).turn
        embeddings = self.embeddings(state, turn, agent.settings.prices)
        with recording(embeddings):
            built, (events, blobs) = await patience.retry(
                lambda: self._second.run(_built_to_append, partial(build, **chosen), state)
            )
        called, texts = embeddings.release()
        stored = await append_patiently(
            self._sessions,
            state,
            turn,
            [*called, *events],
            patience,
            {**texts, **blobs} if texts else blobs,
            fence=fence,
        )
        return built.request, stored

    async def keep_calls(
        self, session_id: SessionId, as_of: int, events: Sequence[Event], blobs: Mapping[BlobHash, str]
    ) -> None:
        """Store calls that went on when no turn waited for them, unless something was erased after `as_of`."""
        try:
            await self._sessions.change(
                session_id, lambda now: events if now.erased_seq <= as_of else (), blobs=blobs, unread=True
            )
        except WindowpaneError as error:
            log.info("calls.not_kept", session=session_id, code=error.code)

    async def files(self, session_id: SessionId, names: Sequence[BlobHash]) -> dict[BlobHash, str]:
        """Return the bytes of a session's files, in base64."""
        return await self._sessions.store.blobs(session_id, names) if names else {}

    async def _file_texts(self, state: SessionState) -> dict[BlobHash, str]:
        """Return the words of the files that the next request may name."""
        said = [message.attachments for message in state.recent if isinstance(message, UserMessage)]
        names = {each.text for attachments in said for each in attachments if each.text is not None}
        return await self._sessions.store.blobs(state.id, sorted(names)) if names else {}

    async def _search(self, state: SessionState, agent: Agent, *, search_web: bool = True) -> Research:
        mode, message = call_settings(agent, state).mode, open_turn(state).message
        return await research(self._services.search_engine, mode, message, search_web=search_web)


async def _built_to_append(
    build: Callable[[], Awaitable[BuiltRequest]], state: SessionState
) -> tuple[BuiltRequest, tuple[tuple[Event, ...], dict[BlobHash, str]]]:
    """Return a request, and what keeps it."""
    built = await build()
    return built, built.to_append(state)
