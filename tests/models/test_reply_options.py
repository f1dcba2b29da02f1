"""What is demanded of an answer, as each provider is asked for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from models.talking import HI, READ, anthropic_models, listen, openai_models
from windowpane.context.items import tool_ref
from windowpane.context.request import CallSettings, OfferedTool, ReplyOptions, ResponseFormat
from windowpane.errors import ModelRejectedError
from windowpane.models.provider import PydanticModels
from wire import anthropic_messages, openai_chat, openai_responses
from wire.reply import WireReply
from wire.server import Answer, running

WRITE = replace(READ, offered_name="files_write", ref=tool_ref("files", "write"))
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
FORM = ResponseFormat(schema=SCHEMA, name="Place", strict=True)
ANY = ResponseFormat()
SAID = WireReply(('{"city": "Oslo"}',))

Wire = tuple[Callable[[str], PydanticModels], str, Callable[[WireReply], Answer]]
CHAT: Wire = (openai_models, "openai-chat:gpt-4o", openai_chat.answer)
RESPONSES: Wire = (openai_models, "openai-responses:gpt-4o", openai_responses.answer)
ANTHROPIC: Wire = (anthropic_models, "anthropic:claude-opus-4-6", anthropic_messages.answer)


async def asked(wire: Wire, reply_options: ReplyOptions, *tools: OfferedTool) -> Any:
    """Return what reached the provider."""
    models, name, answer = wire
    async with running(answer(SAID)) as server, models(server.url) as opened:
        await listen(opened.open(name), HI, tools, CallSettings(model=name, reply_options=reply_options))
    return server.asked[0].body


@pytest.mark.parametrize(
    ("wire", "field", "reached"),
    [
        (CHAT, "tool_choice", {"type": "function", "function": {"name": "files_read"}}),
        (RESPONSES, "tool_choice", {"type": "function", "name": "files_read"}),
        (ANTHROPIC, "tool_choice", {"type": "tool", "name": "files_read"}),
    ],
    ids=["chat", "responses", "anthropic"],
)
async def test_a_tool_that_must_be_called_is_the_only_one_that_can_be(wire: Wire, field: str, reached: Any) -> None:
    body = await asked(wire, ReplyOptions(must_call=(READ.ref,)), READ, WRITE)

    assert body[field] == reached


@pytest.mark.parametrize(
    ("wire", "place"),
    [
        (CHAT, ("response_format", "json_schema")),
        (RESPONSES, ("text", "format")),
        (ANTHROPIC, ("output_config", "format")),
    ],
    ids=["chat", "responses", "anthropic"],
)
async def test_a_schema_reaches_the_provider(wire: Wire, place: tuple[str, str]) -> None:
    body = await asked(wire, ReplyOptions(response_format=FORM))

    assert body[place[0]][place[1]]["schema"] == SCHEMA


@pytest.mark.parametrize(
    ("wire", "reply_options", "tools", "why"),
    [
        (ANTHROPIC, ReplyOptions(response_format=ANY), (), "does not support JSON without a schema; give it a schema"),
        (
            CHAT,
            ReplyOptions(must_call=(WRITE.ref,)),
            (READ,),
            "must call files:write, which did not fit",
        ),
    ],
    ids=["anthropic", "no such tool"],
)
async def test_what_a_model_cannot_be_held_to_is_refused(
    wire: Wire, reply_options: ReplyOptions, tools: tuple[OfferedTool, ...], why: str
) -> None:
    with pytest.raises(ModelRejectedError, match=why):
        await asked(wire, reply_options, *tools)
