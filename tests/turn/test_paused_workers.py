"""A worker that sleeps longer than its lease, at any moment of a turn, writes nothing into the turn of another.

The first worker stops at the nth call of its store, before or after it. Its lease runs out, a second worker takes the
session over, and the first wakes up: while the second is in the middle of its turn, or when it is done.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from stores.kinds import ENGINES, Kind
from turn.paused import Moment, PausedStore
from windowpane.context.events import Event, ToolReturned, TurnFinished, TurnStarted
from windowpane.context.ids import SessionId
from windowpane.context.items import Permission
from windowpane.context.messages import Outcome
from windowpane.engine import Engine
from windowpane.errors import LeaseLostError, WindowpaneError
from windowpane.models.scripted import Call, Received, Reply, ScriptedModel
from windowpane.stores.base import Store
from windowpane.testing import World, drain, stored, tool
from windowpane.tools.functions import FunctionTool

CALLS = Reply(calls=(Call("files__read", "{}", "c1"),))
MANY = 40
FEWEST_CALLS = 4
"""A turn that calls a tool asks its store at least so often."""

FEWEST_CLEARING = 5
"""Clearing asks its store at least so often."""

Wakes = Literal["meanwhile", "afterwards"]
"""When the first worker wakes up: in the middle of the second one's turn, or after it."""


class InStep(ScriptedModel):
    """Says the first reply to a message and the last one to a result, also where a turn before was not ended."""

    def __init__(self, *says: Reply) -> None:
        super().__init__("test")
        self._says = says

    async def _take(self, received: Received) -> Reply:
        return self._says[-1] if received.messages[-1].role == "tool" else self._says[0]


@dataclass
class Workers:
    """Two workers of one store. The second one's tool waits until `let_go` is set."""

    first: Engine
    second: Engine
    paused: PausedStore
    store: Store
    in_tool: anyio.Event
    let_go: anyio.Event

    def hold(self) -> None:
        """Let the second worker's next call of a tool wait."""
        self.in_tool, self.let_go = anyio.Event(), anyio.Event()

    async def session(self) -> SessionId:
        """Return a new session, which both workers know."""
        session = (await self.second.sessions.create()).id
        await self.first.sessions.get(session)
        return session


@asynccontextmanager
async def two_workers(
    kind: Kind, folder: Path, *says: Reply, permission: Permission = "not_required"
) -> AsyncGenerator[Workers]:
    """Open two workers of one place. The second one's model says this, again and again."""
    async with AsyncExitStack() as stack:
        place = kind.fresh(folder)
        one = await stack.enter_async_context(kind.open(place))
        two = await stack.enter_async_context(kind.open(place)) if place else one
        paused = PausedStore(one)
        first = World(folder / "first", store=paused)
        second = World(folder / "second", store=PausedStore(two))
        both = Workers.__new__(Workers)

        async def wait(arguments: Mapping[str, Any]) -> str:
            both.in_tool.set()
            await both.let_go.wait()
            return "done"

        first.toolbox.put("files", [tool("read", "done", permission=permission)])
        second.toolbox.put("files", [FunctionTool(name="read", run=wait, permission="not_required")])
        first.model = InStep(CALLS, Reply("First's answer."))
        second.model = InStep(*says) if says else InStep(CALLS, Reply("Second's answer."))
        both.paused, both.store, both.in_tool, both.let_go = paused, two, anyio.Event(), anyio.Event()
        both.let_go.set()
        both.first = await stack.enter_async_context(first.engine())
        both.second = await stack.enter_async_context(second.engine())
        yield both


@dataclass
class Caller:
    """One who sends a message, and what came back."""

    message: str
    turn: int | None = None
    outcome: Outcome | None = None
    refused: str = ""
    told: anyio.Event = field(default_factory=anyio.Event)

    async def send(self, engine: Engine, session: SessionId) -> None:
        """Send the message, and note what came of it."""
        try:
            events = stored(await drain(engine.turn(session, self.message)))
        except WindowpaneError as error:
            self.refused = error.code
            return
        finally:
            self.told.set()
        turn = next(event.turn for event in events if isinstance(event, TurnStarted))
        # What a worker left behind is closed before the turn begins.
        ends = [event for event in events if isinstance(event, TurnFinished) and event.turn == turn]
        assert len(ends) <= 1
        self.turn, self.outcome = turn, ends[0].outcome if ends else None


def check_laws(events: list[Event], *callers: Caller) -> None:
    """Check that turns stand one after the other in the log, each whole, and that every caller was told the truth."""
    turn, last = None, 0
    outcomes: dict[int, Outcome] = {}
    messages: dict[int, str] = {}
    results: list[tuple[int, str]] = []
    for event in events:
        match event:
            case TurnStarted():
                assert (turn, event.turn) == (None, last + 1)
                turn = last = event.turn
                messages[turn] = event.message
            case TurnFinished():
                assert event.turn == turn
                turn, outcomes[event.turn] = None, event.outcome
            case _ if (of := getattr(event, "turn", turn)) is not None:
                assert of == turn
                results += [(of, event.result.call_id)] if isinstance(event, ToolReturned) else []
            case _:
                pass
    assert turn is None
    assert len(results) == len(set(results))
    known = [(caller.turn, caller.message, caller.outcome) for caller in callers if not caller.refused]
    assert sorted(set(known)) == [(number, messages[number], outcomes[number]) for number in outcomes]


