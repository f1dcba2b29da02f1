"""What an owner's model calls may cost: counted from what providers report, for all workers, whatever is deleted."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from server.place import listening, new_session, problem_in
from windowpane.agents.folder import FolderAgents
from windowpane.client import Client
from windowpane.context.messages import Usage
from windowpane.engine import Engine
from windowpane.errors import CostLimitError
from windowpane.models.provider import PydanticModels
from windowpane.server.app import create_app
from windowpane.stores.base import Cost, Store
from windowpane.stores.memory import MemoryStore
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import Reply, World, drain
from windowpane.tools.functions import FunctionToolbox
from windowpane.turn.costs import CostLimits
from wire import openai_chat
from wire.reply import WireReply
from wire.server import Answer, WireServer, running, sse

pytestmark = pytest.mark.anyio

GPT = "openai:gpt-4o"
CALL = Decimal("0.0000975")
"""What one answer of the wire server costs: the tokens that it reports at the prices that the agent sets."""


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "agents")
    world.write("agent.yaml", f"model: {GPT}\nworking_context: false\nprices: {{{GPT}: {{input: 2.5, output: 10}}}}\n")
    return world


def engine_for(world: World, wire: WireServer, limits: CostLimits, store: Store | None = None) -> Engine:
    environ = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": f"{wire.url}/v1"}
    return Engine(
        store=store or world.store,
        agents=FolderAgents(world.root),
        models=PydanticModels(environ=environ),
        toolbox=FunctionToolbox,
        cost_limits=limits,
    )


@asynccontextmanager
async def limited(world: World, **limits: Decimal) -> AsyncGenerator[tuple[WireServer, str]]:
    answers = [openai_chat.answer(WireReply(text=("Yes.",))) for _ in range(9)]
    async with (
        running(*answers) as wire,
        listening(create_app(engine_for(world, wire, CostLimits(**limits)))) as address,
    ):
        yield wire, address


async def said(client: httpx2.AsyncClient, session: str, text: str = "Hi") -> httpx2.Response:
    return await client.post(f"/api/sessions/{session}/messages", json={"content": text})


def tomorrow() -> datetime:
    return datetime.combine(datetime.now(UTC).date() + timedelta(days=1), datetime.min.time(), UTC)


async def test_a_turn_that_would_begin_beyond_the_limit_is_refused_with_when_it_is_possible_again(world: World) -> None:
    async with limited(world, per_day_usd=CALL * 2) as (wire, address), httpx2.AsyncClient(base_url=address) as client:
        session = await new_session(client)
        first, second = await said(client, session), await said(client, session)
        third = await said(client, session)
        about = (await client.get(f"/api/sessions/{session}")).json()

    assert [first.json()["outcome"], second.json()["outcome"]] == ["completed", "completed"]
    refused = problem_in(third)
    wait_s = refused["facts"].pop("retry_after_s")
    assert third.headers["Retry-After"] == str(wait_s)
    assert 0 < wait_s <= 86_400
    assert refused == {
        "type": "urn:windowpane:problem:cost_limit_reached",
        "title": "Too Many Requests",
        "status": 429,
        "detail": "your model calls have reached the limit of $0.000195 a day (spent: $0.000195); "
        f"try again after {tomorrow():%Y-%m-%d %H:%M} UTC, or ask who runs this server for a higher limit",
        "code": "cost_limit_reached",
        "facts": {
            "period": "day",
            "limit_usd": "0.0001950",
            "spent_usd": "0.000195",
            "resets_at": tomorrow().isoformat(),
        },
        "errors": [],
    }
    assert (len(wire.asked), about["turn_count"]) == (2, 2), "nothing was begun, stored or sent"


async def test_deleting_sessions_gives_no_money_back_and_a_repeated_message_joins_its_turn(world: World) -> None:
    async with limited(world, per_month_usd=CALL) as (wire, address), httpx2.AsyncClient(base_url=address) as client:
        session = await new_session(client)
        path, body = f"/api/sessions/{session}/messages", {"content": "Hi"}
        first = await client.post(path, json=body, headers={"Idempotency-Key": "one"})
        again = await client.post(path, json=body, headers={"Idempotency-Key": "one"})
        await client.delete(f"/api/sessions/{session}")
        other = await said(client, await new_session(client))

    assert (again.status_code, again.json()) == (200, first.json())
    assert (other.status_code, problem_in(other)["facts"]["period"]) == (429, "month")
    assert len(wire.asked) == 1


async def test_openai_clients_are_told_of_a_used_up_quota_and_do_not_try_again(world: World) -> None:
    async with (
        limited(world, per_day_usd=Decimal(0)) as (wire, address),
        openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="none") as client,
    ):
        with pytest.raises(openai.RateLimitError) as refused:
            await client.chat.completions.create(model="pane", messages=[{"role": "user", "content": "Hi"}])

    assert (refused.value.type, refused.value.code) == ("insufficient_quota", "insufficient_quota")
    assert refused.value.response.headers["x-should-retry"] == "false"
    assert wire.asked == []


async def test_owners_and_managers_see_the_limits_and_what_is_used_of_them(world: World) -> None:
    async with limited(world, per_day_usd=Decimal(5), per_month_usd=Decimal("50.5")) as (_, address):
        async with httpx2.AsyncClient(base_url=address) as client:
            await said(client, await new_session(client))
            seen = (await client.get("/api/costs")).json()
        async with Client(address) as pane:
            same = await pane.analytics.cost_limits()

    today = datetime.now(UTC).date()
    month = (today.replace(day=1) + timedelta(days=31)).replace(day=1)
    used: dict[str, Any] = {"spent_usd": "0.0000975", "unpriced_calls": 0}
    assert seen == {
        "limits": [
            {"period": "day", "limit_usd": "5", **used, "resets_at": f"{tomorrow():%Y-%m-%dT%H:%M:%SZ}"},
            {"period": "month", "limit_usd": "50.5", **used, "resets_at": f"{month}T00:00:00Z"},
        ]
    }
    assert [(limit.period, limit.spent_usd) for limit in same.limits] == [("day", CALL), ("month", CALL)]


async def test_two_workers_count_together_and_a_turn_that_runs_goes_on(world: World, tmp_path: Path) -> None:
    limits = CostLimits(per_day_usd=CALL)
    answers = [openai_chat.answer(WireReply(text=("Yes.",))) for _ in range(9)]
    file = tmp_path / "windowpane.db"
    async with (
        running(*answers) as wire,
        engine_for(world, wire, limits, SQLiteStore(file)) as one,
        engine_for(world, wire, limits, SQLiteStore(file)) as two,
    ):
        session = await one.sessions.create("pane", owner="ann")
        others = await two.sessions.create("pane", owner="ben")
        running_turn = one.turn(session.id, "Hi")
        await anext(running_turn)
        await drain(two.turn((await two.sessions.create("pane", owner="ann")).id, "Hi"))
        refused = two.turn((await two.sessions.create("pane", owner="ann")).id, "Hi")
        with pytest.raises(CostLimitError):
            await anext(refused)
        await drain(running_turn)
        state = await one.sessions.get(session.id)
        await drain(two.turn(others.id, "Hi"))

        assert state.open_turn is None
        assert state.turn_count == 1
        assert (await two.costs.limits("ann"))[0].spent_usd == CALL * 2, "what ran at that moment comes on top"
        assert (await two.costs.limits("ben"))[0].spent_usd == CALL


async def test_calls_without_a_known_price_are_counted_and_named_but_cost_nothing(world: World) -> None:
    world.write("agent.yaml", f"model: {GPT}\nworking_context: false\n")
    limits = CostLimits(per_day_usd=Decimal("0.01"))
    answers = [openai_chat.answer(WireReply(text=("Yes.",))) for _ in range(2)]
    async with running(*answers) as wire, engine_for(world, wire, limits, MemoryStore()) as engine:
        session = await engine.sessions.create("pane")
        await drain(engine.turn(session.id, "Hi"))
        await drain(engine.turn(session.id, "Hi"))

        (limit,) = await engine.costs.limits(session.owner)

    # A server that only speaks the protocol has no list price.
    assert (limit.spent_usd, limit.unpriced_calls) == (Decimal(0), 2)


async def test_calls_of_a_built_in_model_are_free_and_not_of_unknown_cost(tmp_path: Path) -> None:
    world = World(tmp_path / "agents", store=MemoryStore())
    world.says(Reply("One.", usage=Usage(input_tokens=5, output_tokens=5)), Reply("Two."))
    async with world.engine(cost_limits=CostLimits(per_day_usd=Decimal("0.01"))) as engine:
        session = await engine.sessions.create("pane")
        await drain(engine.turn(session.id, "Hi"))
        await drain(engine.turn(session.id, "Hi"))

        (limit,) = await engine.costs.limits(session.owner)

    assert (limit.spent_usd, limit.unpriced_calls) == (Decimal(0), 0)


@pytest.mark.filterwarnings("ignore:Failed to extract usage")  # pydantic-ai, where a count is missing
@pytest.mark.parametrize("counts", [{"prompt_tokens": 11}, {"completion_tokens": 7}], ids=["input", "output"])
async def test_a_call_that_reports_one_count_alone_has_no_known_cost(world: World, counts: dict[str, int]) -> None:
    chunk: dict[str, Any] = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []}
    frames = openai_chat.frames(WireReply(text=("Yes.",)))[:-1]
    answer = Answer((*frames, sse({**chunk, "usage": counts}), openai_chat.DONE))
    async with (
        running(answer) as wire,
        engine_for(world, wire, CostLimits(per_day_usd=Decimal(1)), MemoryStore()) as engine,
    ):
        session = await engine.sessions.create("pane")
        await drain(engine.turn(session.id, "Hi"))
        (limit,) = await engine.costs.limits(session.owner)

    assert (limit.spent_usd, limit.unpriced_calls) == (Decimal(0), 1)


async def test_yesterday_counts_for_the_month_and_not_for_the_day(world: World) -> None:
    limits = CostLimits(per_day_usd=Decimal(1), per_month_usd=Decimal(3))
    store = world.store
    await store.add_cost("ann", date(2026, 2, 28), Cost(2 * 10**9))
    await store.add_cost("ann", date(2026, 3, 1), Cost(10**9))
    await store.add_cost("ann", date(2026, 3, 30), Cost(10**9, 1))
    async with world.engine(cost_limits=limits) as engine:
        at = datetime(2026, 3, 31, 12, tzinfo=UTC)
        shown = await type(engine.costs)(store, engine.models, limits, clock=lambda: at).limits("ann")

    assert [(one.period, one.spent_usd, one.unpriced_calls, one.resets_at) for one in shown] == [
        ("day", Decimal(0), 0, datetime(2026, 4, 1, tzinfo=UTC)),
        ("month", Decimal(2), 1, datetime(2026, 4, 1, tzinfo=UTC)),
    ]


async def test_without_limits_nothing_is_counted(world: World) -> None:
    async with limited(world) as (_, address), httpx2.AsyncClient(base_url=address) as client:
        await said(client, await new_session(client))

        assert (await client.get("/api/costs")).json() == {"limits": []}
        assert await world.store.costs("local", since=date(1970, 1, 1)) == {}
