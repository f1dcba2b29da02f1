from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from server.place import new_session, served
from windowpane import telemetry
from windowpane.client import Client
from windowpane.context.events import Delta, SummaryMade
from windowpane.context.messages import AssistantMessage, Usage
from windowpane.models.scripted import Call, Reply
from windowpane.telemetry import Measured, Operation, provider_of
from windowpane.testing import World, drain, tool
from wire import openai_chat
from wire.reply import WireCall, WireReply
from wire.server import running

_EXPORTER = InMemorySpanExporter()


@pytest.fixture(scope="session", autouse=True)
def collected() -> None:
    """Collect spans with the real SDK; a process can have one provider only."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(_EXPORTER))
    trace.set_tracer_provider(provider)


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    _EXPORTER.clear()
    yield _EXPORTER
    _EXPORTER.clear()


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "agents")
    world.toolbox.put("files", [tool("read", "the planted result of {path}", permission="not_required")])
    world.says(
        Reply(
            "Let me look.",
            calls=(Call("files__read", '{"path": "planted-argument"}', id="c1"),),
            usage=Usage(11, 7, 5, 3),
            finish_reason="tool_call",
        ),
        "The planted answer.",
    )
    return world


def named(spans: tuple[ReadableSpan, ...]) -> dict[str, list[ReadableSpan]]:
    found: dict[str, list[ReadableSpan]] = {}
    for span in spans:
        found.setdefault(span.name, []).append(span)
    return found


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def ask(world: World, message: str = "A planted question") -> str:
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, message))
        return session.id


async def test_a_turn_is_a_span_with_selection_model_calls_and_tool_calls_inside_and_nothing_else(
    world: World, exporter: InMemorySpanExporter
) -> None:
    session = await ask(world)

    spans = named(exporter.get_finished_spans())
    (turn,) = spans["invoke_agent pane"]
    assert attributes(turn) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.conversation.id": session,
        "gen_ai.agent.name": "pane",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "test",
        "windowpane.turn": 1,
        "windowpane.outcome": "completed",
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 5,
        "gen_ai.usage.cache_creation.input_tokens": 3,
    }
    assert turn.context is not None
    inside = [spans["select context"], spans["chat test"], spans["execute_tool read"]]
    assert [len(found) for found in inside] == [1, 2, 1]
    assert {span.parent.span_id for found in inside for span in found if span.parent} == {turn.context.span_id}
    assert attributes(spans["select context"][0]) == {
        "windowpane.selection.candidates": 0,
        "windowpane.selection.chosen": 0,
        "windowpane.selection.degraded": False,
    }
    assert attributes(spans["execute_tool read"][0]) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.conversation.id": session,
        "gen_ai.tool.name": "read",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.type": "extension",
        "windowpane.tool.server": "files",
    }
    assert sum(map(len, spans.values())) == 5


async def test_a_model_call_has_the_names_of_the_conventions(world: World, exporter: InMemorySpanExporter) -> None:
    world.write(
        "agent.yaml", "model: scripted:test\nworking_context: false\ntemperature: 0.5\nmax_output_tokens: 100\n"
    )

    session = await ask(world)

    call = attributes(named(exporter.get_finished_spans())["chat test"][0])
    assert call == {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": session,
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "test",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 100,
        "windowpane.purpose": "answer",
        "gen_ai.response.model": "scripted:test",
        "gen_ai.response.finish_reasons": ("tool_call",),
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 5,
        "gen_ai.usage.cache_creation.input_tokens": 3,
    }


async def test_what_was_said_is_in_no_span_unless_it_is_asked_for(
    world: World, exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ask(world)
    without = "".join(span.to_json() for span in exporter.get_finished_spans())
    exporter.clear()
    monkeypatch.setenv(telemetry.CONTENT, "true")
    reading = Call("files__read", '{"path": "planted-argument"}', id="c1")
    world.says(Reply("Let me look.", calls=(reading,), finish_reason="tool_call"), "The planted answer.")
    await ask(world)

    spans = named(exporter.get_finished_spans())
    first, call = map(attributes, spans["chat test"])
    ran = attributes(spans["execute_tool read"][0])
    assert "planted" not in without
    asked = {"type": "tool_call", "id": "c1", "name": "files__read", "arguments": {"path": "planted-argument"}}
    given = {"type": "tool_call_response", "id": "c1", "response": "the planted result of planted-argument"}
    assert json.loads(first["gen_ai.output.messages"]) == [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": "Let me look."}, asked],
            "finish_reason": "tool_call",
        }
    ]
    assert [tool["name"] for tool in json.loads(first["gen_ai.tool.definitions"])] == ["files__read"]
    assert (ran["gen_ai.tool.call.arguments"], ran["gen_ai.tool.call.result"]) == (reading.arguments, given["response"])
    *_, question, answered, results = json.loads(call["gen_ai.input.messages"])
    assert (answered["parts"], results) == ([*answered["parts"][:1], asked], {"role": "tool", "parts": [given]})
    assert question == {"role": "user", "parts": [{"type": "text", "content": "A planted question"}]}
    assert json.loads(call["gen_ai.output.messages"]) == [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": "The planted answer."}],
            "finish_reason": "stop",
        }
    ]


@pytest.mark.spec("S4.76", "S4.77", "S4.78")
async def test_every_try_and_every_summary_is_a_span_that_reaches_the_provider_and_a_line_of_the_debug_log(
    world: World, exporter: InMemorySpanExporter, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = "model: openai:gpt-4o\nworking_context: false\nfinders: false\nmemory: {messages: 8}\n"
    world.write("agent.yaml", settings)
    summary = WireReply(calls=(WireCall("c1", "record_summary", ('{"overview": "Paint."}',)),), input_tokens=900)
    answers = [openai_chat.answer(WireReply((f"Noted {number}.",))) for number in range(7)]
    async with running(openai_chat.problem(500, "not now"), *answers, openai_chat.answer(summary)) as server:
        world.environ = {
            "OPENAI_BASE_URL": f"{server.url}/v1",
            "OPENAI_API_KEY": "key",
            "LLM_DEBUG_LOG": "true",
        }
        async with world.engine() as engine:
            session = await engine.sessions.create()
            for number in range(7):
                await drain(engine.turn(session.id, f"Shade {number} of the wall in the hall."))
            async for entry in engine.store.subscribe(session.id, after=0):
                if isinstance(entry.event, SummaryMade):
                    break
        sent = [asked.headers["traceparent"].split("-")[2] for asked in server.asked]

    chats = named(exporter.get_finished_spans())["chat gpt-4o"]
    spans = {f"{span.context.span_id:016x}": attributes(span) for span in chats if span.context}
    assert set(sent) == set(spans)
    told = [(spans[name].get("error.type"), spans[name]["windowpane.purpose"]) for name in sent]
    assert told == [("model_unavailable", "answer"), *[(None, "answer")] * 7, (None, "summary")]
    printed = capsys.readouterr().err
    assert printed.count("──── LLM request") == len(server.asked) == 9
    assert printed.count(", attempt 2 ────") == 1
    assert "summarise" in printed


async def test_what_fails_says_with_which_code_and_nothing_else(world: World, exporter: InMemorySpanExporter) -> None:
    world.says()

    await ask(world)

    spans = named(exporter.get_finished_spans())
    failed = [spans["chat test"][0], spans["invoke_agent pane"][0]]
    assert [(attributes(span)["error.type"], span.status.status_code.name) for span in failed] == [
        ("model_rejected", "ERROR"),
        ("model_rejected", "ERROR"),
    ]
    assert all(span.status.description is None and not span.events for span in failed)
    assert attributes(failed[1])["windowpane.outcome"] == "failed"


async def test_a_turn_that_is_stopped_says_so(world: World, exporter: InMemorySpanExporter) -> None:
    never = anyio.Event()
    world.says(Reply("So far.", before_end=never))
    async with world.engine() as engine:
        session = await engine.sessions.create()
        heard = False
        async for event in engine.turn(session.id, "Hi"):
            if isinstance(event, Delta) and not heard:
                heard = True
                await engine.cancel(session.id)

    (turn,) = named(exporter.get_finished_spans())["invoke_agent pane"]
    assert attributes(turn)["windowpane.outcome"] == "cancelled"


async def test_whoever_counts_in_this_process_is_told(world: World) -> None:
    begun: list[Operation] = []
    told: list[Measured] = []

    with telemetry.listening(begun.append, told.append):
        await ask(world)
    await ask(world)

    operations = [measured.operation for measured in told]
    assert {name: operations.count(name) for name in ("turn", "selection", "model_call", "tool_call")} == {
        "turn": 1,
        "selection": 1,
        "model_call": 2,
        "tool_call": 1,
    }
    assert sorted(begun) == sorted(name for name in operations if name != "append")
    assert all(measured.duration_s >= 0 and not measured.error for measured in told)


@pytest.mark.parametrize(
    ("model", "provider"),
    [("openai:gpt-4o", "openai"), ("google-gla:gemini", "gcp.gemini"), ("echo", "echo"), ("mine:x", "mine")],
)
def test_providers_have_the_names_of_the_conventions(model: str, provider: str) -> None:
    assert provider_of(model) == provider


async def test_a_turn_belongs_to_the_trace_that_its_request_names_and_no_span_holds_a_query(
    world: World, exporter: InMemorySpanExporter
) -> None:
    traced = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    async with served(world) as client:
        session = await new_session(client)
        path = f"/api/sessions/{session}/messages"
        await client.post(path, json={"content": "Hi"}, params={"token": "planted-query"}, headers=traced)

    (turn,) = named(exporter.get_finished_spans())["invoke_agent pane"]
    assert turn.context is not None
    assert f"{turn.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert "planted-query" not in "".join(span.to_json() for span in exporter.get_finished_spans())


async def test_our_own_spans_are_read_back_as_the_conversation_that_they_tell(
    world: World, exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    session = await ask(world)
    spans = exporter.get_finished_spans()
    async with served(World(world.root.parent / "other")) as http, Client(str(http.base_url)) as pane:
        sending = OTLPSpanExporter(endpoint=f"{str(http.base_url).rstrip('/')}/api/otlp/v1/traces")
        result = await anyio.to_thread.run_sync(sending.export, spans)
        await anyio.to_thread.run_sync(sending.shutdown)
        (view,) = (await pane.sessions.list()).sessions
        told = [message for message in (await pane.sessions.messages(view.id)).messages if message.role != "user"]
        calls = (await pane.sessions.calls(view.id)).calls

    assert result.name == "SUCCESS"
    assert view.origin is not None
    assert (view.title, view.origin.conversation) == ("A planted question", session)
    assert [(call.turn, call.step, call.usage) for call in calls] == [(1, 1, Usage(11, 7, 5, 3)), (1, 2, None)]
    (answered,) = told
    assert isinstance(answered, AssistantMessage)
    look, found = answered.model_reply.steps
    assert [(call.offered_name, call.arguments) for call in look.tool_calls] == [
        ("files__read", '{"path": "planted-argument"}')
    ]
    assert [result.content for result in look.results] == ["the planted result of planted-argument"]
    assert found.text == "The planted answer."
