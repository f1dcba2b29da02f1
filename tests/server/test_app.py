from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
from jsonschema import Draft202012Validator

from server.place import engine_of, problem, problem_in, served
from windowpane.server.app import create_app
from windowpane.testing import World


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


async def test_without_the_built_page_a_plain_one_needs_nothing_but_itself(world: World, tmp_path: Path) -> None:
    world.write("agent.yaml", 'model: scripted:test\ndescription: "<script>alert(1)</script>"\n')
    async with served(world, bundle=tmp_path / "nothing") as client:
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


async def test_the_plain_page_of_a_server_without_agents_says_what_to_do(world: World, tmp_path: Path) -> None:
    (world.root / "pane" / "agent.yaml").unlink()
    async with served(world, bundle=tmp_path / "nothing") as client:
        page = (await client.get("/")).text

    assert "<code>windowpane init</code>" in page


async def test_pages_that_would_need_the_network_are_off(client: httpx2.AsyncClient) -> None:
    assert problem_in(await client.get("/redoc"))["status"] == 404
    assert (await client.get("/docs")).headers["location"].endswith("/docs/guide/")


OTHERWISE = {
    "take_spans": "application/x-protobuf",
    "read_attachment_file": "application/octet-stream",
    "watch_session": "text/event-stream",
    "watch_agent": "text/event-stream",
    "run_agent": "text/event-stream",
    "read_metrics": "text/plain",
    "export_analytics": "text/csv",
}
"""What is not answered with JSON."""


