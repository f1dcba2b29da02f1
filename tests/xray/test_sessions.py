"""Calls are recorded as sessions, found by what programs tell, else by what they say, with turns and attempts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from windowpane.cli.render_xray import draw_comparison, draw_report
from windowpane.cli.terminal import Screen
from windowpane.context.ids import SessionId
from windowpane.context.messages import AssistantMessage, Usage, UserMessage
from windowpane.errors import RecordedSessionError
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World
from windowpane.xray.marks import ClientMarks, marks_of
from wire import anthropic_messages, google_gemini, ollama_chat, openai_chat, openai_responses
from wire.reply import WireCall, WireReply
from wire.server import json_answer, running
from xray.place import Xray, xray

TOOLS = [{"name": "read", "input_schema": {"type": "object"}}]
CLAUDE = {"user-agent": "claude-cli/2.1.0 (external, cli)", "x-claude-code-session-id": "c0ffee"}
READ = WireCall("toolu_1", "read", ('{"path": "/etc/hosts"}',))


def _user(*blocks: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in blocks]}


def _said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


CALLED = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "/etc/hosts"}}],
}
RESULT = {
    "role": "user",
    "content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "127.0.0.1 localhost"},
        {"type": "text", "text": "<system-reminder>Be brief.</system-reminder>"},
    ],
}


class Program:
    """A program that speaks Anthropic's protocol through the proxy."""

    def __init__(self, client: httpx2.AsyncClient, proxy: Xray, headers: dict[str, str]) -> None:
        self._client = client
        self._proxy = proxy
        self._headers = headers

    async def ask(self, *messages: dict[str, Any], path: str = "/v1/messages", **fields: Any) -> int:
        """Send a request and return the status of its answer, once it is recorded."""
        body = {"model": "claude-opus-4-6", "max_tokens": 100, "system": "You are one.", **fields}
        body = {"tools": TOOLS, **body, "messages": list(messages)}
        url = f"{self._proxy.url}/anthropic{path}"
        answer = await self._client.post(url, json=body, headers=self._headers, timeout=None)
        await self._proxy.app.recorder.settled()
        return answer.status_code


async def test_a_turn_has_the_steps_results_and_attempts_of_its_calls(world: World) -> None:
    note = "<system-reminder>Today is Monday.</system-reminder>"
    answers = [
        anthropic_messages.problem(529, "overloaded", type_="overloaded_error"),
        anthropic_messages.answer(WireReply(thinking=("Hm.",), text=("Let me look.",), calls=(READ,))),
        anthropic_messages.answer(WireReply(text=("One host.",), input_tokens=20, output_tokens=3, cached_tokens=100)),
        anthropic_messages.answer(WireReply(text=("Bye.",))),
    ]
    async with running(*answers) as server, xray(world, server.url) as proxy, httpx2.AsyncClient() as client:
        program = Program(client, proxy, CLAUDE)
        first = _user(note, "Which hosts?")
        assert await program.ask(first) == 529
        await program.ask(first)
        await program.ask(first, CALLED, RESULT)
        await program.ask(first, CALLED, RESULT, _said("One host."), _user("Thank you."))
        (session,) = await proxy.sessions()
        view = await proxy.pane.sessions.get(session)
        page = await proxy.pane.sessions.messages(session)
        calls = await proxy.pane.sessions.calls(session)
        bodies = [await proxy.engine.calls.wire(view.id, call) for call in await proxy.engine.calls.of_session(view.id)]
        await proxy.pane.sessions.clear_history(session)
        left = await proxy.engine.store.blob_hashes(session)

    assert left == []
    assert view.origin is not None
    assert (view.agent, view.title, view.origin.program, view.origin.version, view.origin.conversation) == (
        "xray:claude-code",
        "Which hosts?",
        "claude-code",
        "2.1.0",
        "c0ffee",
    )
    assert [(call.turn, call.step, call.attempt, call.outcome, call.status, call.usage) for call in calls.calls] == [
        (1, 1, 1, "retried", 529, None),
        (1, 1, 2, "complete", 200, Usage(11, 7)),
        (1, 2, 1, "complete", 200, Usage(120, 3, cache_read_tokens=100)),
        (2, 1, 1, "complete", 200, Usage(11, 7)),
    ]
    asked, answered, thanked, bye = page.messages
    assert isinstance(asked, UserMessage)
    assert isinstance(answered, AssistantMessage)
    assert isinstance(thanked, UserMessage)
    assert isinstance(bye, AssistantMessage)
    assert (asked.content, thanked.content, bye.model_reply.text) == ("Which hosts?", "Thank you.", "Bye.")
    look, found = answered.model_reply.steps
    assert (look.thinking, look.text, str(look.tool_calls[0].ref)) == ("Hm.", "Let me look.", "client:read")
    assert [result.content for result in look.results] == ["127.0.0.1 localhost"]
    assert (found.text, found.finish_reason) == ("One host.", "end_turn")
    assert view.observed == ("/etc/hosts",)
    assert [wire and wire.body for wire in bodies] == [asked.raw for asked in server.asked]


