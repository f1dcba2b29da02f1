"""What keeps a server that others can reach from being abused: headers, origins, limits, and no secret anywhere."""

from __future__ import annotations

import json
import logging
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from server.guests import guarded
from server.place import EVENTS, events_in, new_session, problem, problem_in, served
from windowpane.server.middleware.limits import Allowance
from windowpane.serving.logs import configure_logging
from windowpane.testing import World

HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@pytest.mark.parametrize("path", ["/", "/push", "/api/sessions", "/api/nothing", "/openapi.json", "/healthz"])
async def test_every_answer_tells_browsers_to_be_careful(client: httpx2.AsyncClient, path: str) -> None:
    answer = await client.get(path)

    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "script-src 'unsafe-inline'" not in policy


async def test_refusals_carry_the_same_headers(world: World) -> None:
    async with guarded(world, hosts=["pane.example"], requests_per_minute=1) as place:
        wrong_host = await place.client.get("/healthz")
        own = {"Host": "pane.example"}
        answers = [await place.client.get("/healthz", headers=own) for _ in range(2)]

    assert [wrong_host.status_code, *(answer.status_code for answer in answers)] == [421, 200, 429]
    for answer in (wrong_host, *answers):
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS


async def test_no_other_origin_may_read_anything_by_default(client: httpx2.AsyncClient) -> None:
    headers = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}

    asked = await client.options("/api/sessions", headers=headers)
    read = await client.get("/api/sessions", headers=headers)

    assert asked.status_code == 405
    assert not [name for name in (*asked.headers, *read.headers) if name.startswith("access-control")]


async def test_origins_can_be_allowed_and_come_with_a_token_instead_of_the_cookie(world: World) -> None:
    async with guarded(world, origins=["https://app.example"]) as place:
        origin = {"Origin": "https://app.example"}
        wanted = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
        asked = await place.client.options("/api/sessions", headers=origin | wanted)
        made = await place.client.post("/api/sessions", json={}, headers=origin | place.headers("ann"))
        strange = await place.client.post(
            "/api/sessions", json={}, headers={"Origin": "https://app.example.evil"} | place.headers("ann")
        )

    assert asked.status_code == 200
    assert asked.headers["access-control-allow-origin"] == "https://app.example"
    assert made.status_code == 201
    assert made.headers["access-control-allow-origin"] == "https://app.example"
    assert {"Windowpane-Session", "Windowpane-Turn"} <= set(made.headers["access-control-expose-headers"].split(", "))
    assert "access-control-allow-credentials" not in made.headers
    assert problem_in(strange)["code"] == "foreign_origin"


@pytest.mark.parametrize("origin", ["http://127.0.0.1:1", "http://localhost", "https://127.0.0.1", "http://127.0.0.1"])
async def test_a_page_of_another_port_of_this_machine_is_another_site(client: httpx2.AsyncClient, origin: str) -> None:
    refused = await client.post("/api/sessions", json={}, headers={"Origin": origin})

    assert problem_in(refused) == problem(403, "foreign_origin", "pages of other sites may not change anything here")


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("pane.example", "https://pane.example"),
        ("pane.example", "https://pane.example:443"),
        ("pane.example:80", "http://pane.example"),
        ("PANE.example:8470", "http://pane.example:8470"),
    ],
)
async def test_the_servers_own_page_is_known_by_name_and_port(world: World, host: str, origin: str) -> None:
    async with served(world, hosts=["pane.example"]) as client:
        made = await client.post("/api/sessions", json={}, headers={"Host": host, "Origin": origin})

    assert made.status_code == 201


async def test_who_sends_too_many_requests_is_told_how_long_to_wait_and_others_are_not_concerned(world: World) -> None:
    async with guarded(world, requests_per_minute=3) as place:
        ann, bob = place.headers("ann", "read"), place.headers("bob", "read")
        statuses = [(await place.client.get("/api/sessions", headers=ann)).status_code for _ in range(3)]
        refused = await place.client.get("/api/sessions", headers=ann)
        others = [(await place.client.get("/api/sessions", headers=headers)).status_code for headers in (bob, {})]

    wait_s = int(refused.headers["retry-after"])
    assert statuses == [200, 200, 200]
    assert 1 <= wait_s <= 20
    assert problem_in(refused) == problem(
        429,
        "too_many_requests",
        f"too many requests; wait {wait_s} s and send fewer",
        facts={"retry_after_s": wait_s},
    )
    assert others == [200, 401]


