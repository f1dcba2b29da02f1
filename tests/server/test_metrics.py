from __future__ import annotations

import platform
import re
import shutil
from functools import partial
from pathlib import Path

import anyio
import httpx2
import pytest

from server.guests import guarded
from server.place import new_session, problem, problem_in, served
from windowpane import __version__
from windowpane.context.messages import Usage
from windowpane.models.scripted import Call, Reply
from windowpane.testing import World, tool


async def numbers(client: httpx2.AsyncClient, **headers: str) -> dict[str, float]:
    response = await client.get("/metrics", headers=headers)
    assert response.headers["content-type"].startswith("text/plain; version=")
    lines = (line.rpartition(" ") for line in response.text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


async def test_turns_model_calls_tool_calls_and_requests_are_counted(world: World) -> None:
    world.toolbox.put("files", [tool("read", "empty", permission="not_required")])
    calls = (Call("files__read", "{}", id="c1"),)
    world.says(Reply("Let me look.", calls=calls, usage=Usage(11, 7)), Reply("It is empty.", usage=Usage(20, 4)))
    async with served(world) as client:
        session = await new_session(client)
        await client.post(f"/api/sessions/{session}/messages", json={"content": "Hi"})
        await client.get("/api/sessions/ses_planted")
        await client.get("/planted")
        found = await numbers(client)

    model = 'model="scripted:test",provider="scripted"'
    expected = {
        'windowpane_http_requests_total{method="POST",route="/api/sessions",status="201"}': 1,
        'windowpane_http_requests_total{method="POST",route="/api/sessions/{session_id}/messages",status="200"}': 1,
        'windowpane_http_requests_total{method="GET",route="/api/sessions/{session_id}",status="404"}': 1,
        'windowpane_http_requests_total{method="GET",route="(none)",status="404"}': 1,
        'windowpane_turns_total{agent="pane",outcome="completed"}': 1,
        'windowpane_turn_seconds_count{agent="pane",outcome="completed"}': 1,
        f'windowpane_model_calls_total{{error="",{model}}}': 2,
        f"windowpane_model_call_seconds_count{{{model}}}": 2,
        f'windowpane_tokens_total{{kind="input",{model}}}': 31,
        f'windowpane_tokens_total{{kind="output",{model}}}': 11,
        'windowpane_tool_calls_total{error="",server="files",tool="read"}': 1,
        'windowpane_tool_call_seconds_count{server="files",tool="read"}': 1,
        **{f'windowpane_running{{operation="{each}"}}': 0 for each in ("turn", "model_call", "tool_call")},
        f'windowpane_build_info{{python="{platform.python_version()}",version="{__version__}"}}': 1,
        "windowpane_selection_seconds_count": 1,
    }
    assert {name: found.get(name) for name in expected} == expected
    assert found["windowpane_append_seconds_count"] >= 5
    assert not [name for name in found if session in name or "planted" in name]


async def test_the_documentation_lists_every_number_with_its_labels(world: World) -> None:
    page = (Path(__file__).parents[2] / "docs/operations.md").read_text("utf-8")
    listed = {
        name: set(re.findall(r"`(\w+)`", re.split(r"[;:(]", labels)[0]))
        for names, labels in re.findall(r"^\| (`windowpane_.*?) \| ?(.*?) ?\|$", page, re.MULTILINE)
        for name in re.findall(r"`(windowpane_\w+)`", names)
    }
    world.toolbox.put("files", [tool("read", "empty", permission="not_required")])
    world.says(Reply("", calls=(Call("files__read", "{}", id="c1"),)), "It is empty.")
    async with served(world) as client:
        session = await new_session(client)
        await client.post(f"/api/sessions/{session}/messages", json={"content": "Hi"})
        text = (await client.get("/metrics")).text
    seen = {
        re.sub("_(bucket|count|sum)$", "", name): set(re.findall(r'(\w+)="', labels)) - {"le"}
        for name, labels in re.findall(r"^(windowpane_\w+(?<!_created))(\{.*\})? ", text, re.MULTILINE)
    }

    assert sorted(listed) == sorted(re.findall(r"^# HELP (windowpane_\w+(?<!_created)) ", text, re.MULTILINE))
    assert {name: listed[name] for name in seen} == seen


async def test_streams_are_counted_while_they_are_open_and_not_among_the_latencies(world: World) -> None:
    world.says("Hello.")
    route = 'route="/api/sessions/{session_id}/messages"'
    async with served(world) as client:
        session = await new_session(client)
        before = await numbers(client)
        streamed = await client.post(
            f"/api/sessions/{session}/messages", json={"content": "Hi"}, headers={"accept": "text/event-stream"}
        )
        after = await numbers(client)

    assert streamed.headers["content-type"].startswith("text/event-stream")
    assert f"windowpane_http_streams_open{{{route}}}" not in before
    assert after[f"windowpane_http_streams_open{{{route}}}"] == 0
    assert after[f"windowpane_http_stream_seconds_count{{{route}}}"] == 1
    assert after[f'windowpane_http_requests_total{{method="POST",{route},status="200"}}'] == 1
    assert f'windowpane_http_request_seconds_count{{method="POST",{route}}}' not in after


async def test_a_turn_that_runs_is_counted_while_it_does(world: World) -> None:
    turns, running = (f'windowpane_running{{operation="{each}"}}' for each in ("turn", "model_call"))
    during: dict[str, float] = {}
    released = anyio.Event()
    world.says(Reply("Done.", after=released))
    async with served(world) as client:
        session = await new_session(client)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(client.post, f"/api/sessions/{session}/messages", json={"content": "Hi"}))
            while during.get(running, 0) != 1:
                during = await numbers(client)
            released.set()
        after = await numbers(client)

    assert (during[turns], after[turns], after[running]) == (1, 0, 0)


async def test_a_method_that_the_web_does_not_use_is_not_a_new_number(client: httpx2.AsyncClient) -> None:
    await client.request("PROPFIND", "/api/sessions")

    found = await numbers(client)

    assert found['windowpane_http_requests_total{method="other",route="/api/sessions",status="405"}'] == 1


async def test_numbers_are_for_those_who_manage(world: World) -> None:
    async with guarded(world) as place:
        refused = await place.client.get("/metrics", headers=place.headers("ann", "chat"))
        found = await numbers(place.client, **place.headers("prometheus", "manage"))

    detail = "this needs a token with the scope 'manage'; yours does not have it"
    assert problem_in(refused) == problem(403, "scope_needed", detail, facts={"scope": "manage"})
    assert found['windowpane_http_requests_total{method="GET",route="/metrics",status="403"}'] == 1


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_anybody_may_ask_how_the_server_is(world: World, path: str) -> None:
    async with guarded(world) as place:
        response = await place.client.get(path)

    assert (response.status_code, response.json()["status"]) == (200, {"/healthz": "ok", "/readyz": "ready"}[path])


async def test_a_server_whose_agents_cannot_be_read_is_not_ready(world: World) -> None:
    async with served(world) as client:
        shutil.rmtree(world.root)
        ready, healthy = await client.get("/readyz"), await client.get("/healthz")

    none = "there is no agent that can be read; `windowpane init` writes one"
    assert problem_in(ready) == problem(503, "store_unavailable", none)
    assert healthy.status_code == 200


async def test_a_server_whose_store_cannot_be_reached_is_not_ready(world: World) -> None:
    async with served(world) as client:
        await world.store.__aexit__(None, None, None)
        ready = await client.get("/readyz")

    assert problem_in(ready) == problem(503, "store_unavailable", "the store cannot be reached")
