"""What one owner sends never reaches what another owner has: over HTTP, with tokens, on SQLite."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.guests import guarded
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "agents", store=SQLiteStore(tmp_path / "windowpane.db"))


async def test_a_key_that_two_owners_happen_to_choose_makes_a_session_for_each(world: World) -> None:
    async with guarded(world) as place:
        ada, ben = place.headers("ada"), place.headers("ben")
        made: list[tuple[str, str]] = []
        for headers in (ada, ben, ada, ben):
            answer = await place.client.post("/api/sessions", json={}, headers={**headers, "Idempotency-Key": "one"})
            made.append((answer.json()["owner"], answer.json()["id"]))
        forks: list[str] = []
        for headers, (_, session) in zip((ada, ben), made, strict=False):
            path, keyed = f"/api/sessions/{session}/fork", {**headers, "Idempotency-Key": "two"}
            forks.append((await place.client.post(path, json={}, headers=keyed)).json()["owner"])

    assert [owner for owner, _ in made] == ["ada", "ben", "ada", "ben"]
    assert made[0] == made[2]
    assert made[1] == made[3]
    assert len(set(made)) == 2
    assert forks == ["ada", "ben"]


async def test_whoever_searches_the_sessions_finds_only_their_own(world: World) -> None:
    async with guarded(world) as place:
        ada, ben = place.headers("ada"), place.headers("ben")
        for headers in (ada, ben):
            await place.client.post("/api/sessions", json={"name": "Tide tables"}, headers=headers)
        found = [
            (await place.client.get("/api/sessions", params={"q": "tide"}, headers=headers)).json()["sessions"]
            for headers in (ada, ben)
        ]

    assert [[session["owner"] for session in sessions] for sessions in found] == [["ada"], ["ben"]]
