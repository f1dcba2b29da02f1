"""Import, export and statistics, here and over a server."""

from __future__ import annotations

import json
from pathlib import Path

from cli.running import process, windowpane
from cli.serving import server


def init_alone(data: Path) -> None:
    """Write the example agent without its tool server, which takes seconds to start."""
    windowpane(data, "init")
    (data / "agents" / "guide" / "agent.yaml").write_text("model: echo\n")


def test_a_project_is_imported_and_the_report_says_what_became_of_what(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "AGENTS.md").write_text("Be kind.")
    (project / "CLAUDE.local.md").write_text("Mine.")
    data = tmp_path / "data"

    dry = windowpane(data, "import", str(project), "--agent", "team", "--dry-run")
    done = windowpane(data, "import", str(project), "--agent", "team")
    again = windowpane(data, "import", str(project), "--agent", "team", "--json")
    missing = windowpane(data, "import", str(tmp_path / "none"))
    outside = windowpane(data, "import", str(project), "--agent", "../x")

    assert done.out.splitlines()[:2] == [
        "created      AGENTS.md → rules/agents.md  (rule, always: it holds for the whole project)",
        "not imported CLAUDE.local.md  (it is one person's own; import it by name if you want it)",
    ]
    assert dry.out.splitlines()[:2] == done.out.splitlines()[:2]
    assert (data / "agents/team/rules/agents.md").read_text().endswith("Be kind.")
    assert [outcome["became"] for outcome in json.loads(again.out)["outcomes"]] == ["unchanged", "not_imported"]
    assert (missing.code, outside.code) == (1, 1)


def test_a_session_is_exported_imported_and_counted(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "session.json"
    init_alone(data)
    windowpane(data, "chat", "--message", "Hello there")

    exported = windowpane(data, "export", "last", "--output", str(file))
    imported = windowpane(data, "import", str(file))
    one = json.loads(windowpane(data, "stats", "last", "--json").out)
    every = windowpane(data, "stats")

    assert exported.code == imported.code == 0, exported.err + imported.err
    assert json.loads(file.read_text())["format"] == "windowpane.session"
    assert imported.out.startswith("ses_")
    assert (one["message_count"], one["turn_count"]) == (2, 1)
    assert every.out.splitlines()[:2] == ["sessions             2", "messages             4"]


def test_a_server_can_do_the_work(tmp_path: Path) -> None:
    data, nowhere, file = tmp_path / "data", tmp_path / "nowhere", tmp_path / "session.json"
    init_alone(data)
    with server(data) as url:

        def there(*arguments: str, piped: bytes = b"") -> str:
            done = windowpane(nowhere, *arguments, piped=piped, WINDOWPANE_URL=url)
            assert done.code == 0, done.err
            return done.out

        said = there("chat", "--message", "Hello there")
        piped = there("chat", "last", piped=b"And again")
        preview = json.loads(there("preview", "How?", "--json"))
        there("sessions", "rename", "last", "Over there")
        there("export", "last", "-o", str(file))
        imported = there("import", str(file)).strip()
        there("sessions", "delete", imported, "--yes")
        listed = there("sessions")
        numbers = json.loads(there("stats", "--json"))
        alone = process(nowhere, "--url", url, "sessions", "show", "last")

    assert said.startswith("I am the built-in offline model")
    assert piped.startswith("I am the built-in offline model")
    assert preview["context"]["turn"] == 1
    assert "Over there" in listed
    assert (numbers["sessions"], numbers["turns"]) == (1, 2)
    assert (alone.code, alone.err, "Hello there" in alone.out) == (0, "", True)
    assert not nowhere.exists()
