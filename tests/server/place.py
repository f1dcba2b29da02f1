"""A server for tests: the real app on a real socket, in the test's own event loop, and a real client."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, cast

import anyio
import httpx2
import uvicorn
from fastapi import FastAPI

from patience import PATIENCE_S
from windowpane.agents.folder import FolderAgents
from windowpane.engine import Engine
from windowpane.fetch.pages import Pages
from windowpane.models.provider import PydanticModels
from windowpane.models.setup.keys import KeptKeys
from windowpane.search.base import Nearness
from windowpane.server.app import create_app
from windowpane.serving import sockets
from windowpane.testing import World

VOLATILE = ("at", "created_at", "updated_at", "timestamp", "latency_ms", "version", "folder")
EVENTS = {"Accept": "text/event-stream"}


def engine_of(world: World, pages: Pages | None = None, nearness: Nearness | None = None, **options: Any) -> Engine:
    return Engine(
        store=world.store,
        agents=FolderAgents(world.root),
        models=PydanticModels(scripts=[world.model], environ=world.environ, keys=KeptKeys(world.root.parent / "keys")),
        toolbox=lambda: world.toolbox,
        selector=world.selector,
        pages=pages or Pages(),
        nearness=nearness,
        **options,
    )


@asynccontextmanager
async def served(
    world: World, pages: Pages | None = None, nearness: Nearness | None = None, **options: Any
) -> AsyncGenerator[httpx2.AsyncClient]:
    async with (
        listening(create_app(engine_of(world, pages, nearness), **options)) as address,
        httpx2.AsyncClient(base_url=address, timeout=PATIENCE_S) as client,
    ):
        yield client


@asynccontextmanager
async def listening(app: FastAPI) -> AsyncGenerator[str]:
    config = uvicorn.Config(app, ws="websockets-sansio", log_config=None, access_log=False, timeout_graceful_shutdown=5)
    server = _Server(config)
    with sockets.listening("127.0.0.1", 0) as listener:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listener])
            await server.ready.wait()
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            server.should_exit = True


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = anyio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def steady(body: Any) -> Any:
    """Return a body with everything that differs from run to run replaced by dots."""
    if isinstance(body, Mapping):
        named = cast("Mapping[str, Any]", body)
        return {key: "…" if key in VOLATILE and value else steady(value) for key, value in named.items()}
    if isinstance(body, list):
        return [steady(entry) for entry in cast("list[Any]", body)]
    return body


def problem(status: int, code: str, detail: str, **more: Any) -> dict[str, Any]:
    titles = {400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 409: "Conflict", 403: "Forbidden"}
    titles |= {401: "Unauthorized", 429: "Too Many Requests"}
    titles |= {413: "Content Too Large", 415: "Unsupported Media Type", 422: "Unprocessable Content"}
    titles |= {421: "Misdirected Request", 500: "Internal Server Error", 503: "Service Unavailable"}
    return {
        "type": f"urn:windowpane:problem:{code}",
        "title": titles[status],
        "status": status,
        "detail": detail,
        "code": code,
        "facts": {},
        "errors": [],
        **more,
    }


def problem_in(response: httpx2.Response) -> Any:
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert body["status"] == response.status_code
    return body


async def new_session(client: httpx2.AsyncClient, **body: Any) -> str:
    response = await client.post("/api/sessions", json=body)
    assert response.status_code == 201, response.text
    return response.json()["id"]


@dataclass(frozen=True)
class SentEvent:
    """One server-sent event as it came over the wire."""

    event: str
    id: str | None
    data: Any


async def events_in(response: httpx2.Response) -> AsyncIterator[SentEvent]:
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield SentEvent(fields["event"], fields.get("id"), json.loads(fields["data"]))
            fields = {}
