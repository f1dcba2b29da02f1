"""Other processes that use a store, for tests.

A process says "ready" when its store is open, then one line for each thing that happened.
"""

import asyncio
import os
import resource
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

from forked import Talking, talking
from stores.checker import Try
from stores.kinds import BUNDLES, KINDS, Kind, begin_with, contents, said
from stores.skewed import set_clock
from windowpane.context.ids import SessionId
from windowpane.errors import SessionNotFoundError, StoreError, StoreUnavailableError
from windowpane.serving.logs import configure_logging
from windowpane.stores.base import Store


@dataclass(frozen=True, slots=True)
class Place:
    """Where a store's data is."""

    kind: Kind
    name: str

    def open(self) -> Store:
        return self.kind.open(self.name)

    @asynccontextmanager
    async def process(self, work: str, *arguments: str, skew_s: float = 0) -> AsyncGenerator["Running"]:
        """Run another process that has opened the store. Its clock may be wrong."""
        async with talking(run, str(skew_s), self.kind.name, self.name, work, *arguments) as process:
            running = Running(process, process.stdin, BufferedByteReceiveStream(process.stdout))
            assert await running.line() == "ready"
            yield running


@dataclass(frozen=True, slots=True)
class Running:
    """Another process."""

    process: Talking
    stdin: anyio.abc.ByteSendStream
    stdout: BufferedByteReceiveStream

    async def line(self) -> str:
        return (await self.stdout.receive_until(b"\n", 1_000_000)).decode()

    async def lines(self) -> AsyncGenerator[str]:
        """Yield the whole lines that the process says, as it says them."""
        half = b""
        try:
            while True:
                *whole, half = (half + await self.stdout.receive()).split(b"\n")
                for line in whole:
                    yield line.decode()
        except anyio.EndOfStream:
            await self.process.wait()

    async def rest(self) -> list[str]:
        """Return the whole lines that the process still says before it ends."""
        body = b""
        try:
            while True:
                body += await self.stdout.receive()
        except anyio.EndOfStream:
            *lines, _ = body.decode().split("\n")
            await self.process.wait()
            return lines

    async def go_on(self) -> None:
        await self.stdin.send(b"\n")


def say(line: object) -> None:
    os.write(1, f"{line}\n".encode())


async def told_to_go_on() -> None:
    await anyio.to_thread.run_sync(sys.stdin.buffer.readline, abandon_on_cancel=True)


async def append(store: Store, session: str, writer: str, how_many: str) -> None:
    await told_to_go_on()
    for number in range(int(how_many)):
        await store.append(SessionId(session), [said(f"{writer}:{number}")])


async def write_until_told(store: Store, session: str, writer: str, callers: str, size: str, keyed: str) -> None:
    """Once told to, append with many callers at once and say what each tries and is told, until told to stop.

    A caller with keys tries again what it was not told about; one without goes on with the next.
    """
    await told_to_go_on()
    told = asyncio.create_task(told_to_go_on())

    async def call(name: str) -> None:
        number = 0
        while not told.done():
            one = Try(name, number, int(size))
            say(one.line)
            try:
                appended = await store.append(SessionId(session), one.events, key=one.key if keyed == "keyed" else None)
            except StoreUnavailableError as error:
                say(f"fail {name} {number} {error}")
                number += keyed != "keyed"
                continue
            say(one.acknowledged(appended).line)
            number += 1

    await asyncio.gather(*(call(f"{writer}-{number}") for number in range(int(callers))))


async def list_until_told(store: Store, session: str) -> None:
    async def keep_listing() -> None:
        while True:
            row = (await store.sessions()).rows[0]
            assert len(await store.read(SessionId(session))) >= row.last_seq
            await store.row(SessionId(session))
            # Again and again, but the writers need the machine too.
            await asyncio.sleep(0.01)

    listing = asyncio.create_task(keep_listing())
    await asyncio.wait([listing, asyncio.create_task(told_to_go_on())], return_when=asyncio.FIRST_COMPLETED)
    say("failed" if listing.done() else "fine")
    listing.cancel()


async def watch(store: Store, session: str) -> None:
    async for recorded in store.subscribe(SessionId(session), after=0):
        say(f"{recorded.seq} {' '.join(contents([recorded]))}")
    say("over")


async def hold(store: Store, session: str, holder: str) -> None:
    say(await store.acquire(SessionId(session), holder, ttl_s=600) is not None)
    await told_to_go_on()
    await store.release(SessionId(session), holder)


async def fill(store: Store, session: str, file_bytes: str) -> None:
    """Append while no file may grow beyond a size, as on a full disk; then once more when it may."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(file_bytes), most))
    for number in count():
        try:
            await store.append(SessionId(session), [said(f"{number}" * 20_000)])
        except StoreUnavailableError as error:
            say(f"{number} {error}")
            break
    try:
        # A little room may be left.
        for _ in range(100):
            await store.check_writable()
    except StoreUnavailableError:
        say("not writable")
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    await store.append(SessionId(session), [said("there is room again")])


async def come_and_go(store: Store) -> None:
    """Begin sessions that have the same texts and delete them again, and say so, for as long as it is let."""
    while True:
        say(await begin_with(store, *BUNDLES))
        for row in (await store.sessions(limit=2)).rows:
            with suppress(SessionNotFoundError):
                await store.delete(row.id)


WORK: Mapping[str, Callable[..., Awaitable[None]]] = {
    work.__name__: work for work in (append, write_until_told, list_until_told, watch, hold, fill, come_and_go)
}


async def main(kind_name: str, place: str, work: str, *arguments: str) -> None:
    kind = next(kind for kind in KINDS if kind.name == kind_name)
    if work == "open_as_nobody":
        say("ready")
        if os.geteuid() == 0:
            os.seteuid(65534)
        try:
            async with kind.open(place):
                say("opened")
        except StoreError as error:
            say(f"{type(error).__name__}: {error}")
        return
    async with kind.open(place) as store:
        say("ready")
        await WORK[work](store, *arguments)


def run(skew_s: str, *arguments: str) -> None:
    """Do the work that is named in a process of its own, whose clock may be wrong."""
    # What is logged goes to stderr, as in a server: the lines on stdout are what the process says.
    configure_logging()
    if float(skew_s):
        set_clock(float(skew_s))
    anyio.run(lambda: main(*arguments))
