"""The OpenAI chat completions protocol, streaming: `POST /v1/chat/completions`.

Chunks as OpenAI documents them: the role first, content and tool-call deltas, a chunk with the finish reason, one
with the usage and no choices, then `[DONE]`.
"""

from typing import Any

from wire.reply import WireReply
from wire.server import Answer, json_answer, sse

MODEL = "gpt-4o-2024-08-06"
DONE = sse("[DONE]")


def answer(reply: WireReply) -> Answer:
    """Return a whole streamed answer."""
    return Answer((*frames(reply), DONE))


def document(reply: WireReply) -> Answer:
    """Return a whole answer that is not streamed."""
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": "".join(call.arguments)}}
        for call in reply.calls
    ]
    message: dict[str, Any] = {"role": "assistant", "content": "".join(reply.text) or None, "refusal": None}
    if reply.thinking:
        message["reasoning_content"] = "".join(reply.thinking)
    if calls:
        message["tool_calls"] = calls
    finish = reply.finish or ("tool_calls" if calls else "stop")
    return json_answer(
        200,
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": MODEL,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
            "usage": _usage(reply),
        },
    )


def frames(reply: WireReply) -> tuple[bytes, ...]:
    """Return the events of an answer, without the last one."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "", "refusal": None}]
    deltas += [{"reasoning_content": piece} for piece in reply.thinking]
    deltas += [{"content": piece} for piece in reply.text]
    for index, call in enumerate(reply.calls):
        function = {"name": call.name, "arguments": ""}
        deltas.append({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]})
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in call.arguments]
    finish = reply.finish or ("tool_calls" if reply.calls else "stop")
    return (*(delta(content) for content in deltas), delta({}, finish), _chunk([], _usage(reply)))


def delta(content: dict[str, Any], finish: str | None = None) -> bytes:
    """Return one chunk."""
    return _chunk([{"index": 0, "delta": content, "logprobs": None, "finish_reason": finish}])


def problem(
    status: int, message: str, *, type_: str = "", code: str = "", headers: dict[str, str] | None = None
) -> Answer:
    """Return an error as OpenAI words it."""
    return json_answer(status, {"error": error(message, type_=type_, code=code)}, headers)


def error(message: str, *, type_: str = "", code: str = "") -> dict[str, str | None]:
    """Return the error object, which also comes inside a stream."""
    return {"message": message, "type": type_ or "invalid_request_error", "param": None, "code": code or None}


def _chunk(choices: list[dict[str, Any]], usage: dict[str, Any] | None = None) -> bytes:
    return sse(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": MODEL,
            "service_tier": "default",
            "system_fingerprint": "fp_1",
            "choices": choices,
            "usage": usage,
        }
    )


def _usage(reply: WireReply) -> dict[str, Any]:
    return {
        "prompt_tokens": reply.input_tokens,
        "completion_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.output_tokens,
        "prompt_tokens_details": {"cached_tokens": reply.cached_tokens, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }
