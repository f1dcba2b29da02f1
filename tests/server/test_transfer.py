from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from server.place import new_session, problem_in, served
from windowpane.api.export import EXPORT, read_export
from windowpane.context.ids import SessionId, content_hash
from windowpane.context.items import rule_ref
from windowpane.engine import Engine
from windowpane.fetch.pages import Pages
from windowpane.models.scripted import Call, Reply
from windowpane.stores.memory import MemoryStore
from windowpane.testing import World, drain, tool


async def say(client: httpx2.AsyncClient, session: str, content: str) -> Any:
    response = await client.post(f"/api/sessions/{session}/messages", json={"content": content})
    assert response.status_code == 200, response.text
    return response.json()


async def export_of(client: httpx2.AsyncClient, session: str) -> Any:
    response = await client.get(f"/api/sessions/{session}/export")
    assert response.status_code == 200, response.text
    return response.json()


def without_identity(document: Any) -> Any:
    body = deepcopy(document)
    del body["id"], body["exported_at"]
    return body


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Fotos: Sommer/Berg “ä”", "Fotos%20Sommer%20Berg%20%C3%A4"),
        ('a";\r\nSet-Cookie: b=c', "a%20Set-Cookie%20b%20c"),
        ("../..", "session"),
        ("", "session"),
        ("a" * 200, "a" * 80),
    ],
)
async def test_the_file_of_a_session_has_its_name(world: World, name: str, words: str) -> None:
    async with served(world) as client:
        session = await new_session(client, name=name)
        found = [
            (await client.get(f"/api/sessions/{session}/{what}")).headers["content-disposition"]
            for what in ("export", "share", "share?redacted=true")
        ]

    assert found == [
        f"attachment; filename*=UTF-8''{words}.json",
        f"attachment; filename*=UTF-8''{words}.windowpane.json",
        "attachment; filename*=UTF-8''session.windowpane.json",
    ]


async def test_a_session_is_exported_and_imported_complete(world: World) -> None:
    world.rule("tone", "Be kind.", include="always")
    world.toolbox.put("files", [tool("read", "contents of {path}", permission="not_required")])
    world.says(Reply("Reading.", calls=(Call("files__read", '{"path": "/a"}'),)), "It says hello.", "Bye.")
    async with served(world) as client:
        session = await new_session(client, name="Old")
        await say(client, session, "Read /a")
        await say(client, session, "Bye")
        await client.patch(
            f"/api/sessions/{session}", json={"context": {"files": ["/a"]}, "settings": {"mode": "thinking"}}
        )
        document = await export_of(client, session)
        response = await client.post("/api/sessions/import", json=document)
        copy = response.json()["id"]
        again = await export_of(client, copy)
        pairs = [
            [(await client.get(f"/api/sessions/{one}{rest}")).json() for one in (session, copy)]
            for rest in (
                "/messages",
                "/turns/1/context",
                "/turns/1/request",
                "/turns/2/debug",
                "/fetched",
                "/statistics",
            )
        ]
        old, new = [(await client.get(f"/api/sessions/{one}")).json() for one in (session, copy)]

    assert response.status_code == 201
    assert response.headers["location"] == f"/api/sessions/{copy}"
    assert copy != session
    assert without_identity(again) == without_identity(document)
    for one, other in pairs:
        assert one == other
    assert {**new, "id": ""} == {**old, "id": ""}


async def test_what_could_not_have_happened_is_not_imported(world: World) -> None:
    world.says("Hello.")
    world.rule("tone", include="always")
    async with served(world) as client:
        session = await new_session(client)
        await say(client, session, "Hi")
        document = await export_of(client, session)

        def changed(**parts: Any) -> Any:
            return {**deepcopy(document), **parts}

        events, blobs = document["events"], document["blobs"]
        record = next(entry["event"]["request"] for entry in events if entry["event"]["type"] == "request.built")
        turned = deepcopy(events)
        next(entry for entry in turned if entry["event"]["type"] == "turn.started")["event"]["turn"] = 7
        odd_name = json.loads(blobs[record])
        odd_name["context"]["items"][0]["server"] = "files"
        odd_record = content_hash(json.dumps(odd_name))
        odd_request = json.loads(json.dumps(events).replace(record, odd_record))
        odd_settings = deepcopy(events)
        odd_settings[0]["event"]["settings"] = {"temperature": "hot"}
        wrong: tuple[Any, ...] = (
            changed(events=events[1:]),
            changed(events=[]),
            changed(events=[*events, events[-1]]),
            changed(events=[*events, {**events[0], "seq": len(events) + 1}]),
            changed(events=turned),
            changed(events=odd_settings),
            changed(events=odd_request, blobs={**blobs, odd_record: json.dumps(odd_name)}),
            changed(blobs={name: text for name, text in blobs.items() if name != record}),
            changed(blobs={name: text + " " for name, text in blobs.items()}),
            changed(format="another"),
            changed(version=2),
            {},
        )
        refused = [await client.post("/api/sessions/import", json=body) for body in wrong]
        count = len((await client.get("/api/sessions")).json()["sessions"])

    assert {response.status_code for response in refused} == {422}
    assert all(problem_in(response)["detail"] for response in refused)
    assert count == 1


