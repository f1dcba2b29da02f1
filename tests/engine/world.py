"""A small world for engine tests: an agent, a model that says what it is told to, and some tools."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from windowpane.agents.folder import FolderAgents
from windowpane.context.events import Event, Live, Recorded
from windowpane.engine import Engine
from windowpane.models.provider import PydanticModels
from windowpane.models.scripted import Reply, ScriptedModel
from windowpane.request.selector import Selector
from windowpane.stores.base import Store
from windowpane.stores.memory import MemoryStore
from windowpane.tools.functions import FunctionTool, FunctionToolbox


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
        self.write("agent.yaml", "model: scripted:test\nworking_context: false\n")
        self.write("prompts/core.md", "You are Pane.")

    def write(self, path: str, text: str) -> Path:
        file = self.root / "pane" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def rule(self, name: str, text: str = "", **front: Any) -> Path:
        return self.write(f"rules/{name}.md", _front(front) + (text or f"Text of {name}."))

    def reference(self, name: str, text: str = "", **front: Any) -> Path:
        return self.write(f"references/{name}.md", _front(front) + (text or f"Text of {name}."))

    def says(self, *replies: Reply | str) -> None:
        self.model = ScriptedModel("test", [Reply(reply) if isinstance(reply, str) else reply for reply in replies])

    @asynccontextmanager
    async def engine(self, **options: Any) -> AsyncGenerator[Engine]:
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


def _front(front: Mapping[str, Any]) -> str:
    return "---\n" + "".join(f"{name}: {value}\n" for name, value in front.items()) + "---\n"


def tool(name: str, answer: str = "done", **options: Any) -> FunctionTool:
    async def run(arguments: Mapping[str, Any]) -> str:
        return answer.format(**arguments)

    return FunctionTool(name=name, run=run, **options)


async def drain(events: AsyncIterator[Live]) -> list[Live]:
    return [event async for event in events]


def stored(events: Sequence[Live]) -> list[Event]:
    return [event.event for event in events if isinstance(event, Recorded)]
