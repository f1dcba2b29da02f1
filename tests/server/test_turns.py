from __future__ import annotations

import socket
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import SocketAttribute

from server.place import EVENTS, events_in, new_session, problem, problem_in, served, steady
from windowpane.errors import ModelUnavailableError
from windowpane.models.scripted import Call, Reply
from windowpane.testing import World, tool

CALL: dict[str, Any] = {
    "id": "c1",
    "offered_name": "files__read",
    "arguments": '{"path": "a"}',
    "ref": {"type": "tool", "name": "read", "server": "files"},
}
ASKS = Reply("Let me look.", calls=(Call("files__read", '{"path": "a"}', id="c1"),))


def step(text: str, **more: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 0,
        "output_tokens": 0,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "cache_write_1h_tokens": 0,
    }
    body: dict[str, Any] = {"text": text, "thinking": "", "tool_calls": [], "results": [], "usage": usage}
    return body | {"model": "scripted:test"} | {"finish_reason": "stop", "latency_ms": 0} | more


def steps_of(body: dict[str, Any]) -> Any:
    steps = steady(body["messages"][-1]["model_reply"]["steps"])
    return [entry | {"latency_ms": 0} for entry in steps]


@pytest.mark.spec("S0.59", "S0.22")
async def test_a_message_is_answered_with_everything_about_its_turn(world: World) -> None:
    world.rule("tone", include="always")
    world.says("Hello there.")
    async with served(world) as client:
        session = await new_session(client)

        response = await client.post(f"/api/sessions/{session}/messages", json={"content": "  Hi\t"})
        after = (await client.get(f"/api/sessions/{session}")).json()

    body = response.json()
    context = body.pop("request_context")
    user, assistant = body["messages"]
    assert response.status_code == 200
    assert steady(user) == {
        "content": "  Hi\t",
        "attachments": [],
        "turn": 1,
        "seq": 2,
        "at": "…",
        "role": "user",
    }
    assert steady(assistant) | {"model_reply": None} == {
        "model_reply": None,
        "request": assistant["request"],
        "outcome": "completed",
        "sources": [],
        "related": [],
        "turn": 1,
        "seq": 5,
        "at": "…",
        "role": "assistant",
    }
    assert len(assistant["request"]) == 64
    assert steps_of(body) == [step("Hello there.")]
    assert body.pop("context_debug")["conversation_context"] == "=== RECENT MESSAGES ===\nUSER:   Hi\t"
    assert {**body, "messages": []} == {
        "turn": 1,
        "outcome": "completed",
        "text": "Hello there.",
        "messages": [],
        "approvals": [],
        "questions": [],
        "seq": 5,
        "session_id": session,
        "sources": [],
        "confidence": None,
    }
    assert [(item["name"], item["include_mode"], item["status"]) for item in context["items"]] == [
        ("tone", "always", "used")
    ]
    assert (after["message_count"], after["turn_count"], after["open_turn"]) == (2, 1, None)


async def test_a_turn_is_streamed_as_it_happens(world: World) -> None:
    go_on = anyio.Event()
    world.says(Reply("Hello there.", before_end=go_on))
    async with served(world) as client:
        session = await new_session(client)
        path = f"/api/sessions/{session}/messages"

        sent: list[Any] = []
        async with client.stream("POST", path, json={"content": "Hi"}, headers=EVENTS) as response:
            async for event in events_in(response):
                sent.append(event)
                if event.event == "reply.delta":
                    go_on.set()

        again = (await client.get(f"/api/sessions/{session}/turns/1")).json()

    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache"
    stored = [event for event in sent if event.event != "reply.delta"]
    deltas = [event for event in sent if event.event == "reply.delta"]
    assert [(event.event, event.id) for event in stored] == [
        ("turn.started", "2"),
        ("request.built", "3"),
        ("model.replied", "4"),
        ("turn.finished", "5"),
    ]
    assert [event.data for event in stored] == again["events"]
    first = stored[0].data
    assert (first["seq"], first["type"], first["turn"], first["message"]) == (2, "turn.started", 1, "Hi")
    assert "".join(event.data["text"] for event in deltas) == "Hello there."
    assert (deltas[0].id, sorted(deltas[0].data)) == (None, ["kind", "text", "turn", "type"])


async def test_a_problem_is_not_half_a_stream(client: httpx2.AsyncClient) -> None:
    response = await client.post("/api/sessions/ses_x/messages", json={"content": "Hi"}, headers=EVENTS)

    assert problem_in(response) == problem(
        404, "session_not_found", "no session 'ses_x'", facts={"session_id": "ses_x"}
    )


