"""Whether the server runs, and whether it can do its work. No token is needed, so nothing else is told."""

from dataclasses import dataclass
from importlib.metadata import version
from typing import Literal

import anyio
from fastapi import APIRouter, Request

from windowpane.errors import StoreUnavailableError, WindowpaneError
from windowpane.local.pane import LocalPane
from windowpane.server.dependencies import AnyonesPane
from windowpane.server.problems import problems

router = APIRouter(tags=["server"])

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
    """The server can do its work: the store answers, and the agents can be read."""

    status: Literal["ready"]


@router.get("/healthz", summary="Tell whether the server runs", responses=problems())
async def health(pane: AnyonesPane) -> Health:
    """Answer once everything is open. A server that does not answer this should be started again."""
    return Health("ok", VERSION)


@router.get("/readyz", summary="Tell whether the server can do its work", responses=problems())
async def readiness(pane: AnyonesPane, request: Request) -> Readiness:
    """Answer when the store can be reached, agents can be read and the server is not stopping.

    A server that says no should get no requests for now; it may become ready by itself.
    """
    if request.app.state.stopping:
        raise StoreUnavailableError("the server is stopping")
    if not await _store_answers(pane):
        raise StoreUnavailableError("the store cannot be reached")
    if not await pane.agents.list():
        raise StoreUnavailableError("there is no agent that can be read; `windowpane init` writes one")
    return Readiness("ready")


async def _store_answers(pane: LocalPane) -> bool:
    with anyio.move_on_after(PATIENCE_S):
        try:
            await pane.sessions.list(limit=1)
        except WindowpaneError:
            return False
        return True
    return False
