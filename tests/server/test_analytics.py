"""Analytics over HTTP: everybody sees their own, and suggestions are applied and undone."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from patience import PATIENCE_S
from ports import free_port
from server.guests import guarded
from server.place import new_session, problem_in, served
from stores.postgres_server import fresh_database
from windowpane.insight.analytics.store import AnalyticsStore
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.search.embedding.minilm import MiniLM
from windowpane.search.embedding.vectors import VectorCache
from windowpane.search.index import ItemIndex
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World

REFUND = "How long does a refund take?"
ANSWER = "It takes five working days to reach your bank account."
BILLING = {"type": "reference", "name": "billing", "server": None}


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "agents", store=SQLiteStore(tmp_path / "windowpane.db"))
    world.write("agent.yaml", "model: scripted:test\nworking_context: false\nfinders: false\nsearch: {floor: 0.05}\n")
    world.rule("tone", "Be kind.", include="always")
    world.reference("billing", "A refund takes five working days to reach the bank account.", include="agent")
    world.reference("printing", "Photos are printed on matte paper.", include="agent")
    world.reference("manual", "A reference that is always there and that no answer draws upon.", include="always")
    world.selector = HybridSelector(ItemIndex(None))
    world.says(*[ANSWER] * 40)
    return world


async def talked(client: httpx2.AsyncClient, *messages: str, **headers: Any) -> str:
    made = await client.post("/api/sessions", json={}, **headers)
    session = f"/api/sessions/{made.json()['id']}"
    for message in messages:
        sent = await client.post(f"{session}/messages", json={"content": message}, **headers)
        assert sent.status_code == 200, sent.text
    return session


async def answer(response: httpx2.Response, status: int = 200) -> Any:
    assert response.status_code == status, response.text
    return response.json()


@pytest.mark.spec("S0.92", "S1.107")
async def test_the_items_that_an_answer_made_use_of_are_told_with_the_words(world: World) -> None:
    async with served(world) as client:
        session = await talked(client, REFUND)
        found = await answer(await client.get(f"{session}/turns/1/use"))
        missing = await client.get(f"{session}/turns/2/use")

    without = {"used": False, "how": None, "trace": "", "verdict": "unknown", "nearness": None}
    quoted = {"used": True, "how": "quoted", "trace": "takes five working days to", "verdict": "used", "nearness": None}
    assert found == {
        "items": [
            {"ref": {"type": "rule", "name": "tone", "server": None}, **without},
            {"ref": {"type": "reference", "name": "manual", "server": None}, **without},
            {"ref": BILLING, **quoted},
        ]
    }
    assert problem_in(missing)["code"] == "turn_not_found"


@pytest.mark.spec("S0.70", "S0.89", "S0.90", "S1.110", "S4.87")
async def test_the_dashboard_counts_every_turn_and_is_had_as_csv(world: World) -> None:
    async with served(world) as client:
        before = await answer(await client.get("/api/analytics"))
        await talked(client, REFUND, "And now?")
        await talked(client, REFUND)
        after = await answer(await client.get("/api/analytics"))
        other = await answer(await client.get("/api/analytics?agent=other"))
        items = await client.get("/api/analytics/items.csv")
        wrong_list = await client.get("/api/analytics/messages.csv")
        wrong_day = await client.get("/api/analytics?since=yesterday")

    assert (before["spent"]["turns"], before["behind"], before["items"]) == (0, 0, [])
    assert (after["sessions"], after["spent"]["turns"], after["behind"]) == (2, 3, 0)
    assert after["filters"] == {"owner": "local", "agent": None, "model": None, "since": None, "until": None}
    billing = next(row for row in after["items"] if row["ref"] == BILLING)
    assert (billing["included"], billing["used"], billing["by_use"]) == (3, 2, {"quoted": 2})
    assert other["spent"]["turns"] == 0
    assert items.headers["content-type"] == "text/csv; charset=utf-8"
    assert items.headers["content-disposition"] == 'attachment; filename="windowpane-items.csv"'
    assert "\r\nreference:billing,pane,3," in items.text
    assert (wrong_list.status_code, wrong_day.status_code) == (422, 422)


async def test_owners_see_their_own_and_only_those_who_manage_see_everyones(world: World) -> None:
    async with guarded(world) as place:
        ana, ben = place.headers("ana", "chat"), place.headers("ben", "manage")
        session = await talked(place.client, REFUND, headers=ana)
        await talked(place.client, REFUND, REFUND, headers=ben)
        own = await answer(await place.client.get("/api/analytics", headers=ana))
        everyone = await answer(await place.client.get("/api/analytics?everyone=true", headers=ben))
        refused = await place.client.get("/api/analytics?everyone=true", headers=ana)
        csv = await place.client.get("/api/analytics/items.csv?everyone=true", headers=ana)
        suggestions = await place.client.get("/api/agents/pane/suggestions?everyone=true", headers=ana)
        evaluation = await place.client.post("/api/agents/pane/evaluation?everyone=true", json={}, headers=ana)
        edit = {"ref": BILLING, "settings": {"include": "always"}}
        change = await place.client.post("/api/agents/pane/suggestions", json=edit, headers={**ana, "If-Match": "*"})
        stranger = await place.client.get(f"{session}/similar?message=refund", headers=ben)

    assert (own["spent"]["turns"], own["filters"]["owner"]) == (1, "ana")
    assert (everyone["spent"]["turns"], everyone["filters"]["owner"]) == (3, None)
    for response in (refused, csv, suggestions, evaluation, change):
        assert problem_in(response)["code"] == "scope_needed"
    assert problem_in(stranger)["code"] == "session_not_found"


@pytest.mark.spec("S0.93", "S0.94", "S1.108", "S1.111")
async def test_a_suggestion_is_applied_with_one_call_and_undone_with_another(world: World, tmp_path: Path) -> None:
    index = ItemIndex(MiniLM(tmp_path / "model"), VectorCache(tmp_path / "vectors"))
    file = world.root / "pane" / "references" / "manual.md"
    before = file.read_text()
    async with served(world, nearness=index) as client:
        for _ in range(4):
            await talked(client, *[REFUND] * 5)
        found = await answer(await client.get("/api/agents/pane/suggestions"))
        with anyio.fail_after(PATIENCE_S):
            while found["turns"] < 20:  # a look counts for a moment only, and the model has to be loaded
                found = await answer(await client.get("/api/agents/pane/suggestions"))
        demote = next(one for one in found["suggestions"] if one["kind"] == "demote")
        stale = await client.post("/api/agents/pane/suggestions", json=demote["edit"], headers={"If-Match": '"other"'})
        careless = await client.post("/api/agents/pane/suggestions", json=demote["edit"])
        match = {"If-Match": f'"{demote["revision"]}"'}
        done = await client.post("/api/agents/pane/suggestions", json=demote["edit"], headers=match)
        between = file.read_text()
        undo = {"If-Match": done.headers["etag"]}
        undone = await client.post("/api/agents/pane/suggestions", json=done.json()["undo"], headers=undo)
        unknown = {"ref": BILLING, "settings": {"text": "no"}}
        refused = await client.post("/api/agents/pane/suggestions", json=unknown, headers={"If-Match": "*"})

    assert found["turns"] == 20
    assert (demote["ref"]["name"], demote["edit"]["settings"]) == ("manual", {"include": "agent"})
    assert demote["saves_tokens"] == 20 * demote["saves_tokens_per_request"] > 0
    assert (stale.status_code, careless.status_code) == (412, 428)
    assert between == before.replace("include: always", "include: agent")
    assert await answer(undone)
    assert file.read_text() == before
    assert refused.status_code == 422


@pytest.mark.spec("S0.95", "S0.96", "S1.109")
async def test_what_helped_before_is_offered_for_a_similar_message_and_not_added(world: World) -> None:
    async with served(world) as client:
        await talked(client, REFUND)
        session = await talked(client)
        found = await answer(
            await client.get(f"{session}/similar", params={"message": "How long does a refund take now?"})
        )
        other = await answer(await client.get(f"{session}/similar", params={"message": "Which oven do you have?"}))
        empty = await client.get(f"{session}/similar", params={"message": " "})
        held = await answer(await client.get(f"{session}/items"))

    (combination,) = found["combinations"]
    assert [item["ref"] for item in combination["items"]] == [BILLING]
    assert [turn["message"] for turn in combination["turns"]] == [REFUND]
    assert (other["looked_at"], other["combinations"]) == (1, [])
    assert empty.status_code == 422
    assert BILLING not in [item["ref"] for item in held["items"]]


@pytest.mark.spec("S0.91", "S0.97", "S1.110", "S1.111")
async def test_the_selection_is_evaluated_and_tuned_on_labels_or_on_past_turns(world: World) -> None:
    labels = [{"message": f"How long does refund number {number} take?", "must": [BILLING]} for number in range(10)]
    async with served(world) as client:
        nothing = await client.post("/api/agents/pane/evaluation", json={})
        labelled = await answer(await client.post("/api/agents/pane/evaluation", json={"labels": labels}))
        tuned = await answer(await client.post("/api/agents/pane/tuning", json={"labels": labels}))
        await talked(client, REFUND)
        used = await answer(await client.post("/api/agents/pane/evaluation", json={}))
        too_few = await client.post("/api/agents/pane/tuning", json={})
        unknown = await client.post("/api/agents/none/tuning", json={})

    assert problem_in(nothing)["detail"].startswith("there are no labelled questions")
    assert (labelled["whole"]["questions"], labelled["whole"]["recall"]) == (10, 1.0)
    assert len(labelled["calibration"]) == 10
    assert [proposal["domain"] for proposal in tuned["proposals"]] == ["text"]
    assert (used["whole"]["questions"], used["whole"]["hits"]) == (1, 1)
    assert problem_in(too_few)["detail"].startswith("there are too few labelled questions")
    assert unknown.status_code == 404


@pytest.mark.parametrize("kind", ["file", "postgres"])
async def test_what_is_counted_is_kept_and_read_again(world: World, tmp_path: Path, kind: str) -> None:
    place = tmp_path / "cache" / "analytics.db" if kind == "file" else fresh_database()
    async with served(world, analytics_place=place) as client:
        await talked(client, REFUND)
        await new_session(client)
        first = await answer(await client.get("/api/analytics"))
    async with served(world, analytics_place=place) as client:
        again = await answer(await client.get("/api/analytics"))

    assert again["items"] == first["items"]
    assert (again["spent"]["turns"], again["storage"]["sessions"]) == (1, 2)


async def test_two_servers_that_share_their_analytics_count_each_turn_once(world: World) -> None:
    place = fresh_database()
    async with served(world, analytics_place=place) as one, served(world, analytics_place=place) as two:
        await talked(one, REFUND, REFUND)
        await talked(two, REFUND)
        found: list[Any] = []

        async def look(client: httpx2.AsyncClient) -> None:
            found.append(await answer(await client.get("/api/analytics")))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(look, one)
            tasks.start_soon(look, two)
        last = [await answer(await client.get("/api/analytics")) for client in (one, two)]

    assert [told["spent"]["turns"] for told in (*found, *last) if not told["behind"]] == [3, 3, 3, 3]
    assert last[0]["items"] == last[1]["items"]


async def test_what_is_known_of_single_turns_goes_with_the_session_at_once(world: World) -> None:
    place = fresh_database()
    async with served(world, analytics_place=place) as client:
        session = await talked(client, REFUND)
        before = await answer(await client.get("/api/analytics"))
        with closing(AnalyticsStore(place)) as analytics:
            known = len(analytics.known()), len(analytics.lessons(None, "pane", limit=9))
            gone = await client.delete(session)
            left = len(analytics.known()), len(analytics.lessons(None, "pane", limit=9))
        after = await answer(await client.get("/api/analytics"))

    assert gone.status_code == 204
    assert (known, left) == ((1, 1), (0, 0))
    assert (before["storage"]["sessions"], after["storage"]["sessions"]) == (1, 0)
    assert before["spent"] == after["spent"]


async def test_chat_goes_on_without_the_database_of_the_analytics(world: World) -> None:
    away = f"postgresql://ana:s3cret@127.0.0.1:{free_port()}/counts"
    async with served(world, analytics_place=away) as client:
        session = await talked(client, REFUND)
        refused = await client.get("/api/analytics")
        gone = await client.delete(session)

    problem = problem_in(refused)
    assert (refused.status_code, problem["code"]) == (503, "store_unavailable")
    assert "the analytics store postgresql://127.0.0.1:" in problem["detail"]
    assert "s3cret" not in refused.text
    assert gone.status_code == 204