async def test_a_failed_model_call_is_a_turn_that_failed(world: World) -> None:
    world.says(Reply("I thi", error=ModelUnavailableError("the model is down; try again")), "Better.")
    async with served(world) as client:
        session = await new_session(client)

        response = await client.post(f"/api/sessions/{session}/messages", json={"content": "Hi"})
        second = await client.post(f"/api/sessions/{session}/messages", json={"content": "Hi"})

    body = response.json()
    assert (response.status_code, body["outcome"]) == (200, "failed")
    error = body["messages"][-1]
    assert (error["role"], error["code"]) == ("error", "model_unavailable")
    assert "the model is down; try again" in error["content"]
    assert len(error["request"]) == 64
    assert body["request_context"]["turn"] == 1
    assert second.json()["text"] == "Better."


@pytest.mark.parametrize("accept", ["text/event-stream", "application/json"])
async def test_a_client_that_disconnects_does_not_lose_the_answer(world: World, accept: str) -> None:
    go_on = anyio.Event()
    world.says(Reply("Here is the whole answer.", after=go_on), "Next.")
    async with served(world) as client:
        session = await new_session(client)

        await _send_and_hang_up(client, session, accept, world)
        go_on.set()
        turn = await _first_turn(client, session)

    assert (turn["outcome"], turn["text"]) == ("completed", "Here is the whole answer.")


async def _send_and_hang_up(client: httpx2.AsyncClient, session: str, accept: str, world: World) -> None:
    body = b'{"content": "Hi"}'
    head = (
        f"POST /api/sessions/{session}/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {accept}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    stream = await anyio.connect_tcp("127.0.0.1", client.base_url.port or 0)
    await stream.send(head.encode() + body)
    await world.model.wait_for_calls(1)
    # A reset, as from a browser that was killed.
    stream.extra(SocketAttribute.raw_socket).setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    await stream.aclose()


async def _first_turn(client: httpx2.AsyncClient, session: str) -> Any:
    """Return the first turn once it has ended: a second message has waited for it."""
    await client.post(f"/api/sessions/{session}/messages", json={"content": "Next", "wait_s": 60})
    return (await client.get(f"/api/sessions/{session}/turns/1")).json()


async def test_of_two_messages_at_once_one_runs_and_the_other_is_told_that_the_session_is_busy(world: World) -> None:
    go_on = anyio.Event()
    world.says(Reply("First.", after=go_on), "Second.")
    async with served(world) as client:
        session = await new_session(client)
        path = f"/api/sessions/{session}/messages"
        answers: dict[str, Any] = {}
        open_turn: Any = None
        cleared = httpx2.Response(500)

        async def send(content: str, **more: Any) -> None:
            answers[content] = await client.post(path, json={"content": content, **more})

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send, "one")
            await world.model.wait_for_calls(1)
            open_turn = (await client.get(f"/api/sessions/{session}")).json()["open_turn"]
            await send("two")
            cleared = await client.delete(f"/api/sessions/{session}/history")
            go_on.set()
        await send("three", wait_s=30)

    assert (open_turn["turn"], open_turn["state"], open_turn["approvals"]) == (1, "running", [])
    busy = problem(
        409,
        "session_busy",
        "session busy: another turn is running; wait for it, cancel it, or ask to wait",
        facts={"session_id": session},
    )
    assert problem_in(answers["two"]) == problem_in(cleared) == busy
    assert [answers[name].json()["text"] for name in ("one", "three")] == ["First.", "Second."]


async def test_the_same_message_with_the_same_key_is_one_turn(world: World) -> None:
    world.says("Once.", "Twice.")
    async with served(world) as client:
        session = await new_session(client)
        path = f"/api/sessions/{session}/messages"
        key = {"Idempotency-Key": "k-1"}

        first = await client.post(path, json={"content": "Hi"}, headers=key)
        again = await client.post(path, json={"content": "Hi"}, headers=key)
        await client.post(path, json={"content": "And?"})
        late = await client.post(path, json={"content": "Hi"}, headers=key)
        other = await client.post(path, json={"content": "Ho"}, headers=key)
        empty = await client.post(path, json={"content": "Ho"}, headers={"Idempotency-Key": ""})

    assert again.json() == first.json()
    assert late.json() | {"seq": 5} == first.json()
    assert len(world.model.calls) == 2
    detail = "the idempotency key 'k-1' was used before for another message; use a new one"
    assert problem_in(other) == problem(409, "key_reused", detail, facts={"key": "k-1"})
    assert problem_in(empty)["errors"][0]["where"] == "header.Idempotency-Key"


