from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import pytest
import structlog
from fastapi import FastAPI

from server.place import listening, new_session, problem, problem_in, served
from windowpane.server.middleware.access_log import AccessLog
from windowpane.testing import World


@pytest.fixture(autouse=True)
def logging_of_its_own() -> None:
    """Commands that ran in this process may have said what is logged."""
    structlog.reset_defaults()


@pytest.fixture
async def fragile() -> AsyncGenerator[httpx2.AsyncClient]:
    """A client of an app that breaks."""
    app = FastAPI()
    app.add_middleware(AccessLog)

    async def crash() -> None:
        raise RuntimeError("a secret of the inside")

    app.add_api_route("/crash", crash)
    async with listening(app) as address, httpx2.AsyncClient(base_url=address) as client:
        yield client


async def test_every_request_is_one_line_with_id_status_and_duration_and_without_what_was_said(world: World) -> None:
    world.says("My secret answer.")
    with structlog.testing.capture_logs() as lines:
        async with served(world) as client:
            session = await new_session(client)
            path = f"/api/sessions/{session}/messages"
            response = await client.post(
                path, json={"content": "My secret question"}, headers={"X-Request-ID": "abc-1"}
            )
            await client.get("/nothing%0Ahere", headers={"X-Request-ID": "forged\tid"})

    requests = [dict(line) for line in lines if line["event"] == "http.request"]
    assert [line | {"duration_ms": 0} for line in requests] == [
        entry | {"event": "http.request", "log_level": "info", "duration_ms": 0}
        for entry in (
            {"method": "POST", "path": "/api/sessions", "status": 201},
            {"method": "POST", "path": path, "status": 200},
            {"method": "GET", "path": "/nothing%0Ahere", "status": 404},
        )
    ]
    assert all(isinstance(line["duration_ms"], int) for line in requests)
    assert "secret" not in repr(lines)
    assert response.headers["x-request-id"] == "abc-1"


async def test_an_id_that_could_forge_a_line_is_replaced(client: httpx2.AsyncClient) -> None:
    response = await client.get("/healthz", headers={"X-Request-ID": "forged id=1"})

    assert len(response.headers["x-request-id"]) == 16


async def test_an_unexpected_error_is_logged_once_and_says_nothing_about_the_inside(
    fragile: httpx2.AsyncClient,
) -> None:
    with structlog.testing.capture_logs() as lines:
        response = await fragile.get("/crash", headers={"X-Request-ID": "order-7"})

    detail = "unexpected error; see the server log (request id order-7)"
    crashes: list[Any] = [line for line in lines if line["event"] == "http.crashed"]
    assert problem_in(response) == problem(500, "internal", detail)
    assert [(line["path"], line["exc_info"]) for line in crashes] == [("/crash", True)]
    assert [line["status"] for line in lines if line["event"] == "http.request"] == [500]
