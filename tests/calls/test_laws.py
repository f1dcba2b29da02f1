"""The ledger tells the truth however a request came about, and every reader of it tells the same."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from calls.laws import PRICES, assert_laws
from calls.test_ledger import PROVIDERS
from files.samples import png
from server.place import EVENTS, events_in, new_session, served
from windowpane.context.messages import Usage
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, tool
from wire import anthropic_messages, openai_chat, openai_responses
from wire.reply import WireCall, WireReply
from wire.server import Answer, WireServer, running

NAMES = ("openai", "responses", "anthropic")
IMAGE = base64.b64encode(png(64, 48, noise=300)).decode()
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "agents", store=SQLiteStore(tmp_path / "windowpane.db"))
    world.rule("tone", "Be brief: “short” sentences. " * 20, include="always")
    world.toolbox.put("files", [tool("read", "The file says: “ä 中”."), tool("list", "a, b", permission="never")])
    return world


@asynccontextmanager
async def serving(
    world: World, name: str, *answers: WireReply | Answer
) -> AsyncGenerator[tuple[httpx2.AsyncClient, WireServer]]:
    provider = PROVIDERS[name]
    prices = f"prices:\n  {provider.model}: {PRICES}\n"
    world.write("agent.yaml", f"model: {provider.model}\nworking_context: false\nfinders: false\n{prices}")
    wired = [provider.answer(answer) if isinstance(answer, WireReply) else answer for answer in answers]
    async with running(*wired) as server:
        world.environ = provider.environ(server.url)
        async with served(world) as http:
            yield http, server


def _used(name: str, replies: Sequence[WireReply]) -> Usage:
    """Return what answers report together. Anthropic alone counts cached tokens beside the input."""
    used = Usage()
    for reply in replies:
        written = reply.written_tokens if name == "anthropic" else 0
        beside = reply.cached_tokens + written if name == "anthropic" else 0
        hour = min(reply.written_1h_tokens, written)
        used += Usage(reply.input_tokens + beside, reply.output_tokens, reply.cached_tokens, written, hour)
    return used


async def _say(http: httpx2.AsyncClient, session: str, message: str, **more: Any) -> str:
    answer = await http.post(f"/api/sessions/{session}/messages", json={"content": message, **more})
    return answer.json()["outcome"]


@pytest.mark.parametrize("name", NAMES)
async def test_each_token_costs_what_its_place_in_the_cache_costs(world: World, name: str) -> None:
    replies = (
        WireReply(
            ("One.",), input_tokens=900, output_tokens=9, cached_tokens=300, written_tokens=200, written_1h_tokens=150
        ),
        WireReply(calls=(WireCall("c1", "files__list"),), input_tokens=1001, cached_tokens=777, written_tokens=33),
        WireReply(("Two.",), input_tokens=1101, output_tokens=11, cached_tokens=1007),
    )
    async with serving(world, name, *replies) as (http, server):
        session = await new_session(http)
        outcomes = [await _say(http, session, message) for message in ("Hello “ä”", "List them")]
        await assert_laws(http, server, [session], _used(name, replies))

    assert outcomes == ["completed", "completed"]


@pytest.mark.parametrize("name", NAMES)
async def test_a_turn_that_waits_for_decisions_is_whole_over_its_requests(world: World, name: str) -> None:
    reads = [WireCall(f"c{number}", "files__read", ('{"path": "ä"}',)) for number in (1, 2)]
    replies = (
        WireReply(("A.",), calls=(reads[0], WireCall("c3", "files__list")), input_tokens=100),
        WireReply(("B.",), calls=(reads[1],), input_tokens=200),
        WireReply(("C.",), input_tokens=300),
        WireReply(("D.",), input_tokens=400),
    )
    async with serving(world, name, *replies) as (http, server):
        session = await new_session(http)
        await _say(http, session, "Read")
        for decisions in ({"c1": "allow_once"}, {"c2": "deny"}):
            await http.post(f"/api/sessions/{session}/approvals", json={"decisions": decisions})
        assert await _say(http, session, "Thanks") == "completed"
        await assert_laws(http, server, [session], _used(name, replies))


@pytest.mark.parametrize("name", NAMES)
async def test_a_stopped_turn_has_what_was_reported_until_then(world: World, name: str) -> None:
    half = WireReply(("So far.", " And on."), input_tokens=500, output_tokens=20)
    frames = {
        "openai": openai_chat.frames(half)[:2],
        "responses": openai_responses.frames(half)[:5],
        "anthropic": anthropic_messages.frames(half)[:4],
    }[name]
    later = WireReply(("Later.",), input_tokens=600)
    async with serving(world, name, Answer((*frames, "until_gone")), later) as (http, server):
        session = await new_session(http)
        path = f"/api/sessions/{session}"
        async with http.stream("POST", f"{path}/messages", json={"content": "Hi"}, headers=EVENTS) as response:
            async for event in events_in(response):
                if event.event == "reply.delta":
                    await http.post(f"{path}/cancel")
        assert await _say(http, session, "Again") == "completed"
        reported = Usage(500, 1) if name == "anthropic" else Usage()
        unknown = 0 if name == "anthropic" else 1
        await assert_laws(http, server, [session], reported + _used(name, [later]), without_usage=unknown)


def _chat(**more: Any) -> tuple[str, dict[str, Any]]:
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}"}}
    messages = [
        {"role": "system", "content": "Answer in English."},
        {"role": "user", "content": "1 + 1?"},
        {"role": "assistant", "content": "2."},
        {"role": "user", "content": [{"type": "text", "text": "And “this”?"}, picture]},
    ]
    return "/v1/chat/completions", {"model": "pane", "messages": messages, **more}


def _responses(**more: Any) -> tuple[str, dict[str, Any]]:
    picture = {"type": "input_image", "image_url": f"data:image/png;base64,{IMAGE}"}
    items = [
        {"role": "user", "content": "1 + 1?"},
        {"role": "assistant", "content": "2."},
        {"role": "user", "content": [{"type": "input_text", "text": "And “this”?"}, picture]},
    ]
    return "/v1/responses", {"model": "pane", "input": items, "store": False, **more}


def _messages(**more: Any) -> tuple[str, dict[str, Any]]:
    source = {"type": "base64", "media_type": "image/png", "data": IMAGE}
    said = [
        {"role": "user", "content": "1 + 1?"},
        {"role": "assistant", "content": "2."},
        {"role": "user", "content": [{"type": "text", "text": "And “this”?"}, {"type": "image", "source": source}]},
    ]
    return "/anthropic/v1/messages", {"model": "pane", "max_tokens": 200, "messages": said, **more}


PLACE: dict[str, Any] = {"name": "place", "schema": SCHEMA}
DOORS: dict[str, Callable[[], tuple[str, dict[str, Any]]]] = {
    "chat": _chat,
    "chat with a schema": lambda: _chat(response_format={"type": "json_schema", "json_schema": PLACE}),
    "chat, streamed": lambda: _chat(stream=True),
    "responses": _responses,
    "responses with a schema": lambda: _responses(text={"format": {"type": "json_schema", **PLACE}}),
    "messages": _messages,
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", NAMES)
async def test_what_a_caller_says_was_answered_elsewhere_is_no_call_of_this_server(
    world: World, name: str, door: str
) -> None:
    path, body = DOORS[door]()
    replies = (
        WireReply(calls=(WireCall("c1", "files__list"),), input_tokens=700, cached_tokens=100),
        WireReply(('{"city": "Ulm"}',), input_tokens=800, cached_tokens=600),
    )
    async with serving(world, name, *replies) as (http, server):
        answer = await http.post(path, json=body)
        assert answer.status_code == 200, answer.text
        session = answer.headers["windowpane-session"]
        await assert_laws(http, server, [session], _used(name, replies))
        spent = (await http.get("/api/analytics")).json()["spent"]

    assert (spent["turns"], spent["turns_without_price"]) == (1, 0)


async def test_a_fork_adds_to_analytics_what_it_asks_itself(world: World) -> None:
    replies = tuple(WireReply((f"{number}.",), input_tokens=1000 + number) for number in range(4))
    async with serving(world, "openai", *replies) as (http, _):
        session = await new_session(http)
        file = {"name": "cat.png", "data": IMAGE}
        await _say(http, session, "What is this?", attachments=[file])
        await _say(http, session, "And now?")
        fork, again = [
            (await http.post(f"/api/sessions/{origin}/fork", json={"turn": 2})).json()["id"]
            for origin in (session,) * 2
        ]
        copied = (await http.get("/api/analytics")).json()
        await _say(http, fork, "And now?")
        inner = (await http.post(f"/api/sessions/{fork}/fork", json={"turn": 3})).json()["id"]
        await _say(http, inner, "And then?")
        whole = (await http.get("/api/analytics")).json()
        listed = [(await http.get(f"/api/sessions/{each}/calls")).json() for each in (session, fork, again, inner)]

    assert [len(each["calls"]) for each in listed] == [2, 2, 1, 3]
    assert [
        (told["spent"]["turns"], told["spent"]["calls"], told["spent"]["input_tokens"]) for told in (copied, whole)
    ] == [
        (2, 2, 2001),
        (4, 4, 4006),
    ]
    assert sum(part["tokens"] for part in whole["parts"]) == whole["spent"]["request_tokens"]


async def test_an_import_of_a_session_that_is_here_adds_what_it_asks_itself(world: World) -> None:
    replies = tuple(WireReply((f"{number}.",), input_tokens=1000 + number) for number in range(4))
    async with serving(world, "openai", *replies) as (http, server):
        session = await new_session(http)
        await _say(http, session, "One?")
        await _say(http, session, "Two?")
        document = (await http.get(f"/api/sessions/{session}/export")).json()
        fork = (await http.post(f"/api/sessions/{session}/fork", json={"turn": 2})).json()["id"]
        forked = (await http.get(f"/api/sessions/{fork}/export")).json()
        copies = [(await http.post("/api/sessions/import", json=each)).json() for each in (document, document, forked)]
        copied = (await http.get("/api/analytics")).json()["spent"]
        await http.delete(f"/api/sessions/{copies[1]['id']}")
        await _say(http, copies[0]["id"], "Three?")
        await _say(http, copies[2]["id"], "Four?")
        whole = (await http.get("/api/analytics")).json()["spent"]
        listed = [(await http.get(f"/api/sessions/{copies[at]['id']}/calls")).json()["calls"] for at in (0, 2)]

    assert len(server.asked) == 4
    assert [(told["turns"], told["calls"], told["input_tokens"]) for told in (copied, whole)] == [
        (2, 2, 2001),
        (4, 4, 4006),
    ]
    assert [len(calls) for calls in listed] == [3, 2]
