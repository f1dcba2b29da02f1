from __future__ import annotations

from typing import Any

import httpx2
import pytest

from server.place import new_session, problem, problem_in, served
from windowpane.testing import World, tool

ODD_NAMES = (
    "a/b",
    "/",
    "größe 日本",
    "50%",
    "%2F",
    "a?b=c#d",
    "a//b/",
    "..%2e",
    " ",
    "x\ty",
    "\N{SLIGHTLY SMILING FACE}",
)


def held(kind: str, name: str, mode: str, server: str | None = None) -> dict[str, Any]:
    return {"ref": {"type": kind, "name": name, "server": server}, "mode": mode}


async def test_items_are_added_and_removed_and_the_answer_says_whether_anything_changed(world: World) -> None:
    world.rule("tone", include="always")
    world.reference("api", include="agent")
    async with served(world) as client:
        path = f"/api/sessions/{await new_session(client)}/items"

        added = await client.post(path, json={"type": "reference", "name": "api"})
        again = await client.post(path, json={"type": "reference", "name": "api", "server": None})
        removed = await client.delete(f"{path}/rule/tone")
        twice = await client.delete(f"{path}/rule/tone")
        listed = await client.get(path)

    tone, api = held("rule", "tone", "always"), held("reference", "api", "manual")
    gone = tone["ref"]
    assert added.json() == {"changed": True, "items": [tone, api], "excluded": []}
    assert again.json() == {"changed": False, "items": [tone, api], "excluded": []}
    assert removed.json() == {"changed": True, "items": [api], "excluded": [gone]}
    assert twice.json() == {"changed": False, "items": [api], "excluded": [gone]}
    assert listed.json() == {"items": [api]}


async def test_an_item_is_excluded_and_readmitted_and_one_that_became_always_comes_in_by_an_act(world: World) -> None:
    world.rule("tone", include="agent")
    async with served(world) as client:
        session = await new_session(client)
        path = f"/api/sessions/{session}/excluded"
        excluded = await client.post(path, json={"type": "rule", "name": "tone"})
        unknown = await client.post(path, json={"type": "rule", "name": "tune"})
        readmitted = await client.delete(f"{path}/rule/tone")
        changed = await client.patch(
            f"/api/agents/pane/items/rule/tone?also_in={session}", json={"include": "always"}, headers={"If-Match": "*"}
        )
        listed = await client.get(f"/api/sessions/{session}/items")

    ref = {"type": "rule", "name": "tone", "server": None}
    assert excluded.json() == {"changed": True, "items": [], "excluded": [ref]}
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_item")
    assert readmitted.json() == {"changed": True, "items": [], "excluded": []}
    assert (changed.status_code, changed.json()["include"]) == (200, "always")
    assert listed.json() == {"items": [held("rule", "tone", "manual")]}


async def test_a_tool_is_removed_and_added_whatever_its_name(world: World) -> None:
    world.toolbox.put("ser/ver", [tool(name) for name in ODD_NAMES])
    async with served(world) as client:
        path = f"/api/sessions/{await new_session(client)}/items"
        for name in ODD_NAMES:
            url = httpx2.URL(path).join(f"{path}/tool/{_encoded(name)}")

            removed = (await client.delete(url, params={"server": "ser/ver"})).json()
            added = (await client.post(path, json={"type": "tool", "name": name, "server": "ser/ver"})).json()

            item = held("tool", name, "manual", "ser/ver")
            assert (removed["changed"], len(removed["items"])) == (True, len(ODD_NAMES) - 1), name
            assert (added["changed"], added["items"][-1]) == (True, item), name


def _encoded(name: str) -> str:
    return "".join(f"%{byte:02X}" for byte in name.encode())


async def test_an_item_that_the_agent_does_not_have_is_refused_with_a_hint(world: World) -> None:
    world.rule("coding-style")
    async with served(world) as client:
        path = f"/api/sessions/{await new_session(client)}/items"

        response = await client.post(path, json={"type": "rule", "name": "coding_style"})

    detail = "the agent has no item 'rule:coding_style'; did you mean rule:coding-style?"
    assert problem_in(response) == problem(404, "unknown_item", detail, facts={"item": "rule:coding_style"})


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"type": "tool", "name": "read"}, "body: a tool names its server; a rule or a reference has none"),
        ({"type": "rule", "name": "x", "server": "s"}, "body: a tool names its server; a rule or a reference has none"),
        ({"type": "prompt", "name": "x"}, "body.type: input should be 'rule', 'reference' or 'tool'"),
        ({"type": "rule"}, "body.name: field required"),
        ({"type": "rule", "name": 5}, "body.name: input should be a valid string"),
    ],
)
async def test_an_item_that_is_no_item_is_refused(
    client: httpx2.AsyncClient, body: dict[str, Any], detail: str
) -> None:
    response = await client.post(f"/api/sessions/{await new_session(client)}/items", json=body)

    errors = [dict(zip(("where", "message"), detail.split(": ", 1), strict=True))]
    assert problem_in(response) == problem(422, "invalid_input", detail, errors=errors)
