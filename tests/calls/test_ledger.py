"""Every HTTP request to a provider is in the ledger, to the byte, with what it used and how it ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest

from windowpane.context.events import SummaryMade
from windowpane.context.ids import SessionId
from windowpane.context.messages import Usage
from windowpane.engine import Engine
from windowpane.models.prices import price
from windowpane.testing import World, drain, tool
from wire import anthropic_messages, google_gemini, openai_chat, openai_responses
from wire.reply import WireCall, WireReply
from wire.server import Answer, WireServer, running

KEY = "sk-planted-key-0123456789"


@dataclass(frozen=True)
class Provider:
    """A provider's model, its variables, and how its server words answers and errors."""

    model: str
    environ: Callable[[str], dict[str, str]]
    answer: Callable[[WireReply], Answer]
    problem: Callable[[int], Answer]


def _openai(url: str) -> dict[str, str]:
    return {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": KEY}


PROVIDERS = {
    "openai": Provider(
        "openai:gpt-4o", _openai, openai_chat.answer, lambda status: openai_chat.problem(status, "not now")
    ),
    "responses": Provider(
        "openai-responses:gpt-4o",
        _openai,
        openai_responses.answer,
        lambda status: openai_chat.problem(status, "not now"),
    ),
    "anthropic": Provider(
        "anthropic:claude-haiku-4-5",
        lambda url: {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY},
        anthropic_messages.answer,
        lambda status: anthropic_messages.problem(status, "not now", type_="api_error"),
    ),
    "google": Provider(
        "google:gemini-2.5-flash",
        lambda url: {"GOOGLE_GEMINI_BASE_URL": url, "GOOGLE_API_KEY": KEY},
        google_gemini.answer,
        lambda status: google_gemini.problem(status, "not now", code="UNAVAILABLE"),
    ),
    "ollama": Provider(
        "ollama:llama3.2",
        lambda url: {"OLLAMA_BASE_URL": url},
        openai_chat.answer,
        lambda status: openai_chat.problem(status, "not now"),
    ),
}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "agents")


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")  # compiling google-genai
@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS)
async def test_every_request_has_a_record_from_which_its_bytes_are_put_together_again(
    world: World, provider: Provider
) -> None:
    world.write("agent.yaml", f"model: {provider.model}\nworking_context: false\n")
    world.rule("tone", "Be brief. " * 40, include="always")
    world.toolbox.put("files", [tool("read", "The file says: “ä 中”. " * 20, permission="never")])
    call = WireCall("c1", "files__read", (json.dumps({"path": "ä.txt"}),))
    answers = [
        provider.problem(500),
        provider.answer(WireReply(("Let me see.",), calls=(call,), input_tokens=100, output_tokens=10)),
        provider.answer(WireReply(("Done: “ä”.",), input_tokens=150, output_tokens=20)),
        provider.answer(WireReply(("Again.",), input_tokens=160, output_tokens=5)),
    ]
    async with running(*answers) as server:
        world.environ = provider.environ(server.url)
        async with world.engine() as engine:
            session = await engine.sessions.create()
            await drain(engine.turn(session.id, "Read “ä.txt”, please."))
            await drain(engine.turn(session.id, "Thank you."))
            calls = await engine.calls.of_session(session.id)
            await _assert_bytes(engine, session.id, server)
            first, second = (await engine.calls.of_turn(session.id, 1), await engine.calls.of_turn(session.id, 2))

    assert [(call.turn, call.step, call.attempt, call.outcome, call.status, call.usage) for call in calls] == [
        (1, 1, 1, "retried", 500, None),
        (1, 1, 2, "complete", 200, Usage(100, 10)),
        (1, 2, 1, "complete", 200, Usage(150, 20)),
        (2, 1, 1, "complete", 200, Usage(160, 5)),
    ]
    assert (len(first), len(second)) == (3, 1)
    assert {call.purpose for call in calls} == {"answer"}
    assert {call.model for call in calls} == {provider.model}


async def _assert_bytes(engine: Engine, session: SessionId, server: WireServer) -> None:
    calls = await engine.calls.of_session(session)
    assert len(calls) == len(server.asked)
    for call, asked in zip(calls, server.asked, strict=True):
        wire = await engine.calls.wire(session, call)
        assert wire is not None
        assert (wire.head.method, wire.body, call.size) == (asked.method, asked.raw, len(asked.raw))
        assert wire.head.url == f"{server.url}{asked.path}"
        assert KEY not in str(wire.head)
        assert {name for name, _ in wire.head.headers} == set(asked.headers) - {"content-length"}


async def test_a_cleared_history_takes_its_calls_along(world: World) -> None:
    world.write("agent.yaml", "model: openai:gpt-4o\nworking_context: false\n")
    async with running(openai_chat.answer(WireReply(("Noted.",)))) as server:
        world.environ = _openai(server.url)
        async with world.engine() as engine:
            session = await engine.sessions.create()
            await drain(engine.turn(session.id, "My number is 4711."))
            await engine.conversations.clear(session.id)

            assert await engine.calls.of_session(session.id) == ()
            hashes = await engine.store.blob_hashes(session.id)
            kept = await engine.store.blobs(session.id, hashes)
            assert kept == {}


