"""Routes that are built when they are first taken.

To build one is to make what reads its parameters and its body and writes its answer: milliseconds, and a megabyte here
and there. There are far more routes than most callers ever take, and a server that starts would build all of them
before it answers. A process that forks workers builds them at once, for all workers to share.
"""

from collections.abc import Callable, Iterable
from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, compile_path, get_name


class LazyRoute(APIRoute):
    """A route that knows its path and its methods, and is built when anything else of it is asked for."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **given: Any) -> None:
        """Take what `APIRoute` takes."""
        self._given: dict[str, Any] = given
        self.path, self.endpoint = path, endpoint
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self.name = given.get("name") or get_name(endpoint)
        self.methods = {method.upper() for method in given.get("methods") or ("GET",)}
        self.include_in_schema = given.get("include_in_schema", True)
        self.operation_id = given.get("operation_id")

    def __getattr__(self, name: str) -> Any:
        if name not in _BUILT:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        # What was decided about the route since it was declared stays.
        operation_id = self.operation_id
        super().__init__(self.path, self.endpoint, **self._given)
        self.operation_id = operation_id
        return getattr(self, name)


_BUILT = frozenset({"app", *APIRoute.__annotations__})
"""What only a built route has, and others have as well: those are set in any case."""


class LazyRouter(APIRouter):
    """A router of such routes."""

    def __init__(self, *, route_class: type[LazyRoute] = LazyRoute, **given: Any) -> None:
        """Take what `APIRouter` takes."""
        super().__init__(route_class=route_class, **given)


def build_all(routes: Iterable[BaseRoute]) -> None:
    """Build what is not built yet."""
    for route in routes:
        if isinstance(route, LazyRoute):
            route.app  # noqa: B018 (it is built by being looked at)
