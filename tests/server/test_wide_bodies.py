"""Bodies that are small in bytes and large in everything else: they cost their sender something, and nobody else."""

from __future__ import annotations

import gzip
import json
import threading
from itertools import pairwise
from typing import Any, cast

import httpx2
import pytest
from fastapi.routing import APIRoute
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from server.guests import guarded
from server.place import new_session, problem, problem_in, served
from windowpane.server.app import RESOURCES
from windowpane.server.middleware.limits import (
    MAX_VALUES,
    MORE_VALUES,
    MOST_TOKENS,
    OF_AN_OBJECT,
    JsonValues,
)
from windowpane.server.openai.conversation import ClientMessage
from windowpane.server.parameters import FewFaults, RequestBody
from windowpane.sessions.conversation import MAX_CLIENT_MESSAGES
from windowpane.testing import World

JSON = {"Content-Type": "application/json"}


async def test_nothing_that_a_caller_without_a_token_sends_is_read(world: World) -> None:
    async with guarded(world) as place:
        post, malformed = place.client.post, b'{"content": '
        own = await post("/api/sessions", content=malformed, headers=JSON)
        openai = await post("/v1/chat/completions", content=malformed, headers=JSON)
        anthropic = await post("/anthropic/v1/messages", content=malformed, headers=JSON)
        large = await post("/api/sessions", content=b'"' + b"x" * 5_000_000 + b'"', headers=JSON)
        known = await post("/api/sessions", content=malformed, headers=JSON | place.headers("ann"))

    assert problem_in(own)["code"] == problem_in(large)["code"] == "token_needed"
    assert [openai.status_code, anthropic.status_code] == [401, 401]
    assert openai.json()["error"]["code"] == "invalid_api_key"
    assert problem_in(known)["code"] == "malformed_body"


async def test_a_login_is_as_long_as_a_token(world: World) -> None:
    async with guarded(world) as place:
        wrong = await place.client.post("/api/login", json={"token": "wp_wrong"})
        long = await place.client.post("/api/login", json={"token": "x" * 5000})

    assert problem_in(wrong)["code"] == "token_needed"
    assert problem_in(long) == problem(413, "body_too_large", "the body is larger than 4,096 bytes")


