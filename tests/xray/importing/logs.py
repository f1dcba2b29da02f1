"""Logs and exports as other tools write them, by hand: the structure is theirs, the words are ours."""

from __future__ import annotations

import hashlib
import json
from typing import Any

CLAUDE = {"sessionId": "c0ffee", "version": "2.1.326", "isSidechain": False}
SYSTEM = [{"type": "text", "text": "You are one."}, {"type": "text", "text": "You work in a terminal."}]
TOOLS = [
    {"name": name, "description": f"The tool {name}.", "input_schema": {"type": "object"}} for name in ("Read", "Run")
]
ASK = {"type": "text", "text": "What does the note say?"}
NOTE = {"type": "text", "text": "<system-reminder>Be brief.</system-reminder>"}
READ = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "note.txt"}}
RUN = {"type": "tool_use", "id": "toolu_2", "name": "Run", "input": {"command": "exit 3"}}
READ_RESULT = {"tool_use_id": "toolu_1", "type": "tool_result", "content": "It says 42."}
RUN_RESULT = {"tool_use_id": "toolu_2", "type": "tool_result", "content": "Exit code 3", "is_error": True}
USAGE = {"input_tokens": 20, "output_tokens": 5, "cache_read_input_tokens": 9000, "cache_creation_input_tokens": 100}


def hash_of(value: Any) -> str:
    written = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(written.encode()).hexdigest()


def node(kind: str, uuid: str, parent: str | None, second: float, **more: Any) -> dict[str, Any]:
    return {**CLAUDE, "type": kind, "uuid": uuid, "parentUuid": parent, "timestamp": at(second), **more}


def at(second: float) -> str:
    return f"2026-03-01T10:00:{second:06.3f}Z"


def user(uuid: str, parent: str | None, second: float, content: Any, **more: Any) -> dict[str, Any]:
    return node("user", uuid, parent, second, message={"role": "user", "content": content}, **more)


def said(uuid: str, parent: str, second: float, block: Any, id_: str, **more: Any) -> dict[str, Any]:
    stop = "tool_use" if id_ == "msg_1" else "end_turn"
    message = {"id": id_, "role": "assistant", "model": "claude-opus-4-6", "content": [block], "stop_reason": stop}
    return node("assistant", uuid, parent, second, message={**message, "usage": USAGE}, requestId=f"req_{id_}", **more)


def claude_old() -> list[dict[str, Any]]:
    """A log of a version that keeps the conversation alone, with two tools that were called at the same time."""
    return [
        {"type": "summary", "summary": "The note", "leafUuid": "a4", "sessionId": "c0ffee"},
        user("u1", None, 0, [ASK]),
        node("attachment", "t1", "u1", 0, rendered=[{"content": NOTE["text"]}], renderedRole="user"),
        said("a1", "t1", 1, {"type": "thinking", "thinking": "Hm."}, "msg_1"),
        said("a2", "a1", 1.1, {"type": "text", "text": "I look."}, "msg_1"),
        said("a3", "a2", 1.2, READ, "msg_1"),
        said("a4", "a3", 1.3, RUN, "msg_1"),
        user("r1", "a3", 2, [READ_RESULT]),
        user("r2", "a4", 3, [RUN_RESULT]),
        said("a5", "r2", 4.5, {"type": "text", "text": "It is 42."}, "msg_2"),
        user("u2", "a5", 10, "Thank you."),
    ]


def claude_more() -> list[dict[str, Any]]:
    """What the program wrote to that log later: an error, and an answer at last."""
    failed = {
        "id": "x",
        "role": "assistant",
        "model": "<synthetic>",
        "content": [{"type": "text", "text": "API Error: 529"}],
    }
    return [
        node("assistant", "e1", "u2", 11, message=failed, isApiErrorMessage=True),
        said("a6", "u2", 12, {"type": "text", "text": "You are welcome."}, "msg_3"),
    ]


def claude_new() -> list[dict[str, Any]]:
    """A log of a version that keeps what requests were made of; the second one was tried twice."""
    first = {"role": "user", "content": [NOTE, ASK]}
    call = {"role": "assistant", "content": [{"type": "text", "text": "I look."}, READ]}
    result = {"role": "user", "content": [READ_RESULT]}
    shape = {"system": SYSTEM, "tools": TOOLS}
    params = {"model": "claude-opus-4-6", "betas": ["one"], "max_tokens": 64000}
    cached = [{"path": ["system", 1], "value": {"type": "ephemeral"}}]

    def request(name: str, second: float, **more: Any) -> dict[str, Any]:
        own = {
            "type": "api-request",
            "id": name,
            "timestamp": at(second),
            "shapeHash": hash_of(shape),
            "params": params,
        }
        return {"sessionId": "c0ffee", "version": "2.1.326", **own, "cacheControl": cached, **more}

    again = {"base": "q1", "keep": 1, "tail": [hash_of(call), hash_of(result)]}
    return [
        user("u1", None, 0, ASK["text"]),
        {"type": "api-request-shape", "sessionId": "c0ffee", "shapeHash": hash_of(shape), "shape": shape},
        {"type": "api-request-blob", "sessionId": "c0ffee", "hash": hash_of(first), "message": first},
        request("q1", 0.5, keep=0, tail=[hash_of(first)]),
        said("a1", "u1", 1, {"type": "text", "text": "I look."}, "msg_1", requestRef="q1"),
        said("a2", "a1", 1.2, READ, "msg_1", requestRef="q1"),
        user("r1", "a2", 2, [READ_RESULT]),
        request("q2", 2.5, **again),
        request("q3", 3.5, **again),
        said("a3", "r1", 4.5, {"type": "text", "text": "It is 42."}, "msg_2", requestRef="q3"),
    ]


