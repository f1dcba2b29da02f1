"""What passes through the proxy arrives as if there were none: requests, answers, headers, streams."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import sys
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

import anthropic
import brotli  # pyright: ignore[reportMissingTypeStubs]  # it has none
import httpx2
import openai
import pytest

from clients.node import seen_by
from windowpane.testing import World
from wire import anthropic_messages, google_gemini, ollama_chat, openai_chat, openai_responses
from wire.reply import WireCall, WireReply
from wire.server import Answer, Asked, WireServer, running
from xray.place import PROVIDERS, xray

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

KEY = "sk-planted-key-0123456789"
QUESTION = "Wie spät ist es in “Ōsaka”? 🕰"
REPLY = WireReply(
    text=("It is ", "late: “ä 中”."), calls=(WireCall("c1", "clock", ('{"zone": ', '"Asia/Tokyo"}')),), cached_tokens=5
)
CONNECTION = ("host", "connection", "keep-alive", "transfer-encoding", "traceparent")
"""Headers that concern one connection or one request, or name the server."""

Client = Callable[[str], Awaitable[Any]]


@dataclass(frozen=True)
class Case:
    """A real client's call, and how its provider answers."""

    by: str
    client: Client
    answer: Callable[[WireReply], Answer]


def _openai(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/openai/v1", api_key=KEY, max_retries=0)


TOOL: Any = {"type": "function", "function": {"name": "clock", "parameters": {"type": "object", "properties": {}}}}
SAID: Any = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]


async def _chat(url: str) -> Any:
    async with _openai(url) as client:
        return (await client.chat.completions.create(model="gpt-4o", messages=SAID, tools=[TOOL])).model_dump()


async def _chat_stream(url: str) -> Any:
    async with _openai(url) as client:
        stream = await client.chat.completions.create(model="gpt-4o", messages=SAID, tools=[TOOL], stream=True)
        return [chunk.model_dump() async for chunk in stream]


async def _chat_sync(url: str) -> Any:
    def call() -> Any:
        with openai.OpenAI(base_url=f"{url}/openai/v1", api_key=KEY, max_retries=0) as client:
            return [
                chunk.model_dump()
                for chunk in client.chat.completions.create(model="gpt-4o", messages=SAID, stream=True)
            ]

    return await asyncio.to_thread(call)


async def _responses(url: str) -> Any:
    async with _openai(url) as client:
        return (await client.responses.create(model="gpt-5", input=QUESTION)).model_dump()


async def _responses_stream(url: str) -> Any:
    async with _openai(url) as client:
        stream = await client.responses.create(model="gpt-5", input=QUESTION, stream=True)
        return [event.model_dump() async for event in stream]


def _anthropic(url: str) -> Any:
    return anthropic.AsyncAnthropic(base_url=f"{url}/anthropic", api_key=KEY, max_retries=0)


ASKED: Any = {"model": "claude-opus-4-6", "max_tokens": 100, "messages": [{"role": "user", "content": QUESTION}]}


async def _messages(url: str) -> Any:
    async with _anthropic(url) as client:
        return (await client.messages.create(**ASKED)).model_dump()


async def _messages_stream(url: str) -> Any:
    async with _anthropic(url) as client, client.messages.stream(**ASKED) as stream:
        return [event.model_dump() async for event in stream]


async def _messages_sync(url: str) -> Any:
    def call() -> Any:
        with anthropic.Anthropic(base_url=f"{url}/anthropic", api_key=KEY, max_retries=0) as client:
            return cast("Any", client).messages.create(**ASKED).model_dump()

    return await asyncio.to_thread(call)


def _google(url: str) -> Any:
    # Not at the top: compiling it warns.
    from google import genai

    return genai.Client(api_key=KEY, http_options={"base_url": f"{url}/google"})


async def _gemini(url: str) -> Any:
    async with _google(url).aio as client:
        answer = await client.models.generate_content(model="gemini-2.5-flash", contents=QUESTION)
        return answer.model_dump(exclude={"sdk_http_response"})


async def _gemini_stream(url: str) -> Any:
    async with _google(url).aio as client:
        stream = await client.models.generate_content_stream(model="gemini-2.5-flash", contents=QUESTION)
        return [chunk.model_dump(exclude={"sdk_http_response"}) async for chunk in stream]


