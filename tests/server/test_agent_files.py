from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import numpy as np
import pytest

from patience import PATIENCE_S
from server.place import SentEvent, events_in, problem_in, served
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.search.embedding.base import Vectors
from windowpane.search.index import TEXTS_AT_ONCE, ItemIndex
from windowpane.testing import World, tool

ITEMS = "/api/agents/pane/items"
NEW: dict[str, Any] = {"type": "rule", "name": "be-brief", "include": "always", "priority": 5, "text": "Be brief.\n"}
MANIFEST = """\
# What this agent is.
model: scripted:test   # for tests
working_context: false
mcpServers:
  files:               # reads and writes
    command: "false"
    disabled: true
    tools:
      # this one is harmless
      read: {include: always, permission: not_required}
"""


async def test_an_item_is_made_read_changed_and_deleted_as_a_file(world: World) -> None:
    file = world.root / "pane/rules/be-brief.md"
    async with served(world) as client:
        made = await client.post(ITEMS, json=NEW)
        written = file.read_text()
        path = made.headers["location"]
        read = await client.get(path)
        changed = await client.patch(
            path, json={"priority": 7, "include": None}, headers={"If-Match": read.headers["etag"]}
        )
        put = await client.put(
            path,
            json={"raw": "---\n# why\nenabled: false\n---\nBe brief!"},
            headers={"If-Match": changed.headers["etag"]},
        )
        put_file = file.read_text()
        listed = (await client.get(ITEMS)).json()["items"]
        deleted = await client.delete(path, headers={"If-Match": put.headers["etag"]})
        gone = await client.get(path)

    assert (made.status_code, path) == (201, f"{ITEMS}/rule/be-brief")
    assert written == "---\nname: be-brief\npriority: 5\ninclude: always\n---\nBe brief.\n"
    body = read.json()
    assert (body["file"], body["raw"], body["text"]) == ("rules/be-brief.md", written, "Be brief.\n")
    assert read.headers["etag"] == f'"{body["revision"]}"' == made.headers["etag"]
    assert changed.json()["raw"] == "---\nname: be-brief\npriority: 7\n---\nBe brief.\n"
    assert changed.json()["include"] == "manual"
    assert put_file == "---\n# why\nenabled: false\n---\nBe brief!"
    assert [(item["name"], item["enabled"]) for item in listed] == [("be-brief", False)]
    assert (deleted.status_code, gone.status_code, file.exists()) == (204, 404, False)


async def test_a_change_of_settings_keeps_the_rest_of_the_file_as_it_is_written(world: World) -> None:
    raw = "---\n# About tone.\nname: tone   # its name\npriority: 10\nrelated: [other]\n---\n\n# Tone\n\nBe kind.\n"
    file = world.write("references/sub/any.md", raw)
    async with served(world) as client:
        path = f"{ITEMS}/reference/tone"
        response = await client.patch(
            path,
            json={"priority": 20, "description": "How: kindly\nand well", "related": ["a", "b"]},
            headers={"If-Match": "*"},
        )

    assert file.read_text() == (
        "---\n# About tone.\nname: tone   # its name\npriority: 20\nrelated: [a, b]\n"
        'description: "How: kindly\\nand well"\n---\n\n# Tone\n\nBe kind.\n'
    )
    assert response.json()["description"] == "How: kindly\nand well"
    assert response.json()["file"] == "references/sub/any.md"


async def test_what_somebody_else_changed_is_not_overwritten(world: World) -> None:
    file = world.rule("tone", "Be kind.")
    path = f"{ITEMS}/rule/tone"
    async with served(world) as client:
        old = (await client.get(path)).headers["etag"]
        file.write_text("Be very kind.")
        stale = [
            await client.put(path, json={"raw": "Mine"}, headers={"If-Match": old}),
            await client.patch(path, json={"text": "Mine"}, headers={"If-Match": old}),
            await client.delete(path, headers={"If-Match": old}),
        ]
        now = (await client.get(path)).json()["revision"]
        unsaid = await client.put(path, json={"raw": "Mine"})
        odd = await client.put(path, json={"raw": "Mine"}, headers={"If-Match": "4f"})

    assert [problem_in(response)["code"] for response in stale] == ["stale_revision"] * 3
    assert {response.status_code for response in stale} == {412}
    assert problem_in(stale[0])["facts"] == {"what": "rules/tone.md", "current": now}
    assert problem_in(unsaid)["status"] == 428
    assert problem_in(odd)["status"] == 422
    assert file.read_text() == "Be very kind."


