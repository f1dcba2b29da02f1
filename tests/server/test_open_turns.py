"""A turn that is not over can be looked at as one that is: while its answer is written, and while an approval waits."""

from __future__ import annotations

from typing import Any

import anyio
import httpx2

from server.place import new_session, served
from tools.running import until
from windowpane.models.scripted import Call, Reply
from windowpane.testing import World, tool


async def views(client: httpx2.AsyncClient, base: str) -> dict[str, Any]:
    """Return what each view of the first turn answers."""
    told: dict[str, Any] = {}
    for view in ("context", "request", "calls", "debug", "explain"):
        response = await client.get(f"{base}/turns/1/{view}")
        assert response.status_code == 200, (view, response.text)
        told[view] = response.json()
    turn = await client.get(f"{base}/turns/1")
    assert turn.status_code == 200, turn.text
    return {**told, "turn": turn.json()}


async def test_every_view_answers_while_an_approval_waits(world: World) -> None:
    world.rule("tone", "Be kind.", include="always")
    world.toolbox.put("files", [tool("wipe", "wiped", permission="required")])
    world.says(Reply("Let me see.", calls=(Call("files__wipe", "{}", "c1"),)), "Gone.")
    async with served(world) as client:
        session = await new_session(client)
        base = f"/api/sessions/{session}"
        sent = await client.post(f"{base}/messages", json={"content": "Wipe it."})
        told = await views(client, base)

    assert sent.json()["outcome"] == told["turn"]["outcome"] == "waiting"
    assert [(item["name"], item["changed_since"]) for item in told["context"]["items"]] == [
        ("tone", "unchanged"),
        ("wipe", "unchanged"),
    ]
    assert told["request"]["messages"][-1]["content"] == "Wipe it."
    assert [(call["step"], call["outcome"]) for call in told["calls"]["calls"]] == [(1, "complete")]


async def say(client: httpx2.AsyncClient, base: str) -> None:
    await client.post(f"{base}/messages", json={"content": "Write."})


async def test_every_view_answers_while_the_answer_is_written(world: World) -> None:
    world.rule("tone", "Be kind.", include="always")
    end = anyio.Event()
    world.says(Reply("It is being written.", before_end=end))
    async with served(world) as client, anyio.create_task_group() as tasks:
        session = await new_session(client)
        base = f"/api/sessions/{session}"
        tasks.start_soon(say, client, base)
        await until(lambda: bool(world.model.calls))
        told = await views(client, base)
        world.rule("tone", "Be brief.", include="always")
        edited: Any = (await client.get(f"{base}/turns/1/context")).json()
        end.set()

        assert told["turn"]["outcome"] == "running"
        assert [(item["name"], item["changed_since"]) for item in told["context"]["items"]] == [("tone", "unchanged")]
        assert [item["changed_since"] for item in edited["items"]] == ["changed"]
        assert told["request"]["messages"][-1]["content"] == "Write."