def _google_asks(*contents: Any) -> tuple[str, dict[str, Any]]:
    return "/google/v1beta/models/gemini-2.5-flash:generateContent", {"contents": list(contents)}


def _ollama_asks(*messages: Any) -> tuple[str, dict[str, Any]]:
    return "/ollama/api/chat", {"model": "llama", "stream": False, "messages": list(messages)}


UNNAMED: dict[str, Any] = {
    "google": (
        google_gemini.document,
        _google_asks,
        {"role": "user", "parts": [{"text": "What is in it?"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {"path": "/etc/hosts"}, "id": "own_7"}}]},
        {
            "role": "user",
            "parts": [{"functionResponse": {"id": "own_7", "name": "read", "response": {"output": "127.0.0.1"}}}],
        },
    ),
    "ollama": (
        ollama_chat.document,
        _ollama_asks,
        {"role": "user", "content": "What is in it?"},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "read", "arguments": {}}}]},
        {"role": "tool", "tool_name": "read", "content": "127.0.0.1"},
    ),
}


@pytest.mark.parametrize("provider", UNNAMED)
async def test_the_result_of_a_call_that_has_no_id_goes_on_with_its_turn(world: World, provider: str) -> None:
    document, asks, question, called, result = UNNAMED[provider]
    answers = [document(WireReply(calls=(READ,))), document(WireReply(text=("One name.",)))]
    async with running(*answers) as server, xray(world, server.url) as proxy, httpx2.AsyncClient() as client:
        for path, body in (asks(question), asks(question, called, result)):
            await client.post(proxy.url + path, json=body, timeout=None)
            await proxy.app.recorder.settled()
        (session,) = await proxy.sessions()
        page = await proxy.pane.sessions.messages(session)
        counted = await proxy.pane.analytics.dashboard()

    assert [(row.model.partition(":")[0], row.spent.turns) for row in counted.models] == [(provider, 1)]
    (answer,) = [message for message in page.messages if isinstance(message, AssistantMessage)]
    first, second = answer.model_reply.steps
    assert [
        (call.offered_name, "127.0.0.1" in back.content)
        for call, back in zip(first.tool_calls, first.results, strict=True)
    ] == [("read", True)]
    assert second.text == "One name."


