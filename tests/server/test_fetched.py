"""Fetched context and statistics over HTTP."""

from __future__ import annotations

import httpx2
import pytest

from engine.world import World
from server.place import new_session, problem_in, served, steady


@pytest.mark.spec("S4.44", "S4.46", "S4.57", "S4.59", "S4.60", "S4.63")
async def test_pages_come_in_are_counted_and_are_cleared(world: World) -> None:
    world.says("Hello there.")
    async with served(world) as client:
        session = await new_session(client)
        await client.post(f"/api/sessions/{session}/messages", json={"content": "Hi"})
        pushed = await client.post(
            f"/api/sessions/{session}/pages",
            json={"url": "https://example.org/tides", "title": "Tides", "text": "High tide is at noon."},
        )
        counted = (await client.get(f"/api/sessions/{session}/statistics")).json()
        cleared = await client.delete(f"/api/sessions/{session}/fetched", params={"kind": "page"})
        after = (await client.get(f"/api/sessions/{session}/statistics")).json()

    assert pushed.status_code == 201
    assert steady(pushed.json()) == {
        "items": [
            {
                "kind": "page",
                "url": "https://example.org/tides",
                "title": "Tides",
                "site_name": "example.org",
                "at": "…",
                "characters": 21,
                "tokens": 6,
            }
        ],
        "counts": {"web_search": 0, "page": 1},
    }
    assert counted == {
        "mode": "normal",
        "message_count": 2,
        "turn_count": 1,
        "token_count": 4,
        "fetched_context_counts": {"web_search": 0, "page": 1},
        "total_fetched_items": 1,
        "has_summary": False,
    }
    assert cleared.json() == {"items": [], "counts": {"web_search": 0, "page": 0}}
    assert (after["total_fetched_items"], after["message_count"]) == (0, 2)


async def test_a_private_address_is_not_fetched(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)

    refused = await client.post(f"/api/sessions/{session}/pages/fetch", json={"url": "http://169.254.169.254/latest"})

    assert (refused.status_code, problem_in(refused)["code"]) == (422, "fetch_refused")


@pytest.mark.spec("S3.1-S3.3", "S3.24", "S3.29", "S3.65")
async def test_what_a_turns_model_remembered_and_cost_can_be_read(world: World) -> None:
    world.says("Hello.", "Again.")
    async with served(world) as client:
        session = await new_session(client)
        for message in ("Hi", "Hi again"):
            await client.post(f"/api/sessions/{session}/messages", json={"content": message})
        debug = (await client.get(f"/api/sessions/{session}/turns/2/debug", params={"topic": "billing"})).json()
        usage = (await client.get(f"/api/sessions/{session}/turns/2/usage")).json()
        missing = await client.get(f"/api/sessions/{session}/turns/9/debug")

    text = "=== RECENT MESSAGES ===\nUSER: Hi\nASSISTANT: Hello.\n\nUSER: Hi again"
    assert debug == {
        "conversation_context": text,
        "message_count": 2,
        "window_count": 2,
        "has_summary": False,
        "context_length": len(text),
        "band": "short",
        "estimated_tokens": -(-len(text) // 4),
        "recent_sources_used": [],
        "available_related_documents": [],
        "warnings": ["Previous topic not in context: billing"],
    }
    assert len(usage["steps"]) == 1
    assert usage["steps"][0]["counted_tokens"] > 0
    assert (missing.status_code, problem_in(missing)["code"]) == (404, "turn_not_found")
