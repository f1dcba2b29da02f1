"""What is recorded is what is sent: the bodies that providers receive, whole."""

from typing import Any

import pytest

from models.talking import HI, KEY, READ, anthropic_models, google_models, listen, message, openai_models
from windowpane.context.messages import ToolCall
from windowpane.context.request import CallSettings, ReplyOptions, ResponseFormat
from windowpane.errors import ModelRejectedError
from wire import anthropic_messages, google_gemini, openai_chat, openai_responses
from wire.reply import WireReply
from wire.server import running

OK = WireReply(("ok",))

ONE_TURN = (
    message("system", "You are a careful reader.\n"),
    message("system", "# Rules\n\n## tone\n\nBe brief."),
    message("user", "  Earlier question\t"),
    message("assistant", "Earlier answer\n"),
    message("user", "[[context 1f]]\n# References\n[[end 1f]]"),
    message("user", "Read a.txt and b.txt\n\n    please"),
    message(
        "assistant",
        "I will.",
        ToolCall("call_1", "files_read", '{"path": "a.txt"}'),
        ToolCall("call_2", "files_read", '{"path": "b'),
    ),
    message("tool", " contents of a ", call_id="call_1"),
    message("tool", "not JSON", call_id="call_2"),
)
"""A request in the one prompt order, in the middle of its turn."""

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


@pytest.mark.spec("S1.24")
async def test_a_compatible_server_gets_one_system_message_and_roles_that_alternate_byte_for_byte() -> None:
    async with running(openai_chat.answer(OK)) as wire, openai_models(wire.url) as models:
        model = models.open("openai:gpt-4o")

        await listen(model, ONE_TURN, [READ], CallSettings(model=model.name, temperature=0.5, max_output_tokens=100))

    assert [(asked.method, asked.path) for asked in wire.asked] == [("POST", "/v1/chat/completions")]
    assert wire.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert wire.asked[0].body == {
        "model": "gpt-4o",
        "messages": [
            {"role": "system", "content": "You are a careful reader.\n\n\n# Rules\n\n## tone\n\nBe brief."},
            {"role": "user", "content": "  Earlier question\t"},
            {"role": "assistant", "content": "Earlier answer\n"},
            {
                "role": "user",
                "content": "[[context 1f]]\n# References\n[[end 1f]]\n\nRead a.txt and b.txt\n\n    please",
            },
            {
                "role": "assistant",
                "content": "I will.",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "files_read", "arguments": '{"path":"a.txt"}'},
                    },
                    {
                        "id": "call_2",
                        "type": "function",
                        "function": {"name": "files_read", "arguments": '{"INVALID_JSON":"{\\"path\\": \\"b"}'},
                    },
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": " contents of a "},
            {"role": "tool", "tool_call_id": "call_2", "content": "not JSON"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "files_read", "description": "Reads a file.", "parameters": SCHEMA},
            }
        ],
        "tool_choice": "auto",
        "temperature": 0.5,
        "max_completion_tokens": 100,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.spec("S1.24")
