"""Calls to an embedding endpoint are calls too: those of a turn are in the ledger, counted and priced."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING

import httpx2
import pytest
from tests.search.endpoint import Endpoint

from patience import PATIENCE_S
from windowpane.calls.transport import RecordingTransport, Routes
from windowpane.context.ids import SessionId
from windowpane.context.messages import Usage
from windowpane.errors import EndpointError
from windowpane.models.scripted import Call
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.search.embedding.remote import RemoteEmbedder
from windowpane.search.history import HistoryIndex
from windowpane.search.index import ItemIndex
from windowpane.testing import Reply, World, drain
from wire.server import Answer, running

if TYPE_CHECKING:
    from pathlib import Path

MESSAGE = "How long does a refund take?"


class CountingEndpoint(Endpoint):
    """An endpoint that reports ten tokens for each text."""

    def answer(self, texts: list[str]) -> tuple[int, bytes]:
        status, body = super().answer(texts)
        return status, json.dumps(json.loads(body) | {"usage": {"prompt_tokens": 10 * len(texts)}}).encode()


async def test_a_turns_calls_to_an_embedding_endpoint_are_recorded_counted_and_priced(tmp_path: Path) -> None:
    world = World(tmp_path / "agents")
    world.write(
        "agent.yaml",
        "model: scripted:test\nworking_context: false\nprices: {embedder: {input: 3, output: 0}}\n",
    )
    world.reference("refunds", "A refund takes five days.", include="agent")
    world.reference("printing", "Photos are printed on matte paper.", include="agent")
    world.says(Reply(calls=(Call("windowpane__find_references", '{"query": "photos on matte paper"}'),)), "Five days.")
    endpoint = CountingEndpoint()
    transport = RecordingTransport(Routes(timeout=PATIENCE_S))
    try:
        async with httpx2.AsyncClient(transport=transport, timeout=PATIENCE_S) as client:
            world.selector = HybridSelector(ItemIndex(RemoteEmbedder(client, endpoint.url, "embedder", api_key="key1")))
            async with world.pane() as pane:
                session = await pane.sessions.create()
                await drain(pane.turn(session.id, MESSAGE))
                listed = await pane.turns.calls(session.id, 1)
                found = await pane.sessions.statistics(session.id)
                board = await pane.analytics.dashboard()
                of_turn = await pane.engine.calls.of_turn(SessionId(session.id), 1)
                seen = [call for call in of_turn if call.purpose == "embedding"]
                wires = [await pane.engine.calls.wire(SessionId(session.id), call) for call in seen]
    finally:
        endpoint.close()

    embedded = [call for call in listed.calls if call.purpose == "embedding"]
    assert [(call.model, call.step, call.attempt, call.outcome) for call in embedded] == [
        ("embedder", 0, 1, "complete"),
        ("embedder", 0, 1, "complete"),
        ("embedder", 1, 1, "complete"),
    ]
    bodies = [json.loads(wire.body or b"") for wire in wires if wire]
    assert sorted(map(json.dumps, bodies)) == sorted(map(json.dumps, endpoint.requests))
    assert any(MESSAGE in body["input"] for body in bodies)
    assert "key1" not in str(wires)
    tokens = sum(call.usage.input_tokens for call in embedded if call.usage)
    assert found.usage == listed.usage == Usage(tokens, 0)
    assert found.cost_usd == Decimal(3 * tokens) / 1_000_000
    # The two answers of the model in this process report nothing and are free.
    assert (found.call_count, found.calls_without_usage, found.calls_without_price) == (5, 0, 0)
    (row,) = [row for row in board.purposes if row.purpose == "embedding"]
    assert (row.calls, row.input_tokens, row.cost_usd, row.calls_without_usage) == (3, tokens, found.cost_usd, 0)


async def test_an_endpoint_that_redirects_is_told_with_its_new_address_and_no_key_follows() -> None:
    async with running() as elsewhere:
        location = f"{elsewhere.url}/v2/embeddings?token=planted"
        moved = Answer((b"moved",), 307, {"location": location, "content-length": "5"})
        transport = RecordingTransport(Routes(timeout=PATIENCE_S))
        async with running(moved) as server, httpx2.AsyncClient(transport=transport) as client:
            embedder = RemoteEmbedder(client, f"{server.url}/v1", "embedder", api_key="key1")
            with pytest.raises(EndpointError) as caught:
                await embedder.embed(["A refund takes five days."])

    assert elsewhere.asked == []
    assert str(caught.value) == (
        f"the embeddings endpoint {server.url}/v1/embeddings failed: it redirects to {elsewhere.url}/v2/embeddings"
        "?token=[redacted] (status 307); redirects are not followed, so that no key goes to another server: "
        "set embeddings_url to the new address"
    )


async def test_calls_that_go_on_after_the_reply_and_for_the_agents_items_are_in_the_ledger_too(tmp_path: Path) -> None:
    world = World(tmp_path / "agents")
    world.write(
        "agent.yaml",
        "model: scripted:test\nworking_context: false\nfinders: false\nmemory: {messages: 2}\n"
        "prices: {embedder: {input: 3, output: 0}}\n",
    )
    world.reference("refunds", "A refund takes five days.", include="agent")
    world.says(*(f"The answer to part {number} is no." for number in range(12)))
    endpoint = CountingEndpoint()
    transport = RecordingTransport(Routes(timeout=PATIENCE_S))
    try:
        async with httpx2.AsyncClient(transport=transport, timeout=PATIENCE_S) as client:
            embedder = RemoteEmbedder(client, endpoint.url, "embedder", api_key="key1")
            world.selector = HybridSelector(ItemIndex(embedder))
            async with world.pane(history=HistoryIndex(embedder)) as pane:
                session = SessionId((await pane.sessions.create()).id)
                for number in range(6):
                    await drain(pane.turn(session, f"What about part {number} of the refunds?"))
            async with world.pane() as pane:
                calls = await pane.engine.calls.of_session(session)
                embedded = [call for call in calls if call.purpose == "embedding"]
                wires = [await pane.engine.calls.wire(session, call) for call in embedded]
                found = await pane.sessions.statistics(session)
    finally:
        endpoint.close()

    def in_order(bodies: list[object]) -> list[str]:
        return sorted(json.dumps(body) for body in bodies)

    bodies = [json.loads(wire.body or b"") for wire in wires if wire]
    assert in_order(bodies) == in_order([*endpoint.requests])
    assert any("The answer to part 0 is no." in text for body in endpoint.requests for text in body["input"])
    # The last one may have been on its way when the engine was closed.
    assert {call.outcome for call in embedded[:-1]} == {"complete"}
    assert {call.turn for call in embedded} <= set(range(1, 7))
    told = [body for call, body in zip(embedded, bodies, strict=True) if call.usage]
    tokens = sum(10 * len(body["input"]) for body in told)
    assert (found.usage.input_tokens, found.cost_usd) == (tokens, Decimal(3 * tokens) / 1_000_000)
