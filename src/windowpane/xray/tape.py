"""What passed in one exchange, taken down as it passes: the bytes, the times, and how it ended.

This is all that the traffic has to do with recording: a chunk is added to a list. What becomes of it is decided later
and elsewhere (`recorder.py`). When too much is waiting to be recorded, a tape drops what it has and takes no more.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic
from typing import Literal

from windowpane.calls.protocol import CallKind
from windowpane.context.calls import CallOutcome

LossReason = Literal["full", "store", "unreadable"]
"""Why a call was not recorded: too much was waiting, the store did not take it, or it could not be read."""

Headers = Sequence[tuple[bytes, bytes]]


@dataclass(slots=True)
class Room:
    """How many bytes may wait to be recorded, and how many do; and what was recorded and lost of each owner.

    `tell` hears of each call whether it was recorded, or why not.
    """

    most_bytes: int
    held_bytes: int = 0
    recorded_of: Counter[str] = field(default_factory=Counter[str])
    lost_of: dict[str, Counter[LossReason]] = field(default_factory=dict[str, Counter[LossReason]])
    tell: Callable[[str], None] = lambda _: None

    @property
    def recorded(self) -> int:
        """Return how many calls were recorded, of all owners."""
        return self.recorded_of.total()

    @property
    def lost(self) -> Counter[LossReason]:
        """Return how many calls were lost, of all owners."""
        return sum(self.lost_of.values(), Counter[LossReason]())

    def record(self, owner: str) -> None:
        """Count a call that was recorded."""
        self.recorded_of[owner] += 1
        self.tell("recorded")

    def lose(self, reason: LossReason, owner: str) -> None:
        """Count a call that passed and was not recorded."""
        self.lost_of.setdefault(owner, Counter())[reason] += 1
        self.tell(reason)


@dataclass(frozen=True, slots=True)
class TapeHead:
    """Whose call it is, where it goes, and its head as it came."""

    kind: CallKind
    owner: str
    provider: str
    method: str
    url: str
    headers: Headers


class Tape:
    """One exchange. `submit` is told when the request is whole, and again when the answer has ended."""

    def __init__(self, head: TapeHead, room: Room, submit: Callable[["Tape"], bool]) -> None:
        self.head = head
        self.started_at = datetime.now(UTC)
        self.status: int | None = None
        self.answer_headers: Headers = ()
        self.first_byte_ms: int | None = None
        self.duration_ms = 0
        self.outcome: CallOutcome | None = None
        self.reason = ""
        self.lost = False
        self._room = room
        self._submit = submit
        self._began = monotonic()
        self._asked: list[bytes] = []
        self._answered: list[bytes] = []
        self._held = 0

    def ask(self, chunk: bytes) -> None:
        """Take down some bytes of the request."""
        if chunk and self._hold(len(chunk)):
            self._asked.append(chunk)

    def asked(self) -> None:
        """Note that the request is whole."""
        if not self.lost:
            self._hand_in()

    def begin(self, status: int, headers: Headers) -> None:
        """Note that the answer begins."""
        self.status, self.answer_headers = status, headers
        self.first_byte_ms = self._since()

    def answer(self, chunk: bytes) -> None:
        """Take down some bytes of the answer."""
        if self._hold(len(chunk)):
            self._answered.append(chunk)

    def end(self, outcome: CallOutcome, reason: str = "") -> None:
        """Note how the exchange ended, once."""
        if self.outcome is None:
            self.outcome, self.reason, self.duration_ms = outcome, reason, self._since()
            self._hand_in()

    def request_body(self) -> bytes:
        """Return the request's body, and keep it no longer."""
        return self._take(self._asked)

    def answer_body(self) -> bytes:
        """Return the answer's body, and keep it no longer."""
        return self._take(self._answered)

    def lose(self, reason: LossReason) -> None:
        """Give up recording this exchange. It is counted once."""
        if not self.lost:
            self._room.lose(reason, self.head.owner)
        self.discard()

    def discard(self) -> None:
        """Take down no more of this exchange, and keep nothing of it."""
        self.lost = True
        self._asked.clear()
        self._answered.clear()
        self._room.held_bytes -= self._held
        self._held = 0

    def _hand_in(self) -> None:
        # The end of a call is handed in also when its words are lost: the log has the call already.
        if not self._submit(self) and not self.lost:
            self.lose("full")

    def _hold(self, size: int) -> bool:
        if self.lost:
            return False
        if self._room.held_bytes + size > self._room.most_bytes:
            self.lose("full")
            return False
        self._room.held_bytes += size
        self._held += size
        return True

    def _take(self, chunks: list[bytes]) -> bytes:
        body = b"".join(chunks)
        chunks.clear()
        self._room.held_bytes -= len(body)
        self._held -= len(body)
        return body

    def _since(self) -> int:
        return round((monotonic() - self._began) * 1000)
