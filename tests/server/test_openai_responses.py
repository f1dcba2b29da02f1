"""Responses with OpenAI's own Python client, unchanged."""

from __future__ import annotations

from typing import Any

import httpx2
import openai
import pytest
from openai.types.responses import FunctionToolParam, ResponseFunctionToolCall

from server.place import new_session
from server.test_openai_chat import asking
from windowpane.context.messages import Usage
from windowpane.errors import ModelUnavailableError
from windowpane.models.scripted import Call, Reply
from windowpane.testing import World

WEATHER: FunctionToolParam = {
    "type": "function",
    "name": "weather",
    "description": "Tells the weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "strict": False,
}
ASKS = Reply("Let me see.", calls=(Call("client__weather", '{"city": "Oslo"}', id="c1"),), usage=Usage(10, 5))


@pytest.mark.client("OpenAI for Python", "responses")
async def test_a_response_is_text_with_its_usage_and_the_next_one_carries_on(world: World) -> None:
    world.says(Reply("One.", usage=Usage(7, 3, cache_read_tokens=2)), "Two.", "Three.")
    async with asking(world) as (client, http):
        raw = await client.responses.with_raw_response.create(
            model="pane", input="First?", instructions="Be brief.", max_output_tokens=200
        )
        first = raw.parse()
        second = await client.responses.create(model="pane", input="Second?", previous_response_id=first.id)
        branch = await client.responses.create(model="pane", input="Third?", previous_response_id=first.id)
        with pytest.raises(openai.NotFoundError, match="'resp_nobody' not found"):
            await client.responses.create(model="pane", input="Third?", previous_response_id="resp_nobody")
        session = raw.headers["windowpane-session"]
        record = (await http.get(f"/api/sessions/{session}/turns/2")).json()

    assert (first.status, first.output_text, first.model, first.instructions) == (
        "completed",
        "One.",
        "pane",
        "Be brief.",
    )
    assert first.usage is not None
    assert (first.usage.input_tokens, first.usage.output_tokens, first.usage.total_tokens) == (7, 3, 10)
    assert first.usage.input_tokens_details.cached_tokens == 2
    assert second.output_text == "Two."
    assert second.previous_response_id == first.id
    assert branch.output_text == "Three."
    told = [message.content for message in world.model.calls[2].messages if message.part in ("history", "message")]
    assert told == ["First?", "One.", "Third?"]
    assert record["text"] == "Two."
    history = [message.content for message in world.model.calls[1].messages if message.part in ("history", "message")]
    assert history == ["First?", "One.", "Second?"]


async def test_a_conversation_is_a_session(world: World) -> None:
    world.says("One.", "Two.")
    async with asking(world) as (client, http):
        session = await new_session(http)
        for text in ("First?", "Second?"):
            raw = await client.responses.with_raw_response.create(model="pane", input=text, conversation=session)
        again = (await http.get(f"/api/sessions/{session}")).json()

    assert (raw.headers["windowpane-session"], again["turn_count"]) == (session, 2)


@pytest.mark.parametrize("by_id", [True, False], ids=["previous_response_id", "whole input"])
async def test_functions_of_the_client_are_called_by_the_client(world: World, by_id: bool) -> None:
    world.says(ASKS, "Rain in Oslo.")
    async with asking(world) as (client, _):
        first = await client.responses.create(model="pane", input="Weather in Oslo?", tools=[WEATHER])
        call = next(item for item in first.output if isinstance(item, ResponseFunctionToolCall))
        result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "12 degrees, rain"}
        if by_id:
            second = await client.responses.create(
                model="pane", input=[result], previous_response_id=first.id, tools=[WEATHER]
            )
        else:
            asked: list[Any] = [{"role": "user", "content": "Weather in Oslo?"}]
            told: list[Any] = [*asked, *(item.to_dict() for item in first.output), result]
            second = await client.responses.create(model="pane", input=told, tools=[WEATHER])

    assert (first.output_text, call.name, call.arguments) == ("Let me see.", "weather", '{"city": "Oslo"}')
    assert second.output_text == "Rain in Oslo."
    assert first.id != second.id
    assert world.model.calls[1].messages[-1].content == "12 degrees, rain"


