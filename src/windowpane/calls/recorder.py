"""Record the calls of one turn, or of one summary.

The transport sees a request and asks the recorder that is current to keep it. `call.sent` is stored while the provider
works, before its answer is read. How a call ended is kept back and stored with whatever is stored next.
"""

import hashlib
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import replace

import anyio

from windowpane.calls.body import keep
from windowpane.calls.skeleton import LastBody
from windowpane.context.calls import CallPurpose, ModelPrice, WireHead
from windowpane.context.events import CallEnded, CallSent, Event
from windowpane.context.ids import BlobHash, content_hash
from windowpane.context.messages import Usage
from windowpane.json_codec import JsonCodec

StoreCalls = Callable[[Sequence[Event], Mapping[BlobHash, str]], Awaitable[object]]
CountCalls = Callable[[Sequence[CallEnded]], Awaitable[object]]
_HEAD = JsonCodec(WireHead)
_current: ContextVar["CallRecorder | None"] = ContextVar("call_recorder", default=None)


class CallRecorder:
    """Keeps the calls that are made for one purpose. `store` appends events and blobs to the session's log.

    `last` is the body of the session that the first call is compared to, then that of the call before.
    """

    def __init__(
        self, store: StoreCalls, *, purpose: CallPurpose, turn: int | None = None, last: LastBody | None = None
    ) -> None:
        self._store = store
        self._purpose: CallPurpose = purpose
        self._turn = turn
        self._step = 0
        self._attempt = 0
        self._model = ""
        self._counted_tokens, self._tools_tokens = 0, 0
        self._price: ModelPrice | None = None
        self.last = last
        self._stored: set[BlobHash] = set()
        self._ended: list[Event] = []
        self._unpaid: list[CallEnded] = []
        self._watched: list[Callable[[], None]] = []
        self.usage = Usage()
        """What the calls used so far, as far as that is known."""

    def begin_step(
        self, step: int, model: str, counted_tokens: int = 0, price: ModelPrice | None = None, *, tools_tokens: int = 0
    ) -> None:
        """Tell which model call comes next, for which model, how many tokens we count in it, how many of them for
        tools, and what the agent says that they cost.
        """
        self._attempt = self._attempt if step == self._step else 0
        self._step, self._model, self._price = step, model, price
        self._counted_tokens, self._tools_tokens = counted_tokens, tools_tokens

    @property
    def step(self) -> int:
        """Return the number of the model call that came last."""
        return self._step

    def know(self, stored: Iterable[BlobHash]) -> None:
        """Note that texts are stored with the session already, such as the bytes of files."""
        self._stored.update(stored)

    async def sent(self, head: WireHead, body: bytes) -> str:
        """Store a request that is on its way, and return the id of the call."""
        self._attempt += 1
        kept, last = keep(body, self.last)
        text = _HEAD.adapter.dump_json(head).decode()
        blobs = {content_hash(text): text, **kept.blobs}
        sent = CallSent(
            id=secrets.token_hex(6),
            turn=self._turn,
            step=self._step,
            attempt=self._attempt,
            purpose=self._purpose,
            model=self._model,
            head=content_hash(text),
            body=kept.name,
            sha256=hashlib.sha256(body).hexdigest(),
            size=len(body),
        )
        new = {name: blob for name, blob in blobs.items() if name not in self._stored}
        await self._store([*self.take(), sent], new)
        # Only now: a body that was not stored must not be what later ones are compared to.
        self._stored.update(new)
        self.last = last
        return sent.id

    def ended(self, ended: CallEnded) -> None:
        """Keep how a call ended, until something is stored."""
        whole = replace(
            ended,
            turn=self._turn,
            purpose=self._purpose,
            model=self._model,
            counted_tokens=self._counted_tokens,
            tools_tokens=self._tools_tokens,
            price=self._price,
            # An embedding has no output.
            output_unknown=ended.output_unknown and self._purpose != "embedding",
        )
        self._ended.append(whole)
        self._unpaid.append(whole)
        self.usage += whole.usage or Usage()

    def watch(self, stop_reading: Callable[[], None]) -> None:
        """Keep how a call that is begun is given up; a call that has ended takes no notice."""
        self._watched.append(stop_reading)

    def stop_reading(self) -> None:
        """Give up the calls that have not ended."""
        watched, self._watched = self._watched, []
        for stop_reading in watched:
            stop_reading()

    def take(self) -> list[Event]:
        """Return the ends that are not stored yet, for an append that the caller makes."""
        ended, self._ended = self._ended, []
        return ended

    def unpaid(self) -> list[CallEnded]:
        """Return the calls that ended since this was last asked, so that their cost can be counted."""
        ended, self._unpaid = self._unpaid, []
        return ended


