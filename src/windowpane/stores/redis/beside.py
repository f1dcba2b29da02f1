"""What stands beside a session's log: its lease, the latest snapshot, the words of an incomplete reply, and vectors."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from windowpane.context.ids import SessionId
from windowpane.errors import SessionNotFoundError, StoreCorruptError
from windowpane.stores.append import check_name
from windowpane.stores.base import Snapshot
from windowpane.stores.packing import pack, unpack
from windowpane.stores.redis import scripts
from windowpane.stores.redis.keys import RedisKeys
from windowpane.stores.redis.nodes import Nodes
from windowpane.stores.redis.pipeline import Command, Reply
from windowpane.stores.redis.scripts import Script
from windowpane.stores.redis.wording import vectors_of


class BesideLog:
    """Runs scripts about sessions, and those for what stands beside their logs. `common` goes with every script."""

    def __init__(self, keys: RedisKeys, common: tuple[bytes, ...], nodes: Callable[[], Nodes]) -> None:
        self._keys = keys
        self._common = common
        self._nodes = nodes

    def step(self, script: Script, row: bytes, session_id: SessionId, *words: bytes) -> Command:
        """Return the command that runs a script about a session."""
        keys = self._keys.of_session(row)
        return (b"EVALSHA", script.sha, b"%d" % len(keys), *keys, *self._common, session_id.encode(), *words)

    async def change(self, script: Script, session_id: SessionId, *words: bytes) -> Reply:
        """Run a script about a session."""
        check_name(session_id)
        row = self._keys.row(session_id)
        (reply,) = await self._nodes().run(row, self.step(script, row, session_id, *words))
        return reply

    async def acquire(self, session_id: SessionId, holder: str, ttl_s: float) -> int | None:
        """Take or renew the session's lease, by the server's clock."""
        check_name(holder)
        match await self.change(scripts.ACQUIRE, session_id, holder.encode(), _microseconds(ttl_s)):
            case [b"taken", int(fence)]:
                return fence
            case [b"held"]:
                return None
            case [b"missing"]:
                raise SessionNotFoundError(session_id)
            case reply:
                raise StoreCorruptError("the lease in Redis", f"it answered {reply!r:.100}")

    async def renew(self, holders: Mapping[SessionId, str], ttl_s: float) -> set[SessionId]:
        """Renew the leases that their holders have. All of them go out together."""
        for holder in holders.values():
            check_name(holder)
        replies = await asyncio.gather(
            *(
                self.change(scripts.RENEW, session_id, holder.encode(), _microseconds(ttl_s))
                for session_id, holder in holders.items()
            )
        )
        return {session_id for session_id, reply in zip(holders, replies, strict=True) if reply == [b"renewed"]}

    async def release(self, session_id: SessionId, holder: str) -> None:
        """Give the lease back."""
        check_name(holder)
        await self.change(scripts.RELEASE, session_id, holder.encode())

    async def put_snapshot(self, session_id: SessionId, snapshot: Snapshot) -> None:
        """Keep a folded state, unless a later one is kept already."""
        await self.change(scripts.PUT_SNAPSHOT, session_id, b"%d" % snapshot.seq, pack(snapshot.body))

    async def snapshot(self, session_id: SessionId) -> Snapshot | None:
        """Return the latest folded state, or None."""
        check_name(session_id)
        row = self._keys.row(session_id)
        (found,) = await self._nodes().run(row, (b"HMGET", self._keys.snapshot(row), b"seq", b"body"), reads=True)
        match found:
            case [bytes(seq), bytes(body)]:
                return Snapshot(int(seq), unpack(body))
            case _:
                return None

    async def put_partial(self, session_id: SessionId, body: bytes, fence: int) -> None:
        """Keep the words of a reply that is not complete."""
        await self.change(scripts.PUT_PARTIAL, session_id, b"%d" % fence, pack(body))

    async def partial(self, session_id: SessionId) -> bytes | None:
        """Return the words of a reply that is not complete, or None."""
        check_name(session_id)
        row = self._keys.row(session_id)
        (found,) = await self._nodes().run(row, (b"HGET", row, b"partial"), reads=True)
        return unpack(found) if isinstance(found, bytes) else None

    async def put_vectors(self, session_id: SessionId, vectors: Mapping[int, bytes], as_of: int) -> None:
        """Keep the vectors of messages."""
        words = [word for seq, body in vectors.items() for word in (b"%d" % seq, body)]
        await self.change(scripts.PUT_VECTORS, session_id, b"%d" % as_of, *words)

    async def vectors(self, session_id: SessionId, seqs: Sequence[int] | None) -> dict[int, bytes]:
        """Return the vectors of messages that are kept."""
        check_name(session_id)
        row = self._keys.row(session_id)
        place, names = self._keys.snapshot(row), [b"v%d" % seq for seq in seqs or ()]
        if seqs is not None and not names:
            return {}
        command = (b"HMGET", place, *names) if names else (b"HGETALL", place)
        (found,) = await self._nodes().run(row, command, reads=True)
        return vectors_of(found, names)


def _microseconds(seconds: float) -> bytes:
    return b"%d" % round(seconds * 1_000_000)
