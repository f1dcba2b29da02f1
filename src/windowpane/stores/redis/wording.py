"""Appends as the words that a script is given, and answers of the server as values."""

from collections.abc import Sequence

from windowpane.context.events import Recorded
from windowpane.errors import StoreCorruptError
from windowpane.stores.append import Append
from windowpane.stores.clock import from_us
from windowpane.stores.codec import decode_event
from windowpane.stores.packing import pack
from windowpane.stores.redis.pipeline import Reply


def append_words(append: Append, seen_at: int | None, held: bytes, held_s: int) -> tuple[bytes, ...]:
    """Return what `lua/append.lua` is given about the append itself, and which bundles it is given since when."""
    begins, moved = append.begins, append.original_times is not None
    return (
        b"" if append.fence is None else b"%d" % append.fence,
        b"" if append.expected_seq is None else b"%d" % append.expected_seq,
        b"" if seen_at is None else b"%d" % seen_at,
        b"" if begins is None else b"1",
        b"" if begins is None else begins.owner.encode(),
        b"" if begins is None else begins.agent.encode(),
        b"%d" % append.touched(0) if moved else b"quiet" if append.quiet else b"",
        b"%d" % len(append.bodies),
        b"" if append.take is None else append.take.holder.encode(),
        b"" if append.take is None else b"%d" % round(append.take.ttl_s * 1_000_000),
        b"" if append.release is None else append.release.encode(),
        held,
        b"%d" % held_s,
        *append.bodies,
        *((b"%d" % at for at in append.times(0)) if moved else ()),
        *(word for name, text in append.blobs.items() for word in (name.encode(), packed(text))),
    )


def stored(where: bytes) -> tuple[int, int, int, bytes]:
    """Return an append's first and last event, its time, and the number of the operation that stored it."""
    first, last, at, by = where.split(b" ")
    return int(first), int(last), int(at), by


def packed(text: str) -> bytes:
    """Return a text as it is kept."""
    return pack(text.encode("utf-8", "surrogatepass"))


def recorded(entries: Reply) -> list[Recorded]:
    """Return the events of a part of a log."""
    found: list[Recorded] = []
    if isinstance(entries, list):
        for entry in entries:
            match entry:
                case [bytes(seq), [b"a", bytes(at), b"o", bytes(), b"e", bytes(body)]]:
                    found.append(Recorded(int(seq[:-2]), from_us(int(at)), decode_event(body)))
                case _:
                    raise StoreCorruptError("the log in Redis", f"it holds {entry!r:.100}")
    return found


def vectors_of(fields: Reply, names: Sequence[bytes]) -> dict[int, bytes]:
    """Return the vectors of messages from what stands beside a snapshot: all of it, or what has these names."""
    words = fields if isinstance(fields, list) else []
    pairs = zip(names or words[::2], words if names else words[1::2], strict=True)
    return {
        int(name[1:]): body
        for name, body in pairs
        if isinstance(name, bytes) and isinstance(body, bytes) and name.startswith(b"v")
    }
