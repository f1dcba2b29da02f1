"""`windowpane item`, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

from cli.running import windowpane


def test_items_are_added_removed_excluded_and_readmitted(data: Path) -> None:
    guide = data / "agents" / "guide"
    (guide / "agent.yaml").write_text("model: echo\n")
    (guide / "rules" / "polite.md").write_text("---\ninclude: agent\n---\nBe polite.")
    windowpane(data, "chat", "--message", "hello")

    done = [
        windowpane(data, "item", verb, "last", "rule:polite")
        for verb in ("add", "add", "remove", "readmit", "never", "never", "readmit")
    ]
    unknown = windowpane(data, "item", "never", "last", "rule:impolite")

    assert [each.out for each in done] == [
        "Added rule:polite.\n",
        "rule:polite is already in this session.\n",
        "Removed rule:polite.\n",
        "rule:polite may be selected again.\n",
        "rule:polite will not be used in this session.\n",
        "rule:polite is excluded already.\n",
        "rule:polite may be selected again.\n",
    ]
    assert unknown.code == 1
    assert unknown.err.startswith("error: the agent has no item 'rule:impolite'; did you mean rule:polite")


def test_the_mode_of_an_item_is_set_and_an_open_session_receives_it_by_an_option(data: Path) -> None:
    guide = data / "agents" / "guide"
    (guide / "agent.yaml").write_text("model: echo\n")
    (guide / "rules" / "polite.md").write_text("---\ninclude: agent\n---\nBe polite.")
    windowpane(data, "chat", "--message", "hello")
    session = json.loads(windowpane(data, "sessions", "--json").out)[0]["id"]

    quiet = windowpane(data, "item", "mode", "guide", "polite", "manual")
    both = windowpane(data, "item", "mode", "guide", "rule:polite", "always", "--also-in", "last")
    again = windowpane(data, "item", "add", "last", "rule:polite")

    assert quiet.out == "Changed rules/polite.md (rule:polite: include: manual).\n"
    assert both.out == f"Changed rules/polite.md (rule:polite: include: always). Added to session {session}.\n"
    assert again.out == "rule:polite is already in this session.\n"
    assert (guide / "rules" / "polite.md").read_text() == "---\ninclude: always\n---\nBe polite."
