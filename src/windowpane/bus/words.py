"""Words of a reply on their way to watchers on other workers, while they are written.

The worker that runs a turn says nothing until a watcher asks; then it says what is new, ten times a second, for as long
as it is asked again. Every message carries its place in the reply, counted in characters for each kind. So what comes
twice is not shown twice, and what was lost is said again with the next question: a question says how much is there. The
stored reply, which follows in the log, replaces all of it.
"""

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby

from windowpane.bus.base import Bus
from windowpane.context.events import Delta
from windowpane.context.ids import SessionId

SAY_EVERY_S = 0.1
"""How long words are gathered before they are said."""

ASK_EVERY_S = 0.5
"""How often a watcher asks while words come."""

ASKED_FOR_S = 2.0
"""How long words are said after a question."""

_LONGEST = 400
"""How many characters a message carries: as JSON and sealed they fit any bus, whatever they are."""


@dataclass(frozen=True, slots=True)
class SpokenWords:
    """A piece of the reply that follows the event `after`, from the character `offset` of its kind on."""

    after: int
    offset: int
    delta: Delta


@dataclass(frozen=True, slots=True)
class Question:
    """A watcher has so many characters of the text and of the thinking of the reply, and wants the rest."""

    text: int
    thinking: int


def encoded(message: SpokenWords | Question) -> bytes:
    """Return a message as bytes."""
    if isinstance(message, Question):
        body: list[object] = ["ask", message.text, message.thinking]
    else:
        body = ["say", message.after, message.offset, message.delta.turn, message.delta.kind, message.delta.text]
    return json.dumps(body).encode()


def decoded(body: bytes) -> SpokenWords | Question | None:
    """Return a message from its bytes; None when it is about something else or cannot be understood."""
    if not body.startswith(b"["):
        return None
    try:
        parts = json.loads(body)
    except ValueError:
        return None
    match parts:
        case ["ask", int(text), int(thinking)]:
            return Question(text, thinking)
        case ["say", int(after), int(offset), int(turn), ("text" | "thinking") as kind, str(text)]:
            return SpokenWords(after, offset, Delta(turn, text, kind))
        case _:
            return None


class Speaker:
    """Says what one turn of this process writes, to those who ask."""

    def __init__(self, bus: Bus, session_id: SessionId) -> None:
        self._bus = bus
        self._session_id = session_id
        self._after = 0
        self._deltas: list[Delta] = []
        self._said, self._at = 0, lengths(())
        self._asked_until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._unsubscribe: Callable[[], None] = bus.subscribe(session_id, self._hear)

    def say(self, after: int, delta: Delta) -> None:
        """Say a little more of the reply, soon, if it is asked for. `after` is the event of the log that came last."""
        if not self._deltas:
            self._after = after
        self._deltas.append(delta)
        if self._timer is None and self._loop.time() < self._asked_until:
            self._timer = self._loop.call_later(SAY_EVERY_S, self._flush)

    def end(self) -> None:
        """End the reply: it stands in the log."""
        self._stop()
        self._deltas, self._said, self._at = [], 0, lengths(())

    def close(self) -> None:
        """Say no more."""
        self._stop()
        self._unsubscribe()

    def _hear(self, body: bytes) -> None:
        message = decoded(body)
        if not isinstance(message, Question):
            return
        self._asked_until = self._loop.time() + ASKED_FOR_S
        have = {"text": message.text, "thinking": message.thinking}
        self._publish(joined(self._deltas), have, lengths(()))
        self._said = len(self._deltas)

    def _flush(self) -> None:
        self._stop()
        self._publish(joined(self._deltas[self._said :]), self._at, self._at)
        self._said = len(self._deltas)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _publish(self, deltas: Iterable[Delta], have: dict[str, int], begins: dict[str, int]) -> None:
        """Say deltas that begin at some characters, without those that are there already; a sign of life if none."""
        at = dict(begins)
        spoken = False
        for delta in deltas:
            start = max(have[delta.kind] - at[delta.kind], 0)
            for place in range(start, len(delta.text), _LONGEST):
                piece = Delta(delta.turn, delta.text[place : place + _LONGEST], delta.kind)
                self._send(SpokenWords(self._after, at[delta.kind] + place, piece))
                spoken = True
            at[delta.kind] += len(delta.text)
        if not spoken:
            self._send(SpokenWords(self._after, at["text"], Delta(0, "")))
        self._at = at

    def _send(self, words: SpokenWords) -> None:
        self._bus.publish(self._session_id, encoded(words))


def lengths(deltas: Iterable[Delta]) -> dict[str, int]:
    """Return how many characters there are of each kind."""
    found = {"text": 0, "thinking": 0}
    for delta in deltas:
        found[delta.kind] += len(delta.text)
    return found


def joined(deltas: list[Delta]) -> list[Delta]:
    """Return the same text in as few deltas as possible."""
    parts = groupby(deltas, lambda delta: (delta.turn, delta.kind))
    return [Delta(turn, "".join(delta.text for delta in part), kind) for (turn, kind), part in parts]
