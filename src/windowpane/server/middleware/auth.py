"""Find out who is asking: by a token in a header, or by one in a cookie that the page got when the user logged in.

On loopback no token is needed, and a caller without one is the user of this machine. A token that is revoked or
whose time is over ends what it has open within a second: streams, sockets, answers that are still being written.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Annotated, Any

import anyio
import anyio.to_thread
from fastapi import Response
from pydantic import ConfigDict, Field, SecretStr
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from windowpane.callers import LOCAL, SCOPES, Caller, TokenFile
from windowpane.callers import Scope as CallerScope
from windowpane.errors import StoreUnavailableError, TokenNeededError, TokensUnreadableError, WindowpaneError
from windowpane.remarks import get_logger
from windowpane.server.dependencies import MaybeAsking, set_caller
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.middleware.root_path import root_of
from windowpane.server.middleware.xray import passes_through
from windowpane.server.parameters import RequestBody
from windowpane.server.problems import BODY, CHALLENGE, problem_of, problems, response_of
from windowpane.xray.proxy import TOKEN_HEADER

COOKIE = "windowpane_token"
LOOK_EVERY_S = 0.5
"""How often the tokens of open requests are looked at again."""

REVOKED = 4401
"""The code that a socket is closed with when its caller has no valid token, or lost it."""

log = get_logger()


class Doorkeeper:
    """Knows the tokens, and who has something open with each. With `token_needed`, every caller needs one."""

    def __init__(self, tokens: TokenFile | None = None, *, token_needed: bool = False) -> None:
        self.token_needed = token_needed
        self._tokens = tokens
        self._open: defaultdict[str, set[anyio.CancelScope]] = defaultdict(set)

    def passing(self, headers: Headers) -> Caller | WindowpaneError:
        """Return who sends a call that is passed on: its `Authorization` is for the provider."""
        if shown := headers.get(TOKEN_HEADER.decode("ascii")):
            return self.holder_of(shown.strip())
        return TokenNeededError("show the token of this server as `X-Windowpane-Token`") if self.token_needed else LOCAL

    def caller(self, headers: Headers, cookie: str | None) -> Caller | WindowpaneError:
        """Return who sends these headers, or what they are told instead."""
        kind, _, shown = headers.get("authorization", "").partition(" ")
        if key := headers.get("x-api-key"):
            # Anthropic's clients show their key this way.
            kind, shown = "bearer", key
        if kind.lower() == "bearer":
            return self.holder_of(shown.strip(), strict=self.token_needed or shown.strip().startswith("wp_"))
        if cookie:
            return self.holder_of(cookie, strict=self.token_needed)
        return TokenNeededError("this server needs a token") if self.token_needed else LOCAL

    def holder_of(self, shown: str, *, strict: bool = True) -> Caller | WindowpaneError:
        """Return whose token this is. Unless `strict`, an unknown one is ignored: some clients must send one."""
        try:
            caller = self._tokens.caller(shown) if self._tokens else None
        except TokensUnreadableError as error:
            log.error("tokens.unreadable", why=str(error))  # noqa: TRY400 - the message says it all
            return StoreUnavailableError("tokens cannot be looked up now; the server's log says why")
        if caller is None:
            return TokenNeededError("the token is invalid or revoked") if strict else LOCAL
        return caller

    def enter(self, token_id: str, scope: anyio.CancelScope) -> None:
        """Note that a request came with a token."""
        self._open[token_id].add(scope)

    def leave(self, token_id: str, scope: anyio.CancelScope) -> None:
        """Note that the request has ended."""
        self._open[token_id].discard(scope)
        if not self._open[token_id]:
            del self._open[token_id]

    async def watch(self) -> None:
        """End what is open with tokens that cannot be used any more, as long as the app runs."""
        while self._tokens is not None:
            await anyio.sleep(LOOK_EVERY_S)
            if not self._open:
                continue
            for token_id in await anyio.to_thread.run_sync(_gone, self._tokens, tuple(self._open)):
                for scope in tuple(self._open.get(token_id, ())):
                    scope.cancel()


def _gone(tokens: TokenFile, open_ids: tuple[str, ...]) -> list[str]:
    try:
        return [token_id for token_id in open_ids if not tokens.holds(token_id)]
    except TokensUnreadableError:
        # No caller is let in meanwhile, and those inside had a token when they came.
        return []


class Entrance:
    """Notes who sends each request, and ends those whose token is revoked meanwhile."""

    def __init__(self, app: ASGIApp, doorkeeper: Doorkeeper) -> None:
        self._app = app
        self._doorkeeper = doorkeeper

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its caller."""
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        connection = HTTPConnection(scope)
        if passes_through(scope):
            caller = self._doorkeeper.passing(connection.headers)
        else:
            caller = self._doorkeeper.caller(connection.headers, connection.cookies.get(COOKIE))
        set_caller(scope, caller)
        if isinstance(caller, WindowpaneError) or caller.token is None:
            return await self._app(scope, receive, send)
        return await self._while_valid(caller.token, scope, receive, send)

    async def _while_valid(self, token_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        started = ended = False

        async def noting(message: Message) -> None:
            nonlocal started, ended
            started = True
            closing = message["type"] == "http.response.body" and not message.get("more_body")
            ended = closing or message["type"] == "websocket.close"
            await send(message)

        with anyio.CancelScope() as revoked:
            self._doorkeeper.enter(token_id, revoked)
            try:
                await self._app(scope, receive, noting)
            finally:
                self._doorkeeper.leave(token_id, revoked)
        if not revoked.cancelled_caught or ended:
            return
        gone = TokenNeededError("this token is not valid any more")
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": REVOKED, "reason": "the token is not valid any more"})
        elif started:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            await response_of(problem_of(gone), CHALLENGE)(scope, receive, send)


router = LazyRouter(prefix="/api", tags=["access"])


class Login(RequestBody):
    """A token, to be kept in a cookie that scripts cannot read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    token: Annotated[SecretStr, Field(min_length=1, max_length=200)]


@dataclass(frozen=True, slots=True)
class Me:
    """Who is asking: null without a valid token. `token_needed` tells whether one can do without a token."""

    owner: str | None
    scopes: tuple[CallerScope, ...]
    token: str | None
    token_needed: bool


@router.get("/me", summary="Tell who is asking", responses=problems())
async def read_me(request: Request, caller: MaybeAsking) -> Me:
    """Return whose sessions the caller sees, what it may do, and whether a token is needed. No token is needed."""
    return _me(request, caller)


@router.post("/login", summary="Keep a token in a cookie", responses=problems(*BODY))
async def log_in(request: Request, response: Response, login: Login) -> Me:
    """Give a browser a cookie that its scripts cannot read and that other sites cannot send.

    It lasts until the browser closes or the token ends, whichever comes first.
    """
    secret = login.token.get_secret_value()
    caller = _doorkeeper(request).holder_of(secret)
    if isinstance(caller, WindowpaneError):
        raise caller
    path = root_of(request.scope) or "/"
    secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, secret, path=path, httponly=True, samesite="strict", secure=secure)
    return _me(request, caller)


@router.post("/logout", status_code=204, summary="Forget the cookie", responses=problems())
async def log_out(request: Request, response: Response) -> None:
    """Take the cookie away. The token itself stays valid until it is revoked."""
    path = root_of(request.scope) or "/"
    secure = request.url.scheme == "https"
    response.delete_cookie(COOKIE, path=path, httponly=True, samesite="strict", secure=secure)


def _me(request: Request, caller: Caller | None) -> Me:
    token_needed = _doorkeeper(request).token_needed
    if caller is None:
        return Me(None, (), None, token_needed)
    scopes: tuple[CallerScope, ...] = tuple(scope for scope in SCOPES if caller.may(scope))
    return Me(caller.owner, scopes, caller.token, token_needed)


def _doorkeeper(request: Request) -> Doorkeeper:
    doorkeeper = request.app.state.doorkeeper
    if not isinstance(doorkeeper, Doorkeeper):
        raise TypeError(doorkeeper)
    return doorkeeper


def with_access(schema: dict[str, Any], token_needed: bool) -> dict[str, Any]:
    """Return an OpenAPI description in which a token may come as a cookie too, and where none is needed not at all."""
    schema["components"]["securitySchemes"]["cookie"] = {"type": "apiKey", "in": "cookie", "name": COOKIE}
    for path in schema["paths"].values():
        for operation in path.values():
            for entry in tuple(operation.get("security", ())):
                operation["security"].append({"cookie": entry["token"]})
                if not token_needed:
                    operation["security"].insert(0, {})
    return schema
