"""Two servers on one store that goes away in the middle of turns, or one of which is paused, and what is then stored.

Everything is real: the servers are processes of their own, the store is a database that is killed, held up or without
room, the model is a provider on the wire that stops half-way. Tests run each fault briefly; `bench/faults.py` runs the
same for longer.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import sqlite3
import subprocess
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2

from forked import Forked, forked, obey_permissions
from patience import PATIENCE_S
from server.place import EVENTS, events_in
from stores.faults import serving, through
from stores.kinds import Kind
from stores.processes import Place
from stores.proxy import proxy_to
from windowpane.context.events import ModelReplied, Recorded, TurnFinished, TurnStarted
from windowpane.context.ids import SessionId
from windowpane.errors import StoreUnavailableError
from windowpane.server.process.run import run
from windowpane.settings import Settings
from windowpane.wiring import open_store
from wire import openai_chat
from wire.reply import WireReply
from wire.server import Answer, Step, WireServer, running

ROOM_BYTES = 8 * 2**20

Away = Callable[["Servers"], AbstractAsyncContextManager[None]]
"""Takes the store away from servers while its block runs."""

Fault = Callable[[Kind, Path], AbstractAsyncContextManager[tuple[str, Away]]]
"""Makes a store, and yields its address and what takes it away."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of turns: how many were tried and acknowledged, how often a server refused, and what is wrong."""

    tried: int
    acknowledged: int
    refused: int
    lost: tuple[str, ...] = ()
    """Acknowledged and not there, or not with the answer that was shown."""
    doubled: tuple[str, ...] = ()
    """There more than once."""
    unfinished: tuple[str, ...] = ()
    """There, and never ended."""
    ended: int = 0
    """Servers that are gone."""


@asynccontextmanager
async def killed(kind: Kind, directory: Path) -> AsyncGenerator[tuple[str, Away]]:
    """Kill the database with -9, and start it again later."""
    async with serving(kind, directory) as server:

        @asynccontextmanager
        async def away(servers: Servers) -> AsyncGenerator[None]:
            await anyio.to_thread.run_sync(server.kill)
            try:
                yield
            finally:
                await anyio.to_thread.run_sync(server.start)

        yield server.place, away


@asynccontextmanager
async def stalled(kind: Kind, directory: Path) -> AsyncGenerator[tuple[str, Away]]:
    """Let nothing through to the database, and end no connection."""
    async with serving(kind, directory) as server, proxy_to(server.host, server.port) as proxy:

        @asynccontextmanager
        async def away(servers: Servers) -> AsyncGenerator[None]:
            proxy.stall()
            yield
            proxy.flow()

        yield through(proxy, Place(kind, server.place)).name, away


@asynccontextmanager
async def locked(kind: Kind, directory: Path) -> AsyncGenerator[tuple[str, Away]]:
    """Let another program hold the SQLite file."""
    path = directory / "sessions.db"

    @asynccontextmanager
    async def away(servers: Servers) -> AsyncGenerator[None]:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=PATIENCE_S)) as db:
            db.execute("BEGIN IMMEDIATE")
            yield

    yield f"sqlite:///{path}", away


@asynccontextmanager
async def full(kind: Kind, directory: Path) -> AsyncGenerator[tuple[str, Away]]:
    """Fill the disk of the SQLite file, and make room again. It is a small one in memory, which takes root to make."""
    small = directory / "small"
    small.mkdir()
    with _mounted(small):

        @asynccontextmanager
        async def away(servers: Servers) -> AsyncGenerator[None]:
            _fill(small / "ballast")
            yield
            (small / "ballast").unlink()

        yield f"sqlite:///{small / 'sessions.db'}", away


@asynccontextmanager
async def unwritable(kind: Kind, directory: Path) -> AsyncGenerator[tuple[str, Away]]:
    """Let servers write no file any more, as on a disk that has become read-only: neither the store nor their logs."""

    @asynccontextmanager
    async def away(servers: Servers) -> AsyncGenerator[None]:
        limits = [resource.prlimit(process.pid, resource.RLIMIT_FSIZE) for process in servers.processes]
        for process, (_, most) in zip(servers.processes, limits, strict=True):
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, most))
        yield
        for process, limit in zip(servers.processes, limits, strict=True):
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, limit)

    yield f"sqlite:///{directory / 'sessions.db'}", away


@asynccontextmanager
async def replaced(kind: Kind, directory: Path) -> AsyncGenerator[tuple[str, Away]]:
    """Let another store have the name of the SQLite file, as when a backup is put there, and put the first one back."""
    path, aside, other = (directory / name for name in ("sessions.db", "aside.db", "other.db"))

    @asynccontextmanager
    async def away(servers: Servers) -> AsyncGenerator[None]:
        async with open_store(f"sqlite:///{other}"):
            pass
        path.rename(aside)
        other.rename(path)
        before = path.read_bytes()
        yield
        assert path.read_bytes() == before, "a server wrote into a file that it had not opened"
        aside.rename(path)

    yield f"sqlite:///{path}", away


