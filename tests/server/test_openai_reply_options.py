"""What OpenAI's own Python client asks of an answer reaches the model's provider, and stands in the record."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletionToolParam
from pydantic import BaseModel

from server.place import served
from windowpane.models.scripted import Call, Reply
from windowpane.testing import World, tool
from wire import openai_chat
from wire.reply import WireCall, WireReply
from wire.server import WireServer, running

FUNCTIONS: list[ChatCompletionToolParam] = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("weather", "clock")
]
HI: list[Any] = [{"role": "user", "content": "Weather in Oslo, as JSON?"}]
SAID = openai_chat.answer(WireReply(('{"city": ', '"Oslo", "degrees": 12}')))
CALLS = openai_chat.answer(WireReply(calls=(WireCall("c1", "client__weather"),)))


PLAIN: dict[str, Any] = {"stop": [], "sampling": {}}


class Weather(BaseModel):
    city: str
    degrees: int


@asynccontextmanager
async def asking(world: World) -> AsyncGenerator[tuple[openai.AsyncOpenAI, httpx2.AsyncClient, WireServer]]:
    """An agent with a tool of its own, whose model's provider is on the wire."""
    world.toolbox.put("files", [tool("read", "contents", permission="not_required")])
    async with running() as wire:
        world.environ = {"OPENAI_BASE_URL": f"{wire.url}/v1", "OPENAI_API_KEY": "key"}
        world.write("agent.yaml", "model: openai:gpt-4o\nworking_context: false\n")
        async with (
            served(world) as http,
            openai.AsyncOpenAI(base_url=f"{http.base_url}/v1", api_key="any", max_retries=0) as client,
        ):
            yield client, http, wire


async def reply_options_of(http: httpx2.AsyncClient, headers: Any) -> Any:
    session, turn = headers["windowpane-session"], headers["windowpane-turn"]
    context = await http.get(f"/api/sessions/{session}/turns/{turn}/context")
    return context.json()["settings"]["reply_options"]


def _result_of(message: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "12 degrees"}


NAMED = {"type": "function", "function": {"name": "client__weather"}}
ALLOWED = {
    "type": "allowed_tools",
    "allowed_tools": {
        "mode": "required",
        "tools": [{"type": "function", "function": {"name": "client__clock"}}, NAMED],
    },
}


@pytest.mark.parametrize(
    ("choice", "reached", "must_call"),
    [
        ({"type": "function", "function": {"name": "weather"}}, NAMED, ["weather"]),
        ("required", ALLOWED, ["weather", "clock"]),
    ],
    ids=["one function", "any function"],
)
async def test_a_forced_function_is_forced_at_the_provider_with_each_request_that_says_so(
    world: World, choice: Any, reached: Any, must_call: list[str]
) -> None:
    async with asking(world) as (client, http, wire):
        wire.add(CALLS, CALLS, SAID)
        first = await client.chat.completions.with_raw_response.create(
            model="pane", messages=HI, tools=FUNCTIONS, tool_choice=choice
        )
        message = first.parse().choices[0].message
        calls = message.tool_calls or []
        told: list[Any] = [*HI, message.to_dict(), _result_of(message)]
        again = await client.chat.completions.create(model="pane", messages=told, tools=FUNCTIONS, tool_choice=choice)
        told += [again.choices[0].message.to_dict(), _result_of(again.choices[0].message)]
        last = await client.chat.completions.create(model="pane", messages=told, tools=FUNCTIONS)
        recorded = await reply_options_of(http, first.headers)

    assert [asked.body["tool_choice"] for asked in wire.asked] == [reached, reached, "auto"]
    assert [offer["function"]["name"] for offer in wire.asked[0].body["tools"]] == [
        "client__clock",
        "client__weather",
        "files__read",
    ]
    assert [call.to_dict()["function"] for call in calls] == [{"name": "weather", "arguments": "{}"}]
    assert again.choices[0].finish_reason == "tool_calls"
    assert last.choices[0].message.content == '{"city": "Oslo", "degrees": 12}'
    assert recorded == {
        "must_call": [{"type": "tool", "name": name, "server": "client"} for name in must_call],
        "response_format": None,
        **PLAIN,
    }


async def test_a_function_is_forced_in_a_conversation_that_began_elsewhere(world: World) -> None:
    call = {"id": "theirs", "type": "function", "function": {"name": "clock", "arguments": "{}"}}
    told: list[Any] = [
        *HI,
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "theirs", "content": "noon"},
    ]
    async with asking(world) as (client, _, wire):
        wire.add(CALLS)
        answer = await client.chat.completions.create(
            model="pane", messages=told, tools=FUNCTIONS, tool_choice="required"
        )

    assert [asked.body["tool_choice"] for asked in wire.asked] == [ALLOWED]
    assert answer.choices[0].finish_reason == "tool_calls"


async def test_an_answer_is_held_to_a_schema_by_the_provider(world: World) -> None:
    async with asking(world) as (client, http, wire):
        wire.add(SAID, SAID, SAID)
        chat = await client.chat.completions.parse(model="pane", messages=HI, response_format=Weather)
        response = await client.responses.with_raw_response.parse(
            model="pane", input="Weather in Oslo?", text_format=Weather
        )
        async with client.chat.completions.stream(model="pane", messages=HI, response_format=Weather) as stream:
            streamed = await stream.get_final_completion()
        recorded = await reply_options_of(http, response.headers)

    expected = Weather(city="Oslo", degrees=12)
    assert chat.choices[0].message.parsed == expected
    assert response.parse().output_parsed == expected
    assert streamed.choices[0].message.parsed == expected
    schema = Weather.model_json_schema() | {"additionalProperties": False}
    reached = [asked.body["response_format"]["json_schema"] for asked in wire.asked]
    assert [(form["name"], form["strict"], form["schema"]["required"]) for form in reached] == [
        ("Weather", True, ["city", "degrees"])
    ] * 3
    assert recorded == {
        "must_call": [],
        "response_format": {"name": "Weather", "description": "", "strict": True, "schema": schema},
        **PLAIN,
    }


