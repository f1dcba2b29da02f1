"""The pane that a request talks to, once it is known who asks and that they may.

A route says what it needs by the type of its pane: `Reading`, `Chatting` or `Managing`. The caller needs that scope.
The pane is the caller's: a session of another owner is not found, in the same words as one that does not exist. When
the path names a `session_id`, that is checked before anything else of the request is looked at.

Dependencies are coroutines also where they wait for nothing: FastAPI gives every plain function a thread.
"""

from typing import Annotated, TypedDict, cast

from fastapi import Depends, Security
from fastapi.security import HTTPBearer, SecurityScopes
from fastapi.security.base import SecurityBase
from starlette.requests import HTTPConnection
from starlette.types import Scope as AsgiScope

from windowpane.callers import SCOPES, Caller, Scope
from windowpane.engine import Engine
from windowpane.errors import ScopeNeededError, StoreUnavailableError, TokenNeededError, WindowpaneError
from windowpane.insight.analytics.update import AnalyticsUpdater
from windowpane.insight.finding.finder import SessionFinder
from windowpane.local.pane import LocalPane

CALLER = "windowpane.caller"
"""Where a request keeps who sent it, or why that is not known."""

FORGOTTEN: Scope = "manage"
"""What a route needs that forgot to say so."""

TOKEN = HTTPBearer(scheme_name="token", description="`windowpane token create` makes one.", auto_error=False)


def set_caller(scope: AsgiScope, caller: Caller | WindowpaneError) -> None:
    """Note who sent a request, or why that is not known."""
    scope[CALLER] = caller


async def caller_of(connection: HTTPConnection) -> Caller:
    """Return who sent a request.

    Raises:
        TokenNeededError: the caller has no valid token.
    """
    caller = connection.scope.get(CALLER, TokenNeededError("the caller was not identified"))
    if isinstance(caller, WindowpaneError):
        raise caller
    return cast("Caller", caller)


def known_caller_of(connection: HTTPConnection) -> Caller | None:
    """Return who sent a request, or None when that is not known."""
    caller = connection.scope.get(CALLER)
    return caller if isinstance(caller, Caller) else None


async def _known_caller(connection: HTTPConnection) -> Caller | None:
    return known_caller_of(connection)


def engine_of(connection: HTTPConnection) -> Engine:
    """Return the app's engine.

    Raises:
        StoreUnavailableError: it is not open yet, or closed already.
    """
    if not connection.app.state.opened:
        raise StoreUnavailableError("the server is not ready")
    return cast("Engine", connection.app.state.engine)


class _Shared(TypedDict):
    updater: AnalyticsUpdater
    finder: SessionFinder


def _shared(connection: HTTPConnection) -> _Shared:
    """Return what all panes of the app have in common beside its engine."""
    return {"updater": connection.app.state.updater, "finder": connection.app.state.finder}


async def anyones_pane(connection: HTTPConnection) -> LocalPane:
    """Return a pane that is not bound to an owner, for every caller."""
    return LocalPane(engine_of(connection), owner=None, **_shared(connection))


async def admit(connection: HTTPConnection, scope: Scope) -> LocalPane:
    """Return the caller's pane, if the caller has the scope and the path names no session of another owner.

    Raises:
        TokenNeededError: the caller may not come in.
        ScopeNeededError: the caller may do less than this.
        SessionNotFoundError: the path names a session that the caller does not have.
    """
    caller = await caller_of(connection)
    if not caller.may(scope):
        raise ScopeNeededError(scope)
    pane = LocalPane(engine_of(connection), owner=caller.owner, **_shared(connection))
    session_id = connection.path_params.get("session_id")
    if session_id is not None:
        await pane.own(session_id)
    return pane


class _Admission(SecurityBase):
    """Admits callers with the scope that a route names. Who asks is known already: the token is only described."""

    model = TOKEN.model
    scheme_name = TOKEN.scheme_name

    async def __call__(self, connection: HTTPConnection, needed: SecurityScopes) -> LocalPane:
        named = [index for index, scope in enumerate(SCOPES) if scope in needed.scopes]
        return await admit(connection, SCOPES[named[0]] if named else FORGOTTEN)


_admitted = _Admission()

Reading = Annotated[LocalPane, Security(_admitted, scopes=["read"])]
"""A pane to look at things with: agents, and the caller's own sessions."""

Chatting = Annotated[LocalPane, Security(_admitted, scopes=["chat"])]
"""A pane to begin, continue, change and delete the caller's own sessions with."""

Managing = Annotated[LocalPane, Security(_admitted, scopes=["manage"])]
"""A pane to change agents with, and everything else that concerns all owners."""

OpenPane = Annotated[LocalPane, Security(_admitted)]
"""A pane of a route that does not say what it needs; tests find such routes."""

AnyonesPane = Annotated[LocalPane, Depends(anyones_pane)]
"""A pane of a route that needs no token, and that therefore tells nothing about any owner."""

Asking = Annotated[Caller, Depends(caller_of)]
"""Who is asking."""

MaybeAsking = Annotated[Caller | None, Depends(_known_caller)]
"""Who is asking, if that is known."""
