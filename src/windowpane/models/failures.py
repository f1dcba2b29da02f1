"""What went wrong in a model call, said so that the reader knows what to do next.

Every way a provider can fail becomes one `ModelError`. Whether anything had arrived decides between a call that
failed and an answer that broke off. Keys never appear: neither ours nor one that a provider quotes back.
"""

import re
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import httpx2
from pydantic_ai import exceptions as theirs

from windowpane import errors as ours
from windowpane.calls.transport import AnswerNotTakenError, RedirectedError
from windowpane.text.durations import in_units
from windowpane.text.redact import shown_address

Foreseen = (theirs.AgentRunError, theirs.UserError, httpx2.HTTPError, httpx2.StreamError)
"""What pydantic-ai and its clients raise when a call fails. Anything else is a fault of a program."""

_CLIENTS = frozenset(("pydantic_ai", "openai", "anthropic", "google", "groq", "mistralai", "cohere"))
"""Packages that read the answers of providers."""

LONGEST_QUOTE = 600
_KEY_LIKE = re.compile(r"\b(?:sk|pk|gsk|xai|key|AIza)[-_A-Za-z0-9*]{12,}|(?<=Bearer )\S+")


@dataclass(frozen=True, slots=True)
class Called:
    """The model that was called: its name, the variables that set it up, and what must never be printed."""

    name: str
    key_variable: str = ""
    url: str = ""
    url_variable: str = ""
    secrets: tuple[str, ...] = ()


def failure(error: Exception, called: Called, *, partial: str, arrived: bool) -> ours.ModelError:
    """Return our error for theirs. `arrived` tells whether any of the answer had come, seen or unseen."""
    error = _not_taken(error) or error
    said = quote(error, called)
    if isinstance(error, RedirectedError):
        return _redirected(called, said)
    if isinstance(error, theirs.ModelRequestTimeout | theirs.ModelTimeoutError | httpx2.TimeoutException):
        return ours.ModelTimeoutError(
            f"{called.name} did not answer in time ({said}); try again, or choose a faster model", partial=partial
        )
    if arrived:
        return ours.ModelStreamBrokenError(f"{called.name}: the answer was cut off: {said}", partial=partial)
    return _refused(error, called, said) or _unreachable(error, called, said)


def unreadable(error: Exception, called: Called, *, partial: str) -> ours.ModelStreamBrokenError | None:
    """Return the error for an answer on which the client stumbled, such as one without a field that it counts on.

    None: the fault is another program's, such as ours.
    """
    packages = [
        str(frame.f_globals.get("__name__")).partition(".")[0] for frame, _ in traceback.walk_tb(error.__traceback__)
    ]
    # A client may have asked another library to read it.
    at_fault = next((package for package in reversed(packages) if package in {*_CLIENTS, "windowpane"}), "")
    if at_fault not in _CLIENTS:
        return None
    where = f"; check what answers at {called.url}" if called.url else ""
    said = f"{type(error).__name__}: {quote(error, called)}"
    return ours.ModelStreamBrokenError(
        f"{called.name} gave an answer that its client cannot read ({said}){where}", partial=partial
    )


def too_slow(called: Called, seconds: float, *, partial: str, arrived: bool) -> ours.ModelTimeoutError:
    """Return the error for a model that was silent for longer than it may be."""
    what = f"was silent for {seconds:g} s in its answer" if arrived else f"did not begin to answer within {seconds:g} s"
    return ours.ModelTimeoutError(f"{called.name} {what}; try again, or choose a faster model", partial=partial)


def unfinished(called: Called, reason: str, *, partial: str) -> ours.ModelStreamBrokenError:
    """Return the error for a stream that ended without a complete answer. `reason` is empty when it just ended."""
    why = f"the model stopped with {reason!r}" if reason else "the connection ended before the model had finished"
    return ours.ModelStreamBrokenError(f"{called.name}: the answer was cut off: {why}", partial=partial)


def passing(error: Exception) -> bool:
    """Tell whether the same call may well succeed in a moment."""
    if _not_taken(error):
        return False
    if isinstance(error, theirs.ModelHTTPError) and error.provider_retry_hint is not None:
        return error.provider_retry_hint
    if isinstance(error, theirs.ModelTimeoutError):
        return error.phase == "connect"
    return isinstance(
        error,
        theirs.ModelRateLimitError
        | theirs.ModelUnavailableError
        | theirs.ModelServerError
        | theirs.ModelConnectionError
        | httpx2.ConnectError
        | httpx2.ReadError
        | httpx2.RemoteProtocolError,
    )


def _not_taken(error: BaseException | None) -> AnswerNotTakenError | None:
    """Return why an answer was not passed on, which some clients take for a broken connection."""
    while error is not None and not isinstance(error, AnswerNotTakenError):
        error = error.__cause__ or error.__context__
    return error


def asked_wait_s(error: Exception) -> float | None:
    """Return how long the provider asked to be left alone, or None when it did not say."""
    return error.retry_after if isinstance(error, theirs.ModelAPIError) else None