def claude_subagent() -> list[dict[str, Any]]:
    """The log of a subagent, which is a file of its own."""
    own = {"agentId": "a77", "isSidechain": True}
    return [
        user("s1", None, 1.5, "Look into it.", **own),
        said("s2", "s1", 2, {"type": "text", "text": "Done."}, "msg_9", **own),
    ]


def codex() -> list[dict[str, Any]]:
    """A log of Codex: two turns, the first with a tool."""
    meta = {"id": "01a1", "cli_version": "0.166.0", "base_instructions": {"text": "You are another."}}
    counts = {"input_tokens": 30, "cached_input_tokens": 10, "output_tokens": 4}

    def line(second: float, kind: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": at(second), "type": kind, "payload": payload}

    def item(second: float, **payload: Any) -> dict[str, Any]:
        return line(second, "response_item", **payload, internal_chat_message_metadata_passthrough={"turn_id": "t"})

    def spoken(second: float, role: str, text: str) -> dict[str, Any]:
        kind = "output_text" if role == "assistant" else "input_text"
        return item(second, type="message", role=role, content=[{"type": kind, "text": text}])

    return [
        line(0, "session_meta", **meta),
        spoken(0, "developer", "<permissions>all</permissions>"),
        line(0, "turn_context", model="gpt-5.1-codex"),
        spoken(0, "user", "<environment_context>here</environment_context>"),
        spoken(0.5, "user", "What does the note say?"),
        line(0.5, "event_msg", type="user_message", message="What does the note say?"),
        item(1, type="reasoning", summary=[{"type": "summary_text", "text": "Hm."}]),
        spoken(1.1, "assistant", "I look."),
        item(1.2, type="function_call", name="exec", arguments='{"cmd": "cat"}', call_id="call_1"),
        line(1.2, "token_usage_record", usage=counts),
        item(2, type="function_call_output", call_id="call_1", output="It says 42."),
        line(2, "event_msg", type="token_count", info={"last_token_usage": counts}),
        spoken(3, "assistant", "It is 42."),
        line(3, "event_msg", type="token_count", info={"last_token_usage": counts}),
        line(10, "turn_context", model="gpt-5.1-codex"),
        spoken(10, "user", "Thank you."),
        line(11, "event_msg", type="error", message="stream disconnected"),
        spoken(12, "assistant", "You are welcome."),
    ]


CHAT_TOOL = {"type": "function", "function": {"name": "clock", "parameters": {"type": "object"}}}
CHAT = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "What time is it?"}]
CLOCK = {"id": "call_1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CLOCK]}
NOON = {"role": "tool", "tool_call_id": "call_1", "content": "noon"}


def langfuse() -> dict[str, Any]:
    """A trace as Langfuse's API gives it, with a span, two generations and one that failed."""

    def generation(name: str, second: float, given: Any, **more: Any) -> dict[str, Any]:
        own = {"id": name, "traceId": "t1", "type": "GENERATION", "model": "gpt-4o", "startTime": at(second)}
        return {**own, "endTime": at(second + 1), "input": given, **more}

    details = {"input": 20, "input_cached_tokens": 10, "output": 5, "total": 35}
    return {
        "id": "t1",
        "sessionId": "chat-7",
        "observations": [
            {"id": "s", "traceId": "t1", "type": "SPAN", "startTime": at(0), "input": "What time is it?"},
            generation(
                "g1", 1, {"messages": CHAT, "tools": [CHAT_TOOL]}, output=CALLED, usageDetails=details, level="DEFAULT"
            ),
            generation("g2", 3, [*CHAT, CALLED, NOON], level="ERROR", statusMessage="rate limit"),
            generation(
                "g3",
                5,
                [*CHAT, CALLED, NOON],
                output={"role": "assistant", "content": "Noon."},
                usage={"input": 40, "output": 2},
            ),
        ],
    }


def litellm() -> list[dict[str, Any]]:
    """Payloads of LiteLLM's logging callbacks."""

    def payload(name: str, start: float, messages: Any, message: Any, **more: Any) -> dict[str, Any]:
        usage = {"prompt_tokens": 30, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 10}}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return {
            "id": name,
            "trace_id": "chat-7",
            "session_id": "",
            "call_type": "acompletion",
            "status": "success",
            "custom_llm_provider": "openai",
            "startTime": start,
            "endTime": start + 1,
            "model": "gpt-4o",
            "prompt_tokens": 30,
            "completion_tokens": 5,
            "messages": messages,
            "response": {"id": name, "model": "gpt-4o-2024-08-06", "choices": [choice], "usage": usage},
            "model_parameters": {"tools": [CHAT_TOOL], "max_tokens": 99},
            "metadata": {"requester_metadata": None},
            **more,
        }

    noon = {"role": "assistant", "content": "Noon."}
    failed: dict[str, Any] = {"status": "failure", "error_str": "RateLimitError: slow down", "response": {}}
    return [
        payload("one", 1772359201.0, CHAT, CALLED),
        payload("two", 1772359203.0, [*CHAT, CALLED, NOON], None, **failed),
        payload("three", 1772359205.0, [*CHAT, CALLED, NOON], noon),
        {**payload("four", 1772359206.0, "words", None), "call_type": "aembedding"},
    ]
