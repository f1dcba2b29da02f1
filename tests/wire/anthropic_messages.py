"""The Anthropic messages protocol, streaming: `POST /v1/messages`.

Events as Anthropic documents them: message_start, a ping, content blocks with their deltas, message_delta with the
stop reason and usage, message_stop.
"""

import json
from collections.abc import Iterator
from typing import Any

from wire.reply import WireReply
from wire.server import Answer, json_answer, sse

MODEL = "claude-opus-4-6"


def answer(reply: WireReply) -> Answer:
    """Return a whole streamed answer."""
    return Answer(frames(reply))


def document(reply: WireReply) -> Answer:
    """Return a whole answer that is not streamed."""
    content: list[dict[str, Any]] = []
    if reply.thinking:
        content.append({"type": "thinking", "thinking": "".join(reply.thinking), "signature": "c2lnbmVk"})
    if reply.text:
        content.append({"type": "text", "text": "".join(reply.text)})
    for call in reply.calls:
        arguments = json.loads("".join(call.arguments))
        content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments})
    return json_answer(
        200,
        {
            "id": reply.id,
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": content,
            "stop_reason": reply.finish or ("tool_use" if reply.calls else "end_turn"),
            "stop_sequence": None,
            "usage": {
                "input_tokens": reply.input_tokens,
                "cache_creation_input_tokens": reply.written_tokens,
                "cache_read_input_tokens": reply.cached_tokens,
                "output_tokens": reply.output_tokens,
            },
        },
    )


def frames(reply: WireReply) -> tuple[bytes, ...]:
    """Return the events of an answer."""
    return tuple(_events(reply))


def event(name: str, fields: dict[str, Any]) -> bytes:
    """Return one event."""
    return sse({"type": name, **fields}, event=name)


def problem(status: int, message: str, *, type_: str, headers: dict[str, str] | None = None) -> Answer:
    """Return an error as Anthropic words it."""
    return json_answer(status, error(message, type_=type_), headers)


def error(message: str, *, type_: str) -> dict[str, Any]:
    """Return the error document, which also comes inside a stream."""
    return {"type": "error", "error": {"type": type_, "message": message}, "request_id": "req_1"}


def _events(reply: WireReply) -> Iterator[bytes]:
    usage = {
        "input_tokens": reply.input_tokens,
        "cache_creation_input_tokens": reply.written_tokens,
        "cache_read_input_tokens": reply.cached_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": reply.written_tokens - reply.written_1h_tokens,
            "ephemeral_1h_input_tokens": reply.written_1h_tokens,
        },
        "output_tokens": 1,
        "service_tier": "standard",
    }
    message: dict[str, Any] = {"id": reply.id, "type": "message", "role": "assistant", "model": MODEL, "content": []}
    yield event("message_start", {"message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}})
    yield event("ping", {})
    for index, (block, deltas) in enumerate(_blocks(reply)):
        yield event("content_block_start", {"index": index, "content_block": block})
        for delta in deltas:
            yield event("content_block_delta", {"index": index, "delta": delta})
        yield event("content_block_stop", {"index": index})
    stop = reply.finish or ("tool_use" if reply.calls else "end_turn")
    yield event(
        "message_delta",
        {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": reply.output_tokens}},
    )
    yield event("message_stop", {})


def _blocks(reply: WireReply) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    if reply.thinking:
        thoughts = [{"type": "thinking_delta", "thinking": piece} for piece in reply.thinking]
        signature = {"type": "signature_delta", "signature": "c2lnbmVk"}
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*thoughts, signature]
    if reply.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in reply.text]
    for call in reply.calls:
        pieces = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *call.arguments)]
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}, pieces
