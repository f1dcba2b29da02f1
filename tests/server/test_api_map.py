"""Every endpoint of the design documents is reachable here, and `api_map.md` says where."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from server.place import EVENTS, engine_of, events_in, listening, new_session, served
from windowpane.agents.folder import FolderAgents
from windowpane.client import Client
from windowpane.context.events import Delta, Recorded, TurnFinished
from windowpane.context.fetched import Fetched
from windowpane.engine import Engine
from windowpane.errors import RemoteError
from windowpane.fetch.base import RESULTS
from windowpane.fetch.pages import Pages
from windowpane.models.provider import PydanticModels
from windowpane.models.scripted import Call, Reply
from windowpane.server.app import create_app
from windowpane.testing import World, tool

MAP = Path(__file__).parent / "api_map.md"
GUIDE = Path(__file__).parents[2] / "docs" / "http.md"


@pytest.mark.parametrize("page", [MAP, GUIDE], ids=lambda page: page.name)
def test_every_path_that_a_page_names_is_there(world: World, page: Path) -> None:
    paths = set(create_app(engine_of(world)).openapi()["paths"])
    known = {re.sub(r"\{[^}]*\}", "{}", path.removeprefix("/api")) for path in paths}

    named = re.findall(
        r"`(?:(?:GET|POST|PUT|PATCH|DELETE)(?:, )?)+ ?(/(?:sessions|agents|files)[^`? ]*)", page.read_text()
    )

    assert named
    assert {re.sub(r"\{[^}]*\}", "{}", path) for path in named} <= known


@pytest.mark.spec("S4.52", "S4.53", "S4.56", "S4.58", "S4.59")
async def test_a_chat_is_answered_streamed_counted_and_cleared(world: World) -> None:
    world.toolbox.put("files", [tool("read", permission="not_required")])
    world.says("Hello.", Reply("Reading.", calls=(Call("files__read", "{}"),)), "Done.")
    async with served(world) as client:
        session = await new_session(client, settings={"mode": "thinking"})
        path = f"/api/sessions/{session}"
        metadata = {"mode": "thinking", "current_url": "https://example.org/a", "time_zone": "Europe/Paris"}
        await client.patch(path, json={"settings": metadata})
        answered = (await client.post(f"{path}/messages", json={"content": "Hi"})).json()
        async with client.stream("POST", f"{path}/messages", json={"content": "Read"}, headers=EVENTS) as response:
            streamed = [event.event async for event in events_in(response)]
        counted = (await client.get(f"{path}/statistics")).json()
        await client.post(f"{path}/pages", json={"url": "https://example.org/a", "text": "Kept."})
        cleared = (await client.delete(f"{path}/history")).json()

    assert (answered["text"], answered["request_context"]["settings"]["mode"]) == ("Hello.", "thinking")
    assert streamed[0] == "turn.started"
    assert streamed[-1] == "turn.finished"
    assert {"reply.delta", "tool.returned"} <= set(streamed)
    assert (counted["mode"], counted["message_count"], counted["turn_count"]) == ("thinking", 4, 2)
    assert counted["token_count"] > 0
    assert (cleared["message_count"], cleared["fetched"]) == (0, {"web_search": 0, "page": 1})


class Results:
    """A search engine with one result."""

    name = "results"

    async def search(self, query: str, *, limit: int = RESULTS) -> tuple[Fetched, ...]:
        return (Fetched(kind="web_search", url="https://example.org/tides", content="High at noon.", query=query),)

    async def aclose(self) -> None:
        return None


@pytest.mark.spec("S4.54", "S4.55")
async def test_research_searches_and_keeps_what_it_found(world: World) -> None:
    world.says("At noon.", "Still at noon.")
    engine = Engine(
        store=world.store,
        agents=FolderAgents(world.root),
        models=PydanticModels(scripts=[world.model], environ={}),
        toolbox=lambda: world.toolbox,
        pages=Pages(),
        search_engine=Results(),
    )
    async with listening(create_app(engine)) as url, Client(url) as client:
        session = (await client.sessions.create(settings={"mode": "research"})).id
        turn = await client.ask(session, "When is high tide?")
        streamed = [event async for event in client.turn(session, "And tomorrow?")]
        fetched = await client.sessions.fetched(session)

    assert turn.text == "At noon."
    assert "".join(event.text for event in streamed if isinstance(event, Delta)) == "Still at noon."
    assert fetched.counts.web_search == 1


@pytest.mark.spec("S4.57", "S4.60", "S4.43", "S4.47")
async def test_pages_are_sent_in_or_fetched_and_cleared(world: World) -> None:
    async with served(world) as client:
        session = await new_session(client)
        path = f"/api/sessions/{session}"
        pushed = await client.post(f"{path}/pages", json={"url": "https://example.org/", "html": "<p>Some text.</p>"})
        private = await client.post(f"{path}/pages/fetch", json={"url": "http://127.0.0.1/"})
        cleared = await client.delete(f"{path}/fetched", params={"kind": "page"})

    assert (pushed.status_code, pushed.json()["counts"]) == (201, {"web_search": 0, "page": 1})
    assert private.json()["code"] == "fetch_refused"
    assert cleared.json() == {"items": [], "counts": {"web_search": 0, "page": 0}, "remains": []}


@pytest.mark.spec("S4.40", "S4.42", "S4.44", "S4.45", "S4.48", "S4.49")
async def test_the_client_does_what_the_functions_of_the_context_manager_did(world: World) -> None:
    world.rule("tone", "Be kind.", include="always")
    world.says("Yes.", "No.")
    async with listening(create_app(engine_of(world))) as url, Client(url) as client:
        session = (await client.sessions.create(name="Talk", key="one")).id
        same = (await client.sessions.create(name="Talk", key="one")).id
        await client.sessions.update(session, {"system_prompt": "Answer in one word."})
        preview = await client.preview(session, "Really?")
        events = [event async for event in client.turn(session, "Really?")]
        record = await client.turns.get(session, 1)
        request = await client.turns.request(session, 1)
        debug = await client.turns.debug(session, 1)
        usage = await client.turns.usage(session, 1)
        context = await client.turns.context(session, 1)
        page = await client.sessions.messages(session)
        found = await client.sessions.list(query="really")
        copy = await client.sessions.import_(await client.sessions.export(session), name="Copy")
        fork = await client.sessions.fork(session, 1)
        statistics = await client.sessions.statistics(session)
        cleared = await client.sessions.clear_history(session)
        items = await client.agents.items("pane", type="rule")
        await client.sessions.delete(session)
        with pytest.raises(RemoteError, match="no session") as gone:
            await client.sessions.get(session)

    assert same == session
    assert [message.content for message in preview.messages] == [message.content for message in request.messages]
    assert any("Answer in one word." in message.content for message in request.messages)
    assert isinstance(events[-1], Recorded)
    assert isinstance(events[-1].event, TurnFinished)
    assert record.events == tuple(event for event in events if isinstance(event, Recorded))
    assert (record.text, context.turn, usage.turn, debug.message_count) == ("Yes.", 1, 1, 0)
    assert len(page.messages) == 2
    assert [view.id for view in found.sessions] == [session]
    assert (copy.name, copy.turn_count, fork.turn_count) == ("Copy", 1, 0)
    assert (statistics.turn_count, cleared.message_count) == (1, 0)
    assert [item.name for item in items.items] == ["tone"]
    assert (gone.value.status, gone.value.remote_code) == (404, "session_not_found")


async def test_a_turn_that_failed_is_sent_again_and_the_model_is_asked_once(world: World) -> None:
    world.says("Better.")
    async with served(world) as client:
        session = await new_session(client, settings={"model": "openai:nobody"})
        path = f"/api/sessions/{session}"
        failed = (await client.post(f"{path}/messages", json={"content": "Hi"})).json()
        await client.patch(path, json={"settings": {"model": "scripted:test"}})
        again = (await client.post(f"{path}/turns/1/retry")).json()
        request = (await client.get(f"{path}/turns/2/request")).json()
        answered = await client.post(f"{path}/turns/2/retry")
        missing = await client.post(f"{path}/turns/9/retry")

    assert failed["outcome"] == "failed"
    assert (again["turn"], again["outcome"], again["text"]) == (2, "completed", "Better.")
    assert [message["content"] for message in request["messages"] if message["role"] == "user"] == ["Hi"]
    assert (answered.status_code, missing.status_code) == (409, 404)


async def test_a_message_that_was_said_elsewhere_is_added_once(world: World) -> None:
    async with served(world) as client:
        session = await new_session(client)
        path = f"/api/sessions/{session}"
        key = {"Idempotency-Key": "m"}
        said = {"role": "assistant", "content": "We agreed on Tuesday."}
        await client.post(f"{path}/messages/record", json=said, headers=key)
        added = await client.post(f"{path}/messages/record", json=said, headers=key)
        messages = (await client.get(f"{path}/messages")).json()["messages"]
        summary = (await client.get(f"{path}/summary")).json()
        made = (await client.post(f"{path}/summary")).json()

    assert (added.status_code, added.json()["message_count"]) == (201, 1)
    assert [message["role"] for message in messages] == ["assistant"]
    assert summary == made == {"summary": None}
