"""The server takes spans over OTLP, as real exporters send them, and keeps their model calls as sessions."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx2
import pytest
from openai import AsyncOpenAI
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic_ai import Agent
from pydantic_ai.capabilities.instrumentation import Instrumentation
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from server.place import problem_in, served
from windowpane.callers import TokenFile
from windowpane.client import Client
from windowpane.context.messages import Usage
from windowpane.testing import World
from wire import openai_chat
from wire.reply import WireCall, WireReply
from wire.server import running
from xray.importing.test_files import conversation

TRACES = "/api/otlp/v1/traces"


@pytest.mark.client("OpenTelemetry SDK", "calls", "messages", "tools", "usage")
@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
async def test_spans_of_a_real_agent_become_its_conversation(world: World, compression: Compression) -> None:
    answers = [
        openai_chat.document(WireReply(text=("I look.",), calls=(WireCall("c1", "clock"),), cached_tokens=4)),
        openai_chat.document(WireReply(text=("Noon.",))),
        openai_chat.document(WireReply(text=("Bye.",))),
    ]
    async with (
        running(*answers) as upstream,
        served(world) as http,
        Client(str(http.base_url)) as pane,
        AsyncOpenAI(base_url=f"{upstream.url}/v1", api_key="none") as openai,
    ):
        exporter = OTLPSpanExporter(
            endpoint=f"{http.base_url}{TRACES}".replace("//api", "/api"), compression=compression
        )
        provider = TracerProvider(resource=Resource.create({"service.name": "My Agent", "service.version": "1.2"}))
        provider.add_span_processor(BatchSpanProcessor(exporter))
        model = OpenAIChatModel("gpt-4o", provider=OpenAIProvider(openai_client=openai))
        settings = InstrumentationSettings(tracer_provider=provider)
        agent = Agent(model, instructions="Be kind.", name="teller", capabilities=[Instrumentation(settings)])

        @agent.tool_plain
        def clock() -> str:  # pyright: ignore[reportUnusedFunction]  # the agent has it
            """Tell the time."""
            return "noon"

        first = await agent.run("What time is it?")
        assert await anyio.to_thread.run_sync(provider.force_flush)
        await agent.run("Thanks.", message_history=first.all_messages())
        assert await anyio.to_thread.run_sync(provider.force_flush)
        await anyio.to_thread.run_sync(provider.shutdown)
        (view,) = (await pane.sessions.list()).sessions
        told = await conversation(pane, view.id)
        calls = (await pane.sessions.calls(view.id)).calls
        body = json.loads((await pane.turns.call(view.id, 1, 2)).body or "")
        report = await pane.sessions.xray(view.id)

    assert told == [
        "What time is it?",
        ("", "I look.", [("clock", "{}")], [("noon", False)]),
        ("", "Noon.", [], []),
        "Thanks.",
        ("", "Bye.", [], []),
    ]
    assert view.origin is not None
    assert (view.agent, view.origin.source, view.origin.version, view.origin.not_told) == (
        "xray:my-agent",
        "otel",
        "1.2",
        ("wire",),
    )
    assert [(call.model, call.turn, call.step, call.seen, call.usage) for call in calls] == [
        ("openai:gpt-4o", 1, 1, False, Usage(11, 7, cache_read_tokens=4)),
        ("openai:gpt-4o", 1, 2, False, Usage(11, 7)),
        ("openai:gpt-4o", 2, 1, False, Usage(11, 7)),
    ]
    assert body["messages"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "What time is it?"},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "noon"},
    ]
    assert [(tool.name, tool.calls) for tool in report.tools] == [("clock", 1)]


def _attributes(fields: dict[str, Any]) -> list[dict[str, Any]]:
    def value(given: Any) -> dict[str, Any]:
        return {"intValue": str(given)} if isinstance(given, int) else {"stringValue": given}

    return [{"key": name, "value": value(given)} for name, given in fields.items()]


def _request(*spans: dict[str, Any], events: Sequence[tuple[str, dict[str, Any]]] = ()) -> dict[str, Any]:
    told = [
        {
            "traceId": "5B8EFFF798038103D269B633813FC60C",
            "spanId": f"eee19b7ec3c1b17{number}",
            "startTimeUnixNano": str(1772359200_000_000_000 + number * 10**9),
            "endTimeUnixNano": str(1772359200_500_000_000 + number * 10**9),
            "attributes": _attributes(fields),
            "events": [{"name": name, "attributes": _attributes(more)} for name, more in events],
            "status": {"code": 2, "message": "boom"} if fields.get("error.type") else {},
        }
        for number, fields in enumerate(spans)
    ]
    return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"spans": told}]}]}


async def test_older_conventions_and_failures_are_read_and_spans_are_taken_once(world: World) -> None:
    numbered = {
        "llm.request.type": "chat",
        "gen_ai.system": "Anthropic",
        "gen_ai.request.model": "claude-opus-4-6",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "Hi?",
        "gen_ai.completion.0.content": "Hello.",
        "gen_ai.usage.prompt_tokens": 3,
        "gen_ai.usage.completion_tokens": 2,
    }
    phoenix = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "gpt-4o",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Hi?",
        "llm.input_messages.1.message.role": "assistant",
        "llm.input_messages.1.message.content": "Hello.",
        "llm.input_messages.2.message.role": "user",
        "llm.input_messages.2.message.content": "What time is it?",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "clock",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": "{}",
    }
    failed = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o", "error.type": "Timeout"}
    other = {"gen_ai.operation.name": "execute_tool"}
    document = _request(numbered, phoenix, failed, other)
    packed = {"content-encoding": "gzip", "content-type": "application/json; charset=utf-8"}
    async with served(world) as http, Client(str(http.base_url)) as pane:
        taken = [await http.post(TRACES, json=document) for _ in range(2)]
        taken.append(await http.post(TRACES, content=gzip.compress(json.dumps(document).encode()), headers=packed))
        (view,) = (await pane.sessions.list()).sessions
        told = await conversation(pane, view.id)
        calls = (await pane.sessions.calls(view.id)).calls

    assert [(answer.status_code, answer.text) for answer in taken] == [(200, "{}")] * 3
    assert told == [
        "Hi?",
        ("", "Hello.", [], []),
        "What time is it?",
        ("", "", [("clock", "{}")], []),
        "(no text)",
        "boom",
    ]
    assert view.origin is not None
    assert (view.agent, view.origin.conversation, view.origin.not_told) == (
        "xray:otel",
        "5b8efff798038103d269b633813fc60c",
        ("wire", "system", "tools", "usage"),
    )
    assert [(call.model, call.outcome, call.usage, call.reason) for call in calls] == [
        ("anthropic:claude-opus-4-6", "complete", Usage(3, 2), ""),
        ("gpt-4o", "complete", None, ""),
        ("gpt-4o", "error", None, "boom"),
    ]


async def test_messages_that_are_events_of_the_span_are_read(world: World) -> None:
    events = [
        ("gen_ai.system.message", {"content": "Be kind."}),
        ("gen_ai.user.message", {"content": "Hi?"}),
        ("gen_ai.choice", {"finish_reason": "stop", "message": '{"role": "assistant", "content": "Hello."}'}),
    ]
    asked = {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": "k", "gen_ai.request.model": "gpt-4o"}
    async with served(world) as http, Client(str(http.base_url)) as pane:
        await http.post(TRACES, json=_request(asked, events=events))
        (view,) = (await pane.sessions.list()).sessions
        told = await conversation(pane, view.id)

    assert told == ["Hi?", ("", "Hello.", [], [])]
    assert view.origin is not None
    assert (view.origin.conversation, view.origin.not_told) == ("k", ("wire", "tools", "usage"))


async def test_spans_need_a_token_with_rights_and_belong_to_its_owner(world: World, tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    _, secret = tokens.create("ann", ("read", "chat"))
    _, reader = tokens.create("bob", ("read",))
    document = _request({"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"})
    async with served(world, tokens=tokens, token_needed=True, hosts=None) as http:
        answers = [
            await http.post(TRACES, json=document, headers=headers)
            for headers in (
                {},
                {"authorization": f"Bearer {reader}"},
                {"authorization": f"Bearer {secret}", "origin": "https://evil.example"},
                {"authorization": f"Bearer {secret}"},
            )
        ]
        async with Client(str(http.base_url), token=reader) as other, Client(str(http.base_url), token=secret) as own:
            seen = [len((await pane.sessions.list()).sessions) for pane in (other, own)]

    assert [answer.status_code for answer in answers] == [401, 403, 403, 200]
    assert seen == [0, 1]


async def test_what_is_no_request_is_refused_and_says_why(world: World) -> None:
    bomb = gzip.compress(b"0" * (65 * 1024 * 1024))
    protobuf = {"content-type": "application/x-protobuf"}
    cases: list[tuple[bytes, dict[str, str]]] = [
        (b"{}", {"content-type": "application/json"}),
        (b"[" * 100_000, {"content-type": "application/json"}),
        (b"\xff\xff", protobuf),
        (b"\x0a" * 100, {"content-type": "text/plain"}),
        (b"not gzip", {**protobuf, "content-encoding": "gzip"}),
        (bomb, {**protobuf, "content-encoding": "gzip"}),
        (b"0" * (33 * 1024 * 1024), protobuf),
    ]
    async with served(world) as http, Client(str(http.base_url)) as pane:
        answers: list[httpx2.Response] = []
        for body, headers in cases:
            answers.append(await http.post(TRACES, content=body, headers=headers))
        sessions = (await pane.sessions.list()).sessions

    assert [answer.status_code for answer in answers] == [422, 422, 422, 415, 422, 422, 413]
    assert problem_in(answers[0])["detail"].endswith("`resourceSpans` is missing")
    assert "longer than 67,108,864 bytes" in problem_in(answers[5])["detail"]
    assert sessions == ()
