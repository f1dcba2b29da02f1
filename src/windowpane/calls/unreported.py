"""Let Anthropic's client read the stream of a server that reports no usage.

The client counts on `usage` in the first and the last event of a message. Proxies and servers of one's own leave it
out. One that counts nothing is put in on the way to the client; what is recorded is what came.
"""

import json
import re
from collections.abc import AsyncIterator
from typing import Any, cast

import httpx2

from windowpane.calls.documents import as_map, as_text, objects
from windowpane.calls.protocol import kind_of

_COUNTED: dict[str, dict[str, int]] = {"message_start": {"input_tokens": 0, "output_tokens": 0}, "message_delta": {}}
"""What the client counts on in the usage of each event."""

_REPORTING = re.compile(rb'"message_(?:start|delta)"')


def may_lack_usage(request: httpx2.Request) -> bool:
    """Tell whether the answer to a request is one of Anthropic's protocol."""
    kind = kind_of(request.method, request.url.path)
    return kind is not None and kind.protocol == "anthropic"


class WithUsage(httpx2.AsyncByteStream):
    """The bytes of a stream, line by line, with a `usage` in events that lack it."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        held: list[bytes] = []
        async for chunk in self._stream:
            end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
            if end:
                lines, held = b"".join((*held, chunk[:end])), []
                if _REPORTING.search(lines):
                    lines = b"".join(map(_with_usage, lines.splitlines(keepends=True)))
                yield lines
            held.append(chunk[end:])
        yield b"".join(held)

    async def aclose(self) -> None:
        await self._stream.aclose()


def _with_usage(line: bytes) -> bytes:
    if not line.startswith(b"data:"):
        return line
    text = line.removeprefix(b"data:").strip()
    event = cast("dict[str, Any]", next(objects(text), dict[str, Any]()))
    kind = as_text(event.get("type"))
    holder = event.get("message") if kind == "message_start" else event
    if kind not in _COUNTED or not isinstance(holder, dict):
        return line
    told = cast("dict[str, object]", holder).get("usage")
    whole = {**_COUNTED[kind], **as_map(told)}
    if told == whole:
        return line
    holder["usage"] = whole
    return line.replace(text, json.dumps(event).encode())