def test_every_operation_is_described_with_its_answers_and_its_problems(world: World) -> None:
    schema = create_app(engine_of(world)).openapi()

    assert sorted(schema["paths"]) == [
        "/anthropic/v1/messages",
        "/anthropic/v1/messages/count_tokens",
        "/anthropic/v1/models",
        "/anthropic/v1/models/{model}",
        "/api/agents",
        "/api/agents/{agent}",
        "/api/agents/{agent}/ag-ui",
        "/api/agents/{agent}/evaluation",
        "/api/agents/{agent}/events",
        "/api/agents/{agent}/files/{file}",
        "/api/agents/{agent}/items",
        "/api/agents/{agent}/items/{type}/{name}",
        "/api/agents/{agent}/manifest",
        "/api/agents/{agent}/problems",
        "/api/agents/{agent}/prompts",
        "/api/agents/{agent}/prompts/{prompt}",
        "/api/agents/{agent}/search",
        "/api/agents/{agent}/servers",
        "/api/agents/{agent}/servers/{server}",
        "/api/agents/{agent}/suggestions",
        "/api/agents/{agent}/tests",
        "/api/agents/{agent}/tests/run",
        "/api/agents/{agent}/tuning",
        "/api/analytics",
        "/api/analytics/{listed}.csv",
        "/api/calls",
        "/api/costs",
        "/api/files",
        "/api/files/content",
        "/api/files/diff",
        "/api/files/list",
        "/api/login",
        "/api/logout",
        "/api/me",
        "/api/models",
        "/api/models/{model}",
        "/api/otlp/v1/traces",
        "/api/providers/{provider}/key",
        "/api/search",
        "/api/sessions",
        "/api/sessions/import",
        "/api/sessions/{session_id}",
        "/api/sessions/{session_id}/answers",
        "/api/sessions/{session_id}/approvals",
        "/api/sessions/{session_id}/attachments/{blob}",
        "/api/sessions/{session_id}/cache",
        "/api/sessions/{session_id}/calls",
        "/api/sessions/{session_id}/calls/{number}",
        "/api/sessions/{session_id}/calls/{number}/compare",
        "/api/sessions/{session_id}/cancel",
        "/api/sessions/{session_id}/events",
        "/api/sessions/{session_id}/excluded",
        "/api/sessions/{session_id}/excluded/{type}/{name}",
        "/api/sessions/{session_id}/export",
        "/api/sessions/{session_id}/fetched",
        "/api/sessions/{session_id}/fork",
        "/api/sessions/{session_id}/history",
        "/api/sessions/{session_id}/items",
        "/api/sessions/{session_id}/items/{type}/{name}",
        "/api/sessions/{session_id}/messages",
        "/api/sessions/{session_id}/messages/record",
        "/api/sessions/{session_id}/messages/{seq}",
        "/api/sessions/{session_id}/observed",
        "/api/sessions/{session_id}/pages",
        "/api/sessions/{session_id}/pages/fetch",
        "/api/sessions/{session_id}/preview",
        "/api/sessions/{session_id}/references",
        "/api/sessions/{session_id}/references/{name}",
        "/api/sessions/{session_id}/results",
        "/api/sessions/{session_id}/share",
        "/api/sessions/{session_id}/similar",
        "/api/sessions/{session_id}/statistics",
        "/api/sessions/{session_id}/summary",
        "/api/sessions/{session_id}/turns",
        "/api/sessions/{session_id}/turns/{turn}",
        "/api/sessions/{session_id}/turns/{turn}/calls",
        "/api/sessions/{session_id}/turns/{turn}/calls/{number}",
        "/api/sessions/{session_id}/turns/{turn}/compare",
        "/api/sessions/{session_id}/turns/{turn}/context",
        "/api/sessions/{session_id}/turns/{turn}/debug",
        "/api/sessions/{session_id}/turns/{turn}/explain",
        "/api/sessions/{session_id}/turns/{turn}/explain/{type}/{name}",
        "/api/sessions/{session_id}/turns/{turn}/items/{type}/{name}",
        "/api/sessions/{session_id}/turns/{turn}/replay",
        "/api/sessions/{session_id}/turns/{turn}/request",
        "/api/sessions/{session_id}/turns/{turn}/retry",
        "/api/sessions/{session_id}/turns/{turn}/test",
        "/api/sessions/{session_id}/turns/{turn}/usage",
        "/api/sessions/{session_id}/turns/{turn}/use",
        "/api/sessions/{session_id}/xray",
        "/api/xray",
        "/healthz",
        "/metrics",
        "/readyz",
        "/v1/chat/completions",
        "/v1/chat/completions/{completion_id}",
        "/v1/conversations",
        "/v1/conversations/{conversation_id}",
        "/v1/conversations/{conversation_id}/items",
        "/v1/conversations/{conversation_id}/items/{item_id}",
        "/v1/embeddings",
        "/v1/models",
        "/v1/models/{model}",
        "/v1/responses",
        "/v1/responses/input_tokens",
        "/v1/responses/{response_id}",
        "/v1/responses/{response_id}/cancel",
        "/v1/responses/{response_id}/input_items",
    ]
    ours = [path for name, path in schema["paths"].items() if not name.startswith(("/v1/", "/anthropic/"))]
    for operation in (operation for path in ours for operation in path.values()):
        assert operation["summary"]
        assert operation["description"]
        assert operation["tags"]
        for status, response in operation["responses"].items():
            if status == "204":
                assert "content" not in response
            elif operation["operationId"] in OTHERWISE and status == "200":
                assert OTHERWISE[operation["operationId"]] in response["content"]
            elif status.startswith("2"):
                assert response["content"]["application/json"]["schema"]["$ref"]
            else:
                assert response["content"] == {
                    "application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}
                }


def test_every_operation_has_an_example_that_its_schema_allows(world: World) -> None:
    schema = create_app(engine_of(world)).openapi()
    for path in schema["paths"].values():
        for operation in path.values():
            examples = list(examples_in(operation, schema))

            takes = operation.get("requestBody") or [
                one for one in operation.get("parameters", ()) if one.get("required")
            ]
            assert examples or not takes, operation["operationId"]
            for example, wanted in examples:
                whole = {**wanted, "components": schema["components"]}
                Draft202012Validator(whole).validate(example)  # pyright: ignore[reportUnknownMemberType]  # partly typed


def examples_in(operation: Any, schema: Any) -> Iterator[tuple[Any, Any]]:
    for parameter in operation.get("parameters", ()):
        if "example" in parameter:
            yield parameter["example"], parameter["schema"]
        for example in parameter["schema"].get("examples", ()):
            yield example, parameter["schema"]
    contents = [operation.get("requestBody", {}).get("content", {})]
    contents += [response.get("content", {}) for response in operation["responses"].values()]
    for content in contents:
        for media in content.values():
            wanted = media.get("schema", {})
            named = schema["components"]["schemas"].get(wanted.get("$ref", "").rpartition("/")[2], {})
            if "example" in media and "itemSchema" not in media:
                yield media["example"], wanted
            for example in named.get("examples", ()):
                yield example, wanted


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
