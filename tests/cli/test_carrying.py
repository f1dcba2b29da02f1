"""Import, export and statistics, here and over a server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.running import environment, windowpane
from windowpane.cli.app import app


@contextmanager
def server(data: Path) -> Generator[str]:
    command = [sys.executable, "-m", "windowpane", "serve", "--port", "0"]
    with subprocess.Popen(
        command, env=environment(data), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            lines: list[str] = []
            for line in process.stdout:
                lines.append(line)
                if found := [word for word in line.split() if word.startswith("http://127.0.0.1:")]:
                    yield found[0].rstrip(".,")
                    break
            else:
                raise AssertionError("".join(lines))
        finally:
            process.terminate()


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
    windowpane(data, "init")
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


@pytest.mark.timeout(240)
def test_a_server_can_do_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, file = tmp_path / "data", tmp_path / "session.json"
    windowpane(data, "init")
    with server(data) as url:
        nowhere = tmp_path / "nowhere"

        monkeypatch.setenv("WINDOWPANE_URL", url)
        monkeypatch.setenv("WINDOWPANE_DATA", str(nowhere))

        def there(*arguments: str, piped: bytes = b"") -> str:
            done = CliRunner().invoke(app, arguments, input=piped)
            assert done.exit_code == 0, done.output
            return done.stdout

        said = there("chat", "--message", "Hello there")
        piped = there("chat", "last", piped=b"And again")
        preview = json.loads(there("preview", "How?", "--json"))
        shown = there("context", "last", "1", "--json")
        there("sessions", "rename", "last", "Over there")
        listed = there("sessions")
        conversation = there("sessions", "show", "last")
        there("export", "last", "-o", str(file))
        imported = there("import", str(file)).strip()
        counts = json.loads(there("stats", "last", "--json"))
        there("sessions", "delete", imported, "--yes")
        numbers = json.loads(there("stats", "--json"))
    gone = windowpane(tmp_path / "nowhere", "--url", url, "sessions")

    assert said.startswith("I am the built-in offline model")
    assert piped.startswith("I am the built-in offline model")
    assert preview["context"]["turn"] == 1
    assert json.loads(shown)["context"]["turn"] == 1
    assert "Over there" in listed
    assert "Hello there" in conversation
    assert counts["turn_count"] == 2
    assert numbers["sessions"] == 1
    assert (gone.code, "no server answers at" in gone.err) == (1, True)
    assert not nowhere.exists()
