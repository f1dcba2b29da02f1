from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import pytest

from server.place import engine_of, listening, new_session, problem, problem_in, served
from windowpane import errors
from windowpane.errors import WindowpaneError
from windowpane.server.app import create_app
from windowpane.server.problems import DOORS, status_of
from windowpane.testing import World

JSON = {"Content-Type": "application/json"}


def every_error() -> list[type[WindowpaneError]]:
    named = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, WindowpaneError)]
    return sorted(named, key=lambda error: error.__name__)


def test_every_error_has_a_status() -> None:
    statuses = {error.code: status_of(error) for error in every_error()}

    assert statuses == {
        "access_error": 403,
        "already_there": 409,
        "invalid_file": 422,
        "missing_file": 404,
        "remote_error": 500,
        "revision_missing": 428,
        "server_error": 500,
        "stale_revision": 412,
        "unreachable": 500,
        "different_session": 409,
        "no_question": 409,
        "no_result_awaited": 409,
        "store_rolled_back": 500,
        "agent_error": 422,
        "agent_not_found": 404,
        "approval_pending": 409,
        "blob_not_found": 404,
        "conflict": 409,
        "context_too_large": 422,
        "fetch_error": 502,
        "fetch_failed": 502,
        "fetch_refused": 422,
        "invalid_input": 422,
        "invalid_setting": 422,
        "key_reused": 409,
        "missing_core_prompt": 422,
        "model_auth": 502,
        "model_error": 502,
        "model_rate_limited": 503,
        "model_rejected": 502,
        "model_stream_broken": 502,
        "model_timeout": 504,
        "model_unavailable": 503,
        "no_turn_running": 409,
        "not_found": 404,
        "nothing_to_approve": 409,
        "search_engine_error": 502,
        "sequence_conflict": 409,
        "recorded_session": 409,
        "scope_needed": 403,
        "session_busy": 409,
        "session_not_found": 404,
        "wrong_session": 409,
        "embedder_error": 503,
        "embedding_endpoint": 503,
        "weights_damaged": 503,
        "weights_missing": 503,
        "store_corrupt": 500,
        "store_error": 500,
        "store_too_new": 500,
        "store_unavailable": 503,
        "token_needed": 401,
        "token_not_found": 404,
        "tokens_unreadable": 503,
        "too_many_model_calls": 422,
        "too_many_requests": 429,
        "tool_error": 502,
        "tool_server_down": 503,
        "tool_timeout": 504,
        "turn_not_found": 404,
        "unknown_item": 404,
        "unknown_model": 422,
        "unreadable_agent": 422,
        "error": 500,
        "call_not_found": 404,
        "cost_limit_reached": 429,
        "worker_full": 429,
        "too_many_turns": 429,
        "encryption_key": 500,
        "lease_lost": 409,
        "request_too_long": 502,
        "store_encrypted": 500,
        "store_not_encrypted": 500,
        "store_replaced": 503,
        "wrong_encryption_key": 500,
    }


async def test_what_has_no_route_is_a_problem_too(client: httpx2.AsyncClient) -> None:
    missing = await client.get("/api/nothing")
    slash = await client.get("/api/sessions/")
    method = await client.put("/api/sessions")

    assert problem_in(missing) == problem(
        404, "not_found", "there is nothing at /api/nothing; /openapi.json lists what there is"
    )
    assert problem_in(slash)["status"] == 404
    assert problem_in(method) == problem(
        405, "method_not_allowed", "PUT is not possible at /api/sessions; GET, POST are"
    )
    assert method.headers["allow"] in ("GET", "POST", "GET, POST")


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b'{"content": ', "the body is not JSON: Expecting value at character 12"),
        (b"hello", "the body is not JSON: Expecting value at character 0"),
        (b'{"content": "\xff"}', "the body cannot be read as JSON"),
        (b"[" * 100_000, "the body cannot be read as JSON"),
        (b'{"content": 1' + b"0" * 5000 + b"}", "the body cannot be read as JSON"),
    ],
)
async def test_a_body_that_is_not_json_is_refused(client: httpx2.AsyncClient, body: bytes, detail: str) -> None:
    session = await new_session(client)

    response = await client.post(f"/api/sessions/{session}/messages", content=body, headers=JSON)

    assert problem_in(response) == problem(400, "malformed_body", detail)


async def test_a_body_of_another_kind_is_refused(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)

    form = await client.post(f"/api/sessions/{session}/messages", data={"content": "Hi"})
    text = await client.post(
        f"/api/sessions/{session}/messages", content='{"content": "Hi"}', headers={"Content-Type": "text/plain"}
    )

    refused = problem(415, "unsupported_media_type", "send the body as JSON, with `Content-Type: application/json`")
    assert problem_in(form) == problem_in(text) == refused


