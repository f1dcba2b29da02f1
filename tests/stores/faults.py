"""What can go wrong with a store that processes share, made to happen, with what it did to the log.

Each scenario runs real writers in processes of their own, who note what they try and what they are told, and returns
the checker's verdict about the log. Tests run each briefly; `bench/faults.py` runs the same for longer.
"""

import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import anyio
import anyio.to_thread

from patience import PATIENCE_S
from stores.checker import History, Verdict, check
from stores.kinds import Kind, Server, begin
from stores.processes import Place, Running
from stores.proxy import Proxy, proxy_to
from windowpane.context.ids import SessionId


@dataclass(frozen=True, slots=True)
class Outcome:
    """How often something was killed or cut, and what the log then held."""

    kills: int
    verdict: Verdict


@dataclass(slots=True)
class Writers:
    """Processes that write to one session until they are told to stop, and what they have said so far."""

    place: Place
    session: SessionId
    keyed: Literal["keyed", "plain"] = "keyed"
    callers: int = 4
    history: History = field(default_factory=History)
    _acknowledged: int = 0
    _heard: anyio.Event = field(default_factory=anyio.Event)
    _running: list[Running] = field(default_factory=list[Running])

    @asynccontextmanager
    async def run(self, names: Sequence[str]) -> AsyncGenerator["Writers"]:
        """Start writers together; stop them in good order at the end, unless they were killed."""
        async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:
            for name in names:
                arguments = (self.session, name, str(self.callers), "2", self.keyed)
                one = await stack.enter_async_context(self.place.process("write_until_told", *arguments))
                self._running.append(one)
                tasks.start_soon(self._listen, one)
            for one in self._running:
                await one.go_on()
            yield self
            for one in self._running:
                if one.process.returncode is None:
                    await one.go_on()
        self._running.clear()

    async def more(self, how_many: int) -> None:
        """Wait until so many more appends were acknowledged."""
        enough = self._acknowledged + how_many
        with anyio.fail_after(PATIENCE_S):
            while self._acknowledged < enough:
                self._heard = anyio.Event()
                await self._heard.wait()

    def kill_all(self) -> None:
        """Kill every writer with -9."""
        for one in self._running:
            one.process.kill()

    async def _listen(self, one: Running) -> None:
        async for line in one.lines():
            self.history.hear([line])
            self._acknowledged += line.startswith("ack")
            self._heard.set()


async def many_writers(place: Place, how_many: int, appends: int) -> Outcome:
    """Let several processes write to one session at once."""
    writers = await _begun(place)
    async with writers.run([f"w{number}" for number in range(how_many)]):
        await writers.more(appends)
    return Outcome(0, await _verdict(writers))


async def killed_writers(place: Place, kills: int, at_once: int = 2) -> Outcome:
    """Kill writers with -9 at random moments, while one that lives on writes too."""
    survivor = await _begun(place)
    others = Writers(place, survivor.session, history=survivor.history)
    done = 0
    async with survivor.run(["survivor"]):
        while done < kills:
            names = [f"g{done + number}" for number in range(min(at_once, kills - done))]
            async with others.run(names):
                await others.more(20)
                await anyio.sleep(random.uniform(0, 0.05))
                others.kill_all()
            done += len(names)
        await survivor.more(20)
    return Outcome(done, await _verdict(survivor))


async def killed_server(kind: Kind, directory: Path, kills: int, keyed: Literal["keyed", "plain"] = "keyed") -> Outcome:
    """Kill the server with -9 and start it again, while processes write."""

    async def kill(server: Server, proxy: Proxy) -> None:
        await anyio.to_thread.run_sync(server.kill)
        await anyio.to_thread.run_sync(server.start)

    return await _disturbed(kind, directory, kills, keyed, kill)


async def cut_connections(
    kind: Kind, directory: Path, cuts: int, keyed: Literal["keyed", "plain"] = "keyed"
) -> Outcome:
    """Cut all connections in whatever they are doing, while processes write."""

    async def cut(server: Server, proxy: Proxy) -> None:
        proxy.cut_all()

    return await _disturbed(kind, directory, cuts, keyed, cut)


async def _disturbed(
    kind: Kind,
    directory: Path,
    times: int,
    keyed: Literal["keyed", "plain"],
    disturb: Callable[[Server, Proxy], Awaitable[None]],
) -> Outcome:
    async with serving(kind, directory) as server, proxy_to(server.host, server.port) as proxy:
        writers = await _begun(through(proxy, Place(kind, server.place)), keyed)
        async with writers.run(["w0", "w1"]):
            for _ in range(times):
                await writers.more(20)
                await anyio.sleep(random.uniform(0, 0.02))
                await disturb(server, proxy)
            await writers.more(20)
        return Outcome(times, await _verdict(writers))


@asynccontextmanager
async def serving(kind: Kind, directory: Path) -> AsyncGenerator[Server]:
    """Run a server of one's own."""
    assert kind.serve is not None
    server = await anyio.to_thread.run_sync(kind.serve, directory)
    try:
        await anyio.to_thread.run_sync(server.start)
        yield server
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(server.stop)


def through(proxy: Proxy, place: Place) -> Place:
    """Return a place as it is reached through a proxy."""
    return Place(place.kind, place.name.replace(f":{proxy.to_port}", f":{proxy.port}", 1))


async def _begun(place: Place, keyed: Literal["keyed", "plain"] = "keyed") -> Writers:
    async with place.open() as store:
        return Writers(place, await begin(store), keyed)


async def _verdict(writers: Writers) -> Verdict:
    async with writers.place.open() as store:
        log = await store.read(writers.session)
        assert (await store.row(writers.session)).last_seq == len(log)
        return check(writers.history, log)
