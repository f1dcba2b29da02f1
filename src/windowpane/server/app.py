"""The app: every route, and how requests are guarded, logged and answered when they fail."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from fastapi.telemetry import TelemetryConfig
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response

from windowpane import telemetry
from windowpane.callers import TokenFile
from windowpane.engine import Engine
from windowpane.errors import WindowpaneError
from windowpane.insight.analytics.store import AnalyticsStore
from windowpane.insight.analytics.update import AnalyticsUpdater
from windowpane.insight.finding.finder import SessionFinder
from windowpane.server import anthropic, bookmarklet, guide, openai, page
from windowpane.server.agui import routes as agui
from windowpane.server.anthropic.errors import anthropic_form
from windowpane.server.applets import files
from windowpane.server.applets.roots import Offer, Roots
from windowpane.server.event_schema import with_events
from windowpane.server.middleware import auth, metrics
from windowpane.server.middleware import xray as recording
from windowpane.server.middleware.access_log import AccessLog
from windowpane.server.middleware.auth import Doorkeeper, Entrance, with_access
from windowpane.server.middleware.cross_site import LOOPBACK_NAMES, CrossSiteGuard
from windowpane.server.middleware.door_errors import DoorErrors
from windowpane.server.middleware.headers import SafeHeaders
from windowpane.server.middleware.limits import MAX_BODY_BYTES, BodyLimit, RateLimit
from windowpane.server.middleware.metrics import Counting, Metrics
from windowpane.server.middleware.root_path import RootPath
from windowpane.server.middleware.xray import PREFIX, XrayDoor, owner_of_call
from windowpane.server.openai import asking
from windowpane.server.openai.errors import OPENAI_PATHS, as_answered, openai_form
from windowpane.server.openai.one_off import Once
from windowpane.server.openapi import described
from windowpane.server.otlp import routes as otlp
from windowpane.server.problems import (
    answer_invalid_request,
    answer_windowpane_error,
    with_problems,
)
from windowpane.server.routes import (
    agent_events,
    agent_files,
    agents,
    fetched,
    health,
    items,
    messages,
    models,
    sessions,
    tool_servers,
    transfer,
    turns,
    watch,
)
from windowpane.server.routes.agent_events import Looking
from windowpane.server.routes.insight import analytics, finding, past, statistics
from windowpane.supervise import keep_running, supervised
from windowpane.xray.app import XrayApp
from windowpane.xray.upstreams import Upstream, upstreams_of

ABOUT = """The context engine for chat agents: what goes into every model request, and why.

