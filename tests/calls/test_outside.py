"""Calls to an embedding endpoint that belong to no turn are recorded, counted, priced and erased as well."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from calls.test_embeddings import CountingEndpoint
from patience import PATIENCE_S
from windowpane.calls.transport import RecordingTransport, Routes
from windowpane.context.messages import Usage
from windowpane.search.embedding.remote import RemoteEmbedder
from windowpane.second_loop import SecondLoop
from windowpane.sessions.calls.outside import OutsideCalls
from windowpane.settings import Settings
from windowpane.stores.memory import MemoryStore
from windowpane.stores.sessions import Sessions
from windowpane.testing import World, serving

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Sequence
    from pathlib import Path

    from windowpane.context.events import CallEnded

PRICES = "prices: {embedder: {input: 3, output: 0}}"
DRAFT = "How long does a refund take, roughly?"
QUERY = "photos on matte paper"
EMBEDDED = "A text of a caller."


@pytest.fixture
def endpoint() -> Generator[CountingEndpoint]:
    found = CountingEndpoint()
    yield found
    found.close()


@pytest.fixture
async def http(tmp_path: Path, endpoint: CountingEndpoint) -> AsyncGenerator[httpx2.AsyncClient]:
    world = World(tmp_path / "agents")
    world.write("agent.yaml", f"model: scripted:test\nworking_context: false\nfinders: false\n{PRICES}\n")
    world.reference("refunds", "A refund takes five days.", include="agent")
    world.reference("printing", "Photos are printed on matte paper.", include="agent")
    world.says("Five days.", "Ten.")
    settings = Settings(
        data=tmp_path,
        agents=tmp_path / "agents",
        store_url=f"sqlite:///{tmp_path / 'windowpane.db'}",
        embeddings_url=endpoint.url,
        embeddings_model="embedder",
        dollars_per_day=Decimal(100),
    )
    async with (
        serving(settings, world.model) as address,
        httpx2.AsyncClient(base_url=address, timeout=PATIENCE_S) as client,
    ):
        yield client


async def _get(http: httpx2.AsyncClient, path: str) -> Any:
    answer = await http.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def _embedding_calls(http: httpx2.AsyncClient, session: str) -> list[dict[str, Any]]:
    listed = (await _get(http, f"/api/sessions/{session}/calls"))["calls"]
    numbers = [call["number"] for call in listed if call["purpose"] == "embedding"]
    return [await _get(http, f"/api/sessions/{session}/calls/{number}") for number in numbers]


async def test_every_call_to_the_endpoint_is_in_one_ledger_whatever_it_was_for(
    http: httpx2.AsyncClient, endpoint: CountingEndpoint
) -> None:
    session = (await http.post("/api/sessions", json={"agent": "pane"})).json()["id"]
    assert (await _get(http, "/api/calls"))["session"] is None
    (await http.post(f"/api/sessions/{session}/preview", json={"content": DRAFT})).raise_for_status()
    (await http.post(f"/api/sessions/{session}/messages", json={"content": "And matte photos?"})).raise_for_status()
    (await http.post("/api/agents/pane/search", json={"query": QUERY})).raise_for_status()
    (await http.post("/v1/embeddings", json={"model": "any", "input": EMBEDDED})).raise_for_status()
    await _get(http, f"/api/sessions/{session}/turns/1/use")

    outside = await _get(http, "/api/calls")
    of_session, of_none = [await _embedding_calls(http, each) for each in (session, outside["session"])]
    kept = [json.loads(record["body"]) for record in (*of_session, *of_none) if record["body"]]
    sent = endpoint.requests
    unkept = Counter(map(json.dumps, sent)) - Counter(map(json.dumps, kept))
    assert len(of_session) + len(of_none) == len(sent)
    # Only what serves all is kept without its texts.
    assert unkept.total() == sum(record["erased"] for record in of_none)
    assert [any(text in body["input"] for body in kept) for text in (DRAFT, QUERY, EMBEDDED)] == [True] * 3
    assert {record["call"]["turn"] for record in of_session} == {None, 1}

    tokens = 10 * sum(len(body["input"]) for body in sent)
    counted = [Usage(**record["call"]["usage"]) for record in (*of_session, *of_none)]
    assert sum(counted, Usage()) == Usage(tokens)
    (row,) = [row for row in (await _get(http, "/api/analytics"))["purposes"] if row["purpose"] == "embedding"]
    assert (row["calls"], row["input_tokens"], row["calls_without_usage"]) == (len(sent), tokens, 0)
    assert outside["calls"]["usage"]["input_tokens"] == sum(
        record["call"]["usage"]["input_tokens"] for record in of_none
    )
    statistics = await _get(http, f"/api/sessions/{session}/statistics")
    own = sum(record["call"]["usage"]["input_tokens"] for record in of_session)
    assert Decimal(statistics["cost_usd"]) == Decimal(3 * own) / 1_000_000
    # The prices of the agent are those of what is done for it.
    priced = [Decimal(each["call"]["cost_usd"]) for each in (*of_session, *of_none) if each["call"]["cost_usd"]]
    assert len(priced) == len(of_session) + sum(QUERY in str(record["body"]) for record in of_none)
    (limit,) = (await _get(http, "/api/costs"))["limits"]
    assert Decimal(limit["spent_usd"]) == sum(priced)


async def test_the_calls_of_no_session_are_not_listed_and_can_be_deleted(
    http: httpx2.AsyncClient, tmp_path: Path
) -> None:
    (await http.post("/v1/embeddings", json={"model": "any", "input": EMBEDDED})).raise_for_status()
    outside = await _get(http, "/api/calls")
    listed = (await _get(http, "/api/sessions"))["sessions"]
    refused = await http.post(f"/api/sessions/{outside['session']}/messages", json={"content": "Hello"})
    (await http.delete(f"/api/sessions/{outside['session']}")).raise_for_status()

    assert (listed, refused.status_code, refused.json()["code"]) == ([], 409, "recorded_session")
    assert len(outside["calls"]["calls"]) >= 1
    assert (await _get(http, "/api/calls"))["calls"]["calls"] == []
    (await http.post("/v1/embeddings", json={"model": "any", "input": "Another text."})).raise_for_status()
    assert len((await _get(http, "/api/calls"))["calls"]["calls"]) == 1


async def test_the_calls_of_no_session_are_kept_for_two_months(endpoint: CountingEndpoint) -> None:
    now = datetime.now(UTC)
    days = [now + timedelta(days=ahead) for ahead in (0, 1, 70)]
    today = [now]
    outside = OutsideCalls(clock=lambda: today[0])
    transport = RecordingTransport(Routes(timeout=PATIENCE_S))
    async with MemoryStore() as store, httpx2.AsyncClient(transport=transport, timeout=PATIENCE_S) as client:
        embedder = RemoteEmbedder(client, endpoint.url, "embedder", outside=outside.recorder)
        await embedder.embed(["before there is a store"])
        outside.in_store(Sessions(store), _count_nothing, SecondLoop())
        kept: list[list[str]] = []
        for today[0] in days:
            await embedder.embed(["a text"])
            kept.append(sorted(row.id for row in (await store.sessions()).rows))

    ids = [outside.session_of("local", day.date()) for day in days]
    assert kept == [ids[:1], sorted(ids[:2]), ids[2:]]


async def _count_nothing(owner: str, ended: Sequence[CallEnded]) -> None:
    pass
