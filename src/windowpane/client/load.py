"""Put a server under load: many sessions, turn after turn, and how long each turn took.

Every turn is a real one, sent as any client sends it and read as it streams. A turn that the server refuses with a time
to come again is sent again after that time. The sessions are made for the run and deleted at its end, also when it is
stopped.
"""

import math
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from time import perf_counter
from urllib.parse import urlsplit

import anyio
import httpx2

from windowpane.client.pane import Client
from windowpane.context.events import Delta, Recorded, TurnFinished
from windowpane.errors import WindowpaneError

SENTENCE = "Please tell me how this works, and what I have to change so that the next answer is better. "
TRIES = 20
"""How often a turn that is refused is sent, before it counts as failed."""

LONGEST_WAIT_S = 60.0
"""A server that asks to wait for longer is not waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is sent: `turns` in each session, at most `concurrency` at once, messages of so many characters."""

    agent: str | None = None
    sessions: int = 10
    turns: int = 5
    concurrency: int = 10
    chars: int = 200
    keep: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """How long half of the turns took at most, and 95 and 99 of a hundred, in seconds."""

    p50_s: float
    p95_s: float
    p99_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """How a run went. `refused` counts answers with 429; `errors` are turns that did not complete, by code.

    `first_word` and `whole` are of completed turns, from when the server took them; None without any.
    """

    load: Load
    duration_s: float
    completed: int
    turns_per_s: float
    first_word: Durations | None
    whole: Durations | None
    refused: int
    errors: dict[str, int]
    sent_bytes: int
    received_bytes: int


async def put_under_load(
    url: str, load: Load, *, token: str | None = None, on_progress: Callable[[int, int], None] | None = None
) -> LoadReport:
    """Run a load against a server; `on_progress` is told how many turns have ended, and out of how many.

    Raises:
        UnreachableError: the server does not answer.
        RemoteError: it refused to make a session.
    """
    wire = _CountingTransport()
    async with Client(url, token=token, transport=wire) as pane, _sessions(pane, load) as sessions:
        run = _Run(pane, load, on_progress or _ignore)
        wire.sent = wire.received = 0
        started = perf_counter()
        async with anyio.create_task_group() as tasks:
            for number, session_id in enumerate(sessions):
                tasks.start_soon(run.talk, number, session_id)
        duration_s = perf_counter() - started
        sent, received = wire.sent, wire.received
    return LoadReport(
        load=load,
        duration_s=duration_s,
        completed=len(run.whole_s),
        turns_per_s=len(run.whole_s) / duration_s,
        first_word=durations(run.first_word_s),
        whole=durations(run.whole_s),
        refused=run.refused,
        errors=dict(run.errors.most_common()),
        sent_bytes=sent,
        received_bytes=received,
    )


def durations(measured_s: Sequence[float]) -> Durations | None:
    """Return the 50th, 95th and 99th percentile, each one a time that was measured; None without any."""
    ordered = sorted(measured_s)
    if not ordered:
        return None
    half, most, nearly_all = (ordered[math.ceil(share * len(ordered) / 100) - 1] for share in (50, 95, 99))
    return Durations(p50_s=half, p95_s=most, p99_s=nearly_all)


def is_local(url: str) -> bool:
    """Tell whether a server is on this machine, by its address."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@asynccontextmanager
async def _sessions(pane: Client, load: Load) -> AsyncGenerator[list[str]]:
    """Make the sessions of a run, and delete them at its end unless they are to be kept."""
    made: list[str] = []
    try:
        for number in range(load.sessions):
            session = await pane.sessions.create(load.agent, name=f"load {number + 1}")
            made.append(session.id)
        yield made
    finally:
        with anyio.CancelScope(shield=True):
            for session_id in [] if load.keep else made:
                # Another may have deleted it, or the server is gone.
                with suppress(WindowpaneError):
                    await pane.sessions.delete(session_id)


@dataclass(slots=True)
class _Run:
    """The turns of a run, and what was measured of them."""

    pane: Client
    load: Load
    on_progress: Callable[[int, int], None]
    first_word_s: list[float] = field(default_factory=list[float])
    whole_s: list[float] = field(default_factory=list[float])
    errors: Counter[str] = field(default_factory=Counter[str])
    refused: int = 0
    places: anyio.CapacityLimiter = field(init=False)

    def __post_init__(self) -> None:
        self.places = anyio.CapacityLimiter(self.load.concurrency)

    async def talk(self, number: int, session_id: str) -> None:
        """Send the messages of one session, one after the other."""
        for turn in range(self.load.turns):
            async with self.places:
                if code := await self._ask(session_id, _message(number, turn, self.load.chars)):
                    self.errors[code] += 1
            self.on_progress(len(self.whole_s) + self.errors.total(), self.load.sessions * self.load.turns)

    async def _ask(self, session_id: str, message: str) -> str:
        """Send one message until it is taken; return the code of what went wrong, or nothing."""
        for _ in range(TRIES):
            try:
                return await self._measure(session_id, message)
            except WindowpaneError as error:
                wait_s: float | None = getattr(error, "retry_after_s", None)
                is_refused = getattr(error, "status", None) == httpx2.codes.TOO_MANY_REQUESTS
                self.refused += is_refused
                if not is_refused or wait_s is None or wait_s > LONGEST_WAIT_S:
                    return str(getattr(error, "remote_code", error.code))
            await anyio.sleep(wait_s)
        return "still_refused"

    async def _measure(self, session_id: str, message: str) -> str:
        started, first_word_s = perf_counter(), None
        ended: TurnFinished | None = None
        async for event in self.pane.turn(session_id, message):
            if isinstance(event, Delta) and event.kind == "text" and first_word_s is None:
                first_word_s = perf_counter() - started
            elif isinstance(event, Recorded) and isinstance(event.event, TurnFinished):
                ended = event.event
        if ended is None:
            # A person would have to decide. The next message needs the session.
            with suppress(WindowpaneError):
                await self.pane.cancel(session_id)
            return "waits_for_approval"
        if ended.outcome != "completed":
            return ended.error.code if ended.error else ended.outcome
        whole_s = perf_counter() - started
        self.whole_s.append(whole_s)
        self.first_word_s.append(whole_s if first_word_s is None else first_word_s)
        return ""


def _message(number: int, turn: int, chars: int) -> str:
    """Return a message of so many characters, a different one for each turn."""
    return (f"{number + 1}.{turn + 1} " + SENTENCE * (chars // len(SENTENCE) + 1))[:chars]


def _ignore(done: int, total: int) -> None:
    """Show no progress."""


class _CountingTransport(httpx2.AsyncHTTPTransport):
    """As many connections as there are turns, and how many bytes of bodies went each way."""

    def __init__(self) -> None:
        super().__init__(limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None))
        self.sent = self.received = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.sent += len(request.content)
        response = await super().handle_async_request(request)
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _CountedStream(response.stream, self)
        return response


class _CountedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, wire: _CountingTransport) -> None:
        self._stream = stream
        self._wire = wire

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            self._wire.received += len(part)
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()
