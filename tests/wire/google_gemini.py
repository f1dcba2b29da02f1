"""The Gemini protocol, streaming: `POST /v1beta/models/{model}:streamGenerateContent?alt=sse`."""

import json
from typing import Any

from wire.reply import WireReply
from wire.server import Answer, json_answer, sse

MODEL = "gemini-2.5-flash"


def answer(reply: WireReply) -> Answer:
    """Return a whole streamed answer."""
    return Answer(frames(reply))


def frames(reply: WireReply) -> tuple[bytes, ...]:
    """Return the events of an answer. Gemini gives a call's arguments in one piece."""
    parts: list[dict[str, Any]] = [{"text": piece, "thought": True} for piece in reply.thinking]
    parts += [{"text": piece} for piece in reply.text]
    parts += [
        {"functionCall": {"name": call.name, "args": json.loads("".join(call.arguments))}} for call in reply.calls
    ]
    last = len(parts) - 1
    if reply.thinking and reply.calls:
        parts[-1]["thoughtSignature"] = "c2lnbmVk"
    return tuple(_chunk(part, reply, is_last=index == last) for index, part in enumerate(parts))


def document(reply: WireReply) -> Answer:
    """Return a whole answer that is not streamed."""
    parts: list[dict[str, Any]] = [{"text": "".join(reply.text)}] if reply.text else []
    parts += [
        {"functionCall": {"name": call.name, "args": json.loads("".join(call.arguments))}} for call in reply.calls
    ]
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0, "finishReason": reply.finish or "STOP"}
    usage = _usage(reply)
    return json_answer(
        200, {"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL, "responseId": "r1"}
    )


def problem(status: int, message: str, *, code: str) -> Answer:
    """Return an error as Google words it."""
    return json_answer(status, {"error": {"code": status, "message": message, "status": code}})


def _chunk(part: dict[str, Any], reply: WireReply, *, is_last: bool) -> bytes:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": [part]}, "index": 0}
    if is_last:
        candidate["finishReason"] = reply.finish or "STOP"
    return sse({"candidates": [candidate], "usageMetadata": _usage(reply), "modelVersion": MODEL, "responseId": "r1"})


def _usage(reply: WireReply) -> dict[str, int]:
    return {
        "promptTokenCount": reply.input_tokens,
        "candidatesTokenCount": reply.output_tokens,
        "totalTokenCount": reply.input_tokens + reply.output_tokens,
    }
