"""Agent programs of other makers that talk to the server as to their provider: an agent of Windowpane answers them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compat.process import run
from server.place import served
from windowpane.models.scripted import Call, Reply
from windowpane.testing import World

DOOR = {"limit": {"context": 100_000, "output": 4_000}}


def says_the_note(world: World, folder: Path, tool: str, arguments: object) -> None:
    """Let the model look at a note with a tool of the program, and answer two questions."""
    (folder / "note.txt").write_text("The note says 42.")
    call = Call(f"client__{tool}", json.dumps(arguments), id="c1")
    world.says(Reply("I look.", calls=(call,), finish_reason="tool_call"), "It is 42.", "You are welcome.", "Farewell.")


def told(world: World) -> list[tuple[str, str]]:
    """Return the conversation of the last call: who spoke, and the first words."""
    last = world.model.calls[-1].messages
    return [(message.role, message.content) for message in last if message.part in ("history", "message", "step")]


@pytest.mark.client("Claude Code as a client", "chat", "streaming", "tools")
async def test_claude_code_is_answered_by_an_agent(world: World, tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    says_the_note(world, tmp_path, "Read", {"file_path": str(note)})
    async with served(world) as http:
        environ = {"ANTHROPIC_BASE_URL": f"{str(http.base_url).rstrip('/')}/anthropic", "ANTHROPIC_API_KEY": "any"}
        environ |= {"ANTHROPIC_MODEL": "pane", "ANTHROPIC_SMALL_FAST_MODEL": "pane"}
        first = await run(tmp_path, ["claude", "-p", "What does the note say?"], environ)
        second = await run(tmp_path, ["claude", "-p", "--continue", "Thank you."], environ)

    assert (first.strip(), second.strip()) == ("It is 42.", "You are welcome.")


@pytest.mark.client("Codex as a client", "responses", "streaming", "tools")
async def test_codex_is_answered_by_an_agent(world: World, tmp_path: Path) -> None:
    says_the_note(world, tmp_path, "exec_command", {"cmd": "cat note.txt"})
    async with served(world) as http:
        settings = tmp_path / "home" / ".codex" / "config.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(
            'model = "pane"\nmodel_provider = "pane"\nsandbox_mode = "danger-full-access"\nweb_search = "disabled"\n'
            '[analytics]\nenabled = false\n[model_providers.pane]\nname = "pane"\n'
            f'base_url = "{str(http.base_url).rstrip("/")}/v1"\nenv_key = "OPENAI_API_KEY"\nwire_api = "responses"\n'
        )
        environ = {"OPENAI_API_KEY": "any"}
        first = await run(tmp_path, ["codex", "exec", "--skip-git-repo-check", "What does the note say?"], environ)
        again = ["codex", "exec", "--skip-git-repo-check", "resume", "--last", "Thank you."]
        second = await run(tmp_path, again, environ)

    assert (first.strip(), second.strip()) == ("It is 42.", "You are welcome.")


@pytest.mark.client("opencode as a client", "chat", "streaming", "tools")
async def test_opencode_is_answered_by_an_agent(world: World, tmp_path: Path) -> None:
    says_the_note(world, tmp_path, "read", {"filePath": str(tmp_path / "note.txt")})
    async with served(world) as http:
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{str(http.base_url).rstrip('/')}/v1", "apiKey": "any"},
            "models": {"pane": {"name": "pane"}},
        }
        # The title of a conversation would be asked of the same script.
        settings = {"provider": {"here": provider}, "share": "disabled", "autoupdate": False}
        settings |= {"agent": {"title": {"disable": True}}}
        (tmp_path / "opencode.json").write_text(json.dumps(settings))
        own = ["opencode", "run", "-m", "here/pane"]
        first = await run(tmp_path, [*own, "What does the note say?"], {})
        second = await run(tmp_path, [*own, "--continue", "Thank you."], {})

    assert ("It is 42." in first, "You are welcome." in second) == (True, True)


@pytest.mark.client("Cline CLI as a client", "chat", "streaming", "tools")
async def test_cline_is_answered_by_an_agent(world: World, tmp_path: Path) -> None:
    says_the_note(world, tmp_path, "read_files", {"files": [{"path": str(tmp_path / "note.txt")}]})
    async with served(world) as http:
        door = f"{str(http.base_url).rstrip('/')}/v1"
        auth = ["--provider", "openai", "--apikey", "any", "--modelid", "pane", "--baseurl", door]
        await run(tmp_path, ["cline", "auth", *auth], {})
        said = await run(tmp_path, ["cline", "What does the note say?"], {})

    assert "It is 42." in said


@pytest.mark.client("aider as a client", "chat", "streaming")
async def test_aider_edits_a_file_as_an_agent_says(world: World, tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    note.write_text("The note says 41.\n")
    world.says("note.txt\n```\n<<<<<<< SEARCH\nThe note says 41.\n=======\nThe note says 42.\n>>>>>>> REPLACE\n```\n")
    async with served(world) as http:
        environ = {"OPENAI_API_BASE": f"{str(http.base_url).rstrip('/')}/v1", "OPENAI_API_KEY": "any"}
        quiet = ["--analytics-disable", "--no-check-update", "--no-show-model-warnings", "--no-git", "--no-gitignore"]
        ask = ["--model", "openai/pane", "--edit-format", "diff", "--yes-always", "--message", "Let it say 42."]
        await run(tmp_path, ["aider", *quiet, *ask, "note.txt"], environ)

    assert note.read_text() == "The note says 42.\n"
