"""Every operation that the API describes, tried by everybody who must not: a new one cannot be forgotten.

What is walked comes from the OpenAPI document, and from the app's routes for what that cannot describe. An operation
that does not say which scope it needs fails here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute, APIWebSocketRoute
from starlette.routing import BaseRoute
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from server.guests import Place, guarded
from server.place import engine_of
from windowpane.callers import SCOPES, Scope
from windowpane.server.app import create_app
from windowpane.server.dependencies import OpenPane
from windowpane.testing import World

FOR_ANYBODY = {
    ("get", "/healthz"),
    ("get", "/readyz"),
    ("get", "/api/me"),
    ("post", "/api/login"),
    ("post", "/api/logout"),
}
"""What tells nothing about anybody."""

PAGES = {"/", "/openapi.json", "/push"}
"""What is not described, because it is the same for everybody: pages and their files."""

OTHER_CODES = {
    "invalid_api_key": "token_needed",
    "authentication_error": "token_needed",
    "permission_error": "scope_needed",
}
"""What clients of another API are told instead of our own codes."""

VALUES = {"type": "rule", "name": "tone", "turn": "1", "agent": "pane", "model": "pane"}


@dataclass(frozen=True)
class Operation:
    """One operation of the document."""

    method: str
    path: str
    scope: Scope | None
    has_body: bool
    query: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def of_session(self) -> bool:
        return "{session_id}" in self.path

    def url(self, session: str = "ses_nobody") -> str:
        path = self.path.replace("{session_id}", session)
        for name in [part[1:-1] for part in path.split("/") if part.startswith("{")]:
            path = path.replace(f"{{{name}}}", VALUES.get(name, "x"))
        return path

    def asked(self, client: httpx2.AsyncClient, session: str, headers: dict[str, str]) -> Any:
        return client.stream(
            self.method,
            self.url(session),
            params=dict(self.query),
            json={} if self.has_body else None,
            headers=headers,
        )


def operations_in(document: dict[str, Any]) -> list[Operation]:
    return [
        Operation(
            method=method,
            path=path,
            scope=_scope_of(operation.get("security", [])),
            has_body="requestBody" in operation,
            query=tuple(_needed(operation.get("parameters", []))),
        )
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def _scope_of(security: list[dict[str, list[str]]]) -> Scope | None:
    named = {scope for entry in security for scope in entry.get("token", [])}
    return next((scope for scope in SCOPES if named == {scope}), None)


def _needed(parameters: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for parameter in parameters:
        if parameter["in"] == "query" and parameter.get("required"):
            yield parameter["name"], "x"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An agent whose sessions are in memory: there are many operations to try."""
    return World(tmp_path / "agents")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    return create_app(engine_of(World(tmp_path_factory.mktemp("walk") / "agents")), token_needed=True)


def routes_of(routes: Iterable[BaseRoute]) -> Iterator[BaseRoute]:
    for route in routes:
        nested = getattr(route, "original_router", None)
        if nested is None:
            yield route
        else:
            yield from routes_of(nested.routes)


def test_every_operation_says_which_scope_it_needs(app: FastAPI) -> None:
    silent = {(found.method, found.path) for found in operations_in(app.openapi()) if found.scope is None}

    assert silent == FOR_ANYBODY


def test_what_is_not_described_is_a_page_and_knows_no_session(app: FastAPI) -> None:
    hidden = [
        path
        for route in routes_of(app.routes)
        if not isinstance(route, APIWebSocketRoute) and not (isinstance(route, APIRoute) and route.include_in_schema)
        for path in [cast("str", getattr(route, "path", ""))]
        if getattr(route, "methods", None) != {"HEAD"}
    ]

    assert set(hidden) >= PAGES
    assert not [path for path in hidden if path.startswith(("/api", "/v1")) or "{session_id}" in path]


async def test_head_needs_a_token_as_get_does(world: World, app: FastAPI) -> None:
    heads = {route.path for route in routes_of(app.routes) if isinstance(route, APIRoute) and route.methods == {"HEAD"}}
    async with guarded(world) as place:
        found = {path: (await place.client.head(path)).status_code for path in heads}

    assert found == dict.fromkeys(heads, 401)
    assert heads == {f"{door}/models{model}" for door in ("/v1", "/anthropic/v1") for model in ("", "/{model}")}


async def test_nobody_gets_anything_without_a_token(world: World, app: FastAPI) -> None:
    async with guarded(world) as place:
        session = await place.session(place.headers("ann"))
        answers: dict[str, tuple[int, str]] = {}
        for operation in operations_in(app.openapi()):
            if operation.scope is not None:
                answers[str(operation)] = await _answer(place, operation, session, {})

    assert answers
    assert {name: answer for name, answer in answers.items() if answer != (401, "token_needed")} == {}


