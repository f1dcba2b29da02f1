"""A preview is the request that the turn then sends, and it needs no provider."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from fetch.site import page, running_site
from patience import PATIENCE_S
from windowpane.api.agents import FoundItems
from windowpane.context.ids import RequestId, SessionId
from windowpane.context.request import Request
from windowpane.engine import Engine
from windowpane.fetch.engines import open_engine_by_name
from windowpane.fetch.pages import Pages
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.search.embedding.minilm import MiniLM
from windowpane.search.embedding.vectors import VectorCache
from windowpane.search.history import HistoryIndex
from windowpane.search.index import ItemIndex
from windowpane.testing import World, drain, tool


def timeless(request: Request) -> Request:
    """Return a request without what no two requests share: its id and its moment."""
    return replace(
        request, context=replace(request.context, id=RequestId(""), timestamp=datetime.fromtimestamp(0, UTC))
    )


async def both(engine: Engine, session_id: SessionId, message: str) -> tuple[Request, Request]:
    """Return the preview of a message and the request that its turn records."""
    state = await engine.sessions.get(session_id)
    preview = await engine.preview(state.id, message)
    assert (await engine.sessions.get(state.id)).seq == state.seq
    await drain(engine.turn(state.id, message))
    return timeless(preview), timeless(await engine.past.request(state.id, state.turn_count + 1))


@pytest.mark.parametrize("mode", ["normal", "thinking", "research"])
async def test_a_preview_is_the_request_that_the_turn_records(world: World, tmp_path: Path, mode: str) -> None:
    embedder = MiniLM(tmp_path / "model")
    world.selector = HybridSelector(ItemIndex(embedder, VectorCache(tmp_path / "vectors")))
    settings = "model: scripted:test\nworking_context: false\nfinders: false\nmemory: {messages: 8}\n"
    world.write("agent.yaml", settings)
    world.rule("tone", "Answer in one sentence.", include="always")
    world.rule("tests", "Write a test before you fix a fault.", include="manual")
    world.reference("tides", "High tide is at noon and low tide at six.", include="agent")
    world.reference("paint", "The walls are painted twice.", include="agent")
    world.says(*["Noted."] * 12)
    async with world.engine(pages=Pages(), history=HistoryIndex(embedder), resume_after_s=0) as engine:
        session = await engine.sessions.create(settings={"mode": mode, "environment_hint": "Linux"})
        for number in range(9):
            await drain(engine.turn(session.id, f"The harbour light number {number} is red."))
        await engine.conversations.sum_up(session.id)
        # What was said is embedded in the background; the preview and the turn should both find it done.
        with anyio.fail_after(PATIENCE_S):
            vectors: dict[int, bytes] = {}
            while len(vectors) < 17:
                await anyio.sleep(0.01)
                vectors = await engine.store.vectors(session.id)
        await engine.fetched.push(session.id, "https://coast.example/tides", title="Tides", text="High at noon.")
        await engine.working.set(session.id, "files", [str(tmp_path / "plan.md")])
        world.toolbox.put("harbour", [tool("open_gate", description="Opens the gate.")])

        preview, sent = await both(engine, session.id, "Heed @rule:tests. When is high tide, and which light is red?")

    assert preview == sent
    assert {"summary", "resume", "fetched", "selected", "history"} <= {part.kind for part in sent.context.parts}
    assert [item.name for item in sent.context.items if item.sent] == ["tone", "tests", "open_gate", "tides"]


async def test_a_preview_of_research_says_that_the_turn_will_search_and_sends_the_draft_nowhere(world: World) -> None:
    world.says("At noon.")
    result = {"title": "Tides", "url": "https://coast.example/tides", "content": "High at noon.", "engine": "x"}
    body = json.dumps({"query": "q", "results": [result]})
    async with running_site({"/search": page(body, content_type="application/json")}) as site:
        searxng = open_engine_by_name("searxng", {"url": site.url}, {})
        async with world.engine(search_engine=searxng) as engine:
            session = await engine.sessions.create(settings={"mode": "research"})
            before = await engine.preview(session.id, "When is high tide?")
            asked_for_preview = len(site.visits)
            await drain(engine.turn(session.id, "When is high tide?"))
            sent = await engine.past.request(session.id, 1)

    assert asked_for_preview == 0
    assert before.context.degraded == (
        "web search not run for a preview: the turn searches the web first and adds up to 6 results",
    )
    assert sent.context.degraded == ()
    added = [message for message in sent.messages if message.part == "fetched"]
    assert [message.name for message in added] == ["web_search https://coast.example/tides"]
    # Apart from the results and from what they take, the two are one.
    assert before.messages == tuple(message for message in sent.messages if message not in added)
    assert before.tools == sent.tools
    assert before.context.items == sent.context.items
    assert before.context.settings == sent.context.settings


async def test_a_preview_and_a_search_need_no_key_of_the_provider(world: World) -> None:
    world.write("agent.yaml", "model: openai:gpt-5-mini\nworking_context: false\n")
    world.reference("tides", "High tide is at noon.", include="agent")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        preview = await engine.preview(session.id, "When is high tide?")
        found = await engine.agent_items.search("pane", "When is high tide?", [])
        await drain(engine.turn(session.id, "When is high tide?"))
        sent = await engine.past.request(session.id, 1)
        last = (await engine.conversations.messages(session.id))[-1]

    assert (preview.context.settings.model, preview.context.budget.window_tokens) == ("openai:gpt-5-mini", 400_000)
    assert preview.context.budget.window_source == "model"
    assert found == FoundItems(())
    assert timeless(preview) == timeless(sent)
    assert getattr(last, "content", "") == "openai:gpt-5-mini needs a key: set OPENAI_API_KEY"
