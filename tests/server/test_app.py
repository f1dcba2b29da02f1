from __future__ import annotations

from typing import Any

import httpx2

from engine.world import World
from server.place import engine_of, problem, problem_in, served
from windowpane.server.app import create_app


async def test_the_server_says_that_it_is_ready(client: httpx2.AsyncClient) -> None:
    response = await client.get("/healthz")

    assert (response.status_code, response.json()["status"]) == (200, "ok")


async def test_a_server_that_is_not_open_says_so(world: World) -> None:
    app = create_app(engine_of(world))
    transport = httpx2.ASGITransport(app)

    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        responses = [await client.get(path) for path in ("/healthz", "/", "/api/agents")]

    not_ready = problem(503, "store_unavailable", "the server is not ready")
    assert [problem_in(response) for response in responses] == [not_ready] * 3


async def test_the_first_page_needs_nothing_but_itself(world: World) -> None:
    world.write("agent.yaml", 'model: scripted:test\ndescription: "<script>alert(1)</script>"\n')
    async with served(world) as client:
        response = await client.get("/")

    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in response.headers["content-security-policy"]
    page = response.text
    assert '<a href="/api/agents/pane">pane</a>: &lt;script&gt;alert(1)&lt;/script&gt;' in page
    assert "<script" not in page
    assert "http:" not in page
    assert "https:" not in page
    for link in ("/api/agents", "/openapi.json"):
        assert f'href="{link}"' in page


async def test_the_page_of_a_server_without_agents_says_what_to_do(world: World) -> None:
    (world.root / "pane" / "agent.yaml").unlink()
    async with served(world) as client:
        page = (await client.get("/")).text

    assert "<code>windowpane init</code>" in page


async def test_pages_that_would_need_the_network_are_off(client: httpx2.AsyncClient) -> None:
    for path in ("/docs", "/redoc"):
        assert problem_in(await client.get(path))["status"] == 404


def test_every_operation_is_described_with_its_answers_and_its_problems(world: World) -> None:
    schema = create_app(engine_of(world)).openapi()

    assert sorted(schema["paths"]) == [
        "/api/agents",
        "/api/agents/{agent}",
        "/api/agents/{agent}/items",
        "/api/agents/{agent}/items/{type}/{name}",
        "/api/agents/{agent}/problems",
        "/api/agents/{agent}/search",
        "/api/agents/{agent}/servers",
        "/api/sessions",
        "/api/sessions/{session_id}",
        "/api/sessions/{session_id}/approvals",
        "/api/sessions/{session_id}/cancel",
        "/api/sessions/{session_id}/events",
        "/api/sessions/{session_id}/fetched",
        "/api/sessions/{session_id}/history",
        "/api/sessions/{session_id}/items",
        "/api/sessions/{session_id}/items/{type}/{name}",
        "/api/sessions/{session_id}/messages",
        "/api/sessions/{session_id}/observed",
        "/api/sessions/{session_id}/pages",
        "/api/sessions/{session_id}/pages/fetch",
        "/api/sessions/{session_id}/preview",
        "/api/sessions/{session_id}/statistics",
        "/api/sessions/{session_id}/turns/{turn}",
        "/api/sessions/{session_id}/turns/{turn}/context",
        "/api/sessions/{session_id}/turns/{turn}/debug",
        "/api/sessions/{session_id}/turns/{turn}/items/{type}/{name}",
        "/api/sessions/{session_id}/turns/{turn}/request",
        "/api/sessions/{session_id}/turns/{turn}/usage",
        "/healthz",
    ]
    for operation in (operation for path in schema["paths"].values() for operation in path.values()):
        assert operation["summary"]
        assert operation["description"]
        assert operation["tags"]
        for status, response in operation["responses"].items():
            if status == "204":
                assert "content" not in response
            elif operation["operationId"] == "watch_session" and status == "200":
                assert sorted(response["content"]) == ["text/event-stream"]
            elif status.startswith("2"):
                assert response["content"]["application/json"]["schema"]["$ref"]
            else:
                assert response["content"] == {
                    "application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}
                }


def test_the_description_has_no_loose_ends(world: World) -> None:
    schema = create_app(engine_of(world)).openapi()
    names = set(schema["components"]["schemas"])
    operations = [entry["operationId"] for path in schema["paths"].values() for entry in path.values()]

    assert {ref.removeprefix("#/components/schemas/") for ref in refs_in(schema)} <= names
    assert not [name for name in names if "__" in name]
    assert len(operations) == len(set(operations))
    stream = schema["paths"]["/api/sessions/{session_id}/messages"]["post"]["responses"]["200"]["content"]
    assert sorted(stream) == ["application/json", "text/event-stream"]


def refs_in(node: Any) -> set[str]:
    found: set[str] = set()
    if isinstance(node, dict):
        for key, value in node.items():  # pyright: ignore[reportUnknownVariableType]  # JSON of no known shape
            found |= {value} if key == "$ref" else refs_in(value)
    elif isinstance(node, list):
        for value in node:  # pyright: ignore[reportUnknownVariableType]  # JSON of no known shape
            found |= refs_in(value)
    return found
