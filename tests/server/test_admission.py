"""A worker that is full refuses a new turn at every door, before anything is stored, and says when to come again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anthropic
import anyio
import httpx2
import openai
import pytest
from mcp import Client as McpClient
from mcp.types import TextContent

from patience import PATIENCE_S
from server.place import EVENTS, engine_of, events_in, listening, new_session, problem, problem_in
from windowpane.agents.folder import FolderAgents
from windowpane.callers import LOCAL_OWNER, TokenFile
from windowpane.client import Client
from windowpane.context.events import Delta, Live
from windowpane.context.ids import SessionId, unlisted
from windowpane.context.messages import Decision
from windowpane.engine import Engine
from windowpane.errors import TooManyTurnsError, WorkerFullError
from windowpane.mcp_server.server import create_server
from windowpane.models.provider import PydanticModels
from windowpane.server.app import create_app
from windowpane.testing import Call, Reply, World, drain, tool
from windowpane.tools.functions import FunctionToolbox
from wire import openai_chat
from wire.reply import WireReply
from wire.server import Answer, WireServer, running

pytestmark = pytest.mark.anyio

PLACES = 2
FULL = "this server runs as many turns as it may at once (2 in a worker); send the message again in 2 s"
REFUSED = problem(429, "worker_full", FULL, facts={"max_turns": PLACES, "retry_after_s": 2})


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "agents")
    world.write("agent.yaml", "model: openai:gpt-4o\nworking_context: false\n")
    return world


def engine_for(world: World, wire: WireServer) -> Engine:
    environ = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": f"{wire.url}/v1"}
    return Engine(
        store=world.store,
        agents=FolderAgents(world.root),
        models=PydanticModels(environ=environ),
        toolbox=FunctionToolbox,
        max_turns=PLACES,
    )


def held(until: asyncio.Event) -> Answer:
    """Return an answer that begins only when it is told to."""
    return Answer((until, *openai_chat.answer(WireReply(text=("Yes.",))).steps))


@asynccontextmanager
async def full(world: World) -> AsyncGenerator[tuple[Engine, str, list[asyncio.Event], list[SessionId]]]:
    """Serve an app whose places are all taken by turns that wait for their model."""
    ends = [asyncio.Event() for _ in range(PLACES)]
    rest = [openai_chat.answer(WireReply(text=("Yes.",))) for _ in range(9)]
    async with running(*map(held, ends), *rest) as wire:
        engine = engine_for(world, wire)
        async with (
            listening(create_app(engine)) as address,
            httpx2.AsyncClient(base_url=address, timeout=PATIENCE_S) as client,
            anyio.create_task_group() as asking,
        ):
            sessions = [SessionId(await new_session(client)) for _ in ends]
            for session in sessions:
                path, key = f"/api/sessions/{session}/messages", {"Idempotency-Key": "one"}
                asking.start_soon(lambda p=path, k=key: client.post(p, json={"content": "Hi"}, headers=k))
            await wire.wait_for_requests(PLACES)
            yield engine, address, ends, sessions
            for end in ends:
                end.set()


async def logs(engine: Engine, client: httpx2.AsyncClient) -> dict[str, int]:
    """Return how long the log of each session is, and how many of them lists do not show."""
    rows = (await client.get("/api/sessions")).json()["sessions"]
    sizes = {row["id"]: len(await engine.store.read(row["id"])) for row in rows}
    return sizes | {"unlisted": len((await engine.store.sessions(unlisted(LOCAL_OWNER), limit=9)).rows)}


async def test_a_turn_too_many_is_refused_before_anything_is_stored_and_admitted_when_one_has_ended(
    world: World,
) -> None:
    async with full(world) as (engine, address, ends, sessions), httpx2.AsyncClient(base_url=address) as client:
        third = await new_session(client)
        path, body = f"/api/sessions/{third}/messages", {"content": "Hi"}
        before = await logs(engine, client)
        whole, streamed = await client.post(path, json=body), await client.post(path, json=body, headers=EVENTS)
        after = await logs(engine, client)
        again = {**EVENTS, "Idempotency-Key": "one"}
        async with client.stream(
            "POST", f"/api/sessions/{sessions[1]}/messages", json=body, headers=again, timeout=PATIENCE_S
        ) as joined:
            ends[0].set()
            await drain(engine.follow(sessions[0], 1))
            admitted = await client.post(path, json=body, timeout=PATIENCE_S)
            ends[1].set()
            told = [event.event async for event in events_in(joined)]
        shown = (await client.get("/metrics")).text

    assert [problem_in(whole), problem_in(streamed)] == [REFUSED, REFUSED]
    assert [whole.headers["Retry-After"], streamed.headers["Retry-After"]] == ["2", "2"]
    assert (after, after[third]) == (before, 1)
    assert (admitted.status_code, admitted.json()["outcome"]) == (200, "completed")
    assert (told[0], told[-1]) == ("turn.started", "turn.finished"), (
        "a repeated message joins its turn in a full worker"
    )
    assert 'windowpane_turns_refused_total{why="worker_full"} 2.0' in shown.splitlines()


async def test_every_door_refuses_in_its_own_form_and_makes_no_session(world: World) -> None:
    run = {"threadId": "thread-1", "runId": "run-1", "messages": [{"id": "1", "role": "user", "content": "Hi"}]}
    async with (
        full(world) as (engine, address, _, sessions),
        httpx2.AsyncClient(base_url=address) as client,
        openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as gpt,
        anthropic.AsyncAnthropic(base_url=f"{address}/anthropic", api_key="none", max_retries=0) as claude,
        McpClient(create_server(engine)) as host,
        Client(address) as pane,
    ):
        before = await logs(engine, client)
        with pytest.raises(openai.RateLimitError) as chat:
            await gpt.chat.completions.create(model="pane", messages=[{"role": "user", "content": "Hi"}])
        with pytest.raises(openai.RateLimitError) as response:
            await gpt.responses.create(model="pane", input="Hi", stream=True)
        with pytest.raises(anthropic.RateLimitError) as message:
            await claude.messages.create(model="pane", max_tokens=9, messages=[{"role": "user", "content": "Hi"}])
        agui = await client.post("/api/agents/pane/ag-ui", json=run)
        asked = await host.call_tool("ask_agent", {"message": "Hi"})
        with pytest.raises(WorkerFullError) as remote:
            await pane.ask(sessions[0], "And?")
        after = await logs(engine, client)

    told = {"message": FULL, "type": "requests", "param": None, "code": "rate_limit_exceeded"}
    assert [chat.value.response.json(), response.value.response.json()] == [{"error": told}] * 2
    assert message.value.response.json() == {"type": "error", "error": {"type": "rate_limit_error", "message": FULL}}
    for refused in (chat.value, response.value, message.value):
        assert (refused.response.headers["Retry-After"], refused.response.headers.get("x-should-retry")) == ("2", None)
    assert (problem_in(agui), agui.headers["Retry-After"]) == (REFUSED, "2")
    failed = f"Error executing tool ask_agent: {FULL}"
    assert (asked.is_error, [part.text for part in asked.content if isinstance(part, TextContent)]) == (True, [failed])
    assert str(remote.value) == FULL
    assert (after, after["unlisted"]) == (before, 0)


async def test_of_messages_that_come_together_only_as_many_begin_as_there_are_places(tmp_path: Path) -> None:
    world, never = World(tmp_path / "agents"), anyio.Event()
    world.says(*(Reply("Yes.", before_end=never) for _ in range(9)))
    outcomes: list[str] = []
    async with world.engine(max_turns=3) as engine:
        sessions = [await engine.sessions.create("pane") for _ in range(8)]

        async def ask(session_id: SessionId) -> None:
            try:
                await drain(engine.turn(session_id, "Hi"))
                outcomes.append("answered")
            except WorkerFullError:
                outcomes.append("refused")
                if outcomes.count("refused") == 5:
                    never.set()

        async with anyio.create_task_group() as asking:
            for session in sessions:
                asking.start_soon(ask, session.id)
        begun = [(await engine.sessions.get(session.id)).turn_count for session in sessions]

    assert outcomes == ["refused"] * 5 + ["answered"] * 3
    assert sorted(begun) == [0] * 5 + [1] * 3


async def test_a_turn_that_waited_for_a_decision_goes_on_in_a_full_worker(tmp_path: Path) -> None:
    world, never = World(tmp_path / "agents"), anyio.Event()
    world.toolbox.put("files", [tool("read", "empty", permission="required")])
    world.says(
        Reply(calls=(Call("files__read", "{}", id="c1"),)), Reply("Busy.", before_end=never), Reply("It is empty.")
    )
    async with world.engine(max_turns=1) as engine:
        waiting, other = [await engine.sessions.create("pane") for _ in range(2)]
        await drain(engine.turn(waiting.id, "Read it."))
        running_turn = engine.turn(other.id, "Hi")
        while not isinstance(await anext(running_turn), Delta):
            pass
        await drain(engine.approve(waiting.id, {"c1": "allow_once"}))
        never.set()
        await drain(running_turn)
        ended = await engine.sessions.get(waiting.id)

    assert (ended.open_turn, ended.turn_count) == (None, 1)


async def begin(live: AsyncGenerator[Live]) -> AsyncGenerator[Live]:
    """Wait until a turn's model speaks."""
    while not isinstance(await anext(live), Delta):
        pass
    return live


