from __future__ import annotations

import httpx2
import pytest

from server.place import new_session, problem, problem_in, served, steady
from windowpane.agents.edit import revision_of
from windowpane.context.items import Reference, Rule, Tool, item_hash
from windowpane.request.assemble import item_tokens
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.search.index import ItemIndex
from windowpane.testing import World, tool


def fill(world: World) -> None:
    world.write("agent.yaml", "model: scripted:test\ndescription: A <small> pane\ntemperature: 0.5\n")
    world.rule("tone", "Be kind.", include="always", priority=10, description="How to talk", version="3")
    world.reference("api", "# API\nGET /", include="agent", title="The API", related="[tone2]", version="1")
    world.reference("tone2", "More.", version="1")
    world.rule("broken", priority="high")
    world.toolbox.put("files", [tool("read/any thing?", description="Read", permission="not_required")])


async def test_agents_are_listed_without_starting_their_servers(world: World) -> None:
    fill(world)
    async with served(world) as client:
        response = await client.get("/api/agents")

    assert response.json() == {
        "agents": [
            {
                "name": "pane",
                "description": "A <small> pane",
                "model": "scripted:test",
                "rules": 1,
                "references": 2,
                "servers": 0,
                "problems": 1,
                "questions": ["What should I know about The API?", "What can you help me with?"],
            }
        ]
    }


async def test_agents_are_created_copied_and_renamed(world: World) -> None:
    fill(world)
    (world.root / "pane" / ".git").mkdir()
    async with served(world) as client:
        empty = await client.post("/api/agents", json={"name": "sill", "description": 'A "quoted": #thing'})
        copy = await client.post("/api/agents", json={"name": "pane-2", "copy_of": "pane"})
        session = (await client.post("/api/sessions", json={"agent": "sill"})).json()["id"]
        renamed = await client.patch("/api/agents/sill", json={"name": "frame"})
        orphan = await client.post(f"/api/sessions/{session}/messages", json={"content": "Hi"})
        given = await client.patch(f"/api/sessions/{session}", json={"agent": "frame"})
        answered = await client.post(f"/api/sessions/{session}/messages", json={"content": "Hi"})
        names = [agent["name"] for agent in (await client.get("/api/agents")).json()["agents"]]

    assert (empty.status_code, empty.headers["location"]) == (201, "/api/agents/sill")
    assert (empty.json()["description"], empty.json()["settings"]["model"], empty.json()["problems"]) == (
        'A "quoted": #thing',
        "echo",
        [],
    )
    assert copy.json()["counts"] == {"rules": 1, "references": 2, "tools": 1}
    assert not (world.root / "pane-2" / ".git").exists()
    assert (renamed.status_code, renamed.json()["name"]) == (200, "frame")
    assert problem_in(orphan)["code"] == "agent_not_found"
    assert (given.json()["agent"], answered.json()["outcome"]) == ("frame", "completed")
    assert names == ["frame", "pane", "pane-2"]


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("../up", 422, "'../up' cannot be the name of an agent; use 1 to 64 letters, digits, - and _"),
        (".hidden", 422, "cannot be the name of an agent"),
        ("a/b", 422, "cannot be the name of an agent"),
        ("a b", 422, "cannot be the name of an agent"),
        ("x" * 65, 422, "cannot be the name of an agent"),
        ("PANE", 409, "an agent or folder 'pane' already exists"),
        ("plain", 409, "an agent or folder 'plain' already exists"),
    ],
)
async def test_an_agents_name_leads_nowhere_else_and_takes_no_others_place(
    world: World, name: str, status: int, said: str
) -> None:
    (world.root / "plain").mkdir()
    (world.root / "other").mkdir()
    (world.root / "other" / "agent.yaml").write_text("description: Stays.\n")
    before = below(world)
    async with served(world) as client:
        created = await client.post("/api/agents", json={"name": name})
        copied = await client.post("/api/agents", json={"name": name, "copy_of": "pane"})
        renamed = await client.patch("/api/agents/other", json={"name": name})
        missing = await client.post("/api/agents", json={"name": "new", "copy_of": "../../etc"})

    for response in (created, copied, renamed):
        assert response.status_code == status
        assert said in problem_in(response)["detail"]
    assert problem_in(missing)["code"] == "agent_not_found"
    assert below(world) == before


