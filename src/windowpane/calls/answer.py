"""What an answer's bytes say about the call: the tokens that were reported, and how it came to its end.

The bytes are looked at when they have all passed. OpenAI (both protocols), Anthropic, Google and Ollama are known; an
answer in another form has no usage and is whole when its connection ended well. A stream is read event by event: words
of the answer that look like the end of one are not taken for it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import httpx2

from windowpane.calls.documents import as_map, as_maps, as_text, objects, with_whole_lines
from windowpane.calls.encodings import decoded
from windowpane.context.calls import CallOutcome
from windowpane.context.messages import Usage

MOST_BYTES = 16 * 1024 * 1024
"""Longer answers are not looked at."""

UNFINISHED = "the stream ended before the answer did"
"""Why a call is cut whose connection ended well."""

_TELLING = (b'"usage"', b"eval_count", b"eason", b'"error"', b'"done"', b'"message_st', b'"response":', b"[DONE]")
"""A line without any of these says nothing but a piece of the answer. With one of them it is read."""

_RUNNING_COUNT = b'"usageMetadata"'
"""Google counts in every event. The last one tells it, or the one before where that broke off."""

_NOTHING = ((b'"usage":null', b'"u":0'), (b'"finish_reason":null', b'"f":0'))
"""What OpenAI says in every event, and how it is passed over. In a text its quotation marks would be escaped."""

_CLOSING = frozenset(("message_stop", "response.completed", "response.incomplete", "response.failed"))
_WORD = re.compile(r"[\w.-]{1,60}")


@dataclass(frozen=True, slots=True)
class AnswerEnd:
    """How an answer came to its end, by its own words.

    `streamed` is True for a stream of a protocol that says when an answer is over. `finished` tells whether this one
    said so, `closed` whether nothing more was to come. `error` is what kind of error it told of.
    """

    streamed: bool = False
    finished: bool = False
    closed: bool = False
    error: str = ""

    def outcome(self, heard: CallOutcome, reason: str) -> tuple[CallOutcome, str]:
        """Return how a call ended and why. `heard` and `reason` are what the connection tells."""
        if self.error:
            return "error", f"the answer tells of an error: {self.error}"
        if heard == "cut" and self.closed:
            # A client may hang up as soon as it has what it wants.
            return "complete", ""
        if heard == "complete" and self.streamed and not self.finished:
            return "cut", UNFINISHED
        return heard, reason


class WireAnswer:
    """The bytes of one answer, as they pass."""

    def __init__(self, headers: httpx2.Headers) -> None:
        self._headers = headers
        self._chunks: list[bytes] = []
        self._size = 0

    def take(self, chunk: bytes) -> None:
        """Look at a few more bytes."""
        self._size += len(chunk)
        if self._size <= MOST_BYTES:
            self._chunks.append(chunk)
        else:
            self._chunks.clear()

    def read(self) -> tuple[Usage | None, AnswerEnd]:
        """Return the usage that was reported, if any was, and how the answer ended."""
        kept = b"".join(self._chunks)
        body = decoded(self._headers.get("content-encoding", ""), kept) or b""
        return read_answer_bytes(body)


def read_answer_bytes(body: bytes) -> tuple[Usage | None, AnswerEnd]:
    """Return the usage that an answer reports, if it reports any, and how it ended."""
    whole = list(objects(body)) if body.lstrip()[:1] in (b"{", b"[") else []
    # The first event of a socket is a document too, and not the answer.
    if whole and not str(whole[0].get("type")).startswith("response."):
        # One line of Ollama's stream is a document as well.
        is_line = whole[0].get("done") is False
        error = next((kind for each in whole if (kind := _error_in(each))), "")
        return usage_in(whole), AnswerEnd(is_line, not is_line, not is_line, error)
    lines = _telling_lines(body)
    events = [event for line in lines for event in objects(line)]
    return usage_in(events), _end_of(events, done=b"[DONE]" in lines)


def usage_in(documents: Iterable[Mapping[str, Any]]) -> Usage | None:
    """Return the usage that the documents of an answer report, or None when they report none."""
    found: Usage | None = None
    for document in documents:
        found = _merged(found, document)
    return found if found != Usage() else None


def _telling_lines(body: bytes) -> list[bytes]:
    """Return what the lines of a stream say that are more than a piece of the answer; of the others the first.

    They are searched for in all of it at once: long answers have thousands of lines.
    """
    body = with_whole_lines(body).replace(b"\r", b"\n")
    for said, passed_over in _NOTHING:
        body = body.replace(said, passed_over)
    ends: dict[int, int] = {}

    def take(at: int) -> int:
        """Take the line in which this place is, and return where it ends."""
        newline = body.find(b"\n", at)
        start, end = body.rfind(b"\n", 0, at) + 1, len(body) if newline < 0 else newline
        ends[start] = end
        return end

    for mark in _TELLING:
        at = body.find(mark)
        while at >= 0:
            at = body.find(mark, take(at))
    first, last = body.find(b"{"), body.rfind(_RUNNING_COUNT)
    for at in (first, last, body.rfind(_RUNNING_COUNT, 0, max(last, 0))):
        if at >= 0:
            take(at)
    return [body[start:end].removeprefix(b"data:").strip() for start, end in sorted(ends.items())]


def _end_of(events: Iterable[Mapping[str, Any]], *, done: bool) -> AnswerEnd:
    streamed, finished, closed, error = False, done, done, ""
    for event in events:
        kind = as_text(event.get("type"))
        choices = [*as_maps(event.get("choices")), *as_maps(event.get("candidates"))]
        stops = as_text(as_map(event.get("delta")).get("stop_reason"))
        ended = kind in _CLOSING or event.get("done") is True or any(c.get("finishReason") for c in choices)
        streamed = streamed or kind in _OPENING or not event.keys().isdisjoint(("choices", "candidates", "done"))
        closed = closed or ended
        finished = finished or ended or bool(stops) or any(c.get("finish_reason") for c in choices)
        error = error or _error_in(event)
    return AnswerEnd(streamed, finished, closed, error)


_OPENING = frozenset(("message_start", "response.created"))


def _error_in(document: Mapping[str, Any]) -> str:
    """Return of which kind the error is that a document tells of. What it says may be words of the request."""
    error = document.get("error") or as_map(document.get("response")).get("error")
    if not error and document.get("type") != "error":
        return ""
    told = as_map(error) or document
    names = (told.get(name) for name in ("status", "code", "type"))
    return next((name for name in map(as_text, names) if _WORD.fullmatch(name)), "unknown")


def _merged(before: Usage | None, document: Mapping[str, Any]) -> Usage | None:
    """Return the usage after a document. Later numbers replace earlier ones; those that are not repeated stay."""
    if "prompt_eval_count" in document or "eval_count" in document:
        return Usage(_number(document, "prompt_eval_count"), _number(document, "eval_count"))
    google = document.get("usageMetadata")
    if isinstance(google, dict):
        return _google(cast("dict[str, Any]", google))
    usage = document.get("usage") or _within(document, "message") or _within(document, "response")
    if not isinstance(usage, dict):
        return before
    counts = cast("dict[str, Any]", usage)
    if (
        "cache_read_input_tokens" in counts
        or "cache_creation_input_tokens" in counts
        or document.get("type")
        in {
            "message_start",
            "message_delta",
            "message",
        }
    ):
        return _anthropic(before or Usage(), counts)
    return _openai(counts)


def _within(document: Mapping[str, Any], name: str) -> object:
    inner = document.get(name)
    return cast("dict[str, object]", inner).get("usage") if isinstance(inner, dict) else None


def _openai(counts: Mapping[str, Any]) -> Usage:
    details: object = counts.get("prompt_tokens_details") or counts.get("input_tokens_details")
    # DeepSeek and Moonshot have names of their own.
    read = _number(details, "cached_tokens") or _number(counts, "prompt_cache_hit_tokens")
    read = read or _number(counts, "cached_tokens")
    written = _number(counts, "completion_tokens") or _number(counts, "output_tokens")
    told = _number(counts, "prompt_tokens") or _number(counts, "input_tokens")
    told = told or _rest(counts, "total_tokens", written)
    return Usage(
        # A server that has read more than it was given counts that apart.
        input_tokens=told + read if read > told else told,
        output_tokens=written or _rest(counts, "total_tokens", told),
        cache_read_tokens=read,
        cache_write_tokens=_number(details, "cache_write_tokens"),
    )


def _anthropic(before: Usage, counts: Mapping[str, Any]) -> Usage:
    """Return Anthropic's counts as ours, which hold cached tokens within the input."""
    read = _number(counts, "cache_read_input_tokens") or before.cache_read_tokens
    written = _number(counts, "cache_creation_input_tokens") or before.cache_write_tokens
    plain = (
        _number(counts, "input_tokens") or before.input_tokens - before.cache_read_tokens - before.cache_write_tokens
    )
    hour = _number(counts.get("cache_creation"), "ephemeral_1h_input_tokens") or before.cache_write_1h_tokens
    output = _number(counts, "output_tokens") or before.output_tokens
    return Usage(plain + read + written, output, read, written, min(hour, written))


def _google(counts: Mapping[str, Any]) -> Usage:
    given = _number(counts, "promptTokenCount") + _number(counts, "toolUsePromptTokenCount")
    written = _number(counts, "candidatesTokenCount") + _number(counts, "thoughtsTokenCount")
    return Usage(
        input_tokens=given or _rest(counts, "totalTokenCount", written),
        output_tokens=written or _rest(counts, "totalTokenCount", given),
        cache_read_tokens=_number(counts, "cachedContentTokenCount"),
    )


def _rest(counts: Mapping[str, Any], total: str, known: int) -> int:
    """Return what a total leaves for the count that a server does not report."""
    return max(_number(counts, total) - known, 0)


def _number(counts: object, name: str) -> int:
    value = cast("Mapping[str, object]", counts).get(name) if isinstance(counts, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
