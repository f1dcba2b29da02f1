"""Who is asking: over pipes the user of this machine, over HTTP the owner of the token that comes with the request.

Where others can reach the server, every caller needs a token. What a token has open ends when it is revoked.
"""

import json
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import anyio
import anyio.to_thread
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from windowpane.callers import LOCAL, Caller, TokenFile
from windowpane.callers import Scope as CallerScope
from windowpane.context.ids import SessionId
from windowpane.engine import Engine
from windowpane.errors import ScopeNeededError, TokenNeededError, TokensUnreadableError, WindowpaneError

LOOK_EVERY_S = 0.5
_CALLER = "windowpane.caller"
_caller: ContextVar[Caller] = ContextVar("caller", default=LOCAL)


def caller() -> Caller:
    """Return who sent the message that is being answered."""
    return _caller.get()


async def own_session(engine: Engine, session_id: str, scope: CallerScope) -> SessionId:
    """Return a session's id, if it is the caller's and the caller may do this with it.

    Raises:
        ScopeNeededError: the caller's token allows less than this.
        SessionNotFoundError: the caller has no such session.
    """
    if not caller().may(scope):
        raise ScopeNeededError(scope)
    await engine.sessions.check_owner(SessionId(session_id), caller().owner)
    return SessionId(session_id)


class Known:
    """Notes who sent a message while it is answered. A session outlives requests, so each message brings its own."""

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        request: object = ctx.request
        before = _caller.set(request.scope.get(_CALLER, LOCAL) if isinstance(request, HTTPConnection) else LOCAL)
        try:
            return await call_next(ctx)
        finally:
            _caller.reset(before)


class Gate:
    """Lets requests in that show a token, and others where none is needed."""

    def __init__(self, app: ASGIApp, tokens: TokenFile, *, token_needed: bool) -> None:
        self._app = app
        self._tokens = tokens
        self._token_needed = token_needed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its caller, or refuse it."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        try:
            found = self._caller_of(HTTPConnection(scope).headers.get("authorization", ""))
        except WindowpaneError as error:
            return await _refusal(error)(scope, receive, send)
        scope[_CALLER] = found
        if found.token is None:
            return await self._app(scope, receive, send)
        # So that the library ties its own sessions to who began them.
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=found.token, scopes=sorted(found.scopes)))
        return await self._while_valid(found.token, scope, receive, send)

    def _caller_of(self, header: str) -> Caller:
        kind, _, shown = header.partition(" ")
        if kind.lower() != "bearer":
            if self._token_needed:
                raise TokenNeededError("this server needs a token")
            return LOCAL
        found = self._tokens.caller(shown.strip())
        if found is None:
            raise TokenNeededError("the token is invalid or revoked")
        return found

    async def _while_valid(self, token_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._until_revoked, token_id, tasks.cancel_scope)
            await self._app(scope, receive, send)
            tasks.cancel_scope.cancel()

    async def _until_revoked(self, token_id: str, scope: anyio.CancelScope) -> None:
        valid = True
        while valid:
            await anyio.sleep(LOOK_EVERY_S)
            with suppress(TokensUnreadableError):
                valid = await anyio.to_thread.run_sync(self._tokens.holds, token_id)
        scope.cancel()


def _refusal(error: WindowpaneError) -> Response:
    known = isinstance(error, TokenNeededError)
    said = str(error) if known else "tokens cannot be looked up now"
    headers = {"WWW-Authenticate": 'Bearer realm="windowpane"'} if known else {}
    body = json.dumps({"error": error.code, "error_description": said})
    return Response(body, 401 if known else 503, headers, "application/json")
