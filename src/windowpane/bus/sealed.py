"""A bus whose messages only those read who have the key of the sessions.

Words on their way are not kept, but a server may write them down: PostgreSQL has a file for what waits to be heard.
"""

from collections.abc import Callable
from typing import Protocol, Self

from windowpane.bus.base import Bus, Hear
from windowpane.context.ids import SessionId


class Sealer(Protocol):
    """What seals a message for everyone who has the key."""

    def seal_message(self, session_id: SessionId, message: bytes) -> bytes:
        """Return the message sealed."""
        ...

    def unseal_message(self, session_id: SessionId, sealed: bytes) -> bytes | None:
        """Return the message, or None when it was not sealed with a key that is known."""
        ...


class SealedBus(Bus):
    """Another bus, with sealed messages. What cannot be opened is not heard."""

    def __init__(self, bus: Bus, keys: Sealer) -> None:
        self.inner = bus
        self._keys = keys

    @property
    def away(self) -> str:
        """Why messages are not carried at the moment; see `Bus.away`."""
        return self.inner.away

    async def __aenter__(self) -> Self:
        await self.inner.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.inner.__aexit__(*exc)

    def publish(self, session_id: SessionId, message: bytes) -> None:
        """Send a message soon; see `Bus.publish`."""
        self.inner.publish(session_id, self._keys.seal_message(session_id, message))

    def subscribe(self, session_id: SessionId, hear: Hear) -> Callable[[], None]:
        """Call `hear` with each message about a session; see `Bus.subscribe`."""

        def unsealed(message: bytes) -> None:
            opened = self._keys.unseal_message(session_id, message) if message else message
            if opened is not None:
                hear(opened)

        return self.inner.subscribe(session_id, unsealed)