async def test_subagents_are_sessions_of_their_own_and_small_calls_are_no_turns(world: World) -> None:
    said = [anthropic_messages.answer(WireReply(text=(f"{number}",))) for number in range(6)]
    counted = json_answer(200, {"input_tokens": 7})
    async with (
        running(said[0], *said[1:3], counted, *said[3:]) as server,
        xray(world, server.url) as proxy,
        httpx2.AsyncClient() as client,
    ):
        program = Program(client, proxy, CLAUDE)
        await program.ask(_user("Title of: do it"), tools=[], system="Write a title.")
        await program.ask(_user("Do it."))
        await program.ask(_user("Look into a."), system="You are a helper.", tools=[*TOOLS, *TOOLS])
        await program.ask(_user("Do it."), path="/v1/messages/count_tokens")
        await program.ask(_user("Look into b."), system="You are a helper.", tools=[*TOOLS, *TOOLS])
        # Summed up: the conversation begins with other words, and the agent is the same.
        await program.ask(_user("So far: it was done. Go on."))
        await program.ask(_user("quota"), max_tokens=1)
        main, one, other = [await proxy.pane.sessions.get(session) for session in await proxy.sessions()]
        calls = await proxy.pane.sessions.calls(main.id)

    assert [session.title for session in (main, one, other)] == ["Do it.", "Look into a.", "Look into b."]
    assert [session.origin and session.origin.parent for session in (main, one, other)] == [None, main.id, main.id]
    assert [(call.purpose, call.turn) for call in calls.calls] == [
        ("helper", None),
        ("answer", 1),
        ("count", None),
        ("answer", 2),
        ("helper", None),
    ]


async def test_conversations_without_a_name_are_told_apart_by_what_they_begin_with(world: World) -> None:
    said = [openai_chat.document(WireReply(text=(f"Answer {number}.",))) for number in range(6)]

    def request(*texts: str) -> bytes:
        roles = ("user", "assistant")
        messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
        return json.dumps({"model": "gpt-4o", "messages": [{"role": "system", "content": "Hi."}, *messages]}).encode()

    async with running(*said) as server, xray(world, server.url) as proxy, httpx2.AsyncClient() as client:
        url = f"{proxy.url}/openai/v1/chat/completions"
        for body in (
            request("Cats?"),
            request("Dogs?"),
            request("Cats?", "Answer 0.", "And kittens?"),
            # The program changed its last question before it sent it again with the answer.
            request("Dogs, quickly?", "Answer 1.", "And puppies?"),
            request("Cats?", "Answer 0.", "And kittens?", "Answer 2.", "Thanks."),
            request("Cats?"),
        ):
            await client.post(url, content=body)
            await proxy.app.recorder.settled()
        views = [await proxy.pane.sessions.get(session) for session in await proxy.sessions()]
        began = sorted(((view.title, view.turn_count) for view in views), reverse=True)

    assert began == [("Dogs?", 2), ("Cats?", 3), ("Cats?", 1)]


async def test_a_conversation_goes_on_in_its_session_when_the_proxy_was_started_again(tmp_path: Path) -> None:
    said = [anthropic_messages.answer(WireReply(text=(f"{number}",))) for number in range(4)]
    async with running(*said) as server, httpx2.AsyncClient() as client:
        for headers in (CLAUDE, {"user-agent": "mine/1"}):
            for messages in ((_user("Hi."),), (_user("Hi."), _said("0"), _user("And?"))):
                world = World(tmp_path / "agents", store=SQLiteStore(tmp_path / "sessions.db"))
                async with xray(world, server.url) as proxy:
                    await Program(client, proxy, headers).ask(*messages)
                    views = [await proxy.pane.sessions.get(session) for session in await proxy.sessions()]

    assert sorted((view.agent, view.turn_count) for view in views) == [("xray:claude-code", 2), ("xray:mine", 2)]


async def test_a_conversation_that_the_provider_keeps_is_followed_by_the_name_of_its_last_answer(world: World) -> None:
    said = [openai_responses.document(WireReply(text=("One.",))), openai_responses.document(WireReply(text=("Two.",)))]
    async with running(*said) as server, xray(world, server.url) as proxy, httpx2.AsyncClient() as client:
        url = f"{proxy.url}/openai/v1/responses"
        await client.post(url, json={"model": "gpt-5", "input": "Count."})
        await proxy.app.recorder.settled()
        await client.post(url, json={"model": "gpt-5", "input": "On.", "previous_response_id": "resp_1"})
        (session,) = await proxy.sessions()
        view = await proxy.pane.sessions.get(session)

    assert view.turn_count == 2


