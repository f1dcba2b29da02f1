"""A history checker: does the log hold what its writers were told it holds?

Every writer notes an append when it tries it and when it is acknowledged, for itself and in its own order. From these
notes alone and from the log, `check` tells what was lost, stored twice, torn, put elsewhere than acknowledged, or
brought out of order. An append that was tried and never acknowledged may be stored or not, but once and wholly, and
not before what its writer had been told is stored.

Writers in other processes say their notes as lines (`Try.line`, `Ack.line`); `History.hear` reads them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields

from stores.kinds import contents
from windowpane.context.events import Event, MessageAdded, Recorded
from windowpane.stores.base import Appended


@dataclass(frozen=True, slots=True)
class Try:
    """One append of one writer: its number, and how many events it has. Trying again with the same key is the same."""

    writer: str
    number: int
    size: int = 1

    @property
    def key(self) -> str:
        """Return an idempotency key for writers that use one."""
        return f"{self.writer}:{self.number}"

    @property
    def contents(self) -> tuple[str, ...]:
        """Return the text of each message."""
        return tuple(f"{self.writer}:{self.number}.{part}" for part in range(self.size))

    @property
    def events(self) -> list[Event]:
        """Return what to append."""
        return [MessageAdded(role="user", content=content) for content in self.contents]

    @property
    def line(self) -> str:
        """Return the note to say before trying."""
        return f"try {self.writer} {self.number} {self.size}"

    def acknowledged(self, appended: Appended) -> "Ack":
        """Return the note about the store's answer."""
        return Ack(self.writer, self.number, appended.first_seq, appended.last_seq)


@dataclass(frozen=True, slots=True)
class Ack:
    """What a writer was told about one of its appends."""

    writer: str
    number: int
    first_seq: int
    last_seq: int

    @property
    def line(self) -> str:
        """Return the note to say after the answer."""
        return f"ack {self.writer} {self.number} {self.first_seq} {self.last_seq}"


Note = Try | Ack


@dataclass(slots=True)
class History:
    """What writers noted, each writer's notes in its own order."""

    notes: list[Note] = field(default_factory=list[Note])

    def hear(self, lines: Iterable[str]) -> None:
        """Take notes from what a process said; other lines are passed over."""
        for line in lines:
            match line.split(" "):
                case ["try", writer, number, size]:
                    self.notes.append(Try(writer, int(number), int(size)))
                case ["ack", writer, number, first_seq, last_seq]:
                    self.notes.append(Ack(writer, int(number), int(first_seq), int(last_seq)))
                case _:
                    pass


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with a log, by kind, and how much was looked at."""

    tried: int
    acknowledged: int
    lost: tuple[str, ...] = ()
    """Acknowledged and not there."""
    duplicated: tuple[str, ...] = ()
    """There more than once."""
    torn: tuple[str, ...] = ()
    """There in part, or with something between its parts."""
    misplaced: tuple[str, ...] = ()
    """There, but not where its writer was told."""
    disordered: tuple[str, ...] = ()
    """There before something that its writer had been told is stored already."""
    strangers: tuple[str, ...] = ()
    """There, and nobody tried it."""
    gaps: tuple[int, ...] = ()
    """Sequence numbers that do not follow the one before."""

    @property
    def faults(self) -> dict[str, tuple[object, ...]]:
        """Return what is wrong; nothing when the log is whole."""
        kinds = [kind.name for kind in fields(self) if kind.name not in ("tried", "acknowledged")]
        return {kind: getattr(self, kind) for kind in kinds if getattr(self, kind)}


def check(history: History, log: Sequence[Recorded]) -> Verdict:
    """Return what a log, read whole, says about the notes of all who wrote to it."""
    tries = {note.key: note for note in history.notes if isinstance(note, Try)}
    acks = {f"{note.writer}:{note.number}": note for note in history.notes if isinstance(note, Ack)}
    places = _places(log)
    known = {content for one in tries.values() for content in one.contents}
    there = {key: places.get(one.contents[0], []) for key, one in tries.items()}
    return Verdict(
        tried=len(tries),
        acknowledged=len(acks),
        lost=tuple(key for key in acks if key not in tries or not _is_anywhere(tries[key], places)),
        duplicated=tuple(content for content, seqs in places.items() if content in known and len(seqs) > 1),
        torn=tuple(key for key, one in tries.items() if _is_torn(one, places)),
        misplaced=tuple(key for key, ack in acks.items() if there.get(key) and not _stands(tries[key], ack, places)),
        disordered=tuple(_disordered(history, there)),
        strangers=tuple(content for content in places if content not in known),
        gaps=tuple(recorded.seq for seq, recorded in enumerate(log, 1) if recorded.seq != seq),
    )


def _places(log: Sequence[Recorded]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for recorded in log:
        for content in contents([recorded]):
            places.setdefault(content, []).append(recorded.seq)
    return places


def _is_anywhere(one: Try, places: dict[str, list[int]]) -> bool:
    return any(content in places for content in one.contents)


def _is_torn(one: Try, places: dict[str, list[int]]) -> bool:
    found = [places.get(content, []) for content in one.contents]
    return any(found) and any(seqs != [seq + part for seq in found[0]] for part, seqs in enumerate(found))


def _stands(one: Try, ack: Ack, places: dict[str, list[int]]) -> bool:
    return [places.get(content, [0])[0] for content in one.contents] == list(range(ack.first_seq, ack.last_seq + 1))


def _disordered(history: History, there: dict[str, list[int]]) -> Iterable[str]:
    """Yield what stands before something that was acknowledged to the same writer before it was tried."""
    told: dict[str, int] = {}
    first_tried: set[str] = set()
    for note in history.notes:
        key = f"{note.writer}:{note.number}"
        if isinstance(note, Ack):
            told[note.writer] = max(told.get(note.writer, 0), note.last_seq)
        elif key not in first_tried:
            first_tried.add(key)
            if there[key] and there[key][0] <= told.get(note.writer, 0):
                yield key
