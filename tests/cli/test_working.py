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