CASES = {
    "chat": Case("`openai` for Python", _chat, openai_chat.document),
    "chat, streamed": Case("`openai` for Python", _chat_stream, openai_chat.answer),
    "chat, streamed, without asyncio": Case("`openai` for Python", _chat_sync, openai_chat.answer),
    "responses": Case("`openai` for Python", _responses, openai_responses.document),
    "responses, streamed": Case("`openai` for Python", _responses_stream, openai_responses.answer),
    "messages": Case("`anthropic`", _messages, anthropic_messages.document),
    "messages, streamed": Case("`anthropic`", _messages_stream, anthropic_messages.answer),
    "messages, without asyncio": Case("`anthropic`", _messages_sync, anthropic_messages.document),
    "gemini": Case("`google-genai`", _gemini, google_gemini.document),
    "gemini, streamed": Case("`google-genai`", _gemini_stream, google_gemini.answer),
}


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")  # compiling google-genai
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=name, marks=pytest.mark.client(case.by, "same bytes")) for name, case in CASES.items()],
)
async def test_a_real_client_sends_and_gets_the_same_with_and_without_the_proxy(world: World, case: Case) -> None:
    answer = case.answer(REPLY)
    async with running(answer, answer) as server, xray(world, _upstreams(server)) as proxy:
        without = await case.client(server.url)
        through = await case.client(proxy.url)
        (session,) = await proxy.sessions()
        (call,) = await proxy.engine.calls.of_session(session)
        wire = await proxy.engine.calls.wire(session, call)
        record = await proxy.pane.turns.call(session, 1, 1)

    one, other = server.asked
    assert _essence(other) == _essence(one)
    assert through == without
    assert wire is not None
    assert (wire.body, call.sha256) == (one.raw, hashlib.sha256(one.raw).hexdigest())
    assert KEY not in str(wire)
    assert record.answer is not None
    assert record.answer.text == "It is late: “ä 中”."
    assert [(made.offered_name, json.loads(made.arguments)) for made in record.answer.tool_calls] == [
        ("clock", {"zone": "Asia/Tokyo"})
    ]


@pytest.mark.client("`openai` for Node", "same bytes")
@pytest.mark.client("`ollama` for Node", "same bytes")
async def test_the_node_clients_of_openai_and_ollama_see_no_difference(world: World) -> None:
    answers = [
        openai_chat.document(REPLY),
        openai_chat.answer(REPLY),
        ollama_chat.document(REPLY),
        ollama_chat.answer(REPLY),
    ]
    async with running(*answers, *answers) as server, xray(world, _upstreams(server)) as proxy:
        without = await seen_by("xray.mjs", server.url)
        through = await seen_by("xray.mjs", proxy.url)
        recorded = await proxy.sessions()

    assert list(map(_essence, server.asked[4:])) == list(map(_essence, server.asked[:4]))
    assert through == without
    assert len(recorded) == 4


BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": QUESTION}]}).encode()
ENCODED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": cast("Any", brotli).compress,
    "zstd": zstd.compress,
}


@pytest.mark.parametrize("encoding", ENCODED)
async def test_compressed_bodies_pass_as_they_are_and_are_recorded_as_what_they_say(
    world: World, encoding: str
) -> None:
    sent = ENCODED[encoding](BODY)
    said = b"".join(openai_chat.frames(WireReply(text=("Late.",)))) + openai_chat.DONE
    given = ENCODED[encoding](said)
    headers = {"content-type": "text/event-stream", "content-encoding": encoding, "content-length": str(len(given))}
    async with (
        running(Answer((given,), headers=headers)) as server,
        xray(world, server.url) as proxy,
        httpx2.AsyncClient() as client,
    ):
        answer = await _raw(client, f"{proxy.url}/openai/v1/chat/completions", sent, {"content-encoding": encoding})
        (session,) = await proxy.sessions()
        (call,) = await proxy.engine.calls.of_session(session)
        wire = await proxy.engine.calls.wire(session, call)
        record = await proxy.pane.turns.call(session, 1, 1)

    assert server.asked[0].raw == sent
    assert answer == (200, sorted(headers.items()), given)
    assert wire is not None
    assert (wire.body, record.answer and record.answer.text) == (BODY, "Late.")