async def test_an_imported_session_brings_no_permissions_and_a_fork_keeps_the_owners_own(world: World) -> None:
    world.toolbox.put("files", [tool("read", "contents of {path}")])
    read = Reply(calls=(Call("files__read", '{"path": "/a"}', id="c1"),))
    world.says(read, "Read.", read, read, "Read again.")
    async with served(world) as client:
        session = await new_session(client)
        await say(client, session, "Read /a")
        decided = {"decisions": {"c1": "allow_session"}}
        assert (await client.post(f"/api/sessions/{session}/approvals", json=decided)).status_code == 200
        document = await export_of(client, session)
        document["events"][0]["event"]["settings"] = {"tool_permission": "never"}
        imported = (await client.post("/api/sessions/import", json=document)).json()
        forked = (await client.post(f"/api/sessions/{session}/fork", json={})).json()
        asked = await say(client, imported["id"], "Read it")
        ran = await say(client, forked["id"], "Read it")

    assert imported["settings"]["tool_permission"] is None
    assert (asked["outcome"], [call["id"] for call in asked["approvals"]]) == ("waiting", ["c1"])
    assert (ran["outcome"], ran["text"]) == ("completed", "Read again.")


async def test_imported_pages_pass_the_checks_of_fetched_ones(world: World) -> None:
    async with served(world) as client:
        session = await new_session(client)
        page = {"kind": "page", "url": "https://example.org/a", "content": "words", "title": "A"}
        added = await client.post(f"/api/sessions/{session}/fetched", json={"items": [page]})
        assert added.status_code < 300, added.text
        whole = await export_of(client, session)
        held = next(
            entry["event"]["items"][0] for entry in whole["events"] if entry["event"]["type"] == "fetched.added"
        )
        held["content"] = "word " * 600_000
        imported = await client.post("/api/sessions/import", json=whole)
        kept = await export_of(client, imported.json()["id"])
        held["url"] = "javascript:alert(1)"
        page["url"] = held["url"]
        refused = [
            await client.post("/api/sessions/import", json=whole),
            await client.post(f"/api/sessions/{session}/fetched", json={"items": [page]}),
        ]

    pages = [entry["event"]["items"] for entry in kept["events"] if entry["event"]["type"] == "fetched.added"]
    assert [len(item["content"]) for items in pages for item in items] == [10_000]
    assert [problem_in(response)["detail"] for response in refused] == ["the fetched page 'A' has no web address"] * 2


async def test_a_fork_is_the_session_as_it_was_before_a_turn(world: World) -> None:
    world.says("One.", "Two.", "Other two.")
    async with served(world) as client:
        session = await new_session(client, name="Talk")
        await say(client, session, "First")
        await say(client, session, "Second, secret")
        before = await export_of(client, session)
        response = await client.post(f"/api/sessions/{session}/fork", json={"turn": 2, "name": "Again"})
        fork = response.json()
        forked = await export_of(client, fork["id"])
        turn = await say(client, fork["id"], "Second, edited")
        request = (await client.get(f"/api/sessions/{fork['id']}/turns/2/request")).json()
        whole = (await client.post(f"/api/sessions/{session}/fork")).json()
        after = await export_of(client, session)
        missing = await client.post(f"/api/sessions/{session}/fork", json={"turn": 9})

    assert (response.status_code, fork["name"], fork["turn_count"]) == (201, "Again", 1)
    first, every = len(forked["events"]), len(before["events"])
    assert fork["branch_of"] == {"session": session, "turn": 2, "seq": first}
    assert whole["branch_of"] == {"session": session, "turn": 3, "seq": every}
    assert "secret" not in json.dumps(forked)
    assert turn["text"] == "Other two."
    assert [message["content"] for message in request["messages"] if message["part"] == "message"] == ["Second, edited"]
    assert (whole["turn_count"], whole["name"]) == (2, "Talk")
    assert without_identity(after) == without_identity(before)
    assert problem_in(missing)["code"] == "turn_not_found"


