"""A store that goes away ends nothing: not the engine, not other turns, and what was said is kept."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace

import anyio
import httpx2
import pytest

from engine.unsteady import Fault, UnsteadyStore
from windowpane.context.events import (
    Delta,
    MessageAdded,
    ModelReplied,
    Recorded,
    RequestBuilt,
    SessionContext,
    ToolReturned,
    TurnFinished,
    TurnStarted,
)
from windowpane.context.ids import SessionId
from windowpane.engine import Engine
from windowpane.errors import StoreRolledBackError, StoreUnavailableError
from windowpane.models.scripted import Call, Reply
from windowpane.search.history import HistoryIndex
from windowpane.server.app import create_app
from windowpane.stores.append import Append, Appended
from windowpane.stores.memory import MemoryStore
from windowpane.testing import World, drain, stored, tool

LEASE_S = 0.3
CALLS_IN_A_TURN = 14
BEGINNING = 1
"""So many of these calls are made before a turn has begun: the message is stored and the session taken with it."""

KINDS = ["turn.started", "request.built", "model.replied", "tool.returned", "model.replied", "turn.finished"]
"""What is stored of a turn that calls a tool."""

CHAT = {"model": "pane", "messages": [{"role": "user", "content": "Hi"}]}
AG_UI = {"threadId": "t", "runId": "r", "messages": [{"id": "m", "role": "user", "content": "Hi"}]}
"""A message as other doors take it."""


@pytest.fixture
def store(world: World) -> UnsteadyStore:
    """Give the world an unsteady store, and a model that calls a tool in every turn."""
    store = world.store = UnsteadyStore()
    world.toolbox.put("files", [tool("read", "nothing", permission="none")])
    world.says(*(Reply(calls=(Call("files__read", "{}", "c1"),)), Reply("It is empty.")) * 5)
    return store


async def outcome_of(engine: Engine, session_id: SessionId, message: str) -> str:
    end = stored(await drain(engine.turn(session_id, message, wait_s=10)))[-1]
    assert isinstance(end, TurnFinished)
    return end.outcome


async def log_of(store: MemoryStore, session_id: SessionId) -> list[Recorded]:
    return await store.read(session_id)


@pytest.mark.parametrize("fault", ["not done", "done, not answered"])
@pytest.mark.parametrize("nth", range(1, CALLS_IN_A_TURN + 1))
async def test_a_turn_goes_on_when_the_store_comes_back_and_nothing_is_stored_twice(
    world: World, store: UnsteadyStore, nth: int, fault: Fault
) -> None:
    kinds: list[str] | None = None
    async with world.engine(lease_s=LEASE_S) as engine:
        first, other = await engine.sessions.create(), await engine.sessions.create()
        store.lose(nth, calls=2, fault=fault)
        with suppress(StoreUnavailableError):
            kinds = [event.type for event in stored(await drain(engine.turn(first.id, "Read it")))]
        store.come_back()
        others = await outcome_of(engine, other.id, "Hi")
        next_turn = await outcome_of(engine, first.id, "And now?")
        log = await log_of(store, first.id)

    assert (others, next_turn) == ("completed", "completed")
    events = [entry.event for entry in log]
    turns = Counter(event.turn for event in events if isinstance(event, TurnStarted))
    assert turns == Counter(event.turn for event in events if isinstance(event, TurnFinished))
    assert set(turns.values()) == {1}
    # A message that could not be stored is refused; a turn that has begun is completed.
    assert (kinds is None) == (nth <= BEGINNING)
    if kinds is not None:
        assert kinds == KINDS
        assert [event.type for event in events][-12:] == KINDS * 2


@pytest.mark.parametrize("fault", ["not done", "done, not answered"])
@pytest.mark.parametrize("nth", range(BEGINNING + 1, 24))
async def test_the_models_own_notes_are_made_once_when_the_store_comes_back(
    world: World, store: UnsteadyStore, nth: int, fault: Fault
) -> None:
    world.write("agent.yaml", "model: scripted:test\n")
    noting = Call("windowpane__set_relevant_context", '{"set_name": "ports", "items": ["8470"]}', "c1")
    asking = Call("windowpane__get_relevant_context", "{}", "c2")
    world.says(Reply(calls=(noting,)), Reply(calls=(asking,)), Reply("Noted."))
    async with world.engine(lease_s=LEASE_S) as engine:
        session = await engine.sessions.create()
        store.lose(nth, calls=2, fault=fault)
        outcome = await outcome_of(engine, session.id, "Note the port")
        store.come_back()
        log = await log_of(store, session.id)

    noted = [entry.event.context for entry in log if isinstance(entry.event, SessionContext)]
    results = [entry.event.result.content for entry in log if isinstance(entry.event, ToolReturned)]
    assert (outcome, noted[-1:], len(noted)) == ("completed", [{"ports": ("8470",)}], 1)
    assert "8470" in results[1]


@pytest.mark.parametrize("nth", range(BEGINNING + 1, BEGINNING + 6))
async def test_a_request_that_needs_earlier_messages_waits_for_the_store(
    world: World, store: UnsteadyStore, nth: int
) -> None:
    world.says("Miezi.")
    async with world.engine(lease_s=LEASE_S, history=HistoryIndex(None)) as engine:
        session = await engine.sessions.create()
        for text in ("My cat is called Miezi.", *(f"Paint shade {number} is dull." for number in range(80))):
            await engine.conversations.add(session.id, MessageAdded(role="user", content=text))
        store.lose(nth, calls=2)
        outcome = await outcome_of(engine, session.id, "What is my cat called?")

    assert outcome == "completed"


@pytest.mark.parametrize("nth", range(3, CALLS_IN_A_TURN + 1, 2))
async def test_a_mistake_in_the_store_ends_its_turn_at_most(world: World, store: UnsteadyStore, nth: int) -> None:
    async with world.engine(lease_s=LEASE_S) as engine:
        first, other = await engine.sessions.create(), await engine.sessions.create()
        store.lose(nth, calls=2, fault="unexpected")
        with suppress(RuntimeError, StoreUnavailableError):
            await drain(engine.turn(first.id, "Read it"))
        store.come_back()
        others = await outcome_of(engine, other.id, "Hi")
        next_turn = await outcome_of(engine, first.id, "And now?")
        log = await log_of(store, first.id)

    assert (others, next_turn) == ("completed", "completed")
    started = [entry.event.turn for entry in log if isinstance(entry.event, TurnStarted)]
    assert started == [entry.event.turn for entry in log if isinstance(entry.event, TurnFinished)]


async def test_a_turn_that_gives_up_tells_its_followers_and_is_closed_as_interrupted_later(
    world: World, store: UnsteadyStore
) -> None:
    async with world.engine(lease_s=LEASE_S, store_patience_s=0.1) as engine:
        first, other = await engine.sessions.create(), await engine.sessions.create()
        turn = engine.turn(first.id, "Read it")
        async for event in turn:
            if isinstance(event, Recorded) and isinstance(event.event, RequestBuilt):
                store.lose()
                break
        with pytest.raises(StoreUnavailableError, match="the store is away"):
            await drain(turn)
        store.come_back()
        others = await outcome_of(engine, other.id, "Hi")
        next_turn = await outcome_of(engine, first.id, "And now?")
        events = [entry.event for entry in await log_of(store, first.id)]

    ends = [(event.turn, event.outcome) for event in events if isinstance(event, TurnFinished)]
    assert (others, next_turn, ends) == ("completed", "completed", [(1, "interrupted"), (2, "completed")])
    assert sum(isinstance(event, RequestBuilt) and event.turn == 1 for event in events) == 1


async def test_a_turn_is_stopped_while_the_store_is_away_and_keeps_what_it_said(
    world: World, store: UnsteadyStore
) -> None:
    world.says(Reply("Half an answer", before_end=anyio.Event()))
    async with world.engine(lease_s=LEASE_S) as engine:
        session = await engine.sessions.create()
        async for event in engine.turn(session.id, "Tell me"):
            if isinstance(event, Delta) and event.text.endswith("answer"):
                break
        store.lose(nth=3, calls=3)
        await engine.cancel(session.id)
        log = await log_of(store, session.id)

    assert [entry.event.step.text for entry in log if isinstance(entry.event, ModelReplied)] == ["Half an answer"]
    assert log[-1].event == TurnFinished(turn=1, outcome="cancelled")


async def test_who_watches_a_session_stays_while_the_store_is_away(world: World, store: UnsteadyStore) -> None:
    seen: list[str] = []
    async with world.engine(lease_s=LEASE_S) as engine, anyio.create_task_group() as tasks:
        session = await engine.sessions.create()
        watching = anyio.Event()

        async def watch() -> None:
            async for event in engine.watch(session.id):
                watching.set()
                if isinstance(event, Recorded):
                    seen.append(event.event.type)
                    if isinstance(event.event, TurnFinished):
                        return

        tasks.start_soon(watch)
        await watching.wait()
        store.lose(nth=4, calls=3)
        await drain(engine.turn(session.id, "Read it"))

    assert seen == KINDS


async def test_over_http_a_store_that_is_away_is_a_503_with_a_time_to_try_again(
    world: World, store: UnsteadyStore
) -> None:
    async with world.engine(lease_s=LEASE_S) as engine:
        app = create_app(engine)
        app.state.opened, app.state.stopping = True, False
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            session = (await client.post("/api/sessions", json={})).json()
            store.lose()
            sent = await client.post(f"/api/sessions/{session['id']}/messages", json={"content": "Hi"})
            unread = await client.get("/readyz")
            chat = await client.post("/v1/chat/completions", json=CHAT)
            responses = await client.post("/v1/responses", json={"model": "pane", "input": "Hi"})
            agui = await client.post("/api/agents/pane/ag-ui", json=AG_UI)
            store.lose(nth=2)
            unwritten = await client.get("/readyz")
            store.come_back()
            ready = await client.get("/readyz")
            answered = await client.post(f"/api/sessions/{session['id']}/messages", json={"content": "Hi"})

    refused = (sent, unread, unwritten)
    assert [(answer.status_code, answer.headers["Retry-After"], answer.json()["detail"]) for answer in refused] == [
        (503, "5", "the store is away"),
        (503, "5", "the store cannot be reached"),
        (503, "5", "the store cannot be written"),
    ]
    assert [(answer.status_code, answer.headers["Retry-After"]) for answer in (chat, responses, agui)] == [
        (503, "5")
    ] * 3
    assert (ready.status_code, answered.json()["outcome"]) == (200, "completed")


class ForgetfulStore(MemoryStore):
    """A store that a power cut makes forget what it did not have to keep."""

    cut = False

    async def add(self, append: Append) -> Appended:
        appended = await super().add(append)
        if self.cut and not append.lasting:
            self.cut = False
            session = self._sessions[append.session_id]
            del session.log[appended.first_seq - 1 :]
            session.row = replace(session.row, last_seq=appended.first_seq - 1)
        return appended


async def test_a_message_that_a_power_cut_of_the_store_took_is_refused_and_can_be_sent_again(world: World) -> None:
    store = world.store = ForgetfulStore()
    world.says("Hello.")
    async with world.engine() as engine:
        session = (await engine.sessions.create()).id
        store.cut = True
        with pytest.raises(StoreRolledBackError):
            await drain(engine.turn(session, "Hi", key="k1"))
        lost = await log_of(store, session)
        outcome = await outcome_of(engine, session, "Hi")

    assert [entry.event.type for entry in lost] == ["session.created"]
    assert outcome == "completed"
