"""Which turn each idempotency key began, for as long as the session lives.

Of a key only a digest is kept, with the number of its turn: 16 characters together. They stand in blocks, so that
one more is cheap to add to a state that others share.
"""

import base64
import hashlib
from dataclasses import dataclass

_DIGEST_BYTES, _TURN_BYTES = 9, 3
_DIGEST, _ENTRY = 12, 16
_BLOCK = 128 * _ENTRY


@dataclass(frozen=True, slots=True)
class TurnKeys:
    """The keys of a session's turns, oldest first."""

    full: tuple[str, ...] = ()
    tail: str = ""

    @property
    def blocks(self) -> tuple[str, ...]:
        """Return all of it, for `from_blocks`."""
        return (*self.full, self.tail) if self.tail else self.full

    @staticmethod
    def from_blocks(blocks: tuple[str, ...]) -> "TurnKeys":
        """Return the keys that `blocks` told."""
        return TurnKeys(blocks[:-1], blocks[-1]) if blocks else TurnKeys()

    def with_next(self, key: str, turn: int) -> "TurnKeys":
        """Return these keys and one more."""
        number = (turn % 256**_TURN_BYTES).to_bytes(_TURN_BYTES)
        entry = _digest(key) + base64.urlsafe_b64encode(number).decode()
        if len(self.tail) >= _BLOCK:
            return TurnKeys((*self.full, self.tail), entry)
        return TurnKeys(self.full, self.tail + entry)

    def of(self, key: str) -> int | None:
        """Return the turn that a key began, or None."""
        digest = _digest(key)
        for block in (self.tail, *reversed(self.full)):
            at = block.find(digest)
            while at >= 0 and at % _ENTRY:
                at = block.find(digest, at + 1)
            if at >= 0:
                return int.from_bytes(base64.urlsafe_b64decode(block[at + _DIGEST : at + _ENTRY].ljust(4, "A")))
        return None


def _digest(key: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(key.encode()).digest()[:_DIGEST_BYTES]).decode()