async def test_a_tool_call_waits_for_a_decision_and_the_turn_goes_on_after_it(world: World) -> None:
    world.says(ASKS, "It is empty.")
    world.toolbox.put("files", [tool("read", "contents of {path}")])
    async with served(world) as client:
        session = await new_session(client)
        path = f"/api/sessions/{session}"

        waiting = (await client.post(f"{path}/messages", json={"content": "What is in a?"})).json()
        held = (await client.get(path)).json()["open_turn"]
        early = await client.post(f"{path}/messages", json={"content": "And?"})
        wrong = await client.post(f"{path}/approvals", json={"decisions": {"c9": "deny"}})
        odd = await client.post(f"{path}/approvals", json={"decisions": {"c1": "maybe"}})
        done = (await client.post(f"{path}/approvals", json={"decisions": {"c1": "allow_once"}})).json()
        late = await client.post(f"{path}/approvals", json={"decisions": {"c1": "allow_once"}})

    assert (waiting["outcome"], waiting["text"], waiting["approvals"]) == ("waiting", "Let me look.", [CALL])
    assert (held["state"], held["approvals"]) == ("waiting", [CALL])
    assert problem_in(early) == problem(
        409,
        "approval_pending",
        "turn 1 waits for a decision about files:read; decide or cancel it first",
        facts={"turn": 1, "calls": ["files:read"]},
    )
    assert problem_in(wrong)["code"] == problem_in(late)["code"] == "nothing_to_approve"
    assert problem_in(odd)["errors"][0]["where"] == "body.decisions.c1"
    assert (done["turn"], done["outcome"], done["text"]) == (1, "completed", "Let me look.\n\nIt is empty.")
    assert [message["role"] for message in done["messages"]] == ["user", "approval", "assistant"]
    result = done["messages"][-1]["model_reply"]["steps"][0]["results"][0]
    assert result | {"latency_ms": 0} == {
        "call_id": "c1",
        "content": "contents of a",
        "is_error": False,
        "latency_ms": 0,
        "attachments": [],
        "links": [],
    }
    assert done["request_context"] == waiting["request_context"]


async def test_a_decision_can_be_streamed(world: World) -> None:
    world.says(ASKS, "As you wish.")
    world.toolbox.put("files", [tool("read")])
    async with served(world) as client:
        session = await new_session(client)
        await client.post(f"/api/sessions/{session}/messages", json={"content": "What is in a?"})

        body = {"decisions": {"c1": "deny"}}
        async with client.stream("POST", f"/api/sessions/{session}/approvals", json=body, headers=EVENTS) as response:
            sent = [event.event async for event in events_in(response) if event.event != "reply.delta"]

    assert sent == ["approval.decided", "tool.returned", "model.replied", "turn.finished"]


async def test_a_running_turn_is_stopped_and_keeps_what_it_said(world: World) -> None:
    world.says(Reply("So far.", before_end=anyio.Event()))
    async with served(world) as client:
        session = await new_session(client)
        path = f"/api/sessions/{session}"
        nothing = await client.post(f"{path}/cancel")

        async with client.stream("POST", f"{path}/messages", json={"content": "Hi"}, headers=EVENTS) as response:
            events = events_in(response)
            async for event in events:
                if event.event == "reply.delta":
                    break
            cancelled = (await client.post(f"{path}/cancel")).json()
            last = [event async for event in events][-1]
        turn = (await client.get(f"{path}/turns/1")).json()

    assert problem_in(nothing) == problem(409, "no_turn_running", "no turn is running in this session")
    assert (cancelled["open_turn"], last.event, last.data["outcome"]) == (None, "turn.finished", "cancelled")
    assert turn["outcome"] == "cancelled"
    assert "So far.".startswith(turn["text"])
    assert turn["text"]


async def test_a_preview_is_the_request_that_would_be_made_and_stores_nothing(world: World) -> None:
    world.rule("tone", "Be kind.", include="always")
    world.toolbox.put("files", [tool("read")])
    world.says("Hello.")
    async with served(world) as client:
        session = await new_session(client)
        path = f"/api/sessions/{session}"

        preview = (await client.post(f"{path}/preview", json={"content": "Hi"})).json()
        slight = (await client.post(f"{path}/preview", params={"texts": False}, json={"content": "Hi"})).json()
        before = (await client.get(path)).json()
        await client.post(f"{path}/messages", json={"content": "Hi"})
        request = (await client.get(f"{path}/turns/1/request")).json()

    assert (before["seq"], before["message_count"]) == (1, 0)
    assert steady(slight | {"context": slight["context"] | {"id": preview["context"]["id"]}}) == steady(
        preview | {"messages": [], "tools": []}
    )
    preview["context"] |= {"id": request["context"]["id"], "catalog": request["context"]["catalog"]}
    assert steady(preview) == steady(request)
    assert sorted(request) == ["context", "declared", "messages", "tools"]
    last = request["messages"][-1]
    assert (last["role"], last["part"], last["content"]) == ("user", "message", "Hi")


async def test_a_preview_opens_no_model_so_it_may_name_one_that_is_not_there(client: httpx2.AsyncClient) -> None:
    session = await new_session(client, settings={"model": "openai:nobody"})

    response = await client.post(f"/api/sessions/{session}/preview", json={"content": "Hi"})

    context = response.json()["context"]
    assert (context["settings"]["model"], context["budget"]["window_source"]) == ("openai:nobody", "assumed")