async def test_one_owner_cannot_take_the_places_of_the_others_also_with_turns_that_waited(tmp_path: Path) -> None:
    world, end = World(tmp_path / "agents"), anyio.Event()
    world.toolbox.put("files", [tool("read", "empty", permission="required")])
    asks = (Reply(calls=(Call("files__read", "{}", id="c1"),)) for _ in range(3))
    world.says(*asks, *(Reply("Yes.", before_end=end) for _ in range(9)))
    once: dict[str, Decision] = {"c1": "allow_once"}
    async with world.engine(max_turns=8, max_turns_per_owner=2) as engine:

        async def session(owner: str, *, listed: bool = True) -> SessionId:
            return (await engine.sessions.create("pane", owner=owner, listed=listed)).id

        waiting = [await session("ann") for _ in range(3)]
        for each in waiting:
            await drain(engine.turn(each, "Read it."))
        running_turns = [await begin(engine.approve(each, once)) for each in waiting[:2]]
        new = [await session("ann"), await session("ann", listed=False)]
        before = [len(await engine.store.read(each)) for each in (waiting[2], *new)]
        with pytest.raises(TooManyTurnsError):
            await drain(engine.approve(waiting[2], once))
        for each in new:
            with pytest.raises(TooManyTurnsError):
                await drain(engine.turn(each, "Hi"))
        after = [len(await engine.store.read(each)) for each in (waiting[2], *new)]
        others = [await session(owner) for owner in ("ben", "local", "local", "local")]
        running_turns += [await begin(engine.turn(each, "Hi")) for each in others]
        end.set()
        for live in running_turns:
            await drain(live)
        await drain(engine.approve(waiting[2], once))
        await drain(engine.turn(new[0], "Hi"))
        ended = [(await engine.sessions.get(each)).open_turn for each in (*waiting, *others, new[0])]

    assert after == before, "what is refused stores nothing"
    assert ended == [None] * 8


