from __future__ import annotations

from typing import Any

import httpx2
import pytest

from server.place import new_session, problem, problem_in, served, steady
from windowpane.testing import World, tool

SETTINGS: dict[str, Any] = dict.fromkeys(
    (
        "model",
        "temperature",
        "top_p",
        "max_output_tokens",
        "max_chat_turns",
        "tool_permission",
        "search",
        "mode",
        "current_url",
        "time_zone",
        "user_time",
        "environment_hint",
        "current_intent",
        "system_prompt",
        "cache",
    )
)


async def test_a_new_session_holds_the_always_items_of_its_agent(world: World) -> None:
    world.rule("tone", include="always")
    world.rule("extra", include="manual")
    world.reference("api", include="always")
    world.toolbox.put("files", [tool("read")])

    async with served(world) as client:
        response = await client.post(
            "/api/sessions", json={"agent": "pane", "name": " First ", "settings": {"top_p": 1}}
        )
        again = await client.get(response.headers["location"])

    body = response.json()
    assert response.status_code == 201
    assert response.headers["location"] == f"/api/sessions/{body['id']}"
    assert steady(body) == {
        "id": body["id"],
        "name": "First",
        "title": "First",
        "agent": "pane",
        "owner": "local",
        "settings": SETTINGS | {"top_p": 1.0},
        "items": [
            {"ref": {"type": "rule", "name": "tone", "server": None}, "mode": "always"},
            {"ref": {"type": "reference", "name": "api", "server": None}, "mode": "always"},
            {"ref": {"type": "tool", "name": "read", "server": "files"}, "mode": "always"},
        ],
        "origin": None,
        "excluded": [],
        "rules": ["tone"],
        "references": ["api"],
        "own_references": [],
        "tools": [{"server": "files", "name": "read"}],
        "context": {},
        "meta": {"context": {}},
        "observed": [],
        "fetched": {"web_search": 0, "page": 0},
        "summary": None,
        "message_count": 0,
        "turn_count": 0,
        "last_turn": 0,
        "token_count": 0,
        "seq": 1,
        "created_at": "…",
        "updated_at": "…",
        "open_turn": None,
        "branch_of": None,
    }
    assert again.json() == body


async def test_a_session_without_a_body_gets_the_first_agent(client: httpx2.AsyncClient) -> None:
    response = await client.post("/api/sessions")

    assert (response.status_code, response.json()["agent"]) == (201, "pane")


async def test_sessions_are_listed_last_used_first_in_pages(client: httpx2.AsyncClient) -> None:
    ids = [await new_session(client, name=str(number)) for number in range(3)]
    await client.patch(f"/api/sessions/{ids[0]}", json={"name": "used"})

    first = (await client.get("/api/sessions", params={"limit": 2})).json()
    second = (await client.get("/api/sessions", params={"limit": 2, "cursor": first["cursor"]})).json()
    other = (await client.get("/api/sessions", params={"agent": "somebody"})).json()

    assert [entry["name"] for entry in first["sessions"]] == ["used", "2"]
    assert ([entry["name"] for entry in second["sessions"]], second["cursor"]) == (["1"], None)
    assert other == {"sessions": [], "cursor": None, "names_only": False}


@pytest.mark.parametrize("query", [{"limit": 0}, {"limit": 201}, {"limit": "x"}, {"cursor": "x"}, {"cursor": "9" * 30}])
async def test_a_page_that_cannot_be_is_refused(client: httpx2.AsyncClient, query: dict[str, Any]) -> None:
    response = await client.get("/api/sessions", params=query)

    assert problem_in(response)["code"] == "invalid_input"
    assert response.status_code == 422


@pytest.mark.spec("S2.25")
async def test_a_change_leaves_what_it_does_not_name(client: httpx2.AsyncClient) -> None:
    session = await new_session(client, name="one", settings={"temperature": 0.5, "mode": "thinking"})

    named = await client.patch(f"/api/sessions/{session}", json={"name": "two"})
    cleared = await client.patch(f"/api/sessions/{session}", json={"settings": {"temperature": None, "top_p": 0.1}})
    nothing = await client.patch(f"/api/sessions/{session}", json={})
    nameless = await client.patch(f"/api/sessions/{session}", json={"name": None})

    before, after = named.json(), cleared.json()
    assert (before["name"], before["settings"]) == ("two", SETTINGS | {"temperature": 0.5, "mode": "thinking"})
    assert (after["name"], after["settings"]) == ("two", SETTINGS | {"top_p": 0.1, "mode": "thinking"})
    assert nothing.json() == after
    assert (nameless.json()["name"], nameless.json()["settings"]) == ("", after["settings"])


@pytest.mark.parametrize(
    ("settings", "detail"),
    [
        ({"temperature": 3}, "temperature: must be between 0 and 2, not 3"),
        ({"temperature": "hot"}, "temperature: Input should be a valid number"),
        ({"mode": "odd"}, "mode: Input should be 'normal', 'thinking' or 'research'"),
        ({"name": "x"}, "name: the name stands beside `settings`, not in it"),
        ({"max_chat_turns": 1.5}, "max_chat_turns: Input should be a valid integer"),
    ],
)
async def test_a_setting_that_cannot_be_used_changes_nothing(
    client: httpx2.AsyncClient, settings: dict[str, Any], detail: str
) -> None:
    session = await new_session(client)
    before = (await client.get(f"/api/sessions/{session}")).json()

    response = await client.patch(f"/api/sessions/{session}", json={"name": "new", "settings": settings})

    facts = {"name": next(iter(settings))}
    assert problem_in(response) == problem(422, "invalid_setting", detail, facts=facts)
    assert (await client.get(f"/api/sessions/{session}")).json() == before


