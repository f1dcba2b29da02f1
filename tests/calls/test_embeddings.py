"""Calls to an embedding endpoint are calls too: those of a turn are in the ledger, counted and priced."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING

import httpx2
from tests.search.endpoint import Endpoint

from patience import PATIENCE_S
from windowpane.calls.transport import RecordingTransport, Routes
from windowpane.context.ids import SessionId
from windowpane.context.messages import Usage
from windowpane.models.scripted import Call
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.search.embedding.remote import RemoteEmbedder
from windowpane.search.index import ItemIndex
from windowpane.testing import Reply, World, drain

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
                first = (await pane.engine.calls.of_turn(SessionId(session.id), 1))[0]
                wire = await pane.engine.calls.wire(SessionId(session.id), first)
    finally:
        endpoint.close()

    embedded = [call for call in listed.calls if call.purpose == "embedding"]
    assert [(call.model, call.step, call.attempt, call.outcome) for call in embedded] == [
        ("embedder", 0, 1, "complete"),
        ("embedder", 1, 1, "complete"),
    ]
    assert wire is not None
    assert json.loads(wire.body or b"") == next(body for body in endpoint.requests if MESSAGE in body["input"])
    assert "key1" not in str(wire.head)
    tokens = sum(call.usage.input_tokens for call in embedded if call.usage)
    assert found.usage == listed.usage == Usage(tokens, 0)
    assert found.cost_usd == Decimal(3 * tokens) / 1_000_000
    # The two answers of the model in this process report nothing.
    assert (found.call_count, found.calls_without_usage) == (4, 2)
    (row,) = [row for row in board.purposes if row.purpose == "embedding"]
    assert (row.calls, row.input_tokens, row.cost_usd, row.calls_without_usage) == (2, tokens, found.cost_usd, 0)