Failures are problem documents (RFC 9457): `code` is stable, `detail` says what to do. Events of a turn can be had as
server-sent events: ask for `text/event-stream`."""

SESSION = "/api/sessions/{session_id}"
BUSIEST = ("/healthz", SESSION, f"{SESSION}/messages", f"{SESSION}/events", "/v1/chat/completions", "/v1/responses")
"""The paths that are asked for most often."""


RESOURCES = (
    health,
    metrics,
    recording,
    page,
    guide,
    auth,
    bookmarklet,
    agents,
    agent_files,
    agent_events,
    tool_servers,
    transfer,
    sessions,
    items,
    models,
    turns,
    messages,
    fetched,
    files,
    statistics,
    past,
    analytics,
    finding,
    watch,
    openai,
    anthropic,
    agui,
    otlp,
)
"""The modules whose routes the app has."""

EXCEPTION_HANDLERS: dict[int | type[Exception], Callable[[Request, Any], Coroutine[Any, Any, Response]]] = {
    WindowpaneError: answer_windowpane_error,
    HTTPException: page.answer_missing,
    RequestValidationError: answer_invalid_request,
}

NO_TELEMETRY: TelemetryConfig = {"tracing": False, "logs": False, "metrics": False}
"""The spans and logs of the framework hold queries, refused bodies and messages of exceptions. Ours do not."""


def create_app(
    engine: Engine,
    *,
    hosts: Sequence[str] | None = LOOPBACK_NAMES,
    max_body_bytes: int = MAX_BODY_BYTES,
    tokens: TokenFile | None = None,
    token_needed: bool = False,
    origins: Sequence[str] = (),
    requests_per_minute: int | None = None,
    roots: Sequence[Path] = (),
    offer: Offer | None = None,
    grace_s: float = 0,
    bundle: Path = page.BUNDLE,
    guide_folder: Path = guide.GUIDE,
    analytics_place: Path | str | None = None,
    upstreams: Mapping[str, str] | None = None,
    root_path: str = "",
    trust_forwarded_prefix: bool = False,
) -> FastAPI:
    """Return the app for an engine, which is open as long as the app runs.

    `hosts` are the names by which browsers may address it; a page of another name could otherwise act for the user.
    `tokens` are those that callers may show; with `token_needed`, a caller without one is refused. Pages of `origins`
    may do what the server's own page may. `requests_per_minute` is for each caller; None: any number. When the app
    stops, turns may go on for `grace_s`. Files below `roots` may be shown and edited, and those of `offer` if the user
    shares it. Turns are counted in `analytics_place`, or in memory. `upstreams`: where `/xray/…` leads. `root_path` is
    the path below which a proxy serves all of it; with `trust_forwarded_prefix` the proxy may say it.
    """
    doorkeeper, counters = Doorkeeper(tokens, token_needed=token_needed), Metrics()
    xray = _recording(engine, _upstreams(upstreams, token_needed), counters)
    app = _DocumentedApp(
        title="Windowpane",
        version=version("windowpane"),
        description=ABOUT,
        lifespan=partial(_lifespan, engine, doorkeeper, xray, grace_s),
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers=EXCEPTION_HANDLERS,
        telemetry=NO_TELEMETRY,
        # A request passes these from the first to the last.
        middleware=[
            *_below(root_path, trust_header=trust_forwarded_prefix),
            Middleware(DoorErrors, forms={"/anthropic/": anthropic_form, OPENAI_PATHS: openai_form}),
            Middleware(AccessLog),
            Middleware(Counting, metrics=counters),
            Middleware(SafeHeaders),
            Middleware(CrossSiteGuard, hosts=hosts, origins=origins),
            *([_cross_origin(origins)] if origins else []),
            Middleware(Entrance, doorkeeper=doorkeeper),
            *([Middleware(RateLimit, per_minute=requests_per_minute)] if requests_per_minute is not None else []),
            Middleware(XrayDoor, proxy=xray),
            Middleware(BodyLimit, max_bytes=max_body_bytes, files_bytes=engine.attachment_bytes),
        ],
    )
    app.state.engine, app.state.doorkeeper, app.state.metrics = engine, doorkeeper, counters
    app.state.bundle, app.state.guide, app.state.xray, app.state.roots = bundle, guide_folder, xray, Roots(roots, offer)
    app.state.updater = AnalyticsUpdater(engine.store, AnalyticsStore(analytics_place), engine.nearness)
    _begin(app)
    return app


def _begin(app: FastAPI) -> None:
    """Give an app its routes, and what it knows before it is opened."""
    app.state.opened = app.state.stopping = False
    app.state.stop = _nothing
    app.state.looking, app.state.once = Looking(), Once()
    app.state.finder = SessionFinder(app.state.engine.store)
    _add_routes(app)


def _upstreams(named: Mapping[str, str] | None, token_needed: bool) -> dict[str, Upstream]:
    """Return where calls are passed on to. A model of this machine needs no key: others get it only if that is set."""
    found = upstreams_of(named or {})
    if token_needed and "ollama" not in (named or {}):
        del found["ollama"]
    return found


def _below(root: str, *, trust_header: bool) -> list[Middleware]:
    return [Middleware(RootPath, root=root, trust_header=trust_header)] if root.strip("/") or trust_header else []


def _cross_origin(origins: Sequence[str]) -> Middleware:
    told = (asking.SESSION, asking.TURN, asking.IGNORED, "X-Request-Id", "Retry-After", "X-Should-Retry", "ETag")
    return Middleware(
        CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"], expose_headers=told
    )


def _recording(engine: Engine, upstreams: Mapping[str, Upstream], counters: Metrics) -> XrayApp:
    """Return the recording proxy of an app, which counts what it records and loses."""
    xray = XrayApp(engine.store, upstreams, owner_of_call, prefix=PREFIX)
    xray.recorder.room.tell = lambda outcome: counters.xray_calls.labels(outcome).inc()
    return xray


def _add_routes(app: FastAPI) -> None:
    for resource in RESOURCES:
        _take_over(app, resource.router)
    app.state.described = tuple(app.routes)
    # Routes are tried one after the other.
    app.router.routes.sort(key=lambda route: getattr(route, "path", "") not in BUSIEST)


@asynccontextmanager
async def _lifespan(
    engine: Engine, doorkeeper: Doorkeeper, xray: XrayApp, grace_s: float, app: FastAPI
) -> AsyncGenerator[None]:
    """Keep the engine open while the app runs, and give running turns `grace_s` when it stops."""
    async with engine, xray.running(), anyio.create_task_group() as tasks:
        stopping, stopped = anyio.Event(), anyio.Event()
        app.state.stop = partial(asyncio.get_running_loop().call_soon_threadsafe, stopping.set)

        async def stop() -> None:
            await stopping.wait()
            app.state.stopping = True
            # A client that watches a session would stay for ever.
            engine.end_watching()
            await engine.finish_turns(within_s=grace_s)
            stopped.set()

        tasks.start_soon(stop)
        tasks.start_soon(supervised, "agents.warm", engine.warm_agents)
        tasks.start_soon(keep_running, "tokens.watch", doorkeeper.watch)
        tasks.start_soon(keep_running, "analytics.count", app.state.updater.keep_counting)
        tasks.start_soon(keep_running, "sessions.index", app.state.finder.keep_indexing)
        app.state.opened, app.state.stopping = True, False
        with telemetry.listening(app.state.metrics.began, app.state.metrics.count):
            try:
                yield
            finally:
                stopping.set()
                await stopped.wait()
                app.state.opened = False
                app.state.updater.analytics.close()
                app.state.stop = _nothing
                tasks.cancel_scope.cancel()


def begin_to_stop(app: FastAPI) -> None:
    """Disconnect those who watch, and give running turns their grace. A signal handler may call this."""
    app.state.stop()


def _nothing() -> None:
    """Do nothing: an app that is not open has nothing to stop."""


class _DocumentedApp(FastAPI):
    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            schema = get_openapi(
                title=self.title, version=self.version, description=self.description, routes=self.state.described
            )
            self.openapi_schema = with_access(
                described(as_answered(with_events(with_problems(schema)))), self.state.doorkeeper.token_needed
            )
        return self.openapi_schema


def _take_over(app: FastAPI, router: APIRouter) -> None:
    """Add a router's routes as they are: included, each would be built at once, most of a second in all."""
    for route in router.routes:
        if isinstance(route, APIRoute):
            route.operation_id = route.name
        app.router.routes.append(route)
