"""Whether the server runs, and whether it can do its work. No token is needed, so nothing else is told."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Literal

import anyio
from fastapi import Request

from windowpane.errors import StoreReplacedError, StoreUnavailableError, WindowpaneError
from windowpane.remarks import get_logger
from windowpane.server.dependencies import AnyonesPane
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.problems import problems

log = get_logger()

router = LazyRouter(tags=["server"])

PATIENCE_S = 5.0
"""How long the store may take to answer a question that it can always answer."""

VERSION = version("windowpane")


@dataclass(frozen=True, slots=True)
class Health:
    """The server runs."""

    status: Literal["ok"]
    version: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """The server can do its work: the store can be read and written, and the agents can be read.

    `bus` tells whether workers hear of one another at once, or look from time to time while their bus is away.
    """

    status: Literal["ready"]
    bus: Literal["up", "away", "none"]


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
    await _check(partial(pane.sessions.list, limit=1), "the store cannot be reached")
    await _check(pane.engine.store.check_writable, "the store cannot be written")
    if not await pane.agents.list():
        raise StoreUnavailableError("there is no agent that can be read; `windowpane init` writes one")
    bus = pane.engine.bus
    return Readiness("ready", "none" if bus is None else "away" if bus.away else "up")


async def _check(ask: Callable[[], Awaitable[object]], trouble: str) -> None:
    """Ask the store something. What it says is not told: it may name the place of the store."""
    with anyio.move_on_after(PATIENCE_S):
        try:
            await ask()
        except StoreReplacedError:
            trouble = "the file of the store was removed or replaced; put it back, or restart the server"
        except WindowpaneError as error:
            log.info("readiness.failed", code=error.code, why=str(error))
        else:
            return
    raise StoreUnavailableError(trouble)
