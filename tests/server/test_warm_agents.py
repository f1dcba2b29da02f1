"""Tool servers that a server starts before any session asks for them."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import anyio
import httpx2
from tests.server.place import listening

from patience import PATIENCE_S
from windowpane.server.app import create_app
from windowpane.settings import Settings
from windowpane.wiring import open_engine

BY_SDK = Path(__file__).parent.parent / "tools" / "servers" / "by_sdk.py"
NOTE_AND_SERVE = """
import pathlib, runpy, sys
_, mark, *sys.argv = sys.argv
pathlib.Path(mark).touch()
runpy.run_path(sys.argv[0], run_name="__main__")
"""
NOTE_AND_FAIL = "import pathlib, sys; pathlib.Path(sys.argv[1]).touch(); sys.exit('no tools today')"


def write_agent(folder: Path, server: Mapping[str, object]) -> None:
    (folder / "prompts").mkdir(parents=True)
    (folder / "prompts" / "core.md").write_text("You are a clerk.")
    (folder / "agent.yaml").write_text("model: echo\n")
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"notes": server}}))


def noting(folder: Path) -> dict[str, object]:
    mark = str(folder / "started")
    return {"command": sys.executable, "args": ["-c", NOTE_AND_SERVE, mark, str(BY_SDK), "stdio"]}


async def exists(*files: Path) -> None:
    with anyio.fail_after(PATIENCE_S):
        while not all(file.exists() for file in files):  # noqa: ASYNC110 (another process writes them)
            await anyio.sleep(0.05)


def settings(tmp_path: Path) -> Settings:
    return Settings(data=tmp_path, agents=tmp_path / "agents")


async def test_a_server_starts_the_tool_servers_of_the_first_agent_and_of_the_latest_session(tmp_path: Path) -> None:
    folders = {name: tmp_path / "agents" / name for name in ("archivist", "baker", "clerk")}
    for folder in folders.values():
        write_agent(folder, noting(folder))
    async with open_engine(settings(tmp_path)) as engine:
        await engine.sessions.create("clerk")
        await exists(folders["clerk"] / "started")
    (folders["clerk"] / "started").unlink()

    async with listening(create_app(open_engine(settings(tmp_path), warm=True))) as address:
        await exists(folders["archivist"] / "started", folders["clerk"] / "started")
        async with httpx2.AsyncClient(base_url=address, timeout=PATIENCE_S) as client:
            session = (await client.post("/api/sessions", json={"agent": "clerk"})).json()["id"]
            servers = (await client.get("/api/agents/clerk/servers", params={"settle_s": 60})).json()["servers"]
            answer = await client.post(f"/api/sessions/{session}/messages", json={"content": "Hello"})

    assert not (folders["baker"] / "started").exists()
    assert [(server["name"], server["state"]) for server in servers] == [("notes", "ready")]
    assert answer.status_code == 200


async def test_a_tool_server_that_cannot_start_does_not_disturb_the_start(tmp_path: Path) -> None:
    folder = tmp_path / "agents" / "clerk"
    failing = {"command": sys.executable, "args": ["-c", NOTE_AND_FAIL, str(folder / "started")]}
    write_agent(folder, failing)

    async with listening(create_app(open_engine(settings(tmp_path), warm=True))) as address:
        await exists(folder / "started")
        async with httpx2.AsyncClient(base_url=address, timeout=PATIENCE_S) as client:
            ready = await client.get("/readyz")
            servers = (await client.get("/api/agents/clerk/servers", params={"settle_s": 60})).json()["servers"]
            (folder / "started").unlink()
            # It is tried again by itself.
            await exists(folder / "started")

    assert ready.status_code == 200
    assert [(server["name"], server["state"]) for server in servers] == [("notes", "failed")]


async def test_a_server_whose_latest_session_has_an_agent_that_is_gone_starts_without_it(tmp_path: Path) -> None:
    folder = tmp_path / "agents" / "archivist"
    write_agent(folder, noting(folder))
    write_agent(tmp_path / "agents" / "clerk", {"command": "none", "disabled": True})
    async with open_engine(settings(tmp_path)) as engine:
        await engine.sessions.create("clerk")
        (tmp_path / "agents" / "clerk" / "agent.yaml").unlink()

        likely = await engine.sessions.likely_agents()

    assert likely == ("archivist",)
