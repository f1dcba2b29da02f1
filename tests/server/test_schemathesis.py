"""The description of the API is true: schemathesis, which knows nothing but the description, finds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.fuzzed import fuzz, serving


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("phases", "only"),
    [
        ("examples,stateful", r"^/api/(agents|sessions|files)"),
        ("coverage", r"^/api/(files|sessions/import|sessions/.session_id./(fork|turns/.turn./retry)$)"),
    ],
)
def test_whatever_the_description_allows_is_answered_as_it_says(tmp_path: Path, phases: str, only: str) -> None:
    with serving(tmp_path) as address:
        done = fuzz(address, examples=1, seed=1, phases=phases, only=only)

    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr
    assert "crashed" not in (tmp_path / "server.log").read_text()
