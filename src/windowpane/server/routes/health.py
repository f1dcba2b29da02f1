"""Whether the server runs, and whether it can do its work. No token is needed, so nothing else is told."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Literal

import anyio
from fastapi import APIRouter, Request

from windowpane.context.ids import SessionId
from windowpane.errors import StoreUnavailableError, WindowpaneError
from windowpane.server.dependencies import AnyonesPane
from windowpane.server.problems import problems

router = APIRouter(tags=["server"])

PATIENCE_S = 5.0
"""How long the store may take to answer a question that it can always answer."""


NO_SESSION = SessionId("readiness")
"""A name that no session has."""

VERSION = version("windowpane")


@dataclass(frozen=True, slots=True)
class Health:
    """The server runs."""

    status: Literal["ok"]
    version: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """The server can do its work: the store can be read and written, and the agents can be read."""

    status: Literal["ready"]


@router.get("/healthz", summary="Tell whether the server runs", responses=problems())
async def health(pane: AnyonesPane) -> Health:
    """Answer once everything is open. A server that does not answer this should be started again."""
    return Health("ok", VERSION)


@router.get("/readyz", summary="Tell whether the server can do its work", responses=problems())
async def readiness(pane: AnyonesPane, request: Request) -> Readiness:
    """Answer when the store can be read and written, agents can be read and the server is not stopping.

    A server that says no should get no requests for now; it may become ready by itself.
    """
    if request.app.state.stopping:
        raise StoreUnavailableError("the server is stopping")
    if not await _in_time(partial(pane.sessions.list, limit=1)):
        raise StoreUnavailableError("the store cannot be reached")
    # To give back a lease that was never taken changes nothing, but the store must be able to write for it.
    if not await _in_time(partial(pane.engine.store.release, NO_SESSION, "readiness")):
        raise StoreUnavailableError("the store cannot be written")
    if not await pane.agents.list():
        raise StoreUnavailableError("there is no agent that can be read; `windowpane init` writes one")
    return Readiness("ready")


async def _in_time(ask: Callable[[], Awaitable[object]]) -> bool:
    with anyio.move_on_after(PATIENCE_S):
        try:
            await ask()
        except WindowpaneError:
            return False
        return True
    return False