async def test_headers_statuses_queries_and_methods_pass_as_they_are(world: World) -> None:
    upstream = (
        b"HTTP/1.1 529 \r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nRetry-After: 3\r\nX-Empty: \r\n"
        b"Keep-Alive: timeout=5\r\nConnection: X-Hop\r\nX-Hop: secret\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
        b"Content-Length: 4\r\n\r\nbusy"
    )
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(upstream)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, xray(world, f"{url}/base") as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
        writer.write(
            b"PATCH /openai/v1/a%2Fb;c?x=%20y&x=z HTTP/1.1\r\nHost: 127.0.0.1\r\nX-One: 1\r\nx-one: 2\r\n"
            b"TE: trailers\r\nConnection: close, X-Mine\r\nX-Mine: hop\r\nX-Windowpane-Token: wp_x\r\n\r\n"
        )
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()

    host = url.removeprefix("http://").encode()
    assert asked == [
        b"PATCH /base/v1/a%2Fb;c?x=%20y&x=z HTTP/1.1\r\nhost: " + host + b"\r\nx-one: 1\r\nx-one: 2\r\n\r\n"
    ]
    assert head.split(b"\r\n") == [
        b"HTTP/1.1 529 ",
        b"set-cookie: a=1",
        b"set-cookie: b=2",
        b"retry-after: 3",
        b"x-empty: ",
        b"date: Thu, 01 Jan 1970 00:00:00 GMT",
        b"content-length: 4",
        b"connection: close",
    ]
    assert body == b"busy"


async def test_a_chunk_is_handed_on_before_the_next_one_is_sent(world: World) -> None:
    more = asyncio.Event()
    answer = Answer((b"data: one\n\n", more, b"data: two\n\n"))
    async with running(answer) as server, xray(world, server.url) as proxy, httpx2.AsyncClient() as client:
        url = f"{proxy.url}/openai/v1/chat/completions"
        async with client.stream("POST", url, content=BODY, timeout=None) as response:
            chunks = response.aiter_raw()
            first = await anext(chunks)
            more.set()
            second = await anext(chunks)

    assert (first, second) == (b"data: one\n\n", b"data: two\n\n")


async def test_a_body_without_a_length_and_many_requests_on_one_connection_pass(world: World) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield BODY[:10]
        yield BODY[10:]

    answers = [openai_chat.document(WireReply(text=(f"{number}",))) for number in range(20)]
    async with (
        running(*answers) as server,
        xray(world, server.url) as proxy,
        httpx2.AsyncClient(limits=httpx2.Limits(max_connections=1)) as client,
    ):
        url = f"{proxy.url}/openai/v1/chat/completions"
        said = [(await client.post(url, content=pieces())).json() for _ in range(20)]
        sessions = await proxy.sessions()

    assert [answer["choices"][0]["message"]["content"] for answer in said] == [f"{number}" for number in range(20)]
    assert {asked.raw for asked in server.asked} == {BODY}
    assert len(sessions) == 20


async def test_no_request_can_name_another_upstream(world: World) -> None:
    async with running() as server, xray(world, f"{server.url}/base") as proxy, httpx2.AsyncClient() as client:
        paths = ("/nobody/v1/messages", "/anthropic/%2e%2e/admin", "/http://evil.example/", "/")
        answers = [await _raw(client, proxy.url + path, b"", {}) for path in paths]

    assert [status for status, _, _ in answers] == [404, 404, 404, 404]
    assert server.asked == []


async def _raw(
    client: httpx2.AsyncClient, url: str, body: bytes, headers: dict[str, str]
) -> tuple[int, list[tuple[str, str]], bytes]:
    """Return the status, the headers and the bytes of an answer as they came."""
    async with client.stream("POST", url, content=body, headers=headers, timeout=None) as response:
        got = b"".join([chunk async for chunk in response.aiter_raw()])
        return response.status_code, sorted(response.headers.multi_items()), got


def _upstreams(server: WireServer) -> dict[str, str]:
    """Return upstreams that a client without a proxy reaches by the same paths."""
    return {name: f"{server.url}/{name}" for name in PROVIDERS}


def _essence(asked: Asked) -> tuple[object, ...]:
    """Return a request without what concerns its connection."""
    lines = [line for line in map(str.lower, asked.head) if line.partition(":")[0] not in CONNECTION]
    return asked.method, asked.path, lines, hashlib.sha256(asked.raw).hexdigest()
