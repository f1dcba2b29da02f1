"""Bundles: texts that many sessions have, kept once.

A session's row names its bundles, each with a token. In a cluster a bundle stands on another server than its sessions,
so it takes two steps: first the reference is noted beside the bundle, then the session is told; and the other way
round when it goes. A process that dies in between leaves a reference that no session knows. Each new reference has
some looked at that were not for long, so these go in time, as those of sessions that Redis itself has expired.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from windowpane.context.ids import BlobHash, SessionId
from windowpane.errors import StoreCorruptError, StoreError
from windowpane.stores.packing import pack, unpack
from windowpane.stores.redis.keys import RedisKeys
from windowpane.stores.redis.nodes import Nodes
from windowpane.stores.redis.pipeline import Reply
from windowpane.stores.redis.scripts import HOLD, HOLD_OLD_S, LET_GO

_LOOK_AT = 4

Held = Mapping[str, str]
"""The bundles of a session, each with the token of its reference."""


def read_held(words: Reply) -> Held:
    """Return what a session's row says about its bundles."""
    found = words.decode().split() if isinstance(words, bytes) else []
    return dict(zip(found[::2], found[1::2], strict=True))


def write_held(held: Held) -> bytes:
    """Return bundles as a session's row names them."""
    return " ".join(f"{bundle} {token}" for bundle, token in held.items()).encode()


class Bundles:
    """The bundles under one prefix."""

    def __init__(self, nodes: Nodes, keys: RedisKeys) -> None:
        self._nodes = nodes
        self._keys = keys

    async def hold(
        self, session_id: SessionId, token: str, bundles: Mapping[str, Mapping[BlobHash, str]]
    ) -> tuple[Held, int]:
        """Note that a session will have these bundles; return how its row is to name them, and when that was."""
        noted_s = 0
        for bundle, texts in bundles.items():
            match await self._hold(session_id, bundle, token):
                case [b"bring"]:
                    reply = await self._hold(session_id, bundle, token, texts)
                case reply:
                    pass
            match reply:
                case [b"held", bytes(at), list(old)]:
                    noted_s = min(noted_s or int(at), int(at))
                    await self._look_at([one.decode() for one in old if isinstance(one, bytes)])
                case _:
                    raise StoreCorruptError("a bundle of texts in Redis", f"it answered {reply!r:.100}")
        return dict.fromkeys(bundles, token), noted_s

    async def _hold(
        self, session_id: SessionId, bundle: str, token: str, texts: Mapping[BlobHash, str] | None = None
    ) -> Reply:
        keys = self._keys.of_bundle(bundle)
        words = [
            word
            for name, text in (texts or {}).items()
            for word in (name.encode(), pack(text.encode("utf-8", "surrogatepass")))
        ]
        reference = _reference(bundle, token, session_id)
        about = (bundle.encode(), reference, b"%d" % HOLD_OLD_S, b"%d" % _LOOK_AT)
        (reply,) = await self._nodes.run(keys[0], (b"EVALSHA", HOLD.sha, b"3", *keys, *about, *words))
        return reply

    async def let_go(self, session_id: SessionId, held: Held) -> None:
        """Cross out references that the session does not have any more. What cannot be reached now goes in time."""
        for bundle, token in held.items():
            with suppress(StoreError):
                await self._let_go(bundle, _reference(bundle, token, session_id))

    async def _let_go(self, bundle: str, reference: bytes) -> None:
        keys = self._keys.of_bundle(bundle)
        await self._nodes.run(keys[0], (b"EVALSHA", LET_GO.sha, b"3", *keys, bundle.encode(), reference))

    async def _look_at(self, references: Iterable[str]) -> None:
        """Cross out those of these references that their sessions do not know."""
        for reference in references:
            bundle, token, session_id = reference.split(" ", 2)
            row = self._keys.row(SessionId(session_id))
            with suppress(StoreError):
                (words,) = await self._nodes.run(row, (b"HGET", row, b"bundles"), reads=True)
                if read_held(words).get(bundle) != token:
                    await self._let_go(bundle, reference.encode())
                else:
                    _, held, _ = self._keys.of_bundle(bundle)
                    now = (b"EVALSHA", HOLD.sha, b"3", *self._keys.of_bundle(bundle), bundle.encode())
                    await self._nodes.run(held, (*now, reference.encode(), b"%d" % HOLD_OLD_S, b"0"))

    async def texts(self, bundles: Iterable[str], names: Sequence[BlobHash]) -> dict[BlobHash, str]:
        """Return those of the texts that are in one of the bundles."""
        found: dict[BlobHash, str] = {}
        for bundle in bundles:
            left = [name for name in names if name not in found]
            if not left:
                break
            key = self._keys.of_bundle(bundle)[0]
            (bodies,) = await self._nodes.run(key, (b"HMGET", key, *(name.encode() for name in left)), reads=True)
            kept = zip(left, bodies if isinstance(bodies, list) else [None] * len(left), strict=True)
            found |= {name: text_of(body) for name, body in kept if isinstance(body, bytes)}
        return found

    async def names(self, bundle: str) -> set[BlobHash]:
        """Return the names of the texts in a bundle."""
        key = self._keys.of_bundle(bundle)[0]
        (names,) = await self._nodes.run(key, (b"HKEYS", key), reads=True)
        return {
            BlobHash(name.decode()) for name in (names if isinstance(names, list) else []) if isinstance(name, bytes)
        }


def text_of(body: bytes) -> str:
    """Return a text as it was given."""
    return unpack(body).decode("utf-8", "surrogatepass")


def _reference(bundle: str, token: str, session_id: SessionId) -> bytes:
    return f"{bundle} {token} {session_id}".encode()