@contextmanager
def _mounted(place: Path) -> Generator[None]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM_BYTES}", "none", place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        for size in (2**16, 2**12, 1):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                continue


def serve(folder: Path, store_url: str, provider: str, say: Callable[[str], None]) -> None:
    """Serve until the process is ended, and say the address when it is ready."""
    os.environ |= {"OPENAI_API_KEY": "test", "OPENAI_BASE_URL": f"{provider}/v1"}
    run(Settings(host="127.0.0.1", port=0, data=folder, store_url=store_url, grace_s=1), on_ready=say)


def serve_obediently(folder: Path, say: Callable[[str], None]) -> None:
    """Serve as a user who may write only what permissions allow, and say the address, or why that cannot be."""
    obey_permissions()
    try:
        run(Settings(host="127.0.0.1", port=0, data=folder), on_ready=say)
    except StoreUnavailableError as error:
        say(str(error))


@dataclass(slots=True)
class Servers:
    """Servers of one store, the provider behind them, and what was asked of them."""

    store_url: str
    wire: WireServer
    processes: list[Forked] = field(default_factory=list[Forked])
    clients: list[httpx2.AsyncClient] = field(default_factory=list[httpx2.AsyncClient])
    messages: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    acknowledged: dict[str, str] = field(default_factory=dict[str, str])
    """The messages whose turns were seen to end well, with the answers that were shown."""
    refused: int = 0
    _refused: asyncio.Event = field(default_factory=asyncio.Event)

    async def session(self) -> str:
        """Create a session."""
        response = await self.clients[0].post("/api/sessions", json={})
        assert response.status_code == 201, response.text
        session: str = response.json()["id"]
        self.messages[session] = []
        return session

    @asynccontextmanager
    async def begun(self, at: int, session: str, message: str) -> AsyncGenerator[AsyncIterator[Any]]:
        """Send a message, and yield the rest of what is told about its turn once the answer has begun."""
        self.messages[session].append(message)
        path, body = f"/api/sessions/{session}/messages", {"content": message}
        async with self.clients[at].stream("POST", path, json=body, headers=EVENTS) as response:
            events = events_in(response)
            async for event in events:
                if event.event == "reply.delta":
                    break
            yield events

    async def hear_out(self, message: str, events: AsyncIterator[Any]) -> str:
        """Hear a turn to its end and return how it ended."""
        said, outcome = "", "unknown"
        async for event in events:
            if event.event == "model.replied":
                said += event.data["step"]["text"]
            elif event.event == "turn.finished":
                outcome = event.data["outcome"]
        if outcome == "completed":
            self.acknowledged[message] = said
        return outcome

    async def insist(self, at: int, session: str, message: str) -> None:
        """Send a message again and again, with the same key, until it is answered."""
        self.messages[session].append(message)
        while message not in self.acknowledged:
            try:
                answer = await self.clients[at].post(
                    f"/api/sessions/{session}/messages",
                    json={"content": message, "wait_s": 60},
                    headers={"Idempotency-Key": message},
                )
            except httpx2.TransportError:
                continue
            if answer.status_code == 200 and answer.json()["outcome"] == "completed":
                self.acknowledged[message] = answer.json()["text"]
                return
            assert answer.status_code in (409, 503), answer.text
            if answer.status_code == 503:
                assert answer.headers["Retry-After"]
                self.refused += 1
                self._refused.set()
            await anyio.sleep(0.2)

    async def refuse(self, times: int) -> None:
        """Wait until so many messages were refused."""
        while self.refused < times:
            self._refused.clear()
            await self._refused.wait()

    async def readiness(self, at: int, status: int) -> None:
        """Wait until a server says whether it is ready. It lives all the while."""
        while (await self.clients[at].get("/readyz")).status_code != status:
            assert (await self.clients[at].get("/healthz")).status_code == 200

    async def tally(self) -> Tally:
        """Return what the store holds of all that was asked."""
        lost: list[str] = []
        doubled: list[str] = []
        unfinished: list[str] = []
        async with open_store(self.store_url) as store:
            for session, messages in self.messages.items():
                log = await store.read(SessionId(session))
                turns = Counter(entry.event.message for entry in log if isinstance(entry.event, TurnStarted))
                doubled += [message for message in messages if turns[message] > 1]
                lost += [message for message in messages if not self._kept(message, log)]
                unfinished += _unfinished(log)
        tried = sum(map(len, self.messages.values()))
        ended = sum(process.exitcode is not None for process in self.processes)
        return Tally(tried, len(self.acknowledged), self.refused, tuple(lost), tuple(doubled), tuple(unfinished), ended)

    def _kept(self, message: str, log: Sequence[Recorded]) -> bool:
        if message not in self.acknowledged:
            return True
        turns = [
            entry.event.turn for entry in log if isinstance(entry.event, TurnStarted) and entry.event.message == message
        ]
        said = [
            entry.event.step.text
            for entry in log
            if isinstance(entry.event, ModelReplied) and entry.event.turn in turns
        ]
        return self.acknowledged[message] in said