async def test_what_repeats_is_stored_once_over_calls_and_turns(world: World) -> None:
    rules = [{"type": "text", "text": f"Rule {number}: " + "be good. " * 40} for number in range(300)]
    system = json.dumps(rules)
    said = [anthropic_messages.answer(WireReply(text=(f"Answer {number}.",))) for number in range(60)]
    async with running(*said) as server, xray(world, server.url) as proxy, httpx2.AsyncClient() as client:
        program = Program(client, proxy, CLAUDE)
        messages: list[dict[str, Any]] = []
        for number in range(60):
            messages.append(_user(f"Question {number}? " + f"{number} " * 100))
            await program.ask(*messages, system=rules)
            messages.append(_said(f"Answer {number}."))
        (session,) = await proxy.sessions()
        hashes = await proxy.engine.store.blob_hashes(session)
        kept = sum(len(text) for text in (await proxy.engine.store.blobs(session, hashes)).values())
        calls = await proxy.engine.calls.of_session(session)
        bodies = [await proxy.engine.calls.wire(session, call) for call in calls]

    sent = sum(len(asked.raw) for asked in server.asked)
    said_once = len(system) + sum(len(json.dumps(message)) for message in messages)
    assert sent > 7_000_000
    assert kept < 3 * said_once
    assert [wire and wire.body for wire in bodies] == [asked.raw for asked in server.asked]


async def test_a_recorded_session_is_not_answered_here(world: World) -> None:
    async with (
        running(anthropic_messages.answer(WireReply(text=("Hi.",)))) as server,
        xray(world, server.url) as proxy,
        httpx2.AsyncClient() as client,
    ):
        await Program(client, proxy, CLAUDE).ask(_user("Hi."))
        (session,) = await proxy.sessions()
        with pytest.raises(RecordedSessionError):
            await proxy.pane.ask(session, "And you?")
        with pytest.raises(RecordedSessionError):
            await proxy.pane.prepare(session, "And you?")


async def test_a_turn_whose_program_left_is_closed_when_the_proxy_stops(world: World) -> None:
    answers = [
        anthropic_messages.answer(WireReply(text=("Let me look.",), calls=(READ,))),
        anthropic_messages.problem(500, "broken", type_="api_error"),
    ]
    async with running(*answers) as server, httpx2.AsyncClient() as client:
        async with xray(world, server.url) as proxy:
            await Program(client, proxy, CLAUDE).ask(_user("Hi."))
            await Program(client, proxy, {"user-agent": "other/1"}).ask(_user("Hi."))
            first, second = await proxy.sessions()
        async with world.pane() as pane:
            outcomes = [(await pane.turns.get(session, 1)).outcome for session in (first, second)]
            why = (await pane.sessions.messages(second)).messages[-1]

    assert outcomes == ["interrupted", "failed"]
    assert getattr(why, "content", "") == "broken"