UNUSABLE: tuple[tuple[bytes, str], ...] = (
    (b"", "body: field required"),
    (b"{}", "body.content: field required"),
    (b'{"content": null}', "body.content: input should be a valid string"),
    (b'{"content": 7}', "body.content: input should be a valid string"),
    (b'{"content": ""}', "the message is empty"),
    (b'{"content": " \\n"}', "the message is empty"),
    (b'{"content": "Hi", "wait": 1}', "body.wait: extra inputs are not permitted"),
    (b'{"content": "Hi", "wait_s": "1"}', "body.wait_s: input should be a valid number"),
    (
        b'{"content": "Hi", "wait_s": -1}',
        "body.wait_s: input should be greater than or equal to 0",
    ),
    (b'{"content": "Hi", "wait_s": NaN}', "body.wait_s: input should be a finite number"),
)


async def test_a_message_that_is_no_message_is_refused(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    for body, detail in UNUSABLE:
        response = await client.post(f"/api/sessions/{session}/messages", content=body, headers=JSON)

        found = problem_in(response)
        assert (found["status"], found["code"], found["detail"]) == (422, "invalid_input", detail)
    assert (await client.get(f"/api/sessions/{session}")).json()["seq"] == 1


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("messages", r'{"content": "a\ud800b"}', 422),
        ("preview", r'{"content": "a\ud800b"}', 422),
        ("approvals", r'{"decisions": {"\ud800": "deny"}}', 409),
        ("items", r'{"type": "rule", "name": "\ud800"}', 404),
    ],
)
async def test_half_a_character_is_refused_and_nothing_is_stored(
    client: httpx2.AsyncClient, path: str, body: str, status: int
) -> None:
    session = await new_session(client)

    response = await client.post(f"/api/sessions/{session}/{path}", content=body, headers=JSON)

    assert problem_in(response)["status"] == status
    assert (await client.get(f"/api/sessions/{session}")).json()["seq"] == 1


async def test_half_a_character_names_no_agent(client: httpx2.AsyncClient) -> None:
    response = await client.post("/api/sessions", content=r'{"agent": "\ud800"}', headers=JSON)

    assert problem_in(response)["code"] == "agent_not_found"


async def test_a_body_beyond_the_limit_is_refused_with_and_without_a_length(world: World) -> None:
    async with served(world, max_body_bytes=1000) as client:
        path = "/api/sessions"
        body = b'{"name": "' + b"x" * 2_000_000 + b'"}'

        async def pieces() -> AsyncGenerator[bytes]:
            for start in range(0, len(body), 65536):
                yield body[start : start + 65536]

        declared = await client.post(path, content=body, headers=JSON)
        chunked = await client.post(path, content=pieces(), headers=JSON)

    refused = problem(413, "body_too_large", "the body is larger than 1,000 bytes")
    assert problem_in(declared) == problem_in(chunked) == refused


async def test_a_message_beyond_the_limit_of_the_engine_is_refused(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)

    response = await client.post(f"/api/sessions/{session}/messages", json={"content": "x" * 1_000_001})

    detail = "the message has 1,000,001 characters and 1,000,000 is the limit; shorten it"
    assert problem_in(response) == problem(422, "invalid_input", detail)


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/v1/crash", {"error": {"type": "server_error", "param": None, "code": "internal"}}),
        ("/anthropic/v1/crash", {"type": "error", "error": {"type": "api_error"}}),
    ],
)
async def test_an_unexpected_error_has_the_form_of_its_door(world: World, path: str, form: dict[str, Any]) -> None:
    async def crash() -> None:
        raise RuntimeError("a secret of the inside")

    app = create_app(engine_of(world))
    app.add_api_route(path, crash)
    async with listening(app) as address, httpx2.AsyncClient(base_url=address) as client:
        answer = await client.get(path, headers={"X-Request-ID": "order-7"})

    message = "unexpected error; see the server log (request id order-7)"
    assert (answer.status_code, answer.headers["x-request-id"]) == (500, "order-7")
    assert answer.json() == {**form, "error": {**form["error"], "message": message}}


@pytest.mark.parametrize(
    ("path", "instead"),
    [
        ("/v1/completions", "legacy completions have no conversation; use /v1/chat/completions"),
        ("/v1/audio/transcriptions", "audio is not offered here"),
        ("/v1/files", "files are sent as bytes with their message, not uploaded"),
        ("/v1", "/openapi.json lists what there is"),
        ("/v1/fine_tuning/jobs", DOORS["/v1/"]),
        (
            "/v1/vector_stores",
            "documents are references of an agent or of a session, which are searched for every message",
        ),
        ("/anthropic/v1/organizations/usage", DOORS["/anthropic/"]),
        ("/anthropic/v1/messages/batches", "send the requests one by one"),
    ],
)
async def test_what_other_servers_offer_and_this_one_does_not_is_named(world: World, path: str, instead: str) -> None:
    async with served(world) as client:
        answer = await client.post(path, json={})

    assert (answer.status_code, answer.json()["error"]["message"]) == (404, f"there is nothing at {path}; {instead}")