async def test_what_cannot_be_used_is_refused_with_its_line_and_nothing_is_written(world: World) -> None:
    before = world.rule("tone", "Be kind.").read_text()
    path = f"{ITEMS}/rule/tone"
    async with served(world) as client:
        refused = await client.put(
            path, json={"raw": "---\npriority: 5\ninclude: often\n---\nX"}, headers={"If-Match": "*"}
        )
        renamed = await client.put(path, json={"raw": "---\nname: other\n---\nX"}, headers={"If-Match": "*"})
        half = await client.put(
            path, content=r'{"raw": "a\n\ud800"}', headers={"If-Match": "*", "Content-Type": "application/json"}
        )
        unclosed = await client.post(ITEMS, json={"type": "rule", "name": "new", "raw": "---\nname: new\n"})

    assert problem_in(refused)["code"] == "invalid_file"
    assert problem_in(refused)["facts"]["problems"] == [
        {"file": "rules/tone.md", "line": 3, "reason": "include must be always, manual or agent, not often"}
    ]
    assert problem_in(renamed)["facts"]["problems"][0]["line"] == 2
    assert problem_in(half)["facts"]["problems"][0]["line"] == 2
    assert problem_in(unclosed)["facts"]["problems"][0]["line"] == 1
    assert (world.root / "pane/rules/tone.md").read_text() == before
    assert not (world.root / "pane/rules/new.md").exists()


async def test_a_file_that_cannot_be_used_is_read_and_corrected_as_it_is(world: World) -> None:
    broken = "---\npriority: many\n---\nBe kind.\n"
    file = world.write("rules/team/tone.md", broken)
    world.write("prompts/notes.md", "Not read.")
    path = "/api/agents/pane/files/rules/team/tone.md"
    async with served(world) as client:
        as_item = await client.get(f"{ITEMS}/rule/tone")
        read = await client.get(path)
        tag = {"If-Match": read.headers["etag"]}
        still = await client.put(path, json={"raw": broken.replace("many", "1000")}, headers=tag)
        corrected = await client.put(path, json={"raw": "---\nname: kind\n---\nBe kind.\n"}, headers=tag)
        stale = await client.put(path, json={"raw": "---\nname: kind\n---\nMine"}, headers=tag)
        renamed = await client.put(path, json={"raw": "---\nname: other\n---\nX"}, headers={"If-Match": "*"})
        item = (await client.get(f"{ITEMS}/rule/kind")).json()
        others = [
            await client.get(f"/api/agents/pane/files/{name}") for name in ("prompts/notes.md", "%2e%2e/x", "none")
        ]

    assert as_item.status_code == 404
    assert read.json() == {
        "file": "rules/team/tone.md",
        "raw": broken,
        "revision": read.headers["etag"].strip('"'),
        "problems": [
            {
                "file": "rules/team/tone.md",
                "line": 2,
                "reason": "priority must be a whole number from 0 to 999, not many",
            }
        ],
    }
    assert problem_in(still)["facts"]["problems"][0]["line"] == 2
    assert (corrected.status_code, corrected.json()["problems"]) == (200, [])
    assert (stale.status_code, problem_in(renamed)["code"]) == (412, "invalid_file")
    assert (item["file"], item["raw"]) == ("rules/team/tone.md", file.read_text())
    assert [response.status_code for response in others] == [404] * 3


async def test_a_file_that_cannot_be_used_is_deleted_as_it_is(world: World) -> None:
    file = world.write("rules/team/tone.md", "---\npriority: many\n---\nBe kind.\n")
    base, path = "/api/agents/pane/files", "/api/agents/pane/files/rules/team/tone.md"
    async with served(world) as client:
        old = (await client.get(path)).headers["etag"]
        file.write_text("---\npriority: lots\n---\nBe kind.\n")
        stale = await client.delete(path, headers={"If-Match": old})
        unsaid = await client.delete(path)
        others = [
            await client.delete(f"{base}/{name}", headers={"If-Match": "*"})
            for name in ("agent.yaml", "prompts/core.md", "prompts/notes.md", "%2e%2e/x")
        ]
        kept = file.exists()
        now = (await client.get(path)).headers["etag"]
        deleted = await client.delete(path, headers={"If-Match": now})
        again = await client.delete(path, headers={"If-Match": now})
        wrong = (await client.get("/api/agents/pane/problems")).json()["problems"]

    assert (stale.status_code, unsaid.status_code, kept) == (412, 428, True)
    assert [response.status_code for response in others] == [422, 422, 404, 404]
    assert (deleted.status_code, again.status_code, file.exists(), wrong) == (204, 404, False, [])
    assert (world.root / "pane/agent.yaml").exists()


async def test_making_it_twice_is_a_conflict_unless_the_key_says_that_it_is_the_same(world: World) -> None:
    async with served(world) as client:
        first = await client.post(ITEMS, json=NEW, headers={"Idempotency-Key": "k"})
        again = await client.post(ITEMS, json=NEW, headers={"Idempotency-Key": "k"})
        unkeyed = await client.post(ITEMS, json=NEW)
        other = await client.post(ITEMS, json=NEW | {"text": "Other"}, headers={"Idempotency-Key": "k"})

    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert [problem_in(response)["code"] for response in (unkeyed, other)] == ["already_there"] * 2


