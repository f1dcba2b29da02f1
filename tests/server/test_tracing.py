from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from patience import PATIENCE_S
from windowpane.errors import InvalidSettingError
from windowpane.server.process.tracing import configure_tracing

SELECT = """
from opentelemetry import trace
from windowpane import telemetry
from windowpane.server.process.tracing import configure_tracing

configure_tracing()
with telemetry.selection(candidates=3):
    pass
getattr(trace.get_tracer_provider(), "shutdown", lambda: None)()
"""


@contextmanager
def collector() -> Generator[tuple[str, list[tuple[str, bytes]]]]:
    """A server that keeps what is sent to it."""
    received: list[tuple[str, bytes]] = []

    class Keeping(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Keeping) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", received
        finally:
            server.shutdown()
            thread.join()


def select(**environ: str) -> str:
    given = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    ended = subprocess.run(
        [sys.executable, "-c", SELECT],
        env=given | environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    return ended.stdout


def test_spans_are_sent_where_the_environment_says() -> None:
    with collector() as (address, received):
        select(OTEL_EXPORTER_OTLP_ENDPOINT=address, OTEL_SERVICE_NAME="pane", OTEL_EXPORTER_OTLP_COMPRESSION="none")

    assert [path for path, _ in received] == ["/v1/traces"]
    assert b"select context" in received[0][1]
    assert b"pane" in received[0][1]


def test_spans_can_be_printed_instead() -> None:
    assert '"name": "select context"' in select(OTEL_TRACES_EXPORTER="console")


@pytest.mark.parametrize("environ", [{}, {"OTEL_TRACES_EXPORTER": "none"}, {"OTEL_SDK_DISABLED": "true"}])
def test_nothing_is_sent_unless_it_is_asked_for(environ: dict[str, str]) -> None:
    with collector() as (address, received):
        endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": address} if environ else {}
        assert select(**endpoint, **environ) == ""

    assert received == []


def test_an_exporter_that_is_none_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "zipkin")

    with pytest.raises(InvalidSettingError) as refused:
        configure_tracing()

    assert str(refused.value) == "OTEL_TRACES_EXPORTER: otlp, console or none, not 'zipkin'"


def test_the_sdk_is_not_loaded_unless_spans_are_sent() -> None:
    code = "import sys, windowpane.server.app; print([name for name in sys.modules if 'opentelemetry.sdk' in name])"

    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )

    assert loaded.stdout == "[]\n"