async def test_anthropic_gets_the_system_messages_apart_and_each_user_message_as_its_own_block() -> None:
    async with running(anthropic_messages.answer(OK)) as wire, anthropic_models(wire.url) as models:
        model = models.open("anthropic:claude-opus-4-6")

        await listen(model, ONE_TURN, [READ], CallSettings(model=model.name, top_p=0.9, max_output_tokens=100))

    cached = {"type": "ephemeral", "ttl": "5m"}
    assert [(asked.method, asked.path) for asked in wire.asked] == [("POST", "/v1/messages")]
    assert wire.asked[0].body == {
        "model": "claude-opus-4-6",
        "max_tokens": 100,
        "top_p": 0.9,
        "stream": True,
        "cache_control": cached,
        "system": [
            {
                "type": "text",
                "text": "You are a careful reader.\n\n\n# Rules\n\n## tone\n\nBe brief.",
                "cache_control": cached,
            }
        ],
        "messages": [
            {"role": "user", "content": [_text("  Earlier question\t")]},
            {"role": "assistant", "content": [_text("Earlier answer\n")]},
            {
                "role": "user",
                "content": [
                    _text("[[context 1f]]\n# References\n[[end 1f]]"),
                    _text("Read a.txt and b.txt\n\n    please"),
                ],
            },
            {
                "role": "assistant",
                "content": [
                    _text("I will."),
                    {"type": "tool_use", "id": "call_1", "name": "files_read", "input": {"path": "a.txt"}},
                    {
                        "type": "tool_use",
                        "id": "call_2",
                        "name": "files_read",
                        "input": {"INVALID_JSON": '{"path": "b'},
                    },
                ],
            },
            {
                "role": "user",
                "content": [_result("call_1", " contents of a "), _result("call_2", "not JSON")],
            },
        ],
        "tools": [
            {"name": "files_read", "description": "Reads a file.", "input_schema": SCHEMA, "cache_control": cached}
        ],
        "tool_choice": {"type": "auto"},
    }


@pytest.mark.spec("S1.24")
async def test_the_responses_protocol_gets_the_same_order() -> None:
    async with running(openai_responses.answer(OK)) as wire, openai_models(wire.url) as models:
        await listen(models.open("openai-responses:gpt-5"), ONE_TURN, [READ])

    body = wire.asked[0].body
    assert wire.asked[0].path == "/v1/responses"
    assert body["input"] == [
        {"role": "system", "content": "You are a careful reader.\n\n\n# Rules\n\n## tone\n\nBe brief."},
        {"role": "user", "content": "  Earlier question\t"},
        {"role": "assistant", "content": "Earlier answer\n"},
        {"role": "user", "content": "[[context 1f]]\n# References\n[[end 1f]]"},
        {"role": "user", "content": "Read a.txt and b.txt\n\n    please"},
        {"role": "assistant", "content": "I will."},
        {"type": "function_call", "call_id": "call_1", "name": "files_read", "arguments": '{"path":"a.txt"}'},
        {
            "type": "function_call",
            "call_id": "call_2",
            "name": "files_read",
            "arguments": '{"INVALID_JSON":"{\\"path\\": \\"b"}',
        },
        {"type": "function_call_output", "call_id": "call_1", "output": " contents of a "},
        {"type": "function_call_output", "call_id": "call_2", "output": "not JSON"},
    ]
    assert [tool["name"] for tool in body["tools"]] == ["files_read"]
    assert [tool["parameters"] for tool in body["tools"]] == [SCHEMA]


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")  # compiling google-genai
@pytest.mark.spec("S1.24")
async def test_google_gets_the_same_order() -> None:
    async with running(google_gemini.answer(OK)) as wire, google_models(wire.url) as models:
        await listen(models.open("google:gemini-2.5-flash"), ONE_TURN, [READ])

    body = wire.asked[0].body
    assert wire.asked[0].headers["x-goog-api-key"] == KEY
    assert [part["text"] for part in body["systemInstruction"]["parts"]] == [
        "You are a careful reader.\n\n\n# Rules\n\n## tone\n\nBe brief."
    ]
    assert [(turn["role"], [_google_part(part) for part in turn["parts"]]) for turn in body["contents"]] == [
        ("user", ["  Earlier question\t"]),
        ("model", ["Earlier answer\n"]),
        ("user", ["[[context 1f]]\n# References\n[[end 1f]]", "Read a.txt and b.txt\n\n    please"]),
        ("model", ["I will.", {"path": "a.txt"}, {"INVALID_JSON": '{"path": "b'}]),
        ("user", [" contents of a ", "not JSON"]),
    ]
    assert body["tools"] == [
        {
            "functionDeclarations": [
                {"name": "files_read", "description": "Reads a file.", "parameters_json_schema": SCHEMA}
            ]
        }
    ]


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")  # compiling google-genai
async def test_google_is_held_to_a_tool_and_to_a_schema_and_to_any_json_only_without_tools() -> None:
    name = "google:gemini-2.5-flash"
    forced = CallSettings(model=name, reply_options=ReplyOptions(must_call=(READ.ref,)))
    formed = CallSettings(model=name, reply_options=ReplyOptions(response_format=ResponseFormat(schema=SCHEMA)))
    free = CallSettings(model=name, reply_options=ReplyOptions(response_format=ResponseFormat()))
    answers = [google_gemini.answer(OK)] * 3
    async with running(*answers) as wire, google_models(wire.url) as models:
        model = models.open(name)
        await listen(model, HI, [READ], forced)
        await listen(model, HI, [], formed)
        await listen(model, HI, [], free)
        with pytest.raises(ModelRejectedError, match="does not support JSON without a schema while it has tools"):
            await listen(model, HI, [READ], free)

    calling = wire.asked[0].body["toolConfig"]["functionCallingConfig"]
    configs = [asked.body["generationConfig"] for asked in wire.asked[1:]]
    assert calling == {"mode": "ANY"}
    assert configs[0]["responseJsonSchema"] == SCHEMA
    assert [config["responseMimeType"] for config in configs] == ["application/json"] * 2


