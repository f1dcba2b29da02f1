"""Responses, conversations and embeddings with OpenAI's own Python client: what is kept, and what is derived."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import openai
import pytest

import windowpane
from server.test_openai_responses import asking
from windowpane.context.messages import Usage
from windowpane.models.scripted import Call, Reply
from windowpane.testing import World, serving

WEATHER: Any = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}


async def test_a_response_can_be_read_again_and_deleted(world: World) -> None:
    asks = Reply("Let me see.", calls=(Call("client__weather", "{}", id="c1"),), usage=Usage(10, 5))
    world.says(asks, Reply("It rains.", usage=Usage(20, 6)), "Hello.")
    async with asking(world) as (client, http):
        first = await client.responses.create(model="pane", input="Weather?", tools=[WEATHER])
        call = next(item for item in first.output if item.type == "function_call")
        result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}
        second = await client.responses.create(
            model="pane", input=[result], previous_response_id=first.id, tools=[WEATHER]
        )
        again = [await client.responses.retrieve(response.id) for response in (first, second)]
        items = [(await client.responses.input_items.list(response.id)).data for response in (first, second)]
        kept = await client.responses.create(
            model="pane", input="Hi", conversation=(await http.post("/api/sessions", json={})).json()["id"]
        )
        with pytest.raises(openai.BadRequestError, match="delete the session"):
            await client.responses.delete(kept.id)
        await client.responses.delete(second.id)
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(first.id)
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve("resp_nothing")

    for before, after in zip((first, second), again, strict=True):
        assert (after.id, after.status, after.output, after.usage) == (
            before.id,
            "completed",
            before.output,
            before.usage,
        )
    assert [item.to_dict() for item in (items[0][0], items[1][0])] == [
        {
            "id": items[0][0].id,
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "Weather?"}],
        },
        {
            "id": items[1][0].id,
            "type": "function_call_output",
            "call_id": "c1",
            "output": "rain",
            "status": "completed",
        },
    ]


async def test_every_result_that_a_response_answers_is_listed(world: World) -> None:
    both = (Call("client__weather", "{}", id="c1"), Call("client__weather", '{"at": 2}', id="c2"))
    world.says(Reply(calls=both), "It rains.")
    async with asking(world) as (client, _):
        first = await client.responses.create(model="pane", input="Weather?", tools=[WEATHER])
        ids = [item.call_id for item in first.output if item.type == "function_call"]
        results: Any = [{"type": "function_call_output", "call_id": id_, "output": f"rain {id_[-2:]}"} for id_ in ids]
        second = await client.responses.create(model="pane", input=results, previous_response_id=first.id)
        items: list[Any] = [item.to_dict() async for item in client.responses.input_items.list(second.id)]

    assert [(item["call_id"], item["output"]) for item in items] == [("c1", "rain c1"), ("c2", "rain c2")]


async def test_a_conversation_is_a_session(world: World) -> None:
    world.says("Blue.")
    async with asking(world) as (client, http):
        made = await client.conversations.create(
            metadata={"name": "Colours"}, items=[{"type": "message", "role": "user", "content": "I like the sea."}]
        )
        answer = await client.responses.create(model="pane", input="Which colour?", conversation=made.id)
        await client.conversations.items.create(made.id, items=[{"role": "user", "content": "And green."}])
        listed = await client.conversations.items.list(made.id, order="asc")
        named = await client.conversations.update(made.id, metadata={"name": "The sea", "topic": "blue"})
        read = await client.conversations.retrieve(made.id)
        seen = (await http.get("/api/sessions")).json()["sessions"]
        await client.conversations.delete(made.id)
        with pytest.raises(openai.NotFoundError):
            await client.conversations.retrieve(made.id)

    assert (answer.output_text, read.metadata) == ("Blue.", {"agent": "pane", "name": "The sea"})
    assert named.metadata == read.metadata
    told: list[Any] = [item.to_dict() for item in listed.data]
    said = [(item["role"], item["content"][0]["text"]) for item in told]
    assert said == [
        ("user", "I like the sea."),
        ("user", "Which colour?"),
        ("assistant", "Blue."),
        ("user", "And green."),
    ]
    assert [(session["id"], session["name"]) for session in seen] == [(made.id, "The sea")]


async def test_texts_are_embedded_by_the_model_that_selects(tmp_path: Path) -> None:
    windowpane.init_agent(tmp_path / "agents" / "guide")
    settings = windowpane.Settings(agents=tmp_path / "agents", store_url="memory:")
    async with (
        serving(settings) as address,
        openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="any", max_retries=0) as client,
    ):
        plain = await client.embeddings.create(model="any", input=["A cat.", "A dog."], encoding_format="float")
        packed = await client.embeddings.create(model="any", input="A cat.")
        # "A cat." as LangChain sends it: in tokens of cl100k_base.
        tokens = await client.embeddings.create(model="any", input=[[32, 8415, 13]])
        with pytest.raises(openai.BadRequestError, match="384 dimensions"):
            await client.embeddings.create(model="any", input="A cat.", dimensions=12)

    first, second = plain.data
    assert (len(first.embedding), len(second.embedding), plain.usage.prompt_tokens) == (384, 384, 6)
    assert packed.data[0].embedding == pytest.approx(first.embedding, abs=1e-6)
    assert tokens.data[0].embedding == pytest.approx(first.embedding, abs=1e-6)
    assert first.embedding != pytest.approx(second.embedding, abs=1e-3)


async def test_a_long_conversation_is_read_page_by_page_in_both_orders(world: World) -> None:
    async with asking(world) as (client, _):
        made = await client.conversations.create()
        for first in range(0, 45, 15):
            items: Any = [{"role": "user", "content": f"Message {n}."} for n in range(first, first + 15)]
            await client.conversations.items.create(made.id, items=items)
        newest: list[Any] = [item.to_dict() async for item in client.conversations.items.list(made.id)]
        oldest: list[Any] = [item.to_dict() async for item in client.conversations.items.list(made.id, order="asc")]
        page = await client.conversations.items.list(made.id, order="asc", limit=2)
        one: Any = await client.conversations.items.retrieve(oldest[7]["id"], conversation_id=made.id)
        with pytest.raises(openai.NotFoundError, match="Item with id 'msg_none' not found"):
            await client.conversations.items.retrieve("msg_none", conversation_id=made.id)
        with pytest.raises(openai.NotFoundError, match="Item with id 'msg_none' not found"):
            await client.conversations.items.list(made.id, after="msg_none")

    assert [item["content"][0]["text"] for item in oldest] == [f"Message {n}." for n in range(45)]
    assert newest == oldest[::-1]
    assert ([item.to_dict() for item in page.data], page.has_more) == (oldest[:2], True)
    assert one.to_dict() == oldest[7]


async def test_what_is_counted_is_what_the_request_takes(world: World) -> None:
    world.write("rules/brief.md", "---\ninclude: always\n---\nBe brief.\n")
    world.says("One.", "Two.", "Three.")
    hello: Any = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    items: Any = [*hello, {"role": "user", "content": "Weather?"}]
    async with asking(world) as (client, http):
        counted = await client.responses.input_tokens.count(
            model="pane", input=items, instructions="Be kind.", tools=[WEATHER]
        )
        answer = await client.responses.with_raw_response.create(
            model="pane", input=items, instructions="Be kind.", tools=[WEATHER]
        )
        session, turn = answer.headers["windowpane-session"], answer.headers["windowpane-turn"]
        taken = (await http.get(f"/api/sessions/{session}/turns/{turn}/context")).json()["budget"]["used_tokens"]
        first = answer.parse()
        await client.responses.create(model="pane", input="And now?", previous_response_id=first.id)
        branch = await client.responses.input_tokens.count(
            model="pane", input="And now?", previous_response_id=first.id
        )
        with pytest.raises(openai.NotFoundError, match="no agent 'nobody'"):
            await client.responses.input_tokens.count(model="nobody", input="Hi")
        with pytest.raises(openai.BadRequestError, match="no message to count"):
            await client.responses.input_tokens.count(model="pane", input=[{"role": "developer", "content": "Hi"}])
        listed = (await http.get("/api/sessions")).json()["sessions"]

    assert (counted.object, counted.input_tokens) == ("response.input_tokens", taken)
    assert branch.input_tokens > 0
    assert (len(world.model.calls), listed) == (2, [])


async def test_a_response_that_is_being_given_can_be_stopped(world: World) -> None:
    goes_on = anyio.Event()
    world.says(Reply("Once upon a time", before_end=goes_on), "Done.")
    async with asking(world) as (client, _):
        said: list[str] = []
        name = ""
        async for event in await client.responses.create(model="pane", input="A story?", stream=True):
            if event.type == "response.created":
                name = event.response.id
            if event.type == "response.output_text.delta":
                said.append(event.delta)
                if "".join(said) == "Once upon a time":
                    stopped = await client.responses.cancel(name)
                    assert (stopped.id, stopped.status, stopped.output_text) == (name, "cancelled", "Once upon a time")
        again = await client.responses.retrieve(name)
        with pytest.raises(openai.ConflictError, match="no turn is running") as refused:
            await client.responses.cancel(name)
        with pytest.raises(openai.NotFoundError):
            await client.responses.cancel("resp_nothing")

    assert (again.status, again.output_text) == ("cancelled", "Once upon a time")
    assert refused.value.response.headers["x-should-retry"] == "false"


async def test_a_chat_completion_can_be_read_again(world: World) -> None:
    calls = Reply("Let me see.", calls=(Call("client__weather", "{}", id="c1"),), usage=Usage(10, 5))
    world.says(calls, Reply("Hello.", usage=Usage(20, 6)))
    tool: Any = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    async with asking(world) as (client, _):
        asked = await client.chat.completions.create(
            model="pane", messages=[{"role": "user", "content": "Weather?"}], tools=[tool]
        )
        plain = await client.chat.completions.create(
            model="pane", messages=[{"role": "user", "content": "Hi"}], store=True
        )
        again = [await client.chat.completions.retrieve(completion.id) for completion in (asked, plain)]
        with pytest.raises(openai.NotFoundError):
            await client.chat.completions.retrieve("chatcmpl-nothing")
        with pytest.raises(
            openai.APIStatusError, match="GET is not possible at /v1/chat/completions; an answer is a turn"
        ):
            await client.chat.completions.list()
        with pytest.raises(openai.APIStatusError, match="/api/sessions lists, changes and deletes sessions"):
            await client.chat.completions.delete(plain.id)

    for before, after in zip((asked, plain), again, strict=True):
        assert (after.id, after.choices, after.usage) == (before.id, before.choices, before.usage)


@pytest.mark.parametrize("door", ["/v1", "/anthropic/v1"])
async def test_models_answer_to_head_as_to_get_without_a_body(world: World, door: str) -> None:
    async with asking(world) as (_, http):
        found = [await http.head(f"{door}/models{name}") for name in ("", "/pane", "/nobody")]

    assert [(answer.status_code, answer.content) for answer in found] == [(200, b""), (200, b""), (404, b"")]
