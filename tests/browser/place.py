"""Where the browser tests happen: the real server as a process of its own, and a model that says what it is told.

The server is `windowpane serve` on a real SQLite file, with the example agent, a second one made for the tests, and a
real tool server. Its model is a provider's real protocol on a local socket, so that a test decides what is said, when,
and what goes wrong.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from patience import PATIENCE_S
from windowpane.agents.init import init_agent
from wire import openai_chat
from wire.reply import WireCall, WireReply
from wire.server import Answer, Step, WireServer, running

AGENT = "pane"
MODEL = "openai:gpt-4o"


class Model:
    """The provider: it answers in the order in which it was told to."""

    def __init__(self, wire: WireServer, loop: asyncio.AbstractEventLoop) -> None:
        self._wire = wire
        self.loop = loop
        # A summary is made some time after its turn: it would take the answer that the next test has told the model.
        wire.refuses = lambda asked: b'"record_summary"' in asked.raw

    @property
    def url(self) -> str:
        return self._wire.url

    @property
    def asked(self) -> list[Any]:
        """What it was sent, as JSON, oldest first."""
        return [asked.body for asked in self._wire.asked]

    def says(
        self,
        text: str,
        *,
        thinking: str = "",
        calls: tuple[WireCall, ...] = (),
        tokens: tuple[int, int, int] = (11, 7, 0),
    ) -> None:
        """Answer the next call in words. `tokens` is what it says it took: of input, of output, and from its cache."""
        self._wire.add(openai_chat.answer(WireReply(_words(text), _words(thinking), calls, *tokens)))

    def fails(self, message: str, status: int = 400) -> None:
        """Refuse the next call."""
        self._wire.add(openai_chat.problem(status, message))

    def forgets(self) -> None:
        """Have nothing more to say."""
        self._wire.forget()

    def says_slowly(self, *parts: str) -> Slowly:
        """Answer the next call part by part, each when the test says so."""
        return Slowly(self._wire, self.loop, parts)


@dataclass
class Slowly:
    """An answer that is held up before each of its parts but the first."""

    wire: WireServer
    loop: asyncio.AbstractEventLoop
    parts: tuple[str, ...]
    _gates: list[asyncio.Event] = field(default_factory=list[asyncio.Event])

    def __post_init__(self) -> None:
        head, *frames = openai_chat.frames(WireReply(self.parts))
        steps: list[Step] = [head]
        for index, frame in enumerate(frames):
            if 0 < index <= len(self.parts):
                self._gates.append(asyncio.Event())
                steps.append(self._gates[-1])
            steps.append(frame)
        self.wire.add(Answer((*steps, openai_chat.DONE)))

    def go_on(self) -> None:
        """Let the next part through; after the last one, the end."""
        self.loop.call_soon_threadsafe(self._gates.pop(0).set)

    def finish(self) -> None:
        """Let everything through."""
        while self._gates:
            self.go_on()


@dataclass
class Place:
    """A running server and what it can be filled with."""

    url: str
    model: Model
    folder: Path
    client: httpx2.Client

    def new_session(self, name: str = "", agent: str = AGENT, **settings: Any) -> str:
        body = {"agent": agent, "name": name, "settings": settings}
        return self.call("POST", "/api/sessions", body)["id"]

    def delete_sessions(self) -> None:
        while sessions := self.call("GET", "/api/sessions?limit=100")["sessions"]:
            for session in sessions:
                self.call("DELETE", f"/api/sessions/{session['id']}")

    def ask(self, session: str, message: str, answer: str, **more: Any) -> Any:
        """Have one turn, without a browser."""
        self.model.says(answer, **more)
        return self.call("POST", f"/api/sessions/{session}/messages", {"content": message})

    def call(self, method: str, path: str, body: Any = None) -> Any:
        response = self.client.request(method, path, json=body)
        assert response.is_success, response.text
        return response.json() if response.content else None

    @property
    def files(self) -> Path:
        """The folder whose files the page may show and edit."""
        return self.folder / "files"

    def write(self, path: str, text: str, agent: str = AGENT) -> Path:
        file = self.folder / "agents" / agent / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file


@contextmanager
def running_place(folder: Path, *, ends_with: signal.Signals = signal.SIGINT) -> Generator[Place]:
    """Run a server with everything that it needs until the block ends."""
    (folder / "agents").mkdir(parents=True)
    (folder / "files").mkdir()
    with (
        speaking() as model,
        serving(folder, model, ends_with=ends_with) as url,
        httpx2.Client(base_url=url, timeout=PATIENCE_S) as http,
    ):
        yield Place(url, model, folder, http)


@contextmanager
def speaking() -> Generator[Model]:
    """Run the provider in a thread of its own: the browser's driver has the main one."""
    ready = threading.Event()
    found: list[Model] = []
    ends: list[asyncio.Event] = []

    async def speak() -> None:
        async with running() as wire:
            ends.append(asyncio.Event())
            found.append(Model(wire, asyncio.get_running_loop()))
            ready.set()
            await ends[0].wait()

    thread = threading.Thread(target=asyncio.run, args=(speak(),), daemon=True)
    thread.start()
    assert ready.wait(PATIENCE_S)
    try:
        yield found[0]
    finally:
        found[0].loop.call_soon_threadsafe(ends[0].set)
        thread.join(PATIENCE_S)


