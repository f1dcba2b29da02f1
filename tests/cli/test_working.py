"""`windowpane working`, as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.running import windowpane


@pytest.mark.spec("S2.21", "S2.22", "S2.26", "S2.30", "S2.32")
def test_the_working_context_is_set_read_merged_and_cleared(data: Path) -> None:
    (data / "agents" / "guide" / "agent.yaml").write_text("model: echo\n")
    windowpane(data, "chat", "--message", "hello")
    first = windowpane(data, "working", "set", "last", "files", "/srv/spec.md")
    merged = windowpane(data, "working", "set", "last", "files", "/srv/notes.md", "--merge")
    read = windowpane(data, "working", "get", "last")
    refused = windowpane(data, "working", "set", "last", "files", "notes.md")
    cleared = windowpane(data, "working", "clear", "last", "files")
    nothing = windowpane(data, "working", "get", "last")

    assert (first.out, merged.out) == ("Set files: 1 items\n", "Merged files: 2 items\n")
    assert json.loads(read.out) == {"files": ["/srv/spec.md", "/srv/notes.md"]}
    assert (refused.code, refused.err) == (
        1,
        "error: Files need absolute paths, and 'notes.md' is not one. Nothing was changed.\n",
    )
    assert (cleared.out, nothing.out) == ("Cleared files\n", "No context stored for this session\n")


def test_a_file_that_a_tool_has_used_is_promoted_to_the_working_context(tmp_path: Path) -> None:
    windowpane(tmp_path, "init")
    call = 'call notes__write_note {"name": "place", "text": "/srv/notes.md"}'
    told = windowpane(tmp_path, "chat", "--yes", "--message", call)
    unseen = windowpane(tmp_path, "working", "promote", "last", "/srv/other.md")
    promoted = windowpane(tmp_path, "working", "promote", "last", "/srv/notes.md")
    read = windowpane(tmp_path, "working", "get", "last", "files")

    assert told.code == 0
    assert (unseen.code, unseen.err) == (
        1,
        "error: Not observed in this session: /srv/other.md. Nothing was changed.\n",
    )
    assert promoted.out.splitlines()[0] == "Merged files: 1 items"
    assert json.loads(read.out) == {"files": ["/srv/notes.md"]}
