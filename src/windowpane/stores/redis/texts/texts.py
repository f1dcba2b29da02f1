"""What a session has of texts: its own in a hash beside its log, and its bundles."""

from collections.abc import Sequence

from windowpane.context.ids import BlobHash, SessionId
from windowpane.errors import SessionNotFoundError
from windowpane.stores.redis.keys import RedisKeys
from windowpane.stores.redis.nodes import Nodes
from windowpane.stores.redis.pipeline import Command
from windowpane.stores.redis.texts.bundles import Bundles, read_held, text_of, write_held
from windowpane.stores.redis.wording import packed


class Texts:
    """Reads the texts of sessions."""

    def __init__(self, nodes: Nodes, keys: RedisKeys) -> None:
        self._nodes = nodes
        self._keys = keys
        self.bundles = Bundles(nodes, keys)

    async def read(self, session_id: SessionId, hashes: Sequence[BlobHash]) -> dict[BlobHash, str]:
        """Return those of the texts that are stored with the session."""
        if not hashes:
            return {}
        row = self._keys.row(session_id)
        own: Command = (b"HMGET", self._keys.blobs(row), *(name.encode() for name in hashes))
        bodies, words = await self._nodes.run(row, lambda _: [own, (b"HGET", row, b"bundles")], reads=True)
        kept = zip(hashes, bodies if isinstance(bodies, list) else [None] * len(hashes), strict=True)
        found = {name: text_of(body) for name, body in kept if isinstance(body, bytes)}
        left = [name for name in hashes if name not in found]
        return found | await self.bundles.texts(read_held(words), left)

    async def names(self, session_id: SessionId) -> list[BlobHash]:
        """Return the hashes of all texts that are stored with the session.

        Raises:
            SessionNotFoundError: no such session.
        """
        row = self._keys.row(session_id)
        own, words, there = await self._nodes.run(
            row,
            lambda _: [(b"HKEYS", self._keys.blobs(row)), (b"HGET", row, b"bundles"), (b"EXISTS", row)],
            reads=True,
        )
        if not there or not isinstance(own, list):
            raise SessionNotFoundError(session_id)
        names = {BlobHash(name.decode()) for name in own if isinstance(name, bytes)}
        for bundle in read_held(words):
            names |= await self.bundles.names(bundle)
        return sorted(names)

    async def without(self, session_id: SessionId, hashes: Sequence[BlobHash]) -> tuple[bytes, bytes, list[bytes]]:
        """Return a session's bundles as its row names them, those without these texts, and what is left of the others.

        What is left becomes the session's own: names and texts, as they are kept.
        """
        row = self._keys.row(session_id)
        (words,) = await self._nodes.run(row, (b"HGET", row, b"bundles"), reads=True)
        held, gone = read_held(words), set(hashes)
        left: set[BlobHash] = set()
        whole = dict(held)
        for bundle in held if gone else ():
            names = await self.bundles.names(bundle)
            if not gone.isdisjoint(names):
                del whole[bundle]
                left |= names - gone
        texts = await self.bundles.texts(held, sorted(left)) if left else {}
        rest = [word for name, text in texts.items() for word in (name.encode(), packed(text))]
        return words if isinstance(words, bytes) else b"", write_held(whole), rest
