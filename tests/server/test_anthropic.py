"""Messages with Anthropic's own Python client, unchanged."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from anthropic.types import MessageParam, ToolParam
from openai.types.chat import ChatCompletionMessageParam
from pydantic import BaseModel

from server.place import new_session, served
from windowpane.callers import TokenFile
from windowpane.context.messages import Usage
from windowpane.errors import ModelRateLimitedError
from windowpane.models.scripted import Call, Reply
from windowpane.testing import World, tool
from wire import openai_chat
from wire.reply import WireCall, WireReply
from wire.server import running

HI: list[MessageParam] = [{"role": "user", "content": "Hi"}]
WEATHER: ToolParam = {
    "name": "weather",
    "description": "Tells the weather.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}
ASKS = Reply("Let me see.", calls=(Call("client__weather", '{"city": "Oslo"}', id="c1"),), usage=Usage(10, 5))


@asynccontextmanager
async def asking(
    world: World, key: str = "any", **options: Any
) -> AsyncGenerator[tuple[anthropic.AsyncAnthropic, httpx2.AsyncClient]]:
    async with (
        served(world, **options) as http,
        anthropic.AsyncAnthropic(base_url=f"{http.base_url}/anthropic", api_key=key, max_retries=0) as client,
    ):
        yield client, http


@pytest.mark.client("Anthropic for Python", "chat", "streaming")
async def test_a_message_is_answered_and_recorded(world: World) -> None:
    world.says(Reply("It is 4.", usage=Usage(120, 5, cache_read_tokens=100)))
    async with asking(world) as (client, http):
        answer = await client.messages.with_raw_response.create(
            model="pane",
            max_tokens=300,
            system=[{"type": "text", "text": "Answer in English."}],
            messages=[
                {"role": "user", "content": "1 + 1?"},
                {"role": "assistant", "content": [{"type": "text", "text": "2."}]},
                {"role": "user", "content": "And 2 + 2?"},
            ],
            stop_sequences=["4"],
            extra_body={"top_k": 3, "service": "fast"},
        )
        session, turn = answer.headers["windowpane-session"], answer.headers["windowpane-turn"]
        context = (await http.get(f"/api/sessions/{session}/turns/{turn}/context")).json()
        models = await client.models.list()

    message = await answer.parse()
    assert message.to_dict() == {
        "id": message.id,
        "type": "message",
        "role": "assistant",
        "model": "pane",
        "content": [{"type": "text", "text": "It is "}],
        "stop_reason": "stop_sequence",
        "stop_sequence": "4",
        "usage": message.usage.to_dict(),
    }
    assert answer.headers["windowpane-ignored"] == "service"
    received = world.model.calls[0]
    told = [(m.role, m.content) for m in received.messages if m.part in ("override", "history", "message")]
    assert told == [
        ("system", "Answer in English."),
        ("user", "1 + 1?"),
        ("assistant", "2."),
        ("user", "And 2 + 2?"),
    ]
    assert (received.settings.max_output_tokens, context["settings"]["reply_options"]["sampling"]) == (
        300,
        {"top_k": 3},
    )
    assert [model.id for model in models.data] == ["pane"]


@pytest.mark.client("Anthropic for Python", "tools")
@pytest.mark.parametrize("named", [True, False], ids=["in a session", "without one"])
async def test_tools_of_the_client_are_called_and_the_turn_goes_on(world: World, named: bool) -> None:
    world.says(ASKS, Reply("It rains.", usage=Usage(20, 6, cache_read_tokens=4)))
    async with asking(world) as (client, http):
        headers = {"Windowpane-Session": await new_session(http)} if named else {}
        async with client.messages.stream(
            model="pane", max_tokens=300, messages=HI, tools=[WEATHER], extra_headers=headers
        ) as stream:
            events = [event.type async for event in stream]
            first = await stream.get_final_message()
        call = first.content[1]
        assert call.type == "tool_use"
        result: Any = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "rain"}]}
        last = await client.messages.create(
            model="pane",
            max_tokens=300,
            messages=[*HI, {"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}],
            tools=[WEATHER],
            extra_headers=headers,
        )

    assert events[0] == "message_start"
    assert events[-1] == "message_stop"
    assert (first.stop_reason, call.name, call.input) == ("tool_use", "weather", {"city": "Oslo"})
    assert first.content[0].to_dict() == {"type": "text", "text": "Let me see."}
    assert (first.usage.input_tokens, first.usage.output_tokens) == (10, 5)
    assert (last.stop_reason, [block.to_dict() for block in last.content]) == (
        "end_turn",
        [{"type": "text", "text": "It rains."}],
    )
    assert (last.usage.input_tokens, last.usage.cache_read_input_tokens) == (16, 4)
    assert [(m.role, m.content) for m in world.model.calls[1].messages[-1:]] == [("tool", "rain")]


async def test_a_tools_error_stays_one_where_its_turn_is_rebuilt_from_the_messages(world: World) -> None:
    world.says("Then not.")
    call: Any = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}}
    result: Any = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "no such city", "is_error": True}
    async with asking(world) as (client, http):
        answer = await client.messages.with_raw_response.create(
            model="pane",
            max_tokens=300,
            messages=[*HI, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}],
            tools=[WEATHER],
        )
        messages = (await http.get(f"/api/sessions/{answer.headers['windowpane-session']}/messages")).json()["messages"]

    (given,) = messages[-1]["model_reply"]["steps"][0]["results"]
    assert (given["content"], given["is_error"]) == ("no such city", True)


@pytest.mark.client("Anthropic for Python", "tools")
async def test_a_tool_that_the_client_forces_is_forced_at_the_provider(world: World) -> None:
    async with running(openai_chat.answer(WireReply(calls=(WireCall("c1", "client__weather"),)))) as wire:
        world.environ = {"OPENAI_BASE_URL": f"{wire.url}/v1", "OPENAI_API_KEY": "key"}
        world.write("agent.yaml", "model: openai:gpt-4o\n")
        world.toolbox.put("files", [tool("read", "contents")])
        async with asking(world) as (client, _):
            answer = await client.messages.create(
                model="pane",
                max_tokens=99,
                messages=HI,
                tools=[WEATHER],
                tool_choice={"type": "tool", "name": "weather"},
            )

    assert [(block.type, block.to_dict().get("name")) for block in answer.content] == [("tool_use", "weather")]
    assert wire.asked[0].body["tool_choice"] == {"type": "function", "function": {"name": "client__weather"}}


async def test_tokens_are_counted_without_a_turn(world: World) -> None:
    async with asking(world) as (client, http):
        bare = await client.messages.count_tokens(model="pane", messages=HI)
        more = await client.messages.count_tokens(model="pane", messages=HI, system="Be brief.", tools=[WEATHER])
        with pytest.raises(anthropic.BadRequestError, match="no message to count"):
            await client.messages.count_tokens(model="pane", messages=[{"role": "system", "content": "Be brief."}])
        listed = (await http.get("/api/sessions")).json()["sessions"]

    assert 0 < bare.input_tokens < more.input_tokens
    assert (world.model.calls, listed) == ([], [])


@pytest.mark.client("Anthropic for Python", "errors")
async def test_failures_have_anthropics_form_also_before_a_stream(world: World, tmp_path: Path) -> None:
    slow = Reply("", error=ModelRateLimitedError("the provider is busy", retry_after_s=7))
    world.says(slow, slow)
    async with asking(world) as (client, http):
        with pytest.raises(anthropic.NotFoundError, match="no agent 'nobody'") as missing:
            await client.messages.create(model="nobody", max_tokens=9, messages=HI)
        with pytest.raises(anthropic.RateLimitError) as limited:
            await client.messages.create(model="pane", max_tokens=9, messages=HI)
        with pytest.raises(anthropic.RateLimitError):
            await client.messages.create(model="pane", max_tokens=9, messages=HI, stream=True)
        image: Any = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
        with pytest.raises(anthropic.BadRequestError, match="send the bytes as a source of type base64") as refused:
            await client.messages.create(model="pane", max_tokens=9, messages=[{"role": "user", "content": [image]}])
        nothing = await http.get("/anthropic/v1/nothing")
    tokens = TokenFile(tmp_path / "tokens.json")
    _, secret = tokens.create("ann", ["chat"])
    world.says("Hello.", "Hello.")
    async with asking(world, "wp_wrong", tokens=tokens, token_needed=True) as (client, http):
        with pytest.raises(anthropic.AuthenticationError) as unknown:
            await client.messages.create(model="pane", max_tokens=9, messages=HI)
        known = await client.with_options(api_key=secret).messages.create(model="pane", max_tokens=9, messages=HI)

    assert missing.value.body == {
        "type": "error",
        "error": {"type": "not_found_error", "message": "no agent 'nobody'; available: pane"},
    }
    assert limited.value.response.headers["retry-after"] == "7"
    assert isinstance(refused.value.body, dict)
    assert (nothing.status_code, nothing.json()["error"]["type"]) == (404, "not_found_error")
    assert isinstance(unknown.value.body, dict)
    assert known.content[0].to_dict() == {"type": "text", "text": "Hello."}


class Weather(BaseModel):
    """What an answer is to be."""

    city: str
    rain: bool


@pytest.mark.client("Anthropic for Python", "chat")
async def test_an_answer_follows_the_schema_that_a_client_sends(world: World) -> None:
    world.says('{"city": "Oslo", "rain": true}')
    text: Any = {"format": {"type": "text"}}
    async with asking(world) as (client, _):
        answer = await client.messages.parse(
            model="pane", max_tokens=99, messages=HI, output_format=Weather, output_config={"effort": "low"}
        )
        with pytest.raises(anthropic.BadRequestError, match="output_config"):
            await client.messages.create(model="pane", max_tokens=99, messages=HI, output_config=text)

    assert answer.parsed_output == Weather(city="Oslo", rain=True)
    options = world.model.calls[0].settings.reply_options
    assert options.response_format is not None
    assert options.response_format.schema is not None
    assert sorted(options.response_format.schema["properties"]) == ["city", "rain"]
    assert options.sampling == {"reasoning_effort": "low"}


async def test_a_client_with_a_wrong_base_url_is_told_the_right_one(world: World) -> None:
    openais: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hi"}]
    async with served(world) as http:
        base = str(http.base_url)
        for wrong in ("", "/v1", "/anthropic/v1"):
            async with anthropic.AsyncAnthropic(base_url=base + wrong, api_key="any", max_retries=0) as client:
                with pytest.raises(anthropic.NotFoundError, match=f"Anthropic's clients is {base}/anthropic"):
                    await client.messages.create(model="pane", max_tokens=99, messages=HI)
        for wrong in ("", "/api", "/v1/chat/completions", "/v1/v1"):
            async with openai.AsyncOpenAI(base_url=base + wrong, api_key="any", max_retries=0) as client:
                with pytest.raises(openai.NotFoundError, match=f"OpenAI's clients is {base}/v1"):
                    await client.chat.completions.create(model="pane", messages=openais)


@pytest.mark.parametrize(("arguments", "given"), [('{"city": ', '{"city": '), ("[1]", "[1]"), ("", None)])
@pytest.mark.client("Anthropic for Python", "tools")
async def test_arguments_that_are_no_object_come_inside_one(world: World, arguments: str, given: str | None) -> None:
    call = Call("client__weather", arguments, id="c1")
    world.says(Reply("", calls=(call,)), Reply("", calls=(call,)))
    common: Any = {"model": "pane", "max_tokens": 99, "messages": HI, "tools": [WEATHER]}
    async with asking(world) as (client, _):
        create: Any = client.messages.create
        whole = await create(**common)
        async with client.messages.stream(**common) as stream:
            streamed = await stream.get_final_message()

    inputs = [block.input for answer in (whole, streamed) for block in answer.content if block.type == "tool_use"]
    assert inputs == [{} if given is None else {"INVALID_JSON": given}] * 2