async def test_a_smaller_scope_than_an_operation_needs_is_refused(world: World, app: FastAPI) -> None:
    async with guarded(world) as place:
        wrong: dict[str, tuple[int, str]] = {}
        headers = {scope: place.headers("ann", scope) for scope in SCOPES}
        session = await place.session(headers["manage"])
        before = await _whole(place, session, headers["manage"])
        for operation in operations_in(app.openapi()):
            for scope in SCOPES[: SCOPES.index(operation.scope or "read")]:
                answer = await _answer(place, operation, session, headers[scope])
                if answer != (403, "scope_needed"):
                    wrong[f"{operation} with {scope}"] = answer
        after = await _whole(place, session, headers["manage"])

    assert wrong == {}
    assert after == before


async def test_the_scope_that_an_operation_says_is_enough(world: World, app: FastAPI) -> None:
    async with guarded(world) as place:
        headers = {scope: place.headers("ann", scope) for scope in SCOPES}
        refused: dict[str, tuple[int, str]] = {}
        for operation in operations_in(app.openapi()):
            session = await place.session(headers["manage"]) if operation.of_session else ""
            answer = await _answer(place, operation, session, headers[operation.scope or "read"])
            if answer[0] in (401, 403):
                refused[str(operation)] = answer

    assert refused == {}


async def test_a_session_of_somebody_else_is_not_found_in_the_same_words_as_one_that_does_not_exist(
    world: World, app: FastAPI
) -> None:
    async with guarded(world) as place:
        ann, bob = place.headers("ann"), place.headers("bob")
        session = await place.session(ann)
        unknown = "ses_" + "0" * (len(session) - 4)
        before = await _whole(place, session, ann)
        different: dict[str, Any] = {}
        for operation in operations_in(app.openapi()):
            if not operation.of_session:
                continue
            foreign, missing = [await _seen(place, operation, name, bob) for name in (session, unknown)]
            if foreign != missing or foreign["status"] != 404 or "session_not_found" not in foreign["body"]:
                different[str(operation)] = (foreign, missing)
        after = await _whole(place, session, ann)

    assert different == {}
    assert after == before


async def test_a_socket_tells_strangers_nothing(world: World, app: FastAPI) -> None:
    sockets = [route.path for route in routes_of(app.routes) if isinstance(route, APIWebSocketRoute)]
    async with guarded(world) as place:
        ann, bob, reader = place.headers("ann"), place.headers("bob"), place.headers("ann", "read")
        session = await place.session(ann)
        unknown = "ses_" + "0" * (len(session) - 4)
        seen = {
            (path, who): await _heard(place, path.replace("{session_id}", name), headers)
            for path in sockets
            for who, name, headers in (
                ("nobody", session, {}),
                ("bob", session, bob),
                ("bob, unknown", unknown, bob),
                ("ann", session, reader),
            )
        }

    assert sockets
    for path in sockets:
        assert seen[path, "nobody"] == (4401, "a token is needed, and none came that can be used")
        assert seen[path, "bob"] == seen[path, "bob, unknown"] == (4404, "there is no such session")
        assert seen[path, "ann"] == "session.context"


def test_a_route_that_forgets_its_scope_is_found() -> None:
    app = FastAPI()

    async def forgetful(pane: OpenPane, session_id: str) -> None:
        """Forget to say what is needed."""

    app.add_api_route("/api/sessions/{session_id}/forgotten", forgetful)

    assert [found.scope for found in operations_in(app.openapi())] == [None]


async def _answer(place: Place, operation: Operation, session: str, headers: dict[str, str]) -> tuple[int, str]:
    """Return the status, and the code of a problem; a stream that begins is not read."""
    async with operation.asked(place.client, session, headers) as response:
        if not response.is_error:
            return response.status_code, ""
        await response.aread()
        body = response.json()
        code = str(body["code"] if "code" in body else body["error"].get("code", body["error"]["type"]))
        return response.status_code, OTHER_CODES.get(code, code)


async def _seen(place: Place, operation: Operation, session: str, headers: dict[str, str]) -> dict[str, Any]:
    """Return everything that a caller could tell two answers apart by."""
    async with operation.asked(place.client, session, headers) as response:
        if not response.is_error:
            return {"status": response.status_code, "body": ""}
        body = (await response.aread()).decode()
        told = {name: value for name, value in response.headers.items() if name not in ("x-request-id", "date")}
        return {"status": response.status_code, "headers": told, "body": body.replace(session, "SESSION")}


async def _whole(place: Place, session: str, headers: dict[str, str]) -> Any:
    return [
        (await place.client.get(f"/api/sessions/{session}{rest}", headers=headers)).json()
        for rest in ("", "/messages", "/items", "/fetched", "/statistics")
    ]


async def _heard(place: Place, path: str, headers: dict[str, str]) -> tuple[int, str] | str:
    address = str(place.client.base_url).replace("http", "ws", 1).rstrip("/") + path
    async with connect(address, additional_headers=headers) as socket:
        with suppress(ConnectionClosed):
            return json.loads(await socket.recv())["type"]
        return socket.close_code or 0, socket.close_reason or ""
