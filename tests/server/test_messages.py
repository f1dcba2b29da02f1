from __future__ import annotations

import httpx2
import pytest

from server.place import engine_of, listening, new_session, problem, problem_in, served
from windowpane.context.events import MessageAdded
from windowpane.context.ids import SessionId
from windowpane.context.items import Rule, item_hash
from windowpane.errors import ModelUnavailableError
from windowpane.models.scripted import Call, Reply
from windowpane.server.app import create_app
from windowpane.testing import World, tool


async def talk(client: httpx2.AsyncClient, session: str, *messages: str) -> None:
    for message in messages:
        response = await client.post(f"/api/sessions/{session}/messages", json={"content": message})
        assert response.status_code == 200, response.text


async def test_messages_are_read_in_pages_from_the_end(world: World) -> None:
    world.says(*(f"Answer {number}." for number in range(5)))
    async with served(world) as client:
        session = await new_session(client)
        await talk(client, session, *(f"Question {number}" for number in range(5)))
        path = f"/api/sessions/{session}/messages"

        whole = (await client.get(path)).json()
        pages: list[list[dict[str, object]]] = []
        before: int | None = None
        while not pages or before is not None:
            page = (await client.get(path, params={"limit": 3} | ({"before": before} if before else {}))).json()
            pages.insert(0, page["messages"])
            before = page["before"]

    assert whole["before"] is None
    assert [len(page) for page in pages] == [1, 3, 3, 3]
    assert [message for page in pages for message in page] == whole["messages"]
    assert [message["role"] for message in whole["messages"]] == ["user", "assistant"] * 5


async def test_a_page_does_not_part_what_a_failed_turn_left(world: World) -> None:
    world.says(
        Reply("Let me look.", calls=(Call("files__read"),)), Reply(error=ModelUnavailableError("the model is down"))
    )
    world.toolbox.put("files", [tool("read", permission="not_required")])
    async with served(world) as client:
        session = await new_session(client)
        await talk(client, session, "Hi")
        path = f"/api/sessions/{session}/messages"

        last = (await client.get(path, params={"limit": 1})).json()
        first = (await client.get(path, params={"limit": 1, "before": last["before"]})).json()

    assert [message["role"] for message in last["messages"]] == ["assistant", "error"]
    assert ([message["role"] for message in first["messages"]], first["before"]) == (["user"], None)


async def test_a_page_that_cannot_be_is_refused(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    for query in ("before=0", f"before={10**20}", "before=x", "limit=0", f"limit={10**20}"):
        response = await client.get(f"/api/sessions/{session}/messages?{query}")

        assert problem_in(response)["status"] == 422, query


@pytest.mark.spec("S0.67", "S0.68", "S0.72")
async def test_the_context_of_any_message_is_one_call_away(world: World) -> None:
    world.rule("tone", "Be kind.", include="always", version="1")
    world.reference("api", include="agent")
    world.says("One.", "Two.")
    async with served(world) as client:
        session = await new_session(client)
        await talk(client, session, "First")
        await client.post(f"/api/sessions/{session}/items", json={"type": "reference", "name": "api"})
        await talk(client, session, "Second")

        messages = (await client.get(f"/api/sessions/{session}/messages")).json()["messages"]
        answers = [message for message in messages if message["role"] == "assistant"]
        contexts = [
            (await client.get(f"/api/sessions/{session}/turns/{answer['turn']}/context")).json() for answer in answers
        ]

    tone = contexts[0]["items"][0]
    assert tone | {"tokens": 0} == {
        "type": "rule",
        "name": "tone",
        "server": None,
        "include_mode": "always",
        "status": "used",
        "reason": "included in every session of this agent",
        "tokens": 0,
        "hash": item_hash(Rule("tone", "Be kind.")),
        "version": "1",
        "priority": 500,
        "evidence": None,
        "offered_name": None,
        "found": None,
        "since": None,
        "changed_since": "unchanged",
    }
    assert [[(item["name"], item["include_mode"]) for item in context["items"]] for context in contexts] == [
        [("tone", "always")],
        [("tone", "always"), ("api", "manual")],
    ]
    assert [[candidate["name"] for candidate in context["candidates"]] for context in contexts] == [["api"], []]
    assert contexts[0]["candidates"][0]["reason"]


@pytest.mark.spec("S0.86")
async def test_a_message_that_nobody_recorded_a_request_for_has_none(world: World) -> None:
    engine = engine_of(world)
    async with listening(create_app(engine)) as address, httpx2.AsyncClient(base_url=address) as client:
        session = await new_session(client)
        await engine.conversations.add(SessionId(session), MessageAdded(role="assistant", content="From elsewhere."))

        message = (await client.get(f"/api/sessions/{session}/messages")).json()["messages"][0]

    assert (message["role"], message["turn"], message["request"]) == ("assistant", None, None)


async def test_an_item_stays_readable_as_it_was_sent_and_says_what_became_of_it(world: World) -> None:
    tone = world.rule("tone", "Be kind.", include="always")
    gone = world.rule("gone", "Leave soon.", include="always")
    world.rule("same", "Stay.", include="always")
    world.toolbox.put("files", [tool("read/all", description="Read")])
    world.says("Hello.")
    async with served(world) as client:
        session = await new_session(client)
        await talk(client, session, "Hi")
        path = f"/api/sessions/{session}/turns/1/items"
        tone.write_text("---\ninclude: always\n---\nBe rude.")
        gone.unlink()

        rules = [(await client.get(f"{path}/rule/{name}")).json() for name in ("tone", "gone", "same")]
        found = (await client.get(f"{path}/tool/read%2Fall", params={"server": "files"})).json()
        world.toolbox.drop("files")
        dropped = (await client.get(f"{path}/tool/read%2Fall", params={"server": "files"})).json()
        unknown = await client.get(f"{path}/rule/nobody")
        turnless = await client.get(f"/api/sessions/{session}/turns/2/items/rule/tone")

    assert [(entry["text"], entry["changed_since"], entry["item"]["status"]) for entry in rules] == [
        ("Be kind.", "changed", "used"),
        ("Leave soon.", "deleted", "used"),
        ("Stay.", "unchanged", "used"),
    ]
    assert rules[0]["definition"] == {
        "type": "rule",
        "name": "tone",
        "description": "",
        "priority": 500,
        "text": "Be kind.",
    }
    assert (found["text"], found["changed_since"]) == (None, "unchanged")
    assert found["definition"] == {
        "type": "tool",
        "name": "read/all",
        "description": "Read",
        "server": "files",
        "parameters": {"type": "object", "properties": {}},
    }
    assert dropped["changed_since"] == "deleted"
    assert problem_in(unknown) == problem(404, "not_found", "turn 1 had no item 'rule:nobody'")
    assert problem_in(turnless)["code"] == "turn_not_found"


async def test_a_turn_that_was_not_is_not_found(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    for turn in (0, -1, 2, 10**30):
        for rest in ("", "/context", "/request", "/items/rule/tone"):
            response = await client.get(f"/api/sessions/{session}/turns/{turn}{rest}")

            assert problem_in(response) == problem(
                404,
                "turn_not_found",
                f"session {session!r} has no turn {turn}",
                facts={"session_id": session, "turn": turn},
            )


async def test_a_turn_that_is_no_number_is_refused(client: httpx2.AsyncClient) -> None:
    response = await client.get(f"/api/sessions/{await new_session(client)}/turns/last")

    assert problem_in(response)["errors"][0]["where"] == "path.turn"