def _unfinished(log: Sequence[Recorded]) -> list[str]:
    ends = Counter(entry.event.turn for entry in log if isinstance(entry.event, TurnFinished))
    return [
        entry.event.message for entry in log if isinstance(entry.event, TurnStarted) and ends[entry.event.turn] != 1
    ]


@asynccontextmanager
async def servers(folder: Path, store_url: str, how_many: int = 2) -> AsyncGenerator[Servers]:
    """Run servers of one store, with a provider behind them."""
    (folder / "agents/pane/prompts").mkdir(parents=True)
    (folder / "agents/pane/agent.yaml").write_text(json.dumps(AGENT))
    (folder / "agents/pane/prompts/core.md").write_text("You are Pane.")
    async with running() as wire, AsyncExitStack() as stack:
        made = Servers(store_url, wire)
        for number in range(how_many):
            one = forked(serve, folder, store_url, wire.url, log=folder / f"log-{number}")
            process = await anyio.to_thread.run_sync(one.__enter__)
            stack.push(one)
            client = httpx2.AsyncClient(base_url=process.said, timeout=PATIENCE_S)
            made.clients.append(await stack.enter_async_context(client))
            made.processes.append(process)
        yield made


AGENT = {"model": "openai-chat:gpt-4o", "search": {"enabled": False}, "working_context": False}


def half(then: Step) -> Answer:
    """Return an answer of which only the beginning comes by itself."""
    first, said, *rest = openai_chat.frames(WireReply(text=("So far.", " And on.")))
    return Answer((first, said, then, *rest, openai_chat.DONE))


async def outage(
    kind: Kind,
    directory: Path,
    fault: Fault,
    hold: Callable[[Servers], Coroutine[Any, Any, None]],
    turns: int = 3,
    *,
    hasty: bool = False,
) -> Tally:
    """Take the store away in the middle of turns, and while more messages are sent, for as long as `hold` takes.

    With `hasty`, servers soon refuse what the store does not answer.
    """
    async with (
        fault(kind, directory) as (store_url, away),
        servers(directory, store_url + (kind.hasty if hasty else "")) as both,
    ):
        go_on = asyncio.Event()
        both.wire.add(*[half(go_on)] * turns, *[openai_chat.answer(WireReply(text=("Hello.",)))] * turns)
        first, late = [[await both.session() for _ in range(turns)] for _ in range(2)]
        async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:
            begun = [
                await stack.enter_async_context(both.begun(number % 2, session, f"first {number}"))
                for number, session in enumerate(first)
            ]
            async with away(both):
                go_on.set()
                for number, events in enumerate(begun):
                    tasks.start_soon(both.hear_out, f"first {number}", events)
                for number, session in enumerate(late):
                    tasks.start_soon(both.insist, number % 2, session, f"late {number}")
                await both.readiness(0, 503)
                await hold(both)
        await both.readiness(0, 200)
        await both.readiness(1, 200)
        return await both.tally()


async def paused_server(
    kind: Kind, directory: Path, fault: Fault, hold: Callable[[Servers], Coroutine[Any, Any, None]], turns: int = 3
) -> Tally:
    """Stop a server in the middle of turns, and let the other continue their sessions; then let the first go on."""
    async with fault(kind, directory) as (store_url, _), servers(directory, store_url) as both:
        go_on = asyncio.Event()
        both.wire.add(*[half(go_on)] * turns, *[openai_chat.answer(WireReply(text=("Hello.",)))] * turns)
        sessions = [await both.session() for _ in range(turns)]
        async with AsyncExitStack() as stack:
            begun = [
                await stack.enter_async_context(both.begun(0, session, f"first {number}"))
                for number, session in enumerate(sessions)
            ]
            both.processes[0].send_signal(signal.SIGSTOP)
            go_on.set()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(hold, both)
                for number, session in enumerate(sessions):
                    tasks.start_soon(both.insist, 1, session, f"second {number}")
            both.processes[0].send_signal(signal.SIGCONT)
            for number, events in enumerate(begun):
                await both.hear_out(f"first {number}", events)
        await both.readiness(0, 200)
        return await both.tally()
