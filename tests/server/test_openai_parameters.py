"""What OpenAI's clients may ask for beside the messages: passed on, cut here, or named as ignored; and what fails."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.place import new_session, served
from windowpane.context.ids import SessionId
from windowpane.models.base import ModelText
from windowpane.models.scripted import Call, Reply
from windowpane.models.stops import StopCutter
from windowpane.testing import World
from wire import openai_chat
from wire.reply import WireReply
from wire.server import WireServer, json_answer, running

HI: list[Any] = [{"role": "user", "content": "hi"}]
SAID = openai_chat.answer(WireReply(("One. St", "op here. Two.")))


@asynccontextmanager
async def asking(world: World) -> AsyncGenerator[tuple[openai.AsyncOpenAI, httpx2.AsyncClient, WireServer]]:
    async with running() as wire:
        world.environ = {"OPENAI_BASE_URL": f"{wire.url}/v1", "OPENAI_API_KEY": "key"}
        world.write("agent.yaml", "model: openai:gpt-4o\nworking_context: false\n")
        async with (
            served(world) as http,
            openai.AsyncOpenAI(base_url=f"{http.base_url}/v1", api_key="any", max_retries=0) as client,
        ):
            yield client, http, wire


async def recorded(http: httpx2.AsyncClient, headers: Any) -> Any:
    session, turn = headers["windowpane-session"], headers["windowpane-turn"]
    context = await http.get(f"/api/sessions/{session}/turns/{turn}/context")
    return context.json()["settings"]["reply_options"]


async def test_sampling_parameters_reach_a_server_that_may_know_them_and_stand_in_the_record(world: World) -> None:
    given_ones: dict[str, Any] = {
        "seed": 7,
        "presence_penalty": 0.5,
        "frequency_penalty": -0.5,
        "logit_bias": {"50": -100},
    }
    async with asking(world) as (client, http, wire):
        wire.add(SAID, SAID)
        chat = await client.chat.completions.with_raw_response.create(
            model="pane",
            messages=HI,
            seed=7,
            presence_penalty=0.5,
            frequency_penalty=-0.5,
            logit_bias={"50": -100},
            reasoning_effort="low",
            stop="Stop",
            extra_body={"min_p": 0.1},
        )
        response = await client.responses.with_raw_response.create(
            model="pane", input="hi", reasoning={"effort": "high"}, extra_body={"min_p": 0.2}
        )
        options = await recorded(http, chat.headers)

    passed = {**given_ones, "reasoning_effort": "low", "min_p": 0.1}
    assert {name: wire.asked[0].body.get(name) for name in passed} == passed
    assert wire.asked[0].body["stop"] == ["Stop"]
    assert (options["sampling"], options["stop"]) == (passed, ["Stop"])
    assert chat.parse().choices[0].message.content == "One. "
    assert "windowpane-ignored" not in chat.headers
    assert (wire.asked[1].body["reasoning_effort"], wire.asked[1].body["min_p"]) == ("high", 0.2)
    assert response.parse().output_text == "One. Stop here. Two."


async def test_what_a_model_does_not_take_is_ignored_and_named(world: World) -> None:
    world.write("agent.yaml", "model: echo\n")
    async with (
        served(world) as http,
        openai.AsyncOpenAI(base_url=f"{http.base_url}/v1", api_key="any", max_retries=0) as client,
    ):
        answer = await client.chat.completions.with_raw_response.create(
            model="pane", messages=HI, seed=1, logprobs=True, stop=["pane"], extra_body={"min_p": 0.1, "né\n": 1}
        )
        with pytest.raises(openai.BadRequestError) as smuggled:
            await client.responses.create(model="pane", input="hi", extra_body={"messages": []})

    assert answer.headers["windowpane-ignored"] == "logprobs, seed, min_p, n??"
    assert "pane" not in (answer.parse().choices[0].message.content or "pane")
    assert (smuggled.value.param, smuggled.value.code) == ("messages", "unknown_parameter")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (400, "model_rejected", openai.BadRequestError),
        (401, "model_auth", openai.AuthenticationError),
        (404, "model_rejected", openai.NotFoundError),
        (429, "rate_limit_exceeded", openai.RateLimitError),
    ],
)
async def test_a_refusal_of_the_provider_has_its_status_also_when_streaming(
    world: World, stream: bool, status: int, code: str, error: type[openai.APIStatusError]
) -> None:
    body = {"error": {"message": "No.", "type": "invalid_request_error", "code": None}}
    async with asking(world) as (client, _, wire):
        wire.add(json_answer(status, body, {"retry-after": "3600"}))
        with pytest.raises(error) as refused:
            await client.chat.completions.create(model="pane", messages=HI, stream=stream)
        wire.add(json_answer(status, body, {"retry-after": "3600"}))
        with pytest.raises(error):
            await client.responses.create(model="pane", input="hi", stream=stream)

    assert (refused.value.status_code, refused.value.code) == (status, code)
    assert refused.value.response.headers.get("retry-after") == ("3600" if status == 429 else None)


async def test_whatever_refuses_a_request_below_v1_says_so_in_openais_form(world: World) -> None:
    async with served(world) as http:
        answers = [
            await http.get("/v1/nothing"),
            await http.put("/v1/models"),
            await http.post("/v1/responses", content=b"{", headers={"content-type": "application/json"}),
            await http.get("/v1/models", headers={"host": "elsewhere.example"}),
        ]
        elsewhere = await http.get("/api/nothing")

    assert [(a.status_code, list(a.json()), sorted(a.json()["error"])) for a in answers] == [
        (status, ["error"], ["code", "message", "param", "type"]) for status in (404, 405, 400, answers[3].status_code)
    ]
    assert answers[3].status_code >= 400
    assert "GET" in answers[1].headers["allow"]
    assert elsewhere.headers["content-type"] == "application/problem+json"


@given(
    pieces=st.lists(st.text("ab.", max_size=4), max_size=8),
    stops=st.lists(st.text("ab.", min_size=1, max_size=3), max_size=3),
)
def test_words_end_before_the_first_stop_sequence_however_they_are_cut_up(pieces: list[str], stops: list[str]) -> None:
    whole, cutter, said = "".join(pieces), StopCutter(stops), ""
    for piece in pieces:
        said += "".join(text.text for text in cutter.take(ModelText(piece)))
        if cutter.found is not None:
            break
    else:
        said += "".join(text.text for text in cutter.rest())

    places = [whole.find(stop) for stop in stops if stop in whole]
    if cutter.found is None:
        assert (said, places) == (whole, [])
    else:
        assert whole.startswith(said + cutter.found)
        assert not any(stop in said for stop in stops)


async def test_a_busy_session_keeps_its_settings_and_a_turn_that_begins_has_those_of_its_request(world: World) -> None:
    end = anyio.Event()
    calls = Reply(calls=(Call("client__weather", "{}", id="c1"),))
    world.says(Reply("One.", before_end=end), calls, "Rain.", "Bye.")
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]

    def body(temperature: float, content: str = "Hi", **message: str) -> dict[str, Any]:
        said = {"role": "user", "content": content, **message}
        system = {"role": "system", "content": f"System {temperature}."}
        return {"model": "pane", "messages": [system, said], "temperature": temperature, "tools": tools}

    async with served(world) as http:
        session = await new_session(http)
        headers, log = {"Windowpane-Session": session}, world.store
        chat, key = "/v1/chat/completions", {**headers, "Idempotency-Key": "k"}
        async with http.stream("POST", chat, json=body(0.1) | {"stream": True}, headers=key) as first:
            told = first.aiter_lines()
            while "One." not in await anext(told):
                pass
            before = await log.read(SessionId(session))
            busy = await http.post(chat, json=body(0.9), headers=headers)
            result = await http.post(chat, json=body(0.8, role="tool", tool_call_id="c1"), headers=headers)
            during = await log.read(SessionId(session))
            end.set()
            assert [line async for line in told][-2] == "data: [DONE]"
        await http.post(chat, json=body(0.7), headers=key)
        called = await http.post(chat, json=body(0.2), headers=headers)
        await http.post(chat, json=body(0.3, role="tool", tool_call_id="c1"), headers=headers)
        kept = (await http.get(f"/api/sessions/{session}")).json()["settings"]
        await http.post(chat, json=body(0.3, "Bye"), headers=headers)

    assert [answer.status_code for answer in (busy, result, called)] == [409, 409, 200]
    assert during == before
    assert (kept["temperature"], kept["system_prompt"]) == (0.3, "System 0.3.")
    assert [call.settings.temperature for call in world.model.calls] == [0.1, 0.2, 0.2, 0.3]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": HI, "tools": [{"type": "custom", "custom": {"name": "patch"}}]}),
        ("/v1/responses", {"input": "hi", "tools": [{"type": "custom", "name": "patch"}, {"type": "custom"}]}),
        (
            "/anthropic/v1/messages",
            {"messages": HI, "max_tokens": 99, "tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        ),
    ],
)
async def test_tools_that_are_no_functions_are_left_out_and_named(world: World, path: str, body: Any) -> None:
    world.says("Hello.")
    async with served(world) as http:
        answer = await http.post(path, json={"model": "pane", **body})

    assert (answer.status_code, answer.headers["windowpane-ignored"]) == (200, f"tools.{body['tools'][0]['type']}")
    assert world.model.calls[0].tools == ()