async def test_an_answer_is_held_to_json_and_echoes_its_form(world: World) -> None:
    async with asking(world) as (client, http, wire):
        wire.add(SAID, SAID)
        chat = await client.chat.completions.with_raw_response.create(
            model="pane", messages=HI, response_format={"type": "json_object"}
        )
        response = await client.responses.create(
            model="pane", input="Weather in Oslo, as JSON?", text={"format": {"type": "json_object"}}
        )
        recorded = await reply_options_of(http, chat.headers)

    assert [asked.body["response_format"] for asked in wire.asked] == [{"type": "json_object"}] * 2
    assert response.text is not None
    assert response.text.to_dict() == {"format": {"type": "json_object"}}
    assert recorded == {
        "must_call": [],
        "response_format": {"name": "", "description": "", "strict": None, "schema": None},
        **PLAIN,
    }


async def test_what_is_said_between_the_agents_own_calls_is_no_part_of_a_document(world: World) -> None:
    world.toolbox.put("files", [tool("read", "contents", permission="not_required")])
    call = Call("client__weather", "{}", id="c1")
    world.says(
        Reply("I look.", calls=(Call("files__read", '{"path": "a"}', id="f1"),)), Reply(calls=(call,)), '{"a": 1}'
    )
    form: Any = {"type": "json_object"}
    async with (
        served(world) as http,
        openai.AsyncOpenAI(base_url=f"{http.base_url}/v1", api_key="any", max_retries=0) as client,
    ):
        first = await client.chat.completions.create(model="pane", messages=HI, tools=FUNCTIONS, response_format=form)
        message = first.choices[0].message
        waiting = (message.tool_calls or [])[0].id
        told: list[Any] = [*HI, message.to_dict(), {"role": "tool", "tool_call_id": waiting, "content": "12 degrees"}]
        with pytest.raises(openai.BadRequestError) as other:
            await client.chat.completions.create(model="pane", messages=told, tools=FUNCTIONS)
        last = await client.chat.completions.create(model="pane", messages=told, tools=FUNCTIONS, response_format=form)

    assert message.content is None
    assert (other.value.param, other.value.code) == ("response_format", "unsupported_value")
    assert last.choices[0].message.content == '{"a": 1}'


async def test_a_model_that_cannot_be_held_to_it_says_so(world: World) -> None:
    world.write("agent.yaml", "model: echo\nworking_context: false\n")
    unsupported: list[dict[str, Any]] = [
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "any", "schema": {"type": "object"}}}},
        {"tools": FUNCTIONS, "tool_choice": "required"},
    ]
    async with served(world) as http:
        answers = [
            await http.post("/v1/chat/completions", json={"model": "pane", "messages": HI, **options})
            for options in unsupported
        ]

    assert [(answer.status_code, answer.json()["error"]["code"]) for answer in answers] == [(400, "model_rejected")] * 3
    assert [answer.json()["error"]["message"] for answer in answers] == [
        "echo does not support JSON without a schema; give it a schema",
        "echo refused the request: Native structured output is not supported by this model",
        "echo does not support a forced tool choice; let the model choose",
    ]


@pytest.mark.parametrize(("mode", "reached"), [("auto", "auto"), ("required", "client__clock")])
async def test_only_the_allowed_functions_are_offered(world: World, mode: str, reached: str) -> None:
    named = {"mode": mode, "tools": [{"type": "function", "function": {"name": "clock"}}]}
    flat = {"mode": mode, "tools": [{"type": "function", "name": "clock"}], "type": "allowed_tools"}
    functions: Any = [{"type": "function", **tool["function"]} for tool in FUNCTIONS if "function" in tool]
    chat: Any = {"messages": HI, "tools": FUNCTIONS, "tool_choice": {"type": "allowed_tools", "allowed_tools": named}}
    nothing: Any = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": ["clock"]}}
    unknown: Any = {"type": "allowed_tools", "mode": mode, "tools": [{"type": "function", "name": "sun"}]}
    async with asking(world) as (client, _, wire):
        wire.add(SAID, SAID)
        await client.chat.completions.create(model="pane", **chat)
        await client.responses.create(model="pane", input="Hi", tools=functions, tool_choice=flat)  # pyright: ignore
        for wrong, why in ((nothing, "Name the allowed functions"), (unknown, "must be a function that is in 'tools'")):
            with pytest.raises(openai.BadRequestError, match=why):
                await client.chat.completions.create(model="pane", **{**chat, "tool_choice": wrong})

    offered = [[tool["function"]["name"] for tool in asked.body["tools"]] for asked in wire.asked]
    assert [[name for name in names if name.startswith("client__")] for names in offered] == [["client__clock"]] * 2
    forced = "auto" if reached == "auto" else {"type": "function", "function": {"name": reached}}
    assert [asked.body["tool_choice"] for asked in wire.asked] == [forced] * 2