async def test_a_request_without_tools_and_settings_sends_none() -> None:
    async with running(openai_chat.answer(OK)) as wire, openai_models(wire.url) as models:
        await listen(models.open("openai:gpt-4o"), HI)

    assert wire.asked[0].body == {
        "model": "gpt-4o",
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize("empty", ["", " \n\t"])
async def test_an_assistant_message_without_visible_text_is_not_sent(empty: str) -> None:
    messages = (message("user", "One"), message("assistant", empty), message("user", "Two"))
    async with running(openai_chat.answer(OK)) as wire, openai_models(wire.url) as models:
        await listen(models.open("openai:gpt-4o"), messages)

    assert wire.asked[0].body["messages"] == [{"role": "user", "content": "One"}, {"role": "user", "content": "Two"}]


async def test_an_empty_text_before_a_tool_call_is_left_out_and_an_empty_result_says_so() -> None:
    messages = (
        message("user", "Read"),
        message("assistant", "", ToolCall("call_1", "files_read", "{}")),
        message("tool", "", call_id="call_1"),
    )
    async with running(anthropic_messages.answer(OK)) as wire, anthropic_models(wire.url) as models:
        await listen(models.open("anthropic:claude-opus-4-6"), messages, [READ])

    assert wire.asked[0].body["messages"] == [
        {"role": "user", "content": [_text("Read")]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "files_read", "input": {}}]},
        {"role": "user", "content": [_result("call_1", "(no output)")]},
    ]


async def test_unicode_arrives_as_it_was_and_a_lone_surrogate_as_the_replacement_character() -> None:
    text = "naïve 日本語 🧵‍ \u202eabc\u0000 \ud83d"
    async with running(openai_chat.answer(OK)) as wire, openai_models(wire.url) as models:
        await listen(models.open("openai:gpt-4o"), (message("user", text),))

    assert wire.asked[0].body["messages"] == [{"role": "user", "content": "naïve 日本語 🧵‍ \u202eabc\u0000 \ufffd"}]


async def test_thinking_mode_asks_the_provider_to_think() -> None:
    answers = [anthropic_messages.answer(OK)] * 2
    async with running(*answers) as wire, anthropic_models(wire.url) as models:
        model = models.open("anthropic:claude-haiku-4-5")
        await listen(model, chosen=CallSettings(model=model.name, mode="thinking"))
        await listen(model, chosen=CallSettings(model=model.name, mode="research"))

    assert wire.asked[0].body["thinking"]["type"] == "enabled"
    assert "thinking" not in wire.asked[1].body


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _result(call_id: str, content: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": [_text(content)], "is_error": False}


def _google_part(part: dict[str, Any]) -> object:
    if "functionCall" in part:
        return part["functionCall"]["args"]
    if "functionResponse" in part:
        return part["functionResponse"]["response"]["return_value"]
    return part["text"]
