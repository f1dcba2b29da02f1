"""What an answer's bytes say about the call: the tokens that were reported, and how it came to its end.

The bytes are looked at when they have all passed. OpenAI (both protocols), Anthropic, Google and Ollama are known; an
answer in another form has no usage and is whole when its connection ended well. A stream is read event by event: words
of the answer that look like the end of one are not taken for it.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import httpx2

from windowpane.calls.documents import as_map, as_maps, as_text, as_tokens, objects, with_whole_lines
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
class AnswerFacts:
    """What an answer says about its call: what it reports, and how it came to its end by its own words.

    `usage` is None when it reports nothing, and `output_told` tells whether it says how much was written, be it
    nothing. `streamed` is True for a stream of a protocol that says when an answer is over. `finished` tells whether
    this one said so, `closed` whether nothing more was to come. `error` is what kind of error it told of.
    """

    usage: Usage | None = None
    output_told: bool = False
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

    def read(self) -> AnswerFacts:
        """Return what the answer says about its call."""
        kept = b"".join(self._chunks)
        body = decoded(self._headers.get("content-encoding", ""), kept) or b""
        return read_answer_bytes(body)


def read_answer_bytes(body: bytes) -> AnswerFacts:
    """Return what an answer says about its call."""
    whole = list(objects(body)) if body.lstrip()[:1] in (b"{", b"[") else []
    # The first event of a socket is a document too, and not the answer.
    if whole and not str(whole[0].get("type")).startswith("response."):
        # One line of Ollama's stream is a document as well.
        is_line = whole[0].get("done") is False
        error = next((kind for each in whole if (kind := _error_in(each))), "")
        end = AnswerFacts(streamed=is_line, finished=not is_line, closed=not is_line, error=error)
        return _with_report(end, whole)
    lines = _telling_lines(body)
    events = [event for line in lines for event in objects(line)]
    return _with_report(_end_of(events, done=b"[DONE]" in lines), events)


def usage_in(documents: Iterable[Mapping[str, Any]]) -> Usage | None:
    """Return the usage that the documents of an answer report, or None when they report none."""
    return _with_report(AnswerFacts(), documents).usage


def _with_report(end: AnswerFacts, documents: Iterable[Mapping[str, Any]]) -> AnswerFacts:
    told: dict[str, int] = {}
    reads: Callable[[Mapping[str, int]], tuple[Usage, bool]] = _openai
    for document in documents:
        counts, reader = _report_in(document)
        # Zeros alone stand for a report that is still to come, or that never comes.
        if any(counts.values()):
            told |= {name: count for name, count in counts.items() if count or name not in told}
            reads = reader
    usage, output_told = reads(told)
    return replace(end, usage=usage if usage != Usage() else None, output_told=output_told)


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


def _end_of(events: Iterable[Mapping[str, Any]], *, done: bool) -> AnswerFacts:
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
    return AnswerFacts(streamed=streamed, finished=finished, closed=closed, error=error)


_OPENING = frozenset(("message_start", "response.created"))


def _error_in(document: Mapping[str, Any]) -> str:
    """Return of which kind the error is that a document tells of. What it says may be words of the request."""
    error = document.get("error") or as_map(document.get("response")).get("error")
    if not error and document.get("type") != "error":
        return ""
    told = as_map(error) or document
    names = (told.get(name) for name in ("status", "code", "type"))
    return next((name for name in map(as_text, names) if _WORD.fullmatch(name)), "unknown")


def _report_in(document: Mapping[str, Any]) -> tuple[dict[str, int], Callable[[Mapping[str, int]], tuple[Usage, bool]]]:
    """Return the counts that a document reports, by the names that its provider gives them, and what reads these.

    Later counts replace earlier ones. A zero replaces none: an event may not say again what an earlier one said.
    """
    if "prompt_eval_count" in document or "eval_count" in document:
        return _numbers(document), _ollama
    google = document.get("usageMetadata")
    if isinstance(google, dict):
        return _numbers(cast("dict[str, object]", google)), _google
    usage = document.get("usage") or _within(document, "message") or _within(document, "response")
    if not isinstance(usage, dict):
        return {}, _openai
    counts = cast("dict[str, object]", usage)
    numbers = _numbers(counts)
    is_anthropic = as_text(document.get("type")) in {"message_start", "message_delta", "message"}
    if is_anthropic or "cache_read_input_tokens" in counts or "cache_creation_input_tokens" in counts:
        return numbers | _numbers(as_map(counts.get("cache_creation"))), _anthropic
    details = _numbers(as_map(counts.get("prompt_tokens_details") or counts.get("input_tokens_details")))
    return numbers | {name: count for name, count in details.items() if count}, _openai


def _within(document: Mapping[str, Any], name: str) -> object:
    return as_map(document.get(name)).get("usage")


def _openai(counts: Mapping[str, int]) -> tuple[Usage, bool]:
    # DeepSeek and Moonshot have names of their own.
    read = counts.get("cached_tokens") or counts.get("prompt_cache_hit_tokens", 0)
    written = counts.get("completion_tokens", counts.get("output_tokens"))
    told = counts.get("prompt_tokens") or counts.get("input_tokens", 0)
    told = told or max(counts.get("total_tokens", 0) - (written or 0), 0)
    output = _rest(written, counts.get("total_tokens"), told)
    # A server that has read more than it was given counts that apart.
    given = told + read if read > told else told
    return Usage(given, output or 0, read, counts.get("cache_write_tokens", 0)), output is not None


def _anthropic(counts: Mapping[str, int]) -> tuple[Usage, bool]:
    """Return Anthropic's counts as ours, which hold cached tokens within the input."""
    read, written = counts.get("cache_read_input_tokens", 0), counts.get("cache_creation_input_tokens", 0)
    hour = min(counts.get("ephemeral_1h_input_tokens", 0), written)
    output = counts.get("output_tokens")
    return Usage(counts.get("input_tokens", 0) + read + written, output or 0, read, written, hour), output is not None


def _google(counts: Mapping[str, int]) -> tuple[Usage, bool]:
    given = counts.get("promptTokenCount", 0) + counts.get("toolUsePromptTokenCount", 0)
    names = ("candidatesTokenCount", "thoughtsTokenCount")
    written = sum(counts.get(name, 0) for name in names) if any(name in counts for name in names) else None
    given = given or max(counts.get("totalTokenCount", 0) - (written or 0), 0)
    output = _rest(written, counts.get("totalTokenCount"), given)
    return Usage(given, output or 0, counts.get("cachedContentTokenCount", 0)), output is not None


def _ollama(counts: Mapping[str, int]) -> tuple[Usage, bool]:
    output = counts.get("eval_count")
    return Usage(counts.get("prompt_eval_count", 0), output or 0), output is not None


def _rest(written: int | None, total: int | None, given: int) -> int | None:
    """Return how much was written, where need be by what a total leaves; None when neither is reported."""
    if written is not None or total is None:
        return written
    return total - given if total >= given else None


def _numbers(counts: Mapping[str, object]) -> dict[str, int]:
    """Return those that are counts of tokens."""
    told = {name: as_tokens(value) for name, value in counts.items()}
    return {name: count for name, count in told.items() if count is not None}
