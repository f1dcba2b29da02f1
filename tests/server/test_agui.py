from __future__ import annotations

from typing import Any

import httpx2
import pytest

from clients.node import seen_by
from server.place import problem_in, served
from windowpane.errors import ModelUnavailableError
from windowpane.models.scripted import Call, Reply
from windowpane.testing import World, tool

TEXT = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
CALL = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"]


def run_input(run: str = "r1", **more: Any) -> dict[str, Any]:
    return {"threadId": "t", "runId": run, "messages": [{"id": "m", "role": "user", "content": "Hi"}], **more}


@pytest.mark.client("AG-UI client", "chat", "streaming", "tools")
async def test_ag_uis_own_client_runs_tools_and_approvals(world: World) -> None:
    world.toolbox.put("files", [tool("read", "contents of {path}")])
    world.says(
        Reply("Let me see.", thinking="Hm.", calls=(Call("client__weather", '{"city": "Oslo"}', id="c1"),)),
        "Rain in Oslo.",
        Reply(calls=(Call("files__read", '{"path": "a"}', id="f1"),)),
        "It is short.",
        Reply("I thi", error=ModelUnavailableError("the model is down; try again")),
    )
    async with served(world) as http:
        seen = await seen_by("agui.mjs", str(http.base_url).rstrip("/"))
        (session,) = (await http.get("/api/sessions")).json()["sessions"]

    first, second, third, fourth = seen["runs"]
    named = [["windowpane.turn", ["session", "turn"]]]
    assert first["events"][:2] == ["RUN_STARTED", "CUSTOM"]
    assert first["events"][-7:] == [*TEXT, *CALL, "RUN_FINISHED"]
    assert {"REASONING_MESSAGE_CONTENT"} <= set(first["events"])
    assert (first["custom"], seen["call"]) == (named, ["weather", '{"city": "Oslo"}'])
    assert [entry for entry in first["added"] if entry[0] == "assistant"] == [["assistant", "Let me see.", 1]]
    assert first["outcome"] == {"type": "success", "pendingToolCallIds": ["c1"]}
    assert second == {
        "events": ["RUN_STARTED", *TEXT, "RUN_FINISHED"],
        "custom": [],
        "added": [["assistant", "Rain in Oslo.", 0]],
        "outcome": {"type": "success"},
    }
    assert third["events"] == ["RUN_STARTED", "CUSTOM", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END", *CALL, "RUN_FINISHED"]
    assert (third["outcome"]["type"], third["outcome"]["interrupts"][0]["toolCallId"]) == ("interrupt", "f1")
    assert fourth["events"] == ["RUN_STARTED", "TOOL_CALL_RESULT", *TEXT, "RUN_FINISHED"]
    assert fourth["added"] == [["tool", "contents of a", 0], ["assistant", "It is short.", 0]]
    assert seen["failure"] == ["model_unavailable", "the model is down; try again"]
    assert (session["name"], session["agent"], session["turn_count"]) == ("thread-1", "pane", 3)
    assert world.model.calls[1].messages[-1].content == "12 degrees, rain"


async def test_the_working_context_is_shown_when_it_changes(world: World) -> None:
    world.write("agent.yaml", "model: scripted:test\n")
    noting = Call("windowpane__set_relevant_context", '{"set_name": "ports", "items": ["8470"]}', id="s1")
    world.says(Reply(calls=(noting,)), "Noted.")
    async with served(world) as http:
        path = "/api/agents/pane/ag-ui"
        async with http.stream("POST", path, json=run_input()) as response:
            sent = [line.removeprefix("data: ") async for line in response.aiter_lines() if line.startswith("data: ")]

    assert response.headers["windowpane-turn"] == "1"
    assert any('"windowpane.context"' in line and '{"ports":["8470"]}' in line for line in sent)


async def test_the_same_run_sent_again_joins_the_first(world: World) -> None:
    world.says("Hello.")
    async with served(world) as http:
        answers = [await http.post("/api/agents/pane/ag-ui", json=run_input()) for _ in range(2)]

    assert [answer.headers["windowpane-turn"] for answer in answers] == ["1", "1"]
    assert all('"delta":"Hello."' in answer.text for answer in answers)
    assert len(world.model.calls) == 1


async def test_a_run_that_cannot_begin_is_a_problem(client: httpx2.AsyncClient) -> None:
    image = {"type": "image", "source": {"type": "url", "value": "https://example.com/a.png"}}
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("nobody", run_input()),
        ("pane", run_input(messages=[])),
        ("pane", run_input(messages=[{"id": "m", "role": "user", "content": " "}])),
        ("pane", run_input(messages=[{"id": "m", "role": "user", "content": [image]}])),
        ("pane", run_input(messages=[{"id": "m", "role": "tool", "content": "x", "toolCallId": "c"}])),
        ("pane", run_input(resume=[{"interruptId": "int-c", "status": "resolved", "payload": {"approved": True}}])),
        ("pane", run_input(threadId="")),
        ("pane", {"threadId": "t"}),
    ]
    seen = [problem_in(await client.post(f"/api/agents/{agent}/ag-ui", json=body)) for agent, body in bodies]

    assert [(entry["status"], entry["code"]) for entry in seen] == [
        (404, "agent_not_found"),
        (422, "invalid_input"),
        (422, "invalid_input"),
        (422, "invalid_input"),
        (409, "no_result_awaited"),
        (409, "nothing_to_approve"),
        (422, "invalid_input"),
        (422, "invalid_input"),
    ]
