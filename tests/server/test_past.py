"""Looking back over HTTP: explain, compare, replay, and context tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from server.guests import guarded
from server.place import new_session, problem_in, served
from windowpane.context.ids import BlobHash, SessionId
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.search.index import ItemIndex
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, tool

REFUND = "How long does a refund take?"


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "agents", store=SQLiteStore(tmp_path / "windowpane.db"))
    world.write("agent.yaml", "model: scripted:test\nworking_context: false\nfinders: false\nsearch: {floor: 0.05}\n")
    world.rule("tone", "Be kind.", include="always")
    world.reference("billing", "Invoices and refunds. A refund takes five days.", include="agent")
    world.reference("printing", "Photos are printed on matte paper; resize a photo first.", include="agent")
    world.reference("hidden", "Nobody ever asks about this one.")
    world.selector = HybridSelector(ItemIndex(None))
    world.says("Five days.", "Matte.", "More.")
    return world


async def talked(client: httpx2.AsyncClient, *messages: str) -> str:
    session = await new_session(client)
    for message in messages:
        sent = await client.post(f"/api/sessions/{session}/messages", json={"content": message})
        assert sent.status_code == 200, sent.text
    return f"/api/sessions/{session}"


async def answer(response: httpx2.Response, status: int = 200) -> Any:
    assert response.status_code == status, response.text
    return response.json()


@pytest.mark.spec("S0.68", "S0.69", "S0.72")
async def test_an_item_is_explained_with_what_would_have_changed_that(world: World) -> None:
    async with served(world) as client:
        base = await talked(client, REFUND)
        printing = await answer(await client.get(f"{base}/turns/1/explain/reference/printing"))
        hidden = await answer(await client.get(f"{base}/turns/1/explain/reference/hidden"))
        everything = await answer(await client.get(f"{base}/turns/1/explain"))
        unknown = await client.get(f"{base}/turns/1/explain/rule/none")
        no_turn = await client.get(f"{base}/turns/9/explain")
        replayed = await answer(
            await client.post(f"{base}/turns/1/replay", json={"search": printing["changes"][0]["search"]})
        )

    assert (printing["included"], printing["fate"], printing["code"]) == (False, "left_out", "below_floor")
    assert printing["evidence"]["rank"] == printing["compared"] == 2
    assert printing["changes"][0] == {
        "effect": "includes",
        "text": f"include_score ≤ {printing['evidence']['score']:.10g}",
        "needs": [
            {
                "what": "include_score",
                "text": f"include_score ≤ {printing['evidence']['score']:.10g}",
                "value": printing["evidence"]["score"],
                "bound": "most",
                "domain": "text",
            }
        ],
        "search": {"text": {"include_score": printing["evidence"]["score"]}},
        "tokens": 0,
    }
    assert replayed["entered"] == [{"type": "reference", "name": "printing", "server": None}]
    assert (hidden["fate"], [change["text"] for change in hidden["changes"]]) == ("not_in_session", ["add it by hand"])
    assert {item["ref"]["name"]: item["included"] for item in everything["items"]} == {
        "billing": True,
        "hidden": False,
        "printing": False,
        "tone": True,
    }
    assert problem_in(unknown)["code"] == "unknown_item"
    assert problem_in(no_turn)["code"] == "turn_not_found"


async def test_two_turns_are_compared_in_one_session_and_across_sessions(world: World) -> None:
    async with served(world) as client:
        base = await talked(client, REFUND, "Which paper are photos printed on?")
        other = await talked(client, "Something else entirely")
        within = await answer(await client.get(f"{base}/turns/1/compare", params={"with": 2}))
        across = await answer(
            await client.get(f"{base}/turns/1/compare", params={"with": 1, "session": other.rpartition("/")[2]})
        )
        missing = await client.get(f"{base}/turns/1/compare", params={"with": 1, "session": "ses_none"})

    assert {(item["ref"]["name"], item["happened"]) for item in within["items"]} >= {("printing", "entered")}
    assert (within["before"]["turn"], within["after"]["turn"]) == (1, 2)
    assert within["prefix"]["same_bytes"] > 0
    assert [(item["ref"]["name"], item["happened"]) for item in across["items"]] == [("billing", "left")]
    assert problem_in(missing)["code"] == "session_not_found"


@pytest.mark.spec("S0.71")
async def test_a_request_is_rebuilt_and_its_selection_run_again(world: World) -> None:
    async with served(world) as client:
        base = await talked(client, REFUND)
        rebuilt = await answer(await client.get(f"{base}/turns/1/replay"))
        same = await answer(await client.post(f"{base}/turns/1/replay", json={}))
        query = await answer(await client.post(f"{base}/turns/1/replay", json={"query": "Which paper are photos on?"}))
        text = await answer(
            await client.post(
                f"{base}/turns/1/replay",
                json={"items": [{"ref": {"type": "reference", "name": "billing"}, "text": "Nothing."}]},
            )
        )
        wrong = await client.post(f"{base}/turns/1/replay", json={"search": {"flor": 1}})

    assert (rebuilt["identical"], rebuilt["damages"]) == (True, [])
    assert (same["entered"], same["left"], same["measured"]) == ([], [], False)
    assert [entry["name"] for entry in query["entered"]] == ["printing"]
    assert [entry["name"] for entry in text["left"]] == ["billing"]
    assert problem_in(wrong)["code"] == "invalid_setting"


async def test_a_turn_becomes_a_test_with_one_call_and_tests_run_with_another(world: World) -> None:
    async with served(world) as client:
        base = await talked(client, REFUND)
        saved = await answer(await client.post(f"{base}/turns/1/test", json={}), 201)
        listed = await answer(await client.get("/api/agents/pane/tests"))
        report = await answer(await client.post("/api/agents/pane/tests/run"))

    file = world.root / "pane" / saved["test"]["file"]
    assert file.read_text() == saved["text"]
    assert [test["name"] for test in listed["tests"]] == [REFUND]
    assert [(verdict["test"]["name"], verdict["passed"]) for verdict in report["results"]] == [(REFUND, True)]


async def test_nobody_looks_back_at_the_sessions_of_others_or_writes_tests_without_the_scope(world: World) -> None:
    async with guarded(world) as place:
        ann, bob = place.headers("ann"), place.headers("bob")
        reader = place.headers("ann", "read")
        session = await place.session(ann)
        sent = await place.client.post(f"/api/sessions/{session}/messages", json={"content": REFUND}, headers=ann)
        own = await place.session(bob)
        await place.client.post(f"/api/sessions/{own}/messages", json={"content": REFUND}, headers=bob)
        foreign = await place.client.get(f"/api/sessions/{session}/turns/1/explain", headers=bob)
        compared = await place.client.get(
            f"/api/sessions/{own}/turns/1/compare", params={"with": 1, "session": session}, headers=bob
        )
        written = await place.client.post(f"/api/sessions/{session}/turns/1/test", json={}, headers=reader)

    assert sent.status_code == 200
    assert [problem_in(response)["code"] for response in (foreign, compared)] == ["session_not_found"] * 2
    assert problem_in(written)["code"] == "scope_needed"
    assert not (world.root / "pane" / "tests").exists()


async def test_turns_are_listed_in_brief_with_what_each_was_given_and_cost(world: World) -> None:
    async with served(world) as client:
        base = await talked(client, REFUND, "And on which paper is a photo printed?", "Thanks")
        page = await answer(await client.get(f"{base}/turns?limit=2"))
        rest = await answer(await client.get(f"{base}/turns", params={"first": page["next"]}))
        beyond = await answer(await client.get(f"{base}/turns?first=9"))
        contexts = [await answer(await client.get(f"{base}/turns/{turn}/context")) for turn in (1, 2)]
        calls = [await answer(await client.get(f"{base}/turns/{turn}/calls")) for turn in (1, 2)]
        none = await client.get("/api/sessions/ses_none/turns")

    turns = page["turns"]
    assert ([one["turn"] for one in turns], page["next"]) == ([1, 2], 3)
    assert ([one["turn"] for one in rest["turns"]], rest["next"], beyond) == ([3], None, {"turns": [], "next": None})
    for brief, context, made in zip(turns, contexts, calls, strict=True):
        assert brief["context_tokens"] == context["budget"]["used_tokens"]
        assert sum(part["tokens"] for part in brief["parts"]) == sum(part["tokens"] for part in context["parts"])
        assert [(one["type"], one["name"], one["include_mode"]) for one in brief["items"]] == [
            (one["type"], one["name"], one["include_mode"]) for one in context["items"]
        ]
        assert brief["left_out"] == len(context["candidates"])
        assert (brief["usage"], brief["calls"], brief["outcome"]) == (made["usage"], 1, "completed")
    assert [one["name"] for one in turns[0]["items"] if one["score"]] == ["billing"]
    assert none.status_code == 404


class DeletedWhileRead(SQLiteStore):
    """A store whose sessions another worker deletes between the reading of a log and of its texts."""

    doomed: str = ""

    async def blobs(self, session_id: SessionId, hashes: Sequence[BlobHash]) -> dict[BlobHash, str]:
        found = await super().blobs(session_id, hashes)
        if session_id == self.doomed:
            await self.delete(session_id)
            self.doomed = ""
        return found


@pytest.mark.parametrize("view", ["", "/request", "/context", "/usage", "/debug", "/calls", "/replay", "/explain"])
async def test_a_session_that_is_deleted_while_it_is_read_is_not_found(world: World, tmp_path: Path, view: str) -> None:
    store = DeletedWhileRead(tmp_path / "deleted.db")
    world.store = store
    world.toolbox.put("files", [tool("read", "contents of {path}")])
    async with served(world) as client:
        base = await talked(client, REFUND)
        store.doomed = base.rpartition("/")[2]
        seen = await client.get(f"{base}/turns/1{view}")
        gone = await client.get(f"{base}/turns/1{view}")

    assert seen.status_code in {200, 404}, seen.text
    assert problem_in(gone)["code"] == "session_not_found"
