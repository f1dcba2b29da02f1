"""`--url`: a server does the work of a command, and what is printed is the same."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from cli.running import Done, windowpane
from cli.serving import server
from windowpane.agents.init import init_agent

AGENT = """model: echo
working_context: false
search: {floor: 0.05, share_of_best: 0.1, deadline_s: 60}
"""
QUESTION = "When do I get my refund for the invoice?"
TEST = f"- {{message: '{QUESTION}', must: [reference:billing]}}\n"


class Both:
    """A data folder, and a server that has it."""

    def __init__(self, data: Path, url: str, token: str) -> None:
        self.data = data
        self.url = url
        self._token = token

    def here(self, *arguments: str) -> Done:
        return windowpane(self.data, *arguments)

    def there(self, *arguments: str) -> Done:
        """Run a command that has no files of its own to look at."""
        return windowpane(self.data / "nothing", *arguments, "--url", self.url, WINDOWPANE_TOKEN=self._token)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Generator[Both]:
    data = tmp_path_factory.mktemp("url")
    agent = init_agent(data / "agents" / "desk")
    for old in (*(agent / "rules").glob("*"), *(agent / "references").glob("*")):
        old.unlink()
    (agent / "agent.yaml").write_text(AGENT)
    (agent / "rules" / "tone.md").write_text("---\ninclude: always\n---\nBe kind.")
    (agent / "references" / "billing.md").write_text(
        "---\ninclude: agent\ndescription: Invoices, payments and refunds\n---\nA refund takes five days."
    )
    (agent / "references" / "printing.md").write_text(
        "---\ninclude: agent\ndescription: Printing and resizing photos\n---\nPhotos are printed on matte paper."
    )
    (agent / "tests").mkdir(exist_ok=True)
    (agent / "tests" / "refunds.yaml").write_text(TEST)
    (data / "labels.yaml").write_text(TEST * 12)
    (data / "printing.md").write_text("A refund of an invoice is printed.")
    token = windowpane(data, "token", "create", "--owner", "local", "--scope", "manage").out.split()[0]
    with server(data, token_needed=True) as url:
        both = Both(data, url, token)
        for words in (("--message", QUESTION), ("last", "--message", "How do I resize a photo before printing?")):
            assert both.there("chat", *words).code == 0
        yield both


@pytest.mark.parametrize(
    "command",
    [
        "sessions --json",
        "sessions show last",
        "sessions show last --json",
        "working get last",
        "context last 1",
        "context last 1 --messages",
        "context last 1 --call 1",
        "context last 1 --call 1 --wire --json",
        "context last 1 --call 9",
        "context last 99",
        "calls last",
        "calls last 2 --json",
        "calls last 9",
        "explain last 1",
        "explain last 1 printing --json",
        "explain last 1 nothing",
        "compare last 1 2",
        "compare last 1 2 --session last --json",
        "replay last 1",
        "replay last 1 --floor 0.9 --item printing={data}/printing.md",
        "use last 1 --json",
        "analytics",
        "analytics --csv items",
        "suggest",
        "suggest desk --json",
        "suggest --apply 9",
        "test",
        "eval desk --labels {data}/labels.yaml",
        "tune desk --labels {data}/labels.yaml --json",
        "stats",
        "stats last --json",
        "models",
        "models anthropic",
        "models nobody",
        "export ses_nobody",
    ],
)
def test_a_command_prints_the_same_here_and_over_a_server(both: Both, command: str) -> None:
    arguments = command.format(data=both.data).split()

    here, there = both.here(*arguments), both.there(*arguments)

    assert there == here
    assert here.out or here.err.startswith("error: ")


def test_the_working_context_is_changed_over_a_server(both: Both) -> None:
    first = both.there("working", "set", "last", "files", "/srv/spec.md")
    merged = both.there("working", "set", "last", "files", "/srv/notes.md", "--merge")
    read = both.here("working", "get", "last", "files")
    refused = both.there("working", "set", "last", "files", "notes.md")
    cleared = both.there("working", "clear", "last", "files")

    assert [done.out for done in (first, merged, cleared)] == [
        "Set files: 1 items\n",
        "Merged files: 2 items\n",
        "Cleared files\n",
    ]
    assert read.out.split() == ["{", '"files":', "[", '"/srv/spec.md",', '"/srv/notes.md"', "]", "}"]
    assert refused == both.here("working", "set", "last", "files", "notes.md")
    assert refused.code == 1


def test_better_settings_are_written_over_a_server(both: Both) -> None:
    file = both.data / "agents" / "desk" / "agent.yaml"
    before = file.read_text()
    greedy = "model: echo\nsearch:  # takes everything\n  floor: 0.0\n  share_of_best: 0.0\n  deadline_s: 60\n"
    file.write_text(greedy)
    done = both.there("tune", "desk", "--labels", f"{both.data}/labels.yaml", "--write", "--yes")
    written = file.read_text()
    file.write_text(before)

    assert done.code == 0
    assert done.out.endswith("Changed agent.yaml of desk.\n")
    assert written != greedy
    assert written.startswith("model: echo\nsearch:  # takes everything\n")


def test_a_turn_is_made_a_test_over_a_server(both: Both) -> None:
    done = both.there("test", "--from-turn", "last", "2")

    (file,) = (both.data / "agents" / "desk" / "tests").glob("*resize*")
    assert done.code == 0
    assert done.out == file.read_text()
    file.unlink()


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("init", "it writes an agent folder on this machine"),
        ("serve", "it starts the server on this machine"),
        ("mcp", "it starts the MCP server on this machine"),
        ("doctor", "it checks this machine"),
        ("import .", "it writes an agent folder on this machine; only an exported session"),
        ("store copy memory: memory:", "it opens both stores from this machine"),
        ("token list", "it changes the token file on this machine"),
        ("analytics --owner ann", "a server shows the turns of the token's owner"),
    ],
)
def test_what_no_server_can_do_says_why(tmp_path: Path, command: str, why: str) -> None:
    done = windowpane(tmp_path, "--url", "http://127.0.0.1:9", *command.split())

    assert done.code in (1, 2)
    assert why in " ".join(done.err.split())
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_token_or_no_server_is_said(both: Both) -> None:
    stranger = windowpane(both.data, "sessions", "--url", both.url, WINDOWPANE_TOKEN="wp_wrong")
    nobody = windowpane(both.data, "--url", "http://127.0.0.1:9", "sessions")

    assert (stranger.code, stranger.out) == (1, "")
    assert stranger.err.startswith("error: ")
    assert (nobody.code, "no server answers at http://127.0.0.1:9" in nobody.err) == (1, True)