async def test_approvals_that_come_together_run_no_more_turns_than_the_owner_may(tmp_path: Path) -> None:
    world, end = World(tmp_path / "agents"), anyio.Event()
    world.toolbox.put("files", [tool("read", "empty", permission="required")])
    asks = (Reply(calls=(Call("files__read", "{}", id="c1"),)) for _ in range(5))
    world.says(*asks, *(Reply("Yes.", before_end=end) for _ in range(5)))
    outcomes: list[str] = []
    async with world.engine(max_turns_per_owner=2) as engine:
        waiting = [(await engine.sessions.create("pane", owner="ann")).id for _ in range(5)]
        for each in waiting:
            await drain(engine.turn(each, "Read it."))

        async def decide(session_id: SessionId) -> None:
            try:
                await drain(engine.approve(session_id, {"c1": "allow_once"}))
                outcomes.append("answered")
            except TooManyTurnsError:
                outcomes.append("refused")
                if outcomes.count("refused") == 3:
                    end.set()

        async with anyio.create_task_group() as asking:
            for each in waiting:
                asking.start_soon(decide, each)

    assert outcomes == ["refused"] * 3 + ["answered"] * 2


async def test_an_owner_with_too_many_turns_is_told_when_to_come_again_and_others_are_answered(tmp_path: Path) -> None:
    world, end = World(tmp_path / "agents"), anyio.Event()
    world.says(Reply("Yes.", before_end=end), Reply("Yes."))
    tokens = TokenFile(tmp_path / "tokens.json")
    ann, ben = ({"Authorization": f"Bearer {tokens.create(owner, ['manage'])[1]}"} for owner in ("ann", "ben"))
    engine, content = engine_of(world, max_turns_per_owner=1), {"content": "Hi"}
    app = create_app(engine, tokens=tokens, token_needed=True, hosts=None)
    async with listening(app) as address, httpx2.AsyncClient(base_url=address, timeout=PATIENCE_S) as client:
        first, second, bens = [
            (await client.post("/api/sessions", json={}, headers=owner)).json()["id"] for owner in (ann, ann, ben)
        ]
        live = await begin(engine.turn(first, "Hi"))
        refused = await client.post(f"/api/sessions/{second}/messages", json=content, headers=ann)
        answered = await client.post(f"/api/sessions/{bens}/messages", json=content, headers=ben)
        shown = (await client.get("/metrics", headers=ann)).text
        end.set()
        await drain(live)

    told = (
        "you have as many turns running at once as one owner may (1 in a worker); wait for one to end, or send this "
        "again in 2 s"
    )
    facts = {"max_turns_per_owner": 1, "retry_after_s": 2}
    assert problem_in(refused) == problem(429, "too_many_turns", told, facts=facts)
    assert (refused.headers["Retry-After"], answered.json()["outcome"]) == ("2", "completed")
    assert 'windowpane_turns_refused_total{why="too_many_turns"} 1.0' in shown.splitlines()
