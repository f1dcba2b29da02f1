"""Fetched context and statistics over HTTP."""

from __future__ import annotations

import httpx2
import pytest

from fetch.site import page, running_site
from server.place import new_session, problem_in, served, steady
from windowpane.context.messages import Usage
from windowpane.fetch.pages import Pages
from windowpane.models.scripted import Call, Reply
from windowpane.testing import World, tool

NO_USAGE = {
    "input_tokens": 0,
    "output_tokens": 0,
    "cache_read_tokens": 0,
    "cache_write_tokens": 0,
    "cache_write_1h_tokens": 0,
}


async def test_search_results_of_ones_own_engine_come_in_and_reach_the_model(world: World) -> None:
    world.says("At noon.")
    result = {"kind": "web_search", "url": "https://example.org/tides", "content": "High at noon.", "query": "tides"}
    async with served(world) as client:
        session = await new_session(client)
        sent = await client.post(f"/api/sessions/{session}/fetched", json={"items": [result]})
        await client.post(f"/api/sessions/{session}/messages", json={"content": "When is high tide?"})

    assert (sent.status_code, sent.json()["counts"]) == (201, {"web_search": 1, "page": 0})
    assert any("High at noon." in message.content for message in world.model.calls[0].messages)


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
        "remains": [],
    }
    assert counted == {
        "mode": "normal",
        "message_count": 2,
        "turn_count": 1,
        "token_count": 4,
        "fetched_context_counts": {"web_search": 0, "page": 1},
        "total_fetched_items": 1,
        "has_summary": False,
        "usage": NO_USAGE,
        "cost_usd": "0",
        "call_count": 1,
        "calls_without_usage": 0,
        "calls_without_price": 0,
    }
    assert cleared.json() == {"items": [], "counts": {"web_search": 0, "page": 0}, "remains": []}
    assert (after["total_fetched_items"], after["message_count"]) == (0, 2)


async def test_a_private_address_is_not_fetched(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)

    refused = await client.post(f"/api/sessions/{session}/pages/fetch", json={"url": "http://169.254.169.254/latest"})

    assert (refused.status_code, problem_in(refused)["code"]) == (422, "fetch_refused")


@pytest.mark.spec("S3.1", "S3.2", "S3.24", "S3.29", "S3.65")
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
    assert steady(usage) == {
        "turn": 2,
        "model": "scripted:test",
        "calls": [
            {
                "model": "scripted:test",
                "counted_tokens": usage["calls"][0]["counted_tokens"],
                "reported_tokens": None,
                "residual_tokens": None,
                "usage": NO_USAGE,
                "latency_ms": usage["calls"][0]["latency_ms"] and "…",
                "cost_usd": "0",
            }
        ],
        "usage": NO_USAGE,
        "cost_usd": "0",
        "conversation": {
            "context_size": len(text),
            "estimated_tokens": usage["conversation"]["estimated_tokens"],
            "messages_stored": 2,
            "is_compressed": False,
            "cost_estimate": "0",
        },
    }
    assert usage["calls"][0]["counted_tokens"] > usage["conversation"]["estimated_tokens"] > 0
    assert (missing.status_code, problem_in(missing)["code"]) == (404, "turn_not_found")


@pytest.mark.spec("S4.43", "S4.60")
async def test_a_page_is_fetched_and_the_same_page_pushed_replaces_it(world: World) -> None:
    html = "<html><head><title>Tides</title></head><body><article><p>High tide is at noon.</p></article></body></html>"
    async with running_site({"/tides": page(html)}) as site, served(world, Pages(site.guard())) as client:
        session = await new_session(client)
        path = f"/api/sessions/{session}"
        fetched = (await client.post(f"{path}/pages/fetch", json={"url": f"{site.url}/tides"})).json()
        pushed = await client.post(
            f"{path}/pages", json={"url": f"{site.url}/tides", "html": html.replace("noon", "one o'clock")}
        )
        listed = (await client.get(f"{path}/fetched")).json()
        read = (await client.get(path)).json()

    assert [(one["kind"], one["title"], one["characters"]) for one in fetched["items"]] == [("page", "Tides", 21)]
    assert listed == pushed.json()
    assert [one["characters"] for one in listed["items"]] == [28]
    assert read["fetched"] == {"web_search": 0, "page": 1}


async def test_a_page_without_text_is_the_senders_mistake_and_one_that_does_not_come_is_not(world: World) -> None:
    async with (
        running_site({"/": page("nothing", status=500)}) as site,
        served(world, Pages(site.guard())) as client,
    ):
        session = await new_session(client)
        path = f"/api/sessions/{session}/pages"
        empty = await client.post(path, json={"url": "https://example.org/", "html": "<html></html>"})
        no_page = await client.post(path, json={"url": "javascript:alert(1)", "text": "x"})
        failed = await client.post(f"{path}/fetch", json={"url": f"{site.url}/"})
        kind = await client.delete(f"/api/sessions/{session}/fetched", params={"kind": "nothing"})

    assert [(one.status_code, problem_in(one)["code"]) for one in (empty, no_page, failed, kind)] == [
        (422, "invalid_input"),
        (422, "fetch_refused"),
        (502, "fetch_failed"),
        (422, "invalid_input"),
    ]


async def test_what_the_provider_counted_stands_beside_our_own_count(world: World) -> None:
    used = Usage(input_tokens=500, output_tokens=7, cache_read_tokens=100)
    world.toolbox.put("files", [tool("read", "contents", permission="not_required")])
    world.says(Reply("Look.", calls=(Call("files__read", "{}"),), usage=used), Reply("Done.", usage=used))
    async with served(world) as client:
        session = await new_session(client)
        await client.post(f"/api/sessions/{session}/messages", json={"content": "Hi"})
        usage = (await client.get(f"/api/sessions/{session}/turns/1/usage")).json()
        statistics = (await client.get(f"/api/sessions/{session}/statistics")).json()

    total = {
        "input_tokens": 1000,
        "output_tokens": 14,
        "cache_read_tokens": 200,
        "cache_write_tokens": 0,
        "cache_write_1h_tokens": 0,
    }
    assert usage["usage"] == statistics["usage"] == total
    assert [call["reported_tokens"] for call in usage["calls"]] == [500, 500]
    assert [call["counted_tokens"] + call["residual_tokens"] for call in usage["calls"]] == [500, 500]
    assert usage["calls"][0]["counted_tokens"] < usage["calls"][1]["counted_tokens"]
