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
from typing import Any

import pytest

from calls.test_ledger import PROVIDERS, Provider
from windowpane.api.turns import CallList, CallRecord
from windowpane.context.events import ModelReplied, SummaryMade
from windowpane.context.ids import SessionId
from windowpane.context.messages import Usage
from windowpane.local.pane import LocalPane
from windowpane.testing import World, drain, tool
from wire import anthropic_messages, google_gemini, openai_chat, openai_responses
from wire.reply import WireCall, WireReply
from wire.server import Answer, Asked, running

TURNS = 8
FILE = (False, "The file says: “ä 中”.")
NOT_JSON = (
    True,
    "The arguments are not valid JSON (Unterminated string starting at: line 1 column 10 (char 9)). "
    "Send them again as one JSON object.",
)
SUMMARY = {"overview": "The user asks for files.", "current_topic": "files"}


@dataclass(frozen=True)
class Odd:
    """How one protocol says what the others say in another way.

    `results` reads the results of tools from a body: whether each is an error, and what it says. `cut_after` is
    how many events come before the connection breaks, `cut_usage` what they report.
    """

    frames: Callable[[WireReply], tuple[bytes, ...]]
    refuse: Callable[[WireReply], Answer]
    results: Callable[[Any], list[tuple[bool, str]]]
    malformed: str = '{"path": "b.txt'
    malformed_result: tuple[bool, str] = NOT_JSON
    cut_after: int = 2
    cut_usage: Usage | None = None


def _openai_refusal(reply: WireReply) -> Answer:
    return openai_chat.answer(replace(reply, finish="content_filter"))


def _chat_results(body: Any) -> list[tuple[bool, str]]:
    return [_result(message["content"]) for message in body["messages"] if message["role"] == "tool"]


def _responses_results(body: Any) -> list[tuple[bool, str]]:
    return [_result(item["output"]) for item in body["input"] if item.get("type") == "function_call_output"]


def _result(output: str) -> tuple[bool, str]:
    """Return what a result says. These protocols have no place for an error but the text."""
    try:
        return True, json.loads(output)["error"]
    except ValueError:
        return False, output


def _anthropic_results(body: Any) -> list[tuple[bool, str]]:
    blocks = [block for message in body["messages"] for block in message["content"]]
    return [(block["is_error"], block["content"][0]["text"]) for block in blocks if block["type"] == "tool_result"]


def _google_results(body: Any) -> list[tuple[bool, str]]:
    parts = [part for content in body["contents"] for part in content["parts"]]
    said = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
    return [("error" in each, each.get("error") or each.get("return_value")) for each in said]


ODD = {
    "openai": Odd(openai_chat.frames, _openai_refusal, _chat_results),
    "ollama": Odd(openai_chat.frames, _openai_refusal, _chat_results),
    "responses": Odd(openai_responses.frames, openai_responses.refusal, _responses_results, cut_after=5),
    "anthropic": Odd(
        anthropic_messages.frames,
        lambda reply: anthropic_messages.answer(replace(reply, finish="refusal")),
        _anthropic_results,
        cut_after=4,
        cut_usage=Usage(5000, 1),
    ),
    # Its arguments are JSON by protocol: what can be wrong is what they say.
    "google": Odd(
        google_gemini.frames,
        lambda reply: google_gemini.answer(replace(reply, finish="SAFETY")),
        _google_results,
        malformed='{"path": 7}',
        malformed_result=FILE,
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
    finished: tuple[tuple[int, str], ...]
    odd: Odd
    cost_usd: Decimal | None
    summary: CallRecord


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
            log = [entry.event for entry in await pane.engine.store.read(SessionId(session.id))]
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
                tuple((event.turn, event.step.finish_reason) for event in log if isinstance(event, ModelReplied)),
                ODD[name],
                (await pane.sessions.statistics(session.id)).cost_usd,
                await pane.sessions.call(session.id, len(server.asked)),
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
    read = tool("read", FILE[1], permission="never", parameters=takes, description="Read a file.")
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


def test_every_byte_of_a_summary_call_has_an_owner(held: Held) -> None:
    record = held.summary
    assert record.body is not None
    assert record.body == held.asked[-1].raw.decode()
    assert (record.spans[0].start, record.spans[-1].end) == (0, len(record.body))
    owned: dict[str, str] = {}
    for span in record.spans:
        owned[span.owner] = owned.get(span.owner, "") + record.body[span.start : span.end]
    lines = [(owner, text) for owner, text in owned.items() if owner.startswith("message ")]
    first, *_, last = lines
    assert (first[0], first[1][:17]) == ("message 2: user", "USER: Message 1: ")
    assert "Noted" in last[1]
    # What was said belongs to the messages alone, and the task to itself.
    rest = "".join(text for owner, text in owned.items() if not owner.startswith("message "))
    assert not [word for word in ("Message", "Noted", "Done") if word in rest]
    assert "You sum up conversations" in owned["the task"]
    assert "record_summary" in owned["windowpane:record_summary"]
    assert "[[end " in owned["the frame of the conversation"]


def test_what_was_used_and_what_it_costs_is_what_the_server_says(held: Held) -> None:
    price = (held.served.input_tokens * 2 + held.served.output_tokens * 10) / Decimal(1_000_000)

    assert (held.listed.usage, held.cost_usd) == (held.served, price)
    assert sum((call.usage or Usage() for call in held.listed.calls), Usage()) == held.served


def test_the_results_of_tools_that_failed_reach_the_model_as_errors(held: Held) -> None:
    results = [
        FILE,
        held.odd.malformed_result,
        (True, "There is no tool named 'files__burn'. Use one of the tools you were given."),
        (True, "KeyError: 'missing'"),
    ]

    assert held.odd.results(json.loads(held.asked[4].raw)) == results
    built = [(message.is_error, message.content) for message in held.records[4].messages if message.role == "tool"]
    assert built == results


def test_each_reply_tells_how_it_ended(held: Held) -> None:
    assert held.finished == (
        (1, "tool_call"),
        (1, "tool_call"),
        (1, "stop"),
        # Turn 2 broke off without an end.
        (3, "content_filter"),
        *((turn, "stop") for turn in range(4, TURNS + 1)),
    )


def test_an_exported_session_that_is_imported_has_the_same_calls(held: Held) -> None:
    assert replace(held.imported, calls=()) == replace(held.listed, calls=())
    assert held.imported.calls == held.listed.calls
    assert held.imported_bodies == held.bodies
    assert held.imported_records == held.records
