"""Whatever is sent, the server answers, and what it cannot use is a problem of the sender."""

from __future__ import annotations

import json
from typing import Any

import anyio
import httpx2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from server.place import new_session, problem_in

WORDS = st.sampled_from(
    ["content", "wait_s", "decisions", "type", "name", "server", "agent", "settings", "rule", "tool", "deny", "search"]
)
# Surrogates and control characters included: JSON can carry them as escapes.
TEXTS = WORDS | st.text(st.characters(exclude_categories=()), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)
OPERATIONS = st.sampled_from(
    [
        ("POST", "/api/sessions"),
        ("PATCH", "/api/sessions/{id}"),
        ("POST", "/api/sessions/{id}/messages"),
        ("POST", "/api/sessions/{id}/preview"),
        ("POST", "/api/sessions/{id}/approvals"),
        ("POST", "/api/sessions/{id}/items"),
        ("POST", "/api/sessions/{id}/observed"),
        ("POST", "/api/sessions/{id}/pages"),
        ("POST", "/api/agents/pane/search"),
        ("POST", "/api/agents/pane/items"),
        ("POST", "/api/sessions/{id}/fork"),
        ("POST", "/api/sessions/{id}/messages/record"),
        ("POST", "/api/sessions/import"),
    ]
)
SHAPES = st.fixed_dictionaries(
    {},
    optional={
        "content": VALUES,
        "settings": st.dictionaries(st.sampled_from(["model", "temperature", "search", "mode", "time_zone"]), VALUES),
        "name": TEXTS,
        "type": st.sampled_from(["rule", "tool"]),
        "decisions": st.dictionaries(TEXTS, st.sampled_from(["deny", "allow_once"])),
        "context": st.dictionaries(TEXTS | st.sampled_from(["files", "ports"]), VALUES, max_size=3),
        "setContext": st.fixed_dictionaries({"setName": VALUES, "items": VALUES}, optional={"mode": VALUES}),
        "paths": VALUES,
        "url": TEXTS | st.just("https://example.org"),
        "text": VALUES,
        "query": TEXTS,
        "items": VALUES,
    },
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(operation=OPERATIONS, body=VALUES | SHAPES)
async def test_any_json_is_taken_or_is_a_problem(
    client: httpx2.AsyncClient, operation: tuple[str, str], body: Any
) -> None:
    session = await new_session(client)
    method, path = operation

    response = await client.request(
        method,
        path.format(id=session),
        content=json.dumps(body),
        headers={"Content-Type": "application/json"},
    )

    assert response.status_code < 500, response.text
    if response.status_code >= 400:
        problem_in(response)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200))
async def test_a_name_is_kept_as_it_was_but_for_the_space_around_it(client: httpx2.AsyncClient, name: str) -> None:
    session = await new_session(client)

    response = await client.patch(f"/api/sessions/{session}", json={"name": name})

    assert response.json()["name"] == name.strip()


TARGETS = (
    "/api/agents/../../../etc/passwd",
    "/api/agents/%2e%2e/%2e%2e/items",
    "/api/agents/%",
    "/api/agents/%zz/items/rule/%c3%28",
    "/api/sessions/%ff/messages?before=%ff",
    "/api/sessions?limit=%00",
    "/api/sessions?cursor=%00.%00",
    "/api/sessions?cursor=1.%ff&agent=%00",
    "//evil.example/api/agents/",
    "/api//agents",
    "http://evil.example/",
)


async def test_no_address_is_more_than_the_server_can_bear(client: httpx2.AsyncClient) -> None:
    for target in TARGETS:
        async with await anyio.connect_tcp("127.0.0.1", client.base_url.port or 0) as stream:
            await stream.send(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
            status = int((await stream.receive()).split()[1])

        assert status in (200, 400, 404, 422), target
    assert (await client.get("/healthz")).status_code == 200
