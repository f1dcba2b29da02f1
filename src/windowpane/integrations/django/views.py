"""The views of existing code. Each answers with JSON, or with server-sent events where its name ends in `stream`.

They take `question`, `session_id`, `current_url`, `user_timezone` and `user_time`, from the query or from the body, as
a form or as JSON. Django's own protection against forged requests is in force for those that change something by POST.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial, wraps
from typing import Any, cast

from django.http import HttpRequest, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.module_loading import import_string
from django.views.decorators.http import require_GET, require_POST

from windowpane.context.events import Delta, Live, Recorded, TurnFinished
from windowpane.context.session import SessionState
from windowpane.engine import Engine
from windowpane.errors import (
    ConflictError,
    FetchError,
    FetchRefusedError,
    InvalidInputError,
    ModelError,
    NotFoundError,
    StoreUnavailableError,
    TooManyTurnsError,
    WindowpaneError,
    WorkerFullError,
)
from windowpane.integrations.django.conf import table
from windowpane.integrations.django.manager import ContextManager, ContextMode, get_context_manager

View = Callable[[HttpRequest], HttpResponseBase]
STORE_RETRY_S = "5"
"""When a client may ask again for what the store could not do, in seconds."""

STATUSES: tuple[tuple[type[WindowpaneError], int], ...] = (
    (InvalidInputError, 400),
    (FetchRefusedError, 400),
    (NotFoundError, 404),
    (WorkerFullError, 429),
    (TooManyTurnsError, 429),
    (ConflictError, 409),
    (StoreUnavailableError, 503),
    (ModelError, 502),
    (FetchError, 502),
)


def owner_of(request: HttpRequest) -> str:
    """Return whose session a request is about: the logged-in user's, or the one that all others share.

    The setting `OWNER` names another function for this.
    """
    if path := table().get("OWNER"):
        return cast("Callable[[HttpRequest], str]", import_string(path))(request)
    user = cast("Any", getattr(request, "user", None))
    return f"user:{user.get_username()}" if user is not None and user.is_authenticated else "local"


def _answering(view: View) -> View:
    """Answer errors as JSON."""

    @wraps(view)
    def answered(request: HttpRequest) -> HttpResponseBase:
        try:
            return view(request)
        except WindowpaneError as error:
            status = next((status for kind, status in STATUSES if isinstance(error, kind)), 500)
            return JsonResponse({"error": str(error), "code": error.code}, status=status, headers=_headers(error))

    return answered


def _headers(error: WindowpaneError) -> dict[str, str]:
    """Return what tells a client when to try again."""
    if isinstance(error, WorkerFullError | TooManyTurnsError):
        return {"Retry-After": str(error.retry_after_s)}
    return {"Retry-After": STORE_RETRY_S} if isinstance(error, StoreUnavailableError) else {}


@require_GET
@_answering
def get_chat_response(request: HttpRequest) -> HttpResponseBase:
    """Answer a question, in thinking mode."""
    return _whole(request, ContextMode.THINKING)


@require_GET
@_answering
def get_chat_response_stream(request: HttpRequest) -> HttpResponseBase:
    """Answer a question, in thinking mode, as it is being written."""
    return _stream(request, ContextMode.THINKING)


@require_GET
@_answering
def get_adv_response(request: HttpRequest) -> HttpResponseBase:
    """Answer a question from the web; what is found is kept with the session."""
    return _whole(request, ContextMode.RESEARCH)


@require_GET
@_answering
def get_adv_response_stream(request: HttpRequest) -> HttpResponseBase:
    """Answer a question from the web, as it is being written."""
    return _stream(request, ContextMode.RESEARCH)


@require_POST
@_answering
def get_agent_response(request: HttpRequest) -> HttpResponseBase:
    """Answer a question with the agent's tools."""
    return _whole(request, ContextMode.NORMAL)


@require_POST
@_answering
def input_webtext(request: HttpRequest) -> HttpResponseBase:
    """Take in the text of the page that the user is reading."""
    given = _given(request)
    text = _needed(given, "textContent" if "textContent" in given else "content")
    about = {"title": given.get("title", "")}
    url = given.get("currentUrl") or given.get("current_url") or given.get("url") or ""
    manager, session = _session(request, given)
    manager.add_fetched_context(session, "js_scraping", text, str(url), about)
    return JsonResponse({"resp": "ok", **manager.get_session_stats(session)})


