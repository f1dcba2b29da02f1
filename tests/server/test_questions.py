"""What a running tool asks, over HTTP: shown as an event, answered by a route, declined where there is no user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import httpx2

from patience import PATIENCE_S
from server.place import events_in, new_session, problem_in, served
from windowpane.models.scripted import Call, Reply
from windowpane.testing import FunctionTool, World
from windowpane.tools.asking import Asked, current_caller

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"size": {"type": "string", "enum": ["small", "large"]}},
    "required": ["size"],
}


async def _order(arguments: Mapping[str, Any]) -> str:
    caller = current_caller()
    assert caller is not None
    caller.progress(1, 2, "asking")
    answer = await caller.ask(Asked(server="shop", message="Which size?", schema=SCHEMA))
    return f"{answer.action} {dict(answer.content or {})}"


def shop(world: World) -> None:
    world.toolbox.put("shop", [FunctionTool(name="order", run=_order, permission="not_required")])
    world.says(Reply(calls=(Call("shop__order", "{}", id="c1"),)), "Ordered.")


async def test_a_question_is_an_event_of_the_stream_and_is_answered_by_a_call(world: World) -> None:
    shop(world)
    async with served(world) as client:
        session = await new_session(client)
        path = f"/api/sessions/{session}"
        accept = {"Accept": "text/event-stream"}
        seen: list[dict[str, Any]] = []
        refused: list[httpx2.Response] = []
        with anyio.fail_after(PATIENCE_S):
            async with client.stream("POST", f"{path}/messages", json={"content": "Tea"}, headers=accept) as response:
                async for event in events_in(response):
                    seen.append(event.data)
                    if event.data["type"] == "question.asked":
                        question = event.data["question"]
                        answer = {"question_id": question["id"], "action": "accept", "content": {"size": "huge"}}
                        refused.append(await client.post(f"{path}/answers", json=answer))
                        held = (await client.get(path)).json()["open_turn"]
                        answer["content"] = {"size": "small"}
                        done = await client.post(f"{path}/answers", json=answer)
                        refused.append(await client.post(f"{path}/answers", json=answer))
                        assert (held["state"], held["questions"], done.status_code) == ("waiting", [question], 200)

    told = [event["type"] for event in seen]
    assert told[told.index("tool.progress") :] == [
        "tool.progress",
        "question.asked",
        "question.answered",
        "tool.returned",
        *(["reply.delta"] * told[told.index("tool.returned") :].count("reply.delta")),
        "model.replied",
        "turn.finished",
    ]
    progress = next(event for event in seen if event["type"] == "tool.progress")
    assert progress == {
        "turn": 1,
        "call_id": "c1",
        "progress": 1,
        "total": 2,
        "message": "asking",
        "type": "tool.progress",
    }
    returned = next(event for event in seen if event["type"] == "tool.returned")
    assert returned["result"]["content"] == "accept {'size': 'small'}"
    assert [problem_in(response)["code"] for response in refused] == ["invalid_input", "no_question"]


async def test_a_one_off_request_of_an_openai_client_has_no_user_and_is_declined_at_once(world: World) -> None:
    shop(world)
    async with served(world) as client:
        body = {"model": "pane", "messages": [{"role": "user", "content": "Tea"}]}
        with anyio.fail_after(PATIENCE_S):
            answer = (await client.post("/v1/chat/completions", json=body)).json()

    assert answer["choices"][0]["message"]["content"] == "Ordered."
    (result,) = [message for message in world.model.calls[1].messages if message.role == "tool"]
    assert result.content == "decline {}"
