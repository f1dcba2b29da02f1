"""Record what passed, off the path of the traffic.

Exchanges are handed in and wait in a queue that has an end. One task takes them out and writes them down. Whatever goes
wrong here is counted and shown, and never reaches the traffic.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from windowpane.context.ids import SessionId
from windowpane.errors import StoreError
from windowpane.remarks import get_logger
from windowpane.stores.base import Store
from windowpane.supervise import keep_running
from windowpane.xray.tape import LossReason, Room, Tape, TapeHead
from windowpane.xray.writer import SessionWriter

MOST_HELD_BYTES = 128 * 1024 * 1024
"""How many bytes may wait to be recorded."""

MOST_WAITING = 10_000
"""How many requests and answers may wait to be recorded."""

DRAIN_S = 10.0
"""How long recording may go on after the traffic has ended."""

log = get_logger()


class Recorder:
    """Records exchanges as sessions of a store, which is open while it runs."""

    def __init__(self, store: Store, *, most_bytes: int = MOST_HELD_BYTES, most_waiting: int = MOST_WAITING) -> None:
        self.room = Room(most_bytes)
        self._writer = SessionWriter(store)
        self._most_waiting = most_waiting
        self._put: MemoryObjectSendStream[tuple[Tape, bool]] | None = None
        self._waiting = 0
        self._idle = anyio.Event()

    @property
    def sessions(self) -> tuple[SessionId, ...]:
        """Return the sessions that calls were recorded in, in the order in which they began."""
        return tuple(self._writer.sessions)

    def start_tape(self, head: TapeHead) -> Tape:
        """Begin to take down an exchange."""
        return Tape(head, self.room, self._submit)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Record until the block ends, and then what still waits."""
        put, taken = anyio.create_memory_object_stream[tuple[Tape, bool]](self._most_waiting)
        self._put = put
        async with put, taken, anyio.create_task_group() as tasks:
            tasks.start_soon(self._work, taken)
            tasks.start_soon(keep_running, "xray.attend", self._writer.attend)
            try:
                yield
            finally:
                with anyio.move_on_after(DRAIN_S, shield=True):
                    self._put = None
                    self._writer.patience_s = DRAIN_S / 4
                    await self.settled()
                    await self._writer.close()
                tasks.cancel_scope.cancel()

    async def settled(self) -> None:
        """Wait until everything that was handed in is recorded or lost."""
        while self._waiting:
            await self._idle.wait()

    def _submit(self, tape: Tape) -> bool:
        if self._put is None:
            return False
        try:
            self._put.send_nowait((tape, tape.outcome is not None))
        except anyio.WouldBlock:
            return False
        self._waiting += 1
        return True

    async def _work(self, handed_in: MemoryObjectReceiveStream[tuple[Tape, bool]]) -> None:
        async for tape, ended in handed_in:
            try:
                await self._record(tape, ended=ended)
            finally:
                self._waiting -= 1
                if not self._waiting:
                    self._idle.set()
                    self._idle = anyio.Event()

    async def _record(self, tape: Tape, *, ended: bool) -> None:
        try:
            if ended:
                written = await self._writer.ended(tape)
                if written and not tape.lost:
                    self.room.record(tape.head.owner)
            elif not tape.lost and not await self._writer.sent(tape):
                tape.discard()
        except StoreError as error:
            self._lose(tape, "store")
            log.warning("xray.lost", code=error.code, why=str(error))
        except Exception:
            # This is an edge: what one exchange does to the recorder ends the recording of no other.
            self._lose(tape, "unreadable")
            log.exception("xray.lost")

    def _lose(self, tape: Tape, reason: LossReason) -> None:
        tape.lose(reason)
        self._writer.drop(tape)
