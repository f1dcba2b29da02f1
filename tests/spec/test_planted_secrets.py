"""No secret is in anything that the product writes: planted in every place that holds one, and looked for everywhere.

The processes are real and run at log level debug. The services beside them are as careless as they can be: they answer
with the headers that they were sent, and their programs print their environment.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2
import pytest
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from cli.running import process_in
from server.test_tracing import collector
from spec.place import PATIENCE_S, TOOL_SERVER, environment
from stores.postgres_server import fresh_database
from windowpane.callers import TokenFile

TELLING = "import os, sys; print(os.environ.get('PLANTED'), file=sys.stderr); sys.exit(1)"
"""A tool server that prints its environment and ends."""

NAMES = (
    "provider_key",
    "given_key",
    "embeddings_key",
    "search_key",
    "store_password",
    "server_env",
    "failing_server_env",
    "server_header",
    "server_query",
    "server_password",
    "server_argument",
    "broken_entry",
    "broken_yaml",
    "telemetry_header",
    "query_token",
    "wrong_token",
    "wrong_cookie",
    "wrong_password",
    "base_password",
    "base_query",
    "embeddings_password",
    "proxy_password",
    "proxied_key",
)


@dataclass
class Written:
    """Everything that was written: where, and the bytes."""

    planted: dict[str, str]
    texts: list[tuple[str, bytes]] = field(default_factory=list[tuple[str, bytes]])

    def add(self, where: str, *contents: bytes | str) -> None:
        self.texts += [(where, text.encode() if isinstance(text, str) else text) for text in contents]

    def answer(self, response: httpx2.Response) -> httpx2.Response:
        self.add(
            f"{response.request.method} {response.request.url.path} {response.status_code}",
            response.content,
            repr(response.headers.multi_items()),
        )
        return response

    def found(self) -> list[str]:
        """Return which secrets stand where, as they are, quoted or in base64."""
        forms = {
            name: {secret.encode(), quote(secret).encode(), base64.b64encode(secret.encode()).rstrip(b"=")}
            for name, secret in self.planted.items()
        }
        return sorted(
            {
                f"{name} in {where}"
                for where, text in self.texts
                for name, looks in forms.items()
                if any(look in text for look in looks)
            }
        )


@contextmanager
def careless_service() -> Generator[str]:
    """A server that refuses everything and repeats what it was sent."""

    class Repeating(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            error = {"code": -32000, "message": f"refused {self.path} {self.headers} {body[:200]!r}"}
            speaks_mcp = self.path.startswith("/rpc")
            said = json.dumps({"jsonrpc": "2.0", "id": 0, "error": error} if speaks_mcp else {"error": error}).encode()
            self.send_response(200 if speaks_mcp else 401)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_POST = do_DELETE = answer  # noqa: N815 – the library's names

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Repeating) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def plant(folder: Path, service: str, planted: dict[str, str]) -> None:
    """Write an agent whose files hold secrets wherever files can."""
    folder.mkdir(parents=True)
    (folder / "tools.json").write_text('[{"name": "read", "description": "Reads."}]')
    (folder / "agent.yaml").write_text("model: openai-chat:gpt-4o\nsearch_engine: brave\n")
    (folder / "prompts").mkdir()
    (folder / "prompts/core.md").write_text("You are Pane.")
    servers = {
        "working": {
            "command": sys.executable,
            "args": [str(TOOL_SERVER), str(folder / "tools.json"), f"--key={planted['server_argument']}"],
            "env": {"PLANTED": planted["server_env"]},
        },
        "failing": {
            "command": sys.executable,
            "args": ["-c", TELLING],
            "env": {"PLANTED": planted["failing_server_env"]},
        },
        "missing": {"command": "no-such-command", "args": [planted["server_argument"]]},
        "refusing": {
            "url": f"http://ann:{planted['server_password']}@{service}/mcp?key={planted['server_query']}",
            "headers": {"Authorization": f"Bearer {planted['server_header']}", "X-Key": planted["server_header"]},
        },
        "answering": {
            "url": f"http://{service}/rpc?key={planted['server_query']}",
            "headers": {"Authorization": f"Bearer {planted['server_header']}"},
        },
        "unreachable": {
            "url": f"http://ann:{planted['server_password']}@127.0.0.1:1/mcp?key={planted['server_query']}",
            "headers": {"X-Key": planted["server_header"]},
        },
        "wrong": {"command": ["x", planted["broken_entry"]], "env": planted["broken_entry"], "headers": 5},
        "odd": {"command": "x", "env": {"KEY": [planted["broken_entry"]]}},
    }
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    broken = folder.parent / "broken"
    broken.mkdir()
    (broken / "agent.yaml").write_text(
        f"model: echo\nmcpServers:\n  x:\n    env: {{KEY: {planted['broken_yaml']}: [}}\n   {planted['broken_yaml']}\n"
    )


@contextmanager
def process(written: Written, name: str, env: dict[str, str], *words: str) -> Generator[str]:
    """Run a command until the block ends; yield the address that it says, and keep what it writes."""
    folder = Path(env["WINDOWPANE_DATA"]).parent / name
    folder.mkdir()
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        command = [sys.executable, "-m", "windowpane", *words]
        with subprocess.Popen(command, stdout=out, stderr=err, env=env) as running:
            try:
                yield _address(running, folder)
            finally:
                running.terminate()
                running.wait(PATIENCE_S)
                for stream in ("stdout", "stderr"):
                    written.add(f"{name} {stream}", (folder / stream).read_bytes())


def _address(running: subprocess.Popen[bytes], folder: Path) -> str:
    while running.poll() is None:
        for file in (folder / "stdout", folder / "stderr"):
            for word in file.read_text().split():
                if word.startswith("http://127.0.0.1"):
                    return word.rstrip(",;")
        with suppress(subprocess.TimeoutExpired):
            running.wait(0.05)
    raise AssertionError((folder / "stderr").read_text())


def ran(written: Written, env: dict[str, str], *words: str) -> str:
    """Run a command to its end, and keep what it writes."""
    ended = process_in(env, *words)
    written.add(f"windowpane {' '.join(words[:2])}", ended.out, ended.err)
    return ended.out


def files_below(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path, _, names in os.walk(folder):
        for name in names:
            file = Path(path, name)
            yield str(file.relative_to(folder)), file.read_bytes()


@dataclass(frozen=True)
class Planted:
    """A place with secrets in everything that can hold one: its files, its environment, its tokens."""

    data: Path
    env: dict[str, str]
    written: Written
    token: str
    reader: str
    spans: list[tuple[str, bytes]]

    def found(self) -> list[str]:
        """Return which secrets stand where, with the data folder; agents and given keys are where they belong."""
        for name, body in files_below(self.data):
            if not name.startswith(("agents/", "keys/")):
                self.written.add(f"data/{name}", body)
        return self.written.found()


@pytest.fixture
def place(tmp_path: Path) -> Generator[Planted]:
    data = tmp_path / "data"
    planted = {name: f"planted.{name}.{secrets.token_hex(12)}" for name in NAMES}
    token, reader = (TokenFile(data / "tokens.json").create("ann", [scope])[1] for scope in ("manage", "read"))
    database = urlsplit(fresh_database())
    store = database._replace(netloc=f"postgres:{planted['store_password']}@{database.hostname}:{database.port}")
    with careless_service() as service, collector() as (otel, spans):
        plant(data / "agents" / "pane", service, planted)
        env = environment(
            data,
            WINDOWPANE_LOG_LEVEL="debug",
            WINDOWPANE_REQUIRE_TOKEN="true",
            WINDOWPANE_STORE_URL=store.geturl(),
            WINDOWPANE_EMBEDDINGS_URL=f"http://ann:{planted['embeddings_password']}@{service}/v1",
            WINDOWPANE_XRAY_UPSTREAMS=json.dumps({"own": f"http://{service}"}),
            WINDOWPANE_EMBEDDINGS_KEY=planted["embeddings_key"],
            WINDOWPANE_SEARCH_ENGINE="brave",
            BRAVE_API_KEY=planted["search_key"],
            OPENAI_API_KEY=planted["provider_key"],
            OPENAI_BASE_URL=f"http://ann:{planted['base_password']}@{service}/v1?key={planted['base_query']}",
            # Calls to addresses with https go through this proxy, which is not there.
            HTTPS_PROXY=f"http://ann:{planted['proxy_password']}@127.0.0.1:1",
            OTEL_EXPORTER_OTLP_ENDPOINT=otel,
            OTEL_EXPORTER_OTLP_HEADERS=f"authorization={planted['telemetry_header']}",
            OTEL_EXPORTER_OTLP_COMPRESSION="none",
            OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true",
            LLM_DEBUG_LOG="true",
            LLM_DEBUG_VERBOSE="true",
        )
        written = Written(planted | {"token": token, "reader_token": reader})
        yield Planted(data, env, written, token, reader, spans)


def test_nothing_that_a_server_writes_answers_or_exports_holds_a_secret(place: Planted) -> None:
    with process(place.written, "serve", place.env, "serve", "--port", "0") as address:
        drive_http(place.written, address, place.token, place.reader)
        drive_sockets(place.written, address, place.token)
        remote = place.env | {"WINDOWPANE_TOKEN": place.token}
        for words in (["sessions"], ["explain", "last"]):
            ran(place.written, remote, *words, "--url", address)
        wrong = {"WINDOWPANE_TOKEN": place.written.planted["wrong_token"]}
        ran(place.written, place.env | wrong, "sessions", "--url", address)
    place.written.add("spans", *(body for _, body in place.spans))

    assert place.spans
    assert place.found() == []


def test_nothing_that_the_mcp_door_writes_or_answers_holds_a_secret(place: Planted) -> None:
    with process(place.written, "mcp", place.env, "mcp", "--http", "--port", "0") as address:
        drive_mcp(place.written, address, place.token)

    assert place.found() == []


def test_no_command_shows_a_secret_also_not_that_of_a_store_it_cannot_open(place: Planted) -> None:
    drive_commands(place.written, place.env)

    assert place.found() == []


def drive_http(written: Written, address: str, token: str, reader: str) -> None:
    """Ask for everything that there is, well and badly."""
    planted = written.planted
    with httpx2.Client(base_url=address, timeout=PATIENCE_S, headers={"Authorization": f"Bearer {token}"}) as client:
        session = client.post("/api/sessions", json={"agent": "pane"}).json()["id"]
        research = client.post("/api/sessions", json={"agent": "pane", "settings": {"mode": "research"}}).json()["id"]
        for at in (session, research):
            written.answer(client.post(f"/api/sessions/{at}/messages", json={"content": "Hello?"}))
        events = {"Accept": "text/event-stream"}
        written.answer(client.post(f"/api/sessions/{session}/messages", json={"content": "Hi"}, headers=events))
        for body in (
            {"key": planted["given_key"]},
            {"key": [planted["given_key"]]},
            {"key": f"{planted['given_key']} "},
        ):
            written.answer(client.put("/api/providers/openai/key", json=body))
            written.answer(client.put("/api/providers/none/key", json=body))
        written.answer(client.post(f"/api/sessions/{session}/messages", json={"content": "With another key?"}))
        chat: dict[str, Any] = {"model": "pane", "messages": [{"role": "user", "content": "Hi"}]}
        written.answer(client.post("/v1/chat/completions", json=chat))
        written.answer(client.post("/v1/chat/completions", json=chat | {"stream": True}))
        written.answer(client.post("/v1/responses", json={"model": "pane", "input": "Hi"}))
        agui: dict[str, Any] = {
            "threadId": "t",
            "runId": "r",
            "state": {},
            "tools": [],
            "context": [],
            "forwardedProps": {},
        }
        said = [{"id": "m", "role": "user", "content": "Hi"}]
        written.answer(client.post("/api/agents/pane/ag-ui", json=agui | {"messages": said}))
        proxied = client.post(
            "/api/sessions", json={"agent": "pane", "settings": {"model": "anthropic:claude-x"}}
        ).json()
        written.answer(client.post(f"/api/sessions/{proxied['id']}/messages", json={"content": "Through a proxy?"}))
        own = {"X-Windowpane-Token": token, "Authorization": f"Bearer {planted['proxied_key']}"}
        for upstream in ("own", "openai"):
            written.add("xray", client.post(f"/xray/{upstream}/v1/chat/completions", json=chat, headers=own).text[:9])
        for path in _paths(client, session):
            written.answer(client.get(path, headers={"Authorization": f"Bearer {reader}"}))
            if "manifest" not in path:
                written.answer(client.get(path))
        written.answer(client.get("/api/sessions", params={"token": planted["query_token"], "limit": "x"}))
        written.answer(client.get("/api/none", params={"access_token": planted["query_token"]}))
    with httpx2.Client(base_url=address, timeout=PATIENCE_S) as client:
        written.answer(client.get("/api/sessions", headers={"Authorization": f"Bearer {planted['wrong_token']}"}))
        written.answer(client.post("/v1/responses", headers={"Authorization": f"Bearer {planted['wrong_token']}"}))
        written.answer(client.post("/api/login", json={"token": planted["wrong_token"]}))
        written.answer(client.post("/api/login", json={"token": [planted["wrong_token"]]}))
        written.answer(client.get("/api/sessions", headers={"Cookie": f"windowpane={planted['wrong_cookie']}"}))
        logged_in = client.post("/api/login", json={"token": token})
        # The cookie is the one place where the token itself is sent back, to its owner.
        written.add("POST /api/login", logged_in.content)
        written.answer(client.get("/api/me"))
        written.answer(client.get("/api/sessions", params={"limit": "x"}))


def _paths(client: httpx2.Client, session: str) -> list[str]:
    """Return every address that can be read, with names that there are."""
    names = {"session_id": session, "agent": "pane", "turn": "1", "type": "rule", "name": "x", "model": "pane"}
    names |= {"server": "failing", "listed": "days", "kind": "core"}
    described = client.get("/openapi.json").json()["paths"]
    paths = [path.format_map(_Names(names)) for path, operations in described.items() if "get" in operations]
    servers = [
        f"/api/agents/pane/servers/{name}" for name in ("working", "failing", "answering", "refusing", "unreachable")
    ]
    broken = ["/api/agents/broken", "/api/agents/broken/problems", "/api/agents/broken/servers"]
    return [path for path in (*paths, *servers, *broken) if not path.endswith("/events")]


class _Names(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return "1"


def drive_sockets(written: Written, address: str, token: str) -> None:
    """Watch a session over a WebSocket, send garbage, and show tokens in all the wrong places."""
    planted = written.planted
    own = {"Authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=address, headers=own, timeout=PATIENCE_S) as client:
        session = client.post("/api/sessions", json={"agent": "pane"}).json()["id"]
    url = f"{address.replace('http', 'ws', 1)}/api/sessions/{session}/events"
    for headers, query in (
        (own, "?after=0"),
        ({"Authorization": f"Bearer {planted['wrong_token']}"}, f"?token={planted['query_token']}"),
        ({"Cookie": f"windowpane={planted['wrong_cookie']}"}, f"?after={planted['query_token']}"),
    ):
        try:
            with connect(url + query, additional_headers=headers) as socket:
                socket.send(b"\xff" * 100)
                socket.send(json.dumps({"token": planted["wrong_token"]}))
                written.add("websocket", str(socket.recv(timeout=PATIENCE_S)))
        except WebSocketException as error:
            written.add("websocket", str(error))


def drive_mcp(written: Written, address: str, token: str) -> None:
    """Talk to the MCP door, well and badly."""
    planted = written.planted
    form = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    start = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "get_context", "arguments": {"x": 1}}}
    with httpx2.Client(timeout=PATIENCE_S, headers=form) as client:
        for shown in (token, planted["wrong_token"]):
            own = {"Authorization": f"Bearer {shown}"}
            written.answer(client.post(address, json=start, headers=own))
            written.answer(client.post(address, json=call, headers=own))
            written.answer(client.post(address, content=b"{garbage", headers=own))
            written.answer(client.post(address, json=call, headers=own | {"Mcp-Session-Id": planted["query_token"]}))
        written.answer(client.post(address, params={"token": planted["query_token"]}, json=start))


def drive_commands(written: Written, env: dict[str, str]) -> None:
    """Run the commands that look at everything, also with places that cannot be used."""
    password = written.planted["wrong_password"]
    ran(written, env, "doctor", "--ask", "--wait", "1")
    ran(written, env, "models")
    ran(written, env, "token", "list")
    ran(written, env, "sessions", "--json")
    ran(written, env, "export", "last")
    ran(written, env, "preview", "last", "What is it?")
    for url in (
        f"postgresql://ann:{password}@127.0.0.1:1/x?timeout_s=0.5",
        f"postgresql://ann:{password}/x@127.0.0.1:1/x?timeout_s=0.5",
        f"postgresql://127.0.0.1:1/x?user=ann&password={password}&timeout_s=0.5",
        f"redis://:{password}@127.0.0.1:1/0?patience_s=0.5",
        f"redis://127.0.0.1:1/0?password={password}&patience_s=0.5",
        f"nosuch://ann:{password}@host/x",
    ):
        ran(written, env | {"WINDOWPANE_STORE_URL": url}, "serve", "--port", "0")
    ran(written, env | {"WINDOWPANE_STORE_URL": f"postgresql://ann:{password}/x@127.0.0.1:1/x?timeout_s=0.5"}, "doctor")
    for name, url in (
        ("BUS_URL", f"nosuch://ann:{password}@127.0.0.1:1"),
        ("BLOBS_URL", f"nosuch://ann:{password}@host/x"),
        ("ANALYTICS_URL", f"nosuch://ann:{password}@host/x"),
        ("EMBEDDINGS_URL", f"nosuch://ann:{password}@host/x"),
    ):
        ran(written, env | {f"WINDOWPANE_{name}": url}, "doctor")
    for upstreams in (
        json.dumps({"own": f"http://ann:{password}@host?key={password}"}),
        f'{{"own": "http://ann:{password}@host"',
    ):
        ran(written, env | {"WINDOWPANE_XRAY_UPSTREAMS": upstreams}, "serve", "--port", "0")
