"""What an answer's bytes say about the call: the tokens that were reported, and whether it came to its end.

The bytes are looked at when they have all passed. OpenAI (both protocols), Anthropic, Google and Ollama are known; an
answer in another form has no usage and is whole when its connection ended well.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import httpx2

from windowpane.calls.documents import objects
from windowpane.calls.encodings import decoded
from windowpane.context.messages import Usage

MOST_BYTES = 16 * 1024 * 1024
"""Longer answers are not looked at."""

_ENDS = (b"[DONE]", b"message_stop", b"response.completed", b"response.incomplete", b"response.failed", b"finishReason")
_MARKS = (b"usage", b"eval_count")


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

    def read(self) -> tuple[Usage | None, bool]:
        """Return the usage that was reported, if any was, and whether the answer says that it is whole."""
        kept = b"".join(self._chunks) if self._size <= MOST_BYTES else b""
        body = decoded(self._headers.get("content-encoding", ""), kept) or b""
        return usage_of(body), says_whole(body)


def usage_of(body: bytes) -> Usage | None:
    """Return the usage that an answer reports, or None when it reports none."""
    return usage_in(_documents(body))


def usage_in(documents: Iterable[Mapping[str, Any]]) -> Usage | None:
    """Return the usage that the documents of an answer report, or None when they report none."""
    found: Usage | None = None
    for document in documents:
        found = _merged(found, document)
    return found


def says_whole(body: bytes) -> bool:
    """Tell whether an answer says that it came to its end."""
    return any(mark in body for mark in _ENDS)


def _documents(body: bytes) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON documents of an answer that say something about tokens: events of a stream, or all of it."""
    if body[:1] in (b"{", b"["):
        yield from objects(body)
    for line in (line.removeprefix(b"data:").strip() for line in body.splitlines()):
        if line[:1] == b"{" and any(mark in line for mark in _MARKS) and b'"usage":null' not in line:
            yield from objects(line)


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
    return Usage(
        input_tokens=_number(counts, "prompt_tokens") or _number(counts, "input_tokens"),
        output_tokens=_number(counts, "completion_tokens") or _number(counts, "output_tokens"),
        cache_read_tokens=_number(details, "cached_tokens"),
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
    return Usage(
        input_tokens=_number(counts, "promptTokenCount") + _number(counts, "toolUsePromptTokenCount"),
        output_tokens=_number(counts, "candidatesTokenCount") + _number(counts, "thoughtsTokenCount"),
        cache_read_tokens=_number(counts, "cachedContentTokenCount"),
    )


def _number(counts: object, name: str) -> int:
    value = cast("Mapping[str, object]", counts).get(name) if isinstance(counts, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
