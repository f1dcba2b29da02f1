"""One line in the log for every request: its id, what was asked, the status, how long it took. Never what was said.

Whatever else is logged on behalf of a request, also by its turn in the background, names the request and its session.

This is the edge: an unexpected error is logged here, once, with its traceback.
"""

import re
import secrets
from time import monotonic

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from windowpane import telemetry
from windowpane.remarks import get_logger
from windowpane.server.middleware.xray import passes_through
from windowpane.server.problems import response_of, unexpected

REQUEST_ID = "X-Request-ID"
_OWN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SESSION = re.compile(r"/api/sessions/(ses_[A-Za-z0-9_-]{1,64})(?:/|$)")

log = get_logger()


class AccessLog:
    """Logs every request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and log how it went."""
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        request_id = _id_of(scope)
        method = scope.get("method", "WEBSOCKET")
        started = monotonic()
        status: int | None = None

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                status = message["status"]
                if not passes_through(scope):
                    MutableHeaders(scope=message)[REQUEST_ID] = request_id
            elif message["type"] == "websocket.close":
                status = message.get("code", 1000)
            await send(message)

        with (
            structlog.contextvars.bound_contextvars(request=request_id, **_session_in(scope)),
            telemetry.continued(Headers(scope=scope)),
        ):
            try:
                await self._app(scope, receive, noting)
            except ClientDisconnect:
                log.info("http.disconnected", method=method, path=_path_of(scope))
            except Exception:
                log.exception("http.crashed", method=method, path=_path_of(scope))
                if status is None and scope["type"] == "http":
                    await response_of(unexpected(request_id))(scope, receive, noting)
            finally:
                log.info(
                    "http.request",
                    method=method,
                    path=_path_of(scope),
                    status=status,
                    duration_ms=round((monotonic() - started) * 1000),
                )


def _id_of(scope: Scope) -> str:
    given = Headers(scope=scope).get(REQUEST_ID, "")
    return given if _OWN_ID.fullmatch(given) else secrets.token_hex(8)


def _session_in(scope: Scope) -> dict[str, str]:
    found = _SESSION.match(scope["path"])
    return {"session": found[1]} if found else {}


def _path_of(scope: Scope) -> str:
    # As it was sent: what is decoded can hold line breaks.
    return scope.get("raw_path", b"").decode("ascii", "replace") or repr(scope["path"])