@pytest.mark.parametrize("model", ["gpt", "nobody:gpt-5", ":x", "scripted:gone"])
async def test_a_model_that_cannot_exist_is_refused_and_one_without_a_key_is_taken(
    client: httpx2.AsyncClient, model: str
) -> None:
    session = await new_session(client)

    refused = await client.patch(f"/api/sessions/{session}", json={"name": "new", "settings": {"model": model}})
    begun = await client.post("/api/sessions", json={"settings": {"model": model}})
    taken = await client.patch(f"/api/sessions/{session}", json={"settings": {"model": "anthropic:claude-sonnet-4-5"}})

    assert [(problem_in(each)["code"], each.status_code) for each in (refused, begun)] == [("unknown_model", 422)] * 2
    assert (taken.json()["name"], taken.json()["settings"]["model"]) == ("", "anthropic:claude-sonnet-4-5")


UNSTORABLE = (
    '{"settings": {"search": {"x": "\\ud800"}}}',
    '{"settings": {"search": {"\\ud800": 1}}}',
    '{"settings": {"search": {"x": NaN}}}',
    '{"settings": {"search": {"x": [1e999]}}}',
    '{"settings": {"temperature": NaN}}',
    '{"settings": {"temperature": 1' + "0" * 400 + "}}",
    '{"settings": {"max_chat_turns": 1' + "0" * 400 + "}}",
    '{"settings": {"\\ud800": 1}}',
    '{"settings": []}',
    '{"name": "\\udfff"}',
    '{"name": "' + "x" * 201 + '"}',
    '{"name": 5}',
    '{"nmae": "x"}',
    "[]",
    "null",
)


async def test_what_cannot_be_stored_is_refused(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    before = (await client.get(f"/api/sessions/{session}")).json()
    for body in UNSTORABLE:
        changed = await client.patch(
            f"/api/sessions/{session}", content=body, headers={"Content-Type": "application/json"}
        )

        assert changed.status_code == 422, body
        assert problem_in(changed)["code"] in ("invalid_input", "invalid_setting"), body
    assert (await client.get(f"/api/sessions/{session}")).json() == before


@pytest.mark.spec("S4.49")
async def test_a_deleted_session_is_gone(world: World) -> None:
    world.says("Hello.")
    async with served(world) as client:
        session = await new_session(client)
        await client.post(f"/api/sessions/{session}/messages", json={"content": "Hi"})

        deleted = await client.delete(f"/api/sessions/{session}")

        gone = problem(404, "session_not_found", f"no session {session!r}", facts={"session_id": session})
        assert (deleted.status_code, deleted.content) == (204, b"")
        for path in ("", "/messages", "/items", "/turns/1", "/turns/1/context", "/turns/1/request"):
            assert problem_in(await client.get(f"/api/sessions/{session}{path}")) == gone
        assert problem_in(await client.delete(f"/api/sessions/{session}")) == gone
        assert (await client.get("/api/sessions")).json() == {"sessions": [], "cursor": None, "names_only": False}


@pytest.mark.spec("S4.58")
async def test_erasing_the_conversation_keeps_the_session(world: World) -> None:
    world.rule("tone", include="always")
    world.says("Hello.", "Again.")
    async with served(world) as client:
        session = await new_session(client, name="kept", settings={"mode": "thinking"})
        await client.post(f"/api/sessions/{session}/messages", json={"content": "Hi"})

        cleared = (await client.delete(f"/api/sessions/{session}/history")).json()
        messages = (await client.get(f"/api/sessions/{session}/messages")).json()
        turn = await client.get(f"/api/sessions/{session}/turns/1")
        context = await client.get(f"/api/sessions/{session}/turns/1/context")
        after = (await client.post(f"/api/sessions/{session}/messages", json={"content": "Hi"})).json()

    assert (cleared["name"], cleared["rules"], cleared["settings"]["mode"]) == ("kept", ["tone"], "thinking")
    assert cleared["message_count"] == 0
    assert messages == {"messages": [], "before": None}
    assert problem_in(turn)["code"] == problem_in(context)["code"] == "turn_not_found"
    assert (after["outcome"], after["text"]) == ("completed", "Again.")


async def test_an_id_that_is_nobodys_is_not_found(client: httpx2.AsyncClient) -> None:
    for session_id in ("ses_nobody", "..%2F..%2Fetc", "%00", "%FF", "a%0Ab", "x" * 2000, "%F0%9F%AA%9F"):
        for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("GET", "/messages"), ("POST", "/cancel")):
            body: Any = {"name": "x"} if method == "PATCH" else None

            response = await client.request(method, f"/api/sessions/{session_id}{path}", json=body)

            assert response.status_code in (404, 422), (method, path, response.text)
            assert problem_in(response)["code"] in ("session_not_found", "not_found", "invalid_input")


async def test_an_agent_without_a_core_prompt_cannot_begin(world: World) -> None:
    (world.root / "pane" / "prompts" / "core.md").unlink()

    async with served(world) as client:
        response = await client.post("/api/sessions", json={})
        unknown = await client.post("/api/sessions", json={"agent": "nobody"})

    assert problem_in(response)["code"] == "missing_core_prompt"
    assert response.status_code == 422
    assert problem_in(unknown) == problem(
        404, "agent_not_found", "no agent 'nobody'; available: pane", facts={"name": "nobody"}
    )