class HeldCalls(CallRecorder):
    """Keeps calls to an embedding endpoint back until the turn stores something else.

    They are made while a turn looks for what it needs. None of them is a step of its own: `step` is that of the model
    call before, 0 for the first request. `prices` are what the agent says that models cost. `keep` stores what goes on
    when the turn no longer waits for it, and `count` counts what calls cost that have ended.
    """

    def __init__(
        self,
        *,
        turn: int | None,
        step: int = 0,
        prices: Mapping[str, ModelPrice],
        keep: StoreCalls | None = None,
        count: CountCalls | None = None,
    ) -> None:
        super().__init__(self._hold, purpose="embedding", turn=turn)
        self._at_step = step
        self._prices = prices
        self._keep = keep
        self._count = count
        self._events: list[Event] = []
        self._blobs: dict[BlobHash, str] = {}

    def begin_call(self, model: str) -> None:
        """Tell which model the next call is for."""
        self._attempt = 0
        self.begin_step(self._at_step, model, price=self._prices.get(model))

    async def count_cost(self) -> None:
        """Count what the calls cost that ended since this was last done."""
        if self._count is not None and (ended := self.unpaid()):
            await self._count(ended)

    def release(self) -> tuple[list[Event], dict[BlobHash, str]]:
        """Return what is to be stored: events, and the texts that they name."""
        events, blobs = [*self._events, *self.take()], self._blobs
        self._events, self._blobs = [], {}
        return events, blobs

    @asynccontextmanager
    async def apart(self) -> AsyncGenerator[None]:
        """Keep the calls that are begun in this block apart from the turn's, and store them at the end of it."""
        if self._keep is None:
            with not_recording():
                yield
            return
        later = HeldCalls(turn=self._turn, step=self._at_step, prices=self._prices, count=self._count)
        try:
            with recording(later):
                yield
        finally:
            events, blobs = later.release()
            if events:
                with anyio.CancelScope(shield=True):
                    await self._keep(events, blobs)

    async def _hold(self, events: Sequence[Event], blobs: Mapping[BlobHash, str]) -> None:
        self._events += events
        self._blobs |= blobs


@asynccontextmanager
async def recording_apart() -> AsyncGenerator[None]:
    """Keep the calls of a task in the background with the session that began it, whether that waits for it or not."""
    recorder = _current.get()
    if isinstance(recorder, HeldCalls):
        async with recorder.apart():
            yield
    else:
        with not_recording():
            yield


@asynccontextmanager
async def recording_embedding(model: str, outside: Callable[[], HeldCalls | None]) -> AsyncGenerator[None]:
    """Keep one call to an embedding endpoint, with the turn that runs or, where none does, as `outside` says."""
    recorder = _current.get()
    if isinstance(recorder, HeldCalls):
        recorder.begin_call(model)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await recorder.count_cost()
    elif (apart := outside()) is not None:
        async with apart.apart(), recording_embedding(model, outside):
            yield
    else:
        with not_recording():
            yield


@contextmanager
def not_recording() -> Generator[None]:
    """Let no turn keep the calls that are begun in this block: they are made for all sessions."""
    token = _current.set(None)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def recording(recorder: CallRecorder | None) -> Generator[None]:
    """Let the calls that are begun in this block be kept by a recorder. With None nothing changes.

    At the end of the block its calls are over, also those whose answer was let go without being closed.
    """
    if recorder is None:
        yield
        return
    token = _current.set(recorder)
    try:
        yield
    finally:
        _current.reset(token)
        recorder.stop_reading()


def current_recorder() -> CallRecorder | None:
    """Return the recorder of the block that runs now."""
    return _current.get()
