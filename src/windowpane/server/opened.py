"""The engine that a request talks to: the one its app was made with, once it is open."""

from typing import Annotated, cast

from fastapi import Depends
from starlette.requests import HTTPConnection

from windowpane.engine import Engine
from windowpane.errors import StoreUnavailableError

OWNER = "local"
"""Whose sessions these are, as long as there is one user."""


def engine_of(request: HTTPConnection) -> Engine:
    """Return the app's engine.

    Raises:
        StoreUnavailableError: it is not open yet, or not any more.
    """
    if not request.app.state.opened:
        raise StoreUnavailableError("the server is not ready")
    return cast("Engine", request.app.state.engine)


OpenEngine = Annotated[Engine, Depends(engine_of)]
