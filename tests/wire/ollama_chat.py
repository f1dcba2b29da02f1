"""Ollama's own protocol: `POST /api/chat`, streamed as one JSON document a line."""

import json
from typing import Any

from wire.reply import WireReply
from wire.server import Answer, json_answer

MODEL = "llama3.2"
LINES = {"content-type": "application/x-ndjson"}


def answer(reply: WireReply) -> Answer:
    """Return a whole streamed answer."""
    pieces: list[dict[str, Any]] = [{"content": "", "thinking": piece} for piece in reply.thinking]
    pieces += [{"content": piece} for piece in reply.text]
    pieces += [{"content": "", "tool_calls": _calls(reply)}] if reply.calls else []
    lines = [{"model": MODEL, "message": {"role": "assistant", **piece}, "done": False} for piece in pieces]
    lines.append(_last(reply, {"role": "assistant", "content": ""}))
    return Answer(tuple(json.dumps(line).encode() + b"\n" for line in lines), headers=dict(LINES))


def document(reply: WireReply) -> Answer:
    """Return a whole answer that is not streamed."""
    message: dict[str, Any] = {"role": "assistant", "content": "".join(reply.text)}
    if reply.calls:
        message["tool_calls"] = _calls(reply)
    return json_answer(200, _last(reply, message))


def _last(reply: WireReply, message: dict[str, Any]) -> dict[str, Any]:
    return {
        "model": MODEL,
        "created_at": "2026-01-01T00:00:00Z",
        "message": message,
        "done": True,
        "done_reason": reply.finish or "stop",
        "total_duration": 1,
        "prompt_eval_count": reply.input_tokens,
        "eval_count": reply.output_tokens,
    }


def _calls(reply: WireReply) -> list[dict[str, Any]]:
    return [{"function": {"name": call.name, "arguments": json.loads("".join(call.arguments))}} for call in reply.calls]
