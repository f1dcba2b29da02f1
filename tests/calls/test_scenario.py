"""One conversation in which everything happens, over every protocol: nothing that was sent or used is missing.

Two tool rounds, malformed arguments, an invented tool, a tool that fails, thinking, a 429 and a 500 before success, a
stream that breaks off, a refusal, and a summary.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import pytest

from calls.test_ledger import PROVIDERS, Provider
from windowpane.api.turns import CallList, CallRecord
from windowpane.context.events import SummaryMade
from windowpane.context.ids import SessionId
from windowpane.context.messages import Usage
from windowpane.local.pane import LocalPane
from windowpane.testing import World, drain, tool
from wire import anthropic_messages, google_gemini, openai_chat, openai_responses
from wire.reply import WireCall, WireReply
from wire.server import Answer, Asked, running

TURNS = 8
SUMMARY = {"overview": "The user asks for files.", "current_topic": "files"}


@dataclass(frozen=True)
class Odd:
    """How one protocol says what the others say in another way.

    `cut_after` is how many events come before the connection breaks, `cut_usage` what they report.
    """

    frames: Callable[[WireReply], tuple[bytes, ...]]
    refuse: Callable[[WireReply], Answer]
    malformed: str = '{"path": "b.txt'
    cut_after: int = 2
    cut_usage: Usage | None = None


def _openai_refusal(reply: WireReply) -> Answer:
    return openai_chat.answer(replace(reply, finish="content_filter"))


ODD = {
    "openai": Odd(openai_chat.frames, _openai_refusal),
    "ollama": Odd(openai_chat.frames, _openai_refusal),
    "responses": Odd(openai_responses.frames, openai_responses.refusal, cut_after=5),
    "anthropic": Odd(
        anthropic_messages.frames,
        lambda reply: anthropic_messages.answer(replace(reply, finish="refusal")),
        cut_after=4,
        cut_usage=Usage(5000, 1),
    ),
    # Its arguments are JSON by protocol: what can be wrong is what they say.
    "google": Odd(
        google_gemini.frames,
        lambda reply: google_gemini.answer(replace(reply, finish="SAFETY")),
        malformed='{"path": 7}',
        cut_after=1,
        cut_usage=Usage(5000, 30),
    ),
}


@dataclass(frozen=True)
class Held:
    """A conversation that was held, and what its server was asked and said that it used."""

    records: tuple[CallRecord, ...]
    listed: CallList
    imported: CallList
    imported_records: tuple[CallRecord, ...]
    bodies: tuple[bytes | None, ...]
    imported_bodies: tuple[bytes | None, ...]
    asked: list[Asked]
    served: Usage
    cost_usd: Decimal | None


def _script(provider: Provider, odd: Odd) -> tuple[list[Answer], Usage]:
    """Return the answers in their order, and what they report together."""
    first = WireCall("c1", "files__read", (json.dumps({"path": "ä.txt"}),))
    second = (
        WireCall("c2", "files__read", (odd.malformed,)),
        WireCall("c3", "files__burn"),
        WireCall("c4", "files__fail"),
    )
    thinking = WireReply(
        ("Let me see.",), thinking=("I should read it.",), calls=(first,), input_tokens=100, output_tokens=10
    )
    again = WireReply(("And once more.",), calls=second, input_tokens=220, output_tokens=20)
    done = WireReply(("Done: “ä”.",), input_tokens=330, output_tokens=30)
    broken = WireReply(("Half of", " it"), input_tokens=5000, output_tokens=30)
    refused = WireReply(("I cannot help with that.",), input_tokens=440, output_tokens=8)
    plain = [WireReply((f"Noted {turn}.",), input_tokens=500 + turn, output_tokens=5) for turn in range(4, TURNS + 1)]
    summary = WireReply(
        calls=(WireCall("c9", "record_summary", (json.dumps(SUMMARY),)),), input_tokens=900, output_tokens=50
    )
    answers = [
        provider.problem(429),
        provider.problem(500),
        *map(provider.answer, (thinking, again, done)),
        Answer((*odd.frames(broken)[: odd.cut_after], "cut")),
        odd.refuse(refused),
        *map(provider.answer, (*plain, summary)),
    ]
    served = sum(
        (Usage(said.input_tokens, said.output_tokens) for said in (thinking, again, done, refused, *plain, summary)),
        odd.cut_usage or Usage(),
    )
    return answers, served


@pytest.fixture(scope="module", params=PROVIDERS)
def held(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Held:
    """Hold the conversation once for all tests."""
    return asyncio.run(_hold(request.param, tmp_path_factory.mktemp("scenario")))


async def _hold(name: str, folder: Path) -> Held:
    provider = PROVIDERS[name]
    world = _world(folder, provider)
    answers, served = _script(provider, ODD[name])
    async with running(*answers) as server:
        world.environ = provider.environ(server.url)
        async with world.pane() as pane:
            session = await pane.sessions.create()
            for turn in range(1, TURNS + 1):
                await drain(pane.turn(session.id, f"Message {turn}: read “ä.txt”, please."))
            async for entry in pane.engine.store.subscribe(SessionId(session.id), after=0):
                if isinstance(entry.event, SummaryMade):
                    break
            copy = await pane.sessions.import_(await pane.sessions.export(session.id))
            return Held(
                await _records(pane, session.id),
                await pane.sessions.calls(session.id),
                await pane.sessions.calls(copy.id),
                await _records(pane, copy.id),
                await _bodies(pane, session.id),
                await _bodies(pane, copy.id),
                server.asked,
                served,
                (await pane.sessions.statistics(session.id)).cost_usd,
            )


def _world(folder: Path, provider: Provider) -> World:
    world = World(folder / "agents")
    prices = f"prices:\n  {provider.model}: {{input: 2, output: 10}}\n"
    world.write(
        "agent.yaml",
        f"model: {provider.model}\nworking_context: false\nmode: thinking\nmemory: {{messages: 8}}\n{prices}",
    )
    world.rule("tone", "Be brief: “short” sentences only, please. " * 3, include="always")
    takes = {"type": "object", "properties": {"path": {"type": "string", "title": "Path"}}, "required": ["path"]}
    read = tool("read", "The file says: “ä 中”.", permission="never", parameters=takes, description="Read a file.")
    # It asks for an argument that no call has.
    fail = tool("fail", "{missing}", permission="never")
    world.toolbox.put("files", [read, fail])
    return world


async def _records(pane: LocalPane, session_id: str) -> tuple[CallRecord, ...]:
    numbers = [
        (turn, call.number) for turn in range(1, TURNS + 1) for call in (await pane.turns.calls(session_id, turn)).calls
    ]
    return tuple([await pane.turns.call(session_id, turn, number) for turn, number in numbers])


async def _bodies(pane: LocalPane, session_id: str) -> tuple[bytes | None, ...]:
    session = SessionId(session_id)
    wires = [await pane.engine.calls.wire(session, call) for call in await pane.engine.calls.of_session(session)]
    return tuple(wire.body if wire else None for wire in wires)


pytestmark = pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")  # compiling google-genai


def test_every_request_has_a_record_that_tells_what_became_of_it(held: Held) -> None:
    assert [
        (call.purpose, call.turn, call.step, call.attempt, call.outcome, call.status) for call in held.listed.calls
    ] == [
        ("answer", 1, 1, 1, "retried", 429),
        ("answer", 1, 1, 2, "retried", 500),
        ("answer", 1, 1, 3, "complete", 200),
        ("answer", 1, 2, 1, "complete", 200),
        ("answer", 1, 3, 1, "complete", 200),
        ("answer", 2, 1, 1, "cut", 200),
        *(("answer", turn, 1, 1, "complete", 200) for turn in range(3, TURNS + 1)),
        ("summary", None, 1, 1, "complete", 200),
    ]
    assert len(held.listed.calls) == len(held.asked)


def test_every_body_is_put_together_again_to_the_byte(held: Held) -> None:
    assert held.bodies == tuple(asked.raw for asked in held.asked)


def test_every_byte_of_every_answer_has_an_owner_and_no_word_belongs_to_the_envelope(held: Held) -> None:
    for record in held.records:
        assert record.body is not None
        assert (record.spans[0].start, record.spans[-1].end) == (0, len(record.body))
        assert all(one.end == other.start for one, other in zip(record.spans, record.spans[1:], strict=False))
        envelope = "".join(record.body[span.start : span.end] for span in record.spans if span.kind == "mapping")
        for word in (
            "ä",
            "Message",
            "Noted",
            "Half",
            "see",
            "should",
            "brief",
            "burn",
            "files__",
            "cannot",
            "c1",
            "b.txt",
        ):
            assert word not in envelope
    later = held.records[4]
    assert later.body is not None
    steps = [later.body[span.start : span.end] for span in later.spans if span.kind == "step"]
    assert all(any(call in step for step in steps) for call in ("files__burn", "files__fail", "files__read"))


def test_what_was_used_and_what_it_costs_is_what_the_server_says(held: Held) -> None:
    price = (held.served.input_tokens * 2 + held.served.output_tokens * 10) / Decimal(1_000_000)

    assert (held.listed.usage, held.cost_usd) == (held.served, price)
    assert sum((call.usage or Usage() for call in held.listed.calls), Usage()) == held.served


def test_an_exported_session_that_is_imported_has_the_same_calls(held: Held) -> None:
    assert replace(held.imported, calls=()) == replace(held.listed, calls=())
    assert held.imported.calls == held.listed.calls
    assert held.imported_bodies == held.bodies
    assert held.imported_records == held.records