async def test_a_stream_that_breaks_off_keeps_the_tokens_that_were_reported(world: World) -> None:
    world.write("agent.yaml", "model: anthropic:claude-haiku-4-5\nworking_context: false\n")
    frames = anthropic_messages.frames(WireReply(("Half of", " it"), input_tokens=5000, output_tokens=30))
    async with running(Answer((*frames[:4], "cut"))) as server:
        world.environ = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": KEY}
        async with world.engine() as engine:
            session = await engine.sessions.create()
            await drain(engine.turn(session.id, "Hi"))
            (call,) = await engine.calls.of_turn(session.id, 1)

    assert (call.outcome, call.status, call.usage) == ("cut", 200, Usage(5000, 1))
    assert call.reason


async def test_a_model_in_this_process_says_that_the_wire_was_not_seen(world: World) -> None:
    world.says("Hello.")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "Hi"))
        (call,) = await engine.calls.of_turn(session.id, 1)

        assert (call.seen, call.outcome, call.step, call.usage) == (False, "complete", 1, None)
        assert await engine.calls.wire(session.id, call) is None


async def test_the_call_for_a_summary_is_recorded_without_a_turn(world: World) -> None:
    world.write("agent.yaml", "model: openai:gpt-4o\nworking_context: false\nmemory: {messages: 8}\n")
    summary = {"overview": "The user lists shades of paint.", "current_topic": "paint"}
    answers = [openai_chat.answer(WireReply((f"Noted {number}.",))) for number in range(7)]
    written = WireReply(calls=(WireCall("c1", "record_summary", (json.dumps(summary),)),), input_tokens=900)
    async with running(*answers, openai_chat.answer(written)) as server:
        world.environ = _openai(server.url)
        async with world.engine() as engine:
            session = await engine.sessions.create()
            for number in range(7):
                await drain(engine.turn(session.id, f"Shade {number} of the wall in the hall."))
            async for entry in engine.store.subscribe(session.id, after=0):
                if isinstance(entry.event, SummaryMade):
                    break
            calls = await engine.calls.of_session(session.id)
            await _assert_bytes(engine, session.id, server)

    assert [(call.purpose, call.turn) for call in calls] == [
        *(("answer", turn) for turn in range(1, 8)),
        ("summary", None),
    ]
    assert calls[-1].usage == Usage(900, 7)


async def test_the_result_of_a_tool_that_failed_reaches_the_provider_as_an_error(world: World) -> None:
    world.write("agent.yaml", "model: anthropic:claude-haiku-4-5\nworking_context: false\n")
    world.toolbox.put("files", [tool("read", permission="never")])
    invented = WireReply(calls=(WireCall("c1", "files__burn"), WireCall("c2", "files__read")))
    answers = (anthropic_messages.answer(invented), anthropic_messages.answer(WireReply(("I cannot.",))))
    async with running(*answers) as server:
        world.environ = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": KEY}
        async with world.engine() as engine:
            session = await engine.sessions.create()
            await drain(engine.turn(session.id, "Burn it"))

    results = server.asked[1].body["messages"][-1]["content"]
    assert [(part["tool_use_id"], part["is_error"]) for part in results] == [("c1", True), ("c2", False)]


async def test_a_session_used_what_its_provider_counted_and_says_what_is_not_known(world: World) -> None:
    world.write("agent.yaml", "model: anthropic:claude-haiku-4-5\nworking_context: false\n")
    broken = anthropic_messages.frames(WireReply(("Half of", " it"), input_tokens=5000))
    answers = [
        anthropic_messages.problem(529, "busy", type_="overloaded_error"),
        anthropic_messages.answer(WireReply(("One.",), input_tokens=100, output_tokens=10)),
        Answer((*broken[:4], "cut")),
        anthropic_messages.answer(WireReply(("Two.",), input_tokens=200, output_tokens=20)),
    ]
    async with running(*answers) as server:
        world.environ = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": KEY}
        async with world.pane() as pane:
            session = await pane.sessions.create()
            for message in ("One", "Two", "Three"):
                await drain(pane.turn(session.id, message))
                await pane.sessions.statistics(session.id)
            found = await pane.sessions.statistics(session.id)
            listed = await pane.sessions.calls(session.id)
            first = await pane.turns.usage(session.id, 1)

    assert found.usage == listed.usage == Usage(100 + 5000 + 200, 10 + 1 + 20)
    assert (found.call_count, found.calls_without_usage, found.calls_without_price) == (4, 1, 3)
    # A server that only speaks the protocol has no list price.
    assert (found.cost_usd, first.cost_usd, first.usage) == (None, None, Usage(100, 10))


def test_a_list_price_is_that_of_the_provider_alone() -> None:
    used = Usage(1_000_000, 0)

    assert price("anthropic:claude-haiku-4-5", used, url="https://api.anthropic.com/v1/messages") == Decimal(1)
    assert price("anthropic:claude-haiku-4-5", used) == Decimal(1)
    assert price("anthropic:claude-haiku-4-5", used, url="http://127.0.0.1:4000/v1/messages") is None
