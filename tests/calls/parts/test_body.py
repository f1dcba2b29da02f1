"""A body is cut into parts that cover it, in each provider's protocol, and parts add up to the call."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.api.xray import OfferedToolUse, RepeatedText, StaleResult
from windowpane.calls.parts.body import CutPart, cut
from windowpane.calls.parts.waste import repeated_texts, stale_results, tool_uses
from windowpane.calls.parts.weight import ATTACHMENT_TOKENS, PartWeights, by_kind
from windowpane.context.messages import Usage

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
READ = {"file_path": "/a.txt"}
ANTHROPIC: dict[str, Any] = {
    "model": "claude",
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": '<system-reminder>\nContents of /a/CLAUDE.md:\n"Tea" 🫖\n</system-reminder>'},
                {"type": "text", "text": "Hi?"},
                IMAGE,
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "x"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "t1", "name": "Read", "input": READ},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "42"}, IMAGE]}
            ],
        },
        {"role": "system", "content": [{"type": "text", "text": "# Environment\nMoon."}]},
    ],
    "system": [{"type": "text", "text": "Intro.\n# Style\nBrief."}, {"type": "text", "text": "Second."}],
    "tools": [{"name": "Read", "input_schema": {}}, {"name": "mcp__clock__now", "input_schema": {}}],
    "stream": True,
}
ANTHROPIC_PARTS = [
    ("setting", "model", ""),
    ("instructions", "/a/CLAUDE.md", '<system-reminder>\nContents of /a/CLAUDE.md:\n"Tea" 🫖\n</system-reminder>'),
    ("message", "", "Hi?"),
    ("attachment", "image", ""),
    ("thinking", "", "Hm."),
    ("reply", "", "I look."),
    ("call", "Read", 'Read {"file_path":"/a.txt"}'),
    ("result", "Read /a.txt", "42"),
    ("attachment", "Read /a.txt", ""),
    ("environment", "Environment", "# Environment\nMoon."),
    ("system", "introduction", "Intro.\n"),
    ("system", "Style", "# Style\nBrief."),
    ("system", "introduction", "Second."),
    ("tool", "Read", '{"name": "Read", "input_schema": {}}'),
    ("tool", "mcp__clock__now", '{"name": "mcp__clock__now", "input_schema": {}}'),
    ("setting", "stream", ""),
]
CHAT: dict[str, Any] = {
    "model": "gpt",
    "messages": [
        {"role": "system", "content": "You help.\n# Style\nBrief."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Hi?"}, {"type": "image_url", "image_url": {"url": "x"}}],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "/a"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "42"},
    ],
    "tools": [{"type": "function", "function": {"name": "read", "parameters": {}}}],
}
CHAT_PARTS = [
    ("setting", "model", ""),
    ("system", "introduction", "You help.\n"),
    ("system", "Style", "# Style\nBrief."),
    ("message", "", "Hi?"),
    ("attachment", "image_url", ""),
    ("call", "read", 'read {"path": "/a"}'),
    ("result", "read /a", "42"),
    ("tool", "read", '{"type": "function", "function": {"name": "read", "parameters": {}}}'),
]
RESPONSES: dict[str, Any] = {
    "model": "gpt",
    "instructions": "You help.",
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "# Tools\nUse them."}]},
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "Hi?"}, {"type": "input_image"}],
        },
        {"type": "reasoning", "summary": [], "encrypted_content": "abc"},
        {"type": "function_call", "call_id": "c1", "name": "exec", "arguments": '{"cmd": ["cat", "a"]}'},
        {"type": "function_call_output", "call_id": "c1", "output": "42"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "It is 42."}]},
    ],
    "tools": [{"type": "namespace", "name": "crew", "tools": [{"type": "function", "name": "call"}]}, {"type": "web"}],
    "prompt_cache_key": "x",
}
RESPONSES_PARTS = [
    ("setting", "model", ""),
    ("system", "introduction", "You help."),
    ("system", "Tools", "# Tools\nUse them."),
    ("message", "", "Hi?"),
    ("attachment", "input_image", ""),
    ("thinking", "", "abc"),
    ("call", "exec", 'exec {"cmd": ["cat", "a"]}'),
    ("result", "exec cat a", "42"),
    ("reply", "", "It is 42."),
    ("tool", "crew.call", '{"type": "function", "name": "call"}'),
    ("tool", "web", '{"type": "web"}'),
    ("setting", "prompt_cache_key", ""),
]
GOOGLE: dict[str, Any] = {
    "contents": [
        {"role": "user", "parts": [{"text": "Hi?"}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}}]},
        {
            "role": "model",
            "parts": [{"text": "Hm.", "thought": True}, {"functionCall": {"name": "read", "args": READ}}],
        },
        {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "42"}}}]},
    ],
    "systemInstruction": {"parts": [{"text": "You help."}]},
    "tools": [{"functionDeclarations": [{"name": "read"}, {"name": "write"}]}],
}
GOOGLE_PARTS = [
    ("message", "", "Hi?"),
    ("attachment", "file", ""),
    ("thinking", "", "Hm."),
    ("call", "read", 'read {"file_path":"/a.txt"}'),
    ("result", "read /a.txt", '{"output":"42"}'),
    ("system", "introduction", "You help."),
    ("tool", "read", '{"name": "read"}'),
    ("tool", "write", '{"name": "write"}'),
]
OLLAMA: dict[str, Any] = {
    "model": "llama",
    "messages": [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "Hi?", "images": ["aGk="]},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "read", "arguments": READ}}]},
        {"role": "tool", "tool_name": "read", "content": "42"},
    ],
    "tools": [{"type": "function", "function": {"name": "read"}}],
}
OLLAMA_PARTS = [
    ("setting", "model", ""),
    ("system", "introduction", "You help."),
    ("message", "", "Hi?"),
    ("attachment", "image", ""),
    ("reply", "", ""),
    ("call", "read", 'read {"file_path":"/a.txt"}'),
    ("result", "read /a.txt", "42"),
    ("tool", "read", '{"type": "function", "function": {"name": "read"}}'),
]
BODIES: list[tuple[dict[str, Any], list[tuple[str, str, str]]]] = [
    (ANTHROPIC, ANTHROPIC_PARTS),
    (CHAT, CHAT_PARTS),
    (RESPONSES, RESPONSES_PARTS),
    (GOOGLE, GOOGLE_PARTS),
    (OLLAMA, OLLAMA_PARTS),
    ({"prompt": "Why?", "system": "S"}, [("message", "", "Why?"), ("system", "introduction", "S")]),
]


def assert_covered(body: str, parts: tuple[CutPart, ...]) -> None:
    assert "".join(body[part.start : part.end] for part in parts) == body
    assert all(part.start < part.end for part in parts)


@pytest.mark.parametrize(
    ("document", "expected"), BODIES, ids=("anthropic", "chat", "responses", "google", "ollama", "generate")
)
@pytest.mark.parametrize("escaped", [True, False])
def test_the_parts_of_a_body_are_told_and_cover_it(
    document: dict[str, Any], expected: list[tuple[str, str, str]], *, escaped: bool
) -> None:
    body = json.dumps(document, ensure_ascii=escaped)

    parts = cut(body)

    assert [(part.kind, part.name, part.text) for part in parts] == expected
    assert_covered(body, parts)


def test_a_section_begins_at_the_same_characters_in_the_body_where_they_are_escaped() -> None:
    body = json.dumps({"system": 'A "\t🫖\n# Second\nB\n# Third\nC'})

    parts = cut(body)

    assert [body[part.start : part.end] for part in parts] == [
        '{"system": "A \\"\\t\\ud83e\\uded6\\n',
        "# Second\\nB\\n",
        '# Third\\nC"}',
    ]


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("role", "content", "type", "text", "name", "parts", "input", "output")), inner
        )
    ),
    max_leaves=12,
)
FIELDS = st.sampled_from(("system", "messages", "input", "contents", "tools", "prompt", "instructions", "other"))


@given(st.dictionaries(FIELDS, VALUES, max_size=5), st.integers(0, 10**6), st.integers(0, 10**6), st.booleans())
def test_parts_cover_any_body_and_their_tokens_add_up_to_what_the_provider_counted(
    document: dict[str, Any], plain: int, read: int, escaped: bool
) -> None:
    body = json.dumps(document, ensure_ascii=escaped)
    usage = Usage(input_tokens=plain + read, cache_read_tokens=read)

    def price(used: Usage) -> Decimal:
        return Decimal(used.input_tokens - used.cache_read_tokens) * 10 + used.cache_read_tokens

    parts = cut(body)
    weighed = PartWeights().weigh(body, parts, usage, price)

    assert_covered(body, parts)
    assert sum(part.bytes for part in weighed) == len(body.encode())
    if usage.input_tokens:
        assert sum(part.tokens for part in weighed) == usage.input_tokens
        assert sum(part.cost_usd or 0 for part in weighed) == plain * 10 + read
    assert sum(share.tokens for share in by_kind(weighed)) == sum(part.tokens for part in weighed)


def test_what_was_read_from_the_cache_is_what_the_provider_reads_first() -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "one two three"}], "tools": [{"name": "clock"}]})
    rates = {"read": 1, "written": 20, "plain": 10}

    def price(used: Usage) -> Decimal:
        plain = used.input_tokens - used.cache_read_tokens - used.cache_write_tokens
        counted = {"read": used.cache_read_tokens, "written": used.cache_write_tokens, "plain": plain}
        return Decimal(sum(counted[name] * rate for name, rate in rates.items()))

    own = PartWeights().weigh(body, cut(body), None, price)
    message, tool = (part.tokens for part in own)
    usage = Usage(input_tokens=message + tool, cache_read_tokens=tool, cache_write_tokens=1)
    weighed = PartWeights().weigh(body, cut(body), usage, price)

    assert [part.cost_usd for part in own] == [None, None]
    assert [part.cost_usd for part in weighed] == [20 + (message - 1) * 10, tool]


def test_a_picture_is_not_counted_by_the_letters_that_it_is_written_in() -> None:
    body = json.dumps({"messages": [{"role": "user", "content": [IMAGE]}]})

    (part,) = PartWeights().weigh(body, cut(body), None, lambda used: None)

    assert (part.kind, part.tokens) == ("attachment", ATTACHMENT_TOKENS)


def _reading(*calls: tuple[str, str, dict[str, Any], str]) -> str:
    messages: list[dict[str, Any]] = []
    for id_, name, arguments, result in calls:
        messages += [
            {"role": "assistant", "content": [{"type": "tool_use", "id": id_, "name": name, "input": arguments}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id_, "content": result}]},
        ]
    return json.dumps({"messages": messages, "tools": [{"name": "Read"}, {"name": "mcp__clock__now"}]})


def test_old_results_repeated_texts_and_unused_tools_are_told_with_their_tokens() -> None:
    long = "the same words again and again " * 10
    body = _reading(
        ("1", "Read", {"file_path": "/a"}, "old words"),
        ("2", "Read", {"file_path": "/a"}, "old words too"),
        ("3", "Read", {"file_path": "/a", "offset": 9}, "another place"),
        ("4", "Write", {"file_path": "/a", "content": "x"}, "done"),
        ("5", "Write", {"file_path": "/a", "content": "x"}, "done"),
        ("6", "Bash", {"command": "ls"}, long),
        ("7", "Grep", {"pattern": "x"}, long),
        ("8", "Read", {"file_path": "/a"}, "new words"),
    )
    parts = cut(body)
    weighed = list(zip(parts, PartWeights().weigh(body, parts, None, lambda used: None), strict=True))
    tokens = {part.text: told.tokens for part, told in weighed}
    sizes = {part.name: (told.bytes, told.tokens) for part, told in weighed if part.kind == "tool"}

    assert stale_results(weighed) == (
        StaleResult(tool="Read", subject="/a", reads=3, tokens=tokens["old words"] + tokens["old words too"]),
    )
    assert repeated_texts(weighed) == (RepeatedText(kind="result", name="Bash ls", copies=2, tokens=tokens[long]),)
    assert tool_uses(weighed, ["Read", "Read"], {"Read": 90}) == (
        OfferedToolUse(
            name="mcp__clock__now",
            server="clock",
            bytes=sizes["mcp__clock__now"][0],
            tokens=sizes["mcp__clock__now"][1],
            session_tokens=sizes["mcp__clock__now"][1],
            calls=0,
        ),
        OfferedToolUse(
            name="Read", server="", bytes=sizes["Read"][0], tokens=sizes["Read"][1], session_tokens=90, calls=2
        ),
    )


@pytest.mark.parametrize("body", ["", "not JSON", "[1]", "{}", "7"])
def test_a_body_that_is_no_request_is_one_part_or_none(body: str) -> None:
    parts = cut(body)

    assert_covered(body, parts)
    assert [part.kind for part in parts] == ["setting"] * bool(body)
