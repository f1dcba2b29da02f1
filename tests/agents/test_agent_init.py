"""The example agent, and how it is written."""

from pathlib import Path

import pytest

from windowpane.agents.folder import FolderAgents
from windowpane.agents.init import init_agent
from windowpane.errors import InvalidInputError
from windowpane.tools.base import ServerConfig


@pytest.mark.spec("S0.1", "S0.3")
def test_the_example_agent_has_items_of_every_mode_and_no_problems(tmp_path: Path) -> None:
    place = init_agent(tmp_path / "agents" / "guide")

    agent = FolderAgents(tmp_path / "agents").current("guide")

    assert (place, agent.problems) == (tmp_path / "agents" / "guide", ())
    assert [(rule.priority, rule.name, rule.include) for rule in agent.rules] == [
        (100, "answer-briefly", "always"),
        (110, "say-where-it-comes-from", "always"),
        (300, "keep-notes", "agent"),
        (310, "change-an-agent", "agent"),
        (400, "teach-step-by-step", "manual"),
    ]
    assert [(reference.name, reference.include) for reference in agent.references] == [
        ("agents-sessions-turns", "agent"),
        ("include-modes", "agent"),
        ("agent-folder", "agent"),
        ("selection", "agent"),
        ("token-budget", "agent"),
        ("tool-servers", "agent"),
        ("troubleshooting", "agent"),
    ]
    assert all(item.description and item.text.strip() for item in (*agent.rules, *agent.references))
    assert agent.settings.model == "echo"
    assert (agent.prompts.core is not None, agent.prompts.default_site is not None) == (True, True)
    assert sorted(agent.prompts.sites) == ["gist.github.com", "github.com"]


@pytest.mark.spec("S0.7", "S0.8")
def test_the_example_agent_asks_before_it_writes_and_only_then(tmp_path: Path) -> None:
    init_agent(tmp_path / "guide")

    (server,) = FolderAgents(tmp_path).current("guide").servers
    config = ServerConfig(name=server.name, **server.body)

    assert {
        tool: config.effective_permission(tool) for tool in ("list_notes", "read_note", "search_notes", "write_note")
    } == {
        "list_notes": "not_required",
        "read_note": "not_required",
        "search_notes": "not_required",
        "write_note": "required",
    }


def test_a_folder_with_anything_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")

    with pytest.raises(InvalidInputError, match="is not empty, and nothing in it was changed"):
        init_agent(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "guide").write_text("mine")

    with pytest.raises(InvalidInputError, match="is a file; name a new folder"):
        init_agent(tmp_path / "guide")

    assert (tmp_path / "guide").read_text() == "mine"


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")

    with pytest.raises(InvalidInputError, match="cannot write an agent to"):
        init_agent(tmp_path / "file" / "guide")


def test_an_empty_folder_somebody_stands_in_becomes_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "guide"
    folder.mkdir()
    before = folder.stat().st_ino
    monkeypatch.chdir(folder)

    init_agent(Path())

    assert folder.stat().st_ino == before
    assert FolderAgents(tmp_path).current("guide").problems == ()
    assert [path.name for path in tmp_path.iterdir()] == ["guide"]
