"""Chat completions with OpenAI's own Python client, unchanged."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletionToolParam

from patience import PATIENCE_S
from server.place import engine_of, events_in, listening, new_session, served
from windowpane.context.ids import SessionId
from windowpane.context.messages import Usage
from windowpane.errors import ModelRateLimitedError, ModelUnavailableError
from windowpane.models.scripted import Call, Reply
from windowpane.server.app import create_app
from windowpane.server.openai.one_off import Once
from windowpane.stores.memory import MemoryStore
from windowpane.testing import World, tool
from windowpane.turn.run import NOT_ASKED

WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
ASKS = Reply("Let me see.", calls=(Call("client__weather", '{"city": "Oslo"}', id="c1"),), usage=Usage(10, 5))


@asynccontextmanager
async def asking(world: World, **options: Any) -> AsyncGenerator[tuple[openai.AsyncOpenAI, httpx2.AsyncClient]]:
    async with (
        served(world) as http,
        openai.AsyncOpenAI(base_url=f"{http.base_url}/v1", api_key="any", max_retries=0, **options) as client,
    ):
        yield client, http


async def test_agents_are_the_models(world: World) -> None:
    async with asking(world) as (client, _):
        listed = await client.models.list()
        one = await client.models.retrieve("pane")
        with pytest.raises(openai.NotFoundError) as missing:
            await client.models.retrieve("nobody")

    assert [model.id for model in listed.data] == ["pane"]
    assert (one.id, one.object, one.owned_by) == ("pane", "model", "windowpane")
    assert (missing.value.code, missing.value.param) == ("model_not_found", "model")


@pytest.mark.client("OpenAI for Python", "chat")
async def test_a_request_without_a_session_stands_for_itself(world: World) -> None:
    world.rule("tone", "Be kind.", include="always")
    world.says(Reply("It is 4.", usage=Usage(120, 5, cache_read_tokens=100)))
    async with asking(world) as (client, http):
        answer = await client.chat.completions.with_raw_response.create(
            model="pane",
            messages=[
                {"role": "system", "content": "Answer in English."},
                {"role": "user", "content": "1 + 1?"},
                {"role": "assistant", "content": "2."},
                {"role": "user", "content": [{"type": "text", "text": "And 2 + 2?"}]},
            ],
            temperature=0.5,
            max_completion_tokens=300,
        )
        session, turn = answer.headers["windowpane-session"], answer.headers["windowpane-turn"]
        context = (await http.get(f"/api/sessions/{session}/turns/{turn}/context")).json()
        listed = (await http.get("/api/sessions")).json()

    completion = answer.parse()
    assert completion.object == "chat.completion"
    assert completion.model == "pane"
    assert [choice.to_dict() for choice in completion.choices] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "It is 4.", "refusal": None, "tool_calls": None},
            "finish_reason": "stop",
            "logprobs": None,
        }
    ]
    assert completion.usage is not None
    assert completion.usage.to_dict() == {
        "prompt_tokens": 120,
        "completion_tokens": 5,
        "total_tokens": 125,
        "prompt_tokens_details": {"cached_tokens": 100},
    }
    received = world.model.calls[0]
    assert (received.settings.temperature, received.settings.max_output_tokens) == (0.5, 300)
    assert [(m.role, m.part, m.content) for m in received.messages if m.part in ("override", "history", "message")] == [
        ("system", "override", _override(received)),
        ("user", "history", "1 + 1?"),
        ("assistant", "history", "2."),
        ("user", "message", "And 2 + 2?"),
    ]
    assert "Answer in English." in _override(received)
    assert [item["name"] for item in context["items"]] == ["tone"]
    assert (turn, listed["sessions"]) == ("2", [])


def _override(received: Any) -> str:
    return next(message.content for message in received.messages if message.part == "override")


async def test_a_session_is_named_by_a_header_or_by_metadata_and_remembers(world: World) -> None:
    world.says("One.", "Two.", "Three.")
    async with asking(world) as (client, http):
        session = await new_session(http)
        first = await client.chat.completions.with_raw_response.create(
            model="pane",
            messages=[{"role": "user", "content": "First?"}],
            extra_headers={"Windowpane-Session": session},
        )
        second = await client.chat.completions.with_raw_response.create(
            model="pane",
            messages=[{"role": "user", "content": "What the client believes"}, {"role": "user", "content": "Second?"}],
            metadata={"session": session},
        )
        named = [
            (
                await client.chat.completions.with_raw_response.create(
                    model="pane",
                    messages=[{"role": "user", "content": "Third?"}],
                    extra_headers={"Windowpane-Session": "my own name", "Idempotency-Key": "k"},
                )
            ).headers["windowpane-session"]
            for _ in range(2)
        ]
        listed = (await http.get("/api/sessions")).json()["sessions"]

    assert first.headers["windowpane-session"] == second.headers["windowpane-session"] == session
    assert (first.headers["windowpane-turn"], second.headers["windowpane-turn"]) == ("1", "2")
    history = [m.content for m in world.model.calls[1].messages if m.part in ("history", "message")]
    assert history == ["First?", "One.", "Second?"]
    assert named[0] == named[1] != session
    assert len(world.model.calls) == 3
    assert [(entry["id"], entry["name"]) for entry in listed] == [(named[0], "my own name"), (session, "")]


@pytest.mark.client("OpenAI for Python", "streaming")
async def test_an_answer_is_streamed_with_its_usage(world: World) -> None:
    go_on = anyio.Event()
    world.toolbox.put("files", [tool("read", "contents", permission="not_required")])
    world.says(
        Reply("I look.", calls=(Call("files__read", '{"path": "a"}', id="f1"),), usage=Usage(10, 2)),
        Reply("It is empty.", usage=Usage(20, 3), before_end=go_on),
    )
    async with asking(world) as (client, _):
        stream = await client.chat.completions.create(
            model="pane",
            messages=[{"role": "user", "content": "Look"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks: list[Any] = []
        async for chunk in stream:
            chunks.append(chunk)
            if len(chunks) == 3:
                go_on.set()

    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "I look.\n\nIt is empty."
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert [c.choices[0].finish_reason for c in chunks if c.choices][:-1] == [None] * (len(chunks) - 2)
    assert (chunks[-1].choices, chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens) == ([], 30, 5)
    assert all(chunk.usage is None for chunk in chunks[:-1])


@pytest.mark.client("OpenAI for Python", "tools")
@pytest.mark.parametrize("named", [True, False], ids=["in a session", "without a session"])
async def test_functions_of_the_client_are_called_by_the_client(world: World, named: bool) -> None:
    world.toolbox.put("files", [tool("read", "contents", permission="not_required")])
    both = (Call("files__read", '{"path": "a"}', id="f1"), *ASKS.calls)
    world.says(Reply("Let me see.", calls=both, usage=Usage(10, 5)), Reply("Rain in Oslo.", usage=Usage(20, 6)))
    async with asking(world) as (client, http):
        headers = {"Windowpane-Session": await new_session(http)} if named else {}
        messages: list[Any] = [{"role": "user", "content": "Weather in Oslo?"}]
        first = await client.chat.completions.with_raw_response.create(
            model="pane", messages=messages, tools=[WEATHER], extra_headers=headers
        )
        asked = first.parse().choices[0]
        calls = asked.message.tool_calls or []
        messages += [
            asked.message.to_dict(),
            {"role": "tool", "tool_call_id": calls[0].id, "content": "12 degrees, rain"},
        ]
        second = await client.chat.completions.with_raw_response.create(
            model="pane", messages=messages, tools=[WEATHER], extra_headers=headers
        )
        session = first.headers["windowpane-session"]
        record = (await http.get(f"/api/sessions/{session}/turns/1")).json()

    assert (asked.finish_reason, asked.message.content) == ("tool_calls", "Let me see.")
    assert [call.to_dict()["function"] for call in calls] == [{"name": "weather", "arguments": '{"city": "Oslo"}'}]
    assert second.parse().choices[0].message.content == "Rain in Oslo."
    assert second.headers["windowpane-session"] == session
    assert (first.headers["windowpane-turn"], second.headers["windowpane-turn"]) == ("1", "1")
    assert [offered.offered_name for offered in world.model.calls[0].tools] == ["files__read", "client__weather"]
    assert [message.content for message in world.model.calls[1].messages][-2:] == ["contents", "12 degrees, rain"]
    assert record["outcome"] == "completed"
    used = second.parse().usage
    assert used is not None
    assert (used.prompt_tokens, used.completion_tokens) == (20, 6)


async def test_calls_are_streamed_too(world: World) -> None:
    world.says(ASKS)
    async with (
        asking(world) as (client, _),
        client.chat.completions.stream(
            model="pane", messages=[{"role": "user", "content": "Weather?"}], tools=[WEATHER]
        ) as stream,
    ):
        final = await stream.get_final_completion()

    choice = final.choices[0]
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", "Let me see.")
    assert [(c.function.name, c.function.arguments) for c in choice.message.tool_calls or []] == [
        ("weather", '{"city": "Oslo"}')
    ]


async def test_a_conversation_with_calls_goes_on_where_nobody_remembers_it(world: World) -> None:
    world.says("Rain.", "Then take an umbrella.")
    call = {"id": "theirs", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    messages: list[Any] = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "theirs", "content": "12 degrees, rain"},
    ]
    async with asking(world) as (client, _):
        first = await client.chat.completions.create(model="pane", messages=messages, tools=[WEATHER])
        messages += [{"role": "assistant", "content": "Rain."}, {"role": "user", "content": "So?"}]
        second = await client.chat.completions.create(model="pane", messages=messages, tools=[WEATHER])

    assert first.choices[0].message.content == "Rain."
    assert second.choices[0].message.content == "Then take an umbrella."
    sent = [[(m.role, m.content) for m in call.messages if m.role != "system"] for call in world.model.calls]
    assert sent[0] == [("user", "Weather?"), ("assistant", ""), ("tool", "12 degrees, rain")]
    assert sent[1] == [*sent[0], ("assistant", "Rain."), ("user", "So?")]
    assert [c.offered_name for c in world.model.calls[0].messages[-2].tool_calls] == ["client__weather"]


class ReadMeanwhile(MemoryStore):
    """A store in which another reader looks at a session just before its lease is taken for the first time."""

    look: Callable[[SessionId], Awaitable[None]] | None = None

    async def acquire(self, session_id: SessionId, holder: str, ttl_s: float) -> int | None:
        if look := self.look:
            self.look = None
            await look(session_id)
        return await super().acquire(session_id, holder, ttl_s)


@pytest.mark.parametrize("call_id", ["theirs", "ses_forgotten.theirs"])
async def test_a_turn_that_goes_on_with_results_is_not_closed_by_a_reader_who_comes_before_its_worker(
    tmp_path: Path, call_id: str
) -> None:
    world = World(root=tmp_path, store=(store := ReadMeanwhile()))
    world.says("Rain.")
    engine = engine_of(world)
    store.look = engine.sessions.close_abandoned
    call = {"id": call_id, "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    messages: list[Any] = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": "12 degrees, rain"},
    ]
    async with (
        listening(create_app(engine)) as address,
        openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="any", max_retries=0) as client,
    ):
        answer = await client.chat.completions.create(model="pane", messages=messages, tools=[WEATHER])

    assert (store.look, answer.choices[0].message.content) == (None, "Rain.")


async def test_a_tool_that_needs_a_person_is_denied_where_nobody_can_be_asked(world: World) -> None:
    world.toolbox.put("files", [tool("read", "contents")])
    world.says(Reply(calls=(Call("files__read", '{"path": "a"}', id="f1"),)), "I may not look.")
    async with asking(world) as (client, _):
        answer = await client.chat.completions.create(model="pane", messages=[{"role": "user", "content": "Look"}])

    assert answer.choices[0].message.content == "I may not look."
    assert world.model.calls[1].messages[-1].content == NOT_ASKED


async def test_in_a_session_a_person_decides_and_the_client_is_told_to_wait(world: World) -> None:
    world.toolbox.put("files", [tool("read", "contents")])
    world.says(Reply(calls=(Call("files__read", '{"path": "a"}', id="f1"),)), "It is empty.")
    async with asking(world) as (client, http):
        session = await new_session(http)
        headers = {"Windowpane-Session": session}
        with pytest.raises(openai.ConflictError) as waiting:
            await client.chat.completions.create(
                model="pane", messages=[{"role": "user", "content": "Look"}], extra_headers=headers
            )
        decided = await http.post(f"/api/sessions/{session}/approvals", json={"decisions": {"f1": "allow_once"}})

    assert waiting.value.code == "approval_pending"
    assert waiting.value.response.headers["x-should-retry"] == "false"
    assert waiting.value.response.headers["windowpane-turn"] == "1"
    assert decided.json()["text"] == "It is empty."


@pytest.mark.parametrize(
    ("error", "status", "code", "retry"),
    [
        (ModelUnavailableError("the model is down; try again"), 503, "model_unavailable", None),
        (ModelRateLimitedError("slow down", retry_after_s=3), 429, "rate_limit_exceeded", None),
    ],
)
@pytest.mark.client("OpenAI for Python", "errors")
async def test_a_failed_model_call_is_an_error_of_openais_kind(
    world: World, error: Any, status: int, code: str, retry: str | None
) -> None:
    world.says(Reply("I thi", error=error), Reply("I thi", error=error))
    async with asking(world) as (client, _):
        with pytest.raises(openai.APIStatusError) as failed:
            await client.chat.completions.create(model="pane", messages=[{"role": "user", "content": "Hi"}])
        heard: list[str] = []
        with pytest.raises(openai.APIError, match=str(error)):
            await _heard(client, heard)

    assert (failed.value.status_code, failed.value.code) == (status, code)
    assert failed.value.response.headers.get("x-should-retry") == retry
    assert failed.value.body == {
        "message": str(error),
        "type": "requests" if status == 429 else "server_error",
        "param": None,
        "code": code,
    }
    assert "".join(heard) == "I thi"


async def _heard(client: openai.AsyncOpenAI, heard: list[str]) -> None:
    messages: list[Any] = [{"role": "user", "content": "Hi"}]
    async for chunk in await client.chat.completions.create(model="pane", messages=messages, stream=True):
        heard += [chunk.choices[0].delta.content or ""]


BODY: dict[str, Any] = {"model": "pane", "messages": [{"role": "user", "content": "Hi"}]}


HELLO: dict[str, Any] = {"role": "user", "content": "Hi"}
ONE: dict[str, Any] = {
    "role": "assistant",
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}],
}
GIVEN: dict[str, Any] = {"role": "tool", "tool_call_id": "c1", "content": "rain"}
REFUSED: list[tuple[dict[str, Any], int, str | None, str]] = [
    ({"model": "nobody"}, 404, "model", "model_not_found"),
    ({"metadata": {"session": "ses_nobody"}}, 404, "metadata.session", "session_not_found"),
    ({"metadata": {"session": 3}}, 400, "metadata.session", "invalid_type"),
    ({"metadata": {"session": " "}}, 400, None, "invalid_input"),
    ({"messages": None}, 400, "messages", "invalid_value"),
    ({"messages": []}, 400, "messages", "invalid_value"),
    ({"messages": [{"role": "user", "content": " "}]}, 400, None, "invalid_input"),
    ({"messages": [{"role": "user", "content": "\ud800"}]}, 400, None, "invalid_value"),
    ({"messages": [{"role": "robot", "content": "Hi"}]}, 400, "messages[0].role", "invalid_value"),
    ({"messages": [{"role": "assistant", "content": "Hi"}]}, 400, "messages", "invalid_value"),
    ({"messages": [{"role": "tool", "content": "Hi"}]}, 400, "messages[0].tool_call_id", "invalid_value"),
    ({"messages": [{"role": "tool", "tool_call_id": "x", "content": "Hi"}]}, 400, "messages", "invalid_value"),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
        400,
        "messages[0].content[0].image_url",
        "invalid_value",
    ),
    ({"n": 2}, 400, "n", "unsupported_value"),
    ({"stop": [""]}, 400, "stop[0]", "invalid_value"),
    ({"input": "Hi"}, 400, "input", "unknown_parameter"),
    ({"response_format": {"type": "grammar"}}, 400, "response_format.type", "invalid_value"),
    (
        {"response_format": {"type": "json_schema"}},
        400,
        "response_format.json_schema.schema",
        "missing_required_parameter",
    ),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"properties": 5}}}},
        400,
        "response_format.json_schema.schema",
        "invalid_value",
    ),
    ({"tool_choice": "required"}, 400, "tool_choice", "invalid_value"),
    (
        {"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "clock"}}},
        400,
        "tool_choice",
        "invalid_value",
    ),
    ({"tools": [WEATHER], "tool_choice": {"type": "custom"}}, 400, "tool_choice", "unsupported_value"),
    ({"temperature": 3}, 400, "temperature", "invalid_value"),
    ({"tools": [WEATHER, WEATHER]}, 400, "tools", "invalid_value"),
    ({"messages": [HELLO, ONE, GIVEN, GIVEN]}, 400, "messages", "invalid_value"),
    ({"messages": [HELLO, {**ONE, "tool_calls": ONE["tool_calls"] * 2}, GIVEN]}, 400, "messages", "invalid_value"),
    ({"tools": [{"name": "clock"}]}, 400, "tools[0].type", "missing_required_parameter"),
    ({"tools": [{"type": "web_search"}], "tool_choice": "required"}, 400, "tool_choice", "invalid_value"),
]


async def test_what_cannot_be_done_is_said_in_openais_words(client: httpx2.AsyncClient) -> None:
    answers: list[tuple[dict[str, Any], int, str | None, str]] = []
    for changes, *_ in REFUSED:
        body = json.dumps({**BODY, **changes})
        response = await client.post("/v1/chat/completions", content=body, headers={"Content-Type": "application/json"})
        error = response.json()["error"]
        assert (error["type"], bool(error["message"])) == ("invalid_request_error", True)
        answers.append((changes, response.status_code, error["param"], error["code"]))

    assert answers == REFUSED


@pytest.mark.parametrize("body", [b"", b"[]", b'"hi"', b"7"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/embeddings", "/anthropic/v1/messages"])
async def test_a_body_that_is_no_object_is_told_so(client: httpx2.AsyncClient, path: str, body: bytes) -> None:
    answer = await client.post(path, content=body, headers={"Content-Type": "application/json"})

    assert (answer.status_code, answer.json()["error"]["message"]) == (400, "The body must be a JSON object.")


async def test_parameters_without_an_effect_are_taken(world: World) -> None:
    world.says("Hello.")
    async with asking(world) as (client, _):
        answer = await client.chat.completions.create(
            model="pane",
            messages=[{"role": "user", "content": "Hi"}],
            n=1,
            seed=7,
            max_tokens=-1,
            user="me",
            presence_penalty=0.5,
            reasoning_effort="low",
            response_format={"type": "text"},
            tools=[WEATHER],
            tool_choice="none",
        )

    assert answer.choices[0].message.content == "Hello."
    assert world.model.calls[0].tools == ()


async def test_the_tokens_are_counted_here_when_the_provider_does_not_say(world: World) -> None:
    world.says("Hello there.")
    async with asking(world) as (client, http):
        answer = await client.chat.completions.with_raw_response.create(model="pane", messages=BODY["messages"])
        session = answer.headers["windowpane-session"]
        context = (await http.get(f"/api/sessions/{session}/turns/1/context")).json()

    usage = answer.parse().usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens) == (context["budget"]["used_tokens"], 3)


async def test_a_stream_that_nobody_reads_any_more_stops_a_turn_that_nobody_could_find(world: World) -> None:
    world.says(Reply("Hello there.", before_end=anyio.Event()))
    async with asking(world) as (client, http):
        stream = await client.chat.completions.create(model="pane", messages=BODY["messages"], stream=True)
        session = stream.response.headers["windowpane-session"]
        async for chunk in stream:
            if chunk.choices[0].delta.content:
                break
        await stream.close()

        with anyio.fail_after(PATIENCE_S):
            async with http.stream("GET", f"/api/sessions/{session}/events?after=0") as watched:
                async for event in events_in(watched):
                    if event.event == "turn.finished":
                        break
        after = (await http.get(f"/api/sessions/{session}/turns/1")).json()

    assert after["outcome"] == "cancelled"


async def test_sessions_of_single_requests_are_forgotten_in_time(world: World) -> None:
    world.says(*["Hello."] * 6)
    app = create_app(engine_of(world))
    app.state.once = Once(kept=2, every=3)
    async with listening(app) as address, httpx2.AsyncClient(base_url=address) as http:
        made = [(await http.post("/v1/chat/completions", json=BODY)).headers["windowpane-session"] for _ in range(6)]
        kept = [(await http.get(f"/api/sessions/{session}")).status_code for session in made]
        stored = await http.post("/v1/chat/completions", json={**BODY, "store": True})
        listed = (await http.get("/api/sessions")).json()["sessions"]

    assert kept == [404, 404, 404, 404, 200, 200]
    assert [entry["id"] for entry in listed] == [stored.headers["windowpane-session"]]
