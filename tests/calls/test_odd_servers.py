"""Servers that word their protocol in ways of their own: turns work, and the ledger says what they reported."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calls.laws import PRICES
from calls.test_ledger import PROVIDERS
from server.place import new_session, served
from windowpane import telemetry
from windowpane.testing import World
from wire import anthropic_messages, openai_chat
from wire.reply import WireReply
from wire.server import EVENT_STREAM, Answer, Asked, running, sse

pytestmark = [
    pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning"),  # compiling google-genai
    pytest.mark.filterwarnings("ignore:Failed to extract usage"),  # pydantic-ai, where a count is missing
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings"),  # openai, where a count is no number
]
REPLY = WireReply(("Hello", " there."), input_tokens=500, output_tokens=20)


async def _asked(tmp_path: Path, name: str, *answers: Answer) -> tuple[dict[str, Any], dict[str, Any], list[Asked]]:
    """Return the turn that these answers make, its calls, and what the server was asked."""
    world = World(tmp_path / "agents")
    provider = PROVIDERS[name]
    world.write(
        "agent.yaml", f"model: {provider.model}\nworking_context: false\nprices:\n  {provider.model}: {PRICES}\n"
    )
    async with running(*answers) as server:
        world.environ = provider.environ(server.url)
        async with served(world) as http:
            session = await new_session(http)
            turn = (await http.post(f"/api/sessions/{session}/messages", json={"content": "Hi"})).json()
            calls = (await http.get(f"/api/sessions/{session}/calls")).json()
            for call, asked in zip(calls["calls"], server.asked, strict=True):
                record = (await http.get(f"/api/sessions/{session}/calls/{call['number']}")).json()
                assert record["body"] == asked.raw.decode()
        return turn, calls, server.asked


def _without(frame: bytes, *path: str) -> bytes:
    """Return an event without one of its fields."""
    head, _, data = frame.partition(b"data: ")
    document = inner = json.loads(data)
    for name in path[:-1]:
        inner = inner[name]
    del inner[path[-1]]
    return head + b"data: " + json.dumps(document).encode() + b"\n\n"


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_a_turn_works_on_an_anthropic_server_that_reports_nothing(tmp_path: Path, encoding: str) -> None:
    first, *middle, last, stop = anthropic_messages.frames(REPLY)
    silent = [_without(first, "message", "usage"), *middle, _without(last, "usage"), stop]
    body = b"".join(silent).replace(b"\n", b"\r\n")
    body = gzip.compress(body) if encoding == "gzip" else body
    steps = tuple(body[at : at + 50] for at in range(0, len(body), 50))
    answer = Answer(steps, headers={**EVENT_STREAM, "content-encoding": encoding})
    turn, calls, _ = await _asked(tmp_path, "anthropic", answer)

    assert (turn["outcome"], turn["text"]) == ("completed", "Hello there.")
    (call,) = calls["calls"]
    assert (call["outcome"], call["usage"], call["cost_usd"]) == ("complete", None, None)
    assert (calls["cost_usd"], calls["without_usage"]) == (None, 1)


@pytest.mark.parametrize("usage", [None, {}], ids=["null", "empty"])
async def test_an_anthropic_server_may_report_at_the_end_alone(tmp_path: Path, usage: object) -> None:
    first, *middle, last, stop = anthropic_messages.frames(REPLY)
    told = {"delta": {"stop_reason": "end_turn"}, "usage": {"input_tokens": 500, "output_tokens": 20}}
    silent = first.replace(b'"usage":{', b'"usage":%s,"was":{' % json.dumps(usage).encode())
    assert silent != first
    assert last.startswith(b"event: message_delta")
    end = anthropic_messages.event("message_delta", told)
    turn, calls, _ = await _asked(tmp_path, "anthropic", Answer((silent, *middle, end, stop)))

    assert turn["outcome"] == "completed"
    assert (calls["usage"]["input_tokens"], calls["usage"]["output_tokens"]) == (500, 20)


async def test_an_answer_that_the_client_cannot_read_is_a_clear_error(tmp_path: Path) -> None:
    *first, last, stop = anthropic_messages.frames(REPLY)
    turn, calls, _ = await _asked(tmp_path, "anthropic", Answer((*first, _without(last, "delta"), stop)))

    told = turn["messages"][-1]
    assert (turn["outcome"], told["role"], told["code"]) == ("failed", "error", "model_stream_broken")
    assert "gave an answer that its client cannot read" in told["content"]
    assert "; check what answers at http://127.0.0.1" in told["content"]
    assert len(calls["calls"]) == 1


@pytest.mark.parametrize("name", PROVIDERS)
async def test_output_that_is_not_reported_is_unknown_and_has_no_cost(tmp_path: Path, name: str) -> None:
    body = b"".join(step for step in PROVIDERS[name].answer(REPLY).steps if isinstance(step, bytes))
    for count in (
        rb'"(?:completion|output|total)_tokens": ?\d+',
        rb'"(?:candidates|thoughts|total)TokenCount": ?\d+',
        rb'"eval_count": ?\d+',
    ):
        body = re.sub(count, b'"unknown": null', body)
    measured: list[telemetry.Measured] = []
    with telemetry.listening(lambda _: None, measured.append):
        turn, calls, _ = await _asked(tmp_path, name, replace(PROVIDERS[name].answer(REPLY), steps=(body,)))

    assert (turn["outcome"], turn["text"]) == ("completed", "Hello there.")
    (call,) = calls["calls"]
    assert (call["usage"]["input_tokens"], call["usage"]["output_tokens"], call["output_unknown"]) == (500, 0, True)
    assert (call["cost_usd"], calls["cost_usd"], calls["without_usage"], calls["without_price"]) == (None, None, 1, 0)
    assert _tokens_of_spans(measured) == {"model_call": {"input": 500}, "turn": {"input": 500}}


def _tokens_of_spans(measured: list[telemetry.Measured]) -> dict[str, dict[str, object]]:
    """Return what the spans of a turn and its one call tell about input and output."""
    return {
        each.operation: {
            kind: each.attributes[f"gen_ai.usage.{kind}_tokens"]
            for kind in ("input", "output")
            if f"gen_ai.usage.{kind}_tokens" in each.attributes
        }
        for each in measured
        if each.operation in ("model_call", "turn")
    }


async def test_an_answer_of_no_tokens_is_no_unknown_one(tmp_path: Path) -> None:
    nothing = replace(REPLY, output_tokens=0)
    measured: list[telemetry.Measured] = []
    with telemetry.listening(lambda _: None, measured.append):
        _, calls, _ = await _asked(tmp_path, "openai", openai_chat.answer(nothing))

    (call,) = calls["calls"]
    assert (call["usage"]["output_tokens"], call["output_unknown"], call["cost_usd"]) == (0, False, "0.001")
    assert _tokens_of_spans(measured)["model_call"] == {"input": 500, "output": 0}


NONSENSE: list[Any] = [-5, "500", None, True, 0.5, 10**30, [500], {"n": 500}]


@pytest.mark.parametrize("count", NONSENSE, ids=map(str, NONSENSE))
async def test_counts_that_can_be_none_are_not_reported(tmp_path: Path, count: Any) -> None:
    usage = {"prompt_tokens": count, "completion_tokens": count, "total_tokens": count}
    chunk: dict[str, Any] = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []}
    frames = openai_chat.frames(REPLY)[:-1]
    turn, calls, _ = await _asked(
        tmp_path, "openai", Answer((*frames, sse({**chunk, "usage": usage}), openai_chat.DONE))
    )

    assert (turn["outcome"], turn["text"]) == ("completed", "Hello there.")
    (call,) = calls["calls"]
    assert (call["usage"], call["cost_usd"], calls["without_usage"]) == (None, None, 1)


@pytest.mark.parametrize(
    ("reports", "told"),
    [
        ([{"prompt_tokens": 500, "total_tokens": 500}, {"completion_tokens": 20}], (500, 20)),
        ([{"prompt_tokens": 500, "completion_tokens": 20}, {"prompt_tokens": 0, "completion_tokens": 0}], (500, 20)),
        ([{"prompt_tokens": 900, "completion_tokens": 40}, {"prompt_tokens": 500, "completion_tokens": 20}], (500, 20)),
        ([{"prompt_tokens": 500.0, "completion_tokens": 20.0}], (500, 20)),
        ([{"prompt_tokens": 500, "completion_tokens": 20, "total_tokens": -1}], (500, 20)),
    ],
    ids=["in-two", "zeros-last", "decreasing", "with-a-point", "wrong-total"],
)
async def test_the_last_word_of_several_reports_counts(
    tmp_path: Path, reports: list[dict[str, Any]], told: tuple[int, int]
) -> None:
    chunk: dict[str, Any] = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []}
    frames = openai_chat.frames(REPLY)[:-1]
    told_in = [sse({**chunk, "usage": usage}) for usage in reports]
    turn, calls, _ = await _asked(tmp_path, "openai", Answer((*frames, *told_in, openai_chat.DONE)))

    assert turn["outcome"] == "completed"
    (call,) = calls["calls"]
    assert (call["usage"]["input_tokens"], call["usage"]["output_tokens"], call["output_unknown"]) == (*told, False)


OUTPUT_ALONE = {
    "openai": (rb'"prompt_tokens": ?\d+,', rb'"total_tokens": ?\d+,'),
    "anthropic": (rb'"input_tokens": ?\d+,', rb'"cache_(?:read|creation)_input_tokens": ?\d+,'),
}


@pytest.mark.parametrize("name", OUTPUT_ALONE)
async def test_input_that_is_not_reported_is_unknown_and_has_no_cost(tmp_path: Path, name: str) -> None:
    body = b"".join(step for step in PROVIDERS[name].answer(REPLY).steps if isinstance(step, bytes))
    for count in OUTPUT_ALONE[name]:
        body = re.sub(count, b"", body)
    assert b"500" not in body
    measured: list[telemetry.Measured] = []
    with telemetry.listening(lambda _: None, measured.append):
        turn, calls, _ = await _asked(tmp_path, name, replace(PROVIDERS[name].answer(REPLY), steps=(body,)))

    assert (turn["outcome"], turn["text"]) == ("completed", "Hello there.")
    (call,) = calls["calls"]
    assert (call["usage"]["input_tokens"], call["usage"]["output_tokens"], call["cost_usd"]) == (0, 20, None)
    assert _tokens_of_spans(measured) == {"model_call": {"output": 20}, "turn": {"output": 20}}
    assert (calls["cost_usd"], calls["without_usage"], calls["without_price"]) == (None, 1, 0)


@pytest.mark.parametrize("left", ["prompt_tokens", "completion_tokens"])
async def test_a_total_tells_the_count_that_is_not_reported(tmp_path: Path, left: str) -> None:
    body = b"".join(step for step in openai_chat.answer(REPLY).steps if isinstance(step, bytes))
    partial = re.sub(rb'"%s": ?\d+,' % left.encode(), b"", body)
    assert partial != body
    _, calls, _ = await _asked(tmp_path, "openai", Answer((partial,)))

    assert (calls["usage"]["input_tokens"], calls["usage"]["output_tokens"]) == (500, 20)


@pytest.mark.parametrize(
    ("usage", "told"),
    [
        ({"completion_tokens": 20, "total_tokens": 520}, (500, 20)),
        ({"prompt_tokens": 500}, (500, 3)),
        ({"prompt_tokens": 80, "completion_tokens": 20, "prompt_cache_hit_tokens": 420}, (500, 20)),
    ],
    ids=["total", "input-alone", "apart"],
)
async def test_callers_of_a_door_are_told_what_the_ledger_says(
    tmp_path: Path, usage: dict[str, Any], told: tuple[int, int]
) -> None:
    chunk: dict[str, Any] = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []}
    frames = openai_chat.frames(REPLY)[:-1]
    world = World(tmp_path / "agents")
    world.write("agent.yaml", "model: openai:gpt-4o\nworking_context: false\n")
    async with running(Answer((*frames, sse({**chunk, "usage": usage}), openai_chat.DONE))) as server:
        world.environ = PROVIDERS["openai"].environ(server.url)
        async with served(world) as http:
            asked = {"model": "pane", "messages": [{"role": "user", "content": "Hi"}]}
            answer = await http.post("/v1/chat/completions", json=asked)
            path = f"/api/sessions/{answer.headers['windowpane-session']}"
            calls = (await http.get(f"{path}/calls")).json()

    counts = answer.json()["usage"]
    assert (counts["prompt_tokens"], counts["completion_tokens"]) == told
    assert calls["usage"]["input_tokens"] == told[0]


@pytest.mark.parametrize(("name", "status"), [*zip(PROVIDERS, (301, 302, 307, 307, 308), strict=True)])
async def test_a_redirect_is_recorded_and_no_key_follows_it(tmp_path: Path, name: str, status: int) -> None:
    provider = PROVIDERS[name]
    async with running(provider.answer(REPLY)) as elsewhere:
        location = f"{elsewhere.url}/v2?token=planted"
        moved = Answer((b"moved",), status, {"location": location, "content-length": "5"})
        turn, calls, asked = await _asked(tmp_path, name, moved)

    told = turn["messages"][-1]
    assert (turn["outcome"], told["code"], elsewhere.asked, len(asked)) == ("failed", "model_unavailable", [], 1)
    assert f"it redirects to {elsewhere.url}/v2?token=[redacted] (status {status})" in told["content"]
    assert told["content"].endswith("_BASE_URL to the new address")
    (call,) = calls["calls"]
    assert (call["status"], call["outcome"], call["reason"]) == (status, "error", f"status {status}")
    assert (call["usage"], calls["cost_usd"]) == (None, None)


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_redirect_on_the_same_server_is_followed_as_a_call_of_its_own(
    tmp_path: Path, name: str, status: int
) -> None:
    provider = PROVIDERS[name]
    moved = Answer((b"moved",), status, {"location": "/elsewhere/v1?key=planted", "content-length": "5"})
    turn, calls, asked = await _asked(tmp_path, name, moved, provider.answer(REPLY))

    assert (turn["outcome"], turn["text"]) == ("completed", "Hello there.")
    assert [each.path for each in asked][1] == "/elsewhere/v1?key=planted"
    assert asked[0].raw == asked[1].raw
    told = [(call["outcome"], call["status"], call["attempt"], call["usage"] is None) for call in calls["calls"]]
    assert told == [("retried", status, 1, True), ("complete", 200, 2, False)]
    assert (calls["usage"]["input_tokens"], calls["usage"]["output_tokens"]) == (500, 20)


async def test_a_server_that_sends_on_and_on_is_left_after_some_calls(tmp_path: Path) -> None:
    moved = Answer((b"moved",), 307, {"location": "/round", "content-length": "5"})
    turn, calls, asked = await _asked(tmp_path, "openai", *[moved] * 9)

    assert (turn["outcome"], turn["messages"][-1]["code"]) == ("failed", "model_unavailable")
    assert "it redirects to /round (status 307)" in turn["messages"][-1]["content"]
    assert (len(asked), [call["outcome"] for call in calls["calls"]]) == (4, ["retried"] * 3 + ["error"])


async def test_an_anthropic_server_may_report_all_counts_again_at_the_end(tmp_path: Path) -> None:
    *first, last, stop = anthropic_messages.frames(REPLY)
    whole = {
        "input_tokens": 300,
        "cache_read_input_tokens": 150,
        "cache_creation_input_tokens": 50,
        "output_tokens": 20,
    }
    assert b"message_delta" in last
    ends = {"delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {**whole, "output_tokens": 20}}
    turn, calls, _ = await _asked(
        tmp_path, "anthropic", Answer((*first, anthropic_messages.event("message_delta", ends), stop))
    )

    assert turn["outcome"] == "completed"
    assert (calls["usage"]["input_tokens"], calls["usage"]["output_tokens"]) == (500, 20)
    assert (calls["usage"]["cache_read_tokens"], calls["usage"]["cache_write_tokens"]) == (150, 50)


@pytest.mark.parametrize(
    "counts",
    [
        {"prompt_cache_hit_tokens": 120, "prompt_cache_miss_tokens": 380},
        {"cached_tokens": 120},
        {"prompt_tokens_details": {"cached_tokens": 120}},
        {"prompt_tokens": 80, "prompt_tokens_details": {"cached_tokens": 420}},
    ],
    ids=["deepseek", "moonshot", "openai", "apart"],
)
async def test_cached_tokens_are_known_by_every_name_that_servers_give_them(
    tmp_path: Path, counts: dict[str, Any]
) -> None:
    usage = {"prompt_tokens": 500, "completion_tokens": 20, "total_tokens": 520, **counts}
    chunk: dict[str, Any] = {
        "id": "1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [],
        "usage": usage,
    }
    frames = openai_chat.frames(REPLY)[:-1]
    turn, calls, _ = await _asked(tmp_path, "openai", Answer((*frames, sse(chunk), openai_chat.DONE)))

    assert turn["outcome"] == "completed"
    cached = 420 if "prompt_tokens" in counts else 120
    assert (calls["usage"]["input_tokens"], calls["usage"]["cache_read_tokens"]) == (500, cached)


async def test_a_whole_answer_on_a_connection_that_breaks_afterwards_is_counted(tmp_path: Path) -> None:
    steps = openai_chat.answer(REPLY).steps
    turn, calls, _ = await _asked(tmp_path, "openai", Answer((*steps, "cut")))

    assert (turn["outcome"], calls["calls"][0]["outcome"]) == ("completed", "complete")
    assert calls["usage"]["input_tokens"] == 500


@pytest.mark.parametrize("name", PROVIDERS)
async def test_the_query_of_a_base_url_is_sent_behind_each_path(tmp_path: Path, name: str) -> None:
    world = World(tmp_path / "agents")
    provider = PROVIDERS[name]
    world.write("agent.yaml", f"model: {provider.model}\n")
    async with running(provider.answer(REPLY)) as server:
        world.environ = {
            variable: f"{value}?tenant=a%26b&region=eu" if variable.endswith("_URL") else value
            for variable, value in provider.environ(server.url).items()
        }
        async with served(world) as http:
            session = await new_session(http)
            turn = (await http.post(f"/api/sessions/{session}/messages", json={"content": "Hi"})).json()
            (call,) = (await http.get(f"/api/sessions/{session}/calls")).json()["calls"]

    assert (turn["outcome"], turn["messages"][-1]["role"]) == ("completed", "assistant")
    (asked,) = server.asked
    path, _, query = asked.path.partition("?")
    assert path.startswith("/v1")
    assert "tenant" not in path
    assert "tenant=a%26b&region=eu" in query
    assert call["usage"]["input_tokens"] == 500
