"""What tests of programs that use Windowpane need: a small world, and the parts it is made of.

    world = World(tmp_path)
    world.rule("tone", "Be kind.", include="always")
    world.says("Hello.")
    async with world.pane() as pane:
        session = await pane.sessions.create()
        assert (await pane.ask(session.id, "Hi")).text == "Hello."

The model says what it is told to, tools are functions, and everything else is real. `serving()` is for tests of
programs that use the HTTP API.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from windowpane.agents.folder import FolderAgents
from windowpane.context.events import Event, Live, Recorded
from windowpane.engine import Engine
from windowpane.local.pane import LocalPane
from windowpane.models.provider import PydanticModels
from windowpane.models.scripted import Call, Reply, ScriptedModel
from windowpane.request.selector import FixedSelector, Selector
from windowpane.settings import Settings
from windowpane.stores.base import Store
from windowpane.stores.memory import MemoryStore
from windowpane.tools.functions import FunctionTool, FunctionToolbox

__all__ = [
    "Call",
    "FixedSelector",
    "FunctionTool",
    "FunctionToolbox",
    "MemoryStore",
    "Reply",
    "ScriptedModel",
    "World",
    "drain",
    "serving",
    "stored",
    "tool",
]


@dataclass
class World:
    """An agent's folder, a scripted model and some tools: everything an engine needs, all of it real."""

    root: Path
    store: Store = field(default_factory=MemoryStore)
    toolbox: FunctionToolbox = field(default_factory=FunctionToolbox)
    model: ScriptedModel = field(default_factory=lambda: ScriptedModel("test", []))
    selector: Selector | None = None
    environ: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        # The tools that are built in have tests of their own; here they would be in the way of every list of tools.
        self.write("agent.yaml", "model: scripted:test\nworking_context: false\nfinders: false\n")
        self.write("prompts/core.md", "You are Pane.")

    def write(self, path: str, text: str) -> Path:
        """Write a file of the agent's folder."""
        file = self.root / "pane" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def rule(self, name: str, text: str = "", **front: Any) -> Path:
        """Write a rule; `front` is its front matter."""
        return self.write(f"rules/{name}.md", _front(front) + (text or f"Text of {name}."))

    def reference(self, name: str, text: str = "", **front: Any) -> Path:
        """Write a reference; `front` is its front matter."""
        return self.write(f"references/{name}.md", _front(front) + (text or f"Text of {name}."))

    def says(self, *replies: Reply | str) -> None:
        """Say what the model replies, call by call."""
        self.model = ScriptedModel("test", [Reply(reply) if isinstance(reply, str) else reply for reply in replies])

    @asynccontextmanager
    async def engine(self, **options: Any) -> AsyncGenerator[Engine]:
        """Open an engine for this world."""
        engine = Engine(
            store=self.store,
            agents=FolderAgents(self.root),
            models=PydanticModels(scripts=[self.model], environ=self.environ),
            toolbox=lambda: self.toolbox,
            selector=self.selector,
            **options,
        )
        async with engine:
            yield engine

    @asynccontextmanager
    async def pane(self, *, owner: str | None = "local", **options: Any) -> AsyncGenerator[LocalPane]:
        """Open a pane for this world."""
        async with self.engine(**options) as engine:
            yield LocalPane(engine, owner=owner)


@asynccontextmanager
async def serving(settings: Settings, *scripts: ScriptedModel) -> AsyncGenerator[str]:
    """Serve on a free port of this machine, and yield the address. No token is needed.

    `scripts` are the models that agents name as `scripted:NAME`.
    """
    # Not at the top: the server takes most of a second to import, and most tests need none.
    import uvicorn

    from windowpane.server.app import create_app
    from windowpane.wiring import open_engine

    app = create_app(open_engine(settings, models=PydanticModels(scripts=scripts)))
    # With its own lifespan uvicorn would end the process when something cannot be opened.
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
    async with app.router.lifespan_context(app):
        task = asyncio.create_task(server.serve())
        try:
            while not server.started:  # noqa: ASYNC110 – uvicorn tells it no other way
                await asyncio.sleep(0.02)
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        finally:
            server.should_exit = True
            await task


def _front(front: Mapping[str, Any]) -> str:
    return "---\n" + "".join(f"{name}: {value}\n" for name, value in front.items()) + "---\n"


def tool(name: str, answer: str = "done", **options: Any) -> FunctionTool:
    """Return a tool that answers with a text, in which `{argument}` stands for an argument."""

    async def run(arguments: Mapping[str, Any]) -> str:
        return answer.format(**arguments)

    return FunctionTool(name=name, run=run, **options)


async def drain(events: AsyncIterator[Live]) -> list[Live]:
    """Return everything that a turn yields."""
    return [event async for event in events]


def stored(events: Sequence[Live]) -> list[Event]:
    """Return the events of a turn that were stored."""
    return [event.event for event in events if isinstance(event, Recorded)]
