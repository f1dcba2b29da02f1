"""Sessions in the order they were used: for all owners, per owner and per agent.

An index only names sessions; what is shown is read from the sessions themselves. A name that leads nowhere is passed
over, and removed when it is older than the moment between announcing a session and beginning it.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import cast

from windowpane.context.ids import SessionId
from windowpane.stores.base import SessionPage, SessionRow
from windowpane.stores.clock import from_us, to_us
from windowpane.stores.cursor import ListPosition, list_position, page
from windowpane.stores.redis.keys import RedisKeys
from windowpane.stores.redis.nodes import Nodes
from windowpane.stores.redis.pipeline import Reply
from windowpane.stores.redis.scripts import DROP, LISTED_EVERY_US

_COLUMNS = (b"owner", b"agent", b"seq", b"created", b"touched")
_BEING_BEGUN_US = 60_000_000
_LAST = "\U0010ffff"
"""After every id."""


class SessionIndex:
    """The indexes under one prefix."""

    def __init__(self, nodes: Nodes, keys: RedisKeys, *, on_other_servers: bool) -> None:
        self._nodes = nodes
        self._keys = keys
        self._on_other_servers = on_other_servers

    async def rows(self, session_ids: Sequence[SessionId]) -> list[SessionRow | None]:
        """Return what is known about some sessions; None where there is none."""
        rows = [self._keys.row(session_id) for session_id in session_ids]
        found = await asyncio.gather(*(self._nodes.run(row, (b"HMGET", row, *_COLUMNS), reads=True) for row in rows))
        return [_row(session_id, reply) for session_id, (reply,) in zip(session_ids, found, strict=True)]

    async def page(self, owner: str | None, agent: str | None, limit: int, before: ListPosition | None) -> SessionPage:
        """Return sessions, last used first, from a position on."""
        index = self._keys.index_for(owner, agent)
        shown: list[SessionRow] = []
        reached: ListPosition | None = None if before is None else (before[0], _LAST)
        while True:
            named = await self._named(index, reached, limit + 1)
            rows = await self.rows([SessionId(name) for _, name in named])
            for (listed_us, name), row in zip(named, rows, strict=True):
                if row is None or not self._lists(index, row):
                    await self._drop(index, name, listed_us)
                    continue
                await self._correct(row, listed_us)
                if agent in (None, row.agent) and (before is None or _position_of(row) < before):
                    shown.append(row)
            shown.sort(key=_position_of, reverse=True)
            del shown[limit + 1 :]
            # Further down, no session can have been used later than the last one here.
            if not named or (len(shown) > limit and named[-1][0] + LISTED_EVERY_US <= _position_of(shown[-1])[0]):
                return page(shown, limit)
            reached = named[-1]

    async def announce(self, session_id: SessionId, owner: bytes, agent: bytes, at_us: int) -> None:
        """Name a session that is about to begin."""
        await self._add(b"NX", session_id, owner, agent, at_us)

    async def used(self, session_id: SessionId, owner: bytes, agent: bytes, at_us: int) -> None:
        """Put a session where it belongs."""
        await self._add(b"GT", session_id, owner, agent, at_us)

    async def remove(self, session_id: SessionId, owner: bytes, agent: bytes) -> None:
        """Name a session no more."""
        name = session_id.encode()
        await asyncio.gather(
            *(self._nodes.run(index, (b"ZREM", index, name)) for index in self._keys.indexes(owner, agent))
        )

    async def rebuild(self, on_progress: Callable[[int], None]) -> int:
        """Name every session there is, and return how many; `on_progress` is told how many so far."""
        total = 0
        for address in self._nodes.primaries:
            cursor = b"0"
            while True:
                match await self._nodes.run_at(
                    address, (b"SCAN", cursor, b"MATCH", self._keys.rows, b"COUNT", b"1000")
                ):
                    case [bytes(cursor), [*found]]:
                        ids = [self._keys.session_of(key) for key in found if isinstance(key, bytes)]
                    case _:
                        break
                for row in await self.rows([session_id for session_id in ids if session_id is not None]):
                    if row is not None:
                        await self.used(row.id, row.owner.encode(), row.agent.encode(), to_us(row.touched_at))
                        total += 1
                on_progress(total)
                if cursor == b"0":
                    break
        return total

    async def _named(self, index: bytes, before: ListPosition | None, count: int) -> list[ListPosition]:
        """Return up to so many names after a position, last used first; none when there are no more."""
        highest = b"+inf" if before is None else b"%d" % before[0]
        while True:
            span = (b"ZREVRANGEBYSCORE", index, highest, b"-inf", b"WITHSCORES", b"LIMIT", b"0", b"%d" % count)
            (reply,) = await self._nodes.run(index, span, reads=True)
            names = _positions(reply)
            after = [name for name in names if before is None or name < before]
            if after or len(names) < count:
                return after
            # All of these were used in the same microsecond as the one before.
            count *= 2

    def _lists(self, index: bytes, row: SessionRow) -> bool:
        return index in self._keys.indexes(row.owner.encode(), row.agent.encode())

    async def _add(self, how: bytes, session_id: SessionId, owner: bytes, agent: bytes, at_us: int) -> None:
        score, name = b"%d" % at_us, session_id.encode()
        await asyncio.gather(
            *(self._nodes.run(index, (b"ZADD", index, how, score, name)) for index in self._keys.indexes(owner, agent))
        )

    async def _correct(self, row: SessionRow, listed_us: int) -> None:
        """Put a session where it belongs if a process died before it did."""
        touched_us = to_us(row.touched_at)
        if self._on_other_servers and touched_us - listed_us > 2 * LISTED_EVERY_US:
            await self.used(row.id, row.owner.encode(), row.agent.encode(), touched_us)

    async def _drop(self, index: bytes, name: str, listed_us: int) -> None:
        words = (name.encode(), b"%d" % listed_us, b"%d" % _BEING_BEGUN_US)
        await self._nodes.run(index, (b"EVALSHA", DROP.sha, b"1", index, *words))


def _position_of(row: SessionRow) -> ListPosition:
    return list_position(row.touched_at, row.id)


def _row(session_id: SessionId, reply: Reply) -> SessionRow | None:
    match reply:
        case [bytes(owner), bytes(agent), bytes(seq), bytes(created), bytes(touched)]:
            times = from_us(int(created)), from_us(int(touched))
            return SessionRow(session_id, owner.decode(), agent.decode(), int(seq), *times)
        case _:
            return None


def _positions(reply: Reply) -> list[ListPosition]:
    """Return what an index names, each with the time it was used."""
    words = cast("list[bytes]", reply)
    return [(int(float(score)), name.decode()) for name, score in zip(words[::2], words[1::2], strict=True)]
