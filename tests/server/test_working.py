"""Working context over HTTP: what a session is working on."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from server.place import new_session, problem, problem_in, served
from windowpane.models.scripted import Call, Reply
from windowpane.testing import World, tool


@pytest.mark.spec("S2.54", "S2.69-S2.71")
async def test_context_replaces_all_sets_and_then_set_context_changes_one(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    await client.patch(f"/api/sessions/{session}", json={"context": {"ports": ["1"]}})

    changed = await client.patch(
        f"/api/sessions/{session}",
        json={
            "context": {"files": ["/a"], "endpoints": ["http://x"]},
            "setContext": {"setName": "files", "items": ["/b"], "mode": "merge"},
        },
    )
    snake = await client.patch(f"/api/sessions/{session}", json={"set_context": {"set_name": "endpoints", "items": []}})
    read = (await client.get(f"/api/sessions/{session}")).json()

    assert changed.json()["context"] == {"endpoints": ["http://x"], "files": ["/a", "/b"]}
    assert snake.json()["context"] == {"files": ["/a", "/b"]}
    assert read["meta"] == {"context": {"files": ["/a", "/b"]}}


@pytest.mark.spec("S2.24")
async def test_a_change_that_is_refused_changes_nothing_at_all(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    before = (await client.get(f"/api/sessions/{session}")).json()
    full = {f"s{number}": [str(item) for item in range(10)] for number in range(5)}

    refused = await client.patch(
        f"/api/sessions/{session}",
        json={"name": "New", "context": full, "setContext": {"setName": "files", "items": ["/one-more"]}},
    )

    assert problem_in(refused) == problem(
        422, "invalid_input", "Context too large (51 items, max 50). Remove some items first."
    )
    assert (await client.get(f"/api/sessions/{session}")).json() == before


@pytest.mark.spec("S2.74", "S2.75")
async def test_an_applet_captured_for_another_session_is_refused(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    applet = {"setName": "applet", "items": ["git-diff", "path=/srv"]}

    wrong = await client.patch(f"/api/sessions/{session}", json={"session_id": "ses_other", "setContext": applet})
    right = await client.patch(f"/api/sessions/{session}", json={"session_id": session, "setContext": applet})
    left = await client.patch(f"/api/sessions/{session}", json={"setContext": {"setName": "applet", "items": []}})

    assert (wrong.status_code, problem_in(wrong)["code"]) == (409, "wrong_session")
    assert right.json()["context"] == {"applet": ["git-diff", "path=/srv"]}
    assert left.json()["context"] == {}


BAD_SETS = [
    (
        {"setName": "ports", "items": [str(n) for n in range(11)]},
        "Too many items (11, max 10 per set). Nothing was changed.",
    ),
    ({"setName": "ports", "items": ["80", 81]}, "Items must be a list of strings."),
    ({"setName": "ports", "items": "80"}, "Items must be a list of strings."),
    ({"setName": "ports", "items": None}, "Items must be a list of strings."),
    ({"setName": "ports", "items": [" "]}, "An item is empty. Nothing was changed."),
    ({"setName": "ports", "items": ["x" * 2001]}, "An item has 2001 characters (max 2000). Nothing was changed."),
    ({"setName": "ports", "items": ["\ud800"]}, "An item is not valid text. Nothing was changed."),
    (
        {"setName": "files", "items": ["notes.md"]},
        "Files need absolute paths, and 'notes.md' is not one. Nothing was changed.",
    ),
    ({"setName": 7, "items": ["80"]}, "A set name must be a string."),
    ({"setName": " ports", "items": ["80"]}, "A set name has 1 to 64 printable characters and no spaces around them."),
    ({"setName": "ports", "items": ["80"], "mode": "union"}, "There is no mode 'union'; use replace or merge."),
    ({"setName": "ports", "items": ["80"], "mode": ["merge"]}, "There is no mode ['merge']; use replace or merge."),
]


@pytest.mark.spec("S2.19", "S2.24", "S2.71")
@pytest.mark.parametrize(("wish", "why"), BAD_SETS)
async def test_bad_sets_are_refused_in_the_words_of_every_door(
    client: httpx2.AsyncClient, wish: dict[str, Any], why: str
) -> None:
    session = await new_session(client)
    await client.patch(f"/api/sessions/{session}", json={"context": {"ports": ["443"]}})
    before = (await client.get(f"/api/sessions/{session}")).json()
    headers = {"Content-Type": "application/json"}

    bodies = [{"name": "New", "settings": {"mode": "research"}, "setContext": wish}]
    if "mode" not in wish and isinstance(wish["setName"], str):
        bodies.append({"name": "New", "context": {wish["setName"]: wish["items"]}})
    refused = [
        await client.patch(f"/api/sessions/{session}", content=json.dumps(body), headers=headers) for body in bodies
    ]

    assert [problem_in(one) for one in refused] == [problem(422, "invalid_input", why)] * len(bodies)
    assert (await client.get(f"/api/sessions/{session}")).json() == before


async def test_a_setting_that_cannot_be_used_leaves_the_sets_alone_too(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    before = (await client.get(f"/api/sessions/{session}")).json()

    for body in ({"settings": {"temperature": 9}}, {"name": "x" * 201}, {"settings": {"name": "New"}}):
        refused = await client.patch(f"/api/sessions/{session}", json={**body, "context": {"ports": ["80"]}})
        assert refused.status_code == 422
    assert (await client.get(f"/api/sessions/{session}")).json() == before


@pytest.mark.spec("S2.16", "S2.18", "S2.23", "S2.26")
async def test_the_reply_says_what_became_of_the_sets_and_warns_of_typos(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    ten = [str(number) for number in range(10)]

    async def patched(**body: Any) -> tuple[str, list[str]]:
        changed = (await client.patch(f"/api/sessions/{session}", json=body)).json()
        return changed["reply"], changed["warnings"]

    typo = 'Unknown set name: "file" (typo?) Known: files, applet, endpoints, ports.'
    assert await patched(name="New") == ("", [])
    assert await patched(setContext={"setName": "ports", "items": ten}) == ("Set ports: 10 items", [])
    assert await patched(set_context={"set_name": "ports", "items": ["99"], "mode": "merge"}) == (
        "Merged ports: 10 items",
        ["Dropped to stay within 10: 0"],
    )
    assert await patched(context={"file": ["/a"]}) == ("Replaced all context: 1 items", [typo])
    assert await patched(context={"file": ["/a"]}, setContext={"setName": "file", "items": ["/b"]}) == (
        "Set file: 1 items",
        [typo],
    )
    assert await patched(context=None) == ("Cleared all context", [])


async def test_files_that_tools_touched_are_listed_and_promoted_by_one_call(world: World) -> None:
    world.toolbox.put("files", [tool("read", "contents of {path}", permission="not_required")])
    world.says(Reply("Let me see.", calls=(Call("files__read", '{"path": "/srv/a.md"}'),)), "Done.")
    async with served(world) as client:
        session = await new_session(client)
        await client.post(f"/api/sessions/{session}/messages", json={"content": "Read it"})
        path = f"/api/sessions/{session}/observed"
        listed = (await client.get(path)).json()
        strange = await client.post(path, json={"paths": ["/etc/passwd"]})
        odd = await client.post(path, json={"paths": [7]})
        promoted = (await client.post(path, json={"paths": ["/srv/a.md"]})).json()

    assert listed == {"observed": ["/srv/a.md"]}
    why = "Not observed in this session: /etc/passwd. Nothing was changed."
    assert problem_in(strange) == problem(422, "invalid_input", why)
    assert problem_in(odd)["status"] == 422
    assert (promoted["context"], promoted["observed"], promoted["reply"]) == (
        {"files": ["/srv/a.md"]},
        ["/srv/a.md"],
        "Merged files: 1 items",
    )
