"""The names of keys on the server.

All keys of a session carry the same `{…}` tag, so in a cluster they are on one server and one step can change them
together:

    prefix:{s:id}            a hash: owner, agent, where the log stands, when it was used, who holds the lease,
                             and under which number (fence), where each append with an idempotency
                             key stands, the bundles of texts, and the words of an incomplete reply (partial)
    prefix:{s:id}:log        the stream of events
    prefix:{s:id}:blobs      a hash: texts by their hash
    prefix:{s:id}:snapshot   a hash: the folded state and where it stands, and the vectors of messages (v7 of event 7)

Texts that many sessions have stand in bundles, which all carry one tag of their own; rows name their bundles:

    prefix:{texts}:of:name   a hash: the texts of a bundle by their hash
    prefix:{texts}:held      a sorted set: every reference of a session to a bundle, by when it was last looked at
    prefix:{texts}:counts    a hash: how many references there are to each bundle

What an owner's model calls cost in a month stands in a hash of its own, `prefix:cost:2026-11:owner`.

The index that sessions are listed by is not a session's: it has keys of its own.
"""

import re
from datetime import date

from windowpane.context.ids import SessionId


class RedisKeys:
    """The keys under one prefix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix.encode()
        self.index = self._prefix + b":index:"
        """How the name of every index begins."""

        self.rows = b"%b:{s:*}" % re.sub(rb"([\\*?\[\]])", rb"\\\1", self._prefix)
        """A pattern that the keys of all rows match."""

    def row(self, session_id: SessionId) -> bytes:
        """Return the key of what is known about a session. Its watchers are woken on a channel of the same name."""
        return b"%b:{s:%b}" % (self._prefix, session_id.encode())

    def of_session(self, row: bytes) -> tuple[bytes, ...]:
        """Return every key of a session, the row first, and last the one where a log is rewritten."""
        return (row, row + b":log", row + b":blobs", row + b":snapshot", row + b":log:fresh")

    def log(self, row: bytes) -> bytes:
        return row + b":log"

    def blobs(self, row: bytes) -> bytes:
        return row + b":blobs"

    def snapshot(self, row: bytes) -> bytes:
        return row + b":snapshot"

    def of_bundle(self, bundle: str) -> tuple[bytes, bytes, bytes]:
        """Return the key of a bundle's texts, of all references, and of how many there are."""
        before = self._prefix + b":{texts}:"
        return before + b"of:" + bundle.encode(), before + b"held", before + b"counts"

    def costs(self, owner: str, day: date) -> bytes:
        """Return the key of what an owner's model calls cost in the month of a day."""
        return b"%b:cost:%b:%b" % (self._prefix, f"{day:%Y-%m}".encode(), owner.encode())

    def indexes(self, owner: bytes, agent: bytes) -> tuple[bytes, bytes, bytes]:
        """Return the indexes that a session is listed in."""
        return self.index + b"all", self.index + b"owner:" + owner, self.index + b"agent:" + agent

    def index_for(self, owner: str | None, agent: str | None) -> bytes:
        """Return the smallest index that lists all sessions of an owner, of an agent, or of all."""
        if owner is not None:
            return self.index + b"owner:" + owner.encode()
        if agent is not None:
            return self.index + b"agent:" + agent.encode()
        return self.index + b"all"

    def session_of(self, row: bytes) -> SessionId | None:
        """Return the session that a row's key belongs to; None when it is another key."""
        before = self._prefix + b":{s:"
        if row.startswith(before) and row.endswith(b"}"):
            return SessionId(row[len(before) : -1].decode())
        return None
