"""When something goes wrong the traffic is as it would be without the proxy, and what is not recorded is counted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import httpx2
import openai
import pytest

from windowpane.errors import StoreUnavailableError
from windowpane.stores.append import Append
from windowpane.stores.base import Appended
from windowpane.stores.memory import MemoryStore
from windowpane.testing import World
from windowpane.xray import writer
from wire import openai_chat
from wire.reply import WireReply
from wire.server import Answer, running
from xray.place import Xray, xray

MODEL = "/v1/chat/completions"
HELLO = openai_chat.frames(WireReply(text=("Hello ", "there.")))
ASKED = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
WHOLE = Answer((*HELLO, openai_chat.DONE))


async def _outcome(url: str, body: bytes | None = None) -> tuple[int, bytes, str]:
    """Return the status, the bytes that arrived, and the kind of the error that ended them."""
    got = bytearray()
    async with httpx2.AsyncClient(timeout=None) as client:
        try:
            async with client.stream("POST", url, content=body or json.dumps(ASKED).encode()) as response:
                async for chunk in response.aiter_raw():
                    got += chunk
                return response.status_code, bytes(got), ""
        except httpx2.HTTPError as error:
            return 0, bytes(got), type(error).__name__


FAULTS = {
    "the upstream breaks off": Answer((*HELLO[:3], "cut")),
    "the upstream is slow": Answer((HELLO[0], asyncio.Event(), *HELLO[1:], openai_chat.DONE)),
    "429": openai_chat.problem(429, "slow down", headers={"retry-after": "7"}),
    "500": openai_chat.problem(500, "broken"),
    "10,000 chunks": Answer((*(openai_chat.delta({"content": f"{n} "}) for n in range(10_000)), openai_chat.DONE)),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_an_answer_that_fails_fails_in_the_same_way(world: World, fault: str) -> None:
    answer = FAULTS[fault]
    for step in answer.steps:
        if isinstance(step, asyncio.Event):
            asyncio.get_running_loop().call_later(0.3, step.set)
    async with running(answer, answer) as server, xray(world, server.url) as proxy:
        without = await _outcome(server.url + MODEL)
        through = await _outcome(f"{proxy.url}/openai{MODEL}")
        (session,) = await proxy.sessions()
        (call,) = (await proxy.pane.sessions.calls(session)).calls

    assert through == without
    outcomes = {"the upstream breaks off": "cut", "429": "error", "500": "error"}
    assert call.outcome == outcomes.get(fault, "complete")


async def test_an_upstream_that_is_not_there_is_a_bad_gateway_that_says_so(world: World) -> None:
    async with running() as server:
        gone = server.url
    async with xray(world, gone) as proxy, _client(proxy) as client:
        with pytest.raises(openai.InternalServerError, match="no answer from"):
            await client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Hi"}])
        (session,) = await proxy.sessions()
        (call,) = (await proxy.pane.sessions.calls(session)).calls

    assert (call.outcome, call.status) == ("error", None)


async def test_a_body_of_20_mb_passes_and_is_kept(world: World) -> None:
    body = json.dumps({**ASKED, "messages": [{"role": "user", "content": "ä" * 7_000_000}]}).encode()
    async with running(WHOLE) as server, xray(world, server.url) as proxy:
        status, _, _ = await _outcome(f"{proxy.url}/openai{MODEL}", body)
        (session,) = await proxy.sessions()
        (call,) = await proxy.engine.calls.of_session(session)
        wire = await proxy.engine.calls.wire(session, call)

    assert (status, len(body) > 20_000_000, server.asked[0].raw == body) == (200, True, True)
    assert wire is not None
    assert wire.body == body


async def test_a_client_that_goes_away_ends_the_call_to_the_upstream(world: World) -> None:
    answer = Answer((HELLO[0], HELLO[1], "until_gone"))
    async with running(answer) as server, xray(world, server.url) as proxy, httpx2.AsyncClient() as client:
        url = f"{proxy.url}/openai{MODEL}"
        async with client.stream("POST", url, json=ASKED, timeout=None) as response:
            await anext(response.aiter_raw())
        await server.asked[0].gone.wait()
        while not (calls := await _calls(proxy)) or calls[0].outcome == "running":  # noqa: ASYNC110 - the log tells it
            await asyncio.sleep(0.01)

    assert (calls[0].outcome, calls[0].reason) == ("cut", "the client went away")


class BrokenStore(MemoryStore):
    """A store that takes nothing while it is `broken`: its server is away, or its disk is full."""

    broken = True

    async def add(self, append: Append) -> Appended:
        if self.broken:
            raise StoreUnavailableError("database or disk is full")
        return await super().add(append)


async def test_a_store_that_takes_nothing_costs_the_record_and_not_the_traffic(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PATIENCE_S", 0.0)
    store = world.store = BrokenStore()
    async with running(WHOLE, WHOLE) as server, xray(world, server.url) as proxy:
        first = await _outcome(f"{proxy.url}/openai{MODEL}")
        nothing = await proxy.sessions()
        store.broken = False
        second = await _outcome(f"{proxy.url}/openai{MODEL}")
        sessions = await proxy.sessions()

    assert first == second == (200, b"".join((*HELLO, openai_chat.DONE)), "")
    assert (nothing, len(sessions)) == ([], 1)
    assert (proxy.app.recorder.room.recorded, dict(proxy.app.recorder.room.lost)) == (1, {"store": 1})


async def test_a_store_that_comes_back_soon_loses_nothing(world: World) -> None:
    store = world.store = BrokenStore()
    async with running(WHOLE) as server, xray(world, server.url) as proxy:
        await _outcome(f"{proxy.url}/openai{MODEL}")
        store.broken = False
        sessions = await proxy.sessions()
        (call,) = (await proxy.pane.sessions.calls(sessions[0])).calls

    assert (call.outcome, proxy.app.recorder.room.lost.total()) == ("complete", 0)


async def test_what_has_no_room_to_wait_passes_and_is_counted_as_lost(world: World) -> None:
    async with running(WHOLE, WHOLE) as server, xray(world, server.url) as proxy:
        proxy.app.recorder.room.most_bytes = 100
        answer = await _outcome(f"{proxy.url}/openai{MODEL}", json.dumps({**ASKED, "user": "x" * 200}).encode())
        proxy.app.recorder.room.most_bytes = 400
        short = await _outcome(f"{proxy.url}/openai{MODEL}")
        (session,) = await proxy.sessions()
        (call,) = (await proxy.pane.sessions.calls(session)).calls

    assert answer == short == (200, b"".join((*HELLO, openai_chat.DONE)), "")
    assert (call.outcome, call.reason) == ("complete", writer.NOT_KEPT)
    assert (dict(proxy.app.recorder.room.lost), proxy.app.recorder.room.held_bytes) == ({"full": 2}, 0)


HOSTILE = {
    "nothing": b"",
    "no JSON": b"not JSON",
    "other types": b'{"messages": 7, "tools": "x"}',
    "a list": b"[]",
    "no block": b'{"messages": [{"content": [null]}]}',
    "deep lists": b'{"model":"m","messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep objects": b'{"messages":[{"role":"user","content":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}]}",
    "no UTF-8": b'{"model":"m","messages":[{"role":"user","content":"\xff\xed\xa0\x80"}]}',
    "half a character": b'{"model":"m\\u0000","messages":[{"role":"user","content":"\\ud800 \\u0000"}]}',
    "no number": b'{"model":"m","temperature":NaN,"max_tokens":1e999,"messages":[{"role":"user","content":"Hi"}]}',
    "names twice": b'{"model":"a","model":"b","messages":[],"messages":[{"role":"user","content":"Hi"}]}',
    "a byte order mark": b'\xef\xbb\xbf{"model":"m","messages":[{"role":"user","content":"Hi"}]}',
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
async def test_a_request_that_makes_no_sense_passes_and_is_kept_as_it_is(world: World, body: bytes) -> None:
    nonsense = Answer((b'data: {"choices": 3}\n\ndata: {"choices": [{"delta": 7}]}\n\n\xff',))
    async with running(nonsense) as server, xray(world, server.url) as proxy:
        answer = await _outcome(f"{proxy.url}/openai{MODEL}", body)
        (session,) = await proxy.sessions()
        (call,) = await proxy.engine.calls.of_session(session)
        wire = await proxy.engine.calls.wire(session, call)
        report = await proxy.pane.sessions.xray(session)

    assert (report.last, proxy.app.recorder.room.lost.total()) == (1, 0)
    assert answer == (200, b"".join(step for step in nonsense.steps if isinstance(step, bytes)), "")
    assert wire is not None
    assert (server.asked[0].raw, wire.body) == (body or json.dumps(ASKED).encode(), body or json.dumps(ASKED).encode())


def _client(proxy: Xray) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{proxy.url}/openai/v1", api_key="any", max_retries=0)


async def _calls(proxy: Xray) -> Sequence[Any]:
    sessions = await proxy.sessions()
    return (await proxy.pane.sessions.calls(sessions[0])).calls if sessions else ()
