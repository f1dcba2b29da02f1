"""Responses, conversations and embeddings with OpenAI's own Python client: what is kept, and what is derived."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