async def test_a_body_that_holds_too_many_values_is_refused_before_it_is_read(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    many = b'{"content": "Hi", "tools": [' + b"0," * MAX_VALUES + b"0]}"
    paths = (f"/api/sessions/{session}/messages", "/v1/chat/completions", "/api/agents/helper/ag-ui")

    own, openai, agui = [await client.post(path, content=many, headers=JSON) for path in paths]

    refused = problem(413, "body_too_large", f"the body holds more than {MAX_VALUES:,} values")
    assert problem_in(own) == problem_in(agui) == refused
    assert openai.status_code == 413
    assert openai.json()["error"]["message"] == f"the body holds more than {MAX_VALUES:,} values"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/anthropic/v1/messages"])
async def test_a_message_of_very_many_parts_is_refused(client: httpx2.AsyncClient, path: str) -> None:
    parts = [{"type": "text", "text": "a"}] * 50_000
    said = {"input" if path.endswith("responses") else "messages": [{"role": "user", "content": parts}]}

    refused = await client.post(path, json={"model": "helper", "max_tokens": 10, **said})

    assert refused.status_code == 413
    assert refused.json()["error"]["message"] == f"the body holds more than {MAX_VALUES:,} values"


async def test_as_many_tokens_can_be_embedded_as_openai_takes(client: httpx2.AsyncClient) -> None:
    tokens = [[1] * 100_000, [1] * 100_000, [1] * (MOST_TOKENS["/v1/embeddings"] - 200_000 - 20)]

    taken = await client.post("/v1/embeddings", json={"model": "any", "input": tokens})
    refused = await client.post("/v1/embeddings", json={"model": "any", "input": [*tokens, [1] * 100]})

    assert (taken.status_code != 413, refused.status_code) == (True, 413)


@pytest.mark.parametrize("headers", [{}, JSON | {"Content-Encoding": "identity"}, JSON | {"Content-Encoding": "gzip"}])
@pytest.mark.parametrize("path", ["/api/sessions", "/v1/chat/completions", "/anthropic/v1/messages"])
async def test_values_are_counted_whatever_the_headers_say(
    client: httpx2.AsyncClient, path: str, headers: dict[str, str]
) -> None:
    refused = await client.post(path, content=b"[" + b"0," * MAX_VALUES + b"0]", headers=headers)

    assert refused.status_code == 413


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
async def test_values_of_compressed_spans_are_counted_when_they_are_unpacked(
    client: httpx2.AsyncClient, encoding: str
) -> None:
    many = b'{"resourceSpans": [' + b"0," * MORE_VALUES + b"0]}"
    body = gzip.compress(many) if encoding == "gzip" else many

    refused = await client.post("/api/otlp/v1/traces", content=body, headers=JSON | {"Content-Encoding": encoding})

    assert problem_in(refused) == problem(413, "body_too_large", f"the body holds more than {MORE_VALUES:,} values")


async def test_json_that_is_not_utf_8_is_refused(client: httpx2.AsyncClient) -> None:
    refused = await client.post("/api/sessions", content='{"name": "wide"}'.encode("utf-16"), headers=JSON)

    assert refused.status_code == 413


async def test_a_text_full_of_brackets_is_one_value(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    text = '[{,"\\' * (MAX_VALUES // 2)

    answered = await client.post(f"/api/sessions/{session}/messages", json={"content": text})

    assert answered.status_code == 200


async def test_more_messages_than_a_conversation_has_are_refused(client: httpx2.AsyncClient) -> None:
    said = [{"role": "user", "content": "Hi"}] * (MAX_CLIENT_MESSAGES + 1)

    chat = await client.post("/v1/chat/completions", json={"model": "helper", "messages": said})
    responses = await client.post("/v1/responses", json={"model": "helper", "input": said})
    anthropic = await client.post(
        "/anthropic/v1/messages", json={"model": "helper", "max_tokens": 10, "messages": said}
    )

    assert [chat.status_code, responses.status_code, anthropic.status_code] == [400] * 3
    assert [chat.json()["error"]["param"], responses.json()["error"]["param"]] == ["messages", "input"]
    assert "at most 10000 items" in anthropic.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("/v1/chat/completions", {}),
        ("/v1/responses", {}),
        ("/anthropic/v1/messages", {"max_tokens": 10}),
        ("/anthropic/v1/messages/count_tokens", {}),
    ],
)
async def test_what_a_client_said_is_read_beside_the_event_loop(
    world: World, monkeypatch: pytest.MonkeyPatch, path: str, more: dict[str, Any]
) -> None:
    world.says("Hello.")
    threads: list[threading.Thread] = []
    make = ClientMessage.__init__

    def seen(self: ClientMessage, *args: Any, **values: Any) -> None:
        threads.append(threading.current_thread())
        make(self, *args, **values)

    monkeypatch.setattr(ClientMessage, "__init__", seen)
    said = {"input" if path.endswith("responses") else "messages": [{"role": "user", "content": "Hi"}]}

    async with served(world) as client:
        answered = await client.post(path, json={"model": "pane", **said, **more})

    assert answered.status_code == 200, answered.text
    assert threads[0] is not threading.current_thread()


async def test_so_many_faults_that_nobody_reads_them_are_told_as_one(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    unknown = {f"k{number}": 0 for number in range(2000)}

    some = await client.post("/api/sessions", json={"a": 0, "b": 0})
    own = await client.post(f"/api/sessions/{session}/messages", json={"content": "Hi", **unknown})
    empty = await client.post("/api/sessions", json=unknown)
    openai = await client.post("/v1/chat/completions", json={"model": "helper", "messages": [0] * 2000})
    anthropic = await client.post("/anthropic/v1/messages", json={"model": "helper", "messages": [0] * 2000})
    agui = await client.post("/api/agents/helper/ag-ui", json={"messages": [0] * 2000})
    document = (await client.get(f"/api/sessions/{session}/export")).json()
    imported = await client.post("/api/sessions/import", json=document | {"events": [0] * 2000})

    assert [entry["where"] for entry in problem_in(some)["errors"]] == ["body.a", "body.b"]
    for answer in (own, empty):
        assert len(problem_in(answer)["errors"]) == 1
        assert problem_in(answer)["detail"] == "body: 2,000 parts of it cannot be used"
    assert problem_in(imported)["detail"] == "this is not an exported session: 2,000 parts of it cannot be used"
    assert "parts of it cannot be used" in openai.json()["error"]["message"]
    assert "parts of it cannot be used" in anthropic.json()["error"]["message"]
    assert "parts of it cannot be used" in problem_in(agui)["detail"]


def test_every_body_is_read_by_something_that_tells_faults_in_short() -> None:
    taken = [
        (route.path, field.field_info)
        for resource in RESOURCES
        for route in resource.router.routes
        if isinstance(route, APIRoute)
        for field in route.dependant.body_params
    ]

    def models(annotation: Any) -> list[Any]:
        return [part for part in getattr(annotation, "__args__", (annotation,)) if isinstance(part, type)]

    bare = [
        path
        for path, info in taken
        if FewFaults not in info.metadata
        and any(issubclass(each, BaseModel) and not issubclass(each, RequestBody) for each in models(info.annotation))
    ]
    assert taken
    assert bare == []


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES, st.lists(st.integers(min_value=0, max_value=400)), st.booleans())
def test_values_are_counted_the_same_however_the_text_arrives(value: Any, cuts: list[int], plain: bool) -> None:
    text = json.dumps(value, ensure_ascii=plain).encode()
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    values = JsonValues()

    counts = [values.add(text[begin:end]) for begin, end in pairwise(places)]

    assert counts == sorted(counts)
    assert counts[-1] == _counted(value)


def _counted(value: Any) -> int:
    """Count the lists and the commas of a value, and its objects more than once."""
    own = OF_AN_OBJECT if isinstance(value, dict) else 1
    if isinstance(value, dict):
        value = list(cast("dict[str, Any]", value).values())
    if not isinstance(value, list):
        return 0
    inner = cast("list[Any]", value)
    return own + max(0, len(inner) - 1) + sum(map(_counted, inner))


@pytest.mark.parametrize("text", ['"\\\\",[', '"\\"",[', '"\\\\\\"",['])
def test_an_escaped_quote_does_not_end_a_text(text: str) -> None:
    assert JsonValues().add(text.encode()) == 2
