"""Note how the tests with other makers' software end, for the page on compatibility.

`make test-compat` names the file in `WINDOWPANE_CLIENT_RESULTS`. A run adds what it ran to what stands there; results
of another version of a client are dropped. The hooks are those of pytest, which `conftest.py` hands on.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import cast

import pytest
from compatibility import Result, check_mark, version_of

FILE = os.environ.get("WINDOWPANE_CLIENT_RESULTS")
PROVES = "client and feature"
WORST_FIRST = ("failed", "skipped", "passed")

_seen: dict[tuple[str, str], str] = {}


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let the reports of a test carry what it proves, also from another process."""
    for mark in item.iter_markers("client"):
        check_mark(*mark.args)
        item.user_properties += [(PROVES, [mark.args[0], feature]) for feature in mark.args[1:]]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how a test ended. What several tests prove is as the worst of them."""
    if report.when != "call" and report.passed:
        return
    for name, value in report.user_properties:
        if name == PROVES:
            client, feature = cast("list[str]", value)
            ends = (report.outcome, _seen.get((client, feature), report.outcome))
            _seen[client, feature] = min(ends, key=WORST_FIRST.index)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the results down."""
    if FILE is None or hasattr(session.config, "workerinput") or not _seen:
        return
    path = Path(session.config.rootpath, FILE)
    results: dict[str, Result] = json.loads(path.read_text()) if path.exists() else {}
    for client in {client for client, _ in _seen}:
        version, before = version_of(client), results.get(client)
        kept = before["features"] if before and before["version"] == version else {}
        new = {feature: ended for (own, feature), ended in _seen.items() if own == client}
        results[client] = Result(version=version, features=dict(sorted({**kept, **new}.items())))
    path.write_text(json.dumps(dict(sorted(results.items())), indent=2, ensure_ascii=False) + "\n")
