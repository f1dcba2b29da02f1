"""The app: every route, and how requests are guarded, logged and answered when they fail."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Literal

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from windowpane.engine import Engine
from windowpane.errors import WindowpaneError
from windowpane.server import agents, fetched, history, home, insight, items, live, push, sessions, turns
from windowpane.server.access import AccessLog
from windowpane.server.guard import LOOPBACK_NAMES, Guard
from windowpane.server.limits import MAX_BODY_BYTES, BodyLimit
from windowpane.server.opened import OpenEngine
from windowpane.server.problems import (
    answer_http_error,
    answer_invalid_request,
    answer_windowpane_error,
    as_problem_media_type,
    problems,
)

ABOUT = """The context engine for chat agents: what goes into every model request, and why.

Failures are problem documents (RFC 9457): `code` is stable, `detail` says what to do. Events of a turn can be had as
server-sent events: ask for `text/event-stream`."""


@dataclass(frozen=True, slots=True)
class Health:
    """The server is ready."""

    status: Literal["ok"]
    version: str


def create_app(
    engine: Engine, *, hosts: Sequence[str] = LOOPBACK_NAMES, max_body_bytes: int = MAX_BODY_BYTES
) -> FastAPI:
    """Return the app for an engine, which is open as long as the app runs.

    `hosts` are the names by which browsers may address it; a page of another name could otherwise act for the user.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with engine:
            app.state.opened = True
            try:
                yield
            finally:
                app.state.opened = False

    app = _DocumentedApp(
        title="Windowpane",
        version=version("windowpane"),
        description=ABOUT,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
    )
    app.state.engine = engine
    app.state.opened = False
    resources = (home, push, agents, sessions, items, turns, history, fetched, insight, live)
    for router in (_health, *(resource.router for resource in resources)):
        app.include_router(router)
    app.add_exception_handler(WindowpaneError, answer_windowpane_error)
    app.add_exception_handler(HTTPException, answer_http_error)
    app.add_exception_handler(RequestValidationError, answer_invalid_request)
    app.add_middleware(BodyLimit, max_bytes=max_body_bytes)
    app.add_middleware(Guard, hosts=hosts)
    app.add_middleware(AccessLog)
    return app


class _DocumentedApp(FastAPI):
    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            schema = get_openapi(
                title=self.title, version=self.version, description=self.description, routes=self.routes
            )
            self.openapi_schema = as_problem_media_type(schema)
        return self.openapi_schema


def _operation_id(route: APIRoute) -> str:
    return route.name


_health = APIRouter(tags=["server"])


@_health.get("/healthz", summary="Tell whether the server is ready", responses=problems())
async def health(engine: OpenEngine) -> Health:
    """Answer once everything is open."""
    return Health("ok", version("windowpane"))
