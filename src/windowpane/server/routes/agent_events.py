"""Watch an agent: its files, what is wrong with them, its tool servers, and how far indexing has come.

Folders and servers change without notice, so they are checked again and again while a client listens: once
for all clients that listen to the same agent, and not at all when none does.
"""

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal, cast

import anyio
from fastapi import Request
from fastapi.sse import format_sse_event
from starlette.responses import StreamingResponse

from windowpane.api.agents import ServerView
from windowpane.context.agents import Problem
from windowpane.errors import AgentNotFoundError
from windowpane.json_codec import JsonCodec
from windowpane.local.agents import FolderState
from windowpane.local.pane import LocalPane
from windowpane.server.dependencies import Reading
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.parameters import AgentName
from windowpane.server.problems import problems
from windowpane.server.sse import MEDIA_TYPE, ByteStream, as_json, sent_event

router = LazyRouter(prefix="/api/agents/{agent}", tags=["agents"])

LOOK_EVERY_S = 0.5
EXAMPLE = 'event: agent.files\ndata: {"files":["rules/tone.md"],"type":"agent.files"}\n\n'
STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events until the client goes away.",
        "content": {MEDIA_TYPE: {"itemSchema": sent_event("AgentEvent"), "example": EXAMPLE}},
    }
}


@dataclass(frozen=True, slots=True)
class FilesChanged:
    """Files of the agent's folder were written, made or deleted: these. Read again what you show of them."""

    files: tuple[str, ...]
    type: Literal["agent.files"] = "agent.files"


@dataclass(frozen=True, slots=True)
class ProblemsNow:
    """What is wrong in the agent's folder now, all of it."""

    problems: tuple[Problem, ...]
    type: Literal["agent.problems"] = "agent.problems"


@dataclass(frozen=True, slots=True)
class ServerNow:
    """A tool server has another state or other tools. `server` is null when the agent has it no more."""

    server: ServerView | None
    name: str
    type: Literal["agent.server"] = "agent.server"


@dataclass(frozen=True, slots=True)
class IndexingNow:
    """How many passages are embedded, and out of how many."""

    done: int
    total: int
    type: Literal["agent.indexing"] = "agent.indexing"


@dataclass(frozen=True, slots=True)
class AgentGone:
    """The agent's folder is no more, and nothing follows."""

    type: Literal["agent.deleted"] = "agent.deleted"


AgentEvent = FilesChanged | ProblemsNow | ServerNow | IndexingNow | AgentGone
_EVENT = JsonCodec[AgentEvent](AgentEvent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """An agent at one moment: which files it has and when they were written, what is wrong, servers, the index."""

    folder: FolderState
    servers: Mapping[str, ServerView]
    indexing: tuple[int, int] | None


class Looking:
    """Looks at agents, at most once in a while however many ask."""

    def __init__(self, every_s: float = LOOK_EVERY_S) -> None:
        self.every_s = every_s
        self._looks: dict[str, tuple[float, Look]] = {}
        self._lock = anyio.Lock()

    async def at(self, pane: LocalPane, name: str) -> Look:
        """Return an agent as it is now, or was a moment ago.

        Raises:
            AgentNotFoundError: no such agent.
        """
        async with self._lock:
            at, known = self._looks.get(name, (0.0, None))
            if known is not None and anyio.current_time() - at < self.every_s:
                return known
            self._looks.pop(name, None)
            look = Look(
                folder=await pane.agents.folder(name),
                servers={server.name: server for server in await pane.agents.servers(name)},
                indexing=pane.indexing,
            )
            self._looks[name] = (anyio.current_time(), look)
            return look


@router.get(
    "/events", summary="Watch an agent", response_class=StreamingResponse, responses={**problems(404), **STREAM}
)
async def watch_agent(pane: Reading, request: Request, agent: AgentName) -> ByteStream:
    """Send what happens to an agent as server-sent events.

    First come its problems and its tool servers as they are; then `agent.files` with the names of files that changed,
    `agent.problems` with all that is wrong, `agent.server` when a server has another state or other tools,
    `agent.indexing` while passages are embedded. `agent.deleted` ends the stream.
    """
    looking = cast("Looking", request.app.state.looking)
    return ByteStream(_sent(pane, looking, agent, await looking.at(pane, agent)))


async def _sent(pane: LocalPane, looking: Looking, agent: str, first: Look) -> AsyncGenerator[bytes]:
    async with aclosing(_events(pane, looking, agent, first)) as events:
        async for event in events:
            yield written(event)


def written(event: AgentEvent) -> bytes:
    """Return an event as the stream has it."""
    return format_sse_event(event=event.type, data_str=as_json(_EVENT.adapter.dump_python(event, mode="json")))


async def _events(pane: LocalPane, looking: Looking, agent: str, last: Look) -> AsyncGenerator[AgentEvent]:
    yield ProblemsNow(last.folder.problems)
    for name, server in last.servers.items():
        yield ServerNow(server, name)
    while not pane.ends_watching:
        await anyio.sleep(looking.every_s)
        try:
            now = await looking.at(pane, agent)
        except AgentNotFoundError:
            yield AgentGone()
            return
        for event in changes(last, now):
            yield event
        last = now


def changes(last: Look, now: Look) -> Iterator[AgentEvent]:
    """Return what happened between two looks."""
    if now is last:
        return
    if now.folder.files != last.folder.files:
        changed = [
            file
            for file in {**last.folder.files, **now.folder.files}
            if last.folder.files.get(file) != now.folder.files.get(file)
        ]
        yield FilesChanged(tuple(sorted(changed)))
    if now.folder.problems != last.folder.problems:
        yield ProblemsNow(now.folder.problems)
    for name in {**last.servers, **now.servers}:
        if last.servers.get(name) != now.servers.get(name):
            yield ServerNow(now.servers.get(name), name)
    if now.indexing is not None and now.indexing != last.indexing:
        yield IndexingNow(*now.indexing)
