"""Scenarios that providers and their users bring about: the laws of the ledger hold in each of them."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from calls.laws import PRICES, assert_laws
from calls.test_ledger import PROVIDERS
from files.samples import png
from patience import PATIENCE_S
from server.place import new_session, served
from windowpane.calls.encodings import brotli
from windowpane.calls.recorder import CallRecorder, recording
from windowpane.calls.transport import RecordingTransport, Routes
from windowpane.context.events import CallEnded
from windowpane.context.messages import NewFile, Usage
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import FunctionTool, World, tool
from windowpane.tools.base import ToolOutput
from wire import anthropic_messages, openai_chat
from wire.reply import WireCall, WireReply
from wire.server import EVENT_STREAM, Answer, running, sse

pytestmark = pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")  # compiling google-genai
REPLY = WireReply(("Done: “ä 中”.",), input_tokens=500, output_tokens=20)


def _world(tmp_path: Path, name: str) -> World:
    model = PROVIDERS[name].model
    world = World(tmp_path / "agents", store=SQLiteStore(tmp_path / "windowpane.db"))
    settings = "working_context: false\nfinders: false\n"
    world.write("agent.yaml", f"model: {model}\n{settings}prices:\n  {model}: {PRICES}\n")
    world.toolbox.put(
        "files",
        [
            tool("read", "{path}", permission="never"),
            tool("empty", "", permission="never"),
            tool("asks", "Asked “ä”."),
        ],
    )
    return world


async def _held(
    tmp_path: Path, name: str, answers: Sequence[Answer], reported: Usage, *, without_usage: int = 0, turns: int = 1
) -> list[dict[str, Any]]:
    """Make sure that a session with these answers holds the laws, and return its turns."""
    world = _world(tmp_path, name)
    found: list[dict[str, Any]] = []
    async with running(*answers) as server:
        world.environ = PROVIDERS[name].environ(server.url)
        async with served(world) as http:
            session = await new_session(http)
            for number in range(turns):
                answer = await http.post(f"/api/sessions/{session}/messages", json={"content": f"Part {number}: “ä”?"})
                assert answer.status_code == 200, answer.text
                found.append(answer.json())
            assert len(server.asked) == len(answers)
            await assert_laws(http, server, [session], reported, without_usage=without_usage)
    return found


def _rewritten(answer: Answer, change: Callable[[bytes], bytes], size: int = 7) -> Answer:
    """Return an answer whose bytes are changed as a whole and sent a few at a time."""
    body = change(b"".join(step for step in answer.steps if isinstance(step, bytes)))
    return replace(answer, steps=tuple(body[at : at + size] for at in range(0, len(body), size)))


def _with_carriage_returns(body: bytes) -> bytes:
    return body.replace(b"\n", b"\r\n")


def _noisy(body: bytes) -> bytes:
    """Return a stream with other line ends, and comments between its events."""
    return _with_carriage_returns(body.replace(b"\n\n", b"\n\n: keep-alive\n\n"))


@pytest.mark.parametrize("name", PROVIDERS)
async def test_streams_with_comments_other_line_ends_and_characters_cut_in_two(tmp_path: Path, name: str) -> None:
    call = WireCall("c1", "files__read", ('{"path": "ä', '中"}'))
    # Google's own client takes a comment for a document.
    change = _with_carriage_returns if name == "google" else _noisy
    answers = [
        _rewritten(PROVIDERS[name].answer(replace(REPLY, calls=(call,))), change),
        _rewritten(PROVIDERS[name].answer(REPLY), change),
    ]
    (turn,) = await _held(tmp_path, name, answers, Usage(1000, 40))
    assert (turn["outcome"], turn["text"].splitlines()[-1]) == ("completed", "Done: “ä 中”.")


@pytest.mark.parametrize("name", PROVIDERS)
async def test_the_same_call_twice_an_empty_result_and_very_long_arguments(tmp_path: Path, name: str) -> None:
    long = json.dumps({"path": "“ä” \\ \n" * 15_000})
    same = [WireCall(f"c{number}", "files__read", ('{"path": "a"}',)) for number in (1, 2)]
    answers = [
        PROVIDERS[name].answer(replace(REPLY, calls=(*same, WireCall("c3", "files__empty", ("{}",))))),
        PROVIDERS[name].answer(replace(REPLY, calls=(WireCall("c4", "files__read", (long,)),))),
        PROVIDERS[name].answer(REPLY),
        PROVIDERS[name].answer(REPLY),
    ]
    turns = await _held(tmp_path, name, answers, Usage(2000, 80), turns=2)
    assert [turn["outcome"] for turn in turns] == ["completed"] * 2


def _in_many_lines(body: bytes) -> bytes:
    """Return a stream in which the documents of events are written over several lines of data."""
    lines: list[bytes] = []
    for line in body.split(b"\n"):
        data = line.removeprefix(b"data: ")
        broken = json.dumps(json.loads(data), indent=1).encode() if line != data and data[:1] == b"{" else data
        head = b"data: " if line != data else b""
        lines += [head + part for part in broken.split(b"\n")]
    return b"\r\n".join(lines)


@pytest.mark.parametrize("name", PROVIDERS)
async def test_events_with_many_lines_of_data_are_read(tmp_path: Path, name: str) -> None:
    call = WireCall("c1", "files__read", ('{"path": "data: {,"}',))
    answers = [
        _rewritten(PROVIDERS[name].answer(replace(REPLY, calls=(call,))), _in_many_lines, 500),
        _rewritten(PROVIDERS[name].answer(REPLY), _in_many_lines, 500),
    ]
    (turn,) = await _held(tmp_path, name, answers, Usage(1000, 40))
    assert turn["outcome"] == "completed"


async def test_an_answer_that_is_compressed_with_brotli(tmp_path: Path) -> None:
    packed = _rewritten(openai_chat.answer(REPLY), lambda body: brotli.compress(body))
    answer = replace(packed, headers={**EVENT_STREAM, "content-encoding": "br"})
    (turn,) = await _held(tmp_path, "openai", [answer], Usage(500, 20))
    assert turn["text"] == "Done: “ä 中”."


async def test_usage_that_is_reported_in_every_event_counts_once(tmp_path: Path) -> None:
    def running_usage(count: int) -> dict[str, Any]:
        return {"prompt_tokens": 500, "completion_tokens": count, "total_tokens": 500 + count}

    frames: list[bytes] = []
    for count, frame in enumerate(openai_chat.frames(REPLY)[:-1], 1):
        document = json.loads(frame.removeprefix(b"data: "))
        frames.append(sse({**document, "usage": running_usage(count)}))
    last: dict[str, Any] = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []}
    twice = [sse({**last, "usage": running_usage(20)})] * 2
    (turn,) = await _held(tmp_path, "openai", [Answer((*frames, *twice, openai_chat.DONE))], Usage(500, 20))
    assert turn["outcome"] == "completed"


@pytest.mark.parametrize("status", [529, 503])
async def test_an_overloaded_server_is_tried_again_and_every_try_is_a_call(tmp_path: Path, status: int) -> None:
    busy = anthropic_messages.problem(status, "Overloaded", type_="overloaded_error", headers={"retry-after": "0"})
    answers = [busy, busy, anthropic_messages.answer(REPLY)]
    (turn,) = await _held(tmp_path, "anthropic", answers, Usage(500, 20), without_usage=2)
    assert turn["outcome"] == "completed"


async def test_thinking_of_several_steps_goes_back_with_its_signatures_also_where_it_is_redacted(
    tmp_path: Path,
) -> None:
    def redacted(reply: WireReply) -> Answer:
        start, ping, *rest = anthropic_messages.frames(reply)
        block = {"type": "redacted_thinking", "data": "c2VjcmV0"}
        first = [
            anthropic_messages.event("content_block_start", {"index": 90, "content_block": block}),
            anthropic_messages.event("content_block_stop", {"index": 90}),
        ]
        return Answer((start, ping, *first, *rest))

    thinking = tuple(f"Thought “{number}”. " for number in range(500))
    calls = [(WireCall(f"c{step}", "files__read", ('{"path": "a"}',)),) for step in range(3)]
    steps = [redacted(replace(REPLY, thinking=thinking, calls=call)) for call in calls]
    (turn,) = await _held(tmp_path, "anthropic", [*steps, anthropic_messages.answer(REPLY)], Usage(2000, 80))
    assert turn["outcome"] == "completed"


@pytest.mark.parametrize(
    ("name", "finish"),
    [("anthropic", "refusal"), ("openai", "content_filter"), ("google", "SAFETY"), ("anthropic", "max_tokens")],
)
async def test_a_refusal_and_a_call_that_is_cut_at_the_limit_are_counted(
    tmp_path: Path, name: str, finish: str
) -> None:
    cut = WireCall("c1", "files__read", ('{"path": "a',)) if finish == "max_tokens" else None
    answers = [PROVIDERS[name].answer(replace(REPLY, finish=finish, calls=(cut,) if cut else ()))]
    answers += [PROVIDERS[name].answer(REPLY)] if cut else []
    await _held(tmp_path, name, answers, Usage(500 * len(answers), 20 * len(answers)))


async def test_lone_halves_of_characters_and_escapes_are_in_the_ledger_as_they_were_sent(tmp_path: Path) -> None:
    call = WireCall("c1", "files__read", ('{"path": "\\ud83d \\u0000 \\u00e4 \\\\u00e4"}',))
    answers = [openai_chat.answer(replace(REPLY, calls=(call,))), openai_chat.answer(REPLY)]
    (turn,) = await _held(tmp_path, "openai", answers, Usage(1000, 40))
    assert turn["outcome"] == "completed"


async def test_calls_before_and_after_a_restart_belong_to_one_turn(tmp_path: Path) -> None:
    call = WireCall("c1", "files__asks", ("{}",))
    thinking = replace(REPLY, thinking=("Hm “ä”.",), calls=(call,))
    async with running(anthropic_messages.answer(thinking), anthropic_messages.answer(REPLY)) as server:
        environ = PROVIDERS["anthropic"].environ(server.url)
        world = _world(tmp_path, "anthropic")
        world.environ = environ
        async with served(world) as http:
            session = await new_session(http)
            waiting = (await http.post(f"/api/sessions/{session}/messages", json={"content": "Ask"})).json()
        world = _world(tmp_path, "anthropic")
        world.environ = environ
        async with served(world) as http:
            decided = {"decisions": {"c1": "allow_once"}}
            done = (await http.post(f"/api/sessions/{session}/approvals", json=decided)).json()
            calls = (await http.get(f"/api/sessions/{session}/turns/1/calls")).json()["calls"]
            await assert_laws(http, server, [session], Usage(1000, 40))

    assert (waiting["outcome"], done["outcome"]) == ("waiting", "completed")
    assert [(call["turn"], call["step"], call["attempt"]) for call in calls] == [(1, 1, 1), (1, 2, 1)]


@pytest.mark.parametrize("first", ["silence", "busy"])
async def test_a_turn_that_is_stopped_while_a_call_waits_has_that_call(tmp_path: Path, first: str) -> None:
    silent = Answer(("until_gone",), status=None)
    before = [openai_chat.problem(503, "not now")] if first == "busy" else []
    world = _world(tmp_path, "openai")
    async with running(*before, silent, openai_chat.answer(REPLY)) as server:
        world.environ = PROVIDERS["openai"].environ(server.url)
        async with served(world) as http:
            session = await new_session(http)
            path = f"/api/sessions/{session}"
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(http.post, f"{path}/messages", json={"content": "Hi"}))
                await server.wait_for_requests(len(before) + 1)
                await http.post(f"{path}/cancel")
            again = (await http.post(f"{path}/messages", json={"content": "Again"})).json()
            calls = (await http.get(f"{path}/turns/1/calls")).json()["calls"]
            await assert_laws(http, server, [session], Usage(500, 20), without_usage=len(before) + 1)

    assert again["outcome"] == "completed"
    assert [(call["outcome"], call["status"]) for call in calls][-1] == ("cut", None)


async def test_a_call_that_is_given_up_while_it_is_being_stored_ends_as_cut() -> None:
    stored = anyio.Event()

    async def store(*_: object) -> None:
        await stored.wait()

    recorder = CallRecorder(store, purpose="summary")
    client = httpx2.AsyncClient(transport=RecordingTransport(Routes(timeout=PATIENCE_S)), timeout=PATIENCE_S)
    async with client, running(Answer(("until_gone",), status=None)) as server, anyio.create_task_group() as tasks:

        async def ask() -> None:
            with recording(recorder):
                await client.post(f"{server.url}/v1/chat/completions", json={})

        tasks.start_soon(ask)
        asked = await server.wait_for_requests(1)
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await asked.gone.wait()
            stored.set()

    assert tasks.cancel_scope.cancelled_caught
    (ended,) = recorder.take()
    assert isinstance(ended, CallEnded)
    assert (ended.outcome, ended.reason) == ("cut", "given up before the answer came")


async def test_a_turn_that_is_stopped_while_a_tool_runs_keeps_the_call_before_it(tmp_path: Path) -> None:
    began = anyio.Event()

    async def wait(_: object) -> str:
        began.set()
        await anyio.sleep_forever()
        return "never"

    world = _world(tmp_path, "openai")
    world.toolbox.put("slow", [FunctionTool(name="wait", run=wait, permission="not_required")])
    asks = replace(REPLY, calls=(WireCall("c1", "slow__wait", ("{}",)),))
    async with running(openai_chat.answer(asks), openai_chat.answer(REPLY)) as server:
        world.environ = PROVIDERS["openai"].environ(server.url)
        async with served(world) as http:
            session = await new_session(http)
            path = f"/api/sessions/{session}"
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(http.post, f"{path}/messages", json={"content": "Hi"}))
                await began.wait()
                await http.post(f"{path}/cancel")
            again = (await http.post(f"{path}/messages", json={"content": "Again"})).json()
            await assert_laws(http, server, [session], Usage(1000, 40))

    assert again["outcome"] == "completed"


async def test_calls_with_an_image_of_a_tool_are_the_same_on_another_server(tmp_path: Path) -> None:
    image = png(64, 48, noise=400)

    async def take(_: object) -> ToolOutput:
        return ToolOutput("A picture “ä”.", files=(NewFile("shot.png", image),))

    world = _world(tmp_path, "google")
    world.toolbox.put("shots", [FunctionTool(name="take", run=take, permission="not_required")])
    asks = replace(REPLY, thinking=("Hm “ä”.",), calls=(WireCall("c1", "shots__take", ("{}",)),))
    async with running(*map(PROVIDERS["google"].answer, (asks, asks, REPLY))) as server:
        world.environ = PROVIDERS["google"].environ(server.url)
        async with served(world) as http:
            session = await new_session(http)
            await http.post(f"/api/sessions/{session}/messages", json={"content": "Shots?"})
            await assert_laws(http, server, [session], Usage(1500, 60))
            sent = await _records(http, session)
            document = (await http.get(f"/api/sessions/{session}/export")).content
    async with served(_world(tmp_path / "other", "google")) as http:
        made = await http.post("/api/sessions/import", content=document, headers={"content-type": "application/json"})
        copied = await _records(http, made.json()["id"])

    assert [asked.raw.count(urlsafe_b64encode(image)) for asked in server.asked] == [0, 1, 2]
    assert copied == sent


async def _records(http: httpx2.AsyncClient, session: str) -> list[Any]:
    """Return the calls of a session and their sums, then each call with its body."""
    listed = (await http.get(f"/api/sessions/{session}/calls")).json()
    numbers = [call["number"] for call in listed["calls"]]
    return [listed, *[(await http.get(f"/api/sessions/{session}/calls/{number}")).json() for number in numbers]]
