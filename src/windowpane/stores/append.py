"""One append, checked and encoded before any store takes it.

What is refused here is refused alike by every store, and before anything is written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from windowpane.context.events import Event, SessionCreated, only_looks
from windowpane.context.ids import BlobHash, SessionId, content_hash
from windowpane.context.items import BundledText, HashedTexts, bundle_name
from windowpane.errors import InvalidInputError
from windowpane.stores.clock import to_us
from windowpane.stores.codec import encode_event


@dataclass(frozen=True, slots=True)
class OriginalTimes:
    """Tells that events come from another store: when each of them happened, and when the session was last used."""

    times: tuple[datetime, ...]
    touched_at: datetime


@dataclass(frozen=True, slots=True)
class TakeLease:
    """Asks for the session's lease together with an append: who is to hold it, and for how long."""

    holder: str
    ttl_s: float


@dataclass(frozen=True, slots=True)
class Append:
    """Events as JSON for the end of one session's log, and the conditions under which they are stored.

    `begins` is the event that begins the session; None when the session must exist already. `fence` is the number of
    the lease that the writer holds; None for one who needs no lease, or who takes it with this append (`take`).
    `release` is the holder whose lease is given back with it. One that is `quiet` is no use of the session: it stays
    where it is in the list. One that is not `lasting` need not survive a power cut before the session's next does.
    `bundles` are texts that many sessions have, by the name of their bundle: a store keeps each bundle once, for as
    long as a session has it. `blobs` are the others. `events` are what the bodies say, for those who watch in this
    process; none where a body says something else.
    """

    session_id: SessionId
    bodies: tuple[bytes, ...]
    begins: SessionCreated | None
    expected_seq: int | None
    key: str | None
    blobs: Mapping[BlobHash, str]
    original_times: OriginalTimes | None = None
    fence: int | None = None
    quiet: bool = False
    take: TakeLease | None = None
    release: str | None = None
    lasting: bool = True
    bundles: Mapping[str, Mapping[BlobHash, str]] = field(default_factory=dict[str, Mapping[BlobHash, str]])
    events: tuple[Event, ...] = ()

    def times(self, now: int) -> tuple[int, ...]:
        """Return when each event happened, in microseconds, when it is `now`."""
        original = self.original_times
        return (now,) * len(self.bodies) if original is None else tuple(to_us(at) for at in original.times)

    def touched(self, now: int) -> int:
        """Return when the session is touched by this append, in microseconds, when it is `now`."""
        if self.original_times is not None:
            return to_us(self.original_times.touched_at)
        return 0 if self.quiet else now


@dataclass(frozen=True, slots=True)
class Appended:
    """Where events went. `repeated` tells that an earlier append with the same key had stored them already.

    `fence` is the number of the lease that was taken with them.
    """

    first_seq: int
    last_seq: int
    at: datetime
    repeated: bool = False
    fence: int | None = None


def checked_append(
    session_id: SessionId,
    events: Sequence[Event],
    *,
    expected_seq: int | None,
    key: str | None,
    blobs: Mapping[BlobHash, str] | None,
    original_times: OriginalTimes | None,
    fence: int | None,
    take: TakeLease | None = None,
    release: str | None = None,
    lasting: bool = True,
) -> Append:
    """Return an append that a store can take as it is.

    Raises:
        InvalidInputError: there are no events, a text cannot be kept, or a blob is not what its hash says.
    """
    if not events:
        raise InvalidInputError("an append needs at least one event")
    if original_times is not None and len(original_times.times) != len(events):
        raise InvalidInputError(
            f"{len(events)} events from another store need as many times, not {len(original_times.times)}"
        )
    for name in (session_id, key or "", take.holder if take else "", release or ""):
        check_name(name)
    if not isinstance(blobs, HashedTexts):
        _check_hashes(blobs or {})
    first = events[0]
    own, bundles = _apart(blobs or {})
    return Append(
        session_id=session_id,
        bodies=tuple(encode_event(event) for event in events),
        begins=first if isinstance(first, SessionCreated) and expected_seq == 0 else None,
        expected_seq=expected_seq,
        key=key,
        blobs=own,
        original_times=original_times,
        fence=fence,
        quiet=all(map(only_looks, events)),
        take=take,
        release=release,
        lasting=lasting,
        bundles=bundles,
        events=tuple(events),
    )


def _check_hashes(blobs: Mapping[BlobHash, str]) -> None:
    for blob_hash, text in blobs.items():
        # Texts are shared between sessions by hash: a wrong hash would show one session the text of another.
        if content_hash(text) != blob_hash:
            raise InvalidInputError(f"the text given for hash {blob_hash[:12]!r} has another hash")


def _apart(
    texts: Mapping[BlobHash, str],
) -> tuple[Mapping[BlobHash, str], Mapping[str, Mapping[BlobHash, str]]]:
    """Return the texts that are the session's alone, and the bundles. A bundle that is not whole is none."""
    marked: dict[str, dict[BlobHash, str]] = {}
    for blob_hash, text in texts.items():
        if isinstance(text, BundledText):
            for name in text.bundles:
                marked.setdefault(name, {})[blob_hash] = text
    bundles = {name: inside for name, inside in marked.items() if bundle_name(inside) == name}
    shared = {blob_hash for inside in bundles.values() for blob_hash in inside}
    return {name: text for name, text in texts.items() if name not in shared} if shared else texts, bundles


def check_name(name: str) -> None:
    """Refuse an id or a key that is not Unicode."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidInputError(f"{name!r} holds half of a surrogate pair, which no store can keep") from None