@require_POST
@_answering
def clear_messages(request: HttpRequest) -> HttpResponseBase:
    """Erase the conversation. What was fetched stays."""
    manager, session = _session(request, _given(request))
    manager.clear_conversation_history(session)
    return JsonResponse({"resp": "ok", **manager.get_session_stats(session)})


@require_GET
@_answering
def get_memory_stats(request: HttpRequest) -> HttpResponseBase:
    """Return how much a session holds."""
    manager, session = _session(request, _given(request))
    return JsonResponse(manager.get_session_stats(session))


@require_POST
@_answering
def auto_scrape(request: HttpRequest) -> HttpResponseBase:
    """Fetch the page that the user is reading. Addresses that are not on the public web are refused."""
    given = _given(request)
    manager, session = _session(request, given)
    url = _needed(given, "current_url")

    async def fetch(engine: Engine) -> SessionState:
        return await engine.fetched.fetch((await manager.state(engine, session)).id, url)

    manager.running.ask(fetch)
    return JsonResponse({"resp": "ok", **manager.get_session_stats(session)})


def _whole(request: HttpRequest, mode: ContextMode) -> HttpResponseBase:
    manager, session, events = _asked(request, mode)
    text, ended = "", None
    for event in events:
        text += event.text if isinstance(event, Delta) and event.kind == "text" else ""
        ended = _end(event) or ended
    if ended is not None and ended.error is not None:
        return JsonResponse({"error": ended.error.message, "code": ended.error.code}, status=502)
    sources = [{"title": source.title, "url": source.url} for source in ended.sources] if ended else []
    waiting = ended is None
    return JsonResponse({"resp": text, "sources": sources, "waiting": waiting, **manager.get_session_stats(session)})


def _stream(request: HttpRequest, mode: ContextMode) -> HttpResponseBase:
    _, _, events = _asked(request, mode)
    first = next(events)

    def written() -> Iterator[str]:
        yield from _line(first)
        for event in events:
            yield from _line(event)

    return StreamingHttpResponse(written(), content_type="text/event-stream", headers={"Cache-Control": "no-cache"})


def _line(event: Live) -> Iterator[str]:
    if isinstance(event, Delta) and event.kind == "text":
        yield _sse({"content": event.text, "done": False})
    elif ended := _end(event):
        failed = {"error": ended.error.message, "code": ended.error.code} if ended.error else {}
        yield _sse({"content": "", "done": True, **failed})


def _sse(body: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(body)}\n\n"


def _end(event: Live) -> TurnFinished | None:
    return event.event if isinstance(event, Recorded) and isinstance(event.event, TurnFinished) else None


def _asked(request: HttpRequest, mode: ContextMode) -> tuple[ContextManager, str, Iterator[Live]]:
    given = _given(request)
    manager, session = _session(request, given)
    question = _needed(given, "question")
    manager.running.ask(partial(_check_admission, owner_of(request)))
    manager.update_metadata(
        session,
        mode=mode,
        current_url=_optional(given, "current_url"),
        user_timezone=_optional(given, "user_timezone"),
        user_time=_optional(given, "user_time"),
    )
    found = manager.running.ask(lambda engine: manager.state(engine, session)).id
    return manager, session, manager.running.follow(lambda engine: engine.turn(found, question, wait_s=30))


async def _check_admission(owner: str, engine: Engine) -> None:
    """Refuse a question to a process that is full before its session is made or changed."""
    engine.admission.check(owner)


def _session(request: HttpRequest, given: Mapping[str, Any]) -> tuple[ContextManager, str]:
    return get_context_manager().of(owner_of(request)), _needed(given, "session_id")


def _given(request: HttpRequest) -> Mapping[str, Any]:
    if request.method == "GET":
        return cast("Mapping[str, Any]", request.GET.dict())
    if request.content_type == "application/json":
        try:
            body: object = json.loads(request.body or b"{}")
        except ValueError:
            raise InvalidInputError("the body is not JSON") from None
        if not isinstance(body, dict):
            raise InvalidInputError("the body is not a JSON object")
        return cast("Mapping[str, Any]", body)
    return cast("Mapping[str, Any]", request.POST.dict())


def _needed(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InvalidInputError(f"{name} is missing")
    return value


def _optional(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    return value if isinstance(value, str) else None