@pytest.mark.parametrize("name", ["../evil", "a/b", "", ".hidden", "a" * 101, "a b", "ü"])
async def test_no_name_leads_out_of_the_folder(world: World, name: str) -> None:
    async with served(world) as client:
        made = await client.post(ITEMS, json=NEW | {"name": name})
        prompt = await client.put(
            f"/api/agents/pane/prompts/sites/{name.replace('/', '%2F')}",
            json={"raw": "X"},
            headers={"If-None-Match": "*"},
        )

    assert made.status_code == 422
    assert prompt.status_code in ((200, 422) if name == "a" * 101 else (404, 422))
    assert not list(world.root.rglob("*evil*"))


async def test_a_link_that_leads_out_is_shown_and_not_written_through(world: World, tmp_path: Path) -> None:
    outside = tmp_path / "shared.md"
    outside.write_text("Shared.")
    (world.root / "pane/rules").mkdir()
    (world.root / "pane/rules/shared.md").symlink_to(outside)
    async with served(world) as client:
        listed = (await client.get(ITEMS)).json()["items"]
        response = await client.put(f"{ITEMS}/rule/shared", json={"raw": "Mine"}, headers={"If-Match": "*"})

    assert [item["name"] for item in listed] == ["shared"]
    assert problem_in(response)["status"] == 422
    assert outside.read_text() == "Shared."


async def test_prompts_are_listed_read_written_and_deleted(world: World) -> None:
    base = "/api/agents/pane/prompts"
    world.write("prompts/sites/sec.md", "---\nhosts: [sec.gov, www.sec.gov]\n---\nFilings.")
    async with served(world) as client:
        listed = (await client.get(base)).json()["prompts"]
        core = await client.get(f"{base}/core")
        changed = await client.put(
            f"{base}/core", json={"raw": "You are new."}, headers={"If-Match": core.headers["etag"]}
        )
        made = await client.put(f"{base}/sites/example.org", json={"raw": "Examples."}, headers={"If-None-Match": "*"})
        twice = await client.put(f"{base}/sites/example.org", json={"raw": "Again."}, headers={"If-None-Match": "*"})
        empty = await client.put(f"{base}/core", json={"raw": " "}, headers={"If-Match": "*"})
        deleted = await client.delete(f"{base}/sites/example.org", headers={"If-Match": made.headers["etag"]})
        kept = await client.delete(f"{base}/core", headers={"If-Match": "*"})
        after = (await client.get(base)).json()["prompts"]
        unknown = await client.get(f"{base}/sites/..%2Fcore")

    assert listed == [
        {"name": "core", "file": "prompts/core.md", "hosts": [], "characters": 13},
        {
            "name": "sites/sec",
            "file": "prompts/sites/sec.md",
            "hosts": ["sec.gov", "www.sec.gov"],
            "characters": 46,
        },
    ]
    assert core.json() == {
        "file": "prompts/core.md",
        "raw": "You are Pane.",
        "revision": core.headers["etag"].strip('"'),
        "problems": [],
    }
    assert changed.json()["raw"] == "You are new."
    assert made.json()["raw"] == "Examples."
    assert [problem_in(response)["code"] for response in (twice, empty, kept)] == [
        "already_there",
        "invalid_file",
        "invalid_input",
    ]
    assert deleted.status_code == 204
    assert [prompt["name"] for prompt in after] == ["core", "sites/sec"]
    assert unknown.status_code in (404, 422)


async def test_the_manifest_is_written_only_if_nothing_in_it_becomes_wrong(world: World) -> None:
    path = "/api/agents/pane/manifest"
    async with served(world) as client:
        old = await client.get(path)
        wrong = await client.put(path, json={"raw": "model: echo\ntemperature: 9\n"}, headers={"If-Match": "*"})
        right = await client.put(
            path, json={"raw": "model: echo\ntemperature: 1\n"}, headers={"If-Match": old.headers["etag"]}
        )
        agent = (await client.get("/api/agents/pane")).json()

    assert problem_in(wrong)["facts"]["problems"][0]["line"] == 2
    assert right.json()["raw"] == "model: echo\ntemperature: 1\n"
    assert agent["settings"]["temperature"] == 1


