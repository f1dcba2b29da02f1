"""Whether the sessions of an open store are encrypted, told from one of them."""

from windowpane.context.events import Sealed
from windowpane.errors import SessionNotFoundError, StoreEncryptedError
from windowpane.stores.base import Store


async def holds_sealed(store: Store) -> bool:
    """Tell whether the session that was used last comes out of this store sealed."""
    for row in (await store.sessions(limit=1)).rows:
        try:
            first: list[object] = [recorded.event for recorded in await store.read(row.id, limit=1)]
        except SessionNotFoundError:
            # Deleted at this moment.
            return await holds_sealed(store)
        return any(isinstance(event, Sealed) for event in first)
    return False


async def refuse_sealed(store: Store) -> None:
    """Make sure that the sessions of a store can be read as they come out of it.

    Raises:
        StoreEncryptedError: they are encrypted, and the store was opened without the key.
    """
    if await holds_sealed(store):
        raise StoreEncryptedError
