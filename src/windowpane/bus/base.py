"""The bus port: short messages between workers, each about one session.

A message says "read the log", or carries words that are being written. Nothing depends on it: a message may be lost,
come twice or late, and what is stored stays true. So a bus is never waited for, and never fails the work of its caller.
One contract suite (`tests/bus/`) runs against every bus.
"""

from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from typing import Protocol, Self

from windowpane.context.ids import SessionId

LOOK = b"look"
"""The message that a session's log has grown."""

LARGEST_MESSAGE = 5_500
"""How many bytes a message may have: what fits into a NOTIFY of PostgreSQL as base64, sealed or not."""

Hear = Callable[[bytes], None]


class Bus(Protocol):
    """Carries messages to those who subscribed to a session, in every process that has the same bus open.

    A bus is opened by `async with`. It connects when it is first used, and again whenever it was cut off.
    """

    @property
    def away(self) -> str:
        """Why messages are not carried at the moment; empty when they are, as far as is known."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...

    def publish(self, session_id: SessionId, message: bytes) -> None:
        """Send a message soon, to everyone who subscribed, the caller too. Does nothing when it cannot be sent."""
        ...

    def subscribe(self, session_id: SessionId, hear: Hear) -> Callable[[], None]:
        """Call `hear` with each message about a session until the function that this returns is called.

        It is also called with an empty message when messages may have been missed: when the subscription begins, and
        when the bus comes back. It must neither block nor raise.
        """
        ...


@lru_cache(maxsize=4096)
def topic_of(session_id: SessionId) -> str:
    """Return the name of a session on a bus: short, whatever the session's id, and without characters of its own."""
    return blake2b(session_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