async def test_how_tools_are_used_is_changed_in_the_file_and_comments_stay(world: World) -> None:
    file = world.write("agent.yaml", MANIFEST)
    world.toolbox.put("files", [tool("read"), tool("write")])
    path = "/api/agents/pane/servers/files"
    async with served(world) as client:
        before = await client.get(path)
        changed = await client.patch(
            path,
            json={
                "include": "agent",
                "enabled": True,
                "tools": {"read": {"permission": "required"}, "write": {"permission": "forbidden"}},
            },
            headers={"If-Match": before.headers["etag"]},
        )
        stale = await client.patch(path, json={"include": None}, headers={"If-Match": before.headers["etag"]})
        unknown = await client.patch("/api/agents/pane/servers/none", json={}, headers={"If-Match": "*"})

    assert before.json()["tools"][0] == {
        "name": "read",
        "description": "",
        "include": "always",
        "permission": "required",
        "own_include": "always",
        "own_permission": "not_required",
    }
    assert changed.status_code == 200, changed.text
    assert file.read_text() == MANIFEST.replace("    disabled: true\n", "").replace(
        "read: {include: always, permission: not_required}",
        "read: {permission: required}\n      write:\n        permission: forbidden\n"
        "    include: agent\n    enabled: true",
    )
    assert (changed.json()["include"], changed.json()["enabled"]) == ("agent", True)
    assert problem_in(stale)["status"] == 412
    assert problem_in(unknown)["status"] == 404


async def test_an_agent_is_watched(world: World) -> None:
    world.toolbox.put("files", [tool("read")])
    seen: list[SentEvent] = []
    async with served(world) as client:
        async with client.stream("GET", "/api/agents/pane/events") as response:
            events = events_in(response)
            with anyio.fail_after(PATIENCE_S):
                seen += [await anext(events), await anext(events)]
                world.rule("broken", include="often")
                seen += [await anext(events), await anext(events)]
                (world.root / "pane/agent.yaml").unlink()
                seen.append(await anext(events))
        missing = await client.get("/api/agents/none/events")

    assert [event.event for event in seen] == [
        "agent.problems",
        "agent.server",
        "agent.files",
        "agent.problems",
        "agent.deleted",
    ]
    assert (seen[1].data["name"], seen[1].data["server"]["state"]) == ("files", "ready")
    assert seen[2].data["files"] == ["rules/broken.md"]
    assert seen[3].data["problems"][0]["file"] == "rules/broken.md"
    assert missing.status_code == 404


class HeldUpEmbedder:
    """Embeds at once what is asked, then only as many times as it is let."""

    model = "held up"
    language = None

    def __init__(self) -> None:
        # It embeds on another loop than the test's.
        self.let = threading.Semaphore(2)

    async def vocabulary(self) -> dict[str, int]:
        return {}

    async def embed(self, texts: Sequence[str]) -> Vectors:
        await anyio.to_thread.run_sync(self.let.acquire)
        return np.ones((len(texts), 1), np.float32)


async def test_who_watches_an_agent_sees_how_far_indexing_has_come(world: World) -> None:
    embedder = HeldUpEmbedder()
    world.selector = HybridSelector(ItemIndex(embedder))
    for number in range(TEXTS_AT_ONCE // 2 + 2):
        world.rule(f"rule-{number}", "Its name is one passage, and this is the other.", include="agent")
    seen: list[SentEvent] = []
    async with served(world) as client, client.stream("GET", "/api/agents/pane/events") as response:
        events = (event async for event in events_in(response) if event.event == "agent.indexing")
        await client.post("/api/agents/pane/search", json={"query": "tone"})
        with anyio.fail_after(PATIENCE_S):
            seen.append(await anext(events))
            embedder.let.release()
            seen.append(await anext(events))

    assert [event.data for event in seen] == [
        {"done": TEXTS_AT_ONCE, "total": TEXTS_AT_ONCE + 4, "type": "agent.indexing"},
        {"done": TEXTS_AT_ONCE + 4, "total": TEXTS_AT_ONCE + 4, "type": "agent.indexing"},
    ]


async def test_items_are_found_by_words_and_turned_page_by_page(world: World) -> None:
    for name in ("one", "two", "three"):
        world.rule(name, description=f"About {name}")
    async with served(world) as client:
        found = (await client.get(ITEMS, params={"q": "ABOUT t"})).json()
        first = (await client.get(ITEMS, params={"limit": 2})).json()
        second = (await client.get(ITEMS, params={"limit": 2, "cursor": first["cursor"]})).json()
        odd = await client.get(ITEMS, params={"cursor": "x"})

    assert [item["name"] for item in found["items"]] == ["three", "two"]
    assert [item["name"] for item in first["items"] + second["items"]] == ["one", "three", "two"]
    assert second["cursor"] is None
    assert odd.status_code == 422


async def test_writers_of_one_file_do_not_undo_one_another(client: httpx2.AsyncClient) -> None:
    made = await client.post(ITEMS, json=NEW)
    path, tag = made.headers["location"], made.headers["etag"]
    statuses: list[int] = []

    async def write(number: int) -> None:
        response = await client.put(path, json={"raw": f"Number {number}."}, headers={"If-Match": tag})
        statuses.append(response.status_code)

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(write, number)

    assert sorted(statuses) == [200, *[412] * 7]