def below(world: World) -> list[str]:
    found = world.root.parent.rglob("*")
    return sorted(str(path) for path in found if not path.name.startswith("windowpane.db"))


async def test_a_server_of_one_agents_folder_creates_no_others(world: World) -> None:
    alone = World(world.root / "pane" / "inside")
    (alone.root / "agent.yaml").write_text("description: Alone.\n")
    async with served(alone) as client:
        response = await client.post("/api/agents", json={"name": "second"})

    assert "is the folder of one agent" in problem_in(response)["detail"]


async def test_an_agent_tells_its_settings_counts_servers_and_problems(world: World) -> None:
    fill(world)
    async with served(world) as client:
        agent = (await client.get("/api/agents/pane")).json()
        problems = (await client.get("/api/agents/pane/problems")).json()
        servers = (await client.get("/api/agents/pane/servers", params={"settle_s": 5})).json()

    server = {"name": "files", "state": "ready", "error": "", "version": "", "tools": ["read/any thing?"]}
    assert steady(agent) == {
        "name": "pane",
        "description": "A <small> pane",
        "folder": "…",
        "settings": {
            "model": "scripted:test",
            "temperature": 0.5,
            "top_p": None,
            "max_output_tokens": 4096,
            "max_chat_turns": 20,
            "tool_permission": "tool",
            "mode": "normal",
            "context_window": None,
            "search": {},
            "working_context": True,
            "finders": True,
            "strict_tools": False,
            "prices": {},
            "cache": "auto",
            "memory": {},
            "inputs": None,
        },
        "counts": {"rules": 1, "references": 2, "tools": 1},
        "servers": [server],
        "problems": problems["problems"],
    }
    assert servers == {"servers": [server]}
    assert [(found["file"], found["line"]) for found in problems["problems"]] == [("rules/broken.md", 2)]


async def test_items_are_listed_by_type(world: World) -> None:
    fill(world)
    async with served(world) as client:
        everything = (await client.get("/api/agents/pane/items")).json()["items"]
        rules = (await client.get("/api/agents/pane/items", params={"type": "rule"})).json()["items"]
        odd = await client.get("/api/agents/pane/items", params={"type": "prompt"})

    rule = Rule("tone", "Be kind.", "How to talk", 10)
    assert [(item["type"], item["name"]) for item in everything] == [
        ("rule", "tone"),
        ("reference", "api"),
        ("reference", "tone2"),
        ("tool", "read/any thing?"),
    ]
    assert rules == [
        {
            "type": "rule",
            "name": "tone",
            "server": None,
            "title": "",
            "description": "How to talk",
            "include": "always",
            "enabled": True,
            "permission": None,
            "priority": 10,
            "version": "3",
            "hash": item_hash(rule),
            "tokens": item_tokens(rule),
        }
    ]
    assert problem_in(odd)["errors"] == [
        {"where": "query.type", "message": "input should be 'rule', 'reference' or 'tool'"}
    ]


