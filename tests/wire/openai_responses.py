"""The OpenAI responses protocol, streaming: `POST /v1/responses`."""

from collections.abc import Iterator
from typing import Any

from wire.reply import WireCall, WireReply
from wire.server import Answer, json_answer, sse

MODEL = "gpt-5-2025-08-07"


def answer(reply: WireReply) -> Answer:
    """Return a whole streamed answer."""
    return Answer(frames(reply))


def document(reply: WireReply) -> Answer:
    """Return a whole answer that is not streamed."""
    output = [_message("completed", "".join(reply.text))] if reply.text else []
    output += [_call(call, "completed", "".join(call.arguments)) for call in reply.calls]
    return json_answer(200, _response(reply, "completed", output))


def frames(reply: WireReply) -> tuple[bytes, ...]:
    """Return the events of an answer."""
    return tuple(
        sse({"type": name, "sequence_number": number, **fields}, event=name)
        for number, (name, fields) in enumerate(_events(reply))
    )


def refusal(reply: WireReply) -> Answer:
    """Return an answer whose text is a refusal, in the events that are for it."""
    text = "".join(reply.text)
    place: dict[str, Any] = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    item = {**_message("completed", None), "content": [{"type": "refusal", "refusal": text}]}
    events: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": _response(reply, "in_progress", [])}),
        ("response.output_item.added", {"output_index": 0, "item": _message("in_progress", None)}),
        ("response.content_part.added", {**place, "part": {"type": "refusal", "refusal": ""}}),
        *(("response.refusal.delta", {**place, "delta": piece}) for piece in reply.text),
        ("response.refusal.done", {**place, "refusal": text}),
        ("response.content_part.done", {**place, "part": item["content"][0]}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": _response(reply, "completed", [item])}),
    ]
    return Answer(tuple(sse({"type": name, "sequence_number": 0, **fields}, event=name) for name, fields in events))


def _events(reply: WireReply) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "response.created", {"response": _response(reply, "in_progress", [])}
    yield "response.in_progress", {"response": _response(reply, "in_progress", [])}
    output: list[dict[str, Any]] = []
    if reply.thinking:
        yield from _thought(reply.thinking)
        output.append(_reasoning("".join(reply.thinking)))
    if reply.text:
        at = len(output)
        place: dict[str, Any] = {"item_id": "msg_1", "output_index": at, "content_index": 0}
        text = "".join(reply.text)
        yield "response.output_item.added", {"output_index": at, "item": _message("in_progress", None)}
        yield "response.content_part.added", {**place, "part": _text("")}
        for piece in reply.text:
            yield "response.output_text.delta", {**place, "delta": piece, "logprobs": []}
        yield "response.output_text.done", {**place, "text": text, "logprobs": []}
        yield "response.content_part.done", {**place, "part": _text(text)}
        output.append(_message("completed", text))
        yield "response.output_item.done", {"output_index": at, "item": output[-1]}
    for call in reply.calls:
        index, item_id = len(output), f"fc_{call.id}"
        place = {"item_id": item_id, "output_index": index}
        yield "response.output_item.added", {"output_index": index, "item": _call(call, "in_progress", "")}
        for piece in call.arguments:
            yield "response.function_call_arguments.delta", {**place, "delta": piece}
        arguments = "".join(call.arguments)
        yield "response.function_call_arguments.done", {**place, "arguments": arguments, "name": call.name}
        output.append(_call(call, "completed", arguments))
        yield "response.output_item.done", {"output_index": index, "item": output[-1]}
    end = "incomplete" if reply.finish else "completed"
    yield f"response.{end}", {"response": _response(reply, end, output)}


def _thought(pieces: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    place: dict[str, Any] = {"item_id": "rs_1", "output_index": 0, "summary_index": 0}
    text = "".join(pieces)
    yield "response.output_item.added", {"output_index": 0, "item": _reasoning(None)}
    yield "response.reasoning_summary_part.added", {**place, "part": {"type": "summary_text", "text": ""}}
    for piece in pieces:
        yield "response.reasoning_summary_text.delta", {**place, "delta": piece}
    yield "response.reasoning_summary_text.done", {**place, "text": text}
    yield "response.reasoning_summary_part.done", {**place, "part": {"type": "summary_text", "text": text}}
    yield "response.output_item.done", {"output_index": 0, "item": _reasoning(text)}


def _reasoning(text: str | None) -> dict[str, Any]:
    summary = [] if text is None else [{"type": "summary_text", "text": text}]
    signed = None if text is None else "c2lnbmVk"
    return {"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": signed, "status": None}


def _response(reply: WireReply, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
    usage = {
        "input_tokens": reply.input_tokens,
        "input_tokens_details": {"cached_tokens": reply.cached_tokens},
        "output_tokens": reply.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.input_tokens + reply.output_tokens,
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": reply.finish} if status == "incomplete" else None,
        "instructions": None,
        "model": MODEL,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "metadata": {},
        "usage": None if status == "in_progress" else usage,
    }


def _message(status: str, text: str | None) -> dict[str, Any]:
    content = [] if text is None else [_text(text)]
    return {"id": "msg_1", "type": "message", "status": status, "role": "assistant", "content": content}


def _text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _call(call: WireCall, status: str, arguments: str) -> dict[str, Any]:
    return {
        "id": f"fc_{call.id}",
        "type": "function_call",
        "status": status,
        "arguments": arguments,
        "call_id": call.id,
        "name": call.name,
    }
