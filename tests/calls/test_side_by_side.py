"""What happens at once, or breaks in the middle: the laws of the ledger hold on every protocol."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from calls.laws import PRICES, assert_laws
from calls.test_further_scenarios import REPLY
from calls.test_ledger import PROVIDERS
from server.place import new_session, served
from windowpane.context.messages import Usage
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, tool
from wire.reply import WireCall, WireReply
from wire.server import Answer, running

pytestmark = [
    pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning"),  # compiling google-genai
    pytest.mark.parametrize("name", PROVIDERS),
]


def _world(tmp_path: Path, name: str) -> World:
    model = PROVIDERS[name].model
    world = World(tmp_path / "agents", store=SQLiteStore(tmp_path / "windowpane.db"))
    settings = "working_context: false\nfinders: false\n"
    world.write("agent.yaml", f"model: {model}\n{settings}prices:\n  {model}: {PRICES}\n")
    world.rule("tone", "Be brief: “short” sentences. " * 20, include="always")
    world.toolbox.put(
        "files", [tool("read", "It says “{path}”.", permission="never"), tool("fails", "{unknown}", permission="never")]
    )
    return world


def _cut_in_arguments(name: str) -> Answer:
    """Return an answer that breaks off within the arguments of a call. Google sends these whole: before the call."""
    call = WireCall("c1", "files__read", ('{"path": "a long', " enough", ' path"}'))
    steps = PROVIDERS[name].answer(replace(REPLY, calls=(call,))).steps
    at = next(
        (
            at
            for at, step in enumerate(steps)
            if isinstance(step, bytes) and b" enough" in step and b"a long" not in step
        ),
        1,
    )
    return Answer((*steps[:at], "cut"))


async def test_a_stream_that_breaks_off_within_a_call_counts_what_it_reported(tmp_path: Path, name: str) -> None:
    async with running(_cut_in_arguments(name), PROVIDERS[name].answer(REPLY)) as server:
        world = _world(tmp_path, name)
        world.environ = PROVIDERS[name].environ(server.url)
        async with served(world) as http:
            session = await new_session(http)
            turns = [
                (await http.post(f"/api/sessions/{session}/messages", json={"content": text})).json()
                for text in ("Read", "Again")
            ]
            calls = (await http.get(f"/api/sessions/{session}/calls")).json()["calls"]
            first = calls[0]["usage"]
            reported = Usage(**first) if first else Usage()
            await assert_laws(http, server, [session], reported + Usage(500, 20), without_usage=0 if first else 1)

    assert [turn["outcome"] for turn in turns] == ["failed", "completed"]
    assert [call["outcome"] for call in calls] == ["cut", "complete"]
    assert (first and first["input_tokens"]) == {"anthropic": 500, "google": 500}.get(name)


async def test_parallel_calls_of_which_one_fails_and_one_is_unknown(tmp_path: Path, name: str) -> None:
    calls = tuple(
        WireCall(f"c{place}", f"files__{tool_name}", ('{"path": "ä"}',))
        for place, tool_name in enumerate(("read", "fails", "invented", "read"))
    )
    replies = (replace(REPLY, calls=calls), replace(REPLY, input_tokens=700), replace(REPLY, input_tokens=800))
    async with running(*map(PROVIDERS[name].answer, replies)) as server:
        world = _world(tmp_path, name)
        world.environ = PROVIDERS[name].environ(server.url)
        async with served(world) as http:
            session = await new_session(http)
            for text in ("Read", "Again"):
                turn = (await http.post(f"/api/sessions/{session}/messages", json={"content": text})).json()
                assert turn["outcome"] == "completed"
            await assert_laws(http, server, [session], Usage(2000, 60))


async def test_a_server_that_hangs_up_before_it_answers_is_asked_again(tmp_path: Path, name: str) -> None:
    gone = Answer(("cut",), status=None)
    async with running(gone, gone, PROVIDERS[name].answer(REPLY)) as server:
        world = _world(tmp_path, name)
        world.environ = PROVIDERS[name].environ(server.url)
        async with served(world) as http:
            session = await new_session(http)
            turn = (await http.post(f"/api/sessions/{session}/messages", json={"content": "Hi"})).json()
            calls = (await http.get(f"/api/sessions/{session}/calls")).json()["calls"]
            await assert_laws(http, server, [session], Usage(500, 20), without_usage=2)

    assert turn["outcome"] == "completed"
    assert [(call["outcome"], call["status"]) for call in calls] == [("retried", None)] * 2 + [("complete", 200)]


async def test_sessions_that_run_at_once_share_a_client_and_keep_their_calls_apart(tmp_path: Path, name: str) -> None:
    replies = [
        WireReply((f"Reply {number}.",), input_tokens=100 * number, output_tokens=number) for number in range(1, 13)
    ]
    async with running(*map(PROVIDERS[name].answer, replies)) as server:
        world = _world(tmp_path, name)
        world.environ = PROVIDERS[name].environ(server.url)
        async with served(world) as http:
            sessions = [await new_session(http) for _ in range(4)]

            async def talk(session: str) -> None:
                for number in range(3):
                    body = {"content": f"Question {number} of {session}"}
                    answer = await http.post(f"/api/sessions/{session}/messages", json=body)
                    assert answer.json()["outcome"] == "completed"

            async with anyio.create_task_group() as tasks:
                for session in sessions:
                    tasks.start_soon(partial(talk, session))
            for session in sessions:
                calls: list[dict[str, Any]] = (await http.get(f"/api/sessions/{session}/calls")).json()["calls"]
                bodies = [
                    (await http.get(f"/api/sessions/{session}/calls/{call['number']}")).json()["body"] for call in calls
                ]
                assert [session in body for body in bodies] == [True] * 3
                assert not any(other in body for body in bodies for other in sessions if other != session)
            reported = sum((Usage(reply.input_tokens, reply.output_tokens) for reply in replies), Usage())
            await assert_laws(http, server, sessions, reported)
