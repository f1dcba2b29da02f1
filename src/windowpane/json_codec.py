"""What reads and writes a type as JSON, made when it is first used.

To make one takes milliseconds, and most commands use few of them. A server makes all of them at once before it forks.
"""

from functools import cache, cached_property
from typing import Any, Generic, TypeVar, overload

from pydantic import TypeAdapter

T = TypeVar("T")


class JsonCodec(Generic[T]):
    """Reads and writes one type: `codec.adapter` has pydantic's methods."""

    @overload
    def __init__(self, kind: type[T]) -> None: ...

    @overload
    def __init__(self, kind: Any) -> None: ...  # a union is no class

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        _declared.append(self)

    @cached_property
    def adapter(self) -> TypeAdapter[T]:
        """What pydantic makes of the type."""
        return adapter_of(self._kind)


_declared: list[JsonCodec[Any]] = []


@cache
def adapter_of(kind: Any) -> TypeAdapter[Any]:
    """Return what pydantic makes of a type: the same for all who ask."""
    return TypeAdapter(kind)


def make_all() -> None:
    """Make those of every module that was imported."""
    for codec in _declared:
        codec.adapter  # noqa: B018 (it is made by being looked at)