async def test_input_that_nobody_remembers_is_enough(world: World) -> None:
    world.says("Rain.")
    told: list[Any] = [
        {"role": "developer", "content": "Be brief."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me see."}]},
        {"type": "function_call", "call_id": "theirs", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "theirs", "output": "12 degrees, rain"},
    ]
    async with asking(world) as (client, _):
        answer = await client.responses.create(model="pane", input=told, tools=[WEATHER])

    assert answer.output_text == "Rain."
    sent = [(m.role, m.content) for m in world.model.calls[0].messages if m.role != "system"]
    assert sent == [("user", "Weather?"), ("assistant", "Let me see."), ("tool", "12 degrees, rain")]


async def test_a_response_is_streamed(world: World) -> None:
    world.says(ASKS, Reply("Rain in Oslo.", usage=Usage(20, 6)))
    async with asking(world) as (client, _):
        kinds: list[list[str]] = []
        finals: list[Any] = []
        texts: list[str] = []
        for given in ({"input": "Weather?", "tools": [WEATHER]}, {"tools": [WEATHER]}):
            options: dict[str, Any] = dict(given)
            if finals:
                call = finals[0].output[1]
                result = {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}
                options |= {"input": [result], "previous_response_id": finals[0].id}
            async with client.responses.stream(model="pane", **options) as stream:
                events = [event async for event in stream]
                finals.append(await stream.get_final_response())
            kinds.append([event.type for event in events if event.type != "response.output_text.delta"])
            texts.append("".join(event.delta for event in events if event.type == "response.output_text.delta"))
            numbers = [event.sequence_number for event in events]
            assert numbers == list(range(len(numbers)))

    opened = ["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"]
    closed = ["response.output_text.done", "response.content_part.done", "response.output_item.done"]
    called = [
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
    ]
    assert kinds == [
        [*opened, *closed, *called, "response.completed"],
        [*opened, *closed, "response.completed"],
    ]
    assert texts == ["Let me see.", "Rain in Oslo."]
    assert [final.output_text for final in finals] == texts
    assert finals[1].usage.total_tokens == 26


async def test_a_failure_is_an_error_or_a_failed_response(world: World) -> None:
    down = ModelUnavailableError("the model is down; try again")
    world.says(Reply("I thi", error=down), Reply("I thi", error=down), Reply("Half", finish_reason="length"))
    async with asking(world) as (client, _):
        with pytest.raises(openai.APIStatusError) as failed:
            await client.responses.create(model="pane", input="Hi")
        events = [event async for event in await client.responses.create(model="pane", input="Hi", stream=True)]
        cut = await client.responses.create(model="pane", input="Hi")

    last: Any = events[-1]
    assert (failed.value.status_code, failed.value.code) == (503, "model_unavailable")
    assert (last.type, last.response.status) == ("response.failed", "failed")
    assert last.response.error.message == "the model is down; try again"
    assert (cut.status, cut.output_text) == ("incomplete", "Half")
    assert cut.incomplete_details is not None
    assert cut.incomplete_details.reason == "max_output_tokens"


REFUSED: list[tuple[dict[str, Any], int, str | None, str]] = [
    ({"model": "nobody"}, 404, "model", "model_not_found"),
    ({"conversation": "ses_nobody"}, 404, "metadata.session", "session_not_found"),
    ({"stop": "x"}, 400, "stop", "unknown_parameter"),
    ({"messages": []}, 400, "messages", "unknown_parameter"),
    ({"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}, 400, "input", "invalid_value"),
    ({"input": "word " * 40_000}, 400, "input", "context_length_exceeded"),
    ({"input": [{"type": "item_reference", "id": "msg_1"}]}, 400, "input[0]", "unsupported_value"),
    ({"input": []}, 400, "input", "invalid_value"),
    ({"input": " "}, 400, None, "invalid_input"),
    ({"input": [{"role": "assistant", "content": "Hi"}]}, 400, "input", "invalid_value"),
    (
        {"input": [{"type": "function_call_output", "output": "x"}]},
        400,
        "input[0].call_id",
        "missing_required_parameter",
    ),
    ({"background": True}, 400, "background", "unsupported_value"),
    ({"text": {"format": {"type": "json_schema"}}}, 400, "text.format.schema", "missing_required_parameter"),
    ({"tool_choice": {"type": "function", "name": "weather"}}, 400, "tool_choice", "invalid_value"),
    (
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
        400,
        "input[0].content[0].image_url",
        "invalid_value",
    ),
    ({"tools": [{"name": "clock"}]}, 400, "tools[0].type", "missing_required_parameter"),
    ({"tools": [{"type": "web_search"}], "tool_choice": "required"}, 400, "tool_choice", "invalid_value"),
]


async def test_what_cannot_be_done_is_said_in_openais_words(client: httpx2.AsyncClient) -> None:
    answers: list[tuple[dict[str, Any], int, str | None, str]] = []
    for changes, *_ in REFUSED:
        response = await client.post("/v1/responses", json={"model": "pane", "input": "Hi", **changes})
        error = response.json()["error"]
        answers.append((changes, response.status_code, error["param"], error["code"]))

    assert answers == REFUSED


@pytest.mark.client("OpenAI for Python", "responses")
async def test_a_reference_to_an_item_is_taken_where_a_session_knows_the_item(world: World) -> None:
    world.says("One.", "Two.")
    async with asking(world) as (client, _):
        first = await client.responses.create(model="pane", input="First?")
        item: Any = {"type": "item_reference", "id": first.output[0].id}
        second = await client.responses.create(
            model="pane", input=[item, {"role": "user", "content": "Second?"}], previous_response_id=first.id
        )

    assert second.output_text == "Two."
    told = [message.content for message in world.model.calls[1].messages if message.part in ("history", "message")]
    assert told == ["First?", "One.", "Second?"]