async def test_an_item_is_read_with_all_it_says_whatever_its_name(world: World) -> None:
    fill(world)
    async with served(world) as client:
        reference = (await client.get("/api/agents/pane/items/reference/api")).json()
        path = "/api/agents/pane/items/tool/read%2Fany%20thing%3F"
        found = (await client.get(path, params={"server": "files"})).json()
        serverless = await client.get(path)
        unknown = await client.get("/api/agents/pane/items/rule/..%2F..%2Fagent.yaml")

    file = world.root / "pane/references/api.md"
    api = Reference("api", "# API\nGET /", related=("tone2",), title="The API")
    assert reference == {
        "type": "reference",
        "name": "api",
        "server": None,
        "title": "The API",
        "description": "",
        "include": "agent",
        "enabled": True,
        "permission": None,
        "priority": 500,
        "version": "1",
        "hash": item_hash(api),
        "tokens": item_tokens(api),
        "text": "# API\nGET /",
        "related": ["tone2"],
        "parameters": None,
        "file": "references/api.md",
        "raw": file.read_text(),
        "revision": revision_of(file.read_bytes()),
    }
    assert found == {
        "type": "tool",
        "name": "read/any thing?",
        "server": "files",
        "title": "",
        "description": "Read",
        "include": "always",
        "enabled": True,
        "permission": "not_required",
        "priority": None,
        "version": "",
        "hash": item_hash(Tool("files", "read/any thing?", "Read")),
        "tokens": item_tokens(Tool("files", "read/any thing?", "Read"), "files_read_any_thing_yktf6o3y"),
        "text": None,
        "related": [],
        "parameters": {"type": "object", "properties": {}},
        "file": None,
        "raw": None,
        "revision": None,
    }
    assert problem_in(serverless) == problem(
        422, "invalid_input", "a tool names its server; a rule or a reference has none"
    )
    assert problem_in(unknown) == problem(
        404,
        "unknown_item",
        "the agent has no item 'rule:../../agent.yaml'",
        facts={"item": "rule:../../agent.yaml"},
    )


@pytest.mark.parametrize("rest", ["", "/items", "/problems", "/servers"])
async def test_an_agent_that_is_not_there_is_not_found(client: httpx2.AsyncClient, rest: str) -> None:
    for name in ("nobody", "..%2Fpane", "%2E%2E", "%00", "pane%2F"):
        response = await client.get(f"/api/agents/{name}{rest}")

        assert problem_in(response)["code"] in ("agent_not_found", "not_found"), name


async def test_an_agents_items_can_be_searched_without_a_session(world: World) -> None:
    world.reference("tides", "High tide is at noon, low tide at six.", include="agent", description="Tides")
    world.reference("invoices", "An invoice is paid within thirty days.", include="agent", description="Invoices")
    world.rule("tone", "Be kind.", include="always")
    world.selector = HybridSelector(ItemIndex(None))
    async with served(world) as client:
        path = "/api/agents/pane/search"
        found = await client.post(path, json={"query": "When is high tide?"})
        none = await client.post(path, json={"query": "When is high tide?", "items": []})
        among = await client.post(
            path,
            json={
                "query": "When is high tide?",
                "items": [{"type": "rule", "name": "tone"}, {"type": "rule", "name": "x"}],
            },
        )
        bad = [
            await client.post(path, json=body)
            for body in ({"query": ""}, {"query": "x", "top_k": 0}, {"query": "x", "include_score": 2}, {})
        ]
        unknown = await client.post("/api/agents/none/search", json={"query": "x"})

    best = found.json()["items"][0]
    assert (best["type"], best["name"], best["include_mode"]) == ("reference", "tides", "agent")
    assert best["evidence"]["score"] > 0
    assert none.json() == {"items": [], "degraded": []}
    assert among.json()["items"] == []
    assert found.json()["degraded"] == ["matched by keywords only: no embedding model is configured"]
    assert [response.status_code for response in bad] == [422] * 4
    assert unknown.status_code == 404


async def test_a_tool_takes_as_many_tokens_in_the_list_as_in_a_request_to_the_agents_model(world: World) -> None:
    world.write("agent.yaml", "model: openai:gpt-4o\n")
    world.environ = {"OPENAI_API_KEY": "test"}
    parameters = {"type": "object", "properties": {"path": {"type": "string", "description": "Where it is"}}}
    world.toolbox.put("files", [tool("read", "", permission="never", parameters=parameters)])
    async with served(world) as client:
        session = await new_session(client)
        listed = (await client.get("/api/agents/pane/items", params={"type": "tool"})).json()["items"]
        read = (await client.get("/api/agents/pane/items/tool/read", params={"server": "files"})).json()
        preview = await client.post(f"/api/sessions/{session}/preview", json={"content": "Hi"})

    [sent] = [item for item in preview.json()["context"]["items"] if item["name"] == "read"]
    assert [item["tokens"] for item in listed] == [read["tokens"]] == [sent["tokens"]]
