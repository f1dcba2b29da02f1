"""The product as users have it: `windowpane serve` as a process, and a model provider on the wire beside it.

The server is the installed command with its own settings, so everything in it is real: the embedding model, the hybrid
selector, SQLite, the provider's client. Only the provider is ours: it speaks OpenAI's protocol over a socket, answers
what a test wants, and keeps the bytes it was sent.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from anyio.from_thread import start_blocking_portal

from patience import PATIENCE_S
from wire import openai_chat
from wire.reply import WireReply
from wire.server import WireServer, running

MODEL = "openai-chat:gpt-4o"
DEADLINE_S = 60
"""The longest that a search may wait for vectors."""

TOOL_SERVER = Path(__file__).parent / "tool_server.py"


def environment(data: Path, **more: str) -> dict[str, str]:
    """Return an environment in which only this data folder exists."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "PYTHONPATH")}
    return kept | {"WINDOWPANE_DATA": str(data), "COLUMNS": "200", "TERM": "dumb"} | more


@dataclass(frozen=True)
class Folder:
    """An agent's folder. It is the server's at once, and every edit is in the next request."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    def write(self, path: str, text: str) -> None:
        file = self.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")

    def agent(self, **settings: Any) -> None:
        """Write `agent.yaml`, in JSON, which is YAML: the order and the window of the documents."""
        given = {"model": MODEL, "working_context": False, "search": {"deadline_s": DEADLINE_S}}
        given |= {"cache": "fresh", "memory": {"messages": 8}} | settings
        self.write("agent.yaml", json.dumps(given))

    def rule(self, name: str, text: str, **front: Any) -> None:
        self.write(f"rules/{name}.md", _front(front) + text)

    def reference(self, name: str, text: str, **front: Any) -> None:
        self.write(f"references/{name}.md", _front(front) + text)

    def tools(self, server: str, tools: Sequence[Mapping[str, str]], **settings: Any) -> dict[str, Any]:
        """Write down what a tool server offers; return its entry for `mcpServers`."""
        listed = self.path.parent.parent / f"{self.name}-{server}.json"
        listed.write_text(json.dumps(list(tools)), "utf-8")
        return {"command": sys.executable, "args": [str(TOOL_SERVER), str(listed)], **settings}


def _front(front: Mapping[str, Any]) -> str:
    return "---\n" + "".join(f"{name}: {json.dumps(value)}\n" for name, value in front.items()) + "---\n"


@dataclass(frozen=True)
class Product:
    """A running server and the provider of its models."""

    data: Path
    http: httpx2.Client
    wire: WireServer

    def folder(self, name: str) -> Folder:
        """Return a new agent's folder, with a core prompt and the settings of these tests."""
        folder = Folder(self.data / "agents" / name)
        folder.write("prompts/core.md", "You are Pane.")
        folder.agent()
        return folder

    def session(self, folder: Folder, **body: Any) -> str:
        return self.ok(self.http.post("/api/sessions", json={"agent": folder.name, **body}))["id"]

    def ask(self, session: str, message: str, *replies: str | WireReply) -> dict[str, Any]:
        """Send a message, which the provider answers with these replies, and return the turn."""
        said = [WireReply(text=(reply,)) if isinstance(reply, str) else reply for reply in replies or ("Fine.",)]
        self.wire.forget()
        self.wire.add(*map(openai_chat.answer, said))
        return self.ok(self.http.post(f"/api/sessions/{session}/messages", json={"content": message}))

    def preview(self, session: str, message: str) -> dict[str, Any]:
        return self.ok(self.http.post(f"/api/sessions/{session}/preview", json={"content": message}))

    def get(self, path: str, **query: Any) -> Any:
        return self.ok(self.http.get(f"/api{path}", params=query))

    def patch(self, session: str, **change: Any) -> dict[str, Any]:
        return self.ok(self.http.patch(f"/api/sessions/{session}", json=change))

    @property
    def sent(self) -> dict[str, Any]:
        """The body of the last request that reached the provider."""
        return self.wire.asked[-1].body

    @staticmethod
    def ok(response: httpx2.Response) -> Any:
        assert response.is_success, response.text
        return response.json()


def selected(context: Mapping[str, Any]) -> list[str]:
    """Return the items that were selected for a request, in its order."""
    return [
        f"{item['server']}:{item['name']}" if item["type"] == "tool" else f"{item['type']}:{item['name']}"
        for item in context["items"]
        if item["include_mode"] == "agent"
    ]


def texts(body: Mapping[str, Any], role: str) -> list[str]:
    """Return what messages of a role say in a request on the wire."""
    return [message["content"] for message in body["messages"] if message["role"] == role]


@contextmanager
def product(data: Path, **more: str) -> Generator[Product]:
    """Run the product on a data folder until the block ends.

    `more` are further environment variables; `{wire}` in one is the provider's address.
    """
    (data / "agents").mkdir(parents=True, exist_ok=True)
    with _provider() as wire:
        keys = {"OPENAI_BASE_URL": f"{wire.url}/v1", "OPENAI_API_KEY": "sk-test-1234567890"}
        command = [sys.executable, "-m", "windowpane", "serve", "--port", "0"]
        env = environment(data, **keys, **{name: value.format(wire=wire.url) for name, value in more.items()})
        with (
            (data / "log").open("w") as log,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=env, text=True) as server,
        ):
            try:
                with httpx2.Client(base_url=_address(server), timeout=PATIENCE_S) as client:
                    yield Product(data, client, wire)
            finally:
                server.kill()


@contextmanager
def _provider() -> Generator[WireServer]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(running()) as wire:
        yield wire


def _address(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    for line in server.stdout:
        for word in line.split():
            if word.startswith("http://"):
                return word
    raise AssertionError("the server ended before it was ready")