@contextmanager
def serving(
    folder: Path, model: Model, port: int = 0, *, ends_with: signal.Signals = signal.SIGINT, **settings: str
) -> Generator[str]:
    """Run `windowpane serve` on a folder and return its address. `settings` are variables of its environment."""
    write_agents(folder / "agents")
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("WINDOWPANE_")},
        "OPENAI_API_KEY": "test",
        "OPENAI_BASE_URL": f"{model.url}/v1",
        "WINDOWPANE_ROOTS": json.dumps([str(folder / "files")]),
        "WINDOWPANE_XRAY_UPSTREAMS": json.dumps({"openai": model.url}),
        "NO_COLOR": "1",
        **settings,
    }
    command = [sys.executable, "-m", "windowpane", "serve", "--port", str(port), "--data", str(folder)]
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said: list[str] = []
    came = threading.Event()

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            came.set()

    reader = threading.Thread(target=listen, daemon=True)
    reader.start()
    try:
        yield _address(process, said, came)
    finally:
        process.send_signal(ends_with)
        process.wait(PATIENCE_S)
        reader.join(PATIENCE_S)
        assert process.stdout is not None
        process.stdout.close()


def _address(process: subprocess.Popen[str], said: list[str], came: threading.Event) -> str:
    while True:
        for line in said:
            if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                return found[0]
        assert process.poll() is None, "".join(said)
        assert came.wait(PATIENCE_S), "".join(said)
        came.clear()


def write_agents(folder: Path) -> None:
    """Write the example agent, and one whose items the tests know, with the same tool server."""
    guide, pane = folder / "guide", folder / AGENT
    if pane.exists():
        return
    init_agent(guide)
    pane.mkdir()
    shutil.copytree(guide / "tools", pane / "tools")
    shutil.copytree(guide / "notes", pane / "notes")
    files = {
        "agent.yaml": f"""description: Answers questions about photos, and keeps notes.
model: {MODEL}
mcpServers:
  notes:
    command: ${{WINDOWPANE_PYTHON}}
    args: ["${{AGENT_DIR}}/tools/notes_server.py"]
    include: always
    permission: required
    tools:
      list_notes: {{permission: not_required}}
""",
        "prompts/core.md": "You are Pane. Answer questions about photos.",
        "rules/tone.md": _item("Be kind and brief.", description="How to sound", include="always", priority=1),
        "rules/privacy.md": _item("Never name people.", description="What not to say", include="manual", priority=20),
        "references/photo-upload.md": _item(
            "Photos are uploaded with the button at the top of the album.",
            description="How photos are uploaded",
            include="agent",
            priority=100,
            related="[photo-resizing]",
        ),
        "references/photo-resizing.md": _item(
            "Photos are resized in the editor: choose Size, then a width.",
            description="How photos are resized",
            include="agent",
            priority=110,
            title="Photo Resizing Guide",
        ),
    }
    for name, text in files.items():
        file = pane / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def _item(text: str, **front: Any) -> str:
    return "---\n" + "".join(f"{name}: {value}\n" for name, value in front.items()) + f"---\n{text}\n"


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\s*\S+\s*", text))


def tool_call(id_: str, tool: str, /, **arguments: Any) -> WireCall:
    """Return a call that the model asks for; the arguments come in one piece."""
    return WireCall(id_, tool, (json.dumps(arguments),))
