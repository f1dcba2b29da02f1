"""Sessions in Redis or Valkey, on one server or in a cluster, which any number of processes share.

The log of a session is a stream whose ids are the sequence numbers. Everything that changes a session is one step on
the server (`scripts.py`); what waits in this process goes out together (`pipeline.py`). A command whose connection
broke is given again, and stored once (`nodes.py`).

Sessions are listed by an index that is not a session's: on one server the same step keeps it. In a cluster it stands
on other servers, so a session is put there before it begins and put in order after each use. A process that dies in
between leaves a name without a session, which listing passes over and removes, or a session some places too low,
which the next use or the next listing of that page puts right.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import date, datetime
from itertools import count
from typing import Self

from windowpane.context.events import Erased, Recorded
from windowpane.context.ids import BlobHash, SessionId
from windowpane.errors import (
    InvalidSettingError,
    LeaseLostError,
    SequenceConflictError,
    SessionBusyError,
    SessionNotFoundError,
    StoreCorruptError,
    StoreRolledBackError,
    StoreUnavailableError,
)
from windowpane.remarks import get_logger
from windowpane.stores.append import Append, check_name
from windowpane.stores.base import Appended, Cost, SessionPage, SessionRow, Snapshot, Store
from windowpane.stores.clock import from_us, to_us
from windowpane.stores.codec import encode_event
from windowpane.stores.cursor import check_limit, parse_cursor
from windowpane.stores.redis import scripts
from windowpane.stores.redis.beside import BesideLog
from windowpane.stores.redis.bus import RedisBus
from windowpane.stores.redis.connection import Connector
from windowpane.stores.redis.costs import add_cost, read_costs
from windowpane.stores.redis.durability import Durability, read_durability
from windowpane.stores.redis.index import SessionIndex
from windowpane.stores.redis.keys import RedisKeys
from windowpane.stores.redis.nodes import Commands, Nodes
from windowpane.stores.redis.pipeline import Command, Reply
from windowpane.stores.redis.positions import SeenPositions, ServerClock
from windowpane.stores.redis.rewrite import AofRewrite
from windowpane.stores.redis.texts.bundles import Held, read_held, write_held
from windowpane.stores.redis.texts.texts import Texts
from windowpane.stores.redis.url import parse_redis_url
from windowpane.stores.redis.wakeups import CHECK_EVERY_S, Wakeups
from windowpane.stores.redis.wording import append_words, recorded, stored
from windowpane.stores.watch import Watchers

ANSWER_S = 10.0
"""How long to wait for an answer before the connection is taken for broken."""

_OPENING_S = 3.0
_CLOCKS_APART_US = 600_000_000
_LARGEST_SEQ = 2**63 - 1
_ERASED = encode_event(Erased())

log = get_logger()


class RedisStore(Store):
    """A store on a Redis or Valkey server or cluster; `url.py` describes the URL."""

    def __init__(self, url: str, *, answer_s: float = ANSWER_S, check_every_s: float = CHECK_EVERY_S) -> None:
        self._url = parse_redis_url(url)
        self._answer_s = answer_s
        self._check_every_s = check_every_s
        self._keys = RedisKeys(self._url.prefix)
        self.bus = self._bus = RedisBus(self._url)
        index, wake = (b"", b"SPUBLISH") if self._url.is_cluster else (self._keys.index, b"PUBLISH")
        common = (index, wake, b"" if self._url.expire_ms is None else b"%d" % self._url.expire_ms)
        self._beside = BesideLog(self._keys, common, self._open_nodes)
        self._writer = secrets.token_hex(6).encode()
        self._numbers = count()
        self._durability: Durability | None = None
        self._nodes: Nodes | None = None
        self._watchers = Watchers()
        self._positions = SeenPositions()
        self._server_clock = ServerClock()

    @property
    def durability(self) -> Durability:
        """Return what the servers promise about acknowledged writes, once the store was opened."""
        if self._durability is None:
            raise StoreUnavailableError("the store was not opened yet")
        return self._durability

    async def __aenter__(self) -> Self:
        """Connect.

        Raises:
            StoreUnavailableError: the server does not answer, or does not let us in.
            InvalidSettingError: the server may forget what it acknowledged, and the URL does not accept that.
        """
        connector = Connector(self._url, self._answer_s)
        nodes = Nodes(self._url, connector, answer_s=self._answer_s)
        try:
            await nodes.open(min(_OPENING_S, self._url.patience_s))
            self._durability = await read_durability(nodes)
            self._check_durability(self._durability)
            self._server_clock.heard(await _server_us(nodes))
        except BaseException:
            await nodes.close()
            await connector.close()
            raise
        self._connector = connector
        self._nodes = nodes
        self._watchers = Watchers()
        self._index = SessionIndex(nodes, self._keys, on_other_servers=self._url.is_cluster)
        self._texts = Texts(nodes, self._keys)
        self._rewrite = AofRewrite(nodes)
        self._wakeups = Wakeups(
            connector,
            nodes,
            self._keys,
            self._watchers.wake,
            self._wake_those_behind,
            check_every_s=self._check_every_s,
            sharded=self._url.is_cluster,
        )
        await self._bus.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        nodes, self._nodes = self._nodes, None
        self._watchers.close()
        if nodes is not None:
            await asyncio.shield(self._close(nodes))

    async def add(self, append: Append) -> Appended:
        """Store an append; see `Store.add`.

        Raises:
            StoreRolledBackError: the log does not hold any more what this process was told stands at `expected_seq`.
        """
        session_id, expected_seq = append.session_id, append.expected_seq
        if append.begins is not None and self._url.is_cluster:
            # The index is on another server. Named first, the session is found even if this process dies now.
            owner, agent = append.begins.owner.encode(), append.begins.agent.encode()
            await self._index.announce(session_id, owner, agent, append.touched(self._server_clock.now()))
        operation = b"%b.%x" % (self._writer, next(self._numbers))
        seen_at = None if expected_seq is None else self._positions.at(session_id, expected_seq)
        bundles = self._texts.bundles
        held, held_s = await bundles.hold(session_id, operation.decode(), append.bundles)
        commands = self._append_commands(append, operation, append_words(append, seen_at, write_held(held), held_s))
        (reply,) = await self._open_nodes().run(self._keys.row(session_id), commands)
        spare = _spare(reply, operation, held)
        if spare:
            await bundles.let_go(session_id, spare)
        match reply:
            case [b"appended" | b"found", bytes(where), bytes(fence), bytes(), *unlisted]:
                first, last, at, by = stored(where)
                # Found by another attempt of the same call, it is not repeated.
                repeated = by != operation
                taken = int(fence) if fence and not repeated else None
                appended = Appended(first, last, from_us(at), repeated, taken)
            case [b"held"]:
                raise SessionBusyError(session_id)
            case [b"late"]:
                raise StoreUnavailableError("the append came too late; nothing was stored")
            case [b"fenced"]:
                raise LeaseLostError(session_id)
            case [b"conflict", int(actual)] if seen_at is not None and actual < (expected_seq or 0):
                raise StoreRolledBackError(session_id, expected_seq or 0, actual)
            case [b"conflict", int(actual)]:
                raise SequenceConflictError(session_id, expected_seq or 0, actual)
            case [b"rewritten", int(actual)]:
                raise StoreRolledBackError(session_id, expected_seq or 0, actual)
            case _:
                raise self._refused(session_id, reply)
        if append.original_times is None and not appended.repeated:
            self._server_clock.heard(at)
        await self._list(session_id, unlisted)
        if not appended.repeated:
            self._positions.note(session_id, last, at)
            self._watchers.tell(append, appended)
        return appended

    async def read(self, session_id: SessionId, *, after: int = 0, limit: int | None = None) -> list[Recorded]:
        """Return the events after a sequence number, in order; see `Store.read`.

        Raises:
            StoreRolledBackError: the log does not hold any more what this process was told stands at `after`.
        """
        check_limit(limit)
        check_name(session_id)
        start = min(max(after, 0), _LARGEST_SEQ)
        known_at = self._positions.at(session_id, start)
        row = self._keys.row(session_id)
        # With the event before the first one, when this process was told about it: it must still be the same.
        first = b"(%d-0" % start if known_at is None else b"%d-0" % start
        most = () if limit is None else (b"COUNT", b"%d" % (limit if known_at is None else limit + 1))
        while True:
            entries, about = await self._open_nodes().run(
                row,
                lambda _: [(b"XRANGE", self._keys.log(row), first, b"+", *most), (b"HGET", row, b"seq")],
                reads=True,
            )
            if not isinstance(about, bytes):
                raise SessionNotFoundError(session_id)
            last = int(about)
            if known_at is not None:
                match entries:
                    case [[seq, [b"a", at, *_]], *entries] if (seq, at) == (b"%d-0" % start, b"%d" % known_at):
                        pass
                    case _:
                        raise StoreRolledBackError(session_id, start, last)
            log = recorded(entries)
            # The session began between the two commands.
            if log or last <= start:
                break
        if log:
            self._positions.note(session_id, log[-1].seq, to_us(log[-1].at))
        return log

    async def row(self, session_id: SessionId) -> SessionRow:
        """Return what is known about a session without reading its log; see `Store.row`."""
        check_name(session_id)
        (found,) = await self._index.rows([session_id])
        if found is None:
            raise SessionNotFoundError(session_id)
        return found

    async def sessions(
        self, owner: str | None = None, *, agent: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> SessionPage:
        """Return sessions, last touched first; see `Store.sessions`."""
        check_limit(limit)
        for name in (owner, agent, cursor):
            check_name(name or "")
        before = parse_cursor(cursor)
        self._open_nodes()
        return await self._index.page(owner, agent, limit, before)

    async def now(self) -> datetime:
        """Return the time by the clock that this store tells time by; see `Store.now`."""
        self._server_clock.heard(await _server_us(self._open_nodes()))
        return from_us(self._server_clock.now())

    async def touch(self, session_id: SessionId) -> None:
        """Note that the session was used now; see `Store.touch`."""
        match await self._beside.change(scripts.TOUCH, session_id):
            case [b"touched", *unlisted]:
                await self._list(session_id, unlisted)
            case reply:
                raise self._refused(session_id, reply)

    async def delete(self, session_id: SessionId) -> None:
        """Remove a session so that nothing of it is left; see `Store.delete`.

        It is gone from the server's memory at once, and from its append-only file when the server has rewritten that,
        which it is asked to do.
        """
        if not await self._delete(session_id):
            raise SessionNotFoundError(session_id)

    async def delete_idle(self, row: SessionRow, *, holder: str | None = None) -> bool:
        """Remove a session unless it is in use; see `Store.delete_idle`."""
        check_name(holder or "")
        as_seen = (b"%d" % row.last_seq, b"%d" % to_us(row.touched_at))
        return await self._delete(row.id, b"1", *as_seen, b"" if holder is None else b"h" + holder.encode())

    async def erase(
        self,
        session_id: SessionId,
        seqs: Sequence[int],
        *,
        blobs: Sequence[BlobHash] = (),
        fence: int | None = None,
    ) -> None:
        """Replace events with `Erased` and forget blobs and the snapshot, for good; see `Store.erase`.

        As with `delete`, the append-only file follows.
        """
        for name in blobs:
            check_name(name)
        held = b"" if fence is None else b"%d" % fence
        while True:
            had, has, rest = await self._texts.without(session_id, blobs)
            words = (b"%d" % len(seqs), had, has, b"%d" % len(rest), *(b"%d" % seq for seq in seqs), *rest)
            names = (name.encode() for name in blobs)
            reply = await self._beside.change(scripts.ERASE, session_id, _ERASED, held, *words, *names)
            # The session was given a bundle meanwhile: look again what is in it.
            if reply != [b"changed"]:
                break
        if reply == [b"fenced"]:
            raise LeaseLostError(session_id)
        if reply != [b"erased"]:
            raise self._refused(session_id, reply)
        gone = {bundle: token for bundle, token in read_held(had).items() if bundle not in read_held(has)}
        await self._texts.bundles.let_go(session_id, gone)
        self._rewrite.ask()

    async def blobs(self, session_id: SessionId, hashes: Sequence[BlobHash]) -> dict[BlobHash, str]:
        """Return those of the texts that are stored with the session; see `Store.blobs`."""
        for name in (session_id, *hashes):
            check_name(name)
        self._open_nodes()
        return await self._texts.read(session_id, hashes)

    async def blob_hashes(self, session_id: SessionId) -> list[BlobHash]:
        """Return the hashes of all texts that are stored with the session; see `Store.blob_hashes`."""
        check_name(session_id)
        self._open_nodes()
        return await self._texts.names(session_id)

    async def put_snapshot(self, session_id: SessionId, snapshot: Snapshot) -> None:
        """Keep a folded state, unless a later one is kept already; see `Store.put_snapshot`."""
        await self._beside.put_snapshot(session_id, snapshot)

    async def snapshot(self, session_id: SessionId) -> Snapshot | None:
        """Return the latest folded state, or None; see `Store.snapshot`."""
        return await self._beside.snapshot(session_id)

    async def put_partial(self, session_id: SessionId, body: bytes, *, fence: int) -> None:
        """Keep the words of a reply that is not complete; see `Store.put_partial`."""
        await self._beside.put_partial(session_id, body, fence)

    async def partial(self, session_id: SessionId) -> bytes | None:
        """Return the words of a reply that is not complete, or None; see `Store.partial`."""
        return await self._beside.partial(session_id)

    async def put_vectors(self, session_id: SessionId, vectors: Mapping[int, bytes], *, as_of: int) -> None:
        """Keep the vectors of messages; see `Store.put_vectors`."""
        await self._beside.put_vectors(session_id, vectors, as_of)

    async def vectors(self, session_id: SessionId, seqs: Sequence[int] | None = None) -> dict[int, bytes]:
        """Return the vectors of messages that are kept; see `Store.vectors`."""
        return await self._beside.vectors(session_id, seqs)

    async def acquire(self, session_id: SessionId, holder: str, ttl_s: float) -> int | None:
        """Take or renew the session's one lease, by the server's clock; see `Store.acquire`."""
        return await self._beside.acquire(session_id, holder, ttl_s)

    async def renew(self, holders: Mapping[SessionId, str], ttl_s: float) -> set[SessionId]:
        """Renew leases; see `Store.renew`. All of them go out together."""
        return await self._beside.renew(holders, ttl_s)

    async def release(self, session_id: SessionId, holder: str) -> None:
        """Give the lease back; see `Store.release`."""
        await self._beside.release(session_id, holder)

    async def add_cost(self, owner: str, day: date, cost: Cost) -> None:
        """Add to what an owner's model calls cost on a day; see `Store.add_cost`."""
        await add_cost(self._open_nodes(), self._keys, owner, day, cost)

    async def costs(self, owner: str, *, since: date) -> dict[date, Cost]:
        """Return what an owner's model calls cost, by day; see `Store.costs`."""
        return await read_costs(self._open_nodes(), self._keys, owner, since, (await self.now()).date())

    async def subscribe(self, session_id: SessionId, *, after: int, unread: bool = False) -> AsyncGenerator[Recorded]:
        """Yield every event after a sequence number, old ones first, then new ones; see `Store.subscribe`.

        Raises:
            StoreRolledBackError: the log does not hold any more what was yielded.
        """
        check_name(session_id)
        self._open_nodes()
        async with self._wakeups.listening(session_id):
            async for recorded in self._watchers.follow(self.read, session_id, after, unread=unread):
                yield recorded

    async def repair_index(self, on_progress: Callable[[int], None] = lambda _: None) -> int:
        """List every session that the servers hold, and return how many. For a cluster that lost a part of its index.

        It reads every key, so it takes a while; `on_progress` is told how many were listed so far. The store can be
        used meanwhile.
        """
        self._open_nodes()
        return await self._index.rebuild(on_progress)

    def _check_durability(self, found: Durability) -> None:
        if found.keeps:
            return
        if self._url.durable:
            raise InvalidSettingError(
                "store_url",
                f"Redis at {self._url} would lose sessions: {found}. Start it with --appendonly yes "
                "--maxmemory-policy noeviction, or add durable=no to the URL if they may be lost.",
            )
        log.warning("redis.not_durable", server=str(self._url), why=str(found))

    async def _close(self, nodes: Nodes) -> None:
        await self._bus.__aexit__(None, None, None)
        await self._wakeups.close()
        await self._rewrite.close()
        await nodes.close()
        await self._connector.close()

    async def _delete(self, session_id: SessionId, *conditions: bytes) -> bool:
        check_name(session_id)
        again = False

        def commands(attempted: bool) -> list[Command]:
            nonlocal again
            again = attempted
            return [self._beside.step(scripts.DELETE, row, session_id, *conditions)]

        row = self._keys.row(session_id)
        (reply,) = await self._open_nodes().run(row, commands)
        match reply:
            case [b"deleted", bytes(owner), bytes(agent), bytes(held)]:
                await self._texts.bundles.let_go(session_id, read_held(held))
                if self._url.is_cluster:
                    await self._index.remove(session_id, owner, agent)
            case [b"missing"] if again:
                # The first attempt was done, and its answer was lost.
                pass
            case [b"missing"] | [b"used"]:
                return False
            case _:
                raise self._unexpected(reply)
        self._positions.forget(session_id)
        self._watchers.wake(session_id)
        self._rewrite.ask()
        return True

    def _append_commands(self, append: Append, operation: bytes, words: tuple[bytes, ...]) -> Commands:
        """Return what to send the first time, and what to send when an attempt may have been done already.

        With an idempotency key, the earlier attempt is found by the key. Without one, the script looks for the
        operation's number in the log, but only when there was an earlier attempt, and only among events that are not
        older than the call: to look always would make every append pay for the rare one.
        """
        mark = b"op:" + operation if append.key is None else b"key:" + append.key.encode()
        since = b"%d" % (self._server_clock.now() - _CLOCKS_APART_US)
        row = self._keys.row(append.session_id)

        def commands(attempted: bool) -> list[Command]:
            look_since = since if attempted and append.key is None else b""
            return [self._beside.step(scripts.APPEND, row, append.session_id, operation, mark, look_since, *words)]

        return commands

    async def _list(self, session_id: SessionId, unlisted: Sequence[Reply]) -> None:
        """In a cluster, put a session where it belongs in the index, when its script said so."""
        match unlisted:
            case [int(touched), bytes(owner), bytes(agent)]:
                await self._index.used(session_id, owner, agent, touched)
            case _:
                pass

    async def _wake_those_behind(self) -> None:
        """Wake watchers whose log does not stand where they have seen it."""
        nodes, seen = self._open_nodes(), self._watchers.seen
        rows = [self._keys.row(session_id) for session_id in seen]
        stands = await asyncio.gather(*(nodes.run(row, (b"HGET", row, b"seq"), reads=True) for row in rows))
        for (session_id, seq), (stand,) in zip(seen.items(), stands, strict=True):
            if stand != b"%d" % seq:
                self._watchers.wake(session_id)

    def _open_nodes(self) -> Nodes:
        if self._nodes is None:
            raise StoreUnavailableError("the store is closed")
        return self._nodes

    def _refused(self, session_id: SessionId, reply: Reply) -> SessionNotFoundError | StoreCorruptError:
        return SessionNotFoundError(session_id) if reply == [b"missing"] else self._unexpected(reply)

    def _unexpected(self, reply: Reply) -> StoreCorruptError:
        return StoreCorruptError(f"Redis at {self._url}", f"it answered {reply!r:.100}")


def _spare(reply: Reply, operation: bytes, held: Held) -> Held:
    """Return the references that an append has noted and that its session was not given."""
    match reply:
        case [b"appended", bytes(), bytes(), bytes(spare), *_]:
            return read_held(spare)
        case [b"found", bytes(where), *_] if stored(where)[3] == operation:
            return {}
        case _:
            return held


async def _server_us(nodes: Nodes) -> int:
    match await nodes.run_at(nodes.primaries[0], (b"TIME",)):
        case [bytes(seconds), bytes(microseconds)]:
            return int(seconds) * 1_000_000 + int(microseconds)
        case reply:
            raise StoreUnavailableError(f"Redis does not tell the time: {reply!r:.100}")
