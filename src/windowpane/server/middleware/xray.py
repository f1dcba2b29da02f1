"""Pass `/xray/{provider}/…` on to providers, for callers who may chat, and record it as sessions of theirs.

A call's own `Authorization` is the provider's key, so the token of this server comes in a header of its own,
`X-Windowpane-Token`, which goes no further.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace

from fastapi import Request
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from windowpane.errors import ScopeNeededError, StoreUnavailableError, WindowpaneError
from windowpane.server.dependencies import Asking, Reading, caller_of, known_caller_of
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.problems import CHALLENGE, problem_of, problems, response_of
from windowpane.xray.app import XrayApp
from windowpane.xray.tape import LossReason

PREFIX = "/xray"
_ROUTE = SimpleNamespace(path=f"{PREFIX}/{{provider}}/{{path}}")
"""What such requests are counted as."""


router = LazyRouter(tags=["server"])


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingStatus:
    """What the recording proxy did with the caller's own calls since this worker started.

    `lost` counts calls that were passed on and not recorded, by reason: `full` (too much was waiting), `store` (it did
    not take them), `unreadable`. `providers` are the names under `/xray/`.
    """

    providers: tuple[str, ...]
    recorded: int
    lost: Mapping[str, int]


@router.get("/api/xray", summary="See what X-ray recorded and lost", responses=problems())
async def recording_status(pane: Reading, caller: Asking, request: Request) -> RecordingStatus:
    """Return how many of the caller's calls this worker recorded and lost. `/metrics` has the sum over all."""
    proxy: XrayApp = request.app.state.xray
    room = proxy.recorder.room
    lost = room.lost_of.get(caller.owner, Counter[LossReason]())
    return RecordingStatus(
        providers=proxy.providers,
        recorded=room.recorded_of[caller.owner],
        lost={str(reason): count for reason, count in lost.items()},
    )


def passes_through(scope: Scope) -> bool:
    """Tell whether a request is passed on. Its answer is another server's, and nothing is added to it."""
    return scope["type"] in ("http", "websocket") and scope["path"].startswith(f"{PREFIX}/")


class XrayDoor:
    """Hands requests to the proxy."""

    def __init__(self, app: ASGIApp, proxy: XrayApp) -> None:
        self._app = app
        self._proxy = proxy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to its provider, or to the app."""
        if not passes_through(scope):
            return await self._app(scope, receive, send)
        scope["route"] = _ROUTE
        try:
            await _admit(scope)
        except WindowpaneError as error:
            return await response_of(problem_of(error), CHALLENGE)(scope, receive, send)
        return await self._proxy(scope, receive, send)


def owner_of_call(scope: Scope) -> str:
    """Return whose a call is that was let in."""
    caller = known_caller_of(HTTPConnection(scope))
    if caller is None:
        raise TypeError("a call that was let in has a caller")
    return caller.owner


async def _admit(scope: Scope) -> None:
    connection = HTTPConnection(scope)
    if not connection.app.state.opened:
        raise StoreUnavailableError("the server is not ready")
    if not (await caller_of(connection)).may("chat"):
        raise ScopeNeededError("chat")
