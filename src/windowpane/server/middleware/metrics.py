"""Numbers for Prometheus: requests, streams, turns, refusals, model calls, tokens, tool calls, selections, appends.

Several workers count together: when `PROMETHEUS_MULTIPROC_DIR` names a folder, which `windowpane serve --workers` sees
to, every worker keeps its numbers in a file there, and whichever is asked adds up all of them. Labels hold names from a
closed or slowly growing set, never ids and never what a caller can make up.
"""

import os
import platform
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

from fastapi import Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from windowpane.server.dependencies import Managing
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.problems import problems
from windowpane.server.sse import MEDIA_TYPE as EVENT_STREAM
from windowpane.telemetry import Measured, Operation

METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
QUICK_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
LONG_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250)
STREAM_S = (1, 5, 25, 60, 300, 900, 3600)
NO_ROUTE = "(none)"
"""The route of a request that matched none."""

RUNNING: tuple[Operation, ...] = ("turn", "model_call", "tool_call")
"""What runs long enough to be counted while it does."""

CALLER_ENDED = 499
"""The status of a request whose client went away before it was answered."""


class Metrics:
    """What one app counts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = self._counter("http_requests", "HTTP requests", "method", "route", "status")
        self.request_s = self._histogram("http_request", "Time to answer a request", QUICK_S, "method", "route")
        self.streams = self._gauge("http_streams_open", "Streams of events and WebSockets that are open", "route")
        self.stream_s = self._histogram("http_stream", "Time that a stream was open", STREAM_S, "route")
        self.turns = self._counter("turns", "Turns that ended or wait for a person", "agent", "outcome")
        self.turn_s = self._histogram("turn", "Time that turns ran", LONG_S, "agent", "outcome")
        self.refused = self._counter("turns_refused", "Turns that were refused before they began", "why")
        self.model_calls = self._counter("model_calls", "Model calls", "provider", "model", "error")
        self.model_call_s = self._histogram("model_call", "Time of a model call", LONG_S, "provider", "model")
        self.tokens = self._counter("tokens", "Tokens as providers report them", "provider", "model", "kind")
        self.tool_calls = self._counter("tool_calls", "Tool calls", "server", "tool", "error")
        self.tool_call_s = self._histogram("tool_call", "Time of a tool call", LONG_S, "server", "tool")
        self.selection_s = self._histogram("selection", "Time of a selection", QUICK_S)
        self.xray_calls = self._counter("xray_calls", "Calls of recorded programs: recorded, or why not", "outcome")
        self.bus_cuts = self._counter("bus_cuts", "Times that the bus between workers was cut off")
        self.append_s = self._histogram("append", "Time of an append to the store", QUICK_S)
        self.running = self._gauge("running", "Turns, model calls and tool calls that run now", "operation")
        self._built().labels(version("windowpane"), platform.python_version()).set(1)

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"windowpane_{name}", f"{about}.", labels, registry=self.registry)

    def _histogram(self, name: str, about: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(f"windowpane_{name}_seconds", f"{about}.", labels, registry=self.registry, buckets=buckets)

    def _gauge(self, name: str, about: str, *labels: str) -> Gauge:
        # A worker that has died has nothing open.
        return Gauge(f"windowpane_{name}", f"{about}.", labels, registry=self.registry, multiprocess_mode="livesum")

    def _built(self) -> Gauge:
        about, labels = "What is running; always 1.", ("version", "python")
        return Gauge("windowpane_build_info", about, labels, registry=self.registry, multiprocess_mode="livemax")

    def answered(self, method: str, route: str, status: int, duration_s: float, *, streamed: bool) -> None:
        """Count a request. How long a stream was open says nothing about how quick the server is."""
        named = method if method in METHODS else "other"
        self.requests.labels(named, route, str(status)).inc()
        if streamed:
            self.stream_s.labels(route).observe(duration_s)
        else:
            self.request_s.labels(named, route).observe(duration_s)

    def began(self, operation: Operation) -> None:
        """Count something that runs now."""
        if operation in RUNNING:
            self.running.labels(operation).inc()

    def count(self, measured: Measured) -> None:
        """Count something that was measured."""
        facts = {name: str(value) for name, value in measured.attributes.items()}
        if measured.operation in RUNNING:
            self.running.labels(measured.operation).dec()
        match measured.operation:
            case "turn":
                agent, outcome = facts.get("gen_ai.agent.name", ""), facts.get("windowpane.outcome", "")
                self.turns.labels(agent, outcome).inc()
                self.turn_s.labels(agent, outcome).observe(measured.duration_s)
            case "refusal":
                self.refused.labels(measured.error).inc()
            case "model_call":
                self._count_model_call(measured, facts)
            case "tool_call":
                server, tool = facts["windowpane.tool.server"], facts["gen_ai.tool.name"]
                self.tool_calls.labels(server, tool, measured.error).inc()
                self.tool_call_s.labels(server, tool).observe(measured.duration_s)
            case "selection":
                self.selection_s.observe(measured.duration_s)
            case "bus_cut":
                self.bus_cuts.inc()
            case "append":
                self.append_s.observe(measured.duration_s)

    def _count_model_call(self, measured: Measured, facts: dict[str, str]) -> None:
        # The name that the provider answers with: a caller can ask for any, and most of them do not exist.
        provider, model = facts["gen_ai.provider.name"], facts.get("gen_ai.response.model", "")
        self.model_calls.labels(provider, model, measured.error).inc()
        self.model_call_s.labels(provider, model).observe(measured.duration_s)
        for kind in ("input", "output"):
            self.tokens.labels(provider, model, kind).inc(float(facts.get(f"gen_ai.usage.{kind}_tokens", 0)))

    def exposed(self) -> bytes:
        """Return all numbers, of every worker where there are several, in the text format of Prometheus."""
        if folder := os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
            _forget_dead(Path(folder))
            together = CollectorRegistry()
            MultiProcessCollector(together)
            return generate_latest(together)
        return generate_latest(self.registry)


def _forget_dead(folder: Path) -> None:
    """Take what was open in workers that have died out of the numbers."""
    for file in folder.glob("gauge_live*_*.db"):
        pid = int(file.stem.rpartition("_")[2])
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            file.unlink(missing_ok=True)
        except PermissionError:
            continue


class Counting:
    """Counts every request by its route."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and count how it went."""
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        started = perf_counter()
        status = CALLER_ENDED
        open_route: str | None = None

        async def noting(message: Message) -> None:
            nonlocal status, open_route
            if message["type"] == "http.response.start":
                status = message["status"]
            if open_route is None and _opens_stream(message):
                open_route = _route(scope)
                self._metrics.streams.labels(open_route).inc()
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except Exception:
            status = 500
            raise
        finally:
            duration_s = perf_counter() - started
            if open_route is not None:
                self._metrics.streams.labels(open_route).dec()
            if scope["type"] == "http":
                streamed = open_route is not None
                self._metrics.answered(scope["method"], _route(scope), status, duration_s, streamed=streamed)
            elif open_route is not None:
                self._metrics.stream_s.labels(open_route).observe(duration_s)


def _route(scope: Scope) -> str:
    return getattr(scope.get("route"), "path", NO_ROUTE)


def _opens_stream(message: Message) -> bool:
    if message["type"] == "http.response.start":
        return Headers(raw=message["headers"]).get("content-type", "").startswith(EVENT_STREAM)
    return message["type"] == "websocket.accept"


router = LazyRouter(tags=["server"])


@router.get(
    "/metrics",
    summary="Read numbers for Prometheus",
    response_class=Response,
    responses={**problems(), 200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def read_metrics(pane: Managing, request: Request) -> Response:
    """Return counts and durations of all workers in the text format of Prometheus."""
    metrics = request.app.state.metrics
    if not isinstance(metrics, Metrics):
        raise TypeError(metrics)
    return Response(metrics.exposed(), media_type=CONTENT_TYPE_LATEST)