async def test_a_key_makes_one_session_however_often_it_is_sent(world: World) -> None:
    world.says("One.")
    key = {"Idempotency-Key": "once"}
    async with served(world) as client:
        made = [(await client.post("/api/sessions", json={"name": "A"}, headers=key)).json()["id"] for _ in range(2)]
        other = await client.post("/api/sessions", json={"name": "B"}, headers=key)
        session = made[0]
        await say(client, session, "Hi")
        document = await export_of(client, session)
        imported = [
            (await client.post("/api/sessions/import", json=document, headers=key)).json()["id"] for _ in range(2)
        ]
        forked = [
            (await client.post(f"/api/sessions/{session}/fork", json={}, headers=key)).json()["id"] for _ in range(2)
        ]
        count = len((await client.get("/api/sessions")).json()["sessions"])

    assert problem_in(other)["code"] == "key_reused"
    assert [len(set(ids)) for ids in (made, imported, forked)] == [1, 1, 1]
    assert count == 3


ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)),
        st.tuples(st.just("rename"), st.text(st.characters(exclude_categories=["Cs"]), max_size=30)),
        st.tuples(st.just("file"), st.sampled_from(["/a", "/b", "/c d"])),
        st.tuples(st.just("page"), st.sampled_from(["https://example.org/a", "https://example.org/b"])),
        st.tuples(st.just("item"), st.just("tone")),
        st.tuples(st.just("drop"), st.just("tone")),
        st.tuples(st.just("clear history"), st.just("")),
        st.tuples(st.just("clear fetched"), st.just("")),
    ),
    max_size=8,
)


async def act(engine: Engine, session: SessionId, what: str, text: str) -> None:
    match what:
        case "say" if text.strip():
            await drain(engine.turn(session, text))
        case "rename":
            await engine.sessions.update(session, {"name": text})
        case "file":
            await engine.working.set(session, "files", [text], "merge")
        case "page":
            await engine.fetched.push(session, text, text=f"The page {text}.")
        case "item":
            await engine.items.add(session, rule_ref(text))
        case "drop":
            await engine.items.remove(session, rule_ref(text))
        case "clear history":
            await engine.conversations.clear(session)
        case "clear fetched":
            await engine.fetched.clear(session)
        case _:
            pass


@pytest.mark.spec("S4.50")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=ACTS)
async def test_importing_what_was_exported_gives_the_same_session(world: World, acts: list[tuple[str, str]]) -> None:
    world.rule("tone", "Be kind.", include="always")
    world.store = MemoryStore()
    world.says(*(["Yes."] * 10))
    async with world.engine(pages=Pages()) as engine:
        session = (await engine.sessions.create()).id
        for what, text in acts:
            await act(engine, session, what, text)
        exported = await engine.sessions.export(session)
        written = json.dumps(EXPORT.adapter.dump_python(exported, mode="json"))

        copy = (await engine.sessions.import_(read_export(json.loads(written)))).id

        again = await engine.sessions.export(copy)
        old, new = await engine.sessions.get(session), await engine.sessions.get(copy)
        assert (again.events, again.blobs) == (exported.events, exported.blobs)
        assert EXPORT.adapter.dump_python(again, include={"events", "blobs"}) == EXPORT.adapter.dump_python(
            exported, include={"events", "blobs"}
        )
        assert new.recent == old.recent
        assert {**vars_of(new), "id": ""} == {**vars_of(old), "id": ""}


def vars_of(state: Any) -> dict[str, Any]:
    return {name: getattr(state, name) for name in state.__slots__}


async def test_sessions_are_found_by_their_name_and_by_what_was_said(world: World) -> None:
    world.says("The tide is high.", "Nothing.", "Nothing.")
    async with served(world) as client:
        for name, content in (("Sea", "When?"), ("Tidy up", "Why?"), ("Other", "What?")):
            await say(client, await new_session(client, name=name), content)
        found = (await client.get("/api/sessions", params={"q": "TID"})).json()
        first = (await client.get("/api/sessions", params={"q": "tid", "limit": 1})).json()
        second = (await client.get("/api/sessions", params={"q": "tid", "limit": 1, "cursor": first["cursor"]})).json()

    assert [session["name"] for session in found["sessions"]] == ["Tidy up", "Sea"]
    assert [page["sessions"][0]["name"] for page in (first, second)] == ["Tidy up", "Sea"]


async def test_a_change_meant_for_an_older_state_of_a_session_is_refused(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    path = f"/api/sessions/{session}"
    tag = (await client.get(path)).headers["etag"]
    first = await client.patch(path, json={"name": "A"}, headers={"If-Match": tag})
    second = await client.patch(path, json={"name": "B"}, headers={"If-Match": tag})
    third = await client.patch(path, json={"name": "C"}, headers={"If-Match": first.headers["etag"]})

    assert (first.status_code, third.json()["name"]) == (200, "C")
    assert problem_in(second)["facts"] == {"what": "the session", "current": "2"}
    assert second.status_code == 412


async def test_name_settings_and_working_context_change_in_one_step(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    changed = await client.patch(
        f"/api/sessions/{session}",
        json={
            "name": "A",
            "settings": {"mode": "thinking"},
            "context": {"ports": ["1"]},
            "setContext": {"setName": "ports", "items": ["2"], "mode": "merge"},
        },
    )
    events = (await export_of(client, session))["events"]

    assert changed.json()["context"] == {"ports": ["1", "2"]}
    assert [entry["event"]["type"] for entry in events] == ["session.created", "session.context", "session.updated"]
    assert events[1]["at"] == events[2]["at"]
