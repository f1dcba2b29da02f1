"""Numbers for Prometheus: requests, turns, model calls, tokens, tool calls, selections, appends.

Several workers count together: when `PROMETHEUS_MULTIPROC_DIR` names a folder, which `windowpane serve --workers` sees
to, every worker keeps its numbers in a file there, and whichever is asked adds up all of them. Labels hold names from a
closed or slowly growing set, never ids and never what a caller can make up.
"""

import os
from time import perf_counter

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from windowpane.server.dependencies import Managing
from windowpane.server.problems import problems
from windowpane.telemetry import Measured

METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
QUICK_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
LONG_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250)
NO_ROUTE = "(none)"
"""The route of a request that matched none."""

CALLER_ENDED = 499
"""The status of a request whose client went away before it was answered."""


class Metrics:
    """What one app counts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = self._counter("http_requests", "HTTP requests", "method", "route", "status")
        self.request_s = self._histogram("http_request", "Time to answer a request", QUICK_S, "method", "route")
        self.turns = self._counter("turns", "Turns that ended or wait for a person", "agent", "outcome")
        self.turn_s = self._histogram("turn", "Time that turns ran", LONG_S, "agent")
        self.model_calls = self._counter("model_calls", "Model calls", "provider", "model", "error")
        self.model_call_s = self._histogram("model_call", "Time of a model call", LONG_S, "provider")
        self.tokens = self._counter("tokens", "Tokens as providers report them", "provider", "model", "kind")
        self.tool_calls = self._counter("tool_calls", "Tool calls", "server", "tool", "error")
        self.tool_call_s = self._histogram("tool_call", "Time of a tool call", LONG_S, "server")
        self.selection_s = self._histogram("selection", "Time of a selection", QUICK_S)
        self.append_s = self._histogram("append", "Time of an append to the store", QUICK_S)

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"windowpane_{name}", f"{about}.", labels, registry=self.registry)

    def _histogram(self, name: str, about: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(f"windowpane_{name}_seconds", f"{about}.", labels, registry=self.registry, buckets=buckets)

    def answered(self, method: str, route: str, status: int, duration_s: float) -> None:
        """Count a request."""
        named = method if method in METHODS else "other"
        self.requests.labels(named, route, str(status)).inc()
        self.request_s.labels(named, route).observe(duration_s)

    def count(self, measured: Measured) -> None:
        """Count something that was measured."""
        facts = {name: str(value) for name, value in measured.attributes.items()}
        match measured.operation:
            case "turn":
                agent = facts.get("gen_ai.agent.name", "")
                self.turns.labels(agent, facts.get("windowpane.outcome", "")).inc()
                self.turn_s.labels(agent).observe(measured.duration_s)
            case "model_call":
                self._count_model_call(measured, facts)
            case "tool_call":
                server = facts["windowpane.tool.server"]
                self.tool_calls.labels(server, facts["gen_ai.tool.name"], measured.error).inc()
                self.tool_call_s.labels(server).observe(measured.duration_s)
            case "selection":
                self.selection_s.observe(measured.duration_s)
            case "append":
                self.append_s.observe(measured.duration_s)

    def _count_model_call(self, measured: Measured, facts: dict[str, str]) -> None:
        # The name that the provider answers with: a caller can ask for any, and most of them do not exist.
        provider, model = facts["gen_ai.provider.name"], facts.get("gen_ai.response.model", "")
        self.model_calls.labels(provider, model, measured.error).inc()
        self.model_call_s.labels(provider).observe(measured.duration_s)
        for kind in ("input", "output"):
            self.tokens.labels(provider, model, kind).inc(float(facts.get(f"gen_ai.usage.{kind}_tokens", 0)))

    def exposed(self) -> bytes:
        """Return all numbers, of every worker where there are several, in the text format of Prometheus."""
        if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
            together = CollectorRegistry()
            MultiProcessCollector(together)
            return generate_latest(together)
        return generate_latest(self.registry)


class Counting:
    """Counts every request by its route."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and count how it went."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        started = perf_counter()
        status = CALLER_ENDED

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except Exception:
            status = 500
            raise
        finally:
            route = getattr(scope.get("route"), "path", NO_ROUTE)
            self._metrics.answered(scope["method"], route, status, perf_counter() - started)


router = APIRouter(tags=["server"])


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
