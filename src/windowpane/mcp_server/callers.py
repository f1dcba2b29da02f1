"""Who is asking: over pipes the user of this machine, over HTTP the owner of the token that comes with the request.

Where others can reach the server, every caller needs a token. What a token has open ends when it is revoked.
"""

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver.exceptions import ToolError
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from windowpane.callers import LOCAL, SCOPES, Caller, TokenFile
from windowpane.callers import Scope as CallerScope
from windowpane.context.ids import SessionId
from windowpane.engine import Engine
from windowpane.errors import ScopeNeededError, TokenNeededError, TokensUnreadableError, WindowpaneError

LOOK_EVERY_S = 0.5
METADATA_PATH = "/.well-known/oauth-protected-resource"
"""Where a client that was refused finds out what it needs (RFC 9728)."""

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


@contextmanager
def told() -> Generator[None]:
    """Tell the caller what went wrong in our own words."""
    try:
        yield
    except WindowpaneError as error:
        raise ToolError(str(error)) from None


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

    def __init__(
        self,
        app: ASGIApp,
        tokens: TokenFile,
        *,
        token_needed: bool,
        hosts: Sequence[str] = (),
        origins: Sequence[str] = (),
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._token_needed = token_needed
        self._hosts = frozenset(hosts)
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its caller, or refuse it."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        connection = HTTPConnection(scope)
        base = f"{connection.url.scheme}://{connection.headers.get('host', '')}"
        if wrong := self._foreign(connection):
            return await wrong(scope, receive, send)
        if scope["path"].startswith(METADATA_PATH):
            return await _metadata(base)(scope, receive, send)
        try:
            found = self._caller_of(connection.headers.get("authorization", ""))
        except WindowpaneError as error:
            return await _refusal(error, base)(scope, receive, send)
        scope[_CALLER] = found
        if found.token is None:
            return await self._app(scope, receive, send)
        # So that the library ties its own sessions to who began them.
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=found.token, scopes=sorted(found.scopes)))
        return await self._while_valid(found.token, scope, receive, send)

    def _foreign(self, connection: HTTPConnection) -> Response | None:
        """Return what a request is told that another page sent, or that names another host than this one."""
        host, origin = connection.headers.get("host", ""), connection.headers.get("origin")
        if self._hosts and urlsplit(f"//{host}").hostname not in self._hosts:
            return Response("this server does not answer to this host", 421)
        if origin is None or origin in self._origins or urlsplit(origin).netloc == host:
            return None
        return Response("pages of other sites may not use this server", 403)

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


def _metadata(base: str) -> Response:
    """Return what a client has to know to get in: which resource this is, and that it shows a token in a header."""
    body = {
        "resource": f"{base}/mcp",
        "resource_name": "Windowpane",
        "bearer_methods_supported": ["header"],
        "scopes_supported": list(SCOPES),
    }
    return Response(json.dumps(body), 200, media_type="application/json")


def _refusal(error: WindowpaneError, base: str) -> Response:
    known = isinstance(error, TokenNeededError)
    said = str(error) if known else "tokens cannot be looked up now"
    challenge = f'Bearer realm="windowpane", resource_metadata="{base}{METADATA_PATH}/mcp"'
    headers = {"WWW-Authenticate": challenge} if known else {}
    body = json.dumps({"error": error.code, "error_description": said})
    return Response(body, 401 if known else 503, headers, "application/json")