async def test_the_report_says_what_broke_the_prefix_and_leaves_counts_and_probes_out(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    rest = "Say what you know. " * 600
    mark = {"cache_control": {"type": "ephemeral"}}
    reply = WireReply(text=("Yes.",), input_tokens=1, written_tokens=2999)
    whole = anthropic_messages.answer(reply)
    counted = json_answer(200, {"input_tokens": 3000})
    async with (
        running(whole, counted, whole, whole) as server,
        xray(world, server.url) as proxy,
        httpx2.AsyncClient() as client,
    ):
        program = Program(client, proxy, CLAUDE)
        first, then = _user("Do it."), (_user("Do it."), _said("Yes."), _user("Go on."))
        brief, polite = ([{"type": "text", "text": f"Be {how}. {rest}", **mark}] for how in ("brief", "polite"))
        await program.ask(first, system=brief)
        await program.ask(first, system=polite, path="/v1/messages/count_tokens")
        await program.ask(first, system=polite, max_tokens=1)
        await program.ask(*then, system=polite)
        (session,) = await proxy.sessions()
        report = await proxy.pane.sessions.xray(session)

    assert [sent.call.purpose for sent in report.calls] == ["answer", "count", "helper", "answer"]
    assert [(line.call.number, line.broke is None) for line in report.cache.calls] == [(1, True), (4, False)]
    broke = report.cache.calls[1].broke
    assert broke is not None
    assert 2500 < broke.lost_tokens < 3000
    assert (broke.at, broke.item, broke.reason, broke.since) == (
        "system block 1",
        "system introduction",
        "its text changed",
        1,
    )
    draw_report(Screen(), report)
    lines = capsys.readouterr().out.splitlines()
    cost = f"{broke.lost_tokens:,} tokens billed again, cost unknown"
    below = next(place for place, line in enumerate(lines) if line.startswith("   4  ")) + 1
    assert (
        lines[below]
        == f"      the prefix broke at system introduction (system block 1), because its text changed: {cost}"
    )
    assert [*lines[4:6], lines[below - 1]] == [
        "call  turn  outcome       bytes  tokens in  could be cached    cached    out",
        f"   1  1.1   complete  {report.calls[0].call.size:>9,}      3,000                0         0      7",
        f"   4  2.1   complete  {report.calls[3].call.size:>9,}      3,000                0         0      7",
    ]
    assert lines[below + 4 : below + 6] == [
        f"What broke the prefix ({cost}):",
        f"  system introduction: 1 break, {cost}",
    ]


async def test_a_program_whose_session_was_deleted_goes_on_in_another(world: World) -> None:
    whole = anthropic_messages.answer(WireReply(text=("Yes.",)))
    async with (
        running(whole, whole, whole) as server,
        xray(world, server.url) as proxy,
        httpx2.AsyncClient() as client,
    ):
        named, unnamed = Program(client, proxy, {**CLAUDE, "X-Session-Id": "one"}), Program(client, proxy, {})
        await named.ask(_user("Do it."))
        (first,) = await proxy.sessions()
        await proxy.pane.sessions.delete(first)
        await named.ask(_user("Do it."), _said("Yes."), _user("Go on."))
        await unnamed.ask(_user("Hello?"))
        left = [await proxy.pane.sessions.get(session) for session in await proxy.sessions()]

    assert [(view.title, view.turn_count) for view in left] == [("Go on.", 1), ("Hello?", 1)]
    assert (proxy.app.recorder.room.recorded, dict(proxy.app.recorder.room.lost)) == (3, {})


async def test_a_call_after_the_history_was_cleared_is_put_together_from_what_is_left(world: World) -> None:
    whole = anthropic_messages.answer(WireReply(text=("Yes.",)))
    async with (
        running(whole, whole) as server,
        xray(world, server.url) as proxy,
        httpx2.AsyncClient() as client,
    ):
        program, long = Program(client, proxy, CLAUDE), "Do it, and do it well. " * 20
        await program.ask(_user(long))
        (session,) = await proxy.sessions()
        await proxy.pane.sessions.clear_history(session)
        await program.ask(_user(long), _said("Yes."), _user("Go on."))
        calls = await proxy.engine.calls.of_session(SessionId(session))
        wires = [await proxy.engine.calls.wire(SessionId(session), call) for call in calls]

    assert [wire and wire.body for wire in wires] == [server.asked[1].raw]


async def test_a_comparison_says_which_part_is_too_long_to_compare(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = anthropic_messages.answer(WireReply(text=("Yes.",)))
    async with running(whole, whole) as server, xray(world, server.url) as proxy, httpx2.AsyncClient() as client:
        program = Program(client, proxy, {**CLAUDE, "X-Session-Id": "one"})
        await program.ask(_user("Do it."), system="Be brief.\n" * 10_001)
        await program.ask(_user("Do it."), system="Be polite.\n" * 10_001)
        (session,) = await proxy.sessions()
        found = await proxy.pane.sessions.compare_calls(session, 1, 2)

    draw_comparison(Screen(), found)
    (change,) = found.changes
    assert capsys.readouterr().out.splitlines()[1:] == [
        f"~ system introduction ({change.tokens:+,} tokens)",
        "    100,010 characters before, 110,011 after: too long to compare",
    ]


def test_the_name_of_a_program_may_be_any_length() -> None:
    """Looked for from each of its digits to the last, a version in this name would take hours."""
    assert marks_of({"user-agent": "tool/" + "0" * 1_000_000}, {}) == ClientMarks("tool")
