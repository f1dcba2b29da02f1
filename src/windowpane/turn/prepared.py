"""Requests for model calls of your own: prepare one, record what came of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from windowpane.agents.base import Agents
from windowpane.context.events import (
    Event,
    ModelReplied,
    ToolReturned,
    TurnError,
    TurnFinished,
)
from windowpane.context.ids import SessionId
from windowpane.context.items import ItemRef
from windowpane.context.messages import Source, Step, Usage, is_built_in
from windowpane.context.request import Request
from windowpane.context.session import SessionState, check_answerable
from windowpane.errors import (
    KeyReusedError,
    TurnNotFoundError,
    WindowpaneError,
)
from windowpane.files.read import NO_FILES, ReadFiles
from windowpane.sessions.conversation import check_message
from windowpane.sessions.toolboxes import Toolboxes
from windowpane.sessions.working import WorkingContext
from windowpane.stores.base import Lease
from windowpane.stores.sessions import Sessions
from windowpane.text.tokens import count
from windowpane.tools.base import ToolOutput
from windowpane.tools.context_tools import WithContextTools
from windowpane.turn.lease import Leases
from windowpane.turn.log import append_to_turn, failed
from windowpane.turn.patience import StorePatience
from windowpane.turn.requests import TurnRequests
from windowpane.turn.runner import Runner

PREPARED_LEASE_S = 600.0
"""How long a prepared request may wait for its reply before another turn may begin."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that waits for the caller's model call. Give it to `record()` or to `abandon()`.

    `holder` and `fence` are those of its lease.
    """

    session_id: SessionId
    turn: int
    request: Request
    holder: str
    fence: int | None = None


class PreparedTurns:
    """Turns whose model the caller calls itself."""

    def __init__(
        self,
        *,
        sessions: Sessions,
        agents: Agents,
        toolboxes: Toolboxes,
        requests: TurnRequests,
        working: WorkingContext,
        leases: Leases,
        runner: Runner,
    ) -> None:
        self._states = sessions
        self._agents = agents
        self._toolboxes = toolboxes
        self._requests = requests
        self._working = working
        self._leases = leases
        self._runner = runner

    async def begin(
        self,
        session_id: SessionId,
        message: str,
        files: ReadFiles = NO_FILES,
        *,
        key: str | None = None,
        wait_s: float = 0,
    ) -> Prepared:
        """Store a message and build its request, for a model call of your own. Then call `record()`.

        Raises:
            The same as `turn()`, and:
            ContextTooLargeError: what must be sent does not fit; the turn is recorded as failed.
        """
        check_message(message, with_files=bool(files.attachments))
        state = await self._states.state(session_id)
        check_answerable(state)
        lease = await self._leases.take(session_id, wait_s=wait_s, ttl_s=PREPARED_LEASE_S)
        begun = await self._runner.begin(state, lease, message, key, files)
        if not begun.recorded:
            raise KeyReusedError(key or "")
        try:
            # The caller has the request already: what its model would find could not be added to it.
            request, _ = await self._requests.build_and_store(
                begun.state, begun.agent, patience=StorePatience(0), fence=lease.fence, finders=False
            )
        except WindowpaneError as error:
            try:
                end = [failed(begun.turn, error)]
                await append_to_turn(self._states, session_id, begun.turn, end, fence=lease.fence)
            finally:
                await self._leases.release(session_id, lease)
            raise
        return Prepared(session_id, begun.turn, request, lease.holder, lease.fence)

    async def build_again(self, session_id: SessionId, *, wait_s: float = 0) -> Request | None:
        """Build the request of the open turn again, with what came into the session since; None without such a turn.

        The turn waits for the caller's model call, and nothing was answered yet.

        Raises:
            SessionBusyError: another worker has the session.
            ContextTooLargeError: what must be sent does not fit; the request stays as it was.
        """
        lease = await self._leases.take(session_id, wait_s=wait_s)
        try:
            state = await self._states.state(session_id)
            if state.open_turn is None or state.open_turn.request is None or state.open_turn.steps:
                return None
            request, _ = await self._requests.build_and_store(
                state,
                await self._agents.look(state.agent),
                patience=StorePatience(0),
                fence=lease.fence,
                finders=False,
                again=True,
            )
            return request
        finally:
            await self._leases.release(session_id, lease)

    async def record(
        self,
        prepared: Prepared,
        reply: str | Sequence[Step],
        *,
        usage: Usage | None = None,
        model: str | None = None,
        sources: Sequence[Source] = (),
    ) -> SessionState:
        """Store what your model answered to a prepared request: a text, or every step with its tool calls.

        `model` is what answered; without it, the model of the request. A built-in one is not it: you called your own.
        """
        asked = prepared.request.context.settings.model
        name = model or ("" if is_built_in(asked) else asked)
        steps = [Step(text=reply, usage=usage or Usage(), model=name)] if isinstance(reply, str) else reply
        events: list[Event] = []
        for step in steps:
            events.append(ModelReplied(turn=prepared.turn, step=replace(step, results=()), tokens=count(step.text)))
            events += [ToolReturned(turn=prepared.turn, result=result) for result in step.results]
        events.append(TurnFinished(turn=prepared.turn, outcome="completed", sources=tuple(sources)))
        return await self._conclude(prepared, events)

    async def abandon(self, prepared: Prepared, why: str) -> SessionState:
        """Store that your model call failed. The message and the request stay, with an error message."""
        error = TurnError(code="model_error", message=why)
        return await self._conclude(prepared, [TurnFinished(turn=prepared.turn, outcome="failed", error=error)])

    async def call_tool(self, session_id: SessionId, ref: ItemRef, arguments: Mapping[str, Any]) -> ToolOutput:
        """Run a tool of a prepared request. One that must be asked about first is refused: no user can be asked here.

        Raises:
            SessionNotFoundError: no such session.
            ToolError: the tool's server did not answer as needed.
        """
        state = await self._states.state(session_id)
        sets = self._working.of(session_id, actor="model", tell=lambda _: None)
        agent = await self._agents.look(state.agent)
        toolbox = WithContextTools(await self._toolboxes.of(agent), sets)
        if self._runner.verdict_with(agent, toolbox)(state, ref) != "run":
            return ToolOutput("This tool needs the user's approval, which is not possible here.", is_error=True)
        return await toolbox.call(ref.server or "", ref.name, arguments)

    async def _conclude(self, prepared: Prepared, events: Sequence[Event]) -> SessionState:
        try:
            changed = await append_to_turn(
                self._states, prepared.session_id, prepared.turn, events, fence=prepared.fence
            )
        finally:
            await self._leases.release(prepared.session_id, Lease(prepared.holder, prepared.fence or 0))
        if not changed.recorded:
            raise TurnNotFoundError(prepared.session_id, prepared.turn)
        return changed.state
