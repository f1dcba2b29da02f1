"""The port for objects: bytes under names, in a service that is made for large ones."""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Protocol


class Objects(Protocol):
    """Bytes by name. Every operation raises `StoreUnavailableError` when the service cannot do it.

    One contract suite (`tests/stores/test_objects.py`) runs against every adapter.
    """

    async def put(self, name: str, body: bytes) -> None:
        """Keep bytes; durable when this returns."""
        ...

    async def get(self, name: str) -> bytes | None:
        """Return the bytes, or None when there are none of this name."""
        ...

    async def delete(self, names: Sequence[str]) -> None:
        """Remove what there is of these names."""
        ...

    def list(self) -> AsyncGenerator[tuple[str, datetime]]:
        """Yield every name, and when it was put."""
        ...