async def test_guessing_tokens_counts_for_the_address_that_guesses(world: World) -> None:
    async with guarded(world, requests_per_minute=3) as place:
        guesses = [f"wp_aaaaaaaa_{n:043}" for n in range(4)]
        statuses = [
            (await place.client.get("/api/me", headers={"Authorization": f"Bearer {guess}"})).status_code
            for guess in guesses
        ]

    assert statuses == [200, 200, 200, 429]


@given(st.integers(1, 100), st.lists(st.floats(0, 30), max_size=60))
def test_nobody_gets_more_than_a_minutes_worth_beyond_the_steady_rate(per_minute: int, pauses: list[float]) -> None:
    now = 0.0
    allowance = Allowance(per_minute, clock=lambda: now)
    taken = 0
    for pause in pauses:
        now += pause
        wait_s = allowance.take("ann")
        taken += not wait_s
        if wait_s:
            now += wait_s * 1.001
            taken += not allowance.take("ann")

    assert taken <= per_minute + now * per_minute / 60 + 1


@contextmanager
def logging_as_a_server_does() -> Generator[None]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    configure_logging("debug", "json")
    try:
        yield
    finally:
        structlog.reset_defaults()
        root.handlers[:] = before
        root.setLevel(level)


async def test_planted_secrets_are_in_no_log_no_error_and_no_event(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = "sk-planted-0123456789abcdef"
    world.environ = {"OPENAI_API_KEY": key, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    world.write("agent.yaml", "model: openai:gpt-4o\nworking_context: false\n")
    with logging_as_a_server_does():
        async with guarded(world) as place:
            secret = place.token("ann")
            headers = {"Authorization": f"Bearer {secret}"}
            await place.client.post("/api/login", json={"token": secret})
            session = await place.session(headers)
            events: list[Any] = []
            path = f"/api/sessions/{session}/messages"
            async with place.client.stream("POST", path, json={"content": "Hi"}, headers=headers | EVENTS) as stream:
                events += [event.data async for event in events_in(stream)]
            answers = [
                await place.client.get(f"/api/sessions/{session}", headers=headers),
                await place.client.get(f"/api/sessions/{session}/turns/1", headers=headers),
                await place.client.get("/api/agents/pane", headers=headers),
                await place.client.get("/api/me", headers=headers),
                await place.client.get("/api/me", headers={"Authorization": f"Bearer {secret}x"}),
                await place.client.post(
                    "/api/login", content=f'{{"token": "{secret}"', headers={"Content-Type": "application/json"}
                ),
                await place.client.get(f"/api/{secret}", headers=headers),
                await place.client.get("/metrics", headers=headers),
            ]

    printed = capsys.readouterr()
    said = json.dumps(events) + "".join(answer.text for answer in answers if f"/api/{secret}" not in str(answer.url))
    assert events[-1]["outcome"] == "failed"
    for planted in (key, secret.split("_", 2)[2]):
        assert planted not in said
    assert key not in printed.err + printed.out
    # The client of this test logs too, and what it says is not the server's.
    lines = [json.loads(line) for line in printed.err.splitlines() if line.startswith("{") and '"httpx2"' not in line]
    lines = [line for line in lines if not line.get("logger", "").startswith("httpcore2")]
    assert [line for line in lines if secret in json.dumps(line) and f"/api/{secret}" not in line.get("path", "")] == []
    assert [line["session"] for line in lines if line.get("path") == path] == [session]


async def test_every_line_of_the_log_names_its_request_and_its_session(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.says()
    with logging_as_a_server_does():
        async with served(world) as client:
            session = await new_session(client)
            await client.post(
                f"/api/sessions/{session}/messages", json={"content": "Hi"}, headers={"X-Request-ID": "abc-1"}
            )

    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines() if '"request": "abc-1"' in line]
    assert [(line["event"], line["request"], line["session"]) for line in lines] == [
        ("turn.failed", "abc-1", session),
        ("http.request", "abc-1", session),
    ]
