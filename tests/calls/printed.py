"""What the command line and the debug log print of calls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from calls.test_ledger import KEY
from cli.running import windowpane

PRINTED_BEFORE = "──── LLM request "


def printed_body(data: Path, arguments: tuple[str, ...]) -> str:
    """Return the body that a command prints between the head of the call and the list of owners."""
    done = windowpane(data, *arguments)
    assert (done.code, done.err) == (0, "")
    assert KEY not in done.out
    head, _, rest = done.out.partition("\n\n")
    assert "POST " in head
    return rest.partition("\n\nOwners:")[0]


def printed_bodies(data: Path, numbers: Sequence[int]) -> list[str]:
    """Return the bodies of these calls of the last session."""
    return [printed_body(data, ("calls", "last", f"{number}")) for number in numbers]