def quote(error: Exception, called: Called) -> str:
    """Return what the provider said, in one line, without keys and without a last full stop."""
    body = error.body if isinstance(error, theirs.ModelAPIError) else None
    text = _message_in(body) or (_status(error) if isinstance(error, theirs.ModelHTTPError) else str(error))
    for secret in called.secrets:
        text = text.replace(secret, "[key]")
    line = " ".join(_KEY_LIKE.sub("[key]", text).split()).removesuffix(".")
    return line if len(line) <= LONGEST_QUOTE else f"{line[:LONGEST_QUOTE]}…"


def _refused(error: Exception, called: Called, said: str) -> ours.ModelError | None:
    if isinstance(error, theirs.ModelAuthenticationError):
        check = f"check {called.key_variable}" if called.key_variable else "check the key"
        return ours.ModelAuthError(f"{called.name} refused the key: {said}; {check}")
    if isinstance(error, theirs.ModelQuotaExceededError):
        return ours.ModelRejectedError(f"{called.name}: quota used up ({said})", status=429)
    if isinstance(error, theirs.ModelRateLimitError):
        when = f"try again in {in_units(error.retry_after)}" if error.retry_after else "try again in a moment"
        return ours.ModelRateLimitedError(
            f"{called.name}: rate limit ({said}); {when}", retry_after_s=error.retry_after
        )
    if isinstance(error, theirs.ModelContextWindowExceededError) or _is_too_long(error, said):
        return _too_long(error, called, said)
    if isinstance(error, theirs.ModelHTTPError) and 400 <= error.status_code < 500 and error.status_code != 408:
        hint = f"; did you mean {error.suggested_model_id}?" if error.suggested_model_id else ""
        return ours.ModelRejectedError(f"{called.name} refused the request: {said}{hint}", status=error.status_code)
    if isinstance(error, theirs.ModelRequestRejectedError | theirs.UserError):
        return ours.ModelRejectedError(f"{called.name} refused the request: {said}")
    return None


def _is_too_long(error: Exception, said: str) -> bool:
    """Tell whether a server that speaks for many models refused a request for its length, in words of its own."""
    return isinstance(error, theirs.ModelHTTPError) and error.status_code in (400, 413) and bool(_LONG.search(said))


def _too_long(error: Exception, called: Called, said: str) -> ours.RequestTooLongError:
    """Return the refusal with the two numbers that most servers give: how long it is, and how long it may be."""
    body = error.body if isinstance(error, theirs.ModelAPIError) else None
    numbers = [int(found.replace(",", "")) for found in _NUMBER.findall(f"{said} {body or ''}")]
    counts = [number for number in numbers if number >= _SMALLEST_WINDOW and number not in (400, 413)]
    known = len(set(counts)) >= 2
    return ours.RequestTooLongError(
        f"the request is too long for {called.name}: {said}; set context_window in agent.yaml to what the model takes, "
        "remove items, or choose a model with a larger window",
        reported_tokens=max(counts) if known else None,
        window_tokens=min(counts) if known else None,
    )


_LONG = re.compile(
    r"exceeds? (?:the |this )?(?:available |maximum |model.{0,20})?context|context (?:length|window|size)|"
    r"(?:prompt|input|request) is too long|too many (?:input |prompt )?tokens|exceed_context_size",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\b\d{1,3}(?:,\d{3})+\b|\b\d{3,8}\b")
_SMALLEST_WINDOW = 256
"""Smaller numbers in a refusal are not sizes; neither are the statuses 400 and 413."""


def _unreachable(error: Exception, called: Called, said: str) -> ours.ModelError:
    if isinstance(error, theirs.ModelConnectionError | httpx2.TransportError):
        where = f" at {shown_address(called.url)}" if called.url else ""
        return ours.ModelUnavailableError(
            f"{called.name} cannot be reached{where}: {said}; check the address and the network, then try again"
        )
    if isinstance(error, theirs.ModelServerError | theirs.ModelUnavailableError | theirs.ModelHTTPError):
        return ours.ModelUnavailableError(f"{called.name}: provider error ({said}); try again in a moment")
    return ours.ModelStreamBrokenError(f"{called.name} gave an answer that cannot be read: {said}")


def _redirected(called: Called, said: str) -> ours.ModelUnavailableError:
    where = f" at {shown_address(called.url)}" if called.url else ""
    setting = called.url_variable or "its base URL"
    return ours.ModelUnavailableError(
        f"{called.name} does not answer{where}: {said}; redirects are not followed, so that no key goes to another "
        f"server: set {setting} to the new address"
    )


def _message_in(body: object) -> str:
    """Find the sentence for people in a provider's error: OpenAI, Anthropic and Google nest it differently."""
    if isinstance(body, str):
        return "" if body.lstrip().startswith("<") else body
    if not isinstance(body, Mapping):
        return ""
    fields = cast("Mapping[str, object]", body)
    message = fields.get("message")
    return message if isinstance(message, str) else _message_in(fields.get("error"))


def _status(error: theirs.ModelHTTPError) -> str:
    return f"status {error.status_code}"