@pytest.fixture(params=ENGINES, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Kind:
    """A store of every engine."""
    return request.param


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("wakes", ["meanwhile", "afterwards"])
async def test_a_worker_that_slept_at_any_call_never_writes_into_the_turn_of_another(
    kind: Kind, tmp_path: Path, wakes: Wakes, moment: Moment
) -> None:
    calls = 0
    async with two_workers(kind, tmp_path) as workers:
        for nth in range(1, MANY):
            calls = nth
            session = await workers.session()
            mine, theirs = Caller("First"), Caller("Second")
            workers.paused.pause(nth, moment)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(mine.send, workers.first, session)
                if not await stopped(workers.paused, mine):
                    break
                await workers.paused.let_lease_run_out(session)
                workers.hold()
                async with anyio.create_task_group() as second:
                    second.start_soon(theirs.send, workers.second, session)
                    await workers.in_tool.wait()
                    if wakes == "meanwhile":
                        workers.paused.go_on()
                        await mine.told.wait()
                    workers.let_go.set()
                workers.paused.go_on()
            await idle(workers.first)

            assert (theirs.outcome, theirs.refused) == ("completed", "")
            assert (mine.outcome or mine.refused) in {"completed", "interrupted", "session_busy"}
            assert mine.refused == "" or wakes == "meanwhile"
            check_laws([entry.event for entry in await workers.store.read(session)], mine, theirs)
    assert FEWEST_CALLS < calls < MANY - 1


async def stopped(paused: PausedStore, caller: Caller) -> bool:
    """Wait until the worker stops; False when its turn came to its end first."""
    async with anyio.create_task_group() as either:

        async def wait(event: anyio.Event) -> None:
            await event.wait()
            either.cancel_scope.cancel()

        either.start_soon(wait, paused.paused)
        either.start_soon(wait, caller.told)
    return paused.paused.is_set()


async def idle(engine: Engine) -> None:
    """Wait until the engine runs no turn."""
    await engine.finish_turns(within_s=60)


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_worker_that_slept_over_an_approval_does_not_go_on_with_a_turn_that_another_runs(
    kind: Kind, tmp_path: Path, moment: Moment
) -> None:
    approved = 0
    async with two_workers(kind, tmp_path, Reply("Second's answer."), permission="required") as workers:
        for nth in range(1, MANY):
            session = await workers.session()
            caller = Caller("First")
            workers.paused.pause(nth, moment)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(caller.send, workers.first, session)
                if not await stopped(workers.paused, caller):
                    break
                state = await workers.second.sessions.get(session)
                if state.open_turn and state.open_turn.undecided:
                    await workers.paused.let_lease_run_out(session)
                    approved += 1
                    await drain(workers.second.approve(session, {"c1": "allow_once"}))
                workers.paused.go_on()
            await idle(workers.first)

            if (await workers.second.sessions.get(session)).open_turn is not None:
                await drain(workers.second.approve(session, {"c1": "allow_once"}))
            events = [entry.event for entry in await workers.store.read(session)]
            check_laws(events, Caller("First", 1, "completed"))
    assert approved


async def test_history_is_not_cleared_in_the_middle_of_a_turn_by_a_worker_that_slept(
    kind: Kind, tmp_path: Path
) -> None:
    async with two_workers(kind, tmp_path) as workers:
        session = await workers.session()
        caller = Caller("Second")
        workers.paused.pause(2, "before")

        async def clear() -> None:
            with pytest.raises(LeaseLostError):
                await workers.first.conversations.clear(session)
            workers.let_go.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(clear)
            await workers.paused.paused.wait()
            await workers.paused.let_lease_run_out(session)
            workers.hold()
            tasks.start_soon(caller.send, workers.second, session)
            await workers.in_tool.wait()
            workers.paused.go_on()

        check_laws([entry.event for entry in await workers.store.read(session)], caller)


async def test_the_texts_of_another_workers_turn_are_not_erased_by_a_worker_that_slept_while_it_cleared(
    kind: Kind, tmp_path: Path
) -> None:
    calls = 0
    async with two_workers(kind, tmp_path) as workers:
        for nth in range(1, MANY):
            calls = nth
            session = await workers.session()
            caller = Caller("Second")
            cleared = anyio.Event()
            workers.paused.pause(nth, "before")

            async def clear(session: SessionId = session, cleared: anyio.Event = cleared) -> None:
                with suppress(LeaseLostError):
                    await workers.first.conversations.clear(session)
                cleared.set()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(clear)
                if not await stopped(workers.paused, Caller("", told=cleared)):
                    break
                await workers.paused.let_lease_run_out(session)
                await caller.send(workers.second, session)
                workers.paused.go_on()

            assert caller.outcome == "completed"
            state = await workers.second.sessions.get(session)
            # Cleared as a whole, after its end, or what was sent can be read: neither its record nor a text is gone.
            if state.turn_starts.of(1) is not None:
                assert await workers.second.past.context(session, 1)
    assert calls > FEWEST_CLEARING
