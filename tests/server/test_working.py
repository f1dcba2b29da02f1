"""Working context over HTTP: what a session is working on."""

from __future__ import annotations

import httpx2
import pytest

from server.place import new_session, problem, problem_in


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
    applet = {"setName": "applet", "items": ["git-diff", "path=/work"]}

    wrong = await client.patch(f"/api/sessions/{session}", json={"session_id": "ses_other", "setContext": applet})
    right = await client.patch(f"/api/sessions/{session}", json={"session_id": session, "setContext": applet})
    left = await client.patch(f"/api/sessions/{session}", json={"setContext": {"setName": "applet", "items": []}})

    assert (wrong.status_code, problem_in(wrong)["code"]) == (409, "wrong_session")
    assert right.json()["context"] == {"applet": ["git-diff", "path=/work"]}
    assert left.json()["context"] == {}
